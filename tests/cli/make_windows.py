#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_windows.py DIRECTORY HOSTS WINDOWS [SECONDS]: windows like those of the agent (pprof) of as
many hosts, each of 10 seconds, the last one of now. A few files are made and written under many
names; prints the number of bytes.
"""

import gzip
import os
import random
import sys
import time

SERVICES = ["web", "db", "cache", "search", "mail", "batch", "auth", "log"]


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Window:
    """profile.proto, as userspace/out/out_pprof.c writes it."""

    def __init__(self):
        self.strings, self.frames, self.out = {"": 0}, {}, bytearray()

    def text(self, s):
        return self.strings.setdefault(s, len(self.strings))

    def frame(self, name):
        if name not in self.frames:
            n = self.frames[name] = len(self.frames) + 1
            self.out += message(5, number(1, n) + number(2, self.text(name)))
            self.out += message(4, number(1, n) + number(2, 1) + number(3, 4096 * n) +
                                message(4, number(1, n)))
        return self.frames[name]

    def label(self, key, value):
        return message(3, number(1, self.text(key)) + number(2, self.text(value)))

    def add(self, service, comm, stack, count, version="1"):
        """stack: leaf first"""
        ids = b"".join(varint(self.frame(f)) for f in stack)
        values = varint(count) + varint(count * 52631579)
        self.out += message(2, message(1, ids) + message(2, values) +
                            self.label("comm", comm) + self.label("service.name", service) +
                            self.label("service.version", version))

    def bytes(self, host, start_ns, seconds=10, off_cpu=False):
        head = bytearray()
        for kind, unit in (("samples", "count"), ("off_cpu" if off_cpu else "cpu", "nanoseconds")):
            head += message(1, number(1, self.text(kind)) + number(2, self.text(unit)))
        head += number(9, start_ns) + number(10, int(seconds * 1e9))
        for c in ("host=" + host, "event=cpu-clock", "lost=0", "hz=19"):
            head += number(13, self.text(c))
        head += message(3, number(1, 1) + number(5, self.text("/usr/bin/prog")))
        strings = b"".join(message(6, s.encode()) for s in self.strings)
        return gzip.compress(bytes(head + self.out) + strings, 1)


def template(rng, stacks):
    """Services differ in weight; most stacks are common to all windows, some are rare."""
    w = Window()
    for _ in range(stacks):
        service = SERVICES[min(int(rng.expovariate(.6)), len(SERVICES) - 1)]
        way, stack = rng.randrange(60), []
        for depth in range(rng.randrange(12, 40)):
            stack.append("%s::module_%d::function_%d_%d" % (service, depth % 7, depth, way))
            if depth > 5 and rng.random() < .1:
                way = rng.randrange(4000)
        w.add(service, service + "-worker", stack[::-1], rng.randrange(1, 4))
    return w


def make(directory, hosts, windows, step_s=10, now=None, stacks=80, templates=24):
    """Returns the bytes written; samples are in every service of every host."""
    rng, now = random.Random(5), now or time.time()
    packed = [template(rng, stacks) for _ in range(templates)]
    total = 0
    for h in range(hosts):
        host = "host-%d" % h
        data = [t.bytes(host, int(now * 1e9)) for t in packed]
        for w in range(windows):
            ms = int((now - 5 - w * step_s) * 1000) - h
            day = os.path.join(directory, time.strftime("%Y-%m-%d", time.gmtime(ms / 1000)))
            os.makedirs(day, exist_ok=True)
            one = data[(w + h) % len(data)]
            total += len(one)
            with open("%s/sfbpf-%s-%d-%08x.pb.gz" % (day, host, ms, w), "wb") as f:
                f.write(one)
    return total


if __name__ == "__main__":
    print(make(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float((sys.argv + ["10"])[4])))
