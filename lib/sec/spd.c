/* SPDX-License-Identifier: BSD-3-Clause */
// From policies to rules of a classifier, one for each direction and family.
#include "spd.h"

#include "rules.h"

#include <rte_malloc.h>

#include <errno.h>

struct spd {
	bool needs_whole[2];        // by family: v4, v6
	struct rules *rules[2][2];  // [direction][family: v4, v6], NULL: no policy
	struct spd_entry entries[];
};

static uint32_t
count(const struct cfg_policy *policies, uint32_t n, enum cfg_dir dir, uint8_t family)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += policies[i].dir == dir && policies[i].src.first.family == family;
	return found;
}

static int
build(struct spd *spd, const struct cfg_policy *policies, uint32_t n, enum cfg_dir dir, uint8_t family)
{
	uint32_t n_rules = count(policies, n, dir, family);
	struct rules *r;

	if (n_rules == 0)
		return 0;
	r = rules_create(family, n_rules);
	if (r == NULL)
		return -ENOMEM;
	spd->rules[dir][family == 6] = r;
	for (uint32_t i = 0; i < n; i++)
		if (policies[i].dir == dir && policies[i].src.first.family == family)
			rules_add(r, &policies[i], i);
	return rules_build(r);
}

struct spd *
spd_create(const struct cfg_policy *policies, const struct tunnel *const *tunnels, uint32_t n,
	   struct err *err)
{
	struct spd *spd = rte_zmalloc("spd", sizeof(*spd) + n * sizeof(spd->entries[0]), 0);
	int rc = spd == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; spd != NULL && i < n; i++) {
		const struct cfg_policy *p = &policies[i];

		spd->entries[i] = (struct spd_entry){.action = p->action, .tunnel = tunnels[i], .index = i};
		spd->needs_whole[p->src.first.family == 6] |=
			p->sport[0] != 0 || p->sport[1] != UINT16_MAX || p->dport[0] != 0 ||
			p->dport[1] != UINT16_MAX || (p->src.first.family == 6 && !p->any_proto);
	}
	for (int dir = CFG_IN; rc == 0 && dir <= CFG_OUT; dir++) {
		rc = build(spd, policies, n, (enum cfg_dir)dir, 4);
		if (rc == 0)
			rc = build(spd, policies, n, (enum cfg_dir)dir, 6);
	}
	if (rc == 0)
		return spd;
	spd_free(spd);
	err_set(err, EXIT_RESOURCE, rc, "spd: no memory for %u policies; provide more hugepages, or with "
		"--no-huge give more with -m", n);
	return NULL;
}

void
spd_free(struct spd *spd)
{
	if (spd == NULL)
		return;
	for (int i = 0; i < 4; i++)
		rules_free(spd->rules[i / 2][i % 2]);
	rte_free(spd);
}

bool
spd_has(const struct spd *spd, enum cfg_dir dir, uint8_t family)
{
	return spd->rules[dir][family == 6] != NULL;
}

bool
spd_needs_whole(const struct spd *spd, uint8_t family)
{
	return spd->needs_whole[family == 6];
}

void
spd_match(const struct spd *spd, enum cfg_dir dir, uint8_t family,
	  const struct spd_key *const *keys, const struct spd_entry **out, uint32_t n)
{
	const struct rules *r = spd->rules[dir][family == 6];
	uint32_t found[SPD_BURST];

	if (r != NULL)
		rules_match(r, keys, found, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = r != NULL && found[i] != RULES_NONE ? &spd->entries[found[i]] : NULL;
}
