#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""sfbpf inspect against other people's readers: readelf -wF for .eh_frame, GNU objdump's dumps for
.sframe.

usage: check_inspect.py [SFBPF]    (default: build/sfbpf) Prints "ok NAME", "FAIL NAME: why" or
"SKIP NAME: why"; exit 1 if any failed. The dumps are the fixtures' (SFBPF_FIXTURES, by default
../shared/fixtures); without them their tests are skipped.
"""
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.environ.get("SFBPF_FIXTURES") or os.path.join(ROOT, "..", "shared", "fixtures")
SFBPF = ""
failed = 0


class Skip(Exception):
    pass


class Failure(Exception):
    pass


def check(condition, why):
    if not condition:
        raise Failure(why)


def test(name, fn, *args):
    global failed
    try:
        fn(*args)
        print("ok", name, flush=True)
    except Skip as e:
        # Set but empty: scripts/test.sh says once that there are none.
        left_out = os.environ.get("SFBPF_FIXTURES") == "" and str(e) == "no fixtures"
        print("# left out: " + name if left_out else "SKIP %s: %s" % (name, e), flush=True)
    except (Failure, subprocess.TimeoutExpired) as e:
        failed += 1
        print("FAIL %s: %s" % (name, str(e)[:400]), flush=True)


def limits():
    # An address sanitizer reserves terabytes; it has limits of its own.
    if not os.environ.get("SFBPF_NO_MEMORY_LIMIT"):
        resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))


def inspect(*args, timeout=60):
    return subprocess.run([SFBPF, "inspect", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout, errors="replace", preexec_fn=limits)


# ---- Rows as inspect prints them
# ---------------------------------------------------------------------------

ROW = re.compile(
    r"^([0-9a-f]{16}) ([0-9a-f]{16}) (sframe|eh_frame|code) "
    r"cfa=(\S+) ra=(\S+) fp=(\S+)( signal)?( pac)?"
    r"(?: plt rep=(\d+)(?: at=(\d+))?)?$")


class Row:
    __slots__ = ("start", "end", "source", "cfa", "ra", "fp", "flags", "rep", "at")

    def __init__(self, start, end, cfa, ra, fp, flags="", rep=0, at=0, source=""):
        self.start, self.end, self.cfa, self.ra, self.fp = start, end, cfa, ra, fp
        self.flags, self.rep, self.at, self.source = flags, rep, at, source

    def rules(self):
        return "cfa=%s ra=%s fp=%s%s" % (self.cfa, self.ra, self.fp, self.flags)


def rows_of(path, source="merged"):
    p = inspect("--rows=" + source, path)
    rows = []
    for line in p.stdout.splitlines():
        m = ROW.match(line)
        check(m, "bad row line %r" % line)
        s, e, src, cfa, ra, fp, signal, pac, rep, at = m.groups()
        rows.append(
            Row(int(s, 16), int(e, 16), cfa, ra, fp, (signal or "") + (pac or ""), int(rep or 0),
                int(at or 0), src))
    return p, rows


def check_order(rows, segments):
    last = None
    for r in rows:
        check(r.start < r.end, "empty row at %x" % r.start)
        check(any(a <= r.start and r.end <= b for a, b in segments),
              "row %x-%x outside of code" % (r.start, r.end))
        if last:
            same_block = r.rep and last.rep == r.rep and (r.start,
                                                          r.end) == (last.start,
                                                                     last.end) and r.at > last.at
            check(r.start >= last.end or same_block, "row %x overlaps the one before" % r.start)
        last = r


# ---- ELF, as much as is needed
# ------------------------------------------------------------------------------

def exec_segments(path):
    with open(path, "rb") as f:
        head = f.read(64)
        order = "<" if head[5] == 1 else ">"
        phoff, = struct.unpack_from(order + "Q", head, 32)
        phnum, = struct.unpack_from(order + "H", head, 56)
        f.seek(phoff)
        data = f.read(56 * phnum)
    found = []
    for i in range(phnum):
        kind, flags, _, vaddr, _, filesz = struct.unpack_from(order + "IIQQQQ", data, 56 * i)
        if kind == 1 and flags & 1 and filesz:
            found.append((vaddr, vaddr + filesz))
    return sorted(found)


def clip(functions, segments):
    """[(start, end, rows)] sorted, cut where the next one starts, none that starts outside of code.
    """
    kept = []
    for start, end, rows in sorted(functions, key=lambda f: f[0]):
        seg = [s for s in segments if s[0] <= start < s[1]]
        if not seg or end <= start:
            continue
        if kept and kept[-1][0] == start:
            kept.pop()
        elif kept and kept[-1][1] > start:
            kept[-1] = (kept[-1][0], start, kept[-1][2])
        kept.append((start, min(end, seg[0][1]), rows))
    return kept


# ---- .eh_frame against readelf
# ------------------------------------------------------------------------------

def readelf_functions(path):
    env = dict(os.environ, LC_ALL="C")
    out = subprocess.run(["readelf", "-wF", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, env=env).stdout
    functions, cies, columns, rows, inside = [], {}, [], None, False
    for line in out.splitlines():
        if line.startswith("Contents of the "):
            inside = ".eh_frame " in line
        if not inside:
            continue
        m = re.match(
            r"^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ "
            r"(?:CIE|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))",
            line)
        if m:
            rows = []
            if m.group(2):
                functions.append((int(m.group(3), 16), int(m.group(4),
                                                           16), rows, int(m.group(2), 16)))
            else:
                cies[int(m.group(1), 16)] = rows
            continue
        fields = re.findall(r"r\d+ \(\w+\)|\S+", line)
        if fields and fields[0] == "LOC":
            columns = fields[1:]
        elif rows is not None and re.match(r"^[0-9a-f]{16} ", line):
            rows.append((int(fields[0], 16), dict(zip(columns, fields[1:]))))
    # A function without instructions has its CIE's rules, which readelf shows there only.
    return [(s, e, r or [(s, cies[cie][-1][1])]) for s, e, r, cie in functions]


def place(text):
    """readelf's "c-16" or "r9 (r9)" as inspect has it; None: not comparable."""
    m = re.match(r"^c([+-]\d+)$", text)
    r = re.match(r"^r\d+ \((\w+)\)$", text)
    return "*(cfa%s)" % m.group(1) if m else r.group(1) + "+0" if r else None


def expect_eh(columns):
    # A rule for sp, as in code that jumps to another frame: a row has that sp as its CFA.
    if columns.get("rsp", "c+0") != "c+0":
        return None, None, (None,)
    cfa, ra, fp = columns.get("CFA", "exp"), columns.get("ra", "u"), columns.get("rbp", "u")
    return (cfa if re.match(r"^r\w+[+-]\d+$", cfa) else None, "undef" if ra == "u" else place(ra),
            ("same", "?") if fp in ("u", "s") else (place(fp),))


def check_eh_frame(path):
    if not os.path.exists(path):
        raise Skip("no such file")
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    p, rows = rows_of(path, "eh_frame")
    check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr))
    segments = exec_segments(path)
    check_order(rows, segments)
    i, compared = 0, 0
    for start, end, spec in clip(readelf_functions(path), segments):
        for k, (at, columns) in enumerate(spec):
            stop = min(end, spec[k + 1][0] if k + 1 < len(spec) else end)
            pos = at
            while pos < stop:
                while i < len(rows) and rows[i].end <= pos:
                    i += 1
                check(i < len(rows) and rows[i].start <= pos,
                      "%x: no row, readelf has %s" % (pos, columns))
                cfa, ra, fp = expect_eh(columns)
                r = rows[i]
                if cfa and ra != "undef":
                    check(r.cfa == cfa, "%x: cfa=%s, readelf has %s" % (pos, r.cfa, columns))
                if ra:
                    check(r.ra == ra, "%x: ra=%s, readelf has %s" % (pos, r.ra, columns))
                if fp[0] and ra != "undef":
                    check(r.fp in fp, "%x: fp=%s, readelf has %s" % (pos, r.fp, columns))
                compared += min(stop, r.end) - pos
                pos = r.end
    described = sum(r.end - r.start for n, r in enumerate(rows)
                    if not n or r.start != rows[n - 1].start)
    check(compared == described and compared,
          "%d bytes described, readelf has %d" % (described, compared))


# ---- .sframe against objdump's dumps
# ------------------------------------------------------------------------

NAMES = {
    "x86_64": ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"] +
    ["r%d" % n for n in range(8, 16)],
    "aarch64": ["x%d" % n for n in range(31)] + ["sp"],
    "s390x": ["r%d" % n for n in range(16)] +
    ["f%d" % n for n in (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)],
}
SP_FP = {"x86_64": ("rsp", "rbp"), "aarch64": ("sp", "x29"), "s390x": ("r15", "r11")}


def dump_rule(text, arch):
    """objdump's "sp+16", "c-8", "(fp-40)", "r16" as inspect has it."""
    m = re.match(r"^(\()?(sp|fp|c|r(\d+))([+-]\d+)?\)?$", text)
    check(m, "unknown rule %r in a dump" % text)
    deref, base, number, off = m.groups()
    base = dict(sp=SP_FP[arch][0], fp=SP_FP[arch][1], c="cfa").get(base) or NAMES[arch][int(number)]
    value = base + (off or "+0")
    return "*(%s)" % value if deref or base == "cfa" else value


def dump_row(fields, arch):
    if fields[0] == "RA":
        return None, "undef", None, ""
    cfa, fp, ra = fields
    signed = ra.endswith("[s]")
    ra = ra[:-3] if signed else ra
    if ra in ("f", "u", "U"):
        ra = "*(cfa-8)" if arch == "x86_64" else "lr"
    else:
        ra = dump_rule(ra, arch)
    return dump_rule(
        cfa, arch), ra, "same" if fp == "u" else dump_rule(fp, arch), " pac" if signed else ""


def dump_functions(path, arch):
    functions, rows = [], None
    for line in open(path):
        m = re.match(r'^ *func idx \[\d+\]: pc = 0x([0-9a-f]+), size = (\d+) bytes(.*)', line)
        if m:
            start, rows = int(
                m.group(1), 16), {"rows": [], "mask": False, "signal": 'attr = "S"' in m.group(3)}
            functions.append((start, start + int(m.group(2)), rows))
        elif "STARTPC[m]" in line:
            rows["mask"] = True
        elif rows is not None and re.match(r"^ *[0-9a-f]{16} ", line):
            fields = line.split()
            rows["rows"].append((int(fields[0], 16), dump_row(fields[1:], arch)))
    return functions


def expected_from_dump(path, arch, segments):
    out = []
    for start, end, f in clip(dump_functions(path, arch), segments):
        spec, flags = f["rows"], " signal" if f["signal"] else ""
        for k, (at, (cfa, ra, fp, pac)) in enumerate(spec):
            stop = min(end, spec[k + 1][0] if k + 1 < len(spec) else end)
            # GNU ld's mistake, which is put right: the stubs of .plt.got push nothing.
            if arch == "x86_64" and f["mask"] and len(spec) == 1 and cfa == "rsp+16":
                cfa = "rsp+8"
            if f["mask"]:
                out.append(Row(start, end, cfa, ra, fp, flags + pac, 1, at))
            elif at < stop:
                out.append(Row(at, stop, cfa, ra, fp, flags + pac))
    return out


def check_dump(path, arch):
    p, rows = rows_of(path, "sframe")
    name = os.path.relpath(path, FIXTURES)
    check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
    segments = exec_segments(path)
    check_order(rows, segments)
    want = expected_from_dump(path + ".sframe.txt", arch, segments)
    for r, w in zip(rows, want):
        where = "%s: %x-%x %s" % (name, r.start, r.end, r.rules())
        check((r.start, r.end, bool(r.rep), r.at, r.flags, r.ra) == (w.start, w.end, bool(w.rep),
                                                                     w.at, w.flags, w.ra),
              "%s, objdump has %x-%x %s" % (where, w.start, w.end, w.rules()))
        check(w.ra == "undef" or (r.cfa, r.fp) == (w.cfa, w.fp),
              "%s, objdump has %s" % (where, w.rules()))
    check(len(rows) == len(want), "%s: %d rows, objdump has %d" % (name, len(rows), len(want)))
    return len(rows)


def check_dumps(version, arch):
    folder = os.path.join(FIXTURES, version, arch)
    if not os.path.isdir(folder):
        raise Skip("no fixtures")
    total = 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith((".txt", ".o")) or not os.path.exists(path + ".sframe.txt"):
            continue
        total += check_dump(path, arch)
    check(total > 100, "only %d rows" % total)


# ---- Merged
# -------------------------------------------------------------------------------------------------

def cover(rows, segments):
    spans = {}
    for r in rows:
        if r.rep:
            at = [x.at for x in rows if x.rep and x.start == r.start]
            after = min([a for a in at if a > r.at] or [r.rep])
            for base in range(r.start, r.end, r.rep):
                for b in range(base + r.at, min(base + after, r.end)):
                    spans[b] = r
        else:
            for b in range(r.start, r.end):
                spans[b] = r
    return spans


def check_merged(path):
    segments = exec_segments(path)
    sframe, eh, merged = (rows_of(path, s)[1] for s in ("sframe", "eh_frame", "merged"))
    check_order(merged, segments)
    by_sframe, by_eh, by_merged = (cover(r, segments) for r in (sframe, eh, merged))
    for byte in set(by_sframe) | set(by_eh) | set(by_merged):
        s = by_sframe.get(byte)
        usable = s and (s.ra == "undef" or (s.cfa != "?" and s.ra != "?"))
        want, got = s if usable else by_eh.get(byte), by_merged.get(byte)
        if got and got.source == "code":
            check(
                not want, "%s: byte %x: a row from code, in spite of %s" %
                (os.path.basename(path), byte, want))
            continue
        check(
            want and got and want.source == got.source and want.rules() == got.rules(),
            "%s: byte %x: %s, want %s" %
            (os.path.basename(path), byte, got and got.rules(), want and want.rules()))


def check_merged_fixtures():
    if not os.path.isdir(FIXTURES):
        raise Skip("no fixtures")
    for name in ("v1/x86_64/fx-nofp", "v2/x86_64/fx-fp", "v3/x86_64/fx-nofp",
                 "v3/x86_64/libplt-ibt.so", "v1/x86_64/libplt-ibt.so", "v3/aarch64/fx-pac",
                 "v3/s390x/fx-fp", "odd/v3-mold-concat", "odd/v1-torture.so"):
        check_merged(os.path.join(FIXTURES, name))


# ---- --compare
# ----------------------------------------------------------------------------------------------

def check_compare_fixtures():
    if not os.path.isdir(FIXTURES):
        raise Skip("no fixtures")
    for arch in ("x86_64", "aarch64", "s390x"):
        folder = os.path.join(FIXTURES, "v3", arch)
        for name in sorted(os.listdir(folder)):
            if name.endswith((".txt", ".o")):
                continue
            p = inspect("--compare", os.path.join(folder, name))
            check(p.returncode == 0 and p.stdout.count("\n") == 1,
                  "v3/%s/%s: %s" % (arch, name, p.stdout + p.stderr))
    p = inspect("--compare", os.path.join(FIXTURES, "v1/x86_64/fx-nofp"))
    check(
        p.returncode == 1 and re.search(
            r"fx_cfa_reg\+0x3: cfa: sframe cfa=rsp\+8 .* \| eh_frame cfa=r9\+8 ", p.stdout) and
        re.search(r"_start\+0x0: ra: .* ra=undef", p.stdout) and p.stdout.count("\n") == 3,
        "v1/x86_64/fx-nofp: " + p.stdout)


PLANTED = """
	.text
	.globl	good, bad
	.type	good, @function
	.type	bad, @function
good:	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	popq	%rbp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size	good, .-good
bad:	.cfi_startproc
	subq	$24, %rsp
	.cfi_def_cfa_offset 32
	addq	$24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	bad, .-bad
"""


def build_planted(folder):
    source, obj, lib = (os.path.join(folder, n) for n in ("p.s", "p.o", "libp.so"))
    with open(source, "w") as f:
        f.write(PLANTED)
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if subprocess.run(["as", "--64", "--gsframe", "-o", obj, source], **quiet).returncode:
            raise Skip("the assembler has no --gsframe")
        if subprocess.run(["ld", "-shared", "--eh-frame-hdr", "-o", lib, obj], **quiet).returncode:
            raise Skip("ld failed")
    except FileNotFoundError:
        raise Skip("no assembler")
    return obj, lib


def patched(lib, to, old, new):
    data = open(lib, "rb").read()
    check(data.count(old) == 1, "the row to damage is not unique")
    with open(to, "wb") as f:
        f.write(data.replace(old, new))
    return to


def check_planted(folder):
    _, lib = build_planted(folder)
    p = inspect("--compare", lib)
    check(p.returncode == 0 and " 0 disagree" in p.stdout, "sound: " + p.stdout + p.stderr)
    # bad's second row: start 4, one word of one byte: sp+32.
    worse = patched(lib, os.path.join(folder, "libworse.so"), b"\x04\x03\x20", b"\x04\x03\x28")
    p = inspect("--compare", worse)
    check(
        p.returncode == 1 and "bad+0x4: cfa: sframe cfa=rsp+40 " in p.stdout and
        "| eh_frame cfa=rsp+32 " in p.stdout and " 1 disagree" in p.stdout and
        p.stdout.count("\n") == 2 and not p.stderr, p.stdout + p.stderr)


# ---- Refusals and damage
# --------------------------------------------------------------------------------------

def one_line(p, *words):
    check(p.returncode == 1, "exit %d" % p.returncode)
    check(p.stderr.count("\n") == 1, "stderr is not one line: %r" % p.stderr)
    for word in words:
        check(word in p.stderr, "%r not in %r" % (word, p.stderr))


def check_refused(folder):
    def path(name, content=None):
        full = os.path.join(folder, name)
        if content is not None:
            with open(full, "wb") as f:
                f.write(content)
        return full

    os.mkfifo(path("fifo"))
    elf32 = b"\x7fELF\x01\x01\x01" + bytes(100)
    other = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 3, 243, 1) + bytes(100)
    for name, words in ((folder, ["directory"]), (path("fifo"), ["FIFO"]), ("/dev/null", ["device"
                                                                                          ]),
                        ("/dev/tty", []), (path("missing"), ["cannot open"]), (path("empty",
                                                                                    b""), ["ELF"]),
                        (path("text", b"hello\n" * 50), ["ELF"]), (path("short",
                                                                        b"\x7fELF"), ["ELF"]),
                        (path("elf32", elf32), ["64-bit"]), (path("riscv", other), ["243"])):
        for mode in ("--rows", "--compare", "--json", None):
            p = inspect(*([mode] if mode else []), name, timeout=5)
            one_line(p, name.strip("\x1b"), *words)
            check(not p.stdout or (mode == "--json" and "error" in json.loads(p.stdout)),
                  "output for %s: %r" % (name, p.stdout))


def check_object(folder):
    obj, lib = build_planted(folder)
    for mode in ("--rows", "--rows=sframe", "--compare", None):
        p = inspect(*([mode] if mode else []), obj)
        one_line(p, obj, "relocatable")
        check(not p.stdout, "rows of an object: " + p.stdout)
    p = inspect("--rows", obj, lib, "/nonexistent")
    check(p.returncode == 1 and p.stdout.count("\n") > 3 and p.stderr.count("\n") == 2,
          "several files: " + p.stderr)


def section(path, name):
    out = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True).stdout
    m = re.search(r"\] %s +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)" % re.escape(name), out)
    check(m, "no %s in %s" % (name, path))
    return int(m.group(2), 16), int(m.group(3), 16)


def check_damaged_fdes(folder):
    _, lib = build_planted(folder)
    sound = rows_of(lib, "merged")[1]
    good = [r.rules() for r in sound if r.start < sound[-1].start][:3]
    # bad's first row: its info byte says words of size code 3.
    p, rows = rows_of(patched(lib, os.path.join(folder, "sf.so"), b"\x04\x03\x20", b"\x04\x63\x20"),
                      "sframe")
    one_line(p, "sf.so", ".sframe+0x")
    check([r.rules() for r in rows] and len({r.start
                                             for r in rows}) == 4, "sound .sframe rows are gone")
    off, size = section(lib, ".eh_frame")
    data = bytearray(open(lib, "rb").read())
    # The last FDE's instructions: an opcode that does not exist.
    at = data.index(b"\x0e\x20", off)
    data[at] = 0x3e
    path = os.path.join(folder, "eh.so")
    open(path, "wb").write(data)
    p, rows = rows_of(path, "eh_frame")
    one_line(p, "eh.so", ".eh_frame+0x%x" % (at - off))
    check([r.rules() for r in rows][:3] == [r.rules() for r in rows_of(lib, "eh_frame")[1]][:3] and
          good, "sound .eh_frame rows are gone")
    p = inspect(path)
    check(p.returncode == 1 and "malformed" in p.stdout and ".eh_frame" in p.stdout,
          "the summary is gone: " + p.stdout)
    p = inspect("--json", path)
    check(json.loads(p.stdout)["malformed"] == 1 and p.returncode == 1, "JSON: " + p.stdout)


def check_truncated(folder):
    _, lib = build_planted(folder)
    data = open(lib, "rb").read()
    path = os.path.join(folder, "cut.so")
    for size in list(range(0, len(data), max(1, len(data) // 150))) + [63, 64, 65, len(data) - 1]:
        open(path, "wb").write(data[:size])
        p = inspect("--rows", path, timeout=10)
        check(p.returncode in (0, 1), "%d bytes: exit %d" % (size, p.returncode))
        check(p.returncode == 0 or p.stderr.count("\n") == 1,
              "%d bytes: stderr %r" % (size, p.stderr))


def check_mutated(folder):
    sources = []
    try:
        sources.append(build_planted(folder)[1])
    except Skip:
        pass
    for name in ("v3/x86_64/libplt-ibt.so", "v2/aarch64/libfx-be.so", "v3/s390x/libfx-fp.so",
                 "odd/v1-torture.so"):
        if os.path.exists(os.path.join(FIXTURES, name)):
            sources.append(os.path.join(FIXTURES, name))
    if not sources:
        raise Skip("nothing to mutate")
    rng = random.Random(1)
    path = os.path.join(folder, "mutant")
    for i in range(300):
        data = bytearray(open(sources[i % len(sources)], "rb").read())
        for _ in range(1 << rng.randrange(6)):
            at = rng.randrange(len(data)) if rng.randrange(3) else rng.randrange(
                min(len(data), 1024))
            data[at] = rng.choice((0, 0xff, 0x7f, 0x80, rng.randrange(256)))
        open(path, "wb").write(data)
        mode = ("--rows", "--rows=sframe", "--rows=eh_frame", "--compare", "--json", "-h")[i % 5]
        p = inspect(mode, path, timeout=5)
        keep = os.path.join(tempfile.gettempdir(), "sfbpf-mutant-%d" % i)
        if p.returncode not in (0, 1) or (p.returncode and mode != "--compare" and
                                          p.stderr.count("\n") != 1):
            shutil.copy(path, keep)
            raise Failure("mutant %d (kept as %s) %s: exit %d, stderr %r" %
                          (i, keep, mode, p.returncode, p.stderr))


# ---- The command line
# -------------------------------------------------------------------------------------------

def check_usage():
    for args in ([], ["--rows=dwarf", SFBPF], ["--json", "--rows", SFBPF], ["--nonsense", SFBPF]):
        p = inspect(*args)
        check(p.returncode == 2 and p.stderr and not p.stdout, "%s: exit %d" % (args, p.returncode))
    for args in (["--rows", SFBPF], [SFBPF, "--rows=merged"], ["--rows", "--", SFBPF]):
        check(
            inspect(*args).stdout == inspect("--rows=merged", SFBPF).stdout,
            "%s is not --rows=merged" % args)
    check(inspect("--help").returncode == 0, "--help")


def check_json():
    p = inspect("--json", SFBPF)
    j = json.loads(p.stdout)
    rows = rows_of(SFBPF, "eh_frame")[1]
    check(j["schema"] == 1 and j["eh_frame"]["rows"] == len(rows), "rows")
    described = sum(r.end - r.start for n, r in enumerate(rows)
                    if not n or r.start != rows[n - 1].start)
    check(j["coverage"]["eh_frame_bytes"] == described, "coverage")
    check(j["coverage"]["exec_bytes"] == sum(b - a for a, b in exec_segments(SFBPF)), "code bytes")
    check(j["coverage"]["neither_bytes"] == j["coverage"]["exec_bytes"] - described, "neither")
    check(0 < j["bpf_tables"]["rows"] and j["bpf_tables"]["lost_rows"] == 0, "tables")


def in_folder(fn):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            fn(folder)
    return run


def main():
    global SFBPF
    SFBPF = os.path.abspath(
        sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "sfbpf"))
    lib = "/usr/lib/x86_64-linux-gnu/"
    for path in (lib + "libc.so.6", lib + "ld-linux-x86-64.so.2", lib + "libstdc++.so.6",
                 lib + "libcrypto.so.3", "/usr/bin/python3.11", "/usr/bin/bash"):
        test("inspect_eh_frame_" + os.path.basename(path), check_eh_frame, path)
    for version, arch in (("v1", "x86_64"), ("v1", "aarch64"), ("v2", "x86_64"), ("v2", "aarch64"),
                          ("v2", "s390x"), ("v3", "x86_64"), ("v3", "aarch64"), ("v3", "s390x")):
        test("inspect_sframe_%s_%s" % (version, arch), check_dumps, version, arch)
    test("inspect_merged", check_merged_fixtures)
    test("inspect_compare_fixtures", check_compare_fixtures)
    test("inspect_compare_planted", in_folder(check_planted))
    test("inspect_refused", in_folder(check_refused))
    test("inspect_object", in_folder(check_object))
    test("inspect_damaged_fdes", in_folder(check_damaged_fdes))
    test("inspect_truncated", in_folder(check_truncated))
    test("inspect_mutated", in_folder(check_mutated))
    test("inspect_usage", check_usage)
    test("inspect_json", check_json)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
