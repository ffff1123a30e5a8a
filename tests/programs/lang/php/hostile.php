<?php
// SPDX-License-Identifier: BSD-2-Clause
// hostile.php CASE SECONDS: frames that are cyclic, endless or wild pointers, below the script's
// own. Needs FFI.

$seconds = (float)$argv[2];
$fakes = [];

function spin(): void
{
    global $seconds;
    echo "READY\n";
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end)
        ;
}

function deep(int $n): int
{
    if ($n <= 1) {
        spin();
        return 0;
    }
    return deep($n - 1) + 1;
}

// A copy of a frame that is called by `back`.
function fake($like, int $back, int $func)
{
    global $ffi, $fakes;
    $f = $ffi->new("struct frame[2]"); // what follows a frame is read as well
    FFI::memcpy($f, $like, 80);
    $f[0]->prev = $back;
    $f[0]->func = $func;
    $f[0]->info &= ~(1 << 17);
    $fakes[] = $f;
    return $f;
}

function address($cdata): int
{
    global $ffi;
    return $ffi->cast("uintptr_t", FFI::addr($cdata))->cdata;
}

if ($argv[1] === "deep") {
    deep(1000);
    exit(0);
}
$ffi = FFI::cdef("
struct frame {
    uintptr_t opline, call, ret, func, object;
    uint32_t info, more;
    uintptr_t prev, rest[3];
};
struct globals { char before[488]; struct frame *current; };
extern struct globals executor_globals;");
$main = $ffi->executor_globals->current;
while ($main->prev)
    $main = $ffi->cast("struct frame *", $main->prev);
$func = $main->func;
switch ($argv[1]) {
case "cycle":
    $a = fake($main, 0, $func);
    $b = fake($main, address($a[0]), $func);
    $a[0]->prev = address($b[0]);
    $first = address($b[0]);
    break;
case "nameless":
    $a = fake($main, 0, 0);
    $b = fake($main, address($a[0]), 0);
    $a[0]->prev = address($b[0]);
    $first = address($b[0]);
    break;
case "wild":
    $first = address(fake($main, 0x123456789000, 0x7ffffffff000)[0]);
    break;
case "endless":
    $first = 0;
    for ($i = 0; $i < 20000; $i++)
        $first = address(fake($main, $first, $func)[0]);
    break;
}
$main->prev = $first;
$main->info &= ~(1 << 17); // no longer called from C
spin();
while (true)
    ;
