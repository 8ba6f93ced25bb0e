/* SPDX-License-Identifier: BSD-3-Clause */
// The stages of the packet's way. The contract of each:
//
//   uint16_t stage(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
//
// takes n packets, returns how many go on, compacted at the front and in order.
// The others have already been given to drop(), local or a queue: no caller ever
// sees a tail of bad packets.
#pragma once

#include "pkt.h"
#include "tables.h"
#include "worker.h"

#include <stdint.h>

// eth.c
/** Checks the frame, fills the pkt, cuts L2 off; ARP goes to neigh_arp(). */
uint16_t eth_accept(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

// ip.c
/** Header, length, checksum, addresses; fills family, proto, l4_off, ports. */
uint16_t ip_check(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/**
 * The same check of one packet, for inner packets too.
 * @param trusted_sum  do not look at the IPv4 checksum
 * @return a reason to drop, or -1 when the packet is sound; trailing bytes
 *         beyond the IP length were cut off
 */
int ip_inspect(struct rte_mbuf *m, bool trusted_sum);
/** Drops what carries one of our own addresses as its source. */
uint16_t ip_spoof(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** TTL or hop limit − 1; those that ran out get a time exceeded. */
uint16_t ip_hop(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

// esp_select.c, esp_open.c, esp_seal.c
/** Adds ESP for us to esp, bound to its SA; the rest goes on. */
uint16_t esp_select(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **esp,
		    uint16_t *n_esp);
/** Replay check, decryption, trailer: what goes on is an inner packet. */
uint16_t esp_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** Seals those with pkt.tunnel set; the others pass through untouched. */
uint16_t esp_seal(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

// policy.c
/** Inbound, after esp_open: inside the selectors of its SA? */
uint16_t policy_verify(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** Inbound, came in clear: does a policy want it protected? */
uint16_t policy_clear(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** Outbound: protect (sets pkt.tunnel), bypass or drop. */
uint16_t policy_select(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

// route.c
/** Why a packet can not leave by its next hop, which is no port. @return a reason to drop */
int route_refuse(struct worker *w, struct rte_mbuf *m);

// fit.c
// The two stages whose number of packets can grow. They read pkts from *at and
// fill batch, up to BURST; call again until *at is n and s->whole is NULL. Order is
// kept: fragments go where their packet was.
struct split;
/** Before sealing: does the inner packet fit its tunnel? Fragments what may be; clamps the
 *  MSS of what goes into a tunnel. */
uint16_t mtu_fit(struct worker *w, struct rte_mbuf **pkts, uint16_t n, uint16_t *at,
		 struct split *s, struct rte_mbuf **batch);
/** Is there a way out of a port, and does it fit the port's MTU? Fragments what may be. */
uint16_t frag_fit(struct worker *w, struct rte_mbuf **pkts, uint16_t n, uint16_t *at,
		  struct split *s, struct rte_mbuf **batch);
/** Fragments that must be whole to be judged, or are for us: put together. */
uint16_t frag_join(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

// mss.c
/** A SYN into a tunnel gets an MSS that fits it, RFC 879, RFC 4821; m: TCP, not a later
 *  fragment. @param mtu  largest inner packet */
void mss_clamp(struct rte_mbuf *m, uint16_t mtu);

// pmtu.c
/** An ICMP too big about our own ESP (m at the IP header): believed, when it fits. */
void pmtu_learn(struct worker *w, struct rte_mbuf *m);
/** Is it such a message, to us? Routers on the way know no policy. */
bool pmtu_is_notice(const struct tables *t, struct rte_mbuf *m);
/** Largest inner packet of a tunnel at this moment (TSC). */
static inline uint16_t
pmtu_inner_at(const struct tunnel *t, uint64_t now)
{
	uint64_t until = atomic_load_explicit(&t->path->until, memory_order_acquire);

	if (likely(now >= until))
		return t->mtu;
	return RTE_MIN(t->mtu, atomic_load_explicit(&t->path->inner, memory_order_relaxed));
}

/** The same at w->now. */
static inline uint16_t
pmtu_inner(const struct worker *w, const struct tunnel *t)
{
	return pmtu_inner_at(t, w->now);
}

// neigh.c
/** Writes the Ethernet header; waiting packets stay in the neighbour's queue. */
uint16_t neigh_resolve(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** An ARP packet (m at the ARP header, L2 cut off); takes the packet. */
void neigh_arp(struct worker *w, struct rte_mbuf *m);
/** NS, NA or other ND message to us (m at the IPv6 header); takes the packet. */
void neigh_nd(struct worker *w, struct rte_mbuf *m);
/** A slice of retries, refreshes and expiries; called about every millisecond
 *  by worker 0 only. */
void neigh_tick(struct worker *w);

// local.c
/** Packets to our own addresses, ESP excepted: takes them, the rest goes on. */
uint16_t local_take(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** Queue a packet that sgw made (IP header first, m->port set): takes it. */
void local_send(struct worker *w, struct rte_mbuf *m);

// icmp.c
/** Tell the source of m about it (m is not consumed). Rate-limited, and never
 *  about an ICMP error, a fragment, a multicast or a martian (RFC 1122 3.2.2,
 *  RFC 4443 2.4). */
void icmp_time_exceeded(struct worker *w, struct rte_mbuf *m);
void icmp_too_big(struct worker *w, struct rte_mbuf *m, uint16_t mtu);
void icmp_unreachable(struct worker *w, struct rte_mbuf *m);

// tx.c
/** Ethernet frames for tables.ports[port], IP header at +14; into the buffer. */
void tx_enqueue(struct worker *w, uint16_t port, struct rte_mbuf *m);
/** Into the buffer of a queue of this worker's, past steering. */
void tx_put(struct worker *w, uint16_t port, struct rte_mbuf *m);
/** Stage form: uses the port of pkt.nexthop. Always 0. */
uint16_t tx(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** Send what is buffered. */
void tx_flush(struct worker *w);

// idle.c
/** Dummy packets and NAT keepalives; about every millisecond by worker 0 only. */
void idle_tick(struct worker *w);

// inbound.c, outbound.c
void inbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
void outbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** The same without policy_select: what is to become of them is known. */
void outbound_known(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
/** The end of the way out for one packet of sgw's own with pkt.tunnel set. */
void outbound_sealed(struct worker *w, struct rte_mbuf *m);
