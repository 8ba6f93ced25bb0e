#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the short way (lib/path/flow.h) decides as the full way does: the same random frames
once through sgw, once through sgw without the short way (fault `full-way`, test/golden/fault.c).
Counters of ports and SAs and all reasons must be equal, and so must be what comes out, after opening
it: flow by flow in its order. And the first run must really have used the short way. With one worker,
and with two that are steered. How many errors sgw sends is not limited in these runs.

Frames are of few flows, so that most repeat, each now and then spoilt: headers, lengths, fragments,
tags, padding, TTL; addresses of all kinds; ESP with replays and foreign sources.

  shortway.py [rounds [seed]]   a round is a configuration with frames of its own
"""
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import esp
import sgw
import world as w

FRAMES = 700
HOSTS4 = ("10.10.0.1", "10.10.5.5", "10.20.0.9", "10.20.1.1", "10.30.0.3", "10.40.0.4", "10.50.0.5", "10.10.0.254", w.LOCAL4,
          w.REMOTE4, "10.10.0.255", "127.0.0.1", "224.0.0.1", "0.0.0.0", "255.255.255.255", "172.16.0.1")
HOSTS6 = ("fd10::1", "fd10::5:5", "fd20::9", "fd20::1:1", "fd30::3", "fd40::4", "fd50::5", "fd10::254", w.LOCAL6, w.REMOTE6,
          "fe80::1", "fe80::ff:fe00:1", "ff02::1", "::1", "::", "fd60::1")
PLAIN = 7  # as many of them are sound, and nobody's here
PORTS = (7, 53, 500, 4500, 1000, 40000)
MACS = ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "33:33:00:00:00:01", "02:00:00:00:00:99")


def pairs(families, text):
    """Lines for both families: N is a network of the little world by its number."""
    out = []
    for f in families:
        def net(n):
            return f"10.{n}.0.0/16" if f == 4 else f'"fd{n}::/32"'
        out += [line.format(n10=net(10), n20=net(20), n30=net(30), n40=net(40), n50=net(50),
                            t_out='"%s-%s"' % w.ends(4), t_in='"%s-%s"' % w.ends(4)[::-1]) for line in text]
    return out


SPD = [
    "{{ dir: in, src: {n20}, dst: {n10}, action: protect, tunnel: {t_in} }}",
    "{{ dir: out, src: {n10}, dst: {n20}, action: protect, tunnel: {t_out} }}",
    "{{ dir: in, src: {n30}, dst: {n10}, action: bypass }}",
    "{{ dir: out, src: {n10}, dst: {n30}, action: bypass }}",
    "{{ dir: in, src: {n10}, dst: {n30}, action: bypass }}",
    "{{ dir: out, src: {n30}, dst: {n10}, action: bypass }}",
    "{{ dir: out, src: {n10}, dst: {n40}, action: discard }}",
    "{{ dir: in, src: {n40}, dst: {n10}, action: discard }}",
]
BY_PORT = [
    "{{ dir: out, src: {n10}, dst: {n20}, proto: udp, dport: 53, action: discard, priority: 1 }}",
    "{{ dir: in, src: {n20}, dst: {n10}, proto: udp, sport: 1000-2000, action: discard, priority: 1 }}",
    "{{ dir: in, src: {n50}, dst: {n10}, proto: tcp, dport: 7, action: bypass, priority: 1 }}",
    "{{ dir: out, src: {n50}, dst: {n10}, proto: tcp, action: bypass, priority: 1 }}",
    "{{ dir: in, src: {n10}, dst: {n50}, proto: udp, action: bypass, priority: 1 }}",
]
ROUTES = ["{ to: 10.30.0.0/16, via: %s }" % w.REMOTE4, '{ to: "fd30::/32", via: "%s" }' % w.REMOTE6,
          "{ to: 10.40.0.0/16, via: %s }" % w.REMOTE4, '{ to: "fd40::/32", discard: true }']


def tag(frame, vlan):
    return frame[:12] + b"\x81\x00" + struct.pack("!H", vlan) + frame[12:]


def make_flows(rng):
    """(source, destination, protocol, ports); most between plain addresses."""
    flows = []
    for _ in range(40):
        hosts = rng.choice((HOSTS4, HOSTS6))
        src, dst = (rng.choice(hosts[:PLAIN] if rng.random() < .85 else hosts) for _ in range(2))
        flows.append((src, dst, rng.choice((17, 17, 17, 6, 6, 6, 1, 47, 50, 132, 0)), rng.choice(PORTS), rng.choice(PORTS)))
    for _ in range(20):  # such as are likely to pass, there and back
        hosts = rng.choice((HOSTS4, HOSTS6))
        ends = [rng.choice(hosts[:2]), rng.choice(hosts[2:5])]
        rng.shuffle(ends)
        flows.append((*ends, rng.choice((17, 6)), rng.choice(PORTS), rng.choice(PORTS)))
    return flows


def packet(rng, flow, n):
    """The nth packet; each port has flows of its own, or their order would be that of the ports. To
    port 4500 the first word is an SPI, by which workers are chosen."""
    src, dst, proto, sport, dport = flow
    sport += 600 * (n & 1)
    v6 = ":" in src
    if proto == 1 and v6:
        proto = 58
    body = struct.pack("!HH", sport, dport)
    data = struct.pack("!II", 0x999, n) + bytes(rng.choice((0, 0, 3, 18, 100, 600, 1390)))
    if proto == 17:
        body += struct.pack("!HH", 8 + len(data), 0) + data
    elif proto == 6:
        body += bytes(8) + b"\x60" + bytes([rng.choice((2, 16, 0x12))]) + bytes(6) + b"\x02\x04\x05\xb4" + data
    elif proto in (1, 58):
        body = bytes([0 if proto == 1 else 129, 0, 0, 0, 0, 0, 0, 0]) + data
    else:
        body += bytes(4) + data
    return esp.ip_header(src, dst, proto, len(body), rng.choice((0, 0, 1, 3, 0xb8)), 64, n & 0xffff, rng.random() < .5) + body


def mend(ip):
    """IPv4 with a good sum again."""
    if ip[0] >> 4 != 4 or len(ip) < 20:
        return ip
    hl = max(20, (ip[0] & 15) * 4)
    ip = ip[:10] + b"\0\0" + ip[12:]
    return ip[:10] + esp.csum(ip[:hl]) + ip[12:]


def put(ip, at, new):
    return ip[:at] + new + ip[at + len(new):]


def spoil(rng, ip):
    """The packet with something odd about its header."""
    v6, kind = ip[0] >> 4 == 6, rng.randrange(13)
    length, ttl = (4, 7) if v6 else (2, 8)
    if kind == 0:
        return mend(put(ip, ttl, bytes([rng.choice((0, 1, 2, 255))])))
    if kind == 1:
        return put(ip, rng.randrange(len(ip[:40])), bytes([rng.randrange(256)]))
    if kind == 2:
        return mend(put(ip, rng.randrange(len(ip[:24])), bytes([rng.randrange(256)])))
    if kind == 3:
        return mend(put(ip, length, struct.pack("!H", rng.choice((0, 7, 8, 19, 20, 27, 28, 47, 48, len(ip) + 1, 65535)))))
    if kind == 4:
        return ip[:rng.randrange(len(ip))]
    if kind == 5:
        return ip + bytes(rng.choice((1, 6, 18)))
    if kind in (6, 7) and v6:
        ext = bytes([ip[6], 0]) + (b"\1\4\0\0\0\0" if kind == 6 else rng.choice((b"\0\0", b"\0\1", b"\0\x08")) + b"\0\0\0\7")
        ip = ip[:6] + (b"\x3c" if kind == 6 else b"\x2c") + ip[7:40] + ext + ip[40:]
        return put(ip, 4, struct.pack("!H", len(ip) - 40))
    if kind == 6:
        ip = bytes([0x46]) + ip[1:20] + b"\1\1\1\0" + ip[20:]
        return mend(put(ip, 2, struct.pack("!H", len(ip))))
    if kind == 7:
        return mend(put(ip, 6, rng.choice((b"\x20\0", b"\0\1", b"\x80\0", b"\x40\1", b"\x1f\xff"))))
    if kind == 8:  # the flow of other protocol
        return mend(put(ip, 6 if v6 else 9, bytes([rng.choice((6, 17, 1, 58, 0, 50, 59, 44, 136))])))
    if kind == 9:
        return put(ip, 0, bytes([rng.choice((0x45, 0x46, 0x44, 0x60, 0x65, 0x05, 0x4f))]))
    return ip


def frame_of(rng, port, ip, vlans, odd):
    dst = (w.MAC0, w.MAC1)[port]
    if rng.random() < .06:
        dst = rng.choice(MACS + ((w.MAC0, w.MAC1)[not port],))
    f = esp.eth(dst, (w.HOST, w.PEER)[port], ip or b"\0")
    if rng.random() < odd / 5:
        f = f[:12] + rng.choice((b"\x08\x00", b"\x86\xdd", b"\x88\xcc")) + f[14:]
    if vlans and odd:
        f = tag(f, (10, 20)[port] | rng.choice((0, 0xe000)))
    elif rng.random() < odd / 3:
        f = tag(f, rng.choice((0, 0, 0x2000, 10, 77)))
    if rng.random() < odd / 5:
        f = f[:rng.randrange(1, len(f))]
    return f.ljust(rng.choice((0, 60)), b"\0")


def traffic(rng, sa, vlans):
    """Frames for both ports; on p1 ESP too, with a few replays and damages."""
    flows, out, old, odd = make_flows(rng), ([], []), [], 0
    usual = [f for f in flows if f[2] in (6, 17, 1)]
    for n in range(2 * FRAMES):
        if n % 128 == 0:  # of a burst of each port, of which one odd packet takes all the full way
            odd = rng.choice((0, 0, 0, 0, .02, .15))
        port = n & 1
        ip = packet(rng, rng.choice(flows if odd else usual), n)
        if rng.random() < odd:
            ip = spoil(rng, ip)
        if port == 1 and rng.random() < .6:
            ip = esp.outer(sa, sa.seal(ip or b"\0", n + 1, next_header=41 if ip[:1] >= b"\x60" else 4), ident=n & 0xffff)
            if rng.random() < odd:
                ip = spoil(rng, ip)
            old.append(ip)
            if rng.random() < .05:
                ip = rng.choice(old)
        out[port].append(frame_of(rng, port, ip, vlans, odd))
    return out


def configuration(rng, kind, steering):
    """(what world.config() needs, inbound SA, outbound SA)"""
    family = rng.choice((4, 6)) if kind != "policies" else 4
    natt = kind == "natt"
    sa_in = w.in_sa(0x1001, *rng.choice((("aes-gcm-16", 16), ("aes-cbc", 16, "hmac-sha1-96"))), family=family, natt=natt)
    sa_out = w.out_sa(0x2001, "aes-gcm-16", 16, family=family, natt=natt)
    # ESP with odd headers is for any worker, and may be late there
    window = 64 if steering == "queues" else 4096
    kw = {"name": "shortway", "system": f"steering: {steering}",
          "sad": [sa_in.to_config(f"reqid: 1, replay-window: {window}"), sa_out.to_config("reqid: 1")],
          "routes": ROUTES[:rng.randrange(2, 5)]}
    local, remote = w.ends(family)
    if kind in ("tunnels", "natt", "vlans"):
        kw["tunnels"] = [f'ipsec0: {{ local: "{local}", remote: "{remote}", reqid: 1 }}']
        kw["routes"] = kw["routes"] + ["{ to: 10.20.0.0/16, tunnel: ipsec0 }", '{ to: "fd20::/32", tunnel: ipsec0 }']
        if rng.random() < .5:
            kw["spd"] = pairs((4, 6), SPD[2:] + BY_PORT[2:])
    else:
        kw["spd"] = pairs((4, 6), SPD + (BY_PORT if rng.random() < .5 else []))
    if kind == "vlans":
        kw["ports"] = [f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap", mac: "{w.MAC0}", '
                       'addresses: [10.60.1.254/24] }',
                       f'p1: {{ device: "net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap", mac: "{w.MAC1}" }}',
                       'v0: { parent: p0, vlan: 10, addresses: [10.10.0.254/24, "fd10::254/64"] }',
                       f'v1: {{ parent: p1, vlan: 20, addresses: [{w.LOCAL4}/24, "{w.LOCAL6}/64"] }}']
        kw["neighbours"] = [f'{{ port: v0, address: 10.10.0.1, mac: "{w.HOST}" }}',
                            f'{{ port: v0, address: "fd10::1", mac: "{w.HOST}" }}',
                            f'{{ port: v1, address: {w.REMOTE4}, mac: "{w.PEER}" }}',
                            f'{{ port: v1, address: "{w.REMOTE6}", mac: "{w.PEER}" }}']
    return kw, sa_in, sa_out


def without_choice(ip):
    """An IPv4 packet without what sgw chooses for its own errors: identification, and so the sum."""
    own = ip[0] >> 4 == 4 and ip[9] == 1 and ip[(ip[0] & 15) * 4] in (3, 11, 12)
    return ip[:4] + ip[6:10] + ip[12:] if own else ip


def asks(frame):
    """ARP and ND: who asks first for a neighbour is who is first, and how often depends on the time."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    kind, ip = frame[at - 2:at], frame[at:]
    return kind == b"\x08\x06" or (kind == b"\x86\xdd" and ip[6] == 58 and ip[40] in (135, 136))


def canonical(frames, sa_out):
    """{flow: packets in order}, without ARP and ND."""
    flows = {}
    for f in frames:
        at = 18 if f[12:14] == b"\x81\x00" else 14
        head, ip, spi = f[:at], f[at:], None
        o = esp.split_outer(ip)
        if o and o[3][:4] == struct.pack("!I", sa_out.spi) and len(o[3]) > 40:
            info = {k: v for k, v in o[4].items() if k in ("tos", "ttl", "df", "len")}
            head, spi, ip = head + repr(sorted(info.items())).encode(), sa_out.spi, sa_out.open(o[3])[2]
        v4 = ip[0] >> 4 == 4
        key, proto, l4 = (ip[12:20], ip[9], (ip[0] & 15) * 4) if v4 else (ip[8:40], ip[6], 40)
        if asks(f):
            continue
        # errors of sgw's are of as many flows as they quote
        cut = ip[6] & 0x3f or ip[7] if v4 else proto == 44
        more = ip if cut else ip[l4 + 8:] if proto in (1, 58) else ip[l4:l4 + 4]
        flows.setdefault((spi, key, proto, more), []).append(head + without_choice(ip))
    return flows


WAITING = ("stopping", "neigh_queue_full")  # which of those who wait for a neighbour found room


def counters(account, frames):
    """What must be equal, without what asks for neighbours."""
    drops = {name: {k: v for k, v in d.items() if k not in WAITING} for name, d in account.port_drops.items()}
    waited = sum(d.get(k, 0) for d in account.port_drops.values() for k in WAITING)
    asked = sum(asks(f) for port in frames for f in port)
    total = {k: sum(p[k] for p in account.ports.values()) - asked for k in ("originated", "sent_on", "transmitted")}
    ports = {name: {k: p[k] for k in ("received", "received_bytes")} for name, p in account.ports.items()}
    return {"ports": ports, "all ports": total, "reasons": drops, "waited": waited, "SAs": account.sas,
            "reasons of SAs": account.sa_drops}


def both_ways(folder, yaml, frames, sa_out, workers):
    """@return (faults, what the first run says of its short way)"""
    w.write(folder, yaml, *frames)
    faults, seen, said = [], [], ""
    for way in ("short-way", "full-way"):
        for port in ("p0", "p1"):
            path = os.path.join(folder, f"got.{port}.pcap")
            if os.path.exists(path):
                os.unlink(path)
        r = sgw.replay(folder, fault=way, workers=workers)
        faults += [f"{way}: {x}" for x in w.run_faults(r)]
        said = next((line for line in r.err.splitlines() if line.startswith("short way:")), said)
        frames_out = [w.got(folder, port) for port in ("p0", "p1")]
        seen.append((counters(r.account, frames_out), [canonical(f, sa_out) for f in frames_out]))
    (c1, out1), (c2, out2) = seen
    faults += [f"{k}: {c1[k]} by the short way, {c2[k]} by the full way" for k in c1 if c1[k] != c2[k]]
    for port, (a, b) in enumerate(zip(out1, out2)):
        for flow in a.keys() | b.keys():
            faults += [f"p{port}, flow {flow}: {x}" for x in w.difference(b.get(flow, []), a.get(flow, []))][:3]
    return faults, said


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    report = sgw.Report()
    kinds, steerings = ("policies", "tunnels", "natt", "vlans"), ("queues", "flows", "bursts")
    total = [0, 0, 0]
    for n in range(seed, seed + rounds):
        rng, kind, steering = random.Random(n), kinds[n % len(kinds)], steerings[n % len(steerings)]
        kw, sa_in, sa_out = configuration(rng, kind, steering)
        frames = traffic(rng, sa_in, kind == "vlans")
        # Two workers race for neighbours and tokens: what differs by that does so once, a
        # wrong way always.
        for attempt in range(3):
            with tempfile.TemporaryDirectory(prefix="sgw-shortway-") as folder:
                faults, said = both_ways(folder, w.config(**kw), frames, sa_out, 1 if steering == "queues" else 2)
            if not faults or steering == "queues":
                break
            print(f"seed {n}, try {attempt + 1}:", *faults[:4], sep="\n  ", flush=True)
        used = [int(x) for x in said.replace(",", "").split() if x.isdigit()]
        total = [t + u for t, u in zip(total, used)] if len(used) == 3 else [0, 0, 0]
        report.check(f"seed {n}: {kind}, {steering}, {said}", faults)
    # how much one run uses it depends on where its bursts end
    report.check(f"the short way was used: {total} in clear, ESP, from inside",
                 [] if min(total) >= 10 * rounds else ["hardly"])
    report.end()


if __name__ == "__main__":
    main()
