#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Steering in software: several workers for what one queue brings, `flows` and `bursts`.

Proves, with two workers and with three on two cores, GCM and CBC, both ways: everything passes and
opens, no sequence number is missing or twice, a window of 128 refuses nothing, the order within a
flow is kept. With `bursts` of a single SA all leaves in the order in which it came, its sequence
numbers strictly ascending, even where packets are cut, or sgw itself has something to say, in
between. Fragments meet whoever got them. With `flows` a flow that is too fast for its worker loses
packets to `steer_full`, which adds up, and its order stays. In every run the sums of the ports hold
and all buffers are back. ESP is made and opened by test/lib/esp.py, which shares nothing with sgw.

  steering.py [text]   all, or the tests whose name has this text in it
"""
import os
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import esp
import sgw
import world

ALGORITHMS = (("aes-gcm-16", 16, None), ("aes-cbc", 16, "hmac-sha1-96"))
FLOWS = 40    # of 40 packets each: what one worker gets of it fits its ring
MANY = 20000  # for `bursts`, which does not read more than can be worked on
SPD = [world.policy_out("10.10.0.0/16", "10.20.0.0/16"), world.policy_in("10.20.0.0/16", "10.10.0.0/16")]


def eal(workers):
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    lcores = ",".join(f"{i}@({cpus})" for i in range(workers + 1))
    return lambda: ["--no-pci", "--lcores", lcores, "--no-huge", "-m", "512"]


def config(mode, sad, spd=SPD, system="", **kw):
    return world.config("steering", system=f"steering: {mode}{system}", sad=sad, spd=spd, **kw)


def run(workers, folder, yaml, p0=(), p1=()):
    sgw.eal, saved = eal(workers), sgw.eal
    try:
        return world.run(folder, yaml, p0, p1)
    finally:
        sgw.eal = saved


def number(i):
    return struct.pack("!I", i)


def clear(flow, i, size=0):
    return esp.udp("10.10.0.1", "10.20.0.9", 1000 + flow, 7, number(flow) + number(i) + bytes(size))


def by_flow(packets):
    """{source port and destination: packets in their order}"""
    out = {}
    for x in packets:
        out.setdefault((x[12:20], x[20:24]), []).append(x)
    return out


def order_faults(mode, want, have):
    if mode == "bursts":
        return world.difference(want, have)
    want, have = by_flow(want), by_flow(have)
    faults = [] if want.keys() == have.keys() else [f"{len(want)} flows expected, {len(have)} came"]
    for flow in want.keys() & have.keys():
        faults += world.difference(want[flow], have[flow])
    return faults


def seq_faults(mode, seqs, n):
    if mode == "flows":
        seqs = sorted(seqs)
    if seqs == list(range(1, n + 1)):
        return []
    at = next((i for i, s in enumerate(seqs) if s != i + 1), len(seqs))
    return [f"sequence numbers: {len(seqs)}, {len(set(seqs))} different; {n} expected, "
            f"packet {at} has {seqs[at:at + 1]}, behind {seqs[max(0, at - 2):at]}"]


def opened_all(sa, frames):
    """(sequence numbers, inner packets) of what was sealed."""
    got = [sa.open(esp.split_outer(f[14:])[3]) for f in frames]
    return [g[0] for g in got], [g[2] for g in got]


def traffic(mode):
    if mode == "flows":
        return [clear(f, i, 16 * (f % 9)) for i in range(FLOWS) for f in range(FLOWS)]
    return [clear(i % 3, i, i % 700) for i in range(MANY)]


def seal(folder, mode, workers, alg):
    """Clear packets on one port: sealed for one SA."""
    sa, back = world.out_sa(0x2001, *alg), world.in_sa(0x1001, *alg)
    inner = traffic(mode)
    r, _, p1 = run(workers, folder, config(mode, [sa.to_config(), back.to_config()]),
                   [world.from_host(x) for x in inner])
    seqs, got = opened_all(sa, p1)
    return world.run_faults(r) + seq_faults(mode, seqs, len(inner)) + \
        order_faults(mode, [esp.hop(x) for x in inner], got)


def open_(folder, mode, workers, alg):
    """ESP of one SA (bursts) or many (flows), in the order of its sequence numbers: a window of
    128 lets everything pass, that is its packets were not mixed by more."""
    n_sas = 1 if mode == "bursts" else FLOWS
    sas = [world.in_sa(0x1001 + i, *alg) for i in range(n_sas)]
    n = MANY if mode == "bursts" else FLOWS * FLOWS
    inner = [esp.udp("10.20.0.9", "10.10.0.1", 1000 + i % n_sas, 7, number(i) + bytes(i % 500))
             for i in range(n)]
    frames = [world.from_peer(esp.outer(sas[i % n_sas], sas[i % n_sas].seal(x, i // n_sas + 1)))
              for i, x in enumerate(inner)]
    r, p0, _ = run(workers, folder, config(mode, [s.to_config("replay-window: 128") for s in sas], SPD[1:]),
                   p1=frames)
    return world.run_faults(r) + drop_faults(r) + \
        order_faults(mode, [esp.hop(x) for x in inner], [f[14:] for f in p0])


def drop_faults(r, allowed=()):
    drops = {k: v for d in r.account.port_drops.values() for k, v in d.items() if k not in allowed}
    return [f"reasons {drops}, none expected"] if drops else []


def cut(folder, mode, workers, alg):
    """Jumbo packets without DF: one becomes six, a burst more than a slot's array holds, and all
    pieces of a packet are sealed one behind the other."""
    sa, back = world.out_sa(0x2001, *alg), world.in_sa(0x1001, *alg)
    inner = [clear(i % 5, i, 7900 if i % 3 else 20) for i in range(600)]
    r, _, p1 = run(workers, folder, config(mode, [sa.to_config(), back.to_config()], system=", mbufs: 16384",
                                           mtu=9000, mtu1=1500).replace("mbufs: 4096, ", ""),
                   [world.from_host(x) for x in inner])
    seqs, got = opened_all(sa, p1)
    faults = world.run_faults(r) + drop_faults(r, ("frag_split",)) + seq_faults(mode, seqs, len(got))
    whole, pieces = [], 0
    for x in got:
        frag = struct.unpack("!H", x[6:8])[0]
        if frag & 0x1fff:
            if struct.unpack("!H", whole[-1][4:6])[0] != struct.unpack("!H", x[4:6])[0] or \
                    len(whole[-1]) != (frag & 0x1fff) * 8 + 20:
                faults.append(f"a piece of another packet, or out of place, behind {len(whole)} packets")
                break
            whole[-1] += x[20:]
        else:
            whole.append(x)
        pieces += bool(frag & 0x3fff)
    if pieces < 6 * 400:
        faults.append(f"only {pieces} pieces")
    return faults + world.difference([x[20:] for x in inner], [x[20:] for x in whole])


def echo(i):
    icmp = struct.pack("!BBHHI", 8, 0, 0, 7, i)
    icmp = icmp[:2] + esp.csum(icmp) + icmp[4:]
    return esp.ip_header("10.20.0.9", "10.10.0.254", 1, len(icmp)) + icmp


def told(folder, mode, workers, alg):
    """Pings to sgw stand between packets that pass through it, both ways: the answers, which sgw
    makes behind a burst, go into a tunnel of the SA that all else is sealed with, in turn."""
    sa, back = world.out_sa(0x2001, *alg), world.in_sa(0x1001, *alg)
    n = 12000
    inner = [esp.udp("10.20.0.9", "10.10.0.1", 1000, 7, number(i)) if i % 40 else echo(i) for i in range(n)]
    esp_in = [world.from_peer(esp.outer(back, back.seal(x, i + 1))) for i, x in enumerate(inner)]
    out = [clear(0, i) for i in range(n)]
    r, p0, p1 = run(workers, folder, config(mode, [sa.to_config(), back.to_config("replay-window: 128")]),
                    [world.from_host(x) for x in out], esp_in)
    seqs, got = opened_all(sa, p1)
    faults = world.run_faults(r) + drop_faults(r) + seq_faults(mode, seqs, n + n // 40)
    faults += world.difference([number(i) for i in range(0, n, 40)],
                               [x[26:30] for x in got if x[9] == 1 and x[20] == 0])
    faults += world.difference([esp.hop(x) for x in out], [x for x in got if x[9] != 1])
    return faults + world.difference([esp.hop(x) for i, x in enumerate(inner) if i % 40], [f[14:] for f in p0])


def fragments(folder, mode, workers, alg):
    """ESP that was fragmented on its way, pieces far from each other, and fragments inside, some in
    ESP that was fragmented and some not."""
    back = world.in_sa(0x1001, *alg)
    packets = [esp.udp("10.20.0.9", "10.10.0.1", 1000, 7, number(i) + bytes(1400), ident=i + 1) for i in range(300)]
    seq, outer = 0, []
    for i, x in enumerate(packets):
        inner = esp.cut(x, [1000]) if i % 3 == 0 else [x]
        for y in inner:
            seq += 1
            o = esp.outer(back, back.seal(y, seq), ident=seq)
            outer.append(esp.fragments(o, 700) if i % 2 else [o])
    late = [f[0] for f in outer[:60]] + [g for f in outer[:60] for g in f[1:]]
    frames = late + [g for f in outer[60:] for g in f]
    spd = [world.policy_in("10.20.0.0/16", "10.10.0.0/16", more=", proto: udp, dport: 7")]
    r, p0, _ = run(workers, folder, config(mode, [back.to_config("replay-window: 1024")], spd),
                   p1=[world.from_peer(f) for f in frames])
    got = {f[42:46]: f[34:] for f in p0}
    faults = world.run_faults(r) + drop_faults(r, ("frag_taken", "frag_split"))
    if len(got) != len(packets):
        faults.append(f"{len(got)} of {len(packets)} packets came")
    return faults + [f"packet {i} is not what was sent" for i, x in enumerate(packets)
                     if got.get(number(i), x[20:]) != x[20:]][:3]


def full(folder, mode, workers, alg):
    """One flow, far more than a ring holds, as fast as a file can be read. Which worker has it is
    chance, so in ten runs the ring is full at least once."""
    sa, back = world.out_sa(0x2001, *alg), world.in_sa(0x1001, *alg)
    inner = [clear(0, i, 1200) for i in range(5000)]
    want = [esp.hop(x) for x in inner]
    for _ in range(10):
        r, _, p1 = run(workers, folder, config(mode, [sa.to_config(), back.to_config()]),
                       [world.from_host(x) for x in inner])
        seqs, got = opened_all(sa, p1)
        lost = r.account.port_drops["p0"].get("steer_full", 0)
        faults = world.run_faults(r) + drop_faults(r, ("steer_full",)) + seq_faults("bursts", seqs, len(inner) - lost)
        at = iter(want)
        if not all(x in at for x in got):  # a subsequence
            faults.append("the order of the flow is not kept")
        if faults or lost:
            return faults
    return ["the ring was never full"]


def counters(folder, mode, workers, alg):
    """Telemetry tells who worked how much on what."""
    sa, back = world.out_sa(0x2001, *alg), world.in_sa(0x1001, *alg)
    inner = [clear(i % 40, i, 900) for i in range(1600)]
    world.write(folder, config(mode, [sa.to_config(), back.to_config()]), [world.from_host(x) for x in inner])
    g = sgw.Running(folder, args=eal(workers)())
    try:
        g.wait_ready()
        time.sleep(1)
        numbers = sgw.telemetry("steering", "/sgw/worker/list")
        infos = [sgw.telemetry("steering", f"/sgw/worker/info,{i}") for i in numbers]
        engines = {sgw.telemetry("steering", f"/sgw/sa/info,{n}")["engine"]
                   for n in sgw.telemetry("steering", "/sgw/sa/list")}
    finally:
        r = g.stop()
    faults = world.run_faults(r)
    over, taken = (sum(i[k] for i in infos) for k in ("handed_over", "taken_over"))
    if len(infos) != workers or over != taken or not over:
        faults.append(f"{len(infos)} workers, handed over {over}, taken over {taken}")
    if {i["isa"] for i in infos} - {"AVX512", "AVX2", "AVX", "SSE"} or len(engines) != 1 or \
            engines - {"direct", "look-aside"}:
        faults.append(f"vectors {[i['isa'] for i in infos]}, engines {engines}")
    if mode == "bursts" and sum(i["slots"] for i in infos) < 1600 / 64:
        faults.append(f"slots: {[i['slots'] for i in infos]}")
    return faults + [f"cycles {i['cycles']}, busy {i['busy_cycles']}" for i in infos
                     if not 0 < i["busy_cycles"] < i["cycles"]]


TESTS = (
    (seal, ("flows", "bursts"), (2, 3)),
    (open_, ("flows", "bursts"), (2, 3)),
    (cut, ("bursts",), (2, 3)),
    (told, ("bursts",), (2, 3)),
    (fragments, ("flows", "bursts"), (2,)),
    (full, ("flows",), (2,)),
    (counters, ("flows", "bursts"), (2,)),
)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    report = sgw.Report("steering")
    for test, modes, counts in TESTS:
        for mode in modes:
            for workers in counts:
                for alg in ALGORITHMS:
                    name = f"{test.__name__.strip('_')}: {mode}, {workers} workers, {world.label(*alg)}"
                    if only in name:
                        with tempfile.TemporaryDirectory() as folder:
                            report.check(name, test(folder, mode, workers, alg))
    report.end()


if __name__ == "__main__":
    main()
