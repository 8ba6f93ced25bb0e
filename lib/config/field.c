/* SPDX-License-Identifier: BSD-3-Clause */
#include "field.h"

#include "text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void
item_report(struct load *l, bool warning, const struct node *item, const char *key,
	    const char *fmt, va_list ap)
{
	const struct node *value = key != NULL ? node_find(item, key) : NULL;
	char path[PATH_STRLEN];

	diag_add(l->diag, warning, value != NULL ? value->at : item->at,
		 node_path(item, key, path), fmt, ap);
}

void
item_error(struct load *l, const struct node *item, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	item_report(l, false, item, key, fmt, ap);
	va_end(ap);
}

void
item_warning(struct load *l, const struct node *item, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	item_report(l, true, item, key, fmt, ap);
	va_end(ap);
}

void
kind_error(struct load *l, const struct node *n, const char *wanted)
{
	static const char *const kinds[] = {
		[NODE_SCALAR] = "a single value",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "a map",
	};

	if (n->kind == NODE_BAD)
		return;
	if (n->kind == NODE_SCALAR && n->plain && n->text[0] == '\0')
		item_error(l, n, NULL, "is empty; write %s, or leave the key out", wanted);
	else if (n->kind == NODE_MAP && n->n_children == 1 && n->first->key[0] != '\0' &&
		 n->first->kind == NODE_SCALAR && n->first->text[0] == '\0')
		item_error(l, n, NULL, "is a map, because it ends in a colon; write %s, in quotes",
			   wanted);
	else
		item_error(l, n, NULL, "is %s; write %s", kinds[n->kind], wanted);
}

const char *
word_suggest(const char *word, const char *choices, char buf[static QUOTE_STRLEN])
{
	uint32_t nearest = 3; // further than two letters away is a guess too wild

	buf[0] = '\0';
	while (*choices != '\0') {
		size_t n = strcspn(choices, "|");
		char choice[64];

		snprintf(choice, sizeof(choice), "%.*s", (int)n, choices);
		// A word that was left off half way: the first one that goes on from it.
		bool begun = strlen(word) >= 3 && strncmp(word, choice, strlen(word)) == 0;
		uint32_t distance = begun ? 0 : text_distance(word, choice);
		if (distance < nearest && distance < n) {
			nearest = distance;
			snprintf(buf, QUOTE_STRLEN, "; did you mean \"%s\"?", choice);
		}
		choices += n + (choices[n] == '|');
	}
	return buf;
}

// Nobody reads a thousand lines, and more hints than that take minutes.
static const char *
suggest(const struct load *l, const char *word, const char *choices, char buf[static QUOTE_STRLEN])
{
	buf[0] = '\0';
	return l->diag->errors < DIAG_LINES_MAX ? word_suggest(word, choices, buf) : buf;
}

// "a, b, c" from "a|b|c".
static const char *
choices_list(const char *choices, char *buf, size_t size)
{
	size_t n = 0;

	for (; *choices != '\0' && n + 3 < size; choices++) {
		buf[n++] = *choices == '|' ? ',' : *choices;
		if (*choices == '|')
			buf[n++] = ' ';
	}
	buf[n] = '\0';
	return buf;
}

void
keys_check(struct load *l, enum section s, const struct node *map)
{
	char known[512] = "", list[600], word[QUOTE_STRLEN], hint[QUOTE_STRLEN], path[PATH_STRLEN];
	bool near;

	for (uint32_t i = 0; i < schema_n_keys; i++) {
		size_t n = strlen(known);

		if (schema_keys[i].section == s)
			snprintf(known + n, sizeof(known) - n, "%s%s", n > 0 ? "|" : "",
				 schema_keys[i].key);
	}
	for (const struct node *n = map->first; n != NULL; n = n->next) {
		if (schema_find(s, n->key) != NULL)
			continue;
		near = suggest(l, n->key, known, hint)[0] != '\0';
		diag_error(l->diag, n->key_at, node_path(map, NULL, path), "unknown key %s%s%s",
			   quote(n->key, word), near ? hint : "; known here: ",
			   near ? "" : choices_list(known, list, sizeof(list)));
	}
}

enum found
field_text(struct load *l, enum section s, const struct node *item, const char *key,
	   const char **out)
{
	const struct schema_key *k = schema_get(s, key);
	const struct node *n = node_find(item, key);

	if (n == NULL) {
		if (!k->required)
			return FOUND_NONE;
		item_error(l, item, key, "is missing; write %s: and %s", key,
			   schema_type_name(k->type));
		return FOUND_BAD;
	}
	if (n->kind != NODE_SCALAR) {
		kind_error(l, n, schema_type_name(k->type));
		return FOUND_BAD;
	}
	// "cipher: null" is the name of an algorithm here, as RFC 2410 calls it.
	bool null = n->plain && (strcmp(n->text, "~") == 0 || strcmp(n->text, "Null") == 0 ||
				 strcmp(n->text, "NULL") == 0 ||
				 (strcmp(n->text, "null") == 0 && strcmp(key, "cipher") != 0));
	if (n->text[0] == '\0' || null) {
		item_error(l, n, NULL, "is empty; write %s, or leave the key out",
			   schema_type_name(k->type));
		return FOUND_BAD;
	}
	*out = n->text;
	return FOUND_GOOD;
}

static bool
all_of(const char *text, const char *set)
{
	return text[strspn(text, set)] == '\0';
}

void
number_error(struct load *l, const struct schema_key *k, const struct node *item, const char *text)
{
	static const char digits[] = "0123456789";
	char word[QUOTE_STRLEN];
	uint64_t n;

	quote(text, word);
	if (text_u64(text, &n) == 0 && n < k->min) {
		item_error(l, item, k->key,
			   "%s is smaller than %" PRIu64 "; write %" PRIu64 " to %" PRIu64 "%s",
			   text, k->min, k->min, k->max,
			   strcmp(k->key, "spi") == 0 ?
				   " (SPIs below 256 are reserved, RFC 4303 section 2.1)" :
				   "");
	} else if (text_u64(text, &n) != -EINVAL) {
		item_error(l, item, k->key,
			   "%s is larger than %" PRIu64 "; write %" PRIu64 " to %" PRIu64,
			   word[0] == '"' && strlen(text) <= 60 ? text : word, k->max, k->min,
			   k->max);
	} else if (text[0] == '-' || text[0] == '+') {
		item_error(l, item, k->key,
			   "%s has a sign; write %" PRIu64 " to %" PRIu64 " without one", word,
			   k->min, k->max);
	} else if (text[0] == '0' && strlen(text) <= 18 && all_of(text, digits)) {
		n = strtoull(text, NULL, 10);
		item_error(l, item, k->key,
			   "%s has a leading zero; write %" PRIu64 " or 0x%" PRIx64, word, n, n);
	} else if (strchr(text, '_') != NULL && all_of(text, "0123456789_") && text[0] != '_' &&
		   text[0] != '0' && strlen(text) < 40) {
		char plain[40];
		size_t len = 0;

		for (const char *p = text; *p != '\0'; p++)
			if (*p != '_')
				plain[len++] = *p;
		plain[len] = '\0';
		item_error(l, item, k->key, "%s has an underscore; write %s", word, plain);
	} else {
		item_error(l, item, k->key,
			   "%s is not a whole number; write %" PRIu64 " to %" PRIu64
			   " in decimal or 0x hex digits",
			   word, k->min, k->max);
	}
}

enum found
field_u64(struct load *l, enum section s, const struct node *item, const char *key, uint64_t *out)
{
	const struct schema_key *k = schema_get(s, key);
	const char *text;
	uint64_t n;
	enum found f = field_text(l, s, item, key, &text);

	if (f == FOUND_NONE && k->fallback != NULL)
		text_u64(k->fallback, out);
	if (f != FOUND_GOOD)
		return f;
	if (text_u64(text, &n) != 0 || n < k->min || n > k->max) {
		number_error(l, k, item, text);
		return FOUND_BAD;
	}
	*out = n;
	return FOUND_GOOD;
}

enum found
field_u32(struct load *l, enum section s, const struct node *item, const char *key, uint32_t *out)
{
	uint64_t n = *out;
	enum found f = field_u64(l, s, item, key, &n);

	*out = (uint32_t)n;
	return f;
}

enum found
field_u16(struct load *l, enum section s, const struct node *item, const char *key, uint16_t *out)
{
	uint64_t n = *out;
	enum found f = field_u64(l, s, item, key, &n);

	*out = (uint16_t)n;
	return f;
}

enum found
field_bool(struct load *l, enum section s, const struct node *item, const char *key, bool *out)
{
	static const char *const words[][2] = {
		{"yes", "true"},  {"on", "true"},     {"y", "true"},  {"1", "true"},
		{"no", "false"},  {"off", "false"},   {"n", "false"}, {"0", "false"},
		{"true", "true"}, {"false", "false"},
	};
	char word[QUOTE_STRLEN];
	const char *text, *remedy = "true or false";
	enum found f = field_text(l, s, item, key, &text);

	if (f != FOUND_GOOD)
		return f;
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
		*out = text[0] == 't';
		return FOUND_GOOD;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i][0]) == 0)
			remedy = words[i][1];
	item_error(l, item, key, "%s is neither true nor false; write %s", quote(text, word),
		   remedy);
	return FOUND_BAD;
}

static bool
choice_find(const char *choices, const char *text, uint32_t *out)
{
	size_t len = strlen(text);

	for (uint32_t i = 0; *choices != '\0'; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && memcmp(choices, text, n) == 0) {
			*out = i;
			return true;
		}
		choices += n + (choices[n] == '|');
	}
	return false;
}

enum found
field_choice(struct load *l, enum section s, const struct node *item, const char *key,
	     uint32_t *out)
{
	const struct schema_key *k = schema_get(s, key);
	char word[QUOTE_STRLEN], hint[QUOTE_STRLEN], list[256];
	const char *text;
	enum found f = field_text(l, s, item, key, &text);

	if (f == FOUND_NONE && k->fallback != NULL)
		choice_find(k->choices, k->fallback, out);
	if (f != FOUND_GOOD)
		return f;
	if (choice_find(k->choices, text, out))
		return FOUND_GOOD;
	suggest(l, text, k->choices, hint);
	if (hint[0] == '\0')
		snprintf(hint, sizeof(hint), "; write %s%s",
			 strchr(k->choices, '|') != NULL ? "one of " : "",
			 choices_list(k->choices, list, sizeof(list)));
	item_error(l, item, key, "%s is not known%s", quote(text, word), hint);
	return FOUND_BAD;
}

enum found
field_algorithm(struct load *l, const struct node *item, const char *key, enum alg_id *out)
{
	const struct node *n = node_find(item, key);
	static const char *const places[] =
		{[ALG_AEAD] = "aead", [ALG_CIPHER] = "cipher", [ALG_AUTH] = "auth"};
	uint32_t unused = 0;

	if (n != NULL && n->kind == NODE_SCALAR) {
		enum alg_id id = alg_find(n->text);
		const char *place = places[alg_get(id)->kind];

		if (id != ALG_NONE && strcmp(place, key) != 0) {
			item_error(l, item, key, "\"%s\" does not stand here; write %s: %s",
				   n->text, place, n->text);
			return FOUND_BAD;
		}
		*out = id;
	}
	return field_choice(l, SEC_SAD, item, key, &unused);
}

enum found
field_address(struct load *l, enum section s, const struct node *item, const char *key,
	      struct addr *out)
{
	char word[QUOTE_STRLEN];
	const char *text;
	struct addr a;
	enum found f = field_text(l, s, item, key, &text);

	if (f != FOUND_GOOD)
		return f;
	if (addr_parse(text, &a) < 0) {
		item_error(l, item, key,
			   "%s is not an address; write it like 198.18.0.1 or \"2001:2::1\"%s",
			   quote(text, word),
			   strchr(text, '/') != NULL ? ", without a length" : "");
		return FOUND_BAD;
	}
	if (addr_is_martian(&a)) {
		item_error(l, item, key, "%s is %s; write the address of one host",
			   quote(text, word), addr_is_multicast(&a) ? "multicast" : "no host's");
		return FOUND_BAD;
	}
	*out = a;
	return FOUND_GOOD;
}

enum found
field_mac(struct load *l, enum section s, const struct node *item, const char *key,
	  struct mac *out)
{
	static const struct mac zero;
	char word[QUOTE_STRLEN];
	const char *text;
	struct mac m;
	enum found f = field_text(l, s, item, key, &text);

	if (f != FOUND_GOOD)
		return f;
	if (mac_parse(text, &m) < 0) {
		item_error(l, item, key,
			   "%s is not a MAC address; write six pairs of hex digits like "
			   "00:08:a2:09:33:da",
			   quote(text, word));
		return FOUND_BAD;
	}
	if ((m.b[0] & 1) != 0 || memcmp(&m, &zero, sizeof(m)) == 0) {
		item_error(l, item, key, "%s is %s; write the address of one port",
			   quote(text, word),
			   (m.b[0] & 1) != 0 ? "multicast or broadcast" : "no address");
		return FOUND_BAD;
	}
	*out = m;
	return FOUND_GOOD;
}

// One own address with its length.
static void
interface_address(struct load *l, const struct node *n, struct prefix *out)
{
	char word[QUOTE_STRLEN];
	struct prefix p;
	struct range r;
	int rc;

	if (n->kind != NODE_SCALAR) {
		kind_error(l, n, "address/length");
		return;
	}
	quote(n->text, word);
	rc = prefix_parse(n->text, &p);
	if (rc == -ERANGE) {
		item_error(l, n, NULL, "%s has too long a prefix; write at most /%d", word,
			   strchr(n->text, ':') != NULL ? 128 : 32);
		return;
	}
	if (rc < 0) {
		item_error(l, n, NULL,
			   "%s is not address/length; write it like 198.18.0.209/24 or "
			   "\"2001:2::209/64\"",
			   word);
		return;
	}
	if (addr_is_martian(&p.addr)) {
		item_error(l, n, NULL, "%s is %s; write the address of one host", word,
			   addr_is_multicast(&p.addr) ? "multicast" : "no host's");
		return;
	}
	if (p.len < 8) {
		item_error(
			l, n, NULL,
			"%s is a prefix wider than /8; write the length of the link's own prefix",
			word);
		return;
	}
	// RFC 3021 and RFC 6164: with one host bit, both addresses are hosts.
	r = prefix_range(&p);
	if (addr_size(p.addr.family) * 8 - p.len >= 2 &&
	    (addr_cmp(&p.addr, &r.first) == 0 ||
	     (p.addr.family == 4 && addr_cmp(&p.addr, &r.last) == 0))) {
		item_error(l, n, NULL,
			   "%s is the %s address of its prefix; write the address of one host",
			   word,
			   addr_cmp(&p.addr, &r.last) == 0 ? "broadcast" :
			   p.addr.family == 4              ? "network" :
							     "anycast");
		return;
	}
	*out = p;
}

enum found
field_addresses(struct load *l, enum section s, const struct node *item, struct prefix **out,
		uint32_t *n)
{
	const struct schema_key *k = schema_get(s, "addresses");
	const struct node *list = node_find(item, "addresses");
	uint32_t errors = l->diag->errors;

	if (list == NULL)
		return FOUND_NONE;
	if (list->kind != NODE_LIST) {
		kind_error(l, list, "a list like [198.18.0.209/24, \"2001:2::209/64\"]");
		return FOUND_BAD;
	}
	if (list->n_children == 0) {
		item_error(l, list, NULL, "is empty; write an address, or leave the key out");
		return FOUND_BAD;
	}
	if (list->n_children > k->max) {
		item_error(l, list, NULL, "has %u addresses; at most %" PRIu64 " are taken",
			   list->n_children, k->max);
		return FOUND_BAD;
	}
	*out = calloc(list->n_children, sizeof(**out));
	if (*out == NULL)
		return FOUND_BAD;
	*n = list->n_children;
	for (const struct node *e = list->first; e != NULL; e = e->next)
		interface_address(l, e, &(*out)[e->index]);
	return l->diag->errors == errors ? FOUND_GOOD : FOUND_BAD;
}

bool
has_control(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

bool
name_valid(const char *text)
{
	return text[0] >= 'a' && text[0] <= 'z' && strlen(text) < CFG_NAME_MAX &&
	       all_of(text, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
}

enum found
field_name(struct load *l, enum section s, const struct node *item, const char *key,
	   char out[static CFG_NAME_MAX])
{
	char word[QUOTE_STRLEN];
	const char *text;
	enum found f = field_text(l, s, item, key, &text);

	if (f != FOUND_GOOD)
		return f;
	if (!name_valid(text)) {
		item_error(l, item, key,
			   "%s is not a name; write a-z, then a-z 0-9 _ . or -, at most 31",
			   quote(text, word));
		return FOUND_BAD;
	}
	strcpy(out, text);
	return FOUND_GOOD;
}
