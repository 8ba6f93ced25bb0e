/* SPDX-License-Identifier: BSD-3-Clause */
// From the configuration's SA to librte_ipsec's and the crypto device's.
// docs/librte.md lists the traps that the numbers in comments refer to.
#include "sa.h"

#include "crypto.h"

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_udp.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#define OUTER_TTL 64
#define WINDOW_WIDTH_MIN 64 // librte_ipsec's own least window with ESN

static const enum rte_crypto_auth_algorithm auth_algos[ALG_COUNT] = {
	[ALG_HMAC_SHA1_96] = RTE_CRYPTO_AUTH_SHA1_HMAC,
	[ALG_HMAC_SHA256_128] = RTE_CRYPTO_AUTH_SHA256_HMAC,
	[ALG_HMAC_SHA384_192] = RTE_CRYPTO_AUTH_SHA384_HMAC,
	[ALG_HMAC_SHA512_256] = RTE_CRYPTO_AUTH_SHA512_HMAC,
};

static const enum rte_crypto_cipher_algorithm cipher_algos[ALG_COUNT] = {
	[ALG_NULL] = RTE_CRYPTO_CIPHER_NULL,
	[ALG_AES_CBC] = RTE_CRYPTO_CIPHER_AES_CBC,
	[ALG_AES_CTR] = RTE_CRYPTO_CIPHER_AES_CTR,
};

// The transforms of one SA and their chain.
struct xforms {
	struct rte_crypto_sym_xform a;
	struct rte_crypto_sym_xform b;
	struct rte_crypto_sym_xform *first;
};

static void
fill_aead(const struct cfg_sa *c, uint16_t iv_offset, struct xforms *x)
{
	const struct alg *alg = alg_get(c->cipher);
	bool gcm = c->cipher != ALG_CHACHA20_POLY1305;

	x->a.type = RTE_CRYPTO_SYM_XFORM_AEAD;
	x->a.aead = (struct rte_crypto_aead_xform){
		.op = c->inbound ? RTE_CRYPTO_AEAD_OP_DECRYPT : RTE_CRYPTO_AEAD_OP_ENCRYPT,
		.algo = gcm ? RTE_CRYPTO_AEAD_AES_GCM : RTE_CRYPTO_AEAD_CHACHA20_POLY1305,
		.key = {.data = c->key.b, .length = (uint16_t)(c->key.len - alg->salt_len)},
		.iv = {.offset = iv_offset, .length = 12},
		.digest_length = alg->icv_len,
		// SPI and sequence number, 64 bits of it with ESN (RFC 4106 section 5).
		.aad_length = c->esn ? 12 : 8,
	};
	x->first = &x->a;
}

static void
fill_chain(const struct cfg_sa *c, uint16_t iv_offset, struct xforms *x)
{
	const struct alg *cipher = alg_get(c->cipher), *auth = alg_get(c->auth);

	x->a.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
	x->a.cipher = (struct rte_crypto_cipher_xform){
		.op = c->inbound ? RTE_CRYPTO_CIPHER_OP_DECRYPT : RTE_CRYPTO_CIPHER_OP_ENCRYPT,
		.algo = cipher_algos[c->cipher],
		.key = {.data = c->key.b, .length = (uint16_t)(c->key.len - cipher->salt_len)},
		.iv = {.offset = iv_offset, .length = c->cipher == ALG_NULL ? 0 : 16},
	};
	x->b.type = RTE_CRYPTO_SYM_XFORM_AUTH;
	x->b.auth = (struct rte_crypto_auth_xform){
		.op = c->inbound ? RTE_CRYPTO_AUTH_OP_VERIFY : RTE_CRYPTO_AUTH_OP_GENERATE,
		.algo = auth_algos[c->auth],
		.key = {.data = c->auth_key.b, .length = c->auth_key.len},
		.digest_length = auth->icv_len,
	};
	// Encrypt then authenticate; the other way round on arrival.
	x->first = c->inbound ? &x->b : &x->a;
	x->first->next = c->inbound ? &x->a : &x->b;
}

// The outer header that goes in front of every packet. Lengths, checksum, TOS and DF
// are esp_seal's; librte_ipsec writes the UDP header itself. @return bytes
static uint8_t
fill_outer(const struct cfg_sa *c, uint8_t buf[static 48])
{
	uint8_t proto = c->natt ? IPPROTO_UDP : IPPROTO_ESP; // trap 22
	uint8_t ip_len = (uint8_t)(c->src.family == 4 ? sizeof(struct rte_ipv4_hdr) :
							sizeof(struct rte_ipv6_hdr));
	struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16(c->natt_sport),
		.dst_port = rte_cpu_to_be_16(c->natt_dport),
	};

	memset(buf, 0, 48);
	if (c->natt)
		memcpy(buf + ip_len, &udp, sizeof(udp));
	if (c->src.family == 4) {
		struct rte_ipv4_hdr *ip = (void *)buf;

		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->time_to_live = OUTER_TTL;
		ip->next_proto_id = proto;
		memcpy(&ip->src_addr, c->src.b, 4);
		memcpy(&ip->dst_addr, c->dst.b, 4);
		return (uint8_t)(ip_len + (c->natt ? sizeof(udp) : 0));
	}
	struct rte_ipv6_hdr *ip6 = (void *)buf;

	ip6->vtc_flow = rte_cpu_to_be_32(6u << 28);
	ip6->proto = proto;
	ip6->hop_limits = OUTER_TTL;
	memcpy(&ip6->src_addr, c->src.b, 16);
	memcpy(&ip6->dst_addr, c->dst.b, 16);
	return (uint8_t)(ip_len + (c->natt ? sizeof(udp) : 0));
}

// The width with which librte_ipsec infers the high half of an ESN. It keeps a
// window of its own with ESN; given twice our size it never refuses what ours
// lets pass (trap 2).
static uint32_t
esn_width(const struct cfg_sa *c)
{
	return c->esn ? RTE_MAX(2 * c->replay_window, (uint32_t)WINDOW_WIDTH_MIN) : 0;
}

static void
fill_prm(const struct cfg_sa *c, unsigned int n_workers, struct xforms *x, const uint8_t *outer,
	 uint8_t outer_len, struct rte_ipsec_sa_prm *prm)
{
	const struct alg *cipher = alg_get(c->cipher);

	*prm = (struct rte_ipsec_sa_prm){
		.crypto_xform = x->first,
		.ipsec_xform = {
			.spi = c->spi,
			.direction = c->inbound ? RTE_SECURITY_IPSEC_SA_DIR_INGRESS :
						  RTE_SECURITY_IPSEC_SA_DIR_EGRESS,
			.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP,
			.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL,
			.tunnel.type = c->src.family == 4 ? RTE_SECURITY_IPSEC_TUNNEL_IPV4 :
							    RTE_SECURITY_IPSEC_TUNNEL_IPV6,
			// Inbound it has no form with UDP and leaves the SA half filled; there the
			// UDP header counts as part of the outer one (trap 22).
			.options = {.esn = c->esn, .udp_encap = c->natt && !c->inbound},
			// Outbound: the first number to use (trap 27). Inbound: the last one seen.
			.esn.value = c->inbound ? c->sequence : c->sequence + 1,
			.udp = {.sport = c->natt_sport, .dport = c->natt_dport},
			.replay_win_sz = c->inbound && c->esn ? esn_width(c) : 0,
		},
		// One inner family is all that it knows; path/*_library.c set the real one (trap 3).
		.tun = {
			.hdr_len = outer_len,
			.hdr_l3_off = 0,
			.next_proto = IPPROTO_IPIP,
			.hdr = outer,
		},
	};
	if (c->transport) {
		prm->ipsec_xform.mode = RTE_SECURITY_IPSEC_SA_MODE_TRANSPORT;
		prm->ipsec_xform.options.udp_encap = 0; // path/*_library.c's own work, both ways
		memset(&prm->tun, 0, sizeof(prm->tun));
		prm->trs.proto = c->src.family == 4 ? IPPROTO_IPIP : IPPROTO_IPV6; // "of this family"
	}
	// The salt is the last bytes of the key, as bytes (RFC 4106 section 8.1).
	if (cipher->salt_len == 4)
		memcpy(&prm->ipsec_xform.salt, c->key.b + c->key.len - 4, 4);
	// Never with inbound: librte_ipsec derefences NULL there without a window (trap 20).
	if (!c->inbound && n_workers > 1)
		prm->flags = RTE_IPSEC_SAFLAG_SQN_ATOM;
}

static int
build_session(struct sa *sa, const struct cfg_sa *c, unsigned int n_workers, uint16_t iv_offset,
	      struct err *err)
{
	struct xforms x = {0};
	struct rte_ipsec_sa_prm prm;
	uint8_t outer_len = (uint8_t)(c->src.family == 4 ? sizeof(struct rte_ipv4_hdr) :
							   sizeof(struct rte_ipv6_hdr));
	unsigned int slot;
	int size, rc;

	if (alg_get(c->cipher)->kind == ALG_AEAD)
		fill_aead(c, iv_offset, &x);
	else
		fill_chain(c, iv_offset, &x);
	fill_prm(c, n_workers, &x, sa->outer, outer_len, &prm);
	rc = crypto_session(x.first, &slot, &sa->crypto_session);
	if (rc != 0)
		return err_set(err, rc == -ENOTSUP ? EXIT_MACHINE : EXIT_RESOURCE, rc,
			       "sa %s: no crypto device can do %s%s%s with a key of %u bits", sa->name,
			       alg_get(c->cipher)->name, c->auth != ALG_NONE ? " with " : "",
			       c->auth != ALG_NONE ? alg_get(c->auth)->name : "",
			       (c->key.len - alg_get(c->cipher)->salt_len) * 8);
	sa->crypto_slot = (uint8_t)slot;
	size = rte_ipsec_sa_size(&prm);
	if (size < 0)
		return err_set(err, EXIT_BUG, size, "sa %s: librte_ipsec refuses its size", sa->name);
	sa->session.sa = rte_zmalloc("ipsec_sa", (size_t)size, RTE_CACHE_LINE_SIZE);
	if (sa->session.sa == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "sa %s: no memory", sa->name);
	rc = rte_ipsec_sa_init(sa->session.sa, &prm, (uint32_t)size);
	if (rc < 0)
		return err_set(err, EXIT_BUG, rc, "sa %s: librte_ipsec refuses it", sa->name);
	sa->session.type = RTE_SECURITY_ACTION_TYPE_NONE;
	sa->session.crypto.ses = sa->crypto_session;
	sa->session.crypto.dev_id = crypto_dev_id(slot);
	rc = rte_ipsec_session_prepare(&sa->session);
	return rc == 0 ? 0 : err_set(err, EXIT_BUG, rc, "sa %s: librte_ipsec has no path", sa->name);
}

bool
sa_is_direct(const struct cfg_sa *c, enum cfg_crypto crypto)
{
	return crypto == CFG_CRYPTO_DIRECT && !c->transport;
}

static int
build_key(struct sa *sa, const struct cfg_sa *c, struct mb_manager *mgr, struct err *err)
{
	struct mb_key_prm prm = {
		.cipher = c->cipher,
		.auth = c->auth,
		.decrypt = c->inbound,
		.key = c->key.b,
		.key_len = c->key.len - alg_get(c->cipher)->salt_len,
		.auth_key = c->auth_key.b,
		.auth_key_len = c->auth_key.len,
	};

	sa->key = mb_key_create(mgr, &prm);
	if (sa->key == NULL)
		return err_set(err, EXIT_RESOURCE, -ENOMEM, "sa %s: no memory for its key", sa->name);
	return 0;
}

// Where outbound numbers start and end, and what makes the IV.
static int
set_sequence(struct sa *sa, struct cfg_sa *c, struct state *state, struct err *err)
{
	const struct alg *cipher = alg_get(c->cipher);

	if (getrandom(sa->iv, sizeof(sa->iv), 0) != (ssize_t)sizeof(sa->iv))
		return err_set(err, EXIT_RESOURCE, -EIO, "sa %s: no random bytes", sa->name);
	// librte_ipsec keeps the number behind the last one in range too.
	sa->end = (c->esn ? UINT64_MAX : UINT32_MAX) - 1;
	sa->limit = sa->end;
	if (!sa->inbound && state != NULL) {
		sa->record = state_get(state, c->spi, &c->dst, c->fingerprint, err);
		if (sa->record == NULL)
			return -ENOMEM;
		// The value must stay while the key lives: (s ^ r) repeats across two r.
		if (cipher->counter)
			sa->iv[0] = sa->record->iv_xor;
		c->sequence = RTE_MAX(c->sequence, sa->record->reserved);
	}
	if (c->sequence > sa->end)
		return err_set(err, EXIT_CONFIG, -ERANGE, "sa %s: its sequence numbers are used up; give it "
			       "a new key", sa->name);
	if (sa->record != NULL) {
		sa->limit = c->sequence; // until the first reservation is on disk
	}
	sa->sequence = c->sequence;
	sa->iv_kind = c->cipher == ALG_NULL ? SA_IV_NONE : cipher->counter ? SA_IV_XOR : SA_IV_CBC;
	return 0;
}

struct sa *
sa_create(const struct cfg_sa *given, struct mb_manager *mgr, unsigned int n_workers,
	  uint16_t iv_offset, struct state *state, struct err *err)
{
	struct sa *sa = rte_zmalloc("sa", sizeof(*sa), RTE_CACHE_LINE_SIZE);
	struct cfg_sa c = *given; // the start of its sequence moves
	const struct alg *cipher = alg_get(c.cipher), *auth = alg_get(c.auth);

	if (sa == NULL)
		goto no_memory;
	memcpy(sa->name, c.name, sizeof(sa->name));
	memcpy(sa->fingerprint, c.fingerprint, sizeof(sa->fingerprint));
	sa->spi = c.spi;
	sa->spi_be = rte_cpu_to_be_32(c.spi);
	// The salt is the last bytes of the key, as bytes (RFC 4106 section 8.1).
	if (cipher->salt_len == sizeof(sa->salt))
		memcpy(&sa->salt, c.key.b + c.key.len - sizeof(sa->salt), sizeof(sa->salt));
	sa->shared = n_workers > 1;
	sa->hdr_len = fill_outer(&c, sa->outer);
	for (unsigned int i = 8; i < sizeof(struct rte_ipv4_hdr); i += 2) {
		uint16_t word;

		memcpy(&word, sa->outer + i, 2);
		sa->outer_sum += word;
	}
	if (c.transport)
		sa->hdr_len = 0;
	sa->reqid = c.reqid;
	sa->cipher = c.cipher;
	sa->auth = c.auth;
	sa->src = c.src;
	sa->dst = c.dst;
	sa->family = c.src.family;
	sa->inbound = c.inbound;
	sa->natt = c.natt;
	sa->transport = c.transport;
	sa->peer = c.src;
	sa->peer_port = c.natt_sport;
	sa->natt_sport_be = rte_cpu_to_be_16(c.natt_sport);
	sa->natt_dport_be = rte_cpu_to_be_16(c.natt_dport);
	sa->esn = c.esn;
	sa->fragment_after = c.fragment == CFG_FRAGMENT_AFTER;
	sa->df = (uint8_t)c.df;
	sa->dscp = c.dscp;
	sa->soft = c.soft;
	sa->hard = c.hard;
	sa->metered = c.hard.bytes != 0 || c.hard.packets != 0;
	sa->tfc_pad_to = c.tfc_pad_to;
	sa->dummy_ms = c.dummy_ms;
	sa->keepalive_s = c.keepalive_s;
	sa->sqh_len = c.esn ? 4 : 0;
	sa->aead = cipher->kind == ALG_AEAD;
	sa->iv_len = cipher->iv_len;
	sa->align = cipher->align;
	sa->icv_len = sa->aead ? cipher->icv_len : auth->icv_len;
	sa->n_workers = n_workers;
	rte_spinlock_init(&sa->lock);
	sa->stats = rte_zmalloc("sa_stats", n_workers * sizeof(*sa->stats), RTE_CACHE_LINE_SIZE);
	if (c.inbound)
		sa->replay = rte_zmalloc("replay", replay_bytes(c.replay_window), RTE_CACHE_LINE_SIZE);
	if (sa->stats == NULL || (c.inbound && sa->replay == NULL))
		goto no_memory;
	if (c.inbound)
		replay_init(sa->replay, c.replay_window, esn_width(&c), c.sequence);
	if (set_sequence(sa, &c, state, err) != 0 ||
	    (mgr != NULL ? build_key(sa, &c, mgr, err) :
			   build_session(sa, &c, n_workers, iv_offset, err)) != 0) {
		explicit_bzero(&c, sizeof(c));
		sa_free(sa);
		return NULL;
	}
	explicit_bzero(&c, sizeof(c));
	return sa;

no_memory:
	explicit_bzero(&c, sizeof(c));
	sa_free(sa);
	err_set(err, EXIT_RESOURCE, -ENOMEM, "sa %s: no memory; provide more hugepages, or with "
		"--no-huge give more with -m", given->name);
	return NULL;
}

void
sa_free(struct sa *sa)
{
	if (sa == NULL)
		return;
	mb_key_free((struct mb_key *)(uintptr_t)sa->key);
	if (sa->crypto_session != NULL)
		crypto_session_free(sa->crypto_slot, sa->crypto_session);
	if (sa->session.sa != NULL)
		rte_ipsec_sa_fini(sa->session.sa);
	rte_free(sa->session.sa);
	rte_free(sa->replay);
	rte_free(sa->stats);
	explicit_bzero(sa, sizeof(*sa));
	rte_free(sa);
}

void
sa_stats_sum(const struct sa *sa, struct sa_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t w = 0; w < sa->n_workers; w++) {
		const struct sa_stats *s = &sa->stats[w];

		out->packets += s->packets;
		out->bytes += s->bytes;
		for (unsigned int i = 0; i < SA_REASONS; i++)
			out->ended[i] += s->ended[i];
	}
}

uint32_t
sa_inner_mtu(const struct sa *sa, uint32_t mtu)
{
	if (sa->transport)
		return alg_transport_payload(sa->cipher, sa->auth, sa->family, sa->natt, 0, mtu);
	return alg_inner_mtu(sa->cipher, sa->auth, sa->family, sa->natt, mtu);
}
