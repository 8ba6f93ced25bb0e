/* SPDX-License-Identifier: BSD-3-Clause */
// ARP (RFC 826, 5227) and neighbour discovery (RFC 4861) on the wire: checking,
// answering, asking.
#include "cksum.h"
#include "local.h"
#include "neigh.h"
#include "stage.h"

#include <rte_arp.h>
#include <rte_ip.h>

#include <netinet/in.h>
#include <string.h>

#define ND_RS 133
#define ND_NS 135
#define ND_NA 136
#define ND_REDIRECT 137
#define ND_OPT_SOURCE 1 // source link-layer address
#define ND_OPT_TARGET 2
#define ND_HOP_LIMIT 255
#define ND_NA_ROUTER 0x80 // first byte behind the checksum
#define ND_NA_SOLICITED 0x40
#define ND_NA_OVERRIDE 0x20

// NS and NA have the same form (RFC 4861 sections 4.3 and 4.4).
struct nd_hdr {
	uint8_t type;
	uint8_t code;
	uint16_t cksum;
	uint8_t flags;
	uint8_t reserved[3];
	uint8_t target[16];
} __rte_packed;

// The one option that we send.
struct nd_opt {
	uint8_t type;
	uint8_t len; // in 8 bytes
	uint8_t mac[6];
} __rte_packed;

// What nd_parse() found in an NS or NA.
struct nd {
	uint8_t type;
	uint8_t flags;
	struct addr src;
	struct addr dst;
	struct addr target;
	bool has_mac;
	struct rte_ether_addr mac; // of the source (NS) or target (NA)
};

static const struct rte_ether_addr broadcast = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };

static struct addr
addr_make(uint8_t family, const void *b)
{
	struct addr a = { .family = family };

	memcpy(a.b, b, addr_size(family));
	return a;
}

static inline uint16_t
port_of(const struct worker *w, const struct rte_mbuf *m)
{
	return m->port;
}

// Only the addresses of the port itself: another port's are not on this wire.
static bool
is_ours(const struct tport *tp, const struct addr *a)
{
	for (uint32_t i = 0; i < tp->n_addresses; i++)
		if (addr_cmp(&tp->addresses[i].addr, a) == 0)
			return true;
	return a->family == 6 && addr_cmp(&tp->link_local, a) == 0;
}

// An answer goes out in the mbuf of its question: that one has ended, this one
// begins.
static void
answer_count(struct worker *w, const struct rte_mbuf *m, enum drop_reason why)
{
	struct port_stats *s = &w->ports[port_of(w, m)];

	s->ended[why]++;
	s->originated++;
}

static bool
answer_allowed(struct worker *w)
{
	return bucket_take(&w->echo_bucket, w, LOCAL_ANSWER_RATE, LOCAL_ANSWER_BURST);
}

// ---- ARP ----

static void
arp_fill(struct rte_arp_hdr *arp, uint16_t op, const struct rte_ether_addr *sha, const void *sip,
	 const struct rte_ether_addr *tha, const void *tip)
{
	arp->arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = RTE_ETHER_ADDR_LEN;
	arp->arp_plen = 4;
	arp->arp_opcode = rte_cpu_to_be_16(op);
	arp->arp_data.arp_sha = *sha;
	memcpy(&arp->arp_data.arp_sip, sip, 4);
	arp->arp_data.arp_tha = *tha;
	memcpy(&arp->arp_data.arp_tip, tip, 4);
}

static bool
arp_sound(const struct rte_mbuf *m, const struct rte_arp_hdr *arp, const struct addr *sip)
{
	static const struct addr any = { .family = 4 };
	uint16_t op;

	if (m->data_len < sizeof(*arp))
		return false;
	op = rte_be_to_cpu_16(arp->arp_opcode);
	return arp->arp_hardware == rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) &&
	       arp->arp_protocol == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
	       arp->arp_hlen == RTE_ETHER_ADDR_LEN && arp->arp_plen == 4 &&
	       (op == RTE_ARP_OP_REQUEST || op == RTE_ARP_OP_REPLY) &&
	       rte_is_valid_assigned_ether_addr(&arp->arp_data.arp_sha) &&
	       // 0.0.0.0 is a probe (RFC 5227 section 2.1.1)
	       (addr_cmp(sip, &any) == 0 || !addr_is_martian(sip)) && !addr_is_multicast(sip);
}

static void
arp_answer(struct worker *w, uint16_t port, struct rte_mbuf *m)
{
	const struct tport *tp = &w->tables->ports[port];
	struct rte_arp_hdr *arp = rte_pktmbuf_mtod(m, struct rte_arp_hdr *);
	struct rte_ether_addr to = arp->arp_data.arp_sha;
	uint32_t sip = arp->arp_data.arp_sip, tip = arp->arp_data.arp_tip;

	m->data_len = sizeof(*arp); // without the padding
	m->pkt_len = sizeof(*arp);
	arp_fill(arp, RTE_ARP_OP_REPLY, &tp->mac, &tip, &to, &sip);
	local_own(m);
	answer_count(w, m, DROP_arp_taken);
	if (neigh_frame(m, &to, tp, RTE_ETHER_TYPE_ARP))
		tx_enqueue(w, port, m);
	else
		drop(w, m, DROP_no_headroom);
}

void
neigh_arp(struct worker *w, struct rte_mbuf *m)
{
	const struct rte_arp_hdr *arp = rte_pktmbuf_mtod(m, const struct rte_arp_hdr *);
	uint16_t port = port_of(w, m);
	const struct tport *tp = &w->tables->ports[port];
	struct addr sip, tip;
	bool to_us, request;

	if (m->data_len < sizeof(*arp)) {
		drop(w, m, DROP_arp_malformed);
		return;
	}
	sip = addr_make(4, &arp->arp_data.arp_sip);
	tip = addr_make(4, &arp->arp_data.arp_tip);
	if (!arp_sound(m, arp, &sip)) {
		drop(w, m, DROP_arp_malformed);
		return;
	}
	to_us = is_ours(tp, &tip);
	request = arp->arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REQUEST);
	// RFC 826: who is known is updated by whatever he says; who talks to us
	// will hear from us soon and is noted. A probe has no sender address
	// (neigh_learn ignores it, as it does our own).
	neigh_learn(w, port, &sip, &arp->arp_data.arp_sha,
		    NEIGH_OVERRIDE | (to_us ? NEIGH_CREATE : 0) |
			    (to_us && !request ? NEIGH_CONFIRM : 0));
	// Not to somebody who believes to be us: that would be a quarrel of two
	// machines at wire speed (RFC 5227 section 2.4).
	if (to_us && request && !is_ours(tp, &sip) && answer_allowed(w))
		arp_answer(w, port, m);
	else
		drop(w, m, to_us ? DROP_arp_taken : DROP_arp_foreign);
}

// ---- neighbour discovery: reading ----

// Options of RFC 4861 section 4.6. @return false when one is broken.
static bool
nd_options(const uint8_t *opt, uint32_t len, uint8_t want, struct nd *nd)
{
	while (len != 0) { // each round takes at least 8 bytes
		uint32_t opt_len = len < 8 ? 0 : opt[1] * 8u;

		if (opt_len == 0 || opt_len > len)
			return false;
		if (opt[0] == want && opt_len == sizeof(struct nd_opt)) {
			nd->has_mac = true;
			memcpy(&nd->mac, opt + 2, sizeof(nd->mac));
		}
		opt += opt_len;
		len -= opt_len;
	}
	return true;
}

// All checks of RFC 4861 sections 7.1.1 and 7.1.2.
static bool
nd_parse(const struct rte_mbuf *m, struct nd *nd)
{
	static const struct addr any = { .family = 6 };
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);
	const struct nd_hdr *hdr = (const struct nd_hdr *)(ip + 1);
	uint32_t len;

	if (m->data_len < sizeof(*ip) + 8)
		return false;
	len = rte_be_to_cpu_16(ip->payload_len);
	// Straight behind the IPv6 header: fragments are forbidden (RFC 6980), and
	// nothing else is ever seen in between.
	if (ip->proto != IPPROTO_ICMPV6 || len < 8 || len > m->data_len - sizeof(*ip))
		return false;
	if (ip->hop_limits != ND_HOP_LIMIT || hdr->code != 0 ||
	    cksum_l4(6, ip->src_addr, ip->dst_addr, IPPROTO_ICMPV6, hdr, len) != 0)
		return false;
	memset(nd, 0, sizeof(*nd));
	nd->type = hdr->type;
	nd->flags = hdr->flags;
	if (nd->type != ND_NS && nd->type != ND_NA)
		return nd->type >= ND_RS && nd->type <= ND_REDIRECT;
	if (len < sizeof(*hdr) ||
	    !nd_options((const uint8_t *)(hdr + 1), len - sizeof(*hdr),
			nd->type == ND_NS ? ND_OPT_SOURCE : ND_OPT_TARGET, nd))
		return false;
	nd->src = addr_make(6, ip->src_addr);
	nd->dst = addr_make(6, ip->dst_addr);
	nd->target = addr_make(6, hdr->target);
	if (addr_is_multicast(&nd->target) || addr_is_multicast(&nd->src))
		return false;
	if (nd->type == ND_NA)
		return !(addr_is_multicast(&nd->dst) && nd->flags & ND_NA_SOLICITED);
	if (addr_cmp(&nd->src, &any) == 0) { // duplicate address detection
		static const uint8_t solicited_node[13] = { 0xff, 2, [11] = 1, [12] = 0xff };
		return memcmp(nd->dst.b, solicited_node, sizeof(solicited_node)) == 0 &&
		       !nd->has_mac;
	}
	return true;
}

// ---- neighbour discovery: writing ----

// Fills an empty mbuf with an NS or NA. @return false: no room
static bool
nd_build(struct rte_mbuf *m, uint8_t type, uint8_t flags, const struct addr *src,
	 const struct addr *dst, const struct addr *target, const struct rte_ether_addr *mac)
{
	const uint16_t len = sizeof(struct nd_hdr) + sizeof(struct nd_opt);
	struct rte_ipv6_hdr *ip = (void *)rte_pktmbuf_append(m, sizeof(*ip) + len);
	struct nd_hdr *hdr;
	struct nd_opt *opt;
	uint16_t sum;

	if (ip == NULL)
		return false;
	memset(ip, 0, sizeof(*ip) + len);
	hdr = (struct nd_hdr *)(ip + 1);
	opt = (struct nd_opt *)(hdr + 1);
	ip->vtc_flow = rte_cpu_to_be_32(0x60000000);
	ip->payload_len = rte_cpu_to_be_16(len);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = ND_HOP_LIMIT;
	memcpy(ip->src_addr, src->b, 16);
	memcpy(ip->dst_addr, dst->b, 16);
	hdr->type = type;
	hdr->flags = flags;
	memcpy(hdr->target, target->b, 16);
	opt->type = type == ND_NS ? ND_OPT_SOURCE : ND_OPT_TARGET;
	opt->len = 1;
	memcpy(opt->mac, mac, sizeof(opt->mac));
	sum = cksum_l4(6, src->b, dst->b, IPPROTO_ICMPV6, hdr, len);
	memcpy(&hdr->cksum, &sum, sizeof(sum));
	pkt(m)->family = 6;
	pkt(m)->proto = IPPROTO_ICMPV6;
	pkt(m)->l4_off = sizeof(*ip);
	return true;
}

// RFC 2464 section 7
static struct rte_ether_addr
multicast_mac(const struct addr *a)
{
	struct rte_ether_addr mac = { { 0x33, 0x33, a->b[12], a->b[13], a->b[14], a->b[15] } };

	return mac;
}

// RFC 4861 section 7.2.4
static void
nd_answer(struct worker *w, uint16_t port, struct rte_mbuf *m, const struct nd *nd)
{
	static const struct addr any = { .family = 6 };
	static const struct addr all_nodes = { .family = 6, .b = { 0xff, 2, [15] = 1 } };
	const struct tport *tp = &w->tables->ports[port];
	bool dad = addr_cmp(&nd->src, &any) == 0;
	const struct addr *dst = dad ? &all_nodes : &nd->src;
	uint8_t flags = ND_NA_ROUTER | ND_NA_OVERRIDE | (dad ? 0 : ND_NA_SOLICITED);
	struct rte_ether_addr mac = dad ? multicast_mac(&all_nodes) : nd->mac;

	rte_pktmbuf_reset_headroom(m);
	m->data_len = 0;
	m->pkt_len = 0;
	local_own(m);
	answer_count(w, m, DROP_nd_taken);
	if (!nd_build(m, ND_NA, flags, &nd->target, dst, &nd->target, &tp->mac))
		drop(w, m, DROP_no_headroom);
	else if (!dad && !nd->has_mac) // he may leave that out when he knows us
		neigh_output(w, port, dst, m);
	else if (!neigh_frame(m, &mac, tp, RTE_ETHER_TYPE_IPV6))
		drop(w, m, DROP_no_headroom);
	else
		tx_enqueue(w, port, m);
}

void
neigh_nd(struct worker *w, struct rte_mbuf *m)
{
	uint16_t port = port_of(w, m);
	const struct tport *tp = &w->tables->ports[port];
	struct nd nd;

	if (!nd_parse(m, &nd)) {
		drop(w, m, DROP_nd_malformed);
		return;
	}
	if (nd.type == ND_NA) {
		// Section 7.2.5: never makes an entry.
		neigh_learn(w, port, &nd.target, nd.has_mac ? &nd.mac : NULL,
			    (nd.flags & ND_NA_SOLICITED ? NEIGH_CONFIRM : 0) |
				    (nd.flags & ND_NA_OVERRIDE ? NEIGH_OVERRIDE : 0));
	} else if (nd.type == ND_NS && is_ours(tp, &nd.target) && !is_ours(tp, &nd.src)) {
		if (nd.has_mac) // section 7.2.3
			neigh_learn(w, port, &nd.src, &nd.mac, NEIGH_CREATE | NEIGH_OVERRIDE);
		if ((!nd.has_mac || rte_is_valid_assigned_ether_addr(&nd.mac)) &&
		    answer_allowed(w)) {
			nd_answer(w, port, m, &nd);
			return;
		}
	}
	drop(w, m, DROP_nd_taken);
}

// ---- asking ----

// Our address to ask from: of the target's prefix, or any of its family that
// stands on the port; IPv6 has always the link-local one. NULL: none
static const struct addr *
source_for(const struct tport *tp, const struct addr *target)
{
	const struct addr *any = target->family == 6 ? &tp->link_local : NULL;

	for (uint32_t i = 0; i < tp->n_addresses; i++) {
		const struct prefix *p = &tp->addresses[i];

		if (prefix_contains(p, target))
			return &p->addr;
		if (any == NULL && p->addr.family == target->family)
			any = &p->addr;
	}
	return any;
}

static bool
ask_arp(struct rte_mbuf *m, const struct tport *tp, const struct addr *src,
	const struct addr *target, const struct rte_ether_addr *mac)
{
	static const struct rte_ether_addr unknown = { { 0 } };
	struct rte_arp_hdr *arp = (void *)rte_pktmbuf_append(m, sizeof(*arp));

	if (arp == NULL)
		return false;
	arp_fill(arp, RTE_ARP_OP_REQUEST, &tp->mac, src->b, mac != NULL ? mac : &unknown,
		 target->b);
	return neigh_frame(m, mac != NULL ? mac : &broadcast, tp, RTE_ETHER_TYPE_ARP);
}

static bool
ask_nd(struct rte_mbuf *m, const struct tport *tp, const struct addr *src,
       const struct addr *target, const struct rte_ether_addr *mac)
{
	struct addr dst = *target;
	struct rte_ether_addr to;

	if (mac == NULL) { // RFC 4291 section 2.7.1: solicited-node multicast
		static const uint8_t group[13] = { 0xff, 2, [11] = 1, [12] = 0xff };
		memcpy(dst.b, group, sizeof(group));
		to = multicast_mac(&dst);
	} else {
		to = *mac;
	}
	return nd_build(m, ND_NS, 0, src, &dst, target, &tp->mac) &&
	       neigh_frame(m, &to, tp, RTE_ETHER_TYPE_IPV6);
}

void
neigh_solicit(struct worker *w, uint16_t port, const struct addr *addr,
	      const struct rte_ether_addr *mac, uint16_t provoker)
{
	const struct tport *tp = &w->tables->ports[port];
	const struct addr *src = source_for(tp, addr);
	struct rte_mbuf *m = src != NULL ? local_alloc(w, provoker) : NULL;

	if (m == NULL) // no address, or the pool is empty: the next retry may work
		return;
	if (addr->family == 4 ? ask_arp(m, tp, src, addr, mac) : ask_nd(m, tp, src, addr, mac))
		tx_enqueue(w, port, m);
	else
		drop(w, m, DROP_no_headroom);
}
