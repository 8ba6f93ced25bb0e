/* SPDX-License-Identifier: BSD-3-Clause */
#include "shape.h"

#include "cksum.h"

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

// Behind the signature every packet has the same bytes; what the first n of them add to a
// checksum.
static uint8_t fill[FRAME_L3_MAX];
static uint32_t fill_sum[FRAME_L3_MAX + 1];

static void
make_fill(void)
{
	uint64_t x = UINT64_C(0x2545f4914f6cdd1d);

	for (size_t i = 0; i < sizeof(fill); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		fill[i] = (uint8_t)x;
	}
	for (size_t n = 1; n <= sizeof(fill); n++)
		fill_sum[n] = (uint32_t)cksum_add(fill_sum[(n - 1) & ~(size_t)1],
						  fill + ((n - 1) & ~(size_t)1), 2 - n % 2);
}

// ---------------------------------------------------------------- addresses

// The low 64 bits, or 32 of IPv4, as a number.
static uint64_t
addr_low(const struct addr *a)
{
	uint64_t v = 0;

	for (size_t i = a->family == 4 ? 0 : 8; i < addr_size(a->family); i++)
		v = v << 8 | a->b[i];
	return v;
}

// How many addresses; ranges of args_parse() are short.
static uint64_t
range_count(const struct range *r)
{
	return addr_low(&r->last) - addr_low(&r->first) + 1;
}

static inline void
put_address(uint8_t *to, const struct addr *first, uint32_t add)
{
	if (first->family == 4) {
		uint32_t v;

		memcpy(&v, first->b, 4);
		v = rte_cpu_to_be_32(rte_be_to_cpu_32(v) + add);
		memcpy(to, &v, 4);
	} else {
		uint64_t v;

		memcpy(&v, first->b + 8, 8);
		v = rte_cpu_to_be_64(rte_be_to_cpu_64(v) + add);
		memcpy(to, first->b, 8);
		memcpy(to + 8, &v, 8);
	}
}

// ---------------------------------------------------------------- from the command line

// Sizes in turn: at each place the one that is furthest behind its share.
static uint32_t
make_schedule(struct shape *s, const struct size_mix *mix)
{
	uint32_t done[SIZES_MAX] = {0}, total = 0;
	double sum = 0;

	for (uint32_t i = 0; i < mix->n; i++)
		total += mix->weight[i];
	if (mix->n == 1)
		total = 1;
	for (uint32_t k = 0; k < total && k < SCHEDULE_MAX; k++) {
		uint32_t best = 0;
		double most = -1;

		for (uint32_t i = 0; i < mix->n; i++) {
			double behind = (double)mix->weight[i] * (k + 1) / total - done[i];

			if (mix->n == 1 || behind > most) {
				most = behind;
				best = i;
			}
		}
		done[best]++;
		s->l3[k] = (uint16_t)mix->l3[best];
		sum += mix->l3[best];
	}
	s->mean_l3 = total > 0 ? sum / total : 0;
	return total;
}

static uint32_t
common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int
shape_fill(struct shape *s, const struct args *a, uint8_t family, const struct size_mix *mix,
	   bool reverse, struct err *err)
{
	uint64_t all;

	make_fill();
	*s = (struct shape){.family = family, .hdr_len = (uint8_t)((family == 4 ? 20 : 40) + 8)};
	s->checksum = a->checksum;
	s->n_src = (uint32_t)range_count(&a->src);
	all = s->n_src * range_count(&a->dst);
	s->n_flows = a->flows == 0 || a->flows > all ? (uint32_t)all : a->flows;
	s->src = reverse ? a->dst.first : a->src.first;
	s->dst = reverse ? a->src.first : a->dst.first;
	if (reverse)
		s->n_src = (uint32_t)range_count(&a->dst);
	s->sport_be = rte_cpu_to_be_16(reverse ? a->dport : a->sport);
	s->dport_be = rte_cpu_to_be_16(reverse ? a->sport : a->dport);
	s->n_sizes = make_schedule(s, mix);
	if (s->n_sizes == 0 || s->n_sizes > SCHEDULE_MAX)
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "--size %s: its weights add up to %u, at most %d; make "
			       "them smaller",
			       mix->name, s->n_sizes, SCHEDULE_MAX);
	if (a->flows > all)
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "--flows %u: --src and --dst make only %llu; widen "
			       "them",
			       a->flows, (unsigned long long)all);
	s->rounds = s->n_sizes / common_divisor(s->n_sizes, s->n_flows);
	s->min_l3 = UINT16_MAX;
	for (uint32_t i = 0; i < s->n_sizes; i++) {
		s->min_l3 = s->l3[i] < s->min_l3 ? s->l3[i] : s->min_l3;
		s->max_l3 = s->l3[i] > s->max_l3 ? s->l3[i] : s->max_l3;
	}
	if (s->min_l3 < s->hdr_len || s->max_l3 > FRAME_L3_MAX)
		return err_set(err, EXIT_USAGE, -EINVAL,
			       "--size %s: has IP packets of %u to %u bytes; IPv%u "
			       "with UDP has %u at least, and %d at most",
			       mix->name, s->min_l3, s->max_l3, family, s->hdr_len, FRAME_L3_MAX);
	s->signed_ = s->min_l3 >= s->hdr_len + SIG_LEN;
	return 0;
}

// ---------------------------------------------------------------- writing

static inline void
put_ip4(const struct shape *s, uint8_t *ip, uint16_t l3, uint32_t flow, uint64_t seq)
{
	static const uint8_t head[12] = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, IPPROTO_UDP, 0, 0};

	memcpy(ip, head, sizeof(head));
	ip[2] = (uint8_t)(l3 >> 8);
	ip[3] = (uint8_t)l3;
	ip[4] = (uint8_t)(seq >> 8);
	ip[5] = (uint8_t)seq;
	put_address(ip + 12, &s->src, flow % s->n_src);
	put_address(ip + 16, &s->dst, flow / s->n_src);
	cksum_ip4_set(ip, 20);
}

static inline void
put_ip6(const struct shape *s, uint8_t *ip, uint16_t l3, uint32_t flow)
{
	uint16_t payload = (uint16_t)(l3 - 40);
	const uint8_t head[8] = {0x60,        0, 0, 0, (uint8_t)(payload >> 8), (uint8_t)payload,
				 IPPROTO_UDP, 64};

	memcpy(ip, head, sizeof(head));
	put_address(ip + 8, &s->src, flow % s->n_src);
	put_address(ip + 24, &s->dst, flow / s->n_src);
}

// Over all of UDP, whose filling is known.
// @param off  bytes behind the UDP header that are not filling
static uint16_t
udp_sum(const struct shape *s, const uint8_t *ip, const uint8_t *udp, uint32_t len, uint32_t off)
{
	uint64_t sum = cksum_pseudo(s->family, ip + (s->family == 4 ? 12 : 8),
				    ip + (s->family == 4 ? 16 : 24), IPPROTO_UDP, len);

	return (uint16_t)~cksum_fold(cksum_add(sum, udp, 8 + off) + fill_sum[len - 8 - off]);
}

void
shape_write(const struct shape *s, uint8_t *ip, uint32_t flow, uint64_t seq, uint32_t time,
	    uint64_t key)
{
	uint16_t l3 = shape_l3(s, flow, seq), len = (uint16_t)(l3 - s->hdr_len + 8), zero = 0;
	uint8_t *udp = ip + s->hdr_len - 8;

	if (s->family == 4)
		put_ip4(s, ip, l3, flow, seq);
	else
		put_ip6(s, ip, l3, flow);
	memcpy(udp, &s->sport_be, 2);
	memcpy(udp + 2, &s->dport_be, 2);
	udp[4] = (uint8_t)(len >> 8);
	udp[5] = (uint8_t)len;
	memcpy(udp + 6, &zero, 2);
	if (s->signed_) {
		const struct sig sig = {sig_check(key, flow, (uint32_t)seq, time), flow,
					(uint32_t)seq, time};

		memcpy(udp + 8, &sig, SIG_LEN);
		memcpy(udp + 8 + SIG_LEN, fill, len - 8u - SIG_LEN);
	} else {
		memcpy(udp + 8, fill, len - 8u);
	}
	// Over IPv6 there must be one (RFC 8200 section 8.1).
	if (s->checksum || s->family == 6) {
		uint16_t sum = udp_sum(s, ip, udp, len, s->signed_ ? SIG_LEN : 0);

		sum = sum == 0 ? 0xffff : sum; // RFC 768
		memcpy(udp + 6, &sum, 2);
	}
}

// ---------------------------------------------------------------- looking

// How far an address is from the first one of its range. @return n or more: not of it
static inline uint64_t
address_index(const uint8_t *at, const struct addr *first)
{
	uint64_t v;

	if (first->family == 4) {
		uint32_t a, b;

		memcpy(&a, at, 4);
		memcpy(&b, first->b, 4);
		return (uint32_t)(rte_be_to_cpu_32(a) - rte_be_to_cpu_32(b));
	}
	if (memcmp(at, first->b, 8) != 0)
		return UINT64_MAX;
	memcpy(&v, at + 8, 8);
	return rte_be_to_cpu_64(v) - addr_low(first);
}

// The flow that addresses and ports say. @return n_flows or more: none
static inline uint64_t
flow_of(const struct shape *s, const uint8_t *ip)
{
	const uint8_t *udp = ip + s->hdr_len - 8;
	uint64_t src, dst;

	if (memcmp(udp, &s->sport_be, 2) != 0 || memcmp(udp + 2, &s->dport_be, 2) != 0)
		return UINT64_MAX;
	src = address_index(ip + (s->family == 4 ? 12 : 8), &s->src);
	dst = address_index(ip + (s->family == 4 ? 16 : 24), &s->dst);
	return src < s->n_src && dst <= s->n_flows ? dst * s->n_src + src : UINT64_MAX;
}

static inline uint32_t
l3_of(const struct shape *s, const uint8_t *ip)
{
	return s->family == 4 ? (uint32_t)ip[2] << 8 | ip[3] : ((uint32_t)ip[4] << 8 | ip[5]) + 40;
}

// Everything that was written once and must be so still.
static bool
is_sound(const struct shape *s, const uint8_t *ip, uint32_t len, uint32_t off)
{
	const uint8_t *udp = ip + s->hdr_len - 8;
	uint32_t l3 = l3_of(s, ip), udp_len = (uint32_t)udp[4] << 8 | udp[5];
	uint16_t sum;

	if (l3 > len || l3 < s->min_l3 || l3 > s->max_l3 || udp_len != l3 - s->hdr_len + 8)
		return false;
	if (memcmp(udp + 8 + off, fill, udp_len - 8 - off) != 0)
		return false;
	memcpy(&sum, udp + 6, 2);
	if (!s->checksum && s->family == 4)
		return sum == 0;
	return sum != 0 && udp_sum(s, ip, udp, udp_len, off) == 0;
}

// Late from a trial before?
static bool
is_late(const struct sig *sig, const uint64_t *keys)
{
	for (int i = 1; i < KEYS; i++)
		if (sig->check == sig_check(keys[i], sig->flow, sig->seq, sig->time))
			return true;
	return false;
}

enum verdict
shape_look(const struct shape *s, const uint8_t *ip, uint32_t len, const uint64_t *keys,
	   struct seen *out)
{
	struct sig sig;
	uint64_t flow;

	// An IPv4 header with options is not ours, nor a fragment.
	if (len < s->hdr_len ||
	    (s->family == 4 ? ip[0] != 0x45 || ip[9] != IPPROTO_UDP || (ip[6] & 0x3f) || ip[7] :
			      ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP))
		return SEEN_FOREIGN;
	flow = flow_of(s, ip);
	if (flow >= s->n_flows)
		return SEEN_FOREIGN;
	out->flow = (uint32_t)flow;
	out->seq = out->time = 0;
	if (!s->signed_)
		return is_sound(s, ip, len, 0) ? SEEN_GOOD : SEEN_CORRUPTED;
	if (len < s->hdr_len + (uint32_t)SIG_LEN)
		return SEEN_CORRUPTED;
	memcpy(&sig, ip + s->hdr_len, SIG_LEN);
	if (unlikely(sig.check != sig_check(keys[0], sig.flow, sig.seq, sig.time)))
		return is_late(&sig, keys) ? SEEN_FOREIGN : SEEN_CORRUPTED;
	if (unlikely(sig.flow != flow || !is_sound(s, ip, len, SIG_LEN)))
		return SEEN_CORRUPTED;
	out->seq = sig.seq;
	out->time = sig.time;
	return SEEN_GOOD;
}

bool
shape_is_long(const struct shape *s, const uint8_t *ip, uint32_t flow, uint64_t seq)
{
	return l3_of(s, ip) == shape_l3(s, flow, seq);
}
