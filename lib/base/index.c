/* SPDX-License-Identifier: BSD-3-Clause */
#include "index.h"

#include <stdlib.h>
#include <string.h>

// Open addressing; at least half of the slots stay free.
struct index {
	size_t key_size;
	uint32_t wrap;     // number of slots − 1
	uint32_t *numbers; // INDEX_NONE: free
	uint8_t *keys;
};

struct index *
index_create(uint32_t n, size_t key_size)
{
	struct index *x = calloc(1, sizeof(*x));
	uint32_t slots = 16;

	if (x == NULL)
		return NULL;
	while (slots / 2 < n)
		slots *= 2;
	*x = (struct index){.key_size = key_size, .wrap = slots - 1};
	x->numbers = malloc(slots * sizeof(*x->numbers));
	x->keys = malloc(slots * key_size);
	if (x->numbers == NULL || x->keys == NULL) {
		index_free(x);
		return NULL;
	}
	memset(x->numbers, 0xff, slots * sizeof(*x->numbers));
	return x;
}

void
index_free(struct index *x)
{
	if (x == NULL)
		return;
	free(x->numbers);
	free(x->keys);
	free(x);
}

// The slot of a key, or the free one where it would stand.
static uint32_t
slot_of(const struct index *x, const void *key)
{
	const uint8_t *b = key;
	uint64_t h = 0;
	uint32_t at;

	for (size_t i = 0; i < x->key_size; i++)
		h = (h ^ b[i]) * 0x9e3779b97f4a7c15 + (h >> 29);
	at = (uint32_t)(h >> 32) & x->wrap;
	while (x->numbers[at] != INDEX_NONE && memcmp(x->keys + at * x->key_size, key, x->key_size) != 0)
		at = (at + 1) & x->wrap;
	return at;
}

uint32_t
index_find(const struct index *x, const void *key)
{
	return x->numbers[slot_of(x, key)];
}

uint32_t
index_put(struct index *x, const void *key, uint32_t number)
{
	uint32_t at = slot_of(x, key);

	if (x->numbers[at] != INDEX_NONE)
		return x->numbers[at];
	memcpy(x->keys + at * x->key_size, key, x->key_size);
	x->numbers[at] = number;
	return number;
}
