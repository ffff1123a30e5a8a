#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf offcpu` on blocks that end otherwise than by themselves (tests/programs/waits.c), its
outputs against each other, and its filters.

check_offcpu_cases.py [CHECK...]
"""

import contextlib
import glob
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))

import flame_page  # noqa: E402
import harness as h  # noqa: E402

W = "w%03x-" % (os.getpid() & 0xfff)      # names of this run's programs
L = r"\[libc(-2\.[0-9]+)?\.so(\.6)?\+0x[0-9a-f]+\]"
S = r"_start;(__libc_start_main[^;]*|" + L + r");(__libc_start_call_main|" + L + r");main"
T = r"((__GI_)?(__)?clone3?|" + L + r");(start_thread|" + L + r")"
C = r"(;[^;]+(?<!_\[k\])){1,6}"
K = r"(;[^;]+_\[k\])+"
USEC = 20000
STATES = "S,D,T,t"

# HOW, state: chain of the blocks, how many threads are in it all the time.
CASES = {
    ("timer", "S"): (S + ";timer_run;timer_read" + C + K, 1),
    ("uring", "S"): (S + ";uring_run;uring_wait;syscall" + K, 1),
    ("signal", "S"): (S + ";signal_run;sleep_for" + C + K, 1),
    ("stopped", "T"): (S + ";stopped_run;stopped_child;stop_here" + C + K, 1),
    # The parent sleeps, and waits until the child has had a CPU to stop on.
    ("stopped", "S"): (S + ";stopped_run(;sleep_for)?" + C + K, 1),
    ("traced", "t"): (S + ";stopped_run;stopped_child;stop_here" + C + K, 1),
    ("traced", "S"): (S + ";stopped_run(;sleep_for)?" + C + K, 1),
    ("killed", "S"): ("(" + S + ";killed_run(;with_two;sleep_on;sleep_for)?|" + T +
                      ";(stay;sleep_on|end_all);sleep_for)" + C + K, 4),
    ("exec", "S"): ("(" + S + ";with_two;sleep_on|" + T + ";(stay;sleep_on|exec_again));sleep_for" +
                    C + K, 3),
    ("born", "S"): ("(" + S + ";born_run|" + T + ";sleep_once;sleep_for)" + C + K, 17),
}
COSTLY = ("killed", "exec", "born")     # what starts anew each time takes its time for that


def argv(how, seconds=60, usec=USEC):
    return [h.link_program("waits", W + how), str(seconds), how, str(usec)]


def recorded(options, seconds):
    """A run's stacks as JSON has them, and its length."""
    path = h.tmpfile("cases.json")
    subprocess.run([h.SFBPF, "offcpu", "-o", path] + options + [str(seconds)], check=True,
                   capture_output=True, timeout=60)
    return read(path)


def read(path):
    with open(path) as f:
        profile = json.load(f)
    return profile["stacks"], profile["meta"]["duration_s"]


def names(stack):
    return ";".join(f["name"] for f in stack["frames"])


def us(stacks):
    return sum(s["count"] for s in stacks)


def worst(stacks):
    c = Counter()
    for s in stacks:
        c["%s %s %s" % (s["stop"], s["state"], names(s))] += s["count"]
    return " | ".join("%d x %s" % (n, text) for text, n in c.most_common(3))


def check_cases(name):
    """Each block under its state and its chain; as much as there are threads for it, and no more.
    """
    programs = {how: h.start(argv(how)) for how in sorted({how for how, _ in CASES})}
    time.sleep(1)
    runs = {
        take: recorded(["--take", take, "--state", STATES, "--comm", W + "*"], 2)
        for take in ("back", "leave")
    }
    for (how, state), (chain, threads) in CASES.items():
        if programs[how].poll() == 77:
            h.skip("offcpu-cases-" + how, "the kernel refuses it")
            continue
        for take, (stacks, seconds) in runs.items():
            mine = [s for s in stacks if s["comm"] == W + how and s["state"] == state]
            bad = [s for s in mine if s["stop"] != "complete" or not re.fullmatch(chain, names(s))]
            most = threads * seconds * 1e6
            errors = []
            if not (0.5 if how in COSTLY else 0.8) * most < us(mine) < 1.001 * most:
                errors.append("%d us, %d threads for %d us" % (us(mine), threads, seconds * 1e6))
            if us(bad) > 0.01 * us(mine):
                errors.append("%.2f %% have another chain: %s" %
                              (100 * us(bad) / us(mine), worst(bad)))
            h.check("offcpu-cases-%s-%s-%s" % (how, state, take), errors)


def check_leaderless(name):
    """Threads whose process's first one has ended."""
    p = h.start([h.program("leaderless"), "60"])
    time.sleep(0.3)
    for take in ("back", "leave"):
        stacks, seconds = recorded(["--take", take, "-p", str(p.pid)], 1)
        good = [
            s for s in stacks
            if s["stop"] == "complete" and re.fullmatch(T + ";ll_idle;ll_sleep" + C + K, names(s))
        ]
        h.check("offcpu-leaderless-" + take,
                [] if us(good) > 0.9e6 * seconds else ["%d us: %s" % (us(good), worst(stacks))])


# ---- Outputs and limits: several runs look at the same blocks, of a program that comes and goes
# meanwhile ----

def look_together(programs, runs):
    """Starts `sfbpf offcpu` with each of the runs' options, then the programs, and ends all when
    these have ended. Standard outputs.
    """
    tools = [
        subprocess.Popen([h.SFBPF, "offcpu"] + options, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for options in runs
    ]
    try:
        wait_measuring(tools)
        for program, env in programs:
            subprocess.run(program, env=env, check=True, timeout=60)
        time.sleep(0.1)
        for p in tools:
            p.send_signal(2)
        out = [p.communicate(timeout=60) for p in tools]
    finally:
        for p in tools:
            p.kill()
            p.wait()
    for p, (_, err) in zip(tools, out):
        if p.returncode:
            raise ValueError("exit code %d: %s" % (p.returncode, err[-200:]))
    return [text for text, _ in out]


def wait_measuring(tools):
    """Until each tool has attached its programs, the last of which begins the first block: none
    was added for a second.
    """
    counts, since, end = None, time.monotonic(), time.monotonic() + 60
    while time.monotonic() < end and (not all(counts or [0]) or time.monotonic() < since + 1):
        now = [links(p.pid) if p.poll() is None else -1 for p in tools]
        if now != counts:
            counts, since = now, time.monotonic()
        time.sleep(0.05)


def links(pid):
    """How many BPF programs a process has attached."""
    n = 0
    for path in glob.glob("/proc/%d/fd/*" % pid):
        with contextlib.suppress(OSError):
            n += "bpf_link" in os.readlink(path)
    return n


def html_us(path):
    total, unit = flame_page.total(path)
    return total / (1000 if unit == "nanoseconds" else 1)


def folded_us(text):
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


def reported_us(path):
    return folded_us(
        subprocess.run([h.SFBPF, "report", "--format", "folded", path], check=True,
                       capture_output=True, text=True).stdout)


def usec_of(number, unit):
    return float(number) * {"s": 1e6, "ms": 1e3, "us": 1}[unit]


def outputs_errors():
    report, paths = h.tmpfile("held"), {
        s: h.tmpfile("held." + s)
        for s in ("folded", "json", "pb.gz", "html")
    }
    text = look_together(
        [(argv("held", usec=4000), dict(os.environ, WAITS_REPORT=report))],
        [["--comm", W + "held", "-m", "1ms", "-o", path] for path in paths.values()] +
        [["--comm", W + "held", "-m", "1ms", "--threads", "--hist", "--format", "text"]])[-1]
    with open(report) as f:
        measured = int(f.read()) / 1e3
    with open(paths["folded"]) as f:
        sums = {"folded": folded_us(f.read()), "html": html_us(paths["html"])}
    stacks, _ = read(paths["json"])
    sums["json"], sums["pprof"] = us(stacks), reported_us(paths["pb.gz"])
    rows = [line.split() for line in text.splitlines() if line.endswith("  " + W + "held")]
    sums["text"] = usec_of(*rows[0][1:3])
    sums["threads"] = sum(int(row[2]) for row in rows[1:] if len(row) == 9)
    sums["by state"] = usec_of(
        *re.search(r"Blocked time by state:  S ([0-9.]+) (\w+)", text).groups())
    sums["hist stacks"] = sum(
        usec_of(*t) for t in re.findall(r": ([0-9.]+) (\w+) in \d+ blocks", text))
    blocks = {
        "json": blocks_of(stacks), "hist": sum(int(n) for n in re.findall(r"us +(\d+) \|", text)),
        "hist stacks": sum(int(n) for n in re.findall(r"in (\d+) blocks?,", text))
    }
    h.note("one program's sleeps: %d us measured by itself; %s; blocks %s" %
           (measured, sums, blocks))
    # The text has milliseconds.
    errors = [
        "%s: %d us, json %d" % (k, v, sums["json"]) for k, v in sums.items()
        if abs(v - sums["json"]) > 600 + len(stacks)
    ]
    errors += ["%s: %d blocks" % (k, n) for k, n in blocks.items() if n != 500]
    if abs(sums["json"] - measured) > 0.01 * measured:
        errors.append("%d us, the program measured %d" % (sums["json"], measured))
    return errors


def check_outputs(name):
    """Folded, JSON, pprof, HTML and text of the same blocks have the same sum, which is that of the
    program itself.
    """
    h.check("offcpu-outputs", outputs_errors())


def check_edges(name):
    """-m and -M part the blocks: what is in both runs together is all of them, once."""
    sleeps = [(argv("held", usec=usec), dict(os.environ, WAITS_REPORT="/dev/null"))
              for usec in (1000, 3000)]
    paths = [h.tmpfile("edge%d.json" % i) for i in range(4)]
    look_together(sleeps,
                  [["--comm", W + "held", "--state", "S", "-o", path] + limits
                   for path, limits in zip(paths, (["-m", "500us"], ["-m", "500", "-M", "2000"],
                                                   ["-m", "2ms"], ["-m", "2ms", "-M", "2001us"]))])
    sums, blocks = [], []
    for path in paths:
        stacks, _ = read(path)
        sums.append(us(stacks))
        blocks.append(blocks_of(stacks))
    h.note("limits: %s us, %s blocks" % (sums, blocks))
    errors = []
    if abs(blocks[0] - 1000) > 3 or abs(blocks[1] + blocks[2] - blocks[0]) > blocks[3]:
        errors.append("%s blocks" % blocks)
    if abs(sums[1] + sums[2] - sums[0]) > 20 + 2001 * blocks[3]:
        errors.append("%s us" % sums)
    h.check("offcpu-edges", errors)


OPTIONS = [[], ["--wakers"], ["--chains"], ["-U"], ["-K"], ["--take", "leave"], ["--thin", "100us"]]


def check_options(name):
    """What is shown beside the blocks, and where stacks are taken, changes no sum."""
    paths = [h.tmpfile("options%d.json" % i) for i in range(len(OPTIONS))]
    look_together([(argv("held", usec=2000), dict(os.environ, WAITS_REPORT="/dev/null"))],
                  [["--comm", W + "held", "-m", "500us", "-o", path] + options
                   for path, options in zip(paths, OPTIONS)])
    runs = [read(path)[0] for path in paths]
    errors = [
        "%s: %d us in %d blocks, without %d" %
        (" ".join(options), us(stacks), blocks_of(stacks), us(runs[0]))
        for options, stacks in zip(OPTIONS, runs)
        if abs(us(stacks) - us(runs[0])) > 100 or blocks_of(stacks) != 500
    ]
    h.check("offcpu-options", errors)


def check_cpus(name):
    """-C parts the blocks by the CPU that their thread came back to."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise h.Skip("one CPU")
    groups = [str(cpus[0]), ",".join(str(c) for c in cpus[1:])]
    paths = [h.tmpfile("cpus%d.json" % i) for i in range(3)]
    look_together([(argv("held", usec=1000), dict(os.environ, WAITS_REPORT="/dev/null"))],
                  [["--comm", W + "held", "-m", "500us", "-o", path] + options
                   for path, options in zip(paths, [[]] + [["-C", g] for g in groups])])
    both, first, rest = (read(path)[0] for path in paths)
    ok = blocks_of(
        both) == blocks_of(first) + blocks_of(rest) and abs(us(both) - us(first) - us(rest)) < 50
    h.check("offcpu-cpus", [] if ok else ["%d and %d us of %d" % (us(first), us(rest), us(both))])


def blocks_of(stacks):
    return sum(s["samples"] for s in stacks)


def check_blocks(name):
    """No block is missing, whatever the clocks say: as many as the kernel has counted voluntary
    switches of the threads.
    """
    for take in ("back", "leave"):
        errors = []
        for args in ("pipe 0 2", "convoy 100 8"):
            path, report = h.tmpfile("blocks.json"), h.tmpfile("switches")
            subprocess.run([
                h.SFBPF, "offcpu", "--take", take, "--thin", "0", "--state", "S,D", "--comm",
                W + "count", "-o", path, "--",
                h.link_program("block", W + "count"), "1"
            ] + args.split(), env=dict(os.environ, BLOCK_REPORT=report), check=True,
                           capture_output=True, timeout=60)
            with open(report) as f:
                switches = int(f.read().split()[2])
            blocks = blocks_of(read(path)[0])
            h.note("%s, %s: %d blocks, %d voluntary switches" % (args, take, blocks, switches))
            # Before the program was executed, and after it has asked.
            if abs(blocks - switches) > 10:
                errors.append("%s: %d blocks, %d voluntary switches" % (args, blocks, switches))
        h.check("offcpu-blocks-" + take, errors)


def disk_errors(take, device):
    path, report = h.tmpfile("disk.json"), h.tmpfile("disk")
    stolen = -h.stolen_us()
    subprocess.run([h.SFBPF, "offcpu", "--take", take, "--state", "S,D,R", "-o", path, "--"] +
                   argv("direct"), env=dict(os.environ, WAITS_REPORT=report, WAITS_FILE=device),
                   check=True, capture_output=True, timeout=60)
    stolen += h.stolen_us()
    with open(report) as f:
        measured = int(f.read()) / 1e3
    mine = [s for s in read(path)[0] if s["comm"] == W + "direct"]
    disk = [s for s in mine if s["state"] == "D" and "direct_read" in names(s)]
    bad = [
        s for s in disk if s["stop"] != "complete" or
        not re.fullmatch(S + ";measured;direct_run;direct_read" + C + K, names(s))
    ]
    h.note("direct, %s: %d us seen, %d measured, %d stolen; %d us in %d waits for the disk" % (
        take, us(mine), measured, stolen, us(disk), blocks_of(disk)))
    errors = []
    # More: what came before the program measured itself. Less: what the hypervisor took, and as
    # much as a tick of it is not counted.
    least = -0.01 * measured - 3000 - (stolen + 10000 if stolen else 0)
    if not least < us(mine) - measured < 0.01 * measured + 50000:
        errors.append("%d us seen, %d measured" % (us(mine), measured))
    if blocks_of(disk) < 1000 or us(bad) > 0.01 * us(disk):
        errors.append("%d waits; %d us under other chains: %s" %
                      (blocks_of(disk), us(bad), worst(bad)))
    return errors


def check_disk(name):
    """Uninterruptible waits for a loop device, whose reads go past the page cache down to the disk.
    """
    image = "/var/tmp/sfbpf-%d.img" % os.getpid()
    try:
        subprocess.run(["dd", "if=/dev/urandom", "of=" + image, "bs=1M", "count=4", "conv=fsync"],
                       check=True, capture_output=True)
        p = subprocess.run(["losetup", "-f", "--show", "--direct-io=on", image],
                           capture_output=True, text=True)
        if p.returncode:
            raise h.Skip("no loop device: " + p.stderr.strip())
        try:
            for take in ("back", "leave"):
                h.check("offcpu-disk-" + take, disk_errors(take, p.stdout.strip()))
        finally:
            subprocess.run(["losetup", "-d", p.stdout.strip()], check=True)
    finally:
        os.unlink(image)


# ---- Filters ----

def shares(stacks, seconds):
    """{comm: how many threads were blocked all the time}"""
    return {
        k: us([s for s in stacks if s["comm"] == k]) / (seconds * 1e6)
        for k in {s["comm"]
                  for s in stacks}
    }


def seen(options):
    return shares(*recorded(options, 0.5))


def filter_errors(what, got, want):
    """want: {comm: threads}"""
    if got.keys() != want.keys() or any(abs(got[k] - n) > 0.1 * n for k, n in want.items()):
        return ["%s: %s, want %s" % (what, {k: round(v, 2) for k, v in got.items()}, want)]
    return []


def block(name, threads, **kw):
    return h.start([h.link_program("block", W + name), "600", "sleep", "5000", str(threads)], **kw)


def check_users(name):
    """-u chooses a real user's processes, also those that begin as root."""
    block("mine", 2)
    block("other", 3, user=65533)
    time.sleep(0.3)
    errors = filter_errors("-u 65533", seen(["-u", "65533"]), {W + "other": 3})
    mine = seen(["-u", "root", "--comm", W + "*"])
    h.check("offcpu-users", errors + filter_errors("-u root", mine, {W + "mine": 2}))


# In mounts of its own, should the groups have none: they need no controllers.
IN_GROUPS = """
set -eu
tool=$3 in=$4 below=$5 out=$6
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
[ -n "$mount" ] || { mount=$1; mkdir $mount; mount -t cgroup2 none $mount; }
group=$mount/$2
pids=
trap 'echo $$ >$mount/cgroup.procs; kill $pids; wait; rmdir $group/below $group' EXIT
mkdir $group $group/below
echo $$ >$group/cgroup.procs; $in 60 sleep 5000 2 & pids=$!
echo $$ >$group/below/cgroup.procs; $below 60 sleep 5000 & pids="$pids $!"
echo $$ >$mount/cgroup.procs
sleep 0.3
for g in $2 $group/below $(stat -c %i $group); do
	out=$out+
	$tool offcpu -G $g -o $out.json 0.5
done
"""


def check_cgroups(name):
    """-G is a group and those below it, by path and by id."""
    mount, out = h.tmpfile("cgroup"), h.tmpfile("groups")
    p = subprocess.run([
        "unshare", "-m", "sh", "-c", IN_GROUPS, "sh", mount, "sfbpf-" + W + "group", h.SFBPF,
        h.link_program("block", W + "in"),
        h.link_program("block", W + "below"), out
    ], capture_output=True, text=True, timeout=60)
    if p.returncode:
        raise h.Skip("no cgroups: %s" %
                     p.stderr[-200:]) if "mount" in p.stderr else ValueError(p.stderr[-300:])
    errors = []
    for i, want in enumerate(({W + "in": 2,
                               W + "below": 1}, {W + "below": 1}, {W + "in": 2, W + "below": 1})):
        errors += filter_errors("-G %d" % i, shares(*read(out + "+" * (i + 1) + ".json")), want)
    h.check("offcpu-cgroups", errors)


def check_tasks(name):
    """-p and -t take several, of a process in a PID namespace too, by the host's numbers, which are
    also what is shown.
    """
    a, b = block("a", 2), block("b", 3)
    inside = h.start([
        "unshare", "-pf", "--kill-child",
        h.link_program("block", W + "ns"), "600", "sleep", "5000"
    ])
    time.sleep(0.3)
    pid = h.children(inside.pid)[0]
    tids = sorted(
        int(t) for p in (a, b) for t in os.listdir("/proc/%d/task" % p.pid) if int(t) != p.pid)
    errors = filter_errors("-p", seen(["-p", "%d,%d" % (a.pid, pid)]), {W + "a": 2, W + "ns": 1})
    errors += filter_errors("-t", seen(["-t", ",".join(str(t) for t in tids)]),
                            {W + "a": 1, W + "b": 2})
    stacks, _ = recorded(["--comm", W + "ns"], 0.3)
    if {s["pid"] for s in stacks} != {pid}:
        errors.append("PID %s, shown %s" % (pid, {s["pid"] for s in stacks}))
    h.check("offcpu-tasks", errors)


if __name__ == "__main__":
    h.run_checks([
        check_cases, check_leaderless, check_outputs, check_edges, check_options, check_cpus,
        check_blocks, check_disk, check_users, check_cgroups, check_tasks
    ])
