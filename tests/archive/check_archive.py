#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The archive of release.sh on other systems: an empty root with busybox, one of musl, Debian 11.

In each: install.sh, names of C, Go and Python programs, the agent over TLS to a receiver that it
finds by name, serve, top, rows from code. scripts/check-archive.sh starts it in namespaces of its
own, so that its mounts end with it and it has port 53. Arguments: ROOT or ROOT-CHECK names.
"""

import contextlib
import functools
import http.client
import http.server
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter

import roots
from roots import harness, write

sys.path.insert(0, os.path.join(roots.TOP, "tests", "agent"))

import receivers  # noqa: E402

ARCHIVE = os.environ["ARCHIVE"]
NORMAL = os.path.join(roots.TOP, "build", "sfbpf")
SFBPF = "/usr/local/bin/sfbpf"
CA_FILES = {"nothing": "etc/pki/tls/certs/ca-bundle.crt", "musl": "etc/ssl/cert.pem",
            "bullseye": "etc/ssl/certs/ca-certificates.crt"}
CHAIN = {
    "spin-c": r"main;outer;middle;leaf",
    "spin-go": r"main\.main;main\.outer;main\.middle;main\.leaf",
    # Up to 3.10, calls go through C, whose frames have no file in parentheses.
    "python3": r"outer \(spin\.py\);([^;(]*;)*middle \(spin\.py\);([^;(]*;)*leaf \(spin\.py\)",
}


class Root:
    """A root directory, with the kernel's file systems and the archive in it."""

    def __init__(self, name):
        self.name = name
        self.dir = os.path.join(roots.WORK, name)
        why = self.dir + ".skip"
        if os.path.exists(why):
            with open(why) as f:
                raise harness.Skip(f.read())
        with open(self.dir + "/work/python") as f:
            self.python = f.read()
        for d in ("proc", "sys", "dev"):
            os.makedirs(os.path.join(self.dir, d), exist_ok=True)
            subprocess.run(["mount", "--rbind", "/" + d, os.path.join(self.dir, d)], check=True)
        self.ca = os.path.join(self.dir, CA_FILES[name])
        shutil.rmtree(self.dir + "/work/archive", ignore_errors=True)
        with tarfile.open(ARCHIVE) as t:
            t.extractall(self.dir + "/work/archive")
        self.archive = "/work/archive/" + os.listdir(self.dir + "/work/archive")[0]
        self.is_installed = False
        self.clean()

    def clean(self):
        for f in ("etc/resolv.conf", CA_FILES[self.name]):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.dir, f))

    def argv(self, *argv):
        return ["/usr/sbin/chroot", self.dir, *argv]

    def run(self, *argv, env=None, timeout=120):
        return subprocess.run(self.argv(*argv), capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=timeout, env=environment(env))

    def start(self, *argv, env=None, **kw):
        return harness.start(self.argv(*argv), env=environment(env), **kw)

    def installed(self):
        """With this archive's program, not that of an earlier run."""
        if not self.is_installed:
            self.run("/bin/sh", self.archive + "/install.sh")
            self.is_installed = True
        return self

    def files(self):
        found = set()
        for d, dirs, files in os.walk(self.dir):
            if d == self.dir:
                dirs[:] = [x for x in dirs if x not in ("proc", "sys", "dev", "work", "tmp")]
            found.update(os.path.join(d, f) for f in files)
        return found


def environment(more=None):
    return dict({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}, **(more or {}))


def said(p):
    return "exit status %d: %s" % (p.returncode, (p.stderr + p.stdout).strip()[-300:])


# ---- install.sh
# ------------------------------------------------------------------------------------------------

def check_install(root, name):
    errors = []
    sh = ["/bin/sh", root.archive + "/install.sh"]
    root.run(*sh, "--uninstall")
    before = root.files()
    for options, prefix, unit in (((), "/usr/local", None),
                                  (("--prefix=/usr", "--systemd"), "/usr",
                                   "/usr/lib/systemd/system/sfbpf-agent.service"),
                                  (("--prefix", "/opt/sfbpf", "--systemd"), "/opt/sfbpf",
                                   "/etc/systemd/system/sfbpf-agent.service")):
        p = root.run(*sh, *options)
        p = root.run(*sh, *options) if not p.returncode else p  # also over itself
        if p.returncode:
            return harness.check(name, ["install.sh %s: %s" % (options, said(p))])
        v = root.run(prefix + "/bin/sfbpf-top", "--version")
        if "sfbpf" not in root.run(prefix + "/bin/sfbpf", "--version").stdout:
            errors.append("%s/bin/sfbpf does not run: %s" % (prefix, said(v)))
        for f in ("share/man/man1/sfbpf-agent.1", "share/man/man1/sfbpf-serve.1",
                  "share/bash-completion/completions/sfbpf", "share/doc/sfbpf/agent.md"):
            if not os.path.exists("%s%s/%s" % (root.dir, prefix, f)):
                errors.append("no %s/%s" % (prefix, f))
        errors += unit_errors(root, unit, prefix) if unit else []
        p = root.run(*sh, "--uninstall", *options[:1 if "=" in "".join(options) else 2])
        left = sorted(root.files() - before)
        if p.returncode or left:
            errors.append("--uninstall %s: %s, left: %s" % (prefix, said(p), left[:4]))
    p = root.run(*sh, "--prefix", "here")
    if not p.returncode or "does not begin with /" not in p.stderr:
        errors.append("--prefix here: " + said(p))
    errors += destdir_errors(root, sh)
    if root.run(*sh).returncode:
        errors.append("the last installation failed")
    harness.check(name, errors)


def unit_errors(root, unit, prefix):
    if not os.path.exists(root.dir + unit):
        return ["no unit " + unit]
    with open(root.dir + unit) as f:
        text = f.read()
    want = "ExecStart=%s/bin/sfbpf agent --config /etc/sfbpf/agent.ini" % prefix
    p = root.run(prefix + "/bin/sfbpf", "agent", "--config", "/etc/sfbpf/agent.ini",
                 "--check-config")
    return ([] if want in text else ["%s has no %s" % (unit, want)]) + (
        ["--check-config: " + said(p)] if p.returncode else [])


def destdir_errors(root, sh):
    """A changed configuration stays; all else goes."""
    errors = []
    env = {"DESTDIR": "/tmp/dest"}
    shutil.rmtree(root.dir + "/tmp/dest", ignore_errors=True)
    p = root.run(*sh, "--systemd", env=env)
    ini = root.dir + "/tmp/dest/etc/sfbpf/agent.ini"
    if p.returncode or not os.path.exists(ini):
        return ["DESTDIR: " + said(p)]
    with open(ini, "a") as f:
        f.write("; changed\n")
    p = root.run(*sh, "--systemd", env=env)
    p = root.run(*sh, "--uninstall", env=env) if not p.returncode else p
    left = [os.path.join(d, f) for d, _, files in os.walk(root.dir + "/tmp/dest") for f in files]
    if p.returncode or left != [ini] or "kept" not in p.stdout:
        errors.append("DESTDIR --uninstall: %s, left: %s" % (said(p), left[:4]))
    return errors


# ---- Stacks
# ------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def load(root):
    """The programs of the root, the C program as its user `worker`."""
    c = ["/usr/sbin/chroot", "--userspec=1234:1234", root.dir, "/work/spin-c"]
    running = [harness.start(c), root.start(root.python, "/work/spin.py")]
    if os.path.exists(root.dir + "/work/spin-go"):
        running.append(root.start("/work/spin-go"))
    try:
        time.sleep(1)
        yield running
    finally:
        for p in running:
            harness.stop(p)


def folded(root, *options):
    """(stacks, errors) of a recording by the archive's program in the root."""
    p = root.run(SFBPF, "record", "-F", "199", "-o", "/tmp/o.folded", *options)
    if p.returncode:
        return {}, ["record %s: %s" % (" ".join(options), said(p))]
    return read_folded(root.dir + "/tmp/o.folded"), []


def read_folded(path):
    """{stack: samples}; the file is removed."""
    stacks = Counter()
    with open(path, errors="replace") as f:
        for line in f:
            stack, _, n = line.rpartition(" ")
            stacks[stack] += int(n)
    os.unlink(path)
    return stacks


def most(stacks):
    return max(stacks, key=stacks.get)[-200:] if stacks else "no stack"


def chain_errors(root, stacks):
    errors = []
    for program, chain in CHAIN.items():
        if program == "spin-go" and not os.path.exists(root.dir + "/work/spin-go"):
            continue
        # Other programs of this machine are called python3, too.
        mine = {k: v for k, v in stacks.items() if k.startswith(program) and
                (program != "python3" or "spin.py" in k)}
        right = sum(v for k, v in mine.items() if re.search(chain + "(;|$)", k))
        if not right or right < 0.9 * sum(mine.values()):
            errors.append("%s: %d of %d are %s, e.g. %s" %
                          (program, right, sum(mine.values()), chain, most(mine)))
    return errors


def check_record(root, name):
    with load(root):
        stacks, errors = folded(root, "3")
        harness.check(name, errors or chain_errors(root, stacks))


def check_user(root, name):
    """-u with a name of this root's /etc/passwd, whatever nsswitch.conf says."""
    with load(root):
        stacks, errors = folded(root, "-u", "worker", "1")
        others = [k for k in stacks if not k.startswith("spin-c")]
        p = root.run(SFBPF, "record", "-u", "nobody-here", "-o", "/tmp/x", "1")
        if not errors and (not stacks or others):
            errors.append("-u worker: %d stacks, others: %s" % (len(stacks), others[:2]))
        if p.returncode != 2 or "no user 'nobody-here'" not in p.stderr:
            errors.append("-u nobody-here: " + said(p))
        harness.check(name, errors)


def check_inline(root, name):
    with load(root) as running:
        stacks, errors = folded(root, "--inline", "--lines", "-p", str(running[0].pid), "2")
        if not errors and not any(re.search(r"leaf[^;]*;inlined_leaf[^;]*_\[i\]", k)
                                  for k in stacks):
            errors.append("no inlined frame: " + most(stacks))
        if not errors and not any("spin.c:" in k for k in stacks):
            errors.append("no lines: " + most(stacks))
        harness.check(name, errors)


def check_capabilities(root, name):
    """File capabilities: the loader and /proc/self/exe are the usual traps."""
    setcap = shutil.which("setcap") or "/usr/sbin/setcap"
    if not os.path.exists(setcap):
        raise harness.Skip("no setcap")
    program = "/work/caps/sfbpf"
    os.makedirs(root.dir + "/work/caps", exist_ok=True)
    shutil.copy(root.dir + SFBPF, root.dir + program)
    caps = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,cap_dac_read_search," \
        "cap_syslog+ep"
    p = subprocess.run([setcap, caps, root.dir + program], capture_output=True)
    if p.returncode:
        raise harness.Skip("setcap failed here")
    out = root.dir + "/tmp/nobody"
    os.makedirs(out, exist_ok=True)
    os.chown(out, 65534, 65534)
    with load(root):
        p = subprocess.run(["/usr/sbin/chroot", "--userspec=65534:65534", root.dir,
                            program, "record", "-o", "/tmp/nobody/o.folded", "2"],
                           capture_output=True, text=True, env=environment())
        if p.returncode:
            return harness.check(name, ["record: " + said(p)])
        harness.check(name, chain_errors(root, read_folded(out + "/o.folded")))


class DebugServer:
    """The debug file of one program, as debuginfod serves it."""

    def __init__(self, program, debug):
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True).stdout
        path = "/buildid/%s/debuginfo" % re.search(r"Build ID: (\w+)", notes)[1]
        self.asked = 0
        with open(debug, "rb") as f:
            body = f.read()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.asked += handler.path == path
                handler.send_response(200 if handler.path == path else 404)
                handler.send_header("Content-Length", len(body) if handler.path == path else 0)
                handler.end_headers()
                if handler.path == path:
                    handler.wfile.write(body)

            def log_message(handler, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


def check_debuginfod(root, name):
    """Names of a stripped program from a server that is found by name."""
    program = root.dir + "/work/stripped"
    shutil.copy(root.dir + "/work/spin-c", program)
    subprocess.run(["strip", program], check=True)
    server = DebugServer(program, root.dir + "/work/spin-c")
    shutil.rmtree(root.dir + "/tmp/cache", ignore_errors=True)
    running = root.start("/work/stripped")
    env = {"DEBUGINFOD_URLS": "http://receiver.test:%d/" % server.server.server_address[1],
           "DEBUGINFOD_CACHE_PATH": "/tmp/cache"}
    p = root.run(SFBPF, "record", "--debuginfod", "-p", str(running.pid), "-o", "/tmp/o.folded",
                 "2", env=env)
    server.server.shutdown()
    errors = ["record: " + said(p)] if p.returncode else []
    if not errors:
        stacks = read_folded(root.dir + "/tmp/o.folded")
        if not any("main;outer;middle;leaf" in k for k in stacks):
            errors.append("no names, %d requests: %s" % (server.asked, most(stacks)))
    harness.stop(running)
    harness.check(name, errors)


def check_top(root, name):
    with load(root):
        p = root.run(SFBPF, "top", "-b", "-n", "1", env={"LANG": "de_DE"})
        errors = [] if not p.returncode and "leaf" in p.stdout else ["top -b: " + said(p)]
    harness.check(name, errors)


def screen(root, env):
    """What the live top writes to a terminal until q."""
    pid, fd = pty.fork()
    if not pid:
        argv = root.argv(SFBPF, "top")
        os.execve(argv[0], argv, environment(env))
    text, end = b"", time.monotonic() + 20
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                text += os.read(fd, 65536)
            except OSError:
                break
        if b"FUNCTION" in text and b"leaf" in text:
            os.write(fd, b"q")
            end = min(end, time.monotonic() + 5)
            time.sleep(0.1)
    os.close(fd)
    return text, os.waitpid(pid, 0)[1]


def check_terminals(root, name):
    """Live, in terminals whose entries this root may not have, with and without UTF-8."""
    errors = []
    with load(root):
        for term in ("xterm", "xterm-256color", "screen", "tmux", "linux", "vt100", "unheard-of"):
            for lang in ("C.UTF-8", "C", "de_DE"):
                if lang != "C.UTF-8" and term not in ("xterm", "vt100"):
                    continue
                text, status = screen(root, {"TERM": term, "LANG": lang})
                plain = all(b < 0x80 for b in text)
                if status or b"leaf" not in text:
                    errors.append("%s, %s: status %d, %r" % (term, lang, status, text[-100:]))
                elif plain == (lang == "C.UTF-8"):
                    errors.append("%s, %s: %s" % (term, lang, "ASCII" if plain else "not ASCII"))
                elif lang == "C.UTF-8" and "▾".encode() not in text:
                    errors.append("%s: no triangle" % term)
    harness.check(name, errors)


def check_doctor(root, name):
    p = root.run(SFBPF, "doctor")
    errors = [line for line in p.stdout.splitlines() if line.startswith("FAIL")]
    if "ok    BTF" not in p.stdout or "ok    unwinding" not in p.stdout:
        errors.append("doctor: " + said(p))
    harness.check(name, errors)


def check_inspect(root, name):
    """Rows of each C library are those of the normal build, those from code among them."""
    if not os.path.exists(NORMAL):
        raise harness.Skip("no normal build")
    errors = []
    libc = [f for f in ("/lib/ld-musl-x86_64.so.1", "/lib/x86_64-linux-gnu/libc.so.6",
                        "/bin/busybox") if os.path.isfile(root.dir + f)]
    for f in libc:
        for options in ((), ("--rows=code",)):
            ours = root.run(SFBPF, "inspect", *options, f)
            theirs = subprocess.run([NORMAL, "inspect", *options, root.dir + f],
                                    capture_output=True, text=True, errors="replace")
            if ours.returncode or ours.stdout != theirs.stdout.replace(root.dir, ""):
                errors.append("%s %s: %s" % (f, options, said(ours)))
            elif len(ours.stdout) < 1000 and options:
                errors.append("%s: no rows from code" % f)
    harness.check(name, errors if libc else ["no C library"])


# ---- Network
# ------------------------------------------------------------------------------------------------

def certificate():
    crt, key = harness.tmpfile("receiver.crt"), harness.tmpfile("receiver.key")
    if not os.path.exists(crt):
        names = "subjectAltName=DNS:receiver.test,DNS:dns.receiver.test"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=receiver", "-addext", names, "-keyout", key, "-out", crt],
                       check=True, capture_output=True)
    return crt, key


class Dns:
    """Knows one name, dns.receiver.test."""

    def __init__(self):
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            q, peer = self.socket.recvfrom(512)
            end = q.index(b"\0", 12) + 1
            known = q[12:end].lower() == b"\3dns\10receiver\4test\0"
            wants_a = q[end:end + 2] == b"\0\1"
            answer = (b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if known and wants_a else b"")
            self.asked += known
            head = q[:2] + (b"\x81\x80" if known else b"\x81\x83") + b"\0\1" + \
                (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
            self.socket.sendto(head + q[12:end + 4] + answer, peer)


@functools.cache
def dns():
    return Dns()


def agent(root, *options, env=None):
    return root.run(SFBPF, "agent", "--once", "--interval", "2s", "-F", "99",
                    "--metrics-address", "none", "--spool", "/tmp/spool", "--timeout", "10s",
                    *options, env=env)


def sent_chains(root, messages):
    """Errors if the windows do not have the names of the programs that run."""
    text = set()
    for m in messages:
        text.update(m.dictionary.string_table)
    want = {"middle", "leaf", "outer"} | (
        {"main.leaf"} if os.path.exists(root.dir + "/work/spin-go") else set())
    return ["no %s in %d windows" % (sorted(want - text), len(messages))] if want - text else []


def deliver(root, receiver, host, *options):
    url = "https://%s:%d" % (host, receiver.port)
    shutil.rmtree(root.dir + "/tmp/spool", ignore_errors=True)
    p = agent(root, "--endpoint", url, *options)
    if p.returncode:
        return ["%s: %s" % (url, said(p))]
    return ["%s: %s" % (url, e) for e in sent_chains(root, [g.message for g in receiver.got])]


def check_agent(root, name):
    """OTLP over HTTP and gRPC, both over TLS, to a name of /etc/hosts and of a name server; the
    certificate's authority lies where a distribution keeps it.
    """
    receivers.pb()
    crt, key = certificate()
    errors = []
    with load(root):
        for proto, make in (("otlphttp", lambda: receivers.HttpReceiver(
                                tls=(crt, key), decode=receivers.decode_otlp)),
                            ("otlpgrpc", lambda: receivers.GrpcReceiver((crt, key)))):
            root.clean()
            r = make()
            p = agent(root, "--protocol", proto, "--endpoint",
                      "https://receiver.test:%d" % r.port)
            if not p.returncode or "no certificates of authorities" not in p.stderr or r.got:
                errors.append("%s without an authority: %s" % (proto, said(p)))
            os.makedirs(os.path.dirname(root.ca), exist_ok=True)
            shutil.copy(crt, root.ca)
            errors += deliver(root, r, "receiver.test", "--protocol", proto)
            r.got.clear()
            before = dns().asked
            write(root.dir, "etc/resolv.conf", "nameserver 127.0.0.1\n")
            errors += deliver(root, r, "dns.receiver.test", "--protocol", proto)
            if dns().asked == before:
                errors.append("the name server was not asked")
            r.stop()
    root.clean()
    with load(root):
        p = agent(root, "--endpoint", "https://elsewhere.test:1")
    if p.returncode != 1 or "resolve" not in p.stderr.lower():
        errors.append("a name that nobody knows: " + said(p))
    harness.check(name, errors)


def check_serve(root, name):
    errors = []
    shutil.rmtree(root.dir + "/tmp/windows", ignore_errors=True)
    with load(root):
        p = agent(root, "--protocol", "file", "--endpoint", "/tmp/windows")
    if p.returncode:
        return harness.check(name, ["agent --protocol file: " + said(p)])
    s = root.start(SFBPF, "serve", "--listen", "localhost:0", "/tmp/windows",
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        url = s.stdout.readline().decode().strip()
        m = re.match(r"http://(localhost|127\.0\.0\.1):(\d+)(/.*)?$", url)
        if not m:
            return harness.check(name, ["serve says %r, %s" % (url, s.stderr.read()[-200:])])
        c = http.client.HTTPConnection("localhost", int(m[2]), timeout=30)
        c.request("GET", m[3] or "/")
        r = c.getresponse()
        page = r.read()
        if r.status != 200 or b"<html" not in page.lower():
            errors.append("GET / is %d, %d bytes" % (r.status, len(page)))
        # It has looked up a name and a user by now: nothing of this root's C library came with it.
        with open("/proc/%d/maps" % s.pid) as f:
            errors += ["serve maps " + line.split()[-1] for line in f if ".so" in line][:3]
    finally:
        harness.stop(s)
    harness.check(name, errors)


CHECKS = {
    "install": check_install, "record": check_record, "user": check_user, "inline": check_inline,
    "capabilities": check_capabilities, "debuginfod": check_debuginfod, "top": check_top,
    "terminals": check_terminals, "doctor": check_doctor, "inspect": check_inspect,
    "agent": check_agent, "serve": check_serve,
}


def main():
    wanted = sys.argv[1:]
    for root_name in roots.ALL:
        names = [c for c in CHECKS if not wanted or root_name in wanted or
                 "%s-%s" % (root_name, c) in wanted]
        if not names:
            continue
        try:
            root = Root(root_name)
        except (harness.Skip, OSError, subprocess.CalledProcessError) as e:
            harness.skip("archive-" + root_name, str(e))
            continue
        for c in names:
            full = "archive-%s-%s" % (root_name, c)
            harness.attempt(harness.run_check, lambda full, c=c: CHECKS[c](
                root if c == "install" else root.installed(), full), full)
    return harness.exit_status()


if __name__ == "__main__":
    sys.exit(main())
