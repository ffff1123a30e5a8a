#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs of other users have symbol names whose demangling never ends, or very many symbols. All
other stacks keep their names, every tool ends within 3 s of the signal, and names that stay as
linked are counted."""

import array
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import time
import urllib.request

import harness as h

FUNCTIONS, LEVELS = 900, 60
END_S = 3.0
NOBODY = 65534
METRICS = "127.0.0.1:19427"


def substitution(i):
    """The i-th of a mangled name: S_, S0_, S1_, ..., in base 36."""
    digits, text = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", ""
    while i > 0:
        i -= 1
        text = digits[i % 36] + text
        i //= 36
    return "S%s_" % text


def endless(function):
    s = "S_IccE"
    for k in range(1, LEVELS):
        s = "S_I" + s + substitution(k) + "E"
    return "_Z%d%sIDp1a%sEEvv" % (len(function), function, s[2:])


def build_hostile():
    """Its functions spin and sleep; functions inlined into them have such names in the DWARF."""
    if not shutil.which("g++"):
        raise h.Skip("no g++")
    lines = ["#include <unistd.h>", "static unsigned int turn;",
             "#define SPIN for (volatile int i = 0; i < 20000; i++) ;"
             " if (++turn % 8 == 0) usleep(100);"]
    for i in range(FUNCTIONS):
        lines += ['inline void g%d() __asm__("%s");' % (i, endless("g%03d" % i)),
                  "inline __attribute__((always_inline)) void g%d() { SPIN }" % i,
                  'void f%d() __asm__("%s");' % (i, endless("f%03d" % i)),
                  "__attribute__((noinline)) void f%d() { g%d(); SPIN }" % (i, i)]
    calls = " ".join("f%d();" % i for i in range(FUNCTIONS))
    lines.append("int main() { for (;;) { %s } }" % calls)
    source, path = h.tmpfile("endless.cc"), h.tmpfile("endless")
    with open(source, "w") as f:
        f.write("\n".join(lines))
    subprocess.run(["g++", "-O1", "-g", "-o", path, source], check=True, capture_output=True)
    os.chown(path, NOBODY, NOBODY)
    return path


class Attack:
    """The hostile program, as nobody, and two that must not suffer from it: root's and user 1000's.
    """

    def __enter__(self):
        path = build_hostile()
        own = shutil.copy(h.program("rec"), h.tmpfile("others"))
        os.chown(own, 1000, 1000)
        self.all = [h.start([path], user=NOBODY, group=NOBODY, extra_groups=[]),
                    h.start([h.link_program("rec", "bystander"), "0", "60"]),
                    h.start([own, "0", "60"], user=1000, group=1000, extra_groups=[])]
        for p in self.all:
            h.wait_busy(p)
        return self

    def __exit__(self, *_):
        for p in self.all:
            h.stop(p)


def bystander_errors(stacks, what):
    errors = []
    for comm in ("bystander", "others"):
        mine = [s for s in stacks if s.comm == comm]
        named = sum(s.count for s in mine if any(f.startswith("rec_") for f in s.frames))
        if not mine or named < 0.9 * h.total(mine):
            errors.append("%s: %d of %d samples of %s have names: %s" % (
                what, named, h.total(mine), comm, h.worst(mine)))
    return errors


def signalled(p, sig, what, most=END_S):
    """It ends by itself, in time."""
    begin = time.monotonic()
    p.send_signal(sig)
    try:
        rc = p.wait(timeout=30)
    except subprocess.TimeoutExpired:
        h.stop(p)
        return ["%s: it did not end in 30 s" % what]
    took = time.monotonic() - begin
    h.note("%s: it ended %.2f s after the signal" % (what, took))
    errors = ["%s: exit code %d" % (what, rc)] if rc else []
    if took > most:
        errors.append("%s: it ended %.2f s after the signal" % (what, took))
    return errors


def one_shot(tool, options, sig):
    what = " ".join([tool] + options)
    r = h.Recording(["-F", "499"] * (tool == "record") + options, tool=tool)
    r.wait_ready()
    time.sleep(3)
    # DWARF of root's files may take its time.
    errors = signalled(r.p, sig, what, 2 * END_S if "--inline" in options else END_S)
    if errors:
        return errors
    with open(r.stats, encoding="utf-8") as f:
        stats = json.load(f)
    stacks = h.read_folded(r.folded)
    hostile = [s for s in stacks if s.comm == "endless"]
    h.note("%s: %d hostile samples; %s" % (what, h.total(hostile), stats["parsers"]))
    if not any("IDp1a" in f for s in hostile for f in s.frames):
        errors.append("%s: the hostile names are not as linked: %s" % (what, h.worst(hostile)))
    if not stats["parsers"]["mangled"]:
        errors.append("%s: it is not counted: %s" % (what, stats["parsers"]))
    if stats["self"]["rss_peak_kb"] > 300 << 10:
        errors.append("%s: %d kB" % (what, stats["self"]["rss_peak_kb"]))
    return errors + (bystander_errors(stacks, what) if tool == "record" else [])


def check_endless_record(name):
    """record, by Ctrl-C and SIGTERM, also with inlined functions of such names."""
    with Attack():
        errors = one_shot("record", [], signal.SIGINT)
        errors += one_shot("record", ["--inline"], signal.SIGTERM)
    h.check(name, errors)


def check_endless_offcpu(name):
    with Attack():
        errors = one_shot("offcpu", [], signal.SIGINT)
    h.check(name, errors)


def check_endless_top(name):
    """Its pages come in time, the last one too, and say what is shown as linked."""
    out = h.tmpfile("top.json")
    with Attack():
        p = h.start([h.SFBPF, "top", "--json", "--rows", "0", "-F", "499", "-o", out])
        time.sleep(6)
        errors = signalled(p, signal.SIGTERM, "top")
    with open(out, encoding="utf-8") as f:
        pages = [json.loads(line) for line in f]
    h.note("top: %d pages" % len(pages))
    text = json.dumps(pages[-1]) if pages else ""
    if len(pages) < 4:
        errors.append("%d pages in 6 s" % len(pages))
    if "rec_leaf" not in text or "IDp1a" not in text:
        errors.append("the last page lacks names: %s" % text[:300])
    if '"names_lost": 0' in text:
        errors.append("what is shown as linked is not counted")
    h.check(name, errors)


def agent(where, more):
    os.makedirs(where)
    os.chmod(where, 0o777)
    return h.start([
        h.SFBPF, "agent", "--protocol", "file", "--endpoint", where, "--format", "folded",
        "--interval", "4s", "-F", "199", "--cpu-limit", "100"
    ] + more)


def agent_errors(where, what):
    paths = glob.glob(os.path.join(where, "*", "*.folded"))  # a folder for each day
    return bystander_errors([s for path in paths for s in h.read_folded(path)], what)


def metric(name):
    with urllib.request.urlopen("http://%s/metrics" % METRICS, timeout=5) as f:
        lines = f.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def check_endless_agent(name):
    """Windows come in time and hold everybody's names, also with --once."""
    windows, once = h.tmpfile("windows"), h.tmpfile("once")
    for where in (windows, once):
        shutil.rmtree(where, ignore_errors=True)  # the second try's
    with Attack():
        p = agent(windows, ["--metrics-address", METRICS])
        time.sleep(10)
        mangled = metric("sfbpf_agent_names_mangled_total")
        errors = signalled(p, signal.SIGTERM, "agent")
        begin = time.monotonic()
        rc = agent(once, ["--once", "--metrics-address", "none"]).wait(timeout=60)
        h.note("agent: %d names as linked; --once took %.1f s" %
               (mangled, time.monotonic() - begin))
    if not mangled:
        errors.append("it is not counted")
    if rc:
        errors.append("--once: exit code %d" % rc)
    h.check(name, errors + agent_errors(windows, "agent") + agent_errors(once, "agent --once"))


BOMBS, BOMB_SYMBOLS, SPINNERS = 8, 1200000, 8


def build_bomb():
    """The program rec with a function for each byte of a large segment, which replaces a note."""
    with open(h.program("rec"), "rb") as f:
        data = bytearray(f.read())
    data += bytes(-len(data) % 4096)
    code, addr = len(data), 0x10000000
    headers, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    note = next(p for p in range(headers, headers + 56 * count, 56)
                if struct.unpack_from("<I", data, p)[0] == 4)
    struct.pack_into("<IIQQQQQQ", data, note, 1, 5, code, addr, addr, BOMB_SYMBOLS, BOMB_SYMBOLS,
                     4096)
    data += b"\x90" * BOMB_SYMBOLS
    names = b"\0" + b"".join(b"function_%06x\0" % i for i in range(BOMB_SYMBOLS))
    words = array.array("Q")
    for i in range(BOMB_SYMBOLS):
        # A global function in section 3, of one byte
        words.extend((1 + 16 * i | 0x12 << 32 | 3 << 48, addr + i, 1))
    at = [len(data), len(data) + len(names)]
    data += names + words.tobytes()
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HH", data, 60, 4, 2)
    for kind, flags, where, off, size, link, entry in (
        (0, 0, 0, 0, 0, 0, 0), (2, 0, 0, at[1], 24 * BOMB_SYMBOLS, 2, 24),
        (3, 0, 0, at[0], len(names), 0, 0), (1, 6, addr, code, BOMB_SYMBOLS, 0, 0)):
        data += struct.pack("<IIQQQQIIQQ", 0, kind, flags, where, off, size, link, 0, 1, entry)
    return data


def check_end_bombs(name):
    """Many users' files that take long to read, while others keep the CPUs busy."""
    bomb, running = build_bomb(), [h.start([h.link_program("rec", "bystander"), "0", "60"])]
    for i in range(BOMBS):
        path, uid = h.tmpfile("bomb%d" % i), 60400 + i
        with open(path, "wb") as f:
            f.write(bomb)
        os.chmod(path, 0o755)
        os.chown(path, uid, uid)
        running.append(h.start([path, "0", "60"], user=uid, group=uid, extra_groups=[]))
    for _ in range(SPINNERS):
        running.append(h.start(["sh", "-c", "while :; do :; done"], user=NOBODY, group=NOBODY,
                               extra_groups=[]))
    for p in running[:1 + BOMBS]:
        h.wait_busy(p)
    r = h.Recording(["-F", "199"])
    r.wait_ready()
    time.sleep(6)
    errors = signalled(r.p, signal.SIGINT, "record")
    stacks = [] if errors else h.read_folded(r.folded)
    bystander = [s for s in stacks if s.comm == "bystander"]
    named = sum(s.count for s in bystander if any(f.startswith("rec_") for f in s.frames))
    # On few CPUs it may get no more than some samples.
    if not errors and named < 0.9 * h.total(bystander) - 10:
        errors.append("%d of %d samples of the bystander have names" % (named,
                                                                        h.total(bystander)))
    for p in running:
        h.stop(p)
    for i in range(BOMBS):
        os.unlink(h.tmpfile("bomb%d" % i))
    h.check(name, errors)


h.run_checks([check_endless_record, check_endless_offcpu, check_endless_top,
              check_endless_agent, check_end_bombs])
