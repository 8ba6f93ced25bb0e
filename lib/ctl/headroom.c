/* SPDX-License-Identifier: BSD-3-Clause */
#include "headroom.h"

#include <pthread.h>
#include <string.h>

// What a worker had counted at a tick.
struct sample {
	uint64_t cycles;
	uint64_t busy;
	uint64_t turn;
	uint64_t rounds; // with packets
	uint64_t came;
	uint64_t refused; // of these, not handed over: nearly free, no measure of what one costs
	uint64_t packets; // of these, worked on; only where two ticks were compared
	uint64_t bytes;   // of those that came
};

struct tick {
	uint64_t at; // TSC
	struct sample of[WORKER_MAX];
};

// Rounds of so many packets are full; a full ring gives BURST. In a window with as many of
// them as FULL_ROUNDS the caches are as warm as they get.
#define FULL_BURST (BURST - BURST / 8)
#define FULL_ROUNDS 100

// The lock is between the control thread and who asks; no worker ever takes it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tick ticks[HEADROOM_TICKS + 1]; // both ends of a window
static uint64_t n_ticks;                      // since the start
static uint64_t tsc_hz;
static struct sample full[WORKER_MAX]; // what the last window with full bursts counted

void
headroom_start(uint64_t hz)
{
	pthread_mutex_lock(&lock);
	tsc_hz = hz;
	n_ticks = 0;
	memset(full, 0, sizeof(full));
	pthread_mutex_unlock(&lock);
}

// A worker that counts meanwhile is a burst apart in what is read first and last.
static struct sample
sample_take(const struct worker *w)
{
	struct sample s = {
		.cycles = w->cycles, .busy = w->busy_cycles, .turn = w->turn_cycles,
		.rounds = w->busy_loops,
	};

	for (unsigned int p = 0; p < WORKER_PORTS; p++) {
		s.came += w->ports[p].rx_packets;
		s.refused += w->ports[p].ended[DROP_steer_full];
		s.bytes += w->ports[p].rx_bytes;
	}
	return s;
}

// The two ends of the window; at least two ticks were taken.
static const struct tick *
window_end(void)
{
	return &ticks[(n_ticks - 1) % RTE_DIM(ticks)];
}

static const struct tick *
window_begin(void)
{
	uint64_t back = RTE_MIN(n_ticks - 1, (uint64_t)HEADROOM_TICKS);

	return &ticks[(n_ticks - 1 - back) % RTE_DIM(ticks)];
}

// What a worker has counted between two ticks.
static struct sample
grown(const struct tick *a, const struct tick *b, unsigned int i)
{
	const struct sample *x = &a->of[i], *y = &b->of[i];
	struct sample s = {
		.cycles = y->cycles - x->cycles, .busy = y->busy - x->busy, .turn = y->turn - x->turn,
		.rounds = y->rounds - x->rounds, .came = y->came - x->came,
		.refused = y->refused - x->refused, .bytes = y->bytes - x->bytes,
	};

	s.packets = s.came - RTE_MIN(s.refused, s.came);
	return s;
}

static void
remember_full(void)
{
	for (unsigned int i = 0; i < n_workers; i++) {
		struct sample s = grown(window_begin(), window_end(), i);

		if (s.rounds >= FULL_ROUNDS && s.packets >= s.rounds * FULL_BURST)
			full[i] = s;
	}
}

void
headroom_tick(uint64_t now)
{
	struct tick *t;

	pthread_mutex_lock(&lock);
	t = &ticks[n_ticks++ % RTE_DIM(ticks)];
	t->at = now;
	for (unsigned int i = 0; i < n_workers; i++)
		t->of[i] = sample_take(workers[i]);
	if (n_ticks >= 2)
		remember_full();
	pthread_mutex_unlock(&lock);
}

// a × b ÷ c; 0 when there is nothing to divide by. The product of two counters of a second
// does not fit 64 bits.
static uint64_t
share(uint64_t a, uint64_t b, uint64_t c)
{
	return c == 0 ? 0 : (uint64_t)((unsigned __int128)a * b / c);
}

// Are packets about as long as when bursts were full? Then they are taken for the same.
static bool
is_alike(const struct sample *s, const struct sample *f)
{
	uint64_t now = share(s->bytes, 1, s->came), then = share(f->bytes, 1, f->came);

	return f->packets != 0 && now * 8 >= then * 7 && now * 8 <= then * 9;
}

// Time is the worker's own: its cycles and its packets end with the same round, within one.
static void
worker_read(const struct sample *s, const struct sample *f, struct headroom_worker *out)
{
	uint64_t best, could;

	out->packets_s = share(s->packets, tsc_hz, s->cycles);
	out->packet_cycles = share(s->busy, 1, s->packets);
	out->load = (uint32_t)share(s->busy, 1000, s->cycles);
	out->turn = (uint32_t)share(s->turn, 1000, s->cycles);
	out->burst = (uint32_t)share(s->packets, 1000, s->rounds * BURST);
	out->limit_s = share(s->packets, tsc_hz, s->busy);
	out->headroom = share(s->cycles, 1000, s->busy);
	out->at_least = s->packets < s->rounds * FULL_BURST;
	if (s->packets == 0 || !is_alike(s, f))
		return;
	out->full_cycles = share(f->busy, 1, f->packets);
	best = share(f->packets, tsc_hz, f->busy);
	out->at_least = false;
	if (best <= out->limit_s)
		return;
	out->limit_s = best;
	could = share(f->packets, s->cycles, f->busy); // in the window
	out->headroom = share(could, 1000, s->packets);
}

// Every worker has its say; the one with the least headroom decides.
static void
window_read(const struct tick *a, const struct tick *b, struct headroom *out)
{
	uint64_t came = 0;

	out->state = HEADROOM_MEASURED;
	for (unsigned int i = 0; i < n_workers; i++) {
		struct headroom_worker *w = &out->workers[i];
		struct sample s = grown(a, b, i);

		worker_read(&s, &full[i], w);
		came += s.came;
		out->packets_s += w->packets_s;
		if (w->headroom != 0 && (out->headroom == 0 || w->headroom < out->headroom)) {
			out->headroom = w->headroom;
			out->nearest = i;
		}
		// Who hangs in a round counts no cycles, and would look idle.
		if (s.cycles < (b->at - a->at) / 2)
			out->state = HEADROOM_STALLED;
	}
	if (out->state == HEADROOM_MEASURED && came == 0)
		out->state = HEADROOM_SILENT;
	if (out->state != HEADROOM_MEASURED)
		out->headroom = 0;
	out->limit_s = share(out->packets_s, out->headroom, 1000);
}

void
headroom_read(uint64_t now, struct headroom *out)
{
	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&lock);
	if (n_ticks >= 2) {
		const struct tick *a = window_begin(), *b = window_end();

		out->window_ms = share(b->at - a->at, 1000, tsc_hz);
		out->age_ms = now > b->at ? share(now - b->at, 1000, tsc_hz) : 0;
		window_read(a, b, out);
	}
	pthread_mutex_unlock(&lock);
}

const char *
headroom_state_name(enum headroom_state state)
{
	static const char *const names[] = {
		[HEADROOM_STARTING] = "starting",
		[HEADROOM_STALLED] = "stalled",
		[HEADROOM_SILENT] = "no traffic",
		[HEADROOM_MEASURED] = "measured",
	};

	return names[state];
}
