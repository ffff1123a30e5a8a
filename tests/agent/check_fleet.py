#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The road of docs/fleet.md, command by command: from make deb on three hosts to the flame graph of
one service of all of them. The hosts are namespaces (fleet_host.sh). dpkg and apt-get are real; in
place of ssh, scp and systemctl, and of rsync where it is not installed, stand programs that enter a
host, copy, and start the unit's command with its user and capabilities.
"""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from agents import PATIENCE
from receivers import HERE, harness

sys.path.insert(0, os.path.join(harness.TOP, "tests", "cli"))
import chromium  # noqa: E402
import flame_page  # noqa: E402
import serve_chromium  # noqa: E402

HOSTS = ("web-1", "web-2", "db-1")
MOST_COMMANDS = 5
CLONE_NEWNET = 0x40000000
SERVICE = "shop"
BUSY = ("import time\ndef sell(n):\n  while True:\n    sum(range(n))\n    time.sleep(.002)\n"
        "sell(30000)\n")
STAND_INS = {
    "ssh": """
[ "$1" != -l ] || { shift; shift; }
host=${1#*@}
shift
read -r pid <%(dir)s/$host.pid
PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec nsenter -t "$pid" -m -n -u -r sh -c "cd /root; $*"
""", "scp": """
host=${2#*@}
exec ssh "root@${host%%%%:*}" "cat >${host#*:}${1##*/}" <"$1"
""", "rsync": """
from=${2#*@}
mkdir -p "$3"
ssh "root@${from%%%%:*}" "tar -C ${from#*:} -c ." | tar -C "$3" -x
""", "systemctl": """
[ "$*" = "enable --now sfbpf-agent" ] || exit 1
unit=/lib/systemd/system/sfbpf-agent.service
caps=$(sed -n s/^AmbientCapabilities=//p $unit | tr ' \\n' ,, |
       sed 's/,$//; s/CAP_/+/g' | tr A-Z a-z)
install -d -o 61999 -m 700 "/var/lib/$(sed -n s/^StateDirectory=//p $unit)"
setsid setpriv --reuid 61999 --regid 61999 --clear-groups --no-new-privs --inh-caps "$caps" \\
    --ambient-caps "$caps" $(sed -n s/^ExecStart=//p $unit) </dev/null >/var/log/agent 2>&1 &
"""
}


def commands():
    """The road: the lines of the first block of "In a browser"."""
    with open(os.path.join(harness.TOP, "docs", "fleet.md")) as f:
        return re.search(r"## In a browser\n.*?```\n(.*?)```", f.read(), re.S)[1].splitlines()


class Fleet:
    def __init__(self):
        self.dir = harness.tmpfile("fleet")
        self.bin = os.path.join(self.dir, "bin")
        os.makedirs(self.bin)
        for name, text in STAND_INS.items():
            if name == "rsync" and shutil.which(name):
                continue
            with open(os.path.join(self.bin, name), "w") as f:
                f.write("#!/bin/sh -e\n" + text % {"dir": self.dir})
            os.chmod(f.name, 0o755)
        self.desk = self.host("desk", harness.TOP, self.dir)
        self.hosts = {name: self.host(name) for name in HOSTS}

    def host(self, name, *directories):
        """The process that holds the namespaces."""
        p = harness.start([
            os.path.join(HERE, "fleet_host.sh"), name, self.bin, *directories
        ], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if p.stdout.readline() != "ready\n":
            raise harness.Skip("no namespaces or no overlay file system here: " +
                               p.stderr.read()[-200:])
        with open(os.path.join(self.dir, name + ".pid"), "w") as f:
            f.write("%d\n" % p.pid)
        return p.pid

    def inside(self, pid, command):
        path = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return ["nsenter", "-t", str(pid), "-m", "-n", "-u", "-r", "env", path, "sh", "-c", command]

    def at_desk(self, command):
        command = "cd %s; %s" % (harness.TOP, command.replace("build/", harness.OUTPUT + "/"))
        return self.inside(self.desk, command)

    def do(self, command):
        """A command of the road; what it says goes to the log of a failure."""
        begin = time.monotonic()
        p = subprocess.run(self.at_desk(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=600, env=dict(os.environ, OUTPUT=harness.OUTPUT))
        harness.note("%.1f s: %s" % (time.monotonic() - begin, command))
        if p.returncode:
            raise ValueError("%s: exit status %d, %s" % (command, p.returncode, p.stdout[-400:]))

    def windows(self):
        """{host: number of windows on it}"""
        return {
            name: len(glob.glob("/proc/%d/root/var/lib/sfbpf-agent/windows/*/*.pb.gz" % pid))
            for name, pid in self.hosts.items()
        }

    def end(self):
        """Ends the agents: what is in the namespaces of the hosts."""
        ours = {os.readlink("/proc/%d/ns/net" % pid) for pid in self.hosts.values()}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink("/proc/%s/ns/net" % pid) in ours:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass


def run_service(fleet):
    """A process on each host, in the cgroup of one unit. Returns what undoes it."""
    mounts = [l.split()[1] for l in open("/proc/mounts") if l.split()[2] == "cgroup2"]
    if not mounts:
        raise harness.Skip("no cgroup v2")
    top = os.path.join(mounts[0], "sfbpf-fleet.slice")
    unit = os.path.join(top, SERVICE + ".service")
    os.makedirs(unit, exist_ok=True)
    busy = [
        harness.start(["nsenter", "-t", str(pid), "-n", "-u", "/usr/bin/python3", "-c", BUSY])
        for pid in fleet.hosts.values()
    ]
    for p in busy:
        with open(unit + "/cgroup.procs", "w") as f:
            f.write(str(p.pid))

    def undo():
        for p in busy:
            harness.stop(p)
        os.rmdir(unit)
        os.rmdir(top)

    return undo


def wait_for_windows(fleet):
    end = time.monotonic() + PATIENCE
    while min(fleet.windows().values()) < 2:
        if time.monotonic() > end:
            logs = {}
            for name, pid in fleet.hosts.items():
                with open("/proc/%d/root/var/log/agent" % pid) as f:
                    logs[name] = f.read()[-200:]
            raise ValueError("windows: %s, logs %s" % (fleet.windows(), logs))
        time.sleep(.2)


def get(url):
    """The answer, once all windows are read."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with urllib.request.urlopen(url, timeout=30) as r:
            if r.status == 200:
                return r.read()
    raise ValueError("%s: windows are still to be read" % url)


def samples(fleet, *options):
    out = subprocess.run(
        fleet.at_desk("build/sfbpf report --format folded %s /var/lib/sfbpf" % " ".join(options)),
        capture_output=True, text=True, check=True, timeout=60).stdout
    return sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())


def look(fleet, url):
    """What the page asks for, against what report says."""
    errors, summary = [], json.loads(get(url + "summary"))
    if summary["hosts"] != sorted(HOSTS):
        errors.append("hosts %s" % summary["hosts"])
    if SERVICE not in [s["name"] for s in summary["services"]]:
        errors.append("services %s" % summary["services"])
    want = {h: samples(fleet, "--service", SERVICE, "--host", h) for h in HOSTS}
    if not all(want.values()):
        errors.append("samples of the service: %s" % want)
    page = harness.tmpfile("flame.html")
    with open(page, "wb") as f:
        f.write(get(url + "flame?service=" + SERVICE))
    found = flame_page.total(page)[0]
    if found != sum(want.values()):
        errors.append("the flame graph has %d samples, want %s" % (found, want))
    harness.note("%d windows of %d hosts, %d samples of the service" %
                 (summary["windows"], len(summary["hosts"]), found))
    return errors, found


def look_in_browser(url, want):
    b = chromium.Browser()
    try:
        page = serve_chromium.Page(b, url)
        page.service(SERVICE)
        page.shot("fleet")
        found = page.total()
        return b.errors + ([] if found == want else ["%d samples, want %d" % (found, want)])
    finally:
        b.close()


def look_from_desk(fleet, command, name):
    """The last command of the road, and a browser on the same host."""
    s = harness.start(fleet.at_desk("exec " + command), stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True)
    url = s.stdout.readline().strip()
    if not url.startswith("http://127.0.0.1:9420/"):
        raise ValueError("serve says %r, %r" % (url, s.stderr.read()))
    libc, home = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/net", os.O_RDONLY)
    desk = os.open("/proc/%d/ns/net" % fleet.desk, os.O_RDONLY)
    try:
        if libc.setns(desk, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        errors, found = look(fleet, url)
        harness.check(name + "-flame-graph", errors)
        if chromium.binary():
            harness.check(name + "-browser", look_in_browser(url, found))
        else:
            harness.skip(name + "-browser", "chromium is not installed")
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(home)
        os.close(desk)
        harness.stop(s)


def check_road(name):
    for tool in ("apt-get", "dpkg-shlibdeps", "setpriv", "nsenter", "ip"):
        if not shutil.which(tool):
            raise harness.Skip("no " + tool)
    road = commands()
    errors = [] if 3 <= len(road) <= MOST_COMMANDS else ["%d commands" % len(road)]
    if not road[-1].startswith("build/sfbpf serve "):
        errors.append("the last command is %s" % road[-1])
    harness.check(name + "-commands", errors)
    if errors:
        return
    fleet = Fleet()
    undo = run_service(fleet)
    try:
        for command in road[:-2]:
            fleet.do(command)
        wait_for_windows(fleet)
        fleet.do(road[-2])
        look_from_desk(fleet, road[-1], name)
    finally:
        fleet.end()
        undo()


if __name__ == "__main__":
    harness.run_checks([check_road])
