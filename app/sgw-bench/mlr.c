/* SPDX-License-Identifier: BSD-3-Clause */
// Phases, each with trials twice as long and half as wide as the one before; the last has
// the goal's. In each, bounds are sought from what the phase before found. A load that failed
// is believed before a larger one that passed.
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME 0.0005  // two loads nearer than this part are one
#define PHASE_MAX 48 // trials of one phase of one goal: then the device contradicts itself
#define PHASES_MAX 8

void
mlr_begin(struct mlr *m, const struct mlr_goal *goals, uint32_t n, double min, double max,
	  double first_s)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->goals, goals, n * sizeof(goals[0]));
	m->n_goals = n;
	m->min = min;
	m->max = max;
	m->first_s = first_s;
}

// ---------------------------------------------------------------- phases

static uint32_t
last_phase(const struct mlr *m, const struct mlr_goal *g)
{
	uint32_t p = 0;

	for (double s = m->first_s; s < g->trial_s && p < PHASES_MAX; s *= 2)
		p++;
	return p;
}

static double
phase_s(const struct mlr *m, const struct mlr_goal *g, uint32_t phase)
{
	return phase >= last_phase(m, g) ? g->trial_s : m->first_s * (double)(1u << phase);
}

static double
phase_width(const struct mlr *m, const struct mlr_goal *g, uint32_t phase)
{
	uint32_t left = last_phase(m, g) - phase;

	return g->width * (double)(1u << (left > 3 ? 3 : left));
}

// ---------------------------------------------------------------- what is known of a load

enum known { UNDECIDED, PASSED, FAILED };

// By all trials at a load that are as long as this phase's.
static enum known
load_known(const struct mlr *m, double load)
{
	const struct mlr_goal *g = &m->goals[m->goal];
	double s = phase_s(m, g, m->phase), need = m->phase >= last_phase(m, g) ? g->total_s : s,
	       sum = 0, bad = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct mlr_trial *t = &m->trials[i];

		if (fabs(t->want - load) > SAME * load || t->s < s * 0.99)
			continue;
		sum += t->s;
		bad += t->loss > g->loss_ratio ? t->s : 0;
	}
	// Decided early when what is missing could not change it.
	if (bad > g->exceed_ratio * fmax(need, sum))
		return FAILED;
	if (sum - bad >= (1 - g->exceed_ratio) * fmax(need, sum) && sum >= need * 0.99)
		return PASSED;
	return sum >= need * 0.99 ? FAILED : UNDECIDED;
}

// The smallest load that failed, and the largest that passed below it; 0: none.
static void
find_bounds(const struct mlr *m, double *lower, double *upper)
{
	*lower = *upper = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (load_known(m, m->trials[i].want) == FAILED &&
		    (*upper == 0 || m->trials[i].want < *upper))
			*upper = m->trials[i].want;
	for (uint32_t i = 0; i < m->n; i++) {
		double load = m->trials[i].want;

		if ((*upper == 0 || load < *upper * (1 - SAME)) && load > *lower &&
		    load_known(m, load) == PASSED)
			*lower = load;
	}
}

// A load of this phase that was begun and is not decided.
static bool
find_undecided(const struct mlr *m, double *load)
{
	double s = phase_s(m, &m->goals[m->goal], m->phase);

	for (uint32_t i = 0; i < m->n; i++)
		if (m->trials[i].s >= s * 0.99 && load_known(m, m->trials[i].want) == UNDECIDED) {
			*load = m->trials[i].want;
			return true;
		}
	return false;
}

static double
rate_at(const struct mlr *m, double load)
{
	double rate = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (fabs(m->trials[i].want - load) <= SAME * load)
			rate = m->trials[i].rate;
	return rate;
}

// ---------------------------------------------------------------- the next load

static double
clamp(const struct mlr *m, double load)
{
	return fmin(fmax(load, m->min), m->max);
}

// Below all that failed nothing is known: where what arrived points to, or further down
// each time.
static double
go_down(struct mlr *m, double upper)
{
	struct mlr_bound *b = &m->bounds[m->goal];
	double rate = rate_at(m, upper), width = phase_width(m, &m->goals[m->goal], m->phase);

	if (b->lower > 0 && b->lower < upper * (1 - SAME))
		return b->lower; // the phase before
	m->hint = m->hint == 0 ? width : m->hint * 2;
	if (m->phase == 0 && m->hint == width && rate > m->min && rate < upper * (1 - SAME))
		return rate;
	return m->hint >= 0.5 ? upper / 2 : upper * (1 - m->hint);
}

static double
go_up(struct mlr *m, double lower)
{
	struct mlr_bound *b = &m->bounds[m->goal];
	double width = phase_width(m, &m->goals[m->goal], m->phase);

	if (b->upper > lower * (1 + SAME))
		return b->upper;
	m->hint = m->hint == 0 ? width : m->hint * 2;
	return lower * (1 + fmin(m->hint, 1));
}

static double
between(const struct mlr *m, double lower, double upper)
{
	double width = phase_width(m, &m->goals[m->goal], m->phase), rate = rate_at(m, upper);

	// What passes an overloaded device is often just what it can do.
	if (m->phase == 0 && rate > lower * (1 + width) && rate < upper * (1 - width))
		return rate;
	return (lower + upper) / 2;
}

static void
end_phase(struct mlr *m, double lower, double upper, enum mlr_state state)
{
	const struct mlr_goal *g = &m->goals[m->goal];
	struct mlr_bound *b = &m->bounds[m->goal];

	b->lower = lower;
	b->upper = upper;
	b->rate = lower > 0 ? rate_at(m, lower) : 0;
	m->hint = 0;
	if (m->phase < last_phase(m, g) && state != MLR_GAVE_UP) {
		m->phase++;
		return;
	}
	b->state = state;
	m->goal++;
	m->phase = 0;
}

static uint32_t
trials_of_phase(const struct mlr *m)
{
	const struct mlr_goal *g = &m->goals[m->goal];
	double s = phase_s(m, g, m->phase);
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		n += m->trials[i].s >= s * 0.99 && m->trials[i].s < s * 1.01;
	return n;
}

// @return true: m->load is wanted; false: this phase is over
static bool
phase_wants(struct mlr *m)
{
	double lower, upper, load, width = phase_width(m, &m->goals[m->goal], m->phase);

	find_bounds(m, &lower, &upper);
	if (m->n == MLR_TRIALS || trials_of_phase(m) >= PHASE_MAX * (m->goal + 1)) {
		end_phase(m, lower, upper, MLR_GAVE_UP);
		return false;
	}
	if (find_undecided(m, &load)) {
		m->load = load;
		return true;
	}
	if (lower == 0 && upper == 0) {
		m->load = m->bounds[m->goal].lower > 0 ? m->bounds[m->goal].lower :
			  m->bounds[m->goal].upper > 0 ? m->bounds[m->goal].upper :
							 m->max;
		return true;
	}
	if (lower >= m->max * (1 - SAME) || (upper != 0 && upper <= m->min * (1 + SAME))) {
		end_phase(m, lower, upper, lower > 0 ? MLR_MAX : MLR_MIN);
		return false;
	}
	if (lower > 0 && upper > 0 && upper - lower <= width * upper) {
		end_phase(m, lower, upper, MLR_FOUND);
		return false;
	}
	m->load = clamp(m, lower == 0 ? go_down(m, upper) :
			   upper == 0 ? go_up(m, lower) :
					between(m, lower, upper));
	return true;
}

bool
mlr_want(struct mlr *m)
{
	while (m->goal < m->n_goals) {
		if (phase_wants(m)) {
			m->s = phase_s(m, &m->goals[m->goal], m->phase);
			return true;
		}
	}
	return false;
}

void
mlr_tell(struct mlr *m, uint64_t sent, uint64_t lost, double seconds)
{
	struct mlr_trial *t = &m->trials[m->n];

	if (m->n == MLR_TRIALS)
		return;
	m->n++;
	t->want = m->load;
	t->s = m->s;
	t->load = seconds > 0 ? (double)sent / seconds : 0;
	t->loss = sent > 0 ? (double)lost / (double)sent : 1;
	t->rate = seconds > 0 && sent > lost ? (double)(sent - lost) / seconds : 0;
}

// A phase takes about three trials.
double
mlr_remaining(const struct mlr *m)
{
	double s = 0;

	for (uint32_t g = m->goal; g < m->n_goals; g++)
		for (uint32_t p = g == m->goal ? m->phase : 0; p <= last_phase(m, &m->goals[g]);
		     p++)
			s += 3 * phase_s(m, &m->goals[g], p);
	return s;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(v[0]), compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
