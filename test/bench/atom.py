#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An ESTIMATE of what one core of an Atom C2558 (Silvermont, 2.4 GHz) seals, held against the wire of
1 Gb/s. Nothing is measured here; docs/performance.md has the assumptions.   atom.py [FILE.md]
"""
import sys

import markdown

HZ = 2.4e9
# Cycles a byte on Silvermont, as published in the sources of OpenSSL: CTR 3.56 (aesni-x86_64.pl) and
# GHASH 2.88 (ghash-x86_64.pl) one after the other; CBC of several buffers with SHA in four lanes 8.46
# and 13.6 (sha1-mb-x86_64.pl, sha256-mb-x86_64.pl), AES-256 with 14 rounds for 10.
CTR, GHASH, CBC, CBC_SHA1, CBC_SHA256 = 3.56, 2.88, 3.93, 8.46, 13.6
AES256 = 14 / 10
# name: (cycles a byte, IV, block to fill, ICV, bytes of work besides the text: tag block, HMAC's ends)
ALGORITHMS = {
    "AES-GCM-128": (CTR + GHASH, 8, 4, 16, 32),
    "AES-GCM-256": (CTR * AES256 + GHASH, 8, 4, 16, 32),
    "AES-CBC-128 + SHA1": (CBC_SHA1, 16, 16, 12, 96),
    "AES-CBC-256 + SHA256": (CBC_SHA256 - CBC + CBC * AES256, 16, 16, 16, 96),
}
# Instructions a packet outside crypto (trend, 64 bytes outbound, rounded up), and of a NIC's driver.
INSTRUCTIONS, DRIVER = 1000, 200
PER_CYCLE = (1.0, 0.4)  # instructions a cycle, all in the cache … waiting for memory
SIZES = (64, 528, 1420)


def sealed(inner, iv, block, icv):
    """(bytes ciphered, Ethernet frame without FCS): tunnel mode, IPv4 outside"""
    text = -(-(inner + 2) // block) * block
    return text, 14 + 20 + 8 + iv + text + icv


def wire(frame):
    """Packets per second on 1 Gb/s: FCS, preamble and gap are 24 bytes more."""
    return 1e9 / 8 / (max(frame, 60) + 24)


def row(name, size):
    per_byte, iv, block, icv, more = ALGORITHMS[name]
    text, frame = sealed(size, iv, block, icv)
    ceiling = min(wire(frame), wire(14 + size))
    cost = [per_byte * (text + more) + (INSTRUCTIONS + DRIVER) / ipc for ipc in PER_CYCLE]
    rate = [HZ / c for c in reversed(cost)]
    share = [100 * r / ceiling for r in rate]
    return [name, size, f"{cost[0]:.0f} to {cost[1]:.0f}", f"{rate[0] / 1e3:.0f} to {rate[1] / 1e3:.0f}",
            f"{ceiling / 1e3:.0f}", f"{ceiling * (14 + size) * 8 / 1e6:.0f}", f"{share[0]:.0f} to {share[1]:.0f} %"]


def table():
    return markdown.table(["", "size", "cycles a packet", "kpps a core", "wire, kpps", "wire, Mb/s", "a core of the wire"],
                          [row(a, s) for a in ALGORITHMS for s in SIZES])


if sys.argv[1:]:
    markdown.fill(sys.argv[1], {"atom": table()})
else:
    print(table())
