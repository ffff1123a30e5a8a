#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf record --wall` on a program that knows where its time went (tests/programs/wall.c): each
microsecond of a thread is there once, under what the thread did, in all formats.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))

import flame_page  # noqa: E402
import harness as h  # noqa: E402

# What the program does by itself; a loaded machine adds to [runnable], and to what ends by a
# wake-up of the first thread.
PARTS = {"[running]": 1.5, "[blocked: futex]": 2, "[blocked: sleep]": 1, "[blocked: pipe]": 0.5}
_program = []
_stolen = [0.0]     # seconds that the host took from this machine meanwhile


def program():
    if not _program:
        h.program("wall")
        _program.append(h.link_program("wall", "wall%x" % os.getpid()))
    return _program[0]


def recorded(path, options=()):
    """The file's text, and the worker's life in seconds."""
    before = h.stolen_us()
    p = subprocess.run([h.SFBPF, "record", "--wall", "-F", "499", "-o", path] + list(options) +
                       ["--", program()], capture_output=True, check=True, timeout=120)
    _stolen[0] = (h.stolen_us() - before) / 1e6
    with open(path, errors="replace") as f:
        return f.read(), float(p.stdout)


def lines(text):
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        yield stack.split(";"), int(count) / 1e6


def sums(text, comm, at):
    found = Counter()
    for stack, s in lines(text):
        if stack[0] == comm:
            found[stack[at]] += s
    return found


def sum_errors(found, life, what=""):
    errors = []
    whole = sum(found.values())
    if abs(whole - life) > 0.02 * life:
        errors.append("%sthe worker's time is %.3f s, its life %.3f s" % (what, whole, life))
    for note, want in PARTS.items():
        if not want - 0.06 <= found[note] <= want + 0.06 + _stolen[0] + 0.2 * (life - 5):
            errors.append("%s%s is %.3f s, not %g s" % (what, note, found[note], want))
    return errors


def check_wall(name):
    """Parts and sum of a thread's life; the state at the leaf or at the root."""
    text, life = recorded(h.tmpfile("wall.folded"))
    errors = sum_errors(sums(text, "wall-worker", -1), life)
    idle = sums(text, "wall-idle", -1)
    if idle["[idle: epoll]"] < 0.95 * life:
        errors.append("the idle thread: %s" % idle)
    text, life = recorded(h.tmpfile("wall-root.folded"), ["--state-at", "root"])
    errors += sum_errors(sums(text, "wall-worker", 1), life, "at the root: ")
    h.check(name, errors)


def check_wall_exact(name):
    """Few samples, but the running time is exact, also of threads that no sample met."""
    text, life = recorded(h.tmpfile("wall-exact.folded"), ["--exact", "-F", "9"])
    found = sums(text, "wall-worker", -1)
    errors = sum_errors(found, life)
    if abs(found["[running]"] - 1.5) > 0.005 + _stolen[0] or \
            abs(sum(found.values()) - life) > 0.002 * life:
        errors.append("%.4f s running, %.4f s in all, of %.4f s" %
                      (found["[running]"], sum(found.values()), life))
    h.check(name, errors)


def check_wall_formats(name):
    """JSON, `report` of it and the HTML have the sums of the folded lines."""
    errors = []
    path = h.tmpfile("wall.json")
    text, life = recorded(path)
    found = Counter()
    for s in json.loads(text)["stacks"]:
        if s["comm"] == "wall-worker":
            found[s["wall"]] += s["count"] / 1e6
    errors += sum_errors(found, life, "JSON: ")
    again = h.tmpfile("wall-again.folded")
    subprocess.run([h.SFBPF, "report", path, "-o", again], check=True, timeout=60)
    with open(again, errors="replace") as f:
        errors += sum_errors(sums(f.read(), "wall-worker", -1), life, "report: ")
    path = h.tmpfile("wall.html")
    text, life = recorded(path)
    whole, unit = flame_page.total(path)
    if unit != "nanoseconds" or abs(whole / 1e9 - 3 * life) > 0.05 * 3 * life:
        errors.append("HTML: %d %s of three threads that live for %.3f s" % (whole, unit, life))
    h.check(name, errors)


def notes_of(argv, done=None, below=""):
    """Seconds by note of a program that has started, of the stacks with the frame BELOW; calls
    done() after it was recorded.
    """
    p = h.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
    time.sleep(2)
    path = h.tmpfile("notes.folded")
    subprocess.run([h.SFBPF, "record", "--wall", "-q", "-p", str(p.pid), "-o", path, "1.5"],
                   check=True, timeout=60)
    if done:
        done()
    h.stop(p)
    found = Counter()
    with open(path, errors="replace") as f:
        for stack, s in lines(f.read()):
            if not below or below in stack:
                found[stack[-1]] += s
    return found


def mostly(found, note, share=0.9):
    whole = sum(found.values())
    return [] if whole and found[note] >= share * whole else ["%s: %s" % (note, dict(found))]


PYTHON = "import ctypes, os, signal, time\n"
RCU = PYTHON + "c = ctypes.CDLL(None)\nwhile True: c.syscall(%d, 1, 0, 0)"


def check_wall_kernel(name):
    """Waits that are no input or output, and waits for a signal."""
    errors = []
    for text, note in ((RCU % (324 if os.uname().machine == "x86_64" else 283), "[blocked: other]"),
                       (PYTHON + "signal.pause()", "[idle: signal]"),
                       (PYTHON + "signal.sigwait([signal.SIGUSR1])", "[idle: signal]")):
        errors += mostly(notes_of(["/usr/bin/python3", "-c", text]), note, 0.8)
    h.check(name, errors)


def write(path, text):
    if os.path.exists(path):
        with open(path, "w") as f:
            f.write(text)


def check_wall_frozen(name):
    """A frozen cgroup, of either version."""
    errors = []
    tried = 0
    for base, knob, on, off in (("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
                                ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
                                ("/sys/fs/cgroup", "cgroup.freeze", "1", "0")):
        d = os.path.join(base, "sfbpf-frozen-%d" % os.getpid())
        try:
            os.mkdir(d)
        except OSError:
            continue
        knob = os.path.join(d, knob)
        try:
            if not os.path.exists(knob):
                continue
            tried += 1
            script = "(sleep 1; echo %s >%s) & echo $$ >%s/cgroup.procs; while :; do :; done"
            errors += mostly(notes_of(["bash", "-c", script % (on, knob, d)],
                                      lambda: write(knob, off)), "[blocked: stopped]")
        finally:
            write(knob, off)
            for _ in range(50):
                try:
                    os.rmdir(d)
                    break
                except OSError:
                    time.sleep(0.1)
    if not tried:
        raise h.Skip("no cgroup can be frozen here")
    h.check(name, errors)


def check_wall_runtimes(name):
    """Threads of runtimes that wait for work are idle, and a thread that sleeps sleeps."""
    errors = []
    java = h.tmpfile("Sleeps.java")
    with open(java, "w") as f:
        f.write("class Sleeps { public static void main(String[] a) throws Exception "
                "{ Thread.sleep(100000); } }")
    for tool, argv, sleeps in (("java", [java], 1), ("node", ["-e", "setInterval(()=>{},1e6)"], 0),
                               ("erl", ["-noshell", "-eval", "timer:sleep(100000)"], 0)):
        if not shutil.which(tool):
            h.note("no %s" % tool)
            continue
        found = notes_of([tool] + argv)
        busy = {k: v for k, v in found.items() if k.startswith("[blocked") and v > 0.05}
        asleep = busy.pop("[blocked: sleep]", 0)
        if busy or asleep > 1.6 * sleeps or asleep < 1.3 * sleeps or sum(found.values()) < 3:
            errors.append("%s: %s" % (tool, dict(found)))
    h.check(name, errors)


POOL = """import socket, threading, time
from concurrent.futures import ThreadPoolExecutor
a, b = socket.socketpair()
b.settimeout(1000)
lock = threading.Lock()
lock.acquire()
pool = ThreadPoolExecutor(1)
pool.submit(lambda: %s)
threading.Event().wait()
"""


def check_wall_pool(name):
    """A worker of a pool without a task is idle, one that waits inside of a task is not."""
    errors = []
    for task, note in (("None", "[idle: work queue]"), ("a.recv(1)", "[blocked: socket]"),
                       ("b.recv(1)", "[blocked: poll]"), ("time.sleep(1000)", "[blocked: sleep]"),
                       ("lock.acquire()", "[blocked: futex]")):
        found = notes_of(["/usr/bin/python3", "-c", POOL % task], below="_worker (thread.py)")
        errors += ["%s: %s" % (task, e) for e in mostly(found, note)]
    h.check(name, errors)


PEER = PYTHON + """import socket
a, b = socket.socketpair()
a.settimeout(1000)
a.recv(1)
"""
CHILD = PYTHON + """import subprocess as s
s.Popen(["sleep", "9"], stdin=s.PIPE, stdout=s.PIPE, stderr=s.PIPE).communicate()
"""
# bash itself calls select()
READ = "coproc sleep 9; read -t 8 -u ${COPROC[0]} x"


def check_wall_poll(name):
    """poll() and select() are idle in loops, and not where one waits for an answer."""
    errors = []
    for argv, note in ((["/usr/bin/python3", "-m", "http.server", "0"], "[idle: poll]"),
                       (["bash", "-c", READ], "[idle: poll]"),
                       (["/usr/bin/python3", "-c", PEER], "[blocked: poll]"),
                       (["/usr/bin/python3", "-c", CHILD], "[blocked: poll]")):
        errors += ["%s: %s" % (argv[-1], e) for e in mostly(notes_of(argv), note)]
    h.check(name, errors)


h.run_checks([check_wall, check_wall_exact, check_wall_formats, check_wall_kernel,
              check_wall_frozen, check_wall_runtimes, check_wall_pool, check_wall_poll])
