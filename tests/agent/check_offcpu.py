#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Blocked time beside the samples: in every format and protocol the same sums, as much as the clock
says, and within its limit.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter

from receivers import (GrpcReceiver, HttpReceiver, PARCA_GRPC, copies, decode_otlp, harness,
                       otlp_folded, otlp_profiles, pb, windows)
import agents
import otlp_rules

SLEEPER = ("import time\nwith open('/proc/self/comm', 'w') as f:\n  f.write('napper')\n"
           "while True:\n  time.sleep(0.02)\n")
IDLER = ("import time\nwith open('/proc/self/comm', 'w') as f:\n  f.write('idler')\n"
         "time.sleep(1000)\n")
SWITCHER = """import os, threading
a, b = os.pipe(), os.pipe()
def echo():
    while True:
        os.write(b[1], os.read(a[0], 1))
threading.Thread(target=echo, daemon=True).start()
while True:
    os.write(a[1], b'x')
    os.read(b[0], 1)
"""


def python(text):
    return harness.start(["/usr/bin/python3", "-c", text])


def of_comm(counter, comm):
    return sum(n for line, n in counter.items() if line.split(";")[0] == comm)


def close_enough(a, b, stacks):
    """Folded files are in microseconds, rounded down line by line."""
    return 0 <= a - b * 1000 <= 1000 * (stacks + 1)


def compare(got, wrote):
    """{window: Counter} of nanoseconds that arrived, of microseconds that were written."""
    errors = []
    for at in sorted(set(got) & set(wrote)):
        for line in set(got[at]) | set(wrote[at]):
            if not close_enough(got[at][line], wrote[at][line], 1):
                errors.append("window %d: %d ns arrived, %d us were written: %s" %
                              (at, got[at][line], wrote[at][line], line[-200:]))
    if len(set(got) & set(wrote)) < 2:
        errors.append("%d windows arrived, %d were written" % (len(got), len(wrote)))
    return errors[:2]


def time_errors(windows, seconds):
    """What the two sleepers were blocked, of windows {at: Counter} in the middle; us."""
    times = sorted(windows)[1:-1]
    spans = sum(b - a for a, b in zip(times, times[1:] + sorted(windows)[-1:])) * 1000
    errors = []
    for comm in ("napper", "idler"):
        share = sum(of_comm(windows[at], comm) for at in times) / max(spans, 1)
        if not 0.6 < share < 1.05:
            errors.append("%s was blocked %.2f of the time" % (comm, share))
    return errors if spans else ["%d windows in %g s" % (len(windows), seconds)]


def check_otlp(name):
    """Both profiles in one request, told apart by their types; a thread that sleeps all the time is
    in each window with its length.
    """
    pb()
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--off-cpu", "--interval", "1s", "--timeout", "5s")
    procs = agents.load() + [python(SLEEPER), python(IDLER)]
    a.start().wait(lambda: len(r.got) >= 5, "five windows through")
    off, switches = a.metric("off_cpu_blocked_seconds_total"), a.metric("off_cpu_bpf_seconds_total")
    code = a.stop()
    for p in procs:
        harness.stop(p)
    errors, cpu, blocked = ["exit status %d" % code] if code else [], {}, {}
    for g in r.got:
        errors += otlp_rules.errors(g.message)
        otlp_folded(g.message, cpu)
        otlp_folded(g.message, blocked, "off_cpu")
        d = g.message.dictionary.string_table
        for p in otlp_profiles(g.message):
            kinds = tuple(d[i] for i in (p.sample_type.type_strindex, p.sample_type.unit_strindex,
                                         p.period_type.type_strindex,
                                         p.period_type.unit_strindex)) + (p.period != 0, )
            if kinds not in (("samples", "count", "cpu", "nanoseconds", True),
                             ("off_cpu", "nanoseconds", "", "", False)):
                errors.append("a profile of %s" % (kinds,))
    if not off > 0 or not switches > 0:
        errors.append("metrics: %g s blocked, %g s of BPF" % (off, switches))
    wrote = copies(a.copy, True)
    errors += compare(blocked, wrote) + time_errors(wrote, 5)
    if any(cpu[at] != c for at, c in copies(a.copy).items() if at in cpu):
        errors.append("samples differ from those written")
    if of_comm(sum(cpu.values(), Counter()), "idler"):
        errors.append("a thread that sleeps has samples")
    errors += agents.account_errors(a, len(a.spooled()))
    harness.check(name, errors[:4])
    r.stop()


def clickhouse_rows(r):
    """({window: Counter of comms} of nanoseconds, errors)"""
    windows, errors = {}, []
    for g in r.got:
        for line in g.message.splitlines() if "sfbpf_samples" in g.path else ():
            row = json.loads(line)
            if row["type"] != "off_cpu":
                continue
            if row["period_ns"] != 1 or row["labels"].get("state") not in ("S", "D", "T", "t", "P"):
                errors.append("row %s" % row)
            windows.setdefault(int(row["ts"].replace(".", "")),
                               Counter())[row["comm"]] += row["value"]
    return windows, errors


def clickhouse_errors(r, wrote):
    got, errors = clickhouse_rows(r)
    for at in set(got) & set(wrote):
        for comm in ("napper", "idler"):
            if not close_enough(got[at][comm], of_comm(wrote[at], comm), 50):
                errors.append("%s: %d ns, %d us" % (comm, got[at][comm], of_comm(wrote[at], comm)))
    return errors + ([] if set(got) & set(wrote) else ["no window"])


def raw_pprof(data):
    """What `go tool pprof -raw` says of it; None: it is not here."""
    path = harness.tmpfile("off.pb.gz")
    with open(path, "wb") as f:
        f.write(data)
    try:
        out = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True,
                             env=dict(os.environ, HOME=harness.tmpdir()))
    except OSError:
        return None
    return out.stdout if not out.returncode else "pprof: " + out.stderr


def pushed_errors(series_of, got):
    """__name__ off_cpu, with pprof of blocked time in it."""
    errors, found = [], 0
    for g in got:
        for labels, samples in series_of(g.message):
            if {l.name: l.value for l in labels}["__name__"] != "off_cpu":
                continue
            raw = raw_pprof(samples[0].raw_profile) if not found else None
            found += gzip.decompress(samples[0].raw_profile) != b""
            if raw is not None and ("PeriodType: off_cpu nanoseconds" not in raw or
                                    "off_cpu/nanoseconds" not in raw or "state:" in raw):
                errors.append("pprof: %s" % raw[:200])
    return errors + ([] if found else ["no series off_cpu"])


def check_other_protocols(name):
    pb()
    receivers = {
        "clickhouse": HttpReceiver(),
        "pyroscope": HttpReceiver(decode=lambda b: pb().PushRequest.FromString(b)),
        "parca": GrpcReceiver(kind="WriteRawRequest", path=PARCA_GRPC)
    }
    procs = [python(SLEEPER), python(IDLER)]
    running = {
        p: agents.Agent("--protocol", p, "--endpoint", r.url, "--off-cpu", "--interval", "1s",
                        "--timeout", "5s")
        for p, r in receivers.items()
    }
    for a in running.values():
        a.start()
    for p, a in running.items():
        a.wait(lambda: a.has_account() and a.account().delivered >= (9 if p == "clickhouse" else 3),
               "three windows through")
    codes = {p: a.stop() for p, a in running.items()}
    for p in procs:
        harness.stop(p)
    for p, a in running.items():
        errors = ["exit status %d" % codes[p]] if codes[p] else []
        if p == "clickhouse":
            errors += clickhouse_errors(receivers[p], copies(a.copy, True))
        elif p == "pyroscope":
            errors += pushed_errors(lambda m: [(s.labels, s.samples) for s in m.series],
                                    receivers[p].got)
        else:
            errors += pushed_errors(lambda m: [(s.labels.labels, s.samples) for s in m.series],
                                    receivers[p].got)
        harness.check("%s-%s" % (name, p), errors[:3])
        receivers[p].stop()


def check_files(name):
    """Two files a window, that sfbpf report and go's pprof take."""
    errors, out = [], harness.tmpfile("off-files")
    procs = [python(SLEEPER), python(IDLER)]
    for fmt in ("folded", "pprof", "json", "html", "text"):
        a = agents.Agent("--once", "--protocol", "file", "--endpoint", out, "--off-cpu",
                         "--interval", "2s", "--timeout", "5s", copy=False, metrics=False)
        a.argv += ["--format", fmt]
        if a.start().p.wait(60):
            errors.append("%s: %s" % (fmt, a.text()[-200:]))
    for p in procs:
        harness.stop(p)
    files = {
        f.split(".off_cpu", 1)[1]: f
        for f in windows(out) if ".off_cpu." in f
    }
    for suffix in (".folded", ".pb.gz", ".json", ".html", ".txt"):
        if suffix not in files:
            errors.append("no file of blocked time: %s" % suffix)
        elif suffix in (".folded", ".pb.gz", ".json"):
            p = subprocess.run([harness.SFBPF, "report", files[suffix], "--format", "text"],
                               capture_output=True, text=True)
            if p.returncode or "SELF" not in p.stdout:
                errors.append("report %s: %s" % (suffix, p.stderr[-200:] or p.stdout[:200]))
    if ".folded" in files:
        with open(files[".folded"]) as f:
            if not any(line.startswith("napper;") for line in f):
                errors.append("the sleeper is missing")
    if ".json" in files:
        with open(files[".json"]) as f:
            unit = json.load(f)["meta"]["unit"]
        if unit != "microseconds":
            errors.append("json's unit is %s" % unit)
    harness.check(name, errors[:3])


def check_limit(name):
    """A limit that cannot be kept: first sampled, then not measured; a new configuration begins
    anew. The samples go on.
    """
    ini = harness.tmpfile("off.ini")

    def configure(text):
        with open(ini, "w") as f:
            f.write("[agent]\n%s\n" % text)

    configure("off-cpu = yes\noff-cpu-min = 0\n[budget]\noff-cpu-limit = 0.01")
    a = agents.Agent("--config", ini, "--endpoint", "http://127.0.0.1:1", copy=False)
    procs = agents.load() + [python(SWITCHER), python(SWITCHER)]
    errors = []
    a.start().wait_started()
    a.wait(lambda: a.metric("off_cpu_sampling_seconds") > 0, "to sample blocks")
    a.wait(lambda: a.metric("off_cpu_suspended_total") == 1, "to give up blocked time")
    if a.metric("off_cpu_measured") != 0 or not a.metric("off_cpu_sampled_seconds_total") > 0:
        errors.append("still measured, or nothing was sampled")
    windows, samples = a.metric("windows_total"), a.metric("window_samples_total")
    a.wait(
        lambda: a.metric("windows_total") > windows + 2 and a.metric("window_samples_total") >
        samples, "on with samples")
    configure("off-cpu = yes\noff-cpu-min = 2ms\n[budget]\noff-cpu-limit = 10000")
    a.p.send_signal(signal.SIGHUP)
    a.wait(lambda: a.metric("off_cpu_measured") == 1, "to measure again")
    blocks = a.metric("off_cpu_blocks_total")
    procs.append(python(SLEEPER))
    a.wait(lambda: a.metric("off_cpu_blocks_total") > blocks, "blocks")
    if a.metric("off_cpu_sampling_seconds") != 0:
        errors.append("sampled without need")
    configure("off-cpu = no")
    a.p.send_signal(signal.SIGHUP)
    a.wait(lambda: a.metric("off_cpu_measured") != 1, "to stop measuring")
    a.stop()
    for p in procs:
        harness.stop(p)
    harness.check(name, errors)


def check_unprivileged(name):
    """As nobody with the six capabilities, and after root has become nobody."""
    os.chmod(harness.tmpdir(), 0o755)
    a = agents.Agent("--user", "nobody", "--off-cpu", "--endpoint", "http://127.0.0.1:1",
                     copy=False)
    sleeper = python(SLEEPER)
    a.start().wait_started()
    a.wait(
        lambda: a.metric("off_cpu_blocks_total") > 5 and a.metric("off_cpu_bpf_seconds_total") > 0,
        "blocks")
    a.stop()
    harness.stop(sleeper)
    harness.check(name, [])


if __name__ == "__main__":
    if subprocess.run([harness.SFBPF, "offcpu", "-o", "/dev/null", "0.1"],
                      capture_output=True).returncode == 4:
        print("SKIP agent-offcpu: this kernel cannot trace its scheduler")
        sys.exit(0)
    harness.run_checks(
        [check_otlp, check_other_protocols, check_files, check_limit, check_unprivileged])
