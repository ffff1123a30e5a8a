#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runtimes with code that no table describes, or that one row describes: how many stacks reach
their root, and whether all that are said to do have the root of a process or a thread.

check_runtimes.py [CHECK...]    SECONDS: of a recording
"""

import glob
import os
import re
import shutil
import subprocess

import harness as h

SECONDS = os.environ.get("SECONDS", "4")
LUAJIT = "_start;__libc_start_main[^;]*;(__libc_start_call_main;)?main;lua_cpcall" \
         "(;[^;]+){1,5};lua_pcall(;.*)?"
ROOTS = {"_start", "__clone", "clone", "__clone3", "clone3", "__GI___clone3"}

LUA = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function add(k) return function(x) return x + k end end
local T = {
	function() fib(18) end,
	function() local s = {} for i = 1, 500 do s[i] = tostring(i) .. ("x"):rep(5) end
		table.concat(s, ","):gsub("x+", "y") end,
	function() local t = {} for i = 1, 5000 do t[i] = i % 97; t["k" .. i % 50] = i end end,
	function() local a = 0 for i = 1, 3000 do a = add(i)(a) end end,
	function() local t = {} for i = 1, 500 do t[i] = i * 7919 % 2003 end
		table.sort(t, function(a, b) return a < b end) end,
	function() for i = 1, 500 do pcall(function() if i % 3 == 0 then error("x") end end) end
		end,
	function() local yield = coroutine.yield
		local c = coroutine.wrap(function() while true do yield(fib(3)) end end)
		for i = 1, 2000 do c() end end,
	function() ("abc "):rep(200):gsub("%w+", function(w) return w:upper() end) end,
	function() local a = 0 for i = 1, 9000 do a = a + math.floor(i / 3) % 7.5 + i ^ 0.5 end end,
}
local seconds = tonumber(arg[1])
while os.clock() < seconds do for _, f in ipairs(T) do f() end end
"""

# The program knows what is between main() and the interpreter, which calls run-time code.
EMBEDS = """
#include <stdlib.h>
#include <time.h>
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *);
int luaL_loadstring(lua_State *, const char *);
int lua_pcall(lua_State *, int, int, int);
void lua_call(lua_State *, int, int);
void lua_getfield(lua_State *, int, const char *);
volatile int n;
static lua_State *l;
static int by_jump; /* lua_call() jumps to the interpreter */
__attribute__((noinline)) void e_call(void)
{
	lua_getfield(l, -10002, "mid");
	if (by_jump)
		lua_call(l, 0, 0);
	else if (lua_pcall(l, 0, 0, 0))
		exit(1);
	n++;
}
__attribute__((noinline)) void e_outer(void) { e_call(); n++; }
int main(int c, char **v)
{
	time_t end = time(0) + (c > 1 ? atoi(v[1]) : 4);
	by_jump = c > 2;
	l = luaL_newstate();
	luaL_openlibs(l);
	if (luaL_loadstring(l, "local function hot(n) local x = 0; for i = 1, n do "
			       "x = (x * 31 + i) % 1000003 end; return x end\\n"
			       "function mid() for i = 1, 20 do hot(50000 + i) end end") ||
	    lua_pcall(l, 0, 0, 0))
		return 1;
	while (time(0) < end)
		e_outer();
	return 0;
}
"""

# Strings and tables in the class library, which is compiled ahead of time and calls run-time code
# by stubs; threads with large frames above such code.
CSHARP = """
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
class P {
	static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
	static void Table() {
		var d = new Dictionary<string, int>();
		for (int i = 0; i < 5000; i++) {
			var k = "k" + (i % 100);
			int v;
			d.TryGetValue(k, out v);
			d[k] = v + 1;
		}
	}
	static void Text() {
		var b = new StringBuilder();
		for (int i = 0; i < 2000; i++)
			b.Append(i.ToString("X4")).Append(',');
		var s = b.ToString().Split(',');
		Array.Sort(s, StringComparer.Ordinal);
		string.Join(";", s);
	}
	static void Sorted() {
		Enumerable.Range(0, 3000).Select(x => x * x % 997).OrderBy(x => x).ToList();
	}
	static void Main(string[] a) {
		var end = DateTime.UtcNow.AddSeconds(double.Parse(a[0]));
		while (DateTime.UtcNow < end) {
			if (a[1] == "text") {
				Table();
				Text();
			} else {
				Sorted();
				Parallel.For(0, 64, i => Fib(10));
			}
		}
	}
}
"""

ERLANG = """
-module(busy).
-export([main/1]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
table(0, M) -> maps:size(M);
table(N, M) -> table(N - 1, M#{N rem 100 => maps:get(N rem 100, M, 0) + N}).
sorted() -> lists:sort(lists:map(fun(X) -> X + 1 end, [X * X rem 97 || X <- lists:seq(1, 3000)])).
text() -> iolist_to_binary([integer_to_list(X) || X <- lists:seq(1, 500)]).
echo(0, P) -> P ! done;
echo(N, P) -> receive X -> P ! X, echo(N - 1, P) end.
talk() ->
    S = self(),
    P = spawn(fun() -> echo(200, S) end),
    [begin P ! X, receive X -> ok end end || X <- lists:seq(1, 200)],
    receive done -> ok end.
loop(End) ->
    case erlang:monotonic_time(millisecond) > End of
        true -> ok;
        false -> fib(16), table(1000, #{}), sorted(), text(), talk(), loop(End)
    end.
main([S]) ->
    End = erlang:monotonic_time(millisecond) + list_to_integer(atom_to_list(S)) * 1000,
    Self = self(),
    [spawn(fun() -> loop(End), Self ! ok end) || _ <- [1, 2, 3]],
    [receive ok -> ok end || _ <- [1, 2, 3]],
    halt().
"""


def needs(*programs):
    for name in programs:
        if not shutil.which(name):
            raise h.Skip("no " + name)


def source(name, text):
    path = h.tmpfile(name)
    with open(path, "w") as f:
        f.write(text)
    return path


def judge(name, command, least, bridged, comm="", chain=".*"):
    """At least that share of the stacks is at its root, by a bridge only if that may be, and all
    but 1 % of these have the chain. comm: part of the names of the threads.
    """
    stacks, stats = h.Recording(["-F", "499"], command=command).finish()
    errors = h.stats_errors(stats, stacks)
    mine = [s for s in stacks
            if comm in s.comm and h.user_frames(s) and h.user_frames(s) != ["[exec]"]]
    rooted = [s for s in mine if not h.reason(s)]
    wrong = [s for s in rooted if h.user_frames(s)[0] not in ROOTS]
    over = [s for s in rooted if "[jit]" in s.frames]
    other = [s for s in rooted if not re.fullmatch(chain, ";".join(h.user_frames(s)))]
    h.note("%s: %d of %d stacks are at their root, %d by a bridge" %
           (name, h.total(rooted), h.total(mine), h.total(over)))
    if wrong:
        errors.append("another root: %s" % h.worst(wrong))
    if h.total(other) > 0.01 * h.total(rooted):
        errors.append("another chain: %s" % h.worst(other))
    if over and not bridged:
        errors.append("bridged: %s" % h.worst(over))
    if h.total(mine) < 100 or h.total(rooted) < least * h.total(mine):
        errors.append("%d of %d stacks are at their root; others: %s" %
                      (h.total(rooted), h.total(mine), h.worst(s for s in mine if h.reason(s))))
    h.check(name, errors)


def check_luajit_interpreter(name):
    """Its interpreter has one row, and functions inside that this row is wrong for."""
    needs("luajit")
    judge(name, ["luajit", "-joff", source("a.lua", LUA), SECONDS], 0.97, False, "luajit", LUAJIT)


def check_luajit(name):
    needs("luajit")
    judge(name, ["luajit", source("a.lua", LUA), SECONDS], 0.90, True, "luajit", LUAJIT)


def check_luajit_embedded(name):
    libraries = glob.glob("/usr/lib/*/libluajit-5.1.so.2")
    if not libraries:
        raise h.Skip("no libluajit-5.1.so.2")
    program = h.tmpfile("embeds")
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", program,
                    source("a.c", EMBEDS), libraries[0]], check=True)
    chain = ("_start;__libc_start_main[^;]*;(__libc_start_call_main;)?main"
             r"(;(time|luaL?_)[^;]*(;.*)?|;e_outer(;e_call(;lua_getfield.*|%s(;.*)?)?)?)?")
    judge(name, [program, SECONDS], 0.95, True, "embeds", chain % ";lua_pcall")
    judge(name + "-call", [program, SECONDS, "call"], 0.95, True, "embeds",
          chain % r";(\[jit\]|lua_call|\[libluajit[^;]*)")


def check_mono(name):
    needs("mono", "mcs")
    program = h.tmpfile("a.exe")
    subprocess.run(["mcs", "-out:" + program, source("a.cs", CSHARP)], check=True)
    for work in "text", "threads":
        judge("%s-%s" % (name, work), ["mono", program, SECONDS, work], 0.92, True)


def check_erlang(name):
    """Its code runs on stacks of its processes. Threads: 1_scheduler, from 26 on erts_sched_1."""
    needs("erl", "erlc")
    subprocess.run(["erlc", "-o", h.tmpdir(), source("busy.erl", ERLANG)], check=True)
    judge(name, ["erl", "-noshell", "-pa", h.tmpdir(), "-s", "busy", "main", SECONDS], 0.88, True,
          "sched")


h.run_checks([check_luajit_interpreter, check_luajit, check_luajit_embedded, check_mono,
              check_erlang])
