/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of a message's packets as run lengths: what ACKs are made of.
 *
 *	| message 4 | first 4 | length v | run v | run v | ...
 *
 * Runs alternate received, missing, received ..., the first of them received; only
 * that one may be 0. They add up to exactly length, which is not 0; first + length is
 * at most 2^32. Loss-free gigabytes are a dozen bytes, and so is one hole in them.
 *
 * Knows nothing of bitmaps' owners; reads plain words.
 */
#ifndef SDR_WIRE_RUNS_H
#define SDR_WIRE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* message, first, a length, and runs of 0 and of one missing packet. */
#define WIRE_WINDOW_MIN_BYTES 11

/* A window that was checked; the rest is the iterator's. */
struct wire_window {
	uint32_t message;
	uint32_t first;
	uint32_t length;
	const uint8_t *at_;
	const uint8_t *end_;
	uint32_t next_;
	uint32_t left_;
	bool received_;
};

/*
 * Next run: 1 with *first (packet index), *n > 0 and *received; 0 at the end.
 * Cannot fail: the window was checked when it was opened.
 */
int wire_window_next_run(struct wire_window *win, uint32_t *first, uint32_t *n, bool *received);

/*
 * Encodes packets [first, first + length) of a message, bit 0 of bits being packet
 * `first` (1 = received), or as many of them, in whole runs, as fit. *covered says how
 * many. Returns bytes; 0 with *covered = 0 where nothing fits.
 */
size_t wire_window_put(uint8_t *buf, size_t cap, uint32_t message, uint32_t first, uint32_t length,
		       const uint64_t *bits, uint32_t *covered);

/* Checks a window at the head of (buf, len): its bytes, -EMSGSIZE or -EBADMSG. */
int wire_window_get(const uint8_t *buf, size_t len, struct wire_window *out);

#endif
