#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""report and diff over directories of the agent's windows: which files are read, sums, labels,
damage, wrong usage.
"""

import json
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


def stack(comm, frames, count, **labels):
    return {
        "comm": comm, "process": comm + "d", "pid": 0, "count": count, "samples": count,
        "stop": None, "labels": {k.replace("_", "."): v for k, v in labels.items()},
        "frames": [{"name": f, "module": "m", "kind": "user"} for f in frames.split(";")]
    }


def window(path, host, *stacks):
    meta = {"schema": 1, "host": host, "unit": "samples"}
    write(path, '{"meta":%s,"stacks":%s}' % (json.dumps(meta), json.dumps(stacks)))


def check_labels(top, now):
    """Services, versions and hosts of windows in the folders of days, and of older ones."""
    d = os.path.join(top, "labels")
    for n, (host, ago, version) in enumerate((("a", 0, "1"), ("b", 0, "2"), ("a", 86400, "1"))):
        at = now - ago * 1000 - 1000
        day = os.path.join(d, time.strftime("%Y-%m-%d", time.gmtime(at / 1000)))
        os.makedirs(day, exist_ok=True)
        window("%s/sfbpf-%s-%d-%08x.json" % (day, host, at, n), host,
               stack("work", "main;f", 3 + n, service_name="web", service_version=version),
               stack("pg", "main;g", 10, service_name="db"))
    folded = ("report", "--format", "folded", "--since", "1h")
    check("service", folded + ("--service", "web", d), 0, ["work;main;f 7"])
    check("by-service", folded + ("--by", "service", d), 0,
          ["db;pg;main;g 20", "web;work;main;f 7"])
    check("no-such-service", ("report", "--service", "wbe", d), 1, [],
          "no stack has service.name=wbe")
    check("by-version", folded + ("--by", "version", "--service", "web", d), 0,
          ["1;work;main;f 3", "2;work;main;f 4"])
    check("by-host", folded + ("--by", "host", d), 0,
          ["a;work;main;f 3", "b;work;main;f 4", "a;pg;main;g 10", "b;pg;main;g 10"])
    check("by-label", folded + ("--by", "service.version", "--comm", "pg", d), 0,
          ["[no service.version];pg;main;g 20"])
    check("label", folded + ("--label", "service.version=2", d), 0, ["work;main;f 4"])
    check("labels", folded + ("--label", "service.version=2", "--service", "db", d), 1, [],
          "and the rest of the options")
    check("days", ("report", "--format", "folded", "--service", "web", d), 0, ["work;main;f 12"])
    check("day-ago", ("diff", "--format", "folded", "--since", "1h", "--ago", "1d", "--service",
                      "web", d), 0, ["work;main;f 5 7"])
    check("against", ("diff", "--format", "folded", "--label", "service.version=2", "--against",
                      "service.version=1", d), 0, ["work;main;f 8 4"])
    merged = os.path.join(top, "merged.pb.gz")
    check("to-pprof", ("report", "--by", "service", "-o", merged, d), 0, [])
    check("from-pprof", ("report", "--format", "folded", "--by", "service", merged), 0,
          ["web;work;main;f 12", "db;pg;main;g 30"])
    table = run("report", "--by", "service", d).stdout.splitlines()[:3]
    if [line.split() for line in table] != [["SHARE%", "samples", "service.name"],
                                            ["71.43", "30", "db"], ["28.57", "12", "web"]]:
        check("table: %s" % table, ("--help", ), 3, None)
    write("%s/sfbpf-c-%d-000000ff.folded" % (d, now - 5000), "work;main;f 100\n")
    check("no-labels", folded + ("--service", "web", d), 0, ["work;main;f 7"],
          "1 of 3 windows have no label service.name")
    check("no-labels-by-host", folded + ("--by", "host", "--host", "c", d), 0,
          ["c;work;main;f 100"])
    check("bad-by", folded + ("--by", "cpu", d), 2, None, "is not process, thread, container, host")
    check("bad-label", folded + ("--label", "x", d), 2, None, "is not NAME=VALUE")
    check("too-many-labels", folded + ("--label", "a=b") * 17 + (d, ), 2, None, "more than 16")
    check("against-two", ("diff", "--against", "a=b", d, d), 2, None, "of one directory")
    check("diff-pprof", ("diff", "-o", merged, d, d), 2, None, "holds one profile")


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
        check_labels(top, now)
    return failed


if __name__ == "__main__":
    sys.exit(main())
