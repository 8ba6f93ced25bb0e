/* SPDX-License-Identifier: BSD-3-Clause */
// IP headers: is this a sound packet, and where does its upper layer start?
#include "stage.h"

#include "cksum.h"

#include <rte_icmp.h>
#include <rte_ip.h>

#include <netinet/in.h>
#include <string.h>

#define EXT_HEADERS_MAX 8 // of IPv6, more are refused
#define EXT_BYTES_MAX 256 // librte_ipsec gets the offset behind them in 9 bits
#define ND_FIRST 133      // router solicitation
#define ND_LAST 137       // redirect

// Ports of the protocols that have them in their first four bytes. A packet, or a
// first fragment, too short for them hides them from the policies (RFC 1858).
static int
ports_inspect(struct pkt *p, const struct rte_mbuf *m)
{
	uint16_t ports[2];

	p->sport = 0;
	p->dport = 0;
	if ((p->flags & PKT_FRAGMENT) || !proto_has_ports(p->proto))
		return -1;
	if (m->pkt_len < p->l4_off + 8u)
		return DROP_ip_truncated;
	memcpy(ports, rte_pktmbuf_mtod_offset(m, void *, p->l4_off), 4);
	p->sport = rte_be_to_cpu_16(ports[0]);
	p->dport = rte_be_to_cpu_16(ports[1]);
	return -1;
}

// Never a host on the wire: RFC 1122 section 3.2.1.3, RFC 6890.
static bool
martian4(uint32_t host_order, bool source)
{
	uint8_t first = (uint8_t)(host_order >> 24);

	return first == 0 || first == 127 || first >= 240 || (source && first >= 224);
}

static int
inspect4(struct rte_mbuf *m, bool trusted_sum)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);
	struct pkt *p = pkt(m);
	uint16_t len, frag;
	uint32_t src, dst;

	if (m->data_len < sizeof(*ip))
		return DROP_ip_truncated;
	if (ip->version_ihl >> 4 != 4)
		return DROP_ip_version;
	p->l4_off = rte_ipv4_hdr_len(ip);
	if (p->l4_off < sizeof(*ip))
		return DROP_ip_header;
	len = rte_be_to_cpu_16(ip->total_length);
	if (len < p->l4_off || len > m->pkt_len)
		return DROP_ip_truncated;
	if (!trusted_sum && !cksum_ip4_ok(ip, p->l4_off))
		return DROP_ip_checksum;
	rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - len)); // Ethernet or TFC padding
	src = rte_be_to_cpu_32(ip->src_addr);
	dst = rte_be_to_cpu_32(ip->dst_addr);
	if (dst == UINT32_MAX || (dst >> 28) == 0xe)
		return DROP_multicast;
	if (martian4(src, true) || martian4(dst, false))
		return DROP_ip_martian;
	frag = rte_be_to_cpu_16(ip->fragment_offset);
	// Beyond the longest packet there is nothing to put together, and an offset that is
	// cut further would run into the flags.
	if ((frag & RTE_IPV4_HDR_OFFSET_MASK) * 8u + len > UINT16_MAX)
		return DROP_frag_bad;
	if (frag & RTE_IPV4_HDR_OFFSET_MASK)
		p->flags |= PKT_FRAGMENT;
	else if (frag & RTE_IPV4_HDR_MF_FLAG)
		p->flags |= PKT_FIRST_FRAGMENT;
	p->proto = ip->next_proto_id;
	return ports_inspect(p, m);
}

// Walk the extension headers (RFC 8200 section 4) up to the upper layer.
static int
walk6(struct rte_mbuf *m, uint8_t proto)
{
	struct pkt *p = pkt(m);
	uint32_t off = sizeof(struct rte_ipv6_hdr);

	for (int i = 0; i < EXT_HEADERS_MAX; i++) {
		const uint8_t *ext = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
		uint32_t len;

		switch (proto) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
		case IPPROTO_FRAGMENT:
			break;
		default:
			p->proto = proto;
			p->l4_off = (uint16_t)off;
			return -1;
		}
		if (m->pkt_len < off + 8)
			return DROP_ip_header;
		len = 8;
		if (proto == IPPROTO_FRAGMENT) {
			uint16_t frag = (uint16_t)(ext[2] << 8 | ext[3]);

			if (frag >> 3)
				p->flags |= PKT_FRAGMENT;
			else if (frag & 1)
				p->flags |= PKT_FIRST_FRAGMENT;
		} else {
			len = (ext[1] + 1u) * 8;
		}
		off += len;
		if (off > m->pkt_len || off > EXT_BYTES_MAX)
			return DROP_ip_header;
		proto = ext[0];
		if (p->flags & PKT_FRAGMENT) { // what follows is somewhere in the middle
			p->proto = proto;
			p->l4_off = (uint16_t)off;
			return -1;
		}
	}
	return DROP_ip_header;
}

static bool
is_nd(struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	uint8_t type;

	if (p->proto != IPPROTO_ICMPV6 || (p->flags & PKT_FRAGMENT) || m->pkt_len < p->l4_off + 4u)
		return false;
	type = *rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l4_off);
	return type >= ND_FIRST && type <= ND_LAST;
}

static int
inspect6(struct rte_mbuf *m)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);
	static const uint8_t unspecified[16];
	uint32_t len;
	const uint8_t *src, *dst;
	int why;

	if (m->data_len < sizeof(*ip))
		return DROP_ip_truncated;
	if ((rte_be_to_cpu_32(ip->vtc_flow) >> 28) != 6)
		return DROP_ip_version;
	len = sizeof(*ip) + rte_be_to_cpu_16(ip->payload_len);
	if (len > m->pkt_len)
		return DROP_ip_truncated;
	rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - len));
	why = walk6(m, ip->proto);
	if (why >= 0)
		return why;
	src = (const uint8_t *)&ip->src_addr;
	dst = (const uint8_t *)&ip->dst_addr;
	if (is_nd(m))
		pkt(m)->flags |= PKT_ND;
	if (dst[0] == 0xff && !(pkt(m)->flags & PKT_ND))
		return DROP_multicast;
	// Duplicate address detection asks a group from the unspecified address (RFC 4862).
	if (src[0] == 0xff || addr6_is_martian(dst) ||
	    (addr6_is_martian(src) && !((pkt(m)->flags & PKT_ND) && dst[0] == 0xff &&
				memcmp(src, unspecified, 16) == 0)))
		return DROP_ip_martian;
	return ports_inspect(pkt(m), m);
}

int
ip_inspect(struct rte_mbuf *m, bool trusted_sum)
{
	return pkt(m)->family == 4 ? inspect4(m, trusted_sum) : inspect6(m);
}

uint16_t
ip_check(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
		int why = ip_inspect(m, sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD);

		// A unicast packet in a broadcast frame is not ours to forward (RFC 1812 5.3.4).
		if (why < 0 && (pkt(m)->flags & PKT_GROUP) && !(pkt(m)->flags & PKT_ND))
			why = DROP_multicast;
		if (unlikely(why >= 0))
			drop(w, m, (enum drop_reason)why);
		else
			pkts[good++] = m;
	}
	return good;
}

uint16_t
ip_spoof(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t nexthops[BURST], good = 0;

	route_sources(w->tables, pkts, nexthops, n);
	for (uint16_t i = 0; i < n; i++) {
		pkt(pkts[i])->source = nexthops[i];
		if (unlikely(w->tables->nexthops[nexthops[i]].kind == NEXTHOP_LOCAL))
			drop(w, pkts[i], DROP_ip_spoofed);
		else
			pkts[good++] = pkts[i];
	}
	return good;
}

// @return a reason to drop, or -1
static int
hop_one(struct rte_mbuf *m)
{
	if (pkt(m)->family == 4) {
		struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, struct rte_ipv4_hdr *);
		uint8_t be[2] = {ip->time_to_live, ip->next_proto_id}; // one word of the sum
		uint16_t was, is;

		if (ip->time_to_live <= 1)
			return DROP_ip_ttl;
		memcpy(&was, be, 2);
		be[0]--;
		memcpy(&is, be, 2);
		ip->time_to_live--;
		ip->hdr_checksum = cksum_update16(ip->hdr_checksum, was, is);
	} else {
		struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, struct rte_ipv6_hdr *);

		// A link-local address means nothing on another link (RFC 4291 section 2.5.6).
		if (addr6_is_link_local(&ip->src_addr) || addr6_is_link_local(&ip->dst_addr))
			return DROP_ip_martian;
		if (ip->hop_limits <= 1)
			return DROP_ip_ttl;
		ip->hop_limits--;
	}
	return -1;
}

uint16_t
ip_hop(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < n; i++) {
		int why = hop_one(pkts[i]);

		if (likely(why < 0)) {
			pkts[good++] = pkts[i];
			continue;
		}
		if (why == DROP_ip_ttl)
			icmp_time_exceeded(w, pkts[i]);
		drop(w, pkts[i], (enum drop_reason)why);
	}
	return good;
}
