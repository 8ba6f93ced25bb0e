# SPDX-License-Identifier: BSD-3-Clause
"""The little world of the capture tests, and configurations for it.

  host 10.10.0.1     p0  sgw  p1                     peer 192.0.2.2
  fd10::1        ────────┤├──────── ESP ────────     2001:db8::2
  …:11       10.10.0.254  192.0.2.1                  …:22, behind it 10.20.0.0/16, fd20::/32
             fd10::254    2001:db8::1
             …:01         …:02

Ports are net_pcap: sgw reads send.p0.pcap and send.p1.pcap, writes got.p0.pcap and got.p1.pcap.
"""
import os

import esp

MAC0, MAC1 = "02:00:00:00:00:01", "02:00:00:00:00:02"      # sgw's
HOST, PEER = "02:00:00:00:00:11", "02:00:00:00:00:22"      # the others'
LOCAL4, REMOTE4 = "192.0.2.1", "192.0.2.2"
LOCAL6, REMOTE6 = "2001:db8::1", "2001:db8::2"

FORMS = ("direct", "look-aside")  # of ESP in tunnel mode, system.crypto
form = FORMS[0]                   # what config() asks for


def every_form(report):
    """Each form in turn: from here on config() writes it, and the checks name it."""
    global form
    for form in FORMS:
        report.prefix = f"{form}: "
        yield form
    form, report.prefix = FORMS[0], ""


def ends(family):
    """(local, remote) outer addresses."""
    return (LOCAL4, REMOTE4) if family == 4 else (LOCAL6, REMOTE6)


def config(name="t", sad=(), spd=(), tunnels=(), routes=(), neighbours=None, ports=None,
           system="", lab="allow-nonce-reuse: lab-only, allow-published-keys: lab-only",
           mtu=1500, base_routes=True, mtu1=None):
    """An sgw.yaml of the little world. Every list holds lines of YAML."""
    if neighbours is None:
        neighbours = [
            f'{{ port: p0, address: 10.10.0.1, mac: "{HOST}" }}',
            f'{{ port: p0, address: "fd10::1", mac: "{HOST}" }}',
            f'{{ port: p1, address: {REMOTE4}, mac: "{PEER}" }}',
            f'{{ port: p1, address: "{REMOTE6}", mac: "{PEER}" }}',
        ]
    if ports is None:
        ports = [
            f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,tx_pcap=got.p0.pcap", mac: "{MAC0}", '
            f'addresses: [10.10.0.254/24, "fd10::254/64"], mtu: {mtu} }}',
            f'p1: {{ device: "net_pcap1,rx_pcap=send.p1.pcap,tx_pcap=got.p1.pcap", mac: "{MAC1}", '
            f'addresses: [{LOCAL4}/24, "{LOCAL6}/64"], mtu: {mtu1 or mtu} }}',
        ]
    if base_routes:
        routes = ["{ to: 10.10.0.0/16, via: 10.10.0.1 }", '{ to: "fd10::/32", via: "fd10::1" }',
                  *routes]
    if form != FORMS[0]:
        system += f"{', ' if system else ''}crypto: {form}"
    out = [f"system: {{ name: {name}, mbufs: 4096{', ' + system if system else ''} }}"]
    if lab:
        out.append(f"lab: {{ {lab} }}")
    out += ["ports:", *("  " + p for p in ports)]
    if tunnels:
        out += ["tunnels:", *("  " + t for t in tunnels)]
    for key, lines in (("neighbours", neighbours), ("routes", routes), ("sad", sad), ("spd", spd)):
        if lines:
            out += [f"{key}:", *("  - " + line for line in lines)]
    return "\n".join(out) + "\n"


def policy_in(src, dst, family=4, more=""):
    local, remote = ends(family)
    return (f'{{ dir: in, src: "{src}", dst: "{dst}", action: protect, '
            f'tunnel: "{remote}-{local}"{more} }}')


def policy_out(src, dst, family=4, more=""):
    local, remote = ends(family)
    return (f'{{ dir: out, src: "{src}", dst: "{dst}", action: protect, '
            f'tunnel: "{local}-{remote}"{more} }}')


def in_sa(spi, cipher, key_len=None, auth=None, family=4, **kw):
    """An SA from the peer to sgw with a key of its own."""
    return make_sa(spi, cipher, key_len, auth, *reversed(ends(family)), **kw)


def out_sa(spi, cipher, key_len=None, auth=None, family=4, **kw):
    return make_sa(spi, cipher, key_len, auth, *ends(family), **kw)


def make_sa(spi, cipher, key_len, auth, src, dst, **kw):
    kind, salt = esp.CIPHERS[cipher][:2]
    key = esp.test_key(f"key {spi}", (key_len or esp.KEY_LENS[kind][0]) + salt)
    auth_key = esp.test_key(f"auth {spi}", esp.AUTHS[auth][2]) if auth else b""
    if kind == "null":
        key = b""
    return esp.Sa(spi, cipher, key, auth, auth_key, src=src, dst=dst, **kw)


def every_algorithm():
    """(cipher, key bytes, auth) of all that sgw offers."""
    for cipher, (kind, *_) in esp.CIPHERS.items():
        for key_len in esp.KEY_LENS[kind]:
            for auth in ([None] if kind in ("gcm", "chacha") else esp.AUTHS):
                yield cipher, key_len, auth


def label(cipher, key_len, auth):
    return f"{cipher}{f'/{8 * key_len}' if key_len else ''}{' ' + auth if auth else ''}"


def from_peer(ip):
    return esp.eth(MAC1, PEER, ip)


def from_host(ip):
    return esp.eth(MAC0, HOST, ip)


def to_host(ip):
    return esp.eth(HOST, MAC0, ip)


def to_peer(ip):
    return esp.eth(PEER, MAC1, ip)


def write(folder, yaml, p0=(), p1=()):
    import sgw
    os.makedirs(folder, exist_ok=True)
    sgw.write_config(folder, yaml)
    esp.pcap_write(os.path.join(folder, "send.p0.pcap"), p0)
    esp.pcap_write(os.path.join(folder, "send.p1.pcap"), p1)


def got(folder, port):
    path = os.path.join(folder, f"got.{port}.pcap")
    return esp.pcap_read(path) if os.path.exists(path) else []


def run(folder, yaml, p0=(), p1=(), idle=300, timeout=120):
    """Write the world, run sgw on it. @return (Result, frames out of p0, frames out of p1)"""
    import sgw
    write(folder, yaml, p0, p1)
    for port in ("p0", "p1"):
        path = os.path.join(folder, f"got.{port}.pcap")
        if os.path.exists(path):
            os.unlink(path)
    r = sgw.replay(folder, idle, timeout)
    return r, got(folder, "p0"), got(folder, "p1")


def run_faults(r):
    """What is wrong with a run whatever it was about."""
    out = r.account.faults()
    if r.code != 0:
        out.append(f"exit code {r.code}, 0 expected; stderr:\n{r.err}")
    return out


def difference(want, have):
    """Two lists of frames, compared in order."""
    if want == have:
        return []
    out = [f"{len(want)} frames expected, {len(have)} came"] if len(want) != len(have) else []
    for i, (a, b) in enumerate(zip(want, have)):
        if a != b:
            out += [f"frame {i}, expected: {a.hex()}", f"frame {i}, came:     {b.hex()}"]
            break
    else:
        longer = want if len(want) > len(have) else have
        i = min(len(want), len(have))
        out.append(f"frame {i} {'is missing' if longer is want else 'is too many'}: "
                   f"{longer[i].hex()}")
    return out
