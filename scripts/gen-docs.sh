#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gen-docs.sh: docs/stop-reasons.md from the lists in bpf/, and the table of releases in README.md
# from docs/distros.txt, which check-distros.sh writes. With --check: fails if a committed file
# differs.
set -eu
cd "$(dirname "$0")/.."

table() {
	sed -nE "s/^$1\\([A-Z_]+, \"([a-z_]+)\", \"(.*)\"\\)\$/| \`\\1\` | \\2 |/p" "$2"
}

generate() {
	cat <<-'TEXT'
	# Why stacks end

	Folded output shows these as `[incomplete:REASON]`, except `complete` and `bridged`, which
	reached their outermost frame. `--stats` counts them, and top shows the most common one.
	Generated from `bpf/stop_reasons.def` by `scripts/gen-docs.sh`.

	| reason | meaning |
	|---|---|
	TEXT
	table STOP bpf/stop_reasons.def
	cat <<-'TEXT'

	# What can be lost

	From `bpf/lost.def`.

	| cause | meaning |
	|---|---|
	TEXT
	table LOST bpf/lost.def
}

# README.md with the rows in place of those between the two comments.
readme() {
	awk '
		/^<!-- end -->$/ { inside = 0 }
		!inside { print }
		/^<!-- docs\/distros\.txt,/ {
			inside = 1
			print "| | gcc | glibc | libbpf | clang |"
			print "|---|---|---|---|---|"
			while ((getline row < "docs/distros.txt") > 0)
				print row
		}' README.md
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
status=0
for file in docs/stop-reasons.md README.md; do
	if [ $file = README.md ]; then readme >"$new"; else generate >"$new"; fi
	if cmp -s "$new" $file; then
		continue
	elif [ "${1:-}" = --check ]; then
		echo "FAIL docs-generated: $file is not what scripts/gen-docs.sh makes"
		status=1
	else
		cat "$new" >$file
	fi
done
[ "${1:-}" != --check ] || [ $status != 0 ] || echo "ok docs-generated"
exit $status
