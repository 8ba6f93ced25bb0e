/* SPDX-License-Identifier: BSD-3-Clause */
// What finding an inbound SA costs: cycles a lookup, for several numbers of SAs. Each
// packet belongs to another SA, drawn at random.
//
//	ninja -C build test/bench/sad && build/test/bench/sad
#include "sa.h"
#include "sad.h"

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 65536
#define BURST 32
#define RUNS 5

static uint32_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static double
measure(const struct sad *sad, uint8_t family, const struct sad_key *keys)
{
	struct sa *out[BURST];
	uint64_t best = UINT64_MAX, missed = 0;

	for (int run = 0; run < RUNS; run++) {
		uint64_t start = rte_rdtsc_precise();

		for (uint32_t i = 0; i < KEYS; i += BURST) {
			sad_find(sad, family, &keys[i], out, BURST);
			for (uint32_t j = 0; j < BURST; j++)
				missed += out[j] == NULL;
		}
		best = RTE_MIN(best, rte_rdtsc_precise() - start);
	}
	if (missed != 0)
		printf("wrong: %lu keys found nothing\n", missed);
	return (double)best / KEYS;
}

// Only what the SAD looks at is filled in.
static void
bench(uint8_t family, uint32_t n)
{
	struct sa *sas = calloc(n, sizeof(*sas));
	struct sad_key *keys = calloc(KEYS, sizeof(*keys));
	struct err err;
	struct sad *sad = sad_create(n, &err);

	for (uint32_t i = 0; i < n; i++) {
		sas[i].family = family;
		sas[i].inbound = true;
		sas[i].spi = 0x1000 + 2 * i;
		sas[i].dst = (struct addr){.family = family, .b = {192, 0, 2, 1}};
		if (sad == NULL || sad_add(sad, &sas[i], &err) != 0)
			abort();
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		const struct sa *sa = &sas[rnd(n)];

		keys[i] = (struct sad_key){rte_cpu_to_be_32(sa->spi), sa->dst.b};
	}
	printf("IPv%u %6u SAs: %6.1f cycles a lookup\n", family, n, measure(sad, family, keys));
	sad_free(sad);
	free(sas);
	free(keys);
}

int
main(void)
{
	static const uint32_t numbers[] = {1, 1000, 10000};
	char *argv[] = {"sad", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0",
			"--file-prefix=sgw-bench-sad", "--log-level=3", NULL};

	if (rte_eal_init(10, argv) < 0)
		return 1;
	for (uint8_t family = 4; family <= 6; family += 2)
		for (size_t i = 0; i < RTE_DIM(numbers); i++)
			bench(family, numbers[i]);
	return 0;
}
