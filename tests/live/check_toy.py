#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A language is files of its own and a row: adds Toy (tests/toy) to a copy of the tree, builds the
copy, and records a program of Toy.

check_toy.py [CHECK...]
"""

import glob
import os
import re
import shutil
import subprocess

import harness as h
import language

TOY = os.path.join(h.TOP, "tests", "toy")
TREE = os.path.join(h.OUTPUT, "toy-tree")
CHAIN = (r".*;main;main \(a\.toy\);outer \(a\.toy\);outer \(b\.toy\);toy_apply;"
         r"middle \(b\.toy\);inner \(b\.toy\);burn \(b\.toy\)(;.*time.*|;\[.*\])*")


def add_row(path):
    """The one change to a file that exists."""
    with open(path) as f:
        text = f.read()
    text = text.replace("#else\n", "#include LANGUAGE_HEADER(toy)\n#else\n", 1)
    text = text.replace("#endif\n", 'LANGUAGE(7, TOY, toy, "toy")\n#endif\n', 1)
    with open(path, "w") as f:
        f.write(text)


def build():
    os.makedirs(TREE, exist_ok=True)
    for name in ("bpf", "userspace", "scripts", "Makefile", "vmlinux.h"):
        source = os.path.join(h.TOP, name)
        copy = shutil.copytree if os.path.isdir(source) else shutil.copy
        copy(source, os.path.join(TREE, name))
    for path in glob.glob(os.path.join(h.TOP, "tests", "*", "*.mk")):
        os.makedirs(os.path.join(TREE, os.path.relpath(os.path.dirname(path), h.TOP)))
        shutil.copy(path, os.path.join(TREE, os.path.relpath(path, h.TOP)))
    for name in ("bpf", "userspace"):
        shutil.copytree(os.path.join(TOY, name), os.path.join(TREE, name), dirs_exist_ok=True)
    add_row(os.path.join(TREE, "bpf", "border", "languages.def"))
    flags = ["CFLAGS=-O0", "AGENT=", "SERVE=", "OUTPUT=build"]
    out = subprocess.run(["make", "-s", "-j2", "-C", TREE, "build/sfbpf"] + flags, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if out.returncode:
        return "make: %s" % out.stdout[-600:]
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, "-O2", "-rdynamic", "-o", os.path.join(TREE, "toy"),
                    os.path.join(TOY, "program.c")], check=True)
    return None


def check_toy(name):
    error = None if os.path.exists(os.path.join(TREE, "toy")) else build()
    if error:
        return h.fail(name, error)
    folded = h.tmpfile("toy.folded")
    out = subprocess.run([os.path.join(TREE, "build", "sfbpf"), "record", "-F", "499", "-o", folded,
                          "--", os.path.join(TREE, "toy"), "2"], capture_output=True, text=True,
                         check=False)
    if out.returncode:
        return h.fail(name, out.stderr[-300:])
    stacks = [s for s in h.read_folded(folded) if s.comm == "toy"]
    chain = re.compile(CHAIN)
    bad = [s for s in stacks if not chain.fullmatch(";".join(h.user_frames(s)))]
    errors = language.too_many(bad, stacks, 0.02, what="not the chain")
    if h.total(stacks) < 300:
        errors = "%d samples" % h.total(stacks)
    h.check(name, errors)


if __name__ == "__main__":
    shutil.rmtree(TREE, ignore_errors=True)
    h.run_checks([check_toy])
    raise SystemExit(h.exit_status())
