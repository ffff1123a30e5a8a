#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `sfbpf record` promises besides right stacks: an account that adds up, first sight, exit
codes.
"""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import harness as h


def check_account(name):
    """Stacks, frames and samples add up, in the account and against the folded output."""
    for p in ("rec", "threads", "readzero", "except"):
        h.wait_busy(h.start([h.link_program(p, "acc-" + p), "60"]))
    stacks, stats = h.record(["-F", "999"], 3)
    errors = h.stats_errors(stats, stacks)
    cpus = os.cpu_count()
    if not 0.8 * 999 * 3 * min(cpus, 4) < stats["samples"] < 1.2 * 999 * 3 * cpus:
        errors.append("%d samples in 3 s at 999 Hz on %d CPUs" % (stats["samples"], cpus))
    runs = sum(p["run_cnt"] for p in stats["bpf"].values())
    if runs == 0:
        errors.append("the kernel counted no run of the BPF programs")
    h.check(name, errors)


def check_account_small_ring(name):
    """One page of ring buffer at 10 kHz: whatever is lost is counted."""
    for p in ("rec", "threads"):
        h.wait_busy(h.start([h.link_program(p, "ring-" + p), "60"]))
    stacks, stats = h.record(["-F", "10000", "--ring-size", "4k"], 3)
    h.note("small ring: %d samples, lost %s" % (stats["samples"], stats["lost"]))
    h.check(name, h.stats_errors(stats, stacks))


def check_account_filter(name):
    """Only the process asked for, and nothing of the others in the account."""
    wanted, second = (h.start([h.link_program("rec", "filter-in"), "60"]) for _ in range(2))
    other = h.start([h.link_program("rec", "filter-out"), "60"])
    errors = []
    for p in (wanted, second, other):
        h.wait_busy(p)
    for option, value in (("-p", str(wanted.pid)), ("-p", "%d,%d" % (wanted.pid, second.pid)),
                          ("-t", str(wanted.pid)), ("--comm", "filter-i*")):
        stacks, stats = h.record(["-F", "499", option, value], 2)
        errors += ["%s: %s" % (option, e) for e in h.stats_errors(stats, stacks)]
        strange = {s.comm for s in stacks} - {"filter-in"}
        if strange:
            errors.append("%s: also recorded %s" % (option, " ".join(sorted(strange))))
        if h.total(stacks) < 100:
            errors.append("%s: %d samples" % (option, h.total(stacks)))
    h.check(name, errors)


NAMED = """
import threading
def name(path, text):
    with open(path, "w") as f:
        f.write(text)
name("/proc/self/comm", "mixed")
def busy():
    name("/proc/self/task/%d/comm" % threading.get_native_id(), "disk-reader")
    while True:
        sum(range(1000))
threading.Thread(target=busy).start()
"""


def check_process_names(name):
    """Folded stacks begin with the thread's name, or with the process's when asked for."""
    p = h.start([sys.executable, "-c", NAMED])
    h.wait_busy(p)
    time.sleep(0.3)
    errors = []
    for options, want in (([], "disk-reader"), (["--by", "thread"], "disk-reader"),
                          (["--by", "process"], "mixed")):
        stacks, _ = h.record(["-F", "199", "-p", str(p.pid)] + options, 1)
        seen = {s.comm for s in stacks}
        if seen != {want}:
            errors.append("%s: %s" % (" ".join(options), seen))
    path = h.tmpfile("names.json")
    run("record", "-F", "199", "-p", str(p.pid), "-o", path, "1")
    for options, want in (([], "disk-reader;"), (["--by", "process"], "mixed;disk-reader;"),
                          (["--by", "process", "--comm", "disk-reader"], "mixed;disk-reader;")):
        text = run("report", "--format", "folded", path, *options).stdout
        if not text or not all(line.startswith(want) for line in text.splitlines()):
            errors.append("report %s: %s" % (" ".join(options), text[:200]))
    if run("report", "--format", "folded", "--by", "process", "--comm", "mixed", path).stdout:
        errors.append("report --comm is not about threads")
    top = run("top", "-b", "--json", "-n", "1", "-d", "1", "-p", str(p.pid))
    rows = json.loads(top.stdout.splitlines()[0])["processes"] if top.stdout else []
    if [r["comm"] for r in rows] != ["mixed"]:
        errors.append("top: %s" % (top.stdout + top.stderr)[:300])
    h.check(name, errors)


def check_sframe_alone(name):
    """Without .eh_frame all frames but _start come from .sframe, whatever its version, and the
    stacks are complete.
    """
    errors = []
    for version in ("1", "2old", "2", "3"):
        p = h.start([h.link_program("nl-sf" + version, "alone-sf" + version), "60", "30"])
        h.wait_busy(p)
        stacks, stats = h.record(["-F", "999", "-U", "-p", str(p.pid)], 1)
        h.stop(p)
        frames, users = stats["frames"], stats["user_stacks"]
        errors += ["V%s: %s" % (version, e) for e in h.stats_errors(stats, stacks)]
        if users["total"] < 100 or users["complete"] < 0.99 * users["total"]:
            errors.append("V%s: %d of %d stacks are complete, %s" %
                          (version, users["complete"], users["total"], users["incomplete"]))
        # The row of _start, where a process begins, is made from its code.
        if frames["sframe"] < frames["total"] - users["total"]:
            errors.append(
                "V%s: of %d frames %d are from .sframe, %d .eh_frame, %d frame pointer" %
                (version, frames["total"], frames["sframe"], frames["eh_frame"], frames["fp"]))
    h.check(name, errors)


def check_seldom_and_often(name):
    """Unwinding has two forms, for samples that are far apart and for others; both are complete,
    and this kernel takes the programs made for it.
    """
    p = h.start([h.link_program("rec", "seldom"), "60"])
    h.wait_busy(p)
    errors = []
    for hz in (199, 3999):
        stacks, stats = h.record(["-F", str(hz), "-U", "-p", str(p.pid)], 2)
        users = stats["user_stacks"]
        errors += ["%d Hz: %s" % (hz, e) for e in h.stats_errors(stats, stacks)]
        if users["total"] < hz / 4 or users["complete"] < 0.99 * users["total"]:
            errors.append("%d Hz: %d of %d stacks are complete, %s" %
                          (hz, users["complete"], users["total"], users["incomplete"]))
    for command in (("record", "-F", "99"), ("record", "-F", "3999"), ("offcpu",)):
        said = run(*command, "-v", "-o", "/dev/null", "-p", str(p.pid), "0.3").stderr
        if "refuses" in said or "mapped files" not in said:
            errors.append("%s says: %s" % (" ".join(command), said.strip()))
    h.check(name, errors)


def check_workers(name):
    """Threads of io_uring have kernel frames only, and are no broken user stacks."""
    p = h.start([h.program("iouring"), "60"])
    if not h.wait_busy(p):
        raise h.Skip("no io_uring")
    stacks, stats = h.record(["-F", "499", "-p", str(p.pid)], 2)
    mine = [s for s in stacks if s.comm.startswith("iou-wrk")]
    bad = [s for s in mine if not all(f.endswith("_[k]") for f in s.frames)]
    users, errors = stats["user_stacks"], []
    if h.total(mine) < 100 or bad:
        errors.append("%d samples; with other frames: %s" % (h.total(mine), h.worst(bad, 1)))
    if users["total"] - users["complete"] > 0.05 * users["total"] + 2:
        errors.append("user stacks: %s" % users)
    h.check(name, errors)


def check_thread_names(name):
    """Three threads whose names differ in numbers have one name, in what record and report write;
    two of them, a single one and the main thread keep theirs.
    """
    threads = ["pool-1-thr-1", "pool-1-thr-2", "pool-2-thr-30", "duo-1", "duo-2", "solo-7"]
    program = h.link_program("thread-names", "prog-7")
    want = {"pool-N-thr-N", "duo-1", "duo-2", "solo-7"}
    errors, kept = [], h.tmpfile("threads.json")

    def folded(what, path, wanted):
        found = {}
        for s in h.read_folded(path):
            found[s.comm] = found.get(s.comm, 0) + s.count
        found.pop("prog-7", 0)
        if set(found) != wanted:
            errors.append("%s: %s" % (what, found))

    for options, wanted in (([], want), (["--threads"], set(threads))):
        path = h.tmpfile("threads.folded")
        subprocess.run([h.SFBPF, "record", "-q", "-F", "199", *options, "-o", path, "--", program,
                        *threads], check=True)
        folded("record %s" % options, path, wanted)
    subprocess.run([h.SFBPF, "record", "-q", "-F", "199", "-o", kept, "--", program, *threads],
                   check=True)
    for options, wanted in (([], want), (["--threads"], set(threads))):
        path = h.tmpfile("reported.folded")
        subprocess.run([h.SFBPF, "report", *options, "-o", path, kept], check=True)
        folded("report %s" % options, path, wanted)
    h.check(name, errors)


def check_kernel_and_user_only(name):
    h.wait_busy(h.start([h.link_program("readzero", "parts"), "60"]))
    errors = []
    user, _ = h.record(["-F", "499", "-U", "--comm", "parts"], 1)
    kernel, _ = h.record(["-F", "499", "-K", "--comm", "parts"], 1)
    if not user or any(f.endswith("_[k]") for s in user for f in s.frames):
        errors.append("-U: kernel frames, or nothing: " + h.worst(user, 1))
    if not kernel or any(not f.endswith("_[k]") for s in kernel for f in s.frames):
        errors.append("-K: user frames, or nothing: " + h.worst(kernel, 1))
    h.check(name, errors)


def check_command(name):
    """`-- COMMAND`: recorded from its first instruction, however short; sfbpf returns its status.
    """
    path = h.copy_program("brief", "cmd-brief")
    stacks, stats = h.Recording(["-F", "999"], command=[path, "300"]).finish()
    mine = [s for s in stacks if s.comm == "cmd-brief"]
    errors = h.stats_errors(stats, stacks)
    if h.total(mine) < 200:
        errors.append("%d samples of 300 ms at 999 Hz" % h.total(mine))
    for script, code, word in (("exit 7", 7, "7"), ("kill -9 $$", 137, "signal 9"), ("true", 0,
                                                                                     "")):
        # Options may follow SECONDS.
        p = subprocess.run([h.SFBPF, "record", "20", "-o", h.tmpfile("c.folded"), "--", "sh", "-c",
                            script], capture_output=True, text=True, timeout=60)
        if p.returncode != code or word not in p.stderr:
            errors.append("%s: code %d, %r" % (script, p.returncode, p.stderr[-200:]))
    h.check(name, errors)


def check_command_files(name):
    """The tables of a command's files are there for its first samples: of the program, what it is
    linked to, the interpreter of a script, and what env(1) and its like execute.
    """
    path = h.copy_program("brief", "first-brief")
    script = h.tmpfile("script")
    with open(script, "w") as f:
        f.write("#!%s 200\n" % path)
    os.chmod(script, 0o755)
    errors = []
    shell = h.tmpfile("shell")
    with open(shell, "w") as f:
        f.write("cd /\nA=1 %s 200 | cat\n" % path)
    linker = "/lib64/ld-linux-x86-64.so.2"
    many = dict(os.environ, PATH=":".join("/opt/p%d" % i for i in range(40)) + ":" +
                os.environ["PATH"])
    for what, argv in (("program", [path, "200"]), ("script", [script]),
                       ("wrapped", ["timeout", "9", "env", "-u", "NO", path, "200"]),
                       ("prlimit", ["prlimit", "--nofile=1000", path, "200"]),
                       ("shell", ["setarch", "-R", "sh", "-c", "nice %s 200; true" % path]),
                       ("shell script", ["sh", shell]),
                       ("linker", [linker] * os.path.exists(linker) + [path, "200"])):
        stacks, stats = h.Recording(["-F", "997"], command=argv, env=many).finish()
        errors += h.stats_errors(stats, stacks)
        late = [s for s in stacks if h.reason(s) == "not_loaded"]
        h.note("%s: %d of %d samples before the tables" % (what, h.total(late), h.total(stacks)))
        if h.total(stacks) < 140 or h.total(late) > 2:
            errors.append("%s: %d of %d samples before the tables: %s" %
                          (what, h.total(late), h.total(stacks), h.worst(late)))
    h.check(name, errors)


def check_busy_machine(name):
    """Ten busy programs for each CPU: all names are read in time, because sfbpf has priority. The
    command has none.
    """
    for _ in range(10 * os.cpu_count()):
        h.start([h.link_program("rec", "busy"), "0", "200"])
    nice = h.tmpfile("nice")
    script = "nice >%s; exec %s 300" % (nice, h.copy_program("brief", "busy-brief"))
    stacks, stats = h.Recording(["-a", "-F", "99"], command=["sh", "-c", script]).finish()
    errors = h.stats_errors(stats, stacks)
    late = {k: v for k, v in stats["parsers"].items() if k in ("late", "deferred", "mangled") and v}
    if late:
        errors.append("names that were not read in time: %s" % late)
    with open(nice) as f:
        if f.read() != "%d\n" % os.nice(0):
            errors.append("the command has another nice value")
    busy = [s for s in stacks if s.comm == "busy"]
    if h.total(busy) < 10 or not all("main" in s.frames for s in busy if not h.reason(s)):
        errors.append("%d samples: %s" % (h.total(busy), h.worst(busy)))
    h.check(name, errors)


def said(argv, terminal):
    """What a run writes to stderr, with stderr on a terminal or a pipe."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    p = h.start([h.SFBPF] + argv, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 4096):
            text += chunk
    except OSError:  # a terminal's way to say that the other side is closed
        pass
    p.wait()
    return text.decode()


def check_progress(name):
    """What is recorded and the progress on a terminal only; a summary everywhere, but with -q."""
    p = h.start([h.link_program("rec", "progress"), "0", "60"])
    argv = ["record", "-p", str(p.pid), "-o", h.tmpfile("progress.folded"), "1"]
    text = said(argv, True)
    errors = [
        "without %r: %r" % (want, text) for want in ("sampling cpu-clock at 99 Hz", "for 1 s",
                                                     " samples, 0 lost", "folded in ", "complete")
        if want not in text
    ]
    errors += ["quiet %s: %r" % (tty, t) for tty in (True, False)
               for t in [said(argv + ["-q"], tty)] if t]
    text = said(argv, False)
    if not re.fullmatch(r"sfbpf record: folded in \S+: \d+ samples in [\d.]+ s, 0 lost, "
                        r"[\d.]+ % of the user stacks complete\r?\n", text):
        errors.append("a pipe: %r" % text)
    text = said(["record", "--comm", "no-such-name", "-o",
                 h.tmpfile("progress.folded"), "0.3"], False)
    if "no samples: nothing that the options select" not in text:
        errors.append("an empty result: %r" % text)
    h.check(name, errors)


def check_new_file(name):
    """A file never seen before: its first samples are shown, as far as they go, with a reason."""
    rec = h.Recording(["-F", "999"])
    rec.wait_ready()
    path = h.copy_program("brief", "new-file")
    subprocess.run([path, "200"], timeout=30, check=False)
    stacks, stats = rec.interrupt()
    mine = [s for s in stacks if s.comm == "new-file"]
    errors = h.stats_errors(stats, stacks)
    late = h.total(s for s in mine if h.reason(s))
    if h.total(mine) < 140:
        errors.append("%d samples of 200 ms at 999 Hz" % h.total(mine))
    if late > 100:
        errors.append("%d samples are incomplete: %s" %
                      (late, h.worst([s for s in mine if h.reason(s)])))
    if any(h.reason(s) and len(s.frames) < 2 for s in mine):
        errors.append("an incomplete stack has no frame at all")
    h.note("new file: %d of %d samples incomplete" % (late, h.total(mine)))
    h.check(name, errors)


def check_brief_300_runs(name):
    """300 processes of 20 ms each: 95 % of their samples carry the whole chain, the first 100 ms
    included.
    """
    path = h.copy_program("brief", "brief300")
    rec = h.Recording(["-F", "999"])
    rec.wait_ready()
    subprocess.run(["sh", "-c", 'i=0; while [ $i -lt 300 ]; do "$0" 20; i=$((i + 1)); done', path],
                   timeout=120, check=False)
    stacks, stats = rec.interrupt()
    mine = [s for s in stacks if s.comm == "brief300" and h.user_frames(s)]
    hot = [s for s in mine if any(f.startswith("br_") for f in s.frames)]
    chain = re.compile(r"_start;[^;]*;[^;]*;main;br_run;br_hot(;br_mid)?(;br_leaf)?(;[^;]*_\[k\])*")
    errors = h.stats_errors(stats, stacks)
    if h.total(hot) < 300 * 15:
        errors.append("%d samples of 300 x 20 ms at 999 Hz" % h.total(hot))
    bad = [s for s in hot if not chain.fullmatch(";".join(s.frames))]
    cut = [s for s in mine if h.reason(s)]
    if h.total(bad) > 0.05 * h.total(hot) or h.total(cut) > 0.05 * h.total(mine):
        errors.append("%d of %d lack the chain, %d of %d are incomplete: %s" % (
            h.total(bad), h.total(hot), h.total(cut), h.total(mine), h.worst(bad + cut)))
    h.note("brief: %d samples, %d without the chain, %d incomplete" %
           (h.total(mine), h.total(bad), h.total(cut)))
    h.check(name, errors)


def check_later_passes(name):
    """A file with more code outside of tables than the first pass over it looks at: samples in it
    have no rows at first, and cause the passes that find them.
    """
    if not os.path.exists(h.program("rec-gap")):
        raise h.Skip("no program rec-gap")
    p = h.start([h.copy_program("rec-gap", name), "120", "60"])
    h.wait_busy(p)
    stacks, stats = h.record(["-F", "199", "--comm", name], 10)
    h.stop_all()
    mine = [s for s in stacks if s.comm == name]
    bad = [s for s in mine if h.reason(s)]
    errors = h.stats_errors(stats, stacks)
    if h.total(mine) < 100 or h.total(bad) > 0.8 * h.total(mine):
        errors.append("%d of %d samples are incomplete: %s" %
                      (h.total(bad), h.total(mine), h.worst(bad)))
    wrong = {h.reason(s) for s in bad} - {"no_row", "not_loaded"}
    if wrong:
        errors.append("reasons: " + ", ".join(sorted(wrong)))
    h.note("later passes: %d of %d samples incomplete" % (h.total(bad), h.total(mine)))
    h.check(name, errors)


def check_static_without_tables(name):
    """A static program that begins in code without tables, and has more such code than the first
    pass looks at: another pass follows at once, before the command starts.
    """
    if not os.path.exists(h.program("start-gap")):
        raise h.Skip("no program start-gap")
    path = h.copy_program("start-gap", name)
    stacks, stats = h.Recording(["-F", "499"], command=[path, "1", "20"]).finish()
    bad = [s for s in stacks if h.reason(s)]
    errors = h.stats_errors(stats, stacks)
    if h.total(stacks) < 100 or h.total(bad) > 0.02 * h.total(stacks):
        errors.append("%d of %d samples are incomplete: %s" %
                      (h.total(bad), h.total(stacks), h.worst(bad)))
    h.note("static: %d of %d samples incomplete" % (h.total(bad), h.total(stacks)))
    h.check(name, errors)


# ---- exit codes
# ------------------------------------------------------------------------------------------

def run(*args, **kw):
    return subprocess.run([h.SFBPF] + list(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, **kw)


def complaint(what, p, code):
    """The run must end with the code and one line on stderr."""
    lines = p.stderr.strip().splitlines()
    if p.returncode != code:
        return ["%s: exit code %d, not %d" % (what, p.returncode, code)]
    if not lines:
        return ["%s: says nothing" % what]
    return []


def check_exec(name):
    """Inside execve(2), after the old image is gone, there is no user stack, and nothing looks like
    a fault of the walk.
    """
    p = h.start(["sh", "-c", "while :; do /bin/true; done"])
    stacks, stats = h.record(["-F", "4999"], 3)
    p.kill()
    mine = [s for s in stacks if s.comm in ("true", "sh")]
    execs = [s for s in mine if s.frames and s.frames[0] == "[exec]"]
    gone = [s for s in mine if h.reason(s) == "no_module"]
    errors = h.stats_errors(stats, stacks)
    if h.total(execs) < 20:
        errors.append("%d of %d samples are inside execve()" % (h.total(execs), h.total(mine)))
    if h.total(gone) > h.total(execs) // 200:
        errors.append("no_module: " + h.worst(gone))
    if any(not f.endswith("_[k]") for s in execs for f in s.frames[1:]):
        errors.append("a user frame inside execve(): " + h.worst(execs))
    # On the way out of the system call, another task may run first.
    others = [s for s in execs if len(s.frames) > 2
              and not re.search("execve|exit_to_user_mode", ";".join(s.frames))]
    if h.total(others) > h.total(execs) // 50:
        errors.append("not inside execve(): " + h.worst(others))
    if h.total(execs) > stats["samples_without_user"]:
        errors.append("%d samples without user part" % stats["samples_without_user"])
    h.check(name, errors)


def check_exit_usage(name):
    errors = []
    for args in (["record", "--no-such-option"], ["record", "-F", "12abc",
                                                  "1"], ["record", "-F", "",
                                                         "1"], ["record", "-F", "-5", "1"],
                 ["record", "12abc"], ["record", "--ring-size", "4x",
                                       "1"], ["record", "-C", "0-",
                                              "1"], ["record", "--format", "nonsense",
                                                     "1"], ["no-such-command"]):
        errors += complaint(" ".join(args), run(*args), 2)
    p = run("--help")
    if p.returncode != 0 or "record" not in p.stdout:
        errors.append("--help: exit code %d" % p.returncode)
    p = run("--version")
    if p.returncode != 0 or not re.search(r"\d+\.\d+", p.stdout):
        errors.append("--version: exit code %d" % p.returncode)
    h.check(name, errors)


def check_exit_missing_pid(name):
    p = run("record", "-p", "4194303", "-o", h.tmpfile("none.folded"), "1")
    errors = complaint("-p 4194303", p, 1)
    if len(p.stderr.strip().splitlines()) > 1:
        errors.append("more than one line: " + p.stderr.strip())
    h.check(name, errors)


def check_exit_not_root(name):
    if not shutil.which("setpriv"):
        raise h.Skip("no setpriv")
    exe = h.tmpfile("sfbpf")
    shutil.copy(h.SFBPF, exe)
    p = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", exe, "record", "1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    errors = complaint("as nobody", p, 3)
    if "CAP_" not in p.stderr and "cap_" not in p.stderr:
        errors.append("the missing capability is not named: %r" % p.stderr[-300:])
    h.check(name, errors)


def check_exit_unwritable(name):
    p = run("record", "-o", h.tmpdir() + "/no/such/folder/x.folded", "1")
    h.check(name, complaint("-o into a folder that is not there", p, 1))


def check_exit_full_disk(name):
    """An older result stays, and the new one is kept where there is room."""
    full = h.tmpfile("full")
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full], check=True)
    busy = h.start(["sh", "-c", "while :; do :; done"])
    errors = []
    try:
        with open(full + "/a.json", "w", encoding="utf-8") as f:
            f.write("old")
        try:
            with open(full + "/rest", "wb", buffering=0) as f:
                while f.write(b"x" * 4096):
                    pass
        except OSError:
            pass
        cases = {"full": (full + "/a.json", None), "device": ("/dev/full", "json"),
                 "stdout": ("-", "json")}
        for case, (path, form) in cases.items():
            with open("/dev/full", "wb") as out:
                p = subprocess.run([
                    h.SFBPF, "record", "-o", path, *(["--format", form] if form else []), "0.5"
                ], stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                                   env=dict(os.environ, TMPDIR=h.tmpdir()))
            kept = re.search(r"what was recorded is in (\S+)", p.stderr)
            if p.returncode != 1 or "No space left" not in p.stderr or not kept:
                errors.append("%s: exit code %d, %r" % (case, p.returncode, p.stderr[-300:]))
                continue
            with open(kept[1], encoding="utf-8") as f:
                if "stacks" not in json.load(f):
                    errors.append("%s: no stacks" % case)
        with open(full + "/a.json", encoding="utf-8") as f:
            if f.read() != "old":
                errors.append("the older result was changed")
    finally:
        h.stop(busy)
        subprocess.run(["umount", full], check=True)
    h.check(name, errors)


def check_exit_closed_stdout(name):
    """Nothing that is opened later takes the place of the descriptor."""
    errors = []
    for args in (["record", "-o", "-", "0.5"], ["record", "0.5"], ["--version"], ["doctor"]):
        p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", h.SFBPF, *args],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           timeout=60, check=False)
        if p.returncode != 1 or not p.stderr.strip():
            errors.append("%s: exit code %d, %r" % (args, p.returncode, p.stderr))
    h.check(name, errors)


def check_exit_namespaces(name):
    """Ids of another namespace select no processes, and its capabilities do not count."""
    errors = []
    for flags, args, code, word in (
            (["-p", "-f", "--mount-proc"], ["record", "--", "true"], 1, "PID namespace"),
            (["-p", "-f", "--mount-proc"], ["record", "-p", "1", "1"], 1, "PID namespace"),
            (["-U", "-r"], ["record", "1"], 3, "user namespace")):
        p = subprocess.run(["unshare", *flags, h.SFBPF, *args], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=60, check=False)
        if "unshare:" in p.stderr:
            raise h.Skip(p.stderr.strip())
        if p.returncode != code or word not in p.stderr:
            errors.append("%s: exit code %d, %r" % (args, p.returncode, p.stderr[-300:]))
    h.check(name, errors)


def check_doctor(name):
    """Where record works, doctor must say so, with a line for each thing it looked at."""
    p = run("doctor")
    errors = []
    if p.returncode != 0:
        errors.append("exit code %d: %s" % (p.returncode, (p.stdout + p.stderr).strip()[-200:]))
    elif len(p.stdout.splitlines()) < 5:
        errors.append("says only: " + p.stdout.strip())
    h.check(name, errors)


def check_binary_on_terminal(name):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(h.SFBPF, [h.SFBPF, "record", "--format", "pprof", "-o", "-", "1"])
    out = b""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    errors = []
    if code not in (1, 2):
        errors.append("exit code %d" % code)
    if b"\x1f\x8b" in out:
        errors.append("wrote gzip data to the terminal")
    h.check(name, errors)


def link_ids(pid):
    found = set()
    for entry in os.scandir("/proc/%d/fdinfo" % pid):
        with open(entry.path) as f:
            found.update(line.split()[1] for line in f if line.startswith("link_id"))
    return found


def check_latency(name):
    """--latency: nine tenths of the time in one thread are nine tenths, whatever other threads take
    in the last tenth.
    """
    program, folded = h.copy_program("parallel", "parallel"), h.tmpfile("latency.folded")
    shares = {}
    for option in ([], ["--latency"]):
        subprocess.run([h.SFBPF, "record", "-q", "-F", "997", *option, "-o", folded, "--", program,
                        "3", "32"], check=True, timeout=60)
        with open(folded) as f:
            lines = [line.rsplit(" ", 1) for line in f]
        total = sum(int(n) for _, n in lines)
        shares[len(option)] = sum(int(n) for s, n in lines if ";run_alone" in s) / total
        if option and not .9 * 3e6 < total < 1.02 * 3e6:
            h.fail(name, "%d us in 3 s" % total)
            return
    # A neighbour that takes CPUs in the last tenth makes the two alike.
    h.note("latency: in one thread %.3f of the time, %.3f of the CPU time" %
           (shares[1], shares[0]))
    h.check(name, [] if abs(shares[1] - .9) <= .02 and shares[0] < shares[1] + .01 else
            ["%.3f of the time in one thread, %.3f of the CPU time" % (shares[1], shares[0])])


def check_events_stay(name):
    """The events of CPUs are made anew after the machine slept, and not otherwise."""
    rec = h.Recording(["-F", "99"])
    rec.wait_ready()
    before = link_ids(rec.p.pid)
    time.sleep(4)
    after = link_ids(rec.p.pid)
    rec.interrupt()
    h.check(name, [] if before and before == after else ["%s became %s" % (before, after)])


def check_interrupt(name):
    """The first Ctrl-C ends the recording with its result and 0."""
    h.wait_busy(h.start([h.link_program("rec", "ctrlc"), "60"]))
    rec = h.Recording(["-F", "199"])
    rec.wait_ready()
    time.sleep(2)
    began = time.monotonic()
    stacks, stats = rec.interrupt()
    errors = h.stats_errors(stats, stacks)
    if time.monotonic() - began > 5:
        errors.append("took %.1f s to end" % (time.monotonic() - began))
    if h.total(s for s in stacks if s.comm == "ctrlc") < 100:
        errors.append("no result")
    h.check(name, errors)


h.run_checks([
    check_account, check_account_small_ring, check_account_filter,
    check_process_names, check_sframe_alone,
    check_seldom_and_often, check_exec, check_workers, check_thread_names,
    check_kernel_and_user_only, check_command,
    check_command_files, check_busy_machine, check_progress,
    check_new_file, check_brief_300_runs, check_later_passes,
    check_static_without_tables, check_exit_usage,
    check_exit_missing_pid, check_exit_not_root, check_exit_unwritable,
    check_exit_full_disk, check_exit_closed_stdout, check_exit_namespaces, check_doctor,
    check_binary_on_terminal, check_latency, check_events_stay, check_interrupt
])
