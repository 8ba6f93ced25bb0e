# SPDX-License-Identifier: BSD-3-Clause
"""Tables for docs/performance.md. A file may have marked places, everything between

    <!-- bench NAME -->
    <!-- end -->

which are filled with the table of that name; a file that is not there yet gets all tables."""
import os
import re

import cases


def fill(path, blocks):
    """Put {name: text} into the marked places of a file. Those of other names stay as they are."""
    if not os.path.exists(path):
        with open(path, "w") as f:
            f.write("\n".join(f"<!-- bench {k} -->\n{v}\n<!-- end -->\n" for k, v in blocks.items()))
        return
    with open(path) as f:
        text = f.read()
    for name, block in blocks.items():
        pattern = rf"(<!-- bench {re.escape(name)} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m, b=block: f"{m[1]}{b}\n{m[2]}", text, flags=re.S)
    with open(path, "w") as f:
        f.write(text)


def table(head, rows, left=1):
    """left: columns of text, before those of numbers"""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * left + "---:|" * (len(head) - left)]
    return "\n".join(out + ["| " + " | ".join(map(str, r)) + " |" for r in rows])


def number(value, digits=0):
    return "–" if value is None else f"{value:.{digits}f}"


def is_plain(r):
    return r["sas"] == r["routes"] == 1 and not r["policies"] and r["family"] == 4 and not r["natt"]


def cells(r):
    verdict = "–" if r["ratio"] is None else f"≤ {r['goal']:.2f} " + ("yes" if r["meets_goal"] else "**no**")
    return [number(r["cycles"]), number(r["floor_cycles"]), number(r["net_cycles"]), number(r["peer_cycles"]),
            number(r["ratio"], 2), verdict]


COLUMNS = ["sgw", "ports alone", "sgw net", "ipsec-secgw", "ratio", "goal"]


def name(r):
    return {"out": "outbound ", "in": "inbound "}[r["direction"]] + r["algorithm"]


def size(r):
    return "IMIX" if r["size"] == "imix" else r["size"]


def many(r):
    said = [f"{r[k]:,} {text}" for k, text, usual in (("sas", "SAs", 1), ("policies", "policies", 0),
                                                      ("routes", "routes", 1)) if r[k] != usual]
    said += ["IPv6"] * (r["family"] == 6) + ["NAT-T"] * r["natt"]
    return ", ".join(said)


def about(m):
    kernel = ".".join(m["kernel"].split(".")[:2])
    simd = f", `--force-max-simd-bitwidth={m['simd']}`" if m["simd"] else ""
    return (f"{m['cpu']}, {m['cores']} cores, TSC {m['tsc_hz'] / 1e9:.2f} GHz, ipsec-mb {m['ipsec_mb']} with "
            f"{m['vectors']}{simd}, DPDK {m['dpdk']}, Linux {kernel}; commit {m['commit']}, "
            f"{m['date'][:10]}; {m['windows']} windows a case.")


def goals(results):
    judged = [r for r in results if r["ratio"] is not None]
    met = sum(r["meets_goal"] for r in judged)
    above = [r for r in judged if r["ratio"] > 1]
    text = f"{met} of {len(judged)} cases meet their goal; {len(above)} are above 1"
    if above:
        text += ":\n\n" + "\n".join(f"* {name(r)}, {size(r)}{', ' * bool(many(r))}{many(r)}: {r['ratio']:.3f}"
                                    for r in above)
    return text


def flat(results):
    """What many of everything cost, as multiples of the case with one."""
    plain = {(r["direction"], r["algorithm"], r["size"]): r for r in results if is_plain(r)}
    one = {(r["direction"], r["size"]): r for r in results if r["policies"] == 1 and r["sas"] == 1}
    limits = (("sas", 1.25), ("policies", 1.30), ("routes", 1.20))
    rows = []
    for r in results:
        for key, limit in limits:
            others = [k for k, _ in limits if k != key]
            usual = {"sas": 1, "policies": 0, "routes": 1}
            if r[key] <= 1 or r["family"] == 6 or r["natt"] or any(r[k] != usual[k] for k in others):
                continue
            base = plain.get((r["direction"], r["algorithm"], r["size"]))
            if key == "policies":
                base = one.get((r["direction"], r["size"]))
            if base:
                times = r["cycles"] / base["cycles"]
                verdict = f"≤ {limit:.2f} " + ("yes" if times <= limit else "**no**") if r[key] >= 1000 else "–"
                rows.append([name(r), size(r), many(r), number(base["cycles"]), number(r["cycles"]),
                             number(times, 2), verdict])
    return table(["", "size", "many", "with one", "with many", "times", "goal"], rows, 3)


def start(startup):
    rows = []
    for r in startup:
        rows.append([f"{r['sas']:,}", f"{r['policies']:,}"] +
                    (["refused: " + r["refused"], "–", "–"] if r.get("refused") else
                     [f"{r['seconds']:.2f} s", f"{r['huge_mib']:.0f} MiB", f"{r['rss_mib']:.0f} MiB"]))
    return table(["SAs", "policies", "ready after", "hugepages", "other memory"], rows, 0)


def blocks(machine, results, startup):
    """{name of a place: text} of a run"""
    plain = [r for r in results if is_plain(r)]
    if machine["simd"]:
        return {f"simd {machine['simd']}": about(machine) + "\n\n" + wide(plain)}
    out = {"machine": about(machine), "goals": goals(results),
           "plain": table(["", "size", *COLUMNS], [[name(r), size(r), *cells(r)] for r in plain], 2),
           "short": short(plain)}
    if machine.get("crypto_alone"):
        out["budget"] = budget(plain, machine["crypto_alone"])
    others = [r for r in results if not is_plain(r)]
    if others:
        out["others"] = table(["", "size", "with", *COLUMNS],
                              [[name(r), size(r), many(r), *cells(r)] for r in others], 3)
        out["flat"] = flat(results)
    if startup:
        out["start"] = start(startup)
    return out


def budget(plain, crypto):
    """Where the cycles are, and what the goal leaves for what is not crypto."""
    rows = []
    for r in plain:
        alone = crypto.get(r["algorithm"], {}).get(str(r["size"]))
        if alone is None or r["direction"] != "out" or None in (r["floor_cycles"], r["peer_cycles"]) or r["goal"] == 1:
            continue
        fixed = alone + r["floor_cycles"]
        rows.append([r["algorithm"], size(r), number(r["floor_cycles"]), number(alone), number(r["cycles"] - fixed),
                     number(r["peer_cycles"] - fixed), number(r["goal"] * r["peer_cycles"] - fixed)])
    return table(["outbound", "size", "ports", "crypto alone", "rest of sgw", "rest of ipsec-secgw",
                  "rest that the goal leaves"], rows, 2)


def by_row(results, cell):
    sizes = cases.SIZES
    rows = {}
    for r in results:
        rows.setdefault(name(r), {})[r["size"]] = cell(r)
    return table(["", "64", "528", "1420", "IMIX"],
                 [[k, *(v.get(s, "–") for s in sizes)] for k, v in rows.items()])


def short(plain):
    """For the README: gross cycles and the ratio, a line an algorithm."""
    some = [r for r in plain if r["algorithm"] in (cases.GCM, cases.SHA1, cases.SHA256)]
    return by_row(some, lambda r: number(r["cycles"]) + (f" ({r['ratio']:.2f})" if r["ratio"] else ""))


def wide(plain):
    return by_row(plain, lambda r: f"{number(r['cycles'])} ({number(r['net_cycles'])})")
