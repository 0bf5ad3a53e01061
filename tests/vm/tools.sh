#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: the command over RDMA devices on a link that loses, delays and reorders: a
# file each way, digest equal, and what `sdr perf` says. Nothing here says how fast it is.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
sdr=$SDR_BUILD/src/tool/sdr
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

listens() { # ADDRESS: until the handshake's port is open
	local n
	for ((n = 0; n < 300; n++)); do
		(: >/dev/tcp/"$1"/4792) 2>/dev/null && return
		sleep 0.2
	done
	echo "nothing listens on $1" && exit 1
}

file() { # NAME FROM_DEVICE FROM TO_DEVICE TO
	mkdir "$dir/$1"
	head -c 2M /dev/urandom >"$dir/$1.bin"
	"$sdr" recv --once --device "verbs:$4" --bind "$5" --dir "$dir/$1" &
	listens "$5"
	"$sdr" send --device "verbs:$2" --bind "$3" "$dir/$1.bin" "$5"
	wait
	cmp "$dir/$1.bin" "$dir/$1/$1.bin"
	echo "$1: digest equal"
}

"$here/netem" loss 1% delay 1ms reorder 5%
file there "$SDR_VM_DEV_A" "$SDR_VM_A" "$SDR_VM_DEV_B" "$SDR_VM_B"
file back "$SDR_VM_DEV_B" "$SDR_VM_B6" "$SDR_VM_DEV_A" "$SDR_VM_A6"

"$here/netem" loss 1%
"$sdr" perf --once --device "verbs:$SDR_VM_DEV_B" --bind "$SDR_VM_B" &
listens "$SDR_VM_B"
# Told a rate: it would try for ten seconds to find one.
"$sdr" perf --device "verbs:$SDR_VM_DEV_A" --bind "$SDR_VM_A" --rate 100Mbit "$SDR_VM_B" --size 16KiB \
	--iters 30 --json >"$dir/perf.json"
wait
cat "$dir/perf.json"
/usr/bin/python3 - "$dir/perf.json" <<'PYTHON'
import json
import sys

runs = [r for r in json.load(open(sys.argv[1])) if r["size"] == 16384]
assert runs and sum(r["messages"] for r in runs) >= 30, runs
assert all(r["payload_bytes"] == 1024 for r in runs), "rxe on 1500 bytes carries 1024"
PYTHON
