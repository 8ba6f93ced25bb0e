/* SPDX-License-Identifier: BSD-3-Clause */
// Would sgw-bench take this command line? For the examples in the documents.
#include "args.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	static struct args args;
	struct err err = {0};

	if (args_parse(argc, argv, &args, &err) == 0)
		return 0;
	fprintf(stderr, "%s\n", err.text);
	return err.kind;
}
