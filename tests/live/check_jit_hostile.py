#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Users who name the code that they made so that reading the names takes time or memory: each tool
ends in time, within its memory, with everybody else's names, and counts what was left out."""

import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import time

import harness as h

NOBODY = 65534
JIT_AT = 0x700000000000
FRAMES = 900
RSS_LIMIT_KB = 300 << 10
END_S = 3  # from the signal to the end
MAP_BYTES = 128 << 20
MAPS = 8

# Calls through FRAMES functions of 16 bytes, the last of which spins: push %rbp; mov %rsp, %rbp;
# call the next; pop %rbp; ret.
SOURCE = """
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	unsigned char *p = mmap((void *)%#x, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	for (int i = 0; i < %d; i++)
		memcpy(p + 16 * i, "\\x55\\x48\\x89\\xe5\\xe8\\x07\\0\\0\\0\\x5d\\xc3", 11);
	memcpy(p + 16 * (%d - 1), "\\x55\\x48\\x89\\xe5\\xf3\\x90\\xeb\\xfc", 8);
	((void (*)(void))p)();
}
""" % (JIT_AT, FRAMES, FRAMES)


def program():
    if platform.machine() != "x86_64":
        raise h.Skip("its code is x86-64's")
    path = h.tmpfile("jitted")
    if not os.path.exists(path):
        with open(path + ".c", "w") as f:
            f.write(SOURCE)
        gcc = ["gcc", "-O1", "-fno-omit-frame-pointer", "-o", path, path + ".c"]
        if not shutil.which("gcc") or subprocess.run(gcc, check=False).returncode:
            raise h.Skip("no gcc")
    return path


def start_nobody(path):
    return h.start(["nice", path], user=NOBODY, group=NOBODY, extra_groups=[])


def give(path, data):
    with open(path, "wb") as f:
        for block in data:
            f.write(block)
    os.chown(path, NOBODY, NOBODY)


def dump_of(pid, records):
    """A jitdump, as perf's specification has it."""
    yield struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, pid, 0, 0)
    yield from records


def load(pid, time_ns, start, size, index, name):
    body = struct.pack("<IIQQQQ", pid, pid, start, start, size, index) + name + b"\0"
    return struct.pack("<IIQ", 0, 16 + len(body), time_ns) + body


# The name of what ran before the first record of its address
LATER = r"\[replaced code\]"


def later():
    """Newer than all samples: a search for what lay there at a sample's time passes them all."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 3600 * 10**9


def versions(pid):
    """The same range 10,000 times."""
    now = later()
    for i in range(10000):
        yield load(pid, now + i * 1000, JIT_AT, 16 * FRAMES, i, b"version_%d" % i)


def nested(pid):
    """Many ranges, one in the other, made in any order."""
    now = later()
    for i in range(300000):
        made = now - i * 7919 % 1000000
        yield load(pid, made, JIT_AT - i, 16 * FRAMES + 2 * i, i, b"n%d" % i)


def moved(pid):
    yield load(pid, 1, JIT_AT, 16 * FRAMES, 7, b"moved")
    for i in range(300000):
        yield struct.pack("<IIQIIQQQQQ", 1, 64, 2 + i, pid, pid, 0, JIT_AT, JIT_AT, 16 * FRAMES, 7)


def big_map():
    """Its first line is all that anybody needs."""
    yield b"%x %x mapped\n" % (JIT_AT, 16 * FRAMES)
    block = b"".join(b"%x 10 name_of_%d\n" % (JIT_AT + 0x100000 + 32 * i, i) for i in range(40000))
    for _ in range(MAP_BYTES // len(block)):
        yield block


# ---- the tools ---------------------------------------------------------------------------------

def peak_kb(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
    except (OSError, AttributeError):
        return 0


def handles_sigint(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            caught = int(re.search(r"SigCgt:\s+(\w+)", f.read()).group(1), 16)
        return caught >> (signal.SIGINT - 1) & 1
    except (OSError, AttributeError):
        return 0


def run_tool(what, argv, seconds, out=None):
    """Runs it, interrupts it after some seconds of work, and waits. Complaints."""
    with open(out or os.devnull, "w") as f:
        p = h.start([h.SFBPF] + argv, stdout=f)
    peak, begin, ready, asked = 0, time.monotonic(), None, None
    while p.poll() is None:
        peak = max(peak, peak_kb(p.pid))
        now = time.monotonic()
        if ready is None and (h.samples_now(p.pid) or
                              what == "offcpu" and handles_sigint(p.pid)):
            ready = now
        if asked is None and (ready and now - ready > seconds or now - begin > 30):
            p.send_signal(signal.SIGINT)
            asked = now
        if asked and now - asked > 30:
            h.stop(p)
            return ["%s: not ended 30 s after SIGINT" % what]
        time.sleep(0.02)
    took = time.monotonic() - (asked or begin)
    how = "SIGINT, ended" if asked else "ended by itself"
    h.note("%s: %s after %.1f s, %d MB at most" % (what, how, took, peak >> 10))
    errors = ["%s: exit code %d" % (what, p.returncode)] if p.returncode else []
    if asked and took > END_S:
        errors.append("%s: ended %.1f s after SIGINT" % (what, took))
    if peak > RSS_LIMIT_KB:
        errors.append("%s: %d kB resident" % (what, peak))
    return errors


def bystander_errors(what, stacks):
    mine = [s for s in stacks if s.comm == "bystander"]
    named = sum(s.count for s in mine if any(f.startswith("rec_") for f in s.frames))
    if h.total(mine) < 10 or named < 0.9 * h.total(mine):
        return ["%s: %d of the bystander's %d stacks have names: %s" % (
            what, named, h.total(mine), h.worst(mine))]
    return []


def check_tools(hostile, counted):
    """hostile(stacks, account): complaints of record; counted: cut + deferred must not be 0."""
    bystander = h.start(["nice", h.link_program("rec", "bystander"), "0", "60"])
    folded, stats, pages = h.tmpfile("jit.folded"), h.tmpfile("jit.json"), h.tmpfile("jit.pages")
    errors = run_tool("record", ["record", "-F", "199", "-o", folded, "--stats", stats, "60"], 4)
    if not errors:
        with open(stats, encoding="utf-8") as f:
            account = json.load(f)
        stacks = h.read_folded(folded)
        h.note("parsers: %s" % account["parsers"])
        errors += h.stats_errors(account, stacks) + bystander_errors("record", stacks)
        errors += hostile(stacks, account)
        if counted and not account["parsers"]["cut"] + account["parsers"]["deferred"]:
            errors.append("what was left out is not counted: %s" % account["parsers"])
    errors += run_tool("offcpu", ["offcpu", "-o", folded, "60"], 3)
    errors += run_tool("top", ["top", "--batch", "-d", "1"], 6, pages)
    with open(pages, encoding="utf-8") as f:
        text = f.read()
    if "rec_" not in text:
        errors.append("top does not show the bystander's function")
    if counted and not re.search(r"names lost [1-9]", text):
        errors.append("top does not show that names are lost")
    windows = h.tmpfile("jit.windows")
    os.makedirs(windows, exist_ok=True)
    errors += run_tool("agent", ["agent", "--once", "--protocol", "file", "--endpoint", windows,
                                 "--interval", "3s", "--metrics-address", "none"], 12)
    h.stop(bystander)
    return errors


# ---- checks ------------------------------------------------------------------------------------

def jitted(name):
    """Complaints unless the frames of processes with that name are named so, as often as not. On
    a slow machine, more lookups than there are stacks may be put off: then some names are missing.
    No name is wrong.
    """
    whole = re.compile(name + r".*_\[j\]$")

    def look(stacks, account):
        mine = [s for s in stacks if s.comm == "jitted"]
        named = sum(s.count for s in mine if any(whole.match(f) for f in s.frames))
        wrong = {f for s in mine for f in s.frames
                 if f.endswith("_[j]") and f != "[unknown]_[j]" and not whole.match(f)}
        put_off = account["parsers"]["deferred"]
        h.note("%d of %d stacks have their JIT names; %d put off" % (named, h.total(mine), put_off))
        if wrong:
            return ["wrong names: %s" % sorted(wrong)[:9]]
        if named > (0 if put_off > h.total(mine) else 0.5 * h.total(mine)):
            return []
        return [
            "%d of %d stacks have JIT names: %s" % (named, h.total(mine), h.worst(mine, width=100))
        ]
    return look


def dump_check(name, records, hostile, counted=False):
    paths, path = [], program()
    try:
        p = start_nobody(path)
        h.wait_busy(p)
        paths.append("/tmp/jit-%d.dump" % p.pid)
        give(paths[0], dump_of(p.pid, records(p.pid)))
        h.check(name, check_tools(hostile, counted))
    finally:
        for path in paths:
            os.unlink(path)


def check_dump_versions(name):
    dump_check(name, versions, jitted(LATER))


def check_dump_nested(name):
    dump_check(name, nested, jitted(LATER), counted=True)


def check_dump_moves(name):
    dump_check(name, moved, jitted("moved"))


def check_big_maps(name):
    """One large file under the names of eight processes' maps is read once, up to the limit."""
    path = program()
    # A file that was written before a process began is not the process's.
    paths = ["/tmp/perf-%d.map" % start_nobody(path).pid for _ in range(MAPS)]
    try:
        give(paths[0], big_map())
        for p in paths[1:]:
            os.link(paths[0], p)
        h.check(name, check_tools(jitted("mapped"), True))
    finally:
        for p in paths:
            if os.path.exists(p):
                os.unlink(p)


h.run_checks([check_dump_versions, check_dump_nested, check_dump_moves, check_big_maps])
