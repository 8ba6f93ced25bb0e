/* SPDX-License-Identifier: BSD-3-Clause */
#include "sad.h"

#include "mix.h"
#include "sa.h"

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include <string.h>

// An SA of which nothing has to be read to know whether it is the right one.
struct slot {
	uint64_t key[3]; // SPI and IPv4 address, or IPv6 address and SPI
	struct sa *sa;   // NULL: free, and the end of a search
};

// Open addressing: an SA stands in the first slot that was free from its own on. At
// least half of them stay free.
struct table {
	struct slot *slots;
	uint32_t mask;  // number of slots − 1
	uint32_t n;     // taken
	uint32_t most;  // of n
	uint8_t shift;  // of a hash, to a slot
};

struct sad {
	struct table by_family[2]; // v4, v6
};

struct sad *
sad_create(uint32_t n_sas, struct err *err)
{
	struct sad *sad = rte_zmalloc("sad", sizeof(*sad), 0);
	uint32_t n = rte_align32pow2(RTE_MAX(2 * n_sas, 16u));

	for (unsigned int i = 0; sad != NULL && i < 2; i++) {
		struct table *t = &sad->by_family[i];

		*t = (struct table){.mask = n - 1, .most = n / 2, .shift = (uint8_t)(64 - rte_log2_u32(n))};
		t->slots = rte_zmalloc("sad_slots", n * sizeof(*t->slots), RTE_CACHE_LINE_SIZE);
		if (t->slots == NULL) {
			sad_free(sad);
			sad = NULL;
		}
	}
	if (sad == NULL)
		err_set(err, EXIT_RESOURCE, -ENOMEM, "sad: no memory for %u SAs; provide more hugepages, "
			"or with --no-huge give more with -m", n_sas);
	return sad;
}

void
sad_free(struct sad *sad)
{
	if (sad == NULL)
		return;
	rte_free(sad->by_family[0].slots);
	rte_free(sad->by_family[1].slots);
	rte_free(sad);
}

// @return words of the key
static __rte_always_inline uint32_t
fill_key(uint64_t key[3], uint8_t family, uint32_t spi_be, const uint8_t *dst)
{
	if (family == 4) {
		uint32_t be;

		memcpy(&be, dst, 4);
		key[0] = (uint64_t)spi_be << 32 | be;
		return 1;
	}
	memcpy(key, dst, 16);
	key[2] = spi_be;
	return 3;
}

int
sad_add(struct sad *sad, struct sa *sa, struct err *err)
{
	struct table *t = &sad->by_family[sa->family == 6];
	uint64_t key[3] = {0};
	uint32_t words = fill_key(key, sa->family, rte_cpu_to_be_32(sa->spi), sa->dst.b);
	uint32_t at = (uint32_t)(mix(key, words) >> t->shift);

	while (t->slots[at].sa != NULL && memcmp(t->slots[at].key, key, sizeof(key)) != 0)
		at = (at + 1) & t->mask;
	if (t->slots[at].sa != NULL || t->n == t->most)
		return err_set(err, EXIT_BUG, t->n == t->most ? -ENOSPC : -EEXIST, "sa %s: can not be added "
			       "to the SAD, %s", sa->name, t->n == t->most ? "it is full" : "it is there");
	t->slots[at].sa = sa;
	memcpy(t->slots[at].key, key, sizeof(key));
	t->n++;
	return 0;
}

// All slots are on their way to the cache before the first one is looked at.
static __rte_always_inline void
find(const struct table *t, uint8_t family, const struct sad_key *keys, struct sa **out, uint32_t n)
{
	uint64_t key[SAD_BURST][3];
	uint32_t at[SAD_BURST], words = 0;

	for (uint32_t i = 0; i < n; i++) {
		words = fill_key(key[i], family, keys[i].spi_be, keys[i].dst);
		at[i] = (uint32_t)(mix(key[i], words) >> t->shift);
		rte_prefetch0(&t->slots[at[i]]);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = &t->slots[at[i]];

		while (s->sa != NULL && (s->key[0] != key[i][0] ||
					 (words == 3 && (s->key[1] != key[i][1] || s->key[2] != key[i][2]))))
			s = &t->slots[(s - t->slots + 1) & t->mask];
		out[i] = s->sa;
	}
}

void
sad_find(const struct sad *sad, uint8_t family, const struct sad_key *keys, struct sa **out,
	 uint32_t n)
{
	if (family == 4)
		find(&sad->by_family[0], 4, keys, out, n);
	else
		find(&sad->by_family[1], 6, keys, out, n);
}
