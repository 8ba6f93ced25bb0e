/* SPDX-License-Identifier: BSD-3-Clause */
// The inbound SAs by SPI and destination: a hash table of our own a family, as that of
// librte_ipsec takes four times as long and knows prefixes of keys that nobody asks for.
#pragma once

#include "err.h"

#include <stdint.h>

struct sa;
struct sad;

// What is looked up, in the byte order of the packet.
struct sad_key {
	uint32_t spi_be;
	const uint8_t *dst; // 4 or 16 bytes
};

#define SAD_BURST 64

/** @param n_sas  room for this many @return NULL with err filled */
struct sad *sad_create(uint32_t n_sas, struct err *err);
void sad_free(struct sad *sad);

/** Add an inbound SA. @return 0 or -errno, with err filled */
int sad_add(struct sad *sad, struct sa *sa, struct err *err);

/**
 * Look up a burst of one family.
 *
 * @param family  4 or 6
 * @param keys    n keys, n ≤ SAD_BURST
 * @param out     n SAs, NULL where there is none
 */
void sad_find(const struct sad *sad, uint8_t family, const struct sad_key *keys, struct sa **out,
	      uint32_t n);
