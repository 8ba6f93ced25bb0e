/* SPDX-License-Identifier: BSD-3-Clause */
// Which packets may pass, and how: RFC 4301 sections 5.1 (outbound) and 5.2
// (inbound). The SPD decides first; where it says nothing, a route into a tunnel
// protects; what is left does not pass. docs/architecture.md has the table.
#include "stage.h"

#include "flow.h"
#include "policy.h"
#include "sa.h"
#include "spd.h"

#include <rte_ip.h>

#include <string.h>

_Static_assert(BURST <= SPD_BURST, "one SPD lookup a burst");

static void
key_fill(struct spd_key *key, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	size_t size = p->family == 4 ? 8 : 32; // both addresses, which stand side by side
	size_t off = p->family == 4 ? offsetof(struct rte_ipv4_hdr, src_addr) :
				      offsetof(struct rte_ipv6_hdr, src_addr);

	key->proto = p->proto;
	memcpy(key->addrs, rte_pktmbuf_mtod_offset(m, void *, off), size);
	key->sport_be = rte_cpu_to_be_16(p->sport);
	key->dport_be = rte_cpu_to_be_16(p->dport);
}

// What the SPD says of each packet of a burst, NULL: nothing.
static void
match(const struct tables *t, enum cfg_dir dir, struct rte_mbuf *const *pkts, uint16_t n,
      const struct spd_entry **out)
{
	struct spd_key keys[BURST];
	const struct spd_key *of[2][BURST];
	const struct spd_entry *found[BURST];
	uint16_t at[2][BURST], count[2] = {0, 0};

	for (uint16_t i = 0; i < n; i++) {
		unsigned int f = pkt(pkts[i])->family == 6;

		out[i] = NULL;
		if (!spd_has(t->spd, dir, f ? 6 : 4))
			continue;
		key_fill(&keys[i], pkts[i]);
		of[f][count[f]] = &keys[i];
		at[f][count[f]++] = i;
	}
	for (unsigned int f = 0; f < 2; f++) {
		if (count[f] == 0)
			continue;
		spd_match(t->spd, dir, f ? 6 : 4, of[f], found, count[f]);
		for (uint16_t i = 0; i < count[f]; i++)
			out[at[f][i]] = found[i];
	}
}

// ---------------------------------------------------------------- inbound

// RFC 4301 section 5.2 step 4. For a route-based tunnel the selectors are the
// routes into it: who sends through it must be somebody who is reached through it.
static int
verify(const struct tables *t, struct rte_mbuf *m, const struct spd_entry *e)
{
	const struct tunnel *tunnel = pkt(m)->sa->tunnel;
	const struct nexthop *source = &t->nexthops[pkt(m)->source];

	if (e != NULL) {
		if (e->action == CFG_PROTECT && e->tunnel == tunnel)
			return -1;
		return e->action == CFG_DISCARD ? DROP_policy_discard : DROP_policy_selector;
	}
	if (tunnel->interface && source->kind == NEXTHOP_TUNNEL && source->tunnel == tunnel)
		return -1;
	return DROP_policy_selector;
}

uint16_t
policy_verify(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct spd_entry *entries[BURST];
	uint16_t good = 0;

	if (n == 0)
		return 0;
	match(w->tables, CFG_IN, pkts, n, entries);
	for (uint16_t i = 0; i < n; i++) {
		int why = verify(w->tables, pkts[i], entries[i]);

		if (unlikely(why >= 0)) {
			drop(w, pkts[i], (enum drop_reason)why);
			continue;
		}
		pkt(pkts[i])->sa = NULL; // from here on it is an IP packet like others
		pkts[good++] = pkts[i];
	}
	return good;
}

// Neighbour discovery on the link is older than any policy (RFC 4301 section 4.4.1
// wants it spelled out): to group, link-local and own addresses it goes free.
static bool
is_nd_exempt(const struct tables *t, struct rte_mbuf *m)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, const void *);
	const uint8_t *dst = (const uint8_t *)&ip->dst_addr;

	return (pkt(m)->flags & PKT_ND) && ip->hop_limits == 255 &&
	       (dst[0] == 0xff || addr6_is_link_local(dst) || tables_is_own(t, 6, dst));
}

// @return a reason to drop, or -1
static int
judge_clear(const struct tables *t, struct rte_mbuf *m, const struct spd_entry *e)
{
	struct pkt *p = pkt(m);

	// A too big about our own ESP comes from any router on the way, in clear; it is
	// never answered and goes no further (RFC 4301 section 8.2).
	if (is_nd_exempt(t, m) || pmtu_is_notice(t, m))
		return -1;
	if (e != NULL && e->action == CFG_BYPASS) {
		p->flags |= PKT_BYPASS;
		return -1;
	}
	if (e != NULL)
		return e->action == CFG_PROTECT ? DROP_policy_clear : DROP_policy_discard;
	// Its source lives behind a tunnel: a forgery, which must neither be answered
	// through that tunnel nor get the blessing of another one.
	if (t->nexthops[p->source].kind == NEXTHOP_TUNNEL &&
	    !(p->family == 6 && addr6_is_link_local(rte_pktmbuf_mtod_offset(
					m, void *, offsetof(struct rte_ipv6_hdr, src_addr)))))
		return DROP_policy_clear;
	return -1;
}

uint16_t
policy_clear(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct spd_entry *entries[BURST];
	uint16_t good = 0;

	match(w->tables, CFG_IN, pkts, n, entries);
	for (uint16_t i = 0; i < n; i++) {
		int why = judge_clear(w->tables, pkts[i], entries[i]);

		if (unlikely(why >= 0))
			drop(w, pkts[i], (enum drop_reason)why);
		else
			pkts[good++] = pkts[i];
	}
	return good;
}

// ---------------------------------------------------------------- outbound

// What is to become of a packet; flags as in struct pkt.
// @return a reason to drop, or -1 with *tunnel set: seal for this one, NULL: clear
static int
decide(const struct spd_entry *e, const struct nexthop *nh, uint16_t flags,
       const struct tunnel **tunnel)
{
	*tunnel = NULL;
	if (e != NULL && e->action == CFG_PROTECT) {
		*tunnel = e->tunnel;
		return -1;
	}
	if (e != NULL && e->action == CFG_DISCARD)
		return DROP_policy_discard;
	if (nh->kind == NEXTHOP_TUNNEL) {
		*tunnel = nh->tunnel;
		return -1;
	}
	// In clear. Never an answer to what came protected: it quotes it, whatever policy
	// lets the way back pass.
	if ((flags & PKT_LOCAL) && (flags & PKT_SECURED))
		return DROP_policy_none;
	// Allowed by a policy; or it came protected, was verified, and goes on inside; or
	// it is our own answer to somebody who asked in clear.
	if ((e != NULL && e->action == CFG_BYPASS) || (flags & PKT_BYPASS))
		return -1;
	return flags & (PKT_LOCAL | PKT_SECURED) ? -1 : DROP_policy_none;
}

// The next hop of what has none yet. A link-local destination is on the link that
// the packet, or what provoked it, came from.
static void
find_nexthops(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct tables *t = w->tables;
	uint16_t found[BURST];

	route_destinations(t, pkts, found, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		pkt(m)->nexthop = found[i];
		if (pkt(m)->family == 6 && addr6_is_link_local(rte_pktmbuf_mtod_offset(
						   m, void *, offsetof(struct rte_ipv6_hdr, dst_addr))))
			pkt(m)->nexthop = (uint16_t)(t->link_local_nexthop + m->port);
	}
}

uint16_t
policy_select(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct tables *t = w->tables;
	const struct spd_entry *entries[BURST];
	uint16_t good = 0;

	match(t, CFG_OUT, pkts, n, entries);
	find_nexthops(w, pkts, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt *p = pkt(m);
		int why = decide(entries[i], &t->nexthops[p->nexthop], p->flags, &p->tunnel);

		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		flow_learn(w, m);
		pkts[good++] = m;
	}
	return good;
}

bool
policy_allows_out(const struct worker *w, uint8_t family, const void *src, const void *dst,
		  uint8_t proto, bool secured)
{
	size_t size = addr_size(family);
	struct spd_key key = {.proto = proto};
	const struct spd_key *keys[1] = {&key};
	const struct spd_entry *e = NULL;
	const struct tunnel *tunnel;
	const struct nexthop *nh;

	memcpy(key.addrs, src, size);
	memcpy(key.addrs + size, dst, size);
	if (spd_has(w->tables->spd, CFG_OUT, family))
		spd_match(w->tables->spd, CFG_OUT, family, keys, &e, 1);
	nh = route_find(w->tables, family, dst);
	return decide(e, nh, PKT_LOCAL | (secured ? PKT_SECURED : 0), &tunnel) < 0;
}
