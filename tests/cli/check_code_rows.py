#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rows from machine code against .eh_frame: inspect --rows=code ignores the file's tables, inspect
--rows=eh_frame shows them.

usage: check_code_rows.py [-v] [FILE...]    (default: some of the libraries that are installed) Of
the code that .eh_frame describes, a share must have rows from code, and nearly all of those must
agree. Two ways to say the same count as equal: a frame pointer that was popped, and is still in its
slot; a CFA by r10, r13 or rax, as in functions that align their stack, while sp or a saved word
gives it too.
"""
import glob
import json
import os
import platform
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.environ.get("SFBPF") or os.path.join(ROOT, os.environ.get("OUTPUT", "build"), "sfbpf")
LIBS = "/lib/%s-linux-gnu/" % platform.machine()
# Least share of code with a row, most bytes with another CFA or RA (in percent). Assembly of glibc
# pushes without saying so in .eh_frame (docs/eh-frame-errors.md). libcap can be run.
FILES = {
    "libc.so.6": (85, 0.05),
    "libz.so.1": (92, 0.03),
    "libgmp.so.10": (92, 0.03),
    "libzstd.so.1": (92, 0.03),
    "libsqlite3.so.0": (92, 0.03),
    "libelf.so.1": (92, 0.03),
    "libcap.so.2": (92, 0.03),
    "liblzma.so.5": (92, 0.03),
    "libncursesw.so.6": (92, 0.03),
    "libperl.so.5.*": (92, 0.03),
    "goto-pie": (90, 0),
    "goto-exec": (90, 0),
}

# Computed gotos: by a table, and by addresses that the program copied. In a file that may be mapped
# anywhere the labels are relocations, else words of data.
GOTO = """
#include <stdlib.h>
static const void **ops;
__attribute__((noinline)) long copied(const void **code, long (*fn)(long))
{
	static const void *const labels[] = { &&add, &&twice, &&call, &&end };
	long v = 1;
	if (!code) { ops = (const void **)labels; return 0; }
	goto **code;
add:	v++; goto **++code;
twice:	v *= 2; goto **++code;
call:	v = fn(v); goto **++code;
end:	return fn(v) + v;
}
__attribute__((noinline)) long by_table(const unsigned char *code, long (*fn)(long))
{
	static const void *const labels[] = { &&add, &&twice, &&call, &&end };
	long v = 1;
	goto *labels[*code];
add:	v++; goto *labels[*++code];
twice:	v *= 2; goto *labels[*++code];
call:	v = fn(v); goto *labels[*++code];
end:	return fn(v) + v;
}
int main(int argc, char **argv)
{
	const void *code[3];
	copied(0, labs);
	for (int i = 0; i < 3; i++)
		code[i] = ops[i + 1 < 3 ? argc % 3 : 3];
	return (int)(copied(code, labs) + by_table((const unsigned char *)argv[1], labs));
}
"""

# What is after the call of die() in first() is a function, as its call in later() tells: at first
# it is taken for the rest of first(), where the stack has another height.
LATE = """
	.text
	.globl _start
_start:
	xor %ebp, %ebp
	call main
	hlt
main:	push %rbx
	call later
	call first
	pop %rbx
	ret
first:	push %rbx
	sub $16, %rsp
	test %edi, %edi
	jne 1f
	call die
1:	call die
second: push %rbp
	push %rbx
	push %rax
	test %edi, %edi
	jne 2f
	call third
2:	call die
third:	push %rbx
	xor %ebx, %ebx
	pop %rbx
	ret
later:	push %rbx
	call second
	pop %rbx
	ret
die:	mov $60, %eax
	syscall
"""



# As in static programs of musl: code only takes the address of main, which follows a call that does
# not return. quit() is analysed before die() is.
TAKEN = """
	.text
	.globl _start
_start:
	xor %ebp, %ebp
	call first
	hlt
quit:	push %rbp
	mov %edi, %ebp
	call die
main:	push %rbx
	mov %edi, %ebx
1:	call work
	jmp 1b
first:	lea main(%rip), %rdi
	jmp run
run:	push %rbx
	mov %rdi, %rbx
	call *%rbx
	mov %eax, %edi
	call quit
work:	push %rbx
	xor %ebx, %ebx
	pop %rbx
	ret
die:	mov $60, %eax
	syscall
"""


def build(directory, source, text, output, *options):
    """The path of the built file."""
    source, path = os.path.join(directory, source), os.path.join(directory, output)
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    subprocess.run(["gcc", *options, "-o", path, source], check=True)
    return path


def check_asm(directory, name, text):
    path = build(directory, name + ".S", text, name, "-nostdlib", "-static", "-s")
    out = subprocess.run([SFBPF, "inspect", "--json", path], capture_output=True, check=True)
    found = json.loads(out.stdout)["coverage"]
    if found["code_bytes"] == found["exec_bytes"]:
        print("ok code-rows " + name)
        return 0
    print("FAIL code-rows %s: %d of %d bytes have rows from code" %
          (name, found["code_bytes"], found["exec_bytes"]))
    return 1


# first() is analysed before out(), of which it is not known then that it does not return: other(),
# which nothing calls, looks like the rest of first(), with 40 bytes on the stack instead of 32.
LAST = """
	.text
	.globl _start
_start:
	xor %ebp, %ebp
	call main
	hlt
main:	push %rbx
	call first
	pop %rbx
	ret
first:	push %rbx
	test %edi, %edi
	jne 1f
	pop %rbx
	ret
1:	mov %edi, %ebx
	call out
	.balign 16
other:	sub $24, %rsp
1:	call *%rdi
	jmp 1b
	.balign 16
out:	mov $60, %eax
	syscall
"""


def check_last(directory):
    path = build(directory, "last.S", LAST, "last", "-nostdlib", "-static", "-s")
    text = shown(path, "code")
    if "cfa=rsp+16" in text and "cfa=rsp+40" not in text:
        print("ok code-rows last")
        return 0
    print("FAIL code-rows last: " + text.replace("\n", "; "))
    return 1


# The cold part of f() comes first in the file, right before GCC's own functions.
COLD = """
__attribute__((cold)) int bad(int x, int *p);
int other(int);
int f(int x, int *p)
{
	int t[8];

	for (int i = 0; i < x; i++)
		t[i & 7] = other(i);
	if (__builtin_expect(x > 1000, 0))
		t[0] = bad(x, t);
	return p[t[x & 7] & 3] * 3 + x;
}
"""


def check_cold(directory):
    path = build(directory, "cold.c", COLD, "libcold.so", "-O2", "-shared", "-fPIC", "-s",
                 "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    names = subprocess.run(["nm", "-D", path], capture_output=True, check=True).stdout.decode()
    start = [int(x.split()[0], 16) for x in names.splitlines() if x.endswith(" T f")][0]
    if any(row[0] <= start < row[1] for row in rows(path, "code")):
        print("ok code-rows cold")
        return 0
    print("FAIL code-rows cold: f has no rows")
    return 1


# The cold part of f() is no longer than padding; a function that a table describes follows.
COLD_GAP = """
	.text
	.type f.cold, @function
f.cold:	call stop
	.size f.cold, . - f.cold
	.cfi_startproc
stop:	ud2
	.cfi_endproc
	.globl f
	.type f, @function
f:	push %rbx
	test %edi, %edi
	jne f.cold
	mov %rsi, %rbx
	call *%rsi
	call *%rbx
	call *%rbx
	call *%rbx
	call *%rbx
	pop %rbx
	ret
	.size f, . - f
	.cfi_startproc
	.globl _start
_start:	nop
	.cfi_endproc
"""


def check_cold_gap(directory):
    path = build(directory, "cold_gap.S", COLD_GAP, "cold_gap", "-nostdlib", "-static")
    if "cfa=rsp+16" in shown(path, "code"):
        print("ok code-rows cold-gap")
        return 0
    print("FAIL code-rows cold-gap: f has no rows")
    return 1


# f() jumps to where its cold part would be, in what does not occur, as compiled by GCC 15. It is
# empty, so the cold part of g() is there, which has another height of the stack. h() ends in a jump
# through a pointer only, and nothing calls it.
EMPTY_COLD = """
	.section .text.unlikely, "ax"
g_cold:	lea f(%rip), %rax
	jmp g_back
	.text
	.p2align 4
f:	push %rbp
	push %rbx
	sub $72, %rsp
	cmp $5, %edi
	ja g_cold
	mov %edi, %edi
	lea table(%rip), %rcx
	movslq (%rcx,%rdi,4), %rax
	add %rcx, %rax
	jmp *%rax
f_case:	mov %edi, 8(%rsp)
	call stop
	add $72, %rsp
	pop %rbx
	pop %rbp
	ret
	.p2align 4
g:	push %r12
	test %edi, %edi
	je g_cold
	lea h(%rip), %rax
g_back:	call stop
	pop %r12
	ret
	.p2align 4
h:	push %rbx
	mov %rdi, %rbx
	call stop
	mov (%rbx), %rax
	pop %rbx
	jmp *%rax
	.p2align 4
	.cfi_startproc
	.globl _start
_start:	call f
	call g
stop:	ud2
	.cfi_endproc
	.section .rodata
	.p2align 2
table:	.long f_case - table, g_cold - table, f_case - table, g_cold - table
	.long g_cold - table, f_case - table
"""


def check_empty_cold(directory):
    path = build(directory, "empty_cold.S", EMPTY_COLD, "empty_cold", "-nostdlib", "-static", "-s")
    text = shown(path, "merged")
    if text.count("cfa=rsp+96 ") == 1 and text.count("cfa=rsp+16 ra=*(cfa-8) fp=same") == 3:
        print("ok code-rows empty-cold")
        return 0
    print("FAIL code-rows empty-cold: a row of f, g, its cold part or h is missing: " + text)
    return 1


# The analysis of f() fails, as it writes its return address. Its label, whose address is taken, is
# no function: the jump there leads to a part of f(), although a table begins with that part.
PART = """
	.text
	.cfi_startproc
	.globl f
f:	push %rbx
	.cfi_def_cfa_offset 16
	mov %rdi, 8(%rsp)
	call *%rsi
	lea 1f(%rip), %rax
	jmp *%rax
1:	call *%rsi
	jmp part
	.cfi_endproc
	.cfi_startproc
	.globl user
user:	lea 1b(%rip), %rax
	ret
	.cfi_endproc
	.section .text.unlikely, "ax"
	.cfi_startproc
	.cfi_def_cfa_offset 16
part:	call *%rsi
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
"""


def check_library(directory, name, text, least=1, options=()):
    path = build(directory, name + ".S", text, name + ".so", "-nostdlib", "-shared", *options)
    _, claimed, wrong = compare(path)
    if claimed >= least and not wrong:
        print("ok code-rows " + name)
        return 0
    print("FAIL code-rows %s: of %d bytes with rows from code, %d have wrong ones" %
          (name, claimed, wrong))
    return 1


# error(1, ...) does not return. If it did, the store would be to the place of rbp.
ERROR = """
	.text
	.cfi_startproc
	.globl f
f:	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	push %rbx
	.cfi_def_cfa_offset 24
	sub $8, %rsp
	.cfi_def_cfa_offset 32
	xor %ebp, %ebp
	test %esi, %esi
	je 1f
	mov %rsp, %rbx
	mov $1, %edi
	xor %esi, %esi
	call error@PLT
2:	mov %rdi, 16(%rbx)
	test %rdi, %rdi
	je 3f
	call *%rdi
3:	add $8, %rsp
	.cfi_def_cfa_offset 24
	pop %rbx
	.cfi_def_cfa_offset 16
	pop %rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_def_cfa_offset 32
1:	mov %rdi, %rbx
	jmp 2b
	.cfi_endproc
"""


# The end of first() shows that fatal() does not return. After its call in second() is a part of
# another height.
FINAL = """
	.text
	.cfi_startproc
	.globl second
second:	push %rbx
	.cfi_def_cfa_offset 16
	mov %edi, %ebx
	cmp $5, %edi
	ja 5f
	test %edi, %edi
	js 2f
1:	mov %ebx, %edi
	call *%rsi
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_def_cfa_offset 16
2:	sub $16, %rsp
	.cfi_def_cfa_offset 32
	test %edx, %edx
	je 3f
	call *%rsi
	add $16, %rsp
	.cfi_def_cfa_offset 16
	jmp 1b
	.cfi_def_cfa_offset 32
3:	call fatal@PLT
	.cfi_def_cfa_offset 16
4:	mov $1, %ebx
	jmp 1b
5:	mov $2, %esi
	jmp 4b
	.cfi_endproc
	.cfi_startproc
	.globl first
first:	push %rbx
	.cfi_def_cfa_offset 16
	call *%rdi
	call fatal@PLT
	.cfi_endproc
"""


# f() has no rows, as it writes its return address. Only it uses the stubs of the PLT.
STUBS = """
	.text
	.cfi_startproc
	.globl f
f:	push %rbx
	.cfi_def_cfa_offset 16
	mov %rdi, 8(%rsp)
	call *%rsi
	call other@PLT
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
"""


# f() has no rows, as it writes its return address. The symbol names a part of it, as in LuaJIT.
INNER = """
	.text
	.cfi_startproc
	.globl f
f:	push %rbx
	.cfi_def_cfa_offset 16
	mov %rdi, 8(%rsp)
	.globl part
	.type part, @function
part:	call *%rsi
	mov (%rdi), %rax
	jmp *%rax
	.size part, . - part
	.cfi_endproc
	.cfi_startproc
	.globl user
user:	mov %edi, %eax
	ret
	.cfi_endproc
"""


# The number is as large as the address of its own third byte.
NUMBER = """
	.text
	.cfi_startproc
	.globl f
f:	push %rbx
	.cfi_def_cfa_offset 16
	mov $0x1003, %eax
	call *%rdi
	mov (%rax), %rax
	pop %rbx
	.cfi_def_cfa_offset 8
	jmp *%rax
	.cfi_endproc
"""


# As small as GCC's own functions without tables, which are right before it, and have no rows.
SMALL = """
__attribute__((noinline)) int inner(int n) { int s = 1; while (n-- > 0) s = s * 31 + n; return s; }
int outer(int n) { return inner(n) + 1; }
"""


def check_small(directory):
    path = build(directory, "small.c", SMALL, "small.so", "-O1", "-fPIC", "-shared",
                 "-fno-asynchronous-unwind-tables")
    names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    starts = [int(line.split()[0], 16) for line in names.splitlines()
              if line.endswith((" inner", " outer"))]
    found = [start for start in starts if any(a <= start < b for a, b, *_ in rows(path, "merged"))]
    if len(found) == 2:
        print("ok code-rows small")
        return 0
    print("FAIL code-rows small: %d of 2 functions have rows from code" % len(found))
    return 1


def goto_programs(directory):
    source = os.path.join(directory, "goto.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(GOTO)
    for name, flags in (("goto-pie", ["-fPIE", "-pie"]), ("goto-exec", ["-fno-pie", "-no-pie"])):
        path = os.path.join(directory, name)
        subprocess.run(["gcc", "-O2", *flags, "-o", path, source], check=True)
        yield path


def shown(path, source):
    return subprocess.run([SFBPF, "inspect", "--rows=" + source, path], stdout=subprocess.PIPE,
                          text=True, check=True).stdout


def rows(path, source):
    for line in shown(path, source).splitlines():
        start, end, _, cfa, ra, fp, *flags = line.split(" ")
        yield int(start, 16), int(end, 16), cfa[4:], ra[3:], fp[3:], flags


def base_of(cfa):
    return cfa.lstrip("*(").split("+")[0].split("-")[0]


def differs(eh, code):
    if "plt" in eh[5] or eh[2] == "?":
        return None
    if eh[3] == "undef" or code[3] == "undef":
        return "ra" if eh[3] != code[3] else None
    if eh[2] != code[2]:
        if len({base_of(eh[2]), base_of(code[2])} & {"r10", "r13", "rax"}) == 1:
            return None
        return "cfa"
    if eh[3] != code[3]:
        return "ra"
    return "fp" if eh[4] != code[4] and "same" not in (eh[4], code[4]) else None


def compare(path, verbose=False):
    """Bytes that .eh_frame describes, those that code does too, and bytes that differ."""
    eh, code = [], list(rows(path, "code"))
    for row in rows(path, "eh_frame"):      # each row of a PLT has the range of all of it
        if not eh or row[:2] != eh[-1][:2]:
            eh.append(row)
    described = sum(r[1] - r[0] for r in eh)
    claimed = wrong = i = k = 0
    while i < len(eh) and k < len(code):
        lo, hi = max(eh[i][0], code[k][0]), min(eh[i][1], code[k][1])
        if lo < hi:
            claimed += hi - lo
            how = differs(eh[i], code[k])
            if how:
                wrong += hi - lo
                if verbose:
                    print("# %s: %x-%x: .eh_frame %s, code %s" %
                          (how, lo, hi, " ".join(eh[i][2:5]), " ".join(code[k][2:5])))
        if eh[i][1] < code[k][1]:
            i += 1
        else:
            k += 1
    return described, claimed, wrong


def main():
    args = sys.argv[1:]
    paths = [a for a in args if a != "-v"]
    if paths:
        return check(paths, "-v" in args)
    with tempfile.TemporaryDirectory(prefix="sfbpf-goto-") as directory:
        libraries = [(glob.glob(LIBS + f) + [LIBS + f])[0] for f in FILES if ".so" in f]
        failed = check(libraries + list(goto_programs(directory)), "-v" in args)
        if platform.machine() == "x86_64":
            for name, text in (("late", LATE), ("taken", TAKEN)):
                failed |= check_asm(directory, name, text)
            for name, text in (("part", PART), ("error", ERROR), ("final", FINAL),
                               ("inner", INNER), ("number", NUMBER)):
                failed |= check_library(directory, name, text)
            failed |= check_library(directory, "stubs", STUBS, 32)
            failed |= check_library(directory, "stubs-ibt", STUBS, 40, ["-Wl,-z,ibtplt"])
            for test in (check_last, check_cold, check_cold_gap, check_empty_cold, check_small):
                failed |= test(directory)
        return failed


def check(paths, verbose):
    failed = 0
    if not next(rows(LIBS + "libc.so.6", "code"), None):
        print("SKIP code-rows: sfbpf was built without Zydis")
        return 0
    for path in paths:
        name = "code-rows " + os.path.basename(path)
        least, most = FILES.get(os.path.basename(path), (92, 0.03))
        if not os.path.exists(path):
            print("SKIP %s: not installed" % name)
            continue
        described, claimed, wrong = compare(path, verbose)
        share, bad = 100 * claimed / max(described, 1), 100 * wrong / max(claimed, 1)
        print("# %s: %d bytes described, %.2f %% have rows from code, %.4f %% of those differ" %
              (os.path.basename(path), described, share, bad))
        if share < least or bad > most:
            failed = 1
            print(
                "FAIL %s: %.2f %% instead of at least %s %%, or %.4f %% instead of at most %s %%" %
                (name, share, least, bad, most))
        else:
            print("ok " + name)
    return failed


if __name__ == "__main__":
    sys.exit(main())
