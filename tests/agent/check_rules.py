#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""OTLP bodies of every setting that changes them, by the rules of otlp_rules.py; files that differ
in their build ids.
"""

import os
import shutil
import subprocess

import agents
import otlp_rules
from receivers import HttpReceiver, decode_otlp, harness, otlp_profiles, pb

SETTINGS = {
    "default": (),
    "label-pid": ("--label-pid", ),
    "backend-names": ("--symbols", "none"),
    "redacted": ("--redact-paths", "all"),
    "off-cpu": ("--off-cpu", "--off-cpu-min", "0s"),
    "period": ("-c", "20000000"),
    "other-event": ("-e", "page-faults"),
    "small-requests": ("--request-size", "16k", "-F", "299"),
    "labels": ("--label", "host.id=mine", "--label", "service.name=\u00e4", "--service", "x"),
    "all": ("--label-pid", "--off-cpu", "--symbols", "none", "--redact-paths", "home",
            "--request-size", "16k"),
}


def small_file(name):
    """A program without a build id, which spins."""
    path, source = harness.tmpfile(name), harness.tmpfile(name + ".c")
    with open(source, "w") as f:
        f.write("int main(void) { for (;;) __asm__ volatile(\"\"); }\n")
    subprocess.run(["cc", "-O1", "-static", "-Wl,--build-id=none", "-o", path, source], check=True)
    return path


def go_file():
    if not shutil.which("go"):
        return None
    source, path = harness.tmpfile("spin.go"), harness.tmpfile("gospin")
    with open(source, "w") as f:
        f.write("package main\nfunc main() { for {} }\n")
    env = dict(os.environ, GO111MODULE="off", GOCACHE=os.path.join(harness.OUTPUT, "gocache"),
               GOFLAGS="")
    subprocess.run(["go", "build", "-o", path, source], check=True, capture_output=True, env=env)
    return path


def periods(g):
    return {(p.period, g.message.dictionary.string_table[p.period_type.type_strindex])
            for p in otlp_profiles(g.message)}


def ids_of(got, path):
    """(build ids of a path, types of its frames)"""
    ids, types = {}, set()
    for g in got:
        d = g.message.dictionary
        text = lambda a: (d.string_table[d.attribute_table[a].key_strindex], d.attribute_table[a].
                          value.string_value)
        for n, m in enumerate(d.mapping_table):
            if d.string_table[m.filename_strindex] != path:
                continue
            ids.update(text(a) for a in m.attribute_indices)
            types |= {
                text(a)[1]
                for l in d.location_table if l.mapping_index == n for a in l.attribute_indices
            }
    return ids, types


def file_errors(got, plain, go):
    ids, types = ids_of(got, plain)
    e = [] if set(ids) == {otlp_rules.BUILD_ID + "htlhash"} and types == {"native"} else [
        "a file without a build id: %s %s" % (ids, types)
    ]
    if go:
        ids, types = ids_of(got, go)
        with open(go, "rb") as f:
            known = ids.get(otlp_rules.BUILD_ID + "go", "?").encode() in f.read()
        if not known or types != {"go"}:
            e.append("a Go file: %s %s" % (ids, types))
    ids, types = ids_of(got, "[kernel]")
    if not ids or types != {"kernel"}:
        e.append("the kernel: %s %s" % (ids, types))
    return e


def all_have_processes(message):
    d = message.dictionary
    pids = {
        i for i, a in enumerate(d.attribute_table)
        if d.string_table[a.key_strindex] == "process.pid" and a.value.int_value
    }
    return all(pids & set(s.attribute_indices) for p in otlp_profiles(message) for s in p.samples)


def setting_errors(name, got):
    e, compared = [], 0
    for g in got:
        e += otlp_rules.errors(g.message)
        wrong, n = otlp_rules.hash_errors(g.message)
        e += wrong
        compared += n
    if name == "redacted":
        e += [
            "a path: %s" % s for g in got for s in g.message.dictionary.string_table
            if s.startswith("/usr")
        ]
    elif not compared:
        e.append("no file's hash was compared")
    if name == "period" and any(p != {(20000000, "cpu")} for p in map(periods, got)):
        e.append("periods %s" % list(map(periods, got))[:2])
    executables = {
        a.value.string_value
        for g in got for a in g.message.dictionary.attribute_table
        if g.message.dictionary.string_table[a.key_strindex] == "process.executable.path"
    }
    if not executables or name != "other-event" and not any(
            x.endswith("dash") or "python" in x for x in executables):
        e.append("executables %s" % executables)
    if any("[unknown]" in d.string_table[m.filename_strindex]
           for d in (g.message.dictionary for g in got) for m in d.mapping_table):
        e.append("a mapping without a file")
    e += ["a sample without a process" for g in got if not all_have_processes(g.message)]
    return e


def one_setting(name, setting, options, files):
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--interval", "1s", *options, copy=False)
    if "-c" in options:
        at = a.argv.index("-F")
        del a.argv[at:at + 2]
    errors = []
    try:
        a.start().wait(lambda: len(r.got) >= 3, "three requests through")
        if setting == "default":
            a.wait(lambda: not file_errors(r.got[-1:], *files) or len(r.got) > 20, "more windows")
            errors += file_errors(r.got[-1:], *files)
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
    except ValueError as e:
        errors.append(str(e))
    r.stop()
    harness.check("%s-%s" % (name, setting), (errors + setting_errors(setting, r.got[-2:]))[:3])


def check_settings(name):
    pb()
    files = small_file("plain"), go_file()
    # An idle machine has no page faults, and a process that has ended has no path.
    faulting = ["/usr/bin/python3", "-c", "import mmap\nwhile True: mmap.mmap(-1, 4096)[0] = 1"]
    busy = agents.load() + [harness.start(p) for p in [faulting, *([f] for f in files if f)]]
    for setting, options in SETTINGS.items():
        one_setting(name, setting, options, files)
    for p in busy:
        harness.stop(p)


if __name__ == "__main__":
    harness.run_checks([check_settings])
