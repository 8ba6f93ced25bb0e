/* SPDX-License-Identifier: BSD-3-Clause */
// What came of a stream's packets: each counted as received once, as a duplicate, or as
// out of order (RFC 4737). One writer, the lcore that receives.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Per flow: which of the last WINDOW numbers came, and the last ones in their order of
// arrival. The more flows, the less of both; 4 MiB bits and 64 Ki arrivals together.
struct account_flow {
	uint64_t next;  // all below came or may still come
	uint64_t count; // arrivals
};

struct account {
	uint32_t n_flows;
	uint32_t window;   // numbers a flow, a power of two ≥ 64
	uint32_t arrivals; // remembered a flow, a power of two
	struct account_flow *flows;
	uint64_t *bits;
	uint32_t *last;
	// totals
	uint64_t received;
	uint64_t duplicated;
	uint64_t reordered;
	uint32_t extent; // largest
};

/** @return 0 or -ENOMEM */
int account_create(struct account *a, uint32_t n_flows);
void account_free(struct account *a);
/** Forget everything, for the next trial. */
void account_reset(struct account *a);

/** All of a sequence number of which 32 bits came. */
static inline uint64_t
account_infer(const struct account *a, uint32_t flow, uint32_t seq)
{
	uint64_t next = a->flows[flow].next;

	// The difference is signed: up to 2^31 ahead or behind.
	return next + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)next);
}

/**
 * A packet has come. What is further behind than the window counts as received and out of
 * order: whether it is a duplicate can not be told.
 * @param seq  all 64 bits
 */
void account_add(struct account *a, uint32_t flow, uint64_t seq);
