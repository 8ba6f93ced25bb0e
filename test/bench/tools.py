# SPDX-License-Identifier: BSD-3-Clause
"""What run and trend need before they can start: packages, sgw, the two C programs of this folder."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def install():
    """The packages that are missing; this is the only part of a run that changes the machine for good."""
    if subprocess.run([os.path.join(TOP, "scripts", "deps"), "bench"], stdin=subprocess.DEVNULL).returncode != 0:
        sys.exit("bench: packages are missing")


def build_sgw(folder=None):
    """@return (program, build folder). Our own folder is brought up to date; one that was named is
    taken as it is, so that an older version can be measured."""
    own = os.path.join(TOP, "build")
    folder = os.path.abspath(folder or own)
    path = os.path.join(folder, "app", "sgw", "sgw")
    if folder == own or not os.access(path, os.X_OK):
        for cmd in (["meson", "setup", folder, TOP], ["ninja", "-C", folder]):
            if cmd[0] == "meson" and os.path.exists(os.path.join(folder, "build.ninja")):
                continue
            p = subprocess.run(cmd, capture_output=True, text=True)
            if p.returncode != 0:
                sys.exit("bench: sgw does not build:\n" + (p.stdout + p.stderr)[-2000:])
    return path, folder


def crypto_alone(build, eal):
    """{algorithm: {size: cycles}} of mb.c; {} when a build is too old to have it."""
    if subprocess.run(["ninja", "-C", build, "test/bench/mb"], capture_output=True).returncode != 0:
        return {}
    p = subprocess.run([os.path.join(build, "test", "bench", "mb"), *eal, "--no-telemetry", "--log-level=3"],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
    out = {}
    for algorithm, size, cycles in map(str.split, p.stdout.splitlines() if p.returncode == 0 else ()):
        out.setdefault(algorithm, {})[size] = float(cycles)
    return out


def build_feed(path):
    """Compile feed.c to the shared object `path`."""
    dpdk = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True)
    subprocess.run(["cc", "-O3", "-Wall", "-Wextra", "-shared", "-fPIC", "-DALLOW_EXPERIMENTAL_API",
                    *dpdk.stdout.split(), os.path.join(HERE, "feed.c"), "-o", path, "-ldl"], check=True)


class Tools:
    """What is compiled for a run, and the folder in memory that it works in."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sgw-bench-", dir=self.roomy())
        self.feed_so = os.path.join(self.folder, "feed.so")
        self.mkesp = os.path.join(self.folder, "mkesp")
        build_feed(self.feed_so)
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", os.path.join(HERE, "mkesp.c"), "-o", self.mkesp,
                        "-lcrypto"], check=True)

    @staticmethod
    def roomy():
        """Feeds are a gigabyte or two: in memory, where there is enough of it."""
        try:
            if shutil.disk_usage("/dev/shm").free > 6 << 30:
                return "/dev/shm"
        except OSError:
            pass
        return None
