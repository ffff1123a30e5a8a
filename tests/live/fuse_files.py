#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file system in user space, without libfuse: fuse_files.py MOUNTPOINT FILE NAME=SILENCE...

Under each NAME lies FILE. SILENCE is what is never answered to a process called sfbpf*: lookup (of
any name), open, read, flush, or none. Everybody else gets answers; but of "write" nobody does, and
what is opened a second time is not cached. Prints a line when it is mounted; when it ends, so does
the file system, and whoever waits gets an error.
"""

import ctypes
import os
import stat
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, STATFS = 1, 2, 3, 14, 15, 16, 17
RELEASE, FLUSH, INIT, ACCESS = 18, 25, 26, 34
NAMES = {LOOKUP: "lookup", OPEN: "open", READ: "read", FLUSH: "flush"}
ENOENT, ENOSYS = 2, 38
DIRECT_IO = 1 # each read comes here
KEEP_CACHE = 2
MINOR = 31
HEADER = struct.Struct("<IIQQIIII")


def comm_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read()
    except OSError:
        return ""


class Files:
    def __init__(self, path, silences):
        with open(path, "rb") as f:
            self.data = f.read()
        self.names = list(silences)
        self.opened = 0
        self.silence = list(silences.values())
        self.written = 0 # when a file was first asked for, s

    def attributes(self, node):
        mode, size = (stat.S_IFDIR | 0o755, 0) if node == 1 else (stat.S_IFREG | 0o755,
                                                                  len(self.data))
        if node != 1 and not self.written:
            self.written = int(time.time())
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 1, self.written,
                           1 + node, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, pid, body):
        """bytes, an errno, or None: no answer"""
        strange = comm_of(pid).startswith("sfbpf")
        if strange and self.silence[max(node - 2, 0)] == NAMES.get(opcode, ""):
            return None
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, MINOR, 1 << 16, 0, 8, 6, 1 << 16, 1, 16, 0, 0)
        if opcode == LOOKUP:
            name = body.split(b"\0")[0].decode()
            if node != 1 or name not in self.names:
                return ENOENT
            node = 2 + self.names.index(name)
            return struct.pack("<QQQQII", node, 0, 3600, 3600, 0, 0) + self.attributes(node)
        if opcode == GETATTR:
            return struct.pack("<QII", 3600, 0, 0) + self.attributes(node)
        if opcode == OPEN:
            self.opened += 1
            if self.silence[node - 2] == "write":
                return struct.pack("<QII", 1, KEEP_CACHE | (DIRECT_IO if self.opened > 1 else 0), 0)
            return struct.pack("<QII", 1, DIRECT_IO if strange else 0, 0)
        if opcode == WRITE:
            return None
        if opcode == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            return self.data[offset:offset + size]
        if opcode == STATFS:
            return bytes(80)
        return b"" if opcode in (RELEASE, FLUSH, ACCESS) else ENOSYS


def main():
    where, path = sys.argv[1:3]
    files = Files(path, dict(arg.split("=") for arg in sys.argv[3:]))
    libc = ctypes.CDLL(None, use_errno=True)
    dev = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other" % (dev, os.getuid(),
                                                                           os.getgid())
    if libc.mount(b"sfbpf-test", where.encode(), b"fuse", 6, options.encode()):
        sys.exit("mount: %s" % os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(dev, 1 << 20)
        except OSError:
            break # unmounted
        length, opcode, unique, node, _, _, pid, _ = HEADER.unpack_from(request)
        answer = files.answer(opcode, node, pid, request[HEADER.size:length])
        if opcode == FORGET or answer is None:
            continue
        error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(dev, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


main()
