/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

// Behind the packet: padding (15), pad length and next header (2), ICV (32), the
// high half of an ESN (4), and the AAD that librte_ipsec puts there (16).
#define ESP_TAIL 80
// In front: Ethernet (18), IPv6 (40), UDP (8), ESP (8), IV (16) fit the headroom.
_Static_assert(RTE_PKTMBUF_HEADROOM >= 18 + 40 + 8 + 8 + 16, "headroom holds all outer headers");

struct rte_mempool *
pool_create(uint32_t n, uint16_t mtu, uint16_t priv_size, struct err *err)
{
	uint32_t room = RTE_PKTMBUF_HEADROOM + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + mtu + ESP_TAIL;
	struct rte_mempool *pool;

	// Some drivers want room for 2 kB whatever the MTU is.
	room = RTE_MAX(RTE_ALIGN_CEIL(room, RTE_CACHE_LINE_SIZE), (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
	// What is free last is used first: buffers that one worker fills and another frees
	// would else go round through all of the pool, and out of every cache.
	pool = rte_pktmbuf_pool_create_by_ops("packets", n, RTE_MEMPOOL_CACHE_MAX_SIZE / 2, priv_size,
					      (uint16_t)room, SOCKET_ID_ANY, "stack");
	if (pool == NULL) // the driver may not be installed
		pool = rte_pktmbuf_pool_create("packets", n, RTE_MEMPOOL_CACHE_MAX_SIZE / 2, priv_size,
					       (uint16_t)room, SOCKET_ID_ANY);
	if (pool == NULL)
		err_set(err, EXIT_RESOURCE, -rte_errno,
			"memory: no room for %u packet buffers of %u bytes (%s); lower system.mbufs, "
			"provide more hugepages, or with --no-huge give more with -m",
			n, room + priv_size + 128, rte_strerror(rte_errno));
	return pool;
}

struct rte_mempool *
pool_create_big(uint32_t n, uint16_t priv_size, struct err *err)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("big", n, 0, priv_size, UINT16_MAX, SOCKET_ID_ANY);

	if (pool == NULL)
		err_set(err, EXIT_RESOURCE, -rte_errno,
			"memory: no room for %u reassembly buffers of 64 kB (%s); provide more hugepages, or "
			"with --no-huge give more with -m", n, rte_strerror(rte_errno));
	return pool;
}
