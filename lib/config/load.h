/* SPDX-License-Identifier: BSD-3-Clause */
// From the tree to the structs, a section at a time.
#pragma once

#include "field.h"

/** Read all sections; mistakes are reported, and what is right is kept. */
void load_all(struct load *l);
/** Read one item of sad: or spd:, which is a map. */
void load_sa(struct load *l, const struct node *item);
void load_policy(struct load *l, const struct node *item);
/** Sort the policies by priority, then by their place in the file. */
void load_policies_rank(struct load *l);

/** A port or tunnel by its name, or NULL. */
const struct name_ref *name_find(const struct load *l, const char *name);
