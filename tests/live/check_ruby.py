#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Ruby, on programs that print their own chain (tests/programs/lang/ruby).

check_ruby.py [CHECK...]    RUBIES: interpreters, by default the ruby in PATH; SECONDS for each
case; CASES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import tempfile

import harness as h

SECONDS = float(os.environ.get("SECONDS", "0.7"))
RUBIES = os.environ.get("RUBIES", "").split()
SOURCES = os.path.join(h.TOP, "tests/programs/lang/ruby")
FRAME = re.compile(r"^(.*?) \(([^()]+\.rb|<internal:[^()]+>|\(eval[^()]*\))(?::(\d+))?\)$")
CASES = os.environ.get(
    "CASES",
    "plain rec60 rec300 blocks each sortby compare inject missing lambda send cfiber cthread fiber "
    "enumerator lazy rescue ensure catch thread mnthread eval gsub native regexp tight fork "
    "hot").split()
ROUNDS = "40"  # of a case before it works, so that YJIT has compiled its methods


class Ruby:
    def __init__(self, entry):
        self.name, _, where = entry.rpartition("=")
        self.root, _, self.path = where.rpartition(":")
        self.name = self.name or os.path.basename(os.path.realpath(self.path))
        if not os.access(self.root + self.path, os.X_OK):
            raise h.Skip("no %s" % self.path)
        self.flags = []

    def with_yjit(self):
        """This interpreter with YJIT; None: it has none."""
        jit = copy.copy(self)
        jit.flags = ["--yjit"]
        out = subprocess.run(jit.interpreter() + ["-e", "print RubyVM::YJIT.enabled?"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        return jit if out == b"true" else None

    def interpreter(self):
        return (["chroot", self.root] if self.root else []) + [self.path] + self.flags

    def command(self, script, *args):
        source = os.path.join(SOURCES, script)
        if self.root:
            shutil.copy(source, self.root + "/tmp/" + script)
            source = "/tmp/" + script
        return self.interpreter() + [source] + list(args)


def rubies():
    found = RUBIES or [p for p in [shutil.which("ruby")] if p]
    if not found:
        raise h.Skip("no ruby")
    return [Ruby(entry) for entry in found]


def start_case(ruby, case, seconds):
    """The program when it has reached its leaf, and the chain that it printed."""
    rounds = [ROUNDS] if ruby.flags and case not in ("blocked", "fork") else []
    # From 3.3 on, threads have stacks like those of ractors then.
    env = dict(os.environ, RUBY_MN_THREADS="1") if case == "mnthread" else None
    p = h.start(ruby.command("chains.rb", case, str(seconds), *rounds), stdout=subprocess.PIPE,
                env=env)
    line = p.stdout.readline().decode()
    if not line.startswith("CHAIN "):
        raise ValueError("%s: no chain: %r" % (case, line))
    return p, line[6:].rstrip("\n").split(";")


def record_case(ruby, case, options=(), tool="record"):
    p, chain = start_case(ruby, case, SECONDS + 60)
    try:
        pids = ",".join(map(str, h.family(p.pid)))
        if tool == "record":
            options = ["-F", "499"] + list(options)
        stacks, stats = h.Recording(["-p", pids] + list(options), SECONDS, tool=tool).finish()
    finally:
        h.stop(p)
    return stacks, stats, chain


def label(frame):
    """A frame without the class that labels have since Ruby 3.4."""
    return re.sub(r"\b[A-Z]\w*[#.]", "", frame, count=1)


def shown(frame, lines):
    """A frame of the chain as sfbpf shows it."""
    return frame if lines else re.sub(r":\d+\)$", ")", frame)


# What a leaf calls: the chain goes on with methods in C.
LEAF = re.compile(r"^(\w+[#.])?(now|to_f|times|deflate|=~|sleep|clock_gettime|block .*|"
                  r"initialize|new|localtime|at|utc|Integer#\+|match|crunch|\*|&|%) \(|"
                  r"^(now|to_f)$")


def judge_account(stats):
    ruby = stats["languages"]["ruby"]
    if ruby["complete"] < 0.95 * ruby["stacks"] or ruby["unnamed"] > 0.02 * ruby["frames"]:
        return ["account: %s" % json.dumps(ruby)]
    return []


def judge(stacks, stats, chain, least=0.95, lines=False, root=0.97):
    """Complaints if the chain is not exact in that share of the samples."""
    want = [shown(f, lines) for f in chain]
    if lines:  # the leaf's line is one of its loop
        want[-1] = shown(want[-1], False)
    bad = []
    for s in stacks:
        frames = h.user_frames(s)
        # Methods in C at the start of a fiber look like native frames.
        got = [f for f in frames if FRAME.match(f) or (f in want and "(" not in f)]
        if lines and len(got) >= len(want):
            got[len(want) - 1] = shown(got[len(want) - 1], False)
        if got[:len(want)] != want or not all(map(LEAF.match, got[len(want):])):
            bad.append(s)
    n = h.total(stacks)
    errors = []
    if n < 10:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - least) * n:
        errors.append("%d of %d have another chain than %s: %s" %
                      (h.total(bad), n, ";".join(want)[-400:], h.worst(bad, 2, 900)))
    errors += judge_account(stats)
    user = stats["user_stacks"]
    if user["complete"] < root * user["total"]:
        errors.append("native: %s" % json.dumps(user))
    return errors


def in_method(stacks, method, owner, file):
    """Since Ruby 3.4, labels have the class."""
    names = {"%s (%s)" % (method, file), "%s#%s (%s)" % (owner, method, file)}
    return [s for s in stacks if names & set(s.frames)]


def check_chains(name):
    """Names and files, root to leaf, in each way that Ruby calls Ruby."""
    for ruby in rubies():
        for case in CASES:
            try:
                stacks, stats, chain = record_case(ruby, case)
                if case == "fork":
                    stacks = in_method(stacks, "spin", "Object", "chains.rb")
                h.check("ruby-%s-%s" % (ruby.name, case), judge(stacks, stats, chain))
            except ValueError as e:
                h.fail("ruby-%s-%s" % (ruby.name, case), str(e))


def check_parse(name):
    """While a file is parsed, Ruby has a frame that runs nothing; at its start it has no frames."""
    for ruby in rubies():
        with tempfile.NamedTemporaryFile("w", suffix=".rb", dir=ruby.root + "/tmp") as f:
            f.write("".join("def f%d(a, b)\n  a + b * [%d, a]\nend\n" % (i, i)
                            for i in range(60000)))
            f.flush()
            path = f.name[len(ruby.root):]
            script = "def parse(path) = load(path)\nparse(%r) while true" % path
            if ruby.name.endswith("2.7"):
                script = script.replace(" = load(path)", "; load(path); end")
            p = h.start(ruby.interpreter() + ["-e", script])
            try:
                stacks, stats = h.Recording(["-p", str(p.pid), "-F", "499"], 1.5).finish()
            finally:
                h.stop(p)
        mine = [s for s in stacks if any("yyparse" in f or "compile" in f for f in s.frames)]
        bad = [s for s in mine if "[ruby]" in s.frames or
               not any("parse (-e)" in f or "<main> (-e)" in f for f in s.frames)]
        errors = judge_account(stats)
        if h.total(mine) < 10 or h.total(bad) > 0.03 * h.total(mine):
            errors.append("%d of %d: %s" % (h.total(bad), h.total(mine), h.worst(bad or stacks, 2)))
        h.check("ruby-%s-parse" % ruby.name, errors)


def check_lines(name):
    """Each caller's line, that of a method's caller in C among them."""
    for ruby in rubies():
        for case in ("blocks", "each", "missing", "rescue"):
            stacks, stats, chain = record_case(ruby, case, ["--lines"])
            h.check("ruby-%s-lines-%s" % (ruby.name, case),
                    judge(stacks, stats, chain, lines=True))


def check_yjit(name):
    """The same chains in code that YJIT made."""
    jits = [j for j in (ruby.with_yjit() for ruby in rubies()) if j]
    if not jits:
        raise h.Skip("no Ruby with YJIT")
    for ruby in jits:
        for case in CASES:
            try:
                stacks, stats, chain = record_case(ruby, case)
                if case == "fork":
                    stacks = in_method(stacks, "spin", "Object", "chains.rb")
                h.check("ruby-%s-yjit-%s" % (ruby.name, case), judge(stacks, stats, chain))
            except ValueError as e:
                h.fail("ruby-%s-yjit-%s" % (ruby.name, case), str(e))
        stacks, stats, chain = record_case(ruby, "hot", ["--native"])
        errors = judge(stacks, stats, chain)
        if h.total([s for s in stacks if "[unknown]_[j]" in s.frames]) < 0.8 * h.total(stacks):
            errors.append("--native shows no code of YJIT: %s" % h.worst(stacks, 1))
        h.check("ruby-%s-yjit-frames" % ruby.name, errors)
        stacks, stats, chain = record_case(ruby, "sleep", tool="offcpu")
        mine = in_method(stacks, "sleep", "Kernel", "chains.rb")
        h.check("ruby-%s-yjit-offcpu" % ruby.name, judge(mine, stats, chain, root=0.9))


def check_native(name):
    """--native shows the loops as well; without it no loop is left."""
    for ruby in rubies():
        stacks, stats, chain = record_case(ruby, "each")
        plain = {len(s.frames) for s in stacks}
        stacks, stats, chain = record_case(ruby, "each", ["--native"])
        errors = judge(stacks, stats, chain)
        if min(len(s.frames) for s in stacks) < min(plain) + 6:
            errors.append("--native shows no loops: %s" % h.worst(stacks, 1))
        h.check("ruby-%s-native" % ruby.name, errors)


def check_reused(name):
    """Memory of code that is used again: no name of what was there before."""
    for ruby in rubies():
        p = h.start(ruby.command("reuse.rb", "60"))
        stacks, stats = h.Recording(["-p", str(p.pid), "-F", "997"], 2).finish()
        h.stop(p)
        good = bad = 0
        for s in stacks:
            numbers = [m[1] for m in (re.search(r"(?:outer|inner)_(\d+) ", f) for f in s.frames)
                       if m]
            good += s.count * (len(numbers) == 2 and numbers[0] == numbers[1])
            bad += s.count * (len(numbers) == 2 and numbers[0] != numbers[1])
        h.check("ruby-%s-reused" % ruby.name,
                ["%d right, %d wrong: %s" % (good, bad, h.worst(stacks, 2))]
                if good < 100 or bad > 0.01 * good else [])


def check_short(name):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    for ruby in rubies():
        script = "for i in $(seq 20); do %s; done" % " ".join(ruby.command("short.rb"))
        stacks, stats = h.Recording(["-F", "199"], command=["sh", "-c", script]).finish()
        mine = in_method(stacks, "work", "Object", "short.rb")
        want = ["<main> (short.rb)", "middle (short.rb)", "each (short.rb)",
                "block in middle (short.rb)", "work (short.rb)"]
        named = [
            s for s in mine
            if [label(f) for f in s.frames if f.endswith("(short.rb)")][:5] == want and
            "[ruby]" not in s.frames
        ]
        errors = []
        if h.total(mine) < 20 * 8:
            errors.append("%d samples in work()" % h.total(mine))
        if h.total(named) < 0.95 * h.total(mine):
            errors.append("%d of %d named: %s" % (h.total(named), h.total(mine), h.worst(mine, 2)))
        h.check("ruby-%s-short" % ruby.name, errors)


def check_offcpu(name):
    """Blocked time under its chain: alone, and while another thread runs Ruby."""
    for ruby in rubies():
        for case in ("sleep", "blocked"):
            if case == "blocked" and "2.7" in ruby.name:
                continue  # the context of a thread that does not run Ruby is not found there
            stacks, stats, chain = record_case(ruby, case, tool="offcpu")
            mine = in_method(stacks, "sleep", "Kernel", "chains.rb")
            bad = judge(mine, stats, chain, root=0.9)
            h.check("ruby-%s-offcpu-%s" % (ruby.name, case), bad)


h.run_checks([check_chains, check_parse, check_yjit, check_lines, check_native, check_reused,
              check_short, check_offcpu])
