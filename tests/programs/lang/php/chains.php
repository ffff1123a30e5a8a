<?php
// SPDX-License-Identifier: BSD-2-Clause
// chains.php CASE SECONDS: makes one shape of stack, prints its functions ("CHAIN a;b;..."), and
// stays in it.

$chain = [];
$seconds = (float)($argv[2] ?? 60);

// All functions have entered their names. Returns when the leaf is to end.
function ready(): float
{
    global $chain, $seconds;
    echo "CHAIN ", implode(";", $chain), "\n";
    return microtime(true) + $seconds;
}

function spin(): void
{
    enter("spin");
    $end = ready();
    do {
        $x = 1;
        for ($i = 0; $i < 2000000; $i++)
            $x = ($x * 1103515245 + 12345) & 0x7fffffff;
    } while (microtime(true) < $end);
}

function enter(string $name, string $file = "chains.php"): void
{
    global $chain;
    $chain[] = "$name ($file)";
}

function recurse(int $n): int
{
    enter("recurse");
    if ($n <= 1)
        spin();
    else
        return recurse($n - 1) + 1;
    return 0;
}

// The same, but what a JIT compiles does nothing else.
function deep(int $n): int
{
    if ($n <= 1) {
        spin();
        return 0;
    }
    return deep($n - 1) + 1;
}

class Base
{
    public function method(): void
    {
        enter("Base::method");
        static::helper($this);
    }

    public static function helper(Base $b): void
    {
        enter("Base::helper");
        $b->last();
    }

    private function last(): void
    {
        enter("Base::last");
        spin();
    }

    public function __call(string $name, array $args)
    {
        enter("Base::__call");
        spin();
    }

    public static function __callStatic(string $name, array $args)
    {
        enter("Base::__callStatic");
        (new Base())->nothing();
    }
}

class Derived extends Base
{
    public function method(): void
    {
        enter("Derived::method");
        parent::method();
    }

    public function closures(): void
    {
        enter("Derived::closures");
        $inner = function () {
            enter("Derived::{closure}");
            spin();
        };
        $outer = static fn() => [enter("Derived::{closure}"), $inner()];
        $outer();
    }
}

class Ends
{
    public function __destruct()
    {
        enter("Ends::__destruct");
        spin();
    }
}

function numbers()
{
    enter("numbers");
    spin();
    yield 1;
}

function doubled(iterable $from)
{
    enter("doubled");
    foreach ($from as $x)
        yield 2 * $x;
}

function delegate()
{
    enter("delegate");
    yield from numbers();
}

// Each level waits in a `yield from` for the one below.
function tree(int $n)
{
    enter("tree");
    if ($n == 0)
        spin();
    else
        yield from tree($n - 1);
    yield $n;
}

class Slow extends ArrayIterator
{
    #[ReturnTypeWillChange]
    public function next()
    {
        enter("Slow::next");
        spin();
    }
}

// On a stack of its own, which begins where PHP's assembler made it.
function in_fiber()
{
    enter("in_fiber");
    Fiber::suspend();
    spin();
}

function resume()
{
    enter("resume");
    $fiber = new Fiber('in_fiber');
    $fiber->start();
    $fiber->resume();
}

// Asks another iterator for values before its own code goes on.
function values()
{
    enter("values");
    yield from new Slow([1, 2]);
}

// Assignments call what the JIT's functions share, and that calls the destructor.
class Chained
{
    public $next;

    public function __destruct()
    {
        if ($this->next)
            $this->next = null;
        else
            spin();
    }
}

// Called by instructions of a method, not by calls.
class Getter
{
    public function method(): void
    {
        enter("Getter::method");
        $this->missing;
    }

    public function __get(string $name)
    {
        enter("Getter::__get");
        spin();
    }
}

function thrower(): void
{
    enter("thrower");
    try {
        throw new RuntimeException("x");
    } catch (RuntimeException $e) {
        spin();
    } finally {
        enter("never");
    }
}

function loop_native(string $name): void
{
    enter("loop_native");
    $end = ready();
    $text = str_repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 3000);
    do {
        if ($name === "preg")
            preg_match_all('/(a+)+c/', substr($text, 0, 40), $m);
        else
            gzcompress($text, 9);
    } while (microtime(true) < $end);
}

function nap(): void
{
    enter("nap");
    $end = ready();
    do {
        usleep(20000);
    } while (microtime(true) < $end);
}

enter("{main}");
switch ($argv[1]) {
case "plain":
    spin();
    break;
case "rec60":
    recurse(60);
    break;
case "rec300":
    recurse(300);
    break;
case "deep60":
    for ($i = 0; $i < 60; $i++)
        enter("deep");
    deep(60);
    break;
case "methods":
    (new Derived())->method();
    break;
case "closures":
    (new Derived())->closures();
    break;
case "usort":
    $list = [3, 1, 2];
    usort($list, function ($a, $b) {
        enter("{closure}");
        spin();
        return $a <=> $b;
    });
    break;
case "array_map":
    $f = function ($x) {
        enter("{closure}");
        array_walk($x, function ($v) {
            enter("{closure}");
            call_user_func_array("recurse", [5]);
        });
    };
    array_map($f, [[1]]);
    break;
case "generator":
    foreach (doubled(numbers()) as $x)
        ;
    break;
case "delegate":
    foreach (delegate() as $x)
        ;
    break;
case "tree":
    foreach (tree(6) as $x)
        ;
    break;
case "fiber":
    resume();
    break;
case "values":
    foreach (values() as $x)
        ;
    break;
case "release":
    enter("Chained::__destruct");
    enter("Chained::__destruct");
    $x = new Chained();
    $x->next = new Chained();
    unset($x);
    break;
case "getter":
    (new Getter())->method();
    break;
case "include":
    include __DIR__ . "/included.php";
    break;
case "eval":
    eval('enter("eval"); '
         . 'function made() { enter("made"); eval("enter(\'eval\'); spin();"); } made();');
    break;
case "except":
    thrower();
    break;
case "call":
    Base::anything();
    break;
case "destruct":
    $x = new Ends();
    unset($x);
    break;
case "anonymous":
    (new class {
        public function method(): void
        {
            enter("class@anonymous::method");
            spin();
        }
    })->method();
    break;
case "preg":
case "zlib":
    loop_native($argv[1]);
    break;
case "sleep":
    nap();
    break;
}
