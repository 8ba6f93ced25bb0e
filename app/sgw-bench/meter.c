/* SPDX-License-Identifier: BSD-3-Clause */
#include "meter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT "timeout -k 1 2 sh -c " // seconds that a command may take

// The first number of a line.
static double
number_in(FILE *f)
{
	char line[256], *p = line, *end;
	double v;

	if (f == NULL || fgets(line, sizeof(line), f) == NULL)
		return NAN;
	p += strcspn(p, "0123456789-+");
	v = strtod(p, &end);
	return end == p || !isfinite(v) ? NAN : v;
}

// The operator's own command, by the shell that he would type it into; a quote ends up as a
// quote.
static double
run_command(const char *command)
{
	char line[1024] = LIMIT "'";
	size_t n = strlen(line);
	FILE *f;
	double v;

	for (const char *c = command; *c != '\0'; c++) {
		if (n + 6 >= sizeof(line))
			return NAN;
		n += (size_t)snprintf(line + n, sizeof(line) - n, *c == '\'' ? "'\\''" : "%c", *c);
	}
	strcpy(line + n, "'");
	f = popen(line, "r");
	v = number_in(f);
	if (f != NULL && pclose(f) != 0)
		return NAN;
	return v;
}

double
meter_read(const char *source)
{
	char *end;
	double v = strtod(source, &end);
	FILE *f;

	if (end != source && *end == '\0')
		return isfinite(v) ? v : NAN;
	if (source[0] == '!')
		return run_command(source + 1);
	f = fopen(source, "r");
	v = number_in(f);
	if (f != NULL)
		fclose(f);
	return v;
}

int
meter_check(const char *source, const char *option, struct err *err)
{
	if (!isnan(meter_read(source)))
		return 0;
	return err_set(err, EXIT_USAGE, -EINVAL,
		       "%s %s: gives no number; write a number, a file that begins with "
		       "one, or !COMMAND that prints one within 2 s",
		       option, source);
}
