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
import check_java
import check_languages
from language import SOURCES

# add: copies the runtime and the programs into the guest; returns the files here whose libraries
# are needed. runtime: its path there. cases: {name: arguments}. frames: the language's frames of a
# list of texts. main: what all stacks of a program have; others are of the runtime's own threads.
# leaf: nothing of the language follows the chain. wait_s: for the first chains, emulated. warm_s:
# until compilers have done their work. exact: share of samples.
Language = namedtuple(
    "Language", "name packages add environment runtime cases frames main leaf at_other_lines "
    "wait_s warm_s exact")

TREES = os.path.join(h.TOP, "build", "sysroot-arm64")
TABLES_S = 25      # for the runtime's tables, while nothing else runs
PYTHON = "/usr/bin/python3.11"
JAVA = "/usr/lib/jvm/java-17-openjdk-arm64"


def tree(language):
    return os.path.join(TREES, language.name)


def lib_dirs():
    return [os.path.join(tree(language), d) for language in LANGUAGES
            for d in ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu")]


def add_python(source, root):
    shutil.copytree(source + "/usr/lib/python3.11", root + "/usr/lib/python3.11")
    os.makedirs(root + "/usr/bin", exist_ok=True)
    shutil.copy(source + PYTHON, root + PYTHON)
    shutil.copy(os.path.join(SOURCES, "python/chains.py"), root)
    return [source + PYTHON]


def python_frames(texts):
    return [m.groups()[:2] for m in map(check_languages.Python.frame.match, texts) if m]


def add_java(source, root):
    if not shutil.which("javac"):
        raise h.Skip("no javac")
    for name in ("bin/java", "lib/jvm.cfg", "lib/modules", "lib/server/libjvm.so", "release"):
        here = "%s%s/%s" % (source, JAVA, name)
        if os.path.islink(here):
            here = source + os.readlink(here) # below /etc
        os.makedirs(os.path.dirname("%s%s/%s" % (root, JAVA, name)), exist_ok=True)
        shutil.copy(here, "%s%s/%s" % (root, JAVA, name))
    for path in glob.glob(source + JAVA + "/lib/*.so"):
        shutil.copy(path, root + JAVA + "/lib")
    subprocess.run(["javac", "--release", "8", "-g", "-d", root + "/classes", check_java.SOURCE],
                   check=True, capture_output=True)
    return [source + JAVA + "/lib/server/libjvm.so", source + JAVA + "/lib/libjli.so"]


def java_frames(texts):
    """Without lines."""
    return [f.split(" (")[0] for f in texts if check_java.Jdk.frame.match(f)]


def java_cases(wanted):
    return {
        "j-%s-%s" % (mode[:3], case[:9]): " ".join(
            check_java.MODES[mode] + check_java.FLAGS + ["-Xmx64m -cp /classes Chains", case])
        for mode, case in wanted
    }


def java_at_other_lines(stacks):
    """Chains.inlined also reads the clock."""
    return check_java.at_other_lines(stacks, [f for f in check_java.LINES if f != "Chains.inlined"])


LANGUAGES = [
    Language("python", ["python3.11-minimal", "libpython3.11-minimal", "libexpat1", "zlib1g"],
             add_python, "PYTHONHOME=/usr PYTHONDONTWRITEBYTECODE=1", PYTHON,
             {"py-" + case: "-S /chains.py " + case
              for case in "rec60 generator classes thread native".split()},
             python_frames, None, True, lambda stacks: [], 120, 0, 0.95),
    Language("java", ["openjdk-17-jre-headless", "zlib1g"], add_java, "JAVA_HOME=" + JAVA,
             JAVA + "/bin/java",
             java_cases([("int", "interface"), ("default", "recurse300"), ("c2", "calls"),
                         ("c1", "inlined"), ("c2", "inlined"), ("default", "osr")]),
             java_frames, "Chains.main", False, java_at_other_lines, 240, 40, 0.9),
]


def chosen(arch):
    """Those that are recorded in guests of that architecture; CASES limits them."""
    names = os.environ.get("CASES", "python java").split()
    return [x for x in LANGUAGES if arch == "arm64" and x.name in names]


def add(language, root):
    return language.add(tree(language), root)


def lines(language, seconds, freq):
    found = ["export " + language.environment]
    for comm, arguments in language.cases.items():
        found += [
            "ln -s %s /tmp/%s" % (language.runtime, comm),
            "/tmp/%s %s 600 >/tmp/%s.chain 2>&1 &" % (comm, arguments, comm)
        ]
    return found + [
        "n=0; until [ $(grep -l CHAIN /tmp/*.chain | wc -l) = %d ] || [ $n = %d ]; do sleep 1; "
        "n=$((n + 1)); done" % (len(language.cases), language.wait_s),
        "sleep %d" % language.warm_s, "kill -STOP $(jobs -p)",
        "sfbpf record -F %d --lines -o /tmp/o --stats /tmp/s %d & record=$!" % (
            freq, TABLES_S + seconds),
        "sleep %d" % TABLES_S, "kill -CONT $(jobs -p)", "wait $record",
        "echo '@@ %s'" % language.name
    ] + ["echo '@@ chain %s' $(cat /tmp/%s.chain)" % (comm, comm) for comm in language.cases] + [
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
    for comm in language.cases:
        want = language.frames(chains.get(comm, "").strip().split(";"))
        mine = [s for s in stacks if s.comm == comm and
                (not language.main or any(f.startswith(language.main) for f in s.frames))]
        good = [s for s in mine
                if language.frames(h.user_frames(s))[:None if language.leaf else len(want)] == want]
        bad = [s for s in mine if s not in good]
        other = language.at_other_lines(mine)
        n, errors = h.total(mine), []
        if n < 10 or not want:
            errors.append("%d samples, chain %s" % (n, want))
        if h.total(good) < language.exact * n:
            errors.append("%d of %d are exact: %s" % (h.total(good), n, h.worst(bad, 2, 600)))
        if h.total(other) > 0.05 * n:
            errors.append("%d of %d have another line: %s" % (h.total(other), n, h.worst(other)))
        h.note("%s %s: %d of %d" % (language.name, comm, h.total(good), n))
        h.check(prefix + language.name + "-" + comm, errors)
