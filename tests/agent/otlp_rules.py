# SPDX-License-Identifier: BSD-2-Clause
"""The rules of OTLP profiles: tables, indices, ranges, duplicates, orphans, identity.
errors(request) lists what a receiver would refuse, lose or store twice; hash_errors(request)
compares the hashes with the files of this machine.
"""

import hashlib
import os
import re
from collections import Counter

TABLES = ("mapping", "location", "function", "link", "string", "attribute", "stack")
BUILD_ID = "process.executable.build_id."
LATE_MAX = 8
FRAME_TYPES = {
    "kernel", "native", "go", "rust", "v8js", "jvm", "cpython", "php", "ruby", "perl", "dotnet",
    "beam", "unsymbolized"
}


class Rules:
    def __init__(self, req):
        self.req, self.d, self.e = req, req.dictionary, []
        self.size = {t: len(getattr(self.d, t + "_table")) for t in TABLES}
        self.used = {t: {0} for t in TABLES}
        self.late = []      # files that a loaded machine has not read yet

    def index(self, table, i, what):
        """Counts a reference. False: out of range."""
        self.used[table].add(i)
        if 0 <= i < self.size[table]:
            return True
        self.e.append("%s: %d of %d" % (what, i, self.size[table]))
        return False

    def tables(self):
        for t in TABLES:
            table = getattr(self.d, t + "_table")
            if not self.size[t]:
                self.e.append("no %s_table" % t)
            elif t == "string" and table[0] != "" or t != "string" and table[0].ByteSize():
                self.e.append("element 0 of %s_table is not empty" % t)
            elif len({m if t == "string" else m.SerializeToString()
                      for m in table}) != self.size[t]:
                self.e.append("%s_table has an element twice" % t)

    def attributes(self, indices, what):
        """{key: value} of a list of indices."""
        found = {}
        for i in indices:
            if not i:
                self.e.append("%s: attribute 0" % what)
            if not self.index("attribute", i, what):
                continue
            a = self.d.attribute_table[i]
            key = self.d.string_table[
                a.key_strindex] if a.key_strindex < self.size["string"] else ""
            if key in found:
                self.e.append("%s: attribute %s twice" % (what, key))
            found[key] = a.value.string_value if a.value.WhichOneof(
                "value") == "string_value" else a.value.int_value
        return found

    def mappings(self):
        for n, m in enumerate(self.d.mapping_table):
            self.index("string", m.filename_strindex, "a mapping's file")
            ids = self.attributes(m.attribute_indices, "a mapping")
            if n and not m.memory_limit > m.memory_start:
                self.e.append("a mapping ends before it starts")
            for key, value in ids.items():
                if not key.startswith(BUILD_ID) or key.endswith(
                    (".gnu", ".htlhash")) and not re.fullmatch("(?:[0-9a-f]{2}){4,64}", value):
                    self.e.append("a mapping's %s: %s" % (key, value))
            path = self.d.string_table[
                m.filename_strindex] if m.filename_strindex < self.size["string"] else ""
            if n and not path:
                self.e.append("a mapping without a file")
            kernel = path.startswith("[") and path not in ("[vdso]", "[unknown]")
            if n and kernel and not ids.get(BUILD_ID + "gnu"):
                self.e.append("%s has no build id of its own: %s" % (path, ids))
            elif n and not kernel and not ids.get(BUILD_ID + "htlhash"):
                self.late.append(path)

    def code(self):
        for l in self.d.location_table[1:]:
            if self.index("mapping", l.mapping_index, "a location's mapping") and l.mapping_index:
                m = self.d.mapping_table[l.mapping_index]
                if not m.memory_start <= l.address < m.memory_limit:
                    self.e.append("a location is outside of its mapping")
            if not l.mapping_index and not l.lines:
                self.e.append("a location without mapping and function")
            for line in l.lines:
                if self.index("function", line.function_index,
                              "a line's function") and not line.function_index:
                    self.e.append("a line of function 0")
            kind = self.attributes(l.attribute_indices, "a location").get("profile.frame.type")
            if kind not in FRAME_TYPES | {None} or l.mapping_index and not kind:
                self.e.append("profile.frame.type %s" % kind)
        for f in self.d.function_table[1:]:
            if not f.name_strindex:
                self.e.append("a function without a name")
            for i in (f.name_strindex, f.system_name_strindex, f.filename_strindex):
                self.index("string", i, "a function's name")
        for a in self.d.attribute_table[1:]:
            if not a.key_strindex or a.value.WhichOneof("value") is None:
                self.e.append("an attribute without key or value")
            self.index("string", a.key_strindex, "an attribute's key")
            self.index("string", a.unit_strindex, "an attribute's unit")
        for s in self.d.stack_table[1:]:
            if not s.location_indices:
                self.e.append("a stack without locations")
            for l in s.location_indices:
                if self.index("location", l, "a stack's location") and not l:
                    self.e.append("a stack goes through location 0")

    def resource(self, rp):
        names = Counter(a.key for a in rp.resource.attributes)
        for want in ("service.name", "host.name", "os.type"):
            if names[want] != 1:
                self.e.append("%s is there %d times" % (want, names[want]))
        if names and max(names.values()) > 1 or "" in names:
            self.e.append("a resource attribute twice, or without a name: %s" % names)
        if any(a.key_strindex or a.value.string_value_strindex for a in rp.resource.attributes):
            self.e.append("a resource attribute by string index")
        for url in [rp.schema_url] + [sp.schema_url for sp in rp.scope_profiles]:
            if not url.startswith("https://opentelemetry.io/schemas/1."):
                self.e.append("schema_url '%s'" % url)
        for sp in rp.scope_profiles:
            if not sp.HasField("scope") or not sp.scope.name or not sp.scope.version:
                self.e.append("no scope")
            for p in sp.profiles:
                self.profile(p)

    def profile(self, p):
        if not p.HasField("period_type") or not p.HasField("sample_type") or len(
                p.profile_id) != 16:
            self.e.append("period_type, sample_type or profile_id is missing")
        if not p.samples or not p.time_unix_nano or not p.duration_nano:
            self.e.append("a profile without samples, time or duration")
        for i in (p.sample_type.type_strindex, p.sample_type.unit_strindex,
                  p.period_type.type_strindex, p.period_type.unit_strindex):
            self.index("string", i, "a type")
        off = self.d.string_table[p.sample_type.type_strindex] == "off_cpu"
        by_time = self.d.string_table[
            p.period_type.
            type_strindex] == "cpu"  # of other events at a frequency, the period is not known
        if (off and p.period) or (by_time and not p.period) or off == bool(
                p.period_type.type_strindex):
            self.e.append("period %d of %s" % (p.period, "off_cpu" if off else "samples"))
        keys = [(s.stack_index, tuple(s.attribute_indices), s.link_index) for s in p.samples]
        if len(set(keys)) != len(keys):
            self.e.append("a stack twice with the same attributes and link")
        for s in p.samples:
            if self.index("stack", s.stack_index, "a sample's stack") and not s.stack_index:
                self.e.append("a sample of stack 0")
            self.index("link", s.link_index, "a sample's link")
            if len(s.values) != 1 or s.values[0] <= 0 or s.timestamps_unix_nano:
                self.e.append("values %s" % list(s.values))
            attributes = self.attributes(s.attribute_indices, "a sample")
            if not attributes.get("thread.name") or attributes.get("process.pid") == 0:
                self.e.append("a sample's attributes: %s" % attributes)

    def orphans(self):
        for t in TABLES:
            unused = sorted(set(range(self.size[t])) - self.used[t])
            if unused:
                self.e.append("nothing refers to %d elements of %s_table: %s" %
                              (len(unused), t,
                               [str(getattr(self.d, t + "_table")[i])[:60] for i in unused[:3]]))

    def identity(self):
        ids = [
            p.profile_id for rp in self.req.resource_profiles for sp in rp.scope_profiles
            for p in sp.profiles
        ]
        if len(set(ids)) != len(ids) or not ids:
            self.e.append("a profile_id twice, or no profile")
        known = type(self.req).FromString(self.req.SerializeToString())
        known.DiscardUnknownFields()
        if known.ByteSize() != self.req.ByteSize():
            self.e.append("unknown fields")


def errors(req):
    r = Rules(req)
    r.tables()
    if r.e:
        return r.e
    r.mappings()
    r.code()
    for rp in req.resource_profiles:
        r.resource(rp)
    r.orphans()
    r.identity()
    if len(r.late) > LATE_MAX:
        r.e.append("%d files without a hash: %s" % (len(r.late), r.late[:3]))
    return sorted(set(r.e))


def htlhash(path):
    with open(path, "rb") as f:
        head = f.read(4096)
        size = f.seek(0, os.SEEK_END)
        f.seek(max(0, size - 4096))
        tail = f.read(4096)
    return hashlib.sha256(head + tail + size.to_bytes(8, "big")).hexdigest()[:32]


def has_id(path, build_id):
    with open(path, "rb") as f:
        return bytes.fromhex(build_id) in f.read()


def hash_errors(req):
    """(errors, files compared)"""
    d, e, n = req.dictionary, [], 0
    for m in d.mapping_table[1:]:
        path = d.string_table[m.filename_strindex]
        ids = {
            d.string_table[d.attribute_table[i].key_strindex]:
            d.attribute_table[i].value.string_value
            for i in m.attribute_indices
        }
        if not path.startswith("/") or not os.path.isfile(path):
            continue
        if BUILD_ID + "htlhash" not in ids:
            continue        # counted by errors()
        if not has_id(path, ids.get(BUILD_ID + "gnu", "")):
            continue        # that of another root directory
        n += 1
        if ids.get(BUILD_ID + "htlhash") != htlhash(path):
            e.append("%s: htlhash %s, not %s" %
                     (path, ids.get(BUILD_ID + "htlhash"), htlhash(path)))
    return e, n
