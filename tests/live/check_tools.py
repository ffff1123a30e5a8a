#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each tool once, for a second or two, on programs with known chains: whether sfbpf works here,
with the BPF programs of this build.

check_tools.py [CHECK...]    SFBPF and OUTPUT come from the environment
"""

import glob
import json
import os
import re
import subprocess

import harness as h

NAME = "tl%x" % (os.getpid() & 0xffff)  # other runs on the machine are not to be counted
BUSY, ASLEEP = NAME + "-busy", NAME + "-sleep"
# From `main` on: before it is the C library's start.
CHAIN = r"(.*;)?main(;rec_down;rec_small(;rec_down){4};rec_buffer){12};rec_down" \
    r";rec_hot(;rec_mid)?;rec_leaf"


def sfbpf(*args):
    p = subprocess.run([h.SFBPF] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, errors="replace", check=False, timeout=90)
    if p.returncode != 0:
        raise ValueError("%s: exit code %d: %s" % (args[0], p.returncode, p.stderr.strip()[-400:]))
    return p.stdout


def load():
    """A thread that is busy in 60 frames, and one that sleeps 20 ms at a time."""
    p = h.start([h.link_program("rec", BUSY), "600", "60"])
    h.start([h.link_program("block", ASLEEP), "600", "sleep", "20000"])
    h.wait_busy(p)


def chain_errors(stacks, least):
    """Complaints if fewer of BUSY's samples have the chain than 97 %."""
    mine = [s for s in stacks if s.comm == BUSY]
    bad = [s for s in mine if not re.fullmatch(
        CHAIN, ";".join(f for f in s.frames if not f.endswith("_[k]")))]
    if h.total(mine) < least:
        return ["%d samples of %s" % (h.total(mine), BUSY)]
    if h.total(bad) > 0.03 * h.total(mine):
        return ["%d of %d have another chain: %s" % (h.total(bad), h.total(mine), h.worst(bad))]
    return []


def blocked(stacks):
    """us of the program that sleeps, in its function."""
    return h.total([s for s in stacks if s.comm == ASLEEP and "sleep_run" in s.frames])


def check_record(name):
    load()
    stacks, stats = h.record(["-F", "199"], 1)
    h.check(name, chain_errors(stacks, 10) + h.stats_errors(stats, stacks))


def check_offcpu(name):
    load()
    stacks, stats = h.Recording([], 1, tool="offcpu").finish()
    usec = stats["duration_s"] * 1e6
    errors = h.stats_errors(stats)
    if not 0.8 * usec < blocked(stacks) < 1.01 * usec:
        errors.append("%d us of %d blocked" % (blocked(stacks), usec))
    h.check(name, errors)


def check_wall(name):
    load()
    path = h.tmpfile("wall.folded")
    sfbpf("record", "--wall", "-F", "199", "-o", path, "1")
    stacks = h.read_folded(path)
    running = h.total([s for s in stacks if s.comm == BUSY and s.frames[-1] == "[running]"])
    errors = []
    if blocked(stacks) < 0.7e6:
        errors.append("%d us of %s" % (blocked(stacks), ASLEEP))
    if running < 0.1e6:     # the machine may be busy
        errors.append("%d us of %s" % (running, BUSY))
    h.check(name, errors)


def check_top(name):
    load()
    page = sfbpf("top", "-b", "-n", "1", "-d", "1")
    errors = [] if re.search(r"^ *[\d.]+ .* rec_leaf$", page, re.M) else [
        "no row of rec_leaf: " + page[:400]]
    h.check(name, errors)


def check_agent(name):
    """One window to a file, which is one of the formats of `record`."""
    load()
    to = h.tmpfile("windows")
    sfbpf("agent", "--once", "--protocol", "file", "--endpoint", to, "--interval", "2s",
          "--frequency", "99", "--metrics-address", "none")
    files = [f for f in glob.glob(to + "/**/*", recursive=True) if os.path.isfile(f)]
    if not files:
        h.fail(name, "no window")
        return
    folded = h.tmpfile("window.folded")
    sfbpf("report", "-o", folded, *files)
    text = open(folded, errors="replace").read()
    h.check(name, [] if "rec_down;rec_small;rec_down" in text else ["another window: " +
                                                                    text[:400]])


def check_report(name):
    """`report` and `diff` of two recordings."""
    load()
    before, after, page = (h.tmpfile(n) for n in ("before.json", "after.json", "diff.html"))
    for path in (before, after):
        sfbpf("record", "-F", "199", "-o", path, "1")
    folded = h.tmpfile("again.folded")
    sfbpf("report", before, "-o", folded)
    errors = chain_errors(h.read_folded(folded), 10)
    if "rec_leaf" not in sfbpf("report", before):
        errors.append("report: no rec_leaf")
    sfbpf("diff", before, after, "-o", page)
    if "rec_leaf" not in open(page, errors="replace").read():
        errors.append("diff: no rec_leaf")
    h.check(name, errors)


def check_inspect(name):
    path = h.program("rec")
    rows = sfbpf("inspect", "--rows", path).splitlines()
    summary = json.loads(sfbpf("inspect", "--json", path))
    h.check(name, [] if len(rows) > 20 and not summary["malformed"] else
            ["%d rows, %s" % (len(rows), summary)])


def check_doctor(name):
    text = sfbpf("doctor")
    h.check(name, [] if re.search(r"^ok +unwinding: ", text, re.M) else [text[-600:]])


h.run_checks([check_record, check_offcpu, check_wall, check_top, check_agent, check_report,
              check_inspect, check_doctor])
