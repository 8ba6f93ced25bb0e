/* SPDX-License-Identifier: BSD-3-Clause */
#include "account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITS (UINT32_C(1) << 22)
#define WINDOW_MAX BITS // of one flow: 2 s of the smallest frames of 1 Gb/s
#define ARRIVALS (UINT32_C(1) << 16)
#define ARRIVALS_MIN 8u
#define ARRIVALS_MAX 512u

// The largest power of two ≤ n ÷ parts, within limits that are powers themselves.
static uint32_t
share(uint32_t n, uint32_t parts, uint32_t least, uint32_t most)
{
	uint32_t v = most;

	while (v > least && (uint64_t)v * parts > n)
		v /= 2;
	return v;
}

int
account_create(struct account *a, uint32_t n_flows)
{
	*a = (struct account){.n_flows = n_flows};
	a->window = share(BITS, n_flows, 64, WINDOW_MAX);
	a->arrivals = share(ARRIVALS, n_flows, ARRIVALS_MIN, ARRIVALS_MAX);
	a->flows = calloc(n_flows, sizeof(*a->flows));
	a->bits = calloc((size_t)n_flows * a->window / 64, sizeof(*a->bits));
	a->last = calloc((size_t)n_flows * a->arrivals, sizeof(*a->last));
	if (a->flows != NULL && a->bits != NULL && a->last != NULL)
		return 0;
	account_free(a);
	return -ENOMEM;
}

void
account_free(struct account *a)
{
	free(a->flows);
	free(a->bits);
	free(a->last);
	*a = (struct account){0};
}

void
account_reset(struct account *a)
{
	memset(a->flows, 0, a->n_flows * sizeof(*a->flows));
	memset(a->bits, 0, (size_t)a->n_flows * a->window / 8);
	a->received = a->duplicated = a->reordered = 0;
	a->extent = 0;
}

// Numbers from `next` up to `seq` are ahead now: what stood in their bits is long past.
static void
open_window(const struct account *a, uint64_t *bits, uint64_t next, uint64_t seq)
{
	if (seq - next >= a->window) {
		memset(bits, 0, a->window / 8);
		return;
	}
	for (uint64_t n = next; n <= seq; n++)
		bits[(n & (a->window - 1)) / 64] &= ~(UINT64_C(1) << (n % 64));
}

// RFC 4737 section 4.2: how many arrivals ago came the first packet that was sent later?
static uint32_t
extent_of(const struct account *a, const struct account_flow *f, const uint32_t *last, uint32_t seq)
{
	uint64_t n = f->count < a->arrivals ? f->count : a->arrivals;
	uint32_t extent = 0;

	for (uint64_t back = 1; back <= n; back++)
		if ((int32_t)(last[(f->count - back) & (a->arrivals - 1)] - seq) > 0)
			extent = (uint32_t)back;
	return extent;
}

void
account_add(struct account *a, uint32_t flow, uint64_t seq)
{
	struct account_flow *f = &a->flows[flow];
	uint64_t *bits = a->bits + (size_t)flow * (a->window / 64);
	uint32_t *last = a->last + (size_t)flow * a->arrivals, extent;
	uint64_t *word = &bits[(seq & (a->window - 1)) / 64], bit = UINT64_C(1) << (seq % 64);

	if (seq >= f->next) {
		open_window(a, bits, f->next, seq);
		f->next = seq + 1;
	} else {
		if (f->next - seq <= a->window && (*word & bit)) {
			a->duplicated++;
			return;
		}
		a->reordered++;
		extent = extent_of(a, f, last, (uint32_t)seq);
		a->extent = extent > a->extent ? extent : a->extent;
	}
	if (f->next - seq <= a->window)
		*word |= bit;
	a->received++;
	last[f->count++ & (a->arrivals - 1)] = (uint32_t)seq;
}
