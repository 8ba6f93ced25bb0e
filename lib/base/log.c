/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

enum log_level log_threshold = LOG_NOTICE;

void
log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
	char line[1024];
	va_list ap;

	if (level > log_threshold)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	// One write a line, so that lines of two processes do not mix.
	fprintf(stderr, "sgw: %s%s\n", names[level], line);
}
