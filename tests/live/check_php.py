#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of PHP, on programs that know their own chain (tests/programs/lang/php).

check_php.py [CHECK...]    PHPS: interpreters, by default Debian's; SECONDS of a recording; CASES;
MODES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import json
import os
import re
import shutil
import subprocess

import harness as h

SECONDS = float(os.environ.get("SECONDS", "3"))
PHPS = os.environ.get("PHPS", "/usr/bin/php").split()
SOURCES = os.path.join(h.TOP, "tests/programs/lang/php")
FRAME = re.compile(r"^(.*) \(([^()]+\.php)(?::(\d+))?\)$")
CASES = os.environ.get(
    "CASES", "plain rec60 rec300 deep60 methods closures usort array_map generator delegate tree "
    "release getter fiber values include eval except call destruct anonymous preg zlib").split()
# Those that a JIT changes
JIT_CASES = "deep60 methods usort array_map generator tree release fiber except zlib".split()
OPCACHE = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1"]
JIT = OPCACHE + ["-d", "opcache.jit_buffer_size=64M", "-d"]
MODES = {
    "plain": [],
    "opcache": OPCACHE,
    "tracing": JIT + ["opcache.jit=tracing"],
    "function": JIT + ["opcache.jit=function"]
}
AT_ONCE = 9  # programs in a recording

# Of hot.php: which function calls which
HOT = {
    "{main}": {"hot"},
    "hot": {"fib", "numbers", "compare", "{closure}", "Node::__construct", "Node::__call",
            "Node::__callStatic"},
    "fib": {"fib"},
    "numbers": {"mix"},
    "compare": set(),
    "{closure}": {"Node::__construct", "Node::get"},
    "Node::__construct": set(),
    "Node::get": {"Node::twice"},
    "Node::twice": {"mix"},
    "Node::__call": set(),
    "Node::__callStatic": set(),
    "mix": set()
}
# The same of resume.php
RESUME = {
    "{main}": {"consume"},
    "consume": {"counted", "mapped", "total"},
    "mapped": {"delegated"},
    "delegated": {"counted"},
    "counted": set(),
    "total": set()
}


class Php:
    def __init__(self, entry):
        self.name, _, where = entry.rpartition("=")
        self.root, _, self.path = where.rpartition(":")
        if not os.access(self.root + self.path, os.X_OK):
            raise h.Skip("no %s" % self.path)
        self.name = self.name or os.path.basename(os.path.realpath(self.path))
        self.dir = "/tmp/sfbpf-php" if self.root else h.tmpfile("php")
        shutil.copytree(SOURCES, self.root + self.dir, dirs_exist_ok=True)
        try:
            self.version = int(self.run(OPCACHE, "-r",
                                        "exit(!function_exists('opcache_reset'));") and
                               self.run([], "-r", "echo PHP_VERSION_ID;"))
            self.opcache = True
        except subprocess.CalledProcessError:
            self.version = int(self.run([], "-r", "echo PHP_VERSION_ID;"))
            self.opcache = False

    def command(self, options, *args, name=None):
        path = self.path
        if name:  # a link gives the process its name
            path = os.path.join(self.dir, name)
            if not os.path.lexists(self.root + path):
                os.symlink(os.path.realpath(self.path) if not self.root else self.path,
                           self.root + path)
        argv = [path, "-n"] + options + list(args)
        return ["chroot", self.root] + argv if self.root else argv

    def run(self, options, *args):
        command = self.command(options, *args)
        r = subprocess.run(command, check=True, capture_output=True, timeout=60)
        return r.stdout.decode() or "1"

    def modes(self):
        wanted = os.environ.get("MODES", "plain opcache tracing function").split()
        return [m for m in wanted if m == "plain" or
                (self.opcache and (m == "opcache" or self.version >= 80000))]

    def start(self, mode, script, *args, name=None):
        """The program when it has reached its leaf, and the chain that it printed."""
        p = h.start(self.command(MODES[mode], os.path.join(self.dir, script), *args, name=name),
                    stdout=subprocess.PIPE)
        line = p.stdout.readline().decode()
        if not line.startswith("CHAIN "):
            raise ValueError("%s %s: no chain: %r" % (script, args, line))
        return p, [FRAME.match(f).groups() for f in line[6:].rstrip("\n").split(";")]


def phps():
    return [Php(entry) for entry in PHPS]


def language_frames(stack):
    """(name, file, line) of the frames of PHP that have a file, root first."""
    return [m.groups() for m in map(FRAME.match, h.user_frames(stack)) if m]


def rooted(stacks):
    """Those of a fiber begin in make_fcontext."""
    return h.total([s for s in stacks if h.user_frames(s)[0] in ("_start", "make_fcontext")])


def judge(stacks, want, least, root, shares=None):
    bad = [s for s in stacks if [f[:2] for f in language_frames(s)] != want]
    n = h.total(stacks)
    errors = []
    if shares is not None and n:
        shares += [n, h.total(bad), n - rooted(stacks)]
    if n < 10:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - least) * n:
        errors.append("%d of %d have another chain than %s: %s" % (
            h.total(bad), n, ";".join(f[0] for f in want)[-300:], h.worst(bad, 2, 600)))
    if rooted(stacks) < root * n:
        errors.append("%d of %d at their root: %s" % (rooted(stacks), n, h.worst(stacks, 2, 600)))
    return errors


def account(stats, least=0.95):
    php = stats["languages"]["php"]
    if php["complete"] < least * php["stacks"] or php["unnamed"] > 0.02 * php["frames"]:
        return ["account: %s" % json.dumps(php)]
    return []


def record_cases(php, mode, cases):
    """Records the cases together: stacks and chain of each, and the account."""
    running = {}
    for case in cases:
        # comm has 15 bytes
        p, chain = php.start(mode, "chains.php", case, "200", name="p-" + case)
        running[case] = (p, [f[:2] for f in chain])
    try:
        pids = ",".join(str(p.pid) for p, _ in running.values())
        stacks, stats = h.Recording(["-p", pids, "-F", "199"], SECONDS).finish()
    finally:
        for p, _ in running.values():
            h.stop(p)
    return {
        case: ([s for s in stacks if s.comm == "p-" + case], chain)
        for case, (_, chain) in running.items()
    }, stats


def check_chains(name):
    """Names and files, root to leaf, in each way that PHP calls PHP."""
    for php in phps():
        for mode in php.modes():
            jit = mode in ("tracing", "function")
            cases = [c for c in CASES if c in JIT_CASES] if jit else CASES
            cases = cases if mode != "opcache" else cases[:AT_ONCE]
            # Others mark the generator as running before that, and 7.4 has no fibers.
            cases = [c for c in cases if c != "values" or 80000 <= php.version < 80400]
            cases = [c for c in cases if c != "fiber" or php.version >= 80100]
            shares = []
            for i in range(0, len(cases), AT_ONCE):
                found, stats = record_cases(php, mode, cases[i:i + AT_ONCE])
                for case, (stacks, want) in found.items():
                    # PCRE's own JIT code has no unwind tables.
                    root = 0 if case == "preg" else 0.97
                    h.check("php-%s-%s-%s" % (php.name, mode, case),
                            judge(stacks, want, 0.90 if jit else 0.95, root,
                                  shares if root else []))
                h.check("php-%s-%s-account-%d" % (php.name, mode, i), account(stats))
            h.note("%s %s: of %d samples %d have another chain, %d do not reach the root" %
                   (php.name, mode, sum(shares[::3]), sum(shares[1::3]), sum(shares[2::3])))


def record_program(php, mode, program, hz):
    """Its stacks and account, in half of SECONDS."""
    p, _ = php.start(mode, program, "200")
    try:
        return h.Recording(["-p", str(p.pid), "-F", str(hz)], SECONDS / 2).finish()
    finally:
        h.stop(p)


def against(calls, stacks):
    """The stacks that do not begin with {main}, or with a call that the program never makes."""
    bad = []
    for s in stacks:
        names = [f[0] for f in language_frames(s)]
        if names[:1] != ["{main}"] or any(
                b not in calls.get(a, ()) for a, b in zip(names, names[1:])):
            bad.append(s)
    return bad


def check_resume(name):
    """Generators that only yield: they have their callers also right before and after they run."""
    for php in phps():
        for mode in php.modes():
            stacks, stats = record_program(php, mode, "resume.php", 997)
            n, bad = h.total(stacks), against(RESUME, stacks)
            errors = account(stats)
            seen = {f[0] for s in stacks for f in language_frames(s)}
            if seen != set(RESUME):
                errors.append("seen: %s" % seen)
            if n < 100 or h.total(bad) > 0.01 * n:
                errors.append("%d of %d wrong: %s" % (h.total(bad), n, h.worst(bad, 3, 600)))
            h.note("%s %s: %d of %d wrong" % (php.name, mode, h.total(bad), n))
            h.check("php-%s-%s-resume" % (php.name, mode), errors)


def check_hot(name):
    """Functions that call each other all the time: each frame's caller is one that calls it."""
    for php in phps():
        for mode in php.modes():
            stacks, stats = record_program(php, mode, "hot.php", 499)
            n, bad = h.total(stacks), against(HOT, stacks)
            errors = account(stats)
            seen = {f[0] for s in stacks for f in language_frames(s)}
            # The name that __call stands for is not a function's.
            if not {"fib", "compare", "numbers", "mix"} <= seen or "Node::nothing" in seen or \
                    "Node::nowhere" in seen:
                errors.append("seen: %s" % seen)
            if n < 50 or h.total(bad) > (0.10 if "opcache" != mode != "plain" else 0.05) * n:
                errors.append("%d of %d wrong: %s" % (h.total(bad), n, h.worst(bad, 3, 600)))
            if rooted(stacks) < 0.97 * n:
                errors.append("%d of %d at their root" % (rooted(stacks), n))
            h.note("%s %s: %d of %d wrong, %d rooted" %
                   (php.name, mode, h.total(bad), n, rooted(stacks)))
            h.check("php-%s-%s-hot" % (php.name, mode), errors)


def check_lines(name):
    """The line of each caller's call, and the leaf's within its loop."""
    for php in phps():
        with open(os.path.join(SOURCES, "chains.php")) as f:
            source = f.read().split("\n")
        spin = source.index("function spin(): void") + 1
        p, _ = php.start("plain", "chains.php", "deep60", "100")
        try:
            stacks, _ = h.Recording(["-p", str(p.pid), "--lines", "-F", "199"], 1.5).finish()
        finally:
            h.stop(p)
        bad = []
        for s in stacks:
            frames = language_frames(s)
            texts = [source[int(f[2]) - 1] for f in frames if f[2]]
            if len(frames) != 62 or len(texts) != 62 or "deep(60)" not in texts[0] or any(
                    "deep($n - 1)" not in t for t in texts[1:60]) or "spin()" not in texts[60] or \
                    int(frames[61][2]) not in range(spin, spin + 12):
                bad.append(s)
        errors = []
        if h.total(stacks) < 10 or h.total(bad) > 0.05 * h.total(stacks):
            errors.append("%d of %d: %s" % (h.total(bad), h.total(stacks), h.worst(bad, 2, 600)))
        h.check("php-%s-lines" % php.name, errors)


def check_native(name):
    """--native shows the loops; without it none is left. Functions in C have their names."""
    for php in phps():
        p, chain = php.start("plain", "chains.php", "usort", "100")
        try:
            hidden, _ = h.Recording(["-p", str(p.pid)], 1).finish()
            shown, _ = h.Recording(["-p", str(p.pid), "--native"], 1).finish()
        finally:
            h.stop(p)
        errors = ["execute_ex is shown"] if any("execute_ex" in s.frames for s in hidden) else []
        if not all(h.user_frames(s).count("execute_ex") == 2 for s in shown):
            errors.append("--native: %s" % h.worst(shown, 1))
        if not all("usort" in s.frames for s in hidden + shown):
            errors.append("no usort: %s" % h.worst(hidden, 1))
        h.check("php-%s-native" % php.name, errors)


def check_short(name):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    for php in phps():
        script = ("for i in $(seq 20); do %s; done" %
                  " ".join(php.command([], os.path.join(php.dir, "short.php"))))
        stacks, stats = h.Recording(["-F", "199"], command=["sh", "-c", script]).finish()
        mine = [s for s in stacks if any(f[0] == "work" for f in language_frames(s))]
        named = [s for s in mine
                 if [f[0] for f in language_frames(s)][:3] == ["{main}", "middle", "work"]]
        unnamed = [s for s in stacks if "[php]" in s.frames or "execute_ex" in s.frames]
        errors = []
        if h.total(mine) < 20 * 8:
            errors.append("%d samples in work()" % h.total(mine))
        if h.total(named) < 0.95 * h.total(mine):
            errors.append("%d of %d named: %s" % (h.total(named), h.total(mine), h.worst(mine, 2)))
        if h.total(unnamed) > 0.1 * h.total(mine):
            errors.append("%d of %d unnamed: %s" %
                          (h.total(unnamed), h.total(mine), h.worst(unnamed, 2)))
        h.check("php-%s-short" % php.name, errors)


def check_offcpu(name):
    """Blocked time under its chain."""
    for php in phps():
        p, chain = php.start("plain", "chains.php", "sleep", "100")
        try:
            stacks, stats = h.Recording(["-p", str(p.pid)], 1.5, tool="offcpu").finish()
        finally:
            h.stop(p)
        asleep = [s for s in stacks if "usleep" in s.frames]
        errors = judge(stacks, [f[:2] for f in chain], 0.95, 0.97)
        if h.total(asleep) < 0.95 * h.total(stacks):
            errors.append("no usleep: %s" % h.worst(stacks, 2))
        h.check("php-%s-offcpu" % php.name, errors)


def check_hostile(name):
    """Frames that are cyclic, endless or wild pointers cost less than twice an honest deep stack,
    and the native stack stays whole.
    """
    php = phps()[0]
    options = ["-d", "extension=ffi", "-d", "ffi.enable=1"]
    try:
        php.run(options, "-r", "exit(!class_exists('FFI'));")
    except subprocess.CalledProcessError:
        raise h.Skip("PHP without FFI")
    cost, errors = {}, []
    for case in ("deep", "cycle", "nameless", "wild", "endless"):
        p = h.start(php.command(options, os.path.join(php.dir, "hostile.php"), case, "60"),
                    stdout=subprocess.PIPE)
        if p.stdout.readline() != b"READY\n":
            raise ValueError("%s: not ready" % case)
        stacks, stats = h.Recording(["-p", str(p.pid), "-F", "199"], 1).finish()
        h.stop(p)
        on_cpu = stats["bpf"]["on_cpu"]
        cost[case] = on_cpu["run_ns"] / max(on_cpu["run_cnt"], 1)
        h.note("%s: %.1f us a sample, %s" %
               (case, cost[case] / 1000, json.dumps(stats["languages"]["php"])))
        if case in ("wild", "nameless") and rooted(stacks) < 0.9 * h.total(stacks):
            errors.append("%s: %s" % (case, h.worst(stacks, 1)))
    errors += [
        "%s takes %.1f us, an honest deep stack %.1f" % (case, c / 1000, cost["deep"] / 1000)
        for case, c in cost.items() if c > 2 * cost["deep"]
    ]
    h.check("php-hostile", errors)


h.run_checks([
    check_chains, check_hot, check_resume, check_lines, check_native, check_short, check_offcpu,
    check_hostile
])
