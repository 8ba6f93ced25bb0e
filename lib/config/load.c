/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
name_cmp(const void *left, const void *right)
{
	const struct name_ref *a = left, *b = right;

	return strcmp(a->name, b->name);
}

const struct name_ref *
name_find(const struct load *l, const char *name)
{
	struct name_ref want = {.name = name};

	if (l->n_names == 0)
		return NULL;
	return bsearch(&want, l->names, l->n_names, sizeof(want), name_cmp);
}

static void
load_system(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	char word[QUOTE_STRLEN];
	const char *text;
	uint32_t idle = 0, steering = 0, crypto = 0;

	c->mss_clamp = true;
	if (field_text(l, SEC_SYSTEM, item, "name", &text) == FOUND_GOOD) {
		static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

		if (text[0] == '-' || strlen(text) >= CFG_NAME_MAX ||
		    text[strspn(text, set)] != '\0')
			item_error(l, item, "name",
				   "%s is not a name; write a-z 0-9 and -, not first, at most 31",
				   quote(text, word));
		else
			strcpy(c->name, text);
	}
	if (field_text(l, SEC_SYSTEM, item, "state", &text) == FOUND_GOOD) {
		size_t len = strlen(text);

		if (has_control(text))
			item_error(l, item, "state",
				   "%s has a control character in it; write a path of plain "
				   "letters, like /var/lib/sgw/NAME.state",
				   quote(text, word));
		else if (text[0] != '/' || len > 1000 || text[len - 1] == '/')
			item_error(l, item, "state",
				   "%s is not the full path of a file; write it like "
				   "/var/lib/sgw/NAME.state",
				   quote(text, word));
		c->state = strdup(text); // in error too: other checks ask whether there is one
	}
	field_u32(l, SEC_SYSTEM, item, "mbufs", &c->mbufs);
	field_choice(l, SEC_SYSTEM, item, "idle", &idle);
	c->idle = idle;
	field_choice(l, SEC_SYSTEM, item, "steering", &steering);
	c->steering = steering;
	field_choice(l, SEC_SYSTEM, item, "crypto", &crypto);
	c->crypto = crypto;
	field_bool(l, SEC_SYSTEM, item, "mss-clamp", &c->mss_clamp);
}

// A switch that works with one word only, so that nobody sets it by habit.
static bool
load_lab_switch(struct load *l, const struct node *item, const char *key)
{
	char word[QUOTE_STRLEN];
	const char *text;

	if (field_text(l, SEC_LAB, item, key, &text) != FOUND_GOOD)
		return false;
	if (strcmp(text, "lab-only") == 0)
		return true;
	item_error(l, item, key,
		   "%s does not switch this on; write lab-only, and only in a lab, or take the "
		   "key out",
		   quote(text, word));
	return false;
}

static void
load_lab(struct load *l, const struct node *item)
{
	l->c->allow_nonce_reuse = load_lab_switch(l, item, "allow-nonce-reuse");
	l->c->allow_published_keys = load_lab_switch(l, item, "allow-published-keys");
}

static void
load_tunnel(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_tunnel *t = &c->tunnels[c->n_tunnels];
	uint32_t errors = l->diag->errors;

	l->items[SEC_TUNNELS][c->n_tunnels++] = item;
	t->at = item->key_at;
	strcpy(t->name, item->key);
	field_address(l, SEC_TUNNELS, item, "local", &t->local);
	field_address(l, SEC_TUNNELS, item, "remote", &t->remote);
	field_u32(l, SEC_TUNNELS, item, "reqid", &t->reqid);
	field_addresses(l, SEC_TUNNELS, item, &t->addresses, &t->n_addresses);
	if (l->diag->errors != errors)
		l->unsure[SEC_TUNNELS] = true;
	field_u16(l, SEC_TUNNELS, item, "mtu", &t->mtu);
}

enum found
field_ref(struct load *l, enum section s, const struct node *item, const char *key,
	  enum section wanted, uint32_t *index)
{
	char word[QUOTE_STRLEN], hint[QUOTE_STRLEN] = "", all[1200] = "";
	const struct name_ref *ref;
	const char *text;
	enum found f = field_text(l, s, item, key, &text);

	if (f != FOUND_GOOD)
		return f;
	ref = name_find(l, text);
	if (ref != NULL && ref->section == wanted) {
		*index = ref->index;
		return FOUND_GOOD;
	}
	// An entry with that name is there, but was in error itself.
	if (ref == NULL &&
	    node_find(node_find(l->root, schema_sections[wanted].name), text) != NULL)
		return FOUND_BAD;
	if (ref != NULL) {
		item_error(l, item, key, "%s is a %s; write the name of a %s", quote(text, word),
			   wanted == SEC_PORTS ? "tunnel" : "port",
			   wanted == SEC_PORTS ? "port" : "tunnel");
		return FOUND_BAD;
	}
	for (uint32_t i = 0, n = 0; i < l->n_names && n + CFG_NAME_MAX + 1 < sizeof(all); i++)
		if (l->names[i].section == wanted)
			n += (uint32_t)snprintf(all + n, sizeof(all) - n, "%s%s", n > 0 ? "|" : "",
						l->names[i].name);
	if (l->diag->errors < DIAG_LINES_MAX)
		word_suggest(text, all, hint);
	item_error(l, item, key, "there is no %s %s%s", wanted == SEC_PORTS ? "port" : "tunnel",
		   quote(text, word),
		   hint[0] != '\0'     ? hint :
		   wanted == SEC_PORTS ? "; add it under ports:" :
					 "; add it under tunnels:");
	return FOUND_BAD;
}

static void
load_neighbour(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_neighbour *n = &c->neighbours[c->n_neighbours];

	l->items[SEC_NEIGHBOURS][c->n_neighbours++] = item;
	n->at = item->at;
	n->port = UINT32_MAX;
	field_ref(l, SEC_NEIGHBOURS, item, "port", SEC_PORTS, &n->port);
	field_address(l, SEC_NEIGHBOURS, item, "address", &n->address);
	field_mac(l, SEC_NEIGHBOURS, item, "mac", &n->mac);
}

static void
load_route_to(struct load *l, const struct node *item, struct prefix *out)
{
	char word[QUOTE_STRLEN], net[ADDR_STRLEN];
	const char *text;
	struct prefix p;
	int rc;

	if (field_text(l, SEC_ROUTES, item, "to", &text) != FOUND_GOOD)
		return;
	quote(text, word);
	rc = prefix_parse(text, &p);
	if (rc == -ERANGE)
		item_error(l, item, "to", "%s has too long a prefix; write at most /%d", word,
			   strchr(text, ':') != NULL ? 128 : 32);
	else if (rc < 0)
		item_error(l, item, "to",
			   "%s is not a prefix; write it like 198.18.0.0/16 or \"2001:2::/49\"",
			   word);
	else if (prefix_has_host_bits(&p)) {
		struct prefix clean = prefix_network(&p);

		item_error(l, item, "to", "%s has bits set right of /%u; write %s", word, p.len,
			   prefix_format(&clean, net));
	} else if (addr_is_martian(&p.addr) && p.len >= 4)
		item_error(l, item, "to", "%s is %s; there is nothing to be routed there", word,
			   addr_is_multicast(&p.addr) ? "multicast" : "no hosts' prefix");
	else
		*out = p;
}

// What a route leads to. Where the gateway lies is found in the checks.
static enum found
load_route_target(struct load *l, const struct node *item, struct cfg_route *r)
{
	bool has_via = node_find(item, "via") != NULL, has_port = node_find(item, "port") != NULL;
	bool has_tunnel = node_find(item, "tunnel") != NULL;
	bool discard = false;
	enum found f = field_bool(l, SEC_ROUTES, item, "discard", &discard);

	if (f == FOUND_GOOD && !discard) {
		item_error(l, item, "discard", "false says nothing; take the key out");
		return FOUND_BAD;
	}
	if (f != FOUND_NONE && (has_via || has_port || has_tunnel)) {
		item_error(l, item, "discard",
			   "stands beside via, port or tunnel; keep one of them");
		return FOUND_BAD;
	}
	if (has_tunnel && (has_via || has_port)) {
		item_error(l, item, "tunnel",
			   "stands beside via or port; a tunnel has one far end, take the others "
			   "out");
		return FOUND_BAD;
	}
	if (f != FOUND_NONE) {
		r->kind = CFG_ROUTE_DISCARD;
		return f;
	}
	if (has_tunnel) {
		r->kind = CFG_ROUTE_TUNNEL;
		return field_ref(l, SEC_ROUTES, item, "tunnel", SEC_TUNNELS, &r->index);
	}
	if (!has_via && !has_port) {
		item_error(l, item, NULL,
			   "leads nowhere; add via:, port:, tunnel: or discard: true");
		return FOUND_BAD;
	}
	r->kind = CFG_ROUTE_PORT;
	if (has_port && field_ref(l, SEC_ROUTES, item, "port", SEC_PORTS, &r->index) == FOUND_BAD)
		return FOUND_BAD;
	return field_address(l, SEC_ROUTES, item, "via", &r->via) == FOUND_BAD ? FOUND_BAD :
										 FOUND_GOOD;
}

static void
load_route(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_route *r = &c->routes[c->n_routes];
	uint32_t errors = l->diag->errors;

	l->items[SEC_ROUTES][c->n_routes++] = item;
	r->at = item->at;
	r->index = UINT32_MAX;
	load_route_to(l, item, &r->to);
	load_route_target(l, item, r);
	if (l->diag->errors != errors) {
		l->unsure[SEC_ROUTES] = true;
		r->kind = CFG_ROUTE_DISCARD; // has no place in the checks
	}
}

static void
load_item(struct load *l, enum section s, const struct node *item)
{
	static void (*const loaders[SEC_COUNT])(struct load *, const struct node *) = {
		load_system,    load_lab,   load_port, load_tunnel,
		load_neighbour, load_route, load_sa,   load_policy,
	};
	const char *shape =
		s == SEC_LAB || s == SEC_SYSTEM ? "a map of keys" : "a map, like { key: value }";
	char word[QUOTE_STRLEN], path[PATH_STRLEN];
	const struct name_ref *ref;

	if (item->kind != NODE_MAP) {
		kind_error(l, item, shape);
		l->unsure[s] = true;
		return;
	}
	keys_check(l, s, item);
	if (schema_sections[s].shape == SHAPE_NAMED) {
		if (!name_valid(item->key)) {
			diag_error(
				l->diag, item->key_at, node_path(item->parent, NULL, path),
				"%s is not a name; write a-z, then a-z 0-9 _ . or -, at most 31",
				quote(item->key, word));
			l->unsure[s] = true;
			return;
		}
		ref = name_find(l, item->key);
		if (ref != NULL)
			diag_error(l->diag, item->key_at, node_path(item, NULL, path),
				   "has the name of a port (line %u); a name means one of both",
				   l->c->ports[ref->index].at.line);
	}
	loaders[s](l, item);
}

// Room for as many entries as the section can become.
static bool
section_alloc(struct load *l, enum section s, uint32_t n)
{
	struct config *c = l->c;
	void **array = NULL;
	size_t size = 0;

	switch (s) {
	case SEC_PORTS:
		array = (void **)&c->ports, size = sizeof(*c->ports);
		break;
	case SEC_TUNNELS:
		array = (void **)&c->tunnels, size = sizeof(*c->tunnels);
		break;
	case SEC_NEIGHBOURS:
		array = (void **)&c->neighbours, size = sizeof(*c->neighbours);
		break;
	case SEC_ROUTES:
		array = (void **)&c->routes, size = sizeof(*c->routes);
		break;
	case SEC_SAD:
		array = (void **)&c->sas, size = sizeof(*c->sas);
		break;
	// src and dst "any" becomes a policy for each family.
	case SEC_SPD:
		array = (void **)&c->policies, size = sizeof(*c->policies), n *= 2;
		break;
	default:
		return true;
	}
	*array = calloc(n, size);
	l->items[s] = calloc(n, sizeof(*l->items[s]));
	return *array != NULL && l->items[s] != NULL;
}

static void
load_section(struct load *l, enum section s)
{
	const struct schema_section *sec = &schema_sections[s];
	const struct node *n = node_find(l->root, sec->name);
	const char *empty = sec->shape == SHAPE_LIST ? "[]" : "{}";
	enum node_kind kind = sec->shape == SHAPE_LIST ? NODE_LIST : NODE_MAP;

	if (n == NULL)
		return;
	if (n->kind == NODE_SCALAR && n->text[0] == '\0' && n->plain) {
		item_error(l, n, NULL, "is empty; write %s, or leave the section out", empty);
	} else if (n->kind != kind) {
		kind_error(l, n,
			   kind == NODE_LIST ? "a list, each item behind a dash" :
					       "a map, like { name: ... }");
	} else if (sec->shape == SHAPE_SINGLE) {
		load_item(l, s, n);
		return;
	} else if (n->n_children > sec->max) {
		item_error(l, n, NULL, "has %u entries; at most %u are taken", n->n_children,
			   sec->max);
	} else if (n->n_children == 0 && s == SEC_PORTS) {
		item_error(l, n, NULL, "is empty; at least one port is needed");
	} else if (n->n_children == 0) {
		return;
	} else if (!section_alloc(l, s, n->n_children)) {
		item_error(l, n, NULL, "out of memory");
	} else {
		for (const struct node *item = n->first; item != NULL; item = item->next)
			load_item(l, s, item);
		return;
	}
	l->unsure[s] = true;
}

// Names known so far, for references and against clashes.
static void
names_collect(struct load *l)
{
	const struct config *c = l->c;

	free(l->names);
	l->n_names = 0;
	l->names = calloc(c->n_ports + c->n_tunnels + 1, sizeof(*l->names));
	if (l->names == NULL)
		return;
	for (uint32_t i = 0; i < c->n_ports; i++)
		l->names[l->n_names++] = (struct name_ref){c->ports[i].name, SEC_PORTS, i};
	for (uint32_t i = 0; i < c->n_tunnels; i++)
		l->names[l->n_names++] = (struct name_ref){c->tunnels[i].name, SEC_TUNNELS, i};
	qsort(l->names, l->n_names, sizeof(*l->names), name_cmp);
}

void
load_all(struct load *l)
{
	char all[128] = "", word[QUOTE_STRLEN], hint[QUOTE_STRLEN];
	static const struct node nothing = {.kind = NODE_MAP};

	for (int s = 0; s < SEC_COUNT; s++)
		sprintf(all + strlen(all), "%s%s", s > 0 ? "|" : "", schema_sections[s].name);
	for (const struct node *n = l->root->first; n != NULL; n = n->next) {
		bool known = false;

		for (int s = 0; s < SEC_COUNT; s++)
			known = known || strcmp(n->key, schema_sections[s].name) == 0;
		if (known)
			continue;
		word_suggest(n->key, all, hint);
		diag_error(l->diag, n->key_at, "sgw", "unknown section %s%s", quote(n->key, word),
			   hint[0] != '\0' ? hint :
					     "; known are system, lab, ports, tunnels, "
					     "neighbours, routes, sad, spd");
	}
	if (node_find(l->root, "ports") == NULL) {
		diag_error(l->diag, l->root->at, "ports",
			   "is missing; a gateway needs at least one port");
		l->unsure[SEC_PORTS] = true;
	}
	load_system(l, &nothing); // fills in the defaults
	for (int s = 0; s < SEC_COUNT; s++) {
		load_section(l, (enum section)s);
		if (s == SEC_PORTS || s == SEC_TUNNELS)
			names_collect(l);
		if (s == SEC_PORTS)
			load_parents(l);
	}
	load_policies_rank(l);
}
