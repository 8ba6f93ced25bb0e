/* SPDX-License-Identifier: BSD-3-Clause */
// What the crypto of a packet costs alone: cycles of mb_run() for a burst, sealing inner
// packets of a size in place, all in the cache. A lower bound of what a gateway needs.
//
//	ninja -C build test/bench/mb && build/test/bench/mb --no-huge --no-pci -m 64
#include "mb.h"

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200 // bursts between two looks at the clock
#define RUNS 25    // the median counts

// Not a power of two, or all of them would want the same few lines of the cache.
static uint8_t bytes[MB_BURST][2048 + 320] __attribute__((aligned(64)));

// 7:4:1, as in cases.py.
static const uint16_t imix[] = {64, 528, 64, 64, 528, 64, 1420, 64, 528, 64, 528, 64};

static const struct suite {
	const char *name; // as in cases.py
	enum alg_id cipher, auth;
	uint32_t key_len, auth_len;
} suites[] = {
	{"aes-gcm-128", ALG_AES_GCM_16, ALG_NONE, 16, 0},
	{"aes-gcm-256", ALG_AES_GCM_16, ALG_NONE, 32, 0},
	{"aes-cbc-128+hmac-sha1-96", ALG_AES_CBC, ALG_HMAC_SHA1_96, 16, 20},
	{"aes-cbc-256+hmac-sha256-128", ALG_AES_CBC, ALG_HMAC_SHA256_128, 32, 32},
	{"chacha20-poly1305", ALG_CHACHA20_POLY1305, ALG_NONE, 32, 0},
};

static void
fill(struct mb_work *w, const struct suite *s, const struct mb_key *key, uint8_t *at, uint32_t inner)
{
	const struct alg *a = alg_get(s->cipher);

	*w = (struct mb_work){.key = key, .esp = at, .aad_len = 8};
	w->cipher_off = (uint16_t)(8 + a->iv_len);
	w->cipher_len = (uint16_t)RTE_ALIGN_CEIL(inner + 2, (uint32_t)a->align);
	w->hash_len = (uint16_t)(w->cipher_off + w->cipher_len);
	w->tag = at + w->hash_len;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

// @param size  of the inner packets, 0: a mix
static double
measure(struct mb_manager *mgr, const struct suite *s, const struct mb_key *key, uint32_t size)
{
	struct mb_work works[MB_BURST];
	double cycles[RUNS];

	for (int run = 0; run < RUNS; run++) {
		uint64_t start;

		for (uint32_t i = 0; i < MB_BURST; i++) {
			uint32_t inner = size != 0 ? size : imix[(run * MB_BURST + i) % RTE_DIM(imix)];

			fill(&works[i], s, key, bytes[i], inner);
		}
		start = rte_rdtsc_precise();
		for (int round = 0; round < ROUNDS; round++)
			mb_run(mgr, works, MB_BURST);
		cycles[run] = (double)(rte_rdtsc_precise() - start) / ROUNDS / MB_BURST;
	}
	qsort(cycles, RUNS, sizeof(cycles[0]), compare);
	return cycles[RUNS / 2];
}

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = {64, 528, 1420, 0};
	static const uint8_t secret[64] = {1};
	struct err err;
	struct mb_manager *mgr;

	if (rte_eal_init(argc, argv) < 0)
		return EXIT_FAILURE;
	mgr = mb_manager_create(&err);
	if (mgr == NULL)
		return EXIT_FAILURE;
	for (unsigned int i = 0; i < RTE_DIM(suites); i++) {
		const struct suite *s = &suites[i];
		struct mb_key_prm prm = {.cipher = s->cipher, .auth = s->auth, .key = secret,
			.key_len = s->key_len, .auth_key = secret, .auth_key_len = s->auth_len};
		struct mb_key *key = mb_key_create(mgr, &prm);

		if (key == NULL)
			return EXIT_FAILURE;
		for (unsigned int j = 0; j < RTE_DIM(sizes); j++) {
			char size[16] = "imix";

			if (sizes[j] != 0)
				snprintf(size, sizeof(size), "%u", sizes[j]);
			printf("%s %s %.1f\n", s->name, size, measure(mgr, s, key, sizes[j]));
		}
		mb_key_free(key);
	}
	mb_manager_free(mgr);
	rte_eal_cleanup();
	return EXIT_SUCCESS;
}
