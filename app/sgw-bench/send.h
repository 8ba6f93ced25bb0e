/* SPDX-License-Identifier: BSD-3-Clause */
// Sending a stream at an exact rate: at any moment as many packets are due as the time since
// the start says.
#pragma once

#include "end.h"
#include "shape.h"

#include <rte_mbuf.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tunnel;
struct worker;

#define SEND_BURST 32

struct sender {
	// of a case
	const struct shape *shape;
	struct end *end;
	struct rte_mempool *pool;
	struct worker *seal;           // NULL: in clear
	const struct tunnel **tunnels; // by flow

	// of a trial
	uint64_t key;          //
	uint64_t start;        // TSC
	uint64_t deadline;     // TSC: what was not sent by then is not sent
	double per_tick;       // packets
	uint64_t total;        // packets
	uint64_t lag;          // packets that may be made up for in a rush after a pause
	atomic_bool running;   // set by control, cleared by the sender
	_Atomic double slower; // packets a tick from now on, set by control; 0: no

	// the sender's
	uint64_t forgiven;   // packets that were never made up for
	uint64_t made;       // packets
	uint32_t flow;       // of the next
	uint64_t seq;        //
	uint64_t sent;       // packets the port took, or whose loss is the device's
	uint64_t refused;    // of these: the ring of a virtual port was full
	uint64_t sent_bytes; // of clear frames
	uint64_t last;       // TSC of the last one
	uint16_t at, n;      // waiting for the port: pending[at … n)
	struct rte_mbuf *pending[SEND_BURST];
	uint16_t lens[SEND_BURST]; // of the clear frames
};

/** Set up for a trial; then set running. @param lag_s  seconds */
void sender_begin(struct sender *s, double pps, double seconds, double lag_s, uint64_t key);

/** A round. @return true when there was something to do */
bool sender_poll(struct sender *s);

/** TSC ticks until something is due, 0: now. */
uint64_t sender_pause(const struct sender *s);
