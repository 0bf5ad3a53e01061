#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line: exit code 2, and a message that names the option, the
# value, the limit and what to do.
COMPLETION=$(realpath "$(dirname "$0")/../../src/tool/sdr.bash-completion")
. "$(dirname "$0")/lib.sh"

# arguments | what the message has to say
refuses <<'END'
frobnicate|unknown command 'frobnicate'
send|needs at least one PATH and a HOST
send file|needs at least one PATH and a HOST
recv extra|takes no arguments
perf a b|takes one HOST
ping|needs one HOST
ping --listen host|needs one HOST, or --listen and none
info extra|takes no arguments
send --frobnicate a b|--frobnicate: unknown
send -Z a b|-Z: unknown
send --port|--port: needs a value
send --quiet=3 a b|--quiet=3: takes no value
send --port 0 a b|--port 0: out of range: choose from 1 to 65535
send --port 65536 a b|choose from 1 to 65535
send --port x a b|--port x: not a number
send --channels 17 a b|--channels 17: out of range: choose from 1 to 16
send --rate fast a b|--rate fast: not a rate: write it like
send --rate 1bit a b|--rate 1bit: out of range
send --scheme tcp a b|--scheme tcp: 'tcp' is no scheme: choose gbn, sr, sr-nack, ec-xor:K,M
send --scheme ec:32 a b|--scheme ec:32: ec needs K and M, data and parity packets of a block: write
perf --scheme sr:rto=0.5 a|--scheme sr:rto=0.5: rto='0.5' of sr: choose rto=dyn|1..100
perf --scheme gbn:32,8 a|gbn has no code, so it takes no K and M
recv --scheme ec:200,100|--scheme ec:200,100: k + m = 300 of ec: a block has at most 255 packets
send --dead-after soon a b|--dead-after soon: not a time
send --connect-timeout 0 a b|--connect-timeout 0: out of range
send --payload 1 a b|--payload 1: out of range: choose from 64 B
send --depth 256 --block 16MiB a b|more than 512 MiB
send -4 -6 a b|-4 and -6 exclude each other
send a [::1|[ADDRESS]:PORT
send a :4792|not a host
send a host:99999|'99999' is not a port
send a host:|'' is not a port
perf --sizes 1KiB,x host|--sizes x: not a size
perf --sizes , host|an empty list
perf --size 2GiB host|--size 2GiB: out of range
perf -s 1 -a host|exclude each other
perf --once host|--once is the server's
ping -i 0 host|--interval 0: out of range
END

run 2
says "usage: sdr COMMAND"
run 0 --version
check "version" grep -qE '^sdr [0-9]+\.[0-9]+\.[0-9]+$' out
run 0 help
for command in send recv perf ping info doctor; do
	run 0 help $command
	check "help names the command" grep -q "^usage: sdr $command" out
	cp out by-help
	run 0 $command --help
	check "--help is the same" cmp -s out by-help
done
run 2 help frobnicate

# Every scheme that connections take is listed, and completed; the model's are completed where they
# are taken.
completes() { # WORD... : what completion offers for the last word
	PATH="$(dirname "$SDR"):$PATH" bash -c '. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_sdr
		echo "${COMPREPLY[@]}"' _ "$COMPLETION" "$@"
}
run 0 info
check "info lists the schemes" grep -qx "schemes: gbn, sr, sr-nack, ec-xor, ec, hybrid, auto" out
check "send's schemes" test "$(completes sdr send --scheme s)" = "sr sr-nack"
check "send's codes" test "$(completes sdr send --scheme e)" = "ec-xor ec"
check "sim's codes" test "$(completes sdr sim --scheme e)" = "ec-xor ec ec-paper ec-xor-paper"
finish
