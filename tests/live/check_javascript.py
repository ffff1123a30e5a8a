#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of JavaScript, on programs that know their own chain (tests/programs/lang/javascript).

check_javascript.py [CHECK...]    NODES: node binaries, by default that in PATH; SECONDS for each
case; CASES; MODES.
"""

import json
import os
import re
import shutil
import subprocess
import time

import harness as h

SECONDS = float(os.environ.get("SECONDS", "3"))
SOURCE = os.path.join(h.TOP, "tests/programs/lang/javascript/chains.js")
FRAME = re.compile(r"^(.*) \(chains\.js\)$")
CASES = os.environ.get(
    "CASES", "recurse sort reviver classes fields closures callbacks generator accessor replace "
    "apply async timer many garbage regexp").split()
TOGETHER = 5  # cases in one recording
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


def nodes():
    """(name, path) of each."""
    path = shutil.which("node")
    found = os.environ.get("NODES", "").split() or ([path] if path else [])
    if not found:
        raise h.Skip("no node")
    out = []
    for path in found:
        version = subprocess.run([path, "--version"], capture_output=True, text=True)
        if version.returncode:
            raise h.Skip("%s: %s" % (path, version.stderr[:200]))
        out.append(("node%s" % version.stdout.strip().split(".")[0][1:], path))
    return out


def start_case(node, case, options=(), title=""):
    """The program when it is at its leaf, and its chain."""
    argv = [node] + list(options) + [SOURCE, case, str(SECONDS + 60)]
    p = h.start(argv + [title] if title else argv, stdout=subprocess.PIPE)
    line = p.stdout.readline().decode()
    if not line.startswith("CHAIN "):
        raise ValueError("%s: no chain: %r" % (case, line))
    return p, line[6:].strip().split(";")


def record_all(started, more=(), tool="record"):
    """One recording of all these programs."""
    try:
        pids = ",".join(str(p.pid) for p, _ in started)
        return h.Recording(["-p", pids] + list(more), SECONDS, tool=tool).finish()
    finally:
        for p, _ in started:
            h.stop(p)


def record_case(node, case, more=(), tool="record"):
    started = [start_case(node, case)]
    return record_all(started, more, tool) + (started[0][1],)


def frames_of(stack):
    """Functions of chains.js, root first."""
    return [m[1] for m in map(FRAME.match, h.user_frames(stack)) if m]


def judge(stacks, stats, chain, exact=0.95, rooted=0.97):
    """Complaints if the chain, or the way to the thread's start, is missing in too many samples."""
    # V8's own threads (compilers, the collector) have none of it.
    mine = [s for s in stacks if frames_of(s)]
    n = h.total(mine)
    errors = []
    bad = [s for s in mine if frames_of(s) != chain]
    if n < 10:
        errors.append("%d samples: %s" % (n, h.worst(stacks, 2)))
    if h.total(bad) > (1 - exact) * n:
        errors.append("%d of %d have another chain than %s: %s" %
                      (h.total(bad), n, ";".join(chain)[-300:], h.worst(bad, 2, 600)))
    # _start's own name may be late on a busy machine: node has 100,000 of them.
    starts = h.total([
        s for s in mine
        if any(f.startswith(("__libc_start_main", "start_thread")) for f in s.frames[:3])
    ])
    if starts < rooted * n:
        errors.append("%d of %d reach the start of the thread: %s" %
                      (starts, n, h.worst([s for s in mine if h.reason(s)], 2)))
    js = stats["languages"]["javascript"]
    if js["complete"] < 0.97 * js["stacks"] or js["unnamed"] > 0.02 * js["frames"]:
        errors.append("account: %s" % json.dumps(js))
    return errors


def check_chains(name):
    """Names and files, root to leaf, in each way that JavaScript calls JavaScript."""
    for version, node in nodes():
        for first in range(0, len(CASES), TOGETHER):
            cases = CASES[first:first + TOGETHER]
            started = [start_case(node, case) for case in cases]
            stacks, stats = record_all(started, ["-F", "199"])
            for case, (_, chain) in zip(cases, started):
                mine = [s for s in stacks if s.comm == case]
                h.check("javascript-%s-%s" % (version, case), judge(mine, stats, chain))


def check_compilers(name):
    """Hot code of the interpreter and of each compiler."""
    for version, node in nodes():
        modes = MODES if version in ("node18", "node20") else MAGLEV
        started = [start_case(node, "hot", options, mode) for mode, options in modes.items()]
        stacks, stats = record_all(started, ["-F", "199"])
        for mode, (_, chain) in zip(modes, started):
            # Callers are innermost between two calls.
            mine = [s for s in stacks if s.comm == mode and frames_of(s)[-1:] == chain[-1:]]
            h.check("javascript-%s-%s" % (version, mode), judge(mine, stats, chain, exact=0.90))


def check_inlined(name):
    """Functions that compilers inline are frames, also where an inlined function calls."""
    for version, node in nodes():
        modes = {"": []}
        if version not in ("node18", "node20"):
            modes["maglev"] = ["--maglev", "--max-optimized-bytecode-size=0"]
        for mode, options in modes.items():
            cases = ["hot", "inlined", "nested"]
            started = [start_case(node, case, options) for case in cases]
            time.sleep(2)  # for compilers
            stacks, stats = record_all(started, ["-F", "199", "--native"])
            for case, (_, chain) in zip(cases, started):
                leaf = [s for s in stacks if s.comm == case and frames_of(s)[-1:] == chain[-1:]]
                # A function that has code of its own is followed by it.
                alone = h.total([s for s in leaf if sum("_[j]" in f for f in s.frames) >=
                                 len(chain) - 1])
                errors = judge(leaf, stats, chain, exact=0.90)
                if alone > 0.1 * h.total(leaf):
                    errors.append("%d of %d have nothing inlined" % (alone, h.total(leaf)))
                h.check("-".join(["javascript", version, case] + ([mode] if mode else [])), errors)


def line_of(text):
    """The line of the program that has it."""
    with open(SOURCE) as f:
        found = [i for i, line in enumerate(f, 1) if text in line]
    if len(found) != 1:
        raise ValueError("%r: lines %s" % (text, found))
    return found[0]


def check_lines(name):
    """Lines of optimised code: of the loop in the innermost function, and of each call."""
    frames = [("inlinedTop", "cells.forEach("), ("visit", "sink ^= inlinedMiddle("),
              ("inlinedMiddle", "cell.weigh("), ("weigh", "return fold("), ("fold", "i * by")]
    want = ["%s (chains.js:%d)" % (f, line_of(text)) for f, text in frames]
    loop = (want[-1], "fold (chains.js:%d)" % (line_of("i * by") - 1))  # its head is run as well
    for version, node in nodes():
        p, _ = start_case(node, "inlined")
        time.sleep(1)
        stacks, _ = record_all([(p, None)], ["-F", "199", "--lines"])
        mine = [s for s in stacks if any(f.startswith("fold (") for f in s.frames)]
        found = lambda s: [f for f in s.frames if "(chains.js:" in f][-5:]
        good = [s for s in mine if found(s)[:-1] == want[:-1] and found(s)[-1] in loop]
        errors = []
        if h.total(mine) < 10 or h.total(good) < 0.9 * h.total(mine):
            errors.append("%d of %d have %s: %s" % (h.total(good), h.total(mine), want,
                                                    h.worst([s for s in mine if s not in good], 2)))
        h.check("javascript-%s-lines" % version, errors)


def check_bytecode_lines(name):
    """Lines of code that the interpreter and Sparkplug run: of calls, and in the innermost one."""
    program = os.path.join(os.path.dirname(SOURCE), "lines.js")
    with open(program) as f:
        text = f.read().split("\n")
    at = lambda part: 1 + next(i for i, line in enumerate(text) if part in line)
    chain = [("(anonymous)", at("\tfirst();")), ("first", at(".map(")),
             ("each", at("middle(2)")), ("middle", at("middle(n - 1)")),
             ("middle", at("middle(n - 1)")), ("middle", at("\tleaf()"))]
    loop = [at("while"), at("x * 31"), at("Date.now() >="), at("\tend)")]
    want = ["%s (lines.js:%d)" % frame for frame in chain]
    for version, node in nodes():
        modes = MODES if version in ("node18", "node20") else MAGLEV
        for mode in ("ignition", "sparkplug"):
            p = h.start([node] + modes[mode] + [program, str(SECONDS + 60)])
            time.sleep(1)
            stacks, _ = record_all([(p, None)], ["-F", "199", "--lines"])
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
            h.check("javascript-%s-lines-%s" % (version, mode), errors)


def check_frameless(name):
    """Inlined functions are frames while they are in a builtin that has no frame.

    And in one that is called where V8 writes no positions: a write barrier.
    """
    cases = ["frameless", "barrier"]
    for version, node in nodes():
        started = [start_case(node, case) for case in cases]
        time.sleep(1)  # for compilers
        stacks, _ = record_all(started, ["-F", "199", "--lines"])
        for case, (_, chain) in zip(cases, started):
            mine = [s for s in stacks if s.comm == case]
            lined = [[re.sub(r":\d+\)$", ")", f) for f in s.frames] for s in mine]
            found = [[m[1] for m in map(FRAME.match, frames) if m] for frames in lined]
            good = sum(s.count for s, f in zip(mine, found) if f == chain)
            n = sum(s.count for s, f in zip(mine, found) if f)
            errors = []
            if n < 10 or good < 0.9 * n:
                errors.append("%d of %d: %s" % (good, n, h.worst(mine, 2)))
            h.check("javascript-%s-%s" % (version, case), errors)


def check_texts(name):
    """Lines where the text of a script is no plain string, and where many scripts are new."""
    program = os.path.join(os.path.dirname(SOURCE), "texts.js")
    wanted = {
        "joined": ["top (text.js:10)", "leaf (text.js:4)"],
        "cut": ["top (text.js:10)", "leaf (text.js:4)"],
        "many": ["step%d (<anonymous>:3)" % i for i in range(12, 0, -1)],
    }
    for version, node in nodes():
        started = [(h.start([node, program, way, str(SECONDS + 60)]), None) for way in wanted]
        time.sleep(1)  # for compilers
        stacks, _ = record_all(started, ["-F", "199", "--lines"])
        for way, want in wanted.items():
            mine = [s for s in stacks if s.comm == way and any("leaf (" in f for f in s.frames)]
            good = [s for s in mine if [f for f in s.frames if f in want] == want]
            errors = []
            if h.total(mine) < 10 or h.total(good) < 0.95 * h.total(mine):
                errors.append("%d of %d: %s" %
                              (h.total(good), h.total(mine), h.worst(mine, 2)))
            h.check("javascript-%s-text-%s" % (version, way), errors)


def check_reused(name):
    """Memory of optimised code is used again: what was found at a pc is not believed then.

    Some are mixed without compilers, too: a SharedFunctionInfo can replace one that has the same
    address and the same pointers.
    """
    path = os.path.join(os.path.dirname(SOURCE), "reuse.js")
    for version, node in nodes():
        p = h.start([node, "--expose-gc", path, str(SECONDS + 60)])
        stacks, _ = record_all([(p, None)], ["-F", "499"])
        good = bad = 0
        for s in stacks:
            found = [m for m in (re.match(r"(top|mid|leaf)_(\d+) ", f) for f in s.frames) if m]
            if len(set(m[2] for m in found)) > 1:
                bad += s.count
            elif [m[1] for m in found] == ["top", "mid", "leaf"]:
                good += s.count
        errors = []
        if good < 10 or bad > 0.06 * good:
            errors.append("%d are right, %d mixed: %s" % (good, bad, h.worst(stacks, 3)))
        h.check("javascript-%s-reused" % version, errors)


def check_worker(name):
    """A worker thread has an isolate of its own."""
    for version, node in nodes():
        stacks, stats, chain = record_case(node, "worker")
        h.check("javascript-%s-worker" % version, judge(stacks, stats, chain))


def check_offcpu(name):
    """Blocked time under its chain."""
    for version, node in nodes():
        stacks, stats, chain = record_case(node, "wait", tool="offcpu")
        mine = [s for s in stacks if "block" in frames_of(s)]
        bad = [s for s in mine if frames_of(s) != chain]
        errors = []
        if h.total(mine) < 0.8e6 * SECONDS or bad:
            errors.append("%d us, wrong: %s; all: %s" % (h.total(mine), h.worst(bad, 2),
                                                        h.worst(stacks, 3)))
        h.check("javascript-%s-offcpu" % version, errors)


def check_native(name):
    """With --native, each function's machine code is before its frame; else nothing is between."""
    for version, node in nodes():
        errors = []
        for option, step in (([], 1), (["--native"], 2)):
            stacks, stats, chain = record_case(node, "closures", option)
            errors += judge(stacks, stats, chain)
            for s in stacks:
                at = [i for i, f in enumerate(h.user_frames(s)) if FRAME.match(f)]
                if [b - a for a, b in zip(at, at[1:])] != [step] * (len(chain) - 1):
                    errors.append("%s: %s" % (option, h.worst([s], 1)))
        # A sample in the prologue of the leaf
        h.check("javascript-%s-native" % version, errors if len(errors) > 1 else [])


def check_outputs(name):
    """The same frames in JSON."""
    version, node = nodes()[0]
    p, chain = start_case(node, "sort")
    path = h.tmpfile("javascript.json")
    subprocess.run([h.SFBPF, "record", "-p", str(p.pid), "-o", path, "1"], check=True,
                   capture_output=True)
    with open(path) as f:
        stacks = json.load(f)["stacks"]
    frames = [f for s in stacks for f in s["frames"] if f["kind"] == "javascript"]
    files = {f["name"]: f.get("file") for f in frames}
    errors = []
    if files.get("compare (chains.js)") != SOURCE or files.get("sort (native)"):
        errors.append("files: %s" % files)
    if not all(f["module"] == "[javascript]" for f in frames):
        errors.append("modules: %s" % frames[:2])
    h.check("javascript-outputs", errors)


h.run_checks([
    check_chains, check_compilers, check_inlined, check_lines, check_bytecode_lines,
    check_frameless, check_texts, check_reused, check_worker, check_offcpu, check_native,
    check_outputs
])
