#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The fleet's store: the real ClickHouse engine takes what the agent sends, a repeated request
changes nothing, and the queries of docs/fleet.md, on a day of 20 simulated hosts, take less than a
second each and give the right answer. report and diff read the tables, and survive servers that
answer anything else.

The engine is npm's chdb, from $CHDB (a directory with node_modules) or build/chdb, where
scripts/deps.sh test puts it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter

from receivers import HttpReceiver, copies, harness
import agents

sys.path.insert(0, os.path.join(harness.TOP, "tests", "cli"))
import flame_page  # noqa: E402

HOSTS, WINDOWS, ROWS, STACKS = 20, 8640, 30, 5000
_engine = None


def chdb():
    place = os.environ.get("CHDB", os.path.join(harness.TOP, "build", "chdb"))
    if not shutil.which("node"):
        raise harness.Skip("no node")
    if not os.path.isdir(os.path.join(place, "node_modules", "chdb")):
        raise harness.Skip("the npm package chdb is not in %s (scripts/deps.sh test installs it)" %
                           place)
    return os.path.join(place, "node_modules")


class Engine:
    def __init__(self, password=""):
        env = dict(os.environ, NODE_PATH=chdb(), PASSWORD=password)
        self.headers = {"X-ClickHouse-Key": password}
        self.p = harness.start([
            "node",
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "clickhouse_http.js"),
            harness.tmpfile("clickhouse" + ("-locked" if password else ""))
        ], stdout=subprocess.PIPE, env=env)
        self.url = "http://127.0.0.1:%d" % int(self.p.stdout.readline())
        self.run(
            subprocess.run([harness.SFBPF, "agent", "--print-schema"], capture_output=True,
                           text=True, check=True).stdout)

    def post(self, path, body):
        req = urllib.request.Request(self.url + path, body, self.headers)
        try:
            with urllib.request.urlopen(req, timeout=120) as f:
                return f.read().decode()
        except urllib.error.HTTPError as e:
            raise ValueError(e.read().decode()[:400])

    def run(self, script):
        for statement in filter(str.strip, script.split(";\n")):
            out = self.post("/", statement.strip().rstrip(";").encode())
        return [json.loads(line) for line in out.splitlines()]

    def empty(self):
        for table in ("samples", "stacks", "files", "functions"):
            self.run("TRUNCATE TABLE sfbpf_" + table)

    def timed(self, sql):
        """Best of three: seconds by the clock or, if that is less because others use the
        processors, of CPU time; and the rows.
        """
        best = None
        for _ in range(3):
            start, cpu = time.monotonic(), harness.cpu_ticks(self.p.pid)
            rows = self.run(sql)
            took = min(time.monotonic() - start,
                       (harness.cpu_ticks(self.p.pid) - cpu) / os.sysconf("SC_CLK_TCK") or 1e9)
            best = took if best is None else min(best, took)
        return best, rows


def engine():
    global _engine
    if _engine is None:
        _engine = Engine()
        harness._children.remove(_engine.p)     # it serves all checks
    return _engine


def report(*argv, tool="report"):
    return subprocess.run([harness.SFBPF, tool, *argv], capture_output=True, text=True, timeout=120)


def stacks_of(*argv):
    """{folded stack: samples}, as report has them."""
    p = report("--format", "folded", *argv)
    if p.returncode:
        raise ValueError("report %s: %s" % (argv, p.stderr))
    lines = (line.rsplit(" ", 1) for line in p.stdout.splitlines())
    return Counter({stack: int(n) for stack, n in lines})


def check_ingest(name):
    e, errors = engine(), []
    e.empty()
    a = agents.Agent("--protocol", "clickhouse", "--endpoint", e.url, "--timeout", "10s", "--label",
                     "service.version=1.2", "--label", "team=x")
    a.argv += ["--timeout", "10s"]
    busy = agents.load()
    a.start().wait(lambda: a.has_account() and a.account().delivered >= 8, "eight bodies through")
    if a.stop():
        errors.append("exit status %d" % a.p.returncode)
    for p in busy:
        harness.stop(p)
    if a.spooled() or sum(a.account().dropped.values()):
        errors.append("left: %d, account %s" % (len(a.spooled()), a.account()))
    got = Counter()
    rows = e.run(
        "SELECT concat(s.comm, ';', arrayStringConcat(arrayMap(f -> replaceAll(f, ';', ':'), "
        "t.frames), ';')), sum(s.value) "
        "FROM sfbpf_samples s LEFT JOIN (SELECT * FROM sfbpf_stacks FINAL) t USING (stack_id) "
        "GROUP BY 1"
    )
    for line, n in rows:
        got[line[:-len(";[no stack]")] if line.endswith(";[no stack]") else line] += int(n)
    wrote = sum(copies(a.copy).values(), Counter())
    if got != wrote:
        errors.append("%d samples are there, %d were taken: %s" %
                      (sum(got.values()), sum(wrote.values()), list((wrote - got).items())[:2]))
    if e.run("SELECT DISTINCT host, version, labels['team'] FROM sfbpf_samples") != [[
            os.uname().nodename, "1.2", "x"
    ]]:
        errors.append("host and labels")
    if stacks_of(e.url) != stacks_of(a.copy):
        errors.append("report: %s" % list((stacks_of(e.url) - stacks_of(a.copy)).items())[:2])
    n, ids = e.run("SELECT count(), countIf(match(build_id, '^[0-9a-f]{40}$')) FROM sfbpf_files")[0]
    if not int(n) or n != ids:
        errors.append("%s files, %s build-ids" % (n, ids))
    harness.check(name, errors[:3])


def check_repeated(name):
    """The same request twice, as after a crash between the server's yes and the agent's note of it.
    """
    e = engine()
    r = HttpReceiver()
    a = agents.Agent("--protocol", "clickhouse", "--endpoint", r.url, copy=False)
    busy = agents.load()
    a.start().wait(lambda: sum("sfbpf_samples" in g.path for g in r.got) >= 1, "a request through")
    a.stop()
    for p in busy:
        harness.stop(p)
    g = next(g for g in r.got if "sfbpf_samples" in g.path)
    counts = []
    for _ in range(3):
        counts.append(int(e.run("SELECT count() FROM sfbpf_samples")[0][0]))
        e.post(g.path, g.message)
    r.stop()
    rows = g.message.count(b"\n")
    errors = [] if counts[1] == counts[2] == counts[0] + rows else [
        "%d rows sent again and again: %s" % (rows, counts)
    ]
    harness.check(name, errors)


def check_functions(name):
    """The view's sums are those of the samples, after the repeated requests, too. The frames of
    those are not there.
    """
    e = engine()
    want = e.run(
        "SELECT service, type, f, sum(value * period_ns * (f = known[-1])), "
        "sum(value * period_ns) FROM (SELECT *, if(empty(frames), ['[unknown]'], frames) AS known "
        "FROM sfbpf_samples s LEFT JOIN (SELECT stack_id, any(frames) AS frames FROM sfbpf_stacks "
        "GROUP BY stack_id) t USING (stack_id)) ARRAY JOIN arrayDistinct(known) AS f "
        "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
    got = e.run("SELECT service, type, function, sum(self_ns), sum(total_ns) FROM sfbpf_functions "
                "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
    errors = [str(pair) for pair in zip(got, want) if pair[0] != pair[1]]
    if len(got) != len(want) or len(got) < 10:
        errors.append("%d functions, want %d" % (len(got), len(want)))
    harness.check(name, errors[:3])


SIMULATE = """
INSERT INTO sfbpf_functions SELECT
    toDateTime(toDate(now()) - 1, 'UTC') - number % 10080 * 60,
    concat('svc', toString(intDiv(number, 10080) % 7)), '1.4', 'cpu',
    concat('f', toString(intDiv(number, 70560))), 1000000 * (1 + number % 9), 60000000
  FROM numbers(70560 * 50);
INSERT INTO sfbpf_stacks SELECT number,
    arrayConcat(['_start', 'main'],
                arrayMap(i -> concat('f', toString((number * (i + 3)) % 997)),
                         range(3 + number % 20))), now()
  FROM numbers({stacks});
INSERT INTO sfbpf_samples SELECT
    toDateTime64(toDate(now()) - 1, 3, 'UTC') + intDiv(number, {rows}) % {windows} * 10
        + number % 20 * 0.25,
    concat('host', toString(intDiv(number, {rows} * {windows}))),
    concat('svc', toString(number % 7)),
    if(intDiv(number, {rows} * {windows}) < 10, '1.4', '1.5'), '', 'worker', 'cpu',
    cityHash64(number) % {stacks}, 1 + number % 3, 52631579, map('team', 'blue')
  FROM numbers({hosts} * {windows} * {rows});
INSERT INTO sfbpf_samples SELECT
    toDateTime64(toDate(now()) - 1, 3, 'UTC') + intDiv(number, 3) % {windows} * 10,
    concat('host', toString(intDiv(number, 3 * {windows}))),
    concat('svc', toString(number % 7)), '1.4', '', 'worker', 'off_cpu',
    cityHash64(number) % {stacks}, 1000000000 + number % 1000, 1, map('team', 'blue', 'state', 'S')
  FROM numbers({hosts} * {windows} * 3);
INSERT INTO sfbpf_files SELECT lower(hex(SHA1(toString(number % 200)))),
    concat('/usr/bin/prog', toString(number % 200)),
    concat('host', toString(intDiv(number, 200))), now()
  FROM numbers({hosts} * 200) WHERE number % 200 != 77 OR intDiv(number, 200) % 5 = 0
"""


def queries():
    """{title: SQL} of docs/fleet.md."""
    with open(os.path.join(harness.TOP, "docs", "fleet.md")) as f:
        blocks = re.findall(r"```sql\n-- ([^\n]+)\n(.*?)```", f.read(), re.S)
    return {title.strip(): sql for title, sql in blocks}


def check_queries(name):
    e = engine()
    # Millions of random stacks are not its case.
    e.run("DROP VIEW IF EXISTS sfbpf_functions_view")
    e.empty()
    e.run(SIMULATE.format(hosts=HOSTS, windows=WINDOWS, rows=ROWS, stacks=STACKS))
    build = e.run("SELECT lower(hex(SHA1('77')))")[0][0]
    asked = queries()
    for title in ("top functions of the fleet", "diff of two versions",
                  "which hosts run a build-id"):
        if title not in asked:
            harness.fail(name, "docs/fleet.md has no query '%s'" % title)
            return
    total = int(e.run("SELECT count() FROM sfbpf_samples")[0][0])
    harness.note("%d rows of %d hosts" % (total, HOSTS))
    for title, sql in asked.items():
        sql = sql.replace("<BUILD-ID>", build).replace("now()", "toDateTime(toDate(now()), 'UTC')")
        took, rows = e.timed(sql)
        errors = []
        if took > 1:
            errors.append("%.2f s" % took)
        if not rows:
            errors.append("no rows")
        if title == "top functions of the fleet" and rows and [r[0] for r in rows[:3]
                                                               ] != ["[all]", "_start", "main"]:
            errors.append("first row %s" % rows[0])
        if title == "what each service costs" and rows and abs(
                sum(float(r[1])
                    for r in rows) - HOSTS * WINDOWS * ROWS * 2 * 0.052631579 / 86400) > 1:
            errors.append("%g CPUs" % sum(float(r[1]) for r in rows))
        if title == "which hosts run a build-id" and {r[0]
                                                      for r in rows
                                                      } != {"host0", "host5", "host10", "host15"}:
            errors.append("%s" % rows[:5])
        harness.check("%s: %s" % (name, title), errors)
        harness.note("%s: %.2f s, %d rows" % (title, took, len(rows)))


# Options of report, and what they mean in SQL.
CHOICES = (
    ((), "type = 'cpu'"),
    (("--service", "svc3"), "type = 'cpu' AND service = 'svc3'"),
    (("--host", "host2"), "type = 'cpu' AND host = 'host2'"),
    (("--label", "service.version=1.4", "--comm", "worker"), "type = 'cpu' AND version = '1.4'"),
    (("--label", "team=blue", "--service", "svc1"), "type = 'cpu' AND service = 'svc1'"),
    (("--label", "odd name=it's \\ a\t\n'%3"), "labels['odd name'] != ''"),
    (("--service", "' OR 1 = 1 --"), None),
    (("--since", "2000-01-01", "--until", "2000-01-02"), None),
    (("--comm", "nosuch"), None),
)


def check_read(name):
    """Sums of report against those of SQL, on the simulated day; memory; diff; a password."""
    e, errors = engine(), []
    e.run("INSERT INTO sfbpf_samples SELECT now(), 'h', 's', '1', '', 'worker', 'cpu', 5, 7, 1000, "
          "map('odd name', 'it\\'s \\\\ a\\t\\n\\'%3')")
    for argv, where in CHOICES:
        want = where and int(e.run("SELECT sum(value) FROM sfbpf_samples WHERE " + where)[0][0])
        p = report("--format", "folded", *argv, e.url)
        if not where:
            if p.returncode != 1 or "no samples match" not in p.stderr:
                errors.append("%s: %d, %s" % (argv, p.returncode, p.stderr[-200:]))
        elif p.returncode or sum(
                int(l.rsplit(" ", 1)[1]) for l in p.stdout.splitlines()) != want:
            errors.append("%s: want %d, %s" % (argv, want, p.stderr[-200:]))
    roots = {s.split(";")[0] for s in stacks_of("--by", "service", "--label", "team=blue", e.url)}
    if roots != {"svc%d" % n for n in range(7)}:
        errors.append("--by service: %s" % sorted(roots))
    off = report("--off-cpu", "-n", "3", e.url).stdout
    if "SELF TIME" not in off or "h" not in off:
        errors.append("--off-cpu: %s" % off[:100])
    d = report("--label", "service.version=1.5", "--against", "service.version=1.4", e.url,
               tool="diff")
    if d.returncode or not re.search(r" f\d+\n", d.stdout):
        errors.append("diff: %s" % d.stderr[-200:])
    harness.check(name, errors[:3])
    pages = [harness.tmpfile("ch." + suffix) for suffix in ("html", "pb.gz", "svg")]
    for page in pages:
        report("-o", page, e.url)
    harness.check(name + "-formats", [p for p in pages if not os.path.exists(p)])
    check_read_memory(name + "-memory", e)


def check_read_memory(name, e):
    out = subprocess.run([
        "python3", "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], "
        "stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", harness.SFBPF, "report",
        "--format", "folded", "--by", "host", e.url
    ], capture_output=True, text=True, check=True, timeout=120).stdout
    harness.note("report by host of %d stacks on %d hosts: %d MB" % (STACKS, HOSTS, int(out) >> 10))
    harness.check(name, [] if int(out) < 300 << 10 else ["%s kB" % out.strip()])


class Server:
    """sfbpf serve of a URL."""

    def __init__(self, *argv):
        self.p = harness.start([harness.SFBPF, "serve", "--listen", "127.0.0.1:0", *argv],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.p.stdout.readline().strip()

    def get(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=60) as r:
                return r.status, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()


def served_errors(e, s, where, query):
    """Sums of the page against those of SQL. where, query: the same choice for both."""
    day = int(e.run("SELECT toUnixTimestamp(toDateTime(toDate(now()) - 1, 'UTC'))")[0][0]) * 1000
    range_ = "since=%d&until=%d%s" % (day, day + 86400 * 1000, query)
    status, body = s.get("summary?" + range_)
    got = json.loads(body) if status == 200 else {"services": [], "hosts": [], "steps": []}
    rows = e.run("SELECT service, sum(value * period_ns) / 1e9 FROM sfbpf_samples WHERE ts < "
                 "toDate(now()) AND %s GROUP BY 1" % where)
    want = {name: float(seconds) for name, seconds in rows}
    found = {x["name"]: x["amount"] for x in got["services"]}
    errors = []
    if found.keys() != want.keys() or any(abs(found[k] - want[k]) > 1 for k in want):
        errors.append("summary%s: %d, %s, want %s" % (query, status, found, want))
    if abs(sum(got["steps"]) - sum(want.values())) > 1 or len(got["steps"]) != 120:
        errors.append("steps%s: %s" % (query, sum(got["steps"])))
    for service in ("", "svc3"):
        n = int(e.run("SELECT sum(value) FROM sfbpf_samples WHERE ts < toDate(now()) AND %s%s" %
                      (where, service and " AND service = 'svc3'"))[0][0])
        status, body = s.get("flame?" + range_ + (service and "&service=" + service))
        total = flame_page.total_of(body.decode())[0] if status == 200 else body[:100]
        n = n / 1000 if "off_cpu" in query else n       # microseconds, cut off for each stack
        if status != 200 or not .9999 * n <= total <= n:
            errors.append("flame%s %s: %d, %s, want %d" % (query, service, status, total, n))
    return errors


def check_serve(name):
    """serve of the simulated day: services, hosts, time line, flame graphs, downloads."""
    e, errors = engine(), []
    s = Server(e.url)
    errors += served_errors(e, s, "type = 'cpu'", "")
    errors += served_errors(e, s, "type = 'cpu' AND host = 'host2'", "&host=host2")
    errors += served_errors(e, s, "type = 'off_cpu'", "&off_cpu=1")
    noon = int(e.run("SELECT toUnixTimestamp(toDateTime(toDate(now()) - 1, 'UTC')) + 43200")[0][0])
    for page in ("summary", "flame"):
        begin = time.monotonic()
        s.get("%s?since=%d000&until=%d000" % (page, noon, noon + 3600))
        harness.note("%s of an hour of %d hosts: %.2f s" % (page, HOSTS, time.monotonic() - begin))
    for path, status in (("pprof?service=svc1&since=1", 200), ("flame?service=nosuch", 404),
                         ("flame?service=%27%20OR%201%3D1--", 404), ("flame?since=x", 400)):
        got = s.get(path)
        if got[0] != status:
            errors.append("%s: %d %s" % (path, got[0], got[1][:100]))
    harness.check(name, errors[:3])
    s.p.terminate()
    errors = [] if s.p.wait(30) == 0 else ["exit status %d" % s.p.returncode]
    gone = Server("http://127.0.0.1:1")     # nothing listens there
    status, body = gone.get("summary")
    if status != 500 or gone.p.poll() is not None:
        errors.append("no ClickHouse: %d %s" % (status, body[:100]))
    harness.stop(gone.p)
    harness.check(name + "-ends", errors)


def check_password(name):
    """From a file, and never in the URL."""
    e, header, errors = Engine(password="secret"), harness.tmpfile("headers"), []
    with open(header, "w") as f:
        f.write("X-ClickHouse-User: sfbpf\nX-ClickHouse-Key: secret\n")
    for argv, status, text in (
        ((e.url, ), 1, "Authentication failed"),
        (("--header-file", header, e.url), 1, "no samples"),
        (("--header-file", "/nosuch", e.url), 1, "cannot read"),
        (("--header-file", header, "/tmp"), 2, "need a URL"),
        ((e.url.replace("//", "//u:secret@"), ), 2, "belong in --header-file"),
        ((e.url + "/?user=u&password=secret", ), 2, "belong in --header-file")):
        p = report(*argv)
        if p.returncode != status or text not in p.stderr:
            errors.append("%s: %d, %s" % (argv, p.returncode, p.stderr[-200:]))
    harness.check(name, errors[:3])


TOTALS = b"3\t1\th\t52631579\t52631579\t1700000000000\n"


def hostile_answers():
    """(answer to the first request, to the second, what report says of it)"""
    row, text = b"\tcomm\t3\tmain\x1ff\n", "Code: 241. DB::Exception: Memory limit"
    yield TOTALS, row + text.encode(), "ends within a row"
    yield TOTALS, row + text.encode() + b"\n", text
    yield TOTALS, b"\tcomm\t-3\tmain\n", "no row"
    yield TOTALS, b"\tcomm\t3\tmain\t\n", "no row"
    yield TOTALS, b"\tcomm\t18446744073709551615\tf\n" * 2, "2^64"
    yield TOTALS, b"\tcomm\t3\t" + b"f\x1f" * 5000 + b"\n", "too long"
    yield TOTALS, b"\0" * (18 << 20), "too long"
    yield TOTALS, b"\x1b[2J\t\xff\xfe\n", "no row"
    yield b"\n", b"", "no row"
    yield b"3\t1\n" * 3, b"", "no row"
    yield b"", b"", "no samples"


def check_hostile(name):
    errors = []
    for n, (first, second, text) in enumerate(hostile_answers()):
        r = HttpReceiver()
        r.on_accept = lambda got, r=r, first=first, second=second: setattr(
            r, "reply", first if b"uniqExact" in got.message else second)
        p = report("--format", "folded", r.url)
        r.stop()
        if p.returncode != 1 or text not in p.stderr or "\x1b" in p.stderr:
            errors.append("answer %d: %d, %s" % (n, p.returncode, p.stderr[-200:]))
    harness.check(name, errors[:3])


def check_schema(name):
    """docs/fleet.md shows the tables that the agent prints."""
    schema = subprocess.run([harness.SFBPF, "agent", "--print-schema"], capture_output=True,
                            text=True, check=True).stdout
    with open(os.path.join(harness.TOP, "docs", "fleet.md")) as f:
        harness.check(name, [] if schema in f.read() else ["docs/fleet.md has another one"])


if __name__ == "__main__":
    try:
        harness.run_checks([
            check_schema, check_ingest, check_repeated, check_functions, check_queries, check_read,
            check_serve, check_password, check_hostile
        ])
    finally:
        if _engine:
            harness.stop(_engine.p)
