#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that ARP and neighbour discovery work against the Linux kernel, without static entries.
#
#   left (kernel)                sgw                  right (kernel)
#   10.1.0.2, fd01::2 ─── 10.1.0.1, fd01::1
#                         10.2.0.1, fd02::1 ─── 10.2.0.2, fd02::2
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
host() { # NAMESPACE N MAC
	ip -n "$1" link set eth0 address "$3" up
	ip -n "$1" addr add "10.$2.0.2/24" dev eth0
	ip -n "$1" addr add "fd0$2::2/64" dev eth0 nodad
	ip -n "$1" route add default via "10.$2.0.1"
	ip -n "$1" -6 route add default via "fd0$2::1"
}
host "$left" 1 02:00:00:00:01:02
host "$right" 2 02:00:00:00:02:02
config sgw <<EOF
system: { name: smoke-$ID, mbufs: 4096 }
ports:
  p0: { device: "net_af_packet0,iface=g0", mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24, "fd01::1/64"] }
  p1: { device: "net_af_packet1,iface=g1", mac: "02:00:00:00:02:01", addresses: [10.2.0.1/24, "fd02::1/64"] }
spd:
  - { dir: in, src: any4, dst: any4, action: bypass }
  - { dir: out, src: any4, dst: any4, action: bypass }
  - { dir: in, src: any6, dst: any6, action: bypass }
  - { dir: out, src: any6, dst: any6, action: bypass }
EOF
sgw_start "$gate" "$DIR/sgw.yaml"

l() { ip netns exec "$left" "$@"; }
r() { ip netns exec "$right" "$@"; }
none_lost() { # WHO ADDRESS [COUNT]
	local out
	out=$("$1" ping -n -c "${3:-5}" -i 0.05 -W 3 "$2")
	echo "$out"
	grep -q ' 0% packet loss' <<<"$out"
}
knows() { # WHO ADDRESS MAC
	"$1" ip neigh show "$2" | tee /dev/stderr | grep -q "lladdr $3"
}
check "the first ping through sgw waits for both resolutions and is not lost, IPv4" none_lost l 10.2.0.2
check "the same, IPv6" none_lost l fd02::2
check "and back, IPv4" none_lost r 10.1.0.2
check "and back, IPv6" none_lost r fd01::2
check "ping to sgw's own near address, IPv4" none_lost l 10.1.0.1
check "ping to sgw's own near address, IPv6" none_lost l fd01::1
check "ping to sgw's own far address, IPv4" none_lost l 10.2.0.1
check "ping to sgw's own far address, IPv6" none_lost l fd02::1
check "ping to sgw's link-local address" none_lost l fe80::ff:fe00:101%eth0
check "the kernel has learned sgw's MAC by ARP" knows l 10.1.0.1 02:00:00:00:01:01
check "and by neighbour discovery" knows l fd01::1 02:00:00:00:01:01

dad() { # an address that sgw has: the kernel must find the duplicate
	l sysctl -qw net.ipv6.conf.eth0.accept_dad=1 net.ipv6.conf.eth0.dad_transmits=1
	l ip addr add fd01::1/64 dev eth0
	sleep 2
	l ip addr show dev eth0 | tee /dev/stderr | grep 'fd01::1/' | grep -q dadfailed
	local found=$?
	l ip addr del fd01::1/64 dev eth0
	return $found
}
check "duplicate address detection finds sgw's address taken" dad

moved() { # the right host gets another MAC and says something
	r ip link set eth0 address 02:00:00:00:02:99
	r ip route replace default via 10.2.0.1
	r ip -6 route replace default via fd02::1
	none_lost r 10.2.0.1 2 && none_lost r fd02::1 2 && none_lost l 10.2.0.2 && none_lost l fd02::2
}
check "a host that comes back with another MAC is reached" moved

unreachable() { # ADDRESS PATTERN
	local out
	out=$(l ping -n -c 1 -W 6 "$1" 2>&1) && return 1
	echo "$out"
	grep -qi "$2" <<<"$out"
}
check "nobody there: host unreachable comes back, IPv4" unreachable 10.2.0.77 'From 10.1.0.1 .*Host Unreachable'
check "nobody there: address unreachable comes back, IPv6" unreachable fd02::77 'From fd01::1 .*unreachable'
check "the table can be seen" tele "smoke-$ID" /sgw/neigh/list
sums() { "$PYTHON" "$TOP/test/lib/labcheck.py" sums "smoke-$ID"; }
check "sums of the counters" sums
check "it stops" sgw_stop
check "no buffer was lost" grep -qE '^mbufs: ([0-9]+) of \1 free' "$DIR/sgw.out"
