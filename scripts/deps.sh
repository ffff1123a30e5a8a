#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh [build|quick|test|vm|arm64|distros|release]: installs the packages that are missing for
# building, or also for the tests, on Debian and Ubuntu. It asks apt which of them the release has.
# Says nothing if none is missing; without root it prints the command instead and ends with 1; on
# other systems it prints that of their package manager and ends with 1.
#   quick    for test.sh --quick
#   test     for test.sh. Starts no server that it installs, nor does the next boot. Also
#            ClickHouse's engine (npm's chdb, 546 MB), into build/chdb
#   vm       for other kernels
#   arm64    for building for AArch64 on another machine and running that in a VM; its libraries
#            are not installed but unpacked into build/sysroot-arm64
#   distros  for making trees of other releases
#   release  for the archives of release.sh
set -eu

cd "$(dirname "$0")/.."
what=${1:-build}

# PACKAGE[|PACKAGE...][?] PROBE...: the first of these that the release has is installed. PROBE
# shows that it, or another source of the same, is there. ?: what needs it is left out, or its tests
# are skipped, where the release has none of them.
needs() {
	if [ "$what" = distros ]; then
		echo "debootstrap command debootstrap"
		return 0
	fi
	cat <<-'EOF'
	gcc command gcc
	libc6-dev header stdio.h
	make command make
	pkg-config|pkgconf command pkg-config
	clang clang bpf
	bpftool|linux-tools-generic bpftool -
	libbpf-dev library libbpf
	libelf-dev library libelf
	zlib1g-dev library zlib
	liblzma-dev library liblzma
	libdw-dev library libdw
	libzstd-dev library libzstd
	libcurl4-openssl-dev library libcurl
	libmicrohttpd-dev library libmicrohttpd
	libdebuginfod-dev? library libdebuginfod
	libncurses-dev library ncursesw
	libiberty-dev header libiberty/demangle.h
	libinih-dev library inih
	nettle-dev library nettle
	libseccomp-dev library libseccomp
	libzydis-dev? header Zydis/Zydis.h
	binutils command objcopy
	EOF
	case $what in
	build) ;;
	release) needs_release ;;
	quick) needs_quick ;;
	*)
		needs_quick
		needs_tests ;;
	esac
}

needs_release() {
	cat <<-'EOF'
	libbz2-dev header bzlib.h
	libssl-dev library openssl
	libnghttp2-dev library libnghttp2
	dpkg-dev command dpkg-source
	patch command patch
	ncurses-bin command tic
	ncurses-base file /lib/terminfo/x/xterm
	EOF
	[ "$(uname -m)" != x86_64 ] || echo gcc-aarch64-linux-gnu command aarch64-linux-gnu-gcc
}

# The programs that know their chains, and the interpreters that cost little.
needs_quick() {
	cat <<-'EOF'
	python3 python sys
	g++ command g++
	groff-base command groff
	zsh command zsh
	perl command pod2man
	ruby command ruby
	php-cli? command php
	EOF
}

needs_tests() {
	cat <<-'EOF'
	gdb command gdb
	tmux command tmux
	debuginfod? command debuginfod
	dwz command dwz
	libc6-dbg directory /usr/lib/debug/.build-id
	openssl command openssl
	protobuf-compiler command protoc
	python3-protobuf python google.protobuf
	python3-grpcio? python grpc
	prometheus? command promtool
	xz-utils command xz
	clang-16? command clang-16
	clang-19? command clang-19
	clang-22? command clang-22
	libclang-rt-VERSION-dev|libclang-common-VERSION-dev fuzzer -
	zstd command zstd
	libjpeg-turbo-progs command djpeg
	golang-go command go
	golang-google-grpc-dev directory /usr/share/gocode/src/google.golang.org/grpc
	EOF
	case $what in
	test)
		cat <<-'EOF'
		clang-format-14? command clang-format-14
		chromium? command chromium
		nodejs command node
		npm? command npm
		default-jdk-headless? command javac
		rustc? command rustc
		luajit? command luajit
		python3-greenlet? python greenlet
		libcoro-perl? file /var/lib/dpkg/info/libcoro-perl.list
		libphp-embed? file /usr/lib/libphp.so
		mono-mcs|mono-devel? command mcs
		erlang-base? command erlc
		redis-server? command redis-server
		nginx? command nginx
		sqlite3 command sqlite3
		linux-perf? command perf
		dpkg-dev command dpkg-shlibdeps
		btrfs-progs? command mkfs.btrfs
		x264? command x264
		dav1d? command dav1d
		ffmpeg? command ffmpeg
		busybox-static? command busybox
		libc6-arm64-cross? directory /usr/aarch64-linux-gnu/lib
		llvm command llvm-objdump
		EOF
		;;
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

# MANAGER: its command that installs what a build needs, with its names of the packages.
elsewhere() {
	case $1 in
	dnf)
		echo "dnf install gcc make pkgconf-pkg-config clang bpftool libbpf-devel" \
			"elfutils-devel elfutils-debuginfod-client-devel zlib-devel xz-devel" \
			"libzstd-devel libcurl-devel libmicrohttpd-devel ncurses-devel" \
			"binutils-devel inih-devel nettle-devel libseccomp-devel zydis-devel" ;;
	zypper)
		echo "zypper install gcc make pkgconf clang bpftool libbpf-devel libdw-devel" \
			"libelf-devel libdebuginfod-devel zlib-devel xz-devel libzstd-devel" \
			"libcurl-devel libmicrohttpd-devel ncurses-devel binutils-devel" \
			"inih-devel libnettle-devel libseccomp-devel zydis-devel" ;;
	pacman)
		echo "pacman -S --needed gcc make pkgconf clang bpf libbpf libelf debuginfod" \
			"zlib xz zstd curl libmicrohttpd ncurses binutils libinih nettle" \
			"libseccomp zydis" ;;
	apk)
		echo "apk add build-base pkgconf clang llvm linux-headers bpftool libbpf-dev" \
			"elfutils-dev zlib-dev xz-dev zstd-dev curl-dev libmicrohttpd-dev" \
			"ncurses-dev binutils-dev inih-dev nettle-dev libseccomp-dev zydis-dev" ;;
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

# Of an archive for AArch64. Its shared libraries are only for configure scripts.
release_arm64() {
	[ "$(uname -m)" = x86_64 ] || return 0
	scripts/apt-foreign.sh arm64 build/foreign-arm64 unpack build/sysroot-arm64 \
		libbpf-dev libbpf1 libelf-dev libelf1 zlib1g-dev zlib1g liblzma-dev liblzma5 \
		libseccomp-dev libseccomp2 libinih-dev libinih1 libiberty-dev libdw-dev \
		libbz2-dev libzstd-dev nettle-dev libssl-dev libnghttp2-dev
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
	release) release_arm64 ;;
	esac
}

# Ubuntu's bpftool in the PATH fails unless the running kernel's own is installed.
bpftool_runs() {
	for tool in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool; do
		! "$tool" version >/dev/null 2>&1 || return 0
	done
	return 1
}

present() {
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 || [ -x "/usr/sbin/$2" ] ;;
	header) [ -e "/usr/include/$2" ] ;;
	library) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$2" ;;
	directory) [ -d "$2" ] ;;
	file) [ -e "$2" ] ;;
	python) /usr/bin/python3 -c "import $2" >/dev/null 2>&1 ;;
	bpftool) bpftool_runs ;;
	busybox) command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
	clang | fuzzer)
		clang=${CLANG:-$(scripts/find-clang.sh)}
		command -v "$clang" >/dev/null 2>&1 || return 1
		[ "$1" != fuzzer ] ||
			echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
			"$clang" -xc - -fsanitize=fuzzer -o /dev/null 2>/dev/null
		;;
	esac
}

missing=$(needs | while read -r packages kind name; do
	present "$kind" "$name" </dev/null || echo "$packages"
done)
if [ -z "$missing" ]; then
	also
	exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
	echo "deps.sh: this system has no apt-get; missing here:" >&2
	echo "$missing" | sed 's/[|?].*//' | tr '\n' ' ' | fold -s -w 90 | sed 's/^/  /' >&2
	for manager in dnf zypper pacman apk; do
		command -v "$manager" >/dev/null 2>&1 || continue
		printf '\nfor building, as root: %s\n' "$(elsewhere "$manager")" >&2
		break
	done
	exit 1
fi

log=$(mktemp)
offered=$(mktemp)
policy=
quiet() { "$@" >"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; exit 1; }; }
trap 'rm -f "$log" "$offered" $policy' EXIT
trap 'exit 1' INT TERM
export DEBIAN_FRONTEND=noninteractive
[ "$(id -u)" != 0 ] || quiet apt-get update -q

# The version of the compiler that `clang` is or will be.
version=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' |
	head -n 1)
! command -v clang >/dev/null 2>&1 ||
	version=$(clang -dumpversion | sed 's/\..*//')
missing=$(echo "$missing" | sed "s/VERSION/${version:-14}/g")

# Which of them the release has, with their versions.
# shellcheck disable=SC2046
apt-cache policy $(echo "$missing" | tr '|?' '  ') 2>/dev/null | awk '
	/^[^ ].*:$/ { name = substr($1, 1, length($1) - 1) }
	$1 == "Candidate:" && $2 != "(none)" { print name, $2 }' >"$offered"
if [ ! -s "$offered" ] && echo "$missing" | grep -qv '?$'; then
	echo "deps.sh: apt knows none of these packages; as root: apt-get update" >&2
	echo "missing: $(echo "$missing" | tr '\n' ' ')" >&2
	exit 1
fi

chosen=
lacking=
left_out=
for packages in $missing; do
	names=${packages%\?}
	found=
	for name in $(echo "$names" | tr '|' ' '); do
		! grep -q "^$name " "$offered" || { found=$name; break; }
	done
	if [ -n "$found" ]; then
		chosen="$chosen $found"
	elif [ "$names" = "$packages" ]; then
		lacking="$lacking ${names%%|*}"
	else
		left_out="$left_out ${names%%|*}"
	fi
done
libbpf=$(sed -n 's/^libbpf-dev //p' "$offered")
if [ -n "$libbpf" ] && dpkg --compare-versions "$libbpf" lt 1:1.0; then
	lacking="$lacking libbpf-dev>=1.0 (it has $libbpf)"
fi
if [ -n "$lacking" ]; then
	echo "deps.sh: this release does not have:$lacking" >&2
	echo "sfbpf cannot be built here. The archive that scripts/release.sh makes on another" \
		"machine runs here, too." >&2
	exit 1
fi
[ -z "$left_out" ] || echo "deps.sh: not in this release, so left out:$left_out" >&2
if [ -z "$chosen" ]; then
	also
	exit 0
fi

install="apt-get install -y --no-install-recommends$chosen"
if [ "$(id -u)" != 0 ]; then
	echo "missing:$chosen" >&2
	echo "as root: $install" >&2
	exit 1
fi

# The packages of servers start nothing: not now, by the file that Debian's scripts ask, and not
# with the next boot.
units_of() {
	case $1 in
	debuginfod | nginx | prometheus | redis-server) echo "$1.service" ;;
	erlang-base) echo "epmd.service epmd.socket" ;;
	esac
}

policy_file=/usr/sbin/policy-rc.d
if [ ! -e $policy_file ] || grep -q "of deps.sh" $policy_file; then
	policy=$policy_file
	printf '#!/bin/sh\n# of deps.sh of sfbpf, while it installs packages\nexit 101\n' >$policy
	chmod 755 $policy
fi
echo "installing$chosen" >&2
quiet $install
for package in $chosen; do
	for unit in $(units_of "$package"); do
		if command -v systemctl >/dev/null 2>&1; then
			systemctl --quiet disable "$unit" >/dev/null 2>&1 || true
		elif [ -e "/etc/init.d/${unit%.service}" ]; then
			update-rc.d "${unit%.service}" disable >/dev/null 2>&1 || true
		fi
	done
done
also
