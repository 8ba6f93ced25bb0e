/* SPDX-License-Identifier: BSD-3-Clause */
// Between the files that build the tables: tables.c, tables_tunnel.c, tables_route.c.
#pragma once

#include "tables.h"

// tables.c
/** @return -ENOMEM, with err filled */
int no_memory(struct err *err, const char *what);
int copy_addresses(struct prefix **out, uint32_t *n_out, const struct prefix *from, uint32_t n);

// tables_tunnel.c
/**
 * Tunnels, those of policies too, and the SAs bound to them.
 * @param of_policy  filled: a tunnel for each protect policy
 */
int build_tunnels(struct tables *t, const struct config *c, struct sa **sas,
		  const struct tunnel **of_policy, struct err *err);
/** The way to each remote, and the largest inner packet that fits it: once there are routes. */
void build_ways(struct tables *t);

// tables_route.c
int build_routes(struct tables *t, const struct config *c, struct err *err);
