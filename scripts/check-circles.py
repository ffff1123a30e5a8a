#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Circles: objects of one directory that use each other's symbols, directly or not.

check-circles.py [OBJECTS-DIR]: a circle has at most three files, all of one directory, as more can
only be understood together.
"""

import os
import subprocess
import sys

MOST = 3


def symbols(path):
    """The global symbols that an object defines, and those that it uses."""
    defined, used = set(), set()
    out = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        word = line.split()
        (used if word[-2] in ("U", "w") else defined).add(word[-1])
    return defined, used


def components(edges):
    """Tarjan's strongly connected components, without recursion."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            at, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(edges[to])))
                    break
                if to in on:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    part = []
                    while not part or part[-1] != at:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    found.append(part)
    return [c for c in found if len(c) > 1]


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "build/userspace"
    objects = [os.path.join(d, f) for d, _, files in os.walk(top) for f in files
               if f.endswith(".o")]
    # Those of files that are gone stay in the directory.
    objects = [o for o in objects
               if os.path.exists(os.path.join("userspace", os.path.relpath(o, top)[:-2] + ".c"))]
    seen = {o: symbols(o) for o in objects}
    owner = {name: o for o, (defined, _) in seen.items() for name in defined}
    edges = {o: {owner[u] for u in used if owner.get(u, o) != o} for o, (_, used) in seen.items()}
    bad = []
    for circle in components(edges):
        names = sorted(os.path.relpath(o, top)[:-2] for o in circle)
        if len(names) > MOST or len({os.path.dirname(n) for n in names}) > 1:
            bad.append(" ".join(names))
    if not objects:
        print("SKIP style-circles: no objects in " + top)
    elif bad:
        print("FAIL style-circles: " + "; ".join(bad))
    else:
        print("ok style-circles")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
