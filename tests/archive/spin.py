# SPDX-License-Identifier: BSD-2-Clause
"""main, outer, middle, leaf; for ever."""


def leaf():
    n = 0
    for i in range(10000):
        n = (n * 6364136223846793005 + i) & 0xffffffff
    return n


def middle():
    return leaf() + 1


def outer():
    return middle() + 1


while True:
    outer()
