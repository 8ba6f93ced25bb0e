/* SPDX-License-Identifier: BSD-3-Clause */
// The memory of flows is filled by policy_select.
#include "flow_memory.h"

#include <rte_malloc.h>
#include <rte_random.h>

struct flows *
flow_create(void)
{
	struct flows *f = rte_zmalloc("flows", sizeof(*f), RTE_CACHE_LINE_SIZE);

	if (f != NULL)
		f->seed = rte_rand();
	return f;
}

void
flow_free(struct flows *f)
{
	rte_free(f);
}

void
flow_learn(struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	uint8_t kind = w->tables->nexthops[p->nexthop].kind;
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	struct flow_way way = {.tunnel = p->tunnel, .nexthop = p->nexthop,
			       .flags = p->flags & (PKT_BYPASS | PKT_SECURED)};
	struct flows *f = flows_now(w);
	struct flow_key k;

	if (!is_plain(p) || (p->tunnel == NULL && kind != NEXTHOP_GATEWAY && kind != NEXTHOP_ONLINK))
		return;
	// Some flow has to go when a set is full, whichever: with an order of age those that
	// come in turn would all push each other out.
	f->seed_way = f->seed_way * 69069 + 1;
	if (p->family == 4) {
		key4(&k, ip, p->from);
		struct flow4 *set = f->v4[hash4(f, &k) % FLOW_SETS4];
		unsigned int i = 0;

		while (i < WAYS4 && set[i].rest != 0 &&
		       !(set[i].addrs == k.addrs[0] && set[i].rest == k.rest))
			i++;
		if (i == WAYS4)
			i = f->seed_way >> 24 & (WAYS4 - 1);
		set[i] = (struct flow4){.addrs = k.addrs[0], .rest = k.rest, .way = way};
	} else {
		key6(&k, ip, p->from);
		struct flow6 *set = f->v6[hash6(f, &k) % FLOW_SETS6];
		unsigned int i = 0;

		while (i < WAYS6 && set[i].rest != 0 &&
		       !(set[i].rest == k.rest && memcmp(set[i].addrs, k.addrs, sizeof(k.addrs)) == 0))
			i++;
		if (i == WAYS6)
			i = f->seed_way >> 24 & (WAYS6 - 1);
		memcpy(set[i].addrs, k.addrs, sizeof(k.addrs));
		set[i].rest = k.rest;
		set[i].way = way;
	}
}
