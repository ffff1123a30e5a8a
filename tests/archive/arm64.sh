#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arm64.sh ARCHIVE: the program for AArch64 in QEMU's user mode, which has no BPF: what needs none.
set -eu
cd "$(dirname "$0")/../.."

qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ] && [ "$(uname -m)" != aarch64 ]; then
	echo "SKIP archive-arm64: no qemu-aarch64 (package qemu-user-static)"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xzf "$1" -C "$dir" --strip-components=1
sfbpf="$qemu $dir/bin/sfbpf"
normal=build/sfbpf

verdict() {
	if [ -z "$2" ]; then echo "ok $1"; else echo "FAIL $1: $2"; status=1; fi
}
status=0

verdict archive-arm64-version "$($sfbpf --version 2>&1 | grep -v '^sfbpf [0-9.]*$' || true)"

# Rows of files of both architectures are those of the normal build, those from code among them.
for f in build/sysroot-arm64/musl/lib/ld-musl-aarch64.so.1 "$dir/bin/sfbpf" /bin/busybox; do
	[ -f "$f" ] || continue
	$sfbpf inspect "$f" >"$dir/ours" 2>&1 || true
	$normal inspect "$f" >"$dir/theirs" 2>&1 || true
	verdict "archive-arm64-inspect-${f##*/}" \
		"$(sed -i 's/ (on a .*)$//' "$dir/theirs" "$dir/ours"
		diff "$dir/theirs" "$dir/ours" | head -n 3)"
done

verdict archive-arm64-check-config "$($sfbpf agent --config "$dir/packaging/agent.ini" \
	--check-config 2>&1 >/dev/null || echo "exit status $?")"
for t in agent-once serve; do
	case $t in
	agent-once) set -- agent --once --endpoint https://localhost:1 ;;
	serve) set -- serve "$dir/no-such-directory" ;;
	esac
	# QEMU does not know bpf(2): an error in words, and no crash.
	code=0
	$sfbpf "$@" >"$dir/out" 2>&1 || code=$?
	verdict "archive-arm64-$t" "$([ $code -ge 1 ] && [ $code -le 4 ] && [ -s "$dir/out" ] ||
		echo "exit status $code: $(tail -n 1 "$dir/out")")"
done
exit $status
