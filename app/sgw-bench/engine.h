/* SPDX-License-Identifier: BSD-3-Clause */
// Ports, lcores and trials: the only part of sgw-bench that knows packets and time at once.
#pragma once

#include "args.h"
#include "err.h"
#include "shape.h"
#include "trial.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

/** Set by SIGINT and SIGTERM: trials end at once, as TRIAL_STOPPED. */
extern volatile sig_atomic_t engine_stopping;

/**
 * Start EAL, ports and lcores, wait for the links.
 * @return NULL with err filled
 */
struct engine *engine_start(const struct args *a, struct err *err);
void engine_stop(struct engine *e);

/** What is measured next: until the next call, all trials are of this kind. */
struct engine_case {
	uint8_t family;             //
	enum direction direction;   //
	const struct size_mix *mix; //
	const char *esp_file;       // NULL: as on the command line
	struct encap encap;         // in: of the wire when we do no ESP; out: what it carries
	bool has_encap;             // in, out
	double mean_frame;          // out: bytes of clear frames without FCS
	uint32_t flows;             // out: of one stream
};

/** @param a  as of engine_start(), but perhaps for another family; kept */
int engine_set(struct engine *e, const struct args *a, struct engine_case *c, struct err *err);

/** What a port is, for the record. @param i  0: -t, 1: -r */
const char *engine_port(const struct engine *e, unsigned int i, char driver[32], char mac[18],
			char link[32]);

/**
 * One trial.
 * @param pps      packets a second, of each stream
 * @param progress called about ten times a second, may be NULL
 */
void engine_trial(struct engine *e, double pps, double seconds, struct trial *out,
		  void (*progress)(void *arg, double elapsed), void *arg);

/** For progress() that takes longer than a second or two, in between: sequence numbers are
 *  reserved ahead. */
void engine_tick(struct engine *e);

/** What a trial has sent and received up to now, all streams; for progress(). */
void engine_peek(const struct engine *e, uint64_t *sent, uint64_t *received);

/** From now on to the end of this trial fewer packets a second; such a trial is not judged by
 *  its rate. For progress(). */
void engine_slow_down(struct engine *e, double pps);

/** Bits a second of the slower link; 0: the device says nothing. */
double engine_link_bps(const struct engine *e);
