/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Addresses as numbers, for the arithmetic of ranges.
__extension__ typedef unsigned __int128 u128;

static u128
addr_number(const struct addr *a)
{
	u128 n = 0;

	for (size_t i = 0; i < addr_size(a->family); i++)
		n = n << 8 | a->b[i];
	return n;
}

static struct addr
number_addr(u128 n, uint8_t family)
{
	struct addr a = {.family = family};

	for (size_t i = addr_size(family); i-- > 0; n >>= 8)
		a.b[i] = (uint8_t)n;
	return a;
}

// All bits that may differ inside a prefix of this length.
static u128
host_mask(uint8_t family, uint8_t len)
{
	unsigned int bits = (unsigned int)addr_size(family) * 8;

	if (len >= bits)
		return 0;
	// Two shifts, because a shift by the full width is undefined.
	return ((((u128)1 << (bits - len - 1)) - 1) << 1) | 1;
}

int
addr_parse(const char *text, struct addr *out)
{
	struct addr a = {0};

	if (inet_pton(AF_INET, text, a.b) == 1) {
		a.family = 4;
	} else {
		memset(a.b, 0, sizeof(a.b));
		if (inet_pton(AF_INET6, text, a.b) != 1)
			return -EINVAL;
		a.family = 6;
	}
	*out = a;
	return 0;
}

// Parse the first n characters of text as an address.
static int
addr_parse_n(const char *text, size_t n, struct addr *out)
{
	char buf[ADDR_STRLEN];

	if (n >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, n);
	buf[n] = '\0';
	return addr_parse(buf, out);
}

int
prefix_parse(const char *text, struct prefix *out)
{
	const char *slash = strchr(text, '/');
	struct prefix p;
	unsigned int len = 0;

	if (slash == NULL || addr_parse_n(text, (size_t)(slash - text), &p.addr) < 0)
		return -EINVAL;
	const char *digit = slash + 1;
	if (*digit == '\0' || (*digit == '0' && digit[1] != '\0'))
		return -EINVAL;
	for (; *digit != '\0'; digit++) {
		if (*digit < '0' || *digit > '9')
			return -EINVAL;
		if (len <= 128)
			len = len * 10 + (unsigned int)(*digit - '0');
	}
	if (len > addr_size(p.addr.family) * 8)
		return -ERANGE;
	p.len = (uint8_t)len;
	*out = p;
	return 0;
}

int
range_parse(const char *text, struct range *out)
{
	const char *dash = strchr(text, '-');
	struct range r;

	if (strchr(text, '/') != NULL) {
		struct prefix p;
		int rc = prefix_parse(text, &p);

		if (rc < 0)
			return rc;
		if (prefix_has_host_bits(&p))
			return -EDOM;
		*out = prefix_range(&p);
		return 0;
	}
	if (dash == NULL) {
		if (addr_parse(text, &r.first) < 0)
			return -EINVAL;
		r.last = r.first;
	} else {
		if (addr_parse_n(text, (size_t)(dash - text), &r.first) < 0 ||
		    addr_parse(dash + 1, &r.last) < 0)
			return -EINVAL;
		if (r.first.family != r.last.family || addr_cmp(&r.last, &r.first) < 0)
			return -ERANGE;
	}
	*out = r;
	return 0;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
mac_parse(const char *text, struct mac *out)
{
	struct mac m;

	for (int i = 0; i < 6; i++, text += 3) {
		int high = hex_value(text[0]);
		int low = high < 0 ? -1 : hex_value(text[1]);

		if (low < 0 || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		m.b[i] = (uint8_t)(high << 4 | low);
	}
	*out = m;
	return 0;
}

const char *
addr_format(const struct addr *a, char buf[static ADDR_STRLEN])
{
	if (a->family == 0)
		return strcpy(buf, "none");
	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->b, buf, ADDR_STRLEN);
	return buf;
}

const char *
prefix_format(const struct prefix *p, char buf[static ADDR_STRLEN])
{
	addr_format(&p->addr, buf);
	size_t n = strlen(buf);
	snprintf(buf + n, ADDR_STRLEN - n, "/%u", p->len);
	return buf;
}

const char *
range_format(const struct range *r, char buf[static RANGE_STRLEN])
{
	struct prefix p;

	if (range_split(r, &p, 1) == 1)
		return prefix_format(&p, buf);
	addr_format(&r->first, buf);
	size_t n = strlen(buf);
	buf[n] = '-';
	addr_format(&r->last, buf + n + 1);
	return buf;
}

const char *
mac_format(const struct mac *m, char buf[static MAC_STRLEN])
{
	snprintf(buf, MAC_STRLEN, "%02x:%02x:%02x:%02x:%02x:%02x", m->b[0], m->b[1], m->b[2],
		 m->b[3], m->b[4], m->b[5]);
	return buf;
}

int
addr_cmp(const struct addr *a, const struct addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return a->family == 0 ? 0 : memcmp(a->b, b->b, addr_size(a->family));
}

bool
prefix_has_host_bits(const struct prefix *p)
{
	return (addr_number(&p->addr) & host_mask(p->addr.family, p->len)) != 0;
}

struct prefix
prefix_network(const struct prefix *p)
{
	struct prefix net = {.len = p->len};

	net.addr = number_addr(addr_number(&p->addr) & ~host_mask(p->addr.family, p->len),
			       p->addr.family);
	return net;
}

bool
prefix_contains(const struct prefix *p, const struct addr *a)
{
	size_t whole = p->len / 8, rest = p->len % 8;

	if (p->addr.family != a->family || a->family == 0)
		return false;
	if (memcmp(p->addr.b, a->b, whole) != 0)
		return false;
	return rest == 0 || ((p->addr.b[whole] ^ a->b[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

struct range
prefix_range(const struct prefix *p)
{
	u128 mask = host_mask(p->addr.family, p->len), n = addr_number(&p->addr);
	struct range r = {
		.first = number_addr(n & ~mask, p->addr.family),
		.last = number_addr(n | mask, p->addr.family),
	};

	return r;
}

bool
range_contains(const struct range *r, const struct addr *a)
{
	return r->first.family == a->family && a->family != 0 && addr_cmp(&r->first, a) <= 0 &&
	       addr_cmp(a, &r->last) <= 0;
}

bool
range_overlaps(const struct range *a, const struct range *b)
{
	return a->first.family == b->first.family && a->first.family != 0 &&
	       addr_cmp(&a->first, &b->last) <= 0 && addr_cmp(&b->first, &a->last) <= 0;
}

int
range_split(const struct range *r, struct prefix *out, int max)
{
	uint8_t family = r->first.family;
	unsigned int bits = (unsigned int)addr_size(family) * 8;
	u128 first = addr_number(&r->first), last = addr_number(&r->last);
	int n = 0;

	for (;;) {
		// The largest block that starts at first and does not pass last.
		unsigned int len = bits;

		while (len > 0) {
			u128 mask = host_mask(family, (uint8_t)(len - 1));

			if ((first & mask) != 0 || (first | mask) > last)
				break;
			len--;
		}
		if (n == max)
			return -ENOSPC;
		out[n].addr = number_addr(first, family);
		out[n++].len = (uint8_t)len;
		first |= host_mask(family, (uint8_t)len);
		if (first >= last)
			return n;
		first++;
	}
}

bool
addr_is_multicast(const struct addr *a)
{
	return a->family == 4 ? (a->b[0] & 0xf0) == 0xe0 : a->family == 6 && a->b[0] == 0xff;
}

bool
addr_is_martian(const struct addr *a)
{
	if (a->family == 4)
		return a->b[0] == 0 || a->b[0] == 127 || a->b[0] >= 224;
	if (a->family != 6)
		return true;
	return a->b[0] == 0xff || addr6_is_martian(a->b);
}
