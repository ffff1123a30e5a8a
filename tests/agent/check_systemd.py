#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packaged unit under a real systemd: start, rights, reload, watchdog, stop. Only with
SYSTEMD_START=1: it takes root and namespaces (systemd_box.sh), and nothing of the machine's is
changed.
"""

import os
import re
import shutil
import subprocess
import time

from receivers import HERE, harness
from check_agent import MASK

CHANGES = {
    "/usr/bin/sfbpf": "/run/units/sfbpf", "/etc/sfbpf/agent.ini": "/run/units/agent.ini",
    "/etc/sfbpf/headers": "/run/units/headers", "WatchdogSec=60": "WatchdogSec=3",
    "RestartSec=10": "RestartSec=1", "[Unit]": "[Unit]\nDefaultDependencies=no",
    "[Service]": "[Service]\nStandardError=file:/run/agent.log"
}
INI = ("[agent]\ninterval = 500ms\noff-cpu = yes\n"
       "[labels]\nturn = %d\n"
       "[delivery]\nprotocol = file\nformat = pprof\nendpoint = /var/lib/sfbpf-agent/out\n"
       "token-file = /run/credentials/sfbpf-agent.service/token\n"
       "header-file = /run/credentials/sfbpf-agent.service/headers\n")


class Box:
    def __init__(self):
        self.units = harness.tmpfile("units")
        os.makedirs(self.units)
        with open(os.path.join(harness.TOP, "packaging", "sfbpf-agent.service")) as f:
            text = f.read()
        for old, new in CHANGES.items():
            assert old in text, old
            text = text.replace(old, new)
        self.write("sfbpf-agent.service", text)
        self.write("box.target", "[Unit]\nDefaultDependencies=no\n")
        self.write("agent.ini", INI % 1)
        self.write("headers", "X-Secret: 1\n")
        os.chmod(os.path.join(self.units, "headers"), 0o600)
        shutil.copy(harness.SFBPF, self.units)
        self.log = harness.tmpfile("box")
        with open(self.log, "w") as log:
            self.p = harness.start([os.path.join(HERE, "systemd_box.sh"), self.units], stderr=log,
                                   cwd=harness.TOP)
        self.pid = self.find()

    def write(self, name, text):
        with open(os.path.join(self.units, name), "w") as f:
            f.write(text)

    def started(self):
        """PID 1 of the box, once it is a systemd that answers; else None."""
        try:
            with open("/proc/%d/task/%d/children" % (self.p.pid, self.p.pid)) as f:
                child = f.read().split()[0]
            if not os.readlink("/proc/%s/exe" % child).endswith("/systemd"):
                return None
            state = self.run("systemctl", "is-system-running", pid=child).stdout.strip()
            if state in ("running", "degraded", "starting"):
                return child
        except (OSError, IndexError):
            pass
        return None

    def find(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.p.poll() is None:
            pid = self.started()
            if pid:
                return pid
            time.sleep(0.1)
        with open(self.log) as f:
            raise harness.Skip("systemd does not start in namespaces here: " +
                               f.read().strip()[-200:])

    def run(self, *argv, pid=None):
        return subprocess.run(["nsenter", "-t", pid or self.pid, "-m", "-p", "-C", "-i", "-n"] +
                              list(argv), capture_output=True, text=True, timeout=60)

    def show(self, what):
        return self.run("systemctl", "show", "-P", what, "sfbpf-agent").stdout.strip()

    def text(self):
        return self.run("cat", "/run/agent.log").stdout

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise ValueError(
                    "not %s: %s; %s" %
                    (what, self.run("systemctl", "status", "sfbpf-agent").stdout[-300:],
                     self.run("tail", "-c", "400", "/dev/console").stdout + self.text()[-300:]))
            time.sleep(0.1)

    def stop(self):
        harness.stop(self.p)
        group = next(l.split()[1]
                     for l in open("/proc/mounts") if l.split()[2] == "cgroup2") + "/sfbpf-systemd"
        for _ in range(50):
            for d, _, _ in sorted(os.walk(group), reverse=True):
                try:
                    os.rmdir(d)
                except OSError:
                    pass
            if not os.path.exists(group):
                return
            time.sleep(0.1)


def rights_errors(box):
    pid, errors = box.show("MainPID"), []
    status = dict(
        l.split(":\t", 1) for l in box.run("cat", "/proc/%s/status" % pid).stdout.splitlines()
        if ":\t" in l)
    if status["Uid"].split()[0] == "0" or len(set(status["Uid"].split())) != 1:
        errors.append("user %s" % status["Uid"])
    if int(status["CapEff"], 16) != MASK or int(
            status["CapBnd"],
            16) & ~MASK or status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
        errors.append("CapEff %s CapBnd %s Seccomp %s" %
                      (status["CapEff"], status["CapBnd"], status["Seccomp"]))
    return errors


CONTAINER = """
ident=$(printf %064x 1) group=/sys/fs/cgroup/docker-$(printf %064x 1).scope
mkdir -p "/var/lib/docker/containers/$ident" "$group"
chmod 700 /var/lib/docker
echo '{"Name":"/web"}' >"/var/lib/docker/containers/$ident/config.v2.json"
chmod 600 "/var/lib/docker/containers/$ident/config.v2.json"
sh -c 'echo $$ >"$0/cgroup.procs"; while :; do :; done' "$group" >/dev/null 2>&1 &
"""


def check_unit(name):
    if os.environ.get("SYSTEMD_START") != "1" or os.getuid(
    ) or not os.path.exists("/lib/systemd/systemd"):
        raise harness.Skip("not asked for (SYSTEMD_START=1), or no systemd")
    box = Box()
    try:
        began = time.monotonic()
        p = box.run("systemctl", "start", "sfbpf-agent")
        harness.note("systemctl start: %.1f s" % (time.monotonic() - began))
        errors = [p.stderr[-300:] + box.text()[-300:]] if p.returncode else []
        if not p.returncode:
            errors += rights_errors(box)
            secret = box.run(
                "setpriv", "--reuid",
                box.run("stat", "-c", "%u", "/proc/" + box.show("MainPID")).stdout.strip(),
                "--clear-groups", "cat", "/run/credentials/sfbpf-agent.service/headers")
            if secret.stdout != "X-Secret: 1\n":
                errors.append("the agent's user cannot read its headers: " + secret.stderr)
            box.wait(
                lambda: box.run("sh", "-c", "ls /var/lib/sfbpf-agent/out/*/*.off_cpu.pb.gz").
                returncode == 0, 30, "a window written")
            # Root's files, with the rights and the system calls that the unit has.
            box.run("sh", "-c", CONTAINER)
            box.wait(
                lambda: "web;sh;" in box.run("/run/units/sfbpf", "report", "--by", "container",
                                             "--format", "folded", "/var/lib/sfbpf-agent/out").
                stdout, 30, "a container named")
        harness.check(name + "-start", errors)
        box.run("sh", "-c", "sed -i 's/turn = 1/turn = 2/' /run/units/agent.ini")
        p = box.run("systemctl", "reload", "sfbpf-agent")
        box.wait(lambda: "configuration reloaded" in box.text(), 20, "reloaded")
        harness.check(name + "-reload",
                      [p.stderr] if p.returncode or box.show("ActiveState") != "active" else [])
        first = box.show("MainPID")
        time.sleep(5)       # longer than the watchdog's time
        errors = ["restarted without need"] if box.show("MainPID") != first else []
        box.run("kill", "-STOP", first)
        box.wait(lambda: box.show("NRestarts") == "1" and box.show("ActiveState") == "active", 40,
                 "restarted by the watchdog")
        harness.check(name + "-watchdog",
                      errors + ([] if box.show("MainPID") != first else ["the same process"]))
        began = time.monotonic()
        p = box.run("systemctl", "stop", "sfbpf-agent")
        harness.note("systemctl stop: %.1f s" % (time.monotonic() - began))
        errors = [
            "%s, result %s, status %s" %
            (box.show("ActiveState"), box.show("Result"), box.show("ExecMainStatus"))
        ]
        if not p.returncode and errors == ["inactive, result success, status 0"] and re.search(
                "stopped", box.text()):
            errors = []
        harness.check(name + "-stop", errors)
    finally:
        box.stop()


if __name__ == "__main__":
    harness.run_checks([check_unit])
