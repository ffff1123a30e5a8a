#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Servers, disks and fates that are not kind. Each window that was spooled must arrive exactly
once, or be counted as dropped. The agent writes every window to --copy as well, which nothing here
disturbs: that is what arrivals are compared with.
"""

import os
import random
import shutil
import subprocess
import time

import agents
from receivers import (GrpcReceiver, HttpReceiver, certificate, decode_otlp, free_port, harness,
                       otlp_folded, pb)

WINDOWS = 6


def through(agent, r, n=WINDOWS):
    agent.wait(lambda: len({g.key for g in r.got}) >= n, "%d windows through" % n)


def check_faults(name):
    """All at once, each with an agent of its own."""
    pb()
    cases = {
        "500": (["500"] * 5, 0),
        "503": (["503"] * 5, 0),
        "429-retry-after": (["429:1"] * 2, 0),
        "killed-mid-request": (["reset"] * 5, 0),
        "answer-lost": (["lost", "ok", "lost"], 2),
        "garbage": (["garbage"] * 4, 0),
        "slow-loris": (["loris"] * 3, 0),
        "answer-cut": (["cut", "ok", "cut"], 0),
        "config-wrong": (["401", "403", "404", "302"], 0),
    }
    receivers = {k: HttpReceiver(faults, decode=decode_otlp) for k, (faults, _) in cases.items()}
    running = {k: agents.Agent("--endpoint", r.url) for k, r in receivers.items()}
    running["slow-loris"].argv += ["--timeout", "2s"]
    busy = agents.load()
    for a in running.values():
        a.start()
    for k, (faults, again) in cases.items():
        a, r = running[k], receivers[k]
        errors = []
        try:
            through(a, r)
            if k == "429-retry-after" and min(b - x
                                              for x, b in zip(r.times[:2], r.times[1:3])) < 0.95:
                errors.append("asked again after %s s" %
                              [b - x for x, b in zip(r.times[:2], r.times[1:3])])
            if a.stop():
                errors.append("exit status %d" % a.p.returncode)
            errors += agents.exactly_once_errors(a, r, again)
            if r.faults:
                errors.append("only %d requests came" % r.requests)
        except ValueError as e:
            errors.append(str(e))
        harness.check("%s-%s" % (name, k), errors)
        r.stop()
    for p in busy:
        harness.stop(p)


def check_unsure_drop(name):
    """unsure=drop: a body whose answer got lost is counted, and never sent again, not by libcurl
    either.
    """
    r = HttpReceiver(["ok", "lost", "ok", "ok", "lost"], decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--unsure", "drop")
    busy = agents.load()
    through(a.start(), r)
    a.stop()
    for p in busy:
        harness.stop(p)
    a.drain()
    keys, account = agents.arrivals(r)[0], a.account()
    errors = agents.account_errors(a, 0)
    if max(keys.values()) > 1:
        errors.append("%d bodies came twice" % sum(n > 1 for n in keys.values()))
    unsure = account.dropped["unsure"]
    if unsure < 2 or not account.delivered <= len(keys) <= account.delivered + unsure:
        errors.append("%d bodies arrived, %s" % (len(keys), account))
    harness.check(name, errors)
    r.stop()


def check_unreadable_body(name):
    """A body that cannot be read for a while: said, tried again without spinning, and delivered in
    the end.
    """
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port)
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 3, "three windows spooled")
    first = os.path.join(a.spool, a.spooled()[0])
    os.chmod(first, 0)      # the thread that sends has no capability to read it all the same
    a.wait(lambda: "cannot be read" in a.text(), "to a body that it cannot read")
    before, start = harness.cpu_ticks(a.p.pid), time.monotonic()
    time.sleep(1.5)
    used = (harness.cpu_ticks(a.p.pid) - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() -
                                                                               start)
    errors = ["%.0f %% CPU while it waits" % (100 * used)] if used > 0.3 else []
    r = HttpReceiver(decode=decode_otlp, port=port)
    os.chmod(first, 0o600)
    through(a, r)
    a.stop()
    for p in busy:
        harness.stop(p)
    a.drain()
    harness.check(name, errors + agents.exactly_once_errors(a, r))
    r.stop()


def check_refused(name):
    """400 and 413 drop the body and count it; a gRPC server's codes are judged alike."""
    r = HttpReceiver(["400", "413", "ok", "400"], decode=decode_otlp)
    g = GrpcReceiver()
    code = g.grpc.StatusCode
    g.codes = [
        code.INVALID_ARGUMENT, code.UNAVAILABLE, None, code.RESOURCE_EXHAUSTED, code.UNIMPLEMENTED,
        code.INTERNAL
    ]
    running = [
        agents.Agent("--endpoint", r.url),
        agents.Agent("--protocol", "otlpgrpc", "--endpoint", g.url)
    ]
    busy = agents.load()
    for a in running:
        a.start()
    for a, rec, dropped, what in zip(running, (r, g), (3, 2), ("http", "grpc")):
        through(a, rec)
        a.stop()
        errors = agents.exactly_once_errors(a, rec)
        if a.account().dropped["refused"] != dropped:
            errors.append("%s" % (a.account(),))
        harness.check("%s-%s" % (name, what), errors)
        rec.stop()
    for p in busy:
        harness.stop(p)


def check_receiver_down(name):
    """Nobody listens at first (DOWN seconds); sampling goes on, memory does not grow, all of it
    arrives later, oldest first.
    """
    down = float(os.environ.get("DOWN", "4"))
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port)
    served = HttpReceiver(decode=decode_otlp)
    other = agents.Agent("--endpoint", served.url)
    busy = agents.load()
    for agent in (a, other):
        agent.start().wait_started()
    time.sleep(1)
    before = [agent.rss_kb() for agent in (a, other)]
    time.sleep(down)
    a.wait(lambda: len(a.spooled()) >= down / 0.3 / 2, "%g windows spooled" % (down / 0.3 / 2))
    held = len(a.spooled())
    grown, usual = (agent.rss_kb() - b for agent, b in zip((a, other), before))
    other.stop()
    served.stop()
    errors = [] if "will be tried again" in a.text() else ["the log does not say it"]
    if grown > usual + 6000:
        errors.append("it grew by %d KB, with a receiver by %d" % (grown, usual))
    if not a.metric("failures_in_a_row") > 0 or a.metric("spool_bodies") < held:
        errors.append("the metrics do not show it")
    r = HttpReceiver(decode=decode_otlp, port=port)
    a.wait(lambda: not a.spooled(), "to empty its spool")
    a.stop()
    times = [min(otlp_folded(g.message)) for g in r.got]
    if times != sorted(times):
        errors.append("not the oldest first")
    harness.check(name, errors + agents.exactly_once_errors(a, r))
    harness.note("receiver down %g s: %d windows spooled, RSS +%d KB" % (down, held, grown))
    r.stop()
    for p in busy:
        harness.stop(p)


def stopped_errors(a, kept, lost):
    """What the last line says became of the bodies. lost None: some."""
    line = a.text().strip().splitlines()[-1]
    said = dict(w.split("=", 1) for w in line.split() if "=" in w)
    errors = [] if int(said["kept"]) == kept else ["%d files are kept: %s" % (kept, line)]
    if (lost is None and not int(said["lost"])) or (lost is not None and int(said["lost"]) != lost):
        errors.append("lost is not %s: %s" % (lost, line))
    return errors


def check_bounds(name):
    """The spool's bounds in bytes and age: the oldest go first, and are counted."""
    port = free_port()
    nowhere = ["--endpoint", "http://127.0.0.1:%d" % port, "--shutdown", "0s"]
    small = agents.Agent(*nowhere, "--spool-size", "64k", "-F", "299")
    old = agents.Agent(*nowhere, "--spool-age", "1s")
    busy = agents.load()
    for a in (small, old):
        a.start()
    errors = []
    try:
        small.wait(lambda: small.has_account() and small.account().dropped["full"] > 3,
                   "its spool full")
        size = sum(os.path.getsize(os.path.join(small.spool, f)) for f in small.spooled())
        if small.text().count("the spool is full") != 1:
            errors.append("a full spool is logged %d times" %
                          small.text().count("the spool is full"))
        if size > 64 << 10:
            errors.append("%d bytes in a spool of 64k" % size)
        old.wait(lambda: old.has_account() and old.account().dropped["old"] > 2, "anything old")
    except ValueError as e:
        errors.append(str(e))
    for a in (small, old):
        a.stop()
        errors += agents.account_errors(a, len(a.spooled())) + stopped_errors(
            a, len(a.spooled()), 0)
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


def check_wrong_certificate(name):
    """Nothing goes to a server that cannot prove who it is; a reload with its certificate delivers
    what was kept.
    """
    right, wrong = certificate("right"), certificate("wrong")
    r = HttpReceiver(tls=right, decode=decode_otlp)
    ini = harness.tmpfile("tls.ini")
    text = "[delivery]\nendpoint = %s\nca-file = %s\n"
    with open(ini, "w") as f:
        f.write(text % (r.url, wrong[0]))
    a = agents.Agent("--config", ini)
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 3, "three windows spooled")
    errors = ["something was sent"] if r.requests else []
    if "certificate" not in a.text():
        errors.append("the log does not say why")
    with open(ini, "w") as f:
        f.write(text % (r.url, right[0]))
    a.p.send_signal(1)
    through(a, r)
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, errors + agents.exactly_once_errors(a, r))
    r.stop()


def check_disk_full(name):
    """A spool on a disk of 100 KB: what does not fit stays in memory, and is delivered from there.
    """
    spool = harness.tmpfile("full")
    os.makedirs(spool, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "none", spool],
                      capture_output=True).returncode:
        raise harness.Skip("no tmpfs can be mounted")
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port, "-F", "299",
                     spool=os.path.join(spool, "s"))
    busy = agents.load()
    errors, r = [], None
    try:
        a.start().wait(
            lambda: a.p.poll() is None and "started" in a.text() and a.metric(
                "spool_bodies_in_memory") > 3, "a full disk")
        said = a.text().count("the spool cannot be written")
        r = HttpReceiver(decode=decode_otlp, port=port)
        a.wait(
            lambda: not a.metric("spool_bodies_in_memory") and "can be written again" in a.text(),
            "its memory empty")
        a.stop()
        errors = agents.exactly_once_errors(a, r)
        if said != 1:
            errors.append("a full disk is logged %d times" % said)
        r.stop()
    finally:
        if a.p.poll() is None:
            a.kill()
        subprocess.run(["umount", spool], check=False)
        for p in busy:
            harness.stop(p)
    harness.check(name, errors)


def check_spool_gone(name):
    """Someone removes the spool's directory: what was in it is not called kept."""
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % free_port(), "--shutdown", "0s")
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 3, "three windows spooled")
    shutil.rmtree(a.spool)
    a.wait(lambda: a.metric("spool_bodies_in_memory") > 1, "bodies in memory")
    a.stop()
    for p in busy:
        harness.stop(p)
    harness.check(name, stopped_errors(a, 0, None))


def check_damaged_spool(name):
    """Bits that flipped, a file that was cut, one that is none: counted and removed, the rest is
    sent.
    """
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port)
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 6, "six windows spooled")
    a.kill()
    files = [os.path.join(a.spool, f) for f in a.spooled()]
    with open(files[0], "r+b") as f:
        f.seek(200)
        byte = f.read(1)
        f.seek(200)
        f.write(bytes([byte[0] ^ 1]))
    os.truncate(files[1], 100)
    os.truncate(files[2], 10)
    with open(os.path.join(a.spool, "00000000000fffff.tmp"), "wb") as f:
        f.write(b"x")
    r = HttpReceiver(decode=decode_otlp, port=port)
    a.start()
    a.wait(lambda: len(r.got) >= len(files) - 3 and not a.spooled(), "to empty its spool")
    a.stop()
    for p in busy:
        harness.stop(p)
    errors = agents.account_errors(a, len(a.spooled()))
    if a.account().dropped["damaged"] != 3 or any(f.endswith(".tmp") for f in os.listdir(a.spool)):
        errors.append("%s" % (a.account(),))
    harness.check(name, errors)
    r.stop()


def kill_rounds(agent, kills):
    for _ in range(kills):
        agent.start()
        agent.wait_started()
        with open(agent.log, "w"):
            pass        # the next round waits for its own line
        time.sleep(random.uniform(0.1, 0.9))
        agent.kill()


def check_kill(name):
    """kill -9 at random times, KILLS times; the server answers late, so that some kills fall
    between its yes and our note of it. unsure=resend: such a body comes again with the same
    Idempotency-Key and profile_ids, so those who look at it have all exactly once. unsure=drop:
    nothing ever comes twice, and what may have arrived is counted as dropped.
    """
    import threading
    kills = int(os.environ.get("KILLS", "20"))
    receivers = {u: HttpReceiver(then="slow", decode=decode_otlp) for u in ("resend", "drop")}
    running = {
        u: agents.Agent("--endpoint", r.url, "--unsure", u, "--interval", "100ms", "--shutdown",
                        "10s", copy=False)
        for u, r in receivers.items()
    }
    busy = agents.load()
    failed = {}

    def one(u):
        try:
            kill_rounds(running[u], kills)
        except (ValueError, OSError) as e:
            failed[u] = str(e)

    threads = [threading.Thread(target=one, args=(u,)) for u in running]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for u, a in running.items():
        r = receivers[u]
        a.start().wait_started()
        a.wait(lambda: len(a.spooled()) <= 1, "to empty its spool")
        a.stop()
        held, got, account = len(a.spooled()), {}, a.account()
        for g in r.got:
            got.setdefault(g.key, []).append(g.message.SerializeToString())
        errors = [failed[u]] if u in failed else []
        errors += agents.account_errors(a, held)
        twice = sum(len(v) - 1 for v in got.values())
        other = sum(account.dropped.values()) - account.dropped["unsure"]
        if u == "resend" and (len(got) != account.delivered or account.dropped["unsure"]):
            errors.append("%d bodies arrived, account %s" % (len(got), account))
        if u == "drop" and (
                twice or
                not account.delivered <= len(got) <= account.delivered + account.dropped["unsure"]):
            errors.append("%d bodies arrived, %d of them twice, account %s" %
                          (len(got), twice, account))
        if other or any(len(set(v)) > 1 for v in got.values()):
            errors.append("account %s, or one key for two bodies" % (account,))
        harness.check("%s-%s" % (name, u), errors)
        harness.note("%s: %d kills, %d bodies added, %d came again, %d dropped as unsure" %
                     (u, kills, account.added, twice, account.dropped["unsure"]))
        r.stop()
    for p in busy:
        harness.stop(p)


if __name__ == "__main__":
    harness.run_checks([
        check_faults, check_unsure_drop, check_unreadable_body, check_refused, check_receiver_down,
        check_bounds, check_wrong_certificate, check_disk_full, check_spool_gone,
        check_damaged_spool, check_kill
    ])
