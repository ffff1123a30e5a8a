#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-languages.sh [DIR]: tests/live/check_languages.py on the interpreters of several Debian
# releases and on those of pyenv, if there is one. The releases' packages come from this machine's
# own source of packages, and are unpacked below DIR (default build/userlands), not installed.
# Needs root; a release that cannot be had is skipped.
set -eu
cd "$(dirname "$0")/.."
dir=$(realpath -m "${1:-build/userlands}")
: "${SECONDS_PER_CASE:=1}"
: "${CHECKS:=chains lines short redefined offcpu}"

# unpack SUITE PACKAGE...: with all that they depend on, below $dir/SUITE/root.
unpack() {
	suite=$1
	shift
	to=$dir/$suite
	uri=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
	[ -n "$uri" ] || return 1
	mkdir -p "$to/lists/partial" "$to/cache/archives/partial" "$to/root/tmp" "$to/root/proc"
	: >>"$to/status"
	key=$(sed -n 's/^Signed-By: *//p' /etc/apt/sources.list.d/*.sources | head -n 1)
	echo "deb${key:+ [signed-by=$key]} $uri $suite main" >"$to/sources.list"
	cat >"$to/apt.conf" <<-END
	Dir::Etc::sourcelist "$to/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::State::lists "$to/lists";
	Dir::State::status "$to/status";
	Dir::Cache "$to/cache";
	APT::Sandbox::User "root";
	APT::Install-Recommends "false";
	END
	export APT_CONFIG="$to/apt.conf"
	apt-get -q update && apt-get -q -y --download-only install "$@" || return 1
	for d in bin sbin lib lib64; do
		mkdir -p "$to/root/usr/$d"
		[ -e "$to/root/$d" ] || ln -s "usr/$d" "$to/root/$d"
	done
	for d in "$to"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$d" | tar -x -C "$to/root" --keep-directory-symlink
	done
}

have() {
	[ -e "$dir/$1/done" ] || { (unpack "$@") >"$dir/$1.log" 2>&1 && touch "$dir/$1/done"; }
}

pythons=
mkdir -p "$dir"
for release in "bullseye python3.9" "trixie python3.13" "sid python3.14"; do
	# shellcheck disable=SC2086
	if have $release; then
		pythons="$pythons ${release% *}-${release#* }=$dir/${release% *}/root:/usr/bin/${release#* }"
	else
		echo "SKIP languages-${release% *}: $(tail -n 1 "$dir/${release% *}.log")"
	fi
done
for path in /usr/bin/python3.*[0-9] /usr/bin/python3.*-dbg \
	"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3.?*; do
	case $path in
	*-config | *.py) continue ;;
	*/3.[0-7].*) continue ;;
	esac
	version=$(echo "$path" | sed -n 's|.*/versions/\([^/]*\)/.*|\1|p')
	[ -x "$path" ] && pythons="$pythons $version=:$path"
done
# shellcheck disable=SC2086
PYTHONS=$pythons SECONDS=$SECONDS_PER_CASE \
	exec /usr/bin/python3 -B tests/live/check_languages.py $CHECKS
