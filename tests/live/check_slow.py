#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf slow` against programs whose slow calls have one planted cause and that measure themselves
(tests/programs/slowcalls.c, slowthrow.cc).
"""

import json
import os
import re
import subprocess

import harness as h

OVER = "4ms"
CALLS = 1000
TRIES = 4
# mode: the function with the cause, what most of it is. "": not said, as the machine decides.
CAUSES = {
    "lock": ("planted_lock", "[blocked: futex]"),
    "sleep": ("planted_sleep", "[blocked: sleep]"),
    "branch": ("planted_branch", "[running]"),
    "pipe": ("planted_pipe", "[blocked: pipe]"),
    "disk": ("planted_disk", ""),
    "fault": ("planted_fault", ""),
    "queue": ("planted_queue", "[runnable]"),
    "recursion": ("planted_sleep", "[blocked: sleep]"),
    "longjmp": ("planted_sleep", "[blocked: sleep]"),
}


def slow(function, options, command=(), seconds=None):
    """The report, and the program's own numbers."""
    out = h.tmpfile("slow.json")
    argv = [h.SFBPF, "slow", "-q", "--format", "json", "-o", out, *options, function]
    argv += [str(seconds)] if seconds else []
    argv += ["--", *command] if command else []
    p = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=h.tmpdir())
    if p.returncode:
        raise ValueError("exit code %d: %s" % (p.returncode, p.stderr.strip()))
    own = re.search(r"calls (\d+) slow (\d+) slow_us (\d+) left (\d+) sure (\d+) sure_us (\d+)",
                    p.stderr)
    with open(out) as f:
        return json.load(f), [int(n) for n in own.groups()] if own else None


def compare(report, own, cause):
    """What is wrong. A call lasts longer by the program's clock around it, which the probes are
    inside of, than by sfbpf's, and that longer than by the program's clock inside of the call.
    """
    calls, n, us, left, sure, sure_us = own
    errors = []
    if report["calls"] != calls or report["unmatched"] != left or report["lost"]:
        errors.append("%d calls, %d unmatched, %d lost; the program says %d and %d" %
                      (report["calls"], report["unmatched"], report["lost"], calls, left))
    if not sure <= report["slow"] <= n:
        errors.append("%d slow, the program says %d to %d" % (report["slow"], sure, n))
    elif not .99 * sure_us <= report["slow_us"] <= 1.01 * us:
        errors.append("slow calls took %d us, the program says %d to %d" %
                      (report["slow_us"], sure_us, us))
    first = report["functions"][0] if report["functions"] else {"name": "", "mostly": ""}
    if first["name"] != cause[0] or (cause[1] and first["mostly"] != cause[1]):
        errors.append("the cause is %s %s, not %s %s" % (first["name"], first["mostly"], *cause))
    return errors


def judge(name, function, command, cause, *options):
    """A neighbour may make another part of the calls slow: then another try."""
    errors = ["never tried"]
    for _ in range(TRIES):
        errors = compare(*slow(function, ["--over", OVER, *options], command), cause)
        if not errors:
            break
    h.check(name, errors)


def check_causes(name):
    program = h.copy_program("slowcalls", "slowcalls")
    for mode, cause in CAUSES.items():
        judge("%s-%s" % (name, mode), "slow_serve", [program, mode, str(CALLS)], cause)


def check_threads(name):
    program = h.copy_program("slowcalls", "slowcalls")
    judge(name, "slow_serve", [program, "sleep", "1000", "4"], CAUSES["sleep"])


def check_exceptions(name):
    if not os.path.exists(os.path.join(h.PROGRAMS, "slowthrow")):
        h.skip(name, "no C++ compiler")
        return
    program = h.copy_program("slowthrow", "slowthrow")
    judge(name, "shop::serve", [program, str(CALLS)],
          ("shop::planted_wait", "[blocked: sleep]"))


def check_go(name):
    """Goroutines, which change their threads in a call."""
    program = h.build_go("slowcalls", "slowcalls.go")
    for mode, goroutines, cause in (("lock", "4", ("main.plantedLock", "[blocked: sync]")),
                                    ("sleep", "4", ("main.plantedSleep", "[blocked: sleep]")),
                                    ("channel", "4",
                                     ("main.plantedChannel", "[blocked: channel]")),
                                    ("branch", "1", ("main.plantedBranch", ""))):
        judge("%s-%s" % (name, mode), "main.slowServe", [program, mode, "500", goroutines], cause)


def check_sums(name):
    """Stacks of typical and slow calls add up to the time of all calls."""
    program = h.copy_program("slowcalls", "slowcalls")
    folded, report = h.tmpfile("slow.folded"), h.tmpfile("slow-sums.json")
    subprocess.run([h.SFBPF, "slow", "-q", "--over", OVER, "-o", folded, "-o", report,
                    "slow_serve", "--", program, "sleep", str(CALLS)],
                   check=True, timeout=60, stderr=subprocess.DEVNULL)
    with open(report) as f:
        data = json.load(f)
    with open(folded) as f:
        stacks = [line.rsplit(" ", 1) for line in f]
    sums = {kind: sum(int(n) for s, n in stacks if s.split(";")[1] == "[%s]" % kind)
            for kind in ("typical", "slow")}
    errors = []
    if sum(sums.values()) != sum(int(n) for _, n in stacks):
        errors.append("stacks without typical or slow")
    if abs(sums["slow"] - data["slow_us"]) > .01 * data["slow_us"]:
        errors.append("slow: %d, not %d us" % (sums["slow"], data["slow_us"]))
    if abs(sum(sums.values()) - data["total_us"]) > .01 * data["total_us"]:
        errors.append("all: %d, not %d us" % (sum(sums.values()), data["total_us"]))
    typical = [s for s, _ in stacks if s.split(";")[1] == "[typical]" and "planted_sleep" in s]
    if typical:
        errors.append("a slow call among the typical: %s" % typical[0])
    h.check(name, errors)


def check_slowest_share(name):
    """Without --over, the slowest 1 % are slow; quantiles are those of the program."""
    program = h.copy_program("slowcalls", "slowcalls")
    report, _ = slow("slow_serve", [], [program, "sleep", str(CALLS)])
    errors = []
    if not .005 * CALLS <= report["slow"] <= .01 * CALLS:
        errors.append("%d slow calls" % report["slow"])
    if not 14000 < report["p99_9_us"] < 40000 or report["p50_us"] > 2000:
        errors.append("p50 %s, p99.9 %s" % (report["p50_us"], report["p99_9_us"]))
    if [c["us"] for c in report["slowest"]] != sorted((c["us"] for c in report["slowest"]),
                                                      reverse=True):
        errors.append("the slowest are not in order")
    h.check(name, errors)


def check_process(name):
    """A running process, from its middle; its library's function; a pair of probes."""
    program = h.copy_program("slowcalls", "slowrunning")
    p = h.start([program, "sleep", "100000000"])
    errors = []
    for function, options, cause in (
            ("slow_serve", [], "planted_sleep"), ("slow_s*e", [], "planted_sleep"),
            ("libc.so.6:usleep", [], "usleep"),
            ("uprobe:%s:planted_sleep" % program,
             ["--until", "uretprobe:%s:planted_sleep" % program], "planted_sleep")):
        report, _ = slow(function, ["--over", OVER, "-p", "slowrunning", *options], seconds=1)
        functions = [f["name"] for f in report["functions"]]
        if not report["calls"] or (cause and cause not in functions[:3]):
            errors.append("%s: %d calls, %s" % (function, report["calls"], functions[:4]))
        if not options and report["unmatched"] > 1:
            errors.append("%s: %d unmatched" % (function, report["unmatched"]))
    h.stop(p)
    h.check(name, errors)


def check_many(name):
    """Many short calls: all are counted."""
    program = h.copy_program("slowcalls", "slowcalls")
    report, own = slow("usual_work", ["--over", OVER], [program, "sleep", "100000"])
    errors = []
    if report["calls"] != 100000 or report["unmatched"] or report["lost"]:
        errors.append("%d calls, %d unmatched, %d lost" %
                      (report["calls"], report["unmatched"], report["lost"]))
    h.check(name, errors)


def check_formats(name):
    program = h.copy_program("slowcalls", "slowcalls")
    html, pprof = h.tmpfile("slow.html"), h.tmpfile("slow.pb.gz")
    p = subprocess.run([h.SFBPF, "slow", "-q", "--over", OVER, "--format", "text", "-o", "-",
                        "-o", html, "-o", pprof, "slow_serve", "--", program, "sleep", "1000"],
                       capture_output=True, text=True, timeout=60)
    errors = [] if p.returncode == 0 else ["exit code %d: %s" % (p.returncode, p.stderr)]
    for word in ("of it [blocked: sleep] in planted_sleep", "The slowest calls", "p99.9",
                 "slow (4.000 ms or more)"):
        if word not in p.stdout:
            errors.append("text has no '%s'" % word)
    with open(html) as f:
        page = f.read()
    if "[typical]" not in page or "[slow]" not in page:
        errors.append("html has no [typical] and [slow]")
    if not os.path.getsize(pprof):
        errors.append("pprof is empty")
    h.check(name, errors)


def check_usage(name):
    program = h.copy_program("slowcalls", "slowcalls")
    errors = []
    for argv, words in (
            ([], "which function"),
            (["slow_serve"], "of which program"),
            (["slow_srve", "--", program, "sleep", "1"], "did you mean slow_serve"),
            (["--over", "0", "slow_serve", "--", program], "above 0"),
            (["-e", "cycles", "slow_serve", "--", program], "not an option of slow"),
            (["usdt:%s:a:b" % program, "1"], "--until"),
            (["-o", "x.sfb", "slow_serve", "--", program], "recording")):
        p = subprocess.run([h.SFBPF, "slow", *argv], capture_output=True, text=True, timeout=30,
                           cwd=h.tmpdir())
        if p.returncode != 2 or words not in p.stderr:
            errors.append("%s: exit code %d, %s" % (argv, p.returncode, p.stderr.strip()))
    h.check(name, errors)


h.run_checks([check_causes, check_threads, check_exceptions, check_go, check_sums,
              check_slowest_share, check_process, check_many, check_formats, check_usage])
