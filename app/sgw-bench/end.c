/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

#include "cksum.h"

#include <rte_arp.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define ETHERTYPE_EXPERIMENT 0x88b5 // IEEE 802: local experiments
#define NA_LEN (40 + 32)            // IPv6, neighbour advertisement with one option

static const char *const rings[] = {"net_memif", "net_ring", "net_vhost", "net_virtio_user"};

int
end_open(struct end *e, const char *role, const char *name, uint16_t mtu, struct err *err)
{
	struct cfg_port *c = &e->cfg;

	e->role = role;
	*c = (struct cfg_port){.mtu = mtu, .kind = CFG_PORT_DEVICE};
	snprintf(c->name, sizeof(c->name), "%s", role);
	if (strlen(name) >= sizeof(c->device))
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "%s: its name is longer than %zu characters", role,
			       sizeof(c->device) - 1);
	snprintf(c->device, sizeof(c->device), "%s", name);
	if (mac_parse(name, &c->mac) == 0) {
		c->kind = CFG_PORT_MAC;
		c->has_mac = true;
	} else if (strncmp(name, "net_", 4) != 0) {
		c->kind = CFG_PORT_PCI;
	}
	return port_open(c, &e->port, err);
}

int
end_start(struct end *e, struct rte_mempool *pool, struct err *err)
{
	struct rte_eth_fc_conf pause = {.mode = RTE_ETH_FC_NONE};
	int rc = port_start(&e->cfg, &e->port, 1, 1, false, pool, err);

	if (rc != 0)
		return rc;
	// A device that can stop the sender loses nothing; virtual ones have no such thing.
	rte_eth_dev_flow_ctrl_set(e->port.port_id, &pause);
	rte_eth_promiscuous_enable(e->port.port_id); // what is not for us is seen, and said
	for (size_t i = 0; i < RTE_DIM(rings); i++)
		e->ring |= strncmp(e->cfg.device, rings[i], strlen(rings[i])) == 0;
	e->l2_len = e->vlan == 0 ? RTE_ETHER_HDR_LEN : RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
	rte_spinlock_init(&e->lock);
	return 0;
}

void
end_close(struct end *e)
{
	if (e->role != NULL)
		port_close(&e->port);
}

bool
end_link(const struct end *e, char *text, size_t size)
{
	struct rte_eth_link link = {0};

	rte_eth_link_get_nowait(e->port.port_id, &link);
	if (text != NULL && link.link_status)
		snprintf(text, size, "%u Mb/s %s", link.link_speed,
			 link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX ? "full" : "half");
	else if (text != NULL)
		snprintf(text, size, "down");
	return link.link_status == RTE_ETH_LINK_UP;
}

static void
put_l2(const struct end *e, uint8_t *l2, const uint8_t *to, uint16_t type)
{
	memcpy(l2, to, 6);
	memcpy(l2 + 6, e->port.mac.addr_bytes, 6);
	if (e->vlan != 0) {
		l2[12] = 0x81;
		l2[13] = 0;
		l2[14] = (uint8_t)(e->vlan >> 8);
		l2[15] = (uint8_t)e->vlan;
	}
	l2[e->l2_len - 2] = (uint8_t)(type >> 8);
	l2[e->l2_len - 1] = (uint8_t)type;
}

bool
end_frame(const struct end *e, struct rte_mbuf *m, uint8_t family)
{
	char *l2 = rte_pktmbuf_prepend(m, e->l2_len);

	if (l2 == NULL)
		return false;
	put_l2(e, (uint8_t *)l2, e->gateway,
	       family == 4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	return true;
}

uint16_t
end_send(struct end *e, struct rte_mbuf **pkts, uint16_t n)
{
	rte_spinlock_lock(&e->lock);
	n = rte_eth_tx_burst(e->port.port_id, 0, pkts, n);
	rte_spinlock_unlock(&e->lock);
	return n;
}

static void
answer(struct end *e, struct rte_mbuf *m)
{
	m->ol_flags = 0;
	if (end_send(e, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

void
end_arp(struct end *e, struct rte_mbuf *m, uint16_t l2_len)
{
	struct rte_arp_hdr *arp = rte_pktmbuf_mtod_offset(m, struct rte_arp_hdr *, l2_len);
	uint8_t *l2 = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t asked;

	if (m->data_len < l2_len + sizeof(*arp) ||
	    arp->arp_opcode != rte_cpu_to_be_16(RTE_ARP_OP_REQUEST) ||
	    arp->arp_protocol != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
	    arp->arp_data.arp_sip == arp->arp_data.arp_tip ||
	    arp->arp_data.arp_sip == 0 || l2_len != e->l2_len) {
		// An announcement, somebody who looks for duplicates (RFC 5227), an answer, nonsense.
		rte_pktmbuf_free(m);
		return;
	}
	asked = arp->arp_data.arp_tip;
	arp->arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_tip = arp->arp_data.arp_sip;
	arp->arp_data.arp_tha = arp->arp_data.arp_sha;
	arp->arp_data.arp_sip = asked;
	arp->arp_data.arp_sha = e->port.mac;
	put_l2(e, l2, arp->arp_data.arp_tha.addr_bytes, RTE_ETHER_TYPE_ARP);
	answer(e, m);
}

bool
is_solicitation(const uint8_t *ip, uint32_t len)
{
	return len >= 64 && ip[6] == IPPROTO_ICMPV6 && ip[7] == 255 && ip[40] == 135;
}

// RFC 4861 section 4.4: solicited and override, with our link-layer address.
void
end_solicited(struct end *e, struct rte_mbuf *m, uint16_t l2_len)
{
	static const uint8_t none[16];
	uint8_t *l2 = rte_pktmbuf_mtod(m, uint8_t *), *ip = l2 + l2_len, target[16], to[6];
	uint16_t sum;

	memcpy(target, ip + 48, 16);
	memcpy(to, l2 + 6, 6);
	if (memcmp(ip + 8, none, 16) == 0 || l2_len != e->l2_len || // somebody looks for duplicates
	    (m->pkt_len < l2_len + (uint32_t)NA_LEN &&
	     rte_pktmbuf_append(m, (uint16_t)(l2_len + NA_LEN - m->pkt_len)) == NULL)) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - l2_len - NA_LEN));
	memcpy(ip + 24, ip + 8, 16);
	memcpy(ip + 8, target, 16);
	ip[4] = 0;
	ip[5] = NA_LEN - 40;
	memset(ip + 40, 0, 8);
	ip[40] = 136;
	ip[44] = 0x60;
	memcpy(ip + 48, target, 16);
	ip[64] = 2; // target link-layer address
	ip[65] = 1;
	memcpy(ip + 66, e->port.mac.addr_bytes, 6);
	sum = cksum_l4(6, ip + 8, ip + 24, IPPROTO_ICMPV6, ip + 40, NA_LEN - 40);
	memcpy(ip + 42, &sum, 2);
	put_l2(e, l2, to, RTE_ETHER_TYPE_IPV6);
	answer(e, m);
}

void
end_announce(struct end *e, struct rte_mempool *pool)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		return;
	memset(rte_pktmbuf_append(m, 60), 0, 60);
	put_l2(e, rte_pktmbuf_mtod(m, uint8_t *), all, ETHERTYPE_EXPERIMENT);
	answer(e, m);
}
