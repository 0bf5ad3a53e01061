# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the `sdr` command: a scratch directory, free ports, background
# commands that end by their own pid, expectations that are counted. $SDR is the command.

set -u
SDR=${1:?usage: $0 PATH-OF-SDR}
SDR=$(realpath "$SDR")
[ -x "$SDR" ] || { echo "$0: $SDR is not there"; exit 1; }
LIMIT=60 # seconds for anything that is waited for
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sdr-tool-XXXXXX")
PIDS=()
MOUNTS=()
passed=0 failed=0 skipped=0

cleanup() {
	local pid mount

	for pid in "${PIDS[@]-}"; do
		[ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null
	done
	for mount in "${MOUNTS[@]-}"; do
		[ -n "$mount" ] && umount "$mount"
	done
	rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
cd "$WORK" || exit 1

pass() { passed=$((passed + 1)); }
fail() {
	failed=$((failed + 1))
	echo "FAIL: $*"
	[ -f err ] && sed 's/^/    err: /' err | head -n 20
	return 0
}
skip() {
	skipped=$((skipped + 1))
	echo "skipped: $*"
}
finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] || exit 1
	[ "$passed" != 0 ] || exit 77
	exit 0
}
# A sanitizer's report is a failure whatever the exit code was meant to be.
sanitized() { # FILE
	! grep -qE 'Sanitizer|runtime error:' "$1" || fail "$(grep -m 1 -A 12 -E 'Sanitizer|runtime error:' "$1")"
}
check() { # TEXT COMMAND...
	local text=$1
	shift
	if "$@"; then pass; else fail "$text: $*"; fi
}

# run RC ARGS...: runs sdr, stdout in ./out, stderr in ./err; its exit code must be RC.
run() {
	local want=$1 rc=0
	shift
	timeout -k 5 "$LIMIT" "$SDR" "$@" >out 2>err || rc=$?
	if [ "$rc" = "$want" ]; then pass; else fail "exit code $rc, not $want: sdr $*"; fi
	sanitized err
}
# says TEXT...: the last run's stderr has each text.
says() {
	local text
	for text in "$@"; do
		if grep -qF -- "$text" err; then pass; else fail "no '$text' in the message"; fi
	done
}

# holds EXPRESSION...: each is true in Python of the last run's stdout, JSON, as `p`.
holds() {
	local text
	for text in "$@"; do
		check "$text" python3 -c "import json, sys
p = json.load(open('out'))
sys.exit(not ($text))"
	done
}
# refuses ARGS...: sdr ARGS and a line's words of stdin, `WORDS|TEXT`: a mistake that says TEXT.
refuses() {
	local args text
	while IFS='|' read -r args text; do
		# shellcheck disable=SC2086  # words
		run 2 "$@" $args
		says "$text"
	done
}

free_port() {
	python3 - <<'END'
import random
import socket

while True:
    port = random.randint(20000, 32000)
    with socket.socket(socket.AF_INET6) as tcp, socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        try:
            tcp.bind(("::", port))
            udp.bind(("::", port))
        except OSError:
            continue
    print(port)
    break
END
}

# start NAME ARGS...: sdr in the background, output in NAME.out and NAME.err, its pid in $PID.
start() {
	local name=$1
	shift
	timeout -k 5 "$LIMIT" "$SDR" "$@" >"$name.out" 2>"$name.err" &
	local wrapper=$!
	PIDS+=("$wrapper")
	PID=$wrapper
}
# pid_of PID: the sdr below the timeout that `start` put around it.
pid_of() { pgrep -P "$1"; }

# wait_text FILE TEXT: until the file has the text, at most 60 s.
wait_text() {
	local i
	for ((i = 0; i < 1200; i++)); do
		grep -qF -- "$2" "$1" 2>/dev/null && return 0
		sleep 0.05
	done
	fail "no '$2' in $1 after 60 s: $(cat "$1")"
	return 1
}
wait_rc() { # PID RC TEXT
	local rc=0 file
	wait "$1" || rc=$?
	if [ "$rc" = "$2" ]; then pass; else fail "$3: exit code $rc, not $2"; fi
	for file in *.err; do sanitized "$file"; done
}
# serve NAME ARGS...: starts a listener on a new $PORT and waits until it listens.
serve() {
	local name=$1
	shift
	PORT=$(free_port)
	start "$name" "$@" --port "$PORT"
	wait_text "$name.err" "listening on port $PORT"
}
