/* SPDX-License-Identifier: BSD-3-Clause */
// The workers from their making to their end: which of them polls what, and how packets
// come to them (system.steering).
#pragma once

#include "config.h"
#include "err.h"

#include <stdbool.h>

struct port;
struct rte_mempool;
struct tables;

// What workers work with.
struct workers_prm {
	const struct config *config;
	const struct port *ports;
	uint32_t n_ports;
	const struct tables *tables;
	struct rte_mempool *pool; // for packets that sgw makes itself
	struct rte_mempool *big;  // for reassembly
};

/**
 * With `bursts` worker 0 polls everything, and several queues of a port would only mix
 * what came in order. n_workers is set.
 */
bool workers_one_reader(const struct config *c);

/** Make and launch n_workers, one an lcore. @return 0 or not, with err filled */
int workers_start(const struct workers_prm *p, struct err *err);

/**
 * Stop them, wait for them, and give back what they hold.
 * @return false: none was launched
 */
bool workers_end(const struct tables *t);

/** Free what workers_start() has made, whole or not. Nobody looks at counters any more. */
void workers_free(void);
