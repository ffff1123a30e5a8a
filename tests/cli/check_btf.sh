#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_btf.sh [SFBPF]: --btf FILE, and what is said without any BTF. A kernel without BTF is played by hiding the file that it shows
# it in: then the programs that need none are loaded.
set -u
sfbpf=${1:-$(dirname "$0")/../../build/sfbpf}
rc=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
kernel=/sys/kernel/btf/vmlinux

fail() { echo "FAIL $1: $2"; rc=1; }

# expect NAME STATUS PATTERN COMMAND...: exit status, and a pattern in what it says.
expect() {
	name=$1 status=$2 pattern=$3
	shift 3
	"$@" >"$dir/out" 2>&1
	got=$?
	if [ $got -ne "$status" ]; then
		fail "$name" "exit $got instead of $status: $(tail -n 1 "$dir/out")"
	elif [ -n "$pattern" ] && ! grep -qE "$pattern" "$dir/out"; then
		fail "$name" "no '$pattern': $(tail -n 1 "$dir/out")"
	else
		echo "ok $name"
	fi
}

hidden() { unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh "$@"; }

if [ "$(id -u)" -ne 0 ] || [ ! -r $kernel ]; then
	echo "SKIP btf_file: needs root and a kernel with BTF"
	exit 0
fi
cp $kernel "$dir/btf"
echo "no BTF" >"$dir/text"
expect btf_file 0 '^ok +unwinding: ' "$sfbpf" doctor --btf "$dir/btf"
expect btf_record 0 '' "$sfbpf" record --btf "$dir/btf" -o "$dir/folded" 0.2
expect btf_offcpu 0 '' "$sfbpf" offcpu --btf "$dir/btf" -o "$dir/folded" 0.2
expect btf_missing_file 1 'No such file' "$sfbpf" record --btf "$dir/none" -o "$dir/folded" 0.2
expect btf_not_btf 1 'no BTF in it' "$sfbpf" record --btf "$dir/text" -o "$dir/folded" 0.2
if ! hidden true 2>/dev/null; then
	echo "SKIP btf_hidden: no mount namespaces here"
	exit $rc
fi
expect btf_none 4 'no BTF.*--btf FILE' hidden "$sfbpf" record -o "$dir/folded" 0.2
expect btf_none_doctor 4 '^FAIL +BTF: .*--btf FILE' hidden "$sfbpf" doctor
expect btf_none_offcpu 4 'off-CPU' hidden "$sfbpf" offcpu --btf "$dir/btf" -o "$dir/folded" 0.2
expect btf_plain_unwinds 0 '^ok +unwinding: ' hidden "$sfbpf" doctor --btf "$dir/btf"
# In the kernel, too: dd spends its time in system calls; for long enough that its start, before tables are there, does not count.
hidden "$sfbpf" record --btf "$dir/btf" -F 999 -o "$dir/folded" -- dd if=/dev/zero of=/dev/null bs=256k count=100000 >"$dir/out" 2>&1
all=$(awk '/^dd;/ && /_\[k\]/ { n += $NF } END { print n + 0 }' "$dir/folded")
whole=$(awk '/^dd;_start;/ && /_\[k\]/ { n += $NF } END { print n + 0 }' "$dir/folded")
if [ "$all" -ge 50 ] && [ $((whole * 10)) -ge $((all * 9)) ]; then
	echo "ok btf_plain_system_calls"
else
	fail btf_plain_system_calls "$whole of $all samples in the kernel have the whole user part"
fi
exit $rc
