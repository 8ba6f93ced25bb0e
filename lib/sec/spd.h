/* SPDX-License-Identifier: BSD-3-Clause */
// The security policy database (RFC 4301 section 4.4.1): first match by rank,
// for each direction and family (rules.h).
#pragma once

#include "config.h"
#include "err.h"

#include <stdbool.h>
#include <stdint.h>

struct spd;
struct tunnel;

// What the path needs of a policy.
struct spd_entry {
	enum cfg_action action;      //
	const struct tunnel *tunnel; // protect: by whose SAs
	uint32_t index;              // into the configuration's policies
};

// The selectors of one packet, all in network byte order.
struct spd_key {
	uint8_t proto;
	uint8_t zero[3];
	uint8_t addrs[32]; // src then dst: 4 + 4 bytes or 16 + 16
	uint16_t sport_be; // behind the 32 in both families
	uint16_t dport_be;
} __attribute__((aligned(4)));

#define SPD_BURST 64

/**
 * Build it.
 *
 * @param policies  sorted by rank
 * @param tunnels   tunnels[i] belongs to policies[i], NULL unless protect
 * @return NULL with err filled
 */
struct spd *spd_create(const struct cfg_policy *policies, const struct tunnel *const *tunnels,
		       uint32_t n, struct err *err);
void spd_free(struct spd *spd);

/** true when there is any policy of this direction and family. */
bool spd_has(const struct spd *spd, enum cfg_dir dir, uint8_t family);

/**
 * true when a later fragment of this family can not be judged: some policy selects
 * by port, or in IPv6 by protocol, which only the first fragment tells for sure
 * (RFC 8200 section 4.5).
 */
bool spd_needs_whole(const struct spd *spd, uint8_t family);

/**
 * Match a burst.
 *
 * @param keys  n ≤ SPD_BURST keys of this family
 * @param out   n entries, NULL where nothing matches
 */
void spd_match(const struct spd *spd, enum cfg_dir dir, uint8_t family,
	       const struct spd_key *const *keys, const struct spd_entry **out, uint32_t n);
