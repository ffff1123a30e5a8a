#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent as a service: configuration, reload, privileges, metrics, systemd's protocol and unit,
budgets, names of services.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
from collections import Counter

from receivers import HttpReceiver, decode_otlp, free_port, harness, pb
import agents
import receivers

SIX = {
    "bpf": 39, "perfmon": 38, "sys_ptrace": 19, "checkpoint_restore": 40, "dac_read_search": 2,
    "syslog": 34
}
MASK = sum(1 << n for n in SIX.values())


def run(*argv, **kw):
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, **kw)


def write(name, text):
    path = harness.tmpfile(name)
    with open(path, "w") as f:
        f.write(text)
    return path


def check_config(name):
    errors = []
    good = write(
        "good.ini",
        "[agent]\ninterval = 7s\n[headers]\nAuthorization = Bearer secret\n[labels]\nteam = blue\n")
    for argv, code, want in ((("--config", good), 0, "interval = 7s"),
                             (("--config", good, "--interval", "3s"), 0, "interval = 3s"),
                             (("--config", write("bad.ini", "[agent]\ninterval = soon\n")), 2,
                              "bad.ini:2"), (("--config", "/does/not/exist"), 2,
                                             "No such file"), (("--config", "/tmp"), 2,
                                                               "Is a directory"),
                             (("--config", write("twice.ini", "[agent]\nhost = a\nhost = b\n")), 2,
                              "twice.ini:3"), (("--user", "no-such-user"), 2, "no user"),
                             (("--window-share", "101"), 2, "window-share"),
                             (("--endpoint", "http://a:99999"), 2,
                              "port"), (("--label", "a b=1"), 2,
                                        "label's name"), (("--spool-size", "64K"), 0, "= 65536"),
                             (("--protocol", "carrier-pigeon"), 2,
                              "carrier-pigeon"), (("--interval", "12abc"), 2, "12abc"),
                             (("--endpoint", "localhost:4318"), 2,
                              "http://"), (("--spool-size", "-1"), 2,
                                           "-1"), (("--label", "novalue"), 2,
                                                   "novalue"), (("operand", ), 2, "operand")):
        p = run(harness.SFBPF, "agent", "--check-config", *argv)
        if p.returncode != code or want not in p.stdout + p.stderr:
            errors.append("%s: exit status %d: %s" % (argv, p.returncode,
                                                      (p.stdout + p.stderr)[:200]))
        if "secret" in p.stdout:
            errors.append("a secret is shown")
    harness.check(name, errors[:3])


def status(pid, tid):
    with open("/proc/%d/task/%d/status" % (pid, tid)) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def privilege_errors(a):
    """Main and loader thread keep the six, those that talk none; nothing can be gained back."""
    e, none = [], 0
    tids = [int(t) for t in os.listdir("/proc/%d/task" % a.p.pid)]
    for tid in tids:
        st = status(a.p.pid, tid)
        eff, prm, bnd, amb, inh = (int(st[k], 16)
                                   for k in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh"))
        if (eff | prm | inh) & ~MASK or amb or (bnd & ~MASK and os.getuid() == 0 and
                                                not a.prefixed):
            e.append("thread %d: CapEff %x CapPrm %x CapBnd %x CapAmb %x CapInh %x" %
                     (tid, eff, prm, bnd, amb, inh))
        none += eff == 0 and prm == 0
        if st["NoNewPrivs"] != "1" or st["Seccomp"] != "2":
            e.append("thread %d: NoNewPrivs %s Seccomp %s" % (tid, st["NoNewPrivs"], st["Seccomp"]))
    if none != 3 or len(tids) != 5:
        e.append("%d of %d threads without capabilities" % (none, len(tids)))
    return e


def sees(r, path, suffix):
    """A mapped file of that path, and a function whose name ends so and is one."""
    files, named = set(), set()
    for g in r.got:
        d = g.message.dictionary
        files |= {d.string_table[m.filename_strindex] for m in d.mapping_table[1:]}
        named |= {d.string_table[f.name_strindex] for f in d.function_table}
    return any(path in f
               for f in files) and any(n.endswith(suffix) and not n.startswith("[") for n in named)


def check_privileges(name):
    """As root, as root that becomes nobody, and as nobody with the six capabilities."""
    pb()
    caps = ",".join("+" + c for c in SIX)
    spool = harness.tmpfile("nobody")
    os.makedirs(spool, exist_ok=True)
    os.chmod(harness.tmpdir(), 0o755)
    shutil.chown(spool, "nobody")
    binary = harness.tmpfile("sfbpf")     # nobody may not be able to reach the build
    shutil.copy(harness.SFBPF, binary)
    cases = {
        "root": ((), ()),
        "user": ((), ("--user", "nobody")),
        "nobody": (("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
                    "--inh-caps=-all," + caps, "--ambient-caps=-all," + caps,
                    "--bounding-set=-all," + caps), ("--spool", os.path.join(spool, "s"))),
    }
    busy = agents.load()
    for case, (prefix, options) in cases.items():
        r = HttpReceiver(decode=decode_otlp)
        a = agents.Agent("--endpoint", r.url, *options, prefix=prefix, copy=False,
                         env={"SUDO_UID": "12345", "SUDO_GID": "12345"})
        a.argv[len(prefix)] = binary
        a.prefixed = bool(prefix)
        a.start().wait(lambda: len(r.got) >= 2, "two windows through")
        errors = privilege_errors(a)
        try:
            a.wait(lambda: sees(r, "python3", "_[k]"),
                   "to see python3's file and a named kernel function")
        except ValueError as e:
            errors.append(str(e))
        st = status(a.p.pid, a.p.pid)
        if case != "root" and st["Uid"].split()[0] == "0":
            errors.append("still root")
        if len(set(st["Uid"].split())) != 1 or len(set(st["Gid"].split())) != 1:
            errors.append("a way back to another user: Uid %s, Gid %s" % (st["Uid"], st["Gid"]))
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
        harness.check("%s-%s" % (name, case), errors[:3])
        r.stop()
    for p in busy:
        harness.stop(p)


def check_without_capabilities(name):
    """Exit status 3, and what is missing."""
    p = run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
            "--inh-caps=-all", "--bounding-set=-all",
            shutil.copy(harness.SFBPF,
                        harness.tmpfile("sfbpf")), "agent", "--once", "--metrics-address", "none")
    harness.check(name, [] if p.returncode == 3 and "CAP_BPF" in p.stderr else
                  ["exit status %d: %s" % (p.returncode, p.stderr[-300:])])


def silent_client_errors(a, n):
    """/healthz beside n clients that say nothing. The best of five: a loaded machine can take the
    CPU away.
    """
    silent = [socket.create_connection(("127.0.0.1", a.port), 3) for _ in range(n)]
    took = []
    for _ in range(5):
        start = time.monotonic()
        a.get("/healthz")
        took.append(time.monotonic() - start)
    for s in silent:
        s.close()
    return ["/healthz took %.0f ms beside %d silent clients" %
            (1000 * min(took), n)] if min(took) > 0.2 else []


def not_ready(a):
    """The answer of /readyz: its status and text."""
    try:
        return 200, a.get("/readyz")
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def check_host_gaps(name):
    """In a namespace of its own, or without a capability: one warning, a gauge, not ready."""
    errors = []
    cases = {
        "": (), "pid_namespace": ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        "cgroup_namespace": ("unshare", "--cgroup"),
        "cap_dac_read_search": ("setpriv", "--bounding-set=-dac_read_search,-dac_override",
                                "--inh-caps=-dac_read_search"),
    }
    for gap, prefix in cases.items():
        r = HttpReceiver()
        a = agents.Agent("--endpoint", r.url, copy=False, prefix=prefix)
        a.start().wait_started()
        a.wait(lambda: not_ready(a)[1] != "starting\n", "to an answer of /readyz")
        code, text = not_ready(a)
        gaps = {k.split('"')[1] for k, v in a.metric("host_gap").items() if v}
        warned = re.findall(r'gap="?(\w+)', a.text())
        if a.get("/healthz") != "ok\n":
            errors.append("%s: not healthy" % gap)
        want = {gap} - {""}
        # A CI machine may be a container that has gaps of its own.
        if not want:
            own = gaps
        if gaps - own != want - own or sorted(warned) != sorted(gaps):
            errors.append("%s: gauges %s, warnings %s" % (gap, gaps, warned))
        if (code == 200) != (not gaps) or any(g not in text for g in gaps):
            errors.append("%s: readyz %d %s" % (gap, code, text))
        a.kill()
    harness.check(name, errors)


def check_kptr(name):
    """Kernel frames have names whatever kernel.kptr_restrict is, so the agent is ready."""
    path = "/proc/sys/kernel/kptr_restrict"
    with open(path) as f:
        before = f.read()
    busy, errors = harness.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=64k"],
                                 stderr=subprocess.DEVNULL), []
    r = HttpReceiver()
    a = agents.Agent("--endpoint", r.url)
    try:
        with open(path, "w") as f:
            f.write("2")
        a.start().wait_started()
        a.wait(lambda: not_ready(a)[1] != "starting\n", "to an answer of /readyz")
        a.wait(lambda: a.metric("windows_total") > 5, "windows")
        if not_ready(a) != (200, "ok\n") or "kernel" in a.text():
            errors.append("%s, the log: %s" % (not_ready(a), a.text()[-300:]))
        doctor = run(harness.SFBPF, "doctor").stdout
        if not re.search("ok +kernel symbols", doctor):
            errors.append(doctor[-300:])
        a.stop()
    finally:
        with open(path, "w") as f:
            f.write(before)
        harness.stop(busy)
    stacks = sum(receivers.copies(a.copy).values(), Counter())
    kernel = [f for s in stacks if s.startswith("dd") for f in s.split(";") if "_[k]" in f]
    if not kernel or any("0x" in f for f in kernel):
        errors.append("frames of the kernel: %s" % kernel[:5])
    r.stop()
    harness.check(name, errors)


def check_kubernetes(name):
    """With exactly the rights of packaging/kubernetes, from a cgroup namespace of its own: nothing
    is missing, and other users' stacks are complete.
    """
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "packaging/kubernetes/sfbpf-agent.yaml")) as f:
        text = f.read()
    caps = re.split(r",\s+", re.search(r"add: \[([^]]*)\]", text)[1].lower())
    command = re.search(r"command: \[(.*)\]", text)[1].split(", ")
    # Of init, which some machines protect even from root: any process of the host will do.
    command[1] = "--cgroup=/proc/%d/ns/cgroup" % os.getpid()
    prefix = ["unshare", "--cgroup", "setpriv", "--bounding-set=-all,+" + ",+".join(caps),
              "--inh-caps=-all", "--no-new-privs"] + command[:command.index("sfbpf")]
    busy = harness.start(["/usr/bin/python3", "-c", "while True: sum(range(1000))"], user="nobody",
                         cwd="/")
    r, errors = HttpReceiver(), []
    a = agents.Agent("--endpoint", r.url, prefix=prefix)
    a.start().wait_started().wait(lambda: a.metric("windows_total") >= 4, "four windows")
    gaps = {k for k, v in a.metric("host_gap").items() if v}
    stacks = a.metric("stacks_total")
    if "hostPID: true" not in text or gaps:
        errors.append("gaps: %s" % gaps)
    if stacks['{end="complete"}'] < 0.9 * sum(stacks.values()):
        errors.append("stacks: %s" % {k: v for k, v in stacks.items() if v})
    with open("/proc/%d/status" % a.p.pid) as f:
        held = int(re.search(r"CapEff:\s*(\w+)", f.read())[1], 16)
    if held >> 21 & 1:
        errors.append("the agent keeps CAP_SYS_ADMIN")
    a.stop()
    harness.stop(busy)
    harness.check(name, errors)


def check_metrics(name):
    r = HttpReceiver()
    a = agents.Agent("--endpoint", r.url, copy=False)
    busy = agents.load()
    a.start().wait(lambda: len(r.got) >= 3, "three windows through")
    page, errors = a.get(), []
    if shutil.which("promtool"):
        p = run("promtool", "check", "metrics", input=page)
        if p.returncode or p.stderr.strip():
            errors.append("promtool: " + (p.stdout + p.stderr)[:300])
    else:
        harness.skip(name + "-promtool", "no promtool")
    if a.get("/healthz") != "ok\n":
        errors.append("healthz: " + a.get("/healthz"))
    if not a.metric("samples_total") >= a.metric("window_samples_total") > 0 or a.metric(
            "bodies_delivered_total") < 3:
        errors.append("the numbers do not grow")
    for attack in (b"", b"GET /metrics", b"POST / HTTP/1.1\r\n\r\n", b"\0" * 5000,
                   b"GET /x HTTP/1.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", a.port), 3) as s:
            try:
                s.sendall(attack)
                s.shutdown(socket.SHUT_WR)
                s.recv(100)
            except OSError:     # it may have hung up already
                pass
    if "sfbpf_agent_build_info" not in a.get():
        errors.append("it does not answer any more")
    errors += [e for n in (12, 200) for e in silent_client_errors(a, n)]
    with open("/proc/net/tcp") as f:
        listening = [
            l.split()[1] for l in f
            if l.split()[3] == "0A" and l.split()[1].endswith(":%04X" % a.port)
        ]
    if listening != ["0100007F:%04X" % a.port]:
        errors.append("listens on %s" % listening)
    a.stop()
    for p in busy:
        harness.stop(p)
    r.stop()
    harness.check(name, errors)


def check_prometheus(name):
    """The real one scrapes it and answers a query."""
    binary = shutil.which("prometheus")
    if not binary:
        raise harness.Skip("no prometheus")
    import urllib.parse
    import urllib.request
    a = agents.Agent("--endpoint", "http://127.0.0.1:1", copy=False)
    a.start().wait_started()
    port = free_port()
    config = write(
        "prometheus.yml",
        "global: {scrape_interval: 500ms}\nscrape_configs:\n- job_name: sfbpf\n  static_configs:\n"
        "  - targets: ['127.0.0.1:%d']\n" % a.port)
    prom = harness.start([
        binary, "--config.file", config, "--storage.tsdb.path",
        harness.tmpfile("tsdb"), "--web.listen-address",
        "127.0.0.1:%d" % port
    ])
    query = "http://127.0.0.1:%d/api/v1/query?query=" % port + urllib.parse.quote(
        'sfbpf_agent_windows_total{job="sfbpf"}')
    end, value = time.monotonic() + 20, None
    while time.monotonic() < end and not value:
        time.sleep(0.3)
        try:
            with urllib.request.urlopen(query, timeout=2) as f:
                value = [
                    float(x["value"][1]) for x in json.load(f)["data"]["result"]
                    if float(x["value"][1]) > 0
                ]
        except OSError:
            pass
    harness.stop(prom)
    a.stop()
    harness.check(name, [] if value else ["the query had no answer"])


def check_reload(name):
    """SIGHUP: a new endpoint and labels are used; a file that is wrong changes nothing, and is
    said.
    """
    pb()
    first, second = HttpReceiver(decode=decode_otlp), HttpReceiver(decode=decode_otlp)
    text = "[delivery]\nendpoint = %s\n[labels]\nrelease = %d\n"
    ini = write("reload.ini", text % (first.url, 1))
    a = agents.Agent("--config", ini, copy=False)
    busy = agents.load()
    errors = []
    a.start().wait(lambda: first.got, "a window through")
    write("reload.ini", "[delivery]\nendpoint = nonsense\n")
    a.p.send_signal(signal.SIGHUP)
    a.wait(lambda: "not reloaded" in a.text(), "to refuse it")
    n = len(first.got)
    a.wait(lambda: len(first.got) > n, "on with the old one")
    write("reload.ini", text % (second.url, 2))
    a.p.send_signal(signal.SIGHUP)
    a.wait(lambda: len(second.got) > 1, "to the new one")
    attrs = {
        x.key: x.value.string_value
        for x in second.got[-1].message.resource_profiles[0].resource.attributes
    }
    if attrs.get("release") != "2":
        errors.append("labels %s" % attrs)
    if a.metric("reloads_total") != 1 or a.metric("reload_errors_total") != 1:
        errors.append("counted %s and %s" %
                      (a.metric("reloads_total"), a.metric("reload_errors_total")))
    a.stop()
    for p in busy:
        harness.stop(p)
    for r in (first, second):
        r.stop()
    harness.check(name, errors)


def check_notify(name):
    """systemd's protocol, with us as systemd."""
    path = harness.tmpfile("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(30)
        ini = write("notify.ini", "")
        a = agents.Agent(
            "--config", ini, "--endpoint", "http://127.0.0.1:1", "--log-format", "json",
            "--shutdown", "0s", copy=False,
            env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000", "JOURNAL_STREAM": "1:1"})
        a.start()
        seen = []
        while "READY=1" not in seen or "WATCHDOG=1" not in seen:
            seen.append(s.recv(100).decode())
        a.p.send_signal(signal.SIGHUP)
        while "RELOADING=1" not in seen:
            seen.append(s.recv(100).decode())
        a.stop()
        s.setblocking(False)
        try:
            while True:
                seen.append(s.recv(100).decode())
        except BlockingIOError:
            pass
    errors = [] if "STOPPING=1" in seen else ["seen: %s" % seen]
    for line in a.text().splitlines():
        m = re.match(r"<[3-7]>(\{.*\})$", line)
        if not m or "msg" not in json.loads(m.group(1)):
            errors.append("log line: " + line)
    harness.check(name, errors[:2])


# A systemd that runs, for scripts which ask it: it writes down what they want.
SYSTEMD = """set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/bin
for n in systemctl deb-systemd-invoke; do
	printf '#!/bin/sh\\necho %s "$@"\\n' "$n" > /run/bin/$n
done
[ "$1" = deb ] || rm /run/bin/deb-systemd-invoke
shift
chmod 755 /run/bin/*
PATH=/run/bin exec "$@"
"""


def asked_of_systemd(kind, *argv):
    r = run("unshare", "-m", "sh", "-c", SYSTEMD, "sh", kind, *argv)
    return [r.stderr] if r.returncode else r.stdout.splitlines()


def check_upgrade(name):
    """The package's scripts restart an agent that runs, at an upgrade only."""
    scripts = os.path.join(harness.TOP, "packaging", "deb")
    restart = "try-restart sfbpf-agent.service"
    reload, stop = "systemctl daemon-reload", "systemctl stop sfbpf-agent.service"
    errors = []
    for kind, script, args, want in (
        ("deb", "postinst", ("configure", ""), [reload]),
        ("deb", "postinst", ("configure", "0.1.0"), [reload, "deb-systemd-invoke " + restart]),
        ("other", "postinst", ("configure", "0.1.0"), [reload, "systemctl " + restart]),
        ("deb", "prerm", ("upgrade", "0.2.0"), []), ("deb", "prerm", ("remove", ), [stop]),
        ("deb", "postrm", ("upgrade", "0.2.0"), [reload])):
        got = asked_of_systemd(kind, "/bin/sh", os.path.join(scripts, script), *args)
        if got != want:
            errors.append("%s %s: %s" % (script, " ".join(args), got))
    harness.check(name, errors)


def check_unit(name):
    unit = os.path.join(harness.TOP, "packaging", "sfbpf-agent.service")
    if not shutil.which("systemd-analyze"):
        raise harness.Skip("no systemd-analyze")
    with open(unit) as f:
        here = write("sfbpf-agent.service", f.read().replace("/usr/bin/sfbpf", harness.SFBPF))
    errors = []
    p = run("systemd-analyze", "verify", "--man=no", here)
    if p.returncode or p.stderr.strip():
        errors.append("verify: " + p.stderr[:300])
    p = run("systemd-analyze", "security", "--offline=true", "--threshold=30", here)
    m = re.search(r"exposure level for \S+: ([0-9.]+)", p.stdout)
    if p.returncode or not m or float(m.group(1)) > 3:
        errors.append("security: %s %s" % (m and m.group(1), p.stderr[:200]))
    harness.check(name, errors)
    ini = os.path.join(harness.TOP, "packaging", "agent.ini")
    p = run(harness.SFBPF, "agent", "--config", ini, "--check-config")
    harness.check(name + "-configuration", [] if p.returncode == 0 else [p.stderr])


def check_budget(name):
    """A CPU limit that cannot be kept: fewer samples, and it says so; a memory limit below what it
    has: symbols are forgotten.
    """
    a = agents.Agent("--endpoint", "http://127.0.0.1:1", "--memory-limit", "2M", copy=False)
    a.argv += ["--cpu-limit", "0.01"]
    busy = agents.load()
    errors = []
    a.start().wait_started()
    a.wait(lambda: a.metric("throttled_total") >= 3, "to sample less often")
    hz = a.metric("frequency_hertz")
    if not 1 <= hz < 25 or "above the CPU limit" not in a.text():
        errors.append("%g Hz" % hz)
    before, start = a.metric("samples_total"), time.monotonic()
    time.sleep(1.5)
    rate = (a.metric("samples_total") - before) / (time.monotonic() - start)
    if rate > os.cpu_count() * hz * 1.3 + 2:
        errors.append("%.0f samples a second at %g Hz" % (rate, hz))
    a.wait(lambda: a.metric("symbols_forgotten_total") >= 1, "to forget symbols")
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


# Maps a new file after another, each a copy of a large library.
CHURN = """import ctypes, os, shutil, sys, time
n = 0
while True:
    n += 1
    copy = "%s/churn-%d.so" % (sys.argv[1], n)
    shutil.copy(sys.argv[2], copy)
    library = ctypes.CDLL(copy)
    os.unlink(copy)
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        library.ZSTD_versionNumber()
"""


def flood(a, stop):
    while not stop.is_set():
        try:
            a.get()
        except OSError:
            pass
        time.sleep(0.003)


def check_budget_of_others(name):
    """Those who ask for pages and map new files without end do not make the agent sample less."""
    a = agents.Agent("--endpoint", "http://127.0.0.1:1", copy=False)
    a.argv += ["--cpu-limit", "2", "-F", "19", "--interval", "1s"]
    where = harness.tmpfile("churn")
    os.mkdir(where)
    os.chmod(where, 0o777)
    a.start().wait_started()
    library = next((p for p in ("/lib/x86_64-linux-gnu/libzstd.so.1",
                                "/lib/aarch64-linux-gnu/libzstd.so.1") if os.path.exists(p)), None)
    running = [
        harness.start(["/usr/bin/python3", "-c", CHURN, where, library], user=65534, group=65534,
                      extra_groups=[]) for _ in range(2 if library else 0)
    ]
    stop = threading.Event()
    clients = [threading.Thread(target=flood, args=(a, stop)) for _ in range(3)]
    for c in clients:
        c.start()
    time.sleep(12)
    stop.set()
    for c in clients:
        c.join()
    errors, hz, lowered = [], a.metric("frequency_hertz"), a.metric("throttled_total")
    harness.note("%s: %.2f s of CPU time, %d files" % (name, a.metric("cpu_seconds_total"),
                                                       a.metric("files_seen_total")))
    if hz != 19 or lowered:
        errors.append("%g Hz, lowered %d times" % (hz, lowered))
    a.stop()
    for p in running:
        harness.stop(p)
    shutil.rmtree(where)
    harness.check(name, errors)


def check_window_share(name):
    """Two of five windows are sampled, by chance, and these as a whole; the others are not sent."""
    r = HttpReceiver()
    a = agents.Agent("--endpoint", r.url, "--window-share", "40", copy=False)
    busy = agents.load()
    a.start().wait_started().wait(lambda: a.metric("windows_total") >= 40, "forty windows")
    windows, skipped = a.metric("windows_total"), a.metric("windows_skipped_total")
    sampled, samples = windows - skipped, a.metric("window_samples_total")
    sent, errors = len(r.got), []
    if not 0.3 * windows < skipped < 0.9 * windows: # 4 standard deviations
        errors.append("%d of %d windows are skipped" % (skipped, windows))
    if not sampled - 3 <= sent <= sampled:
        errors.append("%d windows sent, %d sampled" % (sent, sampled))
    cpus = min(2, os.cpu_count())
    if not 0.6 * cpus < samples / sampled / (49 * 0.3) < 1.3 * os.cpu_count():
        errors.append("%.1f samples in a window" % (samples / sampled))
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


def windows_apart(out, services, ids):
    """Windows keep services apart, for report: by name, by label, and all of them."""
    errors, sums = [], {}
    for key, argv in [(s, ["--service", s]) for s in services] + [
        ("id", ["--label", "container.id=" + ids]), ("all", ["--label", "service.version=7"])
    ]:
        p = subprocess.run([harness.SFBPF, "report", "--by", "service", "--format", "folded"] +
                           argv + [out], capture_output=True, text=True, timeout=60)
        sums[key] = Counter()
        for line in p.stdout.splitlines():
            stack, n = line.rsplit(" ", 1)
            sums[key][stack.split(";")[0]] += int(n)
        if p.returncode or p.stderr:
            errors.append("report %s: %s" % (argv, p.stderr))
    first, last = services
    if (list(sums[first]), list(sums[last])) != ([first], [last]) or sums["id"] != sums[last]:
        errors.append("services in windows: %s" % sums)
    if any(sums["all"][s] != sums[s][s] for s in services) or "[" in "".join(sums["all"]):
        errors.append("all services in windows: %s" % sums)
    return errors


def check_services(name):
    """A process in a cgroup v2 of a unit's name is that service's, a container's has its id."""
    pb()
    mounts = [l.split()[1] for l in open("/proc/mounts") if l.split()[2] == "cgroup2"]
    if not mounts:
        raise harness.Skip("no cgroup v2")
    top = os.path.join(mounts[0], "sfbpf-test.slice")
    ids = "0123456789abcdef" * 4
    dirs = {
        "web": os.path.join(top, "web.service"),
        "unknown_service": os.path.join(top, "docker-%s.scope" % ids)
    }
    busy, procs = agents.load(), []
    r = HttpReceiver(decode=decode_otlp)
    out = harness.tmpfile("services")
    a = agents.Agent("--endpoint", r.url, "--copy", out, "--format", "pprof", "--label",
                     "service.version=7", copy=False)
    try:
        for p, d in zip(busy, dirs.values()):
            os.makedirs(d, exist_ok=True)
            procs.append(d + "/cgroup.procs")
            with open(procs[-1], "w") as f:
                f.write(str(p.pid))
        a.start().wait(lambda: len(r.got) >= 3, "three windows through")
        a.stop()
    finally:
        for p in busy:
            harness.stop(p)
        for d in list(dirs.values()) + [top]:
            try:
                os.rmdir(d)
            except OSError:
                pass
    seen, errors = {}, []
    for g in r.got:
        for rp in g.message.resource_profiles:
            attrs = {x.key: x.value.string_value for x in rp.resource.attributes}
            seen.setdefault(attrs["service.name"], attrs)
    for want in dirs:
        if want not in seen:
            errors.append("no service %s among %s" % (want, sorted(seen)))
    if seen.get("web", {}).get("systemd.unit") != "web.service" or seen.get(
            "unknown_service", {}).get("container.id") != ids:
        errors.append("attributes %s" % seen)
    errors += windows_apart(out, dirs, ids)
    harness.check(name, errors[:2])
    r.stop()


def in_unit(top, unit, *programs):
    """Processes in a cgroup of a unit's name: busy ones, and a shell that makes short sleeps."""
    folder = os.path.join(top, unit)
    os.makedirs(folder, exist_ok=True)
    sleeps = "while :; do sleep 0.05; done"
    for argv in [[p, "0", "60"] for p in programs] + [["/bin/sh", "-c", sleeps]]:
        harness.start(["/bin/sh", "-c", 'echo $$ > %s/cgroup.procs; exec "$@"' % folder, "sh",
                       *argv])
    return folder


def seen_of(copies, name):
    """Whether stacks of a thread of that name are in the copies, or of its unit's sleeps"""
    return any(s.startswith(name) for window in copies for s in window)


def check_rules(name):
    """exclude and include: on and off the CPU, from the kernel on, and all else is kept."""
    mounts = [l.split()[1] for l in open("/proc/mounts") if l.split()[2] == "cgroup2"]
    if not mounts:
        raise harness.Skip("no cgroup v2")
    top, errors = os.path.join(mounts[0], "sfbpf-rules.slice"), []
    ini = write("rules.ini", "[exclude]\nunit = no-such, bad\n")
    dirs = [in_unit(top, "good.service", harness.link_program("rec", "goodrec")),
            in_unit(top, "bad.service", harness.link_program("rec", "badrec"))]
    a = agents.Agent("--endpoint", "http://127.0.0.1:1", "--config", ini, "--off-cpu",
                     "--off-cpu-min", "0", "--no-process-context")
    excluded = "window_samples_excluded_total"
    try:
        a.start().wait_started()
        a.wait(lambda: a.metric(excluded) > 0, "an excluded sample")
        a.wait(lambda: a.metric("windows_total") > 8, "windows")
        before = a.metric(excluded)
        a.wait(lambda: a.metric("windows_total") > 14, "more windows")
        if a.metric(excluded) != before:
            errors.append("still sampled: %s, then %s" % (before, a.metric(excluded)))
        ruled = list(receivers.copies(a.copy).values())
        blocked = list(receivers.copies(a.copy, True).values())
        if seen_of(ruled, "badrec") or not seen_of(ruled, "goodrec"):
            errors.append("samples: bad %s, good %s" %
                          (seen_of(ruled, "badrec"), seen_of(ruled, "goodrec")))
        sleeping = [sum(n for s, n in w.items() if s.startswith("sleep;")) for w in blocked[4:]]
        write("rules.ini", "[include]\nunit = bad*\n")
        a.p.send_signal(signal.SIGHUP)
        a.wait(lambda: a.metric("reloads_total") == 1, "the other rules")
        n = len(receivers.copies(a.copy))
        a.wait(lambda: len(receivers.copies(a.copy)) > n + 3, "windows with them")
        now = list(receivers.copies(a.copy).values())[n + 1:]
        if not seen_of(now, "badrec") or seen_of(now, "goodrec"):
            errors.append("included: bad %s, good %s" %
                          (seen_of(now, "badrec"), seen_of(now, "goodrec")))
        harness.note("blocked time of sleeps in a window: %s us" % sleeping[:3])
        # One unit's loop sleeps for less than the length of a window, 300 ms.
        if not sleeping or not 0 < sorted(sleeping)[len(sleeping) // 2] < 400000:
            errors.append("blocked time of sleeps: %s" % sleeping)
    finally:
        a.stop()
        harness.stop_all()
        for d in dirs + [top]:
            try:
                os.rmdir(d)
            except OSError:
                pass
    harness.check(name, errors)


def check_hotplug(name):
    """A CPU that goes away and comes back is sampled again. It disturbs whatever else runs: only
    with HOTPLUG=1.
    """
    switch = "/sys/devices/system/cpu/cpu1/online"
    if os.environ.get("HOTPLUG") != "1" or not os.path.exists(switch):
        raise harness.Skip("not asked for (HOTPLUG=1), or there is no CPU to take")
    a = agents.Agent("--endpoint", "http://127.0.0.1:1", copy=False)
    busy = agents.load() + agents.load()
    a.start().wait_started()
    a.wait(lambda: a.metric("cpus") >= 2, "both CPUs")
    errors = []
    try:
        with open(switch, "w") as f:
            f.write("0")
        a.wait(lambda: a.metric("cpus") == 1, "one CPU")
    except OSError as e:
        raise harness.Skip("CPU 1 cannot go offline: %s" % e)
    finally:
        with open(switch, "w") as f:
            f.write("1")
    a.wait(lambda: a.metric("cpus") == 2, "both CPUs again")
    before, start = a.metric("samples_total"), time.monotonic()
    time.sleep(2)
    rate = (a.metric("samples_total") - before) / (time.monotonic() - start)
    if not 1.5 * 49 < rate < 2.5 * 49:
        errors.append("%.0f samples a second on two busy CPUs at 49 Hz" % rate)
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


if __name__ == "__main__":
    harness.run_checks([
        check_config, check_privileges, check_without_capabilities, check_host_gaps, check_kptr,
        check_kubernetes, check_metrics, check_prometheus, check_reload, check_notify, check_unit,
        check_upgrade, check_budget, check_budget_of_others, check_window_share, check_services,
        check_rules,        check_hotplug
    ])
