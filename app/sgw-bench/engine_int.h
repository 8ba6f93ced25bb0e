/* SPDX-License-Identifier: BSD-3-Clause */
// What engine.c and engine_trial.c share.
#pragma once

#include "end.h"
#include "engine.h"
#include "receive.h"
#include "send.h"

#define STEP_US 20000 // of the control thread

struct gateway;

// What an lcore does in turn.
struct lane {
	struct sender *sender[2];
	struct receiver *receiver[2];
	uint64_t busy, all;         // TSC, since it was launched
	uint64_t busy0, all0;       // control's: the same when the trial began
	_Atomic uint64_t rounds;    // that it has ended
	bool nap;
	atomic_bool stop;
};

struct engine {
	const struct args *args;
	bool eal, ends_up, lanes_up;
	bool one_port;      // -t is -r
	struct end ends[2]; // -t, -r
	struct rte_mempool *pool;
	struct gateway *gateway;
	const char *gateway_file;
	unsigned int n_streams;
	struct shape shapes[2]; // of the streams
	const struct tunnel **tunnels[2];
	struct sender senders[2];     // by stream; the second goes from -r to -t
	struct receiver receivers[2]; // by port
	struct lane lanes[4];
	unsigned int n_lanes;
	uint64_t key;
};

/** The port of a role, 0: -t, 1: -r. */
struct end *engine_end(struct engine *e, unsigned int i);
bool engine_links_up(const struct engine *e);
