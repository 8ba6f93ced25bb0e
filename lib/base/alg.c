/* SPDX-License-Identifier: BSD-3-Clause */
#include "alg.h"

#include <string.h>

#define ESP_HEADER 8  // SPI and sequence number, RFC 4303 section 2
#define ESP_TRAILER 2 // pad length and next header
#define UDP_HEADER 8  // RFC 3948 section 2.1

// clang-format off
static const struct alg algs[ALG_COUNT] = {
	//                        name                 kind        key lengths   salt iv al icv counter
	[ALG_NONE]             = {"none",              ALG_AUTH,   {0, 0, 0},    0,   0, 0, 0,  false, ""},
	[ALG_AES_GCM_16]       = {"aes-gcm-16",        ALG_AEAD,   {16, 24, 32}, 4,   8, 4, 16, true,  "RFC 4106"},
	[ALG_AES_GCM_12]       = {"aes-gcm-12",        ALG_AEAD,   {16, 24, 32}, 4,   8, 4, 12, true,  "RFC 4106"},
	[ALG_AES_GCM_8]        = {"aes-gcm-8",         ALG_AEAD,   {16, 24, 32}, 4,   8, 4, 8,  true,  "RFC 4106"},
	[ALG_CHACHA20_POLY1305] = {"chacha20-poly1305", ALG_AEAD,  {32, 0, 0},   4,   8, 4, 16, true,  "RFC 7634"},
	[ALG_AES_CBC]          = {"aes-cbc",           ALG_CIPHER, {16, 24, 32}, 0,  16, 16, 0, false, "RFC 3602"},
	[ALG_AES_CTR]          = {"aes-ctr",           ALG_CIPHER, {16, 24, 32}, 4,   8, 4, 0,  true,  "RFC 3686"},
	[ALG_NULL]             = {"null",              ALG_CIPHER, {0, 0, 0},    0,   0, 4, 0,  false, "RFC 2410"},
	[ALG_HMAC_SHA1_96]     = {"hmac-sha1-96",      ALG_AUTH,   {20, 0, 0},   0,   0, 0, 12, false, "RFC 2404"},
	[ALG_HMAC_SHA256_128]  = {"hmac-sha256-128",   ALG_AUTH,   {32, 0, 0},   0,   0, 0, 16, false, "RFC 4868"},
	[ALG_HMAC_SHA384_192]  = {"hmac-sha384-192",   ALG_AUTH,   {48, 0, 0},   0,   0, 0, 24, false, "RFC 4868"},
	[ALG_HMAC_SHA512_256]  = {"hmac-sha512-256",   ALG_AUTH,   {64, 0, 0},   0,   0, 0, 32, false, "RFC 4868"},
};
// clang-format on

const struct alg *
alg_get(enum alg_id id)
{
	return (unsigned int)id < ALG_COUNT ? &algs[id] : &algs[ALG_NONE];
}

enum alg_id
alg_find(const char *name)
{
	for (int id = ALG_NONE + 1; id < ALG_COUNT; id++)
		if (strcmp(algs[id].name, name) == 0)
			return (enum alg_id)id;
	return ALG_NONE;
}

// Bytes that do not depend on the inner packet: headers, IV and ICV.
static uint32_t
fixed_len(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt)
{
	const struct alg *c = alg_get(cipher), *a = alg_get(auth);

	return (family == 4 ? 20 : 40) + (natt ? UDP_HEADER : 0) + ESP_HEADER + c->iv_len +
	       c->icv_len + a->icv_len;
}

static uint32_t
pad_unit(enum alg_id cipher)
{
	uint32_t align = alg_get(cipher)->align;

	return align > 4 ? align : 4;
}

uint32_t
alg_sealed_len(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt, uint32_t inner)
{
	uint32_t unit = pad_unit(cipher);

	return fixed_len(cipher, auth, family, natt) +
	       (inner + ESP_TRAILER + unit - 1) / unit * unit;
}

uint32_t
alg_inner_mtu(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt, uint32_t mtu)
{
	uint32_t fixed = fixed_len(cipher, auth, family, natt), unit = pad_unit(cipher);

	if (mtu < fixed + unit)
		return 0;
	return (mtu - fixed) / unit * unit - ESP_TRAILER;
}

uint32_t
alg_transport_len(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
		  uint32_t ext_len, uint32_t len)
{
	uint32_t headers = (family == 4 ? 20 : 40) + ext_len;

	// The headers stay in front; only what is behind them is sealed.
	return alg_sealed_len(cipher, auth, family, natt, len - headers) + ext_len;
}

uint32_t
alg_transport_payload(enum alg_id cipher, enum alg_id auth, uint8_t family, bool natt,
		      uint32_t ext_len, uint32_t mtu)
{
	uint32_t headers = (family == 4 ? 20 : 40) + ext_len, payload;

	if (mtu < ext_len)
		return 0;
	payload = alg_inner_mtu(cipher, auth, family, natt, mtu - ext_len);
	return payload == 0 ? 0 : headers + payload;
}
