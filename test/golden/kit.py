# SPDX-License-Identifier: BSD-3-Clause
"""What all golden cases are built from: case() and packets of the little world, see make.py."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import esp
import world as w
from esp import csum, hop, udp

CASES = {}
H4, H6 = "10.10.0.1", "fd10::1"            # a host in the clear
R4, R6 = "10.20.0.7", "fd20::7"            # one behind the peer
OWN4, OWN6 = "10.10.0.254", "fd10::254"    # sgw, to the clear
BASE_SPD = [w.policy_in("10.20.0.0/16", "10.10.0.0/16"), w.policy_in("fd20::/32", "fd10::/32"),
            w.policy_out("10.10.0.0/16", "10.20.0.0/16"), w.policy_out("fd10::/32", "fd20::/32")]
BYPASS = ["{ dir: in, src: 10.0.0.0/8, dst: 10.30.0.0/16, action: bypass }",
          "{ dir: out, src: 10.0.0.0/8, dst: 10.30.0.0/16, action: bypass }",
          '{ dir: in, src: "::/0", dst: "fd30::/32", action: bypass }',
          '{ dir: out, src: "::/0", dst: "fd30::/32", action: bypass }']
TO_30 = ["{ to: 10.30.0.0/16, via: 192.0.2.2 }", '{ to: "fd30::/32", via: "2001:db8::2" }']


def case(name, about, yaml, p0=(), p1=(), want0=(), want1=(), drops=None, idle=None, stderr=None, fault=None):
    """drops: {port: {reason: count}}; a count "+" means one or more.
    want0 or want1 None: what comes out there is not compared.
    fault: what goes wrong, see fault.c."""
    assert name not in CASES
    CASES[name] = {
        "sgw.yaml": f"# {about}\n".encode() + yaml.encode(),
        "send.p0.pcap": list(p0), "send.p1.pcap": list(p1),
        **{f"expect.{port}.pcap": list(want) for port, want in (("p0", want0), ("p1", want1))
           if want is not None},
        "drops": "".join(f"{port} {reason} {n}\n" for port, of in (drops or {}).items()
                         for reason, n in of.items()).encode(),
    }
    if idle:
        CASES[name]["idle"] = f"{idle}\n".encode()
    if fault:
        CASES[name]["fault"] = f"{fault}\n".encode()
    if stderr:
        CASES[name]["stderr"] = "".join(line + "\n" for line in stderr).encode()


GCM_IN, GCM_OUT = w.in_sa(0x1001, "aes-gcm-16"), w.out_sa(0x2001, "aes-gcm-16")


def base(sa_in=GCM_IN, sa_out=GCM_OUT, more_in="", more_out="", spd=(), **kw):
    """Policies both ways for both families, one SA each way."""
    sad = ([sa_in.to_config(more_in)] if sa_in else []) + \
          ([sa_out.to_config(more_out)] if sa_out else [])
    return w.config("golden", sad=sad, spd=[*BASE_SPD, *spd], **kw)


def sealed(inner, seq, sa=GCM_IN, **kw):
    """As the peer sends it."""
    return w.from_peer(esp.outer(sa, sa.seal(inner, seq, **kw)))


def out(inner, seq, sa=GCM_OUT, tos=0, df=False):
    """As sgw must send it: one hop further, outer DF and traffic class of the inner."""
    return out_own(hop(inner), seq, sa, tos, df)


def out_own(inner, seq, sa=GCM_OUT, tos=0, df=False):
    """The same of what sgw makes itself, or has cut after its hop."""
    return w.to_peer(esp.outer(sa, sa.seal(inner, seq), tos=tos, df=df or inner[0] >> 4 == 6))


def good4(n=0, **kw):
    return udp(R4, H4, 40001, 40002, b"data %d" % n, ident=n + 1, **kw)


def good6(n=0, **kw):
    return udp(R6, H6, 40001, 40002, b"data %d" % n, **kw)


def mine4(n=0, **kw):
    return udp(H4, R4, 40001, 40002, b"data %d" % n, ident=n + 1, **kw)


def mine6(n=0, **kw):
    return udp(H6, R6, 40001, 40002, b"data %d" % n, **kw)


def pseudo6(src, dst, proto, data):
    return esp.a2b(src) + esp.a2b(dst) + struct.pack("!II", len(data), proto) + data


def icmp4(src, dst, kind, code, word, data, tos=0, ttl=64, df=False, ident=0):
    body = struct.pack("!BBHI", kind, code, 0, word) + data
    body = body[:2] + csum(body) + body[4:]
    return esp.ip_header(src, dst, 1, len(body), tos, ttl, ident, df) + body


def icmp6(src, dst, kind, code, word, data, ttl=64, tos=0):
    body = struct.pack("!BBHI", kind, code, 0, word) + data
    body = body[:2] + csum(pseudo6(src, dst, 58, body)) + body[4:]
    return esp.ip_header(src, dst, 58, len(body), tos, ttl) + body


def error4(kind, code, about, word=0, src=OWN4, dst=H4):
    """An ICMP error of sgw: internetwork control, as much of the packet as 576 bytes hold."""
    return icmp4(src, dst, kind, code, word, about[:548], tos=0xc0, df=True)


def error6(kind, code, about, word=0, src=OWN6, dst=H6):
    return icmp6(src, dst, kind, code, word, about[:1232])


def patch4(ip, at, new):
    """Change bytes of an IPv4 header and mend its checksum."""
    hl = max((ip[0] & 15) * 4, 20)
    ip = ip[:at] + new + ip[at + len(new):]
    ip = ip[:10] + b"\0\0" + ip[12:]
    return ip[:10] + csum(ip[:hl]) + ip[12:]


def arp(op, sha, sip, tha, tip, dst=None, src=None):
    return (esp.mac(dst or tha) + esp.mac(src or sha) + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, op) +
            esp.mac(sha) + esp.a2b(sip) + esp.mac(tha) + esp.a2b(tip))


BROADCAST, ZERO = "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"


def ns(src, target, mac_opt, dst=None):
    group = "ff02::1:ff" + f"{esp.a2b(target)[13]:02x}:{esp.a2b(target)[14]:02x}{esp.a2b(target)[15]:02x}"
    opt = b"\1\1" + esp.mac(mac_opt) if mac_opt else b""
    return icmp6(src, dst or group, 135, 0, 0, esp.a2b(target) + opt, ttl=255)
