#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends that cannot meet: unknown host, refused port, port in use, the wrong command at
# the other end, a busy receiver.
. "$(dirname "$0")/lib.sh"
echo hello >file
mkdir dst

run 1 send file no-such-host.invalid
says no-such-host.invalid
PORT=$(free_port)
run 1 send file "127.0.0.1:$PORT"
says "127.0.0.1:$PORT"
run 1 ping -c 1 "127.0.0.1:$PORT"
run 1 perf "127.0.0.1:$PORT"
run 1 send -6 file "127.0.0.1:$PORT"
says "no IPv6 address"
run 1 send nothing-here "127.0.0.1:$PORT"
says "nothing-here: cannot be read" "nothing to send"
run 1 recv --bind 203.0.113.1
says "--bind 203.0.113.1"

serve recv recv --dir dst
RECV=$PID
run 1 recv --port "$PORT"
says "port $PORT is in use by another program" "--port"
run 1 perf -D 100ms "127.0.0.1:$PORT"
says "'sdr recv' runs there" "does not serve 'sdr perf'"
run 0 ping -c 2 -i 50ms "127.0.0.1:$PORT"
check "ping has a summary" grep -q "rtt min/avg/max/mdev" out

# Two senders at once: the second waits for its turn.
head -c 2097152 /dev/urandom >slow
start send1 send --rate 8Mbit slow "127.0.0.1:$PORT"
FIRST=$PID
wait_text recv.err "receiving from"
run 0 send file "127.0.0.1:$PORT"
wait_rc "$FIRST" 0 "the first sender"
check "both arrived" cmp -s slow dst/slow
check "both arrived" cmp -s file dst/file
kill -TERM "$(pid_of "$RECV")"
wait_rc "$RECV" 0 "recv that was stopped"

serve perf perf --once
PERF=$PID
run 1 send file "127.0.0.1:$PORT"
says "'sdr perf' runs there"
kill -INT "$(pid_of "$PERF")"
wait "$PERF"

serve ping ping --listen
PING=$PID
run 0 ping -c 3 -i 20ms --channels 2 --json "127.0.0.1:$PORT"
python3 -m json.tool out >/dev/null || fail "ping --json does not parse"
kill -INT "$(pid_of "$PING")"
wait_rc "$PING" 0 "ping --listen that was stopped"
finish
