/* SPDX-License-Identifier: BSD-3-Clause */
// What a worker does when a round found no packet: doze.c.
#pragma once

#include <rte_epoll.h>

#include <stdbool.h>
#include <stdint.h>

#define DOZE_QUEUES 64 // as many as a worker has rx queues

struct port;
struct worker;

struct doze {
	uint64_t since;   // TSC, of the last packet or wake
	uint64_t us;      // TSC ticks a microsecond
	int epfd;         // that packets wake, -1: some queue can not, it sleeps by time
	int wait_ms;      // longest wait for a packet, because of the ticks
	bool armed;       // the queues will wake epfd, and were told so before the last round
	uint64_t sleeps;  //
	uint64_t wakes;   // of these, ended by a packet
	struct rte_epoll_event events[DOZE_QUEUES]; // of queues that are sockets of the kernel's
};

/**
 * Before the worker starts, from the control thread: find out what can wake it.
 * @param ports        by sgw's own index, started
 * @param only_queues  nothing else brings it packets: then its queues may wake it
 */
void doze_open(struct worker *w, const struct port *ports, bool only_queues);
void doze_close(struct worker *w);

/** A round found nothing: pause, sleep, or wait for a packet. */
void doze(struct worker *w);
/** A round found packets. */
void doze_end(struct worker *w);
