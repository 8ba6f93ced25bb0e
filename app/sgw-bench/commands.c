/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"
#include "search.h"

#include <rte_common.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOSS_STEPS 10
#define BURST_S 2.0          // RFC 2544 section 26.4: the longest that is tried
#define BURST_LEAST_S 0.0002 // and the shortest
#define OVERLOAD 1.1         // RFC 2544 section 26.5
#define OVERLOAD_S 60.0
#define OVERLOAD_QUICK_S 3.0
#define STILL 0.9 // of the time at half the load: who loses then does so to the end

// What --rate says, packets a second of a stream; without it the ceiling.
static double
rate_wanted(const struct run *r)
{
	const struct args *a = r->args;

	if (!a->has_rate)
		return ceiling_of(r, false);
	return a->rate_percent ? ceiling_of(r, false) * a->rate / 100 : pps_of(r, a->rate);
}

static void
print_stream(const struct run *r, const struct stream_result *s, uint32_t i)
{
	const struct hist *h = &s->latency;

	printf("stream %u: sent %llu, received %llu, lost %llu (%.4f %%), duplicated %llu, reordered %llu "
	       "(extent %u), corrupted %llu, foreign %llu\n",
	       i + 1, (unsigned long long)s->sent, (unsigned long long)s->received,
	       (unsigned long long)s->lost,
	       s->sent > 0 ? 100.0 * (double)s->lost / (double)s->sent : 0,
	       (unsigned long long)s->duplicated, (unsigned long long)s->reordered, s->extent,
	       (unsigned long long)s->corrupted, (unsigned long long)s->foreign);
	if (r->args->esp_side != 0)
		printf("          ESP that did not open %llu, replayed %llu, in clear where ESP was due %llu\n",
		       (unsigned long long)s->esp_bad, (unsigned long long)s->esp_replayed,
		       (unsigned long long)s->in_clear);
	if (h->n > 0)
		printf("          latency µs: p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f\n",
		       hist_quantile(h, 0.5) / 1e3, hist_quantile(h, 0.99) / 1e3,
		       hist_quantile(h, 0.999) / 1e3, (double)h->max / 1e3);
	printf("          lcores busy: sender %.0f %%, receiver %.0f %%\n", 100 * s->tx_load,
	       100 * s->rx_load);
}

static void
print_trial(const struct run *r)
{
	const struct trial *t = &r->trial;

	printf("trial: %.1f Mb/s, %.0f packets a second asked for, %.1f s\n", mbps_of(r, t->pps),
	       t->pps, t->s);
	for (uint32_t i = 0; i < t->n_streams; i++)
		print_stream(r, &t->streams[i], i);
	if (t->why != TRIAL_GOOD || t->remark[0] != '\0')
		printf("%s%s: %s\n", t->why != TRIAL_GOOD ? "void, " : "",
		       t->why != TRIAL_GOOD ? trial_void_names[t->why] : "note", t->remark);
}

// One trial stands for the figure.
static void
found_trial(struct run *r, const char *mode, enum try_end end)
{
	struct figure f = run_figure(r, mode);

	f.pps = rate_of(&r->trial);
	f.loss = loss_of(&r->trial);
	f.by_load = f.loss == 0;
	f.most_mbps = mbps_of(r, f.pps);
	if (end != TRY_GOOD) {
		f.inconclusive = true;
		snprintf(f.remark, sizeof(f.remark), "void: %s", r->trial.remark);
	}
	run_found(r, &f);
}

enum try_end
run_trial_once(struct run *r)
{
	enum try_end end = TRY_GOOD;

	r->mode = "trial";
	for (uint32_t i = 0; i < r->args->repeats && end != TRY_STOPPED; i++) {
		end = run_try(r, rate_wanted(r), r->args->seconds);
		print_trial(r);
		found_trial(r, "trial", end);
	}
	return end;
}

enum try_end
run_loss(struct run *r)
{
	struct figure f = run_figure(r, "loss");
	double top = rate_wanted(r);
	enum try_end end = TRY_GOOD, worst = TRY_GOOD;
	bool lost = false;

	r->mode = "loss";
	printf("%10s %10s %10s %12s\n", "% of rate", "load Mb/s", "rate Mb/s", "loss %");
	for (int i = 1; i <= LOSS_STEPS && end != TRY_STOPPED; i++) {
		end = run_try(r, top * i / LOSS_STEPS, r->args->seconds);
		printf("%10d %10.1f %10.1f %12.5f%s%s\n", 100 * i / LOSS_STEPS,
		       mbps_of(r, r->trial.pps), mbps_of(r, rate_of(&r->trial)),
		       100 * loss_of(&r->trial), end == TRY_VOID ? "  void: " : "",
		       end == TRY_VOID ? r->trial.remark : "");
		fflush(stdout);
		if (end == TRY_GOOD) {
			f.most_mbps = fmax(f.most_mbps, mbps_of(r, rate_of(&r->trial)));
			lost |= loss_of(&r->trial) > 0;
			if (!lost)
				f.pps = rate_of(&r->trial);
		} else {
			worst = end;
			f.inconclusive |= !lost; // here it might have
		}
	}
	f.by_load = !lost;
	if (lost) // below what the generator can
		r->generator_limited = false;
	run_found(r, &f);
	return worst;
}

// ---------------------------------------------------------------- soak

struct soak {
	struct run *r;
	double next;
	uint64_t sent, received;
};

static void
soak_line(void *arg, double elapsed)
{
	struct soak *s = arg;
	uint64_t sent, received;

	run_meters(s->r, elapsed);
	if (elapsed < s->next)
		return;
	s->next += s->r->args->interval;
	engine_peek(s->r->engine, &sent, &received);
	// What is under way counts as lost in one line and as received in the next.
	printf("%8.0f s: sent %llu, received %llu, missing up to now %lld\n", elapsed,
	       (unsigned long long)(sent - s->sent), (unsigned long long)(received - s->received),
	       (long long)(sent - received));
	fflush(stdout);
	s->sent = sent;
	s->received = received;
}

enum try_end
run_soak(struct run *r)
{
	struct soak s = {.r = r, .next = r->args->interval};
	struct point p = {.mode = "soak", .figure = result_next(r->result), .trial = &r->trial};
	enum try_end end;

	r->mode = "soak";
	r->expected = r->args->seconds;
	r->metered = false;
	engine_trial(r->engine, rate_wanted(r), r->args->seconds, &r->trial, soak_line, &s);
	p.load_mbps = mbps_of(r, r->trial.pps);
	p.rate_mbps = mbps_of(r, rate_of(&r->trial));
	p.loss = loss_of(&r->trial);
	p.s = r->trial.s;
	result_trial(r->result, &p);
	r->n_trials = 1;
	end = r->trial.why == TRIAL_GOOD    ? TRY_GOOD :
	      r->trial.why == TRIAL_STOPPED ? TRY_STOPPED :
					      TRY_VOID;
	print_trial(r);
	found_trial(r, "soak", end);
	return end;
}

// ---------------------------------------------------------------- back-to-back

// The longest burst without loss, to 1 %. @return s, 0: none
static double
longest_burst(struct run *r, double pps, enum try_end *end)
{
	double good = 0, bad = BURST_S;

	*end = run_try(r, pps, BURST_S);
	if (*end != TRY_GOOD || loss_of(&r->trial) == 0)
		return *end == TRY_GOOD ? BURST_S : 0;
	while (bad - good > 0.01 * bad && bad > BURST_LEAST_S && *end == TRY_GOOD) {
		double s = (good + bad) / 2;

		*end = run_try(r, pps, s);
		if (*end == TRY_GOOD && loss_of(&r->trial) == 0)
			good = s;
		else
			bad = s;
	}
	return good;
}

enum try_end
run_back_to_back(struct run *r)
{
	struct figure f = run_figure(r, "back-to-back");
	double pps = ceiling_of(r, true), bursts[32];
	enum try_end end = TRY_GOOD;
	uint32_t n = 0;

	r->mode = "back-to-back";
	while (n < r->args->repeats && end == TRY_GOOD) {
		double s = longest_burst(r, pps, &end);

		if (end == TRY_GOOD)
			bursts[n++] = s;
	}
	if (n == 0) {
		found_trial(r, "back-to-back", end);
		return end;
	}
	f.pps = median(bursts, n) > 0 ? pps : 0;
	snprintf(f.remark, sizeof(f.remark), "longest burst at line rate: %.0f frames, %.2f ms%s",
		 median(bursts, n) * pps, median(bursts, n) * 1e3,
		 median(bursts, n) == BURST_S ? "; as long as one was tried (RFC 2544 26.4)" : "");
	run_found(r, &f);
	return end;
}

// ---------------------------------------------------------------- latency

enum try_end
run_latency(struct run *r)
{
	static const double parts[] = {0.1, 0.5, 0.9};
	double ndr = 0;
	enum try_end end = TRY_GOOD;

	if (r->args->has_rate)
		ndr = rate_wanted(r);
	else
		end = run_mlr(r, CMD_NDR, &ndr);
	for (size_t i = 0; i < RTE_DIM(parts) && end == TRY_GOOD && ndr > 0; i++) {
		char mode[16];

		r->mode = "latency";
		end = run_try(r, ndr * parts[i], r->args->seconds);
		snprintf(mode, sizeof(mode), "latency %.0f %%", parts[i] * 100);
		found_trial(r, mode, end);
	}
	return end;
}

// ---------------------------------------------------------------- recovery

#define SAMPLES 65536

struct recovery {
	struct run *r;
	double overload_s, slow_pps, slowed; // s; packets a second; when, 0: not yet
	uint32_t n;
	struct {
		double t;
		uint64_t missing;
	} samples[SAMPLES];
};

static void
recovery_sample(void *arg, double elapsed)
{
	struct recovery *v = arg;
	uint64_t sent, received;

	run_meters(v->r, elapsed);
	if (elapsed >= v->overload_s && v->slowed == 0) {
		engine_slow_down(v->r->engine, v->slow_pps);
		v->slowed = elapsed;
	}
	if (v->slowed == 0 || v->n == SAMPLES)
		return;
	engine_peek(v->r->engine, &sent, &received);
	v->samples[v->n].t = elapsed;
	v->samples[v->n++].missing = sent - received;
}

// All that was lost in the end was missing already: from then on nothing more was lost.
static double
recovered_after(const struct recovery *v, uint64_t lost)
{
	double last = v->slowed;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->samples[i].missing < lost)
			last = v->samples[i].t;
	return last - v->slowed;
}

enum try_end
run_recovery(struct run *r)
{
	static struct recovery v;
	const struct args *a = r->args;
	struct figure f = run_figure(r, "recovery");
	struct point p = {.mode = "recovery", .figure = result_next(r->result), .trial = &r->trial};
	double rate = rate_wanted(r), half, after;
	uint64_t lost = 0;

	v = (struct recovery){.r = r, .overload_s = a->quick ? OVERLOAD_QUICK_S : OVERLOAD_S};
	v.slow_pps = rate / 2;
	half = v.overload_s / 2;
	r->mode = "recovery";
	r->expected = v.overload_s; // half of it is under load
	r->metered = false;
	engine_trial(r->engine, fmin(rate * OVERLOAD, ceiling_of(r, true)), v.overload_s + half,
		     &r->trial, recovery_sample, &v);
	p.load_mbps = mbps_of(r, r->trial.pps);
	p.rate_mbps = mbps_of(r, rate_of(&r->trial));
	p.loss = loss_of(&r->trial);
	p.s = r->trial.s;
	result_trial(r->result, &p);
	r->n_trials = 1;
	for (uint32_t i = 0; i < r->trial.n_streams; i++) // all that the samples miss
		lost += r->trial.streams[i].lost + r->trial.streams[i].corrupted;
	after = recovered_after(&v, lost);
	f.pps = v.slow_pps;
	f.by_load = true;
	f.loss = p.loss;
	f.inconclusive = r->trial.why != TRIAL_GOOD;
	if (f.inconclusive)
		snprintf(f.remark, sizeof(f.remark), "void: %s", r->trial.remark);
	else if (lost == 0)
		snprintf(f.remark, sizeof(f.remark),
			 "nothing was lost in the overload either; give a larger --rate");
	else if (after > STILL * half)
		snprintf(f.remark, sizeof(f.remark),
			 "did not recover: still lost packets %.1f s after the load fell to half",
			 after);
	else
		snprintf(f.remark, sizeof(f.remark),
			 "recovered %.0f ms after the load fell to half (steps of 20 ms)",
			 1e3 * after);
	run_found(r, &f);
	return r->trial.why == TRIAL_STOPPED ? TRY_STOPPED : f.inconclusive ? TRY_VOID : TRY_GOOD;
}
