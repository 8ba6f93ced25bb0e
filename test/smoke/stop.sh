#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that SIGTERM and SIGINT end sgw within 5 s, at rest and under load, with an account that
# adds up and every buffer back.
#
#   host (kernel) 10.1.0.2 ─── 10.1.0.1 sgw
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

space host
space gate
veth "$host" eth0 "$gate" g0
veth_for_sgw "$gate" g0
ip -n "$host" link set eth0 up
ip -n "$host" addr add 10.1.0.2/24 dev eth0
config sgw <<EOF
system: { name: smoke-$ID, mbufs: 4096 }
ports:
  p0: { device: "net_af_packet0,iface=g0", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24] }
EOF

account() { # the sums of the one port, and no buffer lost
	cat "$DIR/sgw.out"
	grep -qE '^mbufs: ([0-9]+) of \1 free' "$DIR/sgw.out" &&
		(cd "$TOP/test/lib" && "$PYTHON" -c '
import sys, sgw
faults = sgw.Account(open(sys.argv[1]).read()).faults()
sys.exit("\n".join(faults) if faults else 0)' "$DIR/sgw.out")
}
exit_code() { # of a signal that is caught: 0
	local got=0
	ip netns exec "$gate" timeout -s "$1" 2 "$SGW" --no-pci --no-huge -m 256 --lcores "$(eal_lcores 1)" -- \
		-f "$DIR/sgw.yaml" >"$DIR/sgw.out" 2>"$DIR/sgw.err" || got=$?
	echo "timeout says $got"
	[[ $got == 124 ]] && grep -q '^port p0' "$DIR/sgw.out"
}
for signal in TERM INT; do
	check "it starts" sgw_start "$gate" "$DIR/sgw.yaml"
	check "$signal at rest" sgw_stop $signal
	check "account after $signal at rest" account
	check "it starts" sgw_start "$gate" "$DIR/sgw.yaml"
	ip netns exec "$host" ping -q -f -w 20 10.1.0.1 >/dev/null 2>&1 &
	ping=$!
	sleep 1
	check "$signal under a flood of pings" sgw_stop $signal
	kill $ping 2>/dev/null || true
	wait $ping 2>/dev/null || true
	check "account after $signal under load" account
	check "account shows the pings" grep -qE '^port p0: received [0-9]{3,}' "$DIR/sgw.out"
	check "exit code after $signal" exit_code $signal
done
