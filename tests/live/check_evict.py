#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables that do not fit, and users who map more files than there is room for.

check_evict.py [NAME...]
"""

import os
import re
import subprocess
import time
from collections import Counter

import harness as h

CHAIN = re.compile(
    r"_start;(__libc_start_main[^;]*|\[libc[^;]*);(__libc_start_call_main|\[libc[^;]*);"
    r"main;(rec_[a-z]+;?)+$"
)
STUB = re.compile(r"stub_([0-9]{8})$")
FAT_UID, FLOOD_UID = 60100, 60200
RSS_MAX_KB = 120 << 10
FILES = (12000, 4000) # of the processes of the flood


def as_user(uid, argv, **kw):
    return h.start(
        ["setpriv", "--reuid",
         str(uid), "--regid", str(uid), "--clear-groups"] + argv, **kw)


def shares(stacks):
    """name -> (samples with a user part, complete, complete with another chain than rec's)"""
    seen = {}
    for s in stacks:
        n, complete, odd = seen.get(s.comm, (0, 0, 0))
        frames = h.user_frames(s)
        if not frames:
            continue
        n += s.count
        if not h.reason(s):
            complete += s.count
            # The first instructions lie in the loader, and libc's own functions may be called
            # anywhere.
            if "main" in frames and not CHAIN.match(";".join(
                    f for f in frames if not f.startswith("[vdso"))):
                odd += s.count
        seen[s.comm] = (n, complete, odd)
    return seen


def check_evict_memory(name):
    """6 programs at a time, of 0.5 MB of tables each, in 3 MB: those that fit keep their tables,
    and the next 6 get their room.
    """
    phases, each, seconds = 2, 6, 13
    paths = [h.copy_program("fat", "fat%d" % i) for i in range(phases * each)]
    r = h.Recording(["-F", "499", "-u", str(FAT_UID), "--table-memory", "3M"], phases * seconds + 6)
    r.wait_ready()
    for k in range(phases):
        running = [
            as_user(FAT_UID, [p, str(seconds), "40"]) for p in paths[k * each:(k + 1) * each]
        ]
        for p in running:
            p.wait()
    stacks, stats = r.interrupt()
    errors = h.stats_errors(stats, stacks)
    tables = stats["tables"]
    # No file is evicted again and again.
    if not 0 < tables["evicted"] < tables["modules"] or tables["bytes"] > 3 << 20 or not tables[
            "full"]:
        errors.append("tables: %s" % tables)
    by_name = shares(stacks)
    parts = []
    for path in paths:
        n, complete, odd = by_name.get(os.path.basename(path), (0, 0, 0))
        parts.append(complete / max(n, 1))
        if n < 50 or odd > 0.02 * n + 2:
            errors.append("%s: %d samples, %d complete, %d of them odd" %
                          (os.path.basename(path), n, complete, odd))
    fit = [sum(p > 0.7 for p in parts[k * each:(k + 1) * each]) for k in range(phases)]
    if min(fit) < 2:
        errors.append("programs with their tables, by phase: %s; complete: %s" %
                      (fit, ["%.2f" % p for p in parts]))
    h.note(
        "%s: evicted %d, no room %d times, programs with their tables %s of %d, complete %.0f "
        "%%; %.0f ms of CPU"
        % (name, tables["evicted"], tables["full"], fit, each, 100 * sum(parts) / len(parts),
           stats["self"]["cpu_ms"]))
    h.check(name, errors)


def stub_errors(stacks):
    """Files are called one after the other: a name that belongs to another file breaks the
    sequence.
    """
    errors, named, wrong = [], 0, 0
    for s in stacks:
        frames = h.user_frames(s)
        numbers = [(i, int(STUB.match(f).group(1))) for i, f in enumerate(frames) if STUB.match(f)]
        named += s.count * bool(numbers)
        for (i, a), (j, b) in zip(numbers, numbers[1:]):
            # Every other frame is `down`, but for one that a guess by frame pointer may have left
            # out.
            if not any((j - i) // 2 <= (b - a) % files <= (j - i + 1) // 2 for files in FILES):
                wrong += s.count
                errors.append("%s ... %s" % (frames[i], ";".join(frames[i + 1:j + 1])[-200:]))
                break
    return named, wrong, errors[:2]


def check_evict_flood(name):
    """More files than there are module ids, of several users: others keep their stacks, and no name
    is wrong.
    """
    stub, many = h.program("stub.so"), h.program("manyfiles")
    r = h.Recording(["-F", "499"], 60)
    r.wait_ready()
    nice = ["nice", "-n", "-15"]
    h.start(nice + [h.link_program("rec", "alone"), "4", "40"]).wait()
    flood = [
        as_user(FLOOD_UID + i,
                [many, "14", stub, str(FILES[i > 0]), "120",
                 str(FLOOD_UID + i)], stdout=subprocess.PIPE) for i in range(9)
    ]
    for p in flood:
        p.stdout.readline()
    bystander = h.start(nice + [h.link_program("rec", "bystander"), "8", "40"])
    time.sleep(3)
    newcomer = h.start(nice + [h.copy_program("rec", "newcomer"), "4", "40"])
    bystander.wait()
    newcomer.wait()
    for p in flood:
        p.wait()
    stacks, stats = r.interrupt()
    errors = h.stats_errors(stats, stacks)
    by_name = shares(stacks)
    share = {}
    for comm in ("alone", "bystander", "newcomer"):
        n, complete, odd = by_name.get(comm, (0, 0, 0))
        share[comm] = 100.0 * complete / max(n, 1)
        if n < 100 or odd > 0.02 * n + 2:
            errors.append("%s: %d samples, %d complete, %d of them odd" % (comm, n, complete, odd))
    if share["bystander"] < share["alone"] - 1:
        errors.append("complete stacks of a bystander: %.1f %%, alone %.1f %%" %
                      (share["bystander"], share["alone"]))
    if share["newcomer"] < 90:
        errors.append("complete stacks of a new program: %.1f %%" % share["newcomer"])
    named, wrong, examples = stub_errors([s for s in stacks if s.comm == "manyfiles"])
    if wrong or named < 20:
        errors.append("%d stacks with names of files, %d wrong: %s" % (named, wrong, examples))
    if stats["tables"]["recycled"] < 5000 or not stats["needs"]["refused"]:
        errors.append("tables %s, needs %s" % (stats["tables"], stats["needs"]))
    if stats["self"]["rss_peak_kb"] > RSS_MAX_KB:
        errors.append("%d kB" % stats["self"]["rss_peak_kb"])
    h.note(
        "%s: complete alone %.1f %%, beside the flood %.1f %%, new %.1f %%; recycled %d, refused "
        "%d, %d kB"
        % (name, share["alone"], share["bystander"], share["newcomer"], stats["tables"]["recycled"],
           stats["needs"]["refused"], stats["self"]["rss_peak_kb"]))
    h.check(name, errors)


def check_evict_share(name):
    """A user with more files than he may have read spends his own share, not that of a user whose
    number is the same modulo the entries of a small table.
    """
    victim, spender = FLOOD_UID + 50, FLOOD_UID + 50 + 255 * 4096
    r = h.Recording(["-F", "499"], 60)
    r.wait_ready()
    flood = as_user(spender, [h.program("manyfiles"), "18", h.program("stub.so"), "8000", "120",
                              str(spender)], stdout=subprocess.PIPE)
    flood.stdout.readline()
    time.sleep(6)
    as_user(victim, [h.link_program("manyfiles", "victim"), "4", h.program("stub.so"), "400", "20",
                     str(victim)], stdout=subprocess.DEVNULL).wait()
    h.stop(flood)
    stacks, stats = r.interrupt()
    n, complete, _ = shares(stacks).get("victim", (0, 0, 0))
    errors = h.stats_errors(stats, stacks)
    h.note("%s: %d of %d complete, refused %d" % (name, complete, n, stats["needs"]["refused"]))
    if not stats["needs"]["refused"]:
        errors.append("nothing was refused")
    if n < 100 or complete < 0.9 * n:
        errors.append("%d of %d samples are complete" % (complete, n))
    h.check(name, errors)


def check_evict_unmapped(name):
    """Tables of a program that has ended go, after a while; when it runs again it has complete
    stacks again.
    """
    path, other = h.copy_program("rec", "comesback"), h.copy_program("rec", "stays")
    r = h.Recording(["-F", "499", "--table-idle", "2"], 40)
    r.wait_ready()
    stays = h.start([other, "30", "40"])
    h.start([path, "2", "40"]).wait()
    time.sleep(7)
    h.start([path, "2", "40"]).wait()
    h.stop(stays)
    stacks, stats = r.interrupt()
    errors = h.stats_errors(stats, stacks)
    for comm in ("comesback", "stays"):
        n, complete, odd = shares(stacks).get(comm, (0, 0, 0))
        if n < 100 or complete < 0.95 * n or odd > 0.02 * n + 2:
            errors.append("%s: %d samples, %d complete, %d of them odd" % (comm, n, complete, odd))
    if not stats["tables"]["recycled"]:
        errors.append("tables: %s" % stats["tables"])
    h.note("%s: dropped %d" % (name, stats["tables"]["recycled"]))
    h.check(name, errors)


h.run_checks([check_evict_memory, check_evict_flood, check_evict_share, check_evict_unmapped])
