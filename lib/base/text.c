/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <errno.h>
#include <string.h>

static int
digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

int
text_u64(const char *text, uint64_t *out)
{
	int base = 10, rc = 0;
	uint64_t n = 0;

	if (text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
	} else if (text[0] == '0' && text[1] != '\0') {
		return -EINVAL;
	}
	if (*text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		int digit = digit_value(*text);

		if (digit >= base)
			return -EINVAL;
		// Go on after an overflow: what follows may be no digit at all.
		if (__builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit, &n))
			rc = -ERANGE;
	}
	if (rc == 0)
		*out = n;
	return rc;
}

uint32_t
text_distance(const char *a, const char *b)
{
	uint32_t d[3][64]; // the last three rows of the table, used in turn
	size_t la = strlen(a), lb = strlen(b);

	if (la > 63 || lb > 63)
		return UINT32_MAX;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (uint32_t)j;
	for (size_t i = 1; i <= la; i++) {
		uint32_t *row = d[i % 3], *up = d[(i - 1) % 3], *up2 = d[(i + 1) % 3];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= lb; j++) {
			uint32_t best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    up2[j - 2] + 1 < best)
				best = up2[j - 2] + 1;
			row[j] = best;
		}
	}
	return d[la % 3][lb];
}
