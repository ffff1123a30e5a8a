#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`sfbpf offcpu` on programs that block under known chains and measure themselves
(tests/programs/block.c).

check_offcpu.py [CHECK...]    SECONDS comes from the environment
"""

import json
import os
import re
import subprocess
import time

import harness as h

BL = "b%03x-" % (os.getpid() & 0xfff
                 )  # names of this run's programs: other runs on the machine are not to be counted
SECONDS = int(os.environ.get("SECONDS", "4"))
L = r"\[libc(-2\.[0-9]+)?\.so(\.6)?\+0x[0-9a-f]+\]"
S0 = r"_start;(__libc_start_main[^;]*|" + L + r");(__libc_start_call_main|" + L + r");main"
S = S0 + ";start;run"
T = r"((__GI_)?(__)?clone3?|" + L + r");(start_thread|" + L + r");thread;start;run"
C = r"(;[^;]+(?<!_\[k\])){1,4}"             # the C library's part, down to the system call
K = r"(;[^;]+_\[k\])+"

# Name, block's arguments, threads, chain. All of them are recorded together.
CHAINS = [
    (BL + "sleep10", "sleep 10000", 1, S + ";sleep_run;sleep_wait" + C + K),
    (BL + "sleep100", "sleep 100000", 1, S + ";sleep_run;sleep_wait" + C + K),
    (BL + "still", "still 0", 1, S + ";still_run;sleep_wait" + C + K),
    (BL + "epoll", "epoll 20000", 1, S + ";epoll_run;epoll_block" + C + K),
    (BL + "futex", "futex 2000 2", 2,
     "(" + S + ";fa_run|" + T + ";fb_run);(futex_wait_for|sleep_wait|futex_pass_to)" + C + K),
    (BL + "pipe", "pipe 2000 2", 2,
     "(" + S + ";pa_run|" + T + ";pb_run);(pipe_wait|sleep_wait|pipe_pass)" + C + K),
    (BL + "slow", "slow 5000 2", 2,
     "(" + S + ";slow_read;pipe_wait|" + T + ";slow_write;(sleep_wait|pipe_pass))" + C + K),
    (BL + "convoy", "convoy 1000 8", 8,
     "(" + S + "|" + T + ");convoy_run;convoy_lock(;sleep_wait)?" + C + K),
    (BL + "fsync", "fsync 64", 1, S + ";fsync_run(;fsync_block)?" + C + K),
    (BL + "wait", "wait 10000", 2, S + ";wait_run(;wait_block)?" + C + K),
    (BL + "vfork", "vfork 10000", 2, S + ";vfork_run(;vfork_block|;wait_block)" + C + K),
]


def offcpu(options, seconds=None, command=(), env=None):
    return h.Recording(options, seconds, command, tool="offcpu", env=env).finish()


def launch(name, args):
    return h.start([h.link_program("block", name), "600"] + args.split())


def judge_chains(label, options):
    for name, args, _, _ in CHAINS:
        launch(name, args)
    time.sleep(1)
    try:
        stacks, stats = offcpu(options, SECONDS)
    finally:
        h.stop_all()
    usec = stats["duration_s"] * 1e6
    for name, _, threads, chain in CHAINS:
        mine = [s for s in stacks if s.comm == name]
        bad = [s for s in mine if not re.fullmatch(chain, ";".join(s.frames))]
        total = h.total(mine)
        errors = []
        # fsync writes as well, and children are not there all the time.
        least = 0.2 if name in (BL + "fsync", BL + "wait", BL + "vfork") else 0.9
        if not least * usec * threads < total < 1.001 * usec * threads:
            errors.append("%d us blocked, %d threads for %d us" % (total, threads, usec))
        if h.total(bad) > 0.01 * total:
            errors.append("%.2f %% have another chain: %s" %
                          (100 * h.total(bad) / total, h.worst(bad)))
        if name == BL + "still" and abs(total - usec) > 0.001 * usec:
            errors.append("%d us of %d" % (total, usec))
        h.check("offcpu-%s-bl-%s" % (label, name[len(BL):]), errors)
    h.check("offcpu-%s-account" % label, h.stats_errors(stats))


def check_chains_back(name):
    """The chain that blocks, in 99 % of each program's blocked time; also those asleep from start
    to end.
    """
    judge_chains("back", [])


def check_chains_leave(name):
    """The same with stacks taken as threads leave."""
    judge_chains("leave", ["--take", "leave"])


def measured(options, args, seconds):
    """Runs block under offcpu from start to end. Its stacks, the account, and what it measured
    itself.
    """
    name = BL + args.split()[0]
    path = h.tmpfile("block-report")
    command = [h.link_program("block", name), str(seconds)] + args.split()
    stolen = -h.stolen_us()
    stacks, stats = offcpu(options, command=command, env=dict(os.environ, BLOCK_REPORT=path))
    stolen += h.stolen_us()
    with open(path) as f:
        off, delay, switches = (int(x) for x in f.read().split())
    return [s for s in stacks if s.comm == name], stats, off / 1e3, delay / 1e3, switches, stolen


def close_to(what, got, want, share, slack_us=3000):
    if abs(got - want) <= share * want + slack_us:
        return []
    return [
        "%s: %d us, the program measured %d us (%+.2f %%)" % (what, got, want, 100 *
                                                              (got - want) / max(want, 1))
    ]


def off_cpu_errors(seen, off, switches, stolen, share):
    """Blocked time against wall clock minus CPU time. The scheduler's books begin a thread's CPU
    time at its wake-up if that found an idle CPU (the run queue's clock is not read again), some
    microseconds before it runs: there we see more, never less.
    """
    early = min(10 * switches, 0.08 * off)
    return close_to("off the CPU", seen, off if seen < off else min(seen, off + early), share,
                    3000 + stolen)


# the machine's other work comes between two clocks that are read one after the other: the best run
# counts
ATTEMPTS = 3


def best(attempt):
    """Runs it until it has no complaint; those of the last run otherwise."""
    for _ in range(ATTEMPTS):
        errors = attempt()
        if not errors:
            break
    return errors


def totals_errors(args, take):
    stacks, stats, off, delay, switches, stolen = measured(
        ["--take", take, "--state", "S,D,R,T,t,P"], args, SECONDS / 2)
    waiting = h.total(s for s in stacks if s.frames[-1] == "[runnable]")
    errors = off_cpu_errors(h.total(stacks), off, switches, stolen, 0.01)
    # Threads also wait for a CPU before and after they measure themselves, on a busy machine for
    # long: only less is wrong.
    if waiting < delay:
        errors += close_to("runnable", waiting, delay, 0.02, 50000)
    h.note("%s, %s: %d us seen, %d measured, %d stolen; %d of %d runnable" % (
        args, take, h.total(stacks), off, stolen, waiting, delay))
    return errors + h.stats_errors(stats)


def check_totals(name):
    """Blocked plus runnable time is wall clock minus CPU time within 1 %; runnable time is the
    scheduler's.
    """
    for args in ("sleep 2000 50", "mixed 1000 4", "convoy 1000 8", "futex 1000 2", "slow 3000 2",
                 "fsync 64 1", "still 0 50"):
        for take in ("back", "leave"):
            errors = best(lambda args=args, take=take: totals_errors(args, take))
            h.check("offcpu-totals-%s-%s" % (args.split()[0] + args.split()[-1], take), errors)


def check_delay(name):
    """No wait for a CPU is missing: not less than the scheduler's run delay. Where the way back of
    a thread is not shown (some tasks of Firecracker's guests switch without sched_switch), whole
    waits would be.
    """
    for take in ("back", "leave"):
        stacks, stats, _, delay, switches, _ = measured(["--take", take, "--state", "S,D,R,T,t,P"],
                                                        "busy 0 6", 2 * SECONDS)
        waiting = h.total(s for s in stacks if s.frames[-1] == "[runnable]")
        h.note("delay, %s: %d us runnable, %d by schedstat, %d switches" %
               (take, waiting, delay, switches))
        h.check(
            "offcpu-delay-" + take,
            h.stats_errors(stats) + ([] if waiting > 0.9995 * delay - 1000 else
                                     ["%d us runnable, %d by schedstat" % (waiting, delay)]))


def first_block_errors():
    stacks, _, _, _, _, _ = measured(["--take", "back"], "sleep 900000", 2)
    mine = [s for s in stacks if "sleep_wait" in s.frames]
    bad = [s for s in stacks if s.frames[0].startswith("[incomplete")]
    if h.total(bad) > 0.01 * h.total(stacks) or h.total(mine) < 1.7e6:
        return ["%d us, %d incomplete: %s" % (h.total(mine), h.total(bad), h.worst(bad))]
    return []


def check_first_block(name):
    """A command's libraries are known before its first block is over."""
    h.check("offcpu-first-block", best(first_block_errors))


def pingpong_errors(take):
    stacks, stats, off, _, switches, stolen = measured(["--take", take, "--state", "S,D,R"],
                                                       "pipe 0 2", 2 * SECONDS)
    errors = off_cpu_errors(h.total(stacks), off, switches, stolen, 0.02)
    if sum(stats["lost"].values()):
        errors.append("lost %s" % stats["lost"])
    h.note("ping-pong, %s: %d switches/s; %d us seen, %d measured, %d stolen" % (
        take, switches / 2 / SECONDS, h.total(stacks), off, stolen))
    return errors + h.stats_errors(stats)


def check_pingpong(name):
    """As many switches a second as the machine can do: nothing is lost unsaid, totals hold within 2
    %.
    """
    for take in ("back", "leave"):
        h.check("offcpu-pingpong-" + take, best(lambda take=take: pingpong_errors(take)))


def thin_errors(take):
    stacks, stats, off, _, switches, stolen = measured(["--take", take, "--thin", "5ms"],
                                                       "sleep 2000 50", 2 * SECONDS)
    seen, sampled = h.total(stacks), stats["off_cpu"]["sampled_ms"] * 1000
    h.note("thin, %s: %d us seen, %d measured, %d us of it sampled" % (take, seen, off, sampled))
    errors = close_to("off the CPU", seen, off, 0.15, 3000 + stolen) + h.stats_errors(stats)
    return errors + ([] if sampled > 0.7 * seen else ["%d us were sampled" % sampled])


def check_thin(name):
    """Blocks that are sampled for the sake of cost: the sum holds on average, in both places where
    stacks are taken.
    """
    for take in ("back", "leave"):
        h.check("offcpu-thin-" + take, best(lambda take=take: thin_errors(take)))


def full_maps_errors(take):
    stacks, stats, off, _, switches, stolen = measured(
        ["--take", take, "--stacks", "1", "--state", "S,D,R"], "convoy 1000 8", 2 * SECONDS)
    errors = off_cpu_errors(h.total(stacks), off, switches, stolen, 0.02)
    errors += h.stats_errors(stats) + whole_errors(stacks, stats)
    sampled = stats["off_cpu"]["sampled_ms"]
    if sampled < 100:
        errors.append("%.1f ms were sampled" % sampled)
    if len(stacks) < 3:
        errors.append("%d stacks" % len(stacks))
    h.note("full maps, %s: %d us seen, %d measured; %d us of it sampled" %
           (take, h.total(stacks), off, sampled * 1000))
    return errors


def whole_errors(stacks, stats):
    """Samples stand for all of it, with their stacks."""
    bare = [
        s for s in stacks
        if s.frames and s.frames[0] in ("[incomplete:ring_full]", "[incomplete:asleep]")
    ]
    errors = []
    if h.total(bare) > 0.02 * h.total(stacks):
        errors.append("%d of %d us without a stack" % (h.total(bare), h.total(stacks)))
    if stats["off_cpu"]["lost_ms"] > 0.001 * h.total(stacks) / 1000:
        errors.append("%.1f ms lost" % stats["off_cpu"]["lost_ms"])
    return errors


def check_full_maps(name):
    """No room for stacks: samples in proportion to blocked time still add up."""
    for take in ("back", "leave"):
        h.check("offcpu-full-maps-" + take, best(lambda take=take: full_maps_errors(take)))
    for take in ("back", "leave"):
        h.check("offcpu-full-profile-" + take, best(lambda take=take: full_profile_errors(take)))


def full_profile_errors(take):
    """200 stacks, with room for 32 in the kernel and 128 in the report: totals hold, and so does
    the mean depth.
    """
    stacks, stats, off, _, switches, stolen = measured(
        ["--take", take, "--stacks", "32", "--state", "S,D,R"], "spread 500 4", 2 * SECONDS)
    errors = off_cpu_errors(h.total(stacks), off, switches, stolen,
                            0.02) + h.stats_errors(stats) + whole_errors(stacks, stats)
    depth = sum(s.frames.count("spread_down") * s.count for s in stacks) / max(1, h.total(stacks))
    if abs(depth - 100.5) > 8:
        errors.append("mean depth %.1f" % depth)
    if stats["off_cpu"]["sampled_ms"] < 100:
        errors.append("%.1f ms were sampled" % stats["off_cpu"]["sampled_ms"])
    h.note(
        "full profile, %s: %d us seen, %d measured, %d us of it sampled; mean depth %.1f of 100.5" %
        (take, h.total(stacks), off, stats["off_cpu"]["sampled_ms"] * 1000, depth))
    return errors


def check_wakers(name):
    """The other thread's chain after --; clocks are interrupts."""
    launch(BL + "futex", "futex 2000 2")
    launch(BL + "pipe", "pipe 2000 2")
    launch(BL + "sleep", "sleep 5000")
    time.sleep(0.5)
    for take in ("back", "leave"):
        stacks, _ = offcpu(["--wakers", "--take", take], SECONDS)
        errors = []
        for comm, waits, own, other in ((BL + "futex", "futex_wait_for", S + ";fa_run;",
                                         T + ";fb_run;futex_pass_to" + C + K),
                                        (BL + "futex", "futex_wait_for", T + ";fb_run;",
                                         S + ";fa_run;futex_pass_to" + C + K),
                                        (BL + "pipe", "pipe_wait", S + ";pa_run;",
                                         T + ";pb_run;pipe_pass" + C + K),
                                        (BL + "pipe", "pipe_wait", T + ";pb_run;",
                                         S + ";pa_run;pipe_pass" + C + K)):
            mine = [
                s for s in stacks if s.comm == comm and re.match(own + waits, ";".join(s.frames))
            ]
            good = [
                s for s in mine if re.fullmatch(own + waits + C + K + ";--;" + comm + ";" +
                                                other, ";".join(s.frames))
            ]
            if not mine or h.total(good) < 0.98 * h.total(mine):
                errors.append(
                    "%s: %d of %d us with the other's chain: %s" %
                    (comm, h.total(good), h.total(mine), h.worst([s
                                                                  for s in mine if s not in good])))
        sleeps = [s for s in stacks if s.comm == BL + "sleep"]
        timer = [
            s for s in sleeps
            if re.search(r";--;\[(hardirq|softirq)\](;[^;]+_\[k\])+$", ";".join(s.frames))
        ]
        if h.total(timer) < 0.98 * h.total(sleeps) or not sleeps:
            errors.append("sleep: %d of %d us ended by an interrupt: %s" %
                          (h.total(timer), h.total(sleeps), h.worst(sleeps)))
        h.check("offcpu-wakers-" + take, errors)


def check_hidden_addresses(name):
    """Where kernel.kptr_restrict hides addresses, an interrupt is still told from the task that it
    interrupted.
    """
    path = "/proc/sys/kernel/kptr_restrict"
    with open(path) as f:
        before = f.read()
    p = launch(BL + "sleep", "sleep 5000")
    try:
        with open(path, "w") as f:
            f.write("2")
        stacks, _ = offcpu(["--wakers", "-p", str(p.pid)], SECONDS)
    finally:
        with open(path, "w") as f:
            f.write(before)
        h.stop(p)
    interrupt = re.compile(r";--;\[(hardirq|softirq)\](;[^;]+_\[k\])+$")
    timer = [s for s in stacks if interrupt.search(";".join(s.frames))]
    errors = [] if stacks and h.total(timer) >= 0.98 * h.total(stacks) else [
        "%d of %d us ended by an interrupt: %s" % (h.total(timer), h.total(stacks), h.worst(stacks))
    ]
    h.check(name, errors)


def check_interrupted(name):
    """Without the kernel's frames, an interrupt is still told from the task that it interrupted."""
    busy = launch(BL + "busy", "busy 0 4")
    p = launch(BL + "sleep", "sleep 5000")
    try:
        stacks, _ = offcpu(["--wakers", "-U", "-p", str(p.pid)], SECONDS)
    finally:
        h.stop(p)
        h.stop(busy)
    own = [s for s in stacks if BL + "busy" in s.frames]
    interrupt = [s for s in stacks if re.search(r";--;\[(hardirq|softirq)\]$", ";".join(s.frames))]
    errors = [] if h.total(interrupt) > 0.9 * h.total(stacks) > 0 == h.total(own) else [
        "%d of %d us ended by an interrupt, %d by the interrupted program: %s" %
        (h.total(interrupt), h.total(stacks), h.total(own), h.worst(stacks))
    ]
    h.check("offcpu-" + name, errors)


def check_chains_of_wakers(name):
    """--chains: who woke the waker, three deep; the clock that began it all is an interrupt. With
    -p, too, and in JSON.
    """
    p = launch(BL + "relay", "relay 5000 4")
    time.sleep(0.5)
    own = T + r";%s;relay_wait" + C + K
    by = r";--;" + BL + "relay;" + T + r";%s;relay_pass" + C + K
    first = r";--;" + BL + "relay;" + S + r";relay_first;relay_pass" + C + K
    clock = r";--;\[(hardirq|softirq)\](;[^;]+_\[k\])+"
    want = [("relay_second", own % "relay_second" + first + clock),
            ("relay_third", own % "relay_third" + by % "relay_second" + first + clock),
            ("relay_fourth",
             own % "relay_fourth" + by % "relay_third" + by % "relay_second" + first)]
    for take in ("back", "leave"):
        stacks, _ = offcpu(["--chains", "--take", take, "-p", str(p.pid)], SECONDS)
        errors = []
        for function, chain in want:
            mine = [s for s in stacks if re.match(own % function, ";".join(s.frames))]
            good = [s for s in mine if re.fullmatch(chain, ";".join(s.frames))]
            if not mine or h.total(good) < 0.97 * h.total(mine):
                errors.append("%s: %d of %d us: %s" %
                              (function, h.total(good), h.total(mine),
                               h.worst([s for s in mine if s not in good], width=1000)))
        h.check("offcpu-chains-of-wakers-" + take, errors)
    path = h.tmpfile("relay.json")
    h.finish(h.start([h.SFBPF, "offcpu", "--chains", "-p", str(p.pid), "-o", path, "1"]), 60)
    with open(path) as f:
        depths = {depth_of(s["waker"]) for s in json.load(f)["stacks"]}
    h.check("offcpu-chains-of-wakers-json",
            [] if {2, 3} <= depths <= {0, 1, 2, 3} else ["depths %s" % depths])


def depth_of(waker):
    return 1 + depth_of(waker["waker"]) if waker else 0


def generations_errors(take, extra):
    stacks, stats, off, _, switches, stolen = measured(["--take", take, "--stacks", "1024"] + extra,
                                                       "wait 300", 2 * SECONDS)
    parent = [
        s for s in stacks if "wait_run" in s.frames and
        "--" not in s.frames[:s.frames.index("wait_run")] and not {"sleep_wait", "usleep"}
        & set(s.frames[:s.frames.index("--")] if "--" in s.frames else s.frames)
    ]
    errors = off_cpu_errors(h.total(parent), off, switches, stolen, 0.05) + h.stats_errors(stats)
    account = stats["off_cpu"]
    if account["generations"] < 2:
        errors.append("%d generations" % account["generations"])
    if account["lost_ms"] or any(s.frames and s.frames[0] == "[incomplete:ring_full]"
                                 for s in stacks):
        errors.append("%.1f ms are lost, or frames" % account["lost_ms"])
    h.note("generations, %s %s: %d us seen, %d measured; %d times emptied; %.1f ms sampled" % (
        take, " ".join(extra), h.total(parent), off, account["generations"], account["sampled_ms"]))
    return errors


def check_generations(name):
    """Ever new processes have more stacks than the kernel's maps hold: they are emptied, and
    nothing is lost or counted twice.
    """
    for take in ("back", "leave"):
        for extra in ([], ["--wakers"]):
            h.check("offcpu-generations-%s%s" % (take, "-wakers" if extra else ""),
                    best(lambda take=take, extra=extra: generations_errors(take, extra)))


def limits_errors():
    errors = []
    for options, want in ((["-m", "50ms"], {BL + "sleep100"}),
                          (["-M", "50000"], {BL + "sleep10",
                                             BL + "vfork"}), (["--state", "D", "-m",
                                                               "5ms"], {BL + "vfork"})):
        stacks, _ = offcpu(options, 2)
        seen = {
            s.comm
            for s in stacks
            if s.comm in (BL + "sleep10", BL + "sleep100", BL + "vfork") and s.count > 250000
        }
        if seen != want:
            errors.append("%s shows %s" % (" ".join(options), " ".join(sorted(seen))))
    return errors


def check_limits(name):
    """-m, -M and --state decide on whole blocks, or on what the run's edges leave of them."""
    launch(BL + "sleep10", "sleep 10000")
    launch(BL + "sleep100", "sleep 100000")
    launch(BL + "vfork", "vfork 10000")
    time.sleep(0.5)
    h.check("offcpu-limits", best(limits_errors))


def check_filters(name):
    wanted = launch(BL + "in", "sleep 5000 3")
    launch(BL + "out", "sleep 5000 3")
    time.sleep(0.5)
    errors = []
    tid = sorted(int(t) for t in os.listdir("/proc/%d/task" % wanted.pid))[-1]
    for options, threads in ((["-p", str(wanted.pid)], 3), (["-t",
                                                             str(tid)], 1), (["--comm",
                                                                              BL + "i*"], 3)):
        stacks, stats = offcpu(options, 2)
        if {s.comm for s in stacks} != {BL + "in"}:
            errors.append("%s shows %s" % (options[0], {s.comm for s in stacks}))
        if abs(h.total(stacks) - threads * stats["duration_s"] * 1e6) > 0.05 * h.total(stacks):
            errors.append("%s: %d us of %d threads" % (options[0], h.total(stacks), threads))
    stacks, _ = offcpu(["--kernel-threads-only", "--state", "S,D,I"], 1)
    if not stacks or any(not f.endswith("_[k]") for s in stacks for f in s.frames):
        errors.append("--kernel-threads-only: user frames or nothing")
    h.check("offcpu-filters", errors)


def check_tables(name):
    """--hist and --threads."""
    p = launch(BL + "table", "sleep 10000 3")
    time.sleep(0.5)
    r = subprocess.run([
        h.SFBPF, "offcpu", "-p",
        str(p.pid), "--hist", "--threads", "--wakers", "--format", "text", "2"
    ], capture_output=True, text=True, timeout=60)
    errors = []
    if r.returncode:
        errors.append("exit code %d: %s" % (r.returncode, r.stderr[-200:]))
    rows = [line.split() for line in r.stdout.splitlines() if line.endswith("  " + BL + "table")]
    threads = [row for row in rows if row[0] == str(p.pid) and len(row) == 9]
    if len(threads) != 3 or any(abs(int(row[2]) - 2e6) > 2e5 for row in threads):
        errors.append("threads: %s" % threads)
    late = subprocess.run([
        h.SFBPF, "offcpu", "--threads", "--format", "text", "--",
        h.link_program("block", BL + "late"), "1", "sleep", "10000"
    ], capture_output=True, text=True, timeout=60)
    if not re.search("^ +([0-9]+) +\\1 .*  " + BL + "late$", late.stdout, re.M):
        errors.append("a command's first thread is not there under its name: %s" %
                      late.stdout[-300:])
    slots = re.findall(r"^ +(\d+) us \.\. +\d+ us +(\d+) \|", r.stdout, re.M)
    if sum(int(n) for us, n in slots if int(us) in (8192, 16384)) < 300:
        errors.append("histogram: %s" % slots)
    # The timer interrupt ended the sleeps.
    if not re.search(
            r"^[0-9.]+ %%  %s \(%d\): .* blocks.*, state S\n(    .*\n)+  woken by .*\n    " %
        (BL + "table", p.pid), r.stdout, re.M):
        errors.append("no stack with its waker: %s" % r.stdout[-600:])
    listed = re.findall(r"^[0-9.]+ %  (.*): .*, state (\w)\n((?:    .*\n)+)", r.stdout, re.M)
    if len(set(listed)) != len(listed):
        errors.append("a stack is listed twice: %s" % listed)
    if any(frames.split("\n")[0].endswith("_[k]") for _, _, frames in listed):
        errors.append("a stack begins in the kernel: %s" % listed)
    if r.stdout.splitlines()[1].endswith("_[k]"):
        errors.append("functions of the kernel first: %s" % r.stdout[:300])
    h.check("offcpu-tables", errors)


def check_idle_text(name):
    """The text leaves out threads that wait for work, such as most of the kernel's."""
    r = subprocess.run([h.SFBPF, "offcpu", "--kernel-threads-only", "--format", "text", "1"],
                       capture_output=True, text=True, timeout=60)
    idle = re.search(r"without ([0-9.]+) s of idle threads", r.stdout)
    left_out = idle and float(idle[1]) > 1 and "kthreadd_[k]" not in r.stdout
    h.check("offcpu-idle-text", [] if left_out else [r.stdout[-600:]])


ALIKE = [("alike_first", "nanosleep"), ("alike_second", "nanosleep"), ("alike_first", "poll"),
         ("alike_second", "poll")]


def alike_errors():
    """Blocks at one place whose stacks differ in one return address, or in the kernel part alone:
    each one's share of the time.
    """
    stacks, stats, _, _, _, _ = measured([], "alike 2000", SECONDS)
    mine = [s for s in stacks if "alike_run" in s.frames]
    good = [[
        s for s in mine if re.fullmatch(S + ";alike_run;" + caller + ";alike_block;syscall" +
                                        K, ";".join(s.frames)) and call in ";".join(s.frames)
    ] for caller, call in ALIKE]
    errors = h.stats_errors(stats)
    if sum(h.total(g) for g in good) < 0.99 * h.total(mine):
        errors.append("other chains: %s" %
                      h.worst([s for s in mine if not any(s in g for g in good)]))
    shares = [h.total(g) / max(1, h.total(mine)) for g in good]
    # Timers are late by some time that is the same for all, so the shares move towards each other:
    # never by as much as one step.
    if any(b - a < 0.03 for a, b in zip(shares, shares[1:])):
        errors.append("shares %s" % " ".join("%.3f" % s for s in shares))
    h.note("alike: shares %s" % " ".join("%.3f" % s for s in shares))
    return errors


def check_alike(name):
    """The kernel remembers a thread's last stacks: one that looks like them is still told apart."""
    h.check("offcpu-alike", best(alike_errors))


# block's HOW of tests/programs/again.c: the chain, and what tells the stack of the long blocks from
# that of the short ones; then the least and the greatest share of the time that these may have.
# They take a third of it, and more by what timers are late. With `ended` both take the same on an
# idle machine; on a busy one a join also lasts while the thread that it waits for waits for a CPU.
AGAIN = {
    "loaded": (S0 + ";loaded_run;loaded_turn;ag_enter;ag[ab]_block;syscall" + K, ";aga_block;",
               ";agb_block;", (0.31, 0.38)),
    "outermost": (S0 + ";outermost_run;outermost_[ab](;inner_down){20};inner_block;syscall" + K,
                  ";outermost_a;", ";outermost_b;", (0.31, 0.38)),
    "exchanged": (S0 + ";exchanged_run;exchanged_block;syscall" + K, "pipe_read_[k]",
                  ";unix_stream_", (0.31, 0.38)),
    "named": (S0 + ";named_run;named_block;syscall" + K, "again-a;", "again-b;", (0.31, 0.38)),
    "ended": ("(" + S0 + ";ended_run;join_block" + C +
              "|((__GI_)?(__)?clone3?|" + L + ");(start_thread|" +
              L + ");ended_thread;ended_block;syscall)" + K, ";ended_block;", ";join_block;",
              (0.40, 0.55))
}


def text(s):
    return ";".join((s.comm,) + s.frames)


def again_errors(how):
    """Stacks that look like the thread's last one in all but one thing: each has its own share of
    the time.
    """
    chain, short, long, (least, greatest) = AGAIN[how]
    stacks, stats = offcpu([], command=[h.program("again"), str(SECONDS), how, "2000"])
    mine = [s for s in stacks if any(f.endswith("_block") for f in s.frames)]
    bad = [
        s for s in mine
        if not re.fullmatch(chain, ";".join(s.frames)) or (short in text(s)) == (long in text(s))
    ]
    errors = h.stats_errors(stats)
    if h.total(bad) > 0.02 * h.total(mine) or h.total(mine) < 0.8e6 * SECONDS:
        errors.append("%d us, other chains %d us: %s" % (h.total(mine), h.total(bad), h.worst(bad)))
    share = h.total(s for s in mine if short in text(s)) / max(1, h.total(mine))
    h.note("again, %s: share of the short blocks %.3f" % (how, share))
    return errors + ([] if least < share < greatest else
                     ["share of the short blocks %.3f" % share])


def check_again(name):
    """Code that is unloaded and other loaded in its place, another outermost function, another file
    under the descriptor, another name; threads that end.
    """
    for how in AGAIN:
        h.check("offcpu-again-" + how, best(lambda how=how: again_errors(how)))


def check_usage(name):
    errors = []
    for args in (["-m", "12abc"], ["-m", ""], ["-M", "-1"], ["--state", "Q"], ["--state", ""],
                 ["--state", "S,"], ["-F", "99"], ["-m", "2ms", "-M", "1ms"], ["--stacks", "0"],
                 ["--take", "x"], ["--hist", "--format",
                                   "folded"], ["--kernel-threads-only",
                                               "-U"], ["-k"], ["-f"], ["--state", "2"]):
        p = subprocess.run([h.SFBPF, "offcpu"] + args + ["1"], capture_output=True, text=True,
                           timeout=60)
        if p.returncode != 2 or not p.stderr:
            errors.append("%s: exit code %d" % (" ".join(args), p.returncode))
    if subprocess.run([h.SFBPF, "offcpu", "-C", "8000", "1"], capture_output=True,
                      timeout=60).returncode != 1:
        errors.append("-C 8000: not refused")
    text = subprocess.run([h.SFBPF, "offcpu", "--help"], capture_output=True, text=True,
                          timeout=60).stdout
    if re.search("^  -[Fce],", text, re.M) or not re.search("^  -C,", text, re.M):
        errors.append("--help shows options that are refused, or not those of record")
    h.check("offcpu-usage", errors)


if __name__ == "__main__":
    h.run_checks([
        check_chains_back, check_chains_leave, check_totals, check_delay, check_first_block,
        check_pingpong, check_thin, check_full_maps, check_generations, check_wakers,
        check_hidden_addresses, check_interrupted, check_chains_of_wakers, check_limits,
        check_filters, check_tables, check_idle_text, check_alike, check_again, check_usage
    ])
