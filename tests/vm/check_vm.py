#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Boots other kernels in QEMU and checks the same chains there as on the host.

check_vm.py KERNEL...    each a kernel package's pattern: 6.1-cloud, 6.12-cloud, 6.1-rt
The guest is an initramfs: busybox, the static sfbpf, the programs with the libraries they need. It prints each
recording between marker lines on its serial console; what they mean is judged here.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "live"))
os.environ.setdefault("MIN_SAMPLES", "60")

import harness as h                     # noqa: E402
import check_chains as chains           # noqa: E402

WORK = os.path.join(h.OUTPUT, "vm")
# Loading the programs takes a guest seconds (the verifier, emulated), so few and long recordings.
SECONDS = 8
FREQ = 99
BATCH = 8
BOOT_LIMIT = 420
# Those that need no chroot or namespace set-up; every source of rows, every way of ending a stack.
CASES = ("rec60 rec400 rec-static rec-spie frames alloca drap callback stdsort sig sig-alt threads rawclone dlmid plt-lazy plt-ibt "
         "vdso readzero coro forker sf1-rec60 sf2-rec sf3-rec noeh-sf1 noeh-sf3 nl-eh nl-sf1 nl-sf2 nl-sf3").split()
PACKAGES = {
    "6.1-cloud": "linux-image-cloud-amd64",
    "6.1-rt": "linux-image-rt-amd64",
    "6.1": "linux-image-amd64",
    "6.12-cloud": "linux-image-6.12-cloud-amd64",
    "6.12-rt": "linux-image-6.12-rt-amd64",
    "6.12": "linux-image-6.12-amd64",
}
# Blocked time (tests/programs/block.c): comm, arguments, threads, chain from main or the thread's start.
BLOCKS = [
    ("vo-sleep", "sleep 20000", 1, r"main;start;run;sleep_run;sleep_wait;"),
    ("vo-futex", "futex 5000 2", 2, r"(main|thread);start;run;(fa_run|fb_run);(futex_wait_for|sleep_wait|futex_pass_to);"),
    ("vo-pipe", "pipe 5000 2", 2, r"(main|thread);start;run;(pa_run|pb_run);(pipe_wait|sleep_wait|pipe_pass);"),
    ("vo-vfork", "vfork 20000", 2, r"main;start;run;vfork_run;(vfork_block|wait_block);"),
]
OFFCPU = [["--state", "S,D,R"], ["--chains"]]
SPLAT = re.compile(r"\b(BUG|WARNING|Oops|Kernel panic|INFO: (possible|rcu)|possible circular|soft lockup)\b")


def run(argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **kw).stdout


def vmlinuz(kernel):
    """Downloads the kernel's package and takes its image out; nothing is installed. The package's name changes with every
    update, so it is resolved through the meta package."""
    meta = PACKAGES.get(kernel)
    if not meta:
        raise h.Skip("unknown kernel; known: " + " ".join(PACKAGES))
    try:
        names = re.findall(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", meta]))
    except subprocess.CalledProcessError:
        names = []
    if not names:
        raise h.Skip("no package " + meta + " (apt-get update?)")
    have = glob.glob(os.path.join(WORK, "boot", "vmlinuz-" + names[0].replace("linux-image-", "")))
    if have:
        return have[0]
    try:
        run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", names[0]], cwd=WORK)
    except subprocess.CalledProcessError as e:
        raise h.Skip("cannot download %s: %s" % (names[0], e.stderr.strip()[-200:]))
    deb = glob.glob(os.path.join(WORK, names[0] + "_*.deb"))[0]
    subprocess.run("dpkg-deb --fsys-tarfile '%s' | tar -x -C '%s' --wildcards './boot/vmlinuz-*'" % (deb, WORK),
                   shell=True, check=True)
    os.unlink(deb)
    return glob.glob(os.path.join(WORK, "boot", "vmlinuz-" + names[0].replace("linux-image-", "")))[0]


def libraries(path):
    """What the dynamic linker would load for it, with the linker itself."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", out)


def copy_to(root, path):
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.realpath(path), to)


def script(cases):
    """/init of the guest."""
    lines = ["#!/bin/busybox sh", "/bin/busybox --install -s /bin", "mount -t proc proc /proc", "mount -t sysfs sys /sys",
             "mount -t devtmpfs dev /dev", "mkdir -p /tmp", "cd " + h.PROGRAMS]
    for i in range(0, len(cases), BATCH):
        for c in cases[i:i + BATCH]:
            lines.append("ln -s %s /tmp/%s; /tmp/%s %d %s &" % (h.program(c.program), c.name, c.name, 600, " ".join(c.args)))
        lines += ["sleep 2", "echo '@@ recording'", "sfbpf record -F %d -o /tmp/o --stats /tmp/s %d 2>&1" % (FREQ, SECONDS),
                  "echo '@@ exit' $?", "cat /tmp/o", "echo '@@ stats'", "cat /tmp/s", "echo '@@ end'",
                  "kill -9 $(jobs -p) 2>/dev/null", "killall -9 " + " ".join(c.name for c in cases[i:i + BATCH]) + " 2>/dev/null"]
    for comm, args, _, _ in BLOCKS:
        lines.append("ln -s %s /tmp/%s; /tmp/%s 600 %s &" % (h.program("block"), comm, comm, args))
    lines.append("sleep 2")
    for options in OFFCPU:
        lines += ["echo '@@ recording'", "sfbpf offcpu %s -o /tmp/o --stats /tmp/s %d 2>&1" % (" ".join(options), SECONDS),
                  "echo '@@ exit' $?", "cat /tmp/o", "echo '@@ stats'", "cat /tmp/s", "echo '@@ end'"]
    lines += ["echo '@@ log'", "dmesg", "echo '@@ finished'", "poweroff -f"]
    return "\n".join(lines) + "\n"


def initramfs(cases, sfbpf):
    root = os.path.join(WORK, "root")
    shutil.rmtree(root, ignore_errors=True)
    for d in ("bin", "proc", "sys", "dev", "tmp"):
        os.makedirs(os.path.join(root, d))
    shutil.copy("/bin/busybox", os.path.join(root, "bin", "busybox"))
    run(["strip", "-o", os.path.join(root, "bin", "sfbpf"), sfbpf])
    needed = {h.program(c.program) for c in cases} | {h.program("block")}
    needed |= set(glob.glob(os.path.join(h.PROGRAMS, "*.so")))
    for path in sorted(needed):
        copy_to(root, path)
        for lib in libraries(path):
            copy_to(root, lib)
    with open(os.path.join(root, "init"), "w") as f:
        f.write(script(cases))
    os.chmod(os.path.join(root, "init"), 0o755)
    image = os.path.join(WORK, "initramfs")
    subprocess.run("cd '%s' && find . | cpio -o -H newc 2>/dev/null | gzip -1 > '%s'" % (root, image), shell=True, check=True)
    return image


def boot(kernel, image):
    argv = ["qemu-system-x86_64", "-accel", os.environ.get("VM_ACCEL", "tcg,thread=multi"), "-machine", "q35", "-cpu", "max", "-smp", "2",
            "-m", "1G", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio", "-monitor", "none",
            "-kernel", kernel, "-initrd", image,
            "-append", "console=ttyS0 panic=-1 oops=panic panic_on_warn=1 softlockup_panic=1 quiet"]
    try:
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_LIMIT, check=False)
        out = p.stdout
    except subprocess.TimeoutExpired as e:
        out = e.stdout or b""
    return out.decode("utf-8", "replace").replace("\r", "")


def parts(text):
    """The guest's recordings as (exit code, folded text, stats text), and its kernel log; None without the last line."""
    found = re.findall(r"^@@ recording\n(.*?)^@@ exit (\d+)\n(.*?)^@@ stats\n(.*?)^@@ end$", text, re.S | re.M)
    log = re.search(r"^@@ log\n(.*)^@@ finished$", text, re.S | re.M)
    return [(int(code), folded, stats, said) for said, code, folded, stats in found], log.group(1) if log else None


def check_kernel(kernel, cases, image):
    began = time.monotonic()
    text = boot(vmlinuz(kernel), image)
    recordings, log = parts(text)
    prefix = "vm-%s-" % kernel
    if log is None:
        h.fail(prefix + "boot", "the guest did not get to its end: " + repr(text[-600:]))
        return
    splats = [l for l in log.splitlines() if SPLAT.search(l)]
    h.check(prefix + "kernel-log", splats[:3])
    batches = (len(cases) + BATCH - 1) // BATCH
    for options, (code, folded, stats, said) in zip(OFFCPU, recordings[batches:]):
        judge_blocks(prefix + "offcpu-" + options[0].strip("-"), code, folded, stats, said)
    if len(recordings) != batches + len(OFFCPU):
        h.fail(prefix + "recordings", "%d of %d" % (len(recordings), batches + len(OFFCPU)))
    for i, (code, folded, stats, said) in enumerate(recordings[:batches]):
        batch = cases[i * BATCH:(i + 1) * BATCH]
        if code:
            h.fail(prefix + batch[0].name, "sfbpf ended with %d: %s" % (code, said.strip()[-300:]))
            continue
        path = h.tmpfile("vm.folded")
        with open(path, "w") as f:
            f.write(folded)
        stacks = h.read_folded(path)
        for c in batch:
            judge(prefix, c, stacks)
    h.note("%s: %.0f s" % (kernel, time.monotonic() - began))


def judge(prefix, case, stacks):
    """As on the host, under this kernel's name."""
    mine = [s._replace(comm=prefix + case.name) for s in stacks if s.comm == case.name]
    chains.judge(case._replace(name=prefix + case.name), mine)


def judge_blocks(name, code, folded, stats, said):
    """Blocked time adds up and has the chains; with --chains the other thread's behind it."""
    if code:
        h.fail(name, "sfbpf ended with %d: %s" % (code, said.strip()[-300:]))
        return
    path = h.tmpfile("vm.folded")
    with open(path, "w") as f:
        f.write(folded)
    stacks = h.read_folded(path)
    account = json.loads(stats)
    usec = account["duration_s"] * 1e6
    errors = h.stats_errors(account)
    for comm, _, threads, chain in BLOCKS:
        mine = [s for s in stacks if s.comm == comm]
        good = [s for s in mine if re.search(chain + r"(?!.*\[incomplete).*_\[k\]", ";".join(s.frames))]
        if not 0.85 * usec * threads < h.total(mine) + 0.15 * usec * threads * (comm == "vo-vfork") < 1.16 * usec * threads:
            errors.append("%s: %d us, %d threads for %d us" % (comm, h.total(mine), threads, usec))
        if h.total(good) < 0.97 * h.total(mine):
            errors.append("%s: %d of %d us have the chain: %s" % (comm, h.total(good), h.total(mine), h.worst([s for s in mine if s not in good])))
    if name.endswith("chains"):
        woken = [s for s in stacks if re.search(r"fa_run;futex_wait_for;.*;--;vo-futex;.*fb_run;futex_pass_to;.*;--;\[(hard|soft)irq\]",
                                                ";".join(s.frames))]
        if h.total(woken) < 0.2 * usec:
            errors.append("%d us with a chain of wakers" % h.total(woken))
    h.check(name, errors)


def main():
    kernels = sys.argv[1:] or ["6.1-cloud", "6.12-cloud", "6.1-rt"]
    wanted = os.environ.get("CASES", "").split() or CASES
    os.makedirs(WORK, exist_ok=True)
    cases = [c for c in chains.read_cases() if c.name in wanted and os.path.exists(h.program(c.program))]
    image = initramfs(cases, os.environ["SFBPF_STATIC"])
    for kernel in kernels:
        try:
            check_kernel(kernel, cases, image)
        except h.Skip as e:
            h.skip("vm-" + kernel, str(e))
    sys.exit(h.exit_status())


main()
