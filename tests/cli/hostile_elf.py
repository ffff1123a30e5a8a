# SPDX-License-Identifier: BSD-2-Clause
"""ELF files whose headers and tables are made to cost time: SHAPES[name](n) has about n bytes."""

import struct

PT_LOAD, PT_NOTE, PT_EH_FRAME, PT_SFRAME = 1, 4, 0x6474e550, 0x6474e554
SHT_PROGBITS, SHT_STRTAB, SHT_NOTE = 1, 3, 7


def phdr(kind, offset, vaddr, size, flags=4):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, vaddr, vaddr, size, size, 8)


def shdr(name, kind, addr, offset, size, flags=2):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, addr, offset, size, 0, 0, 8, 0)


def elf(phdrs, shdrs, body, shstrndx=1):
    """The headers first, then the body, which starts at START."""
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0,
                       64, 64 + 56 * len(phdrs) if shdrs else 0, 0, 64, 56, len(phdrs), 64,
                       len(shdrs), shstrndx)
    return head + b"".join(phdrs) + b"".join(shdrs) + body


def start(phdrs, shdrs):
    return 64 + 56 * phdrs + 64 * shdrs


def record(body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<I", len(body)) + body


# zR, code_align 1, data_align -8, RA 16, pc-relative sdata4; cfa=rsp+8 ra=*(cfa-8)
CIE = record(
    struct.pack("<IB", 0, 1) + b"zR\0" + bytes([1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1]))


def with_tables(eh=b"", sframe=b"", code=0x100000, more=()):
    """Code at 0x400000, the whole file's bytes; .eh_frame at 0x10000000, .sframe at 0x20000000."""
    names = b"\0.shstrtab\0.eh_frame\0.sframe\0"
    at = start(3 + len(more), 4)
    shdrs = [
        bytes(64),
        shdr(1, SHT_STRTAB, 0, at, len(names), 0),
        shdr(11, SHT_PROGBITS, 0x10000000, at + len(names), len(eh)),
        shdr(21, SHT_PROGBITS, 0x20000000, at + len(names) + len(eh), len(sframe))
    ]
    size = at + len(names) + len(eh) + len(sframe)
    phdrs = [
        phdr(PT_LOAD, 0, 0x400000, max(code, size), 5),
        phdr(PT_LOAD, at + len(names), 0x10000000, len(eh)),
        phdr(PT_LOAD, at + len(names) + len(eh), 0x20000000, len(sframe)), *more
    ]
    return elf(phdrs, shdrs, names + eh + sframe + bytes(max(0, code - size)))


def fdes(ranges, insns=b""):
    """.eh_frame of functions (offset into the code, size)."""
    out, at = [CIE], len(CIE)
    for off, size in ranges:
        fde = record(
            struct.pack("<Iii", at + 4, 0x400000 + off - 0x10000000 - at - 8, size) + b"\0" + insns)
        out.append(fde)
        at += len(fde)
    return b"".join(out) + bytes(4)


def sframe2(functions, rows, rep=None):
    """Version 2 from the section: functions (offset, size) all with copies of the same rows of 3
    bytes (ADDR1, cfa=sp+8).
    """
    fde, fre = [], []
    for i, (off, size) in enumerate(functions):
        info = 0x10 if rep else 0
        fde.append(
            struct.pack("<iIIIBBH", 0x400000 + off - 0x20000000, size, i * rows * 3, rows, info,
                        rep or 0, 0))
        fre.append(b"".join(bytes([j, 3, 8 + 8 * (j & 7)]) for j in range(rows)))
    fde, fre = b"".join(fde), b"".join(fre)
    return struct.pack("<HBBBbbBIIIII", 0xdee2, 2, 1, 3, 0, -8, 0, len(functions),
                       rows * len(functions), len(fre), 0, len(fde)) + fde + fre


# ---- Headers ----

def names_without_end(n):
    """65,000 sections whose names are all the rest of a string table."""
    count = min(65000, n // 128)
    at, size = start(0, count), n - 64 * count
    return elf([], [bytes(64), shdr(0, SHT_STRTAB, 0, at, size, 0)] +
               [shdr(i % 16, SHT_PROGBITS, 0, at, size) for i in range(count - 2)],
               b"x" * (size - 1) + b"\0")


def same_notes(n):
    """4,000 program headers and many sections name the same notes."""
    note = struct.pack("<III", 4, 4, 1) + b"GNU\0abcd"
    body = note * (min(n, 1 << 20) // len(note))
    phdrs, shdrs = min(4000, n // 128), min(60000, n // 128)
    at = start(phdrs, shdrs)
    return elf([phdr(PT_NOTE, at, 0, len(body))] * phdrs,
               [shdr(0, SHT_NOTE, 0, at, len(body))] * shdrs, body)


def same_code(n):
    """64 executable segments of the same bytes, in which trampolines nearly begin everywhere."""
    at = start(64, 0)
    body = bytes.fromhex("48c7c00f0000000f") * ((n - at) // 8)
    return elf([phdr(PT_LOAD, at, 0x400000 + (i << 28), len(body), 5) for i in range(64)], [], body)


def same_code_syscalls(n):
    at = start(64, 0)
    return elf([phdr(PT_LOAD, at, 0x400000 + (i << 28), n - at, 5) for i in range(64)], [],
               b"\x0f\x05" * ((n - at) // 2))


# ---- .eh_frame ----

def eh_cies(n):
    return with_tables(CIE * (n // len(CIE)) + fdes([(0, 16)]), code=n)


def eh_same_function(n):
    return with_tables(fdes([(0, n)] * (n // 24)), code=n)


def eh_nested(n):
    return with_tables(fdes([(i, n - 2 * i) for i in range(n // 24)]), code=n)


def eh_descending(n):
    return with_tables(fdes([(n - 16 * i, 16) for i in range(1, n // 28)]), code=n)


def eh_rows(n):
    """A row of another offset each two bytes of instructions."""
    return with_tables(
        fdes([(0, n)], b"".join(bytes([0x41, 0x0e, 8 + i % 112]) for i in range(n // 3))), code=n)


def eh_states(n):
    """Many rules, all different."""
    insns = [
        b"\x41\x0e" + bytes([i & 127 | 128, i >> 7 & 127 | 128, i >> 14 & 127])
        for i in range(n // 5)
    ]
    return with_tables(fdes([(0, n)], b"".join(insns)), code=n)


def eh_remember(n):
    return with_tables(fdes([(0, n)], b"\x0a\x41\x0e\x10\x0b" * (n // 5)), code=n)


def eh_expressions(n):
    """def_cfa_expression of nops without end."""
    return with_tables(fdes([(0, 64)] * 8, b"\x0f\xff\x7f" + b"\x96" * (n // 8)), code=n)


def eh_huge_range(n):
    return with_tables(fdes([(0, 0x7fffffff)] * (n // 24)), code=n)


def eh_chain_broken(n):
    """Without section headers, and .eh_frame_hdr counts other FDEs than there are."""
    eh = fdes([(16 * i, 16) for i in range(n // 48)])
    at = start(3, 0)
    hdr = struct.pack("<BBBBII", 1, 3, 3, 0x3b, 0x10000000, n // 16)
    table = b"".join(
        struct.pack("<ii", 0x400000 - 0x30000000, 0x10000000 + 4 * (i % (len(eh) // 4)) -
                    0x30000000) for i in range(n // 16))
    phdrs = [
        phdr(PT_LOAD, 0, 0x400000, at + len(eh) + len(hdr) + len(table), 5),
        phdr(PT_LOAD, at, 0x10000000, len(eh)),
        phdr(PT_EH_FRAME, at + len(eh), 0x30000000,
             len(hdr) + len(table))
    ]
    return elf(phdrs, [], eh + hdr + table, 0)


# ---- .sframe ----

def sframe_blocks(n):
    """Functions that repeat each byte, over all of the code, and rows of .eh_frame in it."""
    return with_tables(fdes([(0, n)], b"\x41\x0e\x10\x41\x0e\x18" * (n // 8)),
                       sframe2([(0, n)], 1, 1), code=n)


def sframe_block_255(n):
    step = n // 400
    return with_tables(fdes([(i * step, step) for i in range(400)], b"\x41\x0e\x10"),
                       sframe2([(i * step, step) for i in range(400)], 200, 255), code=n)


def sframe_alternating(n):
    """Each function of .sframe cuts those of .eh_frame."""
    return with_tables(fdes([(0, n)] + [(16 * i, 24) for i in range(n // 64)]),
                       sframe2([(16 * i + 8, 4) for i in range(n // 64)], 1), code=n)


def sframe_headers(n):
    """A header every 32 bytes, whose rows end outside the section."""
    one = struct.pack("<HBBBbbBIIIII", 0xdee2, 2, 0, 3, 0, -8, 0, 0, 0, 0xffffffff, 0, 0) + bytes(4)
    return with_tables(sframe=one * (n // 32))


def sframe_headers_unknown(n):
    one = struct.pack("<HBBBbbBIIIII", 0xdee2, 9, 0, 3, 0, -8, 0, 0, 0, 0xffffffff, 0, 0) + bytes(4)
    return with_tables(sframe=one * (n // 32))


SHAPES = {
    f.__name__: f
    for f in (names_without_end, same_notes, same_code, same_code_syscalls, eh_cies,
              eh_same_function, eh_nested, eh_descending, eh_rows, eh_states, eh_remember,
              eh_expressions, eh_huge_range, eh_chain_broken, sframe_blocks, sframe_block_255,
              sframe_alternating, sframe_headers, sframe_headers_unknown)
}
