#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf offcpu --locks` against a program that knows its locks and their owners
(tests/programs/locked.cc).
"""

import json
import os
import re
import shutil
import subprocess

import harness as h

TURNS = 300
TRIES = 3
# mode: the lock's name, its kind
PAIRS = {
    "mutex": ("cache_lock", "mutex"), "recursive": ("special_lock", "mutex"),
    "pi": ("special_lock", "mutex"), "robust": ("special_lock", "mutex"),
    "rwlock": ("index_lock", "rwlock"), "std": ("Pool::std_m", "mutex"),
    "heap": ("[in take_heap]", "mutex"), "member": ("pool+0x28", "mutex"),
}


def locks(mode, *options, before=(), turns=TURNS):
    """The locks, and what the program knows: waits, us, {owner's name: (waits, us)}."""
    out = h.tmpfile("locks.json")
    program = h.copy_program("locked", "locked")
    stolen = -h.stolen_us()
    p = subprocess.run([h.SFBPF, "offcpu", "-q", "--locks", "--thin", "0", "-o", out, *options,
                        "--", *before, program, mode, str(turns)],
                       capture_output=True, text=True, timeout=120, cwd=h.tmpdir(), check=False)
    stolen += h.stolen_us()
    own = re.search(r"lock .+ waits (\d+) wait_us (\d+)", p.stderr)
    if p.returncode or not own:
        raise ValueError("exit code %d: %s" % (p.returncode, p.stderr.strip()))
    owners = {m.group(2): (int(m.group(3)), int(m.group(4)), int(m.group(1)))
              for m in re.finditer(r"owner (\d+) (\S+) waits (\d+) us (\d+)", p.stderr)}
    with open(out) as f:
        found = json.load(f)["locks"]
    for lock in found:
        lock["stolen_us"] = stolen
    return found, int(own.group(1)), int(own.group(2)), owners


def lock_named(found, name, kind):
    at = [k for k in found if k["name"] == name and k["kind"] == kind]
    if len(at) != 1:
        raise ValueError("%d locks %s (%s): %s" %
                         (len(at), name, kind, [(k["name"], k["kind"]) for k in found]))
    return at[0]


def compare(lock, waits, us, owners, ids):
    """What is wrong. The program's own time of a wait begins before the thread leaves the CPU, and
    has what the host takes away until then.
    """
    errors = []
    if abs(lock["waits"] - waits) > .01 * waits:
        errors.append("%d waits, the program says %d" % (lock["waits"], waits))
    if abs(lock["wait_us"] - us) > .05 * us + lock["stolen_us"]:
        errors.append("%d us, the program says %d" % (lock["wait_us"], us))
    if lock["owner_unknown_waits"] > .01 * waits:
        errors.append("%d waits without an owner" % lock["owner_unknown_waits"])
    if sum(o["waits"] for o in lock["owners"]) + lock["owner_unknown_waits"] != lock["waits"]:
        errors.append("the owners' waits do not add up")
    seen = {o["comm"]: o for o in lock["owners"]}
    for name, (n, _, tid) in owners.items():
        o = seen.get(name, {"waits": 0, "tid": 0})
        if abs(o["waits"] - n) > .01 * waits:
            errors.append("%s: %d waits, not %d" % (name, o["waits"], n))
        if ids and o["tid"] != tid:
            errors.append("%s is thread %d, not %d" % (name, o["tid"], tid))
    if set(seen) - set(owners):
        errors.append("owners %s" % sorted(seen))
    return errors


def judge(name, mode, *options, before=(), ids=True):
    errors = ["never tried"]
    for _ in range(TRIES):
        found, waits, us, owners = locks(mode, *options, before=before)
        errors = compare(lock_named(found, *PAIRS[mode]), waits, us, owners, ids)
        if not errors:
            break
    h.check(name, errors)


def check_pairs(name):
    """A waiter and two owners; the stacks are those of the waiter and of who gave the lock up."""
    for mode in PAIRS:
        judge("%s-%s" % (name, mode), mode)


def check_kernel(name):
    """The kernel's lock of a file, which a thread has that waits for its memory."""
    errors = ["never tried"]
    for _ in range(TRIES):
        try:
            found, waits, us, owners = locks("file")
        except ValueError as e:
            if "no userfaultfd" in str(e):
                raise h.Skip("no userfaultfd")
            raise
        at = [k for k in found if k["kind"] == "kernel rwsem" and k["pid"] == 0 and
              any("pwrite64" in f for s in k["waiters"] for f in s["frames"])]
        if len(at) == 1:
            errors = compare(at[0], waits, us, owners, True)
            if not at[0]["name"].endswith("_[k]]"):
                errors.append("its name is %s" % at[0]["name"])
        else:
            errors = ["%d locks: %s" % (len(at), [(k["name"], k["kind"]) for k in found])]
        if not errors:
            break
    h.check(name, errors)


def check_leave(name):
    judge(name, "mutex", "--take", "leave")


def check_stacks(name):
    found = locks("mutex")[0]
    lock = lock_named(found, *PAIRS["mutex"])
    errors = []
    for key, function, comm in (("waiters", "take_cache", "waiter"),
                                ("wakers", "give_cache", "holder_")):
        whole = sum(s["wait_us"] for s in lock[key])
        right = sum(s["wait_us"] for s in lock[key]
                    if s["comm"].startswith(comm) and any(function in f for f in s["frames"]))
        # give_cache may be inlined into the thread's function
        if key == "wakers":
            right = sum(s["wait_us"] for s in lock[key] if s["comm"].startswith(comm) and
                        any("holder" in f or function in f for f in s["frames"]))
        if right < .99 * whole or whole < .95 * lock["wait_us"]:
            errors.append("%s: %d of %d us of %s" % (key, right, whole, lock[key][:1]))
    h.check(name, errors)


def check_convoy(name):
    """Shares of four owners that take the lock from each other."""
    errors = ["never tried"]
    for _ in range(TRIES):
        found, _, us, owners = locks("convoy")
        lock = lock_named(found, "cache_lock", "mutex")
        seen = {o["comm"]: o["wait_us"] for o in lock["owners"]}
        whole = sum(o[1] for o in owners.values())
        errors = ["%s: %.3f of the time, the program says %.3f" %
                  (k, seen.get(k, 0) / max(1, lock["wait_us"]), n / whole)
                  for k, (_, n, _) in owners.items()
                  if abs(seen.get(k, 0) / max(1, lock["wait_us"]) - n / whole) > .05]
        if lock["owner_unknown_waits"] > .01 * lock["waits"]:
            errors.append("%d of %d waits without an owner" %
                          (lock["owner_unknown_waits"], lock["waits"]))
        if abs(lock["wait_us"] - us) > .1 * us + lock["stolen_us"]:
            errors.append("%d us, the program says %d" % (lock["wait_us"], us))
        if not errors:
            break
    h.check(name, errors)


def check_signals(name):
    """Who signals a condition variable or a semaphore does not own it."""
    errors = []
    for mode, lock_name, kind in (("cond", "cond_ready", "condition variable"),
                                  ("sem", "sem_ready", "semaphore")):
        found, waits, _, _ = locks(mode)
        at = [k for k in found if re.match(lock_name + r"\b", k["name"]) and k["kind"] == kind]
        if sum(k["waits"] for k in at) < .98 * waits or any(k["owners"] for k in at):
            errors.append("%s: %s" % (mode, [(k["name"], k["kind"], k["waits"]) for k in found]))
    h.check(name, errors)


def check_namespace(name):
    """Thread ids that stand in the lock are those of the process's namespace."""
    if not shutil.which("unshare"):
        raise h.Skip("no unshare")
    judge(name, "mutex", before=["unshare", "--pid", "--fork"], ids=False)


def check_process(name):
    """A running process; the text."""
    program = h.copy_program("locked", "lockedrun")
    p = h.start([program, "mutex", "100000"], stderr=subprocess.DEVNULL)
    r = subprocess.run([h.SFBPF, "offcpu", "-q", "--locks", "--format", "text", "-p",
                        str(p.pid), "2"], capture_output=True, text=True, timeout=60, check=False)
    h.stop(p)
    errors = [] if not r.returncode else ["exit code %d: %s" % (r.returncode, r.stderr)]
    for words in (r"^cache_lock  mutex at 0x[0-9a-f]+ of waiter \(%d\): .* in \d+ waits" % p.pid,
                  r"^  owner: holder_a \(\d+\) 7\d %, holder_b \(\d+\) 2\d %$",
                  r"^  waited for by waiter \(%d\), 100 %%:$" % p.pid, r"^    take_cache$",
                  r"^  given up by holder_a"):
        if not re.search(words, r.stdout, re.M):
            errors.append("no line '%s'" % words)
    h.check(name, errors and errors + [r.stdout[-2000:]])


def check_usage(name):
    r = subprocess.run([h.SFBPF, "offcpu", "--locks", "-o", h.tmpfile("locks.folded"), "1"],
                       capture_output=True, text=True, timeout=30, check=False)
    h.check(name, [] if r.returncode == 2 and "--locks needs --format text or json" in r.stderr
            else ["exit code %d: %s" % (r.returncode, r.stderr)])


if not os.path.exists(os.path.join(h.PROGRAMS, "locked")):
    h.skip("locks", "no C++ compiler")
else:
    h.run_checks([check_pairs, check_kernel, check_leave, check_stacks, check_convoy, check_signals,
                  check_namespace, check_process, check_usage])
