#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that an idle worker gives its core back (at most 3 % where its queues can wake it), that
# the first packet after a second of silence is through within 200 µs all the same, that a burst of
# 500 after it loses nothing, that a worker one of whose queues can not wake it sleeps by time, and
# that `idle: poll` polls. net_af_packet and net_tap can wake, net_null can not.
#
#   host 10.1.0.2 ─── 10.1.0.1 sgw 10.2.0.1 ─── 10.2.0.2
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

LIMIT_US=200 # for the best of TRIES
GOOD_US=500  # for GOOD of them: who sleeps too long has luck once
TRIES=11
GOOD=4
IDLE=$TOP/test/smoke/idle.py

space host
space gate
space far
veth "$host" eth0 "$gate" g0
veth "$gate" g1 "$far" eth0
veth_for_sgw "$gate" g0
veth_for_sgw "$gate" g1
veth_for_sgw "$host" eth0
veth_for_sgw "$far" eth0

ends() { # ends FILE IDLE DEVICE0 DEVICE1 [MORE-PORTS]
	config "$1" <<EOF
system: { name: smoke-$ID, mbufs: 8192, idle: $2 }
ports:
  p0: { device: "$3", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24] }
  p1: { device: "$4", mac: "02:00:00:00:02:01", addresses: [10.2.0.1/24] }
${5:-}
neighbours:
  - { port: p0, address: 10.1.0.2, mac: "02:00:00:00:01:02" }
  - { port: p1, address: 10.2.0.2, mac: "02:00:00:00:02:02" }
spd:
  - { dir: in, src: any4, dst: any4, action: bypass }
  - { dir: out, src: any4, dst: any4, action: bypass }
EOF
}
SOCKETS=("net_af_packet0,iface=g0" "net_af_packet1,iface=g1")
ends socket sleep "${SOCKETS[@]}"
ends tap sleep net_tap0,iface=tap0 net_tap1,iface=tap1
ends mixed sleep "${SOCKETS[@]}" '  p2: { device: "net_null0,no-rx=1", mac: "02:00:00:00:03:01", addresses: [10.3.0.1/24] }'
ends poll poll "${SOCKETS[@]}"

schedstat() { # "ns running, ns waiting for the core, ns of the clock" of the worker
	local task
	for task in "/proc/$PID/task"/*; do
		[[ $(<"$task/comm") == rte-worker-1 ]] || continue
		echo "$(cut -d' ' -f1,2 "$task/schedstat") $(date +%s%N)"
	done
}
window() { # per mille of two seconds: running, running or willing to
	local a b
	read -ra a < <(schedstat)
	sleep 2
	read -ra b < <(schedstat)
	echo $(((b[0] - a[0]) * 1000 / (b[2] - a[2]))) \
		$(((b[0] - a[0] + b[1] - a[1]) * 1000 / (b[2] - a[2])))
}
rests() { # rests PERMILLE: in the best of three windows, as others may disturb
	local run
	for _ in 1 2 3; do
		read -r run _ < <(window)
		echo "the worker ran $run ‰ of 2 s, $1 ‰ allowed"
		((run > $1)) || return 0
	done
	return 1
}
polls() {
	local run wanted
	read -r run wanted < <(window)
	echo "the worker ran $run ‰, and wanted to run $wanted ‰"
	((wanted >= 950))
}
worker() { # worker KEY: a counter of the worker
	tele "smoke-$ID" /sgw/worker/info,0 | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
# Whatever else runs here must not be what is measured: sgw, which sleeps nearly always, before all
# others; and who asks it, on another core than the worker.
ahead=()
hurry() {
	local task
	mapfile -t all < <(cpus)
	((${#all[@]} > 1)) && chrt -f 1 true 2>/dev/null || return 0
	ahead=(taskset -c "${all[0]}" chrt -f 1)
	for task in "/proc/$PID/task"/*; do
		chrt -f -p 2 "${task##*/}" || true
	done
}
first() { # first NAMESPACE INTERFACE
	local us
	hurry
	for _ in 1 2 3; do
		read -ra us < <(ip netns exec "$1" "${ahead[@]}" "$PYTHON" "$IDLE" first "$2" $TRIES 1)
		echo "echo after 1 s of silence, µs: ${us[*]}"
		((${#us[@]} == TRIES && us[TRIES - 1] < 1000000)) || return 1
		((us[0] >= LIMIT_US || us[GOOD - 1] >= GOOD_US)) || return 0
	done
	return 1
}
sent() {
	tele "smoke-$ID" /sgw/port/info,p1 | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["tx_packets"])'
}
have_sent() { [[ $(sent) == "$1" ]]; }
burst() { # burst NAMESPACE INTERFACE
	local before
	before=$(sent)
	ip netns exec "$1" "$PYTHON" "$IDLE" burst "$2" 500 1
	wait_for 2 have_sent $((before + 500)) && return
	echo "$(($(sent) - before)) of 500 packets left"
	return 1
}
woken() {
	local n
	n=$(worker wakes_by_interrupt)
	echo "woken $n times"
	(($1))
}

idle_of() { # idle_of NAME NAMESPACE INTERFACE PERMILLE
	check "$1: an idle worker runs at most $4 ‰" rests "$4"
	check "$1: the first packet is through in $LIMIT_US µs" first "$2" "$3"
	check "$1: 500 packets at once after silence, all of them" burst "$2" "$3"
}

check "sockets: it starts" sgw_start "$gate" "$DIR/socket.yaml"
idle_of sockets "$host" eth0 30
check "sockets: packets woke the worker" woken 'n > 0'
check "sockets: it stops" sgw_stop

check "sockets and a queue that can not wake: it starts" sgw_start "$gate" "$DIR/mixed.yaml"
# What a nap costs is the machine's: up to 25 µs on a virtual one whose host keeps the timers.
idle_of "by time" "$host" eth0 500
check "by time: no packet woke the worker" woken 'n == 0'
check "by time: it stops" sgw_stop

check "poll: it starts" sgw_start "$gate" "$DIR/poll.yaml"
check "poll: the worker always runs" polls
nothing_slept() { [[ $(worker sleeps) == 0 ]]; }
check "poll: it never slept" nothing_slept
check "poll: it stops" sgw_stop

if [[ -c /dev/net/tun ]]; then
	check "tap: it starts" sgw_start "$gate" "$DIR/tap.yaml"
	veth_for_sgw "$gate" tap0
	veth_for_sgw "$gate" tap1
	idle_of tap "$gate" tap0 30
	check "tap: packets woke the worker" woken 'n > 0'
	check "tap: it stops" sgw_stop
else
	echo "note: no /dev/net/tun, net_tap was not tried"
fi
