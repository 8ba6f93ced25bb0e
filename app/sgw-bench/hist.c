/* SPDX-License-Identifier: BSD-3-Clause */
#include "trial.h"

#define SUB_BITS 5 // log2 of HIST_SUB

_Static_assert(1 << SUB_BITS == HIST_SUB, "a power of two");

const char *const trial_void_names[TRIAL_VOIDS] = {
	[TRIAL_GOOD] = "",     [TRIAL_GENERATOR] = "generator", [TRIAL_RECEIVER] = "receiver",
	[TRIAL_LINK] = "link", [TRIAL_FOREIGN] = "foreign",     [TRIAL_STOPPED] = "stopped",
};

// Values below HIST_SUB have a slot each; above, each power of two has HIST_SUB slots.
static uint32_t
slot_of(uint64_t ns)
{
	uint32_t shift, slot;

	if (ns < HIST_SUB)
		return (uint32_t)ns;
	shift = 63 - (uint32_t)__builtin_clzll(ns) - SUB_BITS;
	slot = (shift + 1) * HIST_SUB + (uint32_t)(ns >> shift) - HIST_SUB;
	return slot < HIST_SLOTS ? slot : HIST_SLOTS - 1;
}

// The middle of what a slot holds.
static double
slot_value(uint32_t slot)
{
	uint32_t shift;

	if (slot < HIST_SUB)
		return slot;
	shift = slot / HIST_SUB - 1;
	return ((double)(slot % HIST_SUB + HIST_SUB) + 0.5) * (double)(UINT64_C(1) << shift);
}

void
hist_add(struct hist *h, uint64_t ns)
{
	h->min = h->n == 0 || ns < h->min ? ns : h->min;
	h->max = ns > h->max ? ns : h->max;
	h->n++;
	h->sum += (double)ns;
	h->slots[slot_of(ns)]++;
}

void
hist_merge(struct hist *to, const struct hist *from)
{
	if (from->n == 0)
		return;
	to->min = to->n == 0 || from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	to->n += from->n;
	to->sum += from->sum;
	for (uint32_t i = 0; i < HIST_SLOTS; i++)
		to->slots[i] += from->slots[i];
}

double
hist_quantile(const struct hist *h, double q)
{
	double want = q * (double)h->n, v = 0;
	uint64_t sum = 0;

	if (h->n == 0)
		return 0;
	for (uint32_t i = 0; i < HIST_SLOTS && (double)sum < want; i++) {
		sum += h->slots[i];
		v = slot_value(i);
	}
	return v < (double)h->min ? (double)h->min : v > (double)h->max ? (double)h->max : v;
}
