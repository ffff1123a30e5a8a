# SPDX-License-Identifier: BSD-2-Clause
"""Section 4: from unwind tables in files to tables that BPF searches."""

import glob
import json
import os
import re
import signal
import subprocess
import time

import harness as h
from rig import CPU, median, pinned, run_json, table, tool, urgent
from unwinding import clang_job

FUNCTIONS = 30000
READY_HZ = 997

# The shapes that compilers write most: with pushes, with a frame pointer, with a frame only; bytes
# of code between.
SHAPES = (
    (("push %rbp", 16, "%rbp"), ("push %rbx", 24, "%rbx"), ("sub $40, %rsp", 64, None)),
    (("push %r12", 16, "%r12"), ("push %rbp", 24, "%rbp"), ("push %rbx", 32, "%rbx"),
     ("sub $16, %rsp", 48, None)),
    (("sub $24, %rsp", 32, None), ),
    (("push %rbp", 16, "%rbp"), ("frame", 0, None)),
)


def function_text(i):
    """Assembly of one function: prologue step by step, a body, the way back."""
    shape = SHAPES[i % len(SHAPES)]
    out = ["f%d:\n\t.cfi_startproc" % i]
    for insn, cfa, reg in shape:
        if insn == "frame":
            out.append("\tmov %rsp, %rbp\n\t.cfi_def_cfa_register %rbp")
            continue
        out.append("\t%s\n\t.cfi_def_cfa_offset %d" % (insn, cfa))
        if reg:
            out.append("\t.cfi_offset %s, -%d" % (reg, cfa))
    out.append("\t.skip %d, 0x90\n\t.cfi_remember_state" % (20 + i * 37 % 150))
    out.append("\t.cfi_def_cfa %rsp, 8\n\tret\n\t.cfi_restore_state")
    out.append("\t.skip %d, 0x90\n\tret\n\t.cfi_endproc" % (8 + i * 11 % 60))
    return "\n".join(out)


def generated():
    """A library with the same functions in .eh_frame and (if the assembler can) .sframe, and copies
    with one of them.
    """
    base = h.tmpfile("generated")
    with open(base + ".s", "w") as f:
        f.write("\t.text\n" + "\n".join(function_text(i) for i in range(FUNCTIONS)) + "\n")
    # A name of its own: without one it might be musl, and its code would be searched for what has
    # no tables.
    link = ["gcc", "-shared", "-nostdlib", "-Wl,-soname,libgenerated.so", base + ".s", "-o"]
    # Not objcopy: it takes the section away but not what PT_GNU_SFRAME points to.
    if subprocess.run(link + [base + "-eh.so"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise h.Skip("the assembler refuses the generated library")
    flags = subprocess.run(link + [base + ".so", "-Wa,--gsframe"], stderr=subprocess.DEVNULL,
                           check=False).returncode == 0
    found = {"eh_frame": base + "-eh.so"}
    if flags:
        subprocess.run([
            "objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", base + ".so", base + "-sframe.so"
        ], check=True)
        found["sframe"] = base + "-sframe.so"
        found["both"] = base + ".so"
    return found


def real_files(quick):
    """Large files that the machine happens to have."""
    patterns = [
        "/usr/lib/x86_64-linux-gnu/libLLVM*.so*", "/usr/lib/*/libclang-cpp.so.*",
        "/usr/lib/gcc/*/*/cc1plus", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/*/libcrypto.so.3"
    ]
    found = []
    for p in patterns[:1] + patterns[3:4] if quick else patterns:
        paths = [x for x in sorted(glob.glob(p)) if os.path.isfile(x) and not os.path.islink(x)]
        paths = paths or [os.path.realpath(x) for x in glob.glob(p)[:1]]
        found += paths[:1]
    return found


def convert(rounds, paths):
    return run_json([tool("convert"), rounds] + paths)


def describe(name, r):
    return [
        name,
        "%.1f" % (r["text"] / 1e6), r["functions"], r["rows"],
        "%.1f" % r["ms"],
        "%.1f" % (r["rows"] / r["ms"] / 1000),
        "%.1f" % (r["libdw_rows"] / r["libdw_ms"] / 1000) if r["libdw_rows"] else "-",
        "%.2f" % (r["bytes"] / r["rows"]),
        "%.0f" % (r["bytes"] / 1024 / (r["text"] / 1e6))
    ]


def usable():
    """ms from a process's first sample in files without tables until none shows any more: clang
    with libLLVM and libclang.
    """
    with open(clang_job()) as f:
        first = f.readline().split()
    lost, build = [], []
    for _ in range(3):
        stats = run_json([
            h.SFBPF, "record", "-C", CPU, "-F", READY_HZ, "-U", "-o", "/dev/null", "--stats", "-",
            "--", "chrt", "-f", "1", "taskset", "-c", CPU
        ] + first)[-1]
        lost.append(stats["user_stacks"]["incomplete"]["not_loaded"] / READY_HZ * 1000)
        build.append(stats["tables"]["build_ms"])
    return median(lost), median(build)


def late_once(argv):
    """ms from a program's first sample in libLLVM to its first complete stack. 0: the library came
    before record was ready.
    """
    p = pinned([tool("late")] + argv)
    if not h.wait_busy(p):
        raise h.Skip("late does not run")
    record = subprocess.Popen(
        urgent([
            h.SFBPF, "record", "-C", CPU, "-p", p.pid, "-F", READY_HZ, "-o", "/dev/null", "--stats",
            "-", "1.5"
        ]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    p.send_signal(signal.SIGUSR1)
    text = record.communicate()[0].decode()
    h.stop(p)
    stats = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return stats[-1]["user_stacks"]["incomplete"]["not_loaded"] / READY_HZ * 1000 if stats else 0


def late(library, rounds):
    """The median; None if it could not be had."""
    dynamic = subprocess.run(["readelf", "-d", library], stdout=subprocess.PIPE,
                             check=False).stdout.decode()
    argv = [library] + re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    found = []
    for _ in range(2 * rounds):
        ms = late_once(argv)
        if ms:
            found.append(ms)
        if len(found) == rounds:
            break
    return median(found) if found else None


def show_late(settings, out, library):
    ms = late(library, 3 if settings.quick else 7)
    if not ms:
        return
    out["tables"]["late_ms"] = round(ms, 1)
    print(
        "\nA program that begins to use %s: %.1f ms from its first sample there to its first "
        "complete stack."
        % (os.path.basename(library), ms))


def tables(settings, out, ratios):
    rounds = 3 if settings.quick else 7
    made = generated()
    results = dict(zip(made, convert(rounds, list(made.values()))))
    for path, r in zip(real_files(settings.quick), convert(rounds, real_files(settings.quick))):
        results[os.path.basename(path)] = r
    eh = results["eh_frame"]
    if eh["libdw_rows"]:
        ratios["tables.eh_frame_to_libdw"] = round(
            (eh["ms"] / eh["rows"]) / (eh["libdw_ms"] / eh["libdw_rows"]), 3)
    if "sframe" in results:
        ratios["tables.sframe_to_eh_frame"] = round(results["sframe"]["ms"] / eh["ms"], 3)
    ratios["tables.bytes_per_row"] = round(eh["bytes"] / eh["rows"], 3)
    out["tables"] = {"files": results}
    table("Tables", [
        "", "code MB", "functions", "rows", "ms", "M rows/s", "libdw M rows/s", "bytes a row",
        "kB a MB of code"
    ], [describe("generated, " + k if k in made else k, r) for k, r in results.items()])
    library = next((p for p in real_files(settings.quick) if "libLLVM" in p), None)
    if library:
        show_late(settings, out, library)
    lost, build = usable()
    out["tables"].update({"usable_ms": round(lost, 1), "usable_build_ms": round(build, 1)})
    print(
        "\nA new clang's stacks: %.1f ms of samples without tables until libLLVM, libclang-cpp "
        "and all others are there "
        "(%.1f ms of CPU time for them)." % (lost, build))
