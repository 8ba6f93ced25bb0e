/* SPDX-License-Identifier: BSD-3-Clause */
// The short way: what the full way has decided about a flow is remembered, so that its
// next packets need one lookup instead of routes of source and destination and policies
// in and out. Each worker has its own memory.
//
// What may be remembered is a pure function of the tables and of the key: addresses,
// protocol and ports, and the tunnel that the packet came out of. So it is exact, never a
// guess: all of the key is compared, and when the tables change all is forgotten. What
// looks at more than the key (fragments, ICMP, neighbour discovery, options, what is for
// us, what sgw makes) never takes the short way. A packet that does not fit it is left
// untouched to the full way, which alone refuses, counts and tells.
#pragma once

#include "worker.h"

#include <rte_mbuf.h>

#include <stdbool.h>
#include <stdint.h>

// 16384 flows of IPv4 and 8192 of IPv6, half a megabyte each.
#define FLOW_SETS4 4096
#define FLOW_SETS6 4096

struct flows;

/** @return NULL when there is no memory */
struct flows *flow_create(void);
void flow_free(struct flows *f);

/**
 * First thing of a burst. Frames of known flows in clear: checked, cut down to the IP
 * header, TTL counted, bound to their way, moved to known. ESP that plainly is one of
 * our SAs' is bound to it and moved to esp.
 * @return how many are left in pkts, in order and untouched
 */
uint16_t flow_take(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
		   uint16_t *n_known, struct rte_mbuf **esp, uint16_t *n_esp);

/**
 * Is the flow of this inner packet known (pkt.family and pkt.from are set)? Then it is sound
 * as ip_inspect wants it, and all that that fills is filled; what lies behind it is cut off.
 */
bool flow_look_inner(struct worker *w, struct rte_mbuf *m);

/**
 * Those that flow_look_inner() knew, of what esp_open let through, are bound to their way,
 * TTL counted, and added to known.
 * @return how many are left in pkts
 */
uint16_t flow_take_inner(struct worker *w, struct rte_mbuf **pkts, uint16_t n,
			 struct rte_mbuf **known, uint16_t *n_known);

/** policy_select has decided: remember it, if it is of a kind that may be. */
void flow_learn(struct worker *w, struct rte_mbuf *m);
