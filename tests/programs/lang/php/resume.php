<?php
// SPDX-License-Identifier: BSD-2-Clause
// resume.php SECONDS: generators that do nothing but yield. PHP's own time around them is most of
// it. Which function calls which is in check_php.py (RESUME).

function counted(int $n)
{
    for ($i = 0; $i < $n; $i++)
        yield $i;
}

function delegated(int $n)
{
    yield from counted($n);
    yield $n;
}

function mapped(iterable $values)
{
    foreach ($values as $x)
        yield $x + 1;
}

function total()
{
    $sum = 0;
    while (true)
        $sum += yield $sum;
}

function consume(): int
{
    $sum = 0;
    foreach (counted(3000) as $x)
        $sum += $x;
    foreach (mapped(delegated(3000)) as $x)
        $sum += $x;
    $total = total();
    for ($i = 0; $i < 3000; $i++)
        $total->send($i);
    return $sum + $total->current();
}

$end = microtime(true) + (float)$argv[1];
echo "CHAIN {main} (resume.php)\n";
do {
    consume();
} while (microtime(true) < $end);
