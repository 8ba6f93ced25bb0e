/* SPDX-License-Identifier: BSD-3-Clause */
// Which packets are ESP for us, raw or in UDP, and whose.
#include "esp.h"
#include "sad.h"

#include <rte_esp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

_Static_assert(BURST <= SAD_BURST, "one SAD lookup a burst");

// Is this an ESP packet, raw or in UDP (RFC 3948 section 2)? Fills the SPI.
// @return a reason to drop, -1: it is ESP, -2: it is something else
static int
find_spi(struct rte_mbuf *m, uint32_t *spi_be)
{
	struct pkt *p = pkt(m);
	uint32_t off = p->l4_off, left = m->pkt_len - off;

	if (p->proto == IPPROTO_UDP && p->dport == NATT_PORT && !(p->flags & PKT_FRAGMENT)) {
		const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, void *, off);

		if (rte_be_to_cpu_16(udp->dgram_len) != left)
			return DROP_esp_runt;
		off += sizeof(*udp);
		left -= (uint32_t)sizeof(*udp);
		if (left == 1 && *rte_pktmbuf_mtod_offset(m, uint8_t *, off) == 0xff)
			return -2; // keepalive
		if (left < sizeof(struct rte_esp_hdr))
			return DROP_esp_runt;
		memcpy(spi_be, rte_pktmbuf_mtod_offset(m, void *, off), 4);
		if (*spi_be == 0)
			return -2; // the non-ESP marker: IKE
		p->flags |= PKT_UDP_ESP;
		return -1;
	}
	if (p->proto != IPPROTO_ESP)
		return -2;
	if (left < sizeof(struct rte_esp_hdr))
		return DROP_esp_runt;
	memcpy(spi_be, rte_pktmbuf_mtod_offset(m, void *, off), 4);
	return -1;
}

static const uint8_t *
outer_address(struct rte_mbuf *m, bool source)
{
	if (pkt(m)->family == 4)
		return rte_pktmbuf_mtod_offset(m, uint8_t *,
					       source ? offsetof(struct rte_ipv4_hdr, src_addr) :
							offsetof(struct rte_ipv4_hdr, dst_addr));
	return rte_pktmbuf_mtod_offset(m, uint8_t *,
				       source ? offsetof(struct rte_ipv6_hdr, src_addr) :
						offsetof(struct rte_ipv6_hdr, dst_addr));
}

// Bind packets of one family to their SAs; those that fit go to esp.
static void
bind_sas(struct worker *w, uint8_t family, struct rte_mbuf **pkts, const struct sad_key *keys,
	 uint16_t n, struct rte_mbuf **esp, uint16_t *n_esp)
{
	struct sa *found[BURST];

	if (n == 0)
		return;
	sad_find(w->tables->sad, family, keys, found, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct sa *sa = found[i];

		pkt(m)->sa = sa;
		if (sa == NULL)
			drop(w, m, DROP_esp_no_sa);
		else if (sa->natt != !!(pkt(m)->flags & PKT_UDP_ESP))
			drop(w, m, DROP_esp_sa_encap);
		// A NAT may give the peer another address at any time; the ICV tells who it is.
		else if (!(sa->natt && !sa->transport) &&
			 memcmp(outer_address(m, true), sa->src.b, addr_size(family)) != 0)
			drop(w, m, DROP_esp_sa_source);
		else
			esp[(*n_esp)++] = m;
	}
}

uint16_t
esp_select(struct worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_mbuf **esp,
	   uint16_t *n_esp)
{
	struct rte_mbuf *of[2][BURST]; // by family
	struct sad_key keys[2][BURST];
	uint16_t count[2] = {0, 0}, rest = 0, before = *n_esp;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		uint8_t family = pkt(m)->family;
		uint32_t spi_be = 0;
		int why = find_spi(m, &spi_be);
		unsigned int f = family == 6;

		// Somebody else's ESP is traffic like any other.
		if (why == -2 || !tables_is_own(w->tables, family, outer_address(m, false))) {
			pkt(m)->flags &= (uint16_t)~PKT_UDP_ESP;
			pkts[rest++] = m;
		} else if (why >= 0) {
			drop(w, m, (enum drop_reason)why);
		} else {
			keys[f][count[f]] = (struct sad_key){spi_be, outer_address(m, false)};
			of[f][count[f]++] = m;
		}
	}
	bind_sas(w, 4, of[0], keys[0], count[0], esp, n_esp);
	bind_sas(w, 6, of[1], keys[1], count[1], esp, n_esp);
	if ((before > 0 && *n_esp > before) || (count[0] > 0 && count[1] > 0))
		burst_restore(esp, *n_esp);
	return rest;
}
