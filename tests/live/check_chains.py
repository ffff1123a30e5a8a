#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Records the programs of tests/programs, several at a time and system-wide, and compares with
chains.txt.

check_chains.py [CASE...]    FREQ, SECONDS, BATCH and MIN_SAMPLES come from the environment
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import namedtuple

import harness as h

CHAINS = os.path.join(h.TOP, "tests", "programs", "chains.txt")
FREQ = int(os.environ.get("FREQ", "999"))
SECONDS = int(os.environ.get("SECONDS", "3"))
BATCH = int(os.environ.get("BATCH", "10"))
MIN_SAMPLES = int(os.environ.get("MIN_SAMPLES", "100"))

X = r"0x[0-9a-f]+"
L = r"\[libc(-2\.[0-9]+)?\.so(\.6)?\+" + X + r"\]"
MACROS = [
    ("%S", r"_start;(__libc_start_main[^;]*|%L);(__libc_start_call_main|%L)"),
    ("%T", r"((__GI_)?(__)?clone3?|%L);(start_thread|%L)"),
    ("%R", r"(__restore_rt|__kernel_rt_sigreturn|%L)"),
    ("%G", r"(__GI_)?_*"),
    ("%C", r"_*(internal_)?syscall_cancel(_arch)?"),    # glibc 2.41
    ("%L", L),
    ("%X", X),
    ("%A", r"(\([^;]*\))?( const)?( \[clone [^;]*\])?"),
]

Case = namedtuple("Case", "name program how flag args min stack")


def expand(text):
    text = text.replace(" ", "")
    text = re.sub(r"%H\((\w+)\)", r"\1_hot(;\1_mid(;\1_leaf)?|;\1_leaf)?", text)
    text = re.sub(r"%M\((\w+)\)", r"\1_mid(;\1_leaf)?", text)
    for name, value in MACROS:
        text = text.replace(name, value)
    return re.compile(text)


def read_cases(path=CHAINS):
    cases = []
    with open(path) as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            name, program, how, args, least, stack = line.strip().split(None, 5)
            how, _, flag = how.partition(",")
            cases.append(Case(name, program, how, flag, [] if args == "-" else args.split(","),
                              float(least), expand(stack)))
    return cases


def launch(case, seconds):
    """Starts the case's program so that its process is called like the case."""
    path = h.program(case.program)
    args = [str(seconds)] + case.args
    env = dict(os.environ, PROG_COMM=case.name)
    own = h.tmpfile("d-" + case.name)
    if case.how == "run":
        return h.start([h.link_program(case.program, case.name)] + args)
    if case.how == "memfd":
        return h.start([h.program("memfdexec"), path] + args, env=env)
    if case.how == "deleted":
        p = h.start([h.copy_program(case.program, case.name)] + args)
        h.wait_busy(p)
        os.unlink(h.tmpfile(case.name))
        return p
    if case.how == "chroot":
        os.makedirs(own, exist_ok=True)
        shutil.copy(path, os.path.join(own, "prog"))
        return h.start(["chroot", own, "/prog"] + args, env=env)
    if case.how == "mntns":
        common = h.tmpfile("common")
        open(common, "a").close()
        return h.start(["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift && exec "$@"',
                        "sh", path, common] + args, env=env)
    raise ValueError("unknown HOW " + case.how)


def judge(case, stacks):
    mine = [s for s in stacks if s.comm == case.name]
    bad = []
    for s in mine:
        frames = list(s.frames)
        while case.flag != "kernel" and frames and frames[-1].endswith("_[k]"):
            frames.pop()
        if not case.stack.fullmatch(";".join(frames)):
            bad.append(s)
    n = h.total(mine)
    if n < MIN_SAMPLES:
        return h.fail(case.name, "%d samples, at least %d expected" % (n, MIN_SAMPLES))
    if case.flag == "first":
        new = h.total(s for s in bad if h.reason(s) == "not_loaded")
        excused = min(new, FREQ // 5)
        n -= excused
        share = 1 - (h.total(bad) - excused) / n
    else:
        share = 1 - h.total(bad) / n
    if share < case.min:
        return h.fail(
            case.name,
            "%.2f %% of %d samples have the chain; others: %s" % (100 * share, n, h.worst(bad)))
    return h.ok(case.name)


def run_batch(cases):
    running = []
    for c in cases:
        try:
            p = launch(c, SECONDS + 60)
        except h.Skip as e:
            h.skip(c.name, str(e))
            continue
        running.append((c, p))
    for c, p in list(running):
        if not h.wait_busy(p):
            running.remove((c, p))
            code = p.poll()
            if code == 77:
                h.skip(c.name, "the program says that it cannot run here")
            else:
                h.fail(c.name, "the program does not run (%s)" % code)
    if not running:
        return
    try:
        stacks, stats = h.record(["-F", str(FREQ)], SECONDS)
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        for c, _ in running:
            h.fail(c.name, str(e))
        return
    finally:
        h.stop_all()
    for c, _ in running:
        judge(c, stacks)
    errors = h.stats_errors(stats, stacks)
    if errors:
        h.fail("account-of-" + cases[0].name, "; ".join(errors))


def main():
    cases = [c for c in read_cases() if not sys.argv[1:] or c.name in sys.argv[1:]]
    began = time.monotonic()
    for i in range(0, len(cases), BATCH):
        h.attempt(run_batch, cases[i:i + BATCH])
    h.note("%d chains in %.0f s" % (len(cases), time.monotonic() - began))
    sys.exit(h.exit_status())


if __name__ == "__main__":
    main()
