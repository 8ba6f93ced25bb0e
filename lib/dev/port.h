/* SPDX-License-Identifier: BSD-3-Clause */
// A port of the configuration as an ethdev: found or made, set up, started.
#pragma once

#include "config.h"
#include "err.h"

#include <rte_ether.h>

#include <stdbool.h>
#include <stdint.h>

struct rte_epoll_event;
struct rte_mempool;

struct port {
	char name[CFG_NAME_MAX];   // of the configuration
	uint16_t port_id;          // of ethdev
	uint16_t n_rxq;            //
	uint16_t n_txq;            // may be fewer than workers: then they share
	struct rte_ether_addr mac; // that frames to us carry
	bool rx_cksum;             // the device checks IPv4 header checksums
	bool virtual;              // hotplugged by sgw, removed by port_close()
	bool started;              //
	bool rx_intr;              // set up with interrupts of its rx queues
	unsigned int ifindex;      // of the interface below net_af_packet, else 0
	uint32_t descriptors;      // packet buffers that its queues can hold, 0: virtual
};

/**
 * Find the NIC, or hotplug the virtual device, that a port names.
 * @return 0 or -errno, with err filled (EXIT_MACHINE: says what is there)
 */
int port_open(const struct cfg_port *c, struct port *p, struct err *err);

/**
 * Configure queues, MTU, MAC address, filters; start.
 * @param n_rxq    wanted number of rx queues; fewer are taken when the device has no more
 * @param n_txq    the same for tx queues
 * @param rx_intr  ask for rx interrupts; a device that refuses goes on without
 * @param pool     packet buffers
 */
int port_start(const struct cfg_port *c, struct port *p, uint16_t n_rxq, uint16_t n_txq, bool rx_intr,
	       struct rte_mempool *pool, struct err *err);

/** A VLAN subinterface: the queues and the MAC address of its started parent. */
void port_vlan(const struct cfg_port *c, const struct port *parent, struct port *p);

/**
 * Longest packet, bytes of L3, that a port can bring: its MTU; but net_af_packet lets
 * the kernel put IPv4 fragments together before they come (PACKET_FANOUT_FLAG_DEFRAG),
 * up to its framesz. They are cut again on their way out.
 */
uint16_t port_rx_max(const struct cfg_port *c);

// wake.c
/** What lies below a virtual device and could wake a thread; port_open() asks. */
void port_wake_source(const struct cfg_port *c, struct port *p);
/**
 * Let an rx queue of a started port wake an epoll descriptor, with an edge a packet or
 * so. The queue has to be armed by rte_eth_dev_rx_intr_enable() where that works.
 * @param event  kept as long as epfd
 * @return 0, or -ENOTSUP: it can not, and nothing has been logged
 */
int port_wakes(const struct port *p, uint16_t queue, int epfd, struct rte_epoll_event *event);

/** Stop and close; removes a device that port_open() made. */
void port_close(struct port *p);
