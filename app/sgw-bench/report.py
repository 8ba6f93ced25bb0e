#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An HTML page of what sgw-bench recorded (--json), with plots by gnuplot; with a second
record, what changed since then and how sure that is.

    sgw-bench report RESULT.json [BEFORE.json] -o FILE.html"""
import html
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p.sub { color: #57606a; margin-top: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: .5rem 0 1rem; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid #d0d7de; vertical-align: top; }
td.t:first-child { min-width: 13em; } th { font-weight: 600; border-bottom: 2px solid #8c959f; } td.t, th.t { text-align: left; }
td.note { color: #9a3412; text-align: left; border-bottom: 1px solid #d0d7de; padding-top: 0; }
tr.noted td { border-bottom: none; }
svg { max-width: 100%; height: auto; } figure { margin: 0 0 1rem; break-inside: avoid; }
code { background: #f6f8fa; padding: .1rem .25rem; overflow-wrap: anywhere; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } table { font-size: 8.5pt; }
  th, td { padding: .15rem .3rem; } h2 { break-after: avoid; }
  tr { break-inside: avoid; } td.note { color: #000; font-style: italic; } code { background: none; } }
"""
COLOURS = ["#0b5cad", "#b45309", "#15803d", "#7c3aed", "#be123c", "#0e7490", "#4d7c0f", "#6b7280"]


def esc(v):
    return html.escape(str(v), quote=True)


def num(v, digits=1):
    return "–" if v is None or not isinstance(v, (int, float)) or not math.isfinite(v) else f"{v:,.{digits}f}".replace(",", "\u202f")


def label(f):
    """What a figure is of, without its size."""
    return " ".join(str(x) for x in (f["name"], f["mode"], f["direction"], f"IPv{f['family']}", f["algorithm"]) if x)


def frame_size(f):
    """To order by: the mean length with FCS."""
    return f["frame"] + 4


# ---------------------------------------------------------------- confidence

def incomplete_beta(a, b, x):
    """Regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    tiny, c = 1e-300, 1.0
    d = 1 / (1 - (a + b) * x / (a + 1) or tiny)
    h = d
    for m in range(1, 300):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / (1 + top * d or tiny)
            c = 1 + top / c or tiny
            h *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return front * h / a


def t_probability(t, df):
    """Two-sided probability of a larger |t|."""
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


def t_quantile(p, df):
    """|t| that is exceeded with probability p on both sides together."""
    low, high = 0.0, 1e6
    for _ in range(200):
        mid = (low + high) / 2
        low, high = (mid, high) if t_probability(mid, df) > p else (low, mid)
    return (low + high) / 2


def welch(after, before):
    """Difference of the means, its 95 % interval, and the probability of a difference as large
    by chance (Welch's t-test); None when there are too few values to tell."""
    if len(after) < 2 or len(before) < 2:
        return None
    va, vb = statistics.variance(after) / len(after), statistics.variance(before) / len(before)
    diff = statistics.mean(after) - statistics.mean(before)
    if va + vb == 0:
        return diff, diff, diff, 0.0 if diff else 1.0
    df = (va + vb) ** 2 / (va ** 2 / (len(after) - 1) + vb ** 2 / (len(before) - 1))
    half = t_quantile(0.05, df) * math.sqrt(va + vb)
    return diff, diff - half, diff + half, t_probability(diff / math.sqrt(va + vb), df)


# ---------------------------------------------------------------- plots

def gnuplot(script, blocks, keys=1):
    """One SVG. blocks: lists of rows, to be used as $d0, $d1 …; keys: lines of the legend"""
    data = "".join(f"$d{i} << EOD\n" + "".join(" ".join(str(v) for v in row) + "\n" for row in rows) + "EOD\n"
                   for i, rows in enumerate(blocks))
    head = (f"set terminal svg size 860,{360 + 18 * keys} dynamic font 'sans,13' background '#ffffff'\n"
            "set border 3 lc '#8c959f'\nset tics nomirror textcolor '#1b1f24'\nset grid lc '#e5e7eb'\n"
            "set key outside top center vertical maxcols 1\nset yrange [0:*]\n")
    try:
        p = subprocess.run(["gnuplot"], input=data + head + script, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        sys.exit("report: gnuplot is not there; apt-get install gnuplot-nox")
    if p.returncode != 0 or "<svg" not in p.stdout:
        sys.exit(f"report: gnuplot: {p.stderr.strip()[:300]}")
    svg = p.stdout[p.stdout.index("<svg"):]
    # Several in one page: their names must differ.
    gnuplot.n = getattr(gnuplot, "n", 0) + 1
    return re.sub(r"(id=['\"]|url\(#|href=['\"]#)(gp[A-Za-z_0-9]*|[A-Za-z_]\w*)", rf"\1g{gnuplot.n}\2", svg)


def quoted(text):
    """For gnuplot, between single quotes, without its markup."""
    return "'" + str(text).replace("'", "''") + "' noenhanced"


def rate_plot(figures):
    groups = {}
    for f in figures:
        if f["mbps"] and f["mode"] not in ("back-to-back", "recovery"):
            groups.setdefault(label(f), []).append((frame_size(f), f["mbps"], f["ceiling_mbps"] or "NaN"))
    if not groups:
        return ""
    if all(len(rows) == 1 for rows in groups.values()):
        return rate_bars(groups)
    blocks, plots = [], []
    for i, (name, rows) in enumerate(sorted(groups.items())):
        blocks.append(sorted(rows))
        colour = COLOURS[i % len(COLOURS)]
        plots.append(f"$d{i} using 1:2 with linespoints pt 7 ps 0.7 lw 2 lc '{colour}' title {quoted(name)}")
        plots.append(f"$d{i} using 1:3 with linespoints pt 2 ps 0.6 dt 2 lc '{colour}' notitle")
    return figure(gnuplot("set xlabel 'frame with FCS, bytes (mean)'\nset ylabel 'Mb/s of clear frames'\nset xrange [0:1600]\n"
                          "plot " + ", \\\n".join(plots) + "\n", blocks, len(groups)),
                  "Rate by size; dashed, with crosses: what the wire can carry.")


def rotated(names):
    tics = ", ".join(f"{quoted(n).replace(' noenhanced', '')} {i}" for i, n in enumerate(names))
    return f"set rmargin 26\nset xrange [-0.6:{len(names) - 0.4}]\nset xtics rotate by -25 noenhanced ({tics})\n"


def rate_bars(groups):
    """Of one size only there is no line to draw."""
    rows = [(i, *v[0][1:]) for i, (_, v) in enumerate(sorted(groups.items()))]
    return figure(gnuplot(rotated(sorted(groups)) + "set ylabel 'Mb/s of clear frames'\nset style fill solid 0.85 noborder\n"
                          f"plot $d0 using 1:2:(0.5) with boxes lc '{COLOURS[0]}' title 'rate', "
                          f"$d0 using 1:3 with points pt 2 ps 1.2 lw 2 lc '{COLOURS[1]}' title 'what the wire can carry'\n", [rows], 12),
                  "Rate of each figure.")


def figure(svg, caption):
    return f"<figure>{svg}<figcaption>{esc(caption)}</figcaption></figure>\n"


def good_trials(f):
    return [t for t in f["trials"] if not t["void"]]


def loss_plot(figures):
    blocks, plots = [], []
    for f in figures:
        rows = sorted((t["load_mbps"], 100 * t["loss"]) for t in good_trials(f))
        if len({r[0] for r in rows}) < 3:
            continue
        i = len(blocks)
        blocks.append(rows)
        plots.append(f"$d{i} using 1:2 with linespoints pt 7 ps 0.6 lw 1.5 lc '{COLOURS[i % len(COLOURS)]}' "
                     f"title {quoted(label(f) + ' ' + f['size'])}")
    if not blocks:
        return ""
    return figure(gnuplot("set xlabel 'offered, Mb/s'\nset ylabel 'lost, %'\nplot " + ", \\\n".join(plots) + "\n", blocks, len(blocks)),
                  "Loss by load, all trials.")


def latency_plot(figures):
    rows = [(i, *(f["latency_us"][k] for k in ("p50", "p99", "p999", "max"))) for i, f in
            enumerate(f for f in figures if f["latency_us"])]
    names = [label(f) + " " + f["size"] for f in figures if f["latency_us"]]
    if not rows:
        return ""
    plots = [f"$d0 using 1:{k + 2} with points pt {pt} ps 1 lc '{COLOURS[k]}' title '{name}'"
             for k, (name, pt) in enumerate((("p50", 7), ("p99", 5), ("p99.9", 9), ("max", 2)))]
    return figure(gnuplot(rotated(names) + "set logscale y\nset yrange [*:*]\nset ylabel 'latency, µs'\nplot " +
                          ", \\\n".join(plots) + "\n", [rows], 14),
                  "Latency in the trial that stands for each figure.")


def trials_plot(figures):
    out = ""
    for f in figures:
        rows = [(i + 1, t["load_mbps"], t["rate_mbps"]) for i, t in enumerate(f["trials"])]
        if len(rows) < 4 or len(out) > 600000:
            continue
        out += figure(gnuplot("set xlabel 'trial'\nset ylabel 'Mb/s'\n"
                              f"plot $d0 using 1:2 with linespoints pt 6 lw 1.5 lc '{COLOURS[0]}' title 'offered', "
                              f"$d0 using 1:3 with linespoints pt 7 ps 0.6 lw 1.5 lc '{COLOURS[1]}' title 'arrived'\n", [rows]),
                      f"The search of {label(f)}, {f['size']}.")
    return out


# ---------------------------------------------------------------- tables

def table(head, rows, notes=None):
    """head: names, a leading ' ' for text columns. notes: a text below a row, or ''."""
    def cell(tag, name, v):
        return f"<{tag}{' class=t' if name.startswith(' ') else ''}>{esc(v)}</{tag}>"
    out = "<table><thead><tr>" + "".join(cell("th", h, h.strip()) for h in head) + "</tr></thead><tbody>\n"
    out = out.replace("class=t", 'class="t"')
    for i, row in enumerate(rows):
        note = notes[i] if notes else ""
        out += f"<tr{' class=noted' if note else ''}>".replace("class=noted", 'class="noted"')
        out += "".join(cell("td", h, v) for h, v in zip(head, row)).replace("class=t", 'class="t"') + "</tr>\n"
        if note:
            out += f'<tr><td class="note" colspan="{len(head)}">{esc(note)}</td></tr>\n'
    return out + "</tbody></table>\n"


def headline(figures):
    rows, notes = [], []
    for f in figures:
        lat = f["latency_us"] or {}
        share = 100 * f["mbps"] / f["ceiling_mbps"] if f["ceiling_mbps"] else None
        rows.append((label(f), f["size"], num(f["mbps"]), num(f["pps"] / 1000), num(f["ceiling_mbps"]), num(share), f["bound"],
                     num(f["headroom"] or None, 2), num(lat.get("p50")), num(lat.get("p99")),
                     f"{len(f['values'])} ({num(100 * f['spread'])} %)"))
        notes.append(f["remark"])
    return table([" what", "frame", "Mb/s", "kpps", "wire", "% of it", " bound by", "headroom", "p50 µs", "p99 µs", "repeats (spread)"],
                 rows, notes)


def key(f):
    return f["mode"], f["name"], f["direction"], f["family"], f["algorithm"], f["size"]


def comparison(figures, before):
    old = {key(f): f for f in before}
    rows = []
    for f in figures:
        b = old.get(key(f))
        if not b or not b["mbps"]:
            continue
        w = welch([v for v in f["values"] if v is not None], [v for v in b["values"] if v is not None])
        diff = 100 * (f["mbps"] / b["mbps"] - 1)
        if w is None:
            sure = "not known: fewer than 2 repeats"
        else:
            sure = f"{num(100 * w[1] / b['mbps'])} to {num(100 * w[2] / b['mbps'])} %, p = {w[3]:.3g}"
        rows.append((label(f), f["size"], num(b["mbps"]), num(f["mbps"]), f"{diff:+.1f} %", sure))
    if not rows:
        return "<h2>Before and after</h2><p>The two records have no figure in common.</p>\n"
    return "<h2>Before and after</h2>\n" + table([" what", "frame", "before Mb/s", "after Mb/s", "difference", " 95 % interval (Welch)"], rows)


COUNTERS = ["sent", "received", "lost", "duplicated", "reordered", "extent", "corrupted", "foreign", "esp_bad", "esp_replayed",
            "in_clear", "missed", "refused"]


def odd_trials(figures):
    """Trials that were void, or in which something happened that is no loss."""
    rows = []
    for f in figures:
        for t in f["trials"]:
            total = {k: sum(s[k] for s in t["streams"]) for k in COUNTERS}
            if t["void"] or any(total[k] for k in COUNTERS[3:-1]):
                rows.append((label(f) + " " + f["size"], num(t["load_mbps"]), t["void"] or "–",
                             ", ".join(f"{k} {v}" for k, v in total.items() if v and k not in ("received",)), t["remark"]))
    if not rows:
        return "<p>No trial was void, and nothing was duplicated, reordered, corrupted or foreign.</p>\n"
    rest = f"<p>… and {len(rows) - 60} more.</p>\n" if len(rows) > 60 else ""
    return table([" figure", "Mb/s", " void", " counted", " remark"], rows[:60]) + rest


def machine(doc):
    m, rows = doc["machine"], []
    for k, name in (("host", "host"), ("cpu", "CPU"), ("isa", "instruction sets"), ("cores", "cores"), ("mhz", "MHz"),
                    ("governor", "governor"), ("kernel", "kernel"), ("kernel_command_line", "kernel command line"),
                    ("sgw_bench", "sgw-bench"), ("dpdk", "DPDK")):
        v = m.get(k)
        v = " ".join(str(x) for x in v) if isinstance(v, list) else v
        if v not in (None, ""):
            rows.append((name, v))
    load = doc.get("cpu_load") or []
    if load:
        rows.append(("busy, % of each core", " ".join(num(x, 0) for x in load)))
    for p in doc["ports"]:
        rows.append((f"port {p['role']}", f"{p['name']}, {p['driver']}, {p['mac']}, {p['link']}"))
    w = doc.get("watts") or {}
    if w.get("loaded") is not None:
        rows.append(("watts", f"idle {num(w.get('idle'))}, loaded {num(w['loaded'])}; {num(w.get('nj_per_bit'), 2)} nJ a bit"))
    if doc.get("dut_cpu") is not None:
        rows.append(("CPU of the device, %", num(doc["dut_cpu"])))
    return table([" ", " "], rows)


def page(doc, before):
    figures = doc["figures"]
    title = "sgw-bench: " + ", ".join(sorted({f["mode"] for f in figures})) if figures else "sgw-bench"
    out = ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
           "<meta name=\"viewport\" content=\"width=device-width\"/>"
           f"<title>{esc(title)}</title><style>{STYLE}</style></head><body>\n<h1>{esc(title)}</h1>\n"
           f"<p class=\"sub\">{esc(doc['when'])}, {esc(doc['machine'].get('host', ''))}</p>\n"
           "<p>Rates are of clear Ethernet frames without FCS, one direction; sizes are of frames with FCS. Each stands beside "
           "what the wire can carry.</p>\n")
    out += "<h2>Figures</h2>\n" + (headline(figures) if figures else "<p>None was found.</p>\n")
    if before is not None:
        out += comparison(figures, before["figures"])
    for name, plot in (("Rate and ceiling", rate_plot), ("Loss", loss_plot), ("Latency", latency_plot), ("Searches", trials_plot)):
        svg = plot(figures)
        out += f"<h2>{name}</h2>\n{svg}" if svg else ""
    out += "<h2>Void and odd trials</h2>\n" + odd_trials(figures)
    out += "<h2>Made on</h2>\n" + machine(doc)
    return out + f"<p>Command: <code>{esc(' '.join(doc['command']))}</code></p>\n</body></html>\n"


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        if doc["schema"] != 1:
            raise ValueError(f"schema {doc['schema']}, this report knows 1")
        return doc
    except (OSError, ValueError, KeyError, TypeError) as e:
        sys.exit(f"report: {path}: {e}; it must be what sgw-bench wrote with --json")


def main():
    args = sys.argv[1:]
    if len(args) < 3 or "-o" not in args or len(args) > 4:
        sys.exit(__doc__)
    at = args.index("-o")
    target, files = args[at + 1], args[:at] + args[at + 2:]
    text = page(load(files[0]), load(files[1]) if len(files) > 1 else None)
    folder = os.path.dirname(os.path.abspath(target))
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a device or a pipe is not replaced
            with open(target, "w", encoding="utf-8") as f:
                f.write(text)
            return
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.chmod(f.name, 0o644)
        os.replace(f.name, target)
    except OSError as e:
        sys.exit(f"report: {target}: {e.strerror}")


if __name__ == "__main__":
    main()
