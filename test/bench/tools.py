# SPDX-License-Identifier: BSD-3-Clause
"""What run and trend need before they can start: packages, sgw, the two C programs of this folder."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
DEPS = ("build-essential", "meson", "ninja-build", "pkg-config", "libdpdk-dev", "libyaml-dev", "libmd-dev",
        "libcmocka-dev", "scdoc", "dpdk", "dpdk-dev", "libssl-dev", "dpkg-dev",
        "python3-cryptography", "gnuplot-nox", "mount")


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def install(*more):
    """The packages that are missing; this is the only part of a run that changes the machine for good."""
    want = [*DEPS, *more]
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Status}\n", *want], capture_output=True,
                         text=True).stdout
    missing = [d for d in want if f"{d} install ok installed" not in out]
    if not missing:
        return
    say("installing " + " ".join(missing))
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
    for cmd in ([*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *missing]):
        p = subprocess.run(cmd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if p.returncode != 0:
            sys.exit("bench: apt-get failed:\n" + p.stderr[-1000:])


def build_sgw(folder):
    path = os.path.join(folder, "app", "sgw", "sgw")
    if not os.access(path, os.X_OK):
        say(f"building sgw in {folder}")
        for cmd in (["meson", "setup", folder, TOP], ["ninja", "-C", folder]):
            if cmd[0] == "meson" and os.path.exists(os.path.join(folder, "build.ninja")):
                continue
            p = subprocess.run(cmd, capture_output=True, text=True)
            if p.returncode != 0:
                sys.exit("bench: sgw does not build:\n" + (p.stdout + p.stderr)[-2000:])
    return path


class Tools:
    """What is compiled for a run, and the folder in memory that it works in."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sgw-bench-", dir=self.roomy())
        self.feed_so = os.path.join(self.folder, "feed.so")
        self.mkesp = os.path.join(self.folder, "mkesp")
        dpdk = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True)
        subprocess.run(["cc", "-O3", "-Wall", "-Wextra", "-shared", "-fPIC", "-DALLOW_EXPERIMENTAL_API",
                        *dpdk.stdout.split(), os.path.join(HERE, "feed.c"), "-o", self.feed_so, "-ldl"], check=True)
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
