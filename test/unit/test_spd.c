/* SPDX-License-Identifier: BSD-3-Clause */
// Proves that the SPD's fast lookup gives, for every packet, the first policy by rank
// that a plain walk over the list finds: random rule sets with prefixes, odd ranges,
// protocols and port ranges, both directions and families, and what is left of them
// after deletions; few rules and thousands; packets in bursts of every length.
#include "spd.h"

#include <rte_byteorder.h>
#include <rte_eal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RULES 200
#define PACKETS 10000
#define ROUNDS 2
#define POOL 6000 // packets that bursts are drawn from
#define MANY 10000 // policies

static uint32_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

// Addresses of a small world, so that rules and packets meet: the last 2 bytes vary.
static struct addr
random_addr(uint8_t family)
{
	struct addr a = {.family = family};

	a.b[0] = family == 4 ? 10 : 0x20;
	a.b[addr_size(family) - 2] = (uint8_t)rnd(4);
	a.b[addr_size(family) - 1] = (uint8_t)rnd(256);
	return a;
}

static struct range
random_range(uint8_t family)
{
	struct range r = {.first = random_addr(family), .last = random_addr(family)};

	if (rnd(3) == 0) { // a prefix
		struct prefix p = {.addr = r.first, .len = (uint8_t)(addr_size(family) * 8 - rnd(17))};

		return prefix_range(&p);
	}
	if (addr_cmp(&r.first, &r.last) > 0) {
		struct addr t = r.first;

		r.first = r.last;
		r.last = t;
	}
	return r;
}

static void
random_ports(uint16_t ports[2])
{
	ports[0] = 0;
	ports[1] = UINT16_MAX;
	if (rnd(2) == 0)
		return;
	ports[0] = (uint16_t)rnd(40);
	ports[1] = (uint16_t)(ports[0] + rnd(20));
}

static void
random_policy(struct cfg_policy *p, uint32_t rank)
{
	static const enum cfg_action actions[] = {CFG_DISCARD, CFG_BYPASS, CFG_PROTECT};
	uint8_t family = rnd(2) == 0 ? 4 : 6;

	*p = (struct cfg_policy){
		.dir = rnd(2) == 0 ? CFG_IN : CFG_OUT,
		.src = random_range(family),
		.dst = random_range(family),
		.any_proto = rnd(2) == 0,
		.proto = rnd(2) == 0 ? 6 : 17,
		.action = actions[rnd(3)],
		.rank = rank,
	};
	random_ports(p->sport);
	random_ports(p->dport);
}

struct packet {
	enum cfg_dir dir;
	struct addr src, dst;
	uint8_t proto;
	uint16_t sport, dport;
};

// The reference: RFC 4301 section 4.4.1, an ordered list.
static int
walk(const struct cfg_policy *list, uint32_t n, const struct packet *p)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cfg_policy *r = &list[i];

		if (r->dir == p->dir && range_contains(&r->src, &p->src) &&
		    range_contains(&r->dst, &p->dst) && (r->any_proto || r->proto == p->proto) &&
		    p->sport >= r->sport[0] && p->sport <= r->sport[1] && p->dport >= r->dport[0] &&
		    p->dport <= r->dport[1])
			return (int)i;
	}
	return -1;
}

static int
lookup(const struct spd *spd, const struct packet *p)
{
	size_t size = addr_size(p->src.family);
	struct spd_key key = {
		.proto = p->proto,
		.sport_be = rte_cpu_to_be_16(p->sport),
		.dport_be = rte_cpu_to_be_16(p->dport),
	};
	const struct spd_key *keys[1] = {&key};
	const struct spd_entry *e;

	memcpy(key.addrs, p->src.b, size);
	memcpy(key.addrs + size, p->dst.b, size);
	spd_match(spd, p->dir, p->src.family, keys, &e, 1);
	return e == NULL ? -1 : (int)e->index;
}

static void
random_packet(struct packet *p, uint8_t family)
{
	*p = (struct packet){
		.dir = rnd(2) == 0 ? CFG_IN : CFG_OUT,
		.src = random_addr(family),
		.dst = random_addr(family),
		.proto = rnd(2) == 0 ? 6 : 17,
		.sport = (uint16_t)rnd(64),
		.dport = (uint16_t)rnd(64),
	};
}

static void
compare(const struct cfg_policy *list, uint32_t n, const struct tunnel **tunnels)
{
	struct spd *spd = spd_create(list, tunnels, n, NULL);
	uint32_t hits = 0;

	assert_non_null(spd);
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint8_t family = rnd(2) == 0 ? 4 : 6;
		struct packet p;

		random_packet(&p, family);
		int want = walk(list, n, &p);

		assert_int_equal(lookup(spd, &p), want);
		hits += want >= 0;
	}
	// The world is small enough that both outcomes happen often.
	assert_in_range(hits, PACKETS / 10, PACKETS * 99 / 100);
	spd_free(spd);
}

// All rules, then what is left when some were deleted, three times over.
static void
compare_round(void)
{
	struct cfg_policy *list = calloc(RULES, sizeof(*list));
	const struct tunnel **tunnels = calloc(RULES, sizeof(*tunnels));
	uint32_t n = RULES;

	for (uint32_t i = 0; i < RULES; i++)
		random_policy(&list[i], i);
	compare(list, n, tunnels);
	for (int deletion = 0; deletion < 3; deletion++) {
		uint32_t left = 0;

		for (uint32_t i = 0; i < n; i++)
			if (rnd(4) != 0)
				list[left++] = list[i];
		n = left;
		compare(list, n, tunnels);
	}
	free(list);
	free(tunnels);
}

static void
test_equals_walk(void **state)
{
	for (int i = 0; i < ROUNDS; i++)
		compare_round();
}

// Packets of one direction and family as bursts, and what a walk finds for each.
struct bursts {
	struct spd_key keys[POOL];
	int want[POOL];
};

static void
bursts_fill(struct bursts *b, const struct packet *packets, const struct cfg_policy *list, uint32_t n)
{
	size_t size = addr_size(packets[0].src.family);

	memset(b, 0, sizeof(*b));
	for (uint32_t i = 0; i < POOL; i++) {
		b->keys[i].proto = packets[i].proto;
		b->keys[i].sport_be = rte_cpu_to_be_16(packets[i].sport);
		b->keys[i].dport_be = rte_cpu_to_be_16(packets[i].dport);
		memcpy(b->keys[i].addrs, packets[i].src.b, size);
		memcpy(b->keys[i].addrs + size, packets[i].dst.b, size);
		b->want[i] = walk(list, n, &packets[i]);
	}
}

// Bursts of every length, at places of their own: a packet is met alone and in company.
static void
bursts_compare(const struct spd *spd, uint8_t family, const struct bursts *b, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t n = 1 + rnd(SPD_BURST), at[SPD_BURST];
		const struct spd_key *keys[SPD_BURST];
		const struct spd_entry *e[SPD_BURST];

		for (uint32_t j = 0; j < n; j++) {
			at[j] = rnd(POOL);
			keys[j] = &b->keys[at[j]];
		}
		spd_match(spd, CFG_OUT, family, keys, e, n);
		for (uint32_t j = 0; j < n; j++)
			assert_int_equal(e[j] == NULL ? -1 : (int)e[j]->index, b->want[at[j]]);
	}
}

// Two SPDs in turn, and new ones in the place of old ones.
static void
bursts(uint8_t family)
{
	struct packet *packets = calloc(POOL, sizeof(*packets));
	struct cfg_policy *list = calloc(RULES, sizeof(*list));
	const struct tunnel **tunnels = calloc(RULES, sizeof(*tunnels));
	struct bursts *b[2] = {malloc(sizeof(*b[0])), malloc(sizeof(*b[1]))};
	struct spd *spd[2] = {NULL, NULL};

	for (uint32_t i = 0; i < POOL; i++) {
		random_packet(&packets[i], family);
		packets[i].dir = CFG_OUT;
		// Many that only their ports and protocol tell apart.
		if (i >= 50) {
			packets[i].src = packets[i % 50].src;
			packets[i].dst = packets[i % 50].dst;
		}
	}
	for (int change = 0; change < 3; change++) {
		int which = change % 2;

		spd_free(spd[which]);
		for (uint32_t i = 0; i < RULES; i++)
			random_policy(&list[i], i);
		spd[which] = spd_create(list, tunnels, RULES, NULL);
		assert_non_null(spd[which]);
		bursts_fill(b[which], packets, list, RULES);
		for (int j = 0; j <= (change > 0); j++)
			bursts_compare(spd[j], family, b[j], 200);
	}
	spd_free(spd[0]);
	spd_free(spd[1]);
	free(b[0]);
	free(b[1]);
	free(packets);
	free(list);
	free(tunnels);
}

static void
test_bursts(void **state)
{
	bursts(4);
	bursts(6);
}

// Hosts with ports, networks and ranges, interleaved, and a last one for all others:
// the first that fits counts, in whatever table it stands.
static void
test_thousands(void **state)
{
	struct cfg_policy *list = calloc(MANY, sizeof(*list));
	const struct tunnel **tunnels = calloc(MANY, sizeof(*tunnels));
	struct spd *spd;

	for (uint32_t i = 0; i < MANY; i++) {
		random_policy(&list[i], i);
		// Not all in the small world, or it would soon be full.
		list[i].src.first.b[1] = list[i].src.last.b[1] = (uint8_t)(i % 50);
	}
	assert_int_equal(range_parse("0.0.0.0/0", &list[MANY - 1].src), 0);
	list[MANY - 1].dst = list[MANY - 1].src;
	spd = spd_create(list, tunnels, MANY, NULL);
	assert_non_null(spd);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct packet p;

		random_packet(&p, rnd(2) == 0 ? 4 : 6);
		p.src.b[1] = (uint8_t)rnd(52);
		assert_int_equal(lookup(spd, &p), walk(list, MANY, &p));
	}
	spd_free(spd);
	free(list);
	free(tunnels);
}

// The entry carries action and tunnel of its policy.
static void
test_entry(void **state)
{
	struct cfg_policy p = {.dir = CFG_OUT, .action = CFG_PROTECT, .any_proto = true,
			       .sport = {0, UINT16_MAX}, .dport = {0, UINT16_MAX}};
	const struct tunnel *tunnel = (const void *)&p;
	struct spd_key key = {.proto = 1};
	const struct spd_key *keys[1] = {&key};
	const struct spd_entry *e;
	struct spd *spd;

	assert_int_equal(range_parse("0.0.0.0/0", &p.src), 0);
	p.dst = p.src;
	spd = spd_create(&p, &tunnel, 1, NULL);
	assert_non_null(spd);
	assert_true(spd_has(spd, CFG_OUT, 4));
	assert_false(spd_has(spd, CFG_OUT, 6));
	assert_false(spd_has(spd, CFG_IN, 4));
	assert_false(spd_needs_whole(spd, 4));
	assert_false(spd_needs_whole(spd, 6));
	spd_match(spd, CFG_OUT, 4, keys, &e, 1);
	assert_non_null(e);
	assert_int_equal(e->action, CFG_PROTECT);
	assert_ptr_equal(e->tunnel, tunnel);
	spd_match(spd, CFG_IN, 4, keys, &e, 1);
	assert_null(e);
	spd_free(spd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_walk),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_thousands),
		cmocka_unit_test(test_entry),
	};
	char *argv[] = {"spd", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0",
			"--file-prefix=sgw-test-spd", "--log-level=3", NULL};

	if (rte_eal_init(10, argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
