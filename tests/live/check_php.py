#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of PHP, on programs that know their own chain (tests/programs/lang/php).

check_php.py [CHECK...]    PHPS: interpreters, by default Debian's; SECONDS of a recording; CASES;
MODES. An entry NAME=ROOT:PATH is the interpreter at PATH below another root directory.
"""

import glob
import os
import re
import subprocess

import harness as h
import language

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
LOOP = "execute_ex"

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


class Php(language.Interpreter):
    language = "php"
    suffix = ".php"
    frame = re.compile(r"^(.*) \(([^()]+\.php)(?::(\d+))?\)$")
    seconds = float(os.environ.get("SECONDS", "3"))

    def __init__(self, entry):
        super().__init__(entry)
        self.options = ["-n"]
        self.version = int(self.run([], "echo PHP_VERSION_ID;"))
        try:
            self.opcache = self.run(OPCACHE, "exit(!function_exists('opcache_reset'));") == b""
        except subprocess.CalledProcessError:
            self.opcache = False

    def run(self, options, code):
        return subprocess.run(self.command(*options, "-r", code), check=True, capture_output=True,
                              timeout=60).stdout

    def modes(self):
        """(name, this interpreter in that mode)"""
        wanted = os.environ.get("MODES", "plain opcache tracing function").split()
        for mode in wanted:
            if mode == "plain" or self.opcache and (mode == "opcache" or self.version >= 80000):
                yield mode, self.variant(mode, self.options + MODES[mode])

    def rooted(self, stack):
        """A fiber's begin in make_fcontext. PCRE's own JIT code has no unwind tables."""
        return stack.comm == "preg" or h.user_frames(stack)[:1] in (["_start"], ["make_fcontext"])


def phps():
    return [Php(entry) for entry in os.environ.get("PHPS", "/usr/bin/php").split()]


def check_chains(php):
    """Names and files, root to leaf, in each way that PHP calls PHP."""
    for mode, variant in php.modes():
        jit = mode in ("tracing", "function")
        cases = [c for c in CASES if c in JIT_CASES] if jit else CASES
        cases = cases if mode != "opcache" else cases[:php.at_once]
        # Others mark the generator as running before that, and 7.4 has no fibers.
        cases = [c for c in cases if c != "values" or 80000 <= php.version < 80400]
        cases = [c for c in cases if c != "fiber" or php.version >= 80100]
        variant.check_cases(cases, "account-{}", exact=0.90 if jit else 0.95)


def check_resume(php):
    """Generators that only yield: they have their callers also right before and after they run."""
    for _, variant in php.modes():
        _, seen, errors = variant.record_calls("resume.php", RESUME, 0.01, 100, hz=997,
                                               seconds=php.seconds / 2)
        if seen != set(RESUME):
            errors.append("seen: %s" % seen)
        variant.check("resume", errors)


def check_hot(php):
    """Functions that call each other all the time: each frame's caller is one that calls it."""
    for mode, variant in php.modes():
        share = 0.10 if mode in ("tracing", "function") else 0.05
        stacks, seen, errors = variant.record_calls("hot.php", HOT, share, 50, hz=499,
                                                    seconds=php.seconds / 2)
        # The name that __call stands for is not a function's.
        if not {"fib", "compare", "numbers", "mix"} <= seen or \
                {"Node::nothing", "Node::nowhere"} & seen:
            errors.append("seen: %s" % seen)
        variant.check("hot", errors + variant.not_rooted(stacks))


def check_lines(php):
    """The line of each caller's call, and the leaf's within its loop."""
    texts = ["deep(60)"] + ["deep($n - 1)"] * 59 + ["spin()"]
    php.check_callers("deep60", texts, "function spin(): void", 12)


def check_native(php):
    """--native shows the loops; without it none is left. Functions in C have their names."""
    hidden = php.record_case("usort", seconds=1)[0]
    shown = php.record_case("usort", ["--native"], seconds=1)[0]
    errors = ["%s is shown" % LOOP] if any(LOOP in s.frames for s in hidden) else []
    if not all(h.user_frames(s).count(LOOP) == 2 for s in shown):
        errors.append("--native: %s" % h.worst(shown, 1))
    if not all("usort" in s.frames for s in hidden + shown):
        errors.append("no usort: %s" % h.worst(hidden, 1))
    php.check("native", errors)


def check_short(php):
    """20 processes of 100 ms, one after the other: they are gone when their names are needed."""
    php.check_short(["{main}", "middle", "work"], {"[php]", LOOP})


def check_offcpu(php):
    """Blocked time under its chain."""
    stacks, chain, _ = php.record_case("sleep", seconds=1.5, tool="offcpu")
    awake = [s for s in stacks if "usleep" not in s.frames]
    php.check("offcpu", php.judge(stacks, chain) +
              language.too_many(awake, stacks, 0.05, what="without usleep"))


def check_hostile(name):
    """Frames that are cyclic, endless or wild pointers cost less than twice an honest deep stack,
    and the native stack stays whole.
    """
    php = phps()[0]
    options = ["-d", "extension=ffi", "-d", "ffi.enable=1"]
    try:
        php.run(options, "exit(!class_exists('FFI'));")
    except subprocess.CalledProcessError:
        raise h.Skip("PHP without FFI")
    found = language.record_hostile("php", {
        case: php.command(*options, php.file("hostile.php"), case, "60")
        for case in ("deep", "cycle", "nameless", "wild", "endless")
    })
    errors = language.too_dear(found, "deep")
    for case in ("wild", "nameless"):
        errors += php.not_rooted(found[case].stacks, 0.9)
    h.check("php-hostile", errors)


def check_embedded(name):
    """PHP in a library, whose program may have a copy of its variables."""
    libraries = sorted(glob.glob("/usr/lib/libphp[0-9].[0-9].so"))
    if not libraries:
        raise h.Skip("no libphp")
    program = h.tmpfile("php-embed")
    subprocess.run(["gcc", "-O1", "-o", program, os.path.join(h.TOP, "tests/programs/php_embed.c"),
                    libraries[-1]], check=True)
    p = h.start([program])
    h.wait_busy(p)
    stacks, _ = h.record(["-F", "499", "-p", str(p.pid)], 2)
    h.stop(p)
    chain = ["eval (embedded)", "emb_mid (embedded)", "emb_leaf (embedded)"]
    late = [s for s in stacks if any(f.startswith("emb_mid") for f in s.frames)]
    bad = [s for s in late if [f for f in s.frames if f.endswith("(embedded)")][:2] != chain[:2] or
           h.reason(s) or s.frames[0] != "_start"]
    errors = language.too_many(bad, late, 0.02, 100)
    if h.total(late) < 0.9 * h.total(stacks):
        errors.append("%d of %d in emb_mid: %s" % (h.total(late), h.total(stacks),
                                                   h.worst(stacks, 2)))
    h.check("php-embedded", errors)


language.run_checks(phps, [check_chains, check_hot, check_resume, check_lines, check_native,
                           check_short, check_offcpu], [check_hostile, check_embedded])
