#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# release.sh [DIR]: a tar archive for x86-64 and one for AArch64 in DIR (default build/release): one
# static program with all features and its names, install.sh, man pages, completions, the agent's
# unit, README, licences, docs. On x86-64; elsewhere only one, for this machine. ARCHS="x86_64" for
# one of the two. Same sources and packages, same archive. docs/release.md describes it.
set -eu
cd "$(dirname "$0")/.."
dir=${1:-build/release}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
version=$(sed -n 's/^VERSION := //p' Makefile)
date=$(git log -1 --format=%cI 2>/dev/null || echo 2020-01-01)
log=$dir/.log
all="agent code inline debuginfod liblzma libzstd"

die() {
	echo "release.sh: $*" >&2
	exit 1
}

logged() {
	"$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}

# The linker warns about each function that may load parts of the target's C library. Those that are
# linked were looked at: base/libc_static.h and docs/release.md.
check_warnings() {
	new=$(sed -n "s/.*warning: Using '\([^']*\)' in statically.*/\1/p" "$log" | sort -u |
		grep -vxE 'dlopen|getpwnam|getpwuid|getpwuid_r|getaddrinfo|gethostbyname' || true)
	[ -z "$new" ] || die "functions that are unsafe in a static program: $new"
}

# The licences of what the program contains. DOC: usr/share/doc of the libraries' packages.
licences() {
	doc=$1 root=$2
	mkdir -p "$root/licences"
	cp build/static-"$3"/copyright/* "$root/licences/"
	for p in libbpf-dev libelf-dev libdw-dev zlib1g-dev liblzma-dev libzstd-dev libiberty-dev \
		libseccomp-dev libinih-dev nettle-dev libssl-dev libnghttp2-dev; do
		cp "$doc/$p/copyright" "$root/licences/$p"
	done
	for p in libc6 libgcc-s1; do
		cp "/usr/share/doc/$p/copyright" "$root/licences/$p"
	done
}

# pack NAME ARCH STRIP DOC MAKE-ARGUMENTS...
pack() {
	name=sfbpf-$version-$1 arch=$2 strip=$3 doc=$4 out=build-release-$1
	shift 4
	root=$dir/$name
	rm -rf "$root" "$out/sfbpf"
	mkdir -p "$root/packaging"
	has=$(make -s STATIC=1 OUTPUT="$out" "$@" features)
	[ "$has" = "$all" ] || die "$name would have only: $has"
	logged make -s -j"$(nproc)" STATIC=1 OUTPUT="$out" "$@"
	check_warnings
	logged make -s STATIC=1 OUTPUT="$out" "$@" install DESTDIR="$root" PREFIX=
	# They are the same for each architecture, and only a program that runs here can print them.
	[ -d "$root/share" ] || cp -r "$dir/share" "$root/share"
	rm -rf "$dir/share"
	cp -r "$root/share" "$dir/share"
	$strip "$root/bin/sfbpf"
	cp -r README.md LICENSE docs packaging/install.sh "$root/"
	cp -r packaging/sfbpf-agent.service packaging/agent.ini packaging/kubernetes \
		"$root/packaging/"
	licences "$doc" "$root" "$arch"
	chmod -R u=rwX,go=rX "$root"
	tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="$date" \
		-cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
	rm -rf "$root"
	(cd "$dir" && sha256sum "$name.tar.gz")
}

machine=$(uname -m)
archs=${ARCHS:-$machine$([ "$machine" != x86_64 ] || echo " aarch64")}
scripts/deps.sh build
scripts/deps.sh release
for a in $archs; do
	if [ "$a" = "$machine" ]; then
		scripts/static-libs.sh
		pack "$a" "$(echo "$a" | sed 's/x86_64/x86/; s/aarch64/arm64/')" strip \
			/usr/share/doc
	else
		[ -d "$dir/share" ] || die "$a alone cannot be packed here: after $machine"
		scripts/static-libs.sh arm64
		pack aarch64 arm64 aarch64-linux-gnu-strip build/sysroot-arm64/usr/share/doc \
			ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
	fi
done
rm -rf "$log" "$dir/share"
