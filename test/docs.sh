#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The documents say what the program knows, and nothing in them that can be tried
# is wrong.    test/docs.sh SGW sgw.8 sgw.yaml.5 sgw-bench.8 BENCH_TRY
sgw=$(realpath "$1") man8=$(realpath "$2") man5=$(realpath "$3") man_bench=$(realpath "$4")
bench_try=$(realpath "$5")
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
umask 077
passed=0 failed=0

check() { # check TEXT COMMAND…
	text=$1
	shift
	if "$@" >"$dir/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $text"
		sed 's/^/     /' "$dir/log"
	fi
}

# The text of a page without roff.
plain() { sed -e 's/\\f[A-Z]//g' -e 's/\\&//g' -e 's/\\\././g' -e 's/\\-/-/g' -e 's/\\(ga/`/g' "$1"; }
plain "$man8" >"$dir/8"
plain "$man5" >"$dir/5"
plain "$man_bench" >"$dir/bench"
has() { grep -qF -e "$2" "$1"; }

options=$("$sgw" --help | grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,' | sort -u)
reasons=$(sed -n 's/^\tX(\([a-z0-9_]*\), .*/\1/p' "$top/lib/path/drop.h")
commands=$(sed -n 's/^\t{"\(\/sgw[a-z/]*\)".*/\1/p' "$top/lib/ctl/telemetry.c")
keys=$(sed -n 's/^\t{SEC_[A-Z]*, "\([a-z-]*\)".*/\1/p' "$top/lib/config/schema.c" | sort -u)
algorithms=$(sed -n 's/.*\[ALG_.*\] *= {"\([a-z0-9-]*\)".*/\1/p' "$top/lib/base/alg.c")
traps=$(grep -rhoE 'traps? [0-9]+(, [0-9]+)*' "$top/lib" "$top/app" | grep -oE '[0-9]+' | sort -un)
bench_help=$(sed -n 's/^\t"\(.*\)\\n"[;]*$/\1/p' "$top/app/sgw-bench/args_help.c")
bench_options=$(echo "$bench_help" | sed '1,/^Ports and traffic/d; /^EAL options/,$d' |
	grep -oE '(^  |, |; )--?[a-zA-Z0-9][a-z-]*' | tr -d ' ,;' | sort -u)
bench_commands=$(sed -n 's/.*command_names\[.*//; s/\[CMD_[A-Z_]*\] = "\([a-z-]*\)",/\n\1\n/gp' \
	"$top/app/sgw-bench/args_help.c" | grep -E '^[a-z-]+$')
# The parser's own table, and what it knows besides.
parsed_options=$(printf '%s\n' -h --help -V --version "$(sed -n 's/^\t{"\(-[^"]*\)", [A-Z]*, USE.*/\1/p' \
	"$top/app/sgw-bench/args.c")" | sort -u)
# What the page explains: the bold words that begin an entry of OPTIONS.
page_options=$(sed -n '/^\.SH OPTIONS/,/^\.SH EAL/p' "$dir/bench" |
	grep -E '^-' | grep -oE '(^|, )--?[a-zA-Z0-9][a-z-]*' | tr -d ' ,' | sort -u)
for list in "$options" "$reasons" "$commands" "$keys" "$algorithms" "$traps" \
	"$bench_options" "$bench_commands" "$page_options" "$parsed_options"; do
	check "this test still reads the source: $list" [ "$(echo "$list" | wc -w)" -gt 5 ]
done

for option in $options; do
	check "sgw(8) has the option $option" has "$dir/8" "$option"
done
for reason in $reasons; do
	check "sgw(8) has the drop reason $reason" has "$dir/8" "$reason"
done
for command in $commands; do
	check "sgw(8) has the command $command" has "$dir/8" "$command"
	check "docs/counters.md has the command $command" has "$top/docs/counters.md" "$command"
done
for key in $keys; do
	check "sgw.yaml(5) has the key $key" has "$dir/5" "$key"
done
for name in $algorithms; do
	check "sgw.yaml(5) has the algorithm $name" has "$dir/5" "$name"
done
for trap_ in $traps; do
	check "docs/librte.md has trap $trap_" grep -q "^| $trap_ |" "$top/docs/librte.md"
done

check "sgw-bench(8) explains the options of --help, and no others" \
	[ "$bench_options" = "$page_options" ]
check "sgw-bench --help has the options that are parsed, and no others" \
	[ "$bench_options" = "$parsed_options" ]
for command in $bench_commands; do
	check "sgw-bench(8) has the command $command" grep -qx -e "$command" "$dir/bench"
	check "sgw-bench --help has the command $command" has "$top/app/sgw-bench/args_help.c" " $command "
	check "sgw-bench(8) has an example of $command" grep -qE "^sgw-bench (-l 0-2 -- )?$command " "$dir/bench"
done

# Every example of sgw-bench is a command line that it takes.
for file in "$top/docs/sgw-bench.8.scd" "$top/docs/benchmarking.md" "$top/README.md"; do
	sed -e ':a' -e '/\\$/{N;s/\\\n[ \t]*//;ba' -e '}' "$file" | grep -E '^sgw-bench [^ ]*[a-z]' >>"$dir/lines"
done
check "the documents have examples of sgw-bench" [ "$(wc -l <"$dir/lines")" -gt 15 ]
while read -r line; do
	check "sgw-bench takes: $line" sh -c "'$bench_try' ${line#*sgw-bench }"
done <"$dir/lines"

# Whatever is written as a whole configuration loads without a word.
awk -v dir="$dir" '/^```yaml/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (dir "/readme" n ".yaml") }' \
	"$top/README.md"
sed -n '/^# EXAMPLE$/,/^# /{/^```/,/^```/p}' "$top/docs/sgw.yaml.5.scd" |
	awk -v dir="$dir" '/^```/ { n++; next } n == 1 { print > (dir "/page.yaml") }'
sed -i "s|file:/etc/sgw/|file:$dir/|g" "$dir"/*.yaml
i=0
for key in $(grep -ohE "file:$dir/[a-z.-]*" "$dir"/*.yaml | sort -u); do
	i=$((i + 1))
	printf 'hex:%040d\n' $i >"${key#file:}"
done
for yaml in "$dir"/*.yaml; do
	"$sgw" -- -f "$yaml" --check >"$dir/said" 2>&1
	echo "exit status $?" >>"$dir/said"
	check "the example $(basename "$yaml") loads" sh -c "cat $dir/said; [ \"\$(cat $dir/said)\" = 'exit status 0' ]"
done

# Every test that conformance.md names is there.
named() { # named KIND WHAT
	case $1 in
	golden) # at least one folder fits; the star is expanded on purpose
		for d in "$top"/test/golden/$2; do [ -e "$d/sgw.yaml" ] && return 0; done
		return 1
		;;
	unit) grep -qE "[( ]${2#*:}[,)]" "$top/test/unit/test_${2%%:*}.c" ;;
	interop) [ -e "$top/test/interop/$2" ] && grep -qw -e "${2%.py}" "$top/scripts/test" ;;
	smoke) [ -e "$top/test/smoke/$2" ] ;;
	config) [ -e "$top/test/config/$2.yaml" ] && [ -e "$top/test/config/$2.expect" ] ;;
	lab) grep -qF "check \"$2\"" "$top/scripts/lab" ;;
	esac
}
grep -oE '`(golden|unit|interop|smoke|config|lab) [^`]+`' "$top/docs/conformance.md" | tr -d '`' | sort -u >"$dir/named"
check "conformance.md names tests" [ "$(wc -l <"$dir/named")" -gt 100 ]
while read -r kind what; do
	check "conformance.md names a test that is there: $kind $what" named "$kind" "$what"
done <"$dir/named"

# No link to a file that is not there.
for md in "$top"/*.md "$top"/docs/*.md; do
	for link in $(grep -oE '\]\([^)#]+' "$md" | cut -c3- | grep -v '^http'); do
		check "$(basename "$md"): $link is there" test -e "$(dirname "$md")/$link"
	done
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
