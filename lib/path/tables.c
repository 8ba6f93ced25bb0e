/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables.h"

#include "alg.h"
#include "compat.h"
#include "neigh.h"
#include "port.h"
#include "sa.h"
#include "sad.h"
#include "spd.h"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_malloc.h>

#include <stdlib.h>
#include <string.h>

#define NEXTHOPS_MAX 32767  // 15 bits in an entry of 2 bytes
#define NEIGH_DRAWS 32      // of a hash for the static neighbours
#define TBL8_SPARE 256      // groups for what changes
#define TBL8_2B_MAX 32000   // groups that entries of 2 bytes can name

static int
no_memory(struct err *err, const char *what)
{
	return err_set(err, EXIT_RESOURCE, -ENOMEM, "tables: no memory for %s; provide more hugepages, or "
		       "with --no-huge give more with -m", what);
}

// ---------------------------------------------------------------- ports and tunnels

// fe80::/64 and the interface identifier of RFC 4291 appendix A.
static struct addr
link_local(const struct rte_ether_addr *mac)
{
	const uint8_t *m = mac->addr_bytes;

	return (struct addr){.family = 6, .b = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff,
						0xfe, m[3], m[4], m[5]}};
}

static int
copy_addresses(struct prefix **out, uint32_t *n_out, const struct prefix *from, uint32_t n)
{
	*out = calloc(n > 0 ? n : 1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	if (n > 0)
		memcpy(*out, from, n * sizeof(**out));
	*n_out = n;
	return 0;
}

static int
build_ports(struct tables *t, const struct config *c, const struct port *ports)
{
	t->ports = calloc(c->n_ports, sizeof(*t->ports));
	if (t->ports == NULL)
		return -ENOMEM;
	t->n_ports = c->n_ports;
	for (uint32_t i = 0; i < c->n_ports; i++) {
		const struct cfg_port *cp = &c->ports[i];
		struct tport *p = &t->ports[i];

		memcpy(p->name, cp->name, sizeof(p->name));
		p->port_id = ports[i].port_id;
		p->mtu = cp->mtu;
		p->mac = ports[i].mac;
		memcpy(&p->mac_word, &p->mac, sizeof(p->mac));
		p->rx_cksum = ports[i].rx_cksum;
		p->n_txq = ports[i].n_txq;
		p->tx_shared = ports[i].n_txq < n_workers;
		p->link_local = link_local(&p->mac);
		p->rx_max = port_rx_max(cp);
		p->vlan = cp->vlan;
		p->parent = (uint16_t)(cp->vlan != 0 ? cp->parent : i);
		if (copy_addresses(&p->addresses, &p->n_addresses, cp->addresses, cp->n_addresses) != 0)
			return -ENOMEM;
	}
	return 0;
}

// What tells tunnels apart.
struct pair {
	const struct addr *local;
	const struct addr *remote;
	uint32_t reqid;
	bool transport;
};

static bool
same_pair(const struct tunnel *t, const struct pair *p, uint32_t reqid)
{
	return addr_cmp(&t->local, p->local) == 0 && addr_cmp(&t->remote, p->remote) == 0 &&
	       t->reqid == reqid && t->transport == p->transport;
}

// Which tunnel an SA belongs to: one with its addresses and its reqid; failing
// that, one of a policy that takes any reqid.
static struct tunnel *
tunnel_of_sa(struct tables *t, const struct sa *sa)
{
	const struct pair p = {
		.local = sa->inbound ? &sa->dst : &sa->src,
		.remote = sa->inbound ? &sa->src : &sa->dst,
		.transport = sa->transport,
	};

	for (uint32_t i = 0; i < t->n_tunnels; i++)
		if (same_pair(&t->tunnels[i], &p, sa->reqid))
			return &t->tunnels[i];
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		if (same_pair(&t->tunnels[i], &p, 0))
			return &t->tunnels[i];
	return NULL;
}

// The two ends that a policy in transport mode is about: those of the first SA of
// its direction that lies inside its selectors.
static const struct cfg_sa *
transport_sa(const struct config *c, const struct cfg_policy *p)
{
	for (uint32_t i = 0; i < c->n_sas; i++) {
		const struct cfg_sa *s = &c->sas[i];

		if (s->transport && s->inbound == (p->dir == CFG_IN) &&
		    (p->reqid == 0 || p->reqid == s->reqid) && range_contains(&p->src, &s->src) &&
		    range_contains(&p->dst, &s->dst))
			return s;
	}
	return NULL;
}

// The tunnel that a policy names, made when there is none yet. One without reqid
// means the tunnel between these two addresses, whatever its reqid is.
static struct tunnel *
tunnel_of_policy(struct tables *t, const struct config *c, const struct cfg_policy *p)
{
	const struct cfg_sa *ts = p->transport ? transport_sa(c, p) : NULL;
	const struct addr *src = ts != NULL ? &ts->src : &p->tunnel_src;
	const struct addr *dst = ts != NULL ? &ts->dst : &p->tunnel_dst;
	struct pair pair = {
		.local = p->dir == CFG_OUT ? src : dst,
		.remote = p->dir == CFG_OUT ? dst : src,
		.reqid = p->reqid,
		.transport = p->transport,
	};
	struct tunnel *tun;
	char l[ADDR_STRLEN], r[ADDR_STRLEN];

	for (uint32_t i = 0; i < t->n_tunnels; i++) {
		tun = &t->tunnels[i];
		if (same_pair(tun, &pair, pair.reqid == 0 ? tun->reqid : pair.reqid))
			return tun;
	}
	// Without a reqid take that of the first SA between the two.
	for (uint32_t i = 0; pair.reqid == 0 && i < c->n_sas; i++) {
		const struct cfg_sa *s = &c->sas[i];

		if (addr_cmp(&s->src, s->inbound ? pair.remote : pair.local) == 0 &&
		    addr_cmp(&s->dst, s->inbound ? pair.local : pair.remote) == 0 &&
		    s->transport == p->transport)
			pair.reqid = s->reqid;
	}
	tun = &t->tunnels[t->n_tunnels];
	tun->index = t->n_tunnels++;
	snprintf(tun->name, sizeof(tun->name), "%.15s-%.15s", addr_format(pair.local, l),
		 addr_format(pair.remote, r));
	tun->local = *pair.local;
	tun->remote = *pair.remote;
	tun->reqid = pair.reqid;
	tun->transport = p->transport;
	return tun;
}

static int
build_tunnels(struct tables *t, const struct config *c, const struct tunnel **of_policy)
{
	uint32_t most = c->n_tunnels + c->n_policies + 1;

	t->tunnels = calloc(most, sizeof(*t->tunnels));
	t->paths = calloc(most, sizeof(*t->paths));
	t->timed = calloc(most, sizeof(struct tunnel *));
	if (t->tunnels == NULL || t->paths == NULL || t->timed == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < most; i++)
		t->tunnels[i].path = &t->paths[i];
	for (uint32_t i = 0; i < c->n_tunnels; i++) {
		const struct cfg_tunnel *ct = &c->tunnels[i];
		struct tunnel *tun = &t->tunnels[i];

		memcpy(tun->name, ct->name, sizeof(tun->name));
		tun->index = i;
		tun->local = ct->local;
		tun->remote = ct->remote;
		tun->reqid = ct->reqid;
		tun->interface = true;
		tun->mtu = ct->mtu;
		if (copy_addresses(&tun->addresses, &tun->n_addresses, ct->addresses, ct->n_addresses) != 0)
			return -ENOMEM;
	}
	t->n_tunnels = c->n_tunnels;
	for (uint32_t i = 0; i < c->n_policies; i++)
		if (c->policies[i].action == CFG_PROTECT)
			of_policy[i] = tunnel_of_policy(t, c, &c->policies[i]);
	return 0;
}

static int
build_sas(struct tables *t, const struct config *c, struct sa **sas, struct err *err)
{
	t->sad = sad_create(c->n_sas, err);
	if (t->sad == NULL)
		return -ENOMEM;
	t->sas = sas;
	t->n_sas = c->n_sas;
	for (uint32_t i = 0; i < c->n_sas; i++) {
		struct tunnel *tun = tunnel_of_sa(t, sas[i]);

		if (tun == NULL)
			return err_set(err, EXIT_BUG, -EINVAL, "sa %s: belongs to no tunnel", sas[i]->name);
		sas[i]->index = (uint16_t)i;
		sas[i]->tunnel = tun;
		if (sas[i]->inbound && sad_add(t->sad, sas[i], err) != 0)
			return -ENOMEM;
		// Of several outbound SAs the first one is sent on; the checker says so.
		if (!sas[i]->inbound && tun->sa_out == NULL)
			tun->sa_out = sas[i];
	}
	return 0;
}

// Which ESP flow_take() may take: raw, and what the full way would say of its addresses
// is known beforehand.
static void
build_short_ways(struct tables *t)
{
	static uint64_t n_built;

	t->generation = ++n_built;
	for (uint32_t i = 0; i < t->n_sas; i++) {
		struct sa *sa = t->sas[i];

		sa->short_way = sa->inbound && !sa->natt && tables_is_own(t, sa->family, sa->dst.b) &&
				!tables_is_own(t, sa->family, sa->src.b);
	}
}

// The way to the remote, and the largest inner packet that fits it with the SA.
static void
build_ways(struct tables *t)
{
	for (uint32_t i = 0; i < t->n_tunnels; i++) {
		struct tunnel *tun = &t->tunnels[i];
		const struct nexthop *nh = route_find(t, tun->remote.family, tun->remote.b);
		uint16_t mtu = UINT16_MAX;
		uint32_t inner;

		tun->nexthop = (uint16_t)(nh - t->nexthops);
		for (uint32_t p = 0; p < t->n_ports; p++)
			mtu = RTE_MIN(mtu, t->ports[p].mtu); // no route yet: be careful
		if (nh->kind == NEXTHOP_GATEWAY || nh->kind == NEXTHOP_ONLINK)
			mtu = t->ports[nh->port].mtu;
		inner = tun->sa_out == NULL ? mtu : sa_inner_mtu(tun->sa_out, mtu);
		if (tun->mtu == 0 || inner < tun->mtu)
			tun->mtu = (uint16_t)inner;
		// Only where there is a port to leave by.
		if (tun->sa_out != NULL && (tun->sa_out->dummy_ms != 0 || tun->sa_out->keepalive_s != 0) &&
		    (nh->kind == NEXTHOP_GATEWAY || nh->kind == NEXTHOP_ONLINK))
			t->timed[t->n_timed++] = tun;
	}
}

// ---------------------------------------------------------------- routes

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

// One next hop for all routes to the same place.
static int
find_nexthop(struct tables *t, const struct nexthop *nh)
{
	for (uint32_t i = 1; i < t->n_nexthops; i++) {
		const struct nexthop *o = &t->nexthops[i];

		if (o->kind == nh->kind && o->port == nh->port && o->tunnel == nh->tunnel &&
		    addr_cmp(&o->gateway, &nh->gateway) == 0)
			return (int)i;
	}
	return t->n_nexthops < NEXTHOPS_MAX ? add_nexthop(t, *nh) : -ENOSPC;
}

static int
add_connected(struct tables *t, const struct prefix *addresses, uint32_t n, const struct nexthop *nh)
{
	static const struct nexthop local = {.kind = NEXTHOP_LOCAL};

	for (uint32_t i = 0; i < n; i++) {
		struct prefix host = {.addr = addresses[i].addr,
				      .len = addresses[i].addr.family == 4 ? 32 : 128};
		int at = find_nexthop(t, nh), own = find_nexthop(t, &local), rc = 0;

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
add_static(struct tables *t, const struct cfg_route *r)
{
	struct nexthop nh = {.kind = NEXTHOP_DISCARD};
	int at;

	if (r->kind == CFG_ROUTE_TUNNEL)
		nh = (struct nexthop){.kind = NEXTHOP_TUNNEL, .tunnel = &t->tunnels[r->index]};
	else if (r->kind == CFG_ROUTE_PORT)
		nh = (struct nexthop){.kind = r->via.family != 0 ? NEXTHOP_GATEWAY : NEXTHOP_ONLINK,
				      .port = (uint16_t)r->index, .gateway = r->via};
	at = find_nexthop(t, &nh);
	return at < 0 ? at : add_route(t, &r->to, (uint16_t)at);
}

// Groups of 256 entries that a prefix needs at most, one for each byte beyond /24.
static uint32_t
tbl8_of(const struct prefix *p)
{
	return p->len > 24 ? (p->len - 24 + 7u) / 8 : 0;
}

static uint32_t
tbl8_of_addresses(const struct prefix *a, uint32_t n, uint8_t family)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (a[i].addr.family == family)
			sum += 2 * (family == 4 ? 1 : 13); // the prefix and the host in it
	return sum;
}

static uint32_t
count_tbl8(const struct tables *t, const struct config *c, uint8_t family)
{
	uint32_t sum = TBL8_SPARE;

	for (uint32_t i = 0; i < t->n_ports; i++)
		sum += tbl8_of_addresses(t->ports[i].addresses, t->ports[i].n_addresses, family);
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		sum += tbl8_of_addresses(t->tunnels[i].addresses, t->tunnels[i].n_addresses, family);
	for (uint32_t i = 0; i < c->n_routes; i++)
		if (c->routes[i].to.addr.family == family)
			sum += tbl8_of(&c->routes[i].to);
	return sum;
}

static int
create_fibs(struct tables *t, const struct config *c, uint32_t n_routes)
{
	static unsigned int generation; // names must differ in one process
	uint32_t tbl8_4 = count_tbl8(t, c, 4), tbl8_6 = count_tbl8(t, c, 6);
	struct rte_fib_conf conf4 = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = (int)n_routes,
		.dir24_8 = {
			.nh_sz = tbl8_4 < TBL8_2B_MAX ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B,
			.num_tbl8 = tbl8_4,
		},
	};
	struct rte_fib6_conf conf6 = {
		.type = RTE_FIB6_TRIE,
		.max_routes = (int)n_routes,
		.trie = {
			.nh_sz = tbl8_6 < TBL8_2B_MAX ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B,
			.num_tbl8 = tbl8_6,
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
build_routes(struct tables *t, const struct config *c, struct err *err)
{
	uint32_t n_routes = c->n_routes + 64;
	int rc = 0;

	for (uint32_t i = 0; i < t->n_ports; i++)
		n_routes += 2 * t->ports[i].n_addresses;
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		n_routes += 2 * t->tunnels[i].n_addresses;
	t->nexthops = calloc(RTE_MIN(n_routes + WORKER_PORTS + 2 + t->n_tunnels, NEXTHOPS_MAX + 1u),
			     sizeof(*t->nexthops));
	if (t->nexthops == NULL || create_fibs(t, c, n_routes) != 0)
		return no_memory(err, "the routes");
	t->n_nexthops = 1; // 0: no route
	t->link_local_nexthop = (uint16_t)t->n_nexthops;
	for (uint32_t i = 0; i < t->n_ports; i++)
		add_nexthop(t, (struct nexthop){.kind = NEXTHOP_ONLINK, .port = (uint16_t)i});
	for (uint32_t i = 0; rc == 0 && i < t->n_ports; i++)
		rc = add_connected(t, t->ports[i].addresses, t->ports[i].n_addresses,
				   &t->nexthops[t->link_local_nexthop + i]);
	for (uint32_t i = 0; rc == 0 && i < t->n_tunnels; i++) {
		struct nexthop nh = {.kind = NEXTHOP_TUNNEL, .tunnel = &t->tunnels[i]};

		rc = add_connected(t, t->tunnels[i].addresses, t->tunnels[i].n_addresses, &nh);
	}
	if (rc != 0)
		return err_set(err, EXIT_RESOURCE, rc, "tables: the connected prefixes can not be added "
			       "as routes (%s)", rte_strerror(-rc));
	for (uint32_t i = 0; i < c->n_routes; i++) {
		char to[ADDR_STRLEN];

		rc = add_static(t, &c->routes[i]);
		if (rc != 0)
			return err_set(err, EXIT_RESOURCE, rc, "%s:%u:%u: route to %s can not be added (%s)",
				       c->file, c->routes[i].at.line, c->routes[i].at.col,
				       prefix_format(&c->routes[i].to, to), rte_strerror(-rc));
	}
	return 0;
}

static int
fill_neighbours(struct tables *t, const struct config *c, struct err *err)
{
	// A sweep over addresses that do not answer must leave most of the buffers alone.
	t->neigh = neigh_create(c->mbufs / 8);
	if (t->neigh == NULL)
		return no_memory(err, "the neighbours");
	for (uint32_t i = 0; i < c->n_neighbours; i++) {
		const struct cfg_neighbour *n = &c->neighbours[i];
		int rc = neigh_add_static(t->neigh, (uint16_t)n->port, &n->address, &n->mac, err);

		if (rc != 0)
			return rc;
	}
	return 0;
}

// A place in the table is drawn by chance; when the static ones do not all find one,
// another draw lets them.
static int
build_neighbours(struct tables *t, const struct config *c, struct err *err)
{
	int rc = -ENOSPC;

	for (int try = 0; rc == -ENOSPC && try < NEIGH_DRAWS; try++) {
		neigh_free(t->neigh);
		rc = fill_neighbours(t, c, err);
	}
	return rc;
}

struct tables *
tables_build(const struct config *c, const struct port *ports, struct sa **sas, struct err *err)
{
	struct tables *t = calloc(1, sizeof(*t));
	const struct tunnel **of_policy = calloc(c->n_policies + 1, sizeof(*of_policy));
	int rc = 0;

	if (t == NULL || of_policy == NULL || build_ports(t, c, ports) != 0 ||
	    build_tunnels(t, c, of_policy) != 0)
		rc = no_memory(err, "ports and tunnels");
	if (rc == 0)
		rc = build_sas(t, c, sas, err);
	if (rc == 0)
		rc = build_routes(t, c, err);
	if (rc == 0)
		rc = build_neighbours(t, c, err);
	if (rc == 0) {
		t->mss_clamp = c->mss_clamp;
		build_ways(t);
		build_short_ways(t);
		t->spd = spd_create(c->policies, of_policy, c->n_policies, err);
		rc = t->spd == NULL ? -ENOMEM : 0;
	}
	free(of_policy);
	if (rc == 0)
		return t;
	tables_free(t);
	return NULL;
}

void
tables_free(struct tables *t)
{
	if (t == NULL)
		return;
	spd_free(t->spd);
	neigh_free(t->neigh);
	sad_free(t->sad);
	rte_fib_free(t->fib4);
	rte_fib6_free(t->fib6);
	for (uint32_t i = 0; i < t->n_ports; i++)
		free(t->ports[i].addresses);
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		free(t->tunnels[i].addresses);
	free(t->ports);
	free(t->tunnels);
	free(t->paths);
	free(t->timed);
	free(t->nexthops);
	free(t);
}
