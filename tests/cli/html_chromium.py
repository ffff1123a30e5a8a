#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph's page in a real browser: what it draws, counts and refuses. SHOTS=DIR keeps
screenshots.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import chromium  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SFBPF = os.environ.get("SFBPF", os.path.join(TOP, os.environ.get("OUTPUT", "build"), "sfbpf"))
SHOTS = os.environ.get("SHOTS")
EVIL = [
    "<script>document.title='pwned'</script>",
    "</script><img src=x onerror=\"document.title='pwned'\">", "<!--<script>", "a\u2028b",
    "quote\"s'\\back", "&lt;b&gt;", "javascript:alert(1)", "\u202egnp.exe", "${1}`", "__proto__",
    "constructor"
]

tmp = tempfile.mkdtemp(prefix="sfbpf-html-")
failed = 0


def report(name, errors):
    global failed
    failed += bool(errors)
    print("FAIL %s: %s" % (name, "; ".join(errors)) if errors else "ok %s" % name, flush=True)


def write(name, text):
    path = os.path.join(tmp, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def make(out, *args):
    path = os.path.join(tmp, out)
    subprocess.run([SFBPF, *args, "-o", path], check=True)
    return path


def sample_stacks():
    """(frames with the comm first, count) of a small server-like profile."""
    rng = random.Random(3)
    stacks = Counter()
    for comm, root in (("worker", "_start;__libc_start_main;main;serve"),
                       ("gc", "clone3;start_thread;collect"), ("kworker/0:1", "")):
        for _ in range(300):
            s = [comm] + [f for f in root.split(";") if f]
            for depth in range(rng.randrange(1, 12)):
                s.append("%s_%d" % (rng.choice(
                    ("parse", "handle", "alloc", "Json::read<int>")), rng.randrange(depth + 2)))
            if rng.random() < .4:
                s += ["do_syscall_64_[k]", "vfs_read_[k]", "copy_to_user_[k]"][:rng.randrange(1, 4)]
            elif rng.random() < .2:
                s += ["jitted_%d_[j]" % rng.randrange(3), "inl_[i]"]
            stacks[tuple(s)] += rng.randrange(1, 9)
    return stacks


def folded(stacks):
    return "".join("%s %d\n" % (";".join(s), n) for s, n in stacks.items())


def total(b):
    return b.eval("V.total[0][0]")


def shot(b, name):
    if SHOTS:
        b.screenshot(os.path.join(SHOTS, name + ".png"))


def box(b, name):
    """Middle of the widest box of that name, in the window, and its value."""
    return b.eval("""(() => {
        let best = null;
        rows.forEach((r, d) => r.node.forEach((n, k) => {
            if (n >= 0 && label(V.id[n]) === %s && (!best || r.w[k] > best.w))
                best = { w: r.w[k], n, x: r.x[k] + r.w[k] / 2, y: rowTop(d) + 9 };
        }));
        if (!best) return null;
        const at = $('space').getBoundingClientRect();
        return [best.x + at.left, best.y + at.top, V.total[0][best.n]];
    })()""" % repr(name))


def check_page(b, name):
    stacks = sample_stacks()
    b.open(make("small.html", "report", write("small.folded", folded(stacks))))
    errors = list(b.errors)
    want = sum(stacks.values())
    if total(b) != want:
        errors.append("total %s, want %d" % (total(b), want))
    others = [u for u in b.requests if not u.startswith("file:///tmp/sfbpf-html-")]
    if others or len(b.requests) != 1:
        errors.append("requests: %s" % b.requests)
    shot(b, "light")
    report(name, errors)


def check_search(b, name):
    stacks = sample_stacks()
    b.open(os.path.join(tmp, "small.html"))
    errors = []
    for pattern, flags in (("parse_[12]$", re.I), ("vfs_read", re.I), ("Json", 0),
                           ("nothing", re.I), ("_\\[k\\]$", re.I)):
        want = sum(n for s, n in stacks.items() if any(re.search(pattern, f, flags) for f in s[1:]))
        b.eval("search(%s)" % repr(pattern))
        got = float(b.eval("$('matched').dataset.value"))
        if got != want:
            errors.append("%s: %s, want %d" % (pattern, got, want))
    b.eval("search('(')")
    if not b.eval("$('search').classList.contains('bad')"):
        errors.append("a damaged pattern is not marked")
    b.eval("search('')")
    b.call("Input.dispatchKeyEvent", type="keyDown", key="f", modifiers=2)
    if b.eval("document.activeElement.id") != "search":
        errors.append("Ctrl-F does not go to the search")
    b.key("Escape")
    b.key("/")
    for c in "parse":
        b.key(c)
    b.call("Runtime.evaluate", expression="new Promise(r => setTimeout(r, 400))", awaitPromise=True)
    if " matched" not in b.eval("$('matched').textContent"):
        errors.append("typing does not search")
    shot(b, "search")
    report(name, errors + b.errors)


def check_zoom(b, name):
    stacks = sample_stacks()
    b.open(os.path.join(tmp, "small.html"))
    errors = []
    x, y, value = box(b, "serve")
    want = sum(n for s, n in stacks.items() if "serve" in s)
    if value != want:
        errors.append("serve has %s, want %d" % (value, want))
    b.mouse("mouseMoved", x, y)
    if "serve" not in b.eval("$('tip').textContent") or str(want) not in b.eval(
            "$('tip').textContent").replace("\u2009", ""):
        errors.append("tooltip: %s" % b.eval("$('tip').textContent"))
    shot(b, "tooltip")
    b.click(x, y)
    if b.eval("label(V.id[state.zoom])") != "serve" or b.eval(
            "rows[rows.findIndex(r => r.node[0] === state.zoom)].w[0]") != b.eval("width"):
        errors.append("a click does not zoom")
    serve = {s: n for s, n in stacks.items() if "serve" in s}
    rows = {
        r["id"]: r
        for r in b.eval(
            "functions.map(f => ({ id: fullName(f.id), self: f.self, total: f.total }))")
    }
    for fn in ("handle_1", "vfs_read_[k]"):
        self_want = sum(n for s, n in serve.items() if s[-1] == fn)
        total_want = sum(n for s, n in serve.items() if fn in s)
        if (rows[fn]["self"], rows[fn]["total"]) != (self_want, total_want):
            errors.append("table: %s %s, want %d %d" % (fn, rows[fn], self_want, total_want))
    shot(b, "zoomed")
    b.key("Escape")
    if b.eval("state.zoom") != 0:
        errors.append("Escape does not zoom out")
    b.key("ArrowUp")
    b.key("ArrowUp")
    b.key("Enter")
    if b.eval("state.zoom") == 0:
        errors.append("the keyboard does not zoom")
    report(name, errors + b.errors)


def check_views(b, name):
    stacks = sample_stacks()
    b.open(os.path.join(tmp, "small.html"))
    errors = []
    leaves = Counter()
    for s, n in stacks.items():
        if len(s) > 1:
            leaves[re.sub(r"_\[[kij]\]$", "", s[-1])] += n
    for flip in (False, True):
        b.eval("$('group').value = 'all'; $('group').dispatchEvent(new Event('change'))")
        b.key("c")
        for leaf, want in leaves.most_common(3):
            got = b.eval(
                "(() => { let s = 0; for (let i = 1; i < V.n; i++) if (V.parent[i] === 0 && "
                "label(V.id[i]) === %s) s += V.total[0][i]; return s; })()"
                % repr(leaf))
            if got != want:
                errors.append("callers of %s: %s, want %d" % (leaf, got, want))
        b.key("c")
        b.key("i")
        if b.eval("state.flip") == flip:
            errors.append("i does not turn it over")
        shot(b, "icicle")
    if b.eval("V.n") != b.eval("NN"):
        errors.append("all together is not the trie")
    if total(b) != sum(stacks.values()):
        errors.append("total after switching: %s" % total(b))
    b.key("s")
    names = b.eval("Array.from(children(0)).map(i => label(V.id[i]))")
    if names != sorted(names):
        errors.append("not sorted by name: %s" % names)
    report(name, errors + b.errors)


def check_evil(b, name):
    lines = "".join("%s;%s;%s %d\n" %
                    (EVIL[(i + 1) % len(EVIL)].replace(" ", "_").replace(";", ":"),
                     e.replace(";", ":"), "leaf", i + 1) for i, e in enumerate(EVIL))
    b.open(make("evil.html", "report", write("evil.folded", lines)))
    errors = list(b.errors)
    if total(b) != sum(range(1, len(EVIL) + 1)):
        errors.append("total %s" % total(b))
    for e in EVIL[:3] + EVIL[5:7]:
        shown = e.replace(";", ":")
        at = box(b, shown)
        if not at:
            errors.append("no box called %s" % shown)
            continue
        b.mouse("mouseMoved", at[0], at[1])
        if b.eval("$('tip').querySelector('b').textContent") != shown:
            errors.append("tooltip: %s" % b.eval("$('tip').textContent"))
    b.eval("search('script')")
    shot(b, "evil")
    if b.eval("document.title").startswith("pwned") or b.eval(
            "document.querySelectorAll('img, iframe, body script:not([nonce]):not(#data)').length"):
        errors.append("a name became part of the page")
    if len(b.requests) != 1:
        errors.append("requests: %s" % b.requests)
    if b.eval(
            "(() => { const s = document.createElement('script'); s.textContent = "
            "\"document.title = 'pwned'\"; document.body.append(s); return document.title; })()"
    ) == "pwned":
        errors.append("the page's policy lets foreign scripts run")
    report(name, errors)


def check_idle(b, name):
    """Idle time is left out until it is asked for; a page of nothing else shows it."""
    errors = []
    stacks = {"a;main;[running]": 7, "a;main;read;[blocked: pipe]": 5, "a;main;[idle: epoll]": 80,
              "b;loop;[idle: work queue]": 90}
    text = "".join("%s %d\n" % s for s in stacks.items())
    b.open(make("idle.html", "report", write("idle.folded", text)))
    shares = []
    for _ in range(3):
        shares.append((total(b), b.eval("!!functions.find(f => label(f.id) === 'loop')")))
        b.key("e")
    if shares != [(12, False), (182, True), (12, False)]:
        errors.append("without, with, without: %s" % shares)
    b.open(make("idle-only.html", "report", write("idle-only.folded", "b;[idle: poll] 3\n")))
    if total(b) != 3 or not b.eval("document.getElementById('idle').hidden"):
        errors.append("a page of idle time only: %s" % total(b))
    report(name, errors + b.errors)


def check_sandwich(b, name):
    """The stacks through a function, each once: callees of its outermost call, and callers."""
    errors = []
    stacks = {"a;main;f;g": 3, "a;main;h;f;f;g": 5, "b;run;f": 7, "b;run;other": 90}
    text = "".join("%s %d\n" % s for s in stacks.items())
    b.open(make("sandwich.html", "report", write("sandwich.folded", text)))
    b.eval("state.cursor = [...V.id.keys()].find(v => label(V.id[v]) === 'h'); sandwich(); "
           "state.cursor = [...V.id.keys()].find(v => label(V.id[v]) === 'f'); "
           "zoomTo(state.cursor)")
    below = "Object.fromEntries([...children(%d)].map(v => [label(V.id[v]), V.total[0][v]]))"
    for node, want in ((1, {"f": 5, "g": 3}), (2, {"main": 3, "h": 5, "run": 7})):
        found = b.eval(below % node)
        if found != want:
            errors.append("node %d: %s" % (node, found))
    if b.eval("[V.total[0][1], V.total[0][2]]") != [15, 15]:
        errors.append("totals %s" % b.eval("[V.total[0][1], V.total[0][2]]"))
    if not box(b, "run") or not box(b, "g"):
        errors.append("callers and callees are not both drawn")
    b.key("Escape")
    if total(b) != 105:
        errors.append("Esc does not leave it")
    report(name, errors + b.errors)


def check_address(b, name):
    """The address restores zoom, search, choices and sandwich; a wrong one does no harm."""
    errors = []
    stacks = sample_stacks()
    path = make("address.html", "report", write("address.folded", folded(stacks)))
    b.open(path)
    b.key("m")
    b.key("i")
    b.eval("zoomTo(children(children(children(0)[0])[0])[0]); search('parse')")
    look = "[state.search, pathOf(state.zoom).join(), state.colour, state.flip, state.focus]"
    want, address = b.eval(look), b.eval("location.hash")
    b.eval("focusOn(3)")
    focus = b.eval("location.hash")
    b.open(path + address)
    if b.eval(look) != want:
        errors.append("%s became %s" % (want, b.eval(look)))
    b.open(path + focus)
    if b.eval("state.focus") != 3:
        errors.append("the sandwich is not restored")
    for wrong in ("#zoom=nosuch&sort=x&layout=%22%3E%3Cimg%20src=x%3E&colour=__proto__",
                  "#focus=%ff&search=(", "#" + "a" * 3000):
        b.open(path + wrong)
        if total(b) != sum(stacks.values()) or b.eval("state.sort + state.layout") != "valueboth":
            errors.append("%s: %s" % (wrong[:60], b.eval(look)))
    report(name, errors + b.errors)


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def digits(v):
    return (DIGITS[v & 31 | 32] + digits(v >> 5)) if v >= 32 else DIGITS[v]


def with_times(b, path, slices, width, times_of):
    """Adds times to a page made without: times_of(leaf's name, value) gives {slice: count}."""
    b.open(path)
    cells = []
    for leaf, value in b.eval("Array.from(leafNode, (n, l) => [S[fname[frame[n]]], "
                              "leafValue[0][l]])"):
        last = 0
        for at, n in sorted(times_of(leaf, value).items()):
            cells.append(digits(at - last) + (digits(n) if value > 1 else ""))
            last, value = at, value - n
        assert value == 0, leaf
    with open(path) as f:
        text = f.read()
    assert text.count('"times":null') == 1
    with open(path, "w") as f:
        f.write(text.replace('"times":null', '"times":{"slices":%d,"width":%g,"cells":"%s"}' %
                             (slices, width, "".join(cells))))


def drag(b, start, end):
    """Over the strip, from one share of it to another."""
    left, top, width = b.eval("(r => [r.left, r.top, r.width])"
                              "($('stripcanvas').getBoundingClientRect())")
    xs = [left + share * width for share in (start, (start + end) / 2, end)]
    b.mouse("mouseMoved", xs[0], top + 20)
    b.mouse("mousePressed", xs[0], top + 20)
    for x in xs[1:]:
        b.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=top + 20, button="left",
               buttons=1)
    b.mouse("mouseReleased", xs[2], top + 20)


TABLE = "Object.fromEntries(functions.map(f => [label(f.id), f.total]))"


def check_strip(b, name):
    """A range of time in the graph, the table, the sandwich and the address."""
    b.open(make("notimes.html", "report", write("strip.folded",
                                                "a;main;A 30\na;main;B 10\nb;once 1\n")))
    errors = [] if b.eval("strip.hidden") else ["a strip without times"]
    path = make("strip.html", "report", os.path.join(tmp, "strip.folded"))
    times = {"A": {0: 10, 3: 15, 4: 5}, "B": {5: 2, 9: 8}, "once": {9: 1}}
    with_times(b, path, 10, .5, lambda leaf, value: times[leaf])
    b.open(path)
    if b.eval("strip.hidden") or b.eval("[...sliceSum]") != [10, 0, 0, 15, 5, 2, 0, 0, 0, 9]:
        errors.append("slices %s" % b.eval("[...sliceSum]"))
    drag(b, .01, .44)
    first = b.eval(TABLE)
    if first != {"A": 30, "main": 30} or box(b, "B") or total(b) != 30:
        errors.append("first half: %s" % first)
    address = b.eval("location.hash")
    b.eval("focusOn([...Array(NF).keys()].find(f => label(f) === 'main'))")
    if b.eval("V.total[0][1]") != 30:
        errors.append("sandwich: %s" % b.eval("V.total[0][1]"))
    b.eval("$('scroll').focus()")
    b.key("Escape")
    if b.eval("[state.focus, state.to]") != [-1, 5]:
        errors.append("Escape on the graph: %s" % b.eval("[state.focus, state.to]"))
    drag(b, .99, .52)                     # to the left
    if b.eval(TABLE) != {"B": 10, "main": 10, "once": 1}:
        errors.append("second half: %s" % b.eval(TABLE))
    b.eval("zoomTo(children(children(0)[0])[0])")
    drag(b, .51, .55)
    if (b.eval("pathOf(state.zoom).pop()"), total(b)) != ("main", 2):
        errors.append("the zoom does not stay: %s" % b.eval("pathOf(state.zoom)"))
    b.click(*b.eval("(r => [r.left + 30, r.top + 20])($('stripcanvas').getBoundingClientRect())"))
    if total(b) != 41 or b.eval("state.to"):
        errors.append("a click does not show everything")
    b.eval("strip.focus()")
    found = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "Escape", "ArrowLeft"):
        b.key(key)
        found.append(b.eval("[state.from, state.to]"))
    if found != [[0, 1], [1, 2], [0, 1], [0, 1], [0, 0], [9, 10]] or total(b) != 9:
        errors.append("keys: %s, %s" % (found, total(b)))
    b.open(path + address)
    if b.eval(TABLE) != first:
        errors.append("%s became %s" % (address, b.eval(TABLE)))
    b.key("Escape")
    if total(b) != 41 or b.eval("location.hash"):
        errors.append("Escape does not show everything")
    for wrong in ("-1-2", "3-2", "NaN-9", "1e999-1e999", "0-1e9", "x", "1", "-", "0x1-%00",
                  "9" * 999):
        b.open(path + "#time=" + wrong)
        if total(b) != 41:
            errors.append("#time=%s: %s" % (wrong[:40], total(b)))
    report(name, errors + b.errors)


PHASES = """import time
def first_half(end):
    while time.monotonic() < end:
        sum(range(100))
def second_half(end):
    while time.monotonic() < end:
        sum(range(100))
t = time.monotonic()
first_half(t + 1.5)
second_half(t + 3)
"""


def check_strip_live(b, name):
    """A program that does one thing in the first half of its time, and another in the second."""
    program = write("phases.py", PHASES)
    path = os.path.join(tmp, "phases.html")
    run = subprocess.run([SFBPF, "record", "-q", "-o", path, "--", "/usr/bin/python3", program],
                         stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        print("SKIP %s: %s" % (name, run.stderr.strip().split("\n")[-1]), flush=True)
        return
    b.open(path)
    errors, halves = [], ("first_half (phases.py)", "second_half (phases.py)")
    for start, end, one, other in ((.02, .46, *halves), (.98, .6, *reversed(halves))):
        drag(b, start, end)
        table = b.eval(TABLE)
        if table.get(one, 0) < 5 or other in table or not box(b, one) or box(b, other):
            errors.append("%g to %g: %s" % (start, end, {h: table.get(h) for h in halves}))
    shot(b, "strip")
    b.key("Escape")
    if b.eval("sliceSum.reduce((a, b) => a + b)") != total(b):
        errors.append("slices and stacks differ")
    for width, dark in ((390, False), (390, True), (1200, True)):
        d = chromium.Browser(width=width, height=700, dark=dark)
        d.open(path)
        drag(d, .1, .4)
        if d.eval("document.documentElement.scrollWidth") > width:
            errors.append("wider than %d" % width)
        left, top, wide = d.eval("(r => [r.left, r.top + 20, r.width])"
                                 "($('stripcanvas').getBoundingClientRect())")
        d.call("Emulation.setTouchEmulationEnabled", enabled=True)
        for kind, share in (("touchStart", .7), ("touchMove", .8), ("touchMove", .95),
                            ("touchEnd", None)):
            d.call("Input.dispatchTouchEvent", type=kind,
                   touchPoints=[] if share is None else [{"x": left + share * wide, "y": top}])
        if halves[0] in d.eval(TABLE) or halves[1] not in d.eval(TABLE):
            errors.append("touch at %d pixels: %s" % (width, d.eval("rangeText()")))
        shot(d, "strip-%d-%s" % (width, "dark" if dark else "light"))
        errors += d.errors
        d.close()
    report(name, errors + b.errors)


def check_diff(b, name):
    old = write("old.folded", "a;main;same 500\na;main;less 300\na;main;gone;deep 200\n")
    new = write("new.folded", "a;main;same 505\na;main;less 100\na;main;more 800\n")
    b.open(make("diff.html", "diff", old, new))
    errors = list(b.errors)
    rows = {
        r["id"]: (round(r["b"], 6), round(r["a"], 6))
        for r in b.eval(
            "functions.map(f => ({ id: fullName(f.id), b: per(f.self1, 1), a: per(f.self, 0) }))")
    }
    want = {
        "same": (.5, .505), "less": (.3, .1), "more": (0, .8), "deep": (.2, 0), "gone": (0, 0),
        "main": (0, 0)
    }
    if rows != want:
        errors.append("table: %s" % rows)
    hues = {
        n: b.eval("colour([...Array(V.n).keys()].find(i => label(V.id[i]) === '%s'))" % n)
        for n in ("same", "less", "more")
    }
    if not (hues["more"].startswith("hsl(6 ") and hues["less"].startswith("hsl(214 ") and
            hues["same"] == b.eval("diffColour(0)")):
        errors.append("colours: %s" % hues)
    b.key("w")
    if not box(b, "gone"):
        errors.append("what is gone is not to be seen among the widths before")
    shot(b, "diff")
    report(name, errors + b.errors)


# Opening 100,000 stacks may take 2 s or, on a slow machine, 5 times as long as sorting numbers.
SORT = """(() => {
    const a = new Float64Array(3e6);
    let x = 1;
    for (let i = 0; i < a.length; i++)
        a[i] = x = x * 48271 % 2147483647;
    const t = performance.now();
    a.sort();
    return performance.now() - t;
})()"""


def check_large(b, name):
    """100,000 distinct stacks of a realistic shape: few ways near the root, many at the leaves."""
    rng = random.Random(1)
    names = [
        "%s::%s_%d" % (rng.choice(
            ("net", "db::storage", "std::collections::hash_map", "v8::internal")),
                       rng.choice(("read", "visit", "emit")), i) for i in range(20000)
    ]
    stacks, h0 = {}, {
        c: i * 977
        for i, c in enumerate(("postgres", "nginx", "python3", "java", "node", "cc1plus"))
    }
    while len(stacks) < 100000:
        comm = rng.choice(list(h0))
        s, h = [comm, "_start", "__libc_start_main", "main"], h0[comm]
        for _ in range(rng.randrange(8, 45)):
            h = (h * 31 + (0 if rng.random() < .8 else rng.randrange(6))) % len(names)
            s.append(names[h])
        stacks[tuple(s)] = rng.randrange(1, 4)
    path = make("large.html", "report", write("large.folded", folded(stacks)))
    size = os.path.getsize(path)
    times = [b.open(path) for _ in range(3)]
    errors = list(b.errors)
    if total(b) != sum(stacks.values()):
        errors.append("total %s" % total(b))
    print(
        "# %d stacks, %d nodes: %.1f MB, open in %s ms" %
        (len(stacks), b.eval("NN"), size / 1e6, ", ".join("%.0f" % t for t in times)), flush=True)
    if size >= 10e6:
        errors.append("%d bytes" % size)
    sort = min(b.eval(SORT) for _ in range(3))
    limit = max(2000, 5 * sort)
    print("# numbers sorted in %.0f ms, limit %.0f ms" % (sort, limit), flush=True)
    if min(times) >= limit:
        errors.append("opens in %s ms, the limit is %.0f" % (times, limit))
    for what in ("search('visit_1')", "zoomTo(V.child[V.first[0]])", "search('')",
                 "$('callers').click()"):
        ms = b.eval("(() => { const t = performance.now(); %s; return performance.now() - t; })()" %
                    what)
        print("# %s: %.0f ms" % (what, ms), flush=True)
    shot(b, "large")
    with_times(b, path, 120, .1, lambda leaf, value: Counter(
        rng.randrange(120) for _ in range(value)))
    grown = os.path.getsize(path) / size - 1
    opened = min(b.open(path) for _ in range(3))
    ms = b.eval("(() => { const t = performance.now(); setRange(20, 70); "
                "return performance.now() - t; })()")
    print("# with times: %.0f %% larger, open in %.0f ms, a range in %.0f ms" %
          (100 * grown, opened, ms), flush=True)
    if grown > .3 or opened >= limit:
        errors.append("with times: %.2f larger, open in %.0f ms" % (grown, opened))
    report(name, errors + b.errors)


def check_dark_and_print(b, name):
    errors = []
    d = chromium.Browser(dark=True)
    try:
        d.open(os.path.join(tmp, "small.html"))
        if d.eval("getComputedStyle(document.body).backgroundColor") != "rgb(23, 24, 27)":
            errors.append("dark mode: %s" %
                          d.eval("getComputedStyle(document.body).backgroundColor"))
        shot(d, "dark")
        d.open(os.path.join(tmp, "diff.html"))
        shot(d, "diff-dark")
        d.open(os.path.join(tmp, "small.html"))
        pdf = os.path.join(SHOTS or tmp, "print.pdf")
        d.pdf(pdf)
        if os.path.getsize(pdf) < 20000:
            errors.append("the printed page is empty")
        errors += d.errors
    finally:
        d.close()
    report(name, errors)


CHECKS = [
    check_page, check_search, check_zoom, check_views, check_evil, check_idle, check_sandwich,
    check_address, check_strip, check_strip_live, check_diff,
    check_large, check_dark_and_print
]


def main():
    if not chromium.binary():
        print("SKIP html: chromium is not installed")
        return
    if not os.access(SFBPF, os.X_OK):
        print("SKIP html: %s is not built" % SFBPF)
        return
    try:
        b = chromium.Browser()
    except (OSError, EOFError, TimeoutError) as e:
        print("SKIP html: chromium does not start here: %s" % e)
        return
    try:
        for fn in CHECKS:
            name = "html-" + fn.__name__.replace("check_", "").replace("_", "-")
            try:
                fn(b, name)
            except (OSError, ValueError, TypeError, EOFError, subprocess.SubprocessError) as e:
                report(name, ["%s: %s" % (type(e).__name__, e)])
    finally:
        b.close()
        subprocess.run(["rm", "-rf", tmp], check=False)
    sys.exit(1 if failed else 0)


main()
