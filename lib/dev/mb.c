/* SPDX-License-Identifier: BSD-3-Clause */
#include "mb.h"

#include <intel-ipsec-mb.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_vect.h>

#include <errno.h>
#include <stdlib.h>

#define HMAC_BLOCK_MAX 128

struct mb_key {
	aes_gcm_enc_dec_t gcm; // one shot; NULL: by jobs
	uint8_t key_len;       // bytes
	uint8_t iv_len;        // bytes
	uint8_t tag_len;       // bytes
	uint8_t order;         // IMB_CHAIN_ORDER
	struct {
		uint8_t cipher;    // IMB_CIPHER_MODE
		uint8_t hash;      // IMB_HASH_ALG
		uint8_t direction; // IMB_CIPHER_DIRECTION
		uint8_t key_len;   // bytes
	} kind; // keys of one kind can go together
	union {
		struct gcm_key_data gcm_data;
		struct {
			uint32_t enc[4 * 15] __attribute__((aligned(16)));
			uint32_t dec[4 * 15] __attribute__((aligned(16)));
			uint8_t inner[64] __attribute__((aligned(16))); // hash of key ^ ipad
			uint8_t outer[64] __attribute__((aligned(16))); // hash of key ^ opad
		};
		uint8_t chacha[32];
	} __attribute__((aligned(64)));
};

// ---------------------------------------------------------------- managers

struct mb_manager {
	IMB_MGR *main;
	// For HMAC-SHA-256, the same one or a second. The AVX-512 manager of ipsec-mb 1.3
	// fills 16 lanes, where all others use the SHA extensions: these are as fast as full
	// lanes, and faster when packets are short or differ in length. With SHA-1 the lanes
	// are the faster ones. A hashed key is the same to all managers.
	IMB_MGR *sha256;
};

// What the user forced with --force-max-simd-bitwidth, 0: nothing. EAL lets nobody
// change a forced value, and tells so.
static uint16_t
forced_bits(void)
{
	uint16_t was = rte_vect_get_max_simd_bitwidth();

	if (rte_vect_set_max_simd_bitwidth(was) == 0)
		return 0;
	return was;
}

// @param bits  vectors at most, 0: the widest
static IMB_MGR *
start_manager(uint16_t bits, struct err *err)
{
	IMB_MGR *mgr = alloc_mb_mgr(bits == RTE_VECT_SIMD_DISABLED ? IMB_FLAG_SHANI_OFF : 0);
	IMB_ARCH arch = IMB_ARCH_SSE;

	if (mgr == NULL) {
		err_set(err, EXIT_RESOURCE, -ENOMEM, "crypto: no memory for a manager of ipsec-mb");
		return NULL;
	}
	if (bits == 0 || bits >= RTE_VECT_SIMD_512)
		init_mb_mgr_auto(mgr, &arch);
	else if (bits == RTE_VECT_SIMD_256)
		init_mb_mgr_avx2(mgr);
	else
		init_mb_mgr_sse(mgr);
	if (imb_get_errno(mgr) == 0 && (mgr->features & IMB_FEATURE_AESNI) != 0 && arch >= IMB_ARCH_SSE)
		return mgr;
	err_set(err, EXIT_MACHINE, -ENODEV, "crypto: ipsec-mb does not run here (%s); this processor "
		"lacks AES-NI, or the vectors that --force-max-simd-bitwidth asks for",
		imb_get_strerror(imb_get_errno(mgr)));
	free_mb_mgr(mgr);
	return NULL;
}

struct mb_manager *
mb_manager_create(struct err *err)
{
	struct mb_manager *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		err_set(err, EXIT_RESOURCE, -ENOMEM, "crypto: no memory for a manager of ipsec-mb");
		return NULL;
	}
	m->main = start_manager(forced_bits(), err);
	m->sha256 = m->main;
	if (m->main != NULL && m->main->used_arch == IMB_ARCH_AVX512 &&
	    (m->main->features & IMB_FEATURE_SHANI) != 0)
		m->sha256 = start_manager(RTE_VECT_SIMD_128, err);
	if (m->sha256 != NULL)
		return m;
	mb_manager_free(m);
	return NULL;
}

void
mb_manager_free(struct mb_manager *m)
{
	if (m == NULL)
		return;
	if (m->sha256 != NULL && m->sha256 != m->main)
		free_mb_mgr(m->sha256);
	if (m->main != NULL)
		free_mb_mgr(m->main);
	free(m);
}

const char *
mb_manager_isa(const struct mb_manager *m)
{
	static const char *const names[] = {
		[IMB_ARCH_SSE] = "SSE", [IMB_ARCH_AVX] = "AVX",
		[IMB_ARCH_AVX2] = "AVX2", [IMB_ARCH_AVX512] = "AVX512",
	};

	return m->main->used_arch < RTE_DIM(names) && names[m->main->used_arch] != NULL ?
		       names[m->main->used_arch] : "none";
}

// ---------------------------------------------------------------- keys

static void
expand_gcm(IMB_MGR *mgr, const struct mb_key_prm *p, struct mb_key *k)
{
	switch (p->key_len) {
	case IMB_KEY_128_BYTES:
		IMB_AES128_GCM_PRE(mgr, p->key, &k->gcm_data);
		k->gcm = p->decrypt ? mgr->gcm128_dec : mgr->gcm128_enc;
		break;
	case IMB_KEY_192_BYTES:
		IMB_AES192_GCM_PRE(mgr, p->key, &k->gcm_data);
		k->gcm = p->decrypt ? mgr->gcm192_dec : mgr->gcm192_enc;
		break;
	default:
		IMB_AES256_GCM_PRE(mgr, p->key, &k->gcm_data);
		k->gcm = p->decrypt ? mgr->gcm256_dec : mgr->gcm256_enc;
	}
}

static void
expand_aes(IMB_MGR *mgr, const struct mb_key_prm *p, struct mb_key *k)
{
	switch (p->key_len) {
	case IMB_KEY_128_BYTES:
		IMB_AES_KEYEXP_128(mgr, p->key, k->enc, k->dec);
		break;
	case IMB_KEY_192_BYTES:
		IMB_AES_KEYEXP_192(mgr, p->key, k->enc, k->dec);
		break;
	default:
		IMB_AES_KEYEXP_256(mgr, p->key, k->enc, k->dec);
	}
}

// RFC 2104: the first block of the inner and of the outer hash is always the same. The
// configuration lets no key pass that is longer than a block.
static void
expand_hmac(hash_one_block_t hash, uint32_t block, const struct mb_key_prm *p, struct mb_key *k)
{
	uint8_t inner[HMAC_BLOCK_MAX], outer[HMAC_BLOCK_MAX];

	for (uint32_t i = 0; i < block; i++) {
		uint8_t byte = i < p->auth_key_len ? p->auth_key[i] : 0;

		inner[i] = byte ^ 0x36;
		outer[i] = byte ^ 0x5c;
	}
	hash(inner, k->inner);
	hash(outer, k->outer);
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(outer, sizeof(outer));
}

static void
expand_auth(IMB_MGR *mgr, const struct mb_key_prm *p, struct mb_key *k)
{
	switch (p->auth) {
	case ALG_HMAC_SHA1_96:
		k->kind.hash = IMB_AUTH_HMAC_SHA_1;
		expand_hmac(mgr->sha1_one_block, 64, p, k);
		break;
	case ALG_HMAC_SHA256_128:
		k->kind.hash = IMB_AUTH_HMAC_SHA_256;
		expand_hmac(mgr->sha256_one_block, 64, p, k);
		break;
	case ALG_HMAC_SHA384_192:
		k->kind.hash = IMB_AUTH_HMAC_SHA_384;
		expand_hmac(mgr->sha384_one_block, 128, p, k);
		break;
	default:
		k->kind.hash = IMB_AUTH_HMAC_SHA_512;
		expand_hmac(mgr->sha512_one_block, 128, p, k);
	}
}

static void
expand_chain(IMB_MGR *mgr, const struct mb_key_prm *p, struct mb_key *k)
{
	k->tag_len = alg_get(p->auth)->icv_len;
	k->order = p->decrypt ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
	expand_auth(mgr, p, k);
	switch (p->cipher) {
	case ALG_AES_CBC:
		k->kind.cipher = IMB_CIPHER_CBC;
		k->iv_len = 16;
		expand_aes(mgr, p, k);
		break;
	case ALG_AES_CTR:
		k->kind.cipher = IMB_CIPHER_CNTR;
		k->iv_len = 12; // the counter behind it starts with one, as RFC 3686 wants
		expand_aes(mgr, p, k);
		memcpy(k->dec, k->enc, sizeof(k->dec));
		break;
	default:
		k->kind.cipher = IMB_CIPHER_NULL;
	}
}

struct mb_key *
mb_key_create(struct mb_manager *m, const struct mb_key_prm *p)
{
	struct mb_key *k = rte_zmalloc("mb_key", sizeof(*k), 64);

	if (k == NULL)
		return NULL;
	k->key_len = (uint8_t)p->key_len;
	k->kind.key_len = k->key_len;
	k->kind.direction = p->decrypt ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
	if (alg_get(p->cipher)->kind != ALG_AEAD) {
		expand_chain(m->main, p, k);
		return k;
	}
	k->tag_len = alg_get(p->cipher)->icv_len;
	k->iv_len = 12;
	if (p->cipher != ALG_CHACHA20_POLY1305) {
		expand_gcm(m->main, p, k);
		return k;
	}
	k->kind.cipher = IMB_CIPHER_CHACHA20_POLY1305;
	k->kind.hash = IMB_AUTH_CHACHA20_POLY1305;
	k->order = p->decrypt ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
	memcpy(k->chacha, p->key, sizeof(k->chacha));
	return k;
}

void
mb_key_free(struct mb_key *k)
{
	if (k == NULL)
		return;
	explicit_bzero(k, sizeof(*k));
	rte_free(k);
}

// ---------------------------------------------------------------- bursts

// AES-CBC or CTR with HMAC. Jobs with both in them leave the lanes of the hash nearly
// empty when they are flushed, since each goes on alone as soon as its cipher is through:
// so the cipher is done for all packets first, and then the hash, or the other way round.
// (Not the burst calls on the manager's own queue, which are faulty in 1.3.)
static inline void
chain_fill(IMB_JOB *job, const struct mb_work *w)
{
	const struct mb_key *k = w->key;

	job->enc_keys = k->enc;
	job->dec_keys = k->dec;
	job->key_len_in_bytes = k->key_len;
	job->src = w->esp;
	job->dst = w->esp + w->cipher_off;
	job->cipher_start_src_offset_in_bytes = w->cipher_off;
	job->msg_len_to_cipher_in_bytes = w->cipher_len;
	job->hash_start_src_offset_in_bytes = 0;
	job->msg_len_to_hash_in_bytes = w->hash_len;
	job->iv = w->iv;
	job->iv_len_in_bytes = k->iv_len;
	job->auth_tag_output = w->tag;
	job->auth_tag_output_len_in_bytes = k->tag_len;
	job->u.HMAC._hashed_auth_key_xor_ipad = k->inner;
	job->u.HMAC._hashed_auth_key_xor_opad = k->outer;
	job->status = IMB_STATUS_BEING_PROCESSED;
	job->cipher_mode = k->kind.cipher;
	job->cipher_direction = k->kind.direction;
	job->hash_alg = k->kind.hash;
	job->chain_order = k->order;
}

static bool
cipher_all(IMB_MGR *mgr, IMB_JOB *jobs, uint32_t n, const struct mb_key *k)
{
	return k->kind.cipher == IMB_CIPHER_NULL ||
	       IMB_SUBMIT_CIPHER_BURST_NOCHECK(mgr, jobs, n, k->kind.cipher, k->kind.direction,
					       k->key_len) == n;
}

static bool
hash_all(struct mb_manager *m, IMB_JOB *jobs, uint32_t n, const struct mb_key *k)
{
	IMB_MGR *mgr = k->kind.hash == IMB_AUTH_HMAC_SHA_256 ? m->sha256 : m->main;

	return IMB_SUBMIT_HASH_BURST_NOCHECK(mgr, jobs, n, k->kind.hash) == n;
}

// The longest first: one that begins last would go on alone when all others are through.
static const uint16_t at_least[] = {1024, 512, 256, 0}; // bytes

// All works from `from` on whose key is of the same kind as that of the first.
static void
run_chain(struct mb_manager *m, struct mb_work *works, uint16_t from, uint16_t n)
{
	const struct mb_key *k = works[from].key;
	IMB_JOB jobs[MB_BURST];
	struct mb_work *of[MB_BURST];
	uint32_t n_jobs = 0;
	uint16_t longest = 0;
	bool done;

	for (uint16_t i = from; i < n; i++)
		longest = RTE_MAX(longest, works[i].hash_len);
	for (unsigned int c = 0; c < RTE_DIM(at_least); c++) {
		if (longest < at_least[c])
			continue;
		for (uint16_t i = from; i < n; i++) {
			struct mb_work *w = &works[i];

			if (w->done || w->hash_len < at_least[c] ||
			    memcmp(&w->key->kind, &k->kind, sizeof(k->kind)) != 0)
				continue;
			chain_fill(&jobs[n_jobs], w);
			of[n_jobs++] = w;
			w->done = true;
		}
	}
	if (k->order == IMB_ORDER_CIPHER_HASH)
		done = cipher_all(m->main, jobs, n_jobs, k) && hash_all(m, jobs, n_jobs, k);
	else
		done = hash_all(m, jobs, n_jobs, k) && cipher_all(m->main, jobs, n_jobs, k);
	for (uint32_t i = 0; unlikely(!done) && i < n_jobs; i++)
		of[i]->failed = true;
}

// One at a time: it has no lanes.
static void
run_chacha(IMB_MGR *mgr, struct mb_work *w)
{
	const struct mb_key *k = w->key;
	IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);

	chain_fill(job, w);
	job->enc_keys = k->chacha;
	job->dec_keys = k->chacha;
	job->hash_start_src_offset_in_bytes = w->cipher_off;
	job->msg_len_to_hash_in_bytes = w->cipher_len;
	job->u.CHACHA20_POLY1305.aad = w->aad;
	job->u.CHACHA20_POLY1305.aad_len_in_bytes = w->aad_len;
	job = IMB_SUBMIT_JOB_NOCHECK(mgr);
	if (job == NULL)
		job = IMB_FLUSH_JOB(mgr);
	w->done = true;
	w->failed = job == NULL || job->status != IMB_STATUS_COMPLETED;
}

void
mb_run(struct mb_manager *m, struct mb_work *works, uint16_t n)
{
	struct gcm_context_data ctx; // written by each call before it is read
	bool others = false;

	for (uint16_t i = 0; i < n; i++) {
		struct mb_work *w = &works[i];
		uint8_t *text = w->esp + w->cipher_off;

		w->failed = false;
		w->done = w->key->gcm != NULL;
		if (likely(w->done))
			w->key->gcm(&w->key->gcm_data, &ctx, text, text, w->cipher_len, w->iv, w->aad,
				    w->aad_len, w->tag, w->key->tag_len);
		else
			others = true;
	}
	for (uint16_t i = 0; others && i < n; i++) {
		if (works[i].done)
			continue;
		if (works[i].key->kind.cipher == IMB_CIPHER_CHACHA20_POLY1305)
			run_chacha(m->main, &works[i]);
		else
			run_chain(m, works, i, n);
	}
}
