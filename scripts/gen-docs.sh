#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gen-docs.sh: docs/stop-reasons.md from the lists in bpf/, docs/metrics.md from the agent's, and
# the table of releases in README.md from docs/distros.txt, which check-distros.sh writes. With
# --check: fails if a committed file differs.
set -eu
cd "$(dirname "$0")/.."

table() {
	sed -nE "s/^$1\\([A-Z_]+, \"([a-z_]+)\", \"(.*)\"\\)\$/| \`\\1\` | \\2 |/p" "$2"
}

stop_reasons() {
	cat <<-'TEXT'
	# Why stacks end

	Folded output shows these as `[incomplete:REASON]`, except `complete` and `bridged`, which
	reached their outermost frame. `--stats` counts them, and top shows the most common one.
	Generated from `bpf/border/stop_reasons.def` by `scripts/gen-docs.sh`.

	| reason | meaning |
	|---|---|
	TEXT
	table STOP bpf/border/stop_reasons.def
	cat <<-'TEXT'

	# What can be lost

	From `bpf/border/lost.def`.

	| cause | meaning |
	|---|---|
	TEXT
	table LOST bpf/border/lost.def
}

metrics() {
	cat <<-'TEXT'
	# The agent's metrics

	`GET /metrics` has them in this order, with `sfbpf_agent_` before each name and with the
	labels in braces ([agent.md](agent.md#watching-it)). `off_cpu_` is there if blocked time is
	measured, `kubelet_` if a kubelet is configured. Generated from
	`userspace/agent/metrics.def` by `scripts/gen-docs.sh`.

	| metric | type | meaning |
	|---|---|---|
	TEXT
	tr '\n\t' '  ' <userspace/agent/metrics.def |
		sed -E 's/ +([A-Z_]+\()/\n\1/g; s/" +"//g; $a\' |
		sed -nE 's/^FAMILY(\([^"]*"[^"]*",) *([a-z]+)/FAMILY{\2}\1/
			s/^[A-Z_]+([^(]*)\(([a-z_]+), ([a-z]+), *"([^"]+).*/| `\2\1` | \3 | \4 |/p'
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
for file in docs/stop-reasons.md docs/metrics.md README.md; do
	case $file in
	*/stop-reasons.md) stop_reasons ;;
	*/metrics.md) metrics ;;
	*) readme ;;
	esac >"$new"
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
