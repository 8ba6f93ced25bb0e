/* SPDX-License-Identifier: BSD-3-Clause */
// sgw: the order of start and stop, and the control thread's loop; nothing else.
#include "args.h"
#include "config.h"
#include "crypto.h"
#include "eal.h"
#include "frag.h"
#include "headroom.h"
#include "lifetime.h"
#include "log.h"
#include "mb.h"
#include "pkt.h"
#include "pool.h"
#include "port.h"
#include "reserve.h"
#include "sa.h"
#include "state.h"
#include "stats.h"
#include "tables.h"
#include "telemetry.h"
#include "worker.h"
#include "workers.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MEM_BASE_MB 272  // the small forwarding tables, SAs, queues
#define ROUTE_BYTES 6000 // of a long route in the forwarding tables, at most
#define POLICY_BYTES 2048 // of a policy, at most
#define MBUF_BYTES 3072  // of a packet buffer at the usual MTU, with everything
#define MBUFS_WORKER 640 // in a worker's cache and hands
#define MBUFS_SPARE 1024 // waiting for neighbours, made by sgw itself
#define STOP_S 4         // for all workers to end

// Everything that lives from start to stop, in the order in which it is made.
struct gateway {
	struct config *config;
	struct state *state;
	bool eal;          // was started
	bool crypto;
	struct mb_manager *mb; // expands keys
	struct rte_mempool *pool;
	struct rte_mempool *big; // for reassembly
	struct port *ports;
	uint32_t n_ports;  // opened
	struct sa **sas;
	uint32_t n_sas;    // made
	struct tables *tables;
	bool reserved;     // sequence numbers were reserved in the state file
};

// The signals that stop sgw.
static void
fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static int
start_eal(const struct args *a, struct gateway *g, struct err *err)
{
	const struct config *c = g->config;
	uint64_t mbuf_bytes = MBUF_BYTES;
	uint32_t mem_mb;
	bool pci = false;
	int rc;

	for (uint32_t i = 0; i < c->n_ports; i++) {
		pci |= c->ports[i].kind != CFG_PORT_DEVICE;
		mbuf_bytes = RTE_MAX(mbuf_bytes, port_rx_max(&c->ports[i]) + 1536ull);
	}
	mem_mb = MEM_BASE_MB + (uint32_t)(c->mbufs * mbuf_bytes >> 20) + c->n_sas / 32 +
		 (uint32_t)((uint64_t)c->n_routes * ROUTE_BYTES >> 20) +
		 (uint32_t)((uint64_t)c->n_policies * POLICY_BYTES >> 20);
	rc = eal_start(a->eal_argc, a->eal_argv, c->name, pci, mem_mb, err);
	if (rc != 0)
		return rc;
	g->eal = true;
	n_workers = rte_lcore_count() - 1;
	if (n_workers == 0)
		return err_set(err, EXIT_USAGE, -EINVAL, "cores: sgw needs two, one for control and one worker; "
			       "say `-l 0-1`, or `--lcores '0@0,1@0'` to put both on one");
	if (n_workers > WORKER_MAX)
		return err_set(err, EXIT_USAGE, -EINVAL, "cores: %u workers, at most %d; name fewer with -l",
			       n_workers, WORKER_MAX);
	return 0;
}

// NICs hold a buffer in every descriptor; what is left must do for the workers.
static int
check_mbufs(const struct gateway *g, struct err *err)
{
	uint32_t need = n_workers * MBUFS_WORKER + MBUFS_SPARE, held = 0;

	for (uint32_t i = 0; i < g->n_ports; i++)
		held += g->ports[i].descriptors;
	if (held == 0 || g->config->mbufs >= held + need)
		return 0;
	return err_set(err, EXIT_CONFIG, -EINVAL, "system.mbufs: %u are too few, the queues of the NICs can "
		       "hold %u and %u workers need %u; write mbufs: %u or more", g->config->mbufs, held,
		       n_workers, need, held + need);
}

static int
start_port(struct gateway *g, uint32_t i, struct err *err)
{
	const struct cfg_port *cp = &g->config->ports[i];
	struct port *p = &g->ports[i];
	int rc;

	if (cp->kind == CFG_PORT_VLAN)
		return 0;
	rc = port_open(cp, p, err);
	if (rc != 0)
		return rc;
	for (uint32_t j = 0; j < i; j++)
		if (g->config->ports[j].kind != CFG_PORT_VLAN && g->ports[j].port_id == p->port_id)
			return err_set(err, EXIT_MACHINE, -EBUSY, "port %s: is the same device as port %s; give "
				       "each its own", cp->name, g->config->ports[j].name);
	rc = port_start(cp, p, (uint16_t)(workers_one_reader(g->config) ? 1 : n_workers), (uint16_t)n_workers,
			g->config->idle == CFG_IDLE_SLEEP, g->pool, err);
	if (rc != 0)
		port_close(p);
	return rc;
}

// All that can be missing on the machine is found before anything is written.
static int
start_ports(struct gateway *g, struct err *err)
{
	const struct config *c = g->config;
	uint16_t mtu = 0;

	for (uint32_t i = 0; i < c->n_ports; i++)
		mtu = RTE_MAX(mtu, port_rx_max(&c->ports[i]));
	g->pool = pool_create(c->mbufs, mtu, PKT_PRIV_SIZE, err);
	g->ports = calloc(c->n_ports, sizeof(*g->ports));
	if (g->pool == NULL || g->ports == NULL)
		return -ENOMEM;
	g->big = pool_create_big(n_workers * (REASS_CONTEXTS + REASS_SPARE), PKT_PRIV_SIZE, err);
	if (g->big == NULL)
		return -ENOMEM;
	for (; g->n_ports < c->n_ports; g->n_ports++)
		if (start_port(g, g->n_ports, err) != 0)
			return -1;
	// The subinterfaces last, their parents may stand behind them.
	for (uint32_t i = 0; i < c->n_ports; i++)
		if (c->ports[i].kind == CFG_PORT_VLAN)
			port_vlan(&c->ports[i], &g->ports[c->ports[i].parent], &g->ports[i]);
	return check_mbufs(g, err);
}

static int
start_sas(struct gateway *g, struct err *err)
{
	const struct config *c = g->config;
	uint32_t n_look_aside = 0;

	if (c->state != NULL && state_open(c->state, &g->state, err) != 0)
		return -1;
	for (uint32_t i = 0; i < c->n_sas; i++)
		n_look_aside += !sa_is_direct(&c->sas[i], c->crypto);
	if (n_look_aside > 0 && crypto_open((uint16_t)n_workers, n_look_aside, err) != 0)
		return -1;
	g->crypto = n_look_aside > 0;
	g->mb = mb_manager_create(err);
	if (g->mb == NULL)
		return -1;
	g->sas = calloc(c->n_sas + 1, sizeof(struct sa *));
	if (g->sas == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "no memory");
	for (; g->n_sas < c->n_sas; g->n_sas++) {
		const struct cfg_sa *sa = &c->sas[g->n_sas];

		g->sas[g->n_sas] = sa_create(sa, sa_is_direct(sa, c->crypto) ? g->mb : NULL, n_workers,
					     PKT_IV_OFFSET, g->state, err);
		if (g->sas[g->n_sas] == NULL)
			return -1;
	}
	return 0;
}

static int
start_workers(const struct gateway *g, struct err *err)
{
	const struct workers_prm prm = {
		.config = g->config, .ports = g->ports, .n_ports = g->n_ports,
		.tables = g->tables, .pool = g->pool, .big = g->big,
	};

	return workers_start(&prm, err);
}

// A worker that hangs in a driver must not keep the process: the reservation on disk
// lies above all that was used, so this is as safe as kill -9.
static void
give_up(int signo)
{
	static const char text[] = "sgw: error: a worker does not end, giving up without an account\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_RESOURCE);
}

// More signals change nothing: who sends one often sends it twice (timeout(1) does, to
// the process and to its group), and the account is worth the few seconds.
static void
stop_in_time(void)
{
	signal(SIGALRM, give_up);
	alarm(STOP_S);
}

static void
stop(struct gateway *g)
{
	bool ran;

	stop_in_time();
	telemetry_stop();
	ran = workers_end(g->tables);
	if (g->reserved)
		reserve_stop();
	for (uint32_t i = 0; i < g->n_ports; i++)
		if (g->config->ports[i].kind != CFG_PORT_VLAN)
			port_close(&g->ports[i]);
	if (ran)
		stats_account(g->tables, g->pool, stdout);
	tables_free(g->tables);
	for (uint32_t i = 0; i < g->n_sas; i++)
		sa_free(g->sas[i]);
	if (g->crypto)
		crypto_close();
	mb_manager_free(g->mb);
	if (g->state != NULL)
		state_close(g->state);
	workers_free();
	free(g->sas);
	free(g->ports);
	config_free(g->config);
}

// ---------------------------------------------------------------- the control thread

static uint64_t
total_received(void)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < n_workers; i++)
		for (unsigned int p = 0; p < WORKER_PORTS; p++)
			n += workers[i]->ports[p].rx_packets;
	return n;
}

// @return true when --exit-idle is over
static bool
idle_over(uint32_t limit_ms, uint64_t ticks)
{
	static uint64_t last, idle_ms;
	uint64_t now = total_received();

	idle_ms = now == last ? idle_ms + RESERVE_MS * ticks : 0;
	last = now;
	return limit_ms > 0 && idle_ms >= limit_ms;
}

static int
open_events(int *signals, int *timer)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = RESERVE_MS * 1000000L,
		.it_value.tv_nsec = RESERVE_MS * 1000000L,
	};
	struct epoll_event ev = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	sigset_t set;

	fill_signals(&set);
	*signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	*timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (epoll < 0 || *signals < 0 || *timer < 0 || timerfd_settime(*timer, 0, &every, NULL) != 0)
		return -1;
	ev.data.fd = *signals;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, *signals, &ev) != 0)
		return -1;
	ev.data.fd = *timer;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, *timer, &ev) == 0 ? epoll : -1;
}

static int
control_loop(const struct args *a, struct err *err)
{
	int signals, timer, epoll = open_events(&signals, &timer);

	if (epoll < 0)
		return err_set(err, EXIT_RESOURCE, -errno, "control thread: no event descriptors (%s)",
			       strerror(errno));
	for (;;) {
		struct epoll_event ev;
		struct signalfd_siginfo info;
		uint64_t ticks;

		if (epoll_wait(epoll, &ev, 1, -1) != 1)
			continue;
		if (ev.data.fd == signals && read(signals, &info, sizeof(info)) == sizeof(info)) {
			log_notice("stopping on SIG%s", sigabbrev_np((int)info.ssi_signo));
			return 0;
		}
		if (ev.data.fd == timer && read(timer, &ticks, sizeof(ticks)) == sizeof(ticks)) {
			reserve_tick(ticks);
			lifetime_tick();
			headroom_tick(rte_rdtsc());
			if (idle_over(a->exit_idle_ms, ticks)) {
				log_notice("stopping, nothing received for %u ms", a->exit_idle_ms);
				return 0;
			}
		}
	}
}

// Before any thread is made, so that all inherit it: signals come to signalfd alone.
static void
block_signals(void)
{
	sigset_t set;

	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

// Keys are in this process's memory: neither a core file nor a debugger of the
// same user gets them.
static void
protect_memory(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// Numbers are taken from the state file only when nothing can be missing any more.
static int
reserve(struct gateway *g, struct err *err)
{
	if (reserve_start(g->state, g->sas, g->n_sas, err) != 0)
		return -1;
	g->reserved = true;
	lifetime_start(g->sas, g->n_sas);
	return 0;
}

static int
run(const struct args *a, struct gateway *g, struct err *err)
{
	block_signals();
	if (start_eal(a, g, err) != 0 || start_ports(g, err) != 0 || start_sas(g, err) != 0)
		return -1;
	config_wipe_keys(g->config); // the crypto sessions have them now
	g->tables = tables_build(g->config, g->ports, g->sas, err);
	if (g->tables == NULL || reserve(g, err) != 0 || start_workers(g, err) != 0)
		return -1;
	headroom_start(rte_get_tsc_hz());
	telemetry_start(g->tables, g->pool);
	log_notice("ready: %s, %u port%s, %u worker%s, crypto with %s", g->config->name, g->n_ports,
		   g->n_ports == 1 ? "" : "s", n_workers, n_workers == 1 ? "" : "s",
		   mb_manager_isa(g->mb));
	return control_loop(a, err);
}

int
main(int argc, char **argv)
{
	struct gateway g = {0};
	struct err err = {0};
	struct args a;

	protect_memory(); // before any key is read
	if (args_parse(argc, argv, &a, &err) != 0) {
		log_error("%s", err.text);
		return err.kind;
	}
	if (a.help || a.version) {
		if (a.help)
			fputs(args_help, stdout);
		else
			printf("sgw %s, %s\n", SGW_VERSION, rte_version());
		return 0;
	}
	if (config_load(a.file, &g.config, stderr) != 0)
		return EXIT_CONFIG;
	if (a.check || a.dump) {
		if (a.dump)
			config_dump(g.config, stdout);
		config_free(g.config);
		return 0;
	}
	if (run(&a, &g, &err) != 0) {
		log_error("%s", err.text[0] != '\0' ? err.text : "no memory");
		err.kind = err.kind != 0 ? err.kind : EXIT_RESOURCE;
	}
	stop(&g);
	if (g.eal)
		rte_eal_cleanup();
	return err.kind;
}
