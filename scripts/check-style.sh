#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-style.sh [-v]: the rules that keep the tree readable, one line each. Files have fewer than 800 lines; functions at most 100
# (-v lists those above 60); userspace/ folders include only lower ones; only userspace/kern knows libbpf.
set -eu
cd "$(dirname "$0")/.."

verbose=${1:-}
status=0

verdict() {
	if [ -n "$2" ]; then
		echo "FAIL $1: $(echo "$2" | tr '\n' ' ')"
		status=1
	else
		echo "ok $1"
	fi
}

sources() { find bpf userspace tests scripts -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.py' \) | sort; }

verdict style-file-length "$(sources | while read -r f; do
	n=$(wc -l < "$f")
	[ "$n" -lt 800 ] || echo "$f has $n lines"
done)"

# A function's body starts with { in the first column and ends with } there.
lengths=$(sources | grep '\.[ch]c*$' | xargs awk '
	FNR == 1 { open = 0; head = "" }
	/^[A-Za-z_].*\(/ { head = $0 }
	/^{/ { open = FNR }
	/^}/ && open { print FNR - open + 1, FILENAME ":" open, head; open = 0 }')
verdict style-function-length "$(echo "$lengths" | awk '$1 > 100 { print $2 " has " $1 " lines" }')"
[ "$verbose" != -v ] || echo "$lengths" | sort -rn | awk '$1 > 60 { print "# " $0 }'

# Each folder's rank: it may include itself and what is below.
verdict style-layers "$(grep -n '^#include "' userspace/*/*.[ch] | sed 's/^\([^:]*\):[0-9]*:#include "\([^"]*\)".*/\1 \2/' | awk '
	BEGIN { n = split("base 0 elf 1 unwind 2 sym 2 kern 3 prof 3 out 4 tui 5 agent 5 tools 6", r); for (i = 1; i < n; i += 2) rank[r[i]] = r[i + 1] }
	{
		split($1, from, "/"); split($2, to, "/"); a = from[2]; b = to[1]
		if (!(a in rank)) print "unknown folder " a
		else if ($2 ~ /\.skel\.h$/ && a != "kern") print $1 " includes " $2
		else if (b in rank && a != b && rank[b] >= rank[a]) print $1 " includes " $2
	}')"

verdict style-libbpf "$(grep -lE '^#include <(bpf|linux/bpf)' userspace/*/*.[ch] | grep -v '^userspace/kern/' || true)"

exit $status
