#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Events of `-e`: tracepoints, probes and USDT probes, against programs that count themselves; the
events of `sfbpf list`.
"""

import json
import os
import shutil
import subprocess
import time

import harness as h

CALLS = 3000
CHAIN = ("_start", "__libc_start_main", "__libc_start_call_main", "main", "probed_outer")
LEAF = CHAIN + ("probed_middle", "probed_leaf")


def run(event, command, *options):
    """The stacks of a command's events, and what it has printed."""
    events = [option for e in ([event] if isinstance(event, str) else event)
              for option in ("-e", e)]
    folded, stats = h.tmpfile("events.folded"), h.tmpfile("events.json")
    argv = [h.SFBPF, "record", "-q", "--ring-size", "16M", "-o", folded, "--stats", stats]
    p = subprocess.run(argv + events + list(options) + ["--"] + list(command),
                       capture_output=True, text=True, timeout=120)
    if p.returncode:
        raise ValueError("%s: exit code %d: %s" % (event, p.returncode, p.stderr.strip()))
    with open(stats) as f:
        return h.read_folded(folded), json.load(f), p.stdout


def fails(event, *options):
    """The exit code and the message."""
    p = subprocess.run([h.SFBPF, "record", "-o", os.devnull, "-e", event, *options, "1"],
                       capture_output=True, text=True, timeout=60)
    return p.returncode, p.stderr.strip()


def expect(errors, event, stacks, frames, count):
    """All of the program's stacks are this one."""
    wrong = [s for s in stacks if h.user_frames(s) != list(frames)]
    if wrong:
        errors.append("%s: %s" % (event, h.worst(wrong)))
    if h.total(stacks) != count:
        errors.append("%s: %d, not %d" % (event, h.total(stacks), count))


def check_probes(name):
    """Whole chains, exact counts and sums, of entries, returns and USDT probes."""
    probed = h.copy_program("probed", "probed")
    numbers = CALLS * (CALLS - 1) // 2
    odd = CALLS // 2 * (CALLS // 2)
    errors = []
    for kind, what, frames, count in (
            ("uprobe", "probed_leaf", LEAF, CALLS),
            ("uprobe", "probed_l??f", LEAF, CALLS),
            ("uprobe", "probed_leaf=arg1:s32", LEAF, numbers),
            ("uprobe", "probed_leaf+0", LEAF, CALLS),
            ("uretprobe", "probed_middle", CHAIN, CALLS),
            ("uretprobe", "probed_middle=ret:s32", CHAIN, odd),
            ("usdt", "sfbpf:number", LEAF, CALLS),
            ("usdt", "sfbpf:number=arg1", LEAF, numbers),
            ("usdt", "sfbpf:number=arg2", LEAF, numbers),
            ("usdt", "sfbpf:number=arg3", LEAF, 5 * CALLS),
            ("usdt", "sfbpf:quiet", LEAF, CALLS)):
        event = "%s:%s:%s" % (kind, probed, what)
        stacks, stats, out = run(event, [probed, str(CALLS)])
        expect(errors, event, stacks, [f for f in frames], count)
        lost = sum(stats["lost"].values())
        if lost:
            errors.append("%s: %d lost" % (event, lost))
        quiet = int(out.split()[3])
        if quiet != (CALLS if what == "sfbpf:quiet" else 0):
            errors.append("%s: the semaphore was on in %d calls" % (event, quiet))
    h.check(name, errors)


def check_bytes(name):
    """Bytes of a library's function, found by the library's name."""
    probed = h.copy_program("probed", "probed")
    stacks, _, _ = run("uprobe:libc.so.6:malloc=arg1:bytes", [probed, str(CALLS)])
    own = [s for s in stacks if s.frames[-2:] == ("probed_outer", "malloc")]
    errors = []
    expect(errors, "malloc", own, CHAIN + ("malloc",), CALLS * (CALLS + 1) // 2)
    h.check(name, errors)


WRITES = """
import os
for i in range(500):
    os.write(1, b"x" * (i % 7 + 1))
    os.write(2, b"y")
"""


def check_tracepoints(name):
    """Hits, sums of a field, and filters, of a program that knows its system calls."""
    python = ["/usr/bin/python3", "-c", WRITES]
    counts = [i % 7 + 1 for i in range(500)]
    errors = []
    for event, options, count in (
            ("syscalls:sys_enter_write", (), 1000),
            ("tracepoint:syscalls:sys_enter_write", (), 1000),
            ("syscalls:sys_enter_write=count:bytes", (), sum(counts) + 500),
            ("syscalls:sys_enter_write", ("--filter", "fd == 1"), 500),
            ("syscalls:sys_enter_write", ("--filter", "fd==1 && count>3 || !(fd != 2)"),
             sum(c > 3 for c in counts) + 500),
            ("syscalls:sys_enter_write", ("--filter", "(fd == 1 || fd == 2) && count & 4"),
             sum(c & 4 > 0 for c in counts)),
            ("syscalls:sys_enter_write", ("--filter", "fd >= 2 || count <= 1"),
             500 + counts.count(1))):
        stacks, _, _ = run(event, python, *options)
        if h.total(stacks) != count:
            errors.append("%s %s: %d, not %d" % (event, options, h.total(stacks), count))
        if any("write" not in s.frames for s in stacks):
            errors.append("%s: %s" % (event, h.worst(stacks)))
    h.check(name, errors)


def check_text_filters(name):
    """Filters on fields that are texts, of fixed and of variable length."""
    script = ["sh", "-c", "/bin/true; /usr/bin/env true; /bin/echo"]
    seen = {}
    for text in ('filename == "/bin/true"', 'filename ~ "/usr/bin/*"',
                 'filename != "/bin/true" && filename != "/bin/echo"', 'pid > 0'):
        stacks, _, _ = run("sched:sched_process_exec", script, "--filter", text)
        seen[text] = sorted(s.comm for s in stacks for _ in range(s.count))
    errors = []
    everything = seen["pid > 0"]
    if seen['filename == "/bin/true"'] != ["true"]:
        errors.append("==: %s" % seen['filename == "/bin/true"'])
    if "env" not in seen['filename ~ "/usr/bin/*"'] or "echo" in seen['filename ~ "/usr/bin/*"']:
        errors.append("~: %s" % seen['filename ~ "/usr/bin/*"'])
    rest = seen['filename != "/bin/true" && filename != "/bin/echo"']
    if "echo" in rest or len(rest) != len(everything) - 2:
        errors.append("!=: %s of %s" % (rest, everything))
    h.check(name, errors)


def check_against_perf(name):
    """The counts of `perf stat`, by its spellings."""
    perf = shutil.which("perf")
    if not perf:
        raise h.Skip("perf is not installed")
    command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=8k", "count=20000"]
    errors = []
    subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False,
                   capture_output=True)
    for event in ("syscalls:sys_enter_write", "syscalls:sys_exit_read", "syscalls:sys_enter_*t"):
        stat = subprocess.run([perf, "stat", "-x,", "-o", h.tmpfile("perf"), "-e", event, "--"]
                              + command, capture_output=True, text=True, timeout=60)
        with open(h.tmpfile("perf")) as f:
            lines = [line.split(",") for line in f if event.split(":", maxsplit=1)[0] in line]
        if stat.returncode or not lines or not lines[0][0].isdigit():
            raise h.Skip("perf stat does not count %s" % event)
        wanted = sum(int(line[0]) for line in lines)
        stacks, stats, _ = run(event, command)
        got = h.total(stacks) + sum(stats["lost"].values())
        # The process that becomes the command makes some calls before.
        if not wanted <= got <= 1.01 * wanted + 20:
            errors.append("%s: %d, perf says %d" % (event, got, wanted))
    h.check(name, errors)


def check_several(name):
    """Several events in one run: each stack is below the name of its own."""
    probed = h.copy_program("probed", "probed")
    leaf, middle = ("uprobe:%s:probed_%s" % (probed, f) for f in ("leaf", "middle"))
    stacks, _, _ = run([leaf, "page-faults,syscalls:sys_enter_write", middle],
                       [probed, str(CALLS)], "-c", "1")
    errors = []
    for event, frames in ((leaf, LEAF), (middle, LEAF[:-1])):
        own = [s for s in stacks if s.frames[0] == "[%s]" % event]
        expect(errors, event, own, ("[%s]" % event,) + frames, CALLS)
    for event in ("page-faults", "syscalls:sys_enter_write"):
        if not any(s.frames[0] == "[%s]" % event for s in stacks):
            errors.append("no %s" % event)
    h.check(name, errors)


def check_process(name):
    """With -p, the threads of that process alone; another one does not even meet the probe."""
    events = "uprobe:%s:probed_leaf" % h.copy_program("probed", "probed")
    one, other = (h.start([h.tmpfile("probed"), "2000000000"]) for _ in range(2))
    for p in (one, other):
        h.wait_busy(p)
    rec = h.Recording(["-e", events, "-p", str(one.pid)], 2)
    time.sleep(1)
    with open("/proc/%d/maps" % other.pid) as f:
        errors = ["another process has a page for probes"] if "[uprobes]" in f.read() else []
    stacks, _ = rec.finish()
    if not h.total(stacks) or any(h.user_frames(s) != list(LEAF) for s in stacks):
        errors.append(h.worst(stacks))
    h.check(name, errors)


def check_periods_and_cpus(name):
    """One in N hits with -c, and no hit of another CPU with -C."""
    probed = h.copy_program("probed", "probed")
    event = "uprobe:%s:probed_leaf" % probed
    errors = []
    stacks, _, _ = run(event, ["taskset", "-c", "0", probed, str(CALLS)], "-c", "10", "-C", "0")
    if not CALLS // 10 - 1 <= h.total(stacks) <= CALLS // 10:
        errors.append("-c 10: %d of %d" % (h.total(stacks), CALLS))
    if os.cpu_count() > 1:
        stacks, _, _ = run(event, ["taskset", "-c", "0", probed, str(CALLS)], "-C", "1")
        if h.total(stacks):
            errors.append("-C 1: %d on CPU 0" % h.total(stacks))
    h.check(name, errors)


def check_usage(name):
    """What does not exist is a usage error that names the nearest."""
    probed = h.copy_program("probed", "probed")
    errors = []
    for event, options, text in (
            ("uprobe:%s:probed_leef" % probed, (), "probed_leaf"),
            ("usdt:%s:sfbpf:nunber" % probed, (), "sfbpf:number"),
            ("usdt:%s:sfbpf:number=arg4" % probed, (), "arg4"),
            ("uprobe:%s:probed_leaf=arg99" % probed, (), "arg99"),
            ("uprobe:/nonexistent:f", (), "/nonexistent"),
            ("uprobe:probed_leaf", (), "PATH:FUNCTION"),
            ("sched:sched_swich", (), "sched:sched_switch"),
            ("sched:sched_switch=prev_comm", (), "prev_pid"),
            ("sched:sched_switch", ("--filter", "prev_pit == 1"), "prev_pit"),
            ("sched:sched_switch", ("--filter", "prev_pid == 1 &&"), "field"),
            ("sched:sched_switch", ("--filter", "prev_pid"), "operator"),
            ("cpu-clock", ("--filter", "a == 1"), "tracepoint"),
            ("sched:sched_switch", ("-F", "99"), "-c N"),
            ("cpu-clok", (), "cpu-clock"),
            ("cs,", (), "missing"),
            ("cs:x", (), "tracepoint"),
            ("syscalls:sys_enter_write=count:bytes,cs", (), "unit")):
        rc, err = fails(event, *options)
        if rc != 2 or text not in err or "\n" in err:
            errors.append("%s %s: exit code %d: %s" % (event, " ".join(options), rc, err))
    h.check(name, errors)


def lines_of(*argv):
    p = subprocess.run([h.SFBPF, "list", *argv], capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout.splitlines()


def check_list(name):
    """Each line of `list` is an event that can be sampled."""
    probed = h.copy_program("probed", "probed")
    p = h.start([probed, "2000000000"])
    errors = []
    for argv, wanted in ((["sched:sched_swit*"], "sched:sched_switch"),
                         (["cpu-clock"], "cpu-clock"),
                         (["uprobe:%s:probed_*" % probed], "uprobe:%s:probed_leaf" % probed),
                         (["usdt:%s" % probed], "usdt:%s:sfbpf:quiet" % probed),
                         (["-p", str(p.pid)], "usdt:%s:sfbpf:number" % probed)):
        rc, lines = lines_of(*argv)
        if rc or wanted not in lines:
            errors.append("%s: exit code %d: %s" % (argv, rc, lines[:3]))
        elif run(wanted, ["true"]) is None:
            errors.append("%s cannot be sampled" % wanted)
    if lines_of("no such event")[0] != 1:
        errors.append("nothing found: exit code %d" % lines_of("no such event")[0])
    h.check(name, errors)


def check_formats(name):
    """The unit and the events in JSON, text and pprof."""
    probed = h.copy_program("probed", "probed")
    event = "uprobe:libc.so.6:malloc=arg1:bytes"
    text = {}
    for form in ("json", "text", "html"):
        text[form] = subprocess.run(
            [h.SFBPF, "record", "-q", "-e", event, "--format", form, "-o", "-", "--", probed,
             "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60,
            text=True).stdout
    data = json.loads(text["json"][text["json"].index("{"):])
    errors = []
    counts = sum(s["count"] for s in data["stacks"] if s["comm"] == "probed")
    if data["meta"]["unit"] != "bytes" or counts < 5050 or data["meta"]["hz"] is not None:
        errors.append("json: %s, %d" % (data["meta"], counts))
    if "SELF" not in text["text"] or "bytes" not in text["text"]:
        errors.append("text: %s" % text["text"][:300])
    if '"unit":"bytes"' not in text["html"]:
        errors.append("html has another unit")
    h.check(name, errors)


h.run_checks([check_probes, check_bytes, check_tracepoints, check_text_filters,
              check_against_perf, check_several, check_process, check_periods_and_cpus,
              check_usage, check_list, check_formats])
