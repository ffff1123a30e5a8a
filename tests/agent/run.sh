#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh: the agent's checks: most side by side; then, one after the other, the store, the road of
# docs/fleet.md and what the agent costs. Needs root and a kernel that lets sfbpf record; else one
# SKIP line.
set -eu
cd "$(dirname "$0")/../.."
: "${OUTPUT:=build}"
export OUTPUT

give_up() {
	echo "SKIP agent: $1"
	exit 0
}

[ "$(id -u)" = 0 ] || give_up "not root"
"$OUTPUT/sfbpf" agent --help >/dev/null 2>&1 ||
	give_up "built without it: libcurl, libmicrohttpd or nettle is missing"
# Python of the distribution: grpc and protobuf are its packages.
python=/usr/bin/python3
[ -x $python ] || give_up "no $python"

log=$(mktemp -d)
pids=
trap 'rm -rf "$log"' EXIT
trap 'kill $pids 2>/dev/null; wait; exit 1' INT TERM
code=0
"$OUTPUT/sfbpf" record -o "$log/try.folded" 100ms 2>"$log/try" >&2 || code=$?
case $code in
3 | 4) give_up "record cannot run here: $(tail -n 1 "$log/try")" ;;
esac

status=0
report() {	# CHECK STATUS
	cat "$log/$1"
	if [ "$2" != 0 ]; then
		status=1
		grep -q '^FAIL ' "$log/$1" || echo "FAIL agent-$1: $(tail -n 1 "$log/$1")"
	fi
}

# Four or five programs at once: each makes load of its own.
for checks in 'wire faults agent identity' 'rules kube offcpu machine spans'; do
	pids=
	for check in $checks; do
		$python -B tests/agent/check_$check.py >"$log/$check" 2>&1 &
		pids="$pids $!"
	done
	for check in $checks; do
		pid=${pids%% *}
		[ -n "$pid" ] || { pids=${pids# }; pid=${pids%% *}; }
		pids=${pids#"$pid"}
		code=0
		wait "$pid" || code=$?
		report "$check" $code
	done
done
# With no others beside them: a database of 546 MB, whose file all agents would read; the package is
# built; the cost is measured.
for check in clickhouse fleet cost; do
	code=0
	$python -B tests/agent/check_$check.py >"$log/$check" 2>&1 || code=$?
	report $check $code
done
exit $status
