/* SPDX-License-Identifier: BSD-3-Clause */
// Strict readers of single values, and the loader's working state.
#pragma once

#include "config.h"
#include "schema.h"
#include "tree.h"

#include <sys/types.h>

// A port or tunnel by its name.
struct name_ref {
	const char *name;
	enum section section;
	uint32_t index; // into c->ports or c->tunnels
};

// A configuration on its way from text to structs.
struct load {
	struct config *c;                     //
	struct diag *diag;                    //
	const struct node *root;              //
	const struct node **items[SEC_COUNT]; // of each entry in c, its place in the tree
	bool unsure[SEC_COUNT];               // has a mistake that others would only echo
	struct name_ref *names;               // of ports and tunnels, sorted
	uint32_t n_names;                     //
	mode_t file_mode;                     // permissions of the file itself
	bool has_inline_key;                  // a key stands in the file itself
};

enum found {
	FOUND_NONE, // the key is absent; a default was filled in where there is one
	FOUND_GOOD, //
	FOUND_BAD,  // reported
};

/**
 * Report at the value of a key, at the key's name where item is a map without
 * it, or at the item itself when key is NULL.
 */
void item_error(struct load *l, const struct node *item, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void item_warning(struct load *l, const struct node *item, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** Report every key of the map that the section does not know. */
void keys_check(struct load *l, enum section s, const struct node *map);
/** Report that the node is not of the kind that is wanted: "a list", "a map". */
void kind_error(struct load *l, const struct node *n, const char *wanted);
/** " (did you mean …?)" or "" for a word of a list separated by '|'. */
const char *word_suggest(const char *word, const char *choices, char buf[static QUOTE_STRLEN]);

/** The text of a scalar that is not empty. */
enum found field_text(struct load *l, enum section s, const struct node *item, const char *key,
		      const char **out);
enum found field_u64(struct load *l, enum section s, const struct node *item, const char *key,
		     uint64_t *out);
enum found field_u32(struct load *l, enum section s, const struct node *item, const char *key,
		     uint32_t *out);
enum found field_u16(struct load *l, enum section s, const struct node *item, const char *key,
		     uint16_t *out);
enum found field_bool(struct load *l, enum section s, const struct node *item, const char *key,
		      bool *out);
/** Index into the choices of the schema. */
enum found field_choice(struct load *l, enum section s, const struct node *item, const char *key,
			uint32_t *out);
enum found field_algorithm(struct load *l, const struct node *item, const char *key,
			   enum alg_id *out);
/** A unicast address that a host can have. */
enum found field_address(struct load *l, enum section s, const struct node *item, const char *key,
			 struct addr *out);
enum found field_mac(struct load *l, enum section s, const struct node *item, const char *key,
		     struct mac *out);
/** Own addresses with their lengths; an element in error gets family 0. */
enum found field_addresses(struct load *l, enum section s, const struct node *item,
			   struct prefix **out, uint32_t *n);
/** Copy a name into a struct, when it is one. */
enum found field_name(struct load *l, enum section s, const struct node *item, const char *key,
		      char out[static CFG_NAME_MAX]);
/** true when a byte of the text is a control character. */
bool has_control(const char *text);
/** true when the text is [a-z][a-z0-9_.-]{0,30}. */
bool name_valid(const char *text);
/** Explain why text is no number of that key. */
void number_error(struct load *l, const struct schema_key *k, const struct node *item,
		  const char *text);

/**
 * A key in one of its forms. Wiped by the caller.
 * @param len  its true length, also where it is too long for out
 */
enum found field_key(struct load *l, const struct node *item, const char *key,
		     struct cfg_key *out, size_t *len);
