# SPDX-License-Identifier: BSD-2-Clause
"""Section 3: against `perf record` and bpftrace, on two programs without frame pointers that share
a CPU.

A user stack is complete if it has a frame that is the process's beginning: _start, main, or libc's
function between them (a stripped program has no name for the others). The same test for every tool.
"""

import os
import re
import shutil
import subprocess
import time

import harness as h
from rig import CPU, Usage, pinned, rec_level, table, urgent
from unwinding import job_script

HZ = 99
ROOT = re.compile(r"^(_start|main)$|libc_start_(call_)?main")
DEPTH = 200
PROGRAMS = {"bench-rec": "-O2 recursion, %d frames" % DEPTH, "cc1": "cc1"}


def start_programs():
    """Round robin: each has half of the CPU, however busy the machine is."""
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE,
                         check=True).stdout.decode().strip()
    script = job_script("gcc", cc1, "-quiet -fpreprocessed")
    pinned([h.link_program("rec", "bench-rec"), "0", rec_level(DEPTH)], policy="-r")
    pinned(["sh", "-c", "while :; do sh %s; done" % script], policy="-r")
    time.sleep(0.5)


class Tally:
    """Per program: stacks seen, and how many reach the root."""

    def __init__(self):
        self.seen = dict.fromkeys(PROGRAMS, 0)
        self.whole = dict.fromkeys(PROGRAMS, 0)
        self.all = 0

    def add(self, comm, frames, n=1):
        self.all += n
        if comm in self.seen and frames: # no user part: a process that ends
            self.seen[comm] += n
            self.whole[comm] += n * any(ROOT.search(f) for f in frames)

    def share(self, comm):
        return self.whole[comm] / self.seen[comm] if self.seen[comm] else float("nan")


def result(name, tally, data_bytes, usage, seconds):
    return {
        "name": name, "samples": tally.all,
        "complete": {c: round(tally.share(c), 4)
                     for c in PROGRAMS}, "bytes_per_sample": round(data_bytes / max(tally.all, 1)),
        "wait_s": round(usage.wall - seconds, 2), "cpu_s": round(usage.cpu, 3)
    }


def ours(seconds):
    folded = h.tmpfile("peer.folded")
    with Usage() as usage:
        subprocess.run(urgent([h.SFBPF, "record", "-C", CPU, "-F", HZ, "-o", folded, seconds]),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tally, words = Tally(), 0
    stacks = h.read_folded(folded)
    for s in stacks:
        tally.add(s.comm, h.user_frames(s), s.count)
        words += s.count * len(s.frames)
    # A record is a head of 64 bytes and a word a frame, in a ring whose headers have 8.
    found = result("sfbpf", tally, 72 * tally.all + 8 * words, usage, seconds)
    found["known_stacks"] = round(1 - len(stacks) / max(tally.all, 1), 3)
    return found


def perf_stacks(text):
    """comm and names of user frames of each sample of perf script -F comm,ip,sym."""
    comm, frames = None, []
    for row in text.splitlines():
        if not row.strip():
            if comm:
                yield comm, frames
            comm, frames = None, []
        elif row[0] not in " \t" or comm is None:
            comm = row.strip()
        else:
            ip, _, name = row.strip().partition(" ")
            if len(ip) < 16: # no kernel address
                frames.append(name.partition("+0x")[0].split("@")[0])
    if comm:
        yield comm, frames


def perf(name, graph, seconds):
    data, text = h.tmpfile("perf.data"), h.tmpfile("perf.txt")
    with Usage() as usage:
        subprocess.run(
            urgent([
                "perf", "record", "-q", "-e", "cpu-clock", "-C", CPU, "-F", HZ, "--call-graph",
                graph, "-o", data, "--", "sleep", seconds
            ]), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(text, "w") as f: # with inlined functions, perf's default, this takes minutes
            subprocess.run(
                urgent([
                    "perf", "script", "--no-inline", "--max-stack", "1024", "-i", data, "-F",
                    "comm,ip,sym"
                ]), check=True, stdout=f, stderr=subprocess.DEVNULL)
    tally = Tally()
    with open(text, errors="replace") as f:
        for comm, frames in perf_stacks(f.read()):
            tally.add(comm, frames)
    size = os.path.getsize(data)
    os.unlink(data)
    return result(name, tally, size, usage, seconds)


def bpftrace(seconds):
    """Stacks by frame pointer, at most 127 frames, counted in the kernel: a sample's bytes are
    those of the distinct stacks at the end.
    """
    program = ("profile:hz:%d /cpu == %d/ { @[comm, ustack(perf, 127)] = count(); } "
               "interval:s:%d { exit(); }" % (HZ, CPU, seconds))
    with Usage() as usage:
        text = subprocess.run(urgent(["bpftrace", "-e",
                                      program]), check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.decode(errors="replace")
    tally, distinct = Tally(), 0
    for comm, frames, n in re.findall(r"^@\[([^,\n]*),[^\n]*\n(.*?)^\]: (\d+)$", text, re.M | re.S):
        names = [f.split()[1].partition("+")[0] for f in frames.splitlines() if len(f.split()) > 1]
        tally.add(comm, names, int(n))
        distinct += 1
    return result("bpftrace ustack", tally, 8 * 127 * distinct, usage, seconds)


def peers(settings, out, ratios):
    if not shutil.which("perf"):
        raise h.Skip("no perf")
    seconds = 3 if settings.quick else 5
    start_programs()
    found = [ours(seconds)]
    if not settings.quick:
        found.append(perf("perf fp", "fp", seconds))
    found.append(perf("perf dwarf 8192", "dwarf,8192", seconds))
    if not settings.quick:
        found.append(perf("perf dwarf 65528", "dwarf,65528", seconds))
        if shutil.which("bpftrace"):
            found.append(bpftrace(seconds))
        else:
            h.skip("peers-bpftrace", "no bpftrace")
    out["peers"] = found
    by_name = {f["name"]: f for f in found}
    ratios["peers.bytes_to_dwarf_8k"] = round(
        found[0]["bytes_per_sample"] / by_name["perf dwarf 8192"]["bytes_per_sample"], 4)
    ratios["peers.missing"] = round(2 - min(found[0]["complete"].values()), 3)
    table(
        "Against perf and bpftrace, %d Hz, %d s, two programs without frame pointers" %
        (HZ, seconds), ["", "samples"] + ["complete, " + p for p in PROGRAMS.values()] +
        ["bytes a sample", "s until the stacks' file", "s of CPU"],
        [[f["name"], f["samples"]] + ["%.1f %%" % (100 * f["complete"][c]) for c in PROGRAMS] +
         [f["bytes_per_sample"], "%.2f" % f["wait_s"],
          "%.2f" % f["cpu_s"]] for f in found])
    print("\nsfbpf: %.1f %% of these samples had a stack that had been there before." %
          (100 * found[0]["known_stacks"]))
