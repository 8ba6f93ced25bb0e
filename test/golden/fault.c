/* SPDX-License-Identifier: BSD-3-Clause */
// sgw-fault: sgw itself, in which one thing goes wrong that no capture can bring about, so
// that the reasons behind it have golden cases too. The linker puts each __wrap_ function
// below in the place of the one that it is named after, and $SGW_FAULT says which fault it
// is to be; without one nothing starts. It is never installed.
#include "args.h"
#include "flow.h"
#include "pkt.h"
#include "pool.h"
#include "reserve.h"
#include "sa.h"
#include "steer.h"
#include "tables.h"

#include <rte_cryptodev.h>
#include <rte_ethdev.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX 8192 // more than the mbufs of any golden case
#define BIG_FEW 2     // buffers for reassembly
#define RESERVED_FEW 3

// The real function and what stands in its place.
#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static const char *const faults[] = {"big",     "crypto",  "full-way", "headroom",  "loop",  "pool",
				     "prepare", "reserve", "short-way", "steer", "tx"};

static bool
is(const char *fault)
{
	const char *wanted = getenv("SGW_FAULT");

	return wanted != NULL && strcmp(wanted, fault) == 0;
}

WRAP(int, args_parse, int argc, char **argv, struct args *a, struct err *err)
{
	for (unsigned int i = 0; i < RTE_DIM(faults); i++)
		if (is(faults[i]))
			return __real_args_parse(argc, argv, a, err);
	return err_set(err, EXIT_USAGE, -EINVAL,
		       "sgw-fault: breaks sgw on purpose, for tests; SGW_FAULT names no fault that it knows");
}

// ---- librte_ipsec refuses the first packet of an SA's first burst, and no more ----

int __real_rte_ipsec_session_prepare(struct rte_ipsec_session *ss);

// No room behind a packet is what the library does look at, in both directions: so it
// sorts mbufs and ops by itself.
static uint16_t
prepare_refuse(const struct rte_ipsec_session *ss, struct rte_mbuf *pkts[],
	       struct rte_crypto_op *ops[], uint16_t n)
{
	struct rte_mbuf *first = pkts[0];
	uint16_t room = first->buf_len, good;

	__real_rte_ipsec_session_prepare((struct rte_ipsec_session *)(uintptr_t)ss);
	first->buf_len = (uint16_t)(first->data_off + first->data_len);
	good = rte_ipsec_pkt_crypto_prepare(ss, pkts, ops, n);
	first->buf_len = room;
	return good;
}

WRAP(int, rte_ipsec_session_prepare, struct rte_ipsec_session *ss)
{
	int rc = __real_rte_ipsec_session_prepare(ss);

	if (rc == 0 && is("prepare"))
		ss->pkt_func.prepare.async = prepare_refuse;
	return rc;
}

// ---- every second operation fails, in both forms ----

WRAP(void, mb_run, struct mb_manager *mgr, struct mb_work *works, uint16_t n)
{
	static unsigned int count;

	__real_mb_run(mgr, works, n);
	for (uint16_t i = 0; i < n && is("crypto"); i++)
		if (count++ % 2 == 1)
			works[i].failed = true;
}

static uint16_t
crypto_fail(uint16_t dev, uint16_t qp, struct rte_crypto_op **ops, uint16_t n, void *arg)
{
	static unsigned int count;

	for (uint16_t i = 0; i < n; i++)
		if (count++ % 2 == 1)
			ops[i]->status = RTE_CRYPTO_OP_STATUS_ERROR;
	return n;
}

WRAP(int, rte_cryptodev_start, uint8_t dev)
{
	int rc = __real_rte_cryptodev_start(dev);

	if (rc == 0 && is("crypto") &&
	    rte_cryptodev_add_deq_callback(dev, 0, crypto_fail, NULL) == NULL)
		return -ENOTSUP;
	return rc;
}

// ---- ports ----

// Takes half of what it is offered, so of a lone packet nothing.
static uint16_t
tx_half(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, void *arg)
{
	return n / 2;
}

// Packets come at the very front of their buffers.
static uint16_t
rx_front(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t max,
	 void *arg)
{
	for (uint16_t i = 0; i < n; i++) {
		memmove(pkts[i]->buf_addr, rte_pktmbuf_mtod(pkts[i], void *), pkts[i]->data_len);
		pkts[i]->data_off = 0;
	}
	return n;
}

// While sgw works on the first burst that comes by the first port, the pool has one
// buffer; with the next poll it gets all back.
static uint16_t
rx_drain(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t max,
	 void *arg)
{
	static struct rte_mbuf *held[HELD_MAX];
	static unsigned int n_held;
	static bool over;

	for (over |= n_held > 0; n_held > 0; n_held--)
		rte_pktmbuf_free(held[n_held - 1]);
	if (port != 0 || n == 0 || over)
		return n;
	while (n_held < HELD_MAX && (held[n_held] = rte_pktmbuf_alloc(pkts[0]->pool)) != NULL)
		n_held++;
	rte_pktmbuf_free(held[--n_held]);
	return n;
}

WRAP(int, rte_eth_dev_start, uint16_t port)
{
	const void *added = "nothing to add";

	if (is("tx") && port == 1)
		added = rte_eth_add_tx_callback(port, 0, tx_half, NULL);
	else if (is("headroom"))
		added = rte_eth_add_rx_callback(port, 0, rx_front, NULL);
	else if (is("pool"))
		added = rte_eth_add_rx_callback(port, 0, rx_drain, NULL);
	return added != NULL ? __real_rte_eth_dev_start(port) : -ENOTSUP;
}

// ---- what is made at start is less than it should be, or wrong ----

WRAP(struct rte_mempool *, pool_create_big, uint32_t n, uint16_t priv_size, struct err *err)
{
	return __real_pool_create_big(is("big") ? BIG_FEW : n, priv_size, err);
}

WRAP(int, reserve_start, struct state *state, struct sa **sas, uint32_t n_sas, struct err *err)
{
	int rc = __real_reserve_start(state, sas, n_sas, err);

	for (uint32_t i = 0; rc == 0 && is("reserve") && i < n_sas; i++)
		sas[i]->limit = sas[i]->sequence + RESERVED_FEW;
	return rc;
}

// The way to the peer of the first tunnel leads to ourselves, of the second into a tunnel;
// the checker lets nobody write that down.
WRAP(struct tables *, tables_build, const struct config *c, const struct port *ports,
     struct sa **sas, struct err *err)
{
	static const enum nexthop_kind kinds[] = {NEXTHOP_LOCAL, NEXTHOP_TUNNEL};
	struct tables *t = __real_tables_build(c, ports, sas, err);

	if (t == NULL || !is("loop"))
		return t;
	for (uint32_t i = 0; i < RTE_MIN(t->n_tunnels, RTE_DIM(kinds)); i++)
		for (uint32_t n = 0; n < t->n_nexthops; n++)
			if (t->nexthops[n].kind == kinds[i])
				t->tunnels[i].nexthop = (uint16_t)n;
	return t;
}

// ---- only the first worker works, until it all ends ----

// By a seed of its own each run would hand over another share of the flows, one in twelve less
// than the ring holds.
WRAP(uint64_t, rte_rand, void)
{
	return is("steer") ? 1 : __real_rte_rand();
}

WRAP(bool, flows_poll, struct worker *w)
{
	return (is("steer") && w->index > 0) ? false : __real_flows_poll(w);
}

// ---- all packets go the full way; or those that take the short one are counted, which is no
// fault, but tells test/interop/shortway.py that it compares two ways ----

static atomic_uint n_known, n_esp, n_inner;

static void __attribute__((destructor))
ways_tell(void)
{
	if (is("short-way"))
		fprintf(stderr, "short way: %u in clear, %u ESP, %u from inside\n", n_known, n_esp, n_inner);
}

WRAP(uint16_t, flow_take, struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
     uint16_t *n_taken, struct rte_mbuf **esp, uint16_t *n_taken_esp)
{
	if (!is("full-way")) {
		n = __real_flow_take(w, pkts, n, known, n_taken, esp, n_taken_esp);
		n_known += *n_taken;
		n_esp += *n_taken_esp;
		return n;
	}
	for (uint16_t i = 0; i < n; i++)
		pkt(pkts[i])->slot = (uint8_t)i;
	*n_taken = 0;
	*n_taken_esp = 0;
	return n;
}

WRAP(uint16_t, flow_take_inner, struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **known,
     uint16_t *n_taken)
{
	uint16_t before = *n_taken;

	if (is("full-way"))
		return n;
	n = __real_flow_take_inner(w, pkts, n, known, n_taken);
	n_inner += *n_taken - before;
	return n;
}

// How many errors may be told depends on the time, which is not what is compared.
WRAP(bool, bucket_take, struct bucket *b, const struct worker *w, uint32_t rate, uint32_t burst)
{
	return is("short-way") || is("full-way") || __real_bucket_take(b, w, rate, burst);
}
