/* SPDX-License-Identifier: BSD-3-Clause */
// Inside of the neighbour table, for neigh.c (resolving, learning) and
// neigh_table.c (making, ticking, looking) only.
//
// Set-associative: a neighbour can only stand in the 8 ways of one set, so nothing
// is ever allocated or moved, and a set's spinlock (writers) and sequence count
// (readers) are all the locking there is. Entries can be recycled at once: a
// reader copies, and sees by the count when it read across a change.
#pragma once

#include "neigh.h"

#include "drop.h"
#include "worker.h"

#include <rte_jhash.h>
#include <rte_seqcount.h>
#include <rte_spinlock.h>

#include <string.h>

#define PROBES 3            // RFC 4861 section 10: MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT
#define RETRY_S 1           // RetransTimer
#define REACHABLE_S 30      // ReachableTime
#define FAILED_S 3          // how long not to ask again
#define IDLE_S 600          // an entry that nobody used is forgotten
#define TICK_ROUND_MS 100   // every set is visited that often

struct neigh_key {
	uint32_t w[5]; // port << 8 | family, then the address
};

struct neigh {
	struct neigh_key key;      //
	struct rte_ether_addr mac; //
	uint8_t state;             // enum neigh_state
	uint8_t probes;            // questions sent in this state
	uint8_t n_queue;           //
	uint64_t used;             // TSC of the last packet, 0: never; written without lock
	uint64_t confirmed;        // TSC of the last answer
	uint64_t timer;            // TSC of the last question, or of the failure
	struct rte_mbuf *queue[NEIGH_QUEUE_MAX]; // oldest first
} __rte_cache_aligned;

struct neigh_set {
	rte_spinlock_t lock;       // for writers, and for the queues
	rte_seqcount_t seq;        // around each change of tags, key, mac, state
	uint16_t tags[NEIGH_WAYS]; // 0: way is free; else some bits of the hash
	struct neigh ways[NEIGH_WAYS];
} __rte_cache_aligned;

struct neigh_table {
	uint32_t seed;                     // of the hash: no one chooses our collisions
	uint32_t queued_max;               // limit of the next
	uint32_t queued;                   // packets waiting in all queues; atomic
	uint32_t tick_next;                // set to visit next
	uint64_t tick_last;                // TSC up to which ticks have been done
	struct bucket solicit[WORKER_MAX]; // questions, by worker
	struct neigh_set sets[NEIGH_SETS];
};

// Packets taken out of a queue under the lock, to be dealt with after it.
struct waiting {
	unsigned int n;
	struct rte_mbuf *pkts[NEIGH_QUEUE_MAX];
};

static inline struct neigh_key
key_of(uint16_t port, const struct addr *addr)
{
	struct neigh_key k = { .w = { (uint32_t)port << 8 | addr->family } };

	// Copies of a fixed size stay in registers.
	if (addr->family == 4)
		memcpy(&k.w[1], addr->b, 4);
	else
		memcpy(&k.w[1], addr->b, 16);
	return k;
}

static inline void
key_addr(const struct neigh_key *k, struct addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = (uint8_t)k->w[0];
	memcpy(addr->b, &k->w[1], sizeof(addr->b));
}

static inline bool
key_equal(const struct neigh_key *a, const struct neigh_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline struct neigh_set *
set_of(struct neigh_table *t, const struct neigh_key *k, uint16_t *tag)
{
	uint32_t hash = rte_jhash_32b(k->w, RTE_DIM(k->w), t->seed);

	*tag = (uint16_t)(hash >> 16 | 1);
	return &t->sets[hash % NEIGH_SETS];
}

static inline bool
usable(uint8_t state)
{
	return state == NEIGH_REACHABLE || state == NEIGH_PROBE || state == NEIGH_STATIC;
}

static inline struct neigh *
set_find(struct neigh_set *s, const struct neigh_key *k, uint16_t tag)
{
	for (unsigned int i = 0; i < NEIGH_WAYS; i++)
		if (s->tags[i] == tag && key_equal(&s->ways[i].key, k))
			return &s->ways[i];
	return NULL;
}

// Ticks since then. TSC values of another worker can lie ahead of our w->now.
static inline uint64_t
age(uint64_t now, uint64_t then)
{
	return (int64_t)(now - then) < 0 ? 0 : now - then;
}

// ---- under the set's lock ----

static inline void
queue_take(struct neigh_table *t, struct neigh *e, struct waiting *out)
{
	out->n = e->n_queue;
	memcpy(out->pkts, e->queue, out->n * sizeof(out->pkts[0]));
	e->n_queue = 0;
	__atomic_fetch_sub(&t->queued, out->n, __ATOMIC_RELAXED);
}

static inline void
entry_set(struct neigh_set *s, struct neigh *e, enum neigh_state state,
	  const struct rte_ether_addr *mac)
{
	rte_seqcount_write_begin(&s->seq);
	e->state = state;
	if (mac != NULL)
		e->mac = *mac;
	if (state == NEIGH_FREE)
		s->tags[e - s->ways] = 0;
	rte_seqcount_write_end(&s->seq);
}

// ---- neigh.c ----

/** Drop what waited; ICMP unreachable to each when the neighbour failed. */
void waiting_drop(struct worker *w, struct waiting *q, enum drop_reason why);
/** Send what waited. */
void waiting_send(struct worker *w, uint16_t port, const struct rte_ether_addr *mac,
		  struct waiting *q);
/** neigh_solicit(), rate-limited. */
void neigh_ask(struct worker *w, uint16_t port, const struct addr *addr,
	       const struct rte_ether_addr *mac, uint16_t provoker);
