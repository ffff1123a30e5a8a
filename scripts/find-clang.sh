#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# find-clang.sh [newest]: prints the name of the clang to use: "clang", or without that the newest
# clang-NN of PATH. Prints "clang", too, if there is none, so that the error names what is missing.
# newest: the newest clang-NN in any case.
set -eu

if [ "${1:-}" != newest ] && command -v clang >/dev/null 2>&1; then
	echo clang
	exit 0
fi
newest=$(IFS=:
	for dir in $PATH; do
		for file in "$dir"/clang-[0-9] "$dir"/clang-[0-9][0-9]; do
			[ ! -x "$file" ] || echo "${file##*/clang-}"
		done
	done | sort -n | tail -n 1)
echo "clang${newest:+-$newest}"
