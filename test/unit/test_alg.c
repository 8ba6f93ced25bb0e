/* SPDX-License-Identifier: BSD-3-Clause */
// Algorithm names and the arithmetic of sealed lengths, against a second one
// that builds the packet byte by byte.
#include "alg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// The sizes again, from the RFCs and not from the table under test.
struct suite {
	int number;
	enum alg_id cipher, auth;
	unsigned int iv, block, icv;
};

static const struct suite suites[] = {
	{1, ALG_AES_GCM_16, ALG_NONE, 8, 1, 16},        // RFC 4106 sections 3.1, 6
	{2, ALG_AES_GCM_12, ALG_NONE, 8, 1, 12},        //
	{3, ALG_AES_GCM_8, ALG_NONE, 8, 1, 8},          //
	{4, ALG_CHACHA20_POLY1305, ALG_NONE, 8, 1, 16}, // RFC 7634 section 2
	{5, ALG_AES_CBC, ALG_HMAC_SHA1_96, 16, 16, 12}, // RFC 3602, 2404
	{6, ALG_AES_CBC, ALG_HMAC_SHA256_128, 16, 16, 16},
	{7, ALG_AES_CBC, ALG_HMAC_SHA384_192, 16, 16, 24},
	{8, ALG_AES_CBC, ALG_HMAC_SHA512_256, 16, 16, 32},
	{9, ALG_AES_CTR, ALG_HMAC_SHA1_96, 8, 1, 12}, // RFC 3686 section 3.1
	{10, ALG_AES_CTR, ALG_HMAC_SHA256_128, 8, 1, 16},
	{11, ALG_NULL, ALG_HMAC_SHA1_96, 0, 1, 12},
	{12, ALG_NULL, ALG_HMAC_SHA256_128, 0, 1, 16},
};

// Add padding a byte at a time until RFC 4303 section 2.4 is content.
static uint32_t
brute_sealed_len(const struct suite *s, uint8_t family, bool natt, uint32_t inner)
{
	uint32_t pad = 0;

	while ((inner + pad + 1 + 1) % s->block != 0 || (inner + pad + 1 + 1) % 4 != 0)
		pad++;
	return (family == 4 ? 20 : 40) + (natt ? 8 : 0) + 4 + 4 + s->iv + inner + pad + 1 + 1 +
	       s->icv;
}

static void
sealed_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(suites); i++) {
		const struct suite *s = &suites[i];

		for (int v = 0; v < 4; v++) {
			uint8_t family = v & 1 ? 6 : 4;
			bool natt = v & 2;

			for (uint32_t inner = 28; inner < 120; inner++) {
				uint32_t want = brute_sealed_len(s, family, natt, inner);
				uint32_t got =
					alg_sealed_len(s->cipher, s->auth, family, natt, inner);

				if (got != want)
					fail_msg("suite %d, IPv%u, NAT-T %d, inner %u: %u, not %u",
						 s->number, family, natt, inner, got, want);
			}
		}
	}
}

// The largest inner packet fits, and one byte more does not.
static void
inner_mtu_is_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(suites); i++) {
		const struct suite *s = &suites[i];

		for (uint32_t mtu = 0; mtu < 9001; mtu += mtu < 1600 ? 1 : 37) {
			for (int v = 0; v < 4; v++) {
				uint8_t family = v & 1 ? 6 : 4;
				bool natt = v & 2;
				uint32_t inner =
					alg_inner_mtu(s->cipher, s->auth, family, natt, mtu);

				if (inner > 0 && brute_sealed_len(s, family, natt, inner) > mtu)
					fail_msg("suite %d, MTU %u: %u is too long", s->number, mtu,
						 inner);
				if (brute_sealed_len(s, family, natt, inner + 1) <= mtu)
					fail_msg("suite %d, MTU %u: %u is too short", s->number,
						 mtu, inner);
			}
		}
	}
}

// The same of a packet in transport mode: its headers, then what is sealed.
static uint32_t
brute_transport_len(const struct suite *s, uint8_t family, bool natt, uint32_t ext, uint32_t len)
{
	uint32_t header = family == 4 ? 20 : 40, pad = 0, payload = len - header - ext;

	while ((payload + pad + 1 + 1) % s->block != 0 || (payload + pad + 1 + 1) % 4 != 0)
		pad++;
	return header + ext + (natt ? 8 : 0) + 4 + 4 + s->iv + payload + pad + 1 + 1 + s->icv;
}

// None, IPv4 options, IPv6 extension headers.
static const uint32_t ext_lens[] = {0, 4, 8, 24, 40, 64, 1000};

static void
transport_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(suites) * COUNT(ext_lens) * 4; i++) {
		const struct suite *s = &suites[i / 4 / COUNT(ext_lens)];
		uint32_t ext = ext_lens[i / 4 % COUNT(ext_lens)];
		uint8_t family = i & 1 ? 6 : 4;
		bool natt = i & 2;

		for (uint32_t len = (family == 4 ? 20 : 40) + ext, n = 0; n < 100; n++, len++) {
			uint32_t want = brute_transport_len(s, family, natt, ext, len);
			uint32_t got =
				alg_transport_len(s->cipher, s->auth, family, natt, ext, len);

			if (got != want)
				fail_msg("suite %d, IPv%u, NAT-T %d, extensions %u, %u: %u, not %u",
					 s->number, family, natt, ext, len, got, want);
		}
	}
}

// The largest packet fits, and one byte more does not; none fits when 0 is said.
static void
transport_payload_is_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(suites) * COUNT(ext_lens) * 4; i++) {
		const struct suite *s = &suites[i / 4 / COUNT(ext_lens)];
		uint32_t ext = ext_lens[i / 4 % COUNT(ext_lens)];
		uint8_t family = i & 1 ? 6 : 4;
		bool natt = i & 2;

		for (uint32_t mtu = 0; mtu < 9001; mtu += mtu < 1600 ? 1 : 37) {
			uint32_t len = alg_transport_payload(s->cipher, s->auth, family, natt, ext,
							     mtu);
			uint32_t least = (family == 4 ? 20 : 40) + ext;

			if (len != 0 && (len <= least ||
					 brute_transport_len(s, family, natt, ext, len) > mtu))
				fail_msg("suite %d, MTU %u: %u is too long", s->number, mtu, len);
			if (brute_transport_len(s, family, natt, ext,
						len != 0 ? len + 1 : least + 1) <= mtu)
				fail_msg("suite %d, MTU %u: %u is too short", s->number, mtu, len);
		}
	}
}

static void
transport_constants(void **state)
{
	static const struct {
		int number;
		enum alg_id cipher, auth;
		uint8_t family;
		bool natt;
		uint32_t ext, len;
	} cases[] = {
		// 1500 - 20 - 8 - 8 - 16 = 1448 sealed, two of them trailer
		{1, ALG_AES_GCM_16, ALG_NONE, 4, false, 0, 1466},
		{2, ALG_AES_GCM_16, ALG_NONE, 6, false, 0, 1466},
		{3, ALG_AES_GCM_16, ALG_NONE, 4, true, 0, 1458},
		{4, ALG_AES_GCM_16, ALG_NONE, 6, false, 8, 1466},
		{5, ALG_AES_GCM_16, ALG_NONE, 4, false, 4, 1466},
		// 1500 - 20 - 8 - 16 - 12 = 1444, 90 blocks are 1440
		{6, ALG_AES_CBC, ALG_HMAC_SHA1_96, 4, false, 0, 1458},
		// 1500 - 40 - 8 - 16 - 16 = 1420, 88 blocks are 1408
		{7, ALG_AES_CBC, ALG_HMAC_SHA256_128, 6, false, 0, 1446},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (alg_transport_payload(cases[i].cipher, cases[i].auth, cases[i].family,
					  cases[i].natt, cases[i].ext, 1500) != cases[i].len)
			fail_msg("case %d", cases[i].number);
}

// lab.md section 2, which has some of them from the source texts.
static void
lab_constants(void **state)
{
	static const struct {
		int number;
		enum alg_id cipher, auth;
		uint8_t family;
		bool natt;
		uint32_t inner;
	} cases[] = {
		{1, ALG_AES_GCM_16, ALG_NONE, 4, false, 1446},
		{2, ALG_AES_GCM_16, ALG_NONE, 6, false, 1426},
		{3, ALG_AES_GCM_16, ALG_NONE, 4, true, 1438},
		{4, ALG_AES_CBC, ALG_HMAC_SHA1_96, 4, false, 1438},
		{5, ALG_AES_CBC, ALG_HMAC_SHA256_128, 4, false, 1438},
		{6, ALG_AES_CBC, ALG_HMAC_SHA256_128, 6, false, 1406},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (alg_inner_mtu(cases[i].cipher, cases[i].auth, cases[i].family, cases[i].natt,
				  1500) != cases[i].inner)
			fail_msg("case %d", cases[i].number);
}

static void
names(void **state)
{
	(void)state;
	for (int id = ALG_NONE + 1; id < ALG_COUNT; id++) {
		const struct alg *a = alg_get((enum alg_id)id);

		assert_non_null(a->name);
		assert_int_equal(alg_find(a->name), id);
		assert_int_equal(strncmp(a->rfc, "RFC ", 4), 0);
	}
	assert_int_equal(alg_find("none"), ALG_NONE);
	assert_int_equal(alg_find("AES-GCM-16"), ALG_NONE);
	assert_int_equal(alg_find(""), ALG_NONE);
	assert_int_equal(alg_get(ALG_NONE)->icv_len, 0);
	assert_int_equal(alg_get((enum alg_id)99)->icv_len, 0);
}

static void
kinds_and_keys(void **state)
{
	static const struct {
		enum alg_id id;
		enum alg_kind kind;
		uint8_t first, last, salt;
		bool counter;
	} cases[] = {
		{ALG_AES_GCM_16, ALG_AEAD, 16, 32, 4, true},
		{ALG_AES_GCM_12, ALG_AEAD, 16, 32, 4, true},
		{ALG_AES_GCM_8, ALG_AEAD, 16, 32, 4, true},
		{ALG_CHACHA20_POLY1305, ALG_AEAD, 32, 0, 4, true},
		{ALG_AES_CBC, ALG_CIPHER, 16, 32, 0, false},
		{ALG_AES_CTR, ALG_CIPHER, 16, 32, 4, true},
		{ALG_NULL, ALG_CIPHER, 0, 0, 0, false},
		{ALG_HMAC_SHA1_96, ALG_AUTH, 20, 0, 0, false},
		{ALG_HMAC_SHA256_128, ALG_AUTH, 32, 0, 0, false},
		{ALG_HMAC_SHA384_192, ALG_AUTH, 48, 0, 0, false},
		{ALG_HMAC_SHA512_256, ALG_AUTH, 64, 0, 0, false},
	};

	(void)state;
	assert_int_equal(COUNT(cases), ALG_COUNT - 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct alg *a = alg_get(cases[i].id);

		if (a->kind != cases[i].kind || a->key_lens[0] != cases[i].first ||
		    a->key_lens[2] != cases[i].last || a->salt_len != cases[i].salt ||
		    a->counter != cases[i].counter)
			fail_msg("%s", a->name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed_lengths),
		cmocka_unit_test(inner_mtu_is_exact),
		cmocka_unit_test(transport_lengths),
		cmocka_unit_test(transport_payload_is_exact),
		cmocka_unit_test(transport_constants),
		cmocka_unit_test(lab_constants),
		cmocka_unit_test(names),
		cmocka_unit_test(kinds_and_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
