/* SPDX-License-Identifier: BSD-3-Clause */
// Policies: their outer addresses, their SAs, and how they lie on each other.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
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
	struct ends_span pair = ends_pair(k, &p->tunnel_src, &p->tunnel_dst, false);
	struct ends_span other = ends_pair(k, &p->tunnel_src, &p->tunnel_dst, true);
	const struct cfg_sa *other_mode = other.n > 0 ? &k->c->sas[other.first->sa] : NULL;

	if (p->reqid == 0 ? pair.n > 0 :
			    ends_find(k, &p->tunnel_src, &p->tunnel_dst, false, p->reqid) != NULL)
		return;
	if (k->l->unsure[SEC_SAD])
		return;
	addr_format(&p->tunnel_src, src);
	addr_format(&p->tunnel_dst, dst);
	if (pair.n > 0)
		item_error(k->l, item, "reqid",
			   "%u is on no SA from %s to %s; write it on one in sad:, or take it out "
			   "here",
			   p->reqid, src, dst);
	else if (other_mode != NULL)
		item_error(k->l, item, "tunnel",
			   "SA %s from %s to %s (line %u) is of mode: transport; write mode: "
			   "tunnel there, or mode: transport here instead of tunnel:",
			   other_mode->name, src, dst, other_mode->at.line);
	else
		item_error(k->l, item, "tunnel",
			   "there is no SA from %s to %s; add one to sad:, or the policy drops "
			   "everything",
			   src, dst);
}

// The same in transport mode: an SA whose own two ends the policy selects.
static void
policy_check_transport(struct check *k, uint32_t i, const struct transport_use *use)
{
	const struct cfg_policy *p = &k->c->policies[i];
	const struct node *item = policy_item(k, i);
	const char *dir = p->dir == CFG_IN ? "inbound" : "outbound";

	if (use->first != NULL)
		return;
	if (use->other_reqid)
		item_error(k->l, item, "reqid",
			   "%u is on no %s transport mode SA between src and dst; write it on one "
			   "in sad:, or take it out here",
			   p->reqid, dir);
	else if (use->other_mode != NULL)
		item_error(k->l, item, "mode",
			   "is transport, but SA %s (line %u) between src and dst is of mode: "
			   "tunnel; write the same on both",
			   use->other_mode->name, use->other_mode->at.line);
	else
		item_error(k->l, item, "mode",
			   "is transport, but there is no %s IPv%u SA of mode: transport whose own "
			   "src and dst lie inside these; add one to sad:, or the policy drops "
			   "everything",
			   dir, p->src.first.family);
}

// Of an SA or tunnel that a policy without reqid could mean.
struct claim {
	char text[CFG_NAME_MAX + 80]; // "SA x with reqid 7 (line 3)"
	bool found;
	uint32_t reqid;
};

// @return the claim is one with those before
static bool
claim_add(struct claim *first, struct claim *other, const char *kind, const char *name,
	  uint32_t reqid, uint32_t line)
{
	struct claim *c = first->found ? other : first;

	if (first->found && first->reqid == reqid)
		return true;
	if (reqid != 0)
		snprintf(c->text, sizeof(c->text), "%s %s with reqid %u (line %u)", kind, name,
			 reqid, line);
	else
		snprintf(c->text, sizeof(c->text), "%s %s without reqid (line %u)", kind, name,
			 line);
	c->reqid = reqid;
	c->found = true;
	return c == first;
}

static int
number_cmp(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

// The SAs between two ends, in both directions, of the least and of the greatest reqid:
// if these have the same, all have. @return how many, in the order of the file
static uint32_t
extremes(const struct check *k, const struct addr *src, const struct addr *dst, bool transport,
	 uint32_t out[4])
{
	uint32_t n = 0;

	for (int way = 0; way < 2; way++) {
		struct ends_span s = way == 0 ? ends_pair(k, src, dst, transport) :
						ends_pair(k, dst, src, transport);

		if (s.n == 0)
			continue;
		out[n++] = s.first->sa;
		out[n++] = s.first[s.n - 1].sa;
	}
	qsort(out, n, sizeof(*out), number_cmp);
	return n;
}

// A policy is about one pair of addresses and one reqid.
static void
policy_check_reqid(struct check *k, uint32_t i, const struct cfg_sa *ends)
{
	const struct cfg_policy *p = &k->c->policies[i];
	const struct addr *src = ends != NULL ? &ends->src : &p->tunnel_src;
	const struct addr *dst = ends != NULL ? &ends->dst : &p->tunnel_dst;
	const struct addr *local = p->dir == CFG_OUT ? src : dst;
	const struct addr *remote = p->dir == CFG_OUT ? dst : src;
	struct claim first = {.found = false}, other = {.found = false};
	uint32_t sas[4], n_sas;
	bool one = true;

	if (p->action != CFG_PROTECT || p->reqid != 0 || src->family == 0 ||
	    k->l->unsure[SEC_PORTS] || k->l->unsure[SEC_SAD] || k->l->unsure[SEC_TUNNELS])
		return;
	for (uint32_t j = 0; j < k->c->n_tunnels && one && !p->transport; j++) {
		const struct cfg_tunnel *t = &k->c->tunnels[j];

		if (addr_cmp(&t->local, local) == 0 && addr_cmp(&t->remote, remote) == 0)
			one = claim_add(&first, &other, "tunnel", t->name, t->reqid, t->at.line);
	}
	n_sas = extremes(k, src, dst, p->transport, sas);
	for (uint32_t j = 0; j < n_sas && one; j++) {
		const struct cfg_sa *sa = &k->c->sas[sas[j]];

		one = claim_add(&first, &other, "SA", sa->name, sa->reqid, sa->at.line);
	}
	if (!one)
		item_error(k->l, policy_item(k, i), NULL, "has no reqid, and %s and %s fit; %s",
			   first.text, other.text,
			   first.reqid != 0 && other.reqid != 0 ?
				   "add the reqid of one of them" :
				   "write one reqid on both, and here");
}

// In transport mode a policy has only one pair of ends.
static void
policy_check_ends(struct check *k, uint32_t i, const struct transport_use *use)
{
	const struct cfg_sa *first = use->first, *sa = use->other_ends;

	if (sa != NULL)
		item_error(k->l, policy_item(k, i), "mode",
			   "is transport, and both SA %s (line %u) and SA %s (line %u), which has "
			   "other ends, lie inside src and dst; write one policy for each pair of "
			   "ends",
			   first->name, first->at.line, sa->name, sa->at.line);
}

static void
policy_check_tunnel(struct check *k, uint32_t i)
{
	const struct cfg_policy *p = &k->c->policies[i];
	bool out = p->dir == CFG_OUT;
	const struct addr *ours = out ? &p->tunnel_src : &p->tunnel_dst;
	const struct addr *peer = out ? &p->tunnel_dst : &p->tunnel_src;
	char text[ADDR_STRLEN];

	if (p->tunnel_src.family == 0)
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

static void
policy_check(struct check *k, uint32_t i)
{
	const struct cfg_policy *p = &k->c->policies[i];
	struct transport_use use = {.first = NULL};

	if (p->action != CFG_PROTECT)
		return;
	if (p->transport) {
		use = ends_transport(k, p);
		if (!k->l->unsure[SEC_PORTS] && !k->l->unsure[SEC_SAD]) {
			policy_check_transport(k, i, &use);
			policy_check_ends(k, i, &use);
		}
	} else {
		policy_check_tunnel(k, i);
	}
	policy_check_reqid(k, i, use.first);
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
	if (k->ends == NULL)
		return;
	for (uint32_t i = 0; i < k->c->n_policies; i++)
		policy_check(k, i);
	// A policy in error stands for something else than was meant.
	if (k->l->unsure[SEC_SPD])
		return;
	if (k->c->n_policies > PAIRWISE_MAX) {
		item_warning(k->l, k->l->root, "spd",
			     "has %u policies (any counts for both families); with more than %u "
			     "it is not looked whether each can be reached, or ties with another; "
			     "try parts of them, or see to it yourself",
			     k->c->n_policies, PAIRWISE_MAX);
		return;
	}
	for (uint32_t i = 0; i < k->c->n_policies; i++)
		policy_check_order(k, i);
}
