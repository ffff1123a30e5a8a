#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Servers, disks and fates that are not kind. Each window that was spooled must arrive exactly once, or be counted as dropped. The agent
writes every window to --copy as well, which nothing here disturbs: that is what arrivals are compared with."""

import os
import random
import subprocess
import time

import agents
from receivers import GrpcReceiver, HttpReceiver, certificate, copies, decode_otlp, free_port, harness, otlp_folded, pb

WINDOWS = 6


def arrivals(r):
    """({key: requests accepted with it}, {window: Counter}), each key's windows counted once."""
    keys, windows = {}, {}
    for g in r.got:
        keys[g.key] = keys.get(g.key, 0) + 1
        if keys[g.key] == 1:
            otlp_folded(g.message, windows)
    return keys, windows


def exactly_once_errors(agent, r, again=0):
    """again: how many keys may have been accepted twice, because the answer to the first request got lost."""
    keys, windows = arrivals(r)
    wrote = {k: v for k, v in copies(agent.copy).items() if v}
    e = agents.account_errors(agent, len(agent.spooled()))
    twice = [k for k, n in keys.items() if n > 1]
    if len(twice) > again or any(n > 1 + again for n in keys.values()):
        e.append("%d bodies arrived more than once" % len(twice))
    a = agent.account()
    left = len(agent.spooled()) + sum(a.dropped.values())
    missing = sorted(set(wrote) - set(windows))
    if len(missing) > left:
        e.append("%d of %d windows are neither there nor counted (%d are)" % (len(missing), len(wrote), left))
    e += ["window %d: %d samples arrived, %d were taken" % (at, sum(windows[at].values()), sum(wrote[at].values()))
          for at in sorted(set(windows) & set(wrote)) if windows[at] != wrote[at]]
    if a.delivered != len(keys):
        e.append("%d bodies are counted as delivered, %d arrived" % (a.delivered, len(keys)))
    return e[:3]


def through(agent, r, n=WINDOWS):
    agent.wait(lambda: len({g.key for g in r.got}) >= n, 30, "%d windows through" % n)


def check_faults(name):
    """All at once, each with an agent of its own."""
    pb()
    cases = {
        "500": (["500"] * 5, 0), "503": (["503"] * 5, 0), "429-retry-after": (["429:1"] * 2, 0), "killed-mid-request": (["reset"] * 5, 0),
        "answer-lost": (["lost", "ok", "lost"], 2), "garbage": (["garbage"] * 4, 0), "slow-loris": (["loris"] * 3, 0),
        "answer-cut": (["cut", "ok", "cut"], 0), "config-wrong": (["401", "403", "404", "302"], 0),
    }
    receivers = {k: HttpReceiver(faults, decode=decode_otlp) for k, (faults, _) in cases.items()}
    running = {k: agents.Agent("--endpoint", r.url) for k, r in receivers.items()}
    busy = agents.load()
    for a in running.values():
        a.start()
    for k, (faults, again) in cases.items():
        a, r = running[k], receivers[k]
        errors = []
        try:
            through(a, r)
            if k == "429-retry-after" and min(b - x for x, b in zip(r.times[:2], r.times[1:3])) < 0.95:
                errors.append("asked again after %s s" % [b - x for x, b in zip(r.times[:2], r.times[1:3])])
            if a.stop():
                errors.append("exit status %d" % a.p.returncode)
            errors += exactly_once_errors(a, r, again)
            if r.faults:
                errors.append("only %d requests came" % r.requests)
        except ValueError as e:
            errors.append(str(e))
        harness.check("%s-%s" % (name, k), errors)
        r.stop()
    for p in busy:
        harness.stop(p)


def check_refused(name):
    """400 and 413 drop the body and count it; a gRPC server's codes are judged alike."""
    r = HttpReceiver(["400", "413", "ok", "400"], decode=decode_otlp)
    g = GrpcReceiver()
    code = g.grpc.StatusCode
    g.codes = [code.INVALID_ARGUMENT, code.UNAVAILABLE, None, code.RESOURCE_EXHAUSTED, code.UNIMPLEMENTED, code.INTERNAL]
    running = [agents.Agent("--endpoint", r.url), agents.Agent("--protocol", "otlpgrpc", "--endpoint", g.url)]
    busy = agents.load()
    for a in running:
        a.start()
    for a, rec, dropped, what in zip(running, (r, g), (3, 2), ("http", "grpc")):
        through(a, rec)
        a.stop()
        errors = exactly_once_errors(a, rec)
        if a.account().dropped["refused"] != dropped:
            errors.append("%s" % (a.account(),))
        harness.check("%s-%s" % (name, what), errors)
        rec.stop()
    for p in busy:
        harness.stop(p)


def check_receiver_down(name):
    """Nobody listens at first (DOWN seconds); sampling goes on, memory does not grow, all of it arrives later, oldest first."""
    down = float(os.environ.get("DOWN", "4"))
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port)
    busy = agents.load()
    a.start().wait_started()
    time.sleep(1)
    before = a.rss_kb()
    time.sleep(down)
    held, grown = len(a.spooled()), a.rss_kb() - before
    errors = []
    if held < down / 0.3 / 2 or "will be tried again" not in a.text():
        errors.append("%d windows in the spool" % held)
    if grown > 6000:
        errors.append("it grew by %d KB" % grown)
    if not a.metric("failures_in_a_row") > 0 or a.metric("spool_bodies") < held:
        errors.append("the metrics do not show it")
    r = HttpReceiver(decode=decode_otlp, port=port)
    a.wait(lambda: not a.spooled(), 20, "to empty its spool")
    a.stop()
    times = [min(otlp_folded(g.message)) for g in r.got]
    if times != sorted(times):
        errors.append("not the oldest first")
    harness.check(name, errors + exactly_once_errors(a, r))
    harness.note("receiver down %g s: %d windows spooled, RSS +%d KB" % (down, held, grown))
    r.stop()
    for p in busy:
        harness.stop(p)


def check_bounds(name):
    """The spool's bounds in bytes and age: the oldest go first, and are counted."""
    port = free_port()
    small = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port, "--spool-size", "64k", "-F", "299")
    old = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port, "--spool-age", "1s")
    busy = agents.load()
    for a in (small, old):
        a.start()
    errors = []
    try:
        small.wait(lambda: small.has_account() and small.account().dropped["full"] > 3, 30, "its spool full")
        size = sum(os.path.getsize(os.path.join(small.spool, f)) for f in small.spooled())
        if size > 64 << 10:
            errors.append("%d bytes in a spool of 64k" % size)
        old.wait(lambda: old.has_account() and old.account().dropped["old"] > 2, 30, "anything old")
    except ValueError as e:
        errors.append(str(e))
    for a in (small, old):
        a.stop()
        errors += agents.account_errors(a, len(a.spooled()))
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


def check_wrong_certificate(name):
    """Nothing goes to a server that cannot prove who it is; a reload with its certificate delivers what was kept."""
    right, wrong = certificate("right"), certificate("wrong")
    r = HttpReceiver(tls=right, decode=decode_otlp)
    ini = harness.tmpfile("tls.ini")
    text = "[delivery]\nendpoint = %s\nca-file = %s\n"
    with open(ini, "w") as f:
        f.write(text % (r.url, wrong[0]))
    a = agents.Agent("--config", ini)
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 3, 30, "three windows spooled")
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
    harness.check(name, errors + exactly_once_errors(a, r))
    r.stop()


def check_disk_full(name):
    """A spool on a disk of 100 KB: what does not fit stays in memory, and is delivered from there."""
    spool = harness.tmpfile("full")
    os.makedirs(spool)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "none", spool], capture_output=True).returncode:
        raise harness.Skip("no tmpfs can be mounted")
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port, "-F", "299", spool=os.path.join(spool, "s"))
    busy = agents.load()
    errors, r = [], None
    try:
        a.start().wait(lambda: a.p.poll() is None and "started" in a.text() and a.metric("spool_bodies_in_memory") > 3, 30, "a full disk")
        r = HttpReceiver(decode=decode_otlp, port=port)
        a.wait(lambda: not a.metric("spool_bodies_in_memory"), 20, "its memory empty")
        a.stop()
        errors = exactly_once_errors(a, r)
        r.stop()
    finally:
        if a.p.poll() is None:
            a.kill()
        subprocess.run(["umount", spool], check=False)
        for p in busy:
            harness.stop(p)
    harness.check(name, errors)


def check_damaged_spool(name):
    """Bits that flipped, a file that was cut, one that is none: counted and removed, the rest is sent."""
    port = free_port()
    a = agents.Agent("--endpoint", "http://127.0.0.1:%d" % port)
    busy = agents.load()
    a.start().wait(lambda: len(a.spooled()) >= 6, 30, "six windows spooled")
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
    a.wait(lambda: len(r.got) >= len(files) - 3 and not a.spooled(), 20, "to empty its spool")
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
    """kill -9 at random times, KILLS times; the server answers late, so that some kills fall between its yes and our note of it. unsure=resend:
    such a body comes again with the same Idempotency-Key and profile_ids, so those who look at it have all exactly once. unsure=drop: nothing
    ever comes twice, and what may have arrived is counted as dropped."""
    import threading
    kills = int(os.environ.get("KILLS", "20"))
    receivers = {u: HttpReceiver(then="slow", decode=decode_otlp) for u in ("resend", "drop")}
    running = {u: agents.Agent("--endpoint", r.url, "--unsure", u, "--interval", "100ms", copy=False) for u, r in receivers.items()}
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
        a.wait(lambda: len(a.spooled()) <= 1, 20, "to empty its spool")
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
        if u == "drop" and (twice or not account.delivered <= len(got) <= account.delivered + account.dropped["unsure"]):
            errors.append("%d bodies arrived, %d of them twice, account %s" % (len(got), twice, account))
        if other or any(len(set(v)) > 1 for v in got.values()):
            errors.append("account %s, or one key for two bodies" % (account,))
        harness.check("%s-%s" % (name, u), errors)
        harness.note("%s: %d kills, %d bodies added, %d came again, %d dropped as unsure" %
                     (u, kills, account.added, twice, account.dropped["unsure"]))
        r.stop()
    for p in busy:
        harness.stop(p)


if __name__ == "__main__":
    harness.run_checks([check_faults, check_refused, check_receiver_down, check_bounds, check_wrong_certificate, check_disk_full,
                        check_damaged_spool, check_kill])
