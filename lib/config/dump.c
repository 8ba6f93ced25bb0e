/* SPDX-License-Identifier: BSD-3-Clause */
// What will run, as YAML again. Keys are shown as fingerprints; a file made of
// this does not load, and says why.
#include "config.h"

#include <inttypes.h>
#include <string.h>

static void
dump_addresses(const struct prefix *p, uint32_t n, FILE *out)
{
	char text[ADDR_STRLEN];

	if (n == 0)
		return;
	fputs("    addresses:\n", out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "      - \"%s\"\n", prefix_format(&p[i], text));
}

static const char *const steerings[] = {"auto", "queues", "flows", "bursts"};

static void
dump_head(const struct config *c, FILE *out)
{
	fprintf(out, "# %s, as it will run; keys as fingerprints\n", c->file);
	fprintf(out, "system:\n  name: %s\n", c->name);
	if (c->state != NULL)
		fprintf(out, "  state: \"%s\"\n", c->state);
	fprintf(out, "  mbufs: %u\n  idle: %s\n  steering: %s\n  crypto: %s\n  mss-clamp: %s\n",
		c->mbufs, c->idle == CFG_IDLE_POLL ? "poll" : "sleep", steerings[c->steering],
		c->crypto == CFG_CRYPTO_DIRECT ? "direct" : "look-aside",
		c->mss_clamp ? "true" : "false");
	if (c->allow_nonce_reuse || c->allow_published_keys)
		fputs("lab: # protections that were taken away\n", out);
	if (c->allow_nonce_reuse)
		fputs("  allow-nonce-reuse: lab-only\n", out);
	if (c->allow_published_keys)
		fputs("  allow-published-keys: lab-only\n", out);
}

static void
dump_ports(const struct config *c, FILE *out)
{
	char mac[MAC_STRLEN];

	fputs("ports:\n", out);
	for (uint32_t i = 0; i < c->n_ports; i++) {
		const struct cfg_port *p = &c->ports[i];

		fprintf(out, "  %s:\n", p->name);
		if (p->kind == CFG_PORT_PCI)
			fprintf(out, "    pci: \"%s\"\n", p->device);
		if (p->kind == CFG_PORT_DEVICE)
			fprintf(out, "    device: \"%s\"\n", p->device);
		if (p->kind == CFG_PORT_VLAN)
			fprintf(out, "    parent: %s\n    vlan: %u\n", c->ports[p->parent].name,
				p->vlan);
		if (p->has_mac)
			fprintf(out, "    mac: %s\n", mac_format(&p->mac, mac));
		dump_addresses(p->addresses, p->n_addresses, out);
		fprintf(out, "    mtu: %u\n", p->mtu);
	}
}

static void
dump_tunnels(const struct config *c, FILE *out)
{
	char text[ADDR_STRLEN];

	if (c->n_tunnels > 0)
		fputs("tunnels:\n", out);
	for (uint32_t i = 0; i < c->n_tunnels; i++) {
		const struct cfg_tunnel *t = &c->tunnels[i];
		uint32_t computed = 0;

		fprintf(out, "  %s:\n    local: \"%s\"\n", t->name, addr_format(&t->local, text));
		fprintf(out, "    remote: \"%s\"\n", addr_format(&t->remote, text));
		fprintf(out, "    reqid: %u\n", t->reqid);
		dump_addresses(t->addresses, t->n_addresses, out);
		for (uint32_t j = 0; j < c->n_sas && computed == 0; j++)
			if (!c->sas[j].inbound && !c->sas[j].transport &&
			    c->sas[j].reqid == t->reqid &&
			    addr_cmp(&c->sas[j].dst, &t->remote) == 0)
				computed = config_sa_mtu(c, &c->sas[j]);
		if (t->mtu != 0)
			fprintf(out, "    mtu: %u", t->mtu);
		else
			fputs("    # mtu: computed", out);
		if (computed != 0)
			fprintf(out, "%sits SA lets %u bytes through\n",
				t->mtu != 0 ? " # " : ", ", computed);
		else
			fprintf(out, "%sthere is no outbound SA\n", t->mtu != 0 ? " # " : ", ");
	}
}

static void
dump_neighbours(const struct config *c, FILE *out)
{
	char text[ADDR_STRLEN], mac[MAC_STRLEN];

	if (c->n_neighbours > 0)
		fputs("neighbours:\n", out);
	for (uint32_t i = 0; i < c->n_neighbours; i++) {
		const struct cfg_neighbour *n = &c->neighbours[i];

		fprintf(out, "  - { port: %s, address: \"%s\", mac: \"%s\" }\n",
			c->ports[n->port].name, addr_format(&n->address, text),
			mac_format(&n->mac, mac));
	}
}

static void
dump_routes(const struct config *c, FILE *out)
{
	char text[ADDR_STRLEN];

	if (c->n_routes > 0)
		fputs("routes: # beside the prefixes of ports and tunnels\n", out);
	for (uint32_t i = 0; i < c->n_routes; i++) {
		const struct cfg_route *r = &c->routes[i];
		const char *name = r->kind == CFG_ROUTE_PORT   ? c->ports[r->index].name :
				   r->kind == CFG_ROUTE_TUNNEL ? c->tunnels[r->index].name :
								 "";
		bool tunnel = r->kind == CFG_ROUTE_TUNNEL;

		fprintf(out, "  - { to: \"%s\"", prefix_format(&r->to, text));
		if (r->kind == CFG_ROUTE_DISCARD)
			fputs(", discard: true }\n", out);
		else if (r->via.family != 0 && tunnel)
			fprintf(out, ", via: \"%s\" } # into tunnel %s\n",
				addr_format(&r->via, text), name);
		else if (r->via.family != 0)
			fprintf(out, ", via: \"%s\", port: %s }\n", addr_format(&r->via, text),
				name);
		else
			fprintf(out, ", %s: %s }\n", tunnel ? "tunnel" : "port", name);
	}
}

static void
dump_lifetime(const char *which, const struct cfg_lifetime *l, FILE *out)
{
	if (l->bytes != 0)
		fprintf(out, "    %s-bytes: %" PRIu64 "\n", which, l->bytes);
	if (l->packets != 0)
		fprintf(out, "    %s-packets: %" PRIu64 "\n", which, l->packets);
	if (l->seconds != 0)
		fprintf(out, "    %s-seconds: %" PRIu64 "\n", which, l->seconds);
}

// What an outbound SA does to packets.
static void
dump_sa_terms(const struct cfg_sa *sa, FILE *out)
{
	static const char *const df[] = {"copy", "set", "clear"};

	if (!sa->transport) {
		fprintf(out, "    df: %s\n", df[sa->df]);
		if (sa->dscp == CFG_DSCP_COPY)
			fputs("    dscp: copy\n", out);
		else
			fprintf(out, "    dscp: %u\n", sa->dscp);
	}
	fprintf(out, "    fragment: %s\n",
		sa->fragment == CFG_FRAGMENT_BEFORE ? "before" : "after");
	if (sa->tfc_pad_to != 0)
		fprintf(out, "    tfc-pad-to: %u\n", sa->tfc_pad_to);
	if (sa->dummy_ms != 0)
		fprintf(out, "    dummy-interval: %u\n", sa->dummy_ms);
	if (sa->natt)
		fprintf(out, "    keepalive: %u\n", sa->keepalive_s);
}

// "inner packets to 1446 bytes, TCP MSS 1406 over IPv4 and 1386 over IPv6".
static void
dump_sa_sizes(const struct config *c, const struct cfg_sa *sa, FILE *out)
{
	fprintf(out, "%s to %u bytes, TCP MSS ", sa->transport ? "packets" : "inner packets",
		config_sa_mtu(c, sa));
	if (sa->transport)
		fprintf(out, "%u\n", config_sa_mss(c, sa, sa->src.family));
	else
		fprintf(out, "%u over IPv4 and %u over IPv6\n", config_sa_mss(c, sa, 4),
			config_sa_mss(c, sa, 6));
}

static void
dump_sa(const struct config *c, const struct cfg_sa *sa, FILE *out)
{
	const struct alg *cipher = alg_get(sa->cipher);
	char text[ADDR_STRLEN];

	fprintf(out, "  - spi: 0x%x # %u, %s, ", sa->spi, sa->spi,
		sa->inbound ? "inbound" : "outbound");
	dump_sa_sizes(c, sa, out);
	if (sa->name[0] < '0' || sa->name[0] > '9')
		fprintf(out, "    name: %s\n", sa->name);
	fprintf(out, "    src: \"%s\"\n", addr_format(&sa->src, text));
	fprintf(out, "    dst: \"%s\"\n    mode: %s\n", addr_format(&sa->dst, text),
		sa->transport ? "transport" : "tunnel");
	if (sa->reqid != 0)
		fprintf(out, "    reqid: %u\n", sa->reqid);
	fprintf(out, "    %s: %s # %s\n", cipher->kind == ALG_AEAD ? "aead" : "cipher",
		cipher->name, cipher->rfc);
	if (sa->key.len > 0)
		fprintf(out, "    key: fingerprint:%s # %u bytes\n", sa->fingerprint, sa->key.len);
	if (sa->auth != ALG_NONE)
		fprintf(out, "    auth: %s # %s\n    auth-key: fingerprint:%s # %u bytes\n",
			alg_get(sa->auth)->name, alg_get(sa->auth)->rfc, sa->fingerprint,
			sa->auth_key.len);
	fprintf(out, "    esn: %s\n", sa->esn ? "true" : "false");
	if (sa->inbound)
		fprintf(out, "    replay-window: %u\n", sa->replay_window);
	if (sa->natt)
		fprintf(out, "    encapsulation: udp\n    udp-destination-port: %u\n",
			sa->natt_dport);
	if (sa->natt && !sa->inbound)
		fprintf(out, "    udp-source-port: %u\n", sa->natt_sport);
	fprintf(out, "    sequence: %" PRIu64 "\n", sa->sequence);
	if (!sa->inbound)
		dump_sa_terms(sa, out);
	dump_lifetime("soft", &sa->soft, out);
	dump_lifetime("hard", &sa->hard, out);
}

static void
dump_ports_of(const char *key, const uint16_t ports[2], FILE *out)
{
	if (ports[0] == 0 && ports[1] == UINT16_MAX)
		return;
	if (ports[0] == ports[1])
		fprintf(out, "    %s: %u\n", key, ports[0]);
	else
		fprintf(out, "    %s: %u-%u\n", key, ports[0], ports[1]);
}

static void
dump_policy(const struct cfg_policy *p, FILE *out)
{
	static const char *const actions[] = {"discard", "bypass", "protect"};
	char range[RANGE_STRLEN], src[ADDR_STRLEN], dst[ADDR_STRLEN];

	fprintf(out, "  - dir: %s # searched as number %u\n", p->dir == CFG_IN ? "in" : "out",
		p->rank + 1);
	fprintf(out, "    src: \"%s\"\n", range_format(&p->src, range));
	fprintf(out, "    dst: \"%s\"\n", range_format(&p->dst, range));
	if (p->any_proto)
		fputs("    proto: any\n", out);
	else
		fprintf(out, "    proto: %u\n", p->proto);
	dump_ports_of("sport", p->sport, out);
	dump_ports_of("dport", p->dport, out);
	fprintf(out, "    action: %s\n", actions[p->action]);
	if (p->action == CFG_PROTECT) {
		if (p->transport)
			fputs("    mode: transport\n", out);
		else
			fprintf(out, "    mode: tunnel\n    tunnel: \"%s-%s\"\n",
				addr_format(&p->tunnel_src, src),
				addr_format(&p->tunnel_dst, dst));
		if (p->reqid != 0)
			fprintf(out, "    reqid: %u\n", p->reqid);
		fputs("    level: require\n", out);
	}
	fprintf(out, "    priority: %u\n", p->priority);
}

void
config_dump(const struct config *c, FILE *out)
{
	dump_head(c, out);
	dump_ports(c, out);
	dump_tunnels(c, out);
	dump_neighbours(c, out);
	dump_routes(c, out);
	if (c->n_sas > 0)
		fputs("sad:\n", out);
	for (uint32_t i = 0; i < c->n_sas; i++)
		dump_sa(c, &c->sas[i], out);
	if (c->n_policies > 0)
		fputs("spd: # what no policy and no tunnel takes is dropped\n", out);
	for (uint32_t i = 0; i < c->n_policies; i++)
		dump_policy(&c->policies[i], out);
}
