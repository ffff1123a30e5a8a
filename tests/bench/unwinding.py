# SPDX-License-Identifier: BSD-2-Clause
"""Sections 1 and 2: what a stack costs in the kernel, beside the kernel's own frame-pointer walker
on the twin program.

Figures are the kernel's run statistics, which hold about 60 ns for their own clock. Ours is
everything that happens for a sample, the record in the ring buffer included; the walker is
bpf_get_stack() alone and (walk + record) with such a record.
"""

import os
import subprocess
import time

import harness as h
from rig import (CPU, STEADY_HZ, Runs, line, median, ours, pinned, recursion, run_json, stats_of,
                 table, tool, walker)

FP_LIMIT = 127 # kernel.perf_event_max_stack


# ---- steady -----------------------------------------------------------------------------------

NOBODY = 0x3fffffff # above any pid


class Filtered:
    """What a run for a task that is not wanted costs. To be made while the target keeps the CPU."""

    def __init__(self, ms, hz, rounds):
        idle = h.start(["sleep", "600"])
        self.ours = median([ours(idle.pid, ms, hz).per_run() for _ in range(rounds)])
        self.fp = median([walker(NOBODY, ms, hz).per_run() for _ in range(rounds)])
        h.stop(idle)


class Point:
    """One depth: ours on the program without frame pointers, the walker on its twin, in turn."""

    def __init__(self, depth, settings, filtered):
        self.ours, self.fp, self.fp_out = [], [], []
        self.depth = self.fp_depth = 0.0
        ms = settings.steady_ms
        for _ in range(settings.rounds):
            p = recursion("rec", depth)
            r = ours(p.pid, ms)
            h.stop(p)
            self.ours.append(r.per_sample(filtered.ours))
            self.depth = r.depth
            if depth > FP_LIMIT:
                continue
            p = recursion("rec-fp", depth)
            r = walker(p.pid, ms)
            self.fp.append(r.per_sample(filtered.fp))
            self.fp_depth = r.depth
            self.fp_out.append(walker(p.pid, ms, options=["-o"]).per_sample(filtered.fp))
            h.stop(p)

    def summary(self):
        s = {"depth": round(self.depth, 1), "ours_ns": round(median(self.ours))}
        if self.fp:
            s.update(fp_depth=round(self.fp_depth, 1), fp_ns=round(median(self.fp)),
                     fp_record_ns=round(median(self.fp_out)),
                     ratio=round(median([a / b for a, b in zip(self.ours, self.fp)]), 3))
        return s


def steady(settings, out, ratios):
    p = recursion("rec", 12)
    filtered = Filtered(settings.steady_ms, STEADY_HZ, 3)
    h.stop(p)
    points = [Point(d, settings, filtered).summary() for d in settings.depths]
    walked = [p for p in points if "fp_ns" in p]
    fixed, slope = line([(p["depth"], p["ours_ns"]) for p in points])
    fp_fixed, fp_slope = line([(p["fp_depth"], p["fp_ns"]) for p in walked])
    for d, p in zip(settings.depths, points):
        if "ratio" in p:
            ratios["unwind.steady.%d" % d] = p["ratio"]
    ratios["unwind.marginal"] = round(slope / fp_slope, 3)
    deepest = points[-1]
    if settings.depths[-1] > FP_LIMIT:
        ratios["unwind.506_to_fp_127"] = round(deepest["ours_ns"] / walked[-1]["fp_ns"], 3)
    out["unwind"] = {
        "points": points, "fixed_ns": round(fixed), "per_frame_ns": round(slope, 2),
        "fp_fixed_ns": round(fp_fixed), "fp_per_frame_ns": round(fp_slope, 2),
        "filtered_ns": round(filtered.ours), "fp_filtered_ns": round(filtered.fp)
    }
    rows = [[
        "%.1f" % p["depth"], p["ours_ns"],
        p.get("fp_ns", "-"),
        p.get("fp_record_ns", "-"),
        p.get("ratio", "-")
    ] for p in points]
    rows.append(["fixed", round(fixed), round(fp_fixed), "", ""])
    rows.append(["per frame", "%.1f" % slope, "%.1f" % fp_slope, "", "%.2f" % (slope / fp_slope)])
    rows.append(["other task", round(filtered.ours), round(filtered.fp), "", ""])
    table("Unwinding, a steady program, %d Hz, ns a sample" % STEADY_HZ,
          ["frames", "sfbpf", "FP walk", "FP walk + record", "sfbpf / FP walk"], rows)


# ---- cold
# -------------------------------------------------------------------------------------------------

COLD_HZ = 99
COLD_DEPTH = 64
THRASH_MB = 64


def thrashed(settings):
    """Both kinds beside a neighbour that comes between any two samples and reads 64 MB."""
    ms = settings.cold_ms
    found = {"ours": [], "fp": []}
    neighbour = pinned([tool("thrash"), THRASH_MB], priority=2)
    p = recursion("rec", COLD_DEPTH)
    filtered = Filtered(ms, COLD_HZ, 1) # cold, too, and a third of all runs
    h.stop(p)
    for _ in range(settings.rounds):
        for kind, name, measure in (("ours", "rec", ours), ("fp", "rec-fp", walker)):
            p = recursion(name, COLD_DEPTH)
            found[kind].append(measure(p.pid, ms, COLD_HZ).per_sample(getattr(filtered, kind)))
            h.stop(p)
    h.stop(neighbour)
    return found["ours"], found["fp"]


SOURCES = ("prof/census.c", "sym/symbolizer.c", "elf/elf_image.c", "readers/eh_frame.c",
           "readers/sframe_rows.c", "prof/profile.c", "readers/eh_cfa.c", "tui/grid.c",
           "readers/row_stream.c", "tui/rows.c")


def job_script(name, compiler, options):
    """A compile job out of this tree's own sources, preprocessed once: the same work whoever
    measures it.
    """
    lines = []
    for s in SOURCES:
        text = h.tmpfile("%s-%s.i" % (name, s.replace("/", "_")))
        if not os.path.exists(text):
            subprocess.run([
                name, "-E", "-P", "-D_GNU_SOURCE", "-Iuserspace", "-Ibpf", "userspace/" + s, "-o",
                text
            ], cwd=h.TOP, check=True)
        lines.append("%s %s -w -O2 -std=gnu11 -o /dev/null %s" % (compiler, options, text))
    path = h.tmpfile("job-%s.sh" % name)
    with open(path, "w") as f:
        f.write("\n".join(lines * 2) + "\n")
    return path


def clang_job():
    """clang, whose libraries are the largest tables that most machines have."""
    return job_script("clang", "clang", "-x cpp-output -S")


def compile_job(options):
    """A compile job at 99 Hz: large tables, short processes, caches always full of something else.
    """
    stats = run_json(
        [h.SFBPF, "record", "-C", CPU, "-F", COLD_HZ, "-o", "/dev/null", "--stats", "-"] + options +
        ["--", "chrt", "-f", "1", "taskset", "-c", CPU, "sh",
         clang_job()])[-1]
    runs = stats_of(stats)
    users = stats["user_stacks"]
    return {
        "ns": runs.per_sample(200),
        "depth": runs.depth,
        "samples": runs.samples,
        # Those before the compiler's tables are there say nothing about unwinding; see the tables'
        # section.
        "complete": users["complete"] / (users["total"] - users["incomplete"]["not_loaded"]),
        "not_loaded": users["incomplete"]["not_loaded"]
    }


def cold(settings, out, ratios):
    pairs = thrashed(settings)
    mine, fp = median(pairs[0]), median(pairs[1])
    rows = [[
        "thrashing neighbour, %d frames" % COLD_DEPTH,
        "%.1f" % (mine / 1000),
        "%.1f" % (fp / 1000),
        "%.2f" % (mine / fp), "", ""
    ]]
    out["cold"] = {"thrash_ours_ns": round(mine), "thrash_fp_ns": round(fp)}
    ratios["unwind.cold"] = round(mine / fp, 3)
    if not settings.quick:
        # The walker does user stacks alone; so here. The kernel's own unwinder takes the kernel
        # part of a sample.
        jobs = [compile_job(["-U"]) for _ in range(3)]
        job = sorted(jobs, key=lambda j: j["ns"])[1]
        whole = compile_job([])
        out["cold"].update(compile=job, compile_with_kernel=whole)
        ratios["unwind.compile_to_cold_fp"] = round(job["ns"] / fp, 3)
        rows.append([
            "clang, %.0f frames" % job["depth"],
            "%.1f" % (job["ns"] / 1000), "",
            "%.2f" % (job["ns"] / fp),
            "%.2f %%" % (100 * job["complete"]), job["samples"] - job["not_loaded"]
        ])
        rows.append([
            "the same, with the kernel's part",
            "%.1f" % (whole["ns"] / 1000), "",
            "%.2f" % (whole["ns"] / fp), "", ""
        ])
    table("Unwinding, cold, %d Hz, us a sample" % COLD_HZ,
          ["", "sfbpf", "FP walk", "sfbpf / thrashed FP walk", "complete", "samples"], rows)


# ---- off-CPU
# ----------------------------------------------------------------------------------------------

OFF_MS = 1000
SWITCH_PROGRAMS = ("off_switch", "off_back") # leaving, and coming back


def have_offcpu():
    return subprocess.run([h.SFBPF, "offcpu", "--help"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def off_ours(pid):
    """Recorded blocks, and the runs at switches by program."""
    stats = run_json(
        [h.SFBPF, "offcpu", "-p", pid, "-o", "/dev/null", "--stats", "-", OFF_MS / 1000])[-1]
    return stats["samples"], {
        name: Runs(0, 0, r["run_cnt"], r["run_ns"])
        for name, r in stats["bpf"].items() if r["run_cnt"] and name in SWITCH_PROGRAMS
    }


def off_filtered():
    """ns of each program for a task that is not wanted; sleepers keep switching meanwhile."""
    idle = h.start(["sleep", "60"])
    try:
        return {name: r.per_run() for name, r in off_ours(idle.pid)[1].items()}
    finally:
        h.stop(idle)


def off_recorded(pid, filtered):
    """ns a block: all runs without those for other tasks, over the blocks; each block has one run
    of each program.
    """
    blocks, runs = off_ours(pid)
    if blocks < 100:
        raise ValueError("%d blocks only" % blocks)
    return sum(
        (r.ns - (r.runs - blocks) * filtered.get(name, 0)) / blocks for name, r in runs.items())


def off_point(depth, rounds):
    mine, fp, others, frames = [], [], [], 0
    p = pinned([tool("sleeper"), depth - 6])
    twin = pinned([tool("sleeper-fp"), depth - 6])
    time.sleep(0.2)
    for _ in range(rounds):
        filtered = off_filtered()
        others.append(sum(filtered.values()))
        mine.append(off_recorded(p.pid, filtered))
        skip = walker(NOBODY, OFF_MS, options=["-s"]).per_run()
        r = walker(twin.pid, OFF_MS, options=["-s"])
        fp.append(r.per_sample(skip))
        frames = r.depth
    h.stop(p)
    h.stop(twin)
    return {
        "depth": depth, "ours_ns": round(median(mine)), "fp_ns": round(median(fp)),
        "fp_depth": round(frames, 1), "filtered_ns": round(median(others))
    }


def off_cpu(settings, out, ratios):
    if not have_offcpu():
        raise h.Skip("this sfbpf has no offcpu")
    points = [off_point(d, 3) for d in ((68,) if settings.quick else (13, 68))]
    out["off_cpu"] = points
    for p in points:
        ratios["off_cpu.%d" % p["depth"]] = round(p["ours_ns"] / p["fp_ns"], 3)
    table("Off-CPU, ns a block (all programs that run for it)",
          ["frames", "sfbpf", "FP walk", "sfbpf / FP walk", "other task"], [[
              p["depth"], p["ours_ns"], p["fp_ns"],
              "%.2f" % (p["ours_ns"] / p["fp_ns"]), p["filtered_ns"]
          ] for p in points])
