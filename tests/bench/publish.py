# SPDX-License-Identifier: BSD-2-Clause
"""What publishing large tables does to the samples of a program that has nothing to do with them.
"""

import subprocess

import harness as h
from rig import OTHER, STEADY_HZ, median, recursion, run_json, table
from unwinding import clang_job

SECONDS = 1.5
DEPTH = 12


def begin_clang(wait):
    """A process that becomes clang after some time (or never, as it is stopped before). Its
    libraries are the large tables.
    """
    with open(clang_job()) as f:
        first = f.readline().strip()
    return h.start(["taskset", "-c",
                    str(OTHER), "sh", "-c",
                    "sleep %s; exec %s" % (wait, first)], stderr=subprocess.DEVNULL)


def once(busy, with_clang):
    """Samples of the busy program, and what was loaded meanwhile."""
    folded = h.tmpfile("publish.folded")
    other = begin_clang(0.3 if with_clang else 60)
    try:
        stats = run_json([h.SFBPF, "record", "-p", "%d,%d" % (busy.pid, other.pid),
                          "-F", STEADY_HZ, "-U", "-o", folded, "--stats", "-", SECONDS])[-1]
    finally:
        h.stop(other)
    mine = [s for s in h.read_folded(folded) if s.comm == "rec"]
    return {
        "samples": h.total(mine), "incomplete": sum(s.count for s in mine if h.reason(s)),
        "rows": stats["tables"]["rows"], "lost": sum(stats["lost"].values()),
        "build_ms": stats["tables"]["build_ms"]
    }


def publish(settings, out, ratios):
    del settings, ratios
    busy = recursion("rec", DEPTH)
    pairs = [(once(busy, False), once(busy, True)) for _ in range(3)]
    skipped = median([a["samples"] - b["samples"] for a, b in pairs])
    alone, beside = sorted((p[0] for p in pairs), key=lambda r: r["samples"])[1], pairs[-1][1]
    out["publish"] = {
        "samples_alone": alone["samples"], "skipped": skipped, "incomplete": max(b["incomplete"]
                                                                                 for _, b in pairs),
        "lost": max(b["lost"] for _, b in pairs), "rows": beside["rows"],
        "build_ms": round(beside["build_ms"], 1),
        "noise": max(a["samples"] for a, _ in pairs) - min(a["samples"] for a, _ in pairs)
    }
    table(
        "A busy program's samples while the tables of a new clang are published, %d Hz, %.1f s" %
        (STEADY_HZ, SECONDS), [
            "samples before", "fewer meanwhile", "+- without clang", "incomplete", "lost",
            "rows published", "ms of CPU for them"
        ], [[
            "%(samples_alone)d" % out["publish"],
            "%(skipped).0f" % out["publish"],
            "%(noise)d" % out["publish"],
            "%(incomplete)d" % out["publish"],
            "%(lost)d" % out["publish"],
            "%(rows)d" % out["publish"],
            "%(build_ms).0f" % out["publish"]
        ]])
