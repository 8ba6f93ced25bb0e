/* SPDX-License-Identifier: BSD-3-Clause */
// Making, ticking and looking at the neighbour table.
#include "neigh_table.h"

#include "stage.h"
#include "tables.h"

#include <rte_cycles.h>
#include <rte_random.h>

#include <errno.h>
#include <stdlib.h>

struct neigh_table *
neigh_create(uint32_t queued_max)
{
	struct neigh_table *t = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*t));

	if (t == NULL)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->seed = (uint32_t)rte_rand();
	t->queued_max = RTE_MIN(queued_max, (uint32_t)NEIGH_QUEUED_MAX);
	for (unsigned int i = 0; i < NEIGH_SETS; i++) {
		rte_spinlock_init(&t->sets[i].lock);
		rte_seqcount_init(&t->sets[i].seq);
	}
	return t;
}

void
neigh_free(struct neigh_table *t)
{
	free(t);
}

int
neigh_add_static(struct neigh_table *t, uint16_t port, const struct addr *addr,
		 const struct mac *mac, struct err *err)
{
	struct neigh_key k = key_of(port, addr);
	struct rte_ether_addr ether;
	char text[ADDR_STRLEN], mac_text[MAC_STRLEN];
	uint16_t tag;
	struct neigh_set *s = set_of(t, &k, &tag);

	memcpy(&ether, mac->b, sizeof(ether));
	if (!rte_is_valid_assigned_ether_addr(&ether))
		return err_set(err, EXIT_CONFIG, -EINVAL,
			       "neighbour %s: %s is no MAC address of a single host",
			       addr_format(addr, text), mac_format(mac, mac_text));
	rte_spinlock_lock(&s->lock);
	struct neigh *e = set_find(s, &k, tag);
	for (unsigned int i = 0; e == NULL && i < NEIGH_WAYS; i++)
		if (s->ways[i].state == NEIGH_FREE)
			e = &s->ways[i];
	if (e != NULL) {
		rte_seqcount_write_begin(&s->seq);
		s->tags[e - s->ways] = tag;
		e->key = k;
		e->mac = ether;
		e->state = NEIGH_STATIC; // what waits for it goes at its next tick
		rte_seqcount_write_end(&s->seq);
	}
	rte_spinlock_unlock(&s->lock);
	if (e == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOSPC,
			       "neighbour %s: no room, its %d places in the table are taken by chance; "
			       "start again, or leave out static neighbours that answer by themselves",
			       addr_format(addr, text), NEIGH_WAYS);
	return 0;
}

const char *
neigh_state_name(enum neigh_state state)
{
	static const char *const names[] = {
		[NEIGH_FREE] = "free",           [NEIGH_INCOMPLETE] = "incomplete",
		[NEIGH_REACHABLE] = "reachable", [NEIGH_PROBE] = "probe",
		[NEIGH_FAILED] = "failed",       [NEIGH_STATIC] = "static",
	};

	return names[state];
}

void
neigh_walk(const struct neigh_table *t, void (*visit)(const struct neigh_info *info, void *arg),
	   void *arg)
{
	for (unsigned int i = 0; i < NEIGH_SETS * NEIGH_WAYS; i++) {
		const struct neigh_set *s = &t->sets[i / NEIGH_WAYS];
		const struct neigh *e = &s->ways[i % NEIGH_WAYS];
		struct neigh_info info;
		uint32_t sn;

		// Not the lock: a worker would have to wait for us if we were
		// scheduled away. Changes are a few stores long.
		do {
			sn = rte_seqcount_read_begin(&s->seq);
			key_addr(&e->key, &info.addr);
			info.port = (uint16_t)(e->key.w[0] >> 8);
			memcpy(info.mac.b, &e->mac, sizeof(info.mac.b));
			info.state = e->state;
			info.queued = e->n_queue;
			info.confirmed_tsc = e->confirmed;
			info.used_tsc = __atomic_load_n(&e->used, __ATOMIC_RELAXED);
		} while (rte_seqcount_read_retry(&s->seq, sn));
		if (info.state != NEIGH_FREE)
			visit(&info, arg);
	}
}

void
neigh_drain(struct worker *w, struct neigh_table *t)
{
	for (unsigned int i = 0; i < NEIGH_SETS * NEIGH_WAYS; i++) {
		struct neigh_set *s = &t->sets[i / NEIGH_WAYS];
		struct waiting q;

		rte_spinlock_lock(&s->lock);
		queue_take(t, &s->ways[i % NEIGH_WAYS], &q);
		rte_spinlock_unlock(&s->lock);
		waiting_drop(w, &q, DROP_stopping);
	}
}

// ---- ticks ----

// What is to be done about one entry, decided under the lock, done after it.
struct todo {
	bool ask;                  //
	bool ask_all;              // not only the one who had the address
	bool failed;               // q is to be dropped, else to be sent
	struct rte_ether_addr mac; //
	struct waiting q;
};

static void
tick_reachable(const struct worker *w, struct neigh_set *s, struct neigh *e, struct todo *todo)
{
	uint64_t used = __atomic_load_n(&e->used, __ATOMIC_RELAXED);
	uint64_t confirmed_age = age(w->now, e->confirmed);

	if (confirmed_age < REACHABLE_S * w->hz)
		return;
	if (used != 0 && (int64_t)(used - e->confirmed) > 0 &&
	    age(w->now, used) < REACHABLE_S * w->hz) {
		entry_set(s, e, NEIGH_PROBE, NULL);
		e->probes = 1;
		e->timer = w->now;
		todo->ask = true;
	} else if (confirmed_age > IDLE_S * w->hz &&
		   (used == 0 || age(w->now, used) > IDLE_S * w->hz)) {
		entry_set(s, e, NEIGH_FREE, NULL);
	}
}

// INCOMPLETE and PROBE: the last question was not answered in time.
static void
tick_unanswered(const struct worker *w, struct neigh_table *t, struct neigh_set *s,
		struct neigh *e, struct todo *todo)
{
	if (age(w->now, e->timer) < RETRY_S * w->hz)
		return;
	e->timer = w->now;
	if (e->probes < PROBES) {
		e->probes++;
	} else if (e->state == NEIGH_PROBE) {
		// Perhaps the address has moved to another machine: ask all.
		entry_set(s, e, NEIGH_INCOMPLETE, NULL);
		e->probes = 1;
	} else {
		entry_set(s, e, NEIGH_FAILED, NULL);
		queue_take(t, e, &todo->q);
		todo->failed = true;
		return;
	}
	todo->ask = true;
	todo->ask_all = e->state == NEIGH_INCOMPLETE;
}

static void
tick_entry(struct worker *w, struct neigh_table *t, struct neigh_set *s, struct neigh *e)
{
	struct todo todo = { .ask = false };
	struct addr addr;
	uint16_t port;

	rte_spinlock_lock(&s->lock);
	switch ((enum neigh_state)e->state) {
	case NEIGH_FREE:
	case NEIGH_STATIC:
		break;
	case NEIGH_REACHABLE:
		tick_reachable(w, s, e, &todo);
		break;
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		tick_unanswered(w, t, s, e, &todo);
		break;
	case NEIGH_FAILED:
		if (age(w->now, e->timer) > FAILED_S * w->hz)
			entry_set(s, e, NEIGH_FREE, NULL);
		break;
	}
	if (usable(e->state) && e->n_queue != 0)
		queue_take(t, e, &todo.q);
	todo.mac = e->mac;
	key_addr(&e->key, &addr);
	port = (uint16_t)(e->key.w[0] >> 8);
	rte_spinlock_unlock(&s->lock);

	if (todo.ask)
		neigh_ask(w, port, &addr, todo.ask_all ? NULL : &todo.mac,
			  w->tables->ports[port].port_id);
	if (todo.failed)
		waiting_drop(w, &todo.q, DROP_neigh_failed);
	else
		waiting_send(w, port, &todo.mac, &todo.q);
}

void
neigh_tick(struct worker *w)
{
	struct neigh_table *t = w->tables->neigh;
	uint64_t step = w->hz * TICK_ROUND_MS / 1000 / NEIGH_SETS + 1; // TSC ticks a set
	uint64_t due = age(w->now, t->tick_last) / step;

	if (due >= NEIGH_SETS) { // slept, or the first time: the whole table once
		due = NEIGH_SETS;
		t->tick_last = w->now;
	} else {
		t->tick_last += due * step;
	}
	for (uint64_t i = 0; i < due; i++) {
		struct neigh_set *s = &t->sets[t->tick_next++ % NEIGH_SETS];

		for (unsigned int j = 0; j < NEIGH_WAYS; j++)
			if (s->tags[j] != 0)
				tick_entry(w, t, s, &s->ways[j]);
	}
}
