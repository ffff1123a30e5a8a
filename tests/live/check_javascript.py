#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of JavaScript, on programs that know their own chain (tests/programs/lang/javascript).

check_javascript.py [CHECK...]    NODES: node binaries, by default that in PATH; SECONDS of a
recording; CASES. An entry ROOT:PATH is the node at PATH below another root directory.
"""

import json
import os
import re
import shutil
import subprocess
import time

import harness as h
import language

CASES = os.environ.get(
    "CASES", "recurse sort reviver classes fields closures callbacks generator computed "
    "accessor replace apply async timer many garbage regexp").split()
# One compiler each, and nothing inlined. Node 18 and 20 are built without Maglev.
MODES = {
    "ignition": ["--no-opt", "--no-sparkplug"],
    "sparkplug": ["--always-sparkplug", "--no-opt"],
    "turbofan": ["--no-turbo-inlining"],
}
MAGLEV = {
    "ignition": MODES["ignition"] + ["--no-maglev"],
    "sparkplug": MODES["sparkplug"] + ["--no-maglev"],
    "maglev": ["--maglev", "--no-maglev-inlining", "--max-optimized-bytecode-size=0"],
    "turbofan": MODES["turbofan"] + ["--no-maglev"],
}
# Inlined functions
INLINED = {"": [], "maglev": ["--maglev", "--max-optimized-bytecode-size=0"]}


class Node(language.Interpreter):
    language = "javascript"
    suffix = ".js"
    frame = re.compile(r"^(.*) \((chains\.js)\)$")
    at_once, seconds = 5, float(os.environ.get("SECONDS", "3"))
    complete = 0.97
    has_threads = True  # compilers and the collector

    def __init__(self, entry):
        super().__init__(entry)
        version = subprocess.run(self.command("--version"), capture_output=True, text=True)
        if version.returncode:
            raise h.Skip("%s: %s" % (self.path, version.stderr[:200]))
        self.name = "node%s" % version.stdout.strip().split(".")[0][1:]
        self.has_maglev = self.name not in ("node18", "node20")

    def modes(self):
        return MAGLEV if self.has_maglev else MODES

    def arguments(self, case):
        """Of CASE or MODE/CASE. The main thread's name is the program's title."""
        mode, _, case_alone = case.rpartition("/")
        return self.modes().get(mode, []) + super().arguments(case_alone) + [self.comm(case)]

    def record_silent(self, programs, options=(), hz=199):
        """Programs that do not say when they are at their leaf."""
        started = [h.start(self.command(*arguments, language.LIFE)) for arguments in programs]
        time.sleep(1)  # for compilers
        return language.record(started, ["-F", str(hz)] + list(options), self.seconds)[0]

    def right(self, stack, chain, lines=False):
        return self.names(stack) == chain

    def rooted(self, stack):
        """_start's own name may be late on a busy machine: node has 100,000 of them."""
        return any(f.startswith(("__libc_start_main", "start_thread")) for f in stack.frames[:3])


def nodes():
    path = shutil.which("node")
    found = os.environ.get("NODES", "").split() or ([path] if path else [])
    if not found:
        raise h.Skip("no node")
    return [Node(entry) for entry in found]


def check_chains(node):
    """Names and files, root to leaf, in each way that JavaScript calls JavaScript."""
    node.check_cases(CASES)


def at_leaf(node, stacks, chain):
    """Callers are innermost between two calls."""
    return [s for s in stacks if node.names(s)[-1:] == chain[-1:]]


def check_compilers(node):
    """Hot code of the interpreter and of each compiler."""
    found, stats = node.record([mode + "/hot" for mode in node.modes()])
    for case, (stacks, chain) in found.items():
        node.check(case.split("/")[0],
                   node.judge(at_leaf(node, stacks, chain), chain, exact=0.90) +
                   node.account(stats))


def check_inlined(node):
    """Functions that compilers inline are frames, also where an inlined function calls."""
    for mode, options in INLINED.items():
        if mode and not node.has_maglev:
            continue
        variant = node.variant(mode, options)
        variant.warm = 2
        found, stats = variant.record(["hot", "inlined", "nested"], ["--native"])
        for case, (stacks, chain) in found.items():
            leaf = at_leaf(node, stacks, chain)
            # A function that has code of its own is followed by it.
            alone = [s for s in leaf if sum("_[j]" in f for f in s.frames) >= len(chain) - 1]
            node.check("-".join([case] + [mode] * bool(mode)),
                       node.judge(leaf, chain, exact=0.90) + node.account(stats) +
                       language.too_many(alone, leaf, 0.1, what="have nothing inlined"))


def check_calls(node):
    """A call in optimised code has its position, however long the code of its arguments is, and
    also in code that is there several times.
    """
    variant = node.variant("", [])
    variant.warm = 3
    found, _ = variant.record(["mutual", "product", "unrolled"])
    for case, (stacks, chain) in found.items():
        leaf = at_leaf(node, stacks, chain)
        node.check(case, node.judge(leaf, chain))


def line_of(node, text):
    """The line of the program that has it."""
    with open(node.file("chains.js")) as f:
        found = [i for i, line in enumerate(f, 1) if text in line]
    if len(found) != 1:
        raise ValueError("%r: lines %s" % (text, found))
    return found[0]


def check_lines(node):
    """Lines of optimised code: of the loop in the innermost function, and of each call."""
    frames = [("inlinedTop", "cells.forEach("), ("visit", "sink ^= inlinedMiddle("),
              ("inlinedMiddle", "cell.weigh("), ("weigh", "return fold("), ("fold", "i * by")]
    want = ["%s (chains.js:%d)" % (f, line_of(node, text)) for f, text in frames]
    # Its head is run as well.
    loop = (want[-1], "fold (chains.js:%d)" % (line_of(node, "i * by") - 1))
    stacks = node.record_silent([[node.file("chains.js"), "inlined"]], ["--lines"])
    mine = [s for s in stacks if any(f.startswith("fold (") for f in s.frames)]
    found = lambda s: [f for f in s.frames if "(chains.js:" in f][-5:]
    bad = [s for s in mine if found(s)[:-1] != want[:-1] or found(s)[-1] not in loop]
    node.check("lines", language.too_many(bad, mine, 0.1, what="have not %s" % want))


def check_bytecode_lines(node):
    """Lines of code that the interpreter and Sparkplug run: of calls, and in the innermost one."""
    program = node.file("lines.js")
    with open(program) as f:
        text = f.read().split("\n")
    at = lambda part: 1 + next(i for i, line in enumerate(text) if part in line)
    chain = [("(anonymous)", at("\tfirst();")), ("first", at(".map(")),
             ("each", at("middle(2)")), ("middle", at("middle(n - 1)")),
             ("middle", at("middle(n - 1)")), ("middle", at("\tleaf()"))]
    loop = [at("while"), at("x * 31"), at("Date.now() >="), at("\tend)")]
    want = ["%s (lines.js:%d)" % frame for frame in chain]
    for mode in ("ignition", "sparkplug"):
        stacks = node.record_silent([node.modes()[mode] + [program]], ["--lines"])
        n = callers = unknown = right = 0
        for s in stacks:
            found = [f for f in s.frames if " (lines.js" in f]
            if len(found) != len(want) + 1 or not found[-1].startswith("leaf ("):
                continue
            line = re.search(r":(\d+)\)$", found[-1])
            n += s.count
            callers += s.count * (found[:-1] == want)
            unknown += s.count * (not line)
            right += s.count * bool(line and int(line[1]) in loop)
        errors = []
        # While it runs a builtin, the innermost function may have no line.
        if n < 100 or callers < 0.98 * n or right < 0.95 * (n - unknown) or unknown > n / 3:
            errors.append("of %d samples the callers of %d and the leaf of %d have their "
                          "lines, that of %d is not known: %s" %
                          (n, callers, right, unknown, h.worst(stacks, 2, 700)))
        node.check("lines-" + mode, errors)


def check_frameless(node):
    """Inlined functions are frames while they are in a builtin that has no frame.

    And in one that is called where V8 writes no positions: a write barrier.
    """
    variant = node.variant("", [])
    variant.warm = 1
    for case, (stacks, chain) in variant.record(["frameless", "barrier"], ["--lines"])[0].items():
        lined = [(s, [language.without_line(f) for f in s.frames]) for s in stacks]
        found = [(s, [m[1] for m in map(node.frame.match, frames) if m]) for s, frames in lined]
        mine = [s for s, names in found if names]
        bad = [s for s, names in found if names and names != chain]
        node.check(case, language.too_many(bad, mine, 0.1))


def check_texts(node):
    """Lines where the text of a script is no plain string, and where many scripts are new."""
    wanted = {
        "joined": ["top (text.js:10)", "leaf (text.js:4)"],
        "cut": ["top (text.js:10)", "leaf (text.js:4)"],
        "many": ["step%d (<anonymous>:3)" % i for i in range(12, 0, -1)],
    }
    stacks = node.record_silent([[node.file("texts.js"), way] for way in wanted], ["--lines"])
    for way, want in wanted.items():
        mine = [s for s in stacks if s.comm == way and any("leaf (" in f for f in s.frames)]
        bad = [s for s in mine if [f for f in s.frames if f in want] != want]
        node.check("text-" + way, language.too_many(bad, mine, 0.05))


def check_reused(node):
    """Memory of optimised code is used again: what was found at a pc is not believed then.

    Some are mixed without compilers, too: a SharedFunctionInfo can replace one that has the same
    address and the same pointers.
    """
    good, bad = [], []
    for s in node.record_silent([["--expose-gc", node.file("reuse.js")]], hz=499):
        found = [m for m in (re.match(r"(top|mid|leaf)_(\d+) ", f) for f in s.frames) if m]
        if len(set(m[2] for m in found)) > 1:
            bad.append(s)
        elif [m[1] for m in found] == ["top", "mid", "leaf"]:
            good.append(s)
    node.check("reused", language.too_many(bad, good, 0.06))


def check_worker(node):
    """A worker thread has an isolate of its own."""
    stacks, chain, stats = node.record_case("worker")
    node.check("worker", node.judge(stacks, chain) + node.account(stats))


def check_offcpu(node):
    """Blocked time under its chain."""
    stacks, chain, _ = node.record_case("wait", tool="offcpu")
    mine = [s for s in stacks if "block" in node.names(s)]
    bad = [s for s in mine if node.names(s) != chain]
    node.check("offcpu", language.too_many(bad, mine, 0, 0.8e6 * node.seconds, "us wrong"))


def check_native(node):
    """With --native, each function's machine code is before its frame; else nothing is between."""
    errors = []
    for option, step in (([], 1), (["--native"], 2)):
        stacks, chain, stats = node.record_case("closures", option, hz=99)
        errors += node.judge(stacks, chain) + node.account(stats)
        for s in stacks:
            at = [i for i, f in enumerate(h.user_frames(s)) if node.frame.match(f)]
            if [b - a for a, b in zip(at, at[1:])] != [step] * (len(chain) - 1):
                errors.append("%s: %s" % (option, h.worst([s], 1)))
    # A sample in the prologue of the leaf
    node.check("native", errors if len(errors) > 1 else [])


def check_outputs(name):
    """The same frames in JSON."""
    node = nodes()[0]
    p = h.start(node.command(*node.arguments("sort")), stdout=subprocess.PIPE)
    language.first_line(p, "CHAIN ")
    path = h.tmpfile("javascript.json")
    subprocess.run([h.SFBPF, "record", "-p", str(p.pid), "-o", path, "1"], check=True,
                   capture_output=True)
    with open(path) as f:
        stacks = json.load(f)["stacks"]
    frames = [f for s in stacks for f in s["frames"] if f["kind"] == "javascript"]
    files = {f["name"]: f.get("file") for f in frames}
    errors = []
    if files.get("compare (chains.js)") != node.file("chains.js") or files.get("sort (native)"):
        errors.append("files: %s" % files)
    if not all(f["module"] == "[javascript]" for f in frames):
        errors.append("modules: %s" % frames[:2])
    h.check("javascript-outputs", errors)


language.run_checks(nodes, [
    check_chains, check_compilers, check_inlined, check_calls, check_lines, check_bytecode_lines,
    check_frameless, check_texts, check_reused, check_worker, check_offcpu, check_native
], [check_outputs])
