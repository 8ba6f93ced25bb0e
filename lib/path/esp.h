/* SPDX-License-Identifier: BSD-3-Clause */
// What the ESP stages share: esp_group.c (groups and the crypto device), esp_select.c,
// esp_open.c, esp_seal.c. ESP is RFC 4303; sealing and opening go by librte_ipsec's
// prepare and process on the look-aside path, with the corrections that it needs. The
// numbers after "trap" are those of docs/librte.md.
//
// The order of work in both directions: one SA's packets in a group are prepared
// and handed to the crypto device, then the next SA's; then everything is drained
// once, so that a lone packet does not wait and CBC finds company across SAs.
#pragma once

#include "crypto.h"
#include "sa.h"
#include "stage.h"

#include <rte_crypto.h>

#define NATT_PORT 4500
#define NEXT_DUMMY 59  // IPPROTO_NONE: RFC 4303 section 2.6
#define FAMILY_DUMMY 0 // pkt.family of a dummy packet on its way out
#define L3_LEN_MAX 511 // bits of m->l3_len
#define ECN_MASK 3
#define ECN_CE 3

// What a worker has in flight on each device, within one stage call.
struct flight {
	uint16_t n[CRYPTO_DEV_MAX];
};

// The packets of one SA in a burst, in their order.
struct group {
	struct sa *sa;
	uint16_t n;
	struct rte_mbuf *pkts[BURST];
	struct rte_crypto_op *ops[BURST];
};

/**
 * Cut the next group out of pkts: all packets of the first one's SA.
 * @return the number left, compacted
 */
uint16_t group_next(struct group *g, struct rte_mbuf **pkts, uint16_t n);

/** Drop the packets of a group behind the first `from`. */
void group_drop(struct worker *w, struct group *g, uint16_t from, enum drop_reason why);

/** librte_ipsec's prepare. @return false: all of the group was dropped */
bool group_prepare(struct worker *w, struct group *g);

/** Note each packet's place in the burst, before groups are cut out of it. */
void burst_number(struct rte_mbuf **pkts, uint16_t n);

/** Put what is left of a burst back in its order: a flow may change its SA within it. */
void burst_restore(struct rte_mbuf **pkts, uint16_t n);

/** Hand a prepared group to its crypto device. */
void group_submit(const struct worker *w, struct flight *f, struct group *g);

/** Wait until the devices are through with everything. */
void flight_drain(const struct worker *w, struct flight *f);
