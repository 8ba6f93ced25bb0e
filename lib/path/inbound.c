/* SPDX-License-Identifier: BSD-3-Clause */
// The way of everything that arrives, as far as it is the same for all, and of
// ESP to us up to the packet that was inside.
#include "flow.h"
#include "stage.h"

// What came out of ESP, and whose flow is not known yet.
static void
inbound_opened(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	n = frag_join(w, pkts, n);
	n = ip_spoof(w, pkts, n);
	n = policy_verify(w, pkts, n);
	n = local_take(w, pkts, n);
	n = ip_hop(w, pkts, n);
	outbound(w, pkts, n);
}

// What came in clear, likewise.
static void
inbound_clear(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	n = policy_clear(w, pkts, n);
	n = local_take(w, pkts, n);
	n = ip_hop(w, pkts, n);
	outbound(w, pkts, n);
}

void
inbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *known[BURST], *esp[BURST];
	uint16_t n_known, n_esp;

	// Flows whose way was decided before take a short one.
	n = flow_take(w, pkts, n, known, &n_known, esp, &n_esp);
	if (n > 0) {
		n = eth_accept(w, pkts, n);
		n = ip_check(w, pkts, n);
		n = frag_join(w, pkts, n);
		n = ip_spoof(w, pkts, n);
		n = esp_select(w, pkts, n, esp, &n_esp);
	}
	if (n_esp > 0) {
		n_esp = esp_open(w, esp, n_esp);
		n_esp = flow_take_inner(w, esp, n_esp, known, &n_known);
	}
	w->unsealed = (uint16_t)(n_esp + n); // what may still come to esp_seal, for steer.h
	if (n_known > 0)
		outbound_known(w, known, n_known);
	w->unsealed = n;
	if (n_esp > 0)
		inbound_opened(w, esp, n_esp);
	w->unsealed = 0;
	if (n > 0)
		inbound_clear(w, pkts, n);
}
