#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# --help, man pages and completions: all options of a tool stand in each of them, and each is sound.
set -u
cd "$(dirname "$0")/../.."
out=${OUTPUT:-build}
sfbpf=${SFBPF:-$out/sfbpf}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

verdict() {
	if [ -z "$2" ]; then echo "ok $1"; else echo "FAIL $1: $2"; fi
}

tools=$("$sfbpf" help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
[ "$(echo "$tools" | wc -w)" -ge 8 ] || echo "FAIL help-lists-tools: $tools"
"$sfbpf" help --completion bash > "$dir/bash"
"$sfbpf" help --completion zsh > "$dir/zsh"

for t in $tools; do
	"$sfbpf" "$t" --help > "$dir/help" || echo "FAIL help-$t: exit status $?"
	"$sfbpf" help "$t" | cmp -s - "$dir/help" || echo "FAIL help-$t: 'help $t' differs"
	"$sfbpf" help --man "$t" > "$dir/man"
	missing=
	option='s/^  *\(-[a-zA-Z], \)*--\([a-z-]*\).*/\2/p'
	for o in $(sed -n "/^options:/,/^examples:/$option" "$dir/help"); do
		grep -q -- "--$o\b" "$dir/bash" || missing="$missing bash:$o"
		grep -q -- "--$o\\[" "$dir/zsh" || missing="$missing zsh:$o"
		sed 's/\\-/-/g' "$dir/man" | grep -q -- "fB--$o.fR" || missing="$missing man:$o"
	done
	verdict "help-options-$t" "$missing"
	verdict "help-width-$t" "$(awk 'length > 80 && !/^usage/' "$dir/help" |
		grep -v '^  [a-z]* *sfbpf' | head -n 3)"
	if command -v groff >/dev/null; then
		verdict "help-man-$t" "$(groff -man -Tutf8 -ww -z "$dir/man" 2>&1)"
	else
		echo "SKIP help-man-$t: no groff"
	fi
done

# The lists of formats in the help are written by hand.
for t in record report; do
	known=$("$sfbpf" $t --format nosuch 1 2>&1 | sed -n 's/.*known://p')
	missing=$([ "$known" ] || echo "no list of formats")
	for f in $known; do
		"$sfbpf" $t --help | grep -qw "$f" || missing="$missing $f"
	done
	verdict "help-formats-$t" "$missing"
done

verdict help-bash-syntax "$(bash -n "$dir/bash" 2>&1)"
words=$(bash -c '. "$1"; COMP_WORDS=(sfbpf record --fo); COMP_CWORD=2; _sfbpf
	echo "${COMPREPLY[*]}"' - "$dir/bash")
verdict help-bash-completes "$([ "$words" = --format ] || echo "got '$words'")"
# What the values of options can be: of tool, option, beginning
values() {
	bash -c '. "$1"; COMP_WORDS=(sfbpf $2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _sfbpf
		echo "${COMPREPLY[*]}"' - "$dir/bash" "$1"
}
wrong=
for case in "record --format h=html" "record --format = h=html" "record -e task=task-clock" \
	"report --format pe=perfetto" "offcpu --take l=leave" "record --by cont=container" \
	"top -u roo=root" "record -p $$=$$"; do
	[ "$(values "${case%=*}")" = "${case##*=}" ] ||
		wrong="$wrong '${case%=*}' gives '$(values "${case%=*}")'"
done
verdict help-bash-values "$wrong"
if command -v zsh >/dev/null; then
	verdict help-zsh-syntax "$(zsh -n "$dir/zsh" 2>&1)"
else
	echo "SKIP help-zsh-syntax: no zsh"
fi
"$sfbpf" agent --metrics-address none --check-config >"$dir/config" 2>&1
verdict help-bracketed-argument "$([ $? = 0 ] || tail -n 1 "$dir/config")"
"$sfbpf" help nosuch >/dev/null 2>"$dir/err"
verdict help-unknown-tool \
	"$([ $? = 2 ] && grep -q "there is no tool 'nosuch'" "$dir/err" || cat "$dir/err")"
