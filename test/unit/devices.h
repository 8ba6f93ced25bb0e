/* SPDX-License-Identifier: BSD-3-Clause */
// Devices under test as arithmetic: what each forwards is known, and so is what a search must
// find. All random numbers follow from the seed.
#pragma once

#include <math.h>
#include <stdint.h>

enum device_kind {
	DEVICE_HARD,     // forwards `limit`, drops what is beyond
	DEVICE_SOFT,     // no loss up to `limit`; then 0.1 %, and 0.1 % more a 1 % of load
	DEVICE_FALLING,  // beyond `limit` the more is offered the less comes: limit² ÷ load
	DEVICE_NOISE,    // `limit` ± 2 %, drawn for each trial; one trial in 20 loses 10 packets
	DEVICE_DEAD,     // nothing arrives
	DEVICE_PERFECT,  // all arrives
	DEVICE_BUFFERED, // DEVICE_HARD with room for 0.05 s × limit: short trials look better
	DEVICES
};

static const char *const device_names[DEVICES] = {"hard", "soft",    "falling", "noise",
						   "dead", "perfect", "buffered"};

#define DEVICE_NOISE_PART 0.02
#define DEVICE_BUFFER_S 0.05

struct device {
	enum device_kind kind;
	double limit;    // packets a second
	uint64_t random; // seed, not 0
};

// 0 ≤ … < 1, xorshift64*
static inline double
device_random(struct device *d)
{
	d->random ^= d->random >> 12;
	d->random ^= d->random << 25;
	d->random ^= d->random >> 27;
	return (double)((d->random * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
}

/** What arrives of `load` packets a second, packets a second. @param s  seconds of the trial */
static inline double
device_rate(struct device *d, double load, double s)
{
	double limit = d->limit;

	switch (d->kind) {
	case DEVICE_HARD:
		return fmin(load, limit);
	case DEVICE_SOFT:
		return load <= limit ? load : fmax(load * (1.099 - 0.1 * load / limit), limit / 2);
	case DEVICE_FALLING:
		return load <= limit ? load : limit * limit / load;
	case DEVICE_NOISE:
		limit *= 1 + DEVICE_NOISE_PART * (2 * device_random(d) - 1);
		if (device_random(d) < 0.05)
			load = fmax(load - 10 / s, 0);
		return fmin(load, limit);
	case DEVICE_BUFFERED:
		return fmin(load, limit * (1 + DEVICE_BUFFER_S / s));
	case DEVICE_PERFECT:
		return load;
	default:
		return 0;
	}
}

/** A trial in whole packets. */
static inline void
device_run(struct device *d, double load, double s, uint64_t *sent, uint64_t *lost)
{
	double rate = device_rate(d, load, s);

	*sent = (uint64_t)(load * s + 0.5);
	*lost = rate >= load ? 0 : *sent - (uint64_t)fmin(rate * s, (double)*sent);
}

/**
 * The largest load whose loss ratio is at most `loss`, for trials of s seconds; with
 * DEVICE_NOISE about its middle. 0: none, HUGE_VAL: any.
 */
static inline double
device_answer(const struct device *d, double loss, double s)
{
	switch (d->kind) {
	case DEVICE_HARD:
	case DEVICE_NOISE:
		return d->limit / (1 - loss);
	case DEVICE_SOFT:
		return loss < 0.001 ? d->limit : d->limit * (1 + (loss - 0.001) / 0.1);
	case DEVICE_FALLING:
		return d->limit / sqrt(1 - loss);
	case DEVICE_BUFFERED:
		return d->limit * (1 + DEVICE_BUFFER_S / s) / (1 - loss);
	case DEVICE_PERFECT:
		return HUGE_VAL;
	default:
		return 0;
	}
}
