# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of fragments: cutting before and after sealing, putting together, and what hostile
ones do. RFC 791 section 3.2, RFC 8200 section 4.5, RFC 5722, RFC 3168 section 5.3."""
import itertools
import struct

from kit import (BASE_SPD, BYPASS, GCM_IN, GCM_OUT, H4, H6, OWN4, OWN6, R4, R6, TO_30, base, case, error4, error6,
                 esp, good4, hop, icmp4, icmp6, mine4, out, out_own, patch4, sealed, udp, w)

SPD6 = [w.policy_in("10.20.0.0/16", "10.10.0.0/16", 6), w.policy_in("fd20::/32", "fd10::/32", 6),
        w.policy_out("10.10.0.0/16", "10.20.0.0/16", 6), w.policy_out("fd10::/32", "fd20::/32", 6)]


def big4(length, n=0, src=H4, dst=R4, **kw):
    """An IPv4 packet of this many bytes."""
    return udp(src, dst, 40001, 40002, esp.test_key(f"big {n}", length - 28), ident=0x4000 + n, **kw)


def big6(length, n=0, src=H6, dst=R6, **kw):
    return udp(src, dst, 40001, 40002, esp.test_key(f"big {n}", length - 48), **kw)


def with_options(ip, options):
    """IPv4 options put into a packet without."""
    ip = bytes([0x45 + len(options) // 4]) + ip[1:2] + struct.pack("!H", len(ip) + len(options)) + \
        ip[4:10] + b"\0\0" + ip[12:20] + options + ip[20:]
    return patch4(ip, 10, b"\0\0")


def many_out(packets, sa=GCM_OUT, first=1, **kw):
    return [out_own(p, n, sa, **kw) for n, p in enumerate(packets, first)]


def cut_before():
    sizes = (1446, 1447, 100, 1448, 1500, 60, 1470, 1500)
    packets = [big4(size, n) for n, size in enumerate(sizes)]
    pieces = [f for p in packets for f in esp.fragments(hop(p), 1446)]
    case("frag-before", "too big without DF: cut, each piece sealed; order inside the flow is kept", base(),
         p0=[w.from_host(p) for p in packets], want1=many_out(pieces), drops={"p0": {"frag_split": 5}})
    #  record route (stays in the first), router alert (goes into all), no operation, end
    opts = b"\x07\x07\x04\0\0\0\0" + b"\x94\x04\0\0" + b"\x01"
    p = [with_options(big4(1480, 1), opts), with_options(big4(1484, 2), b"\x01" * 4)]
    pieces = [f for x in p for f in esp.fragments(hop(x), 1446)]
    case("frag-options", "options go into later fragments when they have the copied flag, RFC 791 section 3.1",
         base(), p0=[w.from_host(x) for x in p], want1=many_out(pieces), drops={"p0": {"frag_split": 2}})
    whole = big4(4000, 3)
    first = esp.fragments(whole, 1500)
    pieces = [f for x in first for f in esp.fragments(hop(x), 1446)]
    case("frag-again", "fragments of fragments: offsets add up, only the last of the last has no MF", base(),
         p0=[w.from_host(x) for x in first], want1=many_out(pieces), drops={"p0": {"frag_split": 2}})
    p = big4(9000, 4)
    pieces = esp.fragments(hop(p), 1446)
    case("frag-jumbo", "9000 bytes come, 1500 go", base(mtu=9000, mtu1=1500),
         p0=[w.from_host(mine4()), w.from_host(p), w.from_host(mine4(1))],
         want1=[out(mine4(), 1), *many_out(pieces, first=2), out(mine4(1), 2 + len(pieces))],
         drops={"p0": {"frag_split": 1}})
    p = big4(9000, 5, df=True)
    fit, over = big4(8946, 6, df=True), big4(8947, 7, df=True)
    case("jumbo", "9000 bytes on both sides: 8946 inside", base(mtu=9000),
         p0=[w.from_host(x) for x in (fit, over, p, big6(8946, 8), big6(8947, 9))],
         want0=[w.to_host(error4(3, 4, hop(over), word=8946)), w.to_host(error4(3, 4, hop(p), word=8946)),
                w.to_host(error6(2, 0, hop(big6(8947, 9)), word=8946))],
         want1=[out(fit, 1, df=True), out(big6(8946, 8), 2)], drops={"p0": {"too_big": 3}})
    p = [big4(1500, n) for n in range(40)]
    pieces = [f for x in p for f in esp.fragments(hop(x), 1446)]
    case("frag-burst", "a burst in which every packet is cut grows beyond its array", base(),
         p0=[w.from_host(x) for x in p], want1=many_out(pieces), drops={"p0": {"frag_split": 40}})
    p = [big4(9000, n) for n in range(33)]
    pieces = [f for x in p for f in esp.fragments(hop(x), 1446)]
    case("frag-burst-jumbo", "the same with pieces more than seven times as many", base(mtu=9000, mtu1=1500),
         p0=[w.from_host(x) for x in p], want1=many_out(pieces), drops={"p0": {"frag_split": 33}})


def ends_of(name):
    family, natt = {"4": (4, False), "6": (6, False), "natt": (4, True), "natt-6": (6, True)}[name]
    spd = BASE_SPD if family == 4 else SPD6
    return (w.in_sa(0x1003, "aes-gcm-16", family=family, natt=natt),
            w.out_sa(0x2003, "aes-gcm-16", family=family, natt=natt), spd)


def cut_after():
    for name in ("4", "6", "natt", "natt-6"):
        _, o, spd = ends_of(name)
        mtu = {"4": 1446, "6": 1426, "natt": 1438, "natt-6": 1418}[name]
        packets = [big4(mtu, 0), big4(mtu + 1, 1), big4(80, 2), big4(1500, 3), big4(9000, 4), big4(70, 5)]
        want = []
        for n, p in enumerate(packets, 1):
            want += esp.fragments(patch_id(esp.outer(o, o.seal(hop(p), n)), n), 1500, ident=n)
        df = big4(mtu + 1, 6, df=True)
        case(f"frag-after-{name}", "fragment: after: sealed whole, the ESP packet is cut; DF and IPv6 are not",
             w.config("golden", sad=[o.to_config("fragment: after")], spd=spd[2:], mtu=9000, mtu1=1500),
             p0=[w.from_host(p) for p in (*packets, df, big6(mtu + 1, 7))],
             want0=[w.to_host(error4(3, 4, hop(df), word=mtu)), w.to_host(error6(2, 0, hop(big6(mtu + 1, 7)), word=mtu))],
             want1=[w.to_peer(p) for p in want], drops={"p0": {"frag_split": 3, "too_big": 2}})
    o = GCM_OUT
    big = big4(1447, 1)
    case("df-set-big", "df: set with fragment: after: nothing that is too big may leave, it is counted",
         w.config("golden", sad=[o.to_config("fragment: after, df: set")], spd=BASE_SPD[2:]),
         p0=[w.from_host(big), w.from_host(mine4())], want1=[out(mine4(), 2, df=True)],
         drops={"p0": {"too_big_sealed": 1}})
    clear = esp.fragments(hop(big4(9000, 1, dst="10.30.0.1")), 1500)
    case("frag-clear", "clear text is cut too, IPv6 is not",
         base(spd=BYPASS, routes=TO_30, mtu=9000, mtu1=1500),
         p0=[w.from_host(big4(9000, 1, dst="10.30.0.1")), w.from_host(big6(1501, dst="fd30::1"))],
         want0=[w.to_host(error6(2, 0, hop(big6(1501, dst="fd30::1")), word=1500))],
         want1=[w.to_peer(p) for p in clear], drops={"p0": {"frag_split": 1, "too_big": 1}})


def joined():
    for name in ("4", "6", "natt", "natt-6"):
        i, _, spd = ends_of(name)
        send, want, seq = [], [], 0

        def cut_sealed(inner, bounds, seq, i=i):
            return esp.cut(patch_id(esp.outer(i, i.seal(inner, seq)), seq), bounds, ident=0x100 + seq)
        for order in itertools.permutations(range(4)):
            seq += 1
            f = cut_sealed(big4(300, seq, R4, H4), (8, 104, 200), seq)
            send += [f[n] for n in order]
            want.append(hop(big4(300, seq, R4, H4)))
        a, b = (cut_sealed(big4(900, n, R4, H4), (400, 800), n) for n in (25, 26))
        send += [a[0], b[1], b[0], a[2], b[2], a[1]]
        want += [hop(big4(900, n, R4, H4)) for n in (26, 25)]
        send += cut_sealed(big6(1400, 27, R6, H6), tuple(range(8, 1400, 8)), 27)
        want.append(hop(big6(1400, 27, R6, H6)))
        n = 24 * 3 + 4 + len(cut_sealed(big6(1400, 27, R6, H6), tuple(range(8, 1400, 8)), 27)) - 1
        case(f"reass-{name}", "ESP cut on its way: all orders of four, two interleaved, pieces of 8 bytes",
             w.config("golden", sad=[i.to_config()], spd=spd[:2]),
             p1=[w.from_peer(p) for p in send], want0=[w.to_host(p) for p in want], drops={"p1": {"frag_taken": n}})
    for family in (4, 6):
        i, _, spd = ends_of(str(family))
        inner = big4(60000, 1, R4, H4)
        whole = patch_id(esp.outer(i, i.seal(inner, 1)), 77)
        pieces = esp.fragments(whole, 1500)
        back = esp.fragments(hop(inner), 1500)
        case(f"reass-big-{family}", "60000 bytes in one ESP packet, which came in fragments, and go on in fragments",
             w.config("golden", sad=[i.to_config()], spd=spd[:2]),
             p1=[w.from_peer(p) for p in pieces], want0=[w.to_host(p) for p in back],
             drops={"p1": {"frag_taken": len(pieces) - 1, "frag_split": 1}})


def patch_id(ip, n):
    return patch4(ip, 4, struct.pack("!H", n)) if ip[0] >> 4 == 4 else ip


def hostile():
    for name in ("4", "6"):
        i, _, spd = ends_of(name)
        conf = w.config("golden", sad=[i.to_config("replay-window: 4096")], spd=spd[:2])

        def pieces(bounds, n, i=i, length=500):
            return esp.cut(patch_id(esp.outer(i, i.seal(big4(length, n, R4, H4), n)), n), bounds, ident=n)

        def piece(n, a, b, last=False, i=i, swap=False, length=500):
            """Bytes a to b of packet n, cut out alone."""
            whole = patch_id(esp.outer(i, i.seal_raw(big4(length, n, R4, H4) + b"\1\2\2\4", n, iv=b"\0" * 7 + bytes([n]))), n)
            hl = 20 if whole[0] >> 4 == 4 else 40
            data = whole[hl:]
            if swap:
                data = bytes(c ^ 0x55 for c in data)
            f = esp.cut(whole[:hl] + data, tuple(x for x in (a, b) if 0 < x < len(data)), ident=n)
            f = f[1 if a else 0]
            if last is not None:
                at = 6 if hl == 20 else 42
                field = struct.unpack("!H", f[at:at + 2])[0]
                bit = 0x2000 if hl == 20 else 1
                field = field & ~bit if last else field | bit
                f = patch4(f, at, struct.pack("!H", field)) if hl == 20 else f[:at] + struct.pack("!H", field) + f[at + 2:]
            return f
        total = len(esp.outer(i, i.seal_raw(big4(500, 1, R4, H4) + b"\1\2\2\4", 1))) - (20 if name == "4" else 40)
        t = total
        overlaps = [
            [(0, 200), (192, 400), (400, t)],                  # by 8 bytes
            [(0, 200), (200, 400), (0, 400), (400, t)],        # over two
            [(0, 400), (96, 200), (400, t)],                   # inside, the same bytes at other bounds
            [(0, 400), (96, 200, None, True), (400, t)],       # inside, other bytes
            [(0, 200), (0, 200, None, True), (200, 400), (400, t)],  # the same place, other bytes
            [(400, t), (200, 400), (192, 208), (0, 192)],      # backwards
            [(0, 200), (400, t), (200, 480), (200, 400)],      # into the last
            [(0, 400), (200, 208, True), (400, t)],            # a second end, before what is there
            [(400, t), (0, 200), (200, 408), (200, 400)],      # the one before the last is too long
        ]
        send, dropped = [], 0
        for n, kind in enumerate(overlaps, 1):
            for k in kind:
                a, b, last, swap = (*k, None, None)[:4] if len(k) < 4 else k
                send.append(piece(n, a, b, (b == t) if last is None else last, swap=bool(swap)))
                dropped += 1
        good = piece(100, 0, 248), piece(100, 248, t, True)
        case(f"frag-overlap-{name}", "overlaps of every kind: the whole packet is refused, and what comes of it later",
             conf, p1=[w.from_peer(p) for p in (*send, *good)], want0=[w.to_host(hop(big4(500, 100, R4, H4)))],
             drops={"p1": {"frag_overlap": dropped, "frag_taken": 1}}, idle=6500)
        p = [piece(1, 0, 200), piece(1, 0, 200), piece(1, 400, t, True), piece(1, 400, t, True), piece(1, 200, 400)]
        case(f"frag-duplicate-{name}", "a network that doubles packets does no harm",
             conf, p1=[w.from_peer(x) for x in p], want0=[w.to_host(hop(big4(500, 1, R4, H4)))],
             drops={"p1": {"frag_duplicate": 2, "frag_taken": 2}})
        p = [piece(1, 0, 200), piece(1, 200, 400), piece(2, 400, t, True), *good]
        case(f"frag-timeout-{name}", "what is never complete ends after a while",
             conf, p1=[w.from_peer(x) for x in p], want0=[w.to_host(hop(big4(500, 100, R4, H4)))],
             drops={"p1": {"frag_timeout": 3, "frag_taken": 1}}, idle=6500)
        case(f"frag-stop-{name}", "sgw stops while fragments wait",
             conf, p1=[w.from_peer(x) for x in p], want0=[w.to_host(hop(big4(500, 100, R4, H4)))],
             drops={"p1": {"stopping": 3, "frag_taken": 1}})
        send, want = [], []
        for n in range(500):
            f = esp.cut(patch_id(esp.outer(i, i.seal(big4(500, n, R4, H4), 1 + n)), n), (200,), ident=n)
            send.append(f[n % 2])
            if n % 5 == 4:
                k = 1000 + n
                f = esp.cut(patch_id(esp.outer(i, i.seal(big4(500, k, R4, H4), k)), k), (200, 400), ident=k)
                send += [f[1], f[2], f[0]]
                want.append(hop(big4(500, k, R4, H4)))
        case(f"frag-flood-{name}", "500 packets that are never complete: memory is bounded, good ones get through",
             conf, p1=[w.from_peer(x) for x in send], want0=[w.to_host(x) for x in want],
             drops={"p1": {"frag_timeout": 500, "frag_taken": 200}}, idle=6500)
    bad_parts()


def bad_parts():
    i4, i6 = GCM_IN, w.in_sa(0x1004, "aes-gcm-16", family=6)
    whole = esp.outer(i4, i4.seal(big4(500, 1, R4, H4), 1))

    def f4(field, length, n):
        x = patch4(whole[:20 + length], 2, struct.pack("!H", 20 + length))
        return patch4(patch_id(x, n), 6, struct.pack("!H", field))
    four = [f4(0x2000, 13, 1), f4(0x2000, 0, 2), f4(0x1fff, 100, 3), f4(0x0010, 0, 4), f4(0x2001, 7, 5)]
    whole6 = esp.outer(i6, i6.seal(big4(500, 1, R4, H4), 1))

    def f6(field, length, n):
        return esp.ip_header(i6.src, i6.dst, 44, 8 + length) + struct.pack("!BBHI", 50, 0, field, n) + whole6[40:40 + length]
    six = [f6(1, 13, 1), f6(1, 0, 2), f6(0xfff8, 100, 3), f6(0x80, 0, 4), f6(9, 7, 5)]
    case("frag-bad", "lengths that are no multiple of 8, nothing inside, and beyond 65535", w.config(
        "golden", sad=[i4.to_config(), i6.to_config()], spd=[*BASE_SPD[:2], *SPD6[:1]][:2] + [
            w.policy_in("10.26.0.0/16", "10.10.0.0/16", 6)]),
        p1=[w.from_peer(p) for p in four + six] + [sealed(good4(), 1)], want0=[w.to_host(hop(good4()))],
        drops={"p1": {"frag_bad": 10}})


PORTS4 = ["{ dir: out, src: 10.10.0.0/16, dst: 10.20.0.0/16, proto: udp, dport: 53, action: discard, priority: 10 }"]
PORTS6 = ['{ dir: out, src: "fd10::/32", dst: "fd20::/32", proto: udp, dport: 53, action: discard, priority: 10 }']


def verdicts():
    """Clear fragments on their way out meet the policies as the whole packet would."""
    dns = udp(H4, R4, 1024, 53, b"q" * 3000, ident=5)
    other = big4(3000, 6)
    send = []
    for a, b in zip(esp.fragments(dns, 1500), esp.fragments(other, 1500)):
        send += [a, b]
    pieces = esp.fragments(hop(other), 1446)
    case("frag-ports", "policies see the ports of the first fragment in all of them", base(spd=PORTS4),
         p0=[w.from_host(p) for p in send], want1=many_out(pieces),
         drops={"p0": {"frag_taken": 4, "policy_discard": 1, "frag_split": 1}})
    case("frag-ports-after", "the same sealed whole: the ESP packet is cut",
         base(spd=PORTS4, more_out="fragment: after"), p0=[w.from_host(p) for p in send],
         want1=[w.to_peer(p) for p in esp.fragments(esp.outer(GCM_OUT, GCM_OUT.seal(hop(other), 1)), 1500)],
         drops={"p0": {"frag_taken": 4, "policy_discard": 1, "frag_split": 1}})
    huge = [big4(60000, 11), big4(64900, 12)]
    for key in ("before", "after"):
        want, n = [], 0
        for p in huge:
            if key == "before":
                pieces = esp.fragments(hop(p), 1446)
                want += many_out(pieces, first=n + 1)
                n += len(pieces)
            else:
                n += 1
                want += [w.to_peer(f) for f in esp.fragments(patch_id(esp.outer(
                    GCM_OUT, GCM_OUT.seal(hop(p), n)), n), 1500)]
        case(f"frag-huge-{key}", "60000 and 64900 bytes, put together for a policy with ports",
             base(spd=PORTS4, more_out=f"fragment: {key}"),
             p0=[w.from_host(f) for p in huge for f in esp.fragments(p, 1500)], want1=want,
             drops={"p0": {"frag_taken": sum(len(esp.fragments(p, 1500)) - 1 for p in huge), "frag_split": 2}})
    frag, later = patch4(mine4(), 6, b"\x20\x00"), patch4(mine4(), 6, b"\x00\x02")
    case("frag-no-ports", "without ports in the policies fragments pass each for itself", base(),
         p0=[w.from_host(later), w.from_host(frag)], want1=[out(later, 1), out(frag, 2)])
    big = big4(3000, 7, R4, H4)
    inner = esp.fragments(big, 1400)
    case("frag-inner", "fragments inside ESP go on as they are", base(),
         p1=[sealed(p, n) for n, p in enumerate(inner, 1)], want0=[w.to_host(hop(p)) for p in inner])
    # inbound policies with ports: the peer may send port 40002 and nothing else
    spd = [BASE_SPD[0].replace("action: protect", "proto: udp, dport: 40002, action: protect"), *BASE_SPD[2:3]]
    bad = udp(R4, H4, 40001, 40003, b"x" * 2972, ident=8)
    both = [f for pair in zip(inner, esp.fragments(bad, 1400)) for f in pair]
    case("frag-inner-ports", "fragments inside ESP, policies with ports: the whole packet is judged",
         w.config("golden", sad=[GCM_IN.to_config(), GCM_OUT.to_config()], spd=spd),
         p1=[sealed(p, n) for n, p in enumerate(both, 1)],
         want0=[w.to_host(p) for p in esp.fragments(hop(big), 1500)],
         drops={"p1": {"frag_taken": len(both) - 2, "policy_selector": 1, "frag_split": 1}})
    # IPv6: what stands behind the fragment header is only seen in the first one
    opts = b"\x11\0\1\4\0\0\0\0"
    u = udp(H6, R6, 40001, 40002, esp.test_key("six", 1000))[40:]
    six = esp.ip_header(H6, R6, 60, 8 + len(u)) + opts + u
    spd = ['{ dir: out, src: "fd10::/32", dst: "fd20::/32", proto: udp, action: protect, '
           f'tunnel: "{w.LOCAL4}-{w.REMOTE4}" }}',
           '{ dir: out, src: "fd10::/32", dst: "fd20::/32", action: bypass, priority: 2000 }']
    cut = [x for x in esp.cut(six, (400, 800), ident=9)]
    # skip6 goes past destination options: they must stay behind the fragment header here
    data = six[40:]
    cut = [esp.ip_header(H6, R6, 44, 8 + b - a) + struct.pack("!BBHI", 60, 0, a | (b < len(data)), 9) + data[a:b]
           for a, b in ((0, 400), (400, 800), (800, len(data)))]
    case("frag-options-6", "destination options behind a fragment header: no fragment leaves in clear",
         w.config("golden", sad=[GCM_OUT.to_config()], spd=spd, routes=['{ to: "fd20::/32", via: "2001:db8::2" }']),
         p0=[w.from_host(p) for p in cut], want1=[out(six, 1)], drops={"p0": {"frag_taken": 2}})
    # put together for the policies, and too big for the tunnel now: its source can not help it,
    # every fragment did fit
    whole = big6(3000, 10)
    send = esp.fragments(whole, 1280, ident=11)
    case("frag-rejoined-6", "IPv6 fragments that were put together for a policy with ports reach the peer",
         base(spd=PORTS6), p0=[w.from_host(p) for p in send], want1=many_out(
             esp.fragments(hop(whole), 1446, ident=11), df=True), drops={"p0": {"frag_taken": 2, "frag_split": 1}})
    case("frag-rejoined-6-clear", "the same with a policy bypass",
         base(spd=[*BYPASS, '{ dir: out, src: "fd10::/32", dst: "fd30::/32", proto: udp, dport: 53, '
                   'action: discard, priority: 1 }'], routes=TO_30),
         p0=[w.from_host(p) for p in esp.fragments(big6(3000, 10, dst="fd30::1"), 1280, ident=11)],
         want1=[w.to_peer(p) for p in esp.fragments(hop(big6(3000, 10, dst="fd30::1")), 1500, ident=11)],
         drops={"p0": {"frag_taken": 2, "frag_split": 1}})


def local():
    data = esp.test_key("ping", 8000)
    ping = icmp4(H4, OWN4, 8, 0, 0x12340001, data, ident=9)
    pong = icmp4(OWN4, H4, 0, 0, 0x12340001, data, ident=9)
    ping6 = icmp6(H6, OWN6, 128, 0, 0x12340001, data)
    pong6 = icmp6(OWN6, H6, 129, 0, 0x12340001, data)
    f4, f6 = esp.fragments(ping, 1500), esp.fragments(ping6, 1500)
    back4, back6 = esp.fragments(pong, 1500), esp.fragments(pong6, 1500)
    taken = len(f4) + len(f6) - 2
    case("frag-ping", "ping -s 8000 to us: put together, answered, the answer is cut", base(),
         p0=[w.from_host(p) for p in f4 + f6], want0=[w.to_host(p) for p in back4 + back6],
         drops={"p0": {"frag_taken": taken, "frag_split": 2}})
    ping, pong = icmp4(R4, OWN4, 8, 0, 7, data, ident=3), icmp4(OWN4, R4, 0, 0, 7, data, ident=3)
    ping6, pong6 = icmp6(R6, OWN6, 128, 0, 7, data), icmp6(OWN6, R6, 129, 0, 7, data)
    f4, f6 = esp.fragments(ping, 1446), esp.fragments(ping6, 1446)
    back4, back6 = esp.fragments(pong, 1446), esp.fragments(pong6, 1446)
    case("frag-ping-tunnel", "the same through the tunnel, both families", base(),
         p1=[sealed(p, n) for n, p in enumerate(f4 + f6, 1)],
         want1=many_out(back4) + many_out(back6, first=1 + len(back4), df=True),
         drops={"p1": {"frag_taken": len(f4) + len(f6) - 2, "frag_split": 2}})


def ecn():
    """RFC 3168 section 5.3: CE on one piece is CE on all; CE with Not-ECT is no packet."""
    for family in (4, 6):
        i, _, spd = ends_of(str(family))
        send, want, bad, taken = [], [], 0, 0
        seq = 0
        for marks in itertools.product(range(4), repeat=2):
            seq += 1
            inner = big4(300, seq, R4, H4, tos=1)
            f = esp.cut(patch_id(esp.outer(i, i.seal(inner, seq)), seq), (160,), ident=seq)
            for x, mark in zip(f, marks):
                send.append(patch4(x, 1, bytes([mark])) if family == 4 else x[:1] + bytes([mark << 4]) + x[2:])
            if 3 in marks and 0 in marks:
                bad += 2
                continue
            taken += 1
            want.append(hop(big4(300, seq, R4, H4, tos=3 if 3 in marks else 1)))
        case(f"frag-ecn-{family}", "congestion marks of fragments", w.config(
            "golden", sad=[i.to_config()], spd=spd[:2]), p1=[w.from_peer(p) for p in send],
            want0=[w.to_host(p) for p in want], drops={"p1": {"frag_taken": taken, "frag_bad": bad}})


def groups():
    return [cut_before, cut_after, joined, hostile, verdicts, local, ecn]
