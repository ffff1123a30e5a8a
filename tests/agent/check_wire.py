#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What goes over the wire: decoded by other people's protobuf, gRPC and HTTP, over TLS and plain,
gzip on and off; the sums and the stacks are those of the folded file that the agent wrote of the
same window.
"""

import gzip
import os
import shutil
import subprocess
import time
from collections import Counter

from receivers import (HERE, GrpcReceiver, HttpReceiver, PARCA_GRPC, certificate, copies,
                       decode_otlp, harness, otlp_folded, otlp_profiles, pb, windows)
import agents
import otlp_rules


def run_all(list_of_agents, receivers, windows=3):
    busy = agents.load()
    for a in list_of_agents:
        a.start()
    for a, r in zip(list_of_agents, receivers):
        a.wait(lambda: len(r.got) >= windows, "%d windows through" % windows)
    codes = [a.stop() for a in list_of_agents]
    for p in busy:
        harness.stop(p)
    for a in list_of_agents:
        a.drain()
    return codes


def check_otlp(name):
    pb()
    tls = certificate("right")
    cases = [(proto, secure, zipped) for proto in ("otlphttp", "otlpgrpc")
             for secure in (False, True) for zipped in (False, True)]
    receivers, running = [], []
    for proto, secure, zipped in cases:
        r = HttpReceiver(
            tls=tls if secure else None,
            decode=decode_otlp) if proto == "otlphttp" else GrpcReceiver(tls if secure else None)
        receivers.append(r)
        options = [
            "--protocol", proto, "--endpoint", r.url, "--gzip" if zipped else "--no-gzip",
            "--label", "team=a b", "--label-pid"
        ]
        running.append(agents.Agent(*options, *(["--ca-file", tls[0]] if secure else [])))
    codes = run_all(running, receivers)
    for (proto, secure, zipped), r, a, code in zip(cases, receivers, running, codes):
        errors = ["exit status %d" % code] if code else []
        for g in r.got:
            errors += otlp_rules.errors(g.message)
        attrs = [{x.key: x.value.string_value
                  for x in rp.resource.attributes} for g in r.got
                 for rp in g.message.resource_profiles]
        if not all(x.get("team") == "a b" and x["host.name"] == os.uname().nodename for x in attrs):
            errors.append("labels: %s" % attrs[:1])
        ids = [p.profile_id for g in r.got for p in otlp_profiles(g.message)]
        if len(set(ids)) != len(ids):
            errors.append("a profile_id twice")
        coding = {str(g.headers.get("Content-Encoding", "")) for g in r.got}
        if proto == "otlphttp" and coding != ({"gzip"} if zipped else {""}):
            errors.append("encodings %s" % coding)     # grpcio does not show its own
        errors += agents.exactly_once_errors(a, r)
        harness.check(
            "%s-%s-%s%s" %
            (name, proto[4:], "tls" if secure else "plain", "-gzip" if zipped else ""), errors[:3])
        r.stop()


def go_receiver():
    """receiver.go as a program, built once; Debian's grpc-go."""
    src, binary = os.path.join(HERE, "receiver.go"), os.path.join(harness.OUTPUT, "go-receiver")
    if not os.path.isdir("/usr/share/gocode/src/google.golang.org/grpc") or not shutil.which("go"):
        raise harness.Skip("no go, or no golang-google-grpc-dev")
    if not os.path.exists(binary) or os.path.getmtime(binary) < os.path.getmtime(src):
        env = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
                   GOCACHE=os.path.join(harness.OUTPUT, "gocache"))
        subprocess.run(["go", "build", "-o", binary, src], check=True, capture_output=True, env=env)
    return binary


class GoReceiver:
    def __init__(self, tls):
        out = open(harness.tmpfile("go%d" % len(os.listdir(harness.tmpdir()))), "w+")
        self.p = harness.start([go_receiver(), *(tls or ())], stdout=out)
        self.out = out.name
        end = time.monotonic() + agents.PATIENCE
        while not self.lines() and time.monotonic() < end:
            time.sleep(0.02)
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", int(self.lines()[0]))

    def lines(self):
        with open(self.out) as f:
            return f.read().splitlines()

    @property
    def got(self):
        return [l.split(None, 4) for l in self.lines()[1:]]


def check_go(name):
    """grpc-go: the sums of the values in each window."""
    tls = certificate("right")
    ways = [(False, True), (True, False)]
    receivers = [GoReceiver(tls if secure else None) for secure, _ in ways]
    running = [
        agents.Agent("--protocol", "otlpgrpc", "--endpoint",
                     r.url, "--gzip" if zipped else "--no-gzip",
                     *(["--ca-file", tls[0]] if secure else []))
        for r, (secure, zipped) in zip(receivers, ways)
    ]
    run_all(running, receivers)
    for r, a, (secure, zipped) in zip(receivers, running, ways):
        sums, errors = Counter(), []
        for g in r.got:
            if g[0] != "got" or any(int(n) < 1 for n in g[4].strip("[]").split()):
                errors.append(" ".join(g))
                continue
            sums[int(g[2])] += int(g[3])
        wrote = {at: sum(c.values()) for at, c in copies(a.copy).items()}
        if not sums or sums != wrote:
            errors.append("sums %s, written %s" % (dict(sums), wrote))
        harness.check("%s-%s%s" % (name, "tls" if secure else "plain", "-gzip" if zipped else ""),
                      errors[:2])


def pprof_top(path):
    """{function: flat} by go's pprof; "": the sum."""
    out = subprocess.run([
        "go", "tool", "pprof", "-top", "-sample_index=samples", "-nodecount=1000000",
        "-nodefraction=0", path
    ], capture_output=True, text=True, env=dict(os.environ, HOME=harness.tmpdir(),
                                                PPROF_TMPDIR=harness.tmpdir()))
    if out.returncode:
        raise ValueError("go tool pprof: " + out.stderr[-200:])
    lines = out.stdout.splitlines()
    start = next(i for i, l in enumerate(lines) if l.split()[:2] == ["flat", "flat%"])
    flat = Counter()
    for line in lines[start + 1:]:
        f = line.split(None, 5)
        flat[(f + [""])[5].strip()] += int(float(f[0]))
    return flat


def pushed_errors(series_of, got, wrote):
    """Pyroscope's and Parca's: each holds series of labels and pprof."""
    e, sums = [], 0
    first = None
    for g in got:
        for labels, samples in series_of(g.message):
            names = {l.name: l.value for l in labels}
            if names.get("__name__") != "process_cpu" or not names.get(
                    "service_name") or names.get("team") != "x":
                e.append("labels %s" % names)
            for s in samples:
                raw = gzip.decompress(s.raw_profile)
                first = first or s.raw_profile
                sums += len(raw) > 0
    if not sums:
        e.append("no profile")
    if first is None or not shutil.which("go"):
        return e
    path = harness.tmpfile("pushed.pb.gz")
    with open(path, "wb") as f:
        f.write(first)
    top = pprof_top(path)
    if not any(sum(top.values()) <= sum(c.values())
               for c in wrote.values()) or not sum(top.values()):
        e.append("%d samples in a profile, windows have %s" %
                 (sum(top.values()), [sum(c.values()) for c in wrote.values()]))
    return e


def check_push(name):
    pyro = HttpReceiver(decode=lambda b: pb().PushRequest.FromString(b))
    parca = GrpcReceiver(kind="WriteRawRequest", path=PARCA_GRPC)
    running = [
        agents.Agent("--protocol", p, "--endpoint", r.url, "--label", "team=x", "--copy",
                     "/nowhere") for p, r in (("pyroscope", pyro), ("parca", parca))
    ]
    for a in running:
        a.argv += ["--copy", a.copy]
    codes = run_all(running, [pyro, parca], 2)
    ways = (("pyroscope", pyro, lambda m: [(s.labels, s.samples) for s in m.series]),
            ("parca", parca, lambda m: [(s.labels.labels, s.samples) for s in m.series]))
    for (which, r, series_of), a, code in zip(ways, running, codes):
        errors = pushed_errors(series_of, r.got, copies(
            a.copy)) + (["exit status %d" % code] if code else [])
        path = {g.path for g in r.got}
        if which == "pyroscope" and path != {"/push.v1.PusherService/Push"}:
            errors.append("paths %s" % path)
        harness.check("%s-%s" % (name, which), errors[:3])
        r.stop()


def check_names_left_to_the_backend(name):
    """--symbols=none: user frames are mapping and address; a linker's map says what is there."""
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--symbols", "none", "--redact-paths", "all")
    in_kernel = harness.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M"])
    run_all([a], [r], 2)
    harness.stop(in_kernel)
    errors, user, kernel = [], 0, 0
    for g in r.got:
        d = g.message.dictionary
        errors += otlp_rules.errors(g.message)
        for l in d.location_table[1:]:
            m = d.mapping_table[l.mapping_index]
            path = d.string_table[m.filename_strindex]
            if path == "[kernel]":
                kernel += 1
                if not l.lines:
                    errors.append("a kernel frame without a name")
            elif l.mapping_index:
                user += 1
                if l.lines or "/" in path or not (m.attribute_indices or path.startswith("[")):
                    errors.append("%s: named, or a path, or no build-id" % path)
    if not user or not kernel:
        errors.append("%d user locations, %d of the kernel" % (user, kernel))
    harness.check(name, errors[:3])
    r.stop()


def check_small_requests(name):
    """A window is cut into requests below --request-size; nothing is lost or twice in between."""
    r = HttpReceiver(decode=decode_otlp)
    a = agents.Agent("--endpoint", r.url, "--request-size", "16k", "--no-gzip", "-F", "299",
                     "--interval", "1s")
    run_all([a], [r], 6)
    errors, got = [], {}
    sizes = [int(g.headers["Content-Length"]) for g in r.got]
    for g in r.got:
        errors += otlp_rules.errors(g.message)
        otlp_folded(g.message, got)
    if max(sizes) > 64 << 10 or len(sizes) <= len(got):
        errors.append("%d requests for %d windows, the largest has %d bytes" %
                      (len(sizes), len(got), max(sizes)))
    harness.check(name, errors[:3] + agents.exactly_once_errors(a, r))
    r.stop()


def check_files(name):
    """protocol=file, once, with the environment's labels; exit codes of --once."""
    errors, out = [], harness.tmpfile("files")
    busy = agents.load()
    for fmt, suffix in (("pprof", ".pb.gz"), ("folded", ".folded"), ("json", ".json")):
        a = agents.Agent("--once", "--protocol", "file", "--endpoint", out, copy=False,
                         metrics=False)
        a.argv += ["--format", fmt]
        if a.start().p.wait(agents.PATIENCE):
            errors.append("%s: %s" % (fmt, a.text()[-200:]))
        if not [f for f in windows(out) if f.endswith(suffix)]:
            errors.append("no file of %s" % fmt)
    a = agents.Agent("--once", "--endpoint", "http://127.0.0.1:1", copy=False, metrics=False)
    if a.start().p.wait(agents.PATIENCE) != 1:
        errors.append("--once without a server: exit status %d" % a.p.returncode)
    for p in busy:
        harness.stop(p)
    harness.check(name, errors)


def check_environment(name):
    """OTEL_*: endpoint with its path rule, headers, resource attributes, service."""
    r = HttpReceiver(decode=decode_otlp)
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": r.url + "/base/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b,y=2",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test,host.name=other",
        "OTEL_SERVICE_NAME": "fleet"
    }
    a = agents.Agent(env=env)
    run_all([a], [r], 1)
    errors = []
    g = r.got[0]
    if g.path != "/base/v1development/profiles" or g.headers.get(
            "x-tenant") != "a b" or g.headers.get("y") != "2":
        errors.append("path %s, headers %s" % (g.path, dict(g.headers)))
    attrs = {
        x.key: x.value.string_value
        for x in g.message.resource_profiles[0].resource.attributes
    }
    if attrs.get("deployment.environment") != "test" or attrs.get("host.name") != "other":
        errors.append("attributes %s" % attrs)
    services = {
        x.value.string_value
        for rp in g.message.resource_profiles for x in rp.resource.attributes
        if x.key == "service.name"
    }
    if "fleet" not in services:
        errors.append("services %s" % services)
    harness.check(name, errors)
    r.stop()


if __name__ == "__main__":
    harness.run_checks([
        check_otlp, check_go, check_push, check_names_left_to_the_backend, check_small_requests,
        check_files, check_environment
    ])
