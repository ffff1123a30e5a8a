#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What sfbpf costs, beside what one would use otherwise, in one run.

bench.py [--quick] [--tolerance=TIMES] [--write-reference] [SECTION...]

Prints tables, writes OUTPUT/bench.json, and compares the ratios with reference.json: one that is
more than 25 % worse is measured again, twice at most, and then fails the run. All ratios are "lower
is better". CI's form is --quick.
"""

import json
import os
import platform
import sys
import time

import rig
from rig import Settings, table

import harness as h
import peers
import publish
import selfcost
import tables
import unwinding

REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.json")
TOLERANCE = 1.25
AGAIN = 2

# name: function(settings, out, ratios). Only ratios whose name begins with the section's prefix
# belong to it.
SECTIONS = {
    "steady": unwinding.steady,
    "cold": unwinding.cold,
    "off-cpu": unwinding.off_cpu,
    "peers": peers.peers,
    "tables": tables.tables,
    "publish": publish.publish,
    "self": selfcost.selfcost,
}

FULL_ONLY = ("publish",) # it has no ratios to watch


# What was asked for when this began; figures of one machine, so they inform and do not fail.
GOALS = {"unwind.compile_to_cold_fp": 1.74}


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((text.split(":", 1)[1].strip() for text in f if text.startswith("model name")),
                     "?")
    load = "%.1f %.1f %.1f" % os.getloadavg()
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "load": load}


def run_section(name, settings, out, ratios):
    """The ratios that the section found; None: it cannot run here."""
    found = {}
    began = time.monotonic()
    try:
        SECTIONS[name](settings, out, found)
    except h.Skip as e:
        h.skip(name, str(e))
        return None
    finally:
        h.stop_all()
    print("# %s: %.0f s" % (name, time.monotonic() - began), flush=True)
    ratios.update(found)
    return found


def worse(found, reference, tolerance):
    return sorted(k for k, v in found.items() if k in reference and v > reference[k] * tolerance)


def measure(names, settings, reference, tolerance, out):
    """All sections; one with a bad ratio again. The best of its measurements counts: noise only
    ever adds.
    """
    ratios, failed = {}, []
    for name in names:
        found = run_section(name, settings, out, ratios) or {}
        bad = worse(found, reference, tolerance)
        for _ in range(AGAIN):
            if not bad:
                break
            h.note("%s again: %s" % (name, ", ".join("%s %.3f, reference %.3f" %
                                                     (k, found[k], reference[k]) for k in bad)))
            more = run_section(name, settings, {}, {}) or {}
            for k in found:
                found[k] = min(found[k], more.get(k, found[k]))
            bad = worse(found, reference, tolerance)
        ratios.update(found)
        failed += bad
    return ratios, failed


def show(ratios, reference):
    rows = []
    for k, v in ratios.items():
        ref = reference.get(k)
        rows.append([
            k,
            "%.3f" % v,
            "%.3f" % ref if ref else "-",
            "%+.0f %%" % (100 * v / ref - 100) if ref else "",
            "%.2f" % GOALS[k] if k in GOALS else ""
        ])
    table("Ratios (lower is better)", ["", "here", "reference", "", "goal"], rows)


def write_reference(where, ratios):
    """The worse of this run and the reference that is there, so that it holds on an unlucky day.
    Delete it to begin anew.
    """
    known = {}
    if os.path.exists(REFERENCE):
        with open(REFERENCE) as f:
            known = json.load(f)["ratios"]
    known.update({k: max(v, known.get(k, v)) for k, v in ratios.items()})
    with open(REFERENCE, "w") as f:
        json.dump({"machine": where, "ratios": known}, f, indent=1)
        f.write("\n")


def main():
    args = sys.argv[1:]
    settings = Settings("--quick" in args)
    tolerance = float(
        next((a.partition("=")[2] for a in args if a.startswith("--tolerance=")), TOLERANCE))
    names = [a for a in args if not a.startswith("--")
             ] or [n for n in SECTIONS if not (settings.quick and n in FULL_ONLY)]
    unknown = [n for n in names if n not in SECTIONS]
    if unknown:
        sys.exit("bench: no section %s; known: %s" % (", ".join(unknown), " ".join(SECTIONS)))
    if os.geteuid():
        sys.exit("bench: needs root")
    # Otherwise this waits behind its own targets, which are real-time programs; what it starts is
    # ordinary.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(3))
    reference = {}
    if os.path.exists(REFERENCE) and "--write-reference" not in args:
        with open(REFERENCE) as f:
            reference = json.load(f)["ratios"]
    out = {"machine": machine(), "quick": settings.quick}
    print("# %(cpu)s, %(cpus)d CPUs, Linux %(kernel)s, load %(load)s" % out["machine"], flush=True)
    began = time.monotonic()
    ratios, failed = measure(names, settings, reference, tolerance, out)
    out["ratios"], out["seconds"] = ratios, round(time.monotonic() - began)
    show(ratios, reference)
    with open(os.path.join(h.OUTPUT, "bench.json"), "w") as f:
        json.dump(out, f, indent=1)
    if "--write-reference" in args:
        write_reference({k: v for k, v in out["machine"].items() if k != "load"}, ratios)
    print("# %d s" % out["seconds"])
    for k in failed:
        h.fail("bench-" + k,
               "%.3f, more than %.2f times %.3f" % (ratios[k], tolerance, reference[k]))
    if not failed:
        h.ok("bench")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
