/* SPDX-License-Identifier: BSD-3-Clause */
// The crypto devices: made by sgw itself, one queue pair a worker, look-aside.
#pragma once

#include "err.h"

#include <stdint.h>

struct rte_crypto_sym_xform;

#define CRYPTO_DEV_MAX 2

/**
 * Create, configure and start the software crypto devices.
 *
 * @param n_qps       queue pairs a device, one for every worker
 * @param n_sessions  sessions that will be made
 * @return 0 or -errno, with err filled (EXIT_MACHINE: no usable device)
 */
int crypto_open(uint16_t n_qps, uint32_t n_sessions, struct err *err);

/** Stop and remove the devices; all sessions must have been freed. */
void crypto_close(void);

/** Number of open devices; their ids are crypto_dev_id(0…n-1). */
unsigned int crypto_n_devs(void);
uint8_t crypto_dev_id(unsigned int slot);
const char *crypto_dev_name(unsigned int slot);

/**
 * Make a session on the first device that can do the transform, in order of
 * preference (the one that is faster for GCM comes first).
 *
 * @param xform    chain of transforms in the order the direction needs
 * @param slot     filled with the device's slot
 * @param session  filled; to be freed with crypto_session_free()
 * @return 0; -ENOTSUP when no device can do it; other -errno
 */
int crypto_session(struct rte_crypto_sym_xform *xform, unsigned int *slot, void **session);
void crypto_session_free(unsigned int slot, void *session);
