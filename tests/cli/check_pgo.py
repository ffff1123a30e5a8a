#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""report --pgo on made-up recordings of a small program: counts and compilers, sums of windows,
what is left out and refused, damaged programs and recordings.
"""

import json
import os
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pgo_checks as pgo  # noqa: E402

SFBPF = os.environ.get("SFBPF", os.path.join(pgo.TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))
tmp = tempfile.mkdtemp(prefix="sfbpf-pgo-")
failed = False


def report(name, errors):
    global failed
    failed |= bool(errors)
    print("FAIL pgo-%s: %s" % (name, "; ".join(errors)) if errors else "ok pgo-" + name, flush=True)


def path(name):
    return os.path.join(tmp, name)


def sfbpf(form, program, *files, out=None):
    return pgo.run(SFBPF, "report", "--pgo", form, "-o", out or path("out"), program, *files)


def build_id(program):
    return re.search(r"Build ID: (\w+)", pgo.run("readelf", "-n", program).stdout)[1]


def function(program, name):
    """The file offset and the size of a function."""
    found = re.search(r"(?m)^(\w+) (\w+) t %s$" % name, pgo.run("nm", "-S", program).stdout)
    address, size = int(found[1], 16), int(found[2], 16)
    for m in re.finditer(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)",
                         pgo.run("readelf", "-lW", program).stdout):
        offset, start, length = (int(x, 16) for x in m.groups())
        if start <= address < start + length:
            return address - start + offset, size
    raise ValueError("no segment has " + name)


def recording(program, offsets, count=10, **frame):
    """JSON of `record`: samples in _start;OFFSET, and 5 in the kernel below it, 7 elsewhere."""
    def stack(n, *frames):
        return {"comm": "p", "process": "p", "pid": 1, "count": n, "samples": n,
                "stop": "complete", "frames": list(frames)}

    def at(offset):
        return dict({"name": "f", "module": "p", "kind": "user", "module_id": 3, "offset": offset},
                    **frame)
    kernel = {"name": "k_[k]", "module": "[kernel]", "kind": "kernel"}
    other = {"name": "g", "module": "x", "kind": "user", "module_id": 4, "offset": 1}
    stacks = [stack(count, at(16), at(o)) for o in offsets]
    return json.dumps({
        "meta": {"schema": 1, "unit": "samples"},
        "modules": [{"id": 3, "name": os.path.basename(program), "path": program,
                     "build_id": build_id(program)},
                    {"id": 4, "name": "x", "path": "/x", "build_id": None}],
        "stacks": stacks + [stack(5, at(offsets[0]), kernel), stack(7, other)]})


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def last_line(r):
    return r.stderr.strip().rsplit("\n", 1)[-1]


def refused(name, r, *want, status=1):
    errors = ["%r is not said" % w for w in want if w not in r.stderr]
    if r.returncode != status:
        errors.append("status %d" % r.returncode)
    report(name, errors + ([repr(r.stderr[-300:])] if errors else []))


def check_counts(program, compiler):
    """All of hot's code has samples, so that its loop counts, and both formats have it."""
    start, size = function(program, "hot")
    file = write("a.json", recording(program, range(start, start + size, 2)))
    n = 10 * len(range(start, start + size, 2))
    r = sfbpf("clang", program, file)
    # Clang's padding between blocks has no lines.
    said = re.match(r"sfbpf report: (\d+) samples used; dropped: 5 in the kernel, "
                    r"7 of other programs(?:, (\d+) without lines)?; (\d+)\.\d%% of the %d of" % n,
                    last_line(r))
    good = said and int(said[1]) + int(said[2] or 0) == n and int(said[3]) >= 85
    errors = [] if r.returncode == 0 and good else ["status %d, %r" % (r.returncode, r.stderr)]
    with open(path("out")) as f:
        once = f.read()
    report("account-" + compiler, errors)
    errors = pgo.check_clang(path("out")) if r.returncode == 0 else ["no file"]
    if compiler == "llvm" and not re.search(r"(?m)^ \d+\.\d+: \d", once):
        errors.append("no discriminators: %r" % once[:300])
    report("clang-" + compiler, errors)
    windows = path("windows-" + compiler)
    for i in range(2):
        write("%s/sfbpf-h-%d-%08x.json" % (windows, 1790000000000 + i, i), open(file).read())
    r = sfbpf("clang", program, windows)
    with open(path("out")) as f:
        both = f.read()
    top = [int(t.split(":")[1]) for t in (once, both)]
    report("windows-" + compiler, [] if 1.9 * top[0] < top[1] < 2.1 * top[0] else [
        "%d in one window, %d in two: %s" % (*top, r.stderr)])
    return file


def check_debug_file(program, file):
    """A stripped program and its debug file beside it say the same."""
    sfbpf("clang", program, file, out=path("whole"))
    os.makedirs(path("apart"), exist_ok=True)
    bare, debug = path("apart/prog"), path("apart/prog.debug")
    pgo.run("objcopy", "--only-keep-debug", program, debug)
    pgo.run("objcopy", "--strip-debug", "--add-gnu-debuglink=" + debug, program, bare)
    r = sfbpf("clang", bare, file)
    with open(path("whole")) as a, open(path("out")) as b:
        same = a.read() == b.read()
    report("debug-file", [] if r.returncode == 0 and same else [r.stderr])


def check_gcc(program, file):
    r = sfbpf("gcc", program, file)
    report("gcc", pgo.check_gcc(path("out"), tmp) if r.returncode == 0 else [r.stderr])


LOCAL = """static __attribute__((noinline)) unsigned same(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		n = n * %d + (n >> 3);
	return n;
}
unsigned %s(unsigned n) { return same(n); }
"""


def check_bolt(program, file):
    """The places are those of the recording. Local functions of one name have their numbers, as
    llvm-bolt, if it is here, counts them.
    """
    r = sfbpf("bolt", program, file)
    start, size = function(program, "hot")
    with open(path("out")) as f:
        lines = f.read().splitlines()
    want = ["1 hot/1 %x 10" % i for i in range(0, size, 2)]
    errors = [] if r.returncode == 0 and lines == ["no_lbr samples"] + want else [
        r.stderr, repr(lines[:5])]
    sources = [write(name + ".c", LOCAL % (n, name)) for n, name in ((3, "one"), (5, "two"))]
    two = pgo.build("gcc", path("two-locals"), "-Wl,--emit-relocs", *sources)
    symbols = sorted(re.findall(r"(?m)^(\w+) (\w+) t same$", pgo.run("nm", "-S", two).stdout))
    first, _ = function(two, "same")
    second = first + int(symbols[1][0], 16) - int(symbols[0][0], 16)
    r = sfbpf("bolt", two, write("two.json", recording(two, [second + 2, first + 4])))
    with open(path("out")) as f:
        text = f.read()
    if text != "no_lbr samples\n1 same/1 4 10\n1 same/2 2 10\n":
        errors.append("two locals: %r %s" % (text, r.stderr))
    bolt = shutil.which("llvm-bolt") or shutil.which("llvm-bolt-19")
    if bolt:
        r = pgo.run(bolt, two, "-nl", "-data", path("out"), "-o", path("bolted"))
        if r.returncode or "2 out of " not in r.stdout + r.stderr:
            errors.append("llvm-bolt: " + (r.stdout + r.stderr)[-300:])
    else:
        print("SKIP pgo-llvm-bolt: not installed")
    report("bolt", errors)


def check_refused(program, file):
    other = pgo.build("gcc", path("other/" + os.path.basename(program)), "-DOTHER=1", "-O1")
    refused("stale", sfbpf("clang", other, file), build_id(other), build_id(program),
            "of another build")
    refused("folded", sfbpf("clang", program, write("f.folded", "p;main;hot 5\n")),
            "dropped: 5 without addresses")
    refused("stripped", sfbpf("clang", stripped(program), file), "no debug information")
    refused("not-go", sfbpf("go", program, file), "not a program of Go")
    refused("no-id", sfbpf("clang", pgo.build("gcc", path("no-id"), "-Wl,--build-id=none"), file),
            "no build-id")
    refused("unit", sfbpf("clang", program, write("off.json", open(file).read().replace(
        '"unit": "samples"', '"unit": "microseconds"'))), "counts microseconds")
    refused("format", sfbpf("rustc", program, file), "not go, clang", status=2)
    refused("operand", sfbpf("clang", program), "needs the program and a recording", status=2)
    refused("rows", sfbpf("clang", "-n", "5", program, file), "leave out -n", status=2)
    refused("clickhouse", sfbpf("clang", program, "http://h/?database=d"), "has no addresses",
            status=2)
    refused("not-elf", sfbpf("clang", file, file), "not an ELF file")


def stripped(program):
    pgo.run("objcopy", "--strip-debug", program, path("stripped"))
    return path("stripped")


def check_hostile(program, file):
    """Damaged programs with the right build-id, and recordings with odd numbers, end in time."""
    with open(program, "rb") as f:
        good = f.read()
    spot = good.index(bytes.fromhex(build_id(program)))
    rng = random.Random(7)
    errors = []
    for n in range(25):
        bad = bytearray(good)
        for _ in range(1 << n % 9):
            i = rng.randrange(64, len(bad))
            if not spot - 16 <= i < spot + 20:
                bad[i] = rng.randrange(256)
        with open(path("bad"), "wb") as f:
            f.write(bad[:len(bad) // 2] if n == 24 else bad)
        for form in ("clang", "gcc", "go", "bolt"):
            began = time.monotonic()
            r = sfbpf(form, path("bad"), file)
            if r.returncode not in (0, 1) or time.monotonic() - began > 60:
                errors.append("program %d, %s: status %d, %s" % (n, form, r.returncode,
                                                                 r.stderr[-200:]))
    start, _ = function(program, "hot")
    odd = [0, 1, 2**43, 2**44 - 1, 2**63, 2**64 - 1, -5, 1.5, start]
    text = recording(program, odd)
    for what, changed in (("odd", text), ("cut", text[:len(text) // 2]),
                          ("counts", text.replace('"count": 10', '"count": 18446744073709551615')),
                          ("ids", text.replace('"id": 4', '"id": 3'))):
        r = sfbpf("clang", program, write("odd.json", changed))
        if r.returncode not in (0, 1):
            errors.append("%s: status %d, %s" % (what, r.returncode, r.stderr[-200:]))
    report("hostile", errors)


def main():
    os.makedirs(path("other"))
    program = pgo.build("gcc", path("prog"))
    file = check_counts(program, "gcc")
    if shutil.which("clang"):
        os.makedirs(path("llvm"))
        check_counts(pgo.build("clang", path("llvm/prog"), "-fdebug-info-for-profiling"), "llvm")
        file = write("a.json", open(file).read())
    else:
        print("SKIP pgo-llvm: no clang")
    start, size = function(program, "hot")
    file = write("b.json", recording(program, range(start, start + size, 2)))
    check_gcc(program, file)
    check_bolt(program, file)
    check_debug_file(program, file)
    check_refused(program, file)
    check_hostile(program, file)
    shutil.rmtree(tmp)
    return failed


sys.exit(main())
