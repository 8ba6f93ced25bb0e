#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that whatever stands in the way of a start is told in one line that says what is missing
# and what mends it, with the right exit code; and that sgw starts on two cores, and several side by side.
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mapfile -t CPUS < <(cpus)
simple() { # simple FILE NAME DEVICE: a configuration with one port
	config "$1" <<EOF
system: { name: smoke-$ID-$2, mbufs: 1024 }
ports:
  p0: { $3, addresses: [10.1.0.1/24] }
EOF
}
simple ok ok 'device: "net_null0,no-rx=1", mac: "02:00:00:00:00:01"'
QUIET=(--no-pci --no-huge -m 128)
TWO=(--lcores "0@${CPUS[0]},1@${CPUS[0]}")

# says CODE PATTERN EAL-options… -- options…: exit code, one line that fits, and nothing but it
says() {
	local code=$1 pattern=$2 got=0 lines
	shift 2
	timeout 30 "$SGW" "$@" </dev/null >"$DIR/out" 2>"$DIR/err" || got=$?
	echo "exit code $got, $code expected; pattern: $pattern"
	cat "$DIR/err"
	lines=$(grep -cv 'warning:' "$DIR/err")
	[[ $got == "$code" && $lines == 1 && ! -s $DIR/out ]] && grep -qiE "$pattern" "$DIR/err"
}

check "no file" says 2 '\-f' "${QUIET[@]}" "${TWO[@]}" --
check "a file that is not there" says 3 'nothing\.yaml.*No such file' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/nothing.yaml"
check "an option that does not exist" says 2 'bogus' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/ok.yaml" --bogus
check "no --" says 2 '\-\-' -f "$DIR/ok.yaml"
check "an EAL option that does not exist" says 2 'bogus' --bogus "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/ok.yaml"
huge_free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
if ((huge_free == 0)); then
	check "no hugepages" says 5 '(nr_hugepages|--no-huge)' --no-pci "${TWO[@]}" -- -f "$DIR/ok.yaml"
else
	check "fewer hugepages than asked for" says 5 '(nr_hugepages|--no-huge)' --no-pci -m $((huge_free * 2 + 512)) "${TWO[@]}" -- -f "$DIR/ok.yaml"
fi
check "a core that is not there" says 2 '(core|cpu|processor)' "${QUIET[@]}" -l "${CPUS[0]},1000" -- -f "$DIR/ok.yaml"
check "a core of EAL's range that is not there" says 2 '(core|cpu|processor)' "${QUIET[@]}" -l "${CPUS[0]},127" -- -f "$DIR/ok.yaml"
check "one core is one too few" says 2 '(-l|core)' "${QUIET[@]}" -l "${CPUS[0]}" -- -f "$DIR/ok.yaml"
simple vdev vdev 'device: "net_foo0"'
check "an unknown virtual device" says 3 'net_foo' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/vdev.yaml"
simple iface iface 'device: "net_af_packet0,iface=nosuch0"'
check "an interface that is not there" says 4 'nosuch0' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/iface.yaml"
simple args args 'device: "net_af_packet0,ifase=lo"'
check "an argument that the device does not know" says 4 '(ifase|net_af_packet0)' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/args.yaml"
simple pcap pcap 'device: "net_pcap0,rx_pcap=/nonexistent.pcap"'
check "a capture that is not there" says 4 '(nonexistent|net_pcap0)' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/pcap.yaml"
simple pci pci 'pci: "0000:fe:1f.7"'
check "a PCI address where nothing is" says 4 '0000:fe:1f\.7' --no-huge -m 128 "${TWO[@]}" -- -f "$DIR/pci.yaml"
simple mac mac 'mac: "02:de:ad:be:ef:00"'
check "a MAC that no NIC has" says 4 '02:de:ad:be:ef:00' --no-huge -m 128 "${TWO[@]}" -- -f "$DIR/mac.yaml"
sed 's/mbufs: 1024/mbufs: 1048576/' "$DIR/ok.yaml" | config large
check "more buffers than memory" says 5 'mbufs' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/large.yaml"
sed "s|name: smoke-$ID-ok|name: smoke-$ID-st, state: /proc/nowhere/x.state|" "$DIR/ok.yaml" | config state
check "a state file where none can be" says 5 '/proc/nowhere' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/state.yaml"
printf 'ports: { p0: { device: "net_null0,no-rx=1" }\n' | config broken
check "a file that is no YAML" says 3 'broken\.yaml:[0-9]+:[0-9]+: ' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/broken.yaml"

space gate
check "it starts" sgw_start "$gate" "$DIR/ok.yaml"
check "a second one of the same name" says 4 'another process.*system.name' "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/ok.yaml"
simple other other 'device: "net_null0,no-rx=1", mac: "02:00:00:00:00:01"'
other() { timeout 20 "$SGW" "${QUIET[@]}" "${TWO[@]}" -- -f "$DIR/other.yaml" --exit-idle 200; }
check "another name beside it" other
check "--check beside it touches nothing, and needs no root" \
	setpriv --reuid 65534 --regid 65534 --clear-groups "$SGW" -- -f "$TOP/config/rcc-ve.yaml" --check
check "the first one stops" sgw_stop

two_cores() {
	if ((${#CPUS[@]} < 2)); then
		echo "only one CPU here: $(nproc)"
		return 1
	fi
	timeout 20 "$SGW" "${QUIET[@]}" -l "${CPUS[0]},${CPUS[1]}" -- -f "$DIR/ok.yaml" --exit-idle 200
}
check "-l with two cores" two_cores
check "--version" "$SGW" --version
check "--help" "$SGW" --help
