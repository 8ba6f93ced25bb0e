/* SPDX-License-Identifier: BSD-3-Clause */
// Steering `bursts`: worker 0 deals out what all rx queues bring, burst by burst, works
// on bursts itself while the others are busy, and sends everything in the order of
// arrival.
//
//	tickets        head                              tail
//	 ──────────────▲─────────────────────────────────▲──────▶
//	 sent, free    done │ at work │ done │ waiting    free
//
// Nobody ever waits for a slot with a higher ticket, and worker 0 begins one only when
// all that it handed out before have been begun; what a worker has not begun it takes
// back. So the lowest ticket always goes on, all turns come, and a worker that the
// operating system has stopped costs no more than the slot that it works on.
#include "steer.h"

#include "stage.h"

#include <rte_cycles.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 64      // a power of two
#define IN_HAND 2     // slots that a worker works on or has waiting
#define INBOX 4       // a power of two, at least IN_HAND
#define OUT_MAX 96    // packets in a slot's array, the others are chained
#define ALONE 16      // so few packets, and nothing else under way: not worth a hand-over
#define SPINS 500     // before a core is given away, another lcore may need this very one

struct slot {
	// Worker 0 writes.
	uint64_t ticket;
	uint16_t n_in;
	struct rte_mbuf *in[BURST];
	// Who works on it writes: the ticket + 1, when that slot has passed a turn.
	_Atomic uint64_t passed[STEER_TURNS] __rte_cache_aligned;
	// The same for all of the work; what stands below is worker 0's then.
	_Atomic uint64_t done __rte_cache_aligned;
	uint16_t n_out;
	struct rte_mbuf *first; // of those that found no room, by m->next: a packet has
	struct rte_mbuf *last;  // one segment
	uint8_t port[OUT_MAX];
	struct rte_mbuf *out[OUT_MAX];
} __rte_cache_aligned;

// Slots on their way to a worker; an empty place is NULL, so that neither end has to
// look at where the other is. Who takes one exchanges it for NULL.
struct inbox {
	_Atomic(struct slot *) at[INBOX] __rte_cache_aligned;
	uint64_t handed __rte_cache_aligned; // slots, worker 0's count
	_Atomic uint64_t done __rte_cache_aligned; // slots, the worker's count
	uint64_t taken;
	atomic_bool wants; // a slot without packets, for what sgw made
};

struct bursts {
	// Up to which ticket all have passed; it may lag behind.
	struct {
		_Atomic uint64_t at __rte_cache_aligned;
	} turn[STEER_TURNS];
	atomic_bool closed; // nothing will be handed out any more
	// Worker 0's.
	uint64_t head __rte_cache_aligned; // the lowest ticket that is not sent
	uint64_t tail;                     // the next ticket
	uint16_t next_rxq;                 // queues are served in turn
	unsigned int next_worker;          // and so are workers
	struct inbox inboxes[WORKER_MAX];
	struct slot slots[SLOTS];
};

_Static_assert(WORKER_PORTS <= UINT8_MAX, "a port is a byte in a slot");

static struct bursts *b;

int
bursts_start(void)
{
	b = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*b));
	if (b == NULL)
		return -ENOMEM;
	memset(b, 0, sizeof(*b));
	return 0;
}

void
bursts_free(void)
{
	free(b);
	b = NULL;
}

// ---- turns ----

static struct slot *
slot_of(uint64_t ticket)
{
	return &b->slots[ticket % SLOTS];
}

// A place that is used anew has the mark of a later ticket, so has been passed.
static bool
passed(uint64_t ticket, enum steer_turn turn)
{
	return atomic_load_explicit(&slot_of(ticket)->passed[turn], memory_order_acquire) > ticket;
}

bool
steer_turn_passed_slow(const struct worker *w, enum steer_turn turn)
{
	return passed(w->slot->ticket, turn);
}

// Two lcores can be on one core: give it away now and then.
static void
wait_a_bit(unsigned int *spins)
{
	rte_pause();
	if (++*spins % SPINS == 0)
		sched_yield();
}

void
steer_turn_wait_slow(struct worker *w, enum steer_turn turn)
{
	uint64_t ticket = w->slot->ticket;
	uint64_t at = atomic_load_explicit(&b->turn[turn].at, memory_order_acquire);
	unsigned int spins = 0;

	if (ticket >= SLOTS && at < ticket - SLOTS)
		at = ticket - SLOTS; // what was there has been sent
	if (at >= ticket)
		return;
	for (; at < ticket; at++) {
		uint64_t began;

		if (likely(passed(at, turn)))
			continue;
		began = rte_rdtsc();
		while (!passed(at, turn))
			wait_a_bit(&spins);
		w->turn_cycles += rte_rdtsc() - began;
	}
	atomic_store_explicit(&b->turn[turn].at, ticket, memory_order_release);
}

static void
slot_pass(struct slot *s, enum steer_turn turn)
{
	if (!passed(s->ticket, turn))
		atomic_store_explicit(&s->passed[turn], s->ticket + 1, memory_order_release);
}

void
steer_turn_pass_slow(struct worker *w, enum steer_turn turn)
{
	// More of this slot is to be sealed, and its numbers belong together.
	if (turn == STEER_SEAL && (w->unsealed > 0 || w->cutting || w->n_local > 0))
		return;
	slot_pass(w->slot, turn);
}

// ---- working on a slot ----

void
steer_capture(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	struct slot *s = w->slot;

	if (likely(s->n_out < OUT_MAX)) {
		s->port[s->n_out] = (uint8_t)port;
		s->out[s->n_out++] = m;
		return;
	}
	// Jumbo packets that are cut become many.
	pkt(m)->source = port; // where it came from is of no use any more
	if (s->first == NULL)
		s->first = m;
	else
		s->last->next = m;
	s->last = m;
}

static void
slot_close(struct worker *w)
{
	struct slot *s = w->slot;

	w->slot = NULL;
	w->unsealed = 0;
	for (unsigned int turn = 0; turn < STEER_TURNS; turn++)
		slot_pass(s, turn);
	atomic_store_explicit(&s->done, s->ticket + 1, memory_order_release);
}

static void
slot_run(struct worker *w, struct slot *s)
{
	steer_fetch(s->in, s->n_in);
	w->slot = s;
	w->slots++;
	worker_run(w, s->in, s->n_in);
	slot_close(w);
}

// What comes to a worker other than 0. @return false: nothing
static bool
inbox_run(struct worker *w)
{
	struct inbox *box = &b->inboxes[w->index];
	_Atomic(struct slot *) *at = &box->at[box->taken % INBOX];
	struct slot *s = NULL;

	if (atomic_load_explicit(at, memory_order_relaxed) != NULL)
		s = atomic_exchange_explicit(at, NULL, memory_order_acq_rel);
	if (s == NULL)
		return false;
	box->taken++;
	w->taken_over += s->n_in;
	slot_run(w, s);
	// Made too late for its turn, by a neighbour that does not answer for example.
	if (unlikely(w->n_local > 0))
		atomic_store_explicit(&box->wants, true, memory_order_release);
	atomic_store_explicit(&box->done, box->taken, memory_order_release);
	return true;
}

// ---- worker 0 ----

static struct slot *
slot_take(void)
{
	struct slot *s = slot_of(b->tail);

	if (b->tail - b->head == SLOTS)
		return NULL;
	s->ticket = b->tail++;
	s->n_in = 0;
	return s;
}

// The next slot with what the rx queues have; a burst of several queues when they are
// not full. @return NULL: nothing has come, or no place is free
static struct slot *
slot_read(struct worker *w)
{
	struct slot *s = slot_of(b->tail);
	uint16_t n = 0;

	if (b->tail - b->head == SLOTS)
		return NULL;
	for (uint16_t i = 0; i < w->n_rxqs && n < BURST; i++) {
		n = (uint16_t)(n + steer_rx(w, b->next_rxq, s->in + n, (uint16_t)(BURST - n)));
		b->next_rxq = (uint16_t)((b->next_rxq + 1) % w->n_rxqs);
	}
	if (n == 0)
		return NULL;
	s->ticket = b->tail++;
	s->n_in = n;
	return s;
}

static uint64_t
in_hand(const struct inbox *box)
{
	return box->handed - atomic_load_explicit(&box->done, memory_order_acquire);
}

static void
hand(struct worker *w, struct inbox *box, struct slot *s)
{
	w->handed_over += s->n_in;
	atomic_store_explicit(&box->at[box->handed++ % INBOX], s, memory_order_release);
}

// The place of the slot that a worker has not begun, if there is one.
static _Atomic(struct slot *) *
waiting(struct inbox *box)
{
	return &box->at[(box->handed - 1) % INBOX];
}

// Of all that others have not begun, the slot with the lowest ticket.
// @return NULL: they have begun everything
static struct slot *
take_back(struct worker *w)
{
	for (;;) {
		struct inbox *from = NULL;
		struct slot *s = NULL;

		for (unsigned int i = 1; i < n_workers; i++) {
			struct slot *o = atomic_load_explicit(waiting(&b->inboxes[i]), memory_order_relaxed);

			if (o != NULL && (s == NULL || o->ticket < s->ticket)) {
				s = o;
				from = &b->inboxes[i];
			}
		}
		if (s == NULL)
			return NULL;
		if (atomic_exchange_explicit(waiting(from), NULL, memory_order_acq_rel) == NULL)
			continue; // its worker was faster
		from->handed--;
		w->handed_over -= s->n_in;
		return s;
	}
}

// Those who have made something themselves get a slot for it.
static void
answer_wants(struct worker *w)
{
	for (unsigned int i = 1; i < n_workers; i++) {
		struct inbox *box = &b->inboxes[i];
		struct slot *s;

		if (likely(!atomic_load_explicit(&box->wants, memory_order_acquire)) ||
		    in_hand(box) >= IN_HAND || (s = slot_take()) == NULL)
			continue;
		atomic_store_explicit(&box->wants, false, memory_order_relaxed);
		hand(w, box, s);
	}
}

// Sends what is done, up to the first slot that is not.
static bool
release(struct worker *w)
{
	uint64_t was = b->head;

	for (; b->head != b->tail; b->head++) {
		struct slot *s = slot_of(b->head);

		if (atomic_load_explicit(&s->done, memory_order_acquire) <= b->head)
			break;
		for (uint16_t i = 0; i < s->n_out; i++)
			rte_prefetch0(s->out[i]);
		for (uint16_t i = 0; i < s->n_out; i++)
			tx_put(w, s->port[i], s->out[i]);
		s->n_out = 0;
		while (unlikely(s->first != NULL)) {
			struct rte_mbuf *m = s->first;

			s->first = m->next;
			m->next = NULL;
			tx_put(w, pkt(m)->source, m);
		}
	}
	return b->head != was;
}

// Give slots to the workers that have fewer than `fewer`, in turn.
// @return how many got one
static unsigned int
deal(struct worker *w, uint64_t fewer)
{
	unsigned int given = 0;

	for (unsigned int i = 1; i < n_workers; i++) {
		struct inbox *box = &b->inboxes[1 + b->next_worker];
		struct slot *s;

		b->next_worker = (b->next_worker + 1) % (n_workers - 1);
		if (in_hand(box) >= fewer)
			continue;
		s = slot_read(w);
		if (s == NULL)
			break;
		hand(w, box, s);
		given++;
	}
	return given;
}

// A round: first those who have nothing to do, then ourselves, then provisions for
// the time that our own slot takes. Where two were idle, dealing is what is short.
static bool
dispatch(struct worker *w)
{
	struct slot *mine = NULL;
	unsigned int idle;
	bool busy;

	if (b->head == b->tail && w->n_local == 0) { // all is quiet: no need to wake others for a few
		mine = slot_read(w);
		if (mine != NULL && mine->n_in > ALONE && in_hand(&b->inboxes[1]) == 0) {
			hand(w, &b->inboxes[1], mine);
			mine = NULL;
		}
	} else {
		mine = take_back(w);
		if (mine == NULL && unlikely(w->n_local > 0))
			mine = slot_take();
	}
	answer_wants(w);
	idle = deal(w, 1);
	if (mine == NULL && idle < 2)
		mine = slot_read(w);
	busy = deal(w, IN_HAND) > 0 || idle > 0 || mine != NULL;
	if (mine != NULL)
		slot_run(w, mine);
	return busy;
}

bool
bursts_poll(struct worker *w)
{
	bool busy;

	if (w->index != 0) {
		busy = inbox_run(w);
	} else {
		busy = release(w);
		busy |= dispatch(w);
		busy |= release(w);
	}
	tx_flush(w);
	return busy;
}

bool
bursts_enter(struct worker *w)
{
	if (w->index != 0)
		return false;
	w->slot = slot_take();
	w->unsealed = w->slot != NULL; // it may become several bursts
	return w->slot != NULL;
}

void
steer_leave(struct worker *w)
{
	if (w->slot != NULL)
		slot_close(w);
}

// The others go on until worker 0 has everything back.
void
bursts_drain(struct worker *w)
{
	unsigned int spins = 0;

	if (w->index == 0) {
		while (b->head != b->tail)
			if (!release(w))
				wait_a_bit(&spins);
		atomic_store_explicit(&b->closed, true, memory_order_release);
		return;
	}
	while (inbox_run(w) || !atomic_load_explicit(&b->closed, memory_order_acquire))
		wait_a_bit(&spins);
}
