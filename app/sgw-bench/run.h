/* SPDX-License-Identifier: BSD-3-Clause */
// The commands that send packets: searches over trials, and what is written down of them.
#pragma once

#include "args.h"
#include "engine.h"
#include "err.h"
#include "result.h"

#define EXIT_INCONCLUSIVE 6 // void, or limited by something that is not the device

// What all commands work with.
struct run {
	const struct args *args;
	struct engine *engine;
	struct engine_case kase;     // being measured
	const struct bench_case *of; // of a sweep, or NULL
	struct result *result;
	struct calibration *reference; // or NULL
	double link_bps;
	const char *mode;          // of the trials that follow
	struct trial trial;        // the last one
	uint32_t n_trials, n_void; // of the figure that is searched
	bool generator_limited;    // the generator did not reach a rate that was wanted
	bool inconclusive;         // some figure is
	bool tty;                  // stderr is one
	bool metered;              // watts and CPU, in this trial
	double started;            // s, monotonic: of the command
	double expected;           // s that the trial takes, for progress
	double remaining;          // s of trials after it, about; 0: not known
};

enum try_end {
	TRY_GOOD,
	TRY_VOID, // again and again; said why
	TRY_STOPPED,
};

double mbps_of(const struct run *r, double pps);
double pps_of(const struct run *r, double load); // of --rate's and -l's unit
/** Largest packets a second of a stream that the wires carry.
 *  @param tx  of the senders' wires only */
double ceiling_of(const struct run *r, bool tx);
/** Rate that arrived, packets a second of the worst stream. */
double rate_of(const struct trial *t);
double loss_of(const struct trial *t);

/** A trial, again up to twice when it is void. It is in r->trial, and in the record. */
enum try_end run_try(struct run *r, double pps, double seconds);

/** In each step of a trial: reads the meters when half of it is over. */
void run_meters(struct run *r, double elapsed);

/** Choose what is measured, and warm up. @return 0 or -1 with err filled */
int run_set(struct run *r, uint8_t family, enum direction d, const struct size_mix *mix, double pps,
	    struct err *err);

/** A figure with everything but the result filled in. */
struct figure run_figure(const struct run *r, const char *mode);
/** Judge a figure, record and print it. */
void run_found(struct run *r, struct figure *f);

// searches.c; @return TRY_GOOD when there is a figure
enum try_end run_equilibrium(struct run *r);
enum try_end run_mlr(struct run *r, enum command c, double *ndr_pps);

// commands.c
enum try_end run_trial_once(struct run *r);
enum try_end run_loss(struct run *r);
enum try_end run_soak(struct run *r);
enum try_end run_back_to_back(struct run *r);
enum try_end run_latency(struct run *r);
enum try_end run_recovery(struct run *r);

/** Everything: @return an exit code; err filled when it is not 0 or EXIT_INCONCLUSIVE */
int run_command(const struct args *a, int argc, char **argv, struct err *err);
