/* SPDX-License-Identifier: BSD-3-Clause */
// The ESP half of a gateway, played by the generator from that gateway's own sgw.yaml: its
// SAs, its policies and routes into tunnels. Sealing and opening are sgw's stages
// (lib/path); nothing is forwarded.
#pragma once

#include "ceiling.h"
#include "err.h"
#include "shape.h"

#include <stdint.h>

struct gateway;
struct port;
struct rte_mbuf;
struct rte_mempool;
struct tunnel;
struct worker;

/**
 * Read FILE, before EAL is up.
 * @return NULL with err filled; what is wrong in the file has been printed
 */
struct gateway *gateway_load(const char *file, struct err *err);

/**
 * Make SAs and tables, for `n` lcores that seal or open. Outbound sequence numbers come
 * from the state file, as sgw's do.
 * @param port  the one that carries ESP
 */
int gateway_start(struct gateway *g, const struct port *port, unsigned int n, uint16_t mtu,
		  struct rte_mempool *pool, struct err *err);

/** Every 50 ms or so while packets are sealed: numbers are reserved ahead. */
void gateway_tick(struct gateway *g);

/** Nothing may run any more. NULL is allowed. */
void gateway_stop(struct gateway *g);

/** One of the n, for an lcore. */
struct worker *gateway_worker(struct gateway *g, unsigned int i);

/**
 * For each flow of a shape, the tunnel that its packets go into.
 * @param tunnels  room for s->n_flows
 * @param encap    filled from the first flow's SA, for the ceiling
 * @return 0 or -EINVAL: a flow has none, or its packets do not fit; err says which
 */
int gateway_flows(struct gateway *g, const struct shape *s, uint16_t mtu,
		  const struct tunnel **tunnels, struct encap *encap, struct err *err);

/**
 * What flows that arrive are carried by: the inbound SA of the tunnel that an answer to the first
 * one would go into; where there is none, the first inbound SA.
 * @param back  the shape of the answers
 */
void gateway_encap_in(struct gateway *g, const struct shape *back, struct encap *encap);

/**
 * Seal a burst: mbufs stand at the inner IP header. What is refused is freed.
 * @return how many are ESP packets now, at the outer IP header, compacted
 */
uint16_t gateway_seal(struct worker *w, struct rte_mbuf **pkts, const struct tunnel **tunnels,
		      uint8_t family, uint16_t n);

/**
 * Open what is ESP of a burst; mbufs stand at the (outer) IP header. What does not open is
 * freed and counted in the worker.
 * @param rest    filled: what is no ESP for us, not freed
 * @return how many of pkts are inner packets now
 */
uint16_t gateway_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **rest,
		      uint16_t *n_rest);

/** What one worker could not open: of all reasons, and of these replays. */
void gateway_refused(const struct worker *w, uint64_t *bad, uint64_t *replayed);
