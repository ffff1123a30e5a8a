#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Java, on programs that print their own chain (tests/programs/lang/java).

check_java.py [CHECK...]    JAVAS: homes of JDKs, by default that of the java in PATH.
"""

import json
import os
import re
import shutil
import subprocess

import harness as h

SECONDS = float(os.environ.get("SECONDS", "2"))
SOURCE = os.path.join(h.TOP, "tests/programs/lang/java/Chains.java")
FRAME = re.compile(r"^(Chains|java\.|jdk\.)")
CASES = "recurse60 recurse300 interface thread calls alloc".split()
MODES = {
    "default": [],
    "int": ["-Xint"],
    # Inlined methods have no frames, and calls here are hot enough to be inlined.
    "c1": ["-XX:TieredStopAtLevel=1", "-XX:-Inline"],
    "c2": ["-XX:-TieredCompilation", "-XX:-Inline"]
}


def javas():
    path = shutil.which("java")
    homes = os.environ.get("JAVAS", "").split()
    if not homes and path:
        homes = [os.path.dirname(os.path.dirname(os.path.realpath(path)))]
    if not homes or not os.access(os.path.join(homes[0], "bin/javac"), os.X_OK):
        raise h.Skip("no JDK")
    return homes


def start_case(home, case, options):
    classes = h.tmpfile("java-" + os.path.basename(home))
    if not os.path.isdir(classes):
        subprocess.run([os.path.join(home, "bin/javac"), "-d", classes, SOURCE], check=True)
    p = h.start([os.path.join(home, "bin/java")] + options + ["-cp", classes, "Chains", case, "60"],
                stdout=subprocess.PIPE)
    line = p.stdout.readline().decode()
    if not line.startswith("CHAIN "):
        raise ValueError("%s: no chain: %r" % (case, line))
    return p, line[6:].strip().split(";")


def record_case(home, case, options=(), tool="record"):
    p, chain = start_case(home, case, list(options))
    try:
        return h.Recording(["-p", str(p.pid)], SECONDS, tool=tool).finish() + (chain,)
    finally:
        h.stop(p)


def judge(stacks, stats, chain, exact=0.90, rooted=0.97):
    """Complaints if the chain, or the way to the thread's start, is missing in too many samples."""
    mine = [s for s in stacks if any(FRAME.match(f) for f in s.frames)]
    n = h.total(mine)
    bad = []
    for s in mine:
        got = [f for f in h.user_frames(s) if FRAME.match(f)]
        # Thread.runWith is Java 21's
        got = [f for f in got if f != "java.lang.Thread.runWith"]
        if got[:len(chain)] != chain:
            bad.append(s)
    starts = h.total([s for s in mine if any(f.startswith("start_thread") for f in s.frames)])
    errors = []
    if n < 20:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - exact) * n:
        errors.append("%d of %d have another chain than %s: %s" %
                      (h.total(bad), n, ";".join(chain)[-300:], h.worst(bad, 2, 600)))
    if starts < rooted * n:
        errors.append("%d of %d reach the start of the thread" % (starts, n))
    java = stats["languages"]["java"]
    if java["complete"] < 0.97 * java["stacks"] or java["unnamed"] > 0.02 * java["frames"]:
        errors.append("account: %s" % json.dumps(java))
    return errors


def check_chains(name):
    """Names, root to leaf, by the interpreter and by each compiler."""
    for home in javas():
        for mode, options in MODES.items():
            for case in CASES:
                stacks, stats, chain = record_case(home, case, options)
                h.check("java-%s-%s-%s" % (os.path.basename(home), mode, case),
                        judge(stacks, stats, chain))


def check_offcpu(name):
    """Blocked time under its chain."""
    for home in javas():
        stacks, stats, chain = record_case(home, "sleep", tool="offcpu")
        mine = [s for s in stacks if "Chains.sleep" in s.frames]
        errors = [] if mine else ["no stack with Chains.sleep"]
        errors += ["%s: %s" % (s.frames, chain) for s in mine
                   if [f for f in s.frames if f.startswith("Chains")] != chain]
        h.check("java-%s-offcpu" % os.path.basename(home), errors)


h.run_checks([check_chains, check_offcpu])
