#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that others open what sgw seals: every algorithm, key size, ESN, UDP encapsulation and
outer family, both inner families on each SA. Opened by test/lib/esp.py, by scapy and by tshark
(where they know the algorithm), in both forms of ESP; the inner packet must be what was sent, one hop further, with the
numbers 1, 2, 3…, outer TTL 64, and UDP and IP checksums that are right."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import decoders
import esp
import sgw
import world

SIZES = (0, 1, 2, 3, 13, 14, 15, 16, 100, 1300)


def inner_packets(i):
    for n in SIZES:
        yield esp.udp("10.10.3.1", f"10.100.{i}.7", 40001, 40002, esp.test_key(f"p{n}", n), ttl=33,
                      ident=n + 1)
        yield esp.udp("fd10:0:3::1", f"fd20:0:0:{i:x}::7", 40001, 40002, esp.test_key(f"q{n}", n),
                      ttl=33)


def open_all(frames, by_spi):
    """{SPI: [(number, inner, outer IP bytes, header fields)]} and what is wrong."""
    found, faults = {}, []
    for f in frames:
        parts = esp.split_outer(f[14:])
        sa = by_spi.get(int.from_bytes(parts[3][:4], "big")) if parts else None
        if sa is None or f[:12] != esp.mac(world.PEER) + esp.mac(world.MAC1):
            faults.append(f"not ESP of ours: {f.hex()}")
            continue
        src, dst, natt, e, info = parts
        try:
            seq, _, inner, next_header = sa.open(e)
        except esp.Refused as why:
            faults.append(f"{sa.name} {sa.cipher} {sa.auth}: does not open, {why}")
            continue
        if (src, dst, natt) != (sa.src, sa.dst, sa.natt) or info["ttl"] != 64 or \
                not info.get("udp_sum_ok", True) or \
                next_header != (41 if inner[0] >> 4 == 6 else 4):
            faults.append(f"{sa.name}: outer header {src} {dst} {info}, next header {next_header}")
        found.setdefault(sa.spi, []).append((seq, inner, f[14:], info))
    return found, faults


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-seal-") as folder:
        for _ in world.every_form(report):
            for esn in (False, True):
                for natt in (False, True):
                    for family in (4, 6):
                        combination(report, folder, esn, natt, family)
    report.end()


def family_of(packet):
    return packet[0] >> 4


def combination(report, folder, esn, natt, family):
    sas, spd, sad, frames, want = [], [], [], [], {}
    for i, alg in enumerate(world.every_algorithm(), 1):
        sa = world.out_sa(0x2000 + i, *alg, family=family, esn=esn, natt=natt)
        sas.append((sa, alg))
        sad.append(sa.to_config(f"reqid: {i}"))
        for dst in (f"10.100.{i}.0/24", f"fd20:0:0:{i:x}::/64"):
            src = "10.10.0.0/16" if "." in dst else "fd10::/32"
            spd.append(world.policy_out(src, dst, family, f", reqid: {i}"))
        want[sa.spi] = [esp.hop(p) for p in inner_packets(i)]
    # one of each SA after the other: all in one burst
    for n in range(2 * len(SIZES)):
        for i in range(1, len(sas) + 1):
            frames.append(world.from_host(list(inner_packets(i))[n]))
    r, _, p1 = world.run(folder, world.config("seal", sad=sad, spd=spd), p0=frames)
    found, faults = open_all(p1, {s.spi: s for s, _ in sas})
    what = f"ESN {'on' if esn else 'off'}, {'UDP' if natt else 'plain'}, outer IPv{family}"
    scapy_n = 0
    for sa, alg in sas:
        have = found.get(sa.spi, [])
        # each family is a flow: its order is kept, between the two there is none
        bad = world.difference(sorted(want[sa.spi], key=family_of),
                               sorted((inner for _, inner, _, _ in have), key=family_of))
        if [seq for seq, _, _, _ in have] != list(range(1, len(have) + 1)):
            bad.append(f"numbers {[seq for seq, _, _, _ in have]}")
        if bad and r.account.sa_drops.get(sa.name):
            bad.append(f"drops {r.account.sa_drops[sa.name]}")
        # scapy 2.5 opens no UDP encapsulation over IPv6
        if decoders.scapy_knows(sa) and not (natt and family == 6):
            for _, inner, ip, _ in have:
                scapy_n += 1
                try:
                    if decoders.scapy_open(sa, ip) != inner:
                        bad.append("scapy finds another inner packet")
                except Exception as e:
                    bad.append(f"scapy: {e!r}")
        report.check(f"seals {world.label(*alg)}, {what}", bad)
    report.check(f"all {len(frames)} packets of a run, {what} ({scapy_n} opened by scapy too)",
                 world.run_faults(r) + faults)
    known = [sa for sa, _ in sas if decoders.tshark_knows(sa)]
    if not known:
        return
    rows = decoders.tshark(os.path.join(folder, "got.p1.pcap"), known,
                           ["esp.spi", "esp.icv_good", "ip.dst", "ipv6.dst"], "esp")
    spis = {sa.spi for sa in known}
    rows = [row for row in rows if int(row[0], 16) in spis]
    bad = [f"{row}" for row in rows if row[1] != "1" or len(",".join(row[2:]).strip(",").split(",")) != 2]
    if len(rows) != len(known) * 2 * len(SIZES):
        bad.append(f"{len(rows)} packets, {len(known) * 2 * len(SIZES)} expected")
    report.check(f"tshark opens {len(rows)} packets of {len(known)} SAs, {what}", bad)


main()
