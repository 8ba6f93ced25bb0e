/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal.h"

#include "log.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGS_MAX 128
#define TEXT_MAX 65536

// What EAL says (as a piece of its text) and what a person needs to hear. The
// first that is found counts. %s is the rest of EAL's own line.
struct complaint {
	const char *says;
	int kind;
	const char *means;
};

static const struct complaint complaints[] = {
	{"Is another primary process running?", EXIT_MACHINE,
	 "another process with this name runs already; stop it, or give this one another system.name"},
	{"Cannot create lock on", EXIT_MACHINE,
	 "another process with this name runs already; stop it, or give this one another system.name"},
	{"invalid core list syntax", EXIT_USAGE,
	 "-l names a core that this machine does not have, or is not of the form 0-3 or 0,2; "
	 "`lscpu -e` lists the cores"},
	{"invalid coremask syntax", EXIT_USAGE,
	 "-c names a core that this machine does not have; `lscpu -e` lists the cores"},
	{"invalid syntax for --lcores", EXIT_USAGE,
	 "--lcores names a core that this machine does not have, or is not of the form '0@0,1@1'; "
	 "`lscpu -e` lists the cores"},
	{"is unavailable", EXIT_USAGE, // lcore %u unavailable
	 "a core that was asked for is not on this machine, or taken away by a cgroup or isolcpus; "
	 "`lscpu -e` lists the cores"},
	{"unavailable", EXIT_USAGE,
	 "a core that was asked for is not on this machine, or taken away by a cgroup or isolcpus; "
	 "`lscpu -e` lists the cores"},
	{"No free hugepages reported", EXIT_RESOURCE,
	 "no free hugepages; reserve some with `sysctl vm.nr_hugepages=256` (2 MB each), or run without "
	 "by the EAL option --no-huge"},
	{"No free 2048 kB hugepages", EXIT_RESOURCE,
	 "no free hugepages; reserve some with `sysctl vm.nr_hugepages=256` (2 MB each), or run without "
	 "by the EAL option --no-huge"},
	{"hugetlbfs mount", EXIT_RESOURCE,
	 "hugetlbfs is not mounted; `mount -t hugetlbfs none /dev/hugepages`, or run without hugepages "
	 "by the EAL option --no-huge"},
	{"get hugepage information", EXIT_RESOURCE,
	 "no usable hugepages; reserve some with `sysctl vm.nr_hugepages=256` (2 MB each) and mount "
	 "hugetlbfs, or run without by the EAL option --no-huge"},
	{"Not enough memory available", EXIT_RESOURCE,
	 "not enough free hugepages; reserve more with `sysctl vm.nr_hugepages=512` (2 MB each)"},
	{"--no-huge", EXIT_USAGE,
	 "--no-huge can not stand with this other EAL option; leave the other one out"},
	{"unrecognized option", EXIT_USAGE,
	 "an EAL option is unknown; `sgw --help` tells about sgw's own, which stand behind --"},
	{"invalid option", EXIT_USAGE,
	 "an EAL option is unknown; `sgw --help` tells about sgw's own, which stand behind --"},
	{"Cannot allocate memory", EXIT_RESOURCE,
	 "not enough memory; give less with -m, or free some"},
	{"Permission denied", EXIT_RESOURCE,
	 "permission denied; run as root, or without hugepages by the EAL option --no-huge"},
	{"iova", EXIT_MACHINE,
	 "memory can not be mapped for the devices; is the IOMMU on and are the NICs bound to vfio-pci?"},
};

static bool
has_option(int argc, char **argv, const char *name)
{
	size_t n = strlen(name);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], name, n) == 0 &&
		    (argv[i][n] == '\0' || argv[i][n] == '=' || name[1] != '-'))
			return true;
	return false;
}

// Standard output and error to a memory file: EAL writes its failures to both, in
// dozens of lines that do not help the user.
static int
capture_begin(int saved[static 2])
{
	int fd = memfd_create("eal", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		saved[i] = dup(i + 1);
		dup2(fd, i + 1);
	}
	return fd;
}

static void
capture_end(int fd, const int saved[static 2], char text[static TEXT_MAX])
{
	ssize_t n;

	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], i + 1);
		close(saved[i]);
	}
	n = pread(fd, text, TEXT_MAX - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

static int
explain(const char *text, struct err *err)
{
	const char *line, *end;

	for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
		if (strstr(text, complaints[i].says) != NULL)
			return err_set(err, complaints[i].kind, -EINVAL, "EAL: %s", complaints[i].means);
	// Unknown: its own first line is better than nothing.
	line = strstr(text, "EAL: ");
	line = line != NULL ? line + 5 : rte_strerror(rte_errno);
	end = strchrnul(line, '\n');
	return err_set(err, EXIT_MACHINE, -EINVAL, "EAL does not start: %.*s; `--log-level=8` before -- "
		       "tells more", (int)(end - line), line);
}

int
eal_start(int argc, char **argv, const char *name, bool pci, uint32_t mem_mb, struct err *err)
{
	char prefix[64], mem[16], *args[ARGS_MAX];
	char *text = malloc(TEXT_MAX);
	bool verbose = has_option(argc, argv, "--log-level");
	int n = 0, rc, fd = -1, saved[2];

	if (argc > ARGS_MAX - 8 || text == NULL) {
		free(text);
		return err_set(err, EXIT_USAGE, -E2BIG, "too many EAL options");
	}
	for (int i = 0; i < argc; i++)
		args[n++] = argv[i];
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", name);
	snprintf(mem, sizeof(mem), "%u", mem_mb);
	if (!has_option(argc, argv, "--file-prefix"))
		args[n++] = prefix;
	if (!pci && !has_option(argc, argv, "--no-pci") && !has_option(argc, argv, "-a") &&
	    !has_option(argc, argv, "--allow"))
		args[n++] = (char *)(uintptr_t)"--no-pci";
	if (!has_option(argc, argv, "--no-huge"))
		args[n++] = (char *)(uintptr_t)"--huge-unlink";
	else if (!has_option(argc, argv, "-m")) {
		args[n++] = (char *)(uintptr_t)"-m";
		args[n++] = mem;
	}
	args[n] = NULL;
	if (!verbose)
		fd = capture_begin(saved);
	rc = rte_eal_init(n, args);
	if (fd >= 0)
		capture_end(fd, saved, text);
	else
		text[0] = '\0';
	if (rc < 0)
		rc = explain(text, err);
	else if (!verbose)
		rte_log_set_global_level(RTE_LOG_ERR); // later faults are reported by us
	free(text);
	return rc < 0 ? rc : 0;
}
