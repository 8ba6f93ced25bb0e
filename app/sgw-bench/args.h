/* SPDX-License-Identifier: BSD-3-Clause */
// The command line: what stands behind `--`.
#pragma once

#include "addr.h"
#include "ceiling.h"
#include "err.h"

#include <stdbool.h>
#include <stdint.h>

enum command {
	CMD_EQUILIBRIUM,
	CMD_NDR,          // both are found by one search: ndr prints NDR …
	CMD_PDR,          // … pdr prints NDR and PDR
	CMD_LOSS,         // the curve: loads from 10 to 100 % of --rate (default: the ceiling)
	CMD_TRIAL,        // one trial at --rate
	CMD_SOAK,         // --rate for --time, a line every --interval
	CMD_BACK_TO_BACK, // RFC 2544 section 26.4: longest burst at line rate without loss
	CMD_LATENCY,      // at 10, 50, 90 % of NDR (which is searched, or given as --rate)
	CMD_RECOVERY,     // RFC 2544 section 26.5: time from 110 % to 50 % of --rate until no loss
	CMD_SWEEP,        // NDR (or --sweep-command) over cases × directions × sizes
	CMD_CALIBRATE,    // NDR over directions × sizes into --output
	CMD_CEILING,      // no EAL: tables
	CMD_REPORT,       // no EAL: RESULT.json [BEFORE.json] -o FILE.html
	CMD_COUNT
};

extern const char *const command_names[CMD_COUNT];

enum direction { DIR_FORWARD, DIR_REVERSE, DIR_BOTH }; // forward: from -t to -r

#define SIZES_MAX 16
#define CASES_MAX 32

// Packets of one or several sizes, in turn by weight.
struct size_mix {
	char name[64];          // "546", "imix", as given; of -s: the frame with FCS
	uint32_t n;             //
	uint32_t l3[SIZES_MAX]; // bytes of the clear IP packet
	uint32_t weight[SIZES_MAX];
};

// A case of a sweep: `--case NAME[,esp=FILE][,encap=ENCAP][,do=COMMAND]`; the command makes
// the device so (and is last: it may contain commas).
struct bench_case {
	char kept[256]; // copy of the text, cut at its commas
	char name[64];
	const char *file; // in kept, or NULL
	bool has_encap;
	struct encap encap;
	const char *command; // or NULL
};

struct args {
	int eal_argc;
	char **eal_argv;
	bool help, version;
	enum command command;

	// ports and neighbours
	const char *tx_port; // -t: PCI address, MAC address, or device arguments of a virtual one
	const char *rx_port; // -r: the same; may be the same port
	bool has_dut, has_dut2;
	struct mac dut;          // -d: where frames of -t go
	struct mac dut2;         // -D: where frames of -r go, for --direction reverse and both
	uint16_t vlan_t, vlan_r; // --vlan-t, --vlan-r: 802.1Q tag on that side, 0: none
	uint16_t mtu;            // --mtu of both ports, default 1500

	// traffic
	uint8_t family;  // 4 or 6 (-4, -6)
	bool both;       // sweep, calibrate: 4, and after it the other, see args_other()
	bool by_payload; // the size is of -s
	enum direction direction;
	uint32_t n_mixes; // -s, --size, --sizes (a list: sweep, calibrate); default -s 500
	struct size_mix mixes[SIZES_MAX];
	struct range src, dst; // --src, --dst A-B; defaults: the lab's
	bool has_src, has_dst;
	uint32_t flows;        // --flows: so many of src × dst, 0: all; at most 1,000,000
	uint16_t sport, dport; // --sport, --dport; default 2001 (IPv4), 2000 (IPv6)
	bool checksum;         // -u

	// ESP by ourselves
	const char *esp_file; // -f: sgw.yaml of the gateway that is played
	char esp_side;        // --esp t|r: which port carries ESP, 0: none

	// loads
	bool pps_mode; // -p: loads are kpps
	double link;   // -l: Mb/s, with -p kpps; default 1000 or 1488
	bool has_rate;
	double rate;       // --rate: Mb/s of frames without FCS, with -p kpps; or a per cent
	bool rate_percent; // of the ceiling: "--rate 90%"
	double tolerance;  // -o: 0.01
	double loss_ratio; // --loss-ratio of pdr: 0.005
	double width;      // --width of ndr and pdr: 0.005
	double seconds;    // --time: 30
	double warm_up;    // --warm-up: 2 s at 1 % of the load, 0: none
	double settle;     // --settle: after a trial, s, 1
	double link_wait;  // --link-wait: s, 10
	double interval;   // --interval of soak: 10
	uint32_t repeats;  // --repeat: 1 … 32
	bool quick;        // --quick: short trials (time 2, first 0.5, repeat 1, width 0.02)
	bool shared_cores; // --shared-cores: sleep between packets, for several programs on a core

	// judging and recording
	const char *name; // --name: of the case, for the record
	bool has_encap;
	struct encap
		encap; // --encap: what the wire carries, for the ceiling, when we do not do ESP
	const char *reference; // --reference: a calibration
	const char *json;      // --json
	const char *html;      // --html
	const char *output;    // -o/--output of report and calibrate
	const char *watts;     // --watts
	const char *dut_cpu;   // --dut-cpu
	enum command sweep;    // --sweep-command equilibrium|ndr|pdr
	uint32_t n_cases;
	struct bench_case cases[CASES_MAX];
	const char *files[2]; // of report
};

extern const char args_help[];

/**
 * Read the command line; touches nothing.
 * @return 0 or -EINVAL with err filled (EXIT_USAGE): which option, what is wrong, what is right
 */
int args_parse(int argc, char **argv, struct args *a, struct err *err);

/** The same for IPv6, of what has `both` set. */
void args_other(const struct args *a, struct args *six);

/**
 * One size: "546" (Ethernet frame with FCS, as RFC 2544 counts: L3 + 18), "imix" (7:4:1 of 64,
 * 570, 1518), "genome:aaafg" (RFC 6985). -s gives the UDP payload instead: "-s 500" is the
 * lab's 546.
 * @param mtu  for the letter z
 * @return 0 or -EINVAL
 */
int args_size(const char *text, uint16_t mtu, struct size_mix *out);
