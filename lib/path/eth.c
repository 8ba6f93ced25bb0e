/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <rte_ether.h>

// Frames that arrive: is this one for us, and what is in it? RFC 894, RFC 2464.
static int
frame_inspect(const struct tport *port, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (unlikely(m->data_len < sizeof(*eth)))
		return DROP_eth_runt;
	// Drivers chain segments only for what does not fit our buffers.
	if (unlikely(m->nb_segs != 1 || m->pkt_len > sizeof(*eth) + port->mtu))
		return DROP_eth_oversize;
	if (unlikely(!rte_is_same_ether_addr(&eth->dst_addr, &port->mac) &&
		     !rte_is_multicast_ether_addr(&eth->dst_addr)))
		return DROP_eth_foreign;
	switch (eth->ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		pkt(m)->family = 4;
		return -1;
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		pkt(m)->family = 6;
		return -1;
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		pkt(m)->family = 0;
		return -1;
	case RTE_BE16(RTE_ETHER_TYPE_VLAN):
	case RTE_BE16(RTE_ETHER_TYPE_QINQ):
		return DROP_eth_vlan;
	}
	return DROP_eth_type;
}

uint16_t
eth_accept(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint8_t index = w->tables->port_index[m->port];
		struct pkt *p = pkt(m);
		int why;

		p->sa = NULL;
		p->tunnel = NULL;
		p->nexthop = PKT_NO_NEXTHOP;
		p->flags = 0;
		m->l2_len = 0;
		w->ports[index].rx_packets++;
		w->ports[index].rx_bytes += m->pkt_len;
		why = frame_inspect(&w->tables->ports[index], m);
		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		// An IP packet in a frame to a group is for hosts, not for a router, except
		// for neighbour discovery; local_take sorts that out by IP address.
		if (rte_is_multicast_ether_addr(rte_pktmbuf_mtod(m, struct rte_ether_addr *)))
			p->flags |= PKT_GROUP;
		rte_pktmbuf_adj(m, sizeof(struct rte_ether_hdr));
		if (p->family == 0) {
			neigh_arp(w, m);
			continue;
		}
		pkts[good++] = m;
	}
	return good;
}
