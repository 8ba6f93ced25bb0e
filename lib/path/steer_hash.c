/* SPDX-License-Identifier: BSD-3-Clause */
// What flow a raw frame is of: what RSS of a NIC would do, and ESP by its SPI.
#include "mix.h"
#include "pkt.h"
#include "steer.h"
#include "tables.h"

#include <rte_ether.h>

#include <netinet/in.h>
#include <string.h>

#define NATT_PORT 4500
#define VLAN_LEN 4
#define ND_FIRST 133 // router solicitation
#define ND_LAST 137  // redirect

static uint64_t
mix_addresses(uint64_t h, const uint8_t *at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 4) {
		uint32_t word;

		memcpy(&word, at + i, 4);
		h = mix_pair(h, word);
	}
	return h;
}

// What an IP header says, as far as it counts here.
struct where {
	const uint8_t *addresses; // source and destination
	uint32_t size;            // of one
	const uint8_t *l4;        //
	uint32_t left;            // bytes of it
	uint8_t proto;            //
	bool fragment;            //
};

// @return whether it is ESP, with the SPI. The peer's port may change on the way, and
// one peer may have many SAs: only the SPI and where it goes are the SA's. What others
// send each other to that UDP port is a flow like any.
static bool
find_spi(const struct tables *t, const struct where *at, uint32_t *spi_be)
{
	const uint8_t *esp = at->l4;
	uint32_t left = at->left;

	if (at->proto == IPPROTO_UDP && left >= 8 && (esp[2] << 8 | esp[3]) == NATT_PORT &&
	    tables_is_own(t, at->size == 4 ? 4 : 6, at->addresses + at->size)) {
		esp += 8;
		left -= 8;
	} else if (at->proto != IPPROTO_ESP) {
		return false;
	}
	if (left < 8)
		return false;
	memcpy(spi_be, esp, 4);
	return *spi_be != 0; // else IKE
}

static enum steer_kind
hash_flow(const struct tables *t, const struct where *at, uint64_t h, uint32_t *hash)
{
	uint32_t spi_be, ports = 0;

	if (!at->fragment && find_spi(t, at, &spi_be)) {
		h = mix_addresses(mix_pair(h, spi_be), at->addresses + at->size, at->size);
	} else {
		if (!at->fragment && proto_has_ports(at->proto) && at->left >= 4)
			memcpy(&ports, at->l4, 4);
		h = mix_addresses(mix_pair(h, (uint64_t)at->proto << 32 | ports), at->addresses, 2 * at->size);
	}
	*hash = (uint32_t)mix_pair(h, 0);
	return at->fragment ? STEER_FIXED : STEER_FLOW;
}

static enum steer_kind
hash4(const struct tables *t, const uint8_t *ip, uint32_t left, uint64_t h, uint32_t *hash)
{
	struct where at = {.addresses = ip + 12, .size = 4};
	uint32_t header;

	if (left < 20 || ip[0] >> 4 != 4)
		return STEER_ODD;
	header = (ip[0] & 15) * 4u;
	if (header < 20 || header > left)
		return STEER_ODD;
	at.l4 = ip + header;
	at.left = left - header;
	at.proto = ip[9];
	at.fragment = ((ip[6] & 0x3f) | ip[7]) != 0; // an offset, or more to come
	return hash_flow(t, &at, h, hash);
}

// Behind extension headers nobody looks: such packets go by their addresses.
static enum steer_kind
hash6(const struct tables *t, const uint8_t *ip, uint32_t left, uint64_t h, uint32_t *hash)
{
	struct where at = {.addresses = ip + 8, .size = 16};

	if (left < 40 || ip[0] >> 4 != 6)
		return STEER_ODD;
	at.l4 = ip + 40;
	at.left = left - 40;
	at.proto = ip[6];
	if (at.proto == IPPROTO_ICMPV6 && at.left > 0 && at.l4[0] >= ND_FIRST && at.l4[0] <= ND_LAST)
		return STEER_ODD;
	switch (at.proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_FRAGMENT:
		at.proto = IPPROTO_FRAGMENT;
		at.fragment = true;
	}
	return hash_flow(t, &at, h, hash);
}

enum steer_kind
steer_hash(const struct tables *t, const struct rte_mbuf *m, uint64_t h, uint32_t *hash)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t left = m->data_len, l2 = RTE_ETHER_HDR_LEN;

	if (left < RTE_ETHER_HDR_LEN + VLAN_LEN)
		return STEER_ODD;
	if (frame[12] == 0x81 && frame[13] == 0x00)
		l2 += VLAN_LEN;
	if (frame[l2 - 2] == 0x08 && frame[l2 - 1] == 0x00)
		return hash4(t, frame + l2, left - l2, h, hash);
	if (frame[l2 - 2] == 0x86 && frame[l2 - 1] == 0xdd)
		return hash6(t, frame + l2, left - l2, h, hash);
	return STEER_ODD;
}
