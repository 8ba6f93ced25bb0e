/* SPDX-License-Identifier: BSD-3-Clause */
// ICMP errors to the sources of packets that could not go on: RFC 792 and 1812
// section 4.3, RFC 4443. Never a way round the policies: an error whose way back
// none of our addresses may take is not sent.
#include "cksum.h"
#include "local.h"
#include "policy.h"
#include "stage.h"

#include <rte_ip.h>

#include <netinet/in.h>
#include <string.h>

#define ERROR_RATE 100       // a second and worker: RFC 1812 4.3.2.8, RFC 4443 2.4 (f)
#define ERROR_BURST 20       //
#define ERROR_MAX4 576       // whole packet, RFC 1812 section 4.3.2.3
#define ERROR_MAX6 1280      // whole packet, RFC 4443 section 2.4 (c)
#define ERROR_TOS 0xc0       // internetwork control, RFC 1812 section 4.3.2.5
#define ICMP_HDR_LEN 8       // of all errors, both families

#define ICMP4_UNREACHABLE 3
#define ICMP4_NET 0
#define ICMP4_HOST 1
#define ICMP4_PROTOCOL 2
#define ICMP4_PORT 3
#define ICMP4_TOO_BIG 4
#define ICMP4_PROHIBITED 13
#define ICMP4_TIME_EXCEEDED 11
#define ICMP6_UNREACHABLE 1
#define ICMP6_NO_ROUTE 0
#define ICMP6_PROHIBITED 1
#define ICMP6_ADDRESS 3
#define ICMP6_PORT 4
#define ICMP6_TOO_BIG 2
#define ICMP6_TIME_EXCEEDED 3
#define ICMP6_PARAMETER 4
#define ICMP6_NEXT_HEADER 1
#define ICMP6_INFORMATIONAL 128 // types from here on are no errors
#define ICMP6_REDIRECT 137

struct icmp_error {
	uint8_t type;
	uint8_t code;
	uint32_t value; // second word of the ICMP header, host byte order
};

static const uint8_t *
address(struct rte_mbuf *m, bool destination)
{
	if (pkt(m)->family == 4)
		return rte_pktmbuf_mtod_offset(m, const uint8_t *, destination ? 16 : 12);
	return rte_pktmbuf_mtod_offset(m, const uint8_t *, destination ? 24 : 8);
}

static bool
is_link_local6(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

// Is it an ICMP error, or can not be told? Nobody gets an error about an error.
static bool
about_icmp_error(struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	uint8_t type;

	if (p->proto != (p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return false;
	if (m->data_len <= p->l4_off)
		return true;
	type = *rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l4_off);
	if (p->family == 6)
		return type < ICMP6_INFORMATIONAL || type == ICMP6_REDIRECT;
	// Queries and their replies; all others are errors or unknown.
	return !(type == 0 || type == 8 || (type >= 13 && type <= 18));
}

// A source that is no single host of others (RFC 1122 section 3.2.2).
static bool
no_host(const struct worker *w, struct rte_mbuf *m)
{
	struct addr src = { .family = pkt(m)->family };

	memcpy(src.b, address(m, false), addr_size(src.family));
	if (addr_is_martian(&src) || addr_is_multicast(&src))
		return true;
	return tables_is_own(w->tables, src.family, src.b);
}

static bool
may_tell(const struct worker *w, struct rte_mbuf *m)
{
	const struct pkt *p = pkt(m);
	const uint8_t *dst = address(m, true);

	if (p->flags & (PKT_FRAGMENT | PKT_LOCAL | PKT_SEALED | PKT_GROUP))
		return false;
	// No multicast is forwarded, so the exceptions of RFC 4443 2.4 (e.3) are moot.
	if (p->family == 4 ? dst[0] >= 224 : dst[0] == 0xff)
		return false;
	return !about_icmp_error(m) && !no_host(w, m);
}

// ---- our address ----

struct source {
	const struct worker *w;
	struct rte_mbuf *m;      // that provoked the error
	uint8_t proto;           // ICMP of its family
	const uint8_t *src;      // found, else NULL
};

static bool
source_try(struct source *s, const struct addr *a)
{
	struct pkt *p = pkt(s->m);

	if (a->family != p->family)
		return false;
	if (!policy_allows_out(s->w, p->family, a->b, address(s->m, false), s->proto,
			       p->flags & PKT_SECURED))
		return false;
	s->src = a->b;
	return true;
}

static bool
source_list(struct source *s, const struct prefix *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (source_try(s, &list[i].addr))
			return true;
	return false;
}

// The first of our addresses that may speak to the source: those of the interface
// that the error leaves by come first (RFC 1812 section 4.3.2.4), so that a
// traceroute shows it. @return NULL: none may
static const uint8_t *
source_find(const struct worker *w, struct rte_mbuf *m)
{
	const struct tables *t = w->tables;
	const struct tport *arrival = &t->ports[m->port];
	const struct nexthop *back = route_find(t, pkt(m)->family, address(m, false));
	struct source s = { .w = w, .m = m };

	s.proto = pkt(m)->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	if (pkt(m)->family == 6 && is_link_local6(address(m, false)))
		return source_try(&s, &arrival->link_local) ? s.src : NULL;
	if (back->kind == NEXTHOP_TUNNEL &&
	    source_list(&s, back->tunnel->addresses, back->tunnel->n_addresses))
		return s.src;
	if (source_list(&s, arrival->addresses, arrival->n_addresses))
		return s.src;
	for (uint32_t i = 0; i < t->n_ports; i++)
		if (&t->ports[i] != arrival &&
		    source_list(&s, t->ports[i].addresses, t->ports[i].n_addresses))
			return s.src;
	for (uint32_t i = 0; i < t->n_tunnels; i++)
		if (source_list(&s, t->tunnels[i].addresses, t->tunnels[i].n_addresses))
			return s.src;
	return NULL;
}

// ---- writing ----

static void
icmp_fill(uint8_t *icmp, const struct icmp_error *e, struct rte_mbuf *about, uint16_t quote)
{
	uint32_t value = rte_cpu_to_be_32(e->value);

	icmp[0] = e->type;
	icmp[1] = e->code;
	icmp[2] = 0;
	icmp[3] = 0;
	memcpy(icmp + 4, &value, sizeof(value));
	memcpy(icmp + ICMP_HDR_LEN, rte_pktmbuf_mtod(about, void *), quote);
}

// @return false: no room
static bool
build4(struct rte_mbuf *m, struct rte_mbuf *about, const uint8_t *src, const struct icmp_error *e)
{
	struct rte_ipv4_hdr *ip;
	uint16_t quote = RTE_MIN(about->data_len, ERROR_MAX4 - sizeof(*ip) - ICMP_HDR_LEN);
	uint16_t len = ICMP_HDR_LEN + quote, sum;
	uint8_t *icmp;

	ip = (void *)rte_pktmbuf_append(m, sizeof(*ip) + len);
	if (ip == NULL)
		return false;
	memset(ip, 0, sizeof(*ip));
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->type_of_service = ERROR_TOS;
	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + len);
	// Never fragmented, so it needs no identification (RFC 6864 section 4.1).
	ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = LOCAL_TTL;
	ip->next_proto_id = IPPROTO_ICMP;
	memcpy(&ip->src_addr, src, 4);
	memcpy(&ip->dst_addr, address(about, false), 4);
	cksum_ip4_set(ip, sizeof(*ip));
	icmp = (uint8_t *)(ip + 1);
	icmp_fill(icmp, e, about, quote);
	sum = cksum_data(icmp, len);
	memcpy(icmp + 2, &sum, sizeof(sum));
	return true;
}

static bool
build6(struct rte_mbuf *m, struct rte_mbuf *about, const uint8_t *src, const struct icmp_error *e)
{
	struct rte_ipv6_hdr *ip;
	uint16_t quote = RTE_MIN(about->data_len, ERROR_MAX6 - sizeof(*ip) - ICMP_HDR_LEN);
	uint16_t len = ICMP_HDR_LEN + quote, sum;
	uint8_t *icmp;

	ip = (void *)rte_pktmbuf_append(m, sizeof(*ip) + len);
	if (ip == NULL)
		return false;
	memset(ip, 0, sizeof(*ip));
	ip->vtc_flow = rte_cpu_to_be_32(0x60000000);
	ip->payload_len = rte_cpu_to_be_16(len);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = LOCAL_TTL;
	memcpy(ip->src_addr, src, 16);
	memcpy(ip->dst_addr, address(about, false), 16);
	icmp = (uint8_t *)(ip + 1);
	icmp_fill(icmp, e, about, quote);
	sum = cksum_l4(6, ip->src_addr, ip->dst_addr, IPPROTO_ICMPV6, icmp, len);
	memcpy(icmp + 2, &sum, sizeof(sum));
	return true;
}

// The token comes first: the search for a source costs some lookups, and a flood
// must not buy them.
static void
icmp_send(struct worker *w, struct rte_mbuf *about, const struct icmp_error *e)
{
	uint8_t family = pkt(about)->family;
	const uint8_t *src = NULL;
	struct rte_mbuf *m = NULL;

	if (bucket_take(&w->icmp_bucket, w, ERROR_RATE, ERROR_BURST))
		src = source_find(w, about);
	if (src != NULL)
		m = local_alloc(w, about->port);
	if (m == NULL) {
		w->icmp_suppressed++;
		return;
	}
	if (!(family == 4 ? build4(m, about, src, e) : build6(m, about, src, e))) {
		drop(w, m, DROP_no_headroom);
		return;
	}
	pkt(m)->family = family;
	pkt(m)->proto = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	pkt(m)->l4_off = family == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	pkt(m)->flags |= pkt(about)->flags & PKT_SECURED; // never back in clear
	local_send(w, m);
}

void
icmp_time_exceeded(struct worker *w, struct rte_mbuf *m)
{
	struct icmp_error e = { .type = pkt(m)->family == 4 ? ICMP4_TIME_EXCEEDED :
							      ICMP6_TIME_EXCEEDED };

	if (may_tell(w, m))
		icmp_send(w, m, &e);
}

void
icmp_too_big(struct worker *w, struct rte_mbuf *m, uint16_t mtu)
{
	struct icmp_error e;

	if (!may_tell(w, m))
		return;
	if (pkt(m)->family == 4) // RFC 1191 section 4: in the lower half of the word
		e = (struct icmp_error){ ICMP4_UNREACHABLE, ICMP4_TOO_BIG, mtu };
	else // RFC 8200 section 5: no link has less than 1280
		e = (struct icmp_error){ ICMP6_TOO_BIG, 0, RTE_MAX(mtu, RTE_IPV6_MIN_MTU) };
	icmp_send(w, m, &e);
}

// Why was it unreachable? To us: nobody listens. Else the route says it: there is
// none, or it is one and the last hop's neighbour does not answer.
static struct icmp_error
unreachable4(const struct worker *w, struct rte_mbuf *m)
{
	struct icmp_error e = { .type = ICMP4_UNREACHABLE, .code = ICMP4_HOST };

	switch (route_find(w->tables, 4, address(m, true))->kind) {
	case NEXTHOP_LOCAL:
		e.code = pkt(m)->proto == IPPROTO_UDP ? ICMP4_PORT : ICMP4_PROTOCOL;
		break;
	case NEXTHOP_NONE:
		e.code = ICMP4_NET;
		break;
	case NEXTHOP_DISCARD:
		e.code = ICMP4_PROHIBITED;
		break;
	}
	return e;
}

static struct icmp_error
unreachable6(const struct worker *w, struct rte_mbuf *m)
{
	struct icmp_error e = { .type = ICMP6_UNREACHABLE, .code = ICMP6_ADDRESS };
	const struct pkt *p = pkt(m);
	const uint8_t *dst = address(m, true);

	if (tables_is_own(w->tables, 6, dst)) {
		e.code = ICMP6_PORT;
		// Protocols other than those with ports: RFC 8200 section 4; the pointer
		// is the offset of the last next header field.
		if (p->proto != IPPROTO_UDP && p->proto != IPPROTO_TCP &&
		    p->l4_off == sizeof(struct rte_ipv6_hdr))
			e = (struct icmp_error){ ICMP6_PARAMETER, ICMP6_NEXT_HEADER, 6 };
		return e;
	}
	switch (route_find(w->tables, 6, dst)->kind) {
	case NEXTHOP_NONE:
		e.code = ICMP6_NO_ROUTE;
		break;
	case NEXTHOP_DISCARD:
		e.code = ICMP6_PROHIBITED;
		break;
	}
	return e;
}

void
icmp_unreachable(struct worker *w, struct rte_mbuf *m)
{
	struct icmp_error e;

	if (!may_tell(w, m))
		return;
	e = pkt(m)->family == 4 ? unreachable4(w, m) : unreachable6(w, m);
	icmp_send(w, m, &e);
}
