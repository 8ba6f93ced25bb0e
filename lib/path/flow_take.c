/* SPDX-License-Identifier: BSD-3-Clause */
// Packets of known flows, and ESP that plainly is one of our SAs', are taken out of a burst.
#include "flow_memory.h"

#include "cksum.h"
#include "sa.h"
#include "sad.h"
#include "stage.h"

#include <rte_esp.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#define FRAGMENT_BE RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)

// ---------------------------------------------------------------- headers

// TTL - 1. The word of the checksum that it is in gets smaller by one in memory order,
// so the sum gets larger by one (RFC 1624).
static inline void
hop4(uint8_t *ip)
{
	uint16_t sum;

	memcpy(&sum, ip + 10, 2);
	sum = (uint16_t)(sum + 1 + (sum >= 0xfffe));
	ip[8]--;
	memcpy(ip + 10, &sum, 2);
}

// Sound IPv4 without options that is no fragment? `len` bytes are there.
static inline bool
plain4(const uint8_t *ip, uint32_t len, bool trusted_sum)
{
	uint16_t frag, total;

	memcpy(&frag, ip + 6, 2);
	memcpy(&total, ip + 2, 2);
	total = rte_be_to_cpu_16(total);
	return ip[0] == RTE_IPV4_VHL_DEF && !(frag & FRAGMENT_BE) &&
	       total >= sizeof(struct rte_ipv4_hdr) + 8 && total <= len &&
	       (trusted_sum || cksum_ip4_ok(ip, sizeof(struct rte_ipv4_hdr)));
}

static inline bool
plain6(const uint8_t *ip, uint32_t len)
{
	uint16_t payload;

	memcpy(&payload, ip + 4, 2);
	payload = rte_be_to_cpu_16(payload);
	return ip[0] >> 4 == 6 && payload >= 8 &&
	       payload + sizeof(struct rte_ipv6_hdr) <= len;
}

// ---------------------------------------------------------------- frames

// What a frame is, and where its flow would be remembered.
struct look {
	enum {
		LOOK_ASIDE, // for the full way, and of no flow that takes the short one
		LOOK_ODD,   // for the full way, though its flow may take the short one
		LOOK_FLOW,
		LOOK_ESP,
	} kind;
	bool v6;
	uint8_t l2;       // bytes in front of the IP header
	uint16_t port;    // of arrival, a subinterface's where it came tagged
	struct flow_key key;
	const void *set;
};

static inline void
look4(const struct flows *f, const struct rte_mbuf *m, const uint8_t *ip, uint32_t len,
      struct look *look)
{
	uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	if (unlikely(!plain4(ip, len, sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD)))
		look->kind = LOOK_ODD;
	else if (ip[9] == IPPROTO_ESP)
		look->kind = LOOK_ESP;
	else if (likely(is_tcp_udp(ip[9]) && ip[8] > 1)) {
		key4(&look->key, ip, 0);
		look->set = f->v4[hash4(f, &look->key) % FLOW_SETS4];
		look->kind = LOOK_FLOW;
		rte_prefetch0(look->set); // most are in the first of its lines
	}
}

static inline void
look6(const struct flows *f, const uint8_t *ip, uint32_t len, struct look *look)
{
	look->v6 = true;
	if (unlikely(len < sizeof(struct rte_ipv6_hdr) + 8 || !plain6(ip, len)))
		return; // nothing that would be forwarded
	if (ip[6] == IPPROTO_ESP)
		look->kind = LOOK_ESP;
	else if (likely(is_tcp_udp(ip[6]) && ip[7] > 1)) {
		key6(&look->key, ip, 0);
		look->set = f->v6[hash6(f, &look->key) % FLOW_SETS6];
		look->kind = LOOK_FLOW;
		rte_prefetch0(look->set);
	} else if (ip[6] != IPPROTO_ICMPV6 && !is_tcp_udp(ip[6])) {
		look->kind = LOOK_ODD; // extension headers
	}
}

// Nothing of the packet is changed here. What eth_accept would refuse is left to it.
static inline void
look_at(const struct flows *f, const struct tables *t, const struct rte_mbuf *m, struct look *look)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct tport *port;
	uint64_t mac;
	uint16_t type;

	look->kind = LOOK_ASIDE;
	look->v6 = false;
	look->l2 = RTE_ETHER_HDR_LEN;
	look->port = m->port;
	if (unlikely(m->data_len < RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + 8 || m->nb_segs != 1))
		return;
	memcpy(&mac, frame, 8);
	memcpy(&type, frame + 12, 2);
	if (unlikely(type == RTE_BE16(RTE_ETHER_TYPE_VLAN))) {
		int index = vlan_port(t, m->port, (uint16_t)(frame[14] << 8 | frame[15]));

		if (index < 0)
			return;
		look->l2 = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
		look->port = (uint16_t)index;
		memcpy(&type, frame + 16, 2);
	}
	port = &t->ports[look->port];
	if (unlikely((mac ^ port->mac_word) << 16 != 0 || m->pkt_len > (uint32_t)look->l2 + port->rx_max))
		return;
	if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4)))
		look4(f, m, frame + look->l2, m->pkt_len - look->l2, look);
	else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		look6(f, frame + look->l2, m->pkt_len - look->l2, look);
}

// A bit for a pair of addresses. What is odd keeps those of the same pair with it, so that
// none of its flow overtakes it; and some others, by chance.
static uint64_t
pair_bit(const uint8_t *ip, bool v6)
{
	uint64_t h = 0, word;

	for (unsigned int at = v6 ? 8 : 12; at < (v6 ? 40 : 20); at += 8) {
		memcpy(&word, ip + at, 8);
		h = _mm_crc32_u64(h, word);
	}
	return UINT64_C(1) << (h & 63);
}

static void
keep_pairs(struct rte_mbuf *const *pkts, struct look *looks, uint16_t n)
{
	uint64_t odd = 0;

	for (uint16_t i = 0; i < n; i++)
		if (looks[i].kind == LOOK_ODD)
			odd |= pair_bit(rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, looks[i].l2), looks[i].v6);
	for (uint16_t i = 0; i < n; i++)
		if ((looks[i].kind == LOOK_FLOW || looks[i].kind == LOOK_ESP) &&
		    (odd & pair_bit(rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, looks[i].l2), looks[i].v6)))
			looks[i].kind = LOOK_ASIDE;
}

// What ip_check would have written; the IP header is at the front. Padding behind the
// packet is left behind.
static inline void
become(struct rte_mbuf *m, struct pkt *p, bool v6)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t len, ports[2];

	memcpy(&len, ip + (v6 ? 4 : 2), 2);
	len = rte_be_to_cpu_16(len);
	p->family = v6 ? 6 : 4;
	p->proto = ip[v6 ? 6 : 9];
	p->l4_off = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	m->data_len = v6 ? (uint16_t)(len + sizeof(struct rte_ipv6_hdr)) : len;
	m->pkt_len = m->data_len;
	memcpy(ports, ip + p->l4_off, 4);
	p->sport = rte_be_to_cpu_16(ports[0]);
	p->dport = rte_be_to_cpu_16(ports[1]);
}

static inline void
hop(uint8_t *ip, bool v6)
{
	if (v6)
		ip[7]--;
	else
		hop4(ip);
}

// Received, as long as it is the same port: kept in registers.
struct rx_run {
	uint16_t port;
	uint64_t packets;
	uint64_t bytes;
};

static inline void
rx_end(struct worker *w, const struct rx_run *r)
{
	w->ports[r->port].rx_packets += r->packets;
	w->ports[r->port].rx_bytes += r->bytes;
}

// What eth_accept would have done.
static inline void
accept_frame(struct worker *w, struct rx_run *r, struct rte_mbuf *m, const struct look *look)
{
	if (unlikely(look->port != r->port)) {
		rx_end(w, r);
		*r = (struct rx_run){.port = look->port};
	}
	r->packets++;
	r->bytes += m->pkt_len;
	m->port = look->port;
	m->data_off = (uint16_t)(m->data_off + look->l2);
}

static inline bool
same_bytes(const uint8_t *a, const uint8_t *b, bool v6)
{
	return v6 ? memcmp(a, b, 16) == 0 : memcmp(a, b, 4) == 0; // fixed sizes are inlined
}

// ESP candidates of a family, one lookup. What does not plainly fit its SA is left to the
// full way, which says why.
static void
bind_esp(struct worker *w, struct rte_mbuf **pkts, const uint8_t *at, uint16_t n, bool v6,
	 struct look *looks)
{
	struct sad_key keys[BURST];
	struct sa *found[BURST];
	uint16_t l3 = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	uint16_t src = v6 ? 8 : 12, size = v6 ? 16 : 4;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[at[i]], uint8_t *, looks[at[i]].l2);

		memcpy(&keys[i].spi_be, ip + l3, 4);
		keys[i].dst = ip + src + size;
	}
	sad_find(w->tables->sad, v6 ? 6 : 4, keys, found, n);
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[at[i]], uint8_t *, looks[at[i]].l2);
		struct sa *sa = found[i];

		if (likely(sa != NULL && sa->short_way && same_bytes(ip + src, sa->src.b, v6)))
			pkt(pkts[at[i]])->sa = sa;
		else
			looks[at[i]].kind = LOOK_ASIDE;
	}
}

static void
take_esp(struct worker *w, struct rte_mbuf **pkts, struct look *looks, uint16_t n)
{
	uint8_t at[2][BURST];
	uint16_t count[2] = {0, 0};

	for (uint16_t i = 0; i < n; i++)
		if (looks[i].kind == LOOK_ESP)
			at[looks[i].v6][count[looks[i].v6]++] = (uint8_t)i;
	for (unsigned int v6 = 0; v6 < 2; v6++)
		if (count[v6] > 0)
			bind_esp(w, pkts, at[v6], count[v6], v6, looks);
}

// Bound to an SA already.
static inline void
become_esp(struct rte_mbuf *m, struct pkt *p, bool v6)
{
	become(m, p, v6);
	p->sport = 0;
	p->dport = 0;
	p->tunnel = NULL;
	p->nexthop = PKT_NO_NEXTHOP;
	p->flags = 0;
}

uint16_t
flow_take(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
	  uint16_t *n_known, struct rte_mbuf **esp, uint16_t *n_esp)
{
	struct flows *f = flows_now(w);
	struct look looks[BURST];
	struct rx_run rx = {0};
	unsigned int seen = 0; // kinds
	uint16_t left = 0;

	*n_known = 0;
	*n_esp = 0;
	for (uint16_t i = 0; i < n; i++) {
		look_at(f, w->tables, pkts[i], &looks[i]);
		seen |= 1u << looks[i].kind;
	}
	if (unlikely(seen & 1u << LOOK_ODD))
		keep_pairs(pkts, looks, n);
	if (seen & 1u << LOOK_ESP)
		take_esp(w, pkts, looks, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct look *look = &looks[i];
		struct rte_mbuf *m = pkts[i];
		const struct flow_way *way = NULL;
		struct pkt *p = pkt(m);

		p->slot = (uint8_t)i;
		if (look->kind == LOOK_ESP) {
			accept_frame(w, &rx, m, look);
			become_esp(m, p, look->v6);
			esp[(*n_esp)++] = m;
			continue;
		}
		if (look->kind == LOOK_FLOW)
			way = look->v6 ? find6(look->set, &look->key) : find4(look->set, &look->key);
		if (unlikely(way == NULL)) {
			pkts[left++] = m;
			continue;
		}
		accept_frame(w, &rx, m, look);
		p->sa = NULL;
		p->tunnel = way->tunnel;
		p->nexthop = way->nexthop;
		p->flags = way->flags;
		become(m, p, look->v6);
		hop(rte_pktmbuf_mtod(m, uint8_t *), look->v6);
		known[(*n_known)++] = m;
	}
	rx_end(w, &rx);
	return left;
}

// ---------------------------------------------------------------- inner packets

bool
flow_look_inner(struct worker *w, struct rte_mbuf *m)
{
	struct flows *f = flows_now(w);
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct flow_way *way;
	struct pkt *p = pkt(m);
	bool v6 = p->family == 6;
	struct flow_key k;

	if (m->data_len < (v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr)) + 8 ||
	    !(v6 ? plain6(ip, m->data_len) : plain4(ip, m->data_len, false)) ||
	    !is_tcp_udp(ip[v6 ? 6 : 9]) || ip[v6 ? 7 : 8] <= 1)
		return false;
	if (v6) {
		key6(&k, ip, p->from);
		way = find6(f->v6[hash6(f, &k) % FLOW_SETS6], &k);
	} else {
		key4(&k, ip, p->from);
		way = find4(f->v4[hash4(f, &k) % FLOW_SETS4], &k);
	}
	if (way == NULL)
		return false;
	become(m, p, v6);
	p->tunnel = way->tunnel;
	p->nexthop = way->nexthop;
	p->flags = (uint16_t)(way->flags | PKT_KNOWN);
	return true;
}

// As keep_pairs(): these go back to where open_inner() would have left them.
static void
forget_pairs(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint64_t odd = 0;

	for (uint16_t i = 0; i < n; i++) {
		const struct pkt *p = pkt(pkts[i]);

		if (unlikely(!(p->flags & PKT_KNOWN) && !is_plain(p) && !is_icmp(p)))
			odd |= pair_bit(rte_pktmbuf_mtod(pkts[i], uint8_t *), p->family == 6);
	}
	for (uint16_t i = 0; unlikely(odd != 0) && i < n; i++) {
		struct pkt *p = pkt(pkts[i]);

		if (!(p->flags & PKT_KNOWN) ||
		    !(odd & pair_bit(rte_pktmbuf_mtod(pkts[i], uint8_t *), p->family == 6)))
			continue;
		p->flags = PKT_SECURED;
		p->tunnel = NULL;
		p->nexthop = PKT_NO_NEXTHOP;
	}
}

uint16_t
flow_take_inner(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
		uint16_t *n_known)
{
	uint16_t left = 0;

	forget_pairs(pkts, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt *p = pkt(m);

		if (unlikely(!(p->flags & PKT_KNOWN))) {
			pkts[left++] = m;
			continue;
		}
		p->flags &= (uint16_t)~PKT_KNOWN;
		p->sa = NULL; // from here on it is an IP packet like others
		hop(rte_pktmbuf_mtod(m, uint8_t *), p->family == 6);
		known[(*n_known)++] = m;
	}
	return left;
}
