/* SPDX-License-Identifier: BSD-3-Clause */
// Policies: their outer addresses, their SAs, and how they lie on each other.
#include "check.h"

#include <string.h>

#define PAIRWISE_MAX 2000 // policies; beyond, comparing each with each takes too long

static const struct node *
policy_item(const struct check *k, uint32_t i)
{
	return k->l->items[SEC_SPD][i];
}

// A protect policy must have an SA, or it drops everything.
static void
policy_check_sa(struct check *k, uint32_t i)
{
	const struct cfg_policy *p = &k->c->policies[i];
	const struct node *item = policy_item(k, i);
	char src[ADDR_STRLEN], dst[ADDR_STRLEN];
	bool pair = false;

	for (uint32_t j = 0; j < k->c->n_sas; j++) {
		const struct cfg_sa *sa = &k->c->sas[j];

		if (addr_cmp(&sa->src, &p->tunnel_src) != 0 ||
		    addr_cmp(&sa->dst, &p->tunnel_dst) != 0)
			continue;
		if (p->reqid == 0 || p->reqid == sa->reqid)
			return;
		pair = true;
	}
	if (k->l->unsure[SEC_SAD])
		return;
	addr_format(&p->tunnel_src, src);
	addr_format(&p->tunnel_dst, dst);
	if (pair)
		item_error(k->l, item, "reqid",
			   "%u is on no SA from %s to %s; write it on one in sad:, or take it out "
			   "here",
			   p->reqid, src, dst);
	else
		item_error(k->l, item, "tunnel",
			   "there is no SA from %s to %s; add one to sad:, or the policy drops "
			   "everything",
			   src, dst);
}

static void
policy_check_tunnel(struct check *k, uint32_t i)
{
	const struct cfg_policy *p = &k->c->policies[i];
	bool out = p->dir == CFG_OUT;
	const struct addr *ours = out ? &p->tunnel_src : &p->tunnel_dst;
	const struct addr *peer = out ? &p->tunnel_dst : &p->tunnel_src;
	char text[ADDR_STRLEN];

	if (p->action != CFG_PROTECT || p->tunnel_src.family == 0)
		return;
	if (!own_is_port(k, ours)) {
		if (k->l->unsure[SEC_PORTS])
			return;
		item_error(k->l, policy_item(k, i), "tunnel",
			   own_is_port(k, peer) ? "has its addresses the wrong way round; with "
						  "dir: %s, the %s is ours" :
						  "has no address of ours; with dir: %s, the %s "
						  "is an address of a port",
			   out ? "out" : "in", out ? "first" : "second");
		return;
	}
	if (own_find(k, peer) != NULL) {
		item_error(k->l, policy_item(k, i), "tunnel",
			   "%s is our own address too; write the peer's", addr_format(peer, text));
		return;
	}
	policy_check_sa(k, i);
}

static bool
ports_overlap(const uint16_t a[2], const uint16_t b[2])
{
	return a[0] <= b[1] && b[0] <= a[1];
}

// Can one packet match both?
static bool
policies_overlap(const struct cfg_policy *a, const struct cfg_policy *b)
{
	return a->dir == b->dir && range_overlaps(&a->src, &b->src) &&
	       range_overlaps(&a->dst, &b->dst) &&
	       (a->any_proto || b->any_proto || a->proto == b->proto) &&
	       ports_overlap(a->sport, b->sport) && ports_overlap(a->dport, b->dport);
}

// Does every packet of b match a?
static bool
policy_covers(const struct cfg_policy *a, const struct cfg_policy *b)
{
	return a->dir == b->dir && range_contains(&a->src, &b->src.first) &&
	       range_contains(&a->src, &b->src.last) && range_contains(&a->dst, &b->dst.first) &&
	       range_contains(&a->dst, &b->dst.last) &&
	       (a->any_proto || (!b->any_proto && a->proto == b->proto)) &&
	       a->sport[0] <= b->sport[0] && b->sport[1] <= a->sport[1] &&
	       a->dport[0] <= b->dport[0] && b->dport[1] <= a->dport[1];
}

static bool
same_effect(const struct cfg_policy *a, const struct cfg_policy *b)
{
	return a->action == b->action &&
	       (a->action != CFG_PROTECT ||
		(addr_cmp(&a->tunnel_src, &b->tunnel_src) == 0 &&
		 addr_cmp(&a->tunnel_dst, &b->tunnel_dst) == 0 && a->reqid == b->reqid));
}

// Policies stand in search order here: j before i.
static void
policy_check_order(struct check *k, uint32_t i)
{
	const struct cfg_policy *b = &k->c->policies[i];
	const struct cfg_policy *tie = NULL;

	for (uint32_t j = 0; j < i; j++) {
		const struct cfg_policy *a = &k->c->policies[j];

		if (policy_covers(a, b)) {
			item_warning(k->l, policy_item(k, i), NULL,
				     "is never reached, the policy on line %u matches all of it "
				     "first; take it out, or give it a lower priority",
				     a->at.line);
			return;
		}
		if (tie == NULL && a->priority == b->priority && !same_effect(a, b) &&
		    policies_overlap(a, b))
			tie = a;
	}
	if (tie != NULL)
		item_warning(k->l, policy_item(k, i), NULL,
			     "overlaps the policy on line %u at the same priority %u, and the "
			     "order in the file decides; give them different priorities",
			     tie->at.line, b->priority);
}

void
check_policies(struct check *k)
{
	for (uint32_t i = 0; i < k->c->n_policies; i++)
		policy_check_tunnel(k, i);
	// A policy in error stands for something else than was meant.
	if (k->l->unsure[SEC_SPD] || k->c->n_policies > PAIRWISE_MAX)
		return;
	for (uint32_t i = 0; i < k->c->n_policies; i++)
		policy_check_order(k, i);
}
