#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""report --pgo of real recordings of a small program, in pprof and JSON: gcc and clang take the
profiles without a word, and the hot function has its counts. tests/cli/check_pgo.py has the rest.
Go: check_go.py pgo.
"""

import os
import re
import shutil
import subprocess
import sys

import harness as h

sys.path.insert(0, os.path.join(h.TOP, "tests/cli"))
import pgo_checks as pgo  # noqa: E402


def covered(r):
    """A complaint unless most samples of the program are used."""
    said = re.search(r"(\d+) samples used.*; (\d+)\.\d% of the (\d+) of", r.stderr)
    if r.returncode or not said or int(said[1]) < 200 or int(said[2]) < 90:
        return ["status %d: %s" % (r.returncode, r.stderr.strip()[-200:])]
    return []


def check_compiler(name, compiler, form, *options):
    program = pgo.build(compiler, h.tmpfile("pgo-" + compiler), *options)
    errors = []
    for suffix in (".pb.gz", ".json"):
        file, made = h.tmpfile(compiler + suffix), h.tmpfile(compiler + suffix + ".prof")
        subprocess.run([h.SFBPF, "record", "-q", "-F", "499", "-o", file, "--", program, "3000"],
                       check=True, timeout=120, capture_output=True)
        r = pgo.run(h.SFBPF, "report", "--pgo", form, "-o", made, program, file)
        errors += covered(r) or (pgo.check_clang(made) if form == "clang" else
                                 pgo.check_gcc(made, h.tmpdir()))
    h.check(name, errors)


def check_clang(name):
    if not shutil.which("clang"):
        raise h.Skip("no clang")
    check_compiler(name, "clang", "clang", "-fdebug-info-for-profiling")


def check_gcc(name):
    check_compiler(name, "gcc", "gcc")


if __name__ == "__main__":
    h.run_checks([check_clang, check_gcc])
    sys.exit(h.exit_status())
