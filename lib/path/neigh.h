/* SPDX-License-Identifier: BSD-3-Clause */
// The neighbours of all ports: who has which MAC address (ARP, RFC 826; NDP,
// RFC 4861). Workers read without locks and learn under the lock of one set; the
// control thread adds the static ones and looks.
#pragma once

#include "addr.h"
#include "err.h"

#include <rte_ether.h>

#include <stdbool.h>
#include <stdint.h>

struct neigh_table;
struct rte_mbuf;
struct tport;
struct worker;

#define NEIGH_WAYS 8          // entries of a set
#define NEIGH_SETS 1024       // a power of two
#define NEIGH_QUEUE_MAX 8     // packets that wait for one neighbour
#define NEIGH_QUEUED_MAX 1024 // packets that wait for all of them together

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, // asked, no answer yet; packets wait
	NEIGH_REACHABLE,  // answered; called stale when that is long ago
	NEIGH_PROBE,      // being asked again, the old MAC address stays in use
	NEIGH_FAILED,     // did not answer; packets are dropped for a while
	NEIGH_STATIC,     // from the configuration, never changes
};

// A copy of an entry for people.
struct neigh_info {
	uint16_t port;             // index into tables.ports
	struct addr addr;          //
	struct mac mac;            // zero when not known
	enum neigh_state state;    //
	uint8_t queued;            // packets that wait
	uint64_t confirmed_tsc;    // last answer
	uint64_t used_tsc;         // last packet sent there (coarse), 0: never
};

/**
 * @param queued_max  packets that may wait in all, at most NEIGH_QUEUED_MAX
 * @return NULL when there is no memory
 */
struct neigh_table *neigh_create(uint32_t queued_max);
/** Packets still waiting are lost for the counters: neigh_drain() first. */
void neigh_free(struct neigh_table *t);

/**
 * Add an entry that nothing learned will change. One that exists is replaced.
 * @param port  index into tables.ports
 * @return 0, -EINVAL (a MAC address that no single host has) or -ENOSPC
 */
int neigh_add_static(struct neigh_table *t, uint16_t port, const struct addr *addr,
		     const struct mac *mac, struct err *err);

/** Call back with a copy of every entry; from the control thread. */
void neigh_walk(const struct neigh_table *t,
		void (*visit)(const struct neigh_info *info, void *arg), void *arg);

/** "incomplete", "reachable", … */
const char *neigh_state_name(enum neigh_state state);

/** Drop all that waits, with DROP_stopping, counted in w. */
void neigh_drain(struct worker *w, struct neigh_table *t);

// ---- between neigh.c (table) and neigh_msg.c (messages) ----

enum neigh_how {
	NEIGH_CREATE = 1 << 0,   // may make a new entry
	NEIGH_CONFIRM = 1 << 1,  // answers a solicitation of ours: is reachable
	NEIGH_OVERRIDE = 1 << 2, // may replace another MAC address
};

/**
 * A neighbour has told its MAC address; what waits for it is sent. Unsound
 * addresses are ignored.
 * @param mac  NULL: told that it is there, but not its MAC address
 * @param how  enum neigh_how
 */
void neigh_learn(struct worker *w, uint16_t port, const struct addr *addr,
		 const struct rte_ether_addr *mac, unsigned int how);

/** Send one packet (IP header first) to a neighbour, or queue it; takes it. */
void neigh_output(struct worker *w, uint16_t port, const struct addr *addr, struct rte_mbuf *m);

/**
 * Ask for a neighbour: to all (mac NULL) or to the one who had it.
 * @param provoker  port index on which the question counts as originated
 */
void neigh_solicit(struct worker *w, uint16_t port, const struct addr *addr,
		   const struct rte_ether_addr *mac, uint16_t provoker);

/** Put an Ethernet header in front, with the port's tag. @return false: no headroom */
bool neigh_frame(struct rte_mbuf *m, const struct rte_ether_addr *dst, const struct tport *tp,
		 uint16_t type);
