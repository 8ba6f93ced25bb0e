/* SPDX-License-Identifier: BSD-3-Clause */
#include "crypto.h"

#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

// More than a worker ever has in flight (a burst), a power of two for the rings.
#define QP_DESCRIPTORS 1024

struct crypto_dev {
	const char *name;
	uint8_t id;
};

// In order of preference: with ipsec-mb 1.3 the gcm device takes 82 cycles for
// what the mb device does in 114 (GCM, 64 bytes).
static const char *const driver_names[] = {"crypto_aesni_gcm", "crypto_aesni_mb"};
static struct crypto_dev devs[CRYPTO_DEV_MAX];
static unsigned int n_devs;
static struct rte_mempool *session_pool;

unsigned int
crypto_n_devs(void)
{
	return n_devs;
}

uint8_t
crypto_dev_id(unsigned int slot)
{
	return devs[slot].id;
}

const char *
crypto_dev_name(unsigned int slot)
{
	return devs[slot].name;
}

// Make the virtual devices; sets n_devs and the size of the largest session.
static void
devs_create(uint16_t n_qps, uint32_t *session_size)
{
	char args[64];

	*session_size = 0;
	snprintf(args, sizeof(args), "max_nb_queue_pairs=%u", RTE_MAX(n_qps, 8));
	for (unsigned int i = 0; i < RTE_DIM(driver_names); i++) {
		int id = -1;

		if (rte_eal_hotplug_add("vdev", driver_names[i], args) == 0)
			id = rte_cryptodev_get_dev_id(driver_names[i]);
		if (id < 0)
			continue;
		*session_size = RTE_MAX(*session_size,
					rte_cryptodev_sym_get_private_session_size((uint8_t)id));
		devs[n_devs++] = (struct crypto_dev){.name = driver_names[i], .id = (uint8_t)id};
	}
}

static int
dev_start(const struct crypto_dev *dev, uint16_t n_qps)
{
	struct rte_cryptodev_config conf = {
		.socket_id = (int)rte_socket_id(),
		.nb_queue_pairs = n_qps,
	};
	struct rte_cryptodev_qp_conf qp = {
		.nb_descriptors = QP_DESCRIPTORS,
		.mp_session = session_pool,
	};
	int rc = rte_cryptodev_configure(dev->id, &conf);

	for (uint16_t q = 0; rc == 0 && q < n_qps; q++)
		rc = rte_cryptodev_queue_pair_setup(dev->id, q, &qp, (int)rte_socket_id());
	return rc == 0 ? rte_cryptodev_start(dev->id) : rc;
}

int
crypto_open(uint16_t n_qps, uint32_t n_sessions, struct err *err)
{
	uint32_t size;

	devs_create(n_qps, &size);
	if (n_devs == 0)
		return err_set(err, EXIT_MACHINE, -ENODEV,
			       "crypto: neither crypto_aesni_gcm nor crypto_aesni_mb can be made; this "
			       "processor lacks AES-NI, or the driver package is missing (Debian 12: "
			       "librte-crypto-ipsec-mb23)");
	session_pool = rte_cryptodev_sym_session_pool_create("sessions", n_sessions + 1, size, 0, 0,
							     SOCKET_ID_ANY);
	if (session_pool == NULL)
		return err_set(err, EXIT_RESOURCE, -rte_errno,
			       "crypto: no memory for %u sessions of %u bytes; provide more hugepages, "
			       "or with --no-huge give more with -m", n_sessions, size);
	for (unsigned int i = 0; i < n_devs; i++) {
		int rc = dev_start(&devs[i], n_qps);

		if (rc != 0)
			return err_set(err, EXIT_RESOURCE, rc,
				       "crypto device %s: can not be set up with %u queue pairs (%s)",
				       devs[i].name, n_qps, rte_strerror(-rc));
	}
	return 0;
}

void
crypto_close(void)
{
	while (n_devs > 0) {
		n_devs--;
		rte_cryptodev_stop(devs[n_devs].id);
		rte_eal_hotplug_remove("vdev", devs[n_devs].name);
	}
	rte_mempool_free(session_pool);
	session_pool = NULL;
}

// Asked first, since a driver that is offered what it can not do says so on stderr.
static bool
can_do(uint8_t dev, const struct rte_crypto_sym_xform *x)
{
	for (; x != NULL; x = x->next) {
		struct rte_cryptodev_sym_capability_idx idx = {.type = x->type};

		if (x->type == RTE_CRYPTO_SYM_XFORM_AEAD)
			idx.algo.aead = x->aead.algo;
		else if (x->type == RTE_CRYPTO_SYM_XFORM_AUTH)
			idx.algo.auth = x->auth.algo;
		else
			idx.algo.cipher = x->cipher.algo;
		if (rte_cryptodev_sym_capability_get(dev, &idx) == NULL)
			return false;
	}
	return true;
}

int
crypto_session(struct rte_crypto_sym_xform *xform, unsigned int *slot, void **session)
{
	for (unsigned int i = 0; i < n_devs; i++) {
		if (!can_do(devs[i].id, xform))
			continue;
		*session = rte_cryptodev_sym_session_create(devs[i].id, xform, session_pool);
		if (*session != NULL) {
			*slot = i;
			return 0;
		}
		if (rte_errno == ENOMEM)
			return -ENOMEM;
	}
	return -ENOTSUP;
}

void
crypto_session_free(unsigned int slot, void *session)
{
	rte_cryptodev_sym_session_free(devs[slot].id, session);
}
