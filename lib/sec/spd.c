/* SPDX-License-Identifier: BSD-3-Clause */
#include "spd.h"

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <stdlib.h>
#include <stddef.h>
#include <string.h>

#define FIELDS4 5  // proto, src, dst, sport, dport
#define FIELDS6 11 // proto, 4 × src, 4 × dst, sport, dport
#define RANGE_PREFIXES 254

RTE_ACL_RULE_DEF(rule, FIELDS6);

struct spd {
	uint32_t n;
	bool needs_whole[2]; // by family: v4, v6
	struct rte_acl_ctx *acl[2][2]; // [direction][family: v4, v6], NULL: no policy
	struct spd_entry entries[];
};

static unsigned int n_created; // names must differ in one process

static void
fill_defs(struct rte_acl_config *conf, bool v6)
{
	uint32_t n = 0, addr_words = v6 ? 8 : 2;
	size_t port_offset = offsetof(struct spd_key, sport_be);

	conf->num_categories = 1;
	conf->defs[n++] = (struct rte_acl_field_def){
		.type = RTE_ACL_FIELD_TYPE_BITMASK, .size = 1, .input_index = 0,
		.offset = offsetof(struct spd_key, proto),
	};
	for (uint32_t i = 0; i < addr_words; i++) {
		conf->defs[n] = (struct rte_acl_field_def){
			.type = RTE_ACL_FIELD_TYPE_MASK, .size = 4, .field_index = (uint8_t)n,
			.input_index = (uint8_t)n, .offset = offsetof(struct spd_key, addrs) + 4 * i,
		};
		n++;
	}
	// The two ports are one word of input.
	for (uint32_t i = 0; i < 2; i++) {
		conf->defs[n] = (struct rte_acl_field_def){
			.type = RTE_ACL_FIELD_TYPE_RANGE, .size = 2, .field_index = (uint8_t)n,
			.input_index = (uint8_t)(addr_words + 1), .offset = (uint32_t)(port_offset + 2 * i),
		};
		n++;
	}
	conf->num_fields = n;
}

// Prefix bits over the 32-bit words of an address. Rule values are in host order.
static void
fill_addr(struct rte_acl_field *f, const struct prefix *p)
{
	uint32_t words = p->addr.family == 4 ? 1 : 4;

	for (uint32_t i = 0; i < words; i++) {
		uint32_t be;
		int bits = (int)p->len - 32 * (int)i;

		memcpy(&be, p->addr.b + 4 * i, 4);
		f[i].value.u32 = rte_be_to_cpu_32(be);
		f[i].mask_range.u32 = (uint32_t)RTE_MAX(0, RTE_MIN(bits, 32));
	}
}

static int
add_rule(struct rte_acl_ctx *acl, const struct cfg_policy *p, const struct prefix *src,
	 const struct prefix *dst, uint32_t userdata)
{
	uint32_t words = src->addr.family == 4 ? 1 : 4;
	struct rule r;

	memset(&r, 0, sizeof(r));
	r.data.category_mask = 1;
	r.data.priority = RTE_ACL_MAX_PRIORITY - (int32_t)p->rank;
	r.data.userdata = userdata;
	r.field[0].value.u8 = p->any_proto ? 0 : p->proto;
	r.field[0].mask_range.u8 = p->any_proto ? 0 : 0xff;
	fill_addr(&r.field[1], src);
	fill_addr(&r.field[1 + words], dst);
	r.field[1 + 2 * words].value.u16 = p->sport[0];
	r.field[1 + 2 * words].mask_range.u16 = p->sport[1];
	r.field[2 + 2 * words].value.u16 = p->dport[0];
	r.field[2 + 2 * words].mask_range.u16 = p->dport[1];
	return rte_acl_add_rules(acl, (struct rte_acl_rule *)&r, 1);
}

static int
add_policy(struct rte_acl_ctx *acl, const struct cfg_policy *p, uint32_t userdata)
{
	struct prefix src[RANGE_PREFIXES], dst[RANGE_PREFIXES];
	int n_src = range_split(&p->src, src, RANGE_PREFIXES);
	int n_dst = range_split(&p->dst, dst, RANGE_PREFIXES);

	if (n_src < 0 || n_dst < 0)
		return -ENOSPC;
	for (int s = 0; s < n_src; s++)
		for (int d = 0; d < n_dst; d++) {
			int rc = add_rule(acl, p, &src[s], &dst[d], userdata);

			if (rc != 0)
				return rc;
		}
	return 0;
}

static uint32_t
count_rules(const struct cfg_policy *policies, uint32_t n, enum cfg_dir dir, uint8_t family)
{
	struct prefix tmp[RANGE_PREFIXES];
	uint32_t rules = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (policies[i].dir != dir || policies[i].src.first.family != family)
			continue;
		rules += (uint32_t)(range_split(&policies[i].src, tmp, RANGE_PREFIXES) *
				    range_split(&policies[i].dst, tmp, RANGE_PREFIXES));
	}
	return rules;
}

static int
build_acl(struct spd *spd, const struct cfg_policy *policies, uint32_t n, enum cfg_dir dir,
	  uint8_t family)
{
	uint32_t rules = count_rules(policies, n, dir, family);
	struct rte_acl_config conf;
	char name[RTE_ACL_NAMESIZE];
	struct rte_acl_param param = {
		.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(family == 4 ? FIELDS4 : FIELDS6),
		.max_rule_num = rules,
	};
	struct rte_acl_ctx *acl;
	int rc = 0;

	if (rules == 0)
		return 0;
	snprintf(name, sizeof(name), "spd%u_%d_%u", family, dir, n_created);
	acl = rte_acl_create(&param);
	if (acl == NULL)
		return -ENOMEM;
	spd->acl[dir][family == 6] = acl;
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		if (policies[i].dir == dir && policies[i].src.first.family == family)
			rc = add_policy(acl, &policies[i], i + 1);
	memset(&conf, 0, sizeof(conf));
	fill_defs(&conf, family == 6);
	return rc == 0 ? rte_acl_build(acl, &conf) : rc;
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
		rc = build_acl(spd, policies, n, (enum cfg_dir)dir, 4);
		if (rc == 0)
			rc = build_acl(spd, policies, n, (enum cfg_dir)dir, 6);
	}
	n_created++;
	if (rc == 0)
		return spd;
	spd_free(spd);
	err_set(err, EXIT_RESOURCE, rc, "spd: %u policies can not be built (%s); provide more hugepages, "
		"or with --no-huge give more with -m", n, rte_strerror(-rc));
	return NULL;
}

void
spd_free(struct spd *spd)
{
	if (spd == NULL)
		return;
	for (int i = 0; i < 4; i++)
		rte_acl_free(spd->acl[i / 2][i % 2]);
	rte_free(spd);
}

bool
spd_has(const struct spd *spd, enum cfg_dir dir, uint8_t family)
{
	return spd->acl[dir][family == 6] != NULL;
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
	const struct rte_acl_ctx *acl = spd->acl[dir][family == 6];
	uint32_t found[SPD_BURST];

	if (acl == NULL || rte_acl_classify(acl, (const uint8_t **)(uintptr_t)keys, found, n, 1) != 0) {
		memset(out, 0, n * sizeof(*out));
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = found[i] != 0 ? &spd->entries[found[i] - 1] : NULL;
}
