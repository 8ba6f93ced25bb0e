/* SPDX-License-Identifier: BSD-3-Clause */
// Lifetimes of SAs (RFC 4301 section 4.4.2.1). Hard ends in bytes and packets are cut
// by the workers at the packet; here are the seconds, and the soft ends, which are told;
// and the peers behind a NAT that have moved.
#pragma once

#include <stdint.h>

struct sa;

/** The seconds of all SAs count from here. */
void lifetime_start(struct sa **sas, uint32_t n_sas);

/** Look after all SAs; called by the control thread every RESERVE_MS. */
void lifetime_tick(void);
