#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names that are not in the mapped file: debug packages, code made at run time, and files of the
same path in two file systems.
"""

import atexit
import json
import os
import re
import shutil
import subprocess
import time

import harness as h

JS = """
function kernelOfWork(n) {
	let s = 0
	for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7)
	return s
}
function driver(n) { let t = 0; for (let i = 0; i < n; i++) t += kernelOfWork(5000); return t }
for (;;) driver(100)
"""

C = "int main(void) { for (volatile long i = 0;;) %s(&i); }"


def shares(stacks, comm, *names):
    mine = [s for s in stacks if s.comm == comm]
    return h.total(mine), [sum(s.count for s in mine if n in s.frames) for n in names], mine


def check_names_debug_package(name):
    """libc6-dbg or a server's own: what only a separate .symtab names."""
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    out = subprocess.run(["readelf", "-n", libc], capture_output=True, text=True,
                         check=False).stdout
    build_id = next((line.split()[-1] for line in out.splitlines() if "Build ID" in line), "")
    if not os.path.exists("/usr/lib/debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:])):
        raise h.Skip("no debug file for libc")
    p = h.start([h.program("rec"), "20"])
    h.wait_busy(p)
    n, (hits,), mine = shares(h.record(["-p", str(p.pid)], 1)[0], "rec", "__libc_start_call_main")
    errors = [] if n and hits >= 0.99 * n else [
        "%d of %d samples in __libc_start_call_main: %s" % (hits, n, h.worst(mine))
    ]
    h.check(name, errors)


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


def node(prefix=(), pid=None):
    """pid: what it has in its own PID namespace, if that is another one."""
    path = shutil.which("node")
    if not path:
        raise h.Skip("no node")
    with open(h.tmpfile("load.js"), "w") as f:
        f.write(JS)
    p = h.start([
        *prefix, path, "--perf-basic-prof", "--interpreted-frames-native-stack",
        "--no-turbo-inlining",
        h.tmpfile("load.js")
    ])
    atexit.register(remove, "/tmp/perf-%d.map" % (pid or p.pid))
    return p


def js_errors(stacks):
    """With --native, the machine code of a function follows its frame of JavaScript."""
    mine = [s for s in stacks if any(f.startswith("JS:") and "kernelOfWork" in f
                                     for f in s.frames)]
    all_of_it = [s for s in stacks if s.comm in ("node", "MainThread")]
    if not all_of_it or h.total(mine) < 0.8 * h.total(all_of_it):
        return [
            "%d of %d samples in kernelOfWork: %s" %
            (h.total(mine), h.total(all_of_it), h.worst(all_of_it))
        ]
    if any(not f.endswith("_[j]") for s in mine for f in s.frames if f.startswith("JS:")):
        return ["JIT frames without their mark: %s" % h.worst(mine)]
    below = sum(s.count for s in mine if any("driver" in f for f in s.frames) and not h.reason(s))
    if below < 0.9 * h.total(mine):
        return [
            "only %d of %d stacks are complete with driver below: %s" %
            (below, h.total(mine), h.worst(mine))
        ]
    return []


def check_names_node(name):
    p = node()
    h.wait_busy(p)
    time.sleep(1)
    h.check(name, js_errors(h.record(["-p", str(p.pid), "--native"], 2)[0]))


def check_names_node_dead(name):
    """Named although it ended before the report was made."""
    p = node()
    h.wait_busy(p)
    time.sleep(1)
    r = h.Recording(["-p", str(p.pid), "--native"], 10)
    r.wait_ready()
    time.sleep(1)
    h.stop(p)
    h.check(name, js_errors(r.finish()[0]))


def check_names_node_jitdump(name):
    """perf's dump format, written where node was started. The records of late code wait in node's
    buffer; early ones are there.
    """
    path = shutil.which("node")
    if not path:
        raise h.Skip("no node")
    with open(h.tmpfile("load.js"), "w") as f:
        f.write(JS)
    p = h.start([
        path, "--perf-prof", "--interpreted-frames-native-stack", "--no-turbo-inlining",
        h.tmpfile("load.js")
    ], cwd=h.tmpdir())
    h.wait_busy(p)
    time.sleep(2)
    dump = h.tmpfile("jit-%d.dump" % p.pid)
    if not os.path.exists(dump) or os.path.getsize(dump) < 4096:
        raise h.Skip("this node writes no jitdump")
    stacks = h.record(["-p", str(p.pid), "--native"], 2)[0]
    mine = [s for s in stacks if s.comm in ("node", "MainThread")]
    named = sum(s.count for s in mine if any(
        f.endswith("_[j]") and not f.startswith("[unknown]") for f in s.frames))
    errors = [] if named >= 0.8 * h.total(mine) > 0 else [
        "%d of %d samples named: %s" % (named, h.total(mine), h.worst(mine))
    ]
    whole = sum(s.count for s in mine
                if not h.reason(s) and any("main" in f or "_start" in f for f in s.frames))
    if whole < 0.9 * h.total(mine):
        errors.append("only %d of %d stacks are complete: %s" %
                      (whole, h.total(mine), h.worst(mine)))
    h.check(name, errors)


INLINE = """static inline __attribute__((always_inline)) long inner(long x) { \
long s = 0; for (int i = 0; i < 1000; i++) s += x * i ^ (s >> 3); return s; }
static inline __attribute__((always_inline)) long middle(long x) {
	return inner(x) + inner(x + 1);
}
__attribute__((noinline)) long outer(long x) { return middle(x) * 3; }
int main(void) { volatile long t = 0; for (;;) t += outer(t); }
"""


def check_names_inlined(name):
    """--inline and --lines in all formats that have them."""
    if not shutil.which("gcc"):
        raise h.Skip("no gcc")
    with open(h.tmpfile("inl.c"), "w") as f:
        f.write(INLINE)
    subprocess.run(["gcc", "-O2", "-g", "-o", h.tmpfile("inl"), h.tmpfile("inl.c")], check=True)
    p = h.start([h.tmpfile("inl")])
    h.wait_busy(p)
    errors = []
    for options, want in ((["--inline"], "main;outer;middle_[i];inner_[i]"), ([
            "--inline", "--lines"
    ], "main (inl.c:6);outer (inl.c:5);middle (inl.c:3)_[i];inner (inl.c:1)_[i]"),
                          (["--lines"], "main (inl.c:6);outer (inl.c:1)"), ([], "main;outer")):
        stacks = h.record(["-p", str(p.pid)] + options, 1)[0]
        hits = sum(s.count for s in stacks if ";".join(h.user_frames(s)).endswith(want))
        if not stacks or hits < 0.95 * h.total(stacks):
            errors.append("%s: %d of %d are %s: %s" %
                          (options, hits, h.total(stacks), want, h.worst(stacks)))
    out = h.tmpfile("inl.json")
    subprocess.run([h.SFBPF, "record", "-p",
                    str(p.pid), "--inline", "--lines", "-o", out, "1"], check=True)
    with open(out) as f:
        leaf = json.load(f)["stacks"][0]["frames"][-1]
    if (leaf["name"], leaf["kind"], os.path.basename(
            leaf["file"]), leaf["line"]) != ("inner_[i]", "inlined", "inl.c", 1):
        errors.append("json's leaf: %s" % leaf)
    text = subprocess.run(
        [h.SFBPF, "record", "-p",
         str(p.pid), "--inline", "--format", "text", "1"], check=True, capture_output=True,
        text=True).stdout
    if not re.search(r"^ +(9\d|100)\.\d\d .* inner_\[i\]$", text, re.M):
        errors.append("text: inner is not the function with most self time: %s" % text[:300])
    if shutil.which("go"):
        out = h.tmpfile("inl.pb.gz")
        subprocess.run([h.SFBPF, "record", "-p",
                        str(p.pid), "--inline", "--lines", "-o", out, "1"], check=True)
        raw = subprocess.run(["go", "tool", "pprof", "-raw", out], capture_output=True, text=True,
                             check=False).stdout
        if not re.search(
                r"inner \S*inl\.c:1\b.*\n\s+middle \S*inl\.c:3\b.*\n\s+outer \S*inl\.c:5\b", raw):
            errors.append("pprof has no location with three lines")
    h.check(name, errors)


def check_names_stripped(name):
    """A function of a stripped program is one function, named by where it begins."""
    if not shutil.which("gcc"):
        raise h.Skip("no gcc")
    source, exe = h.tmpfile("bare.c"), h.tmpfile("bare")
    # Without tables, the analysis of code finds the functions, if there is a little of it.
    bare = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    for kind, flags in ("", []), ("-no-tables", bare):
        with open(source, "w", encoding="utf-8") as f:
            f.write(INLINE + '__asm__(".text; .skip 600, 0x90");\n')
        subprocess.run(["gcc", "-O2", *flags, "-o", exe, source], check=True)
        nm = subprocess.run(["nm", exe], check=True, capture_output=True, text=True).stdout
        outer, main = ("[bare+0x%x]" % int(re.search("(?m)^([0-9a-f]+) T %s$" % f, nm).group(1), 16)
                       for f in ("outer", "main"))
        subprocess.run(["strip", exe], check=True)
        p = h.start([exe])
        h.wait_busy(p)
        stacks = h.record(["-p", str(p.pid)], 1)[0]
        h.stop(p)
        leaves = {h.user_frames(s)[-1] for s in stacks if h.user_frames(s)}
        h.check(name + kind, [] if {outer} <= leaves <= {outer, main} else
                ["outer is %s, main %s: %s" % (outer, main, leaves)])


def cgroup2():
    with open("/proc/self/mounts") as f:
        for line in f:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    return None


def container_shown(pid):
    """What JSON says of the process's container; what stacks begin with by container: in folded
    lines that record writes, and that report makes of JSON and pprof; what top calls it.
    """
    out, roots = h.tmpfile("container"), {}
    for suffix in ("json", "pb.gz", "folded", "html"):
        subprocess.run([h.SFBPF, "record", "-p", str(pid), "--by", "container", "-o",
                        out + "." + suffix, "1"], check=True)
    for suffix in ("json", "pb.gz"):
        subprocess.run([h.SFBPF, "report", "--by", "container", out + "." + suffix, "-o",
                        out + ".report.folded"], check=True)
        roots[suffix] = {s.comm for s in h.read_folded(out + ".report.folded")}
    stacks = h.read_folded(out + ".folded")
    roots["record"] = {s.comm for s in stacks if s.frames[0] == h.comm(pid)}
    with open(out + ".html", encoding="utf-8") as f:
        text = f.read()
    roots["html"] = {r for r in roots["record"] if json.dumps(r) in text}
    with open(out + ".json") as f:
        found = {(k, v) for s in json.load(f)["stacks"] for k, v in s.items()
                 if k.startswith("container")}
    top = subprocess.run([h.SFBPF, "top", "-p", str(pid), "--json", "-d", "1", "-n", "1"],
                         check=True, capture_output=True, text=True).stdout
    row = next((p["cgroup"] for p in json.loads(top.splitlines()[-1])["processes"]
                if p["pid"] == pid), None)
    return [dict(found)], roots, row


def check_names_container(name):
    """The container's id out of the cgroup's path, its name from its runtime."""
    mount, ident, bundles = cgroup2(), os.urandom(32).hex(), h.Bundles()
    group = mount and os.path.join(mount, "docker-%s.scope" % ident)
    try:
        os.mkdir(group or "/nonexistent/none")
    except OSError:
        raise h.Skip("no cgroup v2 hierarchy to make a group in")
    try:
        p = h.start([h.program("rec"), "300"])
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(p.pid))
        h.wait_busy(p)
        errors = []
        for want in ({"container": ident}, {"container": ident, "container_name": "cart-5d9c/a.b"}):
            found, roots, row = container_shown(p.pid)
            if found != [want]:
                errors.append("%s instead of %s" % (found, want))
            label = want.get("container_name")
            if roots["record"] != {label or ident[:12]} or roots["html"] != roots["record"] or any(
                    roots[f] != {label or "[no container.name]"} for f in ("json", "pb.gz")):
                errors.append("roots of %s: %s" % (want, roots))
            if row != (label or "docker:" + ident[:12]):
                errors.append("top: %s for %s" % (row, want))
            bundles.add(ident, container_name="a\033b", sandbox_name="cart-5d9c")
        h.check(name, errors)
    finally:
        bundles.remove()
        h.stop_all()
        for _ in range(50):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.1)


def check_names_two_roots(name):
    """The same path in two mount namespaces, different builds: each has its own names."""
    if not shutil.which("unshare") or not shutil.which("gcc"):
        raise h.Skip("no unshare or gcc")
    path, pids = h.tmpfile("app"), []
    for fn in ("first_build", "second_build"):
        src = h.tmpfile(fn + ".c")
        with open(src, "w") as f:
            f.write(
                "__attribute__((noinline)) void %s(volatile long *p) { for (int i = 0; i < "
                "100000; i++) ++*p; }\n"
                % fn + C % fn)
        subprocess.run(["gcc", "-O1", "-o", h.tmpfile(fn), src], check=True)
    shutil.copy(h.tmpfile("first_build"), path)
    pids.append(h.start(["unshare", "-m", path]))
    pids.append(
        h.start([
            "unshare", "-m", "sh", "-c",
            "mount --bind %s %s && exec %s" % (h.tmpfile("second_build"), path, path)
        ]))
    for p in pids:
        if not h.wait_busy(p):
            raise h.Skip("no mount namespaces here")
    errors = []
    for p, fn in zip(pids, ("first_build", "second_build")):
        n, (hits,), mine = shares(h.record(["-p", str(p.pid)], 1)[0], "app", fn)
        if not n or hits < 0.98 * n:
            errors.append("%s: %d of %d: %s" % (fn, hits, n, h.worst(mine)))
    h.check(name, errors)


def make_root(name, fn):
    """A root directory with /srv/app, stripped and static, whose names are only in the root's own
    /usr/lib/debug.
    """
    root = h.tmpfile(name)
    app = os.path.join(root, "srv", "app")
    os.makedirs(os.path.dirname(app))
    with open(app + ".c", "w") as f:
        f.write(
            "__attribute__((noinline)) void %s(volatile long *p) { for (int i = 0; i < 100000; "
            "i++) ++*p; }\n"
            % fn + C % fn)
    if subprocess.run(["gcc", "-O1", "-g", "-static", "-Wl,--build-id", "-o", app, app + ".c"],
                      check=False, capture_output=True).returncode:
        raise h.Skip("no static libc")
    out = subprocess.run(["readelf", "-n", app], capture_output=True, text=True, check=True).stdout
    build_id = next(line.split()[-1] for line in out.splitlines() if "Build ID" in line)
    debug = os.path.join(root, "usr/lib/debug/.build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    subprocess.run(["objcopy", "--only-keep-debug", app, debug], check=True)
    subprocess.run(["strip", app], check=True)
    return root


def check_names_forged(name):
    """A file that two processes map in roots of their own: the debug file that another user wrote
    in one of these roots, with the build-id of the file, names nobody's code.
    """
    if not shutil.which("gcc"):
        raise h.Skip("no gcc")
    roots = [h.tmpfile("forged-%d" % i) for i in range(2)]
    for root in roots:
        os.makedirs(os.path.join(root, "srv"))
    app, lie = os.path.join(roots[0], "srv/app"), h.tmpfile("lie")
    for path, fn in ((app, "true_name"), (lie, "forged_name")):
        with open(h.tmpfile("forged.c"), "w") as f:
            f.write("__attribute__((noinline)) void %s(volatile long *p) { for (int i = 0; i < "
                    "100000; i++) ++*p; }\n" % fn + C % fn)
        if subprocess.run(["gcc", "-O1", "-g", "-static", "-Wl,--build-id=0x1234567890", "-o", path,
                           h.tmpfile("forged.c")], check=False, capture_output=True).returncode:
            raise h.Skip("no static libc")
    debug = os.path.join(roots[0], "usr/lib/debug/.build-id/12/34567890.debug")
    os.makedirs(os.path.dirname(debug))
    subprocess.run(["objcopy", "--only-keep-debug", lie, debug], check=True)
    os.chown(debug, 65534, 65534)
    subprocess.run(["strip", app], check=True)
    os.link(app, os.path.join(roots[1], "srv/app"))
    os.chmod(h.tmpdir(), 0o755)
    pids = [h.start(["chroot", "--userspec=65534:65534", root, "/srv/app"]) for root in roots]
    if not all(h.wait_busy(p) for p in pids):
        raise h.Skip("no chroot here")
    errors = []
    for p in pids:
        stacks = h.record(["-p", str(p.pid)], 1)[0]
        n, (hits,), mine = shares(stacks, "app", "forged_name")
        if not n or hits:
            errors.append("%d of %d have the forged name: %s" % (hits, n, h.worst(mine)))
    os.chown(debug, 0, 0)  # and root's names it
    n, (hits,), mine = shares(h.record(["-p", str(pids[0].pid)], 1)[0], "app", "forged_name")
    if not n or hits < 0.98 * n:
        errors.append("root's debug file: %d of %d: %s" % (hits, n, h.worst(mine)))
    h.check(name, errors)


def check_names_containers(name):
    """Two builds at the same path in two roots, mount and PID namespaces, in one recording."""
    if not shutil.which("unshare") or not shutil.which("gcc"):
        raise h.Skip("no unshare or gcc")
    started = []
    for fn in ("red_build", "blue_build"):
        p = h.start([
            "unshare", "--mount", "--pid", "--fork", "chroot",
            make_root("root-" + fn, fn), "/srv/app"
        ])
        if not h.wait_busy(p):
            raise h.Skip("no namespaces here")
        started.append(p)
    file = h.tmpfile("containers.json")
    subprocess.run([
        h.SFBPF, "record", "-o", file, "-p", ",".join(str(h.family(p.pid)[-1])
                                                      for p in started), "-F", "499", "2"
    ], check=True)
    with open(file, encoding="utf-8") as f:
        stacks = json.load(f)["stacks"]
    errors = []
    for p, fn in zip(started, ("red_build", "blue_build")):
        mine = [s for s in stacks if s["pid"] == h.family(p.pid)[-1]]
        n = sum(s["samples"] for s in mine)
        hits = sum(s["samples"] for s in mine if any(f["name"] == fn for f in s["frames"]))
        if n < 20 or hits < 0.98 * n:
            errors.append("%s: %d of %d: %s" % (fn, hits, n, [[f["name"] for f in s["frames"]]
                                                              for s in mine[:2]]))
    if len({(f["module_id"], f["name"])
            for s in stacks for f in s["frames"] if f["name"].endswith("_build")}) != 2:
        errors.append("the two files are not told apart")
    h.check(name, errors)


def check_names_node_pid_namespace(name):
    """Its map is called after the PID that it has in its own namespace."""
    if not shutil.which("unshare"):
        raise h.Skip("no unshare")
    if os.path.exists("/tmp/perf-1.map"):
        raise h.Skip("/tmp/perf-1.map exists already")
    p = node(["unshare", "--pid", "--fork"], 1)
    if not h.wait_busy(p):
        raise h.Skip("no PID namespaces here")
    time.sleep(1)
    h.check(name, js_errors(h.record(["-p", str(h.family(p.pid)[-1]), "--native"], 2)[0]))


h.run_checks([
    check_names_debug_package, check_names_node, check_names_node_dead, check_names_node_jitdump,
    check_names_inlined, check_names_stripped, check_names_container, check_names_two_roots,
    check_names_containers, check_names_forged, check_names_node_pid_namespace
])
