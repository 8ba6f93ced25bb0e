/* SPDX-License-Identifier: BSD-3-Clause */
// headroom: of two workers whose counters are set by hand, rates, load, cycles a packet and
// limits are what was computed by hand; the worker with the least headroom decides, whatever the
// others do; the window is the last second and nothing older; what full bursts have cost is
// remembered, for packets of that length only; and where there is nothing to predict from
// (too early, silence, a worker that hangs) no headroom is told.
#include "headroom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HZ 2000000000ull
#define TICK (HZ / 20) // 50 ms
#define START 77777    // of the TSC

static struct worker two[2];
static struct headroom h;
static uint64_t now;

// What a worker does in each tick.
struct work {
	uint64_t rounds; // with packets
	uint64_t packets;
	uint64_t bytes;  // of each packet
	uint64_t busy;   // cycles
	uint64_t refused; // of the packets, another worker did not take them
};

static int
setup(void **state)
{
	memset(two, 0, sizeof(two));
	for (unsigned int i = 0; i < 2; i++) {
		// Long ago it was busy and slow; that must not matter.
		two[i].cycles = two[i].busy_cycles = 50 * HZ;
		two[i].busy_loops = two[i].ports[3].rx_packets = 1000;
		two[i].ports[3].rx_bytes = 1000 * 64;
		workers[i] = &two[i];
	}
	n_workers = 2;
	now = START;
	headroom_start(HZ);
	return 0;
}

static void
ticks(unsigned int n, const struct work *a, const struct work *b)
{
	for (; n > 0; n--) {
		headroom_tick(now);
		now += TICK;
		for (unsigned int i = 0; i < 2; i++) {
			const struct work *k = i == 0 ? a : b;

			two[i].cycles += TICK;
			two[i].busy_cycles += k->busy;
			two[i].busy_loops += k->rounds;
			two[i].ports[7].ended[DROP_steer_full] += k->refused;
			two[i].ports[i].rx_packets += k->packets / 2; // of both ports
			two[i].ports[i].rx_bytes += k->packets / 2 * k->bytes;
			two[i].ports[7].rx_packets += k->packets - k->packets / 2;
			two[i].ports[7].rx_bytes += (k->packets - k->packets / 2) * k->bytes;
		}
	}
	headroom_tick(now);
	headroom_read(now, &h);
}

static const struct work nothing;
// 10,000 packets of 100 bytes, one a round, for 1000 cycles each: 200,000 pps, a tenth of HZ.
static const struct work light = {.rounds = 10000, .packets = 10000, .bytes = 100, .busy = 10000000};
// The same number in bursts of 4, for 4000 cycles each: load 0.4.
static const struct work heavy = {.rounds = 2500, .packets = 10000, .bytes = 100, .busy = 40000000};
// Full bursts at 250 cycles a packet: all of the time, 400,000 packets in 50 ms.
static const struct work full = {.rounds = 6250, .packets = 400000, .bytes = 100, .busy = TICK};

static void
test_numbers(void **state)
{
	ticks(20, &light, &nothing);
	assert_int_equal(h.state, HEADROOM_MEASURED);
	assert_int_equal(h.window_ms, 1000);
	assert_int_equal(h.age_ms, 0);
	assert_int_equal(h.workers[0].packets_s, 200000);
	assert_int_equal(h.workers[0].packet_cycles, 1000);
	assert_int_equal(h.workers[0].load, 100);
	assert_int_equal(h.workers[0].burst, 1000 / 64);
	assert_int_equal(h.workers[0].limit_s, 2000000);
	assert_int_equal(h.workers[0].headroom, 10000);
	assert_true(h.workers[0].at_least);
	assert_int_equal(h.workers[0].full_cycles, 0);
	assert_int_equal(h.workers[1].headroom, 0);
	assert_int_equal(h.workers[1].limit_s, 0);
	headroom_read(now + HZ / 4, &h);
	assert_int_equal(h.age_ms, 250);
}

// 1 ÷ 0.4 = 2.5, of 400,000 pps in all. Neither the sum of loads nor their mean gives that.
static void
test_nearest_decides(void **state)
{
	ticks(20, &light, &heavy);
	assert_int_equal(h.nearest, 1);
	assert_int_equal(h.headroom, 2500);
	assert_int_equal(h.packets_s, 400000);
	assert_int_equal(h.limit_s, 1000000);
	setup(NULL);
	ticks(20, &heavy, &light);
	assert_int_equal(h.nearest, 0);
	assert_int_equal(h.headroom, 2500);
}

static void
test_window_moves(void **state)
{
	ticks(60, &heavy, &nothing);
	assert_int_equal(h.workers[0].load, 400);
	ticks(10, &light, &nothing); // half of each, one tick more was taken between
	assert_in_range(h.workers[0].load, 235, 270);
	ticks(20, &light, &nothing);
	assert_int_equal(h.workers[0].load, 100);
	assert_in_range(h.window_ms, 950, 1000);
}

static void
test_silence(void **state)
{
	ticks(20, &heavy, &heavy);
	ticks(10, &nothing, &nothing);
	assert_int_equal(h.state, HEADROOM_MEASURED);
	ticks(20, &nothing, &nothing);
	assert_int_equal(h.state, HEADROOM_SILENT);
	assert_int_equal(h.headroom, 0);
	assert_int_equal(h.limit_s, 0);
	assert_int_equal(h.workers[0].load, 0);
}

// One packet in a little more than a second is less than one a second, and not none.
static void
test_one_packet(void **state)
{
	headroom_tick(now);
	for (unsigned int i = 0; i < 2; i++)
		two[i].cycles += HZ + HZ / 100;
	two[0].busy_cycles += 2000;
	two[0].busy_loops++;
	two[0].ports[3].rx_packets++;
	now += HZ + HZ / 100;
	headroom_tick(now);
	headroom_read(now, &h);
	assert_int_equal(h.workers[0].packets_s, 0);
	assert_int_equal(h.state, HEADROOM_MEASURED);
	assert_int_equal(h.headroom, 1010000000); // 2.02e9 of 2000 cycles
	assert_int_equal(h.workers[0].limit_s, 1000000);
}

static void
test_starting(void **state)
{
	headroom_read(now, &h);
	assert_int_equal(h.state, HEADROOM_STARTING);
	headroom_tick(now);
	headroom_read(now, &h);
	assert_int_equal(h.state, HEADROOM_STARTING);
	assert_int_equal(h.headroom, 0);
	headroom_start(HZ);
	ticks(4, &light, &nothing);
	assert_int_equal(h.state, HEADROOM_MEASURED);
	assert_int_equal(h.window_ms, 200);
	assert_int_equal(h.headroom, 10000);
}

// Worker 1 does not come back from a round: its cycles stand still.
static void
test_stalled(void **state)
{
	for (unsigned int i = 0; i < 20; i++) {
		ticks(1, &light, &light);
		two[1].cycles -= TICK;
	}
	ticks(1, &light, &light);
	assert_int_equal(h.state, HEADROOM_STALLED);
	assert_int_equal(h.headroom, 0);
	assert_int_equal(h.limit_s, 0);
}

static void
test_full_remembered(void **state)
{
	struct work longer = light, near = light;

	ticks(20, &full, &nothing);
	assert_int_equal(h.headroom, 1000);
	assert_int_equal(h.workers[0].limit_s, 8000000); // 2 GHz ÷ 250
	assert_false(h.workers[0].at_least);
	// The last full window has one tick of light: 18 × 100 + 10 million cycles by
	// 18 × 400,000 + 10,000 packets. And 40,000 is 8,000,000 ÷ 200,000.
	ticks(200, &light, &nothing);
	assert_int_equal(h.workers[0].packet_cycles, 1000);
	assert_int_equal(h.workers[0].full_cycles, 251);
	assert_in_range(h.workers[0].limit_s, 7950000, 8000000);
	assert_in_range(h.headroom, 39750, 40000);
	assert_false(h.workers[0].at_least);
	near.bytes = 112;
	ticks(30, &near, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 251);
	longer.bytes = 114; // an eighth is 12.5
	ticks(30, &longer, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 0);
	assert_int_equal(h.workers[0].limit_s, 2000000);
	assert_true(h.workers[0].at_least);
	headroom_start(HZ);
	ticks(20, &light, &nothing);
	assert_true(h.workers[0].at_least);
}

// Who hands over to a worker that is too far behind drops nine of ten, at a tenth of the cost:
// 40,000 packets of 2500 cycles are left, and bursts of 6.4. Nothing there is remembered.
static void
test_refused(void **state)
{
	struct work behind = full;

	behind.refused = 360000;
	ticks(20, &behind, &nothing);
	assert_int_equal(h.workers[0].packets_s, 800000);
	assert_int_equal(h.workers[0].packet_cycles, 2500);
	assert_int_equal(h.workers[0].burst, 100);
	assert_true(h.workers[0].at_least);
	assert_int_equal(h.headroom, 1000);
	ticks(40, &light, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 0);
	behind.refused = behind.packets;
	ticks(40, &behind, &nothing);
	assert_int_equal(h.state, HEADROOM_MEASURED);
	assert_int_equal(h.workers[0].limit_s, 0);
	assert_int_equal(h.headroom, 1000);
}

// Fuller bursts, once, are not a measurement; nor are those of 55.
static void
test_full_needs_many(void **state)
{
	struct work few = {.rounds = 4, .packets = 256, .bytes = 100, .busy = 64000};
	struct work short_ones = {.rounds = 1000, .packets = 55000, .bytes = 100, .busy = 22000000};

	ticks(20, &few, &nothing); // 80 rounds
	ticks(40, &light, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 0);
	ticks(40, &short_ones, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 0);
	short_ones.packets = 56000;
	ticks(40, &short_ones, &nothing);
	assert_int_equal(h.workers[0].full_cycles, 392); // 22,000,000 ÷ 56,000
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_numbers, setup),
		cmocka_unit_test_setup(test_nearest_decides, setup),
		cmocka_unit_test_setup(test_window_moves, setup),
		cmocka_unit_test_setup(test_silence, setup),
		cmocka_unit_test_setup(test_one_packet, setup),
		cmocka_unit_test_setup(test_starting, setup),
		cmocka_unit_test_setup(test_stalled, setup),
		cmocka_unit_test_setup(test_full_remembered, setup),
		cmocka_unit_test_setup(test_refused, setup),
		cmocka_unit_test_setup(test_full_needs_many, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
