#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that fragments of any kind do no harm: random storms of overlapping, flooding,
never-completed, doubled, endless and 8-byte fragments of ESP, of ESP in UDP and of clear text, over
IPv4 and IPv6, in between good traffic, whole and in fragments, both ways. Every good packet comes
out, nothing else does, every frame is counted once, no buffer is missing at the end, and the pool
never ran dry.    fragstorm.py [SECONDS [SEED]]    (scripts/test: 15 s under ASan)"""
import collections
import os
import random
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import sgw
import world

N_GOOD, N_HOSTILE = 400, 4000      # packets, frames a storm and port
H4, H6, R4, R6 = "10.10.0.1", "fd10::1", "10.20.0.7", "fd20::7"
BAD4, BAD6 = "10.20.66.6", "fd20::66"  # who the hostile clear text goes to
IN4, IN6 = world.in_sa(0x1001, "aes-gcm-16"), world.in_sa(0x1002, "aes-gcm-16", family=6)
NATT4 = world.in_sa(0x1003, "aes-cbc", None, "hmac-sha1-96", natt=True)
OUT4 = world.out_sa(0x2001, "aes-gcm-16")
# one policy with ports makes all fragments between these networks wait for each other
SPD = [world.policy_in("10.20.0.0/16", "10.10.0.0/16"), world.policy_in("fd20::/32", "fd10::/32", 6),
       "{ dir: out, src: 10.10.0.0/16, dst: 10.20.0.0/16, proto: udp, dport: 9, action: discard, priority: 10 }",
       '{ dir: out, src: "fd10::/32", dst: "fd20::/32", proto: udp, dport: 9, action: discard, priority: 10 }',
       world.policy_out("10.10.0.0/16", "10.20.0.0/16"), world.policy_out("fd10::/32", "fd20::/32")]


def fragment(src, dst, proto, ident, off, more, data):
    """One fragment; off in units of 8 bytes."""
    if ":" in src:
        return esp.ip_header(src, dst, 44, 8 + len(data)) + struct.pack("!BBHI", proto, 0, off << 3 | more, ident) + data
    h = esp.ip_header(src, dst, proto, len(data), ident=ident & 0xffff)
    h = h[:6] + struct.pack("!H", more << 13 | off) + h[8:10] + b"\0\0" + h[12:]
    return h[:10] + esp.csum(h) + h[12:] + data


def hostile(rnd, n, clear):
    """About n frames' worth of IP: packets that are cut badly. Their identifications are above 0x7fff,
    so none of them is about a good packet."""
    out = []
    while len(out) < n:
        v6 = rnd.random() < 0.5
        if clear:
            src, dst, proto = (H6, BAD6, 17) if v6 else (H4, BAD4, 17)
            head = struct.pack("!HHHH", 1, 2, 1000, 0)
        else:
            sa = IN6 if v6 else rnd.choice((IN4, NATT4))
            src, dst, proto = str(sa.src), str(sa.dst), 17 if sa.natt else 50
            head = struct.pack("!HHHH", 4500, 4500, 1000, 0) if sa.natt else b""
            head += struct.pack("!II", rnd.choice((sa.spi, 0x7777)), rnd.randrange(1 << 32))
        data = head + rnd.randbytes(rnd.choice((8, 64, 200, 600, 1400, 4000)))
        ident = 0x8000 | rnd.randrange(0x8000)
        size = rnd.choice((8, 8, 16, 104, 504, 1400))
        cuts = [(at, data[at:at + size]) for at in range(0, len(data), size)][:rnd.choice((3, 20, 200))]
        frames = [(at // 8, int(at + size < len(data)), d) for at, d in cuts]
        kind = rnd.randrange(9)
        if kind == 0:      # never complete
            frames = frames[:-1] or [(0, 1, data[:8])]
        elif kind == 1:    # no beginning
            frames = frames[1:] or [(5, 0, data[:8])]
        elif kind == 2:    # overlap by eight bytes, or with everything before
            at = rnd.randrange(len(frames))
            off, more, d = frames[at]
            frames[at] = (max(off - rnd.choice((1, 1, off)), 0), more, d + b"overlaps")
        elif kind == 3:    # everything twice, the second time changed or not
            frames += [(off, more, d if rnd.random() < 0.5 else rnd.randbytes(len(d))) for off, more, d in frames]
        elif kind == 4:    # several ends
            frames = [(off, int(rnd.random() < 0.5), d) for off, _, d in frames]
        elif kind == 5:    # beyond 65535, nothing inside, odd lengths
            frames += [(0x1fff, rnd.randrange(2), rnd.randbytes(rnd.choice((0, 1, 8, 100)))), (rnd.randrange(0x1fff), 1, b""),
                       (3, 1, rnd.randbytes(rnd.choice((1, 7, 13))))]
        elif kind == 6:    # a flood of firsts
            out += [fragment(src, dst, proto, 0x8000 | ident + k, 0, 1, data[:64]) for k in range(rnd.choice((10, 300)))]
            continue
        elif kind == 7:    # anything anywhere
            frames = [(rnd.randrange(0x2000), rnd.randrange(2), rnd.randbytes(8 * rnd.randrange(1, 20)))
                      for _ in range(rnd.randrange(1, 60))]
        if rnd.random() < 0.6:
            rnd.shuffle(frames)
        out += [fragment(src, dst, proto, ident, off, more, d) for off, more, d in frames]
    return out[:n]


def good(rnd, k, src, dst):
    n = rnd.choice((20, 200, 800, 1300))
    return esp.udp(src, dst, 40001, 40002, k.to_bytes(4, "big") + rnd.randbytes(n), ident=k & 0x7fff)


def pieces(rnd, ip, ident):
    """A good packet whole, or cut where it may be, in some order. Its fragments stay together: what
    waits longest on a port makes room for others (REASS_CONTEXTS)."""
    payload = len(ip) - (40 if ip[0] >> 4 == 6 else 20)
    bounds = sorted({8 * rnd.randrange(1, payload // 8) for _ in range(rnd.choice((0, 0, 1, 3)))})
    if not bounds:
        return [ip]
    out = esp.cut(ip if ip[0] >> 4 == 6 else ip[:4] + struct.pack("!H", ident) + ip[6:10] + b"\0\0" + ip[12:], bounds, ident)
    rnd.shuffle(out)
    return out


def merge(rnd, groups, frames):
    """The groups in their order, at random places between the frames."""
    places, out = sorted(rnd.randrange(len(frames) + 1) for _ in groups), []
    for k, frame in enumerate([*frames, None]):
        while places and places[0] == k:
            places.pop(0)
            out += groups.pop(0)
        if frame is not None:
            out.append(frame)
    return out


def joined(packets):
    """What sgw sealed whole and cut after that comes in order."""
    waiting = {}
    for ip in packets:
        field = struct.unpack("!H", ip[6:8])[0]
        if field & 0x3fff:
            waiting[ip[4:6]] = waiting.get(ip[4:6], b"") + ip[20:]
            if field & 0x2000:
                continue
            data = waiting.pop(ip[4:6])
            ip = esp.ip_header(OUT4.src, OUT4.dst, ip[9], len(data)) + data
        yield ip


def storm(folder, rnd, idle):
    sas, seq = (IN4, IN6, NATT4), collections.Counter()
    to_open, want0, to_seal, want1 = [], [], [], []
    for k in range(N_GOOD):
        inner = good(rnd, k, *rnd.choice(((R4, H4), (R6, H6))))
        sa = rnd.choice((IN4, NATT4)) if inner[0] >> 4 == 4 else IN6
        seq[sa.spi] += 1
        to_open.append(pieces(rnd, esp.outer(sa, sa.seal(inner, seq[sa.spi]), ident=k), k))
        want0.append(esp.hop(inner))
        inner = good(rnd, k, *rnd.choice(((H4, R4), (H6, R6))))
        to_seal.append(pieces(rnd, inner, k))
        want1.append(inner[-200:] if len(inner) > 300 else inner[-20:])
    yaml = world.config("fragstorm", sad=[x.to_config("replay-window: 1024") for x in sas] + [OUT4.to_config()], spd=SPD)
    r, p0, p1 = world.run(folder, yaml, idle=idle,
                          p0=[world.from_host(x) for x in merge(rnd, to_seal, hostile(rnd, N_HOSTILE, True))],
                          p1=[world.from_peer(x) for x in merge(rnd, to_open, hostile(rnd, N_HOSTILE, False))])
    bad = world.run_faults(r)
    came0 = [f[14:] for f in p0 if (f[14 + 9] if f[14] >> 4 == 4 else f[14 + 6]) not in (1, 58)]
    if collections.Counter(came0) != collections.Counter(want0):
        missing = collections.Counter(want0) - collections.Counter(came0)
        bad.append(f"out of p0 came {len(came0)} packets, {len(want0)} expected, {missing.total()} are missing")
    inner, seqs = [], []
    for ip in joined(f[14:] for f in p1 if f[14 + 9] != 1):
        parts = esp.split_outer(ip)
        number, _, packet, _ = OUT4.open(parts[3])
        seqs.append(number)
        if packet[0] >> 4 == 6 and packet[24:40] == esp.a2b(R6) or packet[0] >> 4 == 4 and packet[16:20] == esp.a2b(R4):
            inner.append(packet)
    tails = collections.Counter(p[-200:] if len(p) > 300 else p[-20:] for p in inner)
    missing = collections.Counter(want1) - tails
    if missing:
        bad.append(f"out of p1 {missing.total()} of {len(want1)} good packets are missing")
    if seqs != list(range(1, len(seqs) + 1)):
        bad.append("sequence numbers with holes")
    reasons = collections.Counter()
    for port in r.account.port_drops.values():
        reasons.update(port)
    if reasons["no_buffer"]:
        bad.append(f"the pool ran dry: no_buffer {reasons['no_buffer']}")
    for needed in ("frag_overlap", "frag_taken"):
        if not reasons[needed]:
            bad.append(f"this storm has no {needed}: {dict(reasons)}")
    return bad, reasons, len(p0) + len(p1)


def flooded(folder, rnd):
    """One port is flooded with beginnings, far more than there is room for; what waits on the other
    port is not pushed out by them."""
    inner = [esp.udp(R4, H4, 40001, 40002, k.to_bytes(4, "big") * 100, ident=k) for k in range(50)]
    cut = [esp.cut(esp.outer(IN4, IN4.seal(ip, k + 1), ident=k), [80], k) for k, ip in enumerate(inner)]
    junk = [fragment(str(IN4.src), str(IN4.dst), 50, 0, 0, 0, rnd.randbytes(100)) for _ in range(1000)]
    flood = [fragment(H4, BAD4, 17, k, 0, 1, rnd.randbytes(64)) for k in range(3000)]
    yaml = world.config("fragstorm", sad=[x.to_config() for x in (IN4, OUT4)], spd=SPD[2:5] + SPD[:1])
    r, p0, _ = world.run(folder, yaml, idle=300, p0=[world.from_host(x) for x in flood],
                         p1=[world.from_peer(x) for x in [a for a, _ in cut] + junk + [b for _, b in cut]])
    bad = world.run_faults(r)
    n = sum(f[14:] in {esp.hop(ip) for ip in inner} for f in p0)
    if n != len(inner):
        bad.append(f"{n} of {len(inner)} packets came whole")
    return bad


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 15
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    report, total, end, n = sgw.Report(), collections.Counter(), time.time() + seconds, 0
    with tempfile.TemporaryDirectory(prefix="sgw-fragstorm-") as folder:
        report.check("a flood on one port takes no room from the other", flooded(folder, random.Random(seed)))
        while n == 0 or time.time() < end:
            n += 1
            # every fifth waits until what is never complete has ended by itself
            bad, reasons, _ = storm(folder, random.Random(seed), 6500 if n % 5 == 1 else 300)
            if n % 5 == 1 and not reasons["frag_timeout"]:
                bad.append(f"this storm has no frag_timeout: {dict(reasons)}")
            total.update(reasons)
            if not report.check(f"storm of {2 * N_HOSTILE} hostile frames, seed {seed}", bad):
                break
            seed += 1
    print(", ".join(f"{reason} {n}" for reason, n in sorted(total.items())))
    report.end()


main()
