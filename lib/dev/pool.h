/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "err.h"

#include <stdint.h>

struct rte_mempool;

/**
 * The one pool of packet buffers. A buffer holds, in one segment, the largest
 * frame and everything that ESP adds to it.
 *
 * @param n          buffers
 * @param mtu        largest MTU of all ports in bytes of L3
 * @param priv_size  private area of an mbuf in bytes
 * @return NULL when memory is short, with err filled
 */
struct rte_mempool *pool_create(uint32_t n, uint16_t mtu, uint16_t priv_size, struct err *err);

/**
 * A few buffers for packets up to 65 kB, in which fragments are put together. They
 * never reach a driver.
 */
struct rte_mempool *pool_create_big(uint32_t n, uint16_t priv_size, struct err *err);
