/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "tables.h"

struct rte_mempool;

/**
 * Register /sgw/… with DPDK's telemetry socket, for dpdk-telemetry.py and others.
 * The tables must live until telemetry_stop().
 */
void telemetry_start(const struct tables *t, struct rte_mempool *pool);

/** Answer nothing any more; when it returns nobody reads the tables. */
void telemetry_stop(void);
