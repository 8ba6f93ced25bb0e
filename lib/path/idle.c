/* SPDX-License-Identifier: BSD-3-Clause */
// What an outbound SA sends by itself when it has nothing to send: dummy packets
// (RFC 4303 section 2.6) and NAT keepalives (RFC 3948 section 2.3, 4).
#include "stage.h"

#include "cksum.h"
#include "esp.h"
#include "local.h"

#include <rte_ip.h>
#include <rte_random.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

#define DUMMY_MIN 40   // bytes inside; the length is drawn, so that it tells nothing
#define DUMMY_RANGE 512

// Has the SA been quiet for so long? The clock starts anew when it has.
static bool
quiet_for(struct sa *sa, uint64_t now, uint64_t *since, uint64_t *sequence, uint64_t ticks)
{
	uint64_t seq = atomic_load_explicit(&sa->sequence, memory_order_relaxed);

	if (seq != *sequence || *since == 0) {
		*sequence = seq;
		*since = now;
		return false;
	}
	if (now - *since < ticks)
		return false;
	*since = now;
	return true;
}

// The port that the tunnel leaves by: where what it sends by itself counts.
static uint16_t
way_out(const struct worker *w, const struct tunnel *t)
{
	return w->tables->nexthops[t->nexthop].port;
}

// An IP header of the SA's ends in front of what is in m already.
// @return where it stands, NULL: no room
static uint8_t *
put_header(struct rte_mbuf *m, const struct sa *sa, uint8_t proto)
{
	uint16_t len = m->data_len;
	uint16_t hl = sa->family == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, hl);

	if (ip == NULL)
		return NULL;
	memset(ip, 0, hl);
	if (sa->family == 4) {
		struct rte_ipv4_hdr *h = (void *)ip;

		h->version_ihl = RTE_IPV4_VHL_DEF;
		h->total_length = rte_cpu_to_be_16((uint16_t)(hl + len));
		h->time_to_live = LOCAL_TTL;
		h->next_proto_id = proto;
		memcpy(&h->src_addr, sa->src.b, 4);
		memcpy(&h->dst_addr, sa->dst.b, 4);
		cksum_ip4_set(h, sizeof(*h));
	} else {
		struct rte_ipv6_hdr *h = (void *)ip;

		h->vtc_flow = rte_cpu_to_be_32(6u << 28);
		h->payload_len = rte_cpu_to_be_16(len);
		h->proto = proto;
		h->hop_limits = LOCAL_TTL;
		memcpy(&h->src_addr, sa->src.b, 16);
		memcpy(&h->dst_addr, sa->dst.b, 16);
	}
	pkt(m)->family = sa->family;
	pkt(m)->proto = proto;
	pkt(m)->l4_off = hl;
	return ip;
}

static void
send_dummy(struct worker *w, const struct tunnel *t)
{
	struct rte_mbuf *m = local_alloc(w, way_out(w, t));
	uint16_t len = (uint16_t)(DUMMY_MIN + rte_rand_max(DUMMY_RANGE));
	uint8_t *data;

	if (m == NULL)
		return;
	data = (uint8_t *)rte_pktmbuf_append(m, RTE_MIN(len, t->mtu));
	for (uint32_t i = 0; data != NULL && i < m->pkt_len; i++)
		data[i] = (uint8_t)rte_rand();
	pkt(m)->family = FAMILY_DUMMY;
	// In transport mode the protocol of the packet becomes ESP's next header.
	if (t->transport && put_header(m, t->sa_out, NEXT_DUMMY) == NULL) {
		drop(w, m, DROP_no_headroom);
		return;
	}
	pkt(m)->tunnel = t;
	outbound_sealed(w, m);
}

static void
send_keepalive(struct worker *w, const struct tunnel *t)
{
	const struct sa *sa = t->sa_out;
	struct rte_mbuf *m = local_alloc(w, way_out(w, t));
	struct rte_udp_hdr udp = {
		.src_port = sa->natt_sport_be,
		.dst_port = sa->natt_dport_be,
		.dgram_len = rte_cpu_to_be_16(sizeof(udp) + 1),
	};
	uint8_t *data;

	if (m == NULL)
		return;
	data = (uint8_t *)rte_pktmbuf_append(m, sizeof(udp) + 1); // an empty buffer has the room
	memcpy(data, &udp, sizeof(udp));
	data[sizeof(udp)] = 0xff;
	if (sa->family == 6) {
		uint16_t sum = cksum_udp(6, sa->src.b, sa->dst.b, data, sizeof(udp) + 1);

		memcpy(data + offsetof(struct rte_udp_hdr, dgram_cksum), &sum, 2);
	}
	if (put_header(m, sa, IPPROTO_UDP) == NULL) {
		drop(w, m, DROP_no_headroom);
		return;
	}
	pkt(m)->tunnel = t;
	pkt(m)->nexthop = t->nexthop;
	pkt(m)->flags |= PKT_SEALED; // it goes the way of sealed packets, to the remote
	outbound_sealed(w, m);
}

void
idle_tick(struct worker *w)
{
	for (uint32_t i = 0; i < w->tables->n_timed; i++) {
		const struct tunnel *t = w->tables->timed[i];
		struct sa *sa = t->sa_out;

		if (atomic_load_explicit(&sa->expired, memory_order_relaxed))
			continue;
		if (sa->dummy_ms != 0 && quiet_for(sa, w->now, &sa->quiet[0].since, &sa->quiet[0].sequence,
						   sa->dummy_ms * (w->hz / 1000)))
			send_dummy(w, t);
		if (sa->keepalive_s != 0 && quiet_for(sa, w->now, &sa->quiet[1].since,
						      &sa->quiet[1].sequence, sa->keepalive_s * w->hz))
			send_keepalive(w, t);
	}
}
