/* SPDX-License-Identifier: BSD-3-Clause */
// Cutting packets into fragments and putting fragments together.
#pragma once

#include "err.h"

#include <rte_mbuf.h>

#include <stdbool.h>
#include <stdint.h>

struct worker;
struct reass;

// A packet that is being cut, a fragment at a time, so that a burst never grows
// beyond its array whatever the packet's size.
struct split {
	struct rte_mbuf *whole; // NULL: nothing is being cut
	uint32_t mtu;           // largest fragment, bytes of L3
	uint32_t off;           // of the payload: what has gone already
	uint32_t ident_be;      // IPv6: of this packet's fragments
};

/** Begin to cut a packet (takes it). IPv6 only where sgw is the source itself. */
void split_begin(struct split *s, struct rte_mbuf *m, uint32_t mtu);

/**
 * The next fragment.
 * @return NULL when it is all cut (s->whole is NULL and the packet ended as
 *         frag_split), or when there is no buffer (the rest ended as no_buffer)
 */
struct rte_mbuf *split_next(struct worker *w, struct split *s);

#define REASS_CONTEXTS 128 // packets being put together, a worker
#define REASS_SPARE 64     // buffers of packets that are whole and on their way
#define REASS_SECONDS 5    // for one of them; RFC 791 and 8200 allow more, buffers do not

/** @return NULL when there is no memory */
struct reass *reass_create(struct rte_mempool *big);
void reass_free(struct reass *r);
/** Drop all that waits, with DROP_stopping. */
void reass_drain(struct worker *w);
/** Drop what has waited too long; called about every millisecond by its worker. */
void reass_tick(struct worker *w);

/**
 * Add a fragment (PKT_FRAGMENT or PKT_FIRST_FRAGMENT); takes it.
 * @return the whole packet with all fields of struct pkt set, when this was the
 *         last piece; else NULL
 */
struct rte_mbuf *reass_add(struct worker *w, struct rte_mbuf *m);
