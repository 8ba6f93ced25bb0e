/* SPDX-License-Identifier: BSD-3-Clause */
// What a policy costs: cycles a lookup, and the time and memory to build, for policies
// of several kinds and numbers. Each packet belongs to another policy, drawn at random,
// so that nothing is in a cache because it was used just before.
//
//	ninja -C build test/bench/spd && build/test/bench/spd
#include "spd.h"

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 65536
#define BURST 32
#define RUNS 5

enum kind { NETS, HOSTS, RANGES, KINDS };

static const char *const kind_names[KINDS] = {"/24 pairs", "hosts+ports", "ranges mixed"};

static uint32_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

// The i-th network of 256 addresses.
static struct addr
net(uint8_t family, uint8_t top, uint32_t i, uint8_t host)
{
	struct addr a = {.family = family};
	size_t n = addr_size(family);

	a.b[0] = top;
	a.b[n - 3] = (uint8_t)(i >> 8);
	a.b[n - 2] = (uint8_t)i;
	a.b[n - 1] = host;
	return a;
}

static void
policy_make(struct cfg_policy *p, enum kind kind, uint8_t family, uint32_t i)
{
	uint8_t low = 0, high = 255;

	*p = (struct cfg_policy){.dir = CFG_OUT, .action = CFG_BYPASS, .any_proto = true, .rank = i,
				 .sport = {0, UINT16_MAX}, .dport = {0, UINT16_MAX}};
	if (kind == HOSTS || (kind == RANGES && i % 3 == 0)) {
		low = high = (uint8_t)(1 + i % 200);
		p->any_proto = false;
		p->proto = i % 2 == 0 ? 6 : 17;
		p->dport[0] = p->dport[1] = (uint16_t)(1000 + i % 7);
	}
	if (kind == RANGES && i % 3 == 1) {
		low = (uint8_t)(3 + i % 50);
		high = (uint8_t)(low + 20 + i % 60);
	}
	if (kind == RANGES && i % 5 == 0 && !p->any_proto)
		p->dport[1] = (uint16_t)(p->dport[0] + 500);
	p->src = (struct range){net(family, 10, i, low), net(family, 10, i, high)};
	p->dst = (struct range){net(family, 20, i, low), net(family, 20, i, high)};
}

// A packet that the policy takes.
static void
key_make(struct spd_key *k, const struct cfg_policy *p)
{
	size_t n = addr_size(p->src.first.family);

	memset(k, 0, sizeof(*k));
	k->proto = p->any_proto ? 6 : p->proto;
	memcpy(k->addrs, p->src.first.b, n);
	memcpy(k->addrs + n, p->dst.last.b, n);
	k->sport_be = rte_cpu_to_be_16((uint16_t)(1024 + rnd(60000)));
	k->dport_be = rte_cpu_to_be_16(p->any_proto ? 80 : p->dport[0]);
}

static double
measure(const struct spd *spd, uint8_t family, const struct spd_key *keys)
{
	const struct spd_key *kp[BURST];
	const struct spd_entry *out[BURST];
	uint64_t best = UINT64_MAX, missed = 0;

	for (int run = 0; run < RUNS; run++) {
		uint64_t start = rte_rdtsc_precise();

		for (uint32_t i = 0; i < KEYS; i += BURST) {
			for (uint32_t j = 0; j < BURST; j++)
				kp[j] = &keys[i + j];
			spd_match(spd, CFG_OUT, family, kp, out, BURST);
			for (uint32_t j = 0; j < BURST; j++)
				missed += out[j] == NULL;
		}
		best = RTE_MIN(best, rte_rdtsc_precise() - start);
	}
	if (missed != 0)
		printf("wrong: %lu keys found nothing\n", missed);
	return (double)best / KEYS;
}

static size_t
allocated(void)
{
	struct rte_malloc_socket_stats s;

	rte_malloc_get_socket_stats(0, &s);
	return s.heap_allocsz_bytes;
}

static void
bench(enum kind kind, uint8_t family, uint32_t n)
{
	struct cfg_policy *list = calloc(n, sizeof(*list));
	const struct tunnel **tunnels = calloc(n, sizeof(*tunnels));
	struct spd_key *keys = calloc(KEYS, sizeof(*keys));
	size_t before = allocated();
	uint64_t start;
	struct err err;
	struct spd *spd;
	double ms;

	for (uint32_t i = 0; i < n; i++)
		policy_make(&list[i], kind, family, i);
	for (uint32_t i = 0; i < KEYS; i++)
		key_make(&keys[i], &list[rnd(n)]);
	start = rte_rdtsc();
	spd = spd_create(list, tunnels, n, &err);
	ms = (double)(rte_rdtsc() - start) * 1e3 / (double)rte_get_tsc_hz();
	if (spd == NULL)
		printf("IPv%u %-12s %6u policies: can not be built after %.0f ms: %s\n", family,
		       kind_names[kind], n, ms, err.text);
	else
		printf("IPv%u %-12s %6u policies: %6.1f cycles a lookup, built in %.1f ms, %zu KiB\n", family,
		       kind_names[kind], n, measure(spd, family, keys), ms, (allocated() - before) / 1024);
	spd_free(spd);
	free(list);
	free(tunnels);
	free(keys);
}

int
main(void)
{
	static const uint32_t numbers[] = {1, 100, 10000};
	char *argv[] = {"spd", "--no-huge", "-m", "2048", "--no-pci", "--no-telemetry", "-l", "0",
			"--file-prefix=sgw-bench-spd", "--log-level=3", NULL};

	if (rte_eal_init(10, argv) < 0)
		return 1;
	for (int kind = 0; kind < KINDS; kind++)
		for (uint8_t family = 4; family <= 6; family += 2)
			for (size_t i = 0; i < RTE_DIM(numbers); i++)
				bench((enum kind)kind, family, numbers[i]);
	return 0;
}
