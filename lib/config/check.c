/* SPDX-License-Identifier: BSD-3-Clause */
// Ports, tunnels and neighbours: names, addresses, prefixes.
#include "check.h"

#include <stdlib.h>
#include <string.h>

static int
own_cmp(const void *left, const void *right)
{
	const struct own *a = left, *b = right;
	int rc = addr_cmp(&a->prefix.addr, &b->prefix.addr);

	if (rc != 0)
		return rc;
	if (a->node->at.line != b->node->at.line)
		return a->node->at.line < b->node->at.line ? -1 : 1;
	return a->node->at.col < b->node->at.col ? -1 : a->node->at.col > b->node->at.col;
}

const struct own *
own_find(const struct check *k, const struct addr *a)
{
	uint32_t low = 0, high = k->n_own;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (addr_cmp(&k->own[middle].prefix.addr, a) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->n_own && addr_cmp(&k->own[low].prefix.addr, a) == 0 ? &k->own[low] : NULL;
}

bool
own_is_port(const struct check *k, const struct addr *a)
{
	const struct own *o = own_find(k, a);

	return o != NULL && o->section == SEC_PORTS;
}

bool
edge_find(const struct prefix *list, uint32_t n, const struct addr *a, const char **what,
	  struct prefix *net)
{
	for (uint32_t i = 0; i < n; i++) {
		struct range r = prefix_range(&list[i]);

		// RFC 3021: with one host bit, both addresses are hosts.
		if (a->family != 4 || list[i].addr.family != 4 || list[i].len > 30)
			continue;
		*what = addr_cmp(a, &r.first) == 0 ? "network" : "broadcast";
		*net = prefix_network(&list[i]);
		if (addr_cmp(a, &r.first) == 0 || addr_cmp(a, &r.last) == 0)
			return true;
	}
	return false;
}

static const char *
own_name(const struct check *k, const struct own *o)
{
	return o->section == SEC_PORTS ? k->c->ports[o->index].name : k->c->tunnels[o->index].name;
}

// RFC 4291 section 2.5.6: the same on every link.
static bool
link_local(const struct addr *a)
{
	return a->family == 6 && a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static void
own_add(struct check *k, enum section s, uint32_t index, const struct prefix *p, uint32_t n)
{
	const struct node *list = node_find(k->l->items[s][index], "addresses");
	const struct node *e = list != NULL ? list->first : NULL;

	for (uint32_t i = 0; i < n; i++, e = e->next)
		if (p[i].addr.family != 0)
			k->own[k->n_own++] = (struct own){p[i], s, index, e};
}

// All own addresses, sorted, and their prefixes as routes. @return memory was there
static bool
own_collect(struct check *k)
{
	struct config *c = k->c;
	struct lpm_entry *e;
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_ports; i++)
		n += c->ports[i].n_addresses;
	for (uint32_t i = 0; i < c->n_tunnels; i++)
		n += c->tunnels[i].n_addresses;
	k->own = calloc(n + 1, sizeof(*k->own));
	e = calloc(n + 1, sizeof(*e));
	k->connected.entries = e;
	if (k->own == NULL || e == NULL)
		return false;
	for (uint32_t i = 0; i < c->n_ports; i++)
		own_add(k, SEC_PORTS, i, c->ports[i].addresses, c->ports[i].n_addresses);
	for (uint32_t i = 0; i < c->n_tunnels; i++)
		own_add(k, SEC_TUNNELS, i, c->tunnels[i].addresses, c->tunnels[i].n_addresses);
	if (k->n_own > 0)
		qsort(k->own, k->n_own, sizeof(*k->own), own_cmp);
	for (uint32_t i = 0; i < k->n_own; i++)
		e[i] = (struct lpm_entry){
			.net = prefix_network(&k->own[i].prefix),
			.kind = k->own[i].section == SEC_PORTS ? CFG_ROUTE_PORT : CFG_ROUTE_TUNNEL,
			.index = k->own[i].index,
			.connected = true,
			.from = i,
			.at = k->own[i].node->at,
		};
	lpm_build(&k->connected, e, k->n_own);
	return true;
}

static bool
same_interface(const struct own *a, const struct own *b)
{
	return a->section == b->section && a->index == b->index;
}

// Between ports not even a part of a prefix may be shared: a neighbour would be
// on both.
static void
check_overlap(struct check *k, const struct own *a)
{
	struct prefix net = prefix_network(&a->prefix);
	struct range range = prefix_range(&a->prefix);
	char text[ADDR_STRLEN], other[ADDR_STRLEN];

	if (link_local(&a->prefix.addr))
		return;
	for (uint32_t i = 0; i < k->n_own; i++) {
		const struct own *b = &k->own[i];

		if (b->section != SEC_PORTS || b->index <= a->index)
			continue;
		struct range b_range = prefix_range(&b->prefix);

		if (range_overlaps(&range, &b_range) &&
		    addr_cmp(&a->prefix.addr, &b->prefix.addr) != 0)
			item_error(k->l, b->node, NULL,
				   "%s lies on top of %s of port %s (line %u); give each port a "
				   "prefix of its own",
				   prefix_format(&b->prefix, text), prefix_format(&net, other),
				   own_name(k, a), a->node->at.line);
	}
}

// Every own address once, and no prefix on two interfaces.
static void
check_own(struct check *k)
{
	char text[ADDR_STRLEN], net[ADDR_STRLEN];

	for (uint32_t i = 1; i < k->n_own; i++) {
		const struct own *a = &k->own[i - 1], *b = &k->own[i];

		if (addr_cmp(&a->prefix.addr, &b->prefix.addr) == 0)
			item_error(k->l, b->node, NULL,
				   "%s is an address of %s already (line %u); give it to one "
				   "interface, once",
				   addr_format(&b->prefix.addr, text), own_name(k, a),
				   a->node->at.line);
	}
	for (uint32_t i = 1; i < k->connected.n; i++) {
		const struct lpm_entry *x = &k->connected.entries[i - 1], *y = x + 1;
		const struct own *a = &k->own[x->from], *b = &k->own[y->from];

		if (x->net.len != y->net.len || addr_cmp(&x->net.addr, &y->net.addr) != 0 ||
		    same_interface(a, b) || addr_cmp(&a->prefix.addr, &b->prefix.addr) == 0 ||
		    (a->section == SEC_PORTS && b->section == SEC_PORTS) ||
		    link_local(&x->net.addr))
			continue;
		item_error(
			k->l, b->node, NULL,
			"%s is the prefix of %s too (line %u); a prefix belongs to one interface",
			prefix_format(&y->net, net), own_name(k, a), a->node->at.line);
	}
	for (uint32_t i = 0; i < k->n_own; i++)
		if (k->own[i].section == SEC_PORTS)
			check_overlap(k, &k->own[i]);
}

// "net_tap0" of "net_tap0,iface=t0": what the device is called in the process.
static size_t
device_name_len(const char *device)
{
	return strcspn(device, ",");
}

// A tag on a port leads to one subinterface.
static void
check_vlan(struct check *k, uint32_t i)
{
	const struct cfg_port *b = &k->c->ports[i];

	if (b->kind != CFG_PORT_VLAN || b->parent == UINT32_MAX || b->vlan == 0)
		return;
	for (uint32_t j = 0; j < i; j++) {
		const struct cfg_port *a = &k->c->ports[j];

		if (a->kind != CFG_PORT_VLAN || a->parent != b->parent || a->vlan != b->vlan)
			continue;
		item_error(k->l, k->l->items[SEC_PORTS][i], "vlan",
			   "%u on %s is %s already (line %u); give each subinterface its own tag",
			   b->vlan, k->c->ports[b->parent].name, a->name, a->at.line);
		return;
	}
}

static void
check_ports(struct check *k)
{
	const struct config *c = k->c;

	for (uint32_t i = 0; i < c->n_ports; i++) {
		const struct cfg_port *b = &c->ports[i];
		size_t len = device_name_len(b->device);

		check_vlan(k, i);

		for (uint32_t j = 0; j < i; j++) {
			const struct cfg_port *a = &c->ports[j];

			if (a->has_mac && b->has_mac &&
			    memcmp(&a->mac, &b->mac, sizeof(a->mac)) == 0)
				item_error(
					k->l, k->l->items[SEC_PORTS][i], "mac",
					"is the MAC address of port %s too; each port has its own",
					a->name);
			if (len > 0 && a->kind == b->kind && len == device_name_len(a->device) &&
			    memcmp(a->device, b->device, len) == 0)
				item_error(k->l, k->l->items[SEC_PORTS][i],
					   b->kind == CFG_PORT_PCI ? "pci" : "device",
					   "is the device of port %s too; %s", a->name,
					   b->kind == CFG_PORT_PCI ? "each port has its own" :
								     "give it another number");
		}
	}
}

static void
check_tunnel(struct check *k, uint32_t i)
{
	const struct cfg_tunnel *t = &k->c->tunnels[i];
	const struct node *item = k->l->items[SEC_TUNNELS][i];
	char text[ADDR_STRLEN];

	for (uint32_t j = 0; t->reqid != 0 && j < i; j++) {
		if (k->c->tunnels[j].reqid != t->reqid)
			continue;
		item_error(k->l, item, "reqid",
			   "%u is the reqid of tunnel %s too; give each tunnel its own", t->reqid,
			   k->c->tunnels[j].name);
		break;
	}
	if (t->local.family != 0 && t->remote.family != 0 && t->local.family != t->remote.family) {
		item_error(
			k->l, item, "remote",
			"is not of the family of local; both outer addresses are of one family");
		return;
	}
	if (t->remote.family != 0 && own_find(k, &t->remote) != NULL) {
		item_error(k->l, item, "remote", "%s is our own address (%s); write the peer's",
			   addr_format(&t->remote, text), own_name(k, own_find(k, &t->remote)));
		return;
	}
	if (k->l->unsure[SEC_PORTS])
		return;
	if (t->local.family != 0 && !own_is_port(k, &t->local))
		item_error(
			k->l, item, "local",
			"%s is not an address of any port; write one that is, or add it to a port",
			addr_format(&t->local, text));
	if (t->remote.family != 0)
		check_outer_route(k, item, "remote", &t->remote);
}

struct neighbour_ref {
	const struct cfg_neighbour *n;
	const struct node *item;
};

static int
neighbour_cmp(const void *left, const void *right)
{
	const struct neighbour_ref *a = left, *b = right;

	if (a->n->port != b->n->port)
		return a->n->port < b->n->port ? -1 : 1;
	int rc = addr_cmp(&a->n->address, &b->n->address);
	if (rc != 0)
		return rc;
	if (a->n->at.line != b->n->at.line)
		return a->n->at.line < b->n->at.line ? -1 : 1;
	return a->n->at.col < b->n->at.col ? -1 : a->n->at.col > b->n->at.col;
}

static void
check_neighbour(struct check *k, const struct node *item, const struct cfg_neighbour *n)
{
	const struct cfg_port *p, *device;
	char text[ADDR_STRLEN], net[ADDR_STRLEN];
	struct prefix edge;
	const char *what;
	bool inside = link_local(&n->address);

	if (n->address.family == 0 || n->port == UINT32_MAX)
		return;
	p = &k->c->ports[n->port];
	addr_format(&n->address, text);
	if (own_find(k, &n->address) != NULL) {
		item_error(k->l, item, "address", "%s is our own address; write the neighbour's",
			   text);
		return;
	}
	if (edge_find(p->addresses, p->n_addresses, &n->address, &what, &edge)) {
		item_error(k->l, item, "address",
			   "%s is the %s address of %s on port %s; write the address of one host",
			   text, what, prefix_format(&edge, net), p->name);
		return;
	}
	device = p->kind == CFG_PORT_VLAN && p->parent != UINT32_MAX ? &k->c->ports[p->parent] : p;
	if (device->has_mac && memcmp(&device->mac, &n->mac, sizeof(n->mac)) == 0)
		item_error(k->l, item, "mac",
			   "is the MAC address of port %s itself; write the neighbour's",
			   device->name);
	for (uint32_t i = 0; i < p->n_addresses; i++)
		inside = inside || prefix_contains(&p->addresses[i], &n->address);
	if (!inside && !k->l->unsure[SEC_PORTS])
		item_error(k->l, item, "address",
			   "%s lies in no prefix of port %s; write a neighbour on that link", text,
			   p->name);
}

static void
check_neighbours(struct check *k)
{
	const struct config *c = k->c;
	struct neighbour_ref *refs = calloc(c->n_neighbours + 1, sizeof(*refs));
	char text[ADDR_STRLEN];

	if (refs == NULL)
		return;
	for (uint32_t i = 0; i < c->n_neighbours; i++) {
		refs[i] =
			(struct neighbour_ref){&c->neighbours[i], k->l->items[SEC_NEIGHBOURS][i]};
		check_neighbour(k, refs[i].item, refs[i].n);
	}
	qsort(refs, c->n_neighbours, sizeof(*refs), neighbour_cmp);
	for (uint32_t i = 1; i < c->n_neighbours; i++) {
		const struct cfg_neighbour *a = refs[i - 1].n, *b = refs[i].n;

		if (a->port == b->port && a->address.family != 0 &&
		    addr_cmp(&a->address, &b->address) == 0)
			item_error(k->l, refs[i].item, "address",
				   "%s stands here twice (first on line %u); keep one of them",
				   addr_format(&b->address, text), a->at.line);
	}
	free(refs);
}

void
check_all(struct load *l)
{
	struct check k = {.l = l, .c = l->c};

	k.sa_used = calloc(l->c->n_sas + 1, sizeof(*k.sa_used));
	k.sa_tunnel = calloc(l->c->n_sas + 1, sizeof(*k.sa_tunnel));
	k.sa_ipv6 = calloc(l->c->n_sas + 1, sizeof(*k.sa_ipv6));
	k.tunnel_ipv6 = calloc(l->c->n_tunnels + 1, sizeof(*k.tunnel_ipv6));
	if (!own_collect(&k) || k.sa_used == NULL || k.sa_tunnel == NULL || k.sa_ipv6 == NULL ||
	    k.tunnel_ipv6 == NULL) {
		item_error(l, l->root, NULL, "out of memory");
	} else {
		check_own(&k);
		check_ports(&k);
		check_neighbours(&k);
		check_routes(&k);
		for (uint32_t i = 0; i < l->c->n_tunnels; i++)
			check_tunnel(&k, i);
		check_sas(&k);
		check_policies(&k);
		check_sizes(&k);
	}
	free(k.own);
	free(k.connected.entries);
	free(k.routes.entries);
	free(k.sa_used);
	free(k.sa_tunnel);
	free(k.sa_ipv6);
	free(k.tunnel_ipv6);
	free(k.ends);
}
