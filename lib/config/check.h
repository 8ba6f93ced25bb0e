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

struct check {
	struct load *l;       //
	struct config *c;     //
	struct own *own;      // sorted by address, then by place in the file
	uint32_t n_own;       //
	struct lpm connected; // the prefixes of own
	struct lpm routes;    // those and the static routes
	bool *sa_used;        // by a tunnel or policy, one an SA
	bool *sa_tunnel;      // belongs to a tunnel, one an SA
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
/** Is it a protect policy for the direction and addresses of the SA, whatever mode and reqid? */
bool policy_fits(const struct cfg_policy *p, const struct cfg_sa *sa);
/** Is it a policy that the SA can serve? */
bool policy_matches(const struct cfg_policy *p, const struct cfg_sa *sa);
/** Are the outer addresses the tunnel's, and the mode too? The reqid is not looked at. */
bool tunnel_matches(const struct cfg_tunnel *t, const struct cfg_sa *sa);
void check_sas(struct check *k);
/** Warn about packets that are longer than what an SA and its port take. */
void check_sizes(struct check *k);
void check_policies(struct check *k);
