# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of languages share: interpreters, recordings of several programs of
tests/programs/lang at once, and what is wrong with their stacks.
"""

import atexit
import copy
import functools
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter, namedtuple

import harness as h

SOURCES = os.path.join(h.TOP, "tests/programs/lang")
LIFE = "200"  # of a program, in seconds

Hostile = namedtuple("Hostile", "stacks account cost")


def too_many(bad, stacks, share, least=10, what="wrong", spare=0):
    """A complaint about more than that SHARE of bad samples (and SPARE), or less than LEAST."""
    n, k = h.total(stacks), h.total(bad)
    if n >= least and k <= share * n + spare:
        return []
    return ["%d of %d (at least %d) %s: %s" %
            (k, n, least, what, h.worst(bad or stacks, 2, 700))]


def without_line(frame):
    return re.sub(r":\d+\)$", ")", frame)


def first_line(p, word):
    """The program says WORD, and what follows it, when it is at its leaf."""
    line = p.stdout.readline().decode()
    if not line.startswith(word):
        raise ValueError("%s: not at its leaf: %r" % (" ".join(p.args[-3:]), line))
    return line[len(word):].rstrip("\n")


def record(processes, options, seconds, tool="record"):
    """One recording of all these programs and their children; it ends them."""
    try:
        pids = ",".join(str(pid) for p in processes for pid in h.family(p.pid))
        return h.Recording(["-p", pids] + list(options), seconds, tool=tool).finish()
    finally:
        for p in processes:
            h.stop(p)


class Interpreter:
    """PATH, or NAME=ROOT:PATH, which is that at PATH below another root directory."""

    language = ""  # names its programs and its account
    suffix = ""  # of its files
    frame = None  # a frame with a file: name, file, line
    group = ""  # begins the names of checks
    at_once = 9  # programs in a recording
    hz, seconds = 199, 2.0
    warm = 0  # seconds, until compilers have done their work
    exact, complete = 0.95, 0.95  # shares of samples with the whole chain, of stacks in the account
    least, spare = 10, 0  # samples; how many need not reach the root
    has_threads = False  # of its own, which do not run programs

    def __init__(self, entry):
        self.name, _, where = entry.rpartition("=")
        self.root, _, self.path = where.rpartition(":")
        if not os.access(self.root + self.path, os.X_OK):
            raise h.Skip("no %s" % self.path)
        self.name = self.name or os.path.basename(os.path.realpath(self.path))
        self.options = []
        self.shares = Counter()
        # A new directory: a copy would follow links that are there.
        made = tempfile.mkdtemp(prefix="sfbpf-language-", dir=self.root + "/tmp")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        os.chmod(made, 0o755)
        self.links = "/tmp/" + os.path.basename(made)
        self.dir = os.path.join(self.links, "programs")
        shutil.copytree(self.sources(), self.root + self.dir)

    def sources(self):
        return os.path.join(SOURCES, self.language)

    def variant(self, name, options):
        """The same interpreter with these options."""
        other = copy.copy(self)
        other.name, other.options = "%s-%s" % (self.name, name), options
        other.shares = Counter()
        return other

    def file(self, name):
        return os.path.join(self.dir, name)

    def command(self, *args, name=None):
        path = self.path
        if name:  # a link gives the process its name
            path = os.path.join(self.links, name)
            if not os.path.lexists(self.root + path):
                os.symlink(self.path, self.root + path)
        return (["chroot", self.root] if self.root else []) + [path] + self.options + list(args)

    def arguments(self, case):
        """A case of chains, or a file of its own."""
        if case.endswith(self.suffix):
            return [self.file(case), LIFE]
        return [self.file("chains" + self.suffix), case, LIFE]

    def comm(self, case):
        return case.replace("/", "-")[:15]

    def record(self, cases, options=(), hz=None, seconds=None, tool="record"):
        """Records the cases together: case -> (stacks, chain), and the account."""
        started = {
            case: h.start(self.command(*self.arguments(case), name=self.comm(case)),
                          stdout=subprocess.PIPE)
            for case in cases
        }
        chains = {case: first_line(p, "CHAIN ").split(";") for case, p in started.items()}
        time.sleep(self.warm)
        options = ["--by", "process"] + list(options)
        if tool == "record":
            options += ["-F", str(hz or self.hz)]
        stacks, stats = record(started.values(), options, seconds or self.seconds, tool)
        return {
            case: ([s for s in stacks if s.comm == self.comm(case)], chain)
            for case, chain in chains.items()
        }, stats

    def record_case(self, case, options=(), **how):
        """Stacks, chain and account."""
        found, stats = self.record([case], options, **how)
        return found[case] + (stats,)

    def frames(self, stack):
        """Those of the language that have a file, root first."""
        return [f for f in h.user_frames(stack) if self.frame.match(f)]

    def names(self, stack):
        return [self.frame.match(f)[1] for f in self.frames(stack)]

    def line(self, frame):
        return int(self.frame.match(frame)[3] or 0)

    def shown(self, frames, lines):
        """As they are compared. The leaf's line is one of its loop."""
        return [f if lines and i + 1 < len(frames) else without_line(f)
                for i, f in enumerate(frames)]

    def right(self, stack, chain, lines=False):
        return self.shown(self.frames(stack), lines) == self.shown(chain, lines)

    def rooted(self, stack):
        return not h.reason(stack) and "[jit]" not in stack.frames

    def not_rooted(self, stacks, root=0.97):
        """A complaint if less than this share reach their root."""
        return too_many([s for s in stacks if not self.rooted(s)], stacks, 1 - root, self.least,
                        "not from their root", self.spare)

    def judge(self, stacks, chain, exact=None, root=0.97, lines=False):
        """Complaints if the chain, or the way to the root, is missing in too many samples."""
        mine = [s for s in stacks if not self.has_threads or self.names(s)]
        bad = [s for s in mine if not self.right(s, chain, lines)]
        self.shares.update(n=h.total(mine), bad=h.total(bad),
                           astray=h.total([s for s in mine if not self.rooted(s)]))
        return too_many(bad, mine, 1 - (exact or self.exact), self.least,
                        "have another chain than " + ";".join(chain)[-400:]) + \
            self.not_rooted(mine, root)

    def account(self, stats):
        a = stats["languages"][self.language]
        if a["complete"] < self.complete * a["stacks"] or a["unnamed"] > 0.02 * a["frames"]:
            return ["account: %s" % a]
        return []

    def check(self, name, errors):
        h.check("-".join([self.group or self.language, self.name, name]), errors)

    def check_cases(self, cases, account=None, **bounds):
        """Names and files, root to leaf, in each way that the language calls itself. ACCOUNT: the
        name of a check of its own.
        """
        self.shares.clear()
        for first in range(0, len(cases), self.at_once):
            found, stats = self.record(cases[first:first + self.at_once])
            for case, (stacks, chain) in found.items():
                self.check(case.replace("/", "-"), self.judge(stacks, chain, **bounds) +
                           ([] if account else self.account(stats)))
            if account:
                self.check(account.format(first), self.account(stats))
        h.note("%s: of %d samples %d have another chain, %d do not reach the root" %
               (self.name, self.shares["n"], self.shares["bad"], self.shares["astray"]))

    def record_calls(self, program, calls, share, least, **how):
        """Stacks of functions that call each other all the time, the names that were seen, and
        complaints. CALLS: which calls which, from the outermost on.
        """
        stacks, _, stats = self.record_case(program, **how)
        bad, seen = [], set()
        for s in stacks:
            names = self.names(s)
            seen.update(names)
            if names[:1] != list(calls)[:1] or \
                    any(b not in calls.get(a, ()) for a, b in zip(names, names[1:])):
                bad.append(s)
        h.note("%s %s: %d of %d wrong" % (self.name, program, h.total(bad), h.total(stacks)))
        return stacks, seen, self.account(stats) + too_many(bad, stacks, share, least)

    def check_callers(self, case, texts, leaf, span, name="lines"):
        """The line of each caller has its text; the innermost is of the SPAN lines from LEAF on."""
        with open(os.path.join(self.sources(), "chains" + self.suffix)) as f:
            source = f.read().split("\n")
        loop = range(source.index(leaf) + 1, source.index(leaf) + 1 + span)
        stacks, _, _ = self.record_case(case, ["--lines"], seconds=1.5)
        bad = []
        for s in stacks:
            lines = [self.line(f) for f in self.frames(s)]
            if len(lines) != len(texts) + 1 or lines[-1] not in loop or \
                    any(text not in source[line - 1] for text, line in zip(texts, lines)):
                bad.append(s)
        self.check(name, too_many(bad, stacks, 0.05))

    def check_short(self, chain, unnamed, times=20, least=160, comm="", calls=False):
        """Processes of 100 ms, one after the other: they are gone when their names are needed.
        UNNAMED: frames that at most a tenth of the samples (of COMM) have. CALLS: the innermost
        function calls others that have a name.
        """
        script = "for i in $(seq %d); do %s; done" % (
            times, " ".join(self.command(self.file("short" + self.suffix))))
        stacks, _ = h.Recording(["-F", "199"], command=["sh", "-c", script]).finish()
        mine = [s for s in stacks if chain[-1] in self.names(s)]
        bad = [s for s in mine if self.names(s)[:len(chain) if calls else None] != chain or
               unnamed & set(s.frames)]
        all_of_it = [s for s in stacks if s.comm.startswith(comm)] if comm else mine
        self.check("short", too_many(bad, mine, 0.05, least, "have another chain") + too_many(
            [s for s in stacks if unnamed & set(s.frames)], all_of_it, 0.1, least, "unnamed"))


def record_hostile(language, commands, seconds=1):
    """Case -> stacks, the language's account and the us of a sample, of programs that mislead."""
    found = {}
    for case, command in commands.items():
        p = h.start(command, stdout=subprocess.PIPE)
        first_line(p, "READY")
        stacks, stats = record([p], ["-F", "199"], seconds)
        account = stats["languages"][language]
        cost = stats["bpf"]["on_cpu"]["run_ns"] / 1000 / max(h.total(stacks), 1)
        h.note("%s: %.1f us a sample, %s" % (case, cost, account))
        found[case] = Hostile(stacks, account, cost)
    return found


def too_dear(found, honest):
    """Those that cost more than twice as much as an honest stack."""
    return ["%s takes %.1f us, %s %.1f" % (case, x.cost, honest, found[honest].cost)
            for case, x in found.items() if x.cost > 2 * found[honest].cost]


def run_checks(interpreters, checks, others=()):
    """Runs CHECKS with each interpreter, and others alone."""
    def with_each(check):
        @functools.wraps(check)
        def run(_):
            for interpreter in interpreters():
                check(interpreter)
        return run

    h.run_checks([with_each(check) for check in checks] + list(others))
