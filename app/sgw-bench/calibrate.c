/* SPDX-License-Identifier: BSD-3-Clause */
#include "result.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.9       // of a limit: nearer, and it may be the limit that was measured
#define WIRE_NEAR 0.99 // of the wire's ceiling
#define WIRE_OVER 1.01 // no wire carries this
#define LIMITS_MAX 1024

struct limit {
	char algorithm[64];
	char direction[16];
	uint8_t family;
	double frame; // mean bytes without FCS
	double pps;
};

struct calibration {
	uint32_t n;
	struct limit limits[LIMITS_MAX];
};

// ---------------------------------------------------------------- the file

static const char *const keys[] = {"algorithm", "direction", "family", "frame", "pps"};

static const char *
read_limit(const json_t *o, struct limit *l)
{
	const char *key;
	json_t *value;
	double family;

	if (!json_is_object(o) || json_object_size(o) != sizeof(keys) / sizeof(keys[0]))
		return "each limit has algorithm, direction, family, frame and pps, and nothing else";
	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		bool text = strcmp(key, "algorithm") == 0 || strcmp(key, "direction") == 0;

		if (text != json_is_string(value) || (!text && !(json_number_value(value) > 0)))
			return "algorithm and direction are texts, the others numbers above zero";
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(o, keys[i]) == NULL)
			return "a key is missing or misspelt";
	snprintf(l->algorithm, sizeof(l->algorithm), "%s",
		 json_string_value(json_object_get(o, "algorithm")));
	snprintf(l->direction, sizeof(l->direction), "%s",
		 json_string_value(json_object_get(o, "direction")));
	family = json_number_value(json_object_get(o, "family"));
	l->family = family == 4 || family == 6 ? (uint8_t)family : 0;
	l->frame = json_number_value(json_object_get(o, "frame"));
	l->pps = json_number_value(json_object_get(o, "pps"));
	return l->family != 0 ? NULL : "family is 4 or 6";
}

int
calibration_load(const char *path, struct calibration **out, struct err *err)
{
	struct calibration *c = calloc(1, sizeof(*c));
	json_error_t e;
	json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &e),
	       *list = json_object_get(doc, "limits"), *o;
	const char *wrong = NULL;
	size_t i = 0;
	int rc = -EINVAL;

	if (doc == NULL)
		err_set(err, EXIT_CONFIG, rc,
			"%s:%d:%d: %s; it must be what `sgw-bench calibrate --output` wrote", path,
			e.line, e.column, e.text);
	else if (c == NULL)
		rc = err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	else if (json_object_size(doc) != 2 ||
		 json_integer_value(json_object_get(doc, "calibration")) != 1 ||
		 json_array_size(list) == 0 || json_array_size(list) > LIMITS_MAX)
		err_set(err, EXIT_CONFIG, rc,
			"%s: is no calibration with 1 to %d limits; make one with `sgw-bench "
			"calibrate --output`",
			path, LIMITS_MAX);
	else {
		json_array_foreach(list, i, o)
		{
			wrong = read_limit(o, &c->limits[i]);
			if (wrong != NULL)
				break;
			c->n++;
		}
		rc = wrong == NULL ? 0 :
				     err_set(err, EXIT_CONFIG, -EINVAL, "%s: limits[%zu]: %s", path,
					     i, wrong);
	}
	json_decref(doc);
	if (rc == 0)
		*out = c;
	else
		free(c);
	return rc;
}

void
calibration_free(struct calibration *c)
{
	free(c);
}

int
calibration_write(const struct result *r, const char *path, struct err *err)
{
	json_t *list = json_array(), *doc, *f;
	size_t i;
	int rc = 0;

	json_array_foreach(result_figures(r), i, f)
	{
		json_t *o = json_object();

		// What is void or was not found is no limit.
		if (json_number_value(json_object_get(f, "pps")) > 0 &&
		    !json_is_true(json_object_get(f, "inconclusive")))
			json_array_append(list, o);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			json_object_set(o, keys[k], json_object_get(f, keys[k]));
		json_decref(o);
	}
	doc = json_pack("{s:i, s:O}", "calibration", 1, "limits", list);
	if (json_array_size(list) == 0)
		rc = err_set(err, EXIT_MACHINE, -ENODATA, "%s: not written, no limit was found",
			     path);
	else if (json_dump_file(doc, path, JSON_INDENT(1)) != 0)
		rc = err_set(err, EXIT_MACHINE, -errno, "%s: can not be written (%s)", path,
			     strerror(errno));
	json_decref(doc);
	json_decref(list);
	return rc;
}

// ---------------------------------------------------------------- judging

// Packets a second at a frame length: between two that are known, on a line. @return 0: not known
static double
limit_pps(const struct calibration *c, const struct figure *f)
{
	const struct limit *below = NULL, *above = NULL;

	for (uint32_t i = 0; c != NULL && i < c->n; i++) {
		const struct limit *l = &c->limits[i];

		if (l->family != f->family || strcmp(l->algorithm, f->algorithm) != 0 ||
		    strcmp(l->direction, f->direction) != 0)
			continue;
		if (l->frame <= f->frame + 0.5 && (below == NULL || l->frame > below->frame))
			below = l;
		if (l->frame >= f->frame - 0.5 && (above == NULL || l->frame < above->frame))
			above = l;
	}
	if (below == NULL || above == NULL)
		return 0;
	if (above->frame - below->frame < 1)
		return fmin(below->pps, above->pps);
	// The time that a packet takes grows with its length; packets a second do not fall so.
	return 1 / (1 / below->pps + (1 / above->pps - 1 / below->pps) * (f->frame - below->frame) /
					     (above->frame - below->frame));
}

void
figure_judge(struct figure *f, const struct calibration *c, double link_mbps,
	     bool generator_limited)
{
	double limit = limit_pps(c, f);

	f->limit_mbps = limit * f->frame * 8 / 1e6;
	f->headroom = limit > 0 && f->pps > 0 ? limit / f->pps : 0;
	// A void trial or a load that all passes is no limit of the device.
	f->bound = f->pps > 0 && !f->by_load && !f->inconclusive ? BOUND_DEVICE : BOUND_NOTHING;
	if (f->ceiling_mbps > 0 && f->mbps >= WIRE_NEAR * f->ceiling_mbps)
		f->bound = BOUND_WIRE;
	if (f->ceiling_mbps > 0 && f->mbps > WIRE_OVER * f->ceiling_mbps) {
		f->bound = BOUND_NOTHING;
		snprintf(f->remark, sizeof(f->remark),
			 "more than a wire of %.0f Mb/s carries: a virtual cable; say more with "
			 "-l",
			 link_mbps);
	}
	if (generator_limited) {
		f->bound = BOUND_GENERATOR;
		f->inconclusive = true;
		if (f->remark[0] == '\0')
			snprintf(f->remark, sizeof(f->remark),
				 "inconclusive: limited by generator, the device may do more");
	}
	// What reaches the wire is limited by nothing else, and a load that all passes by nobody.
	if (limit > 0 && f->pps > NEAR * limit && f->bound != BOUND_WIRE && !f->by_load) {
		f->bound = BOUND_REFERENCE;
		f->inconclusive = true;
		snprintf(f->remark, sizeof(f->remark),
			 "inconclusive: limited by reference (%.0f of %.0f)", f->mbps,
			 f->limit_mbps);
	}
}
