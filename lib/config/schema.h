/* SPDX-License-Identifier: BSD-3-Clause */
// The one table of everything that may stand in a configuration. The loader
// takes the allowed keys and ranges from it, and sgw.yaml(5) its text.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum section {
	SEC_SYSTEM,
	SEC_LAB,
	SEC_PORTS,
	SEC_TUNNELS,
	SEC_NEIGHBOURS,
	SEC_ROUTES,
	SEC_SAD,
	SEC_SPD,
	SEC_COUNT,
};

enum section_shape {
	SHAPE_SINGLE, // a map of the keys themselves
	SHAPE_NAMED,  // a map of names, each a map of the keys
	SHAPE_LIST,   // a list of maps of the keys
};

struct schema_section {
	const char *name;         //
	enum section_shape shape; //
	uint32_t max;             // entries
	const char *help;         // scdoc text
};

enum schema_type {
	TYPE_TEXT,    // see help
	TYPE_NAME,    // [a-z][a-z0-9_.-]{0,30}
	TYPE_NUMBER,  // decimal or 0x hex
	TYPE_BOOL,    // true or false
	TYPE_CHOICE,  // one of choices
	TYPE_ADDRESS, // IPv4 or IPv6 address
	TYPE_PREFIX,  // address/length
	TYPE_RANGE,   // address, prefix, first-last, any, any4, any6
	TYPE_LIST,    // list of address/length
	TYPE_PAIR,    // address-address
	TYPE_MAC,     // six octets
	TYPE_KEY,     // hex:, ascii: or file:
	TYPE_PORTS,   // number or first-last
	TYPE_PORT,    // name of a port
	TYPE_TUNNEL,  // name of a tunnel
};

struct schema_key {
	enum section section;  //
	const char *key;       //
	enum schema_type type; //
	bool required;         //
	uint64_t min, max;     // of a number
	const char *choices;   // words separated by '|'
	const char *fallback;  // what holds when the key is absent, as text; NULL: nothing
	const char *help;      // one line, scdoc text
};

extern const struct schema_section schema_sections[SEC_COUNT];
extern const struct schema_key schema_keys[];
extern const uint32_t schema_n_keys;

/** The row of a key. Never NULL: asking for a key that is not there is a bug. */
const struct schema_key *schema_get(enum section s, const char *key);
/** The row of a key, or NULL. */
const struct schema_key *schema_find(enum section s, const char *key);

/** What a value of this type is called in messages: "a number". */
const char *schema_type_name(enum schema_type t);
