/* SPDX-License-Identifier: BSD-3-Clause */
// Keeps the sequence numbers in the state file ahead of the workers: numbers are
// on disk before a worker may use them (sec/state.h says why).
#pragma once

#include "err.h"

#include <stdint.h>

struct sa;
struct state;

/**
 * The first reservation of all outbound SAs, before any worker starts. Without
 * it they drop with sa_sequence_reserve.
 * @param state  may be NULL: there is no state file, limits are the ends
 */
int reserve_start(struct state *state, struct sa **sas, uint32_t n_sas, struct err *err);

/**
 * Look after all SAs; called by the control thread every RESERVE_MS.
 * @param ticks  how many such times have passed since the last call, 1 or more
 */
void reserve_tick(uint64_t ticks);
#define RESERVE_MS 50

/** Workers have stopped, or never ran: write what was really used, so that nothing is wasted. */
void reserve_stop(void);
