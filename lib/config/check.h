/* SPDX-License-Identifier: BSD-3-Clause */
// What can only be seen when the whole file has been read: references,
// clashes, overlaps. Each check stays silent where a mistake that was reported
// already would only echo.
#pragma once

#include "load.h"
#include "lpm.h"

// One of our own addresses, and the interface that has it.
struct own {
	struct prefix prefix;    // host bits as written
	enum section section;    // SEC_PORTS or SEC_TUNNELS
	uint32_t index;          // of the port or tunnel
	const struct node *node; // where it was written
};

// The two ends of an SA, and what else ties it to a tunnel or policy.
struct ends {
	struct addr src;
	struct addr dst;
	bool transport;
	bool inbound;
	uint32_t reqid;
	uint32_t sa; // its index
};

struct ends_span {
	const struct ends *first;
	uint32_t n;
};

// What a policy in transport mode finds among the SAs.
struct transport_use {
	const struct cfg_sa *first;      // of those that it can use, NULL: none
	const struct cfg_sa *other_ends; // the first that it can use and that has other ends
	const struct cfg_sa *other_mode; // one that only the mode keeps away
	bool other_reqid;                // there is one that only the reqid keeps away
};

struct check {
	struct load *l;       //
	struct config *c;     //
	struct own *own;      // sorted by address, then by place in the file
	uint32_t n_own;       //
	struct lpm connected; // the prefixes of own
	struct lpm routes;    // those and the static routes
	struct ends *ends;    // of all SAs, sorted: ends, mode, reqid, place in the file
	bool *sa_used;        // by a tunnel or policy, one an SA
	bool *sa_tunnel;      // belongs to a tunnel, one an SA
	bool *sa_ipv6;        // IPv6 packets can be meant for it, one an SA
	bool *tunnel_ipv6;    // IPv6 is routed into it, one a tunnel
};

/** All checks. Completes what only the whole can tell: gateways, directions. */
void check_all(struct load *l);

/** The interface that has this address, or NULL. */
const struct own *own_find(const struct check *k, const struct addr *a);
/** true when the address is on a port, where ESP can be sent and received. */
bool own_is_port(const struct check *k, const struct addr *a);

/**
 * Is it the network or broadcast address of one of the IPv4 prefixes?
 * @param what  "network" or "broadcast"
 * @param net   the prefix, host bits clear
 */
bool edge_find(const struct prefix *list, uint32_t n, const struct addr *a, const char **what,
	       struct prefix *net);

/** Find where gateways lie; doubles; sets check.routes up. */
void check_routes(struct check *k);
/** Report when the way to an outer address leads into a tunnel or nowhere. */
void check_outer_route(struct check *k, const struct node *item, const char *key,
		       const struct addr *remote);

// check_ends.c: with thousands of SAs and policies, nobody looks at each with each.
/** Once the direction of all SAs is known. @return memory was there */
bool ends_build(struct check *k);
/** The first SA with these ends, mode and reqid, or NULL. */
const struct ends *ends_find(const struct check *k, const struct addr *src, const struct addr *dst,
			     bool transport, uint32_t reqid);
/** All SAs with these ends and mode, ascending by reqid. */
struct ends_span ends_pair(const struct check *k, const struct addr *src, const struct addr *dst,
			   bool transport);
/** The SAs that a protect policy in transport mode is about. */
struct transport_use ends_transport(const struct check *k, const struct cfg_policy *p);
/** Fills sa_used and sa_ipv6, as far as policies tell. */
void ends_mark(struct check *k);

/** Are the outer addresses the tunnel's, and the mode too? The reqid is not looked at. */
bool tunnel_matches(const struct cfg_tunnel *t, const struct cfg_sa *sa);
void check_sas(struct check *k);
/** What no two SAs may have in common; each is told of the first one before it. */
void check_doubles_sa(struct check *k);
/** Warn about packets that are longer than what an SA and its port take. */
void check_sizes(struct check *k);
void check_policies(struct check *k);
