#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside tests/vm/vm: are the RDMA devices and the link between them what the other tests
# take them for? perftest writes from rxe0 to rxe1 over UC, and the counters of the veth
# must have seen it; with netem, they must have seen the loss. Of no part of this project.
set -euo pipefail
[ "${SDR_VM-}" = 1 ] || { echo "skipped: not inside tests/vm/vm" && exit 77; }
command -v ib_write_bw >/dev/null || { echo "skipped: no ib_write_bw (package: perftest)" && exit 77; }
here=$(dirname "$0")
out=$(mktemp -d)

die() {
	echo "perftest: $*"
	tail -n 30 "$out"/* 2>/dev/null
	exit 1
}

# An address as the text of its GID, as /sys has it. (Python would take a second to start.)
gid_of() { # ADDRESS
	local IFS=:. words tail text
	# shellcheck disable=SC2206  # split at IFS
	case $1 in
	*:*)
		words=(${1%%::*}) tail=()
		[[ $1 != *::* ]] || tail=(${1##*::})
		while [ $((${#words[@]} + ${#tail[@]})) -lt 8 ]; do words+=(0); done
		printf -v text '%04x:' "${words[@]/#/0x}" "${tail[@]/#/0x}"
		;;
	*)
		words=($1)
		printf -v text '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x:' "${words[@]}"
		;;
	esac
	echo "${text%:}"
}

gid_index() { # DEVICE ADDRESS
	local dir=/sys/class/infiniband/$1/ports/1 want file gid
	want=$(gid_of "$2")
	for file in "$dir"/gids/*; do
		read -r gid <"$file"
		[ "$gid" != "$want" ] || { echo "${file##*/}" && return; }
	done
	die "$1 has no GID for $2"
}

counter() { cat "/sys/class/net/$1/statistics/$2"; }                       # DEVICE NAME
rxe_counter() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"; } # DEVICE NAME

# Messages of SIZE bytes from A to B, ITERS of them.
write_bw() { # NAME ADDR_A ADDR_B SIZE ITERS
	local a b pid rc=0
	a=$(gid_index "$SDR_VM_DEV_A" "$2")
	b=$(gid_index "$SDR_VM_DEV_B" "$3")
	timeout 60 ib_write_bw -c UC -F -s "$4" -n "$5" -d "$SDR_VM_DEV_B" -x "$b" \
		>"$out/$1-server" 2>&1 &
	pid=$!
	for _ in $(seq 300); do
		[ -z "$(ss -Hltn 'sport = 18515')" ] || break
		sleep 0.1
	done
	timeout 60 ib_write_bw -c UC -F -s "$4" -n "$5" -d "$SDR_VM_DEV_A" -x "$a" "$SDR_VM_B" \
		>"$out/$1-client" 2>&1 || rc=$?
	wait $pid || rc=$?
	return $rc
}

SIZE=65536 ITERS=40

carried() { # NAME ADDR_A ADDR_B: the link sees all of the bytes, and so does the other device
	local sent got came bytes=$((SIZE * ITERS))
	sent=$(counter rdma0 tx_bytes)
	got=$(counter rdma1 rx_bytes)
	came=$(rxe_counter "$SDR_VM_DEV_B" rcvd_pkts)
	write_bw "$@" $SIZE $ITERS || die "$1: ib_write_bw failed"
	sent=$(($(counter rdma0 tx_bytes) - sent))
	got=$(($(counter rdma1 rx_bytes) - got))
	came=$(($(rxe_counter "$SDR_VM_DEV_B" rcvd_pkts) - came))
	[ $sent -ge $bytes ] && [ $got -ge $bytes ] && [ $came -ge $((bytes / 4096)) ] ||
		die "$1: of $bytes bytes, rdma0 sent $sent and rdma1 received $got;" \
			"$SDR_VM_DEV_B received $came packets"
	echo "$1: $bytes bytes written, $sent on the link, $came packets received"
}

lossy() { # NAME ADDR_A ADDR_B: what netem takes is not there, and UC goes on without
	local sent got
	sent=$(rxe_counter "$SDR_VM_DEV_A" sent_pkts)
	got=$(rxe_counter "$SDR_VM_DEV_B" rcvd_pkts)
	"$here/netem" loss 5%
	write_bw "$@" $SIZE $ITERS || die "$1: ib_write_bw failed"
	"$here/netem" none
	sent=$(($(rxe_counter "$SDR_VM_DEV_A" sent_pkts) - sent))
	got=$(($(rxe_counter "$SDR_VM_DEV_B" rcvd_pkts) - got))
	[ $got -gt 0 ] && [ $got -lt $sent ] ||
		die "$1: of $sent packets $got came, with a loss of 5% on the link"
	echo "$1: of $sent packets $got came"
}

carried ipv4 "$SDR_VM_A" "$SDR_VM_B"
carried ipv6 "$SDR_VM_A6" "$SDR_VM_B6"
lossy loss "$SDR_VM_A" "$SDR_VM_B"
