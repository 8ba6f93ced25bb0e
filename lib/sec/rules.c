/* SPDX-License-Identifier: BSD-3-Clause */
#include "rules.h"

#include "mix.h"

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// The selectors as words: IPv4 src and dst, ports and protocol; IPv6 src, dst, the rest.
#define WORDS4 2
#define WORDS6 5

struct rule {
	uint64_t mask[WORDS6];
	uint64_t key[WORDS6];      // what the bits of the mask must be
	uint32_t index;
	bool whole;                // the bits say all: nothing else to compare
	uint16_t sport[2];         // else these
	uint16_t dport[2];         //
	uint64_t src[2][2];        // first and last, as numbers: high half, low half
	uint64_t dst[2][2];        //
};

// A slot of a tuple. IPv4 has two of them in a cache line (SLOT4_BYTES), with as much of
// the key as it has words; IPv6 one.
struct slot {
	uint32_t rule;   // its number + 1, 0: free, and the end of a search
	uint32_t partly; // the rule must be compared in full
	uint64_t key[WORDS6];
};

#define SLOT4_BYTES 32
#define SLOT6_BYTES 64
_Static_assert(offsetof(struct slot, key) + WORDS4 * 8 <= SLOT4_BYTES, "a slot of IPv4");
_Static_assert(sizeof(struct slot) <= SLOT6_BYTES, "a slot of IPv6");

struct tuple {
	uint64_t mask[WORDS6];
	char *slots;     // a power of two of them
	uint32_t wrap;   // number of slots − 1
	uint32_t n;      // rules
	uint32_t first;  // its least rule + 1
	uint8_t shift;   // of a hash, to a slot
};

struct rules {
	bool v6;
	uint32_t n_rules;
	struct rule *rules;      // in the order in which they are met
	uint32_t n_tuples;
	struct tuple *tuples;    // those with early rules first
};

struct rules *
rules_create(uint8_t family, uint32_t n)
{
	struct rules *r = rte_zmalloc("rules", sizeof(*r), 0);

	if (r == NULL)
		return NULL;
	r->v6 = family == 6;
	r->rules = rte_zmalloc("rules_list", n * sizeof(*r->rules), RTE_CACHE_LINE_SIZE);
	if (r->rules == NULL) {
		rte_free(r);
		return NULL;
	}
	return r;
}

void
rules_free(struct rules *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->n_tuples; i++)
		rte_free(r->tuples[i].slots);
	rte_free(r->tuples);
	rte_free(r->rules);
	rte_free(r);
}

// ---------------------------------------------------------------- words

static __rte_always_inline void
fill_words(uint64_t *w, const struct spd_key *k, bool v6)
{
	uint32_t ports;

	memcpy(&ports, &k->sport_be, 4);
	memcpy(w, k->addrs, v6 ? 32 : 8);
	w[v6 ? 4 : 1] = (uint64_t)k->proto << 32 | ports;
}

// An address as a number, to compare ranges.
static __rte_always_inline void
fill_number(uint64_t n[2], const uint8_t *addr, bool v6)
{
	uint32_t be;

	if (v6) {
		memcpy(n, addr, 16);
		n[0] = rte_be_to_cpu_64(n[0]);
		n[1] = rte_be_to_cpu_64(n[1]);
		return;
	}
	memcpy(&be, addr, 4);
	n[0] = 0;
	n[1] = rte_be_to_cpu_32(be);
}

// The bits that all addresses of a range have in common.
static uint32_t
common_bits(const struct range *r)
{
	uint32_t all = (uint32_t)addr_size(r->first.family) * 8, n = 0;

	while (n < all && ((r->first.b[n / 8] ^ r->last.b[n / 8]) & 0x80 >> n % 8) == 0)
		n++;
	return n;
}

// Mask and value of a selector of addresses. @return it says all
static bool
fill_addr(const struct range *r, uint8_t *mask, uint8_t *value)
{
	uint32_t bits = common_bits(r);
	struct prefix p = {.addr = r->first, .len = (uint8_t)bits};
	struct range net = prefix_range(&p);
	bool whole = addr_cmp(&net.first, &r->first) == 0 && addr_cmp(&net.last, &r->last) == 0;

	// Ranges are of many shapes: full bytes only, or each would be a tuple of its own.
	if (!whole)
		bits &= ~7u;
	for (uint32_t i = 0; i < bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	for (size_t i = 0; i < addr_size(r->first.family); i++)
		value[i] = r->first.b[i] & mask[i];
	return whole;
}

static bool
fill_ports(const uint16_t ports[2], uint16_t *mask_be, uint16_t *value_be)
{
	uint16_t mask = 0;

	if (ports[0] == ports[1])
		mask = UINT16_MAX;
	else if (ports[0] >> 8 == ports[1] >> 8)
		mask = 0xff00;
	*mask_be = rte_cpu_to_be_16(mask);
	*value_be = rte_cpu_to_be_16(ports[0] & mask);
	return ports[0] == ports[1] || (ports[0] == 0 && ports[1] == UINT16_MAX);
}

void
rules_add(struct rules *r, const struct cfg_policy *p, uint32_t index)
{
	struct rule *rule = &r->rules[r->n_rules++];
	struct spd_key mask = {.proto = p->any_proto ? 0 : 0xff};
	struct spd_key value = {.proto = p->any_proto ? 0 : p->proto};
	size_t size = r->v6 ? 16 : 4;

	*rule = (struct rule){.index = index, .whole = true};
	fill_number(rule->src[0], p->src.first.b, r->v6);
	fill_number(rule->src[1], p->src.last.b, r->v6);
	fill_number(rule->dst[0], p->dst.first.b, r->v6);
	fill_number(rule->dst[1], p->dst.last.b, r->v6);
	memcpy(rule->sport, p->sport, sizeof(rule->sport));
	memcpy(rule->dport, p->dport, sizeof(rule->dport));
	rule->whole &= fill_addr(&p->src, mask.addrs, value.addrs);
	rule->whole &= fill_addr(&p->dst, mask.addrs + size, value.addrs + size);
	rule->whole &= fill_ports(p->sport, &mask.sport_be, &value.sport_be);
	rule->whole &= fill_ports(p->dport, &mask.dport_be, &value.dport_be);
	fill_words(rule->mask, &mask, r->v6);
	fill_words(rule->key, &value, r->v6);
}

// ---------------------------------------------------------------- building

static __rte_always_inline struct slot *
slot_get(const struct tuple *t, uint32_t at, bool v6)
{
	return (struct slot *)(t->slots + (size_t)at * (v6 ? SLOT6_BYTES : SLOT4_BYTES));
}

// Rules of one key keep their order: an earlier one stands in an earlier slot.
static void
tuple_add(struct rules *r, struct tuple *t, uint32_t number)
{
	const uint32_t words = r->v6 ? WORDS6 : WORDS4;
	const struct rule *rule = &r->rules[number];
	uint32_t at = (uint32_t)(mix(rule->key, words) >> t->shift);

	while (slot_get(t, at, r->v6)->rule != 0)
		at = (at + 1) & t->wrap;
	slot_get(t, at, r->v6)->rule = number + 1;
	slot_get(t, at, r->v6)->partly = !rule->whole;
	memcpy(slot_get(t, at, r->v6)->key, rule->key, words * 8);
}

// To find rules of one mask together: by mask, then by number.
static int
mask_cmp(const void *left, const void *right)
{
	const struct rule *a = *(const struct rule *const *)left, *b = *(const struct rule *const *)right;
	int rc = memcmp(a->mask, b->mask, sizeof(a->mask));

	return rc != 0 ? rc : a < b ? -1 : a > b;
}

static int
first_cmp(const void *left, const void *right)
{
	const struct tuple *a = left, *b = right;

	return a->first < b->first ? -1 : a->first > b->first;
}

// The tuples that sorted rules need. @return how many; filled in where tuples is not NULL
static uint32_t
tuples_list(const struct rules *r, const struct rule *const *sorted, struct tuple *tuples)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_rules; i++) {
		if (i == 0 || memcmp(sorted[i]->mask, sorted[i - 1]->mask, sizeof(sorted[i]->mask)) != 0) {
			if (tuples != NULL) {
				memcpy(tuples[n].mask, sorted[i]->mask, sizeof(tuples[n].mask));
				tuples[n].first = (uint32_t)(sorted[i] - r->rules) + 1;
			}
			n++;
		}
		if (tuples != NULL)
			tuples[n - 1].n++;
	}
	return n;
}

static int
tuple_fill(struct rules *r, struct tuple *t, const struct rule *const *sorted)
{
	uint32_t n = rte_align32pow2(RTE_MAX(2 * t->n, 2u));

	t->wrap = n - 1;
	t->shift = (uint8_t)(64 - rte_log2_u32(n));
	t->slots = rte_zmalloc("rules_slots", n * (r->v6 ? SLOT6_BYTES : SLOT4_BYTES),
			       RTE_CACHE_LINE_SIZE);
	if (t->slots == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		tuple_add(r, t, (uint32_t)(sorted[i] - r->rules));
	return 0;
}

static int
tuples_build(struct rules *r, const struct rule *const *sorted)
{
	uint32_t done = 0, n = tuples_list(r, sorted, NULL);

	r->tuples = rte_zmalloc("rules_tuples", n * sizeof(*r->tuples), RTE_CACHE_LINE_SIZE);
	if (r->tuples == NULL)
		return -ENOMEM;
	r->n_tuples = tuples_list(r, sorted, r->tuples);
	for (uint32_t i = 0; i < n; i++) {
		if (tuple_fill(r, &r->tuples[i], sorted + done) != 0)
			return -ENOMEM;
		done += r->tuples[i].n;
	}
	qsort(r->tuples, n, sizeof(*r->tuples), first_cmp);
	return 0;
}

int
rules_build(struct rules *r)
{
	const struct rule **sorted = calloc(r->n_rules + 1, sizeof(*sorted));
	int rc;

	if (sorted == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_rules; i++)
		sorted[i] = &r->rules[i];
	qsort(sorted, r->n_rules, sizeof(*sorted), mask_cmp);
	rc = tuples_build(r, sorted);
	free(sorted);
	return rc;
}

// ---------------------------------------------------------------- looking

static __rte_always_inline bool
range_holds(const uint64_t range[2][2], const uint64_t n[2])
{
	return (n[0] > range[0][0] || (n[0] == range[0][0] && n[1] >= range[0][1])) &&
	       (n[0] < range[1][0] || (n[0] == range[1][0] && n[1] <= range[1][1]));
}

static __rte_always_inline bool
rule_holds(const struct rule *rule, const uint64_t *w, bool v6)
{
	const uint8_t *addrs = (const uint8_t *)w;
	uint64_t src[2], dst[2];
	uint16_t be[2], sport, dport;

	fill_number(src, addrs, v6);
	fill_number(dst, addrs + (v6 ? 16 : 4), v6);
	memcpy(be, &w[v6 ? 4 : 1], sizeof(be));
	sport = rte_be_to_cpu_16(be[0]);
	dport = rte_be_to_cpu_16(be[1]);
	return range_holds(rule->src, src) && range_holds(rule->dst, dst) && sport >= rule->sport[0] &&
	       sport <= rule->sport[1] && dport >= rule->dport[0] && dport <= rule->dport[1];
}

// The earlier of `best` and what a tuple has for the selectors.
static __rte_always_inline uint32_t
probe(const struct rules *r, const struct tuple *t, const uint64_t *w, uint32_t at, uint32_t best, bool v6)
{
	const uint32_t words = v6 ? WORDS6 : WORDS4;

	for (;; at = (at + 1) & t->wrap) {
		const struct slot *s = slot_get(t, at, v6);
		uint64_t differs = 0;

		if (s->rule == 0)
			return best;
		for (uint32_t i = 0; i < words; i++)
			differs |= (w[i] & t->mask[i]) ^ s->key[i];
		if (differs == 0 && (!s->partly || rule_holds(&r->rules[s->rule - 1], w, v6)))
			return RTE_MIN(s->rule, best);
	}
}

// Tuple by tuple; those that have no earlier rule than what was found are left out.
// found: rule + 1, UINT32_MAX: none.
static __rte_always_inline void
search(const struct rules *r, uint64_t (*w)[WORDS6], uint32_t *found, uint32_t n, bool v6)
{
	const uint32_t words = v6 ? WORDS6 : WORDS4;
	uint32_t at[SPD_BURST];

	for (uint32_t i = 0; i < n; i++)
		found[i] = UINT32_MAX;
	for (uint32_t j = 0; j < r->n_tuples; j++) {
		const struct tuple *t = &r->tuples[j];
		uint32_t open = 0;

		for (uint32_t i = 0; i < n; i++) {
			uint64_t masked[WORDS6];

			if (found[i] < t->first)
				continue;
			for (uint32_t k = 0; k < words; k++)
				masked[k] = w[i][k] & t->mask[k];
			at[i] = (uint32_t)(mix(masked, words) >> t->shift);
			rte_prefetch0(slot_get(t, at[i], v6));
			open++;
		}
		if (open == 0)
			return;
		for (uint32_t i = 0; i < n; i++)
			if (found[i] >= t->first)
				found[i] = probe(r, t, w[i], at[i], found[i], v6);
	}
}

static __rte_always_inline void
match(const struct rules *r, const struct spd_key *const *keys, uint32_t *out, uint32_t n, bool v6)
{
	uint64_t words[SPD_BURST][WORDS6];

	for (uint32_t i = 0; i < n; i++)
		fill_words(words[i], keys[i], v6);
	search(r, words, out, n, v6);
	for (uint32_t i = 0; i < n; i++)
		out[i] = out[i] != UINT32_MAX ? r->rules[out[i] - 1].index : RULES_NONE;
}

void
rules_match(const struct rules *r, const struct spd_key *const *keys, uint32_t *out, uint32_t n)
{
	if (r->v6)
		match(r, keys, out, n, true);
	else
		match(r, keys, out, n, false);
}
