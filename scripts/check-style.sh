#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-style.sh: the rules that keep the tree readable, one line each. Files have fewer than 700
# lines and functions at most 60; C is as clang-format writes it; no line has more than 100
# columns; comments stand alone; userspace/ directories include only lower ones; each bpf/*.bpf.h
# compiles alone; no constant is defined on both sides of the kernel border; only userspace/kern
# knows libbpf; BPF code masks no index by itself.
set -eu
cd "$(dirname "$0")/.."

status=0
userspace=$(find userspace -name '*.[ch]')

verdict() {
	if [ -n "$2" ]; then
		echo "FAIL $1: $(echo "$2" | tr '\n' ' ')"
		status=1
	else
		echo "ok $1"
	fi
}

sources() {
	find bpf userspace tests scripts -type f \( -name '*.[ch]' -o -name '*.cc' -o \
		-name '*.sh' -o -name '*.py' \) | sort
}

# Tests may be longer: a table of cases is easier to read in one piece.
verdict style-file-length "$(sources | while read -r f; do
	n=$(wc -l < "$f")
	case $f in tests/*) most=950 ;; *) most=700 ;; esac
	[ "$n" -lt "$most" ] || echo "$f has $n lines"
done)"

# A function's body starts with { in the first column and ends with } there.
verdict style-function-length "$(sources | grep '\.[ch]c*$' | xargs awk '
	FNR == 1 { open = 0; most = FILENAME ~ /^tests/ ? 80 : 60 }
	/^{/ { open = FNR }
	/^}/ && open {
		n = FNR - open + 1
		if (n > most)
			print FILENAME ":" open " has " n " lines"
		open = 0
	}')"

formatter=$(command -v clang-format-14 || command -v clang-format || true)
case $("${formatter:-true}" --version) in
*" 14."*)
	verdict style-clang-format "$(sources | grep '\.\([ch]\|cc\)$' |
		xargs "$formatter" --dry-run 2>&1 |
		sed -n 's/:.*code should be clang-formatted.*//p' | sort -u |
		sed "s/^/$(basename "$formatter") -i /")" ;;
*)
	echo "SKIP style-clang-format: needs clang-format 14, as other versions differ" ;;
esac

# All files but the fuzzers' inputs and the references of the verifier's work. Tables, URLs and
# quoted output in Markdown may be wider, and so may the rows of tests/programs/chains.txt and its
# kind.
verdict style-columns "$(find Makefile .clang-format ./*.md bpf docs packaging scripts tests \
	userspace -type f | sed 's,^\./,,' | grep -vE '/__pycache__/|^tests/fuzz/(corpus|reject)/' |
	grep -vxF -e tests/vm/verifier.json -e tests/live/compilers.json | sort |
	/usr/bin/python3 -c '
import sys
for path in sys.stdin.read().splitlines():
    quoted = False
    for n, line in enumerate(open(path, encoding="utf-8", errors="replace"), 1):
        if path.endswith(".md") and line.startswith("```"):
            quoted = not quoted
        wide = len(line.rstrip("\n").expandtabs(8)) > 100
        if path.endswith(".md"):
            wide = wide and not (quoted or line.startswith("|") or "://" in line)
        elif path.endswith(".txt"):
            wide = wide and line.startswith("#")
        if wide:
            print("%s:%d" % (path, n))
' | head -n 20)"

# A comment stands alone: it does not begin with a preposition whose subject is elsewhere.
verdict style-comments "$(find bpf userspace -name '*.[ch]' | sort | xargs /usr/bin/python3 -c '
import re, sys
begins = re.compile(r"/\*+[\s*]*(of|in|to|by|as|for|with|from|those|that of|the same|likewise)\b",
                    re.I)
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    for m in begins.finditer(text):
        print("%s:%d" % (path, text.count("\n", 0, m.start()) + 1))
' | head -n 20)"

# STOP, LOST and LANGUAGE are X macros over the .def files.
verdict style-shared-constants "$(find bpf -name '*.[ch]' -exec cat {} + |
	sed -n 's/^#define \([A-Z][A-Z0-9_]*\)\b.*/\1/p' | sort -u |
	grep -vxE 'STOP|LOST|LANGUAGE' | while read -r name; do
		grep -lE "^#define $name\b" $userspace | sed "s/^/$name: /"
	done)"

# The layers are written once, in docs/design.md: a directory may include itself and lower layers.
layers=$(sed -n '/^    base </,/^$/p' docs/design.md | xargs)
if [ -z "$layers" ]; then
	echo "check-style.sh: docs/design.md has no line that begins with" \
		"four spaces and 'base <'" >&2
	exit 1
fi
verdict style-layers "$(grep -n '^#include "' $userspace |
	sed 's/^\([^:]*\):[0-9]*:#include "\([^"]*\)".*/\1 \2/' | awk -v layers="$layers" '
	BEGIN {
		n = split(layers, layer, " < ")
		for (i = 1; i <= n; i++) {
			m = split(layer[i], d, ", ")
			while (m)
				rank[d[m--]] = i
		}
	}
	{
		split($1, from, "/"); split($2, to, "/"); a = from[2]; b = to[1]
		if (!(a in rank)) print "unknown folder " a
		else if ($2 ~ /\.skel\.h$/ && a != "kern") print $1 " includes " $2
		else if (b in rank && a != b && rank[b] >= rank[a]) print $1 " includes " $2
	}')"

# A BPF header includes what it uses, so each compiles alone, for both architectures.
clang=${CLANG:-$(scripts/find-clang.sh)}
if command -v "$clang" >/dev/null && [ -f vmlinux.h ]; then
	verdict style-bpf-headers "$(for h in $(find bpf -name '*.bpf.h'); do
		case $h in
		*_x86.bpf.h) archs=x86 ;;
		*_arm64.bpf.h) archs=arm64 ;;
		*) archs="x86 arm64" ;;
		esac
		for arch in $archs; do
			"$clang" -target bpf -fsyntax-only -x c "-D__TARGET_ARCH_$arch" -I. -Ibpf \
				"$h" >/dev/null 2>&1 ||
				echo "$h does not compile alone ($arch)"
		done
	done)"
fi

# What the verifier must see is bounded by the macros of bpf/core/bounds.h.
verdict style-bpf-bounds "$(find bpf -name '*.[ch]' |
	xargs grep -nE '\basm (volatile)?\(|\[[^]"]*[^]&]&[^]&][^]]*\]' |
	grep -v '^bpf/core/bounds\.h:' | cut -d: -f1,2)"

verdict style-libbpf "$(grep -lE '^#include <(bpf|linux/bpf)' $userspace |
	grep -v '^userspace/kern/' || true)"

exit $status
