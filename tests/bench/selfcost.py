# SPDX-License-Identifier: BSD-2-Clause
"""Section 5: what a recording costs in user space: CPU time after the start, and memory."""

import glob
import subprocess
import time

import harness as h
from rig import median, table


def cpu_ms(pid):
    """CPU time of all threads that live now."""
    ns = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path) as f:
            ns += int(f.read().split()[0])
    return ns / 1e6


def once(hz, seconds):
    rec = h.Recording(["-F", str(hz)], seconds)
    rec.wait_ready()
    time.sleep(1)
    began, first = time.monotonic(), cpu_ms(rec.p.pid)
    time.sleep(seconds - 2)
    steady = (cpu_ms(rec.p.pid) - first) / (time.monotonic() - began) / 10
    stats = rec.finish()[1]
    return {
        "hz": hz, "start_ms": first, "steady_percent": steady, "cpu_ms": stats["self"]["cpu_ms"],
        "rss_kb": stats["self"]["rss_peak_kb"], "files": stats["tables"]["modules"],
        "samples": stats["samples"]
    }


FILES = (10, 200, 2000)
START_S = 8 # four tools load their programs at once, and name the files of their first samples
FILES_S = 6

# agent+: with blocked time
OPTIONS = {
    "record": ["-o", "/dev/null"], "top": ["-b", "-d", "1"], "agent": [
        "--protocol", "file", "--interval", "1s", "--cpu-limit", "1000", "--metrics-address",
        "none", "--log-level", "error"
    ]
}
OPTIONS["agent+"] = OPTIONS["agent"] + ["--off-cpu"]


def tool_line(name, hz, pid):
    tool = name.rstrip("+")
    argv = [h.SFBPF, tool, "-p", str(pid), "-F", str(hz)] + OPTIONS[name]
    return argv + (["--endpoint", h.tmpfile("%s-%d-%d" %
                                            (name, hz, pid))] if tool == "agent" else [])


def rss_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def with_files(count, tools):
    """All at both rates and at once on one program that has so many files mapped; CPU time is each
    one's own.
    """
    p = h.start([h.program("manyfiles"), "600",
                 h.program("stub.so"),
                 str(count), "100", "0"], stdout=subprocess.PIPE)
    p.stdout.readline()
    running = [(name, hz, h.start(tool_line(name, hz, p.pid))) for name in tools for hz in (19, 99)]
    time.sleep(START_S)
    before, began = [cpu_ms(r.pid) for _, _, r in running], time.monotonic()
    time.sleep(FILES_S)
    passed = time.monotonic() - began
    found = [{
        "tool": name, "hz": hz, "files": count, "start_ms": round(first), "percent": round(
            (cpu_ms(r.pid) - first) / passed / 10, 3), "rss_kb": rss_kb(r.pid)
    } for (name, hz, r), first in zip(running, before)]
    for _, _, r in running:
        h.stop(r)
    h.stop(p)
    return found


def by_files(out, quick):
    """In two turns: eight at once would be each other's load."""
    turns = (("agent", "agent+"),) if quick else (("record", "top"), ("agent", "agent+"))
    found = [
        row for tools in turns for count in (FILES[1:2] if quick else FILES)
        for row in with_files(count, tools)
    ]
    out["files"] = found
    table(
        "what runs all the time, one busy program that maps many files (agent+: with blocked time)",
        ["tool", "Hz", "files", "ms of CPU at start", "% of a CPU after", "MB resident"], [[
            f["tool"], f["hz"], f["files"], f["start_ms"],
            "%.2f" % f["percent"],
            "%.1f" % (f["rss_kb"] / 1024)
        ] for f in found])


def selfcost(settings, out, ratios):
    del ratios # whole machine's work: too much depends on what else runs
    for p in ("rec", "callback"):
        h.wait_busy(h.start([h.link_program(p, "bench-" + p), "0"]))
    found = []
    for hz in (99,) if settings.quick else (19, 99):
        runs = [once(hz, 4 if settings.quick else 6) for _ in range(1 if settings.quick else 2)]
        found.append({k: round(median([r[k] for r in runs]), 3) for k in runs[0]})
    out["self"] = found
    table("record itself, two busy CPUs", [
        "Hz", "% of a CPU after start", "ms of CPU at start", "ms in all", "MB resident", "files",
        "samples"
    ], [[
        "%d" % f["hz"],
        "%.2f" % f["steady_percent"],
        "%.0f" % f["start_ms"],
        "%.0f" % f["cpu_ms"],
        "%.1f" % (f["rss_kb"] / 1024),
        "%d" % f["files"],
        "%d" % f["samples"]
    ] for f in found])
    by_files(out, settings.quick)
