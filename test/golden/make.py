#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the golden cases: a folder each with sgw.yaml, send.<port>.pcap, expect.<port>.pcap and
drops. This file is where a case is read and changed; the folders are what run.py runs.

  make.py          write all folders
  make.py --check  are the folders what this file says?

What is expected comes from the RFCs and docs/, by way of test/lib/esp.py; sgw has no part in it.
The sequence numbers in expected ESP are sgw's own from 1; its IVs it draws itself, so run.py opens
both sides before it compares.
"""
import os
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import kit
from kit import (BASE_SPD, BROADCAST, BYPASS, CASES, GCM_IN, GCM_OUT, H4, H6, OWN4, OWN6, R4, R6, TO_30, ZERO,
                 arp, base, case, csum, error4, error6, esp, good4, good6, hop, icmp4, icmp6, mine4, mine6, ns, out,
                 out_own, patch4, sealed, udp, w)
import faults
import fragments
import router
import transport
import vlan


# -- the good ways --------------------------------------------------------------------------------

def nat_moves():
    here = w.in_sa(0x1003, "aes-gcm-16", natt=True)
    moved = esp.Sa(0x1003, "aes-gcm-16", here.raw_key, src="192.0.2.77", dst=w.LOCAL4, natt=True, sport=40000)
    forged = esp.Sa(0x1003, "aes-gcm-16", bytes(20), src="192.0.2.66", dst=w.LOCAL4, natt=True, sport=6666)
    case("natt-moved", "a NAT gives the peer another address: its packets pass, and it is told; forgeries move nothing",
         base(here), p1=[sealed(good4(), 1, here), sealed(good4(1), 2, forged), sealed(good4(2), 2, moved)],
         want0=[w.to_host(hop(good4())), w.to_host(hop(good4(2)))], drops={"p1": {"esp_auth": 1}},
         stderr=["sgw: sa s1003: its peer is now seen at 192.0.2.77 port 40000; what is sent to it goes on to the "
                 "old place until the SAs are changed"])


def several():
    """Old and new SAs side by side, as a rekey leaves them: all four open, the first outbound one seals."""
    ins = [w.in_sa(0x1010 + i, "aes-gcm-16") for i in range(4)]
    outs = [w.out_sa(0x2010 + i, "aes-gcm-16") for i in range(2)]
    order = [0, 3, 1, 2, 3, 0, 2, 1]
    count = [0, 0, 0, 0]
    p1, want = [], []
    for n, i in enumerate(order):
        count[i] += 1
        p1.append(sealed(good4(n), count[i], ins[i]))
        want.append(good4(n))
    sad = [*(s.to_config() for s in ins), *(s.to_config() for s in outs)]
    case("several-sas", "four inbound SAs of one policy pair open at once, the first outbound SA seals",
         w.config("golden", sad=sad, spd=BASE_SPD), p0=[w.from_host(mine4())], p1=p1,
         want0=[w.to_host(hop(x)) for x in want], want1=[out(mine4(), 1, outs[0])])
    more = '{ dir: in, src: "10.27.0.0/16", dst: "10.10.0.0/16", action: protect, tunnel: "192.0.2.2-192.0.2.1" }'
    far = udp("10.27.0.1", H4, 1, 2)
    case("several-selectors", "one SA carries what several policies of its tunnel select",
         base(spd=[more]), p1=[sealed(good4(), 1), sealed(far, 2), sealed(good6(), 3)],
         want0=[w.to_host(hop(x)) for x in (good4(), far, good6())])


def good_ways():
    case("in-gcm", "both inner families on one SA, opened and forwarded", base(),
         p1=[sealed(good4(), 1), sealed(good6(), 2), sealed(good4(1), 3)],
         want0=[w.to_host(hop(good4())), w.to_host(hop(good6())), w.to_host(hop(good4(1)))])
    case("out-gcm", "both inner families on one SA, sealed in order, numbered from 1", base(),
         p0=[w.from_host(mine4()), w.from_host(mine6()), w.from_host(mine4(1))],
         want1=[out(mine4(), 1), out(mine6(), 2), out(mine4(1), 3)])
    kinds = (("cbc-sha1", "aes-cbc", "hmac-sha1-96"), ("cbc-sha256", "aes-cbc", "hmac-sha256-128"),
             ("ctr-sha384", "aes-ctr", "hmac-sha384-192"), ("null-sha512", "null", "hmac-sha512-256"),
             ("chacha", "chacha20-poly1305", None))
    for name, cipher, auth in kinds:
        for esn in (False, True):
            i = w.in_sa(0x1002, cipher, None, auth, esn=esn)
            o = w.out_sa(0x2002, cipher, None, auth, esn=esn)
            case(f"both-{name}{'-esn' if esn else ''}", f"{cipher} {auth or ''}, ESN {esn}, both ways",
                 base(i, o), p0=[w.from_host(mine4()), w.from_host(mine6())],
                 p1=[sealed(good4(), 1, i), sealed(good6(), 2, i)],
                 want0=[w.to_host(hop(good4())), w.to_host(hop(good6()))],
                 want1=[out(mine4(), 1, o), out(mine6(), 2, o)])
    for family in (4, 6):
        i = w.in_sa(0x1003, "aes-gcm-16", family=family, natt=True)
        o = w.out_sa(0x2003, "aes-gcm-16", family=family, natt=True)
        spd = [w.policy_in("10.20.0.0/16", "10.10.0.0/16", family),
               w.policy_in("fd20::/32", "fd10::/32", family),
               w.policy_out("10.10.0.0/16", "10.20.0.0/16", family),
               w.policy_out("fd10::/32", "fd20::/32", family)]
        case(f"natt-{family}", f"UDP encapsulation over IPv{family}, both ways (RFC 3948)",
             w.config("golden", sad=[i.to_config(), o.to_config()], spd=spd),
             p0=[w.from_host(mine4()), w.from_host(mine6())],
             p1=[sealed(good4(), 1, i), sealed(good6(), 2, i)],
             want0=[w.to_host(hop(good4())), w.to_host(hop(good6()))],
             want1=[out(mine4(), 1, o), out(mine6(), 2, o)])
    i, o = w.in_sa(0x1004, "aes-gcm-16", family=6), w.out_sa(0x2004, "aes-gcm-16", family=6)
    spd = [w.policy_in("10.20.0.0/16", "10.10.0.0/16", 6), w.policy_in("fd20::/32", "fd10::/32", 6),
           w.policy_out("10.10.0.0/16", "10.20.0.0/16", 6), w.policy_out("fd10::/32", "fd20::/32", 6)]
    case("outer-6", "IPv6 outside, both families inside",
         w.config("golden", sad=[i.to_config(), o.to_config()], spd=spd),
         p0=[w.from_host(mine4()), w.from_host(mine6())],
         p1=[sealed(good4(), 1, i), sealed(good6(), 2, i)],
         want0=[w.to_host(hop(good4())), w.to_host(hop(good6()))],
         want1=[out(mine4(), 1, o), out(mine6(), 2, o)])
    case("route-based", "a tunnel interface: routes decide what goes in and what may come out",
         w.config("golden", sad=[GCM_IN.to_config("reqid: 100"), GCM_OUT.to_config("reqid: 100")],
                  tunnels=[f'ipsec0: {{ local: {w.LOCAL4}, remote: {w.REMOTE4}, reqid: 100, '
                           'addresses: [10.99.0.1/24, "fd99::1/64"] }'],
                  routes=["{ to: 10.20.0.0/16, tunnel: ipsec0 }", '{ to: "fd20::/32", tunnel: ipsec0 }']),
         p0=[w.from_host(mine4()), w.from_host(mine6())],
         p1=[sealed(good4(), 1), sealed(good6(), 2)],
         want0=[w.to_host(hop(good4())), w.to_host(hop(good6()))],
         want1=[out(mine4(), 1), out(mine6(), 2)])
    clear = udp(H4, "10.30.0.1", 1, 2, b"clear")
    clear6 = udp(H6, "fd30::1", 1, 2, b"clear")
    case("bypass", "a policy lets clear text through, between protected packets, and past them",
         base(spd=BYPASS, routes=TO_30),
         p0=[w.from_host(p) for p in (mine4(), clear, mine6(), clear6)],
         want1=[out(mine4(), 1), w.to_peer(hop(clear)), out(mine6(), 2), w.to_peer(hop(clear6))])
    dns = udp(H4, R4, 1024, 53, b"query")
    case("policy-order", "priority first, then file order; ports and protocols select",
         base(spd=["{ dir: out, src: 10.10.0.0/16, dst: 10.20.0.0/16, proto: udp, dport: 53, "
                   "action: discard, priority: 10 }"]),
         p0=[w.from_host(mine4()), w.from_host(dns), w.from_host(mine4(1))],
         want1=[out(mine4(), 1), out(mine4(1), 2)], drops={"p0": {"policy_discard": 1}})
    case("df-dscp-ecn-out", "outer DF, DSCP and ECN are the inner ones",
         base(), p0=[w.from_host(mine4(n, tos=t, df=d)) for n, (t, d) in
                     enumerate([(0, False), (0, True), (0xb8, True), (1, False), (2, False), (3, True)])] +
         [w.from_host(mine6(n, tos=t)) for n, t in enumerate([0xb8, 1, 2, 3])],
         want1=[out(mine4(n, tos=t, df=d), n + 1, tos=t, df=d) for n, (t, d) in
                enumerate([(0, False), (0, True), (0xb8, True), (1, False), (2, False), (3, True)])] +
         [out(mine6(n, tos=t), n + 7, tos=t) for n, t in enumerate([0xb8, 1, 2, 3])])
    ecn_in()


def ecn_in():
    """RFC 6040 figure 4, all 16 combinations, both inner families."""
    send, want, seq, dropped = [], [], 0, 0
    for make in (good4, good6):
        for inner in range(4):
            for outer in range(4):
                seq += 1
                ip = make(seq, tos=0xb8 | inner)
                send.append(w.from_peer(esp.outer(GCM_IN, GCM_IN.seal(ip, seq), tos=outer)))
                if inner == 0 and outer == 3:
                    dropped += 1
                    continue
                result = inner
                if outer == 3 and inner:
                    result = 3
                if outer == 1 and inner == 2:
                    result = 1
                want.append(w.to_host(hop(make(seq, tos=0xb8 | result))))
    case("ecn-in", "congestion marks on the way out of a tunnel: RFC 6040 figure 4", base(),
         p1=send, want0=want, drops={"p1": {"esp_ecn": dropped}})


# -- Ethernet, ARP, ND ----------------------------------------------------------------------------

def link():
    case("eth", "frames that are too short, too long, for others, of other types, tagged", base(),
         p1=[w.from_peer(good4())[:13], esp.mac(w.MAC1),
             esp.eth("02:00:00:00:00:99", w.PEER, good4()),
             esp.mac(w.MAC1) + esp.mac(w.PEER) + b"\x88\xcc" + b"\0" * 50,
             esp.mac(w.MAC1) + esp.mac(w.PEER) + b"\x81\x00\0\x05\x08\x00" + good4(),
             w.from_peer(udp(R4, H4, 1, 2, b"x" * 1473)), w.from_peer(udp(R4, H4, 1, 2, b"x" * 9000)),
             sealed(good4(), 1)],
         want0=[w.to_host(hop(good4()))],
         drops={"p1": {"eth_runt": 2, "eth_foreign": 1, "eth_type": 1, "eth_vlan": 1, "eth_oversize": 2}})
    ask = arp(1, w.HOST, H4, ZERO, OWN4, dst=BROADCAST)
    other = arp(1, w.HOST, H4, ZERO, "10.10.0.77", dst=BROADCAST)
    case("arp", "requests for us are answered, others are not, broken ones are counted", base(),
         p0=[ask, ask + b"\0" * 18, other, ask[:40],
             ask[:14] + b"\0\6" + ask[16:], ask[:20] + b"\0\7" + ask[22:],
             arp(2, w.HOST, H4, w.MAC0, OWN4)],
         want0=[arp(2, w.MAC0, OWN4, w.HOST, H4)] * 2,
         drops={"p0": {"arp_malformed": 3, "arp_foreign": 1, "arp_taken": 3}})
    group = "33:33:ff:00:02:54"
    ask6 = esp.eth(group, w.HOST, ns(H6, OWN6, w.HOST))
    bad_sum = ask6[:-1] + bytes([ask6[-1] ^ 1])
    far = ns(H6, OWN6, w.HOST)
    far = esp.eth(group, w.HOST, far[:7] + b"\xfe" + far[8:])
    answer = icmp6(OWN6, H6, 136, 0, 0xe0000000, esp.a2b(OWN6) + b"\2\1" + esp.mac(w.MAC0), ttl=255)
    case("nd", "solicitations for us are answered; broken, or from afar, they are counted", base(),
         p0=[ask6, bad_sum, far, esp.eth("33:33:ff:00:00:77", w.HOST, ns(H6, "fd10::77", w.HOST))],
         want0=[w.to_host(answer)], drops={"p0": {"nd_taken": 2, "nd_malformed": 2}})
    case("multicast", "neither multicast nor broadcast is forwarded", base(spd=BYPASS, routes=TO_30),
         p0=[w.from_host(udp(H4, "224.0.0.5", 1, 2)), w.from_host(udp(H4, "255.255.255.255", 1, 2)),
             w.from_host(udp(H6, "ff0e::5", 1, 2)), esp.eth(BROADCAST, w.HOST, udp(H4, "10.30.0.1", 1, 2))],
         drops={"p0": {"multicast": 4}})


# -- IP -------------------------------------------------------------------------------------------

def ip():
    bypass = base(spd=BYPASS, routes=TO_30)
    to30 = udp(H4, "10.30.0.1", 1, 2, b"0123456789" * 3)
    six30 = udp(H6, "fd30::1", 1, 2, b"0123456789")
    case("ip-header", "every way to be no IP packet", bypass,
         p0=[w.from_host(p) for p in (
             patch4(to30, 2, struct.pack("!H", len(to30) + 1)),      # longer than its frame
             patch4(to30, 2, struct.pack("!H", 19)), to30[:19],      # shorter than its header
             six30[:39], six30[:4] + struct.pack("!H", 500) + six30[6:],
             patch4(udp(H4, "10.30.0.1", 1, 2), 2, struct.pack("!H", 24))[:24],  # half a UDP header
             patch4(to30, 0, b"\x44"))] +                            # IHL 4
         [esp.eth(w.MAC0, w.HOST, to30)[:14] + b"\x55" + to30[1:],
          esp.mac(w.MAC0) + esp.mac(w.HOST) + b"\x86\xdd" + to30,
          w.from_host(to30[:10] + b"\xff\xff" + to30[12:]), w.from_host(to30)],
         want1=[w.to_peer(hop(to30))],
         drops={"p0": {"ip_truncated": 6, "ip_header": 1, "ip_version": 2, "ip_checksum": 1}})
    u = udp(H6, "fd30::1", 1, 2, b"0123456789")[40:]

    def chain(*kinds, last=17, tail=u):
        body = b""
        for i, k in enumerate(kinds):
            body += bytes([kinds[i + 1] if i + 1 < len(kinds) else last, 0, 1, 4, 0, 0, 0, 0])
        body += tail
        return esp.ip_header(H6, "fd30::1", kinds[0], len(body)) + body
    good = chain(0, 60)
    case("ip6-extensions", "extension headers: two pass, broken and endless ones do not", bypass,
         p0=[w.from_host(p) for p in (good, chain(*[60] * 9), chain(60, tail=b"")[:44],
                                      chain(60, last=60, tail=b"\x11\x1f" + b"\0" * 6))],
         want1=[w.to_peer(hop(good))], drops={"p0": {"ip_header": 2, "ip_truncated": 1}})
    case("ip-martian", "addresses that no host on the wire has", bypass,
         p0=[w.from_host(udp(s, "10.30.0.1", 1, 2)) for s in
             ("127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1", "255.255.255.255")] +
         [w.from_host(udp(H4, d, 1, 2)) for d in ("127.0.0.1", "0.0.0.0", "240.0.0.1")] +
         [w.from_host(udp(s, "fd30::1", 1, 2)) for s in ("::1", "::", "::ffff:10.0.0.1", "ff02::1")] +
         [w.from_host(udp(H6, d, 1, 2)) for d in ("::1", "::", "::ffff:10.0.0.1")],
         drops={"p0": {"ip_martian": 16}})
    case("ip-spoofed", "from our own addresses, clear and inside ESP", base(spd=BYPASS, routes=TO_30),
         p0=[w.from_host(udp(OWN4, "10.30.0.1", 1, 2)), w.from_host(udp(w.LOCAL4, "10.30.0.1", 1, 2)),
             w.from_host(udp(OWN6, "fd30::1", 1, 2))],
         p1=[sealed(udp(OWN4, H4, 1, 2), 1)],
         drops={"p0": {"ip_spoofed": 3}, "p1": {"ip_spoofed": 1}})
    case("ip-ttl", "TTL and hop limit: time exceeded from our address, clear and through the tunnel",
         base(spd=BYPASS, routes=TO_30),
         p0=[w.from_host(mine4(0, ttl=1)), w.from_host(mine6(0, ttl=1)), w.from_host(mine4(1, ttl=2)),
             w.from_host(udp(H4, "10.30.0.1", 1, 2, ttl=1))],
         p1=[sealed(good4(0, ttl=1), 1), sealed(good6(0, ttl=1), 2)],
         want0=[w.to_host(error4(11, 0, mine4(0, ttl=1))), w.to_host(error6(3, 0, mine6(0, ttl=1))),
                w.to_host(error4(11, 0, udp(H4, "10.30.0.1", 1, 2, ttl=1)))],
         want1=[out(mine4(1, ttl=2), 1)] + [
             w.to_peer(esp.outer(GCM_OUT, GCM_OUT.seal(p, n), tos=t, df=True)) for n, p, t in
             ((2, error4(11, 0, good4(0, ttl=1), dst=R4), 0xc0),
              (3, error6(3, 0, good6(0, ttl=1), dst=R6), 0))],
         drops={"p0": {"ip_ttl": 3}, "p1": {"ip_ttl": 2}})


def local():
    ping = icmp4(H4, OWN4, 8, 0, 0x12340001, b"0123456789", ttl=7, ident=9)
    pong = icmp4(OWN4, H4, 0, 0, 0x12340001, b"0123456789", ident=9)
    ping6 = icmp6(H6, OWN6, 128, 0, 0x12340001, b"0123456789", ttl=7)
    pong6 = icmp6(OWN6, H6, 129, 0, 0x12340001, b"0123456789")
    far = icmp4(R4, OWN4, 8, 0, 7, b"through the tunnel", ident=3)
    case("local-ping", "pings to us are answered, in clear and through the tunnel", base(),
         p0=[w.from_host(ping), w.from_host(ping6),
             w.from_host(icmp4(H4, w.LOCAL4, 8, 0, 5, b"other port", ident=4))],
         p1=[sealed(far, 1)],
         want0=[w.to_host(pong), w.to_host(pong6),
                w.to_host(icmp4(w.LOCAL4, H4, 0, 0, 5, b"other port", ident=4))],
         want1=[w.to_peer(esp.outer(GCM_OUT, GCM_OUT.seal(
             icmp4(OWN4, R4, 0, 0, 7, b"through the tunnel", ident=3), 1)))])
    nobody, nobody6 = udp(H4, OWN4, 7, 9, b"hello"), udp(H6, OWN6, 7, 9, b"hello")
    gre = esp.ip_header(H4, OWN4, 47, 8) + b"\0" * 8
    case("local-none", "what nobody listens for is refused politely, ICMP for us is taken", base(),
         p0=[w.from_host(p) for p in (nobody, nobody6, gre, pong[:12] + esp.a2b(H4) + esp.a2b(OWN4) + pong[20:])] +
         [w.from_host(ping[:-1] + b"!"), w.from_host(ping6[:-1] + b"!")],
         want0=[w.to_host(error4(3, 3, nobody)), w.to_host(error6(1, 4, nobody6)),
                w.to_host(error4(3, 2, gre))],
         drops={"p0": {"local_no_service": 3, "local_taken": 1, "ip_checksum": 2}})
    natt = w.in_sa(0x1003, "aes-gcm-16", natt=True)
    u = [udp(w.REMOTE4, w.LOCAL4, 4500, 4500, d) for d in
         (b"\xff", b"\0\0\0\0IKE message", b"\x12\x34\x56", b"", b"\0\0\0\0\1\2\3\4")]
    u.append(udp(w.REMOTE4, w.LOCAL4, 500, 500, b"IKE"))
    case("natt-ike", "RFC 3948: keepalives, IKE on both ports, what is too short for either",
         base(natt), p1=[w.from_peer(p) for p in u] + [sealed(good4(), 1, natt)],
         want0=[w.to_host(hop(good4()))], drops={"p1": {"ike_ignored": 4, "esp_runt": 2}})
    case("local-flood", "pings faster than the limit of our answers", base(),
         p0=[w.from_host(icmp4(H4, OWN4, 8, 0, n, b"", ident=n & 0xffff)) for n in range(4000)],
         want0=None, drops={"p0": {"local_queue_full": "+"}})


# -- ESP ------------------------------------------------------------------------------------------

def esp_in():
    case("esp-replay", "seen before: inside a burst, and the last one of the window", base(),
         p1=[sealed(good4(n), s) for n, s in enumerate((1, 1, 2, 1, 2, 5, 5, 4, 3, 3))],
         want0=[w.to_host(hop(good4(n))) for n in (0, 2, 5, 7, 8)], drops={"p1": {"esp_replay": 5}})
    case("esp-late", "left of a window of 64, and number zero: counted apart from replays",
         base(more_in="replay-window: 64"),
         p1=[sealed(good4(n), s) for n, s in enumerate((100, 36, 37, 0, 37))],
         want0=[w.to_host(hop(good4(n))) for n in (0, 2)], drops={"p1": {"esp_late": 2, "esp_replay": 1}})
    case("esp-no-window", "window 0: replays pass, as the configuration says",
         base(more_in="replay-window: 0"), p1=[sealed(good4(n), s) for n, s in enumerate((7, 7, 3))],
         want0=[w.to_host(hop(good4(n))) for n in range(3)])
    f = sealed(good4(), 1)
    cbc = w.in_sa(0x1002, "aes-cbc", 16, "hmac-sha256-128")
    for name, sa in (("gcm", GCM_IN), ("cbc", cbc)):
        f = sealed(good4(), 1, sa)
        case(f"esp-auth-{name}", "one bit wrong in number, IV, text, ICV; the number stays unused",
             base(sa), p1=[f[:i] + bytes([f[i] ^ 2]) + f[i + 1:] for i in (41, 43, 60, 80, len(f) - 1)] + [f],
             want0=[w.to_host(hop(good4()))], drops={"p1": {"esp_auth": 5}})
    whole = esp.outer(GCM_IN, GCM_IN.seal(good4(), 1))

    def short(n):
        return patch4(whole[:20 + n], 2, struct.pack("!H", 20 + n))
    unaligned = cbc.seal(good4(), 1)[:-16] + b"12345"
    unaligned += cbc.icv(unaligned, 1)
    case("esp-runt", "too short for SPI, for IV and ICV; not a multiple of the block",
         base(GCM_IN, GCM_OUT), p1=[w.from_peer(short(n)) for n in (0, 4, 7, 8, 16, 31, 32, 35)],
         drops={"p1": {"esp_runt": 8}})
    case("esp-runt-block", "CBC text that is no multiple of 16", base(cbc),
         p1=[w.from_peer(esp.outer(cbc, unaligned))], drops={"p1": {"esp_runt": 1}})
    case("esp-no-sa", "unknown SPI, plain and in UDP", base(),
         p1=[sealed(good4(), 1, w.in_sa(0x7777, "aes-gcm-16")),
             sealed(good4(), 1, w.in_sa(0x7778, "aes-gcm-16", natt=True)),
             sealed(good4(), 1, w.in_sa(0x7779, "aes-gcm-16", family=6))],
         drops={"p1": {"esp_no_sa": 3}})
    stranger = esp.Sa(0x1001, "aes-gcm-16", GCM_IN.raw_key, src="192.0.2.3", dst=w.LOCAL4)
    case("esp-source", "right SPI and key, another outer source", base(),
         p1=[sealed(good4(), 1, stranger)], drops={"p1": {"esp_sa_source": 1}})
    plain, natt = w.in_sa(0x1001, "aes-gcm-16"), w.in_sa(0x1003, "aes-gcm-16", natt=True)
    as_natt = w.in_sa(0x1001, "aes-gcm-16", natt=True)
    as_plain = w.in_sa(0x1003, "aes-gcm-16")
    case("esp-encap", "in UDP for an SA without, and the reverse",
         w.config("golden", sad=[plain.to_config(), natt.to_config()], spd=BASE_SPD[:2]),
         p1=[sealed(good4(), 1, as_natt), sealed(good4(), 1, as_plain)],
         drops={"p1": {"esp_sa_encap": 2}})


def esp_inside():
    """A valid ICV over something that is not right."""
    for name, sa in (("gcm", GCM_IN), ("cbc", w.in_sa(0x1002, "aes-cbc", 16, "hmac-sha1-96"))):
        def raw(body, seq, sa=sa):
            return w.from_peer(esp.outer(sa, sa.seal_raw(body, seq)))
        a = sa.align
        g = good4()

        def padded(inner, tail_pad=None, nh=4, a=a):
            n = -(len(inner) + 2) % a
            pad = bytes(range(1, n + 1)) if tail_pad is None else tail_pad(n)
            return inner + pad + bytes([n, nh])
        # an inner packet whose padding is not empty, so that its bytes can be wrong
        g = udp(R4, H4, 1, 2, b"x" * (32 + (-(28 + 2) - 3) % a))
        assert -(len(g) + 2) % a == 3
        case(f"esp-trailer-{name}", "wrong padding, pad length beyond the payload", base(sa),
             p1=[raw(padded(g, lambda n: b"\1\2\4"), 1), raw(padded(g, lambda n: b"\0" * n), 2),
                 raw(g + b"\1\2\3" + bytes([len(g) + 4, 4]), 3), raw(g + b"\1\2\3" + bytes([255, 4]), 4),
                 raw(padded(g), 5)],
             want0=[w.to_host(hop(g))], drops={"p1": {"esp_trailer": 4}})
        case(f"esp-next-header-{name}", "next header TCP, 0, ESP; IPv4 as IPv6 and the reverse", base(sa),
             p1=[raw(padded(g, nh=6), 1), raw(padded(g, nh=0), 2), raw(padded(g, nh=50), 3),
                 raw(padded(g, nh=41), 4), raw(padded(good6(), nh=4), 5),
                 raw(padded(b"\x55" + g[1:], nh=4), 6), raw(padded(g), 7)],
             want0=[w.to_host(hop(g))], drops={"p1": {"esp_next_header": 6}})
        bad = [b"", g[:1], g[:19], patch4(g[:20], 2, b"\0\x15"), patch4(g, 0, b"\x44"),
               patch4(g, 2, b"\xff\xff"), patch4(g, 2, b"\0\x13"), g[:10] + b"\xff\xff" + g[12:]]
        case(f"esp-inner-{name}", "inner packets of 0, 1, 19, 20 bytes, IHL 4, lengths and sums that lie",
             base(sa), p1=[raw(padded(p), n + 1) for n, p in enumerate(bad)] +
             [raw(padded(good6()[:39], nh=41), 20),
              raw(padded(good6()[:4] + b"\xff\xff" + good6()[6:], nh=41), 21), raw(padded(g), 22)],
             want0=[w.to_host(hop(g))], drops={"p1": {"esp_inner": len(bad) + 2}})
        case(f"esp-dummy-{name}", "dummy packets (RFC 4303 2.6) are taken; TFC padding is cut off",
             base(sa), p1=[raw(padded(b"anything at all", nh=59), 1), raw(padded(b"", nh=59), 2),
                           raw(padded(g + b"\0" * 40), 3)],
             want0=[w.to_host(hop(g))], drops={"p1": {"esp_dummy": 2}})


def esp_out():
    case("sa-missing", "a route-based tunnel without an outbound SA: never in clear",
         w.config("golden", sad=[GCM_IN.to_config("reqid: 100")],
                  tunnels=[f'ipsec0: {{ local: {w.LOCAL4}, remote: {w.REMOTE4}, reqid: 100, '
                           'addresses: [10.99.0.1/24] }'],
                  routes=["{ to: 10.20.0.0/16, tunnel: ipsec0 }"]),
         p0=[w.from_host(mine4())], drops={"p0": {"sa_missing": 1}})
    last = 2**32 - 2  # one less than RFC 4303 allows: librte_ipsec does not go further
    case("sa-sequence-end", "the last sequence numbers are used, then no more", base(more_out=f"sequence: {last - 2}"),
         p0=[w.from_host(mine4(n)) for n in range(4)],
         want1=[out(mine4(0), last - 1), out(mine4(1), last)], drops={"p0": {"sa_sequence_end": 2}})


# -- policy, routes, sizes, neighbours ------------------------------------------------------------

def policy():
    case("policy-none", "clear text that no policy knows, both ways, both families", base(routes=TO_30),
         p0=[w.from_host(udp(H4, "10.30.0.1", 1, 2)), w.from_host(udp(H6, "fd30::1", 1, 2))],
         p1=[w.from_peer(udp("10.30.0.1", H4, 1, 2)), w.from_peer(udp("fd30::1", H6, 1, 2))],
         drops={"p0": {"policy_none": 2}, "p1": {"policy_none": 2}})
    case("policy-discard", "a policy says discard: in clear, to be sealed, and after opening",
         base(spd=["{ dir: in, src: 10.20.9.0/24, dst: 10.10.0.0/16, action: discard, priority: 1 }",
                   "{ dir: out, src: 10.10.9.0/24, dst: 10.20.0.0/16, action: discard, priority: 1 }"]),
         p0=[w.from_host(udp("10.10.9.1", R4, 1, 2))],
         p1=[w.from_peer(udp("10.20.9.1", H4, 1, 2)), sealed(udp("10.20.9.1", H4, 1, 2), 1)],
         drops={"p0": {"policy_discard": 1}, "p1": {"policy_discard": 2}})
    nd = ns(R6, H6, w.PEER, dst=H6)
    case("policy-clear", "clear text that a policy wanted protected, to be forwarded and to us",
         base(), p1=[w.from_peer(good4()), w.from_peer(good6()), w.from_peer(udp(R4, OWN4, 1, 2)),
                     w.from_peer(udp(R6, OWN6, 1, 2))],
         drops={"p1": {"policy_clear": 4}})
    case("policy-clear-nd", "what looks like neighbour discovery does not get round the policies",
         base(), p1=[w.from_peer(nd)], drops={"p1": {"policy_clear": 1}})
    tunnel = dict(tunnels=[f'ipsec0: {{ local: {w.LOCAL4}, remote: {w.REMOTE4}, reqid: 100, '
                           'addresses: [10.99.0.1/24] }'],
                  routes=["{ to: 10.20.0.0/16, tunnel: ipsec0 }", "{ to: 10.21.0.0/16, tunnel: ipsec0 }"])
    sad = [GCM_IN.to_config("reqid: 100"), GCM_OUT.to_config("reqid: 100")]
    case("policy-clear-route", "forged clear text from behind the tunnel, into the tunnel",
         w.config("golden", sad=sad, **tunnel), p0=[w.from_host(udp("10.21.0.1", R4, 1, 2))],
         drops={"p0": {"policy_clear": 1}})
    case("policy-clear-forged", "a forged source from behind the tunnel is not answered through it",
         w.config("golden", sad=sad, **tunnel),
         p0=[w.from_host(udp("10.21.0.1", "10.10.0.254", 1, 2)),
             w.from_host(udp("10.21.0.1", "10.10.9.9", 1, 2, ttl=1))],
         p1=[w.from_peer(udp("10.21.0.1", "192.0.2.1", 1, 2))],
         drops={"p0": {"policy_clear": 2}, "p1": {"policy_clear": 1}})
    case("policy-clear-answer", "no answer in clear to what came protected, whatever a policy lets pass",
         base(spd=["{ dir: out, src: any, dst: any, action: bypass, priority: 2000 }"],
              routes=["{ to: 10.20.0.0/16, via: 192.0.2.2 }"]),
         p1=[sealed(good4(ttl=1), 1), sealed(udp(R4, "10.10.99.9", 1, 2, ttl=1), 2)],
         want1=[w.to_peer(esp.outer(GCM_OUT, GCM_OUT.seal(error4(11, 0, about, dst=R4), n),
                                    tos=0xc0, df=True))
                for n, about in ((1, good4(ttl=1)), (2, udp(R4, "10.10.99.9", 1, 2, ttl=1)))],
         drops={"p1": {"ip_ttl": 2}})
    case("policy-selector", "inside ESP, but outside of what the SA may carry", base(spd=BYPASS, routes=TO_30),
         p1=[sealed(udp("10.66.0.1", H4, 1, 2), 1), sealed(udp(R4, "10.30.0.1", 1, 2), 2),
             sealed(udp(R6, "fd66::1", 1, 2), 3), sealed(good4(), 4)],
         want0=[w.to_host(hop(good4()))], drops={"p1": {"policy_selector": 3}})
    case("policy-selector-route", "route-based: an inner source that is not reached through the tunnel",
         w.config("golden", sad=sad, **tunnel),
         p1=[sealed(udp("10.66.0.1", H4, 1, 2), 1), sealed(udp("10.10.0.9", H4, 1, 2), 2), sealed(good4(), 3)],
         want0=[w.to_host(hop(good4()))], drops={"p1": {"policy_selector": 2}})
    other = w.in_sa(0x1009, "aes-gcm-16", family=6)
    case("policy-wrong-sa", "inside the selectors, but of another SA's policy",
         w.config("golden", sad=[GCM_IN.to_config(), other.to_config()],
                  spd=[BASE_SPD[0], w.policy_in("10.26.0.0/16", "10.10.0.0/16", 6)]),
         p1=[sealed(good4(), 1, other), sealed(udp("10.26.0.1", H4, 1, 2), 1), sealed(good4(), 2)],
         want0=[w.to_host(hop(good4()))], drops={"p1": {"policy_selector": 2}})


def routes():
    spd = ["{ dir: in, src: 10.0.0.0/8, dst: 10.40.0.0/15, action: bypass }",
           "{ dir: out, src: 10.0.0.0/8, dst: 10.40.0.0/15, action: bypass }"]
    none, gone = udp(H4, "10.41.0.1", 1, 2), udp(H4, "10.40.0.1", 1, 2)
    case("route", "no route: the source is told; a discard route: it is not",
         base(spd=spd, routes=["{ to: 10.40.0.0/16, discard: true }"]),
         p0=[w.from_host(none), w.from_host(gone)], want0=[w.to_host(error4(3, 0, hop(none)))],
         drops={"p0": {"route_none": 1, "route_discard": 1}})


def sizes():
    fit, big = udp(H4, R4, 1, 2, b"x" * (1446 - 28), df=True), udp(H4, R4, 1, 2, b"x" * (1447 - 28), df=True)
    fit6, big6 = udp(H6, R6, 1, 2, b"x" * (1446 - 48)), udp(H6, R6, 1, 2, b"x" * (1447 - 48))
    nodf = udp(H4, R4, 1, 2, b"x" * (1447 - 28))
    case("size-gcm", "the largest inner packet over GCM and IPv4 is 1446 bytes; the source is told",
         base(), p0=[w.from_host(p) for p in (fit, big, fit6, big6, nodf)],
         want0=[w.to_host(error4(3, 4, hop(big), word=1446)), w.to_host(error6(2, 0, hop(big6), word=1446))],
         want1=[out(fit, 1, df=True), out(fit6, 2)] +
         [out_own(p, n) for n, p in enumerate(esp.fragments(hop(nodf), 1446), 3)],
         drops={"p0": {"too_big": 2, "frag_split": 1}})
    for name, cipher, auth, family, natt, mtu in (
            ("gcm-6", "aes-gcm-16", None, 6, False, 1426), ("gcm-natt", "aes-gcm-16", None, 4, True, 1438),
            ("cbc-sha1", "aes-cbc", "hmac-sha1-96", 4, False, 1438),
            ("cbc-sha256", "aes-cbc", "hmac-sha256-128", 4, False, 1438),
            ("cbc-sha256-6", "aes-cbc", "hmac-sha256-128", 6, False, 1406)):
        o = w.out_sa(0x2005, cipher, None, auth, family=family, natt=natt)
        fit = udp(H4, R4, 1, 2, b"x" * (mtu - 28), df=True)
        big = udp(H4, R4, 1, 2, b"x" * (mtu - 27), df=True)
        case(f"size-{name}", f"largest inner packet {mtu}", w.config(
            "golden", sad=[o.to_config()], spd=[w.policy_out("10.10.0.0/16", "10.20.0.0/16", family)]),
            p0=[w.from_host(fit), w.from_host(big)],
            want0=[w.to_host(error4(3, 4, hop(big), word=mtu))], want1=[out(fit, 1, o, df=True)],
            drops={"p0": {"too_big": 1}})
    small = ["p0: { device: \"net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap\", "
             f"mac: \"{w.MAC0}\", addresses: [10.10.0.254/24] }}",
             "p1: { device: \"net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap\", "
             f"mac: \"{w.MAC1}\", addresses: [192.0.2.1/24], mtu: 1400 }}"]
    clear = udp(H4, "10.30.0.1", 1, 2, b"x" * 1373, df=True)
    case("size-clear", "clear text that is larger than the MTU of the way out",
         w.config("golden", ports=small, spd=BYPASS[:2], routes=TO_30[:1], base_routes=False,
                  neighbours=[f'{{ port: p0, address: 10.10.0.1, mac: "{w.HOST}" }}',
                              f'{{ port: p1, address: 192.0.2.2, mac: "{w.PEER}" }}']),
         p0=[w.from_host(clear), w.from_host(patch4(clear, 6, b"\0\0"))],
         want0=[w.to_host(error4(3, 4, hop(clear), word=1400))],
         want1=[w.to_peer(p) for p in esp.fragments(hop(patch4(clear, 6, b"\0\0")), 1400)],
         drops={"p0": {"too_big": 1, "frag_split": 1}})


def neighbours():
    """No static entries: ARP and ND, over a link where nobody, or somebody, answers."""
    near = [udp(R4, "10.10.0.5", 1, 2, b"%d" % n) for n in range(10)]
    ask = arp(1, w.MAC0, OWN4, ZERO, "10.10.0.5", dst=BROADCAST)
    case("neigh-failed", "nobody answers: 8 packets wait, more do not; three requests, then the source is told",
         base(), p1=[sealed(p, n + 1) for n, p in enumerate(near)], want0=[ask] * 3,
         want1=[w.to_peer(esp.outer(GCM_OUT, GCM_OUT.seal(
             error4(3, 1, hop(p), src=OWN4, dst=R4), n + 1), tos=0xc0, df=True)) for n, p in enumerate(near[:8])],
         drops={"p1": {"neigh_queue_full": 2, "neigh_failed": 8}}, idle=5000)
    case("neigh-stop", "sgw stops while a packet waits for its neighbour", base(),
         p1=[sealed(near[0], 1)], want0=[ask], drops={"p1": {"stopping": 1}})
    case("neigh-many", "more addresses than the table holds: bounded, counted, and static entries stay",
         base(more_in="replay-window: 4096", ports=[
             f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap", mac: "{w.MAC0}", '
             f'addresses: [10.10.0.254/16, "fd10::254/64"] }}',
             f'p1: {{ device: "net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap", mac: "{w.MAC1}", '
             f'addresses: [{w.LOCAL4}/24, "{w.LOCAL6}/64"] }}'], base_routes=False),
         p1=[sealed(udp(R4, f"10.10.{1 + n // 250}.{1 + n % 250}", 1, 2), n + 1) for n in range(9000)] +
         [sealed(good4(), 9001)],
         want0=None, drops={"p1": {"neigh_queue_full": "+", "neigh_table_full": "+", "stopping": "+"}})


def mixtures():
    """Here, so that the IVs of older cases stay."""
    # all traffic into the tunnel: neighbours, pings to us, IKE and the way to the peer stay where they are
    ask = arp(1, w.HOST, H4, ZERO, OWN4, dst=BROADCAST)
    ping, pong = (icmp4(a, b, kind, 0, 9, b"here", ident=5) for a, b, kind in ((H4, OWN4, 8), (OWN4, H4, 0)))
    world, world_back = udp(H4, "203.0.113.9", 1, 2, b"out"), udp("203.0.113.9", H4, 2, 1, b"back")
    case("route-default", "0.0.0.0/0 and ::/0 into a tunnel: nobody is locked out",
         w.config("golden", sad=[GCM_IN.to_config("reqid: 100"), GCM_OUT.to_config("reqid: 100")],
                  tunnels=[f'ipsec0: {{ local: {w.LOCAL4}, remote: {w.REMOTE4}, reqid: 100 }}'],
                  routes=["{ to: 0.0.0.0/0, tunnel: ipsec0 }", '{ to: "::/0", tunnel: ipsec0 }']),
         p0=[ask, w.from_host(ping), w.from_host(world), w.from_host(mine6())],
         p1=[arp(1, w.PEER, w.REMOTE4, ZERO, w.LOCAL4, dst=BROADCAST), w.from_peer(udp(w.REMOTE4, w.LOCAL4, 500, 500, b"IKE")),
             sealed(world_back, 1), sealed(good6(), 2)],
         want0=[arp(2, w.MAC0, OWN4, w.HOST, H4), w.to_host(pong), w.to_host(hop(world_back)), w.to_host(hop(good6()))],
         want1=[out(world, 1), out(mine6(), 2), arp(2, w.MAC1, w.LOCAL4, w.PEER, w.REMOTE4)],
         drops={"p0": {"arp_taken": 1}, "p1": {"arp_taken": 1, "ike_ignored": 1}})
    case("frag-beyond", "a forwarded fragment that would end behind the longest packet", base(),
         p0=[w.from_host(patch4(mine4(), 6, b"\x1f\xff")), w.from_host(mine4(1))], want1=[out(mine4(1), 1)],
         drops={"p0": {"frag_bad": 1}})
    many = [w.in_sa(0x1100 + n, *a, natt=n % 3 == 2) for n, a in enumerate(w.every_algorithm())]
    send, clear, seqs, want = [], [], {}, []  # ESP in its order, whatever the SA; the clear ones last
    for n in range(27):
        sa = many[n * 7 % 19 * 2]
        seqs[sa.spi] = seqs.get(sa.spi, 0) + 1
        send.append(sealed((good4, good6)[n % 2](n), seqs[sa.spi], sa))
        want.append(w.to_host(hop((good4, good6)[n % 2](n))))
        if n % 14 == 3:
            send.append(sealed(good4(n), n, w.in_sa(0x7777, "aes-gcm-16")))
        if n % 14 == 4:
            clear.append(udp("10.40.0.1", "10.30.0.1", 1, n))
            send.append(w.from_peer(clear[-1]))
    case("burst-mixed", "SAs of many algorithms in one burst with unknown SPIs and clear text", w.config(
        "golden", sad=[sa.to_config() for sa in many], routes=["{ to: 10.30.0.0/16, via: 10.10.0.1 }"],
        spd=[*BASE_SPD[:2], *BYPASS[:2]]),
        p1=send, want0=want + [w.to_host(hop(p)) for p in clear],
        drops={"p1": {"esp_no_sa": 2}})


def write(folder):
    for name, files in CASES.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for file, content in files.items():
            path = os.path.join(folder, name, file)
            if file.endswith(".pcap"):
                esp.pcap_write(path, content)
            else:
                with open(path, "wb") as f:
                    f.write(content)
            if file == "sgw.yaml":
                os.chmod(path, 0o600)


def deterministic():
    """IVs of the peer: the same every time."""
    counter = [0]

    def next_iv(n):
        counter[0] += 1
        return esp.test_key(f"iv {counter[0]}", n)
    esp.os.urandom = next_iv


def main():
    deterministic()
    for group in (good_ways, several, nat_moves, link, ip, local, esp_in, esp_inside, esp_out, policy, routes, sizes, neighbours,
                  *fragments.groups(), *router.groups(), *transport.groups(), *vlan.groups(), mixtures,
                  *faults.groups()):
        group()
    if sys.argv[1:] == ["--check"]:
        bad = []
        with tempfile.TemporaryDirectory() as t:
            write(t)
            for name, files in CASES.items():
                for file in files:
                    try:
                        with open(os.path.join(HERE, name, file), "rb") as f, \
                                open(os.path.join(t, name, file), "rb") as g:
                            if f.read() != g.read():
                                bad.append(f"{name}/{file} differs")
                    except OSError as e:
                        bad.append(str(e))
        folders = {d for d in os.listdir(HERE) if os.path.exists(os.path.join(HERE, d, "sgw.yaml"))}
        bad += [f"{name}/{file}: no such file in make.py" for name in sorted(folders & CASES.keys())
                for file in sorted(set(os.listdir(os.path.join(HERE, name))) - CASES[name].keys())]
        bad += [f"{d}: no such case in make.py" for d in sorted(folders - CASES.keys())]
        print("\n".join(bad + ["run test/golden/make.py"] if bad else []))
        sys.exit(1 if bad else 0)
    write(HERE)
    print(f"{len(CASES)} cases")


main()
