/* SPDX-License-Identifier: BSD-3-Clause */
// The items of spd:.
#include "load.h"

#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A selector. `any` is set to 4, 6 or 46 where the word any4, any6 or any stood.
static enum found
field_selector(struct load *l, const struct node *item, const char *key, struct range *out,
	       int *any)
{
	char word[QUOTE_STRLEN], net[ADDR_STRLEN];
	const char *text;
	enum found f = field_text(l, SEC_SPD, item, key, &text);
	struct prefix p;

	*any = 0;
	if (f != FOUND_GOOD)
		return f;
	if (strcmp(text, "any") == 0)
		*any = 46;
	else if (strcmp(text, "any4") == 0)
		*any = 4;
	else if (strcmp(text, "any6") == 0)
		*any = 6;
	if (*any != 0)
		return FOUND_GOOD;
	int rc = range_parse(text, out);
	quote(text, word);
	if (rc == -EDOM && prefix_parse(text, &p) == 0) {
		p = prefix_network(&p);
		item_error(l, item, key, "%s has bits set right of /%u; write %s", word, p.len,
			   prefix_format(&p, net));
	} else if (rc == -ERANGE) {
		item_error(l, item, key,
			   "%s ends before it begins, is of two families, or has too long a "
			   "prefix; write first-last or address/length",
			   word);
	} else if (rc < 0) {
		item_error(l, item, key,
			   "%s is no selector; write an address, address/length, first-last, "
			   "any4, any6 or any",
			   word);
	}
	return rc == 0 ? FOUND_GOOD : FOUND_BAD;
}

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{"tcp", 6},  {"udp", 17}, {"icmp", 1}, {"icmpv6", 58}, {"sctp", 132},
	{"gre", 47}, {"esp", 50}, {"ah", 51},  {"ospf", 89},
};

static enum found
field_protocol(struct load *l, const struct node *item, struct cfg_policy *p)
{
	const char *text;
	char word[QUOTE_STRLEN], hint[QUOTE_STRLEN];
	uint64_t n;
	enum found f = field_text(l, SEC_SPD, item, "proto", &text);

	p->any_proto = f != FOUND_GOOD || strcmp(text, "any") == 0;
	if (p->any_proto)
		return f;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (strcmp(protocols[i].name, text) == 0) {
			p->proto = protocols[i].number;
			return FOUND_GOOD;
		}
	}
	if (text_u64(text, &n) == 0 && n <= 255) {
		p->proto = (uint8_t)n;
		return FOUND_GOOD;
	}
	if (text[0] >= '0' && text[0] <= '9') {
		number_error(l, schema_get(SEC_SPD, "proto"), item, text);
		return FOUND_BAD;
	}
	word_suggest(text, "any|tcp|udp|icmp|icmpv6|sctp|gre|esp|ah|ospf", hint);
	item_error(l, item, "proto", "%s is no protocol%s", quote(text, word),
		   hint[0] != '\0' ? hint :
				     "; write any, tcp, udp, icmp, icmpv6, sctp, gre, esp, ah, "
				     "ospf, or a number");
	return FOUND_BAD;
}

// "443" or "1-1023".
static enum found
field_ports(struct load *l, const struct node *item, const char *key, uint16_t out[2])
{
	char first[32], word[QUOTE_STRLEN];
	const char *text, *dash;
	uint64_t low, high;
	enum found f = field_text(l, SEC_SPD, item, key, &text);

	out[0] = 0;
	out[1] = UINT16_MAX;
	if (f != FOUND_GOOD)
		return f;
	dash = strchr(text, '-');
	if (dash == NULL || dash == text || dash - text >= (ptrdiff_t)sizeof(first)) {
		if (text_u64(text, &low) < 0 || low > UINT16_MAX) {
			number_error(l, schema_get(SEC_SPD, key), item, text);
			return FOUND_BAD;
		}
		out[0] = out[1] = (uint16_t)low;
		return FOUND_GOOD;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	if (text_u64(first, &low) < 0 || text_u64(dash + 1, &high) < 0 || high > UINT16_MAX ||
	    low > high) {
		item_error(l, item, key, "%s is no range of ports; write first-last, 0 to 65535",
			   quote(text, word));
		return FOUND_BAD;
	}
	out[0] = (uint16_t)low;
	out[1] = (uint16_t)high;
	return FOUND_GOOD;
}

// The outer pair "198.18.1.203-198.18.1.209" of a protect policy.
static enum found
field_pair(struct load *l, const struct node *item, struct cfg_policy *p)
{
	char first[ADDR_STRLEN], word[QUOTE_STRLEN];
	const char *text, *dash;
	struct addr src = {0}, dst = {0};
	enum found f = field_text(l, SEC_SPD, item, "tunnel", &text);

	if (f != FOUND_GOOD)
		return f;
	dash = strchr(text, '-');
	if (dash != NULL)
		snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	quote(text, word);
	if (dash == NULL || addr_parse(first, &src) < 0 || addr_parse(dash + 1, &dst) < 0)
		item_error(l, item, "tunnel",
			   "%s is no pair of addresses; write the outer source and destination "
			   "like 198.18.1.203-198.18.1.209",
			   word);
	else if (src.family != dst.family)
		item_error(l, item, "tunnel",
			   "%s joins IPv4 and IPv6; both outer addresses are of one family", word);
	else if (addr_is_martian(&src) || addr_is_martian(&dst))
		item_error(
			l, item, "tunnel",
			"%s has an address that is no host's; write the addresses of two gateways",
			word);
	else {
		p->tunnel_src = src;
		p->tunnel_dst = dst;
		return FOUND_GOOD;
	}
	return FOUND_BAD;
}

// What must and what must not stand beside each action. @return all is well
static bool
load_policy_action(struct load *l, const struct node *item, struct cfg_policy *p)
{
	static const char *const only[] = {"mode", "tunnel", "reqid", "level"};
	uint32_t action = 0, level = 0, mode = 0;
	bool good;
	enum found f = field_choice(l, SEC_SPD, item, "action", &action);

	good = f == FOUND_GOOD;
	p->action = action;
	bool mode_known = field_choice(l, SEC_SPD, item, "mode", &mode) != FOUND_BAD;
	good &= mode_known;
	p->transport = p->action == CFG_PROTECT && mode == 1;
	good &= field_pair(l, item, p) != FOUND_BAD;
	good &= field_u32(l, SEC_SPD, item, "reqid", &p->reqid) != FOUND_BAD;
	field_choice(l, SEC_SPD, item, "level", &level);
	if (f != FOUND_GOOD)
		return false;
	if (p->transport && node_find(item, "tunnel") != NULL) {
		item_error(l, item, "tunnel",
			   "has no meaning with mode: transport, where a packet keeps its own "
			   "addresses; take it out, or write mode: tunnel");
		return false;
	}
	if (p->action == CFG_PROTECT && !p->transport && mode_known &&
	    node_find(item, "tunnel") == NULL) {
		item_error(l, item, "tunnel",
			   "is missing; protect needs the outer addresses, like tunnel: "
			   "198.18.1.203-198.18.1.209");
		return false;
	}
	for (int i = 0; i < 4 && p->action != CFG_PROTECT; i++)
		if (node_find(item, only[i]) != NULL)
			item_error(l, item, only[i],
				   "has no meaning with action: %s; take it out, or write action: "
				   "protect",
				   p->action == CFG_BYPASS ? "bypass" : "discard");
	return good;
}

static void
load_policy_ports(struct load *l, const struct node *item, struct cfg_policy *p, enum found proto)
{
	static const char *const keys[] = {"sport", "dport"};
	bool takes = !p->any_proto && (p->proto == 6 || p->proto == 17 || p->proto == 132);

	field_ports(l, item, "sport", p->sport);
	field_ports(l, item, "dport", p->dport);
	for (int i = 0; i < 2; i++)
		if (proto != FOUND_BAD && !takes && node_find(item, keys[i]) != NULL)
			item_error(l, item, keys[i],
				   "needs a protocol that has ports; add proto: tcp, udp or sctp");
}

// Add the policy for one inner family, with `any` made into a range of it.
static void
policy_add(struct load *l, const struct node *item, const struct cfg_policy *p, uint8_t family,
	   bool any_src, bool any_dst)
{
	const struct prefix all = {.addr.family = family};
	struct config *c = l->c;
	struct cfg_policy *new = &c->policies[c->n_policies];

	l->items[SEC_SPD][c->n_policies++] = item;
	*new = *p;
	if (any_src)
		new->src = prefix_range(&all);
	if (any_dst)
		new->dst = prefix_range(&all);
}

void
load_policy(struct load *l, const struct node *item)
{
	struct cfg_policy p = {.at = item->at};
	const struct node *proto_node = node_find(item, "proto");
	int any_src = 0, any_dst = 0;
	uint32_t dir = CFG_IN;
	uint32_t errors = l->diag->errors;
	bool good = field_choice(l, SEC_SPD, item, "dir", &dir) == FOUND_GOOD;

	p.dir = dir;
	good &= field_selector(l, item, "src", &p.src, &any_src) == FOUND_GOOD;
	good &= field_selector(l, item, "dst", &p.dst, &any_dst) == FOUND_GOOD;
	load_policy_ports(l, item, &p, field_protocol(l, item, &p));
	good &= load_policy_action(l, item, &p);
	field_u32(l, SEC_SPD, item, "priority", &p.priority);

	// The families that each side can be of.
	bool src4 = any_src == 46 || any_src == 4 || (any_src == 0 && p.src.first.family == 4);
	bool src6 = any_src == 46 || any_src == 6 || (any_src == 0 && p.src.first.family == 6);
	bool dst4 = any_dst == 46 || any_dst == 4 || (any_dst == 0 && p.dst.first.family == 4);
	bool dst6 = any_dst == 46 || any_dst == 6 || (any_dst == 0 && p.dst.first.family == 6);
	bool v4 = src4 && dst4, v6 = src6 && dst6;

	if (good && !v4 && !v6)
		item_error(
			l, item, "dst",
			"is not of the family of src; a packet has both addresses of one family");
	if (good && proto_node != NULL && proto_node->kind == NODE_SCALAR &&
	    ((v6 && strcmp(proto_node->text, "icmp") == 0) ||
	     (v4 && strcmp(proto_node->text, "icmpv6") == 0)))
		item_error(l, item, "proto",
			   "\"%s\" is not the ICMP of %s; write icmp for IPv4 and icmpv6 for "
			   "IPv6, in two policies where both are meant",
			   proto_node->text, v6 ? "IPv6" : "IPv4");
	if (!good || l->diag->errors != errors) {
		l->unsure[SEC_SPD] = true;
		if (!good)
			return;
	}
	if (v4)
		policy_add(l, item, &p, 4, any_src != 0, any_dst != 0);
	if (v6)
		policy_add(l, item, &p, 6, any_src != 0, any_dst != 0);
}

struct ranked {
	struct cfg_policy policy;
	const struct node *item;
};

static int
ranked_cmp(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->policy.priority != b->policy.priority)
		return a->policy.priority < b->policy.priority ? -1 : 1;
	return a->policy.rank < b->policy.rank ? -1 : 1; // the place in the file, for now
}

void
load_policies_rank(struct load *l)
{
	struct config *c = l->c;
	struct ranked *r;

	if (c->n_policies == 0)
		return;
	r = calloc(c->n_policies, sizeof(*r));
	if (r == NULL) {
		item_error(l, l->root, "spd", "out of memory");
		return;
	}
	for (uint32_t i = 0; i < c->n_policies; i++) {
		c->policies[i].rank = i;
		r[i] = (struct ranked){c->policies[i], l->items[SEC_SPD][i]};
	}
	qsort(r, c->n_policies, sizeof(*r), ranked_cmp);
	for (uint32_t i = 0; i < c->n_policies; i++) {
		c->policies[i] = r[i].policy;
		c->policies[i].rank = i;
		l->items[SEC_SPD][i] = r[i].item;
	}
	free(r);
}
