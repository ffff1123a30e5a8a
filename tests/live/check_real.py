#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's own programs under load, recorded system-wide at 99 Hz: do their stacks reach their true
root?

Judged from the folded output by names. A stripped program's root has none: [python3.11+0x...]
counts if the offset is the file's entry point, and a place in libc if its unwind table says that
nothing called it (a thread's first function).
"""

import glob
import os
import re
import shutil
import struct
import subprocess
import threading
import time

import harness as h

ROOT_NAMES = {
    "_start", "_dl_start", "_dl_start_user", "clone", "__clone", "clone3", "__clone3",
    "__GI___clone3", "start_thread", "thread_start"
}
SECONDS = int(os.environ.get("SECONDS", "10"))


# ---- roots
# -----------------------------------------------------------------------------------------------

def loads(data):
    phoff = struct.unpack_from("<Q", data, 32)[0]
    size, n = struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, _, off, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", data, phoff + i * size)
        if kind == 1:
            yield off, vaddr, filesz


def module_roots(path):
    """Ranges of file offsets in which an outermost frame may lie."""
    with open(path, "rb") as f:
        data = f.read(65536)
    segments = list(loads(data))
    entry = struct.unpack_from("<Q", data, 24)[0]
    ranges = [(entry, entry + 64)]
    if os.path.basename(path).startswith("libc."):
        text = subprocess.run(["readelf", "--debug-dump=frames", path], capture_output=True,
                              text=True, check=False).stdout
        start = None
        for line in text.splitlines():
            m = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            if m:
                start = int(m.group(1), 16), int(m.group(2), 16)
            elif start and "DW_CFA_undefined" in line and "(rip)" in line:
                ranges.append(start)
    found = []
    for a, b in ranges:
        found += [(a - vaddr + off, b - vaddr + off) for off, vaddr, filesz in segments
                  if vaddr <= a < vaddr + filesz]
    return found


class Roots:
    def __init__(self):
        self.paths, self.ranges = {}, {}

    def collect(self):
        """Where the files are that processes have mapped now."""
        for maps in glob.glob("/proc/[0-9]*/maps"):
            try:
                with open(maps) as f:
                    for line in f:
                        fields = line.split(None, 5)
                        if len(fields) == 6 and fields[5].startswith("/") and "x" in fields[1]:
                            path = fields[5].strip()
                            self.paths[os.path.basename(path)] = path
            except OSError:
                pass

    def is_root(self, frame):
        if re.sub(r"@.*", "", frame) in ROOT_NAMES:
            return True
        m = re.match(r"\[(.+)\+0x([0-9a-f]+)\]$", frame)
        if not m:
            return False
        name, offset = m.group(1), int(m.group(2), 16)
        if name.startswith("ld-linux"):
            return True
        if name not in self.ranges:
            try:
                self.ranges[name] = module_roots(self.paths[name])
            except (KeyError, OSError, struct.error):
                self.ranges[name] = []
        return any(a <= offset < b for a, b in self.ranges[name])


# ---- loads
# -----------------------------------------------------------------------------------------------

def need(*names):
    paths = [
        shutil.which(n) or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/" + n))), None)
        for n in names
    ]
    for n, p in zip(names, paths):
        if not p:
            raise h.Skip("no " + n)
    return paths


def forever(command):
    return h.start(["sh", "-c", "while :; do %s || exit 1; done" % command])


def big_file():
    files = glob.glob("/usr/lib/gcc/*/*/cc1") + ["/usr/bin/gdb", "/usr/bin/python3", "/bin/bash"]
    return next(f for f in files if os.path.exists(f))


def load_python3():
    if not os.path.exists("/usr/bin/python3"):
        raise h.Skip("no python3")
    code = (
        "import json, re\n"
        "def deep(n): return deep(n - 1) if n else json.loads(json.dumps([list(range(200)), "
        "{'a': re.sub('a+', 'b', 'aab' * 50)}]))\n"
        "while True: deep(50); sorted(range(1000), key=lambda x: -x)\n")
    h.start(["/usr/bin/python3", "-c", code])


def load_perl():
    need("perl")
    h.start([
        "perl", "-e",
        "sub f { my $n = shift; return $n ? f($n - 1) : join ',', sort { $b <=> $a } map { $_ * "
        "7 % 101 } 1 .. 300 } my $s; while (1) { $s = f(40); $s =~ s/1(\\d)/$1/g }"
    ])


def load_sqlite3():
    need("sqlite3")
    h.start([
        "sqlite3", ":memory:",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000000000) "
        "SELECT count(*), sum(length(printf('%d', x)) * x % 7) FROM c;"
    ])


def load_xz():
    need("xz")
    forever("xz -6 -T1 -c %s >/dev/null" % big_file())


def load_zstd():
    need("zstd")
    forever("zstd -q -15 -c %s >/dev/null" % big_file())


def load_grep():
    """Most samples are in code that PCRE2 makes."""
    (grep,) = need("grep")
    path = h.tmpfile("lines")
    with open(path, "w") as f:
        for i in range(400000):
            f.write("%d the quick brown fox jumps over foo@bar.example.com and others\n" % i)
    command = [grep, "-Pc", r"(\w+)@(\w+)\.(?:[a-z]+\.)*org|q(u|x)+i[^z]*?zz", path]
    if subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 2:
        raise h.Skip("grep has no PCRE2")
    h.start(["sh", "-c", 'while :; do "$@"; done', "sh"] + command)


def load_openssl():
    need("openssl")
    forever("openssl speed -seconds 1 sha256 rsa2048 ecdsap256 aes-256-cbc")


def load_cc1():
    need("gcc")
    path = h.tmpfile("big.c")
    with open(path, "w") as f:
        for i in range(1500):
            f.write(
                "int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) { if (a[i] %% "
                "%d) s += a[i] * %d; "
                "else switch (a[i] & 7) { case 1: s ^= i; break; case 2: s -= n; break; case 5: "
                "s *= 3; } } return s; }\n"
                % (i, i, i % 13 + 2, i))
    forever("gcc -O2 -S -o /dev/null " + path)


def load_gdb():
    need("gdb")
    h.start([
        "gdb", "-nx", "-batch", "-ex",
        "python [gdb.execute('info functions zz%d' % i, to_string=True) for i in range(10**9)]",
        "/usr/bin/gdb"
    ])


def load_node():
    need("node")
    h.start([
        "node", "-e",
        "function f(n) { return n ? f(n - 1) : "
        "JSON.parse(JSON.stringify([...Array(300).keys()])) } "
        "while (true) { f(30); 'aab'.repeat(100).replace(/a+/g, 'b'); "
        "[...Array(1000).keys()].sort((a, b) => b - a) }"
    ])


def load_postgres():
    initdb, server, psql = need("initdb", "postgres", "psql")
    pgdir = h.tmpfile("pg")
    os.mkdir(pgdir)
    os.chown(pgdir, 65534, 65534)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=" + pgdir]
    made = subprocess.run(nobody + [initdb, "-D", pgdir + "/db", "-A", "trust", "-N", "-U", "pg"],
                          capture_output=True, text=True, cwd=pgdir, timeout=60, check=False)
    if made.returncode != 0:
        raise h.Skip("initdb does not work here: " + (made.stderr.strip().splitlines() or [""])[-1])
    h.start(nobody + [server, "-D", pgdir + "/db", "-k", pgdir, "-c", "listen_addresses="],
            cwd=pgdir)
    query = ("select sum(a.x * b.x), count(distinct a.x % 97) "
             "from generate_series(1, 20000) a(x), generate_series(1, 100) b(x)")
    h.start(
        nobody + [
            "sh", "-c",
            "sleep 1; while :; do '%s' -q -h %s -U pg -d postgres -c '%s'; done" %
            (psql, pgdir, query)
        ], cwd=pgdir)


def load_redis_server():
    need("redis-server", "redis-benchmark")
    sock = h.tmpfile("redis.sock")
    h.start(["redis-server", "--port", "0", "--unixsocket", sock, "--save", ""])
    h.start(
        ["sh", "-c",
         "sleep 0.5; exec redis-benchmark -s %s -l -q -t set,get,lpush,zadd" % sock])


def load_nginx():
    (nginx,) = need("nginx")
    top = h.tmpfile("nginx")
    os.mkdir(top)
    os.chmod(top, 0o755)
    with open(top + "/index.html", "w") as f:
        f.write("x" * 20000)
    with open(top + "/conf", "w") as f:
        f.write(
            "daemon off; pid %s/pid; error_log %s/err;\nevents {}\nhttp { access_log %s/log; "
            "gzip on; gzip_types text/html; "
            "server { listen 127.0.0.1:18080; root %s; } }\n" % (top, top, top, top))
    h.start([nginx, "-c", top + "/conf"])
    h.start([
        "/usr/bin/python3", "-c", "import http.client, time\ntime.sleep(0.5)\nwhile True:\n"
        " c = http.client.HTTPConnection('127.0.0.1', 18080)\n for _ in range(100):\n"
        "  c.request('GET', '/index.html', headers={'Accept-Encoding': 'gzip'}); "
        "c.getresponse().read()\n"
    ])


BATCHES = [
    [("python3", load_python3), ("perl", load_perl), ("sqlite3", load_sqlite3), ("xz", load_xz),
     ("zstd", load_zstd), ("openssl", load_openssl),
     ("grep", load_grep)],
    [("cc1", load_cc1), ("gdb", load_gdb), ("node", load_node), ("postgres", load_postgres),
     ("redis-server", load_redis_server), ("nginx", load_nginx)],
]

# ---- the verdict
# -----------------------------------------------------------------------------------------

def judge(name, stacks, roots):
    """Share of the stacks that end in a root, and those that do not."""
    mine = [s for s in stacks if s.comm == name and h.user_frames(s)]
    # Inside execve(2) there is no user stack.
    mine = [s for s in mine if s.frames[0] != "[exec]"]
    bad = [s for s in mine if not roots.is_root(h.user_frames(s)[0])]
    n = h.total(mine)
    if n < 30:
        return h.fail("real-" + name, "%d samples" % n)
    share = 1 - h.total(bad) / n
    h.note("%-13s %5d samples, %6.2f %% reach their root, %6.2f %% say complete" % (
        name, n, 100 * share, 100 * (1 - h.total(s for s in mine if h.reason(s)) / n)))
    if share < 0.97:
        return h.fail(
            "real-" + name,
            "%.2f %% of %d reach their root; others: %s" % (100 * share, n, h.worst(bad, 3)))
    return h.ok("real-" + name)


def run_batch(batch, everything):
    roots, running = Roots(), []
    for name, load in batch:
        try:
            load()
            running.append(name)
        except h.Skip as e:
            h.skip("real-" + name, str(e))
    if not running:
        return
    time.sleep(2.5)
    timer = threading.Timer(SECONDS / 2, roots.collect)
    roots.collect()
    timer.start()
    stacks, stats = h.record(["-F", "99"], SECONDS)
    roots.collect()
    timer.join()
    h.stop_all()
    for name in running:
        judge(name, stacks, roots)
    users = [s for s in stacks if h.user_frames(s)]
    theirs = [s for s in users if s.comm in running]
    everything["theirs"] += h.total(theirs)
    everything["their_bad"] += h.total(s for s in theirs if not roots.is_root(h.user_frames(s)[0]))
    everything["users"] += h.total(users)
    everything["bad"] += [
        h.Stack(s.comm, (s.comm, ) + s.frames, s.count) for s in users
        if not roots.is_root(h.user_frames(s)[0])
    ]
    everything["total"] += stats["user_stacks"]["total"]
    everything["complete"] += stats["user_stacks"]["complete"]
    everything["complete"] += stats["user_stacks"]["bridged"]
    everything["errors"] += h.stats_errors(stats, stacks)


def check_real(name):
    e = {
        "theirs": 0, "their_bad": 0, "users": 0, "bad": [], "total": 0, "complete": 0, "errors": []
    }
    for batch in BATCHES:
        run_batch(batch, e)
    if not e["theirs"]:
        raise h.Skip("nothing to run")
    theirs = 1 - e["their_bad"] / e["theirs"]
    by_names, by_account = 1 - h.total(e["bad"]) / e["users"], e["complete"] / e["total"]
    h.note("these programs: %d user stacks, %.2f %% reach their root" % (e["theirs"], 100 * theirs))
    h.note("everything: %d user stacks, %.2f %% reach their root, %.2f %% counted so" %
           (e["users"], 100 * by_names, 100 * by_account))
    if e["bad"]:
        h.note("the commonest that do not: " + h.worst(e["bad"], 5))
    errors = e["errors"]
    if theirs < 0.99:
        errors.append("%.2f %% of their stacks reach their root" % (100 * theirs))
    if abs(by_names - by_account) > 0.01:
        errors.append("by names %.2f %%, by the account %.2f %%" %
                      (100 * by_names, 100 * by_account))
    h.check("real-overall", errors)


h.run_checks([check_real])
