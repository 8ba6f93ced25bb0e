# SPDX-License-Identifier: BSD-3-Clause
"""ESP in tunnel and transport mode, written from the RFCs on top of python-cryptography.

The oracle of the black-box tests: it shares no line with sgw or with DPDK.
scapy and tshark check it in turn (test/interop/wire.py). It works on bytes:
an ESP packet here starts with the SPI and ends with the ICV.
"""
import hashlib
import hmac
import ipaddress
import os
import socket
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

IPV4, IPV6, DUMMY = 4, 41, 59  # next headers of tunnel mode

# name: (kind, salt bytes, IV bytes, padded to, ICV bytes)
CIPHERS = {
    "aes-gcm-16": ("gcm", 4, 8, 4, 16),
    "aes-gcm-12": ("gcm", 4, 8, 4, 12),
    "aes-gcm-8": ("gcm", 4, 8, 4, 8),
    "chacha20-poly1305": ("chacha", 4, 8, 4, 16),
    "aes-cbc": ("cbc", 0, 16, 16, 0),
    "aes-ctr": ("ctr", 4, 8, 4, 0),
    "null": ("null", 0, 0, 4, 0),
}
# name: (hash, ICV bytes, key bytes)
AUTHS = {
    "hmac-sha1-96": ("sha1", 12, 20),
    "hmac-sha256-128": ("sha256", 16, 32),
    "hmac-sha384-192": ("sha384", 24, 48),
    "hmac-sha512-256": ("sha512", 32, 64),
}
KEY_LENS = {"gcm": (16, 24, 32), "chacha": (32,), "cbc": (16, 24, 32), "ctr": (16, 24, 32),
            "null": (0,)}


def load_sas(path):
    """All SAs of an sgw.yaml, in its order."""
    import yaml
    with open(path) as f:
        return [Sa.from_config(d) for d in yaml.load(f, Loader=yaml.BaseLoader).get("sad") or []]


class Refused(Exception):
    """The packet does not open; the text says why."""


def key_bytes(text):
    """A key as the configuration writes it: hex:… or ascii:…"""
    kind, _, rest = text.partition(":")
    if kind == "hex":
        return bytes.fromhex(rest.replace(":", "").replace(" ", ""))
    if kind == "ascii":
        return rest.encode()
    raise ValueError(f"key of unknown kind {kind}:")


class Sa:
    def __init__(self, spi, cipher, key=b"", auth=None, auth_key=b"", esn=False, natt=False,
                 src=None, dst=None, name=None, sport=4500, dport=4500,
                 transport=False):
        self.spi, self.cipher, self.auth, self.esn, self.natt = spi, cipher, auth, esn, natt
        self.kind, salt, self.iv_len, self.align, self.icv_len = CIPHERS[cipher]
        self.raw_key, self.raw_auth_key = key, auth_key
        self.key, self.salt = (key[:-salt], key[-salt:]) if salt else (key, b"")
        self.auth_key = auth_key
        if auth:
            self.hash, self.icv_len, _ = AUTHS[auth]
        self.src = ipaddress.ip_address(src) if src else None
        self.dst = ipaddress.ip_address(dst) if dst else None
        self.name = name or f"s{spi:x}"
        self.sport, self.dport, self.transport = sport, dport, transport

    @classmethod
    def from_config(cls, d):
        """From an entry of `sad` of an sgw.yaml, every scalar still text (yaml.BaseLoader)."""
        return cls(int(d["spi"], 0), d.get("aead") or d["cipher"],
                   key_bytes(d["key"]) if "key" in d else b"", d.get("auth"),
                   key_bytes(d["auth-key"]) if "auth-key" in d else b"",
                   d.get("esn") == "true", d.get("encapsulation") == "udp", d["src"], d["dst"],
                   d.get("name"), int(d.get("udp-source-port", 4500)),
                   int(d.get("udp-destination-port", 4500)), d.get("mode") == "transport")

    def to_config(self, extra=""):
        """The entry for `sad` as one line of YAML."""
        out = f'name: {self.name}, spi: 0x{self.spi:x}, src: "{self.src}", dst: "{self.dst}", '
        out += f"mode: {'transport' if self.transport else 'tunnel'}"
        if self.kind in ("gcm", "chacha"):
            out += f', aead: {self.cipher}, key: "hex:{self.raw_key.hex()}"'
        else:
            out += f', cipher: {self.cipher}'
            if self.raw_key:
                out += f', key: "hex:{self.raw_key.hex()}"'
            out += f', auth: {self.auth}, auth-key: "hex:{self.raw_auth_key.hex()}"'
        if self.esn:
            out += ", esn: true"
        if self.natt:
            out += ", encapsulation: udp"
            if self.sport != 4500:
                out += f", udp-source-port: {self.sport}"
            if self.dport != 4500:
                out += f", udp-destination-port: {self.dport}"
        return "{ " + out + (", " + extra if extra else "") + " }"

    # -- the cryptography ---------------------------------------------------

    def _aad(self, seq):
        if self.esn:  # RFC 4106 section 5: SPI, high half, low half
            return struct.pack("!IQ", self.spi, seq)
        return struct.pack("!II", self.spi, seq & 0xffffffff)

    def icv(self, data, seq):
        if self.esn:  # RFC 4303 section 2.2.1: high half behind the packet
            data = data + struct.pack("!I", seq >> 32)
        return hmac.new(self.auth_key, data, self.hash).digest()[:self.icv_len]

    def _plain_cipher(self, iv):
        if self.kind == "cbc":
            return Cipher(algorithms.AES(self.key), modes.CBC(iv))
        return Cipher(algorithms.AES(self.key), modes.CTR(self.salt + iv + b"\0\0\0\1"))

    def seal_raw(self, body, seq, iv=None):
        """Seal `body` = payload + padding + pad length + next header as it stands."""
        iv = os.urandom(self.iv_len) if iv is None else iv
        head = struct.pack("!II", self.spi, seq & 0xffffffff)
        if self.kind == "gcm":
            enc = Cipher(algorithms.AES(self.key), modes.GCM(self.salt + iv)).encryptor()
            enc.authenticate_additional_data(self._aad(seq))
            ct = enc.update(body) + enc.finalize()
            return head + iv + ct + enc.tag[:self.icv_len]
        if self.kind == "chacha":
            return head + iv + ChaCha20Poly1305(self.key).encrypt(self.salt + iv, body,
                                                                  self._aad(seq))
        if self.kind != "null":
            enc = self._plain_cipher(iv).encryptor()
            body = enc.update(body) + enc.finalize()
        out = head + iv + body
        return out + self.icv(out, seq)

    def seal(self, inner, seq, iv=None, next_header=None, pad=None):
        """Seal an inner packet. `pad`: the padding bytes instead of 1, 2, 3…"""
        if next_header is None:
            next_header = IPV6 if inner[:1] and inner[0] >> 4 == 6 else IPV4
        if pad is None:
            pad = bytes(range(1, 1 + -(len(inner) + 2) % self.align))
        return self.seal_raw(inner + pad + bytes([len(pad), next_header]), seq, iv)

    def open(self, esp, high=0):
        """@return (sequence number, IV, inner packet, next header); Refused if it does not open"""
        if len(esp) < 8 + self.iv_len + 2 + self.icv_len:
            raise Refused("too short")
        spi, low = struct.unpack("!II", esp[:8])
        if spi != self.spi:
            raise Refused(f"SPI 0x{spi:x}")
        seq = (high << 32) | low
        iv = esp[8:8 + self.iv_len]
        ct, icv = esp[8 + self.iv_len:len(esp) - self.icv_len], esp[len(esp) - self.icv_len:]
        if len(ct) % self.align:
            raise Refused(f"{len(ct)} bytes are no multiple of {self.align}")
        try:
            if self.kind == "gcm":
                dec = Cipher(algorithms.AES(self.key),
                             modes.GCM(self.salt + iv, icv, min_tag_length=8)).decryptor()
                dec.authenticate_additional_data(self._aad(seq))
                body = dec.update(ct) + dec.finalize()
            elif self.kind == "chacha":
                body = ChaCha20Poly1305(self.key).decrypt(self.salt + iv, ct + icv,
                                                          self._aad(seq))
            else:
                if not hmac.compare_digest(self.icv(esp[:-self.icv_len], seq), icv):
                    raise Refused("ICV is wrong")
                body = ct
                if self.kind != "null":
                    dec = self._plain_cipher(iv).decryptor()
                    body = dec.update(ct) + dec.finalize()
        except InvalidTag:
            raise Refused("ICV is wrong") from None
        pad_len, next_header = body[-2], body[-1]
        if pad_len + 2 > len(body):
            raise Refused("pad length beyond the payload")
        inner, pad = body[:-2 - pad_len], body[-2 - pad_len:-2]
        if pad != bytes(range(1, pad_len + 1)):
            raise Refused("wrong padding")
        if pad_len >= self.align:
            raise Refused("more padding than needed")
        return seq, iv, inner, next_header


# -- outer headers -----------------------------------------------------------


def csum(data):
    """The Internet checksum of RFC 1071 as two bytes."""
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return struct.pack("!H", ~s & 0xffff)


def ip_header(src, dst, proto, length, tos=0, ttl=64, ident=0, df=False):
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if src.version == 4:
        h = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + length, ident, 0x4000 if df else 0, ttl,
                        proto, 0, src.packed, dst.packed)
        return h[:10] + csum(h) + h[12:]
    return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, length, proto, ttl, src.packed,
                       dst.packed)


def outer(sa, esp, tos=0, ttl=64, ident=0, df=False):
    """Outer IP (and UDP) header in front of an ESP packet."""
    if sa.natt:
        udp = struct.pack("!HHHH", sa.sport, sa.dport, 8 + len(esp), 0)
        if sa.src.version == 6:  # RFC 3948 with RFC 6936: a real sum over IPv6
            pseudo = sa.src.packed + sa.dst.packed + struct.pack("!II", 8 + len(esp), 17)
            udp = udp[:6] + csum(pseudo + udp + esp)
        return ip_header(sa.src, sa.dst, 17, 8 + len(esp), tos, ttl, ident, df) + udp + esp
    return ip_header(sa.src, sa.dst, 50, len(esp), tos, ttl, ident, df) + esp


def skip6(ip, kinds=(0, 43, 60)):
    """Behind the IPv6 extension headers of these kinds: (offset, next header, where that stands)."""
    at, off = 6, 40
    while ip[at] in kinds and off + 8 <= len(ip):
        at, off = off, off + 8 * (ip[off + 1] + 1)
    return off, ip[at], at


def transport(sa, ip, seq, **kw):
    """A packet with its upper layer sealed (RFC 4303 section 3.1.1), in UDP where the SA says so."""
    if ip[0] >> 4 == 4:
        off, proto, at = (ip[0] & 15) * 4, ip[9], 9
    else:
        off, proto, at = skip6(ip)
    e = sa.seal(ip[off:], seq, next_header=proto, **kw)
    if sa.natt:
        e = outer(sa, e)[20 if ip[0] >> 4 == 4 else 40:]
    head = ip[:at] + bytes([17 if sa.natt else 50]) + ip[at + 1:off]
    if ip[0] >> 4 == 6:
        return head[:4] + struct.pack("!H", off - 40 + len(e)) + head[6:] + e
    head = head[:2] + struct.pack("!H", off + len(e)) + head[4:10] + b"\0\0" + head[12:]
    return head[:10] + csum(head) + head[12:] + e


# -- fragments ----------------------------------------------------------------


def options_copied(options):
    """The IPv4 options of later fragments: RFC 791 section 3.1, copied flag."""
    out, at = b"", 0
    while at < len(options) and options[at] != 0:
        n = 1 if options[at] == 1 else options[at + 1]
        if options[at] & 0x80:
            out += options[at:at + n]
        at += n
    return out + b"\0" * (-len(out) % 4)


def cut(ip, bounds, ident=0x1234, copy_options=True):
    """Fragments of a packet, cut at these offsets of its payload (RFC 791 3.2, RFC 8200 4.5)."""
    if ip[0] >> 4 == 6:
        off, proto, at = skip6(ip, (0, 43))
        data, out = ip[off:], []
        for a, b in zip([0, *bounds], [*bounds, len(data)]):
            head = ip[:at] + b"\x2c" + ip[at + 1:off] + struct.pack("!BBHI", proto, 0, a | (b < len(data)), ident)
            out.append(head[:4] + struct.pack("!H", len(head) - 40 + b - a) + head[6:] + data[a:b])
        return out
    hl = (ip[0] & 15) * 4
    data, out = ip[hl:], []
    base, = struct.unpack("!H", ip[6:8])
    for a, b in zip([0, *bounds], [*bounds, len(data)]):
        opts = ip[20:hl] if a == 0 or not copy_options else options_copied(ip[20:hl])
        h = bytes([0x40 | (20 + len(opts)) // 4, ip[1]]) + struct.pack(
            "!H2sH", 20 + len(opts) + b - a, ip[4:6], base + a // 8 | (0x2000 if b < len(data) else 0)) + \
            ip[8:10] + b"\0\0" + ip[12:20] + opts
        out.append(h[:10] + csum(h) + h[12:] + data[a:b])
    return out


def fragments(ip, mtu, ident=0x1234):
    """As a router or source cuts: every fragment as long as the MTU lets it be."""
    if len(ip) <= mtu:
        return [ip]
    v6 = ip[0] >> 4 == 6
    hl = skip6(ip, (0, 43))[0] if v6 else (ip[0] & 15) * 4
    later = hl + 8 if v6 else 20 + len(options_copied(ip[20:hl]))
    first, total, bounds = hl + 8 if v6 else hl, len(ip) - hl, []
    at, head = 0, first
    while total - at > mtu - head:
        at += (mtu - head) // 8 * 8
        bounds.append(at)
        head = later
    return cut(ip, bounds, ident)


def split_outer(ip):
    """@return (source, destination, True if in UDP 4500, ESP bytes, dict of header fields),
    or None when the packet is no ESP."""
    if len(ip) >= 20 and ip[0] >> 4 == 4:
        hl, total = (ip[0] & 15) * 4, struct.unpack("!H", ip[2:4])[0]
        if total > len(ip) or csum(ip[:hl]) != b"\0\0":
            return None
        proto, src, dst, body = ip[9], ip[12:16], ip[16:20], ip[hl:total]
        info = {"tos": ip[1], "ttl": ip[8], "df": bool(ip[6] & 0x40), "hl": hl}
    elif len(ip) >= 40 and ip[0] >> 4 == 6:
        total = 40 + struct.unpack("!H", ip[4:6])[0]
        if total > len(ip):
            return None
        off, proto, _ = skip6(ip)
        src, dst, body = ip[8:24], ip[24:40], ip[off:total]
        info = {"tos": (struct.unpack("!H", ip[:2])[0] >> 4) & 255, "ttl": ip[7], "df": None,
                "hl": off, "flow": struct.unpack("!I", ip[:4])[0] & 0xfffff}
    else:
        return None
    info["len"] = total
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if proto == 50:
        return src, dst, False, body, info
    if proto == 17 and len(body) >= 16:
        sport, dport, ulen, sum_ = struct.unpack("!HHHH", body[:8])
        if 4500 not in (sport, dport) or ulen != len(body) or body[8:12] == b"\0\0\0\0":
            return None
        if src.version == 6:
            pseudo = src.packed + dst.packed + struct.pack("!II", ulen, 17)
            info["udp_sum_ok"] = sum_ != 0 and csum(pseudo + body) == b"\0\0"
        else:
            info["udp_sum_ok"] = sum_ == 0
        info["sport"], info["dport"] = sport, dport
        return src, dst, True, body[8:], info
    return None


# -- capture files (classic pcap, Ethernet), fast enough for 100 000 packets --


def pcap_write(path, frames):
    """Deterministic: packet n has the time stamp n microseconds."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            f.write(struct.pack("<IIII", i // 1000000, i % 1000000, len(frame), len(frame)))
            f.write(frame)


def pcap_read(path):
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 24:
        return []
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    frames, at = [], 24
    while at + 16 <= len(data):
        n = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        if at + 16 + n > len(data):
            break  # a capture that was cut off by kill -9
        frames.append(data[at + 16:at + 16 + n])
        at += 16 + n
    return frames


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def eth(dst, src, ip):
    return mac(dst) + mac(src) + (b"\x86\xdd" if ip[0] >> 4 == 6 else b"\x08\x00") + ip


# -- small clear packets ------------------------------------------------------


def udp(src, dst, sport, dport, payload=b"", ttl=64, tos=0, ident=1, df=False):
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    u = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0)
    s = csum(src.packed + dst.packed + struct.pack("!II", 8 + len(payload), 17) + u + payload)
    if s == b"\0\0":
        s = b"\xff\xff"
    u = u[:6] + s + payload
    return ip_header(src, dst, 17, len(u), tos, ttl, ident, df) + u


def hop(ip):
    """The same packet one hop further: TTL or hop limit one less."""
    if ip[0] >> 4 == 6:
        return ip[:7] + bytes([ip[7] - 1]) + ip[8:]
    hl = (ip[0] & 15) * 4
    h = ip[:8] + bytes([ip[8] - 1]) + ip[9:10] + b"\0\0" + ip[12:hl]
    return h[:10] + csum(h) + h[12:] + ip[hl:]


def a2b(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def test_key(label, n):
    """n bytes that look like a key, the same every time."""
    out, i = b"", 0
    while len(out) < n:
        out += hashlib.sha256(f"{label}/{i}".encode()).digest()
        i += 1
    return out[:n]
