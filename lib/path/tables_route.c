/* SPDX-License-Identifier: BSD-3-Clause */
// Next hops and the forwarding tables.
#include "tables_build.h"

#include "compat.h"
#include "index.h"

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>

#include <stdlib.h>
#include <string.h>

#define NEXTHOPS_MAX 32767  // 15 bits in an entry of 2 bytes
#define ROUTES_SPARE 64     // for what changes
#define TBL8_SPARE 256      // groups for the same
#define TBL8_2B_MAX 32000   // groups that entries of 2 bytes can name

static int
add_route(struct tables *t, const struct prefix *to, uint16_t nexthop)
{
	struct prefix net = prefix_network(to);
	uint32_t be;

	if (net.addr.family == 6)
		return rte_fib6_add(t->fib6, FIB6_ADDR(net.addr.b), net.len, nexthop);
	memcpy(&be, net.addr.b, 4);
	return rte_fib_add(t->fib4, rte_be_to_cpu_32(be), net.len, nexthop);
}

static uint16_t
add_nexthop(struct tables *t, struct nexthop nh)
{
	t->nexthops[t->n_nexthops] = nh;
	return (uint16_t)t->n_nexthops++;
}

// What tells next hops apart. No padding: it is compared as bytes.
struct place {
	const struct tunnel *tunnel;
	struct addr gateway;
	uint8_t kind;
	uint16_t port;
	uint32_t zero;
};

_Static_assert(sizeof(struct place) == sizeof(void *) + sizeof(struct addr) + 7, "no padding in struct place");

#define PLACE_OF(nh)                                                                            \
	((const struct place){.tunnel = (nh)->tunnel, .gateway = (nh)->gateway, .kind = (nh)->kind, \
			      .port = (nh)->port})

// One next hop for all routes to the same place.
static int
find_nexthop(struct tables *t, struct index *places, const struct nexthop *nh)
{
	const struct place p = PLACE_OF(nh);
	uint32_t at = index_find(places, &p);

	if (at != INDEX_NONE)
		return (int)at;
	if (t->n_nexthops == NEXTHOPS_MAX)
		return -ENOSPC;
	return (int)index_put(places, &p, add_nexthop(t, *nh));
}

static int
add_connected(struct tables *t, struct index *places, const struct prefix *addresses, uint32_t n, const struct nexthop *nh)
{
	static const struct nexthop local = {.kind = NEXTHOP_LOCAL};

	for (uint32_t i = 0; i < n; i++) {
		struct prefix host = {.addr = addresses[i].addr,
				      .len = addresses[i].addr.family == 4 ? 32 : 128};
		int at = find_nexthop(t, places, nh), own = find_nexthop(t, places, &local), rc = 0;

		if (at < 0 || own < 0)
			return -ENOSPC;
		if (addresses[i].len < host.len)
			rc = add_route(t, &addresses[i], (uint16_t)at);
		if (rc == 0)
			rc = add_route(t, &host, (uint16_t)own);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
add_static(struct tables *t, struct index *places, const struct cfg_route *r)
{
	struct nexthop nh = {.kind = NEXTHOP_DISCARD};
	int at;

	if (r->kind == CFG_ROUTE_TUNNEL)
		nh = (struct nexthop){.kind = NEXTHOP_TUNNEL, .tunnel = &t->tunnels[r->index]};
	else if (r->kind == CFG_ROUTE_PORT)
		nh = (struct nexthop){.kind = r->via.family != 0 ? NEXTHOP_GATEWAY : NEXTHOP_ONLINK,
				      .port = (uint16_t)r->index, .gateway = r->via};
	at = find_nexthop(t, places, &nh);
	return at < 0 ? at : add_route(t, &r->to, (uint16_t)at);
}

// What the routes need: prefixes beyond /24 also groups of 256 entries.
struct groups {
	uint32_t routes[2]; // by family: v4, v6
	uint32_t n6;     // IPv6: what the trie reserves at most, a group for each byte
	uint32_t n4;     // IPv4: one for each /24
	uint32_t *nets4; // which these are, as numbers
};

static void
groups_add(struct groups *g, const struct prefix *p, uint8_t len)
{
	uint32_t be;

	g->routes[p->addr.family == 6]++;
	if (len <= 24)
		return;
	if (p->addr.family == 6) {
		g->n6 += (len - 24 + 7u) / 8;
		return;
	}
	memcpy(&be, p->addr.b, 4);
	g->nets4[g->n4++] = rte_be_to_cpu_32(be) >> 8;
}

// The prefixes and the hosts in them.
static void
groups_add_addresses(struct groups *g, const struct prefix *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		groups_add(g, &a[i], a[i].len);
		groups_add(g, &a[i], (uint8_t)(8 * addr_size(a[i].addr.family)));
	}
}

static int
number_cmp(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

// @param n_routes  connected ones too
static int
groups_count(const struct tables *t, const struct config *c, uint32_t n_routes, struct groups *out)
{
	struct groups g = {.nets4 = calloc(n_routes, sizeof(*g.nets4))};
	uint32_t different = 0;

	if (g.nets4 == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ports; i++)
		groups_add_addresses(&g, t->ports[i].addresses, t->ports[i].n_addresses);
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		groups_add_addresses(&g, t->tunnels[i].addresses, t->tunnels[i].n_addresses);
	for (uint32_t i = 0; i < c->n_routes; i++)
		groups_add(&g, &c->routes[i].to, c->routes[i].to.len);
	qsort(g.nets4, g.n4, sizeof(*g.nets4), number_cmp);
	for (uint32_t i = 0; i < g.n4; i++)
		different += i == 0 || g.nets4[i] != g.nets4[i - 1];
	free(g.nets4);
	*out = (struct groups){{g.routes[0] + ROUTES_SPARE, g.routes[1] + ROUTES_SPARE},
			       .n4 = different + TBL8_SPARE, .n6 = g.n6 + TBL8_SPARE};
	return 0;
}

static int
create_fibs(struct tables *t, const struct config *c, uint32_t n_routes)
{
	static unsigned int generation; // names must differ in one process
	struct groups need;

	if (groups_count(t, c, n_routes, &need) != 0)
		return -ENOMEM;
	struct rte_fib_conf conf4 = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = (int)need.routes[0],
		.dir24_8 = {
			.nh_sz = need.n4 < TBL8_2B_MAX ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B,
			.num_tbl8 = need.n4,
		},
	};
	struct rte_fib6_conf conf6 = {
		.type = RTE_FIB6_TRIE,
		.max_routes = (int)need.routes[1],
		.trie = {
			.nh_sz = need.n6 < TBL8_2B_MAX ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B,
			.num_tbl8 = need.n6,
		},
	};
	char name[32];

	snprintf(name, sizeof(name), "fib4_%u", generation);
	t->fib4 = rte_fib_create(name, SOCKET_ID_ANY, &conf4);
	snprintf(name, sizeof(name), "fib6_%u", generation++);
	t->fib6 = rte_fib6_create(name, SOCKET_ID_ANY, &conf6);
	return t->fib4 == NULL || t->fib6 == NULL ? -ENOMEM : 0;
}

static int
add_routes(struct tables *t, const struct config *c, struct index *places, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < t->n_ports; i++)
		rc = add_connected(t, places, t->ports[i].addresses, t->ports[i].n_addresses,
				   &t->nexthops[t->link_local_nexthop + i]);
	for (uint32_t i = 0; rc == 0 && i < t->n_tunnels; i++) {
		struct nexthop nh = {.kind = NEXTHOP_TUNNEL, .tunnel = &t->tunnels[i]};

		rc = add_connected(t, places, t->tunnels[i].addresses, t->tunnels[i].n_addresses, &nh);
	}
	if (rc != 0)
		return err_set(err, EXIT_RESOURCE, rc, "tables: the connected prefixes can not be added "
			       "as routes (%s)", rte_strerror(-rc));
	for (uint32_t i = 0; i < c->n_routes; i++) {
		char to[ADDR_STRLEN];

		rc = add_static(t, places, &c->routes[i]);
		if (rc != 0)
			return err_set(err, EXIT_RESOURCE, rc, "%s:%u:%u: route to %s can not be added (%s)",
				       c->file, c->routes[i].at.line, c->routes[i].at.col,
				       prefix_format(&c->routes[i].to, to), rte_strerror(-rc));
	}
	return 0;
}

int
build_routes(struct tables *t, const struct config *c, struct err *err)
{
	uint32_t n_routes = c->n_routes + ROUTES_SPARE, n_nexthops;
	struct index *places;
	int rc;

	for (uint32_t i = 0; i < t->n_ports; i++)
		n_routes += 2 * t->ports[i].n_addresses;
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		n_routes += 2 * t->tunnels[i].n_addresses;
	n_nexthops = RTE_MIN(n_routes + WORKER_PORTS + 2 + t->n_tunnels, NEXTHOPS_MAX + 1u);
	t->nexthops = calloc(n_nexthops, sizeof(*t->nexthops));
	places = index_create(n_nexthops, sizeof(struct place));
	if (t->nexthops == NULL || places == NULL || create_fibs(t, c, n_routes) != 0) {
		index_free(places);
		return no_memory(err, "the routes");
	}
	t->n_nexthops = 1; // 0: no route
	t->link_local_nexthop = (uint16_t)t->n_nexthops;
	for (uint32_t i = 0; i < t->n_ports; i++) {
		const struct nexthop nh = {.kind = NEXTHOP_ONLINK, .port = (uint16_t)i};

		index_put(places, &PLACE_OF(&nh), add_nexthop(t, nh));
	}
	rc = add_routes(t, c, places, err);
	index_free(places);
	return rc;
}
