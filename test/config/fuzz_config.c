/* SPDX-License-Identifier: BSD-3-Clause */
// libFuzzer entry over config_load and config_dump.
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct config *c;
	char path[64];
	int fd = memfd_create("fuzz.yaml", MFD_CLOEXEC);

	if (null == NULL)
		null = fopen("/dev/null", "we");
	if (write(fd, data, size) != (ssize_t)size || fchmod(fd, 0600) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (config_load(path, &c, null) == 0) {
		config_dump(c, null);
		config_free(c);
	}
	close(fd);
	return 0;
}
