#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rows from machine code against single steps: programs whose hot code has no tables are stepped,
instruction by instruction. Each call that is seen tells the true CFA, return address and frame
pointer of its frame, and every row of the code after it must give the same.

usage: check_steps.py [CHECK... | NAME=COMMAND...]
    STEPS=N: steps in such code for each program (default 10000); SECONDS=N: at most this long
    (default 40); VERBOSE=1: where there is no row
"""
import base64
import bisect
import ctypes
import os
import platform
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter

import harness as h

STEPS = int(os.environ.get("STEPS", "10000"))
SECONDS = float(os.environ.get("SECONDS", "40"))
VERBOSE = bool(os.environ.get("VERBOSE"))
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_DETACH = 9, 12, 17
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
REGS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp "
        "ss").split()
BATCH = 4000  # steps after which the thread runs on for a moment
MASK = (1 << 64) - 1

PLACE = re.compile(r"(\*\()?(r\w+)([-+]\d+)?(?:\+(\d+)\*(r\w+))?(\))?([-+]\d+)?$")


def value(rule, regs, mem):
    """A rule by a register, as inspect prints it; None: it is of another form."""
    m = PLACE.match(rule)
    if not m:
        return None
    star, reg, off, scale, index, _, more = m.groups()
    at = regs[reg] + int(off or 0) + (int(scale) * regs[index] if index else 0)
    if star:
        word = mem(at & MASK)
        return None if word is None else (word + int(more or 0)) & MASK
    return at & MASK


class Rows:
    """The merged rows of a file, and its executable segments."""

    def __init__(self, path):
        out = subprocess.run([h.SFBPF, "inspect", "--rows=merged", path], capture_output=True,
                             text=True, check=True).stdout
        self.starts, self.rows = [], []
        for line in out.splitlines():
            start, end, source, cfa, ra, fp = line.split()[:6]
            self.starts.append(int(start, 16))
            self.rows.append((int(end, 16), source, cfa[4:], ra[3:], fp[3:], "plt" in line))
        out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                             check=True).stdout
        self.segments = [(int(f[1], 16), int(f[2], 16), int(f[4], 16))
                         for f in (line.split() for line in out.splitlines())
                         if f and f[0] == "LOAD" and "E" in "".join(f[6:-1])]

    def address(self, offset):
        for off, addr, size in self.segments:
            if off <= offset < off + size:
                return addr + offset - off
        return None

    def at(self, addr):
        i = bisect.bisect_right(self.starts, addr) - 1
        return self.rows[i] if i >= 0 and addr < self.rows[i][0] else None


class Stepper:
    """One thread of a process: its steps, and the frames whose calls were seen."""

    def __init__(self, tid, files):
        self.tid, self.files = tid, files
        self.mem_fd = os.open("/proc/%d/mem" % tid, os.O_RDONLY)
        self.regs_buf = (ctypes.c_ulonglong * 27)()
        self.maps = []
        self.frames = []  # rsp at the callee's entry, return address, rbp there
        self.total = self.covered = 0
        self.wrong, self.missing = {}, Counter()

    def word(self, at):
        try:
            b = os.pread(self.mem_fd, 8, at)
        except (OSError, OverflowError):
            return None
        return struct.unpack("<Q", b)[0] if len(b) == 8 else None

    def read_maps(self):
        self.maps = []
        with open("/proc/%d/maps" % self.tid, encoding="utf-8") as f:
            for line in f:
                p = line.split(maxsplit=5)
                if "x" in p[1] and len(p) > 5 and p[5].startswith("/"):
                    lo, hi = (int(x, 16) for x in p[0].split("-"))
                    self.maps.append((lo, hi, int(p[2], 16), p[5].strip()))

    def place(self, pc):
        for lo, hi, off, path in self.maps:
            if lo <= pc < hi:
                if path not in self.files:
                    self.files[path] = Rows(path)
                return path, self.files[path].address(pc - lo + off)
        return None, None

    def regs(self):
        LIBC.ptrace(PTRACE_GETREGS, self.tid, None, ctypes.addressof(self.regs_buf))
        return dict(zip(REGS, self.regs_buf))

    def judge(self, regs):
        path, addr = self.place(regs["rip"])
        if addr is None:
            return
        row = self.files[path].at(addr)
        if row and row[1] != "code":
            return
        self.total += 1
        if not row:
            self.missing[os.path.basename(path), addr] += 1
            return
        self.covered += 1
        entry, ra, rbp = self.frames[-1]
        _, _, cfa_rule, ra_rule, fp_rule, plt = row
        cfa = value(cfa_rule, regs, self.word)
        seen = {"cfa": cfa, "ra": None, "fp": None}
        if cfa is None or plt:
            return
        with_cfa = dict(regs, rcfa=cfa)
        seen["ra"] = value(ra_rule.replace("cfa", "rcfa"), with_cfa, self.word)
        seen["fp"] = regs["rbp"] if fp_rule == "same" else value(
            fp_rule.replace("cfa", "rcfa"), with_cfa, self.word)
        if ra_rule == "undef":
            return
        if fp_rule == "?":  # the row does not tell
            seen["fp"] = rbp
        if (seen["cfa"], seen["ra"], seen["fp"]) != (entry + 8, ra, rbp):
            key = (os.path.basename(path), addr)
            self.wrong.setdefault(key, [0, row[2:5], cfa - entry - 8, seen["ra"] == ra,
                                        seen["fp"] == rbp])[0] += 1

    def step(self, before):
        """False: the thread has ended."""
        sig = None
        LIBC.ptrace(PTRACE_SINGLESTEP, self.tid, None, sig)
        pid, status = os.waitpid(self.tid, 0x40000000)
        if pid != self.tid or not os.WIFSTOPPED(status):
            return None
        after = self.regs()
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            self.frames = []
            return after
        rsp = after["rsp"]
        while self.frames and rsp > self.frames[-1][0]:
            self.frames.pop()
        if rsp == before["rsp"] - 8:
            pushed = self.word(rsp)
            if pushed is not None and 2 <= pushed - before["rip"] <= 8 and \
                    after["rip"] != pushed:
                self.frames.append((rsp, pushed, after["rbp"]))
        elif abs(rsp - before["rsp"]) > 1 << 20:
            self.frames = []
        return after

    def run(self, steps):
        """Steps on until so many were judged, or most of the time was spent elsewhere."""
        end = self.total + steps
        LIBC.ptrace(PTRACE_INTERRUPT, self.tid, None, None)
        os.waitpid(self.tid, 0x40000000)
        self.read_maps()
        self.frames = []
        regs = self.regs()
        for _ in range(4 * steps):
            if self.total >= end:
                break
            if self.frames:
                self.judge(regs)
            regs = self.step(regs)
            if regs is None:
                return False
        LIBC.ptrace(PTRACE_DETACH, self.tid, None, None)
        return True


def busiest(pid):
    """The thread of the process that has used most CPU lately."""
    def ticks():
        found = {}
        for tid in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/stat" % (pid, tid), encoding="utf-8") as f:
                    found[tid] = int(f.read().rsplit(")", 1)[1].split()[11])
            except (OSError, IndexError):
                pass
        return found

    try:
        old = ticks()
        time.sleep(0.3)
        new = ticks()
    except OSError:
        return None
    return max(new, key=lambda t: new[t] - old.get(t, 0), default=None)


def run_one(p, is_short, files, total):
    """Steps through one process, and yields what was seen each time."""
    while total < STEPS and p.poll() is None:
        time.sleep(random.uniform(0.01, 0.06))
        tid = p.pid if is_short else busiest(p.pid)
        if not tid or LIBC.ptrace(PTRACE_SEIZE, int(tid), None, None):
            return
        try:
            s = Stepper(int(tid), files)
        except OSError:  # it has just ended
            return
        try:
            s.run(BATCH)
        except OSError:
            pass
        os.close(s.mem_fd)
        total += s.total
        yield s


def check_program(name, command, least=0.9, is_short=False):
    files, total, covered, wrong, missing = {}, 0, 0, {}, Counter()
    end = time.monotonic() + SECONDS
    while total < STEPS and time.monotonic() < end:
        p = h.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for s in run_one(p, is_short, files, total):
            total += s.total
            covered += s.covered
            missing += s.missing
            for k, v in s.wrong.items():
                wrong.setdefault(k, [0] + v[1:])[0] += v[0]
            if time.monotonic() > end:
                break
        h.stop(p)
    h.note("steps %s: %d in code without tables, %.1f %% have a row, %d are wrong"
           % (name, total, 100 * covered / max(total, 1), sum(v[0] for v in wrong.values())))
    for (path, addr), count in missing.most_common(6 if VERBOSE else 0):
        h.note("%s+%#x: %d steps without a row" % (path, addr, count))
    errors = ["%s+%#x: %d steps, row %s, CFA by %d, RA %s, FP %s" % (k + tuple(v))
              for k, v in sorted(wrong.items(), key=lambda kv: -kv[1][0])[:8]]
    if total < STEPS / 4:
        errors.append("%d steps only" % total)
    elif covered < least * total:
        errors.append("%d of %d steps have a row" % (covered, total))
    h.check("steps-%s" % name, errors)


# ---- The programs
# ----------------------------------------------------------------------------------------------

def need(path):
    found = shutil.which(path)
    if not found:
        raise h.Skip("no %s" % path)
    return found


def noise(width, height, frames):
    """A video in YUV4MPEG2 of squares that move, with noise."""
    path = h.tmpfile("noise.y4m")
    rng = random.Random(1)
    grain = bytes(rng.randrange(16) for _ in range(1 << 16))
    with open(path, "wb") as f:
        f.write(b"YUV4MPEG2 W%d H%d F25:1 C420jpeg\n" % (width, height))
        for n in range(frames):
            f.write(b"FRAME\n")
            at = rng.randrange(1 << 15)
            for y in range(height):
                line = bytearray(grain[(at + 97 * y) % (1 << 15):][:width])
                for x in range((5 * n + y // 16 * 40) % width, width, 128):
                    line[x:x + 32] = b"\xc0" * len(line[x:x + 32])
                f.write(line)
            f.write(bytes([128 + n % 16]) * (width * height // 2))
    return path


def check_steps_gmp(_name):
    """mpn_mul_basecase and the like, by way of Python's ctypes."""
    if not os.path.exists("/usr/lib/%s-linux-gnu/libgmp.so.10" % platform.machine()):
        raise h.Skip("no libgmp.so.10")
    code = """if 1:
        import ctypes
        g = ctypes.CDLL("libgmp.so.10")
        a, b, c = ((ctypes.c_long * 2)() for _ in range(3))
        for x in (a, b, c): g.__gmpz_init(x)
        g.__gmpz_ui_pow_ui(a, ctypes.c_ulong(3), ctypes.c_ulong(20000))
        g.__gmpz_ui_pow_ui(b, ctypes.c_ulong(7), ctypes.c_ulong(9000))
        while True:
            g.__gmpz_mul(c, a, b)
            g.__gmpz_tdiv_q(c, c, a)
    """
    check_program("gmp", [sys.executable, "-c", code])


def check_steps_zstd(_name):
    """Many small frames, so that calls of the decoder's assembly are seen."""
    plain, packed = h.tmpfile("steps.txt"), h.tmpfile("steps.zst")
    with open(plain, "wb") as out:
        out.write(base64.b64encode(random.Random(1).randbytes(12000)))
    subprocess.run([need("zstd"), "-q", "-f", "-3", plain, "-o", packed], check=True)
    with open(packed, "r+b") as f:
        frame = f.read()
        f.write(frame * 20000)
    check_program("zstd", ["zstd", "-q", "-d", "-f", "-o", "/dev/null", packed], is_short=True)


def check_steps_jpeg(_name):
    ppm, jpg = h.tmpfile("steps.ppm"), h.tmpfile("steps.jpg")
    with open(ppm, "wb") as f:
        f.write(b"P6 3000 2000 255\n" + random.Random(1).randbytes(3000 * 2000 * 3))
    subprocess.run([need("cjpeg"), "-outfile", jpg, ppm], check=True)
    check_program("jpeg", ["djpeg", "-outfile", "/dev/null", jpg], is_short=True)


def check_steps_x264(_name):
    check_program("x264", [need("x264"), "--quiet", "--threads", "1", "--preset", "slow", "-o",
                           "/dev/null", noise(1280, 720, 60)])


def check_steps_dav1d(_name):
    """Needs an encoder, too."""
    need("dav1d")
    video = h.tmpfile("steps.ivf")
    p = subprocess.run([need("ffmpeg"), "-v", "error", "-y", "-i", noise(1280, 720, 60), "-c:v",
                        "libsvtav1", "-preset", "10", video], capture_output=True, check=False)
    if p.returncode:
        raise h.Skip("ffmpeg cannot encode AV1")
    check_program("dav1d", ["dav1d", "-q", "--threads", "1", "-i", video, "-o", "/dev/null"],
                  is_short=True)


def check_steps_busybox(_name):
    """A static program without symbols; its shell's main function never returns."""
    out = subprocess.run(["readelf", "-lW", need("busybox")], capture_output=True, text=True,
                         check=True).stdout
    if "INTERP" in out:
        raise h.Skip("busybox is not static")
    check_program("busybox", ["busybox", "sh", "-c", "while :; do :; done"])


def check_steps_notab(_name):
    check_program("notab", [h.program("rec-notab"), "100"], least=0.99)


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        h.skip("steps", "single steps are read for x86-64 only")
        sys.exit(0)
    for program, what in (a.split("=", 1) for a in sys.argv[1:] if "=" in a):
        check_program(program, ["sh", "-c", "exec " + what])
    if any("=" in a for a in sys.argv[1:]):
        sys.exit(h.exit_status())
    h.run_checks([check_steps_gmp, check_steps_zstd, check_steps_jpeg, check_steps_x264,
                  check_steps_dav1d, check_steps_busybox, check_steps_notab])
