/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct worker;

/**
 * Would a packet that sgw makes itself be let out with these addresses?
 *
 * @param family   4 or 6; src and dst are in network byte order
 * @param proto    upper layer protocol
 * @param secured  it answers a packet that came protected, so it must not leave
 *                 in clear
 */
bool policy_allows_out(const struct worker *w, uint8_t family, const void *src, const void *dst,
		       uint8_t proto, bool secured);
