#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Does tests/vm/vm do what it promises, however the guest ends? None of these
# guests tests anything of RDMA. As root, one of them also has a TAP in a namespace of its own.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
if [ "${1-}" != inside ] && [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
	exec unshare -n "$0" inside
fi
# Its own temporary directory: what is left in there afterwards was left behind.
OUT=$(mktemp)
TMPDIR=$(mktemp -d)
export TMPDIR SDR_VM_PROBE="it's \"here\""
trap 'rm -rf "$TMPDIR" "$OUT"' EXIT
failed=0

check() { # TEXT COMMAND...
	local text=$1
	shift
	"$@" && echo "ok: $text" && return
	echo "FAILED: $text"
	failed=$((failed + 1))
}

is() { [ "$1" = "$2" ] || { echo "    got '$1', expected '$2'" && false; }; }

# A guest that is stopped has nothing left: neither its process nor its directory.
qemu() { grep -lazs -e "[p]ath=$TMPDIR/" /proc/[0-9]*/cmdline; }
nothing_left() { is "$(ls "$TMPDIR" && qemu)" ""; }

vm() { # [OPTION...] -- COMMAND...: output to $OUT, exit code to $rc
	"$here/vm" "$@" >"$OUT" 2>&1
	rc=$?
	[ $rc != 77 ] || { cat "$OUT" && exit 77; }
}
said() { check "$1" grep -qaxF -e "$1" "$OUT"; }

# Before the guest has come far, as it takes a while to come up.
vm --timeout 2 -- sleep 100
check "the time is over: exit code" is $rc 124
check "the time is over: nothing is left" nothing_left

"$here/vm" --timeout 100 -- sleep 100 >"$OUT" 2>&1 &
pid=$!
for _ in $(seq 600); do
	[ -z "$(qemu)" ] || break
	sleep 0.1
done
check "there is something that can be left" [ -n "$(qemu)" ]
kill -TERM $pid
wait $pid
check "SIGTERM: exit code" is $? 143
check "SIGTERM: nothing is left" nothing_left

vm --timeout 100 -- bash -c 'echo before; sleep 0.2; echo c >/proc/sysrq-trigger; sleep 100'
check "panic: exit code" is $rc 125
check "panic: the output until then" grep -qx before "$OUT"
check "panic: the kernel's last words" grep -q 'sysrq triggered crash' "$OUT"
check "panic: nothing is left" nothing_left

options=(--timeout 100)
if [ "${1-}" = inside ]; then
	ip link set lo up
	ip tuntap add vmtest0 mode tap
	ip addr add 198.18.77.1/24 dev vmtest0
	ip -6 addr add fd77::1/64 dev vmtest0 nodad
	ip link set vmtest0 up
	options+=(--tap vmtest0 --tap-addr "198.18.77.2/24,fd77::2/64")
fi
cd "$here" || exit 1
# shellcheck disable=SC2016  # for the guest's shell
vm "${options[@]}" -- bash -c '
	echo "cwd $PWD"
	echo "user $(id -u)"
	echo "probe $SDR_VM_PROBE"
	echo "words $# $1"
	touch /usr/no 2>/dev/null || echo "root read-only"
	touch /tmp/yes /run/yes /var/tmp/yes /dev/shm/yes && echo "places to write"
	echo "memlock $(ulimit -l)"
	echo "devices $(ls -m /sys/class/infiniband)"
	[ -z "$SDR_VM_DEV_TAP" ] || busybox ping -c 1 -W 10 198.18.77.1 | grep -o "1 packets received"
	[ -z "$SDR_VM_DEV_TAP" ] || busybox ping -c 1 -W 10 fd77::1 | grep -o "1 packets received"
	sleep 1000 &
	echo "all bytes"
	cat /bin/busybox
	exit 7' _ 'a  b' >/dev/null
check "exit code" is $rc 7
said "cwd $here"
said "user 0"
said "probe it's \"here\""
said "words 1 a  b"
said "root read-only"
said "places to write"
said "memlock unlimited"
check "bytes stay what they are" cmp <(sed '1,/^all bytes$/d' "$OUT") /bin/busybox
if [ "${1-}" = inside ]; then
	said "devices rxe0, rxe1, rxetap"
	check "two pings over the TAP" is "$(grep -acx '1 packets received' "$OUT")" 2
else
	said "devices rxe0, rxe1"
fi
check "nothing is left" nothing_left
[ $failed = 0 ]
