/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include "frag.h"
#include "neigh.h"
#include "steer.h"

#include <rte_cycles.h>

#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#define TICK_HZ 1000        // of neigh_tick

struct worker *workers[WORKER_MAX];
unsigned int n_workers;
static atomic_bool stopping;

void
worker_stop(void)
{
	atomic_store(&stopping, true);
}

bool
bucket_take(struct bucket *b, const struct worker *w, uint32_t rate, uint32_t burst)
{
	uint64_t passed = w->now - b->last_tsc, fresh;

	// Long silence fills it whole, and must not overflow the product below.
	if (b->last_tsc == 0 || passed > w->hz)
		fresh = RTE_MAX(rate, burst);
	else
		fresh = passed * rate / w->hz;
	if (fresh > 0) {
		b->tokens = (uint32_t)RTE_MIN((uint64_t)burst, b->tokens + fresh);
		b->last_tsc = w->now;
	}
	if (b->tokens == 0)
		return false;
	b->tokens--;
	return true;
}

// Packets that stages have made while working on a burst. What they provoke in
// turn (an ICMP error about an ICMP error there is none) waits for the next round.
static void
run_local(struct worker *w)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = 0;

	for (; n < w->n_local && n < BURST; n++)
		pkts[n] = w->local[n];
	w->n_local = (uint16_t)(w->n_local - n);
	memmove(w->local, w->local + n, w->n_local * sizeof(w->local[0]));
	outbound(w, pkts, n);
}

void
worker_run(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	if (n > 0)
		inbound(w, pkts, n);
	while (w->n_local > 0 && !steer_turn_passed(w, STEER_SEAL))
		run_local(w);
}

// The timer's work. In `bursts` it has a place in the order, as a burst has.
static void
tick_run(struct worker *w)
{
	if (!steer_enter(w))
		return;
	reass_tick(w);
	if (w->index == 0) {
		neigh_tick(w);
		idle_tick(w);
	}
	worker_run(w, NULL, 0);
	steer_leave(w);
	tx_flush(w);
}

// Now, and what the last round has cost, by what it was.
static void
round_begin(struct worker *w, bool was_busy)
{
	uint64_t now = rte_rdtsc(), took = now - w->now;

	w->now = now;
	w->loops++;
	w->cycles += took;
	if (was_busy)
		w->busy_cycles += took;
}

int
worker_loop(void *arg)
{
	struct worker *w = arg;
	uint64_t tick = 0;
	bool busy = false;

	w->hz = rte_get_tsc_hz();
	w->now = rte_rdtsc();
	w->doze.since = w->now;
	// Sleeps of 20 µs would become 70 with the default slack of 50.
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		round_begin(w, busy);
		busy = steer_poll(w);
		if (busy) {
			w->busy_loops++;
			doze_end(w);
		}
		if (w->now - tick > w->hz / TICK_HZ) {
			tick = w->now;
			tick_run(w);
		}
		if (!busy)
			doze(w); // last: what the ticks see is not as old as the sleep
	}
	steer_drain(w);
	return 0;
}
