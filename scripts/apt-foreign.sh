#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# apt-foreign.sh ARCH DIR depends PACKAGE
#     prints the names of packages that PACKAGE depends on
# apt-foreign.sh ARCH DIR unpack ROOT PACKAGE...
#     downloads them and unpacks them below ROOT, unless they are there
# apt-foreign.sh ARCH DIR kernel ROOT PACKAGE
#     the same, but only the kernel's image: ROOT/boot/vmlinuz-*
# Debian packages of another architecture, from this machine's own sources, without installing
# anything: apt keeps its state below DIR, so dpkg's list of architectures stays as it is.
set -eu

arch=$1 dir=$2 do=$3
shift 3
mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
dir=$(cd "$dir" && pwd)
: >> "$dir/status"

foreign() {
	tool=$1
	shift
	"$tool" -q -o APT::Architecture="$arch" -o APT::Architectures::= \
		-o APT::Architectures="$arch" -o Dir::State="$dir/state" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" \
		-o APT::Sandbox::User=root "$@"
}

fresh_lists() {
	[ -z "$(find "$dir/updated" -mtime -1 2>/dev/null)" ] || return 0
	foreign apt-get update >"$dir/log" 2>&1 || { tail -n 5 "$dir/log" >&2; exit 1; }
	touch "$dir/updated"
}

# download PACKAGE: its file's name on stdout.
download() {
	fresh_lists
	(cd "$dir" && foreign apt-get download "$1" >"$dir/log" 2>&1) || {
		tail -n 5 "$dir/log" >&2
		return 1
	}
	ls -t "$dir/$1"_*.deb | head -n 1
}

case $do in
depends)
	fresh_lists
	foreign apt-cache depends "$1" | sed -n 's/^ *Depends: //p'
	;;
unpack)
	root=$1
	shift
	mkdir -p "$root/.have"
	for p in "$@"; do
		[ ! -e "$root/.have/$p" ] || continue
		deb=$(download "$p")
		dpkg-deb -x "$deb" "$root"
		rm -f "$deb"
		touch "$root/.have/$p"
	done
	;;
kernel)
	deb=$(download "$2")
	mkdir -p "$1"
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$1" --wildcards './boot/vmlinuz-*'
	rm -f "$deb"
	;;
*)
	echo "usage: apt-foreign.sh ARCH DIR depends|unpack|kernel ..." >&2
	exit 2
	;;
esac
