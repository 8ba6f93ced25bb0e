/* SPDX-License-Identifier: BSD-3-Clause */
// sgw-bench: generator, receiver and judge of the lab.
#include "args.h"
#include "ceiling.h"
#include "engine.h"
#include "log.h"
#include "run.h"

#include <rte_version.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void
on_signal(int signo)
{
	engine_stopping = 1;
}

// Keys may be in this process's memory.
static void
protect_memory(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// The report is written by a script: installed, or where the program was built from.
static int
exec_report(const char *const *files, const char *output, struct err *err)
{
	const char *script =
		access(SGW_REPORT_PATH, R_OK) == 0 ? SGW_REPORT_PATH : SGW_REPORT_SOURCE;
	const char *argv[8] = {"/usr/bin/python3", script, files[0]};
	int n = 3;

	if (files[1] != NULL)
		argv[n++] = files[1];
	argv[n++] = "-o";
	argv[n++] = output;
	execv(argv[0], (char **)(uintptr_t)argv);
	return err_set(err, EXIT_MACHINE, -errno,
		       "report: %s can not be run (%s); install python3 and gnuplot-nox", argv[0],
		       strerror(errno));
}

static int
run(const struct args *a, int argc, char **argv, struct err *err)
{
	const char *files[2] = {a->json, NULL};
	int code, status;

	if (a->command == CMD_CEILING) {
		ceiling_print(a->link * 1e6, stdout);
		return 0;
	}
	if (a->command == CMD_REPORT) {
		exec_report(a->files, a->output, err);
		return err->kind;
	}
	code = run_command(a, argc, argv, err);
	if (a->html != NULL && (code == 0 || code == EXIT_INCONCLUSIVE)) {
		pid_t pid = fork();

		if (pid == 0) {
			exec_report(files, a->html, err);
			log_error("%s", err->text);
			_exit(err->kind);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
			err_set(err, EXIT_MACHINE, -EIO,
				"%s: not written; `sgw-bench report %s -o FILE.html` tells why",
				a->html, a->json);
			return err->kind;
		}
	}
	return code;
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	static struct args a;
	struct err err = {0};
	int code;

	protect_memory();
	if (args_parse(argc, argv, &a, &err) != 0) {
		fprintf(stderr, "sgw-bench: %s\n", err.text);
		return err.kind;
	}
	if (a.help || a.version) {
		if (a.help)
			fputs(args_help, stdout);
		else
			printf("sgw-bench %s, %s\n", SGW_VERSION, rte_version());
		return 0;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	code = run(&a, argc, argv, &err);
	if (err.kind != 0)
		fprintf(stderr, "sgw-bench: error: %s\n",
			err.text[0] != '\0' ? err.text : "no memory");
	return code;
}
