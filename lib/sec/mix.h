/* SPDX-License-Identifier: BSD-3-Clause */
// The hash of the lookup tables in this room. What is found is always compared in full,
// so that a bad day of the hash costs time only; and packets put nothing in, so that
// nobody outside makes chains longer than the configuration has made them.
#pragma once

#include <stdint.h>

// Both halves of a product: every bit of either factor is in there.
static inline uint64_t
mix_pair(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15) * (b ^ 0xc2b2ae3d27d4eb4f);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/** Of 1, 2, 3 or 5 words; its high bits are the good ones. */
static inline uint64_t
mix(const uint64_t *w, uint32_t n)
{
	uint64_t h = w[0];

	// Pairs by themselves, so that the products need not wait for each other.
	if (n >= 2)
		h = mix_pair(w[0], w[1]);
	if (n == 3)
		h += w[2] * 0xd6e8feb86659fd93;
	if (n == 5)
		h += mix_pair(w[3], w[2]) * 3 + w[4] * 0xd6e8feb86659fd93;
	return mix_pair(h, 0);
}
