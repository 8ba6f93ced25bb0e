/* SPDX-License-Identifier: BSD-3-Clause */
// Sealing in tunnel mode, header and trailer written here and the crypto done by
// ipsec-mb without a device in between. First all packets of a burst are written, then
// all go through the crypto: what was stored has reached the cache when it is read in
// wider pieces.
#include "esp.h"
#include "steer.h"

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_udp.h>
#include <rte_vect.h>

#include <netinet/in.h>
#include <string.h>

_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "headers are put together in registers");

// RFC 4303 section 2.4: 1, 2, 3 …
static const uint8_t pad_bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// The first eight bytes are put together in a register and stored once.
static inline void
put_outer4(uint8_t *ip, const struct sa *sa, uint16_t len, uint16_t id_be, uint8_t tos, uint8_t df)
{
	uint64_t head, mid;
	uint32_t dst, sum;

	memcpy(&head, sa->outer, 8);
	memcpy(&mid, sa->outer + 8, 8); // TTL, protocol, checksum (zero), source
	memcpy(&dst, sa->outer + 16, 4);
	head |= (uint64_t)tos << 8 | (uint64_t)rte_cpu_to_be_16(len) << 16 | (uint64_t)id_be << 32 |
		(uint64_t)df << 48;
	sum = sa->outer_sum + (uint32_t)((head & 0xffff) + (head >> 16 & 0xffff) +
					 (head >> 32 & 0xffff) + (head >> 48));
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	mid |= (uint64_t)(uint16_t)~sum << 16;
	memcpy(ip, &head, 8);
	memcpy(ip + 8, &mid, 8);
	memcpy(ip + 16, &dst, 4);
}

static inline void
put_outer6(uint8_t *ip, const struct sa *sa, uint16_t len, uint8_t tos)
{
	uint64_t head;

	memcpy(&head, sa->outer, 8);
	head |= (uint64_t)(tos >> 4) | (uint64_t)(tos & 0xf) << 12 |
		(uint64_t)rte_cpu_to_be_16((uint16_t)(len - sizeof(struct rte_ipv6_hdr))) << 32;
	memcpy(ip, &head, 8);
	memcpy(ip + 8, sa->outer + 8, sizeof(struct rte_ipv6_hdr) - 8);
}

static inline void
put_outer(const struct worker *w, struct rte_mbuf *m, const struct sa *sa, const uint8_t *inner,
	  uint64_t seq_be)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *), tos, df;
	uint16_t len = (uint16_t)m->pkt_len;
	uint64_t udp;

	seal_marks(w, m, sa, inner, &tos, &df);
	if (sa->family == 4)
		put_outer4(ip, sa, len, (uint16_t)(seq_be >> 48), tos, df);
	else
		put_outer6(ip, sa, len, tos);
	if (sa->natt) {
		uint8_t l3 = (uint8_t)(sa->hdr_len - sizeof(struct rte_udp_hdr));

		memcpy(&udp, sa->outer + l3, 8);
		udp |= (uint64_t)rte_cpu_to_be_16((uint16_t)(len - l3)) << 32;
		memcpy(ip + l3, &udp, 8);
	}
}

// The IV as the wire and as the algorithm want it; where the ciphertext begins.
static inline void
put_iv(const struct sa *sa, struct mb_work *work, uint64_t seq_be)
{
	uint64_t v = seq_be ^ sa->iv[0], zero = 0;

	work->cipher_off = (uint16_t)(8 + sa->iv_len);
	switch ((enum sa_iv)sa->iv_kind) {
	case SA_IV_XOR:
		memcpy(work->esp + 8, &v, 8);
		// Salt and IV in one store, as the crypto reads them in one.
		_mm_store_si128((__m128i *)work->iv,
				_mm_set_epi64x((int64_t)(v >> 32), (int64_t)(sa->salt | v << 32)));
		break;
	case SA_IV_CBC:
		// The cipher starts one block early, over the number under a secret IV: so the
		// IV on the wire is AES(sequence ^ secret), which nobody can foretell (RFC 3602).
		memcpy(work->esp + 8, &seq_be, 8);
		memcpy(work->esp + 16, &zero, 8);
		memcpy(work->iv, sa->iv, 16);
		work->cipher_off = 8;
		work->cipher_len = (uint16_t)(work->cipher_len + 16);
		break;
	case SA_IV_NONE:
		break;
	}
}

// Everything but the crypto.
// @param sequence  its number, host byte order, 64 bits also without ESN
static inline void
seal_write(const struct worker *w, struct rte_mbuf *m, const struct sa *sa, uint64_t sequence,
	   struct mb_work *work)
{
	uint8_t family = pkt(m)->family;
	uint8_t *inner = rte_pktmbuf_mtod(m, uint8_t *), *tail = inner + m->pkt_len;
	uint64_t seq_be = rte_cpu_to_be_64(sequence); // high half in the low bits
	uint64_t esp = sa->spi_be | (seq_be & ~UINT64_C(0xffffffff));
	uint32_t cipher_len = RTE_ALIGN_CEIL(m->pkt_len + 2, (uint32_t)sa->align);
	uint32_t pad = cipher_len - m->pkt_len - 2;
	uint16_t head = (uint16_t)(sa->hdr_len + 8u + sa->iv_len);

	memcpy(tail, pad_bytes, sizeof(pad_bytes)); // at most 15 count; seal_bind saw the room
	tail[pad] = (uint8_t)pad;
	tail[pad + 1] = family == 4 ? IPPROTO_IPIP : family == 6 ? IPPROTO_IPV6 : NEXT_DUMMY;

	work->key = sa->key;
	work->esp = inner - sa->iv_len - 8;
	work->tag = inner + cipher_len;
	work->cipher_len = (uint16_t)cipher_len;
	work->hash_len = (uint16_t)(8u + sa->iv_len + cipher_len);
	put_iv(sa, work, seq_be);
	memcpy(work->esp, &esp, 8);
	if (sa->aead) {
		aad_fill(sa, work, seq_be);
	} else if (sa->esn) { // RFC 4303 section 2.2.1: behind the trailer, where the ICV comes afterwards
		memcpy(work->tag, &seq_be, 4);
		work->hash_len = (uint16_t)(work->hash_len + 4);
	}
	m->data_off = (uint16_t)(m->data_off - head);
	m->data_len = (uint16_t)(head + cipher_len + sa->icv_len);
	m->pkt_len = m->data_len;
	put_outer(w, m, sa, inner, seq_be);
}

uint16_t
seal_direct(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct mb_work works[BURST];
	const struct sa *last = NULL;
	uint64_t packets = 0, bytes = 0;
	uint16_t ready = 0, out = 0, run;

	for (uint16_t i = 0; i < n; i = (uint16_t)(i + run)) {
		struct sa *sa = pkt(pkts[i])->sa;
		uint64_t first;
		uint16_t may, k;

		run = run_length(pkts + i, (uint16_t)(n - i));
		may = sa_sequence_take(sa, run, &first);
		for (k = 0; k < may; k++) {
			seal_write(w, pkts[i + k], sa, first + k, &works[ready]);
			pkts[ready++] = pkts[i + k];
		}
		for (; unlikely(k < run); k++)
			drop(w, pkts[i + k], seal_starved(sa));
	}
	steer_turn_pass(w, STEER_SEAL);
	mb_run(w->mb, works, ready);
	for (uint16_t i = 0; i < ready; i++) {
		const struct sa *sa = pkt(pkts[i])->sa;

		if (unlikely(sa != last)) {
			sa_count(last, w->index, packets, bytes);
			last = sa;
			packets = bytes = 0;
		}
		if (unlikely(works[i].failed)) {
			drop(w, pkts[i], DROP_esp_crypto);
			continue;
		}
		packets++;
		bytes += pkt(pkts[i])->inner_bytes;
		seal_done(pkts[i], sa);
		pkts[out++] = pkts[i];
	}
	sa_count(last, w->index, packets, bytes);
	return out;
}
