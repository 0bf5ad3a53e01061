/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write's bytes and its code: makes parity packets of blocks, and makes lost packets good. Joins
 * code/ to messages in memory: which bytes are which symbol (code/layout.h). Keeps the few codes
 * that were used last. One thread at a time. Knows nothing of sends, receives and what arrived.
 */
#ifndef SDR_CONN_CODEC_H
#define SDR_CONN_CODEC_H

#include "base/alloc.h"
#include "code/code.h"
#include "code/layout.h"
#include "rel/scheme.h"

#define CODEC_CODES 4u /* kept at a time */

struct codec {
	const struct sdr_alloc *alloc;
	struct code *code[CODEC_CODES];
	enum rel_code kind[CODEC_CODES];
	uint32_t m[CODEC_CODES];
	uint64_t used[CODEC_CODES], clock; /* the larger, the later */
	/* Symbols of one block. */
	uint8_t *ptr[CODE_SYMBOLS_MAX];
	uint8_t *parity[CODE_SYMBOLS_MAX];
};

/* One message with a code, as both ends describe it. */
struct codec_write {
	enum rel_code code;
	uint32_t k, m;
	struct code_layout layout; /* of the span */
	uint32_t span_start;	   /* packet */
	uint32_t payload;
	uint64_t length; /* of the message, bytes */
	uint8_t *data;	 /* of the message's first byte; only read by encoding */
	uint8_t *parity; /* of parity packet 0 */
	uint32_t room;	 /* parity packets there */
};

void codec_init(struct codec *c, const struct sdr_alloc *alloc);
void codec_fini(struct codec *c);

/*
 * Fills *w's layout and checks: 0; -EINVAL: a code, k, m, depth or span that cannot be, or a
 * packet of the span that the length does not reach.
 */
int codec_write_init(struct codec_write *w, enum rel_code code, uint32_t k, uint32_t m,
		     uint32_t depth, uint32_t span_start, uint32_t span_pkts, uint32_t payload,
		     uint64_t length);
/*
 * Makes parity symbols first .. first + rows - 1 of blocks block .. block + n - 1 at their places
 * in w->parity, all within the room. 0, -EINVAL, -ENOMEM.
 */
int codec_encode(struct codec *c, const struct codec_write *w, uint32_t block, uint32_t n,
		 uint32_t first, uint32_t rows);
/*
 * Makes good the data symbols of `block` that are neither in `have` (of 0 .. count-1; what is
 * beyond counts as there) by `parity` symbols: writes those packets' bytes in w->data, no others.
 * Packets made good, or -EAGAIN (too little has arrived), -EINVAL, -ENOMEM.
 */
int codec_decode(struct codec *c, const struct codec_write *w, uint32_t block,
		 const struct code_set *have, const struct code_set *parity);

#endif
