# SPDX-License-Identifier: BSD-2-Clause
"""Timelines: the Firefox Profiler's processed format (version 60) and what its type definitions ask
for; Perfetto's packets.
"""

import gzip
import json
from collections import Counter

# Columns of each table: what an entry may be. An int N: an index below the length of that table,
# named by the text after it.
NUMBER, STRING, BOOL, NULL = (int, float), str, bool, type(None)
SHARED = {
    "sources": {"uuid": (STRING, NULL), "filename": "stringArray"},
    "stackTable": {"frame": "frameTable", "prefix": "stackTable?"},
    "frameTable": {
        "address": NUMBER, "inlineDepth": NUMBER, "category": "categories?", "subcategory": NUMBER,
        "func": "funcTable", "nativeSymbol": "nativeSymbols?", "innerWindowID": NUMBER,
        "line": NULL, "column": NULL
    },
    "funcTable": {
        "name": "stringArray", "isJS": BOOL, "relevantForJS": BOOL, "resource": "resourceTable-",
        "source": "sources?", "lineNumber": NULL, "columnNumber": NULL
    },
    "resourceTable": {
        "lib": "libs?", "name": "stringArray", "host": "stringArray?", "type": NUMBER
    },
    "nativeSymbols": {
        "libIndex": "libs", "address": NUMBER, "name": "stringArray", "functionSize": NUMBER
    },
}
THREAD = {
    "processType": STRING, "processStartupTime": NUMBER, "processShutdownTime": NULL,
    "registerTime": NUMBER, "unregisterTime": NULL, "pausedRanges": list, "name": STRING,
    "processName": STRING, "isMainThread": BOOL, "pid": STRING, "tid": (int, STRING),
    "samples": dict, "markers": dict
}
# src/types/profile.ts and markers.ts. Phase 0 is an instant, which has no end; 1 is an interval.
MARKERS = {
    "data": dict, "name": "stringArray", "startTime": NUMBER, "endTime": (int, float, NULL),
    "phase": int, "category": "categories"
}
SCHEMA = {
    "name": STRING, "tooltipLabel": STRING, "tableLabel": STRING, "chartLabel": STRING,
    "display": list, "fields": list, "description": STRING
}
DISPLAYS = ("marker-chart", "marker-table", "timeline-overview")
META = {
    "interval": NUMBER, "startTime": NUMBER, "processType": int, "categories": list,
    "product": STRING, "stackwalk": int, "version": int, "preprocessedProfileVersion": int,
    "markerSchema": list, "symbolicated": BOOL, "sampleUnits": dict
}
COLORS = ("transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown",
          "magenta", "red", "lightred", "darkgrey", "grey")
SUFFIX = {"Kernel": "_[k]", "JIT": "_[j]"}


def _is(value, kind):
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not BOOL)


def _column(where, table, key, kind, lengths):
    """What is wrong with a column."""
    values = table.get(key)
    if not isinstance(values, list) or len(values) != table["length"]:
        return ["%s.%s is no list of %s entries" % (where, key, table["length"])]
    if not isinstance(kind, str):
        bad = [v for v in values if not _is(v, kind)]
    else:
        n, may_be_null, may_be_none = lengths[kind.rstrip("?-")], kind.endswith("?"), kind.endswith(
            "-")
        bad = [
            v for v in values
            if not (_is(v, int) and
                    (-1 if may_be_none else 0) <= v < n or v is None and may_be_null)
        ]
    return ["%s.%s holds %r" % (where, key, bad[0])] if bad else []


def _samples(where, samples, nstacks):
    errors = _column(where, samples, "stack", "stackTable?", {"stackTable": nstacks}) + _column(
        where, samples, "time", NUMBER, {})
    if "threadCPUDelta" in samples:
        errors += _column(where, samples, "threadCPUDelta", NUMBER, {})
    times = samples.get("time", [])
    if samples.get("weightType") != "samples" or samples.get("weight", 0) is not None:
        errors.append("%s: weights" % where)
    if any(a > b for a, b in zip(times, times[1:])) or any(t < 0 for t in times):
        errors.append("%s: times do not ascend from 0" % where)
    return errors


def _markers(where, markers, lengths, schemas):
    errors = [e for key, kind in MARKERS.items()
              for e in _column(where + " markers", markers, key, kind, lengths)]
    fields = {s["name"]: {f["key"] for f in s["fields"]} for s in schemas}
    for s in schemas:
        errors += ["schema %s" % s for k, kind in SCHEMA.items() if not _is(s.get(k), kind)]
        if not set(s["display"]) <= set(DISPLAYS) or any(
                set(f) != {"key", "label", "format"} or f["format"] != "string"
                for f in s["fields"]):
            errors.append("schema %s" % s)
    for i in range(0 if errors else markers["length"]):
        start, end, data = markers["startTime"][i], markers["endTime"][i], dict(markers["data"][i])
        cause = data.pop("cause", {"time": start, "stack": 0})
        if markers["phase"][i] != (0 if end is None else 1) or end is not None and end < start or \
                start < 0 or i and start < markers["startTime"][i - 1]:
            errors.append("%s: phase %d, %s to %s" % (where, markers["phase"][i], start, end))
        if data.pop("type") not in fields or not set(data) <= fields[markers["data"][i]["type"]]:
            errors.append("%s: no schema has %s" % (where, markers["data"][i]))
        if cause["time"] != start or not 0 <= cause["stack"] < lengths["stackTable"]:
            errors.append("%s: cause %s" % (where, cause))
    return errors


def firefox_problems(p):
    """What in a profile breaks the format's type definitions (src/types/profile.ts of version 60).
    """
    errors = [
        "meta.%s is %r" % (k, p["meta"].get(k)) for k, kind in META.items()
        if not _is(p["meta"].get(k), kind)
    ]
    if p["meta"]["preprocessedProfileVersion"] != 60:
        errors.append("version")
    shared = p["shared"]
    lengths = {
        "stringArray": len(shared["stringArray"]), "libs": len(p["libs"]),
        "categories": len(p["meta"]["categories"])
    }
    lengths.update({name: shared[name]["length"] for name in SHARED})
    for name, columns in SHARED.items():
        for key, kind in columns.items():
            errors += _column(name, shared[name], key, kind, lengths)
    if any(prefix is not None and prefix >= i
           for i, prefix in enumerate(shared["stackTable"]["prefix"])):
        errors.append("a stack comes before its prefix")
    if not all(isinstance(s, str) for s in shared["stringArray"]):
        errors.append("a string is none")
    for c in p["meta"]["categories"]:
        if c["color"] not in COLORS or c["subcategories"] != ["Other"]:
            errors.append("category %s" % c)
    if not any(c["color"] == "grey" for c in p["meta"]["categories"]):
        errors.append("no grey category")
    for t in p["threads"]:
        where = "thread %s" % t.get("tid")
        errors += [
            "%s: %s is %r" % (where, k, t.get(k)) for k, kind in THREAD.items()
            if not _is(t.get(k), kind)
        ]
        errors += _samples(where, t["samples"], lengths["stackTable"])
        errors += _markers(where, t["markers"], lengths, p["meta"]["markerSchema"])
    return errors


def firefox_marks(p):
    """[(thread's name, tid, marker's name, start, end or None, data, (root, ..., leaf))], in ms.
    """
    names, stacks, out = p["shared"]["stringArray"], _stacks(p), []
    for t in p["threads"]:
        m = t["markers"]
        for i in range(m["length"]):
            cause = m["data"][i].get("cause")
            out.append((t["name"], t["tid"], names[m["name"][i]], m["startTime"][i],
                        m["endTime"][i], m["data"][i], stacks[cause["stack"]] if cause else ()))
    return out


def firefox(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def firefox_stacks(p, cpus=False):
    """{(comm, root, ..., leaf): samples} of all threads; with cpus, of the CPUs, without comm,
    process first.
    """
    stacks, out = _stacks(p), Counter()
    for t in p["threads"]:
        if (t["pid"] == "CPUs") == cpus:
            for i in t["samples"]["stack"]:
                out[(() if cpus else (t["name"],)) + (stacks[i] if i is not None else ())] += 1
    return out


def _stacks(p):
    """Of each entry of the table of stacks: (root, ..., leaf)."""
    s = p["shared"]
    names = [s["stringArray"][i] for i in s["funcTable"]["name"]]
    categories = [c["name"] for c in p["meta"]["categories"]]
    frames = [
        names[f] + SUFFIX.get(categories[c], "")
        for f, c in zip(s["frameTable"]["func"], s["frameTable"]["category"])
    ]
    stacks = []
    for frame, prefix in zip(s["stackTable"]["frame"], s["stackTable"]["prefix"]):
        stacks.append((stacks[prefix] if prefix is not None else ()) + (frames[frame],))
    return stacks


# ---- Perfetto ----

# Field numbers: name=number, of a message :Message, * repeated, "b" bytes. Others are numbers.
PERFETTO = {
    "Trace": "packet=1:Packet*",
    "Packet": "process_tree=2:Tree clock_snapshot=6:Snapshot timestamp=8 sequence_id=10 "
              "track_event=11:Event interned=12:Interned sequence_flags=13 defaults=59:Defaults "
              "track_descriptor=60:Track sample=66:Sample first_on_sequence=87",
    "Track": "uuid=1 thread=4:TrackThread",
    "TrackThread": "pid=1 tid=2 thread_name=5:b",
    "Event": "annotations=4:Annotation* type=9 track_uuid=11 categories=22:b* name=23:b "
             "flow_ids=47* terminating_flow_ids=48* callstack_iid=56",
    "Annotation": "string=6:b name=10:b",
    "Defaults": "perf=12:PerfDefaults",
    "PerfDefaults": "timebase=1:Timebase",
    "Timebase": "frequency=2 name=10:b clock=11",
    "Snapshot": "clocks=1:Clock* primary=2",
    "Clock": "id=1 timestamp=2",
    "Tree": "processes=1:Process* threads=2:Thread*",
    "Process": "pid=1 cmdline=3:b",
    "Thread": "tid=1 name=2:b tgid=3",
    "Interned": "function_names=5:String* frames=6:Frame* callstacks=7:Callstack* "
                "build_ids=16:String* mapping_paths=17:String* mappings=19:Mapping*",
    "String": "iid=1 str=2:b",
    "Mapping": "iid=1 build_id=2 load_bias=6 path_string_ids=7*",
    "Frame": "iid=1 function_name_id=2 mapping_id=3 rel_pc=4 kind=7",
    "Callstack": "iid=1 frame_ids=2*",
    "Sample": "cpu=1 pid=2 tid=3 callstack_iid=4 cpu_mode=5 unwind_error=16 records_lost=17",
}
KIND_SUFFIX = {2: "_[k]", 4: "_[j]"}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _message(kind, data):
    """A message as a dict. A field that is not in PERFETTO is a ValueError."""
    fields, out, at = {}, {}, 0
    for text in PERFETTO[kind].split():
        name, rest = text.split("=")
        number, _, what = rest.rstrip("*").partition(":")
        fields[int(number)] = name, what, rest.endswith("*")
        if rest.endswith("*"):
            out[name] = []
    while at < len(data):
        key, at = _varint(data, at)
        if key >> 3 not in fields or (key & 7) not in (0, 1, 2):
            raise ValueError("%s has a field %d of type %d" % (kind, key >> 3, key & 7))
        name, what, many = fields[key >> 3]
        if key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            value, at = _varint(data, at)
        if key & 7 == 2:
            if at + value > len(data) or not what:
                raise ValueError("%s.%s" % (kind, name))
            value, at = data[at:at + value], at + value
            if what != "b":
                value = _message(what, value)
        if many:
            out[name].append(value)
        else:
            out[name] = value
    return out


def perfetto(path):
    with open(path, "rb") as f:
        return _message("Trace", f.read())["packet"]


def perfetto_samples(packets, events=None):
    """[(time, cpu, pid, tid, (root, ..., leaf), mapping paths, mode)]; what an importer would
    refuse is a ValueError. events: gets (time, event, (root, ..., leaf)) of track events.
    """
    tables, out = {
        key: {}
        for key in ("function_names", "frames", "callstacks", "build_ids", "mapping_paths",
                    "mappings")
    }, []
    first = packets[0]
    clocks = {c["id"]: c["timestamp"] for c in first["clock_snapshot"]["clocks"]}
    if first["sequence_flags"] != 1 or not first.get("first_on_sequence") or set(clocks) != {
            1, 3, 6
    }:
        raise ValueError("the first packet: %s" % first)
    for p in packets:
        if p.get("sequence_id") != 1 or p is not first and p["sequence_flags"] != 2:
            raise ValueError("sequence of %s" % p)
        for key, entries in p.get("interned", {}).items():
            for e in entries:
                if e["iid"] in tables[key] or not e["iid"]:
                    raise ValueError("%s %d twice" % (key, e["iid"]))
                tables[key][e["iid"]] = e
        event = p.get("track_event")
        if not event and ("sample" not in p or "records_lost" in p["sample"]):
            continue
        s, frames, paths = p.get("sample"), [], []
        iid = event.get("callstack_iid") if event else s["callstack_iid"]
        for i in tables["callstacks"][iid]["frame_ids"] if iid else []:
            f = tables["frames"][i]
            m = tables["mappings"][f["mapping_id"]]
            if "build_id" in m:
                tables["build_ids"][m["build_id"]]
            paths.append(b"".join(b"/" + tables["mapping_paths"][k]["str"]
                                  for k in m["path_string_ids"]).decode())
            frames.append(tables["function_names"][f["function_name_id"]]["str"].decode() +
                          KIND_SUFFIX.get(f.get("kind"), ""))
        if event:
            if events is not None:
                events.append((p["timestamp"], event, tuple(frames)))
            continue
        if not frames:
            raise ValueError("an empty callstack")
        out.append(
            (p["timestamp"], s.get("cpu",
                                   0), s["pid"], s["tid"], tuple(frames), paths, s["cpu_mode"]))
    return out


def perfetto_slices(packets):
    """[(pid, tid, name, start, end, woken by, (root, ..., leaf))] in ns; instants have no end.
    Slices that would be drawn wrongly, or flows without two ends, are a ValueError.
    """
    tracks = {p["track_descriptor"]["uuid"]: p["track_descriptor"]["thread"]
              for p in packets if "track_descriptor" in p}
    events, out, open_slices, flows, last = [], [], {}, {}, 0
    perfetto_samples(packets, events)
    for time, e, frames in events:
        thread, kind = tracks[e["track_uuid"]], e["type"]
        if time < last or (kind == 2) != (e["track_uuid"] in open_slices) and kind != 3:
            raise ValueError("%d: %s" % (time, e))
        last = time
        for i in e["flow_ids"]:
            flows[i] = time
        for i in e["terminating_flow_ids"]:
            if flows.pop(i, None) != time:
                raise ValueError("flow %d begins nowhere" % i)
        if kind == 2:
            at = open_slices.pop(e["track_uuid"])
            out[at] = out[at][:4] + (time,) + out[at][5:]
            continue
        if kind == 1:
            open_slices[e["track_uuid"]] = len(out)
        who = [a["string"].decode() for a in e["annotations"] if a["name"] == b"woken by"]
        out.append((thread["pid"], thread["tid"], e["name"].decode(), time, None,
                    who[0] if who else None, frames))
    if open_slices or flows:
        raise ValueError("%d slices do not end, %d flows" % (len(open_slices), len(flows)))
    return out


def perfetto_stacks(packets):
    """{(comm, root, ..., leaf): samples}"""
    names = {
        t["tid"]: t["name"].decode()
        for p in packets for t in p.get("process_tree", {}).get("threads", [])
    }
    out = Counter()
    for _, _, _, tid, frames, _, _ in perfetto_samples(packets):
        out[(names[tid],) + tuple(f for f in frames if f != "[no stack]")] += 1
    return out
