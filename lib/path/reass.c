/* SPDX-License-Identifier: BSD-3-Clause */
// Putting fragments together: ESP that was fragmented on its way to us, and clear
// packets where a policy must see ports.
//
// A packet grows in one buffer that can hold the longest there is, each piece is
// copied to its place, and a bit for each 8 bytes says what is there. So memory is
// bounded by the number of contexts, an overlap is seen at once (RFC 5722: the whole
// packet is refused, in IPv4 too), and nothing is ever chained.
#include "frag.h"

#include "cksum.h"
#include "stage.h"

#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_spinlock.h>

#include <netinet/in.h>
#include <string.h>

#define PAYLOAD_OFF 320            // in front: headroom of a packet and the longest header
#define PAYLOAD_MAX 65024          // bytes: a buffer holds 65535 with what stands around it
#define UNITS ((PAYLOAD_MAX + 7) / 8)
#define FRAG6_LEN 8
#define ECN_MASK 3
#define ECN_CE 3

struct key {
	uint8_t src[16];
	uint8_t dst[16];
	uint32_t ident;
	uint16_t port; // of arrival: counters stay right
	uint8_t family;
	uint8_t proto; // IPv4 only
	uint8_t zero[4];
	const struct sa *sa; // it came out of: two peers' pieces never meet
};

struct context {
	struct key key;
	struct rte_mbuf *big; // NULL: free
	uint64_t until;       // TSC
	uint64_t serial;      // the lower the older; a whole burst has one `until`
	uint32_t n;           // fragments in it
	uint32_t total;       // payload bytes, 0: the last piece is not here
	uint32_t units;       // of 8 bytes that are there
	uint32_t hdr_len;     // of the first piece's header, 0: not here
	bool refused;         // overlapped: whatever still comes is dropped
	uint8_t ecn_seen;     // bit n: mark n was on some piece
	uint16_t flags;       // of the packet that it becomes
	struct sa *sa;
	uint32_t largest;     // bytes of L3 of the longest piece
	uint64_t bits[(UNITS + 63) / 64];   // units that are there
	uint64_t starts[(UNITS + 63) / 64]; // units with which a piece begins
};

struct reass {
	rte_spinlock_t lock; // several workers share one, unless the NIC steers
	struct rte_mempool *big;
	uint32_t used;
	uint64_t serial; // of the last context that began
	struct context ctx[REASS_CONTEXTS];
};

// One piece, read from its headers.
struct piece {
	struct key key;
	uint32_t off;     // bytes
	uint32_t len;     // bytes of payload
	uint32_t hdr_len; // unfragmentable part
	uint32_t data;    // where its payload stands
	uint8_t next;     // IPv6: next header of the fragment header
	uint32_t next_at; // IPv6: where the type of the fragment header stands
	bool more;
	uint8_t ecn;
};

struct reass *
reass_create(struct rte_mempool *big)
{
	struct reass *r = rte_zmalloc("reass", sizeof(*r), RTE_CACHE_LINE_SIZE);

	if (r != NULL)
		r->big = big;
	return r;
}

void
reass_free(struct reass *r)
{
	rte_free(r);
}

static void
inspect_piece4(const struct rte_mbuf *m, struct piece *f)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);
	uint16_t frag = rte_be_to_cpu_16(ip->fragment_offset);

	memcpy(f->key.src, &ip->src_addr, 4);
	memcpy(f->key.dst, &ip->dst_addr, 4);
	f->key.ident = ip->packet_id;
	f->key.proto = ip->next_proto_id;
	f->off = (frag & RTE_IPV4_HDR_OFFSET_MASK) * 8u;
	f->more = frag & RTE_IPV4_HDR_MF_FLAG;
	f->hdr_len = rte_ipv4_hdr_len(ip);
	f->data = f->hdr_len;
	f->ecn = ip->type_of_service & ECN_MASK;
}

// ip_inspect has walked these headers before: they are sound up to the fragment header.
static bool
inspect_piece6(const struct rte_mbuf *m, struct piece *f)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(m, const struct rte_ipv6_hdr *);
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t at = offsetof(struct rte_ipv6_hdr, proto), off = sizeof(*ip);

	memcpy(f->key.src, &ip->src_addr, 16);
	memcpy(f->key.dst, &ip->dst_addr, 16);
	while (b[at] != IPPROTO_FRAGMENT) {
		if (b[at] != IPPROTO_HOPOPTS && b[at] != IPPROTO_ROUTING && b[at] != IPPROTO_DSTOPTS)
			return false;
		at = off;
		off += (b[off + 1] + 1u) * 8;
		if (off + FRAG6_LEN > m->pkt_len)
			return false;
	}
	memcpy(&f->key.ident, b + off + 4, 4);
	f->off = (uint32_t)((b[off + 2] << 8 | b[off + 3]) & ~7);
	f->more = b[off + 3] & 1;
	f->next = b[off];
	f->next_at = at;
	f->hdr_len = off;
	f->data = off + FRAG6_LEN;
	f->ecn = (b[1] >> 4) & ECN_MASK;
	return true;
}

static bool
inspect_piece(const struct rte_mbuf *m, const struct pkt *p, struct piece *f)
{
	memset(f, 0, sizeof(*f));
	f->key.family = p->family;
	f->key.port = m->port;
	f->key.sa = p->sa;
	if (p->family == 4)
		inspect_piece4(m, f);
	else if (!inspect_piece6(m, f))
		return false;
	f->len = m->pkt_len - f->data;
	// RFC 8200 section 4.5: all but the last are multiples of 8; nothing beyond the
	// largest packet (the ping of death), nothing empty.
	return f->len > 0 && (!f->more || f->len % 8 == 0) &&
	       f->hdr_len + f->off + f->len <= PAYLOAD_MAX;
}

static void
count_ended(struct worker *w, const struct context *c, enum drop_reason why, uint32_t n)
{
	w->ports[c->key.port].ended[why] += n;
}

static void
context_end(struct worker *w, struct context *c, enum drop_reason why)
{
	count_ended(w, c, why, c->n);
	rte_pktmbuf_free(c->big);
	c->big = NULL;
	w->reass->used--;
}

// Who makes room when all are taken: the oldest of the port that holds the most, so
// that a flood on one port takes nothing from the others.
static struct context *
context_victim(struct reass *r)
{
	uint32_t held[RTE_MAX_ETHPORTS] = {0}, most = 0;
	struct context *oldest = NULL;

	for (uint32_t i = 0; i < REASS_CONTEXTS; i++)
		if (++held[r->ctx[i].key.port] > held[most])
			most = r->ctx[i].key.port;
	for (uint32_t i = 0; i < REASS_CONTEXTS; i++) {
		struct context *c = &r->ctx[i];

		if (c->key.port == most && (oldest == NULL || c->serial < oldest->serial))
			oldest = c;
	}
	return oldest;
}

// The context of a piece; a new one in another's place when all are taken.
static struct context *
context_find(struct worker *w, const struct key *k)
{
	struct reass *r = w->reass;
	struct context *free_one = NULL;

	for (uint32_t i = 0; i < REASS_CONTEXTS; i++) {
		struct context *c = &r->ctx[i];

		if (c->big == NULL)
			free_one = c;
		else if (memcmp(&c->key, k, sizeof(*k)) == 0)
			return c;
	}
	if (free_one == NULL) {
		free_one = context_victim(r);
		context_end(w, free_one, DROP_frag_timeout);
	}
	memset(free_one, 0, sizeof(*free_one));
	free_one->big = rte_pktmbuf_alloc(r->big);
	if (free_one->big == NULL)
		return NULL;
	r->used++;
	free_one->key = *k;
	free_one->until = w->now + REASS_SECONDS * w->hz;
	free_one->serial = ++r->serial;
	return free_one;
}

// @return how many of the units of [first, last] are there already; a word at a time,
// since a hostile last piece has us look at all that lies behind it
static uint32_t
units_there(const struct context *c, uint32_t first, uint32_t last)
{
	uint32_t n = 0;

	for (uint32_t w = first / 64; w <= last / 64; w++) {
		uint64_t mask = UINT64_MAX;

		if (w == first / 64)
			mask &= UINT64_MAX << (first % 64);
		if (w == last / 64)
			mask &= UINT64_MAX >> (63 - last % 64);
		n += (uint32_t)__builtin_popcountll(c->bits[w] & mask);
	}
	return n;
}

static bool
bit(const uint64_t *bits, uint32_t u)
{
	return u < UNITS && (bits[u / 64] >> (u % 64)) & 1;
}

static uint8_t *
payload(const struct context *c)
{
	return (uint8_t *)c->big->buf_addr + PAYLOAD_OFF;
}

// Was this very piece here before, with these bytes? That is no attack, networks do
// it (RFC 8200 section 4.5).
static bool
same_piece(const struct context *c, uint32_t first, uint32_t last, const struct piece *f,
	   const uint8_t *data)
{
	if (!bit(c->starts, first) || (bit(c->bits, last + 1) && !bit(c->starts, last + 1)) ||
	    (!f->more && c->total != f->off + f->len) || (f->more && c->total == f->off + f->len))
		return false;
	for (uint32_t u = first + 1; u <= last; u++)
		if (bit(c->starts, u) || !bit(c->bits, u))
			return false;
	return memcmp(payload(c) + f->off, data, f->len) == 0;
}

// @return a reason to end the piece, or -1: it is in
static int
piece_put(struct context *c, const struct rte_mbuf *m, const struct piece *f)
{
	uint32_t first = f->off / 8, last = (f->off + f->len - 1) / 8, there;
	uint32_t end = f->off + f->len;
	const uint8_t *data = rte_pktmbuf_mtod_offset(m, const uint8_t *, f->data);

	if (c->refused)
		return DROP_frag_overlap;
	there = units_there(c, first, last);
	if (there > 0 && same_piece(c, first, last, f, data))
		return DROP_frag_duplicate;
	if (there > 0 || (c->total != 0 && (end > c->total || !f->more)) ||
	    (!f->more && units_there(c, last + 1 < UNITS ? last + 1 : UNITS - 1, UNITS - 1) > 0)) {
		c->refused = true;
		return DROP_frag_overlap;
	}
	for (uint32_t u = first; u <= last; u++)
		c->bits[u / 64] |= 1ull << (u % 64);
	c->starts[first / 64] |= 1ull << (first % 64);
	c->largest = RTE_MAX(c->largest, m->pkt_len);
	memcpy(payload(c) + f->off, data, f->len);
	c->units += last - first + 1;
	if (!f->more)
		c->total = end;
	c->ecn_seen |= (uint8_t)(1 << f->ecn);
	if (f->off == 0) {
		uint8_t *hdr = payload(c) - f->hdr_len;

		memcpy(hdr, rte_pktmbuf_mtod(m, const void *), f->hdr_len);
		if (c->key.family == 6)
			hdr[f->next_at] = f->next;
		c->hdr_len = f->hdr_len;
		c->flags = pkt((struct rte_mbuf *)(uintptr_t)m)->flags;
		c->sa = pkt((struct rte_mbuf *)(uintptr_t)m)->sa;
	}
	return -1;
}

static bool
complete(const struct context *c)
{
	return c->total != 0 && c->hdr_len != 0 && c->units == (c->total + 7) / 8;
}

// Header fields of the whole. @return false: it can not be one packet
static bool
finish_header(struct context *c)
{
	uint8_t *hdr = payload(c) - c->hdr_len;
	uint32_t len = c->hdr_len + c->total;
	// RFC 3168 section 5.3: CE of one piece is CE of all, unless a piece is not ECT.
	bool ce = c->ecn_seen & (1 << ECN_CE);

	if (ce && (c->ecn_seen & 1))
		return false;
	if (c->key.family == 4) {
		struct rte_ipv4_hdr *ip = (void *)hdr;

		if (len > UINT16_MAX)
			return false;
		ip->total_length = rte_cpu_to_be_16((uint16_t)len);
		ip->fragment_offset = 0;
		if (ce)
			ip->type_of_service |= ECN_CE;
		cksum_ip4_set(ip, c->hdr_len);
	} else {
		struct rte_ipv6_hdr *ip = (void *)hdr;

		if (len - sizeof(*ip) > UINT16_MAX)
			return false;
		ip->payload_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(*ip)));
		if (ce)
			hdr[1] |= ECN_CE << 4;
	}
	return true;
}

static struct rte_mbuf *
take_whole(struct context *c)
{
	struct rte_mbuf *m = c->big;

	m->data_off = (uint16_t)(PAYLOAD_OFF - c->hdr_len);
	m->data_len = (uint16_t)(c->hdr_len + c->total);
	m->pkt_len = m->data_len;
	m->port = c->key.port;
	m->ol_flags = 0;
	m->l2_len = 0;
	return m;
}

static struct rte_mbuf *
context_finish(struct worker *w, struct context *c)
{
	struct rte_mbuf *m;
	struct pkt *p;
	int why;

	if (!finish_header(c)) {
		context_end(w, c, DROP_frag_bad);
		return NULL;
	}
	m = take_whole(c);
	// All but one of the pieces end here, the packet goes on for the last one.
	count_ended(w, c, DROP_frag_taken, c->n - 1);
	c->big = NULL;
	w->reass->used--;
	p = pkt(m);
	p->sa = c->sa;
	p->tunnel = NULL;
	p->nexthop = PKT_NO_NEXTHOP;
	p->flags = (uint16_t)((c->flags & ~(PKT_FRAGMENT | PKT_FIRST_FRAGMENT)) | PKT_JOINED);
	p->family = c->key.family;
	p->ident_be = c->key.ident;
	p->largest_piece = (uint16_t)c->largest;
	why = ip_inspect(m, true);
	if (why < 0 && !(p->flags & (PKT_FRAGMENT | PKT_FIRST_FRAGMENT)))
		return m;
	drop(w, m, why >= 0 ? (enum drop_reason)why : DROP_frag_bad);
	return NULL;
}

static struct rte_mbuf *
piece_add(struct worker *w, struct rte_mbuf *m)
{
	struct context *c;
	struct piece f;
	int why;

	if (!inspect_piece(m, pkt(m), &f)) {
		drop(w, m, DROP_frag_bad);
		return NULL;
	}
	c = context_find(w, &f.key);
	if (c == NULL) {
		drop(w, m, DROP_no_buffer);
		return NULL;
	}
	why = piece_put(c, m, &f);
	if (why >= 0) {
		drop(w, m, (enum drop_reason)why);
		// What came before is refused with it; the context stays to refuse the rest.
		if (c->refused && c->n > 0) {
			count_ended(w, c, DROP_frag_overlap, c->n);
			c->n = 0;
		}
		return NULL;
	}
	rte_pktmbuf_free(m); // counted when the context ends
	c->n++;
	return complete(c) ? context_finish(w, c) : NULL;
}

struct rte_mbuf *
reass_add(struct worker *w, struct rte_mbuf *m)
{
	struct rte_mbuf *whole;

	rte_spinlock_lock(&w->reass->lock);
	whole = piece_add(w, m);
	rte_spinlock_unlock(&w->reass->lock);
	return whole;
}

void
reass_tick(struct worker *w)
{
	struct reass *r = w->reass;

	if (r == NULL || r->used == 0)
		return;
	rte_spinlock_lock(&r->lock);
	for (uint32_t i = 0; i < REASS_CONTEXTS; i++)
		if (r->ctx[i].big != NULL && w->now > r->ctx[i].until)
			context_end(w, &r->ctx[i], DROP_frag_timeout);
	rte_spinlock_unlock(&r->lock);
}

void
reass_drain(struct worker *w)
{
	struct reass *r = w->reass;

	for (uint32_t i = 0; r != NULL && i < REASS_CONTEXTS; i++)
		if (r->ctx[i].big != NULL)
			context_end(w, &r->ctx[i], DROP_stopping);
}
