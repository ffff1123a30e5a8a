#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""sfbpf top as a user meets it: started in tmux at several sizes, every key of its own help
pressed, the screen read, and the terminal compared before and after each way out. Also the batch
pages. Needs root and tmux.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import harness as h

SOCKET = ["sfbpf-top-%d" % os.getpid(),
          0]  # one server a screen: a dying one must not take the next along
KEYS = {        # names in the help -> names in tmux
    "Backspace": "BSpace", "PgUp": "PageUp", "PgDn": "PageDown", "Esc": "Escape",
    "Shift-Tab": "BTab", "Ctrl-L": "C-l",
}
SIZES = [(80, 24), (120, 40), (200, 60), (40, 10), (250, 70)]
FIRST_S = 3.0 * max(1.0, os.getloadavg()[0] / os.cpu_count())   # a free machine takes less than one


def socket():
    return "%s-%d" % tuple(SOCKET)


def tmux(*args):
    return subprocess.run(["tmux", "-L", socket(), "-f", "/dev/null"] + list(args), check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()


class Screen:
    """A shell in a tmux window, from which top is started, so that what it leaves behind can be
    seen.
    """

    def __init__(self, w, ht, env=()):
        env = dict({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PS1": "READY> ",
                    "HOME": h.tmpfile("home")}, **dict(env))
        cmd = "env -u NO_COLOR " + " ".join("%s='%s'" % kv for kv in env.items()) + " sh"
        self.close()
        SOCKET[1] += 1
        tmux("new-session", "-d", "-x", str(w), "-y", str(ht), cmd)
        self.wait(lambda s: "READY>" in s, 5, "a shell")
        self.type("cd " + h.tmpdir())

    def close(self):
        subprocess.run(["tmux", "-L", socket(), "kill-server"], stderr=subprocess.DEVNULL,
                       check=False)

    def text(self):
        return tmux("capture-pane", "-p")

    def lines(self):
        return self.text().split("\n")

    def key(self, *names):
        for n in names:
            tmux("send-keys", KEYS.get(n, "C-" + n[-1].lower() if n.startswith("Ctrl-") else n))

    def type(self, text):
        tmux("send-keys", "-l", text)
        tmux("send-keys", "Enter")

    def wait(self, good, seconds, what):
        end = time.monotonic() + seconds
        while True:
            text = self.text()
            if good(text):
                return text
            if time.monotonic() > end:
                raise ValueError("no %s after %.1f s: %s" %
                                 (what, seconds, " / ".join(text.split("\n")[:6])))
            time.sleep(0.05)

    def start(self, options=""):
        self.type("clear; %s top %s" % (h.SFBPF, options))
        return self.wait(lambda s: re.search(r"complete \d", s) is not None, FIRST_S + 5,
                         "first screen")

    def see(self, keys, what, seconds=3):
        """Presses keys; then the pattern must be on the screen soon. Returns the screen."""
        self.key(*([keys] if isinstance(keys, str) else keys))
        return self.wait(lambda t: re.search(what, t, re.M) is not None, seconds,
                         "%r after %s" % (what, keys))

    def quit(self):
        self.key("Escape", "Escape", "Escape", "q")
        self.wait(lambda s: "READY>" in s, 5, "prompt after q")

    def modes(self):
        """stty -g, and what the shell prints in a fresh screen."""
        self.type("clear; stty -g")
        found = self.wait(lambda s: re.search(r"^[0-9a-f]+(:[0-9a-f]+){10,}", s, re.M) is not None,
                          5, "stty -g")
        # The line may be longer than the screen is wide.
        return re.search(r"(?:^[0-9a-f:]+\n)+", found, re.M).group(0).replace("\n", "")

    def pid(self):
        for pid in h.family(int(tmux("display-message", "-p", "#{pane_pid}"))):
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    argv = f.read().split(b"\0")
            except OSError:
                continue
            if argv[0].endswith(b"sfbpf") and argv[1:2] == [b"top"]:
                return pid
        raise ValueError("top does not run")

    def alt_screen(self):
        return tmux("display-message", "-p", "#{alternate_on}").strip() == "1"


@contextlib.contextmanager
def top(w=80, ht=24, env=(), options=""):
    """sfbpf top on a screen, until the end of the block."""
    s = Screen(w, ht, env)
    s.start(options)
    yield s
    s.quit()
    s.close()


def need():
    if not shutil.which("tmux"):
        raise h.Skip("no tmux")
    if os.geteuid():
        raise h.Skip("not root")


def busy():
    p = h.start([h.program("rec"), "0"])
    h.wait_busy(p)
    return p


def check_first_screen(name):
    """The busiest function of a busy program is on the first screen, soon, at every size."""
    need()
    busy()
    errors = []
    for w, ht in SIZES:
        s = Screen(w, ht)
        start = time.monotonic()
        s.type("clear; %s top" % h.SFBPF)
        try:
            s.wait(lambda t: "rec_leaf" in t, FIRST_S + 5, "rec_leaf")
        except ValueError as e:
            errors.append("%dx%d: %s" % (w, ht, e))
            continue
        took = time.monotonic() - start
        h.note("%dx%d: the busiest function is there after %.2f s" % (w, ht, took))
        if took > FIRST_S:
            errors.append("%dx%d: %.1f s" % (w, ht, took))
        s.quit()
        s.close()
    h.check(name, errors)


def check_short_lived(name):
    """A file that only processes of 5 ms map, one after the other, has its tables in seconds: the
    request for them does not wait for a key.
    """
    need()
    program = h.copy_program("brief", "shortlived")
    p = h.start(["sh", "-c", 'while :; do "$0" 5; done', program])
    complete, text = 0, ""
    with top(options="-d 1 --comm shortlived") as s:
        end = time.monotonic() + 3 * FIRST_S
        while time.monotonic() < end and complete <= 90:
            time.sleep(0.5)
            text = s.text()
            found = re.search(r"complete ([\d.]+)%", text)
            complete = float(found.group(1)) if found else 0
    h.stop(p)
    h.check(name, [] if complete > 90 else ["complete %s: %s" % (complete, text[:160])])


def check_five_keys(name):
    """Function, callers and process within five keys."""
    need()
    p = busy()
    with top() as s:
        s.see("", "rec_leaf", 5)
        s.key("/")
        tmux("send-keys", "-l", "rec_leaf")
        s.see(["Enter", "Enter"], r"4 Callers(.|\n)*all \S (.|\n)*rec_mid")
        s.see("2", r"^ *%d .*\brec\b" % p.pid)
        s.see("Escape", r"^all  +(.|\n)*FUNCTION")
    h.ok(name)


def help_keys(s):
    """The keys that the help lists, all of its pages."""
    keys = []
    s.key("h")
    s.wait(lambda t: "this help" in t, 3, "help")
    for _ in range(30):
        page = s.lines()
        for line in page[2:-2]:
            m = re.match(r" (\S.{0,15}?)\s{2,}\S", line)
            if m and m.group(1) not in keys:
                keys.append(m.group(1))
        s.key("PageDown")
        time.sleep(0.1)
        if s.lines() == page:
            break
    s.key("x")
    found = []
    for k in keys:
        if k == "1 .. 8":
            found += list("12345678")
        elif not k.endswith("%"):
            found += k.split()
    return [k for k in dict.fromkeys(found) if k]


def check_every_key(name):
    """Each key of the help, in each view, at each size: top lives, the screen is whole, nothing is
    left when it ends.
    """
    need()
    busy()
    errors = []
    for w, ht in SIZES:
        s = Screen(w, ht)
        before = s.modes()
        s.start()
        keys = help_keys(s)
        if len(keys) < 45:
            errors.append("%dx%d: the help lists only %s" % (w, ht, keys))
        for view in "12345678":
            s.key(view)
            for k in keys:
                if k in ("q", "F10", "d", "F12", "W"):
                    continue
                s.key(k)
                if k in ("/", "F4", "h", "?", "F1", "a", "c", "u", "F2", "F3", "F9"):
                    s.key("Escape")
            time.sleep(0.3)
            s.pid()
            lines = s.lines()
            if not re.search(r"complete|F1 Help|sfbpf top", "\n".join(lines)):
                errors.append("%dx%d view %s: no header: %s" % (w, ht, view, lines[:3]))
            if any("\x1b" in x for x in lines):
                errors.append("%dx%d: escape bytes on the screen" % (w, ht))
            s.key("Escape", "Escape", "Escape", "Escape", "Escape")
        s.quit()
        if s.modes() != before:
            errors.append("%dx%d: terminal modes differ" % (w, ht))
        s.close()
    h.check(name, errors)


def check_resize(name):
    need()
    busy()
    s = Screen(80, 24)
    s.start()
    errors = []
    for w, ht in ((40, 10), (200, 60), (20, 4), (3, 2), (80, 24)):
        tmux("resize-window", "-x", str(w), "-y", str(ht))
        time.sleep(0.4)
        s.pid()
        if w >= 40 and "F1 Help" not in s.text():
            errors.append("%dx%d: no bar at the bottom" % (w, ht))
    s.quit()
    s.close()
    h.check(name, errors)


def check_ways_out(name):
    """q, F10, Ctrl-C and signals leave the terminal as it was; also a crash."""
    need()
    errors = []
    for way in ("q", "F10", "C-c", "TERM", "HUP", "INT", "SEGV", "ABRT", "QUIT", "BUS"):
        s = Screen(80, 24)
        before = s.modes()
        s.start()
        if not s.alt_screen():
            errors.append("%s: no screen of its own" % way)
        if way in ("q", "F10", "C-c"):
            s.key(way)
        else:
            subprocess.run(["kill", "-" + way, str(s.pid())], check=True)
        s.wait(lambda t: "READY>" in t.rstrip().split("\n")[-1], 5, "prompt after " + way)
        if s.alt_screen():
            errors.append("%s: still on the other screen" % way)
        if tmux("display-message", "-p",
                "#{cursor_flag} #{mouse_any_flag} #{keypad_flag}").split() != ["1", "0", "0"]:
            errors.append("%s: cursor, mouse or keypad left changed" % way)
        s.type("echo status $?")
        status = re.search(r"^status (\d+)",
                           s.wait(lambda t: re.search(r"^status \d", t, re.M), 3, "status"),
                           re.M).group(1)
        if (way in ("SEGV", "ABRT", "QUIT", "BUS")) != (int(status) > 128):
            errors.append("%s: exit status %s" % (way, status))
        if s.modes() != before:
            errors.append("%s: terminal modes differ" % way)
        s.close()
    h.check(name, errors)


def check_suspend(name):
    need()
    busy()
    s = Screen(80, 24)
    before = s.modes()
    s.start()
    s.key("C-z")
    s.wait(lambda t: "READY>" in t.rstrip().split("\n")[-1], 5, "prompt after Ctrl-Z")
    errors = []
    if s.modes() != before:
        errors.append("suspended: terminal modes differ")
    s.type("fg")
    s.wait(lambda t: "F1 Help" in t and "rec_leaf" in t, 5, "screen after fg")
    subprocess.run(["kill", "-STOP", str(s.pid())], check=True)
    time.sleep(0.3)
    # Nobody could put the modes back: Enter is no end of a line for this shell.
    tmux("send-keys", "-l", "fg")
    s.key("C-j")
    s.wait(lambda t: "F1 Help" in t and "READY>" not in t, 5, "screen after SIGSTOP and fg")
    s.quit()
    if s.modes() != before:
        errors.append("after it: terminal modes differ")
    s.close()
    h.check(name, errors)


def written(text):
    """Paths of the files that the message names."""
    told = re.search(r"wrote (sfbpf-[0-9-]+)(\{,-offcpu\}|-offcpu|)\.\{([\w.,]+)\}", text)
    if not told:
        raise ValueError("no names told: %s" % text.rstrip().split("\n")[-1])
    behind = ["", "-offcpu"] if told.group(2).startswith("{") else [told.group(2)]
    return [
        h.tmpfile(told.group(1) + b + "." + suffix) for b in behind
        for suffix in told.group(3).split(",")
    ]


def check_write(name):
    """What is shown is what is written: process, filter, kernel, window."""
    need()
    p, other = busy(), h.start([h.program("readzero"), "0"])
    errors = []
    with top(140, 24) as s:
        s.see("2", r"^ *%d " % p.pid)
        s.key("/")
        tmux("send-keys", "-l", str(p.pid))
        s.see("Enter", r"filter '%d'" % p.pid)
        by_filter = written(s.see("W", r"wrote .*filter"))
        s.see("Enter", r"all \S rec")
        time.sleep(1.1)          # another second, another name
        by_zoom = written(s.see(["K", "F12"], r"wrote .*rec \(%d\), without kernel" % p.pid))
    for path in by_filter + by_zoom:
        if not os.path.exists(path):
            errors.append(path + " is not there")
        elif path.endswith(".folded"):
            stacks = h.read_folded(path)
            if not any("rec_leaf" in x.frames for x in stacks) or any(x.comm != "rec"
                                                                      for x in stacks):
                errors.append(path + " has other stacks")
            if path in by_zoom and any(f.endswith("_[k]") for x in stacks for f in x.frames):
                errors.append(path + " has kernel frames")
        elif path.endswith(".json"):
            with open(path) as f:
                json.load(f)
    other.kill()
    h.check(name, errors)


def check_pause(name):
    need()
    busy()
    with top() as s:
        first = s.see("Z", "PAUSED")
        time.sleep(2.2)
        if s.text() != first:
            raise ValueError("the screen changed while paused")
        s.key("Z")
        s.wait(lambda t: "PAUSED" not in t, 3, "end of the pause")
    h.ok(name)


def check_one_cpu(name):
    """A program on one CPU is not on the other; the header says which one is shown."""
    need()
    if os.cpu_count() < 2:
        raise h.Skip("one CPU")
    p = busy()
    os.sched_setaffinity(p.pid, {0})
    time.sleep(0.2)
    with top(options="-p %d" % p.pid) as s:
        s.see(["z", "]"], r"CPU 0 (.|\n)*rec_leaf")
        s.key("/")
        tmux("send-keys", "-l", "rec_leaf")
        s.see(["Enter", "]"], r"CPU 1 (.|\n)*no samples on this CPU")
        s.see("]", r"^sfbpf top(.|\n)*rec_leaf")
        s.key("c", "0")
        s.see("Enter", r"CPU 0 ")
    h.ok(name)


def bpf_descriptors(pid):
    """Open BPF programs and links (not maps: tables of new files take some)."""
    kinds = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(OSError):
            kinds.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    return sum(k in ("anon_inode:bpf-prog", "anon_inode:bpf_link") for k in kinds)


def check_search(name):
    """F3 moves to the row while its name is typed; Esc moves back."""
    need()
    p = busy()
    errors = []
    with top() as s:
        s.see("2", r"HOTTEST")
        s.key("F3")
        tmux("send-keys", "-l", "no such process")
        s.wait(lambda t: "Search: no such process" in t, 3, "search")
        s.key("Escape", "F3")
        tmux("send-keys", "-l", str(p.pid))
        s.wait(lambda t: "Search: %d" % p.pid in t, 3, "search")
        s.key("Enter")
        s.see("Enter", r"all (›|>) \S+ \(%d\)" % p.pid)
    h.check(name, errors)


def check_annotate(name):
    """`a` shows the instructions of a hot function; the shares add up, follow new samples, and Esc
    leads back.
    """
    need()
    busy()
    if os.uname().machine != "x86_64":
        h.skip(name, "no disassembler")
        return
    errors = []
    with top(120, 60) as s:
        s.key("F3")
        tmux("send-keys", "-l", "rec_leaf")
        s.wait(lambda t: "Search: rec_leaf" in t, 3, "search")
        s.key("Enter")
        text = s.see("a", r"^ +\d+\.\d +[0-9a-f]{3,}  [a-z]+")
        shares = [float(x) for x in re.findall(r"^ *(\d+\.\d) +[0-9a-f]{3,}  \w+", text, re.M)]
        if not text.startswith("rec_leaf ") or not 90 < sum(shares) < 101:
            errors.append("shares %s of %s" % (shares, text.split("\n")[0]))
        first = re.search(r"(\d+) samples in it", text)
        s.wait(lambda t: re.search(r"(\d+) samples in it", t).group(0) != first.group(0), 5,
               "new samples")
        s.see("Escape", r"SELF%.*FUNCTION")
    h.check(name, errors)


def check_signal(name):
    """F9 asks for the signal; Esc sends none, Enter sends it to the process of the row."""
    need()
    p = busy()
    errors = []
    with top(options="-p %d" % p.pid) as s:
        s.see("F9", r"no process selected")
        s.see("2", r"\b%d\b" % p.pid)
        s.see("F9", r"\(%d\): signal TERM" % p.pid)
        s.key("Escape")
        s.see("F9", r"signal TERM")
        s.key("Ctrl-U")
        tmux("send-keys", "-l", "nosuch")
        s.see("Enter", r"no such signal")
        if p.poll() is not None:
            errors.append("ended before a signal was confirmed")
        s.see("F9", r"signal TERM")
        s.see("Enter", r"signal 15 was sent to")
        if p.wait(timeout=10) != -15:
            errors.append("ended with %s" % p.returncode)
    h.check(name, errors)


def check_user(name):
    """`u` shows only one user's processes."""
    need()
    p = busy()
    q = h.start([h.program("rec"), "0"], user="nobody", cwd="/")
    h.wait_busy(q)
    errors = []
    with top() as s:
        s.see("2", r"\b%d\b" % q.pid)
        s.key("u")
        tmux("send-keys", "-l", "nobody")
        s.see("Enter", r"user nobody")
        s.wait(lambda t: str(q.pid) in t and str(p.pid) not in t, 5, "only nobody's processes")
        s.key("u")
        tmux("send-keys", "-l", "no-such-user")
        s.see("Enter", r"no such user")
        s.key("u")
        s.key("Enter")
        s.wait(lambda t: str(q.pid) in t and str(p.pid) in t, 5, "all processes")
    h.check(name, errors)


def check_setup(name):
    """F2's choices are there at the next start; a file of another user is not read or written."""
    need()
    busy()
    errors = []
    home = h.tmpfile("setup-home-%d" % time.monotonic_ns())
    os.mkdir(home)
    path = os.path.join(home, ".config/sfbpf/config")
    with top(env={"HOME": home}) as s:
        s.see("F2", r"Refresh every +1 s")
        s.see("Right", r"Refresh every +2 s")
        s.key("Down", "Down")
        s.see("Right", r"First view +Processes")
        s.key(*["Down"] * 5)
        s.see("Space", r"Functions: TOTAL% +\[ \]")
        s.see("Escape", r"SELF%\S? +KERN% +FUNCTION")
    with open(path) as f:
        text = f.read()
    want = ("delay = 2s", "view = processes", "functions = TOTAL%")
    errors += ["the file has no '%s'" % w for w in want if w not in text]
    if os.stat(path).st_mode & 0o77:
        errors.append("the file's mode is %o" % os.stat(path).st_mode)
    with top(env={"HOME": home}) as s:
        s.see("Ctrl-L", r"HOTTEST FUNCTION")
        s.see("1", r"SELF%\S? +KERN% +FUNCTION")
        s.see("1", r"every 2s")
    with top(env={"HOME": home}, options="-d 3") as s:
        s.see("1", r"every 3s")
    with open(path, "w") as f:
        f.write("[top]\ndelay = fast\n")
    with top(env={"HOME": home}) as s:
        s.wait(lambda t: "error in the settings" in t and "delay = fast" in t, 3,
               "the error in the file")
    for owner in (65534, 0):
        os.chown(path, owner, 0)
        os.chown(os.path.dirname(path), 65534, 0)
        with top(env={"HOME": home}) as s:
            s.see("F2", r"Refresh every +1 s")
            s.see("Right", r"not saved")
            s.key("Escape")
    with open(path) as f:
        if "fast" not in f.read():
            errors.append("wrote into another user's directory")
    h.check(name, errors)


def check_wall(name):
    """The Wall view: threads that sleep are in the column for it, one that runs in the other."""
    need()
    asleep = h.start([h.program("block"), "60", "sleep", "20000", "2"])      # blocks of 20 ms
    spin = h.start(["sh", "-c", "while :; do :; done"])
    errors = []

    def row(s, pid):
        s.key("/", "C-u")
        tmux("send-keys", "-l", str(pid))
        s.see("Enter", r"^ +%d +[\d.]+ " % pid, 6)
        time.sleep(5)           # a whole window
        return [float(x) for x in re.search(r"^ +%d((?: +[\d.]+)+)" % pid, s.text(),
                                            re.M).group(1).split()]

    with top(140, 40) as s:
        s.see("8", r"^ +PID +ALL\S? +RUN +READY +LOCK +I/O +NET +SLEEP +OTHER +NAME", 5)
        total, run, ready, _, _, _, sleep, _ = row(s, asleep.pid)
        if not 1.4 < sleep < 2.2 or abs(total - run - ready - sleep) > 0.05:
            errors.append("two sleeping threads: all %g, run %g, ready %g, sleep %g" %
                          (total, run, ready, sleep))
        s.see("Space", r"^ +[\d.]+  \[blocked: sleep\] .*hrtimer_nanosleep.*sleep_wait")
        s.see(["Home", "Enter"], r"all \S block \(%d\)" % asleep.pid)
        s.see("Escape", r"^ +PID +ALL")
        total, run, ready, _, _, _, sleep, _ = row(s, spin.pid)
        if not 0.9 < run + ready < 1.1 or sleep > 0.05:
            errors.append("a thread that spins: run %g, ready %g, sleep %g" % (run, ready, sleep))
        s.key("q")
    h.check(name, errors)


def check_offcpu(name):
    """Blocked stacks come within seconds of opening the view; what always sleeps only when asked
    for; files; and it ends.
    """
    need()
    p = h.start([h.program("block"), "60", "sleep", "20000", "2"])      # blocks of 20 ms
    idle = h.start(["sleep", "600"])
    errors = []
    with top(140, 40) as s:
        pid = s.pid()
        before = bpf_descriptors(pid)
        s.see("7", "blocks/s", 5)
        text = s.see("/", "Filter")
        tmux("send-keys", "-l", str(p.pid))
        text = s.see("Enter", r"^ +[\d.]+ .* S +%d block .*hrtimer_nanosleep" % p.pid, 6)
        time.sleep(4)           # a whole window
        text = s.text()
        threads = sum(
            float(x) for x in re.findall(r"^ +[\d.]+ +([\d.]+) .*%d block" % p.pid, text, re.M))
        rate = sum(
            float(x)
            for x in re.findall(r"^ +[\d.]+ +[\d.]+ +([\d.]+) .*%d block" % p.pid, text, re.M))
        h.note("2 threads that sleep 20 ms: %.1f blocked on average, %.0f blocks/s" %
               (threads, rate))
        if not 1.4 < threads < 2.2 or not 50 < rate < 110:
            errors.append("%.1f threads, %.0f blocks/s" % (threads, rate))
        s.see("Space", r"^ {60,}sleep_wait$")
        s.see(["Home", "Enter"], r"all \S block \(%d\)" % p.pid)
        paths = written(s.see("W", r"wrote "))
        for path in paths:
            if path.endswith("-offcpu.folded") and not any("sleep_wait" in x.frames
                                                           for x in h.read_folded(path)):
                errors.append("no sleep_wait in " + path)
        if not any("-offcpu." in x for x in paths):
            errors.append("no off-CPU files")
        s.see("Escape", r"^all  ")
        s.key("Escape", "/", "C-u")
        tmux("send-keys", "-l", str(idle.pid))
        s.see("Enter", "nothing|are idle")
        s.see("i", r"(several|%d) sleep .*hrtimer_nanosleep" % idle.pid, 6)
        s.key("1")
        time.sleep(11.5)
        after = bpf_descriptors(pid)
        if after != before:
            errors.append("%d BPF programs, then %d: the collection did not end" % (before, after))
    h.check(name, errors)


def check_mouse(name):
    """Clicks and the wheel, as xterm reports them."""
    need()
    busy()

    def click(button, x, y):
        tmux("send-keys", "-l", "\x1b[<%d;%d;%dM" % (button, x, y))
        tmux("send-keys", "-l", "\x1b[<%d;%d;%dm" % (button, x, y))

    with top() as s:
        click(0, 20, 3)
        s.see("", "HOTTEST FUNCTION")
        click(65, 20, 10)
        click(0, 3, 24)
        s.see("", "this help")
        click(0, 3, 10)
        s.see("", "HOTTEST FUNCTION")
    h.ok(name)


def check_plain(name):
    """NO_COLOR and a locale without UTF-8: no colours, ASCII only. And terminals of several kinds.
    """
    need()
    busy()
    errors = []
    with top(80, 24, {"LC_ALL": "C", "NO_COLOR": "1"}) as s:
        for view in "13627":
            s.key(view)
            time.sleep(0.2)
            raw = tmux("capture-pane", "-p", "-e")
            if re.search(r"\x1b\[[0-9;]*\b(3[0-7]|4[0-7]|38|48)[;m]", raw):
                errors.append("view %s: colours in spite of NO_COLOR" % view)
            if not s.text().isascii():
                errors.append("view %s: not ASCII" % view)
    for term in ("linux", "xterm", "screen", "vt100", "xterm-ghostty"):
        with top(80, 24, {"TERM": term}) as s:
            s.see("2", "HOTTEST FUNCTION")
    s = Screen(80, 24, {"TERM": "dumb"})
    s.type("clear; %s top -n 1 -d 0.2 --rows 2" % h.SFBPF)
    s.wait(lambda t: "# sfbpf top: page 1" in t, FIRST_S + 5, "a page of text with TERM=dumb")
    s.close()
    h.check(name, errors)


def check_foreign_names(name):
    """A process whose name holds escape sequences."""
    need()
    p = h.start([
        sys.executable, "-c",
        "import ctypes\nctypes.CDLL(None).prctl(15, b'\\x1b[2J\\x1b[31mx;\\xff', 0, 0, 0)\n"
        "while True: pass"
    ])
    h.wait_busy(p)
    with top() as s:
        line = re.search(r"^ *%d .*" % p.pid, s.see("2", r"^ *%d .*" % p.pid, 5), re.M).group(0)
    h.check(name, [] if ".[2J.[31mx;" in line else ["shown as %r" % line])


def check_batch(name):
    need()
    busy()
    errors = []
    out = subprocess.run([h.SFBPF, "top", "-b", "-n", "2", "-d", "0.5"], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    if out.count("# sfbpf top: page ") != 2:
        errors.append("not two pages")
    if not re.search(r"^ *[\d.]+ +[\d.]+ +[\d.]+ +rec +rec_leaf$", out, re.M):
        errors.append("no row of rec_leaf")
    for line in out.split("\n"):
        if line and not line.startswith("#") and not re.match(
                r" *([\d.]+ +){3}\S+ +\S|^ *\d+ +[\d.]+ +[\d.]+ +([\d.]+|-) +\S", line):
            errors.append("row %r" % line)
    out = subprocess.run([h.SFBPF, "top", "--json", "-n", "2", "-d", "0.5"], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    pages = [json.loads(x) for x in out.splitlines()]
    if [p["page"] for p in pages] != [1, 2]:
        errors.append("JSON pages")
    for p in pages:
        users = p["user_stacks"]
        if users["total"] != (users["complete"] + users["bridged"] +
                              sum(users["incomplete"].values())):
            errors.append("stacks do not add up")
        lost = sum(v for k, v in p["lost"].items() if k != "need_ring_full")
        if sum(q["samples"] for q in p["processes"]) + lost > p["samples"]:
            errors.append("more samples in processes than taken")
    out = subprocess.run([h.SFBPF, "top", "-b", "--offcpu", "-n", "1", "-d", "1.5", "--rows", "0"],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = [x.split() for x in out[out.index("BLOCKED_IN"):].splitlines()[1:]]
    share = sum(float(x[0]) for x in rows)
    if abs(share - 100) > 1 or any(x[4] not in list("SDTtP") or not x[5].isdigit() for x in rows):
        errors.append("blocked stacks: %.1f %% in %d rows" % (share, len(rows)))
    # Off a terminal pages come by themselves; the same on one that cannot draw.
    one = subprocess.run([h.SFBPF, "top", "-n", "1", "-d", "0.2"], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    if not one.startswith("# sfbpf top: page 1"):
        errors.append("no batch off a terminal")
    h.check(name, errors)


def check_usage(name):
    errors = []
    for args in (["-n", "0"], ["-n", "1x"], ["-d", "0"], ["-d", "-1"], ["--color", "red"],
                 ["extra"], ["--format", "pprof"], ["--nosuch"]):
        p = subprocess.run([h.SFBPF, "top"] + args, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, check=False)
        if p.returncode != 2 or not p.stderr:
            errors.append("%s: exit %d" % (" ".join(args), p.returncode))
    h.check(name, errors)


def check_docs(name):
    """The list of keys in docs/top.md is the program's."""
    keys = subprocess.run([h.SFBPF, "top", "--keys"], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    with open(os.path.join(h.TOP, "docs", "top.md")) as f:
        h.check(name, [] if keys and keys in f.read() else
                ["docs/top.md has another list than 'sfbpf top --keys'"])


def check_agrees_with_record(name):
    """The share of a function over ten seconds, from top and from record at once."""
    need()
    p = busy()
    rec = h.Recording(["-F", "499", "-p", str(p.pid)], 6)
    top = subprocess.run(
        [h.SFBPF, "top", "--json", "-n", "1", "-d", "6", "-F", "499", "-p",
         str(p.pid)], stdout=subprocess.PIPE, check=True).stdout.decode()
    stacks, _ = rec.finish()
    page = json.loads(top)
    total = sum(f["self"] for f in page["functions"])
    a = 100.0 * sum(f["self"] for f in page["functions"] if f["name"] == "rec_leaf") / max(total, 1)
    b = 100.0 * sum(s.count for s in stacks if s.frames and s.frames[-1] == "rec_leaf") / max(
        h.total(stacks), 1)
    h.note("rec_leaf: %.1f %% in top, %.1f %% in record" % (a, b))
    h.check(name,
            [] if abs(a - b) < 5 else ["rec_leaf: %.1f %% in top, %.1f %% in record" % (a, b)])


def thread_ticks(pid):
    """CPU time of the main thread, which draws; and of the whole process, with the thread that
    reads new files.
    """
    with open("/proc/%d/task/%d/stat" % (pid, pid)) as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]), h.cpu_ticks(pid)


def check_quiet(name):
    """Its own CPU time over ten seconds on a busy machine. How many new files turn up meanwhile is
    not its doing.
    """
    need()
    busy()
    with top(120, 40) as s:
        time.sleep(3)
        pid = s.pid()
        before = thread_ticks(pid)
        time.sleep(10)
        drawing, all_of_it = ((b - a) / os.sysconf("SC_CLK_TCK") * 10
                              for a, b in zip(before, thread_ticks(pid)))
        header = re.search(r"sfbpf CPU .*?RSS \S+", s.text())
        h.note("sfbpf top: %.2f %% of a CPU; with reading new files %.2f %%; it says %s" % (
            drawing, all_of_it, header.group(0) if header else "nothing"))
    h.check(name, [] if drawing < 2 and header else ["%.2f %% of a CPU" % drawing])


if __name__ == "__main__":
    try:
        h.run_checks([
            check_usage, check_docs, check_batch, check_first_screen, check_short_lived,
            check_five_keys, check_every_key, check_resize, check_ways_out, check_suspend,
            check_pause, check_write, check_one_cpu, check_search, check_annotate, check_signal,
            check_user, check_setup, check_wall, check_offcpu, check_mouse, check_plain,
            check_foreign_names, check_agrees_with_record, check_quiet
        ])
    finally:
        subprocess.run(["tmux", "-L", socket(), "kill-server"], stderr=subprocess.DEVNULL,
                       check=False)
