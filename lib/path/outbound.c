/* SPDX-License-Identifier: BSD-3-Clause */
// The way out of everything that is forwarded, whether it came protected or in
// clear, and of what sgw makes itself.
#include "stage.h"

void
outbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	n = policy_select(w, pkts, n);
	n = mtu_fit(w, pkts, n);
	n = esp_seal(w, pkts, n);
	n = route(w, pkts, n);
	n = frag_fit(w, pkts, n);
	n = neigh_resolve(w, pkts, n);
	tx(w, pkts, n);
}
