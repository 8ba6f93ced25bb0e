/* SPDX-License-Identifier: BSD-3-Clause */
#include "schema.h"

#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

const struct schema_section schema_sections[SEC_COUNT] = {
	[SEC_SYSTEM] = {"system", SHAPE_SINGLE, 1, "What concerns the program as a whole."},
	[SEC_LAB] = {"lab", SHAPE_SINGLE, 1,
		     "Switches that take a protection away. They are for a laboratory, and each "
		     "one only works when its value is the word *lab-only*."},
	[SEC_PORTS] =
		{"ports", SHAPE_NAMED, 32,
		 "The network ports, each under a name of your choice. A port is found in "
		 "exactly one way: by *pci*, by *device*, by *mac* alone, or by *parent* and "
		 "*vlan*. This is the only section that must be there."},
	[SEC_TUNNELS] = {"tunnels", SHAPE_NAMED, 1024,
			 "Route-based IPsec interfaces: what is routed into one is sealed with the "
			 "outbound SA of the same *reqid* and outer addresses. Names are shared "
			 "with ports."},
	[SEC_NEIGHBOURS] = {"neighbours", SHAPE_LIST, 2048,
			    "Static ARP and NDP entries. Other neighbours are resolved as needed."},
	[SEC_ROUTES] = {"routes", SHAPE_LIST, 100000,
			"Static routes. The prefixes of ports and tunnels are routes already. "
			"A route names *via*, or *port*, or both, or *tunnel*, or *discard*."},
	[SEC_SAD] = {"sad", SHAPE_LIST, 20000,
		     "Security associations with static keys. An SA is inbound when its *dst* is "
		     "an address of one of our ports, outbound when its *src* is."},
	[SEC_SPD] = {"spd", SHAPE_LIST, 10000,
		     "Policies. The lowest *priority* that matches wins, then the order of the "
		     "file; what no policy and no tunnel takes is dropped."},
};

#define CIPHERS "aes-cbc|aes-ctr|null"
#define AEADS "aes-gcm-16|aes-gcm-12|aes-gcm-8|chacha20-poly1305"
#define AUTHS "hmac-sha1-96|hmac-sha256-128|hmac-sha384-192|hmac-sha512-256"

// clang-format off
const struct schema_key schema_keys[] = {
	{SEC_SYSTEM, "name", TYPE_TEXT, false, 0, 0, NULL, "sgw",
	 "Name of this gateway: a-z, 0-9 and -, at most 31. Processes on one machine need different names"},
	{SEC_SYSTEM, "state", TYPE_TEXT, false, 0, 0, NULL, NULL,
	 "Absolute path of the state file, which keeps sequence numbers over a restart. Needed by outbound SAs with AEAD or CTR"},
	{SEC_SYSTEM, "mbufs", TYPE_NUMBER, false, 1024, 1048576, NULL, "16384",
	 "Packet buffers; each takes about 2.5 KiB of memory at MTU 1500, and 10 KiB at MTU 9000"},
	{SEC_SYSTEM, "idle", TYPE_CHOICE, false, 0, 0, "sleep|poll", "sleep",
	 "What a worker does without packets: *sleep* polls for 50 µs, then gives the core back for longer and longer, up to 150 µs or until an interrupt; *poll* keeps it"},
	{SEC_SYSTEM, "steering", TYPE_CHOICE, false, 0, 0, "auto|queues|flows|bursts", "auto",
	 "How packets come to the workers, see WORKERS: *queues* as the NIC deals them out, *flows* by a hash in software, *bursts* one flow over all. *auto*: queues where every port has one for each worker, else flows"},
	{SEC_SYSTEM, "crypto", TYPE_CHOICE, false, 0, 0, "direct|look-aside", "direct",
	 "Who makes ESP in tunnel mode: *direct* sgw itself with ipsec-mb, the fastest; *look-aside* librte_ipsec with a crypto device, as always in transport mode"},
	{SEC_SYSTEM, "mss-clamp", TYPE_BOOL, false, 0, 0, NULL, "true",
	 "Lowers the MSS of TCP connections to what fits the SA they enter; never raises it"},

	{SEC_LAB, "allow-nonce-reuse", TYPE_CHOICE, false, 0, 0, "lab-only", NULL,
	 "Lets outbound AEAD and CTR SAs run without *system.state*, although nonces then repeat after a restart"},
	{SEC_LAB, "allow-published-keys", TYPE_CHOICE, false, 0, 0, "lab-only", NULL,
	 "Lets the published sample key pass, and keys in files that group or others can read"},

	{SEC_PORTS, "mac", TYPE_MAC, false, 0, 0, NULL, NULL,
	 "MAC address. Alone, it finds the NIC; beside *pci* or *device* it is set on the port"},
	{SEC_PORTS, "pci", TYPE_TEXT, false, 0, 0, NULL, NULL,
	 "PCI address of the NIC, as \"0000:02:00.0\""},
	{SEC_PORTS, "device", TYPE_TEXT, false, 0, 0, NULL, NULL,
	 "Virtual device that sgw makes itself: net_af_packet, net_tap, net_memif, net_pcap, net_ring or net_null, with a number and its arguments, as \"net_tap0,iface=t0\""},
	{SEC_PORTS, "addresses", TYPE_LIST, false, 0, 64, NULL, NULL,
	 "Own addresses with prefix lengths, as [198.18.0.209/24, \"2001:2::209/64\"]"},
	{SEC_PORTS, "mtu", TYPE_NUMBER, false, 1280, 9000, NULL, "1500",
	 "Longest IP packet in bytes. Of a VLAN: that of *parent*, which is also the most"},
	{SEC_PORTS, "parent", TYPE_PORT, false, 0, 0, NULL, NULL,
	 "With *vlan*: the port whose tagged frames are this one's"},
	{SEC_PORTS, "vlan", TYPE_NUMBER, false, 1, 4094, NULL, NULL,
	 "VLAN tag (IEEE 802.1Q), with *parent*"},

	{SEC_TUNNELS, "local", TYPE_ADDRESS, true, 0, 0, NULL, NULL,
	 "Outer address on this side, one of a port's own addresses"},
	{SEC_TUNNELS, "remote", TYPE_ADDRESS, true, 0, 0, NULL, NULL,
	 "Outer address of the peer. It must be reached through a port, never through a tunnel"},
	{SEC_TUNNELS, "reqid", TYPE_NUMBER, true, 1, UINT32_MAX, NULL, NULL,
	 "The number that ties SAs to the tunnel"},
	{SEC_TUNNELS, "addresses", TYPE_LIST, false, 0, 64, NULL, NULL,
	 "Own addresses inside the tunnel, with prefix lengths. A gateway in one of these prefixes is reached through the tunnel"},
	{SEC_TUNNELS, "mtu", TYPE_NUMBER, false, 1280, 9000, NULL, NULL,
	 "Longest inner packet in bytes; computed from the SA and the port when absent, and never more than that"},

	{SEC_NEIGHBOURS, "port", TYPE_PORT, true, 0, 0, NULL, NULL,
	 "Port behind which the neighbour is"},
	{SEC_NEIGHBOURS, "address", TYPE_ADDRESS, true, 0, 0, NULL, NULL,
	 "Its IPv4 or IPv6 address, inside a prefix of the port, or link-local"},
	{SEC_NEIGHBOURS, "mac", TYPE_MAC, true, 0, 0, NULL, NULL,
	 "Its MAC address"},

	{SEC_ROUTES, "to", TYPE_PREFIX, true, 0, 0, NULL, NULL,
	 "Destination prefix without host bits; 0.0.0.0/0 and \"::/0\" are default routes"},
	{SEC_ROUTES, "via", TYPE_ADDRESS, false, 0, 0, NULL, NULL,
	 "Gateway, inside a prefix of a port or tunnel; a link-local one (fe80::/10) needs *port* beside it"},
	{SEC_ROUTES, "port", TYPE_PORT, false, 0, 0, NULL, NULL,
	 "Out of this port; without *via*, the destinations are neighbours"},
	{SEC_ROUTES, "tunnel", TYPE_TUNNEL, false, 0, 0, NULL, NULL,
	 "Into this tunnel"},
	{SEC_ROUTES, "discard", TYPE_BOOL, false, 0, 0, NULL, NULL,
	 "true: drop, for instance what must not follow a default route"},

	{SEC_SAD, "name", TYPE_NAME, false, 0, 0, NULL, NULL,
	 "Name in messages and statistics; the SPI in hex when absent. No two SAs have the same"},
	{SEC_SAD, "spi", TYPE_NUMBER, true, 256, UINT32_MAX, NULL, NULL,
	 "Security parameters index; 0 to 255 are reserved (RFC 4303 section 2.1)"},
	{SEC_SAD, "src", TYPE_ADDRESS, true, 0, 0, NULL, NULL,
	 "Outer source address"},
	{SEC_SAD, "dst", TYPE_ADDRESS, true, 0, 0, NULL, NULL,
	 "Outer destination address"},
	{SEC_SAD, "mode", TYPE_CHOICE, true, 0, 0, "tunnel|transport", NULL,
	 "*tunnel*: whole packets inside new ones; *transport*: what *src* and *dst* themselves say to each other"},
	{SEC_SAD, "reqid", TYPE_NUMBER, false, 1, UINT32_MAX, NULL, NULL,
	 "Ties the SA to the tunnel or policy with the same number"},
	{SEC_SAD, "aead", TYPE_CHOICE, false, 0, 0, AEADS, NULL,
	 "Combined encryption and integrity; takes the place of *cipher* and *auth*"},
	{SEC_SAD, "cipher", TYPE_CHOICE, false, 0, 0, CIPHERS, NULL,
	 "Encryption, together with *auth*. *null* encrypts nothing and must be spelled out"},
	{SEC_SAD, "key", TYPE_KEY, false, 0, 0, NULL, NULL,
	 "Key of *aead* or *cipher*: 16, 24 or 32 bytes (chacha20-poly1305: 32), and for AEAD and CTR 4 bytes of salt behind it"},
	{SEC_SAD, "auth", TYPE_CHOICE, false, 0, 0, AUTHS, NULL,
	 "Integrity, together with *cipher*"},
	{SEC_SAD, "auth-key", TYPE_KEY, false, 0, 0, NULL, NULL,
	 "Key of *auth*: 20, 32, 48 or 64 bytes, in the order of the algorithms above"},
	{SEC_SAD, "esn", TYPE_BOOL, false, 0, 0, NULL, "false",
	 "Extended (64-bit) sequence numbers; both sides must agree"},
	{SEC_SAD, "replay-window", TYPE_NUMBER, false, 0, CFG_REPLAY_MAX, NULL, "128",
	 "Inbound: packets in the replay window; 0 switches the check off"},
	{SEC_SAD, "encapsulation", TYPE_CHOICE, false, 0, 0, "none|udp", "none",
	 "*udp*: ESP in UDP for the way through NAT (RFC 3948)"},
	{SEC_SAD, "udp-source-port", TYPE_NUMBER, false, 1, 65535, NULL, "4500",
	 "Outbound: UDP source port, with *encapsulation: udp*"},
	{SEC_SAD, "udp-destination-port", TYPE_NUMBER, false, 1, 65535, NULL, "4500",
	 "Outbound: UDP destination port, with *encapsulation: udp*. Inbound it is always 4500, where sgw listens"},
	{SEC_SAD, "sequence", TYPE_NUMBER, false, 0, UINT64_MAX - 1, NULL, "0",
	 "Last sequence number that was sent or seen before the start. Outbound at most 4294967293, with *esn* at most 18446744073709551613"},
	{SEC_SAD, "df", TYPE_CHOICE, false, 0, 0, "copy|set|clear", "copy",
	 "Outbound tunnel mode: the DF bit of the outer IPv4 header (RFC 4301 section 8.1)"},
	{SEC_SAD, "dscp", TYPE_TEXT, false, 0, 63, NULL, "copy",
	 "Outbound tunnel mode: DSCP of the outer header, *copy* of the inner one or a number from 0 to 63"},
	{SEC_SAD, "fragment", TYPE_CHOICE, false, 0, 0, "before|after", "before",
	 "Outbound: what is too long is cut *before* encryption, or the ESP packet is *after* it. Transport mode knows only *after*"},
	{SEC_SAD, "soft-bytes", TYPE_NUMBER, false, 1, UINT64_MAX, NULL, NULL,
	 "Bytes of inner packets after which the log says that the SA is to be renewed"},
	{SEC_SAD, "soft-packets", TYPE_NUMBER, false, 1, UINT64_MAX, NULL, NULL,
	 "The same in packets"},
	{SEC_SAD, "soft-seconds", TYPE_NUMBER, false, 1, UINT32_MAX, NULL, NULL,
	 "The same in seconds since sgw started"},
	{SEC_SAD, "hard-bytes", TYPE_NUMBER, false, 1, UINT64_MAX, NULL, NULL,
	 "Bytes of inner packets after which the SA is dead: its packets are dropped"},
	{SEC_SAD, "hard-packets", TYPE_NUMBER, false, 1, UINT64_MAX, NULL, NULL,
	 "The same in packets"},
	{SEC_SAD, "hard-seconds", TYPE_NUMBER, false, 1, UINT32_MAX, NULL, NULL,
	 "The same in seconds since sgw started"},
	{SEC_SAD, "tfc-pad-to", TYPE_NUMBER, false, 64, 9000, NULL, NULL,
	 "Outbound tunnel mode: inner packets are padded up to this many bytes (RFC 4303 section 2.7)"},
	{SEC_SAD, "dummy-interval", TYPE_NUMBER, false, 1, 3600000, NULL, NULL,
	 "Outbound: after so many milliseconds without a packet a dummy one is sent (RFC 4303 section 2.6)"},
	{SEC_SAD, "keepalive", TYPE_NUMBER, false, 0, 3600, NULL, "20",
	 "Outbound, with *encapsulation: udp*: seconds of silence after which the NAT gets a keepalive (RFC 3948 section 2.3); 0: never"},

	{SEC_SPD, "dir", TYPE_CHOICE, true, 0, 0, "in|out", NULL,
	 "*out*: packets about to leave, in clear or into a tunnel; *in*: packets that arrived, in clear or out of one"},
	{SEC_SPD, "src", TYPE_RANGE, true, 0, 0, NULL, NULL,
	 "Inner source: address, prefix, first-last, *any4*, *any6*, or *any* for both"},
	{SEC_SPD, "dst", TYPE_RANGE, true, 0, 0, NULL, NULL,
	 "Inner destination, likewise"},
	{SEC_SPD, "proto", TYPE_TEXT, false, 0, 255, NULL, "any",
	 "*any*, *tcp*, *udp*, *icmp*, *icmpv6*, *sctp*, *gre*, *esp*, *ah*, *ospf*, or a number"},
	{SEC_SPD, "sport", TYPE_PORTS, false, 0, 65535, NULL, NULL,
	 "Source port or ports, as 443 or 1-1023; with tcp, udp or sctp"},
	{SEC_SPD, "dport", TYPE_PORTS, false, 0, 65535, NULL, NULL,
	 "Destination port or ports"},
	{SEC_SPD, "action", TYPE_CHOICE, true, 0, 0, "discard|bypass|protect", NULL,
	 "*protect* with IPsec, *bypass* it in clear, or *discard* the packet"},
	{SEC_SPD, "mode", TYPE_CHOICE, false, 0, 0, "tunnel|transport", "tunnel",
	 "For *protect*: the mode of its SAs. With *transport* they are those between *src* and *dst* themselves"},
	{SEC_SPD, "tunnel", TYPE_PAIR, false, 0, 0, NULL, NULL,
	 "For *protect* in tunnel mode: outer source-destination, as 198.18.1.203-198.18.1.209"},
	{SEC_SPD, "reqid", TYPE_NUMBER, false, 1, UINT32_MAX, NULL, NULL,
	 "For *protect*: only SAs with this reqid. Without it, the SAs between the two outer addresses (*transport*: the two ends), which then must all have the same or none"},
	{SEC_SPD, "level", TYPE_CHOICE, false, 0, 0, "require", "require",
	 "For *protect*: never in clear. There is no other level"},
	{SEC_SPD, "priority", TYPE_NUMBER, false, 0, UINT32_MAX, NULL, "1000",
	 "The lower wins"},
};
// clang-format on

const uint32_t schema_n_keys = sizeof(schema_keys) / sizeof(schema_keys[0]);

const struct schema_key *
schema_find(enum section s, const char *key)
{
	for (uint32_t i = 0; i < schema_n_keys; i++)
		if (schema_keys[i].section == s && strcmp(schema_keys[i].key, key) == 0)
			return &schema_keys[i];
	return NULL;
}

const struct schema_key *
schema_get(enum section s, const char *key)
{
	const struct schema_key *k = schema_find(s, key);

	assert(k != NULL);
	return k;
}

const char *
schema_type_name(enum schema_type t)
{
	static const char *const names[] = {
		[TYPE_TEXT] = "text",
		[TYPE_NAME] = "a name",
		[TYPE_NUMBER] = "a number",
		[TYPE_BOOL] = "true or false",
		[TYPE_CHOICE] = "a word",
		[TYPE_ADDRESS] = "an address",
		[TYPE_PREFIX] = "a prefix",
		[TYPE_RANGE] = "an address, prefix or range",
		[TYPE_LIST] = "[address/length, ...]",
		[TYPE_PAIR] = "address-address",
		[TYPE_MAC] = "a MAC address",
		[TYPE_KEY] = "a key",
		[TYPE_PORTS] = "a port or first-last",
		[TYPE_PORT] = "a port's name",
		[TYPE_TUNNEL] = "a tunnel's name",
	};

	return names[t];
}

// Text for scdoc, where an underscore or asterisk of the text itself would
// change the face. Help texts mean their asterisks.
static void
scdoc_print(const char *text, const char *also, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '_' || strchr(also, *text) != NULL)
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void
value_print(const struct schema_key *k, FILE *out)
{
	if (k->type == TYPE_CHOICE) {
		for (const char *p = k->choices; *p != '\0'; p++) {
			if (*p == '|')
				fputs(", ", out);
			else
				fputc(*p, out);
		}
	} else if (k->type == TYPE_NUMBER) {
		fprintf(out, "%" PRIu64 " to %" PRIu64, k->min, k->max);
	} else {
		scdoc_print(schema_type_name(k->type), "*", out);
	}
}

void
config_print_keys(FILE *out)
{
	static const char *const shapes[] = {
		[SHAPE_SINGLE] = "",
		[SHAPE_NAMED] = ".NAME",
		[SHAPE_LIST] = "[]",
	};

	for (int s = 0; s < SEC_COUNT; s++) {
		const struct schema_section *sec = &schema_sections[s];

		fprintf(out, "## %s%s\n\n", sec->name, shapes[sec->shape]);
		scdoc_print(sec->help, "", out);
		if (sec->shape != SHAPE_SINGLE)
			fprintf(out, " At most %u.", sec->max);
		fputs("\n\n[[ *Key*\n:[ *Value*\n:[ *Default*\n:< *Meaning*\n", out);
		for (uint32_t i = 0; i < schema_n_keys; i++) {
			const struct schema_key *k = &schema_keys[i];

			if (k->section != (enum section)s)
				continue;
			fprintf(out, "|  %s\n:  ", k->key);
			value_print(k, out);
			fprintf(out, "\n:  %s\n:  ",
				k->required         ? "required" :
				k->fallback != NULL ? k->fallback :
						      "-");
			scdoc_print(k->help, "", out);
			fputc('\n', out);
		}
		fputc('\n', out);
	}
}
