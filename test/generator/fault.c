/* SPDX-License-Identifier: BSD-3-Clause */
// sgw-bench-fault: sgw-bench itself behind a port that does harm on purpose, and keeps an
// account of its own of what it did. $SGW_PORT says what, with commas between:
//
//   lose=N dup=N swap=N:D corrupt=N:OFFSET foreign=N   every Nth frame of traffic
//   foreign=N:LAST                                     the same up to the LASTth
//   limit=PPS                                          a token bucket
//   soft=PPS                                           beyond it loses a tenth of the excess
//   down=FROM:FOR                                      link down, ms after the start
//   missed=N                                           the port says that it missed N frames
//
// swap=N:D moves every Nth frame behind the D that follow; corrupt flips a bit that many bytes
// behind the start of the IP header, and mends no checksum. The account is printed at the end:
// `port: seen A lost B … span S`, the last being seconds from the first frame to the last.
// Never installed.
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define L2_LEN 14
#define HELD_MAX 64
#define BUCKET_MS 20 // that the bucket holds

// The real function and what stands in its place.
#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static struct {
	uint64_t lose, dup, swap, swap_by, corrupt, corrupt_at, foreign, foreign_to, down_from,
		down_for, missed;
	double limit, soft;
} want;

static struct {
	uint64_t seen, lost, duplicated, swapped, corrupted, foreign;
} did;

static uint64_t started;                      // TSC
static struct timespec first_seen, last_seen; // by the kernel's clock, not by the TSC
static struct rte_mbuf *held;                 // being overtaken
static uint64_t held_for;                     // frames that must still pass it

static void
read_wants(void)
{
	const char *text = getenv("SGW_PORT");
	static const struct {
		const char *key;
		uint64_t *a, *b;
	} keys[] = {
		{"lose=", &want.lose, NULL},
		{"dup=", &want.dup, NULL},
		{"swap=", &want.swap, &want.swap_by},
		{"corrupt=", &want.corrupt, &want.corrupt_at},
		{"foreign=", &want.foreign, &want.foreign_to},
		{"down=", &want.down_from, &want.down_for},
		{"missed=", &want.missed, NULL},
	};
	char copy[256], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", text != NULL ? text : "");
	for (char *w = strtok_r(copy, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
		char *end = NULL;

		for (size_t i = 0; i < RTE_DIM(keys); i++)
			if (strncmp(w, keys[i].key, strlen(keys[i].key)) == 0) {
				*keys[i].a = strtoull(w + strlen(keys[i].key), &end, 10);
				if (keys[i].b != NULL && *end == ':')
					*keys[i].b = strtoull(end + 1, &end, 10);
			}
		if (strncmp(w, "limit=", 6) == 0)
			want.limit = strtod(w + 6, &end);
		if (strncmp(w, "soft=", 5) == 0)
			want.soft = strtod(w + 5, &end);
		if (end == NULL || *end != '\0') {
			fprintf(stderr, "sgw-bench-fault: SGW_PORT: \"%s\"\n", w);
			exit(70);
		}
	}
}

// May one more pass at this rate?
static bool
bucket(double pps)
{
	static double tokens;
	static uint64_t last;
	uint64_t now = rte_rdtsc();
	double most = pps * BUCKET_MS / 1000;

	tokens += (double)(now - last) * pps / (double)rte_get_tsc_hz();
	last = now;
	tokens = tokens > most ? most : tokens;
	if (tokens < 1)
		return false;
	tokens -= 1;
	return true;
}

static bool
every(uint64_t n)
{
	return n != 0 && did.seen % n == 0;
}

static bool
is_lost(void)
{
	static uint64_t excess;

	if (every(want.lose) || (want.limit > 0 && !bucket(want.limit)))
		return true;
	return want.soft > 0 && !bucket(want.soft) && ++excess % 10 == 0;
}

static bool
is_traffic(struct rte_mbuf *m)
{
	const uint8_t *l2 = rte_pktmbuf_mtod(m, const uint8_t *);

	return (l2[12] == 0x08 && l2[13] == 0x00 && l2[L2_LEN + 9] == 17) ||
	       (l2[12] == 0x86 && l2[13] == 0xdd && l2[L2_LEN + 6] == 17);
}

// The frames of one, in their order. @return how many
static uint16_t
harm(struct rte_mbuf *m, struct rte_mbuf **out)
{
	uint16_t n = 0;

	did.seen++;
	clock_gettime(CLOCK_MONOTONIC, did.seen == 1 ? &first_seen : &last_seen);
	if (is_lost()) {
		did.lost++;
		rte_pktmbuf_free(m);
		return 0;
	}
	if (every(want.corrupt)) {
		rte_pktmbuf_mtod(m, uint8_t *)[L2_LEN + want.corrupt_at] ^= 0x40;
		did.corrupted++;
	}
	if (every(want.swap) && held == NULL) {
		held = m;
		held_for = want.swap_by;
		did.swapped++;
		return 0;
	}
	out[n++] = m;
	if (every(want.dup)) {
		out[n] = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
		did.duplicated += out[n] != NULL;
		n += out[n] != NULL;
	}
	if (every(want.foreign) && (want.foreign_to == 0 || did.seen < want.foreign_to)) {
		// another port's
		out[n] = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
		if (out[n] != NULL) {
			uint8_t *ip = rte_pktmbuf_mtod_offset(out[n], uint8_t *, L2_LEN);

			ip[(ip[0] >> 4 == 4 ? 20 : 40) + 3] ^= 1;
			did.foreign++;
			n++;
		}
	}
	if (held != NULL && --held_for == 0) {
		out[n++] = held;
		held = NULL;
	}
	return n;
}

// What was received is held back in a queue, for there can be more of it afterwards.
static struct rte_mbuf *queue[4096];
static uint32_t queue_n;

static uint16_t
on_receive(uint16_t port, uint16_t q, struct rte_mbuf *pkts[], uint16_t n, uint16_t max, void *arg)
{
	for (uint16_t i = 0; i < n; i++) {
		if (queue_n + 4 > RTE_DIM(queue)) {
			fprintf(stderr, "sgw-bench-fault: queue\n");
			exit(70);
		}
		if (is_traffic(pkts[i]))
			queue_n += harm(pkts[i], queue + queue_n);
		else
			queue[queue_n++] = pkts[i];
	}
	n = (uint16_t)RTE_MIN(queue_n, (uint32_t)max);
	memcpy(pkts, queue, n * sizeof(queue[0]));
	memmove(queue, queue + n, (queue_n - n) * sizeof(queue[0]));
	queue_n -= n;
	return n;
}

static void
print_account(void)
{
	if (held != NULL)
		did.lost++; // nothing came behind it any more
	fprintf(stderr,
		"port: seen %lu lost %lu duplicated %lu swapped %lu corrupted %lu foreign %lu "
		"span %.9f\n",
		did.seen, did.lost, did.duplicated, did.swapped, did.corrupted, did.foreign,
		(double)(last_seen.tv_sec - first_seen.tv_sec) +
			(double)(last_seen.tv_nsec - first_seen.tv_nsec) / 1e9);
}

WRAP(int, rte_eth_dev_start, uint16_t port)
{
	static uint16_t n;

	if (n++ == 0) {
		read_wants();
		atexit(print_account);
		started = rte_rdtsc();
	}
	if (port == rte_eth_find_next(RTE_MAX_ETHPORTS - 1) ||
	    rte_eth_dev_count_avail() == port + 1u)
		rte_eth_add_rx_callback(port, 0, on_receive, NULL); // the last: -r
	return __real_rte_eth_dev_start(port);
}

WRAP(int, rte_eth_link_get_nowait, uint16_t port, struct rte_eth_link *link)
{
	uint64_t ms = (rte_rdtsc() - started) / (rte_get_tsc_hz() / 1000);
	int rc = __real_rte_eth_link_get_nowait(port, link);

	if (want.down_for != 0 && ms >= want.down_from && ms < want.down_from + want.down_for)
		link->link_status = RTE_ETH_LINK_DOWN;
	return rc;
}

WRAP(int, rte_eth_stats_get, uint16_t port, struct rte_eth_stats *stats)
{
	static uint64_t calls;
	int rc = __real_rte_eth_stats_get(port, stats);

	// From the first trial on; before it the generator asks twice.
	if (want.missed != 0 && ++calls > 2)
		stats->imissed += want.missed * (calls / 2);
	return rc;
}
