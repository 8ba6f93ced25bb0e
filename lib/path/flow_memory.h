/* SPDX-License-Identifier: BSD-3-Clause */
// The memory of flows, between flow.c, which fills it, and flow_take.c, which asks it.
#pragma once

#include "flow.h"

#include "pkt.h"
#include "tables.h"

#include <rte_branch_prediction.h>
#include <rte_ip.h>
#include <rte_vect.h>

#include <netinet/in.h>
#include <string.h>

#define WAYS4 4
#define WAYS6 2

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

// ---- keys ----

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

// Only their flows are remembered: the ports of others need not be in the first bytes.
static inline bool
is_tcp_udp(uint8_t proto)
{
	return proto == IPPROTO_UDP || proto == IPPROTO_TCP;
}

// May its flow be remembered? ip_inspect has filled p.
static inline bool
is_plain(const struct pkt *p)
{
	return is_tcp_udp(p->proto) &&
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
