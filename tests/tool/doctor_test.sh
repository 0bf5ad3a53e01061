#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sdr doctor on this host and over loopback: what it prints, what it exits with, mistakes
# on its command line. Paths with faults are in tests/net/doctor.py.
. "$(dirname "$0")/lib.sh"

# doctor ARGS...: runs it with --json; its exit code must be what its findings say, and each
# finding must be whole. Output in ./out; a line "ID LEVEL JSON" of each finding in ./found.
doctor() {
	local rc=0
	timeout -k 5 "$LIMIT" "$SDR" doctor --json "$@" >out 2>err || rc=$?
	sanitized err
	if python3 - "$rc" <<'END'; then pass; else fail "sdr doctor --json $*"; fi
import json
import sys

value = json.load(open("out"))
found = value["findings"]
levels = ("ok", "note", "attention", "fault", "skipped")
for name in levels:
    count = sum(f["level"] == name for f in found)
    assert count == value["count"][name], (name, count, value["count"])
worst = max([f["level"] for f in found if f["level"] != "skipped"], key=levels.index)
assert value["verdict"] == ("ok" if worst == "note" else worst), (worst, value["verdict"])
assert int(sys.argv[1]) == (value["verdict"] in ("attention", "fault")), sys.argv[1]
ids = [f["id"] for f in found]
assert len(set(ids)) == len(ids), ids
for f in found:
    assert f["what"] and f["area"], f
    assert f["evidence"] or f["level"] == "ok", f
    if f["level"] in ("attention", "fault"):
        assert f["why"] and f["fix"], f
for wanted in ("kernel", "clock", "cpus", "memlock", "huge-pages", "rcvbuf", "sndbuf", "gso", "gro",
               "softnet", "port", "bitmaps", "bitmaps-here", "generations", "line-rate", "decode"):
    assert wanted in ids, wanted
assert value["host"]["kernel"] and value["goal"]["bw_bps"], value["host"]
with open("found", "w") as file:
    for f in found:
        print(f["id"], f["level"], json.dumps(f), file=file)
END
}
# finding ID LEVEL [TEXT]: the last run has it at this level, and it has the text.
finding() {
	if grep "^$1 $2 " found | grep -qF -- "${3-}"; then
		pass
	else
		fail "finding $* is: $(grep "^$1 " found)"
	fi
}

PORT=$(free_port)
doctor --port "$PORT"
finding port ok "port $PORT is free"
finding path skipped
finding bitmaps-here ok
finding gso ok
finding gro ok
finding decode skipped "no erasure codes"

# Nothing runs at a megabit and a millisecond that does not fit any buffer.
doctor --port "$PORT" --bw 1Mbit --rtt 1ms
finding rcvbuf ok "125 B wanted"
doctor --port "$PORT" --bw 400Gbit --rtt 100ms
check "the wish has a limit" grep -q "32.0 MiB wanted" out

doctor --port "$PORT" --device lo --size 1 --payload 65000
finding alignment attention
doctor --port "$PORT" --device lo
finding payload ok "65536"

# Somebody else has the port.
python3 -c "
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', $PORT))
print('bound', flush=True); time.sleep(60)" >holder.out &
PIDS+=("$!")
disown
wait_text holder.out bound
doctor --port "$PORT"
finding port attention "sdr recv --port"

# Text: no colours in a pipe, 100 columns, commands only where something needs attention.
rc=0
timeout -k 5 "$LIMIT" "$SDR" doctor --port "$PORT" >out 2>err || rc=$?
check "the port is in the way" test "$rc" = 1
check "a command" grep -qF '$ sdr recv --port' out
check "no escapes" test "$(grep -c $'\033' out)" = 0
check "the end" grep -qE '^[0-9]+ of [0-9]+ needs? attention' out
check "evidence of what is ok is left out" test "$(grep -c 'sched_getaffinity' out)" = 0
timeout -k 5 "$LIMIT" "$SDR" doctor -v --port "$PORT" >out 2>err
check "--verbose has it" grep -q 'sched_getaffinity' out
check "100 columns" python3 -c "
import sys
bad = [l for l in open('out', encoding='utf-8') if len(l.rstrip('\n')) > 100 and '\$ ' not in l and '# ' not in l]
sys.exit('\n'.join(bad) or 0)"

# Without loopback there is nothing to try.
if [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
	PLAIN=$SDR
	printf '#!/bin/sh\nexec unshare -n %s "$@"\n' "$SDR" >apart
	chmod +x apart
	SDR=$WORK/apart
	doctor
	SDR=$PLAIN
	finding gso attention "sudo ip link set lo up"
	finding bitmaps-here skipped
else
	skip "a network namespace needs root"
fi

# A peer over loopback.
serve perf perf
PERF=$PID
doctor "127.0.0.1:$PORT"
finding tcp ok
finding udp-path ok
finding full-packet ok
finding bitmaps ok
doctor --stream 0 "127.0.0.1:$PORT"
finding full-packet skipped
kill -INT "$(pid_of "$PERF")"
wait_rc "$PERF" 0 "perf that was stopped"
doctor "127.0.0.1:$PORT"
finding tcp fault "sdr perf --port $PORT"
doctor no-such-host.invalid
finding connect fault "getent hosts no-such-host.invalid"
serve ping ping --listen
PING=$PID
doctor "127.0.0.1:$PORT"
finding udp-path ok
finding full-packet skipped "sdr perf"
kill -INT "$(pid_of "$PING")"
wait_rc "$PING" 0 "ping --listen that was stopped"

refuses doctor <<'END'
a b|takes one HOST
--chunk 3|--chunk 3: not a power of two
--chunk 128|--chunk 128: out of range: choose from 1 to 64
--device nothing-like-it|--device nothing-like-it: there is no such device
--device verbs:nothing|--device verbs:nothing: there is no such device
--bw fast|--bw fast: not a rate
--rtt never|--rtt never: not a time
--stream 1TiB|--stream 1TiB: out of range
host:99999|'99999' is not a port
END
finish
