#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Java, on programs that print their own chain (tests/programs/lang/java).

check_java.py [CHECK...]    JAVAS: NAME=ROOT:HOME of JDKs, where ROOT may be empty or a chroot's; by
                            default that of the java in PATH. JAVAC: a javac, by default that JDK's.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections import namedtuple

import harness as h

SECONDS = float(os.environ.get("SECONDS", "3"))
WARM = float(os.environ.get("WARM", "3"))  # until compilers have done their work
SOURCE = os.path.join(h.TOP, "tests/programs/lang/java/Chains.java")
FRAME = re.compile(r"^(Chains|java\.|jdk\.|\[java\])")
CASES = "recurse300 interface thread calls alloc inlined inlinedRecursion stream osr".split()
MODES = {
    "default": [],
    "int": ["-Xint"],
    "c1": ["-XX:TieredStopAtLevel=1"],
    "c2": ["-XX:-TieredCompilation"],
}
# How objects refer to one another and to their classes
HEAPS = {
    "wide": ["-XX:-UseCompressedOops"],
    "zgc": ["-XX:-UseSerialGC", "-XX:+UseZGC"],
    "compact": ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions",
                "-XX:+UseCompactObjectHeaders"],
}

FLAGS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames", "-XX:+UseSerialGC"]
# Function -> texts of the lines that it can be at.
LINES = {
    "Chains.step": ["next.go(depth - 1);", "spin();"],
    "Chains.inlined": ["sink = outer(sink);"],
    "Chains.outer": ["return middle(x) - 1;"],
    "Chains.middle": ["return inner(x) + 1;"],
    "Chains.inner": ["return leaf(x) ^ 1;"],
    "Chains.leaf": ["x = x * 6364136223846793005L", "} while ((x >>> 50) != 0);"],
}

Jdk = namedtuple("Jdk", "name root home")
Program = namedtuple("Program", "case mode comm process chain")


def javas():
    path = shutil.which("java")
    given = os.environ.get("JAVAS", "").split()
    if given:
        return [Jdk(*re.match(r"([^=]*)=([^:]*):(.*)", g).groups()) for g in given]
    if not path:
        raise h.Skip("no JDK")
    home = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    return [Jdk(os.path.basename(home), "", home)]


def classes():
    """The compiled program, for all versions."""
    path = h.tmpfile("java-classes")
    if not os.path.isdir(path):
        javac = os.environ.get("JAVAC") or os.path.join(javas()[0].home, "bin/javac")
        if not os.access(javac, os.X_OK):
            raise h.Skip("no javac")
        subprocess.run([javac, "--release", "8", "-g", "-d", path, SOURCE], check=True)
    return path


def start(jdk, case, mode, number):
    """Starts a program whose threads have a name of their own."""
    comm = "j%d-%s" % (number, case[:10])
    top = "%s/tmp" % jdk.root if jdk.root else h.tmpdir()
    link = os.path.join(top, comm)
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(os.path.join(jdk.home, "bin/java"), link)
    inside = "/tmp" if jdk.root else h.tmpdir()
    p = h.start((["chroot", jdk.root] if jdk.root else []) + [os.path.join(inside, comm)] +
                FLAGS + {**MODES, **HEAPS}[mode] +
                ["-Xmx128m", "-cp", os.path.join(inside, "java-classes"), "Chains", case,
                         "90"],
                stdout=subprocess.PIPE)
    return p, comm


def start_all(jdk, wanted):
    """Starts programs (case, mode) side by side, and waits until they run."""
    path = classes()
    if jdk.root:
        shutil.copytree(path, jdk.root + "/tmp/java-classes", dirs_exist_ok=True)
    started = [(w,) + start(jdk, *w, number=i) for i, w in enumerate(wanted)]
    programs = []
    for (case, mode), p, comm in started:
        line = p.stdout.readline().decode()
        if not line.startswith("CHAIN "):
            raise ValueError("%s: no chain: %r" % (case, line))
        programs.append(Program(case, mode, comm, p, line[6:].strip().split(";")))
    time.sleep(WARM)
    return programs


def record(programs, tool="record", options=()):
    pids = ",".join(str(p.process.pid) for p in programs)
    try:
        return h.Recording(["-p", pids] + list(options), SECONDS, tool=tool).finish()
    finally:
        for p in programs:
            h.stop(p.process)


def frames_of(stack):
    got = [f for f in h.user_frames(stack) if FRAME.match(f)]
    # Thread.runWith is Java 21's
    return [f for f in got if f != "java.lang.Thread.runWith"]


def judge(stacks, program, exact, rooted=0.97):
    """Complaints if the chain, or the way to the thread's start, is missing in too many samples."""
    mine = [s for s in stacks if any(f.startswith("Chains") for f in s.frames)]
    n = h.total(mine)
    chain = program.chain
    bad = [s for s in mine if frames_of(s)[:len(chain)] != chain]
    # Not every release's libc has the name of start_thread.
    starts = h.total([s for s in mine if not h.reason(s)])
    errors = []
    if n < 20:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - exact) * n:
        errors.append("%d of %d have another chain than %s: %s" %
                      (h.total(bad), n, ";".join(chain)[-300:], h.worst(bad, 2, 600)))
    if starts < rooted * n - 2:  # the first ones, while tables are made
        errors.append("%d of %d reach the start of the thread" % (starts, n))
    h.note("%s %s: %d of %d exact" % (program.mode, program.case, n - h.total(bad), n))
    return errors


def account_errors(stats):
    java = stats["languages"]["java"]
    if java["complete"] < 0.97 * java["stacks"] or java["unnamed"] > 0.02 * java["frames"]:
        return ["account: %s" % json.dumps(java)]
    return []


def check_chains(name):
    """Names, root to leaf, by the interpreter and by each compiler, which inline methods."""
    for jdk in javas():
        for mode in MODES:
            programs = start_all(jdk, [(case, mode) for case in CASES])
            stacks, stats = record(programs, options=["-F", "397"])
            for p in programs:
                comm = "Thread-0" if p.case == "thread" else p.comm
                h.check("java-%s-%s-%s" % (jdk.name, mode, p.case),
                        judge([s for s in stacks if s.comm == comm], p,
                              0.95 if mode == "int" else 0.90))
            h.check("java-%s-%s-account" % (jdk.name, mode), account_errors(stats))


def frames_with_lines():
    """Function -> the frames that LINES allows."""
    with open(SOURCE) as f:
        source = f.read().splitlines()
    return {
        name: ["%s (Chains.java:%d)" % (name, i + 1) for i, text in enumerate(source)
               if any(w in text for w in wanted)]
        for name, wanted in LINES.items()
    }


def at_other_lines(stacks, functions=tuple(LINES)):
    """Those with another line in one of these functions, or without one."""
    good = {name: frames for name, frames in frames_with_lines().items() if name in functions}
    return [s for s in stacks
            if any(f not in good.get(f.split(" ")[0], [f]) for f in s.frames)]


def check_lines(name):
    """The line of each frame, interpreted and inlined."""
    leaf = frames_with_lines()["Chains.leaf"]
    for jdk in javas():
        programs = start_all(jdk, [("inlined", mode) for mode in ("int", "c1", "c2")])
        stacks, _ = record(programs, options=["-F", "397", "--lines"])
        for p in programs:
            mine = [s for s in stacks if s.comm == p.comm and "Chains.leaf" in ";".join(s.frames)]
            other = at_other_lines(mine)
            bad = [s for s in mine if s in other or not any(f in leaf for f in s.frames)]
            n = h.total(mine)
            errors = ["%d samples" % n] if n < 20 else []
            if h.total(bad) > 0.05 * n:
                errors.append("%d of %d have another line: %s" % (h.total(bad), n, h.worst(bad)))
            h.note("%s lines: %d of %d" % (p.mode, n - h.total(bad), n))
            h.check("java-%s-lines-%s" % (jdk.name, p.mode), errors)


def version(jdk):
    path = "%s%s/release" % (jdk.root, jdk.home)
    if not os.path.exists(path):  # Debian's 8
        return 8
    with open(path) as f:
        return int(re.search(r'JAVA_VERSION="(\d+)', f.read()).group(1))


def check_virtual(name):
    """Virtual threads: whole chains, also after a pause, when most frames are in the heap."""
    for jdk in javas():
        if version(jdk) < 21:
            h.skip("java-%s-virtual" % jdk.name, "Java %d has no virtual threads" % version(jdk))
            continue
        for case, mode in [("virtual", "default"), ("yielding", "default"), ("yielding", "int")] + \
                [("yielding", m) for m in HEAPS]:
            programs = start_all(jdk, [(case, mode)])
            stacks, stats = record(programs, options=["-F", "397"])
            mine = [s for s in stacks if "Chains.leaf" in s.frames]
            chain = [f for f in programs[0].chain if f.startswith("Chains")]
            bad = [s for s in mine if h.reason(s) or
                   [f for f in frames_of(s) if f[0] in "C["] != chain]
            java = stats["languages"]["java"]
            errors = ["%d samples" % h.total(mine)] if h.total(mine) < 20 else []
            if h.total(bad) > 0.05 * h.total(mine):
                errors.append("%d of %d are not %s: %s" % (h.total(bad), h.total(mine),
                                                           ";".join(chain), h.worst(bad, 2, 900)))
            if java["complete"] < 0.95 * java["stacks"]:
                errors.append("account: %s" % json.dumps(java))
            h.check("java-%s-%s-%s" % (jdk.name, case, mode), errors)


def check_offcpu(name):
    """Blocked time under its chain."""
    for jdk in javas():
        programs = start_all(jdk, [("sleep", "default")])
        stacks, stats = record(programs, tool="offcpu")
        mine = [s for s in stacks if "Chains.sleep" in s.frames]
        errors = [] if mine else ["no stack with Chains.sleep"]
        errors += ["%s: %s" % (s.frames, programs[0].chain) for s in mine
                   if [f for f in s.frames if f.startswith("Chains")] != programs[0].chain]
        h.check("java-%s-offcpu" % jdk.name, errors)


if __name__ == "__main__":
    h.run_checks([check_chains, check_lines, check_virtual, check_offcpu])
