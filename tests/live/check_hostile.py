#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that want to mislead, stall or break the profiler: the stacks of all others stay
complete, a sample's cost and sfbpf's memory stay bounded.
"""

import contextlib
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import time

import harness as h

SHAPES = [
    "cycle", "pair", "endless", "endless-read", "endless-spread", "tables", "elsewhere", "wild",
    "edge", "absent", "churn", "rewrite"
]
SPIN = b"\xf3\x90\xeb\xfc" # pause; jmp
CODE, TABLE = 0x1000, 0x2000 # file offsets and addresses
RSS_LIMIT_KB = 512 << 10
DENSE_ROWS = 1_000_000 # 3 MB of .eh_frame, and of a single function


def sample_ns(stats):
    runs = stats["bpf"]["on_cpu"]
    return runs["run_ns"] / max(runs["run_cnt"], 1)


def check_cost(name):
    """Bounded frames, bounded searches: at most twice an honest deep stack."""
    def cost(argv):
        p = h.start(argv)
        time.sleep(0.3)
        _, stats = h.record(["-F", "999", "-p", str(p.pid)], 1)
        h.stop(p)
        return sample_ns(stats), stats

    # The deepest that fits the limit of frames.
    honest = cost([h.program("rec"), "0", "1000"])[0]
    errors = []
    for shape in SHAPES:
        ns, stats = cost([h.program("hostile"), shape])
        errors += ["%s: %s" % (shape, e) for e in h.stats_errors(stats)]
        if stats["samples"] < 50:
            errors.append("%s: %d samples" % (shape, stats["samples"]))
        h.note("%s: %.1f us a sample, %.2f of an honest one; %s" %
               (shape, ns / 1000, ns / honest,
                {k: v
                 for k, v in stats["user_stacks"]["incomplete"].items() if v}))
        if ns > 2 * honest:
            errors.append("%s: a sample costs %.1f us, an honest deep one %.1f" %
                          (shape, ns / 1000, honest / 1000))
    h.check(name, errors)


# ---- files
# -----------------------------------------------------------------------------------------------

def elf(path, section, data, size=None, strings=None, phnum=2, code=TABLE):
    """A file with spinning code and one section of tables; size: what its header claims, the file
    is made as long; code: where it ends.
    """
    size = len(data) if size is None else size
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0" + section + b"\0"
    symbols = bytes(24)
    if strings:
        symbols += struct.pack("<IBBHQQ", 1, 0x12, 0, 1, CODE, len(SPIN))
    strings = b"\0" + (strings or b"")
    after = CODE + 0x800
    layout, at = {}, after
    for part, content in (("names", names), ("symbols", symbols), ("strings", strings)):
        layout[part] = at if len(content) < 0x200 else TABLE + size
        at += len(content) if layout[part] == at else 0
    heads = at + -at % 8

    def head(text, kind, flags, offset, length, link=0, entry=0):
        return struct.pack("<IIQQQQIIQQ", names.index(text), kind, flags, offset if flags else 0,
                           offset, length, link, 1, 1, entry)

    sections = bytes(64) + head(b".text", 1, 6, CODE, 0x100) + head(section, 1, 2, TABLE, size)
    sections += head(b".symtab", 2, 0, layout["symbols"], len(symbols), 4, 24) + head(
        b".strtab", 3, 0, layout["strings"], len(strings))
    sections += head(b".shstrtab", 3, 0, layout["names"], len(names))
    with open(path, "wb") as f:
        f.write(
            b"\x7fELF\2\1\1".ljust(16, b"\0") +
            struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, CODE, 64, heads, 0, 64, 56, phnum, 64, 6, 5))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, code, code, 0x1000))
        f.write(struct.pack("<IIQQQQQQ", 1, 4, TABLE, TABLE, TABLE, size, size, 0x1000))
        f.seek(CODE)
        f.write(SPIN)
        for part, content in (("names", names), ("symbols", symbols), ("strings", strings)):
            f.seek(layout[part])
            f.write(content)
        f.seek(heads)
        f.write(sections)
        f.seek(TABLE)
        f.write(data)
        f.truncate(max(f.tell(), TABLE + size, code, layout["strings"] + len(strings)))


def sframe_header(version, fdes, fres, fre_bytes):
    entry = {1: 17, 2: 20, 3: 16}[version]
    return struct.pack("<HBBBbbBIIIII", 0xdee2, version, 5 if version > 1 else 1, 3, 0, -8, 0, fdes,
                       fres, fre_bytes, 0, fdes * entry)


def eh_frame(fdes):
    """A CIE and so many FDEs for one place of the code."""
    head = struct.pack("<II", 16, 0) + b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"
    head = struct.pack("<I", len(head) - 4) + head[4:]
    ats = range(len(head), len(head) + 20 * fdes, 20)
    fdes = b"".join(
        struct.pack("<IIiII", 16, at + 4, CODE - (TABLE + at + 8) + at % 0x80, 0x100, 0)
        for at in ats)
    return head + fdes + bytes(4)


def dense_eh_frame(rows):
    """One function with a row for each byte of code."""
    cie = struct.pack("<I", 0) + b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"
    cie = struct.pack("<I", len(cie)) + cie
    program = b"\x41\x0e\x10\x41\x0e\x18" * (rows // 2) # advance_loc 1; def_cfa_offset
    fde = struct.pack("<IiIB", len(cie) + 4, CODE - (TABLE + len(cie) + 8), rows + 2, 0) + program
    return cie + struct.pack("<I", len(fde)) + fde + bytes(4)


def hostile_files():
    """Their paths."""
    def make(name, *args, **kw):
        path = h.tmpfile("hostile-" + name)
        elf(path, *args, **kw)
        return path

    loop = struct.pack("<II", 12, 4) + bytes(8)
    yield make("sparse", b".sframe", sframe_header(2, 0x0ccccccc, 1, 0x10), size=4 << 30)
    yield make("fdes", b".sframe", sframe_header(2, 10_000_000, 0, 0), size=28 + 200_000_000)
    yield make("sparse-eh", b".eh_frame", eh_frame(1), size=4 << 30)
    yield make("loop", b".eh_frame", loop * 1000)
    yield make("overlap", b".eh_frame", eh_frame(1_000_000))
    yield make("name", b".eh_frame", eh_frame(1), strings=b"x" * (1 << 20) + b"\0")
    yield make("escape", b".eh_frame", eh_frame(1), strings=b"\x1b]0;owned\x07;a\nb<script>\0")
    yield make("heads", b".eh_frame", eh_frame(1), phnum=0xffff)
    yield make("dense", b".eh_frame", dense_eh_frame(DENSE_ROWS), code=DENSE_ROWS + 2 * CODE)


def check_files(name):
    """A bystander that starts amid hostile files has its tables soon, and complete stacks."""
    files = list(hostile_files())
    for shape in ("churn", "rewrite", "endless"):
        h.start(["nice", "-n", "19", h.program("hostile"), shape])
    r = h.Recording([], 6)
    r.wait_ready()
    for path in files:
        h.start(["nice", "-n", "19", h.program("hostile"), "run", path])
    bystander = h.start([h.copy_program("rec", "bystander"), "0", "60"])
    stacks, stats = r.finish()
    errors = h.stats_errors(stats, stacks)
    mine = [s for s in stacks if s.comm == "bystander"]
    whole = sum(s.count for s in mine if not h.reason(s))
    late = sum(s.count for s in mine if h.reason(s) == "not_loaded")
    h.note(
        "bystander: %d of %d complete, %d came before its tables; %d kB resident; lost %s; "
        "processes that read files: %s"
        % (whole, h.total(mine), late, stats["self"]["rss_peak_kb"], stats["lost"],
           stats.get("parsers")))
    if bystander.poll() is not None or h.total(mine) < 10:
        errors.append("the bystander has %d samples" % h.total(mine))
    if whole < 0.9 * h.total(mine):
        errors.append("%d of the bystander's %d stacks are complete: %s" %
                      (whole, h.total(mine), h.worst([s for s in mine if h.reason(s)])))
    if stats["self"]["rss_peak_kb"] > RSS_LIMIT_KB:
        errors.append("%d kB resident" % stats["self"]["rss_peak_kb"])
    if any(c in s.comm + f for s in stacks for f in s.frames for c in "\x1b\n\x07"):
        errors.append("a control character came through")
    for path in files:
        os.unlink(path)
    h.check(name, errors)


# ---- file systems that do not answer
# ----------------------------------------------------------------------

SILENCES = ["none", "open", "read", "flush"]


class FileSystem:
    """A user's own (fuse_files.py): answers everybody but sfbpf, which waits for ever for one kind
    of request.
    """

    def __init__(self, silence, program=True, file=None):
        if not os.path.exists("/dev/fuse"):
            raise h.Skip("there is no /dev/fuse")
        self.where = h.tmpfile("fuse-" + silence)
        os.makedirs(self.where, exist_ok=True) # the second try's
        name = file or "fs-" + silence
        self.daemon = h.start([
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuse_files.py"), self.where,
            h.program("rec"),
            "%s=%s" % (name, silence)
        ], stdout=subprocess.PIPE)
        if not self.daemon.stdout.readline():
            raise h.Skip("no file system can be mounted")
        self.program = h.start(["nice", os.path.join(self.where, name), "0", "60"
                                ]) if program else None

    def stop(self):
        subprocess.run(["umount", "-l", self.where], check=False)
        if self.program:
            h.stop(self.program)
        h.stop(self.daemon)


def opener_states(pid):
    """Of the processes that open files: the letter of each."""
    states = []
    for server in h.children(pid):
        for child in h.children(server):
            if h.comm(child) == "sfbpf-open":
                with open("/proc/%d/stat" % child) as f:
                    states.append(f.read().rsplit(") ", 1)[1][0])
    return states


def silent_errors(stacks, stats, states):
    errors = h.stats_errors(stats, stacks)
    for comm, complete in [("bystander", True)] + [("fs-" + s, s == "none") for s in SILENCES]:
        mine = [s for s in stacks if s.comm == comm]
        whole = sum(s.count for s in mine
                    if not h.reason(s) and any(f.startswith("rec_") for f in s.frames))
        h.note("%s: %d of %d stacks are complete, with names" % (comm, whole, h.total(mine)))
        if h.total(mine) < 10 or (whole < 0.8 * h.total(mine) if complete else whole):
            errors.append("%s: %d of %d stacks are complete; %s" %
                          (comm, whole, h.total(mine), h.worst(mine)))
        if not complete and not any("fs-" in f for s in mine for f in s.frames):
            errors.append("%s: its file is not named" % comm)
    h.note("openers: %s; %s" % (states, stats["parsers"]))
    # A loaded machine may add files that are late.
    if not 3 <= stats["parsers"]["late"] <= 8 or stats["parsers"]["failed"] < 3 or \
            not 3 <= len(states) <= 6:
        errors.append("%s, with %s" % (stats["parsers"], states))
    return errors


def check_silent_files(name):
    """Files whose file system never answers an open, a read or a close cost themselves only; one
    that answers is like any other; the end is in time.
    """
    systems = [FileSystem(silence) for silence in SILENCES]
    try:
        r = h.Recording(["-F", "199"], 14)
        r.wait_ready()
        bystander = h.start([h.copy_program("rec", "bystander"), "0", "60"])
        time.sleep(5)
        states = opener_states(r.p.pid)
        stacks, stats = r.finish()
        errors = silent_errors(stacks, stats, states)
        h.stop(bystander)
        begin = time.monotonic()
        p = h.start([h.SFBPF, "record", "-o", h.tmpfile("silent.folded"), "60"])
        time.sleep(4)
        stuck, interrupted = opener_states(p.pid), time.monotonic()
        os.kill(p.pid, signal.SIGINT)
        rc = p.wait(timeout=20)
        h.note("interrupted after %.1f s, with openers %s: ended after %.2f s more" %
               (interrupted - begin, stuck, time.monotonic() - interrupted))
        if rc or time.monotonic() - interrupted > 2 or len(stuck) < 3:
            errors.append("SIGINT: exit code %d after %.2f s, openers %s" %
                          (rc, time.monotonic() - interrupted, stuck))
    finally:
        for system in systems:
            system.stop()
    h.check(name, errors)


# ---- and paths below the roots of processes that lead there
# ------------------------------------------------

PATH_SILENCES = ["none", "lookup", "open", "read", "flush"]
JIT_AT = 0x700000000000
HIDDEN = """#include <string.h>
#include <sys/mman.h>
#define SPIN for (volatile int i = 0; i < 100000; i++) ;
__attribute__((noinline, noclone)) void hidden_%s(void (*f)(void)) { SPIN f(); SPIN }
__attribute__((noinline, noclone)) void made(void) { SPIN }
int main(void)
{
	void *p = mmap((void *)%#x, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(p, (void *)made, 256);
	__builtin___clear_cache(p, (char *)p + 256);
	for (;;) hidden_%s((void (*)(void))p);
}
"""


class Container:
    """A process in a root and mounts of its own. Its debug file and its perf map lie in file
    systems that do not answer sfbpf.
    """

    def __init__(self, silence):
        root = h.tmpfile("silent-root-" + silence)
        shutil.rmtree(root, ignore_errors=True) # the second try's
        app, made = os.path.join(root, "fs-" + silence), os.path.join(root, "made")
        for sub in ("tmp", "made"):
            os.makedirs(os.path.join(root, sub))
        with open(made + "/app.c", "w") as f:
            f.write(HIDDEN % (silence, JIT_AT, silence))
        command = [
            "gcc", "-O1", "-fno-omit-frame-pointer", "-fcf-protection=none", "-static",
            "-Wl,--build-id", "-o", app, made + "/app.c"
        ]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            raise h.Skip("no static libc")
        out = subprocess.run(["readelf", "-n", app], capture_output=True, text=True,
                             check=True).stdout
        build_id = next(line.split()[-1] for line in out.splitlines() if "Build ID" in line)
        subprocess.run(["objcopy", "--only-keep-debug", app, made + "/debug"], check=True)
        subprocess.run(["strip", app], check=True)
        debug = os.path.join(root, "usr/lib/debug/.build-id", build_id[:2])
        os.makedirs(debug)
        with open(made + "/map", "w") as f:
            f.write("%x 1000 jitted_%s\n" % (JIT_AT, silence))
        fuse = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuse_files.py")
        script = "%s %s %s/debug %s.debug=%s >%s/1 & %s %s/tmp %s/map perf-1.map=%s >%s/2 & " % (
            fuse, debug, made, build_id[2:], silence, made, fuse, root, made, silence, made)
        script += ("while [ ! -s %s/1 ] || [ ! -s %s/2 ]; do sleep 0.1; done; "
                   "exec unshare --pid --fork nice chroot %s /fs-%s" % (made, made, root, silence))
        # One end of this is the end of all; and with its file systems, of who waits for them.
        self.p = h.start(["unshare", "--mount", "sh", "-c", script])

    def pid(self):
        return next((p for p in h.family(self.p.pid) if h.comm(p).startswith("fs-")), 0)

    def wait(self):
        end = time.monotonic() + 10
        while not self.pid():
            if time.monotonic() > end:
                raise h.Skip("no file system can be mounted in a namespace")
            time.sleep(0.1)


def ended(p, seconds, what):
    try:
        rc = p.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return ["%s: it did not end in %d s" % (what, seconds)]
    return ["%s: exit code %d" % (what, rc)] if rc else []


def silent_name_errors(stacks, stats):
    errors = h.stats_errors(stats, stacks)
    for silence in PATH_SILENCES:
        mine = [s for s in stacks if s.comm == "fs-" + silence]
        hidden, jitted = ([s for s in mine if any(name % silence in f for f in s.frames)]
                          for name in ("hidden_%s", "jitted_%s_[j]"))
        h.note("%s: of %d stacks %d have the debug file's name, %d the perf map's" %
               (silence, h.total(mine), h.total(hidden), h.total(jitted)))
        if h.total(mine) < 20:
            errors.append("%s: %d stacks" % (silence, h.total(mine)))
        elif silence != "none" and (hidden or jitted):
            errors.append("%s: it has names" % silence)
        elif silence == "none" and (h.total(hidden) < 0.9 * h.total(mine) or
                                    h.total(jitted) < 0.1 * h.total(mine)):
            errors.append("names of a file system that answers are missing: %s" % h.worst(mine))
    other = [s for s in stacks if s.comm == "bystander"]
    if not other or sum(s.count for s in other if any(f.startswith("rec_")
                                                      for f in s.frames)) < 0.9 * h.total(other):
        errors.append("the bystander has no names: %s" % h.worst(other))
    if not 4 <= stats["parsers"]["late"] <= 9 or stats["parsers"]["failed"] < 4 or \
            stats["parsers"]["died"]:
        errors.append("%s" % stats["parsers"])
    return errors


def check_silent_names(name):
    """Debug files and perf maps below a process's root, in file systems that never answer: it costs
    their names, is counted, and all else goes on.
    """
    if not shutil.which("unshare") or not shutil.which("gcc") or not os.path.exists("/dev/fuse"):
        raise h.Skip("no unshare, gcc or /dev/fuse")
    containers = [Container(silence) for silence in PATH_SILENCES]
    bystander = h.start(["nice", h.link_program("rec", "bystander"), "0", "60"])
    tool = None
    try:
        for c in containers:
            c.wait()
        folded, stats = h.tmpfile("names.folded"), h.tmpfile("names.json")
        begin = time.monotonic()
        tool = h.start([h.SFBPF, "record", "-F", "199", "-o", folded, "--stats", stats, "4"])
        errors = ended(tool, 25, "record")
        h.note("a record of 4 s took %.1f s" % (time.monotonic() - begin))
        if not errors:
            with open(stats, encoding="utf-8") as f:
                account = json.load(f)
            h.note("parsers: %s" % account["parsers"])
            errors = silent_name_errors(h.read_folded(folded), account)
        if not errors:
            r = h.Recording([])
            tool = r.p
            r.wait_ready()
            time.sleep(3)
            begin = time.monotonic()
            os.kill(tool.pid, signal.SIGINT)
            errors = ended(tool, 15, "SIGINT")
            with open(r.stats, encoding="utf-8") as f:
                account = json.load(f)
            h.note("interrupted: it ended after %.1f s; %d samples, %s" %
                   (time.monotonic() - begin, account["samples"], account["parsers"]))
            # On a busy machine another question may be late.
            if not 4 <= account["parsers"]["late"] <= 6:
                errors.append("SIGINT: %s" % account["parsers"])
        if not errors:
            tool = h.start([h.SFBPF, "top", "--batch", "-n", "10"])
            errors = ended(tool, 30, "top")
    finally:
        for c in containers:
            h.stop(c.p)
        h.stop(bystander)
        if tool and tool.poll() is None:
            h.stop(tool)
    h.check(name, errors)


# Waits in mmap(2), with its mappings locked, until a page of the file that it has written to is
# stored.
LOCKER = """import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                      ctypes.c_int, ctypes.c_long]
m = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
m[0] = 1
again = os.open(sys.argv[1], os.O_RDONLY)
print("now", flush=True)
libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, again, 0)
"""


def check_silent_mappings(name):
    """The list of mapped files is not waited for when a process keeps its mappings locked; what it
    lacks is loaded when it is sampled.
    """
    system = FileSystem("write", program=False)
    bystander = h.start(["nice", h.link_program("rec", "bystander"), "0", "60"])
    tool = locker = None
    try:
        locker = h.start(["python3", "-c", LOCKER,
                          os.path.join(system.where, "fs-write")], stdout=subprocess.PIPE)
        locker.stdout.readline()
        time.sleep(0.5)
        with open("/proc/%d/stat" % locker.pid) as f:
            if f.read().rsplit(") ", 1)[1][0] != "D":
                raise h.Skip("its mappings are not locked here")
        folded, stats, begin = h.tmpfile("locked.folded"), h.tmpfile(
            "locked.json"), time.monotonic()
        tool = h.start([h.SFBPF, "record", "-F", "199", "-o", folded, "--stats", stats, "3"])
        errors = ended(tool, 16, "record")
        h.note("a record of 3 s took %.1f s" % (time.monotonic() - begin))
    finally:
        # At once: reading processes' command lines waits, too.
        system.stop()
        if locker:
            h.stop(locker)
        if tool and tool.poll() is None:
            h.stop(tool)
    if not errors:
        with open(stats, encoding="utf-8") as f:
            account = json.load(f)
        mine = [s for s in h.read_folded(folded) if s.comm == "bystander"]
        whole = sum(s.count for s in mine
                    if not h.reason(s) and any(f.startswith("rec_") for f in s.frames))
        h.note("bystander: %d of %d stacks are complete, with names; %s" %
               (whole, h.total(mine), account["parsers"]))
        if not mine or whole < 0.8 * h.total(mine):
            errors.append("bystander: %d of %d stacks are complete; %s" %
                          (whole, h.total(mine), h.worst(mine)))
        if account["parsers"]["late"] != 1:
            errors.append("%s" % account["parsers"])
    h.stop(bystander)
    h.check(name, errors)


# What reads stacks of threads that stay asleep: at the end, and (--take leave) also at the start.
SLEEPERS = {
    "offcpu": ["offcpu"],
    "offcpu --take leave": ["offcpu", "--take", "leave"],
    "record --wall": ["record", "--wall"],
}


def wait_for_offcpu(p):
    """Until its programs see threads leave the CPU."""
    end, n = time.monotonic() + 60, 0
    while time.monotonic() < end and p.poll() is None and n < 3:
        n = 0
        for path in glob.glob("/proc/%d/fdinfo/*" % p.pid):
            with contextlib.suppress(OSError), open(path) as f:
                text = f.read()
                n += "link_type:\traw_tracepoint" in text or "link_type:\ttracing" in text
        time.sleep(0.05)


def silent_stack_errors(what, options, started):
    """Of a run that Ctrl-C ends. It may hang as long as the file system is there."""
    folded, stats = h.tmpfile("stacks.folded"), h.tmpfile("stacks.json")
    p = h.start([h.SFBPF] + options + ["-o", folded, "--stats", stats])
    started.append(p)
    wait_for_offcpu(p)
    time.sleep(3)
    begin = time.monotonic()
    os.kill(p.pid, signal.SIGINT)
    errors = ended(p, 30, what)
    took = time.monotonic() - begin
    if errors:
        return errors
    with open(stats, encoding="utf-8") as f:
        account = json.load(f)
    found, usec = {}, account["duration_s"] * 1e6
    for comm, want in ("neighbour", None), ("sleeper", "asleep"):
        mine = [s for s in h.read_folded(folded) if s.comm == comm]
        found[comm] = h.total(mine) / usec
        if abs(found[comm] - 1) > 0.01 or any(h.reason(s) != want for s in mine):
            errors.append("%s: %s: %.3f of %d us: %s" %
                          (what, comm, found[comm], usec, h.worst(mine)))
    h.note("%s of %.1f s: it ended after %.2f s; of it %s; %s" %
           (what, usec / 1e6, took, found, account["parsers"]))
    # A loaded machine may add files that are late.
    if took > 3 or usec < 1e6 or not 1 <= account["parsers"]["late"] <= 4:
        errors.append("%s: %.2f s, %s" % (what, took, account["parsers"]))
    return errors


def check_silent_stacks(name):
    """A thread that sleeps with its stack in a page that never comes costs its own stack: those of
    others that stay asleep are complete, and the end is in time.
    """
    system = FileSystem("read", program=False)
    others, errors = [], []
    try:
        # The kernel lists it before the neighbour, which is younger.
        others.append(h.start([h.copy_program("hostile", "sleeper"), "sleep",
                               os.path.join(system.where, "fs-read")],
                              user=65534, group=65534, extra_groups=[]))
        time.sleep(0.5)
        others.append(h.start([h.link_program("block", "neighbour"), "600", "still", "0"]))
        time.sleep(0.5)
        if any(p.poll() is not None for p in others):
            raise h.Skip("its page cannot be mapped here")
        for what, options in SLEEPERS.items():
            errors += silent_stack_errors(what, options, others)
    finally:
        # At once: who has locked its mappings, or waits for them, waits until then.
        system.stop()
        for p in others:
            h.stop(p)
    h.check(name, errors)


if __name__ == "__main__":
    h.run_checks([
        check_cost, check_files, check_silent_files, check_silent_names, check_silent_mappings,
        check_silent_stacks
    ])
