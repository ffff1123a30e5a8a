#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of Perl, on programs that know their own chain (tests/programs/lang/perl).

check_perl.py [CHECK...]    PERLS: interpreters, by default Debian's; SECONDS of a recording; CASES.
An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import os
import re
import shutil
import subprocess

import harness as h
import language

CASES = os.environ.get(
    "CASES", "plain rec60 rec300 closures sortblock sortsub sortanon map first reduce methods "
    "autoload destroy tie overload text evalblock evaltext evalline require regex subst signal "
    "warn die goto lexical renamed freeze fork thread begin end match numbers md5").split()
LOOP = "Perl_runops_standard"
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


def from_root(stack):
    roots = (["_start"], ["clone3"], ["__clone3"], ["__GI___clone3"], ["__clone"], ["clone"])
    return h.user_frames(stack)[:1] in roots


class Perl(language.Interpreter):
    language = "perl"
    suffix = ".pl"
    frame = re.compile(r"^(.*) \(([^()]+\.p[lm]|eval)(?::(\d+))?\)$")
    seconds = float(os.environ.get("SECONDS", "2"))

    def rooted(self, stack):
        return from_root(stack)


def perls():
    return [Perl(entry) for entry in os.environ.get("PERLS", "/usr/bin/perl").split()]


def check_chains(perl):
    """Names and files, root to leaf, in each way that Perl calls Perl."""
    perl.check_cases(CASES, "account-{}")


def check_hot(perl):
    """Subs that call each other all the time: each frame's caller is one that calls it."""
    calls = {a: {f if "::" in f else "main::" + f for f in b} for a, b in HOT.items()}
    stacks, seen, errors = perl.record_calls("hot.pl", calls, 0.05, 50, hz=499)
    if not {"main::fib", "main::compare", "main::__ANON__", "Node::plus"} <= seen:
        errors.append("seen: %s" % seen)
    loops = [s for s in stacks if LOOP in s.frames]
    perl.check("hot", errors + perl.not_rooted(stacks) +
               language.too_many(loops, stacks, 0.02, what="with a loop"))


def check_lines(perl):
    """The line of each caller's call, and the leaf's within its loop."""
    texts = ["$run->()", "recurse(60)"] + ["recurse($n - 1)"] * 59 + ["spin()"]
    perl.check_callers("rec60", texts, "sub spin {", 11)
    texts = ["$run->()", "branches(3)"] + ["branches($n - 1);"] * 2 + ["spin();"]
    perl.check_callers("branches", texts, "sub spin {", 11, "statements")


def check_coro(perl):
    """Coro's stacks are at their end where libcoro began them."""
    if subprocess.run(perl.command("-MCoro", "-e", "1"), capture_output=True).returncode:
        raise h.Skip("%s has no Coro" % perl.name)
    stacks, chain, stats = perl.record_case("coro")
    first = [s for s in stacks if not h.user_frames(s)[0].startswith("[State.so+")]
    perl.check("coro", perl.judge(stacks, chain, root=0) + perl.account(stats) +
               language.too_many(first, stacks, 0.02, what="begin elsewhere"))


def check_native(perl):
    """--native shows the loops, each outside of its frames; without it none is left."""
    hidden = perl.record_case("sortsub", seconds=1)[0]
    shown = perl.record_case("sortsub", ["--native"], seconds=1)[0]
    errors = ["a loop is shown"] if any(LOOP in s.frames for s in hidden) else []
    if not shown or not all(h.user_frames(s).count(LOOP) == 2 for s in shown):
        errors.append("--native: %s" % h.worst(shown, 1))
    order = ["main::__ANON__", "Perl_sortsv_flags", "main::compare"]
    for s in hidden + shown:
        frames = [f.split(" (")[0] for f in h.user_frames(s)]
        first = [f for i, f in enumerate(frames) if f in order and f not in frames[:i]]
        if first != order:
            errors.append("order: %s" % h.worst([s], 1))
            break
    perl.check("native", errors)


def check_short(perl):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    perl.check_short(["main", "main::middle", "main::work"], {"[perl]", LOOP})


def check_offcpu(perl):
    """Blocked time under its chain; in one block that lasts from before the start to after the end,
    whose stack an iterator reads.
    """
    for case, name in (("sleep", "offcpu"), ("rest", "offcpu-rest")):
        stacks, chain, _ = perl.record_case(case, seconds=1.5, tool="offcpu")
        awake = [s for s in stacks if not any("nanosleep" in f for f in s.frames)]
        perl.check(name, perl.judge(stacks, chain) +
                   language.too_many(awake, stacks, 0.05, what="without nanosleep"))


def check_hostile(name):
    """Contexts that are cyclic, endless or wild pointers, in a program that claims to be a Perl,
    cost less than twice an honest deep stack, and the native stack stays whole.
    """
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc:
        raise h.Skip("no C compiler")
    program = h.tmpfile("hostile")
    subprocess.run([cc, "-O1", "-pthread", "-rdynamic", "-o", program,
                    os.path.join(language.SOURCES, "perl/hostile.c")], check=True, timeout=60)
    found = language.record_hostile("perl", {
        case: [program, case, "60"]
        for case in "deep cycle called nameless endless wild top different text".split()
    })
    errors = []
    for case, (stacks, account, _) in found.items():
        if h.total(stacks) < 10:
            errors.append("%s: %d samples" % (case, h.total(stacks)))
        if case == "deep" and (account["complete"] < account["stacks"] or any(
                h.user_frames(s).count("name::name (hostile.pl)") != 899 for s in stacks)):
            errors.append("deep: %s %s" % (account, h.worst(stacks, 1)))
        if case not in ("deep", "different", "text") and account["complete"]:
            errors.append("%s: complete: %s" % (case, account))
        if case not in ("endless", "called"):
            errors += language.too_many([s for s in stacks if not from_root(s)], stacks, 0.1,
                                        what=case + " not from their root")
    others = {case: found.pop(case) for case in ("different", "text")}
    h.check("perl-hostile", errors + language.too_dear(found, "deep") +
            language.too_dear(others, "different"))


language.run_checks(perls, [check_chains, check_hot, check_lines, check_coro, check_native,
                            check_short, check_offcpu], [check_hostile])
