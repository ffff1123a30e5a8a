#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Boots other kernels in QEMU and checks the same chains there as on the host.

check_vm.py KERNEL...    6.1-cloud 6.12-cloud 6.1-rt arm64-6.1-cloud arm64-6.12-16k ...: Debian's,
see KERNELS. The guest is an initramfs: busybox, the static sfbpf, the programs with the libraries
they need. It prints each recording between marker lines on its serial console, and they are judged
here.
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
import check_offcpu as offcpu           # noqa: E402
import guest_agent                      # noqa: E402
import guest_languages                  # noqa: E402

WORK = os.path.join(h.OUTPUT, "vm")
# Loading the programs takes a guest seconds (the verifier, emulated), so few and long recordings.
SECONDS = 10
FREQ = 99
# Programs that run at once on two CPUs. An emulated CPU is slower by far: with more of them, a
# program has too few samples to excuse those before its tables are there, and the names of all
# their files take longer than record may take at its end.
BATCH = {"amd64": 12, "arm64": 6}
BOOT_LIMIT = 600
# Those that need no chroot or namespace set-up; every source of rows, every way of ending a stack.
CASES = (
    "rec60 rec400 rec-static rec-spie frames alloca turns drap callback stdsort sig sig-alt "
    "threads rawclone born leaderless dlmid plt-lazy plt-ibt "
    "vdso readzero coro forker sf1-rec60 sf2-rec sf3-rec noeh-sf1 noeh-sf3 nl-eh nl-sf1 nl-sf2 "
    "nl-sf3"
).split()
# Off-CPU: those of check_offcpu.py that need no disk and no children.
BLOCKED = "bl-sleep10 bl-epoll bl-futex bl-pipe bl-convoy".split()
# Again with the BPF programs of the newest clang at hand, which have a reference of their own.
NEWEST = ["record --all-languages --wall --lines",
          "offcpu --all-languages --locks --format json",
          "record --all-languages -e sched:sched_switch -e uprobe:libc.so.6:getppid"]
# What the verifier went through for each program and kernel; UPDATE=1 writes it anew.
REFERENCE = os.path.join(HERE, "verifier.json")
MOST = 500000 # instructions: half of what the verifier allows
# More of one architecture.
OWN_CASES = {"arm64": os.path.join(HERE, "chains-arm64.txt")}
# "amd64/sid": of another release than this machine's.
KERNELS = {
    "6.1-cloud": ("amd64", "linux-image-cloud-amd64"),
    "6.1-rt": ("amd64", "linux-image-rt-amd64"),
    "6.1": ("amd64", "linux-image-amd64"),
    "6.12-cloud": ("amd64", "linux-image-6.12-cloud-amd64"),
    "6.12-rt": ("amd64", "linux-image-6.12-rt-amd64"),
    "6.12": ("amd64", "linux-image-6.12-amd64"),
    "sid-cloud": ("amd64/sid", "linux-image-cloud-amd64"),
    "rc-cloud": ("amd64/experimental", "linux-image-cloud-amd64"),
    "arm64-6.1-cloud": ("arm64", "linux-image-cloud-arm64"),
    "arm64-6.1-rt": ("arm64", "linux-image-rt-arm64"),
    "arm64-6.12-cloud": ("arm64", "linux-image-6.12-cloud-arm64"),
    "arm64-6.12-16k": ("arm64", "linux-image-6.12-arm64-16k"),
}
DEFAULT = [
    "6.1-cloud", "6.12-cloud", "6.1-rt", "sid-cloud", "rc-cloud", "arm64-6.1-cloud",
    "arm64-6.12-16k"
]
QEMU = {
    "amd64": [
        "qemu-system-x86_64", "-accel",
        os.environ.get("VM_ACCEL", "tcg,thread=multi"), "-machine", "q35", "-cpu", "max"
    ],
    # pauth-impdef: the architected way of signing addresses takes an emulator ten times as long.
    "arm64": [
        "qemu-system-aarch64", "-accel", "tcg,thread=multi", "-machine", "virt,gic-version=3",
        "-cpu", "max,pauth-impdef=on"
    ],
}
BUSYBOX = {
    "amd64": "/bin/busybox", "arm64": os.path.join(h.TOP, "build", "sysroot-arm64", "bin",
                                                   "busybox")
}
STRIP = {"amd64": "strip", "arm64": "aarch64-linux-gnu-strip"}
CONSOLE = {"amd64": "ttyS0", "arm64": "ttyAMA0"}
LIB_DIRS = {
    "amd64": ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"],
    "arm64": [
        "/usr/aarch64-linux-gnu/lib",
        os.path.join(h.TOP, "build", "sysroot-arm64", "musl", "lib")
    ] + guest_languages.lib_dirs(),
}
LIB_GUEST = {"amd64": "/lib/x86_64-linux-gnu", "arm64": "/lib/aarch64-linux-gnu"}
SPLAT = re.compile(
    r"\b(BUG|WARNING|Oops|Kernel panic|INFO: (possible|rcu)|possible circular|soft lockup)\b")


def run(argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **kw).stdout


def arch_of(kernel):
    return KERNELS[kernel][0].split("/")[0]


def foreign(source, *argv):
    """source: an architecture, or architecture/release."""
    return run([
        os.path.join(h.TOP, "scripts", "apt-foreign.sh"), source,
        os.path.join(h.TOP, "build", "foreign-" + source.replace("/", "-"))
    ] + list(argv))


def vmlinuz(kernel):
    """The kernel's image out of its package; nothing is installed. The package's name changes with
    every update, so it is resolved through the meta package.
    """
    source, meta = KERNELS[kernel]

    def needed_by(package, prefix):
        return [n for n in foreign(source, "depends", package).split() if n.startswith(prefix)]

    try:
        names = needed_by(meta, "linux-image-")
        if not names:
            raise h.Skip("no package " + meta)
        path = os.path.join(WORK, "boot", names[0].replace("linux-image", "vmlinuz"))
        if not os.path.exists(path):
            # From 7.0 on, the image's package is empty and needs another one.
            names = needed_by(names[0], "linux-binary-") or names
            foreign(source, "kernel", WORK, names[0])
    except subprocess.CalledProcessError as e:
        raise h.Skip("cannot download %s: %s" % (meta, e.stderr.strip()[-200:]))
    return path


def elf_needs(path):
    """Its interpreter's path, and the names of the libraries that it is linked with."""
    out = subprocess.run(["readelf", "-W", "-l", "-d", path], capture_output=True, text=True,
                         check=False).stdout
    return re.findall(r"interpreter: ([^]]+)\]", out), re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def libraries(arch, path, seen):
    """{path in the guest: file here} of what the dynamic linker loads for a program, itself
    included.
    """
    interp, names = elf_needs(path)
    for want in interp + names:
        if os.path.basename(want) in seen:
            continue
        found = [
            p for p in (os.path.join(d, os.path.basename(want)) for d in LIB_DIRS[arch])
            if os.path.exists(p)
        ]
        if not found:
            continue
        seen[os.path.basename(want)] = (want if "/" in want else os.path.join(
            LIB_GUEST[arch], want), found[0])
        libraries(arch, found[0], seen)
    return dict(seen.values())


def copy_to(root, path, here):
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.realpath(here), to)


def recording(programs, tool, seconds, sfbpf="sfbpf"):
    """Lines that start programs (name, file, arguments), record them and print what came out."""
    lines = [
        "ln -s %s /tmp/%s; /tmp/%s %s &" % (h.program(program), name, name, args)
        for name, program, args in programs
    ]
    lines += [
        "sleep 2" if programs else ":", "echo '@@ recording'", "began=$(cut -d. -f1 /proc/uptime)",
        "%s %s -o /tmp/o --stats /tmp/s %d 2>&1" % (sfbpf, tool, seconds), "echo '@@ exit' $?",
        "cat /tmp/o", "echo '@@ stats'", "cat /tmp/s", "echo '@@ end'",
        "echo '@@ took' $(($(cut -d. -f1 /proc/uptime) - began)) of %d" % seconds
    ]
    if programs:
        lines += [
            "kill -9 $(jobs -p) 2>/dev/null",
            "killall -9 " + " ".join(p[0] for p in programs) + " 2>/dev/null"
        ]
    return lines


def newest(arch):
    """The program with the BPF objects of the newest clang, ".../clang-NN/sfbpf", or None."""
    path = os.environ.get("NEWEST_" + arch.upper(), "")
    return path if os.path.exists(path) else None


def has_agent(kernel):
    return kernel in ("6.1-cloud", "6.12-cloud") and "hotplug" in os.environ.get(
        "CASES", "hotplug").split()


def batches_of(kernel, cases):
    size = BATCH[arch_of(kernel)]
    return [cases[i:i + size] for i in range(0, len(cases), size)]


def script(kernel, cases):
    """/init of the guest."""
    lines = [
        "#!/bin/busybox sh", "/bin/busybox --install -s /bin", "mount -t proc proc /proc",
        "mount -t sysfs sys /sys", "mount -t devtmpfs dev /dev", "mkdir -p /tmp", "cd " + h.PROGRAMS
    ]
    for batch in batches_of(kernel, cases):
        lines += recording([(c.name, c.program, "600 " + " ".join(c.args))
                            for c in batch], "record --all-languages -F %d" % FREQ, SECONDS)
    if cases:
        lines += recording([(name, "block", "600 " + args)
                            for name, args, _, _ in offcpu.CHAINS if name in BLOCKED], "offcpu", 4)
        lines += recording([], "offcpu --locks --all-languages --format json", 1)
        for tool in NEWEST if newest(arch_of(kernel)) else []:
            lines += recording([], tool, 1, "/newest/sfbpf")
    if has_agent(kernel):
        lines += guest_agent.lines()
    for language in guest_languages.chosen(arch_of(kernel)):
        lines += guest_languages.lines(language, SECONDS, FREQ)
    lines += ["echo '@@ log'", "dmesg", "echo '@@ finished'", "poweroff -f"]
    return "\n".join(lines) + "\n"


def initramfs(kernel, cases):
    arch = arch_of(kernel)
    root = os.path.join(WORK, "root-" + arch)
    shutil.rmtree(root, ignore_errors=True)
    for d in ("bin", "full", "newest", "proc", "sys", "dev", "tmp"):
        os.makedirs(os.path.join(root, d))
    shutil.copy(BUSYBOX[arch], os.path.join(root, "bin", "busybox"))
    run([
        STRIP[arch], "-o",
        os.path.join(root, "bin", "sfbpf"), os.environ["SFBPF_" + arch.upper()]
    ])
    if newest(arch):
        run([STRIP[arch], "-o", os.path.join(root, "newest", "sfbpf"), newest(arch)])
    needed = {h.program(c.program) for c in cases} | {h.program("block")}
    needed |= set(glob.glob(os.path.join(h.PROGRAMS, "*.so")))
    for path in sorted(needed):
        copy_to(root, path, path)
        for to, here in libraries(arch, path, {}).items():
            copy_to(root, to, here)
    if has_agent(kernel):
        # The static one has no libcurl.
        full = os.path.join(h.OUTPUT, "sfbpf")
        run([STRIP[arch], "-o", os.path.join(root, "full", "sfbpf"), full])
        for to, here in libraries(arch, full, {}).items():
            copy_to(root, to, here)
    for language in guest_languages.chosen(arch):
        foreign(arch, "unpack", guest_languages.tree(language), *language.packages)
        for path in guest_languages.add(language, root):
            for to, here in libraries(arch, path, {}).items():
                copy_to(root, to, here)
    with open(os.path.join(root, "init"), "w") as f:
        f.write(script(kernel, cases))
    os.chmod(os.path.join(root, "init"), 0o755)
    image = os.path.join(WORK, "initramfs-" + arch)
    subprocess.run(
        "cd '%s' && find . | cpio -o -H newc 2>/dev/null | gzip -1 > '%s'" % (root, image),
        shell=True, check=True)
    return image


def boot(arch, kernel, image):
    argv = QEMU[arch] + [
        "-smp", "2", "-m", "2G", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-serial", "stdio", "-monitor", "none", "-kernel", kernel, "-initrd", image, "-append",
        "console=" + CONSOLE[arch] + " panic=-1 oops=panic panic_on_warn=1 softlockup_panic=1 "
        "quiet no_console_suspend"
    ]
    try:
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_LIMIT,
                           check=False)
        out = p.stdout
    except subprocess.TimeoutExpired as e:
        out = e.stdout or b""
    text = out.decode("utf-8", "replace").replace("\r", "")
    with open(os.path.join(WORK, "console"), "w") as f:
        f.write(text)
    return text


def parts(text):
    """The guest's recordings as (exit code, folded text, stats text), and its kernel log; None
    without the last line.
    """
    found = re.findall(r"^@@ recording\n(.*?)^@@ exit (\d+)\n(.*?)^@@ stats\n(.*?)^@@ end$", text,
                       re.S | re.M)
    log = re.search(r"^@@ log\n(.*)^@@ finished$", text, re.S | re.M)
    return [(int(code), folded, stats, said)
            for said, code, folded, stats in found], log.group(1) if log else None


def check_kernel(kernel):
    began = time.monotonic()
    arch = arch_of(kernel)
    image_of_kernel = vmlinuz(kernel)
    cases = cases_of(arch)
    text = boot(arch, image_of_kernel, initramfs(kernel, cases))
    recordings, log = parts(text)
    prefix = "vm-%s-" % kernel
    if log is None:
        h.fail(prefix + "boot", "the guest did not get to its end: " + repr(text[-600:]))
        return
    splats = [l for l in log.splitlines() if SPLAT.search(l)]
    h.check(prefix + "kernel-log", splats[:3])
    batches = batches_of(kernel, cases)
    expected = len(batches) + 2 + len(NEWEST) * bool(newest(arch)) if cases else 0
    if len(recordings) != expected:
        h.fail(prefix + "recordings", "%d of %d" % (len(recordings), expected))
        return
    programs, by_newest = {}, {}
    for i, (code, folded, stats, said) in enumerate(recordings):
        name = batches[i][0].name if i < len(batches) else "offcpu"
        if code:
            h.fail(prefix + name, "sfbpf ended with %d: %s" % (code, said.strip()[-300:]))
            continue
        account = json.loads(stats)
        # With --locks, its programs are larger; without, the sums are what is compared.
        (programs if i < len(batches) + 2 else by_newest).update(
            {k: [v["verified_insns"], v["verifier_states"]]
             for k, v in account["bpf"].items()})
        if i > len(batches):
            continue
        path = h.tmpfile("vm.folded")
        with open(path, "w") as f:
            f.write(folded)
        stacks = h.read_folded(path)
        for c in batches[i] if i < len(batches) else []:
            judge(prefix, c, stacks)
        if i == len(batches):
            judge_blocked(prefix, stacks, account)
    if cases:
        check_verifier(kernel, programs)
        if by_newest:
            check_verifier("%s %s" % (kernel, newest(arch).split("/")[-2]), by_newest)
    if has_agent(kernel):
        guest_agent.judge(prefix, text)
    for language in guest_languages.chosen(arch):
        guest_languages.judge(language, prefix, text)
    h.note("%s: %.0f s; recordings took %s s" %
           (kernel, time.monotonic() - began, ", ".join(re.findall(r"^@@ took (.*)$", text, re.M))))


def judge_blocked(prefix, stacks, account):
    usec = account["duration_s"] * 1e6
    for name, _, threads, chain in offcpu.CHAINS:
        if name not in BLOCKED:
            continue
        mine = [s for s in stacks if s.comm == name]
        # Before 6.2 the stack of a block that began before the run is not known.
        mine_known = [s for s in mine if "6.1-" not in prefix or h.reason(s) != "asleep"]
        bad = [s for s in mine_known if not re.fullmatch(chain, ";".join(s.frames))]
        total, errors = h.total(mine), []
        if not 0.5 * usec * threads < total < 1.01 * usec * threads:
            errors.append("%d us blocked, %d threads for %d us" % (total, threads, usec))
        if h.total(bad) > 0.01 * total:
            errors.append("%.2f %% have another chain: %s" %
                          (100 * h.total(bad) / total, h.worst(bad)))
        h.check(prefix + name, errors)


def check_verifier(kernel, programs):
    """A jump of more than 10 % in the instructions or states that the verifier goes through is a
    failure.
    """
    with open(REFERENCE) as f:
        reference = json.load(f)
    known, errors = reference.get(kernel, {}), []
    for name, now in sorted(programs.items()):
        old = known.get(name)
        h.note("%-16s %-15s %8d instructions %7d states%s" %
               (kernel, name, now[0], now[1], "" if old else "; no reference"))
        for what, was, value in zip(("instructions", "states"), old or now, now):
            if value > 1.1 * was + 10 or (what == "instructions" and value > MOST):
                errors.append("%s: %d %s, %d before" % (name, value, what, was))
    if os.environ.get("UPDATE"):
        reference[kernel] = programs
        with open(REFERENCE, "w") as f:
            f.write("{\n" + ",\n".join('"%s": {%s}' % (k, ", ".join('"%s": %s' %
                                                                    (p, json.dumps(reference[k][p]))
                                                                    for p in sorted(reference[k])))
                                       for k in sorted(reference)) + "\n}\n")
    else:
        h.check("vm-%s-verifier" % kernel.replace(" ", "-"), errors)


def judge(prefix, case, stacks):
    """As on the host, under this kernel's name."""
    mine = [s._replace(comm=prefix + case.name) for s in stacks if s.comm == case.name]
    chains.judge(case._replace(name=prefix + case.name), mine)


def cases_of(arch):
    h.PROGRAMS = os.path.join(os.environ["PROGRAMS_" + arch.upper()])
    only = os.environ.get("CASES", "").split()
    cases = [c for c in chains.read_cases() if c.name in CASES]
    if arch in OWN_CASES:
        cases += chains.read_cases(OWN_CASES[arch])
    return [
        c for c in cases
        if (not only or c.name in only) and os.path.exists(os.path.join(h.PROGRAMS, c.program))
    ]


def main():
    kernels = sys.argv[1:] or DEFAULT
    unknown = [k for k in kernels if k not in KERNELS]
    if unknown:
        sys.exit("unknown kernel %s; known: %s" % (unknown[0], " ".join(KERNELS)))
    os.makedirs(WORK, exist_ok=True)
    began = time.monotonic()
    for kernel in kernels:
        try:
            check_kernel(kernel)
        except h.Skip as e:
            h.skip("vm-" + kernel, str(e))
    h.note("%d kernels in %.0f s" % (len(kernels), time.monotonic() - began))
    sys.exit(h.exit_status())


main()
