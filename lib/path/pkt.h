/* SPDX-License-Identifier: BSD-3-Clause */
// What sgw knows about a packet: the private area of its mbuf.
//
// Conventions inside lib/path, from eth_accept to neigh_resolve:
// * m->data_off points at the IP header; the Ethernet header was cut off and is
//   written anew in front by neigh_resolve. So l2_len is 0 everywhere.
// * one segment a packet (the pool's buffers hold the largest MTU and ESP).
// * m->port is sgw's own index of the port of arrival (not ethdev's id), a VLAN
//   subinterface's where it came tagged: that is where drops are counted. A packet
//   that sgw makes itself carries the port of the packet that provoked it.
#pragma once

#include <rte_crypto.h>
#include <rte_mbuf.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sa;
struct tunnel;

enum pkt_flag {
	PKT_SECURED = 1 << 0,  // came out of an ESP packet and passed policy_verify
	PKT_LOCAL = 1 << 1,    // made by sgw itself (ICMP error, echo reply)
	PKT_BYPASS = 1 << 2,   // an inbound policy says bypass
	PKT_SEALED = 1 << 3,   // is an ESP packet that esp_seal made
	PKT_FRAGMENT = 1 << 4, // not the first fragment: has no ports
	PKT_UDP_ESP = 1 << 5,  // ESP inside UDP, arriving
	PKT_JOINED = 1 << 9,         // was put together from fragments
	PKT_FIRST_FRAGMENT = 1 << 7, // the first of several fragments
	PKT_ND = 1 << 8,       // neighbour discovery (RFC 4861), by its ICMPv6 type
	PKT_KNOWN = 1 << 10,   // came out of ESP, its flow is known: flow_take_inner
	PKT_GROUP = 1 << 6,    // came in a frame to a multicast or broadcast address
};

#define PKT_NO_NEXTHOP UINT16_MAX
#define PKT_NO_SLOT UINT8_MAX

struct pkt {
	// What every stage looks at: one cache line.
	struct sa *sa;               // being opened or sealed with, for the counters too
	const struct tunnel *tunnel; // outbound: to be sealed for this one, NULL: clear
	uint64_t sequence;           // inbound: full (64-bit) sequence number
	uint32_t from;               // index + 1 of the tunnel it came out of, 0: came in clear
	uint32_t ident_be;           // with PKT_JOINED: of its fragments
	uint16_t largest_piece;      // with PKT_JOINED: bytes of L3 of its longest fragment
	uint16_t inner_bytes;        // outbound: length before sealing
	uint16_t source;             // index into tables.nexthops: where its source is, ip_spoof
	uint16_t nexthop;            // the same for its destination, or PKT_NO_NEXTHOP
	uint16_t flags;              // enum pkt_flag
	uint16_t l4_off;             // bytes from the IP header to the upper layer header
	uint16_t sport;              // host byte order, 0 where the protocol has none
	uint16_t dport;              //
	uint8_t slot;                // place in the burst, or PKT_NO_SLOT
	uint8_t family;              // 4 or 6
	uint8_t proto;               // upper layer protocol

	// While the crypto works on it. On the look-aside path the operation travels with
	// its packet; op, sym and iv must stay in this order: the PMD finds sym behind op,
	// and iv by its offset from op.
	struct rte_crypto_op op __rte_cache_aligned;
	struct rte_crypto_sym_op sym;
	uint8_t iv[16];
};

/** Has its first four bytes as ports? */
static inline bool
proto_has_ports(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
	case IPPROTO_UDPLITE:
		return true;
	}
	return false;
}

#define PKT_PRIV_SIZE RTE_ALIGN_CEIL(sizeof(struct pkt), RTE_MBUF_PRIV_ALIGN)
#define PKT_IV_OFFSET (offsetof(struct pkt, iv) - offsetof(struct pkt, op))

static inline struct pkt *
pkt(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}
