#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes each place that calls libc or libbpf see a failure, one run each, under AddressSanitizer,
UBSan and LeakSanitizer.

check_faults.py [--points N] [WORKLOAD...]      N runs a workload, spread over its places (default
6; 0: all of them)

A run may succeed (what failed was not needed) or end with 1, 3 or 4 and a line on stderr; it must
not crash, hang, leak, leave the terminal changed or leave a half-written file under the name it was
asked for. build-san/fault/sfbpf: see inject.c.
"""

import argparse
import concurrent.futures
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.path.join(TOP, "build-san", "fault", "sfbpf")
SANITIZERS = {
    "ASAN_OPTIONS": "exitcode=99:detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1", "LSAN_OPTIONS": "exitcode=98"
}
LIMIT_S = 30
TERMINAL = "terminal" # a workload that starts with this runs in a pseudo terminal and gets a "q"

FILE = "/usr/lib/x86_64-linux-gnu/libm.so.6"
WORKLOADS = {
    "record": ["record", "-o", "out.folded", "--stats", "stats.json", "200ms"],
    "pprof": ["record", "-o", "out.pb.gz", "100ms"],
    "html": ["record", "-o", "out.html", "100ms"],
    "json": ["record", "-o", "out.json", "100ms"],
    "command": ["record", "-o", "out.folded", "--", "/bin/sh", "-c", ":"],
    "offcpu": ["offcpu", "--wakers", "-o", "out.folded", "200ms"],
    "batch": ["top", "-b", "-n", "1", "-d", "200ms"],
    "top": [TERMINAL, "top", "-d", "200ms"],
    "doctor": ["doctor"],
    "inspect": ["inspect", FILE],
    "rows": ["inspect", "--rows", FILE],
    "compare": ["inspect", "--compare", FILE],
    "report": ["report", "in.folded", "-o", "out.html"],
    "diff": ["diff", "in.folded", "in.json", "-o", "out.html"],
}


def run_plain(argv, env, cwd):
    with open(os.path.join(cwd, "stderr"), "w+") as err:
        try:
            rc = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                                # doctor's lines are its output
                                stdout=err if "doctor" in argv else subprocess.DEVNULL, stderr=err,
                                timeout=LIMIT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            rc = None
        err.seek(0)
        return rc, err.read(), []


def drain(fd, seconds):
    """What the terminal prints in this time, or until it is closed."""
    text, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if not select.select([fd], [], [], left)[0]:
            break
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        text += got
    return text


def run_terminal(argv, env, cwd):
    """As run_plain, but in a pseudo terminal; also tells whether its modes are what they were."""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    with open(os.path.join(cwd, "stderr"), "w+") as err:
        child = subprocess.Popen(argv, env=dict(env, TERM="xterm-256color"), cwd=cwd, stdin=slave,
                                 stdout=slave, stderr=err, start_new_session=True)
        drain(master, 1.2)
        os.write(master, b"q")
        end = time.monotonic() + LIMIT_S
        while child.poll() is None and time.monotonic() < end:
            drain(master, 0.1)
        rc = child.poll()
        if rc is None:
            child.kill()
            child.wait()
        wrong = [] if termios.tcgetattr(slave) == before else ["the terminal is left changed"]
        os.close(master)
        os.close(slave)
        err.seek(0)
        return rc, err.read(), wrong


def complaints(rc, err, cwd):
    said = [line for line in err.splitlines() if not line.startswith("inject:")]
    if rc is None:
        return ["does not end"]
    if rc < 0:
        return ["killed by signal %d" % -rc]
    # What bpftool 7.5 generates hands libbpf a skeleton that is made in part; libbpf 1.5 reads it.
    if re.search(r"in bpf_object__detach_skeleton .*\n.*\n.*__create_skeleton", err):
        return []
    if rc in (98, 99):
        found = [line for line in said if re.search(r"ERROR:|runtime error|SUMMARY", line)]
        return ["sanitizer: " + (found[0] if found else said[-1] if said else "?")]
    # A child of it has no exit status that is seen, but our standard error.
    found = [line for line in said if re.search(r"ERROR: \w+Sanitizer|runtime error:", line)]
    if found:
        return ["sanitizer, in a child: " + found[0]]
    if rc not in (0, 1, 3, 4):
        return ["exit status %d" % rc]
    if rc and not said:
        return ["exit status %d without a word" % rc]
    left = [
        name for name in os.listdir(cwd)
        if name not in ("stderr", "in.folded", "in.json",
                        "stats.json") and not name.startswith("out.")
    ]
    if left:
        return ["leaves %s" % ", ".join(left)]
    if rc == 0 and os.path.exists(os.path.join(cwd, "out.json")):
        try:
            with open(os.path.join(cwd, "out.json")) as f:
                json.load(f)
        except ValueError as why:
            return ["succeeds, but out.json is broken: %s" % why]
    return []


class Bench:
    """A directory for the runs of one workload."""

    def __init__(self, argv, inputs):
        self.terminal = argv[0] == TERMINAL
        self.argv = [SFBPF] + argv[self.terminal:]
        self.inputs = inputs
        self.dir = tempfile.mkdtemp(prefix="sfbpf-fault-")

    def run(self, **env):
        for name in os.listdir(self.dir):
            os.unlink(os.path.join(self.dir, name))
        for name in self.inputs:
            shutil.copy(name, self.dir)
        go = run_terminal if self.terminal else run_plain
        rc, err, wrong = go(self.argv, {**os.environ, **SANITIZERS, **env}, self.dir)
        return rc, err, wrong + complaints(rc, err, self.dir)

    def points(self):
        """Each place's first call, a later one and the one in the middle."""
        log = self.dir + ".sites"
        rc, err, wrong = self.run(FAULT_LOG=log)
        if rc != 0 or wrong:
            raise RuntimeError("without a fault: exit status %s; %s; %s" %
                               (rc, "; ".join(wrong), err[-300:]))
        with open(log) as f:
            sites = [line.split() for line in f]
        os.unlink(log)
        return [("%s:%d" % (at, k), name) for at, count, name in sorted(sites)
                for k in sorted({1, min(2, int(count)), int(count) // 2 or 1})]

    def close(self):
        shutil.rmtree(self.dir)


def spread(points, n):
    """n of them, evenly."""
    return points if not n or n >= len(points) else [points[i * len(points) // n] for i in range(n)]


def check(name, n, inputs):
    bench = Bench(WORKLOADS[name], inputs)
    bad, hit = [], 0
    try:
        points = bench.points()
        chosen = spread(points, n)
        for at, call in chosen:
            rc, err, wrong = bench.run(FAULT_AT=at)
            hit += "inject:" in err
            bad += ["%s %s: %s" % (call, at, w) for w in wrong]
    except RuntimeError as why:
        bad = [str(why)]
        chosen = points = []
    finally:
        bench.close()
    lines = ["# %s: %d of %d places and times, %d reached" % (name, len(chosen), len(points), hit)]
    lines += ["# " + line for line in bad[1:]]
    lines.append("FAIL faults-%s: %s" % (name, bad[0]) if bad else "ok faults-" + name)
    print("\n".join(lines), flush=True)
    return not bad


def make_inputs(where):
    """A folded file and a JSON file for report and diff."""
    folded = os.path.join(where, "in.folded")
    with open(folded, "w") as f:
        for i in range(50):
            f.write("prog;main;work_%d;leaf %d\n" % (i % 7, i + 1))
    out = os.path.join(where, "in.json")
    subprocess.run([os.path.join(TOP, "build", "sfbpf"), "record", "-o", out, "100ms"], check=True,
                   stderr=subprocess.DEVNULL)
    return [folded, out]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--points", type=int, default=6)
    p.add_argument("workload", nargs="*", choices=[[], *WORKLOADS], default=[])
    args = p.parse_args()
    if os.geteuid() != 0:
        print("SKIP faults: not root")
        return 0
    with tempfile.TemporaryDirectory() as where:
        inputs = make_inputs(where)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            good = list(pool.map(lambda name: check(name, args.points, inputs),
                                 args.workload or WORKLOADS))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
