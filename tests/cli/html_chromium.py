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


def check_diff(b, name):
    old = write("old.folded", "a;main;same 50\na;main;less 30\na;main;gone;deep 20\n")
    new = write("new.folded", "a;main;same 100\na;main;less 20\na;main;more 80\n")
    b.open(make("diff.html", "diff", old, new))
    errors = list(b.errors)
    rows = {
        r["id"]: (round(r["b"], 6), round(r["a"], 6))
        for r in b.eval(
            "functions.map(f => ({ id: fullName(f.id), b: per(f.self1, 1), a: per(f.self, 0) }))")
    }
    want = {
        "same": (.5, .5), "less": (.3, .1), "more": (0, .4), "deep": (.2, 0), "gone": (0, 0),
        "main": (0, 0)
    }
    if rows != want:
        errors.append("table: %s" % rows)
    hues = {
        n: b.eval("colour([...Array(V.n).keys()].find(i => label(V.id[i]) === '%s'))" % n)
        for n in ("same", "less", "more")
    }
    if not (hues["more"].startswith("hsl(6 ") and hues["less"].startswith("hsl(214 ") and
            hues["same"].startswith("#")):
        errors.append("colours: %s" % hues)
    b.key("w")
    if not box(b, "gone"):
        errors.append("what is gone is not to be seen among the widths before")
    shot(b, "diff")
    report(name, errors + b.errors)


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
    if min(times) >= 2000:
        errors.append("opens in %s ms" % times)
    for what in ("search('visit_1')", "zoomTo(V.child[V.first[0]])", "search('')",
                 "$('callers').click()"):
        ms = b.eval("(() => { const t = performance.now(); %s; return performance.now() - t; })()" %
                    what)
        print("# %s: %.0f ms" % (what, ms), flush=True)
    shot(b, "large")
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
    check_address, check_diff,
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
