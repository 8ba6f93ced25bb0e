/* SPDX-License-Identifier: BSD-3-Clause */
// Internet checksums in software (RFC 1071), for what no device does for us.
//
// All loads and stores go through memcpy: data may stand at odd addresses, and
// a compiler that assumes strict aliasing must not reorder the stores of a header
// struct behind the loads of its sum (GCC at -O3 once did).
//
// A checksum is a uint16_t as it stands in the packet: it is neither swapped on
// the way in nor out, because the one's complement sum does not care about the
// byte order (RFC 1071 section 2 (B)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * Add data to a running sum, which no packet can overflow. Only the last piece
 * of a message may have an odd length.
 */
static inline uint64_t
cksum_add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 4; p += 4, len -= 4) {
		uint32_t v;
		memcpy(&v, p, sizeof(v));
		sum += v;
	}
	if (len >= 2) {
		uint16_t v;
		memcpy(&v, p, sizeof(v));
		sum += v;
		p += 2;
		len -= 2;
	}
	if (len == 1) {
		uint16_t v = 0; // RFC 1071: padded with a zero byte behind it
		memcpy(&v, p, 1);
		sum += v;
	}
	return sum;
}

/** The running sum folded to 16 bits, not complemented. */
static inline uint16_t
cksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/**
 * Checksum of plain data: an IPv4 header, an ICMPv4 message.
 * @return what to write into a field that was zero; 0 when the field was in the
 *         data already and is right
 */
static inline uint16_t
cksum_data(const void *data, size_t len)
{
	return (uint16_t)~cksum_fold(cksum_add(0, data, len));
}

/** Write the checksum of an IPv4 header with its options (len bytes). */
static inline void
cksum_ip4_set(void *hdr, size_t len)
{
	uint16_t sum = 0;

	memcpy((uint8_t *)hdr + 10, &sum, sizeof(sum));
	sum = cksum_data(hdr, len);
	memcpy((uint8_t *)hdr + 10, &sum, sizeof(sum));
}

/** true when the checksum of an IPv4 header of len bytes is right. */
static inline bool
cksum_ip4_ok(const void *hdr, size_t len)
{
	return cksum_data(hdr, len) == 0;
}

/**
 * Running sum of the pseudo header: RFC 9293 section 3.1, RFC 8200 section 8.1.
 * @param src,dst  4 or 16 bytes in network order
 * @param len      of the upper layer header and data
 */
static inline uint64_t
cksum_pseudo(uint8_t family, const void *src, const void *dst, uint8_t proto, uint32_t len)
{
	// The 32-bit forms of length and protocol sum up like the 16-bit ones.
	const uint8_t tail[8] = { (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
				  (uint8_t)len, 0, 0, 0, proto };
	size_t size = family == 4 ? 4 : 16;
	uint64_t sum = cksum_add(0, src, size);

	sum = cksum_add(sum, dst, size);
	return cksum_add(sum, tail, sizeof(tail));
}

/**
 * Checksum of a TCP, UDP or ICMPv6 message with its pseudo header.
 * @return what to write into a field that was zero; 0 when the field was in the
 *         data already and is right. For UDP see cksum_udp().
 */
static inline uint16_t
cksum_l4(uint8_t family, const void *src, const void *dst, uint8_t proto, const void *l4,
	 uint32_t len)
{
	uint64_t sum = cksum_pseudo(family, src, dst, proto, len);

	return (uint16_t)~cksum_fold(cksum_add(sum, l4, len));
}

/** The same for a UDP field that was zero: 0 goes out as 0xffff (RFC 768). */
static inline uint16_t
cksum_udp(uint8_t family, const void *src, const void *dst, const void *l4, uint32_t len)
{
	uint16_t sum = cksum_l4(family, src, dst, 17, l4, len);

	return sum == 0 ? 0xffff : sum;
}

/**
 * A checksum after one 16-bit word of its data changed (RFC 1624 equation 3).
 * All three as they stand in the packet. A word at an odd offset from the start
 * of the data counts with its two bytes swapped: swap both words.
 */
static inline uint16_t
cksum_update16(uint16_t sum, uint16_t was, uint16_t is)
{
	uint64_t s = (uint64_t)(uint16_t)~sum + (uint16_t)~was + is;

	return (uint16_t)~cksum_fold(s);
}
