#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files with damaged unwind tables: they cost their own stacks at most, never another file's, never
a crash.
"""

import random
import re
import struct

import harness as h

HOT = "rec_down;rec_hot(;rec_mid)?(;rec_leaf)?"
# What a stack must at least end with: all of it, down to the function whose FDE is bad, or the
# leaf.
WHOLE = re.compile("^_start;[^;]*;[^;]*;main(;rec_down;rec_small(;rec_down){4};rec_buffer){12};" +
                   HOT + "$")
TO_SMALL = re.compile("(^|;)rec_small(;rec_down){4};rec_buffer;" + HOT + "$")
TO_BUFFER = re.compile("(^|;)rec_buffer;" + HOT + "$")
TO_LEAF = re.compile("(^|;)rec_[a-z]+$")


class Elf:
    """Sections of a 64-bit little-endian ELF file, to be damaged in place."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        shoff = struct.unpack_from("<Q", self.data, 40)[0]
        size, n, strndx = struct.unpack_from("<HHH", self.data, 58)
        heads = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * size) for i in range(n)]
        names = heads[strndx][4]
        self.sections = {}
        for s in heads:
            end = self.data.index(0, names + s[0])
            self.sections[self.data[names + s[0]:end].decode()] = s

    def range(self, name):
        s = self.sections[name]
        return s[4], s[5]

    def address(self, name):
        return self.sections[name][3]

    def symbol(self, name):
        off, size = self.range(".symtab")
        strings = self.range(".strtab")[0]
        for i in range(off, off + size, 24):
            n, _, _, _, value, length = struct.unpack_from("<IBBHQQ", self.data, i)
            end = self.data.index(0, strings + n)
            if self.data[strings + n:end].decode() == name:
                return value, length
        raise KeyError(name)

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.data)


def eh_fde(elf, function):
    """File offset and length of the function's FDE, after its length word."""
    want = elf.symbol(function)[0]
    off, size = elf.range(".eh_frame")
    base = elf.address(".eh_frame") - off
    at = off
    while at < off + size:
        length, cie = struct.unpack_from("<II", elf.data, at)
        if length == 0:
            break
        # GCC's encoding of the start on x86-64: relative to the field, 4 bytes.
        if cie and base + at + 8 + struct.unpack_from("<i", elf.data, at + 8)[0] == want:
            return at + 4, length
        at += 4 + length
    raise KeyError(function)


def damaged(source, name, damage):
    """A copy of a program, damaged, under another name."""
    path = h.copy_program(source, name)
    elf = Elf(path)
    damage(elf)
    elf.save(path)
    return path


def bad_instructions(elf):
    """rec_small's FDE: call frame instructions that do not exist."""
    at, length = eh_fde(elf, "rec_small")
    elf.data[at + 12 + 1:at + length] = b"\x3f" * (length - 13)


def no_cie(elf):
    """rec_buffer's FDE points to a CIE far outside the section."""
    at, _ = eh_fde(elf, "rec_buffer")
    struct.pack_into("<I", elf.data, at, 0x7ffffff0)


def endless_section(elf):
    """The first record claims to be longer than the section."""
    off, _ = elf.range(".eh_frame")
    struct.pack_into("<I", elf.data, off, 0x7ffffff0)


def noise(section, seed):
    """Random bytes all over the section."""
    def damage(elf):
        off, size = elf.range(section)
        rng = random.Random(seed)
        elf.data[off:off + size] = bytes(rng.randrange(256) for _ in range(size))
    return damage


def sprinkled(section, seed):
    """One byte in sixteen replaced."""
    def damage(elf):
        off, size = elf.range(section)
        rng = random.Random(seed)
        for i in range(off + 28, off + size):
            if rng.randrange(16) == 0:
                elf.data[i] = rng.randrange(256)
    return damage


def sframe_counts(elf):
    """A header with absurd counts."""
    off, _ = elf.range(".sframe")
    struct.pack_into("<III", elf.data, off + 8, 0xffffffff, 0xffffffff, 0xfffffff0)


def sframe_version(elf):
    off, _ = elf.range(".sframe")
    elf.data[off + 2] = 77


# name, program, damage, what is left
CASES = [
    ("dmg-eh-insn", "rec", bad_instructions, TO_SMALL),
    ("dmg-eh-cie", "rec", no_cie, TO_BUFFER),
    ("dmg-eh-length", "rec", endless_section, TO_LEAF),
    ("dmg-eh-noise", "rec", noise(".eh_frame", 1), TO_LEAF),
    ("dmg-eh-sprink", "rec", sprinkled(".eh_frame", 2), TO_LEAF),
    ("dmg-hdr-noise", "rec", noise(".eh_frame_hdr", 3), WHOLE),
    ("dmg-sf-counts", "sf1-rec", sframe_counts, WHOLE),
    ("dmg-sf-version", "sf1-rec", sframe_version, WHOLE),
    ("dmg-sf-noise", "sf1-rec", noise(".sframe", 4), WHOLE),
    ("dmg-sf-sprink", "sf1-rec", sprinkled(".sframe", 5), TO_LEAF),
    ("dmg-sf2-sprnk", "sf2-rec", sprinkled(".sframe", 6), TO_LEAF),
    ("dmg-sf3-sprnk", "sf3-rec", sprinkled(".sframe", 7), TO_LEAF),
]


def errors_of(name, stacks, left):
    mine = [s for s in stacks if s.comm == name]
    bad = [
        s for s in mine
        if not left.search(";".join(h.user_frames(s))) or (left is WHOLE and h.reason(s))
    ]
    if h.total(mine) < 40:
        return ["%d samples" % h.total(mine)]
    if h.total(bad) > 0.01 * h.total(mine):
        return [
            "%d of %d stacks show less than they could: %s" %
            (h.total(bad), h.total(mine), h.worst(bad, 2))
        ]
    return []


def run_half(cases):
    bystander = h.start([h.link_program("rec", "bystander"), "60", "60"])
    running = []
    for name, source, damage, left in cases:
        try:
            running.append((name, left, h.start([damaged(source, name, damage), "60", "60"])))
        except h.Skip as e:
            h.skip(name, str(e))
    for p in [bystander] + [r[2] for r in running]:
        h.wait_busy(p)
    stacks, stats = h.record(["-F", "499"], 3)
    h.stop_all()
    for name, left, _ in running:
        h.check(name, errors_of(name, stacks, left))
    return errors_of("bystander", stacks, WHOLE) + h.stats_errors(stats, stacks)


def check_damage(name):
    errors = []
    for i in range(0, len(CASES), 6):
        errors += run_half(CASES[i:i + 6])
    h.check("damage-others-unharmed", errors)


h.run_checks([check_damage])
