/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "tables.h"

#include <stdio.h>

struct rte_mempool;

/** All workers' counters of one port added up. */
void stats_port(uint32_t port, struct port_stats *out);

/** The account at the end of a run: per port, per SA, per reason, buffers. */
void stats_account(const struct tables *t, struct rte_mempool *pool, FILE *out);
