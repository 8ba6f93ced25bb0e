/* SPDX-License-Identifier: BSD-3-Clause */
// What to try next follows from the trials so far: bounds are worked out anew each time. So a
// trial of one goal counts for all, and a bound that a later trial contradicts is simply no bound
// any more.
//
// Each goal goes through phases, and never back: trials of first_s, twice that … and trial_s
// seconds. From phase to phase the wanted width is halved, so that the long trials are few. In a
// phase count the trials that are as long as its own, or longer. Where they contradict what the
// phase before has found, the search leaves that range in steps that double.
#include "search.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-9      // widths that differ by less are the same
#define LARGEST_STEP 0.5   // outside of what is known: half the load, or twice

// What the trials of one phase say about one load.
enum verdict { UNDECIDED, MET, FAILED };

// One goal in one phase.
struct view {
	const struct mlr *m;
	const struct mlr_goal *goal;
	double trial_s, total_s, width;
	double lower, upper;  // wanted loads, 0: none
	double next_lower;    // the second largest below upper
	double next_upper;    // the second smallest
};

void
mlr_begin(struct mlr *m, const struct mlr_goal *goals, uint32_t n, double min, double max,
	  double first_s)
{
	*m = (struct mlr){.n_goals = n, .min = min, .max = max, .first_s = first_s};
	for (uint32_t i = 0; i < n; i++)
		m->goals[i] = goals[i];
}

// ---------------------------------------------------------------- what is known

static bool
counts(const struct view *v, const struct mlr_trial *t, double load)
{
	return t->want == load && t->s >= v->trial_s;
}

// A load is decided when no trial that is still missing could turn it.
static enum verdict
verdict_of(const struct view *v, double load)
{
	double good = 0, bad = 0, missing, allowed;

	for (uint32_t i = 0; i < v->m->n; i++) {
		const struct mlr_trial *t = &v->m->trials[i];

		if (!counts(v, t, load))
			continue;
		if (t->loss > v->goal->loss_ratio)
			bad += t->s;
		else
			good += t->s;
	}
	missing = fmax(v->total_s - good - bad, 0);
	allowed = v->goal->exceed_ratio * fmax(v->total_s, good + bad);
	if (bad > allowed)
		return FAILED;
	return bad + missing <= allowed ? MET : UNDECIDED;
}

// Where a load that failed says nothing good, one above it that met the goal is not believed.
static void
find_bounds(struct view *v)
{
	const struct mlr_trial *trials = v->m->trials;

	for (uint32_t i = 0; i < v->m->n; i++) {
		double load = trials[i].want;

		if (load == v->upper || load == v->next_upper || verdict_of(v, load) != FAILED)
			continue;
		if (v->upper == 0 || load < v->upper) {
			v->next_upper = v->upper;
			v->upper = load;
		} else if (v->next_upper == 0 || load < v->next_upper) {
			v->next_upper = load;
		}
	}
	for (uint32_t i = 0; i < v->m->n; i++) {
		double load = trials[i].want;

		if ((v->upper != 0 && load > v->upper) || load == v->lower ||
		    load <= v->next_lower || verdict_of(v, load) != MET)
			continue;
		if (load > v->lower) {
			v->next_lower = v->lower;
			v->lower = load;
		} else {
			v->next_lower = load;
		}
	}
}

static uint32_t
last_phase(const struct mlr *m, const struct mlr_goal *g)
{
	uint32_t n = 0;

	for (double s = m->first_s; s < g->trial_s && n < 31; s *= 2)
		n++;
	return n;
}

static void
view_phase(struct view *v, const struct mlr *m, const struct mlr_goal *g, uint32_t phase)
{
	uint32_t last = last_phase(m, g);

	*v = (struct view){.m = m, .goal = g};
	v->trial_s = phase == last ? g->trial_s : m->first_s * (1u << phase);
	v->total_s = phase == last ? fmax(g->total_s, g->trial_s) : v->trial_s;
	// So that the geometric middle is exactly one phase further.
	v->width = 1 - pow(1 - g->width, 1u << (last - phase));
	find_bounds(v);
}

static bool
is_done(const struct view *v)
{
	if (v->upper == 0)
		return v->lower == v->m->max;
	if (v->lower == 0)
		return v->upper == v->m->min;
	return (v->upper - v->lower) / v->upper <= v->width + ROUNDING;
}

// ---------------------------------------------------------------- what to try

// Packets a second that arrived in the first trial at a load.
static double
rate_at(const struct mlr *m, double load)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->trials[i].want == load)
			return m->trials[i].rate;
	return 0;
}

// Below all that failed. After the first one what arrived is the best guess; then by steps that
// double, since with a little loss the rate is no guide.
static double
below(const struct view *v)
{
	double load, step = v->width;

	if (v->next_upper == 0)
		load = fmin(rate_at(v->m, v->upper), v->upper * (1 - step));
	else
		load = v->upper * (1 - fmin(fmax(step, 2 * (1 - v->upper / v->next_upper)),
					    LARGEST_STEP));
	return fmax(load, v->m->min);
}

static double
above(const struct view *v)
{
	double step = v->width;

	if (v->next_lower != 0)
		step = fmax(step, 2 * (1 - v->next_lower / v->lower));
	return fmin(v->lower / (1 - fmin(step, LARGEST_STEP)), v->m->max);
}

// What the phase before has found is tried first, at this phase's length.
static double
choose(const struct view *v, const struct view *before)
{
	if (before != NULL) {
		if (before->lower > v->lower && (v->upper == 0 || before->lower < v->upper) &&
		    verdict_of(v, before->lower) == UNDECIDED)
			return before->lower;
		if (before->upper > v->lower && (v->upper == 0 || before->upper < v->upper) &&
		    verdict_of(v, before->upper) == UNDECIDED)
			return before->upper;
	}
	if (v->lower == 0 && v->upper == 0)
		return v->m->max;
	if (v->lower == 0)
		return below(v);
	if (v->upper == 0)
		return above(v);
	return sqrt(v->lower * v->upper);
}

// ---------------------------------------------------------------- what came of it

// The loss that no more than exceed_ratio of the time exceeds, as packets that arrived.
static double
conditional_rate(const struct view *v)
{
	const struct mlr_trial *trials = v->m->trials;
	double found = 0;

	for (uint32_t i = 0; i < v->m->n; i++) {
		double all = 0, not_better = 0;

		if (!counts(v, &trials[i], v->lower))
			continue;
		for (uint32_t j = 0; j < v->m->n; j++) {
			if (!counts(v, &trials[j], v->lower))
				continue;
			all += trials[j].s;
			if (trials[j].loss >= trials[i].loss)
				not_better += trials[j].s;
		}
		if (not_better > v->goal->exceed_ratio * all &&
		    (found == 0 || trials[i].rate < found))
			found = trials[i].rate;
	}
	return found;
}

// The mean of what was really sent for a wanted load.
static double
sent_load(const struct view *v, double want)
{
	double packets = 0, s = 0;

	for (uint32_t i = 0; i < v->m->n; i++) {
		const struct mlr_trial *t = &v->m->trials[i];

		if (!counts(v, t, want))
			continue;
		packets += t->load * t->s;
		s += t->s;
	}
	return s > 0 ? packets / s : 0;
}

static void
fill_bound(struct mlr *m, uint32_t goal)
{
	struct mlr_bound *b = &m->bounds[goal];
	struct view v;

	view_phase(&v, m, &m->goals[goal], last_phase(m, &m->goals[goal]));
	b->lower = sent_load(&v, v.lower);
	b->upper = sent_load(&v, v.upper);
	b->rate = conditional_rate(&v);
	if (!is_done(&v))
		b->state = m->n < MLR_TRIALS ? MLR_SEARCHING : MLR_GAVE_UP;
	else if (v.upper == 0)
		b->state = MLR_MAX;
	else
		b->state = v.lower == 0 ? MLR_MIN : MLR_FOUND;
}

// @return false: the goal needs no trial
static bool
want_of_goal(struct mlr *m, uint32_t goal)
{
	const struct mlr_goal *g = &m->goals[goal];
	uint32_t *phase = &m->phases[goal];
	struct view v, before;

	for (view_phase(&v, m, g, *phase); is_done(&v); view_phase(&v, m, g, *phase)) {
		if (*phase == last_phase(m, g))
			return false;
		++*phase;
	}
	if (*phase > 0)
		view_phase(&before, m, g, *phase - 1);
	m->load = choose(&v, *phase > 0 ? &before : NULL);
	m->s = v.trial_s;
	return true;
}

bool
mlr_want(struct mlr *m)
{
	for (uint32_t i = 0; i < m->n_goals; i++)
		fill_bound(m, i);
	if (m->n >= MLR_TRIALS)
		return false;
	for (uint32_t i = 0; i < m->n_goals; i++)
		if (want_of_goal(m, i))
			return true;
	return false;
}

void
mlr_tell(struct mlr *m, uint64_t sent, uint64_t lost, double seconds)
{
	struct mlr_trial *t;

	if (m->n >= MLR_TRIALS)
		return;
	t = &m->trials[m->n++];
	t->want = m->load;
	t->s = m->s;
	t->load = seconds > 0 ? (double)sent / seconds : 0;
	// Nothing sent is nothing proven.
	t->loss = sent == 0 ? 1 : fmin((double)lost / (double)sent, 1);
	t->rate = t->load * (1 - t->loss);
}

// A phase takes about three trials.
double
mlr_remaining(const struct mlr *m)
{
	double s = 0;

	for (uint32_t i = 0; i < m->n_goals; i++) {
		const struct mlr_goal *g = &m->goals[i];
		uint32_t last = last_phase(m, g);

		if (m->bounds[i].state != MLR_SEARCHING)
			continue;
		for (uint32_t p = m->phases[i]; p <= last; p++)
			s += 3 * (p == last ? fmax(g->total_s, g->trial_s) : m->first_s * (1u << p));
	}
	return s;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
