/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include "frag.h"
#include "neigh.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>

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

static bool
poll_once(struct worker *w)
{
	struct rte_mbuf *pkts[BURST];
	bool busy = false;

	for (uint16_t i = 0; i < w->n_rxqs; i++) {
		uint16_t n = rte_eth_rx_burst(w->rxqs[i].port, w->rxqs[i].queue, pkts, BURST);

		if (n == 0)
			continue;
		busy = true;
		// From here on it is our own index of the port.
		for (uint16_t j = 0; j < n; j++) {
			pkts[j]->port = w->rxqs[i].index;
			rte_prefetch0(rte_mbuf_to_priv(pkts[j]));
			rte_prefetch0(rte_pktmbuf_mtod(pkts[j], void *));
		}
		inbound(w, pkts, n);
		while (w->n_local > 0)
			run_local(w);
	}
	tx_flush(w);
	return busy;
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
		busy = poll_once(w);
		if (busy) {
			w->busy_loops++;
			doze_end(w);
		}
		if (w->now - tick > w->hz / TICK_HZ) {
			tick = w->now;
			reass_tick(w);
			if (w->index == 0) {
				neigh_tick(w);
				idle_tick(w);
			}
			while (w->n_local > 0)
				run_local(w);
			tx_flush(w);
		}
		if (!busy)
			doze(w); // last: what the ticks see is not as old as the sleep
	}
	tx_flush(w);
	return 0;
}
