/* SPDX-License-Identifier: BSD-3-Clause */
// What the machine is that a result was made on.
#pragma once

struct json_t;

/** An object: CPU, its instruction sets of interest, cores, kernel, versions. NULL: no memory */
struct json_t *environ_machine(void);

/** Busy and all jiffies of each core since it booted, as an array of pairs. NULL: not known */
struct json_t *environ_cpu_times(void);

/** Per cent that each core was busy between two of them; takes neither. */
struct json_t *environ_cpu_load(const struct json_t *before, const struct json_t *after);
