# SPDX-License-Identifier: BSD-2-Clause
"""What only a guest can stand: a CPU that really goes offline and comes back, and a machine that
really sleeps, under the agent and a recording.
"""

import re

import harness as h

HZ = 49
PHASE_S = 8
SLEEP_S = 6
NAMES = ("both", "one", "again", "slept")

METRICS = "wget -q -O - http://127.0.0.1:9419/metrics"


def mark(name, which):
    return [
        "echo '@@ agent %s %s' $(cut -d' ' -f1 /proc/uptime) $(date +%%s)" % (name, which),
        METRICS +
        " | grep -E '^sfbpf_agent_(cpus|samples_total|windows_total|windows_failed_total|"
        "samples_lost_total[^ ]*) '"
    ]


def phase(name):
    """A moment for the agent to see what has changed, then its counts at both ends of the phase."""
    return ["sleep 3"] + mark(name, "from") + ["sleep %d" % PHASE_S] + mark(name, "to")


def lines():
    cpu1 = "/sys/devices/system/cpu/cpu1/online"
    # What is opened later must not want CAP_SYS_ADMIN, which is gone by then.
    found = [
        "echo 2 >/proc/sys/kernel/perf_event_paranoid", "ifconfig lo 127.0.0.1 up",
        "for i in 1 2 3; do busybox sh -c 'while :; do :; done' & done",
        "/full/sfbpf agent -F %d --interval 2s --cpu-limit 1000 --protocol file --endpoint "
        "/tmp/w --metrics-address 127.0.0.1:9419 2>/tmp/agent.log &"
        % HZ, "agent=$!",
        "until %s >/dev/null 2>&1 || ! kill -0 $agent; do sleep 1; done" % METRICS,
        "sfbpf record -C 1 -F %d -o /tmp/c1 %d 2>/tmp/c1.log & record=$!" % (HZ, 600),
        "until grep -q link_type:.perf /proc/$record/fdinfo/* || ! kill -0 $record; do sleep 1;"
        " done"
    ]
    found += phase("both") + ["echo 0 >%s" % cpu1] + phase("one") + ["echo 1 >%s" % cpu1]
    # The recording's CPU is back: its events have to be new ones.
    found += phase("again") + [
        "kill -INT $record; wait $record",
        "echo '@@ agent record' $? $(awk '{ n += $NF } END { print n + 0 }' /tmp/c1)",
        "cat /tmp/c1.log"
    ]
    found += [
        "echo '@@ agent states' $(cat /sys/power/state)",
        "echo +%d >/sys/class/rtc/rtc0/wakealarm" % SLEEP_S,
        "echo mem >/sys/power/state && echo '@@ agent woke'"
    ]
    found += phase("slept") + [
        "kill -TERM $agent; wait $agent", "echo '@@ agent exit' $?", "cat /tmp/agent.log",
        "echo '@@ agent end'", "kill -9 $(jobs -p) 2>/dev/null"
    ]
    return found


def phases(text):
    """{phase: (seconds, {metric: value} at its start, at its end)}"""
    found = {}
    for name in NAMES:
        ends = re.findall(r"^@@ agent %s (?:from|to) ([\d.]+) \d+\n((?:sfbpf_agent_.*\n)*)" % name,
                          text, re.M)
        if len(ends) == 2:
            values = [{
                k: float(v)
                for k, v in re.findall(r"^sfbpf_agent_(\S+) (\S+)$", body, re.M)
            } for _, body in ends]
            found[name] = (float(ends[1][0]) - float(ends[0][0]), values[0], values[1])
    return found


def good(name, cpus, found, rates):
    """An emulated machine may be slow: against what one CPU gave."""
    return (name in found and found[name][2].get("cpus") == cpus and
            (cpus == 1 or rates[name] > 1.4 * rates.get("one", HZ)) and
            rates[name] < 1.25 * cpus * HZ)


def judge(prefix, text):
    section = re.search(r"^@@ agent both from.*^@@ agent end$", text, re.S | re.M)
    if not section:
        h.fail(prefix + "hotplug", "no account of it: " + repr(text[-600:]))
        return
    text, errors = section.group(0), []
    found = phases(text)
    rates = {
        k: (to.get("samples_total", 0) - first.get("samples_total", 0)) / seconds
        for k, (seconds, first, to) in found.items()
    }
    h.note(prefix + "hotplug: samples a second %s, CPUs %s" %
           (", ".join("%s %.0f" % r for r in rates.items()), ", ".join("%.0f" % v[2].get("cpus", 0)
                                                                       for v in found.values())))
    for name, cpus in (("both", 2), ("one", 1), ("again", 2)):
        if not good(name, cpus, found, rates):
            errors.append("%s: %s" % (name, found.get(name)))
    record = re.search(r"^@@ agent record (\d+) (\d+)$", text, re.M)
    # CPU 1 was there for two phases and the waits before them.
    if not record or record.group(1) != "0" or not 1.5 * HZ * PHASE_S < int(record.group(2)):
        errors.append("record -C 1: %s" % (record and record.groups(),))
    if not re.search(r"^@@ agent exit 0$", text, re.M):
        errors.append("the agent's end: " + text[-300:])
    h.check(prefix + "hotplug", errors)
    if "@@ agent woke" not in text:
        h.skip(
            prefix + "suspend",
            "this guest cannot sleep: " + "".join(re.findall(r"^@@ agent states.*$", text, re.M)))
    else:
        h.check(prefix + "suspend",
                [] if good("slept", 2, found, rates) else ["after it: %s" % (found.get("slept"), )])
