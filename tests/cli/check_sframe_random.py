#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random sound .sframe sections against what `sfbpf inspect --rows=sframe` reads from them.

check_sframe_random.py [FIRST [COUNT]]	seeds (default 1 300)

Each seed makes an ELF file of one machine with one to three tables of versions 1 to 3 in its
.sframe, and knows the rows that it put there; nothing here is shared with the reader or with the
unit tests' encoder. Offsets and layouts: the SFrame specification, versions 1 to 3. Among what is
varied: order of functions and of rows, gaps and overlaps, PCREL or not, address and offset sizes,
PCMASK blocks, FLEX rows, signal frames, RA undefined, signed RA, registers in V2's s390x offsets.
"""

import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from collections import namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.environ.get("SFBPF", os.path.join(TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))

SORTED, PCREL = 1, 4
PCMASK, KEY_B, SIGNAL = 0x10, 0x20, 0x80
REG_P, DEREF_P = 1, 2
TEXT = 0x1000  # file offset of the code

X86_REGS = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"
            ] + ["r%d" % i for i in range(8, 16)] + ["rip"]
S390X_FPRS = ["f%d" % i for i in (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)]


class Machine(namedtuple("Machine", "name elf order abi sp fp fixed_ra align")):
    """order: struct's letter; align: of instructions."""

    def register(self, n):
        if self.name == "x86-64":
            return X86_REGS[n]
        if self.name.startswith("aarch64"):
            return "sp" if n == 31 else "x%d" % n
        return "r%d" % n if n < 16 else S390X_FPRS[n - 16]


MACHINES = [
    Machine("x86-64", 62, "<", 3, 7, 6, -8, 1),
    Machine("aarch64", 183, "<", 2, 31, 29, 0, 4),
    Machine("aarch64-be", 183, ">", 1, 31, 29, 0, 4),
    Machine("s390x", 22, ">", 4, 15, 11, 0, 2),
]

Function = namedtuple("Function", "start size mask rep rows") # rows: (offset, text)
UNDEFINED = "cfa=? ra=undef fp=?"


def is_s32(x):
    return -2**31 <= x < 2**31


class Table:
    """One table of one version, for the functions of [begin, end) of the code."""

    def __init__(self, rng, machine, version, base):
        self.rng, self.m, self.version, self.base = rng, machine, version, base

    # ---- rows ----------------------------------------------------------------------------------

    def word(self, size):
        lo, hi = -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1
        kind = self.rng.random()
        if kind < 0.2:
            return self.rng.choice([lo, hi])
        if kind < 0.7:
            return self.rng.choice([8, 16, 24, 32, 48, 64, 96, 0, -8, -16, -24])
        return self.rng.randint(lo, hi)

    def default_row(self, size):
        """(info, words, text), or None for one that has no meaning."""
        r, m = self.rng, self.m
        sp_based = r.randint(0, 1)
        words = [self.word(size) for _ in range(r.randint(1, 2 if m.name == "x86-64" else 3))]
        cfa, rest = words[0], words[1:]
        signed = False
        if m.name == "x86-64":
            ra, fp = "*(cfa-8)", "*(cfa%+d)" % rest[0] if rest else "same"
        elif m.name == "s390x":
            cfa = cfa * 8 + 160
            ra = self.s390x_slot(rest[0]) if rest and rest[0] else "lr"
            ra = "lr" if ra == "r14+0" else ra
            fp = self.s390x_slot(rest[1]) if len(rest) > 1 else "same"
        else:
            ra = "*(cfa%+d)" % rest[0] if rest else "lr"
            fp = "*(cfa%+d)" % rest[1] if len(rest) > 1 else "same"
            signed = r.random() < 0.3
        if not is_s32(cfa) or ra is None or fp is None:
            return None
        text = "cfa=%s%+d ra=%s fp=%s" % (m.register(m.sp if sp_based else m.fp), cfa, ra, fp)
        return sp_based | (0x80 if signed else 0), self.pack_words(size,
                                                                   words), len(words), text, signed

    def lost(self, text, flex):
        """The RA is in the caller's frame, or it and the CFA are in a buffer to jump by."""
        m = re.match(r"cfa=(\w+)[+-]\d+ ra=(\*\()?(\w+)([+-]\d+)?\)? ", text)
        if not m or m[3] in ("undef", "lr", "same"):
            return bool(re.search(r" ra=\*\(cfa\+", text))
        if m[3] == "cfa":
            return bool(m[2]) and int(m[4]) >= 0
        return flex and self.m.name != "s390x" and m[1] not in (
            self.m.register(self.m.sp), self.m.register(self.m.fp))

    def s390x_slot(self, word):
        """V2 gives registers as odd words."""
        if self.version != 2 or not word & 1:
            return "*(cfa%+d)" % word
        if not 0 <= word >> 1 < 32:
            return None
        return self.m.register(word >> 1) + "+0"

    def flex_rule(self, size, of_cfa=False):
        r = self.rng
        by_register = of_cfa or r.random() < 0.5
        deref = r.random() < 0.3 if of_cfa else not by_register or r.random() < 0.5
        register = r.choice([self.m.sp, self.m.fp, 10, 11 if self.m.name == "x86-64" else 20])
        stored = self.word(size)
        offset = stored * 8 + 160 if of_cfa and self.m.name == "s390x" else stored
        control = (register << 3 | REG_P if by_register else 0) | (DEREF_P if deref else 0)
        text = "%s%+d" % (self.m.register(register) if by_register else "cfa", offset)
        letters = {1: "Bb", 2: "Hh", 4: "Ii"}[size]
        return struct.pack(self.m.order + letters, control,
                           stored), "*(%s)" % text if deref else text, is_s32(offset)

    def flex_row(self, size):
        ra, fp = "*(cfa-8)" if self.m.name == "x86-64" else "lr", "same"
        words, cfa, fits = self.flex_rule(size, of_cfa=True)
        n, shape = 2, self.rng.choice(["cfa", "cfa ra", "cfa - fp", "cfa ra fp"])
        if not fits:
            return None
        if "ra" in shape:
            more, ra, _ = self.flex_rule(size)
            words, n = words + more, n + 2
        elif "-" in shape:
            words, n = words + bytes(size), n + 1
        if "fp" in shape:
            more, fp, _ = self.flex_rule(size)
            words, n = words + more, n + 2
        return 0, words, n, "cfa=%s ra=%s fp=%s" % (cfa, ra, fp), False

    def pack_words(self, size, words):
        return struct.pack("%s%d%s" % (self.m.order, len(words), {1: "b", 2: "h", 4: "i"}[size]),
                           *words)

    def row(self, flex):
        """The bytes after a row's start, and its text with the flag of a signed RA apart."""
        if self.rng.random() < 0.05:
            return bytes([self.rng.randrange(3) << 5]), UNDEFINED, False
        while True:
            size = self.rng.choice([1, 1, 2, 4])
            made = self.flex_row(size) if flex else self.default_row(size)
            if made:
                info, words, n, text, signed = made
                return bytes([info | n << 1 | {1: 0, 2: 1, 4: 2}[size] << 5]) + words, text, signed

    # ---- functions -----------------------------------------------------------------------------

    def places(self, begin, end):
        """(start, size) in ascending order; some overlap the next one, some are empty of code
        before it.
        """
        r, align, pos, found = self.rng, self.m.align, begin, []
        while pos < end and len(found) < 60:
            if r.random() < 0.2:
                pos += r.randint(1, 40) * align
            size = r.choice([
                r.randint(1, 40),
                r.randint(1, 255),
                r.randint(256, 3000),
                r.randint(1, 70000) if r.random() < 0.02 else 9
            ])
            size = min(-(-size // align) * align, end - pos)
            if size <= 0:
                break
            longer = r.randint(1, 30) if r.random() < 0.05 else 0
            found.append((pos, min(size + longer, end - pos)))
            pos += size
        return found

    def row_starts(self, span, width):
        limit = min(span, 1 << 8 * width)
        n = self.rng.choice([0, 1, 1, 2, 3, 5, 12])
        starts = sorted({self.rng.randrange(limit) for _ in range(n)})
        if starts and self.rng.random() < 0.8:
            starts[0] = 0
        return starts

    def function(self, start, size):
        """(Function, its fields, its bytes in the rows' part)"""
        r, version = self.rng, self.version
        mask = r.random() < 0.12
        rep = (16 if version == 1 else r.choice([8, 16, 32, r.randint(1, 64)
                                                 ])) if mask else r.choice([0, 0, 16])
        flex = version == 3 and not self.m.name.startswith("aarch64") and r.random() < 0.35
        signal = version == 3 and r.random() < 0.1
        row_type = max(0 if size < 256 else 1 if size < 65536 else 2, r.choice([0] * 9 + [1, 2]))
        width, letter = [(1, "B"), (2, "H"), (4, "I")][row_type]
        rows, blob = [], b""
        for at in self.row_starts(min(rep, size) if mask else size, width):
            data, text, signed = self.row(flex)
            blob += struct.pack(self.m.order + letter, at) + data
            lost = not signal and self.lost(text, flex)
            rows.append((at, text + (" signal" if signal else "") + (" lost" if lost else "") +
                         (" pac" if signed else "")))
        info = row_type | (PCMASK if mask else 0) | (SIGNAL if signal else 0)
        if self.m.name.startswith("aarch64") and r.random() < 0.5:
            info |= KEY_B
        if version == 3:
            blob = struct.pack(self.m.order + "HBBB", len(rows), info, int(flex), rep) + blob
        return Function(start, size, mask, rep, rows), (len(rows), info, rep), blob

    def build(self, address, begin, end):
        """(bytes, functions); address: of the table's first byte."""
        r, order = self.rng, self.m.order
        made = [self.function(*place) for place in self.places(begin, end)]
        fre_offsets, fres = {}, b""
        for i in r.sample(range(len(made)), len(made)): # rows need not be in their functions' order
            fre_offsets[i] = len(fres)
            fres += made[i][2]
        index, flags = list(range(len(made))), SORTED
        if r.random() < 0.3:
            r.shuffle(index)
            flags = 0
        if self.version == 3 or self.version == 2 and r.random() < 0.6:
            flags |= PCREL
        entry, fdes = {1: 17, 2: 20, 3: 16}[self.version], b""
        for k, i in enumerate(index):
            function, (nrows, info, rep), _ = made[i]
            from_field = flags & PCREL or not flags & SORTED
            start = self.base + function.start - address - (28 + k * entry if from_field else 0)
            fields = (start, function.size, fre_offsets[i])
            fdes += (struct.pack(order + "qII", *fields) if self.version == 3 else
                     struct.pack(order + "iIIIBBH", *fields, nrows, info, rep, 0)[:entry])
        header = struct.pack(order + "HBBBbbBIIIII", 0xdee2, self.version, flags, self.m.abi, 0,
                             self.m.fixed_ra, 0, len(made), sum(fields[0] for _, fields, _ in made),
                             len(fres), 0, len(fdes))
        return header + fdes + fres, [function for function, _, _ in made]


def expected_rows(functions, machine, base):
    """What inspect has to print: a function ends where a later one starts."""
    functions = sorted(functions)
    for f, later in zip(functions, functions[1:] + [None]):
        end = min(f.start + f.size, later.start) if later else f.start + f.size
        for (at, text), (until, _) in zip(f.rows, f.rows[1:] + [(f.size, None)]):
            if f.mask:
                # what GNU ld says of .plt.got is known to be 8 too high
                if machine.name == "x86-64" and f.rep in (8, 16) and len(
                        f.rows) == 1 and at == 0 and text.startswith("cfa=rsp+16 "):
                    text = text.replace("rsp+16", "rsp+8")
                if f.start + at < end:
                    yield base + f.start, base + end, "%s plt rep=%d%s" % (text, f.rep, " at=%d" %
                                                                           at if at else "")
            elif f.start + at < min(f.start + until, end):
                yield base + f.start + at, base + min(f.start + until, end), text


def printed_rows(text):
    for line in text.splitlines():
        start, end, _, rule = line.split(" ", 3)
        words = rule.split(" ")
        if words[1] == "ra=undef": # CFA and FP beside it are not judged
            rule = " ".join([UNDEFINED] + words[3:])
        yield int(start, 16), int(end, 16), rule


def joined(rows):
    """Neighbours with one rule as one row; the rows of a block stay apart."""
    out = []
    for start, end, rule in rows:
        if out and " plt" not in rule and out[-1][1:] == (start, rule):
            start = out.pop()[0]
        out.append((start, end, rule))
    return out


def elf_file(machine, base, text_size, sframe, sh_type):
    order, names = machine.order, b"\0.text\0.sframe\0.shstrtab\0"
    at = TEXT + text_size
    names_at = at + len(sframe)
    sections_at = names_at + len(names)
    head = b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9)
    head += struct.pack(order + "HHIQQQIHHHHHH", 3, machine.elf, 1, base + TEXT, 64, sections_at, 0,
                        64, 56, 2, 64, 4, 3)
    for flags, offset, size in ((5, TEXT, text_size), (4, at, len(sframe))):
        head += struct.pack(order + "IIQQQQQQ", 1, flags, offset, base + offset, base + offset,
                            size, size, 1)

    def section(name, kind, flags, offset, size):
        return struct.pack(order + "IIQQQQIIQQ", name, kind, flags, base + offset if flags else 0,
                           offset, size, 0, 0, 1, 0)

    return (head.ljust(TEXT, b"\0") + bytes(text_size) + sframe + names + bytes(64) +
            section(1, 1, 6, TEXT, text_size) + section(7, sh_type, 2, at, len(sframe)) +
            section(15, 3, 0, names_at, len(names)))


def make(seed):
    """(ELF file, expected rows)"""
    rng = random.Random(seed)
    machine = rng.choice(MACHINES)
    base, text_size = rng.choice([0, 0x400000]), rng.choice([0x800, 0x8000, 0x60000])
    tables = rng.choice([1, 1, 1, 2, 3])
    sframe, functions = b"", []
    for i in range(tables):
        version = rng.choice([2, 3] if machine.name == "s390x" else [1, 2, 3])
        sframe += bytes(-len(sframe) % 8)
        data, more = Table(rng, machine, version,
                           base).build(base + TEXT + text_size + len(sframe),
                                       TEXT + text_size * i // tables // 8 * 8,
                                       TEXT + text_size * (i + 1) // tables // 8 * 8)
        sframe += data
        functions += more
    elf = elf_file(machine, base, text_size, sframe, rng.choice([1, 0x6ffffff4]))
    return elf, joined(expected_rows(functions, machine, base)), machine


def difference(seed, path):
    elf, want, machine = make(seed)
    with open(path, "wb") as f:
        f.write(elf)
    run = subprocess.run([SFBPF, "inspect", "--rows=sframe", path], capture_output=True, text=True,
                         check=False)
    got = joined(printed_rows(run.stdout))
    if got == want and run.returncode == 0:
        return None
    return "seed %d, %s: exit %d %s; wanted %s; printed %s" % (
        seed, machine.name, run.returncode, run.stderr.strip(),
        [r for r in want if r not in got][:2], [r for r in got if r not in want][:2])


def main():
    first, count = (int(a) for a in (sys.argv[1:] + ["1", "300"][len(sys.argv) - 1:])[:2])
    with tempfile.TemporaryDirectory() as where:
        wrong = [
            d for d in (difference(seed, os.path.join(where, "x.elf"))
                        for seed in range(first, first + count)) if d
        ]
    for line in wrong[:5]:
        print("#", line)
    print("FAIL sframe-random: %d of %d files are read otherwise" %
          (len(wrong), count) if wrong else "ok sframe-random")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
