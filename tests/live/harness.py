# SPDX-License-Identifier: BSD-2-Clause
"""What the live checks share: where things are, starting sfbpf and programs, folded stacks, the
report lines.
"""

import atexit
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUT = os.path.join(TOP, os.environ.get("OUTPUT", "build"))
SFBPF = os.environ.get("SFBPF", os.path.join(OUTPUT, "sfbpf"))
PROGRAMS = os.path.join(OUTPUT, "programs")

_failed = 0
_held = None  # lines of a first try
_children = []
_tmp = None

# What a check may raise: it fails, and the others go on.
PROBLEMS = (OSError, ValueError, KeyError, IndexError, AttributeError, subprocess.SubprocessError)

Stack = namedtuple("Stack", "comm frames count")


class Skip(Exception):
    """The check cannot be made on this machine; its text says why."""


# ---- report
# ----------------------------------------------------------------------------------------------

def say(line):
    global _failed
    if _held is not None:
        _held.append(line)
        return
    _failed += line.startswith("FAIL ")
    print(line, flush=True)


def ok(name):
    say("ok %s" % name)


def fail(name, why):
    say("FAIL %s: %s" % (name, why))


def skip(name, why):
    say("SKIP %s: %s" % (name, why))


def attempt(check, *args):
    """Runs a check; what fails is tried again, at most twice, and only the last try counts. A
    shared machine can take the CPU away for seconds, and a share of 100 samples has its spread.
    The complaints of the tries before stay in the log. The third try waits until other work ends.
    """
    global _held, _tmp
    for which in ("first", "second"):
        _held = []
        try:
            check(*args)
        except PROBLEMS as e:
            _held.append("FAIL %s: %s" % (type(e).__name__, e))
        finally:
            lines, _held = _held, None
        failed = [line for line in lines if line.startswith("FAIL ")]
        if not failed:
            for line in lines:
                say(line)
            return
        for line in failed:
            note("%s try: %s" % (which, line))
        stop_all()
        _tmp = None     # the next try makes its own files
    wait_for_calm(30)
    check(*args)


def wait_for_calm(limit):
    """Waits until at most as many tasks run as there are CPUs, or LIMIT seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        with open("/proc/loadavg") as f:
            running = int(f.read().split()[3].split("/")[0])
        if running <= os.cpu_count():
            return
        time.sleep(1)


def check(name, errors):
    """One line for a list of complaints."""
    if errors:
        fail(name, "; ".join(errors))
    else:
        ok(name)


def note(text):
    """Figures worth reading in a log; not counted."""
    print("#", text, flush=True)


def exit_status():
    return 1 if _failed else 0


def run_check(fn, name):
    """An exception fails or skips the check alone."""
    try:
        fn(name)
    except Skip as e:
        skip(name, str(e))
    except PROBLEMS as e:
        fail(name, "%s: %s" % (type(e).__name__, e))
    finally:
        stop_all()


def run_checks(checks):
    """Runs functions named check_*."""
    named = {fn.__name__.replace("check_", "").replace("_", "-"): fn for fn in checks}
    unknown = [name for name in sys.argv[1:] if name not in named]
    if unknown:
        sys.exit("no such check: %s (there are %s)" % (", ".join(unknown), ", ".join(named)))
    for name in sys.argv[1:] or named:
        attempt(run_check, named[name], name)
    sys.exit(exit_status())


# ---- programs in Go
# ---------------------------------------------------------------------------------

GO = os.environ.get("GO", "go")


def build_go(name, source, *options, cgo="0", cflags=""):
    path = os.path.join(PROGRAMS, "go-" + name)
    source = os.path.join(TOP, "tests/programs/go", source)
    if not shutil.which(GO):
        raise Skip("%s is not installed" % GO)
    os.makedirs(PROGRAMS, exist_ok=True)
    env = dict(os.environ, CGO_ENABLED=cgo, CGO_CFLAGS="-O2 " + cflags, GO111MODULE="off",
               GOFLAGS="", GOCACHE=os.path.join(PROGRAMS, "go-cache"))
    r = subprocess.run([GO, "build"] + list(options) + ["-o", path, source], capture_output=True,
                       text=True, env=env, check=False)
    if r.returncode:
        raise Skip("go cannot build %s: %s" % (name, r.stderr.strip()[-200:]))
    return path


# ---- files and processes
# ---------------------------------------------------------------------------------

def tmpdir():
    global _tmp
    if _tmp is None:
        _tmp = tempfile.mkdtemp(prefix="sfbpf-live-")
        os.chmod(_tmp, 0o755)
        atexit.register(shutil.rmtree, _tmp, ignore_errors=True)
    return _tmp


def tmpfile(name):
    return os.path.join(tmpdir(), name)


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.path.exists(path):
        raise Skip("%s was not built" % name)
    return path


class Bundles:
    """Files in which containerd keeps the annotations of containers of these (random) ids."""

    def __init__(self):
        self.made = []

    def add(self, ident, **names):
        at = "/"
        for part in ("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + ident).split("/"):
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.made.append(at)
        keys = {k: "io.kubernetes.cri." + k.replace("_", "-") for k in names}
        with open(at + "/config.json", "w") as f:
            json.dump({"ociVersion": "1.1.0", "process": {"args": ["annotations"]},
                       "annotations": {keys[k]: v for k, v in names.items()}}, f)

    def remove(self):
        for at in reversed(self.made):
            try:
                if os.path.exists(at + "/config.json"):
                    os.unlink(at + "/config.json")
                os.rmdir(at)
            except OSError:
                pass    # others' are there, too


def copy_program(name, as_name):
    path = tmpfile(as_name)
    shutil.copy(program(name), path)
    return path


def link_program(name, as_name):
    """A symbolic link gives the process another name, not the file."""
    path = tmpfile(as_name)
    if not os.path.lexists(path):
        os.symlink(program(name), path)
    return path


def start(argv, **kw):
    kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("stdout", subprocess.DEVNULL)
    kw.setdefault("stderr", subprocess.DEVNULL)
    p = subprocess.Popen(argv, start_new_session=True, **kw)
    _children.append(p)
    return p


def stop(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()
    if p in _children:
        _children.remove(p)


def stop_all():
    for p in list(_children):
        stop(p)


def finish(p, seconds):
    """Waits for a process, and says what each thread of it waits for if it does not end."""
    try:
        rc = p.wait(timeout=seconds)
    except subprocess.TimeoutExpired as e:
        at = []
        for pid in family(p.pid):
            for task in glob.glob("/proc/%d/task/*" % pid):
                with contextlib.suppress(OSError), open(task + "/stack") as f:
                    calls = re.findall(r"\] (\w+)", f.read())
                    at.append("%s %s: %s" % (task[6:], comm(pid), " < ".join(calls[:6])))
        stop(p)
        raise ValueError("%s did not end in %d s: %s" % (p.args[:3], seconds, "; ".join(at))) from e
    _children.remove(p)
    if rc:
        raise ValueError("%s: exit code %d" % (p.args[:3], rc))


atexit.register(stop_all)
for _signal in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_signal, lambda number, _: sys.exit(128 + number))


def stolen_us():
    """Time that the hypervisor gave to others, in us since boot, counted in ticks: neither CPU time
    nor blocked.
    """
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) * 1e6 / os.sysconf("SC_CLK_TCK")


def cpu_ticks(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:  # its name can be any bytes
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return -1
    return int(fields[11]) + int(fields[12])


def wait_busy(p, seconds=60.0):
    """Waits until the process group's leader, or a process below it, has used some CPU time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and p.poll() is None:
        if any(cpu_ticks(pid) >= 3 for pid in family(p.pid)):
            return True
        time.sleep(0.02)
    return False


def comm(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().rstrip("\n")
    except OSError:
        return ""


def children(pid):
    """Those of all its threads."""
    found = []
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                found += [int(child) for child in f.read().split()]
    except OSError:
        pass
    return found


def family(pid):
    """The process and all below it."""
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children(pid)
    return found


# ---- recording
# -------------------------------------------------------------------------------------------

def samples_now(pid):
    """Whether its program is attached to a perf event of each CPU."""
    n = 0
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError), open(path) as f:
            n += "link_type:\tperf\n" in f.read()
    return n >= len(os.sched_getaffinity(0))


class Recording:
    """`sfbpf record` (or another tool) in the background; finish() gives its stacks and its
    account.
    """

    count = 0

    def __init__(self, options, seconds=None, command=(), tool="record", env=None, binary=None):
        Recording.count += 1
        self.folded = tmpfile("rec%d.folded" % Recording.count)
        self.stats = tmpfile("rec%d.json" % Recording.count)
        argv = [binary or SFBPF, tool, "-o", self.folded, "--stats", self.stats] + list(options)
        if seconds is not None:
            argv.append(str(seconds))
        if command:
            argv += ["--"] + list(command)
        self.argv = argv
        self.p = start(argv, stderr=subprocess.PIPE, env=env)
        self.limit = (seconds or 30) + 60

    def wait_ready(self, seconds=30.0):
        """Until it samples all CPUs, however busy the machine is."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.p.poll() is None:
            if samples_now(self.p.pid):
                time.sleep(0.3)
                return
            time.sleep(0.02)

    def interrupt(self):
        """Ctrl-C, then as finish()."""
        self.p.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        try:
            err = self.p.communicate(timeout=self.limit)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            stop(self.p)
            raise ValueError("%s did not end" % " ".join(self.argv))
        _children.remove(self.p)
        if self.p.returncode != 0:
            last = err.strip().splitlines()[-1:] or [""]
            raise ValueError("exit code %d: %s" % (self.p.returncode, last[0]))
        with open(self.stats) as f:
            return read_folded(self.folded), json.load(f)


def record(options, seconds):
    return Recording(options, seconds).finish()


def read_folded(path):
    stacks = []
    with open(path, errors="replace") as f:
        for line in f:
            text, _, count = line.rstrip("\n").rpartition(" ")
            frames = text.split(";")
            stacks.append(Stack(frames[0], tuple(frames[1:]), int(count)))
    return stacks


def user_frames(stack):
    """The user part, root first, without the mark of an incomplete stack."""
    frames = [f for f in stack.frames if not f.endswith("_[k]")]
    return frames[1:] if frames and frames[0].startswith("[incomplete:") else frames


def reason(stack):
    """Why the user part is incomplete, or None."""
    m = re.match(r"\[incomplete:([a-z_]+)\]$", stack.frames[0]) if stack.frames else None
    return m.group(1) if m else None


def total(stacks):
    return sum(s.count for s in stacks)


def worst(stacks, n=3, width=300):
    """The commonest of the stacks, for a report."""
    c = Counter()
    for s in stacks:
        c[";".join(s.frames) or "(nothing)"] += s.count
    return " | ".join("%d x %s" %
                      (k, t if len(t) <= width else t[:width // 2] + " ... " + t[-width // 2:])
                      for t, k in c.most_common(n))


# ---- the account
# -----------------------------------------------------------------------------------------

def stats_errors(stats, stacks=None):
    """What does not add up in --stats, alone and against the folded output of the same run."""
    e = []
    users, frames = stats["user_stacks"], stats["frames"]
    sources = sum(n for source, n in frames.items() if source != "total")
    # A lost request for a file's tables is no lost sample.
    lost = sum(stats["lost"].values())
    received = stats["samples_without_user"] + users["total"]

    if users["total"] != users["complete"] + users["bridged"] + sum(users["incomplete"].values()):
        e.append("stacks: total %d, complete %d, bridged %d, incomplete %s" %
                 (users["total"], users["complete"], users["bridged"], users["incomplete"]))
    if frames["total"] != sources:
        e.append("frames: total %d, by source %d" % (frames["total"], sources))
    if stats["samples"] != received + lost:
        e.append("samples %d, received %d, lost %s" % (stats["samples"], received, stats["lost"]))
    if stacks is None:
        return e
    if total(stacks) != received:
        e.append("folded output has %d samples, received were %d" % (total(stacks), received))
    marked = Counter()
    for s in stacks:
        if reason(s):
            marked[reason(s)] += s.count
    counted = {k: v for k, v in users["incomplete"].items() if v}
    if dict(marked) != counted:
        e.append("folded output says incomplete %s, the account %s" % (dict(marked), counted))
    return e
