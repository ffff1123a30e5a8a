# SPDX-License-Identifier: BSD-2-Clause
"""Debian's python3.11 on AArch64, under chains that it prints itself
(tests/programs/lang/python/chains.py).
"""

import os
import re
import shutil

import harness as h

CASES = "rec60 generator classes thread native".split()
PACKAGES = ["python3.11-minimal", "libpython3.11-minimal", "libexpat1", "zlib1g"]
PATH = "/usr/bin/python3.11"
TREE = os.path.join(h.TOP, "build", "sysroot-arm64", "python")
LIBRARIES = [os.path.join(TREE, "lib/aarch64-linux-gnu"),
             os.path.join(TREE, "usr/lib/aarch64-linux-gnu")]
FRAME = re.compile(r"^(.*) \(([^()]+\.py|<[^()]+>)(?::\d+)?\)$")
START_LIMIT = 120  # seconds, emulated
TABLES_S = 25      # for the interpreter's tables, while nothing else runs


def add(root):
    """Copies the interpreter, its modules and the program. Its path here."""
    shutil.copytree(TREE + "/usr/lib/python3.11", root + "/usr/lib/python3.11")
    os.makedirs(root + "/usr/bin")
    shutil.copy(TREE + PATH, root + PATH)
    shutil.copy(os.path.join(h.TOP, "tests/programs/lang/python/chains.py"), root)
    return TREE + PATH


def lines(seconds, freq):
    found = ["export PYTHONHOME=/usr PYTHONDONTWRITEBYTECODE=1"]
    for case in CASES:
        found += [
            "ln -s %s /tmp/py-%s" % (PATH, case),
            "/tmp/py-%s -S /chains.py %s 600 >/tmp/%s.chain 2>&1 &" % (case, case, case)
        ]
    found += [
        "n=0; until [ $(grep -l CHAIN /tmp/*.chain | wc -l) = %d ] || [ $n = %d ]; do sleep 1; "
        "n=$((n + 1)); done" % (len(CASES), START_LIMIT),
        "kill -STOP $(jobs -p)",
        "sfbpf record -F %d -o /tmp/o --stats /tmp/s %d & record=$!" % (freq, TABLES_S + seconds),
        "sleep %d" % TABLES_S, "kill -CONT $(jobs -p)", "wait $record", "echo '@@ python'"
    ]
    found += ["echo '@@ chain %s' $(cat /tmp/%s.chain)" % (case, case) for case in CASES]
    return found + ["cat /tmp/o", "echo '@@ python end'", "kill -9 $(jobs -p) 2>/dev/null"]


def frames(texts):
    return [m.groups() for m in map(FRAME.match, texts) if m]


def judge(prefix, text):
    found = re.search(r"^@@ python\n(.*?)^@@ python end$", text, re.S | re.M)
    if not found:
        h.fail(prefix + "python", "not recorded")
        return
    path = h.tmpfile("python.folded")
    with open(path, "w") as f:
        f.write(re.sub(r"^@@ chain .*\n", "", found.group(1), flags=re.M))
    stacks = h.read_folded(path)
    chains = dict(re.findall(r"^@@ chain (\S+) .*?CHAIN (.*)$", found.group(1), re.M))
    for case in CASES:
        want = frames(chains.get(case, "").split(";"))
        mine = [s for s in stacks if s.comm == "py-" + case]
        good = h.total([s for s in mine if frames(h.user_frames(s)) == want])
        bad = [s for s in mine if frames(h.user_frames(s)) != want]
        n, errors = h.total(mine), []
        if n < 10 or not want:
            errors.append("%d samples, chain %s" % (n, want))
        if good < 0.95 * n:
            errors.append("%d of %d are exact: %s" % (good, n, h.worst(bad, 2, 600)))
        h.note("python %s: %d of %d" % (case, good, n))
        h.check(prefix + "python-" + case, errors)
