/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <math.h>

#define MILLION 1000000

void
equilibrium_begin(struct equilibrium *e, uint32_t link, double tolerance)
{
	*e = (struct equilibrium){
		.link = link,
		.tolerance = tolerance,
		.n = 1,
		.load = link / 2,
		.step = link / 4,
	};
}

// floor(load × fraction), of a decimal fraction: in binary 500 × (1 − 0.066) is below 467.
static uint32_t
part(uint32_t load, uint64_t millionths)
{
	return (uint32_t)(load * millionths / MILLION);
}

// The trial went through: more is to be tried.
static void
step_up(struct equilibrium *e)
{
	if (e->trend == TREND_DECREASING)
		e->peak_passed = true;
	if (e->peak_passed)
		e->step /= 2;
	e->load = e->load + e->step < e->link ? e->load + e->step : e->link;
	e->trend = TREND_INCREASING;
}

// It did not: less is to be tried.
static void
step_down(struct equilibrium *e, uint32_t measured)
{
	if (e->trend == TREND_INCREASING)
		e->peak_passed = true;
	if (e->peak_passed)
		e->step /= 2;
	if (e->n == 1 && measured < e->step) {
		// Far off: what came through is a better guess than the next step.
		e->load = measured;
		e->step = measured / 2;
	} else if (e->load <= e->step + 1) {
		e->load -= e->step;
		e->step /= 2;
		e->load += e->step;
	} else {
		e->load -= e->step;
	}
	e->trend = TREND_DECREASING;
}

bool
equilibrium_next(struct equilibrium *e, uint32_t measured)
{
	uint64_t tolerance = (uint64_t)llround(e->tolerance * MILLION);

	e->last = measured;
	if (measured > e->most)
		e->most = measured;
	if (measured >= part(e->load, MILLION - tolerance)) {
		if (e->load == e->link) // there is nothing above it
			return false;
		step_up(e);
	} else {
		step_down(e, measured);
	}
	if (e->step <= part(e->load, tolerance) || e->n == EQUILIBRIUM_TRIALS)
		return false;
	e->n++;
	return true;
}
