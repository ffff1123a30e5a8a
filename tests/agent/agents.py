# SPDX-License-Identifier: BSD-2-Clause
"""Running agents: several at once, each with its own spool, copies and metrics."""

import os
import signal
import struct
import subprocess
import time
import urllib.request
from collections import namedtuple

import receivers
from receivers import harness

OUTCOMES = ("delivered", "full", "old", "refused", "damaged", "unsure", "other_protocol", "crashed")

# Seconds. Only a loaded machine needs so many; a condition that never comes fails the check all the
# same.
PATIENCE = 120

Account = namedtuple("Account", "added delivered dropped")


class Agent:
    count = 0

    def __init__(self, *options, spool=None, copy=True, env=None, prefix=(), metrics=True):
        Agent.count += 1
        self.dir = harness.tmpfile("agent%d" % Agent.count)
        os.makedirs(self.dir, exist_ok=True)
        self.spool = spool or os.path.join(self.dir, "spool")
        self.copy = os.path.join(self.dir, "copy")
        self.log = os.path.join(self.dir, "log")
        self.port = receivers.free_port() if metrics else 0
        self.argv = list(prefix) + [
            harness.SFBPF, "agent", "--interval", "300ms", "--jitter", "0", "-F", "49",
            "--cpu-limit", "1000", "--retry-min", "50ms", "--retry-max", "200ms", "--spool",
            self.spool
        ]
        # A body whose answer is later than that comes twice, as documented: not for a loaded
        # machine's sake.
        self.argv += ["--timeout", "10s", "--connect-timeout", "10s"]
        self.argv += ["--shutdown", "10s" if copy else "2s"]
        self.argv += ["--metrics-address", "127.0.0.1:%d" % self.port if metrics else "none"]
        if copy:
            self.argv += ["--copy", self.copy, "--format", "folded"]
        self.argv += list(options)
        self.env = dict(os.environ, **(env or {}))
        self.p = None

    def start(self):
        with open(self.log, "ab") as log:
            self.p = harness.start(self.argv, stderr=log, env=self.env)
        return self

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def wait_started(self):
        return self.wait(
            lambda: "msg=\"started\"" in self.text() or "\"msg\":\"started\"" in self.text(),
            "to start")

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if condition():
                return self
            if self.p.poll() is not None:
                break
            time.sleep(0.03)
        raise ValueError("the agent did not get %s; its log ends: %s" % (what, self.text()[-400:]))

    def stop(self, sig=signal.SIGTERM):
        """The exit status."""
        self.p.send_signal(sig)
        try:
            return self.p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            harness.stop(self.p)
            raise ValueError("the agent did not end")

    def kill(self):
        self.p.kill()
        self.p.wait()

    def drained(self):
        if self.spooled():
            return False
        a = self.account()
        return a.added == a.delivered + sum(a.dropped.values())

    def drain(self):
        """Has the bodies in the spool delivered, so that a late one is told from a lost one. The
        agent that delivers them is killed before it closes a window of its own.
        """
        if self.drained():
            return self
        argv, self.argv = self.argv, self.argv + ["--interval", "1h"]
        try:
            self.start().wait(self.drained, "its spool empty")
        finally:
            self.argv = argv
            self.kill()
        return self

    def get(self, path="/metrics"):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=10) as r:
            return r.read().decode()

    def metric(self, name):
        """The value, or of one with labels {labels: value}."""
        found = {}
        for line in self.get().splitlines():
            key, _, value = line.rpartition(" ")
            if key == "sfbpf_agent_" + name:
                return float(value)
            if key.startswith("sfbpf_agent_" + name + "{"):
                found[key[key.index("{"):]] = float(value)
        return found

    def spooled(self):
        return sorted(f for f in os.listdir(self.spool)
                      if f.endswith(".body")) if os.path.isdir(self.spool) else []

    def has_account(self):
        return os.path.exists(os.path.join(
            self.spool, "account")) and os.path.getsize(os.path.join(self.spool, "account")) >= 288

    def account(self):
        """Entries, from the page in the spool's directory."""
        with open(os.path.join(self.spool, "account"), "rb") as f:
            words = struct.unpack("<36Q", f.read(288))
        done = dict(zip(OUTCOMES, words[4::2]))
        return Account(words[2], done["delivered"],
                       {k: v
                        for k, v in done.items() if k != "delivered"})

    def rss_kb(self, peak=False):
        with open("/proc/%d/status" % self.p.pid) as f:
            for line in f:
                if line.startswith("VmHWM:" if peak else "VmRSS:"):
                    return int(line.split()[1])
        return 0


def load():
    """Something to sample: two busy processes of known names."""
    return [
        harness.start(["/bin/sh", "-c", "while :; do :; done"]),
        harness.start(
            ["/usr/bin/python3", "-c", "def f(n):\n  while True:\n    sum(range(n))\nf(1000)"])
    ]


def account_errors(agent, held):
    a = agent.account()
    if a.added != a.delivered + sum(a.dropped.values()) + held:
        return ["the account does not add up: %s, held %d" % (a, held)]
    return []


def arrivals(r):
    """({key: requests accepted with it}, {window: Counter}), each key's windows counted once."""
    keys, windows = {}, {}
    for g in r.got:
        keys[g.key] = keys.get(g.key, 0) + 1
        if keys[g.key] == 1:
            receivers.otlp_folded(g.message, windows)
    return keys, windows


def differ_in_names(a, b):
    """Whether two stacks are the same but for frames that one of them could not name in time."""
    a, b = a.split(";"), b.split(";")
    return len(a) == len(b) and all(x == y or x[0] == "[" or y[0] == "[" for x, y in zip(a, b))


def differences(got, want):
    """Stacks that are in one of them only. Each was named for itself, on a busy machine."""
    more, less = got - want, want - got
    for a in more:
        for b in less:
            if differ_in_names(a, b):
                n = min(more[a], less[b])
                more[a] -= n
                less[b] -= n
    return list((+more + +less))[:3]


def exactly_once_errors(agent, r, again=0):
    """Windows that the agent copied against those that arrived, and its account. again: how many
    keys may have been accepted twice, because the answer to the first request got lost.
    """
    keys, windows = arrivals(r)
    wrote = receivers.copies(agent.copy)
    e = account_errors(agent, len(agent.spooled()))
    twice = [k for k, n in keys.items() if n > 1]
    if len(twice) > again or any(n > 1 + again for n in keys.values()):
        e.append("%d bodies arrived more than once" % len(twice))
    a = agent.account()
    left = len(agent.spooled()) + sum(a.dropped.values())
    missing = sorted(set(wrote) - set(windows))
    if len(missing) > left:
        e.append("%d of %d windows are neither there nor counted (%d are): %s" %
                 (len(missing), len(wrote), left, missing[:5]))
    for at in sorted(set(windows) & set(wrote)):
        got, want = windows[at], wrote[at]
        wrong = differences(got, want)
        if wrong:
            e.append("window %d: %d samples arrived, %d were taken: %s" %
                     (at, sum(got.values()), sum(want.values()), wrong))
    if a.delivered != len(keys):
        e.append("%d bodies are counted as delivered, %d arrived" % (a.delivered, len(keys)))
    return e[:3]
