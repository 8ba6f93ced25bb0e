# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs side by side, one of them awake at a time, and reads what a packet costs.

Cycles are CPU time of the one worker thread (first number of /proc/…/schedstat) times TSC Hz by
packets. The packets are counted by feed.c in a page that is shared with us. Both are read while
the program is stopped, so they belong together, however busy the machine is.
"""
import mmap
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

MAGIC = 0x53475742
PAGE_SIZE = 4096
AT = {"hz": 8, "limit": 16, "rate": 24, "train": 32, "polls": 64, "rx": 128, "tx": 192, "tx_bytes": 200}
SAMPLE_LEN, SAMPLE = 256, 260


class Failed(Exception):
    """A program does not do what is measured here; the text says why."""


def cpus():
    """(CPU of the worker, CPUs of everything else): the last one, and the others."""
    have = sorted(os.sched_getaffinity(0))
    return have[-1], have[:-1] or have


def eal(prefix, memory, alone=False):
    """alone: the main thread is the worker."""
    worker, others = cpus()
    control = ",".join(map(str, others))
    lcores = f"0@{worker}" if alone else f"0@({control}),1@{worker}"
    return ["--no-pci", "--lcores", lcores, f"--file-prefix={prefix}", *memory]


def warm_packets(packets):
    """How many come before a window of so many."""
    return packets // 8


class Program:
    """A process with one worker, stopped except inside awake()."""

    def __init__(self, name, cmd, env, page):
        self.name, self.cmd = name, cmd
        with open(page, "wb") as f:
            f.truncate(PAGE_SIZE)
        self.page_fd = os.open(page, os.O_RDWR)
        self.page = mmap.mmap(self.page_fd, PAGE_SIZE)
        self.out = tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.p = subprocess.Popen(cmd, env=env, stdin=subprocess.PIPE, stdout=self.out,
                                  stderr=subprocess.STDOUT)
        self.windows, self.worker = [], None

    def count(self, what):
        return struct.unpack_from("=Q", self.page, AT[what])[0]

    def said(self):
        self.out.seek(0)
        return self.out.read().decode(errors="replace")

    def wait_ready(self, timeout=120):
        """Until the worker polls; then stop."""
        end = time.monotonic() + timeout
        while not (self.count("rx") or self.count("polls")):
            if self.p.poll() is not None or time.monotonic() > end:
                last = "\n".join(self.said().splitlines()[-6:])
                raise Failed(f"{self.name} does not start (exit code {self.p.poll()}): {last}")
            time.sleep(0.01)
        self.worker = self.find_worker()
        self.hz = self.count("hz")
        self.stop()

    def find_worker(self):
        for tid in os.listdir(f"/proc/{self.p.pid}/task"):
            with open(f"/proc/{self.p.pid}/task/{tid}/comm") as f:
                if re.match(r"(lcore|rte)-worker", f.read()):
                    return f"/proc/{self.p.pid}/task/{tid}"
        return f"/proc/{self.p.pid}/task/{self.p.pid}"

    def cpu_ns(self):
        with open(self.worker + "/schedstat") as f:
            return int(f.read().split()[0])

    def stop(self):
        self.p.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 10
        while self.state() not in "TZX" and time.monotonic() < end:
            time.sleep(0.0005)

    def state(self):
        try:
            with open(self.worker + "/stat") as f:
                return f.read().rpartition(")")[2].split()[0]
        except OSError:
            return "X"

    def awake(self, cpu_seconds, packets=None):
        """Run until so many packets came, or for so much CPU time. @return (ns, packets)"""
        self.alive()
        ns, rx = self.cpu_ns(), self.count("rx")
        struct.pack_into("=Q", self.page, AT["limit"], rx + packets if packets else 0)
        self.p.send_signal(signal.SIGCONT)
        if packets:
            self.wait_limit(rx + packets)
        else:
            self.wait_cpu(ns, cpu_seconds)
        self.stop()
        self.alive()
        return self.cpu_ns() - ns, self.count("rx") - rx

    def wait_cpu(self, ns, seconds):
        end = time.monotonic() + 20 * seconds + 1
        left = seconds
        while left > 0 and time.monotonic() < end and self.p.poll() is None:
            time.sleep(min(max(left, 0.0005), 0.05))
            left = seconds - (self.cpu_ns() - ns) / 1e9

    def wait_limit(self, limit):
        """feed.c stops the process; this waits for it, and gives up when no more packets come."""
        last, end = -1, time.monotonic() + 2
        while True:
            stopped, came = self.state() in "TZX", self.count("rx")
            if stopped and came >= limit:
                return
            if stopped:  # by a second signal of feed.c, from the window before
                self.p.send_signal(signal.SIGCONT)
            if came != last:
                last, end = came, time.monotonic() + 2
            if time.monotonic() > end or self.p.poll() is not None:
                return
            time.sleep(0.001)

    def alive(self):
        if self.p.poll() is not None:
            raise Failed(f"{self.name} has ended with {self.p.returncode}:\n{self.said()[-600:]}")

    def window(self, seconds, warm, packets=None):
        """One window; the caches are warmed before. Cycles a packet."""
        struct.pack_into("=I", self.page, 4, 1)
        self.awake(warm, packets and warm_packets(packets))
        ns, n = self.awake(seconds, packets)
        if n < 1000:
            raise Failed(f"{self.name} takes no packets ({n} in {ns / 1e6:.0f} ms)")
        self.windows.append(ns * self.hz / 1e9 / n)

    def sample(self):
        """The first frame that it sent."""
        n = struct.unpack_from("=I", self.page, SAMPLE_LEN)[0]
        return bytes(self.page[SAMPLE:SAMPLE + n])

    def lost(self):
        """Packets that came and did not leave, beyond those that it has in its hands."""
        return max(0, self.count("rx") - self.count("tx") - 4096)

    def wait_end(self, seconds):
        """Again and again, since a stop that feed.c asked for may still come."""
        end = time.monotonic() + seconds
        while self.p.poll() is None and time.monotonic() < end:
            self.p.send_signal(signal.SIGCONT)
            try:
                self.p.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        self.p.wait(0)

    def end(self):
        """By its own way out, so that nothing of it stays in /run; else by force."""
        if self.out.closed:
            return ""
        try:
            if self.p.poll() is None:
                struct.pack_into("=Q", self.page, AT["limit"], 0)
                self.p.send_signal(signal.SIGTERM)
                self.p.stdin.close()
                self.wait_end(8)
        except (subprocess.TimeoutExpired, OSError):
            self.p.kill()
            self.p.wait()
        text = self.said()
        self.fed = self.count("rx")
        self.page.close()
        os.close(self.page_fd)
        self.out.close()
        return text


# -- hugepages -------------------------------------------------------------------------------------

NR = "/proc/sys/vm/nr_hugepages"


class Huge:
    """Hugepages and a mount for them, for as long as a run takes; or the way without."""

    def __init__(self, folder, pages=1536):
        self.added, self.dir = 0, os.path.join(folder, "huge")
        self.ok = self.raise_pages(pages) and self.mount()
        if not self.ok:
            self.give()

    def raise_pages(self, pages):
        try:
            before = self.read()
            with open(NR, "w") as f:
                f.write(str(before + pages))
            self.added = self.read() - before
        except (OSError, ValueError):
            return False
        return self.added == pages

    @staticmethod
    def read():
        with open(NR) as f:
            return int(f.read())

    def mount(self):
        os.makedirs(self.dir)
        return subprocess.run(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", self.dir],
                              stderr=subprocess.DEVNULL).returncode == 0

    def options(self):
        return [f"--huge-dir={self.dir}", "--huge-unlink"] if self.ok else ["--no-huge", "-m", "1536"]

    def give(self):
        """Take back what was added; somebody else may have changed the number in between."""
        if os.path.ismount(self.dir):
            subprocess.run(["umount", self.dir])
        if self.added:
            with open(NR, "w") as f:
                f.write(str(max(0, self.read() - self.added)))
            self.added = 0
