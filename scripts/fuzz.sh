#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh SECONDS [TARGET...]: runs the libFuzzer targets of tests/fuzz (sframe, eh_frame, elf,
# file, entry, stacks, recording, code, context, pods) one after another, with AddressSanitizer and
# UBSan, each for SECONDS. New inputs go to build-fuzz/corpus/; a crash is kept in build-fuzz/ and
# ends with 1.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?fuzz.sh SECONDS [TARGET...]}
shift
[ $# -gt 0 ] || set -- sframe eh_frame elf file entry stacks recording code context pods
out=build-fuzz
san=address,undefined
for target in "$@"; do
	make -s -j"$(nproc)" OUTPUT=$out CC="${CLANG:-$(scripts/find-clang.sh)}" \
		CFLAGS="-g -O1 -fsanitize=fuzzer-no-link,$san -fno-sanitize-recover=undefined" \
		LDFLAGS="-fsanitize=fuzzer,$san" "$out/fuzz_$target"
	mkdir -p "$out/corpus/$target"
	echo "# $target, $seconds s"
	"$out/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=512 \
		-max_len=65536 -print_final_stats=1 -verbosity=0 -artifact_prefix="$out/$target-" \
		"$out/corpus/$target" "tests/fuzz/corpus/$target" 2>"$out/$target.log" ||
		{ tail -n 30 "$out/$target.log"; exit 1; }
	grep -E '^stat::(number_of_executed_units|new_units_added|peak_rss)' "$out/$target.log"
done
