/* SPDX-License-Identifier: BSD-3-Clause */
// What the workers look things up in: built whole from the configuration, then
// only read. Neighbours and SAs inside have their own locks.
#pragma once

#include "addr.h"
#include "config.h"
#include "worker.h"

#include <rte_ether.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rte_fib;
struct rte_fib6;
struct sad;
struct spd;
struct sa;
struct neigh_table;

// A port as the packet path sees it; the index is the configuration's.
struct tport {
	char name[CFG_NAME_MAX];     //
	uint16_t port_id;            // of ethdev
	uint16_t mtu;                // bytes of L3
	uint16_t rx_max;             // longest packet that may come in, at least the MTU
	uint16_t vlan;               // tag of a subinterface, 0: the port itself
	uint16_t parent;             // index of the port that the device belongs to
	uint16_t *by_vlan;           // of its subinterfaces: index + 1 by tag, NULL: it has none
	struct rte_ether_addr mac;   // ours
	uint64_t mac_word;           // the same, in the first six bytes in memory
	bool rx_cksum;               // the device says whether an IPv4 checksum is good
	bool tx_shared;              // fewer tx queues than workers: lock around tx
	uint16_t n_txq;              //
	uint32_t n_addresses;        //
	struct prefix *addresses;    // ours, with the connected prefix
	struct addr link_local;      // fe80::… from the MAC (EUI-64), ours as well
};

// A pair of tunnel endpoints and its SAs. Route-based ones have a name and
// addresses; those that only policies use have none.
struct tunnel {
	char name[CFG_NAME_MAX];  // of the interface, or "local-remote"
	uint32_t index;           // into tables.tunnels
	struct addr local;        //
	struct addr remote;       //
	uint32_t reqid;           // 0: any
	bool interface;           // route-based
	bool transport;           // no tunnel at all: a pair of ends in transport mode
	uint16_t mtu;             // largest inner packet that leaves unfragmented
	uint16_t nexthop;         // of the remote address, index into tables.nexthops
	uint32_t n_addresses;     //
	struct prefix *addresses; // ours on the interface
	struct sa *sa_out;        // NULL: everything for this tunnel is dropped
	struct tunnel_path *path; // never NULL
};

// What ICMP has told about the path of a tunnel; written by any worker.
struct tunnel_path {
	_Atomic uint64_t until; // TSC: valid up to here, 0: nothing was told
	_Atomic uint16_t inner; // largest inner packet
};

enum nexthop_kind {
	NEXTHOP_NONE,    // no route
	NEXTHOP_GATEWAY, // out of `port`, to `gateway`
	NEXTHOP_ONLINK,  // out of `port`, to the destination itself
	NEXTHOP_TUNNEL,  // into `tunnel`
	NEXTHOP_LOCAL,   // one of our own addresses
	NEXTHOP_DISCARD,
};

struct nexthop {
	uint8_t kind;                // enum nexthop_kind
	uint16_t port;               // index into tables.ports
	struct addr gateway;         //
	const struct tunnel *tunnel; //
};

struct tables {
	uint64_t generation; // no two tables of a process have the same
	bool mss_clamp; //
	uint32_t n_ports;
	struct tport *ports;
	uint32_t n_tunnels;
	struct tunnel *tunnels;
	struct tunnel_path *paths; // of the tunnels, in their order
	uint32_t n_timed;         //
	struct tunnel **timed;    // tunnels that send something by themselves
	uint32_t n_nexthops; // index 0 is NEXTHOP_NONE
	struct nexthop *nexthops;
	struct rte_fib *fib4;
	struct rte_fib6 *fib6;
	struct sad *sad;          // inbound SAs by SPI and destination
	struct spd *spd;          // policies
	struct neigh_table *neigh; // ARP and NDP
	uint16_t link_local_nexthop; // that of port 0; those of the others follow
	uint32_t n_sas;           //
	struct sa **sas;          // in the configuration's order
};

#define VLAN_IDS 4096

/**
 * The port that a frame with a tag came to: a subinterface, or with a priority tag (VLAN 0)
 * the port itself (IEEE 802.1Q).
 * @param tci  of the tag, host byte order
 * @return -1: no subinterface has it
 */
static inline int
vlan_port(const struct tables *t, uint16_t port, uint16_t tci)
{
	uint16_t vlan = tci & (VLAN_IDS - 1);

	if (vlan == 0)
		return port;
	return t->ports[port].by_vlan == NULL ? -1 : t->ports[port].by_vlan[vlan] - 1;
}

struct port;

/**
 * Build everything from the configuration.
 *
 * @param c      checked configuration
 * @param ports  started ports, in the configuration's order
 * @param sas    SAs in the configuration's order; tables_free() does not free them
 * @return NULL with err filled
 */
struct tables *tables_build(const struct config *c, const struct port *ports, struct sa **sas,
			    struct err *err);
void tables_free(struct tables *t);

/** One lookup. addr in network byte order, 4 or 16 bytes. @return never NULL. */
const struct nexthop *route_find(const struct tables *t, uint8_t family, const void *addr);

/**
 * Indices of the next hops of a burst's destinations (or sources), n ≤ BURST;
 * 0 where there is no route.
 */
void route_destinations(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out,
			uint16_t n);
void route_sources(const struct tables *t, struct rte_mbuf *const *pkts, uint16_t *out, uint16_t n);

/** true when the address is one of ours (ports, tunnels, link-local). */
bool tables_is_own(const struct tables *t, uint8_t family, const void *addr);
