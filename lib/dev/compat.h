/* SPDX-License-Identifier: BSD-3-Clause */
// The code is written to the names of DPDK 24.11; this is all that 22.11 needs
// to understand it, and the only place with an #if on the version.
#pragma once

#include <rte_version.h>

#include <stdint.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#define rte_tel_data_add_array_uint rte_tel_data_add_array_u64
#define RTE_TEL_UINT_VAL RTE_TEL_U64_VAL
#endif

#if RTE_VERSION < RTE_VERSION_NUM(24, 11, 0, 0)
// rte_fib6 takes plain arrays of 16 bytes before 24.11, struct rte_ipv6_addr after.
#define FIB6_ADDR(p) ((const uint8_t *)(p))
#define FIB6_ADDRS(p) ((uint8_t (*)[16])(p))
#else
#include <rte_ip6.h>
#define FIB6_ADDR(p) ((const struct rte_ipv6_addr *)(p))
#define FIB6_ADDRS(p) ((const struct rte_ipv6_addr *)(p))
#endif
