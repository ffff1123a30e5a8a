# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of `report --pgo` share: programs, and what compilers say about profiles."""

import os
import re
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(TOP, "tests/programs/pgo.c")
# The lines of hot() in SOURCE, from that of its name: its loop, and the call of step().
LOOP, CALL = 4, 5


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def build(compiler, path, *more):
    subprocess.run([compiler, "-O2", "-g", "-Wl,--build-id", "-o", path, *more, SOURCE], check=True,
                   capture_output=True, timeout=120)
    return path


def takes_silently(compiler, option, *more):
    """What a compiler says against a profile; "": nothing."""
    r = run(compiler, "-O2", "-g", option, "-Wall", "-S", "-o", "/dev/null", *more, SOURCE)
    return (r.stdout + r.stderr)[:300] if r.returncode or r.stdout or r.stderr else ""


def check_clang(profile, compiler=shutil.which("clang")):
    """Complaints about a profile of clang's, and whether its hot function has its counts."""
    with open(profile) as f:
        text = f.read()
    errors = []
    if not re.match(r"hot:[1-9]\d*:\d+\n", text):
        errors.append("hot is not the first function: %r" % text[:60])
    if not re.search(r"(?m)^ %d(\.\d+)?: step:[1-9]\d*\n(  \d+(\.\d+)?: [1-9]\d*\n)+" % CALL, text):
        errors.append("step is not inlined at line %d: %r" % (CALL, text[:200]))
    if not compiler:
        return errors
    said = takes_silently(compiler, "-fprofile-sample-use=" + profile)
    if said:
        errors.append("clang says " + said)
    r = run(compiler, "-O2", "-g", "-fprofile-sample-use=" + profile, "-S", "-emit-llvm", "-o", "-",
            SOURCE)
    if not re.search(r"define .*@hot\(.*!prof", r.stdout):
        errors.append("clang does not use it")
    return errors


def check_gcc(profile, directory):
    """The same of gcc's: the function is hot in its dump, with counts of the profile."""
    said = takes_silently("gcc", "-fauto-profile=" + profile)
    if said:
        return ["gcc says " + said]
    dump = os.path.join(directory, "dump")
    run("gcc", "-O2", "-g", "-fauto-profile=" + profile, "-S", "-o", "/dev/null",
        "-fdump-tree-optimized-blocks-details=" + dump, SOURCE)
    with open(dump) as f:
        hot = f.read().split(";; Function hot ")[1].split(";; Function ")[0]
    counts = [int(n) for n in re.findall(r"count (\d+) \(auto FDO[,)]", hot)]
    return [] if max(counts, default=0) > 0 else ["gcc does not use it: " + hot[:200]]
