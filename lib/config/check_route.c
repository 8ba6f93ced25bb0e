/* SPDX-License-Identifier: BSD-3-Clause */
// Static routes: where a gateway lies, doubles, and tunnels that would swallow
// their own packets.
#include "check.h"

#include <stdlib.h>

static const char *
target_name(const struct config *c, const struct lpm_entry *e)
{
	return e->kind == CFG_ROUTE_TUNNEL ? c->tunnels[e->index].name : c->ports[e->index].name;
}

// A gateway is one host.
static bool
gateway_is_edge(struct check *k, const struct node *item, const struct cfg_route *r)
{
	const struct cfg_port *p = NULL;
	const struct cfg_tunnel *t = NULL;
	char text[ADDR_STRLEN], net[ADDR_STRLEN];
	struct prefix edge;
	const char *what;

	if (r->kind == CFG_ROUTE_PORT)
		p = &k->c->ports[r->index];
	else
		t = &k->c->tunnels[r->index];
	if (!edge_find(p != NULL ? p->addresses : t->addresses,
		       p != NULL ? p->n_addresses : t->n_addresses, &r->via, &what, &edge))
		return false;
	item_error(k->l, item, "via",
		   "%s is the %s address of %s on %s %s; write the gateway's own",
		   addr_format(&r->via, text), what, prefix_format(&edge, net),
		   p != NULL ? "port" : "tunnel", p != NULL ? p->name : t->name);
	return true;
}

// A gateway beside `port:` must be on that link.
static void
gateway_on_port(struct check *k, const struct node *item, const struct cfg_route *r)
{
	const struct cfg_port *p = &k->c->ports[r->index];
	bool inside = r->via.family == 6 && r->via.b[0] == 0xfe && (r->via.b[1] & 0xc0) == 0x80;
	char text[ADDR_STRLEN];

	for (uint32_t i = 0; i < p->n_addresses; i++)
		inside = inside || prefix_contains(&p->addresses[i], &r->via);
	if (!inside && !k->l->unsure[SEC_PORTS])
		item_error(k->l, item, "via",
			   "%s lies in no prefix of port %s; write a gateway on that link",
			   addr_format(&r->via, text), p->name);
}

// Find the port or tunnel behind which the gateway of a route lies.
static void
gateway_resolve(struct check *k, uint32_t i)
{
	struct cfg_route *r = &k->c->routes[i];
	const struct node *item = k->l->items[SEC_ROUTES][i];
	const struct lpm_entry *e;
	char text[ADDR_STRLEN];

	if (r->kind != CFG_ROUTE_PORT || r->via.family == 0)
		return;
	if (r->to.addr.family != r->via.family) {
		item_error(k->l, item, "via",
			   "is not of the family of to; an IPv%u route has an IPv%u gateway",
			   r->to.addr.family, r->to.addr.family);
		goto unresolved;
	}
	addr_format(&r->via, text);
	if (own_find(k, &r->via) != NULL) {
		item_error(k->l, item, "via", "%s is our own address; write the gateway's", text);
		goto unresolved;
	}
	if (r->index != UINT32_MAX) {
		if (gateway_is_edge(k, item, r))
			goto unresolved;
		gateway_on_port(k, item, r);
		return;
	}
	if (r->via.family == 6 && r->via.b[0] == 0xfe && (r->via.b[1] & 0xc0) == 0x80) {
		item_error(k->l, item, "via",
			   "%s is link-local and could be behind any port; add port:", text);
		goto unresolved;
	}
	e = lpm_find(&k->connected, &r->via);
	if (e != NULL) {
		r->kind = e->kind;
		r->index = e->index;
		if (gateway_is_edge(k, item, r))
			goto unresolved;
		return;
	}
	if (!k->l->unsure[SEC_PORTS] && !k->l->unsure[SEC_TUNNELS])
		item_error(k->l, item, "via",
			   "%s lies in no prefix of a port or tunnel; write a gateway that is a "
			   "neighbour",
			   text);
unresolved:
	k->l->unsure[SEC_ROUTES] = true;
	r->kind = CFG_ROUTE_DISCARD;
}

static bool
one_address(const struct prefix *p)
{
	return p->len == addr_size(p->addr.family) * 8;
}

// Our own addresses have routes to ourselves, which another one would take the place of.
static void
check_own_route(struct check *k, uint32_t i)
{
	const struct prefix *to = &k->c->routes[i].to;
	const struct own *o = one_address(to) ? own_find(k, &to->addr) : NULL;
	char text[ADDR_STRLEN];

	if (o != NULL)
		item_error(k->l, k->l->items[SEC_ROUTES][i], "to",
			   "%s is our own address on %s (line %u), and would no longer reach us; "
			   "take the route out",
			   prefix_format(to, text),
			   o->section == SEC_PORTS ? k->c->ports[o->index].name :
						     k->c->tunnels[o->index].name,
			   o->node->at.line);
}

static void
check_doubles(struct check *k)
{
	char text[ADDR_STRLEN];

	for (uint32_t i = 1; i < k->routes.n; i++) {
		const struct lpm_entry *a = &k->routes.entries[i - 1], *b = &k->routes.entries[i];

		if (b->connected || a->net.len != b->net.len ||
		    addr_cmp(&a->net.addr, &b->net.addr) != 0 ||
		    (a->connected && one_address(&a->net))) // our own, reported
			continue;
		prefix_format(&b->net, text);
		if (a->connected)
			item_error(k->l, k->l->items[SEC_ROUTES][b->from], "to",
				   "%s is the prefix of %s (line %u) and routed already; take the "
				   "route out",
				   text, target_name(k->c, a), a->at.line);
		else
			item_error(k->l, k->l->items[SEC_ROUTES][b->from], "to",
				   "%s is routed twice (first on line %u); keep one of them", text,
				   a->at.line);
	}
}

void
check_routes(struct check *k)
{
	struct config *c = k->c;
	struct lpm_entry *e = calloc(k->connected.n + c->n_routes + 1, sizeof(*e));
	uint32_t n = 0;

	if (e == NULL) {
		item_error(k->l, k->l->root, "routes", "out of memory");
		return;
	}
	for (; n < k->connected.n; n++)
		e[n] = k->connected.entries[n];
	for (uint32_t i = 0; i < c->n_routes; i++) {
		const struct cfg_route *r = &c->routes[i];

		if (r->to.addr.family == 0)
			continue;
		gateway_resolve(k, i);
		check_own_route(k, i);
		e[n++] = (struct lpm_entry){.net = r->to,
					    .kind = r->kind,
					    .index = r->index,
					    .from = i,
					    .at = r->at};
	}
	for (uint32_t i = 0; i < n; i++)
		if (e[i].kind == CFG_ROUTE_TUNNEL && e[i].net.addr.family == 6 && e[i].index < c->n_tunnels)
			k->tunnel_ipv6[e[i].index] = true;
	lpm_build(&k->routes, e, n);
	check_doubles(k);
}

void
check_outer_route(struct check *k, const struct node *item, const char *key,
		  const struct addr *remote)
{
	char text[ADDR_STRLEN], net[ADDR_STRLEN];
	const struct lpm_entry *e;
	struct prefix edge;
	const char *what;

	if (k->l->unsure[SEC_PORTS] || k->l->unsure[SEC_TUNNELS] || k->l->unsure[SEC_ROUTES])
		return;
	e = lpm_find(&k->routes, remote);
	addr_format(remote, text);
	if (e == NULL) {
		item_error(k->l, item, key,
			   "there is no route to %s; add one under routes:, to: %s/%zu with via:",
			   text, text, addr_size(remote->family) * 8);
	} else if (e->kind == CFG_ROUTE_TUNNEL) {
		item_error(k->l, item, key,
			   "%s would itself be routed into tunnel %s (%s, line %u), a loop; add a "
			   "route to: %s/%zu with via: behind a port",
			   text, target_name(k->c, e), prefix_format(&e->net, net), e->at.line,
			   text, addr_size(remote->family) * 8);
	} else if (e->kind == CFG_ROUTE_DISCARD) {
		item_error(k->l, item, key,
			   "the route to %s is discard: true (%s, line %u); add a route to: "
			   "%s/%zu with via:",
			   text, prefix_format(&e->net, net), e->at.line, text,
			   addr_size(remote->family) * 8);
	} else if (e->connected && edge_find(&k->own[e->from].prefix, 1, remote, &what, &edge)) {
		item_error(k->l, item, key,
			   "%s is the %s address of %s on port %s; write the address of one host",
			   text, what, prefix_format(&edge, net), target_name(k->c, e));
	}
}
