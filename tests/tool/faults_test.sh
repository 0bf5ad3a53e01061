#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What goes wrong with files and at either end: one clear message, exit code 1, the other
# files arrive, nothing incomplete looks complete, nothing hangs.
. "$(dirname "$0")/lib.sh"

# Slow enough to be disturbed in the middle: 4 MiB at 8 Mbit/s, little read ahead.
SLOW=(--rate 8Mbit --depth 2 --block 64KiB)
head -c 4194304 /dev/urandom >large
echo small >small
no_parts() { test -z "$(find "$1" -name '*.part')"; }

start_send() { # ARGS...
	start send send "${SLOW[@]}" "$@"
	SEND=$PID
}

echo "== a file that cannot be read"
mkdir d1
echo secret >secret
chmod 000 secret
cp small other
if [ "$(id -u)" = 0 ]; then
	if command -v setpriv >/dev/null; then
		chmod 755 .
		serve recv recv --dir d1 --once
		RECV=$PID
		rc=0
		timeout -k 5 $LIMIT setpriv --reuid=65534 --regid=65534 --clear-groups \
			"$SDR" send secret other "127.0.0.1:$PORT" >out 2>err || rc=$?
		check "exit code" test $rc = 1
		says "secret: cannot be read: Permission denied"
		wait_rc "$RECV" 1 "recv"
		check "the other file arrived" cmp -s other d1/other
	else
		skip "unreadable file: setpriv is not installed, and root reads everything"
	fi
else
	serve recv recv --dir d1 --once
	RECV=$PID
	run 1 send secret other "127.0.0.1:$PORT"
	says "secret: cannot be read: Permission denied"
	wait_rc "$RECV" 1 "recv"
	check "the other file arrived" cmp -s other d1/other
fi

echo "== a file that vanishes, one that shrinks"
mkdir d2
cp large a-large
cp small b-gone
cp small c-small
serve recv recv --dir d2 --once
RECV=$PID
start_send a-large b-gone c-small "127.0.0.1:$PORT"
wait_text recv.err "receiving from"
rm b-gone
truncate -s 100000 a-large
wait_rc "$SEND" 1 "send"
wait_rc "$RECV" 1 "recv"
cp send.err err
says "b-gone: has vanished" "a-large: it shrank from 4194304"
cp recv.err err
says "a-large: the sender gave it up" ".part file was removed"
check "the file behind them arrived" cmp -s c-small d2/c-small
check "nothing looks complete" test ! -e d2/a-large -a ! -e d2/b-gone
check "no .part is left" no_parts d2

echo "== a file that grows"
mkdir d3
head -c 2097152 large >grows
serve recv recv --dir d3 --once
RECV=$PID
start_send grows "127.0.0.1:$PORT"
wait_text recv.err "receiving from"
echo more >>grows
wait_rc "$SEND" 1 "send"
wait_rc "$RECV" 1 "recv"
cp send.err err
says "grows: it changed from 2097152 to 2097157 bytes"
check "nothing looks complete" test ! -e d3/grows

echo "== things that are no files"
mkdir d4 odd
mkfifo odd/pipe
echo y >odd/file
ln -s /etc/passwd odd/absolute
ln -s ../../out odd/escape
serve recv recv --dir d4 --once
RECV=$PID
run 1 send odd "127.0.0.1:$PORT"
says "odd/pipe: is a pipe" "odd/absolute: refused" "odd/escape: refused"
wait_rc "$RECV" 1 "recv"
check "the file arrived" cmp -s odd/file d4/odd/file
check "no link that leaves" test ! -L d4/odd/escape -a ! -L d4/odd/absolute

echo "== a link in the receiver's way"
mkdir d5 elsewhere
ln -s ../elsewhere d5/odd
serve recv recv --dir d5 --once --overwrite
RECV=$PID
run 1 send odd/file odd "127.0.0.1:$PORT"
wait_rc "$RECV" 1 "recv"
check "nothing was written through the link" test -z "$(ls elsewhere)"
check "the file arrived" cmp -s odd/file d5/file

echo "== somebody's .part file"
mkdir d6
echo mine >d6/small.part
serve recv recv --dir d6 --once
RECV=$PID
run 0 send small "127.0.0.1:$PORT"
wait_rc "$RECV" 0 "recv"
check "it is still there" grep -q mine d6/small.part
check "the file arrived" cmp -s small d6/small

echo "== a full disk"
mkdir full
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=2M tmpfs full 2>/dev/null; then
	MOUNTS+=("$WORK/full")
	serve recv recv --dir full --once
	RECV=$PID
	run 1 send large small "127.0.0.1:$PORT"
	says "large: needs 4.00 MiB, but only"
	wait_rc "$RECV" 1 "recv"
	check "the other file arrived" cmp -s small full/small
	check "no .part is left" no_parts full

	# Filled up by somebody else in the middle.
	head -c 1500000 large >fits
	serve recv recv --dir full --once
	RECV=$PID
	start_send fits "127.0.0.1:$PORT"
	for ((i = 0; i < 200; i++)); do
		[ -e full/fits.part ] && break
		sleep 0.05
	done
	head -c 2000000 /dev/zero >full/filler 2>/dev/null
	wait_rc "$SEND" 1 "send"
	wait_rc "$RECV" 1 "recv"
	cp send.err err
	says "No space left on device"
	check "no .part is left" no_parts full
else
	skip "full disk: mounting a tmpfs needs root"
fi

echo "== a directory that must not be written to"
mkdir readonly
chmod 555 readonly
if [ "$(id -u)" = 0 ]; then
	skip "read-only directory: root may write anywhere"
else
	run 1 recv --dir readonly --once
	says "--dir readonly" "may write to"
fi
run 1 recv --dir nowhere
says "--dir nowhere" "name a directory that exists"

echo "== the receiver is killed"
mkdir d7
serve recv recv --dir d7 --once
RECV=$PID
start_send large "127.0.0.1:$PORT" --dead-after 3s
wait_text recv.err "receiving from"
sleep 0.5
kill -KILL "$(pid_of "$RECV")"
wait_rc "$SEND" 1 "send whose receiver was killed"
check "one message" test "$(grep -c 'not all was sent' send.err)" = 1
check "nothing looks complete" test ! -e d7/large

echo "== the sender is killed"
mkdir d8
serve recv recv --dir d8 --once --dead-after 3s
RECV=$PID
start_send large "127.0.0.1:$PORT"
wait_text recv.err "receiving from"
sleep 0.5
kill -KILL "$(pid_of "$SEND")"
wait_rc "$RECV" 1 "recv whose sender was killed"
check "it says so" grep -q "the transfer is not complete" recv.err
check "nothing looks complete" test ! -e d8/large
check "no .part is left" no_parts d8

echo "== Ctrl-C at the sender, then at the receiver"
mkdir d9
serve recv recv --dir d9 --dead-after 3s
RECV=$PID
start_send large "127.0.0.1:$PORT"
wait_text recv.err "receiving from"
sleep 0.5
kill -INT "$(pid_of "$SEND")"
wait_rc "$SEND" 1 "send that was interrupted"
check "it says so" grep -q "interrupted: 0 of 1 files" send.err
wait_text recv.err "the transfer is not complete"
run 0 send small "127.0.0.1:$PORT"
start_send large "127.0.0.1:$PORT" --dead-after 3s
third() { [ "$(grep -c "receiving from" recv.err)" = 3 ]; }
for ((i = 0; i < 1200; i++)); do
	third && break
	sleep 0.05
done
check "the third transfer has begun" third
kill -INT "$(pid_of "$RECV")"
wait_rc "$RECV" 1 "recv that was interrupted"
wait_rc "$SEND" 1 "send whose receiver was interrupted"
check "no .part is left" no_parts d9
finish
