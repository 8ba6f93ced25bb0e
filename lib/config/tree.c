/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 8        // the language itself needs 4
#define NODES_MAX 2000000  // some 100000 routes, SAs and policies
#define MEMBERS_MAX 4096   // of one map: a section with names
#define ITEM_MAX 256       // of a map inside a section: each is compared with those before
#define CHUNK_BYTES 65536u // of memory at a time

struct tree_chunk {
	struct tree_chunk *next;
	size_t used, size;
	char b[] __attribute__((aligned(16)));
};

// What is open while the file is being read.
struct builder {
	struct tree *tree;
	struct diag *diag;
	struct node *open[DEPTH_MAX]; // lists and maps around the current place
	uint32_t depth;
	uint32_t skip;        // depth inside something that is thrown away
	const char *key;      // read, waits for its value
	struct cfg_at key_at; //
	bool key_twice;       // the value that follows has no place
	uint32_t n_documents; //
	bool stopped;         // no use in reading on
};

// libyaml takes all its memory through these three exported functions. Ours
// stand before the library's own in symbol order, and wipe what is given back:
// the scanner grows its strings by realloc, and without this pieces of keys
// would stay in freed memory, and from there reach a core file. Weak, so that
// a static libyaml links too (and then does not wipe). They stand in this file
// because a linker takes no object from an archive that nobody asks for.
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

static void *
tree_alloc(struct tree *t, size_t size)
{
	struct tree_chunk *c = t->chunks;

	size = (size + 15) & ~(size_t)15;
	if (c == NULL || c->size - c->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		c = calloc(1, sizeof(*c) + room);
		if (c == NULL)
			return NULL;
		c->size = room;
		c->next = t->chunks;
		t->chunks = c;
	}
	c->used += size;
	return c->b + c->used - size;
}

void
tree_free(struct tree *t)
{
	struct tree_chunk *next;

	for (struct tree_chunk *c = t->chunks; c != NULL; c = next) {
		next = c->next;
		explicit_bzero(c->b, c->used); // keys were in here
		free(c);
	}
	memset(t, 0, sizeof(*t));
}

const struct node *
node_find(const struct node *map, const char *key)
{
	if (map == NULL || map->kind != NODE_MAP)
		return NULL;
	for (const struct node *n = map->first; n != NULL; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

const struct node *
node_element(const struct node *list, uint32_t index)
{
	if (list == NULL || list->kind != NODE_LIST)
		return NULL;
	for (const struct node *n = list->first; n != NULL; n = n->next)
		if (n->index == index)
			return n;
	return NULL;
}

// Append one step of a path. A key that is no plain word is quoted.
static size_t
path_append(char *buf, size_t n, const char *key)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	char quoted[QUOTE_STRLEN];

	if (key[0] == '\0' || strlen(key) > 31 || key[strspn(key, word)] != '\0')
		key = quote(key, quoted);
	int rc = snprintf(buf + n, PATH_STRLEN - n, "%s%s", n > 0 ? "." : "", key);
	n += (size_t)rc;
	return n < PATH_STRLEN ? n : PATH_STRLEN - 1;
}

static size_t
path_write(const struct node *n, char *buf)
{
	size_t len;

	if (n->parent == NULL)
		return 0;
	len = path_write(n->parent, buf);
	if (n->key != NULL)
		return path_append(buf, len, n->key);
	len += (size_t)snprintf(buf + len, PATH_STRLEN - len, "[%u]", n->index);
	return len < PATH_STRLEN ? len : PATH_STRLEN - 1;
}

const char *
node_path(const struct node *n, const char *key, char buf[static PATH_STRLEN])
{
	buf[0] = '\0';
	size_t len = path_write(n, buf);

	if (key != NULL)
		path_append(buf, len, key);
	return buf;
}

static struct cfg_at
mark_at(const yaml_mark_t *m)
{
	return (struct cfg_at){(uint32_t)m->line + 1, (uint32_t)m->column + 1};
}

static void
stop(struct builder *b, struct cfg_at at, const char *what)
{
	diag_error(b->diag, at, "yaml", "%s", what);
	b->stopped = true;
}

// Place of a byte in the file, for libyaml's decoder that knows no lines.
static struct cfg_at
offset_at(const char *text, size_t len, size_t offset)
{
	struct cfg_at at = {1, 1};

	for (size_t i = 0; i < offset && i < len; i++) {
		if (text[i] == '\n')
			at = (struct cfg_at){at.line + 1, 1};
		else if (((unsigned char)text[i] & 0xc0) != 0x80)
			at.col++;
	}
	return at;
}

static void
report_syntax(struct builder *b, const yaml_parser_t *p, const char *text, size_t len)
{
	struct cfg_at at = mark_at(&p->problem_mark);
	const char *problem = p->problem != NULL ? p->problem : "out of memory";

	if (p->error == YAML_READER_ERROR) {
		diag_error(b->diag, offset_at(text, len, p->problem_offset), "yaml",
			   "%s; save the file as UTF-8 text", problem);
	} else if (strstr(problem, "cannot start any token") != NULL) {
		diag_error(b->diag, at, "yaml",
			   "%s; indent with spaces, not tabs, and put text with signs in quotes",
			   problem);
	} else if (strstr(problem, "unexpected ':'") != NULL) {
		diag_error(b->diag, at, "yaml",
			   "%s; put text that ends in a colon, like an IPv6 address, in quotes",
			   problem);
	} else if (p->context != NULL) {
		diag_error(b->diag, at, "yaml",
			   "%s %s (line %zu); close what was opened, keep the indentation even",
			   problem, p->context, p->context_mark.line + 1);
	} else {
		diag_error(b->diag, at, "yaml",
			   "%s; keep the indentation even, write \"key: value\" with a space",
			   problem);
	}
	b->stopped = true;
}

// Hang a node into the list or map that is open.
static void
node_attach(struct builder *b, struct node *n)
{
	if (b->depth == 0) {
		b->tree->root = n;
		return;
	}
	struct node *parent = b->open[b->depth - 1];
	n->parent = parent;
	n->index = parent->n_children++;
	if (parent->kind == NODE_MAP) {
		n->key = b->key;
		n->key_at = b->key_at;
		b->key = NULL;
	}
	if (parent->first == NULL)
		parent->first = n;
	else
		parent->last->next = n;
	parent->last = n;
}

static const char *
text_copy(struct builder *b, const yaml_event_t *e)
{
	size_t len = e->data.scalar.length;
	char *text = tree_alloc(b->tree, len + 1);

	if (text == NULL) {
		stop(b, mark_at(&e->start_mark), "out of memory");
		return NULL;
	}
	memcpy(text, e->data.scalar.value, len);
	text[len] = '\0';
	return text;
}

// Anchors and tags would make a value mean something else than its text.
static bool
refuse_extras(struct builder *b, const yaml_event_t *e, const void *anchor, const void *tag)
{
	if (anchor != NULL)
		diag_error(b->diag, mark_at(&e->start_mark), "yaml",
			   "anchors (&) are not taken; write the value out, or in quotes");
	if (tag != NULL)
		diag_error(b->diag, mark_at(&e->start_mark), "yaml",
			   "tags (!) are not taken; write the value without, or in quotes");
	return anchor != NULL || tag != NULL;
}

static struct node *
node_new(struct builder *b, const yaml_event_t *e, enum node_kind kind)
{
	struct node *n;

	if (b->tree->n_nodes++ >= NODES_MAX) {
		stop(b, mark_at(&e->start_mark),
		     "more than 2000000 values; make the file smaller");
		return NULL;
	}
	n = tree_alloc(b->tree, sizeof(*n));
	if (n == NULL) {
		stop(b, mark_at(&e->start_mark), "out of memory");
		return NULL;
	}
	n->kind = kind;
	n->at = mark_at(&e->start_mark);
	return n;
}

static void
key_event(struct builder *b, const yaml_event_t *e)
{
	struct node *map = b->open[b->depth - 1];
	const struct node *before;
	char path[PATH_STRLEN];

	refuse_extras(b, e, e->data.scalar.anchor, e->data.scalar.tag);
	b->key = text_copy(b, e);
	b->key_at = mark_at(&e->start_mark);
	if (b->key == NULL)
		return;
	if (strlen(b->key) != e->data.scalar.length)
		stop(b, b->key_at, "a NUL character; take it out");
	before = node_find(map, b->key);
	if (before != NULL) {
		diag_error(b->diag, b->key_at, node_path(map, b->key, path),
			   "is given twice (first on line %u); keep one of them",
			   before->key_at.line);
		b->key_twice = true;
	}
	if (map->n_children >= MEMBERS_MAX)
		stop(b, b->key_at, "more than 4096 keys in one place; make the file smaller");
	else if (map->n_children >= ITEM_MAX && b->depth > 2)
		stop(b, b->key_at, "more than 256 keys in one place; nothing has that many");
}

static void
scalar_event(struct builder *b, const yaml_event_t *e)
{
	struct node *n;

	if (b->depth > 0 && b->open[b->depth - 1]->kind == NODE_MAP && b->key == NULL) {
		key_event(b, e);
		return;
	}
	bool bad = refuse_extras(b, e, e->data.scalar.anchor, e->data.scalar.tag);
	if (b->key_twice) {
		b->key_twice = false;
		b->key = NULL;
		return;
	}
	n = node_new(b, e, bad ? NODE_BAD : NODE_SCALAR);
	if (n == NULL)
		return;
	n->text = text_copy(b, e);
	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (n->text == NULL)
		return;
	if (strlen(n->text) != e->data.scalar.length)
		stop(b, n->at, "a NUL character; take it out");
	node_attach(b, n);
}

// A list or a map begins.
static void
open_event(struct builder *b, const yaml_event_t *e)
{
	bool map = e->type == YAML_MAPPING_START_EVENT;
	struct node *n;

	if (b->depth > 0 && b->open[b->depth - 1]->kind == NODE_MAP && b->key == NULL) {
		stop(b, mark_at(&e->start_mark),
		     "a key must be a word, not a list or a map; put it in quotes");
		return;
	}
	if (map)
		refuse_extras(b, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
	else
		refuse_extras(b, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
	if (b->key_twice) {
		b->key_twice = false;
		b->key = NULL;
		b->skip = 1;
		return;
	}
	if (b->depth == DEPTH_MAX) {
		stop(b, mark_at(&e->start_mark),
		     "more than 8 levels deep; nothing goes that deep");
		return;
	}
	n = node_new(b, e, map ? NODE_MAP : NODE_LIST);
	if (n == NULL)
		return;
	node_attach(b, n);
	b->open[b->depth++] = n;
}

static void
alias_event(struct builder *b, const yaml_event_t *e)
{
	struct node *n;

	diag_error(b->diag, mark_at(&e->start_mark), "yaml",
		   "aliases (*) are not taken; write the value out, or in quotes");
	if (b->depth > 0 && b->open[b->depth - 1]->kind == NODE_MAP && b->key == NULL) {
		b->stopped = true;
		return;
	}
	if (b->key_twice) {
		b->key_twice = false;
		b->key = NULL;
		return;
	}
	n = node_new(b, e, NODE_BAD);
	if (n != NULL)
		node_attach(b, n);
}

static void
event_take(struct builder *b, const yaml_event_t *e)
{
	bool opens = e->type == YAML_MAPPING_START_EVENT || e->type == YAML_SEQUENCE_START_EVENT;
	bool closes = e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT;

	if (b->skip > 0) {
		if (opens)
			b->skip++;
		else if (closes)
			b->skip--;
		return;
	}
	if (e->type == YAML_DOCUMENT_START_EVENT && b->n_documents++ > 0)
		stop(b, mark_at(&e->start_mark),
		     "a second document (---) begins; one file is one configuration");
	else if (e->type == YAML_SCALAR_EVENT)
		scalar_event(b, e);
	else if (e->type == YAML_ALIAS_EVENT)
		alias_event(b, e);
	else if (opens)
		open_event(b, e);
	else if (closes)
		b->depth--;
}

// The parser's own buffers held keys too.
static void
parser_delete(yaml_parser_t *p)
{
	if (p->raw_buffer.start != NULL)
		explicit_bzero(p->raw_buffer.start,
			       (size_t)(p->raw_buffer.end - p->raw_buffer.start));
	if (p->buffer.start != NULL)
		explicit_bzero(p->buffer.start, (size_t)(p->buffer.end - p->buffer.start));
	yaml_parser_delete(p);
}

bool
tree_parse(struct tree *t, const char *text, size_t len, struct diag *d)
{
	struct builder b = {.tree = t, .diag = d};
	yaml_parser_t p;
	bool end = false;

	memset(t, 0, sizeof(*t));
	if (!yaml_parser_initialize(&p)) {
		stop(&b, (struct cfg_at){1, 1}, "out of memory");
		return false;
	}
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (!end && !b.stopped) {
		yaml_event_t e;

		if (!yaml_parser_parse(&p, &e)) {
			report_syntax(&b, &p, text, len);
			break;
		}
		event_take(&b, &e);
		end = e.type == YAML_STREAM_END_EVENT;
		if (e.type == YAML_SCALAR_EVENT)
			explicit_bzero(e.data.scalar.value, e.data.scalar.length);
		yaml_event_delete(&e);
	}
	parser_delete(&p);
	return end && !b.stopped;
}
