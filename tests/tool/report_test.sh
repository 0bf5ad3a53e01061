#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is printed for machines: every --json parses and has its keys; perf prints both
# phases, in JSON and in the tables of perftest.
. "$(dirname "$0")/lib.sh"

keys() { # FILE KEY...: of the outermost object, or of each in a list
	python3 - "$@" <<'END'
import json
import sys

with open(sys.argv[1]) as file:
    value = json.load(file)
items = value if isinstance(value, list) else [value]
missing = {key for key in sys.argv[2:] for item in items if key not in item}
if not items or missing:
    sys.exit(f"{sys.argv[1]}: {len(items)} objects, missing {sorted(missing)}")
END
}
value() { # FILE EXPRESSION of v
	python3 -c 'import json,sys; v=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"
}

TRANSFER=(command status error peer scheme channels files failed bytes seconds goodput_bps
	tx_pkts lost_pkts loss resent_bytes parity_bytes rtt_ns sha256
	write_scheme why decisions writes_coded writes_no_room repair_pkts copy_pkts recovered_pkts
	decoded_pkts)
mkdir dst
head -c 1000000 /dev/urandom >file
serve recv recv --dir dst --once --json
RECV=$PID
run 0 send --json file "127.0.0.1:$PORT"
wait_rc "$RECV" 0 "recv"
check "send --json" keys out "${TRANSFER[@]}"
check "recv --json" keys recv.out "${TRANSFER[@]}"
check "bytes" test "$(value out 'v["bytes"]')" = 1000000
check "digest" test "$(value out 'v["sha256"]')" = "$(sha256sum file | cut -c1-64)"
check "digest" test "$(value recv.out 'v["sha256"]')" = "$(sha256sum file | cut -c1-64)"
run 1 send --json file "127.0.0.1:$(free_port)"
check "send --json that failed" test "$(value out 'v["status"]')" = failed

# Told a rate, it does not settle for up to ten seconds until it has found one.
RATE=(--rate 2Gbit)
PERF=(scheme phase bytes seconds goodput_bps messages p50_ns p99_ns p999_ns resent_bytes
	parity_bytes write_scheme why decisions writes_coded writes_no_room repair_pkts copy_pkts
	recovered_pkts)
serve perf perf --once
SERVER=$PID
run 0 perf --json "${RATE[@]}" --sizes 64,4KiB,64KiB --iters 50 --depth 8 "127.0.0.1:$PORT"
check "perf --json" keys out "${PERF[@]}"
check "cold and warm of each size" test \
	"$(value out '[o["phase"] for o in v] == ["cold", "warm"] * 3')" = True
check "all messages" test \
	"$(value out 'all(o["messages"] == 50 for o in v if o["phase"] == "warm")')" = True
wait_rc "$SERVER" 0 "perf server"

serve perf perf --once
SERVER=$PID
run 0 perf --lat -n 50 --json "127.0.0.1:$PORT"
check "perf --lat --json" keys out "${PERF[@]}"
check "percentiles rise" test \
	"$(value out 'all(o["p50_ns"] <= o["p99_ns"] <= o["p999_ns"] for o in v)')" = True
wait_rc "$SERVER" 0 "perf server"

serve perf perf --once
SERVER=$PID
run 0 perf --json "${RATE[@]}" --each --settle-depth 8 -t 1 -n 5 "127.0.0.1:$PORT"
check "one at a time, after a deeper settling" test "$(value out \
	'all(o["depth"] == 1 and len(o["each"]) == 5 and all(a[1] <= b[0] for a, b in
	zip(o["each"], o["each"][1:])) for o in v if o["phase"] == "warm")')" = True
wait_rc "$SERVER" 0 "perf server"
serve perf perf --once
SERVER=$PID
run 0 perf --json --each --cold -n 7 "127.0.0.1:$PORT"
check "the cold phase only" test "$(value out '[(o["phase"], len(o["each"])) for o in v]')" = \
	"[('cold', 7)]"
wait_rc "$SERVER" 0 "perf server"
run 2 perf --each "127.0.0.1:$PORT"
says "each needs --json"

serve perf perf
SERVER=$PID
run 0 perf "${RATE[@]}" -s 4096 -n 20 "127.0.0.1:$PORT"
check "the head of ib_write_bw" grep -qE '#bytes +#iterations +BW peak\[MiB/sec\] +BW average\[MiB/sec\] +MsgRate\[Mpps\]' out
check "its line" grep -qE '^ 4096 +20 .*warm$' out
check "the cold line" grep -qE 'cold$' out
run 0 perf --lat -n 20 "127.0.0.1:$PORT"
check "the head of ib_write_lat" grep -qE '#bytes #iterations +t_min\[usec\] +t_max\[usec\] +t_typical\[usec\] +t_avg\[usec\] +t_stdev\[usec\] +99% percentile\[usec\] +99.9% percentile\[usec\]' out
check "its line" grep -qE '^ 2 +20 .*warm$' out
run 0 perf -D 200ms -q 2 "127.0.0.1:$PORT"
kill -INT "$(pid_of "$SERVER")"
wait_rc "$SERVER" 0 "perf server that was stopped"

serve ping ping --listen
SERVER=$PID
run 0 ping -c 3 -i 20ms --json "127.0.0.1:$PORT"
check "ping --json" keys out command status peer channels reordered_pkts
check "its channel" test "$(value out 'v["channels"][0]["received"] >= 3')" = True
kill -INT "$(pid_of "$SERVER")"
wait "$SERVER"

run 0 info --json
check "info --json" keys out version default_port schemes devices limits host counters
check "schemes" test "$(value out '"sr-nack" in v["schemes"]')" = True
run 0 info
check "info names the buffers" grep -q "net.core.rmem_max" out
finish
