/* SPDX-License-Identifier: BSD-3-Clause */
// The generator's two ends of the cable: its ports, as hosts on their links.
#pragma once

#include "args.h"
#include "err.h"
#include "port.h"

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include <stdbool.h>
#include <stdint.h>

struct end {
	const char *role;    // "-t", "-r"
	struct cfg_port cfg; //
	struct port port;    //
	uint8_t gateway[6];  // where its frames go
	uint16_t vlan;       // tag of its frames, 0: none
	uint8_t l2_len;      // 14, or 18 with a tag
	bool ring;           // shared memory with the device: its receive queue
	rte_spinlock_t lock; // of the tx queue: traffic and answers share it
};

/**
 * A port by its name: "0000:02:00.0", a MAC address, or device arguments of a virtual one
 * ("net_af_packet0,iface=eth1"). Opened, not started.
 * @param role  for messages
 */
int end_open(struct end *e, const char *role, const char *name, uint16_t mtu, struct err *err);
int end_start(struct end *e, struct rte_mempool *pool, struct err *err);
void end_close(struct end *e);

/** Up? @param text  filled: "1000 Mb/s full" or "down" */
bool end_link(const struct end *e, char *text, size_t size);

/** Send. @return how many the port took */
uint16_t end_send(struct end *e, struct rte_mbuf **pkts, uint16_t n);

/** Write the Ethernet header in front of an IP packet. @return false: no room */
bool end_frame(const struct end *e, struct rte_mbuf *m, uint8_t family);

/**
 * A frame that is no traffic: answers ARP requests and neighbour solicitations for any address,
 * since there is only the device under test on the cable. Takes m, which stands at L2.
 * @param l2_len  with its tags
 */
void end_arp(struct end *e, struct rte_mbuf *m, uint16_t l2_len);
void end_solicited(struct end *e, struct rte_mbuf *m, uint16_t l2_len);

/** Is it a neighbour solicitation? @param ip  an IPv6 header, len bytes from there on */
bool is_solicitation(const uint8_t *ip, uint32_t len);

/** Tell switches where we are (a frame of EtherType 0x88b5). */
void end_announce(struct end *e, struct rte_mempool *pool);
