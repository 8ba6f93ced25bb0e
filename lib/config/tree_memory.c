/* SPDX-License-Identifier: BSD-3-Clause */
// libyaml takes all its memory through these three exported functions. Ours
// stand before the library's own in symbol order, and wipe what is given back:
// the scanner grows its strings by realloc, and without this pieces of keys
// would stay in freed memory, and from there reach a core file. Weak, so that
// a static libyaml links too (and then does not wipe).
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *yaml_malloc(size_t size);
void *yaml_realloc(void *old, size_t size);
void yaml_free(void *p);

__attribute__((weak)) void *
yaml_malloc(size_t size)
{
	return malloc(size > 0 ? size : 1);
}

__attribute__((weak)) void
yaml_free(void *p)
{
	if (p != NULL)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

__attribute__((weak)) void *
yaml_realloc(void *old, size_t size)
{
	void *p = yaml_malloc(size);

	if (p == NULL || old == NULL)
		return p;
	size_t have = malloc_usable_size(old);
	memcpy(p, old, have < size ? have : size);
	yaml_free(old);
	return p;
}
