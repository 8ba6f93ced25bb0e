/* SPDX-License-Identifier: BSD-3-Clause */
// Resolving and learning neighbours, in the workers. The table: neigh_table.h.
#include "neigh.h"

#include "local.h"
#include "neigh_table.h"
#include "stage.h"

#include <string.h>

#define USED_DIV 8         // the time of use is noted in steps of 1/8 s
#define READ_TRIES 4       // before a reader takes the lock
#define SOLICIT_RATE 1000  // a second and worker: sweeps must not become storms (RFC 6583)
#define SOLICIT_BURST 256

static inline void
touch(struct neigh *e, uint64_t now, uint64_t hz)
{
	// Outside the lock: should the way have been recycled meanwhile, its new
	// owner is thought used, which does no harm. Rarely, as it is a shared line.
	if (age(now, __atomic_load_n(&e->used, __ATOMIC_RELAXED)) > hz / USED_DIV)
		__atomic_store_n(&e->used, now, __ATOMIC_RELAXED);
}

// The fast path: no lock. false: not there, not usable, or changing just now.
static inline bool
lookup(const struct worker *w, struct neigh_table *t, const struct neigh_key *k,
       struct rte_ether_addr *mac)
{
	uint16_t tag;
	struct neigh_set *s = set_of(t, k, &tag);

	for (unsigned int try = 0; try < READ_TRIES; try++) {
		uint32_t sn = rte_seqcount_read_begin(&s->seq);
		struct neigh *e = set_find(s, k, tag);
		bool hit = e != NULL && usable(e->state);

		if (hit)
			*mac = e->mac;
		if (!rte_seqcount_read_retry(&s->seq, sn)) {
			if (hit)
				touch(e, w->now, w->hz);
			return hit;
		}
	}
	return false;
}

// ---- changes: all under the set's lock ----

static bool
queue_put(struct neigh_table *t, struct neigh *e, struct rte_mbuf *m)
{
	if (e->n_queue == NEIGH_QUEUE_MAX)
		return false;
	if (__atomic_add_fetch(&t->queued, 1, __ATOMIC_RELAXED) > t->queued_max) {
		__atomic_fetch_sub(&t->queued, 1, __ATOMIC_RELAXED);
		return false;
	}
	e->queue[e->n_queue++] = m;
	return true;
}

// How gladly a way is given up, 0: never. What answers and is used must survive
// any sweep over addresses that do not exist; what someone merely told us (no
// packet made us ask) must not push out what packets wait for.
static unsigned int
evictable(const struct neigh *e, uint64_t now, uint64_t hz, bool for_packet)
{
	switch (e->state) {
	case NEIGH_FREE:
		return 5;
	case NEIGH_FAILED:
		return 4;
	case NEIGH_REACHABLE:
		if (age(now, e->confirmed) < REACHABLE_S * hz)
			return 0;
		if (e->used == 0)
			return 3;
		return age(now, e->used) < REACHABLE_S * hz ? 0 : 1;
	case NEIGH_INCOMPLETE:
		return for_packet ? 2 : 0;
	default:
		return 0;
	}
}

// A way for a new key, or NULL. out: what waited for the previous owner.
static struct neigh *
set_claim(struct neigh_table *t, struct neigh_set *s, const struct neigh_key *k, uint16_t tag,
	  const struct worker *w, bool for_packet, struct waiting *out)
{
	struct neigh *best = NULL;
	unsigned int best_rank = 0;

	for (unsigned int i = 0; i < NEIGH_WAYS; i++) {
		struct neigh *e = &s->ways[i];
		unsigned int rank = evictable(e, w->now, w->hz, for_packet);

		// Among equals the one that was used least recently.
		if (rank > best_rank || (rank != 0 && rank == best_rank &&
					 age(w->now, e->used) > age(w->now, best->used))) {
			best = e;
			best_rank = rank;
		}
	}
	if (best == NULL)
		return NULL;
	queue_take(t, best, out);
	rte_seqcount_write_begin(&s->seq);
	s->tags[best - s->ways] = tag;
	best->key = *k;
	best->state = NEIGH_INCOMPLETE;
	memset(&best->mac, 0, sizeof(best->mac));
	rte_seqcount_write_end(&s->seq);
	best->probes = 0;
	best->used = 0;
	best->confirmed = 0;
	best->timer = w->now;
	return best;
}

// ---- what happens after the lock ----

void
waiting_drop(struct worker *w, struct waiting *q, enum drop_reason why)
{
	for (unsigned int i = 0; i < q->n; i++) {
		// RFC 4861 section 7.2.2, RFC 1812 section 5.2.7.1
		if (why == DROP_neigh_failed)
			icmp_unreachable(w, q->pkts[i]);
		drop(w, q->pkts[i], why);
	}
	q->n = 0;
}

static inline bool
frame(struct rte_mbuf *m, const struct rte_ether_addr *dst, const struct tport *tp, uint16_t type)
{
	uint16_t len = RTE_ETHER_HDR_LEN + (tp->vlan != 0 ? RTE_VLAN_HLEN : 0);
	char *p = rte_pktmbuf_prepend(m, len);
	uint16_t be = rte_cpu_to_be_16(type);

	if (unlikely(p == NULL))
		return false;
	memcpy(p, dst, RTE_ETHER_ADDR_LEN);
	memcpy(p + 6, &tp->mac, RTE_ETHER_ADDR_LEN);
	memcpy(p + len - 2, &be, sizeof(be));
	if (unlikely(tp->vlan != 0)) {
		be = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		memcpy(p + 12, &be, sizeof(be));
		be = rte_cpu_to_be_16(tp->vlan);
		memcpy(p + 14, &be, sizeof(be));
	}
	return true;
}

static inline bool
frame_packet(struct rte_mbuf *m, const struct rte_ether_addr *dst, const struct tport *tp)
{
	return frame(m, dst, tp,
		     pkt(m)->family == 4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
}

static void
packet_send(struct worker *w, uint16_t port, const struct rte_ether_addr *mac, struct rte_mbuf *m)
{
	if (frame_packet(m, mac, &w->tables->ports[port]))
		tx_enqueue(w, port, m);
	else
		drop(w, m, DROP_no_headroom);
}

void
waiting_send(struct worker *w, uint16_t port, const struct rte_ether_addr *mac, struct waiting *q)
{
	for (unsigned int i = 0; i < q->n; i++)
		packet_send(w, port, mac, q->pkts[i]);
	q->n = 0;
}

void
neigh_ask(struct worker *w, uint16_t port, const struct addr *addr,
	  const struct rte_ether_addr *mac, uint16_t provoker)
{
	// Without a token this question is lost like one lost on the wire.
	if (bucket_take(&w->tables->neigh->solicit[w->index], w, SOLICIT_RATE, SOLICIT_BURST))
		neigh_solicit(w, port, addr, mac, provoker);
}

bool
neigh_frame(struct rte_mbuf *m, const struct rte_ether_addr *dst, const struct tport *tp,
	    uint16_t type)
{
	return frame(m, dst, tp, type);
}

// ---- resolving ----

// The network and the broadcast address of a connected prefix are no hosts
// (RFC 1812 section 5.3.5; RFC 3021 for /31).
static bool
is_net_or_broadcast(const struct tport *tp, const struct addr *addr)
{
	if (addr->family != 4)
		return false;
	for (uint32_t i = 0; i < tp->n_addresses; i++) {
		const struct prefix *p = &tp->addresses[i];
		uint32_t host;

		if (p->addr.family != 4 || p->len >= 31 || !prefix_contains(p, addr))
			continue;
		memcpy(&host, addr->b, sizeof(host));
		host = rte_be_to_cpu_32(host) & (UINT32_MAX >> p->len);
		if (host == 0 || host == UINT32_MAX >> p->len)
			return true;
	}
	return false;
}

// Not found on the fast path. @return true: mac is known after all; false: m was
// queued or dropped.
static bool
resolve_slow(struct worker *w, uint16_t port, const struct addr *addr, struct rte_mbuf *m,
	     struct rte_ether_addr *mac)
{
	struct neigh_table *t = w->tables->neigh;
	struct neigh_key k = key_of(port, addr);
	struct waiting evicted = { .n = 0 };
	uint16_t provoker = m->port; // m may be gone when it is needed
	uint16_t tag;
	struct neigh_set *s = set_of(t, &k, &tag);
	int why = -1; // reason to drop m
	bool hit = false, fresh = false;

	if (is_net_or_broadcast(&w->tables->ports[port], addr) || addr_is_multicast(addr)) {
		drop(w, m, DROP_multicast);
		return false;
	}
	rte_spinlock_lock(&s->lock);
	struct neigh *e = set_find(s, &k, tag);
	if (e == NULL) {
		e = set_claim(t, s, &k, tag, w, true, &evicted);
		if (e != NULL) {
			e->probes = 1;
			fresh = true;
		}
	}
	if (e == NULL) {
		why = DROP_neigh_table_full;
	} else if (e->state == NEIGH_FAILED) {
		why = DROP_neigh_failed;
	} else {
		__atomic_store_n(&e->used, w->now, __ATOMIC_RELAXED);
		hit = usable(e->state);
		if (hit)
			*mac = e->mac;
		else if (!queue_put(t, e, m))
			why = DROP_neigh_queue_full;
	}
	rte_spinlock_unlock(&s->lock);

	waiting_drop(w, &evicted, DROP_neigh_table_full);
	if (why >= 0) {
		struct waiting q = { .n = 1, .pkts = { m } };
		waiting_drop(w, &q, (enum drop_reason)why);
	}
	if (fresh)
		neigh_ask(w, port, addr, NULL, provoker);
	return hit;
}

void
neigh_output(struct worker *w, uint16_t port, const struct addr *addr, struct rte_mbuf *m)
{
	struct neigh_key k = key_of(port, addr);
	struct rte_ether_addr mac;

	if (lookup(w, w->tables->neigh, &k, &mac) || resolve_slow(w, port, addr, m, &mac))
		packet_send(w, port, &mac, m);
}

static inline void
destination_of(struct rte_mbuf *m, struct addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = pkt(m)->family;
	if (addr->family == 4)
		memcpy(addr->b, rte_pktmbuf_mtod_offset(m, void *, 16), 4);
	else
		memcpy(addr->b, rte_pktmbuf_mtod_offset(m, void *, 24), 16);
}

uint16_t
neigh_resolve(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct tables *t = w->tables;
	uint32_t last = UINT32_MAX; // most bursts have one gateway, or one tunnel
	const struct tunnel *last_tunnel = NULL;
	uint8_t macs[2 * RTE_ETHER_ADDR_LEN] = {0}; // its and ours, as they stand in the frame
	struct rte_ether_addr mac;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint16_t index = pkt(m)->nexthop;
		const struct nexthop *nh = &t->nexthops[index < t->n_nexthops ? index : 0];
		struct addr dst;
		const struct addr *addr = &dst;
		const struct tunnel *tunnel = pkt(m)->flags & PKT_SEALED ? pkt(m)->tunnel : NULL;

		if (likely(index == last || (tunnel != NULL && tunnel == last_tunnel))) {
			addr = NULL; // mac is its
		} else if (nh->kind == NEXTHOP_GATEWAY) {
			addr = &nh->gateway;
		} else if (nh->kind == NEXTHOP_ONLINK) {
			destination_of(m, &dst);
		} else { // nothing else leads out of a port
			drop(w, m, DROP_route_none);
			continue;
		}
		if (unlikely(addr != NULL)) {
			struct neigh_key k = key_of(nh->port, addr);

			last = UINT32_MAX;
			last_tunnel = NULL;
			if (!lookup(w, t->neigh, &k, &mac) &&
			    !resolve_slow(w, nh->port, addr, m, &mac))
				continue;
			if (nh->kind == NEXTHOP_GATEWAY)
				last = index;
			last_tunnel = tunnel;
			memcpy(macs, &mac, sizeof(mac));
			memcpy(macs + sizeof(mac), &t->ports[nh->port].mac, sizeof(mac));
		}
		if (likely(t->ports[nh->port].vlan == 0 && rte_pktmbuf_headroom(m) >= RTE_ETHER_HDR_LEN)) {
			char *frame = rte_pktmbuf_prepend(m, RTE_ETHER_HDR_LEN);
			uint16_t type = pkt(m)->family == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) :
							      RTE_BE16(RTE_ETHER_TYPE_IPV6);

			memcpy(frame, macs, sizeof(macs));
			memcpy(frame + sizeof(macs), &type, sizeof(type));
		} else if (unlikely(!frame_packet(m, &mac, &t->ports[nh->port]))) {
			drop(w, m, DROP_no_headroom);
			continue;
		}
		pkts[kept++] = m;
	}
	return kept;
}

// ---- learning ----

static bool
is_on_link(const struct tport *tp, const struct addr *addr)
{
	if (addr->family == 6 && addr->b[0] == 0xfe && (addr->b[1] & 0xc0) == 0x80)
		return true;
	for (uint32_t i = 0; i < tp->n_addresses; i++)
		if (prefix_contains(&tp->addresses[i], addr))
			return !is_net_or_broadcast(tp, addr);
	return false;
}

// The state machine of RFC 4861 section 7.2.5 and appendix C, for ARP too.
// @return true when the MAC address is usable now and what waits can go.
static bool
entry_learn(const struct worker *w, struct neigh_set *s, struct neigh *e,
	    const struct rte_ether_addr *mac, unsigned int how)
{
	// Told but not asked: usable, but to be asked about at its first use.
	uint64_t confirmed = how & NEIGH_CONFIRM ? w->now : w->now - REACHABLE_S * w->hz;
	bool known = usable(e->state);
	bool other = mac != NULL && (!known || !rte_is_same_ether_addr(mac, &e->mac));

	if (e->state == NEIGH_STATIC || (!known && mac == NULL))
		return false;
	if (known && other && !(how & NEIGH_OVERRIDE)) {
		// Two answer for one address: keep the old one, but ask it soon.
		if (e->state == NEIGH_REACHABLE)
			e->confirmed = w->now - REACHABLE_S * w->hz;
		return false;
	}
	if (known && !other && !(how & NEIGH_CONFIRM))
		return false; // nothing new
	e->confirmed = confirmed;
	e->probes = 0;
	entry_set(s, e, NEIGH_REACHABLE, other ? mac : NULL);
	return true;
}

void
neigh_learn(struct worker *w, uint16_t port, const struct addr *addr,
	    const struct rte_ether_addr *mac, unsigned int how)
{
	const struct tport *tp = &w->tables->ports[port];
	struct neigh_table *t = w->tables->neigh;
	struct neigh_key k = key_of(port, addr);
	struct waiting evicted = { .n = 0 }, ready = { .n = 0 };
	struct rte_ether_addr to = { { 0 } };
	uint16_t tag;
	struct neigh_set *s = set_of(t, &k, &tag);

	if (mac != NULL && (!rte_is_valid_assigned_ether_addr(mac) ||
			    rte_is_same_ether_addr(mac, &tp->mac)))
		return;
	if (addr_is_multicast(addr) || addr_is_martian(addr) ||
	    tables_is_own(w->tables, addr->family, addr->b))
		return;
	// An entry outside the connected prefixes exists only because a route made
	// us ask for it; nobody else can make one.
	if (mac == NULL || !is_on_link(tp, addr))
		how &= ~(unsigned int)NEIGH_CREATE;

	rte_spinlock_lock(&s->lock);
	struct neigh *e = set_find(s, &k, tag);
	if (e == NULL && how & NEIGH_CREATE)
		e = set_claim(t, s, &k, tag, w, false, &evicted);
	if (e != NULL && entry_learn(w, s, e, mac, how)) {
		queue_take(t, e, &ready);
		to = e->mac;
	}
	rte_spinlock_unlock(&s->lock);

	waiting_drop(w, &evicted, DROP_neigh_table_full);
	waiting_send(w, port, &to, &ready);
}
