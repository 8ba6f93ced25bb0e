# SPDX-License-Identifier: BSD-3-Clause
"""The packets: captures of clear text for net_pcap, feed files of ESP for feed.c.

  hosts 10.10.0.0/16      lan  gateway  wan     100.64.0.0/10, the peers
  fd10::/32          ─────────┤├──────────── ESP ─────────     2001:db8:1::/64
                                                 behind them 11.0.0.0/8 and up, fd20::/32

Unit u, which is SA pair u, policy u or route u, has the network 11.0.u.0/24 or fd20:0:u::/48.
"""
import ipaddress
import os
import struct
import subprocess

import cases
import esp

LAN_MAC, WAN_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
HOST_MAC, PEER_MAC = "02:00:00:00:00:11", "02:00:00:00:00:22"
LOCAL = {4: "192.0.2.1", 6: "2001:db8::1"}
FAR4, FAR6 = int(ipaddress.ip_address("11.0.0.0")), int(ipaddress.ip_address("fd20::"))
REMOTE4, REMOTE6 = int(ipaddress.ip_address("100.64.0.1")), int(ipaddress.ip_address("2001:db8:1::1"))


BASE_ROUTES = 4  # to the hosts and the peers; they count among case.routes


def units(case):
    return max(case.sas, case.policies, case.routes - BASE_ROUTES)


def far_net(case, u):
    """Network behind the far gateway, as text."""
    if case.family == 4:
        return f"{ipaddress.ip_address(FAR4 + (u << 8))}/24"
    return f"{ipaddress.ip_address(FAR6 + (u << 80))}/48"


def remote(case, k):
    """Outer address of the peer of SA pair k."""
    return str(ipaddress.ip_address((REMOTE4 if case.family == 4 else REMOTE6) + k))


def lan_net(case):
    return "10.10.0.0/16" if case.family == 4 else "fd10::/32"


def make_sa(case, k, direction):
    """SA k of a direction, with a key of its own."""
    alg = cases.ALGORITHMS[case.algorithm]
    spi = (0x10000 if direction == "out" else 0x20000) + k
    key = esp_key(f"{spi}", alg.key + (0 if alg.kind == "cbc" else alg.second))
    ends = (LOCAL[case.family], remote(case, k))
    src, dst = ends if direction == "out" else reversed(ends)
    cipher = {"gcm": "aes-gcm-16", "chacha": "chacha20-poly1305", "cbc": "aes-cbc"}[alg.kind]
    auth = alg.sgw.split("auth: ")[1] if alg.kind == "cbc" else None
    auth_key = esp_key(f"auth {spi}", alg.second) if auth else b""
    return esp.Sa(spi, cipher, key, auth, auth_key, natt=case.natt, src=src, dst=dst)


def esp_key(label, n):
    return esp.test_key("bench " + label, n)


# -- inner packets ---------------------------------------------------------------------------------

def udp(src, dst, sport, dport, length):
    """A UDP packet whose IP packet is `length` long."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    n = length - (20 if src.version == 4 else 40)
    data = struct.pack("!HHHH", sport, dport, n, 0) + bytes(n - 8)
    if src.version == 6:
        pseudo = src.packed + dst.packed + struct.pack("!II", n, 17)
        data = data[:6] + esp.csum(pseudo + data) + data[8:]
    return esp.ip_header(src, dst, 17, n) + data


def inner(case, i):
    """Inner packet i: (unit, packet). 250 hosts here and there, so at least 250 flows."""
    n = units(case)
    u = i % n if n <= count(case) else (i * 7919) % n
    length = cases.IMIX[i % 12] if case.size == "imix" else case.size
    host = 1 + (i // n if n > 1 else i) % 250
    if case.family == 4:
        near = f"10.10.{i % 4}.{1 + i % 250}"
        far = str(ipaddress.ip_address(FAR4 + (u << 8) + host))
    else:
        near = f"fd10::{1 + i % 1000:x}"
        far = str(ipaddress.ip_address(FAR6 + (u << 80) + host))
    src, dst = (near, far) if case.direction == "out" else (far, near)
    return u, udp(src, dst, 1024 + i % 1000, 5001, length)


def count(case):
    """Packets of a capture: every unit once, as far as that is reasonable; a multiple of 12."""
    return 4080 if units(case) <= 4080 else 10200


# -- files -----------------------------------------------------------------------------------------

def clear_capture(path, case):
    """@return packets in it"""
    frames = [esp.eth(LAN_MAC, HOST_MAC, inner(case, i)[1]) for i in range(count(case))]
    esp.pcap_write(path, frames)
    return len(frames)


def window_packets(case):
    """Inbound each packet can be had only once: what makes some 50 ms of a fast gateway."""
    fast = {64: 480000, "imix": 360000, 528: 360000, 1420: 200000}[case.size]
    return fast // {"gcm": 1, "cbc": 2, "chacha": 3}[cases.ALGORITHMS[case.algorithm].kind]


def esp_feed(path, case, n, tools):
    """n ESP packets, each once, sequence numbers ascending in every SA."""
    sas = [make_sa(case, k, "in") for k in range(case.sas)]
    with open(path + ".sas", "w") as f:
        for sa in sas:
            second = sa.auth_key if sa.auth else sa.salt
            head = esp.eth(WAN_MAC, PEER_MAC, esp.outer(sa, b""))
            if case.natt and case.family == 6:
                head = head[:-2] + b"\0\0"  # RFC 6936
            f.write(f"{sa.kind} {sa.key.hex()} {second.hex()} {sa.spi:x} {head.hex()}\n")
    with open(path + ".inner", "wb") as f:
        for i in range(count(case)):
            u, ip = inner(case, i)
            f.write(struct.pack("=HH", u if case.sas > 1 else 0, len(ip)) + ip)
    os.chmod(path + ".sas", 0o600)
    subprocess.run([tools.mkesp, path, str(n), path + ".inner", path + ".sas"], check=True)
    check_feed(path, case, sas)
    os.unlink(path + ".inner")
    return n


def check_feed(path, case, sas, packets=200):
    """Its first packets, opened by other code than that which made them."""
    seen = dict.fromkeys(range(len(sas)), 0)
    with open(path, "rb") as f:
        assert f.read(8) == b"sgwfeed1"
        f.read(8)
        for i in range(packets):
            n = struct.unpack("=I", f.read(4))[0]
            frame = f.read((4 + n + 15 & ~15) - 4)[:n]
            u, ip = inner(case, i)
            k = u if case.sas > 1 else 0
            seen[k] += 1
            check_esp(frame, sas[k], seen[k], ip)


def check_esp(frame, sa, seq=None, ip=None):
    """An Ethernet frame with ESP of an SA, and what must be in it. @return the inner packet"""
    parts = esp.split_outer(frame[14:])
    assert parts, "no ESP: " + frame[:60].hex()
    assert parts[2] == sa.natt and parts[4]["len"] == len(frame) - 14, "wrong outer headers"
    have = sa.open(parts[3])
    assert seq in (None, have[0]), f"sequence number {have[0]}, not {seq}"
    assert ip in (None, have[2]), "another inner packet"
    return have[2]
