/* SPDX-License-Identifier: BSD-3-Clause */
// Proves that the SAD finds the SA of exactly this SPI and this destination and no
// other: random SPIs and such as follow each other, many destinations with one SPI and
// the other way round, both families, packets of no SA, an SA twice, and a full table.
#include "sa.h"
#include "sad.h"

#include <rte_byteorder.h>
#include <rte_eal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAS 10000
#define LOOKUPS 10000

static uint32_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

// Of few SPIs and few destinations, so that many share one of both.
static void
random_sa(struct sa *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->family = rnd(2) == 0 ? 4 : 6;
	sa->spi = rnd(4) == 0 ? rnd(UINT32_MAX >> 8) << 8 | rnd(256) : 256 + rnd(400);
	sa->dst.family = sa->family;
	sa->dst.b[0] = sa->family == 4 ? 192 : 0x20;
	sa->dst.b[1] = (uint8_t)rnd(2);
	sa->dst.b[addr_size(sa->family) - 1] = (uint8_t)rnd(100);
}

// The reference. @return NULL: there is none
static struct sa *
walk(struct sa *sas, uint32_t n, uint8_t family, uint32_t spi, const uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++)
		if (sas[i].family == family && sas[i].spi == spi &&
		    memcmp(sas[i].dst.b, dst, addr_size(family)) == 0)
			return &sas[i];
	return NULL;
}

// In bursts of one family, of every length.
static void
compare(const struct sad *sad, struct sa *sas, uint32_t n, uint32_t lookups)
{
	uint32_t found = 0, absent = 0;

	for (uint32_t done = 0; done < lookups;) {
		uint32_t burst = 1 + rnd(SAD_BURST), taken = 0;
		uint8_t family = rnd(2) == 0 ? 4 : 6;
		struct sa asked[SAD_BURST], *out[SAD_BURST];
		struct sad_key keys[SAD_BURST];

		while (taken < burst) {
			if (rnd(2) == 0)
				random_sa(&asked[taken]);
			else
				asked[taken] = sas[rnd(n)];
			if (asked[taken].family != family)
				continue;
			keys[taken] = (struct sad_key){rte_cpu_to_be_32(asked[taken].spi), asked[taken].dst.b};
			taken++;
		}
		sad_find(sad, family, keys, out, burst);
		for (uint32_t i = 0; i < burst; i++) {
			struct sa *want = walk(sas, n, family, asked[i].spi, asked[i].dst.b);

			assert_ptr_equal(out[i], want);
			found += want != NULL;
			absent += want == NULL;
		}
		done += burst;
	}
	assert_true(found > lookups / 10 && absent > lookups / 10);
}

static void
test_equals_walk(void **state)
{
	struct sa *sas = calloc(SAS, sizeof(*sas));
	struct err err;
	struct sad *sad = sad_create(SAS, &err);
	uint32_t n = 0;

	assert_non_null(sad);
	while (n < SAS) {
		random_sa(&sas[n]);
		if (walk(sas, n, sas[n].family, sas[n].spi, sas[n].dst.b) != NULL)
			continue;
		assert_int_equal(sad_add(sad, &sas[n], &err), 0);
		n++;
		if (n == 1000)
			compare(sad, sas, n, LOOKUPS);
	}
	compare(sad, sas, n, LOOKUPS);
	sad_free(sad);
	free(sas);
}

// What no configuration has is refused, not looked for without an end.
static void
test_refuses(void **state)
{
	struct sa sas[64];
	struct err err;
	struct sad *sad = sad_create(0, &err);
	struct sad_key key = {rte_cpu_to_be_32(5000), sas[0].dst.b};
	struct sa *out;
	uint32_t n = 0;

	memset(sas, 0, sizeof(sas));
	assert_non_null(sad);
	for (; n < 64; n++) {
		sas[n].family = 4;
		sas[n].spi = 300 + n;
		if (sad_add(sad, &sas[n], &err) != 0)
			break;
	}
	assert_true(n > 0 && n < 64);
	sad_find(sad, 4, &key, &out, 1);
	assert_null(out);
	sad_free(sad);
	sad = sad_create(4, &err);
	assert_non_null(sad);
	assert_int_equal(sad_add(sad, &sas[0], &err), 0);
	assert_int_equal(sad_add(sad, &sas[0], &err), -EEXIST);
	sad_free(sad);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_walk),
		cmocka_unit_test(test_refuses),
	};
	char *argv[] = {"sad", "--no-huge", "-m", "64", "--no-pci", "--no-telemetry", "-l", "0",
			"--file-prefix=sgw-test-sad", "--log-level=3", NULL};

	if (rte_eal_init(10, argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
