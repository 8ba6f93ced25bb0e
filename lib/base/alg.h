/* SPDX-License-Identifier: BSD-3-Clause */
// The ESP algorithms by their names in the configuration and their sizes on
// the wire. One table for the parser, the checker, the man page, the MTU
// arithmetic and the session builder.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alg_kind {
	ALG_AEAD,   // cipher and integrity in one (combined mode)
	ALG_CIPHER, // encryption alone, wants an ALG_AUTH beside it
	ALG_AUTH,   // integrity alone
};

enum alg_id {
	ALG_NONE,
	ALG_AES_GCM_16, // RFC 4106, ICV 16 bytes
	ALG_AES_GCM_12,
	ALG_AES_GCM_8,
	ALG_CHACHA20_POLY1305, // RFC 7634
	ALG_AES_CBC,           // RFC 3602
	ALG_AES_CTR,           // RFC 3686
	ALG_NULL,              // RFC 2410
	ALG_HMAC_SHA1_96,      // RFC 2404
	ALG_HMAC_SHA256_128,   // RFC 4868
	ALG_HMAC_SHA384_192,   // RFC 4868
	ALG_HMAC_SHA512_256,   // RFC 4868
	ALG_COUNT,
};

struct alg {
	const char *name;     // as written in the configuration: "aes-gcm-16"
	enum alg_kind kind;   //
	uint8_t key_lens[3];  // allowed key lengths in bytes without salt, 0-terminated
	uint8_t salt_len;     // bytes of salt (nonce) that follow the key in `key`
	uint8_t iv_len;       // bytes of IV on the wire
	uint8_t align;        // payload + trailer are padded to a multiple of this
	uint8_t icv_len;      // bytes of ICV on the wire
	bool counter;         // a repeated (key, nonce) pair is a catastrophe
	const char *rfc;      // where it is defined: "RFC 4106"
};

/** The row of an algorithm; alg_get(ALG_NONE) has all sizes zero. */
const struct alg *alg_get(enum alg_id id);

/** Find an algorithm by its name. @return ALG_NONE when there is none. */
enum alg_id alg_find(const char *name);

/**
 * Length of the whole ESP packet, outer IP header included.
 *
 * @param cipher   AEAD or cipher
 * @param auth     integrity algorithm, ALG_NONE with an AEAD
 * @param family   of the outer header: 4 or 6
 * @param natt     UDP encapsulation (RFC 3948): 8 bytes more
 * @param inner    length of the inner packet in bytes (tunnel mode)
 * @return length in bytes (RFC 4303 section 2.4: padded to 4 or the block)
 */
uint32_t alg_sealed_len(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
			uint32_t inner);

/**
 * Largest inner packet whose sealed form still fits an MTU (tunnel mode).
 * @return length in bytes, 0 when nothing fits
 */
uint32_t alg_inner_mtu(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
		       uint32_t mtu);

/**
 * Length of a packet that was sealed in transport mode (RFC 4303 section 3.1.1).
 *
 * @param family   of the packet: 4 or 6
 * @param ext_len  bytes between its fixed IP header and ESP: IPv4 options, or the
 *                 IPv6 extension headers that stay in clear
 * @param len      of the original packet, with all its headers; at least those
 */
uint32_t alg_transport_len(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
			   uint32_t ext_len, uint32_t len);

/**
 * Largest original packet whose sealed form still fits an MTU (transport mode).
 * @return length in bytes with all its headers, 0 when nothing fits
 */
uint32_t alg_transport_payload(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
			       uint32_t ext_len, uint32_t mtu);
