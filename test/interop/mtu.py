#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the MTU and MSS of an SA are those of a brute-force encoder: every algorithm, outer
family, UDP encapsulation. Every inner size from 1300 to 1600 with DF goes through sgw, both inner
families: sealed up to the longest that an encoder brings under 1500 bytes, refused from the next one
on, no hole. --dump shows the same numbers, and a SYN gets the MSS. In transport mode answers to pings
are cut from the same size on."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), d) for d in ("lib", "golden")]
import esp
import sgw
import world
from router import SYN, mss_option, tcp
from transport import SPD4, SPD6, echo

SIZES = range(1300, 1601)
# lab.md section 2: (cipher, auth, family, natt): longest inner packet
CONSTANTS = {("aes-gcm-16", None, 4, False): 1446, ("aes-gcm-16", None, 6, False): 1426,
             ("aes-gcm-16", None, 4, True): 1438, ("aes-cbc", "hmac-sha1-96", 4, False): 1438,
             ("aes-cbc", "hmac-sha256-128", 4, False): 1438, ("aes-cbc", "hmac-sha256-128", 6, False): 1406}


def algorithms():
    """One key size of each: it has no part in lengths."""
    seen = set()
    for cipher, key_len, auth in world.every_algorithm():
        if (cipher, auth) not in seen:
            seen.add((cipher, auth))
            yield cipher, key_len, auth


def brute_force(sa, mtu=1500):
    """The longest inner packet whose ESP packet is no longer than the MTU, by trying."""
    fit = [n for n in range(1000, mtu) if len(esp.outer(sa, sa.seal(b"\x45" + bytes(n - 1), 1))) <= mtu]
    assert fit == list(range(1000, fit[-1] + 1))
    return fit[-1]


def dumped(folder):
    """What --dump says of each SA: {SPI: (MTU, MSS…)}."""
    r = subprocess.run([sgw.binary(), "--", "-f", "sgw.yaml", "--dump"], cwd=folder, capture_output=True, text=True)
    return {int(m[1], 16): tuple(int(n) for n in m.groups()[1:] if n) for m in re.finditer(
        r"spi: (0x[0-9a-f]+) #.* packets to (\d+) bytes, TCP MSS (\d+)(?: over IPv4 and (\d+) over IPv6)?", r.stdout)}


def tunnel(report, folder, family, natt):
    sas, spd, sad, frames = [], [], [], []
    for i, alg in enumerate(algorithms(), 1):
        sa = world.out_sa(0x2000 + i, *alg, family=family, natt=natt)
        sas.append((sa, alg, brute_force(sa), i))
        sad.append(sa.to_config(f"reqid: {i}"))
        for src, dst in (("10.10.0.0/16", f"10.100.{i}.0/24"), ("fd10::/32", f"fd20:0:0:{i:x}::/64")):
            spd.append(world.policy_out(src, dst, family, f", reqid: {i}"))
        for n in SIZES:
            frames.append(esp.udp("10.10.3.1", f"10.100.{i}.7", 1, 2, bytes(n - 28), df=True))
            frames.append(esp.udp("fd10:0:3::1", f"fd20:0:0:{i:x}::7", 1, 2, bytes(n - 48)))
        frames += [tcp("10.10.3.1", f"10.100.{i}.7", SYN, mss_option(65535)),
                   tcp("fd10:0:3::1", f"fd20:0:0:{i:x}::7", SYN, mss_option(65535))]
    conf = world.config("mtu", sad=sad, spd=spd, mtu=9000, mtu1=1500)
    r, _, p1 = world.run(folder, conf, p0=[world.from_host(p) for p in frames])
    shown = dumped(folder)
    have = {}
    for f in p1:
        parts = esp.split_outer(f[14:])
        have.setdefault(int.from_bytes(parts[3][:4], "big"), []).append((parts[3], len(f) - 14))
    what = f"{'UDP' if natt else 'plain'}, outer IPv{family}"
    for sa, alg, mtu, i in sas:
        bad, sizes, mss = [], {4: [], 6: []}, []
        for e, length in have.get(sa.spi, []):
            inner = sa.open(e)[2]
            if length > 1500:
                bad.append(f"an ESP packet of {length} bytes")
            v6 = inner[0] >> 4 == 6
            if inner[6 if v6 else 9] == 6:
                mss.append(int.from_bytes(inner[-2:], "big"))
            else:
                sizes[6 if v6 else 4].append(len(inner))
        want = list(range(1300, mtu + 1))
        for v, have_sizes in sizes.items():
            if have_sizes != want:
                bad.append(f"IPv{v} inside: up to {mtu} expected, missing {sorted(set(want) - set(have_sizes))[:9]}, "
                           f"too many {sorted(set(have_sizes) - set(want))[:9]}")
        if mss != [mtu - 40, mtu - 60]:
            bad.append(f"MSS {mss}, expected {[mtu - 40, mtu - 60]}")
        if shown.get(sa.spi) != (mtu, mtu - 40, mtu - 60):
            bad.append(f"--dump says {shown.get(sa.spi)}")
        constant = CONSTANTS.get((alg[0], alg[2], family, natt), mtu)
        if constant != mtu:
            bad.append(f"lab.md says {constant}, the encoder {mtu}")
        report.check(f"{mtu} bytes and MSS {mtu - 40} with {world.label(*alg)}, {what}", bad)
    refused = sum(2 * (1600 - mtu) for _, _, mtu, _ in sas)
    bad = world.run_faults(r)
    if r.account.port_drops.get("p0", {}) != {"too_big": refused}:
        bad.append(f"{refused} too big expected: {r.account.port_drops}")
    report.check(f"all {len(frames)} packets, {what}", bad)


def transport(report, folder, family, natt):
    """Answers to pings around the step: whole up to the MTU, fragments from there on."""
    for n, alg in enumerate(algorithms(), 1):
        i = world.in_sa(0x1000 + n, *alg, family=family, natt=natt, transport=True)
        o = world.out_sa(0x2000 + n, *alg, family=family, natt=natt, transport=True)
        hl = 20 if family == 4 else 40
        fits = [k for k in range(1380, 1500) if len(esp.transport(o, echo(family, 0, bytes(k - hl - 9))[1], 1)) <= 1500]
        mtu = fits[-1]
        conf = world.config("mtu", sad=[i.to_config(), o.to_config()], spd=SPD4 if family == 4 else SPD6)
        send, want = [], []
        for seq, size in enumerate(range(mtu - 20, mtu + 21), 1):
            a, b = echo(family, 0, bytes(size - hl - 9))
            assert len(a) == size
            send += [world.from_peer(p) for p in esp.fragments(esp.transport(i, a, seq), 1500, ident=seq)]
            want.append(1 if size <= mtu else 2)
        r, _, p1 = world.run(folder, conf, p1=send)
        have, whole = [], 0
        for f in p1:
            ip = f[14:]
            if family == 4:
                fragment, first = (ip[6] & 0x3f) or ip[7], not ((ip[6] & 0x1f) or ip[7])
            else:
                fragment, first = ip[6] == 44, ip[6] == 44 and not (ip[42] or ip[43] & 0xf8)
            if not fragment:
                have.append(1)
            elif first:
                have.append(2)
            whole += 1
        bad = world.run_faults(r)
        if have != want or whole != sum(want):
            bad.append(f"whole 1, cut 2: {have}, expected {want}")
        shown = dumped(folder).get(o.spi)
        if shown != (mtu, mtu - hl - 20):
            bad.append(f"--dump says {shown}, expected {mtu}")
        report.check(f"transport mode: {mtu} bytes with {world.label(*alg)}, {'UDP' if natt else 'plain'}, IPv{family}", bad)


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-mtu-") as folder:
        for family in (4, 6):
            for natt in (False, True):
                tunnel(report, folder, family, natt)
                transport(report, folder, family, natt)
    report.end()


main()
