/* SPDX-License-Identifier: BSD-3-Clause */
// Prints the keys of the configuration for sgw.yaml(5), out of the schema that
// the parser itself uses. Runs at build time only.
#include "config.h"

int
main(void)
{
	config_print_keys(stdout);
	return ferror(stdout) != 0;
}
