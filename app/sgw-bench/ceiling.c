/* SPDX-License-Identifier: BSD-3-Clause */
#include "ceiling.h"

#define FRAME_MIN 60 // bytes without FCS
#define VLAN_LEN 4

uint32_t
encap_l3(const struct encap *e, uint32_t l3)
{
	if (e->cipher == ALG_NONE)
		return l3;
	if (e->transport)
		return alg_transport_len(e->cipher, e->auth, e->family, e->natt, 0, l3);
	return alg_sealed_len(e->cipher, e->auth, e->family, e->natt, l3);
}

uint32_t
encap_wire(const struct encap *e, uint32_t l3)
{
	uint32_t frame = ETH_LEN + (uint32_t)VLAN_LEN * e->vlan_tags + encap_l3(e, l3);

	return (frame < FRAME_MIN ? FRAME_MIN : frame) + WIRE_EXTRA;
}

// Mean over the sizes of what f says of one.
static double
mean(const struct encap *e, uint32_t (*f)(const struct encap *e, uint32_t l3), const uint32_t *l3,
     const uint32_t *weights, uint32_t n)
{
	double sum = 0, all = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t w = n == 1 ? 1 : weights[i];

		sum += (double)w * f(e, l3[i]);
		all += w;
	}
	return sum / all;
}

static uint32_t
clear_frame(const struct encap *e, uint32_t l3)
{
	return ETH_LEN + l3;
}

double
ceiling_pps(const struct encap *e, double bps, const uint32_t *l3, const uint32_t *weights,
	    uint32_t n)
{
	return bps / 8 / mean(e, encap_wire, l3, weights, n);
}

double
ceiling_bps(const struct encap *e, double bps, const uint32_t *l3, const uint32_t *weights,
	    uint32_t n)
{
	return ceiling_pps(e, bps, l3, weights, n) * 8 * mean(e, clear_frame, l3, weights, n);
}

uint32_t
ceiling_inner(const struct encap *e, uint32_t mtu)
{
	if (e->cipher == ALG_NONE)
		return mtu;
	if (e->transport)
		return alg_transport_payload(e->cipher, e->auth, e->family, e->natt, 0, mtu);
	return alg_inner_mtu(e->cipher, e->auth, e->family, e->natt, mtu);
}

// ---------------------------------------------------------------- the tables

static const struct {
	const char *name;
	struct encap e;
} columns[] = {
	{"clear", {0}},
	{"GCM-16", {.cipher = ALG_AES_GCM_16}},
	{"CBC+SHA1", {.cipher = ALG_AES_CBC, .auth = ALG_HMAC_SHA1_96}},
	{"CBC+SHA256", {.cipher = ALG_AES_CBC, .auth = ALG_HMAC_SHA256_128}},
	{"NULL, no ICV", {.cipher = ALG_NULL}},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct {
	const char *name;
	uint8_t family;
	bool natt;
} outers[] = {{"IPv4 outer", 4, false},
	      {"IPv6 outer", 6, false},
	      {"IPv4 + NAT-T", 4, true},
	      {"IPv6 + NAT-T", 6, true}};
#define OUTERS (sizeof(outers) / sizeof(outers[0]))

// Frames with FCS as RFC 2544 counts them, 546 being the lab's; the last is the IMIX.
static const uint32_t frames[] = {64, 128, 256, 512, 546, 1024, 1280, 1400, 1518};
#define FRAMES (sizeof(frames) / sizeof(frames[0]))
static const uint32_t imix_l3[] = {64 - 18, 570 - 18, 1518 - 18}, imix_weights[] = {7, 4, 1};

static struct encap
column_encap(size_t c, size_t o)
{
	struct encap e = columns[c].e;

	e.family = outers[o].family;
	e.natt = outers[o].natt;
	return e;
}

static void
print_head(FILE *out, const char *first)
{
	fprintf(out, "%-14s", first);
	for (size_t c = 0; c < COLUMNS; c++)
		fprintf(out, " %11s", columns[c].name);
	fprintf(out, "\n");
}

static void
print_rates(FILE *out, double bps, size_t o, bool kpps)
{
	fprintf(out, "\n%s, %s\n", outers[o].name,
		kpps ? "kpps" : "Mb/s of clear frames without FCS");
	print_head(out, "frame with FCS");
	for (size_t f = 0; f <= FRAMES; f++) {
		uint32_t l3 = f < FRAMES ? frames[f] - 18 : 0, n = f < FRAMES ? 1 : 3;
		const uint32_t *sizes = f < FRAMES ? &l3 : imix_l3;

		if (f < FRAMES)
			fprintf(out, "%-14u", frames[f]);
		else
			fprintf(out, "%-14s", "IMIX 7:4:1");
		for (size_t c = 0; c < COLUMNS; c++) {
			struct encap e = column_encap(c, o);

			if (c == 0 && o > 0)
				fprintf(out, " %11s", "");
			else if (kpps)
				fprintf(out, " %11.1f",
					ceiling_pps(&e, bps, sizes, imix_weights, n) / 1e3);
			else
				fprintf(out, " %11.1f",
					ceiling_bps(&e, bps, sizes, imix_weights, n) / 1e6);
		}
		fprintf(out, "\n");
	}
}

// IPv4 and TCP without options are 40 bytes.
static void
print_inner(FILE *out)
{
	fprintf(out, "\nLargest inner packet at MTU 1500, and TCP MSS inside IPv4\n");
	print_head(out, "outer");
	for (size_t o = 0; o < OUTERS; o++) {
		fprintf(out, "%-14s", outers[o].name);
		for (size_t c = 0; c < COLUMNS; c++) {
			struct encap e = column_encap(c, o);
			uint32_t inner = ceiling_inner(&e, 1500);
			char text[24];

			snprintf(text, sizeof(text), "%u (%u)", inner, inner - 40);
			fprintf(out, " %11s", c == 0 && o > 0 ? "" : text);
		}
		fprintf(out, "\n");
	}
}

void
ceiling_print(double bps, FILE *out)
{
	fprintf(out,
		"What a link of %.0f Mb/s carries, tunnel mode. Each frame takes 24 bytes more on the\n"
		"wire: FCS, preamble, gap. ChaCha20-Poly1305 has the lengths of GCM-16.\n",
		bps / 1e6);
	for (size_t o = 0; o < OUTERS; o++) {
		print_rates(out, bps, o, false);
		print_rates(out, bps, o, true);
	}
	print_inner(out);
}
