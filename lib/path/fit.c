/* SPDX-License-Identifier: BSD-3-Clause */
// Does a packet fit where it goes? If not it is cut, or its source is told.
#include "stage.h"

#include "frag.h"
#include "sa.h"
#include "spd.h"

#include <rte_ip.h>

#include <netinet/in.h>

#define IPV6_MTU_MIN 1280 // RFC 8200 section 5

// May it be cut on its way? IPv6 never (RFC 8200 section 5).
static bool
may_fragment(const struct rte_mbuf *m, uint8_t family)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);

	return family == 4 && !(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
}

// May sgw cut it here? IPv4 without DF; what sgw is the source of (RFC 8200 section
// 4.5); and what came in pieces that fit: as the source has cut it, so it goes on.
static bool
may_split(const struct rte_mbuf *m, const struct pkt *p, uint32_t mtu)
{
	if (may_fragment(m, p->family))
		return true;
	if (p->flags & PKT_JOINED)
		return p->largest_piece <= mtu;
	return p->family == 6 && (p->flags & (PKT_LOCAL | PKT_SEALED));
}

// What one of the two stages does with a packet.
enum fit { FIT_PASS, FIT_SPLIT, FIT_DROPPED };

static enum fit
refuse(struct worker *w, struct rte_mbuf *m, uint16_t mtu)
{
	icmp_too_big(w, m, mtu);
	drop(w, m, DROP_too_big);
	return FIT_DROPPED;
}

static enum fit
fit_tunnel(struct worker *w, struct rte_mbuf *m, uint32_t *mtu)
{
	const struct tunnel *t = pkt(m)->tunnel;

	if (t == NULL)
		return FIT_PASS;
	*mtu = pmtu_inner(w, t);
	if (pkt(m)->proto == IPPROTO_TCP && w->tables->mss_clamp && !(pkt(m)->flags & PKT_FRAGMENT))
		mss_clamp(m, (uint16_t)*mtu);
	if (likely(m->pkt_len <= *mtu))
		return FIT_PASS;
	// Nobody can be told to send less than 1280 bytes in IPv6: the tunnel has to carry
	// that, in outer fragments if it must (RFC 2473 section 7.1).
	if (pkt(m)->family == 6 && m->pkt_len <= IPV6_MTU_MIN)
		return FIT_PASS;
	if (!may_split(m, pkt(m), *mtu))
		return refuse(w, m, (uint16_t)*mtu);
	// Transport mode protects whole packets only: seal first, cut then.
	if (t->transport || (t->sa_out != NULL && t->sa_out->fragment_after))
		return FIT_PASS;
	return FIT_SPLIT;
}

static enum fit
fit_port(struct worker *w, struct rte_mbuf *m, uint32_t *mtu)
{
	const struct nexthop *nh = &w->tables->nexthops[pkt(m)->nexthop];

	if (unlikely(nh->kind != NEXTHOP_GATEWAY && nh->kind != NEXTHOP_ONLINK)) {
		drop(w, m, (enum drop_reason)route_refuse(w, m));
		return FIT_DROPPED;
	}
	*mtu = w->tables->ports[nh->port].mtu;
	if (likely(m->pkt_len <= *mtu))
		return FIT_PASS;
	if (may_split(m, pkt(m), *mtu))
		return FIT_SPLIT;
	if (pkt(m)->flags & PKT_SEALED) {
		drop(w, m, DROP_too_big_sealed); // with DF, and mtu_fit let it pass
		return FIT_DROPPED;
	}
	return refuse(w, m, (uint16_t)*mtu);
}

static inline uint16_t
fill(struct worker *w, struct rte_mbuf **pkts, uint16_t n, uint16_t *at, struct split *s,
     struct rte_mbuf **batch, enum fit (*judge)(struct worker *, struct rte_mbuf *, uint32_t *))
{
	uint16_t out = 0, i = *at;

	while (out < BURST && (s->whole != NULL || i < n)) {
		struct rte_mbuf *m;
		uint32_t mtu;

		if (unlikely(s->whole != NULL)) {
			m = split_next(w, s);
			if (m != NULL)
				batch[out++] = m;
			continue;
		}
		m = pkts[i++];
		switch (judge(w, m, &mtu)) {
		case FIT_PASS:
			batch[out++] = m;
			break;
		case FIT_SPLIT:
			split_begin(s, m, mtu);
			break;
		case FIT_DROPPED:
			break;
		}
	}
	*at = i;
	return out;
}

uint16_t
mtu_fit(struct worker *w, struct rte_mbuf **pkts, uint16_t n, uint16_t *at, struct split *s,
	struct rte_mbuf **batch)
{
	return fill(w, pkts, n, at, s, batch, fit_tunnel);
}

uint16_t
frag_fit(struct worker *w, struct rte_mbuf **pkts, uint16_t n, uint16_t *at, struct split *s,
	 struct rte_mbuf **batch)
{
	return fill(w, pkts, n, at, s, batch, fit_port);
}

// Is it for us? Only asked of fragments.
static bool
for_us(const struct worker *w, struct rte_mbuf *m)
{
	size_t off = pkt(m)->family == 4 ? offsetof(struct rte_ipv4_hdr, dst_addr) :
					   offsetof(struct rte_ipv6_hdr, dst_addr);

	return tables_is_own(w->tables, pkt(m)->family, rte_pktmbuf_mtod_offset(m, void *, off));
}

static struct rte_mbuf *
join_one(struct worker *w, struct rte_mbuf *m)
{
	m = reass_add(w, m);
	if (m != NULL)
		pkt(m)->slot = PKT_NO_SLOT; // it has pieces from several bursts
	return m;
}

uint16_t
frag_join(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t out = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		// Other fragments pass as they are: their addresses and protocol decide.
		if (unlikely(pkt(m)->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT)) &&
		    (spd_needs_whole(w->tables->spd, pkt(m)->family) || for_us(w, m)))
			m = join_one(w, m);
		if (m != NULL)
			pkts[out++] = m;
	}
	return out;
}
