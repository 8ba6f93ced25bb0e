/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include "flow.h"
#include "frag.h"
#include "mb.h"
#include "neigh.h"
#include "port.h"
#include "steer.h"
#include "tables.h"
#include "worker.h"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <errno.h>

static bool launched;

bool
workers_one_reader(const struct config *c)
{
	return c->steering == CFG_STEER_BURSTS && n_workers > 1;
}

// What `auto` means on these ports. A single worker has nobody to give anything to.
static enum cfg_steering
choose_steering(const struct workers_prm *g)
{
	enum cfg_steering wanted = g->config->steering;

	if (n_workers == 1)
		return CFG_STEER_QUEUES;
	if (wanted != CFG_STEER_AUTO)
		return wanted;
	for (uint32_t i = 0; i < g->n_ports; i++)
		if (g->config->ports[i].kind != CFG_PORT_VLAN && g->ports[i].n_rxq < n_workers)
			return CFG_STEER_FLOWS;
	return CFG_STEER_QUEUES;
}

// Which worker polls which queue: the queues of all ports dealt out in turn, so
// that two ports with one queue each go to two workers.
static int
deal_queues(const struct workers_prm *g, struct err *err)
{
	unsigned int next = 0;

	for (uint32_t p = 0; p < g->n_ports; p++)
		for (uint16_t q = 0; q < g->ports[p].n_rxq; q++) {
			struct worker *w = workers[workers_one_reader(g->config) ? 0 : next++ % n_workers];

			if (w->n_rxqs == WORKER_RXQ_MAX)
				return err_set(err, EXIT_RESOURCE, -ENOSPC, "workers: one would poll more than %d "
					       "queues; use more cores", WORKER_RXQ_MAX);
			w->rxqs[w->n_rxqs++] = (struct rxq){g->ports[p].port_id, (uint16_t)p, q};
		}
	return 0;
}

static int
make_workers(const struct workers_prm *g, enum cfg_steering steering, struct err *err)
{
	unsigned int lcore, i = 0;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		struct worker *w = rte_zmalloc("worker", sizeof(*w), RTE_CACHE_LINE_SIZE);

		if (w == NULL)
			return err_set(err, EXIT_RESOURCE, -ENOMEM, "workers: no memory");
		workers[i] = w; // workers_free() finds what there is of it
		w->index = i++;
		w->lcore = lcore;
		w->tables = g->tables;
		w->pool = g->pool;
		// Software does not take all pieces of a packet to one worker: they share.
		w->reass = w->index == 0 || steering == CFG_STEER_QUEUES ? reass_create(g->big) : workers[0]->reass;
		if (w->reass == NULL)
			return err_set(err, EXIT_RESOURCE, -ENOMEM, "workers: no memory for reassembly");
		w->flows = flow_create();
		if (w->flows == NULL)
			return err_set(err, EXIT_RESOURCE, -ENOMEM, "workers: no memory for flows");
		w->crypto_qp = (uint16_t)w->index;
		w->mb = mb_manager_create(err);
		if (w->mb == NULL)
			return -1;
		w->idle_sleep = g->config->idle == CFG_IDLE_SLEEP;
	}
	return deal_queues(g, err);
}

int
workers_start(const struct workers_prm *g, struct err *err)
{
	enum cfg_steering steering = choose_steering(g);

	if (make_workers(g, steering, err) != 0)
		return -1;
	if (steer_start(steering) != 0)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "workers: no memory for steering");
	launched = true;
	// What comes from other workers wakes nobody: then all sleep by time.
	for (unsigned int i = 0; i < n_workers; i++)
		doze_open(workers[i], g->ports, steering == CFG_STEER_QUEUES);
	for (unsigned int i = 0; i < n_workers; i++) {
		int rc = rte_eal_remote_launch(worker_loop, workers[i], workers[i]->lcore);

		if (rc != 0)
			return err_set(err, EXIT_BUG, rc, "lcore %u: does not start", workers[i]->lcore);
	}
	return 0;
}

bool
workers_end(const struct tables *t)
{
	if (!launched)
		return false;
	worker_stop();
	rte_eal_mp_wait_lcore();
	neigh_drain(workers[0], t->neigh);
	for (unsigned int i = 0; i < n_workers; i++)
		reass_drain(workers[i]);
	return true;
}

void
workers_free(void)
{
	for (unsigned int i = 0; i < n_workers && i < WORKER_MAX; i++) {
		struct worker *w = workers[i];

		if (w == NULL)
			continue;
		if (launched)
			doze_close(w);
		if (i == 0 || w->reass != workers[0]->reass)
			reass_free(w->reass);
		flow_free(w->flows);
		mb_manager_free(w->mb);
	}
	for (unsigned int i = 0; i < n_workers && i < WORKER_MAX; i++)
		rte_free(workers[i]);
	steer_free();
}
