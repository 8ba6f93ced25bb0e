/* SPDX-License-Identifier: BSD-3-Clause */
// steer_hash: a flow is always the same one, tagged or not; ESP goes by its SPI and where
// it goes, raw or in UDP to us whatever the source; all fragments of a packet are together, and
// fixed; other flows spread evenly; what is odd is nobody else's; no byte behind a short
// frame is read (the frames end where their memory does, for the address sanitizer).
#include "steer.h"
#include "tables.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 0x1234567890abcdefull

struct frame {
	bool six, tag;
	uint8_t src, dst, proto;
	uint16_t sport, dport;
	uint32_t spi;  // behind ports 4500, or with ESP
	uint16_t frag; // IPv4: as in the header; IPv6: with fragment header when not 0
};

static size_t
put16(uint8_t *b, size_t at, uint16_t v)
{
	b[at] = (uint8_t)(v >> 8);
	b[at + 1] = (uint8_t)v;
	return at + 2;
}

static size_t
build(const struct frame *f, uint8_t *b)
{
	size_t at = 12;

	memset(b, 0, 128);
	if (f->tag)
		at = put16(b, put16(b, at, 0x8100), 7);
	at = put16(b, at, f->six ? 0x86dd : 0x0800);
	if (f->six) {
		b[at] = 0x60;
		b[at + 6] = f->frag != 0 ? IPPROTO_FRAGMENT : f->proto;
		b[at + 8 + 15] = f->src;
		b[at + 24 + 15] = f->dst;
		at += 40;
		if (f->frag != 0) {
			b[at] = f->proto;
			put16(b, at + 2, f->frag);
			at += 8;
		}
	} else {
		b[at] = 0x45;
		put16(b, at + 6, f->frag);
		b[at + 9] = f->proto;
		b[at + 15] = f->src;
		b[at + 19] = f->dst;
		at += 20;
	}
	if (f->proto != IPPROTO_ESP) {
		put16(b, put16(b, at, f->sport), f->dport);
		at += 8;
	}
	put16(b, put16(b, at, (uint16_t)(f->spi >> 16)), (uint16_t)f->spi);
	return at + 8;
}

// Ours end in 2.
bool
tables_is_own(const struct tables *t, uint8_t family, const void *addr)
{
	return ((const uint8_t *)addr)[family == 4 ? 3 : 15] == 2;
}

static enum steer_kind
hash_bytes(const uint8_t *b, size_t len, uint32_t *hash)
{
	uint8_t *exact = malloc(len + 1);
	struct rte_mbuf m = {.buf_addr = exact, .data_len = (uint16_t)len, .pkt_len = (uint32_t)len};
	enum steer_kind kind;

	assert_non_null(exact);
	exact = realloc(exact, len > 0 ? len : 1);
	m.buf_addr = exact;
	memcpy(exact, b, len);
	kind = steer_hash(NULL, &m, SEED, hash);
	free(exact);
	return kind;
}

static uint32_t
hash_of(struct frame f, enum steer_kind want)
{
	uint8_t b[128];
	uint32_t hash = 0;
	size_t len = build(&f, b);

	assert_int_equal(hash_bytes(b, len, &hash), want);
	return hash;
}

static void
test_flow(void **state)
{
	for (int six = 0; six < 2; six++) {
		struct frame f = {.six = six, .src = 1, .dst = 2, .proto = IPPROTO_UDP, .sport = 5, .dport = 6}, g = f;
		uint32_t h = hash_of(f, STEER_FLOW);

		g.tag = true;
		g.spi = 99; // payload
		assert_int_equal(hash_of(g, STEER_FLOW), h);
		g = f;
		g.sport++;
		assert_int_not_equal(hash_of(g, STEER_FLOW), h);
		g = f;
		g.proto = IPPROTO_TCP;
		assert_int_not_equal(hash_of(g, STEER_FLOW), h);
		g = f;
		g.dst++;
		assert_int_not_equal(hash_of(g, STEER_FLOW), h);
	}
}

static void
test_esp(void **state)
{
	for (int six = 0; six < 2; six++) {
		struct frame f = {.six = six, .src = 1, .dst = 2, .proto = IPPROTO_ESP, .spi = 0x1001}, g = f;
		uint32_t h = hash_of(f, STEER_FLOW);

		g.src++; // a NAT
		assert_int_equal(hash_of(g, STEER_FLOW), h);
		g.proto = IPPROTO_UDP;
		g.dport = 4500;
		g.sport = 31337;
		assert_int_equal(hash_of(g, STEER_FLOW), h);
		g.spi = 0x1002;
		assert_int_not_equal(hash_of(g, STEER_FLOW), h);
		g.dst = 7; // not to us: a flow like others, whatever is in it
		h = hash_of(g, STEER_FLOW);
		g.spi = 0x1003;
		assert_int_equal(hash_of(g, STEER_FLOW), h);
		g.dst = 2;
		g.spi = 0; // IKE: by its ports too
		h = hash_of(g, STEER_FLOW);
		g.sport++;
		assert_int_not_equal(hash_of(g, STEER_FLOW), h);
		f.spi++;
		g = f;
		g.dst++;
		assert_int_not_equal(hash_of(g, STEER_FLOW), hash_of(f, STEER_FLOW));
	}
}

static void
test_fragments(void **state)
{
	for (int six = 0; six < 2; six++) {
		uint16_t first = six ? 1 : 0x2000, later = six ? 0x100 : 0x20;
		struct frame f = {.six = six, .src = 1, .dst = 2, .proto = IPPROTO_UDP, .sport = 5, .dport = 6, .frag = first};
		uint32_t h = hash_of(f, STEER_FIXED);

		f.frag = later;
		f.sport = 0x4242; // payload
		assert_int_equal(hash_of(f, STEER_FIXED), h);
		f.dport = 4500;
		f.spi = 7;
		assert_int_equal(hash_of(f, STEER_FIXED), h);
		f.dst++;
		assert_int_not_equal(hash_of(f, STEER_FIXED), h);
	}
}

static void
test_odd(void **state)
{
	struct frame nd = {.six = true, .src = 1, .dst = 2, .proto = IPPROTO_ICMPV6, .sport = 135 << 8};
	struct frame echo = nd;
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06}, four[60] = {[12] = 0x08, [13] = 0x00, [14] = 0x61}, b[128];
	uint32_t hash;
	size_t len;

	echo.sport = 128 << 8;
	hash_of(nd, STEER_ODD);
	hash_of(echo, STEER_FLOW);
	assert_int_equal(hash_bytes(arp, sizeof(arp), &hash), STEER_ODD);
	assert_int_equal(hash_bytes(four, sizeof(four), &hash), STEER_ODD);
	for (int i = 0; i < 8; i++) {
		struct frame f = {.six = i & 1, .tag = i & 2, .src = 1, .dst = 2, .dport = 4500, .spi = 1,
				  .proto = i & 4 ? IPPROTO_ESP : IPPROTO_UDP};

		for (len = build(&f, b); len > 0; len--)
			hash_bytes(b, len - 1, &hash);
		assert_int_equal(hash_bytes(b, 14, &hash), STEER_ODD);
	}
}

// Neighbouring flows and SPIs on 2, 3 and 4 workers, by buckets as by the whole hash.
static void
test_spread(void **state)
{
	for (unsigned int n = 2; n <= 4; n++) {
		unsigned int count[3][4] = {{0}};

		for (uint16_t i = 0; i < 1000; i++) {
			struct frame esp = {.src = 1, .dst = 2, .proto = IPPROTO_ESP, .spi = 0x1000u + i};
			struct frame udp = {.src = 1, .dst = 2, .proto = IPPROTO_UDP, .sport = i, .dport = i};

			count[0][hash_of(esp, STEER_FLOW) % 512 % n]++;
			count[1][hash_of(udp, STEER_FLOW) % 512 % n]++;
			count[2][(uint64_t)hash_of(udp, STEER_FLOW) * n >> 32]++;
		}
		for (unsigned int kind = 0; kind < 3; kind++)
			for (unsigned int i = 0; i < n; i++)
				assert_in_range(count[kind][i], 1000 / n * 8 / 10, 1000 / n * 12 / 10);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_esp),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
