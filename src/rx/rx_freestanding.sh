#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proof that rx/ is freestanding: compiles it for riscv64 without a library, checks that its
# objects want nothing from outside, and runs its test under qemu's user emulation.
# Usage: rx_freestanding.sh SOURCE_DIR WORK_DIR        (exit status 77: tools are missing)
set -eu
src=$1
work=$2
cc=riscv64-linux-gnu-gcc
nm=riscv64-linux-gnu-nm
qemu=

skip() {
	echo "skipped: $1"
	exit 77
}

command -v $cc >/dev/null || skip "no $cc (Debian: gcc-riscv64-linux-gnu)"
command -v $nm >/dev/null || skip "no $nm (Debian: binutils-riscv64-linux-gnu)"
for candidate in qemu-riscv64-static qemu-riscv64; do
	if command -v $candidate >/dev/null; then
		qemu=$candidate
		break
	fi
done
[ -n "$qemu" ] || skip "no qemu-riscv64 (Debian: qemu-user-static)"

mkdir -p "$work"
for level in -O0 -O2 -O3 -Os; do
	for file in rx rx_freestanding_test; do
		$cc -std=c11 $level -ffreestanding -Wall -Wextra -Wshadow -Wconversion -Werror \
			-I"$src" -c "$src/rx/$file.c" -o "$work/$file.o"
	done
	wanted=$($nm -u "$work/rx.o")
	if [ -n "$wanted" ]; then
		echo "rx.o ($level) wants symbols from outside:"
		echo "$wanted"
		exit 1
	fi
	wanted=$($nm -u "$work/rx_freestanding_test.o" | grep -v ' U rx_' || true)
	if [ -n "$wanted" ]; then
		echo "rx.h's inline functions ($level) want symbols from outside:"
		echo "$wanted"
		exit 1
	fi
	$cc -static "$work/rx.o" "$work/rx_freestanding_test.o" -o "$work/rx_freestanding_test"
	status=0
	$qemu "$work/rx_freestanding_test" || status=$?
	if [ $status -ne 0 ]; then
		echo "rx_freestanding_test ($level) on riscv64: check $status failed"
		exit 1
	fi
	echo "riscv64 $level: ok"
done
