/* SPDX-License-Identifier: BSD-3-Clause */
// Packets of one SA together, and their way through the crypto device.
#include "esp.h"

#include <rte_cryptodev.h>
#include <rte_ipsec.h>

_Static_assert(offsetof(struct pkt, sym) == offsetof(struct pkt, op) + sizeof(struct rte_crypto_op),
	       "sym stands behind op");

static uint16_t
collect(const struct worker *w, struct flight *f, unsigned int slot)
{
	struct rte_crypto_op *done[BURST];
	uint16_t n = rte_cryptodev_dequeue_burst(crypto_dev_id(slot), w->crypto_qp, done, BURST);

	f->n[slot] = (uint16_t)(f->n[slot] - n);
	return n;
}

// The queue holds more than a burst; it refuses only for want of a free job, which
// collecting gives.
void
group_submit(const struct worker *w, struct flight *f, struct group *g)
{
	unsigned int slot = g->sa->crypto_slot;

	for (uint16_t done = 0; done < g->n;) {
		uint16_t took = rte_cryptodev_enqueue_burst(crypto_dev_id(slot), w->crypto_qp,
							    g->ops + done, (uint16_t)(g->n - done));

		done = (uint16_t)(done + took);
		f->n[slot] = (uint16_t)(f->n[slot] + took);
		if (took == 0)
			collect(w, f, slot);
	}
}

// The devices are software: a dequeue that finds nothing makes them finish what
// is left in their lanes (trap 35), so this ends. Which op belongs to which packet
// needs no telling, it travels in the packet.
void
flight_drain(const struct worker *w, struct flight *f)
{
	for (unsigned int slot = 0; slot < crypto_n_devs(); slot++)
		while (f->n[slot] > 0)
			collect(w, f, slot);
}

uint16_t
group_next(struct group *g, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t left = 0;

	g->sa = pkt(pkts[0])->sa;
	g->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (pkt(pkts[i])->sa == g->sa)
			g->pkts[g->n++] = pkts[i];
		else
			pkts[left++] = pkts[i];
	}
	return left;
}

void
group_drop(struct worker *w, struct group *g, uint16_t from, enum drop_reason why)
{
	for (uint16_t i = from; i < g->n; i++)
		drop(w, g->pkts[i], why);
	g->n = from;
}

// prepare() moves the mbufs it refuses to the end but compacts the ops (trap 19):
// then op and packet no longer belong together and none can be used. It has
// nothing to refuse, since all it looks at was checked before.
bool
group_prepare(struct worker *w, struct group *g)
{
	for (uint16_t i = 0; i < g->n; i++) {
		g->ops[i] = &pkt(g->pkts[i])->op;
		g->ops[i]->mempool = NULL;
		pkt(g->pkts[i])->sym.m_dst = NULL; // trap 28
	}
	if (likely(rte_ipsec_pkt_crypto_prepare(&g->sa->session, g->pkts, g->ops, g->n) == g->n))
		return true;
	group_drop(w, g, 0, DROP_esp_prepare);
	return false;
}

void
burst_number(struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		pkt(pkts[i])->slot = (uint8_t)i;
}

void
burst_restore(struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *by_slot[BURST] = {NULL};
	uint16_t out = 0;

	for (uint16_t i = 0; i < n; i++)
		by_slot[pkt(pkts[i])->slot] = pkts[i];
	for (uint16_t i = 0; i < BURST && out < n; i++)
		if (by_slot[i] != NULL)
			pkts[out++] = by_slot[i];
}
