/* SPDX-License-Identifier: BSD-3-Clause */
#include "err.h"

#include <stdio.h>

int
err_set(struct err *e, int kind, int code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return code;
	e->kind = kind;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}
