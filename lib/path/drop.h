/* SPDX-License-Identifier: BSD-3-Clause */
// The one list of reasons why a packet ended inside sgw, and the only place
// that frees a refused packet.
#pragma once

#include <stdint.h>

struct worker;
struct rte_mbuf;

// X(name, class, text). Classes: DROP, refused; TAKEN, ended here as it should
// (consumed or answered by sgw itself). For every port of arrival holds
//   received + originated = sent on + Σ of all reasons of both classes.
#define DROP_REASONS(X)                                                                       \
	/* between workers */                                                                 \
	X(steer_full, DROP, "the worker that has this flow is too far behind")                \
	/* Ethernet */                                                                        \
	X(eth_runt, DROP, "frame shorter than its headers")                                   \
	X(eth_oversize, DROP, "frame larger than the MTU of its port")                         \
	X(eth_foreign, DROP, "destination MAC address is not ours")                           \
	X(eth_type, DROP, "EtherType is not IPv4, IPv6 or ARP")                               \
	X(eth_vlan, DROP, "VLAN tag that no subinterface has, or more than one tag")          \
	X(arp_malformed, DROP, "ARP packet with wrong fields")                                \
	X(arp_foreign, TAKEN, "ARP for somebody else")                                        \
	X(arp_taken, TAKEN, "ARP request answered or reply learned")                          \
	X(nd_malformed, DROP, "neighbour discovery message with wrong fields (RFC 4861)")     \
	X(nd_taken, TAKEN, "neighbour discovery message answered or learned")                 \
	X(multicast, DROP, "multicast or broadcast, which sgw does not forward")              \
	/* IP */                                                                              \
	X(ip_truncated, DROP, "IP packet longer than its frame, or shorter than its header")  \
	X(ip_version, DROP, "IP version does not fit the EtherType or next header")           \
	X(ip_header, DROP, "IPv4 header length under 20 bytes, or broken extension headers")  \
	X(ip_checksum, DROP, "IPv4 header checksum is wrong")                                 \
	X(ip_martian, DROP, "source or destination that can not be a host on the wire")       \
	X(ip_spoofed, DROP, "source is one of our own addresses")                             \
	X(frag_bad, DROP, "fragment with impossible length or offset")                        \
	X(frag_overlap, DROP, "fragments overlap (RFC 5722)")                                 \
	X(frag_duplicate, DROP, "fragment came twice")                                        \
	X(frag_timeout, DROP, "not all fragments came, or too many packets were incomplete")  \
	X(frag_taken, TAKEN, "fragment put together with others, the packet went on")         \
	X(frag_split, TAKEN, "packet cut into fragments, these went on")                      \
	X(no_buffer, DROP, "no packet buffer was free")                                       \
	X(ip_ttl, DROP, "TTL or hop limit ran out")                                           \
	X(local_taken, TAKEN, "ICMP for us that needs no answer")                             \
	X(local_no_service, DROP, "packet to one of our addresses that nothing listens on")   \
	X(local_queue_full, DROP, "too many packets for ourselves in one burst")              \
	X(ike_ignored, DROP, "IKE message or NAT keepalive, sgw runs no IKE")                 \
	/* ESP, inbound */                                                                    \
	X(esp_runt, DROP, "ESP packet too short for its algorithm, or not aligned to it")     \
	X(esp_no_sa, DROP, "no SA for this SPI and destination")                              \
	X(esp_sa_source, DROP, "outer source address is not the SA's")                        \
	X(esp_sa_encap, DROP, "UDP encapsulation differs from the SA's")                      \
	X(esp_replay, DROP, "sequence number was seen before")                                \
	X(esp_late, DROP, "sequence number is left of the replay window, or zero")            \
	X(esp_auth, DROP, "integrity check failed")                                           \
	X(esp_trailer, DROP, "padding or pad length is wrong")                                \
	X(esp_next_header, DROP, "next header is not an IP version, or not the inner one")    \
	X(esp_inner, DROP, "inner packet is malformed")                                       \
	X(esp_ecn, DROP, "congestion mark on a packet that can not carry it (RFC 6040 4.2)")  \
	X(esp_dummy, TAKEN, "dummy packet (RFC 4303 section 2.6)")                            \
	X(esp_prepare, DROP, "librte_ipsec refused the packet")                               \
	X(esp_crypto, DROP, "crypto device failed")                                           \
	/* ESP, outbound */                                                                   \
	X(sa_missing, DROP, "tunnel without outbound SA")                                     \
	X(sa_sequence_end, DROP, "sequence numbers are used up, rekey")                       \
	X(sa_sequence_reserve, DROP, "state file is behind with reserving sequence numbers")  \
	X(sa_lifetime, DROP, "lifetime of the SA is over, rekey")                             \
	X(loop, DROP, "tunnel packet whose route leads into a tunnel")                        \
	X(no_headroom, DROP, "no room in the buffer for a header")                            \
	/* policy */                                                                          \
	X(policy_none, DROP, "no policy allows this packet")                                  \
	X(policy_discard, DROP, "a policy says discard")                                      \
	X(policy_clear, DROP, "came in clear text, a policy wants it protected")              \
	X(policy_selector, DROP, "inner packet is outside the selectors of its SA")           \
	/* forwarding */                                                                      \
	X(route_none, DROP, "no route")                                                       \
	X(route_discard, DROP, "a route says discard")                                        \
	X(too_big, DROP, "larger than the MTU, sender was told")                              \
	X(too_big_sealed, DROP, "ESP packet larger than the MTU of its port")                 \
	X(neigh_queue_full, DROP, "too many packets wait for this neighbour")                 \
	X(neigh_failed, DROP, "neighbour does not answer")                                    \
	X(neigh_table_full, DROP, "neighbour table is full")                                  \
	X(tx_full, DROP, "transmit queue of the port is full")                                \
	X(stopping, DROP, "sgw was stopping")

enum drop_reason {
#define X(name, class, text) DROP_##name,
	DROP_REASONS(X)
#undef X
	DROP_COUNT,
};

enum drop_class { DROP_CLASS_DROP, DROP_CLASS_TAKEN };

struct drop_info {
	const char *name; // in telemetry and tests: letters, digits, underscores
	const char *text; // for people
	enum drop_class class;
};

extern const struct drop_info drop_infos[DROP_COUNT];

/**
 * End a packet here: count the reason on its port of arrival (m->port) and on
 * its SA (pkt(m)->sa, when set), then free it.
 */
void drop(struct worker *w, struct rte_mbuf *m, enum drop_reason why);
