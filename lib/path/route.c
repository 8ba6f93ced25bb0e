/* SPDX-License-Identifier: BSD-3-Clause */
// Where a packet goes.
#include "stage.h"

#include "compat.h"

#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_ip.h>

#include <string.h>

const struct nexthop *
route_find(const struct tables *t, uint8_t family, const void *addr)
{
	uint64_t found = 0;

	if (family == 4) {
		uint32_t be;

		memcpy(&be, addr, 4);
		be = rte_be_to_cpu_32(be);
		rte_fib_lookup_bulk(t->fib4, &be, &found, 1);
	} else {
		uint8_t a[1][16];

		memcpy(a, addr, 16);
		rte_fib6_lookup_bulk(t->fib6, FIB6_ADDRS(a), &found, 1);
	}
	return &t->nexthops[found];
}

bool
tables_is_own(const struct tables *t, uint8_t family, const void *addr)
{
	if (family == 6 && addr6_is_link_local(addr)) {
		for (uint32_t i = 0; i < t->n_ports; i++)
			if (memcmp(t->ports[i].link_local.b, addr, 16) == 0)
				return true;
		return false;
	}
	return route_find(t, family, addr)->kind == NEXTHOP_LOCAL;
}

// One bulk lookup a family: a packet at a time costs several times as much.
static void
lookup(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out, uint16_t n,
       size_t offset4, size_t offset6)
{
	uint32_t addrs4[BURST];
	uint8_t addrs6[BURST][16];
	uint64_t found[BURST];
	uint16_t at4[BURST], at6[BURST], n4 = 0, n6 = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (pkt(pkts[i])->family == 4) {
			uint32_t be;

			memcpy(&be, rte_pktmbuf_mtod_offset(pkts[i], void *, offset4), 4);
			addrs4[n4] = rte_be_to_cpu_32(be);
			at4[n4++] = i;
		} else {
			memcpy(addrs6[n6], rte_pktmbuf_mtod_offset(pkts[i], void *, offset6), 16);
			at6[n6++] = i;
		}
	}
	if (n4 > 0)
		rte_fib_lookup_bulk(t->fib4, addrs4, found, n4);
	for (uint16_t i = 0; i < n4; i++)
		out[at4[i]] = (uint16_t)found[i];
	if (n6 > 0)
		rte_fib6_lookup_bulk(t->fib6, FIB6_ADDRS(addrs6), found, n6);
	for (uint16_t i = 0; i < n6; i++)
		out[at6[i]] = (uint16_t)found[i];
}

void
route_destinations(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out, uint16_t n)
{
	lookup(t, pkts, out, n, offsetof(struct rte_ipv4_hdr, dst_addr),
	       offsetof(struct rte_ipv6_hdr, dst_addr));
}

void
route_sources(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out, uint16_t n)
{
	lookup(t, pkts, out, n, offsetof(struct rte_ipv4_hdr, src_addr),
	       offsetof(struct rte_ipv6_hdr, src_addr));
}

int
route_refuse(struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);

	switch ((enum nexthop_kind)w->tables->nexthops[p->nexthop].kind) {
	case NEXTHOP_DISCARD:
		return DROP_route_discard;
	case NEXTHOP_TUNNEL: // only a sealed packet gets here, policy_select took the others
	case NEXTHOP_LOCAL:
		return DROP_loop;
	case NEXTHOP_GATEWAY:
	case NEXTHOP_ONLINK:
	case NEXTHOP_NONE:
		break;
	}
	if (!(p->flags & PKT_SEALED))
		icmp_unreachable(w, m);
	return DROP_route_none;
}
