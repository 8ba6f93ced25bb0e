# SPDX-License-Identifier: BSD-3-Clause
"""Builds the peer: ipsec-secgw, DPDK's own example of an IPsec gateway, from Debian's source of the
same version as the libraries here. It is kept in a cache; the first time takes a minute."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

MIRROR = "http://deb.debian.org/debian"

# It asks every port for checksum offload on receive, which no virtual device has. Without, it
# checks no IPv4 checksums: that is to its advantage.
DEMAND = (r"\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,", ".offloads = 0,")


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "sgw-bench")


def version():
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libdpdk-dev"], check=True,
                         capture_output=True, text=True)
    return out.stdout.strip()


def binary(say):
    """Path of ipsec-secgw; built when it is not there."""
    path = os.path.join(cache(), f"ipsec-secgw-{version()}")
    if not os.access(path, os.X_OK):
        say("building the peer, ipsec-secgw of DPDK " + version())
        os.makedirs(cache(), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            os.replace(build(fetch(folder)), path)
    return path


def quiet(cmd, cwd):
    p = subprocess.run(cmd, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       stdin=subprocess.DEVNULL)
    return p.returncode == 0, p.stdout


def fetch(folder):
    """The source package, unpacked."""
    os.chmod(folder, 0o755)
    done, said = quiet(["apt-get", "-q", "source", f"dpdk={version()}"], folder)
    if not done:  # no deb-src in this machine's lists: with a list of our own, which nothing else sees
        done, said = fetch_privately(folder)
    found = glob.glob(os.path.join(folder, "dpdk-*", "examples", "ipsec-secgw"))
    if not done or not found:
        raise RuntimeError("apt-get source dpdk failed:\n" + said[-800:])
    return found[0]


def fetch_privately(folder):
    with open(os.path.join(folder, "sources.list"), "w") as f:
        for suite in ("bookworm", "bookworm-updates"):
            f.write(f"deb-src {MIRROR} {suite} main\n")
        f.write(f"deb-src {MIRROR}-security bookworm-security main\n")
    os.makedirs(os.path.join(folder, "lists", "partial"))
    own = ["-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null",
           "-o", f"Dir::State::Lists={folder}/lists"]
    quiet(["apt-get", "-q", *own, "update"], folder)
    done, said = quiet(["apt-get", "-q", *own, "source", f"dpdk={version()}"], folder)
    return (done, said) if done else quiet(["apt-get", "-q", *own, "source", "dpdk"], folder)


def build(folder):
    path = os.path.join(folder, "ipsec-secgw.c")
    with open(path) as f:
        text, n = re.subn(*DEMAND, f.read())
    if n != 1:
        raise RuntimeError("ipsec-secgw.c is not the one that is known here")
    with open(path, "w") as f:
        f.write(text)
    done, said = quiet(["make", "shared"], folder)
    made = os.path.join(folder, "build", "ipsec-secgw-shared")
    if not done or not os.path.exists(made):
        raise RuntimeError("ipsec-secgw does not build:\n" + said[-800:])
    return shutil.copy(made, os.path.join(folder, "ipsec-secgw"))
