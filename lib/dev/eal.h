/* SPDX-License-Identifier: BSD-3-Clause */
// Starting EAL the way sgw needs it, and saying in one line why it does not start.
#pragma once

#include "err.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Start EAL with the user's arguments and what sgw adds where the user said
 * nothing: --file-prefix (several instances on one box), --no-pci when no port
 * is a PCI device, -m with --no-huge, --huge-unlink (no keys left behind in
 * hugepage files after a crash).
 *
 * @param argc,argv  program name and the EAL options of the command line
 * @param name       of the instance
 * @param pci        some port is a PCI device
 * @param mem_mb     memory that sgw will need, in megabytes
 * @return 0 or -errno, with err filled: what is missing and the command that mends it
 */
int eal_start(int argc, char **argv, const char *name, bool pci, uint32_t mem_mb, struct err *err);

// What DPDK prints, kept away from the user, for what can be made of it.
struct eal_capture {
	int fd;
	int saved[2];
	char text[16384]; // after eal_capture_end()
};

/** Catch standard output and error from here on. @return 0 or -errno: not caught */
int eal_capture_begin(struct eal_capture *c);
/** Give them back; what was written stands in c->text. */
void eal_capture_end(struct eal_capture *c);
