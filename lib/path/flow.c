/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow.h"

#include "cksum.h"
#include "sa.h"
#include "sad.h"
#include "stage.h"

#include <rte_esp.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>
#include <rte_random.h>
#include <rte_udp.h>
#include <rte_vect.h>

#include <netinet/in.h>
#include <string.h>

#define WAYS4 4
#define WAYS6 2
#define FRAME4_MIN (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + 8)
#define FRAME6_MIN (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv6_hdr) + 8)
#define FRAGMENT_BE RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)

// Addresses as they stand in the packet; IPv4 has them in the first word alone. `rest` is
// ports, protocol and tunnel of arrival, never 0 in use.
struct flow_key {
	uint64_t addrs[4];
	uint64_t rest;
};

struct flow_way {
	const struct tunnel *tunnel; // NULL: in clear
	uint16_t nexthop;
	uint16_t flags; // PKT_BYPASS, PKT_SECURED
	uint32_t unused;
};

struct flow4 {
	uint64_t addrs;
	uint64_t rest;
	struct flow_way way;
};

struct flow6 {
	uint64_t addrs[4];
	uint64_t rest;
	struct flow_way way;
	uint64_t unused;
};

_Static_assert(sizeof(struct flow4) * WAYS4 == 2 * RTE_CACHE_LINE_SIZE, "a set is two lines");
_Static_assert(sizeof(struct flow6) * WAYS6 == 2 * RTE_CACHE_LINE_SIZE, "a set is two lines");

struct flows {
	uint64_t generation; // of the tables that all this was learned from
	uint64_t seed;
	uint32_t seed_way;
	struct flow4 v4[FLOW_SETS4][WAYS4] __rte_cache_aligned;
	struct flow6 v6[FLOW_SETS6][WAYS6] __rte_cache_aligned;
};

struct flows *
flow_create(void)
{
	struct flows *f = rte_zmalloc("flows", sizeof(*f), RTE_CACHE_LINE_SIZE);

	if (f != NULL)
		f->seed = rte_rand();
	return f;
}

void
flow_free(struct flows *f)
{
	rte_free(f);
}

// Everything is forgotten with the tables that it came from.
static inline struct flows *
flows_now(struct worker *w)
{
	struct flows *f = w->flows;

	if (unlikely(f->generation != w->tables->generation)) {
		memset(f->v4, 0, sizeof(f->v4));
		memset(f->v6, 0, sizeof(f->v6));
		f->generation = w->tables->generation;
	}
	return f;
}

// ---------------------------------------------------------------- keys

// @param from  index + 1 of the tunnel that it came out of, 0: came in clear
static inline uint64_t
rest_of(uint32_t ports, uint8_t proto, uint32_t from)
{
	return (uint64_t)ports | (uint64_t)proto << 32 | (uint64_t)from << 40;
}

static inline uint32_t
hash4(const struct flows *f, const struct flow_key *k)
{
	return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(f->seed, k->addrs[0]), k->rest);
}

static inline uint32_t
hash6(const struct flows *f, const struct flow_key *k)
{
	uint64_t h = _mm_crc32_u64(f->seed, k->rest), g = _mm_crc32_u64(f->seed, k->addrs[2]);

	h = _mm_crc32_u64(h, k->addrs[0]);
	g = _mm_crc32_u64(g, k->addrs[3]);
	return (uint32_t)_mm_crc32_u64(h, k->addrs[1]) ^ (uint32_t)(g << 7 | g >> 25);
}

static inline const struct flow_way *
find4(const struct flow4 *set, const struct flow_key *k)
{
	for (unsigned int i = 0; i < WAYS4; i++)
		if (set[i].addrs == k->addrs[0] && set[i].rest == k->rest)
			return &set[i].way;
	return NULL;
}

static inline const struct flow_way *
find6(const struct flow6 *set, const struct flow_key *k)
{
	for (unsigned int i = 0; i < WAYS6; i++)
		if (set[i].rest == k->rest && memcmp(set[i].addrs, k->addrs, sizeof(k->addrs)) == 0)
			return &set[i].way;
	return NULL;
}

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

static inline bool
has_ports(uint8_t proto)
{
	return proto == IPPROTO_UDP || proto == IPPROTO_TCP;
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

static inline void
key4(struct flow_key *k, const uint8_t *ip, uint32_t from)
{
	uint32_t ports;

	memcpy(&k->addrs[0], ip + 12, 8);
	memcpy(&ports, ip + sizeof(struct rte_ipv4_hdr), 4);
	k->rest = rest_of(ports, ip[9], from);
}

static inline void
key6(struct flow_key *k, const uint8_t *ip, uint32_t from)
{
	uint32_t ports;

	memcpy(k->addrs, ip + 8, 32);
	memcpy(&ports, ip + sizeof(struct rte_ipv6_hdr), 4);
	k->rest = rest_of(ports, ip[6], from);
}

// ---------------------------------------------------------------- taking

// What a frame may be, and where it would be found.
struct look {
	enum {
		LOOK_ASIDE, // for the full way, and of no flow that takes the short one
		LOOK_ODD,   // for the full way, though its flow may take the short one
		LOOK_FLOW4,
		LOOK_FLOW6,
		LOOK_ESP,
	} kind;
	struct flow_key key;
	const void *set;
};

// Nothing of the packet is changed here.
static inline void
look_at(const struct flows *f, const struct tables *t, const struct rte_mbuf *m, struct look *look)
{
	const struct tport *port = &t->ports[m->port];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *ip = frame + RTE_ETHER_HDR_LEN;
	uint32_t len = m->pkt_len - RTE_ETHER_HDR_LEN;
	uint64_t mac;
	uint16_t type;

	look->kind = LOOK_ASIDE;
	if (unlikely(m->data_len < FRAME4_MIN || m->nb_segs != 1 || len > port->rx_max))
		return;
	memcpy(&mac, frame, 8);
	memcpy(&type, frame + 12, 2);
	if (unlikely((mac ^ port->mac_word) << 16 != 0))
		return;
	if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4))) {
		uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

		if (unlikely(!plain4(ip, len, sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD)))
			look->kind = LOOK_ODD;
		else if (ip[9] == IPPROTO_ESP)
			look->kind = LOOK_ESP;
		else if (likely(has_ports(ip[9]) && ip[8] > 1)) {
			key4(&look->key, ip, 0);
			look->set = f->v4[hash4(f, &look->key) % FLOW_SETS4];
			look->kind = LOOK_FLOW4;
			rte_prefetch0(look->set); // most are in the first of its lines
		}
	} else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
		if (unlikely(m->data_len < FRAME6_MIN || !plain6(ip, len)))
			return; // nothing that would be forwarded
		if (ip[6] == IPPROTO_ESP)
			look->kind = LOOK_ESP;
		else if (likely(has_ports(ip[6]) && ip[7] > 1)) {
			key6(&look->key, ip, 0);
			look->set = f->v6[hash6(f, &look->key) % FLOW_SETS6];
			look->kind = LOOK_FLOW6;
			rte_prefetch0(look->set);
		} else if (ip[6] != IPPROTO_ICMPV6 && !has_ports(ip[6])) {
			look->kind = LOOK_ODD; // extension headers
		}
	} else if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		look->kind = LOOK_ODD; // may be a priority tag
	}
}

// What ip_check would have written; the IP header is at the front.
static inline void
become4(struct rte_mbuf *m, struct pkt *p)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t total, ports[2];

	memcpy(&total, ip + 2, 2);
	m->data_len = rte_be_to_cpu_16(total); // Ethernet padding is left behind
	m->pkt_len = m->data_len;
	memcpy(ports, ip + sizeof(struct rte_ipv4_hdr), 4);
	p->family = 4;
	p->proto = ip[9];
	p->l4_off = sizeof(struct rte_ipv4_hdr);
	p->sport = rte_be_to_cpu_16(ports[0]);
	p->dport = rte_be_to_cpu_16(ports[1]);
}

static inline void
become6(struct rte_mbuf *m, struct pkt *p)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t payload, ports[2];

	memcpy(&payload, ip + 4, 2);
	m->data_len = (uint16_t)(rte_be_to_cpu_16(payload) + sizeof(struct rte_ipv6_hdr));
	m->pkt_len = m->data_len;
	memcpy(ports, ip + sizeof(struct rte_ipv6_hdr), 4);
	p->family = 6;
	p->proto = ip[6];
	p->l4_off = sizeof(struct rte_ipv6_hdr);
	p->sport = rte_be_to_cpu_16(ports[0]);
	p->dport = rte_be_to_cpu_16(ports[1]);
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

static inline void
rx_count(struct worker *w, struct rx_run *r, const struct rte_mbuf *m)
{
	if (unlikely(m->port != r->port)) {
		rx_end(w, r);
		*r = (struct rx_run){.port = m->port};
	}
	r->packets++;
	r->bytes += m->pkt_len;
}

static inline void
bind_way(struct pkt *p, const struct flow_way *way)
{
	p->sa = NULL;
	p->tunnel = way->tunnel;
	p->nexthop = way->nexthop;
	p->flags = way->flags;
}

static inline bool
same_bytes(const uint8_t *a, const uint8_t *b, bool v6)
{
	return v6 ? memcmp(a, b, 16) == 0 : memcmp(a, b, 4) == 0; // fixed sizes are inlined
}

// ESP candidates of a burst: one lookup a family. What does not plainly fit its SA is
// left to the full way, which says why.
static void
take_esp(struct worker *w, struct rte_mbuf **pkts, const uint8_t *at, uint16_t n, bool v6,
	 struct look *looks)
{
	struct sad_key keys[BURST];
	struct sa *found[BURST];
	uint16_t l3 = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	uint16_t src = v6 ? 8 : 12, size = v6 ? 16 : 4;
	struct rx_run rx = {0};

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[at[i]], uint8_t *, RTE_ETHER_HDR_LEN);

		memcpy(&keys[i].spi_be, ip + l3, 4);
		keys[i].dst = ip + src + size;
	}
	sad_find(w->tables->sad, v6 ? 6 : 4, keys, found, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[at[i]];
		const uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, RTE_ETHER_HDR_LEN);
		struct sa *sa = found[i];
		struct pkt *p = pkt(m);

		if (unlikely(sa == NULL || !sa->short_way || !same_bytes(ip + src, sa->src.b, v6))) {
			looks[at[i]].kind = LOOK_ASIDE;
			continue;
		}
		rx_count(w, &rx, m);
		m->data_off = (uint16_t)(m->data_off + RTE_ETHER_HDR_LEN);
		if (v6)
			become6(m, p);
		else
			become4(m, p);
		p->sport = 0;
		p->dport = 0;
		p->sa = sa;
		p->tunnel = NULL;
		p->nexthop = PKT_NO_NEXTHOP;
		p->flags = 0;
	}
	rx_end(w, &rx);
}

uint16_t
flow_take(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
	  uint16_t *n_known, struct rte_mbuf **esp, uint16_t *n_esp)
{
	struct flows *f = flows_now(w);
	struct look looks[BURST];
	uint8_t at[2][BURST];
	uint16_t count[2] = {0, 0}, left = 0;
	struct rx_run rx = {0};
	bool odd = false;

	*n_known = 0;
	*n_esp = 0;
	for (uint16_t i = 0; i < n; i++) {
		look_at(f, w->tables, pkts[i], &looks[i]);
		odd |= looks[i].kind == LOOK_ODD;
		if (looks[i].kind == LOOK_ESP) {
			const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, RTE_ETHER_HDR_LEN);
			unsigned int v6 = ip[0] >> 4 == 6;

			at[v6][count[v6]++] = (uint8_t)i;
		}
	}
	// One that can not would be overtaken by others of its flow.
	if (unlikely(odd)) {
		for (uint16_t i = 0; i < n; i++)
			pkt(pkts[i])->slot = (uint8_t)i;
		return n;
	}
	for (unsigned int v6 = 0; v6 < 2; v6++)
		if (count[v6] > 0)
			take_esp(w, pkts, at[v6], count[v6], v6, looks);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		const struct flow_way *way = NULL;
		struct pkt *p = pkt(m);

		p->slot = (uint8_t)i;
		if (looks[i].kind == LOOK_ESP) {
			esp[(*n_esp)++] = m;
			continue;
		}
		if (looks[i].kind == LOOK_FLOW4)
			way = find4(looks[i].set, &looks[i].key);
		else if (looks[i].kind == LOOK_FLOW6)
			way = find6(looks[i].set, &looks[i].key);
		if (unlikely(way == NULL)) {
			pkts[left++] = m;
			continue;
		}
		rx_count(w, &rx, m);
		m->data_off = (uint16_t)(m->data_off + RTE_ETHER_HDR_LEN);
		bind_way(p, way);
		if (looks[i].kind == LOOK_FLOW4) {
			become4(m, p);
			hop4(rte_pktmbuf_mtod(m, uint8_t *));
		} else {
			become6(m, p);
			rte_pktmbuf_mtod(m, uint8_t *)[7]--;
		}
		known[(*n_known)++] = m;
	}
	rx_end(w, &rx);
	return left;
}

// May its flow be remembered? ip_inspect has filled p.
static inline bool
is_plain(const struct pkt *p)
{
	return has_ports(p->proto) &&
	       !(p->flags & (PKT_LOCAL | PKT_SEALED | PKT_FRAGMENT | PKT_FIRST_FRAGMENT | PKT_JOINED |
			     PKT_ND | PKT_GROUP | PKT_UDP_ESP)) &&
	       p->l4_off == (p->family == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr));
}

static inline bool
is_icmp(const struct pkt *p)
{
	return (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6) &&
	       !(p->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT));
}

bool
flow_look_inner(struct worker *w, struct rte_mbuf *m)
{
	struct flows *f = flows_now(w);
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct flow_way *way = NULL;
	struct pkt *p = pkt(m);
	struct flow_key k;

	if (p->family == 4) {
		if (m->data_len < FRAME4_MIN - RTE_ETHER_HDR_LEN || !plain4(ip, m->data_len, false) ||
		    !has_ports(ip[9]) || ip[8] <= 1)
			return false;
		key4(&k, ip, p->from);
		way = find4(f->v4[hash4(f, &k) % FLOW_SETS4], &k);
		if (way != NULL)
			become4(m, p);
	} else {
		if (m->data_len < FRAME6_MIN - RTE_ETHER_HDR_LEN || !plain6(ip, m->data_len) ||
		    !has_ports(ip[6]) || ip[7] <= 1)
			return false;
		key6(&k, ip, p->from);
		way = find6(f->v6[hash6(f, &k) % FLOW_SETS6], &k);
		if (way != NULL)
			become6(m, p);
	}
	if (way == NULL)
		return false;
	p->tunnel = way->tunnel;
	p->nexthop = way->nexthop;
	p->flags = (uint16_t)(way->flags | PKT_KNOWN);
	return true;
}

// One that is not known, though its flow may be, would be overtaken by the others of it.
static bool
inner_odd(struct rte_mbuf *const *pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct pkt *p = pkt(pkts[i]);

		if (unlikely(!(p->flags & PKT_KNOWN) && !is_plain(p) && !is_icmp(p)))
			return true;
	}
	return false;
}

// Back to where open_inner() would have left it.
static void
forget(struct pkt *p)
{
	if (!(p->flags & PKT_KNOWN))
		return;
	p->flags = PKT_SECURED;
	p->tunnel = NULL;
	p->nexthop = PKT_NO_NEXTHOP;
}

uint16_t
flow_take_inner(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
		uint16_t *n_known)
{
	uint16_t left = 0;

	if (unlikely(inner_odd(pkts, n))) {
		for (uint16_t i = 0; i < n; i++)
			forget(pkt(pkts[i]));
		return n;
	}
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt *p = pkt(m);
		uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);

		if (unlikely(!(p->flags & PKT_KNOWN))) {
			pkts[left++] = m;
			continue;
		}
		p->flags &= (uint16_t)~PKT_KNOWN;
		p->sa = NULL; // from here on it is an IP packet like others
		if (p->family == 4)
			hop4(ip);
		else
			ip[7]--;
		known[(*n_known)++] = m;
	}
	return left;
}

// ---------------------------------------------------------------- learning

void
flow_learn(struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	uint8_t kind = w->tables->nexthops[p->nexthop].kind;
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	struct flow_way way = {.tunnel = p->tunnel, .nexthop = p->nexthop,
			       .flags = p->flags & (PKT_BYPASS | PKT_SECURED)};
	struct flows *f = flows_now(w);
	struct flow_key k;

	if (!is_plain(p) || (p->tunnel == NULL && kind != NEXTHOP_GATEWAY && kind != NEXTHOP_ONLINK))
		return;
	// Some flow has to go when a set is full, whichever: with an order of age those that
	// come in turn would all push each other out.
	f->seed_way = f->seed_way * 69069 + 1;
	if (p->family == 4) {
		key4(&k, ip, p->from);
		struct flow4 *set = f->v4[hash4(f, &k) % FLOW_SETS4];
		unsigned int i = 0;

		while (i < WAYS4 && set[i].rest != 0 &&
		       !(set[i].addrs == k.addrs[0] && set[i].rest == k.rest))
			i++;
		if (i == WAYS4)
			i = f->seed_way >> 24 & (WAYS4 - 1);
		set[i] = (struct flow4){.addrs = k.addrs[0], .rest = k.rest, .way = way};
	} else {
		key6(&k, ip, p->from);
		struct flow6 *set = f->v6[hash6(f, &k) % FLOW_SETS6];
		unsigned int i = 0;

		while (i < WAYS6 && set[i].rest != 0 &&
		       !(set[i].rest == k.rest && memcmp(set[i].addrs, k.addrs, sizeof(k.addrs)) == 0))
			i++;
		if (i == WAYS6)
			i = f->seed_way >> 24 & (WAYS6 - 1);
		memcpy(set[i].addrs, k.addrs, sizeof(k.addrs));
		set[i].rest = k.rest;
		set[i].way = way;
	}
}
