# SPDX-License-Identifier: BSD-3-Clause
"""scapy and tshark as independent decoders of ESP."""
import copy
import logging
import subprocess

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

TSHARK_CIPHERS = {
    "aes-gcm-16": "AES-GCM with 16 octet ICV [RFC4106]",  # plain "AES-GCM [RFC4106]" misreads the ICV
    "aes-gcm-12": "AES-GCM with 12 octet ICV [RFC4106]",
    "aes-gcm-8": "AES-GCM with 8 octet ICV [RFC4106]",
    "aes-cbc": "AES-CBC [RFC3602]", "aes-ctr": "AES-CTR [RFC3686]", "null": "NULL",
}
TSHARK_AUTHS = {None: "NULL", "hmac-sha1-96": "HMAC-SHA-1-96 [RFC2404]",
                "hmac-sha256-128": "HMAC-SHA-256-128 [RFC4868]",
                "hmac-sha384-192": "HMAC-SHA-384-192 [RFC4868]",
                "hmac-sha512-256": "HMAC-SHA-512-256 [RFC4868]"}
SCAPY_CIPHERS = {"aes-gcm-16": "AES-GCM", "aes-cbc": "AES-CBC", "aes-ctr": "AES-CTR",
                 "null": "NULL", "chacha20-poly1305": "CHACHA20-POLY1305"}
SCAPY_AUTHS = {None: None, "hmac-sha1-96": "HMAC-SHA1-96", "hmac-sha256-128": "SHA2-256-128",
               "hmac-sha384-192": "SHA2-384-192", "hmac-sha512-256": "SHA2-512-256"}


def tshark_knows(sa):
    """tshark 4.0 has neither ChaCha20 nor ESN."""
    return sa.cipher in TSHARK_CIPHERS and not sa.esn


def scapy_knows(sa):
    """scapy 2.5 has no short GCM tags, and feeds no ESN half to a separate HMAC."""
    return sa.cipher in SCAPY_CIPHERS and not (sa.esn and sa.auth)


def tshark(path, sas, fields, display=None):
    """Rows of fields of a capture, ESP opened with the keys of `sas`. A field that occurs in
    several layers gives its values joined by commas, outer first."""
    cmd = ["tshark", "-n", "-r", path, "-o", "esp.enable_encryption_decode:TRUE",
           "-o", "esp.enable_authentication_check:TRUE", "-T", "fields"]
    for s in sas:
        cmd += ["-o", 'uat:esp_sa:"IPv%d","%s","%s","0x%08x","%s","%s","%s","%s"' % (
            s.src.version, s.src, s.dst, s.spi, TSHARK_CIPHERS[s.cipher],
            "0x" + s.raw_key.hex() if s.raw_key else "", TSHARK_AUTHS[s.auth],
            "0x" + s.raw_auth_key.hex() if s.auth else "")]
    if display:
        cmd += ["-Y", display]
    for f in fields:
        cmd += ["-e", f]
    p = subprocess.run(cmd, capture_output=True, text=True, timeout=300)
    if p.returncode:
        raise RuntimeError(f"tshark failed: {p.stderr}")
    return [line.split("\t") for line in p.stdout.splitlines()]


def scapy_sa(sa, esn_high=0):
    from scapy.all import IP, IPv6
    from scapy.layers.inet import UDP
    from scapy.layers.ipsec import ESP, SecurityAssociation
    ip = IP if sa.src.version == 4 else IPv6
    return SecurityAssociation(
        ESP, spi=sa.spi, crypt_algo=SCAPY_CIPHERS[sa.cipher], crypt_key=sa.raw_key,
        auth_algo=SCAPY_AUTHS[sa.auth], auth_key=sa.raw_auth_key or None,
        tunnel_header=ip(src=str(sa.src), dst=str(sa.dst)),
        nat_t_header=UDP(sport=sa.sport, dport=sa.dport) if sa.natt else None,
        esn_en=sa.esn, esn=esn_high)


def scapy_open(sa, ip, esn_high=0):
    """The inner packet as bytes. `ip`: the outer packet as bytes."""
    from scapy.all import IP, IPv6, raw
    outer = IP(ip) if ip[0] >> 4 == 4 else IPv6(ip)
    their = scapy_sa(sa)
    args = {"esn_en": True, "esn": esn_high} if sa.esn else {}
    return raw(their.decrypt(copy.deepcopy(outer), **args))
