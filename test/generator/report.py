#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the page of `sgw-bench report` is well-formed whatever the record says (hostile
names too), that every key of a record is documented and every documented one is there, and that the
confidence of a comparison is that of the textbooks."""
import copy
import html.parser
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
import sgw

spec = importlib.util.spec_from_file_location("report", os.path.join(TOP, "app", "sgw-bench", "report.py"))
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)

BENCH = os.path.join(os.path.dirname(sgw.binary()), "..", "sgw-bench", "sgw-bench")
EVIL = "<script>alert('x')</script> & \"q\" 'p' $d0 `date` \u2603 {/b}_^"


def record(folder):
    """A real one: a loss curve of one second, over net_ring."""
    path = os.path.join(folder, "real.json")
    subprocess.run([BENCH, *sgw.eal(mem=300, workers=2), "--", "loss", "-t", "net_ring0", "-r", "net_ring0", "-d",
                    "02:00:00:00:00:01", "--rate", "50", "--time", "0.1", "--settle", "0.1", "--warm-up", "0", "--watts", "7.5",
                    "--dut-cpu", "50", "--name", EVIL, "--json", path], capture_output=True, timeout=100, check=False)
    with open(path) as f:
        return path, json.load(f)


class Page(html.parser.HTMLParser):
    """Faults of a page: tags that do not match, scripts, anything from elsewhere."""

    VOID = {"meta", "br", "hr", "img", "link"}

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.words = [], [], ""
        self.feed(text)
        if self.open:
            self.faults.append(f"never closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "iframe", "object", "link"):
            self.faults.append(f"has a <{tag}>")
        for k, v in attrs:
            if k.startswith("on") or (k in ("src", "href", "xlink:href") and not (v or "").startswith("#")):
                self.faults.append(f"{tag}: {k}={v}")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.words += data


def page_faults(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    page = Page(text)
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        try:
            xml.etree.ElementTree.fromstring(svg)
        except xml.etree.ElementTree.ParseError as e:
            page.faults.append(f"an SVG is no XML: {e}")
    ids = re.findall(r"<(?:g|path|circle|clipPath|pattern|filter)[^>]* id=['\"]([^'\"]+)", text)
    if len(ids) != len(set(ids)):
        page.faults.append("names in the SVGs are there twice")
    if text.count("<svg") < 2:
        page.faults.append("has no plots")
    return page, text


def make(folder, *files):
    out = os.path.join(folder, "page.html")
    p = subprocess.run([BENCH, "report", *files, "-o", out], capture_output=True, text=True, timeout=100)
    return out, [] if p.returncode == 0 else [f"exit code {p.returncode}", p.stderr[:500]]


def save(folder, name, doc):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        json.dump(doc, f)
    return path


def documented():
    with open(os.path.join(TOP, "docs", "benchmarking-results.md")) as f:
        text = f.read()
    return set(re.findall(r"`([a-z_0-9]+)`", text))


def keys_of(value):
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys_of, value.values()), set())
    return set().union(*map(keys_of, value), set()) if isinstance(value, list) else set()


def evil(doc):
    doc = copy.deepcopy(doc)
    for f in doc["figures"]:
        f.update(name=EVIL, algorithm=EVIL, size=EVIL, remark=EVIL)
        f["trials"][0].update(void=EVIL, remark=EVIL)
    doc["machine"]["cpu"] = doc["machine"]["kernel_command_line"] = doc["when"] = EVIL
    doc["command"].append(EVIL)
    doc["ports"][0]["name"] = EVIL
    return doc


def test_page(r, folder):
    path, doc = record(folder)
    out, bad = make(folder, path)
    page, _ = page_faults(out)
    figure = doc["figures"][0]
    if report.num(figure["ceiling_mbps"]) not in page.words or "7.5" not in page.words:
        bad.append("ceiling or watts are not in it")
    r.check("a real record makes a page", bad + page.faults)
    out, bad = make(folder, save(folder, "evil.json", evil(doc)))
    page, text = page_faults(out)
    if EVIL not in page.words or "<script" in text.lower():
        bad.append("a hostile name is not shown as what it is")
    r.check("hostile names are only names", bad + page.faults)
    found, told = keys_of(doc), documented()
    r.check("every key of a record is documented", [f"not in docs/benchmarking-results.md: {k}" for k in sorted(found - told)])
    for name, wrong in (("no JSON", "{"), ("no record", "[]"), ("another schema", '{"schema": 2}')):
        with open(os.path.join(folder, "wrong.json"), "w") as f:
            f.write(wrong)
        _, bad = make(folder, os.path.join(folder, "wrong.json"))
        r.check(f"{name}: refused with a reason", [] if bad and "wrong.json" in bad[-1] and "Traceback" not in bad[-1] else [str(bad)])
    before = copy.deepcopy(doc)
    figure.update(mbps=50.0, values=[49.0, 50.0, 51.0])
    before["figures"][0].update(mbps=40.0, values=[39.0, 40.0, 41.0])
    out, bad = make(folder, save(folder, "a.json", doc), save(folder, "b.json", before))
    page, _ = page_faults(out)
    # equal variances of 1, n = 3: t = 10 / sqrt(2/3) = 12.247, 4 degrees of freedom, p = 0.000255;
    # half of the interval 2.776 sqrt(2/3) = 2.267 Mb/s, of 40
    for words in ("+25.0 %", "19.3 to 30.7 %", "p = 0.000255"):
        if words not in page.words:
            bad.append(f"the comparison does not say {words}")
    r.check("before and after, with three repeats", bad + page.faults)
    figure["values"] = [50.0]
    out, bad = make(folder, save(folder, "a.json", doc), save(folder, "b.json", before))
    page, _ = page_faults(out)
    r.check("one repeat: no confidence is claimed", bad + ([] if "fewer than 2 repeats" in page.words else ["is claimed"]))


def test_statistics(r):
    # Student's t: the two-sided 5 % points of every table
    for df, t in ((1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980)):
        got = report.t_quantile(0.05, df)
        r.check(f"t of 5 %, {df} degrees of freedom: {t}", [] if abs(got - t) < 0.0011 else [f"{got}"])
    # The three examples of Welch's test in Wikipedia's article: t, degrees of freedom, p
    for t, df, p in ((2.46, 25.0, 0.021), (1.57, 9.9, 0.149), (2.22, 24.5, 0.036)):
        got = report.t_probability(t, df)
        r.check(f"t = {t}, {df} degrees of freedom: p = {p}", [] if abs(got - p) < 0.002 else [f"{got}"])
    # By hand: means 2.5 and 4, variances of the means 5/12 and 4/3, t = -1.5 / sqrt(7/4), and
    # (7/4)^2 / ((5/12)^2 / 3 + (4/3)^2 / 2) = 3.2347 degrees of freedom
    got = report.welch([1, 2, 3, 4], [2, 4, 6])
    want = report.t_probability(1.5 / 1.75 ** 0.5, 3.23472)
    r.check("degrees of freedom by hand", [] if got[0] == -1.5 and abs(got[3] - want) < 1e-5 else [f"{got}, {want}"])
    r.check("too few values: nothing is said", [] if report.welch([1], [1, 2]) is None else ["something is"])


def main():
    r = sgw.Report()
    test_statistics(r)
    with tempfile.TemporaryDirectory(prefix="sgw-report-") as folder:
        test_page(r, folder)
    r.end()


main()
