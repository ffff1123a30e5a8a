#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Java, on programs that print their own chain (tests/programs/lang/java).

check_java.py [CHECK...]    JAVAS: NAME=ROOT:HOME of JDKs, where ROOT may be empty or a chroot's; by
                            default that of the java in PATH. JAVAC: a javac, by default that JDK's.
"""

import os
import re
import shutil
import subprocess

import harness as h
import language

SOURCE = os.path.join(language.SOURCES, "java/Chains.java")
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


class Jdk(language.Interpreter):
    """NAME=ROOT:HOME"""

    language = "java"
    frame = re.compile(r"^(Chains|java\.|jdk\.|\[java\])")
    hz, seconds = 397, float(os.environ.get("SECONDS", "3"))
    warm = float(os.environ.get("WARM", "3"))
    complete = 0.97
    least, spare = 20, 2  # the first ones, while tables are made
    has_threads = True

    def __init__(self, entry):
        super().__init__(entry + "/bin/java")
        self.home = os.path.dirname(os.path.dirname(self.path))
        path = "%s%s/release" % (self.root, self.home)
        self.version = 8  # Debian's has no such file
        if os.path.exists(path):
            with open(path) as f:
                self.version = int(re.search(r'JAVA_VERSION="(\d+)', f.read()).group(1))

    def sources(self):
        """The compiled program, for all versions."""
        path = h.tmpfile("java-classes")
        if not os.path.isdir(path):
            javac = os.environ.get("JAVAC") or \
                os.path.join(entries()[0].rpartition(":")[2], "bin/javac")
            if not os.access(javac, os.X_OK):
                raise h.Skip("no javac")
            subprocess.run([javac, "--release", "8", "-g", "-d", path, SOURCE], check=True)
        return path

    def arguments(self, case):
        """Of MODE/METHOD"""
        mode, method = case.split("/")
        return FLAGS + {**MODES, **HEAPS}[mode] + ["-Xmx128m", "-cp", self.dir, "Chains", method,
                                                   "90"]

    def comm(self, case):
        mode, method = case.split("/")
        return ("%s-%s" % (mode[:3], method))[:15]

    def names(self, stack):
        """Of the program's threads, without Thread.runWith, which is Java 21's"""
        found = [f for f in self.frames(stack) if f != "java.lang.Thread.runWith"]
        return found if any(f.startswith("Chains") for f in found) else []

    def right(self, stack, chain, lines=False):
        return self.names(stack)[:len(chain)] == chain

    def rooted(self, stack):
        """Not every release's libc has the name of start_thread."""
        return not h.reason(stack)


def entries():
    path = shutil.which("java")
    given = os.environ.get("JAVAS", "").split()
    if not path and not given:
        raise h.Skip("no JDK")
    home = os.path.dirname(os.path.dirname(os.path.realpath(path or "")))
    return given or ["%s=:%s" % (os.path.basename(home), home)]


def javas():
    return [Jdk(entry) for entry in entries()]


def check_chains(jdk):
    """Names, root to leaf, by the interpreter and by each compiler, which inline methods."""
    for mode in MODES:
        jdk.check_cases(["%s/%s" % (mode, case) for case in CASES], mode + "-account",
                        exact=0.95 if mode == "int" else 0.90)


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


def check_lines(jdk):
    """The line of each frame, interpreted and inlined."""
    leaf = frames_with_lines()["Chains.leaf"]
    for case, (stacks, _) in jdk.record([mode + "/inlined" for mode in ("int", "c1", "c2")],
                                        ["--lines"])[0].items():
        mine = [s for s in stacks if "Chains.leaf" in ";".join(s.frames)]
        other = at_other_lines(mine)
        bad = [s for s in mine if s in other or not any(f in leaf for f in s.frames)]
        jdk.check("lines-" + case.split("/")[0],
                  language.too_many(bad, mine, 0.05, 20, "have another line"))


def check_virtual(jdk):
    """Virtual threads: whole chains, also after a pause, when most frames are in the heap."""
    if jdk.version < 21:
        h.skip("java-%s-virtual" % jdk.name, "Java %d has no virtual threads" % jdk.version)
        return
    for mode, case in [("default", "virtual"), ("default", "yielding"), ("int", "yielding")] + \
            [(mode, "yielding") for mode in HEAPS]:
        stacks, chain, stats = jdk.record_case("%s/%s" % (mode, case))
        mine = [s for s in stacks if "Chains.leaf" in s.frames]
        chain = [f for f in chain if f.startswith("Chains")]
        bad = [s for s in mine if h.reason(s) or
               [f for f in jdk.names(s) if f[0] in "C["] != chain]
        java = stats["languages"]["java"]
        errors = language.too_many(bad, mine, 0.05, 20, "are not " + ";".join(chain))
        if java["complete"] < 0.95 * java["stacks"]:
            errors.append("account: %s" % java)
        jdk.check("%s-%s" % (case, mode), errors)


def check_offcpu(jdk):
    """Blocked time under its chain."""
    stacks, chain, _ = jdk.record_case("default/sleep", tool="offcpu")
    mine = [s for s in stacks if "Chains.sleep" in s.frames]
    errors = [] if mine else ["no stack with Chains.sleep"]
    errors += ["%s: %s" % (s.frames, chain) for s in mine
               if [f for f in s.frames if f.startswith("Chains")] != chain]
    jdk.check("offcpu", errors)


if __name__ == "__main__":
    language.run_checks(javas, [check_chains, check_lines, check_virtual, check_offcpu])
