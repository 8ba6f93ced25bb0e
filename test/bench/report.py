# SPDX-License-Identifier: BSD-3-Clause
"""What was measured: on the terminal, as JSON, as a picture."""
import datetime
import json
import os
import re
import statistics
import subprocess
import tempfile

import cases

COLUMNS = ("dir", "algorithm", "size", "SAs", "pols", "routes", "ip", "gross", "best", "floor", "net",
           "peer", "p.net", "ratio", "goal")
FORMAT = "{:3} {:27} {:>4} {:>4} {:>5} {:>6} {:4} {:>6} {:>6} {:>5} {:>6} {:>6} {:>6} {:>5}  {}"


def result(case, windows):
    """One entry of the JSON from {program: [cycles of each window]}."""
    mid = {k: statistics.median(v) for k, v in windows.items() if v}
    out = dict(case._asdict())
    out.update(cycles=mid["sgw"], best=min(windows["sgw"]), floor_cycles=mid.get("floor"),
               net_cycles=mid["sgw"] - mid["floor"] if "floor" in mid else None,
               peer_cycles=mid.get("peer"), peer_best=min(windows.get("peer") or [0]) or None,
               peer_net=mid["peer"] - mid["floor"] if "peer" in mid and "floor" in mid else None,
               ratio=None, goal=cases.goal(case), windows=windows["sgw"],
               peer_windows=windows.get("peer", []), floor_windows=windows.get("floor", []))
    if "peer" in mid:
        # of neighbours in time, so that what the machine does besides hits both
        out["ratio"] = statistics.median(a / b for a, b in zip(windows["sgw"], windows["peer"]))
        out["meets_goal"] = out["ratio"] <= out["goal"]
    return rounded(out)


def rounded(value):
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


# -- terminal --------------------------------------------------------------------------------------

def head():
    return FORMAT.format(*COLUMNS)


def line(r):
    def n(key):
        return "-" if r[key] is None else f"{r[key]:.0f}"
    ip = f"v{r['family']}" + ("+u" if r["natt"] else "")
    ratio = "-" if r["ratio"] is None else f"{r['ratio']:.2f}"
    verdict = f"<= {r['goal']:.2f} "
    verdict += "" if r["ratio"] is None else "yes" if r["meets_goal"] else "NO"
    return FORMAT.format(r["direction"], r["algorithm"], r["size"], r["sas"], r["policies"] or "-",
                         r["routes"], ip, n("cycles"), n("best"), n("floor_cycles"), n("net_cycles"),
                         n("peer_cycles"), n("peer_net"), ratio, verdict)


def legend():
    return ("cycles of one worker a packet. gross: median, best: best window; floor: the same ports without\n"
            "a gateway (testpmd io); net = gross - floor; peer: ipsec-secgw; ratio: median of sgw / peer\n"
            "over neighbouring windows. pols -: by tunnel interface and routes. +u: ESP in UDP.")


def startup_line(r):
    if r.get("refused"):
        return f"start {r['sas']:>6} SAs {r['policies']:>6} policies: refused: {r['refused']}"
    return (f"start {r['sas']:>6} SAs {r['policies']:>6} policies: ready after {r['seconds']:.2f} s, "
            f"{r['huge_mib']:.0f} MiB of hugepages, {r['rss_mib']:.0f} MiB besides")


# -- JSON ------------------------------------------------------------------------------------------

ISA = ("aes", "pclmulqdq", "sha_ni", "avx2", "avx512f", "vaes", "vpclmulqdq", "gfni")


def said_by(*cmd):
    try:
        return subprocess.run(cmd, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def source_of(build):
    """The checkout that a build folder is of."""
    with open(os.path.join(build, "meson-info", "meson-info.json")) as f:
        return json.load(f)["directories"]["source"]


def commit_of(build):
    """Of what a program was built from. Asked before anything is measured, and after ninja: what
    ninja would still have to do is not in the program."""
    source = source_of(build)
    if "no work to do" not in said_by("ninja", "-C", build, "-n", "app/sgw/sgw"):
        return "unknown (older than its source)"
    commit = said_by("git", "-C", source, "rev-parse", "--short=10", "HEAD") or "unknown"
    changed = said_by("git", "-C", source, "status", "--porcelain", "--", "app", "lib", "meson.build", "test/bench")
    return commit + (" dirty" if changed else "")


def vectors(said):
    """What sgw says ipsec-mb uses, from its ready line."""
    found = re.search(r"sgw: ready: .*, crypto with (\w+)", said)
    return found[1] if found else "unknown"


def machine(args):
    with open("/proc/cpuinfo") as f:
        info = f.read()
    flags = set(re.search(r"^flags\s*: (.*)$", info, re.M)[1].split())

    def installed(package):
        return said_by("dpkg-query", "-W", "-f", "${Version}", package)
    return {"cpu": re.search(r"^model name\s*: (.*)$", info, re.M)[1], "tsc_hz": args.tsc_hz,
            "cores": len(os.sched_getaffinity(0)), "isa": [f for f in ISA if f in flags],
            "simd": args.simd, "vectors": args.vectors, "windows": args.windows,
            "crypto_alone": args.crypto,
            "kernel": os.uname().release, "dpdk": installed("libdpdk-dev"),
            "ipsec_mb": installed("libipsec-mb1"), "sgw": said_by(args.sgw, "--version"),
            "commit": args.commit,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def write_json(path, about, results, startup):
    with open(path, "w") as f:
        json.dump({"machine": about, "results": results, "startup": startup}, f, indent=1)
        f.write("\n")


# -- picture ---------------------------------------------------------------------------------------

PLOT = """set terminal svg size 1100,{height} font 'sans,12' background 'white'
set output '{out}'
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set boxwidth 0.9
set xtics nomirror rotate by -40 left
set bmargin 8
set rmargin 8
set grid ytics lc rgb '#dddddd'
set key top left
set yrange [0:*]
set ylabel 'TSC cycles a packet'
set multiplot layout {rows},1 title '{title}'
"""
PANEL = """set title '{title}'
plot '{data}' using 2:xtic(1) title 'sgw' lc rgb '#1b6ca8', '' using 3 title 'ipsec-secgw' lc rgb '#d1852a', \\
 '' using 4 title 'ports alone' lc rgb '#999999'
"""


def short(algorithm):
    return re.sub(r"aes-|hmac-|-poly1305|-96$|(?<=sha256)-128$", "", algorithm)


def plot(path, about, results):
    """Bars for every size and algorithm, a row for each direction."""
    with tempfile.TemporaryDirectory() as folder:
        panels = []
        for direction in ("out", "in"):
            rows = [r for r in results if r["direction"] == direction and r["sas"] == r["routes"] == 1
                    and not r["policies"] and r["family"] == 4 and not r["natt"]]
            if not rows:
                continue
            data = os.path.join(folder, direction)
            with open(data, "w") as f:
                for r in rows:
                    f.write(f'"{short(r["algorithm"])} {r["size"]}" {r["cycles"]} {r["peer_cycles"] or 0} '
                            f'{r["floor_cycles"] or 0}\n')
            name = {"out": "outbound: clear text in, ESP out", "in": "inbound: ESP in, clear text out"}
            panels.append(PANEL.format(title=name[direction], data=data))
        script = PLOT.format(height=480 * len(panels), out=path, rows=len(panels),
                             title=f"{about['cpu']}, DPDK {about['dpdk']}") + "".join(panels)
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
