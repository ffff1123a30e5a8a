#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that say what their service is called, in a process context (OTEP 4719): the samples
of each are below its name, and those of all others, hostile ones too, below what they were before.
"""

import os
import subprocess
import sys
from collections import Counter

from receivers import HERE, HttpReceiver, decode_otlp, harness, pb, windows_from_now
import agents

GOOD = ("memfd", "anon", "fork", "update")
BAD = ("garbage", "version", "busy", "huge", "wild")
# Some windows may have no sample of one of so many processes that share the CPUs.
WINDOWS = 8


def publish(kind):
    """(process, the pid that it prints); None: the kernel cannot do that."""
    p = harness.start([sys.executable, os.path.join(HERE, "publisher.py"), kind, "svc-" + kind],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = p.stdout.readline()
    return (p, int(line)) if line else None


def attribute(resource, name):
    return next((a.value.string_value for a in resource.attributes if a.key == name), "")


def services(got):
    """{pid: Counter of (service.name, namespace, version, instance, environment)}"""
    found = {}
    for g in got:
        d = g.message.dictionary
        for rp in g.message.resource_profiles:
            names = tuple(
                attribute(rp.resource, n)
                for n in ("service.name", "service.namespace", "service.version",
                          "service.instance.id", "deployment.environment.name"))
            for s in (s for sp in rp.scope_profiles for p in sp.profiles for s in p.samples):
                pids = [
                    d.attribute_table[a].value.int_value for a in s.attribute_indices
                    if d.string_table[d.attribute_table[a].key_strindex] == "process.pid"
                ]
                found.setdefault(pids[0], Counter())[names] += s.values[0]
    return found


def names_of(service):
    return (service, "tests", "1.5", "instance-" + service, "here")


def start_agent(r, name, **kw):
    config = harness.tmpfile(name + ".ini")
    with open(config, "w") as f:
        f.write("[agent]\n")
    a = agents.Agent("--config", config, "--endpoint", r.url, "--label-pid", "--interval", "500ms",
                     copy=False, **kw)
    return a.start().wait_started(), config


def asked(a, read, failed):
    """Waits until all processes have been asked: on a busy machine, not all are before the first
    window ends.
    """
    a.wait(lambda: a.metric("process_contexts_read_total") >= read and a.metric(
        "process_contexts_failed_total") >= failed, "the contexts of all processes")


def windows(a, r, wanted):
    """Waits until each of the pids has samples in windows that begin now. Returns what came."""
    fresh, missing, came = windows_from_now(r), set(wanted), []

    def enough():
        nonlocal missing
        new = fresh()
        missing -= set(services(new))
        came.extend(new)
        return len(came) >= WINDOWS and not missing

    a.wait(enough, "samples of all processes")
    return came


def wrong(found, pid, want, what):
    got = found.get(pid, Counter())
    return [] if set(got) == {want} else ["%s: %s, not %s" % (what, dict(got), want)]


def reload(a, config, text):
    n = a.metric("reloads_total")
    with open(config, "w") as f:
        f.write(text)
    a.p.send_signal(1)
    a.wait(lambda: a.metric("reloads_total") > n, "the configuration again")


def check_identity(name):
    pb()
    r = HttpReceiver(decode=decode_otlp)
    runs = {kind: publish(kind) for kind in GOOD + BAD}
    if not runs["anon"]:
        harness.note("identity: the kernel names no anonymous mappings")
        del runs["anon"]
    plain = agents.load()
    child = runs["fork"][1]
    pids = [p.pid for p in plain] + [p.pid for p, _ in runs.values()] + [child]
    a, config = start_agent(r, "identity")
    errors, readable = [], len(runs) - len(BAD)
    asked(a, readable, len(BAD))
    found = services(windows(a, r, pids))
    unit = ("", ) * 4
    here = next(iter(found[plain[0].pid]))
    if here[1:] != unit or here[0].startswith("svc-"):
        errors.append("a plain process: %s" % (here, ))
    for kind, (p, _) in runs.items():
        errors += wrong(found, p.pid, names_of("svc-" + kind) if kind in GOOD else here, kind)
    for pid in [p.pid for p in plain] + [child]:
        errors += wrong(found, pid, here, "a process without one")
    # Switched off, and on again: then each process is new.
    runs["update"][0].stdin.write(b"go\n")
    runs["update"][0].stdin.flush()
    reload(a, config, "[agent]\nprocess-context = no\n")
    found = services(windows(a, r, pids))
    for pid in found:
        if any(n[0].startswith("svc-") for n in found[pid]):
            errors.append("switched off: %s" % found[pid])
    reload(a, config, "[agent]\n")
    asked(a, readable, len(BAD))
    found = services(windows(a, r, pids))
    errors += wrong(found, runs["update"][0].pid, names_of("svc-update-2"), "updated")
    errors += wrong(found, runs["memfd"][0].pid, names_of("svc-memfd"), "as before")
    if a.stop():
        errors.append("exit status %d" % a.p.returncode)
    errors += agents.account_errors(a, len(a.spooled()))
    for p in plain + [p for p, _ in runs.values()]:
        harness.stop(p)
    harness.check(name, errors[:4])
    r.stop()


# Maps a file, in the place where contexts are looked for, and says so.
MAPS = """import mmap, os, sys
m = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
print("now", flush=True)
while True:
    sum(range(1000))
"""


def check_silent(name):
    """The pages of what looks like a context never come. (It is a file of FUSE: below a mount that
    is detached, its path is its name.) That is counted, and the others are named.
    """
    import check_hostile    # after receivers, which knows where it is
    pb()
    system = check_hostile.FileSystem("read", program=False, file="memfd:OTEL_CTX")
    r = HttpReceiver(decode=decode_otlp)
    silent, errors = None, []
    publisher = publish("memfd")[0]
    try:
        silent = harness.start(
            [sys.executable, "-c", MAPS,
             os.path.join(system.where, "memfd:OTEL_CTX")], stdout=subprocess.PIPE)
        silent.stdout.readline()
        subprocess.run(["umount", "-l", system.where], check=True)
        a = start_agent(r, "silent")[0]
        asked(a, 1, 1)
        found = services(windows(a, r, [publisher.pid, silent.pid]))
        errors += wrong(found, publisher.pid, names_of("svc-memfd"), "a publisher")
        if any(n[0].startswith("svc-") for n in found[silent.pid]):
            errors.append("the silent process: %s" % found[silent.pid])
        if a.metric("parsers_died_total") < 1:
            errors.append("no worker was given up")
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
    finally:
        system.stop()
        if silent:
            harness.stop(silent)
    harness.stop(publisher)
    harness.check(name, errors[:4])
    r.stop()


if __name__ == "__main__":
    harness.run_checks([check_identity, check_silent])
