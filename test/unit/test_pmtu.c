/* SPDX-License-Identifier: BSD-3-Clause */
// Proves that what an ICMP frag-needed teaches about a tunnel holds for ten minutes
// and not longer (RFC 1191 section 6.3), that a smaller one replaces it, and that a
// larger one does not.
#include "sa.h"
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HZ 1000ull // of the fake TSC
#define START (7 * HZ)
#define TEN_MINUTES (600 * HZ)
#define SPI 0x1002

struct packet {
	struct rte_mbuf m;
	struct pkt p;
	uint8_t b[64];
};

static struct sa sa;
static struct tunnel_path path;
static struct tunnel tunnel;
static struct tables tables;
static struct worker w;

// A router's "fragmentation needed" about the SA's ESP: RFC 792, RFC 1191 section 4.
static void
learn(uint16_t mtu)
{
	struct packet k;
	uint8_t *icmp = k.b + 20, *quoted = icmp + 8;
	uint32_t spi_be = rte_cpu_to_be_32(SPI);

	memset(&k, 0, sizeof(k));
	k.m.buf_addr = k.b;
	k.m.priv_size = sizeof(k.p);
	k.m.pkt_len = k.m.data_len = 20 + 8 + 28;
	k.p.family = 4;
	k.p.proto = 1;
	k.p.l4_off = 20;
	icmp[0] = 3;
	icmp[1] = 4;
	icmp[6] = (uint8_t)(mtu >> 8);
	icmp[7] = (uint8_t)mtu;
	quoted[0] = 0x45;
	quoted[9] = 50;
	memcpy(quoted + 12, tunnel.local.b, 4);
	memcpy(quoted + 16, tunnel.remote.b, 4);
	memcpy(quoted + 20, &spi_be, 4);
	pmtu_learn(&w, &k.m);
}

static int
setup(void **state)
{
	memset(&path, 0, sizeof(path));
	sa.spi = SPI;
	sa.family = 4;
	sa.cipher = ALG_AES_GCM_16;
	tunnel = (struct tunnel){.sa_out = &sa, .path = &path, .mtu = 1446};
	assert_int_equal(addr_parse("192.0.2.1", &tunnel.local), 0);
	assert_int_equal(addr_parse("192.0.2.2", &tunnel.remote), 0);
	tables.tunnels = &tunnel;
	tables.n_tunnels = 1;
	w.tables = &tables;
	w.hz = HZ;
	w.now = START;
	return 0;
}

static void
test_ages(void **state)
{
	assert_int_equal(pmtu_inner(&w, &tunnel), 1446);
	learn(1400); // 54 bytes go around an inner packet with GCM over IPv4
	assert_int_equal(pmtu_inner(&w, &tunnel), 1346);
	assert_int_equal(pmtu_inner_at(&tunnel, START + TEN_MINUTES - 1), 1346);
	assert_int_equal(pmtu_inner_at(&tunnel, START + TEN_MINUTES), 1446);
}

static void
test_smaller_and_larger(void **state)
{
	learn(1400);
	w.now += TEN_MINUTES / 2;
	learn(1450); // larger: a path that got wider is found when the entry has aged
	assert_int_equal(pmtu_inner(&w, &tunnel), 1346);
	learn(1300);
	assert_int_equal(pmtu_inner(&w, &tunnel), 1246);
	// the ten minutes count from the last that was believed
	assert_int_equal(pmtu_inner_at(&tunnel, START + TEN_MINUTES), 1246);
	assert_int_equal(pmtu_inner_at(&tunnel, w.now + TEN_MINUTES), 1446);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ages, setup),
		cmocka_unit_test_setup(test_smaller_and_larger, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
