#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make-deb.sh OUTPUT VERSION: a Debian package of what is built in OUTPUT, with the agent's unit and
# configuration, as OUTPUT/sfbpf_VERSION_ARCH.deb. The agent is neither enabled nor started by
# installing it; an upgrade restarts it if it runs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath "$1")
version=$2
if ! command -v dpkg-deb >/dev/null || ! command -v dpkg-shlibdeps >/dev/null; then
	echo "make-deb.sh: needs dpkg-dev" >&2
	exit 1
fi
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/pkg/DEBIAN" "$root/pkg/usr/share/doc/sfbpf" "$root/pkg/lib/systemd/system" \
	"$root/pkg/etc/sfbpf" "$root/debian"
make -s install OUTPUT="$1" PREFIX=/usr DESTDIR="$root/pkg"
strip --strip-unneeded "$root/pkg/usr/bin/sfbpf"
install -m 644 packaging/sfbpf-agent.service "$root/pkg/lib/systemd/system/"
install -m 640 packaging/agent.ini "$root/pkg/etc/sfbpf/"
install -m 644 README.md docs/*.md "$root/pkg/usr/share/doc/sfbpf/"
install -m 644 LICENSE "$root/pkg/usr/share/doc/sfbpf/copyright"

# Which packages its libraries are from: dpkg-shlibdeps wants a source package around it.
printf 'Source: sfbpf\n\nPackage: sfbpf\nArchitecture: any\n' > "$root/debian/control"
depends=$(cd "$root" && dpkg-shlibdeps -O pkg/usr/bin/sfbpf 2>/dev/null |
	sed -n 's/^shlibs:Depends=//p')

echo /etc/sfbpf/agent.ini > "$root/pkg/DEBIAN/conffiles"
cat > "$root/pkg/DEBIAN/control" <<EOF
Package: sfbpf
Version: $version
Architecture: $arch
Maintainer: sfbpf developers <root@localhost>
Section: utils
Priority: optional
Depends: $depends
Installed-Size: $(du -sk "$root/pkg" | cut -f1)
Description: system-wide sampling profiler
 Full user and kernel stacks of every process at once, unwound in the kernel from .sframe and
 .eh_frame tables. With sfbpf-agent.service, an always-on agent that sends profiles to
 OpenTelemetry collectors, Pyroscope, Parca or ClickHouse.
EOF
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$root/pkg/DEBIAN/"
dpkg-deb --root-owner-group -b "$root/pkg" "$out/sfbpf_${version}_$arch.deb" >/dev/null
echo "$1/sfbpf_${version}_$arch.deb"
