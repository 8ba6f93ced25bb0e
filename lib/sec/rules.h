/* SPDX-License-Identifier: BSD-3-Clause */
// Which of many policies of one direction and family a packet meets first.
//
// Rules that look at the same bits stand in one hash table, a "tuple": policies of
// /24 to /24 are one lookup, however many there are. A rule that no bits describe (a
// range) stands under the bits that all of it has in common, and is compared in full.
// Every rule is one entry, so that memory and time to build are those of the number of
// policies.
//
// Built once, then only read.
#pragma once

#include "spd.h"

#include <stdint.h>

#define RULES_NONE UINT32_MAX

struct rules;

/** @param n  rules that will be added @return NULL: no memory */
struct rules *rules_create(uint8_t family, uint32_t n);
/** In the order in which they are to be met. @param index  what a match returns */
void rules_add(struct rules *r, const struct cfg_policy *p, uint32_t index);
/** After the last one. @return 0 or -ENOMEM */
int rules_build(struct rules *r);
/** @param out  n ≤ SPD_BURST indices, RULES_NONE where nothing fits */
void rules_match(const struct rules *r, const struct spd_key *const *keys, uint32_t *out, uint32_t n);
void rules_free(struct rules *r);
