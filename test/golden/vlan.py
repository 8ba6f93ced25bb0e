# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of VLAN subinterfaces, IEEE 802.1Q: v0 is tag 10 of p0, v1 tag 20 of p1. The little
world's addresses are those of v0 and v1; p0 has a network of its own without a tag."""
import struct

from fragments import big4, big6
from kit import (BASE_SPD, BROADCAST, GCM_IN, GCM_OUT, H4, H6, OWN4, OWN6, R4, R6, ZERO, arp, case, error4, error6, esp,
                 good4, good6, hop, icmp6, mine4, mine6, ns, out, sealed, udp, w)

U4 = "10.10.1.1"  # the host without a tag
V0, V1 = 10, 20


def tag(frame, vlan, kind=b"\x81\x00"):
    return frame[:12] + kind + struct.pack("!H", vlan) + frame[12:]


def conf(mtu0=1500, mtu1=1500, spd=BASE_SPD):
    return w.config(
        "golden", sad=[GCM_IN.to_config(), GCM_OUT.to_config()], spd=spd,
        ports=[f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap", mac: "{w.MAC0}", '
               'addresses: [10.10.1.254/24] }',
               f'p1: {{ device: "net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap", mac: "{w.MAC1}" }}',
               f'v0: {{ parent: p0, vlan: {V0}, mtu: {mtu0}, addresses: [10.10.0.254/24, "fd10::254/64"] }}',
               f'v1: {{ parent: p1, vlan: {V1}, mtu: {mtu1}, addresses: [{w.LOCAL4}/24, "{w.LOCAL6}/64"] }}'],
        neighbours=[f'{{ port: v0, address: {H4}, mac: "{w.HOST}" }}', f'{{ port: v0, address: "{H6}", mac: "{w.HOST}" }}',
                    f'{{ port: p0, address: {U4}, mac: "{w.HOST}" }}',
                    f'{{ port: v1, address: {w.REMOTE4}, mac: "{w.PEER}" }}',
                    f'{{ port: v1, address: "{w.REMOTE6}", mac: "{w.PEER}" }}'])


def ways():
    bare = udp(U4, R4, 1, 2, b"no tag")
    back = udp(R4, U4, 2, 1, b"no tag")
    case("vlan", "tags in and out, ESP in a VLAN; the parent's own network has none", conf(),
         p0=[tag(w.from_host(mine4()), V0), tag(w.from_host(mine6()), V0), w.from_host(bare)],
         p1=[tag(sealed(good4(), 1), V1), tag(sealed(good6(), 2), V1), tag(sealed(back, 3), V1)],
         want0=[w.to_host(hop(back)), tag(w.to_host(hop(good4())), V0), tag(w.to_host(hop(good6())), V0)],
         want1=[tag(out(p, n), V1) for n, p in enumerate((mine4(), mine6(), bare), 1)])
    foreign = esp.eth("02:00:00:00:00:99", w.HOST, mine4())
    case("vlan-tags", "unknown and double tags are dropped, tag 0 is none, priority bits do not matter; "
         "ESP to us is taken on whatever link it comes (RFC 1122 section 3.3.4.2)", conf(),
         p0=[tag(w.from_host(mine4()), 11), tag(w.from_host(mine4()), V1), tag(w.from_host(mine4()), 0xfff),
             tag(w.from_host(mine4()), V0, b"\x88\xa8"), tag(tag(w.from_host(mine4()), 5), V0),
             tag(tag(w.from_host(mine4()), V0), 0), tag(w.from_host(mine4()), V0)[:17], tag(foreign, V0),
             tag(w.from_host(udp(U4, R4, 1, 2)), 0), tag(w.from_host(mine4(1)), 0xf000 | V0),
             tag(w.from_host(mine4()), V0)[:16] + b"\x88\xcc" + b"\0" * 50],
         p1=[tag(sealed(good4(), 1), V0), tag(sealed(good4(), 1), 0xe000 | V1), sealed(good4(1), 2)],
         want0=[tag(w.to_host(hop(good4(n))), V0) for n in (0, 1)],
         want1=[tag(out(udp(U4, R4, 1, 2), 1), V1), tag(out(mine4(1), 2), V1)],
         drops={"p0": {"eth_vlan": 5, "eth_runt": 1}, "v0": {"eth_vlan": 1, "eth_foreign": 1, "eth_type": 1},
                "p1": {"eth_vlan": 1}})


def neighbours():
    ask, asked = arp(1, w.HOST, H4, ZERO, OWN4, dst=BROADCAST), arp(2, w.MAC0, OWN4, w.HOST, H4)
    own = arp(1, w.HOST, U4, ZERO, "10.10.1.254", dst=BROADCAST)
    case("vlan-arp", "ARP belongs to the VLAN of its address", conf(),
         p0=[tag(ask, V0), ask, own, tag(own, V0)],
         want0=[arp(2, w.MAC0, "10.10.1.254", w.HOST, U4), tag(asked, V0)],
         drops={"p0": {"arp_foreign": 1, "arp_taken": 1}, "v0": {"arp_foreign": 1, "arp_taken": 1}})
    ask6 = esp.eth("33:33:ff:00:02:54", w.HOST, ns(H6, OWN6, w.HOST))
    answer = icmp6(OWN6, H6, 136, 0, 0xe0000000, esp.a2b(OWN6) + b"\2\1" + esp.mac(w.MAC0), ttl=255)
    case("vlan-nd", "neighbour discovery likewise: the other link is not answered", conf(),
         p0=[tag(ask6, V0), ask6], want0=[tag(esp.eth(w.HOST, w.MAC0, answer), V0)],
         drops={"v0": {"nd_taken": 1}, "p0": {"nd_taken": 1}})
    near = udp(R4, "10.10.0.5", 1, 2)
    case("vlan-resolve", "a question for a neighbour has the tag of its link", conf(),
         p1=[tag(sealed(near, 1), V1)], want0=[tag(arp(1, w.MAC0, OWN4, ZERO, "10.10.0.5", dst=BROADCAST), V0)],
         drops={"v1": {"stopping": 1}})


def sizes():
    fit, fit6, big, big6_ = big4(1446, 1, df=True), big6(1446, 2), big4(1447, 3, df=True), big6(1447, 4)
    case("vlan-mtu", "the tag is not part of the MTU: 1500 bytes of IP in and out", conf(),
         p0=[tag(w.from_host(p), V0) for p in (fit, fit6, big4(1500, 5, df=True), big, big6_, big4(1501, 6))],
         want0=[tag(w.to_host(error4(3, 4, hop(p), word=1446)), V0) for p in (big4(1500, 5, df=True), big)] +
         [tag(w.to_host(error6(2, 0, hop(big6_), word=1446)), V0)],
         want1=[tag(out(fit, 1, df=True), V1), tag(out(fit6, 2), V1)],
         drops={"v0": {"too_big": 3, "eth_oversize": 1}})
    fit, fit6, big, big6_ = big4(1346, 1, df=True), big6(1346, 2), big4(1347, 3, df=True), big6(1347, 4)
    case("vlan-mtu-1400", "a subinterface with a lower MTU than its port", conf(mtu1=1400),
         p0=[tag(w.from_host(p), V0) for p in (fit, fit6, big, big6_)],
         want0=[tag(w.to_host(error4(3, 4, hop(big), word=1346)), V0), tag(w.to_host(error6(2, 0, hop(big6_), word=1346)), V0)],
         want1=[tag(out(fit, 1, df=True), V1), tag(out(fit6, 2), V1)], drops={"v0": {"too_big": 2}})


def groups():
    return [ways, neighbours, sizes]
