/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables_build.h"

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

#define NEIGH_DRAWS 32 // of a hash for the static neighbours

int
no_memory(struct err *err, const char *what)
{
	return err_set(err, EXIT_RESOURCE, -ENOMEM, "tables: no memory for %s; provide more hugepages, or "
		       "with --no-huge give more with -m", what);
}

// fe80::/64 and the interface identifier of RFC 4291 appendix A.
static struct addr
link_local(const struct rte_ether_addr *mac)
{
	const uint8_t *m = mac->addr_bytes;

	return (struct addr){.family = 6, .b = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff,
						0xfe, m[3], m[4], m[5]}};
}

int
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
	for (uint32_t i = 0; i < t->n_ports; i++) {
		struct tport *parent = &t->ports[t->ports[i].parent];

		if (t->ports[i].vlan == 0)
			continue;
		if (parent->by_vlan == NULL)
			parent->by_vlan = calloc(VLAN_IDS, sizeof(*parent->by_vlan));
		if (parent->by_vlan == NULL)
			return -ENOMEM;
		parent->by_vlan[t->ports[i].vlan] = (uint16_t)(i + 1);
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

struct tables *
tables_build(const struct config *c, const struct port *ports, struct sa **sas, struct err *err)
{
	struct tables *t = calloc(1, sizeof(*t));
	const struct tunnel **of_policy = calloc(c->n_policies + 1, sizeof(*of_policy));
	int rc = 0;

	if (t == NULL || of_policy == NULL || build_ports(t, c, ports) != 0)
		rc = no_memory(err, "ports");
	if (rc == 0)
		rc = build_tunnels(t, c, sas, of_policy, err);
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
	for (uint32_t i = 0; i < t->n_ports; i++) {
		free(t->ports[i].addresses);
		free(t->ports[i].by_vlan);
	}
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		free(t->tunnels[i].addresses);
	free(t->ports);
	free(t->tunnels);
	free(t->paths);
	free(t->timed);
	free(t->nexthops);
	free(t);
}
