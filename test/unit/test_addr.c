/* SPDX-License-Identifier: BSD-3-Clause */
// Addresses, prefixes, ranges, MAC addresses, strict numbers.
#include "addr.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
address_forms(void **state)
{
	static const struct {
		int number;
		const char *in, *out; // out NULL: refused
	} cases[] = {
		{1, "198.18.0.1", "198.18.0.1"},
		{2, "0.0.0.0", "0.0.0.0"},
		{3, "255.255.255.255", "255.255.255.255"},
		{4, "2001:2::209", "2001:2::209"},
		{5, "2001:0002:0000::0209", "2001:2::209"},
		{6, "::", "::"},
		{7, "::ffff:10.0.0.1", "::ffff:10.0.0.1"},
		{8, "10.0.0.010", NULL}, // octal to some, decimal to others
		{9, "10.0.0", NULL},
		{10, "10.0.0.256", NULL},
		{11, "10.0.0.1 ", NULL},
		{12, " 10.0.0.1", NULL},
		{13, "0x0a.0.0.1", NULL},
		{14, "fe80::1%igb2", NULL},
		{15, "2001:2:::1", NULL},
		{16, "12345::1", NULL},
		{17, "", NULL},
		{18, "10.0.0.1/24", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct addr a;
		char text[ADDR_STRLEN];
		int rc = addr_parse(cases[i].in, &a);

		if ((rc == 0) != (cases[i].out != NULL))
			fail_msg("case %d: %s gave %d", cases[i].number, cases[i].in, rc);
		if (rc == 0 && strcmp(addr_format(&a, text), cases[i].out) != 0)
			fail_msg("case %d: %s became %s", cases[i].number, cases[i].in, text);
	}
}

static void
address_unused_bytes_are_zero(void **state)
{
	struct addr a;

	(void)state;
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(addr_parse("10.1.2.3", &a), 0);
	for (int i = 4; i < 16; i++)
		assert_int_equal(a.b[i], 0);
}

static void
prefix_forms(void **state)
{
	static const struct {
		int number;
		const char *in;
		int rc;
		const char *network;
		bool host_bits;
	} cases[] = {
		{1, "198.18.0.209/24", 0, "198.18.0.0/24", true},
		{2, "198.18.0.0/16", 0, "198.18.0.0/16", false},
		{3, "0.0.0.0/0", 0, "0.0.0.0/0", false},
		{4, "10.0.0.1/32", 0, "10.0.0.1/32", false},
		{5, "10.0.0.1/31", 0, "10.0.0.0/31", true},
		{6, "2001:2:0:8000::/49", 0, "2001:2:0:8000::/49", false},
		{7, "2001:2:0:8000::/48", 0, "2001:2::/48", true},
		{8, "::/0", 0, "::/0", false},
		{9, "::1/128", 0, "::1/128", false},
		{10, "::1/127", 0, "::/127", true},
		{11, "10.0.0.0/33", -ERANGE, NULL, false},
		{12, "::/129", -ERANGE, NULL, false},
		{13, "10.0.0.0/4294967304", -ERANGE, NULL, false}, // 8 modulo 2^32
		{14, "10.0.0.0/08", -EINVAL, NULL, false},
		{15, "10.0.0.0/", -EINVAL, NULL, false},
		{16, "10.0.0.0", -EINVAL, NULL, false},
		{17, "10.0.0.0/8/8", -EINVAL, NULL, false},
		{18, "10.0.0.0/+8", -EINVAL, NULL, false},
		{19, "10.0.0.0/255.0.0.0", -EINVAL, NULL, false},
		{20, "/8", -EINVAL, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct prefix p;
		char text[ADDR_STRLEN];
		int rc = prefix_parse(cases[i].in, &p);

		if (rc != cases[i].rc)
			fail_msg("case %d: %s gave %d", cases[i].number, cases[i].in, rc);
		if (rc < 0)
			continue;
		if (prefix_has_host_bits(&p) != cases[i].host_bits)
			fail_msg("case %d: host bits of %s", cases[i].number, cases[i].in);
		p = prefix_network(&p);
		if (strcmp(prefix_format(&p, text), cases[i].network) != 0)
			fail_msg("case %d: network %s", cases[i].number, text);
	}
}

static void
prefix_membership(void **state)
{
	static const struct {
		int number;
		const char *prefix, *address;
		bool inside;
	} cases[] = {
		{1, "198.18.0.209/24", "198.18.0.1", true},
		{2, "198.18.0.0/24", "198.18.1.0", false},
		{3, "0.0.0.0/0", "255.1.2.3", true},
		{4, "0.0.0.0/0", "::", false},
		{5, "10.0.0.1/32", "10.0.0.1", true},
		{6, "10.0.0.1/32", "10.0.0.0", false},
		{7, "10.0.0.128/25", "10.0.0.127", false},
		{8, "10.0.0.128/25", "10.0.0.128", true},
		{9, "2001:2:0:8000::/49", "2001:2:0:ffff::1", true},
		{10, "2001:2:0:8000::/49", "2001:2:0:7fff::1", false},
		{11, "::/0", "ffff::", true},
		{12, "::1/128", "::2", false},
		{13, "10.0.0.0/7", "11.255.255.255", true},
		{14, "10.0.0.0/7", "12.0.0.0", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct prefix p;
		struct range r;
		struct addr a;

		assert_int_equal(prefix_parse(cases[i].prefix, &p), 0);
		assert_int_equal(addr_parse(cases[i].address, &a), 0);
		r = prefix_range(&p);
		if (prefix_contains(&p, &a) != cases[i].inside ||
		    range_contains(&r, &a) != cases[i].inside)
			fail_msg("case %d: %s in %s", cases[i].number, cases[i].address,
				 cases[i].prefix);
	}
}

static void
range_forms(void **state)
{
	static const struct {
		int number;
		const char *in;
		int rc;
		const char *out;
		int prefixes; // that it splits into
	} cases[] = {
		{1, "10.0.0.1", 0, "10.0.0.1/32", 1},
		{2, "10.0.0.0/8", 0, "10.0.0.0/8", 1},
		{3, "10.0.0.0-10.255.255.255", 0, "10.0.0.0/8", 1},
		{4, "10.0.0.1-10.0.0.6", 0, "10.0.0.1-10.0.0.6", 4},
		{5, "0.0.0.0-255.255.255.255", 0, "0.0.0.0/0", 1},
		{6, "0.0.0.1-255.255.255.254", 0, "0.0.0.1-255.255.255.254", 62},
		{7, "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0, "::/0", 1},
		{8, "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 0,
		 "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 254},
		{9, "2001:2::-2001:2:0:7fff:ffff:ffff:ffff:ffff", 0, "2001:2::/49", 1},
		{10, "10.0.0.1-10.0.0.1", 0, "10.0.0.1/32", 1},
		{11, "10.0.0.2-10.0.0.1", -ERANGE, NULL, 0},
		{12, "10.0.0.1-::2", -ERANGE, NULL, 0},
		{13, "10.0.0.1/24", -EDOM, NULL, 0},
		{14, "10.0.0.0/33", -ERANGE, NULL, 0},
		{15, "10.0.0.1-", -EINVAL, NULL, 0},
		{16, "-10.0.0.1", -EINVAL, NULL, 0},
		{17, "10.0.0.1-10.0.0.2-10.0.0.3", -EINVAL, NULL, 0},
		{18, "any", -EINVAL, NULL, 0},
		{19, "255.255.255.255-255.255.255.255", 0, "255.255.255.255/32", 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct range r;
		struct prefix split[254];
		char text[RANGE_STRLEN];
		int rc = range_parse(cases[i].in, &r), n;

		if (rc != cases[i].rc)
			fail_msg("case %d: %s gave %d", cases[i].number, cases[i].in, rc);
		if (rc < 0)
			continue;
		if (strcmp(range_format(&r, text), cases[i].out) != 0)
			fail_msg("case %d: %s became %s", cases[i].number, cases[i].in, text);
		n = range_split(&r, split, 254);
		if (n != cases[i].prefixes)
			fail_msg("case %d: %d prefixes", cases[i].number, n);
		if (range_split(&r, split, n - 1) != -ENOSPC)
			fail_msg("case %d: fitted into too little room", cases[i].number);
	}
}

// The parts of a split lie side by side and make the whole.
static void
range_split_covers_exactly(void **state)
{
	(void)state;
	srand(1);
	for (int n = 0; n < 20000; n++) {
		uint8_t family = n % 2 == 0 ? 4 : 6;
		struct range r = {.first.family = family, .last.family = family};
		struct prefix parts[254];
		struct addr next;

		for (size_t i = 0; i < addr_size(family); i++) {
			r.first.b[i] = (uint8_t)(rand() % 3 == 0 ? 0 : rand());
			r.last.b[i] = (uint8_t)(rand() % 3 == 0 ? 0xff : rand());
		}
		if (addr_cmp(&r.first, &r.last) > 0) {
			struct addr t = r.first;

			r.first = r.last;
			r.last = t;
		}
		int count = range_split(&r, parts, 254);
		assert_true(count > 0);
		next = r.first;
		for (int i = 0; i < count; i++) {
			struct range part = prefix_range(&parts[i]);

			assert_false(prefix_has_host_bits(&parts[i]));
			assert_int_equal(addr_cmp(&part.first, &next), 0);
			next = part.last;
			if (i == count - 1)
				break;
			for (size_t j = addr_size(family); j-- > 0 && ++next.b[j] == 0;)
				;
		}
		assert_int_equal(addr_cmp(&next, &r.last), 0);
	}
}

static void
range_overlap(void **state)
{
	static const struct {
		int number;
		const char *a, *b;
		bool overlap;
	} cases[] = {
		{1, "10.0.0.0/8", "10.1.0.0/16", true},
		{2, "10.0.0.0/24", "10.0.1.0/24", false},
		{3, "10.0.0.1-10.0.0.5", "10.0.0.5-10.0.0.9", true},
		{4, "10.0.0.1-10.0.0.4", "10.0.0.5-10.0.0.9", false},
		{5, "0.0.0.0/0", "::/0", false},
		{6, "2001:2::/49", "2001:2:0:8000::/49", false},
		{7, "::/0", "2001:2:0:8000::/49", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct range a, b;

		assert_int_equal(range_parse(cases[i].a, &a), 0);
		assert_int_equal(range_parse(cases[i].b, &b), 0);
		if (range_overlaps(&a, &b) != cases[i].overlap ||
		    range_overlaps(&b, &a) != cases[i].overlap)
			fail_msg("case %d", cases[i].number);
	}
}

static void
mac_forms(void **state)
{
	static const struct {
		int number;
		const char *in, *out;
	} cases[] = {
		{1, "00:08:a2:09:33:da", "00:08:a2:09:33:da"},
		{2, "FF:FF:FF:FF:FF:FF", "ff:ff:ff:ff:ff:ff"},
		{3, "0:8:a2:9:33:da", NULL},
		{4, "00-08-a2-09-33-da", NULL},
		{5, "00:08:a2:09:33", NULL},
		{6, "00:08:a2:09:33:da:00", NULL},
		{7, "00:08:a2:09:33:dg", NULL},
		{8, "0008a20933da", NULL},
		{9, "", NULL},
		{10, "0", NULL},
		{11, "00:08:a2:09:33:d", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct mac m;
		char text[MAC_STRLEN];
		int rc = mac_parse(cases[i].in, &m);

		if ((rc == 0) != (cases[i].out != NULL))
			fail_msg("case %d: %s gave %d", cases[i].number, cases[i].in, rc);
		if (rc == 0 && strcmp(mac_format(&m, text), cases[i].out) != 0)
			fail_msg("case %d: became %s", cases[i].number, text);
	}
}

static void
martians(void **state)
{
	static const struct {
		int number;
		const char *address;
		bool martian, multicast;
	} cases[] = {
		{1, "0.0.0.0", true, false},
		{2, "127.1.2.3", true, false},
		{3, "223.255.255.255", false, false},
		{4, "224.0.0.1", true, true},
		{5, "239.255.255.255", true, true},
		{6, "240.0.0.1", true, false},
		{7, "255.255.255.255", true, false},
		{8, "198.18.0.1", false, false},
		{9, "::", true, false},
		{10, "::1", true, false},
		{11, "::2", true, false},
		{12, "ff02::1", true, true},
		{13, "fe80::1", false, false},
		{14, "::ffff:10.0.0.1", true, false},
		{15, "2001:2::1", false, false},
		{16, "126.255.255.255", false, false},
		{17, "128.0.0.1", false, false},
		{18, "0.1.2.3", true, false},
		{19, "::ffff:ffff", true, false},
		{20, "::1:0:0", false, false},
		{21, "::fffe:10.0.0.1", false, false},
		{22, "::fffe:ffff:ffff", false, false},
		{23, "::1:ffff:0:0", false, false},
		{24, "64:ff9b::10.0.0.1", false, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct addr a;

		assert_int_equal(addr_parse(cases[i].address, &a), 0);
		if (addr_is_martian(&a) != cases[i].martian ||
		    addr_is_multicast(&a) != cases[i].multicast)
			fail_msg("case %d: %s", cases[i].number, cases[i].address);
	}
	assert_true(addr_is_martian(&(struct addr){0}));
}

static void
numbers(void **state)
{
	static const struct {
		int number;
		const char *in;
		int rc;
		uint64_t out;
	} cases[] = {
		{1, "0", 0, 0},
		{2, "10", 0, 10},
		{3, "0x10", 0, 16},
		{4, "0x00001000", 0, 4096},
		{5, "0xFFFFffff", 0, UINT32_MAX},
		{6, "18446744073709551615", 0, UINT64_MAX},
		{7, "0xffffffffffffffff", 0, UINT64_MAX},
		{8, "18446744073709551616", -ERANGE, 0},
		{9, "0x10000000000000000", -ERANGE, 0},
		{10, "99999999999999999999999999999999", -ERANGE, 0},
		{11, "99999999999999999999999999999999x", -EINVAL, 0},
		{12, "010", -EINVAL, 0},
		{13, "00", -EINVAL, 0},
		{14, "0X10", -EINVAL, 0},
		{15, "0x", -EINVAL, 0},
		{16, "", -EINVAL, 0},
		{17, "-1", -EINVAL, 0},
		{18, "+1", -EINVAL, 0},
		{19, "1e3", -EINVAL, 0},
		{20, "1_000", -EINVAL, 0},
		{21, "1.0", -EINVAL, 0},
		{22, " 1", -EINVAL, 0},
		{23, "1 ", -EINVAL, 0},
		{24, "0b1", -EINVAL, 0},
		{25, "0o7", -EINVAL, 0},
		{26, "1a", -EINVAL, 0},
		{27, "0xg", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t n = 0;
		int rc = text_u64(cases[i].in, &n);

		if (rc != cases[i].rc || (rc == 0 && n != cases[i].out))
			fail_msg("case %d: %s gave %d", cases[i].number, cases[i].in, rc);
	}
}

static void
distances(void **state)
{
	char longer[65];

	(void)state;
	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("remote", "remote"), 0);
	assert_int_equal(text_distance("remot", "remote"), 1);
	assert_int_equal(text_distance("remotee", "remote"), 1);
	assert_int_equal(text_distance("remuto", "remote"), 2);
	assert_int_equal(text_distance("tpc", "tcp"), 1);
	assert_int_equal(text_distance("abc", ""), 3);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[64] = '\0';
	assert_int_equal(text_distance(longer, "a"), UINT32_MAX);
	longer[63] = '\0';
	assert_int_equal(text_distance(longer, longer), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_forms), cmocka_unit_test(address_unused_bytes_are_zero),
		cmocka_unit_test(prefix_forms),  cmocka_unit_test(prefix_membership),
		cmocka_unit_test(range_forms),   cmocka_unit_test(range_split_covers_exactly),
		cmocka_unit_test(range_overlap), cmocka_unit_test(mac_forms),
		cmocka_unit_test(martians),      cmocka_unit_test(numbers),
		cmocka_unit_test(distances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
