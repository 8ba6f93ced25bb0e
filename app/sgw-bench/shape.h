/* SPDX-License-Identifier: BSD-3-Clause */
// What a stream's packets look like: UDP, each with a signature by which the receiver
// knows flow, place in the flow, time of sending, and that nothing was changed.
// Packet k of a trial is number k ÷ flows of flow k mod flows, and its size follows
// from both: so sender and receiver share no state but this.
#pragma once

#include "addr.h"
#include "args.h"
#include "err.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAME_L3_MAX 9582 // bytes of L3 of the largest packet
#define SIG_LEN 16
#define SCHEDULE_MAX 256
#define HDR_MAX 48 // IPv6 and UDP

// Of the payload, in the sender's byte order.
struct sig {
	uint32_t check; // over the other three, with the trial's key
	uint32_t flow;
	uint32_t seq;  // low half
	uint32_t time; // TSC ÷ 2^TIME_SHIFT
};
_Static_assert(sizeof(struct sig) == SIG_LEN, "no padding");
#define TIME_SHIFT 5

struct shape {
	uint8_t family;       //
	uint8_t hdr_len;      // IP and UDP
	bool checksum;        // of UDP
	bool signed_;         // packets are long enough for a signature
	uint32_t n_flows;     //
	uint32_t n_src;       // sources; a flow's is src + flow mod n_src
	struct addr src, dst; // first of them; a flow's is dst + flow ÷ n_src
	uint16_t sport_be, dport_be;
	uint32_t n_sizes;          // of the schedule
	uint32_t rounds;           // of all flows, after which sizes meet the same flows again
	uint16_t l3[SCHEDULE_MAX]; // bytes, in the order of sending
	double mean_l3;            //
	uint16_t min_l3, max_l3;   //
};

/**
 * From the command line; the reverse stream has source and destination swapped.
 * @return 0, or -EINVAL with err filled
 */
int shape_fill(struct shape *s, const struct args *a, uint8_t family, const struct size_mix *mix,
	       bool reverse, struct err *err);

/** Bytes of L3 of packet `seq` of a flow. */
static inline uint16_t
shape_l3(const struct shape *s, uint32_t flow, uint64_t seq)
{
	if (s->n_sizes == 1)
		return s->l3[0];
	// The schedule in turn, and one further where it would begin anew with the same flow: or
	// with 12 sizes and 24 flows each flow had but one. No sooner, or few flows had not all.
	return s->l3[(flow + seq * s->n_flows + seq / s->rounds) % s->n_sizes];
}

/** The check of a signature. @param key  of the trial */
static inline uint32_t
sig_check(uint64_t key, uint32_t flow, uint32_t seq, uint32_t time)
{
	uint64_t x = (((uint64_t)seq << 32 | flow) ^ key) * UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 32;
	x = (x + time) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 32);
}

/**
 * Write packet `seq` of a flow.
 * @param ip  room for shape_l3() bytes
 */
void shape_write(const struct shape *s, uint8_t *ip, uint32_t flow, uint64_t seq, uint32_t time,
		 uint64_t key);

enum verdict {
	SEEN_GOOD,      // flow, seq and time are filled, where packets are signed
	SEEN_CORRUPTED, // of this stream by addresses and ports, but not as it was sent
	SEEN_FOREIGN,   // of another one, or of an earlier trial
};

struct seen {
	uint32_t flow;
	uint32_t seq;
	uint32_t time;
};

#define KEYS 8 // of this trial and those before, whose packets may still come

/**
 * Look at a packet.
 * @param ip,len  from the IP header on; what is behind the packet's own length is padding
 * @param keys    KEYS of them: of the trial, of the one before …
 */
enum verdict shape_look(const struct shape *s, const uint8_t *ip, uint32_t len,
			const uint64_t *keys, struct seen *out);

/** Is the length that of this packet? For after shape_look(), with all of seq. */
bool shape_is_long(const struct shape *s, const uint8_t *ip, uint32_t flow, uint64_t seq);
