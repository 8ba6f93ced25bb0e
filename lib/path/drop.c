/* SPDX-License-Identifier: BSD-3-Clause */
#include "drop.h"

#include "pkt.h"
#include "sa.h"
#include "tables.h"
#include "worker.h"

_Static_assert(DROP_COUNT <= SA_REASONS, "an SA has room for every reason");

const struct drop_info drop_infos[DROP_COUNT] = {
#define X(n, c, t) [DROP_##n] = {.name = #n, .text = t, .class = DROP_CLASS_##c},
	DROP_REASONS(X)
#undef X
};

void
drop(struct worker *w, struct rte_mbuf *m, enum drop_reason why)
{
	struct sa *sa = pkt(m)->sa;

	w->ports[m->port].ended[why]++;
	if (sa != NULL)
		sa->stats[w->index].ended[why]++;
	rte_pktmbuf_free(m);
}
