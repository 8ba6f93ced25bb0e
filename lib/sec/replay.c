/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

#define WORD_BITS 64

// A window at an odd offset touches one word more than its size fills. With that
// word spare, whole words can be cleared as the top moves into them, and no
// sequence number inside the window shares its bit with another.
static uint32_t
words_for(uint32_t size)
{
	uint32_t need = (size + WORD_BITS - 1) / WORD_BITS + 1;
	uint32_t words = 1;

	while (words < need)
		words *= 2;
	return words;
}

static uint64_t *
word_at(struct replay *r, uint64_t word)
{
	return &r->bits[word & (r->words - 1)];
}

static uint64_t
bit_of(uint64_t sequence)
{
	return UINT64_C(1) << (sequence % WORD_BITS);
}

uint32_t
replay_bytes(uint32_t size)
{
	return (uint32_t)(sizeof(struct replay) + words_for(size) * sizeof(uint64_t));
}

void
replay_init(struct replay *r, uint32_t size, uint32_t esn_width, uint64_t top)
{
	r->top = top;
	r->size = size;
	r->words = words_for(size);
	r->esn_width = esn_width;
	for (uint32_t i = 0; i < r->words; i++)
		r->bits[i] = UINT64_MAX;
	// Everything up to the top counts as seen, nothing above it does.
	*word_at(r, top / WORD_BITS) = bit_of(top) | (bit_of(top) - 1);
}

uint64_t
replay_infer(const struct replay *r, uint32_t low)
{
	uint32_t top_low = (uint32_t)r->top;
	uint32_t high = (uint32_t)(r->top >> 32);
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

enum replay_verdict
replay_check(const struct replay *r, uint64_t sequence)
{
	// RFC 4303 section 2.2: the first packet has 1.
	if (sequence == 0)
		return REPLAY_LATE;
	if (sequence > r->top || r->size == 0)
		return REPLAY_FRESH;
	if (r->top - sequence >= r->size)
		return REPLAY_LATE;
	if (r->bits[sequence / WORD_BITS & (r->words - 1)] & bit_of(sequence))
		return REPLAY_SEEN;
	return REPLAY_FRESH;
}

enum replay_verdict
replay_commit(struct replay *r, uint64_t sequence)
{
	enum replay_verdict verdict = replay_check(r, sequence);

	if (verdict != REPLAY_FRESH)
		return verdict;
	if (sequence > r->top) {
		uint64_t word = r->top / WORD_BITS;
		uint64_t steps = sequence / WORD_BITS - word;

		if (steps > r->words)
			steps = r->words;
		while (steps-- > 0)
			*word_at(r, ++word) = 0;
		r->top = sequence;
	}
	*word_at(r, sequence / WORD_BITS) |= bit_of(sequence);
	return REPLAY_FRESH;
}
