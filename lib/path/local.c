/* SPDX-License-Identifier: BSD-3-Clause */
// Packets to sgw itself: pings are answered, neighbour discovery goes to neigh,
// everything else is politely refused.
#include "local.h"

#include "cksum.h"
#include "stage.h"

#include <rte_icmp.h>
#include <rte_ip.h>

#include <netinet/in.h>
#include <string.h>

#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY 129
#define ND_FIRST 133 // router solicitation
#define ND_LAST 137  // redirect
#define IKE_PORT 500
#define NATT_PORT 4500
#define DSCP_MASK 0xfc // of the traffic class: ECN is not for us to echo

void
local_send(struct worker *w, struct rte_mbuf *m)
{
	if (w->n_local < LOCAL_MAX)
		w->local[w->n_local++] = m;
	else
		drop(w, m, DROP_local_queue_full);
}

// ---- echo (RFC 1122 section 3.2.2.6, RFC 4443 section 4.2) ----

// Cut off what stands between the basic IP header and ICMP: options and extension
// headers are the asker's business. @return the IP header at its new place
static void *
header_only(struct rte_mbuf *m, uint16_t basic)
{
	struct pkt *p = pkt(m);
	uint16_t extra = p->l4_off - basic;

	if (extra != 0) {
		uint8_t *old = rte_pktmbuf_mtod(m, uint8_t *);
		memmove(old + extra, old, basic);
		rte_pktmbuf_adj(m, extra);
		p->l4_off = basic;
	}
	return rte_pktmbuf_mtod(m, void *);
}

static void
turn4(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = header_only(m, sizeof(*ip));
	rte_be32_t src = ip->src_addr;

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->type_of_service &= DSCP_MASK;
	ip->total_length = rte_cpu_to_be_16(m->data_len);
	ip->time_to_live = LOCAL_TTL;
	ip->src_addr = ip->dst_addr;
	ip->dst_addr = src;
	cksum_ip4_set(ip, sizeof(*ip));
}

static void
turn6(struct rte_mbuf *m)
{
	struct rte_ipv6_hdr *ip = header_only(m, sizeof(*ip));
	uint8_t src[16];

	ip->vtc_flow &= rte_cpu_to_be_32(0xf0000000 | DSCP_MASK << RTE_IPV6_HDR_TC_SHIFT);
	ip->payload_len = rte_cpu_to_be_16(m->data_len - sizeof(*ip));
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = LOCAL_TTL;
	memcpy(src, ip->src_addr, sizeof(src));
	memcpy(ip->src_addr, ip->dst_addr, sizeof(src));
	memcpy(ip->dst_addr, src, sizeof(src));
}

// Turn a sound echo request around. In the pseudo header two addresses change
// places, which its sum does not notice.
static void
echo_answer(struct worker *w, struct rte_mbuf *m)
{
	struct pkt *p = pkt(m);
	uint8_t family = p->family;
	uint16_t secured = p->flags & PKT_SECURED, l4_off, was, is, sum;
	uint8_t *icmp;

	if (family == 4)
		turn4(m);
	else
		turn6(m);
	l4_off = p->l4_off;
	icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, l4_off);
	memcpy(&was, icmp, sizeof(was)); // type and code are one word
	icmp[0] = family == 4 ? RTE_IP_ICMP_ECHO_REPLY : ICMP6_ECHO_REPLY;
	memcpy(&is, icmp, sizeof(is));
	memcpy(&sum, icmp + 2, sizeof(sum));
	sum = cksum_update16(sum, was, is);
	memcpy(icmp + 2, &sum, sizeof(sum));
	local_own(m);
	p->family = family;
	p->proto = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	p->l4_off = l4_off;
	p->flags |= secured; // it goes back the way it came, or not at all
	local_send(w, m);
}

// ---- sorting ----

// Errors and replies end here; one about our own ESP may have something to say.
static void
take_notice(struct worker *w, struct rte_mbuf *m)
{
	pmtu_learn(w, m);
	drop(w, m, DROP_local_taken);
}

static void
take_icmp4(struct worker *w, struct rte_mbuf *m)
{
	uint16_t off = pkt(m)->l4_off;
	const uint8_t *icmp = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);

	if (m->data_len < off + 8)
		drop(w, m, DROP_ip_truncated);
	else if (cksum_data(icmp, m->data_len - off) != 0)
		drop(w, m, DROP_ip_checksum);
	else if (icmp[0] != RTE_IP_ICMP_ECHO_REQUEST || icmp[1] != 0)
		take_notice(w, m);
	else if (!bucket_take(&w->echo_bucket, w, LOCAL_ANSWER_RATE, LOCAL_ANSWER_BURST))
		drop(w, m, DROP_local_queue_full);
	else
		echo_answer(w, m);
}

static bool
is_nd(struct rte_mbuf *m)
{
	uint16_t off = pkt(m)->l4_off;
	uint8_t type;

	if (pkt(m)->proto != IPPROTO_ICMPV6 || m->data_len <= off)
		return false;
	type = *rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
	return type >= ND_FIRST && type <= ND_LAST;
}

static void
take_nd(struct worker *w, struct rte_mbuf *m)
{
	// RFC 4861 is about one link; a tunnel is none. RFC 6980: no fragments.
	if (pkt(m)->flags & (PKT_SECURED | PKT_FRAGMENT | PKT_FIRST_FRAGMENT))
		drop(w, m, DROP_nd_malformed);
	else
		neigh_nd(w, m);
}

static void
take_icmp6(struct worker *w, struct rte_mbuf *m)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);
	uint16_t off = pkt(m)->l4_off;
	const uint8_t *icmp = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);

	if (is_nd(m))
		take_nd(w, m);
	else if (m->data_len < off + 8)
		drop(w, m, DROP_ip_truncated);
	else if (cksum_l4(6, ip->src_addr, ip->dst_addr, IPPROTO_ICMPV6, icmp,
			  m->data_len - off) != 0)
		drop(w, m, DROP_ip_checksum);
	else if (icmp[0] != ICMP6_ECHO_REQUEST || icmp[1] != 0)
		take_notice(w, m);
	else if (!bucket_take(&w->echo_bucket, w, LOCAL_ANSWER_RATE, LOCAL_ANSWER_BURST))
		drop(w, m, DROP_local_queue_full);
	else
		echo_answer(w, m);
}

// IKE, and what RFC 3948 sends beside ESP: the marker of four zero bytes, or the
// keepalive of one byte 0xff.
static bool
is_ike(struct rte_mbuf *m)
{
	static const uint8_t marker[4];
	const struct pkt *p = pkt(m);
	const uint8_t *data = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l4_off + 8);
	uint16_t len = m->data_len - p->l4_off - 8;

	if (p->dport == IKE_PORT)
		return true;
	return p->dport == NATT_PORT &&
	       ((len >= sizeof(marker) && memcmp(data, marker, sizeof(marker)) == 0) ||
		(len == 1 && data[0] == 0xff));
}

static void
take_udp(struct worker *w, struct rte_mbuf *m)
{
	if (m->data_len < pkt(m)->l4_off + 8) {
		drop(w, m, DROP_ip_truncated);
	} else if (is_ike(m)) {
		drop(w, m, DROP_ike_ignored);
	} else if (pkt(m)->dport == NATT_PORT) {
		drop(w, m, DROP_esp_runt); // esp_select has taken what can be ESP
	} else {
		icmp_unreachable(w, m);
		drop(w, m, DROP_local_no_service);
	}
}

static void
take(struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);

	if (p->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT)) {
		drop(w, m, DROP_frag_bad);
	} else if (p->family == 4 && p->proto == IPPROTO_ICMP) {
		take_icmp4(w, m);
	} else if (p->family == 6 && p->proto == IPPROTO_ICMPV6) {
		take_icmp6(w, m);
	} else if (p->proto == IPPROTO_UDP) {
		take_udp(w, m);
	} else {
		icmp_unreachable(w, m);
		drop(w, m, DROP_local_no_service);
	}
}

// Link-local addresses are not in the FIB: every link has its own.
static bool
is_our_link_local(const struct worker *w, const struct rte_mbuf *m, const uint8_t *dst)
{
	const struct tport *tp = &w->tables->ports[m->port];

	return memcmp(tp->link_local.b, dst, 16) == 0;
}

uint16_t
local_take(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct tables *t = w->tables;
	uint16_t nexthops[BURST], good = 0;

	route_destinations(t, pkts, nexthops, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (pkt(m)->family == 6) {
			const uint8_t *dst = rte_pktmbuf_mtod_offset(m, const uint8_t *, 24);

			if (unlikely(dst[0] == 0xff)) {
				if (is_nd(m))
					take_nd(w, m);
				else
					drop(w, m, DROP_multicast);
				continue;
			}
			if (unlikely(dst[0] == 0xfe && (dst[1] & 0xc0) == 0x80 &&
				     is_our_link_local(w, m, dst))) {
				take(w, m);
				continue;
			}
		}
		if (unlikely(t->nexthops[nexthops[i]].kind == NEXTHOP_LOCAL))
			take(w, m);
		else
			pkts[good++] = m;
	}
	return good;
}
