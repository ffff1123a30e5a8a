#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stands in for sfbpf (SFBPF=tests/live/gdb_record.py): `record` with stacks that gdb took of the
programs of tests/programs.

Checks chains.txt itself against an unwinder that is not ours:
    make programs; SFBPF=tests/live/gdb_record.py MIN_SAMPLES=3 tests/live/check_chains.py
A few samples for each process only, user part only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROUNDS = int(os.environ.get("ROUNDS", "4"))
PROGRAMS = os.path.realpath(
    os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                 os.environ.get("OUTPUT", "build"), "programs"))


def option(argv, name):
    return argv[argv.index(name) + 1]


def targets():
    """Processes made of our files, as (pid, name)."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink("/proc/%s/exe" % pid)
            with open("/proc/%s/comm" % pid) as f:
                comm = f.read().strip()
            with open("/proc/%s/task/%s/children" % (pid, pid)) as f:
                parent = bool(f.read())
        except OSError:
            continue
        ours = exe.startswith(PROGRAMS) or "sfbpf-live-" in exe or exe.startswith(
            "/memfd:") or exe == "/prog"
        if ours and not parent:
            yield pid, comm


def mappings(pid):
    """(start, end, file offset, file name) of what is mapped executable."""
    found = []
    with open("/proc/%s/maps" % pid) as f:
        for line in f:
            fields = line.split(None, 5)
            if "x" in fields[1] and len(fields) == 6:
                start, end = (int(x, 16) for x in fields[0].split("-"))
                name = os.path.basename(fields[5].strip().replace(" (deleted)", ""))
                found.append((start, end, int(fields[2], 16), name))
    return found


def place(pc, maps):
    for start, end, offset, name in maps:
        if start <= pc < end:
            return "[%s+%#x]" % (name, pc - start + offset)
    return "[unknown]"


def frame_name(line, maps):
    line = re.sub(r"^#\d+\s+", "", line)
    pc = re.match(r"0x[0-9a-f]+", line)
    line = re.sub(r"^0x[0-9a-f]+ in ", "", line)
    line = re.sub(r" (from|at) \S+$", "", line)
    if line.startswith("<signal handler called>"):
        return "__restore_rt"
    if line.endswith(" ()"):
        line = line[:-3]
    else:
        line = line.split(" (")[0]
    return place(int(pc.group(0), 16), maps) if line == "??" and pc else line


def backtraces(pid):
    maps = mappings(pid)
    # A copy: the path may lead to another file outside the process's mount namespace.
    exe = shutil.copy("/proc/%s/exe" % pid, tempfile.gettempdir() + "/gdb-record-exe")
    out = subprocess.run([
        "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set width 0", "-ex",
        "set backtrace past-main on", "-ex", "set backtrace past-entry on", "-ex",
        "set print frame-arguments none", "-ex", "file " + exe, "-ex", "attach " + pid, "-ex",
        "thread apply all bt"
    ], capture_output=True, text=True).stdout
    for thread in re.split(r"^Thread ", out, flags=re.M)[1:]:
        frames = [frame_name(l, maps) for l in thread.splitlines() if l.startswith("#")]
        if frames:
            yield frames[::-1]


def main():
    argv = sys.argv[1:]
    n = 0
    with open(option(argv, "-o"), "w") as out:
        for _ in range(ROUNDS):
            for pid, comm in targets():
                for frames in backtraces(pid):
                    # A thread that waits is no sample of an on-CPU profile.
                    if not any(f in ("pause", "__GI___libc_pause", "__futex_abstimed_wait_common64",
                                     "__futex_abstimed_wait_common",
                                     "clock_nanosleep") or "nanosleep" in f for f in frames):
                        out.write("%s;%s 1\n" %
                                  (comm, ";".join(f.replace(";", ":") for f in frames)))
                        n += 1
    with open(option(argv, "--stats"), "w") as out:
        json.dump({"schema": 1, "samples": n, "samples_without_user": 0, "lost": {},
                   "user_stacks": {"total": n, "complete": n, "bridged": 0, "incomplete": {}},
                   "frames": {"total": 0, "sframe": 0, "eh_frame": 0, "fp": 0, "jit": 0}}, out)


main()
