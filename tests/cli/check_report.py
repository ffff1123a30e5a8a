#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""report and diff on stored and made-up files: the formats agree, exit codes, pipes, empty and
large inputs.
"""

import gc
import gzip
import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import flame_page  # noqa: E402
import json_schema  # noqa: E402
import pprof_read  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.environ.get("SFBPF", os.path.join(TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus", "stacks")
tmp = tempfile.mkdtemp(prefix="sfbpf-report-")
failed = 0


def report(name, errors):
    global failed
    failed += bool(errors)
    print("FAIL %s: %s" % (name, "; ".join(errors)) if errors else "ok %s" % name, flush=True)


def path(name):
    return os.path.join(tmp, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return path(name)


def run(*args, **more):
    return subprocess.run([SFBPF, *args], capture_output=True, timeout=60, check=False, **more)


def folded(file):
    r = run("report", "--format", "folded", file)
    if r.returncode:
        raise ValueError(r.stderr.decode())
    return parse(r.stdout.decode())


def parse(text):
    out = Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        out[tuple(stack.split(";"))] += int(count)
    return out


# ---- pprof files by hand ----

def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(n, v):
    return varint(n << 3) + varint(v)


def make_pprof(stacks):
    names, locations, out = {"": 0, "samples": 1, "count": 2,
                             "comm": 3}, {}, [field(1,
                                                    number(1, 1) + number(2, 2))]
    for s, count in stacks.items():
        ids = b"".join(varint(locations.setdefault(f, len(locations) + 1)) for f in reversed(s[1:]))
        comm = names.setdefault(s[0], len(names))
        out.append(
            field(
                2,
                field(1, ids) + field(2, varint(count)) + field(3,
                                                                number(1, 3) + number(2, comm))))
    for f, i in locations.items():
        out.append(field(5, number(1, i) + number(2, names.setdefault(f, len(names)))))
        out.append(field(4, number(1, i) + field(4, number(1, i))))
    return gzip.compress(b"".join(out + [field(6, n.encode()) for n in names]), 1)


def make_json(stacks):
    return json.dumps(
        {
            "meta": {"schema": 1, "unit": "samples"}, "stacks": [{
                "comm": s[0], "pid": 1, "count": n, "samples": n, "stop": "complete",
                "frames": [{"name": f, "module": "", "kind": "user"} for f in s[1:]]
            } for s, n in stacks.items()]
        }, separators=(",", ":"))


def make_folded(stacks):
    return "".join("%s %d\n" % (";".join(s), n) for s, n in stacks.items())


# ---- Checks ----

def check_formats(name):
    """Stored recordings: every reader has the same stacks and totals."""
    errors = []
    for file in ("pprof", "json", "folded"):
        file = os.path.join(CORPUS, file)
        want = folded(file)
        out = path("f.html")
        run("report", file, "-o", out)
        if not want or flame_page.total(out)[0] != sum(want.values()):
            errors.append("%s: %d in the page, %d folded" %
                          (file, flame_page.total(out)[0], sum(want.values())))
        text = run("report", file).stdout.decode().splitlines()
        if not re.match(r"%d samples( of |$)" % sum(want.values()), text[-1]):
            errors.append("%s: %s, %d folded" % (file, text[-1], sum(want.values())))
        again = write("again.folded", make_folded(want))
        if folded(again) != want:
            errors.append("%s: folded lines read back differ" % file)
    with open(os.path.join(CORPUS, "json"), encoding="utf-8") as f:
        errors += json_schema.problems(json.load(f))
    report(name, errors)


def check_pprof(name):
    file = os.path.join(CORPUS, "pprof")
    want, errors = folded(file), []
    try:
        got = pprof_read.stacks(pprof_read.with_protobuf(file))
        if got != want:
            errors.append("the protobuf library reads %d, report %d" %
                          (sum(got.values()), sum(want.values())))
    except ImportError:
        print("SKIP %s-protobuf: the library is not installed" % name)
    shutil.copy(file, path("p.pb.gz"))
    go = pprof_read.with_go(path("p.pb.gz"), tmp)
    if not go:
        print("SKIP %s-go: go is not installed" % name)
    elif go[0] != sum(want.values()):
        errors.append("go has %d samples, report %d" % (go[0], sum(want.values())))
    if go:
        selfs = Counter()
        for s, n in want.items():
            selfs[s[-1]] += n
        differ = {f: (go[1][f], n) for f, n in selfs.items() if go[1][f] != n}
        if differ:
            errors.append("self of functions in go and here: %s" % list(differ.items())[:3])
    report(name, errors)


def check_exit_codes(name):
    errors, good, empty = [], os.path.join(CORPUS, "folded"), write("empty", "")
    off = os.path.join(CORPUS, "json-off-cpu")
    for want, args in ((0, ["report", good]), (0, ["report", good, "-n",
                                                   "1"]), (0, ["report", "-n", "1", "--",
                                                               good]), (0, ["diff", good, good]),
                       (0, ["report",
                            empty]), (0, ["diff", empty,
                                          good]), (0, ["report", empty, "-o",
                                                       path("e.html")]), (0, ["report", "--help"]),
                       (1, ["report",
                            path("missing")]), (1, ["report",
                                                    tmp]), (1, ["report", good, "-o", "/dev/full"]),
                       (1, ["report", good, "-o",
                            tmp]), (1, ["diff", good, off]), (1, ["report",
                                                                  write("bad", "a;b\n")]),
                       (2, ["report"]), (2, ["diff", good, good,
                                             good]), (2, ["diff", good]), (2, ["diff", "-", "-"]),
                       (2, ["report", good, "--format",
                            "xml"]),
                       (2, ["report", good, "-o", path("x.json")]),
                       (2, ["report", good, "-n",
                            "0"]), (2, ["report", good, "-n",
                                        "12abc"]), (2, ["report", good, "-n",
                                                        ""]), (2, ["report", "--nonsense", good])):
        r = run(*args, stdin=subprocess.DEVNULL)
        lines = r.stderr.decode().splitlines()
        if r.returncode != want or (want and not lines) or (want == 1 and
                                                            len(lines) != 1) or (not want and
                                                                                 lines):
            errors.append("%s: exit %d, want %d; %s" % (" ".join(args), r.returncode, want, lines))
        for f in ("x.pb.gz", "x.json"):
            if os.path.exists(path(f)):
                errors.append("%s was made" % f)
    rejects = os.path.join(TOP, "tests", "fuzz", "reject", "stacks")
    for f in sorted(os.listdir(rejects)):
        r = run("report", os.path.join(rejects, f))
        if r.returncode != 1 or len(r.stderr.splitlines()) != 1 or r.stdout:
            errors.append("%s: exit %d, %s" % (f, r.returncode, r.stderr.decode()))
    report(name, errors)


def symbol_of(elf, function):
    """(address, file offset, size, build-id) as readelf says."""
    def out(*options):
        return subprocess.run(["readelf", "-W", *options, elf], capture_output=True, text=True,
                              check=True, timeout=60).stdout
    sym = next(w for w in (line.split() for line in out("-s").splitlines())
               if len(w) == 8 and w[7] == function)
    value, size = int(sym[1], 16), int(sym[2], 0)
    for w in (line.split() for line in out("-l").splitlines()):
        if w[:1] == ["LOAD"] and int(w[2], 16) <= value < int(w[2], 16) + int(w[4], 16):
            return (value, value - int(w[2], 16) + int(w[1], 16), size,
                    re.search(r"Build ID: (\w+)", out("-n"))[1])
    raise ValueError("no segment has %s" % function)


def annotated(function, elf, build_id, offsets):
    """The profile has one stack per (offset, count), one elsewhere, and one in the kernel."""
    def frame(name, kind, **more):
        return dict(name=name, module="x", kind=kind, **more)
    def stack(count, *frames):
        return dict(comm="x", pid=1, count=count, stop="complete", frames=list(frames))
    def user(offset, name=function, kind="user"):
        return frame(name, kind, module_id=7, offset=offset)
    main = user(5, "main")
    profile = {
        "meta": {"schema": 1, "unit": "samples"},
        "modules": [{"id": 6, "name": "y", "path": "/nowhere", "build_id": None},
                    {"id": 7, "name": "x", "path": elf, "build_id": build_id}],
        "stacks": [stack(n, main, user(o)) for o, n in offsets] + [
            stack(1, main, user(offsets[0][0]), user(offsets[0][0], "small_[i]", "inlined")),
            stack(3, user(offsets[0][0]), main),
            stack(2, user(offsets[0][0]), frame("vfs_read", "kernel"))]
    }
    data = json.dumps(profile, separators=(",", ":"))
    return run("report", "--annotate", function, write("annotate.json", data))


def check_annotate(name):
    elf, function, errors = os.path.realpath(SFBPF), "options_parse", []
    try:
        address, offset, size, build_id = symbol_of(elf, function)
    except (OSError, StopIteration, TypeError, subprocess.CalledProcessError) as e:
        print("SKIP %s: no readelf, or no symbols and build-id in %s (%r)" % (name, elf, e))
        return
    r = annotated(function, elf, build_id, [(offset, 2), (offset + size - 1, 1)])
    if b"disassembler" in r.stderr:
        print("SKIP %s: built without Zydis" % name)
        return
    lines = r.stdout.decode().splitlines()
    if r.returncode or r.stderr or lines[:2] != ["%s  %s" % (function, elf),
                                                 "4 samples in it, 44.4% of all"]:
        errors.append("exit %d, %s, %s" % (r.returncode, r.stderr, lines[:2]))
    code = [(line[:7].strip(), int(line[7:19], 16), line[21:]) for line in lines[3:]]
    if [c[0] for c in code if c[0]] != ["75.0", "25.0"] or not code[0][0] or not code[-1][0]:
        errors.append("shares %s" % [c for c in code if c[0]])
    if not code or code[0][1] != address or not address < code[-1][1] < address + size or \
            any(a[1] >= b[1] for a, b in zip(code, code[1:])) or any("bad" in c[2] for c in code):
        errors.append("%s to %s of %x, %d bytes" % (code[:1], code[-1:], address, size))
    for want, r in (("build-id", annotated(function, elf, "00" * 20, [(offset, 1)])),
                    ("no such file", annotated(function, "/nowhere", build_id, [(offset, 1)])),
                    ("Invalid argument", annotated(function, "/dev/null", build_id, [(offset, 1)])),
                    ("no such function", annotated(function, elf, build_id, [(1 << 40, 1)])),
                    ("no stack ends", run("report", "--annotate", "nosuch", path("annotate.json"))),
                    ("JSON", run("report", "--annotate", "x", os.path.join(CORPUS, "pprof"))),
                    ("JSON", run("report", "--annotate", "x", os.path.join(CORPUS, "folded"))),
                    ("JSON", run("report", "--annotate", "x", write("cut", '{"meta":{},"stacks":[')
                                 ))):
        if r.returncode != 1 or r.stdout or len(r.stderr.splitlines()) != 1 or want.encode(
        ) not in r.stderr:
            errors.append("%s: exit %d, %s" % (want, r.returncode, r.stderr))
    report(name, errors)


def check_pipes(name):
    errors = []
    for file in ("pprof", "json", "folded"):
        with open(os.path.join(CORPUS, file), "rb") as f:
            data = f.read()
        want = run("report", os.path.join(CORPUS, file)).stdout
        if run("report", "-", input=data).stdout != want:
            errors.append("%s: a pipe reads differently" % file)
        if run("diff", os.path.join(CORPUS, file), "-", input=data).returncode:
            errors.append("%s: diff does not read a pipe" % file)
    head = subprocess.run("'%s' report '%s' | head -n 1" % (SFBPF, os.path.join(CORPUS, "json")),
                          shell=True, capture_output=True, text=True, check=False)
    if head.stderr or "FUNCTION" not in head.stdout:
        errors.append("| head: %s%s" % (head.stdout, head.stderr))
    report(name, errors)


def check_terminal(name):
    """Lines are cut at a terminal's width, and nowhere else."""
    long = write("long.folded", "a;main;%s 5\na;main;x_%s 4\n" % ("verylong" * 40, "y" * 300))
    master, slave = pty.openpty()
    subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=slave, check=True)
    p = subprocess.Popen([SFBPF, "report", long], stdout=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        text += data
    p.wait()
    os.close(master)
    errors = [
        "%d columns: %s" % (len(line), line) for line in text.decode().splitlines()
        if len(line) > 80
    ]
    if "~" not in text.decode():
        errors.append("no mark where names are cut")
    if "verylong" * 40 not in run("report", long).stdout.decode():
        errors.append("cut in a pipe")
    report(name, errors)


# CPU time, at most so many times what Python takes to read the JSON file, or to make a tree of the
# folded lines: the speed of the machine, of its caches and of its memory is in both.
LARGE_LIMIT = {"folded": .72, "json": 1.65, "pprof": .55}


def timed(*args):
    """What it writes, and its CPU time: others may keep the CPUs busy."""
    p = subprocess.Popen([SFBPF, *args], stdout=subprocess.PIPE)
    out = p.stdout.read()
    p.stdout.close()
    usage = os.wait4(p.pid, 0)[2]
    p.returncode = 0
    return out, usage.ru_utime + usage.ru_stime


def large_stacks():
    rng = random.Random(7)
    names = ["ns%d::function_%d" % (i % 50, i) for i in range(20000)]
    stacks = {}
    while len(stacks) < 100000:
        h, s = rng.randrange(6), ["comm_" + rng.choice("abcdef"), "_start", "main"]
        for _ in range(rng.randrange(8, 45)):
            h = (h * 31 + (0 if rng.random() < .8 else rng.randrange(6))) % len(names)
            s.append(names[h])
        stacks[tuple(s)] = rng.randrange(1, 4)
    return stacks


def count_nodes(text):
    """Of the tree of all stacks, whose nodes have numbers."""
    names, nodes = {}, {}
    for line in text.splitlines():
        node = 0
        for name in line.rpartition(" ")[0].split(";"):
            key = node << 32 | names.setdefault(name, len(names))
            node = nodes.setdefault(key, len(nodes) + 1)
    return len(nodes)


def python_reads(kind, file, text):
    """The CPU time of Python, without that of its search for garbage."""
    gc.disable()
    start = time.process_time()
    if kind == "json":
        with open(file, encoding="ascii") as f:
            json.load(f)
    else:
        count_nodes(text)
    took = time.process_time() - start
    gc.enable()
    return took


def large_run(kind, file, stacks, text):
    """What is wrong, and whether it took too long beside Python."""
    want, errors, times = sum(stacks.values()), [], []
    python = python_reads(kind, file, text)
    for out in ((), ("-o", path("l.html")), ("--format", "folded")):
        r, took = timed("report", file, *out)
        times.append(took)
        if not out and not re.match(r"%d samples\b" % want, r.decode().splitlines()[-1]):
            errors.append("%s: %s, want %d" % (kind, r.decode().splitlines()[-1], want))
        if out == ("--format", "folded") and parse(r.decode()) != stacks:
            errors.append("%s: the stacks differ" % kind)
    print("# %s of %.1f MB, 100,000 stacks: CPU time of %s; Python reads in %.2f s" %
          (kind, os.path.getsize(file) / 1e6, ", ".join(
              "%s %.2f s" % t for t in zip(("text", "html", "folded"), times)), python))
    return errors, max(times) >= LARGE_LIMIT[kind] * python


def check_large(name):
    """100,000 stacks of 26 frames. A time that is too long is measured twice more."""
    stacks, errors = large_stacks(), []
    files = {
        "folded": write("l.folded", make_folded(stacks)),
        "json": write("l.json", make_json(stacks)), "pprof": write("l.pb.gz", make_pprof(stacks))
    }
    with open(files["folded"], encoding="ascii") as f:
        text = f.read()
    for kind, file in files.items():
        wrong, slow = large_run(kind, file, stacks, text)
        for _ in range(2):
            slow = slow and large_run(kind, file, stacks, text)[1]
        errors += wrong + ["%s takes too long" % kind] * slow
    report(name, errors)


def check_diff(name):
    old = write("old.folded", "a;main;same 500\na;main;less 300\na;main;gone 200\n")
    new = write(
        "new.pb.gz",
        make_pprof({("a", "main", "same"): 1000, ("a", "main", "less"): 150,
                    ("a", "main", "few"): 5, ("a", "main", "more"): 800}))
    errors = []
    out = run("diff", old, new).stdout.decode()
    rows = [r"^samples\n", r"\n +0 +800 +\+800 +58 +800 +\+800 +more\n",
            r"\n +200 +0 +-200 +28 +0 +-200 +gone\n", r"\n +0 +5 +\(\+5\) .* few\n",
            r"\n +0 +0 +- .* 1955 +\+955 +main\n"]
    errors += ["table: no %s in %s" % (row, out) for row in rows if not re.search(row, out, re.M)]
    names = re.findall(r"(?m)^ .* (\S+)\n", out)[1:]
    if names[:6] != ["more", "same", "gone", "less", "main", "few"]:
        errors.append("order: %s" % names)
    if "\n1000 samples before, 1955 after; changes in parentheses" not in out:
        errors.append("last line: %s" % out[-100:])
    if "; 2 functions explain all of it\n" not in out:
        errors.append("verdict: %s" % out[:300])
    out = run("diff", "--share", old, new).stdout.decode()
    if not re.search(r"\n +50\.00 +51\.15 +\(\+1\.15\) .* same\n", out):
        errors.append("shares: %s" % out)
    lines = run("diff", "--format", "folded", old, new).stdout.decode().splitlines()
    if sorted(lines) != [
            "a;main;few 0 5", "a;main;gone 200 0", "a;main;less 300 150", "a;main;more 0 800",
            "a;main;same 500 1000"
    ]:
        errors.append("lines: %s" % lines)
    report(name, errors)


def check_diff_json(name):
    """The keys, and that the numbers fit together."""
    def profile(side, **seconds):
        stacks = [{
            "comm": "prog", "pid": 1, "count": n, "samples": n, "stop": "complete",
            "frames": [{"name": f, "module": "", "kind": "user"} for f in ("main", function)]
        } for function, n in seconds.items()]
        meta = {"schema": 1, "unit": "samples", "event": "cpu-clock", "hz": 1000, "duration_s": 20}
        return write(side, json.dumps({"meta": meta, "stacks": stacks}))

    old, new = profile("o.json", a=8000, b=4000, c=20), profile("n.json", a=8010, b=2000, c=25)
    errors = []
    numbers = ["before", "after", "change", "low", "high"]
    for unit, scale, args in (("cpu_s_per_s", 20000, []), ("cpu_s", 1000, ["--per", "run"]),
                              ("per_unit", 200000, ["--per", "200:200"]),
                              ("share", 12020, ["--share"])):
        got = json.loads(run("diff", "--format", "json", *args, old, new).stdout)
        if got["unit"] != unit or got["schema"] != 1 or got["verdict"] != "faster":
            errors.append("%s: %s" % (unit, got))
        for f in got["functions"]:
            for p in ("", "total_"):
                before, after, change, low, high = (f[p + k] for k in numbers)
                if abs(after - before - change) > 1e-8 or not low <= change <= high:
                    errors.append("%s: %s" % (unit, f))
        f = {f["name"]: f for f in got["functions"]}
        if abs(f["a"]["before"] - 8000 / scale) > 1e-6:
            errors.append("%s: a %s" % (unit, f["a"]))
        if got["functions"][0]["name"] != ("b" if unit != "share" else "a" if abs(
                f["a"]["change"]) > abs(f["b"]["change"]) else "b"):
            errors.append("%s: not by size" % unit)
        real = [n for n in f if f[n]["real"]]
        if unit != "share" and real != ["b"] or not f["b"]["real"]:
            errors.append("%s: real: %s" % (unit, real))
        if not got["low"] < got["change"] < got["high"] < 0 < got["smallest_visible"]:
            errors.append("%s: %s" % (unit, got))
    if run("diff", "-o", path("d.json"), old, new).returncode:
        errors.append("the suffix .json")
    report(name, errors)


def check_diff_moves(name):
    """Functions that were renamed, inlined or moved are no change; programs of two versions."""
    old = ["main;old 2000", "main;host 500", "main;host;small 1500", "main;a;f;g 3000",
           "main;a 900", "main;b 900", "main;slow 4000"]
    new = ["main;young 2010", "main;host 1980", "main;b;f;g 2990", "main;a 910", "main;b 895",
           "main;slow 2000"]
    sides = (("v1.folded", "prog-1.2", old), ("v2.folded", "prog-1.10", new))
    files = [write(n, "".join(prog + ";" + line + "\n" for line in lines))
             for n, prog, lines in sides]
    out = run("diff", *files).stdout.decode()
    wanted = [
        r"^faster: .*; 1 function explains 99 % of it$",
        r"\(\+10\) .* young, renamed from old$", r"\(-1500\) .* small, inlined into host$",
        r"\(-20\) .* host, with small$", r"\(-10\) f, moved below b$", r"\(-2990\) a$",
        r"-2000 +\d+ +2000 +-2000  slow$"
    ]
    errors = ["no %s in %s" % (want, out) for want in wanted if not re.search(want, out, re.M)]
    real = re.findall(r"(?m)^ +\d+ +\d+ +[+-]\d+ .* (\S+)$", out)
    if real != ["slow"]:
        errors.append("real: %s" % real)
    notes = {f["name"]: f["note"] for f in json.loads(
        run("diff", "--format", "json", *files).stdout)["functions"] if "note" in f}
    if notes != {"young": "renamed from old", "small": "inlined into host", "host": "with small",
                 "f": "moved below b"}:
        errors.append("JSON: %s" % notes)
    for args in ([], ["--match", "o*=young", "--match", "prog-1.2=other"]):
        lines = run("diff", "--format", "folded", *args, *files).stdout.decode().splitlines()
        want = (["prog-1.10;main;slow 4000 2000", "prog-1.10;main;old 2000 0"] if not args else
                ["other;main;slow 4000 0", "other;main;young 2000 0"])
        errors += ["folded: no '%s': %s" % (line, lines) for line in want if line not in lines]
    # The command of each side, whatever it is called; not other programs
    runs = [write(n, make_run(9, "./" + prog).replace('"prog"', '"%s"' % prog))
            for n, prog in (("r1.json", "before"), ("r2.json", "after"))]
    if run("diff", "--format", "folded", *runs).stdout != b"after;main 9000 9000\n":
        errors.append("commands: %s" % run("diff", "--format", "folded", *runs).stdout)
    two = [write("t1.folded", "p1;f 5\np2;f 5\n"), write("t2.folded", "p3;f 5\n")]
    if run("diff", "--format", "folded", *two).stdout != b"p1;f 5 0\np2;f 5 0\np3;f 0 5\n":
        errors.append("two of a side: %s" % run("diff", "--format", "folded", *two).stdout)
    report(name, errors)


def make_run(seconds, command=None):
    """JSON of a run at 1,000 Hz that took so much CPU time."""
    meta = {"schema": 1, "unit": "samples", "event": "cpu-clock", "hz": 1000, "duration_s": 20}
    if command:
        meta["command"] = command
    stack = {
        "comm": "prog", "pid": 1, "count": round(1000 * seconds), "samples": round(1000 * seconds),
        "stop": "complete", "frames": [{"name": "main", "module": "", "kind": "user"}]
    }
    return json.dumps({"meta": meta, "stacks": [stack]})


def check_verdict(name):
    def files(side, *seconds):
        return [write("%s%d.json" % (side, i), make_run(s, "prog")) for i, s in enumerate(seconds)]

    def first(*args):
        r = run("diff", *args)
        return r.stdout.decode().split("\n")[0] or r.stderr.decode()

    old, new = files("old", 14.3, 14.2, 14.5), files("new", 10.7, 10.8, 10.6)
    rate = [write("r%d.json" % i, make_run(s)) for i, s in enumerate((14.3, 14.35))]
    wanted = [
        (old[:1] + new[:1], r"faster: 14\.3 s -> 10\.7 s of CPU time \(-25\.2 %, 95 % interval "
         r"-2\d\.\d to -2\d\.\d %; a change of \d\.\d % or more would have been seen\)$"),
        (new[:1] + old[:1], r"slower: .* \(\+33\.6 %"),
        (old + ["--"] + new, r"faster: 14\.33 s -> 10\.7 s of CPU time \(-25\.3 %"),
        (old[:2] + ["--"] + old[2:], r"no difference: 14\.25 s -> 14\.5 s of CPU time \("),
        (rate, r"no difference: 0\.715 s -> 0\.7175 s of CPU time per second \("),
        (["--per", "run"] + rate, r"no difference: 14\.3 s -> 14\.35 s of CPU time \("),
        (["--per", "1000:1001"] + rate, r"no difference: 0\.0143 s .* per unit of work \("),
        (["--per", "1000"] + rate, r"sfbpf diff: --per: '1000' is not run, second"),
        (old, r"sfbpf diff: unexpected "),
        (["--"] + old, r"sfbpf diff: no file is before --"),
    ]
    errors = ["%s: %s" % (args, first(*args)) for args, want in wanted
              if not re.match(want, first(*args))]
    r = run("diff", "-o", path("v.html"), old[0], new[0])
    if not r.stderr.decode().startswith("sfbpf diff: faster: ") or r.returncode:
        errors.append("html: %s" % r.stderr.decode())
    r = run("diff", "--format", "folded", old[0], new[0])
    if r.stderr or r.stdout != b"prog;main 14300 10700\n":
        errors.append("folded: %s" % (r.stdout + r.stderr).decode())
    report(name, errors)


CHECKS = [
    check_formats, check_pprof, check_exit_codes, check_annotate, check_pipes, check_terminal,
    check_diff, check_diff_json, check_diff_moves, check_verdict, check_large
]


def main():
    if not os.access(SFBPF, os.X_OK):
        print("SKIP report: %s is not built" % SFBPF)
        return
    try:
        for fn in CHECKS:
            name = "report-" + fn.__name__.replace("check_", "").replace("_", "-")
            try:
                fn(name)
            except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as e:
                report(name, ["%s: %s" % (type(e).__name__, e)])
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
