#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Broken configurations and what must be said about them.
#   test/config/run.sh CHECK_MAIN [CASE…]
# Each NNN-name.yaml is loaded, and every line of the diagnosis is compared with
# NNN-name.expect. The exit code must be 3 when there is an error in it, 0 when
# there are only warnings or nothing. At the top of a case may stand
#   # mode: 0644               permissions of the file (0600 otherwise)
#   # file: NAME MODE CONTENT  a key file; in the case @DIR@/NAME
check=$(realpath "${1:?path of check_main}") || exit 2
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
umask 077
passed=0 failed=0
[ $# -gt 0 ] || set -- "$here"/[0-9]*.yaml

for case in "$@"; do
	name=$(basename "$case" .yaml)
	rm -rf "$dir/work" && mkdir "$dir/work" && cd "$dir/work" || exit 2
	LC_ALL=C sed "s|@DIR@|$dir/work|g" "$here/$name.yaml" >"$name.yaml"
	grep -a '^# file: ' "$name.yaml" | while read -r _ _ file mode content; do
		printf '%b\n' "$content" >"$file"
		chmod "$mode" "$file"
	done
	mode=$(sed -n 's/^# mode: //p' "$name.yaml")
	chmod "${mode:-0600}" "$name.yaml"
	"$check" "$name.yaml" >stdout 2>stderr
	rc=$?
	sed "s|$dir/work|@DIR@|g" stderr >got
	want=0
	if grep -qv '^[^ ]*: warning: ' "$here/$name.expect"; then want=3; fi
	if [ $rc -eq $want ] && cmp -s got "$here/$name.expect" && [ ! -s stdout ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $name (exit $rc, wanted $want)"
		diff -u "$here/$name.expect" got
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
