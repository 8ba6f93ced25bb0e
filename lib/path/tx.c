/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"
#include "steer.h"

#include <rte_ethdev.h>
#include <rte_spinlock.h>

#include <string.h>

// Ports with fewer tx queues than workers: their users take turns.
static rte_spinlock_t tx_locks[WORKER_PORTS][WORKER_MAX];

// What the queue does not take is dropped: a worker never waits for a wire.
static void
flush_port(struct worker *w, uint16_t port)
{
	const struct tport *t = &w->tables->ports[port];
	struct tx_buffer *b = &w->tx[port];
	uint16_t queue = (uint16_t)(w->index % t->n_txq), sent = 0, n = b->n;
	uint64_t bytes = 0, run = 0;

	// Once sent a packet belongs to the driver: count all before, and take back what stays.
	for (uint16_t i = 0; i < n; i++) {
		bytes += b->pkts[i]->pkt_len;
		run++;
		if (i + 1 == n || b->pkts[i + 1]->port != b->pkts[i]->port) {
			w->ports[b->pkts[i]->port].sent_on += run;
			run = 0;
		}
	}
	if (t->tx_shared)
		rte_spinlock_lock(&tx_locks[t->parent][queue]);
	// A driver may take only part of a burst (net_af_packet stops at a busy frame).
	for (uint16_t took = 1; sent < n && took > 0; sent = (uint16_t)(sent + took))
		took = rte_eth_tx_burst(t->port_id, queue, b->pkts + sent, (uint16_t)(n - sent));
	if (t->tx_shared)
		rte_spinlock_unlock(&tx_locks[t->parent][queue]);
	for (uint16_t i = sent; unlikely(i < n); i++) {
		bytes -= b->pkts[i]->pkt_len;
		w->ports[b->pkts[i]->port].sent_on--;
		drop(w, b->pkts[i], DROP_tx_full);
	}
	w->ports[port].tx_packets += sent;
	w->ports[port].tx_bytes += bytes;
	b->n = 0;
}

// A reassembly buffer must not reach a driver: it gives buffers back to the pool it
// knows, and most frames that need one have been cut by now.
static struct rte_mbuf *
to_ordinary(struct worker *w, struct rte_mbuf *big)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	void *data = m != NULL ? rte_pktmbuf_append(m, big->data_len) : NULL;

	if (data == NULL) {
		rte_pktmbuf_free(m);
		drop(w, big, DROP_no_buffer);
		return NULL;
	}
	memcpy(data, rte_pktmbuf_mtod(big, void *), big->data_len);
	*pkt(m) = *pkt(big);
	m->port = big->port;
	rte_pktmbuf_free(big);
	return m;
}

void
tx_put(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	struct tx_buffer *b = &w->tx[port];

	b->pkts[b->n++] = m;
	if (b->n == TX_MAX)
		flush_port(w, port);
}

static inline void
enqueue(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	if (unlikely(m->pool != w->pool)) {
		m = to_ordinary(w, m);
		if (m == NULL)
			return;
	}

	// Whatever is known of the way here is no device's business.
	m->ol_flags = 0;
	m->tx_offload = sizeof(struct rte_ether_hdr); // l2_len, nothing else
	if (unlikely(w->slot != NULL))
		steer_capture(w, port, m);
	else
		tx_put(w, port, m);
}

void
tx_enqueue(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	enqueue(w, port, m);
}

uint16_t
tx(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct nexthop *nexthops = w->tables->nexthops;

	for (uint16_t i = 0; i < n; i++)
		enqueue(w, nexthops[pkt(pkts[i])->nexthop].port, pkts[i]);
	return 0;
}

void
tx_flush(struct worker *w)
{
	for (uint16_t port = 0; port < w->tables->n_ports; port++)
		if (w->tx[port].n > 0)
			flush_port(w, port);
}
