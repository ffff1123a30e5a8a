#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples are linked to the spans that processes publish for their threads (OTEP 4947), by each of
the ways in which a program or a library has a thread-local variable.
"""

import os
import subprocess
from collections import Counter

from receivers import HERE, HttpReceiver, decode_otlp, harness, otlp_profiles, pb, windows_from_now
import agents
import otlp_rules

FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread"]
SOURCE = os.path.join(HERE, "spans.c")
# How the library is compiled, and whether it is loaded with the program, into static TLS.
LIBRARIES = {
    "descriptor": (["-mtls-dialect=gnu2"], False),
    "descriptor-static": (["-mtls-dialect=gnu2"], True),
    "dynamic": (["-mtls-dialect=gnu"], False),
    "initial-exec": (["-ftls-model=initial-exec"], True),
}
NONE = ("plain", "unset", "changing", "wild")
LINKED = {"span-1": ("a1" * 16, "b1" * 8), "span-2": ("a2" * 16, "b2" * 8)}
TURNS = ("a3" * 16, "b3" * 8)


def build(name, *flags):
    path = harness.tmpfile("spans-" + name)
    subprocess.run(["gcc", *FLAGS, "-o", path, SOURCE, *flags], check=True)
    return path


def programs():
    """{name: command}"""
    found = {
        "pie": [build("pie", "-DOWN", "-rdynamic"), "-"],
        "no-pie": [build("no-pie", "-DOWN", "-rdynamic", "-no-pie"), "-"],
    }
    main = build("main")
    for name, (flags, preload) in LIBRARIES.items():
        lib = build(name + ".so", "-DLIBRARY", "-shared", "-fPIC", *flags)
        found[name] = [main, lib]
        if preload:
            found[name] = ["env", "LD_PRELOAD=" + lib] + found[name]
    return found


def text(d, sample, key):
    for i in sample.attribute_indices:
        a = d.attribute_table[i]
        if d.string_table[a.key_strindex] == key:
            return a.value.string_value or a.value.int_value
    return None


def links(got):
    """{pid: {thread: Counter of (trace, span)}}, None: no link."""
    found = {}
    for g in got:
        d = g.message.dictionary
        for p in otlp_profiles(g.message):
            for s in p.samples:
                link = d.link_table[s.link_index]
                ids = (link.trace_id.hex(), link.span_id.hex()) if s.link_index else None
                of = found.setdefault(text(d, s, "process.pid"), {})
                of.setdefault(text(d, s, "thread.name"), Counter())[ids] += s.values[0]
    return found


def window_errors(name, threads):
    errors = []
    for thread, want in LINKED.items():
        got = threads.get(thread, Counter())
        if set(got) != {want}:
            errors.append("%s: %s has %s" % (name, thread, dict(got)))
    for thread in NONE:
        if set(threads.get(thread, {None: 1})) != {None}:
            errors.append("%s: %s has %s" % (name, thread, dict(threads[thread])))
    if set(threads.get("turns", {None: 1})) > {None, TURNS}:
        errors.append("%s: turns has %s" % (name, dict(threads["turns"])))
    return errors


def enough(threads):
    """Samples of all threads, with and without a span where both are due."""
    return all(sum(threads.get(t, Counter()).values()) >= 3 for t in (*LINKED, *NONE)) and \
        len(threads.get("turns", ())) == 2


def add(into, more):
    for pid, threads in more.items():
        for thread, counts in threads.items():
            into.setdefault(pid, {}).setdefault(thread, Counter()).update(counts)


def start(command):
    p = harness.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = p.stdout.readline()
    if not line:
        raise ValueError("%s does not run" % command)
    return p, int(line)


def stop(p, pid):
    harness.stop(p)
    os.unlink("/tmp/jit-%d.dump" % pid)


def collect(a, r, done, what):
    """The links of windows that begin now, until they are enough."""
    fresh, found = windows_from_now(r), {}

    def ready():
        add(found, links(fresh()))
        return done(found)

    a.wait(ready, what)
    return found


def check_spans(name):
    pb()
    r = HttpReceiver(decode=decode_otlp)
    running = {what: start(command) for what, command in programs().items()}
    a = agents.Agent("--endpoint", r.url, "--label-pid", "--trace-links", "--interval", "500ms",
                     copy=False)
    a.start().wait(lambda: a.p and "started" in a.text() and a.metric("process_contexts_read_total")
                   >= len(running), "the contexts of all processes")
    found = collect(a, r, lambda f: all(enough(f.get(pid, {})) for _, pid in running.values()),
                    "samples of all threads")
    for what, (_, pid) in running.items():
        harness.check("%s-%s" % (name, what), window_errors(what, found[pid]))
    errors = [e for g in r.got[:10] for e in otlp_rules.errors(g.message)]
    harness.check(name + "-rules", errors[:3])
    # Another image in the same process has no spans, although it is not asked again yet.
    p, pid = running["pie"]
    p.stdin.write(b"x")
    p.stdin.flush()
    found = collect(a, r, lambda f: sum(f.get(pid, {}).get("sh", Counter()).values()) >= 20,
                    "samples of another image")
    errors = [] if set(found[pid]["sh"]) == {None} else ["sh has %s" % dict(found[pid]["sh"])]
    if a.stop():
        errors.append("exit status %d" % a.p.returncode)
    errors += agents.account_errors(a, len(a.spooled()))
    for p, pid in running.values():
        stop(p, pid)
    harness.check(name + "-exec", errors)
    r.stop()


def check_span_files(name):
    """Windows in files have the ids as labels, by which report selects."""
    where = harness.tmpfile("span-windows")
    p, pid = start([build("files", "-DOWN", "-rdynamic"), "-"])
    a = agents.Agent("--protocol", "file", "--endpoint", where, "--trace-links", copy=False)
    a.start().wait_started().wait(lambda: a.metric("process_contexts_read_total") >= 1,
                                  "the context")

    def report(*labels):
        out = subprocess.run([harness.SFBPF, "report", "--format", "folded", *labels, where],
                             capture_output=True, text=True)
        return Counter(line.split(";")[0] for line in out.stdout.splitlines())

    a.wait(lambda: os.path.isdir(where) and {"plain", "turns", *LINKED} <= set(report()),
           "windows with all threads")
    a.stop()
    stop(p, pid)
    errors = []
    for number in "12":
        for label in ("span_id=" + ("b" + number) * 8, "trace_id=" + ("a" + number) * 16):
            got = report("--label", label)
            if set(got) != {"span-" + number}:
                errors.append("%s: %s" % (label, dict(got)))
    harness.check(name, errors)


# Maps the library whose directory another file system covers then: its path leads to nothing.
COVERED = "exec 3<$0/lib.so; mount -t tmpfs none $0 && exec $1 /proc/self/fd/3"


def check_span_others(name):
    """A user whose view of a library's path is another one does not hide it from others."""
    pb()
    where = harness.tmpfile("span-library")
    os.mkdir(where)
    main, lib = build("covered"), build("covered.so", "-DLIBRARY", "-shared", "-fPIC")
    os.rename(lib, os.path.join(where, "lib.so"))
    for path in (os.path.dirname(where), where):
        os.chmod(path, 0o755)
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--label-pid", "--trace-links", "--interval", "500ms",
                     copy=False)
    try:
        other, pid = start([
            "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-Urm",
            "sh", "-c", COVERED, where, main
        ])
    except ValueError:
        harness.skip(name, "users cannot have namespaces")
        return
    a.start().wait(lambda: a.p and "started" in a.text() and a.metric("process_contexts_read_total")
                   >= 1, "the other user's context")
    p, victim = start([main, os.path.join(where, "lib.so")])
    found = collect(a, r, lambda f: all(
        sum(f.get(q, {}).get("span-1", Counter()).values()) >= 20 for q in (pid, victim)),
                    "samples of both")
    errors = [] if LINKED["span-1"] in found[victim]["span-1"] else ["no sample is linked: %s" %
                                                                     dict(found[victim]["span-1"])]
    if LINKED["span-1"] not in found[pid]["span-1"]:
        errors.append("the mapped file was not read: %s" % dict(found[pid]["span-1"]))
    a.stop()
    for q, number in ((other, pid), (p, victim)):
        stop(q, number)
    harness.check(name, errors)
    r.stop()


harness.run_checks([check_spans, check_span_files, check_span_others])
