/* SPDX-License-Identifier: BSD-3-Clause */
// A YAML file as a tree that knows where everything stood. Every scalar is
// text; what it means is decided by the field that reads it.
#pragma once

#include "diag.h"

enum node_kind {
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAP,
	NODE_BAD, // was reported already, to be passed over in silence
};

struct node {
	enum node_kind kind;  //
	struct cfg_at at;     // of the value
	struct cfg_at key_at; // of the key, in a map
	const char *key;      // in a map, else NULL
	const char *text;     // of a scalar
	bool plain;           // scalar without quotes
	uint32_t index;       // position in the parent, from 0
	uint32_t n_children;  //
	struct node *first;   // children of a list or map, in the order of the file
	struct node *last;    //
	struct node *next;    // sibling
	struct node *parent;  // NULL: the root
};

struct tree_chunk;

struct tree {
	struct node *root;         // NULL: nothing in the file
	struct tree_chunk *chunks; // memory of all nodes and texts
	uint32_t n_nodes;          //
};

/**
 * Parse a whole file. What cannot be used is reported, and as much as can be
 * read is still put into the tree.
 * @return true when the file was read to its end
 */
bool tree_parse(struct tree *t, const char *text, size_t len, struct diag *d);

/** Wipe and free everything. */
void tree_free(struct tree *t);

/** The member of a map, or NULL. */
const struct node *node_find(const struct node *map, const char *key);
/** An element of a list, or NULL. */
const struct node *node_element(const struct node *list, uint32_t index);

#define PATH_STRLEN 300

/**
 * Where a value stands, like "sad[0].key" or "ports.igb2.addresses[1]".
 * @param key  appended, may be NULL
 * @return buf
 */
const char *node_path(const struct node *n, const char *key, char buf[static PATH_STRLEN]);
