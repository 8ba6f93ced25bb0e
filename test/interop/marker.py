#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that no byte of a key leaves sgw: keys that can be recognised go in, then everything that
comes out is searched for them, raw, in hex and in base64, in pieces of 4 bytes and more: output
and log of a run at full log level, --check, --dump, error messages about those keys, every reply
of the telemetry socket, and the state file. In both forms of ESP."""
import base64
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import sgw
import world

PIECE = 4  # bytes of a key in a row that must not be seen


def marked(n, first):
    """n bytes that occur nowhere by chance: letters that no message has in this order."""
    return bytes((0x51, 0x7A, 0x58, 0x6A)[i % 4] if i % 5 else first + i // 5 for i in range(n))


def forms(key):
    """Every spelling of every piece of a key."""
    out = set()
    for i in range(len(key) - PIECE + 1):
        piece = key[i:i + PIECE]
        h = piece.hex()
        out |= {piece, h.encode(), h.upper().encode(), " ".join(f"{b:02x}" for b in piece).encode(),
                " ".join(f"{b:02X}" for b in piece).encode(), h.encode()[::-1],
                ":".join(f"{b:02x}" for b in piece).encode(), piece[::-1],
                ", ".join(str(b) for b in piece).encode(), f"0x{piece[::-1].hex()}".encode()}
    for i in range(0, len(key) - 5, 3):
        out.add(base64.b64encode(key[i:i + 6]))
    return out


def main():
    report = sgw.Report()
    keys, sad, spd = [], [], []
    for i, (cipher, key_len, auth) in enumerate(world.every_algorithm()):
        salt = esp.CIPHERS[cipher][1]
        key, auth_key = marked(key_len + salt, 0x80 + i), b""
        if auth:
            auth_key = marked(esp.AUTHS[auth][2], 0xc0 + i % 32)
        for src, dst, spi in ((world.LOCAL4, world.REMOTE4, 0x2000 + i),
                              (world.REMOTE4, world.LOCAL4, 0x3000 + i)):
            sa = esp.Sa(spi, cipher, key if cipher != "null" else b"", auth, auth_key, src=src, dst=dst)
            sad.append(sa.to_config(f"reqid: {i + 1}"))
        keys += [k for k in (key if cipher != "null" else b"", auth_key) if k]
        spd.append(world.policy_out("10.10.0.0/16", f"10.100.{i}.0/24", 4, f", reqid: {i + 1}"))
        spd.append(world.policy_in(f"10.100.{i}.0/24", "10.10.0.0/16", 4, f", reqid: {i + 1}"))
    needles = set().union(*map(forms, keys))

    def search(what, data):
        data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
        hits = [n for n in needles if n in data]
        report.check(f"{what}: {len(data)} bytes without a piece of {len(keys)} keys",
                     [f"{n!r} at {data.index(n)}: …{data[max(0, data.index(n) - 60):data.index(n) + 60]!r}"
                      for n in hits[:3]])

    with tempfile.TemporaryDirectory(prefix="sgw-marker-") as folder:
        for _ in world.every_form(report):
            state = os.path.join(folder, "marker.state")
            yaml = world.config("marker", sad=sad, spd=spd, system=f"state: {state}",
                                lab="allow-published-keys: lab-only")
            frames = [world.from_host(esp.udp("10.10.0.1", f"10.100.{i}.7", 1, 2, b"x" * 100))
                      for i in range(len(spd) // 2)]
            world.write(folder, yaml, p0=frames)
            report.check("the search finds what is there: the configuration itself",
                         [] if any(n in yaml.encode() for n in needles) else "not found")
            for option in ("--check", "--dump"):
                p = subprocess.run([sgw.binary(), "--", "-f", "sgw.yaml", option], cwd=folder,
                                   capture_output=True, timeout=60)
                report.check(f"{option} works", [] if p.returncode == 0 else p.stderr.decode())
                search(option, p.stdout + p.stderr)
            run = sgw.Running(folder, args=[*sgw.eal(), "--log-level=8", "--log-level=*:8"])
            run.wait_ready()
            replies = b""
            listed = sgw.telemetry("marker", "/")
            for command in listed:
                names = [""]
                if command.endswith("/info") or command.startswith(("/sgw", "/cryptodev", "/ethdev",
                                                                    "/ipsec", "/mempool")):
                    parent = command.rsplit("/", 1)[0] + "/list"
                    if parent in listed and command != parent:
                        names += [f",{n}" for n in sgw.telemetry("marker", parent) or []]
                for name in names:
                    try:
                        replies += (command + name + str(sgw.telemetry("marker", command + name))).encode()
                    except (OSError, ValueError, KeyError):
                        pass  # a command that wants other arguments
            search(f"telemetry, {len(listed)} commands", replies)
            r = run.stop()
            report.check("the run", r.account.faults() + ([] if r.code == 0 else [f"exit code {r.code}"]) +
                         ([] if sum(s["packets"] for s in r.account.sas.values()) == len(frames)
                          else ["not every SA has sealed its packet"]))
            search("the log at full level", r.err)
            search("the account", r.out)
            with open(state, "rb") as f:
                search("the state file", f.read())

        broken = [esp.Sa(0x2001, "aes-gcm-16", k, src=world.LOCAL4, dst=world.REMOTE4).to_config()
                  for k in (keys[0][:-1], keys[0] + b"1", keys[0][:3])]
        text = keys[0].hex()
        broken += [broken[0].replace(f'"hex:{keys[0][:-1].hex()}"', v) for v in (
            f'"hex:{text}g"', f'"{text}"', f'"HEX:{text}"', f'"hex:{text[:-1]}"', f"[{text}]", f"{{ a: {text} }}",
            f'"ascii:{"QzXj" * 6}"', f'"hex: {text}", cipher: "hex:{text}"', f'"hex:{text}", "hex:{text}": 1')]
        needles.update({b"QzXj"})
        out = b""
        for line in broken:
            sgw.write_config(folder, world.config("marker", sad=[line]), "broken.yaml")
            p = subprocess.run([sgw.binary(), "--", "-f", "broken.yaml", "--check"], cwd=folder,
                               capture_output=True, timeout=60)
            if p.returncode != 3:
                report.check("a broken key is refused", f"exit code {p.returncode} for {line}")
            out += p.stdout + p.stderr
        search(f"messages about {len(broken)} broken keys", out)
    report.end()


main()
