# SPDX-License-Identifier: BSD-3-Clause
"""Frames for test/smoke/idle.sh: idle.py WHAT INTERFACE [NUMBER [SILENCE-SECONDS]]

first  an echo request after each silence; prints the µs until its reply is here, sorted
burst  UDP packets to 10.2.0.2, as fast as they can be sent
"""
import os
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import esp

SGW, HOST = "02:00:00:00:01:01", "02:00:00:00:01:02"


def echo(i):
    icmp = b"\x08\0\0\0" + i.to_bytes(4, "big") + bytes(56)
    icmp = icmp[:2] + esp.csum(icmp) + icmp[4:]
    return esp.eth(SGW, HOST, esp.ip_header("10.1.0.2", "10.1.0.1", 1, len(icmp)) + icmp)


def first(sock, number, silence):
    times = []
    for i in range(number):
        frame = echo(i)
        time.sleep(silence)
        while select.select([sock], [], [], 0)[0]:
            sock.recv(2048)
        began = time.perf_counter()
        end = began + 1
        sock.send(frame)
        # spinning: to be woken ourselves would cost more than what is measured
        while time.perf_counter() < end:
            try:
                got = sock.recv(2048)
            except BlockingIOError:
                continue
            if got[:6] == frame[6:12] and got[12:14] == b"\x08\x00" and got[23] == 1:
                times.append(round((time.perf_counter() - began) * 1e6))
                break
        else:
            times.append(1000000)
    print(*sorted(times))


def burst(sock, number):
    frames = [esp.eth(SGW, HOST, esp.udp("10.1.0.2", "10.2.0.2", 7, 7, i.to_bytes(4, "big")))
              for i in range(number)]
    sock.setblocking(True)
    for f in frames:
        sock.send(f)


def main():
    what, iface, number, silence = sys.argv[1:5]
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    sock.bind((iface, 0))
    sock.setblocking(False)
    if what == "first":
        first(sock, int(number), float(silence))
    else:
        time.sleep(float(silence))
        burst(sock, int(number))


main()
