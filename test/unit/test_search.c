/* SPDX-License-Identifier: BSD-3-Clause */
// Proves that `equilibrium` takes the way of the lab's tool: the four traces of the lab,
// load by load; and that both searches find the limits of six devices that are known, in a
// bounded number of trials, twice the same.
#include "search.h"

#include "devices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// ---------------------------------------------------------------- the traces

struct step {
	uint32_t load, step;
	enum trend trend;
	uint32_t measured;
};

struct trace {
	const char *box;
	struct step steps[8];
	uint32_t last, most;
};

#define UP TREND_INCREASING
#define DOWN TREND_DECREASING

// The first as the text of the lab prints it; of the others the text has what was measured,
// and the loads and steps are worked out by hand from the rule.
static const struct trace traces[] = {
	{"RCC-VE 4860",
	 {{500, 250, TREND_NONE, 399},
	  {250, 250, DOWN, 250},
	  {375, 125, UP, 375},
	  {437, 62, UP, 399},
	  {406, 31, DOWN, 399},
	  {391, 15, DOWN, 391},
	  {398, 7, UP, 398}},
	 398,
	 399},
	{"RCC-VE, newer system",
	 {{500, 250, TREND_NONE, 499},
	  {750, 250, UP, 670},
	  {625, 125, DOWN, 624},
	  {687, 62, UP, 672},
	  {656, 31, DOWN, 655},
	  {671, 15, UP, 670},
	  {678, 7, UP, 670}},
	 670,
	 672},
	{"x3550-M3",
	 {{500, 250, TREND_NONE, 500},
	  {750, 250, UP, 750},
	  {1000, 250, UP, 872},
	  {875, 125, DOWN, 872},
	  {937, 62, UP, 872},
	  {906, 31, DOWN, 872},
	  {891, 15, DOWN, 872}},
	 872,
	 872},
	{"APU2",
	 {{500, 250, TREND_NONE, 359},
	  {250, 250, DOWN, 250},
	  {375, 125, UP, 356},
	  {313, 62, DOWN, 313},
	  {344, 31, UP, 344},
	  {359, 15, UP, 351},
	  {352, 7, DOWN, 350}},
	 350,
	 359},
};

static void
lab_traces(void **state)
{
	for (size_t t = 0; t < sizeof(traces) / sizeof(traces[0]); t++) {
		const struct trace *tr = &traces[t];
		struct equilibrium e;
		bool more = true;
		uint32_t i;

		equilibrium_begin(&e, 1000, 0.01);
		for (i = 0; i < 7; i++) {
			const struct step *s = &tr->steps[i];

			assert_true(more);
			if (e.n != i + 1 || e.load != s->load || e.step != s->step ||
			    e.trend != s->trend)
				fail_msg("%s, iteration %u: load %u, step %u, trend %d", tr->box,
					 e.n, e.load, e.step, e.trend);
			more = equilibrium_next(&e, s->measured);
		}
		assert_false(more);
		assert_int_equal(e.last, tr->last);
		assert_int_equal(e.most, tr->most);
	}
}

// A device far below half the link: the first trial's rate is the next load.
static void
slow_device(void **state)
{
	struct equilibrium e;

	equilibrium_begin(&e, 1000, 0.01);
	assert_true(equilibrium_next(&e, 40));
	assert_int_equal(e.load, 40);
	assert_int_equal(e.step, 20);
	assert_int_equal(e.trend, DOWN);
	assert_true(equilibrium_next(&e, 40));
	assert_int_equal(e.load, 50);
	assert_int_equal(e.step, 10);
	assert_int_equal(e.trend, UP);
}

// ---------------------------------------------------------------- devices

#define LINK_KPPS 1488

static void
equilibrium_devices(void **state)
{
	for (enum device d = 0; d < DEVICES; d++) {
		struct equilibrium e;
		uint64_t random = 1;
		uint32_t trials = 0, measured;

		equilibrium_begin(&e, LINK_KPPS, 0.01);
		do {
			measured = (uint32_t)lround(e.load *
						    (1 - device_loss(d, e.load * 1000.0, &random)));
			assert_true(++trials <= EQUILIBRIUM_TRIALS);
		} while (equilibrium_next(&e, measured));
		switch (d) {
		case DEVICE_HARD:
		case DEVICE_NOISY:
		case DEVICE_FALLING:
			assert_in_range(e.last, 490, 506); // 1 %, and 1 of noise
			break;
		case DEVICE_SOFT: // 1 % is lost at 1.1 times the limit
			assert_in_range(e.last, 535,
					570); // and the last trial, which counts, may be beyond
			break;
		case DEVICE_DEAD:
			assert_in_range(e.last, 0, 0);
			break;
		default:
			assert_int_equal(e.last, LINK_KPPS);
		}
	}
}

struct expect {
	enum mlr_state state;
	double least, most; // of the lower bound
};

static void
search(enum device d, struct mlr *m, double *total)
{
	static const struct mlr_goal goals[2] = {
		{.loss_ratio = 0,
		 .width = 0.005,
		 .trial_s = 30,
		 .total_s = 30,
		 .exceed_ratio = 0.5},
		{.loss_ratio = 0.005,
		 .width = 0.005,
		 .trial_s = 30,
		 .total_s = 30,
		 .exceed_ratio = 0.5},
	};
	uint64_t random = 1;

	*total = 0;
	mlr_begin(m, goals, 2, 1488, 1488095, 1);
	while (mlr_want(m)) {
		double loss = device_loss(d, m->load, &random), sent = floor(m->load * m->s);

		assert_true(m->load >= 1487 && m->load <= 1488096 && m->s >= 1 && m->s <= 30);
		*total += m->s;
		mlr_tell(m, (uint64_t)sent, (uint64_t)ceil(sent * loss), m->s);
	}
}

static void
mlr_devices(void **state)
{
	// The lower bound is at most 0.5 % below the limit; the noisy one's is 495 to 505 thousand.
	static const struct expect expect[DEVICES][2] = {
		[DEVICE_HARD] = {{MLR_FOUND, 497500, 500000}, {MLR_FOUND, 500000, 502513}},
		[DEVICE_SOFT] = {{MLR_FOUND, 497500, 500000}, {MLR_FOUND, 522300, 525000}},
		[DEVICE_FALLING] = {{MLR_FOUND, 497500, 500000}, {MLR_FOUND, 499000, 501800}},
		[DEVICE_NOISY] = {{MLR_FOUND, 492500, 505000}, {MLR_FOUND, 494900, 507600}},
		[DEVICE_DEAD] = {{MLR_MIN, 0, 0}, {MLR_MIN, 0, 0}},
		[DEVICE_PERFECT] = {{MLR_MAX, 1488095, 1488095}, {MLR_MAX, 1488095, 1488095}},
	};

	for (enum device d = 0; d < DEVICES; d++) {
		static struct mlr m, again;
		double total, total2;

		search(d, &m, &total);
		search(d, &again, &total2);
		assert_memory_equal(&m, &again, sizeof(m));
		if (m.n > 60 || total > 700)
			fail_msg("device %d: %u trials, %.0f s", d, m.n, total);
		for (int g = 0; g < 2; g++) {
			const struct mlr_bound *b = &m.bounds[g];

			if (b->state != expect[d][g].state || b->lower < expect[d][g].least ||
			    b->lower > expect[d][g].most)
				fail_msg("device %d, goal %d: state %d, lower %.0f, upper %.0f", d,
					 g, b->state, b->lower, b->upper);
			if (b->state == MLR_FOUND) {
				assert_true(b->upper > b->lower &&
					    b->upper - b->lower <= 0.005 * b->upper);
				assert_true(b->rate <= b->lower * 1.0001 &&
					    b->rate >= b->lower * 0.99);
			}
		}
	}
}

// A device that forgets: what it passed it loses the next time. The search ends and says so,
// or finds something that held; it does not go on for ever.
static void
liar(void **state)
{
	static const struct mlr_goal goal = {.width = 0.001,
					     .trial_s = 2,
					     .total_s = 6,
					     .exceed_ratio = 0.3};
	static struct mlr m;
	uint64_t random = 3;
	uint32_t n = 0;

	mlr_begin(&m, &goal, 1, 1000, 1000000, 1);
	while (mlr_want(&m)) {
		assert_true(++n <= MLR_TRIALS);
		mlr_tell(&m, 1000000, device_random(&random) < 0.5, m.s);
	}
	assert_int_not_equal(m.bounds[0].state, MLR_SEARCHING);
}

static void
medians(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};

	assert_true(median(odd, 3) == 2);
	assert_true(median(even, 4) == 2.5);
	assert_true(even[0] == 1 && even[3] == 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_traces),
		cmocka_unit_test(slow_device),
		cmocka_unit_test(equilibrium_devices),
		cmocka_unit_test(mlr_devices),
		cmocka_unit_test(liar),
		cmocka_unit_test(medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
