# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, driven over its debugging pipe (Chrome DevTools Protocol); the standard
library is enough.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BINARIES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def binary():
    return next((path for path in map(shutil.which, BINARIES) if path), None)


class Browser:
    """One page. Requests, console errors and exceptions of the page are kept in .requests and
    .errors.
    """

    def __init__(self, width=1200, height=700, dark=False):
        self.requests, self.errors = [], []
        self._ids, self._buffer, self._session = 0, b"", None
        self._dir = tempfile.mkdtemp(prefix="sfbpf-chromium-")
        self._size = (width, height)
        read_end, self._out = os.pipe()
        self._in, write_end = os.pipe()

        def place_fds():    # the browser reads fd 3 and writes fd 4
            a, b = os.dup(read_end), os.dup(write_end)
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate((a, b))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        args = [
            binary(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--remote-debugging-pipe", "--user-data-dir=" + self._dir,
            "--window-size=%d,%d" % self._size, "about:blank"
        ]
        self._process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, preexec_fn=place_fds,
                                         close_fds=False)
        os.close(read_end)
        os.close(write_end)
        target = next(t for t in self.call("Target.getTargets")["targetInfos"]
                      if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._dir, ignore_errors=True)

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, m):
        p = m.get("params", {})
        if m.get("method") == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif m.get("method") == "Runtime.exceptionThrown":
            self.errors.append(p["exceptionDetails"].get("exception",
                                                         {}).get("description",
                                                                 p["exceptionDetails"]["text"]))
        elif m.get("method") == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.errors.append(p["entry"]["text"])

    def call(self, method, timeout=60, **params):
        self._ids += 1
        m = {"id": self._ids, "method": method, "params": params}
        if self._session:
            m["sessionId"] = self._session
        os.write(self._out, json.dumps(m).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            if answer.get("id") != m["id"]:
                self._note(answer)
                continue
            if "error" in answer:
                raise ValueError("%s: %s" % (method, answer["error"]))
            return answer["result"]

    def eval(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                      awaitPromise=True)
        if "exceptionDetails" in r:
            raise ValueError(r["exceptionDetails"]["exception"]["description"])
        return r["result"].get("value")

    def open(self, path, timeout=60):
        """Loads a file that flame.html made; returns the milliseconds from navigation to the first
        picture.
        """
        self.requests, self.errors = [], []
        self.call("Page.navigate", url="about:blank")     # a new fragment alone does not reload
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.eval("location.protocol === 'file:' && document.readyState === 'complete'"):
                return float(self.eval("document.documentElement.dataset.ready || 'NaN'"))
            time.sleep(0.05)
        raise TimeoutError("the page does not load")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="left" if kind != "mouseMoved" else "none", clickCount=1)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def key(self, key):
        text = key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self, path):
        with open(path, "wb") as f:
            f.write(
                base64.b64decode(
                    self.call("Page.printToPDF", landscape=True, printBackground=True)["data"]))
