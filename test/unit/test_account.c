/* SPDX-License-Identifier: BSD-3-Clause */
// Proves the receiver's bookkeeping of sgw-bench against arrivals whose answer is known by
// hand, the examples of RFC 4737 among them; and that a packet of the generator is found
// changed whichever byte of it changes.
#include "account.h"
#include "shape.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Arrivals of one flow, ended by -1.
struct arrivals {
	const char *what;
	int64_t seqs[24];
	uint64_t received, duplicated, reordered;
	uint32_t extent;
};

static const struct arrivals cases[] = {
	{"in order", {0, 1, 2, 3, -1}, 4, 0, 0, 0},
	{"one missing", {0, 1, 3, 4, -1}, 4, 0, 0, 0},
	{"twice in a row", {0, 1, 1, 2, -1}, 3, 1, 0, 0},
	{"three times", {0, 1, 2, 1, 1, 3, -1}, 4, 2, 0, 0},
	{"the first again at the end", {0, 1, 2, 3, 0, -1}, 4, 1, 0, 0},
	{"two changed places", {0, 2, 1, 3, -1}, 4, 0, 1, 1},
	// The three examples of RFC 4737: extents 4; 1 and 2; 4, 5 and 6.
	{"RFC 4737, packet 4 reordered", {1, 2, 3, 5, 6, 7, 8, 4, 9, 10, -1}, 10, 0, 1, 4},
	{"RFC 4737, 5 and 6 reordered", {1, 2, 3, 4, 7, 5, 6, 8, 9, 10, -1}, 10, 0, 2, 2},
	{"RFC 4737, 4, 5 and 6 reordered", {1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11, -1}, 11, 0, 3, 6},
	{"late by five", {1, 2, 4, 5, 6, 7, 8, 3, 9, -1}, 9, 0, 1, 5},
	{"late, and then again", {0, 1, 3, 2, 2, -1}, 4, 1, 1, 1},
	{"backwards", {4, 3, 2, 1, 0, -1}, 5, 0, 4, 4},
	{"nothing", {-1}, 0, 0, 0, 0},
};

static void
hand_cases(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct arrivals *c = &cases[i];
		struct account a;

		assert_int_equal(account_create(&a, 3), 0);
		for (int k = 0; c->seqs[k] >= 0; k++)
			account_add(&a, 1, (uint64_t)c->seqs[k]);
		if (a.received != c->received || a.duplicated != c->duplicated ||
		    a.reordered != c->reordered || a.extent != c->extent)
			fail_msg("%s: received %llu, duplicated %llu, reordered %llu, extent %u",
				 c->what, (unsigned long long)a.received,
				 (unsigned long long)a.duplicated, (unsigned long long)a.reordered,
				 a.extent);
		account_free(&a);
	}
}

// With so many flows that each has the smallest window: against an array that knows all.
static void
random_arrivals(void **state)
{
	enum { FLOWS = 100000, N = 64 * 4, FLOW = 77777 };
	struct account a;
	uint8_t seen[N] = {0};
	uint64_t received = 0, duplicated = 0, reordered = 0;
	int64_t most = -1;

	assert_int_equal(account_create(&a, FLOWS), 0);
	assert_int_equal(a.window, 64);
	srand(7);
	for (int k = 0; k < 20000; k++) {
		// Not further back than the window, so that everything can be told.
		int64_t least = most - 62 > 0 ? most - 62 : 0,
			seq = least + rand() % (most + 4 - least);

		if (seq >= N)
			break;
		account_add(&a, FLOW, (uint64_t)seq);
		if (seen[seq]) {
			duplicated++;
		} else {
			received++;
			reordered += seq < most;
		}
		seen[seq] = 1;
		most = seq > most ? seq : most;
	}
	assert_int_equal(a.received, received);
	assert_int_equal(a.duplicated, duplicated);
	assert_int_equal(a.reordered, reordered);
	assert_true(duplicated > 100 && reordered > 20);
	account_free(&a);
}

// 32 bits of a number tell all 64 near the one that is expected; the window is no matter.
static void
long_runs(void **state)
{
	struct account a;
	const uint64_t start = UINT64_C(0xfffffff0);

	assert_int_equal(account_create(&a, 1), 0);
	account_add(&a, 0, start - 1);
	for (uint64_t n = start; n < start + 64; n++) {
		uint64_t seq = account_infer(&a, 0, (uint32_t)n);

		assert_true(seq == n);
		account_add(&a, 0, seq);
	}
	assert_int_equal(a.received, 65);
	assert_int_equal(a.reordered, 0);
	// One from before the wrap comes again.
	account_add(&a, 0, account_infer(&a, 0, (uint32_t)(start + 3)));
	assert_int_equal(a.duplicated, 1);
	// A jump over more than the window forgets what stood in it.
	account_add(&a, 0, start + 64 + 3 * (uint64_t)a.window);
	account_add(&a, 0, start + 63 + 3 * (uint64_t)a.window);
	assert_int_equal(a.duplicated, 1);
	assert_int_equal(a.reordered, 1);
	account_free(&a);
}

// What comes again long after is a duplicate, or it would stand for one that is lost.
static void
late_duplicates(void **state)
{
	struct account a;

	assert_int_equal(account_create(&a, 1), 0);
	for (uint64_t n = 0; n < 2000000; n += 2)
		account_add(&a, 0, n);
	for (uint64_t n = 0; n < 2000000; n += 2)
		account_add(&a, 0, n);
	assert_int_equal(a.received, 1000000);
	assert_int_equal(a.duplicated, 1000000);
	account_free(&a);
}

// ---------------------------------------------------------------- packets

static struct args
lab(uint8_t family)
{
	struct args a = {.family = family, .checksum = true};

	assert_int_equal(range_parse(family == 4 ? "198.18.10.1-198.18.10.71" :
						   "2001:2:0:10::1-2001:2:0:10::14",
				     &a.src),
			 0);
	assert_int_equal(range_parse(family == 4 ? "198.19.10.1-198.19.10.70" :
						   "2001:2:0:8010::1-2001:2:0:8010::64",
				     &a.dst),
			 0);
	a.sport = a.dport = family == 4 ? 2001 : 2000;
	return a;
}

// Each byte of a packet changed once: only TTL, traffic class and the like may.
static void
every_byte(void **state)
{
	for (uint8_t family = 4; family <= 6; family = (uint8_t)(family + 2)) {
		struct args a = lab(family);
		struct size_mix mix = {.name = "x", .n = 1, .l3 = {128}, .weight = {1}};
		uint8_t ip[128];
		struct shape s;
		struct seen seen;
		struct err err;
		const uint64_t keys[KEYS] = {42, 41};
		uint32_t good = 0;

		assert_int_equal(shape_fill(&s, &a, family, &mix, false, &err), 0);
		assert_int_equal(s.n_flows, family == 4 ? 4970 : 2000);
		shape_write(&s, ip, 1234, 99, 4711, 42);
		assert_int_equal(shape_look(&s, ip, 128, keys, &seen), SEEN_GOOD);
		assert_int_equal(seen.flow, 1234);
		assert_int_equal(seen.seq, 99);
		assert_int_equal(seen.time, 4711);
		// Of one of the trials before: late, no fault of this one. Of none: somebody changed it.
		for (int i = 1; i < KEYS; i++) {
			const uint64_t later[KEYS] = {[0] = 7, [KEYS - 1] = 9};
			uint64_t all[KEYS];

			memcpy(all, later, sizeof(all));
			assert_int_equal(shape_look(&s, ip, 128, all, &seen), SEEN_CORRUPTED);
			all[i] = 42;
			assert_int_equal(shape_look(&s, ip, 128, all, &seen), SEEN_FOREIGN);
		}
		for (uint32_t i = 0; i < 128; i++) {
			ip[i] ^= 0x10;
			if (shape_look(&s, ip, 128, keys, &seen) == SEEN_GOOD)
				good++;
			ip[i] ^= 0x10;
		}
		// IPv4: TOS, identification (2), TTL, header checksum (2). IPv6: version and class, flow
		// label (3) less one bit of the version, hop limit.
		assert_int_equal(good, family == 4 ? 6 : 4);
	}
}

// Sizes by their weights, all flows of all sizes, however few or many there are.
static void
shares(void **state)
{
	static const uint32_t flows[] = {1, 2, 3, 5, 11, 12, 23, 24, 4970}; // 12 sizes make a round
	struct size_mix mix = {.name = "imix", .n = 3, .l3 = {46, 552, 1500}, .weight = {7, 4, 1}};

	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct args a = lab(4);
		uint64_t n[3] = {0}, of_flow[3] = {0};
		struct shape s;
		struct err err;

		a.flows = flows[i];
		assert_int_equal(shape_fill(&s, &a, 4, &mix, false, &err), 0);
		assert_int_equal(s.n_sizes, 12);
		for (uint64_t seq = 0; seq < 144; seq++)
			for (uint32_t f = 0; f < s.n_flows; f++)
				for (int k = 0; k < 3; k++) {
					bool is = shape_l3(&s, f, seq) == mix.l3[k];

					n[k] += is;
					of_flow[k] += is && f == flows[i] / 2;
				}
		for (int k = 0; k < 3; k++) {
			assert_int_equal(n[k], 12 * flows[i] * mix.weight[k]);
			assert_int_equal(of_flow[k], 12 * mix.weight[k]);
		}
		// 353.8 of lab.md, less 18 of Ethernet
		assert_true(s.mean_l3 > 335.8 && s.mean_l3 < 335.9);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_cases), cmocka_unit_test(random_arrivals),
		cmocka_unit_test(long_runs),
		cmocka_unit_test(late_duplicates), cmocka_unit_test(every_byte),
		cmocka_unit_test(shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
