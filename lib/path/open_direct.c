/* SPDX-License-Identifier: BSD-3-Clause */
// Opening in tunnel mode, ESP read here and the crypto done by ipsec-mb without a
// device in between: look at the window, crypto, then window, trailer and lifetime.
#include "esp.h"
#include "steer.h"

#include <rte_byteorder.h>
#include <rte_esp.h>
#include <rte_ip.h>
#include <rte_udp.h>
#include <rte_vect.h>

#include <string.h>

// What is known of an opened packet until its inner header is looked at.
struct opened {
	uint16_t head;       // bytes in front of the inner packet
	uint16_t len;        // bytes of the inner packet, TFC padding included
	uint8_t next_header; //
	uint8_t ecn;         // of the outer header
};

// Nonce or IV, additional data, and with ESN the high half where it belongs.
static inline void
fill_work(const struct sa *sa, struct mb_work *work, uint64_t sequence)
{
	uint64_t iv, seq_be = rte_cpu_to_be_64(sequence); // high half in the low bits

	switch ((enum sa_iv)sa->iv_kind) {
	case SA_IV_XOR:
		memcpy(&iv, work->esp + 8, 8);
		_mm_store_si128((__m128i *)work->iv,
				_mm_set_epi64x((int64_t)(iv >> 32), (int64_t)(sa->salt | iv << 32)));
		break;
	case SA_IV_CBC:
		memcpy(work->iv, work->esp + 8, 16);
		break;
	case SA_IV_NONE:
		break;
	}
	if (sa->aead) {
		aad_fill(sa, work, seq_be);
	} else if (sa->esn) { // RFC 4303 section 2.2.1; open_commit() puts back what stood there
		memcpy(work->aad, work->esp + work->hash_len, 4);
		memcpy(work->esp + work->hash_len, &seq_be, 4);
		work->hash_len = (uint16_t)(work->hash_len + 4);
	}
}

// Length, alignment and window, before any crypto is spent (RFC 4303 section 3.4.3).
// Another worker may move the window meanwhile: open_commit() looks again.
// @return a reason to drop, or -1 with work filled
static inline int
open_begin(struct rte_mbuf *m, const struct sa *sa, struct mb_work *work)
{
	struct pkt *p = pkt(m);
	uint32_t l3 = p->l4_off + (sa->natt ? (uint32_t)sizeof(struct rte_udp_hdr) : 0);
	uint32_t head = l3 + (uint32_t)sizeof(struct rte_esp_hdr) + sa->iv_len;
	uint32_t least = head + sa->icv_len + RTE_MAX(sa->align, (uint8_t)4);
	uint32_t low_be, cipher_len = m->pkt_len - head - sa->icv_len;
	int why;

	// Both alignments are powers of two.
	if (unlikely(m->pkt_len < least || (cipher_len & (sa->align - 1u)) != 0))
		return DROP_esp_runt;
	work->key = sa->key;
	work->esp = rte_pktmbuf_mtod_offset(m, uint8_t *, l3);
	work->tag = work->computed;
	work->cipher_off = (uint16_t)(head - l3);
	work->cipher_len = (uint16_t)cipher_len;
	work->hash_len = (uint16_t)(head - l3 + cipher_len);
	memcpy(&low_be, work->esp + 4, 4);
	p->sequence = replay_infer(sa->replay, rte_be_to_cpu_32(low_be));
	why = replay_reason(replay_check(sa->replay, p->sequence));
	if (unlikely(why >= 0))
		return why;
	fill_work(sa, work, p->sequence);
	return -1;
}

// Padding is 1, 2, 3 …: RFC 4303 section 2.4 wants it looked at.
static inline bool
pad_is_good(const uint8_t *end, uint32_t pad, uint32_t cipher_len)
{
	if (pad + 2 > cipher_len)
		return false;
	for (uint32_t i = 0; i < pad; i++)
		if ((end - pad)[i] != i + 1)
			return false;
	return true;
}

// Is it authentic, and new still? The window moves only with packets whose trailer is
// good, as in the other form.
// @return a reason to drop, or -1 with o filled
static inline int
open_commit(struct rte_mbuf *m, struct sa *sa, struct mb_work *work, struct opened *o)
{
	uint8_t *icv = work->esp + work->cipher_off + work->cipher_len;
	uint32_t pad = icv[-2];
	int why;

	if (unlikely(work->failed))
		return DROP_esp_crypto;
	if (unlikely(sa->esn && !sa->aead))
		memcpy(icv, work->aad, 4);
	if (unlikely(!mb_tag_equal(work->computed, icv, sa->icv_len)))
		return DROP_esp_auth;
	why = replay_reason(replay_check(sa->replay, pkt(m)->sequence));
	if (unlikely(why >= 0))
		return why;
	if (unlikely(!pad_is_good(icv - 2, pad, work->cipher_len)))
		return DROP_esp_trailer;
	replay_commit(sa->replay, pkt(m)->sequence);
	o->next_header = icv[-1];
	o->ecn = outer_ecn(m);
	o->len = (uint16_t)(work->cipher_len - 2 - pad);
	o->head = (uint16_t)(icv - work->cipher_len - rte_pktmbuf_mtod(m, uint8_t *));
	return sa_lifetime_take(sa, o->len) ? -1 : DROP_sa_lifetime;
}

// Packets of one SA after the crypto. @return how many are left, compacted
static uint16_t
commit_run(struct worker *w, struct rte_mbuf **pkts, struct mb_work *works, uint16_t n,
	   struct opened *opened)
{
	struct sa *sa = pkt(pkts[0])->sa;
	bool lock = sa->shared || sa->natt; // the control thread reads what NAT-T notes
	uint16_t good = 0;

	if (unlikely(lock))
		rte_spinlock_lock(&sa->lock);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		int why = open_commit(m, sa, &works[i], &opened[good]);

		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		if (unlikely(sa->natt)) {
			struct addr source = outer_source(m, sa->family);

			peer_note(sa, &source, pkt(m)->sport);
		}
		pkts[good++] = m;
	}
	if (unlikely(lock))
		rte_spinlock_unlock(&sa->lock);
	return good;
}

// The outer header and the trailer go, the inner packet is looked at.
static uint16_t
bare(struct worker *w, struct rte_mbuf **pkts, const struct opened *opened, uint16_t n)
{
	const struct sa *last = NULL;
	uint64_t packets = 0, bytes = 0;
	uint16_t good = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		const struct opened *o = &opened[i];
		struct sa *sa = pkt(m)->sa;
		int why;

		if (unlikely(sa != last)) {
			sa_count(last, w->index, packets, bytes);
			last = sa;
			packets = bytes = 0;
		}
		m->data_off = (uint16_t)(m->data_off + o->head);
		m->data_len = o->len;
		m->pkt_len = o->len;
		why = open_inner(w, m, sa, o->next_header, o->ecn);
		if (unlikely(why >= 0)) {
			drop(w, m, (enum drop_reason)why);
			continue;
		}
		packets++;
		bytes += m->pkt_len;
		pkts[good++] = m;
	}
	sa_count(last, w->index, packets, bytes);
	return good;
}

uint16_t
open_direct(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct mb_work works[BURST];
	struct opened opened[BURST];
	uint16_t ready = 0, good = 0, run;

	for (uint16_t i = 0; i < n; i++) {
		int why = open_begin(pkts[i], pkt(pkts[i])->sa, &works[ready]);

		if (unlikely(why >= 0))
			drop(w, pkts[i], (enum drop_reason)why);
		else
			pkts[ready++] = pkts[i];
	}
	mb_run(w->mb, works, ready);
	if (ready > 0)
		steer_turn_wait(w, STEER_OPEN);
	for (uint16_t i = 0; i < ready; i = (uint16_t)(i + run)) {
		uint16_t left;

		run = run_length(pkts + i, (uint16_t)(ready - i));
		left = commit_run(w, pkts + i, works + i, run, opened + good);
		memmove(pkts + good, pkts + i, left * sizeof(pkts[0]));
		good = (uint16_t)(good + left);
	}
	return bare(w, pkts, opened, good);
}
