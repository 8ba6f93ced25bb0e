/* SPDX-License-Identifier: BSD-3-Clause */
#include "receive.h"

#include "clock.h"
#include "gateway.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include <netinet/in.h>
#include <string.h>

_Static_assert(RECEIVE_BURST <= 64, "gateway_open() takes a burst of sgw's");

void
receiver_begin(struct receiver *r, uint64_t key)
{
	memmove(r->keys + 1, r->keys, sizeof(r->keys) - sizeof(r->keys[0]));
	r->keys[0] = key;
	r->ns_per_tick = 1e9 * (1 << TIME_SHIFT) / clock_hz();
	memset(&r->out, 0, sizeof(r->out));
	if (r->shape != NULL)
		account_reset(&r->account);
	if (r->open != NULL)
		gateway_refused(r->open, &r->esp_bad0, &r->esp_replayed0);
	r->icmp_errors = 0;
	atomic_store(&r->received, 0);
}

void
receiver_end(struct receiver *r)
{
	uint64_t bad, replayed;

	r->out.received = r->account.received;
	r->out.duplicated = r->account.duplicated;
	r->out.reordered = r->account.reordered;
	r->out.extent = r->account.extent;
	if (r->open == NULL)
		return;
	gateway_refused(r->open, &bad, &replayed);
	r->out.esp_bad = bad - r->esp_bad0;
	r->out.esp_replayed = replayed - r->esp_replayed0;
}

// ---------------------------------------------------------------- of the stream

static void
count_good(struct receiver *r, const uint8_t *ip, const struct seen *seen, uint64_t now)
{
	const struct shape *s = r->shape;
	uint64_t before = r->account.received, seq;

	if (!s->signed_) { // nothing tells them apart
		r->account.received++;
		r->out.received_bytes += s->n_sizes == 1 ? s->l3[0] + 14u : 0;
		return;
	}
	seq = account_infer(&r->account, seen->flow, seen->seq);
	if (unlikely(!shape_is_long(s, ip, seen->flow, seq))) {
		r->out.corrupted++;
		return;
	}
	account_add(&r->account, seen->flow, seq);
	if (unlikely(r->account.received == before))
		return; // a duplicate
	r->out.received_bytes += shape_l3(s, seen->flow, seq) + (uint32_t)RTE_ETHER_HDR_LEN;
	hist_add(&r->out.latency,
		 (uint64_t)((uint32_t)((uint32_t)(now >> TIME_SHIFT) - seen->time) *
			    r->ns_per_tick));
}

static void
look(struct receiver *r, struct rte_mbuf *m, bool due_in_clear, uint64_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	struct seen seen;

	switch (shape_look(r->shape, ip, m->data_len, r->keys, &seen)) {
	case SEEN_GOOD:
		if (likely(due_in_clear))
			count_good(r, ip, &seen, now);
		else
			r->out.in_clear++;
		break;
	case SEEN_CORRUPTED:
		r->out.corrupted++;
		break;
	case SEEN_FOREIGN:
		r->out.foreign++;
		break;
	}
	rte_pktmbuf_free(m);
}

// ---------------------------------------------------------------- what it is

// An error message about what we sent tells more than a loss.
static bool
is_icmp_error(struct receiver *r, const uint8_t *ip, uint32_t len, bool counting)
{
	uint32_t off = ip[0] >> 4 == 4 ? (ip[0] & 15u) * 4 : 40;
	bool is;

	if (len < off + 8)
		return false;
	is = ip[0] >> 4 == 4 ?
		     ip[9] == IPPROTO_ICMP && (ip[off] == 3 || ip[off] == 11 || ip[off] == 12) :
		     ip[6] == IPPROTO_ICMPV6 && ip[off] < 128;
	if (is && counting) {
		r->icmp_errors++;
		r->icmp_type = ip[off];
		r->icmp_code = ip[off + 1];
	}
	return is;
}

// Neighbour discovery, MLD and the like are no traffic.
static bool
is_housekeeping(const uint8_t *ip)
{
	if (ip[0] >> 4 == 4)
		return ip[16] >> 4 == 0xe;
	return ip[24] == 0xff || (ip[6] == IPPROTO_ICMPV6 && ip[7] == 255);
}

// What is IP goes on, at its header; the rest is answered, counted, or let be.
// @return false: taken
static bool
take_frame(struct receiver *r, struct rte_mbuf *m, bool counting)
{
	uint8_t *l2 = rte_pktmbuf_mtod(m, uint8_t *), *ip;
	uint16_t off = RTE_ETHER_HDR_LEN, type;
	uint32_t len;

	if (m->nb_segs != 1 || m->data_len < RTE_ETHER_HDR_LEN) {
		r->out.foreign += counting;
		rte_pktmbuf_free(m);
		return false;
	}
	type = (uint16_t)(l2[12] << 8 | l2[13]);
	for (int tags = 0;
	     tags < 2 && (type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ) &&
	     m->data_len >= off + RTE_VLAN_HLEN;
	     tags++) {
		type = (uint16_t)(l2[off + 2] << 8 | l2[off + 3]);
		off += RTE_VLAN_HLEN;
	}
	len = m->data_len - off;
	ip = l2 + off;
	if (type == RTE_ETHER_TYPE_ARP) {
		end_arp(r->end, m, off);
		return false;
	}
	if ((type == RTE_ETHER_TYPE_IPV4 && len >= 20) ||
	    (type == RTE_ETHER_TYPE_IPV6 && len >= 40)) {
		if (type == RTE_ETHER_TYPE_IPV6 && is_solicitation(ip, len)) {
			end_solicited(r->end, m, off);
			return false;
		}
		if (!is_icmp_error(r, ip, len, counting) && !is_housekeeping(ip) && r->shape != NULL) {
			rte_pktmbuf_adj(m, off);
			return true;
		}
	}
	rte_pktmbuf_free(m);
	return false;
}

bool
receiver_poll(struct receiver *r)
{
	struct rte_mbuf *pkts[RECEIVE_BURST], *rest[RECEIVE_BURST];
	uint16_t n = rte_eth_rx_burst(r->end->port.port_id, 0, pkts, RECEIVE_BURST), n_ip = 0,
		 n_rest = 0;
	bool counting = atomic_load_explicit(&r->counting, memory_order_acquire);
	uint64_t now = rte_rdtsc();

	if (n == 0)
		return false;
	for (uint16_t i = 0; i < n; i++)
		if (take_frame(r, pkts[i], counting))
			pkts[n_ip++] = pkts[i];
	if (!counting) {
		rte_pktmbuf_free_bulk(pkts, n_ip);
		return true;
	}
	if (r->open != NULL)
		n_ip = gateway_open(r->open, pkts, n_ip, rest, &n_rest);
	for (uint16_t i = 0; i < n_ip; i++)
		look(r, pkts[i], true, now);
	for (uint16_t i = 0; i < n_rest; i++)
		look(r, rest[i], false, now);
	if (n_ip > 0) {
		r->last = now;
		atomic_store_explicit(&r->received, r->account.received, memory_order_relaxed);
	}
	return true;
}
