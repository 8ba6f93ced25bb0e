/* SPDX-License-Identifier: BSD-3-Clause */
// lib/path/cksum.h against a reference that adds byte by byte.
#include "cksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 20000
#define LEN_MAX 2000

static uint32_t seed = 1;

static uint32_t
next(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static uint16_t
in_packet(uint32_t value)
{
	const uint8_t b[2] = { (uint8_t)(value >> 8), (uint8_t)value };
	uint16_t v;

	memcpy(&v, b, 2);
	return v;
}

// RFC 1071 as its text says it, on bytes.
static uint32_t
naive_add(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static uint16_t
naive(const uint8_t *p, size_t len)
{
	return in_packet(~naive_add(0, p, len) & 0xffff);
}

static uint16_t
naive_l4(uint8_t family, const uint8_t *src, const uint8_t *dst, uint8_t proto, const uint8_t *l4,
	 uint32_t len)
{
	const uint8_t tail4[4] = { 0, proto, (uint8_t)(len >> 8), (uint8_t)len };
	const uint8_t tail6[8] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, proto };
	uint32_t sum = naive_add(0, src, family == 4 ? 4 : 16);

	sum = naive_add(sum, dst, family == 4 ? 4 : 16);
	sum = family == 4 ? naive_add(sum, tail4, 4) : naive_add(sum, tail6, 8);
	return in_packet(~naive_add(sum, l4, len) & 0xffff);
}

static void
test_vectors(void **state)
{
	// RFC 1071 section 3: the sum is ddf2
	const uint8_t rfc1071[8] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	// a well-known IPv4 header, checksum b861
	uint8_t ip[20] = { 0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61,
			   0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7 };

	(void)state;
	assert_int_equal(cksum_data(rfc1071, 8), in_packet(0x220d));
	assert_int_equal(cksum_data(rfc1071, 0), 0xffff);
	assert_true(cksum_ip4_ok(ip, sizeof(ip)));
	ip[11] ^= 1;
	assert_false(cksum_ip4_ok(ip, sizeof(ip)));
	cksum_ip4_set(ip, sizeof(ip));
	assert_int_equal(ip[10], 0xb8);
	assert_int_equal(ip[11], 0x61);
	// RFC 1624 section 4: equation 2 gets this one wrong
	assert_int_equal(cksum_update16(in_packet(0xdd2f), in_packet(0x5555), in_packet(0x3285)),
			 in_packet(0x0000));
}

// Every length, odd ones too, at every alignment; in a buffer of exactly that size.
static void
test_random(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		size_t len = i < 100 ? (size_t)i : next() % LEN_MAX, shift = next() % 8;
		uint8_t *block = malloc(shift + len + (shift + len == 0)), *data = block + shift;
		uint8_t proto = (uint8_t)next(), src[16], dst[16];

		for (size_t j = 0; j < len; j++)
			data[j] = i % 7 == 0 ? 0xff : (uint8_t)next();
		for (size_t j = 0; j < 16; j++) {
			src[j] = (uint8_t)next();
			dst[j] = (uint8_t)next();
		}
		assert_int_equal(cksum_data(data, len), naive(data, len));
		for (uint8_t family = 4; family <= 6; family += 2)
			assert_int_equal(cksum_l4(family, src, dst, proto, data, (uint32_t)len),
					 naive_l4(family, src, dst, proto, data, (uint32_t)len));
		free(block);
	}
}

// A sum that is in the data already makes the whole zero.
static void
test_verify(void **state)
{
	uint8_t data[301], src[16] = { 1 }, dst[16] = { 2 };

	(void)state;
	for (size_t len = 4; len < sizeof(data); len++) {
		uint16_t sum;

		for (size_t j = 0; j < len; j++)
			data[j] = (uint8_t)next();
		memset(data + 2, 0, 2);
		sum = cksum_l4(6, src, dst, 58, data, (uint32_t)len);
		memcpy(data + 2, &sum, 2);
		assert_int_equal(cksum_l4(6, src, dst, 58, data, (uint32_t)len), 0);
	}
}

static void
test_udp_zero(void **state)
{
	const uint8_t src[4] = { 0 }, dst[4] = { 0 };
	uint8_t l4[8] = { 0 };

	(void)state;
	// Make the sum of everything ffff, so that the checksum would be 0: RFC 768.
	l4[0] = 0xff;
	l4[1] = 0xff - 17 - 8;
	assert_int_equal(cksum_l4(4, src, dst, 17, l4, 8), 0);
	assert_int_equal(cksum_udp(4, src, dst, l4, 8), 0xffff);
	l4[1]--;
	assert_int_equal(cksum_udp(4, src, dst, l4, 8), in_packet(1));
}

static void
test_update(void **state)
{
	uint8_t data[64];

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		size_t at = (next() % 32) * 2;
		uint16_t was, is = (uint16_t)(i % 5 == 0 ? 0 : i % 5 == 1 ? 0xffff : next()), sum;

		for (size_t j = 0; j < sizeof(data); j++)
			data[j] = (uint8_t)next();
		sum = cksum_data(data, sizeof(data));
		memcpy(&was, data + at, 2);
		memcpy(data + at, &is, 2);
		assert_int_equal(cksum_update16(sum, was, is), cksum_data(data, sizeof(data)));
		// a word at an odd offset: both swapped
		sum = cksum_data(data, sizeof(data));
		at = at == 62 ? 1 : at + 1;
		memcpy(&was, data + at, 2);
		is = (uint16_t)next();
		memcpy(data + at, &is, 2);
		assert_int_equal(cksum_update16(sum, __builtin_bswap16(was), __builtin_bswap16(is)),
				 cksum_data(data, sizeof(data)));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors), cmocka_unit_test(test_random),
		cmocka_unit_test(test_verify),  cmocka_unit_test(test_udp_zero),
		cmocka_unit_test(test_update),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
