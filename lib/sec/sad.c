/* SPDX-License-Identifier: BSD-3-Clause */
#include "sad.h"

#include "sa.h"

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ipsec_sad.h>
#include <rte_malloc.h>

#include <string.h>

struct sad {
	struct rte_ipsec_sad *by_family[2]; // v4, v6
};

static unsigned int n_created; // names must differ in one process

struct sad *
sad_create(uint32_t n_sas, struct err *err)
{
	struct rte_ipsec_sad_conf conf = {.socket_id = SOCKET_ID_ANY};
	struct sad *sad = rte_zmalloc("sad", sizeof(*sad), 0);

	// The hash tables are of this size, and one that gets full fails by chance.
	for (unsigned int i = 0; i < RTE_IPSEC_SAD_KEY_TYPE_MASK; i++)
		conf.max_sa[i] = RTE_MAX(2 * n_sas, 64u);
	for (unsigned int i = 0; sad != NULL && i < 2; i++) {
		char name[32];

		snprintf(name, sizeof(name), "sad%c_%u", i == 0 ? '4' : '6', n_created);
		conf.flags = i == 0 ? 0 : RTE_IPSEC_SAD_FLAG_IPV6;
		sad->by_family[i] = rte_ipsec_sad_create(name, &conf);
		if (sad->by_family[i] == NULL) {
			sad_free(sad);
			sad = NULL;
		}
	}
	n_created++;
	if (sad == NULL)
		err_set(err, EXIT_RESOURCE, -ENOMEM, "sad: no memory for %u SAs; provide more hugepages, "
			"or with --no-huge give more with -m", n_sas);
	return sad;
}

void
sad_free(struct sad *sad)
{
	if (sad == NULL)
		return;
	rte_ipsec_sad_destroy(sad->by_family[0]);
	rte_ipsec_sad_destroy(sad->by_family[1]);
	rte_free(sad);
}

static void
fill_key(union rte_ipsec_sad_key *key, uint8_t family, uint32_t spi_be, const uint8_t *dst)
{
	key->v4.spi = spi_be; // the same place in both
	if (family == 4)
		memcpy(&key->v4.dip, dst, 4);
	else
		memcpy(key->v6.dip, dst, 16);
}

int
sad_add(struct sad *sad, struct sa *sa, struct err *err)
{
	union rte_ipsec_sad_key key;
	int rc;

	memset(&key, 0, sizeof(key));
	fill_key(&key, sa->family, rte_cpu_to_be_32(sa->spi), sa->dst.b);
	rc = rte_ipsec_sad_add(sad->by_family[sa->family == 6], &key, RTE_IPSEC_SAD_SPI_DIP, sa);
	return rc == 0 ? 0 : err_set(err, EXIT_RESOURCE, rc, "sa %s: can not be added to the SAD (%s)",
				     sa->name, rte_strerror(-rc));
}

void
sad_find(const struct sad *sad, uint8_t family, const struct sad_key *keys, struct sa **out,
	 uint32_t n)
{
	union rte_ipsec_sad_key k[SAD_BURST];
	const union rte_ipsec_sad_key *kp[SAD_BURST];

	for (uint32_t i = 0; i < n; i++) {
		fill_key(&k[i], family, keys[i].spi_be, keys[i].dst);
		kp[i] = &k[i];
	}
	rte_ipsec_sad_lookup(sad->by_family[family == 6], kp, (void **)out, n);
}
