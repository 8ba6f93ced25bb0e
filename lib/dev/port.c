/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "eal.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RX_DESCRIPTORS 1024
#define TX_DESCRIPTORS 1024
#define RING_HEADER 96 // of a frame in the ring of an AF_PACKET socket, and Ethernet
#define RX_MAX 16384

// What DPDK sees, for the message of one who named something else.
static void
list_devices(char *text, size_t size)
{
	size_t n = 0;
	uint16_t id;

	text[0] = '\0';
	RTE_ETH_FOREACH_DEV(id) {
		char name[RTE_ETH_NAME_MAX_LEN] = "?";
		char mac[RTE_ETHER_ADDR_FMT_SIZE] = "?";
		struct rte_ether_addr a;

		rte_eth_dev_get_name_by_port(id, name);
		if (rte_eth_macaddr_get(id, &a) == 0)
			rte_ether_format_addr(mac, sizeof(mac), &a);
		n += (size_t)snprintf(text + n, size - n, "%s%s (%s)", n > 0 ? ", " : "", name, mac);
		if (n >= size)
			return;
	}
	if (n == 0)
		snprintf(text, size, "none");
}

static int
find_mac(const struct cfg_port *c, struct port *p, struct err *err)
{
	char mac[MAC_STRLEN], seen[300];
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id) {
		struct rte_ether_addr a;

		if (rte_eth_macaddr_get(id, &a) == 0 && memcmp(a.addr_bytes, c->mac.b, 6) == 0) {
			p->port_id = id;
			return 0;
		}
	}
	list_devices(seen, sizeof(seen));
	return err_set(err, EXIT_MACHINE, -ENODEV,
		       "port %s: no NIC with MAC address %s is bound to DPDK (bound: %s); bind it with "
		       "`dpdk-devbind.py -b vfio-pci ADDRESS`", c->name, mac_format(&c->mac, mac), seen);
}

static int
find_pci(const struct cfg_port *c, struct port *p, struct err *err)
{
	char seen[300];

	if (rte_eth_dev_get_port_by_name(c->device, &p->port_id) == 0)
		return 0;
	list_devices(seen, sizeof(seen));
	return err_set(err, EXIT_MACHINE, -ENODEV,
		       "port %s: no NIC at PCI address %s is bound to DPDK (bound: %s); bind it with "
		       "`dpdk-devbind.py -b vfio-pci %s`", c->name, c->device, seen, c->device);
}

// The first thing that the driver said, without its function's name.
static const char *
first_line(char *text)
{
	char *colon, *end = strchr(text, '\n');

	if (end != NULL)
		*end = '\0';
	colon = strstr(text, "(): ");
	return colon != NULL ? colon + 4 : text;
}

static int
make_device(const struct cfg_port *c, struct port *p, struct err *err)
{
	static struct eal_capture capture;
	uint32_t level = rte_log_get_global_level();
	bool verbose = level > RTE_LOG_CRIT;
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *said;
	int rc;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(c->device, ","), c->device);
	capture.text[0] = '\0';
	if (!verbose) {
		rte_log_set_global_level(RTE_LOG_ERR); // caught, to be quoted
		eal_capture_begin(&capture);
	}
	rc = rte_dev_probe(c->device);
	if (!verbose) {
		eal_capture_end(&capture);
		rte_log_set_global_level(level);
	}
	if (rc == 0)
		rc = rte_eth_dev_get_port_by_name(name, &p->port_id);
	if (rc == 0) {
		p->virtual = true;
		port_wake_source(c, p);
		return 0;
	}
	said = first_line(capture.text);
	return err_set(err, EXIT_MACHINE, rc < 0 ? rc : -ENODEV,
		       "port %s: device \"%s\" can not be made: %s; its interface, file and arguments must "
		       "be there and right", c->name, c->device,
		       said[0] != '\0' ? said : rte_strerror(-rc));
}

int
port_open(const struct cfg_port *c, struct port *p, struct err *err)
{
	*p = (struct port){0};
	snprintf(p->name, sizeof(p->name), "%s", c->name);
	switch (c->kind) {
	case CFG_PORT_MAC:
		return find_mac(c, p, err);
	case CFG_PORT_PCI:
		return find_pci(c, p, err);
	case CFG_PORT_DEVICE:
		return make_device(c, p, err);
	case CFG_PORT_VLAN: // its parent is the device
		break;
	}
	return err_set(err, EXIT_BUG, -EINVAL, "port %s: unknown kind %d", c->name, c->kind);
}

static int
setup_queues(struct port *p, const struct rte_eth_dev_info *info, uint16_t mtu,
	     struct rte_mempool *pool)
{
	uint16_t n_rxd = RX_DESCRIPTORS, n_txd = TX_DESCRIPTORS;
	struct rte_eth_rxconf rx = info->default_rxconf;
	struct rte_eth_txconf tx = info->default_txconf;
	struct rte_eth_conf conf = {.rxmode.mtu = mtu, .intr_conf.rxq = p->rx_intr};
	int rc;

	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) {
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
		p->rx_cksum = true;
	}
	// All buffers are of one pool and have one owner, so that drivers may free fast.
	conf.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	if (p->n_rxq > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP & info->flow_type_rss_offloads;
		// One full queue of a worker that is late must not block the others.
		rx.rx_drop_en = 1;
	}
	rx.offloads = conf.rxmode.offloads;
	tx.offloads = conf.txmode.offloads;
	rc = rte_eth_dev_configure(p->port_id, p->n_rxq, p->n_txq, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->port_id, &n_rxd, &n_txd);
	for (uint16_t q = 0; rc == 0 && q < p->n_rxq; q++)
		rc = rte_eth_rx_queue_setup(p->port_id, q, n_rxd,
					    (unsigned int)rte_eth_dev_socket_id(p->port_id), &rx, pool);
	for (uint16_t q = 0; rc == 0 && q < p->n_txq; q++)
		rc = rte_eth_tx_queue_setup(p->port_id, q, n_txd,
					    (unsigned int)rte_eth_dev_socket_id(p->port_id), &tx);
	if (!p->virtual)
		p->descriptors = (uint32_t)p->n_rxq * n_rxd + (uint32_t)p->n_txq * n_txd;
	return rc;
}

// Frames to our MAC must arrive. A virtual device is not told about it and gives us
// everything (eth_accept filters in any case): told, net_tap would give the address
// to the kernel's end as well, and two hosts with one address never hear each other.
static void
setup_filters(const struct cfg_port *c, struct port *p)
{
	bool ours = true;

	rte_eth_macaddr_get(p->port_id, &p->mac);
	if (c->has_mac && memcmp(p->mac.addr_bytes, c->mac.b, 6) != 0) {
		memcpy(p->mac.addr_bytes, c->mac.b, 6);
		ours = !p->virtual && rte_eth_dev_default_mac_addr_set(p->port_id, &p->mac) == 0;
	} else if (!c->has_mac && strncmp(c->device, "net_tap", 7) == 0) {
		p->mac.addr_bytes[5] ^= 1; // what the device has is the kernel's
	}
	if (p->virtual || !ours)
		rte_eth_promiscuous_enable(p->port_id);
	if (rte_eth_allmulticast_enable(p->port_id) != 0)
		rte_eth_promiscuous_enable(p->port_id); // neighbour discovery is multicast
}

// @param set_up  how far it got
static int
bring_up(const struct cfg_port *c, struct port *p, const struct rte_eth_dev_info *info,
	 struct rte_mempool *pool, bool *set_up)
{
	int rc = setup_queues(p, info, c->mtu, pool);

	*set_up = rc == 0;
	if (rc != 0)
		return rc;
	setup_filters(c, p);
	return rte_eth_dev_start(p->port_id);
}

int
port_start(const struct cfg_port *c, struct port *p, uint16_t n_rxq, uint16_t n_txq, bool rx_intr,
	   struct rte_mempool *pool, struct err *err)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->port_id, &info);
	bool set_up;

	if (rc != 0)
		return err_set(err, EXIT_MACHINE, rc, "port %s: the device does not answer (%s)", c->name,
			       rte_strerror(-rc));
	p->n_rxq = RTE_MIN(n_rxq, info.max_rx_queues);
	p->n_txq = RTE_MIN(n_txq, info.max_tx_queues);
	if (p->n_rxq == 0 || p->n_txq == 0)
		return err_set(err, EXIT_MACHINE, -ENODEV, "port %s: device %s has %u rx and %u tx queues, "
			       "one of each is the least; give it both in its device arguments", c->name,
			       c->device, info.max_rx_queues, info.max_tx_queues);
	p->rx_intr = rx_intr;
	rc = bring_up(c, p, &info, pool, &set_up);
	if (rc != 0 && rx_intr) { // perhaps because of the interrupts: the bus has none, or too few
		p->rx_intr = false;
		rc = bring_up(c, p, &info, pool, &set_up);
	}
	if (!set_up)
		return err_set(err, EXIT_MACHINE, rc, "port %s: the device can not be set up with %u rx and "
			       "%u tx queues and MTU %u (%s)%s; "
			       "`--log-level=8` before -- tells more", c->name, p->n_rxq, p->n_txq, c->mtu,
			       rte_strerror(-rc), rc == -ENOMEM ? "; raise system.mbufs" : "");
	if (rc != 0)
		return err_set(err, EXIT_MACHINE, rc, "port %s: the device does not start (%s)", c->name,
			       rte_strerror(-rc));
	p->started = true;
	return 0;
}

void
port_close(struct port *p)
{
	struct rte_eth_dev_info info;
	bool known = rte_eth_dev_info_get(p->port_id, &info) == 0;

	if (p->started)
		rte_eth_dev_stop(p->port_id);
	rte_eth_dev_close(p->port_id);
	if (p->virtual && known)
		rte_dev_remove(info.device);
	p->started = false;
}

void
port_vlan(const struct cfg_port *c, const struct port *parent, struct port *p)
{
	*p = *parent;
	snprintf(p->name, sizeof(p->name), "%s", c->name);
	p->n_rxq = 0; // what arrives is the parent's, until the tag has been read
	p->descriptors = 0;
}

uint16_t
port_rx_max(const struct cfg_port *c)
{
	const char *at = strstr(c->device, ",framesz=");
	unsigned long size;

	if (c->kind != CFG_PORT_DEVICE || at == NULL || strncmp(c->device, "net_af_packet", 13) != 0)
		return c->mtu;
	size = strtoul(at + 9, NULL, 10);
	size = size > RING_HEADER ? size - RING_HEADER : 0;
	return (uint16_t)RTE_MIN(RTE_MAX(size, (unsigned long)c->mtu), (unsigned long)RX_MAX);
}
