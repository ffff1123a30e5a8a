#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Perl, on programs that know their own chain (tests/programs/lang/perl).

check_perl.py [CHECK...]    PERLS: interpreters, by default Debian's; SECONDS of a recording; CASES.
An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import json
import os
import re
import shutil
import subprocess

import harness as h

SECONDS = float(os.environ.get("SECONDS", "2"))
PERLS = os.environ.get("PERLS", "/usr/bin/perl").split()
SOURCES = os.path.join(h.TOP, "tests/programs/lang/perl")
FRAME = re.compile(r"^(.*) \(([^()]+\.p[lm]|eval)(?::(\d+))?\)$")
CASES = os.environ.get(
    "CASES", "plain rec60 rec300 closures sortblock sortsub sortanon map first reduce methods "
    "autoload destroy tie overload text evalblock evaltext require regex subst signal warn die "
    "goto lexical renamed freeze fork thread begin end match numbers md5").split()
AT_ONCE = 9  # programs in a recording
os.environ["LC_ALL"] = "C"  # other roots have no locales

# Of hot.pl: which sub calls which
HOT = {
    "main": {"fib", "numbers", "blocks", "search", "folded", "text", "code", "objects", "caught"},
    "main::fib": {"fib"},
    "main::numbers": {"compare"},
    "main::compare": {"mix"},
    "main::blocks": {"mix"},
    "main::search": {"__ANON__"},
    "main::folded": {"__ANON__"},
    "main::__ANON__": {"mix"},
    "main::text": {"mix"},
    "main::code": {"mix"},
    "main::objects": {"Node::new", "Node::plus", "Node::DESTROY"},
    "main::caught": {"mix"},
    "Node::plus": {"Node::get"},
    "Node::get": {"mix"},
    "Node::DESTROY": {"mix"},
}


class Perl:
    def __init__(self, entry):
        self.name, _, where = entry.rpartition("=")
        self.root, _, self.path = where.rpartition(":")
        if not os.access(self.root + self.path, os.X_OK):
            raise h.Skip("no %s" % self.path)
        self.name = self.name or os.path.basename(os.path.realpath(self.path))
        self.dir = "/tmp/sfbpf-perl" if self.root else h.tmpfile("perl")
        shutil.copytree(SOURCES, self.root + self.dir, dirs_exist_ok=True)

    def command(self, *args, name=None):
        path = self.path
        if name:  # a link gives the process its name
            path = os.path.join(self.dir, name)
            if not os.path.lexists(self.root + path):
                os.symlink(self.path, self.root + path)
        return (["chroot", self.root] if self.root else []) + [path] + list(args)

    def start(self, script, *args, name=None):
        """The program when it has reached its leaf, and the chain that it printed."""
        p = h.start(self.command(os.path.join(self.dir, script), *args, name=name),
                    stdout=subprocess.PIPE)
        line = p.stdout.readline().decode()
        if not line.startswith("CHAIN "):
            raise ValueError("%s %s: no chain: %r" % (script, args, line))
        return p, [FRAME.match(f).groups() for f in line[6:].rstrip("\n").split(";")]


def perls():
    return [Perl(entry) for entry in PERLS]


def language_frames(stack):
    """(name, file, line) of the frames of Perl, root first."""
    return [m.groups() for m in map(FRAME.match, h.user_frames(stack)) if m]


def rooted(stacks):
    roots = (["_start"], ["clone3"], ["__clone3"], ["__clone"], ["clone"])
    return h.total([s for s in stacks if h.user_frames(s)[:1] in roots])


def judge(stacks, want, least, shares=None):
    bad = [s for s in stacks if [f[:2] for f in language_frames(s)] != want]
    n = h.total(stacks)
    errors = []
    if shares is not None:
        shares += [n, h.total(bad), n - rooted(stacks)]
    if n < 10:
        errors.append("%d samples" % n)
    if h.total(bad) > (1 - least) * n:
        errors.append("%d of %d have another chain than %s: %s" % (
            h.total(bad), n, ";".join(f[0] for f in want)[-300:], h.worst(bad, 2, 600)))
    if rooted(stacks) < 0.97 * n:
        errors.append("%d of %d at their root: %s" % (rooted(stacks), n, h.worst(stacks, 2, 600)))
    return errors


def account(stats, least=0.95):
    perl = stats["languages"]["perl"]
    if perl["complete"] < least * perl["stacks"] or perl["unnamed"] > 0.02 * perl["frames"]:
        return ["account: %s" % json.dumps(perl)]
    return []


def record_cases(perl, cases):
    """Records the cases together: stacks and chain of each, and the account."""
    running = {}
    try:
        for case in cases:
            # comm has 15 bytes
            p, chain = perl.start("chains.pl", case, "200", name="p-" + case)
            running[case] = (p, [f[:2] for f in chain])
        pids = ",".join(str(pid) for p, _ in running.values() for pid in h.family(p.pid))
        stacks, stats = h.Recording(["-p", pids, "-F", "199"], SECONDS).finish()
    finally:
        for p, _ in running.values():
            for pid in h.family(p.pid):
                if pid != p.pid:
                    os.kill(pid, 9)
            h.stop(p)
    return {
        case: ([s for s in stacks if s.comm == "p-" + case], chain)
        for case, (_, chain) in running.items()
    }, stats


def check_chains(name):
    """Names and files, root to leaf, in each way that Perl calls Perl."""
    for perl in perls():
        shares = []
        for i in range(0, len(CASES), AT_ONCE):
            found, stats = record_cases(perl, CASES[i:i + AT_ONCE])
            for case, (stacks, want) in found.items():
                h.check("perl-%s-%s" % (perl.name, case), judge(stacks, want, 0.95, shares))
            h.check("perl-%s-account-%d" % (perl.name, i), account(stats))
        h.note("%s: of %d samples %d have another chain, %d do not reach the root" %
               (perl.name, sum(shares[::3]), sum(shares[1::3]), sum(shares[2::3])))


def check_hot(name):
    """Subs that call each other all the time: each frame's caller is one that calls it."""
    calls = {a: {f if "::" in f else "main::" + f for f in b} for a, b in HOT.items()}
    for perl in perls():
        p, _ = perl.start("hot.pl", "200")
        try:
            stacks, stats = h.Recording(["-p", str(p.pid), "-F", "499"], SECONDS).finish()
        finally:
            h.stop(p)
        n, bad = h.total(stacks), []
        for s in stacks:
            names = [f[0] for f in language_frames(s)]
            if names[:1] != ["main"] or any(
                    b not in calls.get(a, ()) for a, b in zip(names, names[1:])):
                bad.append(s)
        errors = account(stats)
        seen = {f[0] for s in stacks for f in language_frames(s)}
        if not {"main::fib", "main::compare", "main::__ANON__", "Node::plus"} <= seen:
            errors.append("seen: %s" % seen)
        if n < 50 or h.total(bad) > 0.05 * n:
            errors.append("%d of %d wrong: %s" % (h.total(bad), n, h.worst(bad, 3, 600)))
        if rooted(stacks) < 0.97 * n:
            errors.append("%d of %d at their root" % (rooted(stacks), n))
        loops = [s for s in stacks if "Perl_runops_standard" in s.frames]
        if h.total(loops) > 0.02 * n:
            errors.append("%d of %d with a loop: %s" % (h.total(loops), n, h.worst(loops, 2)))
        h.note("%s: %d of %d wrong, %d rooted, %d with a loop" %
               (perl.name, h.total(bad), n, rooted(stacks), h.total(loops)))
        h.check("perl-%s-hot" % perl.name, errors)


def check_lines(name):
    """The line of each caller's call, and the leaf's within its loop."""
    with open(os.path.join(SOURCES, "chains.pl")) as f:
        source = f.read().split("\n")
    spin = source.index("sub spin {") + 1
    for perl in perls():
        p, _ = perl.start("chains.pl", "rec60", "100")
        try:
            stacks, _ = h.Recording(["-p", str(p.pid), "--lines", "-F", "199"], 1.5).finish()
        finally:
            h.stop(p)
        bad = []
        for s in stacks:
            frames = language_frames(s)
            texts = [source[int(f[2]) - 1] for f in frames if f[2]]
            if len(frames) != 63 or len(texts) != 63 or "$run->()" not in texts[0] or \
                    "recurse(60)" not in texts[1] or \
                    any("recurse($n - 1)" not in t for t in texts[2:61]) or \
                    "spin()" not in texts[61] or \
                    int(frames[62][2]) not in range(spin, spin + 11):
                bad.append(s)
        errors = []
        if h.total(stacks) < 10 or h.total(bad) > 0.05 * h.total(stacks):
            errors.append("%d of %d: %s" % (h.total(bad), h.total(stacks), h.worst(bad, 2, 900)))
        h.check("perl-%s-lines" % perl.name, errors)


def check_native(name):
    """--native shows the loops, each outside of its frames; without it none is left."""
    loop = "Perl_runops_standard"
    for perl in perls():
        p, chain = perl.start("chains.pl", "sortsub", "100")
        try:
            hidden, _ = h.Recording(["-p", str(p.pid)], 1).finish()
            shown, _ = h.Recording(["-p", str(p.pid), "--native"], 1).finish()
        finally:
            h.stop(p)
        errors = ["a loop is shown"] if any(loop in s.frames for s in hidden) else []
        if not shown or not all(h.user_frames(s).count(loop) == 2 for s in shown):
            errors.append("--native: %s" % h.worst(shown, 1))
        for s in hidden + shown:
            frames = [f.split(" (")[0] for f in h.user_frames(s)]
            if not ("main::__ANON__" in frames and "Perl_sortsv_flags" in frames and
                    "main::compare" in frames and frames.index("main::__ANON__") <
                    frames.index("Perl_sortsv_flags") < frames.index("main::compare")):
                errors.append("order: %s" % h.worst([s], 1))
                break
        h.check("perl-%s-native" % perl.name, errors)


def check_short(name):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    for perl in perls():
        script = ("for i in $(seq 20); do %s; done" %
                  " ".join(perl.command(os.path.join(perl.dir, "short.pl"))))
        stacks, stats = h.Recording(["-F", "199"], command=["sh", "-c", script]).finish()
        mine = [s for s in stacks if any(f[0] == "main::work" for f in language_frames(s))]
        named = [s for s in mine
                 if [f[0] for f in language_frames(s)][:3] ==
                 ["main", "main::middle", "main::work"]]
        unnamed = [s for s in stacks if "[perl]" in s.frames or "Perl_runops_standard" in s.frames]
        errors = []
        if h.total(mine) < 20 * 8:
            errors.append("%d samples in work()" % h.total(mine))
        if h.total(named) < 0.95 * h.total(mine):
            errors.append("%d of %d named: %s" % (h.total(named), h.total(mine), h.worst(mine, 2)))
        if h.total(unnamed) > 0.1 * h.total(mine):
            errors.append("%d of %d unnamed: %s" %
                          (h.total(unnamed), h.total(mine), h.worst(unnamed, 2)))
        h.check("perl-%s-short" % perl.name, errors)


def check_offcpu(name):
    """Blocked time under its chain."""
    for perl in perls():
        p, chain = perl.start("chains.pl", "sleep", "100")
        try:
            stacks, stats = h.Recording(["-p", str(p.pid)], 1.5, tool="offcpu").finish()
        finally:
            h.stop(p)
        asleep = [s for s in stacks if any("nanosleep" in f for f in s.frames)]
        errors = judge(stacks, [f[:2] for f in chain], 0.95)
        if h.total(asleep) < 0.95 * h.total(stacks):
            errors.append("no sleep: %s" % h.worst(stacks, 2))
        h.check("perl-%s-offcpu" % perl.name, errors)


def check_hostile(name):
    """Contexts that are cyclic, endless or wild pointers, in a program that claims to be a Perl,
    cost less than twice an honest deep stack, and the native stack stays whole.
    """
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc:
        raise h.Skip("no C compiler")
    program = h.tmpfile("hostile")
    subprocess.run([cc, "-O1", "-pthread", "-rdynamic", "-o", program,
                    os.path.join(SOURCES, "hostile.c")], check=True, timeout=60)
    cost, errors = {}, []
    for case in ("deep", "cycle", "called", "nameless", "endless", "wild", "top", "different",
                 "text"):
        p = h.start([program, case, "60"], stdout=subprocess.PIPE)
        if p.stdout.readline() != b"READY\n":
            raise ValueError("%s: not ready" % case)
        stacks, stats = h.Recording(["-p", str(p.pid), "-F", "199"], 1).finish()
        h.stop(p)
        on_cpu, perl = stats["bpf"]["on_cpu"], stats["languages"]["perl"]
        cost[case] = on_cpu["run_ns"] / max(h.total(stacks), 1)
        h.note("%s: %.1f us a sample, %s" % (case, cost[case] / 1000, json.dumps(perl)))
        if h.total(stacks) < 10:
            errors.append("%s: %d samples" % (case, h.total(stacks)))
        if case == "deep" and (perl["complete"] < perl["stacks"] or h.total(
                [s for s in stacks if h.user_frames(s).count("name::name (hostile.pl)") != 899])):
            errors.append("deep: %s %s" % (json.dumps(perl), h.worst(stacks, 1)))
        if case not in ("deep", "different", "text") and perl["complete"]:
            errors.append("%s: complete: %s" % (case, json.dumps(perl)))
        if case not in ("endless", "called") and rooted(stacks) < 0.9 * h.total(stacks):
            errors.append("%s: %s" % (case, h.worst(stacks, 1)))
    for case, c in cost.items():
        honest = "different" if case in ("different", "text") else "deep"
        if c > 2 * cost[honest]:
            errors.append("%s takes %.1f us, an honest stack (%s) %.1f" %
                          (case, c / 1000, honest, cost[honest] / 1000))
    h.check("perl-hostile", errors)


h.run_checks([
    check_chains, check_hot, check_lines, check_native, check_short, check_offcpu, check_hostile
])
