/* SPDX-License-Identifier: BSD-3-Clause */
// Cutting a packet into fragments: IPv4 by RFC 791 section 3.2, IPv6 (for packets
// that sgw itself is the source of) by RFC 8200 section 4.5.
#include "frag.h"

#include "cksum.h"
#include "stage.h"

#include <rte_ip.h>
#include <rte_random.h>

#include <netinet/in.h>
#include <string.h>

#define FRAG6_LEN 8
#define OPTION_COPY 0x80 // bit of an IPv4 option that goes into every fragment
#define OPTION_END 0
#define OPTION_NOP 1

void
split_begin(struct split *s, struct rte_mbuf *m, uint32_t mtu)
{
	*s = (struct split){.whole = m, .mtu = mtu, .ident_be = (uint32_t)rte_rand()};
	if (pkt(m)->flags & PKT_JOINED)
		s->ident_be = pkt(m)->ident_be; // as its source has numbered it
}

// Header of a later IPv4 fragment: only the options with the copy bit (RFC 791
// section 3.1). @return its length
static uint32_t
header4_later(const uint8_t *from, uint32_t len, uint8_t *to)
{
	uint32_t at = sizeof(struct rte_ipv4_hdr), out = at;

	memcpy(to, from, at);
	while (at < len && from[at] != OPTION_END) {
		uint32_t n = 1;

		if (from[at] != OPTION_NOP) {
			if (at + 1 >= len || from[at + 1] < 2 || at + from[at + 1] > len)
				break; // broken options end here
			n = from[at + 1];
			if (from[at] & OPTION_COPY) {
				memcpy(to + out, from + at, n);
				out += n;
			}
		}
		at += n;
	}
	while (out % 4 != 0)
		to[out++] = OPTION_END;
	to[0] = (uint8_t)(0x40 | out / 4);
	return out;
}

// A fresh buffer with a header of the whole packet in front, and what sgw knows of it.
static struct rte_mbuf *
piece_begin(struct worker *w, struct rte_mbuf *whole)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	const struct pkt *from = pkt(whole);
	struct pkt *p;

	if (m == NULL)
		return NULL;
	p = pkt(m);
	p->sa = NULL;
	p->tunnel = from->tunnel;
	p->nexthop = from->nexthop;
	p->flags = from->flags;
	p->family = from->family;
	p->proto = from->proto;
	p->l4_off = from->l4_off;
	p->sport = from->sport;
	p->dport = from->dport;
	m->port = whole->port;
	w->ports[m->port].originated++;
	return m;
}

// It does not fit an ordinary buffer: as if it had never been.
static struct rte_mbuf *
piece_fail(struct worker *w, struct rte_mbuf *m)
{
	w->ports[m->port].originated--;
	rte_pktmbuf_free(m);
	return NULL;
}

static struct rte_mbuf *
next4(struct worker *w, struct split *s)
{
	const uint8_t *ip = rte_pktmbuf_mtod(s->whole, const uint8_t *);
	uint32_t hl = (ip[0] & 15u) * 4, payload = s->whole->pkt_len - hl, len, room;
	uint16_t frag = (uint16_t)(ip[6] << 8 | ip[7]);
	struct rte_mbuf *m = piece_begin(w, s->whole);
	struct rte_ipv4_hdr *h;
	uint8_t hdr[60];

	if (m == NULL)
		return NULL;
	if (s->off == 0)
		memcpy(hdr, ip, hl);
	len = s->off == 0 ? hl : header4_later(ip, hl, hdr);
	room = RTE_MIN((s->mtu - len) & ~7u, payload - s->off);
	if (payload - s->off <= s->mtu - len)
		room = payload - s->off; // the last one may have any length
	h = (void *)rte_pktmbuf_append(m, (uint16_t)(len + room));
	if (h == NULL)
		return piece_fail(w, m);
	memcpy(h, hdr, len);
	memcpy((uint8_t *)h + len, ip + hl + s->off, room);
	// What is cut may be a fragment already: offsets add up, the last piece keeps its MF.
	frag = (uint16_t)(frag + s->off / 8);
	if (s->off + room < payload)
		frag |= RTE_IPV4_HDR_MF_FLAG;
	h->fragment_offset = rte_cpu_to_be_16(frag);
	h->total_length = rte_cpu_to_be_16((uint16_t)(len + room));
	cksum_ip4_set(h, len);
	pkt(m)->l4_off = (uint16_t)len;
	s->off += room;
	return m;
}

// Length of what stands in front of the fragment header (RFC 8200 section 4.5): up to
// hop-by-hop options and routing header. *next_at: where the type behind it stands.
static uint32_t
unfragmentable6(const uint8_t *ip, uint32_t len, uint32_t *next_at)
{
	uint32_t off = sizeof(struct rte_ipv6_hdr), at = offsetof(struct rte_ipv6_hdr, proto);
	uint32_t found = off;

	*next_at = at;
	while (off + 8 <= len && (ip[at] == IPPROTO_HOPOPTS || ip[at] == IPPROTO_ROUTING ||
				  ip[at] == IPPROTO_DSTOPTS)) {
		bool needed = ip[at] != IPPROTO_DSTOPTS; // those only in front of a routing header

		at = off;
		off += (ip[off + 1] + 1u) * 8;
		if (needed && off <= len) {
			found = off;
			*next_at = at;
		}
	}
	return found;
}

static struct rte_mbuf *
next6(struct worker *w, struct split *s)
{
	const uint8_t *ip = rte_pktmbuf_mtod(s->whole, const uint8_t *);
	uint32_t at, hl = unfragmentable6(ip, s->whole->pkt_len, &at);
	uint32_t payload = s->whole->pkt_len - hl, room;
	struct rte_mbuf *m = piece_begin(w, s->whole);
	uint8_t *h, *frag;
	uint16_t field;

	if (m == NULL)
		return NULL;
	room = (s->mtu - hl - FRAG6_LEN) & ~7u;
	if (payload - s->off <= s->mtu - hl - FRAG6_LEN)
		room = payload - s->off;
	h = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(hl + FRAG6_LEN + room));
	if (h == NULL)
		return piece_fail(w, m);
	memcpy(h, ip, hl);
	frag = h + hl;
	frag[0] = h[at];
	frag[1] = 0;
	field = rte_cpu_to_be_16((uint16_t)(s->off | (s->off + room < payload)));
	memcpy(frag + 2, &field, 2);
	memcpy(frag + 4, &s->ident_be, 4);
	memcpy(frag + FRAG6_LEN, ip + hl + s->off, room);
	h[at] = IPPROTO_FRAGMENT;
	field = rte_cpu_to_be_16((uint16_t)(hl - sizeof(struct rte_ipv6_hdr) + FRAG6_LEN + room));
	memcpy(h + offsetof(struct rte_ipv6_hdr, payload_len), &field, 2);
	pkt(m)->l4_off = (uint16_t)(hl + FRAG6_LEN);
	s->off += room;
	return m;
}

struct rte_mbuf *
split_next(struct worker *w, struct split *s)
{
	const uint8_t *ip = rte_pktmbuf_mtod(s->whole, const uint8_t *);
	bool v4 = ip[0] >> 4 == 4;
	uint32_t at, hl = v4 ? (ip[0] & 15u) * 4 : unfragmentable6(ip, s->whole->pkt_len, &at);
	bool first = s->off == 0;
	struct rte_mbuf *m;

	if (hl + s->off >= s->whole->pkt_len) {
		drop(w, s->whole, DROP_frag_split);
		s->whole = NULL;
		return NULL;
	}
	m = v4 ? next4(w, s) : next6(w, s);
	if (unlikely(m == NULL)) {
		drop(w, s->whole, DROP_no_buffer);
		s->whole = NULL;
		return NULL;
	}
	pkt(m)->flags &= (uint16_t)~(PKT_FRAGMENT | PKT_FIRST_FRAGMENT);
	pkt(m)->flags |= first ? PKT_FIRST_FRAGMENT : PKT_FRAGMENT;
	return m;
}
