/* SPDX-License-Identifier: BSD-3-Clause */
// The memory of flows: what was learned is found again, for exactly the same addresses,
// ports, protocol and tunnel of arrival, and never after a change of tables; a set that is
// full still answers right. flow_take: what is odd keeps the packets of its address pair
// with it and in order, others go; a tagged frame is its subinterface's.
#include "flow.h"

#include "cksum.h"
#include "stage.h"

#include <rte_byteorder.h>
#include <rte_eal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define L2_MAX 18

// A packet in memory of its own, as a pool has it: mbuf, private area, data.
struct packet {
	struct rte_mbuf m;
	struct pkt p __rte_cache_aligned;
	uint8_t data[128];
};

_Static_assert(offsetof(struct packet, p) == sizeof(struct rte_mbuf), "pkt() finds it");

static struct tunnel tunnel = {.index = 4};
static struct nexthop nexthops[3] = {{.kind = NEXTHOP_NONE}, {.kind = NEXTHOP_GATEWAY}, {.kind = NEXTHOP_DISCARD}};
static uint16_t by_vlan[VLAN_IDS] = {[7] = 2}; // port 1
static struct tport ports[2] = {{.rx_max = 1500, .mac_word = 2, .by_vlan = by_vlan},
				{.rx_max = 1500, .mac_word = 2, .parent = 0, .vlan = 7}};
static struct tables tables = {.generation = 1, .nexthops = nexthops, .n_nexthops = 3, .ports = ports, .n_ports = 2};
static struct worker w = {.tables = &tables};

static void
ip_put(struct packet *k, bool v6, uint16_t src, uint8_t dst, uint16_t sport, uint8_t proto)
{
	uint8_t *ip = k->data + L2_MAX;
	size_t l3 = v6 ? 40 : 20;

	memset(k, 0, sizeof(*k));
	k->m.buf_addr = k->data;
	k->m.priv_size = sizeof(k->p);
	k->m.nb_segs = 1;
	k->m.data_off = L2_MAX;
	k->m.data_len = (uint16_t)(l3 + 8);
	k->m.pkt_len = k->m.data_len;
	if (v6) {
		ip[0] = 0x60;
		ip[5] = 8;
		ip[6] = proto;
		ip[7] = 9;
		ip[8 + 14] = (uint8_t)(src >> 8);
		ip[8 + 15] = (uint8_t)src;
		ip[24 + 15] = dst;
	} else {
		ip[0] = 0x45;
		ip[3] = 28;
		ip[8] = 9;
		ip[9] = proto;
		ip[14] = (uint8_t)(src >> 8);
		ip[15] = (uint8_t)src;
		ip[19] = dst;
		cksum_ip4_set(ip, 20);
	}
	ip[l3] = (uint8_t)(sport >> 8);
	ip[l3 + 1] = (uint8_t)sport;
	k->p.family = v6 ? 6 : 4;
	k->p.proto = proto;
	k->p.l4_off = (uint16_t)l3;
}

// The frame around it.
static void
frame_put(struct packet *k, uint8_t tag)
{
	uint8_t l2 = tag != 0 ? 18 : 14, *frame = k->data + L2_MAX - l2;

	memset(frame, 0, l2);
	frame[0] = 2;
	frame[l2 - 2] = k->p.family == 4 ? 0x08 : 0x86;
	frame[l2 - 1] = k->p.family == 4 ? 0x00 : 0xdd;
	if (tag != 0) {
		frame[12] = 0x81;
		frame[15] = tag;
	}
	k->m.data_off = (uint16_t)(L2_MAX - l2);
	k->m.data_len = (uint16_t)(k->m.data_len + l2);
	k->m.pkt_len = k->m.data_len;
}

static void
learn(bool v6, uint16_t src, uint16_t sport, uint32_t from, uint16_t nexthop)
{
	struct packet k;

	ip_put(&k, v6, src, 2, sport, IPPROTO_UDP);
	k.p.from = from;
	k.p.nexthop = nexthop;
	k.p.tunnel = nexthop == 0 ? &tunnel : NULL;
	k.p.flags = from != 0 ? PKT_SECURED : PKT_BYPASS;
	flow_learn(&w, &k.m);
}

// @return its next hop, or -1: not known
static int
look(bool v6, uint16_t src, uint16_t sport, uint32_t from, uint8_t proto)
{
	struct packet k;

	ip_put(&k, v6, src, 2, sport, proto);
	k.p.from = from;
	return flow_look_inner(&w, &k.m) ? k.p.nexthop : -1;
}

static void
test_key(void **state)
{
	for (int v6 = 0; v6 < 2; v6++) {
		learn(v6, 1, 1000, 5, 1);
		assert_int_equal(look(v6, 1, 1000, 5, IPPROTO_UDP), 1);
		assert_int_equal(look(v6, 3, 1000, 5, IPPROTO_UDP), -1);
		assert_int_equal(look(v6, 1, 1001, 5, IPPROTO_UDP), -1);
		assert_int_equal(look(v6, 1, 1000, 6, IPPROTO_UDP), -1); // out of another tunnel
		assert_int_equal(look(v6, 1, 1000, 0, IPPROTO_UDP), -1); // in clear
		assert_int_equal(look(v6, 1, 1000, 5, IPPROTO_TCP), -1);
		assert_int_equal(look(!v6, 1, 1000, 5, IPPROTO_UDP), v6 ? 1 : -1);
	}
	learn(false, 9, 1000, 5, 2); // leads nowhere: every packet is to be told
	assert_int_equal(look(false, 9, 1000, 5, IPPROTO_UDP), -1);
	learn(false, 9, 1000, 5, 0); // into a tunnel, whatever its route
	assert_int_equal(look(false, 9, 1000, 5, IPPROTO_UDP), 0);
}

static void
test_generation(void **state)
{
	learn(false, 1, 2000, 5, 1);
	learn(true, 1, 2000, 5, 1);
	tables.generation++;
	assert_int_equal(look(false, 1, 2000, 5, IPPROTO_UDP), -1);
	assert_int_equal(look(true, 1, 2000, 5, IPPROTO_UDP), -1);
}

// More flows than there is room, which only addresses or only ports tell apart: each is
// found with its own way, or not.
static void
full(bool v6, bool by_port)
{
	unsigned int found = 0;

	tables.generation++;
	for (unsigned int i = 0; i < 60000; i++)
		learn(v6, by_port ? 1 : (uint16_t)i, by_port ? (uint16_t)i : 1, 5, i % 2);
	for (unsigned int i = 0; i < 60000; i++) {
		int nexthop = look(v6, by_port ? 1 : (uint16_t)i, by_port ? (uint16_t)i : 1, 5, IPPROTO_UDP);

		found += nexthop >= 0;
		if (nexthop >= 0)
			assert_int_equal(nexthop, i % 2);
	}
	assert_true(found > (v6 ? 7000 : 14000)); // of 8192, or 16384
}

static void
test_full(void **state)
{
	for (int i = 0; i < 4; i++)
		full(i % 2, i / 2);
}

static void
test_odd(void **state)
{
	struct packet k[4], *odd = &k[1];
	struct rte_mbuf *pkts[4], *known[BURST], *esp[BURST];
	uint16_t n_known, n_esp, left;

	for (int v6 = 0; v6 < 2; v6++) {
		tables.generation++;
		learn(v6, 1, 10, 0, 1);
		learn(v6, 3, 10, 0, 1);
		for (unsigned int i = 0; i < 4; i++) {
			ip_put(&k[i], v6, i < 3 ? 1 : 3, 2, 10, IPPROTO_UDP);
			if (&k[i] == odd && !v6) {
				odd->data[L2_MAX + 6] = 0x20; // the first of its fragments
				cksum_ip4_set(odd->data + L2_MAX, 20);
			} else if (&k[i] == odd) {
				odd->data[L2_MAX + 6] = IPPROTO_DSTOPTS;
			}
			frame_put(&k[i], 0);
			pkts[i] = &k[i].m;
		}
		left = flow_take(&w, pkts, 4, known, &n_known, esp, &n_esp);
		assert_int_equal(left, 3);
		for (unsigned int i = 0; i < 3; i++)
			assert_ptr_equal(pkts[i], &k[i].m);
		assert_int_equal(n_known, 1);
		assert_ptr_equal(known[0], &k[3].m);
		assert_int_equal(n_esp, 0);
	}
}

static void
test_tag(void **state)
{
	static const struct {
		uint8_t tag, port;
		bool known;
	} cases[] = {{0, 0, true}, {7, 1, true}, {8, 0, false}};

	tables.generation++;
	learn(false, 1, 10, 0, 1);
	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m, *known[BURST], *esp[BURST];
		uint16_t n_known, n_esp;
		struct packet k;
		uint64_t before = w.ports[cases[i].port].rx_packets;

		ip_put(&k, false, 1, 2, 10, IPPROTO_UDP);
		frame_put(&k, cases[i].tag);
		m = &k.m;
		assert_int_equal(flow_take(&w, &m, 1, known, &n_known, esp, &n_esp), !cases[i].known);
		assert_int_equal(n_known, cases[i].known);
		assert_int_equal(k.m.port, cases[i].port);
		assert_int_equal(w.ports[cases[i].port].rx_packets - before, cases[i].known);
		if (!cases[i].known)
			continue;
		assert_int_equal(k.m.data_off, L2_MAX);
		assert_int_equal(k.m.data_len, 28);
		assert_int_equal(k.data[L2_MAX + 8], 8); // TTL
		assert_true(cksum_ip4_ok(k.data + L2_MAX, 20));
		assert_int_equal(k.p.flags, PKT_BYPASS);
	}
}

static int
start(void **state)
{
	char prefix[64], *argv[] = {"test", "--no-huge", "-m", "64", "--no-pci", "--no-telemetry",
				    "--log-level=error", prefix};

	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		return -1;
	w.flows = flow_create();
	return w.flows != NULL ? 0 : -1;
}

static int
stop(void **state)
{
	flow_free(w.flows);
	return rte_eal_cleanup();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_tag),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
