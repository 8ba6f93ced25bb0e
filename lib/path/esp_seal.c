/* SPDX-License-Identifier: BSD-3-Clause */
// From a packet to the ESP packet around it: RFC 4303 section 3.3.
#include "esp.h"

#include "cksum.h"

#include <rte_ip.h>
#include <rte_ipsec.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

_Static_assert(PKT_IV_OFFSET <= UINT8_MAX, "librte_ipsec keeps the IV offset in 8 bits (trap 32)");

// Transport mode protects what goes from one end of the SA to the other, whole
// packets only (RFC 4303 section 3.3.4). @return a reason to drop, or -1
static int
seal_transport(struct rte_mbuf *m, const struct sa *sa)
{
	const struct pkt *p = pkt(m);
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	size_t at = sa->family == 4 ? 12 : 8, size = addr_size(sa->family);

	if (p->family != sa->family || (p->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT)) ||
	    p->l4_off > L3_LEN_MAX || memcmp(ip + at, sa->src.b, size) != 0 ||
	    memcmp(ip + at + size, sa->dst.b, size) != 0)
		return DROP_policy_selector;
	return -1;
}

// Traffic flow confidentiality: the length on the wire tells less (RFC 4303 section
// 2.7). The inner IP header says where the packet really ends.
static void
seal_tfc(struct rte_mbuf *m, const struct sa *sa)
{
	uint16_t want = RTE_MIN(sa->tfc_pad_to, sa->tunnel->mtu), n;
	char *pad;

	if (want <= m->pkt_len || sa->transport)
		return;
	n = (uint16_t)(want - m->pkt_len);
	if (rte_pktmbuf_tailroom(m) < n + 70u)
		return;
	pad = rte_pktmbuf_append(m, n);
	if (pad != NULL)
		memset(pad, 0, n);
}

// Which SA seals it. @return a reason to drop, or -1
static int
seal_bind(struct rte_mbuf *m)
{
	struct pkt *p = pkt(m);

	if (unlikely(p->tunnel->sa_out == NULL))
		return DROP_sa_missing;
	p->sa = p->tunnel->sa_out;
	if (p->sa->transport) {
		int why = seal_transport(m, p->sa);

		if (why >= 0)
			return why;
	}
	p->inner_bytes = (uint16_t)m->pkt_len;
	if (unlikely(!sa_lifetime_take(p->sa, p->inner_bytes)))
		return DROP_sa_lifetime;
	if (unlikely(p->sa->tfc_pad_to > m->pkt_len))
		seal_tfc(m, p->sa);
	// prepare() takes a sequence number before it finds that there is no room (trap 12).
	if (unlikely(rte_pktmbuf_headroom(m) < p->sa->hdr_len + 8u + p->sa->iv_len + 8u ||
		     rte_pktmbuf_tailroom(m) < 16u + 2 + p->sa->icv_len + 4 + 16))
		return DROP_no_headroom;
	m->l2_len = 0;
	m->l3_len = p->sa->transport ? p->l4_off & L3_LEN_MAX : 0;
	return -1;
}

// The outer header takes DF and the traffic class of the inner one: RFC 4301
// section 8.1 (DF), 5.1.2 (DSCP), RFC 6040 section 4.1 (ECN, normal mode).
static void
seal_outer(const struct worker *w, struct rte_mbuf *m, const struct sa *sa)
{
	const uint8_t *inner = rte_pktmbuf_mtod_offset(m, uint8_t *, sa->hdr_len + 8u + sa->iv_len);
	uint8_t *outer = rte_pktmbuf_mtod(m, uint8_t *);
	bool inner4 = pkt(m)->family == 4;
	uint8_t tos = inner4 ? inner[1] : (uint8_t)(inner[0] << 4 | inner[1] >> 4);
	uint8_t df = inner4 ? inner[6] & 0x40 : 0x40;

	if (pkt(m)->family == FAMILY_DUMMY)
		tos = df = 0; // there is nothing inside
	if (sa->dscp != CFG_DSCP_COPY)
		tos = (uint8_t)(sa->dscp << 2 | (tos & ECN_MASK));
	if (sa->family == 6) {
		outer[0] = (uint8_t)(0x60 | tos >> 4);
		outer[1] = (uint8_t)(tos << 4);
		return;
	}
	outer[1] = tos;
	// Inside IPv6 nothing is ever fragmented on the way, so neither outside. What does
	// not fit the tunnel and was let through all the same is to be cut after sealing.
	if (sa->df == CFG_DF_SET)
		outer[6] = 0x40;
	else if (sa->df == CFG_DF_CLEAR || pkt(m)->inner_bytes > pmtu_inner(w, sa->tunnel))
		outer[6] = 0;
	else
		outer[6] = df;
	cksum_ip4_set(outer, sizeof(struct rte_ipv4_hdr)); // trap 8
}

// Between prepare() and the crypto: next header (trap 3) and IV (traps 4, 5, 29).
static void
seal_fix(const struct worker *w, struct rte_mbuf *m, const struct sa *sa)
{
	struct pkt *p = pkt(m);
	uint8_t *digest = sa->aead ? p->sym.aead.digest.data : p->sym.auth.digest.data;
	uint32_t in_front = sa->transport ? p->l4_off : sa->hdr_len;
	uint8_t *iv = rte_pktmbuf_mtod_offset(m, uint8_t *, in_front + 8u);
	uint64_t v;

	if (!sa->transport) // trap 31
		digest[-1 - sa->sqh_len] = p->family == 4 ? IPPROTO_IPIP :
					   p->family == 6 ? IPPROTO_IPV6 :
							    NEXT_DUMMY;
	switch ((enum sa_iv)sa->iv_kind) {
	case SA_IV_XOR:
		memcpy(&v, iv, 8);
		v ^= sa->iv[0];
		memcpy(iv, &v, 8);
		memcpy(p->iv + 4, &v, 8); // behind the salt (trap 33)
		break;
	case SA_IV_CBC:
		memcpy(p->iv, sa->iv, 16);
		break;
	case SA_IV_NONE:
		break;
	}
	if (!sa->transport)
		seal_outer(w, m, sa);
	else if (sa->family == 4)
		cksum_ip4_set(rte_pktmbuf_mtod(m, void *), p->l4_off);
}

static void
seal_begin(struct worker *w, struct group *g, struct flight *f)
{
	uint16_t may = sa_sequence_take(g->sa, g->n);

	if (unlikely(may < g->n)) {
		bool end = atomic_load_explicit(&g->sa->limit, memory_order_relaxed) == g->sa->end;

		group_drop(w, g, may, end ? DROP_sa_sequence_end : DROP_sa_sequence_reserve);
	}
	if (g->n == 0 || !group_prepare(w, g))
		return;
	for (uint16_t i = 0; i < g->n; i++)
		seal_fix(w, g->pkts[i], g->sa);
	group_submit(w, f, g);
}

// RFC 3948 section 2.1: zero over IPv4; over IPv6 there must be one (RFC 8200 8.1).
static void
seal_udp6(struct rte_mbuf *m, const struct sa *sa)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t off = sa->transport ? pkt(m)->l4_off : (uint32_t)sizeof(struct rte_ipv6_hdr);
	struct rte_udp_hdr *udp = (void *)(ip + off);
	uint16_t sum;

	udp->dgram_cksum = 0;
	sum = cksum_udp(6, sa->src.b, sa->dst.b, udp, m->pkt_len - off);
	memcpy(&udp->dgram_cksum, &sum, 2);
}

// UDP encapsulation in transport mode is not librte_ipsec's (trap 22): a UDP header
// between the IP header and ESP.
static void
transport_put_udp(struct rte_mbuf *m, const struct sa *sa)
{
	uint16_t l3 = pkt(m)->l4_off;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, sizeof(struct rte_udp_hdr)); // seal_bind saw room
	struct rte_udp_hdr udp = {
		.src_port = sa->natt_sport_be,
		.dst_port = sa->natt_dport_be,
		.dgram_len = rte_cpu_to_be_16((uint16_t)(m->pkt_len - l3)),
	};
	uint16_t len;

	memmove(ip, ip + sizeof(udp), l3);
	memcpy(ip + l3, &udp, sizeof(udp));
	if (sa->family == 4) {
		len = rte_cpu_to_be_16((uint16_t)m->pkt_len);
		memcpy(ip + 2, &len, 2);
		ip[9] = IPPROTO_UDP;
		cksum_ip4_set(ip, l3);
		return;
	}
	len = rte_cpu_to_be_16((uint16_t)(m->pkt_len - sizeof(struct rte_ipv6_hdr)));
	memcpy(ip + 4, &len, 2);
	// The next header that says ESP: in the IPv6 header, or in the last extension.
	uint32_t at = 6, off = sizeof(struct rte_ipv6_hdr);

	while (off < l3) {
		at = off;
		off += (ip[off + 1] + 1u) * 8;
	}
	ip[at] = IPPROTO_UDP;
}

static void
seal_finish(struct worker *w, struct group *g, struct rte_mbuf **out, uint16_t *n_out)
{
	struct sa_stats *stats = &g->sa->stats[w->index];

	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		struct pkt *p = pkt(m);

		// With ESN process() takes the appended high half off again (trap 31); without,
		// it would only count in a line that all workers share.
		if (unlikely(p->op.status != RTE_CRYPTO_OP_STATUS_SUCCESS ||
			     (g->sa->sqh_len != 0 &&
			      rte_ipsec_pkt_process(&g->sa->session, &m, 1) != 1))) {
			drop(w, m, DROP_esp_crypto);
			continue;
		}
		stats->packets++;
		stats->bytes += p->inner_bytes;
		if (g->sa->natt && g->sa->transport)
			transport_put_udp(m, g->sa);
		if (g->sa->natt && g->sa->family == 6)
			seal_udp6(m, g->sa);
		p->family = g->sa->family;
		p->proto = g->sa->natt ? IPPROTO_UDP : IPPROTO_ESP;
		p->flags = (uint16_t)((p->flags & ~PKT_JOINED) | PKT_SEALED);
		p->nexthop = PKT_NO_NEXTHOP;
		p->sa = NULL;
		out[(*n_out)++] = m;
	}
}

uint16_t
esp_seal(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *left[BURST];
	struct group groups[BURST];
	uint16_t n_groups = 0, n_left = 0, out = 0;
	struct flight f = {{0}};
	uint16_t clear;

	burst_number(pkts, n);
	for (uint16_t i = 0; i < n; i++) {
		int why;

		// In clear, as policy_select said; or a keepalive, which is like sealed.
		if (pkt(pkts[i])->tunnel == NULL || (pkt(pkts[i])->flags & PKT_SEALED)) {
			pkts[out++] = pkts[i];
			continue;
		}
		why = seal_bind(pkts[i]);
		if (unlikely(why >= 0))
			drop(w, pkts[i], (enum drop_reason)why);
		else
			left[n_left++] = pkts[i];
	}
	clear = out;
	while (n_left > 0) {
		n_left = group_next(&groups[n_groups], left, n_left);
		seal_begin(w, &groups[n_groups], &f);
		if (groups[n_groups].n > 0)
			n_groups++;
	}
	flight_drain(w, &f);
	for (uint16_t i = 0; i < n_groups; i++)
		seal_finish(w, &groups[i], pkts, &out);
	if (n_groups > 1 || (n_groups > 0 && clear > 0))
		burst_restore(pkts, out);
	return out;
}
