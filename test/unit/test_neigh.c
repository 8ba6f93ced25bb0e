/* SPDX-License-Identifier: BSD-3-Clause */
// The neighbour table: who is learned, what waits, what is asked, and what no
// message may do.
#include "path_fake.h"

#include <pthread.h>

static unsigned int n_unreachable;

void
icmp_unreachable(struct worker *w, struct rte_mbuf *m)
{
	(void)w;
	assert_true(pkt(m)->family == 4 || pkt(m)->family == 6);
	n_unreachable++;
}

static int
setup(void **state)
{
	(void)state;
	fake_start();
	n_unreachable = 0;
	tables.neigh = neigh_create(NEIGH_QUEUED_MAX);
	return tables.neigh == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	neigh_drain(&w0, tables.neigh);
	fake_balance(0);
	neigh_free(tables.neigh);
	return 0;
}

// ---- helpers ----

static uint8_t sequence; // last byte of each packet sent

// One packet into neigh_resolve(), through next hop `index`.
static uint16_t
resolve(uint16_t index, const char *dst)
{
	uint8_t b[64];
	bool v4 = A(dst).family == 4;
	uint16_t len = ip_write(b, v4 ? "10.0.0.1" : "2001:db8:1::1", dst, 17, 64, &sequence, 1);
	struct rte_mbuf *m = fake_packet(b, len, v4 ? 4 : 6);
	uint16_t n;

	pkt(m)->nexthop = index;
	n = neigh_resolve(&w0, &m, 1);
	if (n == 1)
		tx_enqueue(&w0, nexthops[index].port, m);
	return n;
}

static void
arp(uint16_t op, const struct rte_ether_addr *sha, const char *sip, const char *tip)
{
	uint8_t b[46] = { 0, 1, 8, 0, 6, 4, 0, (uint8_t)op }; // padded as on the wire

	memcpy(b + 8, sha, 6);
	memcpy(b + 14, A(sip).b, 4);
	memcpy(b + 24, A(tip).b, 4);
	neigh_arp(&w0, fake_packet(b, sizeof(b), 0));
}

// NS (135) or NA (136), with a link-layer address option unless mac is NULL.
static uint16_t
nd_write(uint8_t *b, uint8_t type, uint8_t flags, const char *src, const char *dst,
	 const char *target, const struct rte_ether_addr *mac)
{
	uint8_t msg[32] = { type, 0, 0, 0, flags };
	uint16_t len;

	memcpy(msg + 8, A(target).b, 16);
	if (mac != NULL) {
		msg[24] = type == 135 ? 1 : 2;
		msg[25] = 1;
		memcpy(msg + 26, mac, 6);
	}
	len = ip_write(b, src, dst, 58, 255, msg, mac != NULL ? 32 : 24);
	icmp6_sum(b, len);
	return len;
}

static void
nd(uint8_t type, uint8_t flags, const char *src, const char *dst, const char *target,
   const struct rte_ether_addr *mac)
{
	uint8_t b[80];
	uint16_t len = nd_write(b, type, flags, src, dst, target, mac);

	neigh_nd(&w0, fake_packet(b, len, 6));
}

struct find {
	uint16_t port;
	struct addr addr;
	struct neigh_info info;
	unsigned int total;
};

static void
find_visit(const struct neigh_info *info, void *arg)
{
	struct find *f = arg;

	f->total++;
	if (info->port == f->port && addr_cmp(&info->addr, &f->addr) == 0)
		f->info = *info;
}

static struct neigh_info
find(const char *addr)
{
	struct find f = { .addr = A(addr) };

	neigh_walk(tables.neigh, find_visit, &f);
	return f.info;
}

static unsigned int
total(void)
{
	struct find f = { .addr = A("::") };

	neigh_walk(tables.neigh, find_visit, &f);
	return f.total;
}

// Let time pass, in ticks of one millisecond.
static void
pass(unsigned int ms)
{
	for (unsigned int i = 0; i < ms; i++) {
		w0.now += HZ / 1000;
		neigh_tick(&w0);
	}
}

static const struct sent *
last(void)
{
	assert_true(n_sent > 0);
	return &sent[(n_sent - 1) % SENT_MAX];
}

static void
assert_mac(const uint8_t *b, const struct rte_ether_addr *mac)
{
	assert_memory_equal(b, mac, 6);
}

static bool
is_arp(const struct sent *s, uint16_t op)
{
	return s->len == 42 && s->b[12] == 8 && s->b[13] == 6 && s->b[21] == op;
}

static unsigned int
count_asked(unsigned int from)
{
	unsigned int n = 0;

	for (unsigned int i = from; i < n_sent; i++)
		n += is_arp(&sent[i], 1) || (sent[i].len == 86 && sent[i].b[54] == 135);
	return n;
}

// ---- resolving ----

static void
test_resolve_arp(void **state)
{
	(void)state;
	sequence = 1;
	assert_int_equal(resolve(1, "10.9.9.9"), 0);
	assert_int_equal(n_sent, 1);
	assert_true(is_arp(last(), 1));
	assert_memory_equal(last()->b, "\xff\xff\xff\xff\xff\xff", 6);
	assert_mac(last()->b + 6, &our_mac);
	assert_mac(last()->b + 22, &our_mac);
	assert_memory_equal(last()->b + 28, A("192.0.2.1").b, 4);
	assert_memory_equal(last()->b + 38, A("192.0.2.254").b, 4);
	fake_balance(1);

	// more packets wait, in order; the second question is not asked at once
	for (sequence = 2; sequence <= NEIGH_QUEUE_MAX; sequence++)
		assert_int_equal(resolve(1, "10.9.9.9"), 0);
	assert_int_equal(n_fake_drops[DROP_neigh_queue_full], 0);
	assert_int_equal(resolve(1, "10.9.9.9"), 0);
	assert_int_equal(n_fake_drops[DROP_neigh_queue_full], 1);
	assert_int_equal(n_sent, 1);
	assert_int_equal(find("192.0.2.254").queued, NEIGH_QUEUE_MAX);
	assert_int_equal(find("192.0.2.254").state, NEIGH_INCOMPLETE);

	arp(2, &his_mac, "192.0.2.254", "192.0.2.1");
	assert_int_equal(n_sent, 1 + NEIGH_QUEUE_MAX);
	for (uint8_t i = 0; i < NEIGH_QUEUE_MAX; i++) {
		const struct sent *s = &sent[1 + i];
		assert_mac(s->b, &his_mac);
		assert_mac(s->b + 6, &our_mac);
		assert_memory_equal(s->b + 12, "\x08\x00\x45", 3);
		assert_int_equal(s->b[s->len - 1], i + 1);
		assert_int_equal(s->port, 0);
	}
	assert_int_equal(find("192.0.2.254").state, NEIGH_REACHABLE);
	assert_int_equal(resolve(1, "10.9.9.9"), 1);
	assert_mac(last()->b, &his_mac);
}

static void
test_resolve_nd(void **state)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0, 0, 0xfe };
	const struct sent *s;

	(void)state;
	assert_int_equal(resolve(4, "2001:db8:9::9"), 0);
	s = last();
	assert_int_equal(s->len, 86);
	assert_memory_equal(s->b, group, 6);
	assert_memory_equal(s->b + 12, "\x86\xdd\x60", 3);
	assert_int_equal(s->b[21], 255);
	assert_memory_equal(s->b + 22, A("2001:db8::1").b, 16);
	assert_memory_equal(s->b + 38, A("ff02::1:ff00:fe").b, 16);
	assert_int_equal(s->b[54], 135);
	assert_memory_equal(s->b + 62, A("2001:db8::fe").b, 16);
	assert_memory_equal(s->b + 78, "\1\1", 2);
	assert_mac(s->b + 80, &our_mac);
	assert_int_equal(cksum_l4(6, s->b + 22, s->b + 38, 58, s->b + 54, 32), 0);

	nd(136, 0x60, "2001:db8::fe", "2001:db8::1", "2001:db8::fe", &his_mac);
	assert_int_equal(n_sent, 2);
	assert_mac(last()->b, &his_mac);
	assert_memory_equal(last()->b + 12, "\x86\xdd\x60", 3);
	assert_int_equal(find("2001:db8::fe").state, NEIGH_REACHABLE);
	// a link-local target is asked from the link-local address? no: from any of
	// ours in its prefix, and there is only fe80::1 for fe80::/10
	assert_int_equal(resolve(2, "fe80::77"), 0);
	assert_memory_equal(last()->b + 22, A("fe80::1").b, 16);
}

static void
test_resolve_onlink(void **state)
{
	(void)state;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1"); // learned from his question
	assert_int_equal(resolve(2, "192.0.2.7"), 1);
	assert_int_equal(resolve(2, "192.0.2.255"), 0);
	assert_int_equal(resolve(2, "192.0.2.0"), 0);
	assert_int_equal(n_fake_drops[DROP_multicast], 2);
	assert_int_equal(resolve(2, "203.0.113.1"), 0); // a /31 has no broadcast address
	assert_int_equal(n_fake_drops[DROP_multicast], 2);
	assert_int_equal(find("203.0.113.1").state, NEIGH_INCOMPLETE);
	assert_int_equal(resolve(0, "192.0.2.7"), 0);
	assert_int_equal(resolve(3, "192.0.2.7"), 0);
	assert_int_equal(resolve(PKT_NO_NEXTHOP, "192.0.2.7"), 0);
	assert_int_equal(n_fake_drops[DROP_route_none], 3);
}

// A mixed burst is compacted and keeps its order.
static void
test_resolve_burst(void **state)
{
	struct rte_mbuf *pkts[6];
	static const char *const dst[6] = { "192.0.2.7", "192.0.2.8", "192.0.2.7",
					    "192.0.2.255", "192.0.2.7", "192.0.2.9" };

	(void)state;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1");
	arp(1, &other_mac, "192.0.2.9", "192.0.2.1");
	for (uint8_t i = 0; i < 6; i++) {
		uint8_t b[64];
		pkts[i] = fake_packet(b, ip_write(b, "10.0.0.1", dst[i], 17, 64, &i, 1), 4);
		pkt(pkts[i])->nexthop = 2;
	}
	rte_pktmbuf_prepend(pkts[4], rte_pktmbuf_headroom(pkts[4])); // no room for L2
	pkt(pkts[4])->nexthop = 1;
	tables.nexthops[1].gateway = A("192.0.2.7");
	assert_int_equal(neigh_resolve(&w0, pkts, 6), 3);
	for (int i = 0; i < 3; i++) {
		const uint8_t *b = rte_pktmbuf_mtod(pkts[i], uint8_t *);
		assert_int_equal(b[34], i == 2 ? 5 : i * 2);
		assert_mac(b, i == 2 ? &other_mac : &his_mac);
		tx_enqueue(&w0, 0, pkts[i]);
	}
	assert_int_equal(n_fake_drops[DROP_no_headroom], 1);
	assert_int_equal(n_fake_drops[DROP_multicast], 1);
	assert_int_equal(find("192.0.2.8").queued, 1);
}

static void
test_queue_bound(void **state)
{
	unsigned int kept;

	(void)state;
	for (unsigned int i = 0; i < 160 * NEIGH_QUEUE_MAX; i++) {
		char dst[32];
		snprintf(dst, sizeof(dst), "192.0.2.%u", 20 + i / NEIGH_QUEUE_MAX);
		resolve(2, dst);
	}
	kept = 160 * NEIGH_QUEUE_MAX - n_fake_drops[DROP_neigh_queue_full];
	assert_int_equal(kept, NEIGH_QUEUED_MAX);
	assert_int_equal(n_sent, 160); // all were asked for nevertheless
	fake_balance(NEIGH_QUEUED_MAX);
	neigh_drain(&w0, tables.neigh);
	assert_int_equal(n_fake_drops[DROP_stopping], NEIGH_QUEUED_MAX);
	resolve(2, "192.0.2.20"); // and there is room again
	assert_int_equal(find("192.0.2.20").queued, 1);
}

// ---- time ----

static void
test_retry_and_fail(void **state)
{
	(void)state;
	resolve(1, "10.9.9.9");
	resolve(1, "10.9.9.9");
	pass(900);
	assert_int_equal(n_sent, 1);
	pass(300);
	assert_int_equal(count_asked(0), 2);
	pass(1100);
	assert_int_equal(count_asked(0), 3);
	pass(1100);
	assert_int_equal(count_asked(0), 3);
	assert_int_equal(find("192.0.2.254").state, NEIGH_FAILED);
	assert_int_equal(n_fake_drops[DROP_neigh_failed], 2);
	assert_int_equal(n_unreachable, 2);
	resolve(1, "10.9.9.9");
	assert_int_equal(n_fake_drops[DROP_neigh_failed], 3);
	assert_int_equal(n_unreachable, 3);
	pass(3300);
	assert_int_equal(find("192.0.2.254").state, NEIGH_FREE);
	assert_int_equal(total(), 0);
	resolve(1, "10.9.9.9"); // and it is asked anew
	assert_int_equal(count_asked(0), 4);
	// a failed one can come back by an answer that is late
	pass(3500);
	assert_int_equal(find("192.0.2.254").state, NEIGH_FAILED);
	arp(2, &his_mac, "192.0.2.254", "192.0.2.1");
	assert_int_equal(resolve(1, "10.9.9.9"), 1);
}

static void
test_refresh(void **state)
{
	unsigned int before;

	(void)state;
	resolve(1, "10.9.9.9");
	arp(2, &his_mac, "192.0.2.254", "192.0.2.1");
	before = n_sent;
	for (int s = 0; s < 29; s++) {
		assert_int_equal(resolve(1, "10.9.9.9"), 1);
		pass(1000);
	}
	assert_int_equal(count_asked(before), 0);
	pass(1500);
	assert_int_equal(count_asked(before), 1);
	assert_true(is_arp(last(), 1));
	assert_mac(last()->b, &his_mac); // unicast
	assert_int_equal(find("192.0.2.254").state, NEIGH_PROBE);
	assert_int_equal(resolve(1, "10.9.9.9"), 1); // without loss
	arp(2, &his_mac, "192.0.2.254", "192.0.2.1");
	assert_int_equal(find("192.0.2.254").state, NEIGH_REACHABLE);

	// not used: not asked; used again later: goes at once and is asked
	before = n_sent;
	pass(100000);
	assert_int_equal(n_sent, before);
	assert_int_equal(resolve(1, "10.9.9.9"), 1);
	pass(200);
	assert_int_equal(count_asked(before), 1);

	// no answer: three unicast questions, then to all, then failure
	for (int s = 0; s < 3; s++) {
		assert_int_equal(resolve(1, "10.9.9.9"), 1);
		pass(1050);
	}
	assert_int_equal(find("192.0.2.254").state, NEIGH_INCOMPLETE);
	assert_int_equal(count_asked(before), 4);
	assert_memory_equal(last()->b, "\xff\xff\xff\xff\xff\xff", 6);
	assert_int_equal(resolve(1, "10.9.9.9"), 0);
	pass(3300);
	assert_int_equal(find("192.0.2.254").state, NEIGH_FAILED);
	assert_int_equal(count_asked(before), 6);
	assert_int_equal(n_fake_drops[DROP_neigh_failed], 1);
}

static void
test_idle_forgotten(void **state)
{
	(void)state;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1");
	w0.now += 500 * HZ;
	pass(200);
	assert_int_equal(total(), 1);
	w0.now += 101 * HZ;
	pass(200);
	assert_int_equal(total(), 0);
}

// ---- learning ----

static void
test_static(void **state)
{
	const struct addr a = A("192.0.2.254"), six = A("2001:db8::fe");
	struct mac mac, bad = { { 1 } };
	struct err err;

	(void)state;
	memcpy(mac.b, &his_mac, 6);
	assert_int_equal(neigh_add_static(tables.neigh, 0, &a, &bad, &err), -EINVAL);
	resolve(1, "10.9.9.9"); // one that waits is sent when it becomes static
	assert_int_equal(neigh_add_static(tables.neigh, 0, &a, &mac, &err), 0);
	assert_int_equal(neigh_add_static(tables.neigh, 0, &six, &mac, &err), 0);
	pass(200);
	assert_int_equal(n_sent, 2);
	assert_mac(last()->b, &his_mac);
	arp(2, &other_mac, "192.0.2.254", "192.0.2.1");
	arp(1, &other_mac, "192.0.2.254", "192.0.2.1");
	arp(1, &other_mac, "192.0.2.254", "192.0.2.254");
	nd(136, 0x60, "2001:db8::fe", "2001:db8::1", "2001:db8::fe", &other_mac);
	nd(135, 0, "2001:db8::fe", "ff02::1:ff00:1", "2001:db8::1", &other_mac);
	assert_int_equal(resolve(1, "10.9.9.9"), 1);
	assert_mac(last()->b, &his_mac);
	assert_int_equal(resolve(4, "2001:db8:9::9"), 1);
	assert_mac(last()->b, &his_mac);
	w0.now += 10000 * HZ;
	pass(5000);
	assert_int_equal(find("192.0.2.254").state, NEIGH_STATIC);
	assert_int_equal(count_asked(1), 0);
}

static void
test_arp_answer(void **state)
{
	const struct sent *s;

	(void)state;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1");
	assert_int_equal(n_sent, 1);
	s = last();
	assert_true(is_arp(s, 2));
	assert_mac(s->b, &his_mac);
	assert_mac(s->b + 6, &our_mac);
	assert_mac(s->b + 22, &our_mac);
	assert_memory_equal(s->b + 28, A("192.0.2.1").b, 4);
	assert_mac(s->b + 32, &his_mac);
	assert_memory_equal(s->b + 38, A("192.0.2.7").b, 4);
	assert_int_equal(w0.ports[0].ended[DROP_arp_taken], 1);
	assert_int_equal(w0.ports[0].originated, 1);
	assert_int_equal(find("192.0.2.7").state, NEIGH_REACHABLE);

	arp(1, &his_mac, "0.0.0.0", "192.0.2.1"); // probe: answered, not learned
	assert_int_equal(n_sent, 2);
	assert_int_equal(total(), 1);
	arp(1, &his_mac, "192.0.2.8", "198.51.100.1"); // the address of another port
	arp(1, &his_mac, "192.0.2.8", "192.0.2.9");
	assert_int_equal(n_fake_drops[DROP_arp_foreign], 2);
	arp(1, &his_mac, "192.0.2.1", "192.0.2.1"); // somebody has our address
	assert_int_equal(n_sent, 2);
	assert_int_equal(total(), 1);
	bucket_empty = true;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1");
	assert_int_equal(n_sent, 2);
}

static void
test_arp_learning(void **state)
{
	static const struct rte_ether_addr group = { { 0x33, 0x33, 0, 0, 0, 1 } }, zero = { { 0 } };

	(void)state;
	arp(1, &his_mac, "192.0.2.7", "192.0.2.7"); // gratuitous: makes no entry
	arp(2, &his_mac, "192.0.2.7", "192.0.2.7");
	assert_int_equal(total(), 0);
	arp(1, &group, "192.0.2.7", "192.0.2.1");
	arp(1, &zero, "192.0.2.7", "192.0.2.1");
	arp(1, &his_mac, "224.0.0.1", "192.0.2.1");
	arp(1, &his_mac, "127.0.0.1", "192.0.2.1");
	assert_int_equal(n_fake_drops[DROP_arp_malformed], 4);
	arp(1, &our_mac, "192.0.2.7", "192.0.2.1");
	arp(1, &his_mac, "10.0.0.7", "192.0.2.1");    // not on this link
	arp(1, &his_mac, "198.51.100.7", "192.0.2.1"); // on the other one
	arp(1, &his_mac, "198.51.100.1", "192.0.2.1"); // our own on the other one
	arp(1, &his_mac, "192.0.2.255", "192.0.2.1");
	assert_int_equal(total(), 0);
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1");
	assert_int_equal(total(), 1);
	arp(2, &other_mac, "192.0.2.7", "192.0.2.7"); // gratuitous: moves one
	assert_int_equal(resolve(2, "192.0.2.7"), 1);
	assert_mac(last()->b, &other_mac);
	pass(200); // told only: is asked about when it is used
	assert_mac(last()->b, &other_mac);
	assert_true(is_arp(last(), 1));
}

static void
test_arp_malformed(void **state)
{
	uint8_t good[28] = { 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0xfe, 192, 0, 2, 7,
			     0, 0, 0, 0, 0, 0, 192, 0, 2, 1 };
	unsigned int n = 0;

	(void)state;
	for (uint16_t len = 0; len < sizeof(good); len++) {
		struct exact *e = exact_packet(good, len, 0);
		neigh_arp(&w0, &e->m);
		exact_free(e);
		assert_int_equal(n_fake_drops[DROP_arp_malformed], ++n);
	}
	for (int i = 0; i < 8; i++) {
		uint8_t b[28];
		memcpy(b, good, sizeof(b));
		b[i] ^= 0x40;
		neigh_arp(&w0, fake_packet(b, sizeof(b), 0));
		assert_int_equal(n_fake_drops[DROP_arp_malformed], ++n);
	}
	assert_int_equal(total(), 0);
	assert_int_equal(n_sent, 0);
	// exactly its length, and no headroom for the answer
	struct exact *e = exact_packet(good, sizeof(good), 0);
	neigh_arp(&w0, &e->m);
	exact_free(e);
	assert_int_equal(n_fake_drops[DROP_no_headroom], 1);
}

static void
test_nd_answer(void **state)
{
	const struct sent *s;

	(void)state;
	nd(135, 0, "2001:db8::7", "ff02::1:ff00:1", "2001:db8::1", &his_mac);
	s = last();
	assert_int_equal(s->len, 86);
	assert_mac(s->b, &his_mac);
	assert_memory_equal(s->b + 22, A("2001:db8::1").b, 16);
	assert_memory_equal(s->b + 38, A("2001:db8::7").b, 16);
	assert_int_equal(s->b[54], 136);
	assert_int_equal(s->b[58], 0xe0);
	assert_memory_equal(s->b + 78, "\2\1", 2);
	assert_mac(s->b + 80, &our_mac);
	assert_int_equal(cksum_l4(6, s->b + 22, s->b + 38, 58, s->b + 54, 32), 0);
	assert_int_equal(resolve(2, "2001:db8::7"), 1); // learned

	nd(135, 0, "::", "ff02::1:ff00:1", "2001:db8::1", NULL); // DAD
	s = last();
	assert_memory_equal(s->b, "\x33\x33\0\0\0\1", 6);
	assert_memory_equal(s->b + 38, A("ff02::1").b, 16);
	assert_int_equal(s->b[58], 0xa0);
	nd(135, 0, "fe80::7", "ff02::1:ff00:1", "fe80::1", &his_mac); // link-local
	assert_memory_equal(last()->b + 22, A("fe80::1").b, 16);
	// unicast without the option: by the table, or it is asked first
	nd(135, 0, "2001:db8::7", "2001:db8::1", "2001:db8::1", NULL);
	assert_mac(last()->b, &his_mac);
	assert_int_equal(last()->b[54], 136);
	nd(135, 0, "2001:db8::8", "2001:db8::1", "2001:db8::1", NULL);
	assert_int_equal(last()->b[54], 135);
	nd(136, 0x60, "2001:db8::8", "2001:db8::1", "2001:db8::8", &other_mac);
	assert_int_equal(last()->b[54], 136);
	assert_mac(last()->b, &other_mac);

	unsigned int before = n_sent;
	nd(135, 0, "2001:db8::7", "ff02::1:ff00:2", "2001:db8::2", &his_mac); // not ours
	nd(135, 0, "2001:db8::7", "ff02::1:ff00:2", "fe80::2", &his_mac); // other port's
	nd(133, 0, "fe80::7", "ff02::2", "::", NULL);
	nd(134, 0, "fe80::7", "ff02::1", "::", NULL);
	nd(137, 0, "fe80::7", "2001:db8::1", "::", NULL);
	assert_int_equal(n_sent, before);
	assert_int_equal(n_fake_drops[DROP_nd_malformed], 0);
}

static void
test_nd_learning(void **state)
{
	(void)state;
	nd(136, 0x60, "2001:db8::7", "2001:db8::1", "2001:db8::7", &his_mac);
	assert_int_equal(total(), 0); // an answer that nobody asked for
	resolve(2, "2001:db8::7");
	nd(136, 0x60, "2001:db8::7", "2001:db8::1", "2001:db8::7", NULL);
	assert_int_equal(find("2001:db8::7").state, NEIGH_INCOMPLETE);
	nd(136, 0x20, "2001:db8::7", "ff02::1", "2001:db8::7", &his_mac); // unsolicited
	assert_int_equal(find("2001:db8::7").state, NEIGH_REACHABLE);
	pass(200);
	assert_int_equal(find("2001:db8::7").state, NEIGH_PROBE); // told, to be asked
	assert_int_equal(last()->b[54], 135);
	assert_mac(last()->b, &his_mac);
	assert_memory_equal(last()->b + 38, A("2001:db8::7").b, 16);
	nd(136, 0x40, "2001:db8::7", "2001:db8::1", "2001:db8::7", NULL);
	assert_int_equal(find("2001:db8::7").state, NEIGH_REACHABLE);
	// another MAC address without the override flag: kept, but asked soon
	nd(136, 0x40, "2001:db8::7", "2001:db8::1", "2001:db8::7", &other_mac);
	w0.now += HZ;
	assert_int_equal(resolve(2, "2001:db8::7"), 1);
	assert_mac(last()->b, &his_mac);
	pass(200);
	assert_int_equal(find("2001:db8::7").state, NEIGH_PROBE);
	nd(136, 0x60, "2001:db8::7", "2001:db8::1", "2001:db8::7", &other_mac);
	assert_int_equal(resolve(2, "2001:db8::7"), 1);
	assert_mac(last()->b, &other_mac);
	// our own address is nobody's neighbour
	nd(136, 0x60, "2001:db8::9", "ff02::1", "2001:db8::1", &other_mac);
	nd(135, 0, "2001:db8::1", "ff02::1:ff00:1", "2001:db8::1", &other_mac);
	nd(135, 0, "2001:db8:5::7", "ff02::1:ff00:1", "2001:db8::1", &other_mac); // off link
	assert_int_equal(total(), 1);
}

// One byte changed, its checksum made right again.
struct nd_bad {
	uint16_t at;
	uint8_t value;
};

static void
test_nd_malformed(void **state)
{
	static const struct nd_bad bad[] = {
		{ 7, 254 },   // hop limit: RFC 4861 section 7.1.1
		{ 41, 1 },    // code
		{ 48, 0xff }, // target is multicast
		{ 65, 0 },    // option of length 0
		{ 65, 2 },    // option longer than the message
		{ 8, 0xff },  // source is multicast
		{ 6, 17 },    // not ICMPv6
		{ 40, 132 },  // not ND
		{ 4, 1 },     // payload longer than the packet
	};
	uint8_t b[80], was;
	uint16_t len;
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		len = nd_write(b, 135, 0, "2001:db8::7", "ff02::1:ff00:1", "2001:db8::1", &his_mac);
		was = b[bad[i].at];
		assert_int_not_equal(was, bad[i].value);
		b[bad[i].at] = bad[i].value;
		icmp6_sum(b, len);
		struct exact *e = exact_packet(b, len, 6);
		neigh_nd(&w0, &e->m);
		exact_free(e);
		assert_int_equal(n_fake_drops[DROP_nd_malformed], ++n);
	}
	for (uint16_t i = 40; i < 72; i++) { // any bit wrong: checksum
		len = nd_write(b, 135, 0, "2001:db8::7", "ff02::1:ff00:1", "2001:db8::1", &his_mac);
		b[i] ^= 0x10;
		neigh_nd(&w0, fake_packet(b, len, 6));
		assert_int_equal(n_fake_drops[DROP_nd_malformed], ++n);
	}
	nd(135, 0, "::", "ff02::1:ff00:1", "2001:db8::1", &his_mac); // DAD with option
	nd(135, 0, "::", "2001:db8::1", "2001:db8::1", NULL);        // DAD to unicast
	nd(136, 0x60, "2001:db8::7", "ff02::1", "2001:db8::7", &his_mac); // solicited to all
	n += 3;
	assert_int_equal(n_fake_drops[DROP_nd_malformed], n);
	assert_int_equal(total(), 0);
	assert_int_equal(n_sent, 0);
}

// Cut at every byte, with and without lengths and checksum that fit the rest.
static void
test_nd_truncated(void **state)
{
	uint8_t good[80], b[80];
	uint16_t full;

	(void)state;
	for (uint8_t type = 133; type <= 137; type++) {
		full = nd_write(good, type, 0x60, "2001:db8::7", "2001:db8::1", "2001:db8::1",
				&his_mac);
		good[64] = type == 136 ? 2 : 1;
		icmp6_sum(good, full);
		for (uint16_t len = 0; len <= full; len++) {
			struct exact *e = exact_packet(good, len, 6);
			neigh_nd(&w0, &e->m);
			exact_free(e);
			if (len < 44)
				continue;
			memcpy(b, good, sizeof(b));
			b[5] = (uint8_t)(len - 40);
			icmp6_sum(b, len);
			e = exact_packet(b, len, 6);
			neigh_nd(&w0, &e->m);
			exact_free(e);
		}
	}
	assert_true(n_fake_drops[DROP_nd_malformed] > 400);
}

// ---- a full table ----

#define MANY (NEIGH_SETS * 40) // enough to fill every set

static void
test_sweep(void **state)
{
	(void)state;
	resolve(4, "2001:db8:9::9");
	nd(136, 0x60, "2001:db8::fe", "2001:db8::1", "2001:db8::fe", &his_mac);
	for (unsigned int i = 0; i < 60000; i++) {
		char dst[64];
		snprintf(dst, sizeof(dst), "2001:db8::%x:%x", 1 + i / 1000, i % 1000 + 0x1000);
		resolve(2, dst);
		if (i % 100 == 0) {
			pass(1);
			assert_int_equal(resolve(4, "2001:db8:9::9"), 1);
		}
	}
	assert_true(total() <= NEIGH_SETS * NEIGH_WAYS);
	assert_int_equal(find("2001:db8::fe").state, NEIGH_REACHABLE);
	// nor do thousands who introduce themselves push out one that packets wait for
	neigh_drain(&w0, tables.neigh);
	pass(10000);
	assert_int_equal(resolve(2, "2001:db8::5"), 0);
	for (unsigned int i = 0; i < MANY; i++) {
		char src[64];
		snprintf(src, sizeof(src), "2001:db8::%x:%x", 1 + i / 1000, i % 1000 + 0x1000);
		nd(135, 0, src, "ff02::1:ff00:1", "2001:db8::1", &other_mac);
	}
	assert_int_equal(find("2001:db8::5").state, NEIGH_INCOMPLETE);
	assert_int_equal(find("2001:db8::fe").state, NEIGH_REACHABLE);
}

static void
count_visit(const struct neigh_info *info, void *arg)
{
	((unsigned int *)arg)[info->state]++;
}

struct list {
	unsigned int n;
	struct addr addrs[NEIGH_SETS * NEIGH_WAYS];
};

static void
list_visit(const struct neigh_info *info, void *arg)
{
	struct list *l = arg;

	l->addrs[l->n++] = info->addr;
}

// Who is evicted for whom: the unused for those that packets wait for, the used
// never, and those that packets wait for not for somebody who introduces himself.
static void
test_evict(void **state)
{
	static struct list all;
	unsigned int states[NEIGH_STATIC + 1] = { 0 }, full;
	char a[64];

	(void)state;
	resolve(4, "2001:db8:9::9");
	nd(136, 0x60, "2001:db8::fe", "2001:db8::1", "2001:db8::fe", &his_mac);
	for (unsigned int i = 0; i < MANY; i++) { // all answer
		snprintf(a, sizeof(a), "2001:db8::1:%x", i + 0x1000);
		resolve(2, a);
		nd(136, 0x60, a, "2001:db8::1", a, &other_mac);
	}
	neigh_walk(tables.neigh, count_visit, states);
	assert_int_equal(states[NEIGH_REACHABLE], NEIGH_SETS * NEIGH_WAYS);
	full = n_fake_drops[DROP_neigh_table_full];
	assert_int_equal(full, MANY + 1 - NEIGH_SETS * NEIGH_WAYS);

	w0.now += 31 * HZ; // confirmed long ago, but all in use
	all.n = 0;
	neigh_walk(tables.neigh, list_visit, &all);
	for (unsigned int i = 0; i < all.n; i++)
		assert_int_equal(resolve(2, addr_format(&all.addrs[i], a)), 1);
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(a, sizeof(a), "2001:db8::2:%x", i + 0x1000);
		resolve(2, a);
	}
	assert_int_equal(n_fake_drops[DROP_neigh_table_full], full + 1000);

	w0.now += 31 * HZ; // not used any more: each set gives one place to newcomers
	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(a, sizeof(a), "2001:db8::2:%x", i + 0x1000);
		assert_int_equal(resolve(2, a), 0);
	}
	memset(states, 0, sizeof(states));
	neigh_walk(tables.neigh, count_visit, states);
	assert_int_equal(states[NEIGH_REACHABLE], NEIGH_SETS * (NEIGH_WAYS - 1));
	assert_int_equal(states[NEIGH_INCOMPLETE], NEIGH_SETS);
	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(a, sizeof(a), "2001:db8::3:%x", i + 0x1000);
		nd(135, 0, a, "ff02::1:ff00:1", "2001:db8::1", &other_mac);
	}
	memset(states, 0, sizeof(states));
	neigh_walk(tables.neigh, count_visit, states);
	assert_int_equal(states[NEIGH_INCOMPLETE], NEIGH_SETS);
}

// A table full of static entries: dropped, answered, never overwritten.
static void
test_static_full(void **state)
{
	struct mac mac;

	(void)state;
	memcpy(mac.b, &his_mac, 6);
	for (unsigned int i = 0; i < MANY; i++) { // fill all that can be filled
		struct addr a = A("2001:db8::");
		a.b[14] = (uint8_t)(i >> 8);
		a.b[13] = 1;
		a.b[15] = (uint8_t)i;
		neigh_add_static(tables.neigh, 0, &a, &mac, NULL);
	}
	assert_int_equal(total(), NEIGH_SETS * NEIGH_WAYS);
	resolve(2, "192.0.2.7");
	assert_int_equal(n_fake_drops[DROP_neigh_table_full], 1);
	arp(1, &his_mac, "192.0.2.7", "192.0.2.1"); // answered, not learned
	assert_int_equal(n_sent, 1);
	assert_int_equal(find("192.0.2.7").state, NEIGH_FREE);
}

// ---- readers beside a writer ----

static bool reader_stop;

static void *
reader(void *arg)
{
	struct worker *w = arg;
	uint8_t b[64] = { 0 };
	struct rte_mbuf *m = fake_packet(b, 21, 4);
	uintptr_t bad = 0;

	pkt(m)->nexthop = 1;
	while (bad == 0 && !__atomic_load_n(&reader_stop, __ATOMIC_RELAXED)) {
		const uint8_t *frame;

		if (neigh_resolve(w, &m, 1) != 1)
			return (void *)1; // it has freed m
		frame = rte_pktmbuf_mtod(m, const uint8_t *);
		for (int i = 2; i < 6; i++)
			if (frame[i] != frame[1])
				bad = 2;
		rte_pktmbuf_adj(m, 14);
	}
	rte_pktmbuf_free(m);
	return (void *)bad;
}

static void
test_torn_read(void **state)
{
	static struct worker w1;
	struct rte_ether_addr mac;
	pthread_t thread;
	void *result;
	unsigned int given;

	(void)state;
	memset(&mac, 2, sizeof(mac));
	arp(1, &mac, "192.0.2.254", "192.0.2.1");
	w1 = w0;
	given = n_given;
	pthread_create(&thread, NULL, reader, &w1);
	for (unsigned int i = 0; i < 2000000; i++) {
		struct addr a = nexthops[1].gateway;

		memset(mac.addr_bytes + 1, (int)(i & 0xff), 5);
		neigh_learn(&w0, 0, &a, &mac, NEIGH_OVERRIDE | NEIGH_CONFIRM);
	}
	__atomic_store_n(&reader_stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, &result);
	assert_ptr_equal(result, NULL);
	n_given = given;
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_resolve_arp),    TEST(test_resolve_nd),     TEST(test_resolve_onlink),
		TEST(test_resolve_burst),  TEST(test_queue_bound),    TEST(test_retry_and_fail),
		TEST(test_refresh),        TEST(test_idle_forgotten), TEST(test_static),
		TEST(test_arp_answer),     TEST(test_arp_learning),   TEST(test_arp_malformed),
		TEST(test_nd_answer),      TEST(test_nd_learning),    TEST(test_nd_malformed),
		TEST(test_nd_truncated),   TEST(test_sweep),          TEST(test_evict),
		TEST(test_static_full),    TEST(test_torn_read),
	};

	return cmocka_run_group_tests(tests, eal_start, eal_stop);
}
