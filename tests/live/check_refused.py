#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that the kernel refuses: the errors name the program, the verifier's reason and what to
do, and doctor prints what to report. librefuse.so (tests/programs/refuse.c) damages the programs on
their way to the kernel.

check_refused.py [CHECK...]
"""

import os
import re
import subprocess

import harness as h

# What the verifier says of the instruction that librefuse.so puts into a program.
REASON = "R5 !read_ok"
PAGE = os.path.join(h.TOP, "docs", "doctor.md")


def run(refuse, *argv):
    """(exit status, stdout, stderr) of sfbpf, some of whose programs are damaged."""
    needed = subprocess.run(["ldd", h.SFBPF], capture_output=True, text=True, check=False).stdout
    if "libbpf" not in needed:
        raise h.Skip("libbpf is a part of the program")
    env = dict(os.environ, REFUSE=refuse, LD_PRELOAD=h.program("librefuse.so"))
    p = subprocess.run([h.SFBPF, *argv], env=env, capture_output=True, text=True, timeout=120,
                       check=False)
    return p.returncode, p.stdout, p.stderr


def error_errors(name, rc, err):
    """What is wrong with the error of a refused program."""
    errors = [] if rc == 4 else ["exit status %d instead of 4" % rc]
    last = err.splitlines()[-1] if err else ""
    if "refuses the BPF program %s: %s (" % (name, REASON) not in last:
        errors.append("the error names no reason: %s" % (last or "nothing"))
    page = re.search(r'docs/doctor\.md \("([^"]+)"\)', last)
    with open(PAGE) as f:
        if not page or "\n## %s\n" % page.group(1) not in f.read():
            errors.append("the error names no section of the documentation: %s" % last)
    return errors


def record_argv(*options):
    return ["record", *options, "-o", h.tmpfile("refused.folded"), "100ms"]


def check_refused_record(name):
    rc, _, err = run("on_cpu", *record_argv())
    errors = error_errors("on_cpu", rc, err)
    if len(err.splitlines()) != 1:
        errors.append("%d lines instead of one" % len(err.splitlines()))
    h.check(name, errors)


def check_refused_stats(name):
    """--stats gives the verifier buffers for its statistics; the reason is in these."""
    rc, _, err = run("on_cpu", *record_argv("--stats", h.tmpfile("refused.json")))
    h.check(name, error_errors("on_cpu", rc, err))


def check_refused_verbose(name):
    """Both forms of the programs are refused: -v tells of the first one, -vv has the logs."""
    rc, _, err = run("on_cpu", *record_argv("-v"))
    errors = error_errors("on_cpu", rc, err)
    if not re.search(r"use bpf_rdonly_cast \(on_cpu: %s: .*trying" % REASON, err):
        errors.append("-v does not tell of the first try: %s" % err)
    if "libbpf:" in err:
        errors.append("-v shows libbpf's messages")
    rc, _, err = run("on_cpu", *record_argv("-vv"))
    if err.count("-- BEGIN PROG LOAD LOG --") != 2:
        errors.append("-vv does not show both logs")
    h.check(name, errors)


def check_refused_fallback(name):
    """The first form is refused, with and without its log; the second one records."""
    rc, _, err = run("on_cpu:2", *record_argv("-v"))
    errors = [] if rc == 0 else ["exit status %d: %s" % (rc, err)]
    if "(on_cpu: %s: " % REASON not in err:
        errors.append("-v does not say why: %s" % err)
    rc, _, err = run("on_cpu:2", *record_argv())
    if rc or REASON in err:
        errors.append("exit status %d without -v: %s" % (rc, err))
    h.check(name, errors)


def check_refused_offcpu(name):
    argv = ["offcpu", "-v", "-o", h.tmpfile("refused.folded"), "100ms"]
    rc, _, err = run("off_switch", *argv)
    errors = error_errors("off_switch", rc, err)
    rc, _, err = run("off_last", *argv)
    if rc or "stacks of sleepers (off_last: %s)" % REASON not in err:
        errors.append("off_last: exit status %d: %s" % (rc, err))
    h.check(name, errors)


def report_errors(name, out):
    lines = [line[2:] for line in out.splitlines() if line.startswith("| ")]
    want = [
        r"sfbpf \S+, built by \S", r"BPF programs built by \S",
        r"libbpf \d+\.\d+, built with \d",
        "Linux %s " % re.escape(os.uname().release),
        "program %s: " % name,
        "  %s$" % REASON
    ]
    return [
        "the report has no '%s'" % w for w in want if not any(re.match(w, line) for line in lines)
    ]


def check_refused_doctor(name):
    rc, out, err = run("on_cpu", "doctor")
    fails = [line for line in out.splitlines() if line.startswith("FAIL")]
    errors = [] if rc == 4 and not err else ["exit status %d: %s" % (rc, err)]
    if len(fails) != 1 or "unwinding" not in fails[0] or "on_cpu: " + REASON not in fails[0]:
        errors.append("not one FAIL of unwinding: %s" % fails)
    h.check(name, errors + report_errors("on_cpu", out))


def check_refused_doctor_offcpu(name):
    """A recording works, so this is a warning."""
    rc, out, _ = run("off_switch", "doctor")
    errors = [] if rc == 0 else ["exit status %d" % rc]
    if not re.search(r"^warn  off-CPU: .*off_switch: %s" % REASON, out, re.M):
        errors.append("no warning of off-CPU")
    h.check(name, errors + report_errors("off_switch", out))


h.run_checks([
    check_refused_record, check_refused_stats, check_refused_verbose, check_refused_fallback,
    check_refused_offcpu, check_refused_doctor, check_refused_doctor_offcpu
])
