#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vm-test.sh [KERNEL...]: boots Debian's kernels in QEMU (6.1-cloud 6.12-cloud 6.1-rt unless named) and checks known chains there.
# Emulated: about a minute a kernel. VM_ACCEL=kvm where that works. CASES="rec60 sig" for a few only.
set -eu
cd "$(dirname "$0")/.."
scripts/deps.sh vm
out=${OUTPUT:-build}
make -s -j"$(nproc)" OUTPUT="$out-static" STATIC=1 2>/dev/null
sh tests/programs/build.sh "$out/programs" >/dev/null
SFBPF_STATIC="$PWD/$out-static/sfbpf" OUTPUT="$out" exec python3 tests/vm/check_vm.py "$@"
