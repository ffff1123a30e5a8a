#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_mutated_inputs.py [SEED [COUNT]]: report, diff and inspect on mutated files of up to 1 MB,
in all formats: none takes more than a second of CPU time or 512 MB. And of hostile shapes twice as
much takes at most 2.6 times as long.
"""

import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile_elf  # noqa: E402
import hostile_stacks  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.environ.get("SFBPF", os.path.join(TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))
STORED = [os.path.join(TOP, "tests", "fuzz", d, "stacks") for d in ("corpus", "reject")]
SIZE_MAX = 1 << 20
MEMORY_MAX = 512 << 10      # kB
SECONDS = float(os.environ.get("SECONDS", "1"))
GIVE_UP = 20                # seconds
FORMATS = ("text", "folded", "html")
INSPECT = ([], ["--json"], ["--rows"], ["--compare"])
RATIO_MAX = 2.6
ENOUGH = .15                # seconds that a run must take for its ratio to count
TRIES = 15                  # pairs until one shape's least times have a ratio below RATIO_MAX
failed = 0


def report(name, errors):
    global failed
    failed += bool(errors)
    print("FAIL %s: %s" % (name, "; ".join(errors[:5])) if errors else "ok %s" % name, flush=True)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (GIVE_UP, GIVE_UP))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def run(*args):
    """CPU seconds, kB resident, exit code, lines of complaint."""
    with tempfile.TemporaryFile() as err, open(os.devnull, "wb") as out:
        p = subprocess.Popen([SFBPF, *args], stdout=out, stderr=err, preexec_fn=limit)
        status, usage = os.wait4(p.pid, 0)[1:]
        p.returncode = 0
        err.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(
            status), err.read().splitlines()


# ---- Mutations ----

def stored():
    out = []
    for d in STORED:
        for f in sorted(os.listdir(d)):
            with open(os.path.join(d, f), "rb") as file:
                data = file.read()
            try:
                out.append(("pprof",
                            gzip.decompress(data)[:SIZE_MAX]) if data[:2] == b"\x1f\x8b" else (
                                "other", data))
            except (OSError, EOFError):
                out.append(("other", data))
    return out


def stored_programs():
    out, d = [], os.path.join(TOP, "tests", "fuzz", "corpus", "file")
    for f in sorted(os.listdir(d)):
        with open(os.path.join(d, f), "rb") as file:
            out.append(file.read())
    return out


def shaped(rng):
    """A hostile shape of random size; packed, it may be a hundredth of that."""
    name = rng.choice(sorted(hostile_stacks.SHAPES))
    n = int(10 ** rng.uniform(1, 6 if name.startswith("pprof") else 5))
    data = hostile_stacks.SHAPES[name](n)
    while len(data) > (64 * SIZE_MAX if name.startswith("pprof") else SIZE_MAX):
        n //= 2
        data = hostile_stacks.SHAPES[name](n)
    return name, data


def mutate(rng, data, other):
    for _ in range(rng.choice((0, 1, 1, 2, 4, 16))):
        if not data:
            return data
        a, b = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
        if rng.random() < .7:
            b = min(b, a + rng.choice((1, 4, 64, 4096)))
        piece, kind = data[a:b], rng.randrange(7)
        if kind == 0:
            data[a] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[a:a + 8] = rng.choice((b"\xff" * 9 + b"\1", b"\0" * 8, b"\x80" * 8, b"9" * 19,
                                        b";" * 64, b"[" * 70, b"\x7f\xff\xff\xff"))
        elif kind == 2:
            del data[a:b]
        elif kind == 3 and piece:
            data[b:b] = piece * min(rng.choice(
                (1, 10, 1000, 100000)), max(1, SIZE_MAX // len(piece)))
        elif kind == 4:
            del data[a:]
        elif kind == 5 and other:
            c = rng.randrange(len(other))
            data[a:b] = other[c:c + rng.choice((16, 1024, 1 << 18))]
        else:
            data[a:b] = bytes(piece[::-1])
    return data


def make(rng, bases):
    kind, data = shaped(rng) if rng.random() < .6 else rng.choice(bases)
    if kind.startswith("pprof"):
        if rng.random() < .9:
            data = mutate(rng, bytearray(data), rng.choice(bases)[1])
        level = rng.choice((0, 1, 6))
        out = gzip.compress(bytes(data), level if len(data) < SIZE_MAX else max(level, 1), mtime=0)
        if rng.random() < .1:
            out = bytes(mutate(rng, bytearray(out), None))
        return kind, out[:SIZE_MAX]
    return kind, bytes(mutate(rng, bytearray(data), rng.choice(bases)[1]))[:SIZE_MAX]


def make_elf(rng, programs):
    """Headers are where most of the damage is to be done."""
    name = rng.choice(sorted(hostile_elf.SHAPES) + ["program"] * 5)
    data = bytearray(
        rng.choice(programs) if name == "program" else hostile_elf.SHAPES[name]
        (int(10**rng.uniform(4, 6))))
    for _ in range(rng.choice((0, 1, 4, 16))):
        at = rng.randrange(min(len(data), rng.choice((64, 4096, 1 << 20))))
        data[at] = rng.choice((0, 1, 0xff, rng.randrange(256), data[at] ^ 1 << rng.randrange(8)))
    return name, bytes(
        data if rng.random() < .7 else mutate(rng, data, rng.choice(programs)))[:SIZE_MAX]


def make_run(rng, i, bases, programs, file):
    """What is in the file, and the arguments that read it."""
    if i % 4 == 3:
        kind, data = make_elf(rng, programs)
        args = ["inspect", *rng.choice(INSPECT), file]
    else:
        kind, data = make(rng, bases)
        args = ["report", file] if rng.random() < .6 else ["diff", file, file]
        args += ["--format", rng.choice(FORMATS)]
    return kind, data, args


def check_mutated(tmp, seed, count):
    errors, slowest, largest, bases, programs = [], (0, ""), (0, ""), stored(), stored_programs()
    file = os.path.join(tmp, "in")
    for i in range(seed, seed + count):
        rng = random.Random(i)
        kind, data, args = make_run(rng, i, bases, programs, file)
        with open(file, "wb") as f:
            f.write(data)
        took, kb, code, lines = run(*args)
        for _ in range(2):      # a machine with neighbours takes up to twice as long
            if took > SECONDS:
                took = min(took, run(*args)[0])
        what, before = "%d (%s of %d bytes, %s)" % (i, kind, len(data), " ".join(
            a for a in args if a != file)), len(errors)
        slowest, largest = max(slowest, (took, what)), max(largest, (kb, what))
        if code not in (0, 1) or (args[0] != "inspect" and len(lines) != code):
            errors.append("%s: exit %d, %s" % (what, code, lines[:2]))
        if took > SECONDS:
            errors.append("%s: %.2f s" % (what, took))
        if kb > MEMORY_MAX:
            errors.append("%s: %d MB" % (what, kb >> 10))
        if i % 500 == 499:
            print("# %d, slowest so far: %.2f s" % (i, slowest[0]), flush=True)
        if len(errors) > before and os.environ.get("KEEP"):
            with open(os.path.join(os.environ["KEEP"], "mutated-%d" % i), "wb") as f:
                f.write(data)
    print("# slowest: %.2f s, %s; largest: %d MB, %s" % (slowest + (largest[0] >> 10, largest[1])))
    report("mutated-inputs", errors)


# ---- Time by size ----

def twice(tmp, name, make_shape, before, after):
    """The time of a shape, of one of twice its size, and what that was."""
    files = [os.path.join(tmp, "one"), os.path.join(tmp, "two")]
    for file, n in zip(files, (1, 2)):
        with open(file, "wb") as f:
            f.write(make_shape(n))
    t1 = t2 = GIVE_UP
    for _ in range(TRIES):
        t1 = min(t1, run(*before, files[0], *after)[0])
        t2 = min(t2, run(*before, files[1], *after)[0])
        if t2 < ENOUGH or t2 < RATIO_MAX * t1:
            break
    return t1, t2, "%s %s: %.2f s, twice as much %.2f s" % (name, " ".join(before + after), t1, t2)


def check_linear(tmp):
    """Each shape as it is and doubled, in the same run; where a limit refuses both, the time to
    find that out.
    """
    errors, worst, cases = [], (0, ""), []
    for name, shape in sorted(hostile_stacks.SHAPES.items()):
        cases += [(name, lambda n, s=shape, k=name: hostile_stacks.packed(k, s(20000 * n)),
                   ["report"], ["--format", f]) for f in FORMATS]
    for name, shape in sorted(hostile_elf.SHAPES.items()):
        cases += [(name, lambda n, s=shape: s(500000 * n), ["inspect", *mode], [])
                  for mode in INSPECT[1:]]
    for case in cases:
        t1, t2, what = twice(tmp, *case)
        worst = max(worst, (t2, what))
        if t2 > ENOUGH and t2 > RATIO_MAX * t1:
            errors.append(what)
    print("# slowest shape: %s" % worst[1])
    report("linear-inputs", errors)


def main():
    if not os.access(SFBPF, os.X_OK):
        print("SKIP mutated-inputs: %s is not built" % SFBPF)
        return
    seed, count = [int(a) for a in sys.argv[1:]] + [1, 40][len(sys.argv) - 1:]
    with tempfile.TemporaryDirectory(prefix="sfbpf-mutated-") as tmp:
        check_mutated(tmp, seed, count)
        if len(sys.argv) < 2:
            check_linear(tmp)
    sys.exit(1 if failed else 0)


main()
