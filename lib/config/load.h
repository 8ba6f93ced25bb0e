/* SPDX-License-Identifier: BSD-3-Clause */
// From the tree to the structs, a section at a time.
#pragma once

#include "field.h"

/** Read all sections; mistakes are reported, and what is right is kept. */
void load_all(struct load *l);
/** Read one item of ports:, sad: or spd:, which is a map. */
void load_port(struct load *l, const struct node *item);
void load_sa(struct load *l, const struct node *item);
void load_policy(struct load *l, const struct node *item);
/** Once all ports are read: find the parents of VLANs, and take their MTU over. */
void load_parents(struct load *l);
/** Sort the policies by priority, then by their place in the file. */
void load_policies_rank(struct load *l);

/** A port or tunnel by its name, or NULL. */
const struct name_ref *name_find(const struct load *l, const char *name);
/** The port or tunnel that a key names. @param wanted SEC_PORTS or SEC_TUNNELS */
enum found field_ref(struct load *l, enum section s, const struct node *item, const char *key,
		     enum section wanted, uint32_t *index);
