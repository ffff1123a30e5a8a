# SPDX-License-Identifier: BSD-2-Clause
"""Debian's python3.11 and Java 17 on AArch64, under chains that the programs print themselves
(tests/programs/lang).
"""

import glob
import os
import re
import shutil
import subprocess
from collections import namedtuple

import harness as h

# add: copies the runtime and the programs into the guest; returns the files here whose libraries
# are needed. cases: [(name, command)]. frames: the language's frames of a list of texts. wait_s:
# for the first chains, emulated. warm_s: until compilers have done their work. leaf: nothing of the
# language follows the chain.
Language = namedtuple("Language",
                      "name packages add environment cases frames leaf wait_s warm_s exact")

LINES = {
    "Chains.step": ["next.go(depth - 1);", "spin();"],
    "Chains.outer": ["return middle(x) - 1;"],
    "Chains.middle": ["return inner(x) + 1;"],
    "Chains.inner": ["return leaf(x) ^ 1;"],
    "Chains.leaf": ["x = x * 6364136223846793005L", "} while ((x >>> 50) != 0);"],
}

TREES = os.path.join(h.TOP, "build", "sysroot-arm64")
PROGRAMS = os.path.join(h.TOP, "tests/programs/lang")
TABLES_S = 25      # for the runtime's tables, while nothing else runs
PYTHON = "/usr/bin/python3.11"
JAVA = "/usr/lib/jvm/java-17-openjdk-arm64"


def tree(language):
    return os.path.join(TREES, language.name)


def lib_dirs():
    return [os.path.join(TREES, name, d) for name in ("python", "java")
            for d in ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu")]


def add_python(source, root):
    shutil.copytree(source + "/usr/lib/python3.11", root + "/usr/lib/python3.11")
    os.makedirs(root + "/usr/bin", exist_ok=True)
    shutil.copy(source + PYTHON, root + PYTHON)
    shutil.copy(os.path.join(PROGRAMS, "python/chains.py"), root)
    return [source + PYTHON]


def python_frames(texts):
    form = re.compile(r"^(.*) \(([^()]+\.py|<[^()]+>)(?::\d+)?\)$")
    return [m.groups() for m in map(form.match, texts) if m]


def python_case(case):
    path = "/tmp/py-" + case
    return "py-" + case, "ln -s %s %s; %s -S /chains.py %s 600" % (PYTHON, path, path, case)


def add_java(source, root):
    if not shutil.which("javac"):
        raise h.Skip("no javac")
    for name in ("bin/java", "lib/jvm.cfg", "lib/modules", "lib/server/libjvm.so", "release"):
        here = "%s%s/%s" % (source, JAVA, name)
        if os.path.islink(here):
            here = source + os.readlink(here) # below /etc
        os.makedirs(os.path.dirname("%s%s/%s" % (root, JAVA, name)), exist_ok=True)
        shutil.copy(here, "%s%s/%s" % (root, JAVA, name))
    libraries = glob.glob(source + JAVA + "/lib/*.so")
    for path in libraries:
        shutil.copy(path, root + JAVA + "/lib")
    subprocess.run(["javac", "--release", "8", "-g", "-d", root + "/classes",
                    os.path.join(PROGRAMS, "java/Chains.java")], check=True, capture_output=True)
    return [source + JAVA + "/lib/server/libjvm.so", source + JAVA + "/lib/libjli.so"]


def java_frames(texts):
    """Without lines."""
    return [f.split(" (")[0] for f in texts if re.match(r"^(Chains|java\.|jdk\.|\[java\])", f)]


def wrong_lines(stacks):
    """Those of these stacks with another line in a function that is in LINES."""
    with open(os.path.join(PROGRAMS, "java/Chains.java")) as f:
        source = [""] + f.read().splitlines()
    found = []
    for s in stacks:
        for frame in s.frames:
            m = re.match(r"^(Chains\.\w+) (?:\(Chains.java:(\d+)\))?", frame)
            if m and m.group(1) in LINES and not any(
                    text in source[int(m.group(2) or 0)] for text in LINES[m.group(1)]):
                found.append(s)
                break
    return found


def java_case(mode, case):
    comm = "j-%s-%s" % (mode, case[:9])
    flags = {"int": "-Xint", "c1": "-XX:TieredStopAtLevel=1", "c2": "-XX:-TieredCompilation",
             "all": ""}
    return comm, "ln -s %s/bin/java /tmp/%s; /tmp/%s %s -XX:+UnlockDiagnosticVMOptions " \
        "-XX:+ShowHiddenFrames -XX:+UseSerialGC -Xmx64m -cp /classes Chains %s 600" % (
            JAVA, comm, comm, flags[mode], case)


LANGUAGES = [
    Language("python", ["python3.11-minimal", "libpython3.11-minimal", "libexpat1", "zlib1g"],
             add_python, "PYTHONHOME=/usr PYTHONDONTWRITEBYTECODE=1",
             [python_case(c) for c in "rec60 generator classes thread native".split()],
             python_frames, True, 120, 0, 0.95),
    Language("java", ["openjdk-17-jre-headless", "zlib1g"], add_java, "JAVA_HOME=" + JAVA,
             [java_case("int", "interface"), java_case("all", "recurse300"),
              java_case("c2", "calls"), java_case("c1", "inlined"), java_case("c2", "inlined"),
              java_case("all", "osr")], java_frames, False, 240, 40, 0.9),
]


def chosen(arch):
    """Those that are recorded in guests of that architecture; CASES limits them."""
    names = os.environ.get("CASES", "python java").split()
    return [x for x in LANGUAGES if arch == "arm64" and x.name in names]


def add(language, root):
    return language.add(tree(language), root)


def lines(language, seconds, freq):
    found = ["export " + language.environment]
    for comm, command in language.cases:
        # The last command only, so that $! is the program.
        before, _, last = command.rpartition("; ")
        found += [before, "%s >/tmp/%s.chain 2>&1 &" % (last, comm)]
    return found + [
        "n=0; until [ $(grep -l CHAIN /tmp/*.chain | wc -l) = %d ] || [ $n = %d ]; do sleep 1; "
        "n=$((n + 1)); done" % (len(language.cases), language.wait_s),
        "sleep %d" % language.warm_s, "kill -STOP $(jobs -p)",
        "sfbpf record -F %d --lines -o /tmp/o --stats /tmp/s %d & record=$!" % (
            freq, TABLES_S + seconds),
        "sleep %d" % TABLES_S, "kill -CONT $(jobs -p)", "wait $record",
        "echo '@@ %s'" % language.name
    ] + ["echo '@@ chain %s' $(cat /tmp/%s.chain)" % (comm, comm)
         for comm, _ in language.cases] + [
        "cat /tmp/o", "echo '@@ %s end'" % language.name, "kill -9 $(jobs -p) 2>/dev/null",
        "rm -f /tmp/*.chain"
    ]


def judge(language, prefix, text):
    found = re.search(r"^@@ %s\n(.*?)^@@ %s end$" % (language.name, language.name), text,
                      re.S | re.M)
    if not found:
        h.fail(prefix + language.name, "not recorded")
        return
    path = h.tmpfile(language.name + ".folded")
    with open(path, "w") as f:
        f.write(re.sub(r"^@@ chain .*\n", "", found.group(1), flags=re.M))
    stacks = h.read_folded(path)
    chains = dict(re.findall(r"^@@ chain (\S+) .*?CHAIN (.*)$", found.group(1), re.M))
    for comm, _ in language.cases:
        want = language.frames(chains.get(comm, "").strip().split(";"))
        mine = [s for s in stacks if s.comm == comm and
                (language.name != "java" or any(f.startswith("Chains.main") for f in s.frames))]
        good = [s for s in mine
                if language.frames(h.user_frames(s))[:None if language.leaf else len(want)] == want]
        bad = [s for s in mine if s not in good]
        n, errors = h.total(mine), []
        if n < 10 or not want:
            errors.append("%d samples, chain %s" % (n, want))
        if h.total(good) < language.exact * n:
            errors.append("%d of %d are exact: %s" % (h.total(good), n, h.worst(bad, 2, 600)))
        other = wrong_lines(mine) if language.name == "java" else []
        if h.total(other) > 0.05 * n:
            errors.append("%d of %d have another line: %s" % (h.total(other), n, h.worst(other)))
        h.note("%s %s: %d of %d" % (language.name, comm, h.total(good), n))
        h.check(prefix + language.name + "-" + comm, errors)
