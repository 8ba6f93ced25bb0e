/* SPDX-License-Identifier: BSD-3-Clause */
// A security association (RFC 4301 section 4.4.2) as the packet path uses it.
// An SA outlives the tables that point to it: sequence number, window and
// counters stay with it.
#pragma once

#include "addr.h"
#include "alg.h"
#include "config.h"
#include "err.h"
#include "mb.h"
#include "replay.h"
#include "state.h"

#include <rte_ipsec.h>
#include <rte_spinlock.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tunnel;

#define SA_REASONS 80 // room for the path's drop reasons (checked there)

// Counters of one SA in one worker, written by that worker alone.
struct sa_stats {
	uint64_t packets;           // sealed, or opened and found good
	uint64_t bytes;             // of inner packets
	uint64_t ended[SA_REASONS]; // by drop reason
} __rte_cache_aligned;

// How the IV that librte_ipsec writes is made what its RFC wants.
enum sa_iv {
	SA_IV_NONE, // NULL encryption
	SA_IV_XOR,  // counter modes: sequence ^ iv[0], in packet and op
	SA_IV_CBC,  // AES(sequence ^ secret): op's IV area = iv[0..1]
};

struct sa {
	// Hot: read for every packet, never written after sa_create().
	const struct mb_key *key;    // of the direct form; NULL: through librte_ipsec
	const struct tunnel *tunnel; // which it belongs to
	struct sa_stats *stats;      // one a worker
	struct replay *replay;       // inbound
	uint32_t spi_be;             //
	uint32_t salt;               // as it stands in the nonce
	uint8_t family;              // of the outer header
	bool inbound;                //
	bool shared;                 // more than one worker may use it at a time
	bool short_way;              // inbound: its ESP may be known without the full way
	bool natt;                   // UDP encapsulation
	bool transport;              // transport mode
	bool esn;                    //
	bool aead;                   //
	uint8_t iv_kind;             // enum sa_iv
	uint8_t iv_len;              // bytes
	uint8_t icv_len;             // bytes
	uint8_t align;               // of the ciphertext, bytes
	uint8_t sqh_len;             // 4 with ESN: high half that librte_ipsec appends
	uint8_t hdr_len;             // outbound: outer IP and UDP header, bytes
	uint8_t df;                  // outbound, enum cfg_df
	uint8_t dscp;                // outbound: 0…63 or CFG_DSCP_COPY
	bool fragment_after;         // outbound: what is too big is sealed whole, then cut
	bool metered;                // has a hard lifetime in bytes or packets
	uint16_t tfc_pad_to;         // outbound: inner packets are padded to this, 0: not
	uint64_t iv[2];              //
	uint8_t outer[48];           // outbound: outer IP and UDP header
	uint32_t outer_sum;          // of bytes 8 to 19 of an IPv4 one, as for its checksum
	struct addr src;             // outer addresses
	struct addr dst;             //
	uint16_t natt_sport_be;      //
	uint16_t natt_dport_be;      //
	uint16_t index;              // into the tables' list of SAs
	uint8_t crypto_slot;         // look-aside: which crypto device
	struct rte_ipsec_session session; // look-aside

	// Hot and written. Outbound: `sequence` is the last number handed out and
	// runs up to `limit`, which the control thread moves ahead.
	_Atomic uint64_t sequence __rte_cache_aligned;
	_Atomic uint64_t limit;
	// Inbound: serialises librte_ipsec's process and our window.
	rte_spinlock_t lock;
	// Hard lifetimes: what has been used, and whether it is over.
	_Atomic uint64_t used_bytes;
	_Atomic uint64_t used_packets;
	atomic_bool expired;
	// NAT-T, inbound, under the lock: from where the last authentic packet came, which a
	// NAT may change, and whether that is still to be told.
	struct addr peer;
	uint16_t peer_port; // host byte order
	bool peer_moved;

	// Cold.
	char name[CFG_NAME_MAX] __rte_cache_aligned;
	uint32_t spi; // host byte order
	uint32_t reqid;
	enum alg_id cipher;
	enum alg_id auth;
	uint64_t end;              // last sequence number there is
	struct state_sa *record;   // outbound: in the state file, NULL without one
	struct cfg_lifetime soft;  //
	struct cfg_lifetime hard;  //
	bool soft_told;            // control thread
	bool hard_told;            //
	uint32_t dummy_ms;         // outbound: a dummy packet after so long a silence, 0: none
	uint16_t keepalive_s;      // outbound NAT-T, 0: none
	struct {
		uint64_t sequence; // worker 0: at its last look …
		uint64_t since;    // … which was the same since (TSC)
	} quiet[2];                // for dummy packets, for keepalives
	uint64_t seen_sequence;    // control thread: at its last look
	uint8_t warned;            // control thread: marks of use already told
	void *crypto_session;      //
	char fingerprint[17];      //
	uint32_t n_workers;        //
};

/**
 * Does this SA go the direct way (ESP of our own, ipsec-mb)? The others go by
 * librte_ipsec and a crypto device, which must have been opened.
 */
bool sa_is_direct(const struct cfg_sa *c, enum cfg_crypto crypto);

/**
 * Build an SA and its key or crypto session.
 *
 * @param c          checked configuration
 * @param mgr        of ipsec-mb, to expand keys with; NULL: not the direct way
 * @param n_workers  how many statistics blocks; more than one makes outbound
 *                   sequence numbers atomic
 * @param iv_offset  bytes from the crypto op to its IV area
 * @param state      state file for outbound SAs, or NULL
 * @return NULL with err filled: EXIT_MACHINE when no crypto device can do it
 */
struct sa *sa_create(const struct cfg_sa *c, struct mb_manager *mgr, unsigned int n_workers,
		     uint16_t iv_offset, struct state *state, struct err *err);

/** Wipe and free. Nothing may be in flight. NULL is allowed. */
void sa_free(struct sa *sa);

/**
 * Take up to n sequence numbers of an outbound SA. librte_ipsec counts by itself
 * in prepare(); exactly the number returned here must be given to it.
 * @param first  filled: the first of them
 * @return how many may be used, 0…n
 */
static inline uint16_t
sa_sequence_take(struct sa *sa, uint16_t n, uint64_t *first)
{
	uint64_t cur = atomic_load_explicit(&sa->sequence, memory_order_relaxed);
	uint64_t limit = atomic_load_explicit(&sa->limit, memory_order_relaxed);
	uint64_t take;

	do {
		take = limit > cur ? RTE_MIN((uint64_t)n, limit - cur) : 0;
		*first = cur + 1;
		if (take == 0)
			return 0;
		if (likely(!sa->shared)) {
			atomic_store_explicit(&sa->sequence, cur + take, memory_order_relaxed);
			break;
		}
	} while (!atomic_compare_exchange_weak_explicit(&sa->sequence, &cur, cur + take,
							memory_order_relaxed, memory_order_relaxed));
	return (uint16_t)take;
}

/**
 * Use up some of an SA's lifetime. A packet that would go beyond the hard end is
 * refused, and so is everything after it.
 * @param bytes  of the inner packet
 */
static inline bool
sa_lifetime_take(struct sa *sa, uint32_t bytes)
{
	if (unlikely(atomic_load_explicit(&sa->expired, memory_order_relaxed)))
		return false;
	if (likely(!sa->metered))
		return true;
	if ((sa->hard.packets != 0 && atomic_fetch_add(&sa->used_packets, 1) >= sa->hard.packets) ||
	    (sa->hard.bytes != 0 &&
	     atomic_fetch_add(&sa->used_bytes, bytes) + bytes > sa->hard.bytes)) {
		atomic_store(&sa->expired, true);
		return false;
	}
	return true;
}

/** Count what a worker has sealed or opened. sa may be NULL: nothing. */
static inline void
sa_count(const struct sa *sa, unsigned int worker, uint64_t packets, uint64_t bytes)
{
	if (sa == NULL)
		return;
	sa->stats[worker].packets += packets;
	sa->stats[worker].bytes += bytes;
}

/** All workers' counters of an SA added up. */
void sa_stats_sum(const struct sa *sa, struct sa_stats *out);

/** Largest packet to be sealed whose ESP packet fits an MTU. @return 0: none */
uint32_t sa_inner_mtu(const struct sa *sa, uint32_t mtu);
