/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_int.h"

#include "clock.h"
#include "eal.h"
#include "gateway.h"
#include "pkt.h"
#include "pool.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_random.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MBUFS 24576
#define MEM_MB 160 // without packet buffers
#define NAP_US 50  // between packets on such a core

volatile sig_atomic_t engine_stopping;

// ---------------------------------------------------------------- lcores

static void
nap(const struct lane *l)
{
	uint64_t ticks = UINT64_MAX;

	for (int i = 0; i < 2; i++)
		if (l->sender[i] != NULL)
			ticks = RTE_MIN(ticks, sender_pause(l->sender[i]));
	if (ticks > rte_get_tsc_hz() / 1000000 * NAP_US)
		usleep(NAP_US);
}

static int
lane_loop(void *arg)
{
	struct lane *l = arg;
	uint64_t then = rte_rdtsc();

	prctl(PR_SET_TIMERSLACK, 1000);
	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		bool busy = false;
		uint64_t now;

		for (int i = 0; i < 2; i++) {
			if (l->sender[i] != NULL)
				busy |= sender_poll(l->sender[i]);
			if (l->receiver[i] != NULL)
				busy |= receiver_poll(l->receiver[i]);
		}
		if (!busy && l->nap)
			nap(l);
		now = rte_rdtsc();
		l->all += now - then;
		l->busy += busy ? now - then : 0;
		then = now;
		atomic_fetch_add_explicit(&l->rounds, 1, memory_order_release);
	}
	return 0;
}

static int
start_lanes(struct engine *e, struct err *err)
{
	unsigned int lcore, n = rte_lcore_count() - 1, next = 0;
	unsigned int to = e->one_port || e->senders[0].end == &e->ends[1] ? 0 : 1;

	if (n == 0)
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "cores: sgw-bench needs two, one for control and one for "
			       "packets; say `-l 0-2`, or `--lcores '0@0,1@0'` to put both on one");
	e->n_lanes = RTE_MIN(n, 4u);
	for (unsigned int i = 0; i < 2; i++)
		e->lanes[next++ % e->n_lanes].sender[i] = &e->senders[i];
	// A stream's sender and receiver are apart as soon as there are two lcores, whichever way
	// it goes.
	next = e->n_lanes == 2 ? 1 : next;
	e->lanes[next++ % e->n_lanes].receiver[to] = &e->receivers[to];
	if (!e->one_port)
		e->lanes[next++ % e->n_lanes].receiver[1 - to] = &e->receivers[1 - to];
	next = 0;
	e->lanes_up = true; // those that run when one does not are waited for
	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (next == e->n_lanes)
			break;
		e->lanes[next].nap = e->args->shared_cores;
		if (rte_eal_remote_launch(lane_loop, &e->lanes[next++], lcore) != 0)
			return err_set(err, EXIT_BUG, -EBUSY, "lcore %u: does not start", lcore);
	}
	return 0;
}

static void
stop_lanes(struct engine *e)
{
	if (!e->lanes_up)
		return;
	for (unsigned int i = 0; i < e->n_lanes; i++)
		atomic_store(&e->lanes[i].stop, true);
	rte_eal_mp_wait_lcore();
	for (unsigned int i = 0; i < e->n_lanes; i++)
		atomic_store(&e->lanes[i].stop, false);
	e->lanes_up = false;
}

// ---------------------------------------------------------------- start and stop

static int
start_eal(struct engine *e, struct err *err)
{
	const struct args *a = e->args;
	bool pci = strncmp(a->tx_port, "net_", 4) != 0 || strncmp(a->rx_port, "net_", 4) != 0;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "sgw-bench-%d", (int)getpid());
	rc = eal_start(a->eal_argc, a->eal_argv, name, pci,
		       MEM_MB + (uint32_t)((uint64_t)MBUFS * (RTE_MAX(a->mtu, 2048) + 1024u) >> 20),
		       err);
	e->eal = rc == 0;
	return rc;
}

static int
start_ends(struct engine *e, struct err *err)
{
	const struct args *a = e->args;

	e->pool = pool_create(MBUFS, a->mtu, PKT_PRIV_SIZE, err);
	if (e->pool == NULL)
		return -1;
	e->one_port = strcmp(a->tx_port, a->rx_port) == 0;
	if (end_open(&e->ends[0], "-t", a->tx_port, a->mtu, err) != 0)
		return e->ends[0].role = NULL, -1;
	if (!e->one_port && end_open(&e->ends[1], "-r", a->rx_port, a->mtu, err) != 0)
		return e->ends[1].role = NULL, -1;
	memcpy(e->ends[0].gateway, a->dut.b, 6);
	memcpy(e->ends[1].gateway, a->dut2.b, 6);
	e->ends[0].vlan = a->vlan_t;
	e->ends[1].vlan = a->vlan_r;
	for (unsigned int i = 0; i < (e->one_port ? 1u : 2u); i++)
		if (end_start(&e->ends[i], e->pool, err) != 0)
			return -1;
	return 0;
}

bool
engine_links_up(const struct engine *e)
{
	return end_link(&e->ends[0], NULL, 0) && (e->one_port || end_link(&e->ends[1], NULL, 0));
}

static int
wait_links(struct engine *e, struct err *err)
{
	for (double s = 0; !engine_links_up(e); s += 0.05) {
		if (s >= e->args->link_wait || engine_stopping)
			return err_set(err, EXIT_MACHINE, -ENETDOWN,
				       "%s: no link after %.0f s; plug the cable in, or "
				       "give it longer with --link-wait",
				       end_link(&e->ends[0], NULL, 0) ? "-r" : "-t", s);
		usleep(50000);
	}
	return 0;
}

struct engine *
engine_start(const struct args *a, struct err *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e == NULL) {
		err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
		return NULL;
	}
	e->args = a;
	clock_begin();
	// What can be wrong in a file is said before anything is touched.
	if (a->esp_file != NULL) {
		e->gateway = gateway_load(a->esp_file, err);
		if (e->gateway == NULL)
			goto fail;
		e->gateway_file = a->esp_file;
	}
	for (uint32_t i = 0; i < a->n_cases; i++) {
		struct gateway *g = NULL;

		if (a->cases[i].file == NULL)
			continue;
		g = gateway_load(a->cases[i].file, err);
		if (g == NULL)
			goto fail;
		gateway_stop(g);
	}
	if (start_eal(e, err) != 0 || start_ends(e, err) != 0 || wait_links(e, err) != 0)
		goto fail;
	if (e->gateway != NULL &&
	    gateway_start(e->gateway, &e->ends[a->esp_side == 'r' && !e->one_port].port, 2, a->mtu,
			  e->pool, err) != 0)
		goto fail;
	e->key = rte_rand();
	clock_end();
	return e;
fail:
	engine_stop(e);
	return NULL;
}

static void
drop_case(struct engine *e)
{
	stop_lanes(e);
	for (unsigned int i = 0; i < 2; i++) {
		account_free(&e->receivers[i].account);
		free(e->tunnels[i]);
		e->tunnels[i] = NULL;
	}
	memset(e->senders, 0, sizeof(e->senders));
	memset(e->receivers, 0, sizeof(e->receivers));
	memset(e->lanes, 0, sizeof(e->lanes));
}

void
engine_stop(struct engine *e)
{
	if (e == NULL)
		return;
	drop_case(e);
	gateway_stop(e->gateway);
	for (unsigned int i = 0; i < 2; i++)
		end_close(&e->ends[i]);
	if (e->eal)
		rte_eal_cleanup();
	free(e);
}

// ---------------------------------------------------------------- a case

struct end *
engine_end(struct engine *e, unsigned int i)
{
	return &e->ends[e->one_port ? 0 : i];
}

// Is what leaves (or arrives at) this port ESP of ours?
static bool
carries_esp(const struct engine *e, unsigned int port)
{
	return e->gateway != NULL && (e->args->esp_side == 'r') == (port == 1);
}

static int
set_stream(struct engine *e, struct engine_case *c, unsigned int i, bool reverse, struct err *err)
{
	unsigned int from = reverse ? 1 : 0, to = 1 - from;
	struct shape *s = &e->shapes[i];
	struct receiver *r = &e->receivers[e->one_port ? 0 : to];

	if (shape_fill(s, e->args, c->family, c->mix, reverse, err) != 0)
		return -1;
	if (s->max_l3 > e->args->mtu)
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "--size %s: IP packets of %u bytes, --mtu is %u", c->mix->name,
			       s->max_l3, e->args->mtu);
	e->senders[i].shape = s;
	e->senders[i].end = engine_end(e, from);
	e->senders[i].pool = e->pool;
	r->shape = s;
	if (account_create(&r->account, s->n_flows) != 0)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory for %u flows", s->n_flows);
	if (carries_esp(e, from)) {
		e->tunnels[i] = calloc(s->n_flows, sizeof(e->tunnels[i][0]));
		if (e->tunnels[i] == NULL)
			return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory for %u flows",
				       s->n_flows);
		if (gateway_flows(e->gateway, s, e->args->mtu, e->tunnels[i], &c->encap, err) != 0)
			return -1;
		e->senders[i].tunnels = e->tunnels[i];
		e->senders[i].seal = gateway_worker(e->gateway, 0);
	} else if (carries_esp(e, to)) {
		struct shape back;

		if (shape_fill(&back, e->args, c->family, c->mix, !reverse, err) != 0)
			return -1;
		gateway_encap_in(e->gateway, &back, &c->encap);
		r->open = gateway_worker(e->gateway, 1);
	}
	return 0;
}

int
engine_set(struct engine *e, const struct args *a, struct engine_case *c, struct err *err)
{
	drop_case(e);
	e->args = a;
	if (c->esp_file != NULL &&
	    (e->gateway_file == NULL || strcmp(c->esp_file, e->gateway_file) != 0)) {
		gateway_stop(e->gateway);
		e->gateway = gateway_load(c->esp_file, err);
		e->gateway_file = c->esp_file;
		if (e->gateway == NULL ||
		    gateway_start(e->gateway, &engine_end(e, a->esp_side == 'r')->port, 2, a->mtu,
				  e->pool, err) != 0)
			return -1;
	}
	for (unsigned int i = 0; i < 2; i++)
		e->receivers[i].end = engine_end(e, i);
	e->n_streams = c->direction == DIR_BOTH ? 2 : 1;
	for (unsigned int i = 0; i < e->n_streams; i++)
		if (set_stream(e, c, i, c->direction == DIR_REVERSE || i == 1, err) != 0)
			return -1;
	c->has_encap |= e->gateway != NULL;
	c->mean_frame = e->shapes[0].mean_l3 + RTE_ETHER_HDR_LEN;
	c->flows = e->shapes[0].n_flows;
	return start_lanes(e, err);
}

const char *
engine_port(const struct engine *e, unsigned int i, char driver[32], char mac[18], char link[32])
{
	const struct end *end = &e->ends[e->one_port ? 0 : i];
	struct rte_eth_dev_info info = {0};

	rte_eth_dev_info_get(end->port.port_id, &info);
	snprintf(driver, 32, "%s", info.driver_name != NULL ? info.driver_name : "?");
	rte_ether_format_addr(mac, 18, &end->port.mac);
	end_link(end, link, 32);
	return end->cfg.device[0] != '\0' ? end->cfg.device : mac;
}

double
engine_link_bps(const struct engine *e)
{
	double least = 0;

	for (unsigned int i = 0; i < (e->one_port ? 1u : 2u); i++) {
		struct rte_eth_link link = {0};

		rte_eth_link_get_nowait(e->ends[i].port.port_id, &link);
		if (link.link_speed != 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN &&
		    (least == 0 || link.link_speed * 1e6 < least))
			least = link.link_speed * 1e6;
	}
	return least;
}
