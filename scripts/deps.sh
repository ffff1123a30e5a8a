#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh [build|test|vm]: installs the Debian packages that are missing for building, or also for the tests. Says nothing if none is;
# without root it prints the command instead and ends with 1.
set -eu

what=${1:-build}

# PACKAGE PROBE...: what shows that the package, or another source of the same, is there.
needs() {
	cat <<-'EOF'
	gcc command gcc
	libc6-dev header stdio.h
	make command make
	pkg-config command pkg-config
	clang command clang
	bpftool command bpftool
	libbpf-dev library libbpf
	libelf-dev library libelf
	zlib1g-dev library zlib
	liblzma-dev library liblzma
	libdw-dev library libdw
	libzstd-dev library libzstd
	libcurl4-openssl-dev library libcurl
	libncurses-dev library ncursesw
	libiberty-dev header libiberty/demangle.h
	libinih-dev library inih
	libseccomp-dev library libseccomp
	binutils command objcopy
	EOF
	[ "$what" != build ] || return 0
	cat <<-'EOF'
	python3 command python3
	g++ command g++
	gdb command gdb
	tmux command tmux
	debuginfod command debuginfod
	dwz command dwz
	openssl command openssl
	protobuf-compiler command protoc
	python3-protobuf python google.protobuf
	python3-grpcio python grpc
	prometheus command promtool
	xz-utils command xz
	libclang-rt-14-dev clang fuzzer
	EOF
	[ "$what" = vm ] || return 0
	cat <<-'EOF'
	qemu-system-x86 command qemu-system-x86_64
	busybox-static busybox -
	cpio command cpio
	EOF
}

present() {
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 || [ -x "/usr/sbin/$2" ] ;;
	header) [ -e "/usr/include/$2" ] ;;
	library) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$2" ;;
	python) /usr/bin/python3 -c "import $2" >/dev/null 2>&1 ;;
	busybox) command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
	clang) command -v clang >/dev/null 2>&1 && echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
		clang -xc - -fsanitize=fuzzer -o /dev/null 2>/dev/null ;;
	esac
}

missing=$(needs | while read -r package kind name; do
	present "$kind" "$name" </dev/null || printf ' %s' "$package"
done)
[ -n "$missing" ] || exit 0

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
