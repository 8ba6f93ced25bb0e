/* SPDX-License-Identifier: BSD-3-Clause */
// Sealing by librte_ipsec and a crypto device (look-aside): transport mode, and everything
// where the configuration asks for it. The numbers after "trap" are docs/librte.md's.
#include "esp.h"

#include "cksum.h"

#include <rte_ip.h>
#include <rte_ipsec.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

_Static_assert(PKT_IV_OFFSET <= UINT8_MAX, "librte_ipsec keeps the IV offset in 8 bits (trap 32)");

// Between prepare() and the crypto: next header (trap 3) and IV (traps 4, 5, 29).
static void
seal_fix(const struct worker *w, struct rte_mbuf *m, const struct sa *sa)
{
	struct pkt *p = pkt(m);
	uint8_t *digest = sa->aead ? p->sym.aead.digest.data : p->sym.auth.digest.data;
	uint32_t in_front = sa->transport ? p->l4_off : sa->hdr_len;
	uint8_t *iv = rte_pktmbuf_mtod_offset(m, uint8_t *, in_front + 8u);
	uint8_t *outer = rte_pktmbuf_mtod(m, uint8_t *), tos, df;
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
	if (!sa->transport) {
		seal_marks(w, m, sa, iv + sa->iv_len, &tos, &df);
		if (sa->family == 4) {
			outer[1] = tos;
			outer[6] = df;
			cksum_ip4_set(outer, sizeof(struct rte_ipv4_hdr)); // trap 8
		} else {
			outer[0] = (uint8_t)(0x60 | tos >> 4);
			outer[1] = (uint8_t)(tos << 4);
		}
	} else if (sa->family == 4) {
		cksum_ip4_set(outer, p->l4_off);
	}
}

static void
seal_begin(struct worker *w, struct group *g, struct flight *f)
{
	uint64_t first; // librte_ipsec counts on its own, and the same
	uint16_t may = sa_sequence_take(g->sa, g->n, &first);

	if (unlikely(may < g->n))
		group_drop(w, g, may, seal_starved(g->sa));
	for (uint16_t i = 0; i < g->n; i++) {
		g->pkts[i]->l2_len = 0;
		g->pkts[i]->l3_len = g->sa->transport ? pkt(g->pkts[i])->l4_off & L3_LEN_MAX : 0;
	}
	if (g->n == 0 || !group_prepare(w, g))
		return;
	for (uint16_t i = 0; i < g->n; i++)
		seal_fix(w, g->pkts[i], g->sa);
	group_submit(w, f, g);
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
	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];

		// With ESN process() takes the appended high half off again (trap 31); without,
		// it would only count in a line that all workers share.
		if (unlikely(pkt(m)->op.status != RTE_CRYPTO_OP_STATUS_SUCCESS ||
			     (g->sa->sqh_len != 0 &&
			      rte_ipsec_pkt_process(&g->sa->session, &m, 1) != 1))) {
			drop(w, m, DROP_esp_crypto);
			continue;
		}
		if (g->sa->natt && g->sa->transport)
			transport_put_udp(m, g->sa);
		g->sa->stats[w->index].packets++;
		g->sa->stats[w->index].bytes += pkt(m)->inner_bytes;
		seal_done(m, g->sa);
		out[(*n_out)++] = m;
	}
}

uint16_t
seal_library(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct group groups[BURST];
	uint16_t n_groups = 0, out = 0;
	struct flight f = {{0}};

	while (n > 0) {
		n = group_next(&groups[n_groups], pkts, n);
		seal_begin(w, &groups[n_groups], &f);
		if (groups[n_groups].n > 0)
			n_groups++;
	}
	flight_drain(w, &f);
	for (uint16_t i = 0; i < n_groups; i++)
		seal_finish(w, &groups[i], pkts, &out);
	return out;
}
