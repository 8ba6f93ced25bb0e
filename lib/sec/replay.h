/* SPDX-License-Identifier: BSD-3-Clause */
// Our own anti-replay window: a bitmap ring in the shape of RFC 6479, exact for
// any size. librte_ipsec's lets half of all replays through (docs/librte.md).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_MAX 4096 // packets
#define REPLAY_WORD_BITS 64

enum replay_verdict {
	REPLAY_FRESH, // may pass, if its ICV holds
	REPLAY_SEEN,  // was accepted before
	REPLAY_LATE,  // left of the window, or sequence number zero
};

struct replay {
	uint64_t top;       // highest sequence number accepted
	uint32_t size;      // window in packets, 0: off (only zero is refused)
	uint32_t words;     // power of two, at least one more than the window needs
	uint32_t esn_width; // width with which the high half is inferred, 0: no ESN
	uint64_t bits[];    // ring of words, bit (sequence mod 64) of word (sequence / 64)
};

// Who looks before the crypto holds no lock: what is read then is one value that was
// there, though maybe an old one, and behind a new top are words that were cleared for it.
static inline uint64_t
replay_top(const struct replay *r)
{
	return __atomic_load_n(&r->top, __ATOMIC_ACQUIRE);
}

// The word of the ring that a word of sequence numbers has.
static inline uint64_t *
replay_word(struct replay *r, uint64_t word)
{
	return &r->bits[word & (r->words - 1)];
}

static inline uint64_t
replay_bit(uint64_t sequence)
{
	return UINT64_C(1) << (sequence % REPLAY_WORD_BITS);
}

/** Bytes that a window of this size takes. */
uint32_t replay_bytes(uint32_t size);

/**
 * Set up a window in memory of replay_bytes(size).
 *
 * @param size       0…REPLAY_MAX
 * @param esn_width  0 without ESN; else the window width W of RFC 4303 appendix
 *                   A2.1 used to infer the high half, ≥ size (librte_ipsec must
 *                   infer the same, so it is its width, not ours)
 * @param top        highest sequence number taken as seen already; everything
 *                   up to it counts as seen
 */
void replay_init(struct replay *r, uint32_t size, uint32_t esn_width, uint64_t top);

/**
 * The full sequence number of a packet, RFC 4303 appendix A2.1; without ESN the
 * low half itself.
 * @param low  from the packet, host byte order
 */
static inline uint64_t
replay_infer(const struct replay *r, uint32_t low)
{
	uint64_t top = replay_top(r);
	uint32_t top_low = (uint32_t)top;
	uint32_t high = (uint32_t)(top >> 32);
	uint32_t left = top_low - r->esn_width + 1;

	if (r->esn_width == 0)
		return low;
	// RFC 4303 appendix A2.1. Case A: the window lies in one subspace.
	if (top_low >= r->esn_width - 1)
		high += low < left;
	else if (high != 0) // case B: it spans two; below the first there is none
		high -= low >= left;
	return (uint64_t)high << 32 | low;
}

/** May this one pass? Changes nothing. Before the crypto, and without a lock. */
static inline enum replay_verdict
replay_check(const struct replay *r, uint64_t sequence)
{
	uint64_t top = replay_top(r), word;

	// RFC 4303 section 2.2: the first packet has 1.
	if (sequence == 0)
		return REPLAY_LATE;
	if (sequence > top || r->size == 0)
		return REPLAY_FRESH;
	if (top - sequence >= r->size)
		return REPLAY_LATE;
	word = __atomic_load_n(&r->bits[sequence / REPLAY_WORD_BITS & (r->words - 1)], __ATOMIC_RELAXED);
	if (word & replay_bit(sequence))
		return REPLAY_SEEN;
	return REPLAY_FRESH;
}

/**
 * Mark it as seen and slide the window: after its ICV was found right, never
 * before (RFC 4303 section 3.4.3). Checks once more, since two copies can be in
 * one burst. One at a time: where workers share the SA, under its lock.
 * @return REPLAY_FRESH when it was marked, else as replay_check()
 */
static inline enum replay_verdict
replay_commit(struct replay *r, uint64_t sequence)
{
	enum replay_verdict verdict = replay_check(r, sequence);
	uint64_t *at;

	if (verdict != REPLAY_FRESH)
		return verdict;
	if (sequence > r->top) {
		uint64_t word = r->top / REPLAY_WORD_BITS;
		uint64_t steps = sequence / REPLAY_WORD_BITS - word;

		if (steps > r->words)
			steps = r->words;
		while (steps-- > 0)
			__atomic_store_n(replay_word(r, ++word), 0, __ATOMIC_RELAXED);
		__atomic_store_n(&r->top, sequence, __ATOMIC_RELEASE);
	}
	at = replay_word(r, sequence / REPLAY_WORD_BITS);
	__atomic_store_n(at, *at | replay_bit(sequence), __ATOMIC_RELAXED);
	return REPLAY_FRESH;
}
