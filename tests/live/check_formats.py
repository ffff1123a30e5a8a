#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real recordings in every format: each adds up to its own account, and other people's readers
agree.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import harness as h

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import json_schema  # noqa: E402
import pprof_read  # noqa: E402
import timeline_read  # noqa: E402


def record(suffix, seconds=2, tool="record", options=()):
    """(path, the account, the pid of rec)"""
    out, stats = h.tmpfile("run" + suffix), h.tmpfile("stats.json")
    p = h.start([h.program("rec"), "20"])
    h.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=512",
             "status=none"])  # is in the kernel most of the time
    h.wait_busy(p)
    subprocess.run([h.SFBPF, tool, "-o", out, "--stats", stats, *options,
                    str(seconds)], check=True, stderr=subprocess.DEVNULL)
    h.stop_all()
    with open(stats, encoding="utf-8") as f:
        return out, json.load(f), p.pid


def received(stats):
    return stats["samples"] - sum(stats["lost"].values())


def report(path):
    text = subprocess.run([h.SFBPF, "report", "--format", "folded", path], check=True,
                          capture_output=True, text=True).stdout
    out = Counter()
    for line in text.splitlines():
        stack, n = line.rsplit(" ", 1)
        out[tuple(stack.split(";"))] += int(n)
    return out


def check_formats_folded(name):
    path, stats, _ = record(".folded")
    got = sum(report(path).values())
    h.check(name, [] if got == received(stats) else
            ["%d in the lines, %d in the account" % (got, received(stats))])


def check_formats_json(name):
    path, stats, _ = record(".json")
    with open(path, encoding="utf-8") as f:
        errors = json_schema.problems(json.load(f))
    got = sum(report(path).values())
    if got != received(stats):
        errors.append("%d in report, %d in the account" % (got, received(stats)))
    h.check(name, errors)


def check_formats_json_off_cpu(name):
    path, _, _ = record(".json", tool="offcpu", options=["--wakers", "--state", "S,D,R"])
    with open(path, encoding="utf-8") as f:
        profile = json.load(f)
    errors = json_schema.problems(profile)
    got = report(path)
    if sum(got.values()) != sum(s["count"] for s in profile["stacks"]):
        errors.append("report has %d us" % sum(got.values()))
    if not any("--" in s for s in got) or not any("[runnable]" in s for s in got):
        errors.append("no wakers, or no [runnable]")
    h.check(name, errors)


def check_formats_html(name):
    path, stats, _ = record(".html")
    with open(path, encoding="utf-8") as f:
        data = json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])
    meta, times = data["meta"], data["times"]
    errors = [] if meta["lost"] == sum(stats["lost"].values()) else ["lost: %s" % meta]
    if meta["userStacks"] != stats["user_stacks"]["total"] or meta["complete"] != stats[
            "user_stacks"]["complete"]:
        errors.append("%s, want %s" % (meta, stats["user_stacks"]))
    if not times or not -.001 <= times["slices"] * times["width"] - meta["duration"] <= times[
            "width"] + .001:
        errors.append("%g s in slices: %s" % (meta["duration"], times))
    h.check(name, errors)


def check_formats_pprof(name):
    path, stats, _ = record(".pb.gz")
    want, errors = report(path), []
    if sum(want.values()) != received(stats):
        errors.append("report has %d, the account %d" % (sum(want.values()), received(stats)))
    go = pprof_read.with_go(path, h.tmpdir())
    if go and go[0] != received(stats):
        errors.append("go has %d, the account %d" % (go[0], received(stats)))
    try:
        p = pprof_read.with_protobuf(path)
    except ImportError:
        h.note("the protobuf library is not installed")
        h.check(name, errors)
        return
    if pprof_read.stacks(p) != want:
        errors.append("the protobuf library has other stacks than report")
    text = p.string_table
    rec = [m for m in p.mapping if text[m.filename] == h.program("rec")]
    out = subprocess.run(["readelf", "-n", h.program("rec")], capture_output=True, text=True,
                         check=False).stdout
    build_id = next((line.split()[-1] for line in out.splitlines() if "Build ID" in line), "")
    if not rec or text[rec[0].build_id] != build_id or rec[0].file_offset % 4096:
        errors.append("mapping of rec: %s" % rec)
    if not any(text[m.filename] == "[kernel.kallsyms]" and text[m.build_id] for m in p.mapping):
        errors.append("no kernel mapping with a build-id")
    for s in p.sample:
        have = pprof_read.labels(p, s)
        if not {"comm", "pid", "tid", "cgroup_id"} <= have.keys() and have.get("pid"):
            errors.append("labels: %s" % have)
            break
    h.check(name, errors)


# Names as languages and their demanglers make them, each of them a function of its own.
NAMES = [
    "<module> (a.py)", "<P as Work>::go", "<Q as Work>::go", "A::operator()", "B::operator()",
    "(anonymous namespace)::A::run", "std::vector<int>::f", "std::vector<long>::f", "f(int, int)",
    "f(long, int)", "main.(*T[...]).run", "Foo.<init>", "a@b", "a@c", "[x]", "operator<",
    "a<b>::c()",
    "{closure#0}", "block in Foo#bar (a.rb)"
]


def build_names():
    """The path of a program that is most of the time in functions of these names."""
    text = ["\t.text"]
    for i, name in enumerate(NAMES):
        text += ['%s"%s"%s' % (before, name, after) for before, after in (
            ("\t.type ", ", @function"), ("", ":\t.cfi_startproc"))]
        text += ["\tmov $300000, %ecx", "1:\tdec %ecx", "\tjnz 1b", "\tret", "\t.cfi_endproc",
                 '\t.size "%s", .-"%s"' % (name, name),
                 "\t.globl name%d" % i, '\t.set name%d, "%s"' % (i, name)]
    text.append('\t.section .note.GNU-stack,"",@progbits')
    source, path = h.tmpfile("names.s"), h.tmpfile("names")
    with open(source, "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")
    with open(h.tmpfile("names.c"), "w", encoding="utf-8") as f:
        f.write("".join("void name%d(void);\n" % i for i in range(len(NAMES))))
        f.write("int main(void) { for (;;) { %s } }\n" %
                " ".join("name%d();" % i for i in range(len(NAMES))))
    subprocess.run(["gcc", "-O1", "-o", path, f.name, source], check=True)
    # Of two names at one address, the one that is no more than a label is not shown.
    subprocess.run(["objcopy", "--wildcard", "-N", "name[0-9]*", path], check=True)
    return path


def check_formats_names(name):
    """Whole names in pprof's own tool, and the path of a file that was deleted."""
    if os.uname().machine != "x86_64":
        h.skip(name, "the program is x86-64 assembly")
        return
    path, errors = build_names(), []
    p = h.start([path])
    h.wait_busy(p)
    os.unlink(path)
    for suffix, options in ((".pb.gz", []), (".json", []), (".pftrace", []),
                            (".json.gz", ["--timeline"])):
        out = h.tmpfile("names" + suffix)
        subprocess.run([h.SFBPF, "record", "-q", "-U", "-F", "997", "-p", str(p.pid), "-o", out,
                        *options, "1"], check=True)
        with (gzip.open if suffix.endswith("gz") else open)(out, "rb") as f:
            data = f.read()
        if b"(deleted)" in data or b"names" not in data:
            errors.append("path in %s" % suffix)
    h.stop_all()
    files = {"record": h.tmpfile("names.pb.gz"), "report": h.tmpfile("report.pb.gz")}
    subprocess.run([h.SFBPF, "report", "-o", files["report"], h.tmpfile("names.json")], check=True)
    for writer, file in files.items():
        go = pprof_read.with_go(file, h.tmpdir())
        if not go:
            h.note("go is not installed")
        elif not set(NAMES) <= set(go[1]):
            errors.append("pprof of %s: %s" % (writer, sorted(set(go[1]) ^ set(NAMES))))
    h.check(name, errors)


def without_root(stacks):
    out = Counter()
    for stack, n in stacks.items():
        out[stack[1:]] += n
    return out


def check_formats_firefox(name):
    path, stats, pid = record(".json.gz", options=["--timeline"])
    p = timeline_read.firefox(path)
    errors = timeline_read.firefox_problems(p)[:5]
    threads, cpus = timeline_read.firefox_stacks(p), timeline_read.firefox_stacks(p, cpus=True)
    if sum(threads.values()) != received(stats) or without_root(threads) != without_root(cpus):
        errors.append("%d samples of threads, %d of CPUs, %d in the account" %
                      (sum(threads.values()), sum(cpus.values()), received(stats)))
    rec = [t for t in p["threads"] if t["pid"] == str(pid)]
    if len(rec) != 1 or not rec[0]["isMainThread"] or rec[0]["tid"] != pid or \
            rec[0]["name"] != "rec":
        errors.append("threads of %d: %s" % (pid, [(t["name"], t["tid"]) for t in rec]))
    times = sorted(t for r in rec for t in r["samples"]["time"])
    period = p["meta"]["interval"]
    if len(times) < 20 or not 0.9 * period < times[len(times) // 2] - times[
            len(times) // 2 - 1] or times[-1] > 1e3 * stats["duration_s"] + 100:
        errors.append("times of rec: %s" % times)
    if not any(s[0] == "rec" and "main" in s and s[-1].startswith("rec_leaf") for s in threads):
        errors.append("no stack of rec")
    if not any(s[0] == "dd" and s[-1].endswith("_[k]") for s in threads):
        errors.append("no kernel frames of dd")
    h.check(name, errors)


def check_formats_perfetto(name):
    path, stats, _ = record(".pftrace")
    packets = timeline_read.perfetto(path)
    samples, errors = timeline_read.perfetto_samples(packets), []
    if len(samples) != received(stats):
        errors.append("%d samples, %d in the account" % (len(samples), received(stats)))
    times = [s[0] for s in samples]
    begin = next(c["timestamp"] for c in packets[0]["clock_snapshot"]["clocks"] if c["id"] == 6)
    if times != sorted(times) or not begin - 10**8 < times[0] or not times[
            -1] < begin + 1e9 * stats["duration_s"] + 10**8:
        errors.append("times %s, %s; the start is %s" % (times[:2], times[-2:], begin))
    stacks = timeline_read.perfetto_stacks(packets)
    if not any(s[0] == "rec" and "main" in s and s[-1].startswith("rec_leaf") for s in stacks):
        errors.append("no stack of rec")
    leaf = [s for s in samples if s[4][-1].startswith("rec_leaf")]
    if not leaf or any(s[5][-1] != h.program("rec") or s[6] != 2 for s in leaf):
        errors.append("mappings or modes of rec: %s" % leaf[:1])
    if not any(s[4][-1].endswith("_[k]") and s[5][-1] == "/kernel" and s[6] == 1 for s in samples):
        errors.append("no samples of the kernel")
    h.check(name, errors)


# What the worker of tests/programs/wall.c waits for, in seconds, and what wakes it.
WAITS = {
    "[blocked: futex]": (2, "main"),
    "[blocked: sleep]": (1, "[hardirq]"),
    "[blocked: pipe]": (.5, "main")
}


def wait_errors(found, stats, main):
    """found: [(tid, thread's name or None, wait, s, waker, stack)]; instants have None seconds."""
    worker = {f[0] for f in found if "wall_lock" in f[5] and f[3] is not None}
    waits, errors = [f for f in found if f[0] in worker and f[3] is not None], []
    if len(worker) != 1:
        return ["%d workers: %s" % (len(worker), found[:3])]
    for note, (want, waker) in WAITS.items():
        mine = [f for f in waits if f[2] == note]
        if len(mine) != 1 or not want - .06 <= mine[0][3] <= want + .3 or not mine[0][4] or \
                mine[0][4] != waker.replace("main", main):
            errors.append("%s: %s" % (note, [f[2:] for f in mine]))
    if not any(f[3] is None and f[0] != f[4] and "worker" in f[2] and any(
            "futex_wake" in frame for frame in f[5]) for f in found):
        errors.append("no wake-up of the worker by a futex")
    # All waits of a millisecond or more are there. Shorter ones are in the account only.
    for states, runnable in ((("S", "D"), False), (("R",), True)):
        got = 1e3 * sum(f[3] for f in found
                        if f[3] is not None and (f[2] == "[runnable]") == runnable)
        ms = sum(stats["off_cpu"]["ms"][s] for s in states)
        if not got - 1 <= ms <= got * 1.02 + 100:
            errors.append("%.1f ms in %s, %.1f ms in the account" % (got, states, ms))
    return errors


def record_waits(path):
    """The account; the name of the program's main thread, as wakers are shown."""
    stats = h.tmpfile("waits-stats.json")
    subprocess.run([h.SFBPF, "record", "--wall", "--timeline", "-o", path, "--stats", stats, "--",
                    h.program("wall")], check=True, capture_output=True, timeout=120)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)


def check_formats_waits_firefox(name):
    path = h.tmpfile("waits.json.gz")
    stats = record_waits(path)
    p = timeline_read.firefox(path)
    errors = timeline_read.firefox_problems(p)[:5]
    main = "wall (%d)" % next((t["tid"] for t in p["threads"] if t["isMainThread"]), 0)
    found = [(tid, comm, "wakes " + d["thread"] if end is None else wait,
              None if end is None else (end - start) / 1e3, d.get("waker"), stack)
             for comm, tid, wait, start, end, d, stack in timeline_read.firefox_marks(p)]
    errors += wait_errors(found, stats, main)
    if not {"wall", "wall-worker", "wall-idle"} <= {t["name"] for t in p["threads"]}:
        errors.append("threads: %s" % [t["name"] for t in p["threads"]])
    h.check(name, errors)


def check_formats_waits_perfetto(name):
    path = h.tmpfile("waits.pftrace")
    stats = record_waits(path)
    found, main = [], ""
    for pid, tid, wait, start, end, waker, stack in timeline_read.perfetto_slices(
            timeline_read.perfetto(path)):
        found.append((tid, None, wait, None if end is None else (end - start) / 1e9, waker, stack))
        main = "wall (%d)" % pid
    h.check(name, wait_errors(found, stats, main))


# Suffixes of all formats; text has none, and --format names it
ALL = [".folded", ".pb.gz", ".html", ".svg", ".json", "", ".json.gz", ".pftrace"]


def contents(path):
    """What a second output of the same profile must have, too"""
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    if path.endswith(".html"):  # a number that is used once, for the page's policy
        data = re.sub(rb"(nonce[-=]['\"]?)[0-9a-f]{32}", rb"\1", data)
    return data


def round_trip(tool, options, suffixes):
    """Records all formats and a recording in one run, then writes all formats from that."""
    folder = h.tmpfile("round")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    direct = {s: os.path.join(folder, "a" + s) for s in suffixes}
    whole = os.path.join(folder, "run.sfb")
    h.start([h.program("rec"), "20"])
    h.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "status=none"])
    outputs = [x for s in suffixes for x in ("-o", direct[s])]
    subprocess.run([h.SFBPF, tool, "--format", "text", *outputs, "-o", whole, *options, "2"],
                   check=True, stderr=subprocess.DEVNULL)
    h.stop_all()
    errors = []
    for suffix in suffixes:
        again = os.path.join(folder, "b" + suffix)
        text = () if suffix else ("--format", "text")
        subprocess.run([h.SFBPF, "report", whole, "-o", again, *text], check=True)
        a, b = contents(direct[suffix]), contents(again)
        if a != b:
            errors.append("%s %s: '%s' differs (%d and %d bytes)" %
                          (tool, " ".join(options), suffix, len(a), len(b)))
        elif len(a) < 500:
            errors.append("%s: '%s' has only %d bytes" % (tool, suffix, len(a)))
    return errors


def check_formats_round_trip(name):
    errors = []
    for options in ((), ("--wall",), ("--by", "container", "--lines", "--inline")):
        errors += round_trip("record", ("--timeline", *options), ALL)
    timeless = [s for s in ALL if s not in (".json.gz", ".pftrace")]
    errors += round_trip("offcpu", ("--wakers", "--threads", "--hist"), timeless)
    h.check(name, errors)


def check_formats_lines(name):
    """JSON and recordings keep the lines, and report shows them; diff compares functions."""
    errors = []
    source = re.compile(r"\(\w+\.c:\d+\)")
    for suffix in (".json", ".sfb"):
        path, _, _ = record(suffix, options=("--lines",))
        if not any(source.search(f) for stack in report(path) for f in stack):
            errors.append(suffix + " has no lines")
        text = subprocess.run([h.SFBPF, "diff", path, path, "--format", "json"], check=True,
                              capture_output=True, text=True).stdout
        if source.search(text):
            errors.append("diff of %s shows lines" % suffix)
    h.check(name, errors)


def check_formats_several(name):
    """Several -o: a full disk costs its own output only, and mistakes are found at once."""
    errors = []
    good, stats = h.tmpfile("good.folded"), h.tmpfile("several.json")
    busy = h.start(["/bin/sh", "-c", "while :; do :; done"])
    p = subprocess.run([h.SFBPF, "record", "-o", "/dev/full", "--format", "json", "-o", good,
                        "--stats", stats, "0.5"], capture_output=True, text=True, check=False)
    if p.returncode != 1 or "No space left" not in p.stderr or not sum(report(good).values()):
        errors.append("full: %d %s" % (p.returncode, p.stderr.strip()))
    h.stop(busy)
    for options, want in ((("-o", good, "-o", good), "same file"),
                          (("-o", "-", "-o", "-"), "one output only"),
                          (("-o", good, "-o", h.tmpfile("x.html"), "--format", "pprof"),
                           "suffixes of all outputs"),
                          (("-o", good, "-o", h.tmpfile("x.bad")), "x.bad")):
        p = subprocess.run([h.SFBPF, "record", *options, "1"], capture_output=True, text=True,
                           check=False)
        if p.returncode != 2 or want not in p.stderr:
            errors.append("%s: %d %s" % (options, p.returncode, p.stderr.strip()))
    h.check(name, errors)


h.run_checks([
    check_formats_folded, check_formats_json, check_formats_json_off_cpu, check_formats_html,
    check_formats_pprof, check_formats_names, check_formats_firefox, check_formats_perfetto,
    check_formats_waits_firefox, check_formats_waits_perfetto, check_formats_round_trip,
    check_formats_lines, check_formats_several
])
