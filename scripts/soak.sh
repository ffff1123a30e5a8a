#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh MINUTES: top at 999 Hz amid storms of processes, dlopen, deep recursion, signals, files
# mapped and rewritten without a pause, and threads that are moved between CPUs. Every 5 s it notes
# memory, open files and losses. Fails on growth after the first third, leaked descriptors, lines in
# the kernel's log, or an end other than in order. Needs root; takes two CPUs for so long.
set -eu
cd "$(dirname "$0")/.."
: "${OUTPUT:=build}"
minutes=${1:?soak.sh MINUTES}
dir=$(mktemp -d)
pids=

# The shell's own kill knows no groups.
finish() {
	for p in $pids; do env kill -KILL -- "-$p" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

# In a session of its own, so that all of it can be ended. Low priority: what is watched is sfbpf.
# (A session is a scheduling group, whose members' nice values count among themselves only.)
storm() {
	setsid nice -n 10 sh -c 'echo 10 >/proc/self/autogroup; exec "$@"' sh "$@" >/dev/null 2>&1 &
	pids="$pids $!"
}

tests/programs/build.sh "$OUTPUT/programs" >"$dir/build" 2>&1 || { cat "$dir/build"; exit 1; }
prog=$OUTPUT/programs
dmesg >"$dir/before" 2>/dev/null || true

setsid "$OUTPUT/sfbpf" top -b --json -d 5 -F 999 --table-idle 30 -o "$dir/pages" 2>"$dir/err" &
top=$!
pids="$pids $top"

storm sh -c 'while :; do /bin/true; /bin/echo x | cat; done'
storm sh -c 'i=0; while :; do
		i=$(((i + 1) % 200))
		cp "$1" "$2/new$i" && "$2/new$i" 1 20
		rm -f "$2/new$i"
	done' sh "$prog/rec" "$dir"
storm sh -c 'cd "$1"; while :; do ./dlswap 5; done' sh "$prog"
storm "$prog/rec" 100000 900
storm sh -c 'while :; do "$1" 5; done' sh "$prog/sig"
storm "$prog/hostile" churn
storm "$prog/hostile" rewrite
storm "$prog/hostile" tables
# Everything of it, and sfbpf's own threads, on another CPU each second.
cpus=$(nproc)
mover() {
	n=0
	while sleep 1; do
		n=$((n + 1))
		for p in $top $pids; do taskset -a -p -c $((n % cpus)) "$p"; done
		taskset -a -p -c "0-$((cpus - 1))" "$top"
	done
}
mover >/dev/null 2>&1 &
mover=$!
trap 'kill $mover 2>/dev/null || true; finish' EXIT

# sfbpf and the processes that read files for it.
ours() {
	ps -eo pid=,ppid= | awk -v top="$top" '
		{ parent[$1] = $2 }
		END {
			for (p in parent)
				for (q = p; q > 1; q = parent[q])
					if (q == top) {
						print p
						break
					}
		}'
}

end=$(($(date +%s) + minutes * 60))
while [ "$(date +%s)" -lt "$end" ]; do
	sleep 5
	[ -d "/proc/$top" ] || { echo "FAIL soak: sfbpf ended: $(tail -n 1 "$dir/err")"; exit 1; }
	rss=$(ours | xargs ps -o rss= -p | awk '{ sum += $1 } END { print sum }')
	echo "$rss $(find "/proc/$top/fd" -maxdepth 1 -type l | wc -l)" >>"$dir/samples"
done
kill -INT "$top"
code=0
wait "$top" || code=$?
dmesg >"$dir/after" 2>/dev/null || true
/usr/bin/python3 -B scripts/soak-verdict.py "$dir" "$code"
