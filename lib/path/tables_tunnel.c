/* SPDX-License-Identifier: BSD-3-Clause */
// Tunnels and SAs: which SA belongs to which tunnel, and which tunnel a policy means.
#include "tables_build.h"

#include "index.h"
#include "sa.h"
#include "sad.h"

#include <stdlib.h>
#include <string.h>

// What tells tunnels apart, and SAs of one direction. No padding: it is compared as bytes.
struct pair {
	struct addr a;     // of a tunnel local, of an SA src
	struct addr b;     // remote, dst
	uint8_t transport; //
	uint8_t any;       // the first of these two ends and this mode, whatever its reqid
	uint32_t reqid;    // 0 with any
};

_Static_assert(sizeof(struct pair) == 2 * sizeof(struct addr) + 6, "no padding in struct pair");

// While tunnels are made.
struct finder {
	struct tables *t;
	const struct config *c;
	struct index *tunnels; // by pair: the first tunnel
	struct index *sas;     // by pair: the first SA
};

static void
finder_put(struct index *x, struct pair p, uint32_t number)
{
	index_put(x, &p, number);
	p.any = true;
	p.reqid = 0;
	index_put(x, &p, number);
}

static void
tunnel_put(struct finder *f, const struct tunnel *t)
{
	finder_put(f->tunnels, (struct pair){.a = t->local, .b = t->remote, .transport = t->transport,
					     .reqid = t->reqid}, t->index);
}

static int
finder_init(struct finder *f, struct tables *t, const struct config *c)
{
	*f = (struct finder){.t = t, .c = c};
	f->tunnels = index_create(2 * (c->n_tunnels + c->n_policies), sizeof(struct pair));
	f->sas = index_create(2 * c->n_sas, sizeof(struct pair));
	if (f->tunnels == NULL || f->sas == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_sas; i++) {
		const struct cfg_sa *s = &c->sas[i];

		finder_put(f->sas, (struct pair){.a = s->src, .b = s->dst, .transport = s->transport,
						 .reqid = s->reqid}, i);
	}
	return 0;
}

static void
finder_end(struct finder *f)
{
	index_free(f->tunnels);
	index_free(f->sas);
}

// The two ends that a policy in transport mode is about: those of the first SA of
// its direction that lies inside its selectors.
static const struct cfg_sa *
transport_sa(const struct finder *f, const struct cfg_policy *p)
{
	const struct config *c = f->c;
	const struct pair hosts = {.a = p->src.first, .b = p->dst.first, .transport = true,
				   .any = p->reqid == 0, .reqid = p->reqid};

	if (addr_cmp(&p->src.first, &p->src.last) == 0 && addr_cmp(&p->dst.first, &p->dst.last) == 0) {
		uint32_t i = index_find(f->sas, &hosts);

		return i != INDEX_NONE && c->sas[i].inbound == (p->dir == CFG_IN) ? &c->sas[i] : NULL;
	}
	for (uint32_t i = 0; i < c->n_sas; i++) {
		const struct cfg_sa *s = &c->sas[i];

		if (s->transport && s->inbound == (p->dir == CFG_IN) &&
		    (p->reqid == 0 || p->reqid == s->reqid) && range_contains(&p->src, &s->src) &&
		    range_contains(&p->dst, &s->dst))
			return s;
	}
	return NULL;
}

// That of the first SA between the two, of either direction.
static uint32_t
reqid_of_first(const struct finder *f, struct pair p)
{
	const struct pair back = {.a = p.b, .b = p.a, .transport = p.transport, .any = true};
	uint32_t out, in;

	p.any = true;
	out = index_find(f->sas, &p);
	in = index_find(f->sas, &back);
	return out == INDEX_NONE && in == INDEX_NONE ? 0 : f->c->sas[out < in ? out : in].reqid;
}

// The tunnel that a policy names, made when there is none yet. One without reqid
// means the tunnel between these two addresses, whatever its reqid is.
static struct tunnel *
tunnel_of_policy(struct finder *f, const struct cfg_policy *p)
{
	const struct cfg_sa *ts = p->transport ? transport_sa(f, p) : NULL;
	const struct addr *src = ts != NULL ? &ts->src : &p->tunnel_src;
	const struct addr *dst = ts != NULL ? &ts->dst : &p->tunnel_dst;
	struct pair pair = {
		.a = p->dir == CFG_OUT ? *src : *dst,
		.b = p->dir == CFG_OUT ? *dst : *src,
		.transport = p->transport,
		.any = p->reqid == 0,
		.reqid = p->reqid,
	};
	uint32_t at = index_find(f->tunnels, &pair);
	struct tables *t = f->t;
	char l[ADDR_STRLEN], r[ADDR_STRLEN];
	struct tunnel *tun;

	if (at != INDEX_NONE)
		return &t->tunnels[at];
	tun = &t->tunnels[t->n_tunnels];
	tun->index = t->n_tunnels++;
	snprintf(tun->name, sizeof(tun->name), "%.15s-%.15s", addr_format(&pair.a, l),
		 addr_format(&pair.b, r));
	tun->local = pair.a;
	tun->remote = pair.b;
	tun->reqid = p->reqid != 0 ? p->reqid : reqid_of_first(f, pair);
	tun->transport = p->transport;
	tunnel_put(f, tun);
	return tun;
}

// Which tunnel an SA belongs to: one with its addresses and its reqid; failing
// that, one of a policy that takes any reqid.
static struct tunnel *
tunnel_of_sa(const struct finder *f, const struct sa *sa)
{
	struct pair p = {
		.a = sa->inbound ? sa->dst : sa->src,
		.b = sa->inbound ? sa->src : sa->dst,
		.transport = sa->transport,
		.reqid = sa->reqid,
	};
	uint32_t at = index_find(f->tunnels, &p);

	p.reqid = 0;
	if (at == INDEX_NONE)
		at = index_find(f->tunnels, &p);
	return at != INDEX_NONE ? &f->t->tunnels[at] : NULL;
}

static int
make_tunnels(struct finder *f, const struct tunnel **of_policy)
{
	const struct config *c = f->c;
	struct tables *t = f->t;
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
		tunnel_put(f, tun);
	}
	t->n_tunnels = c->n_tunnels;
	for (uint32_t i = 0; i < c->n_policies; i++)
		if (c->policies[i].action == CFG_PROTECT)
			of_policy[i] = tunnel_of_policy(f, &c->policies[i]);
	return 0;
}

static int
bind_sas(struct finder *f, struct sa **sas, struct err *err)
{
	const struct config *c = f->c;
	struct tables *t = f->t;

	t->sad = sad_create(c->n_sas, err);
	if (t->sad == NULL)
		return -ENOMEM;
	t->sas = sas;
	t->n_sas = c->n_sas;
	for (uint32_t i = 0; i < c->n_sas; i++) {
		struct tunnel *tun = tunnel_of_sa(f, sas[i]);

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

int
build_tunnels(struct tables *t, const struct config *c, struct sa **sas, const struct tunnel **of_policy,
	      struct err *err)
{
	struct finder f;
	int rc;

	if (finder_init(&f, t, c) != 0 || make_tunnels(&f, of_policy) != 0)
		rc = no_memory(err, "tunnels");
	else
		rc = bind_sas(&f, sas, err);
	finder_end(&f);
	return rc;
}

// The way to the remote, and the largest inner packet that fits it with the SA.
void
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
