/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

// A window at an odd offset touches one word more than its size fills. With that
// word spare, whole words can be cleared as the top moves into them, and no
// sequence number inside the window shares its bit with another.
static uint32_t
words_for(uint32_t size)
{
	uint32_t need = (size + REPLAY_WORD_BITS - 1) / REPLAY_WORD_BITS + 1;
	uint32_t words = 1;

	while (words < need)
		words *= 2;
	return words;
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
	*replay_word(r, top / REPLAY_WORD_BITS) = replay_bit(top) | (replay_bit(top) - 1);
}
