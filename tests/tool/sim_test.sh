#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sdr sim from outside: scenarios from flags and files, tables, JSON, CSV and charts, shards and
# their merging, Ctrl-C, and mistakes that name flag, value and limit.
. "$(dirname "$0")/lib.sh"

LINK="sim --rtt 25ms --bw 400Gbit"
FAST="$LINK --loss 1e-3 --size 64KiB --runs 20"

# arguments after --rtt 25ms --bw 400Gbit | what the message has to say
# shellcheck disable=SC2086  # words
refuses $LINK <<'END'
--size 1MiB|needs --loss
--loss 0|needs --size
--loss 0 --size 1MiB extra|takes no arguments but merge
--loss 0 --size 1MiB --km 100|--rtt and --km exclude each other
--loss 1 --size 1MiB|--loss 1: out of range: choose from 0 to below 1
--loss 1e-3,200% --size 1MiB|--loss 1e-3,200%: '200%' of it: out of range
--loss -0.1 --size 1MiB|--loss -0.1: not a ratio
--loss 0..1e-3 --size 1MiB|begins with the smaller value, above 0
--loss 0 --ack-loss 2 --size 1MiB|--ack-loss 2: out of range
--loss 0 --burst 0 --size 1MiB|--burst 0: out of range: choose from 1 to
--loss 0.9 --burst 2 --size 1MiB|--burst: burst of 2 is out of range: choose from 9
--loss 0 --size 0|--size 0: out of range
--loss 0 --size big|--size big: not a size
--loss 0 --size 2MiB..1MiB|begins with the smaller value
--loss 0 --size 100TiB|--size: size of 109951162777600 is out of range
--loss 0 --size 1MiB,1024KiB|a value twice
--loss 0 --size 1MiB --chunk 12KiB|a chunk is a power of two of packets
--loss 0 --size 1MiB --chunk 512KiB|--chunk 524288: the engine takes at most 64 packets
--loss 0 --size 1MiB --packet 1|--packet 1: out of range
--loss 0 --size 1MiB --packet 5000 --device nic|RDMA devices take 1024, 2048 or 4096
--loss 0 --size 1MiB --queue 100|--queue 100: no packet would pass
--loss 0 --size 1MiB --scheme tcp|--scheme tcp: unknown scheme: choose gbn, sr, sr-nack
--loss 0 --size 1MiB --scheme sr:rto=0.5|--scheme sr:rto=0.5: rto='0.5' of sr: choose rto=dyn|1..100
--loss 0 --size 1MiB --scheme ec:32|--scheme ec:32: ec needs K and M
--loss 0 --size 1MiB --scheme ec:250,10|--scheme ec:250,10: k + m = 260 of ec: a block has at most 255
--loss 0 --size 1MiB --scheme sr,ec:32,8,depth=0|'ec:32,8,depth=0' of it: depth='0' of ec: choose
--loss 0 --size 1MiB --scheme hybrid|--scheme hybrid: hybrid needs K and M
--loss 0 --size 1MiB --scheme ec-paper:250,10|--scheme ec-paper:250,10: m of 10 is out of range
--loss 0 --size 1MiB --scheme ec-paper:32,8 --engine real|--scheme ec-paper:32,8: the paper's, which is a model only
--loss 0 --size 1MiB --engine fake|--engine fake: unknown: choose auto, real, model
--loss 0 --size 1MiB --device tin|--device tin: unknown: choose udp, roce, nic
--loss 0 --size 1MiB --runs 0|--runs 0: out of range: choose from 1 to 1000000
--loss 0 --size 1MiB --runs 1000001|--runs 1000001: out of range
--loss 0 --size 1MiB --jobs 0|--jobs 0: out of range
--loss 0 --size 1MiB --shard 5/4|--shard 5/4: out of range: the parts of 4 are 1 to 4
--loss 0 --size 1MiB --shard 0/4|--shard 0/4: out of range
--loss 0 --size 1MiB --shard 1/0|--shard 1/0: out of range
--loss 0 --size 1MiB --shard half|--shard half: not a part: write it like 2/8
--loss 0 --size 1MiB --shard 1/2 --csv|--csv and --plot are for
--loss 0 --size 1MiB --json --csv|--json and --csv exclude each other
--loss 0 --size 1MiB --cold --warm|--cold and --warm exclude each other
--loss 0 --size 1MiB --limit 0s|--limit 0s: out of range
--loss 0 --size 1MiB --plot x.svg|--plot x.svg: nothing is swept
--loss 0 --size 1MiB --file none|--file none: cannot be opened: No such file
--loss 0 --size 1MiB --cold --scheme sr-nack,ec-paper:32,8|--cold: the model that ec-paper:32,8 is drawn from
--loss 0 --size 1MiB --engine model --scheme sr:pigeon|--scheme sr:pigeon: 'pigeon' is no parameter of sr
--loss 0 --size 1MiB --engine model --scheme sr:copies=2|--scheme sr:copies=2: the model does not know it
--loss 0 --size 1MiB --engine model --scheme ec-paper:32,8,rto=0|--scheme ec-paper:32,8,rto=0: rto of 0 is out of range
END
run 2 sim --bw 1Gbit --loss 0 --size 1MiB
says "needs --rtt or --km"
run 2 sim --rtt 1ms --loss 0 --size 1MiB
says "needs --bw"
run 2 sim --rtt 1ms --bw 1kbit --loss 0 --size 1TiB
says "--size 1099511627776: takes 8.8e+09 s at best"
# The limits themselves are in.
run 0 sim --rtt 1000s --bw 1Mbit --loss 0 --size 1 --runs 1
run 0 sim --rtt 1us --bw 1Gbit --loss 0 --size 1 --runs 1

# Virtual time is exact: without losses nothing but the link costs anything.
# shellcheck disable=SC2086  # words
run 0 $LINK --loss 0 --size 1,64KiB,1MiB --scheme sr:rto=3,sr-nack,gbn,ec-paper:32,8 --runs 3 --json
holds 'len(p) == 12' \
	'all(abs(c["mean_s"] / c["lossless_s"] - 1) < 2e-4 for c in p if c["engine"] == "engine")' \
	'all(c["overhead"] == 0 and c["mean_lo_s"] == c["mean_s"] for c in p if c["engine"] == "engine")' \
	'[c["engine"] for c in p[:4]] == ["engine"] * 3 + ["model"]' \
	'all(c["limit_s"] == c["lossless_s"] for c in p)' \
	'abs(p[8]["lossless_s"] - (0.025 + 2**23 / 400e9)) < 1e-9'

# shellcheck disable=SC2086
run 0 $LINK --loss 1e-2 --size 256KiB --scheme sr:rto=3,sr-nack,ec-paper:32,8 --runs 400 --json
holds '[c["scheme"] for c in p] == ["sr:rto=3", "sr-nack", "ec-paper:32,8"]' \
	'all(c["p50_s"] <= c["p99_s"] and c["p999_s"] is None and c["unfinished"] == 0 for c in p)' \
	'all(c["mean_lo_s"] <= c["mean_s"] <= c["mean_hi_s"] for c in p)' \
	'all(c["p99_lo_s"] <= c["p99_s"] <= c["p99_hi_s"] for c in p)' \
	'p[0]["mean_s"] > 1.5 * p[1]["mean_s"] > 1.5 * p[2]["mean_s"]' \
	'all(c["model_mean_s"] > c["lossless_s"] for c in p[:2]) and p[2]["model_mean_s"] is None' \
	'0.005 < p[0]["overhead"] < 0.02'
# Codes run in the engine: without losses what they cost is their parity, which is told; with
# losses a hybrid needs no second round trip where resends do, and auto finds one itself.
# shellcheck disable=SC2086
run 0 $LINK --loss 0 --size 1MiB --scheme ec:32,8,ec-xor:k=32,m=8,depth=4,auto --runs 2 --json
holds '[c["scheme"] for c in p] == ["ec:32,8", "ec-xor:32,8,depth=4", "auto"]' \
	'all(c["engine"] == "engine" and c["unfinished"] == 0 for c in p)' \
	'[c["overhead"] for c in p] == [0.25, 0.25, 0]' \
	'all(abs(c["mean_s"] / c["model_mean_s"] - 1) < 1e-3 for c in p)'
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-2 --size 1MiB --scheme sr-nack,hybrid:128,12,depth=2,auto --runs 20 --json
holds '[c["scheme"] for c in p] == ["sr-nack", "hybrid:k=128,m=12,depth=2", "auto"]' \
	'p[0]["mean_s"] > 1.5 * p[0]["lossless_s"]' \
	'all(c["mean_s"] < 1.05 * c["lossless_s"] and 0.02 < c["overhead"] < 0.2 for c in p[1:])' \
	'all(c["learn"] is False and c["model_mean_s"] for c in p)'
# Not told what the path loses, it chooses otherwise, and nobody knows what.
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-2 --size 1MiB --scheme auto,ec:32,8 --learn --runs 2 --json
holds 'all(c["learn"] is True for c in p) and p[0]["model_mean_s"] is None and p[1]["model_mean_s"]'
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-2 --size 1MiB --scheme auto,hybrid:128,12 --engine model --runs 20 --json
holds 'all(c["engine"] == "model" and c["mean_s"] < 1.05 * c["lossless_s"] for c in p)'
# shellcheck disable=SC2086
run 0 $LINK --loss 0.1 --size 4KiB --scheme ec-paper:4,2 --runs 2000 --json
holds 'p[0]["p999_s"] >= p[0]["p99_s"] and p[0]["p999_lo_s"] <= p[0]["p999_s"]'

# The same whatever the processes; another seed is another draw.
# shellcheck disable=SC2086
run 0 $FAST --scheme sr-nack,ec:8,2 --loss 0.05 --json --jobs 1
cp out once
# shellcheck disable=SC2086
run 0 $FAST --scheme sr-nack,ec:8,2 --loss 0.05 --json --jobs 3
check "the same with three processes" cmp -s out once
# shellcheck disable=SC2086
run 0 $FAST --scheme sr-nack --loss 0.01,0.05 --json
check "the same point in another sweep" python3 -c "import json, sys
a, b = json.load(open('once'))[0], json.load(open('out'))[1]
sys.exit(a != b)"
# shellcheck disable=SC2086
run 0 $FAST --scheme sr-nack,ec:8,2 --loss 0.05 --json --seed 2
check "another seed differs" test "$(cut -d, -f3 out)" != "$(cut -d, -f3 once)"

# shellcheck disable=SC2086
run 0 $FAST --scheme sr-nack,ec:8,2
for text in "64.0 KiB, 25.0 ms at 400 Gbit/s, loss 0.001: lossless 25.0 ms" "20 runs, seed 1" \
	"99.9 % needs 2000 runs" "MODEL"; do
	check "says '$text'" grep -qF -- "$text" out
done
check "which engine" grep -qE "^ec:8,2 +real " out
# shellcheck disable=SC2086
run 0 $FAST --csv
check "CSV has a header and as many columns" python3 -c "import csv, sys
rows = list(csv.reader(open('out')))
sys.exit(not (len(rows) == 2 and rows[0][0] == 'scheme' and len(rows[0]) == len(rows[1])))"

# A run that does not end is told, and no mean made up.
# shellcheck disable=SC2086
run 1 $FAST --limit 10ms
check "not ended" grep -q "20 of 20 runs had not ended after 10.0 ms of virtual time" out
# shellcheck disable=SC2086
run 1 $FAST --limit 10ms --json
says "20 runs of 1 points did not end"
holds 'p[0]["unfinished"] == 20 and p[0]["mean_s"] is None and p[0]["p50_s"] is None'

# Other devices, a cold start, jitter, a queue.
for words in "--device roce" "--device nic --packet 1KiB" "--cold" "--jitter 1ms" "--coalesce 10us" "--queue 1MiB" \
	"--burst 4 --loss 0.02" "--ack-loss 0.5" "--chunk 16KiB"; do
	# shellcheck disable=SC2086
	run 0 $FAST $words --json
	holds 'p[0]["mean_s"] >= p[0]["lossless_s"] - 1e-9'
done

# ---- files
cat >wan.conf <<'END'
# a link
rtt = 25ms      # far
bw = 400Gbit
loss = 1e-3
size = 64KiB
scheme = sr-nack
runs = 20
END
# shellcheck disable=SC2086
run 0 $FAST --json
cp out once
run 0 sim --file wan.conf --json
check "a file says the same as flags" cmp -s out once
run 0 sim -f - --json <wan.conf
check "standard input too" cmp -s out once
run 0 sim --file wan.conf --km 150 --loss 0 --json
holds 'p[0]["loss"] == 0 and abs(p[0]["rtt_s"] - 1e-3) < 1e-12'
# a line that is appended | what the message has to say
while IFS='|' read -r line text; do
	{ cat wan.conf && echo "$line"; } >bad.conf
	run 2 sim --file bad.conf
	says "bad.conf:8: " "$text"
done <<'END'
colour = red|colour: unknown key
loss = 1e-4|loss stands in line 4 already
burst = many|burst = many: not a number
burst|no '='
burst =|burst: needs a value
km = 5|rtt and km exclude each other
END
python3 -c "print('rtt = ' + 'x' * 5000)" >bad.conf
run 2 sim --file bad.conf
says "bad.conf:1: longer than 4096 characters"
printf 'rtt = 1ms\0\nbw = 1Gbit\n' >bad.conf
run 2 sim --file bad.conf
run 2 sim --file "$WORK"
says "cannot be read: Is a directory"

# ---- shards
SWEEP="$FAST --loss 1e-3,1e-2 --scheme sr-nack,ec:8,2,auto,ec-paper:8,2 --learn --runs 15"
# shellcheck disable=SC2086
run 0 $SWEEP --json
cp out whole
for i in 1 2 3; do
	# shellcheck disable=SC2086
	run 0 $SWEEP --shard $i/3 --jobs $i
	cp out part$i
	check "a shard is JSON" python3 -m json.tool part$i /dev/null
done
run 0 sim merge part3 part1 part2 --json
check "merged is as in one piece" cmp -s out whole
python3 -m json.tool part2 pretty
run 0 sim merge part3 part1 pretty --json
check "with other white space too" cmp -s out whole
run 1 sim merge part1 part2
says "shard 3 of 3 missing"
run 1 sim merge part1 part2 part3 part2
says "part2: shard 2/3 came from part2 already"
# shellcheck disable=SC2086
run 0 $SWEEP --seed 2 --shard 2/3
cp out other
run 1 sim merge part1 other part3
says "other: another scenario than part1: seed is 1 there, 2 here"
# shellcheck disable=SC2086
run 0 $SWEEP --shard 2/4
cp out other
run 1 sim merge part1 other
says "other: one of 4 shards, but part1 is one of 3"
sed 's/"version": "[^"]*"/"version": "0.0.0"/' part2 >other
run 1 sim merge part1 other part3
says "other: made by release 0.0.0, but part1 by"
head -c 700 part2 >other
run 1 sim merge part1 other part3
says "other:1: not a shard that 'sdr sim --shard' printed"
cp whole other
run 1 sim merge other
says "other:1: not a shard"
run 1 sim merge none
says "none: cannot be opened"
run 2 sim merge
says "needs the files that --shard made"
for words in "--runs 7" "--km 5" "--cold" "--shard 1/3" "--jobs 2" "--file wan.conf"; do
	# shellcheck disable=SC2086
	run 2 sim merge part1 part2 part3 $words
	says "${words%% *}: merge takes --json, --csv and --plot"
done

# ---- charts
if command -v gnuplot >/dev/null; then
	# shellcheck disable=SC2086
	run 0 $FAST --loss 1e-3,1e-2,1e-1 --scheme sr-nack,ec-paper:8,2 --plot chart.svg
	check "an SVG" grep -q "</svg>" chart.svg
	for text in "sr-nack" "ec-paper:8,2 (model)" "lossless" "loss per packet"; do
		check "the chart says '$text'" grep -qF "$text" chart.svg
	done
	run 0 sim merge part1 part2 part3 --plot merged.svg
	check "merged shards as well" grep -q "</svg>" merged.svg
	# shellcheck disable=SC2086
	run 1 $FAST --loss 1e-3,1e-2 --plot none/chart.svg
	says "cannot write none/chart.svg: No such file or directory"
	check "told before the first run" test ! -s out
	check "nothing is left behind" test -z "$(find . -name '*.svg.*')"
else
	skip "gnuplot is missing: no charts"
fi
# shellcheck disable=SC2086
run 2 $FAST --loss 1e-6..1e-1 --size 1..1KiB --scheme sr,sr-nack,gbn --plot chart.svg
says "18 lines: at most"

# ---- Ctrl-C: ends soon, prints no half-made answer, leaves no process

# wait_workers: until the command of the last `start` has both; sets $own and $workers.
wait_workers() {
	local i
	for ((i = 0; i < 200; i++)); do
		own=$(pid_of "$PID")
		workers=$([ -z "$own" ] || pgrep -P "$own")
		[ "$(wc -w <<<"$workers")" -lt 2 ] || return 0
		sleep 0.1
	done
	fail "no two workers after 20 s"
}
# shellcheck disable=SC2086
start slow $LINK --loss 1e-2 --size 16GiB --runs 10000 --jobs 2
wait_workers
check "two workers" test "$(wc -w <<<"$workers")" = 2
kill -INT "$own"
wait_rc "$PID" 1 "Ctrl-C"
check "says so" grep -q "stopped after [0-9]* of 10000 runs" slow.err
check "prints nothing" test ! -s slow.out
for pid in $workers; do
	check "worker $pid has gone" test ! -d "/proc/$pid"
done
# A worker that dies is told, with what it was at.
# shellcheck disable=SC2086
start dying $LINK --loss 1e-2 --size 16GiB --runs 10000 --jobs 2
wait_workers
kill -KILL "${workers%%[[:space:]]*}"
wait_rc "$PID" 1 "a dead worker"
check "says which run" grep -qE "a worker was killed by signal 9 .* in run [0-9]+ of rtt=" dying.err
# What ends them all, such as a batch system's signal, is told once.
# shellcheck disable=SC2086
start all $LINK --loss 1e-2 --size 16GiB --runs 10000 --jobs 2
wait_workers
# shellcheck disable=SC2086  # pids
kill -TERM $workers "$own"
wait_rc "$PID" 1 "SIGTERM for all"
check "no worker is called killed" test "$(grep -c "" all.err)" = 1

run 0 help sim
check "help names the command" grep -q "^usage: sdr sim" out
finish
