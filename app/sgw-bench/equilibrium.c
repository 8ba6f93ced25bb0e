/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <math.h>

void
equilibrium_begin(struct equilibrium *e, uint32_t link, double tolerance)
{
	*e = (struct equilibrium){.link = link,
				  .tolerance = tolerance,
				  .n = 1,
				  .load = link / 2,
				  .step = link / 4};
}

// The peak has been passed when the trend turns; from then on every step is half the last.
static void
turn(struct equilibrium *e, enum trend trend)
{
	e->peak_passed |= e->trend != TREND_NONE && e->trend != trend;
	if (e->peak_passed)
		e->step /= 2;
	e->trend = trend;
}

static void
go_down(struct equilibrium *e, uint32_t measured)
{
	bool first = e->n == 1;

	turn(e, TREND_DECREASING);
	if (first && measured < e->step) { // far too much: begin near what passes
		e->load = measured;
		e->step = measured / 2;
		return;
	}
	e->load = e->load > e->step ? e->load - e->step : 0;
	if (e->load <= 1) {
		e->step /= 2;
		e->load += e->step;
	}
}

bool
equilibrium_next(struct equilibrium *e, uint32_t measured)
{
	e->last = measured;
	e->most = measured > e->most ? measured : e->most;
	if (measured >= (uint32_t)floor(e->load * (1 - e->tolerance))) {
		turn(e, TREND_INCREASING);
		if (e->load == e->link) // there is nothing above
			return false;
		e->load = e->load + e->step < e->link ? e->load + e->step : e->link;
	} else {
		go_down(e, measured);
	}
	if (e->step <= (uint32_t)floor(e->load * e->tolerance) || e->n == EQUILIBRIUM_TRIALS)
		return false;
	e->n++;
	return true;
}
