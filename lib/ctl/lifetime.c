/* SPDX-License-Identifier: BSD-3-Clause */
#include "lifetime.h"

#include "log.h"
#include "sa.h"

#include <inttypes.h>
#include <time.h>

static struct sa **list;
static uint32_t n_list;
static uint64_t start_s;

static uint64_t
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

void
lifetime_start(struct sa **sas, uint32_t n_sas)
{
	list = sas;
	n_list = n_sas;
	start_s = now_s();
}

static bool
over(uint64_t limit, uint64_t used)
{
	return limit != 0 && used >= limit;
}

static void
look_after(struct sa *sa, uint64_t age)
{
	const struct cfg_lifetime *soft = &sa->soft;
	struct sa_stats s;

	if (over(sa->hard.seconds, age))
		atomic_store(&sa->expired, true);
	if (!sa->hard_told && atomic_load(&sa->expired)) {
		sa->hard_told = true;
		log_warning("sa %s: its hard lifetime is over, it drops everything; give it a new key",
			    sa->name);
	}
	if (sa->soft_told || (soft->bytes == 0 && soft->packets == 0 && soft->seconds == 0))
		return;
	sa_stats_sum(sa, &s);
	if (!over(soft->bytes, s.bytes) && !over(soft->packets, s.packets) && !over(soft->seconds, age))
		return;
	sa->soft_told = true;
	log_notice("sa %s: its soft lifetime is over after %" PRIu64 " packets, %" PRIu64 " bytes, %" PRIu64
		   " s; give it a new key", sa->name, s.packets, s.bytes, age);
}

// A NAT has moved the peer (RFC 3948): told at most once a second.
static void
tell_peer(struct sa *sa)
{
	char addr[ADDR_STRLEN];
	struct addr peer;
	uint16_t port;
	bool moved;

	rte_spinlock_lock(&sa->lock);
	moved = sa->peer_moved;
	sa->peer_moved = false;
	peer = sa->peer;
	port = sa->peer_port;
	rte_spinlock_unlock(&sa->lock);
	if (moved)
		log_notice("sa %s: its peer is now seen at %s port %u; what is sent to it goes on to the old "
			   "place until the SAs are changed", sa->name, addr_format(&peer, addr), port);
}

void
lifetime_tick(void)
{
	static uint64_t told = UINT64_MAX;
	uint64_t age = now_s() - start_s;

	for (uint32_t i = 0; i < n_list; i++) {
		look_after(list[i], age);
		if (list[i]->inbound && list[i]->natt && age != told)
			tell_peer(list[i]);
	}
	told = age;
}
