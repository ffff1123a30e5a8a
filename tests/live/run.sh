#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [--quick]: all live checks, or one of each kind. Needs root and a kernel that lets sfbpf
# record; else one SKIP line.
set -eu
cd "$(dirname "$0")/../.."
: "${OUTPUT:=build}"
export OUTPUT

give_up() {
	echo "SKIP live: $1"
	exit 0
}

[ "$(id -u)" = 0 ] || give_up "not root"
[ -r /sys/kernel/btf/vmlinux ] || give_up "the kernel has no BTF"
# Python of the distribution: protobuf's library is its package.
python=/usr/bin/python3
[ -x $python ] || give_up "no $python"

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
code=0
"$OUTPUT/sfbpf" record -o "$log/try.folded" 100ms 2>"$log/try" >&2 || code=$?
case $code in
3 | 4)
	# A kernel that has what the programs need must take them.
	if grep -q "refuses the BPF program" "$log/try"; then
		echo "FAIL live: $(tail -n 1 "$log/try")"
		exit 1
	fi
	give_up "record cannot run here: $(tail -n 1 "$log/try")" ;;
esac
if dmesg >"$log/before" 2>/dev/null; then have_dmesg=1; else have_dmesg=0; fi

if tests/programs/build.sh "$OUTPUT/programs" >"$log/build" 2>&1; then
	echo "ok live-programs-build"
	# The cases of these programs are skipped below, each by its name.
	sed 's/^SKIP/# not built:/' "$log/build"
else
	sed 's/^/# /' "$log/build"
	echo "FAIL live-programs-build: tests/programs/build.sh failed"
fi

status=0
export log python
# One chain of each kind, one recording of each language that is here, each tool.
quick() {
	chains="rec60 rec-fp rec-code rec-static rec-strip rec-memfd frames alloca drap callback
		except sig threads leaderless dlmid plt-lazy vdso coro jit-calls rust chroot-a
		sf-rec60 sf1-frames sf3-sig-alt nl-sf2"
	for check in "check_chains $chains" "check_tools" "check_languages chains" \
		"check_perl native" "check_ruby native" "check_php native" \
		"check_javascript native" "check_java lines" "check_go rec"; do
		# shellcheck disable=SC2086
		set -- $check
		name=$1
		shift
		$python -B "tests/live/$name.py" "$@" || status=1
	done
}

run_checks() {	# AT-ONCE CHECK...
	at_once=$1
	shift
	printf '%s.py\n' "$@" | xargs -P "$at_once" -I CHECK sh -c '
		began=$(date +%s)
		case CHECK in *hostile.py | check_security.py) exec 9>"$log/lock" && flock 9 ;; esac
		$python -B tests/live/CHECK >"$log/CHECK" 2>&1 9>&- || code=1
		echo "# CHECK took $(($(date +%s) - began)) s" >>"$log/CHECK"
		flock "$log" cat "$log/CHECK"
		exit ${code:-0}' || status=1
}

if [ "${1:-}" = --quick ]; then
	quick
	exit $status
fi

# Chains and names are the same on a busy machine. The others wait most of the time, so that one
# more than there are CPUs run. The longest first.
run_checks "$(nproc)" check_compilers check_php check_ruby check_languages check_formats \
	check_names check_events check_slow check_locks check_steps check_go check_javascript \
	check_java check_perl check_damage check_runtimes check_toy check_refused check_pgo
# One check at a time makes programs that attack the whole machine.
run_checks "$(($(nproc) + 1))" check_offcpu check_changes check_jit_hostile check_offcpu_cases \
	check_names_hostile check_security check_hostile
# These measure time, or need all of the machine.
run_checks 1 check_tools check_chains check_record check_real check_cost \
	check_wall check_critical check_evict top_keys

if [ $have_dmesg = 1 ]; then
	dmesg >"$log/after"
	bad='WARNING|BUG:|Oops|general protection|soft lockup|RCU stall|rcu_.*stall'
	tail -n "+$(($(wc -l <"$log/before") + 1))" "$log/after" |
		grep -E "$bad" >"$log/new" || true
	if [ -s "$log/new" ]; then
		echo "FAIL live-kernel-log: $(head -n 3 "$log/new" | tr '\n' ' ')"
		status=1
	else
		echo "ok live-kernel-log"
	fi
else
	echo "SKIP live-kernel-log: dmesg cannot be read"
fi
exit $status
