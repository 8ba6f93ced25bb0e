# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what a tunnel does to a path: its MTU, MSS, DF, DSCP, ECN. RFC 1191, 8201, 4301
section 8, 2473 section 7.1, 6040."""
import struct

from fragments import big4, big6, ends_of
from kit import (BASE_SPD, GCM_OUT, H4, H6, R4, R6, base, case, csum, error4, error6, esp, hop, icmp4, icmp6, mine4,
                 mine6, out, out_own, w)

FILL = 63  # packets, with one more: two bursts


def too_big(o, quoted, mtu, about=None, src=None):
    """What a router on the way says about our ESP."""
    if o.src.version == 4:
        return icmp4(src or "192.0.2.99", str(about or o.src), 3, 4, mtu, quoted[:28 + 20])
    return icmp6(src or "2001:db8::99", str(about or o.src), 2, 0, mtu, quoted[:100])


def pmtu_case(name, about, o, icmp, learned, spd, more=""):
    """A packet that fits, the ICMP, and the packet again. learned: the new inner MTU, None: no change."""
    inner = {4: 1446, 6: 1426}[o.src.version] - (8 if o.natt else 0)
    fit, fit6 = big4(inner, 1, df=True), big6(inner, 2)
    fill = [mine4(n) for n in range(FILL - 1)]
    send = [fit, fit6, *fill]
    want1 = [out(fit, 1, o, df=True), out(fit6, 2, o)] + [out(p, n, o) for n, p in enumerate(fill, 3)]
    n = len(want1)
    if learned:
        less, less6 = big4(learned, 3, df=True), big6(max(learned, 1280), 4)
        nodf = big4(inner, 5)
        send += [fit, fit6, less, less6, nodf]
        want0 = [w.to_host(error4(3, 4, hop(fit), word=learned)), w.to_host(error6(2, 0, hop(fit6), word=max(learned, 1280)))]
        pieces = esp.fragments(hop(nodf), learned)
        want1 += [out(less, n + 1, o, df=True), out(less6, n + 2, o)]
        want1 += [out_own(p, n + 3 + i, o) for i, p in enumerate(pieces)]
        drops = {"p0": {"too_big": 2, "frag_split": 1}, "p1": {"local_taken": len(icmp)}}
    else:
        send += [fit, fit6]
        want0 = []
        want1 += [out(fit, n + 1, o, df=True), out(fit6, n + 2, o)]
        drops = {"p1": {"local_taken": len(icmp)}}
    case(name, about, w.config("golden", sad=[o.to_config(more)], spd=spd[2:]),
         p0=[w.from_host(p) for p in send], p1=[w.from_peer(p) for p in icmp], want0=want0, want1=want1, drops=drops)


def pmtu():
    for name in ("4", "6", "natt", "natt-6"):
        _, o, spd = ends_of(name)
        quoted = esp.outer(o, o.seal(big4(1400, 1, df=True), 1), df=True)
        four = o.src.version == 4
        over = {"4": 54, "6": 74, "natt": 62, "natt-6": 82}[name]
        pmtu_case(f"pmtu-{name}", "a router says that our ESP is too big: inner packets get a new limit", o,
                  [too_big(o, quoted, 1400)], 1400 - over, spd)
        floor = 576 if four else 1280
        other_spi = esp.Sa(0x2fff, "aes-gcm-16", o.raw_key, src=str(o.src), dst=str(o.dst), natt=o.natt)
        other_dst = esp.Sa(o.spi, "aes-gcm-16", o.raw_key, src=str(o.src), dst="192.0.2.3" if four else "2001:db8::3", natt=o.natt)
        other_src = esp.Sa(o.spi, "aes-gcm-16", o.raw_key, src="10.10.0.254" if four else "fd10::254", dst=str(o.dst), natt=o.natt)
        clear = esp.udp(str(o.src), str(o.dst), 1, 2, b"x" * 1000, df=True)
        bad = [too_big(x, esp.outer(x, x.seal(mine4(), 1)), 1400, about=o.src) for x in (other_spi, other_dst, other_src)]
        bad += [too_big(o, clear, 1400), too_big(o, quoted[:20 if four else 40], 1400), too_big(o, quoted, 1500),
                too_big(o, quoted, 9000)]
        pmtu_case(f"pmtu-forged-{name}", "another SPI, other addresses, no ESP, too short, not smaller: ignored",
                  o, bad, None, spd)
        pmtu_case(f"pmtu-floor-{name}", "below 576 and 1280: ignored (RFC 8201 section 4)", o,
                  [too_big(o, quoted, n) for n in (floor - 1, 68, 0)], None, spd)
    _, o, spd = ends_of("4")
    quoted = esp.outer(o, o.seal(big4(1400, 1, df=True), 1), df=True)
    pmtu_case("pmtu-policy", "the same where a policy refuses everything else that comes in clear", o,
              [too_big(o, quoted, 1400)], 1400 - 54,
              [*spd, '{ dir: in, src: "192.0.2.96/27", dst: any4, action: discard, priority: 1 }'])
    # 576 leaves 522: IPv6 inside still has its 1280, and no clear port has another limit
    small, four = big6(1280, 2), big4(523, 1, df=True)
    fill = [mine4(n) for n in range(FILL)]
    case("pmtu-576", "down to 576 for IPv4, but 1280 bytes of IPv6 go on (RFC 2473 section 7.1)",
         w.config("golden", sad=[o.to_config()], spd=spd[2:]),
         p0=[w.from_host(p) for p in [big4(523, 1, df=True)] + fill + [four, big4(522, 3, df=True), small]],
         p1=[w.from_peer(too_big(o, quoted, 576))],
         want0=[w.to_host(error4(3, 4, hop(four), word=522))],
         want1=[out(four, 1, o, df=True)] + [out(p, n, o) for n, p in enumerate(fill, 2)] +
         [out(big4(522, 3, df=True), FILL + 2, o, df=True), w.to_peer(esp.outer(o, o.seal(hop(small), FILL + 3)))],
         drops={"p0": {"too_big": 1}, "p1": {"local_taken": 1}})
    for name in ("4", "6"):
        _, o, spd = ends_of(name)
        inner = {"4": 1226, "6": 1206}[name]
        six, more, four, over = big6(1280, 1), big6(1281, 2), big4(inner, 3, df=True), big4(inner + 1, 4, df=True)
        cut = esp.fragments(esp.outer(o, o.seal(hop(six), 1)), 1280)
        case(f"size-1280-{name}", "an MTU of 1280: IPv6 of 1280 bytes is sealed and then cut (RFC 2473 section 7.1)",
             w.config("golden", sad=[o.to_config()], spd=spd[2:], mtu=1500, mtu1=1280),
             p0=[w.from_host(p) for p in (six, more, four, over)],
             want0=[w.to_host(error6(2, 0, hop(more), word=1280)), w.to_host(error4(3, 4, hop(over), word=inner))],
             want1=[w.to_peer(p) for p in cut] + [out(four, 2, o, df=True)],
             drops={"p0": {"too_big": 2, "frag_split": 1}})


def tcp(src, dst, flags, options=b"", mss_fixed=None, data=b"", offset=None, fields=(1000, 2000)):
    """A TCP packet with a right checksum."""
    options += b"\0" * (-len(options) % 4)
    off = (20 + len(options)) // 4 if offset is None else offset
    t = struct.pack("!HHIIBBHHH", *fields, 0x01020304, 0x05060708, off << 4, flags, 65535, 0, 0) + options + data
    pseudo = esp.a2b(src) + esp.a2b(dst) + struct.pack("!II", len(t), 6)
    t = t[:16] + csum(pseudo + t) + t[18:]
    return esp.ip_header(src, dst, 6, len(t), ident=7) + t


SYN, ACK = 2, 16


def mss_option(n):
    return struct.pack("!BBH", 2, 4, n)


def mss_forms(mss):
    """Options around an MSS of this value, at even and odd places."""
    o = mss_option(mss)
    return [o, o + b"\1\3\3\7", b"\1" + o + b"\1", b"\1\1" + o, b"\1\1\1" + o, b"\3\3\7" + o + b"\4\2",
            b"\4\2" + b"\x08\x0a" + b"\0" * 8 + o, b"\xfe\5abc" + o + b"\1\1\1", o + mss_option(9000)]


def mss():
    no_change = [b"", b"\1\1\1\1", b"\0\0" + b"\0\0" + mss_option(1460),       # behind the end
                 b"\x08\x01\2\4" + mss_option(1460),                          # an option of length 1
                 b"\x08\x00" + b"\2\4" + mss_option(1460), b"\3\x30\2\4" + mss_option(1460),  # beyond the header
                 b"\2\3\xff\xff", b"\2\5\xff\xff\xff", b"\1\1\2\4", b"\1\1\1\2", mss_option(536), mss_option(0), mss_option(1)]
    for name in ("4", "6", "natt"):
        _, o, spd = ends_of(name)
        inner = {"4": 1446, "6": 1426, "natt": 1438}[name]
        send, want = [], []
        for a, b, fixed in ((H4, R4, inner - 40), (H6, R6, inner - 60)):
            for flags in (SYN, SYN | ACK):
                for value in (1460, fixed + 1, 65535, 0xff00 | fixed & 255):
                    for before, after in zip(mss_forms(value), mss_forms(fixed)):
                        if value < fixed:
                            continue
                        send.append(tcp(a, b, flags, before))
                        want.append(tcp(a, b, flags, after))
                for value in (fixed, fixed - 1, 536, 1):
                    for form in mss_forms(value):
                        send.append(tcp(a, b, flags, form))
                        want.append(send[-1])
                for form in no_change:
                    send.append(tcp(a, b, flags, form))
                    want.append(send[-1])
            send += [tcp(a, b, ACK, mss_option(1460)), tcp(a, b, 4, mss_option(1460)),
                     tcp(a, b, SYN, mss_option(1460), offset=5), tcp(a, b, SYN, mss_option(1460), offset=4),
                     tcp(a, b, SYN, mss_option(1460), offset=15)]
            want += send[-5:]
        conf = dict(sad=[o.to_config()], spd=spd[2:])
        case(f"mss-{name}", f"SYN and SYN-ACK into a tunnel: MSS {inner - 40} and {inner - 60}, never raised, sums right",
             w.config("golden", **conf), p0=[w.from_host(p) for p in send],
             want1=[out(p, n, o) for n, p in enumerate(want, 1)])
        if name == "4":
            case("mss-clamp-off", "mss-clamp: false", w.config("golden", system="mss-clamp: false", **conf),
                 p0=[w.from_host(p) for p in send], want1=[out(p, n, o) for n, p in enumerate(send, 1)])
    syn = tcp(R4, H4, SYN, mss_option(1460))
    case("mss-in", "out of the tunnel the MSS stays", base(),
         p1=[w.from_peer(esp.outer(w.in_sa(0x1001, "aes-gcm-16"), w.in_sa(0x1001, "aes-gcm-16").seal(syn, 1)))],
         want0=[w.to_host(hop(syn))])


def outer_fields():
    for name in ("4", "6"):
        _, o, spd = ends_of(name)
        for key, dscp in (("dscp: copy", None), ("dscp: 0", 0), ("dscp: 46", 46), ("dscp: 63", 63)):
            send, want = [], []
            for n in range(16):
                for make in (mine4, mine6):
                    tos = (0, 0xb8, 0x28, 0xfc)[n // 4] | n % 4
                    send.append(make(n, tos=tos))
                    want.append(out(send[-1], len(send), o, tos=tos if dscp is None else dscp << 2 | n % 4))
            case(f"dscp-{key.split()[1]}-{name}", f"{key}; ECN is the inner one (RFC 6040 section 4.1)",
                 w.config("golden", sad=[o.to_config(key)], spd=spd[2:]),
                 p0=[w.from_host(p) for p in send], want1=want)
    for key, df in (("df: copy", None), ("df: set", True), ("df: clear", False)):
        o = GCM_OUT
        send = [mine4(0), mine4(1, df=True), mine6(2)]
        want = []
        for n, p in enumerate(send, 1):
            bit = (p[0] >> 4 == 6 or bool(p[6] & 0x40)) if df is None else df
            want.append(w.to_peer(esp.outer(o, o.seal(hop(p), n), df=bit)))
        fit, over = big4(1446, 3, df=True), big4(1447, 4, df=True)
        want.append(w.to_peer(esp.outer(o, o.seal(hop(fit), 4), df=True if df is None else df)))
        case(f"df-{key.split()[1]}", key + "; whatever it is, a packet with DF is not cut",
             w.config("golden", sad=[o.to_config(key)], spd=BASE_SPD[2:]),
             p0=[w.from_host(p) for p in (*send, fit, over)], want0=[w.to_host(error4(3, 4, hop(over), word=1446))],
             want1=want, drops={"p0": {"too_big": 1}})
    # all 16 combinations, outer IPv6 and NAT-T
    for name in ("6", "natt", "natt-6"):
        i, _, spd = ends_of(name)
        send, want, seq, dropped = [], [], 0, 0
        for src, dst in ((R4, H4), (R6, H6)):
            for inner in range(4):
                for outer in range(4):
                    seq += 1
                    send.append(w.from_peer(esp.outer(i, i.seal(esp.udp(src, dst, 1, 2, b"x", tos=0x28 | inner), seq), tos=0xb8 | outer)))
                    if inner == 0 and outer == 3:
                        dropped += 1
                        continue
                    result = 3 if outer == 3 else 1 if (outer, inner) == (1, 2) else inner
                    want.append(w.to_host(hop(esp.udp(src, dst, 1, 2, b"x", tos=0x28 | result))))
        case(f"ecn-in-{name}", "RFC 6040 figure 4 under other headers; the inner DSCP stays",
             w.config("golden", sad=[i.to_config()], spd=spd[:2]), p1=send, want0=want, drops={"p1": {"esp_ecn": dropped}})


def life():
    for key in ("hard-packets: 3", "hard-packets: 1", "hard-bytes: 102", "hard-bytes: 101"):
        # 34 bytes each: with pad length and next header a multiple of 4, no padding
        n = {"hard-packets: 3": 3, "hard-packets: 1": 1, "hard-bytes: 102": 3, "hard-bytes: 101": 2}[key]
        o, i = GCM_OUT, w.in_sa(0x1001, "aes-gcm-16")
        send = [mine4(k) for k in range(6)]
        came = [esp.udp(R4, H4, 1, 2, b"data %d" % k) for k in range(6)]
        assert all(len(p) == 34 for p in send + came)
        case("life-" + key.replace(": ", "-"), key + ": cuts at the packet, both directions",
             base(i, o, more_in=key, more_out=key), p0=[w.from_host(p) for p in send],
             p1=[w.from_peer(esp.outer(i, i.seal(p, k))) for k, p in enumerate(came, 1)],
             want0=[w.to_host(hop(p)) for p in came[:n]], want1=[out(p, k, o) for k, p in enumerate(send[:n], 1)],
             drops={"p0": {"sa_lifetime": 6 - n}, "p1": {"sa_lifetime": 6 - n}})
    came = [esp.udp(R4, H4, 1, 2, b"data%d" % k) for k in range(6)]
    case("life-bytes-padding", "padding is no inner packet: 33 bytes each, 99 bytes are three",
         base(more_in="hard-bytes: 99"), p1=[w.from_peer(esp.outer(w.in_sa(0x1001, "aes-gcm-16"), w.in_sa(0x1001, "aes-gcm-16").seal(p, k)))
                                            for k, p in enumerate(came, 1)],
         want0=[w.to_host(hop(p)) for p in came[:3]], drops={"p1": {"sa_lifetime": 3}})


def confidential():
    """TFC padding, RFC 4303 section 2.7."""
    for name, pad in (("4", 512), ("6", 512), ("most", 1446)):
        _, o, spd = ends_of(name if name != "most" else "4")
        send = [mine4(), mine6(), big4(pad - 1, 1, df=True), big4(pad, 2, df=True), big4(pad - 2, 3)]
        if pad < 1446:
            send.append(big4(pad + 1, 4, df=True))
        want = []
        for n, p in enumerate(send, 1):
            p = hop(p)
            df = p[0] >> 4 == 6 or bool(p[6] & 0x40)
            e = o.seal(p + b"\0" * (pad - len(p)), n, next_header=41 if p[0] >> 4 == 6 else 4)
            want.append(w.to_peer(esp.outer(o, e, df=df)))
        case(f"tfc-{name}", f"tfc-pad-to: {pad}: shorter packets are filled up",
             w.config("golden", sad=[o.to_config(f"tfc-pad-to: {pad}")], spd=spd[2:]),
             p0=[w.from_host(p) for p in send], want1=want)


def groups():
    return [pmtu, mss, outer_fields, life, confidential]
