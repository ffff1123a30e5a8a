# SPDX-License-Identifier: BSD-2-Clause
"""Reads what a flame graph page holds (userspace/out/out_html.c says how it is written)."""

import json
import re

ALPHABET = {
    c: i
    for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
}


def total(path):
    """The sum of all values of a file, and their unit."""
    with open(path, encoding="utf-8") as f:
        return total_of(f.read())


def total_of(page):
    """The same of the text of a page."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    numbers, value, shift = [], 0, 0
    for c in data["tree"]:
        d = ALPHABET[c]
        value |= (d & 31) << shift
        shift += 5
        if not d & 32:
            numbers.append(value)
            value = shift = 0
    it, found = iter(numbers), 0
    for _up in it:
        for _ in range(next(it)):
            next(it)
        for _ in range(next(it)):
            next(it)
            found += next(it)
    return found, data["meta"]["unit"]
