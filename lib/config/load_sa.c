/* SPDX-License-Identifier: BSD-3-Clause */
// The items of sad: and spd:.
#include "load.h"

#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sha2.h>

// The key of the lab that sgw mirrors; the whole world knows it.
#define PUBLISHED_KEY "12345678901234567890"

// "20, 28 or 36 (4 of them salt)", the lengths of `key` for an algorithm.
static const char *
lengths_format(const struct alg *a, char buf[static 64])
{
	size_t n = 0;

	for (int i = 0; i < 3 && a->key_lens[i] != 0; i++) {
		bool last = i == 2 || a->key_lens[i + 1] == 0;

		n += (size_t)snprintf(buf + n, 64 - n, "%s%u",
				      i == 0 ? "" :
				      last   ? " or " :
					       ", ",
				      a->key_lens[i] + a->salt_len);
	}
	if (a->salt_len > 0)
		snprintf(buf + n, 64 - n, " (%u of them salt)", a->salt_len);
	return buf;
}

// Is the key there where it is wanted, and of a length that fits?
static void
key_check(struct load *l, const struct node *item, const char *key, enum found f, size_t len,
	  const struct cfg_key *k, enum alg_id id)
{
	const struct alg *a = alg_get(id);
	char lengths[64];
	bool fits = false;

	if (f == FOUND_BAD || id == ALG_NONE)
		return;
	if (a->key_lens[0] == 0) {
		if (f == FOUND_GOOD)
			item_error(l, item, key, "%s takes no key; take it out", a->name);
		return;
	}
	lengths_format(a, lengths);
	if (f == FOUND_NONE) {
		item_error(l, item, key, "is missing; %s wants a key of %s bytes", a->name,
			   lengths);
		return;
	}
	for (int i = 0; i < 3 && a->key_lens[i] != 0; i++)
		fits = fits || len == (size_t)a->key_lens[i] + a->salt_len;
	if (!fits)
		item_error(l, item, key, "is %zu bytes long; %s wants %s", len, a->name, lengths);
	if (k->len == strlen(PUBLISHED_KEY) && memcmp(k->b, PUBLISHED_KEY, k->len) == 0 &&
	    !l->c->allow_published_keys)
		item_error(l, item, key,
			   "is the published lab key; make your own with \"openssl rand -hex "
			   "%zu\" (in a lab: lab.allow-published-keys: lab-only)",
			   len);
}

// Cipher, integrity and their keys; what may stand beside what.
static void
load_sa_algorithms(struct load *l, const struct node *item, struct cfg_sa *sa)
{
	bool has_aead = node_find(item, "aead") != NULL,
	     has_auth = node_find(item, "auth") != NULL;
	bool has_cipher = node_find(item, "cipher") != NULL;
	size_t len = 0, auth_len = 0;
	enum alg_id aead = ALG_NONE, cipher = ALG_NONE, auth = ALG_NONE;
	enum found key, auth_key;

	field_algorithm(l, item, "aead", &aead);
	field_algorithm(l, item, "cipher", &cipher);
	field_algorithm(l, item, "auth", &auth);
	key = field_key(l, item, "key", &sa->key, &len);
	auth_key = field_key(l, item, "auth-key", &sa->auth_key, &auth_len);

	if (has_aead && has_cipher)
		item_error(l, item, "cipher",
			   "stands beside aead; an AEAD encrypts by itself, take cipher out");
	if (has_aead && has_auth)
		item_error(l, item, "auth",
			   "stands beside aead; an AEAD has its own integrity, take auth and "
			   "auth-key out");
	else if (auth_key != FOUND_NONE && !has_auth)
		item_error(l, item, "auth-key", "has no auth; %s",
			   has_aead ? "an AEAD takes none, take it out" :
				      "add auth: hmac-sha256-128");
	if (!has_aead && !has_cipher)
		item_error(l, item, NULL,
			   "has no cipher; write aead: aes-gcm-16, or cipher: and auth: (cipher: "
			   "null for none)");
	if (!has_aead && has_cipher && !has_auth)
		item_error(l, item, "cipher",
			   "has no auth beside it, so that anybody could alter packets; add auth: "
			   "hmac-sha256-128 and its auth-key:");

	sa->cipher = has_aead ? aead : cipher;
	sa->auth = has_aead ? ALG_NONE : auth;
	if (!has_aead || !has_cipher)
		key_check(l, item, "key", key, len, &sa->key, sa->cipher);
	key_check(l, item, "auth-key", auth_key, auth_len, &sa->auth_key, sa->auth);
}

static void
load_sa_encapsulation(struct load *l, const struct node *item, struct cfg_sa *sa)
{
	static const char *const ports[] = {"udp-source-port", "udp-destination-port"};
	uint32_t encapsulation = 0;
	enum found f = field_choice(l, SEC_SAD, item, "encapsulation", &encapsulation);

	sa->natt = encapsulation == 1;
	field_u16(l, SEC_SAD, item, ports[0], &sa->natt_sport);
	field_u16(l, SEC_SAD, item, ports[1], &sa->natt_dport);
	for (int i = 0; i < 2; i++)
		if (f != FOUND_BAD && !sa->natt && node_find(item, ports[i]) != NULL)
			item_error(l, item, ports[i],
				   "has no meaning without UDP; add encapsulation: udp, or take "
				   "it out");
}

// What identifies a key to people without telling it.
static void
fingerprint_make(struct cfg_sa *sa)
{
	static const char label[] = "sgw-key-1";
	const char *cipher = alg_get(sa->cipher)->name;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)label, strlen(label));
	SHA256Update(&ctx, (const uint8_t *)cipher, strlen(cipher));
	SHA256Update(&ctx, sa->key.b, sa->key.len);
	SHA256Update(&ctx, sa->auth_key.b, sa->auth_key.len);
	SHA256Final(digest, &ctx);
	for (int i = 0; i < 8; i++)
		sprintf(sa->fingerprint + 2 * i, "%02x", digest[i]);
	explicit_bzero(&ctx, sizeof(ctx));
}

static void
load_sa_mode(struct load *l, const struct node *item)
{
	const struct node *mode = node_find(item, "mode");
	uint32_t unused;

	if (mode != NULL && mode->kind == NODE_SCALAR && strcmp(mode->text, "transport") == 0)
		item_error(l, item, "mode", "transport is not in this release; write tunnel");
	else
		field_choice(l, SEC_SAD, item, "mode", &unused);
}

void
load_sa(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_sa *sa = &c->sas[c->n_sas];
	enum found found[3];

	l->items[SEC_SAD][c->n_sas++] = item;
	sa->at = item->at;
	field_u32(l, SEC_SAD, item, "spi", &sa->spi);
	if (field_name(l, SEC_SAD, item, "name", sa->name) != FOUND_GOOD)
		snprintf(sa->name, sizeof(sa->name), "0x%x", sa->spi);
	found[0] = field_address(l, SEC_SAD, item, "src", &sa->src);
	found[1] = field_address(l, SEC_SAD, item, "dst", &sa->dst);
	load_sa_mode(l, item);
	found[2] = field_u32(l, SEC_SAD, item, "reqid", &sa->reqid);
	for (int i = 0; i < 3; i++)
		if (found[i] == FOUND_BAD)
			l->unsure[SEC_SAD] = true;
	load_sa_algorithms(l, item, sa);
	field_bool(l, SEC_SAD, item, "esn", &sa->esn);
	field_u32(l, SEC_SAD, item, "replay-window", &sa->replay_window);
	load_sa_encapsulation(l, item, sa);
	field_u64(l, SEC_SAD, item, "sequence", &sa->sequence);
	fingerprint_make(sa);
}

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
	static const char *const only[] = {"tunnel", "reqid", "level"};
	uint32_t action = 0, level = 0;
	bool good;
	enum found f = field_choice(l, SEC_SPD, item, "action", &action);

	good = f == FOUND_GOOD;
	p->action = action;
	good &= field_pair(l, item, p) != FOUND_BAD;
	good &= field_u32(l, SEC_SPD, item, "reqid", &p->reqid) != FOUND_BAD;
	field_choice(l, SEC_SPD, item, "level", &level);
	if (f != FOUND_GOOD)
		return false;
	if (p->action == CFG_PROTECT && node_find(item, "tunnel") == NULL) {
		item_error(l, item, "tunnel",
			   "is missing; protect needs the outer addresses, like tunnel: "
			   "198.18.1.203-198.18.1.209");
		return false;
	}
	for (int i = 0; i < 3 && p->action != CFG_PROTECT; i++)
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
