#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of languages, on programs that print their own chain (tests/programs/lang).

check_languages.py [CHECK...]    PYTHONS: interpreters, by default Debian's; SECONDS for each case;
CASES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import harness as h

SECONDS = float(os.environ.get("SECONDS", "2"))
PYTHONS = os.environ.get("PYTHONS", "/usr/bin/python3").split()
SOURCES = os.path.join(h.TOP, "tests/programs/lang/python")
FRAME = re.compile(r"^(.*) \(([^()]+\.py|<[^()]+>)(?::(\d+))?\)$")
CASES = os.environ.get(
    "CASES",
    "plain rec60 rec300 sorted resub qsort classes closure generator throw genexpr async thread "
    "except native middle eval fork").split()


class Python:
    def __init__(self, entry):
        self.name, _, where = entry.rpartition("=")
        self.root, _, self.path = where.rpartition(":")
        self.name = self.name or os.path.basename(os.path.realpath(self.path))
        if not os.access(self.root + self.path, os.X_OK):
            raise h.Skip("no %s" % self.path)

    def command(self, script, *args):
        source = os.path.join(SOURCES, script)
        if self.root:
            shutil.copy(source, self.root + "/tmp/" + script)
            return ["chroot", self.root, self.path, "/tmp/" + script] + list(args)
        return [self.path, source] + list(args)


def pythons():
    return [Python(entry) for entry in PYTHONS]


def language_frames(stack):
    """(name, file, line) of the frames of languages, root first."""
    return [m.groups() for m in map(FRAME.match, h.user_frames(stack)) if m]


def start_case(python, case, seconds):
    """The program when it has reached its leaf, and the chain that it printed."""
    p = h.start(python.command("chains.py", case, str(seconds)), stdout=subprocess.PIPE)
    line = p.stdout.readline().decode()
    if not line.startswith("CHAIN "):
        raise ValueError("%s: no chain: %r" % (case, line))
    return p, [FRAME.match(f).groups() for f in line[6:].rstrip("\n").split(";")]


def record_case(python, case, options=(), tool="record"):
    p, chain = start_case(python, case, SECONDS + 60)
    try:
        pids = ",".join(map(str, h.family(p.pid)))
        stacks, stats = h.Recording(["-p", pids] + list(options), SECONDS, tool=tool).finish()
    finally:
        h.stop(p)
    return stacks, stats, chain


def judge(stacks, stats, chain, least=0.95, lines=False):
    """Complaints if the chain is not exact in that share of the samples."""
    key = slice(0, 3) if lines else slice(0, 2)
    want = [f[key] for f in chain]
    # The line of the leaf is that of its loop.
    if lines:
        want[-1] = want[-1][:2]
    bad = []
    for s in stacks:
        got = [f[key] for f in language_frames(s)]
        if lines and got:
            got[-1] = got[-1][:2]
        if got != want:
            bad.append(s)
    n = h.total(stacks)
    errors = []
    if n < 10:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - least) * n:
        errors.append("%d of %d have another chain than %s: %s" % (
            h.total(bad), n, ";".join(f[0] for f in want)[-300:], h.worst(bad, 2, 600)))
    python = stats["languages"]["python"]
    if python["complete"] < 0.95 * python["stacks"] or python["unnamed"] > 0.02 * python["frames"]:
        errors.append("account: %s" % json.dumps(python))
    return errors


def check_chains(name):
    """Names and files, root to leaf, in each way that Python calls Python."""
    for python in pythons():
        for case in CASES:
            try:
                stacks, stats, chain = record_case(python, case)
                if case == "fork":
                    stacks = [s for s in stacks if any(f[0] == "spin" for f in language_frames(s))]
                if case == "rec300" and all("[incomplete:depth]" in s.frames for s in stacks):
                    h.skip("languages-%s-rec300" % python.name, "with its frames of C too deep")
                    continue
                h.check("languages-%s-%s" % (python.name, case), judge(stacks, stats, chain))
            except ValueError as e:
                h.fail("languages-%s-%s" % (python.name, case), str(e))


def check_lines(name):
    """Each caller's line, and the leaf's within its loop."""
    for python in pythons():
        for case in ("sorted", "classes", "generator", "async"):
            stacks, stats, chain = record_case(python, case, ["--lines"])
            errors = judge(stacks, stats, chain, lines=True)
            loop = range(int(chain[-1][2]) + 1, int(chain[-1][2]) + 5)
            leaf = [
                language_frames(s)[-1] for s in stacks for _ in range(s.count) if language_frames(s)
            ]
            out = [f for f in leaf if f[0] == "spin" and not (f[2] and int(f[2]) in loop)]
            if len(out) > 0.05 * len(leaf):
                errors.append("%d of %d leaves outside lines %s: %s" %
                              (len(out), len(leaf), loop, out[:3]))
            h.check("languages-%s-lines-%s" % (python.name, case), errors)


def check_native(name):
    """--native shows the loops as well; without it no loop is left."""
    for python in pythons():
        loop = "_PyEval_EvalFrameDefault"
        stacks, stats, chain = record_case(python, "sorted")
        errors = ["%s is shown" % loop] if any(loop in s.frames for s in stacks) else []
        stacks, stats, chain = record_case(python, "sorted", ["--native"])
        errors += judge(stacks, stats, chain)
        if not all(h.user_frames(s).count(loop) >= 2 for s in stacks):
            errors.append("--native without %s: %s" % (loop, h.worst(stacks, 1)))
        h.check("languages-%s-native" % python.name, errors)


def check_short(name):
    """60 processes of 100 ms, one after the other: they are gone when their names are needed."""
    for python in pythons():
        script = ("for i in $(seq 60); do %s; done" % " ".join(python.command("short.py")))
        if python.root:
            shutil.copy(os.path.join(SOURCES, "short.py"), python.root + "/tmp/")
        stacks, stats = h.Recording(["-F", "199"], command=["sh", "-c", script]).finish()
        mine = [s for s in stacks if any(f[0] == "work" for f in language_frames(s))]
        named = [s for s in mine if [f[0] for f in language_frames(s)] ==
                 ["<module>", "main", "middle", "work"]]
        interpreters = [s for s in stacks if s.comm.startswith("python")]
        unnamed = [
            s for s in stacks if "[python]" in s.frames or "_PyEval_EvalFrameDefault" in s.frames
        ]
        errors = []
        if h.total(mine) < 60 * 2:
            errors.append("%d samples in work()" % h.total(mine))
        if h.total(named) < 0.95 * h.total(mine):
            errors.append("%d of %d named: %s" % (h.total(named), h.total(mine), h.worst(mine, 2)))
        if h.total(unnamed) > 0.1 * h.total(interpreters):
            errors.append("%d of %d unnamed: %s" %
                          (h.total(unnamed), h.total(interpreters), h.worst(unnamed, 2)))
        h.check("languages-%s-short" % python.name, errors)


def check_redefined(name):
    """Code whose memory is reused keeps its own name: the two functions of a pair have one number.
    """
    for python in pythons():
        stacks, stats, _ = record_case(python, "redefined", ["-F", "499"])
        pairs = wrong = 0
        for s in stacks:
            names = [f[0] for f in language_frames(s)]
            outer = [n[6:] for n in names if n.startswith("outer_")]
            inner = [n[6:] for n in names if n.startswith("inner_")]
            if outer and inner:
                pairs += s.count
                wrong += s.count * (outer != inner)
        errors = []
        if pairs < 50 or wrong > 0.02 * pairs:
            errors.append("%d of %d pairs wrong" % (wrong, pairs))
        h.check("languages-%s-redefined" % python.name, errors)


def check_offcpu(name):
    """Blocked time under its chain."""
    for python in pythons():
        stacks, stats, chain = record_case(python, "sleep", tool="offcpu")
        h.check("languages-%s-offcpu" % python.name, judge(stacks, stats, chain))


def check_outputs(name):
    """The same frames in JSON, pprof, html and text, and in what report makes of them."""
    python = pythons()[0]
    p, chain = start_case(python, "sorted", 60)
    errors = []
    want = ["%s (%s)" % f[:2] for f in chain]
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
            if not any([f for f in line.rpartition(" ")[0].split(";") if FRAME.match(f)] == want
                       for line in out.splitlines()):
                errors.append("%s: %s" % (suffix, out[:500]))
    h.check("languages-outputs", errors)


def check_hostile(name):
    """A file that looks like an interpreter, and frames that are cyclic, endless or wild pointers.
    """
    libpython = [p for p in ("/usr/bin/python3.11", "/usr/bin/python3") if os.path.exists(p)]
    if not libpython:
        raise h.Skip("no interpreter")
    python = Python(libpython[0])
    honest, _, _ = None, None, None
    cost = {}
    for case in ("rec1000", "cycle", "wild", "endless"):
        p = h.start(python.command("hostile.py", case, "60"), stdout=subprocess.PIPE)
        if p.stdout.readline() != b"READY\n":
            raise ValueError("%s: not ready" % case)
        stacks, stats = h.Recording(["-p", str(p.pid), "-F", "199"], SECONDS).finish()
        h.stop(p)
        on_cpu = stats["bpf"]["on_cpu"]
        cost[case] = on_cpu["run_ns"] / max(on_cpu["run_cnt"], 1)
        h.note("%s: %.1f us a sample, %s" %
               (case, cost[case] / 1000, json.dumps(stats["languages"]["python"])))
    errors = [
        "%s takes %.1f us, an honest deep stack %.1f" % (case, c / 1000, cost["rec1000"] / 1000)
        for case, c in cost.items() if c > 2 * cost["rec1000"]
    ]
    h.check("languages-hostile", errors)


if __name__ == "__main__":
    h.run_checks([
        check_chains, check_lines, check_native, check_short, check_redefined, check_offcpu,
        check_outputs, check_hostile
    ])
