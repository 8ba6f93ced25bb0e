/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include "sa.h"

#include <rte_mempool.h>

#include <inttypes.h>
#include <string.h>

void
stats_port(uint32_t port, struct port_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < n_workers; i++) {
		const struct port_stats *s = &workers[i]->ports[port];

		out->rx_packets += s->rx_packets;
		out->rx_bytes += s->rx_bytes;
		out->originated += s->originated;
		out->sent_on += s->sent_on;
		out->tx_packets += s->tx_packets;
		out->tx_bytes += s->tx_bytes;
		for (unsigned int r = 0; r < DROP_COUNT; r++)
			out->ended[r] += s->ended[r];
	}
}

static void
print_ended(const uint64_t *ended, FILE *out)
{
	for (unsigned int r = 0; r < DROP_COUNT; r++)
		if (ended[r] != 0)
			fprintf(out, "  %s %s %" PRIu64 "  %s\n",
				drop_infos[r].class == DROP_CLASS_TAKEN ? "taken" : "drop", drop_infos[r].name,
				ended[r], drop_infos[r].text);
}

void
stats_account(const struct tables *t, struct rte_mempool *pool, FILE *out)
{
	for (uint32_t i = 0; i < t->n_ports; i++) {
		struct port_stats s;

		stats_port(i, &s);
		fprintf(out, "port %s: received %" PRIu64 " (%" PRIu64 " bytes), originated %" PRIu64
			", sent on %" PRIu64 ", transmitted %" PRIu64 " (%" PRIu64 " bytes)\n",
			t->ports[i].name, s.rx_packets, s.rx_bytes, s.originated, s.sent_on, s.tx_packets,
			s.tx_bytes);
		print_ended(s.ended, out);
	}
	for (uint32_t i = 0; i < t->n_sas; i++) {
		struct sa_stats s;

		sa_stats_sum(t->sas[i], &s);
		fprintf(out, "sa 0x%x (%s) %s: %" PRIu64 " packets, %" PRIu64 " bytes\n", t->sas[i]->spi,
			t->sas[i]->name, t->sas[i]->inbound ? "in" : "out", s.packets, s.bytes);
		print_ended(s.ended, out);
	}
	fprintf(out, "mbufs: %u of %u free\n", rte_mempool_avail_count(pool), pool->size);
	fflush(out);
}
