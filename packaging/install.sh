#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install.sh [--prefix DIR] [--systemd|--no-systemd]: installs this archive below DIR (/usr/local):
# the program and its names, man pages, completions, documentation and, where systemd is, the
# agent's unit and /etc/sfbpf/agent.ini. Neither enables nor starts the agent; one that runs is
# restarted. $DESTDIR is put before all paths.
# install.sh [--prefix DIR] --uninstall: removes what was installed below DIR.
# For any POSIX shell, busybox's too.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${DESTDIR:-}
prefix=/usr/local
systemd=
uninstall=

die() {
	echo "install.sh: $*" >&2
	exit 1
}

while [ $# -gt 0 ]; do
	case $1 in
	--prefix)
		[ $# -gt 1 ] || die "--prefix needs a directory"
		prefix=$2
		shift
		;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--systemd) systemd=yes ;;
	--no-systemd) systemd=no ;;
	--uninstall) uninstall=yes ;;
	-h | --help)
		sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"
		exit 0
		;;
	*) die "unknown option '$1'; see --help" ;;
	esac
	shift
done
prefix=${prefix%/}
case $prefix in
/* | '') ;;
*) die "--prefix: '$prefix' does not begin with /" ;;
esac
case $prefix in
*[!A-Za-z0-9/._+@-]*) die "--prefix: the unit cannot name '$prefix'" ;;
esac
doc=$prefix/share/doc/sfbpf
list=$doc/installed

# ---- Removing ----

if [ "$uninstall" ]; then
	[ -r "$dest$list" ] || die "nothing to remove: there is no $dest$list"
	kept=
	while read -r f; do
		case $f in
		*/agent.ini)
			if ! cmp -s "$dest$f" "$dest$doc/agent.ini"; then
				kept=$f
				continue
			fi
			;;
		esac
		echo "$f"
	done <"$dest$list" >"$dest$list.gone"
	while read -r f; do
		rm -f "$dest$f"
	done <"$dest$list.gone"
	rm -f "$dest$list" "$dest$list.gone"
	rmdir "$dest$doc/licences" "$dest$doc" "$dest/etc/sfbpf" 2>/dev/null || true
	[ ! "$kept" ] || echo "kept, because it was changed: $dest$kept"
	exit 0
fi

# ---- Installing ----

installed() {
	echo "$1" >>"$dest$list.new"
}

# put MODE FILE TARGET: a running program is replaced, not written to.
put() {
	mkdir -p "$dest${3%/*}"
	cp "$2" "$dest$3.new"
	chmod "$1" "$dest$3.new"
	mv -f "$dest$3.new" "$dest$3"
	installed "$3"
}

# put_all MODE DIRECTORY TARGET: its files and links.
put_all() {
	for f in "$2"/*; do
		if [ -h "$f" ]; then
			mkdir -p "$dest$3"
			ln -sf "$(readlink "$f")" "$dest$3/${f##*/}"
			installed "$3/${f##*/}"
		elif [ -f "$f" ]; then
			put "$1" "$f" "$3/${f##*/}"
		fi
	done
}

mkdir -p "$dest$doc" || die "cannot write to $dest$doc"
: >"$dest$list.new"
put_all 755 "$here/bin" "$prefix/bin"
for d in man/man1 bash-completion/completions zsh/site-functions; do
	put_all 644 "$here/share/$d" "$prefix/share/$d"
done
put_all 644 "$here/docs" "$doc"
put_all 644 "$here/licences" "$doc/licences"
for f in README.md LICENSE packaging/agent.ini; do
	put 644 "$here/$f" "$doc/${f##*/}"
done
put 755 "$here/install.sh" "$doc/install.sh"

if [ ! "$systemd" ]; then
	for d in /usr/lib/systemd/system /lib/systemd/system; do
		[ ! -d "$dest$d" ] || systemd=yes
	done
fi
if [ "$systemd" = yes ]; then
	# Directories below other prefixes are not searched for units.
	case $prefix in
	'' | /usr | /usr/local) unit=$prefix/lib/systemd/system/sfbpf-agent.service ;;
	*) unit=/etc/systemd/system/sfbpf-agent.service ;;
	esac
	made=$dest$list.unit
	sed -e "/^ExecStart=/s,/usr/bin/,$prefix/bin/," \
		-e "/^Documentation=/s,/usr/share/doc/,$prefix/share/doc/," \
		"$here/packaging/sfbpf-agent.service" >"$made"
	put 644 "$made" "$unit"
	rm -f "$made"
	if [ -e "$dest/etc/sfbpf/agent.ini" ]; then
		installed /etc/sfbpf/agent.ini
	else
		put 640 "$here/packaging/agent.ini" /etc/sfbpf/agent.ini
	fi
fi

# Files of an earlier version that this one does not have.
if [ -r "$dest$list" ]; then
	while read -r f; do
		grep -qxF "$f" "$dest$list.new" || [ "${f##*/}" = agent.ini ] || rm -f "$dest$f"
	done <"$dest$list"
fi
mv -f "$dest$list.new" "$dest$list"
# An agent of the version before goes on as this one; one that does not run is not started.
if [ "$systemd" = yes ] && [ -z "$dest" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload && systemctl try-restart sfbpf-agent.service || true
fi
echo "installed: $dest$prefix/bin/sfbpf"
[ "$systemd" != yes ] || echo "the agent's unit: $dest$unit; its configuration:" \
	"$dest/etc/sfbpf/agent.ini. To start it: systemctl daemon-reload &&" \
	"systemctl enable --now sfbpf-agent"
