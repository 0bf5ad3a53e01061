#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Judge: Wireshark's InfiniBand dissector must find in wire/'s packets what wire_emit
# says it put there. Usage: judge_tshark.sh WIRE_EMIT
set -eu

command -v tshark >/dev/null 2>&1 || {
	echo "skipped: tshark is not installed"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$1" "$dir/wire.pcap" >"$dir/emitted.txt"
# Trailers are scapy's business: in sdr mode the last bytes are no ICRC anyway.
tshark -n -r "$dir/wire.pcap" -T fields -E separator=' ' -E occurrence=f \
	-e infiniband.bth.opcode -e infiniband.bth.destqp -e infiniband.bth.psn \
	-e infiniband.reth.va -e infiniband.reth.r_key -e infiniband.reth.dmalen \
	-e infiniband.immdt -e infiniband.deth.srcqp -e infiniband.invariant.crc \
	2>"$dir/tshark.err" >"$dir/fields.txt" || {
	cat "$dir/tshark.err"
	exit 1
}

# Numbers in decimal or hex on either side: compare as numbers.
/usr/bin/env python3 - "$dir/emitted.txt" "$dir/fields.txt" <<'PYTHON'
import sys

emitted = [line.split() for line in open(sys.argv[1])]
fields = [line.rstrip("\n").split(" ") for line in open(sys.argv[2])]
bad = len(emitted) != len(fields)
for number, (want, got) in enumerate(zip(emitted, fields), 1):
    expected = want[3:10] if want[3] == "0x2b" else want[3:6] + [""] * 4
    # tshark shows ImmDt as bare bytes.
    got[6] = got[6] and "0x" + got[6]
    expected += ["", "0x" + want[10]] if want[3] == "0x2b" else ["0x42", "0x" + want[10]]
    same = all((w == g == "") or (w and g and int(w, 0) == int(g, 0))
               for w, g in zip(expected, got)) and len(got) == len(expected)
    if not same:
        bad = True
        print(f"packet {number}: want {expected}, tshark has {got}")
print(f"{len(fields)} of {len(emitted)} packets dissected")
sys.exit(bad or not fields)
PYTHON
