/* SPDX-License-Identifier: BSD-3-Clause */
// The items of sad:.
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
	static const char *const keys[] = {"udp-source-port", "udp-destination-port", "keepalive"};
	uint32_t encapsulation = 0;
	enum found f = field_choice(l, SEC_SAD, item, "encapsulation", &encapsulation);

	sa->natt = encapsulation == 1;
	field_u16(l, SEC_SAD, item, keys[0], &sa->natt_sport);
	field_u16(l, SEC_SAD, item, keys[1], &sa->natt_dport);
	field_u16(l, SEC_SAD, item, keys[2], &sa->keepalive_s);
	if (!sa->natt)
		sa->keepalive_s = 0;
	for (int i = 0; i < 3; i++)
		if (f != FOUND_BAD && !sa->natt && node_find(item, keys[i]) != NULL)
			item_error(l, item, keys[i],
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

// "copy" or a number.
static void
field_dscp(struct load *l, const struct node *item, uint8_t *out)
{
	char word[QUOTE_STRLEN];
	const char *text;
	uint64_t n;

	*out = CFG_DSCP_COPY;
	if (field_text(l, SEC_SAD, item, "dscp", &text) != FOUND_GOOD || strcmp(text, "copy") == 0)
		return;
	if (text_u64(text, &n) == 0 && n <= 63)
		*out = (uint8_t)n;
	else if (text[0] >= '0' && text[0] <= '9')
		number_error(l, schema_get(SEC_SAD, "dscp"), item, text);
	else
		item_error(l, item, "dscp", "%s is no DSCP; write copy, or 0 to 63",
			   quote(text, word));
}

// What is done to packets. On which SAs it has a meaning is seen in the checks.
static void
load_sa_terms(struct load *l, const struct node *item, struct cfg_sa *sa)
{
	uint32_t df = CFG_DF_COPY, fragment = CFG_FRAGMENT_BEFORE;

	field_choice(l, SEC_SAD, item, "df", &df);
	field_dscp(l, item, &sa->dscp);
	field_choice(l, SEC_SAD, item, "fragment", &fragment);
	field_u16(l, SEC_SAD, item, "tfc-pad-to", &sa->tfc_pad_to);
	field_u32(l, SEC_SAD, item, "dummy-interval", &sa->dummy_ms);
	sa->df = df;
	sa->fragment = sa->transport ? CFG_FRAGMENT_AFTER : fragment;
}

static void
load_sa_lifetimes(struct load *l, const struct node *item, struct cfg_sa *sa)
{
	const struct {
		const char *soft_key, *hard_key;
		uint64_t *soft, *hard;
	} ends[] = {
		{"soft-bytes", "hard-bytes", &sa->soft.bytes, &sa->hard.bytes},
		{"soft-packets", "hard-packets", &sa->soft.packets, &sa->hard.packets},
		{"soft-seconds", "hard-seconds", &sa->soft.seconds, &sa->hard.seconds},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		enum found soft = field_u64(l, SEC_SAD, item, ends[i].soft_key, ends[i].soft);
		enum found hard = field_u64(l, SEC_SAD, item, ends[i].hard_key, ends[i].hard);

		if (soft == FOUND_GOOD && hard == FOUND_GOOD && *ends[i].soft >= *ends[i].hard)
			item_error(l, item, ends[i].soft_key,
				   "%" PRIu64 " is not below %s, which is %" PRIu64
				   "; the warning comes before the end, write less",
				   *ends[i].soft, ends[i].hard_key, *ends[i].hard);
	}
}

void
load_sa(struct load *l, const struct node *item)
{
	struct config *c = l->c;
	struct cfg_sa *sa = &c->sas[c->n_sas];
	uint32_t mode = 0;
	enum found found[4];

	l->items[SEC_SAD][c->n_sas++] = item;
	sa->at = item->at;
	field_u32(l, SEC_SAD, item, "spi", &sa->spi);
	if (field_name(l, SEC_SAD, item, "name", sa->name) != FOUND_GOOD)
		snprintf(sa->name, sizeof(sa->name), "0x%x", sa->spi);
	found[0] = field_address(l, SEC_SAD, item, "src", &sa->src);
	found[1] = field_address(l, SEC_SAD, item, "dst", &sa->dst);
	found[3] = field_choice(l, SEC_SAD, item, "mode", &mode);
	sa->transport = mode == 1;
	found[2] = field_u32(l, SEC_SAD, item, "reqid", &sa->reqid);
	for (int i = 0; i < 4; i++)
		if (found[i] == FOUND_BAD)
			l->unsure[SEC_SAD] = true;
	load_sa_algorithms(l, item, sa);
	field_bool(l, SEC_SAD, item, "esn", &sa->esn);
	field_u32(l, SEC_SAD, item, "replay-window", &sa->replay_window);
	load_sa_encapsulation(l, item, sa);
	field_u64(l, SEC_SAD, item, "sequence", &sa->sequence);
	load_sa_terms(l, item, sa);
	load_sa_lifetimes(l, item, sa);
	fingerprint_make(sa);
}
