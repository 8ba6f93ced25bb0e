/* SPDX-License-Identifier: BSD-3-Clause */
// From a packet to the ESP packet around it: RFC 4303 section 3.3. What is the same
// however it is made; seal_direct.c and seal_library.c make it.
#include "esp.h"

#include "cksum.h"
#include "steer.h"

#include <rte_ip.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

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
	// Before a sequence number is taken (trap 12).
	if (unlikely(rte_pktmbuf_headroom(m) < p->sa->hdr_len + 8u + p->sa->iv_len + 8u ||
		     rte_pktmbuf_tailroom(m) < 16u + 2 + p->sa->icv_len + 4 + 16))
		return DROP_no_headroom;
	return -1;
}

enum drop_reason
seal_starved(struct sa *sa)
{
	bool end = atomic_load_explicit(&sa->limit, memory_order_relaxed) == sa->end;

	return end ? DROP_sa_sequence_end : DROP_sa_sequence_reserve;
}

// RFC 3948 section 2.1: zero over IPv4; over IPv6 there must be one (RFC 8200 8.1).
void
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

uint16_t
esp_seal(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *direct[BURST], *library[BURST];
	uint16_t n_direct = 0, n_library = 0, clear = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		int why;

		pkt(m)->slot = (uint8_t)i;
		// In clear, as policy_select said; or a keepalive, which is like sealed.
		if (pkt(m)->tunnel == NULL || (pkt(m)->flags & PKT_SEALED)) {
			pkts[clear++] = m;
			continue;
		}
		why = seal_bind(m);
		if (unlikely(why >= 0))
			drop(w, m, (enum drop_reason)why);
		else if (likely(pkt(m)->sa->key != NULL))
			direct[n_direct++] = m;
		else
			library[n_library++] = m;
	}
	if (n_direct + n_library > 0)
		steer_turn_wait(w, STEER_SEAL);
	if (unlikely(n_library > 0))
		n_library = seal_library(w, library, n_library);
	if (likely(n_direct > 0))
		n_direct = seal_direct(w, direct, n_direct); // passes the turn once it has its numbers
	else
		steer_turn_pass(w, STEER_SEAL);
	memcpy(pkts + clear, direct, n_direct * sizeof(pkts[0]));
	memcpy(pkts + clear + n_direct, library, n_library * sizeof(pkts[0]));
	n = (uint16_t)(clear + n_direct + n_library);
	if (unlikely(n_library > 0 || (clear > 0 && n_direct > 0)))
		burst_restore(pkts, n);
	return n;
}
