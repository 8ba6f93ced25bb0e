/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <rte_cycles.h>

#include <time.h>
#include <unistd.h>

#define READINGS 32
#define LEAST_S 0.2

struct reading {
	double s;
	uint64_t tsc;
};

static struct reading first;
static double hz;

// Both clocks at once: the reading that was disturbed least.
static struct reading
read_clocks(void)
{
	struct reading best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		struct timespec t;
		uint64_t before = rte_rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC, &t);
		after = rte_rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best.s = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
		best.tsc = before + least / 2;
	}
	return best;
}

void
clock_begin(void)
{
	first = read_clocks();
}

void
clock_end(void)
{
	struct reading now = read_clocks();

	while (now.s - first.s < LEAST_S) {
		usleep(20000);
		now = read_clocks();
	}
	hz = (double)(now.tsc - first.tsc) / (now.s - first.s);
}

double
clock_hz(void)
{
	return hz;
}
