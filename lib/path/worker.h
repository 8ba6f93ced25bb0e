/* SPDX-License-Identifier: BSD-3-Clause */
// A worker: an lcore that polls rx queues and runs the packet's way. It owns
// everything here; other threads only read the counters.
#pragma once

#include "doze.h"
#include "drop.h"

#include <rte_common.h>
#include <rte_mbuf.h>

#include <stdbool.h>
#include <stdint.h>

#define BURST 64          // packets taken from an rx queue at once
#define WORKER_MAX 64     //
#define WORKER_PORTS 32   // ports of a configuration
#define WORKER_RXQ_MAX 64 // (port, queue) pairs of one worker
#define LOCAL_MAX 128     // packets made by sgw itself in one burst
#define TX_MAX 256        // packets waiting for tx_flush, a port

struct tables;
struct mb_manager;
struct flows;
struct slot;

// Counters of one port in one worker. Written by the worker alone.
struct port_stats {
	uint64_t rx_packets;       // taken from the rx queue
	uint64_t rx_bytes;         // Ethernet frames without FCS
	uint64_t originated;       // made by sgw itself, counted where they were provoked
	uint64_t sent_on;          // came from this port and left on any port
	uint64_t tx_packets;       // handed to the tx queue of this port
	uint64_t tx_bytes;         //
	uint64_t ended[DROP_COUNT]; // by reason
};

struct rxq {
	uint16_t port;  // of ethdev
	uint16_t index; // sgw's own
	uint16_t queue;
};

struct tx_buffer {
	uint16_t n;
	struct rte_mbuf *pkts[TX_MAX];
};

// A token bucket, for what sgw sends because somebody else made it.
struct bucket {
	uint64_t last_tsc;
	uint32_t tokens;
};

struct worker {
	unsigned int index;             // 0…n-1: crypto queue pair and tx queue
	unsigned int lcore;             //
	const struct tables *tables;    // what to do with packets
	struct rte_mempool *pool;       // for packets that sgw makes itself
	struct reass *reass;            // packets being put together
	struct flows *flows;            // what was decided about flows
	struct slot *slot;              // steering `bursts`: being worked on, else NULL
	uint16_t unsealed;              // of it: still to come to esp_seal
	bool cutting;                   // of it: fragments are still to come to esp_seal
	uint64_t now;                   // TSC at the start of this burst
	uint64_t hz;                    // TSC ticks a second
	uint16_t n_rxqs;                //
	struct rxq rxqs[WORKER_RXQ_MAX]; //
	struct mb_manager *mb;          // of ipsec-mb
	uint16_t crypto_qp;             // queue pair on every crypto device
	bool idle_sleep;                // may sleep when there is nothing to do
	struct bucket icmp_bucket;      // ICMP errors
	struct bucket echo_bucket;      // echo replies, ND and ARP answers
	uint16_t n_local;               // packets made in this burst, run by worker_loop
	struct rte_mbuf *local[LOCAL_MAX];
	struct tx_buffer tx[WORKER_PORTS];
	uint64_t icmp_suppressed;       // errors not sent because of the rate limit
	uint64_t loops;                 // rounds over all rx queues
	uint64_t busy_loops;            // of these, with packets
	uint64_t cycles;                // TSC ticks since the start, sleep included
	uint64_t busy_cycles;           // of these, in rounds with packets: the load
	uint64_t turn_cycles;           // of these, spent in waiting for a turn (steer.h)
	uint64_t handed_over;           // packets given to other workers
	uint64_t taken_over;            // packets that other workers gave
	uint64_t slots;                 // bursts worked on, of worker 0's
	struct port_stats ports[WORKER_PORTS]; // by sgw's own port index
	struct doze doze;               // when there is nothing to do
} __rte_cache_aligned;

extern struct worker *workers[WORKER_MAX]; // n_workers of them
extern unsigned int n_workers;

/** Tell all workers to finish their burst and return; worker_loop() sees it. */
void worker_stop(void);

/** The thread function of a worker. arg: struct worker *. @return 0 */
int worker_loop(void *arg);

/** All of the way: a burst that came in, and then what sgw made because of it. n may be 0. */
void worker_run(struct worker *w, struct rte_mbuf **pkts, uint16_t n);

/**
 * Take a token. The bucket refills with `rate` tokens a second up to `burst`.
 * @return false when it is empty: do not send
 */
bool bucket_take(struct bucket *b, const struct worker *w, uint32_t rate, uint32_t burst);
