#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-languages.sh [DIR]: tests/live/check_languages.py on the interpreters of several Debian
# releases and on those of pyenv, if there is one; check_ruby.py on the releases' Ruby, and
# check_java.py, check_php.py and check_perl.py on their JDKs, PHP and Perl and on this machine's.
# The releases' packages come from this machine's own source of packages, and are unpacked below DIR
# (default build/userlands), not installed. Needs root; a release that cannot be had is skipped.
set -eu
cd "$(dirname "$0")/.."
dir=$(realpath -m "${1:-build/userlands}")
: "${CHECKS:=chains lines short redefined offcpu}"
: "${PHP_CHECKS:=chains hot lines native short offcpu}"

# unpack NAME SUITE PACKAGE...: with all that they depend on, below $dir/NAME/root.
unpack() {
	to=$dir/$1
	suite=$2
	shift 2
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

# have NAME SUITE PACKAGE...: the first package tells whether the root of that name has them all.
have() {
	[ -e "$dir/$1/done-$3" ] && return
	(unpack "$@") >"$dir/$1.log" 2>&1 && touch "$dir/$1/done-$3"
}

pythons=
rubies=
phps=
mkdir -p "$dir"
for release in "bullseye python3.9 ruby2.7" "trixie python3.13 ruby3.3" "sid python3.14 ruby3.3"; do
	# shellcheck disable=SC2086
	set -- $release
	if have "$1" "$@"; then
		pythons="$pythons $1-$2=$dir/$1/root:/usr/bin/$2"
		rubies="$rubies $1-$3=$dir/$1/root:/usr/bin/$3"
	else
		echo "SKIP languages-$1: $(tail -n 1 "$dir/$1.log")"
	fi
done
for release in "bullseye php7.4-cli php7.4-opcache" "trixie php8.4-cli php8.4-opcache"; do
	suite=${release%% *}
	path=$(echo "$release" | sed 's|^[^ ]* \([^ ]*\)-cli.*|/usr/bin/\1|')
	# shellcheck disable=SC2086
	if have "$suite" $release; then
		phps="$phps $suite-${path##*/}=$dir/$suite/root:$path"
	else
		echo "SKIP php-$suite: $(tail -n 1 "$dir/$suite.log")"
	fi
done
perls=
for suite in bullseye trixie sid; do
	if have "$suite-perl" "$suite" perl; then
		perls="$perls $suite-perl=$dir/$suite-perl/root:/usr/bin/perl"
	else
		echo "SKIP perl-$suite: $(tail -n 1 "$dir/$suite-perl.log")"
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
# Java needs /proc. Its directories are mounted only while the check runs.
javas=
mounted=
trap 'for d in $mounted; do umount "$d"; done' EXIT
trap 'exit 1' HUP INT TERM
for release in "sid openjdk-8-jdk-headless" "bullseye openjdk-11-jdk-headless" \
	"trixie openjdk-21-jdk-headless" "sid openjdk-25-jdk-headless"; do
	suite=${release% *}
	number=${release#* openjdk-}
	number=${number%%-*}
	tree=$suite-java-$number
	root=$dir/$tree/root
	# shellcheck disable=SC2086
	if have "$tree" $release; then
		javas="$javas $number=$root:/usr/lib/jvm/java-$number-openjdk-amd64"
		mount -t proc proc "$root/proc" && mounted="$mounted $root/proc"
	else
		echo "SKIP java-$number: $(tail -n 1 "$dir/$tree.log")"
	fi
done
for home in /usr/lib/jvm/*; do
	[ -h "$home" ] || [ ! -x "$home/bin/java" ] || javas="$javas $(basename "$home")=:$home"
done
status=0
# shellcheck disable=SC2086
PYTHONS=$pythons /usr/bin/python3 -B tests/live/check_languages.py $CHECKS || status=1
[ -z "$javas" ] || JAVAS=$javas JAVAC=$(command -v javac) \
	/usr/bin/python3 -B tests/live/check_java.py || status=1
[ -z "$rubies" ] || RUBIES=$rubies /usr/bin/python3 -B tests/live/check_ruby.py || status=1
[ ! -x /usr/bin/php8.2 ] || phps="$phps /usr/bin/php8.2"
# shellcheck disable=SC2086
[ -z "$phps" ] || PHPS=$phps /usr/bin/python3 -B tests/live/check_php.py $PHP_CHECKS || status=1
[ ! -x /usr/bin/perl ] || perls="$perls /usr/bin/perl"
[ -z "$perls" ] || PERLS=$perls /usr/bin/python3 -B tests/live/check_perl.py || status=1
exit $status
