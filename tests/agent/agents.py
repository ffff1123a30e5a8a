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
        self.argv = list(prefix) + [harness.SFBPF, "agent", "--interval", "300ms", "--jitter", "0", "-F", "49", "--cpu-limit", "1000",
                                    "--retry-min", "50ms", "--retry-max", "200ms", "--timeout", "700ms", "--connect-timeout", "700ms",
                                    "--shutdown", "2s", "--spool", self.spool]
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

    def wait_started(self, seconds=30):
        return self.wait(lambda: "msg=\"started\"" in self.text() or "\"msg\":\"started\"" in self.text(), seconds, "to start")

    def wait(self, condition, seconds=20, what="for a condition"):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return self
            if self.p.poll() is not None:
                break
            time.sleep(0.03)
        raise ValueError("the agent did not get %s; its log ends: %s" % (what, self.text()[-400:]))

    def stop(self, sig=signal.SIGTERM, seconds=15):
        """The exit status."""
        self.p.send_signal(sig)
        try:
            return self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            harness.stop(self.p)
            raise ValueError("the agent did not end")

    def kill(self):
        self.p.kill()
        self.p.wait()

    def get(self, path="/metrics"):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=3) as r:
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
        return sorted(f for f in os.listdir(self.spool) if f.endswith(".body")) if os.path.isdir(self.spool) else []

    def has_account(self):
        return os.path.exists(os.path.join(self.spool, "account")) and os.path.getsize(os.path.join(self.spool, "account")) >= 288

    def account(self):
        """Entries, from the page in the spool's directory."""
        with open(os.path.join(self.spool, "account"), "rb") as f:
            words = struct.unpack("<36Q", f.read(288))
        done = dict(zip(OUTCOMES, words[4::2]))
        return Account(words[2], done["delivered"], {k: v for k, v in done.items() if k != "delivered"})

    def rss_kb(self, peak=False):
        with open("/proc/%d/status" % self.p.pid) as f:
            for line in f:
                if line.startswith("VmHWM:" if peak else "VmRSS:"):
                    return int(line.split()[1])
        return 0


def load():
    """Something to sample: two busy processes of known names."""
    return [harness.start(["/bin/sh", "-c", "while :; do :; done"]),
            harness.start(["/usr/bin/python3", "-c", "def f(n):\n  while True:\n    sum(range(n))\nf(1000)"])]


def account_errors(agent, held):
    a = agent.account()
    if a.added != a.delivered + sum(a.dropped.values()) + held:
        return ["the account does not add up: %s, held %d" % (a, held)]
    return []
