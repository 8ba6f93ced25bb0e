/* SPDX-License-Identifier: BSD-3-Clause */
// Steering `flows`: RSS in software, for ports with fewer queues than workers, and for
// NICs that see one flow in all ESP of a tunnel.
//
// Who polls a queue has a table from buckets of flows to workers. Handing over costs, and
// the poller has its own flows besides: so it moves buckets, one at a time, until all
// are equally behind. What comes for a bucket that leaves another worker is held until
// all that was handed over before has left sgw, so that the order within a flow stays.
#include "steer.h"

#include "stage.h"

#include <rte_pause.h>
#include <rte_random.h>
#include <rte_ring.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RING 1024      // packets from one worker to another, a power of two
#define BUCKETS 512    // a power of two
#define HELD 512       // packets of a bucket that moves
#define WINDOW 2048    // packets polled between two looks at who is behind
#define HUNGRY 4       // packets found in a ring, on the average: it is emptied faster
#define BEHIND 64      // the same: it grows
#define STEP_MAX 8     // buckets
#define POLLS 4        // of a queue in one round
#define ROOM_MIN 8     // packets: fewer are not asked for
#define HOLD UINT8_MAX // no worker's index

// From one worker to another.
struct lane {
	struct rte_ring *ring;
	// The poller's.
	uint64_t handed; // packets, ever
	uint32_t looks;  // rounds in this window …
	uint32_t found;  // … and what was in the ring when they began, added up
	// The worker's: packets that have gone their whole way.
	_Atomic uint64_t done __rte_cache_aligned;
} __rte_cache_aligned;

// Of a worker that polls queues.
struct poller {
	uint8_t owner[BUCKETS];  // a worker's index, HOLD: moves
	bool used[BUCKETS];      // in this window
	uint16_t cursor;         // where the search for a bucket to move goes on
	uint16_t step;           // own buckets to give away at once
	uint32_t polled;         // packets in this window
	uint32_t bursts;         // and bursts
	uint32_t full;           // of these full: there was more
	uint16_t moving;         // a bucket on its way …
	uint8_t from;            // … from this worker …
	uint8_t to;              // … to that one …
	uint64_t mark;           // … when `from` has done so many of its lane
	uint16_t n_held;         //
	struct rte_mbuf *held[HELD];
	struct lane lanes[];     // to each worker, the one to itself without ring
};

_Static_assert(WORKER_MAX <= HOLD, "a worker's index is a byte");

static uint64_t seed;
static struct poller *pollers[WORKER_MAX]; // by worker, NULL: polls nothing
static _Atomic unsigned int n_closed;      // workers that will hand nothing over any more

// ---- start and end ----

static struct poller *
poller_make(const struct worker *w)
{
	size_t size = sizeof(struct poller) + n_workers * sizeof(struct lane);
	struct poller *p = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE));

	if (p == NULL)
		return NULL;
	memset(p, 0, size);
	p->moving = BUCKETS;
	p->step = 1;
	for (unsigned int i = 0; i < BUCKETS; i++)
		p->owner[i] = (uint8_t)(i % n_workers);
	for (unsigned int to = 0; to < n_workers; to++) {
		ssize_t bytes = rte_ring_get_memsize(RING);

		if (to == w->index)
			continue;
		p->lanes[to].ring = bytes > 0 ? aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)bytes) : NULL;
		if (p->lanes[to].ring == NULL ||
		    rte_ring_init(p->lanes[to].ring, "lane", RING, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
			pollers[w->index] = p; // flows_free() finds what there is
			return NULL;
		}
	}
	return p;
}

int
flows_start(void)
{
	seed = rte_rand();
	n_closed = 0;
	for (unsigned int i = 0; i < n_workers; i++) {
		if (workers[i]->n_rxqs == 0)
			continue;
		struct poller *p = poller_make(workers[i]);

		if (p == NULL)
			return -ENOMEM;
		pollers[i] = p;
	}
	return 0;
}

void
flows_free(void)
{
	for (unsigned int i = 0; i < WORKER_MAX; i++) {
		for (unsigned int to = 0; pollers[i] != NULL && to < n_workers; to++)
			free(pollers[i]->lanes[to].ring);
		free(pollers[i]);
		pollers[i] = NULL;
	}
}

// ---- handing over ----

// The packet has not been looked at yet: what eth_accept counts is counted here.
static void
lane_drop(struct worker *w, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *); // steer_hash saw its tag
	int index = frame[12] == 0x81 && frame[13] == 0 ?
			    vlan_port(w->tables, m->port, (uint16_t)(frame[14] << 8 | frame[15])) : -1;

	if (index >= 0)
		m->port = (uint16_t)index;
	pkt(m)->sa = NULL;
	w->ports[m->port].rx_packets++;
	w->ports[m->port].rx_bytes += m->pkt_len;
	drop(w, m, DROP_steer_full);
}

static void
lane_put(struct worker *w, struct lane *lane, struct rte_mbuf **pkts, unsigned int n)
{
	unsigned int took;

	if (n == 0)
		return;
	took = rte_ring_sp_enqueue_burst(lane->ring, (void **)pkts, n, NULL);
	lane->handed += took;
	w->handed_over += took;
	for (unsigned int i = took; i < n; i++)
		lane_drop(w, pkts[i]);
}

// @return a worker's index, or HOLD
static unsigned int
owner_of(const struct worker *w, struct poller *p, const struct rte_mbuf *m)
{
	uint32_t hash = 0;
	unsigned int bucket;

	switch (steer_hash(w->tables, m, seed, &hash)) {
	case STEER_ODD:
		return w->index;
	case STEER_FIXED: // pieces of one packet must meet, so no bucket that moves
		return (unsigned int)((uint64_t)hash * n_workers >> 32);
	case STEER_FLOW:
		break;
	}
	bucket = hash % BUCKETS;
	p->used[bucket] = true;
	return p->owner[bucket];
}

static void
hold(struct worker *w, struct poller *p, struct rte_mbuf *m)
{
	if (p->n_held < HELD)
		p->held[p->n_held++] = m;
	else
		lane_drop(w, m);
}

// @return how many are our own, compacted
static uint16_t
hand_over(struct worker *w, struct poller *p, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *to[WORKER_MAX][BURST];
	unsigned int n_to[WORKER_MAX], owner;
	uint16_t own = 0;

	memset(n_to, 0, n_workers * sizeof(n_to[0]));
	for (uint16_t i = 0; i < n; i++) {
		owner = owner_of(w, p, pkts[i]);
		if (owner == w->index)
			pkts[own++] = pkts[i];
		else if (likely(owner != HOLD))
			to[owner][n_to[owner]++] = pkts[i];
		else
			hold(w, p, pkts[i]);
	}
	for (owner = 0; owner < n_workers; owner++)
		lane_put(w, &p->lanes[owner], to[owner], n_to[owner]);
	return own;
}

// ---- who is behind ----

// Once a round, before anything is handed over in it.
static void
lanes_look(struct poller *p)
{
	for (unsigned int to = 0; to < n_workers; to++) {
		struct lane *lane = &p->lanes[to];

		if (lane->ring == NULL)
			continue;
		lane->looks++;
		lane->found += rte_ring_count(lane->ring);
	}
}

static uint32_t
level(const struct lane *lane)
{
	return lane->looks == 0 ? 0 : lane->found / lane->looks;
}

// A bucket of a worker that is in use, or BUCKETS.
static uint16_t
bucket_of(struct poller *p, unsigned int worker)
{
	for (unsigned int i = 0; i < BUCKETS; i++) {
		p->cursor = (uint16_t)((p->cursor + 1) % BUCKETS);
		if (p->owner[p->cursor] == worker && p->used[p->cursor])
			return p->cursor;
	}
	return BUCKETS;
}

// What is our own is done when a round ends, so goes at once; ever more, until it is
// enough.
static void
move_own(struct worker *w, struct poller *p, unsigned int to)
{
	for (uint16_t i = 0; i < p->step; i++) {
		uint16_t bucket = bucket_of(p, w->index);

		if (bucket != BUCKETS)
			p->owner[bucket] = (uint8_t)to;
	}
	p->step = RTE_MIN((uint16_t)(p->step * 2), (uint16_t)STEP_MAX);
}

static void
move_begin(struct poller *p, unsigned int from, unsigned int to)
{
	uint16_t bucket = p->moving == BUCKETS ? bucket_of(p, from) : BUCKETS;

	if (bucket == BUCKETS)
		return;
	p->owner[bucket] = HOLD;
	p->moving = bucket;
	p->from = (uint8_t)from;
	p->to = (uint8_t)to;
	p->mark = p->lanes[from].handed;
}

// When nothing of the bucket is under way any more, what was held follows.
static bool
move_end(struct worker *w, struct poller *p)
{
	if (atomic_load_explicit(&p->lanes[p->from].done, memory_order_acquire) < p->mark)
		return false;
	p->owner[p->moving] = p->to;
	p->moving = BUCKETS;
	for (uint16_t i = 0, n; i < p->n_held; i = (uint16_t)(i + n)) {
		n = RTE_MIN((uint16_t)(p->n_held - i), (uint16_t)BURST);
		if (p->to == w->index)
			worker_run(w, p->held + i, n);
		else
			lane_put(w, &p->lanes[p->to], p->held + i, n);
	}
	p->n_held = 0;
	return true;
}

static void
window_begin(struct poller *p)
{
	for (unsigned int i = 0; i < n_workers; i++)
		p->lanes[i].looks = p->lanes[i].found = 0;
	memset(p->used, 0, sizeof(p->used));
	p->polled = p->bursts = p->full = 0;
}

// At the end of a round: all that was polled so far has left, or stands in a ring.
static void
balance(struct worker *w, struct poller *p)
{
	unsigned int low = w->index, high = w->index;
	bool more = p->full > p->bursts / 2; // than we can do

	for (unsigned int i = 0; i < n_workers; i++) {
		if (p->lanes[i].ring == NULL)
			continue;
		if (low == w->index || level(&p->lanes[i]) < level(&p->lanes[low]))
			low = i;
		if (high == w->index || level(&p->lanes[i]) > level(&p->lanes[high]))
			high = i;
	}
	if (level(&p->lanes[high]) > BEHIND)
		move_begin(p, high, level(&p->lanes[low]) < HUNGRY && more ? low : w->index);
	if (more && level(&p->lanes[high]) <= BEHIND && level(&p->lanes[low]) < HUNGRY)
		move_own(w, p, low);
	else
		p->step = 1;
	window_begin(p);
}

// ---- a round ----

// Polls until enough of it is our own: half a burst costs nearly what a whole one does,
// and ciphers want company.
static bool
queue_run(struct worker *w, struct poller *p, uint16_t queue)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t own = 0;
	bool busy = false;

	for (unsigned int tries = 0; tries < POLLS && own <= BURST - ROOM_MIN; tries++) {
		uint16_t room = (uint16_t)(BURST - own), n = steer_rx(w, queue, pkts + own, room);

		busy |= n > 0;
		p->polled += n;
		p->bursts += n > 0;
		p->full += n == room;
		for (uint16_t i = own; i < own + n; i++)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
		own = (uint16_t)(own + hand_over(w, p, pkts + own, n));
		if (n < room)
			break;
	}
	for (uint16_t i = 0; i < own; i++)
		rte_prefetch0(rte_mbuf_to_priv(pkts[i]));
	worker_run(w, pkts, own);
	return busy;
}

static bool
lanes_run(struct worker *w)
{
	struct rte_mbuf *pkts[BURST];
	bool busy = false;

	for (unsigned int from = 0; from < n_workers; from++) {
		struct lane *lane;
		unsigned int n;

		if (pollers[from] == NULL || from == w->index)
			continue;
		lane = &pollers[from]->lanes[w->index];
		n = rte_ring_sc_dequeue_burst(lane->ring, (void **)pkts, BURST, NULL);
		if (n == 0)
			continue;
		busy = true;
		w->taken_over += n;
		steer_fetch(pkts, (uint16_t)n);
		worker_run(w, pkts, (uint16_t)n);
		// Said only when the packets are with the driver.
		tx_flush(w);
		atomic_store_explicit(&lane->done, atomic_load_explicit(&lane->done, memory_order_relaxed) + n,
				      memory_order_release);
	}
	return busy;
}

bool
flows_poll(struct worker *w)
{
	struct poller *p = pollers[w->index];
	bool busy = false;

	if (p != NULL)
		lanes_look(p);
	for (uint16_t i = 0; i < w->n_rxqs; i++)
		busy |= queue_run(w, p, i);
	busy |= lanes_run(w);
	if (p != NULL && unlikely(p->moving != BUCKETS))
		busy |= move_end(w, p);
	tx_flush(w);
	if (p != NULL && p->polled >= WINDOW)
		balance(w, p);
	return busy;
}

// Everybody works on until nobody has anything to hand over.
void
flows_drain(struct worker *w)
{
	struct poller *p = pollers[w->index];
	bool closed = false;

	while (!closed || atomic_load(&n_closed) < n_workers || lanes_run(w)) {
		lanes_run(w);
		if (!closed && (p == NULL || p->moving == BUCKETS || move_end(w, p))) {
			closed = true;
			atomic_fetch_add(&n_closed, 1);
		}
		rte_pause();
		sched_yield();
	}
}
