#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Go programs that know their chain: do their stacks end in a true root, and are they what they
must be?

GO names another go than the one in PATH. Each shape is built plain; `rec`, `channels` and `clocks`
also stripped and as PIE. `pgo` gives pprof files to Go's compiler.
"""

import os
import re
import shutil
import subprocess
import sys

import harness as h

SECONDS = int(os.environ.get("SECONDS", "3"))
# Where a goroutine and a thread begin. On a thread that Go did not make, C's own.
ROOTS = {
    "runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_start", "clone3", "__clone3", "clone",
    "__GI___clone3"
}
MAIN = "runtime.goexit;runtime.main;main.main;"

# Shape, and what all stacks that contain the last function of the chain must be
REC = MAIN + r"main\.main\.func\d+;(main\.rec;){61}main\.leaf"
SHAPES = {
    "rec": ("main.leaf", REC),
    "goroutine": (
        "main.leaf",
        r"runtime\.goexit;main\.main\.func\d+(\.\d+|\.func\d+|\.gowrap\d+)*;"
        r"(main\.rec;){301}main\.leaf"
    ),
    "channels": (
        "runtime.chansend1",
        r"runtime\.goexit;(runtime\.main;main\.main;main\.channels|"
        r"main\.channels\.(func|gowrap)\d+);runtime\.chansend1(;.*)?"
    ),
    "grow": (
        "main.deep",
        r"runtime\.goexit;main\.grow\.(func|gowrap)\d+(\.\d+)?;"
        r"main\.deep(;main\.deep){0,200}(;(?!main).*)?"
    ),
    "collect": ("main.collect", MAIN + r"main\.collect(;main\.tree){1,17}(;(?!main\.).*)?"),
    "maps": ("main.maps", MAIN + r"main\.maps(;(?!main\.).*)?"),
    "syscalls": ("main.syscalls", MAIN + r"main\.syscalls(;(?!main\.).*)?"),
    "clocks": ("main.clocks", MAIN + r"main\.clocks(;(?!main\.).*)?"),
    "execs": ("main.execs", MAIN + r"main\.execs(;(?!main\.).*)?"),
}
ONCE = (r"main\.call(\.func\d+)?;main\._Cfunc_c_call;runtime\.cgocall;runtime\.asmcgocall;"
        r"([^;]+;){1,4}crosscall2;runtime\.cgocallback;(runtime\.cgocallbackg;)+"
        r"runtime\.cgocallbackg1;_cgoexp_[0-9a-f]+_go_callback;main\.go_callback;")
CALLBACK = MAIN + "(" + ONCE + "){4}" + r"main\.leaf"
SPIN = MAIN + (r"(main\.main\.func\d+;)?main\._Cfunc_c_spin;runtime\.cgocall;"
               r"runtime\.asmcgocall;([^;]+;)*c_leaf")


def plain(stack):
    return ";".join(f[:-5] if f.endswith(".abi0") else f for f in h.user_frames(stack))


def run(argv):
    p = h.start(argv)
    if not h.wait_busy(p):
        raise ValueError("%s does not run" % argv[0])
    stacks, stats = h.record(["-U", "-F", "499", "-p", str(p.pid)], SECONDS)
    h.stop(p)
    return [s for s in stacks if s.frames], stats


def judge(stacks, chains, stripped):
    """chains: pairs of a function and what the stacks that contain it must be."""
    errors, total = [], h.total(stacks)
    rooted = sum(s.count for s in stacks if not h.reason(s) and plain(s).split(";")[0] in ROOTS)
    false = sum(s.count for s in stacks if not h.reason(s) and plain(s).split(";")[0] not in ROOTS)
    if total < 100:
        errors.append("only %d samples" % total)
    if rooted < 0.97 * total:
        errors.append("%d of %d stacks at their root: %s" %
                      (rooted, total, h.worst([s for s in stacks if h.reason(s)])))
    if false > 0.001 * total:
        errors.append(
            "%d of %d falsely complete: %s" %
            (false, total,
             h.worst([s
                      for s in stacks if not h.reason(s) and plain(s).split(";")[0] not in ROOTS])))
    for leaf, chain in chains:
        want = re.compile(chain)
        having = [s for s in stacks if leaf in plain(s).split(";")]
        right = [s for s in having if want.fullmatch(plain(s))]
        if h.total(having) < 0.02 * total:
            errors.append("only %d of %d samples have %s" % (h.total(having), total, leaf))
        elif h.total(right) < 0.99 * h.total(having):
            errors.append("%d of %d chains of %s: %s" %
                          (h.total(right), h.total(having), leaf,
                           h.worst([s for s in having if s not in right])))
    h.note("%d samples, %.4f at their root" % (total, rooted / max(total, 1)))
    return errors


def shape_check(name, argv, chains, stripped=False):
    stacks, stats = run(argv)
    h.check(name, judge(stacks, chains, stripped) + h.stats_errors(stats))


def shape(name, variant, options):
    def check(full):
        path = h.build_go("shapes" + variant, "shapes.go", *options)
        shape_check(full, [path, name], [SHAPES[name]])
    check.__name__ = "check_" + name + variant.replace("-", "_")
    return check


def check_callback(name):
    shape_check(name, [h.build_go("callback", "callback.go", cgo="1")], [("main.leaf", CALLBACK),
                                                                    ("c_leaf", SPIN)])


def check_callback_notab(name):
    """C code without unwind tables, as that of a static C library."""
    version = subprocess.run([h.GO, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go1\.(\d+)", version)
    if found and int(found[1]) >= 24:
        raise h.Skip("C code without tables has no rows yet in programs of " + found[0])
    path = h.build_go("callback-notab", "callback.go", cgo="1",
                 cflags="-fno-asynchronous-unwind-tables -fno-unwind-tables")
    shape_check(name, [path], [("main.leaf", CALLBACK), ("c_leaf", SPIN)])


def check_callback_stripped(name):
    """Names of static C functions are gone; Go's are in its table."""
    shape_check(name, [h.build_go("callback-stripped", "callback.go", "-ldflags=-s -w", cgo="1")],
                [("main.leaf", CALLBACK)])


def library_user(name, mode, suffix):
    """A C program that calls a library, which waits on its thread for other goroutines."""
    library = h.build_go(name + suffix, "library.go", "-buildmode=" + mode, cgo="1")
    path = os.path.join(h.PROGRAMS, "go-" + name)
    subprocess.run(["gcc", "-O1", "-I", h.PROGRAMS, "-include", library[:-len(suffix)] + ".h", "-o",
                    path, os.path.join(h.TOP, "tests/programs/go/library_user.c"), library,
                    "-lpthread"], check=True)
    main = r"_start;__libc_start_main;__libc_start_call_main;main;go_work;crosscall2;"
    shape_check(name, [path], [
        ("runtime.park_m", r"(runtime\.mstart;runtime\.mstart0|%sruntime\.cgocallback);"
         r"runtime\.mcall;runtime\.park_m(;.*)?" % main),
        ("main.spin", r"(runtime\.goexit;main\.go_work\.func1|%sruntime\.cgocallback;"
         r"(runtime\.cgocallbackg;)+runtime\.cgocallbackg1;_cgoexp_[0-9a-f]+_go_work;"
         r"main\.go_work);main\.spin(;.*)?" % main)])


def check_c_shared(name):
    library_user(name, "c-shared", ".so")


def check_c_archive(name):
    library_user(name, "c-archive", ".a")


def devirtualized(profile):
    """What the compiler says, as `go build -pgo` runs it, but without building Go's runtime anew.
    Since 1.23 another tool reads the profile first.
    """
    source = os.path.join(h.TOP, "tests/programs/go/pgo.go")
    env = dict(os.environ, GO111MODULE="off", GOFLAGS="")

    def tool(*argv):
        return subprocess.run([h.GO, "tool"] + list(argv), capture_output=True, text=True, env=env,
                              check=False)

    version = subprocess.run([h.GO, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go1\.(\d+)", version)
    if found and int(found[1]) < 21:
        raise h.Skip("no -pgo in go1." + found[1])
    if not found or int(found[1]) >= 23:
        r = tool("preprofile", "-i", profile, "-o", profile + ".pre")
        if r.returncode:
            return "preprofile: " + (r.stderr + r.stdout).strip()[-200:]
        profile += ".pre"
    r = tool("compile", "-p", "main", "-o", "/dev/null", "-m=2", "-pgoprofile=" + profile, source)
    said = [line for line in (r.stdout + r.stderr).splitlines() if "PGO devirtualizing" in line]
    return "" if said else "not devirtualized: " + (r.stderr + r.stdout).strip()[-200:]


def check_pgo(name):
    """pprof files are accepted and lead to a better program, with and without DWARF and --lines;
    folded lines of the same program are as before.
    """
    errors = []
    for variant, options in (("", []), ("-stripped", ["-ldflags=-s -w"])):
        p = h.start([h.build_go("pgo" + variant, "pgo.go", *options)])
        if not h.wait_busy(p):
            raise ValueError("the program does not run")
        for more in ([], ["--lines"]):
            what = "pgo%s%s" % (variant, "".join(more))
            profile, folded = h.tmpfile(what + ".pb.gz"), h.tmpfile(what + ".folded")
            argv = [h.SFBPF, "record", "-q", "-U", "-F", "499", "-p", str(p.pid), "-o", profile]
            subprocess.run(argv + more + ["2"], check=True, timeout=60)
            made = h.tmpfile(what + ".pgo")
            r = subprocess.run([h.SFBPF, "report", "--pgo", "go", "-o", made,
                                p.args[0], profile], capture_output=True, text=True, check=False)
            if r.returncode or not re.search(r"samples used.*; (9\d|100)\.\d% of", r.stderr):
                errors.append("%s: report --pgo: %s" % (what, r.stderr.strip()))
            for file in (profile, made):
                error = devirtualized(file)
                if error:
                    errors.append("%s: %s" % (file, error))
            subprocess.run([h.SFBPF, "report", profile, "-o", folded], check=True, timeout=60)
            stacks = h.read_folded(folded)
            mixed = h.total([s for s in stacks
                             if plain(s).endswith("main.(*square).area;main.mix_[i]")])
            if mixed < 0.2 * h.total(stacks):
                errors.append("%s: %d of %d samples in the inlined function" %
                              (what, mixed, h.total(stacks)))
        stacks = h.record(["-U", "-F", "499", "-p", str(p.pid)], 1)[0]
        if any(f.endswith("_[i]") or ".go:" in f for s in stacks for f in s.frames):
            errors.append("folded lines without options have inlined functions or lines")
        h.stop(p)
    h.check(name, errors)


if __name__ == "__main__":
    CHECKS = [shape(n, "", []) for n in SHAPES]
    CHECKS += [shape(n, "-stripped", ["-ldflags=-s -w"]) for n in ("rec", "channels", "clocks")]
    CHECKS += [shape(n, "-pie", ["-buildmode=pie"]) for n in ("rec", "channels", "clocks")]
    h.run_checks(CHECKS + [check_callback, check_callback_notab, check_callback_stripped,
                           check_c_shared, check_c_archive, check_pgo])
    sys.exit(h.exit_status())
