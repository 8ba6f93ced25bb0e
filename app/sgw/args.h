/* SPDX-License-Identifier: BSD-3-Clause */
// What stands after `--` on the command line.
#pragma once

#include "err.h"

#include <stdbool.h>
#include <stdint.h>

struct args {
	int eal_argc;      // program name and everything before `--`
	char **eal_argv;   //
	const char *file;  // -f
	bool check;        // --check
	bool dump;         // --dump
	bool help;         // --help, on either side of `--`
	bool version;      // --version, on either side of `--`
	uint32_t exit_idle_ms; // --exit-idle, 0: run until a signal comes
};

/** @return 0, or -EINVAL with err filled (EXIT_USAGE) */
int args_parse(int argc, char **argv, struct args *a, struct err *err);

extern const char args_help[];
