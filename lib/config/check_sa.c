/* SPDX-License-Identifier: BSD-3-Clause */
// SAs: direction, who uses them, what must not be shared.
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NATT_PORT 4500 // RFC 3948 section 2.1

static const struct node *
sa_item(const struct check *k, uint32_t i)
{
	return k->l->items[SEC_SAD][i];
}

// Which of the two ends is ours? @return the direction is known
static bool
sa_direction(struct check *k, uint32_t i)
{
	struct cfg_sa *sa = &k->c->sas[i];
	const struct node *item = sa_item(k, i);
	bool src_ours, dst_ours;
	const struct own *o;

	if (sa->src.family == 0 || sa->dst.family == 0)
		return false;
	if (sa->src.family != sa->dst.family) {
		item_error(k->l, item, "dst",
			   "is not of the family of src; both outer addresses are of one family");
		return false;
	}
	src_ours = own_is_port(k, &sa->src);
	dst_ours = own_is_port(k, &sa->dst);
	sa->inbound = dst_ours;
	if (k->l->unsure[SEC_PORTS])
		return false;
	if (src_ours && dst_ours) {
		item_error(k->l, item, "dst",
			   "is our own address, and so is src; one end is the peer's");
		return false;
	}
	if (!src_ours && !dst_ours) {
		o = own_find(k, &sa->src);
		if (o == NULL)
			o = own_find(k, &sa->dst);
		item_error(k->l, item, NULL,
			   o != NULL ?
				   "our end is an address of a tunnel; write the outer address, "
				   "which is on a port" :
				   "neither src nor dst is an address of a port; one end is ours");
		return false;
	}
	return true;
}

// What depends on the direction.
static void
sa_check_sequence(struct check *k, uint32_t i, bool directed)
{
	struct cfg_sa *sa = &k->c->sas[i];
	const struct node *item = sa_item(k, i);
	uint64_t last;

	// The very last number is never used; outbound, one that is must be left.
	last = (sa->esn ? UINT64_MAX : UINT32_MAX) - 1;
	if (directed && !sa->inbound)
		last--;
	if (sa->sequence > last)
		item_error(k->l, item, "sequence",
			   "%" PRIu64 " leaves no number %s ESN that could be %s; write at most "
			   "%" PRIu64 "%s",
			   sa->sequence, sa->esn ? "with" : "without",
			   directed && !sa->inbound ? "sent" : "used", last,
			   sa->esn ? "" : ", or esn: true");
	if (!directed)
		return;
	if (sa->inbound) {
		// RFC 4303 section 3.3.3: the high half is guessed from the window.
		if (sa->esn && sa->replay_window == 0)
			item_error(k->l, item, "replay-window",
				   "0 cannot go with esn: true (RFC 4303 section 3.3.3); write "
				   "128, or take it out");
		return;
	}
	if (node_find(item, "replay-window") != NULL)
		item_error(k->l, item, "replay-window",
			   "has no meaning on an outbound SA; take it out");
	sa->replay_window = 0;
	if (alg_get(sa->cipher)->counter && k->c->state == NULL && !k->c->allow_nonce_reuse)
		item_error(k->l, item, node_find(item, "aead") != NULL ? "aead" : "cipher",
			   "static keys repeat nonces after a restart, which breaks %s (%s); set "
			   "system.state to the path of a state file",
			   alg_get(sa->cipher)->name, alg_get(sa->cipher)->rfc);
}

// Padding must fit the port with the packet around it.
static void
sa_check_padding(struct check *k, uint32_t i)
{
	const struct cfg_sa *sa = &k->c->sas[i];
	uint32_t mtu = sa->tfc_pad_to != 0 ? config_sa_mtu(k->c, sa) : 0;

	if (sa->cipher != ALG_NONE && mtu != 0 && sa->tfc_pad_to > mtu)
		item_error(k->l, sa_item(k, i), "tfc-pad-to",
			   "%u is larger than %u, the longest packet that fits this SA; write at "
			   "most that",
			   sa->tfc_pad_to, mtu);
}

// Inbound UDP: from any port (a NAT may change it), to the one that sgw listens on.
static void
sa_check_listen(struct check *k, uint32_t i)
{
	const struct cfg_sa *sa = &k->c->sas[i];
	const struct node *item = sa_item(k, i);

	if (!sa->natt)
		return; // has its own report
	if (node_find(item, "udp-source-port") != NULL)
		item_error(k->l, item, "udp-source-port",
			   "has no meaning on an inbound SA, which takes any; take it out");
	if (sa->natt_dport != NATT_PORT && sa->natt_dport != 0)
		item_error(k->l, item, "udp-destination-port",
			   "%u is not %u, the only port on which sgw takes ESP in UDP; write "
			   "that, or take it out",
			   sa->natt_dport, NATT_PORT);
}

// What is done to packets: has it a meaning on this SA?
static void
sa_check_terms(struct check *k, uint32_t i)
{
	static const char *const outbound[] =
		{"df", "dscp", "fragment", "tfc-pad-to", "dummy-interval", "keepalive"};
	struct cfg_sa *sa = &k->c->sas[i];
	const struct node *item = sa_item(k, i);

	if (sa->inbound) {
		for (size_t j = 0; j < sizeof(outbound) / sizeof(outbound[0]); j++)
			if (node_find(item, outbound[j]) != NULL &&
			    (sa->natt || strcmp(outbound[j], "keepalive") != 0))
				item_error(k->l, item, outbound[j],
					   "has no meaning on an inbound SA; take it out");
		sa_check_listen(k, i);
		sa->keepalive_s = 0;
		return;
	}
	if (!sa->transport) {
		sa_check_padding(k, i);
		return;
	}
	for (int j = 0; j < 2; j++)
		if (node_find(item, outbound[j]) != NULL)
			item_error(k->l, item, outbound[j],
				   "has no meaning in transport mode, where a packet keeps its own "
				   "header; take it out");
	// RFC 4303 section 3.3.4: only whole packets are sealed in transport mode.
	const struct node *fragment = node_find(item, "fragment");
	if (fragment != NULL && fragment->kind == NODE_SCALAR &&
	    strcmp(fragment->text, "before") == 0)
		item_error(k->l, item, "fragment",
			   "before has no meaning in transport mode, where only whole packets are "
			   "sealed (RFC 4303 section 3.3.4); write after, or take it out");
	// RFC 4303 section 2.7: of TCP, nothing would tell the padding from the data.
	if (node_find(item, "tfc-pad-to") != NULL)
		item_error(k->l, item, "tfc-pad-to",
			   "cannot go with mode: transport, where the receiver takes padding for "
			   "data (RFC 4303 section 2.7); take it out");
}

// Do the addresses fit, whatever the mode?
static bool
tunnel_fits(const struct cfg_tunnel *t, const struct cfg_sa *sa)
{
	const struct addr *src = sa->inbound ? &t->remote : &t->local;
	const struct addr *dst = sa->inbound ? &t->local : &t->remote;

	return addr_cmp(src, &sa->src) == 0 && addr_cmp(dst, &sa->dst) == 0;
}

bool
tunnel_matches(const struct cfg_tunnel *t, const struct cfg_sa *sa)
{
	return !sa->transport && tunnel_fits(t, sa);
}

// Nobody uses this transport mode SA: say the nearest reason.
static void
sa_report_unused_transport(struct check *k, uint32_t i, const struct cfg_tunnel *same_reqid)
{
	const struct cfg_sa *sa = &k->c->sas[i];

	if (same_reqid != NULL && tunnel_fits(same_reqid, sa))
		item_error(k->l, sa_item(k, i), "mode",
			   "is transport, but the SA has the reqid and the addresses of tunnel %s, "
			   "which needs mode: tunnel",
			   same_reqid->name);
	else
		item_error(k->l, sa_item(k, i), "mode",
			   "is transport, and no %s policy with mode: transport has the addresses "
			   "of this SA inside its src and dst%s; add one to spd:, or take the SA out",
			   sa->inbound ? "inbound" : "outbound",
			   sa->reqid != 0 ? ", and its reqid or none" : "");
}

// Nobody uses this SA: say the nearest reason.
static void
sa_report_unused(struct check *k, uint32_t i, const struct cfg_tunnel *same_reqid)
{
	const struct cfg_sa *sa = &k->c->sas[i];
	const struct node *item = sa_item(k, i);
	char local[ADDR_STRLEN], remote[ADDR_STRLEN];

	if (k->l->unsure[SEC_TUNNELS] || k->l->unsure[SEC_SPD] || k->l->unsure[SEC_SAD])
		return;
	if (sa->transport) {
		sa_report_unused_transport(k, i, same_reqid);
		return;
	}
	if (same_reqid != NULL) {
		addr_format(&same_reqid->local, local);
		addr_format(&same_reqid->remote, remote);
		item_error(k->l, item, "reqid",
			   "%u is tunnel %s, whose outer addresses are %s and %s, not those of "
			   "this SA; make them equal",
			   sa->reqid, same_reqid->name, local, remote);
		return;
	}
	for (uint32_t j = 0; j < k->c->n_tunnels; j++) {
		if (tunnel_matches(&k->c->tunnels[j], sa)) {
			item_error(k->l, item, sa->reqid != 0 ? "reqid" : NULL,
				   "is used by nothing; its addresses are those of tunnel %s, so "
				   "write reqid: %u",
				   k->c->tunnels[j].name, k->c->tunnels[j].reqid);
			return;
		}
	}
	item_error(k->l, item, sa->reqid != 0 ? "reqid" : NULL,
		   "is used by no tunnel and no policy; add one with these addresses, or take the "
		   "SA out");
}

static void
sa_check_use(struct check *k, uint32_t i)
{
	const struct cfg_sa *sa = &k->c->sas[i];
	const struct cfg_tunnel *same_reqid = NULL;

	for (uint32_t j = 0; sa->reqid != 0 && j < k->c->n_tunnels; j++) {
		if (k->c->tunnels[j].reqid != sa->reqid)
			continue;
		same_reqid = &k->c->tunnels[j];
		if (tunnel_matches(same_reqid, sa)) {
			k->sa_used[i] = k->sa_tunnel[i] = true;
			k->sa_ipv6[i] |= k->tunnel_ipv6[j];
		}
	}
	if (!k->sa_used[i])
		sa_report_unused(k, i, same_reqid);
	// A tunnel has its own report.
	if (!k->sa_tunnel[i] && !sa->inbound)
		check_outer_route(k, sa_item(k, i), "dst", &sa->dst);
}

// Of two outbound SAs for the same traffic only one can be sent on.
static void
sa_check_twin(struct check *k, uint32_t i)
{
	const struct cfg_sa *b = &k->c->sas[i];
	// What one is used by, all that are like it are.
	uint32_t first = ends_find(k, &b->src, &b->dst, b->transport, b->reqid)->sa;
	const struct cfg_sa *a = &k->c->sas[first];

	if (first != i)
		item_warning(k->l, sa_item(k, i), NULL,
			     "SA %s (line %u) is outbound for the same traffic, and only the "
			     "first is sent on; take one out, or give it another reqid",
			     a->name, a->at.line);
}

// A tunnel without one of its two directions drops what is sent that way.
static void
tunnel_check_sas(struct check *k, uint32_t t)
{
	const struct cfg_tunnel *tunnel = &k->c->tunnels[t];
	bool in = false, out = false;

	// One in the wrong mode has its own report.
	for (int transport = 0; transport < 2; transport++) {
		out |= ends_find(k, &tunnel->local, &tunnel->remote, transport, tunnel->reqid) != NULL;
		in |= ends_find(k, &tunnel->remote, &tunnel->local, transport, tunnel->reqid) != NULL;
	}
	if (!out)
		item_warning(k->l, k->l->items[SEC_TUNNELS][t], NULL,
			     "has no outbound SA, so that everything routed into it is dropped "
			     "(sa_missing); add one to sad: with reqid: %u",
			     tunnel->reqid);
	if (!in)
		item_warning(k->l, k->l->items[SEC_TUNNELS][t], NULL,
			     "has no inbound SA, so that nothing can come out of it; add one to "
			     "sad: with reqid: %u",
			     tunnel->reqid);
}

// Of all SAs, before anything is said of one.
static bool *
sas_direct(struct check *k)
{
	bool *directed = calloc(k->c->n_sas + 1, sizeof(*directed));

	for (uint32_t i = 0; directed != NULL && i < k->c->n_sas; i++)
		directed[i] = sa_direction(k, i);
	return directed;
}

static void
check_sa(struct check *k, uint32_t i, bool directed)
{
	sa_check_sequence(k, i, directed);
	if (!directed)
		return;
	sa_check_terms(k, i);
	sa_check_use(k, i);
	if (!k->c->sas[i].inbound && k->sa_used[i])
		sa_check_twin(k, i);
}

void
check_sas(struct check *k)
{
	const struct config *c = k->c;
	bool *directed = sas_direct(k);

	if (directed == NULL || !ends_build(k)) {
		item_error(k->l, k->l->root, "sad", "out of memory");
	} else {
		check_doubles_sa(k);
		ends_mark(k);
		for (uint32_t i = 0; i < c->n_sas; i++)
			check_sa(k, i, directed[i]);
	}
	free(directed);
	if (k->ends == NULL)
		return;
	for (uint32_t t = 0; t < c->n_tunnels; t++)
		if (!k->l->unsure[SEC_SAD] && !k->l->unsure[SEC_PORTS] &&
		    c->tunnels[t].reqid != 0 && c->tunnels[t].local.family != 0 &&
		    c->tunnels[t].remote.family != 0)
			tunnel_check_sas(k, t);
}
