#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# release.sh [DIR]: a tar archive for x86-64 and one for AArch64 in DIR (default build/release): the
# static program with its names, README, licence, docs. On x86-64; elsewhere only one, for this
# machine.
set -eu
cd "$(dirname "$0")/.."
dir=${1:-build/release}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
version=$(sed -n 's/^VERSION := //p' Makefile)
date=$(git log -1 --format=%cI 2>/dev/null || echo 2020-01-01)
log=$dir/.log

logged() {
	"$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}

# pack NAME STRIP MAKE-ARGUMENTS...
pack() {
	arch=$1 strip=$2
	shift 2
	name=sfbpf-$version-$arch
	root=$dir/$name
	rm -rf "$root"
	mkdir -p "$root"
	logged make -s -j"$(nproc)" STATIC=1 OUTPUT="build-release-$arch" "$@"
	logged make -s STATIC=1 OUTPUT="build-release-$arch" "$@" install DESTDIR="$root" PREFIX=
	$strip "$root/bin/sfbpf"
	cp -r README.md LICENSE docs "$root/"
	tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="$date" \
		-cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
	rm -rf "$root"
	(cd "$dir" && sha256sum "$name.tar.gz")
}

scripts/deps.sh build
pack "$(uname -m)" strip
if [ "$(uname -m)" = x86_64 ]; then
	scripts/deps.sh arm64
	pack aarch64 aarch64-linux-gnu-strip ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
fi
rm -f "$log"
