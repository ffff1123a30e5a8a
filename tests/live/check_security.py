#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What sfbpf has no right to any more once it samples, and where its results may go.

check_security.py [NAME...]
"""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import harness as h

CAPS = {
    "bpf": 39, "perfmon": 38, "sys_ptrace": 19, "checkpoint_restore": 40, "dac_read_search": 2,
    "syslog": 34
}
KILL = 5
ALICE, MALLORY = 60301, 60302
FOLDED = "main;work 3\nmain;rest 1\n"


def mask(*more):
    return sum(1 << n for n in list(CAPS.values()) + list(more))


def mask_of(*names):
    return sum(1 << CAPS[name] for name in names)


def rights(pid):
    """(thread's name, its fields of /proc/PID/status) of all threads"""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as f:
            yield tid, dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def rights_errors(pid, most, bounded=True):
    errors, threads = [], 0
    for tid, status in rights(pid):
        threads += 1
        for field in ("CapPrm", "CapEff", "CapInh", "CapAmb") + (("CapBnd",) if bounded else ()):
            allowed = most if field in ("CapPrm", "CapEff", "CapBnd") else 0
            if int(status[field], 16) & ~allowed:
                errors.append("thread %s: %s %s" % (tid, field, status[field]))
        if status["NoNewPrivs"].strip() != "1":
            errors.append("thread %s may gain privileges" % tid)
    return errors + ([] if threads >= 2 else ["%d threads" % threads])


def bystander_errors(stacks, comm):
    """A file that was met when the rights were gone has tables and names."""
    mine = [s for s in stacks if s.comm == comm]
    whole = sum(s.count for s in mine
                if not h.reason(s) and any(f.startswith("rec_") for f in s.frames))
    return [] if whole >= 20 and whole > 0.8 * h.total(mine) else [
        "%d of %d stacks of %s are complete with names" % (whole, h.total(mine), comm)
    ]


def wait_sampling(pid, seconds=20.0):
    """Until its second thread is there: it is started when rights have been given up, and before
    sampling.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and os.path.exists("/proc/%d" % pid):
        if len(os.listdir("/proc/%d/task" % pid)) > 1:
            time.sleep(0.5)
            return
        time.sleep(0.02)


def check_rights_record(name):
    r = h.Recording(["-F", "499"], 6)
    wait_sampling(r.p.pid)
    errors = rights_errors(r.p.pid, mask())
    h.start([h.copy_program("rec", "newfile"), "0", "40"])
    stacks, stats = r.finish()
    if not sum(p["run_cnt"] for p in stats["bpf"].values()):
        errors.append("--stats: the kernel counted no run")
    h.check(name, errors + h.stats_errors(stats, stacks) + bystander_errors(stacks, "newfile"))


def check_rights_command(name):
    """What runs under the profiler keeps its own rights, and is ended though it became another
    user.
    """
    out = h.tmpfile("command")
    script = ("grep CapEff /proc/self/status >%s; "
              "exec setpriv --reuid %d --clear-groups sleep 60" % (out, ALICE))
    start = time.monotonic()
    r = h.Recording(["-F", "99"], 2, ["sh", "-c", script])
    wait_sampling(r.p.pid)
    errors = rights_errors(r.p.pid, mask(KILL))
    r.finish()
    if time.monotonic() - start > 20:
        errors.append("the command was not ended")
    with open(out) as f, open("/proc/self/status") as own:
        if f.read().strip() not in own.read():
            errors.append("the command has other rights than who called record")
    h.check(name, errors)


def check_rights_offcpu(name):
    r = h.Recording([], 3, tool="offcpu")
    wait_sampling(r.p.pid)
    errors = rights_errors(r.p.pid, mask())
    stacks, _ = r.finish()
    h.check(name, errors + ([] if h.total(stacks) else ["nothing was measured"]))


def check_rights_top(name):
    """Also with the off-CPU programs, which are loaded later, and what they cost."""
    p = h.start([h.SFBPF, "top", "-b", "--json", "-d", "1", "-n", "4", "--offcpu"],
                stdout=subprocess.PIPE)
    wait_sampling(p.pid)
    errors = rights_errors(p.pid, mask())
    out = p.communicate(timeout=60)[0]
    h.check(
        name, errors + ([] if p.returncode == 0 and out.count(b"\n") >= 4 else
                        ["exit code %d, %d bytes" % (p.returncode, len(out))]))


def as_user(caps):
    listed = ",".join("+" + c for c in caps)
    return ["setpriv", "--reuid", str(ALICE), "--regid", str(ALICE), "--clear-groups",
            "--inh-caps", listed or "-all", "--ambient-caps", listed or "-all"]


def user_directory(uid, mode=0o755):
    path = h.tmpfile("home%d" % uid)
    os.makedirs(path, exist_ok=True)
    os.chmod(path, mode)
    os.chown(path, uid, uid)
    return path


def as_user_errors(argv, bounded):
    """A recording of another user's process by a user other than root."""
    out = os.path.join(user_directory(ALICE), "out.folded")
    p = h.start(argv + ["record", "-F", "499", "-o", out, "5"], stderr=subprocess.PIPE)
    wait_sampling(p.pid)
    errors = rights_errors(p.pid, mask(), bounded)
    h.start([h.copy_program("rec", "rootsown"), "0", "40"])
    said = p.communicate(timeout=60)[1].decode(errors="replace").strip()
    if p.returncode:
        return ["exit code %d: %s" % (p.returncode, said[-200:])]
    errors += bystander_errors(h.read_folded(out), "rootsown")
    os.unlink(out)
    return errors


def check_listed_set(name):
    """The capabilities that README lists suffice for a user who is not root, and without one of
    them there is a clear error.
    """
    errors = as_user_errors(as_user(CAPS) + [h.SFBPF], False)
    p = h.start(
        as_user([c for c in CAPS if c != "perfmon"]) + [h.SFBPF, "record", "-o", "/dev/null", "1"],
        stderr=subprocess.PIPE)
    said = p.communicate(timeout=60)[1].decode(errors="replace")
    if p.returncode != 3 or "CAP_PERFMON" not in said:
        errors.append("without CAP_PERFMON: exit code %d: %s" % (p.returncode, said[-200:]))
    h.check(name, errors)


def check_file_capabilities(name):
    path = h.tmpfile("sfbpf")
    with open(h.SFBPF, "rb") as src, open(path, "wb") as dst:
        dst.write(src.read())
    os.chmod(path, 0o755)
    if subprocess.run(["setcap", ",".join("cap_" + c for c in CAPS) + "+ep", path],
                      stderr=subprocess.DEVNULL).returncode:
        raise h.Skip("this file system keeps no capabilities")
    h.check(name, as_user_errors(as_user([]) + [path], False))


# ---- the processes that read files
# -------------------------------------------------------------------------

def parsers(pid, called="sfbpf-parse"):
    """Those of that name that are there at the moment: children of the process that makes them."""
    return [
        child for server in h.children(pid) for child in h.children(server)
        if h.comm(child) == called
    ]


class NewFiles:
    """Programs that are new to the machine, started until a parser is there to read them."""

    count = 0

    def parser(self, pid, seconds=20.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            NewFiles.count += 1
            h.start([h.copy_program("rec", "fresh%d" % NewFiles.count), "0", "20"])
            for _ in range(20):
                for parser in parsers(pid):
                    return parser
                time.sleep(0.02)
        raise ValueError("no process reads files")


def check_parser_rights(name):
    """What reads files has no capabilities, few system calls, and no descriptors that are worth
    something.
    """
    r = h.Recording(["-F", "499"], 5)
    r.wait_ready()
    errors = []
    parser = NewFiles().parser(r.p.pid)
    openers = parsers(r.p.pid, "sfbpf-open")
    may_open = mask_of("sys_ptrace", "checkpoint_restore", "dac_read_search")
    for pid in h.children(r.p.pid) + [parser] + openers:
        try:
            status = dict(rights(pid))[str(pid)]
            files = [
                os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)
            ]
        except OSError as e:
            errors.append("%d ended: %s" % (pid, e))
            continue
        opens = pid in openers or any(opener in h.children(pid) for opener in openers)
        errors += [
            "%d: %s %s" % (pid, field, status[field])
            for field in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd")
            if int(status[field], 16) & ~(may_open if opens else 0)
        ]
        if status["NoNewPrivs"].strip() != "1":
            errors.append("%d may gain privileges" % pid)
        if pid == parser and status["Seccomp"].strip() != "2":
            errors.append("its system calls are not filtered: %s" % status["Seccomp"])
        errors += [
            "%d has %s open" % (pid, f) for f in files if f.startswith(("anon_inode:", "/dev"))
        ]
    stacks, stats = r.finish()
    if not openers:
        errors.append("no process opens files")
    if parsers(r.p.pid) or os.path.exists("/proc/%d" % parser):
        errors.append("it is still there after the end")
    h.check(name, errors + h.stats_errors(stats, stacks))


def check_parser_killed(name):
    """What reads files is killed again and again: it costs at most the files on which that happens,
    and is counted.
    """
    r, kills = h.Recording(["-F", "499"], 7), 0
    r.wait_ready()
    for _ in range(5):
        try:
            os.kill(NewFiles().parser(r.p.pid), signal.SIGKILL)
            kills += 1
        except ProcessLookupError:
            pass
    h.start([h.copy_program("rec", "after"), "0", "40"])
    stacks, stats = r.finish()
    got = stats["parsers"]
    h.note("%d killed; %s" % (kills, got))
    errors = h.stats_errors(stats, stacks) + bystander_errors(stacks, "after")
    # Two kills may meet the same one.
    if not kills or not 1 <= got["died"] <= kills or got["failed"] > got["died"]:
        errors.append("%d were killed, the account says %s" % (kills, got))
    h.check(name, errors)


def check_parser_hangs(name):
    """One that does not come back, as if it waited for a disk: another one reads the file and all
    others.
    """
    r = h.Recording(["-F", "499"], 9)
    r.wait_ready()
    os.kill(NewFiles().parser(r.p.pid), signal.SIGSTOP)
    h.start([h.copy_program("rec", "behind"), "0", "40"])
    stacks, stats = r.finish()
    errors = h.stats_errors(stats, stacks)
    mine = [s for s in stacks if s.comm == "behind"]
    last = sum(s.count for s in mine if not h.reason(s))
    if stats["parsers"]["late"] < 1 or stats["parsers"]["failed"]:
        errors.append("the account says %s" % stats["parsers"])
    # An allowance of two seconds; the rest of the run it has its tables.
    if last < 0.3 * h.total(mine):
        errors.append("%d of %d stacks are complete" % (last, h.total(mine)))
    h.check(name, errors)


# ---- results
# -----------------------------------------------------------------------------------------------

def owner_errors(path, uid):
    st = os.stat(path)
    return [] if (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (uid, uid, 0o600) else [
        "%s: owner %d:%d, mode %o" % (path, st.st_uid, st.st_gid, st.st_mode & 0o7777)]


def sudo_environment():
    return dict(os.environ, SUDO_UID=str(ALICE), SUDO_GID=str(ALICE))


def check_results_of_sudo(name):
    home, errors = user_directory(ALICE, 0o700), []
    for tool in ("record", "offcpu", "top"):
        files = [os.path.join(home, tool + suffix) for suffix in (".json", ".stats")]
        argv = [h.SFBPF, tool, "-o", files[0]
                ] + (["-b", "-n", "1", "-d", "1"] if tool == "top" else ["--stats", files[1], "1"])
        subprocess.run(argv, env=sudo_environment(), stderr=subprocess.DEVNULL, timeout=60,
                       check=True)
        for path in files[:1] if tool == "top" else files:
            errors += owner_errors(path, ALICE)
    h.check(name, errors)


def check_snapshot_of_sudo(name):
    """top's snapshots, made when its rights are gone, in a directory that only the caller may write
    to.
    """
    home = user_directory(ALICE, 0o700)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    p = h.start([h.SFBPF, "top", "-d", "1"], stdin=slave, stdout=slave, stderr=slave, cwd=home,
                env=dict(sudo_environment(), TERM="xterm-256color", LINES="40", COLUMNS="120"))
    os.close(slave)
    os.set_blocking(master, False)
    for i in range(80):
        try:
            os.read(master, 1 << 16)
        except BlockingIOError:
            pass
        if i == 40:
            os.write(master, b"W")
        time.sleep(0.1)
    os.write(master, b"q")
    p.wait(timeout=20)
    os.close(master)
    made = [os.path.join(home, f) for f in os.listdir(home) if f.startswith("sfbpf-")]
    errors = [] if len(made) >= 4 else ["%d files: %s" % (len(made), made)]
    for path in made:
        errors += owner_errors(path, ALICE)
    h.check(name, errors)


def report(argv, **kw):
    return subprocess.run([h.SFBPF, "report", "--format", "folded",
                           h.tmpfile("in.folded")] + argv, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, text=True, **kw)


def planted(shared):
    """name -> what another user made in a directory for all"""
    secret, hers = os.path.join(shared, "roots"), os.path.join(shared, "hers")
    for path, uid in ((secret, 0), (hers, MALLORY)):
        with open(path, "w") as f:
            f.write("untouched")
        os.chown(path, uid, uid)
    made = {
        "link": os.path.join(shared, "link"), "dangling": os.path.join(shared, "dangling"),
        "fifo": os.path.join(shared, "fifo"), "hard": os.path.join(shared, "hard"), "file": hers
    }
    os.symlink(secret, made["link"])
    os.symlink(os.path.join(shared, "absent"), made["dangling"])
    os.mkfifo(made["fifo"])
    os.link(secret, made["hard"])
    for which in ("link", "dangling", "fifo"):
        os.chown(made[which], MALLORY, MALLORY, follow_symlinks=False)
    return made, (secret, hers)


def check_results_planted(name):
    shared, errors = h.tmpfile("shared"), []
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    with open(h.tmpfile("in.folded"), "w") as f:
        f.write(FOLDED)
    made, files = planted(shared)
    for which, path in made.items():
        for env in (None, sudo_environment()):
            p = report(["-o", path], env=env)
            if p.returncode != 1 or "cannot write" not in p.stderr:
                errors.append("%s: exit code %d: %s" % (which, p.returncode, p.stderr[-200:]))
    p = subprocess.run([h.SFBPF, "record", "-o", made["link"], "1"], stderr=subprocess.PIPE,
                       timeout=60)
    if p.returncode != 1:
        errors.append("record: exit code %d" % p.returncode)
    for path in files:
        with open(path) as f:
            if f.read() != "untouched":
                errors.append("%s was written to" % path)
    if os.path.exists(os.path.join(shared, "absent")):
        errors.append("a file was made where a link of another user points to")
    h.check(name, errors)


def check_results_of_ones_own(name):
    """Standard output by all its names, a file of one's own, a link to it, a FIFO."""
    errors, own, link, fifo = [], h.tmpfile("own"), h.tmpfile("ownlink"), h.tmpfile("ownfifo")
    with open(h.tmpfile("in.folded"), "w") as f:
        f.write(FOLDED)
    expected = report([]).stdout
    if "main;work 3" not in expected:
        errors.append("report writes %r" % expected)
    for path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        if report(["-o", path]).stdout != expected:
            errors.append("-o %s: other output" % path)
    with open(own, "w") as f:
        f.write("older and longer " * 100)
    os.chmod(own, 0o644)
    os.symlink("own", link)
    for path in (own, link):
        report(["-o", path])
        with open(own) as f:
            if f.read() != expected:
                errors.append("-o %s: other output" % path)
    if os.stat(own).st_mode & 0o777 != 0o644 or not os.path.islink(link):
        errors.append("a file of one's own changed its kind")
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True)
    report(["-o", fifo])
    if reader.communicate(timeout=10)[0] != expected:
        errors.append("another output through a FIFO")
    with open(own, "w") as f:
        f.write("first\n")
    with open(own, "a") as f:
        subprocess.run(
            [h.SFBPF, "report", "--format", "folded", "-o", "/dev/stdout",
             h.tmpfile("in.folded")], stdout=f, timeout=60, check=True)
    with open(own) as f:
        if f.read() != "first\n" + expected:
            errors.append("what >> appended to is gone")
    # The input is read before the output begins.
    report(["-o", h.tmpfile("in.folded")])
    with open(h.tmpfile("in.folded")) as f:
        if f.read() != expected:
            errors.append("input and output in one file: lost")
    h.check(name, errors)


# ---- the process that reads files for names
# ----------------------------------------------------------------

class NamesOfTop:
    """top, which names what runs every second; what it says of a program that starts now. Only of
    programs started here: other checks run hostile ones.
    """

    def __init__(self, seconds):
        self.p = h.start(
            [h.SFBPF, "top", "-b", "--json", "-F", "499", "-d", "1", "-n", str(seconds),
             "--comm", "named-*"], stdout=subprocess.PIPE)
        wait_sampling(self.p.pid)
        self.start("first")
        time.sleep(1)

    def start(self, which):
        h.start([h.copy_program("rec", "named-" + which), "0", "40"])

    def reader(self, seconds=20.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for pid in parsers(self.p.pid, "sfbpf-names"):
                return pid
            time.sleep(0.02)
        raise ValueError("no process reads names")

    def finish(self):
        out = self.p.communicate(timeout=90)[0]
        return [json.loads(line) for line in out.splitlines()]


def names_errors(windows, failed=0):
    """Of the last one, where so many files may have no names."""
    last = windows[-1]
    errors = [] if any(
        "rec_" in row.get("name", "")
        for row in last["functions"]) else ["no function of the program has its name"]
    return errors + ([] if last["parsers"]["failed"] <= failed and not last["parsers"]["names_lost"]
                     else ["files or names lost: %s" % last["parsers"]])


def check_names_rights(name):
    """What reads names has no capabilities, few system calls, and nothing open but its socket and
    the memory.
    """
    top = NamesOfTop(5)
    top.start("one")
    pid = top.reader()
    end = time.monotonic() + 5
    status = dict(rights(pid))[str(pid)]
    while status["Seccomp"].strip() != "2" and time.monotonic(
    ) < end:  # it has its name before its jail
        time.sleep(0.02)
        status = dict(rights(pid))[str(pid)]
    errors = [
        "%s %s" % (field, status[field])
        for field in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd") if int(status[field], 16)
    ]
    if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
        errors.append("NoNewPrivs %s, Seccomp %s" % (status["NoNewPrivs"], status["Seccomp"]))
    files = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
    if sum(not f.startswith(("socket:", "/memfd:")) for f in files) > 2:
        errors.append("it has open: %s" % files)
    windows = top.finish()
    if os.path.exists("/proc/%d" % pid):
        errors.append("it is still there after the end")
    h.check(name, errors + names_errors(windows))


def check_names_killed(name):
    """What reads names is killed: another one does it, and that is counted."""
    top = NamesOfTop(6)
    os.kill(top.reader(), signal.SIGKILL)
    top.start("one")
    windows = top.finish()
    h.check(
        name,
        names_errors(windows) + ([] if windows[-1]["parsers"]["died"] else ["it is not counted"]))


def check_names_hang(name):
    """One that does not come back, as if it waited for a disk, costs one file; two seconds later
    others have names.
    """
    top = NamesOfTop(10)
    os.kill(top.reader(), signal.SIGSTOP)
    top.start("held-up")
    time.sleep(4)
    top.start("one")
    windows = top.finish()
    h.note("%s" % windows[-1]["parsers"])
    h.check(
        name,
        names_errors(windows, 1) +
        ([] if windows[-1]["parsers"]["died"] else ["it is not counted"]))


h.run_checks([
    check_rights_record, check_rights_command, check_rights_offcpu, check_rights_top,
    check_listed_set, check_file_capabilities, check_parser_rights, check_parser_killed,
    check_parser_hangs, check_names_rights, check_names_killed, check_names_hang,
    check_results_of_sudo, check_snapshot_of_sudo, check_results_planted, check_results_of_ones_own
])
