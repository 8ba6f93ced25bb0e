/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3           // of a trial that is void
#define WARM_UP_PART 0.01 // of the load
#define METER_LEAST_S 0.5

static double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---------------------------------------------------------------- units

double
mbps_of(const struct run *r, double pps)
{
	return pps * r->kase.mean_frame * 8 / 1e6;
}

double
pps_of(const struct run *r, double load)
{
	return r->args->pps_mode ? load * 1000 : load * 1e6 / 8 / r->kase.mean_frame;
}

static double
wire_pps(const struct run *r, const struct encap *e)
{
	const struct size_mix *m = r->kase.mix;

	return ceiling_pps(e, r->link_bps, m->l3, m->weight, m->n);
}

// Of the wire on one side, 't' or 'r'.
static double
side_pps(const struct run *r, char side)
{
	const struct args *a = r->args;
	struct encap e = a->esp_side == side ? r->kase.encap : (struct encap){0};

	e.vlan_tags = (side == 't' ? a->vlan_t : a->vlan_r) != 0;
	return wire_pps(r, &e);
}

double
ceiling_of(const struct run *r, bool tx)
{
	double t = side_pps(r, 't'), other = side_pps(r, 'r'), both = fmin(t, other);

	if (tx && r->kase.direction != DIR_BOTH)
		return r->kase.direction == DIR_REVERSE ? other : t;
	// By us or between the gateways, somewhere it is ESP.
	return tx || !r->kase.has_encap ? both : fmin(both, wire_pps(r, &r->kase.encap));
}

double
rate_of(const struct trial *t)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < t->n_streams; i++)
		least = fmin(least, (double)t->streams[i].received / t->s);
	return least;
}

double
loss_of(const struct trial *t)
{
	double most = 0;

	for (uint32_t i = 0; i < t->n_streams; i++) {
		const struct stream_result *s = &t->streams[i];
		uint64_t bad = s->lost + s->corrupted;

		if (s->sent == 0)
			return 1; // none is no proof that one passes
		most = fmax(most, (double)(bad < s->sent ? bad : s->sent) / (double)s->sent);
	}
	return most;
}

// ---------------------------------------------------------------- trials

// Loaded is what the device is in the middle. A command that answers late is over before what
// has been reserved of sequence numbers is.
void
run_meters(struct run *r, double elapsed)
{
	if (r->metered || elapsed < r->expected / 2)
		return;
	r->metered = true;
	// A trial that is shorter is over before the command has begun.
	if (r->expected < METER_LEAST_S)
		return;
	result_watts_now(r->result, true);
	engine_tick(r->engine); // two of them might not be
	result_dut_cpu_now(r->result);
}

static void
progress(void *arg, double elapsed)
{
	struct run *r = arg;

	run_meters(r, elapsed);
	if (!r->tty)
		return;
	fprintf(stderr, "\r\033[K%s, trial %u: %.1f Mb/s, %.0f of %.0f s; %.0f s since the start",
		r->mode, r->n_trials + 1, mbps_of(r, r->trial.pps), fmin(elapsed, r->expected),
		r->expected, seconds_now() - r->started);
	if (r->remaining > 0)
		fprintf(stderr, ", about %.0f to go ",
			r->remaining + fmax(r->expected - elapsed, 0));
}

static void
record_trial(struct run *r)
{
	struct point p = {
		.mode = r->mode,
		.figure = result_next(r->result),
		.load_mbps = mbps_of(r, r->trial.pps),
		.rate_mbps = mbps_of(r, rate_of(&r->trial)),
		.loss = loss_of(&r->trial),
		.s = r->trial.s,
		.trial = &r->trial,
	};

	r->n_trials++;
	r->n_void += r->trial.why != TRIAL_GOOD;
	result_trial(r->result, &p);
}

enum try_end
run_try(struct run *r, double pps, double seconds)
{
	r->tty = isatty(STDERR_FILENO);
	for (int i = 0; i < TRIES; i++) {
		r->expected = seconds;
		r->trial.pps = pps;
		r->metered = false;
		engine_trial(r->engine, pps, seconds, &r->trial, progress, r);
		if (r->tty)
			fputs("\r\033[K", stderr);
		record_trial(r);
		if (r->trial.why == TRIAL_GOOD)
			return TRY_GOOD;
		if (r->trial.why == TRIAL_STOPPED)
			return TRY_STOPPED;
		fprintf(stderr, "void trial at %.1f Mb/s (%s): %s\n", mbps_of(r, pps),
			trial_void_names[r->trial.why], r->trial.remark);
	}
	r->generator_limited |= r->trial.why == TRIAL_GENERATOR || r->trial.why == TRIAL_RECEIVER;
	return TRY_VOID;
}

int
run_set(struct run *r, uint8_t family, enum direction d, const struct size_mix *mix, double pps,
	struct err *err)
{
	const struct args *a = r->args;

	r->kase = (struct engine_case){
		.family = family,
		.direction = d,
		.mix = mix,
		.esp_file = r->of != NULL && r->of->file != NULL ? r->of->file : a->esp_file,
		.has_encap = r->of != NULL && r->of->has_encap ? true : a->has_encap,
		.encap = r->of != NULL && r->of->has_encap ? r->of->encap : a->encap,
	};
	if (engine_set(r->engine, a, &r->kase, err) != 0)
		return -1;
	if (pps == 0)
		pps = ceiling_of(r, false);
	// Neighbours are learned, caches filled; what comes of it does not count.
	if (a->warm_up > 0)
		engine_trial(r->engine, fmax(pps * WARM_UP_PART, 10 / a->warm_up), a->warm_up,
			     &r->trial, NULL, NULL);
	return 0;
}

// ---------------------------------------------------------------- figures

static void
name_algorithm(const struct run *r, char *text, size_t size)
{
	const struct encap *e = &r->kase.encap;

	if (!r->kase.has_encap)
		snprintf(text, size, "clear");
	else
		snprintf(text, size, "%s%s%s%s%s v%u", alg_get(e->cipher)->name,
			 e->auth != ALG_NONE ? "+" : "",
			 e->auth != ALG_NONE ? alg_get(e->auth)->name : "",
			 e->transport ? " transport" : "", e->natt ? " natt" : "", e->family);
}

struct figure
run_figure(const struct run *r, const char *mode)
{
	static const char *const directions[] = {"forward", "reverse", "both"};
	struct figure f = {.family = r->kase.family,
			   .frame = r->kase.mean_frame,
			   .flows = r->kase.flows};

	snprintf(f.mode, sizeof(f.mode), "%s", mode);
	snprintf(f.name, sizeof(f.name), "%s",
		 r->of != NULL         ? r->of->name :
		 r->args->name != NULL ? r->args->name :
					 "");
	snprintf(f.direction, sizeof(f.direction), "%s", directions[r->kase.direction]);
	snprintf(f.size, sizeof(f.size), "%s", r->kase.mix->name);
	name_algorithm(r, f.algorithm, sizeof(f.algorithm));
	f.ceiling_mbps = mbps_of(r, ceiling_of(r, false));
	return f;
}

// Latencies of the last trial, the worse of two streams.
static void
add_latency(const struct run *r, struct figure *f)
{
	static const double q[3] = {0.5, 0.99, 0.999};

	for (uint32_t i = 0; i < r->trial.n_streams; i++) {
		const struct hist *h = &r->trial.streams[i].latency;

		if (h->n == 0)
			continue;
		for (int k = 0; k < 3; k++)
			f->latency[k] = fmax(f->latency[k], hist_quantile(h, q[k]) / 1000);
		f->latency[3] = fmax(f->latency[3], (double)h->max / 1000);
	}
}

void
run_found(struct run *r, struct figure *f)
{
	if (f->latency[0] == 0 && r->trial.why == TRIAL_GOOD)
		add_latency(r, f);
	f->mbps = mbps_of(r, f->pps);
	f->n_trials = r->n_trials;
	f->n_void = r->n_void;
	if (f->repeats == 0) {
		f->repeats = 1;
		f->values[0] = f->mbps;
	}
	figure_judge(f, r->reference, r->link_bps / 1e6, r->generator_limited);
	if (f->remark[0] == '\0' && r->trial.remark[0] != '\0')
		snprintf(f->remark, sizeof(f->remark), "%s", r->trial.remark);
	r->inconclusive |= f->inconclusive;
	result_figure(r->result, f);
	r->n_trials = r->n_void = 0;
	r->generator_limited = false;
}

// ---------------------------------------------------------------- commands

static enum try_end
run_one(struct run *r, enum command c)
{
	double ndr;

	switch (c) {
	case CMD_EQUILIBRIUM:
		return run_equilibrium(r);
	case CMD_NDR:
	case CMD_PDR:
	case CMD_CALIBRATE:
		return run_mlr(r, c, &ndr);
	case CMD_LOSS:
		return run_loss(r);
	case CMD_TRIAL:
		return run_trial_once(r);
	case CMD_SOAK:
		return run_soak(r);
	case CMD_BACK_TO_BACK:
		return run_back_to_back(r);
	case CMD_LATENCY:
		return run_latency(r);
	case CMD_RECOVERY:
		return run_recovery(r);
	default:
		return TRY_STOPPED;
	}
}

// A command that makes the device what a case wants it to be.
static int
prepare_case(const struct bench_case *c, struct err *err)
{
	int rc = c->command != NULL ? system(c->command) : 0;

	if (rc != 0)
		return err_set(err, EXIT_MACHINE, -EIO,
			       "--case %s: its command ended with status %d: %s", c->name,
			       rc > 255 ? rc >> 8 : rc, c->command);
	return 0;
}

static enum try_end
run_sizes(struct run *r, enum command c, uint8_t family, enum direction d, struct err *err)
{
	enum try_end end = TRY_GOOD, worst = TRY_GOOD;

	for (uint32_t i = 0; i < r->args->n_mixes && end != TRY_STOPPED; i++) {
		if (run_set(r, family, d, &r->args->mixes[i], 0, err) != 0)
			return TRY_VOID;
		end = run_one(r, c);
		worst = end != TRY_GOOD ? end : worst;
	}
	return worst;
}

// All sizes in the directions that are asked for.
static enum try_end
run_directions(struct run *r, struct err *err)
{
	const struct args *a = r->args;
	enum command c = a->command == CMD_SWEEP ? a->sweep : a->command;
	enum try_end end = TRY_GOOD, worst = TRY_GOOD;
	bool several = a->command == CMD_SWEEP || a->command == CMD_CALIBRATE;
	int first = several ? DIR_FORWARD : (int)a->direction, last = several ? DIR_REVERSE : first;

	for (int d = first; d <= last && end != TRY_STOPPED && err->kind == 0; d++) {
		// The other way there is only when it is known who is there.
		if (several && d == DIR_REVERSE && !a->has_dut2)
			continue;
		end = run_sizes(r, c, a->family, (enum direction)d, err);
		worst = end != TRY_GOOD ? end : worst;
	}
	return worst;
}

static enum try_end
run_cases(struct run *r, struct err *err)
{
	static struct args six; // large
	const struct args *a = r->args;
	enum try_end end = TRY_GOOD, worst = TRY_GOOD;

	for (uint32_t i = 0; i == 0 || i < a->n_cases; i++) {
		r->of = i < a->n_cases ? &a->cases[i] : NULL;
		if (r->of != NULL && prepare_case(r->of, err) != 0)
			return TRY_VOID;
		for (int other = 0; other <= a->both; other++) {
			if (other)
				args_other(a, &six);
			r->args = other ? &six : a;
			end = run_directions(r, err);
			r->args = a;
			worst = end != TRY_GOOD ? end : worst;
			if (end == TRY_STOPPED || err->kind != 0)
				return end;
		}
	}
	return worst;
}

static void
record_ports(struct run *r)
{
	char driver[32], mac[18], link[32];

	for (unsigned int i = 0; i < 2; i++) {
		const char *name = engine_port(r->engine, i, driver, mac, link);

		result_port(r->result, i == 0 ? "-t" : "-r", name, driver, mac, link);
	}
}

// The first one ends the program, the others are said.
static void
first_err(const struct err *e, struct err *first)
{
	if (first->kind == 0)
		*first = *e;
	else
		fprintf(stderr, "sgw-bench: error: %s\n", e->text);
}

// All that can be, even when something can not.
static void
write_down(struct run *r, struct err *err)
{
	struct err failed = {0};
	const struct args *a = r->args;

	result_print(r->result, stdout);
	if (a->json != NULL && result_write(r->result, a->json, &failed) != 0)
		first_err(&failed, err);
	if (a->command == CMD_CALIBRATE && calibration_write(r->result, a->output, &failed) != 0)
		first_err(&failed, err);
}

static int
begin(struct run *r, int argc, char **argv, struct err *err)
{
	const struct args *a = r->args;

	r->result = result_begin(argc, argv);
	if (r->result == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	if (result_watts(r->result, a->watts, err) != 0 ||
	    result_dut_cpu(r->result, a->dut_cpu, err) != 0 ||
	    (a->reference != NULL && calibration_load(a->reference, &r->reference, err) != 0))
		return -1;
	r->engine = engine_start(a, err);
	if (r->engine == NULL)
		return -1;
	record_ports(r);
	result_watts_now(r->result, false);
	r->link_bps = a->pps_mode ? engine_link_bps(r->engine) : a->link * 1e6;
	if (r->link_bps == 0)
		r->link_bps = 1e9;
	return 0;
}

int
run_command(const struct args *a, int argc, char **argv, struct err *err)
{
	struct run r = {.args = a, .mode = command_names[a->command], .started = seconds_now()};
	enum try_end end = TRY_VOID;
	int code;

	if (begin(&r, argc, argv, err) == 0) {
		end = run_cases(&r, err);
		// What was measured before something failed is kept.
		if (err->kind == 0 || result_next(r.result) > 0)
			write_down(&r, err);
	}
	code = err->kind != 0                     ? (int)err->kind :
	       end == TRY_GOOD && !r.inconclusive ? 0 :
						    EXIT_INCONCLUSIVE;
	engine_stop(r.engine);
	calibration_free(r.reference);
	result_free(r.result);
	return code;
}
