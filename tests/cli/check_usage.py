#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong command lines: exit status 2, nothing on stdout, and one line on stderr that names the tool
and the word that is wrong."""

import os
import subprocess

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SFBPF = os.environ.get("SFBPF", os.path.join(TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))

# The command line, and what the message must contain.
WRONG = (
    ("recrod", "did you mean record"),
    ("nonsense", "nonsense"),
    ("help recrod", "did you mean record"),
    ("help top record", "'record'"),
    ("version extra", "'extra'"),
    ("help --completion fish", "fish"),
    ("record --frequenzy 9 1", "did you mean --frequency"),
    ("record --xyzzy 1", "--xyzzy"),
    ("record -Z 1", "-Z"),
    ("record -F", "-F needs an argument"),
    ("record --freq", "--freq needs an argument"),
    ("record --all=yes 1", "--all takes no argument"),
    ("record -F 12abc 1", "12abc"),
    ("record -F 0 1", "'0'"),
    ("record -F -5 1", "-5"),
    ("record -c 0 1", "-c"),
    ("record -c 5 -F 9 1", "-F and -c"),
    ("record -F 9 -c 5 1", "-F and -c"),
    ("record -U -K 1", "-U and -K"),
    ("record -C 0- 1", "0-"),
    ("record -e nonsense 1", "cpu-clock"),
    ("record -p 12,x/y 1", "x/y"),
    ("record -p 1,,2 1", "1,,2"),
    ("record -p 1, 1", "'1,'"),
    ("record -t abc 1", "abc"),
    ("record -t 1,,2 1", "1,,2"),
    ("record -C 0,,1 1", "0,,1"),
    ("record -u no-such-user 1", "no-such-user"),
    ("record --ring-size 1 1", "from 4k to 1G"),
    ("record --ring-size 4x 1", "4x"),
    ("record --table-memory 1 1", "from 1M"),
    ("record --table-idle soon 1", "soon"),
    ("record --format nonsense 1", "nonsense"),
    ("record -o profile.svgz 1", ".folded"),
    ("record -o x.json.gz 1", "add --timeline"),
    ("record --timeline -o x.html 1", "html has no times"),
    ("record -o wrong.html -o b.html --format pprof 1", "the suffixes of all outputs name other"),
    ("record --stats a.json --stats b.json 1", "--stats is given twice"),
    ("report -o wrong.html -o b.html x.json", "-o is given twice"),
    ("record -m 1ms 1", "-m needs --wall"),
    ("record --wall -m 1x 1", "1x"),
    ("record --wall -m 1ms --format json 1", "json adds all waits up"),
    ("record --wall --exact --timeline -o x.json.gz 1", "--exact"),
    ("offcpu --format firefox 1", "firefox cannot be made"),
    ("offcpu -o x.json.gz 1", "firefox cannot be made"),
    ("report - -o x.json", "json cannot be made"),
    ("record 12abc", "12abc"),
    ("record 0", "'0'"),
    ("record 1m2h", "1m2h"),
    ("record 1 2", "'2'"),
    ("record -d 1 2", "'2'"),
    ("record ls -l", "put -- before a command"),
    ("record 1 --", "no command"),
    ("offcpu -F 99 1", "-F"),
    ("offcpu -m 5ms -M 1ms 1", "-m"),
    ("offcpu --state XYZ 1", "XYZ"),
    ("offcpu --take sideways 1", "sideways"),
    ("offcpu --hist --format json 1", "--hist"),
    ("offcpu --threads -o wrong.html 1", "--threads"),
    ("top extra", "extra"),
    ("top --format pprof", "pprof"),
    ("report", "a file is missing"),
    ("diff a b c", "'c'"),
    ("report - -o x.pdf", "x.pdf"),
    ("report - -n 0", "'0'"),
    ("report --annotate main a b", "leave out b"),
    ("report --annotate main - -o x.html", "leave out -o"),
    ("report --annotate", "needs an argument"),
    ("report --annotate= x", "--annotate: ''"),
    ("diff a", "a file is missing"),
    ("diff - -", "only one"),
    ("diff --match a x y", "OLD=NEW"),
    ("serve --ca-file x /tmp", "--ca-file is for ClickHouse"),
    ("serve http://user@x", "belong in --header-file"),
    ("inspect", "FILE"),
    ("inspect --rows=dwarf x", "dwarf"),
    ("inspect --json --compare x", "exclude each other"),
    ("doctor extra", "extra"),
    ("agent extra", "extra"),
    ("agent --interval 0", "from 0.1s to 3600s"),
    ("agent --spool-size 1x", "a size from"),
    ("agent --protocol smtp", "one of"),
    ("agent -F 0", "from 1 to 10000"),
    ("agent --endpoint ftp://x", "http://HOST"),
)


def complaints(line, needle):
    p = subprocess.run([SFBPF] + line.split(), stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=30)
    tool = line.split()[0]
    prefix = "sfbpf: " if tool in ("recrod", "nonsense", "version") else "sfbpf %s: " % tool
    e = []
    if p.returncode != 2:
        e.append("exit status %d" % p.returncode)
    if os.path.exists("wrong.html"):
        os.unlink("wrong.html")
        e.append("a file was made")
    if p.stdout:
        e.append("stdout %r" % p.stdout[:80])
    if p.stderr.count("\n") != 1 or not p.stderr.startswith(prefix):
        e.append("not one line that begins with '%s'" % prefix)
    if needle not in p.stderr:
        e.append("without '%s'" % needle)
    return e and ["sfbpf %s: %s: %r" % (line, ", ".join(e), p.stderr[:200])]


found = [c for line, needle in WRONG for c in complaints(line, needle)]
if found:
    print("FAIL usage-errors: " + " | ".join(found[:5]))
else:
    print("ok usage-errors")
raise SystemExit(bool(found))
