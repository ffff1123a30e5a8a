#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# static-libs.sh [arm64]: the libraries that `make STATIC=1` lacks in Debian, in build/static-ARCH:
# include/, lib/ and the copyright/ of each. They are built from Debian's own source packages, once
# for each version. With arm64, for AArch64 on another machine. Needs what `scripts/deps.sh release`
# installs. Why these: docs/release.md.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
jobs=$(nproc)

host=
arch=$(uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
if [ "${1:-$arch}" != "$arch" ]; then
	[ "$1" = arm64 ] || { echo "usage: static-libs.sh [arm64]" >&2; exit 2; }
	arch=arm64
	host=aarch64-linux-gnu
	sysroot=$top/build/sysroot-arm64
	PKG_CONFIG_LIBDIR=$sysroot/usr/lib/$host/pkgconfig
	PKG_CONFIG_SYSROOT_DIR=$sysroot
	export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
fi
root=$top/build/static-$arch
mkdir -p "$root/include" "$root/lib" "$root/copyright" "$root/have" "$root/build"
log=$root/log

CC=${host:+$host-}gcc
AR=${host:+$host-}ar
RANLIB=${host:+$host-}ranlib
# Position independent, as are the libraries of the distribution.
CFLAGS="-O2 -fPIE -ffile-prefix-map=$root/build=. -w"
CPPFLAGS="-I$root/include${host:+ -isystem $sysroot/usr/include
	-isystem $sysroot/usr/include/$host}"
CPPFLAGS=$(echo $CPPFLAGS)
LDFLAGS="-static -L$root/lib${host:+ -L$sysroot/usr/lib/$host}"
export CC AR RANLIB CFLAGS CPPFLAGS LDFLAGS

# configured FLAGS...: a static library of a package with GNU's configure.
configured() {
	./configure ${host:+--host="$host"} --prefix="$root" --libdir="$root/lib" \
		--enable-static --disable-shared --disable-dependency-tracking "$@"
}

# Only HTTP, TLS and proxies. Names are resolved by the C library. The configuration of the
# target's OpenSSL could name modules of another version, so it is not read.
build_curl() {
	configured --with-openssl --with-nghttp2 --with-zlib --enable-threaded-resolver \
		--disable-openssl-auto-load-config --with-ca-fallback --without-ca-bundle \
		--without-ca-path --without-brotli --without-zstd --without-libidn2 \
		--without-libpsl --without-librtmp --without-libssh2 --without-libgsasl \
		--disable-ldap --disable-ldaps --disable-ftp --disable-rtsp --disable-dict \
		--disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
		--disable-smtp --disable-gopher --disable-mqtt --disable-manual --disable-ntlm \
		--disable-tls-srp --disable-alt-svc --disable-hsts --disable-docs
	make -C lib -j"$jobs" install
	make -C include install
}

# Entries of common terminals are part of the library, for systems without a database.
build_ncurses() {
	./configure ${host:+--host="$host"} --prefix="$root" --libdir="$root/lib" --enable-widec \
		--without-shared --without-debug --without-ada --without-cxx --without-cxx-binding \
		--without-progs --without-tests --without-manpages --disable-db-install \
		--disable-stripping --without-gpm --enable-overwrite \
		--with-build-cc=gcc --with-tic-path=/usr/bin/tic \
		--with-infocmp-path=/usr/bin/infocmp \
		--with-default-terminfo-dir=/usr/share/terminfo \
		--with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo \
		--with-fallbacks="$(terminals | paste -sd,)"
	make -j"$jobs" libs
	make -C include install
	make -C ncurses install
}

terminals() {
	for t in xterm xterm-256color screen screen-256color tmux tmux-256color linux vt100 vt220 \
		rxvt-unicode-256color ansi; do
		! infocmp "$t" >/dev/null 2>&1 || echo "$t"
	done
}

# `serve` speaks plain HTTP.
build_libmicrohttpd() {
	configured --disable-https --disable-doc --disable-examples --disable-curl
	make -C src/include install
	make -C src/microhttpd -j"$jobs" install
}

# Only the client of debuginfod. libdw is the distribution's.
build_elfutils() {
	LDFLAGS="${LDFLAGS#-static}" libcurl_CFLAGS="-I$root/include" libcurl_LIBS=-lcurl \
		configured --disable-debuginfod --enable-libdebuginfod --disable-nls \
		--without-bzlib --disable-symbol-versioning
	make -C debuginfod libdebuginfod.a
	cp debuginfod/libdebuginfod.a "$root/lib/"
	mkdir -p "$root/include/elfutils"
	cp debuginfod/debuginfod.h "$root/include/elfutils/"
}

# Needs only headers of zycore.
build_zydis() {
	cp -r /usr/include/Zycore include/Zydis "$root/include/"
	mkdir -p objects
	for f in src/*.c; do
		o=objects/$(basename "$f" .c).o
		# shellcheck disable=SC2086
		$CC $CFLAGS $CPPFLAGS -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -DNDEBUG \
			-Iinclude -Isrc -c "$f" -o "$o"
	done
	rm -f "$root/lib/libZydis.a"
	$AR rcs "$root/lib/libZydis.a" objects/*.o
}

for package in curl ncurses libmicrohttpd elfutils zydis; do
	version=$(scripts/apt-foreign.sh "$(dpkg --print-architecture)" build/sources source \
		build/sources/unpacked "$package")
	[ ! -e "$root/have/$version" ] || continue
	echo "building $version for $arch" >&2
	rm -rf "$root/build/$package"
	cp -a "build/sources/unpacked/$package" "$root/build/"
	# Patches of files that configure was made from shall not call for autoconf.
	find "$root/build/$package" \( -name aclocal.m4 -o -name configure -o -name '*.in' \) \
		-exec touch {} +
	set +e # a shell does not end at errors where its status is asked for
	(set -ex; cd "$root/build/$package"; "build_$package") >"$log" 2>&1
	status=$?
	set -e
	if [ $status != 0 ]; then
		tail -n 30 "$log" >&2
		echo "static-libs.sh: $version: the whole log is $log" >&2
		exit 1
	fi
	cp "build/sources/unpacked/$package/debian/copyright" "$root/copyright/$package"
	rm -rf "$root/have/${package}"_* "$root/build/$package"
	touch "$root/have/$version"
	rm -f "$root/ready"
done
[ -e "$root/ready" ] || touch "$root/ready"
