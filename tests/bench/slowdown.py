# SPDX-License-Identifier: BSD-2-Clause
"""How much slower a program runs while a profiler looks at it: work per second of its CPU time, with and without, in turn."""

import mmap
import os
import shutil
import struct
import subprocess
import time

import harness as h
from rig import CPU, WARM_HZ, table, tool, urgent

DEPTH = 60
ATTACH_S = 1.2	# until a tool looks; bpftrace compiles first
WINDOW_S = 0.5


class Progress:
    """The program, and how much it does."""

    def __init__(self):
        self.path = h.tmpfile("progress")
        self.p = h.start(["nice", "-n", "-20", "taskset", "-c", str(CPU), tool("progress"), self.path, str(DEPTH)])
        end = time.monotonic() + 5
        while time.monotonic() < end and not (os.path.exists(self.path) and os.path.getsize(self.path)):
            time.sleep(0.02)
        with open(self.path, "rb") as f:
            self.shared = mmap.mmap(f.fileno(), 16, prot=mmap.PROT_READ)

    def now(self):
        return struct.unpack("QQ", self.shared[:16])

    def speed(self):
        """Pieces a CPU second."""
        work, ns = self.now()
        time.sleep(WINDOW_S)
        work2, ns2 = self.now()
        if ns2 - ns < WINDOW_S * 1e9 / 10:
            raise ValueError("the program had %.0f ms of CPU only" % ((ns2 - ns) / 1e6))
        return (work2 - work) / (ns2 - ns) * 1e9


def tools():
    """name: command line that looks at CPU at WARM_HZ until interrupted."""
    found = {"sfbpf": [h.SFBPF, "record", "-C", CPU, "-F", WARM_HZ, "-o", "/dev/null"]}
    if shutil.which("perf"):
        for name, graph in (("perf fp", "fp"), ("perf dwarf 8192", "dwarf,8192"), ("perf dwarf 65528", "dwarf,65528")):
            found[name] = ["perf", "record", "-q", "-e", "cpu-clock", "-C", CPU, "-F", WARM_HZ, "--call-graph", graph, "-o", "/dev/null"]
    if shutil.which("bpftrace"):
        found["bpftrace ustack"] = ["bpftrace", "-e", "profile:hz:%d /cpu == %d/ { @[comm, ustack(perf, 127)] = count(); }" % (WARM_HZ, CPU)]
    return found


def with_tool(progress, argv):
    """The share of its speed that the program loses."""
    before = progress.speed()
    p = h.start(urgent(argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(ATTACH_S)
    if p.poll() is not None:
        raise ValueError("%s ended at once" % argv[0])
    during = progress.speed()
    h.stop(p)
    return 1 - during / ((before + progress.speed()) / 2)


def slowdown(settings, out, ratios):
    del settings, ratios	# a few per cent of a virtual CPU's speed: they inform
    progress = Progress()
    out["slowdown"] = {name: round(with_tool(progress, argv), 4) for name, argv in tools().items()}
    table("Slowdown of a program with %d frames at %d Hz (at 99 Hz: a hundredth)" % (DEPTH, WARM_HZ), ["", "%", "us a sample"],
          [[name, "%.1f" % (100 * v), "%.1f" % (v * 1e6 / WARM_HZ)] for name, v in out["slowdown"].items()])
    for name in ("perf", "bpftrace"):
        if not shutil.which(name):
            h.skip("slowdown-" + name, "no " + name)
