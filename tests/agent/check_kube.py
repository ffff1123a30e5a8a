#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of pods and containers from a small kubelet: processes in cgroups of pods have them, and
others keep theirs. The kubelet refuses, is slow, says too much, dies and returns; no sample is
lost for that.
"""

import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

from receivers import (HERE, HttpReceiver, Server, certificate, decode_otlp, harness, pb, windows,
                       windows_from_now)
import agents
from check_identity import attribute

UIDS = ["%08x-1111-2222-3333-444455556666" % (0xabc0 + i) for i in range(3)]
IDS = [os.urandom(32).hex() for _ in range(6)]
TOKEN = "token-of-the-agent"
NAMES = ("service.name", "k8s.pod.name", "k8s.namespace.name", "k8s.container.name",
         "k8s.node.name", "k8s.pod.uid", "container.id", "container.name", "k8s.pod.label.team")


def pod(i, name, space, containers, labels):
    return {
        "metadata": {"name": name, "namespace": space, "uid": UIDS[i], "labels": labels,
                     "managedFields": [{"fieldsV1": {"f:metadata": {}}}]},
        "spec": {"nodeName": "node-1", "containers": [{"name": n} for n, _ in containers]},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": n, "containerID": c, "ready": True} for n, c in containers]},
    }


PODS = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
    pod(0, "cart-5d9c-x2", "shop",
        [("app", "containerd://" + IDS[0]), ("proxy", "containerd://" + IDS[4])],
        {"app.kubernetes.io/name": "cart", "team": "blue"}),
    pod(1, "worker-0", "batch", [("main", "cri-o://" + IDS[1])], {}),
    pod(2, "half", "shop", [], {"team": "red"}),
]}


LATE = pod(1, "late-0", "shop", [("late", "cri-o://" + IDS[3])], {})
LATE["metadata"]["uid"] = UIDS[1].replace("a", "d")


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        k = self.server.kubelet
        k.requests.append((self.path, self.headers.get("Authorization")))
        if k.mode == "slow":
            time.sleep(30)
        if self.path != "/pods":
            return self.reply(404, b"")
        if k.token and self.headers.get("Authorization") != "Bearer " + k.token:
            return self.reply(401, b"Unauthorized")
        if k.mode == "endless":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b'{"items":[' + b" " * 65536)
        text = json.dumps(k.pods).encode()
        return self.reply(200, text[:len(text) // 2] if k.mode == "half" else text)

    def reply(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Kubelet:
    def __init__(self, port=0, token=None, tls=None, mode="ok"):
        self.requests, self.token, self.mode, self.pods = [], token, mode, PODS
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.kubelet = self
        self.port = self.server.server_address[1]
        if tls:
            ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            ctx.load_cert_chain(*tls)
            self.server.socket = ctx.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        threading.Thread(target=self.server.serve_forever, args=(0.05, ), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Groups:
    """Cgroups as the runtimes name them."""

    def __init__(self):
        with open("/proc/self/mounts") as f:
            mount = next((line.split()[1] for line in f if line.split()[2] == "cgroup2"), None)
        self.made = []
        self.mount = mount
        self.top = "sfbpf-%d-kubepods.slice" % os.getpid()

    def run(self, path, argv):
        """Starts a program in a group."""
        at = self.mount or "/nonexistent"
        for part in os.path.join(self.top, path).split("/"):
            at = os.path.join(at, part)
            if os.path.isdir(at):
                continue
            try:
                os.mkdir(at)
            except OSError:
                raise harness.Skip("no cgroup v2 hierarchy to make a group in")
            self.made.append(at)
        p = harness.start(["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', at] + argv)
        with open("/proc/%d/cgroup" % p.pid) as f:
            before = f.read()
        for _ in range(200):
            with open("/proc/%d/cgroup" % p.pid) as f:
                if self.top in f.read() or self.top in before:
                    return p
            time.sleep(0.02)
        raise ValueError("the program is not in its group")

    def remove(self):
        harness.stop_all()
        for at in reversed(self.made):
            for _ in range(50):
                try:
                    os.rmdir(at)
                    break
                except OSError:
                    time.sleep(0.1)


def slice_of(uid):
    return "kubepods-burstable.slice/kubepods-burstable-pod%s.slice" % uid.replace("-", "_")


SPIN = [sys.executable, "-c", "while True: sum(range(1000))"]


def named(got):
    """{pid: set of the values of NAMES}"""
    found = {}
    for g in got:
        d = g.message.dictionary
        for rp in g.message.resource_profiles:
            names = tuple(attribute(rp.resource, n) for n in NAMES)
            for s in (s for sp in rp.scope_profiles for p in sp.profiles for s in p.samples):
                for a in (d.attribute_table[a] for a in s.attribute_indices):
                    if d.string_table[a.key_strindex] == "process.pid":
                        found.setdefault(a.value.int_value, set()).add(names)
    return found


def agent(r, k, *options):
    a = agents.Agent("--endpoint", r.url, "--label-pid", "--interval", "500ms", "--kubelet", k.url,
                     "--kubelet-interval", "200ms", "--pod-labels", "tier,team", *options,
                     copy=False)
    return a.start().wait_started()


def until(a, r, condition, what):
    """Waits until a window that begins now has what is asked for. Returns the names in it."""
    fresh, last = windows_from_now(r), {}

    def enough():
        for g in fresh():
            last.update(named([g]))
        return condition(last)

    a.wait(enough, what)
    return last


def check_kube(name):
    pb()
    groups, r, k, errors = Groups(), HttpReceiver(decode=decode_otlp), Kubelet(), []
    bundles = harness.Bundles()
    try:
        # The runtime's names: the kubelet's count more, where it has any.
        bundles.add(IDS[0], container_name="c", sandbox_name="p", sandbox_namespace="s")
        bundles.add(IDS[2], container_name="web", sandbox_name="p", sandbox_namespace="s")
        bundles.add(IDS[5], container_name="db", sandbox_name="db-0", sandbox_namespace="data")
        label = groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        container = groups.run("burstable/pod%s/%s" % (UIDS[1], IDS[1]), SPIN)
        half = groups.run(slice_of(UIDS[2]) + "/crio-%s.scope" % IDS[2], SPIN)
        unknown = groups.run(slice_of(UIDS[2].replace("a", "b")) + "/crio-%s.scope" % IDS[3], SPIN)
        itself = groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[4],
                            [sys.executable, os.path.join(HERE, "publisher.py"), "memfd", "own"])
        runtime = groups.run(slice_of(UIDS[2].replace("a", "c")) + "/cri-containerd-%s.scope" %
                             IDS[5], SPIN)
        plain = harness.start(SPIN)
        want = {
            label.pid: ("cart", "cart-5d9c-x2", "shop", "app", "node-1", UIDS[0], IDS[0], "c",
                        "blue"),
            container.pid: ("main", "worker-0", "batch", "main", "node-1", UIDS[1], IDS[1], "",
                            ""),
            half.pid: ("web", "half", "shop", "web", "node-1", UIDS[2], IDS[2], "web", "red"),
            unknown.pid: ("unknown_service", "", "", "", "",
                          UIDS[2].replace("a", "b"), IDS[3], "", ""),
            runtime.pid: ("db", "db-0", "data", "db", "", UIDS[2].replace("a", "c"), IDS[5], "db",
                          ""),
            itself.pid: ("own", "cart-5d9c-x2", "shop", "proxy", "node-1", UIDS[0], IDS[4], "",
                         "blue"),
        }
        a = agent(r, k)
        a.wait(lambda: a.metric("kubelet_answers_total") >= 1 and a.metric(
            "process_contexts_read_total") >= 1, "an answer of the kubelet")
        found = until(a, r, lambda f: set(f) >= set(want) | {plain.pid}, "samples of all processes")
        for pid, names in want.items():
            if found[pid] != {names}:
                errors.append("%s, not %s" % (found[pid], names))
        if any(n for names in found[plain.pid] for n in names[1:]):
            errors.append("a plain process: %s" % found[plain.pid])
        if a.metric("kubelet_up") != 1 or a.metric("kubelet_pods") != 3 or a.metric(
                "kubelet_containers") != 3:
            errors.append("metrics: " + a.get()[:200])
        if any(q != ("/pods", None) for q in k.requests):
            errors.append("asked for %s" % k.requests)
        # The one that it never names is asked for less and less often: 0.2, 0.4, 0.8 s...
        before = len(k.requests)
        time.sleep(3)
        if len(k.requests) - before > 4:
            errors.append("%d requests in 3 s for a container that it does not have" %
                          (len(k.requests) - before))
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
        errors += agents.account_errors(a, len(a.spooled()))
    finally:
        bundles.remove()
        groups.remove()
        k.stop()
        r.stop()
    harness.check(name, errors[:4])


def check_kube_faults(name):
    """401, an answer that is cut, one without end, one that is late, none; then a good one. The
    windows come all the time, and each kind of trouble is said once.
    """
    pb()
    groups, r, errors = Groups(), HttpReceiver(decode=decode_otlp), []
    tls = certificate("kubelet")
    token = harness.tmpfile("kubelet-token")
    with open(token, "w") as f:
        f.write("an-old-token\n")
    k = Kubelet(token=TOKEN, tls=tls)
    port = k.port
    try:
        p = groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        a = agent(r, k, "--kubelet-token-file", token, "--kubelet-ca-file", tls[0])

        def failed(more):
            n = a.metric("kubelet_failures_total")
            a.wait(lambda: a.metric("kubelet_failures_total") >= n + more, "failures to count")

        def is_named(f):
            return "cart" in {n[0] for n in f.get(p.pid, ())}

        failed(2)
        found = until(a, r, lambda f: p.pid in f, "samples of the process")
        if {n[0] for n in found[p.pid]} != {"unknown_service"}:
            errors.append("without an answer: %s" % found[p.pid])
        if k.requests[0] != ("/pods", "Bearer an-old-token") or "status 401" not in a.text():
            errors.append("the token: %s" % k.requests[:1])
        for mode in ("half", "endless", "slow"):
            k.mode, k.token = mode, None
            failed(1)
            at = len(r.got)
            a.wait(lambda: len(r.got) >= at + 3, "windows beside a kubelet that is " + mode)
            if a.rss_kb(peak=True) > 256 << 10:
                errors.append("%s: %d kB" % (mode, a.rss_kb(peak=True)))
        with open(token, "w") as f:
            f.write(TOKEN + "\n")
        k.mode, k.token = "ok", TOKEN
        until(a, r, is_named, "names")
        # It dies: what is known stays. It returns: what is new is known.
        k.stop()
        late = groups.run(slice_of(LATE["metadata"]["uid"]) + "/crio-%s.scope" % IDS[3], SPIN)
        failed(2)
        found = until(a, r, lambda f: p.pid in f and late.pid in f, "samples of both")
        if not is_named(found) or {n[1] for n in found[late.pid]} != {""}:
            errors.append("dead: %s" % found)
        k = Kubelet(port=port, token=TOKEN, tls=tls)
        k.pods = dict(PODS, items=PODS["items"] + [LATE])
        until(a, r, lambda f: "late" in {n[0] for n in f.get(late.pid, ())}, "the new one's name")
        a.wait(lambda: a.metric("kubelet_up") == 1, "an answer again")
        if a.text().count("does not name pods") > 2 or a.text().count("kubelet names pods") != 2:
            errors.append("the log: " + a.text()[-800:])
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
        errors += agents.account_errors(a, len(a.spooled()))
        if TOKEN in a.text():
            errors.append("the token is in the log")
    finally:
        groups.remove()
        k.stop()
        r.stop()
    harness.check(name, errors[:4])


def check_kube_certificate(name):
    """A certificate of nobody that is trusted: the token is not sent."""
    k, r = Kubelet(tls=certificate("other")), HttpReceiver(decode=decode_otlp)
    token, groups, errors = harness.tmpfile("kubelet-token"), Groups(), []
    with open(token, "w") as f:
        f.write(TOKEN + "\n")
    try:
        groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        a = agent(r, k, "--kubelet-token-file", token)
        a.wait(lambda: a.metric("kubelet_failures_total") >= 1, "a failure")
        if k.requests:
            errors.append("asked for %s" % k.requests)
        a.stop()
        a = agent(r, k, "--kubelet-token-file", token, "--kubelet-insecure")
        a.wait(lambda: a.metric("kubelet_answers_total") >= 1, "an answer")
        a.stop()
    finally:
        groups.remove()
        k.stop()
        r.stop()
    harness.check(name, errors)


def capabilities(a):
    """Of each thread."""
    held = []
    for tid in os.listdir("/proc/%d/task" % a.p.pid):
        with open("/proc/%d/task/%s/status" % (a.p.pid, tid)) as f:
            held += [int(line.split()[1], 16) for line in f if line.startswith("CapEff:")]
    return held


def check_kube_reload(name):
    """Other labels, off and on again; a file that is wrong changes nothing. The thread that asks
    has no capability.
    """
    pb()
    groups, r, k, errors = Groups(), HttpReceiver(decode=decode_otlp), Kubelet(), []
    config = harness.tmpfile("kube.ini")

    def write(text):
        with open(config, "w") as f:
            f.write("[kubernetes]\n" + text)

    def names(f):
        return {(n[0], n[-1]) for n in f.get(p.pid, ())}

    try:
        p = groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        write("kubelet = %s\nkubelet-interval = 200ms\n" % k.url)
        a = agents.Agent("--config", config, "--endpoint", r.url, "--label-pid", "--interval",
                         "500ms", copy=False)
        a.start().wait_started()
        until(a, r, lambda f: ("cart", "") in names(f), "a name")
        held = capabilities(a)
        if len(held) != 6 or held.count(0) != 4:
            errors.append("capabilities of threads: %s" % held)
        a.p.send_signal(1)
        a.wait(lambda: a.metric("reloads_total") == 1, "the configuration again")
        found = until(a, r, names, "samples")
        # A thread that is new would say so.
        if names(found) != {("cart", "")} or a.text().count("the kubelet names pods") != 1:
            errors.append("nothing changed: %s, log: %s" % (names(found), a.text()[-400:]))
        write("kubelet = nonsense\n")
        a.p.send_signal(1)
        a.wait(lambda: a.metric("reload_errors_total") == 1, "a wrong configuration")
        write("kubelet = %s\nkubelet-interval = 200ms\npod-labels = team\n"
              "service-label = team\n" % k.url)
        a.p.send_signal(1)
        until(a, r, lambda f: ("blue", "blue") in names(f), "another label")
        write("kubelet = off\n")
        a.p.send_signal(1)
        until(a, r, lambda f: ("unknown_service", "") in names(f), "no name")
        if len(capabilities(a)) != 5 or "kubelet" in a.get():
            errors.append("off: %s" % capabilities(a))
        if a.stop():
            errors.append("exit status %d" % a.p.returncode)
        errors += agents.account_errors(a, len(a.spooled()))
    finally:
        groups.remove()
        k.stop()
        r.stop()
    harness.check(name, errors)


def check_kube_files(name):
    """Windows in files have the labels that report chooses by."""
    groups, k, errors = Groups(), Kubelet(), []
    where = harness.tmpfile("kube-windows")
    try:
        groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        a = agents.Agent("--protocol", "file", "--endpoint", where, "--kubelet", k.url,
                         "--pod-labels", "team", copy=False)
        a.start().wait_started()
        a.wait(lambda: a.metric("kubelet_answers_total") >= 1, "an answer of the kubelet")
        n = len(windows(where))
        a.wait(lambda: len(windows(where)) >= n + 3, "windows")
        a.stop()
        for choice, want in ((("--service", "cart"), True),
                             (("--label", "k8s.namespace.name=shop"), True),
                             (("--label", "k8s.pod.label.team=blue"), True),
                             (("--label", "k8s.namespace.name=batch"), False)):
            p = subprocess.run([harness.SFBPF, "report", *choice, "--format", "folded", where],
                               capture_output=True, text=True, timeout=60)
            if ("python" in p.stdout) != want:
                errors.append("%s: %s" % (choice, (p.stdout + p.stderr)[:200]))
    finally:
        groups.remove()
        k.stop()
    harness.check(name, errors)


def check_kube_rows(name):
    """ClickHouse's rows and Pyroscope's series have the names, too."""
    groups, k, errors = Groups(), Kubelet(), []
    wanted = {
        "clickhouse": (b'"service":"cart"', b'"k8s.pod.name":"cart-5d9c-x2"',
                       b'"k8s.pod.label.team":"blue"'),
        "pyroscope": (b"k8s_pod_name", b"cart-5d9c-x2", b"k8s_pod_label_team"),
    }
    try:
        groups.run(slice_of(UIDS[0]) + "/cri-containerd-%s.scope" % IDS[0], SPIN)
        for protocol, want in wanted.items():
            r = HttpReceiver()
            a = agents.Agent("--protocol", protocol, "--endpoint", r.url, "--kubelet", k.url,
                             "--pod-labels", "team", copy=False)
            a.start().wait_started()
            a.wait(lambda: any(all(w in g.message for w in want) for g in r.got),
                   "the names to " + protocol)
            if a.stop():
                errors.append("%s: exit status %d" % (protocol, a.p.returncode))
            r.stop()
    finally:
        groups.remove()
        k.stop()
    harness.check(name, errors)


if __name__ == "__main__":
    harness.run_checks([
        check_kube, check_kube_faults, check_kube_certificate, check_kube_reload, check_kube_files,
        check_kube_rows
    ])
