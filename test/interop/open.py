#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that sgw opens what others seal: every algorithm, key size, ESN, UDP encapsulation and
outer family, both inner families on each SA; ESP sealed by scapy; every packet of a capture of a
Linux 6.1 kernel; in both forms of ESP. What comes out must be byte for byte the inner packet, one hop further."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import decoders
import esp
import sgw
import world

SIZES = (0, 1, 2, 3, 13, 14, 15, 16, 100, 1300)  # payloads of UDP: every padding of 4, many of 16


def inner_packets(family, sizes=SIZES):
    """v4 and v6 packets from behind the peer to the host."""
    four, six = ("10.20.0.7", "fd20::7") if family == 4 else ("10.26.0.7", "fd26::7")
    for n in sizes:
        yield esp.udp(four, "10.10.3.1", 40001, 40002, esp.test_key(f"p{n}", n), ttl=33, ident=n + 1)
        yield esp.udp(six, "fd10:0:3::1", 40001, 40002, esp.test_key(f"q{n}", n), ttl=33)


def spd(family):
    four, six = ("10.20.0.0/16", "fd20::/32") if family == 4 else ("10.26.0.0/16", "fd26::/32")
    return [world.policy_in(four, "10.10.0.0/16", family), world.policy_in(six, "fd10::/32", family)]


def every_combination(report, folder):
    for esn in (False, True):
        for natt in (False, True):
            for family in (4, 6):
                sas, frames, want, spi = [], [], [], 0x1000
                for alg in world.every_algorithm():
                    spi += 1
                    sa = world.in_sa(spi, *alg, family=family, esn=esn, natt=natt)
                    sas.append((sa, alg))
                    for i, inner in enumerate(inner_packets(family)):
                        seq = i + 1
                        frames.append(world.from_peer(esp.outer(sa, sa.seal(inner, seq))))
                        want.append(world.to_host(esp.hop(inner)))
                yaml = world.config("open", sad=[s.to_config() for s, _ in sas], spd=spd(family))
                r, p0, _ = world.run(folder, yaml, p1=frames)
                what = f"ESN {'on' if esn else 'off'}, {'UDP' if natt else 'plain'}, " \
                       f"outer IPv{family}"
                base = world.run_faults(r)
                per = len(list(inner_packets(family)))
                have = {}
                for f in p0:
                    have[f] = have.get(f, 0) + 1
                for n, (sa, alg) in enumerate(sas):
                    a = r.account.sas.get(sa.name, {})
                    faults = []
                    if a.get("packets") != per:
                        faults.append(f"{sa.name}: {a.get('packets')} of {per} packets opened, "
                                      f"drops {r.account.sa_drops.get(sa.name)}")
                    report.check(f"opens {world.label(*alg)}, {what}", faults)
                report.check(f"all {len(want)} inner packets unchanged, {what}",
                             base + world.difference(sorted(want), sorted(p0)))


def scapy_made(report, folder):
    """The same, but sealed by scapy."""
    from scapy.all import IP, IPv6, raw
    for natt, family in ((False, 4), (False, 6), (True, 4)):  # scapy 2.5 seals no UDP over IPv6
        sas, frames, want, spi = [], [], [], 0x2000
        for alg in world.every_algorithm():
            for esn in (False, True):
                sa = world.in_sa(spi + 1, *alg, family=family, natt=natt, esn=esn)
                if not decoders.scapy_knows(sa):
                    continue  # every_combination() does them
                spi += 1
                sas.append(sa)
                their = decoders.scapy_sa(sa)
                for seq, inner in enumerate(inner_packets(family, (0, 5, 1200)), 1):
                    ip = IP(inner) if inner[0] >> 4 == 4 else IPv6(inner)
                    e = raw(their.encrypt(ip, esn_en=True, esn=0, seq_num=seq) if esn else
                            their.encrypt(ip, seq_num=seq))
                    if natt:  # scapy leaves the UDP length at 8
                        e = e[:24] + (len(e) - 20).to_bytes(2, "big") + e[26:]
                    frames.append(world.from_peer(e))
                    want.append(world.to_host(esp.hop(inner)))
        yaml = world.config("open", sad=[s.to_config() for s in sas], spd=spd(family))
        r, p0, _ = world.run(folder, yaml, p1=frames)
        faults = [f"{s.name} {s.cipher} {s.auth}: {r.account.sas.get(s.name)}, drops "
                  f"{r.account.sa_drops.get(s.name)}" for s in sas
                  if r.account.sas.get(s.name, {}).get("packets") != 6]
        report.check(f"opens scapy's ESP, {len(sas)} SAs, {'UDP' if natt else 'plain'}, "
                     f"outer IPv{family}",
                     world.run_faults(r) + faults + world.difference(sorted(want), sorted(p0)))


def linux_made(report, folder):
    """linux-6.1-esp.pcap, see README.md beside it for its keys."""
    src, dst = "192.0.2.10", "192.0.2.20"
    gcm = bytes.fromhex("0102030405060708090a0b0c0d0e0f1011121314")
    cbc = bytes(range(16))
    sas = [esp.Sa(0xa001, "aes-gcm-16", gcm, src=src, dst=dst),
           esp.Sa(0xa003, "aes-cbc", cbc, "hmac-sha1-96", b"\x11" * 20, src=src, dst=dst),
           esp.Sa(0xa004, "aes-cbc", cbc, "hmac-sha256-128", b"\x22" * 32, src=src, dst=dst),
           esp.Sa(0xa009, "aes-gcm-16", gcm, src=src, dst=dst, natt=True)]
    frames = esp.pcap_read(os.path.join(HERE, "linux-6.1-esp.pcap"))
    want = []
    by_spi = {s.spi: s for s in sas}
    for f in frames:
        _, _, _, e, _ = esp.split_outer(f[14:])
        inner = by_spi[int.from_bytes(e[:4], "big")].open(e)[2]
        want.append(esp.eth("02:00:00:00:00:33", world.MAC0, esp.hop(inner)))
    own = frames[0][:6].hex(":")
    yaml = world.config(
        "open",
        ports=[f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap", '
               f'mac: "{world.MAC0}", addresses: [10.20.0.254/24] }}',
               f'p1: {{ device: "net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap", '
               f'mac: "{own}", addresses: [{dst}/24] }}'],
        neighbours=['{ port: p0, address: 10.20.0.1, mac: "02:00:00:00:00:33" }'],
        base_routes=False, sad=[s.to_config() for s in sas],
        spd=[f'{{ dir: in, src: 10.10.0.0/16, dst: 10.20.0.0/16, action: protect, '
             f'tunnel: {src}-{dst} }}'])
    r, p0, _ = world.run(folder, yaml, p1=frames)
    faults = world.run_faults(r) + world.difference(want, p0)
    if len(frames) != 12:
        faults.append(f"the capture has {len(frames)} packets, 12 expected")
    report.check("opens all 12 packets of the Linux 6.1 capture", faults)


def esn_wrap(report, folder):
    """ESN across 2^32, with losses and reordering there, for every algorithm kind."""
    start = 2**32 - 40
    seqs = [n for n in range(start, start + 80) if n % 7]
    seqs[30:50] = reversed(seqs[30:50])
    sas, frames, want = [], [], []
    for i, alg in enumerate((("aes-gcm-16", 16, None), ("chacha20-poly1305", 32, None),
                             ("aes-cbc", 32, "hmac-sha256-128"), ("aes-ctr", 16, "hmac-sha1-96"),
                             ("null", 0, "hmac-sha512-256"))):
        sa = world.in_sa(0x3000 + i, *alg, esn=True)
        sas.append(sa)
        for seq in seqs:
            inner = esp.udp("10.20.0.9", "10.10.0.1", 1, 2, seq.to_bytes(8, "big"))
            frames.append(world.from_peer(esp.outer(sa, sa.seal(inner, seq))))
            want.append(world.to_host(esp.hop(inner)))
    yaml = world.config("open", sad=[s.to_config(f"sequence: {start - 1}") for s in sas], spd=spd(4))
    r, p0, _ = world.run(folder, yaml, p1=frames)
    report.check(f"ESN across 2^32 with losses and reordering, {len(sas)} algorithms",
                 world.run_faults(r) + world.difference(sorted(want), sorted(p0)))


def many_in_one_burst(report, folder):
    """40 SAs, unknown SPIs and clear packets interleaved: order within each SA is kept."""
    sas = [world.in_sa(0x4000 + i, *alg) for i, alg in enumerate(world.every_algorithm())]
    frames, want = [], {s.spi: [] for s in sas}
    stranger = world.in_sa(0x9999, "aes-gcm-16")
    for seq in range(1, 51):
        for sa in sas:
            inner = esp.udp("10.20.0.9", "10.10.0.1", sa.spi, 7, seq.to_bytes(4, "big") * 9)
            frames.append(world.from_peer(esp.outer(sa, sa.seal(inner, seq))))
            want[sa.spi].append(world.to_host(esp.hop(inner)))
        frames.append(world.from_peer(esp.outer(stranger, stranger.seal(inner, seq))))
    yaml = world.config("open", sad=[s.to_config() for s in sas], spd=spd(4))
    r, p0, _ = world.run(folder, yaml, p1=frames)
    have = {}
    for f in p0:
        have.setdefault(int.from_bytes(f[34:36], "big"), []).append(f)
    faults = world.run_faults(r)
    for sa in sas:
        faults += world.difference(want[sa.spi], have.get(sa.spi, []))
    if r.account.port_drops.get("p1") != {"esp_no_sa": 50}:
        faults.append(f"drops {r.account.port_drops.get('p1')}, esp_no_sa 50 expected")
    report.check(f"{len(sas)} SAs and a stranger mixed in every burst", faults)


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-open-") as folder:
        for _ in world.every_form(report):
            linux_made(report, folder)
            scapy_made(report, folder)
            esn_wrap(report, folder)
            many_in_one_burst(report, folder)
            every_combination(report, folder)
    report.end()


main()
