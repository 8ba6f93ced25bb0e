/* SPDX-License-Identifier: BSD-3-Clause */
// What a run found, as JSON (docs/benchmarking.md has the schema) and as a table on the
// terminal; and the calibration of a reference device.
#pragma once

#include "err.h"
#include "trial.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_t;

enum bound_by { BOUND_DEVICE, BOUND_WIRE, BOUND_GENERATOR, BOUND_REFERENCE, BOUND_NOTHING };
extern const char *const bound_names[]; // "device", "wire", "generator", "reference", "nothing"

// One number that a search found, with what it must be read beside.
struct figure {
	char mode[16];       // "equilibrium", "ndr", "pdr", "loss" …
	char name[64];       // of the case: free text, "" for none
	char direction[16];  // "forward", "reverse", "both"
	uint8_t family;      // of the clear packets
	char algorithm[64];  // "aes-gcm-16-128", "clear"; "" when not known
	char size[64];       // "542" bytes of frame without FCS, or "imix 7:4:1"
	double frame;        // mean bytes of clear frames without FCS
	uint32_t flows;      //
	double pps;          // the result, a direction
	double mbps;         // of clear Ethernet frames without FCS
	double most_mbps;    // largest rate that was seen
	double ceiling_mbps; // of the wire, 0: not known
	double loss;         // ratio in the trial that stands for the result
	enum bound_by bound; //
	bool by_load;        // a load that was asked for, and all of it passed
	bool inconclusive;   // near a limit of the reference or the generator
	char remark[160];    // "limited by reference (843 of 871)"
	double limit_mbps;   // of the reference, from its calibration; 0: none
	double headroom;     // limit ÷ result; 0: not known
	double latency[4];   // µs: p50, p99, p99.9, max; 0: not measured
	uint32_t repeats;    //
	double values[32];   // the result of each repeat, Mb/s
	double spread;       // (largest − smallest) ÷ median
	uint32_t n_trials;   //
	uint32_t n_void;     //
};

// A point of a curve, or a trial of a search.
struct point {
	const char *mode;
	uint32_t figure;  // index of the figure that it belongs to
	double load_mbps; //
	double rate_mbps; //
	double loss;      //
	double s;         //
	const struct trial *trial;
};

struct result;

/**
 * Begin: finds out about the machine (CPU, ISA, cores, frequency, kernel, its command
 * line, versions).
 * @param argc,argv  as given, for the record
 * @return NULL when there is no memory
 */
struct result *result_begin(int argc, char **argv);
void result_free(struct result *r);

/** A NIC that was used. @param driver,link  "net_igb", "1000 Mb/s full" */
void result_port(struct result *r, const char *role, const char *name, const char *driver,
		 const char *mac, const char *link);

/**
 * Watts: a number as typed, a file to read, or `!command` to run at the begin and in the
 * middle of trials. NULL: none. @return 0 or -EINVAL with err filled
 */
int result_watts(struct result *r, const char *source, struct err *err);
/** Read the meter now. @param loaded  while traffic runs */
void result_watts_now(struct result *r, bool loaded);
/** A number that a command prints about the device under test's CPU, per cent; NULL: none. */
int result_dut_cpu(struct result *r, const char *source, struct err *err);
/** Read it now, while traffic runs. */
void result_dut_cpu_now(struct result *r);

/** Add a trial; what is needed of it is copied. */
void result_trial(struct result *r, const struct point *p);
/** Add a figure. @return its index */
uint32_t result_figure(struct result *r, const struct figure *f);
/** The index that the next figure will have: its trials come first. */
uint32_t result_next(const struct result *r);

/** The figures as they will be written, owned by r. */
struct json_t *result_figures(const struct result *r);

/** Write all of it, through a temporary file, so that it is whole or not there. */
int result_write(const struct result *r, const char *path, struct err *err);
/** The table for the terminal: a line a figure. */
void result_print(const struct result *r, FILE *out);

// ---------------------------------------------------------------- calibration

/**
 * Limits of a reference device (or of the generator), a figure each by algorithm, frame
 * size, direction, family: written by `calibrate`, read by all others with --reference.
 */
struct calibration;

int calibration_load(const char *path, struct calibration **out, struct err *err);
void calibration_free(struct calibration *c);
int calibration_write(const struct result *r, const char *path, struct err *err);

/**
 * Judge a figure: fills limit_mbps, headroom, inconclusive, bound, remark. Within 10 % of
 * the limit the result is the reference's, not the device's. A size between two that are
 * known is interpolated in seconds a packet; outside of them nothing is said.
 * @param c  NULL: only wire and generator are judged
 */
void figure_judge(struct figure *f, const struct calibration *c, double link_mbps,
		  bool generator_limited);
