/* SPDX-License-Identifier: BSD-3-Clause */
// What a wire can carry: arithmetic from frame sizes (lab.md section 2).
#pragma once

#include "alg.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WIRE_EXTRA 24 // bytes: FCS, preamble, inter-frame gap
#define ETH_LEN 14

// How a clear packet travels on one wire.
struct encap {
	enum alg_id cipher; // ALG_NONE: in clear
	enum alg_id auth;   // ALG_NONE with an AEAD
	uint8_t family;     // of the outer header, 4 or 6
	bool natt;          // UDP encapsulation
	bool esn;           // changes no length; for the name only
	bool transport;     // transport mode
	uint8_t vlan_tags;  // 0 … 2 on this wire
};

/** Bytes of L3 that a clear packet of `l3` bytes becomes. */
uint32_t encap_l3(const struct encap *e, uint32_t l3);

/** Bytes of time on the wire of such a packet, smallest frame and gap included. */
uint32_t encap_wire(const struct encap *e, uint32_t l3);

/**
 * Packets a second that a link of `bps` bits a second carries, with packets of n sizes
 * and weights (an IMIX; n = 1: one size).
 * @param l3  bytes of the clear packets
 */
double ceiling_pps(const struct encap *e, double bps, const uint32_t *l3, const uint32_t *weights,
		   uint32_t n);

/** The same as bits a second of clear Ethernet frames without FCS. */
double ceiling_bps(const struct encap *e, double bps, const uint32_t *l3, const uint32_t *weights,
		   uint32_t n);

/** Largest clear packet whose ESP packet fits an outer MTU. */
uint32_t ceiling_inner(const struct encap *e, uint32_t mtu);

/** The tables of `sgw-bench ceiling`. @param bps  of the link */
void ceiling_print(double bps, FILE *out);
