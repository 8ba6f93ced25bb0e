# SPDX-License-Identifier: BSD-3-Clause
"""The same gateway three times: for sgw, for ipsec-secgw (the peer), and as two bare ports for
testpmd (the floor). Each function returns a command line."""
import os

import captures as cap
import cases

MBUFS = 32768
WINDOW = 128  # packets of the replay window, sgw's default
LAN_GW = {4: "10.9.0.1", 6: "fd09::1"}
WIDE = {4: "8.0.0.0/5", 6: "fd20::/32"}  # all far networks
WAN_GW = {4: "192.0.2.2", 6: "2001:db8::2"}


def devices(case, folder):
    """Arguments of lan and wan: captures or the feed come from one, the other swallows."""
    if case.direction == "out":
        return (f"net_pcap0,rx_pcap={folder}/clear.pcap,infinite_rx=1", "net_null1,no-rx=1")
    return ("net_null0,no-rx=1", "net_null1,no-rx=1")


def preload(case, folder, page, feed_so):
    """Environment that makes feed.c count, and deliver what is inbound."""
    lan, wan = (d.split(",")[0] for d in devices(case, folder))
    env = dict(os.environ, LD_PRELOAD=feed_so, BENCH_PAGE=page)
    env["BENCH_RX_PORT"], env["BENCH_TX_PORT"] = (lan, wan) if case.direction == "out" else (wan, lan)
    if case.direction == "in":
        env["BENCH_FEED"] = f"{folder}/esp.feed"
    return env


# -- sgw -------------------------------------------------------------------------------------------

def sgw(case, folder, eal, binary, name):
    path = os.path.join(folder, "sgw.yaml")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(sgw_yaml(case, devices(case, folder), name))
    return [binary, *eal, "--", "-f", path]


def sgw_yaml(case, ports, name):
    out = [f"system: {{ name: {name}, mbufs: {MBUFS}, idle: poll }}",
           "lab: { allow-nonce-reuse: lab-only }", "ports:",
           f'  lan: {{ device: "{ports[0]}", mac: "{cap.LAN_MAC}", '
           'addresses: [10.9.0.254/24, "fd09::254/64"] }',
           f'  wan: {{ device: "{ports[1]}", mac: "{cap.WAN_MAC}", '
           'addresses: [192.0.2.1/24, "2001:db8::1/64"] }', "neighbours:"]
    for port, gw, mac in (("lan", LAN_GW, cap.HOST_MAC), ("wan", WAN_GW, cap.PEER_MAC)):
        out += [f'  - {{ port: {port}, address: "{gw[f]}", mac: "{mac}" }}' for f in (4, 6)]
    out += tunnels(case) + ["routes:", *(f'  - {{ to: "{to}", via: "{via}" }}' for to, via in (
        ("10.10.0.0/16", LAN_GW[4]), ("fd10::/32", LAN_GW[6]),
        ("100.64.0.0/10", WAN_GW[4]), ("2001:db8:1::/48", WAN_GW[6])))]
    if not case.policies:
        out += [f'  - {{ to: "{cap.far_net(case, u)}", tunnel: t{u if case.sas > 1 else 0} }}'
                for u in range(cap.units(case))]
    out.append("sad:")
    for k in range(case.sas):
        if case.policies:
            out.append(f"  - {cap.make_sa(case, k, case.direction).to_config()}")
        else:
            out += [f"  - {cap.make_sa(case, k, d).to_config(f'reqid: {k + 1}')}" for d in ("in", "out")]
    return "\n".join(out + policies(case)) + "\n"


def tunnels(case):
    if case.policies:
        return []
    return ["tunnels:"] + [f'  t{k}: {{ local: "{cap.LOCAL[case.family]}", remote: "{cap.remote(case, k)}", '
                           f"reqid: {k + 1} }}" for k in range(case.sas)]


def policies(case):
    """Only of the direction that is measured, so that their number is what it says."""
    if not case.policies:
        return []
    near, local, out = cap.lan_net(case), cap.LOCAL[case.family], ["spd:"]
    for u in range(case.policies):
        far, a, b = cap.far_net(case, u), local, cap.remote(case, u % case.sas)
        src, dst = near, far
        if case.direction == "in":
            src, dst, a, b = far, near, b, a
        out.append(f'  - {{ dir: {case.direction}, src: "{src}", dst: "{dst}", action: protect, '
                   f'tunnel: "{a}-{b}" }}')
    return out


# -- the peer --------------------------------------------------------------------------------------

def peer(case, folder, eal, binary):
    """ipsec-secgw works by policies only, and does not route by inner addresses. Its main thread is
    the worker: it wants a transmit queue for every thread, and net_pcap has one."""
    alg = cases.ALGORITHMS[case.algorithm]
    path = os.path.join(folder, "peer.cfg")
    with open(path, "w") as f:
        f.write("\n".join(peer_cfg(case, alg)) + "\n")
    lan, wan = devices(case, folder)
    # -c: room for all SAs in its SAD cache; -w is for inbound SAs, the outbound ones do not look
    cache = max(128, 1 << (case.sas - 1).bit_length())
    return [binary, *eal, f"--vdev={lan}", f"--vdev={wan}", f"--vdev={alg.peer_device}0", "--",
            "-p", "0x3", "-u", "0x2", "-l", "-w", str(WINDOW), "-c", str(cache), "-s", str(MBUFS),
            "--config", "(0,0,0),(1,0,0)", "-f", path]


def peer_cfg(case, alg):
    fam, v, near = f"ipv{case.family}", case.family, cap.lan_net(case)
    out = [f"neigh port 0 {cap.HOST_MAC}", f"neigh port 1 {cap.PEER_MAC}",
           f"rt {fam} dst {cap.lan_net(case)} port 0",
           f"rt {fam} dst {'100.64.0.0/10' if v == 4 else '2001:db8:1::/48'} port 1"]
    for direction in ("out", "in"):
        here = direction == case.direction
        for k in range(case.sas):
            out.append(peer_sa(case, alg, k, direction))
        for u in range(max(case.sas, case.policies if here else 1)):
            far = cap.far_net(case, u) if case.policies and here or case.sas > 1 else WIDE[v]
            src, dst = (near, far) if direction == "out" else (far, near)
            spi = cap.make_sa(case, u % case.sas, direction).spi
            out.append(f"sp {fam} {direction} esp protect {spi} pri 1 src {src} dst {dst} "
                       "sport 0:65535 dport 0:65535")
    return out


def colons(key):
    return key.hex(":")


def peer_sa(case, alg, k, direction):
    sa = cap.make_sa(case, k, direction)
    if alg.kind == "cbc":
        cipher, auth = alg.peer.split()
        crypto = f"cipher_algo {cipher} cipher_key {colons(sa.key)} auth_algo {auth} auth_key {colons(sa.auth_key)}"
    else:
        crypto = f"aead_algo {alg.peer} aead_key {colons(sa.raw_key)}"
    return (f"sa {direction} {sa.spi} {crypto} mode ipv{case.family}-tunnel src {sa.src} dst {sa.dst}"
            f" type {cases.peer_type(case)}")


# -- the floor -------------------------------------------------------------------------------------

def floor(case, folder, eal, binary="dpdk-testpmd"):
    lan, wan = devices(case, folder)
    return [binary, *eal, f"--vdev={lan}", f"--vdev={wan}", "--", "--forward-mode=io", "--auto-start",
            "--nb-cores=1", "--burst=32", f"--total-num-mbufs={MBUFS}", "--mbcache=256", "--no-flush-rx",
            "--no-lsc-interrupt", "--no-rmv-interrupt", "--stats-period=3600"]
