#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that damage passes nothing: a good ESP packet cut at every byte and with every byte
flipped, for several algorithms and outer headers. Every packet is counted under a reason, no
buffer is lost, nothing crashes (scripts/test runs this under ASan and UBSan too), and the good
packet, sent last, still opens: its number was never marked as seen. In both forms of ESP, look-aside
with one inner family."""
import os
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import sgw
import world

INNER = (esp.udp("10.20.0.7", "10.10.0.1", 40001, 40002, b"a payload of some bytes"),
         esp.udp("fd20::7", "fd10::1", 40001, 40002, b"a payload of some bytes"))
KINDS = [("aes-gcm-16", 16, None, {}), ("aes-gcm-8", 32, None, {"esn": True}),
         ("chacha20-poly1305", 32, None, {}), ("aes-cbc", 16, "hmac-sha1-96", {}),
         ("aes-cbc", 32, "hmac-sha256-128", {"esn": True}), ("aes-ctr", 16, "hmac-sha384-192", {}),
         ("null", 0, "hmac-sha512-256", {}), ("aes-gcm-16", 16, None, {"natt": True}),
         ("aes-cbc", 16, "hmac-sha1-96", {"natt": True})]
# what a damaged ESP packet may be called
ALLOWED = {"esp_runt", "esp_auth", "esp_no_sa", "esp_late", "esp_replay", "ip_truncated",
           "ip_checksum", "ip_version", "ip_header", "ike_ignored", "eth_runt", "esp_sa_encap",
           "esp_sa_source", "ip_fragment"}


def relength(ip, n):
    """The first n bytes of a packet, its IP and UDP lengths made to fit."""
    cut = ip[:n]
    if ip[0] >> 4 == 6:
        cut = cut[:4] + struct.pack("!H", n - 40) + cut[6:]
        at, udp = 40, ip[6] == 17
    else:
        h = cut[:2] + struct.pack("!H", n) + cut[4:10] + b"\0\0" + cut[12:20]
        cut = h[:10] + esp.csum(h) + h[12:] + cut[20:]
        at, udp = 20, ip[9] == 17
    if udp and n >= at + 8:
        cut = cut[:at + 4] + struct.pack("!H", n - at) + cut[at + 6:]
        if at == 40:  # over IPv6 the sum must be right
            cut = cut[:46] + b"\0\0" + cut[48:]
            s = esp.csum(cut[8:40] + struct.pack("!II", n - 40, 17) + cut[40:])
            cut = cut[:46] + (s if s != b"\0\0" else b"\xff\xff") + cut[48:]
    return cut


def damaged(sa, inner):
    ip = esp.outer(sa, sa.seal(inner, 3))
    head = 20 if sa.src.version == 4 else 40
    for n in range(len(ip)):
        yield ip[:n]  # the frame is cut, the lengths are not
    for n in range(head, len(ip)):
        yield relength(ip, n)
    body = head + (8 if sa.natt else 0)
    for bits in (0x01, 0x80, 0xff):
        for i in range(body, len(ip)):
            yield ip[:i] + bytes([ip[i] ^ bits]) + ip[i + 1:]
        if head == 20:  # the header of IPv6 has no sum: its class and hop limit may change
            for i in range(20):
                yield ip[:i] + bytes([ip[i] ^ bits]) + ip[i + 1:]
    yield relength(ip + b"\0", len(ip) + 1)
    yield relength(ip + bytes(16), len(ip) + 16)


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-hostile-") as folder:
        for form in world.every_form(report):
            for family in (4, 6):
                for inner in INNER if form == "direct" else INNER[:1]:
                    for cipher, key_len, auth, opts in KINDS:
                        sa = world.in_sa(0x1001, cipher, key_len, auth, family=family, **opts)
                        head = world.from_peer(esp.outer(sa, b""))[:14]
                        bad = [head + ip for ip in damaged(sa, inner)]
                        good = world.from_peer(esp.outer(sa, sa.seal(inner, 3)))
                        src, dst = ("10.20.0.0/16", "10.10.0.0/16") if inner[0] >> 4 == 4 else \
                            ("fd20::/32", "fd10::/32")
                        yaml = world.config("hostile", sad=[sa.to_config("replay-window: 64")],
                                            spd=[world.policy_in(src, dst, family)])
                        r, p0, p1 = world.run(folder, yaml, p1=[*bad, good])
                        faults = world.run_faults(r)
                        if p0 != [world.to_host(esp.hop(inner))] or p1:
                            faults.append(f"{len(p0)} frames out of p0, {len(p1)} out of p1; just the "
                                          "good one was to pass")
                        drops = r.account.port_drops.get("p1", {})
                        if sum(drops.values()) != len(bad):
                            faults.append(f"reasons {drops} do not sum up to {len(bad)}")
                        if drops.keys() - ALLOWED:
                            faults.append(f"unexpected reasons: {drops}")
                        report.check(f"{len(bad)} × damaged {world.label(cipher, key_len, auth)} {opts or ''} outer "
                                     f"IPv{family}, inner IPv{inner[0] >> 4}", faults)
    report.end()


main()
