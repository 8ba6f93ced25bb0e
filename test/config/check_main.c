/* SPDX-License-Identifier: BSD-3-Clause */
// What `sgw --check` does, without the rest of sgw: run.sh compares what this
// writes with the golden messages.
//   check_main [--dump | --keys] FILE
#include "config.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	bool dump = argc > 1 && strcmp(argv[1], "--dump") == 0;
	struct config *c;

	if (argc > 1 && strcmp(argv[1], "--keys") == 0) {
		config_print_keys(stdout);
		return 0;
	}
	if (argc != 2 + dump) {
		fprintf(stderr, "usage: check_main [--dump | --keys] FILE\n");
		return EXIT_USAGE;
	}
	if (config_load(argv[argc - 1], &c, stderr) < 0)
		return EXIT_CONFIG;
	if (dump)
		config_dump(c, stdout);
	config_free(c);
	return 0;
}
