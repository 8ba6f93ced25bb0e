/* SPDX-License-Identifier: BSD-3-Clause */
// Proves the wire ceilings against the lab's published figures, and by arithmetic that is
// written out here.
#include "ceiling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GCM ALG_AES_GCM_16, ALG_NONE
#define CBC1 ALG_AES_CBC, ALG_HMAC_SHA1_96
#define CBC2 ALG_AES_CBC, ALG_HMAC_SHA256_128
#define NUL ALG_NULL, ALG_NONE
#define CLEAR ALG_NONE, ALG_NONE

struct row {
	enum alg_id cipher, auth;
	uint8_t family;
	bool natt;
	double mbps;
};

// 542-byte frames on 1 GbE, Mb/s of the clear frame: the lab's table.
static const struct row lab[] = {
	{CLEAR, 4, false, 957.6},
	{GCM, 4, false, 871.4},
	{ALG_CHACHA20_POLY1305, ALG_NONE, 4, false, 871.4},
	{CBC1, 4, false, 849.5},
	{CBC2, 4, false, 844.2},
	{NUL, 4, false, 906.4},
	{GCM, 6, false, 844.2},
	{CBC1, 6, false, 823.7},
	{CBC2, 6, false, 818.7},
	{NUL, 6, false, 877.0},
	{GCM, 4, true, 860.3},
	{CBC1, 4, true, 839.0},
	{CBC2, 4, true, 833.8},
	{NUL, 4, true, 894.4},
};

static void
lab_table(void **state)
{
	for (size_t i = 0; i < sizeof(lab) / sizeof(lab[0]); i++) {
		const struct row *r = &lab[i];
		struct encap e = {.cipher = r->cipher,
				  .auth = r->auth,
				  .family = r->family,
				  .natt = r->natt};
		uint32_t l3 = 528;
		double mbps = ceiling_bps(&e, 1e9, &l3, NULL, 1) / 1e6;

		if (fabs(mbps - r->mbps) > 0.051)
			fail_msg("row %zu: %.2f, the lab says %.1f", i, mbps, r->mbps);
		assert_true(fabs(ceiling_bps(&e, 1e10, &l3, NULL, 1) -
				 10 * ceiling_bps(&e, 1e9, &l3, NULL, 1)) < 1);
	}
}

static void
small_and_mixed(void **state)
{
	struct encap clear = {0}, gcm = {.cipher = ALG_AES_GCM_16, .family = 4},
		     tagged = {.vlan_tags = 1};
	const uint32_t imix[] = {46, 552, 1500}, weights[] = {7, 4, 1};
	uint32_t l3 = 46, tiny = 28;

	// 64 B with FCS: 84 on the wire, 1488.1 kpps; sealed 46 + 20 + 8 + 8 + 2 + 16 = 100 of IP,
	// 138 on the wire: 905.8.
	assert_true(fabs(ceiling_pps(&clear, 1e9, &l3, NULL, 1) - 1e9 / 8 / 84) < 0.01);
	assert_int_equal(encap_l3(&gcm, 46), 100);
	assert_true(fabs(ceiling_pps(&gcm, 1e9, &l3, NULL, 1) - 1e9 / 8 / 138) < 0.01);
	// Shorter than the smallest frame costs as much as that; a tag fills it up first.
	assert_int_equal(encap_wire(&clear, tiny), 84);
	assert_int_equal(encap_wire(&tagged, tiny), 84);
	assert_int_equal(encap_wire(&tagged, 46), 88);
	// IMIX: 292 kpps, 816 Mb/s.
	assert_int_equal(lround(ceiling_pps(&gcm, 1e9, imix, weights, 3) / 1000), 292);
	assert_int_equal(lround(ceiling_bps(&gcm, 1e9, imix, weights, 3) / 1e6), 816);
}

static void
inner_sizes(void **state)
{
	static const struct {
		enum alg_id cipher, auth;
		uint8_t family;
		bool natt;
		uint32_t inner;
	} rows[] = {
		{GCM, 4, false, 1446},   {GCM, 6, false, 1426},  {GCM, 4, true, 1438},
		{CBC1, 4, false, 1438},  {CBC2, 4, false, 1438}, {CBC2, 6, false, 1406},
		{CLEAR, 4, false, 1500},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct encap e = {.cipher = rows[i].cipher,
				  .auth = rows[i].auth,
				  .family = rows[i].family,
				  .natt = rows[i].natt};

		assert_int_equal(ceiling_inner(&e, 1500), rows[i].inner);
	}
}

// The tables fit 80 columns and hold the lab's bold figures.
static void
printed(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	ceiling_print(1e9, f);
	fclose(f);
	for (const char *p = text; *p != '\0'; p = strchr(p, '\n') + 1)
		assert_true(strcspn(p, "\n") <= 84);
	for (const char *const *want =
		     (const char *[]){"871.4", "849.5", "844.2", "906.4", "1398", "1366", NULL};
	     *want != NULL; want++)
		assert_non_null(strstr(text, *want));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_table),
		cmocka_unit_test(small_and_mixed),
		cmocka_unit_test(inner_sizes),
		cmocka_unit_test(printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
