/* SPDX-License-Identifier: BSD-3-Clause */
// The sample files field by field, defaults, order and resolution, and that
// keys never show. Messages are the business of test/config.
// Runs from the root of the source, or with SGW_SOURCE_ROOT set to it.
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char scratch[64]; // directory for files that tests make

static const char *
source_path(const char *file)
{
	static char path[1024];
	const char *root = getenv("SGW_SOURCE_ROOT");

	snprintf(path, sizeof(path), "%s/%s", root != NULL ? root : ".", file);
	return path;
}

// Load a file; what is said goes to *said, which the caller frees.
static int
load(const char *file, struct config **c, char **said)
{
	size_t size;
	FILE *diag = open_memstream(said, &size);
	int rc = config_load(file, c, diag);

	fclose(diag);
	return rc;
}

static struct config *
load_sample(const char *file)
{
	struct config *c = NULL;
	char *said;

	if (load(source_path(file), &c, &said) != 0)
		fail_msg("%s: %s", file, said);
	free(said);
	return c;
}

static const char *
text_file(const char *text)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/t.yaml", scratch);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static int
load_text(const char *text, struct config **c, char **said)
{
	return load(text_file(text), c, said);
}

static void
assert_addr(const struct addr *a, const char *want)
{
	char text[ADDR_STRLEN];

	assert_string_equal(addr_format(a, text), want);
}

static void
assert_prefix(const struct prefix *p, const char *want)
{
	char text[ADDR_STRLEN];

	assert_string_equal(prefix_format(p, text), want);
}

static void
assert_range(const struct range *r, const char *want)
{
	char text[RANGE_STRLEN];

	assert_string_equal(range_format(r, text), want);
}

static void
sample_dut(void **state)
{
	struct config *c = load_sample("config/rcc-ve.yaml");
	char mac[MAC_STRLEN];

	(void)state;
	assert_string_equal(c->name, "rcc-ve-4860");
	assert_string_equal(c->state, "/var/lib/sgw/rcc-ve-4860.state");
	assert_int_equal(c->mbufs, 16384);
	assert_int_equal(c->idle, CFG_IDLE_SLEEP);
	assert_true(c->allow_published_keys);
	assert_false(c->allow_nonce_reuse);

	assert_int_equal(c->n_ports, 2);
	assert_string_equal(c->ports[0].name, "igb2");
	assert_int_equal(c->ports[0].kind, CFG_PORT_MAC);
	assert_true(c->ports[0].has_mac);
	assert_string_equal(mac_format(&c->ports[0].mac, mac), "00:08:a2:09:33:da");
	assert_int_equal(c->ports[0].n_addresses, 2);
	assert_prefix(&c->ports[0].addresses[0], "198.18.0.209/24");
	assert_prefix(&c->ports[0].addresses[1], "2001:2::209/64");
	assert_int_equal(c->ports[0].mtu, 1500);
	assert_string_equal(mac_format(&c->ports[1].mac, mac), "00:08:a2:09:33:db");
	assert_prefix(&c->ports[1].addresses[1], "2001:2:0:1::209/64");

	assert_int_equal(c->n_tunnels, 1);
	assert_string_equal(c->tunnels[0].name, "ipsec0");
	assert_addr(&c->tunnels[0].local, "198.18.1.209");
	assert_addr(&c->tunnels[0].remote, "198.18.1.203");
	assert_int_equal(c->tunnels[0].reqid, 100);
	assert_int_equal(c->tunnels[0].n_addresses, 2);
	assert_prefix(&c->tunnels[0].addresses[0], "198.18.2.209/24");
	assert_prefix(&c->tunnels[0].addresses[1], "2001:2:0:2::209/64");
	assert_int_equal(c->tunnels[0].mtu, 0);

	assert_int_equal(c->n_neighbours, 4);
	assert_int_equal(c->neighbours[3].port, 1);
	assert_addr(&c->neighbours[3].address, "2001:2:0:1::203");
	assert_string_equal(mac_format(&c->neighbours[3].mac, mac), "00:1b:21:c4:95:7a");
	assert_int_equal(c->n_policies, 0);
	config_free(c);
}

static void
sample_dut_routes(void **state)
{
	static const struct {
		const char *to, *via;
		enum cfg_route_kind kind;
	} routes[] = {
		{"198.18.0.0/16", "198.18.0.201", CFG_ROUTE_PORT},
		{"198.19.0.0/16", "198.18.2.203", CFG_ROUTE_TUNNEL},
		{"2001:2::/49", "2001:2::201", CFG_ROUTE_PORT},
		{"2001:2:0:8000::/49", "2001:2:0:2::203", CFG_ROUTE_TUNNEL},
	};
	struct config *c = load_sample("config/rcc-ve.yaml");

	(void)state;
	assert_int_equal(c->n_routes, COUNT(routes));
	for (size_t i = 0; i < COUNT(routes); i++) {
		assert_prefix(&c->routes[i].to, routes[i].to);
		assert_addr(&c->routes[i].via, routes[i].via);
		assert_int_equal(c->routes[i].kind, routes[i].kind);
		assert_int_equal(c->routes[i].index, 0);
	}
	config_free(c);
}

static void
sample_dut_sas(void **state)
{
	struct config *c = load_sample("config/rcc-ve.yaml");

	(void)state;
	assert_int_equal(c->n_sas, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct cfg_sa *sa = &c->sas[i];

		assert_int_equal(sa->spi, 10000 + i);
		assert_string_equal(sa->name, i == 0 ? "0x2710" : "0x2711");
		assert_addr(&sa->src, i == 0 ? "198.18.1.203" : "198.18.1.209");
		assert_addr(&sa->dst, i == 0 ? "198.18.1.209" : "198.18.1.203");
		assert_int_equal(sa->inbound, i == 0);
		assert_int_equal(sa->reqid, 100);
		assert_int_equal(sa->cipher, ALG_AES_GCM_16);
		assert_int_equal(sa->auth, ALG_NONE);
		assert_int_equal(sa->key.len, 20);
		assert_memory_equal(sa->key.b, "12345678901234567890", 20);
		assert_int_equal(sa->auth_key.len, 0);
		assert_false(sa->esn);
		assert_int_equal(sa->replay_window, i == 0 ? 128 : 0);
		assert_int_equal(sa->sequence, 0);
		assert_false(sa->natt);
		// printf 'sgw-key-1aes-gcm-1612345678901234567890' | sha256sum
		assert_string_equal(sa->fingerprint, "f3766eb5dbac23f5");
	}
	config_free(c);
}

static void
sample_r3(void **state)
{
	static const struct {
		enum cfg_dir dir;
		const char *src, *dst, *tunnel_src, *tunnel_dst;
	} policies[] = {
		{CFG_IN, "198.18.0.0/16", "198.19.0.0/16", "198.18.1.209", "198.18.1.203"},
		{CFG_OUT, "198.19.0.0/16", "198.18.0.0/16", "198.18.1.203", "198.18.1.209"},
		{CFG_IN, "2001:2::/49", "2001:2:0:8000::/49", "198.18.1.209", "198.18.1.203"},
		{CFG_OUT, "2001:2:0:8000::/49", "2001:2::/49", "198.18.1.203", "198.18.1.209"},
	};
	struct config *c = load_sample("config/r3.yaml");

	(void)state;
	assert_int_equal(c->n_tunnels, 0);
	assert_int_equal(c->n_policies, COUNT(policies));
	for (uint32_t i = 0; i < COUNT(policies); i++) {
		const struct cfg_policy *p = &c->policies[i];

		assert_int_equal(p->dir, policies[i].dir);
		assert_range(&p->src, policies[i].src);
		assert_range(&p->dst, policies[i].dst);
		assert_int_equal(p->action, CFG_PROTECT);
		assert_addr(&p->tunnel_src, policies[i].tunnel_src);
		assert_addr(&p->tunnel_dst, policies[i].tunnel_dst);
		assert_true(p->any_proto);
		assert_int_equal(p->sport[0], 0);
		assert_int_equal(p->sport[1], 65535);
		assert_int_equal(p->reqid, 0);
		assert_int_equal(p->priority, 1000);
		assert_int_equal(p->rank, i);
	}
	assert_int_equal(c->sas[0].spi, 10000);
	assert_false(c->sas[0].inbound);
	assert_true(c->sas[1].inbound);
	config_free(c);
}

// Every SA stands in both files, with one direction here and the other there.
static void
samples_interoperate(void **state)
{
	static const char *const pairs[][2] = {
		{"config/rcc-ve.yaml", "config/r3.yaml"},
		{"config/rcc-ve-v6.yaml", "config/r3-v6.yaml"},
		{"config/virtual/rcc-ve.yaml", "config/virtual/r3.yaml"},
	};

	(void)state;
	for (size_t p = 0; p < COUNT(pairs); p++) {
		struct config *a = load_sample(pairs[p][0]), *b = load_sample(pairs[p][1]);

		assert_int_equal(a->n_sas, b->n_sas);
		for (uint32_t i = 0; i < a->n_sas; i++) {
			uint32_t found = 0;

			for (uint32_t j = 0; j < b->n_sas; j++)
				found += a->sas[i].spi == b->sas[j].spi &&
					 addr_cmp(&a->sas[i].src, &b->sas[j].src) == 0 &&
					 addr_cmp(&a->sas[i].dst, &b->sas[j].dst) == 0 &&
					 a->sas[i].inbound != b->sas[j].inbound &&
					 a->sas[i].cipher == b->sas[j].cipher &&
					 strcmp(a->sas[i].fingerprint, b->sas[j].fingerprint) == 0;
			if (found != 1)
				fail_msg("%s: SA %s", pairs[p][0], a->sas[i].name);
		}
		config_free(a);
		config_free(b);
	}
}

// A twin differs from its original in the devices, the name and the state.
static void
samples_virtual(void **state)
{
	static const struct {
		const char *file, *twin, *name, *state, *device[2];
	} twins[] = {
		{"config/rcc-ve.yaml",
		 "config/virtual/rcc-ve.yaml",
		 "rcc-ve-virtual",
		 "/run/sgw-lab/rcc-ve.state",
		 {"net_af_packet0,iface=dut-igb2,blocksz=8192,framesz=8192,framecnt=2048,qdisc_bypass=1",
		  "net_af_packet1,iface=dut-igb3,blocksz=8192,framesz=8192,framecnt=2048,qdisc_bypass=1"}},
		{"config/r3.yaml",
		 "config/virtual/r3.yaml",
		 "r3-virtual",
		 "/run/sgw-lab/r3.state",
		 {"net_af_packet0,iface=r3-igb2,blocksz=8192,framesz=8192,framecnt=2048,qdisc_bypass=1",
		  "net_af_packet1,iface=r3-igb3,blocksz=8192,framesz=8192,framecnt=2048,qdisc_bypass=1"}},
	};

	(void)state;
	for (size_t t = 0; t < COUNT(twins); t++) {
		struct config *a = load_sample(twins[t].file), *b = load_sample(twins[t].twin);

		assert_string_equal(b->name, twins[t].name);
		assert_string_equal(b->state, twins[t].state);
		assert_int_equal(a->n_ports, 2);
		assert_int_equal(b->n_ports, 2);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(b->ports[i].kind, CFG_PORT_DEVICE);
			assert_string_equal(b->ports[i].device, twins[t].device[i]);
			assert_memory_equal(&a->ports[i].mac, &b->ports[i].mac, 6);
			assert_int_equal(a->ports[i].n_addresses, b->ports[i].n_addresses);
			assert_memory_equal(a->ports[i].addresses, b->ports[i].addresses,
					    2 * sizeof(struct prefix));
		}
		assert_int_equal(a->n_tunnels, b->n_tunnels);
		assert_int_equal(a->n_neighbours, b->n_neighbours);
		assert_int_equal(a->n_routes, b->n_routes);
		assert_int_equal(a->n_policies, b->n_policies);
		config_free(a);
		config_free(b);
	}
}

static void
sample_v6(void **state)
{
	struct config *c = load_sample("config/rcc-ve-v6.yaml");

	(void)state;
	assert_int_equal(c->n_tunnels, 2);
	assert_string_equal(c->tunnels[1].name, "ipsec1");
	assert_addr(&c->tunnels[1].local, "2001:2:0:1::209");
	assert_addr(&c->tunnels[1].remote, "2001:2:0:1::203");
	assert_int_equal(c->tunnels[1].reqid, 101);
	assert_int_equal(c->sas[2].spi, 0x1002);
	assert_int_equal(c->sas[3].spi, 0x1003);
	assert_int_equal(c->routes[1].kind, CFG_ROUTE_TUNNEL);
	assert_int_equal(c->routes[1].index, 0);
	assert_int_equal(c->routes[3].kind, CFG_ROUTE_TUNNEL);
	assert_int_equal(c->routes[3].index, 1);
	config_free(c);
}

#define PORTS                                                                                 \
	"ports:\n"                                                                            \
	"  lan: { mac: 02:00:00:00:00:01, addresses: [10.1.0.1/24, \"2001:db8:1::1/64\"] }\n" \
	"  wan: { mac: 02:00:00:00:00:02, addresses: [10.2.0.1/24, \"2001:db8:2::1/64\"] }\n"
#define STATE "system: { state: /var/lib/sgw/t.state }\n"
#define KEY1 "hex:101112131415161718191a1b1c1d1e1fa0a1a2a3"
#define KEY2 "hex:202122232425262728292a2b2c2d2e2fb0b1b2b3"

// An SPI, as text, and what becomes of it.
static void
typing_traps(void **state)
{
	static const struct {
		int number;
		const char *text;
		uint32_t spi; // 0: refused
	} cases[] = {
		{1, "4096", 4096},
		{2, "0x1000", 4096},
		{3, "\"4096\"", 4096},
		{4, "'0x1000'", 4096},
		{5, "4294967295", UINT32_MAX},
		{6, "256", 256},
		{7, "0x00001000", 4096},
		{8, "255", 0},
		{9, "4294967296", 0},
		{10, "010000", 0},
		{11, "0o10000", 0},
		{12, "1e3", 0},
		{13, "1_000", 0},
		{14, "+4096", 0},
		{15, "-4096", 0},
		{16, "4096.0", 0},
		{17, "12345678901234567890", 0},
		{18, "1:30:00", 0},
		{19, "true", 0},
		{20, "on", 0},
		{21, "null", 0},
		{22, "~", 0},
		{23, "", 0},
		{24, "\"\"", 0},
		{25, "[4096]", 0},
		{26, "{ a: 4096 }", 0},
		{27, "!!int 4096", 0},
		{28, "\" 4096\"", 0},
		{29, "0x1p3", 0},
		{30, ".inf", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[2048], *said;
		struct config *c = NULL;

		snprintf(text, sizeof(text),
			 STATE PORTS "sad:\n  - spi: %s\n    src: 10.2.0.2\n    dst: 10.2.0.1\n    "
				     "mode: tunnel\n"
				     "    aead: aes-gcm-16\n    key: \"" KEY1 "\"\n"
				     "spd:\n  - { dir: in, src: any, dst: any, action: protect, "
				     "tunnel: 10.2.0.2-10.2.0.1 }\n",
			 cases[i].text);
		int rc = load_text(text, &c, &said);
		if ((rc == 0) != (cases[i].spi != 0))
			fail_msg("case %d: %d %s", cases[i].number, rc, said);
		if (rc == 0 && c->sas[0].spi != cases[i].spi)
			fail_msg("case %d: became %u", cases[i].number, c->sas[0].spi);
		if (rc != 0 && (rc != -EINVAL || strstr(said, "/t.yaml:6:") == NULL))
			fail_msg("case %d: %s", cases[i].number, said);
		free(said);
		config_free(rc == 0 ? c : NULL);
	}
}

static void
every_field_of_an_sa(void **state)
{
	char *said;
	struct config *c = NULL;
	int rc = load_text(
		PORTS
		"tunnels: { vpn: { local: 10.2.0.1, remote: 10.2.0.2, reqid: 0x7, mtu: 1400 } }\n"
		"sad:\n"
		"  - name: in.hq\n    spi: 0x1001\n    src: 10.2.0.2\n    dst: 10.2.0.1\n"
		"    mode: tunnel\n    reqid: 7\n    cipher: aes-cbc\n"
		"    key: \"hex:000102030405060708090A0B0C0D0E0F1011121314151617\"\n"
		"    auth: hmac-sha512-256\n"
		"    auth-key: "
		"\"ascii:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n"
		"    esn: true\n    replay-window: 1000\n    encapsulation: udp\n"
		"    udp-destination-port: 4500\n    sequence: 0x100000005\n"
		"  - name: out.hq\n    spi: 0x1002\n    src: 10.2.0.1\n    dst: 10.2.0.2\n"
		"    mode: tunnel\n    reqid: 7\n    cipher: null\n    auth: hmac-sha1-96\n"
		"    auth-key: \"ascii:abcdefghijklmnopqrst\"\n    encapsulation: udp\n"
		"    udp-source-port: 10000\n    udp-destination-port: 4501\n",
		&c, &said);

	(void)state;
	if (rc != 0)
		fail_msg("%s", said);
	assert_string_equal(said, "");
	assert_int_equal(c->tunnels[0].mtu, 1400);
	const struct cfg_sa *sa = &c->sas[0];
	assert_string_equal(sa->name, "in.hq");
	assert_true(sa->inbound);
	assert_int_equal(sa->cipher, ALG_AES_CBC);
	assert_int_equal(sa->key.len, 24);
	for (int i = 0; i < 24; i++)
		assert_int_equal(sa->key.b[i], i);
	assert_int_equal(sa->auth, ALG_HMAC_SHA512_256);
	assert_int_equal(sa->auth_key.len, 64);
	assert_memory_equal(sa->auth_key.b + 60, "cdef", 4);
	assert_true(sa->esn);
	assert_int_equal(sa->replay_window, 1000);
	assert_true(sa->natt);
	assert_int_equal(sa->natt_sport, 4500);
	assert_int_equal(sa->natt_dport, 4500);
	assert_true(sa->sequence == 0x100000005);
	assert_int_equal(c->sas[1].cipher, ALG_NULL);
	assert_int_equal(c->sas[1].key.len, 0);
	assert_int_equal(c->sas[1].natt_sport, 10000);
	assert_int_equal(c->sas[1].natt_dport, 4501);
	free(said);
	config_free(c);
}

// Priority first, then the file; "any" is a policy for each family.
static void
policy_order_and_families(void **state)
{
	static const struct {
		const char *src, *dst;
		enum cfg_action action;
		uint32_t priority;
	} want[] = {
		{"10.9.0.1-10.9.0.7", "10.1.0.0/24", CFG_BYPASS, 10},
		{"0.0.0.0/0", "10.0.0.0/8", CFG_DISCARD, 1000},
		{"0.0.0.0/0", "0.0.0.0/0", CFG_BYPASS, 2000},
		{"::/0", "::/0", CFG_BYPASS, 2000},
		{"::/0", "2001:db8::/32", CFG_DISCARD, 3000},
	};
	struct config *c = NULL;
	char *said;
	int rc = load_text(PORTS
			   "spd:\n"
			   "  - { dir: in, src: any, dst: any, action: bypass, priority: 2000 }\n"
			   "  - { dir: in, src: any6, dst: \"2001:db8::/32\", action: discard, "
			   "priority: 3000 }\n"
			   "  - { dir: in, src: any, dst: 10.0.0.0/8, action: discard }\n"
			   "  - { dir: in, src: 10.9.0.1-10.9.0.7, dst: 10.1.0.0/24, proto: tcp, "
			   "sport: 1-1023,"
			   " dport: 443, action: bypass, priority: 10 }\n",
			   &c, &said);

	(void)state;
	if (rc != 0)
		fail_msg("%s", said);
	assert_int_equal(c->n_policies, COUNT(want));
	for (uint32_t i = 0; i < COUNT(want); i++) {
		assert_range(&c->policies[i].src, want[i].src);
		assert_range(&c->policies[i].dst, want[i].dst);
		assert_int_equal(c->policies[i].action, want[i].action);
		assert_int_equal(c->policies[i].priority, want[i].priority);
		assert_int_equal(c->policies[i].rank, i);
	}
	assert_int_equal(c->policies[0].proto, 6);
	assert_false(c->policies[0].any_proto);
	assert_int_equal(c->policies[0].sport[0], 1);
	assert_int_equal(c->policies[0].sport[1], 1023);
	assert_int_equal(c->policies[0].dport[0], 443);
	assert_int_equal(c->policies[0].dport[1], 443);
	free(said);
	config_free(c);
}

static void
routes_of_each_kind(void **state)
{
	static const struct {
		enum cfg_route_kind kind;
		uint32_t index;
		const char *via;
	} want[] = {
		{CFG_ROUTE_PORT, 0, "10.1.0.2"},     {CFG_ROUTE_TUNNEL, 0, "10.9.0.2"},
		{CFG_ROUTE_TUNNEL, 0, "none"},       {CFG_ROUTE_PORT, 1, "none"},
		{CFG_ROUTE_PORT, 1, "fe80::2"},      {CFG_ROUTE_DISCARD, UINT32_MAX, "none"},
		{CFG_ROUTE_TUNNEL, 0, "10.1.0.130"},
	};
	struct config *c = NULL;
	char *said;
	int rc = load_text(
		PORTS
		"tunnels: { vpn: { local: 10.2.0.1, remote: 10.2.0.2, reqid: 7, "
		"addresses: [10.9.0.1/30, 10.1.0.129/25] } }\n"
		"routes:\n"
		"  - { to: 10.11.0.0/16, via: 10.1.0.2 }\n"
		"  - { to: 10.12.0.0/16, via: 10.9.0.2 }\n"
		"  - { to: 10.13.0.0/16, tunnel: vpn }\n"
		"  - { to: 10.14.0.0/16, port: wan }\n"
		"  - { to: \"2001:db8:15::/48\", via: \"fe80::2\", port: wan }\n"
		"  - { to: 10.16.0.0/16, discard: true }\n"
		"  - { to: 10.17.0.0/16, via: 10.1.0.130 }\n", // the longer prefix: the tunnel's
		&c, &said);

	(void)state;
	if (rc != 0)
		fail_msg("%s", said);
	assert_int_equal(c->n_routes, COUNT(want));
	for (uint32_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(c->routes[i].kind, want[i].kind);
		assert_int_equal(c->routes[i].index, want[i].index);
		assert_addr(&c->routes[i].via, want[i].via);
	}
	free(said);
	config_free(c);
}

static void
ports_by_pci_and_device(void **state)
{
	struct config *c = NULL;
	char *said;
	int rc = load_text("ports:\n"
			   "  a: { pci: \"0000:0A:00.1\", mtu: 9000 }\n"
			   "  b: { device: net_null, mac: 02:00:00:00:00:01 }\n"
			   "  c: { device: \"net_pcap7,rx_pcap=/tmp/a.pcap\" }\n",
			   &c, &said);

	(void)state;
	if (rc != 0)
		fail_msg("%s", said);
	assert_int_equal(c->ports[0].kind, CFG_PORT_PCI);
	assert_string_equal(c->ports[0].device, "0000:0a:00.1");
	assert_false(c->ports[0].has_mac);
	assert_int_equal(c->ports[0].mtu, 9000);
	assert_int_equal(c->ports[1].kind, CFG_PORT_DEVICE);
	assert_true(c->ports[1].has_mac);
	assert_string_equal(c->ports[2].device, "net_pcap7,rx_pcap=/tmp/a.pcap");
	assert_string_equal(c->name, "sgw");
	assert_null(c->state);
	free(said);
	config_free(c);
}

static void
unreadable_files(void **state)
{
	struct config *c = NULL;
	char *said;

	(void)state;
	assert_int_equal(load("/nowhere/x.yaml", &c, &said), -ENOENT);
	assert_string_equal(said, "/nowhere/x.yaml: cannot be read: No such file or directory\n");
	free(said);
	assert_int_equal(load(scratch, &c, &said), -EISDIR);
	free(said);
	assert_int_equal(load("/dev/zero", &c, &said), -EFBIG);
	free(said);
	config_free(NULL);
}

// Not inlined: gcc 12 takes the stream's buffer for a local that ends too soon.
__attribute__((noinline)) static char *
dump_text(const struct config *c)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	config_dump(c, out);
	fclose(out);
	return text;
}

// Both words must be of one length.
static void
replace_all(char *text, const char *from, const char *to)
{
	char *p = strstr(text, from);

	while (p != NULL) {
		memcpy(p, to, strlen(to));
		p = strstr(p, from);
	}
}

// The dump shows what will run, and loads again but for the keys.
static void
assert_dump_loads(const char *name, const struct config *c)
{
	char *text = dump_text(c), *said, *line, *rest;
	struct config *again = NULL;

	assert_int_equal(load_text(text, &again, &said), -EINVAL);
	for (line = strtok_r(said, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (strstr(line, "is a fingerprint") == NULL &&
		    strstr(line, "warning: tunnels.red-vpn.mtu: 1400 is lowered to 1338") == NULL)
			fail_msg("%s: %s", name, line);
	free(said);
	if (strstr(text, "key: fingerprint:f3766eb5dbac23f5 # 20 bytes\n") == NULL)
		fail_msg("%s: %s", name, text);
	// With keys in place of the fingerprints it is the same configuration.
	replace_all(text, "fingerprint:f3766eb5dbac23f5", "ascii:12345678901234567890  ");
	if (load_text(text, &again, &said) != 0)
		fail_msg("%s: %s", name, said);
	char *text_again = dump_text(again);
	char *body = strchr(text, '\n'), *body_again = strchr(text_again, '\n');
	replace_all(body, "ascii:12345678901234567890  ", "fingerprint:f3766eb5dbac23f5");
	assert_string_equal(body, body_again);
	free(text);
	free(text_again);
	free(said);
	config_free(again);
}

static void
dump_is_a_configuration(void **state)
{
	static const char *const files[] = {"config/rcc-ve.yaml",         "config/r3.yaml",
					    "config/rcc-ve-v6.yaml",      "config/r3-v6.yaml",
					    "config/virtual/rcc-ve.yaml", "config/virtual/r3.yaml"};

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++) {
		struct config *c = load_sample(files[i]);

		assert_dump_loads(files[i], c);
		config_free(c);
	}
}

// What the samples do not have.
#define EVERYTHING                                                                              \
	"system: { state: /var/lib/sgw/t.state, mss-clamp: false, idle: poll }\n"               \
	"lab: { allow-published-keys: lab-only }\n"                                             \
	"ports:\n"                                                                              \
	"  red: { parent: wan, vlan: 100, addresses: [10.3.0.1/24], mtu: 1400 }\n"              \
	"  lan: { mac: 02:00:00:00:00:01, addresses: [10.1.0.1/24], mtu: 9000 }\n"              \
	"  wan: { mac: 02:00:00:00:00:02, addresses: [10.2.0.1/24, \"2001:db8:2::1/64\"] }\n" \
	"  blue: { parent: lan, vlan: 4094 }\n"                                                 \
	"tunnels:\n"                                                                            \
	"  vpn: { local: 10.2.0.1, remote: 10.2.0.2, reqid: 7, mtu: 1300 }\n"                   \
	"  red-vpn: { local: 10.3.0.1, remote: 10.3.0.2, reqid: 8, mtu: 1400 }\n"               \
	"sad:\n"                                                                                \
	"  - { spi: 0x1001, src: 10.2.0.2, dst: 10.2.0.1, mode: tunnel, reqid: 7, " GCM          \
	", soft-seconds: 3500, hard-seconds: 3600 }\n"                                          \
	"  - { spi: 0x1002, src: 10.2.0.1, dst: 10.2.0.2, mode: tunnel, reqid: 7, " GCM          \
	", df: set, dscp: 0, fragment: after, soft-bytes: 1000, hard-bytes: 2000, "              \
	"soft-packets: 10, hard-packets: 0xffffffffffffffff, tfc-pad-to: 1280, "                 \
	"dummy-interval: 250 }\n"                                                               \
	"  - { spi: 0x2001, src: 10.3.0.2, dst: 10.3.0.1, mode: tunnel, reqid: 8, " GCM          \
	", encapsulation: udp }\n"                                                              \
	"  - { spi: 0x2002, src: 10.3.0.1, dst: 10.3.0.2, mode: tunnel, reqid: 8, " GCM          \
	", encapsulation: udp, df: clear, dscp: 63, keepalive: 3600 }\n"                        \
	"  - { spi: 0x3001, src: \"2001:db8:2::2\", dst: \"2001:db8:2::1\", "                \
	"mode: transport, reqid: 9, " GCM " }\n"                                                \
	"  - { spi: 0x3002, src: \"2001:db8:2::1\", dst: \"2001:db8:2::2\", "                \
	"mode: transport, reqid: 9, " GCM ", encapsulation: udp }\n"                                      \
	"spd:\n"                                                                                \
	"  - { dir: in, src: \"2001:db8:2::2\", dst: any6, action: protect, "                  \
	"mode: transport, reqid: 9 }\n"                                                         \
	"  - { dir: out, src: any6, dst: \"2001:db8:2::/64\", proto: tcp, action: protect, "   \
	"mode: transport }\n"
#define GCM "aead: aes-gcm-16, key: \"ascii:12345678901234567890\""

static struct config *
load_everything(void)
{
	struct config *c = NULL;
	char *said, *line, *rest;

	if (load_text(EVERYTHING, &c, &said) != 0)
		fail_msg("%s", said);
	for (line = strtok_r(said, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (strstr(line, "warning: ") == NULL ||
		    (strstr(line, "is the key of") == NULL &&
		     strstr(line, "1400 is lowered to 1338") == NULL))
			fail_msg("%s", line);
	free(said);
	return c;
}

static void
dump_shows_everything(void **state)
{
	static const char *const lines[] = {
		"  mss-clamp: false\n",
		"    parent: wan\n    vlan: 100\n",
		"    parent: lan\n    vlan: 4094\n    mtu: 9000\n",
		"    mtu: 1300 # its SA lets 1300 bytes through\n",
		"    mtu: 1400 # its SA lets 1338 bytes through\n",
		// The tunnel's own MTU; then a tag's, with UDP: 1400 - 62, and two of trailer.
		"  - spi: 0x1001 # 4097, inbound, inner packets to 1300 bytes, TCP MSS 1260 over "
		"IPv4 and 1240 over IPv6\n",
		"  - spi: 0x2002 # 8194, outbound, inner packets to 1338 bytes, TCP MSS 1298 over "
		"IPv4 and 1278 over IPv6\n",
		"  - spi: 0x3001 # 12289, inbound, packets to 1466 bytes, TCP MSS 1406\n",
		"  - spi: 0x3002 # 12290, outbound, packets to 1458 bytes, TCP MSS 1398\n",
		"    sequence: 0\n    soft-seconds: 3500\n    hard-seconds: 3600\n",
		"    df: set\n    dscp: 0\n    fragment: after\n    tfc-pad-to: 1280\n"
		"    dummy-interval: 250\n    soft-bytes: 1000\n    soft-packets: 10\n"
		"    hard-bytes: 2000\n    hard-packets: 18446744073709551615\n",
		"    df: clear\n    dscp: 63\n    fragment: before\n    keepalive: 3600\n",
		"    sequence: 0\n    fragment: after\n    keepalive: 20\n",
		"    mode: transport\n",
		"    action: protect\n    mode: transport\n    reqid: 9\n    level: require\n",
	};
	struct config *c = load_everything();
	char *text = dump_text(c);

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		if (strstr(text, lines[i]) == NULL)
			fail_msg("%s is not in %s", lines[i], text);
	free(text);
	assert_dump_loads("everything", c);
	config_free(c);
	c = load_sample("config/rcc-ve.yaml");
	text = dump_text(c);
	assert_non_null(strstr(text, "  - spi: 0x2711 # 10001, outbound, inner packets to 1446 "
				     "bytes, TCP MSS 1406 over IPv4 and 1386 over IPv6\n"));
	free(text);
	config_free(c);
}

static void
vlans(void **state)
{
	struct config *c = load_everything();

	(void)state;
	assert_false(c->mss_clamp);
	assert_int_equal(c->n_ports, 4);
	assert_int_equal(c->ports[0].kind, CFG_PORT_VLAN);
	assert_int_equal(c->ports[0].parent, 2);
	assert_int_equal(c->ports[0].vlan, 100);
	assert_int_equal(c->ports[0].mtu, 1400);
	assert_false(c->ports[0].has_mac);
	assert_string_equal(c->ports[0].device, "");
	assert_int_equal(c->ports[1].kind, CFG_PORT_MAC);
	assert_int_equal(c->ports[1].vlan, 0);
	assert_int_equal(c->ports[3].kind, CFG_PORT_VLAN);
	assert_int_equal(c->ports[3].parent, 1);
	assert_int_equal(c->ports[3].vlan, 4094);
	assert_int_equal(c->ports[3].mtu, 9000);
	config_free(c);
}

static void
terms_of_an_sa(void **state)
{
	struct config *c = load_everything();
	const struct cfg_sa *sa = c->sas;

	(void)state;
	assert_int_equal(c->n_sas, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(sa[i].transport, i >= 4);
	// inbound: nothing is done to packets
	for (int i = 0; i < 6; i += 2) {
		assert_true(sa[i].inbound);
		assert_int_equal(sa[i].df, CFG_DF_COPY);
		assert_int_equal(sa[i].dscp, CFG_DSCP_COPY);
		assert_int_equal(sa[i].tfc_pad_to, 0);
		assert_int_equal(sa[i].dummy_ms, 0);
		assert_int_equal(sa[i].keepalive_s, 0);
	}
	assert_true(sa[0].soft.seconds == 3500 && sa[0].hard.seconds == 3600);
	assert_true(sa[0].soft.bytes == 0 && sa[0].hard.packets == 0);

	assert_int_equal(sa[1].df, CFG_DF_SET);
	assert_int_equal(sa[1].dscp, 0);
	assert_int_equal(sa[1].fragment, CFG_FRAGMENT_AFTER);
	assert_true(sa[1].soft.bytes == 1000 && sa[1].hard.bytes == 2000);
	assert_true(sa[1].soft.packets == 10 && sa[1].hard.packets == UINT64_MAX);
	assert_true(sa[1].soft.seconds == 0 && sa[1].hard.seconds == 0);
	assert_int_equal(sa[1].tfc_pad_to, 1280);
	assert_int_equal(sa[1].dummy_ms, 250);
	assert_int_equal(sa[1].keepalive_s, 0); // no UDP

	assert_int_equal(sa[3].df, CFG_DF_CLEAR);
	assert_int_equal(sa[3].dscp, 63);
	assert_int_equal(sa[3].fragment, CFG_FRAGMENT_BEFORE);
	assert_int_equal(sa[3].keepalive_s, 3600);

	assert_int_equal(sa[5].df, CFG_DF_COPY);
	assert_int_equal(sa[5].dscp, CFG_DSCP_COPY);
	assert_int_equal(sa[5].fragment, CFG_FRAGMENT_AFTER); // transport mode
	assert_int_equal(sa[5].keepalive_s, 20);

	assert_int_equal(c->n_policies, 2);
	assert_true(c->policies[0].transport);
	assert_int_equal(c->policies[0].action, CFG_PROTECT);
	assert_int_equal(c->policies[0].tunnel_src.family, 0);
	assert_int_equal(c->policies[0].reqid, 9);
	config_free(c);

	c = load_sample("config/r3.yaml"); // the defaults
	assert_true(c->mss_clamp);
	assert_false(c->sas[0].transport);
	assert_int_equal(c->sas[0].df, CFG_DF_COPY);
	assert_int_equal(c->sas[0].dscp, CFG_DSCP_COPY);
	assert_int_equal(c->sas[0].fragment, CFG_FRAGMENT_BEFORE);
	assert_true(c->sas[0].hard.bytes == 0 && c->sas[0].soft.seconds == 0);
	assert_int_equal(c->sas[0].keepalive_s, 0);
	assert_false(c->policies[0].transport);
	config_free(c);
}

// lab.md section 2 once more, through a configuration.
static void
sizes_of_an_sa(void **state)
{
	static const struct {
		int number;
		const char *algorithm, *local, *remote;
		uint32_t mtu, mss4, mss6;
	} cases[] = {
		{1, GCM, "10.2.0.1", "10.2.0.2", 1446, 1406, 1386},
		{2, GCM, "\"2001:db8:2::1\"", "\"2001:db8:2::2\"", 1426, 1386, 1366},
		{3, GCM ", encapsulation: udp", "10.2.0.1", "10.2.0.2", 1438, 1398, 1378},
		{4,
		 "cipher: aes-cbc, key: \"ascii:0123456789abcdef\", auth: hmac-sha1-96, auth-key: "
		 "\"ascii:abcdefghijklmnopqrst\"",
		 "10.2.0.1", "10.2.0.2", 1438, 1398, 1378},
		{5,
		 "cipher: aes-cbc, key: \"ascii:0123456789abcdef\", auth: hmac-sha256-128, auth-key: "
		 "\"ascii:0123456789abcdefghijklmnopqrstuv\"",
		 "\"2001:db8:2::1\"", "\"2001:db8:2::2\"", 1406, 1366, 1346},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[2048], *said;
		struct config *c = NULL;

		snprintf(text, sizeof(text),
			 STATE "lab: { allow-published-keys: lab-only }\n" PORTS
			       "tunnels: { vpn: { local: %s, remote: %s, reqid: 7 } }\n"
			       "sad:\n  - { spi: 0x1002, src: %s, dst: %s, mode: tunnel, reqid: 7, "
			       "%s }\n",
			 cases[i].local, cases[i].remote, cases[i].local, cases[i].remote,
			 cases[i].algorithm);
		if (load_text(text, &c, &said) != 0)
			fail_msg("case %d: %s", cases[i].number, said);
		if (config_sa_mtu(c, &c->sas[0]) != cases[i].mtu ||
		    config_sa_mss(c, &c->sas[0], 4) != cases[i].mss4 ||
		    config_sa_mss(c, &c->sas[0], 6) != cases[i].mss6)
			fail_msg("case %d: %u %u %u", cases[i].number,
				 config_sa_mtu(c, &c->sas[0]), config_sa_mss(c, &c->sas[0], 4),
				 config_sa_mss(c, &c->sas[0], 6));
		free(said);
		config_free(c);
	}
}

// The marker as a key in every place and form where somebody may put it.
#define MARKER "MaRkEr-0f-ThE-kEy-20"
#define MARKER_HEX "4d61526b45722d30662d5468452d6b45792d3230"

static void
assert_no_marker(int number, const char *text)
{
	// The marker as it stands, in hex, and in base64 at its three alignments.
	static const char *const forms[] = {
		"MaRkEr",         "0f-ThE-kEy",   "kEy-20",       "4d61526b4572",
		"2d30662d546845", "6b45792d3230", "4D61526B",     "4d:61:52:6b",
		"4d 61 52 6b",    "TWFSa0Vy",     "1hUmtFci0wZi", "NYVJrRXItMGYt",
	};

	for (size_t i = 0; i < COUNT(forms); i++)
		if (strcasestr(text, forms[i]) != NULL)
			fail_msg("case %d shows the key (%s): %s", number, forms[i], text);
}

static void
marker_never_shows(void **state)
{
	static const struct {
		int number;
		bool good;
		const char *lines; // of the SA
	} cases[] = {
		{1, true, "aead: aes-gcm-16\n    key: \"ascii:" MARKER "\""},
		{2, true, "aead: aes-gcm-16\n    key: \"hex:" MARKER_HEX "\""},
		{3, false, "aead: aes-gcm-16\n    key: \"" MARKER "\""},
		{4, false, "aead: aes-gcm-16\n    key: " MARKER},
		{5, false, "aead: aes-gcm-16\n    key: 0x" MARKER_HEX},
		{6, false, "aead: aes-gcm-16\n    key: \"hex:" MARKER_HEX "0\""},
		{7, false, "aead: aes-gcm-16\n    key: \"hex:" MARKER_HEX "00\""},
		{8, false, "aead: aes-gcm-16\n    key: \"hex:" MARKER "\""},
		{9, false, "aead: aes-gcm-16\n    key: \"ascii:" MARKER "\xc3\xa4\""},
		{10, false, "aead: aes-gcm-16\n    keys: \"ascii:" MARKER "\""},
		{11, false, "aead: \"ascii:" MARKER "\"\n    key: \"ascii:" MARKER "\""},
		{12, false, "aead: aes-gcm-16\n    key: [\"ascii:" MARKER "\"]"},
		{13, false, "aead: aes-gcm-16\n    key: { \"ascii:" MARKER "\": 1 }"},
		{14, false, "aead: aes-gcm-16\n    key: &" MARKER " x"},
		{15, false, "aead: aes-gcm-16\n    key: *" MARKER},
		{16, false, "aead: aes-gcm-16\n    key: !" MARKER " x"},
		{17, false, "aead: aes-gcm-16\n    \"key: ascii:" MARKER "\": x"},
		{18, false, "aead: aes-gcm-16\n    key:\"ascii:" MARKER "\""},
		{19, false, "aead: aes-gcm-16\n    key: \"ascii:" MARKER},
		{20, false, "aead: aes-gcm-16\n    key: ascii: " MARKER},
		{21, false,
		 "aead: aes-gcm-16\n    sequence: 0x" MARKER_HEX "\n    key: \"" KEY1 "\""},
		{22, false,
		 "aead: aes-gcm-16\n    esn: \"hex:" MARKER_HEX "\"\n    key: \"" KEY1 "\""},
		{23, false,
		 "aead: aes-gcm-16\n    name: \"ascii:" MARKER "\"\n    key: \"" KEY1 "\""},
		{24, false, "aead: aes-gcm-16\n    key: file:" MARKER},
		{25, false,
		 "cipher: aes-cbc\n    key: \"ascii:" MARKER "\"\n    auth: hmac-sha1-96\n"
		 "    auth-key: \"ascii:" MARKER "\""},
		{26, true,
		 "cipher: null\n    auth: hmac-sha1-96\n    auth-key: \"ascii:" MARKER "\""},
		{27, false,
		 "aead: aes-gcm-16\n    key: \"hex:" MARKER_HEX "\"\n    key: \"hex:" MARKER_HEX
		 "\""},
		{28, false, "aead: aes-gcm-16\n    key: |\n      ascii:" MARKER},
		{29, false, "aead: aes-gcm-16\n    key: \"ASCII:" MARKER "\""},
		{30, false,
		 "aead: aes-gcm-16\n    key: \"ascii:" MARKER "\"\n    \"hex:" MARKER_HEX
		 "\": { x: 1 }"},
		{31, false, "aead: aes-gcm-16\n    key: \"ascii:" MARKER "\\0\""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct config *c = NULL;
		char text[4096], *said;
		int rc;

		snprintf(text, sizeof(text),
			 STATE PORTS
			 "tunnels: { vpn: { local: 10.2.0.1, remote: 10.2.0.2, reqid: 7 } }\n"
			 "sad:\n  - spi: 0x1001\n    src: 10.2.0.2\n    dst: 10.2.0.1\n    mode: "
			 "tunnel\n"
			 "    reqid: 7\n    %s\n",
			 cases[i].lines);
		rc = load_text(text, &c, &said);
		if ((rc == 0) != cases[i].good)
			fail_msg("case %d: %d %s", cases[i].number, rc, said);
		assert_no_marker(cases[i].number, said);
		if (rc == 0) {
			char *dump = dump_text(c);

			assert_no_marker(cases[i].number, dump);
			free(dump);
			config_free(c);
		}
		free(said);
	}
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifndef __SANITIZE_ADDRESS__
// Is the text anywhere in our writable memory? `hidden` is it, xor 0x5a.
static uint32_t
memory_count(const uint8_t *hidden, size_t len, uint8_t *window, size_t window_size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char line[512];
	uint32_t found = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		uint64_t low, high;
		char perms[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &low, &high, perms) != 3 ||
		    perms[0] != 'r' || perms[1] != 'w')
			continue;
		for (; low < high; low += window_size - len) {
			ssize_t n = pread(mem, window, window_size, (off_t)low);

			if (low <= (uint64_t)(uintptr_t)window &&
			    (uint64_t)(uintptr_t)window < low + window_size)
				n = 0; // the window looking at itself
			for (ssize_t i = 0; i + (ssize_t)len <= n; i++) {
				size_t j = 0;

				while (j < len && (window[i + (ssize_t)j] ^ 0x5a) == hidden[j])
					j++;
				found += j == len;
			}
		}
	}
	explicit_bzero(window, window_size);
	close(mem);
	fclose(maps);
	return found;
}
#endif

// After config_free, no piece of a key is left in memory. The file is made with
// the key hidden, so that the test itself has none.
static void
keys_are_wiped(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	(void)state;
	skip(); // the quarantine and the shadow have their own ways
#else
	static uint8_t window[65536];
	// "s3cr3t!pIeCe@" in the middle and at the end of the key, xor 0x5a
	static const uint8_t hidden[] = {0x29, 0x69, 0x39, 0x28, 0x69, 0x2e, 0x7b,
					 0x2a, 0x13, 0x3f, 0x19, 0x3f, 0x1a};
	static const char head[] = STATE PORTS
		"tunnels: { vpn: { local: 10.2.0.1, remote: 10.2.0.2, reqid: 7 } }\n"
		"sad:\n  - { spi: 0x1001, src: 10.2.0.2, dst: 10.2.0.1, mode: tunnel, reqid: 7, "
		"cipher: null, auth: hmac-sha512-256, auth-key: \"ascii:01234567890123456789";
	char path[128];
	struct config *c = NULL;
	uint8_t byte;
	char *said;

	(void)state;
	snprintf(path, sizeof(path), "%s/wipe.yaml", scratch);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, head, sizeof(head) - 1), sizeof(head) - 1);
	for (size_t i = 0; i < 44; i++) {
		byte = i < 5 ? 'x' : hidden[(i - 5) % sizeof(hidden)] ^ 0x5a;
		assert_int_equal(write(fd, &byte, 1), 1);
	}
	assert_int_equal(write(fd, "\" }\n", 4), 4);
	close(fd);
	if (load(path, &c, &said) != 0)
		fail_msg("%s", said);
	free(said);
	// Once in the struct three whole times, and nowhere else.
	assert_int_equal(memory_count(hidden, sizeof(hidden), window, sizeof(window)), 3);
	config_free(c);
	assert_int_equal(memory_count(hidden, sizeof(hidden), window, sizeof(window)), 0);
	// Half of it would be too much as well.
	assert_int_equal(memory_count(hidden, 6, window, sizeof(window)), 0);
#endif
}

// The largest sizes, in bounded time: a quadratic check would take minutes.
static void
large_configuration(void **state)
{
	struct config *c = NULL;
	char *said, path[128];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/large.yaml", scratch);
	f = fopen(path, "we");
	fputs(STATE PORTS "routes:\n", f);
	for (int i = 0; i < 100000; i++)
		fprintf(f, "  - { to: %d.%d.%d.0/24, via: 10.%d.0.2 }\n", 20 + i / 65536,
			i / 256 % 256, i % 256, 1 + i % 2);
	fputs("sad:\n", f);
	for (int i = 0; i < 4096; i++)
		fprintf(f,
			"  - { spi: %d, src: 10.2.0.2, dst: 10.2.0.1, mode: tunnel, aead: "
			"aes-gcm-16, "
			"key: \"hex:%040x\" }\n",
			1000 + i, i + 1);
	fputs("spd:\n", f);
	for (int i = 0; i < 10000; i++)
		fprintf(f,
			"  - { dir: in, src: 30.%d.%d.0/24, dst: 10.1.0.0/24, action: protect, "
			"tunnel: "
			"10.2.0.2-10.2.0.1 }\n",
			i / 256, i % 256);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
	if (load(path, &c, &said) != 0)
		fail_msg("%.300s", said);
	assert_int_equal(c->n_routes, 100000);
	assert_int_equal(c->n_sas, 4096);
	assert_int_equal(c->n_policies, 10000);
	// What is not looked at is said, once.
	assert_non_null(strstr(said, "warning: spd: has 10000 policies"));
	assert_null(strchr(strchr(said, '\n') + 1, '\n'));
	free(said);
	config_free(c);
	unlink(path);
}

// The last number of policies that are compared with each other, and the next.
static void
policies_compared(void **state)
{
	(void)state;
	for (int n = 2000; n <= 2001; n++) {
		char *text, *said;
		size_t size;
		FILE *f = open_memstream(&text, &size);
		struct config *c = NULL;

		fputs(STATE PORTS "spd:\n", f);
		for (int i = 0; i < n; i++)
			fputs("  - { dir: in, src: any4, dst: any4, action: bypass }\n", f);
		fclose(f);
		assert_int_equal(load_text(text, &c, &said), 0);
		assert_int_equal(strstr(said, "spd: has 2001 policies") != NULL, n == 2001);
		assert_int_equal(strstr(said, "is never reached") != NULL, n == 2000);
		free(text);
		free(said);
		config_free(c);
	}
}

static void
neighbours_at_most(void **state)
{
	(void)state;
	for (int n = 2048; n <= 2049; n++) {
		char *text, *said;
		size_t size;
		FILE *f = open_memstream(&text, &size);
		struct config *c = NULL;

		fputs("ports: { a: { device: net_null0, addresses: [10.0.0.1/8] } }\n"
		      "neighbours:\n",
		      f);
		for (int i = 0; i < n; i++)
			fprintf(f, "  - { port: a, address: 10.1.%d.%d, mac: 02:00:00:00:00:01 }\n",
				i / 256, i % 256);
		fclose(f);
		assert_int_equal(load_text(text, &c, &said), n == 2048 ? 0 : -EINVAL);
		if (n == 2048)
			assert_string_equal(said, "");
		else
			assert_non_null(strstr(said, "neighbours: has 2049 entries; at most 2048 "
						     "are taken\n"));
		free(text);
		free(said);
		if (n == 2048)
			config_free(c);
	}
}

static void
key_table_is_complete(void **state)
{
	static const char *const keys[] =
		{"## system\n",  "## ports.NAME\n",           "## sad[]\n",
		 "|  mbufs\n",   "|  allow-nonce-reuse\n",    "|  pci\n",
		 "|  discard\n", "|  udp-destination-port\n", "|  priority\n"};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	config_print_keys(out);
	fclose(out);
	for (size_t i = 0; i < COUNT(keys); i++)
		if (strstr(text, keys[i]) == NULL)
			fail_msg("%s is missing", keys[i]);
	free(text);
}

static int
setup(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/sgw-test-config-XXXXXX");
	return mkdtemp(scratch) == NULL;
}

static int
teardown(void **state)
{
	static const char *const files[] = {"t.yaml", "wipe.yaml", "large.yaml"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", scratch, files[i]);
		unlink(path);
	}
	return rmdir(scratch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_dut),
		cmocka_unit_test(sample_dut_routes),
		cmocka_unit_test(sample_dut_sas),
		cmocka_unit_test(sample_r3),
		cmocka_unit_test(samples_interoperate),
		cmocka_unit_test(samples_virtual),
		cmocka_unit_test(sample_v6),
		cmocka_unit_test(typing_traps),
		cmocka_unit_test(every_field_of_an_sa),
		cmocka_unit_test(policy_order_and_families),
		cmocka_unit_test(routes_of_each_kind),
		cmocka_unit_test(ports_by_pci_and_device),
		cmocka_unit_test(unreadable_files),
		cmocka_unit_test(dump_is_a_configuration),
		cmocka_unit_test(dump_shows_everything),
		cmocka_unit_test(vlans),
		cmocka_unit_test(terms_of_an_sa),
		cmocka_unit_test(sizes_of_an_sa),
		cmocka_unit_test(marker_never_shows),
		cmocka_unit_test(keys_are_wiped),
		cmocka_unit_test(large_configuration),
		cmocka_unit_test(policies_compared),
		cmocka_unit_test(neighbours_at_most),
		cmocka_unit_test(key_table_is_complete),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
