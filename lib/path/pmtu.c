/* SPDX-License-Identifier: BSD-3-Clause */
// The path MTU of tunnels: an ICMP frag-needed or Packet Too Big about our own ESP.
// Anybody can send one, so it is believed only when it quotes addresses and SPI of
// an SA of ours, never below the least MTU of IP, and for ten minutes (RFC 1191
// section 6.3, RFC 8201 section 4; RFC 4301 section 8.2).
#include "stage.h"

#include "sa.h"

#include <rte_ip.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

#define AGE_S 600
#define FLOOR4 576
#define FLOOR6 1280
#define ICMP_LEN 8 // of the header in both families

// The quoted packet behind an ICMP header.
struct quote {
	const uint8_t *src, *dst;
	uint32_t spi_be;
};

static bool
quote_read(uint8_t family, const uint8_t *ip, uint32_t len, struct quote *q)
{
	uint32_t hl = family == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	uint8_t proto;

	if (len < hl)
		return false;
	if (family == 4) {
		hl = (ip[0] & 15u) * 4;
		if (ip[0] >> 4 != 4 || hl < sizeof(struct rte_ipv4_hdr))
			return false;
		proto = ip[9];
		q->src = ip + 12;
		q->dst = ip + 16;
	} else {
		if (ip[0] >> 4 != 6)
			return false;
		proto = ip[6];
		q->src = ip + 8;
		q->dst = ip + 24;
	}
	if (proto == IPPROTO_UDP)
		hl += (uint32_t)sizeof(struct rte_udp_hdr);
	else if (proto != IPPROTO_ESP)
		return false;
	if (len < hl + 4)
		return false;
	memcpy(&q->spi_be, ip + hl, 4);
	return true;
}

static const struct tunnel *
tunnel_find(const struct tables *t, uint8_t family, const struct quote *q)
{
	for (uint32_t i = 0; i < t->n_tunnels; i++) {
		const struct tunnel *tun = &t->tunnels[i];

		if (tun->sa_out != NULL && tun->local.family == family &&
		    rte_cpu_to_be_32(tun->sa_out->spi) == q->spi_be &&
		    memcmp(tun->local.b, q->src, addr_size(family)) == 0 &&
		    memcmp(tun->remote.b, q->dst, addr_size(family)) == 0)
			return tun;
	}
	return NULL;
}

// Of which tunnel is this an ICMP too big? NULL: of none, or it is something else.
static const struct tunnel *
notice_read(const struct tables *t, struct rte_mbuf *m, uint32_t *mtu)
{
	const struct pkt *p = pkt(m);
	const uint8_t *icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, p->l4_off);
	uint32_t left = m->pkt_len - p->l4_off;
	struct quote q;

	if (p->proto != (p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) || left < ICMP_LEN ||
	    (p->flags & PKT_FRAGMENT))
		return NULL;
	if (p->family == 4 && icmp[0] == 3 && icmp[1] == 4)
		*mtu = (uint32_t)(icmp[6] << 8 | icmp[7]);
	else if (p->family == 6 && icmp[0] == 2)
		*mtu = (uint32_t)icmp[4] << 24 | (uint32_t)icmp[5] << 16 | (uint32_t)icmp[6] << 8 | icmp[7];
	else
		return NULL;
	if (!quote_read(p->family, icmp + ICMP_LEN, left - ICMP_LEN, &q))
		return NULL;
	return tunnel_find(t, p->family, &q);
}

bool
pmtu_is_notice(const struct tables *t, struct rte_mbuf *m)
{
	size_t off = pkt(m)->family == 4 ? offsetof(struct rte_ipv4_hdr, dst_addr) :
					   offsetof(struct rte_ipv6_hdr, dst_addr);
	uint32_t mtu;

	return notice_read(t, m, &mtu) != NULL &&
	       tables_is_own(t, pkt(m)->family, rte_pktmbuf_mtod_offset(m, void *, off));
}

void
pmtu_learn(struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	uint32_t mtu;
	const struct tunnel *t = notice_read(w->tables, m, &mtu);

	if (t == NULL)
		return;
	if (mtu < (p->family == 4 ? FLOOR4 : FLOOR6))
		return; // RFC 8201 section 4 wants it discarded
	mtu = sa_inner_mtu(t->sa_out, mtu);
	if (mtu == 0 || mtu >= pmtu_inner(w, t))
		return; // a path that got wider is found when the entry has aged
	atomic_store_explicit(&t->path->inner, (uint16_t)mtu, memory_order_relaxed);
	atomic_store_explicit(&t->path->until, w->now + AGE_S * w->hz, memory_order_release);
}
