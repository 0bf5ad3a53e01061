/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code/: erasure codes. From k data symbols (packets) a block's parity symbols are made, and
 * lost data symbols are made good from what arrived. The seam is struct code_ops.
 *
 *	xor	parity i is the sum of the data symbols j with j mod m = i: one loss in each
 *		of m groups. The cheapest.
 *	rs	Reed-Solomon over GF(2^8): any k of the symbols give the block back. Parity
 *		symbol j is the same whatever m is, so more of it can be made when it is asked
 *		for, up to 255 - k.
 *
 * Around it: layout.h (which packet is which symbol of which block), pool.h (buffers for
 * parity). Pure: no I/O, no clock, no thread; memory at creation only, from the allocator.
 * Knows nothing of messages, acknowledgements or when parity is worth its bytes.
 */
#ifndef SDR_CODE_CODE_H
#define SDR_CODE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "code/set.h"

#define CODE_ALLOWED "xor or rs"
#define CODE_SYMBOLS_MAX 255u /* of a block, data and parity */
#define CODE_TABLES_DEFAULT 16u

struct code_params {
	uint32_t k; /* data symbols of a whole block, 1 or more */
	/*
	 * Parity symbols that are usual, k + m <= 255. rs: any number can be made, this many in
	 * one pass; 0 is allowed. xor: there are no others; 1 or more.
	 */
	uint32_t m;
	/* rs: how many sets of tables (for a pattern of losses) are kept; 0 = the default. Each
	 * takes 32 * k * max(m, 4) bytes. */
	uint32_t tables;
};

/*
 * One block. Data symbols count .. k-1 are zeros that nobody sends or keeps; all symbols
 * and parity are `len` bytes but the last data symbol, whose bytes from last_len on are zeros
 * that nobody sends or keeps either.
 */
struct code_block {
	uint32_t count;	   /* 1 .. k */
	uint32_t len;	   /* 1 or more */
	uint32_t last_len; /* of data symbol count - 1; 1 .. len */
};

/* A parity symbol that arrived. */
struct code_parity {
	uint32_t number; /* below code_parity_max() */
	const uint8_t *bytes;
};

/* Tables by pattern of losses: how often they were there, and were made or dropped. */
struct code_stats {
	uint64_t hits, misses, evictions;
};

/* A code of one k and m. Used by one thread at a time. */
struct code;

/*
 * `name` is xor or rs. 0; -EINVAL: unknown name (tell the person CODE_ALLOWED), k or m out of
 * range; -ENOMEM.
 */
int code_create(const struct sdr_alloc *alloc, const char *name, const struct code_params *params,
		struct code **out);
void code_destroy(struct code *c); /* NULL is allowed */

const char *code_name(const struct code *c);
uint32_t code_k(const struct code *c);
/* How many parity symbols a block can have: 255 - k, or m with xor. */
uint32_t code_parity_max(const struct code *c);
struct code_stats code_stats(const struct code *c);

/*
 * Makes parity symbols first .. first + rows - 1 into parity[0 .. rows-1], b->len bytes each,
 * from data[0 .. b->count-1]. Any alignment; no overlap of data and parity. 0, or -EINVAL: a
 * block out of range, parity beyond code_parity_max().
 */
int code_encode(struct code *c, const struct code_block *b, const uint8_t *const data[],
		uint32_t first, uint32_t rows, uint8_t *const parity[]);

/*
 * Makes good the data symbols of 0 .. b->count-1 that are not in `have`, and touches nothing
 * else: data[i] is read where symbol i is in `have` and written where it is not. Uses as much of
 * `parity` as it needs, lowest numbers first. Returns how many it made good; -EAGAIN: too little
 * has arrived, nothing was written; -EINVAL: a block out of range, a parity number out of range or
 * named twice, nothing was written.
 *
 * What comes out is as right as what went in: symbols must have been verified before.
 */
int code_decode(struct code *c, const struct code_block *b, uint8_t *const data[],
		const struct code_set *have, const struct code_parity parity[], uint32_t nparity);

/*
 * How many more symbols at least must arrive before the block can be decoded; 0: it can be.
 * `parity` holds the numbers of the parity symbols that arrived. rs: any that many will do; xor:
 * data symbols, or parity, of the groups that lack them. A block out of range lacks everything: k.
 */
uint32_t code_deficit(const struct code *c, const struct code_block *b, const struct code_set *have,
		      const struct code_set *parity);

void code_check(const struct code *c);

#endif
