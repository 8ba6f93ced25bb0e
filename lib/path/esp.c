/* SPDX-License-Identifier: BSD-3-Clause */
// ESP (RFC 4303): seal and open, with librte_ipsec's prepare and process on the
// look-aside path and the corrections that it needs. The numbers after "trap"
// are those of docs/librte.md.
//
// The order of work in both directions: one SA's packets in a group are prepared
// and handed to the crypto device, then the next SA's; then everything is drained
// once, so that a lone packet does not wait and CBC finds company across SAs.
#include "stage.h"

#include "cksum.h"
#include "crypto.h"
#include "sa.h"
#include "sad.h"

#include <rte_cryptodev.h>
#include <rte_esp.h>
#include <rte_ip.h>
#include <rte_ipsec.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>

#define NATT_PORT 4500
#define NEXT_DUMMY 59      // IPPROTO_NONE: RFC 4303 section 2.6
#define L3_LEN_MAX 511     // bits of m->l3_len
#define ECN_MASK 3
#define ECN_CE 3

_Static_assert(BURST <= SAD_BURST, "one SAD lookup a burst");
_Static_assert(PKT_IV_OFFSET <= UINT8_MAX, "librte_ipsec keeps the IV offset in 8 bits (trap 32)");
_Static_assert(offsetof(struct pkt, sym) == sizeof(struct rte_crypto_op), "sym stands behind op");

// ---------------------------------------------------------------- the crypto device

// What a worker has in flight on each device, within one stage call.
struct flight {
	uint16_t n[CRYPTO_DEV_MAX];
};

static uint16_t
collect(const struct worker *w, struct flight *f, unsigned int slot)
{
	struct rte_crypto_op *done[BURST];
	uint16_t n = rte_cryptodev_dequeue_burst(crypto_dev_id(slot), w->crypto_qp, done, BURST);

	f->n[slot] = (uint16_t)(f->n[slot] - n);
	return n;
}

// The queue holds more than a burst; it refuses only for want of a free job, which
// collecting gives.
static void
submit(const struct worker *w, struct flight *f, unsigned int slot, struct rte_crypto_op **ops,
       uint16_t n)
{
	for (uint16_t done = 0; done < n;) {
		uint16_t took = rte_cryptodev_enqueue_burst(crypto_dev_id(slot), w->crypto_qp,
							    ops + done, (uint16_t)(n - done));

		done = (uint16_t)(done + took);
		f->n[slot] = (uint16_t)(f->n[slot] + took);
		if (took == 0)
			collect(w, f, slot);
	}
}

// The devices are software: a dequeue that finds nothing makes them finish what
// is left in their lanes (trap 35), so this ends. Which op belongs to which packet
// needs no telling, it travels in the packet.
static void
drain(const struct worker *w, struct flight *f)
{
	for (unsigned int slot = 0; slot < crypto_n_devs(); slot++)
		while (f->n[slot] > 0)
			collect(w, f, slot);
}

// ---------------------------------------------------------------- groups

// The packets of one SA in a burst, in their order.
struct group {
	struct sa *sa;
	uint16_t n;
	struct rte_mbuf *pkts[BURST];
	struct rte_crypto_op *ops[BURST];
};

// Cut the next group out of pkts: all packets of the first one's SA. Returns the
// number left, compacted.
static uint16_t
group_next(struct group *g, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t left = 0;

	g->sa = pkt(pkts[0])->sa;
	g->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (pkt(pkts[i])->sa == g->sa)
			g->pkts[g->n++] = pkts[i];
		else
			pkts[left++] = pkts[i];
	}
	return left;
}

static void
group_drop(struct worker *w, struct group *g, uint16_t from, enum drop_reason why)
{
	for (uint16_t i = from; i < g->n; i++)
		drop(w, g->pkts[i], why);
	g->n = from;
}

// prepare() moves the mbufs it refuses to the end but compacts the ops (trap 19):
// then op and packet no longer belong together and none can be used. It has
// nothing to refuse, since all it looks at was checked before.
static bool
group_prepare(struct worker *w, struct group *g)
{
	for (uint16_t i = 0; i < g->n; i++) {
		g->ops[i] = &pkt(g->pkts[i])->op;
		g->ops[i]->mempool = NULL;
		pkt(g->pkts[i])->sym.m_dst = NULL; // trap 28
	}
	if (likely(rte_ipsec_pkt_crypto_prepare(&g->sa->session, g->pkts, g->ops, g->n) == g->n))
		return true;
	group_drop(w, g, 0, DROP_esp_prepare);
	return false;
}

// ---------------------------------------------------------------- select

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
	if (p->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT))
		return DROP_ip_fragment;
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
		else if (memcmp(outer_address(m, true), sa->src.b, addr_size(family)) != 0)
			drop(w, m, DROP_esp_sa_source);
		else if (sa->natt != !!(pkt(m)->flags & PKT_UDP_ESP))
			drop(w, m, DROP_esp_sa_encap);
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
	uint16_t count[2] = {0, 0}, rest = 0;

	*n_esp = 0;
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
	return rest;
}

// ---------------------------------------------------------------- open

// Length and alignment of the ciphertext (RFC 4303 section 2.4), so that nothing
// behind can read outside of the packet.
static bool
open_length(struct rte_mbuf *m, const struct sa *sa)
{
	uint32_t l3 = pkt(m)->l4_off + (sa->natt ? (uint32_t)sizeof(struct rte_udp_hdr) : 0);
	uint32_t fixed = l3 + (uint32_t)sizeof(struct rte_esp_hdr) + sa->iv_len + sa->icv_len;

	m->l2_len = 0;
	m->l3_len = l3 & L3_LEN_MAX;
	return l3 <= L3_LEN_MAX && m->pkt_len >= fixed + RTE_MAX(sa->align, (uint8_t)4) &&
	       (m->pkt_len - fixed) % sa->align == 0;
}

static int
replay_reason(enum replay_verdict v)
{
	return v == REPLAY_FRESH ? -1 : v == REPLAY_SEEN ? DROP_esp_replay : DROP_esp_late;
}

// Replay check before any crypto is spent (RFC 4303 section 3.4.3).
static void
open_check(struct worker *w, struct group *g)
{
	uint16_t good = 0;

	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		struct pkt *p = pkt(m);
		uint32_t low_be;
		int why;

		if (!open_length(m, g->sa)) {
			drop(w, m, DROP_esp_runt);
			continue;
		}
		memcpy(&low_be, rte_pktmbuf_mtod_offset(m, void *, m->l3_len + 4), 4);
		p->sequence = replay_infer(g->sa->replay, rte_be_to_cpu_32(low_be));
		why = replay_reason(replay_check(g->sa->replay, p->sequence));
		if (unlikely(why >= 0))
			drop(w, m, (enum drop_reason)why);
		else
			g->pkts[good++] = m;
	}
	g->n = good;
}

static uint8_t
outer_ecn(struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);

	return pkt(m)->family == 4 ? ip[1] & ECN_MASK : (ip[1] >> 4) & ECN_MASK;
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

// After the crypto, before process(): is it authentic, and new still? Two copies
// can be in one burst, and on two workers. The caller holds the SA's lock.
static int
open_verdict(struct rte_mbuf *m, struct sa *sa)
{
	struct pkt *p = pkt(m);

	// process() does not look at the status (trap 30).
	if (unlikely(p->op.status != RTE_CRYPTO_OP_STATUS_SUCCESS))
		return p->op.status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED ? DROP_esp_auth : DROP_esp_crypto;
	return replay_reason(replay_check(sa->replay, p->sequence));
}

// The inner packet that process() laid bare.
// @return a reason to end it, or -1
static int
open_inner(struct rte_mbuf *m, uint8_t next_header, uint8_t ecn)
{
	struct pkt *p = pkt(m);
	int why;

	if (next_header == NEXT_DUMMY)
		return DROP_esp_dummy;
	if (next_header != IPPROTO_IPIP && next_header != IPPROTO_IPV6)
		return DROP_esp_next_header;
	p->family = next_header == IPPROTO_IPIP ? 4 : 6;
	p->flags = PKT_SECURED;
	p->nexthop = PKT_NO_NEXTHOP;
	why = ip_inspect(m, false);
	if (why == DROP_ip_version)
		return DROP_esp_next_header;
	if (why == DROP_multicast || why == DROP_ip_martian)
		return why;
	if (why >= 0)
		return DROP_esp_inner;
	return open_ecn(m, ecn) ? -1 : DROP_esp_ecn;
}

// One packet from the crypto to the inner packet. The window moves only with packets
// that process() takes, as librte_ipsec's own does: were ours ahead (by a packet with
// broken padding), the two would infer different high halves of an ESN, and replays
// that the one calls new would be authentic to the other. The caller holds the lock.
// @return a reason to drop, or -1 with *next_header set
static int
open_one(struct rte_mbuf *m, struct sa *sa, uint8_t *next_header)
{
	int why = open_verdict(m, sa);
	uint8_t *tail;

	if (unlikely(why >= 0))
		return why;
	// The library knows one inner family (trap 3): note the real next header and show
	// it what it wants to see.
	tail = rte_pktmbuf_mtod_offset(m, uint8_t *, m->pkt_len - sa->icv_len - sa->sqh_len - 1);
	*next_header = *tail;
	*tail = IPPROTO_IPIP;
	if (unlikely(rte_ipsec_pkt_process(&sa->session, &m, 1) != 1))
		return DROP_esp_trailer;
	return replay_reason(replay_commit(sa->replay, pkt(m)->sequence));
}

// Everything after the crypto for one group; good packets are appended to out.
static uint16_t
open_finish(struct worker *w, struct group *g, struct rte_mbuf **out)
{
	uint8_t next_header[BURST], ecn[BURST];
	struct sa *sa = g->sa;
	uint16_t good = 0, n_out = 0;

	rte_spinlock_lock(&sa->lock);
	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		int why;

		ecn[good] = outer_ecn(m);
		why = open_one(m, sa, &next_header[good]);
		if (unlikely(why >= 0))
			drop(w, m, (enum drop_reason)why);
		else
			g->pkts[good++] = m;
	}
	g->n = good;
	rte_spinlock_unlock(&sa->lock);

	for (uint16_t i = 0; i < g->n; i++) {
		int why = open_inner(g->pkts[i], next_header[i], ecn[i]);

		if (unlikely(why >= 0)) {
			drop(w, g->pkts[i], (enum drop_reason)why);
			continue;
		}
		sa->stats[w->index].bytes += g->pkts[i]->pkt_len;
		out[n_out++] = g->pkts[i];
	}
	sa->stats[w->index].packets += n_out;
	return n_out;
}

uint16_t
esp_open(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *left[BURST];
	struct group groups[BURST];
	uint16_t n_groups = 0, n_left = n, out = 0;
	struct flight f = {{0}};

	memcpy(left, pkts, n * sizeof(left[0]));
	while (n_left > 0) {
		struct group *g = &groups[n_groups];
		bool ready;

		n_left = group_next(g, left, n_left);
		rte_spinlock_lock(&g->sa->lock);
		open_check(w, g);
		ready = g->n > 0 && group_prepare(w, g);
		rte_spinlock_unlock(&g->sa->lock);
		if (!ready)
			continue;
		submit(w, &f, g->sa->crypto_slot, g->ops, g->n);
		n_groups++;
	}
	drain(w, &f);
	for (uint16_t i = 0; i < n_groups; i++)
		out = (uint16_t)(out + open_finish(w, &groups[i], pkts + out));
	return out;
}

// ---------------------------------------------------------------- seal

// Which SA seals it. @return a reason to drop, or -1
static int
seal_bind(struct rte_mbuf *m)
{
	struct pkt *p = pkt(m);

	if (unlikely(p->tunnel->sa_out == NULL))
		return DROP_sa_missing;
	p->sa = p->tunnel->sa_out;
	// prepare() takes a sequence number before it finds that there is no room (trap 12).
	if (unlikely(rte_pktmbuf_headroom(m) < p->sa->hdr_len + 8u + p->sa->iv_len ||
		     rte_pktmbuf_tailroom(m) < 16u + 2 + p->sa->icv_len + 4 + 16))
		return DROP_no_headroom;
	m->l2_len = 0;
	m->l3_len = 0;
	p->inner_bytes = (uint16_t)m->pkt_len;
	return -1;
}

// The outer header takes DF and the traffic class of the inner one: RFC 4301
// section 8.1 (DF), 5.1.2 (DSCP), RFC 6040 section 4.1 (ECN, normal mode).
static void
seal_outer(struct rte_mbuf *m, const struct sa *sa)
{
	const uint8_t *inner = rte_pktmbuf_mtod_offset(m, uint8_t *, sa->hdr_len + 8u + sa->iv_len);
	uint8_t *outer = rte_pktmbuf_mtod(m, uint8_t *);
	bool inner4 = pkt(m)->family == 4;
	uint8_t tos = inner4 ? inner[1] : (uint8_t)(inner[0] << 4 | inner[1] >> 4);

	if (sa->family == 6) {
		outer[0] = (uint8_t)(0x60 | tos >> 4);
		outer[1] = (uint8_t)(tos << 4);
		return;
	}
	outer[1] = tos;
	// Inside IPv6 nothing is ever fragmented on the way, so neither outside.
	outer[6] = inner4 ? inner[6] & 0x40 : 0x40;
	cksum_ip4_set(outer, sizeof(struct rte_ipv4_hdr)); // trap 8
}

// Between prepare() and the crypto: next header (trap 3) and IV (traps 4, 5, 29).
static void
seal_fix(struct rte_mbuf *m, const struct sa *sa)
{
	struct pkt *p = pkt(m);
	uint8_t *digest = sa->aead ? p->sym.aead.digest.data : p->sym.auth.digest.data;
	uint8_t *iv = rte_pktmbuf_mtod_offset(m, uint8_t *, sa->hdr_len + 8u);
	uint64_t v;

	digest[-1 - sa->sqh_len] = p->family == 4 ? IPPROTO_IPIP : IPPROTO_IPV6; // trap 31
	switch ((enum sa_iv)sa->iv_kind) {
	case SA_IV_XOR:
		memcpy(&v, iv, 8);
		v ^= sa->iv[0];
		memcpy(iv, &v, 8);
		memcpy(p->iv + 4, &v, 8); // behind the salt (trap 33)
		break;
	case SA_IV_CBC:
		memcpy(p->iv, sa->iv, 16);
		break;
	case SA_IV_NONE:
		break;
	}
	seal_outer(m, sa);
}

static void
seal_begin(struct worker *w, struct group *g, struct flight *f)
{
	uint16_t may = sa_sequence_take(g->sa, g->n);

	if (unlikely(may < g->n)) {
		bool end = atomic_load_explicit(&g->sa->limit, memory_order_relaxed) == g->sa->end;

		group_drop(w, g, may, end ? DROP_sa_sequence_end : DROP_sa_sequence_reserve);
	}
	if (g->n == 0 || !group_prepare(w, g))
		return;
	for (uint16_t i = 0; i < g->n; i++)
		seal_fix(g->pkts[i], g->sa);
	submit(w, f, g->sa->crypto_slot, g->ops, g->n);
}

// RFC 3948 section 2.1: zero over IPv4; over IPv6 there must be one (RFC 8200 8.1).
static void
seal_udp6(struct rte_mbuf *m, const struct sa *sa)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_udp_hdr *udp = (void *)(ip + sizeof(struct rte_ipv6_hdr));
	uint16_t sum;

	udp->dgram_cksum = 0;
	sum = cksum_udp(6, sa->src.b, sa->dst.b, udp,
			m->pkt_len - (uint32_t)sizeof(struct rte_ipv6_hdr));
	memcpy(&udp->dgram_cksum, &sum, 2);
}

static void
seal_finish(struct worker *w, struct group *g, struct rte_mbuf **out, uint16_t *n_out)
{
	struct sa_stats *stats = &g->sa->stats[w->index];

	for (uint16_t i = 0; i < g->n; i++) {
		struct rte_mbuf *m = g->pkts[i];
		struct pkt *p = pkt(m);

		// With ESN process() takes the appended high half off again (trap 31); without,
		// it would only count in a line that all workers share.
		if (unlikely(p->op.status != RTE_CRYPTO_OP_STATUS_SUCCESS ||
			     (g->sa->sqh_len != 0 &&
			      rte_ipsec_pkt_process(&g->sa->session, &m, 1) != 1))) {
			drop(w, m, DROP_esp_crypto);
			continue;
		}
		stats->packets++;
		stats->bytes += p->inner_bytes;
		if (g->sa->natt && g->sa->family == 6)
			seal_udp6(m, g->sa);
		p->family = g->sa->family;
		p->proto = g->sa->natt ? IPPROTO_UDP : IPPROTO_ESP;
		p->flags |= PKT_SEALED;
		p->nexthop = PKT_NO_NEXTHOP;
		p->sa = NULL;
		out[(*n_out)++] = m;
	}
}

uint16_t
esp_seal(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *left[BURST];
	struct group groups[BURST];
	uint16_t n_groups = 0, n_left = 0, out = 0;
	struct flight f = {{0}};

	for (uint16_t i = 0; i < n; i++) {
		int why;

		if (pkt(pkts[i])->tunnel == NULL) {
			pkts[out++] = pkts[i]; // in clear, as policy_select said
			continue;
		}
		why = seal_bind(pkts[i]);
		if (unlikely(why >= 0))
			drop(w, pkts[i], (enum drop_reason)why);
		else
			left[n_left++] = pkts[i];
	}
	while (n_left > 0) {
		n_left = group_next(&groups[n_groups], left, n_left);
		seal_begin(w, &groups[n_groups], &f);
		if (groups[n_groups].n > 0)
			n_groups++;
	}
	drain(w, &f);
	for (uint16_t i = 0; i < n_groups; i++)
		seal_finish(w, &groups[i], pkts, &out);
	return out;
}
