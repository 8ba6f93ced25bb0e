/* SPDX-License-Identifier: BSD-3-Clause */
// The state file: which sequence numbers of the outbound SAs may have been used,
// so that no (key, nonce) pair is ever used twice, kill -9 included.
//
// The file always says more than was used: numbers are reserved in it, on disk,
// before a worker may use them, and a new start goes on above the reservation.
// For every SA it also keeps the 64-bit value that is XORed to the sequence
// number to make the IV. It is drawn once, when the SA first appears, and must
// not change while the key lives: (s ^ r) is unique for one r, not across two.
// It is no secret; it keeps two SAs of one key apart, and protects a user who
// has lost the file.
#pragma once

#include "addr.h"
#include "err.h"

#include <stdint.h>

struct state; // one open, locked state file

struct state_sa {
	uint32_t spi;         // host byte order
	struct addr dst;      //
	char fingerprint[17]; // of the key: another key is another SA
	uint64_t reserved;    // numbers up to and including this one may have been used
	uint64_t iv_xor;      //
};

/**
 * Open, lock (against a second sgw) and read a state file; create it (0600)
 * with its directory's last component when it does not exist.
 *
 * A file that can not be read in full is refused: going on would repeat nonces.
 * Kinds: EXIT_MACHINE (locked, damaged, others can write), EXIT_RESOURCE (I/O).
 * @return 0 or -errno, with err filled
 */
int state_open(const char *path, struct state **out, struct err *err);

/**
 * The record of an SA, made when there is none: reserved = 0, iv_xor random.
 * A record with the same spi and dst but another fingerprint is replaced.
 * The pointer stays valid until state_close().
 * @return NULL when memory or randomness failed, with err filled
 */
struct state_sa *state_get(struct state *s, uint32_t spi, const struct addr *dst,
			   const char *fingerprint, struct err *err);

/**
 * Write all records to disk: temporary file, fsync, rename, fsync of the
 * directory. Only when this returned 0 may reserved numbers be used.
 * Records that nobody asked for with state_get() since state_open() are kept.
 * @return 0 or -errno, with err filled
 */
int state_write(struct state *s, struct err *err);

/** Unlock and free. Does not write. */
void state_close(struct state *s);
