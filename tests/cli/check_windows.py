#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""report and diff over directories of the agent's windows: which files are read, sums, damage,
wrong usage.
"""

import os
import subprocess
import sys
import tempfile
import time

SFBPF = os.path.abspath(
    os.environ.get("SFBPF", os.path.join(os.environ.get("OUTPUT", "build"), "sfbpf")))
failed = False


def run(*argv):
    return subprocess.run([SFBPF, *argv], capture_output=True, text=True, timeout=60)


def check(name, argv, status, want, err=""):
    """want: lines of folded output; None: not compared."""
    global failed
    p = run(*argv)
    problem = "" if p.returncode == status and err in p.stderr else "exit status %d, stderr %r" % (
        p.returncode, p.stderr[-300:])
    if want is not None and sorted(p.stdout.splitlines()) != sorted(want):
        problem += " wrote %r" % p.stdout[:300]
    print("FAIL windows-%s: %s" % (name, problem) if problem else "ok windows-%s" % name)
    failed |= bool(problem)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def main():
    with tempfile.TemporaryDirectory() as top:
        d, now = os.path.join(top, "d"), int(time.time() * 1000)
        os.mkdir(d)
        hour, day = 3600 * 1000, 86400 * 1000
        write("%s/sfbpf-web-1-%d-00000001.folded" % (d, now - 60000),
              "nginx;main;serve 3\nsh;main 1\n")
        write("%s/sfbpf-web-1-%d-00000002.folded" % (d, now - 2 * hour), "nginx;main;serve 4\n")
        write("%s/sfbpf-db-%d-00000003.folded" % (d, now - 120000), "postgres;main 5\n")
        write("%s/sfbpf-db-%d-00000004.off_cpu.folded" % (d, now - 120000),
              "postgres;main;wait 700\n")
        write("%s/sfbpf-db-%d-00000005.folded" % (d, now - day - 60000), "postgres;main;slow 9\n")
        for other in ("notes.txt", "sfbpf-web-1.folded", "sfbpf-web-x-00000001.folded",
                      ".sfbpf-web-1-%d-00000009.folded.tmp" % now,
                      "sfbpf-web-1-%d-0000000.folded" % now, "sfbpf--.folded", "sfbpf-",
                      "sfbpf-1-00000001.folded"):
            write(os.path.join(d, other), "wrong;file 1\n")
        os.mkdir("%s/sfbpf-web-1-%d-0000000a.folded" % (d, now))
        os.symlink("/etc/passwd", "%s/sfbpf-gone-%d-0000000b.folded" % (d, now))
        folded = ("report", "--format", "folded")
        check("all", folded + (d, ), 0,
              ["nginx;main;serve 7", "sh;main 1", "postgres;main 5", "postgres;main;slow 9"],
              "could not be read")
        check("since", folded + ("--since", "1h", "--host", "web-1", d), 0,
              ["nginx;main;serve 3", "sh;main 1"], "")
        check("until", folded + ("--until", "1h", "--host", "web-1", d), 0, ["nginx;main;serve 4"])
        check(
            "date",
            folded + ("--since", time.strftime(
                "%Y-%m-%dT%H:%M", time.localtime(now / 1000 - 600)), "--host", "db", d), 0,
            ["postgres;main 5"])
        check("comm", folded + ("--comm", "nginx", d), 0, ["nginx;main;serve 7"])
        check("off-cpu", folded + ("--off-cpu", d), 0, ["postgres;main;wait 700"])
        one = "%s/sfbpf-web-1-%d-00000002.folded" % (d, now - 2 * hour)
        check("several", folded + (one, one), 0, ["nginx;main;serve 8"])
        check("ago",
              ("diff", "--format", "folded", "--since", "1h", "--ago", "1d", "--host", "db", d), 0,
              ["postgres;main 0 5", "postgres;main;slow 9 0"])
        check("none", folded + ("--host", "nobody", d), 1, None, "no window of the agent")
        check("bad-time", folded + ("--since", "yesterday", d), 2, None, "is not a time")
        check("backwards", folded + ("--since", "1h", "--until", "2h", d), 2, None,
              "--until is not after --since")
        check("ago-alone", ("diff", "--ago", "1d", d), 2, None, "two times of one directory")
        check("one-file", ("diff", one), 2, None, "a file is missing")
    return failed


if __name__ == "__main__":
    sys.exit(main())
