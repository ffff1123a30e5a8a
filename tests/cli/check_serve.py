#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""sfbpf serve over HTTP: sums, time line, flame graphs, downloads; who may ask; a thousand wrong
and hostile requests; what the process may still do. serve_chromium.py looks at the page.
"""

import concurrent.futures
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import flame_page  # noqa: E402
import make_windows  # noqa: E402

SFBPF = os.path.abspath(
    os.environ.get("SFBPF", os.path.join(os.environ.get("OUTPUT", "build"), "sfbpf")))
HOSTS, WINDOWS, REQUESTS = 20, 18, 1000
failed = False


def report(name, errors):
    global failed
    failed |= bool(errors)
    what = "FAIL serve-%s: %s" % (name, "; ".join(map(str, errors[:3])))
    print(what if errors else "ok serve-%s" % name, flush=True)


class Server:

    def __init__(self, *argv):
        self.p = subprocess.Popen([SFBPF, "serve", *argv], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.url = self.p.stdout.readline().strip()
        m = re.match(r"http://(.*):(\d+)/(?:\?token=(\w+))?$", self.url)
        if not m:
            raise RuntimeError("serve says %r, %s" % (self.url, self.p.stderr.read()))
        self.port, self.token = int(m[2]), m[3]

    def get(self, path, method="GET", **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            r = c.getresponse()
            return r.status, r.read(), dict((k.lower(), v) for k, v in r.getheaders())
        finally:
            c.close()

    def read(self, path, **headers):
        """The answer once all windows are read."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            status, body, head = self.get(path, **headers)
            if status != 202:
                return status, body, head
        raise TimeoutError(path)

    def stop(self):
        """The exit status, and what it printed to stderr."""
        self.p.send_signal(signal.SIGTERM)
        try:
            err = self.p.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            self.p.kill()
            err = "does not end: " + self.p.communicate()[1]
        return self.p.returncode, err


def folded(directory, *argv):
    """Sums of samples by the first name of the stacks, as report has them."""
    out, sums = subprocess.run([SFBPF, "report", "--format", "folded", *argv, directory],
                               capture_output=True, text=True, check=True).stdout, {}
    for line in out.splitlines():
        stack, n = line.rsplit(" ", 1)
        name = stack.split(";")[0]
        sums[name] = sums.get(name, 0) + int(n)
    return sums


def check_sums(s, d, now):
    errors, all_ = [], "since=%d&until=%d" % ((now - 3600) * 1000, now * 1000)
    want = folded(d, "--by", "service")
    status, body, _ = s.read("/summary?%s&service=web" % all_)
    sum_ = json.loads(body)
    found = {x["name"]: round(x["amount"] * 19) for x in sum_["services"]}
    if status != 200 or found != want or sum_["windows"] != HOSTS * WINDOWS:
        errors.append("summary: %s, want %s" % (str(sum_)[:200], want))
    if len(sum_["hosts"]) != HOSTS or sum_["hosts"] != sorted(sum_["hosts"]):
        errors.append("hosts %s" % sum_["hosts"])
    for key, n in (("steps", sum(want.values())), ("selectedSteps", want["web"])):
        if abs(sum(sum_[key]) * 19 - n) > 2 or len(sum_[key]) != 120:
            errors.append("%s: %s, want %d" % (key, sum(sum_[key]) * 19, n))
    for query, n in (("", sum(want.values())), ("&service=db", want["db"]),
                     ("&host=host-3", sum(folded(d, "--host", "host-3").values()))):
        status, body, head = s.read("/flame?" + all_ + query)
        html = status == 200 and "text/html" in head["content-type"]
        if not html or flame_page.total_of(body.decode())[0] != n:
            errors.append("flame%s: %d, %s, want %d" % (query, status, body[:100], n))
    body = s.read("/flame?%s&before_since=1&before_until=%d" % (all_, now * 1000))[1]
    if b'"before":"before"' not in body:
        errors.append("a comparison: %s" % body[:100])
    status, body, head = s.read("/pprof?service=mail&" + all_)
    with tempfile.NamedTemporaryFile(suffix=".pb.gz") as f:
        f.write(body)
        f.flush()
        if folded(f.name, "--by", "service") != {"mail": want["mail"]}:
            errors.append("pprof: %s" % folded(f.name, "--by", "service"))
    if "attachment" not in head.get("content-disposition", ""):
        errors.append("pprof is not a download: %s" % head)
    part = "since=%d&until=%d" % ((now - 3600) * 1000, (now - 90) * 1000)
    if json.loads(s.read("/summary?" + part)[1])["windows"] >= HOSTS * WINDOWS:
        errors.append("a part of the time is all of it")
    if s.read("/flame?service=nosuch&" + all_)[0] != 404:
        errors.append("a service that is not there has a flame graph")
    status, body = s.read("/flame?service=mial&" + all_)[:2]
    if status != 404 or b"no service 'mial'" not in body or b"nearest name is 'mail'" not in body:
        errors.append("a misspelt service: %d %s" % (status, body[:200]))
    report("sums", errors)


def check_new_windows(s, d, now):
    """A window that comes later is seen, and a damaged one is counted."""
    errors = []
    path = os.path.join(d, time.strftime("%Y-%m-%d", time.gmtime(now)))
    w = make_windows.Window()
    w.add("late", "late", ["f", "main"], 7)
    for n, data in ((1, w.bytes("new-host", 0)), (2, b"\x1f\x8bdamaged")):
        with open("%s/sfbpf-new-host-%d-0000000%d.pb.gz" % (path, now * 1000, n), "wb") as f:
            f.write(data)
    sum_ = json.loads(s.read("/summary?host=new-host&until=%d" % (now * 1000 + 1))[1])
    if [x["name"] for x in sum_["services"]] != ["late"] or \
            (sum_["windows"], sum_["unread"]) != (2, 1):
        errors.append(sum_)
    report("new-windows", errors)


def check_time(s, now):
    """All hosts for an hour, once they are read: compared with an answer without any window."""
    errors, best = [], {}
    for name, path in (("none", "/summary?host=nosuch"), ("services", "/summary?"),
                       ("flame", "/flame?service=web")):
        path += "&since=%d&until=%d" % ((now - 3600) * 1000, now * 1000)
        s.read(path)
        times = []
        for _ in range(5):
            begin = time.monotonic()
            s.get(path)
            times.append(time.monotonic() - begin)
        best[name] = min(times)
    print("# %d windows: services %.0f ms, a flame graph %.0f ms, nothing %.0f ms" % (
        HOSTS * WINDOWS, best["services"] * 1e3, best["flame"] * 1e3, best["none"] * 1e3))
    if max(best.values()) > 5:
        errors.append(best)
    report("time", errors)


def hostile(rng, secret):
    """A request, of many kinds, as bytes."""
    paths = [
        "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/shadow", "/flame?service=../../" + secret,
        "/summary?host=" + "%00" * 30, "/flame?since=-1", "/summary?since=99999999999999999999",
        "/pprof?until=0", "/" + "a" * rng.randrange(1, 30000), "//", "/summary?" + "a=b&" * 3000,
        "/flame?service=" + "%ff%fe" * 200, "/summary?since=5&until=4", "/" + secret, "*", "",
        "/flame?before_since=9&before_until=3", "/\x01\x02", "/summary?since=18446744073709551615",
        "/?token=" + "x" * 5000, "file://" + secret, "/flame?since=1&until=18446744073708"
    ]
    method = rng.choice(["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT",
                         "G" * 300, ""])
    head = rng.choice([
        "Host: localhost\r\n", "", "Host: evil.example\r\n",
        "Host: localhost\r\nContent-Length: 99\r\n",
        "Host: localhost\r\nContent-Length: -5\r\n",
        "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
        "X: " + "y" * 40000 + "\r\n", "Cookie: " + "a=b; " * 2000 + "\r\n", ": \r\n", "Host\r\n",
        "Authorization: Bearer " + "\xff" * 50 + "\r\n"
    ])
    data = ("%s %s HTTP/1.%d\r\n%s\r\n" % (method, rng.choice(paths), rng.randrange(3),
                                           head)).encode("latin-1")
    kind = rng.randrange(8)
    if kind == 0:
        data = rng.randbytes(rng.randrange(1, 3000))
    elif kind == 1:
        data = data[:rng.randrange(len(data))]
    elif kind == 2:
        data = bytearray(data)
        for _ in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 3:
        data = bytes(data) * rng.randrange(2, 20)
    return bytes(data)


def ask_hostile(s, data):
    """What comes back in half a second; the connection is then reset."""
    got = b""
    with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
        c.settimeout(.5)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
            while len(got) < 1 << 20:
                more = c.recv(65536)
                if not more:
                    break
                got += more
        except OSError:
            pass
    return got


def check_hostile(s, secret, secret_path):
    """No crash, no answer with a file of elsewhere, and the next request is answered."""
    rng, errors, answers = random.Random(11), [], 0
    idle = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(20)]
    requests = [hostile(rng, secret_path) for _ in range(REQUESTS)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for n, got in enumerate(pool.map(lambda r: ask_hostile(s, r), requests)):
            answers += got.startswith(b"HTTP/1.1 ")
            if secret.encode() in got or b"root:" in got:
                errors.append("request %d: %r" % (n, got[:200]))
    for c in idle:
        c.close()
    if s.p.poll() is not None:
        errors.append("exit status %d" % s.p.returncode)
    elif s.read("/summary")[0] != 200 or answers < REQUESTS / 10:
        errors.append("%d answers" % answers)
    print("# %d of %d hostile requests were answered" % (answers, REQUESTS))
    report("hostile", errors)


def check_hosts(s):
    """Without a token only requests for this machine are answered (DNS rebinding), for reading."""
    errors = []
    for host, want in (("localhost:%d" % s.port, 200), ("127.0.0.1", 200), ("[::1]:9", 200),
                       ("evil.example", 403), ("localhost.evil.example:%d" % s.port, 403),
                       ("127.0.0.1.evil", 403), ("", 403)):
        status = s.get("/", Host=host)[0]
        if status != want:
            errors.append("host %r: %d" % (host, status))
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status = s.get("/", method)[0]
        if status != 405:
            errors.append("%s: %d" % (method, status))
    status, body, head = s.get("/")
    nonce = re.search(rb'<script nonce="(\w+)"', body)[1].decode()
    if "nonce-" + nonce not in head["content-security-policy"] or "@" in re.sub(
            r"@media", "", body.decode()):
        errors.append("policy: %s" % head)
    if s.get("/", "HEAD")[1]:
        errors.append("HEAD has a body")
    if s.get("/nosuch")[0] != 404:
        errors.append("/nosuch")
    report("hosts", errors)


def slow_client(s, line):
    c = socket.create_connection(("127.0.0.1", s.port), 5)
    c.sendall(line)
    return c


def check_slow(d):
    """Clients that write a line of their request now and then, forever, keep nobody out: neither
    more of them than there are places, nor with a token that is not known yet.
    """
    s = Server("--listen", "0.0.0.0:0", d)
    errors, slow = [], []
    end, asked = time.monotonic() + 9, 0
    while time.monotonic() < end:
        while len(slow) < 200:
            slow.append(slow_client(s, b"GET / HTTP/1.1\r\nHost: x\r\n"))
        begin = time.monotonic()
        try:
            status = s.get("/", Authorization="Bearer " + s.token)[0]
        except OSError as e:
            status = e
        asked += 1
        if status != 200 or time.monotonic() - begin > 2:
            errors.append("%s after %.1f s" % (status, time.monotonic() - begin))
        time.sleep(0.5)
        for c in list(slow):
            try:
                c.sendall(b"X-a: b\r\n")
            except OSError:
                slow.remove(c)
                c.close()
    for c in slow:
        c.close()
    # One alone is closed when its time is over.
    one, begin = slow_client(s, b"GET / HTTP/1.1\r\n"), time.monotonic()
    try:
        while time.monotonic() - begin < 20:
            one.sendall(b"X-a: b\r\n")
            time.sleep(0.2)
        errors.append("a slow request is never given up")
    except OSError:
        pass
    one.close()
    if s.stop() != (0, ""):
        errors.append("exit code")
    report("slow", errors[:3])


def check_token(d):
    s, errors = Server("--listen", "0.0.0.0:0", d), []
    cookie = "sfbpf-token=%s" % s.token
    for path, headers, want in (
        ("/", {}, 401), ("/summary", {}, 401), ("/flame", {"Authorization": "Bearer x"}, 401),
        ("/?token=" + s.token[:-1], {}, 401), ("/?token=", {}, 401),
        ("/summary", {"Authorization": "Bearer " + s.token[:-1]}, 401),
        ("/summary", {"Authorization": "Bearer " + s.token + "x"}, 401),
        ("/summary", {"Cookie": cookie + "0"}, 401), ("/summary", {"Cookie": cookie}, 200),
        ("/summary", {"Authorization": "Bearer " + s.token, "Host": "fleet.example"}, 200),
        ("/?token=" + s.token, {}, 303)):
        status, _, head = s.read(path, **headers)
        if status != want:
            errors.append("%s %s: %d" % (path, headers, status))
    if head.get("location") != "/" or not all(
            part in head.get("set-cookie", "") for part in (cookie, "HttpOnly", "SameSite=Strict")):
        errors.append("cookie: %s" % head)
    if s.stop() != (0, ""):
        errors.append("end: %s" % s.p.returncode)
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("short")
        f.flush()
        p = subprocess.run([SFBPF, "serve", "--token-file", f.name, d], capture_output=True,
                           text=True, timeout=30)
        if p.returncode != 1 or "no token" not in p.stderr:
            errors.append("a short token: %d %s" % (p.returncode, p.stderr))
        f.write("-but-now-long-enough\n")
        f.flush()
        s = Server("--listen", "127.0.0.1:0", "--token-file", f.name, d)
        auth = {"Authorization": "Bearer short-but-now-long-enough"}
        if (s.get("/")[0], s.read("/summary", **auth)[0], s.token) != (401, 200, None):
            errors.append("--token-file")
        s.stop()
    report("token", errors)


def check_rights(s):
    """No capability but to read, no way to gain any, and no more system calls than it needs."""
    errors, status = [], dict(l.split(":\t", 1) for l in open("/proc/%d/status" % s.p.pid))
    for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(status[key], 16) & ~4:
            errors.append("%s %s" % (key, status[key]))
    if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
        errors.append("no_new_privs %s, seccomp %s" % (status["NoNewPrivs"], status["Seccomp"]))
    report("rights", errors)


def check_memory(d, now):
    """What was read before goes when there is no room; a range that does not fit is refused."""
    s, errors = Server("--listen", "127.0.0.1:0", "--memory", "16M", d), []
    for host in ("host-1", "host-2", "host-1"):
        status = s.read("/flame?host=%s&until=%d" % (host, now * 1000))[0]
        if status != 200:
            errors.append("%s: %d" % (host, status))
    s.stop()
    report("memory", errors)


def check_usage(d):
    errors = []
    for argv, status, text in (((), 2, "a directory or URL is missing"),
                               ((d, d), 2, "one directory or URL only"),
                               (("/nosuch", ), 1, "cannot read"), ((__file__, ), 1, "cannot read"),
                               (("--listen", "x:y", d), 2, "is not ADDR:PORT"),
                               (("--memory", "1M", d), 2, "16M or more"),
                               (("--token-file", "/nosuch", d), 1, "cannot read"),
                               (("--listen", "192.0.2.1:80", d), 1, "cannot listen")):
        p = subprocess.run([SFBPF, "serve", *argv], capture_output=True, text=True, timeout=30)
        if p.returncode != status or text not in p.stderr:
            errors.append("%s: %d %s" % (argv, p.returncode, p.stderr))
    report("usage", errors)


def main():
    if subprocess.run([SFBPF, "serve", "--help"], capture_output=True).returncode:
        print("SKIP serve: this build has no serve (libmicrohttpd)")
        return 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as top:
        d, now, secret_path = os.path.join(top, "d"), int(time.time()) + 1, os.path.join(top, "s")
        secret = "a-secret-of-elsewhere"
        os.mkdir(d)
        with open(secret_path, "w") as f:
            f.write(secret)
        make_windows.make(d, HOSTS, WINDOWS, now=now, stacks=20, templates=6)
        day = os.path.join(d, time.strftime("%Y-%m-%d", time.gmtime(now)))
        os.makedirs(day, exist_ok=True)
        os.symlink(secret_path, "%s/sfbpf-link-%d-00000001.folded" % (day, now * 1000 - 9000))
        os.symlink(top, os.path.join(d, "2001-01-01"))
        s = Server("--listen", "127.0.0.1:0", d)
        os.unlink("%s/sfbpf-link-%d-00000001.folded" % (day, now * 1000 - 9000))
        check_sums(s, d, now)
        check_time(s, now)
        check_new_windows(s, d, now)
        check_hosts(s)
        check_rights(s)
        check_hostile(s, secret, secret_path)
        report("end", [] if s.p.poll() is None and s.stop() == (0, "") else [s.p.returncode])
        check_token(d)
        check_slow(d)
        check_memory(d, now)
        check_usage(d)
    return failed


if __name__ == "__main__":
    sys.exit(main())
