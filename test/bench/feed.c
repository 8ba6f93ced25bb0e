// SPDX-License-Identifier: BSD-3-Clause
// Preloaded (LD_PRELOAD) into each program that is measured, so that all of them get their packets
// in the same way and are counted by the same hand. It takes the place of two functions of ethdev,
// looks which port is started, and puts itself between the program and the driver:
//
//   BENCH_PAGE     file of struct page, shared with the harness
//   BENCH_RX_PORT  name of the device whose receive function is counted, or replaced:
//   BENCH_FEED     a file that mkesp wrote; each packet of it is delivered once, in order. Without
//                  it the driver's own receive function delivers (net_pcap with infinite_rx)
//   BENCH_TX_PORT  name of the device whose transmit function is counted
//
// Packets of a driver come as fast as they are taken, or at page.rate a second, page.train at once.
//
// What it adds is a few cycles a burst, the same for every program.
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_MAGIC 0x53475742
#define SAMPLE_MAX 2048
#define RING 1024 // what a NIC would have kept while nobody looked
#define LINE __attribute__((aligned(64)))

// measure.py knows these offsets.
struct page {
	uint32_t magic;
	volatile uint32_t go;    // set by the harness: deliver
	uint64_t tsc_hz;
	volatile uint64_t limit; // stop the process when so many packets came; 0: no limit
	volatile uint64_t rate;  // packets a second of the driver; 0: all that it has
	volatile uint64_t train; // so many of these at once; 0 or 1: evenly in time
	uint64_t polls LINE;     // while there is no go
	uint64_t rx_packets LINE;
	uint64_t tx_packets LINE;
	uint64_t tx_bytes;
	uint32_t sample_len LINE; // the first packet that was transmitted
	uint8_t sample[SAMPLE_MAX];
};

// Of a feed file: the packets follow, each behind its length, on 16 bytes.
struct feed_head {
	char magic[8];
	uint64_t n;
};

static struct page *page;
static struct rte_mempool *pool;
static const uint8_t *feed_at;
static uint64_t feed_left;
static eth_rx_burst_t real_rx;
static eth_tx_burst_t real_tx;
static uint16_t rx_port;

static void
die(const char *what)
{
	perror(what);
	_exit(99);
}

static void *
map(const char *path, int prot, int flags, size_t min)
{
	int fd = open(path, prot & PROT_WRITE ? O_RDWR : O_RDONLY);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size < min)
		die(path);
	p = mmap(NULL, (size_t)st.st_size, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		die(path);
	close(fd);
	return p;
}

// A window by packets ends here, not when the harness happens to look: a lap is not endless.
static bool
at_limit(void)
{
	uint64_t limit = page->limit;

	if (likely(limit == 0 || page->rx_packets < limit))
		return false;
	kill(getpid(), SIGSTOP);
	return true;
}

// How many of n are there by now at page->rate.
static uint16_t
due(uint16_t n)
{
	static uint64_t rate, since, given;
	uint64_t wanted = page->rate, now, all;

	if (likely(wanted == 0)) {
		rate = 0;
		return n;
	}
	now = rte_rdtsc();
	if (wanted != rate) {
		rate = wanted;
		since = now;
		given = 0;
	}
	all = (uint64_t)((unsigned __int128)(now - since) * rate / page->tsc_hz);
	if (page->train > 1)
		all -= all % page->train;
	if (all < given) // the trains have become longer
		return 0;
	if (all - given > RING)
		given = all - RING;
	n = (uint16_t)RTE_MIN((uint64_t)n, all - given);
	given += n;
	return n;
}

static uint16_t
rx_count(void *q, struct rte_mbuf **m, uint16_t n)
{
	if (at_limit())
		return 0;
	n = due(n);
	if (n == 0)
		return 0;
	n = real_rx(q, m, n);
	page->rx_packets += n;
	return n;
}

// The buffers are of the program's own pool, as a driver's would be.
static uint16_t
rx_feed(void *q, struct rte_mbuf **m, uint16_t n)
{
	(void)q;
	if (!page->go) {
		page->polls++;
		return 0;
	}
	if (at_limit())
		return 0;
	n = (uint16_t)RTE_MIN((uint64_t)n, feed_left);
	if (n == 0 || rte_pktmbuf_alloc_bulk(pool, m, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = *(const uint32_t *)feed_at;

		rte_memcpy(rte_pktmbuf_mtod(m[i], void *), feed_at + sizeof(len), len);
		m[i]->data_len = (uint16_t)len;
		m[i]->pkt_len = len;
		m[i]->port = rx_port;
		feed_at += RTE_ALIGN_CEIL(sizeof(len) + len, 16);
	}
	feed_left -= n;
	page->rx_packets += n;
	return n;
}

static void
take_sample(const struct rte_mbuf *m)
{
	uint32_t len = RTE_MIN(m->data_len, (uint32_t)SAMPLE_MAX);

	memcpy(page->sample, rte_pktmbuf_mtod(m, const void *), len);
	page->sample_len = len;
}

// net_null takes all that it is given, so the bytes may be added before.
static uint16_t
tx_count(void *q, struct rte_mbuf **m, uint16_t n)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	if (unlikely(page->sample_len == 0) && n > 0)
		take_sample(m[0]);
	n = real_tx(q, m, n);
	page->tx_packets += n;
	page->tx_bytes += bytes;
	return n;
}

static bool
is_port(uint16_t port, const char *env)
{
	const char *name = getenv(env);
	uint16_t id;

	return name != NULL && rte_eth_dev_get_port_by_name(name, &id) == 0 && id == port;
}

static void
take_rx(uint16_t port)
{
	const char *feed = getenv("BENCH_FEED");
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];

	rx_port = port;
	real_rx = ops->rx_pkt_burst;
	ops->rx_pkt_burst = rx_count;
	if (feed == NULL)
		return;
	const struct feed_head *h = map(feed, PROT_READ, MAP_SHARED | MAP_POPULATE, sizeof(*h));

	if (memcmp(h->magic, "sgwfeed1", 8) != 0)
		die("feed: not made by mkesp");
	feed_at = (const uint8_t *)(h + 1);
	feed_left = h->n;
	ops->rx_pkt_burst = rx_feed;
}

// ---------------------------------------------------------------- in the place of ethdev's

int
rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t n_desc, unsigned int socket,
		       const struct rte_eth_rxconf *conf, struct rte_mempool *mp)
{
	int (*real)(uint16_t, uint16_t, uint16_t, unsigned int, const struct rte_eth_rxconf *,
		    struct rte_mempool *) = dlsym(RTLD_NEXT, "rte_eth_rx_queue_setup");

	if (is_port(port, "BENCH_RX_PORT"))
		pool = mp;
	return real(port, queue, n_desc, socket, conf, mp);
}

int
rte_eth_dev_start(uint16_t port)
{
	int (*real)(uint16_t) = dlsym(RTLD_NEXT, "rte_eth_dev_start");
	int rc = real(port);

	if (rc != 0 || getenv("BENCH_PAGE") == NULL)
		return rc;
	if (page == NULL) {
		page = map(getenv("BENCH_PAGE"), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			   sizeof(*page));
		page->magic = PAGE_MAGIC;
		page->tsc_hz = rte_get_tsc_hz();
	}
	if (is_port(port, "BENCH_RX_PORT"))
		take_rx(port);
	if (is_port(port, "BENCH_TX_PORT")) {
		real_tx = rte_eth_fp_ops[port].tx_pkt_burst;
		rte_eth_fp_ops[port].tx_pkt_burst = tx_count;
	}
	return rc;
}
