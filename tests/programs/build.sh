#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# build.sh OUTDIR: builds the programs with a known call chain. What this machine cannot build gets
# a line "SKIP NAME: why"; a program that does not compile or compiles with a warning ends the run
# with 1. For another architecture: CC=aarch64-linux-gnu-gcc CXX=... OBJCOPY=...; MUSL=DIR holds
# Debian's musl-dev for it.
set -eu

out=${1:?usage: build.sh OUTDIR}
src=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$src"

CC=${CC:-gcc}
CXX=${CXX:-g++}
HOSTCC=${HOSTCC:-gcc}
OBJCOPY=${OBJCOPY:-objcopy}
MUSL=${MUSL:-}
WARN="-Wall -Wextra -Werror"
OPT="-O2 -fomit-frame-pointer -fno-optimize-sibling-calls -fno-inline -fno-stack-protector"
CFLAGS="-std=gnu11 -D_GNU_SOURCE $OPT $WARN"
CXXFLAGS="-std=c++17 $OPT $WARN"

if [ -f "$out/.built" ] && [ -z "$(find . -newer "$out/.built" -type f)" ]; then
	cat "$out/.built"
	exit 0
fi
rm -f "$out/.built"
: > "$out/.skips"

skip() { echo "SKIP $1: $2" >> "$out/.skips"; }
fail() { echo "build.sh: $1 does not build" >&2; exit 1; }

# c NAME SOURCE FLAGS...
c() {
	name=$1; source=$2; shift 2
	# shellcheck disable=SC2086
	$CC $CFLAGS -o "$out/$name" "$source" "$@" || fail "$name"
}

# cxx NAME SOURCE FLAGS...
cxx() {
	name=$1; source=$2; shift 2
	# shellcheck disable=SC2086
	$CXX $CXXFLAGS -o "$out/$name" "$source" "$@" || fail "$name"
}

# Whether an empty program builds with the flags.
can() { echo 'int main(void) { return 0; }' | "$CC" -xc - -o "$out/.probe" "$@" 2>/dev/null; }

nested() {
	if echo 'int main(void) { int f(void) { return 0; } return f(); }' |
		$CC -xc - -o "$out/.probe" 2>/dev/null; then
		c nested nested.c -Wl,-z,execstack
		c nested-fp nested.c -fno-omit-frame-pointer -Wl,-z,execstack
	else
		skip nested "the compiler has no nested functions"
		skip nested-fp "the compiler has no nested functions"
	fi
}

plain() {
	c rec rec.c
	c rec-fp rec.c -fno-omit-frame-pointer
	c rec-notab rec.c -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
	c rec-code rec.c -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
	c rec-exec rec.c -no-pie
	c frames frames.c
	c frames-clash frames.c -fstack-clash-protection
	c alloca alloca.c
	c turns turns.c
	c callback callback.c
	c init init.c
	c sig sig.c
	c threads threads.c -pthread
	c thread-names thread_names.c -pthread
	c leaderless leaderless.c -pthread
	c rawclone rawclone.c
	c vdso vdso.c
	c readzero readzero.c
	c coro coro.c
	c iouring iouring.c
	c probe probe.c
	c probed probed.c
	c slowcalls slowcalls.c -pthread
	c path path.c -pthread
	c parallel parallel.c -pthread
	c probe-fp probe.c -fno-omit-frame-pointer
	nested
	c onerow onerow.c
	c leap leap.c
	c leap-fp leap.c -fno-omit-frame-pointer
	c forker forker.c
	c brief brief.c
	c block block.c -pthread
	c waits waits.c -pthread
	c wall wall.c -pthread
	c memfdexec memfdexec.c
	c rec-stripped rec.c -s
	c rec-copy rec.c remap.c -DREMAP=1
	c rec-memtext rec.c remap.c -DREMAP=2
	c cb-copy callback.c remap.c -DREMAP=1
	$HOSTCC $CFLAGS -o "$out/sframe_rewrite" sframe_rewrite.c || fail sframe_rewrite
	case $($CC -dumpmachine) in
	x86_64-*)
		c hostile hostile.c -pthread
		c noend noend.c
		c keepreg keepreg.c
		c lost-fp lost_fp.c -fno-omit-frame-pointer
		c down down.c -pthread
		c stg stg.c
		c made-stack made_stack.c
		c made-known made_stack.c -DKNOWN -rdynamic
		c libjit_far.so jit_far.S -shared
		c jit_again jit_again.c
		if can -static-pie; then
			c jit-near jit.c jit_far.S -pthread -static-pie
		else
			skip jit-near "no static C library"
		fi
		c jit jit.c -pthread -L"$out" -ljit_far -Wl,-rpath,'$ORIGIN',-z,lazy
		c jit-keep jit.c -fno-omit-frame-pointer -pthread -L"$out" -ljit_far \
			-Wl,-rpath,'$ORIGIN',-z,lazy
		c jit-fp jit_fp.c jit_fp.S
		c fat rec.c fat.S
		c asm asm.S -static -nostdlib
		c fp-stub fp_stub.S -static -nostdlib
		c fp-leaf fp_leaf.S -static -nostdlib
		c rec-gap rec.c gap.S -fomit-frame-pointer -fno-asynchronous-unwind-tables \
			-fno-unwind-tables
		c start-gap rec.c gap.S start.S -fomit-frame-pointer \
			-fno-asynchronous-unwind-tables -fno-unwind-tables -static -no-pie \
			-nostartfiles \
			"$($CC -print-file-name=crti.o)" "$($CC -print-file-name=crtn.o)" ;;
	*)
		skip noend "its code is x86-64's"
		skip keepreg "its code is x86-64's"
		skip down "its code is x86-64's"
		skip stg "its code is x86-64's"
		skip made-stack "its code is x86-64's"
		skip made-known "its code is x86-64's"
		skip jit_again "its code is x86-64's"
		skip jit-near "its code is x86-64's"
		skip jit "its code is x86-64's"
		skip jit-keep "its code is x86-64's"
		skip jit-fp "its code is x86-64's"
		skip hostile "its code is x86-64's"
		skip fat "its code is x86-64's"
		skip asm "its code is x86-64's"
		skip fp-stub "its code is x86-64's"
		skip fp-leaf "its code is x86-64's"
		skip rec-gap "its code is x86-64's"
		skip start-gap "its code is x86-64's" ;;
	esac
	# Walked by frame pointer before its tables are there, so that a stack meets all of its
	# files at once.
	c manyfiles manyfiles.c -fno-omit-frame-pointer
	c stub.so stub.c -shared -fPIC -nostdlib -fno-omit-frame-pointer \
		-Wl,--build-id=none,-z,noseparate-code,-z,norelro,--hash-style=sysv
	if can -mavx2; then c drap drap.c -mavx2; else skip drap "the compiler knows no AVX2"; fi
	if can -static; then
		c rec-static rec.c -static
		c samea same.c -static -DSAME=sa -DSAME_FRAME=3000
		c sameb same.c -static -DSAME=sb -DSAME_FRAME=500
	else
		skip rec-static "no static C library"
	fi
	if can -static-pie; then
		c rec-static-pie rec.c -static-pie
	else
		skip rec-static-pie "no static C library"
	fi
	if command -v "$CXX" >/dev/null; then
		cxx stdsort stdsort.cc
		cxx except except.cc
		cxx except-fp except.cc -fno-omit-frame-pointer
		cxx slowthrow slowthrow.cc
		cxx locked locked.cc -pthread
	else
		skip stdsort "no C++ compiler"
		skip except "no C++ compiler"
	fi
}

libraries() {
	c libdlmid.so libdlmid.c -shared -fPIC
	c dlmid dlmid.c
	c libswapa.so libswap.c -shared -fPIC -DSWAP=swa -DSWAP_FRAME=3000
	c libswapb.so libswap.c -shared -fPIC -DSWAP=swb -DSWAP_FRAME=1000
	c dlswap dlswap.c
	c libagaina.so libagain.c -shared -fPIC -DAGAIN=aga
	c libagainb.so libagain.c -shared -fPIC -DAGAIN=agb
	c again again.c -pthread
	c librefuse.so refuse.c -shared -fPIC -ldl
	c libplt.so libplt.c -shared -fPIC
	set -- plt.c "$out/libplt.so" "-Wl,-rpath,\$ORIGIN" -fplt
	c plt-lazy "$@" -Wl,-z,lazy
	c plt-now "$@" -Wl,-z,now
	if can -fcf-protection -Wl,-z,ibtplt; then
		c plt-ibt "$@" -fcf-protection -Wl,-z,ibtplt
	else
		skip plt-ibt "the linker makes no IBT PLT"
	fi
}

rust() {
	if [ "$CC" != gcc ]; then
		skip rust "the C compiler is not this machine's"
	elif ! command -v rustc >/dev/null || ! rustc --version >/dev/null 2>&1; then
		skip rust "no Rust compiler"
	else
		rustc -D warnings -O -C debuginfo=0 -C strip=debuginfo -o "$out/rust" rust.rs ||
			fail rust
		# Its main has no tables, and the standard library's symbols make its file large.
		rustc -D warnings -O -C panic=abort -o "$out/rust-abort" rust.rs || fail rust-abort
	fi
}

# in_version VERSION IN OUT: the same rows in that version; IN itself if it is 1, as linked. A 3 is
# always rewritten, as its outermost frame is marked.
in_version() {
	if [ "$1" = 1 ] && [ "$("$out/sframe_rewrite" version "$out/$2")" = 1 ]; then
		cp "$out/$2" "$out/$3"
	else
		"$out/sframe_rewrite" "$1" "$out/$2" "$out/$3" || fail "$3"
	fi
}

# Copies of C programs assembled with .sframe: sf-NAME in the assembler's version, sf1-NAME to
# sf3-NAME in each.
sframe() {
	if ! can -Wa,--gsframe; then
		skip sf1-rec "the assembler makes no .sframe"
		return 0
	fi
	for p in rec frames alloca callback sig threads coro; do
		c "sf-$p" "$p.c" -Wa,--gsframe -pthread
		for v in 1 2 3; do in_version $v "sf-$p" "sf$v-$p"; done
	done
	if can -mavx2; then
		c sf-drap drap.c -Wa,--gsframe -mavx2
		in_version 1 sf-drap sf1-drap
	fi
	c libplt-sf.so libplt.c -shared -fPIC -Wa,--gsframe
	in_version 1 libplt-sf.so libplt-sf1.so
	for v in lazy now; do
		c sf-plt-$v plt.c "$out/libplt-sf1.so" "-Wl,-rpath,\$ORIGIN" -fplt -Wl,-z,$v \
			-Wa,--gsframe
		in_version 1 sf-plt-$v sf1-plt-$v
	done
	# Only .sframe: the one unwind table of a program without C library ...
	c nl-eh nolibc.c -nostdlib -static -ffreestanding -Wl,--build-id
	c nl-both nolibc.c -nostdlib -static -ffreestanding -Wl,--build-id -Wa,--gsframe \
		-Wl,--no-eh-frame-hdr
	"$OBJCOPY" -R .eh_frame "$out/nl-both" "$out/nl-sf"
	for v in 1 2old 2 3; do in_version $v nl-sf nl-sf$v; done
	# ... and of a dynamic program, whose libraries keep theirs.
	c noeh-tmp rec.c -Wa,--gsframe -Wl,--no-eh-frame-hdr
	"$OBJCOPY" -R .eh_frame "$out/noeh-tmp" "$out/rec-sf-noeh"
	for v in 1 2 3; do in_version $v rec-sf-noeh rec-sf$v-noeh; done
	rm -f "$out/noeh-tmp" "$out/nl-both"
}

# AArch64: return addresses that carry an authentication code, signed with either key.
pac() {
	can -mbranch-protection=standard || return 0
	for p in rec sig threads callback; do
		c "pac-$p" "$p.c" -mbranch-protection=standard -pthread
	done
	c pacb-rec rec.c -mbranch-protection=pac-ret+leaf+b-key
	can -Wa,--gsframe || return 0
	c sf-pac-rec rec.c -mbranch-protection=standard -Wa,--gsframe
	c noeh-tmp rec.c -mbranch-protection=pac-ret+leaf+b-key -Wa,--gsframe -Wl,--no-eh-frame-hdr
	"$OBJCOPY" -R .eh_frame "$out/noeh-tmp" "$out/pac-sf-noeh"
	for v in 1 2 3; do
		in_version $v sf-pac-rec sf$v-pac-rec
		in_version $v pac-sf-noeh pac-sf$v-noeh
	done
	rm -f "$out/noeh-tmp"
}

# musl NAME SOURCE START [FLAGS...]: with musl's files by hand, as its gcc wrapper does.
musl() {
	name=$1; source=$2; start=$3; shift 3
	triple=$($CC -dumpmachine | sed 's/-gnu$/-musl/')
	lib=$MUSL/usr/lib/$triple
	# shellcheck disable=SC2086
	$CC $CFLAGS -nostdinc -isystem "$MUSL/usr/include/$triple" \
		-isystem "$($CC -print-file-name=include)" -nostdlib \
		-o "$out/$name" "$lib/$start" "$lib/crti.o" "$source" "$@" \
		-L"$lib" -lc "$($CC -print-libgcc-file-name)" "$lib/crtn.o" || fail "$name"
}

with_musl() {
	[ -n "$MUSL" ] || return 0
	for p in rec sig threads; do musl "musl-$p" $p.c crt1.o -static -no-pie; done
	musl musl-dyn rec.c Scrt1.o -pie -fPIE -Wl,-dynamic-linker,/lib/ld-musl-"${triple%%-*}".so.1
}

plain
libraries
rust
sframe
pac
with_musl
rm -f "$out/.probe"
mv "$out/.skips" "$out/.built"
cat "$out/.built"
