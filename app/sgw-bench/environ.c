/* SPDX-License-Identifier: BSD-3-Clause */
#include "environ.h"

#include <jansson.h>
#include <rte_version.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const isa[] = {"ssse3",   "sse4_2", "aes",        "pclmulqdq", "avx2",
				  "avx512f", "vaes",   "vpclmulqdq", "sha_ni"};

// The first line of a file, without its end; "" when there is none.
static const char *
first_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "r");

	line[0] = '\0';
	if (f == NULL)
		return line;
	if (fgets(line, size, f) == NULL)
		line[0] = '\0';
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void
add_cpuinfo(json_t *m)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[8192];
	bool model = false, flags = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL && !(model && flags)) {
		char *value = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (value == NULL)
			continue;
		if (!model && strncmp(line, "model name", 10) == 0) {
			json_object_set_new(m, "cpu", json_string(value + 2));
			model = true;
		}
		if (!flags && strncmp(line, "flags", 5) == 0) {
			json_t *list = json_array();
			char *save = NULL;

			for (char *word = strtok_r(value + 1, " ", &save); word != NULL;
			     word = strtok_r(NULL, " ", &save))
				for (size_t i = 0; i < sizeof(isa) / sizeof(isa[0]); i++)
					if (strcmp(word, isa[i]) == 0)
						json_array_append_new(list, json_string(word));
			json_object_set_new(m, "isa", list);
			flags = true;
		}
	}
	if (f != NULL)
		fclose(f);
}

static void
add_frequencies(json_t *m)
{
	json_t *list = json_array();
	char path[128], line[64];

	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%ld/cpufreq/scaling_cur_freq", i);
		if (first_line(path, line, sizeof(line))[0] != '\0')
			json_array_append_new(list, json_real(strtod(line, NULL) / 1000));
	}
	json_object_set_new(m, "mhz", list);
	first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", line, sizeof(line));
	json_object_set_new(m, "governor", json_string(line));
}

json_t *
environ_machine(void)
{
	json_t *m = json_object();
	struct utsname u;
	char line[2048];

	if (m == NULL)
		return NULL;
	add_cpuinfo(m);
	add_frequencies(m);
	json_object_set_new(m, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	uname(&u);
	json_object_set_new(m, "host", json_string(u.nodename));
	json_object_set_new(m, "kernel", json_string(u.release));
	json_object_set_new(m, "kernel_command_line",
			    json_string(first_line("/proc/cmdline", line, sizeof(line))));
	json_object_set_new(m, "sgw_bench", json_string(SGW_VERSION));
	json_object_set_new(m, "dpdk", json_string(rte_version()));
	return m;
}

json_t *
environ_cpu_times(void)
{
	FILE *f = fopen("/proc/stat", "r");
	json_t *list = json_array();
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		unsigned long long v[8] = {0}, all = 0;

		if (strncmp(line, "cpu", 3) != 0 || line[3] == ' ')
			continue;
		sscanf(line, "%*s %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
		       &v[3], &v[4], &v[5], &v[6], &v[7]);
		for (int i = 0; i < 8; i++)
			all += v[i];
		json_array_append_new(list, json_pack("[I, I]", (json_int_t)(all - v[3] - v[4]),
						      (json_int_t)all));
	}
	if (f != NULL)
		fclose(f);
	return list;
}

json_t *
environ_cpu_load(const json_t *before, const json_t *after)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(before) && i < json_array_size(after); i++) {
		const json_t *a = json_array_get(before, i), *b = json_array_get(after, i);
		json_int_t busy = json_integer_value(json_array_get(b, 0)) -
				  json_integer_value(json_array_get(a, 0));
		json_int_t all = json_integer_value(json_array_get(b, 1)) -
				 json_integer_value(json_array_get(a, 1));

		json_array_append_new(list,
				      json_real(all > 0 ? 100.0 * (double)busy / (double)all : 0));
	}
	return list;
}
