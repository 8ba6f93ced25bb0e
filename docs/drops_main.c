/* SPDX-License-Identifier: BSD-3-Clause */
// Prints the drop reasons for sgw(8), out of the list that the packet path itself
// uses. Runs at build time only.
#include "drop.h"

#include <stdio.h>
#include <string.h>

// An underscore would change the face in scdoc.
static void
scdoc_print(const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("_*", *text) != NULL)
			putchar('\\');
		putchar(*text);
	}
}

static void
row_print(const char *name, const char *class, const char *text)
{
	printf("|  ");
	scdoc_print(name);
	printf("\n:  %s\n:  ", class);
	scdoc_print(text);
	putchar('\n');
}

int
main(void)
{
	printf("|[ *Reason*\n:[ *Class*\n:< *Meaning*\n");
#define X(name, class, text) row_print(#name, strcmp(#class, "DROP") == 0 ? "drop" : "taken", text);
	DROP_REASONS(X)
#undef X
	return ferror(stdout) != 0;
}
