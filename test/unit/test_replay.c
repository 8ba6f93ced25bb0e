/* SPDX-License-Identifier: BSD-3-Clause */
// The window against a reference that keeps every accepted number in a set.
#include "replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static const uint32_t sizes[] = {1,   2,   31,  32,  33,   63,   64,   65,
				 127, 128, 129, 1000, 1024, 4095, 4096};

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t
random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

// A window in memory of exactly its bytes, so that the sanitizer sees a step
// outside, and with garbage in it before.
static struct replay *
make(uint32_t size, uint32_t esn_width, uint64_t top)
{
	struct replay *r = malloc(replay_bytes(size));

	assert_non_null(r);
	memset(r, 0xa5, replay_bytes(size));
	replay_init(r, size, esn_width, top);
	return r;
}

// The reference: a set of the accepted numbers from base on.

#define MODEL_SPAN (1u << 20)

struct model {
	uint64_t base;
	uint64_t top;
	uint32_t size;
	uint8_t accepted[MODEL_SPAN];
};

static enum replay_verdict
model_verdict(const struct model *m, uint64_t s)
{
	if (s == 0)
		return REPLAY_LATE;
	if (s > m->top || m->size == 0)
		return REPLAY_FRESH;
	if (s + m->size <= m->top)
		return REPLAY_LATE;
	assert_true(s >= m->base && s - m->base < MODEL_SPAN);
	return m->accepted[s - m->base] ? REPLAY_SEEN : REPLAY_FRESH;
}

static void
model_accept(struct model *m, uint64_t s)
{
	if (m->size != 0)
		m->accepted[s - m->base] = 1;
	if (s > m->top)
		m->top = s;
}

static uint64_t
below(uint64_t n, uint64_t minus)
{
	return n > minus ? n - minus : 0;
}

// The next packet on the wire: mostly near the top, with loss, reordering,
// repetition, jumps and numbers at both edges.
static uint64_t
walk_step(const struct model *m)
{
	uint64_t size = m->size == 0 ? 100 : m->size;
	uint64_t top = m->top;

	switch (random_below(12)) {
	case 0:
	case 1:
	case 2:
		return top + 1;
	case 3:
		return top + 1 + random_below(4);
	case 4:
		return top + 1 + random_below(70);
	case 5:
		return below(top, random_below(size));
	case 6:
		return below(top, random_below(size < 70 ? size : 70));
	case 7: // around the left edge
		return below(top, size - 2 + random_below(5));
	case 8:
		return below(top, random_below(2 * size + 200));
	case 9: // word boundaries
		return below(top / 64 * 64, 64 * random_below(3)) + random_below(2);
	case 10: // a jump of about the window or about the ring
		if (random_below(20) != 0)
			return top;
		return top + random_below(2) * size + random_below(size + 130);
	default:
		if (random_below(200) != 0)
			return below(top, random_below(5));
		return top + 64 * random_below(300) + random_below(3);
	}
}

static void
check_step(struct replay *r, struct model *m, uint64_t s, uint8_t *copy)
{
	uint32_t bytes = replay_bytes(m->size);
	enum replay_verdict want = model_verdict(m, s);

	memcpy(copy, r, bytes);
	assert_int_equal(replay_check(r, s), want);
	if (random_below(8) == 0) { // the ICV was wrong
		assert_memory_equal(copy, r, bytes);
		return;
	}
	assert_int_equal(replay_commit(r, s), want);
	if (want == REPLAY_FRESH)
		model_accept(m, s);
	else
		assert_memory_equal(copy, r, bytes);
	assert_true(r->top == m->top);
	assert_int_equal(replay_check(r, s), model_verdict(m, s));
	assert_int_equal(replay_commit(r, s), model_verdict(m, s));
}

static void
walk(uint32_t size, uint32_t esn_width, uint64_t start, uint64_t top)
{
	static uint8_t copy[sizeof(struct replay) + 2 * REPLAY_MAX / 8 + 64];
	struct model *m = calloc(1, sizeof(*m));
	struct replay *r = make(size, esn_width, top);
	uint64_t s;

	assert_non_null(m);
	assert_true(replay_bytes(size) <= sizeof(copy));
	*m = (struct model){.base = start, .top = top, .size = size};
	memset(m->accepted, 1, top - start + 1);
	for (int i = 0; i < 100000; i++) {
		s = walk_step(m);
		if (s > start + MODEL_SPAN - 1)
			break;
		// Only the low half is on the wire, and the walk stays in the span
		// in which it tells the high half.
		if (esn_width == 0 && s > UINT32_MAX)
			break;
		if (esn_width == 0 || s + esn_width > m->top)
			assert_true(replay_infer(r, (uint32_t)s) == s);
		check_step(r, m, s, copy);
	}
	assert_true(r->top > top + 1000);
	free(r);
	free(m);
}

static void
test_walk(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		walk(sizes[i], 0, 0, 0);
		walk(sizes[i], 0, 0, 77777);
		walk(sizes[i], 0, UINT32_MAX - 200000, UINT32_MAX - 190000);
	}
	for (int i = 0; i < 50; i++)
		walk(1 + (uint32_t)random_below(REPLAY_MAX), 0, 0, random_below(1000));
	walk(0, 0, 0, 0);
}

static void
test_walk_esn(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint32_t width = sizes[i] < 64 ? 64 : sizes[i];

		walk(sizes[i], width, 0, 0);
		walk(sizes[i], sizes[i], 0, 0);
		for (uint64_t high = 1; high < 4; high++) {
			walk(sizes[i], width, (high << 32) - 30000, (high << 32) - 20000);
			walk(sizes[i], 2 * width, (high << 32) - 30000, (high << 32) - 20000);
		}
		// The top stands on either side of the wrap from the start.
		walk(sizes[i], width, (UINT64_C(7) << 32) - 30000, (UINT64_C(7) << 32) - 1);
		walk(sizes[i], width, (UINT64_C(7) << 32) - 30000, UINT64_C(7) << 32);
	}
}

// Every bit position, for tops at every offset in a word: what was accepted is
// SEEN, what was not is FRESH, and the window ends where it must.
static void
test_bits(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint32_t size = sizes[i];

		for (uint64_t offset = 0; offset < 130; offset++) {
			uint64_t top = 3 * REPLAY_MAX + offset;
			struct replay *r = make(size, 0, top - 2 * size - 200);

			for (uint64_t s = r->top + 1; s <= top; s++)
				if (s % 3 != 0 || s == top)
					assert_int_equal(replay_commit(r, s), REPLAY_FRESH);
			for (uint64_t s = top - size + 1; s <= top; s++)
				assert_int_equal(replay_check(r, s), s % 3 != 0 || s == top
									     ? REPLAY_SEEN
									     : REPLAY_FRESH);
			for (uint64_t s = 0; s <= top - size; s += s < top - size - 300 ? 97 : 1)
				assert_int_equal(replay_check(r, s), REPLAY_LATE);
			assert_int_equal(replay_check(r, top - size), REPLAY_LATE);
			for (uint64_t s = top - size + 1; s <= top; s++)
				if (s % 3 == 0 && s != top)
					assert_int_equal(replay_commit(r, s), REPLAY_FRESH);
			for (uint64_t s = top - size + 1; s <= top; s++)
				assert_int_equal(replay_commit(r, s), REPLAY_SEEN);
			assert_int_equal(replay_check(r, top + 1), REPLAY_FRESH);
			free(r);
		}
	}
}

// A jump keeps what is still inside and leaves nothing of what is not.
static void
test_jump(void **unused)
{
	static const uint64_t jumps[] = {1,    2,	 31,   32,	       33,
					 63,   64,	 65,   127,	       128,
					 129,  1000,	 1024, 4095,	       4096,
					 4097, 8191,	 8192, 8193,	       1 << 20,
					 8256, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 50};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		for (size_t j = 0; j < ARRAY_LEN(jumps); j++) {
			uint64_t old = 5000 + i + j;
			uint64_t top = old + jumps[j];
			struct replay *r = make(sizes[i], 0, old);

			assert_int_equal(replay_commit(r, top), REPLAY_FRESH);
			assert_true(r->top == top);
			for (uint64_t s = top - sizes[i] + 1; s < top; s++)
				assert_int_equal(replay_check(r, s),
						 s <= old ? REPLAY_SEEN : REPLAY_FRESH);
			assert_int_equal(replay_check(r, top), REPLAY_SEEN);
			assert_int_equal(replay_check(r, top - sizes[i]), REPLAY_LATE);
			free(r);
		}
	}
}

static void
test_initial_top(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint32_t size = sizes[i];

		for (uint64_t top = 0; top < 2 * REPLAY_MAX + 200; top += top < 200 ? 1 : 61) {
			struct replay *r = make(size, 0, top);

			assert_true(r->top == top);
			assert_int_equal(replay_check(r, 0), REPLAY_LATE);
			for (uint64_t s = 1; s <= top; s++)
				assert_int_equal(replay_check(r, s), s + size <= top ? REPLAY_LATE
										     : REPLAY_SEEN);
			for (uint64_t s = top + 1; s < top + size + 200; s++)
				assert_int_equal(replay_check(r, s), REPLAY_FRESH);
			assert_int_equal(replay_commit(r, top + 1), REPLAY_FRESH);
			assert_int_equal(replay_check(r, top + 1), REPLAY_SEEN);
			assert_int_equal(replay_check(r, top),
					 top == 0 || size == 1 ? REPLAY_LATE : REPLAY_SEEN);
			free(r);
		}
	}
}

static void
test_zero(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct replay *r = make(sizes[i], 0, 0);

		for (int step = 0; step < 200; step++) {
			assert_int_equal(replay_check(r, 0), REPLAY_LATE);
			assert_int_equal(replay_commit(r, 0), REPLAY_LATE);
			assert_int_equal(replay_commit(r, r->top + 1), REPLAY_FRESH);
		}
		free(r);
		// With ESN a low half of zero is a good number, except the first.
		r = make(sizes[i], sizes[i], UINT32_MAX);
		assert_true(replay_infer(r, 0) == UINT64_C(1) << 32);
		assert_int_equal(replay_commit(r, UINT64_C(1) << 32), REPLAY_FRESH);
		assert_int_equal(replay_commit(r, UINT64_C(1) << 32), REPLAY_SEEN);
		free(r);
	}
}

static void
test_off(void **unused)
{
	struct replay *r = make(0, 0, 0);

	assert_int_equal(replay_check(r, 0), REPLAY_LATE);
	assert_int_equal(replay_commit(r, 0), REPLAY_LATE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(replay_commit(r, 1), REPLAY_FRESH);
		assert_int_equal(replay_commit(r, 5000), REPLAY_FRESH);
		assert_int_equal(replay_commit(r, 4999), REPLAY_FRESH);
		assert_true(r->top == 5000);
	}
	assert_int_equal(replay_commit(r, UINT32_MAX), REPLAY_FRESH);
	assert_true(r->top == UINT32_MAX);
	free(r);
}

static void
test_last(void **unused)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct replay *r = make(sizes[i], sizes[i], UINT64_MAX - 2);

		assert_int_equal(replay_check(r, UINT64_MAX), REPLAY_FRESH);
		assert_int_equal(replay_commit(r, UINT64_MAX), REPLAY_FRESH);
		assert_int_equal(replay_commit(r, UINT64_MAX), REPLAY_SEEN);
		assert_int_equal(replay_check(r, UINT64_MAX - 1),
				 sizes[i] == 1 ? REPLAY_LATE : REPLAY_FRESH);
		assert_int_equal(replay_check(r, UINT64_MAX - sizes[i]), REPLAY_LATE);
		assert_int_equal(replay_check(r, 1), REPLAY_LATE);
		free(r);
	}
}

// reconstruct_esn() of DPDK 22.11.11, lib/ipsec/ipsec_sqn.h, word for word.
static uint64_t
library_infer(uint64_t t, uint32_t sqn, uint32_t w)
{
	uint32_t th, tl, bl;

	tl = t;
	th = t >> 32;
	bl = tl - w + 1;

	/* case A: window is within one sequence number subspace */
	if (tl >= (w - 1))
		th += (sqn < bl);
	/* case B: window spans two sequence number subspaces */
	else if (th != 0)
		th -= (sqn >= bl);

	/* return constructed sequence with proper high-order bits */
	return (uint64_t)th << 32 | sqn;
}

static void
test_infer_as_library(void **unused)
{
	static const uint32_t widths[] = {1, 2, 63, 64, 65, 128, 1000, 4096, 8192};
	static const uint64_t highs[] = {0, 1, 2, 0x7fffffff, 0xfffffffe, 0xffffffff};

	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		uint32_t w = widths[i];
		struct replay *r = make(1, w, 0);

		for (int n = 0; n < 200000; n++) {
			// Tops and numbers near the borders of both cases, and anywhere.
			uint32_t near = (uint32_t)random_below(2 * w + 4) - w - 2;
			uint32_t low = (uint32_t)random_below(2 * w + 4) - w - 2;
			uint64_t high = highs[random_below(ARRAY_LEN(highs))];

			if (random_below(3) == 0)
				near = (uint32_t)random_below(UINT64_C(1) << 32);
			r->top = high << 32 | near;
			if (random_below(3) == 0)
				low += near - w + 1;
			else if (random_below(3) == 0)
				low = (uint32_t)random_below(UINT64_C(1) << 32);
			assert_true(replay_infer(r, low) == library_infer(r->top, low, w));
		}
		free(r);
	}
}

static void
test_infer_table(void **unused)
{
	static const struct {
		uint64_t top;
		uint32_t width;
		uint32_t low;
		uint64_t want;
	} cases[] = {
		{0, 0, 0xffffffff, 0xffffffff},           // 1: no ESN
		{0x100000005, 0, 3, 3},                   // 2: no ESN, whatever the top
		{0, 64, 1, 1},                            // 3: first packet
		{0, 64, 0xffffffc1, 0xffffffc1},          // 4: case B without a subspace below
		{63, 64, 0, 0},                           // 5: case A begins, left edge
		{63, 64, 0xffffffff, 0xffffffff},         // 6: far ahead
		{64, 64, 0, 0x100000000},                 // 7: left of the window is the next
		{64, 64, 1, 1},                           // 8: left edge
		{0xffffffff, 64, 0xffffffc0, 0xffffffc0}, // 9: left edge at the wrap
		{0xffffffff, 64, 0xffffffbf, 0x1ffffffbf}, // 10: left of it
		{0xffffffff, 64, 0, 0x100000000},         // 11: across the wrap
		{0x100000000, 64, 0xffffffff, 0xffffffff}, // 12: back across it
		{0x100000000, 64, 0xffffffc1, 0xffffffc1}, // 13: left edge back across it
		{0x100000000, 64, 0xffffffc0, 0x1ffffffc0}, // 14: left of that
		{0x10000003e, 64, 0xffffffff, 0xffffffff}, // 15: last of case B
		{0x10000003f, 64, 0xffffffff, 0x1ffffffff}, // 16: first of case A
		{0x200000010, 1, 0x10, 0x200000010},      // 17: width 1, the top
		{0x200000010, 1, 0x0f, 0x30000000f},      // 18: width 1, left of it
		{0x200000000, 1, 0xffffffff, 0x2ffffffff}, // 19: width 1 has no case B
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct replay *r = make(1, cases[i].width, cases[i].top);
		uint64_t got = replay_infer(r, cases[i].low);

		if (got != cases[i].want)
			fail_msg("case %zu: got 0x%llx", i + 1, (unsigned long long)got);
		free(r);
	}
}

static void
test_bytes(void **unused)
{
	for (uint32_t size = 0; size <= REPLAY_MAX; size++) {
		struct replay *r = make(size, 0, 0);

		assert_int_equal(r->words & (r->words - 1), 0);
		assert_true(r->words * 64 >= (size + 63) / 64 * 64 + 64);
		assert_int_equal(replay_bytes(size), sizeof(*r) + r->words * 8);
		free(r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_last),
		cmocka_unit_test(test_initial_top),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_infer_table),
		cmocka_unit_test(test_infer_as_library),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_esn),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
