# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of what no capture can bring about: sgw-fault does it, fault.c says how. A capture comes
in bursts of BURST packets, first one of p0, then one of p1; then both send what they have."""
from fragments import big4, many_out
from kit import (BASE_SPD, BROADCAST, GCM_IN, H4, OWN4, R4, ZERO, arp, base, case, esp, good4, good6, hop, icmp4, mine4,
                 mine6, out, sealed, udp, w)
import vlan

BURST = 64  # of lib/path/worker.h


def own_link(net):
    """Clear text to a network on the link of p1 may pass."""
    return [f"{{ dir: {d}, src: 10.0.0.0/8, dst: {net}, action: bypass }}" for d in ("in", "out")]


def crypto():
    mine, good = ([make(n) for n in range(BURST + 8)] for make in (mine4, good4))
    case("fault-prepare-out", "librte_ipsec refuses one packet: all of its SA's burst are dropped, their numbers are "
         "gone; the next burst goes on", base(system="crypto: look-aside"), p0=[w.from_host(p) for p in mine],
         want1=[out(p, n) for n, p in enumerate(mine, 1)][BURST:],
         drops={"p0": {"esp_prepare": BURST}}, fault="prepare")
    case("fault-prepare-in", "the same on the way in: their numbers stay unused", base(system="crypto: look-aside"),
         p1=[sealed(p, n) for n, p in enumerate(good[:BURST], 1)] + [sealed(p, n) for n, p in enumerate(good[BURST:], 5)],
         want0=[w.to_host(hop(p)) for p in good[BURST:]],
         drops={"p1": {"esp_prepare": BURST}}, fault="prepare")
    for esn in (False, True):
        o = w.out_sa(0x2001, "aes-gcm-16", esn=esn)
        case(f"fault-crypto-out{'-esn' if esn else ''}", "the crypto fails for every second packet: it is not "
             "sent, and its number not used again", base(sa_out=o),
             p0=[w.from_host(p) for p in (mine4(), mine4(1), mine6(), mine6(1), mine4(2))],
             want1=[out(mine4(), 1, o), out(mine6(), 3, o), out(mine4(2), 5, o)],
             drops={"p0": {"esp_crypto": 2}}, fault="crypto")
    case("fault-crypto-in", "the same on the way in: no forgery and no replay, the number may come again", base(),
         p1=[sealed(good4(), 1), sealed(good4(1), 2), sealed(good4(2), 2), sealed(good6(), 3), sealed(good6(1), 3)],
         want0=[w.to_host(hop(p)) for p in (good4(), good4(2), good6(1))],
         drops={"p1": {"esp_crypto": 2}}, fault="crypto")
    case("fault-reserve", "three numbers are reserved, and no more in time: the fourth packet is not sent", base(),
         p0=[w.from_host(mine4(n)) for n in range(5)], p1=[sealed(good4(n), 7 + n) for n in range(5)],
         want0=[w.to_host(hop(good4(n))) for n in range(5)], want1=[out(mine4(n), n + 1) for n in range(3)],
         drops={"p0": {"sa_sequence_reserve": 2}}, fault="reserve")


def ports():
    mine = [mine4(n) for n in range(BURST + 1)]
    # of 64 it takes 32, 16, 8, 4, 2, 1; of one none
    case("fault-tx", "p1 takes half of what it is offered, and again of the rest: the last packet of each burst is left",
         base(), p0=[w.from_host(p) for p in mine], p1=[sealed(good4(n), n + 1) for n in range(3)],
         want0=[w.to_host(hop(good4(n))) for n in range(3)], want1=[out(p, n) for n, p in enumerate(mine[:BURST - 1], 1)],
         drops={"p0": {"tx_full": 2}}, fault="tx")
    many = [udp(H4, f"10.20.{n % 40}.7", 1, 2, b"") for n in range(2600)]
    case("fault-steer", "a worker that does not take what another one hands over: what its ring does not hold is dropped",
         base(system="steering: flows"), p0=[w.from_host(p) for p in many], want1=None,
         drops={"p0": {"steer_full": "+"}}, fault="steer")
    ping = icmp4(R4, OWN4, 8, 0, 9, b"here", ident=5)
    case("fault-tx-answer", "p1 does not take an answer: counted where the question came from, which is p1 too", base(),
         p1=[sealed(ping, 1), sealed(good4(), 2)], want0=[w.to_host(hop(good4()))],
         drops={"p1": {"tx_full": 1}}, fault="tx")
    clear = [udp(s, d, 1, 2, b"clear") for s, d in ((vlan.U4, w.REMOTE4), (vlan.U4, "192.0.2.9"), (H4, w.REMOTE4))]
    case("fault-headroom", "packets at the front of their buffers: what needs more room in front than they bring is not "
         "sent, after waiting for its neighbour likewise; the others are",
         vlan.conf(spd=[*BASE_SPD, *own_link("192.0.2.0/24")]),
         p0=[w.from_host(clear[0]), w.from_host(clear[1]), w.from_host(udp(vlan.U4, R4, 1, 2)),
             vlan.tag(w.from_host(clear[2]), vlan.V0)],
         p1=[vlan.tag(arp(2, w.PEER, "192.0.2.9", w.MAC1, w.LOCAL4), vlan.V1), vlan.tag(sealed(good4(), 1), vlan.V1)],
         want0=[vlan.tag(w.to_host(hop(good4())), vlan.V0)],
         want1=[vlan.tag(arp(1, w.MAC1, w.LOCAL4, ZERO, "192.0.2.9", dst=BROADCAST), vlan.V1),
                vlan.tag(w.to_peer(hop(clear[2])), vlan.V1)],
         drops={"p0": {"no_headroom": 3}, "v1": {"arp_taken": 1}}, fault="headroom")


def pings(n, size):
    """(fragments of a ping to us, the answer)"""
    data = esp.test_key(f"ping {n}", size)
    ping, pong = (icmp4(a, b, kind, 0, 9, data, ident=n) for a, b, kind in ((H4, OWN4, 8), (OWN4, H4, 0)))
    return esp.fragments(ping, 1500 if size > 1480 else size // 2 + 40), pong


def buffers():
    asked = [pings(n, 2000) for n in (1, 2, 3)]
    whole = esp.outer(GCM_IN, GCM_IN.seal(big4(1400, 1, R4, H4), 1))
    pieces = esp.fragments(whole, 800, ident=7)
    case("fault-big", "two buffers for reassembly: the third packet of a burst finds none, the next burst does", base(),
         p0=[w.from_host(f[i]) for i in (0, 1) for f, _ in asked], p1=[w.from_peer(p) for p in pieces],
         want0=[w.to_host(f) for _, pong in asked[:2] for f in esp.fragments(pong, 1500)] +
         [w.to_host(hop(big4(1400, 1, R4, H4)))],
         drops={"p0": {"no_buffer": 2, "frag_taken": 2, "frag_split": 2}, "p1": {"frag_taken": len(pieces) - 1}},
         fault="big")
    big = [big4(1500, n) for n in range(3)]
    small = [mine4(n) for n in range(BURST - 2)]
    first = [esp.fragments(hop(p), 1446)[0] for p in big[:2]]
    case("fault-pool-cut", "one free buffer: the first piece of a packet leaves, the rest of it does not; what needs no "
         "buffer passes, and with the next burst everything does", base(),
         p0=[w.from_host(p) for p in (big[0], *small, big[1], big[2])],
         want1=many_out([first[0], *(hop(p) for p in small), first[1], *esp.fragments(hop(big[2]), 1446)]),
         drops={"p0": {"no_buffer": 2, "frag_split": 1}}, fault="pool")
    pieces, _ = pings(1, 200)
    near = [f"192.0.2.{n}" for n in (11, 12, 13)]
    case("fault-pool-send", "what was put together finds no buffer to be sent in: the two of its pieces and the free one "
         "are questions for neighbours", base(spd=own_link("192.0.2.0/24")),
         p0=[w.from_host(p) for p in (*pieces, *(udp(H4, a, 1, 2) for a in near))],
         want1=[arp(1, w.MAC1, w.LOCAL4, ZERO, a, dst=BROADCAST) for a in near],
         drops={"p0": {"no_buffer": 1, "frag_taken": 1, "stopping": 3}}, fault="pool")


def loop():
    peers = ("192.0.2.11", "192.0.2.12", w.REMOTE4)
    sas = [w.make_sa(0x2001 + n, "aes-gcm-16", None, None, w.LOCAL4, peer) for n, peer in enumerate(peers)]
    packets = [udp(H4, f"10.{20 + n}.0.1", 1, 2) for n in range(3)]
    case("fault-loop", "the way to the peer leads to ourselves, or into a tunnel: not sent again; the third tunnel is good",
         w.config("golden", sad=[sa.to_config(f"reqid: {n}") for n, sa in enumerate(sas, 1)],
                  tunnels=[f"ipsec{n}: {{ local: {w.LOCAL4}, remote: {peer}, reqid: {n} }}"
                           for n, peer in enumerate(peers, 1)],
                  routes=[f"{{ to: 10.{20 + n}.0.0/16, tunnel: ipsec{n + 1} }}" for n in range(3)]),
         p0=[w.from_host(p) for p in packets], want1=[out(packets[2], 1, sas[2])],
         drops={"p0": {"loop": 2}}, fault="loop")


def groups():
    return [crypto, ports, buffers, loop]
