/* SPDX-License-Identifier: BSD-3-Clause */
#include "lpm.h"

#include <stdlib.h>

static int
net_cmp(const struct prefix *a, const struct prefix *b)
{
	if (a->addr.family != b->addr.family)
		return a->addr.family < b->addr.family ? -1 : 1;
	if (a->len != b->len)
		return a->len > b->len ? -1 : 1;
	return addr_cmp(&a->addr, &b->addr);
}

static int
entry_cmp(const void *left, const void *right)
{
	const struct lpm_entry *a = left, *b = right;
	int rc = net_cmp(&a->net, &b->net);

	if (rc != 0)
		return rc;
	// What is connected stands first, so that a static route is the double.
	if (a->connected != b->connected)
		return a->connected ? -1 : 1;
	if (a->at.line != b->at.line)
		return a->at.line < b->at.line ? -1 : 1;
	return a->at.col < b->at.col ? -1 : a->at.col > b->at.col;
}

void
lpm_build(struct lpm *t, struct lpm_entry *entries, uint32_t n)
{
	uint32_t i = 0;

	if (n > 0)
		qsort(entries, n, sizeof(*entries), entry_cmp);
	t->entries = entries;
	t->n = n;
	for (int f = 0; f < 2; f++) {
		// Prefixes of length len are entries first[len] … first[len - 1] - 1.
		for (int len = 129; len >= 0; len--) {
			while (i < n && entries[i].net.addr.family == (f == 0 ? 4 : 6) &&
			       entries[i].net.len > len)
				i++;
			t->first[f][len] = i;
		}
		while (i < n && entries[i].net.addr.family == (f == 0 ? 4 : 6))
			i++;
	}
}

static const struct lpm_entry *
length_find(const struct lpm *t, uint32_t low, uint32_t high, const struct prefix *want)
{
	uint32_t end = high;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (net_cmp(&t->entries[middle].net, want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && net_cmp(&t->entries[low].net, want) == 0 ? &t->entries[low] : NULL;
}

const struct lpm_entry *
lpm_find(const struct lpm *t, const struct addr *a)
{
	int f = a->family == 4 ? 0 : 1;
	uint32_t end_of_family = f == 0 ? t->first[1][129] : t->n;

	for (int len = (int)addr_size(a->family) * 8; len >= 0; len--) {
		uint32_t low = t->first[f][len];
		uint32_t high = len > 0 ? t->first[f][len - 1] : end_of_family;
		struct prefix want = {.addr = *a, .len = (uint8_t)len};

		if (low == high)
			continue;
		want = prefix_network(&want);
		const struct lpm_entry *e = length_find(t, low, high, &want);
		if (e != NULL)
			return e;
	}
	return NULL;
}
