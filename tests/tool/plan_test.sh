#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sdr plan from outside: ranks, words, JSON, and mistakes that name flag, value and limit.
. "$(dirname "$0")/lib.sh"

LINK="plan --rtt 25ms --bw 400Gbit"

# arguments after --rtt 25ms --bw 400Gbit | what the message has to say
# shellcheck disable=SC2086  # words
refuses $LINK <<'END'
--size 1MiB|needs --loss
--loss 0|needs --size
--loss 0 --size 1MiB extra|takes no arguments
--loss 0 --size 1MiB --km 100|--rtt and --km exclude each other
--loss 1 --size 1MiB|--loss 1: out of range: choose from 0 to below 1
--loss 200% --size 1MiB|--loss 200%: out of range
--loss -0.1 --size 1MiB|--loss -0.1: not a ratio
--loss much --size 1MiB|--loss much: not a ratio
--loss 0 --burst 0 --size 1MiB|--burst 0: out of range: choose from 1 to
--loss 0 --burst many --size 1MiB|--burst many: not a number of packets
--loss 0.9 --burst 2 --size 1MiB|--burst: burst of 2 is out of range: choose from 9
--loss 0 --size 0|--size 0: out of range
--loss 0 --size big|--size big: not a size
--loss 0 --size 1MiB..|not a size
--loss 0 --size 2MiB..1MiB|begins with the smaller size
--loss 0 --size 1..100TiB,1..100TiB|more than 64 sizes
--loss 0 --size 100TiB|--size: size of 109951162777600 is out of range
--loss 0 --size 1MiB --chunk 12KiB|a chunk is a power of two of packets
--loss 0 --size 1MiB --chunk 6000|a chunk is a power of two of packets
--loss 0.1 --size 1MiB --chunk 256KiB|use a smaller chunk
--loss 0 --size 1MiB --packet 1|--packet 1: out of range
--loss 0 --size 1MiB --for speed|--for speed: unknown: choose mean, p99 or p999
--loss 0 --size 1MiB --scheme tcp|--scheme tcp: unknown scheme: choose gbn, sr, sr-nack, ec-xor
--loss 0 --size 1MiB --scheme ec:32|--scheme ec:32: ec needs K and M
--loss 0 --size 1MiB --scheme sr:copies=2|--scheme sr:copies=2: the model does not know it
--loss 0 --size 1MiB --scheme ec-paper:250,10|--scheme ec-paper:250,10: m of 10 is out of range
--loss 0 --size 1MiB --policy hope|--policy hope: unknown: choose model or table
--loss 0 --size 1MiB --policy table --scheme sr|exclude each other
--loss 0 --table --scheme sr|--table excludes --scheme and --chunk
--loss 0 --table --chunk 64KiB|--table excludes --scheme and --chunk
--loss 0 --size 1MiB --code-rate fast|--code-rate fast: not a rate
--loss 0 --size 1MiB --code-rate 1kB/s|--code-rate 1kB/s: out of range: choose from 8.00 Mbit/s
END
run 0 plan --rtt 1000s --bw 1Mbit --loss 0 --size 1MiB # the limit itself is in
run 2 plan --bw 1Gbit --loss 0 --size 1MiB
says "needs --rtt or --km"
run 2 plan --rtt 1ms --loss 0 --size 1MiB
says "needs --bw"
run 2 plan --rtt 1ms --bw 1bit --loss 0 --size 1MiB
says "--bw 1bit: out of range"

# shellcheck disable=SC2086  # words
run 0 $LINK --loss 1e-3 --size 128MiB
for text in "128 MiB, 25.0 ms at 400 Gbit/s, loss 0.001" "ranked by mean" "sr-nack" "sr:rto=3" "25.0 ms" \
	"lossless"; do
	check "says '$text'" grep -qF -- "$text" out
done
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-3 --size 128MiB --policy table
check "the rule" grep -q "Rule of thumb: above 10 ms" out
check "its code" grep -q "^ec:16,4 " out
# shellcheck disable=SC2086
run 0 $LINK --loss 0 --size 1MiB
check "no loss, no parity" grep -q "Nothing is lost" out

# Where the rules of thumb part from the model: a line a size, and by what factor.
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-3 --size 1MiB..64MiB --policy table
check "a line a size" test "$(grep -cE '^[0-9.]+ MiB +ec:16,4 .* [0-9.]+$' out)" = 7
check "a count" grep -q "They differ at 7 of 7 sizes" out
# Without loss and below 32 MiB both take selective repeat.
# shellcheck disable=SC2086
run 0 $LINK --loss 0 --size 1MiB,16MiB,2GiB --policy table
check "not where they agree" grep -q "They differ at [12] of 3 sizes" out

# The paper's and the oracle's figures: selective repeat at 128 MiB and 1e-3.
run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --json
holds 'len(p) == 6' \
	'abs({c["scheme"]: c for c in p}["sr:rto=3"]["mean_s"] - 0.104982365) < 1e-4' \
	'abs({c["scheme"]: c for c in p}["sr-nack"]["mean_s"] - 0.0533688733) < 1e-4' \
	'all(abs(c["lossless_s"] - 0.0276843546) < 1e-6 for c in p)' \
	'all(c["runs"] >= 2000 or c["runs"] == 0 or c["p999_s"] is None for c in p)' \
	'all(c["mean_lo_s"] <= c["mean_s"] <= c["mean_hi_s"] and c["engine"] == "model" for c in p)' \
	'all((c["cpu_s"] > 0) == (c["cores"] > 0) == ("k" in c) for c in p)' \
	'all(c["limit_s"] <= c["p50_s"] * 1.0001 <= c["p99_s"] * 1.001 <= c["p999_s"] * 1.01 for c in p)' \
	'p[0]["kind"] == "hybrid" and p[0]["m"] == 5 and p[0]["k"] == 128' \
	'p[0]["scheme"].startswith("hybrid:k=128,m=5,") and all(c["available"] for c in p)' \
	'{c["kind"] for c in p[-2:]} == {"sr", "gbn"} and p[0]["overhead"] < 0.1' \
	'{c["kind"]: c for c in p}["gbn"]["overhead"] > 0.3'
# The same twice: simulations are seeded.
cp out once
run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --json
check "the same twice" cmp -s out once
# Each answer can be pasted: here, and where it is simulated.
mapfile -t answers < <(python3 -c 'import json
for c in json.load(open("out")):
    print(c["scheme"], c["mean_s"])')
check "answers" test "${#answers[@]}" = 6
for answer in "${answers[@]}"; do
	read -r scheme mean <<<"$answer"
	run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --scheme "$scheme" --json
	holds "len(p) == 1 and p[0][\"scheme\"] == \"$scheme\" and abs(p[0][\"mean_s\"] / $mean - 1) < 1e-3"
	run 0 sim --km 3750 --bw 400Gbit --loss 1e-3 --size 1 --runs 1 --engine model --scheme "$scheme" --json
	holds "p[0][\"scheme\"] == \"$scheme\""
done
# What auto takes, and why; the model of it takes as long.
run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --scheme auto --json
holds 'p[0]["scheme"] == "auto" and p[0]["takes"].startswith("hybrid:k=") and p[0]["available"]' \
	'"loss 1.0e-03" in p[0]["why"] and p[0]["mean_s"] < 1.02 * p[0]["lossless_s"]'
run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --scheme auto
check "says what it takes" grep -qE "^It takes hybrid:k=[0-9]+,m=[0-9]+.*: loss 1.0e-03" out
run 0 plan --km 3750 --bw 400Gbit --loss 1e-3 --size 128MiB --scheme auto:policy=table --json
holds 'p[0]["takes"] == "ec:16,4" and p[0]["kind"] == "ec"'
# The paper's receiver, as the figures of the paper have it: 1.02 and 1.22 times the lossless time
# (figure 3a, 1e-5), and every block of MDS(32,8) fails at a loss of 0.5.
run 0 plan --rtt 25ms --bw 400Gbit --loss 1e-5 --size 128MiB,8GiB --scheme ec-paper:32,8 --json
holds '[round(c["mean_s"] / c["lossless_s"], 2) for c in p] == [1.02, 1.22]' \
	'all(c["scheme"] == "ec-paper:32,8" and c["kind"] == "ec" and not c["available"] for c in p)' \
	'all(c["runs"] == 0 and c["rto_rtts"] == 3 for c in p)'
run 0 plan --rtt 25ms --bw 400Gbit --loss 0.5 --size 128MiB --scheme ec-paper:32,8,rto=1,beta=0 --json
holds 'p[0]["p_fallback"] > 0.999 and p[0]["scheme"] == "ec-paper:32,8,rto=1,beta=0"'
run 0 plan --rtt 1ms --bw 1Gbit --loss 1% --burst 4 --size 64KiB..300KiB,1MiB --for p99 --json
holds '[c["bytes"] for c in p[::6]] == [65536, 131072, 262144, 307200, 1048576]' \
	'all(c["mean_s"] > 0 for c in p)'
run 0 plan --rtt 1ms --bw 1Gbit --loss 0 --size 1 --scheme sr-nack --json
holds 'len(p) == 1 and p[0]["scheme"] == "sr-nack" and abs(p[0]["mean_s"] - 0.00103) < 1e-5'

# A core that codes half as fast is busy twice as long.
run 0 plan --rtt 25ms --bw 400Gbit --loss 1e-3 --size 128MiB --scheme ec --json
one=$(python3 -c 'import json; print(json.load(open("out"))[0]["cpu_s"])')
run 0 plan --rtt 25ms --bw 400Gbit --loss 1e-3 --size 128MiB --scheme ec --json --code-rate 1GB/s
holds "4 < p[0][\"cpu_s\"] / $one < 8" 'p[0]["cores"] > 50'
# The tail that is ranked by has samples enough, also where one is long.
run 0 plan --rtt 25ms --bw 400Gbit --loss 2e-2 --burst 8 --size 1GiB --for p999 --scheme hybrid --json
holds 'p[0]["runs"] >= 2000 and p[0]["p999_s"] >= p[0]["p99_s"]'

# What auto takes: a row a size, parity where it pays, the same in JSON; and by the rules of thumb.
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-3 --burst 8 --table
check "all sizes" test "$(grep -cE '^[0-9.]+ (KiB|MiB|GiB) ' out)" = 25
check "the study's code" grep -qE '^128 MiB +\(128,5\) +all +32 +3 +3.91 % +an exposed round trip' out
check "the last round trip of a long one" grep -qE '^8.00 GiB +\(128,5\) +305176 ' out
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-3 --table --json --size 1MiB,1GiB
holds 'len(p) == 2 and p[1]["coded"] and p[1]["k"] == 128 and p[1]["span"] == p[1]["packets"] == 262144' \
	'all(c["overhead"] < 0.3 and c["reason"] in c["why"] and c["policy"] == "model" for c in p)'
# shellcheck disable=SC2086
run 0 $LINK --loss 0 --table --json
holds 'len(p) == 25 and not any(c["coded"] for c in p)'
# shellcheck disable=SC2086
run 0 $LINK --loss 1e-3 --table --policy table --size 1MiB
check "the rules' table" grep -qE '^1.00 MiB +\(16,4\) +all .* rule for 10 ms' out

# Charts: over sizes, over loss, of the rules; and paths that cannot be written.
plot() { # TEXT ARGS...
	local text=$1
	shift
	rm -f plan.svg
	run 0 plan --rtt 25ms --bw 10Gbit --loss 1e-3 "$@" --plot plan.svg
	check "a whole picture" grep -q "</svg>" plan.svg
	for text in "$text" "T\*: nobody is faster" "completion time (ms)"; do
		check "the chart says '$text'" grep -q "$text" plan.svg
	done
}
if command -v gnuplot >/dev/null; then
	plot "message size" --size 1MiB..16MiB
	plot "loss per packet" --size 1MiB
	plot "rules of thumb" --size 1MiB,64MiB --policy table
	plot "in bursts of 3" --size 1MiB --burst 3 --scheme sr-nack --json
	holds 'len(p) == 1'
	run 0 plan --rtt 25ms --bw 10Gbit --loss 1e-3 --table --size 64KiB,4MiB --plot map.svg
	for text in "</svg>" "rules of thumb against auto" "64K" "5e-2"; do
		check "the map says '$text'" grep -q "$text" map.svg
	done
	run 0 plan --rtt 25ms --bw 10Gbit --loss 0 --size 1MiB --plot 'a;touch b.svg'
	check "a file of that name" test -s 'a;touch b.svg' -a ! -e b.svg
	run 1 plan --rtt 25ms --bw 10Gbit --loss 0 --size 1MiB --plot none/plan.svg
	says "cannot write none/plan.svg: No such file or directory"
	run 1 plan --rtt 25ms --bw 10Gbit --loss 0 --size 1MiB --plot .
	says "cannot write .: it is a directory"
else
	skip "charts: no gnuplot (Debian: gnuplot-nox)"
fi
mkdir -p empty
rc=0
(PATH=$PWD/empty "$SDR" plan --rtt 1ms --bw 1Gbit --loss 0 --size 1 --plot x.svg) >out 2>err || rc=$?
check "no gnuplot is an error" test "$rc" = 1 -a ! -e x.svg
says "install Debian's package gnuplot-nox"

run 0 help plan
check "help names the command" grep -q "^usage: sdr plan" out
finish
