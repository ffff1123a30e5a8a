#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What machines do to an agent: CPUs that come and go, clocks that jump, storms of tiny processes.
"""

import os
import subprocess
import time
import urllib.error

from receivers import HERE, HttpReceiver, decode_otlp, harness, otlp_profiles, pb
import agents

ONLINE = "/sys/devices/system/cpu/online"


def rewrite(path, text):
    with open(path, "w") as f:      # in place: it may be mounted
        f.write(text)


def rate(a, seconds=3):
    before, start = a.metric("samples_total"), time.monotonic()
    time.sleep(seconds)
    return (a.metric("samples_total") - before) / (time.monotonic() - start)


def check_cpus(name):
    """The agent is told, by a file of its own in the place of the kernel's, that CPU 1 is gone and
    back: its event there is closed and opened anew. (That CPU itself goes on: to take it away would
    disturb whatever else runs.)
    """
    with open(ONLINE) as f:
        real = f.read()
    if real.strip() != "0-%d" % (os.cpu_count() - 1) or os.cpu_count() < 2:
        raise harness.Skip("CPUs online: " + real.strip())
    online = harness.tmpfile("online")
    rewrite(online, real)
    a = agents.Agent(
        "--endpoint", "http://127.0.0.1:1", "-F", "49", copy=False,
        prefix=("unshare", "--mount", "--propagation", "private", "sh", "-c",
                'mount --bind "$0" %s && exec "$@"' % ONLINE, online))
    busy = [p for _ in range(os.cpu_count()) for p in agents.load()]
    n, errors = os.cpu_count(), []
    a.start().wait_started()
    a.wait(lambda: a.metric("cpus") == n, "all CPUs")
    everything = rate(a)
    rewrite(online, "0\n")
    a.wait(lambda: a.metric("cpus") == 1, "one CPU")
    one = rate(a)
    rewrite(online, real)
    a.wait(lambda: a.metric("cpus") == n, "all CPUs again")
    again = rate(a)
    if not one < 0.75 * everything or not again > 1.3 * one:
        errors.append("%.0f samples a second on %d CPUs, %.0f on one, %.0f on all again" %
                      (everything, n, one, again))
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


def check_wall_clock(name):
    """It jumps by hours, ahead and back: windows keep their lengths, none is lost, and each says
    the time that it was.
    """
    pb()
    lib, clock = harness.tmpfile("wall_clock.so"), harness.tmpfile("clock")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", lib,
         os.path.join(HERE, "wall_clock.c")], check=True)
    rewrite(clock, "0")
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--timeout", "5s", copy=False,
                     env={"LD_PRELOAD": lib, "WALL_CLOCK": clock})
    busy = agents.load()
    errors = []
    a.start().wait(lambda: len(r.got) >= 3, "three windows through")
    for jump in (7200, -7200, 90000, 0):
        rewrite(clock, "%d" % jump)
        start = time.time() + jump
        n = len(r.got)
        a.wait(lambda: len(r.got) >= n + 4, "on after the clock went to %+d s" % jump)
        last = [p for p in otlp_profiles(r.got[-1].message)][0]
        if not -1 < last.time_unix_nano / 1e9 - start < 40:
            errors.append("%+d s: a window of %.1f s later" %
                          (jump, last.time_unix_nano / 1e9 - start))
    code = a.stop()
    for p in busy:
        harness.stop(p)
    lengths = [p.duration_nano / 1e9 for g in r.got[:-1] for p in otlp_profiles(g.message)]
    if min(lengths) < 0.25 or max(lengths) > 8:
        errors.append("windows of %.2f to %.2f s" % (min(lengths), max(lengths)))
    dropped = {k: v for k, v in a.account().dropped.items() if v}
    # A body that waited while the clock jumped by more than a day is too old by it.
    if code or set(dropped) - {"old"} or sum(dropped.values()) > 3:
        errors.append("exit status %d, dropped %s" % (code, dropped))
    errors += agents.account_errors(a, len(a.spooled()))
    harness.check(name, errors)
    r.stop()


STORM = 'while :; do /bin/echo "a line of a log that nobody reads"; done >/dev/null'
FLOOD = "yes 'a line of a log that nobody reads' | cat >/dev/null"


def check_storm(name):
    """Tiny processes as fast as they can be made, and logs as fast as a pipe takes them: no window
    is missing, no sample lost, no growth.
    """
    r = HttpReceiver()
    a = agents.Agent("--endpoint", r.url, "--interval", "1s", "--timeout", "5s", "--off-cpu", "-F",
                     "19", copy=False)
    a.start().wait_started().wait(lambda: a.metric("windows_total") >= 2, "two windows")
    heap, began = a.metric("heap_bytes"), time.monotonic()
    windows = a.metric("windows_total")
    procs = [harness.start(["/bin/sh", "-c", s]) for s in (STORM, STORM, FLOOD)]
    errors, forks = [], -processes()
    while time.monotonic() < began + 8:
        time.sleep(0.5)
        try:
            if "ok" not in a.get("/healthz"):
                errors.append("not healthy")
        except urllib.error.URLError as e:
            errors.append("healthz: %s" % e)
    forks += processes()
    for p in procs:
        harness.stop(p)
    passed = time.monotonic() - began
    lost = {k: v for k, v in a.metric("samples_lost_total").items() if v}
    grown = (a.metric("heap_bytes") - heap) / 1e6
    closed = a.metric("windows_total") - windows
    harness.note("storm: %d processes a second; the heap went up by %.1f MB; %d windows in %.1f s" %
                 (forks / passed, grown, closed, passed))
    if lost or a.metric("window_samples_dropped_total") or a.metric("windows_failed_total"):
        errors.append("lost %s" % lost)
    if grown > 25:
        errors.append("the heap went up by %.1f MB" % grown)
    if closed < passed / 3:
        errors.append("%d windows in %.1f s" % (closed, passed))
    if a.stop():
        errors.append("exit status %d" % a.p.returncode)
    harness.check(name, errors[:3])
    r.stop()


def processes():
    """That were ever made."""
    with open("/proc/stat") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("processes"))


if __name__ == "__main__":
    harness.run_checks([check_cpus, check_wall_clock, check_storm])
