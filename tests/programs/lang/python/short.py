# SPDX-License-Identifier: BSD-2-Clause
"""A process of a tenth of a second."""

import time


def work(end):
    x = 0
    while time.time() < end:
        for i in range(500):
            x += i
    return x


def middle(end):
    return work(end)


def main():
    return middle(time.time() + 0.08)


main()
