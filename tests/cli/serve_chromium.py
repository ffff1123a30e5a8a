#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of sfbpf serve in a real browser: services, time line, flame graph, comparison, hosts.
SHOTS=DIR keeps screenshots.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chromium  # noqa: E402
import flame_page  # noqa: E402
import make_windows  # noqa: E402

SFBPF = os.path.abspath(
    os.environ.get("SFBPF", os.path.join(os.environ.get("OUTPUT", "build"), "sfbpf")))
SHOTS = os.environ.get("SHOTS")
EVIL = "</script><img src=x onerror=\"document.title='pwned'\">"
FLAME = "document.getElementById('flame').contentDocument.documentElement"
failed = False


def report(name, errors):
    global failed
    failed |= bool(errors)
    print("FAIL serve-page-%s: %s" % (name, "; ".join(map(str, errors[:3]))) if errors else
          "ok serve-page-%s" % name, flush=True)


class Page:

    def __init__(self, browser, url):
        self.b = browser
        self.b.requests, self.b.errors = [], []
        self.b.call("Page.navigate", url="about:blank")
        self.b.call("Page.navigate", url=url)
        self.settle()

    def settle(self):
        """Waits for the picture that belongs to what was chosen last."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            time.sleep(.1)
            try:
                if "windows" not in self.b.eval("document.getElementById('status').textContent"):
                    continue
                if self.b.eval(FLAME + ".dataset.ready") and self.b.eval(
                        "document.getElementById('flame').src === new URL(document.getElementById("
                        "'flame').contentWindow.location).href"):
                    return
            except (ValueError, KeyError):
                pass
        raise TimeoutError("the page does not settle: %s" %
                           self.b.eval("document.body.innerText")[:300])

    def flame(self):
        return self.b.eval(FLAME + ".outerHTML")

    def total(self):
        with tempfile.NamedTemporaryFile("w", suffix=".html") as f:
            f.write(self.flame())
            f.flush()
            return flame_page.total(f.name)[0]

    def choose(self, what, value):
        self.b.eval("(() => { const e = document.getElementById('%s'); e.value = %r; "
                    "e.dispatchEvent(new Event('change')); })()" % (what, value))
        self.settle()

    def service(self, name):
        self.b.eval("document.querySelector('nav button[data-name=\"%s\"]').click()" % name)
        self.settle()

    def shot(self, name):
        if SHOTS:
            self.b.screenshot(os.path.join(SHOTS, "serve-%s.png" % name))


def folded(directory, *argv):
    out = subprocess.run([SFBPF, "report", "--format", "folded", *argv, directory],
                         capture_output=True, text=True, check=True).stdout
    return sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())


def check(b, url, d):
    errors, page = [], Page(b, url)
    page.shot("all")
    names = b.eval("[...document.querySelectorAll('nav button')].map(x => x.dataset.name)")
    if set(names) != {"", EVIL.replace('"', "'"), *make_windows.SERVICES}:
        errors.append("services %s" % names)
    if page.total() != folded(d):
        errors.append("all: %s, want %s" % (page.total(), folded(d)))
    page.service("web")
    page.shot("web")
    if page.total() != folded(d, "--service", "web"):
        errors.append("web: %s" % page.total())
    page.choose("host", "host-1")
    if page.total() != folded(d, "--service", "web", "--host", "host-1"):
        errors.append("host-1: %s" % page.total())
    report("services", errors + b.errors)

    errors, address = [], b.eval("location.hash")
    page = Page(b, url + address)
    if page.total() != folded(d, "--service", "web", "--host", "host-1"):
        errors.append("%s: %s" % (address, page.total()))
    page.choose("host", "")
    page.choose("compare", "range")
    if '"before":"before"' not in page.flame():
        errors.append("no comparison")
    page.shot("compare")
    page.choose("compare", "")
    report("choices", errors + b.errors)

    errors = []
    all_ = page.total()
    x, y, w = b.eval("(() => { const r = document.getElementById('canvas').getBoundingClientRect();"
                     " return [r.left, r.top + 20, r.width]; })()")
    b.mouse("mousePressed", x + w * .5, y)
    b.mouse("mouseMoved", x + w * .8, y)
    b.mouse("mouseReleased", x + w * .997, y)
    page.settle()
    page.shot("zoom")
    part, count = page.total(), b.eval("document.getElementById('status').textContent")
    if not 0 < part < all_:
        errors.append("half of the time is %s of %s, %s" % (part, all_, count))
    q = urllib.parse.parse_qs(b.eval("document.getElementById('pprof').href").split("?")[1])
    if q["service"] != ["web"] or int(q["since"][0]) < time.time() * 1000 - 3600 * 1000:
        errors.append("pprof: %s" % q)
    b.mouse("mousePressed", x + 9, y)
    b.mouse("mouseReleased", x + 9, y)
    page.settle()
    if page.total() != all_:
        errors.append("a click does not show all of the time: %s" % page.total())
    report("time-line", errors + b.errors)

    errors = []
    page.service("")
    if b.eval("document.title") != "sfbpf" or b.eval("document.querySelectorAll('img').length"):
        errors.append("a name became part of the page")
    others = [u for u in b.requests if not u.startswith(url) and u != "about:blank"]
    if others:
        errors.append("requests: %s" % others)
    report("foreign-names", errors + b.errors)


def main():
    if not chromium.binary():
        print("SKIP serve-page: chromium is not installed")
        return 0
    if subprocess.run([SFBPF, "serve", "--help"], capture_output=True).returncode:
        print("SKIP serve-page: this build has no serve (libmicrohttpd)")
        return 0
    try:
        b = chromium.Browser()
    except (OSError, EOFError, TimeoutError) as e:
        print("SKIP serve-page: chromium does not start here: %s" % e)
        return 0
    with tempfile.TemporaryDirectory() as d:
        now = time.time()
        make_windows.make(d, 3, 50, step_s=60, now=now, stacks=40, templates=4)
        w = make_windows.Window()
        w.add(EVIL.replace('"', "'"), "evil", [EVIL, "main"], 3)
        with open("%s/sfbpf-evil-%d-00000001.pb.gz" % (d, now * 1000 - 60000), "wb") as f:
            f.write(w.bytes("evil", 0))
        s = subprocess.Popen([SFBPF, "serve", "--listen", "127.0.0.1:0", d], text=True,
                             stdout=subprocess.PIPE)
        try:
            check(b, s.stdout.readline().strip(), d)
        except (OSError, ValueError, TypeError, KeyError, EOFError, TimeoutError) as e:
            report("run", ["%s: %s" % (type(e).__name__, e)] + b.errors)
        finally:
            b.close()
            s.send_signal(signal.SIGTERM)
            s.wait(30)
    return failed


if __name__ == "__main__":
    sys.exit(main())
