#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that kill -9 and a new start work 20 times in a row without cleaning up by hand, and that
# over all of them no sequence number and no IV of the GCM SA is used twice, as read from the wire.
#
#   host (kernel)          sgw                      wire
#   10.1.0.2 ─── 10.1.0.1      192.0.2.1 ═══ESP═══ tcpdump, as 192.0.2.2
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

space host
space gate
space wire
veth "$host" eth0 "$gate" g0
veth "$gate" g1 "$wire" eth0
veth_for_sgw "$gate" g0
veth_for_sgw "$gate" g1
veth_for_sgw "$wire" eth0
ip -n "$host" link set eth0 up
ip -n "$host" addr add 10.1.0.2/24 dev eth0
ip -n "$host" route add default via 10.1.0.1
config sgw <<EOF
system: { name: smoke-$ID, mbufs: 4096, state: $DIR/sgw.state }
ports:
  p0: { device: "net_af_packet0,iface=g0", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24] }
  p1: { device: "net_af_packet1,iface=g1", mac: "02:00:00:00:02:01", addresses: [192.0.2.1/24] }
neighbours:
  - { port: p1, address: 192.0.2.2, mac: "02:00:00:00:02:02" }
sad:
  - { spi: 0x1001, src: 192.0.2.1, dst: 192.0.2.2, mode: tunnel, aead: aes-gcm-16, key: "hex:$(printf '%040d' 7)" }
spd:
  - { dir: out, src: 10.1.0.0/24, dst: 10.9.0.0/24, action: protect, tunnel: 192.0.2.1-192.0.2.2 }
EOF
ip netns exec "$wire" tcpdump -n -U --immediate-mode -Z root -i eth0 -Q in -w "$DIR/wire.pcap" esp \
	</dev/null >/dev/null 2>"$DIR/tcpdump.log" &
note_pid "$DIR/tcpdump.pid" $! tcpdump
disown
wait_for 10 grep -q 'listening on' "$DIR/tcpdump.log"

pings() { ip netns exec "$host" ping -n -q -c 10 -i 0.01 -W 0.1 10.9.0.1 || true; }
for n in $(seq 20); do
	check "start $n" sgw_start "$gate" "$DIR/sgw.yaml"
	pings >/dev/null
	kill -KILL "$PID"
	wait_for 5 gone
done
check "start after all that" sgw_start "$gate" "$DIR/sgw.yaml"
pings >/dev/null
check "it stops" sgw_stop
sleep 0.3
stop_pid "$DIR/tcpdump.pid" INT

never_twice() {
	(cd "$TOP/test/lib" && "$PYTHON" - "$DIR/wire.pcap" "$DIR/sgw.yaml" <<'EOF'
import sys, esp
sa = esp.load_sas(sys.argv[2])[0]
packets = [esp.split_outer(f[14:])[3] for f in esp.pcap_read(sys.argv[1])]
numbers = [sa.open(p)[0] for p in packets]
ivs = {p[8:16] for p in packets}
print(f"{len(packets)} packets, {len(ivs)} IVs, {len(set(numbers))} numbers, {numbers[0]}…{numbers[-1]}")
assert len(packets) >= 21 * 9, "packets are missing"
assert len(ivs) == len(packets), "an IV came twice"
assert all(a < b for a, b in zip(numbers, numbers[1:])), "numbers do not only rise"
EOF
	)
}
check "no IV and no number twice in 21 lives" never_twice
check "nothing is left of the killed but what the next start takes over" test "$(find /var/run/dpdk -maxdepth 1 -name "smoke-$ID*" | wc -l)" -le 1
