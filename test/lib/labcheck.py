#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/lab checks that is awkward in a shell. Exit status 0: holds.
A line that starts with "= " is the note that scripts/lab prints beside the check."""
import collections
import errno
import json
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import esp
import sgw

GATEWAY_NETS = ("198.18.0.209", "198.19.0.203", "198.18.1.209", "198.18.1.203", "198.18.2.209",
                "198.18.2.203", "2001:2::209", "2001:2:0:8000::203", "2001:2:0:1::209",
                "2001:2:0:1::203", "2001:2:0:2::209", "2001:2:0:2::203")
GATEWAYS = {esp.a2b(a) for a in GATEWAY_NETS}


def fail(*lines):
    for line in lines:
        print(line)
    sys.exit(1)


def note(text):
    print("= " + text)


def load_sas(yaml_path):
    return {s.spi: s for s in esp.load_sas(yaml_path)}


def ip_of(frame):
    return frame[14:] if frame[12:14] in (b"\x08\x00", b"\x86\xdd") else None


def trim(ip):
    """Without Ethernet's padding."""
    n = int.from_bytes(ip[2:4], "big") if ip[0] >> 4 == 4 else 40 + int.from_bytes(ip[4:6], "big")
    return ip[:n]


def src_of(ip):
    return ip[12:16] if ip[0] >> 4 == 4 else ip[8:24]


def ttl_of(ip):
    return ip[8] if ip[0] >> 4 == 4 else ip[7]


def esp_packets(path):
    """(outer IP bytes, ESP bytes, header fields) of a capture's ESP packets."""
    for frame in esp.pcap_read(path):
        ip = ip_of(frame)
        if ip is None:
            continue
        parts = esp.split_outer(ip)
        if parts:
            yield trim(ip), parts[3], parts


# -- commands -----------------------------------------------------------------


def cmd_iperf(path, max_loss):
    with open(path) as f:
        end = json.load(f)["end"]
    if "sum_received" in end and max_loss == "-":
        rate, retr = end["sum_received"]["bits_per_second"], end["sum_sent"].get("retransmits", 0)
        if rate < 1e6:
            fail(f"only {rate / 1e6:.2f} Mb/s arrived")
        note(f"{rate / 1e6:.0f} Mb/s, {retr} retransmits")
        return
    s = end["sum"]
    loss = 100 * s["lost_packets"] / max(s["packets"], 1)
    if s["packets"] < 10 or loss > float(max_loss):
        fail(f"{s['lost_packets']} of {s['packets']} lost, {max_loss} % allowed")
    note(f"{s['bits_per_second'] / 1e6:.0f} Mb/s, {s['lost_packets']} of {s['packets']} lost")


def cmd_sums(*names):
    """At rest: received + originated = sent on + all reasons."""
    for attempt in range(10):
        bad, ports = [], 0
        for name in names:
            for port in sgw.telemetry(name, "/sgw/port/list"):
                p = sgw.telemetry(name, f"/sgw/port/info,{port}")
                ended = sum(p["drops"].values()) + sum(p.get("taken", {}).values())
                ports += 1
                if p["rx_packets"] + p["originated"] != p["sent_on"] + ended:
                    bad.append(f"{name} {port}: {p}")
        if not bad:
            note(f"{ports} ports")
            return
        time.sleep(0.3)
    fail(*bad)


def sa_infos(name):
    return {i["spi"]: i for i in (sgw.telemetry(name, f"/sgw/sa/info,{sa}")
                                  for sa in sgw.telemetry(name, "/sgw/sa/list"))}


def cmd_sas(dut, r3):
    for attempt in range(10):
        left, right, bad, total = sa_infos(dut), sa_infos(r3), [], 0
        for spi in left.keys() & right.keys():
            if left[spi]["packets"] != right[spi]["packets"]:
                bad.append(f"SPI {spi}: {dut} {left[spi]}, {r3} {right[spi]}")
            total += left[spi]["packets"]
        if not left.keys() & right.keys():
            bad.append(f"no SPI in common: {list(left)}, {list(right)}")
        if not bad:
            if not total:
                fail("no SA has carried a packet")
            note(f"{total} packets on {len(left.keys() & right.keys())} SAs")
            return
        time.sleep(0.3)
    fail(*bad)


def cmd_clean(*names):
    bad = []
    for name in names:
        drops = sgw.telemetry(name, "/sgw/drop/list")
        for reason, n in drops.items():
            if n and (reason.startswith(("esp_", "sa_", "policy_", "route_")) or
                      reason in ("loop", "no_headroom", "neigh_failed")):
                bad.append(f"{name}: {n} × {reason}")
    if bad:
        fail(*bad)


def cmd_show(*names):
    for name in names:
        print(f"  {name}")
        for port in sgw.telemetry(name, "/sgw/port/list"):
            p = sgw.telemetry(name, f"/sgw/port/info,{port}")
            print(f"    port {port}: received {p['rx_packets']} ({p['rx_bytes']} bytes), sent on "
                  f"{p['sent_on']}, transmitted {p['tx_packets']} ({p['tx_bytes']} bytes)")
            for kind in ("drops", "taken"):
                for reason, n in p.get(kind, {}).items():
                    print(f"      {'drop ' if kind == 'drops' else 'taken'} {reason}: {n}")
        for sa in sgw.telemetry(name, "/sgw/sa/list"):
            i = sgw.telemetry(name, f"/sgw/sa/info,{sa}")
            print(f"    sa {sa} {i.get('direction')}: {i['packets']} packets, {i['bytes']} bytes"
                  + "".join(f", {r} {n}" for r, n in i.get("drops", {}).items() if n))


def cmd_ivs(yaml_path, *paths):
    """Of all SAs with one key, no IV occurs twice; nor does a sequence number of an SA."""
    sas, ivs, seqs, n = load_sas(yaml_path), set(), set(), 0
    for path in paths:
        for _, e, _ in esp_packets(path):
            sa = sas[int.from_bytes(e[:4], "big")]
            n += 1
            if sa.kind in ("gcm", "chacha", "ctr"):
                nonce = (sa.raw_key, e[8:8 + sa.iv_len])
                if nonce in ivs:
                    fail(f"SPI {sa.spi}: IV {e[8:16].hex()} came twice, sequence "
                         f"{int.from_bytes(e[4:8], 'big')}")
                ivs.add(nonce)
            if e[:8] in seqs:
                fail(f"SPI {sa.spi}: sequence number {int.from_bytes(e[4:8], 'big')} came twice")
            seqs.add(e[:8])
    if n < 50 or not ivs:
        fail(f"only {n} ESP packets in the captures, {len(ivs)} of them with a nonce")
    note(f"{len(ivs)} IVs")


def cmd_scapy(yaml_path, *paths):
    import decoders
    sas, n = load_sas(yaml_path), 0
    for path in paths:
        for ip, e, _ in esp_packets(path):
            sa = sas[int.from_bytes(e[:4], "big")]
            if decoders.scapy_open(sa, ip) != sa.open(e)[2]:
                fail(f"SPI {sa.spi}, sequence {int.from_bytes(e[4:8], 'big')}: not what the "
                     "codec of test/lib/esp.py finds")
            n += 1
    if n < 50:
        fail(f"only {n} ESP packets in the captures")
    note(f"{n} packets")


def cmd_tshark(yaml_path, *paths):
    import decoders
    sas, n, families = load_sas(yaml_path), 0, collections.Counter()
    for path in paths:
        for spi, v4, v6, good, frame in decoders.tshark(
                path, list(sas.values()), ["esp.spi", "ip.version", "ipv6.version", "esp.icv_good",
                                           "frame.number"], "esp"):
            inside = [f for f, v in (("IPv4", v4), ("IPv6", v6)) for _ in v.split(",") if v]
            if good != "1" or len(inside) < 2:
                fail(f"{path} frame {frame}: SPI {spi}, ICV good: {good!r}, layers {inside}")
            families[(v6 or v4) and ("IPv6" if v6 else "IPv4")] += 1
            n += 1
    if n < 50 or len(families) < 2:
        fail(f"only {n} ESP packets in the captures, {dict(families)}")
    note(f"{n} packets, {families['IPv4']} of them IPv4, {families['IPv6']} IPv6")


def cmd_inner(yaml_path, r1a, r1b, link_r3, link_dut):
    """Every inner packet is one that R1 sent, one hop further, or an ICMP message or echo reply
    of a gateway; and every packet that R1 got through the tunnel was inside one."""
    sas, total = load_sas(yaml_path), 0
    for link, sender, receiver in ((link_r3, r1a, r1b), (link_dut, r1b, r1a)):
        sent = collections.Counter(esp.hop(trim(ip)) for ip in map(ip_of, esp.pcap_read(sender))
                                   if ip and ttl_of(ip))
        got = collections.Counter(trim(ip) for ip in map(ip_of, esp.pcap_read(receiver)) if ip)
        inside = collections.Counter()
        for _, e, (_, _, _, _, info) in esp_packets(link):
            sa = sas[int.from_bytes(e[:4], "big")]
            _, _, inner, next_header = sa.open(e)
            if next_header != (esp.IPV6 if inner[0] >> 4 == 6 else esp.IPV4):
                fail(f"SPI {sa.spi}: next header {next_header}, inner packet {inner.hex()}")
            if info["ttl"] not in (63, 64):
                fail(f"SPI {sa.spi}: outer TTL {info['ttl']}")
            inside[inner] += 1
        own = 0
        for inner, n in inside.items():
            if sent[inner] >= n:
                continue
            if src_of(inner) in GATEWAYS:
                own += n
                continue
            fail(f"{link}: {n} × an inner packet that {sender} has {sent[inner]} ×:", inner.hex())
        total += sum(inside.values())
        forwarded = collections.Counter({p: n for p, n in sent.items() if p in inside})
        lost = [p for p, n in forwarded.items() if inside[p] != n]
        if lost:
            fail(f"{link}: {len(lost)} packets of {sender} are inside fewer times than sent",
                 lost[0].hex())
        through = sum(n for p, n in inside.items() if got[esp.hop(p)] >= n)
        if through < 20:
            fail(f"{link}: only {through} of {sum(inside.values())} inner packets reached "
                 f"{receiver} one hop further")
    note(f"{total} packets")


def cmd_foreign(*paths):
    for path in paths:
        frames = esp.pcap_read(path)
        if not os.path.exists(path):
            fail(f"{path} is not there")
        if frames:
            fail(f"{path}: {len(frames)} frames that do not belong there, the first:",
                 frames[0].hex())


def echo_socket(v6):
    family, proto = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    s = socket.socket(family, socket.SOCK_RAW, proto)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    # 3: IP_PMTUDISC_PROBE: DF always, and whatever the kernel has learned of the path is not asked
    if v6:
        s.setsockopt(socket.IPPROTO_IPV6, 23, 3)
        s.setsockopt(socket.IPPROTO_IPV6, 62, 1)  # IPV6_DONTFRAG
    else:
        s.setsockopt(socket.IPPROTO_IP, 10, 3)
    return s


def sweep_once(s, to, v6, ident, sizes, passed, told):
    """An echo request of each size; what is answered goes into passed, MTUs of errors into told."""
    refused = set()

    def listen(seconds):
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            if not select.select([s], [], [], left)[0]:
                return
            data, peer = s.recvfrom(65535)
            if not v6:
                data = data[(data[0] & 15) * 4:]
            if len(data) < 8:
                continue
            kind, code, _, a, b = struct.unpack("!BBHHH", data[:8])
            if kind == (129 if v6 else 0) and a == ident and peer[0] == to and \
                    len(data) + (40 if v6 else 20) == b and data[8:] == esp.test_key(f"{b}", 1) * (len(data) - 8):
                passed.add(b)
            elif (kind, code) == ((2, 0) if v6 else (3, 4)):
                told.add(struct.unpack("!I", data[4:8])[0] if v6 else b)
    for size in sizes:
        n = size - (48 if v6 else 28)
        body = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, ident, size) + esp.test_key(f"{size}", 1) * n
        if not v6:
            body = body[:2] + esp.csum(body) + body[4:]
        try:
            s.sendto(body, (to, 0))
        except OSError as e:
            if e.errno != errno.EMSGSIZE:
                raise
            refused.add(size)
        listen(0.001)
    listen(0.7)
    return refused


def cmd_sweep(to, first, last, mtu):
    """Echo requests with DF of every size: all up to the MTU pass, none above, and who is told an
    MTU is told this one. Sizes above that of the own link the kernel itself refuses."""
    v6, first, last, mtu = ":" in to, int(first), int(last), int(mtu)
    passed, told, refused = set(), set(), set()
    with echo_socket(v6) as s:
        for attempt in range(3):
            left = [n for n in range(first, last + 1) if n not in passed and (attempt == 0 or n <= mtu)]
            if left:
                refused |= sweep_once(s, to, v6, os.getpid() & 0xffff, left, passed, told)
    want = set(range(first, mtu + 1))
    if passed != want or told != {mtu} or refused != set(range(1501, last + 1)):
        fail(f"not passed: {sorted(want - passed)}", f"passed: {sorted(passed - want)}", f"told MTUs: {sorted(told)}",
             f"refused by the kernel: {sorted(refused)}")
    note(f"{first} to {mtu} pass, {mtu + 1} to 1500 are told {mtu}")


def cmd_echo():
    """Sends UDP datagrams back to where they came from, until it is stopped."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind(("::", 3000))
        while True:
            s.sendto(*s.recvfrom(65535))


def cmd_datagrams(to, length, count):
    """Datagrams there and back, whole."""
    length, count, lost = int(length), int(count), []
    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        for n in range(count + 1):
            data = esp.test_key(f"{to} {n}", length)
            try:
                s.sendto(data, (to, 3000))
                if s.recv(65535) != data:
                    fail(f"datagram {n} came back changed")
            except TimeoutError:
                lost.append(n)
    # the first may be what the path's MTU is learned by
    if set(lost) - {0}:
        fail(f"lost: {lost} of {count + 1}")
    note(f"{count} of {length} bytes there and back")


def cmd_count(reason, *names):
    print(sum(sgw.telemetry(name, "/sgw/drop/list").get(reason, 0) for name in names))


def main():
    if len(sys.argv) < 2 or "cmd_" + sys.argv[1] not in globals():
        fail("usage: labcheck.py " + "|".join(k[4:] for k in globals() if k.startswith("cmd_")))
    try:
        globals()["cmd_" + sys.argv[1]](*sys.argv[2:])
    except esp.Refused as e:
        fail(f"a packet does not open: {e}")
    except OSError as e:
        fail(f"{e}")


main()
