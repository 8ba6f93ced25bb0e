#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the golden cases: proves that a gateway with <case>/sgw.yaml that receives
<case>/send.<port>.pcap sends exactly <case>/expect.<port>.pcap and drops exactly <case>/drops,
that in − out = Σ reasons on every port, that no buffer is lost, and that every reason of
lib/path/drop.h has a case.

  run.py [case…]     all cases, or these; $SGW names the program, $KEEP a folder to keep runs in

ESP is put together from fragments, and opened with the keys of sgw.yaml, on both sides; then
everything is compared but IV and identifications, which sgw draws itself. A case may have a file
`fault`: no capture can bring that about, so sgw-fault of the same build is run, which does (fault.c). A case
may have a file `stderr`: lines of it that begin with "! " must not be part of what sgw says, the others
must, as often as they stand there.
"""
import concurrent.futures
import ipaddress
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "test", "lib"))
import esp
import sgw
import world


# ESP has two forms; cases that look at its bytes and lengths are run with the second one
# (system.crypto: look-aside) as well.
BOTH_FORMS = re.compile(r"(both|dscp|df|ecn|esp|fault-(crypto|headroom|reserve)|life|natt|outer|policy-wrong-sa|sa|"
                        r"several|size|tfc|tunnel)-")
SECOND = " (look-aside)"


def with_second_form(names):
    for name in names:
        yield name
        with open(os.path.join(HERE, name, "sgw.yaml")) as f:
            if BOTH_FORMS.match(name) and "crypto:" not in (text := f.read()) and "mode: tunnel" in text:
                yield name + SECOND


def reasons():
    with open(os.path.join(TOP, "lib", "path", "drop.h")) as f:
        return re.findall(r"^\s*X\((\w+), (?:DROP|TAKEN),", f.read(), re.M)


OWN6 = {esp.a2b(a) for a in ("fd10::254", world.LOCAL6)}


def is_sgws_own(ip):
    """An ICMP error over IPv4: sgw picks its identification."""
    return ip[0] >> 4 == 4 and ip[9] == 1 and ip[(ip[0] & 15) * 4] in (3, 11, 12)


class Canonical:
    """Frames of one port in their order as text for people: what of them must be as expected, and
    what is wrong in itself. Fragments of ESP are put together; identifications that sgw draws
    become the number of the packet that they belong to."""

    def __init__(self, sas):
        self.sas, self.idents, self.pieces = sas, {}, {}

    def number(self, *key):
        return self.idents.setdefault(key, len(self.idents))

    def mask6(self, ip):
        """sgw's own IPv6 fragments: (text of the identification, packet without it)."""
        if ip[0] >> 4 != 6 or ip[8:24] not in OWN6:
            return "", ip
        off, proto, _ = esp.skip6(ip, (0, 43))
        if proto != 44 or len(ip) < off + 8:
            return "", ip
        return f"[id {self.number(6, ip[off + 4:off + 8])}] ", ip[:off + 4] + ip[off + 8:]

    def piece(self, frame):
        """A fragment of ESP: its text, else None."""
        ip = frame[14:]
        if ip[0] >> 4 == 4 and struct.unpack("!H", ip[6:8])[0] & 0x3fff:
            hl, field = (ip[0] & 15) * 4, struct.unpack("!H", ip[6:8])[0]
            src, dst, ident, proto = ip[12:16], ip[16:20], ip[4:6], ip[9]
            at, more, data, head = (field & 0x1fff) * 8, field & 0x2000, ip[hl:], ip[:hl]
            fine = esp.csum(head) == b"\0\0" and struct.unpack("!H", ip[2:4])[0] == len(ip)
            shown = f"{ip[:2].hex()} {ip[6:10].hex()} {ip[12:hl].hex()}"
        elif ip[0] >> 4 == 6 and esp.skip6(ip, (0, 43))[1] == 44:
            off = esp.skip6(ip, (0, 43))[0]
            proto, field, ident = ip[off], struct.unpack("!H", ip[off + 2:off + 4])[0], ip[off + 4:off + 8]
            src, dst = ip[8:24], ip[24:40]
            at, more, data, head = field & ~7, field & 1, ip[off + 8:], ip[:off]
            fine = 40 + struct.unpack("!H", ip[4:6])[0] == len(ip)
            shown = f"{ip[:4].hex()} {ip[6:off + 4].hex()}"
        else:
            return None
        ends = (ipaddress.ip_address(src), ipaddress.ip_address(dst))
        if not any((sa.src, sa.dst) == ends and proto == (17 if sa.natt else 50) for sa in self.sas.values()):
            return None
        key = (src, dst, ident)
        parts = self.pieces.setdefault(key, {})
        parts[at] = (head, data, more)
        text = f"{frame[:14].hex()} piece of packet {self.number(*key)}: {shown}, {len(data)} bytes"
        if not fine:
            text += " with wrong length or checksum"
        whole, last = b"", True
        while last and len(whole) in parts:
            _, data, last = parts[len(whole)]
            whole += data
        if last:
            return text
        del self.pieces[key]
        head = parts[0][0]
        if len(head) >= 40 and head[0] >> 4 == 6:
            at = esp.skip6(head + b"\x3b" * 8)[2] if head[6] != 44 else 6
            head = head[:4] + struct.pack("!H", len(head) - 40 + len(whole)) + head[6:at] + bytes([proto]) + head[at + 1:]
        else:
            head = head[:2] + struct.pack("!H", len(head) + len(whole)) + head[4:6] + b"\0\0" + head[8:10] + \
                b"\0\0" + head[12:]
            head = head[:10] + esp.csum(head) + head[12:]
        return text + "; in all " + self.frame(frame[:14] + head + whole)

    def frame(self, frame):
        if frame[12:14] == b"\x81\x00":
            return f"[tag {frame[14:16].hex()}] " + self.frame(frame[:12] + frame[16:])
        ip = frame[14:]
        if frame[12:14] not in (b"\x08\x00", b"\x86\xdd"):
            return frame.hex()
        text = self.piece(frame)
        if text:
            return text
        parts = esp.split_outer(ip) if len(ip) >= 20 else None
        sa = self.sas.get((int.from_bytes(parts[3][:4], "big"), parts[1])) if parts else None
        if sa is None:
            if is_sgws_own(ip):
                if esp.csum(ip[:20]) != b"\0\0":
                    return "wrong IPv4 checksum: " + frame.hex()
                return frame[:14 + 4].hex() + "[id]" + ip[6:10].hex() + "[sum]" + ip[12:].hex()
            ident, ip = self.mask6(ip)
            return frame[:14].hex() + ident + ip.hex()
        src, dst, natt, e, info = parts
        text = f"{frame[:14].hex()} {src}>{dst} {info}"
        if sa.transport:  # the IP header is the packet's own
            text += " " + (ip[:4] + ip[6:info["hl"]] if ip[0] >> 4 == 6 else
                           ip[4:10] + ip[12:info["hl"]]).hex()
        if len(ip) != info["len"]:
            text += f" frame of {len(frame)} bytes"
        try:
            # tests with ESN stay below 2^32
            seq, iv, inner, next_header = sa.open(e)
        except esp.Refused as why:
            return f"{text} ESP that does not open ({why}): {e.hex()}"
        ident = ""
        if not sa.transport and len(inner) >= 20:
            if is_sgws_own(inner):
                inner = inner[:4] + b"[id]" + inner[6:10] + b"[]" + inner[12:]
            ident, inner = self.mask6(inner)
        return (f"{text} {'UDP ' if natt else ''}ESP 0x{sa.spi:x} number {seq} next header "
                f"{next_header}: {ident}{inner.hex()}")


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


def compare_stderr(lines, err):
    faults = []
    for line in sorted(set(lines)):
        text, n = (line[2:], 0) if line.startswith("! ") else (line, lines.count(line))
        have = sum(1 for said in err.splitlines() if all(part in said for part in text.split("…")))
        if have != n:
            faults.append(f"stderr says {have} times, expected {n}: {text}")
    if faults:
        faults.append("stderr:\n" + err)
    return faults


def run_case(name, keep):
    folder = os.path.join(HERE, name.removesuffix(SECOND))
    work = os.path.join(keep, name)
    shutil.copytree(folder, work)
    os.chmod(os.path.join(work, "sgw.yaml"), 0o600)
    with open(os.path.join(work, "sgw.yaml")) as f:
        text = f.read()
    if name.endswith(SECOND):
        text, n = re.subn(r"^system: \{ ", "system: { crypto: look-aside, ", text, flags=re.M)
        assert n == 1, name
    # cases run side by side: each a name of its own
    sgw.write_config(work, re.sub(r"name: golden\b", f"name: g{os.getpid()}-{zlib.crc32(name.encode()):08x}-{name.split()[0]}"[:37].rstrip("-"), text))
    idle = 300
    if os.path.exists(os.path.join(folder, "idle")):
        with open(os.path.join(folder, "idle")) as f:
            idle = int(f.read())
    fault = None
    if os.path.exists(os.path.join(folder, "fault")):
        with open(os.path.join(folder, "fault")) as f:
            fault = f.read().strip()
    # of two workers the second one does nothing
    r = sgw.replay(work, idle, fault=fault, workers=2 if fault == "steer" else 1)
    faults = world.run_faults(r) + compare_drops(folder, r.account)
    told = os.path.join(folder, "stderr")
    if os.path.exists(told):
        with open(told) as f:
            faults += compare_stderr(f.read().splitlines(), r.err)
    sas = {(s.spi, s.dst): s for s in esp.load_sas(os.path.join(work, "sgw.yaml"))}
    for port in ("p0", "p1"):
        expect = os.path.join(folder, f"expect.{port}.pcap")
        if not os.path.exists(expect):
            continue
        of_want, of_have = Canonical(sas), Canonical(sas)
        want = [of_want.frame(f) for f in esp.pcap_read(expect)]
        have = [of_have.frame(f) for f in world.got(work, port)]
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


def fault_needed():
    """Nobody is to run it by mistake."""
    faults = []
    for fault in (None, "", "nonsense", "tx\n"):
        env = {k: v for k, v in os.environ.items() if k != "SGW_FAULT"}
        if fault is not None:
            env["SGW_FAULT"] = fault
        p = subprocess.run([sgw.faulty(), "--version"], env=env, capture_output=True, text=True)
        if p.returncode != 2 or "SGW_FAULT names no fault" not in p.stderr:
            faults.append(f"SGW_FAULT={fault!r}: exit code {p.returncode}, 2 expected; {p.stdout}{p.stderr}")
    return faults


def main():
    report = sgw.Report()
    every = sorted(d for d in os.listdir(HERE) if os.path.exists(os.path.join(HERE, d, "sgw.yaml")))
    names = list(with_second_form(sys.argv[1:] or every))
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
        faults = [f"{r}: no golden case names it" for r in known if r not in named]
        faults += [f"{r}: in a case, but not in drop.h" for r in sorted(named - set(known))]
        if len(known) < 40:
            faults.append(f"only {len(known)} reasons found in drop.h")
        report.check(f"every drop reason has a golden case ({len(known)})", faults)
        report.check("sgw-fault does not start without a fault that it knows", fault_needed())
    report.end()


main()
