/* SPDX-License-Identifier: BSD-3-Clause */
// From an ESP packet to the packet inside: RFC 4303 section 3.4.
#include "esp.h"

#include "cksum.h"

#include <rte_esp.h>
#include <rte_ip.h>
#include <rte_ipsec.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

// Length and alignment of the ciphertext (RFC 4303 section 2.4), so that nothing
// behind can read outside of the packet.
static bool
open_length(struct rte_mbuf *m, const struct sa *sa)
{
	bool udp = sa->natt && !sa->transport; // transport_strip_udp took it off already
	uint32_t l3 = pkt(m)->l4_off + (udp ? (uint32_t)sizeof(struct rte_udp_hdr) : 0);
	uint32_t fixed = l3 + (uint32_t)sizeof(struct rte_esp_hdr) + sa->iv_len + sa->icv_len;

	m->l2_len = 0;
	m->l3_len = l3 & L3_LEN_MAX;
	return l3 <= L3_LEN_MAX && m->pkt_len >= fixed + RTE_MAX(sa->align, (uint8_t)4) &&
	       (m->pkt_len - fixed) % sa->align == 0;
}

// In transport mode librte_ipsec leaves everything in front of ESP where it is, a UDP
// header too: take it out first, the ICV does not cover it (RFC 3948 section 3.2).
static void
transport_strip_udp(struct rte_mbuf *m)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(ip + sizeof(struct rte_udp_hdr), ip, pkt(m)->l4_off);
	rte_pktmbuf_adj(m, sizeof(struct rte_udp_hdr));
}

// After process() in transport mode: what it leaves undone in the IP header, and with
// NAT on the way the checksum of the upper layer, which covers addresses that were
// changed (RFC 3948 section 3.1.2; the ICV has vouched for the data).
static void
transport_mend(struct rte_mbuf *m, const struct sa *sa)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *), *l4 = ip + pkt(m)->l4_off;
	uint32_t len = m->pkt_len - pkt(m)->l4_off;
	bool v4 = sa->family == 4;
	uint8_t proto = v4 ? ip[9] : ip[6];
	uint16_t sum = 0;
	size_t at;

	if (v4)
		cksum_ip4_set(ip, pkt(m)->l4_off);
	if (!sa->natt)
		return;
	if (proto == IPPROTO_TCP && len >= 20)
		at = 16;
	else if (proto == IPPROTO_UDP && len >= 8 && (l4[6] | l4[7]) != 0)
		at = 6;
	else
		return;
	memcpy(l4 + at, &sum, 2);
	sum = cksum_l4(sa->family, ip + (v4 ? 12 : 8), ip + (v4 ? 16 : 24), proto, l4, len);
	if (proto == IPPROTO_UDP && sum == 0)
		sum = 0xffff;
	memcpy(l4 + at, &sum, 2);
}

static int
replay_reason(enum replay_verdict v)
{
	return v == REPLAY_FRESH ? -1 : v == REPLAY_SEEN ? DROP_esp_replay : DROP_esp_late;
}

// Replay check before any crypto is spent (RFC 4303 section 3.4.3).
static void
open_check(struct worker *w, struct group *g)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		struct pkt *p = pkt(m);
		uint32_t low_be;
		int why;

		if (g->sa->transport && g->sa->natt)
			transport_strip_udp(m);
		if (!open_length(m, g->sa)) {
			drop(w, m, DROP_esp_runt);
			continue;
		}
		memcpy(&low_be, rte_pktmbuf_mtod_offset(m, void *, m->l3_len + 4), 4);
		p->sequence = replay_infer(g->sa->replay, rte_be_to_cpu_32(low_be));
		why = replay_reason(replay_check(g->sa->replay, p->sequence));
		if (unlikely(why >= 0))
			drop(w, m, (enum drop_reason)why);
		else
			g->pkts[good++] = m;
	}
	g->n = good;
}

static uint8_t
outer_ecn(struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);

	return pkt(m)->family == 4 ? ip[1] & ECN_MASK : (ip[1] >> 4) & ECN_MASK;
}

// RFC 6040 section 4.2, figure 4. @return false: the packet must be dropped
static bool
open_ecn(struct rte_mbuf *m, uint8_t outer)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t inner = pkt(m)->family == 4 ? ip[1] & ECN_MASK : (ip[1] >> 4) & ECN_MASK;
	uint16_t was, is;

	// Only CE on ECT or CE, and ECT(1) on ECT(0), change the inner mark.
	if (outer == ECN_CE && inner == 0)
		return false;
	if (!(outer == ECN_CE && inner != ECN_CE) && !(outer == 1 && inner == 2))
		return true;
	memcpy(&was, ip, 2);
	if (pkt(m)->family == 6) {
		ip[1] = (uint8_t)((ip[1] & ~(ECN_MASK << 4)) | outer << 4);
		return true;
	}
	ip[1] = (uint8_t)((ip[1] & ~ECN_MASK) | outer);
	memcpy(&is, ip, 2);
	((struct rte_ipv4_hdr *)ip)->hdr_checksum =
		cksum_update16(((struct rte_ipv4_hdr *)ip)->hdr_checksum, was, is);
	return true;
}

// After the crypto, before process(): is it authentic, and new still? Two copies
// can be in one burst, and on two workers. The caller holds the SA's lock.
static int
open_verdict(struct rte_mbuf *m, struct sa *sa)
{
	struct pkt *p = pkt(m);

	// process() does not look at the status (trap 30).
	if (unlikely(p->op.status != RTE_CRYPTO_OP_STATUS_SUCCESS))
		return p->op.status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED ? DROP_esp_auth : DROP_esp_crypto;
	return replay_reason(replay_check(sa->replay, p->sequence));
}

// The inner packet that process() laid bare.
// @return a reason to end it, or -1
static int
open_inner(struct rte_mbuf *m, const struct sa *sa, uint8_t next_header, uint8_t ecn)
{
	struct pkt *p = pkt(m);
	int why;

	if (next_header == NEXT_DUMMY)
		return DROP_esp_dummy;
	if (sa->transport) {
		transport_mend(m, sa);
		p->flags = PKT_SECURED;
		p->nexthop = PKT_NO_NEXTHOP;
		return ip_inspect(m, false) < 0 ? -1 : DROP_esp_inner;
	}
	if (next_header != IPPROTO_IPIP && next_header != IPPROTO_IPV6)
		return DROP_esp_next_header;
	p->family = next_header == IPPROTO_IPIP ? 4 : 6;
	p->flags = PKT_SECURED;
	p->nexthop = PKT_NO_NEXTHOP;
	why = ip_inspect(m, false);
	if (why == DROP_ip_version)
		return DROP_esp_next_header;
	if (why == DROP_multicast || why == DROP_ip_martian)
		return why;
	if (why >= 0)
		return DROP_esp_inner;
	return open_ecn(m, ecn) ? -1 : DROP_esp_ecn;
}

// One packet from the crypto to the inner packet. The window moves only with packets
// that process() takes, as librte_ipsec's own does: were ours ahead (by a packet with
// broken padding), the two would infer different high halves of an ESN, and replays
// that the one calls new would be authentic to the other. The caller holds the lock.
// @return a reason to drop, or -1 with *next_header set
static int
open_one(struct rte_mbuf *m, struct sa *sa, uint8_t *next_header)
{
	int why = open_verdict(m, sa);
	uint8_t *tail;

	if (unlikely(why >= 0))
		return why;
	// The library knows one inner family (trap 3): note the real next header and show
	// it what it wants to see.
	tail = rte_pktmbuf_mtod_offset(m, uint8_t *, m->pkt_len - sa->icv_len - sa->sqh_len - 1);
	*next_header = *tail;
	if (!sa->transport)
		*tail = IPPROTO_IPIP;
	if (unlikely(rte_ipsec_pkt_process(&sa->session, &m, 1) != 1))
		return DROP_esp_trailer;
	why = replay_reason(replay_commit(sa->replay, pkt(m)->sequence));
	if (why < 0 && unlikely(!sa_lifetime_take(sa, m->pkt_len)))
		return DROP_sa_lifetime;
	return why;
}

// RFC 3948 section 4 leaves it to the key management to move the peer: here it is only
// noted, for the control thread to tell.
static void
peer_note(struct sa *sa, const struct addr *addr, uint16_t port)
{
	if (likely(port == sa->peer_port && memcmp(addr->b, sa->peer.b, sizeof(addr->b)) == 0))
		return;
	sa->peer = *addr;
	sa->peer_port = port;
	sa->peer_moved = true;
}

// The outer source, before process() takes the header away.
static struct addr
outer_source(struct rte_mbuf *m, uint8_t family)
{
	struct addr a = {.family = family};
	size_t off = family == 4 ? offsetof(struct rte_ipv4_hdr, src_addr) :
				   offsetof(struct rte_ipv6_hdr, src_addr);

	memcpy(a.b, rte_pktmbuf_mtod_offset(m, void *, off), addr_size(family));
	return a;
}

// Everything after the crypto for one group; good packets are appended to out.
static uint16_t
open_finish(struct worker *w, struct group *g, struct rte_mbuf **out)
{
	uint8_t next_header[BURST], ecn[BURST];
	struct sa *sa = g->sa;
	uint16_t good = 0, n_out = 0;

	rte_spinlock_lock(&sa->lock);
	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		struct addr source;
		int why;

		ecn[good] = outer_ecn(m);
		if (sa->natt)
			source = outer_source(m, sa->family);
		why = open_one(m, sa, &next_header[good]);
		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		if (sa->natt)
			peer_note(sa, &source, pkt(m)->sport);
		g->pkts[good++] = m;
	}
	g->n = good;
	rte_spinlock_unlock(&sa->lock);

	for (uint16_t i = 0; i < g->n; i++) {
		int why = open_inner(g->pkts[i], sa, next_header[i], ecn[i]);

		if (unlikely(why >= 0)) {
			drop(w, g->pkts[i], (enum drop_reason)why);
			continue;
		}
		sa->stats[w->index].bytes += g->pkts[i]->pkt_len;
		out[n_out++] = g->pkts[i];
	}
	sa->stats[w->index].packets += n_out;
	return n_out;
}

uint16_t
esp_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *left[BURST];
	struct group groups[BURST];
	uint16_t n_groups = 0, n_left = n, out = 0;
	struct flight f = {{0}};

	burst_number(pkts, n);
	memcpy(left, pkts, n * sizeof(left[0]));
	while (n_left > 0) {
		struct group *g = &groups[n_groups];
		bool ready;

		n_left = group_next(g, left, n_left);
		rte_spinlock_lock(&g->sa->lock);
		open_check(w, g);
		ready = g->n > 0 && group_prepare(w, g);
		rte_spinlock_unlock(&g->sa->lock);
		if (!ready)
			continue;
		group_submit(w, &f, g);
		n_groups++;
	}
	flight_drain(w, &f);
	for (uint16_t i = 0; i < n_groups; i++)
		out = (uint16_t)(out + open_finish(w, &groups[i], pkts + out));
	if (n_groups > 1)
		burst_restore(pkts, out);
	return out;
}
