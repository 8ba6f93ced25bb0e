/* SPDX-License-Identifier: BSD-3-Clause */
// The way of everything that arrives, as far as it is the same for all, and of
// ESP to us up to the packet that was inside.
#include "flow.h"
#include "stage.h"

void
inbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *known[BURST], *esp[BURST];
	uint16_t n_known, n_esp;

	// Flows whose way was decided before take a short one.
	n = flow_take(w, pkts, n, known, &n_known, esp, &n_esp);

	n = eth_accept(w, pkts, n);
	n = ip_check(w, pkts, n);
	n = frag_join(w, pkts, n);
	n = ip_spoof(w, pkts, n);
	n = esp_select(w, pkts, n, esp, &n_esp);

	// What came protected.
	n_esp = esp_open(w, esp, n_esp);
	n_esp = flow_take_inner(w, esp, n_esp, known, &n_known);
	w->unsealed = (uint16_t)(n_esp + n);
	outbound_known(w, known, n_known);
	n_esp = frag_join(w, esp, n_esp);
	n_esp = ip_spoof(w, esp, n_esp);
	n_esp = policy_verify(w, esp, n_esp);
	n_esp = local_take(w, esp, n_esp);
	n_esp = ip_hop(w, esp, n_esp);
	w->unsealed = n;
	outbound(w, esp, n_esp);

	// What came in clear.
	n = policy_clear(w, pkts, n);
	n = local_take(w, pkts, n);
	n = ip_hop(w, pkts, n);
	w->unsealed = 0;
	outbound(w, pkts, n);
}
