# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: a plain table. Add a line to add a case."""
import collections

# direction: out (clear text comes in, ESP leaves) or in (ESP comes in, clear text leaves)
# size:      length of the inner IP packet, or "imix"
# sas:       SA pairs; each packet is on another one than the packet before
# policies:  0: sgw works by tunnel interface and routes; else by so many policies, one SA pair
# routes:    most of them into the tunnel, each packet by another one
# family:    of inner and outer packets
Case = collections.namedtuple("Case", "direction algorithm size sas policies routes family natt",
                              defaults=(1, 0, 1, 4, False))

SIZES = (64, 528, 1420, "imix")
# 7:4:1, in an order that leaves no runs
IMIX = (64, 528, 64, 64, 528, 64, 1420, 64, 528, 64, 528, 64)

# peer_device: of the crypto devices of DPDK the one that is best at it, measured with all of them.
Alg = collections.namedtuple("Alg", "kind key second sgw peer peer_device")
ALGORITHMS = {
    "aes-gcm-128": Alg("gcm", 16, 4, "aead: aes-gcm-16", "aes-128-gcm", "crypto_aesni_gcm"),
    "aes-gcm-256": Alg("gcm", 32, 4, "aead: aes-gcm-16", "aes-256-gcm", "crypto_aesni_gcm"),
    "aes-cbc-128+hmac-sha1-96":
        Alg("cbc", 16, 20, "cipher: aes-cbc, auth: hmac-sha1-96", "aes-128-cbc sha1-hmac", "crypto_aesni_mb"),
    "aes-cbc-256+hmac-sha256-128":
        Alg("cbc", 32, 32, "cipher: aes-cbc, auth: hmac-sha256-128", "aes-256-cbc sha256-hmac",
            "crypto_aesni_mb"),
    "chacha20-poly1305":
        Alg("chacha", 32, 4, "aead: chacha20-poly1305", "chacha20-poly1305", "crypto_aesni_mb"),
}
GCM, GCM256, SHA1, SHA256, CHACHA = ALGORITHMS


def quick():
    for direction in ("out", "in"):
        for algorithm in (GCM, SHA1, SHA256):
            for size in SIZES:
                yield Case(direction, algorithm, size)
    yield Case("out", GCM, 64, sas=1000)
    yield Case("out", GCM, 64, policies=10000)
    yield Case("out", GCM, 64, routes=100000)


def full():
    seen = set()
    for case in _full():
        if case not in seen:
            seen.add(case)
            yield case


def _full():
    for direction in ("out", "in"):
        for algorithm in ALGORITHMS:
            for size in SIZES:
                yield Case(direction, algorithm, size)
        for size in (64, 528):
            for sas in (1, 8, 250, 1000):
                yield Case(direction, GCM, size, sas=sas)
        for policies in (1, 100, 10000):
            yield Case(direction, GCM, 64, policies=policies)
        yield Case(direction, GCM, 64, sas=10000, policies=10000)
        yield Case(direction, GCM, 64, routes=100000)
        for size in (64, 528, 1420):
            yield Case(direction, GCM, size, family=6)
            yield Case(direction, GCM, size, natt=True)
        for size in (64, 528):  # 1420 does not fit into 1500 then
            yield Case(direction, SHA256, size, family=6)
        for size in (64, 1420):
            yield Case(direction, SHA1, size, sas=250)


# (SAs of one direction, policies): time from exec to ready, and memory. What sgw refuses is told as
# such.
STARTUP = ((1, 1), (1000, 1000), (10000, 10000))

# The most that sgw ÷ peer may be, by kind and size; nothing may be above 1.
GOALS = {
    ("aes-gcm-128", 64): 0.70, ("aes-gcm-128", 528): 0.75, ("aes-gcm-128", "imix"): 0.75,
    ("aes-gcm-128", 1420): 0.85,
    ("cbc", 64): 0.85, ("cbc", 528): 0.90, ("cbc", "imix"): 0.90, ("cbc", 1420): 0.95,
}


def peer_can(case):
    """ipsec-secgw knows ESP in UDP only with hardware that does it."""
    return not case.natt


def peer_type(case):
    """How ipsec-secgw uses its crypto device, the better way of the two that it has. cpu-crypto is
    the synchronous one: best for GCM when a burst is of one SA. It leaves the lanes of the
    multi-buffer library empty with CBC, and is slower when every packet is of another SA."""
    synchronous = ALGORITHMS[case.algorithm].kind == "gcm" and case.sas == 1
    return "cpu-crypto" if synchronous else "no-offload"


def goal(case):
    plain = case == Case(case.direction, case.algorithm, case.size)
    if plain:
        kind = "cbc" if ALGORITHMS[case.algorithm].kind == "cbc" else case.algorithm
        return GOALS.get((kind, case.size), 1.0)
    return 1.0


def label(case):
    out = [case.direction, case.algorithm, str(case.size)]
    for name, plain in (("sas", 1), ("policies", 0), ("routes", 1)):
        if getattr(case, name) != plain:
            out.append(f"{name}={getattr(case, name)}")
    if case.family == 6:
        out.append("ipv6")
    if case.natt:
        out.append("natt")
    return " ".join(out)
