/* SPDX-License-Identifier: BSD-3-Clause */
// Proves the quantiles of latencies against sorting, what the judge says of results near the
// limits of others, and that a calibration which is not one is refused with its place.
#include "result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

// Within half a slot, a 64th, of what sorting says; small ones exactly.
static void
quantiles(void **state)
{
	enum { N = 20001 };
	static uint64_t v[N];
	static struct hist h, half[2];

	srand(5);
	for (int i = 0; i < N; i++) {
		v[i] = i % 3 == 0 ? (uint64_t)(rand() % 30) :
				    (uint64_t)pow(10, 1 + 7 * (rand() / (double)RAND_MAX));
		hist_add(&half[i % 2], v[i]);
	}
	hist_merge(&h, &half[0]);
	hist_merge(&h, &half[1]);
	qsort(v, N, sizeof(v[0]), compare);
	assert_int_equal(h.n, N);
	assert_int_equal(h.min, v[0]);
	assert_int_equal(h.max, v[N - 1]);
	for (double q = 0.01; q < 1; q += 0.0137) {
		double want = (double)v[(size_t)ceil(q * N) - 1], got = hist_quantile(&h, q);

		if (fabs(got - want) > (want < 32 ? 0 : want / 60))
			fail_msg("quantile %.4f: %.0f, sorted %.0f", q, got, want);
	}
	assert_true(hist_quantile(&h, 1) == (double)h.max ||
		    hist_quantile(&h, 1) > 0.97 * (double)h.max);
}

// A soak of a night: most of its packets are of one slot.
static void
long_trials(void **state)
{
	static struct hist h, again;

	hist_add(&h, 5000);
	hist_add(&h, 5000);
	hist_add(&h, 5000);
	hist_add(&h, 9000000);
	for (int i = 0; i < 33; i++) {
		again = h;
		hist_merge(&h, &again);
	}
	assert_true(h.n == UINT64_C(4) << 33);
	assert_true(fabs(hist_quantile(&h, 0.5) - 5000) < 100);
	assert_true(hist_quantile(&h, 0.99) > 8900000);
}

static void
few_values(void **state)
{
	static struct hist h;

	assert_true(hist_quantile(&h, 0.5) == 0);
	hist_add(&h, 1234567);
	// Never beyond what was there.
	assert_true(hist_quantile(&h, 0.5) == 1234567 && hist_quantile(&h, 0.999) == 1234567);
	hist_add(&h, UINT64_MAX); // does not run out of the slots
	assert_int_equal(h.n, 2);
}

// ---------------------------------------------------------------- judging

static const char *
write_file(const char *text)
{
	static char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/sgw-test-result.%d", (int)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

#define LIMIT(frame, pps)                                                                                 \
	"{\"algorithm\": \"aes-gcm-16 v4\", \"direction\": \"forward\", \"family\": 4, \"frame\": " frame \
	", \"pps\": " pps "}"
#define FILE_OF(limits) "{\"calibration\": 1, \"limits\": [" limits "]}"

static struct figure
figure_at(double frame, double mbps)
{
	struct figure f = {.family = 4,
			   .frame = frame,
			   .pps = mbps * 1e6 / 8 / frame,
			   .mbps = mbps,
			   .ceiling_mbps = 871.4,
			   .direction = "forward",
			   .algorithm = "aes-gcm-16 v4"};

	return f;
}

// The lab's own example: 843 measured, the reference does 871.
static void
near_the_reference(void **state)
{
	struct calibration *c;
	struct err err = {0};
	struct figure f;
	// 871 Mb/s of 542 bytes are 200876 packets a second.
	const char *path = write_file(FILE_OF(LIMIT("542", "200876.4")));

	assert_int_equal(calibration_load(path, &c, &err), 0);
	f = figure_at(542, 843);
	figure_judge(&f, c, 1000, false);
	assert_true(f.inconclusive);
	assert_int_equal(f.bound, BOUND_REFERENCE);
	assert_string_equal(f.remark, "inconclusive: limited by reference (843 of 871)");
	// 398 of the RCC-VE is far from it: headroom 2.19.
	f = figure_at(542, 398);
	figure_judge(&f, c, 1000, false);
	assert_false(f.inconclusive);
	assert_int_equal(f.bound, BOUND_DEVICE);
	assert_true(fabs(f.headroom - 2.188) < 0.001 && fabs(f.limit_mbps - 871) < 0.01);
	// Just under and above nine tenths: 783.9.
	f = figure_at(542, 783.8);
	figure_judge(&f, c, 1000, false);
	assert_false(f.inconclusive);
	f = figure_at(542, 784);
	figure_judge(&f, c, 1000, false);
	assert_true(f.inconclusive);
	// At the wire it is the wire, whatever the reference does.
	f = figure_at(542, 870);
	figure_judge(&f, c, 1000, false);
	assert_int_equal(f.bound, BOUND_WIRE);
	assert_false(f.inconclusive);
	// Of another direction, family or algorithm nothing is known.
	f = figure_at(542, 843);
	f.family = 6;
	figure_judge(&f, c, 1000, false);
	assert_true(!f.inconclusive && f.headroom == 0);
	calibration_free(c);
}

static void
between_sizes(void **state)
{
	struct calibration *c;
	struct err err = {0};
	struct figure f;
	// A gigabit: 84 and 1538 bytes on the wire with frames of 60 and 1514.
	const char *path = write_file(FILE_OF(LIMIT("60", "1488095.24") ", " LIMIT("1514", "81274.38")));

	assert_int_equal(calibration_load(path, &c, &err), 0);
	// In between it is the wire's again: 957.6 Mb/s at 542 bytes.
	f = figure_at(542, 1);
	figure_judge(&f, c, 1000, false);
	assert_true(fabs(f.limit_mbps - 957.6) < 0.05);
	for (double frame = 50; frame < 1600; frame += 1500) {
		f = figure_at(frame, 1);
		figure_judge(&f, c, 1000, false);
		assert_true(f.headroom == 0);
	}
	calibration_free(c);
}

static void
wire_and_generator(void **state)
{
	struct figure f = figure_at(542, 870);

	figure_judge(&f, NULL, 1000, false);
	assert_int_equal(f.bound, BOUND_WIRE);
	assert_false(f.inconclusive);
	f = figure_at(542, 862); // 1 % of 871.4 are 8.7
	figure_judge(&f, NULL, 1000, false);
	assert_int_equal(f.bound, BOUND_DEVICE);
	f = figure_at(542, 1000);
	figure_judge(&f, NULL, 1000, false);
	assert_int_equal(f.bound, BOUND_NOTHING);
	f = figure_at(542, 500);
	figure_judge(&f, NULL, 1000, true);
	assert_int_equal(f.bound, BOUND_GENERATOR);
	assert_true(f.inconclusive && strstr(f.remark, "limited by generator") != NULL);
}

static void
no_calibrations(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "sgw-test-result"},
		{"{\"calibration\": 1, \"limits\": [", ":1:"},
		{"[]", "is no calibration"},
		{"{\"calibration\": 2, \"limits\": [" LIMIT("542", "1") "]}", "is no calibration"},
		{"{\"calibration\": 1, \"limits\": []}", "is no calibration"},
		{"{\"calibration\": 1, \"limits\": [7]}", "limits[0]"},
		{"{\"calibration\": 1, \"more\": 1, \"limits\": [" LIMIT("542", "1") "]}",
		 "is no calibration"},
		{FILE_OF(LIMIT("542", "1") ", " LIMIT("542", "-1")), "limits[1]"},
		{FILE_OF(LIMIT("542", "\"1\"")), "limits[0]"},
		{FILE_OF(LIMIT("0", "1")), "limits[0]"},
		{FILE_OF(LIMIT("542", "NaN")), ":1:"},
		{FILE_OF(LIMIT("542", "1e999")), ":1:"},
		{FILE_OF("{\"algorithm\": 1, \"direction\": \"forward\", \"family\": 4, \"frame\": 1, \"pps\": 1}"),
		 "limits[0]"},
		{FILE_OF("{\"algorithm\": \"a\", \"direction\": \"forward\", \"family\": 5, \"frame\": 1, \"pps\": 1}"),
		 "4 or 6"},
		{FILE_OF("{\"algorithm\": \"a\", \"direction\": \"forward\", \"family\": 260, \"frame\": 1, \"pps\": 1}"),
		 "family"},
		{FILE_OF("{\"algorithm\": \"a\", \"direction\": \"forward\", \"family\": 4, \"frame\": 1, \"pp\": 1}"),
		 "misspelt"},
		{FILE_OF("{\"algorithm\": \"a\", \"algorithm\": \"a\", \"direction\": \"b\", \"family\": 4, \"frame\": 1, "
			 "\"pps\": 1}"),
		 "duplicate"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct calibration *c = NULL;
		struct err err = {0};

		assert_int_not_equal(calibration_load(write_file(cases[i].text), &c, &err), 0);
		if (err.kind != EXIT_CONFIG || strstr(err.text, cases[i].says) == NULL)
			fail_msg("case %zu: %s", i, err.text);
	}
	unlink(write_file(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles),          cmocka_unit_test(few_values),
		cmocka_unit_test(long_trials),
		cmocka_unit_test(near_the_reference), cmocka_unit_test(between_sizes),
		cmocka_unit_test(wire_and_generator), cmocka_unit_test(no_calibrations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
