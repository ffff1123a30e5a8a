#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# apt-foreign.sh ARCH[/SUITE] DIR depends PACKAGE
#     prints the names of packages that PACKAGE depends on
# apt-foreign.sh ARCH[/SUITE] DIR unpack ROOT PACKAGE...
#     downloads them and unpacks them below ROOT, unless they are there
# apt-foreign.sh ARCH[/SUITE] DIR kernel ROOT PACKAGE
#     the same, but only the kernel's image: ROOT/boot/vmlinuz-VERSION
# apt-foreign.sh ARCH[/SUITE] DIR source ROOT PACKAGE
#     downloads the package's source and unpacks it to ROOT/PACKAGE, unless this version is there,
#     and prints the version; needs dpkg-source
# Debian packages of another architecture or suite, from this machine's own sources, without
# installing anything: apt keeps its state below DIR, so dpkg's list of architectures stays as it
# is. SUITE (default: this machine's): a release of Debian, such as sid.
set -eu

arch=${1%/*} suite=${1#"${1%/*}"} dir=$2 do=$3
suite=${suite#/}
shift 3
mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
dir=$(cd "$dir" && pwd)
: >> "$dir/status"

: > "$dir/apt.conf"
if [ "$do" = source ] && [ -z "$suite" ]; then
	# The machine's own sources, of source packages. Those without any are skipped by apt.
	mkdir -p "$dir/parts"
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		case $f in
		*.sources) sed 's/^Types:.*/Types: deb-src/' "$f" ;;
		*.list) sed -n 's/^deb /deb-src /p' "$f" ;;
		esac >"$dir/parts/${f##*/}" 2>/dev/null || true
	done
	cat >"$dir/apt.conf" <<-END
	Dir::Etc::sourcelist "/dev/null";
	Dir::Etc::sourceparts "$dir/parts";
	END
elif [ -n "$suite" ]; then
	sources=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
	uri=$(echo "$sources" | sed -n 's/^URIs: *//p' | head -n 1)
	key=$(echo "$sources" | sed -n 's/^Signed-By: *//p' | head -n 1)
	[ -n "$uri" ] || { echo "apt-foreign.sh: no source of packages for $suite" >&2; exit 1; }
	type=deb
	[ "$do" != source ] || type=deb-src
	echo "$type${key:+ [signed-by=$key]} $uri $suite main" >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
	Dir::Etc::sourcelist "$dir/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	END
fi
export APT_CONFIG="$dir/apt.conf"

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

# source_to DIRECTORY PACKAGE: sets $version.
source_to() {
	fresh_lists
	version=$(cd "$dir" && foreign apt-get --print-uris source "$2" 2>"$dir/log" |
		sed -n "s/^'[^']*' \\([^ ]*\\)\\.dsc .*/\\1/p" | head -n 1)
	[ -n "$version" ] || { echo "apt-foreign.sh: no source of $2" >&2; exit 1; }
	[ ! -e "$1/.have/$version" ] || return 0
	rm -rf "${1:?}/$2" "$dir/fetched"
	mkdir -p "$1/.have" "$dir/fetched"
	(cd "$dir/fetched" && foreign apt-get --download-only source "$2" >"$dir/log" 2>&1 &&
		dpkg-source --no-check -x "$version.dsc" "$1/$2" >>"$dir/log" 2>&1) || {
		tail -n 5 "$dir/log" >&2
		exit 1
	}
	rm -rf "$dir/fetched"
	touch "$1/.have/$version"
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
	version=${2#linux-*-}
	# From 7.0 on, the image lies beside its modules.
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$1" --wildcards --no-anchored \
		'vmlinuz-*' 'modules/*/vmlinuz' 2>/dev/null || true
	rm -f "$deb"
	mkdir -p "$1/boot"
	if [ -e "$1/usr/lib/modules/$version/vmlinuz" ]; then
		mv "$1/usr/lib/modules/$version/vmlinuz" "$1/boot/vmlinuz-$version"
	fi
	[ -e "$1/boot/vmlinuz-$version" ] || { echo "no kernel in $2" >&2; exit 1; }
	;;
source)
	mkdir -p "$1"
	source_to "$(cd "$1" && pwd)" "$2"
	echo "$version"
	;;
*)
	echo "usage: apt-foreign.sh ARCH DIR depends|unpack|kernel|source ..." >&2
	exit 2
	;;
esac
