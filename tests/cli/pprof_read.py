# SPDX-License-Identifier: BSD-2-Clause
"""What others read out of a pprof file: Google's protobuf library with the message types written
down here, and go's pprof.
"""

import gzip
import os
import re
import shutil
import subprocess
from collections import Counter

# Field numbers of profile.proto. S: string table index or number (int64), *: repeated.
MESSAGES = {
    "Profile": "sample_type=1:ValueType* sample=2:Sample* mapping=3:Mapping* "
               "location=4:Location* function=5:Function* string_table=6:string* "
    "time_nanos=9 duration_nanos=10 period_type=11:ValueType period=12 comment=13*",
    "ValueType": "type=1 unit=2",
    "Sample": "location_id=1* value=2* label=3:Label*",
    "Label": "key=1 str=2 num=3",
    "Mapping": "id=1 memory_start=2 memory_limit=3 file_offset=4 filename=5 build_id=6 "
               "has_functions=7",
    "Location": "id=1 mapping_id=2 address=3 line=4:Line*",
    "Line": "function_id=1 line=2",
    "Function": "id=1 name=2 system_name=3 filename=4 start_line=5",
}


def _profile_class():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        m = file.message_type.add(name=name)
        for text in fields.split():
            key, number, kind, many = re.fullmatch(r"(\w+)=(\d+)(?::(\w+))?(\*?)", text).groups()
            f = m.field.add(name=key, number=int(number), label=3 if many else 1)
            f.type = {None: 4, "string": 9}.get(kind, 11)     # uint64, string, message
            if f.type == 11:
                f.type_name = ".p." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("p.Profile")
    make = getattr(message_factory, "GetMessageClass", None)
    return make(descriptor) if make else message_factory.MessageFactory(pool).GetPrototype(
        descriptor)


def with_protobuf(path):
    """The file as a message; ImportError if the library is not installed. What is inconsistent is a
    ValueError.
    """
    p = _profile_class()()
    with gzip.open(path) as f:
        p.ParseFromString(f.read())
    for table in (p.mapping, p.location, p.function):
        if [e.id for e in table] != list(range(1, len(table) + 1)):
            raise ValueError("ids are not 1, 2, 3, ...")
    for loc in p.location:
        if loc.mapping_id:
            m = p.mapping[loc.mapping_id - 1]
            if not m.memory_start <= loc.address < m.memory_limit:
                raise ValueError("location %d at %#x is not in its mapping" % (loc.id, loc.address))
        for line in loc.line:
            p.function[line.function_id - 1]
    spans = sorted((m.memory_start, m.memory_limit) for m in p.mapping)
    if any(a[1] > b[0] for a, b in zip(spans, spans[1:])):
        raise ValueError("mappings overlap")
    return p


def labels(p, sample):
    return {
        p.string_table[label.key]: p.string_table[label.str] if label.str else label.num
        for label in sample.label
    }


def stacks(p, value=0):
    """{(comm, root, ..., leaf): sum}, as folded lines have them."""
    out = Counter()
    names = [[p.string_table[p.function[line.function_id - 1].name] for line in loc.line]
             for loc in p.location]
    for s in p.sample:
        have = labels(p, s)
        frames = [
            n for i in reversed(s.location_id) for n in reversed(names[i - 1]) if n != "[no stack]"
        ]
        marker = ["[incomplete:%s]" % have["incomplete"]] if "incomplete" in have else []
        out[tuple(n.replace(";", ":")
                  for n in [have.get("comm", "[unknown]")] + marker + frames)] += s.value[value]
    return out


def with_go(path, home):
    """(the total of samples, {function: self}) as `go tool pprof -top` shows them, which changes
    names that it takes for mangled ones; None if go is not installed.
    """
    if not shutil.which("go"):
        return None
    r = subprocess.run([
        "go", "tool", "pprof", "-symbolize=local", "-top", "-nodefraction=0", "-nodecount=1000000",
        "-sample_index=samples", path
    ], capture_output=True, text=True, check=True, env={
        "HOME": home, "PATH": os.environ["PATH"], "PPROF_TMPDIR": home,
        # Go 1.25 and later build pprof when it is first used.
        "GOCACHE": os.environ.get("GOCACHE", os.path.expanduser("~/.cache/go-build"))
    })
    total = re.search(r" of (\d+) total", r.stdout)
    selfs = Counter()
    for line in r.stdout.splitlines():
        m = re.fullmatch(r" *(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+% +(.*?)( \(inline\))?", line)
        if m:
            selfs[m[2].rstrip()] += int(m[1])
    return int(total[1]) if total else sum(selfs.values()), selfs
