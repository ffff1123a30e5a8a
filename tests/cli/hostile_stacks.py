# SPDX-License-Identifier: BSD-2-Clause
"""Files for report and diff that are valid and made to cost time or memory: SHAPES[name](n) is one
of about n units, unpacked.
"""

import gzip
import json

PADDING = 4096


def varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(n, v):
    return varint(n << 3) + varint(v)


TYPE = field(1, number(1, 1) + number(2, 2))
STRINGS = [b"", b"samples", b"count", b"comm", b"pid", b"incomplete"]


def profile(*parts, strings=()):
    return b"".join((TYPE, *(field(6, s) for s in (*STRINGS, *strings)), *parts))


def function(i, name, more=b""):
    return field(5, number(1, i) + number(2, name) + more)


def location(i, lines, more=b""):
    return field(4, number(1, i) + more + b"".join(field(4, number(1, f)) for f in lines))


def sample(ids, value=1, labels=b""):
    return field(2, field(1, b"".join(map(varint, ids))) + field(2, varint(value)) + labels)


# ---- Folded ----

def folded_deep(n):
    """Stacks of 4,000 frames, all different: quadratic where each frame looks at those above it."""
    stacks = (b";".join(b"%x" % (j * 97 % 4093) for j in range(i, i + 3990))
              for i in range(max(1, n // 4000)))
    return b"".join(b"c;%s %d\n" % (s, i + 1) for i, s in enumerate(stacks))


def folded_wide(n):
    return b"".join(b"c;main;f%x 1\n" % i for i in range(n))


def folded_ascending(n):
    """Siblings, each wider than the one before: quadratic in a list that is sorted by insertion."""
    return b"".join(b"c;f%x %d\n" % (i, i + 1) for i in range(n))


def folded_wrapping(n):
    """Counts whose sum passes 2^64."""
    return b"".join(b"c;f%x %d\n" % (i, (1 << 64) // n + 9 + i) for i in range(n))


def folded_names(n):
    return b"".join(b"c;%s%x;%s 1\n" % (b"x" * 2000, i, b"\xff" * 2000)
                    for i in range(n // 4000 + 1))


def folded_empty(n):
    return b"a;;;; 1\n\n" * (n // 4)


def folded_comms(n):
    """One deep path for many comms: each line repeats it."""
    return b"".join(b"c%x;%s 1\n" % (i, b";".join([b"f"] * 1000)) for i in range(n // 1000 + 1))


# ---- JSON ----

def json_of(stacks):
    return json.dumps({"meta": {"schema": 1}, "stacks": stacks}, separators=(",", ":")).encode()


def json_deep(n):
    return json_of([{
        "comm": "c", "count": 1, "frames": [{"name": "%x" % (j * 97 % 4093)}
                                            for j in range(i, i + 3990)]
    } for i in range(n // 4000 + 1)])


def json_empty(n):
    return json_of([{}] * n)


def json_frames(n):
    return json_of([{"frames": [{}] * 4000, "stop": "x"}] * (n // 4000 + 1))


def json_keys(n):
    return b'{"meta":{"schema":1},"x":[' + b'{"":"\\u00e4","y":[[[1]]]},' * n + b'1],"stacks":[]}'


def json_wakers(n):
    return json_of([{
        "pid": i, "count": i, "state": "R", "waker": {"comm": "w", "frames": [{"name": "%x" % i}]}
    } for i in range(n)])


# ---- pprof, unpacked ----

def pprof_padding(n):
    """A function, a mapping and a location with much padding, which many refer to."""
    pad = number(15, 1) * n
    return profile(function(1, 6, pad), field(3,
                                              number(1, 1) + number(5, 6) + pad),
                   location(1, [1] * 2000,
                            number(2, 1) + pad),
                   *(location(i, [1], number(2, 1)) for i in range(2, n)),
                   *(sample([i, 1]) for i in range(1, n)), strings=[b"f" * 2000])


def pprof_long_name(n):
    """A name of 2 kB for each location and its mapping."""
    return profile(function(1, 6), field(3,
                                         number(1, 1) + number(5, 6)),
                   *(location(i, [1], number(2, 1)) for i in range(1, n)),
                   *(sample([i]) for i in range(1, n)), strings=[b"/" + b"f" * 2000])


def pprof_nameless(n):
    """A name of 1 kB is made for each location."""
    return profile(field(3,
                         number(1, 1) + number(5, 6)),
                   *(field(4,
                           number(1, i) + number(2, 1) + number(3, i)) for i in range(1, n)),
                   *(sample([i]) for i in range(1, n)), strings=[b"/" + b"f" * 2000])


def pprof_inlined(n):
    return profile(function(1, 6), location(1, [1] * 4000), *(sample([1]) for _ in range(n)),
                   strings=[b"f"])


def pprof_comments(n):
    return profile(field(13, bytes(n * 8)), *(number(13, 1) for _ in range(n)))


def pprof_labels(n):
    labels = field(3, b"") * n + field(3, number(1, 3) + number(2, 6)) * n
    return profile(function(1, 6), location(1, [1]), sample([1], 1, labels), strings=[b"f"])


def pprof_tables(n):
    """Entries without a reference to them, of two bytes each."""
    return profile(
        field(6, b"") * n,
        field(1, b"") * n, *(field(3, number(1, i)) for i in range(1, n)))


def pprof_shared(n):
    """Many stacks of the same frames: all new nodes, or walks through old ones, in turn."""
    parts = [function(i, 5 + i) + location(i, [i]) for i in range(1, 300)]
    for i in range(n // 1000 + 1):
        parts.append(sample([(j * (i % 298 + 1) + i // 298) % 299 + 1 for j in range(4000)]))
        parts.append(sample([j % 299 + 1 for j in range(4000)], i + 1))
    return profile(*parts, strings=[b"f%d" % i for i in range(300)])


def pprof_values(n):
    return profile(function(1, 6), location(1, [1]),
                   field(2,
                         field(1, b"\1") + field(2,
                                                 varint((1 << 64) - 1) * n)), strings=[b"f"])


def pprof_descending(n):
    return profile(*(function(i, 6) for i in range(n, 0, -1)), strings=[b"f"])


def pprof_long_lines(n):
    """Folded lines of 8 MB each, of one byte a frame."""
    count = n // 1000 + 1
    return profile(
        function(1, 6), location(1, [1]),
        *(sample([1] * 4000, 1, field(3,
                                      number(1, 3) + number(2, 7 + i)))
          for i in range(count)), strings=[b"f" * 2000, *(b"c%d" % i for i in range(count))])


SHAPES = {
    f.__name__: f
    for f in (folded_deep, folded_wide, folded_ascending, folded_wrapping, folded_names,
              folded_empty, folded_comms, json_deep, json_empty, json_frames, json_keys,
              json_wakers, pprof_padding, pprof_long_name, pprof_nameless, pprof_inlined,
              pprof_comments, pprof_labels, pprof_tables, pprof_shared, pprof_values,
              pprof_descending, pprof_long_lines)
}


def packed(name, data):
    return gzip.compress(data, 6, mtime=0) if name.startswith("pprof") else data
