/* SPDX-License-Identifier: BSD-3-Clause */
// Proves that the two forms of ESP are one: what the direct form seals, the look-aside
// form seals to the same bytes; whatever arrives, good, damaged, cut, repeated, late or
// with a broken trailer, both say the same of it, packet by packet, and are left in the
// same state. That these bytes are the right ones is proved against others, in
// test/interop.
//
// Packets lie in buffers of their exact length with a page behind them (or in front)
// that may not be touched: the assembly of ipsec-mb is watched too.
//
// All is random; SGW_SEED=N repeats a run.
#include "cksum.h"
#include "crypto.h"
#include "esp.h"
#include "flow.h"
#include "mb.h"

#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_ip.h>

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define AREA (20 * 4096u) // for one packet, between two forbidden pages
#define PAIRS 12
#define ROOM_BEHIND 64    // look-aside: librte_ipsec puts the AAD there
#define PASSED (-1)

enum form { DIRECT, LOOK_ASIDE, FORMS };
enum place { POOL, GUARD_BEHIND, GUARD_BEFORE, PLACES };

// An SA in both forms, outbound and inbound.
struct pair {
	struct sa *out[FORMS], *in[FORMS];
	struct tunnel tunnel[FORMS];
	struct tunnel_path path;
	enum form form[FORMS]; // which one takes part in the first and the second run
	uint64_t sequence;     // last that was used in a packet made here
	char label[128];
};

// One packet, before.
struct item {
	uint8_t b[UINT16_MAX + 64];
	uint16_t len;
	uint8_t family;     // sealing: of the inner packet, or FAMILY_DUMMY
	uint16_t flags;     // sealing
	struct pair *pair;  // NULL: clear
	uint16_t l4_off;    // opening
	int want;           // PASSED, a reason, or ANY
	uint16_t inner_len; // opening: of what is inside, in b of `inner`
};

// And after.
struct result {
	uint16_t n;
	struct rte_mbuf *pkts[BURST];
	int why[BURST];
};

struct exact {
	struct rte_mbuf m;
	struct pkt p;
};

#define ANY (-2)

static const struct tables tables;
static struct worker w;
static struct rte_mempool *pool;
static struct pair pairs[PAIRS];
static struct item items[BURST], plain[BURST];
static struct exact exact[FORMS][BURST];
static uint8_t *areas;
static uint64_t seed;
static int *verdicts; // of the run under way
static uint64_t n_compared;

// ---------------------------------------------------------------- chance

static uint64_t
rnd(void)
{
	static uint64_t x;

	if (x == 0)
		x = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static uint32_t
upto(uint32_t n) // 0…n
{
	return (uint32_t)(rnd() % (n + 1));
}

static void
rnd_bytes(void *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)b)[i] = (uint8_t)rnd();
}

static const char *
why_text(int why)
{
	static const char *const names[] = {
#define X(name, class, text) [DROP_##name] = #name,
		DROP_REASONS(X)
#undef X
	};

	return why >= 0 ? names[why] : "passed";
}

// ---------------------------------------------------------------- what lib/path calls

void
drop(struct worker *worker, struct rte_mbuf *m, enum drop_reason why)
{
	assert_int_equal(verdicts[m->hash.usr], PASSED);
	verdicts[m->hash.usr] = (int)why;
	if (pkt(m)->sa != NULL)
		pkt(m)->sa->stats[worker->index].ended[why]++;
	if (m->pool != NULL)
		rte_pktmbuf_free(m);
}

// ---------------------------------------------------------------- SAs

struct spec {
	enum alg_id cipher, auth;
	uint8_t key_len;
	bool esn, natt;
	uint8_t family;
	uint64_t sequence;
	uint32_t window;
	uint64_t hard_packets;
};

static void
pair_make(struct pair *p, const struct spec *s)
{
	static uint32_t spi = 0x1000;
	struct cfg_sa c = {
		.spi = spi++,
		.cipher = s->cipher,
		.auth = s->auth,
		.key.len = (uint8_t)(s->key_len + alg_get(s->cipher)->salt_len),
		.auth_key.len = alg_get(s->auth)->key_lens[0],
		.esn = s->esn,
		.natt = s->natt,
		.natt_sport = (uint16_t)(4500 + upto(1)),
		.natt_dport = 4500,
		.sequence = s->sequence,
		.df = (enum cfg_df)upto(CFG_DF_CLEAR),
		.dscp = upto(1) ? CFG_DSCP_COPY : (uint8_t)upto(63),
		.hard.packets = s->hard_packets,
	};
	struct err err;

	memset(p, 0, sizeof(*p));
	assert_int_equal(addr_parse(s->family == 4 ? "192.0.2.1" : "2001:db8::1", &c.src), 0);
	assert_int_equal(addr_parse(s->family == 4 ? "192.0.2.2" : "2001:db8::2", &c.dst), 0);
	rnd_bytes(c.key.b, c.key.len);
	rnd_bytes(c.auth_key.b, c.auth_key.len);
	snprintf(c.name, sizeof(c.name), "%x", c.spi);
	snprintf(p->label, sizeof(p->label), "%s/%u %s%s%s outer IPv%u from %llu window %u",
		 alg_get(s->cipher)->name, s->key_len * 8, alg_get(s->auth)->name, s->esn ? " ESN" : "",
		 s->natt ? " UDP" : "", s->family, (unsigned long long)s->sequence, s->window);
	p->sequence = s->sequence;
	p->form[1] = LOOK_ASIDE;
	for (enum form f = DIRECT; f < FORMS; f++) {
		struct mb_manager *mgr = f == DIRECT ? w.mb : NULL;

		c.inbound = false;
		c.replay_window = 0;
		p->out[f] = sa_create(&c, mgr, 1, PKT_IV_OFFSET, NULL, &err);
		c.inbound = true;
		c.replay_window = s->window;
		p->in[f] = sa_create(&c, mgr, 1, PKT_IV_OFFSET, NULL, &err);
		if (p->out[f] == NULL || p->in[f] == NULL)
			fail_msg("%s: %s", p->label, err.text);
		p->tunnel[f] = (struct tunnel){.sa_out = p->out[f], .path = &p->path, .mtu = 1400};
		p->out[f]->tunnel = p->in[f]->tunnel = &p->tunnel[f];
	}
	memcpy(p->out[LOOK_ASIDE]->iv, p->out[DIRECT]->iv, sizeof(p->out[0]->iv));
}

static void
pair_free(struct pair *p)
{
	for (enum form f = DIRECT; f < FORMS; f++) {
		sa_free(p->out[f]);
		sa_free(p->in[f]);
	}
	memset(p, 0, sizeof(*p));
}

static void
check_same_sa(const struct sa *a, const struct sa *b, const char *label)
{
	if (memcmp(a->stats, b->stats, sizeof(*a->stats)) != 0)
		fail_msg("%s: counters differ", label);
	if (a->sequence != b->sequence || a->used_packets != b->used_packets ||
	    a->used_bytes != b->used_bytes || a->expired != b->expired)
		fail_msg("%s: sequence or lifetime differ", label);
	if (!a->inbound)
		return;
	if (memcmp(a->replay, b->replay, replay_bytes(a->replay->size)) != 0)
		fail_msg("%s: windows differ: top %llu, %llu", label,
			 (unsigned long long)a->replay->top, (unsigned long long)b->replay->top);
	if (memcmp(&a->peer, &b->peer, sizeof(a->peer)) != 0 || a->peer_port != b->peer_port ||
	    a->peer_moved != b->peer_moved)
		fail_msg("%s: peers differ", label);
}

static void
check_same_state(const struct pair *p)
{
	check_same_sa(p->out[DIRECT], p->out[LOOK_ASIDE], p->label);
	check_same_sa(p->in[DIRECT], p->in[LOOK_ASIDE], p->label);
}

// Every algorithm with every key length, in turn. @return false: that was all
static bool
spec_next(struct spec *s, unsigned int n)
{
	for (enum alg_id c = ALG_NONE + 1; c < ALG_COUNT; c++) {
		const struct alg *alg = alg_get(c);

		if (alg->kind == ALG_AUTH)
			continue;
		for (unsigned int k = 0; k < 3 && (k == 0 || alg->key_lens[k] != 0); k++)
			for (enum alg_id a = ALG_NONE; a < ALG_COUNT; a++) {
				if (alg->kind == ALG_AEAD ? a != ALG_NONE :
							    a == ALG_NONE || alg_get(a)->kind != ALG_AUTH)
					continue;
				if (n-- > 0)
					continue;
				s->cipher = c;
				s->auth = a;
				s->key_len = alg->key_lens[k];
				return true;
			}
	}
	return false;
}

static void
spec_fill(struct spec *s)
{
	static const uint32_t windows[] = {128, 1, 32, 64, 100, 1024, 4096, 0};
	static const uint64_t starts[] = {0, 1000, UINT32_MAX - 20, (5ull << 32) - 20, UINT32_MAX,
					  77ull << 32};

	s->window = windows[upto(s->esn ? 6 : 7)];
	s->sequence = starts[upto(s->esn ? 5 : 1)];
	s->hard_packets = 0;
}

// ---------------------------------------------------------------- packets

// @return an IP packet of len bytes that is sound, or random bytes
static void
inner_write(struct item *it, uint8_t family, uint16_t len)
{
	uint8_t *b = it->b;
	uint16_t len_be = rte_cpu_to_be_16((uint16_t)(family == 6 ? len - 40 : len));

	it->len = len;
	it->family = family;
	it->flags = 0;
	rnd_bytes(b, len);
	if (family == 4) {
		b[0] = 0x45;
		memcpy(b + 2, &len_be, 2);
		b[6] &= 0x40;
		b[7] = 0;
		b[9] = 253;
		b[12] = b[16] = 10;
		cksum_ip4_set(b, 20);
	} else if (family == 6) {
		b[0] = (uint8_t)(0x60 | b[1] >> 4);
		memcpy(b + 4, &len_be, 2);
		b[6] = 253;
		b[8] = b[24] = 0xfd;
	}
}

static void
inner_random(struct item *it)
{
	static const uint8_t families[] = {4, 6, 4, 6, FAMILY_DUMMY};
	uint8_t family = families[upto(4)];
	uint16_t least = family == 6 ? 40 : 20;

	inner_write(it, family, (uint16_t)(least + upto(upto(1) ? 60 : 1500u - least)));
}

static struct rte_mbuf *
packet(const struct item *it, unsigned int run, unsigned int i, uint32_t before, uint32_t behind,
       enum place place)
{
	uint8_t *area = areas + (run * BURST + i) * (AREA + 2 * 4096) + 4096;
	struct rte_mbuf *m = &exact[run][i].m;
	uint32_t size = before + it->len + behind;

	if (place == POOL) {
		m = rte_pktmbuf_alloc(pool);
		assert_non_null(m);
		memcpy(rte_pktmbuf_append(m, it->len), it->b, it->len);
	} else {
		assert_in_range(size, 0, UINT16_MAX);
		memset(m, 0, sizeof(*m));
		m->buf_addr = place == GUARD_BEHIND ? area + AREA - size : area;
		m->buf_len = (uint16_t)size;
		m->data_off = (uint16_t)before;
		m->data_len = it->len;
		m->pkt_len = it->len;
		m->nb_segs = 1;
		m->priv_size = sizeof(struct pkt);
		memcpy(rte_pktmbuf_mtod(m, void *), it->b, it->len);
	}
	memset(pkt(m), 0xa5, sizeof(struct pkt));
	m->hash.usr = i;
	m->port = 0;
	pkt(m)->nexthop = 7;
	pkt(m)->ident_be = 0;
	pkt(m)->sequence = 0;
	return m;
}

// What may be looked at afterwards.
static void
check_same_packet(struct rte_mbuf *a, struct rte_mbuf *b, const char *label)
{
	const struct pkt *p = pkt(a), *q = pkt(b);

	n_compared++;
	if (a->hash.usr != b->hash.usr)
		fail_msg("%s: another order", label);
	if (a->pkt_len != b->pkt_len || a->data_len != a->pkt_len || b->data_len != b->pkt_len)
		fail_msg("%s: %u bytes, %u bytes", label, a->pkt_len, b->pkt_len);
	if (memcmp(rte_pktmbuf_mtod(a, void *), rte_pktmbuf_mtod(b, void *), a->pkt_len) != 0)
		fail_msg("%s: %u bytes differ", label, a->pkt_len);
	if (p->family != q->family || p->flags != q->flags || p->nexthop != q->nexthop ||
	    p->proto != q->proto || p->l4_off != q->l4_off || p->inner_bytes != q->inner_bytes ||
	    p->sport != q->sport || p->dport != q->dport || p->sequence != q->sequence)
		fail_msg("%s: what is known of it differs", label);
}

static const char *
label_of(const struct item *it)
{
	return it->pair == NULL ? "clear" : it->pair->label;
}

static void
check_same(const struct item *its, uint16_t n, const struct result *a, const struct result *b)
{
	for (uint16_t i = 0; i < n; i++) {
		if (a->why[i] != b->why[i])
			fail_msg("%s: packet %u of %u bytes: %s, %s", label_of(&its[i]), i, its[i].len,
				 why_text(a->why[i]), why_text(b->why[i]));
		if (its[i].want != ANY && a->why[i] != its[i].want)
			fail_msg("%s: packet %u of %u bytes: %s, and %s expected", label_of(&its[i]),
				 i, its[i].len, why_text(a->why[i]), why_text(its[i].want));
	}
	assert_int_equal(a->n, b->n);
	for (uint16_t i = 0; i < a->n; i++)
		check_same_packet(a->pkts[i], b->pkts[i], label_of(&its[a->pkts[i]->hash.usr]));
	for (uint16_t i = 0; i < n; i++)
		if (its[i].pair != NULL)
			check_same_state(its[i].pair);
}

// ---------------------------------------------------------------- both forms

static void
pools_are_full(void)
{
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void
packets_free(const struct result *r)
{
	for (uint16_t i = 0; i < r->n; i++)
		if (r->pkts[i]->pool != NULL)
			rte_pktmbuf_free(r->pkts[i]);
}

static void
result_free(struct result *r)
{
	packets_free(r);
	r->n = 0;
	pools_are_full();
}

// The least room that esp_seal() says it needs.
static uint32_t
room_before(const struct sa *sa)
{
	return sa->hdr_len + 8u + sa->iv_len + 8u;
}

static uint32_t
room_behind(const struct sa *sa)
{
	return 16u + 2 + sa->icv_len + 4 + 16;
}

// Seal its[] in both forms and compare. What the second run made is left in r, and its
// ESP packets in items[], in their order. @return how many those are
static uint16_t
seal_both(struct item *its, uint16_t n, struct result *r)
{
	struct result first;
	enum place place = (enum place)upto(PLACES - 1);
	uint16_t n_sealed = 0;

	for (unsigned int run = 0; run < FORMS; run++) {
		struct rte_mbuf *pkts[BURST];

		for (uint16_t i = 0; i < n; i++) {
			struct pair *p = its[i].pair;
			const struct sa *sa = p == NULL ? pairs[0].out[0] : p->out[0];
			bool roomy = sa->tfc_pad_to != 0;

			pkts[i] = packet(&its[i], run, i, room_before(sa), room_behind(sa) + (roomy ? 1600 : 0),
					 its[i].len > 1600 ? GUARD_BEHIND : place);
			pkt(pkts[i])->sa = NULL;
			pkt(pkts[i])->tunnel = p == NULL ? NULL : &p->tunnel[p->form[run]];
			pkt(pkts[i])->family = its[i].family;
			pkt(pkts[i])->flags = its[i].flags;
			r->why[i] = PASSED;
		}
		verdicts = r->why;
		memcpy(r->pkts, pkts, n * sizeof(pkts[0]));
		r->n = esp_seal(&w, r->pkts, n);
		if (run == 0)
			first = *r;
	}
	check_same(its, n, &first, r);
	for (uint16_t i = 0; i < r->n; i++) {
		struct rte_mbuf *m = r->pkts[i];
		struct item *from = &its[m->hash.usr], *to = &items[n_sealed];

		if (from->pair == NULL || (from->flags & PKT_SEALED)) {
			assert_memory_equal(rte_pktmbuf_mtod(m, void *), from->b, from->len);
			continue;
		}
		assert_ptr_equal(pkt(m)->sa, NULL);
		assert_int_equal(pkt(m)->flags & PKT_SEALED, PKT_SEALED);
		if (from->pair->out[0]->tfc_pad_to == 0)
			assert_int_equal(m->pkt_len, alg_sealed_len(from->pair->out[0]->cipher,
								    from->pair->out[0]->auth,
								    from->pair->out[0]->family,
								    from->pair->out[0]->natt, from->len));
		memcpy(to->b, rte_pktmbuf_mtod(m, void *), m->pkt_len);
		to->len = (uint16_t)m->pkt_len;
		to->pair = from->pair;
		to->l4_off = from->pair->out[0]->family == 4 ? 20 : 40;
		to->want = from->family == FAMILY_DUMMY ? DROP_esp_dummy : PASSED;
		to->inner_len = m->hash.usr; // where it came from
		n_sealed++;
	}
	packets_free(&first);
	return n_sealed;
}

// Open items[] in both forms and compare. What the second run made is left in r.
static void
open_both(uint16_t n, struct result *r)
{
	struct result first;
	enum place place = (enum place)upto(PLACES - 1);

	for (unsigned int run = 0; run < FORMS; run++) {
		for (uint16_t i = 0; i < n; i++) {
			struct pair *p = items[i].pair;
			struct sa *sa = p->in[p->form[run]];

			r->pkts[i] = packet(&items[i], run, i, 0, sa->key != NULL ? 0 : ROOM_BEHIND,
					    items[i].len > 1900 ? GUARD_BEHIND : place);
			pkt(r->pkts[i])->sa = sa;
			pkt(r->pkts[i])->tunnel = NULL;
			pkt(r->pkts[i])->family = sa->family;
			pkt(r->pkts[i])->l4_off = items[i].l4_off;
			pkt(r->pkts[i])->sport = (uint16_t)(4500 + i % 3);
			r->why[i] = PASSED;
		}
		verdicts = r->why;
		r->n = esp_open(&w, r->pkts, n);
		if (run == 0)
			first = *r;
	}
	check_same(items, n, &first, r);
	packets_free(&first);
}

static void
open_and_forget(uint16_t *n)
{
	struct result r;

	open_both(*n, &r);
	result_free(&r);
	*n = 0;
}

// IPv4 options or IPv6 extension headers in front of ESP: opening takes l4_off's word.
static void
put_options(struct item *it)
{
	uint16_t more = (uint16_t)(it->l4_off == 20 ? 4 * upto(10) : 8 * upto(27));

	memmove(it->b + it->l4_off + more, it->b + it->l4_off, it->len - it->l4_off);
	rnd_bytes(it->b + it->l4_off, more);
	it->l4_off = (uint16_t)(it->l4_off + more);
	it->len = (uint16_t)(it->len + more);
}

// An ESP packet with any number and any plaintext, trailer included, made with nothing
// but mb_run(). @param len  of the plaintext, aligned
static void
craft(struct item *it, struct pair *p, uint64_t sequence, const uint8_t *text, uint32_t len)
{
	const struct sa *sa = p->out[DIRECT];
	uint32_t low_be = rte_cpu_to_be_32((uint32_t)sequence);
	uint32_t high_be = rte_cpu_to_be_32((uint32_t)(sequence >> 32));
	uint8_t *b = it->b + sa->hdr_len;
	struct mb_work work = {
		.key = sa->key,
		.esp = b,
		.tag = b + 8 + sa->iv_len + len,
		.cipher_off = (uint16_t)(8 + sa->iv_len),
		.cipher_len = (uint16_t)len,
		.hash_len = (uint16_t)(8 + sa->iv_len + len),
		.aad_len = sa->esn ? 12 : 8,
	};

	memcpy(it->b, sa->outer, sa->hdr_len);
	it->b[1] = (uint8_t)rnd();
	if (sa->natt)
		it->b[sa->family == 4 ? 15 : 23] ^= (uint8_t)upto(1); // the NAT moves it
	memcpy(b, &sa->spi_be, 4);
	memcpy(b + 4, &low_be, 4);
	rnd_bytes(b + 8, sa->iv_len);
	memcpy(b + 8 + sa->iv_len, text, len);
	memcpy(work.aad, &sa->spi_be, 4);
	memcpy(work.aad + 4, sa->esn ? &high_be : &low_be, 4);
	memcpy(work.aad + 8, &low_be, 4);
	if (sa->iv_len == 8) {
		memcpy(work.iv, &sa->salt, 4);
		memcpy(work.iv + 4, b + 8, 8);
	} else {
		memcpy(work.iv, b + 8, sa->iv_len);
	}
	if (sa->esn && !sa->aead) {
		memcpy(work.tag, &high_be, 4);
		work.hash_len = (uint16_t)(work.hash_len + 4);
	}
	mb_run(w.mb, &work, 1);
	assert_true(!work.failed);
	it->len = (uint16_t)(sa->hdr_len + 8 + sa->iv_len + len + sa->icv_len);
	it->pair = p;
	it->l4_off = sa->family == 4 ? 20 : 40;
	it->want = ANY;
	if (upto(3) == 0)
		put_options(it);
}

// A small sound packet with the next number.
static void
craft_good(struct item *it, struct pair *p)
{
	struct item *in = &plain[BURST - 1];
	uint32_t align = p->out[0]->align, pad, len;

	inner_write(in, 4, (uint16_t)(20 + upto(40)));
	in->b[1] |= 1; // ECT: all ECN marks may be put on it
	cksum_ip4_set(in->b, 20);
	len = RTE_ALIGN_CEIL(in->len + 2u, align);
	pad = len - in->len - 2u;
	for (uint32_t i = 0; i < pad; i++)
		in->b[in->len + i] = (uint8_t)(i + 1);
	in->b[len - 2] = (uint8_t)pad;
	in->b[len - 1] = IPPROTO_IPIP;
	craft(it, p, ++p->sequence, in->b, len);
	it->want = PASSED;
}

// Sealed by both, equal; opened by both, equal, and what was sealed.
static void
check_good(struct pair *p)
{
	struct result sealed, opened;
	uint16_t n = (uint16_t)(1 + upto(BURST - 1)), n_sealed;

	for (uint16_t i = 0; i < n; i++) {
		inner_random(&plain[i]);
		plain[i].pair = p;
		plain[i].want = PASSED;
	}
	n_sealed = seal_both(plain, n, &sealed);
	assert_int_equal(n_sealed, n);
	p->sequence += n;
	result_free(&sealed);
	for (uint16_t i = 0; i < n; i++)
		if (upto(3) == 0)
			put_options(&items[i]);
	open_both(n, &opened);
	for (uint16_t i = 0; i < opened.n; i++) {
		struct rte_mbuf *m = opened.pkts[i];
		const struct item *was = &plain[items[m->hash.usr].inner_len];

		assert_int_equal(m->pkt_len, was->len);
		assert_memory_equal(rte_pktmbuf_mtod(m, void *), was->b, was->len);
	}
	result_free(&opened);
	for (uint16_t i = 0; i < n && p->in[0]->replay->size >= BURST; i++)
		items[i].want = DROP_esp_replay;
	for (uint16_t i = 0; i < n; i++) // without a window they pass again
		if (p->in[0]->replay->size < BURST)
			items[i].want = ANY;
	open_and_forget(&n);
}

// A byte changed, each in turn.
static void
check_flipped(struct pair *p)
{
	uint16_t n = 0, size;

	craft_good(&items[0], p);
	size = items[0].len;
	for (uint16_t at = 0; at < size; at++) {
		struct item *it = &items[n++];
		uint16_t esp;

		craft_good(it, p);
		esp = (uint16_t)(it->l4_off + (p->in[0]->natt ? 8 : 0));
		if (at < it->len && !(at >= esp && at < esp + 4)) // the SPI has found the SA
			it->b[at] ^= (uint8_t)(1 + upto(254));
		if (at >= esp + 8 && at < it->len)
			it->want = DROP_esp_auth;
		else if (at >= esp + 4)
			it->want = ANY; // its number: may look late, or seen
		if (n == BURST)
			open_and_forget(&n);
	}
	if (n > 0)
		open_and_forget(&n);
}

// Cut at every length, and longer than it was.
static void
check_cut(struct pair *p)
{
	uint16_t n = 0, size;

	craft_good(&items[0], p);
	size = items[0].len;
	for (uint16_t len = items[0].l4_off; len < size + 40; len++) {
		struct item *it = &items[n++];
		uint16_t was;

		craft_good(it, p);
		was = it->len;
		it->len = RTE_MAX(len, it->l4_off);
		if (it->len > was)
			rnd_bytes(it->b + was, it->len - was);
		if (it->len != was)
			it->want = (it->len - was) % p->in[0]->align != 0 ||
						   it->len < alg_sealed_len(p->in[0]->cipher, p->in[0]->auth,
									p->in[0]->family, p->in[0]->natt, 0) +
								   it->l4_off - (p->in[0]->family == 4 ? 20 : 40) ?
					   DROP_esp_runt :
					   DROP_esp_auth;
		if (n == BURST)
			open_and_forget(&n);
	}
	if (n > 0)
		open_and_forget(&n);
}

// Authentic, but with a trailer as nobody should make it.
static void
check_trailers(struct pair *p)
{
	static const uint8_t nexts[] = {4, 41, NEXT_DUMMY, 0, 50, 6, 255, 4};
	struct item *in = &plain[0];
	uint32_t align = p->out[0]->align;

	for (unsigned int round = 0; round < 4; round++) {
		uint16_t n = 0;

		while (n < BURST) {
			uint32_t text = align * (1 + upto(300 / align)), pad = upto(3) ? upto(text + 4) : upto(255);
			uint8_t next = nexts[upto(7)], family = next == 41 ? 6 : 4;
			bool broken;

			pad &= 255;
			broken = pad + 2 > text;
			// a sound inner packet, where there is room for one
			rnd_bytes(in->b, text);
			if (!broken && text - pad - 2 >= (family == 6 ? 40u : 20u))
				inner_write(in, family, (uint16_t)(text - pad - 2));
			for (uint32_t i = 0; i < pad && i < text - 2; i++)
				in->b[text - 3 - i] = (uint8_t)(pad - i);
			if (pad > 0 && text > 2 && upto(2) == 0) {
				uint32_t at = upto(RTE_MIN(pad, text - 2) - 1);

				in->b[text - 3 - at] ^= (uint8_t)(1 + upto(254));
				broken = true;
			}
			in->b[text - 2] = (uint8_t)pad;
			in->b[text - 1] = next;
			craft(&items[n], p, ++p->sequence, in->b, text);
			if (broken)
				items[n].want = DROP_esp_trailer;
			else if (next == NEXT_DUMMY)
				items[n].want = DROP_esp_dummy;
			else if (next != 4 && next != 41)
				items[n].want = DROP_esp_next_header;
			n++;
		}
		open_and_forget(&n);
	}
}

static void
every_algorithm(bool esn)
{
	struct spec s = {.esn = esn};

	for (unsigned int i = 0; spec_next(&s, i / 4); i++) {
		struct pair *p = &pairs[0];

		s.family = i & 1 ? 6 : 4;
		s.natt = i >> 1 & 1;
		spec_fill(&s);
		pair_make(p, &s);
		check_good(p);
		p->out[DIRECT]->tfc_pad_to = p->out[LOOK_ASIDE]->tfc_pad_to = (uint16_t)upto(1500);
		check_good(p);
		check_flipped(p);
		check_cut(p);
		check_trailers(p);
		pair_free(p);
	}
}

static void
test_every_algorithm(void **state)
{
	(void)state;
	every_algorithm(false);
}

static void
test_every_algorithm_esn(void **state)
{
	(void)state;
	every_algorithm(true);
}

static unsigned int
specs(void)
{
	struct spec s;
	unsigned int n = 0;

	while (spec_next(&s, n))
		n++;
	return n;
}

// Several SAs and clear packets in a burst, numbers and lifetimes that end, and runs in
// which some SAs are direct and the others are not.
static void
test_mixed(void **state)
{
	unsigned int n_specs = specs();

	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		struct result r;
		uint16_t n;

		for (unsigned int k = 0; k < PAIRS; k++) {
			struct spec s = {.esn = upto(1), .natt = upto(1), .family = upto(1) ? 4 : 6};
			bool swap = upto(1) && round % 2;

			spec_next(&s, upto(n_specs - 1));
			spec_fill(&s);
			s.window = RTE_MAX(s.window, 1u);
			s.hard_packets = upto(3) ? 0 : 1 + upto(60);
			if (upto(3) == 0)
				s.sequence = (s.esn ? UINT64_MAX : UINT32_MAX) - 1 - upto(40);
			pair_make(&pairs[k], &s);
			if (upto(3) == 0)
				pairs[k].out[DIRECT]->limit = pairs[k].out[LOOK_ASIDE]->limit =
					s.sequence + upto(RTE_MIN(pairs[k].out[DIRECT]->end - s.sequence, 40u));
			pairs[k].form[0] = swap ? LOOK_ASIDE : DIRECT;
			pairs[k].form[1] = swap ? DIRECT : LOOK_ASIDE;
		}
		for (unsigned int burst = 0; burst < 30; burst++) {
			unsigned int several = upto(PAIRS - 1);

			n = (uint16_t)(1 + upto(BURST - 1));
			for (uint16_t i = 0; i < n; i++) {
				inner_random(&plain[i]);
				plain[i].want = ANY;
				plain[i].pair = upto(5) ? &pairs[upto(several)] : NULL;
				if (upto(20) == 0)
					plain[i].flags |= PKT_SEALED; // as a keepalive
			}
			n = seal_both(plain, n, &r);
			result_free(&r);
			for (uint16_t i = 0; i < n; i++) {
				items[i].want = ANY;
				// librte_ipsec refuses the last numbers of 2^64 (trap 39)
				if (items[i].pair->in[0]->esn && items[i].pair->sequence > UINT64_MAX / 2)
					memcpy(&items[i--], &items[--n], sizeof(items[0]));
			}
			// some twice, in another order, or damaged
			for (uint16_t i = 0; i < n; i++) {
				uint16_t k = (uint16_t)upto(n - 1u);

				if (upto(3) == 0)
					memcpy(&items[i], &items[k], sizeof(items[0]));
				if (upto(9) == 0) // not its SPI, by which esp_select found the SA
					items[i].b[items[i].l4_off + 16 + upto(20)] ^= 4;
				if (upto(9) == 0)
					put_options(&items[i]);
			}
			if (n > 0)
				open_and_forget(&n);
		}
		for (unsigned int k = 0; k < PAIRS; k++) {
			check_same_state(&pairs[k]);
			pair_free(&pairs[k]);
		}
	}
}

// Authentic packets with all kinds of numbers, around the window and far from it.
static void
test_windows(void **state)
{
	static const uint32_t windows[] = {1, 2, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 1000,
					   1024, 4096, 0};

	(void)state;
	for (unsigned int i = 0; i < 2 * RTE_DIM(windows); i++) {
		struct pair *p = &pairs[0];
		struct spec s = {.esn = i % 2, .family = 4, .window = windows[i / 2]};

		if (s.esn && s.window == 0)
			continue; // the configuration refuses it
		spec_next(&s, upto(specs() - 1));
		s.sequence = !s.esn || upto(1) ? upto(300) : (upto(3) + UINT64_C(1)) << 32;
		pair_make(p, &s);
		for (unsigned int burst = 0; burst < 150; burst++) {
			uint16_t n, of = (uint16_t)(1 + upto(BURST - 1));

			for (n = 0; n < of; n++) {
				uint64_t top = p->in[0]->replay->top, width = 2 * s.window + 130, seq;
				const uint64_t seqs[] = {
					top + 1 + n, top + 1 + n, top + upto(40), top - upto(s.window + 2),
					top - s.window, top - s.window + 1, top - width + upto(20),
					top + upto((uint32_t)width), top + UINT32_MAX - width + upto(300),
					top + (UINT64_C(1) << 32), top - (UINT64_C(1) << 32), upto(3), rnd(),
					(top | UINT32_MAX) - upto(70), (top | UINT32_MAX) + upto(70),
				};

				// the far ones seldom, or the window is never where it was
				seq = seqs[upto(2) ? upto(6) : upto(RTE_DIM(seqs) - 1)];
				p->sequence = (s.esn ? seq : (uint32_t)seq) - 1;
				craft_good(&items[n], p);
				items[n].want = ANY;
			}
			open_and_forget(&n);
		}
		pair_free(p);
	}
}

// As long as the buffers of reass.c allow, and a little longer.
static void
test_longest(void **state)
{
	struct spec s = {.family = 4, .window = 128};

	(void)state;
	for (unsigned int i = 0; spec_next(&s, i / 2); i++) {
		struct pair *p = &pairs[0];
		struct result r;
		uint32_t most;
		uint16_t n;

		s.esn = i % 2;
		s.natt = upto(1);
		s.family = upto(1) ? 4 : 6;
		s.sequence = s.esn ? UINT32_MAX - 1 : 0;
		pair_make(p, &s);
		most = UINT16_MAX - room_before(p->out[0]) - room_behind(p->out[0]);
		for (n = 0; n < 4; n++) {
			inner_write(&plain[n], n % 2 ? 6 : 4, (uint16_t)(most - (n < 2 ? 0 : upto(40))));
			plain[n].pair = p;
			plain[n].want = PASSED;
		}
		n = seal_both(plain, n, &r);
		assert_int_equal(n, 4);
		for (uint16_t k = 0; k < n; k++)
			if (items[k].len > UINT16_MAX - ROOM_BEHIND)
				items[k].len = UINT16_MAX - ROOM_BEHIND, items[k].want = ANY;
		result_free(&r);
		open_both(n, &r);
		for (uint16_t k = 0; k < r.n; k++)
			assert_memory_equal(rte_pktmbuf_mtod(r.pkts[k], void *),
					    plain[items[r.pkts[k]->hash.usr].inner_len].b, r.pkts[k]->pkt_len);
		result_free(&r);
		pair_free(p);
	}
}

// A byte less room than is needed, in front or behind.
static void
test_no_room(void **state)
{
	struct spec s = {.window = 128};

	(void)state;
	for (unsigned int i = 0; spec_next(&s, i / 4); i++) {
		struct pair *p = &pairs[0];

		s.family = i & 1 ? 4 : 6;
		s.natt = i >> 1 & 1;
		pair_make(p, &s);
		for (unsigned int run = 0; run < FORMS; run++)
			for (unsigned int side = 0; side < 2; side++) {
				struct rte_mbuf *m;
				int why = PASSED;

				inner_write(&plain[0], 4, 100);
				m = packet(&plain[0], run, 0, room_before(p->out[0]) - !side,
					   room_behind(p->out[0]) - side, GUARD_BEHIND);
				pkt(m)->tunnel = &p->tunnel[run];
				pkt(m)->family = 4;
				pkt(m)->flags = 0;
				pkt(m)->sa = NULL;
				verdicts = &why;
				assert_int_equal(esp_seal(&w, &m, 1), 0);
				assert_int_equal(why, DROP_no_headroom);
			}
		check_same_state(p);
		pair_free(p);
	}
}

// ---------------------------------------------------------------- start and stop

static int
start(void **state)
{
	static char name[] = "test", huge[] = "--no-huge", pci[] = "--no-pci", mem[] = "-m128",
		    tel[] = "--no-telemetry", shconf[] = "--no-shconf", lcore[] = "-l0",
		    log[] = "--log-level=error";
	static char prefix[64];
	char *argv[] = {name, huge, pci, mem, tel, shconf, lcore, log, prefix};
	const char *given = getenv("SGW_SEED");
	size_t slot = AREA + 2 * 4096, size = FORMS * BURST * slot;
	struct err err;

	(void)state;
	seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20;
	printf("SGW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("unit", 255, 0, PKT_PRIV_SIZE, 2048 + 128, 0);
	areas = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == NULL || areas == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < FORMS * BURST; i++)
		if (mprotect(areas + i * slot, 4096, PROT_NONE) != 0 ||
		    mprotect(areas + (i + 1) * slot - 4096, 4096, PROT_NONE) != 0)
			return -1;
	w.mb = mb_manager_create(&err);
	w.tables = &tables; // of no flow anything is known
	w.flows = flow_create();
	if (w.mb == NULL || w.flows == NULL || crypto_open(1, 4 * PAIRS, &err) != 0) {
		printf("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	printf("%llu packets compared\n", (unsigned long long)n_compared);
	crypto_close();
	mb_manager_free(w.mb);
	flow_free(w.flows);
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_algorithm), cmocka_unit_test(test_every_algorithm_esn),
		cmocka_unit_test(test_mixed),           cmocka_unit_test(test_windows),
		cmocka_unit_test(test_longest),         cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
