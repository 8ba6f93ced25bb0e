/* SPDX-License-Identifier: BSD-3-Clause */
// Values of the command line that are more than a number: sizes, encapsulations, cases.
#include "args_value.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

#define ETH_AND_FCS 18   // RFC 2544 counts frames so
#define PAYLOAD_MAX 9534 // IP packet of 9582 bytes with IPv6 and UDP
#define FRAME_LEAST 64
#define FRAME_MOST 16000

// RFC 6985 section 4: frames with FCS by letter, from a on; z is the MTU of the path.
static const uint32_t genome_frames[] = {64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16000};
#define GENOME_FRAMES (sizeof(genome_frames) / sizeof(genome_frames[0]))

// RFC 6985 has 11 letters, so that SIZES_MAX is enough for all.
static void
add_frame(struct size_mix *m, uint32_t frame, uint32_t weight)
{
	uint32_t i = 0;

	while (i < m->n && m->l3[i] != frame - ETH_AND_FCS)
		i++;
	m->l3[i] = frame - ETH_AND_FCS;
	m->weight[i] += weight;
	m->n = i == m->n ? i + 1 : m->n;
}

static int
parse_genome(const char *letters, uint16_t mtu, struct size_mix *m)
{
	if (letters[0] == '\0')
		return -EINVAL;
	for (; *letters != '\0'; letters++) {
		if (*letters == 'z')
			add_frame(m, mtu + (uint32_t)ETH_AND_FCS, 1);
		else if (*letters >= 'a' && *letters < 'a' + (int)GENOME_FRAMES)
			add_frame(m, genome_frames[*letters - 'a'], 1);
		else
			return -EINVAL;
	}
	return 0;
}

int
args_size(const char *text, uint16_t mtu, struct size_mix *out)
{
	uint64_t frame;

	*out = (struct size_mix){0};
	if ((size_t)snprintf(out->name, sizeof(out->name), "%s", text) >= sizeof(out->name))
		return -EINVAL;
	if (strncmp(text, "genome:", 7) == 0)
		return parse_genome(text + 7, mtu, out);
	if (strcmp(text, "imix") == 0) {
		add_frame(out, 64, 7);
		add_frame(out, 570, 4);
		add_frame(out, 1518, 1);
		return 0;
	}
	if (text_u64(text, &frame) != 0 || frame < FRAME_LEAST || frame > FRAME_MOST)
		return -EINVAL;
	add_frame(out, (uint32_t)frame, 1);
	return 0;
}

int
args_payload(const char *text, uint8_t family, struct size_mix *out)
{
	uint64_t payload;

	if (text_u64(text, &payload) != 0 || payload > PAYLOAD_MAX)
		return -EINVAL;
	*out = (struct size_mix){0};
	add_frame(out, (uint32_t)payload + (family == 4 ? 28 : 48) + ETH_AND_FCS, 1);
	snprintf(out->name, sizeof(out->name), "%u", out->l3[0] + ETH_AND_FCS);
	return 0;
}

// ---------------------------------------------------------------- encapsulations

// "clear", an AEAD, or a cipher and an integrity algorithm with + between.
static int
parse_algorithms(char *word, struct encap *e)
{
	char *plus = strchr(word, '+');

	if (plus != NULL)
		*plus++ = '\0';
	e->cipher = alg_find(word);
	if (e->cipher == ALG_NONE)
		return strcmp(word, "clear") == 0 && plus == NULL ? 0 : -EINVAL;
	if (alg_get(e->cipher)->kind == ALG_AEAD)
		return plus == NULL ? 0 : -EINVAL;
	if (alg_get(e->cipher)->kind != ALG_CIPHER || plus == NULL)
		return -EINVAL;
	e->auth = alg_find(plus);
	return e->auth != ALG_NONE && alg_get(e->auth)->kind == ALG_AUTH ? 0 : -EINVAL;
}

int
args_encap(const char *text, struct encap *out)
{
	char copy[128], *rest = copy, *word;
	uint8_t family = 0;

	*out = (struct encap){0};
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy) ||
	    parse_algorithms(strsep(&rest, " "), out) != 0)
		return -EINVAL;
	while ((word = strsep(&rest, " ")) != NULL) {
		if (out->cipher == ALG_NONE)
			return -EINVAL; // clear has no outer header
		if ((strcmp(word, "v4") == 0 || strcmp(word, "v6") == 0) && family == 0)
			family = (uint8_t)(word[1] - '0');
		else if (strcmp(word, "natt") == 0 && !out->natt)
			out->natt = true;
		else if (strcmp(word, "transport") == 0 && !out->transport)
			out->transport = true;
		else
			return -EINVAL;
	}
	out->family = family == 0 ? 4 : family;
	return 0;
}

// ---------------------------------------------------------------- cases of a sweep

// The text up to ",do=", or all of it. @return the command, NULL: none
static const char *
find_command(const char *text, size_t *len)
{
	const char *at = strstr(text, ",do=");

	*len = at != NULL ? (size_t)(at - text) : strlen(text);
	return at != NULL ? at + 4 : NULL;
}

int
args_case(const char *text, struct bench_case *out)
{
	char *rest = out->kept, *word;
	size_t len;

	*out = (struct bench_case){.command = find_command(text, &len)};
	if (len >= sizeof(out->kept) || (out->command != NULL && out->command[0] == '\0'))
		return -EINVAL;
	memcpy(out->kept, text, len); // the rest is zero
	word = strsep(&rest, ",");
	if (word[0] == '\0' || strlen(word) >= sizeof(out->name))
		return -EINVAL;
	memcpy(out->name, word, strlen(word));
	while ((word = strsep(&rest, ",")) != NULL) {
		if (strncmp(word, "esp=", 4) == 0 && word[4] != '\0' && out->file == NULL)
			out->file = word + 4;
		else if (strncmp(word, "encap=", 6) == 0 && !out->has_encap &&
			 args_encap(word + 6, &out->encap) == 0)
			out->has_encap = true;
		else
			return -EINVAL;
	}
	return 0;
}
