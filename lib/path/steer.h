/* SPDX-License-Identifier: BSD-3-Clause */
// How packets come to the workers (system.steering):
//
// queues  a worker does what its rx queues bring; the NIC deals out.          steer.c
// flows   who polls a queue hands packets of other workers' flows over by a ring; the
//         order within a flow is kept.                      steer_flow.c, steer_hash.c
// bursts  worker 0 polls all queues and deals bursts out; what they become is sent in
//         the order in which they came, whoever worked on them.          steer_burst.c
//
// A worker in `bursts` works on a slot: the burst that came in, and the packets that are
// to go out for it. Slots have numbers without a hole, their tickets. Where the order
// of work on an SA can be seen from outside, a slot waits for its turn: sequence numbers
// are taken and replay windows moved ticket by ticket.
#pragma once

#include "config.h"
#include "worker.h"

#include <rte_branch_prediction.h>

#include <stdbool.h>
#include <stdint.h>

enum steer_turn {
	STEER_OPEN, // moving replay windows, esp_open.c
	STEER_SEAL, // taking sequence numbers, esp_seal.c
	STEER_TURNS,
};

/**
 * Make what the workers need between them, once their queues are dealt out.
 * @param mode  not CFG_STEER_AUTO
 * @return 0 or -ENOMEM
 */
int steer_start(enum cfg_steering mode);

/** Free it; all workers have ended. */
void steer_free(void);

/** One round of a worker: all that waits for it now. @return false: nothing did */
bool steer_poll(struct worker *w);

/** The end of a worker: what is still in rings and slots goes its way. */
void steer_drain(struct worker *w);

/**
 * Around what is sent without a packet having come, in the timer's tick.
 * @return false: not now, or not this worker; then no steer_leave() either
 */
bool steer_enter(struct worker *w);
void steer_leave(struct worker *w);

/** Hand a frame to the slot that the worker works on. w->slot != NULL */
void steer_capture(struct worker *w, uint16_t port, struct rte_mbuf *m);

bool steer_turn_passed_slow(const struct worker *w, enum steer_turn turn);
void steer_turn_wait_slow(struct worker *w, enum steer_turn turn);
void steer_turn_pass_slow(struct worker *w, enum steer_turn turn);

/** Wait until all slots with lower tickets have passed this turn. */
static inline void
steer_turn_wait(struct worker *w, enum steer_turn turn)
{
	if (unlikely(w->slot != NULL))
		steer_turn_wait_slow(w, turn);
}

/**
 * Let the next slot have its turn, unless more of this one is still to come to it. Every
 * slot passes all turns at the latest when it is done.
 */
static inline void
steer_turn_pass(struct worker *w, enum steer_turn turn)
{
	if (unlikely(w->slot != NULL))
		steer_turn_pass_slow(w, turn);
}

/** Has this slot passed already? What still comes to that turn belongs into a later one. */
static inline bool
steer_turn_passed(const struct worker *w, enum steer_turn turn)
{
	return unlikely(w->slot != NULL) && steer_turn_passed_slow(w, turn);
}

// ---- between steer.c and the other two ----

enum steer_kind {
	STEER_ODD,   // no IP, broken, or neighbour discovery: nobody else's
	STEER_FIXED, // a fragment: always with the others of its addresses and protocol
	STEER_FLOW,  // of a flow
};

/** What flow a raw frame belongs to. hash is set unless STEER_ODD is returned. */
enum steer_kind steer_hash(const struct tables *t, const struct rte_mbuf *m, uint64_t seed,
			   uint32_t *hash);

/** A burst of rx queue i of the worker. m->port is sgw's own index from here on. */
uint16_t steer_rx(struct worker *w, uint16_t i, struct rte_mbuf **pkts, uint16_t n);

/** Packets that another core has touched last: fetch what inbound() looks at. */
void steer_fetch(struct rte_mbuf **pkts, uint16_t n);

int flows_start(void);
void flows_free(void);
bool flows_poll(struct worker *w);
void flows_drain(struct worker *w);

int bursts_start(void);
void bursts_free(void);
bool bursts_poll(struct worker *w);
void bursts_drain(struct worker *w);
bool bursts_enter(struct worker *w);
