#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""publisher.py KIND SERVICE: a busy process that publishes a process context (OTEP 4719).

KIND is memfd, anon (a named anonymous mapping), fork (and a child, in which the context is not
mapped; its pid is printed), update (SERVICE until there is a line on stdin, then SERVICE-2), and
ones that cannot be read: garbage, version, busy (being changed for ever), huge, wild (the payload
is not mapped).
"""

import ctypes
import mmap
import os
import struct
import sys
import threading

PR_SET_VMA, PR_SET_VMA_ANON_NAME = 0x53564D41, 0
SIZE = 4096


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, content):
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def payload(attributes):
    pairs = (field(1, k.encode()) + field(2, field(1, v.encode())) for k, v in attributes.items())
    return field(1, b"".join(field(1, pair) for pair in pairs))


class Context:
    def __init__(self, anonymous):
        if anonymous:
            self.map = mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            fd = os.memfd_create("OTEL_CTX")
            os.ftruncate(fd, SIZE)
            self.map = mmap.mmap(fd, SIZE)
            os.close(fd)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        libc = ctypes.CDLL(None, use_errno=True)
        if anonymous and libc.prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME,
                                    ctypes.c_ulong(self.address), ctypes.c_ulong(SIZE),
                                    b"OTEL_CTX"):
            sys.exit("the kernel names no anonymous mappings")
        self.map.madvise(mmap.MADV_DONTFORK)
        self.published = 0

    def publish(self, body, kind=""):
        self.published += 1
        self.map[16:24] = bytes(8)
        self.map[32:32 + len(body)] = body
        self.map[8:16] = struct.pack("<II", 3 if kind == "version" else 2,
                                     1 << 30 if kind == "huge" else len(body))
        self.map[24:32] = struct.pack("<Q", 4096 if kind == "wild" else self.address + 32)
        self.map[16:24] = struct.pack("<Q", 0 if kind == "busy" else self.published)
        self.map[:8] = b"OTEL_CTX"


def attributes(service):
    return {
        "telemetry.sdk.language": "python",
        "service.name": service,
        "service.namespace": "tests",
        "service.version": "1.5",
        "service.instance.id": "instance-" + service,
        "deployment.environment.name": "here",
    }


def main(kind, service):
    context = Context(kind == "anon")
    body = payload(attributes(service))
    context.publish(b"\x0a" + b"\xff" * 400 if kind == "garbage" else body, kind)
    child = os.fork() if kind == "fork" else None
    if child != 0:
        print(child or os.getpid(), flush=True)

    def update():
        if kind == "update" and sys.stdin.readline():
            context.publish(payload(attributes(service + "-2")))

    threading.Thread(target=update, daemon=True).start()
    while True:
        sum(range(1000))


if __name__ == "__main__":
    main(*sys.argv[1:])
