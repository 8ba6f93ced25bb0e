/* SPDX-License-Identifier: BSD-3-Clause */
// One trial: begin, watch, collect, judge.
#include "engine_int.h"

#include "clock.h"
#include "gateway.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LAG_S 0.004        // of sending that is made up for in a rush
#define LAG_SHARED_S 0.050 // on a core with others
#define RATE_ERROR 0.001   // of a trial that counts
#define FOREIGN 0.001      // of what was sent
#define FOREIGN_LEAST 10   // packets

static uint64_t
missed(const struct engine *e, unsigned int port)
{
	struct rte_eth_stats s = {0};

	rte_eth_stats_get(engine_end((struct engine *)(uintptr_t)e, port)->port.port_id, &s);
	return s.imissed + s.rx_nombuf;
}

static unsigned int
receiver_of(const struct engine *e, unsigned int stream)
{
	return e->one_port ? 0 : e->senders[stream].end == &e->ends[0] ? 1 : 0;
}

static bool
all_sent(const struct engine *e)
{
	for (unsigned int i = 0; i < e->n_streams; i++)
		if (atomic_load_explicit(&e->senders[i].running, memory_order_acquire))
			return false;
	return true;
}

static bool
all_received(const struct engine *e)
{
	for (unsigned int i = 0; i < e->n_streams; i++)
		if (atomic_load(&e->receivers[receiver_of(e, i)].received) < e->senders[i].sent)
			return false;
	return true;
}

void
engine_tick(struct engine *e)
{
	if (e->gateway != NULL)
		gateway_tick(e->gateway);
}

static void
wait_step(struct engine *e, bool *link)
{
	usleep(STEP_US);
	engine_tick(e);
	*link = *link && engine_links_up(e);
}

// Until every lcore has ended the round that is under way: then it knows what was set, and
// writes what it counts no more. One on a shared core may take a while.
static void
wait_rounds(struct engine *e)
{
	for (unsigned int i = 0; i < e->n_lanes; i++) {
		uint64_t now = atomic_load_explicit(&e->lanes[i].rounds, memory_order_acquire);

		while (atomic_load_explicit(&e->lanes[i].rounds, memory_order_acquire) < now + 2)
			usleep(100);
	}
}

static void
run_trial(struct engine *e, struct trial *t, void (*progress)(void *, double), void *arg)
{
	uint64_t start = rte_rdtsc();
	bool link = engine_links_up(e);

	for (unsigned int i = 0; i < e->n_streams; i++)
		atomic_store_explicit(&e->senders[i].running, true, memory_order_release);
	while (!all_sent(e)) {
		double elapsed;

		wait_step(e, &link);
		elapsed = (double)(rte_rdtsc() - start) / clock_hz();
		if (engine_stopping && t->why != TRIAL_STOPPED) {
			t->why = TRIAL_STOPPED;
			t->s = fmin(t->s, elapsed); // rates are of the time that there was
			for (unsigned int i = 0; i < e->n_streams; i++)
				e->senders[i].deadline = 0;
		}
		if (progress != NULL)
			progress(arg, elapsed);
	}
	for (double s = 0; s < e->args->settle && !engine_stopping && !all_received(e);
	     s += STEP_US / 1e6)
		wait_step(e, &link);
	wait_step(e, &link); // what is too much comes late
	if (engine_stopping)
		t->why = TRIAL_STOPPED;
	else if (!link)
		t->why = TRIAL_LINK;
}

static void
collect_stream(struct engine *e, unsigned int i, uint64_t missed_before, struct stream_result *out)
{
	const struct sender *s = &e->senders[i];
	struct receiver *r = &e->receivers[receiver_of(e, i)];

	receiver_end(r);
	*out = r->out;
	out->sent = s->sent;
	out->sent_bytes = s->sent_bytes;
	out->refused = s->refused;
	out->sending = (double)(s->last - s->start) / clock_hz();
	// Without signatures, so much is sure: no more came than was sent.
	if (out->received > s->sent) {
		out->duplicated += out->received - s->sent;
		out->received_bytes -= s->shape->n_sizes == 1 ?
					       (out->received - s->sent) * (s->shape->l3[0] + 14u) :
					       0;
		out->received = s->sent;
	}
	if (!s->shape->signed_ && s->shape->n_sizes > 1 && out->received > 0)
		out->received_bytes =
			(uint64_t)((double)out->received * (s->shape->mean_l3 + RTE_ETHER_HDR_LEN));
	out->lost = s->sent > out->received ? s->sent - out->received : 0;
	// A packet that came changed was not lost on the way.
	out->lost -= RTE_MIN(out->lost, out->corrupted);
	out->missed = missed(e, receiver_of(e, i)) - missed_before;
}

static double
lane_load(const struct engine *e, const void *task)
{
	for (unsigned int i = 0; i < e->n_lanes; i++) {
		const struct lane *l = &e->lanes[i];

		for (int k = 0; k < 2; k++)
			if ((const void *)l->sender[k] == task ||
			    (const void *)l->receiver[k] == task)
				return l->all > l->all0 ? (double)(l->busy - l->busy0) /
								  (double)(l->all - l->all0) :
							  0;
	}
	return 0;
}

// What makes a trial void, in the order in which one would mend it.
static void
judge_stream(struct trial *t, const struct stream_result *s, double total)
{
	if (t->why == TRIAL_GOOD && fabs((double)s->sent - total) > RATE_ERROR * total + 1) {
		t->why = TRIAL_GENERATOR;
		snprintf(t->remark, sizeof(t->remark),
			 "sent %.0f packets of %.0f; give sgw-bench cores of its own, "
			 "or a lower rate",
			 (double)s->sent, total);
	}
	if (t->why == TRIAL_GOOD && s->missed > 0) {
		t->why = TRIAL_RECEIVER;
		snprintf(t->remark, sizeof(t->remark),
			 "the receiving port missed %llu frames itself; give "
			 "sgw-bench more or faster cores",
			 (unsigned long long)s->missed);
	}
	if (t->why == TRIAL_GOOD && s->foreign > FOREIGN_LEAST &&
	    (double)s->foreign > FOREIGN * (double)s->sent) {
		t->why = TRIAL_FOREIGN;
		snprintf(t->remark, sizeof(t->remark),
			 "%llu frames of somebody else came; only the device under "
			 "test may be on the cable",
			 (unsigned long long)s->foreign);
	}
}

static void
remark_icmp(const struct engine *e, struct trial *t)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct receiver *r = &e->receivers[i];

		if (r->icmp_errors > 0 && t->remark[0] == '\0')
			snprintf(t->remark, sizeof(t->remark),
				 "the device answered %llu times with an ICMP error, type %u "
				 "code %u: it refuses this traffic",
				 (unsigned long long)r->icmp_errors, r->icmp_type, r->icmp_code);
	}
}

void
engine_peek(const struct engine *e, uint64_t *sent, uint64_t *received)
{
	*sent = *received = 0;
	for (unsigned int i = 0; i < e->n_streams; i++) {
		*sent += e->senders[i].sent;
		*received += atomic_load_explicit(&e->receivers[receiver_of(e, i)].received,
						  memory_order_relaxed);
	}
}

void
engine_slow_down(struct engine *e, double pps)
{
	for (unsigned int i = 0; i < e->n_streams; i++)
		atomic_store(&e->senders[i].slower, pps / clock_hz());
}

void
engine_trial(struct engine *e, double pps, double seconds, struct trial *out,
	     void (*progress)(void *arg, double elapsed), void *arg)
{
	uint64_t before[2] = {missed(e, 0), missed(e, 1)};
	double lag = e->args->shared_cores ? LAG_SHARED_S : LAG_S;

	memset(out, 0, sizeof(*out));
	out->pps = pps;
	out->s = seconds;
	out->n_streams = e->n_streams;
	e->key = e->key * UINT64_C(6364136223846793005) + 1442695040888963407;
	for (unsigned int i = 0; i < (e->one_port ? 1u : 2u); i++) {
		receiver_begin(&e->receivers[i], e->key);
		end_announce(&e->ends[i], e->pool);
	}
	for (unsigned int i = 0; i < e->n_lanes; i++) {
		e->lanes[i].busy0 = e->lanes[i].busy;
		e->lanes[i].all0 = e->lanes[i].all;
	}
	for (unsigned int i = 0; i < 2; i++)
		atomic_store_explicit(&e->receivers[i].counting, true, memory_order_release);
	for (unsigned int i = 0; i < e->n_streams; i++)
		sender_begin(&e->senders[i], pps, seconds, lag, e->key);
	run_trial(e, out, progress, arg);
	for (unsigned int i = 0; i < 2; i++)
		atomic_store_explicit(&e->receivers[i].counting, false, memory_order_release);
	wait_rounds(e);
	for (unsigned int i = 0; i < e->n_streams; i++) {
		collect_stream(e, i, before[receiver_of(e, i)], &out->streams[i]);
		out->streams[i].tx_load = lane_load(e, &e->senders[i]);
		out->streams[i].rx_load = lane_load(e, &e->receivers[receiver_of(e, i)]);
		judge_stream(out, &out->streams[i], (double)e->senders[i].total);
	}
	if (out->why == TRIAL_STOPPED)
		snprintf(out->remark, sizeof(out->remark), "stopped by a signal");
	if (out->why == TRIAL_LINK)
		snprintf(out->remark, sizeof(out->remark),
			 "a link went down in the trial; look at the cable and "
			 "the device");
	if (out->why == TRIAL_STOPPED)
		snprintf(out->remark, sizeof(out->remark), "stopped by a signal after %.1f s",
			 out->s);
	remark_icmp(e, out);
}
