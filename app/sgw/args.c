/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include "text.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const char args_help[] =
	"usage: sgw [EAL options] -- -f FILE [--check | --dump] [--exit-idle MS]\n"
	"       sgw --help | --version\n"
	"\n"
	"sgw, an IPsec security gateway: DPDK workers, one on each core but the first.\n"
	"\n"
	"  -f, --file FILE   the configuration, see sgw.yaml(5)\n"
	"      --check       read and check FILE, say what is wrong with it, touch nothing;\n"
	"                    needs neither root nor hugepages\n"
	"      --dump        print what would run, keys as fingerprints; touches nothing\n"
	"      --exit-idle MS  stop when nothing was received for MS milliseconds, for\n"
	"                    replaying captures with net_pcap\n"
	"  -h, --help        this text\n"
	"  -V, --version     the versions of sgw and DPDK\n"
	"\n"
	"EAL options stand before `--`. The ones that matter:\n"
	"  -l 0-3            cores: the first is the control thread, the others are workers\n"
	"                    (at least two cores, `-l 0-1`)\n"
	"  --lcores '0@0,1@1'  the same, with lcore numbers and processors chosen freely\n"
	"  --no-huge         without hugepages (virtual devices only)\n"
	"  --log-level=8     everything that DPDK has to say\n"
	"\n"
	"example: sgw -l 0-3 -- -f config/rcc-ve.yaml\n"
	"\n"
	"Stop it with SIGINT or SIGTERM: it prints an account of ports, SAs and drops.\n"
	"exit codes: 0 stopped, 2 usage, 3 configuration invalid (nothing touched),\n"
	"4 the machine differs from the configuration, 5 resources missing, 70 bug\n";

static int
needs_value(int argc, char **argv, int *i, const char **value, struct err *err)
{
	if (*i + 1 >= argc)
		return err_set(err, EXIT_USAGE, -EINVAL, "command line: %s wants a value behind it",
			       argv[*i]);
	*value = argv[++*i];
	return 0;
}

static int
parse_own(int argc, char **argv, struct args *a, struct err *err)
{
	const char *value = NULL;
	uint64_t ms;
	int rc = 0;

	for (int i = 0; rc == 0 && i < argc; i++) {
		const char *s = argv[i];

		if (strcmp(s, "-f") == 0 || strcmp(s, "--file") == 0) {
			if (a->file != NULL)
				return err_set(err, EXIT_USAGE, -EINVAL, "command line: -f is given twice; name "
					       "one file");
			rc = needs_value(argc, argv, &i, &a->file, err);
		} else if (strcmp(s, "--check") == 0) {
			a->check = true;
		} else if (strcmp(s, "--dump") == 0) {
			a->dump = true;
		} else if (strcmp(s, "-h") == 0 || strcmp(s, "--help") == 0) {
			a->help = true;
		} else if (strcmp(s, "-V") == 0 || strcmp(s, "--version") == 0) {
			a->version = true;
		} else if (strcmp(s, "--exit-idle") == 0) {
			rc = needs_value(argc, argv, &i, &value, err);
			if (rc == 0 && (text_u64(value, &ms) != 0 || ms == 0 || ms > 3600000))
				return err_set(err, EXIT_USAGE, -EINVAL, "command line: --exit-idle wants "
					       "milliseconds from 1 to 3600000, not \"%s\"", value);
			if (rc == 0)
				a->exit_idle_ms = (uint32_t)ms;
		} else {
			return err_set(err, EXIT_USAGE, -EINVAL, "command line: \"%s\" is not an option of sgw; "
				       "`sgw --help` lists them (EAL options stand before --)", s);
		}
	}
	return rc;
}

int
args_parse(int argc, char **argv, struct args *a, struct err *err)
{
	int split = 1, rc;

	*a = (struct args){.eal_argv = argv};
	while (split < argc && strcmp(argv[split], "--") != 0) {
		// These two are asked for without thinking of EAL.
		if (strcmp(argv[split], "--help") == 0 || strcmp(argv[split], "-h") == 0)
			a->help = true;
		if (strcmp(argv[split], "--version") == 0 || strcmp(argv[split], "-V") == 0)
			a->version = true;
		split++;
	}
	a->eal_argc = split;
	if (a->help || a->version)
		return 0;
	if (split == argc)
		return err_set(err, EXIT_USAGE, -EINVAL, "command line: no `--`; write `sgw [EAL options] -- "
			       "-f FILE`, or `sgw --help`");
	rc = parse_own(argc - split - 1, argv + split + 1, a, err);
	if (rc != 0 || a->help || a->version)
		return rc;
	if (a->file == NULL)
		return err_set(err, EXIT_USAGE, -EINVAL, "command line: no configuration; add `-f FILE` "
			       "behind --");
	return 0;
}
