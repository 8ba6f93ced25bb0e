/* SPDX-License-Identifier: BSD-3-Clause */
// How near sgw is to its own limit, over the last second: so that who measures through it
// knows whether the result is the device's or ours. docs/counters.md says how to read it.
//
// What a packet costs falls as bursts grow, tenfold where ipsec-mb fills its lanes: so load
// says little, and packets ÷ busy cycles is only the least that sgw could do. Bursts are full
// at the limit. So what a packet cost when they were is remembered, and holds as long as
// packets have about the same length.
#pragma once

#include "worker.h"

#include <stdbool.h>
#include <stdint.h>

#define HEADROOM_TICKS 20 // of RESERVE_MS: a window of one second

enum headroom_state {
	HEADROOM_STARTING, // there is no window yet
	HEADROOM_STALLED,  // a worker does not end its rounds: nothing can be said
	HEADROOM_SILENT,   // no packets: nothing to predict from
	HEADROOM_MEASURED,
};

// One worker in the window.
struct headroom_worker {
	uint64_t packets_s;     // packets worked on (not steer_full), a second
	uint64_t packet_cycles; // of busy rounds, a packet; 0: no packets
	uint64_t full_cycles;   // the same when bursts were full; 0: not known for these packets
	uint64_t limit_s;       // packets a second that it could do; 0: no packets
	uint64_t headroom;      // limit ÷ offered, in 1/1000; 0: it was never busy
	uint32_t load;          // busy of all its cycles, in 1/1000
	uint32_t turn;          // waiting for a turn (steer.h) of all its cycles, in 1/1000
	uint32_t burst;         // packets of a busy round, in 1/1000 of BURST
	bool at_least;          // the limit is a lower bound: bursts were not full
};

struct headroom {
	enum headroom_state state;
	uint64_t window_ms;
	uint64_t age_ms;       // of the end of the window
	uint64_t packets_s;    // of all workers
	uint64_t limit_s;      // packets_s × headroom; 0 unless measured
	uint64_t headroom;     // of the worker that has least, in 1/1000; 0 unless measured
	unsigned int nearest;  // its index: the one that decides
	struct headroom_worker workers[WORKER_MAX]; // n_workers of them
};

/**
 * Begin anew, without a window. Before the first headroom_tick().
 * @param hz  TSC ticks a second, not 0
 */
void headroom_start(uint64_t hz);

/**
 * Take the workers' counters; called by the control thread every RESERVE_MS.
 * @param now  TSC
 */
void headroom_tick(uint64_t now);

/**
 * What the last HEADROOM_TICKS ticks say, the same for all who ask. From any thread.
 * @param now  TSC, not before the last tick's
 */
void headroom_read(uint64_t now, struct headroom *out);

/** A state in words, as telemetry gives it. */
const char *headroom_state_name(enum headroom_state state);
