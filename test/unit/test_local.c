/* SPDX-License-Identifier: BSD-3-Clause */
// Packets to sgw itself, and the ICMP errors that it sends.
#include "path_fake.h"

#include "policy.h"

static unsigned int n_nd;
static char allowed[ADDR_STRLEN]; // the one source that policy lets out, "": all
static bool want_secured;

// ---- the neighbourhood of local.c and icmp.c ----

void
neigh_nd(struct worker *w, struct rte_mbuf *m)
{
	n_nd++;
	drop(w, m, DROP_nd_taken);
}

const struct nexthop *
route_find(const struct tables *t, uint8_t family, const void *addr)
{
	static struct prefix tunnel_address;
	static struct tunnel tunnel = { .addresses = &tunnel_address, .n_addresses = 1 };
	const uint8_t *a = addr;

	if (tables_is_own(t, family, addr))
		return &t->nexthops[5];
	if (family == 4 && a[0] == 10) { // 10/8 lies behind the tunnel
		assert_int_equal(prefix_parse("10.255.0.1/24", &tunnel_address), 0);
		t->nexthops[3].tunnel = &tunnel;
		return &t->nexthops[3];
	}
	if (a[0] == 172)
		return &t->nexthops[0];
	return &t->nexthops[2];
}

void
route_destinations(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint16_t off = pkt(pkts[i])->family == 4 ? 16 : 24;
		const uint8_t *dst = rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, off);

		out[i] = (uint16_t)(route_find(t, pkt(pkts[i])->family, dst) - t->nexthops);
	}
}

bool
policy_allows_out(const struct worker *w, uint8_t family, const void *src, const void *dst,
		  uint8_t proto, bool secured)
{
	struct addr a = { .family = family };
	char text[ADDR_STRLEN];

	(void)w;
	(void)dst;
	assert_int_equal(proto, family == 4 ? 1 : 58);
	assert_int_equal(secured, want_secured);
	memcpy(a.b, src, addr_size(family));
	return allowed[0] == 0 || strcmp(addr_format(&a, text), allowed) == 0;
}

// ---- helpers ----

static int
setup(void **state)
{
	(void)state;
	fake_start();
	n_nd = 0;
	allowed[0] = 0;
	want_secured = false;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < w0.n_local; i++)
		drop(&w0, w0.local[i], DROP_stopping);
	fake_balance(0);
	return 0;
}

// As ip_check leaves it.
static struct rte_mbuf *
packet(const char *src, const char *dst, uint8_t proto, const void *payload, uint16_t len)
{
	uint8_t b[2000];
	uint8_t family = A(src).family;
	struct rte_mbuf *m = fake_packet(b, ip_write(b, src, dst, proto, 1, payload, len), family);
	struct pkt *p = pkt(m);

	p->proto = proto;
	p->l4_off = family == 4 ? 20 : 40;
	if (proto == IPPROTO_UDP) {
		p->sport = (uint16_t)(((const uint8_t *)payload)[0] << 8 | ((const uint8_t *)payload)[1]);
		p->dport = (uint16_t)(((const uint8_t *)payload)[2] << 8 | ((const uint8_t *)payload)[3]);
	}
	return m;
}

static uint16_t
take(struct rte_mbuf *m)
{
	return local_take(&w0, &m, 1);
}

static uint16_t
echo_write(uint8_t *icmp, uint8_t type, const char *src, const char *dst, uint16_t data)
{
	uint16_t len = 8 + data, sum;

	for (uint16_t i = 0; i < len; i++)
		icmp[i] = (uint8_t)(i * 7);
	icmp[0] = type;
	memset(icmp + 1, 0, 3);
	sum = type == 8 ? cksum_data(icmp, len) : cksum_l4(6, A(src).b, A(dst).b, 58, icmp, len);
	memcpy(icmp + 2, &sum, 2);
	return len;
}

static const uint8_t *
local0(void)
{
	assert_int_equal(w0.n_local, 1);
	return rte_pktmbuf_mtod(w0.local[0], const uint8_t *);
}

static void
local_forget(void)
{
	for (uint16_t i = 0; i < w0.n_local; i++)
		drop(&w0, w0.local[i], DROP_stopping);
	w0.n_local = 0;
}

// ---- echo ----

static void
test_echo4(void **state)
{
	uint8_t icmp[200];

	(void)state;
	for (uint16_t data = 0; data < 100; data++) {
		uint16_t len = echo_write(icmp, 8, "192.0.2.7", "192.0.2.1", data);
		struct rte_mbuf *m = packet("192.0.2.7", "192.0.2.1", 1, icmp, len);
		const uint8_t *b;

		pkt(m)->flags = data & 1 ? PKT_SECURED : 0;
		m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
		assert_int_equal(take(m), 0);
		b = local0();
		assert_int_equal(b[8], 64);
		assert_true(cksum_ip4_ok(b, 20));
		assert_memory_equal(b + 12, A("192.0.2.1").b, 4);
		assert_memory_equal(b + 16, A("192.0.2.7").b, 4);
		assert_int_equal(b[20], 0);
		assert_int_equal(cksum_data(b + 20, len), 0);
		assert_memory_equal(b + 24, icmp + 4, len - 4);
		assert_int_equal(pkt(m)->flags, PKT_LOCAL | (data & 1 ? PKT_SECURED : 0));
		assert_int_equal(pkt(m)->l4_off, 20);
		assert_int_equal(pkt(m)->family, 4);
		assert_int_equal(pkt(m)->proto, 1);
		assert_int_equal(m->ol_flags, 0);
		local_forget();
	}
	assert_int_equal(w0.ports[0].originated, 0); // one in, one out
}

// Options and extension headers are not echoed.
static void
test_echo_plain(void **state)
{
	uint8_t icmp[64], b[128];
	uint16_t len = echo_write(icmp, 8, "", "", 5), n;
	struct rte_mbuf *m;

	(void)state;
	n = ip_write(b, "192.0.2.7", "192.0.2.1", 1, 9, icmp, len);
	memmove(b + 28, b + 20, len);
	memset(b + 20, 1, 8);
	b[0] = 0x47;
	b[3] += 8;
	b[1] = 0xff;
	m = fake_packet(b, n + 8, 4);
	pkt(m)->proto = 1;
	pkt(m)->l4_off = 28;
	assert_int_equal(take(m), 0);
	assert_int_equal(m->data_len, n);
	assert_int_equal(local0()[0], 0x45);
	assert_int_equal(local0()[1], 0xfc);
	assert_int_equal(local0()[3], n);
	assert_true(cksum_ip4_ok(local0(), 20));
	assert_memory_equal(local0() + 24, icmp + 4, len - 4);
	local_forget();

	len = echo_write(icmp, 128, "2001:db8::7", "2001:db8::1", 5);
	n = ip_write(b, "2001:db8::7", "2001:db8::1", 60, 9, icmp, len);
	memmove(b + 48, b + 40, len);
	memset(b + 40, 0, 8);
	b[40] = 58;
	b[5] += 8;
	m = fake_packet(b, n + 8, 6);
	pkt(m)->proto = 58;
	pkt(m)->l4_off = 48;
	assert_int_equal(take(m), 0);
	assert_int_equal(m->data_len, n);
	assert_int_equal(local0()[6], 58);
	assert_int_equal(local0()[5], len);
	assert_int_equal(cksum_l4(6, local0() + 8, local0() + 24, 58, local0() + 40, len), 0);
}

static void
test_echo6(void **state)
{
	static const char *const us[] = { "2001:db8::1", "fe80::1" };
	uint8_t icmp[200];

	(void)state;
	for (uint16_t data = 0; data < 100; data++) {
		const char *dst = us[data % 2];
		uint16_t len = echo_write(icmp, 128, "2001:db8::7", dst, data);
		const uint8_t *b;

		assert_int_equal(take(packet("2001:db8::7", dst, 58, icmp, len)), 0);
		b = local0();
		assert_int_equal(b[7], 64);
		assert_memory_equal(b + 8, A(dst).b, 16);
		assert_memory_equal(b + 24, A("2001:db8::7").b, 16);
		assert_int_equal(b[40], 129);
		assert_int_equal(cksum_l4(6, b + 8, b + 24, 58, b + 40, len), 0);
		local_forget();
	}
	// the other port's link-local address is not on this link
	uint16_t len = echo_write(icmp, 128, "2001:db8::7", "fe80::2", 3);
	struct rte_mbuf *m = packet("2001:db8::7", "fe80::2", 58, icmp, len);
	nexthops[5].kind = NEXTHOP_NONE; // as in the FIB
	assert_int_equal(take(m), 1);
	rte_pktmbuf_free(m);
	n_given--;
}

static void
test_echo_refused(void **state)
{
	uint8_t icmp[64];
	uint16_t len = echo_write(icmp, 8, "", "", 9);

	(void)state;
	icmp[20 - 8] ^= 1;
	take(packet("192.0.2.7", "192.0.2.1", 1, icmp, len));
	assert_int_equal(n_fake_drops[DROP_ip_checksum], 1);
	for (uint16_t i = 0; i < 8; i++)
		take(packet("192.0.2.7", "192.0.2.1", 1, icmp, i));
	assert_int_equal(n_fake_drops[DROP_ip_truncated], 8);
	len = echo_write(icmp, 8, "", "", 9);
	bucket_empty = true;
	take(packet("192.0.2.7", "192.0.2.1", 1, icmp, len));
	assert_int_equal(n_fake_drops[DROP_local_queue_full], 1);
	bucket_empty = false;
	for (int i = 0; i < LOCAL_MAX + 3; i++)
		take(packet("192.0.2.7", "192.0.2.1", 1, icmp, len));
	assert_int_equal(w0.n_local, LOCAL_MAX);
	assert_int_equal(n_fake_drops[DROP_local_queue_full], 4);
}

// ---- the others ----

static void
test_sorting(void **state)
{
	uint8_t udp[32] = { 0, 9, 0, 80, 0, 32 }, nd[24] = { 135 }, icmp[16] = { 0 };
	struct rte_mbuf *m, *burst[4];
	uint16_t sum;

	(void)state;
	m = packet("192.0.2.7", "192.0.2.9", 17, udp, 32); // not for us
	assert_int_equal(take(m), 1);
	drop(&w0, m, DROP_stopping);
	take(packet("fe80::7", "ff02::1:ff00:1", 58, nd, 24));
	take(packet("fe80::7", "2001:db8::1", 58, nd, 24));
	assert_int_equal(n_nd, 2);
	m = packet("fe80::7", "2001:db8::1", 58, nd, 24);
	pkt(m)->flags = PKT_SECURED;
	take(m);
	assert_int_equal(n_fake_drops[DROP_nd_malformed], 1);
	take(packet("fe80::7", "ff02::1", 17, udp, 32));
	nd[0] = 128;
	take(packet("fe80::7", "ff02::1", 58, nd, 24));
	assert_int_equal(n_fake_drops[DROP_multicast], 2);
	m = packet("192.0.2.7", "192.0.2.1", 17, udp, 32);
	pkt(m)->flags = PKT_FIRST_FRAGMENT;
	take(m);
	assert_int_equal(n_fake_drops[DROP_frag_bad], 1);
	sum = cksum_data(icmp, 16);
	memcpy(icmp + 2, &sum, 2);
	take(packet("192.0.2.7", "192.0.2.1", 1, icmp, 16)); // a reply
	assert_int_equal(n_fake_drops[DROP_local_taken], 1);
	assert_int_equal(w0.n_local, 0);

	udp[2] = 500 >> 8, udp[3] = (uint8_t)500;
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 32));
	udp[2] = 4500 >> 8, udp[3] = (uint8_t)4500;
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 32));
	udp[8] = 0xff;
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 9));
	assert_int_equal(n_fake_drops[DROP_ike_ignored], 3);
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 8));
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 11));
	assert_int_equal(n_fake_drops[DROP_esp_runt], 2);

	// order and compaction
	for (uint8_t i = 0; i < 4; i++) {
		udp[8] = i;
		burst[i] = packet("192.0.2.7", i == 1 ? "192.0.2.1" : "192.0.2.9", 47, udp, 32);
	}
	assert_int_equal(local_take(&w0, burst, 4), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rte_pktmbuf_mtod(burst[i], uint8_t *)[28], i == 0 ? 0 : i + 1);
		drop(&w0, burst[i], DROP_stopping);
	}
	assert_int_equal(n_fake_drops[DROP_local_no_service], 1);
}

static void
test_no_service(void **state)
{
	uint8_t udp[32] = { 0, 9, 0, 80, 0, 32 };

	(void)state;
	take(packet("192.0.2.7", "192.0.2.1", 17, udp, 32));
	assert_memory_equal(local0() + 20, "\3\3", 2);
	local_forget();
	take(packet("192.0.2.7", "192.0.2.1", 47, udp, 32));
	assert_memory_equal(local0() + 20, "\3\2", 2);
	local_forget();
	take(packet("2001:db8::7", "2001:db8::1", 17, udp, 32));
	assert_memory_equal(local0() + 40, "\1\4", 2);
	local_forget();
	take(packet("2001:db8::7", "2001:db8::1", 47, udp, 32));
	assert_memory_equal(local0() + 40, "\4\1", 2);
	assert_int_equal(local0()[47], 6);
}

// ---- errors ----

static void
test_too_big(void **state)
{
	uint8_t data[1900];
	struct rte_mbuf *m;
	const uint8_t *b;

	(void)state;
	memset(data, 0x5a, sizeof(data));
	m = packet("192.0.2.7", "10.0.0.1", 47, data, 1801);
	icmp_too_big(&w0, m, 1446);
	b = local0();
	assert_int_equal(w0.local[0]->data_len, 576);
	assert_int_equal(b[2] << 8 | b[3], 576);
	assert_true(cksum_ip4_ok(b, 20));
	assert_int_equal(cksum_data(b + 20, 556), 0);
	assert_memory_equal(b + 20, "\3\4", 2);
	assert_int_equal(b[24] << 8 | b[25], 0);
	assert_int_equal(b[26] << 8 | b[27], 1446);
	assert_memory_equal(b + 12, A("192.0.2.1").b, 4);
	assert_memory_equal(b + 16, A("192.0.2.7").b, 4);
	assert_memory_equal(b + 28, rte_pktmbuf_mtod(m, void *), 548);
	assert_int_equal(pkt(w0.local[0])->flags, PKT_LOCAL);
	assert_int_equal(w0.ports[0].originated, 1);
	local_forget();
	drop(&w0, m, DROP_too_big);

	m = packet("2001:db8::7", "2001:db8:9::1", 47, data, 1801);
	icmp_too_big(&w0, m, 1200);
	b = local0();
	assert_int_equal(w0.local[0]->data_len, 1280);
	assert_memory_equal(b + 40, "\2\0", 2);
	assert_memory_equal(b + 44, "\0\0\5\0", 4); // 1280
	assert_int_equal(cksum_l4(6, b + 8, b + 24, 58, b + 40, 1240), 0);
	local_forget();
	icmp_too_big(&w0, m, 1426);
	assert_memory_equal(local0() + 44, "\0\0\5\x92", 4);
	local_forget();
	drop(&w0, m, DROP_too_big);
}

static void
test_time_exceeded(void **state)
{
	uint8_t data[21] = { 1, 2, 3 };
	struct rte_mbuf *m = packet("192.0.2.7", "10.0.0.1", 17, data, 21);

	(void)state;
	icmp_time_exceeded(&w0, m);
	assert_memory_equal(local0() + 20, "\13\0", 2);
	assert_int_equal(w0.local[0]->data_len, 28 + 41);
	assert_int_equal(cksum_data(local0() + 20, 49), 0);
	local_forget();
	drop(&w0, m, DROP_ip_ttl);
	m = packet("2001:db8::7", "2001:db8:9::1", 17, data, 21);
	icmp_time_exceeded(&w0, m);
	assert_memory_equal(local0() + 40, "\3\0", 2);
	local_forget();
	drop(&w0, m, DROP_ip_ttl);
	// no route, and a host that does not answer
	m = packet("192.0.2.7", "172.16.0.1", 17, data, 21);
	icmp_unreachable(&w0, m);
	assert_memory_equal(local0() + 20, "\3\0", 2);
	local_forget();
	drop(&w0, m, DROP_route_none);
	m = packet("192.0.2.7", "192.0.2.8", 17, data, 21);
	icmp_unreachable(&w0, m);
	assert_memory_equal(local0() + 20, "\3\1", 2);
	drop(&w0, m, DROP_neigh_failed);
}

// The address that policy allows, and none.
static void
test_source(void **state)
{
	static const char *const order[] = { "10.255.0.1", "192.0.2.1", "203.0.113.0",
					     "198.51.100.1" };
	uint8_t data[21] = { 0 };
	struct rte_mbuf *m = packet("10.0.0.7", "192.0.2.8", 17, data, 21);

	(void)state;
	pkt(m)->flags = PKT_SECURED;
	want_secured = true;
	icmp_time_exceeded(&w0, m);
	assert_memory_equal(local0() + 12, A(order[0]).b, 4); // the tunnel's first
	local_forget();
	for (unsigned int i = 0; i < RTE_DIM(order); i++) {
		strcpy(allowed, order[i]);
		icmp_time_exceeded(&w0, m);
		assert_memory_equal(local0() + 12, A(order[i]).b, 4);
		assert_int_equal(pkt(w0.local[0])->flags, PKT_LOCAL | PKT_SECURED);
		local_forget();
	}
	strcpy(allowed, "1.1.1.1");
	icmp_time_exceeded(&w0, m);
	assert_int_equal(w0.n_local, 0);
	assert_int_equal(w0.icmp_suppressed, 1);
	allowed[0] = 0;
	bucket_empty = true;
	icmp_time_exceeded(&w0, m);
	assert_int_equal(w0.n_local, 0);
	assert_int_equal(w0.icmp_suppressed, 2);
	drop(&w0, m, DROP_ip_ttl);
}

// A source or destination, protocol, first byte of the payload, flags.
struct quiet {
	const char *src, *dst;
	uint8_t proto, type;
	uint16_t flags;
	bool told;
};

static void
test_quiet(void **state)
{
	static const struct quiet cases[] = {
		{ "192.0.2.7", "10.0.0.1", 17, 0, 0, true },
		{ "192.0.2.7", "10.0.0.1", 1, 8, 0, true },
		{ "192.0.2.7", "10.0.0.1", 1, 0, 0, true },
		{ "192.0.2.7", "10.0.0.1", 1, 3, 0, false },
		{ "192.0.2.7", "10.0.0.1", 1, 5, 0, false },
		{ "192.0.2.7", "10.0.0.1", 1, 11, 0, false },
		{ "192.0.2.7", "10.0.0.1", 1, 12, 0, false },
		{ "192.0.2.7", "10.0.0.1", 17, 0, PKT_FRAGMENT, false },
		{ "192.0.2.7", "10.0.0.1", 17, 0, PKT_FIRST_FRAGMENT, true },
		{ "192.0.2.7", "10.0.0.1", 17, 0, PKT_LOCAL, false },
		{ "192.0.2.7", "10.0.0.1", 50, 0, PKT_SEALED, false },
		{ "192.0.2.7", "10.0.0.1", 17, 0, PKT_GROUP, false },
		{ "192.0.2.7", "224.0.0.9", 17, 0, 0, false },
		{ "192.0.2.7", "255.255.255.255", 17, 0, 0, false },
		{ "0.0.0.0", "10.0.0.1", 17, 0, 0, false },
		{ "127.0.0.1", "10.0.0.1", 17, 0, 0, false },
		{ "224.0.0.1", "10.0.0.1", 17, 0, 0, false },
		{ "192.0.2.1", "10.0.0.1", 17, 0, 0, false }, // our own
		{ "2001:db8::7", "2001:db8:9::1", 58, 128, 0, true },
		{ "2001:db8::7", "2001:db8:9::1", 58, 1, 0, false },
		{ "2001:db8::7", "2001:db8:9::1", 58, 2, 0, false },
		{ "2001:db8::7", "2001:db8:9::1", 58, 127, 0, false },
		{ "2001:db8::7", "2001:db8:9::1", 58, 137, 0, false },
		{ "2001:db8::7", "ff0e::1", 17, 0, 0, false },
		{ "::", "2001:db8:9::1", 17, 0, 0, false },
		{ "ff02::1", "2001:db8:9::1", 17, 0, 0, false },
		{ "fe80::7", "2001:db8:9::1", 17, 0, 0, true },
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		const struct quiet *c = &cases[i];
		uint8_t data[16] = { c->type };
		struct rte_mbuf *m = packet(c->src, c->dst, c->proto, data, 16);

		pkt(m)->flags = c->flags;
		icmp_time_exceeded(&w0, m);
		icmp_too_big(&w0, m, 1400);
		icmp_unreachable(&w0, m);
		if (w0.n_local != (c->told ? 3 : 0))
			fail_msg("case %u: %u errors", i, w0.n_local);
		local_forget();
		drop(&w0, m, DROP_ip_ttl);
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_echo4),         TEST(test_echo_plain), TEST(test_echo6),
		TEST(test_echo_refused),  TEST(test_sorting),    TEST(test_no_service),
		TEST(test_too_big),       TEST(test_time_exceeded), TEST(test_source),
		TEST(test_quiet),
	};

	return cmocka_run_group_tests(tests, eal_start, eal_stop);
}
