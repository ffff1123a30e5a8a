#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-distros.sh [SUITE...]: builds and tests the working tree in Debian's releases (default:
# bookworm trixie sid), on this machine's kernel. debootstrap makes a tree of each from this
# machine's own source of packages, in build/distros (DISTROS=DIR), 2 to 4 GB each, kept for the
# next run. In each: scripts/top.sh, whose first screen has to come within two minutes without a
# warning; scripts/test.sh --quick (FULL=1: all tests); then, with the BPF programs of each clang of
# the release from 14 on (CLANGS="14 19": those), each tool, eight chains and four languages.
#   FRESH=1   makes the trees anew
#   UPDATE=1  writes the row of each suite that passed to docs/distros.txt, of which README's table
#             is made (scripts/gen-docs.sh)
# Needs root. All mounts are in a mount namespace of their own, which ends with this script.
set -eu
cd "$(dirname "$0")/.."

skip() {
	echo "SKIP distros: $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

[ "$(id -u)" = 0 ] || skip "needs root"
if [ -z "${SFBPF_OWN_MOUNTS:-}" ]; then
	scripts/deps.sh distros || true
	command -v debootstrap >/dev/null || skip "no debootstrap"
	unshare -m true 2>/dev/null || skip "no mount namespaces"
	SFBPF_OWN_MOUNTS=1 exec unshare -m --propagation private "$0" "$@"
fi

[ $# -gt 0 ] || set -- bookworm trixie sid
dir=$(realpath -m "${DISTROS:-build/distros}")
mkdir -p "$dir"
results=$(mktemp)
log=$(mktemp)
tree=

# Ends what still runs in the tree.
empty_tree() {
	[ -n "$tree" ] || return 0
	root=$(stat -c %d:%i "$tree")
	for process in /proc/[0-9]*; do
		[ "$(stat -Lc %d:%i "$process/root" 2>/dev/null)" != "$root" ] ||
			kill -9 "${process#/proc/}" 2>/dev/null || true
	done
}
trap 'empty_tree; rm -f "$results" "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "$*" | tee -a "$results"; }

# relay NAME: the lines of a test program with NAME before theirs.
relay() { sed -E "s/^(ok|FAIL|SKIP) /\\1 $1-/" | tee -a "$results"; }

# What debootstrap needs: URI and key of the first source of Debian's packages.
sources=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
uri=$(echo "$sources" | sed -n 's/^URIs: *\([^ ]*\).*/\1/p' | head -n 1)
key=$(echo "$sources" | sed -n 's/^Signed-By: *//p' | head -n 1)
if [ -z "$uri" ] && [ -r /etc/apt/sources.list ]; then
	uri=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list |
		head -n 1)
fi
[ -n "$uri" ] || skip "this machine has no source of packages"

make_tree() {	# SUITE: its tree, unless it is there
	[ -z "${FRESH:-}" ] || rm -rf --one-file-system "${dir:?}/$1" "$dir/$1.made"
	[ ! -e "$dir/$1.made" ] || return 0
	rm -rf --one-file-system "${dir:?}/$1"
	script=
	[ -e "/usr/share/debootstrap/scripts/$1" ] || script=/usr/share/debootstrap/scripts/sid
	# shellcheck disable=SC2086
	debootstrap --variant=minbase ${key:+"--keyring=$key"} "$1" "$dir/$1" "$uri" $script \
		>"$log" 2>&1 || return 1
	# How this machine reaches its source of packages; not what it does with packages.
	apt-config dump --format '%f "%v";%n' |
		grep -E '^Acquire::(Check-|[a-z]*::Proxy|https::)' \
			>"$dir/$1/etc/apt/apt.conf.d/00machine" || true
	[ ! -r /etc/ssl/certs/ca-certificates.crt ] ||
		cp /etc/ssl/certs/ca-certificates.crt "$dir/$1/etc/machine.crt"
	touch "$dir/$1.made"
}

enter_tree() {	# SUITE
	tree=$dir/$1
	for m in proc sys dev; do
		mountpoint -q "$tree/$m" || mount --rbind "/$m" "$tree/$m"
	done
	cp -L /etc/resolv.conf "$tree/etc/resolv.conf" 2>/dev/null || true
	# ClickHouse's engine is large.
	[ ! -d "$tree/src/build/chdb/node_modules" ] || mv "$tree/src/build/chdb" "$tree/chdb"
	rm -rf "$tree/src"
	mkdir -p "$tree/src/build"
	[ ! -d "$tree/chdb" ] || mv "$tree/chdb" "$tree/src/build/chdb"
	git ls-files -z --cached --others --exclude-standard |
		tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$tree/src"
}

# inside COMMAND...: in the tree, at the top of the source. The tree becomes the root directory of a
# mount namespace, not only that of a process: below another root there are no user namespaces.
inside() {
	# shellcheck disable=SC2016
	unshare -m --propagation private sh -c '
		mount --rbind "$1" "$1"
		cd "$1"
		pivot_root . mnt
		shift
		umount -l /mnt
		exec "$@"' sh "$tree" /usr/bin/env -i HOME=/root TERM=xterm LANG=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
		${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=/etc/machine.crt} \
		sh -c 'cd /src && exec "$@"' sh "$@"
}

first_screen() {	# SUITE
	began=$(date +%s)
	status=0
	inside scripts/top.sh -b -n 1 >"$log" 2>&1 </dev/null || status=$?
	took=$(($(date +%s) - began))
	if [ $status != 0 ]; then
		say "FAIL $1-top: exit status $status: $(tail -n 3 "$log" | tr '\n' ' ')"
	elif grep -qi 'warning' "$log"; then
		say "FAIL $1-top: $(grep -i -m 2 'warning' "$log" | tr '\n' ' ')"
	elif ! grep -q '^# sfbpf top: page 1' "$log"; then
		say "FAIL $1-top: no page: $(tail -n 1 "$log")"
	elif [ $took -gt 120 ]; then
		say "FAIL $1-top: the first screen came after $took s"
	else
		say "ok $1-top"
	fi
	echo "# $1: first screen after $took s"
	return $status
}

all_tests() {	# SUITE
	began=$(date +%s)
	quick=--quick
	[ -z "${FULL:-}" ] || quick=
	status=0
	# shellcheck disable=SC2086
	inside scripts/test.sh $quick >"$dir/$1-tests.log" 2>&1 </dev/null || status=$?
	summary=$(tail -n 1 "$dir/$1-tests.log")
	grep -E '^SKIP ' "$dir/$1-tests.log" | sort -u | sed "s/^/# $1: /" || true
	if [ $status = 0 ] && echo "$summary" | grep -q ' passed, 0 failed, '; then
		say "ok $1-tests"
	else
		grep -E '^FAIL ' "$dir/$1-tests.log" | sort -u | sed "s/^/# $1: /" || true
		say "FAIL $1-tests: $summary ($dir/$1-tests.log)"
	fi
	echo "# $1: $summary, after $(($(date +%s) - began)) s"
}

clangs_of() {	# of the release, from 14 on
	if [ -n "${CLANGS:-}" ]; then
		echo "$CLANGS" | tr ' ' '\n'
	else
		inside apt-cache search --names-only '^clang-[0-9]+$' |
			sed -n 's/^clang-\([0-9]*\) .*/\1/p' | awk '$1 >= 14' | sort -n
	fi
}

live() {	# PREFIX CHECK ARGUMENT...
	prefix=$1
	check=tests/live/check_$2.py
	shift 2
	status=0
	inside python3 -B "$check" "$@" >"$log" 2>&1 </dev/null || status=$?
	if [ $status != 0 ] && ! grep -q '^FAIL ' "$log"; then
		echo "FAIL all: exit status $status: $(tail -n 1 "$log")" >>"$log"
	fi
	relay "$prefix" <"$log"
}

# The live checks that differ with the compiler of the BPF programs.
each_clang() {	# SUITE
	for n in $(clangs_of); do
		if ! inside apt-get install -y --no-install-recommends "clang-$n" >"$log" 2>&1 \
			</dev/null; then
			say "SKIP $1-clang-$n: $(tail -n 1 "$log")"
			continue
		fi
		if ! inside make -s -j"$(nproc)" "CLANG=clang-$n" >"$log" 2>&1 </dev/null; then
			say "FAIL $1-clang-$n: $(tail -n 2 "$log" | tr '\n' ' ')"
			continue
		fi
		! grep -i warning "$log" || say "FAIL $1-clang-$n: warnings"
		live "$1-clang-$n" tools
		live "$1-clang-$n" chains rec60 rec400 sig callback drap dlmid threads coro
		for language in languages perl ruby php; do
			live "$1-clang-$n" $language native
		done
	done
}

# The row of README's table: release, gcc, glibc, libbpf, clang.
row() {
	inside sh -c '
		. /etc/os-release
		echo "Debian ${VERSION_ID:-sid} | $(gcc -dumpversion) |" \
			"$(ldd --version | sed -n "1s/.* //p") |" \
			"$(pkg-config --modversion libbpf | cut -d. -f1,2) |" \
			"$("$(scripts/find-clang.sh)" -dumpversion | cut -d. -f1)"'
}

# Compares with docs/distros.txt, or writes there.
table() {	# SUITE
	default=$(row)
	others=$(clangs_of | grep -vx "${default##* }" | tr '\n' ' ' | sed 's/ $//; s/ /, /g')
	line="| $default; $others |"
	name=${default%% |*}
	if [ -n "${UPDATE:-}" ]; then
		if grep -q "^FAIL $1-" "$results"; then
			say "SKIP $1-table: not written, as something failed"
			return 0
		fi
		{ grep -v "^| $name |" docs/distros.txt || true; echo "$line"; } | sort >"$log"
		cat "$log" >docs/distros.txt
		scripts/gen-docs.sh
		say "ok $1-table"
	elif grep -qxF "$line" docs/distros.txt; then
		say "ok $1-table"
	elif [ "$1" = sid ] || [ -n "${CLANGS:-}" ]; then
		say "SKIP $1-table: README's row is of other versions than $line"
	else
		say "FAIL $1-table: docs/distros.txt does not say: $line"
	fi
}

for suite; do
	began=$(date +%s)
	if ! make_tree "$suite"; then
		say "SKIP $suite: no tree: $(tail -n 1 "$log")"
		continue
	fi
	enter_tree "$suite"
	echo "# $suite: the tree was there after $(($(date +%s) - began)) s"
	if first_screen "$suite"; then
		all_tests "$suite"
		each_clang "$suite"
		table "$suite"
	fi
	empty_tree
	tree=
done

passed=$(grep -c '^ok ' "$results" || true)
failed=$(grep -c '^FAIL ' "$results" || true)
skipped=$(grep -c '^SKIP ' "$results" || true)
echo
grep '^SKIP ' "$results" || true
grep '^FAIL ' "$results" || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
