/* SPDX-License-Identifier: BSD-3-Clause */
// What the ESP stages share. ESP is RFC 4303. There are two forms of it:
//
//   direct   seal_direct.c, open_direct.c: tunnel mode. ESP is written and read here, the
//            crypto is ipsec-mb's, called directly (mb.h)
//   library  seal_library.c, open_library.c, esp_group.c: transport mode, and everything
//            with system.crypto: look-aside. librte_ipsec's prepare and process with a
//            crypto device, and the corrections that they need (docs/librte.md)
//
// which make the same bytes. The order of work in both: everything of a burst is
// prepared and handed over, then the crypto is waited for once, so that a lone packet
// does not wait and CBC finds company across SAs.
#pragma once

#include "crypto.h"
#include "sa.h"
#include "stage.h"

#include <rte_crypto.h>

#include <netinet/in.h>
#include <string.h>

#define NATT_PORT 4500
#define NEXT_DUMMY 59  // IPPROTO_NONE: RFC 4303 section 2.6
#define FAMILY_DUMMY 0 // pkt.family of a dummy packet on its way out
#define L3_LEN_MAX 511 // bits of m->l3_len
#define ECN_MASK 3
#define ECN_CE 3

// The two forms: as the stages, but all packets have their SA, which is of this form.
uint16_t seal_direct(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
uint16_t seal_library(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
uint16_t open_direct(struct worker *w, struct rte_mbuf **pkts, uint16_t n);
uint16_t open_library(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

/** How many of the first packets, n > 0, have the same SA. */
static inline uint16_t
run_length(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t run = 1;

	while (run < n && pkt(pkts[run])->sa == pkt(pkts[0])->sa)
		run++;
	return run;
}

/**
 * Additional data of an AEAD: SPI and sequence number, with ESN all of it (RFC 4106 section
 * 5). The ESP header is written.
 * @param seq_be  64 bits, big endian
 */
static inline void
aad_fill(const struct sa *sa, struct mb_work *work, uint64_t seq_be)
{
	uint64_t high = sa->spi_be | seq_be << 32;

	if (likely(!sa->esn)) {
		memcpy(work->aad, work->esp, 8);
		work->aad_len = 8;
		return;
	}
	memcpy(work->aad, &high, 8);
	memcpy(work->aad + 8, work->esp + 4, 4);
	work->aad_len = 12;
}

// ---------------------------------------------------------------- sealing, esp_seal.c

/**
 * What the outer header takes from the inner one: RFC 4301 section 8.1 (DF), 5.1.2
 * (DSCP), RFC 6040 section 4.1 (ECN, normal mode).
 * @param tos  filled: traffic class
 * @param df   filled: 0x40 or 0, for byte 6 of an IPv4 header
 */
static inline void
seal_marks(const struct worker *w, struct rte_mbuf *m, const struct sa *sa, const uint8_t *inner,
	   uint8_t *tos, uint8_t *df)
{
	const struct pkt *p = pkt(m);

	*tos = 0;
	*df = 0;
	if (p->family == 4) {
		*tos = inner[1];
		*df = inner[6] & 0x40;
	} else if (p->family == 6) {
		// Inside IPv6 nothing is ever fragmented on the way, so neither outside.
		*tos = (uint8_t)(inner[0] << 4 | inner[1] >> 4);
		*df = 0x40;
	} // else a dummy: there is nothing inside
	if (sa->dscp != CFG_DSCP_COPY)
		*tos = (uint8_t)(sa->dscp << 2 | (*tos & ECN_MASK));
	// What does not fit the tunnel and was let through all the same is to be cut after
	// sealing.
	if (sa->df == CFG_DF_SET)
		*df = 0x40;
	else if (sa->df == CFG_DF_CLEAR || p->inner_bytes > pmtu_inner(w, sa->tunnel))
		*df = 0;
}

/** Why sa_sequence_take() gave less than was asked for. */
enum drop_reason seal_starved(struct sa *sa);

/** UDP checksum of a sealed packet over IPv6. */
void seal_udp6(struct rte_mbuf *m, const struct sa *sa);

/** Everything after the crypto, but the counters: m is an ESP packet now. */
static inline void
seal_done(struct rte_mbuf *m, const struct sa *sa)
{
	struct pkt *p = pkt(m);

	if (unlikely(sa->natt && sa->family == 6))
		seal_udp6(m, sa);
	p->family = sa->family;
	p->proto = sa->natt ? IPPROTO_UDP : IPPROTO_ESP;
	p->flags = (uint16_t)((p->flags & ~PKT_JOINED) | PKT_SEALED);
	p->nexthop = p->tunnel->nexthop; // all that a tunnel seals goes the same way
	p->sa = NULL;
}

// ---------------------------------------------------------------- opening, esp_open.c

static inline int
replay_reason(enum replay_verdict v)
{
	return v == REPLAY_FRESH ? -1 : v == REPLAY_SEEN ? DROP_esp_replay : DROP_esp_late;
}

/** Congestion mark of the outer header, before it is taken away. */
static inline uint8_t
outer_ecn(struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);

	return pkt(m)->family == 4 ? ip[1] & ECN_MASK : (ip[1] >> 4) & ECN_MASK;
}

/** Outer source address, likewise. */
struct addr outer_source(struct rte_mbuf *m, uint8_t family);

/** NAT-T: note from where an authentic packet came. The caller holds the SA's lock. */
void peer_note(struct sa *sa, const struct addr *addr, uint16_t port);

/**
 * The inner packet, laid bare: is it sound, and what does it take from the outer one?
 * @param ecn  of the outer header
 * @return a reason to end it, or -1
 */
int open_inner(struct worker *w, struct rte_mbuf *m, const struct sa *sa, uint8_t next_header,
	       uint8_t ecn);

// ---------------------------------------------------------------- look-aside, esp_group.c

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

/** Put what is left of a burst back in its order, by pkt.slot; what has none goes last. */
void burst_restore(struct rte_mbuf **pkts, uint16_t n);

/** Hand a prepared group to its crypto device. */
void group_submit(const struct worker *w, struct flight *f, struct group *g);

/** Wait until the devices are through with everything. */
void flight_drain(const struct worker *w, struct flight *f);
