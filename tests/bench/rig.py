# SPDX-License-Identifier: BSD-2-Clause
"""What the sections of the benchmark share: pinned programs, one measurement of ours and one of the
frame-pointer walker, medians, tables.
"""

import json
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "live"))

import harness as h  # noqa: E402  (found through the line above)

BENCH = os.path.join(h.OUTPUT, "bench")
STEADY_HZ = 997


def last_cpu():
    return max(os.sched_getaffinity(0))


CPU = last_cpu()
OTHER = min(os.sched_getaffinity(0))


class Settings:
    """How long everything takes. The quick form has fewer points and rounds, and the same figures
    otherwise.
    """

    def __init__(self, quick):
        self.quick = quick
        self.rounds = 3 if quick else 5
        self.cold_ms = 1500 if quick else 2500
        self.steady_ms = 500 if quick else 1000
        self.depths = (12, 64, 127) if quick else (12, 32, 64, 127, 256, 506)


# ---- programs
# ---------------------------------------------------------------------------------------------

def tool(name):
    return os.path.join(BENCH, name)


def pinned(argv, policy="-f", priority=1, cpu=None, **kw):
    """A program on one CPU, before all ordinary ones: on a busy machine it would hardly be sampled
    otherwise.
    """
    cpu = CPU if cpu is None else cpu
    return h.start(["chrt", policy, str(priority), "taskset", "-c",
                    str(cpu)] + [str(a) for a in argv], **kw)


def urgent(argv):
    """The command line of a tool that shall not wait for what else runs; on another CPU than its
    target, if there is one.
    """
    return ["chrt", "-f", "1", "taskset", "-c", str(OTHER)] + [str(a) for a in argv]


def rec_level(depth):
    """The argument that gives tests/programs/rec about so many frames."""
    # Four frames up to main, the deepest rec_down, rec_hot and what it calls; seven frames are five
    # levels.
    return max(1, round((depth - 7.7) / 1.4))


def recursion(name, depth):
    """rec or its twin, pinned. (chrt and taskset become it, so the pid is its own.)"""
    p = pinned([h.program(name), "0", rec_level(depth)])
    if not h.wait_busy(p):
        raise h.Skip("%s does not run" % name)
    return p


def run_json(argv):
    out = subprocess.run(urgent(argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if out.returncode:
        raise ValueError(
            "%s: %s" %
            (" ".join(map(str, argv)), out.stderr.decode(errors="replace").strip()[-300:]))
    return [json.loads(line) for line in out.stdout.decode().splitlines() if line.startswith("{")]


# ---- one measurement
# --------------------------------------------------------------------------------------

class Runs:
    """Runs of a BPF program: those that took a stack, and all."""

    def __init__(self, samples, frames, runs, ns):
        self.samples, self.frames, self.runs, self.ns = samples, frames, runs, ns
        self.depth = frames / samples if samples else 0.0

    def per_sample(self, filtered_ns):
        """ns a sample without what the runs for other tasks cost."""
        if self.samples < 20:
            raise ValueError("%d samples only" % self.samples)
        return (self.ns - (self.runs - self.samples) * filtered_ns) / self.samples

    def per_run(self):
        return self.ns / self.runs if self.runs else 0.0


def stats_of(stats, program="on_cpu"):
    run = stats["bpf"][program]
    return Runs(stats["samples"], stats["frames"]["total"], run["run_cnt"], run["run_ns"])


def ours(pid, ms, hz=STEADY_HZ):
    stats = run_json([
        h.SFBPF, "record", "-C", CPU, "-p", pid, "-F", hz, "-o", "/dev/null", "--stats", "-",
        ms / 1000
    ])[-1]
    return stats_of(stats)


def walker(pid, ms, hz=STEADY_HZ, options=()):
    r = run_json([tool("fp")] + list(options) + ["-C", CPU, "-p", pid, "-F", hz, ms])[-1]
    return Runs(r["samples"], r["frames"], r["run_cnt"], r["run_ns"])


class Usage:
    """Wall and CPU time of commands run inside `with`."""

    def __enter__(self):
        self.began = time.monotonic()
        self.before = resource.getrusage(resource.RUSAGE_CHILDREN)
        return self

    def __exit__(self, *unused):
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.wall = time.monotonic() - self.began
        self.cpu = after.ru_utime + after.ru_stime - self.before.ru_utime - self.before.ru_stime


# ---- numbers
# ----------------------------------------------------------------------------------------------

def median(values):
    v = sorted(values)
    n = len(v)
    return (v[n // 2] + v[(n - 1) // 2]) / 2


def line(points):
    """Least squares: y = fixed + slope * x."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    sxx = sum((x - mx) ** 2 for x, _ in points)
    slope = sum((x - mx) * (y - my) for x, y in points) / sxx if sxx else 0.0
    return my - slope * mx, slope


def table(title, head, rows):
    """Columns as wide as they must be; numbers come as text."""
    widths = [max(len(str(r[i])) for r in [head] + rows) for i in range(len(head))]

    def put(cells):
        print("| " + " | ".join(str(c).rjust(w) if i else str(c).ljust(w)
                                for i, (c, w) in enumerate(zip(cells, widths))) + " |")

    print("\n" + title + "\n")
    put(head)
    print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    for r in rows:
        put(r)
    sys.stdout.flush()
