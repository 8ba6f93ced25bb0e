/* SPDX-License-Identifier: BSD-3-Clause */
// What fits an SA and the port it leaves by.
#include "check.h"

#define IPV6_MIN_MTU 1280 // RFC 8200 section 5

// The port by which packets to the outer address leave, or NULL.
static const struct cfg_port *
port_towards(const struct check *k, const struct addr *remote)
{
	const struct lpm_entry *e = lpm_find(&k->routes, remote);
	const struct cfg_port *p;

	if (e == NULL || e->kind != CFG_ROUTE_PORT || e->index >= k->c->n_ports)
		return NULL;
	p = &k->c->ports[e->index];
	return p->mtu != 0 ? p : NULL;
}

static uint32_t
inner_mtu(const struct cfg_sa *sa, uint32_t mtu)
{
	return alg_inner_mtu(sa->cipher, sa->auth, sa->src.family, sa->natt, mtu);
}

static void
sa_check_ipv6(struct check *k, uint32_t i)
{
	const struct cfg_sa *sa = &k->c->sas[i];
	const struct cfg_port *p = port_towards(k, &sa->dst);
	uint32_t inner = p == NULL ? IPV6_MIN_MTU : inner_mtu(sa, p->mtu);

	if (inner >= IPV6_MIN_MTU || !k->sa_ipv6[i])
		return;
	item_warning(k->l, k->l->items[SEC_SAD][i], NULL,
		     "takes packets of at most %u bytes, but IPv6 can enter and needs %u (RFC 8200 "
		     "section 5); raise the mtu of port %s to at least %u",
		     inner, IPV6_MIN_MTU, p->name,
		     alg_sealed_len(sa->cipher, sa->auth, sa->src.family, sa->natt, IPV6_MIN_MTU));
}

static void
tunnel_check_mtu(struct check *k, uint32_t t)
{
	const struct cfg_tunnel *tunnel = &k->c->tunnels[t];
	const struct cfg_port *p = port_towards(k, &tunnel->remote);

	// Only the first one is sent on.
	const struct ends *e =
		ends_find(k, &tunnel->local, &tunnel->remote, false, tunnel->reqid);
	const struct cfg_sa *sa = e != NULL ? &k->c->sas[e->sa] : NULL;

	if (p == NULL || sa == NULL || sa->cipher == ALG_NONE || tunnel->mtu <= inner_mtu(sa, p->mtu))
		return;
	item_warning(k->l, k->l->items[SEC_TUNNELS][t], "mtu",
		     "%u is lowered to %u, which is what fits SA %s (line %u) and "
		     "port %s with its mtu of %u; take it out, or raise that",
		     tunnel->mtu, inner_mtu(sa, p->mtu), sa->name, sa->at.line, p->name, p->mtu);
}

void
check_sizes(struct check *k)
{
	static const enum section needed[] = {SEC_PORTS, SEC_TUNNELS, SEC_ROUTES, SEC_SAD, SEC_SPD};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (k->l->unsure[needed[i]])
			return;
	if (k->ends == NULL)
		return;
	for (uint32_t t = 0; t < k->c->n_tunnels; t++)
		if (k->c->tunnels[t].mtu != 0)
			tunnel_check_mtu(k, t);
	for (uint32_t i = 0; i < k->c->n_sas; i++) {
		const struct cfg_sa *sa = &k->c->sas[i];

		if (!sa->inbound && !sa->transport && sa->cipher != ALG_NONE && k->sa_used[i])
			sa_check_ipv6(k, i);
	}
}
