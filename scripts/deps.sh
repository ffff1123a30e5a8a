#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh [build|test|vm|arm64]: installs the Debian packages that are missing for building, or also
# for the tests. Says nothing if none is; without root it prints the command instead and ends with
# 1. test: also ClickHouse's engine (npm's chdb, 546 MB), into build/chdb, where there is npm;
# without it those checks are skipped. arm64: for building for AArch64 on another machine and
# running that in a VM; its libraries are not installed but unpacked into build/sysroot-arm64.
set -eu

cd "$(dirname "$0")/.."
what=${1:-build}

# PACKAGE PROBE...: what shows that the package, or another source of the same, is there.
needs() {
	cat <<-'EOF'
	gcc command gcc
	libc6-dev header stdio.h
	make command make
	pkg-config command pkg-config
	clang clang bpf
	bpftool command bpftool
	libbpf-dev library libbpf
	libelf-dev library libelf
	zlib1g-dev library zlib
	liblzma-dev library liblzma
	libdw-dev library libdw
	libzstd-dev library libzstd
	libcurl4-openssl-dev library libcurl
	libmicrohttpd-dev library libmicrohttpd
	libdebuginfod-dev library libdebuginfod
	libncurses-dev library ncursesw
	libiberty-dev header libiberty/demangle.h
	libinih-dev library inih
	nettle-dev library nettle
	libseccomp-dev library libseccomp
	libzydis-dev header Zydis/Zydis.h
	binutils command objcopy
	EOF
	[ "$what" != build ] || return 0
	cat <<-'EOF'
	python3 python sys
	g++ command g++
	gdb command gdb
	tmux command tmux
	debuginfod command debuginfod
	dwz command dwz
	libc6-dbg directory /usr/lib/debug/.build-id
	openssl command openssl
	protobuf-compiler command protoc
	python3-protobuf python google.protobuf
	python3-grpcio python grpc
	prometheus command promtool
	xz-utils command xz
	groff-base command groff
	zsh command zsh
	libclang-rt-14-dev clang fuzzer
	ruby command ruby
	php8.2-cli command php
	php8.2-opcache glob /usr/lib/php/*/opcache.so
	perl command pod2man
	zstd command zstd
	libjpeg-turbo-progs command djpeg
	golang-go command go
	golang-google-grpc-dev directory /usr/share/gocode/src/google.golang.org/grpc
	EOF
	case $what in
	vm)
		cat <<-'EOF'
		qemu-system-x86 command qemu-system-x86_64
		busybox-static busybox -
		cpio command cpio
		EOF
		;;
	arm64)
		cat <<-'EOF'
		qemu-system-arm command qemu-system-aarch64
		gcc-aarch64-linux-gnu command aarch64-linux-gnu-gcc
		g++-aarch64-linux-gnu command aarch64-linux-gnu-g++
		cpio command cpio
		EOF
		;;
	esac
}

# Unpacked, not installed: dpkg's list of architectures stays as it is.
sysroot_arm64() {
	scripts/apt-foreign.sh arm64 build/foreign-arm64 unpack build/sysroot-arm64 \
		libbpf-dev libbpf1 libelf-dev libelf1 zlib1g-dev zlib1g liblzma-dev liblzma5 \
		libseccomp-dev libseccomp2 libinih-dev libinih1 libncurses-dev libncursesw6 \
		libtinfo6 libiberty-dev busybox-static
	scripts/apt-foreign.sh arm64 build/foreign-arm64 unpack build/sysroot-arm64/musl \
		musl musl-dev
}

clickhouse_engine() {
	[ ! -d build/chdb/node_modules/chdb ] && [ -z "${CHDB:-}" ] &&
		command -v npm >/dev/null 2>&1 || return 0
	if [ "$(df -Pm . | awk 'NR == 2 { print $4 }')" -lt 2048 ]; then
		echo "deps.sh: less than 2 GB of disk: ClickHouse's engine is not installed" >&2
		return 0
	fi
	echo "installing npm's chdb" >&2
	mkdir -p build/chdb
	if ! timeout 150 npm install --prefix build/chdb --no-audit --no-fund --fetch-retries=0 \
		--silent chdb@3.4.0 >build/chdb/log 2>&1 </dev/null; then
		echo "deps.sh: ClickHouse's engine is not there: $(tail -n 1 build/chdb/log)" >&2
		rm -rf build/chdb/node_modules
	fi
}

also() {
	case $what in
	test) clickhouse_engine ;;
	arm64) sysroot_arm64 ;;
	esac
}

present() {
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 || [ -x "/usr/sbin/$2" ] ;;
	header) [ -e "/usr/include/$2" ] ;;
	library) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$2" ;;
	directory) [ -d "$2" ] ;;
	glob) for f in $2; do [ -e "$f" ] && break; done ;;
	python) /usr/bin/python3 -c "import $2" >/dev/null 2>&1 ;;
	busybox) command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
	clang) clang=${CLANG:-$(scripts/find-clang.sh)}
		command -v "$clang" >/dev/null 2>&1 || return 1
		[ "$2" != fuzzer ] ||
			echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
			"$clang" -xc - -fsanitize=fuzzer -o /dev/null 2>/dev/null ;;
	esac
}

missing=$(needs | while read -r package kind name; do
	present "$kind" "$name" </dev/null || printf ' %s' "$package"
done)
if [ -z "$missing" ]; then
	also
	exit 0
fi

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "missing:$missing" >&2
	echo "as root: $install" >&2
	exit 1
fi
echo "installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -q && $install; } >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	exit 1
fi
also
