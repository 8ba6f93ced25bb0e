/* SPDX-License-Identifier: BSD-3-Clause */
#include "gateway.h"

#include "config.h"
#include "crypto.h"
#include "esp.h"
#include "flow.h"
#include "frag.h"
#include "mb.h"
#include "pool.h"
#include "port.h"
#include "reserve.h"
#include "sa.h"
#include "stage.h"
#include "state.h"

#include <rte_cycles.h>
#include <rte_malloc.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct gateway {
	struct config *config;
	struct state *state;
	struct mb_manager *mb;
	struct rte_mempool *big;
	struct port *ports;
	struct sa **sas;
	uint32_t n_sas;
	struct tables *tables;
	bool crypto, reserved;
	uint64_t ticked; // TSC
};

struct gateway *
gateway_load(const char *file, struct err *err)
{
	struct gateway *g = calloc(1, sizeof(*g));

	if (g == NULL) {
		err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
		return NULL;
	}
	if (config_load(file, &g->config, stderr) == 0)
		return g;
	err_set(err, EXIT_CONFIG, -EINVAL,
		"-f %s: see above; `sgw -- -f %s --check` tells the same", file, file);
	free(g);
	return NULL;
}

static int
make_sas(struct gateway *g, unsigned int n, struct err *err)
{
	const struct config *c = g->config;
	uint32_t n_look_aside = 0;

	if (c->state != NULL && state_open(c->state, &g->state, err) != 0)
		return -1;
	for (uint32_t i = 0; i < c->n_sas; i++)
		n_look_aside += !sa_is_direct(&c->sas[i], c->crypto);
	if (n_look_aside > 0 && crypto_open((uint16_t)n, n_look_aside, err) != 0)
		return -1;
	g->crypto = n_look_aside > 0;
	g->mb = mb_manager_create(err);
	if (g->mb == NULL)
		return -1;
	g->sas = calloc(c->n_sas + 1, sizeof(struct sa *));
	if (g->sas == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	for (; g->n_sas < c->n_sas; g->n_sas++) {
		const struct cfg_sa *sa = &c->sas[g->n_sas];

		g->sas[g->n_sas] = sa_create(sa, sa_is_direct(sa, c->crypto) ? g->mb : NULL, n,
					     PKT_IV_OFFSET, g->state, err);
		if (g->sas[g->n_sas] == NULL)
			return -1;
	}
	config_wipe_keys(g->config);
	return 0;
}

// All ports of the file are the one that carries ESP.
static int
make_tables(struct gateway *g, const struct port *port, struct err *err)
{
	const struct config *c = g->config;

	g->ports = calloc(c->n_ports, sizeof(*g->ports));
	if (g->ports == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < c->n_ports; i++) {
		g->ports[i] = *port;
		snprintf(g->ports[i].name, sizeof(g->ports[i].name), "%s", c->ports[i].name);
	}
	g->tables = tables_build(c, g->ports, g->sas, err);
	return g->tables != NULL ? 0 : -1;
}

static int
make_worker(struct gateway *g, unsigned int i, struct rte_mempool *pool, struct err *err)
{
	struct worker *w = rte_zmalloc("worker", sizeof(*w), RTE_CACHE_LINE_SIZE);

	if (w == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	workers[i] = w;
	w->index = i;
	w->tables = g->tables;
	w->pool = pool;
	w->crypto_qp = (uint16_t)i;
	w->hz = rte_get_tsc_hz();
	w->now = rte_rdtsc();
	w->reass = reass_create(g->big);
	w->flows = flow_create();
	w->mb = mb_manager_create(err);
	if (w->reass == NULL || w->flows == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	return w->mb != NULL ? 0 : -1;
}

int
gateway_start(struct gateway *g, const struct port *port, unsigned int n, uint16_t mtu,
	      struct rte_mempool *pool, struct err *err)
{
	n_workers = n;
	g->big = pool_create_big(n * (REASS_CONTEXTS + REASS_SPARE), PKT_PRIV_SIZE, err);
	if (g->big == NULL || make_sas(g, n, err) != 0 || make_tables(g, port, err) != 0)
		return -1;
	if (reserve_start(g->state, g->sas, g->n_sas, err) != 0)
		return -1;
	g->reserved = true;
	g->ticked = rte_rdtsc();
	for (unsigned int i = 0; i < n; i++)
		if (make_worker(g, i, pool, err) != 0)
			return -1;
	return 0;
}

void
gateway_tick(struct gateway *g)
{
	uint64_t now = rte_rdtsc(), every = rte_get_tsc_hz() / 1000 * RESERVE_MS;
	uint64_t ticks = (now - g->ticked) / every;

	if (ticks == 0)
		return;
	g->ticked += ticks * every;
	reserve_tick(ticks);
}

void
gateway_stop(struct gateway *g)
{
	if (g == NULL)
		return;
	if (g->reserved)
		reserve_stop();
	for (unsigned int i = 0; i < n_workers && i < WORKER_MAX && workers[i] != NULL; i++) {
		if (workers[i]->reass != NULL)
			reass_drain(workers[i]);
		reass_free(workers[i]->reass);
		flow_free(workers[i]->flows);
		mb_manager_free(workers[i]->mb);
		rte_free(workers[i]);
		workers[i] = NULL;
	}
	if (g->tables != NULL)
		tables_free(g->tables);
	for (uint32_t i = 0; i < g->n_sas; i++)
		sa_free(g->sas[i]);
	if (g->crypto)
		crypto_close();
	mb_manager_free(g->mb);
	rte_mempool_free(g->big); // a sweep makes another one
	if (g->state != NULL)
		state_close(g->state);
	free(g->sas);
	free(g->ports);
	config_free(g->config);
	free(g);
}

struct worker *
gateway_worker(struct gateway *g, unsigned int i)
{
	return workers[i];
}

// ---------------------------------------------------------------- flows

static void
fill_encap(const struct sa *sa, struct encap *e)
{
	*e = (struct encap){
		.cipher = sa->cipher,
		.auth = sa->auth,
		.family = sa->family,
		.natt = sa->natt,
		.esn = sa->esn,
		.transport = sa->transport,
	};
}

// As the path decides about a packet of its own side.
// @return the tunnel, or NULL: none, in clear, or refused
static const struct tunnel *
decide_flow(struct worker *w, const struct shape *s, uint32_t flow)
{
	const struct tunnel *t = NULL;
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	uint8_t *ip = m == NULL ? NULL : (uint8_t *)rte_pktmbuf_append(m, shape_l3(s, flow, 0));

	if (ip == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	shape_write(s, ip, flow, 0, 0, 0);
	m->port = 0;
	memset(pkt(m), 0, offsetof(struct pkt, op));
	pkt(m)->family = s->family;
	pkt(m)->nexthop = PKT_NO_NEXTHOP;
	if (ip_inspect(m, true) >= 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	if (policy_select(w, &m, 1) == 0)
		return NULL;
	t = pkt(m)->tunnel;
	rte_pktmbuf_free(m);
	return t;
}

int
gateway_flows(struct gateway *g, const struct shape *s, uint16_t mtu, const struct tunnel **tunnels,
	      struct encap *encap, struct err *err)
{
	for (uint32_t f = 0; f < s->n_flows; f++) {
		const struct tunnel *t = decide_flow(workers[0], s, f);
		char src[ADDR_STRLEN], dst[ADDR_STRLEN];
		uint32_t most;

		tunnels[f] = t;
		if (t == NULL || t->sa_out == NULL)
			return err_set(
				err, EXIT_CONFIG, -EINVAL,
				"-f %s: flow %u of those from %s to %s … goes into no "
				"tunnel with an outbound SA; give it a policy or a route there, or choose "
				"other addresses with --src and --dst",
				g->config->file, f, addr_format(&s->src, src),
				addr_format(&s->dst, dst));
		most = sa_inner_mtu(t->sa_out, mtu);
		if (s->max_l3 > most)
			return err_set(err, EXIT_CONFIG, -EINVAL,
				       "--size: an IP packet of %u bytes does not fit SA %s "
				       "at MTU %u, %u bytes do",
				       s->max_l3, t->sa_out->name, mtu, most);
	}
	fill_encap(tunnels[0]->sa_out, encap);
	return 0;
}

void
gateway_encap_in(struct gateway *g, const struct shape *back, struct encap *encap)
{
	const struct tunnel *t = decide_flow(workers[0], back, 0);

	*encap = (struct encap){0};
	for (uint32_t i = 0; i < g->n_sas; i++) {
		bool of_flow = t != NULL && g->sas[i]->tunnel == t;

		if (g->sas[i]->inbound && (of_flow || encap->cipher == ALG_NONE))
			fill_encap(g->sas[i], encap);
		if (g->sas[i]->inbound && of_flow)
			return;
	}
}

// ---------------------------------------------------------------- bursts

uint16_t
gateway_seal(struct worker *w, struct rte_mbuf **pkts, const struct tunnel **tunnels,
	     uint8_t family, uint16_t n)
{
	w->now = rte_rdtsc();
	for (uint16_t i = 0; i < n; i++) {
		struct pkt *p = pkt(pkts[i]);

		memset(p, 0, offsetof(struct pkt, op));
		p->family = family;
		p->proto = IPPROTO_UDP;
		p->tunnel = tunnels[i];
		pkts[i]->port = 0;
	}
	return esp_seal(w, pkts, n);
}

uint16_t
gateway_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **rest,
	     uint16_t *n_rest)
{
	struct rte_mbuf *sound[BURST], *esp[BURST];
	uint16_t n_sound = 0, n_esp = 0;

	w->now = rte_rdtsc();
	*n_rest = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		memset(pkt(m), 0, offsetof(struct pkt, op));
		m->port = 0;
		m->l2_len = 0;
		pkt(m)->family = *rte_pktmbuf_mtod(m, uint8_t *) >> 4;
		pkt(m)->nexthop = PKT_NO_NEXTHOP;
		pkt(m)->slot = (uint8_t)i;
		if (ip_inspect(m, false) < 0)
			sound[n_sound++] = m;
		else
			rest[(*n_rest)++] = m;
	}
	n_sound = frag_join(w, sound, n_sound);
	n_sound = esp_select(w, sound, n_sound, esp, &n_esp);
	memcpy(rest + *n_rest, sound, n_sound * sizeof(sound[0]));
	*n_rest = (uint16_t)(*n_rest + n_sound);
	n = esp_open(w, esp, n_esp);
	memcpy(pkts, esp, n * sizeof(esp[0]));
	return n;
}

void
gateway_refused(const struct worker *w, uint64_t *bad, uint64_t *replayed)
{
	const uint64_t *ended = w->ports[0].ended;

	*bad = 0;
	for (unsigned int r = DROP_esp_runt; r <= DROP_esp_crypto; r++)
		*bad += ended[r];
	*replayed = ended[DROP_esp_replay] + ended[DROP_esp_late];
	*bad -= *replayed;
}
