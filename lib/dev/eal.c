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

// What EAL says (as a piece of its text) and what a person needs to hear. The
// first that is found counts; EAL's own line is quoted behind it.
struct complaint {
	const char *says;
	int kind;
	const char *means;
};

#define NO_HUGEPAGES                                                                           \
	"no free hugepages; reserve some with `sysctl vm.nr_hugepages=256` (2 MB each); virtual "  \
	"devices can do without, by the EAL option --no-huge"
#define NO_CORE                                                                                \
	"a core that was asked for is not on this machine, or is kept away by a cgroup; `lscpu -e` " \
	"lists the cores"

static const struct complaint complaints[] = {
	{"Is another primary process running?", EXIT_MACHINE,
	 "another process with this name runs already; stop it, or give this one another system.name"},
	{"unrecognized option", EXIT_USAGE,
	 "an option before -- is unknown; sgw's own options stand behind --"},
	{"invalid option", EXIT_USAGE,
	 "an option before -- is unknown; sgw's own options stand behind --"},
	{"requires an argument", EXIT_USAGE, "an option before -- lacks its value"},
	{"invalid core list syntax", EXIT_USAGE,
	 "what -l names is no list of cores of this machine; write it like 0-1 or 0,2 (`lscpu -e` lists "
	 "them)"},
	{"invalid core list", EXIT_USAGE, NO_CORE},
	{"invalid coremask", EXIT_USAGE, NO_CORE},
	{"for --lcores", EXIT_USAGE, NO_CORE},
	{"unavailable", EXIT_USAGE, NO_CORE},
	{"Main lcore is not enabled", EXIT_USAGE,
	 "the core of --main-lcore is not among those of -l; name it in both"},
	{"be specified", EXIT_USAGE, "two options before -- exclude each other; leave one out"},
	{"not compatible", EXIT_USAGE, "two options before -- exclude each other; leave one out"},
	{"hugetlbfs mount", EXIT_RESOURCE,
	 "hugetlbfs is not mounted; `mount -t hugetlbfs none /dev/hugepages`, virtual devices can do without, "
	 "by the EAL option --no-huge"},
	{"no mounted hugetlbfs", EXIT_RESOURCE,
	 "hugetlbfs is not mounted; `mount -t hugetlbfs none /dev/hugepages`, virtual devices can do without, "
	 "by the EAL option --no-huge"},
	{"No free hugepages reported", EXIT_RESOURCE, NO_HUGEPAGES},
	{"kB hugepages reported", EXIT_RESOURCE, NO_HUGEPAGES},
	{"get hugepage information", EXIT_RESOURCE, NO_HUGEPAGES},
	{"Not enough memory available", EXIT_RESOURCE,
	 "not enough free hugepages; reserve more with `sysctl vm.nr_hugepages=512` (2 MB each)"},
	{"Permission denied", EXIT_RESOURCE,
	 "permission denied; run as root, or without hugepages by the EAL option --no-huge"},
	{"Operation not permitted", EXIT_RESOURCE,
	 "permission denied; run as root, or without hugepages by the EAL option --no-huge"},
	{"Cannot allocate memory", EXIT_RESOURCE,
	 "not enough memory; give less with -m, or free some"},
	{"invalid parameter", EXIT_USAGE, "an option before -- has a wrong value"},
	{"IOVA", EXIT_MACHINE,
	 "memory can not be mapped for the devices; is the IOMMU on, and are the NICs bound to vfio-pci?"},
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

// Standard output and error to a memory file: DPDK writes its failures to both, in
// dozens of lines that do not help the user.
int
eal_capture_begin(struct eal_capture *c)
{
	c->fd = memfd_create("eal", MFD_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		c->saved[i] = dup(i + 1);
		dup2(c->fd, i + 1);
	}
	return 0;
}

void
eal_capture_end(struct eal_capture *c)
{
	ssize_t n;

	c->text[0] = '\0';
	if (c->fd < 0)
		return;
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		dup2(c->saved[i], i + 1);
		close(c->saved[i]);
	}
	n = pread(c->fd, c->text, sizeof(c->text) - 1, 0);
	c->text[n > 0 ? n : 0] = '\0';
	close(c->fd);
	// After a wrong option EAL prints its help, where every word can be found.
	char *usage = strstr(c->text, "Usage: ");

	if (usage != NULL)
		*usage = '\0';
}

// The line in which `at` stands, without "EAL: " and program name.
static void
line_around(const char *text, const char *at, char *out, size_t size)
{
	const char *begin = at;

	while (begin > text && begin[-1] != '\n')
		begin--;
	if (strncmp(begin, "EAL: ", 5) == 0)
		begin += 5;
	snprintf(out, size, "%.*s", (int)strcspn(begin, "\n"), begin);
}

static int
explain(const char *text, struct err *err)
{
	char line[200];

	for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++) {
		const char *at = strstr(text, complaints[i].says);

		if (at == NULL)
			continue;
		line_around(text, at, line, sizeof(line));
		return err_set(err, complaints[i].kind, -EINVAL, "EAL: %s (EAL: %s)", complaints[i].means,
			       line);
	}
	// Unknown: its own first line is better than nothing.
	line_around(text, text, line, sizeof(line));
	return err_set(err, EXIT_MACHINE, -EINVAL, "EAL does not start: %s; `--log-level=8` before -- "
		       "tells more", line[0] != '\0' ? line : rte_strerror(rte_errno));
}

// The user's arguments and ours. @return how many
static int
fill_args(int argc, char **argv, char **args, char *prefix, bool pci, char *mem)
{
	int n = 0;

	for (int i = 0; i < argc; i++)
		args[n++] = argv[i];
	if (!has_option(argc, argv, "--file-prefix"))
		args[n++] = prefix;
	if (!pci && !has_option(argc, argv, "--no-pci") && !has_option(argc, argv, "-a") &&
	    !has_option(argc, argv, "--allow"))
		args[n++] = (char *)(uintptr_t)"--no-pci";
	if (!has_option(argc, argv, "--no-huge")) {
		if (!has_option(argc, argv, "--huge-unlink"))
			args[n++] = (char *)(uintptr_t)"--huge-unlink";
	} else if (!has_option(argc, argv, "-m")) {
		args[n++] = (char *)(uintptr_t)"-m";
		args[n++] = mem;
	}
	args[n] = NULL;
	return n;
}

int
eal_start(int argc, char **argv, const char *name, bool pci, uint32_t mem_mb, struct err *err)
{
	static struct eal_capture capture;
	char prefix[64], mem[16], *args[ARGS_MAX];
	bool verbose = has_option(argc, argv, "--log-level");
	int n, rc;

	if (argc > ARGS_MAX - 8)
		return err_set(err, EXIT_USAGE, -E2BIG, "too many EAL options");
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", name);
	snprintf(mem, sizeof(mem), "%u", mem_mb);
	n = fill_args(argc, argv, args, prefix, pci, mem);
	if (!verbose)
		eal_capture_begin(&capture);
	rc = rte_eal_init(n, args);
	if (!verbose)
		eal_capture_end(&capture);
	if (rc < 0)
		return explain(capture.text, err);
	if (!verbose)
		rte_log_set_global_level(RTE_LOG_CRIT); // later faults are reported by us
	return 0;
}
