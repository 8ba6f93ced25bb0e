#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves the replay window: 1…1000 each sent twice lets exactly 1000 pass; the left edge is exact;
each position of the window is remembered; a shuffle within the window loses nothing. For windows
of 32, 64, 128, 1024, 4096 and odd sizes, with ESN and without; in both forms of ESP, look-aside with
fewer sizes."""
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import sgw
import world

WINDOWS = {"direct": (32, 64, 128, 1024, 4096, 1, 33, 100, 127, 1000, 4095),
           "look-aside": (32, 64, 128, 4096, 1, 33)}


def model(numbers, window):
    """What RFC 4303 section 3.4.3 says of each number, written down plainly."""
    top, seen, verdicts = 0, set(), []
    for n in numbers:
        if n == 0 or n + window <= top:
            verdicts.append("esp_late")
        elif n in seen:
            verdicts.append("esp_replay")
        else:
            verdicts.append("pass")
            seen.add(n)
            top = max(top, n)
    return verdicts


def shuffled(window, count=1000, seed=7):
    """A random order in which no number comes when the window has passed it."""
    rnd, left, out = random.Random(seed), list(range(1, count + 1)), []
    while left:
        may = [n for n in left[:window] if n < left[0] + window]
        out.append(rnd.choice(may))
        left.remove(out[-1])
    return out


def patterns(window):
    yield "1…1000, each twice in a row", [n for n in range(1, 1001) for _ in (1, 2)], 1000
    yield "1…1000, then again", [*range(1, 1001)] * 2, 1000
    top = 2 * window + 50
    edge = [top, top - window, top - window + 1, top - window, top - window + 1, top, 0, 1]
    yield "left edge", edge, 2 if window > 1 else 1
    inside = [top, *range(top - window + 1, top)]
    yield "every position twice", inside + inside, window
    yield "shuffled within the window", shuffled(window), 1000
    jump = [n for base in (1, 70, 5000, 5001, 5000 + 3 * window, 5000 + 7 * window)
            for n in (base, base, base + 1)]
    yield "jumps over the whole window", jump, None


def bad_trailer(report, folder):
    """An authentic packet with broken padding far ahead must not open the way to replays: two
    windows that disagree about the top infer different high halves of an ESN."""
    spd = [world.policy_in("10.20.0.0/16", "10.10.0.0/16")]
    stranger = esp.eth("02:00:00:00:09:99", world.PEER, b"\x45" + bytes(59))
    for esn in (False, True):
        sa = world.in_sa(0x1003, "aes-gcm-16", esn=esn)

        def packet(seq, pad=None):
            inner = esp.udp("10.20.0.7", "10.10.0.1", seq & 0xffff, 9, b"%06d" % seq)
            pad = bytes([9] * (-(len(inner) + 2) % 4 or 4)) if pad else None
            return world.from_peer(esp.outer(sa, sa.seal(inner, seq, pad=pad)))

        frames = [packet(n) for n in range(1, 101)] + [packet(1000, True)]
        for n in range(1, 101):  # each alone in a burst of 32
            frames += [stranger] * (-len(frames) % 32) + [packet(n)]
        frames += [packet(1100)]
        r, p0, _ = world.run(folder, world.config("replay", sad=[sa.to_config()], spd=spd), p1=frames)
        faults = world.run_faults(r)
        if len(p0) != 101:
            faults.append(f"{len(p0)} packets passed, 101 expected; {r.account.sa_drops}")
        if r.account.sa_drops.get(sa.name) != {"esp_trailer": 1, "esp_replay": 100}:
            faults.append(f"drops {r.account.sa_drops.get(sa.name)}, 1 trailer, 100 replays expected")
        report.check(f"replays behind a bad trailer, ESN {'on' if esn else 'off'}: none passes", faults)


def main():
    report = sgw.Report()
    with tempfile.TemporaryDirectory(prefix="sgw-replay-") as folder:
        for form in world.every_form(report):
            bad_trailer(report, folder)
            for esn in (False, True):
                for window in WINDOWS[form]:
                    sas, frames, cases = [], [], []
                    for i, (name, numbers, passing) in enumerate(patterns(window)):
                        sa = world.in_sa(0x1000 + i, "aes-gcm-16", esn=esn)
                        sas.append(sa.to_config(f"replay-window: {window}"))
                        verdicts = model(numbers, window)
                        assert passing is None or verdicts.count("pass") == passing, (name, window, verdicts.count("pass"))
                        want = {v: verdicts.count(v) for v in set(verdicts)}
                        cases.append((name, sa, want))
                        for k, n in enumerate(numbers):
                            inner = esp.udp("10.20.0.7", "10.10.0.1", i, 9, k.to_bytes(4, "big"))
                            frames.append(world.from_peer(esp.outer(sa, sa.seal(inner, n))))
                    yaml = world.config("replay", sad=sas, spd=[world.policy_in("10.20.0.0/16", "10.10.0.0/16")])
                    r, p0, _ = world.run(folder, yaml, p1=frames)
                    what = f"window {window}, ESN {'on' if esn else 'off'}"
                    report.check(f"account of {len(frames)} packets, {what}", world.run_faults(r))
                    for i, (name, sa, want) in enumerate(cases):
                        have = dict(r.account.sa_drops.get(sa.name, {}))
                        have["pass"] = sum(1 for f in p0 if int.from_bytes(f[34:36], "big") == i)
                        if esn:
                            # RFC 4303 A2.1: what is left of the window is taken for a number of the
                            # next 2^32, and then fails authentication
                            have["esp_late"] = have.get("esp_late", 0) + have.pop("esp_auth", 0)
                        have = {k: n for k, n in have.items() if n}
                        report.check(f"{name}, {what}: {want.get('pass', 0)} pass",
                                     [] if have == want else f"{have}, expected {want}")
    report.end()


main()
