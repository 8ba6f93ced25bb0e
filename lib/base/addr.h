/* SPDX-License-Identifier: BSD-3-Clause */
// IP addresses, prefixes, ranges and MAC addresses as values of both families.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// An IPv4 or IPv6 address in network byte order.
struct addr {
	uint8_t family; // 4, 6, or 0 for "none"
	uint8_t b[16];  // 4 or 16 bytes used, the rest zero
};

// An address with a prefix length, host bits kept as written.
struct prefix {
	struct addr addr;
	uint8_t len; // bits, 0…32 or 0…128
};

// An inclusive range of addresses of one family; a prefix is one such range.
struct range {
	struct addr first;
	struct addr last;
};

struct mac {
	uint8_t b[6];
};

#define ADDR_STRLEN 48   // longest text of an address or prefix, with NUL
#define RANGE_STRLEN 100 // longest text of a range, with NUL
#define MAC_STRLEN 18

/** Number of address bytes of a family: 4 → 4, 6 → 16. */
static inline size_t
addr_size(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

/**
 * Parse an address of either family. Strict: what inet_pton takes, so no
 * leading zeros in IPv4, no scope, no surrounding space.
 * @return 0, or -EINVAL
 */
int addr_parse(const char *text, struct addr *out);

/** Parse "address/length". @return 0, -EINVAL (syntax) or -ERANGE (length). */
int prefix_parse(const char *text, struct prefix *out);

/**
 * Parse "address", "address/length" or "first-last" into a range.
 * @return 0, -EINVAL (syntax), -ERANGE (length, or last < first, or two
 *         families), -EDOM (bits set right of the prefix length)
 */
int range_parse(const char *text, struct range *out);

/** Parse six colon-separated hex octets. @return 0 or -EINVAL. */
int mac_parse(const char *text, struct mac *out);

/** Write the text of an address; "none" for family 0. @return buf. */
const char *addr_format(const struct addr *a, char buf[static ADDR_STRLEN]);
const char *prefix_format(const struct prefix *p, char buf[static ADDR_STRLEN]);
/** Written as a prefix where it is one, else as first-last. @return buf. */
const char *range_format(const struct range *r, char buf[static RANGE_STRLEN]);
const char *mac_format(const struct mac *m, char buf[static MAC_STRLEN]);

/** Total order: family first, then bytes. @return <0, 0, >0. */
int addr_cmp(const struct addr *a, const struct addr *b);
/** true when any bit right of the prefix length is set. */
bool prefix_has_host_bits(const struct prefix *p);
/** The prefix with its host bits cleared. */
struct prefix prefix_network(const struct prefix *p);
/** true when the address is of the prefix's family and inside it. */
bool prefix_contains(const struct prefix *p, const struct addr *a);
/** All addresses of a prefix as a range (host bits ignored). */
struct range prefix_range(const struct prefix *p);
bool range_contains(const struct range *r, const struct addr *a);
/** true when the two ranges are of one family and share an address. */
bool range_overlaps(const struct range *a, const struct range *b);

/**
 * Split a range into the smallest list of prefixes that covers it exactly.
 * @param out  filled in ascending order
 * @param max  room in out; 254 is enough for any IPv6 range, 62 for IPv4
 * @return number of prefixes, or -ENOSPC
 */
int range_split(const struct range *r, struct prefix *out, int max);

/** true for fe80::/10. p: 16 bytes in network byte order. */
static inline bool
addr6_is_link_local(const void *p)
{
	const uint8_t *a = (const uint8_t *)p;

	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

/**
 * true for ::/96, which holds the unspecified, the loopback and the IPv4-compatible
 * addresses, and for ::ffff:0:0/96, the mapped ones (RFC 4291 sections 2.5.2, 2.5.3,
 * 2.5.5): never on a wire. p: 16 bytes in network byte order.
 */
static inline bool
addr6_is_martian(const void *p)
{
	static const uint8_t zero[12], mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(p, zero, 12) == 0 || memcmp(p, mapped, 12) == 0;
}

bool addr_is_multicast(const struct addr *a);
/** 0/8, 127/8, 224/4, 240/4, ::/96, ::ffff:0:0/96, ff00::/8: never a host. */
bool addr_is_martian(const struct addr *a);
