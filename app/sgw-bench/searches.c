/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The lines of the lab's tool, its spelling included: people have scripts that read them.
static void
print_equilibrium_head(const struct run *r)
{
	const struct args *a = r->args;
	uint32_t frame = (uint32_t)lround(r->kase.mean_frame), ip = frame - 14;

	printf("Benchmark tool using equilibrium throughput method\n");
	printf("- Benchmark mode: %s\n",
	       a->pps_mode ? "Throughput (pps) for Router" : "Bandwitdh (bps) for VPN gateway");
	printf("- UDP load = %uB, IPv%u packet size=%uB, Ethernet frame size=%uB\n",
	       ip - (r->kase.family == 4 ? 28 : 48), r->kase.family, ip, frame);
	printf("- Link rate = %.0f %s\n- Tolerance = %g\n", a->link, a->pps_mode ? "Kpps" : "Mb/s",
	       a->tolerance);
}

static uint32_t
measured(const struct run *r)
{
	double pps = rate_of(&r->trial);

	return (uint32_t)lround(r->args->pps_mode ? pps / 1000 : mbps_of(r, pps));
}

static enum try_end
equilibrium_once(struct run *r, struct equilibrium *e)
{
	static const char *const trends[] = {"", "increasing", "decreasing"};
	const struct args *a = r->args;
	const char *unit = a->pps_mode ? "Kpps" : "Mb/s";
	enum try_end end;

	equilibrium_begin(e, (uint32_t)a->link, a->tolerance);
	print_equilibrium_head(r);
	for (bool more = true; more;) {
		printf("Iteration %u\n  - Offering load = %u %s\n  - Step = %u %s\n", e->n, e->load,
		       unit, e->step, unit);
		if (e->trend != TREND_NONE)
			printf("  - Trend = %s\n", trends[e->trend]);
		fflush(stdout);
		// Halving the step until it is within the tolerance.
		r->remaining = fmax(log2(e->step / fmax(e->load * a->tolerance, 1)), 0) *
			       (a->seconds + a->settle);
		end = run_try(r, pps_of(r, e->load), a->seconds);
		if (end != TRY_GOOD) {
			printf("  - Void: %s\n", r->trial.remark);
			return end;
		}
		printf("  - Measured forwarding rate = %u %s\n", measured(r), unit);
		more = equilibrium_next(e, measured(r));
	}
	printf("Estimated Equilibrium Ethernet throughput= %u %s (maximum value seen: %u %s)\n",
	       e->last, unit, e->most, unit);
	fflush(stdout);
	return TRY_GOOD;
}

// The values of a figure's repeats: median and spread.
static void
sum_up(struct figure *f, const double *pps, uint32_t n, const struct run *r)
{
	double sorted[32];

	memcpy(sorted, pps, n * sizeof(pps[0]));
	f->pps = median(sorted, n);
	f->repeats = n;
	for (uint32_t i = 0; i < n; i++)
		f->values[i] = mbps_of(r, pps[i]);
	f->spread = f->pps > 0 ? (sorted[n - 1] - sorted[0]) / f->pps : 0;
}

enum try_end
run_equilibrium(struct run *r)
{
	struct figure f = run_figure(r, "equilibrium");
	double pps[32];
	uint32_t n = 0;
	enum try_end end = TRY_GOOD;

	r->mode = "equilibrium";
	while (n < r->args->repeats && end == TRY_GOOD) {
		struct equilibrium e;

		end = equilibrium_once(r, &e);
		if (end == TRY_GOOD) {
			pps[n++] = pps_of(r, e.last);
			f.most_mbps = fmax(f.most_mbps, mbps_of(r, pps_of(r, e.most)));
			f.loss = loss_of(&r->trial);
		}
	}
	if (n == 0) {
		f.inconclusive = true;
		snprintf(f.remark, sizeof(f.remark), "no result: %s", r->trial.remark);
		run_found(r, &f);
		return end;
	}
	sum_up(&f, pps, n, r);
	run_found(r, &f);
	return end;
}

// ---------------------------------------------------------------- NDR, PDR

// Packets that did not come as they were sent.
static uint64_t
bad_of(const struct stream_result *s)
{
	return s->lost + s->corrupted;
}

static enum try_end
mlr_once(struct run *r, struct mlr *m, const struct mlr_goal *goals, uint32_t n)
{
	const struct args *a = r->args;
	double max = ceiling_of(r, true), first_s = fmin(a->quick ? 0.5 : 1, a->seconds);

	mlr_begin(m, goals, n, max / 1000, max, first_s);
	while (mlr_want(m)) {
		const struct trial *t = &r->trial;
		enum try_end end;
		uint32_t worst;

		r->remaining = fmax(mlr_remaining(m) - m->s, 0);
		end = run_try(r, m->load, m->s);
		worst = t->n_streams == 2 && bad_of(&t->streams[1]) > bad_of(&t->streams[0]);
		if (end == TRY_VOID && r->generator_limited && m->load > 2 * m->min) {
			// What the generator can not send is above the search; it may send nothing at all.
			double can = fmin(m->load * 0.9, (double)t->streams[0].sent / t->s * 0.98);

			mlr_begin(m, goals, n, max / 1000, fmax(can, max / 1000), first_s);
			continue;
		}
		if (end != TRY_GOOD)
			return end;
		mlr_tell(m, t->streams[worst].sent, bad_of(&t->streams[worst]), t->s);
	}
	return TRY_GOOD;
}

static void
found_bound(struct run *r, struct figure *f, const struct mlr_bound *b, bool generator)
{
	f->loss = 0;
	r->generator_limited = generator && b->state == MLR_MAX;
	if (b->state == MLR_GAVE_UP)
		snprintf(f->remark, sizeof(f->remark),
			 "the device answers differently every time; a lower bound");
	if (b->state == MLR_MIN)
		snprintf(f->remark, sizeof(f->remark),
			 "lost too much at the smallest load that was tried");
	f->inconclusive |= b->state == MLR_GAVE_UP || b->state == MLR_MIN;
	run_found(r, f);
}

enum try_end
run_mlr(struct run *r, enum command c, double *ndr_pps)
{
	const struct args *a = r->args;
	const struct mlr_goal goals[2] = {
		{.loss_ratio = 0,
		 .width = a->width,
		 .trial_s = a->seconds,
		 .total_s = a->seconds,
		 .exceed_ratio = 0.5},
		{.loss_ratio = a->loss_ratio,
		 .width = a->width,
		 .trial_s = a->seconds,
		 .total_s = a->seconds,
		 .exceed_ratio = 0.5},
	};
	uint32_t n_goals = c == CMD_PDR ? 2 : 1, n = 0;
	static struct mlr m; // large
	double pps[2][32] = {{0}};
	enum try_end end = TRY_GOOD;
	bool generator;

	r->mode = command_names[c];
	while (n < a->repeats && end == TRY_GOOD) {
		end = mlr_once(r, &m, goals, n_goals);
		for (uint32_t g = 0; g < n_goals && end == TRY_GOOD; g++)
			pps[g][n] = m.bounds[g].lower;
		n += end == TRY_GOOD;
	}
	*ndr_pps = 0;
	generator = r->generator_limited;
	for (uint32_t g = 0; g < n_goals; g++) {
		struct figure f = run_figure(r, g == 0 ? "ndr" : "pdr");

		if (n == 0) {
			f.inconclusive = true;
			snprintf(f.remark, sizeof(f.remark), "no result: %s", r->trial.remark);
			run_found(r, &f);
			continue;
		}
		sum_up(&f, pps[g], n, r);
		f.most_mbps = mbps_of(r, m.bounds[g].rate);
		if (g == 0)
			*ndr_pps = f.pps;
		found_bound(r, &f, &m.bounds[g], generator);
	}
	return end;
}
