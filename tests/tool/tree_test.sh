#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A tree with odd files crosses loopback whole: contents, modes, times, links; IPv4 and
# IPv6; what exists is not replaced unless asked for.
. "$(dirname "$0")/lib.sh"

make_tree() {
	mkdir -p src/sub/deep "src/ü dir" dst
	: >src/empty
	printf x >src/one
	for size in 1407 1408 1409 1435 1436 1437 8191 8192 65536 4194304 10485761; do
		head -c $size /dev/urandom >"src/size-$size"
	done
	echo unicode >"src/ü dir/naïve – 文件 name"
	printf 'odd' >"src/$(printf 'tab\tand\nnewline')"
	echo deep >src/sub/deep/file
	for i in $(seq 200); do echo "$i" >"src/sub/small-$i"; done
	ln -s ../one src/sub/link
	ln -s deep src/sub/dirlink
	ln -s nowhere src/dangling
	chmod 0640 src/one
	chmod 0755 src/empty
	chmod 0400 src/size-1407
	touch -d '2001-02-03 04:05:06.789012345' src/one src/sub/deep
	touch -d '1969-12-31 12:00:00' src/empty
	chmod 0555 src/sub/deep
}
facts() { # mode, time, kind, link target of everything below
	(cd "$1" && find . -printf '%p %m %T@ %y %l\n' | LC_ALL=C sort)
}
same_tree() {
	facts "$1" >facts.a
	facts "$2" >facts.b
	diff facts.a facts.b && diff -r --no-dereference "$1" "$2"
}

make_tree
serve recv recv --dir dst --once
RECV=$PID
run 0 send src "127.0.0.1:$PORT"
wait_rc "$RECV" 0 "recv"
check "the trees are equal" same_tree src dst/src
check "no .part is left" test -z "$(find dst -name '*.part')"
check "both ends print the same digest" test "$(grep ^sha256 out)" = "$(grep ^sha256 recv.out)"
cp out first.out

# Again: everything exists.
serve recv recv --dir dst --once
RECV=$PID
run 0 send src/one "127.0.0.1:$PORT"
wait_rc "$RECV" 0 "recv of one"
serve recv recv --dir dst --once
RECV=$PID
run 1 send src/one "127.0.0.1:$PORT"
says "one: exists already" "--overwrite"
wait_rc "$RECV" 1 "recv of what exists"
printf 'changed' >src/one
serve recv recv --dir dst --once --overwrite
RECV=$PID
run 0 send src "[::1]:$PORT"
wait_rc "$RECV" 0 "recv --overwrite"
check "the changed file replaced the old one" cmp -s src/one dst/src/one

# One file: the digest is what sha256sum says; several transfers one after the other.
mkdir single
serve recv recv --dir single
RECV=$PID
for file in size-10485761 empty; do
	run 0 send "src/$file" "127.0.0.1:$PORT"
	check "the digest is the file's" \
		grep -q "$(sha256sum "src/$file" | cut -c1-64)" out
	check "the file is equal" cmp -s "src/$file" "single/$file"
done
run 0 send --sums src/size-8192 "localhost:$PORT" -4
check "--sums is what sha256sum reads" grep -q "^[0-9a-f]\{64\}  size-8192$" out
kill -INT "$(pid_of "$RECV")"
wait_rc "$RECV" 0 "recv that was stopped"
chmod 0755 src/sub/deep dst/src/sub/deep
finish
