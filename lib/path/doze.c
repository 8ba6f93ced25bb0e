/* SPDX-License-Identifier: BSD-3-Clause */
// An idle worker: it spins, then naps, then waits for an interrupt.
//
// A nap lasts 1/32 of the silence before it. So what the last packets were like is
// remembered without a memory: where packets come every millisecond, one waits 16 µs on
// average, and a thousand of them a second cost tens of naps each; after 5 ms of silence
// the naps are as long as they get. A packet never waits for more than a nap.
#include "doze.h"

#include "port.h"
#include "sa.h"
#include "stage.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_pause.h>

#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// Shorter than a sleep and its wake cost: spinning is cheaper, and nothing in a
// burst or behind a window of TCP waits.
#define SPIN_US 50
#define NAP_PART 32
#define NAP_MIN_US 10
// What a rx ring must hold meanwhile. Ours are 1024 deep, 512 at the least: the shortest
// frames on a gigabit are 1.488 a µs, in 150 µs 223, in 200 µs (a late wake) 298. And the
// first packet after a silence leaves within 200 µs.
#define NAP_MAX_US 150
// Naps are 31 µs now, and a wake takes about as long.
#define WAIT_AFTER_US 1000
// Every set of the neighbour table is due every 100 ms, and a fragment is kept for 5 s;
// both ticks look how much time has passed. So the round itself may be late by a few ms.
#define WAIT_MS 4
#define WAIT_DUMMY_MS 40 // dummy packets more often than that keep the tick of 1 ms

_Static_assert(DOZE_QUEUES == WORKER_RXQ_MAX, "an event a queue");

// Ticks of worker 0 send dummy packets.
static int
longest_wait(const struct worker *w)
{
	for (uint32_t i = 0; w->index == 0 && i < w->tables->n_timed; i++) {
		uint32_t ms = w->tables->timed[i]->sa_out->dummy_ms;

		if (ms != 0 && ms < WAIT_DUMMY_MS)
			return 1;
	}
	return WAIT_MS;
}

void
doze_open(struct worker *w, const struct port *ports, bool only_queues)
{
	struct doze *d = &w->doze;
	uint16_t n = 0;

	d->us = rte_get_tsc_hz() / 1000000;
	d->wait_ms = longest_wait(w);
	d->epfd = -1;
	if (!w->idle_sleep || !only_queues || w->n_rxqs == 0)
		return;
	d->epfd = epoll_create1(EPOLL_CLOEXEC);
	for (; d->epfd >= 0 && n < w->n_rxqs; n++)
		if (port_wakes(&ports[w->rxqs[n].index], w->rxqs[n].queue, d->epfd, &d->events[n]) != 0)
			break;
	if (n < w->n_rxqs)
		doze_close(w);
}

void
doze_close(struct worker *w)
{
	if (w->doze.epfd >= 0)
		close(w->doze.epfd);
	w->doze.epfd = -1;
}

static void
nap(struct doze *d, uint64_t us)
{
	struct timespec ts = {.tv_nsec = (long)us * 1000};

	d->sleeps++;
	nanosleep(&ts, NULL);
}

// Most events are edges, and those of packets that were taken long ago are still there:
// they are forgotten before the round that makes sure, never after it.
static void
arm(struct worker *w)
{
	struct rte_epoll_event old[DOZE_QUEUES];

	for (uint16_t i = 0; i < w->n_rxqs; i++)
		rte_eth_dev_rx_intr_enable(w->rxqs[i].port, w->rxqs[i].queue);
	rte_epoll_wait(w->doze.epfd, old, DOZE_QUEUES, 0);
	w->doze.armed = true;
}

static void
disarm(struct worker *w)
{
	for (uint16_t i = 0; i < w->n_rxqs; i++)
		rte_eth_dev_rx_intr_disable(w->rxqs[i].port, w->rxqs[i].queue);
	w->doze.armed = false;
}

static void
wait_packet(struct worker *w)
{
	struct doze *d = &w->doze;
	struct rte_epoll_event events[DOZE_QUEUES];
	int n;

	d->sleeps++;
	n = rte_epoll_wait(d->epfd, events, DOZE_QUEUES, d->wait_ms);
	if (n == 0)
		return; // still armed: there was no edge
	disarm(w);
	if (n < 0) {
		doze_close(w); // can not happen; better to sleep by time than to spin
		return;
	}
	d->wakes++;
	// The packet may be behind its interrupt (net_tap tells by a signal to another
	// thread): look for a while, do not sleep at once.
	d->since = rte_rdtsc();
}

void
doze(struct worker *w)
{
	struct doze *d = &w->doze;
	uint64_t silence = w->now - d->since;

	if (!w->idle_sleep || silence <= SPIN_US * d->us) {
		rte_pause();
		return;
	}
	silence /= d->us;
	if (d->epfd < 0 || silence < WAIT_AFTER_US)
		nap(d, RTE_MAX(RTE_MIN(silence / NAP_PART, (uint64_t)NAP_MAX_US), (uint64_t)NAP_MIN_US));
	else if (d->armed)
		wait_packet(w);
	else
		arm(w);
}

void
doze_end(struct worker *w)
{
	w->doze.since = w->now;
	if (unlikely(w->doze.armed))
		disarm(w);
}
