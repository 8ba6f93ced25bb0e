#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two workers on one SA, both ways.

Proves that sequence numbers and IVs of an SA that two workers seal for are unique and without a
hole, that every packet they seal opens, and that of ESP packets that arrive at two workers at
once, each twice in all, exactly one copy passes; with and without ESN, GCM and CBC, in both forms
of ESP.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import esp
import sgw
import world

N = 3000  # packets a port
ALGORITHMS = (("aes-gcm-16", 16, None), ("aes-cbc", 16, "hmac-sha1-96"))


def eal():
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    return ["--no-pci", "--lcores", f"0@({cpus}),1@({cpus}),2@({cpus})", "--no-huge", "-m", "256"]


def run(folder, yaml, p0, p1):
    sgw.eal, saved = eal, sgw.eal
    try:
        return world.run(folder, yaml, p0, p1)
    finally:
        sgw.eal = saved


def seal(report, folder, alg, esn):
    """Clear packets on both ports, so that both workers seal for one SA."""
    sa = world.out_sa(0x2001, *alg, esn=esn)
    back = world.in_sa(0x1001, *alg, esn=esn)
    spd = [world.policy_out("10.10.0.0/16", "10.20.0.0/16"),
           world.policy_in("10.20.0.0/16", "10.10.0.0/16")]
    inner = [[esp.udp(f"10.10.0.{port + 1}", "10.20.0.9", 7, 7, i.to_bytes(4, "big"))
              for i in range(N)] for port in range(2)]
    yaml = world.config("workers", system="steering: queues", sad=[sa.to_config(), back.to_config()], spd=spd)
    r, p0, p1 = run(folder, yaml, [world.from_host(x) for x in inner[0]],
                    [world.from_peer(x) for x in inner[1]])
    faults = world.run_faults(r)
    seqs, ivs, got = [], set(), []
    for frame in p1:
        seq, iv, packet, _ = sa.open(esp.split_outer(frame[14:])[3])
        seqs.append(seq)
        ivs.add(iv)
        got.append(packet)
    if sorted(seqs) != list(range(1, 2 * N + 1)):
        faults.append(f"{len(seqs)} sequence numbers, {len(set(seqs))} different, "
                      f"{min(seqs, default=0)}…{max(seqs, default=0)}; 1…{2 * N} expected")
    if len(ivs) != 2 * N:
        faults.append(f"{len(ivs)} different IVs, {2 * N} expected")
    # Order within what each worker got is kept; between the two there is none.
    for port in range(2):
        src = esp.a2b(f"10.10.0.{port + 1}")
        faults += world.difference([esp.hop(x) for x in inner[port]],
                                   [x for x in got if x[12:16] == src])
    report.check(f"two workers seal for one SA: {world.label(*alg)}{', ESN' if esn else ''}", faults)


def opened(report, folder, alg, esn):
    """The same ESP packets on both ports: each passes once, whoever is first."""
    sa = world.in_sa(0x1001, *alg, esn=esn)
    frames, want = [], []
    for i in range(N):
        inner = esp.udp("10.20.0.9", "10.10.0.1", 7, 7, i.to_bytes(4, "big"))
        frames.append(esp.outer(sa, sa.seal(inner, i + 1)))
        want.append(world.to_host(esp.hop(inner)))
    yaml = world.config("workers", system="steering: queues", sad=[sa.to_config("replay-window: 4096")],
                        spd=[world.policy_in("10.20.0.0/16", "10.10.0.0/16")])
    r, p0, _ = run(folder, yaml, [esp.eth(world.MAC0, world.HOST, f) for f in frames],
                   [world.from_peer(f) for f in frames])
    faults = world.run_faults(r) + world.difference(sorted(want), sorted(p0))
    drops = r.account.sa_drops.get(sa.name, {})
    if drops != {"esp_replay": N}:
        faults.append(f"drops of the SA are {drops}, esp_replay {N} expected")
    report.check(f"two workers open for one SA: {world.label(*alg)}{', ESN' if esn else ''}", faults)


def main():
    report = sgw.Report("workers")
    for _ in world.every_form(report):
        for alg in ALGORITHMS:
            for esn in (False, True):
                for test in (seal, opened):
                    with tempfile.TemporaryDirectory() as folder:
                        test(report, folder, alg, esn)
    report.end()


if __name__ == "__main__":
    main()
