#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""soak-verdict.py DIR CODE: what scripts/soak.sh has gathered in DIR: samples ("rss_kB descriptors"
a line), pages (top's JSON lines), before and after (the kernel's log).
"""

import json
import re
import sys

BAD = re.compile(
    r"WARNING|BUG:|Oops|general protection|soft lockup|RCU stall|rcu_.*stall|hung_task|"
    r"Out of memory"
)
GROWTH, SLACK_KB, SLACK_FDS = 1.1, 4096, 64


def lines(path):
    with open(path, errors="replace") as f:
        return f.read().splitlines()


def main(path, code):
    errors = []
    samples = [tuple(map(int, line.split())) for line in lines(path + "/samples")]
    pages = [json.loads(line) for line in lines(path + "/pages")]
    if len(samples) < 6 or not pages:
        errors.append("%d samples of memory, %d pages" % (len(samples), len(pages)))
        samples = samples or [(0, 0)]
    third = max(len(samples) // 3, 1)
    warm, last = samples[third:2 * third] or samples, samples[-third:]
    for i, what, slack in ((0, "kB resident", SLACK_KB), (1, "descriptors", SLACK_FDS)):
        a, b = max(s[i] for s in warm), max(s[i] for s in last)
        print("# %s: %d at first, at most %d in the second third, %d in the last" %
              (what, samples[0][i], a, b))
        if b > GROWTH * a + slack:
            errors.append("%s grow: %d, then %d" % (what, a, b))
    taken = sum(p["samples"] for p in pages)
    lost = {k: sum(p["lost"][k] for p in pages) for k in pages[0]["lost"]} if pages else {}
    users = sum(p["user_stacks"]["total"] for p in pages)
    whole = sum(p["user_stacks"]["complete"] for p in pages)
    print(
        "# %d samples in %d s, lost %s; %.1f %% of %d user stacks complete; %d tables evicted; "
        "files at the end %d"
        % (taken, sum(p["duration_s"] for p in pages), lost, 100 * whole / max(users, 1), users,
           pages[-1]["tables"]["evicted"] if pages else 0,
           pages[-1]["tables"]["files"] if pages else 0))
    if sum(lost.values()) > 0.01 * taken:
        errors.append("lost %s of %d samples" % (lost, taken))
    before, after = lines(path + "/before"), lines(path + "/after")
    new = [line for line in after[len(before):] if BAD.search(line)]
    if new:
        errors.append("kernel log: " + " | ".join(new[:3]))
    if code:
        errors.append("exit code %d" % code)
    print("FAIL soak: " + "; ".join(errors) if errors else "ok soak")
    return 1 if errors else 0


sys.exit(main(sys.argv[1], int(sys.argv[2])))
