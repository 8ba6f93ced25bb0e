// SPDX-License-Identifier: BSD-3-Clause
// Writes a feed file for feed.c: ESP of many SAs, sequence numbers ascending from 1, a few million
// packets in a second or two. With OpenSSL, which none of the measured programs uses.
//
//   mkesp FEED N TEMPLATES SAS
//
// TEMPLATES: inner packets, each behind two 16-bit numbers, its SA and its length; they are taken
// in turn until N are written. SAS: a line an SA, in hex but the algorithm:
//   gcm|chacha|cbc  key  salt or auth key  SPI  Ethernet, outer IP and UDP header
// The lengths and the IPv4 checksum of the headers are filled in here.
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX 96
#define SAS_MAX 16384

struct sa {
	char kind; // 'g'cm, c'h'acha, c'b'c
	uint8_t salt[4];
	uint32_t spi, seq;
	uint8_t head[HEAD_MAX];
	int head_len, icv_len;
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mac;
};

struct feed_head {
	char magic[8];
	uint64_t n;
};

static struct sa sas[SAS_MAX];
static int n_sas;

static void
must(int rc, const char *what)
{
	if (rc != 1)
		errx(1, "openssl: %s failed", what);
}

static int
unhex(const char *text, uint8_t *out, int max)
{
	int n = 0;

	for (; text[0] != '\0' && text[1] != '\0' && n < max; text += 2, n++) {
		char two[3] = {text[0], text[1], '\0'};

		out[n] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void
put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
init_mac(struct sa *s, const uint8_t *key, int len)
{
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
						 (char *)(uintptr_t)(len == 20 ? "SHA1" : "SHA256"), 0),
		OSSL_PARAM_construct_end(),
	};

	s->icv_len = len == 20 ? 12 : 16;
	s->mac = EVP_MAC_CTX_new(hmac);
	must(EVP_MAC_init(s->mac, key, (size_t)len, params), "HMAC");
}

static const EVP_CIPHER *
cipher_of(char kind, int key_len)
{
	if (kind == 'h')
		return EVP_chacha20_poly1305();
	if (kind == 'g')
		return key_len == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
	return key_len == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc();
}

static void
read_sas(const char *path)
{
	char kind[16], key_hex[80], second_hex[80], head_hex[2 * HEAD_MAX + 1];
	FILE *f = fopen(path, "r");
	uint8_t key[40], second[40];

	if (f == NULL)
		err(1, "%s", path);
	while (n_sas < SAS_MAX && fscanf(f, "%15s %79s %79s %x %192s", kind, key_hex, second_hex,
					 &sas[n_sas].spi, head_hex) == 5) {
		struct sa *s = &sas[n_sas++];
		int key_len = unhex(key_hex, key, sizeof(key));
		int second_len = unhex(second_hex, second, sizeof(second));

		s->kind = kind[0] == 'g' ? 'g' : kind[1];
		s->icv_len = 16;
		s->head_len = unhex(head_hex, s->head, HEAD_MAX);
		memcpy(s->salt, second, 4);
		if (s->kind == 'b')
			init_mac(s, second, second_len);
		s->cipher = EVP_CIPHER_CTX_new();
		must(EVP_EncryptInit_ex(s->cipher, cipher_of(s->kind, key_len), NULL, key, NULL), "key");
		EVP_CIPHER_CTX_set_padding(s->cipher, 0);
	}
	fclose(f);
	if (n_sas == 0)
		errx(1, "%s: no SA", path);
}

// xorshift64: CBC wants IVs that differ, nobody here wants them secret.
static uint64_t
scramble(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static unsigned int
sum16(const uint8_t *p, int n)
{
	unsigned int sum = 0;

	for (int i = 0; i < n; i += 2)
		sum += (unsigned int)p[i] << 8 | p[i + 1];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

// Ethernet, outer IP and perhaps UDP in front of `esp_len` bytes.
static void
put_head(const struct sa *s, uint8_t *out, int esp_len)
{
	uint8_t *ip = out + 14;
	bool v4;
	int ip_len;

	memcpy(out, s->head, (size_t)s->head_len);
	v4 = ip[0] >> 4 == 4;
	ip_len = v4 ? 20 : 40;
	if (v4) {
		put16(ip + 2, (unsigned int)(s->head_len - 14 + esp_len));
		put16(ip + 10, 0);
		put16(ip + 10, sum16(ip, 20));
	} else {
		put16(ip + 4, (unsigned int)(s->head_len - 54 + esp_len));
	}
	if (s->head_len > 14 + ip_len)
		put16(ip + ip_len + 4, (unsigned int)(8 + esp_len));
}

static int
seal_aead(struct sa *s, uint8_t *esp, int clear_len)
{
	uint8_t nonce[12];
	int n;

	put32(esp + 8, 0);
	put32(esp + 12, s->seq);
	memcpy(nonce, s->salt, 4);
	memcpy(nonce + 4, esp + 8, 8);
	must(EVP_EncryptInit_ex(s->cipher, NULL, NULL, NULL, nonce), "nonce");
	must(EVP_EncryptUpdate(s->cipher, NULL, &n, esp, 8), "AAD");
	must(EVP_EncryptUpdate(s->cipher, esp + 16, &n, esp + 16, clear_len), "text");
	must(EVP_EncryptFinal_ex(s->cipher, esp + 16 + n, &n), "end");
	must(EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_GET_TAG, 16, esp + 16 + clear_len), "tag");
	return 16 + clear_len + 16;
}

static int
seal_cbc(struct sa *s, uint8_t *esp, int clear_len)
{
	uint64_t iv[2] = {scramble(), scramble()};
	uint8_t mac[32];
	size_t mac_len;
	int n;

	memcpy(esp + 8, iv, 16);
	must(EVP_EncryptInit_ex(s->cipher, NULL, NULL, NULL, esp + 8), "IV");
	must(EVP_EncryptUpdate(s->cipher, esp + 24, &n, esp + 24, clear_len), "text");
	must(EVP_MAC_init(s->mac, NULL, 0, NULL), "HMAC");
	must(EVP_MAC_update(s->mac, esp, (size_t)(24 + clear_len)), "HMAC");
	must(EVP_MAC_final(s->mac, mac, &mac_len, sizeof(mac)), "HMAC");
	memcpy(esp + 24 + clear_len, mac, (size_t)s->icv_len);
	return 24 + clear_len + s->icv_len;
}

// One frame. @return its length
static int
make(struct sa *s, const uint8_t *inner, int len, uint8_t *out)
{
	uint8_t *esp = out + s->head_len;
	int iv_len = s->kind == 'b' ? 16 : 8, align = s->kind == 'b' ? 16 : 4;
	int pad = (align - (len + 2) % align) % align, n;
	uint8_t *text = esp + 8 + iv_len;

	put32(esp, s->spi);
	put32(esp + 4, ++s->seq);
	memcpy(text, inner, (size_t)len);
	for (int i = 0; i < pad; i++)
		text[len + i] = (uint8_t)(i + 1);
	text[len + pad] = (uint8_t)pad;
	text[len + pad + 1] = inner[0] >> 4 == 6 ? 41 : 4;
	n = s->kind == 'b' ? seal_cbc(s, esp, len + pad + 2) : seal_aead(s, esp, len + pad + 2);
	put_head(s, out, n);
	return s->head_len + n;
}

static uint8_t *
slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0)
		err(1, "%s", path);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size + 1);
	if (data == NULL || fread(data, 1, *size, f) != *size)
		err(1, "%s", path);
	fclose(f);
	return data;
}

int
main(int argc, char **argv)
{
	struct feed_head head = {"sgwfeed1", 0};
	static uint8_t record[4 + 4096];
	static char buffer[1 << 20];
	size_t size, at = 0;
	uint8_t *templates;
	FILE *f;

	if (argc != 5)
		errx(2, "usage: mkesp FEED N TEMPLATES SAS");
	head.n = strtoull(argv[2], NULL, 10);
	templates = slurp(argv[3], &size);
	read_sas(argv[4]);
	f = fopen(argv[1], "wb");
	if (f == NULL || setvbuf(f, buffer, _IOFBF, sizeof(buffer)) != 0)
		err(1, "%s", argv[1]);
	fwrite(&head, sizeof(head), 1, f);
	for (uint64_t i = 0; i < head.n; i++) {
		uint16_t sa, len;
		uint32_t n;

		if (at + 4 > size)
			at = 0;
		memcpy(&sa, templates + at, 2);
		memcpy(&len, templates + at + 2, 2);
		if (sa >= n_sas || len > 2000 || at + 4 + len > size)
			errx(1, "%s: broken", argv[3]);
		n = (uint32_t)make(&sas[sa], templates + at + 4, len, record + 4);
		at += 4u + len;
		memcpy(record, &n, 4);
		fwrite(record, 1, (4 + n + 15) & ~15u, f);
	}
	if (fclose(f) != 0)
		err(1, "%s", argv[1]);
	return 0;
}
