/* SPDX-License-Identifier: BSD-3-Clause */
// Opening by librte_ipsec and a crypto device (look-aside): transport mode, and everything
// where the configuration asks for it. The numbers after "trap" are docs/librte.md's.
#include "esp.h"
#include "steer.h"

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
		int why = open_inner(w, g->pkts[i], sa, next_header[i], ecn[i]);

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
open_library(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *left[BURST];
	struct group groups[BURST];
	uint16_t n_groups = 0, n_left = n, out = 0;
	struct flight f = {{0}};

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
	if (n_groups > 0)
		steer_turn_wait(w, STEER_OPEN);
	for (uint16_t i = 0; i < n_groups; i++)
		out = (uint16_t)(out + open_finish(w, &groups[i], pkts + out));
	return out;
}
