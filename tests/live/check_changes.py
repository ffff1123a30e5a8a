#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What changes while it is recorded: files that are written, deleted or replaced under the same
identity, BPF programs that come and go, functions of languages whose memory is used again. A frame
has the name of what ran when the sample was taken, or none.
"""

import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from collections import Counter
from types import SimpleNamespace

import harness as h

C = r"""
#include <stdlib.h>
#include <time.h>
volatile unsigned long n;
#ifdef PAD
__attribute__((noinline)) void NAME_pad(void) { for (int i = 0; i < 3; i++) n += i * n; }
#endif
__attribute__((noinline)) void NAME_leaf(void) { for (int i = 0; i < 100000; i++) n++; }
__attribute__((noinline)) void NAME(void)
{
#ifdef PAD
	volatile char big[3000];
	big[n % 3000] = 1;
	NAME_pad();
#endif
	NAME_leaf();
	n++;
}
#ifndef LIB
int main(int c, char **v)
{
	struct timespec t;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = t.tv_sec + t.tv_nsec / 1e9 + atof(v[1]);
	do {
		NAME();
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (t.tv_sec + t.tv_nsec / 1e9 < end);
	return 0;
}
#endif
"""

LOADER = r"""
#include <dlfcn.h>
int main(int c, char **v)
{
	void (*fn)(void) = (void (*)(void))dlsym(dlopen(v[1], RTLD_NOW), v[2]);

	for (;;)
		fn();
}
"""


# turns RUNS NAME...: runs one BPF program after the other; their memory is used again.
TURNS = r"""
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct bpf_insn code[3002];
int main(int c, char **v)
{
	char packet[64] = "";

	code[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 };
	for (int i = 1; i <= 3000; i++)
		code[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 3 };
	code[3001].code = BPF_JMP | BPF_EXIT;
	for (int i = 2; i < c; i++) {
		union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER }, run = { 0 };

		load.insns = (unsigned long)code;
		load.insn_cnt = 3002;
		load.license = (unsigned long)"GPL";
		strcpy(load.prog_name, v[i]);
		run.test.prog_fd = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
		run.test.data_in = (unsigned long)packet;
		run.test.data_size_in = sizeof(packet);
		run.test.repeat = 1000;
		for (int n = atoi(v[1]); n > 0; n -= 1000)
			if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)))
				return 1;
		close(run.test.prog_fd);
		usleep(200000); /* its memory is given back after a grace period */
	}
	return 0;
}
"""


SPIN_AT = 0x7d0000000000
# push %rbp; mov %rsp, %rbp; 1: pause; jmp 1b
SPIN = r"""
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	unsigned char *p = mmap((void *)SPIN_AT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	memcpy(p, "\x55\x48\x89\xe5\xf3\x90\xeb\xfc", 8);
	((void (*)(void))p)();
}
"""


# remap TURNS OFFSET FIRST SECOND: runs the function at OFFSET of FIRST.0, FIRST.1, ... for a
# moment, each in a mapping that SECOND takes the place of right after it.
REMAP = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
typedef void function(unsigned long);
static volatile unsigned long n;
static char *map(const char *path, char *at)
{
	int fd = open(path, O_RDONLY);

	at = mmap(at, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	if (fd < 0 || at == MAP_FAILED)
		exit(1);
	close(fd);
	return at;
}
__attribute__((noipa)) void turn_first(function *f) { f(100000); n++; }
__attribute__((noipa)) void turn_second(function *f) { f(1500000); n++; }
int main(int c, char **v)
{
	unsigned long offset = strtoul(v[2], NULL, 16);
	char path[4096], *at = NULL;

	for (int i = 0; i < atoi(v[1]); i++) {
		snprintf(path, sizeof(path), "%s.%d", v[3], i);
		at = map(path, at);
		turn_first((function *)(at + offset));
		map(v[4], at);
		turn_second((function *)(at + offset));
	}
	return 0;
}
"""
FUNCTION = "void NAME(unsigned long n) { for (volatile unsigned long i = 0; i < n; i++) ; }"


# Thirty functions, one after the other, in memory that is used again: fn_001 to fn_030. Each has
# its turn by the time on a CPU: on a busy machine, each gets its samples, too.
AGAIN = {
    "perl": ["-e", """use Time::HiRes "clock"; for my $n (1 .. 30) { my $f = sprintf "fn_%03d", $n;
eval "sub $f { my \\$e = clock + 0.06; my \\$x;
while (clock < \\$e) { \\$x += \\$_ for 1..200 } } 1"
or die; &{\\&{"main::$f"}}(); delete $main::{$f} }"""],
    "ruby": ["-e", """1.upto(30) { |n| f = "fn_%03d" % n; eval "def #{f}; e =
Process.clock_gettime(2) + 0.06; x = 0; (i = 0; (x += i; i += 1) while i < 200) while
Process.clock_gettime(2) < e; end"
send f; Object.send :remove_method, f; GC.start }"""],
    "/usr/bin/python3": ["-c", """import time, gc
for n in range(1, 31):
    f, names = "fn_%03d" % n, {"time": time}
    exec("def %s():\\n e = time.process_time() + 0.06\\n while time.process_time() < e:\\n"
         "  for i in range(200): pass" % f, names)
    names[f](); names.clear(); gc.collect()"""],
    "node": ["--expose-gc", "-e", """globalThis.now = () => { const c = process.cpuUsage();
return (c.user + c.system) / 1000 };
for (let n = 1; n <= 30; n++) { let f = new Function(
`return function fn_${String(n).padStart(3, "0")}() { const e = now() + 60; let x = 0;
while (now() < e) for (let i = 0; i < 200; i++) x += i; return x }`)();
f(); f = null; gc() }"""],
}
# The same in memory of which all addresses are used again, those of the names included; and the
# same function of thirty files.
ALIKE = [
    ["/usr/bin/python3", "-c", """import time
def once(n):
    names = {}
    exec("def fn_%03d(t):\\n e = t() + 0.06\\n while t() < e:\\n  for i in range(200): pass" % n,
         names)
    names.pop("fn_%03d" % n)(time.process_time)
for n in range(1, 31):
    once(n)"""],
    ["/usr/bin/python3", "-c", """import time
def once(n):
    names = {}
    exec(compile("def f(t):\\n e = t() + 0.06\\n while t() < e:\\n  for i in range(200): pass",
                 "fn_%03d.py" % n, "exec"), names)
    names.pop("f")(time.process_time)
for n in range(1, 31):
    once(n)"""],
    ["ruby", "-e", """def once(f) RubyVM::InstructionSequence.compile("e =
Process.clock_gettime(2) + 0.06; x = 0; (i = 0; (x += i; i += 1) while i < 200) while
Process.clock_gettime(2) < e", f, f).eval end
1.upto(30) { |n| once("fn_%03d" % n); GC.start(full_mark: n % 2 == 0) }"""],
    ["perl", "-e", """use Time::HiRes "clock"; for my $n (1 .. 30) { my $f = sprintf "fn_%03d", $n;
my $s = eval "#line 1 \\"$f.pl\\"\\nsub { my \\$e = clock + 0.06; my \\$x;
while (clock < \\$e) { \\$x += \\$_ for 1..200 } }" or die; $s->(); undef $s }"""],
]
JAVA = """import java.lang.management.*;
import java.nio.file.*;
public class Again {
	static ThreadMXBean threads = ManagementFactory.getThreadMXBean();
	public static long now() { return threads.getCurrentThreadCpuTime() / 1000000; }
	static class Loader extends ClassLoader {
		Class<?> make(byte[] b) { return defineClass("Body", b, 0, b.length); }
	}
	public static void main(String[] a) throws Exception {
		String base = new String(Files.readAllBytes(Paths.get(a[0])), "ISO-8859-1");
		for (int n = 1; n <= 30; n++) {
			String f = String.format("fn_%03d", n);
			var m = new Loader().make(base.replace("fn_000", f).getBytes("ISO-8859-1"))
				.getMethod(f);
			m.setAccessible(true);
			m.invoke(null);
			m = null;
			System.gc();
		}
	}
}
class Body {
	public static long fn_000() {
		long e = Again.now() + 60, x = 0;
		while (Again.now() < e)
			for (int i = 0; i < 200; i++)
				x += i;
		return x;
	}
}
"""
PHP = """<?php
function fn_%03d() { $e = microtime(true) + 0.25; $x = 0;
while (microtime(true) < $e) for ($i = 0; $i < 200; $i++) $x += $i; }
fn_%03d();
"""


def compiled(name, *options, text=C, out=None):
    """A program whose functions are NAME, NAME_leaf and, with -DPAD, NAME_pad."""
    out = out or h.tmpfile(name)
    subprocess.run(["gcc", "-O1", "-fomit-frame-pointer", "-x", "c", "-", "-o", out] +
                   list(options), input=text.replace("NAME", name).encode(), check=True)
    return out


def by_process(path, comm):
    """{pid: {(stop, names from the root): count}} of a recording in JSON"""
    found = {}
    with open(path) as f:
        for s in json.load(f)["stacks"]:
            if s["comm"] == comm:
                key = (s["stop"], ";".join(frame["name"] for frame in s["frames"]))
                of = found.setdefault(s["pid"], {})
                of[key] = of.get(key, 0) + s["count"]
    return found


def errors_of(stacks, name, other, least, nameless=False):
    """Names of the other program, or too few of this one among the complete stacks."""
    whole = sum(n for (stop, _), n in stacks.items() if stop == "complete")
    wrong = sum(n for (_, text), n in stacks.items() if other in text)
    right = sum(n for (stop, text), n in stacks.items() if stop == "complete" and
                re.search(r"main;%s(;%s_leaf)?$" % (name, name), text))
    bare = sum(n for (stop, text), n in stacks.items() if stop == "complete" and
               re.search(r"__libc_start_call_main(;\[[^;]*\+0x[0-9a-f]+\]){2,3}$", text))
    good = right + (bare if nameless else 0)
    if wrong or whole < 10 or good < least * whole:
        return ["%s: %d of %d samples have names of %s, %d are right: %s" % (
            name, wrong, whole, other, good, sorted(stacks.items(), key=lambda x: -x[1])[:3])]
    return []


def record_script(text, path):
    script = h.tmpfile("script.sh")
    with open(script, "w") as f:
        f.write(text)
    p = subprocess.run([h.SFBPF, "record", "-q", "-U", "-F", "499", "-o", path, "--", "sh", script],
                       capture_output=True, text=True, timeout=90, check=True)
    return p.stderr


def check_changes_written(name):
    """A program is written anew in place, after it ran; also with the mtime that it had, and with
    the build-id that it had, or none.
    """
    errors = []
    for options in ((), ("-Wl,--build-id=none", ), ("-Wl,--build-id=0x1234", )):
        a, b = compiled("fnaaa", *options), compiled("fnbbb", *options)
        d = compiled("fnbbb", "-DPAD", *options, out=h.tmpfile("fnddd"))
        for second in (b, d):
            prog, out = h.tmpfile("prog"), h.tmpfile("written.json")
            err = record_script("cat %s > %s; chmod +x %s; touch -d @1 %s; %s 0.6\n"
                                "cat %s > %s; touch -d @1 %s; %s 0.6\n" %
                                (a, prog, prog, prog, prog, second, prog, prog, prog), out)
            found = by_process(out, "prog")
            if len(found) != 2:
                errors.append("%d processes" % len(found))
                continue
            first, last = (found[pid] for pid in sorted(found))
            errors += errors_of(first, "fnaaa", "fnbbb", 0.9, nameless=True)
            errors += errors_of(last, "fnbbb", "fnaaa", 0.9)
            if "1 files were written" not in err:
                errors.append("no line says that the file was written: %s" % err)
            os.unlink(prog)
    h.check(name, errors)


def check_changes_deleted(name):
    """What is deleted, renamed or linked keeps its names and tables."""
    errors = []
    for options in ((), ("-Wl,--build-id=none", )):
        a, out = compiled("fnaaa", *options), h.tmpfile("deleted.json")
        for what in ("rm P", "mv P P.old", "ln P P.link; chmod 700 P", "cp F P"):
            prog = h.tmpfile("prog")
            record_script("cp F P; P 0.7; WHAT\n".replace("WHAT", what).replace("F", a)
                          .replace("P", prog), out)
            for of in by_process(out, "prog").values():
                errors += ["%s: %s" % (what, e) for e in errors_of(of, "fnaaa", "fnbbb", 0.9)]
            prog = h.tmpfile("prog2")
            record_script("cp F P; P 1.2 & sleep 0.5; WHAT; wait\n".replace(
                "WHAT", what.replace("cp F", ":")).replace("F", a).replace("P", prog), out)
            for of in by_process(out, "prog2").values():
                errors += ["%s while it runs: %s" % (what, e)
                           for e in errors_of(of, "fnaaa", "fnbbb", 0.9)]
            for left in (prog, prog + ".old", prog + ".link", h.tmpfile("prog")):
                if os.path.exists(left):
                    os.unlink(left)
    h.check(name, errors)


def check_changes_mapped(name):
    """A library is written while a program is in it: no name of the other bytes."""
    a = compiled("fnaaa", "-DLIB", "-shared", "-fPIC")
    b = compiled("fnbbb", "-DLIB", "-shared", "-fPIC")
    loader = compiled("loader", text=LOADER)
    lib = h.tmpfile("lib.so")
    shutil.copy(a, lib)
    p = h.start([loader, lib, "fnaaa"])
    h.wait_busy(p)
    r = h.Recording(["-p", str(p.pid), "-U", "-F", "499"], 3)
    r.wait_ready()
    time.sleep(0.8)
    with open(b, "rb") as new, open(lib, "r+b") as f:
        f.write(new.read())
    written = time.monotonic()
    stacks, _ = r.finish()
    late = h.record(["-p", str(p.pid), "-U", "-F", "499"], 1)[0]
    errors = []
    names = {f for s in stacks for f in s.frames}
    if "fnaaa" in names or not any(f.startswith("[lib.so+") for f in names):
        errors.append("the bytes from before: %s" % h.worst(stacks))
    share = sum(s.count for s in stacks if "fnbbb" in s.frames) / (h.total(stacks) or 1)
    want = (3.3 - 0.8) / 3.3
    if share > want + 0.15 or share < 0.4:
        errors.append("%.2f are named after the new bytes: %s" % (share, h.worst(stacks)))
    if sum(s.count for s in late if "fnbbb" in s.frames) < 0.95 * h.total(late):
        errors.append("%.1f s later: %s" % (time.monotonic() - written, h.worst(late)))
    h.check(name, errors)


def mounted(argv):
    p = h.start(argv, stdout=subprocess.PIPE)
    if p.stdout.readline() != b"mounted\n":
        raise h.Skip("no FUSE here")
    return p


def shares(stacks, least):
    """Both programs have that share of the samples, and all complete stacks are theirs."""
    errors = []
    whole = [s for s in stacks if not h.reason(s)]
    for which in ("fnaaa", "fnbbb"):
        n = sum(s.count for s in whole if "main" in s.frames and which in s.frames)
        if n < least * h.total(stacks):
            errors.append("%s: %d of %d: %s" % (which, n, h.total(stacks), h.worst(stacks)))
    strange = [s for s in whole if not {"fnaaa", "fnbbb", "clock_gettime"} & set(s.frames)]
    if h.total(strange) > 0.1 * h.total(stacks):
        errors.append("neither: %s" % h.worst(strange))
    return errors


def check_changes_remapped(name):
    """A mapping is replaced by one of another file between the sample and the look at the file: the
    file has no names, a reason says so, and nothing of the other file is shown.
    """
    turns = 100
    options = ("-fno-omit-frame-pointer", "-shared", "-nostdlib", "-Wl,-z,noseparate-code")
    first, second = (compiled(f, *options, text=FUNCTION) for f in ("fnaaa", "fnbbb"))
    program = compiled("remap", "-fno-omit-frame-pointer", text=REMAP)
    symbols = subprocess.run(["nm", "-S", first], capture_output=True, text=True, check=True).stdout
    start, size = re.search(r"^([0-9a-f]+) ([0-9a-f]+) T fnaaa", symbols, re.M).groups()
    # The walk needs no table at `push %rbp`, right after it, at `pop %rbp` and `ret`.
    first_pc, end = int(start, 16), int(start, 16) + int(size, 16)
    proven = (first_pc, first_pc + 1, end - 2, end - 1)
    for i in range(turns):
        shutil.copyfile(first, "%s.%d" % (first, i))
    out = h.tmpfile("remapped.json")
    subprocess.run([h.SFBPF, "record", "-q", "-U", "-F", "4999", "-o", out, "--", program,
                    str(turns), start, first, second], timeout=90, check=True)
    seen, errors = Counter(), []
    with open(out) as f:
        stacks = json.load(f)["stacks"]
    for s in stacks:
        turns_of = [i for i, frame in enumerate(s["frames"]) if frame["name"].startswith("turn_")]
        if not turns_of or turns_of[0] + 1 >= len(s["frames"]):
            continue
        turn, leaf = s["frames"][turns_of[0]]["name"], s["frames"][turns_of[0] + 1]
        mine, other = ("fnaaa", "fnbbb") if turn == "turn_first" else ("fnbbb", "fnaaa")
        seen[turn, "named" if leaf["name"] == mine else "nameless"] += s["count"]
        if other in leaf["name"] or other in leaf["module"] or \
                (s["stop"] == "complete" and leaf["name"] != mine and leaf["offset"] not in proven):
            errors.append("%d samples: %s;%s, %s" % (s["count"], turn, leaf, s["stop"]))
    if not seen["turn_first", "nameless"] or seen["turn_second", "named"] < 10 * turns ** 0.5:
        errors.append("no file was replaced in time: %s" % seen)
    h.check(name, errors)


def check_changes_fuse(name):
    """Two FUSE mounts, one after the other, have the same device and the same file attributes."""
    if not os.path.exists("/dev/fuse"):
        raise h.Skip("no /dev/fuse")
    errors = []
    serve = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuse_files.py")
    r = h.Recording(["-U", "-F", "499", "--comm", "prog"])
    r.wait_ready()
    for which in ("fnaaa", "fnbbb"):
        prog = compiled(which, "-DPAD" if which == "fnbbb" else "-DNONE")
        where = h.tmpfile("mnt")
        os.makedirs(where, exist_ok=True)
        server = mounted([serve, where, prog, "prog=none"])
        subprocess.run([os.path.join(where, "prog"), "1"], check=True)
        subprocess.run(["umount", "-l", where], check=True)
        h.stop(server)
    stacks = r.interrupt()[0]
    errors += shares(stacks, 0.1)
    h.check(name, errors)


def check_changes_subvolumes(name):
    """Files of two btrfs subvolumes with equal device, inode number, generation and times."""
    if not shutil.which("mkfs.btrfs"):
        raise h.Skip("no mkfs.btrfs")
    a, b = compiled("fnaaa"), compiled("fnbbb", "-DPAD")
    image, where = h.tmpfile("image"), h.tmpfile("btrfs")
    os.mkdir(where)
    with open(image, "wb") as f:
        f.truncate(200 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    p = subprocess.run(["mount", "-o", "loop,commit=300", image, where], capture_output=True,
                       check=False)
    if p.returncode:
        raise h.Skip("no loop device or no btrfs")
    errors = []
    try:
        subprocess.run("""set -e; cd %s; for v in a b; do btrfs -q subvolume create $v; done
sync -f .; cp %s a/prog; cp %s b/prog; touch -d @1 a/prog b/prog""" % (where, a, b), shell=True,
                       check=True)
        for first, second in (("a", "b"), ("b", "a")):
            r = h.Recording(["-U", "-F", "499", "--comm", "prog"])
            r.wait_ready()
            ps = []
            for v in (first, second):
                ps.append(h.start([os.path.join(where, v, "prog"), "1.5"]))
                time.sleep(0.2)
            for p in ps:
                p.wait()
            stacks = r.interrupt()[0]
            errors += shares(stacks, 0.2)
    finally:
        for _ in range(50):
            if not subprocess.run(["umount", where], capture_output=True, check=False).returncode:
                break
            time.sleep(0.1)
    h.check(name, errors)


def of_programs(stacks):
    """Samples by the BPF program at the leaf, None: of other kernel code without a name"""
    found = Counter()
    for s in stacks:
        leaf = s.frames[-1] if s.frames else ""
        m = re.match(r"bpf_prog_[0-9a-f]{16}_(alpha|beta|gamma)_\[k\]$", leaf)
        if m or leaf.startswith("["):
            found[m and m.group(1)] += s.count
    return found


def check_changes_bpf(name):
    """Three BPF programs, one after the other, all gone when names are shown; in the agent's
    windows, too.
    """
    turns = compiled("turns", text=TURNS)
    r = h.Recording(["-F", "499", "--comm", "turns"])
    r.wait_ready()
    p = h.start([turns, "400000", "alpha", "beta", "gamma"])
    p.wait()
    errors = [] if not p.returncode else ["the program ended with %d" % p.returncode]
    found = of_programs(r.interrupt()[0])
    print("# record: %s" % dict(found))
    whole = sum(found.values())
    if not whole or found[None] > 0.1 * whole or \
            min(found[k] for k in ("alpha", "beta", "gamma")) < 0.15 * whole:
        errors.append("record: %s" % dict(found))
    spool = h.tmpfile("windows")
    agent = h.start([h.SFBPF, "agent", "-F", "499", "--protocol", "file", "--endpoint", spool,
                     "--interval", "1s", "--jitter", "0", "--metrics-address", "none"],
                    stderr=subprocess.DEVNULL)
    h.Recording.wait_ready(SimpleNamespace(p=agent))
    p = h.start([turns, "800000", "alpha", "beta", "gamma"])
    p.wait()
    time.sleep(1.2)
    agent.terminate()
    agent.wait()
    order = []
    files = [os.path.join(d, f) for d, _, names in os.walk(spool) for f in names]
    for path in sorted(files, key=os.path.basename):
        out = h.tmpfile("window.folded")
        r = subprocess.run([h.SFBPF, "report", "--comm", "turns", "-o", out, path],
                           capture_output=True, check=False)
        if r.returncode:
            continue        # nothing of it in that window
        found = of_programs(h.read_folded(out))
        order.append([k for k in ("alpha", "beta", "gamma") if found[k]])
    seen = [k for ks in order for k in ks]
    if seen != sorted(seen) or set(seen) != {"alpha", "beta", "gamma"}:
        errors.append("windows of the agent: %s" % order)
    h.check(name, errors)


def names_of_turns(stacks):
    found = Counter()
    for s in stacks:
        m = re.findall(r"fn_(\d{3})\b", ";".join(s.frames))
        if m:
            found[m[-1]] += s.count
    return found


def turn_errors(what, found, turns):
    """Each had its turn, and none has much more than its share."""
    whole = sum(found.values())
    extra = sum(max(0, n - 2 * whole / turns) for n in found.values())
    if whole < 5 * turns or len(found) < turns or extra > 0.1 * whole:
        return ["%s: %d names of %d in %d samples: %s" %
                (what, len(found), turns, whole, found.most_common(4))]
    return []


def check_changes_code(name):
    """Code of languages that is gone, and other code in its memory."""
    errors = []
    runs = [(tool, [tool] + argv) for tool, argv in AGAIN.items()]
    runs += [("%s, alike" % argv[0], argv) for argv in ALIKE]
    if shutil.which("javac"):
        source = h.tmpfile("Again.java")
        with open(source, "w") as f:
            f.write(JAVA)
        subprocess.run(["javac", "-d", h.tmpdir(), source], check=True, capture_output=True)
        for options in ([], ["-Xint"]):
            runs.append(("java" + "".join(options),
                         ["java"] + options + ["-cp", h.tmpdir(), "Again",
                                               h.tmpfile("Body.class")]))
    for what, argv in runs:
        if not shutil.which(argv[0]):
            h.note("no %s" % what)
            continue
        stacks = h.Recording(["-F", "499"], command=argv).finish()[0]
        errors += turn_errors(what, names_of_turns(stacks), 30)
    h.check(name, errors)


def check_changes_requests(name):
    """Requests of PHP's server whose scripts are alike have the same memory."""
    if not shutil.which("php"):
        raise h.Skip("no php")
    where = h.tmpfile("php")
    os.mkdir(where)
    for n in range(4):
        with open(os.path.join(where, "%d.php" % n), "w") as f:
            f.write(PHP % (n, n))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
    p = h.start(["php", "-n", "-S", address, "-t", where])
    r = h.Recording(["-F", "499", "-p", str(p.pid)])
    r.wait_ready()
    for _ in range(2):
        for n in range(4):
            with urllib.request.urlopen("http://%s/%d.php" % (address, n), timeout=30) as answer:
                answer.read()
    h.check(name, turn_errors("php -S", names_of_turns(r.interrupt()[0]), 4))


def jit_errors(what, stacks, least):
    """What calls the code tells its name."""
    right = unsure = 0
    wrong = Counter()
    for s in stacks:
        at = [k for k, f in enumerate(s.frames) if re.match(r"ja_\d$", f)]
        name = s.frames[at[0] + 1] if at and at[0] + 1 < len(s.frames) else "[jit]"
        if name == "[jit]" or name.endswith("_[k]"): # a bridge; the caller was interrupted
            continue
        if name == "[replaced code]_[j]":
            unsure += s.count
        elif name in ("turn_%s_[j]" % s.frames[at[0]][3:], "steady_[j]"):
            right += s.count
        else:
            wrong["%s under %s" % (name, s.frames[at[0]])] += s.count
    h.note("%s: %d right, %d unsure, %d wrong" % (what, right, unsure, sum(wrong.values())))
    whole = right + unsure + sum(wrong.values())
    if whole < 100 or wrong or right < least * whole:
        return ["%s: %d of %d right, %d unsure, wrong: %s" %
                (what, right, whole, unsure, wrong.most_common(3))]
    return []


def spinner():
    """Spins in code made at run time, at SPIN_AT."""
    if platform.machine() != "x86_64":
        raise h.Skip("its code is x86-64's")
    p = h.start([compiled("spins", text=SPIN.replace("SPIN_AT", hex(SPIN_AT)))])
    h.wait_busy(p)
    return p


def dump_head(pid):
    """A jitdump, as perf's specification has it."""
    return struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, pid, 0, 0)


def dump_load(pid, time_ns, name):
    body = struct.pack("<IIQQQQ", pid, pid, SPIN_AT, SPIN_AT, 64, 1) + name + b"\0"
    return struct.pack("<IIQ", 0, 16 + len(body), time_ns) + body


def jit_names(stacks):
    found = Counter()
    for s in stacks:
        names = [f for f in s.frames if f.endswith("_[j]")]
        found[names[-1] if names else None] += s.count
    return found


def check_changes_left_over(name):
    """The files of an earlier process with the same pid; the process itself writes them later."""
    errors = []
    files = (("/tmp/perf-%d.map", lambda pid: b"%x 40 left\n" % SPIN_AT),
             ("/tmp/jit-%d.dump", lambda pid: dump_head(pid) + dump_load(pid, 1, b"left")))
    for path, text in files:
        p = spinner()
        path = path % p.pid
        try:
            with open(path, "wb") as f:
                f.write(text(p.pid))
            os.utime(path, (time.time() - 60, time.time() - 60))
            before = jit_names(h.record(["-p", str(p.pid)], 1)[0])
            os.utime(path)
            after = jit_names(h.record(["-p", str(p.pid)], 1)[0])
        finally:
            os.unlink(path)
        if before["left_[j]"] or before["[unknown]_[j]"] < 0.9 * sum(before.values()):
            errors.append("%s from before it began: %s" % (path, dict(before)))
        if after["left_[j]"] < 0.9 * sum(after.values()) or not after:
            errors.append("%s of its own: %s" % (path, dict(after)))
    h.check(name, errors)


def check_changes_dump(name):
    """What a jitdump names later does not say what ran before."""
    p = spinner()
    path = "/tmp/jit-%d.dump" % p.pid
    try:
        with open(path, "wb") as f:
            f.write(dump_head(p.pid))
        r = h.Recording(["-F", "199", "-p", str(p.pid)])
        r.wait_ready()
        time.sleep(2.5)
        with open(path, "ab") as f:
            f.write(dump_load(p.pid, time.clock_gettime_ns(time.CLOCK_MONOTONIC), b"later"))
        time.sleep(2.5)
        found = jit_names(r.interrupt()[0])
    finally:
        os.unlink(path)
    whole = sum(found.values())
    errors = []
    # Times are known by the second.
    if whole < 100 or not 0.2 * whole < found["[replaced code]_[j]"] < 0.7 * whole or \
            found["[replaced code]_[j]"] + found["later_[j]"] < 0.95 * whole:
        errors.append("%s" % dict(found))
    h.check(name, errors)


def check_changes_jit(name):
    """Code of a user's program in memory that is used again, with names in a perf map."""
    program = h.program("jit_again")
    if not os.path.exists(program):
        raise h.Skip("its code is x86-64's")
    command = [program, "4"]
    errors = jit_errors("record", h.Recording(["-F", "499"], command=command).finish()[0], 0.5)
    p = h.start(command)
    errors += jit_errors("while it runs", h.Recording(["-F", "499", "-p", str(p.pid), "2"])
                         .finish()[0], 0.5)
    # Faster than the file is looked at
    errors += jit_errors("fast", h.Recording(["-F", "499"], command=command[:1] + ["2", "7"])
                         .finish()[0], 0.05)
    h.check(name, errors)


h.run_checks([check_changes_written, check_changes_deleted, check_changes_mapped,
              check_changes_remapped, check_changes_fuse, check_changes_subvolumes,
              check_changes_bpf, check_changes_code, check_changes_jit, check_changes_left_over,
              check_changes_dump, check_changes_requests])
