#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `sfbpf offcpu` costs a busy database: pgbench with 20 clients, with and without it in turn.

pgbench.py [PAIRS [SECONDS [MODE...]]]    MODE: filter, all; root; PostgreSQL's server programs; no network, a cluster of its own under /tmp
Prints a table and the checks' lines: throughput lost with -m 100us below 3 %, without a filter below 10 %, and chains of the
server's waits that reach main.
"""

import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

import harness as h  # noqa: E402  (found through the line above)

CLIENTS, SCALE = 20, 10
MODES = {"filter": (["-m", "100us"], 0.03), "all": ([], 0.10)}


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

    def run(self, *argv):
        """As postgres, and before what else runs on the machine: its changing load is larger than what is measured."""
        become = ["nice", "-n", "-15", "setpriv", "--reuid", str(self.user), "--clear-groups"]
        return subprocess.run(become + [os.path.join(self.bin, argv[0])] + [str(a) for a in argv[1:]], cwd=self.dir, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, timeout=300).stdout

    def start(self):
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N")
        # pg_ctl's output stays open in the server: into a file.
        self.run("pg_ctl", "-D", self.data, "-w", "-l", os.path.join(self.dir, "log"), "-o",
                 "-k %s -c listen_addresses= -c shared_buffers=256MB -c max_wal_size=4GB" % self.dir, "start")
        self.run("pgbench", "-h", self.dir, "-U", "postgres", "-i", "-q", "-s", SCALE, "postgres")

    def tps(self, seconds):
        out = self.run("pgbench", "-h", self.dir, "-U", "postgres", "-n", "-c", CLIENTS, "-j", 2, "-T", seconds, "postgres")
        return float(re.search(r"tps = ([0-9.]+)", out).group(1))

    def stop(self):
        try:
            if os.path.exists(os.path.join(self.data, "postmaster.pid")):
                self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


def median(values):
    v = sorted(values)
    return (v[len(v) // 2] + v[(len(v) - 1) // 2]) / 2


def under(cluster, options, seconds):
    """Throughput while offcpu measures the whole machine, its stacks, and its account."""
    rec = h.Recording(options + ["-a"], seconds + 60, tool="offcpu")
    time.sleep(2)          # tables first: what a run of a minute does once is not its overhead
    tps = cluster.tps(seconds)
    return tps, rec.interrupt()


def chain_errors(stacks):
    """The server's waits begin in main. (pgbench's own main has no symbol.)"""
    waits = [s for s in stacks if s.comm == "postgres"]
    full = [s for s in waits if "main" in s.frames and not h.reason(s)]
    share = h.total(full) / max(1, h.total(waits))
    h.note("%d stacks of waits, %.2f %% of their time with a chain to main" % (len(waits), 100 * share))
    if len(waits) < 5 or share < 0.99:
        return ["%.2f %% of %d stacks' time: %s" % (100 * share, len(waits), h.worst([s for s in waits if s not in full]))]
    return []


def measure(cluster, name, options, limit, pairs, seconds):
    ratios, shares, errors = [], [], []
    for i in range(pairs):
        # Each pair in the other order: the database grows.
        plain = cluster.tps(seconds) if i % 2 else None
        with_it, (stacks, stats) = under(cluster, options, seconds)
        plain = plain or cluster.tps(seconds)
        ratios.append(with_it / plain)
        account = stats["off_cpu"]
        blocks = stats["samples"] / stats["duration_s"]
        run_ns = sum(p["run_ns"] for p in stats["bpf"].values())
        shares.append(run_ns / 1e9 / stats["duration_s"] / os.cpu_count())
        h.note("%s: %.0f tps, %.0f with it: %+.1f %%; %.0f blocks/s, %.2f %% of all CPUs in BPF, sampled %.0f ms, lost %.0f ms" % (
            name, plain, with_it, 100 * (with_it / plain - 1), blocks, 100 * shares[-1], account["sampled_ms"], account["lost_ms"]))
        errors += h.stats_errors(stats)
    lost = 1 - median(ratios)
    h.note("%s: %.1f %% of the throughput lost (median of %d pairs, %.1f to %.1f); %.2f %% of all CPUs in BPF" % (
        name, 100 * lost, pairs, 100 * (1 - max(ratios)), 100 * (1 - min(ratios)), 100 * median(shares)))
    if lost > limit:
        errors.append("%.1f %% of the throughput lost, not %.0f" % (100 * lost, 100 * limit))
    h.check("pgbench-" + name, errors)
    h.check("pgbench-" + name + "-chains", chain_errors(stacks))


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    cluster = None
    try:
        cluster = Cluster()
        cluster.start()
        cluster.tps(5)
        for name in sys.argv[3:] or MODES:
            measure(cluster, name, *MODES[name], pairs, seconds)
    except h.Skip as e:
        h.skip("pgbench", str(e))
    finally:
        if cluster:
            cluster.stop()
    sys.exit(h.exit_status())


main()
