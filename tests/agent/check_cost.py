#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the agent costs on a busy machine with 200 files on its stacks, and when a thousand
processes a minute come and go. Runs by itself.
"""

import contextlib
import glob
import resource
import subprocess
import time

from receivers import harness
import agents

HZ, FILES = 19, 200
SLICE_S, SLICES = 5, 3  # a slice has one interval of the agent's
A_MINUTE = 1000
PERCENT, MB = 0.3, 40   # of one CPU; resident, tables are in the kernel
GROWN = 4 / 3
SHARE = 0.4             # of the CPU time of the processes that start
ALONE = 0.35            # the same, without them
COMMANDS = (["/bin/true"], ["/bin/ls",
                            "/"], ["/bin/sh", "-c",
                                   ":"], ["/usr/bin/id"], ["/usr/bin/expr", "1", "+", "1"])


def family(pid):
    """The agent and the processes that read files for it."""
    found = [pid]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path) as f:
            found += [p for child in f.read().split() for p in family(int(child))]
    return found


def cpu_s(pid, seen):
    """Of all threads that were seen: those that have ended count with the last value."""
    for path in (p for one in family(pid) for p in glob.glob("/proc/%d/task/*/schedstat" % one)):
        with contextlib.suppress(OSError), open(path) as f:
            seen[path] = int(f.read().split()[0])
    return sum(seen.values()) / 1e9


def memory_mb(pid):
    """Proportional shares: the agent and its children have most pages in common. A child may end
    meanwhile.
    """
    kb = 0
    for one in family(pid):
        with contextlib.suppress(OSError), open("/proc/%d/smaps_rollup" % one) as f:
            kb += next((int(line.split()[1]) for line in f if line.startswith("Pss:")), 0)
    return kb / 1024


def commands_cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(pid, arrivals):
    """The slice in which the agent took least, as other load only makes it dearer: CPU in percent
    of one, MB of memory, processes a minute that were started, their own CPU in percent of one.
    """
    return min(measure_slice(pid, arrivals) for _ in range(SLICES))


def measure_slice(pid, arrivals):
    seen = {}
    first, began, n = cpu_s(pid, seen), time.monotonic(), 0
    commands_first = commands_cpu_s()
    while time.monotonic() < began + SLICE_S:
        if arrivals:
            subprocess.run(COMMANDS[n % len(COMMANDS)], stdout=subprocess.DEVNULL, check=False)
            n += 1
        time.sleep(max(0, began + n * 60 / A_MINUTE - time.monotonic()) if arrivals else 0.5)
        if not arrivals or n % 10 == 0:
            cpu_s(pid, seen)
    passed = time.monotonic() - began
    own = 100 * (commands_cpu_s() - commands_first) / passed
    return 100 * (cpu_s(pid, seen) - first) / passed, memory_mb(pid), 60 * n / passed, own


def check_arrivals(name):
    busy = agents.load()
    many = harness.start(
        [harness.program("manyfiles"), "600",
         harness.program("stub.so"),
         str(FILES), "100", "0"], stdout=subprocess.PIPE)
    many.stdout.readline()
    a = agents.Agent("--protocol", "file", "--endpoint", harness.tmpfile("profiles"), "-F", str(HZ),
                     "--interval", "5s", copy=False, metrics=False)
    a.start().wait_started()
    for command in COMMANDS:        # their files are known then
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    time.sleep(12)
    alone, amid = measure(a.p.pid, False), measure(a.p.pid, True)
    errors = []
    harness.note(
        "cost at %d Hz, %d files: %.3f %% of a CPU, %.1f MB; with %.0f processes a minute %.3f "
        "%%, %.1f MB; they take %.3f %%"
        % (HZ, FILES, alone[0], alone[1], amid[2], amid[0], amid[1], amid[3]))
    # A slow machine takes longer for all: the agent's share is compared with what the processes
    # take themselves.
    if alone[0] > max(PERCENT, amid[3] * ALONE) or alone[1] > MB:
        errors.append("%.3f %% of a CPU, %.1f MB" % alone[:2])
    if amid[0] > max(PERCENT * GROWN, amid[3] * SHARE) or amid[1] > alone[1] * GROWN:
        errors.append("%.3f %% of a CPU, %.1f MB with %.0f processes a minute, %.1f MB before" %
                      (amid[:3] + alone[1:2]))
    if a.stop():
        errors.append("exit status %d" % a.p.returncode)
    for p in busy + [many]:
        harness.stop(p)
    harness.check(name, errors)


if __name__ == "__main__":
    harness.run_checks([check_arrivals])
