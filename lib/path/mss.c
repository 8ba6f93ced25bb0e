/* SPDX-License-Identifier: BSD-3-Clause */
// TCP's MSS option in SYN and SYN-ACK that enter a tunnel: never above what fits it,
// so that no segment has to be cut and no ICMP has to find its way back.
#include "stage.h"

#include "cksum.h"

#include <rte_ip.h>
#include <rte_tcp.h>

#include <string.h>

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_MSS 2
#define MSS_LEN 4
#define TCP_BASE 20

// Where the MSS value stands in a TCP header of len bytes, 0: nowhere.
static uint32_t
find_mss(const uint8_t *tcp, uint32_t len)
{
	uint32_t at = TCP_BASE;

	while (at < len && tcp[at] != OPTION_END) {
		if (tcp[at] == OPTION_NOP) {
			at++;
			continue;
		}
		if (at + 1 >= len || tcp[at + 1] < 2 || at + tcp[at + 1] > len)
			return 0;
		if (tcp[at] == OPTION_MSS && tcp[at + 1] == MSS_LEN)
			return at + 2;
		at += tcp[at + 1];
	}
	return 0;
}

void
mss_clamp(struct rte_mbuf *m, uint16_t mtu)
{
	const struct pkt *p = pkt(m);
	uint8_t *tcp = rte_pktmbuf_mtod_offset(m, uint8_t *, p->l4_off);
	uint32_t left = m->pkt_len - p->l4_off, len, at;
	uint16_t ip_len = p->family == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	uint16_t limit, was, is, sum;

	if (left < TCP_BASE || !(tcp[13] & RTE_TCP_SYN_FLAG) || mtu <= ip_len + TCP_BASE)
		return;
	len = (tcp[12] >> 4) * 4u;
	if (len < TCP_BASE || len > left)
		return;
	at = find_mss(tcp, len);
	limit = (uint16_t)(mtu - ip_len - TCP_BASE);
	if (at == 0 || (tcp[at] << 8 | tcp[at + 1]) <= limit)
		return;
	memcpy(&was, tcp + at, 2);
	is = rte_cpu_to_be_16(limit);
	memcpy(tcp + at, &is, 2);
	memcpy(&sum, tcp + 16, 2);
	// At an odd offset the value lies across two words: swapped, its bytes count in
	// their places.
	if (at % 2 != 0) {
		was = rte_bswap16(was);
		is = rte_bswap16(is);
	}
	sum = cksum_update16(sum, was, is);
	memcpy(tcp + 16, &sum, 2);
}
