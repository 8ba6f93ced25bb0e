/* SPDX-License-Identifier: BSD-3-Clause */
// The configuration as plain structs: what the rest of sgw sees of the YAML
// file. Everything in here has been checked: references are resolved to
// indices, values are in range, keys have a length that fits their algorithm.
#pragma once

#include "addr.h"
#include "alg.h"
#include "err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CFG_NAME_MAX 32 // with NUL
#define CFG_KEY_MAX 68  // longest key with salt in bytes
#define CFG_REPLAY_MAX 4096

// Where in the file something stands; both count from 1.
struct cfg_at {
	uint32_t line;
	uint32_t col;
};

struct cfg_key {
	uint8_t len;            // bytes, 0 when absent; salt included for AEAD and CTR
	uint8_t b[CFG_KEY_MAX]; // wiped by config_free()
};

enum cfg_port_kind {
	CFG_PORT_MAC,    // the NIC with this MAC address
	CFG_PORT_PCI,    // the NIC at this PCI address
	CFG_PORT_DEVICE, // devargs of a virtual device, hotplugged by sgw
	CFG_PORT_VLAN,   // tagged frames of another port (keys `parent` and `vlan`)
};

struct cfg_port {
	struct cfg_at at;
	char name[CFG_NAME_MAX];  //
	enum cfg_port_kind kind;  // how the device is found
	bool has_mac;             //
	struct mac mac;           // sgw's MAC address on it; the way to find it with CFG_PORT_MAC
	char device[256];         // PCI address "0000:02:00.0", or devargs "net_tap0,iface=x"
	struct prefix *addresses; // own addresses, host bits set
	uint32_t n_addresses;     //
	uint16_t mtu;             // bytes of L3, 1280…9000, default 1500; subinterface: at most
				  // its parent's, which is the default
	uint16_t vlan;            // 802.1Q tag 1…4094 of a subinterface, 0: the port itself
	uint32_t parent;          // subinterface: index of the port it stands on
};

struct cfg_tunnel { // a route-based IPsec interface
	struct cfg_at at;
	char name[CFG_NAME_MAX];  //
	struct addr local;        // outer addresses
	struct addr remote;       //
	uint32_t reqid;           // ties SAs to the tunnel, 1…2^32-1
	struct prefix *addresses; // own addresses on the interface, host bits set
	uint32_t n_addresses;     //
	uint16_t mtu;             // bytes of inner L3, 0: computed from SA and port
};

struct cfg_neighbour { // a static ARP or NDP entry
	struct cfg_at at;
	uint32_t port; // index into ports
	struct addr address;
	struct mac mac;
};

enum cfg_route_kind {
	CFG_ROUTE_PORT,    // out of a port, to the gateway `via` (family 0: on link)
	CFG_ROUTE_TUNNEL,  // into a tunnel
	CFG_ROUTE_DISCARD, // dropped on purpose
};

struct cfg_route {
	struct cfg_at at;
	struct prefix to;         // host bits clear
	enum cfg_route_kind kind; //
	struct addr via;          // gateway, family 0: none
	uint32_t index;           // of the port or tunnel
};

// What the outer IPv4 header's DF bit becomes, RFC 4301 section 8.1.
enum cfg_df { CFG_DF_COPY, CFG_DF_SET, CFG_DF_CLEAR };

// An inner IPv4 packet without DF that does not fit: fragments of it are sealed,
// or it is sealed whole and the ESP packet is fragmented.
enum cfg_fragment { CFG_FRAGMENT_BEFORE, CFG_FRAGMENT_AFTER };

#define CFG_DSCP_COPY 255 // cfg_sa.dscp: the inner packet's

// Lifetimes of one SA (RFC 4301 section 4.4.2.1); 0: none. Soft is told in the log,
// hard ends the SA.
struct cfg_lifetime {
	uint64_t bytes;   // of inner packets
	uint64_t packets; //
	uint64_t seconds; // since sgw started
};

struct cfg_sa { // a security association, RFC 4301 section 4.4.2
	struct cfg_at at;
	char name[CFG_NAME_MAX]; // as given, else "0x2710" from the SPI
	uint32_t spi;            // host byte order, 256…2^32-1
	struct addr src;         // outer addresses
	struct addr dst;         //
	bool inbound;            // dst is one of our own addresses
	uint32_t reqid;          // 0: none
	enum alg_id cipher;      // AEAD or cipher
	enum alg_id auth;        // ALG_NONE with an AEAD
	struct cfg_key key;      // of the AEAD or cipher, with its salt behind it
	struct cfg_key auth_key; //
	bool esn;                // extended sequence numbers
	uint32_t replay_window;  // inbound: packets, 0: off, default 128, at most 4096
	uint64_t sequence;       // last sequence number used (out) or seen (in), default 0
	bool natt;               // UDP encapsulation, RFC 3948
	uint16_t natt_sport;     // outbound ports, host byte order, default 4500
	uint16_t natt_dport;     //
	bool transport;          // transport mode, else tunnel mode
	enum cfg_df df;          // outbound, default copy
	uint8_t dscp;            // outbound: 0…63, or CFG_DSCP_COPY (default)
	enum cfg_fragment fragment; // outbound, default before; transport mode: always after
	struct cfg_lifetime soft;   //
	struct cfg_lifetime hard;   //
	uint16_t tfc_pad_to;     // outbound: inner packets are padded up to this length, 0: not
	uint32_t dummy_ms;       // outbound: a dummy packet when nothing was sent for so long, 0: none
	uint16_t keepalive_s;    // outbound NAT-T: keepalive after silence, default 20, 0: none
	char fingerprint[17];    // first 8 bytes of SHA-256(label, keys) in hex; safe to show
};

enum cfg_dir { CFG_IN, CFG_OUT };
enum cfg_action { CFG_DISCARD, CFG_BYPASS, CFG_PROTECT };

struct cfg_policy { // an SPD entry, RFC 4301 section 4.4.1
	struct cfg_at at;
	enum cfg_dir dir;         //
	struct range src;         // selectors of the inner packet
	struct range dst;         //
	uint8_t proto;            // upper layer protocol
	bool any_proto;           // proto is not looked at
	uint16_t sport[2];        // inclusive, 0…65535 when not given; host byte order
	uint16_t dport[2];        //
	enum cfg_action action;   //
	bool transport;           // protect: with transport mode SAs between src and dst
	struct addr tunnel_src;   // protect, not transport: outer addresses in the direction of
	struct addr tunnel_dst;   // `dir`, else family 0
	uint32_t reqid;           // protect: 0: any
	uint32_t priority;        // lower wins, default 1000
	uint32_t rank;            // position in search order, 0 first (priority, then file order)
};

enum cfg_idle { CFG_IDLE_SLEEP, CFG_IDLE_POLL };
enum cfg_steering { CFG_STEER_AUTO, CFG_STEER_QUEUES, CFG_STEER_FLOWS, CFG_STEER_BURSTS };
enum cfg_crypto { CFG_CRYPTO_DIRECT, CFG_CRYPTO_LOOK_ASIDE };

struct config {
	char *file;                   // as given on the command line
	char name[CFG_NAME_MAX];      // system.name, [a-z0-9][a-z0-9-]*
	char *state;                  // system.state: path of the state file, NULL: none
	uint32_t mbufs;               // system.mbufs: packet buffers, default 16384
	enum cfg_idle idle;           // system.idle: default sleep
	enum cfg_steering steering;   // system.steering: default auto
	enum cfg_crypto crypto;       // system.crypto: default direct
	bool mss_clamp;               // system.mss-clamp: default true
	bool allow_nonce_reuse;       // lab.allow-nonce-reuse: lab-only
	bool allow_published_keys;    // lab.allow-published-keys: lab-only
	struct cfg_port *ports;
	uint32_t n_ports;
	struct cfg_tunnel *tunnels;
	uint32_t n_tunnels;
	struct cfg_neighbour *neighbours;
	uint32_t n_neighbours;
	struct cfg_route *routes; // as written; connected routes are not in here
	uint32_t n_routes;
	struct cfg_sa *sas;
	uint32_t n_sas;
	struct cfg_policy *policies; // sorted by rank
	uint32_t n_policies;
};

/**
 * Read and check a configuration file. Touches nothing else on the machine,
 * needs no privilege. Everything wrong is reported in one run.
 *
 * @param file  path of the YAML file
 * @param out   filled when 0 is returned; to be released with config_free()
 * @param diag  every error and warning goes here, one a line:
 *              `file:line:col: path: what is wrong; what would be right`
 *              (warnings: `file:line:col: warning: path: …`); never a key byte
 * @return 0 (perhaps with warnings), -EINVAL when there was any error,
 *         -errno when the file could not be read (also said on diag)
 */
int config_load(const char *file, struct config **out, FILE *diag);

/**
 * Longest packet that the SA takes as the configuration has it: an inner packet in
 * tunnel mode, the original packet without extension headers in transport mode. From
 * the port that has our end, and the tunnel's own `mtu` where there is one.
 * @return length in bytes, 0 when nothing fits
 */
uint32_t config_sa_mtu(const struct config *c, const struct cfg_sa *sa);

/** Longest TCP segment in such a packet, without TCP options; family of the inner packet. */
uint32_t config_sa_mss(const struct config *c, const struct cfg_sa *sa, uint8_t family);

/** Wipe the keys: the SAs have been built and nobody needs them here any more. */
void config_wipe_keys(struct config *c);

/** Wipe the keys and free everything. NULL is allowed. */
void config_free(struct config *c);

/** Print what will run, as YAML with comments; keys as fingerprints only. */
void config_dump(const struct config *c, FILE *out);

/** Print the table of all keys (for sgw.yaml(5)) in scdoc syntax. */
void config_print_keys(FILE *out);
