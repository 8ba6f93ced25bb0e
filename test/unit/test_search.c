/* SPDX-License-Identifier: BSD-3-Clause */
// The multiple loss ratio search encloses the limit that follows from each simulated device's
// formula, within the width that was asked for, and within a stated number of trials and of
// seconds; it does so again when early trials were wrong, and it ends when the answers make no
// sense at all. The median.
#include "devices.h"
#include "search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define LINE 1488095.0 // packets a second, 64 B frames on a gigabit
#define LEAST (LINE / 1000)
#define WIDTH 0.005

static const struct mlr_goal goals[] = {
	{.loss_ratio = 0, .width = WIDTH, .trial_s = 30, .total_s = 60, .exceed_ratio = 0.5},
	{.loss_ratio = 0.005, .width = WIDTH, .trial_s = 30, .total_s = 60, .exceed_ratio = 0.5},
};

static double
seconds_of(const struct mlr *m)
{
	double s = 0;

	for (uint32_t i = 0; i < m->n; i++)
		s += m->trials[i].s;
	return s;
}

static void
search(struct mlr *m, struct device *d, const struct mlr_goal *g, uint32_t n)
{
	uint64_t sent, lost;

	mlr_begin(m, g, n, LEAST, LINE, 1);
	while (mlr_want(m)) {
		assert_true(m->load >= LEAST && m->load <= LINE);
		assert_true(m->s >= 1 && m->s <= 30);
		assert_true(m->n < MLR_TRIALS);
		device_run(d, m->load, m->s, &sent, &lost);
		mlr_tell(m, sent, lost, m->s);
	}
}

// What a goal found encloses the device's answer; `slack` is of the answer.
static void
check_bound(const struct mlr *m, uint32_t goal, const struct device *d, double slack)
{
	const struct mlr_bound *b = &m->bounds[goal];
	double answer = device_answer(d, m->goals[goal].loss_ratio, m->goals[goal].trial_s);
	double most = answer * (1 + slack) + 1, least = answer * (1 - slack) - 1;
	enum mlr_state want = MLR_FOUND;

	if (answer >= LINE)
		want = MLR_MAX;
	else if (answer < LEAST)
		want = MLR_MIN;
	if (b->state != want || (want == MLR_FOUND && (b->lower > most || b->upper < least ||
						       b->upper - b->lower > WIDTH * b->upper + 1)))
		fail_msg("%s, limit %.0f, goal %u: state %d, %.0f … %.0f, not %.0f",
			 device_names[d->kind], d->limit, goal, (int)b->state, b->lower, b->upper,
			 answer);
	if (want == MLR_MAX)
		assert_true(b->upper == 0 && fabs(b->lower - LINE) < 1);
	if (want == MLR_MIN)
		assert_true(b->lower == 0 && b->rate == 0 && fabs(b->upper - LEAST) < 1);
}

// Bounds of trials and seconds, measured over all limits and rounded up.
static const struct budget {
	uint32_t trials;
	double s;
} budgets[DEVICES] = {
	[DEVICE_HARD] = {30, 400},  [DEVICE_SOFT] = {45, 550}, [DEVICE_FALLING] = {40, 450},
	[DEVICE_NOISE] = {60, 800}, [DEVICE_DEAD] = {10, 100}, [DEVICE_PERFECT] = {10, 100},
	[DEVICE_BUFFERED] = {30, 400},
};

// Limits from the smallest load to beyond the line, 7 % apart: 107 of them.
static void
mlr_devices(void **state)
{
	static struct mlr m, again;

	(void)state;
	for (int kind = 0; kind < DEVICES; kind++) {
		double slack = kind == DEVICE_NOISE ? DEVICE_NOISE_PART : 0;
		uint32_t trials = 0;
		double s = 0;

		for (double limit = LEAST * 1.05; limit < LINE * 1.1; limit *= 1.07) {
			struct device d = {(enum device_kind)kind, limit, 1 + (uint64_t)limit};
			struct device e = d;

			search(&m, &d, goals, COUNT(goals));
			search(&again, &e, goals, COUNT(goals));
			assert_memory_equal(&m, &again, sizeof(m));
			check_bound(&m, 0, &d, slack);
			check_bound(&m, 1, &d, slack);
			trials = m.n > trials ? m.n : trials;
			s = fmax(s, seconds_of(&m));
		}
		print_message("mlr, %s: at most %u trials, %.0f s\n", device_names[kind],
			      trials, s);
		assert_true(trials <= budgets[kind].trials);
		assert_true(s <= budgets[kind].s);
	}
}

// The rate is what arrived at the lower bound: all of it for NDR; for PDR less the loss that
// the device's formula has there.
static void
mlr_rate(void **state)
{
	static struct mlr m;
	struct device d = {DEVICE_SOFT, 600000, 1};
	const struct mlr_bound *pdr = &m.bounds[1];

	(void)state;
	search(&m, &d, goals, COUNT(goals));
	assert_true(fabs(m.bounds[0].rate - m.bounds[0].lower) < 1);
	assert_true(pdr->lower > 600000 && pdr->lower <= 624000);
	assert_true(fabs(pdr->rate - device_rate(&d, pdr->lower, 30)) < 1);
}

// The order of goals does not matter, and trials are shared: both goals at once take fewer than
// one after the other.
static void
mlr_shares(void **state)
{
	static struct mlr both, turned, ndr, pdr;
	struct device d = {DEVICE_SOFT, 600000, 1};
	const struct mlr_goal other[] = {goals[1], goals[0]};

	(void)state;
	search(&both, &d, goals, 2);
	search(&turned, &d, other, 2);
	search(&ndr, &d, &goals[0], 1);
	search(&pdr, &d, &goals[1], 1);
	check_bound(&turned, 0, &d, 0);
	check_bound(&turned, 1, &d, 0);
	assert_true(both.n < ndr.n + pdr.n);
	assert_true(turned.n < ndr.n + pdr.n);
}

// A void trial is not told: the same is wanted again.
static void
mlr_void(void **state)
{
	static struct mlr m;

	(void)state;
	mlr_begin(&m, goals, 2, LEAST, LINE, 1);
	assert_true(mlr_want(&m));
	assert_true(m.load == LINE && m.s == 1);
	mlr_tell(&m, 1000000, 400000, 1);
	assert_true(mlr_want(&m));
	assert_true(m.load == 600000 && m.s == 1); // what arrived
	assert_true(mlr_want(&m));
	assert_true(m.load == 600000 && m.s == 1 && m.n == 1);
	assert_int_equal(m.bounds[0].state, MLR_SEARCHING);
}

// The bounds are of what was really sent.
static void
mlr_sent(void **state)
{
	static struct mlr m;

	(void)state;
	mlr_begin(&m, goals, 2, LEAST, LINE, 1);
	while (mlr_want(&m))
		mlr_tell(&m, (uint64_t)(m.load * m.s * 0.998), 0, m.s * 0.999);
	assert_int_equal(m.bounds[0].state, MLR_MAX);
	assert_true(fabs(m.bounds[0].lower - LINE * 0.998 / 0.999) < 1);
	// Nothing sent proves nothing.
	mlr_begin(&m, goals, 2, LEAST, LINE, 1);
	while (mlr_want(&m))
		mlr_tell(&m, 0, 0, m.s);
	assert_int_equal(m.bounds[0].state, MLR_MIN);
}

// The device changes after six trials: what was found before is measured again, and given up.
static void
mlr_changes(void **state)
{
	static const double limits[][2] = {
		{800000, 400000}, {400000, 800000}, {800000, 760000}, {400000, 1e9}};
	static struct mlr m;

	(void)state;
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct device d = {DEVICE_HARD, limits[i][0], 1};
		uint64_t sent, lost;

		mlr_begin(&m, goals, 2, LEAST, LINE, 1);
		while (mlr_want(&m)) {
			if (m.n == 6)
				d.limit = limits[i][1];
			device_run(&d, m.load, m.s, &sent, &lost);
			mlr_tell(&m, sent, lost, m.s);
		}
		check_bound(&m, 0, &d, 0);
		check_bound(&m, 1, &d, 0);
		assert_true(m.n <= 60);
		print_message("mlr, %.0f then %.0f: %u trials, %.0f s\n", limits[i][0],
			      limits[i][1], m.n, seconds_of(&m));
	}
}

// One trial in three loses 1 %, whatever the load. Half of the time may be worse: the limit is
// above. A quarter may: no load will do. And the conditional throughput is that of a good trial.
static void
mlr_exceed(void **state)
{
	static struct mlr m;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct mlr_goal g = {0, WIDTH, 30, 90, strict ? 0.25 : 0.5};

		mlr_begin(&m, &g, 1, LEAST, LINE, 1);
		while (mlr_want(&m)) {
			uint64_t sent = (uint64_t)(m.load * m.s);

			mlr_tell(&m, sent, m.n % 3 == 1 ? sent / 100 : 0, m.s);
		}
		print_message("mlr, one in three: state %d, %u trials\n", (int)m.bounds[0].state,
			      m.n);
		assert_int_equal(m.bounds[0].state, strict ? MLR_MIN : MLR_MAX);
		if (!strict)
			assert_true(fabs(m.bounds[0].rate - LINE) < 1);
	}
}

// A packet is lost every 20 s or so at any load: short trials see none, of the long ones 78 % do
// (1 − e^−1.5). So no short trial is a guide, and an NDR is found by chance; but it ends, well
// below MLR_TRIALS, and the PDR is not disturbed.
static void
mlr_leak(void **state)
{
	static struct mlr m;
	uint32_t most = 0;
	double s = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct device d = {DEVICE_PERFECT, 0, seed};

		mlr_begin(&m, goals, 2, LEAST, LINE, 1);
		while (mlr_want(&m))
			mlr_tell(&m, (uint64_t)(m.load * m.s),
				 device_random(&d) > exp(-m.s / 20) ? 1 : 0, m.s);
		assert_int_not_equal(m.bounds[0].state, MLR_GAVE_UP);
		assert_int_equal(m.bounds[1].state, MLR_MAX);
		most = m.n > most ? m.n : most;
		s = fmax(s, seconds_of(&m));
	}
	print_message("mlr, leak: at most %u trials, %.0f s\n", most, s);
	assert_true(most <= 60 && s <= 1500);
}

// A load that is asked for takes total_s of long trials before it decides.
static void
mlr_total(void **state)
{
	static struct mlr m;
	struct device d = {DEVICE_HARD, 700000, 1};
	struct mlr_goal g = {0, WIDTH, 10, 40, 0};
	double lower_s = 0, want = 0;

	(void)state;
	search(&m, &d, &g, 1);
	check_bound(&m, 0, &d, 0);
	for (uint32_t i = 0; i < m.n; i++)
		if (m.trials[i].load <= 700000 && m.trials[i].want > want)
			want = m.trials[i].want;
	for (uint32_t i = 0; i < m.n; i++)
		if (m.trials[i].want == want && m.trials[i].s >= 10)
			lower_s += m.trials[i].s;
	assert_true(lower_s == 40);
	assert_true(fabs(m.bounds[0].lower - want) < 1);
}

// Answers by chance: it ends, for each of 200 seeds.
static void
mlr_nonsense(void **state)
{
	static struct mlr m;
	uint32_t most = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct device d = {DEVICE_HARD, 0, seed};

		mlr_begin(&m, goals, 2, LEAST, LINE, 1);
		while (mlr_want(&m)) {
			assert_true(m.n < MLR_TRIALS);
			mlr_tell(&m, 1000000, device_random(&d) < 0.5 ? 0 : 500000, m.s);
		}
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_not_equal(m.bounds[i].state, MLR_SEARCHING);
		}
		most = m.n > most ? m.n : most;
	}
	print_message("mlr, by chance: at most %u trials\n", most);
	assert_true(most <= 100);
}

static void
give(struct mlr *m, double load, double s, double loss)
{
	m->load = load;
	m->s = s;
	mlr_tell(m, 100000000, (uint64_t)(100000000 * loss + 0.5), 100000000 / load);
}

// By hand. A load that met the goal above one that did not is no bound; the conditional
// throughput is the median of the trials at the lower one.
static void
mlr_bounds(void **state)
{
	static const double losses[] = {0.003, 0.001, 0.002};
	static struct mlr m;
	struct mlr_goal g = {0.005, WIDTH, 30, 90, 0.5};

	(void)state;
	mlr_begin(&m, &g, 1, LEAST, LINE, 1);
	for (int i = 0; i < 3; i++) {
		give(&m, 500000, 30, 0);
		give(&m, 400000, 30, 0.01);
		give(&m, 300000, 30, losses[i]);
	}
	give(&m, 350000, 30, 0.004); // not decided yet
	give(&m, 200000, 16, 0.5);   // too short to count
	assert_true(mlr_want(&m));
	assert_true(fabs(m.bounds[0].lower - 300000) < 1);
	assert_true(fabs(m.bounds[0].upper - 400000) < 1);
	assert_true(fabs(m.bounds[0].rate - 300000 * 0.998) < 1);
}

// By hand: outside of what is known the step doubles, up to a half. The width of the first
// phase, 1 − 0.995³², is less than these steps.
static void
mlr_steps(void **state)
{
	static struct mlr m;

	(void)state;
	mlr_begin(&m, goals, 1, LEAST, LINE, 1);
	give(&m, 1000000, 1, 0.001);
	give(&m, 800000, 1, 0.001);
	assert_true(mlr_want(&m));
	assert_true(fabs(m.load - 480000) < 1); // 1 − 2 · 0.2
	give(&m, 480000, 1, 0.001);
	assert_true(mlr_want(&m));
	assert_true(fabs(m.load - 240000) < 1);
	give(&m, 240000, 1, 0);
	assert_true(mlr_want(&m));
	assert_true(fabs(m.load - sqrt(240000.0 * 480000)) < 1);
	for (int turned = 0; turned < 2; turned++) {
		mlr_begin(&m, goals, 1, LEAST, LINE, 1);
		give(&m, turned ? 240000 : 200000, 1, 0);
		give(&m, turned ? 200000 : 240000, 1, 0);
		assert_true(mlr_want(&m));
		assert_true(fabs(m.load - 360000) < 1); // ÷ (1 − 2 ÷ 6)
	}
	give(&m, 360000, 1, 0);
	assert_true(mlr_want(&m));
	assert_true(fabs(m.load - 720000) < 1);
}

// The trials are all used up.
static void
mlr_full(void **state)
{
	static struct mlr m;

	(void)state;
	mlr_begin(&m, goals, 1, LEAST, LINE, 1);
	m.n = MLR_TRIALS;
	for (uint32_t i = 0; i < m.n; i++)
		m.trials[i] = (struct mlr_trial){.want = LINE, .load = LINE, .s = 1};
	assert_false(mlr_want(&m));
	assert_int_equal(m.bounds[0].state, MLR_GAVE_UP);
	mlr_tell(&m, 1, 0, 1); // must not be written behind the last
	assert_int_equal(m.n, MLR_TRIALS);
}

static void
medians(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7}, near[] = {0.3, 0.1, 0.2};
	double far[] = {1e12, -5, 0.5, 0.5, 9};

	(void)state;
	assert_true(median(odd, 3) == 2);
	assert_true(odd[0] == 1 && odd[2] == 3);
	assert_true(median(even, 4) == 2.5);
	assert_true(median(one, 1) == 7);
	assert_true(median(near, 3) == 0.2);
	assert_true(median(far, 5) == 0.5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlr_devices),
		cmocka_unit_test(mlr_rate),
		cmocka_unit_test(mlr_shares),
		cmocka_unit_test(mlr_void),
		cmocka_unit_test(mlr_sent),
		cmocka_unit_test(mlr_changes),
		cmocka_unit_test(mlr_exceed),
		cmocka_unit_test(mlr_leak),
		cmocka_unit_test(mlr_total),
		cmocka_unit_test(mlr_nonsense),
		cmocka_unit_test(mlr_bounds),
		cmocka_unit_test(mlr_steps),
		cmocka_unit_test(mlr_full),
		cmocka_unit_test(medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
