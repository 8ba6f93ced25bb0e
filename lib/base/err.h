/* SPDX-License-Identifier: BSD-3-Clause */
// What a function tells its caller's user when something goes wrong.
#pragma once

#include <stdarg.h>

// Exit codes of the programs, and at the same time the kinds of error.
enum {
	EXIT_USAGE = 2,    // the command line is wrong
	EXIT_CONFIG = 3,   // the configuration is invalid, nothing was touched
	EXIT_MACHINE = 4,  // the machine differs from the configuration
	EXIT_RESOURCE = 5, // memory, hugepages, descriptors, space on disk
	EXIT_BUG = 70,     // sgw itself
};

// Filled once, where the error is seen; the caller prints it or passes it on.
struct err {
	int kind;       // one of EXIT_*, 0: no error
	char text[512]; // place, cause and remedy in one line, no newline
};

/**
 * Fill an error. Does nothing when e is NULL.
 *
 * @param e     the error to fill, may be NULL
 * @param kind  one of EXIT_*
 * @param code  the -errno that the calling function is to return
 * @param fmt   "where: what is wrong; what would be right", never a key byte
 * @return code, so that a caller can write `return err_set(e, …, -EINVAL, …)`
 */
int err_set(struct err *e, int kind, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
