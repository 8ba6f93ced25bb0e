#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the golden cases: proves that a gateway with <case>/sgw.yaml that receives
<case>/send.<port>.pcap sends exactly <case>/expect.<port>.pcap and drops exactly <case>/drops,
that in − out = Σ reasons on every port, that no buffer is lost, and that every reason of
lib/path/drop.h has a case.

  run.py [case…]     all cases, or these; $SGW names the program, $KEEP a folder to keep runs in

ESP is opened with the keys of sgw.yaml on both sides, then compared with everything but IV and
IPv4 identification, which sgw draws itself.
"""
import concurrent.futures
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "test", "lib"))
import esp
import sgw
import world

# Reasons that no capture can bring about: why, and what else covers them.
ELSEWHERE = {
    "esp_prepare": "esp_open and esp_seal let nothing through that librte_ipsec refuses; this is "
                   "the net below, which no test can reach",
    "esp_crypto": "a software crypto device does not fail on what was checked before; likewise",
    "no_headroom": "buffers are sized from the MTU at start; test/unit/test_neigh.c",
    "sa_sequence_reserve": "wants a state file that can not be written: test/smoke/state.sh",
    "loop": "the checker refuses every configuration that could loop: test/config",
    "tx_full": "net_pcap takes everything: test/smoke/link.sh, with a link that is down",
}


def reasons():
    with open(os.path.join(TOP, "lib", "path", "drop.h")) as f:
        return re.findall(r"^\s*X\((\w+), (?:DROP|TAKEN),", f.read(), re.M)


def is_sgws_own(ip):
    """An ICMP error over IPv4: sgw picks its identification."""
    return ip[0] >> 4 == 4 and ip[9] == 1 and ip[(ip[0] & 15) * 4] in (3, 11, 12)


def canonical(frame, sas):
    """What of a frame must be as expected, as text for people; and what is wrong in itself."""
    ip = frame[14:]
    if frame[12:14] not in (b"\x08\x00", b"\x86\xdd"):
        return frame.hex()
    parts = esp.split_outer(ip) if len(ip) >= 20 else None
    sa = sas.get((int.from_bytes(parts[3][:4], "big"), parts[1])) if parts else None
    if sa is None:
        if is_sgws_own(ip):
            if esp.csum(ip[:20]) != b"\0\0":
                return "wrong IPv4 checksum: " + frame.hex()
            return frame[:14 + 4].hex() + "[id]" + ip[6:10].hex() + "[sum]" + ip[12:].hex()
        return frame.hex()
    src, dst, natt, e, info = parts
    text = f"{frame[:14].hex()} {src}>{dst} {info}"
    if len(ip) != info["len"]:
        text += f" frame of {len(frame)} bytes"
    try:
        # tests with ESN stay below 2^32
        seq, iv, inner, next_header = sa.open(e)
    except esp.Refused as why:
        return f"{text} ESP that does not open ({why}): {e.hex()}"
    if is_sgws_own(inner):
        inner = inner[:4] + b"[id]" + inner[6:10] + b"[]" + inner[12:]
    return (f"{text} {'UDP ' if natt else ''}ESP 0x{sa.spi:x} number {seq} next header "
            f"{next_header}: {inner.hex()}")


def compare_drops(folder, account):
    want = {}
    with open(os.path.join(folder, "drops")) as f:
        for line in f:
            port, reason, n = line.split()
            want.setdefault(port, {})[reason] = n
    faults = []
    for port in account.ports.keys() | want.keys():
        have = {r: n for r, n in account.port_drops.get(port, {}).items() if n}
        wanted = want.get(port, {})
        for reason in sorted(have.keys() | wanted.keys()):
            n, w = have.get(reason, 0), wanted.get(reason, "0")
            if (w == "+" and n == 0) or (w != "+" and n != int(w)):
                faults.append(f"port {port}: {reason} {n}, expected {w}")
    return faults


def run_case(name, keep):
    folder = os.path.join(HERE, name)
    work = os.path.join(keep, name)
    shutil.copytree(folder, work)
    os.chmod(os.path.join(work, "sgw.yaml"), 0o600)
    with open(os.path.join(work, "sgw.yaml")) as f:
        text = f.read()
    # cases run side by side: each a name of its own
    sgw.write_config(work, re.sub(r"name: golden\b", f"name: g-{name}"[:37], text))
    idle = 300
    if os.path.exists(os.path.join(folder, "idle")):
        with open(os.path.join(folder, "idle")) as f:
            idle = int(f.read())
    r = sgw.replay(work, idle)
    faults = world.run_faults(r) + compare_drops(folder, r.account)
    sas = {(s.spi, s.dst): s for s in esp.load_sas(os.path.join(work, "sgw.yaml"))}
    for port in ("p0", "p1"):
        expect = os.path.join(folder, f"expect.{port}.pcap")
        if not os.path.exists(expect):
            continue
        want = [canonical(f, sas) for f in esp.pcap_read(expect)]
        have = [canonical(f, sas) for f in world.got(work, port)]
        if want != have:
            faults.append(f"port {port}: {len(want)} frames expected, {len(have)} came")
            for i in range(max(len(want), len(have))):
                a = want[i] if i < len(want) else "nothing"
                b = have[i] if i < len(have) else "nothing"
                if a != b:
                    faults += [f"  frame {i} expected: {a[:1500]}", f"  frame {i} came:     {b[:1500]}"]
                    break
    if faults and r.code == 0:
        faults += ["the account:", *r.out.splitlines()]
    return faults


def main():
    report = sgw.Report()
    every = sorted(d for d in os.listdir(HERE) if os.path.exists(os.path.join(HERE, d, "sgw.yaml")))
    names = sys.argv[1:] or every
    sgw.binary()
    with tempfile.TemporaryDirectory(prefix="sgw-golden-") as temp:
        keep = os.environ.get("KEEP") or temp
        os.makedirs(keep, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
            for name, faults in zip(names, pool.map(lambda n: run_case(n, keep), names)):
                report.check(f"golden {name}", faults)
    if not sys.argv[1:]:
        named = set()
        for name in every:
            with open(os.path.join(HERE, name, "drops")) as f:
                named |= {line.split()[1] for line in f}
        known = reasons()
        faults = [f"{r}: no golden case names it" for r in known if r not in named and r not in ELSEWHERE]
        faults += [f"{r}: is in ELSEWHERE, and has a golden case" for r in ELSEWHERE if r in named]
        faults += [f"{r}: in ELSEWHERE or a case, but not in drop.h"
                   for r in sorted((named | ELSEWHERE.keys()) - set(known))]
        if len(known) < 40:
            faults.append(f"only {len(known)} reasons found in drop.h")
        report.check(f"every drop reason has a golden case ({len(known)}, {len(ELSEWHERE)} elsewhere)", faults)
    report.end()


main()
