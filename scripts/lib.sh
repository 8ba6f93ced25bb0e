# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What scripts/lab, scripts/test and test/smoke share. To be sourced; sets TOP and SGW.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${SGW:=$TOP/build/app/sgw/sgw}"
export SGW
export LC_ALL=C.UTF-8
export PYTHONDONTWRITEBYTECODE=1

say() { printf '%s\n' "$*"; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Debian's python, whatever else is first in PATH: it is the one with scapy.
unset PYTHONPATH PYTHONHOME
PYTHON=/usr/bin/python3

# build_sgw DIR [meson options…]: configure when new, then compile. Quiet unless it fails.
build_sgw() {
	local dir=$1 log
	shift
	log=$(mktemp)
	if [[ ! -f $dir/build.ninja ]]; then
		if ! meson setup "$dir" "$TOP" "$@" >"$log" 2>&1; then
			tail -n 40 "$log" >&2
			rm -f "$log"
			return 1
		fi
	fi
	if ! ninja -C "$dir" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		rm -f "$log"
		return 1
	fi
	if grep -q 'warning:' "$log"; then
		grep -A3 'warning:' "$log" | head -n 40 >&2
		echo "the compiler warns, see above" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# The CPUs this shell may use, one a line.
cpus() { "$PYTHON" -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")'; }

# eal_lcores N: control thread on any CPU, one worker on the Nth (from 0) that there is.
eal_lcores() {
	local all
	mapfile -t all < <(cpus)
	local list
	list=$(
		IFS=,
		echo "${all[*]}"
	)
	echo "0@($list),1@${all[$(($1 % ${#all[@]}))]}"
}

# huge_take PAGES DIR: try to have that many free 2 MiB pages and a mount for them.
# What was changed is noted in DIR/huge, for huge_give. Fails when it can not be had.
huge_take() {
	local pages=$1 dir=$2 proc=/proc/sys/vm/nr_hugepages old free
	[[ -w $proc ]] || return 1
	[[ $(awk '/^Hugepagesize:/ { print $2 }' /proc/meminfo) == 2048 ]] || return 1
	mkdir -p "$dir"
	free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
	if ((free < pages)); then
		old=$(cat $proc)
		[[ -f $dir/huge ]] || echo "pages $old" >"$dir/huge"
		echo $((old - free + pages + (free > old ? free - old : 0))) >$proc 2>/dev/null || true
		free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
		if ((free < pages)); then
			huge_give "$dir"
			return 1
		fi
	fi
	if ! awk '$3 == "hugetlbfs"' /proc/mounts | grep -q .; then
		mkdir -p "$dir/hugetlbfs"
		if ! mount -t hugetlbfs none "$dir/hugetlbfs" 2>/dev/null; then
			huge_give "$dir"
			return 1
		fi
	fi
}

# huge_give DIR: put back what huge_take changed.
huge_give() {
	local dir=$1
	if mountpoint -q "$dir/hugetlbfs" 2>/dev/null; then
		umount "$dir/hugetlbfs" 2>/dev/null || umount -l "$dir/hugetlbfs" || true
	fi
	if [[ -f $dir/huge ]]; then
		awk '$1 == "pages" { print $2 }' "$dir/huge" >/proc/sys/vm/nr_hugepages || true
		rm -f "$dir/huge"
	fi
}

# stop_pid FILE [SIGNAL]: end the process a pid file names, if it is still ours, within 6 s.
stop_pid() {
	local file=$1 signal=${2:-TERM} pid name
	[[ -f $file ]] || return 0
	read -r pid name <"$file" || true
	rm -f "$file"
	[[ -n ${pid:-} && -r /proc/$pid/comm && $(cat "/proc/$pid/comm") == "${name:-}" ]] || return 0
	kill -s "$signal" "$pid" 2>/dev/null || return 0
	for _ in $(seq 60); do
		[[ -d /proc/$pid ]] || return 0
		[[ $(awk '{ print $3 }' "/proc/$pid/stat" 2>/dev/null) == Z ]] && return 0
		sleep 0.1
	done
	kill -s KILL "$pid" 2>/dev/null || true
}

# note_pid FILE PID NAME
note_pid() { echo "$2 $3" >"$1"; }

# netns_drop NAME…: end what runs inside, then delete. Only for namespaces we made.
netns_drop() {
	local ns pid
	for ns in "$@"; do
		[[ -e /run/netns/$ns ]] || continue
		for pid in $(ip netns pids "$ns" 2>/dev/null); do
			kill -s KILL "$pid" 2>/dev/null || true
		done
		ip netns del "$ns"
	done
}

# netns_add NAME
netns_add() {
	ip netns add "$1"
	ip -n "$1" link set lo up
	# quiet: nothing of the kernel's own but what a test asks for
	ip netns exec "$1" sysctl -qw net.ipv6.conf.default.accept_ra=0 \
		net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.dad_transmits=0 \
		net.ipv6.conf.all.forwarding=0 net.ipv4.ip_forward=0
}

# veth NS1 IF1 NS2 IF2: a cable. No offloads: what is sent is what a wire would carry.
veth() {
	local ns=$1 if=$2
	ip link add "$if" netns "$1" type veth peer name "$4" netns "$3"
	for _ in 1 2; do
		ip netns exec "$ns" ethtool -K "$if" tx off rx off tso off gso off gro off sg off \
			rxvlan off txvlan off >/dev/null 2>&1 || true
		ns=$3 if=$4
	done
}

# veth_for_sgw NS IF: sgw's end of a cable; the kernel keeps out of it.
veth_for_sgw() {
	ip netns exec "$1" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1"
	ip -n "$1" link set "$2" arp off up
}

# wait_for SECONDS COMMAND…: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}
