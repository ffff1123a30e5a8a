<?php
// SPDX-License-Identifier: BSD-2-Clause
// Works for 100 ms of CPU time.

function used(): float
{
    $r = getrusage();
    return $r["ru_utime.tv_sec"] + $r["ru_utime.tv_usec"] / 1e6;
}

function work(float $end): int
{
    $x = 0;
    while (used() < $end)
        for ($i = 0; $i < 20000; $i++)
            $x += $i * $i % 7;
    return $x;
}

function middle(float $end): int
{
    return work($end);
}

middle(used() + 0.1);
