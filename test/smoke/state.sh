#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that without its state file sgw stops sealing rather than risk a nonce twice: the disk full
# while it runs (sa_sequence_reserve), the file locked, damaged, or writable for others.
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

space gate
mkdir "$DIR/mount"
mount -t tmpfs -o size=1m none "$DIR/mount"
(cd "$TOP/test/lib" && "$PYTHON" - "$DIR/send.pcap" <<'EOF'
import sys, esp
esp.pcap_write(sys.argv[1], [esp.eth("02:00:00:00:01:01", "02:00:00:00:01:02",
                                     esp.udp("10.1.0.2", "10.9.0.1", 1, 2, b"x"))] * 256)
EOF
)
config sgw <<EOF
system: { name: smoke-$ID, mbufs: 4096, state: $DIR/mount/sgw.state }
ports:
  p0: { device: "net_pcap0,rx_pcap=$DIR/send.pcap,infinite_rx=1", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24] }
  p1: { device: "net_null0,no-rx=1", mac: "02:00:00:00:02:01", addresses: [192.0.2.1/24] }
neighbours:
  - { port: p1, address: 192.0.2.2, mac: "02:00:00:00:02:02" }
sad:
  - { name: only, spi: 0x1001, src: 192.0.2.1, dst: 192.0.2.2, mode: tunnel, aead: aes-gcm-16, key: "hex:$(printf '%040d' 7)" }
spd:
  - { dir: out, src: 10.1.0.0/24, dst: 10.9.0.0/24, action: protect, tunnel: 192.0.2.1-192.0.2.2 }
EOF
value() { # value KEY…: of the SA
	tele "smoke-$ID" /sgw/sa/info,only | "$PYTHON" -c '
import json, sys
v = json.load(sys.stdin)
for k in sys.argv[1:]:
    v = v.get(k, 0)
print(v)' "$@"
}
rises() { # rises KEY…: within half a second
	local was is
	was=$(value "$@")
	sleep 0.5
	is=$(value "$@")
	echo "$*: $was, then $is"
	((is > was))
}
stands() { ! rises "$@"; }
dropping() { rises drops sa_sequence_reserve; }
not_above() { # never a number beyond what is reserved
	local sequence reserved
	sequence=$(value sequence)
	reserved=$(value reserved)
	echo "sequence $sequence, reserved $reserved"
	((sequence <= reserved))
}
check "it starts, with packets as fast as they go" sgw_start "$gate" "$DIR/sgw.yaml"
check "packets are sealed" rises packets
dd if=/dev/zero of="$DIR/mount/fill" bs=4k 2>/dev/null || true # to the last byte
check "disk full: what is reserved is used up, then everything is dropped" wait_for 60 dropping
check "no packet is sealed" stands packets
check "no number was used that is not reserved" not_above
rm "$DIR/mount/fill"
check "space again: it heals" wait_for 15 rises packets
check "no number was used that is not reserved" not_above
refused() { # refused PATTERN
	local got=0
	sed "s/name: smoke-$ID/name: smoke-$ID-b/" "$DIR/sgw.yaml" | config other
	timeout 20 "$SGW" --no-pci --no-huge -m 256 --lcores "$(eal_lcores 1)" -- -f "$DIR/other.yaml" --exit-idle 500 \
		>"$DIR/out" 2>"$DIR/err" || got=$?
	echo "exit code $got, 4 expected"
	cat "$DIR/err"
	[[ $got == 4 ]] && grep -q 'sgw.state' "$DIR/err" && grep -qE "$1" "$DIR/err"
}
check "a second sgw with the same state file is refused" refused '(locked|use)'
check "it stops" sgw_stop
cp -p "$DIR/mount/sgw.state" "$DIR/good.state"
truncate -s -10 "$DIR/mount/sgw.state"
check "a cut state file is refused" refused .
printf 'nonsense\n' >"$DIR/mount/sgw.state"
check "a state file of nonsense is refused" refused .
cp -p "$DIR/good.state" "$DIR/mount/sgw.state"
chmod 666 "$DIR/mount/sgw.state"
check "a state file that others can write is refused" refused .
chmod 600 "$DIR/mount/sgw.state"
check "the good one is taken again" sgw_start "$gate" "$DIR/sgw.yaml"
check "it stops" sgw_stop
