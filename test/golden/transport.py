# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of transport mode: RFC 4303 section 3.1.1, RFC 3948 section 3.1.2."""
import struct

from fragments import with_options
from kit import H4, R4, case, csum, esp, icmp4, icmp6, patch4, udp, w
from router import tcp

PEER4, PEER6, OUR4, OUR6 = w.REMOTE4, w.REMOTE6, w.LOCAL4, w.LOCAL6
SPD4 = [f"{{ dir: in, src: {PEER4}, dst: {OUR4}, action: protect, mode: transport }}",
        f"{{ dir: out, src: {OUR4}, dst: {PEER4}, action: protect, mode: transport }}"]
SPD6 = [f'{{ dir: in, src: "{PEER6}", dst: "{OUR6}", action: protect, mode: transport }}',
        f'{{ dir: out, src: "{OUR6}", dst: "{PEER6}", action: protect, mode: transport }}']


def pair(cipher="aes-gcm-16", auth=None, family=4, number=0, **kw):
    return (w.in_sa(0x1100 + number, cipher, None, auth, family=family, transport=True, **kw),
            w.out_sa(0x2100 + number, cipher, None, auth, family=family, transport=True, **kw))


def conf(i, o, spd=(), more_in="", more_out="", **kw):
    own = SPD4 if i.src.version == 4 else SPD6
    return w.config("golden", sad=[i.to_config(more_in), o.to_config(more_out)], spd=[*own, *spd], **kw)


def echo(family, n=0, data=b"0123456789", **kw):
    """(request of the peer, our reply)."""
    data = data + b"%d" % n
    if family == 4:
        return (icmp4(PEER4, OUR4, 8, 0, n, data, ident=n + 1, **kw), icmp4(OUR4, PEER4, 0, 0, n, data, ident=n + 1, **kw))
    return icmp6(PEER6, OUR6, 128, 0, n, data, **kw), icmp6(OUR6, PEER6, 129, 0, n, data, **kw)


def extended(ip, *kinds):
    """An IPv6 packet with extension headers of these kinds put in."""
    body, kinds = b"", [*kinds, ip[6]]
    for a in kinds[1:]:
        body += bytes([a, 0, 1, 4, 0, 0, 0, 0])
    # a routing header with no segments left is passed over
    return ip[:4] + struct.pack("!H", len(ip) - 40 + len(body)) + bytes([kinds[0]]) + ip[7:40] + body + ip[40:]


def pings():
    kinds = (("gcm", "aes-gcm-16", None), ("gcm-8", "aes-gcm-8", None), ("chacha", "chacha20-poly1305", None),
             ("cbc-sha1", "aes-cbc", "hmac-sha1-96"), ("cbc-sha256", "aes-cbc", "hmac-sha256-128"),
             ("ctr-sha384", "aes-ctr", "hmac-sha384-192"), ("null-sha512", "null", "hmac-sha512-256"))
    for name, cipher, auth in kinds:
        for esn in (False, True):
            for natt in (False, True):
                for family in (4, 6):
                    i, o = pair(cipher, auth, family, esn=esn, natt=natt)
                    both = [echo(family, n, b"x" * n) for n in range(18)]
                    case(f"transport-{name}{'-esn' if esn else ''}{'-natt' if natt else ''}-{family}",
                         "pings of the peer come sealed and are answered sealed", conf(i, o),
                         p1=[w.from_peer(esp.transport(i, a, n)) for n, (a, _) in enumerate(both, 1)],
                         want1=[w.to_peer(esp.transport(o, b, n)) for n, (_, b) in enumerate(both, 1)])


def headers():
    for natt in (False, True):
        tail = "-natt" if natt else ""
        i, o = pair(natt=natt)
        a, b = echo(4)
        opts = with_options(a, b"\x94\x04\0\0\1\1\1\0")
        case("transport-options" + tail, "IPv4 options stay in front of ESP", conf(i, o),
             p1=[w.from_peer(esp.transport(i, opts, 1))], want1=[w.to_peer(esp.transport(o, b, 1))])
        i, o = pair(family=6, natt=natt)
        send, want = [], []
        for n, kinds in enumerate(((0,), (60,), (0, 60), (0, 43, 60), (60, 43)), 1):
            a, b = echo(6, n)
            send.append(esp.transport(i, extended(a, *kinds), n))
            want.append(esp.transport(o, b, n))
        # destination options inside: the upper layer of ESP is an extension header
        a, b = echo(6, 9)
        inside = extended(a, 60)
        e = i.seal(inside[40:], 9, next_header=60)
        p = esp.outer(i, e)
        case("transport-extensions" + tail, "IPv6 extension headers in front of ESP, and behind it", conf(i, o),
             p1=[w.from_peer(x) for x in (*send, p)],
             want1=[w.to_peer(x) for x in (*want, esp.transport(o, b, len(want) + 1))])


def policies():
    i, o = pair()
    a, b = echo(4)
    case("transport-clear", "clear text from the peer, where transport mode is the rule", conf(i, o),
         p1=[w.from_peer(a), w.from_peer(esp.transport(i, a, 1)), w.from_peer(udp(PEER4, OUR4, 1, 2))],
         want1=[w.to_peer(esp.transport(o, b, 1))], drops={"p1": {"policy_clear": 2}})
    narrow = [x.replace("action", "proto: icmp, action") for x in SPD4]
    case("transport-selector", "sealed, and outside of the policy: refused", w.config(
        "golden", sad=[i.to_config(), o.to_config()], spd=narrow),
        p1=[w.from_peer(esp.transport(i, udp(PEER4, OUR4, 1, 2), 1)), w.from_peer(esp.transport(i, a, 2))],
        want1=[w.to_peer(esp.transport(o, b, 1))], drops={"p1": {"policy_selector": 1}})
    # the policy is wider than the SA: what is not between its ends may not leave, nor in clear
    wide = [f"{{ dir: in, src: {PEER4}, dst: {OUR4}, action: protect, mode: transport }}",
            "{ dir: out, src: 0.0.0.0/0, dst: 192.0.2.0/24, action: protect, mode: transport }",
            "{ dir: in, src: 10.10.0.0/16, dst: 192.0.2.0/24, action: bypass }"]
    case("transport-forwarded", "a host of ours to the peer: not between the ends of the SA, dropped", w.config(
        "golden", sad=[i.to_config(), o.to_config()], spd=wide),
        p0=[w.from_host(udp(H4, PEER4, 1, 2)), w.from_host(patch4(udp(H4, PEER4, 1, 2), 6, b"\x20\x00"))],
        p1=[w.from_peer(esp.transport(i, a, 1))], want1=[w.to_peer(esp.transport(o, b, 1))],
        drops={"p0": {"policy_selector": 2}})
    # a tunnel mode packet on a transport mode SA
    inner = udp(R4, H4, 1, 2, b"inside")
    case("transport-tunnel", "IP inside of a transport mode SA is an upper layer like others, not a tunnel",
         conf(i, o), p1=[w.from_peer(esp.outer(i, i.seal(inner, 1, next_header=4)))], want1=None,
         drops={"p1": {"local_no_service": 1}})
    t = w.in_sa(0x1001, "aes-gcm-16")
    case("tunnel-transport", "an upper layer inside of a tunnel mode SA", w.config(
        "golden", sad=[t.to_config()], spd=[w.policy_in("10.20.0.0/16", "10.10.0.0/16")]),
        p1=[w.from_peer(esp.transport(t, a, 1))], drops={"p1": {"esp_next_header": 1}})
    case("transport-dummy", "dummy packets in transport mode", conf(i, o),
         p1=[w.from_peer(esp.outer(i, i.seal(b"x" * 40, 1, next_header=59))), w.from_peer(esp.transport(i, a, 2))],
         want1=[w.to_peer(esp.transport(o, b, 1))], drops={"p1": {"esp_dummy": 1}})
    data = esp.test_key("long", 3000)
    a, b = echo(4, 1, data)
    sealed = esp.fragments(esp.transport(i, a, 1), 1500)
    back = esp.fragments(esp.transport(o, b, 1), 1500)
    case("transport-big", "a long ping: sealed whole, ESP is cut both ways", conf(i, o),
         p1=[w.from_peer(p) for p in sealed], want1=[w.to_peer(p) for p in back],
         drops={"p1": {"frag_taken": len(sealed) - 1, "frag_split": 1}})
    i, o = pair(family=6)
    a, b = echo(6, 1, data)
    sealed = esp.fragments(esp.transport(i, a, 1), 1500)
    back = esp.fragments(esp.transport(o, b, 1), 1500)
    case("transport-big-6", "the same over IPv6, where we are the source", conf(i, o),
         p1=[w.from_peer(p) for p in sealed], want1=[w.to_peer(p) for p in back],
         drops={"p1": {"frag_taken": len(sealed) - 1, "frag_split": 1}})


def bad():
    for name, cipher, auth in (("gcm", "aes-gcm-16", None), ("cbc", "aes-cbc", "hmac-sha256-128")):
        for natt in (False, True):
            i, o = pair(cipher, auth, natt=natt)
            a, b = echo(4)
            f = w.from_peer(esp.transport(i, a, 1))
            at = 34 + (8 if natt else 0)
            broken = [f[:k] + bytes([f[k] ^ 4]) + f[k + 1:] for k in (at + 5, at + 9, at + 30, len(f) - 1)]
            pad = i.align - (len(a[20:]) + 2) % i.align
            wrong = i.seal_raw(a[20:] + b"\x09" * pad + bytes([pad, 1]), 2)
            long = i.seal_raw(a[20:] + bytes(range(1, pad + 1)) + bytes([250, 1]), 3)
            empty = i.seal_raw(bytes(range(1, i.align - 1)) + bytes([i.align - 2, 1]), 4)
            case(f"transport-bad-{name}{'-natt' if natt else ''}", "wrong ICV, replay, trailer, nothing inside", conf(i, o),
                 p1=[*broken, f, f, *(w.from_peer(esp.outer(i, e)) for e in (wrong, long, empty))],
                 want1=[w.to_peer(esp.transport(o, b, 1))],
                 drops={"p1": {"esp_auth": 4, "esp_replay": 1, "esp_trailer": 2, "ip_truncated": 1}})


def nat():
    """The NAT has changed the addresses, and the sums inside count the old ones."""
    for family in (4, 6):
        i, o = pair(family=family, natt=True)
        real, mine, ours = ("10.0.0.5", PEER4, OUR4) if family == 4 else ("fd00::5", PEER6, OUR6)

        def natted(p, seq):
            """Sealed by the peer with its own address, which the NAT then changed."""
            s = esp.transport(i, p, seq)
            if family == 4:
                return patch4(s, 12, esp.a2b(mine))
            s = s[:8] + esp.a2b(mine) + s[24:]
            u = s[40:46] + b"\0\0" + s[48:]
            return s[:46] + csum(esp.a2b(mine) + esp.a2b(ours) + struct.pack("!II", len(u), 17) + u) + s[48:]
        error = icmp4 if family == 4 else icmp6
        send, want = [], []
        for n in range(1, 8):
            send.append(natted(udp(real, ours, 1000, 7, b"data" + b"x" * n), n))
            about = udp(mine, ours, 1000, 7, b"data" + b"x" * n)
            want.append(error(ours, mine, 3, 3, 0, about, tos=0xc0, df=True) if family == 4 else
                        error(ours, mine, 1, 4, 0, about))
        t = tcp(real, ours, 2, b"", data=b"odd")
        send.append(natted(t, 8))
        about = tcp(mine, ours, 2, b"", data=b"odd")
        want.append(error(ours, mine, 3, 2, 0, about, tos=0xc0, df=True) if family == 4 else
                    error(ours, mine, 1, 4, 0, about))
        if family == 4:
            zero = udp(real, ours, 1000, 7, b"none")
            zero = zero[:26] + b"\0\0" + zero[28:]
            send.append(natted(zero, 9))
            about = udp(mine, ours, 1000, 7, b"none")
            want.append(error(ours, mine, 3, 3, 0, about[:26] + b"\0\0" + about[28:], tos=0xc0, df=True))
        case(f"transport-nat-{family}", "UDP and TCP sums that count addresses before the NAT are made right",
             conf(i, o), p1=[w.from_peer(p) for p in send],
             want1=[w.to_peer(esp.transport(o, p, n)) for n, p in enumerate(want, 1)],
             drops={"p1": {"local_no_service": len(send)}})


def groups():
    return [pings, headers, policies, bad, nat]
