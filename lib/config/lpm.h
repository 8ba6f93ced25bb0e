/* SPDX-License-Identifier: BSD-3-Clause */
// Longest prefix match over connected and static routes, for the checks.
#pragma once

#include "config.h"

struct lpm_entry {
	struct prefix net;        // host bits clear
	enum cfg_route_kind kind; //
	uint32_t index;           // of the port or tunnel
	bool connected;           // from an own address, else from routes
	uint32_t from;            // connected: number of the own prefix; else index into routes
	struct cfg_at at;         // where it was written
};

struct lpm {
	struct lpm_entry *entries; // by family, length downwards, address, place in the file
	uint32_t n;                //
	uint32_t first[2][130];    // of family 4 and 6: where each length begins, [len] … [len-1]
};

/** Sort the entries, which stay the caller's to free. */
void lpm_build(struct lpm *t, struct lpm_entry *entries, uint32_t n);
/** The longest prefix that contains the address, or NULL. */
const struct lpm_entry *lpm_find(const struct lpm *t, const struct addr *a);
