/* SPDX-License-Identifier: BSD-3-Clause */
#include "result.h"

#include "environ.h"
#include "meter.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *const bound_names[] = {"device", "wire", "generator", "reference", "nothing"};

struct result {
	json_t *doc;
	json_t *figures;
	json_t *trials; // of the figure to come
	json_t *cpu;    // times at the beginning
	const char *watts, *dut_cpu;
	double watts_idle, watts_loaded, dut_cpu_loaded; // NaN: not known
};

// JSON is UTF-8: what is typed in something else is there all the same.
static json_t *
text(const char *s)
{
	json_t *o = json_string(s);
	char *copy;

	if (o != NULL || (copy = strdup(s)) == NULL)
		return o;
	for (char *c = copy; *c != '\0'; c++)
		*c = (signed char)*c < 0 ? '?' : *c;
	o = json_string(copy);
	free(copy);
	return o;
}

struct result *
result_begin(int argc, char **argv)
{
	struct result *r = calloc(1, sizeof(*r));
	json_t *command = json_array();
	time_t now = time(NULL);
	char when[32];

	if (r == NULL)
		return NULL;
	r->watts_idle = r->watts_loaded = r->dut_cpu_loaded = NAN;
	for (int i = 0; i < argc; i++)
		json_array_append_new(command, text(argv[i]));
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	r->figures = json_array();
	r->trials = json_array();
	r->cpu = environ_cpu_times();
	r->doc = json_pack("{s:i, s:s, s:o, s:o, s:[], s:O}", "schema", 1, "when", when, "command",
			   command, "machine", environ_machine(), "ports", "figures", r->figures);
	return r;
}

void
result_free(struct result *r)
{
	if (r == NULL)
		return;
	json_decref(r->doc);
	json_decref(r->figures);
	json_decref(r->trials);
	json_decref(r->cpu);
	free(r);
}

void
result_port(struct result *r, const char *role, const char *name, const char *driver,
	    const char *mac, const char *link)
{
	json_array_append_new(json_object_get(r->doc, "ports"),
			      json_pack("{s:s, s:o, s:s, s:s, s:s}", "role", role, "name",
					text(name), "driver", driver, "mac", mac, "link", link));
}

int
result_watts(struct result *r, const char *source, struct err *err)
{
	r->watts = source;
	return source != NULL ? meter_check(source, "--watts", err) : 0;
}

int
result_dut_cpu(struct result *r, const char *source, struct err *err)
{
	r->dut_cpu = source;
	return source != NULL ? meter_check(source, "--dut-cpu", err) : 0;
}

void
result_watts_now(struct result *r, bool loaded)
{
	if (r->watts != NULL)
		*(loaded ? &r->watts_loaded : &r->watts_idle) = meter_read(r->watts);
}

void
result_dut_cpu_now(struct result *r)
{
	if (r->dut_cpu != NULL)
		r->dut_cpu_loaded = meter_read(r->dut_cpu);
}

// JSON has no NaN.
static json_t *
real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *
latency(const struct hist *h)
{
	if (h->n == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "p50", hist_quantile(h, 0.5) / 1e3, "p99",
			 hist_quantile(h, 0.99) / 1e3, "p999", hist_quantile(h, 0.999) / 1e3, "max",
			 (double)h->max / 1e3, "mean", h->sum / (double)h->n / 1e3);
}

static json_t *
stream(const struct stream_result *s)
{
	json_t *o = json_object();
	const struct {
		const char *key;
		uint64_t v;
	} counters[] = {
		{"sent", s->sent},           {"received", s->received},
		{"lost", s->lost},           {"duplicated", s->duplicated},
		{"reordered", s->reordered}, {"extent", s->extent},
		{"corrupted", s->corrupted}, {"foreign", s->foreign},
		{"esp_bad", s->esp_bad},     {"esp_replayed", s->esp_replayed},
		{"in_clear", s->in_clear},   {"missed", s->missed},
		{"refused", s->refused},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		json_object_set_new(o, counters[i].key, json_integer((json_int_t)counters[i].v));
	json_object_set_new(o, "tx_load", real(s->tx_load));
	json_object_set_new(o, "rx_load", real(s->rx_load));
	json_object_set_new(o, "latency_us", latency(&s->latency));
	return o;
}

void
result_trial(struct result *r, const struct point *p)
{
	const struct trial *t = p->trial;
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:s, s:[]}", "mode", p->mode,
			      "seconds", p->s, "load_mbps", p->load_mbps, "rate_mbps", p->rate_mbps,
			      "loss", p->loss, "void", trial_void_names[t->why], "remark",
			      t->remark, "streams");

	for (uint32_t i = 0; i < t->n_streams; i++)
		json_array_append_new(json_object_get(o, "streams"), stream(&t->streams[i]));
	json_array_append_new(r->trials, o);
}

uint32_t
result_next(const struct result *r)
{
	return (uint32_t)json_array_size(r->figures);
}

static json_t *
figure_json(const struct figure *f)
{
	json_t *o = json_object(), *values = json_array();
	const struct {
		const char *key, *v;
	} texts[] = {
		{"mode", f->mode},           {"name", f->name}, {"direction", f->direction},
		{"algorithm", f->algorithm}, {"size", f->size}, {"bound", bound_names[f->bound]},
		{"remark", f->remark},
	};
	const struct {
		const char *key;
		double v;
	} reals[] = {
		{"frame", f->frame},
		{"pps", f->pps},
		{"mbps", f->mbps},
		{"most_mbps", f->most_mbps},
		{"ceiling_mbps", f->ceiling_mbps},
		{"loss", f->loss},
		{"limit_mbps", f->limit_mbps},
		{"headroom", f->headroom},
		{"spread", f->spread},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_object_set_new(o, texts[i].key, text(texts[i].v));
	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
		json_object_set_new(o, reals[i].key, real(reals[i].v));
	json_object_set_new(o, "family", json_integer(f->family));
	json_object_set_new(o, "flows", json_integer(f->flows));
	json_object_set_new(o, "inconclusive", json_boolean(f->inconclusive));
	json_object_set_new(o, "void_trials", json_integer(f->n_void));
	for (uint32_t i = 0; i < f->repeats; i++)
		json_array_append_new(values, real(f->values[i]));
	json_object_set_new(o, "values", values);
	json_object_set_new(o, "latency_us",
			    f->latency[0] == 0 ?
				    json_null() :
				    json_pack("{s:f, s:f, s:f, s:f}", "p50", f->latency[0], "p99",
					      f->latency[1], "p999", f->latency[2], "max",
					      f->latency[3]));
	return o;
}

uint32_t
result_figure(struct result *r, const struct figure *f)
{
	json_t *o = figure_json(f);

	json_object_set_new(o, "trials", r->trials);
	r->trials = json_array();
	json_array_append_new(r->figures, o);
	return result_next(r) - 1;
}

// Watts, J a bit of the fastest figure, CPU.
static void
add_meters(const struct result *r)
{
	json_t *after = environ_cpu_times();
	double most = 0;
	size_t i;
	json_t *f;

	json_array_foreach(r->figures, i, f) most =
		fmax(most, json_number_value(json_object_get(f, "mbps")));
	json_object_set_new(r->doc, "watts",
			    json_pack("{s:o, s:o, s:o}", "idle", real(r->watts_idle), "loaded",
				      real(r->watts_loaded), "nj_per_bit",
				      most > 0 ? real(r->watts_loaded / most * 1e3) : json_null()));
	json_object_set_new(r->doc, "dut_cpu", real(r->dut_cpu_loaded));
	json_object_set_new(r->doc, "cpu_load", environ_cpu_load(r->cpu, after));
	json_decref(after);
}

int
result_write(const struct result *r, const char *path, struct err *err)
{
	const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(10);
	char temporary[4096];
	struct stat s;

	add_meters(r);
	// A device or a pipe is written to, not replaced by a file.
	if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) {
		if (json_dump_file(r->doc, path, flags) == 0)
			return 0;
		return err_set(err, EXIT_MACHINE, -errno, "%s: can not be written (%s)", path,
			       strerror(errno));
	}
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >=
		    sizeof(temporary) ||
	    json_dump_file(r->doc, temporary, flags) != 0 || rename(temporary, path) != 0) {
		unlink(temporary);
		return err_set(err, EXIT_MACHINE, -errno,
			       "%s: can not be written (%s); is there such a folder?", path,
			       strerror(errno));
	}
	return 0;
}

// ---------------------------------------------------------------- the table

static const char *
text_of(const json_t *f, const char *key)
{
	const char *s = json_string_value(json_object_get(f, key));

	return s != NULL ? s : "";
}

static double
real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void
print_figure(const json_t *f, FILE *out)
{
	const json_t *l = json_object_get(f, "latency_us");
	double ceiling = real_of(f, "ceiling_mbps"), headroom = real_of(f, "headroom");
	char what[64], ratio[16] = "-", room[16] = "-", delay[24] = "-";

	snprintf(what, sizeof(what), "%s %s v%d", text_of(f, "mode"), text_of(f, "direction"),
		 (int)json_integer_value(json_object_get(f, "family")));
	if (ceiling > 0)
		snprintf(ratio, sizeof(ratio), "%.1f", 100 * real_of(f, "mbps") / ceiling);
	if (headroom > 0)
		snprintf(room, sizeof(room), "%.2f", headroom);
	if (json_is_object(l))
		snprintf(delay, sizeof(delay), "%.0f/%.0f", real_of(l, "p50"), real_of(l, "p99"));
	fprintf(out, "%-24s %-11.11s %8.1f %8.1f %6s %-9s %11s %5s\n", what, text_of(f, "size"),
		real_of(f, "mbps"), real_of(f, "pps") / 1e3, ratio, text_of(f, "bound"), delay,
		room);
	if (text_of(f, "algorithm")[0] != '\0' || text_of(f, "name")[0] != '\0')
		fprintf(out, "    %s%s%s", text_of(f, "name"),
			text_of(f, "name")[0] != '\0' ? ": " : "", text_of(f, "algorithm"));
	if (json_array_size(json_object_get(f, "values")) > 1)
		fprintf(out, ", median of %zu, spread %.1f %%",
			json_array_size(json_object_get(f, "values")), 100 * real_of(f, "spread"));
	fprintf(out, "\n");
	if (text_of(f, "remark")[0] != '\0')
		fprintf(out, "    %s\n", text_of(f, "remark"));
}

void
result_print(const struct result *r, FILE *out)
{
	size_t i;
	json_t *f;

	if (json_array_size(r->figures) == 0)
		return;
	fprintf(out, "\n%-24s %-11s %8s %8s %6s %-9s %11s %5s\n", "", "frame", "Mb/s", "kpps",
		"% of", "bound by", "latency us", "head-");
	fprintf(out, "%-24s %-11s %8s %8s %6s %-9s %11s %5s\n", "", "with FCS", "w/o FCS", "",
		"wire", "", "p50/p99", "room");
	json_array_foreach(r->figures, i, f) print_figure(f, out);
	fflush(out);
}

json_t *
result_figures(const struct result *r)
{
	return r->figures;
}
