#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the oracle of the other tests, test/lib/esp.py, can be believed: scapy and tshark
open what it seals, it opens what scapy and Linux seal. sgw takes no part in this, so it does not matter
which form of ESP sgw has."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import decoders
import esp
import sgw
import world


def main():
    report = sgw.Report()
    sas = [world.in_sa(0x1000 + 4 * i + 2 * natt + (family == 6), *alg, family=family, natt=natt)
           for i, alg in enumerate(world.every_algorithm())
           for natt in (False, True) for family in (4, 6)]
    inners = [esp.udp("10.20.0.1", "10.10.0.1", 40001, 40002, b"four" * 9, ident=77),
              esp.udp("fd20::1", "fd10::1", 40001, 40002, b"six" * 5)]
    faults, checked = [], 0
    for sa in sas:
        for seq, inner in enumerate(inners, 1):
            sealed = esp.outer(sa, sa.seal(inner, seq))
            if sa.open(sa.seal(inner, seq))[2] != inner:
                faults.append(f"{sa.cipher} {sa.auth}: does not open its own")
            if decoders.scapy_knows(sa) and not (sa.natt and sa.src.version == 6):
                checked += 1
                if decoders.scapy_open(sa, sealed) != inner:
                    faults.append(f"{sa.cipher} {sa.auth} natt {sa.natt}: scapy disagrees")
    report.check(f"scapy opens what the codec seals ({checked} packets)", faults)

    faults, checked = [], 0
    for esn_high in (0, 5):
        for alg in world.every_algorithm():
            sa = world.in_sa(0x5000, *alg, esn=True)
            if decoders.scapy_knows(sa):
                checked += 1
                sealed = esp.outer(sa, sa.seal(inners[0], (esn_high << 32) + 9))
                if decoders.scapy_open(sa, sealed, esn_high) != inners[0]:
                    faults.append(f"{alg} with ESN high half {esn_high}: scapy disagrees")
    report.check(f"the same with ESN ({checked} packets)", faults)

    with tempfile.TemporaryDirectory(prefix="sgw-codec-") as folder:
        path = os.path.join(folder, "x.pcap")
        known = [sa for sa in sas if decoders.tshark_knows(sa)]
        esp.pcap_write(path, [world.from_peer(esp.outer(sa, sa.seal(inner, seq)))
                              for sa in known for seq, inner in enumerate(inners, 1)])
        rows = decoders.tshark(path, known, ["esp.spi", "ip.dst", "ipv6.dst", "esp.icv_good"])
        faults = [] if len(rows) == 2 * len(known) else [f"{len(rows)} rows"]
        for i, (spi, v4, v6, good) in enumerate(rows):
            sa = known[i // 2]
            inner = (v6 if i % 2 else v4).split(",")[-1]
            if inner != ("fd10::1" if i % 2 else "10.10.0.1") or good != "1":
                faults.append(f"{sa.cipher} {sa.auth} natt {sa.natt} {sa.src}: {spi} {v4} {v6} "
                              f"ICV good: {good}")
        report.check(f"tshark opens what the codec seals ({len(rows)} packets)", faults)
    report.end()


main()
