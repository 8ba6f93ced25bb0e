/* SPDX-License-Identifier: BSD-3-Clause */
// Intel ipsec-mb called directly, without a crypto device in between: AES-GCM in one
// shot a packet, everything else as jobs that fill the lanes of a burst. A key is
// expanded once for an SA, and a manager belongs to one worker.
#pragma once

#include "alg.h"
#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mb_manager;
struct mb_key;

#define MB_BURST 64   // packets at once, at most
#define MB_TAG_MAX 32 // bytes of the longest ICV

// One packet to be sealed or opened in place. The ICV covers `hash_len` bytes from
// `esp` on (or, with an AEAD, aad and the ciphertext).
struct mb_work {
	const struct mb_key *key;
	uint8_t *esp;         // ESP header, where the ICV begins to count
	uint8_t *tag;         // where the ICV that is computed goes
	uint16_t cipher_off;  // bytes from esp to what is to be ciphered
	uint16_t cipher_len;  // bytes
	uint16_t hash_len;    // bytes
	uint8_t aad_len;      // bytes
	bool done;            // used by mb_run()
	uint8_t iv[16] __attribute__((aligned(16))); // nonce or IV as the algorithm wants it
	uint8_t aad[16];      //
	uint8_t computed[MB_TAG_MAX]; // room for `tag` on arrival
	bool failed;          // set by mb_run(): an error in the library, no packet causes one
} __attribute__((aligned(64)));

// The IV is written in one aligned store; it and what is read with it share a cache line.
_Static_assert(offsetof(struct mb_work, computed) == 64, "key to aad fill a cache line");

// What a key is made of; keys as bytes, without the salt.
struct mb_key_prm {
	enum alg_id cipher;
	enum alg_id auth;
	bool decrypt;
	const uint8_t *key;
	uint32_t key_len;
	const uint8_t *auth_key;
	uint32_t auth_key_len;
};

/**
 * A manager for one worker. It uses the widest vectors of the processor that EAL's
 * --force-max-simd-bitwidth allows: 256 AVX2, 128 SSE, 64 SSE and no SHA extensions;
 * next to AVX-512 the SHA extensions hash HMAC-SHA-256, where the processor has them.
 * @return NULL with err filled (EXIT_MACHINE: no AES-NI)
 */
struct mb_manager *mb_manager_create(struct err *err);
void mb_manager_free(struct mb_manager *mgr);
/** "AVX512", "AVX2", "SSE" … */
const char *mb_manager_isa(const struct mb_manager *mgr);

/** Expand a key. @return NULL when there is no memory */
struct mb_key *mb_key_create(struct mb_manager *mgr, const struct mb_key_prm *prm);
/** Wipe and free. NULL is allowed. */
void mb_key_free(struct mb_key *key);

/**
 * Do the crypto of a burst, in place, any mix of keys. When it returns nothing is in
 * flight: a lone packet does not wait for company.
 * @param n  up to MB_BURST
 */
void mb_run(struct mb_manager *mgr, struct mb_work *works, uint16_t n);

/** Compare ICVs in constant time. @param len 8, 12, 16, 24 or 32 */
static inline bool
mb_tag_equal(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint64_t x, y, diff = 0;
	uint32_t i, u, v;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		diff |= x ^ y;
	}
	if (i < len) {
		memcpy(&u, a + i, 4);
		memcpy(&v, b + i, 4);
		diff |= u ^ v;
	}
	return diff == 0;
}
