#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves what SAs do by the clock: dummy packets and NAT keepalives after silence, and only then;
soft lifetimes told once; hard lifetimes in seconds that cut both directions."""
import os
import re
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), d) for d in ("lib", "golden")]
import esp
import sgw
import world
from kit import BASE_SPD, GCM_IN, GCM_OUT, good4, hop, mine4
from fragments import ends_of
from transport import SPD4, SPD6, pair


def keepalive(sa):
    """RFC 3948 section 2.3: one byte 0xff in UDP; the sum zero over IPv4, real over IPv6."""
    u = struct.pack("!HHHH", sa.sport, sa.dport, 9, 0) + b"\xff"
    if sa.src.version == 6:
        pseudo = sa.src.packed + sa.dst.packed + struct.pack("!II", 9, 17)
        u = u[:6] + esp.csum(pseudo + u) + u[8:]
    return esp.ip_header(sa.src, sa.dst, 17, 9) + u


def keepalives(report, folder):
    for name in ("natt", "natt-6"):
        _, o, spd = ends_of(name)
        for key, least, most in (("keepalive: 1", 2, 4), ("keepalive: 0", 0, 0), ("", 0, 0)):
            conf = world.config("timed", sad=[o.to_config(key)], spd=spd[2:])
            r, _, p1 = world.run(folder, conf, p0=[world.from_host(mine4())], idle=3500)
            bad = world.run_faults(r)
            got, want = p1[1:], world.to_peer(keepalive(o))
            if not least <= len(got) <= most:
                bad.append(f"{len(got)} in 3.5 s, {least} to {most} expected")
            for f in got:
                ip = f[14:]
                same = f if ip[0] >> 4 == 6 else f[:18] + b"\0\0" + f[20:24] + b"\0\0" + f[26:]
                if ip[0] >> 4 == 4 and esp.csum(ip[:20]) != b"\0\0":
                    bad.append("wrong IPv4 checksum")
                if same != (want if ip[0] >> 4 == 6 else want[:24] + b"\0\0" + want[26:]):
                    bad += [f"expected {want.hex()}", f"came     {f.hex()}"]
            report.check(f"NAT keepalives, {name}, {key or 'default'}", bad)


def opened(sa, frames, bad):
    """(number, next header, inner bytes, header fields) of each frame."""
    out = []
    for f in frames:
        parts = esp.split_outer(f[14:])
        if parts is None or f[:12] != esp.mac(world.PEER) + esp.mac(world.MAC1) or parts[:3] != (sa.src, sa.dst, sa.natt):
            bad.append(f"no ESP of the SA: {f.hex()}")
            continue
        try:
            seq, _, inner, nh = sa.open(parts[3])
        except esp.Refused as why:
            bad.append(f"does not open, {why}")
            continue
        out.append((seq, nh, inner, parts[4]))
    return out


def dummies(report, folder):
    sas = [(name, ends_of(name)[1], ends_of(name)[2][2:]) for name in ("4", "6", "natt", "natt-6")]
    sas += [("cbc", world.out_sa(0x2003, "aes-cbc", 16, "hmac-sha256-128", esn=True), BASE_SPD[2:])]
    sas += [(f"transport-{f}", pair(family=f)[1], (SPD4 if f == 4 else SPD6)[1:]) for f in (4, 6)]
    for name, o, spd in sas:
        data = [] if o.transport else [world.from_host(mine4())]
        conf = world.config("timed", sad=[o.to_config("dummy-interval: 100")], spd=spd)
        r, _, p1 = world.run(folder, conf, p0=data, idle=2000)
        bad = world.run_faults(r)
        got = opened(o, p1, bad)
        if [s for s, *_ in got] != list(range(1, len(got) + 1)):
            bad.append(f"numbers {[s for s, *_ in got]}")
        plain = [g for g in got if g[1] != 59]
        if [g[2] for g in plain] != [hop(mine4())] * len(data):
            bad.append(f"{len(plain)} packets are no dummies, {len(data)} expected")
        n = len(got) - len(plain)
        if not 12 <= n <= 22:
            bad.append(f"{n} dummies in 2 s of 100 ms each")
        lengths = {len(g[2]) for g in got if g[1] == 59}
        if n and len(lengths) < n // 2:
            bad.append(f"lengths tell that they are dummies: {sorted(lengths)}")
        if any(g[3]["tos"] for g in got):
            bad.append("a dummy has a traffic class")
        report.check(f"dummy packets, {name}", bad)
        # a peer takes them
        if not o.transport:
            i = esp.Sa(o.spi, o.cipher, o.raw_key, o.auth, o.raw_auth_key, o.esn, o.natt, src=str(o.dst), dst=str(o.src))
            inner = [world.from_peer(esp.outer(i, i.seal(g[2], g[0], next_header=59))) for g in got if g[1] == 59]
            local, remote = str(i.dst), str(i.src)
            r, p0, _ = world.run(folder, world.config("timed", sad=[i.to_config()], spd=[
                f'{{ dir: in, src: 10.20.0.0/16, dst: 10.10.0.0/16, action: protect, tunnel: "{remote}-{local}" }}']),
                p1=inner)
            bad = world.run_faults(r)
            if p0 or r.account.port_drops["p1"] != {"esp_dummy": len(inner)}:
                bad.append(f"{len(p0)} came out, {r.account.port_drops}")
            report.check(f"dummy packets are taken, {name}", bad)
    conf = world.config("timed", sad=[GCM_OUT.to_config("dummy-interval: 50, hard-packets: 3")], spd=BASE_SPD[2:])
    r, _, p1 = world.run(folder, conf, idle=1500)
    bad = world.run_faults(r)
    if len(p1) != 3:
        bad.append(f"{len(p1)} dummies, 3 expected")
    report.check("dummies are packets of the SA: its lifetime ends them too", bad)
    conf = world.config("timed", sad=[GCM_OUT.to_config("dummy-interval: 50, sequence: 4294967291")], spd=BASE_SPD[2:])
    r, _, p1 = world.run(folder, conf, idle=1500)
    bad = world.run_faults(r)
    if len(p1) != 3:
        bad.append(f"{len(p1)} dummies, 3 expected")
    report.check("dummies stop with the sequence numbers", bad)


def soft(report, folder):
    came = [world.from_peer(esp.outer(GCM_IN, GCM_IN.seal(good4(n), n + 1))) for n in range(5)]
    mine = [world.from_host(mine4(n)) for n in range(5)]
    for key, told in (("soft-packets: 3", 1), ("soft-packets: 6", 0), ("soft-bytes: 170", 1), ("soft-bytes: 171", 0),
                      ("soft-seconds: 1", 1), ("soft-seconds: 60", 0)):
        conf = world.config("timed", sad=[GCM_IN.to_config(key), GCM_OUT.to_config(key)], spd=BASE_SPD)
        r, p0, p1 = world.run(folder, conf, p0=mine, p1=came, idle=3000)
        bad = world.run_faults(r)
        if len(p0) != 5 or len(p1) != 5:
            bad.append(f"{len(p0)} and {len(p1)} packets, 5 each expected")
        for name in (GCM_IN.name, GCM_OUT.name):
            n = len(re.findall(rf"{name}\b.*soft", r.err))
            if n != told:
                bad += [f"{name} was told of {n} times, {told} expected", r.err]
        report.check(f"soft lifetime, {key}", bad)


def sequence_marks(report, folder):
    for esn, end in ((False, 2**32 - 1), (True, 2**64 - 1)):
        o = world.out_sa(0x2001, "aes-gcm-16", esn=esn)
        for mark in (75, 90):
            # one packet from the mark on, and some of them left and right
            at = end * mark // 100
            for start, told in ((at - 2, 1), (at - 100, 0)):
                conf = world.config("timed", sad=[o.to_config(f"sequence: {start}")], spd=BASE_SPD[2:])
                r, _, p1 = world.run(folder, conf, p0=[world.from_host(mine4(n)) for n in range(5)], idle=2500)
                bad = world.run_faults(r)
                n = len(re.findall(rf"{o.name}\b.*\b{mark} ?%", r.err))
                if n != told or len(p1) != 5:
                    bad += [f"told {n} times, {told} expected; {len(p1)} packets", r.err]
                report.check(f"sequence numbers at {mark} %, ESN {esn}, from {start - at} on", bad)


def hard_seconds(report, folder):
    """A wire that never stops: before the end everything passes, behind it nothing."""
    i, o = GCM_IN, GCM_OUT
    ports = [f'{name}: {{ device: "net_pcap{n},rx_pcap=send.{name}.pcap,infinite_rx=1", mac: "{mac}", addresses: [{a}] }}'
             for n, (name, mac, a) in enumerate((("p0", world.MAC0, "10.10.0.254/24"), ("p1", world.MAC1, "192.0.2.1/24")))]
    near = [f'{{ port: p0, address: 10.10.0.1, mac: "{world.HOST}" }}', f'{{ port: p1, address: 192.0.2.2, mac: "{world.PEER}" }}']
    for seconds, wait, over in ((30, 2, False), (2, 5, True)):
        key = f"hard-seconds: {seconds}"
        conf = world.config("timed", ports=ports, neighbours=near, base_routes=False, routes=["{ to: 10.10.0.0/16, via: 10.10.0.1 }"],
                            sad=[i.to_config(key + ", replay-window: 0"), o.to_config(key + ", dummy-interval: 300")],
                            spd=[BASE_SPD[0], BASE_SPD[2]])
        world.write(folder, conf, [world.from_host(mine4())], [world.from_peer(esp.outer(i, i.seal(good4(), 1)))])
        run = sgw.Running(folder)
        bad = []
        try:
            run.wait_ready()
            time.sleep(wait)
        finally:
            r = run.stop()
        bad += world.run_faults(r)
        for sa in (i, o):
            a, dropped = r.account.sas[sa.name], r.account.sa_drops.get(sa.name, {}).get("sa_lifetime", 0)
            if not a["packets"] or bool(dropped) != over:
                bad.append(f"{sa.name}: {a}, dropped {dropped}")
            if len(re.findall(rf"{sa.name}\b.*hard", r.err)) != over:
                bad.append(f"stderr: {r.err}")
        if r.account.ports["p1"]["originated"]:
            bad.append(f"{r.account.ports['p1']['originated']} dummies beside traffic")
        report.check(f"{key}, after {wait} s; no dummies beside traffic", bad)


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-timed-") as folder:
        for part in (keepalives, dummies, soft, sequence_marks, hard_seconds):
            part(report, folder)
    report.end()


main()
