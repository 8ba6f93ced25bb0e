/* SPDX-License-Identifier: BSD-3-Clause */
// What all makers of own packets (neigh_msg.c, local.c, icmp.c) share.
#pragma once

#include "pkt.h"
#include "tables.h"
#include "worker.h"

// Answers to others (echo replies, ARP and ND answers), a worker: see echo_bucket.
#define LOCAL_ANSWER_RATE 10000 // a second
#define LOCAL_ANSWER_BURST 1000

#define LOCAL_TTL 64 // RFC 1700; TTL and hop limit of own packets

/** Forget what was known about the packet in this mbuf: it becomes one of ours. */
static inline void
local_own(struct rte_mbuf *m)
{
	struct pkt *p = pkt(m);

	p->sa = NULL;
	p->tunnel = NULL;
	p->sequence = 0;
	p->nexthop = PKT_NO_NEXTHOP;
	p->flags = PKT_LOCAL;
	p->l4_off = 0;
	p->sport = 0;
	p->dport = 0;
	p->family = 0;
	p->proto = 0;
	m->ol_flags = 0;
	m->tx_offload = 0;
}

/**
 * A fresh empty mbuf, counted as originated.
 * @param provoker  m->port of the packet that made us do it
 * @return NULL when the pool is empty
 */
static inline struct rte_mbuf *
local_alloc(struct worker *w, uint16_t provoker)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);

	if (m == NULL)
		return NULL;
	local_own(m);
	m->port = provoker;
	w->ports[provoker].originated++;
	return m;
}
