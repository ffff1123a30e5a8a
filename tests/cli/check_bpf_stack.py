#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The stack of BPF programs: before Linux 6.13 all functions in a chain of calls have 512 bytes
together, each rounded up to 32, and a chain has at most 8 functions. The kernel that runs the tests
may allow more, so the chains are computed from the object files."""

import glob
import os
import re
import shutil
import subprocess

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OUTPUT = os.path.join(TOP, os.environ.get("OUTPUT", "build"))
STACK, DEPTH = 512, 8
LOADED = {"remote": ["off_last"]}   # by object, where not all programs are
NEWER = {"off_back"}    # of kernels with sched_exit_tp, which is newer than the limit


class Object:
    def __init__(self, path, tool):
        text = subprocess.run([tool, "-d", "-r", path], check=True, capture_output=True,
                              text=True).stdout
        self.own, self.calls, self.roots = {}, {}, []
        self.read(text.splitlines())

    def read(self, lines):
        at, section, here, copied = {}, "", None, {}
        for i, line in enumerate(lines):
            if m := re.match(r"Disassembly of section (\S+):", line):
                section = m[1]
            elif m := re.match(r"([0-9a-f]+) <(\w+)>:", line):
                if m[2].startswith("LBB"):
                    continue
                here = m[2]
                self.own[here], self.calls[here] = 0, set()
                if section == ".text":
                    at[int(m[1], 16)] = here
                else:
                    self.roots.append(here)
            if not here:
                continue
            for m in re.finditer(r"\(r10 - (\w+)\)", line):
                self.own[here] = max(self.own[here], int(m[1], 0))
            if m := re.search(r"(r\d) = r10$", line):
                copied[m[1]] = i
            if (m := re.search(r"(r\d) \+= -(\w+)$", line)) and i - copied.get(m[1], -9) <= 2:
                self.own[here] = max(self.own[here], int(m[2], 0))
            if m := re.search(r"R_BPF_64_32\s+(\S+)", line):
                target = m[1]
                if target == ".text":
                    target = (int(re.search(r"call (-?\w+)", lines[i - 1])[1], 0) + 1) * 8
                self.calls[here].add(target)
            # Of a function in the same section, the compiler knows the distance.
            if (m := re.match(r"\s+(\d+):\s+85 10 00 00 .*call (-?\w+)", line)) and not re.search(
                    "R_BPF", (lines + [""])[i + 1]):
                self.calls[here].add((int(m[1]) + 1 + int(m[2], 0)) * 8)
            if re.search(r"R_BPF_64_64\s+\.text", line):  # a callback of bpf_loop
                self.calls[here].add(int(re.search(r"= (\w+) ll", lines[i - 1])[1], 0))
        self.calls = {f: {at.get(c, c) for c in calls} for f, calls in self.calls.items()}

    def deepest(self, function):
        """The chain of calls from here that needs most: (bytes, functions)."""
        below = max((self.deepest(c) for c in self.calls.get(function, ()) if c in self.own),
                    default=(0, []))
        own = max(32, (self.own[function] + 31) // 32 * 32)
        return own + below[0], ["%s (%d)" % (function, self.own[function])] + below[1]


    def longest(self, function):
        """The chain of most calls from here."""
        below = [self.longest(c) for c in self.calls.get(function, ()) if c in self.own]
        return [function] + max(below, key=len, default=[])


def main():
    tool = shutil.which("llvm-objdump") or shutil.which("llvm-objdump-14")
    paths = [p for p in sorted(glob.glob(OUTPUT + "/*.bpf.o")) if ".tmp." not in p]
    if not tool or not paths:
        print("SKIP bpf-stack: %s" % ("no llvm-objdump" if not tool else "no BPF objects"))
        return
    for path in paths:
        kind = os.path.basename(path)[:-len(".bpf.o")]
        name = "bpf-stack-" + kind
        obj = Object(path, tool)
        roots = LOADED.get(kind, obj.roots)
        used, chain = max(obj.deepest(r) for r in roots if r not in NEWER)
        calls = max((obj.longest(r) for r in roots), key=len)
        print("# %s: at most %d bytes" % (name, used))
        if used > STACK:
            print("FAIL %s: %d bytes: %s" % (name, used, " -> ".join(chain)))
        elif len(calls) > DEPTH:
            print("FAIL %s: %d frames: %s" % (name, len(calls), " -> ".join(calls)))
        else:
            print("ok " + name)


main()
