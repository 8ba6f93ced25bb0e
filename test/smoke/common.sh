# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the smoke tests share: checks, namespaces with a prefix of their own, a temporary folder,
# and an end that leaves nothing behind. To be sourced first.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
((EUID == 0)) || die "needs root"
[[ -x $SGW ]] || die "$SGW is not there; build it, or name another with SGW=PATH"

DIR=$(mktemp -d /tmp/sgw-smoke.XXXXXX)
ID=$$        # in every name that the machine sees: tests may run side by side
SPACES=()    # namespaces made
passed=0 failed=0

smoke_end() {
	local code=$?
	trap '' INT TERM
	trap - EXIT
	for f in "$DIR"/*.pid; do
		[[ -e $f ]] && stop_pid "$f" KILL
	done
	((${#SPACES[@]} == 0)) || netns_drop "${SPACES[@]}"
	if mountpoint -q "$DIR/mount" 2>/dev/null; then umount "$DIR/mount" || umount -l "$DIR/mount"; fi
	rm -rf "$DIR" "/var/run/dpdk/smoke-$ID"*
	((code == 0)) || exit "$code"
	echo "$passed passed, $failed failed"
	((failed == 0 && passed > 0)) || exit 1
	exit 0
}
trap smoke_end EXIT
trap 'exit 130' INT TERM

# check TEXT COMMAND…
check() {
	local text=$1
	shift
	if "$@" >"$DIR/check.log" 2>&1; then
		echo "ok   $text"
		passed=$((passed + 1))
	else
		echo "FAIL $text"
		tail -n 25 "$DIR/check.log" | sed 's/^/     /'
		[[ ! -s $DIR/sgw.err ]] || tail -n 8 "$DIR/sgw.err" | sed 's/^/     sgw: /'
		failed=$((failed + 1))
	fi
}

space() { # space NAME: makes smoke-NAME-$ID; in its variable
	local -n name=$1
	name=smoke-$1-$ID
	netns_add "$name"
	SPACES+=("$name")
}

# sgw_start NAMESPACE FILE [EAL options…]: in the background, until it is ready
sgw_start() {
	local ns=$1 file=$2
	shift 2
	: >"$DIR/sgw.err"
	: >"$DIR/sgw.out"
	ip netns exec "$ns" "$SGW" --no-pci --no-huge -m 256 --lcores "$(eal_lcores 1)" "$@" -- -f "$file" \
		</dev/null >>"$DIR/sgw.out" 2>>"$DIR/sgw.err" &
	PID=$!
	note_pid "$DIR/sgw.pid" $PID sgw
	disown
	for _ in $(seq 400); do
		grep -q '^sgw: ready' "$DIR/sgw.err" && return 0
		[[ -d /proc/$PID ]] || break
		sleep 0.05
	done
	cat "$DIR/sgw.err"
	return 1
}

gone() { [[ ! -d /proc/$PID ]]; }

sgw_stop() { # [SIGNAL [SECONDS]]: fails when it takes longer
	kill -s "${1:-TERM}" "$PID"
	wait_for "${2:-5}" gone
}

tele() { # tele NAME COMMAND: the reply of its telemetry socket as JSON
	(cd "$TOP/test/lib" && "$PYTHON" -c '
import json, sys, sgw
print(json.dumps(sgw.telemetry(sys.argv[1], sys.argv[2])))' "$@")
}

config() { # config NAME: standard input to $DIR/NAME.yaml, mode 0600
	(
		umask 077
		cat >"$DIR/$1.yaml"
	)
}
