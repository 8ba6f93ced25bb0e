/* SPDX-License-Identifier: BSD-3-Clause */
// What one trial was asked for and what came of it. A stream goes from one port to
// another; with both directions at once there are two.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Why a trial says nothing about the device under test.
enum trial_void {
	TRIAL_GOOD,
	TRIAL_GENERATOR, // did not send what was asked for
	TRIAL_RECEIVER,  // lost frames itself: no buffers, rx ring full
	TRIAL_LINK,      // was down, or went down meanwhile
	TRIAL_FOREIGN,   // somebody else's frames were more than a trace
	TRIAL_STOPPED,   // by a signal
	TRIAL_VOIDS
};

/** "generator", "receiver" …; "" for TRIAL_GOOD */
extern const char *const trial_void_names[TRIAL_VOIDS];

#define HIST_SUB 32 // steps of a power of two: 3 % apart
#define HIST_SLOTS (40 * HIST_SUB)

// Latencies in ns, log-linear.
struct hist {
	uint64_t n;
	uint64_t min, max;
	double sum;
	uint64_t slots[HIST_SLOTS]; // a night is more than 2^32 packets
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *to, const struct hist *from);
/** @param q  0.5, 0.99 … @return ns, 0 when there is nothing */
double hist_quantile(const struct hist *h, double q);

struct stream_result {
	uint64_t sent;           // packets
	uint64_t sent_bytes;     // of clear Ethernet frames without FCS
	double sending;          // seconds from the first to the last
	uint64_t received;       // of ours, sound, each counted once
	uint64_t received_bytes; // as clear Ethernet frames without FCS, whatever the wire carried
	uint64_t lost;           // sent − received − corrupted, at least 0
	uint64_t duplicated;     // came again
	uint64_t reordered;      // RFC 4737: behind one that was sent later in its flow
	uint32_t extent;         // largest reordering extent, packets of the flow
	uint64_t corrupted;      // ours by its flow, but not as it was sent
	uint64_t foreign;        // not of this trial, or of nobody known
	uint64_t esp_bad;        // ESP that did not open: ICV, padding, unknown SPI
	uint64_t esp_replayed;   // ESP with a sequence number that was there before
	uint64_t in_clear;       // ours, in clear where ESP was due
	uint64_t missed;         // the receiving port's own losses
	uint64_t refused;        // virtual ports: sent when the device's ring was full, so lost
	double tx_load;          // busy fraction of the lcore that sends, 0…1
	double rx_load;          // of the one that receives
	struct hist latency;     // ns; n = 0 when packets carry no time
};

struct trial {
	double pps;          // asked for, a stream
	double s;            // asked for, or until it was stopped
	enum trial_void why; //
	char remark[128];    // what is wrong and what would help, when void
	uint32_t n_streams;
	struct stream_result streams[2];
};
