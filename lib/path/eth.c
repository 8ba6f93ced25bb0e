/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <rte_ether.h>

// The EtherType, behind a tag the one inside; m->port becomes the subinterface's, and
// *len the length of what stands in front of the payload (IEEE 802.1Q).
// @return a reason to drop, or -1
static int
tag_inspect(const struct tables *t, struct rte_mbuf *m, uint16_t *type_be, uint16_t *len)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = (const void *)(eth + 1);
	int index;

	*type_be = eth->ether_type;
	*len = sizeof(*eth);
	if (likely(eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN)))
		return eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_QINQ) ? DROP_eth_vlan : -1;
	if (m->data_len < sizeof(*eth) + sizeof(*tag))
		return DROP_eth_runt;
	*type_be = tag->eth_proto;
	*len = sizeof(*eth) + sizeof(*tag);
	index = vlan_port(t, m->port, rte_be_to_cpu_16(tag->vlan_tci));
	if (index < 0)
		return DROP_eth_vlan;
	m->port = (uint16_t)index;
	return -1;
}

// Frames that arrive: is this one for us, and what is in it? RFC 894, RFC 2464.
// @return a reason to drop, or -1 with *len set
static int
frame_inspect(const struct tables *t, struct rte_mbuf *m, uint16_t *len)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	uint16_t type_be;
	int why;

	if (unlikely(m->data_len < sizeof(*eth)))
		return DROP_eth_runt;
	why = tag_inspect(t, m, &type_be, len);
	if (unlikely(why >= 0))
		return why;
	// Drivers chain segments only for what does not fit our buffers.
	if (unlikely(m->nb_segs != 1 || m->pkt_len > (uint32_t)*len + t->ports[m->port].rx_max))
		return DROP_eth_oversize;
	if (unlikely(!rte_is_same_ether_addr(&eth->dst_addr, &t->ports[m->port].mac) &&
		     !rte_is_multicast_ether_addr(&eth->dst_addr)))
		return DROP_eth_foreign;
	switch (type_be) {
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
		struct pkt *p = pkt(m);
		uint16_t len;
		int why;

		p->sa = NULL;
		p->tunnel = NULL;
		p->from = 0;
		p->nexthop = PKT_NO_NEXTHOP;
		p->flags = 0;
		m->l2_len = 0;
		why = frame_inspect(w->tables, m, &len);
		w->ports[m->port].rx_packets++;
		w->ports[m->port].rx_bytes += m->pkt_len;
		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		// An IP packet in a frame to a group is for hosts, not for a router, except
		// for neighbour discovery; local_take sorts that out by IP address.
		if (rte_is_multicast_ether_addr(rte_pktmbuf_mtod(m, struct rte_ether_addr *)))
			p->flags |= PKT_GROUP;
		rte_pktmbuf_adj(m, len);
		if (p->family == 0) {
			neigh_arp(w, m);
			continue;
		}
		pkts[good++] = m;
	}
	return good;
}
