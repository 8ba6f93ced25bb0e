/* SPDX-License-Identifier: BSD-3-Clause */
// Errors and warnings about one file, collected and then written in the order
// of their lines.
#pragma once

#include "config.h"

#include <stdarg.h>
#include <stddef.h>

#define DIAG_LINES_MAX 1000 // a list of 100000 routes in a wrong form would fill the terminal

struct diag_line {
	struct cfg_at at;
	uint32_t order; // of arrival, where two stand at one place
	bool warning;   //
	char *text;     // "path: what is wrong; what would be right"
};

struct diag {
	const char *file;        // as given on the command line
	struct diag_line *lines; //
	uint32_t n, room;        //
	uint32_t errors;         // lines that are no warnings, those without room included
};

void diag_add(struct diag *d, bool warning, struct cfg_at at, const char *path, const char *fmt,
	      va_list ap);
void diag_error(struct diag *d, struct cfg_at at, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** Write all lines sorted by place, each once, and forget them. */
void diag_flush(struct diag *d, FILE *out);

#define QUOTE_STRLEN 280

/**
 * A word of the user's in quotes, fit to be shown: shortened, control and
 * foreign bytes as \xNN. What could be a key (hex:, ascii:, 32 and more hex
 * digits) is not shown at all. @return buf.
 */
const char *quote(const char *text, char buf[static QUOTE_STRLEN]);
