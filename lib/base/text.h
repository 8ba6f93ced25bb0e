/* SPDX-License-Identifier: BSD-3-Clause */
// Strict readers of numbers, and the guess at what a misspelt word meant.
#pragma once

#include <stdint.h>

/**
 * Parse an unsigned integer: decimal without leading zero, or 0x and hex
 * digits. No sign, space, underscore or exponent.
 * @return 0, -EINVAL (not such a number) or -ERANGE (above 2^64-1)
 */
int text_u64(const char *text, uint64_t *out);

/**
 * How many letters must be changed, added, left out or swapped with their
 * neighbour to make one word of the other. Words above 63 letters are never
 * near: UINT32_MAX.
 */
uint32_t text_distance(const char *a, const char *b);
