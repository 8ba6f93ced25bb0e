/* SPDX-License-Identifier: BSD-3-Clause */
// Numbers by key, for what is built from lists of thousands of entries. Keys are
// compared byte by byte: their padding must be zero.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index;

/** @param n  most entries @return NULL: no memory */
struct index *index_create(uint32_t n, size_t key_size);
void index_free(struct index *x);
/** @return the number of the key, or INDEX_NONE */
uint32_t index_find(const struct index *x, const void *key);
/** Put a number, unless the key has one; it must have room. @return the key's number */
uint32_t index_put(struct index *x, const void *key, uint32_t number);
