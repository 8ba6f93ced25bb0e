/* SPDX-License-Identifier: BSD-3-Clause */
// From an ESP packet to the packet inside: RFC 4303 section 3.4. What is the same
// however it is opened; open_direct.c and open_library.c open it.
#include "esp.h"

#include "cksum.h"
#include "flow.h"
#include "steer.h"

#include <rte_ip.h>

#include <netinet/in.h>
#include <string.h>

// After transport mode: what librte_ipsec leaves undone in the IP header, and with
// NAT on the way the checksum of the upper layer, which covers addresses that were
// changed (RFC 3948 section 3.1.2; the ICV has vouched for the data).
static void
transport_mend(struct rte_mbuf *m, const struct sa *sa)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *), *l4 = ip + pkt(m)->l4_off;
	uint32_t len = m->pkt_len - pkt(m)->l4_off;
	bool v4 = sa->family == 4;
	uint8_t proto = v4 ? ip[9] : ip[6];
	uint16_t sum = 0;
	size_t at;

	if (v4)
		cksum_ip4_set(ip, pkt(m)->l4_off);
	if (!sa->natt)
		return;
	if (proto == IPPROTO_TCP && len >= 20)
		at = 16;
	else if (proto == IPPROTO_UDP && len >= 8 && (l4[6] | l4[7]) != 0)
		at = 6;
	else
		return;
	memcpy(l4 + at, &sum, 2);
	sum = cksum_l4(sa->family, ip + (v4 ? 12 : 8), ip + (v4 ? 16 : 24), proto, l4, len);
	if (proto == IPPROTO_UDP && sum == 0)
		sum = 0xffff;
	memcpy(l4 + at, &sum, 2);
}

// RFC 6040 section 4.2, figure 4. @return false: the packet must be dropped
static bool
open_ecn(struct rte_mbuf *m, uint8_t outer)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t inner = pkt(m)->family == 4 ? ip[1] & ECN_MASK : (ip[1] >> 4) & ECN_MASK;
	uint16_t was, is;

	// Only CE on ECT or CE, and ECT(1) on ECT(0), change the inner mark.
	if (outer == ECN_CE && inner == 0)
		return false;
	if (!(outer == ECN_CE && inner != ECN_CE) && !(outer == 1 && inner == 2))
		return true;
	memcpy(&was, ip, 2);
	if (pkt(m)->family == 6) {
		ip[1] = (uint8_t)((ip[1] & ~(ECN_MASK << 4)) | outer << 4);
		return true;
	}
	ip[1] = (uint8_t)((ip[1] & ~ECN_MASK) | outer);
	memcpy(&is, ip, 2);
	((struct rte_ipv4_hdr *)ip)->hdr_checksum =
		cksum_update16(((struct rte_ipv4_hdr *)ip)->hdr_checksum, was, is);
	return true;
}

int
open_inner(struct worker *w, struct rte_mbuf *m, const struct sa *sa, uint8_t next_header,
	   uint8_t ecn)
{
	struct pkt *p = pkt(m);
	int why = -1;

	if (next_header == NEXT_DUMMY)
		return DROP_esp_dummy;
	p->from = sa->tunnel->index + 1;
	if (sa->transport) {
		transport_mend(m, sa);
		p->flags = PKT_SECURED;
		p->nexthop = PKT_NO_NEXTHOP;
		return ip_inspect(m, false) < 0 ? -1 : DROP_esp_inner;
	}
	if (next_header != IPPROTO_IPIP && next_header != IPPROTO_IPV6)
		return DROP_esp_next_header;
	p->family = next_header == IPPROTO_IPIP ? 4 : 6;
	p->flags = PKT_SECURED;
	p->nexthop = PKT_NO_NEXTHOP;
	if (unlikely(!flow_look_inner(w, m)))
		why = ip_inspect(m, false);
	if (why == DROP_ip_version)
		return DROP_esp_next_header;
	if (why == DROP_multicast || why == DROP_ip_martian)
		return why;
	if (why >= 0)
		return DROP_esp_inner;
	return open_ecn(m, ecn) ? -1 : DROP_esp_ecn;
}

// RFC 3948 section 4 leaves it to the key management to move the peer: here it is only
// noted, for the control thread to tell.
void
peer_note(struct sa *sa, const struct addr *addr, uint16_t port)
{
	if (likely(port == sa->peer_port && memcmp(addr->b, sa->peer.b, sizeof(addr->b)) == 0))
		return;
	sa->peer = *addr;
	sa->peer_port = port;
	sa->peer_moved = true;
}

// The outer source.
struct addr
outer_source(struct rte_mbuf *m, uint8_t family)
{
	struct addr a = {.family = family};
	size_t off = family == 4 ? offsetof(struct rte_ipv4_hdr, src_addr) :
				   offsetof(struct rte_ipv6_hdr, src_addr);

	memcpy(a.b, rte_pktmbuf_mtod_offset(m, void *, off), addr_size(family));
	return a;
}

uint16_t
esp_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *library[BURST];
	uint16_t n_library = 0, n_direct = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		pkt(m)->slot = (uint8_t)i;
		if (likely(pkt(m)->sa->key != NULL))
			pkts[n_direct++] = m;
		else
			library[n_library++] = m;
	}
	if (n_direct > 0)
		n_direct = open_direct(w, pkts, n_direct);
	if (unlikely(n_library > 0)) {
		n_library = open_library(w, library, n_library);
		memcpy(pkts + n_direct, library, n_library * sizeof(pkts[0]));
		burst_restore(pkts, (uint16_t)(n_direct + n_library));
	}
	steer_turn_pass(w, STEER_OPEN);
	return (uint16_t)(n_direct + n_library);
}
