/* SPDX-License-Identifier: BSD-3-Clause */
// The searches as arithmetic: no clock, no packet. A search says which load it wants
// tried and is told what came of it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// ---------------------------------------------------------------- equilibrium
// The method of the lab's tool `equilibrium` (BSD Router Project): load and step are
// integers, of Mb/s of Ethernet frames without FCS, or of kpps.

enum trend { TREND_NONE, TREND_INCREASING, TREND_DECREASING };

struct equilibrium {
	uint32_t link;      // rate of the link
	double tolerance;   // fraction, 0.01
	uint32_t n;         // of the trial that is wanted, 1 …
	uint32_t load;      // wanted, at most link
	uint32_t step;      // as printed with that trial
	enum trend trend;   // as printed with that trial, TREND_NONE with the first
	bool peak_passed;   //
	uint32_t last;      // measured by the last trial: the result
	uint32_t most;      // largest rate measured
};

#define EQUILIBRIUM_TRIALS 16

/** Set up for the first trial. link ≥ 4, 0 < tolerance < 1. */
void equilibrium_begin(struct equilibrium *e, uint32_t link, double tolerance);

/**
 * What the wanted trial measured.
 * @return true: e->load is to be tried next; false: e->last is the result
 */
bool equilibrium_next(struct equilibrium *e, uint32_t measured);

// ---------------------------------------------------------------- multiple loss ratio search
// After draft-ietf-bmwg-mlrsearch: for each goal the load is sought at which the loss
// ratio is not more than the goal's; short trials first, long ones where it counts, all
// goals from one set of trials.

struct mlr_goal {
	double loss_ratio;   // 0: NDR; 0.005: PDR
	double width;        // relative: (upper − lower) ÷ upper at the end, 0.005
	double trial_s;      // a trial of the last phase
	double total_s;      // so much of trials at a load decides about it
	double exceed_ratio; // of their time may be worse, 0 ≤ it < 1; 0.5: the median
};

struct mlr_trial {
	double load;   // packets a second that were really sent
	double want;   // that the search asked for
	double s;      // that it asked for
	double loss;   // ratio
	double rate;   // packets a second that arrived
};

enum mlr_state {
	MLR_SEARCHING,
	MLR_FOUND,     // lower and upper enclose it
	MLR_MAX,       // no loss at the largest load: the limit is above
	MLR_MIN,       // too much loss at the smallest load
	MLR_GAVE_UP,   // MLR_TRIALS were not enough: the answers contradict each other
};

#define MLR_GOALS 4
#define MLR_TRIALS 400

struct mlr_bound {
	enum mlr_state state;
	double lower;  // largest load that met the goal, 0: none
	double upper;  // smallest load that did not, 0: none
	double rate;   // conditional throughput: what arrived at `lower`, packets a second
};

struct mlr {
	struct mlr_goal goals[MLR_GOALS];
	struct mlr_bound bounds[MLR_GOALS];
	uint32_t n_goals;
	double min, max;    // loads
	double first_s;     // a trial of the first phase
	uint32_t n;         // trials so far
	struct mlr_trial trials[MLR_TRIALS];
	// the one that is wanted
	double load, s;
	// private from here on
	uint32_t phases[MLR_GOALS]; // where each goal is
};

/**
 * @param goals    in any order, at most MLR_GOALS
 * @param min,max  packets a second, 0 < min < max
 * @param first_s  seconds of the first trials, at most each goal's trial_s
 */
void mlr_begin(struct mlr *m, const struct mlr_goal *goals, uint32_t n, double min, double max,
	       double first_s);

/** @return true: m->load is to be tried for m->s seconds; false: see m->bounds */
bool mlr_want(struct mlr *m);

/**
 * What the wanted trial brought. A void trial is not told; mlr_want() then asks again.
 * @param sent,lost  packets
 * @param seconds    that sending took
 */
void mlr_tell(struct mlr *m, uint64_t sent, uint64_t lost, double seconds);

/** About how many more seconds of trials there will be. */
double mlr_remaining(const struct mlr *m);

/** The median of n values, which get sorted. n ≥ 1. */
double median(double *v, uint32_t n);
