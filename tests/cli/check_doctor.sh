#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_doctor.sh [SFBPF]: the form of its lines, and its verdicts with and without permissions.
set -u
sfbpf=${1:-$(dirname "$0")/../../build/sfbpf}
rc=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "FAIL $1: $2"; rc=1; }

# Every line is "ok|warn|FAIL  what: detail[ (fix: ...)]", or "| ..." of a report behind them; a
# failing doctor has a FAIL line, a happy one has none.
well_formed() {
	bad=$(sed '/^| To report/,$ { /^| ./d }' "$dir/out" |
		grep -vE '^(ok   |warn |FAIL ) [A-Za-z_ -]+: .+$')
	if [ -n "$bad" ]; then
		fail "$1" "odd line: $bad"
	elif [ "$2" -eq 0 ] && grep -q ^FAIL "$dir/out"; then
		fail "$1" "exit 0 with $(grep ^FAIL "$dir/out" | head -n 1)"
	elif [ "$2" -ne 0 ] && ! grep -q ^FAIL "$dir/out"; then
		fail "$1" "exit $2 without a FAIL line"
	elif [ -s "$dir/err" ]; then
		fail "$1" "stderr: $(head -n 1 "$dir/err")"
	else
		echo "ok $1"
	fi
}

"$sfbpf" doctor >"$dir/out" 2>"$dir/err"
status=$?
case $status in
0|3|4) well_formed doctor_here $status ;;
*) fail doctor_here "exit $status" ;;
esac

# What built it, and with which libraries.
for line in 'build: sfbpf [0-9.]+, built by .+ [0-9]+\.[0-9]+' \
	'BPF programs: built by .*clang version [0-9]+' \
	'libbpf: [0-9]+\.[0-9]+, built with [0-9]+\.[0-9]+'; do
	if grep -qE "^ok +$line" "$dir/out"; then
		echo "ok doctor_${line%%:*}" | tr ' ' _ | sed 's/_/ /'
	else
		fail doctor_build "no line '$line'"
	fi
done

# The self-test's verdict is what a recording would find.
if [ $status -ne 0 ]; then
	echo "SKIP doctor_unwinds: doctor says no ($(grep -m 1 ^FAIL "$dir/out"))"
elif grep -qE '^ok +unwinding: [0-9]+ of [0-9]+ stacks' "$dir/out"; then
	echo "ok doctor_unwinds"
else
	fail doctor_unwinds "$(grep unwinding "$dir/out")"
fi

if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "SKIP doctor_without_root: needs root and setpriv to become nobody"
else
	cp "$sfbpf" "$dir/sfbpf"
	chmod 755 "$dir" "$dir/sfbpf"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/sfbpf" doctor \
		>"$dir/out" 2>"$dir/err"
	status=$?
	if [ $status -ne 3 ]; then
		fail doctor_without_root "exit $status"
	elif ! grep -qE '^FAIL +CAP_BPF: .*\(fix: .*setcap' "$dir/out"; then
		fail doctor_without_root "it does not say how to get CAP_BPF"
	else
		well_formed doctor_without_root $status
	fi
fi

# A kernel without BTF is played by hiding the file that shows it.
hidden() { unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh "$@"; }
no_btf() {
	name=$1 pattern=$2
	shift 2
	hidden "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	if [ $status -ne 4 ]; then
		fail "$name" "exit $status instead of 4: $(cat "$dir/out" "$dir/err" | tail -n 1)"
	elif ! cat "$dir/out" "$dir/err" | grep -qE "$pattern"; then
		fail "$name" "no '$pattern': $(cat "$dir/out" "$dir/err" | tail -n 1)"
	else
		echo "ok $name"
	fi
}

if [ "$(id -u)" -ne 0 ] || [ ! -r /sys/kernel/btf/vmlinux ] || ! hidden true 2>/dev/null; then
	echo "SKIP no_btf: needs root, BTF to hide and mount namespaces"
else
	no_btf doctor_no_btf '^FAIL +BTF: .*\(fix: .*CONFIG_DEBUG_INFO_BTF' "$sfbpf" doctor
	no_btf record_no_btf '^sfbpf record: .*BTF.*CONFIG_DEBUG_INFO_BTF' \
		"$sfbpf" record -o "$dir/folded" 0.2
	no_btf offcpu_no_btf '^sfbpf offcpu: .*BTF.*CONFIG_DEBUG_INFO_BTF' \
		"$sfbpf" offcpu -o "$dir/folded" 0.2
fi

"$sfbpf" doctor what >"$dir/out" 2>"$dir/err"
if [ $? -eq 2 ] && [ -s "$dir/err" ]; then
	echo "ok doctor_usage"
else
	fail doctor_usage "an argument was accepted"
fi
exit $rc
