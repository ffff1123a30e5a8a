# SPDX-License-Identifier: BSD-2-Clause
"""chains.py CASE SECONDS: works under a chain that the program knows itself. CPython 3.8 and later.

At its leaf it prints its own stack once, root first, as sfbpf should show it: "CHAIN NAME
(FILE:LINE);...", and then works there until the end. Each case is a function of this module named
case_NAME.
"""

import os
import sys
import threading
import time

END = 0.0
SECONDS = 0.0
said = False
callers = ""    # of a sub-interpreter's frames


def chain():
    out = []
    frame = sys._getframe(2)
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        out.append("%s (%s:%d)" % (name, os.path.basename(code.co_filename), frame.f_lineno))
        frame = frame.f_back
    return ";".join(reversed(out))


def say_once():
    global said, END
    if not said:
        said = True
        print("CHAIN " + callers + chain(), flush=True)
        END = time.time() + SECONDS


def spin():
    say_once()
    x = 0
    while time.time() < END:
        for i in range(2000):
            x += i * i % 7
    return x


def nested(n, leaf=spin):
    return nested(n - 1, leaf) if n else leaf()


def case_plain():
    spin()


def case_rec60():
    nested(60)


def case_rec300():
    nested(300)


def case_sorted():
    sorted([2, 1], key=lambda x: nested(3))


def case_greenlet():
    """Begun in one place, and resumed in another one, whose frames are not as deep."""
    import greenlet

    main = greenlet.getcurrent()

    def inner():
        main.switch()
        nested(3)

    g = greenlet.greenlet(inner)
    sorted([1], key=lambda x: nested(5, g.switch) or 1)
    g.switch()


def case_resub():
    import re

    def replace(match):
        spin()
        return "b"

    re.sub("a", replace, "a")


def case_qsort():
    import ctypes

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(a, b):
        spin()
        return 0

    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, kind(compare))


class Base:
    def __init__(self):
        self.value = self()

    def __call__(self):
        return self.prop

    @property
    def prop(self):
        return self.missing

    def __getattr__(self, name):
        return [self.static() for _ in range(1)]

    @staticmethod
    def static():
        return Derived.made()

    @classmethod
    def made(cls):
        with cls.manager():
            pass

    class manager:
        def __enter__(self):
            spin()

        def __exit__(self, *args):
            return False


class Derived(Base):
    def __init__(self):
        super().__init__()


def case_classes():
    Derived()


def case_closure():
    def outer(n):
        def inner():
            return outer(n - 1) if n else spin()
        return inner()

    outer(3)


def inner_generator():
    yield 1
    spin()
    yield 2


def generator(n):
    if n:
        yield from generator(n - 1)
    else:
        yield from inner_generator()


def case_generator():
    for _ in generator(4):
        pass


def catching(n):
    if n:
        yield from catching(n - 1)
        return
    try:
        yield 1
    except ValueError:
        spin()


def case_throw():
    g = catching(4)
    next(g)
    try:
        g.throw(ValueError)
    except StopIteration:
        pass


def case_genexpr():
    sum(spin() or 1 for _ in range(2))


def case_async():
    import asyncio

    async def leaf():
        await asyncio.sleep(0)
        for _ in generator(1):
            pass

    async def middle(n):
        return await (middle(n - 1) if n else leaf())

    asyncio.run(middle(3))


def case_thread():
    thread = threading.Thread(target=nested, args=(5,))
    thread.start()
    thread.join()


def case_except():
    def raising():
        raise ValueError

    try:
        raising()
    except ValueError:
        try:
            raising()
        except ValueError:
            pass
        finally:
            nested(2)


def native_leaf():
    import zlib

    say_once()
    data = os.urandom(1 << 16) * 8
    while time.time() < END:
        zlib.compress(data, 6)


def case_native():
    nested(4, native_leaf)


def case_middle():
    import functools
    import json

    def hook(obj):
        return functools.reduce(lambda a, b: nested(2), [1, 2])

    json.loads('{"a": [1]}', object_hook=hook)


def case_eval():
    eval("nested(1)")
    exec("nested(1)")


def case_fork():
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    else:
        nested(3)
        os._exit(0)


def case_sleep():
    say_once()
    while time.time() < END:
        time.sleep(0.002)


def chain_here():
    return chain()


def run_subinterpreter(sub, made):
    before = chain_here() + ";"
    sub.run_string(
        made, "import sys\n"
        "sys.path.insert(0, %r)\n"
        "import chains\n"
        "chains.callers, chains.SECONDS = %r, %r\n"
        "chains.nested(3)\n" % (os.path.dirname(os.path.abspath(__file__)), before, SECONDS))


def case_subinterpreter():
    """3.11. The state of the sub-interpreter is of the thread that calls it."""
    sub = __import__("_xxsubinterpreters")
    run_subinterpreter(sub, sub.create())


def case_subthread():
    """3.11. The first state of a sub-interpreter has the id of the thread that created it."""
    sub = __import__("_xxsubinterpreters")
    t = threading.Thread(target=run_subinterpreter, args=(sub, sub.create()))
    t.start()
    t.join()


def case_redefined():
    """Functions that live for some milliseconds: their memory is reused. The names of a pair agree.
    """
    say_once()
    n = 0
    while time.time() < END:
        scope = {"time": time}
        n += 1
        text = (
            "def outer_%d(end):\n inner_%d(end)\n"
            "def inner_%d(end):\n x = 0\n while time.time() < end:\n  for i in range(200): x += i\n"
            % (n, n, n))
        exec(text, scope)
        scope["outer_%d" % n](time.time() + 0.02)


def main():
    global SECONDS
    SECONDS = float(sys.argv[2])
    sys.setrecursionlimit(5000)
    globals()["case_" + sys.argv[1]]()


if __name__ == "__main__":
    main()
