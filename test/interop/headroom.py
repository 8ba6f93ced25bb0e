#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What /sgw/headroom says, held against the limit that sgw then really has.

  net_pcap infinite_rx ──▶ test/bench/feed.c ──▶ sgw, one worker ──▶ net_null

feed.c lets through so many packets a second, or all, in one and the same run; it counts what comes
and leaves, and the clock is ours. So the limit is not sgw's own word. Proves that

* from packets that come one by one the prediction is a lower bound, and says so;
* from full bursts at a fraction of the limit it is the limit, and load is that fraction;
* at the limit there is no headroom;
* once full bursts were seen it is the limit however packets come;
* a second after the last packet there is no headroom and no prediction any more.

Machines that are shared drift by a third between two seconds; a limit and its prediction are taken
in turn, at most eight times, and may differ by TOLERANCE. GCM, whose packets cost the same each, and
CBC, where ipsec-mb works on eight at once.
"""
import mmap
import os
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "bench")]
import esp
import measure
import sgw
import tools
import world

TOLERANCE = 1.5   # a wrong formula is wrong by 2 and more
SECOND = 1.1      # the window, and a tick for it to be read
RATE = 200000     # packets a second, below any limit
CASES = (("aes-gcm-16", 16, None, 64), ("aes-cbc", 16, "hmac-sha1-96", 528))
NAME = "headroom"


def config(alg):
    ports = [f'p0: {{ device: "net_pcap0,rx_pcap=send.p0.pcap,infinite_rx=1", mac: "{world.MAC0}", '
             "addresses: [10.10.0.254/24] }",
             f'p1: {{ device: "net_null1,no-rx=1", mac: "{world.MAC1}", addresses: [{world.LOCAL4}/24] }}']
    return world.config(
        NAME, ports=ports, sad=[world.out_sa(0x2001, *alg).to_config(), world.in_sa(0x1001, *alg).to_config()],
        spd=[world.policy_out("10.10.0.0/16", "10.20.0.0/16"), world.policy_in("10.20.0.0/16", "10.10.0.0/16")],
        neighbours=[f'{{ port: p0, address: 10.10.0.1, mac: "{world.HOST}" }}',
                    f'{{ port: p1, address: {world.REMOTE4}, mac: "{world.PEER}" }}'],
        routes=["{ to: 10.10.0.0/16, via: 10.10.0.1 }"], base_routes=False, system="idle: poll")


class Feed:
    """sgw behind feed.c."""

    def __init__(self, folder, alg, size):
        sgw.write_config(folder, config(alg))
        esp.pcap_write(os.path.join(folder, "send.p0.pcap"), [world.from_host(
            esp.udp("10.10.0.1", "10.20.0.9", 1000, 2000, bytes(size - 28)))] * 256)
        with open(os.path.join(folder, "page"), "w+b") as f:
            f.truncate(measure.PAGE_SIZE)
            self.page = mmap.mmap(f.fileno(), measure.PAGE_SIZE)
        self.set(RATE, 1 << 40)  # a train that never comes
        worker, others = measure.cpus()
        env = {"LD_PRELOAD": os.path.join(folder, "feed.so"), "BENCH_PAGE": os.path.join(folder, "page"),
               "BENCH_RX_PORT": "net_pcap0", "BENCH_TX_PORT": "net_null1"}
        os.environ.update(env)
        try:
            self.sgw = sgw.Running(folder, args=["--no-pci", "--no-huge", "-m", "256", "--lcores",
                                                 f"0@({','.join(map(str, others))}),1@{worker}"])
        finally:
            for name in env:
                del os.environ[name]
        self.sgw.wait_ready()

    def set(self, rate, train=1):
        struct.pack_into("=QQ", self.page, measure.AT["rate"], rate, train)

    def count(self, what):
        return struct.unpack_from("=Q", self.page, measure.AT[what])[0]

    def second(self, rate, train=1, seconds=SECOND):
        """A second at this rate. @return (came a second, left a second, the gateway, its worker)"""
        self.set(rate, train)
        time.sleep(0.05)
        rx, tx, began = self.count("rx"), self.count("tx"), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        rx, tx = (self.count("rx") - rx) / took, (self.count("tx") - tx) / took
        return rx, tx, sgw.telemetry(NAME, "/sgw/headroom"), sgw.telemetry(NAME, "/sgw/headroom,0")


def near(what, have, want, tolerance):
    if have is None or not want / tolerance <= have <= want * tolerance:
        return [f"{what} is {have}, {want:.0f} expected, give or take {100 * (tolerance - 1):.0f} %"]
    return []


def same(what, have, want):
    return [] if have == want else [f"{what} is {have!r}, {want!r} expected"]


def one_by_one(came, gateway, worker, limit):
    out = near("packets_per_s", gateway["packets_per_s"], came, 1.05)
    out += same("prediction", gateway.get("prediction"), "at least")
    predicted = gateway.get("predicted_packets_per_s", 0)
    if not came <= predicted <= limit * TOLERANCE:
        out.append(f"{came:.0f} came, {predicted} predicted, the limit is {limit:.0f}")
    return out + near("headroom_permille", gateway.get("headroom_permille"), 1000 * predicted / came, 1.05)


def predicts(came, gateway, worker, limit):
    out = same("prediction", gateway.get("prediction"), "full bursts")
    out += near("predicted_packets_per_s", gateway.get("predicted_packets_per_s"), limit, TOLERANCE)
    out += near("headroom_permille", gateway.get("headroom_permille"), 1000 * limit / came, TOLERANCE)
    out += near("predicted by the worker", worker.get("predicted_packets_per_s"), limit, TOLERANCE)
    return out + near("headroom_permille of the worker", worker.get("headroom_permille"), 1000 * limit / came, TOLERANCE)


def full_bursts(came, gateway, worker, limit):
    out = near("load_permille", worker["load_permille"], 1000 * came / limit, TOLERANCE)
    return out + predicts(came, gateway, worker, limit) + near(
        "burst_permille", worker.get("burst_permille"), 1000, 1.1)


def at_limit(came, gateway, worker):
    return near("headroom_permille", gateway.get("headroom_permille"), 1000, 1.03) + near(
        "load_permille", worker["load_permille"], 1000, 1.03) + near(
        "packets_per_s", gateway["packets_per_s"], came, 1.1)


def silent(gateway, worker):
    out = same("state", gateway["state"], "no traffic") + same("state", worker["state"], "no traffic")
    for answer in (gateway, worker):
        out += [f"{key} is told: {answer[key]}" for key in ("headroom_permille", "predicted_packets_per_s")
                if key in answer]
    return out + same("packets_per_s", gateway["packets_per_s"], 0)


def in_turn(feed, judge, train):
    """A second at a quarter of the limit, a second at it; what other work disturbed is done again. The first
    look at the limit is no longer in the window when the quarter is asked for."""
    limit = feed.second(0, seconds=0.3)[1]
    for _ in range(8):
        came, _, gateway, worker = feed.second(round(limit / 4), train)
        limit_came, limit, *top = feed.second(0)
        faults = judge(came, gateway, worker, limit)
        print(f"     {came:.0f} came, {gateway.get('predicted_packets_per_s')} predicted "
              f"({gateway.get('prediction')}), the limit was {limit:.0f}; load {worker['load_permille']} ‰, "
              f"burst {worker.get('burst_permille')} ‰")
        if not faults:
            break
    return faults, at_limit(limit_came, *top), limit


def run(report, feed):
    report.check("before the first packet: none", silent(*feed.second(RATE, 1 << 40, 0.2)[2:]))
    first = feed.second(RATE)  # nothing is known yet: full bursts come later only
    faults, top, limit = in_turn(feed, full_bursts, 64)
    report.check("one by one: a lower bound, and it says so", one_by_one(first[0], *first[2:], limit))
    report.check("full bursts: the limit", faults)
    report.check("at the limit: no headroom", top)
    report.check("one by one, after full bursts: the limit", in_turn(feed, predicts, 1)[0])
    report.check("a second after the last packet: none", silent(*feed.second(RATE, 1 << 40)[2:]))


def main():
    report = sgw.Report("headroom")
    for *alg, size in CASES:
        with tempfile.TemporaryDirectory() as folder:
            tools.build_feed(os.path.join(folder, "feed.so"))
            report.prefix = f"{world.label(*alg)}, {size}: "
            feed = Feed(folder, alg, size)
            try:
                run(report, feed)
            finally:
                r = feed.sgw.stop()
                feed.page.close()
            report.check("it ends as it should", world.run_faults(r))
    report.end()


if __name__ == "__main__":
    main()
