#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# replay-corpus.sh: feeds every file of tests/fuzz/corpus/NAME (and reject/NAME) to the fuzz target
# tests/fuzz/fuzz_NAME.c, built with sanitizers and without libFuzzer. Needs build-san/libcore.a
# (make SAN=1 units, with the same CC).
set -eu
cc=${CC:-cc}
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
cat > "$work/driver.c" <<'E2'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		uint8_t *data;
		long n;

		if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
			return 1;
		/* Exactly the file's size, so that the sanitizer sees a read beyond it. */
		data = malloc(n ? (size_t)n : 1);
		if (!data || fread(data, 1, (size_t)n, f) != (size_t)n)
			return 1;
		fclose(f);
		fprintf(stderr, "%s\n", argv[i]);
		LLVMFuzzerTestOneInput(data, (size_t)n);
		free(data);
	}
	return 0;
}
E2

libs=$([ ! -e /usr/include/Zydis/Zydis.h ] || echo -lZydis)
for lib in libdw libzstd libdebuginfod libseccomp liblzma nettle; do
	libs="$(pkg-config --libs $lib 2>/dev/null || true) $libs"
done

for target in tests/fuzz/fuzz_*.c; do
	[ -e "$target" ] || continue
	name=$(basename "$target" .c)
	corpus=tests/fuzz/corpus/${name#fuzz_}
	reject=tests/fuzz/reject/${name#fuzz_}
	[ -d "$reject" ] || reject=
	if [ ! -d "$corpus" ]; then
		echo "FAIL corpus-$name: no $corpus"
		status=1
	elif ! $cc -std=gnu11 -g -O1 -D_GNU_SOURCE -Iuserspace -Ibpf -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -o "$work/$name" "$work/driver.c" "$target" \
		build-san/libcore.a $libs -lz -liberty -lm -lelf -lpthread 2>"$work/err"; then
		echo "FAIL corpus-$name: does not build: $(head -n 1 "$work/err")"
		status=1
	elif ! find "$corpus" $reject -type f -print0 |
		xargs -0 timeout 120 "$work/$name" 2>"$work/err"; then
		at=$(grep "^tests/fuzz/" "$work/err" | tail -n 1)
		why=$(grep -m1 -E 'ERROR|runtime error' "$work/err" || tail -n 1 "$work/err")
		echo "FAIL corpus-$name: at $at: $why"
		status=1
	else
		echo "# $name: $(find "$corpus" $reject -type f | wc -l) inputs"
		echo "ok corpus-$name"
	fi
done
exit $status
