#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernel accepts the BPF programs of the clangs that are installed, and its verifier does not
work much harder for one than for another.

check_compilers.py [CLANG...]: "all" are each clang-NN of PATH and `clang` itself; without names the
oldest of them, the newest and the one in the middle, as each takes half a minute. UPDATE=1 writes
compilers.json anew: instructions and states of the verifier, by kernel and compiler.
"""

import json
import os
import re
import subprocess
import sys

import harness as h

REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compilers.json")
# Half of what the verifier allows: another kernel goes through up to 1.3 times as many, and
# another compiler's next release as well.
MOST = 500000
# With the programs of all languages, and with those of no language that does not run here.
TOOLS = {
    "filters": ["record", "-p", "1", "-u", "root", "--comm", "x*", "-C", "0", "-o", "/dev/null"],
    "threads": ["offcpu", "-t", "1", "-u", "root", "--comm", "x*", "-C", "0", "-o", "/dev/null"],
    "record": ["record", "--all-languages", "-o", "/dev/null"],
    "wall": ["record", "--all-languages", "--wall", "--lines", "-o", "/dev/null"],
    "offcpu": ["offcpu", "--all-languages", "-o", "/dev/null"],
    "wakers": ["offcpu", "--all-languages", "--wakers", "--native", "-o", "/dev/null"],
    "events": ["record", "--all-languages", "--lines", "-e", "sched:sched_switch", "--filter",
               "prev_pid > 0", "-e", "uprobe:/proc/self/exe:main", "-e", "cs", "-C", "0", "-o",
               "/dev/null"],
    "slow": ["slow", "--all-languages", "-o", "/dev/null", "uprobe:/proc/self/exe:main"],
    "locks": ["offcpu", "--all-languages", "--locks", "--format", "json", "-o", "/dev/null"],
    "command": ["record", "-o", "/dev/null"],
}
TIME = {"command": ["--", "true"]}
# Programs whose counts are of that tool. The tool's other programs are larger than elsewhere.
OWN = {"slow": ["on_call"], "locks": ["off_contended", "off_uncontended"]}


def installed():
    found = {}
    for folder in os.environ.get("PATH", "").split(":"):
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if re.fullmatch(r"clang(-\d+)?", name):
                version = major(os.path.join(folder, name))
                if version:
                    found.setdefault(version, name)
    return [found[v] for v in sorted(found)]


def major(clang):
    said = subprocess.run([clang, "-dumpversion"], capture_output=True, text=True, check=False)
    return int(said.stdout.split(".")[0]) if said.returncode == 0 else 0


def built(clang):
    """The program with this compiler's BPF objects, all else as in the build folder."""
    out = os.path.join(h.OUTPUT, "clang-%d" % major(clang))
    subprocess.run(["make", "-s", "-j%d" % os.cpu_count(), "CLANG=" + clang,
                    "OUTPUT=" + h.OUTPUT, "BPF_OUTPUT=" + out, out + "/sfbpf"],
                   cwd=h.TOP, check=True, capture_output=True, text=True)
    return out + "/sfbpf"


def run(sfbpf, name, argv, programs, errors):
    stats = h.tmpfile("compilers.json")
    p = subprocess.run([sfbpf] + argv + ["--stats", stats] + TIME.get(name, ["1"]),
                       capture_output=True, text=True, check=False)
    if p.returncode:
        errors.append("%s: %s" % (name, p.stderr.strip()[-300:]))
        return
    with open(stats) as f:
        for program, v in json.load(f)["bpf"].items():
            now = [v["verified_insns"], v["verifier_states"]]
            if program not in OWN.get(name, [program]):
                if now[0] > MOST:
                    errors.append("%s: %s has %d instructions" % (name, program, now[0]))
                continue
            programs[program] = max(programs.get(program, now), now)


def more(programs, known):
    errors = ["%s: not loaded" % program for program in sorted(set(known) - set(programs))]
    for program, now in sorted(programs.items()):
        if now[0] > MOST:
            errors.append("%s: the verifier goes through %d instructions" % (program, now[0]))
        for what, was, value in zip(("instructions", "states"), known.get(program, now), now):
            if value > 1.1 * was + 10:
                errors.append("%s: %d %s, %d before" % (program, value, what, was))
    return errors


def check_compiler(clang, reference):
    programs, errors = {}, []
    try:
        sfbpf = built(clang)
    except subprocess.CalledProcessError as e:
        h.fail("compiler-%d" % major(clang), "it does not build: " + e.stderr.strip()[-300:])
        return
    for name, argv in TOOLS.items():
        run(sfbpf, name, argv, programs, errors)
    rules = h.tmpfile("rules.ini")
    with open(rules, "w") as f:
        f.write("[exclude]\ncomm = nothing-*\n")
    agent = ["agent", "--once", "--interval", "1s", "--protocol", "file",
             "--endpoint", h.tmpdir(), "--spool", h.tmpdir()]
    for argv in (["top", "-b", "-n", "1", "-d", "1"], agent, agent + ["--config", rules]):
        p = subprocess.run([sfbpf] + argv, capture_output=True, text=True, check=False)
        if p.returncode:
            errors.append("%s: %s" % (argv[0], p.stderr.strip()[-300:]))
    release = ".".join(os.uname().release.split(".")[:2])
    key = "%s %s clang-%d" % (os.uname().machine, release, major(clang))
    if os.environ.get("UPDATE"):
        reference[key] = programs
    else:
        errors += more(programs, reference.get(key, {}))
    h.note("%s: %s%s" % (key, ", ".join("%s %d" % (p, programs[p][0]) for p in sorted(programs)
                                        if programs[p][0] > 5000),
                         "" if key in reference else "; no reference"))
    h.check("compiler-%d" % major(clang), errors)


def main():
    with open(REFERENCE) as f:
        reference = json.load(f)
    clangs = sys.argv[1:]
    if clangs in ([], ["all"]):
        found = installed()
        few = sorted({0, len(found) // 2, len(found) - 1}) if found and not clangs else []
        clangs = [found[i] for i in few] or found
    if not clangs:
        h.skip("compilers", "no clang")
    for clang in clangs:
        check_compiler(clang, reference)
    if os.environ.get("UPDATE"):
        with open(REFERENCE, "w") as f:
            f.write("{\n" + ",\n".join(
                '"%s": {%s}' % (k, ", ".join('"%s": %s' % (p, json.dumps(reference[k][p]))
                                             for p in sorted(reference[k])))
                for k in sorted(reference)) + "\n}\n")
    sys.exit(h.exit_status())


main()
