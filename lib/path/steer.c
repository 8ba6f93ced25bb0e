/* SPDX-License-Identifier: BSD-3-Clause */
// The three ways of steering, and the first of them.
#include "steer.h"

#include "stage.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>

static enum cfg_steering mode = CFG_STEER_QUEUES;

int
steer_start(enum cfg_steering wanted)
{
	mode = wanted;
	return mode == CFG_STEER_FLOWS ? flows_start() : mode == CFG_STEER_BURSTS ? bursts_start() : 0;
}

void
steer_free(void)
{
	flows_free();
	bursts_free();
}

uint16_t
steer_rx(struct worker *w, uint16_t i, struct rte_mbuf **pkts, uint16_t n)
{
	n = rte_eth_rx_burst(w->rxqs[i].port, w->rxqs[i].queue, pkts, n);
	for (uint16_t j = 0; j < n; j++)
		pkts[j]->port = w->rxqs[i].index;
	return n;
}

// A driver that has just filled the buffers leaves no more to fetch than this.
static void
fetch_own(struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		rte_prefetch0(rte_mbuf_to_priv(pkts[i]));
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	}
}

// All that is to be sealed or opened: the other core wrote it, or pulled it through its
// caches. Many lines at once come far cheaper than the cipher asking for one by one.
void
steer_fetch(struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		rte_prefetch0(pkts[i]);
		rte_prefetch0(rte_mbuf_to_priv(pkts[i]));
	}
	for (uint16_t i = 0; i < n; i++) {
		const char *data = rte_pktmbuf_mtod(pkts[i], const char *);

		rte_prefetch0(data);
		for (uint32_t at = RTE_CACHE_LINE_SIZE; at < pkts[i]->data_len; at += RTE_CACHE_LINE_SIZE)
			rte_prefetch1(data + at);
	}
}

static bool
queues_poll(struct worker *w)
{
	struct rte_mbuf *pkts[BURST];
	bool busy = false;

	for (uint16_t i = 0; i < w->n_rxqs; i++) {
		uint16_t n = steer_rx(w, i, pkts, BURST);

		if (n == 0)
			continue;
		busy = true;
		fetch_own(pkts, n);
		worker_run(w, pkts, n);
	}
	tx_flush(w);
	return busy;
}

bool
steer_poll(struct worker *w)
{
	switch (mode) {
	case CFG_STEER_FLOWS:
		return flows_poll(w);
	case CFG_STEER_BURSTS:
		return bursts_poll(w);
	default:
		return queues_poll(w);
	}
}

void
steer_drain(struct worker *w)
{
	if (mode == CFG_STEER_FLOWS)
		flows_drain(w);
	else if (mode == CFG_STEER_BURSTS)
		bursts_drain(w);
	worker_run(w, NULL, 0); // what sgw made in the last round
	tx_flush(w);
}

bool
steer_enter(struct worker *w)
{
	return mode == CFG_STEER_BURSTS ? bursts_enter(w) : true;
}
