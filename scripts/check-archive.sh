#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-archive.sh [ROOT|ROOT-CHECK...]: makes the archives of release.sh unless they are there, and
# runs the one for this machine in roots of other systems (nothing, musl, bullseye), the one for
# AArch64 in QEMU (arm64). As root, on x86-64; downloads some 100 MB of packages the first time.
set -eu
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "SKIP archive: not root"; exit 0; }
version=$(sed -n 's/^VERSION := //p' Makefile)
archive=$PWD/build/release/sfbpf-$version
[ -e "$archive-x86_64.tar.gz" ] && [ -e "$archive-aarch64.tar.gz" ] || scripts/release.sh >&2
[ -x build/sfbpf ] || make -s -j"$(nproc)" >&2

case " ${*:-arm64} " in
*" arm64 "*) sh tests/archive/arm64.sh "$archive-aarch64.tar.gz" ;;
esac
[ "${*:-all}" != arm64 ] || exit 0
/usr/bin/python3 tests/archive/roots.py
export ARCHIVE="$archive-x86_64.tar.gz"
unshare --mount --net --propagation private sh -c \
	'{ ip link set lo up || busybox ip link set lo up; } &&
	exec /usr/bin/python3 tests/archive/check_archive.py "$@"' sh "$@"
