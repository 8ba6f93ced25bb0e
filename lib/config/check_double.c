/* SPDX-License-Identifier: BSD-3-Clause */
// What no two SAs may have in common: SPI and destination, names, keys.
#include "check.h"

#include <stdlib.h>
#include <string.h>

// All SAs in an order of their own; of those that are equal the first in the file is first.
struct order {
	const struct cfg_sa **sas;
	uint32_t n;
	int (*cmp)(const struct cfg_sa *a, const struct cfg_sa *b);
};

// Sorted once each: what must be unlike is compared with neighbours only.
struct orders {
	struct order spi, name, key, auth_key;
};

static int
spi_cmp(const struct cfg_sa *a, const struct cfg_sa *b)
{
	if (a->spi != b->spi)
		return a->spi < b->spi ? -1 : 1;
	return addr_cmp(&a->dst, &b->dst);
}

static int
sa_name_cmp(const struct cfg_sa *a, const struct cfg_sa *b)
{
	return strcmp(a->name, b->name);
}

static int
bytes_cmp(const struct cfg_key *a, const struct cfg_key *b)
{
	return a->len != b->len ? a->len - b->len : memcmp(a->b, b->b, a->len);
}

static int
key_cmp(const struct cfg_sa *a, const struct cfg_sa *b)
{
	return bytes_cmp(&a->key, &b->key);
}

static int
auth_key_cmp(const struct cfg_sa *a, const struct cfg_sa *b)
{
	return bytes_cmp(&a->auth_key, &b->auth_key);
}

static int
order_cmp(const void *left, const void *right, void *arg)
{
	const struct cfg_sa *a = *(const struct cfg_sa *const *)left;
	const struct cfg_sa *b = *(const struct cfg_sa *const *)right;
	const struct order *o = arg;
	int rc = o->cmp(a, b);

	return rc != 0 ? rc : a < b ? -1 : a > b;
}

static bool
order_build(struct order *o, const struct config *c,
	    int (*cmp)(const struct cfg_sa *a, const struct cfg_sa *b))
{
	*o = (struct order){.sas = calloc(c->n_sas + 1, sizeof(struct cfg_sa *)), .n = c->n_sas, .cmp = cmp};
	if (o->sas == NULL)
		return false;
	for (uint32_t i = 0; i < c->n_sas; i++)
		o->sas[i] = &c->sas[i];
	qsort_r(o->sas, o->n, sizeof(struct cfg_sa *), order_cmp, o);
	return true;
}

// The first SA that is equal in this order: itself, or one that stands before it.
static const struct cfg_sa *
order_first(const struct order *o, const struct cfg_sa *sa)
{
	uint32_t low = 0, high = o->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (o->cmp(o->sas[middle], sa) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return o->sas[low];
}

static bool
orders_build(struct orders *o, const struct config *c)
{
	return order_build(&o->spi, c, spi_cmp) && order_build(&o->name, c, sa_name_cmp) &&
	       order_build(&o->key, c, key_cmp) && order_build(&o->auth_key, c, auth_key_cmp);
}

static void
orders_free(struct orders *o)
{
	free(o->spi.sas);
	free(o->name.sas);
	free(o->key.sas);
	free(o->auth_key.sas);
}

// Given, not made of the SPI: a name begins with a letter.
static bool
has_name(const struct cfg_sa *sa)
{
	return sa->name[0] != '0';
}

// What two SAs must not have in common.
static void
sa_check_double(struct check *k, const struct orders *o, uint32_t i)
{
	const struct cfg_sa *b = &k->c->sas[i];
	const struct cfg_sa *same_spi = order_first(&o->spi, b), *same_name = order_first(&o->name, b);
	const struct node *item = k->l->items[SEC_SAD][i];
	char text[ADDR_STRLEN];

	if (b->spi != 0 && b->dst.family != 0 && same_spi != b)
		item_error(k->l, item, "spi",
			   "%u with dst %s is there already (line %u); give each SA to one "
			   "address its own SPI",
			   b->spi, addr_format(&b->dst, text), same_spi->at.line);
	else if (b->spi != 0 && same_name != b && !has_name(b))
		item_error(k->l, item, "spi",
			   "%s is the name of the SA on line %u too, as neither has one of its "
			   "own; give one of them a name:",
			   b->name, same_name->at.line);
	if (same_name != b && has_name(b))
		item_error(k->l, item, "name",
			   "\"%s\" is the name of an SA already (line %u); take another one",
			   b->name, same_name->at.line);
}

// Warn once an SA when another one before it has the same key.
static void
sa_check_shared_key(struct check *k, const struct orders *o, uint32_t i)
{
	const struct cfg_sa *b = &k->c->sas[i];
	const struct cfg_sa *a = b->key.len > 0 ? order_first(&o->key, b) : b;
	const struct cfg_sa *auth = b->auth_key.len > 0 ? order_first(&o->auth_key, b) : b;
	bool counter = alg_get(a->cipher)->counter && alg_get(b->cipher)->counter;

	if (a != b && a <= auth)
		item_warning(k->l, k->l->items[SEC_SAD][i], "key",
			     counter ? "is the key of SA %s too (line %u): if both ever use one "
				       "nonce, their packets can be read and forged; give each "
				       "SA its own key" :
				       "is the key of SA %s too (line %u); give each SA its "
				       "own key",
			     a->name, a->at.line);
	else if (auth != b)
		item_warning(k->l, k->l->items[SEC_SAD][i], "auth-key",
			     "is the auth-key of SA %s too (line %u); give each SA its own key",
			     auth->name, auth->at.line);
}

void
check_doubles_sa(struct check *k)
{
	struct orders o = {0};

	if (orders_build(&o, k->c)) {
		for (uint32_t i = 0; i < k->c->n_sas; i++) {
			sa_check_double(k, &o, i);
			sa_check_shared_key(k, &o, i);
		}
	} else {
		item_error(k->l, k->l->root, "sad", "out of memory");
	}
	orders_free(&o);
}
