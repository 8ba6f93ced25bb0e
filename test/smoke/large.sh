#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a file with 10,000 SAs and 10,000 policies is accepted and runs in the memory that
# docs/architecture.md says, that 100,000 routes do, and that large files full of mistakes or of what
# must be compared are answered soon. Of these all, fast is seconds here: the machine may be busy.
# shellcheck disable=SC2154 # space() sets the names of the namespaces
set -euo pipefail
# shellcheck source=test/smoke/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

SOON=10 # seconds; a tenth is usual

head_of() { # head_of NAME
	cat <<EOF
system: { name: smoke-$ID-$1, state: $DIR/$1.state }
ports:
  lan: { device: "net_null0,no-rx=1", mac: "02:00:00:00:00:01", addresses: [10.255.0.1/24] }
  wan: { device: "net_null1,no-rx=1", mac: "02:00:00:00:00:02", addresses: [203.0.113.1/24] }
routes:
  - { to: 0.0.0.0/0, via: 203.0.113.254 }
EOF
}

# sas N KIND: N pairs of SAs. peers: a peer and reqid each; one: one peer, a reqid each; same: one
# peer and one reqid for all; spi, key: the same; modes: in transport mode.
sas() {
	echo "sad:"
	awk -v n="$1" -v kind="$2" 'BEGIN {
		for (i = 0; i < n; i++) {
			peer = kind == "peers" || kind == "modes" ? sprintf("198.18.%d.%d", i / 200, i % 200 + 1) : "203.0.113.9"
			reqid = kind == "same" ? 1 : i + 1
			for (out = 0; out < 2; out++)
				printf "  - { spi: %d, src: %s, dst: %s, mode: %s, reqid: %d, aead: aes-gcm-16, key: \"hex:%040x\" }\n",
					kind == "spi" ? 4096 : 4096 + 2 * i + out, out ? "203.0.113.1" : peer,
					out ? peer : "203.0.113.1", kind == "modes" ? "transport" : "tunnel", reqid,
					kind == "key" ? 1 : 2 * i + out + 1
		}
	}'
}

policies() { # policies N KIND: as many policies for these
	echo "spd:"
	awk -v n="$1" -v kind="$2" 'BEGIN {
		for (i = 0; i < n; i++) {
			peer = kind == "peers" || kind == "modes" ? sprintf("198.18.%d.%d", i / 200, i % 200 + 1) : "203.0.113.9"
			near = sprintf("10.%d.%d.0/24", i / 250, i % 250)
			far = sprintf("172.%d.%d.0/24", 16 + i / 250, i % 250)
			reqid = kind == "same" || kind == "any" ? "" : sprintf(", reqid: %d", i + 1)
			for (out = 0; out < 2; out++)
				if (kind == "modes")
					printf "  - { dir: %s, src: %s, dst: %s, action: protect, mode: transport%s }\n", out ? "out" : "in",
						out ? "203.0.113.1" : peer, out ? peer : "203.0.113.1", reqid
				else
					printf "  - { dir: %s, src: %s, dst: %s, action: protect, tunnel: %s%s }\n", out ? "out" : "in",
						out ? near : far, out ? far : near,
						out ? "203.0.113.1-" peer : peer "-203.0.113.1", reqid
		}
	}'
}

for kind in peers one same modes spi key any; do
	{
		head_of "$kind"
		sas 5000 "$kind"
		policies 5000 "$kind"
	} | config "$kind"
done
{
	head_of routes
	awk 'BEGIN { for (i = 0; i < 99999; i++) printf "  - { to: %d.%d.%d.0/24, via: 203.0.113.%d }\n",
		20 + i / 65536, i / 256 % 256, i % 256, 2 + i % 250 }'
} | config routes
{
	head_of names
	awk 'BEGIN { for (i = 0; i < 99999; i++) printf "  - { to: 20.%d.%d.0/24, tunel: wa%d }\n", i / 256 % 256, i % 256, i }'
} | config names

says() { # says NAME CODE PATTERN: what --check says, and soon
	local got=0
	timeout "$SOON" "$SGW" -- -f "$DIR/$1.yaml" --check >"$DIR/out" 2>&1 || got=$?
	echo "exit code $got, $2 expected; pattern: $3"
	head -n 5 "$DIR/out"
	[[ $got == "$2" ]] && grep -qE "$3" "$DIR/out"
}
check "10,000 SAs and policies, a peer each" says peers 0 'has 10000 policies'
check "10,000 of both to one peer" says one 0 'has 10000 policies'
check "10,000 SAs that are alike" says same 0 'outbound for the same traffic'
check "10,000 in transport mode" says modes 0 'has 10000 policies'
check "10,000 SAs with one SPI" says spi 3 'is there already \(line 8\)'
check "10,000 SAs with one key" says key 0 'is the key of SA 0x1000 too \(line 8\)'
check "10,000 policies that could mean any of 10,000 SAs" says any 3 'has no reqid'
check "100,000 routes" timeout "$SOON" "$SGW" -- -f "$DIR/routes.yaml" --check
check "100,000 routes with a mistake" says names 3 'unknown key "tunel"; did you mean "tunnel"'

space gate
soon() { # soon NAME: it starts
	local began=$SECONDS
	sgw_start "$gate" "$DIR/$1.yaml" && ((SECONDS - began <= SOON))
}
for kind in peers modes routes; do
	check "start of $kind in 256 MB" soon "$kind"
	[[ $kind == routes ]] || check "the last SA of $kind is there" \
		bash -c "$(declare -f tele); TOP=$TOP PYTHON=$PYTHON; tele smoke-$ID-$kind /sgw/sa/info,0x370f | grep -q '\"spi\": 14095'"
	check "stop of $kind" sgw_stop
done
