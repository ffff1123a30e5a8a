#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vm-test.sh [KERNEL...]: boots Debian's kernels in QEMU and checks known chains there. Without
# names: 6.1-cloud 6.12-cloud 6.1-rt sid-cloud rc-cloud arm64-6.1-cloud arm64-6.12-16k. Emulated:
# about a minute per kernel. VM_ACCEL=kvm where that works (x86-64). CASES="rec60 sig hotplug" for a
# few only. NEWEST=clang-NN: whose BPF programs are loaded, too; default the newest that is
# installed.
set -eu
cd "$(dirname "$0")/.."
out=${OUTPUT:-build}
jobs=$(nproc)
: "${NEWEST:=$(scripts/find-clang.sh newest)}"

wants() {	# PATTERN KERNEL...: one of the kernels matches
	pattern=$1
	shift
	[ $# -gt 0 ] || return 0
	for k in "$@"; do case $k in $pattern) return 0 ;; esac; done
	return 1
}

# built FOLDER MAKE-ARGUMENTS...: the static program, and the one of the newest clang. Linking
# statically warns about getpwnam(); that is fine in a test.
built() {
	folder=$1
	shift
	{ make -s -j"$jobs" STATIC=1 OUTPUT="$folder" "$@" &&
		make -s -j"$jobs" STATIC=1 OUTPUT="$folder" CLANG="$NEWEST" \
			BPF_OUTPUT="$folder/$NEWEST" "$@" "$folder/$NEWEST/sfbpf"
	} 2>"$out/vm/build" || { cat "$out/vm/build" >&2; exit 1; }
}

mkdir -p "$out/vm"
if wants '[!a]*' "$@"; then
	scripts/deps.sh vm
	built "$out-static"
	make -s -j"$jobs" OUTPUT="$out" # with libraries, for the guest's full/
	sh tests/programs/build.sh "$out/programs" >/dev/null
fi
if wants 'arm64-*' "$@"; then
	scripts/deps.sh arm64
	built "$out-arm64" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
	CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ OBJCOPY=aarch64-linux-gnu-objcopy \
		MUSL="$PWD/build/sysroot-arm64/musl" \
		sh tests/programs/build.sh "$out-arm64/programs" >/dev/null
fi
export SFBPF_AMD64="$PWD/$out-static/sfbpf" PROGRAMS_AMD64="$PWD/$out/programs"
export SFBPF_ARM64="$PWD/$out-arm64/sfbpf" PROGRAMS_ARM64="$PWD/$out-arm64/programs"
export NEWEST_AMD64="$PWD/$out-static/$NEWEST/sfbpf" NEWEST_ARM64="$PWD/$out-arm64/$NEWEST/sfbpf"
OUTPUT="$out" exec /usr/bin/python3 tests/vm/check_vm.py "$@"
