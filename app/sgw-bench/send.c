/* SPDX-License-Identifier: BSD-3-Clause */
#include "send.h"

#include "clock.h"
#include "gateway.h"

#include <rte_cycles.h>
#include <rte_ether.h>

#include <math.h>

void
sender_begin(struct sender *s, double pps, double seconds, double lag_s, uint64_t key)
{
	double hz = clock_hz();

	s->key = key;
	s->per_tick = pps / hz;
	s->total = (uint64_t)llround(pps * seconds);
	s->lag = (uint64_t)(pps * lag_s) + SEND_BURST;
	s->forgiven = s->made = s->sent = s->sent_bytes = s->refused = 0;
	s->flow = 0;
	s->seq = 0;
	s->at = s->n = 0;
	atomic_store(&s->slower, 0);
	s->start = s->last = rte_rdtsc() + (uint64_t)(hz / 1000);
	s->deadline = s->start + (uint64_t)(hz * seconds) + (uint64_t)(hz / 1000);
}

// Packets from the start on that ought to be under way at this moment.
static uint64_t
due(const struct sender *s, uint64_t now)
{
	uint64_t n;

	if ((int64_t)(now - s->start) < 0)
		return 0;
	n = (uint64_t)((double)(now - s->start) * s->per_tick) + 1;
	return n < s->total ? n : s->total;
}

static bool
write_packet(struct sender *s, struct rte_mbuf *m, uint32_t time)
{
	uint16_t l3 = shape_l3(s->shape, s->flow, s->seq);
	char *ip = rte_pktmbuf_append(m, l3);

	if (ip == NULL)
		return false;
	shape_write(s->shape, (uint8_t *)ip, s->flow, s->seq, time, s->key);
	return true;
}

static void
next_flow(struct sender *s)
{
	s->made++;
	if (++s->flow == s->shape->n_flows) {
		s->flow = 0;
		s->seq++;
	}
}

// Sealed, the outer header has its own family; in clear, the shape's.
static void
frame_all(struct sender *s, uint16_t n)
{
	s->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = s->pending[i];
		uint8_t family =
			s->seal == NULL ? s->shape->family : *rte_pktmbuf_mtod(m, uint8_t *) >> 4;

		if (end_frame(s->end, m, family))
			s->pending[s->n++] = m;
		else
			rte_pktmbuf_free(m);
	}
}

static void
make(struct sender *s, uint16_t n, uint64_t now)
{
	const struct tunnel *tunnels[SEND_BURST];
	uint32_t time = (uint32_t)(now >> TIME_SHIFT);

	s->at = s->n = 0;
	if (rte_pktmbuf_alloc_bulk(s->pool, s->pending, n) != 0)
		return; // the port gives some back
	for (uint16_t i = 0; i < n; i++) {
		write_packet(s, s->pending[i],
			     time); // shape_fill() and the pool have the same limit
		s->lens[i] = (uint16_t)(s->pending[i]->pkt_len + RTE_ETHER_HDR_LEN);
		if (s->seal != NULL)
			tunnels[i] = s->tunnels[s->flow];
		next_flow(s);
	}
	if (s->seal != NULL)
		n = gateway_seal(s->seal, s->pending, tunnels, s->shape->family, n);
	frame_all(s, n);
}

// A NIC that is full is our limit. A ring that is full is the receive queue of the one behind
// it: on a wire the frame would be lost there.
static bool
push(struct sender *s)
{
	struct end *e = s->end;
	uint16_t n;

	n = end_send(e, s->pending + s->at, (uint16_t)(s->n - s->at));
	for (uint16_t i = n; e->ring && s->at + i < s->n; i++) {
		rte_pktmbuf_free(s->pending[s->at + i]);
		s->refused++;
	}
	n = e->ring ? (uint16_t)(s->n - s->at) : n;
	if (n == 0)
		return false;
	for (uint16_t i = 0; i < n; i++)
		s->sent_bytes += s->lens[s->at + i];
	s->at = (uint16_t)(s->at + n);
	s->sent += n;
	s->last = rte_rdtsc();
	return true;
}

static void
finish(struct sender *s)
{
	for (; s->at < s->n; s->at++)
		rte_pktmbuf_free(s->pending[s->at]);
	atomic_store_explicit(&s->running, false, memory_order_release);
}

// The same number of packets is due at this moment, but fewer after it.
static void
slow_down(struct sender *s, uint64_t now)
{
	double per_tick = atomic_exchange(&s->slower, 0);
	uint64_t n = s->made + s->forgiven;

	s->per_tick = per_tick;
	s->start = now - (uint64_t)((double)n / per_tick);
	s->total = n + (uint64_t)((double)(int64_t)(s->deadline - now) * per_tick);
}

bool
sender_poll(struct sender *s)
{
	uint64_t now, n;

	if (!atomic_load_explicit(&s->running, memory_order_acquire))
		return false;
	now = rte_rdtsc();
	if (unlikely(atomic_load_explicit(&s->slower, memory_order_relaxed) > 0))
		slow_down(s, now);
	if (s->at < s->n)
		return push(s) || (now > s->deadline && (finish(s), true));
	n = due(s, now) - s->made - s->forgiven;
	if ((int64_t)n <= 0) {
		if (s->made + s->forgiven == s->total || (int64_t)(now - s->deadline) > 0)
			finish(s);
		return false;
	}
	if ((int64_t)(now - s->deadline) > 0) {
		finish(s);
		return false;
	}
	if (n > s->lag) { // the device gets no rush that was not asked for
		s->forgiven += n - s->lag;
		n = s->lag;
	}
	make(s, (uint16_t)RTE_MIN(n, (uint64_t)SEND_BURST), now);
	if (s->at < s->n)
		push(s);
	return true;
}

uint64_t
sender_pause(const struct sender *s)
{
	uint64_t now = rte_rdtsc(), at;

	if (!atomic_load_explicit(&s->running, memory_order_relaxed))
		return UINT64_MAX;
	if (s->at < s->n)
		return 0;
	at = s->start + (uint64_t)((double)(s->made + s->forgiven) / s->per_tick);
	return at > now ? at - now : 0;
}
