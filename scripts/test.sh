#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# test.sh [--quick]: installs what is missing, builds, runs every test that this machine can run;
# with --quick, in five minutes, one of each kind, to see that sfbpf works here. Ends with "N
# passed, N failed, N skipped" and exits 1 if any failed. Each test prints lines "ok NAME", "FAIL
# NAME: why", "SKIP NAME: why"; see tests/README.md.
set -eu
cd "$(dirname "$0")/.."

quick=
case $#:${1:-} in
0:) ;;
1:--quick) quick=1 ;;
*)
	echo "usage: scripts/test.sh [--quick]" >&2
	exit 2
	;;
esac
if [ "$quick" ]; then scripts/deps.sh quick; else scripts/deps.sh test; fi
PATH=$PATH:/usr/sbin:/sbin
export PATH
jobs=$(nproc)
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
all=$log/all
: > "$all"

began=$(date +%s)
heading() { printf '\n== %s, after %d s\n' "$1" "$(($(date +%s) - began))"; }
result() { echo "$*" | tee -a "$all"; }

# run NAME COMMAND...: a test program. One that ends badly without a FAIL line, or says nothing,
# failed as a whole.
run() {
	name=$1
	shift
	status=0
	{ "$@" </dev/null 2>&1 || echo $? >"$log/status"; } | tee "$log/one"
	if [ -e "$log/status" ]; then status=$(cat "$log/status"); fi
	rm -f "$log/status"
	grep -E '^(ok|FAIL|SKIP) ' "$log/one" >> "$all" || true
	if [ "$status" != 0 ] && ! grep -q '^FAIL ' "$log/one"; then
		result "FAIL $name: exit status $status: $(tail -n 1 "$log/one")"
	elif ! grep -qE '^(ok|FAIL|SKIP) ' "$log/one"; then
		result "FAIL $name: no result"
	fi
}

# run_again NAME COMMAND...: the same; a program that fails is run once more, and only the second
# run counts: a machine that others use, too, can take the CPU away for seconds.
run_again() {
	name=$1
	shift
	if "$@" >"$log/first" 2>&1 </dev/null && ! grep -q '^FAIL ' "$log/first"; then
		run "$name" cat "$log/first"
	else
		sed -E 's/^(ok|FAIL|SKIP) /# first try: &/' "$log/first"
		run "$name" "$@"
	fi
}

# run_all SUFFIX PROGRAM...: run_again of each program, as many at once as there are CPUs. The name
# of a test is that of its program and the suffix.
run_all() {
	suffix=$1
	shift
	taken=$(mktemp -d "$log/taken.XXXXXX")
	for worker in $(seq "$jobs"); do
		(
			log=$taken/log$worker
			mkdir "$log"
			for program; do
				mkdir "$taken/$(basename "$program")" 2>/dev/null || continue
				run_again "$(basename "$program")$suffix" "$program" >"$log/out"
				flock "$all" cat "$log/out"
			done
		) &
	done
	wait
}

# step NAME COMMAND...: one test that is a command's success; its output only shows if it failed.
step() {
	name=$1
	shift
	if "$@" >"$log/one" 2>&1 </dev/null; then
		result "ok $name"
	else
		tail -n 30 "$log/one"
		result "FAIL $name: $* failed"
		return 1
	fi
}

build_is_silent() {
	make -j"$jobs" >"$log/build" 2>&1 || { cat "$log/build"; return 1; }
	! grep -iE 'warning|error' "$log/build"
}

touching_rebuilds_both() {
	make -n -W bpf/border/sfbpf_shared.h V=1 >"$log/dry" 2>&1
	grep -q 'sfbpf\.bpf\.c' "$log/dry" && grep -q -- '-c -o [^ ]*userspace/' "$log/dry"
}

summary() {
	passed=$(grep -c '^ok ' "$all" || true)
	failed=$(grep -c '^FAIL ' "$all" || true)
	skipped=$(grep -c '^SKIP ' "$all" || true)
	echo
	grep '^SKIP ' "$all" || true
	grep '^FAIL ' "$all" || true
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

# Said once, and not by each test that reads them.
if [ -z "${SFBPF_FIXTURES-}" ] && [ ! -d ../shared/fixtures ]; then
	result "SKIP sframe-fixtures: no ../shared/fixtures (files with .sframe, and their dumps)"
	SFBPF_FIXTURES=
	export SFBPF_FIXTURES
fi

heading build
if ! step build-without-warnings build_is_silent; then
	summary
	exit 1
fi
step build-again-does-nothing make -q || true
step build-shared-header touching_rebuilds_both || true
run style scripts/check-style.sh
run docs scripts/gen-docs.sh --check
run circles /usr/bin/python3 -B scripts/check-circles.py

# unit_tests FILE...: the names of their programs
unit_tests() { basename -a -s .c "$@"; }

heading unit
# All of them run with sanitizers below; here, those that tell the two builds apart.
if [ "$quick" ]; then
	tests=$(unit_tests tests/unit/test_*.c)
else
	# shellcheck disable=SC2046
	tests=$(unit_tests $(grep -l __SANITIZE_ADDRESS__ tests/unit/test_*.c))
fi
# shellcheck disable=SC2046,SC2086
make -s -j"$jobs" $(printf 'build/unit/%s\n' $tests)
# shellcheck disable=SC2046,SC2086
run_all "" $(printf 'build/unit/%s\n' $tests)

if [ "$quick" ]; then
	heading cli
	run_all "" tests/cli/check_help.sh tests/cli/check_doctor.sh tests/cli/check_usage.py \
		tests/cli/check_windows.py
	heading 'live, and each tool'
	run live tests/live/run.sh --quick
	summary
	exit
fi

heading 'unit, with sanitizers'
tests=$(unit_tests tests/unit/test_*.c)
if step build-sanitized make -s -j"$jobs" units SAN=1; then
	# shellcheck disable=SC2046,SC2086
	run_all -san $(printf 'build-san/unit/%s\n' $tests)
	heading 'corpora of the fuzz targets'
	if [ -d tests/fuzz ]; then run corpora scripts/replay-corpus.sh; fi
fi

heading 'one failed call a run, with sanitizers'
if step build-faults make -s -j"$jobs" fault SAN=1; then
	run_again faults tests/fault/check_faults.py
fi

heading oracle
if pkg-config --exists libdw; then
	step eh-frame-rows-equal-libdw make -s oracle || true
else
	result "SKIP eh-frame-rows-equal-libdw: no libdw"
fi

heading cli
# shellcheck disable=SC2046
run_all "" $(find tests/cli -maxdepth 1 -name '*.[sp][hy]' -perm /111 | sort)

heading live
run live tests/live/run.sh

heading agent
run agent tests/agent/run.sh

# Its tables, and a failure only at twice the reference: a shared machine's noise is not the code's.
heading 'what it costs'
if [ "$(id -u)" = 0 ]; then
	run_again bench make -s bench-quick BENCH_FLAGS=--tolerance=2
else
	result "SKIP bench: needs root"
fi

summary
