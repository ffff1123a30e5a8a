# SPDX-License-Identifier: BSD-2-Clause
"""Checks a JSON value against the part of JSON Schema that docs/json.schema.json uses; an unknown
keyword is an error.
"""

import json
import os
import re

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                    "docs")
TYPES = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int,
    "null": type(None)
}
IGNORED = {"$schema", "$defs", "title"}


def _is(value, name):
    return isinstance(value, TYPES[name]) and not isinstance(value, bool)


def _problems(value, schema, root, path):
    """Yields strings. Keywords about a type hold for values of that type only, as the standard
    says.
    """
    for key, want in schema.items():
        if key == "$ref":
            yield from _problems(value, root["$defs"][want.rsplit("/", 1)[1]], root, path)
        elif key == "type":
            names = want if isinstance(want, list) else [want]
            if not any(_is(value, n) for n in names):
                yield "%s: %r is not %s" % (path, value, " or ".join(names))
        elif key == "const":
            if value != want:
                yield "%s: %r is not %r" % (path, value, want)
        elif key == "enum":
            if value not in want:
                yield "%s: %r is none of %r" % (path, value, want)
        elif key == "required":
            if _is(value, "object"):
                yield from ("%s: no %s" % (path, k) for k in want if k not in value)
        elif key == "properties":
            if _is(value, "object"):
                for k in want.keys() & value.keys():
                    yield from _problems(value[k], want[k], root, "%s.%s" % (path, k))
        elif key == "items":
            if _is(value, "array"):
                for i, v in enumerate(value):
                    yield from _problems(v, want, root, "%s[%d]" % (path, i))
        elif key == "pattern":
            if _is(value, "string") and not re.search(want, value):
                yield "%s: %r does not match %s" % (path, value, want)
        elif key in ("minimum", "maximum", "exclusiveMinimum"):
            if _is(value, "number") and (value < want if key == "minimum" else
                                         value > want if key == "maximum" else value <= want):
                yield "%s: %r, %s is %r" % (path, value, key, want)
        elif key not in IGNORED:
            raise ValueError("the schema has %s, which is not known here" % key)


def problems(value, limit=5):
    """The first few violations of the profile's schema; and of what it cannot say: references and
    sums.
    """
    with open(os.path.join(DOCS, "json.schema.json")) as f:
        schema = json.load(f)
    out = []
    for p in _problems(value, schema, schema, "$"):
        out.append(p)
        if len(out) == limit:
            return out
    ids = {m["id"] for m in value["modules"]}
    for s in value["stacks"]:
        for f in s["frames"] + (s.get("waker") or {"frames": []})["frames"]:
            want = {"user": {"module_id", "offset"}, "inlined": f.keys() & {"module_id", "offset"},
                    "jit": {"address"}, "unknown": {"address"}}.get(f["kind"], set())
            listed = "module_id" not in f or f[
                "module_id"] in ids or f["module"] == "[unknown]"  # a file that was never opened
            if not want <= f.keys() or not listed:
                out.append("frame %r" % f)
    if "state" not in (value["stacks"] or [{}])[0]:
        got = sum(s["samples"] for s in value["stacks"])
        if got != value["meta"]["samples"] - value["meta"]["lost"]:
            out.append("%d samples in stacks, %d taken, %d lost" %
                       (got, value["meta"]["samples"], value["meta"]["lost"]))
    return out[:limit]
