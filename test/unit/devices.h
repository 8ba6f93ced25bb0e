/* SPDX-License-Identifier: BSD-3-Clause */
// Six devices that are nothing but arithmetic, whose limits are known.
#pragma once

#include <math.h>
#include <stdint.h>

#define DEVICE_LIMIT 500000.0 // packets a second

enum device {
	DEVICE_HARD,
	DEVICE_SOFT,
	DEVICE_FALLING,
	DEVICE_NOISY,
	DEVICE_DEAD,
	DEVICE_PERFECT,
	DEVICES
};

// A generator of our own, the same on every machine. @return 0 … 1
static inline double
device_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/**
 * Loss ratio at a load.
 *
 * hard     passes DEVICE_LIMIT and no more
 * soft     from the limit on loses 0.1 % for each 1 % more: NDR is the limit, the load with
 *          a loss of 0.5 % is 1.05 × the limit
 * falling  beyond the limit passes the less the more is offered
 * noisy    its limit is another one each time, 1 % up or down
 * dead     passes nothing
 * perfect  passes everything
 */
static inline double
device_loss(enum device d, double load, uint64_t *state)
{
	double limit = DEVICE_LIMIT, over = load / limit - 1;

	switch (d) {
	case DEVICE_NOISY:
		limit *= 1 + 0.02 * (device_random(state) - 0.5);
		return load <= limit ? 0 : 1 - limit / load;
	case DEVICE_HARD:
		return load <= limit ? 0 : 1 - limit / load;
	case DEVICE_SOFT:
		return over <= 0 ? 0 : fmin(0.1 * over, 1);
	case DEVICE_FALLING:
		return over <= 0 ? 0 : fmin(1 - limit * fmax(1 - 0.4 * over, 0) / load, 1);
	case DEVICE_DEAD:
		return 1;
	default:
		return 0;
	}
}
