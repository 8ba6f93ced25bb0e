/* SPDX-License-Identifier: BSD-3-Clause */
// Which SAs have the two ends that a policy or tunnel names. Sorted, so that a file
// with thousands of both is checked in no time.
#include "check.h"

#include <stdlib.h>

static int
number_cmp(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int
pair_cmp(const struct ends *a, const struct ends *b)
{
	int rc = addr_cmp(&a->src, &b->src);

	if (rc == 0)
		rc = addr_cmp(&a->dst, &b->dst);
	return rc != 0 ? rc : number_cmp(a->transport, b->transport);
}

static int
ends_cmp(const void *left, const void *right)
{
	const struct ends *a = left, *b = right;
	int rc = pair_cmp(a, b);

	if (rc == 0)
		rc = number_cmp(a->reqid, b->reqid);
	return rc != 0 ? rc : number_cmp(a->sa, b->sa);
}

bool
ends_build(struct check *k)
{
	const struct config *c = k->c;

	k->ends = calloc(c->n_sas + 1, sizeof(*k->ends));
	if (k->ends == NULL)
		return false;
	for (uint32_t i = 0; i < c->n_sas; i++) {
		const struct cfg_sa *sa = &c->sas[i];

		k->ends[i] = (struct ends){sa->src, sa->dst, sa->transport, sa->inbound, sa->reqid, i};
	}
	qsort(k->ends, c->n_sas, sizeof(*k->ends), ends_cmp);
	return true;
}

// Index of the first one that is not before these.
static uint32_t
ends_place(const struct check *k, const struct ends *want)
{
	uint32_t low = 0, high = k->c->n_sas;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ends_cmp(&k->ends[middle], want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct ends *
ends_find(const struct check *k, const struct addr *src, const struct addr *dst, bool transport,
	  uint32_t reqid)
{
	const struct ends want = {.src = *src, .dst = *dst, .transport = transport, .reqid = reqid};
	uint32_t at = ends_place(k, &want);
	const struct ends *e = &k->ends[at];

	return at < k->c->n_sas && pair_cmp(e, &want) == 0 && e->reqid == reqid ? e : NULL;
}

struct ends_span
ends_pair(const struct check *k, const struct addr *src, const struct addr *dst, bool transport)
{
	struct ends want = {.src = *src, .dst = *dst, .transport = transport};
	uint32_t low = ends_place(k, &want), high;

	want.reqid = UINT32_MAX;
	want.sa = UINT32_MAX;
	high = ends_place(k, &want);
	return (struct ends_span){&k->ends[low], high - low};
}

// Those with a source that the policy selects; with one source only, and a destination.
static struct ends_span
ends_selected(const struct check *k, const struct cfg_policy *p)
{
	struct ends want = {.src = p->src.first};
	bool one = addr_cmp(&p->src.first, &p->src.last) == 0;
	uint32_t low, high;

	if (one)
		want.dst = p->dst.first;
	low = ends_place(k, &want);
	want = (struct ends){p->src.last, p->dst.last, true, true, UINT32_MAX, UINT32_MAX};
	if (!one)
		want.dst.family = UINT8_MAX; // behind every address
	high = ends_place(k, &want);
	return (struct ends_span){&k->ends[low], high - low};
}

static bool
selects(const struct cfg_policy *p, const struct ends *e)
{
	return (p->dir == CFG_IN) == e->inbound && range_contains(&p->src, &e->src) &&
	       range_contains(&p->dst, &e->dst);
}

static bool
usable(const struct cfg_policy *p, const struct ends *e)
{
	return e->transport && (p->reqid == 0 || p->reqid == e->reqid);
}

struct transport_use
ends_transport(const struct check *k, const struct cfg_policy *p)
{
	struct ends_span span = ends_selected(k, p);
	struct transport_use use = {.first = NULL};
	uint32_t first = UINT32_MAX, other = UINT32_MAX;

	for (const struct ends *e = span.first; e < span.first + span.n; e++) {
		if (!selects(p, e))
			continue;
		if (usable(p, e) && e->sa < first)
			first = e->sa;
		if (!e->transport)
			use.other_mode = &k->c->sas[e->sa];
		else
			use.other_reqid |= !usable(p, e);
	}
	if (first == UINT32_MAX)
		return use;
	use.first = &k->c->sas[first];
	for (const struct ends *e = span.first; e < span.first + span.n; e++)
		if (usable(p, e) && e->sa < other && selects(p, e) &&
		    (addr_cmp(&e->src, &use.first->src) != 0 || addr_cmp(&e->dst, &use.first->dst) != 0))
			other = e->sa;
	if (other != UINT32_MAX)
		use.other_ends = &k->c->sas[other];
	return use;
}

// Marks at the first SA of those that a policy is about.
enum mark {
	MARK_PAIR = 1,       // all of these ends and this mode
	MARK_PAIR_IPV6 = 2,  //
	MARK_REQID = 4,      // of these, all of this reqid
	MARK_REQID_IPV6 = 8, //
};

static void
mark_tunnel(struct check *k, const struct cfg_policy *p, uint8_t *marks)
{
	bool v6 = p->src.first.family == 6;
	struct ends_span span;
	const struct ends *e;

	if (p->reqid != 0) {
		e = ends_find(k, &p->tunnel_src, &p->tunnel_dst, false, p->reqid);
		if (e != NULL && e->inbound == (p->dir == CFG_IN))
			marks[e - k->ends] |= MARK_REQID | (v6 ? MARK_REQID_IPV6 : 0);
		return;
	}
	span = ends_pair(k, &p->tunnel_src, &p->tunnel_dst, false);
	if (span.n > 0 && span.first->inbound == (p->dir == CFG_IN))
		marks[span.first - k->ends] |= MARK_PAIR | (v6 ? MARK_PAIR_IPV6 : 0);
}

static void
mark_transport(struct check *k, const struct cfg_policy *p)
{
	struct ends_span span = ends_selected(k, p);

	for (const struct ends *e = span.first; e < span.first + span.n; e++)
		if (usable(p, e) && selects(p, e))
			k->sa_used[e->sa] = true;
}

// From the first SA to all that are like it.
static void
marks_spread(struct check *k, const uint8_t *marks)
{
	unsigned int now = 0;

	for (uint32_t i = 0; i < k->c->n_sas; i++) {
		const struct ends *e = &k->ends[i];

		if (i == 0 || pair_cmp(e - 1, e) != 0)
			now = 0;
		else if (e[-1].reqid != e->reqid)
			now &= MARK_PAIR | MARK_PAIR_IPV6;
		now |= marks[i];
		k->sa_used[e->sa] |= now != 0;
		k->sa_ipv6[e->sa] |= (now & (MARK_PAIR_IPV6 | MARK_REQID_IPV6)) != 0;
	}
}

void
ends_mark(struct check *k)
{
	const struct config *c = k->c;
	uint8_t *marks = calloc(c->n_sas + 1, 1);

	if (marks == NULL) {
		item_error(k->l, k->l->root, "sad", "out of memory");
		return;
	}
	for (uint32_t i = 0; i < c->n_policies; i++) {
		const struct cfg_policy *p = &c->policies[i];

		if (p->action == CFG_PROTECT && p->transport)
			mark_transport(k, p);
		else if (p->action == CFG_PROTECT && p->tunnel_src.family != 0)
			mark_tunnel(k, p, marks);
	}
	marks_spread(k, marks);
	free(marks);
}
