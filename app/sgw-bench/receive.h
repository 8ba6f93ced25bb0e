/* SPDX-License-Identifier: BSD-3-Clause */
// Receiving on one port: every frame is of the stream, or is named as something else.
#pragma once

#include "account.h"
#include "end.h"
#include "shape.h"
#include "trial.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;

#define RECEIVE_BURST 64

struct receiver {
	struct end *end;
	struct worker *open;       // NULL: nothing is ESP
	const struct shape *shape; // NULL: no stream ends here, only ARP and ND
	struct account account;

	// of a trial; set while not counting
	uint64_t keys[KEYS]; // the newest first
	double ns_per_tick; // of struct sig.time
	atomic_bool counting;

	// the receiver's, read by control when it does not count
	struct stream_result out;         // received … in_clear, latency
	uint64_t esp_bad0, esp_replayed0; // at the beginning
	_Atomic uint64_t received;        // for control to see while it counts
	uint64_t last;                    // TSC of the last packet
	uint64_t icmp_errors;             // that came
	uint8_t icmp_type, icmp_code;     // of the last one
};

/** Set up for a trial; then set counting. */
void receiver_begin(struct receiver *r, uint64_t key);
/** After counting was cleared, and a round of receiver_poll(). */
void receiver_end(struct receiver *r);

/** A round. @return true when there was something to do */
bool receiver_poll(struct receiver *r);
