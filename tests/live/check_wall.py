#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf record --wall` on a program that knows where its time went (tests/programs/wall.c): each
microsecond of a thread is there once, under what the thread did, in all formats.
"""

import json
import os
import subprocess
import sys
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


h.run_checks([check_wall, check_wall_exact, check_wall_formats])
