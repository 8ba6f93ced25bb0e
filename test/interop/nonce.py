#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that no (key, nonce) pair is used twice: not within a run, not over restarts with the
state file, and not (by chance) even without it; that equal packets share no block of CBC; and that
counter modes with static keys and no state file are refused. In both forms of ESP, look-aside with
fewer ciphers. (kill -9: test/smoke/restart.sh.)"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import sgw
import world

SAME = esp.udp("10.10.0.1", "10.20.0.7", 40001, 40002, b"the same in every packet " * 20)
COUNT = 200
COUNTERS = {"direct": (("aes-gcm-16", None), ("aes-gcm-8", None), ("chacha20-poly1305", None),
                       ("aes-ctr", "hmac-sha256-128")),
            "look-aside": (("aes-gcm-16", None), ("aes-ctr", "hmac-sha256-128"))}
SPD = [world.policy_out("10.10.0.0/16", "10.20.0.0/16")]


def run(folder, sa, **kw):
    r, _, p1 = world.run(folder, world.config("nonce", sad=[sa.to_config()], spd=SPD, **kw),
                         p0=[world.from_host(SAME)] * COUNT)
    packets = [esp.split_outer(f[14:])[3] for f in p1]
    faults = world.run_faults(r)
    if len(packets) != COUNT:
        faults.append(f"{len(packets)} packets, {COUNT} expected; {r.account.port_drops}")
    for p in packets:
        if sa.open(p)[2] != esp.hop(SAME):
            faults.append("another packet inside")
    return packets, faults


def twice(things):
    seen = set()
    return [t.hex() for t in things if t in seen or seen.add(t)][:3]


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-nonce-") as folder:
        state = os.path.join(folder, "nonce.state")
        for form in world.every_form(report):
            for cipher, auth in COUNTERS[form]:
                sa, every, last = world.out_sa(0x2001, cipher, None, auth), [], 0
                for start in range(3):
                    packets, faults = run(folder, sa, system=f"state: {state}",
                                          lab="allow-published-keys: lab-only")
                    numbers = [sa.open(p)[0] for p in packets]
                    if numbers and numbers[0] <= last:
                        faults.append(f"starts at {numbers[0]}, {last} was used")
                    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                        faults.append("numbers are not in order")
                    last = numbers[-1]
                    every += packets
                    report.check(f"{cipher}: start {start + 1} on one state file goes on above", faults)
                report.check(f"{cipher}: no IV twice in {len(every)} packets of 3 runs",
                             twice(p[8:16] for p in every))
                if os.stat(state).st_mode & 0o777 != 0o600:
                    report.check("mode of the state file", oct(os.stat(state).st_mode))
                os.unlink(state)
                again, faults = run(folder, sa, system=f"state: {state}", lab="allow-published-keys: lab-only")
                report.check(f"{cipher}: nor when the state file was lost",
                             faults + twice(p[8:16] for p in every + again))
                os.unlink(state)
                world.write(folder, world.config("nonce", sad=[sa.to_config()], spd=SPD,
                                                 lab="allow-published-keys: lab-only"))
                r = sgw.replay(folder)
                report.check(f"{cipher}: no state file and no permission: refused, told how",
                             [] if r.code == 3 and "state" in r.err else f"exit code {r.code}: {r.err}")
            for key_len in (16, 32) if form == "direct" else (16,):
                sa, every = world.out_sa(0x2002, "aes-cbc", key_len, "hmac-sha1-96"), []
                for _ in range(2):
                    packets, faults = run(folder, sa)
                    every += packets
                    report.check(f"aes-cbc/{8 * key_len}: a run", faults)
                # every block of every packet, the IV among them, without number and ICV
                blocks = [p[i:i + 16] for p in every for i in range(8, len(p) - sa.icv_len, 16)]
                report.check(f"aes-cbc/{8 * key_len}: {len(every)} equal packets share none of "
                             f"{len(blocks)} blocks", twice(blocks))
                # RFC 3602: not to be foretold. A counter would differ in few bits.
                ivs = [int.from_bytes(p[8:24], "big") for p in every]
                bits = sum(bin(a ^ b).count("1") for a, b in zip(ivs, ivs[1:])) / (len(ivs) - 1)
                report.check(f"aes-cbc/{8 * key_len}: following IVs differ in {bits:.1f} of 128 bits",
                             [] if 56 < bits < 72 else "64 expected of random values")
    report.end()


main()
