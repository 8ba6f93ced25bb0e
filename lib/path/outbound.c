/* SPDX-License-Identifier: BSD-3-Clause */
// The way out of everything that is forwarded, whether it came protected or in
// clear, and of what sgw makes itself.
#include "frag.h"
#include "stage.h"

static void
leave(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *batch[BURST];
	struct split cut = {0};
	uint16_t at = 0;

	n = esp_seal(w, pkts, n);
	do {
		uint16_t ready = frag_fit(w, pkts, n, &at, &cut, batch);

		ready = neigh_resolve(w, batch, ready);
		tx(w, batch, ready);
	} while (at < n || cut.whole != NULL);
}

void
outbound_sealed(struct worker *w, struct rte_mbuf *m)
{
	leave(w, &m, 1);
}

void
outbound(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	n = policy_select(w, pkts, n);
	outbound_known(w, pkts, n);
}

void
outbound_known(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *batch[BURST];
	struct split cut = {0};
	uint16_t at = 0;

	do {
		uint16_t ready = mtu_fit(w, pkts, n, &at, &cut, batch);

		w->cutting = at < n || cut.whole != NULL;
		leave(w, batch, ready);
	} while (at < n || cut.whole != NULL);
}
