/* SPDX-License-Identifier: BSD-3-Clause */
// A worker with two ports that exist on paper only: what lib/path sends and drops
// is noted here. Included once by a test, which links only the stage it is about.
#pragma once

#include "cksum.h"
#include "neigh.h"
#include "stage.h"

#include <rte_arp.h>
#include <rte_eal.h>
#include <rte_ip.h>

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HZ 1000000ULL // of the fake TSC
#define SENT_MAX 4096
#define FRAME_MAX 1600

struct sent {
	uint16_t port;
	uint16_t len;
	uint8_t b[FRAME_MAX];
};

// A packet in memory of exactly its length, which the address sanitizer guards.
struct exact {
	struct rte_mbuf m;
	struct pkt p;
};

static struct worker w0;
static struct tables tables;
static struct tport ports[2];
static struct prefix addresses0[3], addresses1[1];
static struct nexthop nexthops[8];
static struct sent *sent;
static unsigned int n_sent, n_given, n_fake_drops[DROP_COUNT];
static struct rte_mempool *pool;
static bool bucket_empty;

static const struct rte_ether_addr our_mac = { { 2, 0, 0, 0, 0, 1 } };
static const struct rte_ether_addr his_mac __rte_unused = { { 2, 0, 0, 0, 0, 0xfe } };
static const struct rte_ether_addr other_mac __rte_unused = { { 2, 0, 0, 0, 0, 0xaa } };

// ---- what lib/path calls ----

void
tx_enqueue(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	struct sent *s = &sent[n_sent % SENT_MAX];

	s->port = port;
	s->len = RTE_MIN(m->data_len, FRAME_MAX);
	memcpy(s->b, rte_pktmbuf_mtod(m, void *), s->len);
	n_sent++;
	w->ports[m->port].sent_on++;
	assert_ptr_equal(pkt(m)->sa, NULL);
	assert_int_equal(m->data_len, m->pkt_len);
	if (m->pool != NULL)
		rte_pktmbuf_free(m);
}

void
drop(struct worker *w, struct rte_mbuf *m, enum drop_reason why)
{
	w->ports[m->port].ended[why]++;
	n_fake_drops[why]++;
	if (m->pool != NULL)
		rte_pktmbuf_free(m);
}

bool
bucket_take(struct bucket *b, const struct worker *w, uint32_t rate, uint32_t burst)
{
	(void)b;
	(void)w;
	assert_true(rate > 0 && burst > 0);
	return !bucket_empty;
}

bool
tables_is_own(const struct tables *t, uint8_t family, const void *addr)
{
	for (uint32_t i = 0; i < t->n_ports; i++) {
		for (uint32_t j = 0; j < t->ports[i].n_addresses; j++)
			if (t->ports[i].addresses[j].addr.family == family &&
			    memcmp(t->ports[i].addresses[j].addr.b, addr, addr_size(family)) == 0)
				return true;
		if (family == 6 && memcmp(t->ports[i].link_local.b, addr, 16) == 0)
			return true;
	}
	return false;
}

// ---- making and looking ----

static struct addr
A(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, &a), 0);
	return a;
}

static void
fake_start(void)
{
	memset(&w0, 0, sizeof(w0));
	memset(&tables, 0, sizeof(tables));
	memset(n_fake_drops, 0, sizeof(n_fake_drops));
	memset(ports, 0, sizeof(ports));
	memset(nexthops, 0, sizeof(nexthops));
	n_sent = n_given = 0;
	bucket_empty = false;
	assert_int_equal(prefix_parse("192.0.2.1/24", &addresses0[0]), 0);
	assert_int_equal(prefix_parse("2001:db8::1/64", &addresses0[1]), 0);
	assert_int_equal(prefix_parse("203.0.113.0/31", &addresses0[2]), 0);
	assert_int_equal(prefix_parse("198.51.100.1/24", &addresses1[0]), 0);
	for (uint16_t i = 0; i < 2; i++) {
		ports[i].port_id = 10 + i; // not the index
		ports[i].mtu = 1500;
		ports[i].mac = our_mac;
		ports[i].mac.addr_bytes[5] += i;
	}
	ports[0].addresses = addresses0;
	ports[0].n_addresses = 3;
	ports[0].link_local = A("fe80::1");
	ports[1].addresses = addresses1;
	ports[1].n_addresses = 1;
	ports[1].link_local = A("fe80::2");
	nexthops[1] = (struct nexthop){ NEXTHOP_GATEWAY, 0, A("192.0.2.254"), NULL };
	nexthops[2] = (struct nexthop){ NEXTHOP_ONLINK, 0, { 0 }, NULL };
	nexthops[3] = (struct nexthop){ NEXTHOP_TUNNEL, 0, { 0 }, NULL };
	nexthops[4] = (struct nexthop){ NEXTHOP_GATEWAY, 0, A("2001:db8::fe"), NULL };
	nexthops[5] = (struct nexthop){ NEXTHOP_LOCAL, 0, { 0 }, NULL };
	nexthops[6] = (struct nexthop){ NEXTHOP_DISCARD, 0, { 0 }, NULL };
	tables.n_ports = 2;
	tables.ports = ports;
	tables.n_nexthops = 7;
	tables.nexthops = nexthops;
	w0.tables = &tables;
	w0.hz = HZ;
	w0.now = 5 * HZ;
	w0.pool = pool;
}

// Every packet that came or was made has gone, and its buffer is back.
static void
fake_balance(unsigned int waiting)
{
	uint64_t in = n_given, out = waiting;

	for (int i = 0; i < 2; i++) {
		in += w0.ports[i].originated;
		out += w0.ports[i].sent_on;
		for (int j = 0; j < DROP_COUNT; j++)
			out += w0.ports[i].ended[j];
	}
	assert_int_equal(in, out);
	assert_int_equal(rte_mempool_in_use_count(pool), waiting);
}

static struct rte_mbuf *
fake_packet(const void *data, uint16_t len, uint8_t family)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, len), data, len);
	memset(pkt(m), 0, sizeof(struct pkt));
	pkt(m)->family = family;
	pkt(m)->nexthop = PKT_NO_NEXTHOP;
	m->port = 0;
	n_given++;
	return m;
}

static __rte_unused struct exact *
exact_packet(const void *data, uint16_t len, uint8_t family)
{
	struct exact *e = calloc(1, sizeof(*e));

	e->m.buf_addr = malloc(len + (len == 0));
	if (len != 0)
		memcpy(e->m.buf_addr, data, len);
	e->m.buf_len = e->m.data_len = len;
	e->m.pkt_len = len;
	e->m.port = 0;
	e->m.nb_segs = 1;
	e->m.priv_size = sizeof(e->p);
	e->p.family = family;
	e->p.nexthop = PKT_NO_NEXTHOP;
	n_given++;
	return e;
}

static __rte_unused void
exact_free(struct exact *e)
{
	free(e->m.buf_addr);
	free(e);
}

// 20 or 40 bytes of header, then the payload.
static uint16_t
ip_write(uint8_t *b, const char *src, const char *dst, uint8_t proto, uint8_t ttl,
	 const void *payload, uint16_t len)
{
	struct addr s = A(src), d = A(dst);

	memset(b, 0, 40);
	if (s.family == 4) {
		b[0] = 0x45;
		b[2] = (uint8_t)((len + 20) >> 8);
		b[3] = (uint8_t)(len + 20);
		b[8] = ttl;
		b[9] = proto;
		memcpy(b + 12, s.b, 4);
		memcpy(b + 16, d.b, 4);
		cksum_ip4_set(b, 20);
		memcpy(b + 20, payload, len);
		return len + 20;
	}
	b[0] = 0x60;
	b[4] = (uint8_t)(len >> 8);
	b[5] = (uint8_t)len;
	b[6] = proto;
	b[7] = ttl;
	memcpy(b + 8, s.b, 16);
	memcpy(b + 24, d.b, 16);
	memcpy(b + 40, payload, len);
	return len + 40;
}

static __rte_unused void
icmp6_sum(uint8_t *packet, uint16_t len)
{
	uint16_t sum;

	memset(packet + 42, 0, 2);
	sum = cksum_l4(6, packet + 8, packet + 24, 58, packet + 40, len - 40u);
	memcpy(packet + 42, &sum, 2);
}

static int
eal_start(void **state)
{
	static char name[] = "test", huge[] = "--no-huge", pci[] = "--no-pci", mem[] = "-m64",
		    tel[] = "--no-telemetry", shconf[] = "--no-shconf", lcore[] = "-l0",
		    log[] = "--log-level=error";
	static char prefix[64];
	char *argv[] = { name, huge, pci, mem, tel, shconf, lcore, log, prefix };

	(void)state;
	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("unit", 4095, 0, PKT_PRIV_SIZE, 2048 + 128, 0);
	sent = calloc(SENT_MAX, sizeof(*sent));
	return pool != NULL && sent != NULL ? 0 : -1;
}

static int
eal_stop(void **state)
{
	(void)state;
	free(sent);
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}
