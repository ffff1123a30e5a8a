#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gen-docs.sh: docs/stop-reasons.md from the lists in bpf/. With --check: fails if the committed
# file differs.
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

if [ "${1:-}" = --check ]; then
	if generate | cmp -s - docs/stop-reasons.md; then
		echo "ok docs-generated"
	else
		echo "FAIL docs-generated: docs/stop-reasons.md is not what" \
			"scripts/gen-docs.sh makes"
		exit 1
	fi
else
	generate > docs/stop-reasons.md
fi
