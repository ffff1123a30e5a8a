# SPDX-License-Identifier: BSD-2-Clause
"""hostile.py CASE SECONDS: CPython 3.11 whose frames lie: cyclic, wild pointers, or without end.

The frames are those that the C frame of the evaluation loop names (_PyCFrame.current_frame),
overwritten with ctypes while a C function works, so that the interpreter does not use them.
"""

import ctypes
import sys
import time

CASE, SECONDS = sys.argv[1], float(sys.argv[2])
sys.setrecursionlimit(5000)
api = ctypes.pythonapi
api.PyThreadState_Get.restype = ctypes.c_void_p
libc = ctypes.CDLL(None)


def u64(addr):
    return ctypes.cast(addr, ctypes.POINTER(ctypes.c_uint64))


def fake(n, back):
    """n frames of the code of fake(), each the caller of the one before; the last one's caller is
    `back`.
    """
    size = 128
    block = ctypes.create_string_buffer(n * size)
    base = ctypes.addressof(block)
    for i in range(n):
        at = base + i * size
        u64(at + 32)[0] = id(fake.__code__)
        u64(at + 48)[0] = at + size if i < n - 1 else back(base)
    return block, base


def lie():
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    del compare
    cframe = u64(api.PyThreadState_Get() + 56)
    current = u64(cframe[0] + 8)
    true = current[0]
    cases = {"cycle": (2, lambda base: base), "wild": (3, lambda base: 0xffff800000001234),
             "endless": (100000, lambda base: 0)}
    block, base = fake(*cases[CASE])
    # One C call works for as long as the frames lie.
    data = ctypes.create_string_buffer(1 << 22)
    work = libc.memset
    end = time.time() + SECONDS
    print("READY", flush=True)
    while time.time() < end:
        swap(current, base, true, work, data)


def swap(current, base, true, work, data):
    # The frames of callers are below; this one is overwritten only in the list.
    prev = u64(true + 48)
    saved = prev[0]
    prev[0] = base
    for _ in range(4):
        work(data, 1, 1 << 22)
    prev[0] = saved


def deep(n):
    if n:
        return deep(n - 1)
    print("READY", flush=True)
    end = time.time() + SECONDS
    data = ctypes.create_string_buffer(1 << 22)
    while time.time() < end:
        libc.memset(data, 1, 1 << 22)


if CASE == "rec1000":
    deep(1000)
else:
    lie()
