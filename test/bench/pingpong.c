/* SPDX-License-Identifier: BSD-3-Clause */
// Measures how long a packet takes through an sgw that seals it: sends on one net_memif,
// takes ESP from the other, times by the TSC. A line of JSON a measurement. It polls, and
// wants a core of its own. test/bench/latency runs it.
//
//	pingpong EAL-options -- MAC-OF-SGW FRAME-BYTES SECONDS
//
// The payload comes back sealed, so a packet is known by its ESP sequence number.
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_udp.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32
#define FLIGHT 4096       // packets under way that are known, a power of two
#define WINDOW 256        // of them when the capacity is measured: no ring overflows
#define SAMPLES 4000000   // of one measurement, at most
#define LOST_MS 500       // a packet that is not back by then does not come
#define ESP_OFFSET 34     // Ethernet and IPv4

static struct rte_mempool *pool;
static uint8_t frame[1514];
static uint16_t frame_len;
static uint64_t sent_at[FLIGHT]; // TSC, by sequence number
static uint64_t n_sent, n_back;  // in this measurement
static uint32_t next_seq;        // of the packet to be sent next
static uint32_t *samples;        // TSC ticks
static uint32_t n_samples;
static double hz;

static void
die(const char *what)
{
	fprintf(stderr, "pingpong: %s (%s)\n", what, rte_strerror(rte_errno));
	exit(1);
}

static void
make_frame(const char *mac)
{
	struct rte_ether_hdr *eth = (void *)frame;
	struct rte_ipv4_hdr *ip = (void *)(eth + 1);
	struct rte_udp_hdr *udp = (void *)(ip + 1);
	static const struct rte_ether_addr host = {{2, 0, 0, 0, 0, 0x11}};

	if (rte_ether_unformat_addr(mac, &eth->dst_addr) != 0)
		die("no MAC address");
	eth->src_addr = host;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(frame_len - sizeof(*eth)));
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 10, 0, 1));
	ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 20, 0, 1));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->src_port = udp->dst_port = rte_cpu_to_be_16(9);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(frame_len - sizeof(*eth) - sizeof(*ip)));
}

static void
open_port(uint16_t port)
{
	struct rte_eth_conf conf = {0};
	int socket = (int)rte_socket_id();

	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
	    rte_eth_rx_queue_setup(port, 0, 1024, (unsigned int)socket, NULL, pool) != 0 ||
	    rte_eth_tx_queue_setup(port, 0, 1024, (unsigned int)socket, NULL) != 0 ||
	    rte_eth_dev_start(port) != 0)
		die("a port does not start");
}

static void
send_one(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		die("no buffer");
	memcpy(rte_pktmbuf_append(m, frame_len), frame, frame_len);
	sent_at[next_seq % FLIGHT] = rte_rdtsc();
	if (rte_eth_tx_burst(0, 0, &m, 1) == 1) {
		next_seq++;
		n_sent++;
	} else {
		rte_pktmbuf_free(m);
	}
}

static uint32_t
sequence(struct rte_mbuf *m)
{
	rte_be32_t be;

	memcpy(&be, rte_pktmbuf_mtod_offset(m, uint8_t *, ESP_OFFSET + 4), sizeof(be));
	return rte_be_to_cpu_32(be);
}

// What has come back. @return how many
static uint16_t
receive(void)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(1, 0, pkts, BURST);
	uint64_t now = rte_rdtsc();

	for (uint16_t i = 0; i < n; i++) {
		uint32_t seq = sequence(pkts[i]);

		if (n_samples < SAMPLES && next_seq - seq <= FLIGHT)
			samples[n_samples++] = (uint32_t)(now - sent_at[seq % FLIGHT]);
		rte_pktmbuf_free(pkts[i]);
	}
	n_back += n;
	return n;
}

static void
clear(void)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(hz * LOST_MS / 1000);

	while (n_back < n_sent && rte_rdtsc() < end)
		receive();
	n_sent = n_back = n_samples = 0;
}

static void
spin(uint64_t ticks)
{
	uint64_t end = rte_rdtsc() + ticks;

	while (rte_rdtsc() < end)
		rte_pause();
}

// Until sgw answers; the first answer tells where its sequence numbers are.
static void
connect_both(void)
{
	struct rte_mbuf *pkts[BURST];

	for (int tries = 0; tries < 200; tries++) {
		uint16_t n;

		send_one();
		spin((uint64_t)(hz / 20));
		n = rte_eth_rx_burst(1, 0, pkts, BURST);
		if (n == 0)
			continue;
		next_seq = sequence(pkts[n - 1]) + 1;
		rte_pktmbuf_free_bulk(pkts, n);
		n_sent = n_back = 0;
		return;
	}
	die("nothing comes back");
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double
percentile(double part)
{
	uint32_t at = (uint32_t)(part * (n_samples - 1));

	return n_samples > 0 ? samples[at] / hz * 1e6 : -1;
}

static void
report(const char *what, const char *of, double number)
{
	uint64_t sent = n_sent, end = rte_rdtsc() + (uint64_t)(hz * LOST_MS / 1000);

	while (n_back < n_sent && rte_rdtsc() < end)
		receive();
	qsort(samples, n_samples, sizeof(*samples), compare);
	printf("{\"what\": \"%s\", \"%s\": %.0f, \"sent\": %lu, \"lost\": %lu, \"min_us\": %.1f, "
	       "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n", what, of,
	       number, sent, sent - n_back, percentile(0), percentile(0.5), percentile(0.99),
	       percentile(0.999), percentile(1));
	fflush(stdout);
	clear();
}

// One packet, and the next one so long after it is back.
static void
lone(double gap_us, double seconds)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * hz);

	clear();
	while (rte_rdtsc() < end) {
		uint64_t lost = rte_rdtsc() + (uint64_t)(hz * LOST_MS / 1000);

		spin((uint64_t)(gap_us * hz / 1e6));
		send_one();
		while (n_back < n_sent && rte_rdtsc() < lost)
			receive();
	}
	report("lone", "gap_us", gap_us);
}

// As many as fit through. @return packets a second
static double
capacity(double seconds)
{
	uint64_t began = rte_rdtsc(), end = began + (uint64_t)(seconds * hz);
	double pps;

	clear();
	while (rte_rdtsc() < end) {
		for (int i = 0; i < BURST && n_sent - n_back < WINDOW; i++)
			send_one();
		receive();
	}
	pps = (double)n_back / ((double)(rte_rdtsc() - began) / hz);
	printf("{\"what\": \"capacity\", \"pps\": %.0f}\n", pps);
	fflush(stdout);
	clear();
	return pps;
}

// One packet every 1/pps s; what could not be sent in time is sent late, not left out.
static void
loaded(double pps, int percent, double seconds)
{
	uint64_t began, ticks = (uint64_t)(hz / pps * 100 / percent), due, end;

	clear();
	began = due = rte_rdtsc();
	end = began + (uint64_t)(seconds * hz);
	while (rte_rdtsc() < end) {
		if (rte_rdtsc() >= due && n_sent - n_back < FLIGHT / 2) {
			due += ticks;
			send_one();
		}
		receive();
	}
	report("load", "percent", percent);
}

int
main(int argc, char **argv)
{
	static const double gaps_us[] = {30, 100, 300, 1000, 10000};
	static const int percents[] = {10, 50, 90};
	int used = rte_eal_init(argc, argv);
	double seconds, pps;

	if (used < 0 || argc - used != 4 || rte_eth_dev_count_avail() != 2)
		die("needs two net_memif, and -- MAC-OF-SGW FRAME-BYTES SECONDS");
	argv += used;
	frame_len = (uint16_t)RTE_MIN(RTE_MAX(atoi(argv[2]), 60), (int)sizeof(frame));
	seconds = atof(argv[3]);
	hz = (double)rte_get_tsc_hz();
	make_frame(argv[1]);
	samples = malloc(SAMPLES * sizeof(*samples));
	pool = rte_pktmbuf_pool_create("pingpong", 8191, 128, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       (int)rte_socket_id());
	if (samples == NULL || pool == NULL)
		die("no memory");
	open_port(0);
	open_port(1);
	connect_both();
	for (unsigned int i = 0; i < RTE_DIM(gaps_us); i++)
		lone(gaps_us[i], seconds);
	pps = capacity(seconds);
	for (unsigned int i = 0; i < RTE_DIM(percents); i++)
		loaded(pps, percents[i], seconds);
	rte_eal_cleanup();
	return 0;
}
