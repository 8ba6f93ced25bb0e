#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a link that goes down and comes back heals by itself: what can not be sent meanwhile is
# counted as tx_full, nothing is lost for good, and the counters add up.
#
#   left (kernel) 10.1.0.2 ─── 10.1.0.1 sgw 10.2.0.1 ─── 10.2.0.2 right (kernel)
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

space left
space gate
space right
veth "$left" eth0 "$gate" g0
veth "$gate" g1 "$right" eth0
veth_for_sgw "$gate" g0
veth_for_sgw "$gate" g1
for n in 1 2; do
	ns=$left
	[[ $n == 1 ]] || ns=$right
	ip -n "$ns" link set eth0 address "02:00:00:00:0$n:02" up
	ip -n "$ns" addr add "10.$n.0.2/24" dev eth0
	ip -n "$ns" route add default via "10.$n.0.1"
done
config sgw <<EOF
system: { name: smoke-$ID, mbufs: 4096 }
ports:
  p0: { device: "net_af_packet0,iface=g0,framecnt=64", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24] }
  p1: { device: "net_af_packet1,iface=g1,framecnt=64", mac: "02:00:00:00:02:01", addresses: [10.2.0.1/24] }
neighbours:
  - { port: p0, address: 10.1.0.2, mac: "02:00:00:00:01:02" }
  - { port: p1, address: 10.2.0.2, mac: "02:00:00:00:02:02" }
spd:
  - { dir: in, src: any4, dst: any4, action: bypass }
  - { dir: out, src: any4, dst: any4, action: bypass }
EOF
check "it starts" sgw_start "$gate" "$DIR/sgw.yaml"
through() {
	local out
	out=$(ip netns exec "$left" ping -n -c 5 -i 0.05 -W 2 10.2.0.2)
	echo "$out"
	grep -q ' 0% packet loss' <<<"$out"
}
check "ping through it" wait_for 5 through
for n in 1 2 3; do
	ip -n "$gate" link set g1 down
	ip netns exec "$left" ping -n -q -c 300 -i 0.002 -W 0.1 10.2.0.2 >/dev/null 2>&1 || true
	ip -n "$gate" link set g1 up
	ip -n "$right" route replace default via 10.2.0.1
	check "flap $n: ping again within 5 s" wait_for 5 through
done
full() {
	tele "smoke-$ID" /sgw/drop/list | tee /dev/stderr |
		"$PYTHON" -c 'import json, sys; sys.exit(json.load(sys.stdin)["tx_full"] == 0)'
}
check "what could not be sent was counted as tx_full" full
sums() { "$PYTHON" "$TOP/test/lib/labcheck.py" sums "smoke-$ID"; }
check "sums of the counters" sums
check "it stops" sgw_stop
check "no buffer was lost" grep -qE '^mbufs: ([0-9]+) of \1 free' "$DIR/sgw.out"
