#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python's frames, on programs that print their own chain (tests/programs/lang/python).

check_languages.py [CHECK...]    PYTHONS: interpreters, by default Debian's; SECONDS of a recording;
CASES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import json
import os
import re
import subprocess

import harness as h
import language

CASES = os.environ.get(
    "CASES",
    "plain rec60 rec300 sorted resub qsort classes closure generator throw genexpr async thread "
    "except native middle eval fork").split()
LOOP = "_PyEval_EvalFrameDefault"


class Python(language.Interpreter):
    language = "python"
    suffix = ".py"
    frame = re.compile(r"^(.*) \(([^()]+\.py|<[^()]+>)(?::(\d+))?\)$")
    group = "languages"
    hz, seconds = 499, float(os.environ.get("SECONDS", "2"))


def pythons():
    return [Python(entry) for entry in os.environ.get("PYTHONS", "/usr/bin/python3").split()]


def check_chains(python):
    """Names and files, root to leaf, in each way that Python calls Python."""
    python.check_cases([case for case in CASES if case != "rec300"])
    if "rec300" in CASES:
        stacks, chain, stats = python.record_case("rec300")
        if all("[incomplete:depth]" in s.frames for s in stacks):
            h.skip("languages-%s-rec300" % python.name, "with its frames of C too deep")
        else:
            python.check("rec300", python.judge(stacks, chain) + python.account(stats))


def check_greenlet(python):
    """Their stacks end where they begin: what lies above belongs to other greenlets."""
    if subprocess.run(python.command("-c", "import greenlet"), capture_output=True).returncode:
        raise h.Skip("%s has no greenlet" % python.name)
    stacks, chain, stats = python.record_case("greenlet")
    first = [s for s in stacks if h.user_frames(s)[0].split("::")[-1] != "inner_bootstrap" and
             "_greenlet" not in h.user_frames(s)[0]]
    python.check("greenlet", python.judge(stacks, chain, root=1) + python.account(stats) +
                 language.too_many(first, stacks, 0.02, what="begin elsewhere"))


def check_perf(python):
    """-X perf puts run-time code around each function, which is not shown a second time."""
    said = subprocess.run(python.command("-X", "perf", "-c", "import sys; print(sys.version_info "
                                         ">= (3, 12) and sys.is_stack_trampoline_active())"),
                          capture_output=True, text=True).stdout
    if said.strip() != "True":
        h.note("%s has no trampolines for perf" % python.name)
        return
    python = python.variant("perf", ["-X", "perf"])
    for case in ("sorted", "plain"):
        stacks, chain, stats = python.record_case(case)
        twice = [s for s in stacks if any("py::" in f for f in s.frames)]
        python.check(case, python.judge(stacks, chain, root=0.99) + python.account(stats) +
                     language.too_many(twice, stacks, 0.1, what="with a name twice"))


def check_subinterpreters(python):
    """The frames of the interpreter that runs and of the one that called it, in 3.11."""
    if python.name != "python3.11":
        return
    python.check_cases(["subinterpreter", "subthread"])


def check_lines(python):
    """Each caller's line, and the leaf's within its loop."""
    found, stats = python.record(["sorted", "classes", "generator", "async"], ["--lines"])
    for case, (stacks, chain) in found.items():
        first = python.line(chain[-1])
        loop = range(first + 1, first + 5)
        leaves = [(s, python.frames(s)[-1]) for s in stacks if python.frames(s)]
        out = [s for s, f in leaves if python.names(s)[-1] == "spin" and python.line(f) not in loop]
        python.check("lines-" + case, python.judge(stacks, chain, lines=True) +
                     python.account(stats) +
                     language.too_many(out, [s for s, _ in leaves], 0.05, what="not in the loop"))


def check_native(python):
    """--native shows the loops as well; without it no loop is left."""
    hidden = python.record_case("sorted")[0]
    errors = ["%s is shown" % LOOP] if any(LOOP in s.frames for s in hidden) else []
    stacks, chain, stats = python.record_case("sorted", ["--native"])
    errors += python.judge(stacks, chain) + python.account(stats)
    if not any(LOOP in s.frames for s in stacks):   # stripped: two frames without a name
        right = [s for s in hidden if python.right(s, chain)]
        more = [len(h.user_frames(s)) for s in stacks if python.right(s, chain)]
        if min(more) < min(len(h.user_frames(s)) for s in right) + 2:
            errors.append("--native shows no loops: %s" % h.worst(stacks, 1))
    elif not all(h.user_frames(s).count(LOOP) >= 2 for s in stacks):
        errors.append("--native without %s: %s" % (LOOP, h.worst(stacks, 1)))
    python.check("native", errors)


def check_short(python):
    """60 processes of 100 ms, one after the other: they are gone when their names are needed."""
    python.check_short(["<module>", "main", "middle", "work"], {"[python]", LOOP}, 60, 120,
                       "python")


def check_redefined(python):
    """Code whose memory is reused keeps its own name: the two functions of a pair have one number.
    """
    pairs, wrong = [], []
    for s in python.record_case("redefined")[0]:
        names = python.names(s)
        outer = [n[6:] for n in names if n.startswith("outer_")]
        inner = [n[6:] for n in names if n.startswith("inner_")]
        if outer and inner:
            pairs.append(s)
            wrong += [s] if outer != inner else []
    python.check("redefined", language.too_many(wrong, pairs, 0.02, 50))


def check_offcpu(python):
    """Blocked time under its chain."""
    stacks, chain, stats = python.record_case("sleep", tool="offcpu")
    python.check("offcpu", python.judge(stacks, chain) + python.account(stats))


def check_outputs(name):
    """The same frames in JSON, pprof, html and text, and in what report makes of them."""
    python = pythons()[0]
    p = h.start(python.command(*python.arguments("sorted")), stdout=subprocess.PIPE)
    want = python.shown(language.first_line(p, "CHAIN ").split(";"), False)
    errors = []
    for suffix in ("json", "pb.gz", "html", "txt"):
        path = h.tmpfile("languages." + suffix)
        subprocess.run(
            [h.SFBPF, "record", "-p", str(p.pid), "-o", path, "1"], check=True, capture_output=True)
        if suffix == "json":
            with open(path) as f:
                stacks = json.load(f)["stacks"]
            frames = [f for s in stacks for f in s["frames"] if f["kind"] == "python"]
            if not frames or not all(f["module"] == "[python]" and f["file"] for f in frames):
                errors.append("json: %s" % frames[:2])
        if suffix == "html":
            with open(path) as f:
                text = f.read()
            errors += ["html without %s" % w for w in want if "<" not in w and w not in text]
        else:
            out = subprocess.run([h.SFBPF, "report", path, "--format", "folded", "-o", "-"],
                                 check=True, capture_output=True, text=True).stdout
            if not any([f for f in line.rpartition(" ")[0].split(";") if Python.frame.match(f)] ==
                       want for line in out.splitlines()):
                errors.append("%s: %s" % (suffix, out[:500]))
    h.check("languages-outputs", errors)


def check_late(name):
    """An interpreter that a program starts during the run: its stacks have native frames until the
    programs that walk Python's are loaded, and all of them are whole. A shell may start anything,
    so nothing is late below a shell.
    """
    python, errors = pythons()[0], []
    # Neither text tells what will run.
    starters = {"perl": ["perl", "-e", 'sleep 1; exec split " ", $ENV{LATE}'],
                "shell": ["sh", "-c", "exec $LATE"]}
    for tool, starter, case, least in (("record", "perl", "sorted", 0.5),
                                       ("record", "shell", "sorted", 0.95),
                                       ("offcpu", "perl", "sleep", 0.5)):
        p = h.start(python.command(*python.arguments(case)), stdout=subprocess.PIPE)
        chain = language.first_line(p, "CHAIN ").split(";")
        h.stop(p)
        late = python.command(python.file("chains.py"), case, "4")
        r = h.Recording(["--by", "process"] + ["-F", "199"] * (tool == "record"), tool=tool,
                        command=starters[starter], env=dict(os.environ, LATE=" ".join(late)))
        stacks = [s for s in r.finish()[0] if LOOP in s.frames or python.names(s)]
        named = [s for s in stacks if python.right(s, chain)]
        native = [s for s in stacks if not python.names(s)]
        short = [s for s in stacks if h.user_frames(s)[0] != "_start"]
        what = "%s, %s" % (tool, starter)
        errors += ["%s: %s" % (what, e) for e in language.too_many(short, stacks, 0.05)]
        if h.total(named) < least * h.total(stacks):
            errors.append("%s: %d of %d are named: %s" % (what, h.total(named), h.total(stacks),
                                                          h.worst(native)))
        h.note("%s: %.2f named, %.2f native" % (what, h.total(named) / max(h.total(stacks), 1),
                                                h.total(native) / max(h.total(stacks), 1)))
    h.check("languages-late", errors)


def check_hostile(name):
    """A file that looks like an interpreter, and frames that are cyclic, endless or wild pointers.
    """
    paths = [p for p in ("/usr/bin/python3",) if os.path.exists(p)]
    if not paths:
        raise h.Skip("no interpreter")
    python = Python(paths[0])
    if python.name != "python3.11":
        raise h.Skip("its frames are those of CPython 3.11, and this is %s" % python.name)
    found = language.record_hostile("python", {
        case: python.command(python.file("hostile.py"), case, "60")
        for case in ("rec1000", "cycle", "wild", "endless")
    }, python.seconds)
    h.check("languages-hostile", language.too_dear(found, "rec1000"))


if __name__ == "__main__":
    language.run_checks(pythons, [check_chains, check_greenlet, check_perf,
                                  check_subinterpreters, check_lines,
                                  check_native, check_short, check_redefined, check_offcpu],
                        [check_outputs, check_late, check_hostile])
