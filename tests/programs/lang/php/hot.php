<?php
// SPDX-License-Identifier: BSD-2-Clause
// hot.php SECONDS: short functions that call each other all the time, which is what a JIT compiles.
// Which of them calls which is in check_php.py (HOT).

function fib(int $n): int
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function compare(int $a, int $b): int
{
    return $a <=> $b;
}

function numbers(int $n)
{
    for ($i = 0; $i < $n; $i++)
        yield mix($i);
}

function mix(int $x): int
{
    for ($i = 0; $i < 10; $i++)
        $x = ($x * 1103515245 + 12345) & 0x7fffffff;
    return $x;
}

class Node
{
    private $value;

    public function __construct(int $value)
    {
        $this->value = $value;
    }

    public function get(): int
    {
        return self::twice($this->value);
    }

    public static function twice(int $x): int
    {
        return mix($x) * 2;
    }

    public function __call(string $name, array $args)
    {
        return $name;
    }

    public static function __callStatic(string $name, array $args)
    {
        return $name;
    }
}

function hot(): int
{
    $list = [];
    $sum = fib(18);
    foreach (numbers(3000) as $x)
        $list[] = $x;
    usort($list, 'compare');
    $list = array_map(function ($x) {
        return (new Node($x))->get();
    }, $list);
    foreach ($list as $x)
        $sum += $x & 1;
    $node = new Node(1);
    for ($i = 0; $i < 3000; $i++)
        $sum += $node->nothing($i) === Node::nowhere($i);
    return $sum;
}

$end = microtime(true) + (float)$argv[1];
echo "CHAIN {main} (hot.php)\n";
do {
    hot();
} while (microtime(true) < $end);
