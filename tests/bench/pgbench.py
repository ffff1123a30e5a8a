#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `sfbpf offcpu` costs a busy database: pgbench with 20 clients, with and without it in turn.

pgbench.py [ROUNDS [SECONDS [CASE...]]]    CASE: filter, all, each with -select after it for reads
only; root; PostgreSQL's server programs; no network, a cluster of its own under /tmp
SFBPF_OLD=PATH: another sfbpf to compare with, in the same rounds.

One server and one pgbench run all the time. A round is a slice of SECONDS with each of the tools
and two without any, in an order that changes: what the second of these "loses" to the first is what
the machine does to all of them. What a slice tells: transactions a second, and transactions for
each second of CPU time that the server and pgbench took (schedstat), which depends less on what
else the machine does. From second to second both change by 10 % and more without any tool, so few
pairs say little. Slices with kernel.bpf_stats say what share of the server's and pgbench's CPU time
is BPF's; that is known to some tenths of a percent, and is what is checked. (What is lost is
somewhat more, by the caches: docs/performance.md.) Prints the checks' lines: with -m 100us below 3
%, without a filter below 10 %, the interval of what the pairs lost not above these, and chains of
the server's waits that reach main.
"""

import glob
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "live"))

import harness as h  # noqa: E402  (found through the line above)

CLIENTS, SCALE = 20, 10
CASES = {"filter": (["-m", "100us"], 0.03, []), "all": ([], 0.10, []),
         "filter-select": (["-m", "100us"], 0.03, ["-S"]), "all-select": ([], 0.10, ["-S"])}
STATS_SLICES = 3
SWITCH_PROGRAMS = ("off_switch", "off_back")


class Cluster:
    """A cluster on a socket in its own directory; gone at the end."""

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"))
        if not found:
            raise h.Skip("no PostgreSQL server programs")
        self.bin = os.path.dirname(found[-1])
        try:
            self.user = pwd.getpwnam("postgres").pw_uid
        except KeyError as e:
            raise h.Skip("no user postgres") from e
        self.dir = tempfile.mkdtemp(prefix="sfbpf-pgbench-")
        os.chown(self.dir, self.user, -1)
        self.data = os.path.join(self.dir, "data")

    def command(self, *argv):
        """As postgres, and before what else runs on the machine: its changing load is larger than
        what is measured.
        """
        become = ["nice", "-n", "-15", "setpriv", "--reuid", str(self.user), "--clear-groups"]
        return {
            "args": become + [os.path.join(self.bin, argv[0])] + [str(a) for a in argv[1:]],
            "cwd": self.dir, "stdin": subprocess.DEVNULL,
            "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, "text": True
        }

    def run(self, *argv):
        subprocess.run(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=300, **self.command(*argv))

    def start(self):
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N")
        # pg_ctl's output stays open in the server: into a file.
        self.run(
            "pg_ctl", "-D", self.data, "-w", "-l", os.path.join(self.dir, "log"), "-o",
            "-k %s -c listen_addresses= -c shared_buffers=256MB -c max_wal_size=4GB" % self.dir,
            "start")
        self.run("pgbench", "-h", self.dir, "-U", "postgres", "-i", "-q", "-s", SCALE, "postgres")

    def stop(self):
        try:
            if os.path.exists(os.path.join(self.data, "postmaster.pid")):
                self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


def cpu_ns(pids):
    """CPU time of all threads of these processes."""
    ns = 0
    for pid in pids:
        for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
            try:
                with open(path) as f:
                    ns += int(f.read().split()[0])
            except (OSError, ValueError):
                pass
    return ns


class Load:
    """pgbench, as long as it is wanted; what it did in each second."""

    def __init__(self, cluster, options):
        argv = [
            "pgbench", "-h", cluster.dir, "-U", "postgres", "-n", "-c", CLIENTS, "-j", 2, "-T",
            36000, "-P", 1
        ] + options + ["postgres"]
        command = cluster.command(*argv)
        self.p = h.start(command.pop("args"), stderr=subprocess.PIPE, **command)
        with open(os.path.join(cluster.data, "postmaster.pid")) as f:
            self.server = int(f.readline())
        self.pids, self.seconds, self.more = [], [], threading.Condition()
        threading.Thread(target=self.follow, daemon=True).start()
        time.sleep(2)
        with open("/proc/%d/task/%d/children" % (self.server, self.server)) as f:
            self.pids = [self.server, self.p.pid] + [int(c) for c in f.read().split()]

    def follow(self):
        """Each report with the CPU time at that moment."""
        for line in self.p.stderr:
            m = re.match(r"progress: ([0-9.]+) s, ([0-9.]+) tps", line)
            with self.more:
                if m:
                    self.seconds.append((float(m.group(1)), float(m.group(2)), cpu_ns(self.pids)))
                self.more.notify()

    def slice(self, n):
        """Transactions a second, and for each second of CPU time, in the n whole seconds from the
        next report on.
        """
        with self.more:
            first = len(self.seconds)
            if not self.more.wait_for(
                    lambda: len(self.seconds) > first + n or self.p.poll() is not None,
                    30 + 3 * n) or self.p.poll() is not None:
                raise ValueError("pgbench does not report")
            got = self.seconds[first:first + n + 1]
        done = sum(tps * (at - before) for (before, _, _), (at, tps, _) in zip(got, got[1:]))
        return done / (got[-1][0] - got[0][0]), done * 1e9 / (got[-1][2] - got[0][2])

    def stop(self):
        h.stop(self.p)


def wait_attached(p):
    """Until its programs are attached, which takes long beside a load that goes before it, and then
    until the first tables are there.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end and p.poll() is None:
        try:
            fds = [
                os.readlink("/proc/%d/fd/%s" % (p.pid, fd))
                for fd in os.listdir("/proc/%d/fd" % p.pid)
            ]
        except OSError:
            fds = []
        if sum("bpf_link" in fd or "bpf-link" in fd
               for fd in fds) >= 2 and len(os.listdir("/proc/%d/task" % p.pid)) > 1:
            time.sleep(2)
            return
        time.sleep(0.1)
    raise ValueError("offcpu does not begin")


class Tool:
    """offcpu over the whole machine, once its tables are there: what a run of a minute does once is
    not its overhead.
    """

    def __init__(self, binary, options, stats):
        self.out, self.stats = h.tmpfile("pgbench.folded"), h.tmpfile(
            "pgbench.json") if stats else None
        self.p = h.start([binary, "offcpu", "-a", "-o", self.out] + options +
                         (["--stats", self.stats] if stats else []), stderr=subprocess.PIPE)
        wait_attached(self.p)

    def finish(self):
        self.p.send_signal(signal.SIGINT)
        err = self.p.communicate(timeout=120)[1].decode(errors="replace")
        h.stop(self.p)
        if self.p.returncode:
            raise ValueError("exit code %d: %s" % (self.p.returncode, err[-200:]))
        time.sleep(0.5)


def quantile(values, q):
    v = sorted(values)
    at = q * (len(v) - 1)
    return v[int(at)] + (v[min(int(at) + 1, len(v) - 1)] - v[int(at)]) * (at - int(at))


def interval(values):
    """The median and an interval that holds it with 95 % (bootstrap)."""
    draws = [quantile([random.choice(values) for _ in values], 0.5) for _ in range(2000)]
    return quantile(values, 0.5), quantile(draws, 0.025), quantile(draws, 0.975)


def percent(values):
    return "%.1f %% (%.1f to %.1f)" % tuple(100 * v for v in interval(values))


def rounds(load, tools, options, n, seconds):
    """{name: [(tps, transactions per CPU second, share of all CPUs in user space)]}, "" and
    "nothing" without any.
    """
    got = {name: [] for name in ["", "nothing"] + list(tools)}
    order = list(got)
    for i in range(n):
        order = order[1:] + order[:1] if i % 2 else order[::-1]
        for name in order:
            tool = Tool(tools[name], options, False) if name in tools else time.sleep(2)
            began, own = time.monotonic(), -cpu_ns([tool.p.pid]) if tool else 0
            tps, per_cpu = load.slice(seconds)
            own += cpu_ns([tool.p.pid]) if tool else 0
            got[name].append(
                (tps, per_cpu, own / 1e9 / (time.monotonic() - began) / os.cpu_count()))
            if tool:
                tool.finish()
    return got


def programs(load, name, binary, options, seconds):
    """Where BPF's time goes. The stacks and the account of the last slice, and BPF's share of the
    load's CPU time.
    """
    shares, of_load, costs, blocks, errors = [], [], {}, [], []
    for _ in range(STATS_SLICES):
        rec = h.Recording(options + ["-a"], seconds + 60, tool="offcpu", binary=binary)
        wait_attached(rec.p)
        tps, per_cpu = load.slice(seconds)
        stacks, stats = rec.interrupt()
        account = stats["off_cpu"]
        if account["lost_ms"]:
            errors.append("%.1f ms lost" % account["lost_ms"])
        errors += h.stats_errors(stats)
        blocks.append(stats["samples"] / stats["duration_s"])
        shares.append(
            sum(p["run_ns"]
                for p in stats["bpf"].values()) / 1e9 / stats["duration_s"] / os.cpu_count())
        of_load.append(
            sum(p["run_ns"] for prog, p in stats["bpf"].items() if prog in SWITCH_PROGRAMS) / 1e9 /
            stats["duration_s"] * per_cpu / tps)
        for prog, p in stats["bpf"].items():
            if p["run_cnt"] > 1000:
                costs.setdefault(prog, []).append(
                    (p["run_ns"] / p["run_cnt"], p["run_cnt"] / stats["duration_s"]))
    h.note("%s: %.2f %% of the load's CPU time in BPF, %.2f %% of all CPUs, %.0f blocks/s; %s" %
           (name, 100 * quantile(of_load, 0.5), 100 * quantile(shares, 0.5), quantile(blocks, 0.5),
            ", ".join("%s %.0f ns x %.0f/s" %
                      (prog, quantile([ns for ns, _ in c], 0.5), quantile([n for _, n in c], 0.5))
                      for prog, c in costs.items())))
    return stacks, errors, quantile(of_load, 0.5)


def chain_errors(stacks):
    """The server's waits begin in main. (pgbench's own main has no symbol.)"""
    waits = [s for s in stacks if s.comm == "postgres"]
    full = [s for s in waits if "main" in s.frames and not h.reason(s)]
    share = h.total(full) / max(1, h.total(waits))
    h.note("%d stacks of waits, %.2f %% of their time with a chain to main" %
           (len(waits), 100 * share))
    if len(waits) < 5 or share < 0.99:
        return [
            "%.2f %% of %d stacks' time: %s" %
            (100 * share, len(waits), h.worst([s for s in waits if s not in full]))
        ]
    return []


def measure(cluster, name, n, seconds):
    options, limit, load_options = CASES[name]
    tools = {"new": h.SFBPF}
    if os.environ.get("SFBPF_OLD"):
        tools["old"] = os.environ["SFBPF_OLD"]
    load = Load(cluster, load_options)
    try:
        load.slice(3)
        got = rounds(load, tools, options, n, seconds)
        for tool, binary in tools.items():
            seen = programs(load, name + ", " + tool, binary, options, seconds)
            stacks, errors, share = seen if tool == "new" else (stacks, errors, share)
    finally:
        load.stop()
    plain = got.pop("")
    h.note("%s: without it %.0f tps, %.0f for each CPU second" %
           (name, quantile([p[0] for p in plain], 0.5), quantile([p[1] for p in plain], 0.5)))
    for tool, slices in got.items():
        lost = [[1 - s[k] / p[k] for s, p in zip(slices, plain)] for k in range(2)]
        h.note(
            "%s, %s: medians of %d pairs and their intervals: throughput lost %s, transactions "
            "for each CPU second %s; user space %.2f %% of all CPUs"
            % (name, tool, n, percent(lost[0]), percent(
                lost[1]), 100 * quantile([s[2] for s in slices], 0.5)))
        if tool == "new" and interval(lost[1])[1] > limit:
            errors.append("%s fewer transactions for each CPU second, not %.0f %%" %
                          (percent(lost[1]), 100 * limit))
    if share > limit:
        errors.append("%.2f %% of the load's CPU time, not %.0f %%" % (100 * share, 100 * limit))
    if "old" in got:
        h.note("%s: new against old: %s more transactions for each CPU second" % (
            name, percent([a[1] / b[1] - 1 for a, b in zip(got["new"], got["old"])])))
    h.check("pgbench-" + name, errors)
    h.check("pgbench-" + name + "-chains", chain_errors(stacks))


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    cluster = None
    signal.signal(signal.SIGTERM,
                  lambda *_: sys.exit(1))  # a server that is not ended would run for ever
    try:
        cluster = Cluster()
        cluster.start()
        for name in sys.argv[3:] or CASES:
            measure(cluster, name, n, seconds)
    except h.Skip as e:
        h.skip("pgbench", str(e))
    finally:
        h.stop_all()
        if cluster:
            cluster.stop()
    sys.exit(h.exit_status())


main()
