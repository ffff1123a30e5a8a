#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Ruby, on programs that print their own chain (tests/programs/lang/ruby).

check_ruby.py [CHECK...]    RUBIES: interpreters, by default the ruby in PATH; SECONDS of a
recording; CASES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import os
import re
import shutil
import subprocess
import tempfile

import harness as h
import language

CASES = os.environ.get(
    "CASES",
    "plain rec60 rec300 blocks each sortby compare inject missing lambda send cfiber cthread fiber "
    "enumerator lazy rescue ensure catch thread mnthread eval gsub native regexp tight fork "
    "hot").split()
ROUNDS = "40"  # of a case before it works, so that YJIT has compiled its methods

# What a leaf calls: the chain goes on with methods in C.
LEAF = re.compile(r"^(\w+[#.])?(now|to_f|times|deflate|=~|sleep|clock_gettime|block .*|"
                  r"initialize|new|localtime|at|utc|Integer#\+|match|crunch|\*|&|%) \(|"
                  r"^(now|to_f)$")


class Ruby(language.Interpreter):
    language = "ruby"
    suffix = ".rb"
    frame = re.compile(r"^(.*?) \(([^()]+\.rb|<internal:[^()]+>|\(eval[^()]*\))(?::(\d+))?\)$")
    at_once, hz, seconds = 7, 997, float(os.environ.get("SECONDS", "1.5"))

    def with_yjit(self):
        """This interpreter with YJIT; None: it has none."""
        jit = self.variant("yjit", ["--yjit"])
        out = subprocess.run(jit.command("-e", "print RubyVM::YJIT.enabled?"),
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        return jit if out == b"true" else None

    def arguments(self, case):
        rounds = self.options and case not in ("blocked", "fork")
        return super().arguments(case) + [ROUNDS] * bool(rounds)

    def command(self, *args, name=None):
        """From 3.3 on, threads have stacks like those of ractors with RUBY_MN_THREADS."""
        environment = ["env", "RUBY_MN_THREADS=1"] if name == "mnthread" else []
        return environment + super().command(*args, name=name)

    def names(self, stack):
        """Without the class that labels have since Ruby 3.4."""
        return [re.sub(r"\b[A-Z]\w*[#.]", "", n, count=1) for n in super().names(stack)]

    def right(self, stack, chain, lines=False):
        want = self.shown(chain, lines)
        # Methods in C at the start of a fiber look like native frames.
        frames = [f for f in h.user_frames(stack)
                  if self.frame.match(f) or (f in want and "(" not in f)]
        return self.shown(frames[:len(want)], lines) == want and \
            all(map(LEAF.match, frames[len(want):]))

    def account(self, stats, root=0.97):
        user = stats["user_stacks"]
        return super().account(stats) + (
            ["native: %s" % user] if user["complete"] < root * user["total"] else [])


def rubies():
    found = os.environ.get("RUBIES", "").split() or [p for p in [shutil.which("ruby")] if p]
    if not found:
        raise h.Skip("no ruby")
    return [Ruby(entry) for entry in found]


def in_method(stacks, method, owner, file):
    """Since Ruby 3.4, labels have the class."""
    names = {"%s (%s)" % (method, file), "%s#%s (%s)" % (owner, method, file)}
    return [s for s in stacks if names & set(s.frames)]


def check_chains(ruby):
    """Names and files, root to leaf, in each way that Ruby calls Ruby."""
    ruby.check_cases(CASES)


def check_parse(ruby):
    """While a file is parsed, Ruby has a frame that runs nothing; at its start it has no frames."""
    with tempfile.NamedTemporaryFile("w", suffix=".rb", dir=ruby.root + "/tmp") as f:
        f.write("".join("def f%d(a, b)\n  a + b * [%d, a]\nend\n" % (i, i) for i in range(6000)))
        f.flush()
        path = f.name[len(ruby.root):]
        script = "def parse(path) = load(path)\nparse(%r) while true" % path
        if ruby.name.endswith("2.7"):
            script = script.replace(" = load(path)", "; load(path); end")
        p = h.start(ruby.command("-e", script))
        stacks, stats = language.record([p], ["-F", "499"], 1.5)
    mine = [s for s in stacks if any("yyparse" in f or "compile" in f for f in s.frames)]
    bad = [s for s in mine if "[ruby]" in s.frames or
           not any("parse (-e)" in f or "<main> (-e)" in f for f in s.frames)]
    ruby.check("parse", ruby.account(stats, 0) + language.too_many(bad, mine, 0.03))


def check_deep(ruby):
    """Stacks with more frames than can be recorded say so, and have Ruby's frames."""
    calls = {"methods": "def deep(n) n == 0 ? work : 1 + deep(n - 1); end",
             "blocks": "def deep(n) n == 0 ? work : [n].each { |m| deep(m - 1) }; end"}
    for what, deep in calls.items():
        script = deep + ("\ndef work; (i = 0; i += 1 while i < 20000) while true; end\n"
                         "puts(1); $stdout.flush; deep(2500)")
        p = h.start(ruby.command("-e", script), stdout=subprocess.PIPE)
        p.stdout.readline()
        stacks, stats = language.record([p], ["-F", "499"], 1)
        bad = [s for s in stacks if h.reason(s) != "depth" or "work (-e)" not in s.frames[-2:]]
        why = stats["languages"]["ruby"]["incomplete"]
        others = {reason: n for reason, n in why.items() if reason != "depth"}
        ruby.check("deep-" + what, language.too_many(bad, stacks, 0.1) +
                   (["reasons: %s" % why] if 20 * sum(others.values()) > why["depth"] else []))


def check_lines(ruby):
    """Each caller's line, that of a method's caller in C among them."""
    found, stats = ruby.record(["blocks", "each", "missing", "rescue", "long"], ["--lines"])
    for case, (stacks, chain) in found.items():
        ruby.check("lines-" + case,
                   ruby.judge(stacks, chain, lines=True) + ruby.account(stats))


def check_blocked(ruby, case, name):
    stacks, chain, stats = ruby.record_case(case, tool="offcpu")
    mine = in_method(stacks, "sleep", "Kernel", "chains.rb")
    ruby.check(name, ruby.judge(mine, chain, root=0.9) + ruby.account(stats, 0.9))


def check_yjit(name):
    """The same chains in code that YJIT made."""
    jits = [j for j in (ruby.with_yjit() for ruby in rubies()) if j]
    if not jits:
        raise h.Skip("no Ruby with YJIT")
    for ruby in jits:
        ruby.check_cases(CASES)
        stacks, chain, stats = ruby.record_case("hot", ["--native"])
        hidden = [s for s in stacks if "[unknown]_[j]" not in s.frames]
        ruby.check("frames", ruby.judge(stacks, chain) + ruby.account(stats) +
                   language.too_many(hidden, stacks, 0.2, what="without code of YJIT"))
        check_blocked(ruby, "sleep", "offcpu")


def check_native(ruby):
    """--native shows the loops as well; without it no loop is left."""
    plain = {len(s.frames) for s in ruby.record_case("each")[0]}
    stacks, chain, stats = ruby.record_case("each", ["--native"])
    errors = ruby.judge(stacks, chain) + ruby.account(stats)
    if min(len(s.frames) for s in stacks) < min(plain) + 6:
        errors.append("--native shows no loops: %s" % h.worst(stacks, 1))
    ruby.check("native", errors)


def check_reused(ruby):
    """Memory of code that is used again: no name of what was there before."""
    p = h.start(ruby.command(ruby.file("reuse.rb"), "60"))
    stacks, _ = language.record([p], ["-F", "997"], 2)
    good, bad = [], []
    for s in stacks:
        numbers = [m[1] for m in (re.search(r"(?:outer|inner)_(\d+) ", f) for f in s.frames) if m]
        if len(numbers) == 2:
            (good if numbers[0] == numbers[1] else bad).append(s)
    ruby.check("reused", language.too_many(bad, good, 0.01, 100))


def check_short(ruby):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    ruby.check_short(["<main>", "middle", "each", "block in middle", "work"], {"[ruby]"},
                     calls=True)


def check_offcpu(ruby):
    """Blocked time under its chain: alone, and while another thread runs Ruby."""
    check_blocked(ruby, "sleep", "offcpu-sleep")
    if "2.7" not in ruby.name:  # where the context of a thread that does not run Ruby is not found
        check_blocked(ruby, "blocked", "offcpu-blocked")


language.run_checks(rubies, [check_chains, check_parse, check_deep, check_lines, check_native,
                             check_reused, check_short, check_offcpu], [check_yjit])
