/* SPDX-License-Identifier: BSD-3-Clause */
// Counters for who asks on DPDK's telemetry socket. Lists give names, info gives
// one; a dictionary holds 256 entries and a reply 16 kB (docs/librte.md, trap 25).
#include "telemetry.h"

#include "compat.h"
#include "headroom.h"
#include "mb.h"
#include "neigh.h"
#include "sa.h"
#include "stage.h"
#include "stats.h"
#include "text.h"

#include <rte_cycles.h>
#include <rte_mempool.h>
#include <rte_telemetry.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define LIST_MAX 200 // entries of a list in one reply; `list,N` starts at the Nth

static const struct tables *tables;
static struct rte_mempool *packets;

static struct rte_tel_data *
dict_new(void)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d != NULL)
		rte_tel_data_start_dict(d);
	return d;
}

// The reasons that happened, of one class, as a dictionary inside another.
static void
add_ended(struct rte_tel_data *d, const char *name, const uint64_t *ended, enum drop_class class)
{
	struct rte_tel_data *sub = dict_new();

	if (sub == NULL)
		return;
	for (unsigned int r = 0; r < DROP_COUNT; r++)
		if (ended[r] != 0 && drop_infos[r].class == class)
			rte_tel_data_add_dict_uint(sub, drop_infos[r].name, ended[r]);
	rte_tel_data_add_dict_container(d, name, sub, 0);
}

static uint32_t
first_of(const char *params)
{
	uint64_t n;

	if (params == NULL || text_u64(params, &n) != 0 || n > UINT32_MAX - LIST_MAX)
		return params == NULL ? 0 : UINT32_MAX - LIST_MAX; // beyond every list
	return (uint32_t)n;
}

static int
port_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; i < tables->n_ports; i++)
		rte_tel_data_add_array_string(d, tables->ports[i].name);
	return 0;
}

static int
port_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	for (uint32_t i = 0; params != NULL && i < tables->n_ports; i++) {
		struct port_stats s;

		if (strcmp(params, tables->ports[i].name) != 0)
			continue;
		stats_port(i, &s);
		rte_tel_data_start_dict(d);
		rte_tel_data_add_dict_string(d, "name", tables->ports[i].name);
		rte_tel_data_add_dict_uint(d, "mtu", tables->ports[i].mtu);
		rte_tel_data_add_dict_uint(d, "rx_packets", s.rx_packets);
		rte_tel_data_add_dict_uint(d, "rx_bytes", s.rx_bytes);
		rte_tel_data_add_dict_uint(d, "originated", s.originated);
		rte_tel_data_add_dict_uint(d, "sent_on", s.sent_on);
		rte_tel_data_add_dict_uint(d, "tx_packets", s.tx_packets);
		rte_tel_data_add_dict_uint(d, "tx_bytes", s.tx_bytes);
		add_ended(d, "drops", s.ended, DROP_CLASS_DROP);
		add_ended(d, "taken", s.ended, DROP_CLASS_TAKEN);
		return 0;
	}
	return -EINVAL;
}

static int
sa_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	uint32_t first = first_of(params);

	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (uint32_t i = first; i < tables->n_sas && i < first + LIST_MAX; i++)
		rte_tel_data_add_array_string(d, tables->sas[i]->name);
	return 0;
}

static void
sa_describe(struct sa *sa, struct rte_tel_data *d)
{
	char text[ADDR_STRLEN];
	struct sa_stats s;

	sa_stats_sum(sa, &s);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", sa->name);
	rte_tel_data_add_dict_uint(d, "spi", sa->spi);
	rte_tel_data_add_dict_string(d, "direction", sa->inbound ? "in" : "out");
	rte_tel_data_add_dict_string(d, "src", addr_format(&sa->src, text));
	rte_tel_data_add_dict_string(d, "dst", addr_format(&sa->dst, text));
	rte_tel_data_add_dict_string(d, "tunnel", sa->tunnel->name);
	rte_tel_data_add_dict_string(d, "cipher", alg_get(sa->cipher)->name);
	if (sa->auth != ALG_NONE)
		rte_tel_data_add_dict_string(d, "auth", alg_get(sa->auth)->name);
	rte_tel_data_add_dict_string(d, "engine", sa->key != NULL ? "direct" : "look-aside");
	rte_tel_data_add_dict_string(d, "fingerprint", sa->fingerprint);
	rte_tel_data_add_dict_uint(d, "packets", s.packets);
	rte_tel_data_add_dict_uint(d, "bytes", s.bytes);
	if (sa->inbound) {
		rte_tel_data_add_dict_uint(d, "sequence", sa->replay->top);
		rte_tel_data_add_dict_uint(d, "replay_window", sa->replay->size);
	} else {
		rte_tel_data_add_dict_uint(d, "sequence", atomic_load(&sa->sequence));
		rte_tel_data_add_dict_uint(d, "reserved", atomic_load(&sa->limit));
		uint16_t mtu = pmtu_inner_at(sa->tunnel, rte_rdtsc());

		// Largest packet to be sealed, as the path is now, and TCP's MSS in it.
		rte_tel_data_add_dict_uint(d, "mtu", mtu);
		rte_tel_data_add_dict_uint(d, "mss_ipv4", mtu > 40 ? mtu - 40 : 0);
		rte_tel_data_add_dict_uint(d, "mss_ipv6", mtu > 60 ? mtu - 60 : 0);
	}
	add_ended(d, "drops", s.ended, DROP_CLASS_DROP);
	add_ended(d, "taken", s.ended, DROP_CLASS_TAKEN);
}

static int
sa_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	for (uint32_t i = 0; params != NULL && i < tables->n_sas; i++) {
		if (strcmp(params, tables->sas[i]->name) == 0) {
			sa_describe(tables->sas[i], d);
			return 0;
		}
	}
	return -EINVAL;
}

static int
drop_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	uint64_t total[DROP_COUNT] = {0};

	for (uint32_t i = 0; i < tables->n_ports; i++) {
		struct port_stats s;

		stats_port(i, &s);
		for (unsigned int r = 0; r < DROP_COUNT; r++)
			total[r] += s.ended[r];
	}
	rte_tel_data_start_dict(d);
	for (unsigned int r = 0; r < DROP_COUNT; r++)
		rte_tel_data_add_dict_uint(d, drop_infos[r].name, total[r]);
	return 0;
}

// Telemetry silently leaves out keys with anything but letters, digits and '_'.
static const char *
as_key(const char *name, char buf[static CFG_NAME_MAX])
{
	size_t i;

	for (i = 0; name[i] != '\0' && i < CFG_NAME_MAX - 1; i++)
		buf[i] = name[i] == '-' || name[i] == '.' ? '_' : name[i];
	buf[i] = '\0';
	return buf;
}

static int
drop_info_cmd(const char *cmd, const char *params, struct rte_tel_data *d)
{
	for (unsigned int r = 0; params != NULL && r < DROP_COUNT; r++) {
		if (strcmp(params, drop_infos[r].name) != 0)
			continue;
		rte_tel_data_start_dict(d);
		rte_tel_data_add_dict_string(d, "name", drop_infos[r].name);
		rte_tel_data_add_dict_string(d, "text", drop_infos[r].text);
		for (uint32_t i = 0; i < tables->n_ports; i++) {
			struct port_stats s;
			char key[CFG_NAME_MAX];

			stats_port(i, &s);
			rte_tel_data_add_dict_uint(d, as_key(tables->ports[i].name, key), s.ended[r]);
		}
		return 0;
	}
	return -EINVAL;
}

// The neighbours from the first that was asked for.
struct neigh_page {
	struct rte_tel_data *d;
	uint32_t skip;
	uint32_t left;
};

static void
neigh_line(const struct neigh_info *n, void *arg)
{
	struct neigh_page *page = arg;

	char line[160], addr[ADDR_STRLEN], mac[MAC_STRLEN];

	if (page->skip > 0) {
		page->skip--;
		return;
	}
	if (page->left == 0)
		return;
	page->left--;
	snprintf(line, sizeof(line), "%s %s %s %s", tables->ports[n->port].name,
		 addr_format(&n->addr, addr), mac_format(&n->mac, mac), neigh_state_name(n->state));
	rte_tel_data_add_array_string(page->d, line);
}

static int
neigh_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct neigh_page page = {.d = d, .skip = first_of(params), .left = LIST_MAX};

	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	neigh_walk(tables->neigh, neigh_line, &page);
	return 0;
}

static int
worker_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (unsigned int i = 0; i < n_workers; i++)
		rte_tel_data_add_array_int(d, (int)i);
	return 0;
}

static int
worker_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	uint32_t i = first_of(params);

	if (params == NULL || i >= n_workers)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_uint(d, "lcore", workers[i]->lcore);
	rte_tel_data_add_dict_uint(d, "rx_queues", workers[i]->n_rxqs);
	rte_tel_data_add_dict_string(d, "isa", mb_manager_isa(workers[i]->mb));
	rte_tel_data_add_dict_uint(d, "loops", workers[i]->loops);
	rte_tel_data_add_dict_uint(d, "busy_loops", workers[i]->busy_loops);
	rte_tel_data_add_dict_uint(d, "cycles", workers[i]->cycles);
	rte_tel_data_add_dict_uint(d, "busy_cycles", workers[i]->busy_cycles);
	rte_tel_data_add_dict_uint(d, "sleeps", workers[i]->doze.sleeps);
	rte_tel_data_add_dict_uint(d, "wakes_by_interrupt", workers[i]->doze.wakes);
	rte_tel_data_add_dict_uint(d, "turn_cycles", workers[i]->turn_cycles);
	rte_tel_data_add_dict_uint(d, "handed_over", workers[i]->handed_over);
	rte_tel_data_add_dict_uint(d, "taken_over", workers[i]->taken_over);
	rte_tel_data_add_dict_uint(d, "slots", workers[i]->slots);
	rte_tel_data_add_dict_uint(d, "icmp_suppressed", workers[i]->icmp_suppressed);
	rte_tel_data_add_dict_uint(d, "mbufs_free", rte_mempool_avail_count(packets));
	return 0;
}

static void
headroom_verdict(uint64_t headroom, uint64_t limit, bool at_least, struct rte_tel_data *d)
{
	if (headroom != 0)
		rte_tel_data_add_dict_uint(d, "headroom_permille", headroom);
	if (limit != 0) {
		rte_tel_data_add_dict_uint(d, "predicted_packets_per_s", limit);
		rte_tel_data_add_dict_string(d, "prediction", at_least ? "at least" : "full bursts");
	}
}

// The loads side by side, since one window is behind all of them.
static void
headroom_all(const struct headroom *h, struct rte_tel_data *d)
{
	struct rte_tel_data *loads = rte_tel_data_alloc();

	rte_tel_data_add_dict_uint(d, "packets_per_s", h->packets_s);
	if (h->state == HEADROOM_MEASURED)
		rte_tel_data_add_dict_uint(d, "nearest_worker", h->nearest);
	headroom_verdict(h->headroom, h->limit_s, h->workers[h->nearest].at_least, d);
	if (loads == NULL)
		return;
	rte_tel_data_start_array(loads, RTE_TEL_UINT_VAL);
	for (unsigned int i = 0; i < n_workers; i++)
		rte_tel_data_add_array_uint(loads, h->workers[i].load);
	rte_tel_data_add_dict_container(d, "worker_load_permille", loads, 0);
}

static void
headroom_one(const struct headroom *h, uint32_t i, struct rte_tel_data *d)
{
	const struct headroom_worker *w = &h->workers[i];

	rte_tel_data_add_dict_uint(d, "packets_per_s", w->packets_s);
	rte_tel_data_add_dict_uint(d, "load_permille", w->load);
	rte_tel_data_add_dict_uint(d, "turn_permille", w->turn);
	if (h->state != HEADROOM_MEASURED)
		return;
	rte_tel_data_add_dict_uint(d, "burst_permille", w->burst);
	if (w->packet_cycles != 0)
		rte_tel_data_add_dict_uint(d, "cycles_per_packet", w->packet_cycles);
	if (w->full_cycles != 0)
		rte_tel_data_add_dict_uint(d, "cycles_per_packet_full", w->full_cycles);
	headroom_verdict(w->headroom, w->limit_s, w->at_least, d);
}

static int
headroom_cmd(const char *cmd, const char *params, struct rte_tel_data *d)
{
	uint32_t i = first_of(params);
	struct headroom h;

	if (params != NULL && i >= n_workers)
		return -EINVAL;
	headroom_read(rte_rdtsc(), &h);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "state", headroom_state_name(h.state));
	rte_tel_data_add_dict_uint(d, "window_ms", h.window_ms);
	rte_tel_data_add_dict_uint(d, "age_ms", h.age_ms);
	if (h.state == HEADROOM_STARTING)
		return 0;
	if (params == NULL)
		headroom_all(&h, d);
	else
		headroom_one(&h, i, d);
	return 0;
}

static const struct command {
	const char *name;
	telemetry_cb answer;
	const char *help;
} commands[] = {
	{"/sgw/port/list", port_list, "Names of the ports"},
	{"/sgw/port/info", port_info, "Counters of a port. Parameter: name"},
	{"/sgw/sa/list", sa_list, "Names of 200 SAs. Parameter: the first"},
	{"/sgw/sa/info", sa_info, "Counters of an SA. Parameter: name"},
	{"/sgw/drop/list", drop_list, "All drop reasons with their totals"},
	{"/sgw/drop/info", drop_info_cmd, "A drop reason, port by port. Parameter: reason"},
	{"/sgw/neigh/list", neigh_list, "200 neighbours: port address mac state. Parameter: the first"},
	{"/sgw/worker/list", worker_list, "Numbers of the workers"},
	{"/sgw/worker/info", worker_info, "A worker. Parameter: number"},
	{"/sgw/headroom", headroom_cmd, "How near the limit is. Parameter: worker; none: the gateway"},
};

// DPDK's telemetry threads run until the process ends, the tables do not.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int
dispatch(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc = -EINVAL;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; tables != NULL && i < RTE_DIM(commands); i++)
		if (strcmp(cmd, commands[i].name) == 0)
			rc = commands[i].answer(cmd, params, d);
	pthread_mutex_unlock(&lock);
	return rc;
}

void
telemetry_start(const struct tables *t, struct rte_mempool *pool)
{
	tables = t;
	packets = pool;
	for (unsigned int i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, dispatch, commands[i].help);
}

void
telemetry_stop(void)
{
	pthread_mutex_lock(&lock);
	tables = NULL;
	pthread_mutex_unlock(&lock);
}
