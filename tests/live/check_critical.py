#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf record --wall --critical` of programs that know what their elapsed time was spent on
(tests/programs/path.c).
"""

import os
import re
import subprocess

import harness as h

TRIES = 3
# mode: frames that link the main thread with what it waits for
LINKS = {
    "mutex": ["[lock held by holder]"], "rwlock": ["[lock held by holder]"],
    "cond": ["[woken by answerer]"], "sem": ["[woken by answerer]"],
    "pipe": ["[woken by server]"], "unix": ["[woken by server]"], "tcp": ["[woken by server]"],
    "pipeline": ["[woken by first]", "[woken by second]"], "pool": ["[woken by slow]"],
    "child": ["[woken by child]"], "timer": ["[timer]"],
    "chain": ["[woken by middle]", "[lock held by sleeper]", "[timer]"],
}


def numbers_of(text):
    """What the program says: elapsed, {part: us}."""
    elapsed = re.search(r"^elapsed (\d+)$", text, re.M)
    parts = {m.group(1): int(m.group(2)) for m in re.finditer(r"^part (\S+) (\d+)$", text, re.M)}
    return int(elapsed.group(1)), {name: us for name, us in parts.items() if us}


def path_of(argv):
    out = h.tmpfile("path.folded")
    p = subprocess.run([h.SFBPF, "record", "--wall", "--critical", "-F", "997", "-o", out, *argv],
                       capture_output=True, text=True, timeout=120, check=False)
    if p.returncode:
        raise ValueError("exit code %d: %s" % (p.returncode, p.stderr.strip()))
    with open(out) as f:
        stacks = [(s.split(";"), int(n)) for s, n in (line.rsplit(" ", 1) for line in f)]
    return stacks, p.stderr


def part(stacks, name):
    return sum(n for s, n in stacks if name in s)


def compare(stacks, elapsed, parts, links):
    """What is wrong. While a thread of the path waits for a CPU, the one that it will wait for may
    run ahead, and what ran ahead is not on the path.
    """
    errors = []
    whole = sum(n for _, n in stacks)
    ahead = part(stacks, "[runnable]")
    if abs(whole - elapsed) > .01 * elapsed + 10000:
        errors.append("the path has %d us of %d" % (whole, elapsed))
    for name, us in parts.items():
        found = sum(n for s, n in stacks if name in s and s[-1] != "[runnable]")
        if not us - ahead - .02 * elapsed <= found <= us + .02 * elapsed:
            errors.append("%s: %d us, the program says %d (of %d; %d runnable)" %
                          (name, found, us, elapsed, ahead))
    for frame in links:
        if part(stacks, frame) < .1 * (whole - ahead):
            errors.append("%s: %.3f of the path" % (frame, part(stacks, frame) / whole))
    return errors


def heaviest(stacks):
    return [";".join(s)[-200:] + " %d" % n for s, n in sorted(stacks, key=lambda x: -x[1])[:4]]


def check_modes(name):
    program = h.copy_program("path", "path")
    for mode, links in LINKS.items():
        errors = ["never tried"]
        for _ in range(TRIES):
            stacks, said = path_of(["--", program, mode, "300"])
            errors = compare(stacks, *numbers_of(said), links)
            if not errors:
                break
        h.check("%s-%s" % (name, mode), errors and errors + heaviest(stacks))


def check_running(name):
    """A process that runs already, for some seconds; a thread of it."""
    program = h.copy_program("path", "pathrun")
    p = h.start([program, "pipeline", "1000000"], stderr=subprocess.DEVNULL)
    h.wait_busy(p)
    errors = []
    for option in ("-p", "-t"):
        stacks, said = path_of([option, str(p.pid), "2"])
        whole = sum(n for _, n in stacks)
        if abs(whole - 2000000) > 20000:
            errors.append("%s: %d us of 2 s" % (option, whole))
        for function, share in (("own_work", .2), ("first_stage", .3), ("second_stage", .5)):
            ran = [(s, n) for s, n in stacks if s[-1] != "[runnable]"]
            found = part(ran, function) / max(1, sum(n for _, n in ran))
            if abs(found - share) > .05:
                errors.append("%s: %s has %.3f of the running time" % (option, function, found))
        if "are missing" in said:
            errors.append(said)
    h.stop(p)
    h.check(name, errors)


def check_formats(name):
    program = h.copy_program("path", "path")
    html, svg, pprof = (h.tmpfile("path." + s) for s in ("html", "svg", "pb.gz"))
    p = subprocess.run([h.SFBPF, "record", "-q", "--wall", "--critical", "--format", "text", "-o",
                        "-", "-o", html, "-o", svg, "-o", pprof, "--", program, "mutex", "50"],
                       capture_output=True, text=True, timeout=60, check=False)
    errors = [] if not p.returncode else ["exit code %d: %s" % (p.returncode, p.stderr)]
    if "other_work" not in p.stdout:
        errors.append("the text has no other_work")
    for path in (html, svg):
        with open(path) as f:
            if "[lock held by holder]" not in f.read():
                errors.append("%s has no [lock held by holder]" % os.path.basename(path))
    if not os.path.getsize(pprof):
        errors.append("pprof is empty")
    h.check(name, errors)


def check_usage(name):
    errors = []
    for argv, words in ((["--critical", "--", "true"], "--critical needs --wall"),
                        (["--wall", "--critical", "1"], "one thread"),
                        (["--wall", "--critical", "-p", "1", "--", "true"], "one thread"),
                        (["--wall", "--critical", "-p", "1,2", "1"], "one thread"),
                        (["--wall", "--critical", "-u", "0", "-p", "1", "1"], "cut the path"),
                        (["--wall", "--critical", "-m", "1ms", "--", "true"], "excludes -m"),
                        (["--wall", "--critical", "-o", "x.sfb", "--", "true"],
                         "not recording")):
        p = subprocess.run([h.SFBPF, "record", *argv], capture_output=True, text=True, timeout=30,
                           cwd=h.tmpdir(), check=False)
        if p.returncode != 2 or words not in p.stderr:
            errors.append("%s: exit code %d, %s" % (argv, p.returncode, p.stderr.strip()))
    h.check(name, errors)


h.run_checks([check_modes, check_running, check_formats, check_usage])
