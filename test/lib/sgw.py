# SPDX-License-Identifier: BSD-3-Clause
"""Runs sgw, reads its account and asks its telemetry socket."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def binary():
    """The sgw under test: $SGW, or the one in build/."""
    path = os.environ.get("SGW") or os.path.join(TOP, "build", "app", "sgw", "sgw")
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not there: build it (meson setup build && ninja -C build), "
                 "or name another with SGW=PATH")
    return path


def faulty():
    """The sgw-fault that was built with the sgw under test, see test/golden/fault.c."""
    path = os.path.join(os.path.dirname(binary()), "..", "..", "test", "golden", "sgw-fault")
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not there: SGW must be in the folder in which it was built")
    return os.path.abspath(path)


def eal(no_huge=True, mem=256, workers=1):
    """EAL options for a test: no hugepages, no PCI, threads on whatever CPUs there are."""
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    opts = ["--no-pci", "--lcores", ",".join(f"{i}@({every})" for i in range(workers + 1))]
    return opts + (["--no-huge", "-m", str(mem)] if no_huge else [])


class Account:
    """What sgw prints when it stops."""

    def __init__(self, text):
        self.text = text
        self.ports, self.sas, self.port_drops, self.sa_drops = {}, {}, {}, {}
        self.mbufs = None
        drops = None
        for line in text.splitlines():
            m = re.match(r"port (\S+): received (\d+) \((\d+) bytes\), originated (\d+), "
                         r"sent on (\d+), transmitted (\d+) \((\d+) bytes\)", line)
            if m:
                names = ("received", "received_bytes", "originated", "sent_on", "transmitted",
                         "transmitted_bytes")
                self.ports[m[1]] = dict(zip(names, map(int, m.groups()[1:])))
                drops = self.port_drops.setdefault(m[1], {})
                continue
            m = re.match(r"sa (\S+)(?: \((.*?)\))? (in|out): (\d+) packets, (\d+) bytes", line)
            if m:
                self.sas[m[2] or m[1]] = {"spi": m[1], "direction": m[3], "packets": int(m[4]),
                                          "bytes": int(m[5])}
                drops = self.sa_drops.setdefault(m[2] or m[1], {})
                continue
            m = re.match(r"\s+(?:drop|taken) (\w+) (\d+)", line)
            if m and drops is not None:
                drops[m[1]] = drops.get(m[1], 0) + int(m[2])
                continue
            m = re.match(r"mbufs: (\d+) of (\d+) free", line)
            if m:
                self.mbufs = (int(m[1]), int(m[2]))
            if not line.startswith(" "):
                drops = None

    def faults(self):
        """What can not be right in any account: the sums of the ports, lost buffers."""
        out = []
        for name, p in self.ports.items():
            came = p["received"] + p["originated"]
            went = p["sent_on"] + sum(self.port_drops[name].values())
            if came != went:
                out.append(f"port {name}: received {p['received']} + originated "
                           f"{p['originated']} is not sent on {p['sent_on']} + reasons "
                           f"{self.port_drops[name]}")
        sent, tx = (sum(p[k] for p in self.ports.values()) for k in ("sent_on", "transmitted"))
        if sent != tx:
            out.append(f"sent on {sent} in all, but transmitted {tx}")
        if self.mbufs is None:
            out.append("the account has no line 'mbufs: N of M free'")
        elif self.mbufs[0] != self.mbufs[1]:
            out.append(f"packet buffers are lost: {self.mbufs[0]} of {self.mbufs[1]} free")
        if not self.ports:
            out.append("the account has no port")
        return out


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.account = Account(out)


def write_config(folder, text, name="sgw.yaml"):
    path = os.path.join(folder, name)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(text)
    return path


def forget(folder, config):
    """Remove the folder that EAL leaves in /var/run/dpdk under the system.name of a test."""
    with open(os.path.join(folder, config)) as f:
        m = re.search(r"system: \{ name: ([a-z0-9-]+)", f.read())
    if m:
        shutil.rmtree(f"/var/run/dpdk/{m[1]}", ignore_errors=True)


def replay(folder, idle=300, timeout=120, config="sgw.yaml", extra=(), fault=None, workers=1):
    """Run sgw in `folder` until its captures are through; with a fault, sgw-fault."""
    cmd = [faulty() if fault else binary(), *(eal(workers=workers) if workers > 1 else eal()), *extra, "--", "-f", config,
           "--exit-idle", str(idle)]
    try:
        p = subprocess.run(cmd, cwd=folder, capture_output=True, timeout=timeout,
                           stdin=subprocess.DEVNULL, env={**os.environ, "SGW_FAULT": fault or ""})
    except subprocess.TimeoutExpired as e:
        return Result(-999, (e.stdout or b"").decode(errors="replace"),
                      (e.stderr or b"").decode(errors="replace") +
                      f"\ntest: did not end within {timeout} s, killed")
    finally:
        forget(folder, config)
    return Result(p.returncode, p.stdout.decode(errors="replace"),
                  p.stderr.decode(errors="replace"))


class Running:
    """An sgw that runs in the background until stop() or kill()."""

    def __init__(self, folder, config="sgw.yaml", args=None, netns=None, extra=()):
        cmd = [binary(), *(eal() if args is None else args), "--", "-f", config, *extra]
        if netns:
            cmd = ["ip", "netns", "exec", netns] + cmd
        self.folder, self.config = folder, config
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.p = subprocess.Popen(cmd, cwd=folder, stdout=self.out, stderr=self.err,
                                  stdin=subprocess.DEVNULL)

    def errors(self):
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def wait_ready(self, timeout=30):
        end = time.time() + timeout
        while time.time() < end:
            if "sgw: ready" in self.errors():
                return
            if self.p.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"sgw is not ready (exit code {self.p.poll()}):\n{self.errors()}")

    def stop(self, sig=signal.SIGTERM, timeout=10):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            self.p.wait(timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        forget(self.folder, self.config)
        self.out.seek(0)
        return Result(self.p.returncode, self.out.read().decode(errors="replace"), self.errors())


def telemetry(name, command, timeout=5):
    """One command to the telemetry socket of the sgw with this system.name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(timeout)
        s.connect(f"/var/run/dpdk/{name}/dpdk_telemetry.v2")
        s.recv(16384)  # the greeting
        s.send(command.encode())
        reply = json.loads(s.recv(65536))
    return reply[command.split(",")[0]]


class Report:
    """A line a test, and at the end the count that scripts/test adds up."""

    def __init__(self, title=None):
        self.passed = self.failed = 0
        self.title = title
        self.prefix = ""  # of the names of the checks to come
        self.started = time.time()

    def check(self, name, faults):
        """faults: false, or text or a list of texts that say what is wrong."""
        name = self.prefix + name
        if isinstance(faults, (list, tuple)):
            faults = "\n".join(map(str, faults))
        if faults:
            self.failed += 1
            text = str(faults)
            print(f"FAIL {name}")
            lines = text.splitlines()
            for line in lines[:60]:
                print("     " + line)
            if len(lines) > 60:
                print(f"     … and {len(lines) - 60} lines more")
        else:
            self.passed += 1
            print(f"ok   {name}")
        sys.stdout.flush()
        return not faults

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)
