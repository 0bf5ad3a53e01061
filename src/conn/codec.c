/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a message in memory, for code/ to work on. Contract: codec.h. */
#include "conn/codec.h"

#include <errno.h>

#include "base/bits.h"
#include "base/check.h"

void codec_init(struct codec *c, const struct sdr_alloc *alloc)
{
	*c = (struct codec){.alloc = alloc};
}

void codec_fini(struct codec *c)
{
	for (uint32_t i = 0; i < CODEC_CODES; i++) {
		code_destroy(c->code[i]);
		c->code[i] = NULL;
	}
}

static bool params_ok(enum rel_code code, uint32_t k, uint32_t m, uint32_t depth)
{
	if (k < 1 || k > CODE_SYMBOLS_MAX || m > CODE_SYMBOLS_MAX - k || depth > REL_DEPTH_MAX)
		return false;
	return code == REL_CODE_RS || (code == REL_CODE_XOR && m >= 1 && m <= k);
}

int codec_write_init(struct codec_write *w, enum rel_code code, uint32_t k, uint32_t m,
		     uint32_t depth, uint32_t span_start, uint32_t span_pkts, uint32_t payload,
		     uint64_t length)
{
	struct code_layout layout;

	if (!params_ok(code, k, m, depth) || payload == 0 ||
	    code_layout_init(&layout, span_pkts, k, depth) ||
	    (uint64_t)span_start + span_pkts > u64_div_up(length, payload))
		return -EINVAL;
	*w = (struct codec_write){.code = code,
				  .k = k,
				  .m = m,
				  .layout = layout,
				  .span_start = span_start,
				  .payload = payload,
				  .length = length};
	return 0;
}

static bool is_of(const struct codec *c, uint32_t i, const struct codec_write *w)
{
	return c->code[i] && c->kind[i] == w->code && code_k(c->code[i]) == w->k && c->m[i] == w->m;
}

/* Where the write's code is, or is to be. */
static uint32_t place_of(struct codec *c, const struct codec_write *w)
{
	uint32_t oldest = 0;

	for (uint32_t i = 0; i < CODEC_CODES; i++) {
		if (is_of(c, i, w))
			return i;
		if (c->used[i] < c->used[oldest])
			oldest = i;
	}
	code_destroy(c->code[oldest]);
	c->code[oldest] = NULL;
	c->used[oldest] = 0;
	return oldest;
}

/* NULL: no memory. */
static struct code *code_of(struct codec *c, const struct codec_write *w)
{
	const struct code_params params = {.k = w->k, .m = w->m};
	uint32_t i = place_of(c, w);

	if (!c->code[i] &&
	    code_create(c->alloc, w->code == REL_CODE_XOR ? "xor" : "rs", &params, &c->code[i]))
		return NULL;
	c->kind[i] = w->code;
	c->m[i] = w->m;
	c->used[i] = ++c->clock;
	return c->code[i];
}

/* Where the block's data symbols are, in c->ptr; which of them is short. */
static struct code_block aim(struct codec *c, const struct codec_write *w, uint32_t block)
{
	const struct code_group g = code_layout_group(&w->layout, block / w->layout.depth);
	const uint32_t lane = block - g.first_block;
	const uint64_t first = (uint64_t)w->span_start + g.first_pkt + lane;
	struct code_block b = {.count = (uint32_t)u64_div_up(g.npkts - lane, g.nblocks),
			       .len = w->payload};
	uint64_t last = (first + (uint64_t)(b.count - 1) * g.nblocks) * w->payload;
	uint8_t *at = w->data + first * w->payload;

	for (uint32_t i = 0; i < b.count; i++, at += (uint64_t)g.nblocks * w->payload)
		c->ptr[i] = at;
	b.last_len = (uint32_t)u64_min(w->payload, w->length - last);
	return b;
}

static uint8_t *parity_at(const struct codec_write *w, uint32_t block, uint32_t number)
{
	return w->parity + code_layout_parity_packet(&w->layout, block, number) * w->payload;
}

int codec_encode(struct codec *c, const struct codec_write *w, uint32_t block, uint32_t n,
		 uint32_t first, uint32_t rows)
{
	struct code *code;

	if (block > w->layout.nblocks || n > w->layout.nblocks - block ||
	    first > CODE_SYMBOLS_MAX || rows > CODE_SYMBOLS_MAX - first)
		return -EINVAL;
	if (n == 0 || rows == 0)
		return 0;
	if (code_layout_parity_packet(&w->layout, block + n - 1, first + rows - 1) >= w->room)
		return -EINVAL;
	code = code_of(c, w);
	if (!code)
		return -ENOMEM;
	for (uint32_t end = block + n; block < end; block++) {
		struct code_block b = aim(c, w, block);
		int err;

		for (uint32_t row = 0; row < rows; row++)
			c->parity[row] = parity_at(w, block, first + row);
		err = code_encode(code, &b, (const uint8_t *const *)c->ptr, first, rows, c->parity);
		if (err)
			return err; /* symbols that this code cannot have: of the first block */
	}
	return 0;
}

int codec_decode(struct codec *c, const struct codec_write *w, uint32_t block,
		 const struct code_set *have, const struct code_set *parity)
{
	struct code_parity arrived[CODE_SYMBOLS_MAX];
	struct code_block b;
	struct code *code;
	uint32_t n = 0;

	if (block >= w->layout.nblocks)
		return -EINVAL;
	for (uint32_t j = code_set_next(parity, 0); j < CODE_SET_BITS;
	     j = code_set_next(parity, j + 1)) {
		if (j >= CODE_SYMBOLS_MAX ||
		    code_layout_parity_packet(&w->layout, block, j) >= w->room)
			return -EINVAL;
		arrived[n++] = (struct code_parity){j, parity_at(w, block, j)};
	}
	code = code_of(c, w);
	if (!code)
		return -ENOMEM;
	b = aim(c, w, block);
	return code_decode(code, &b, c->ptr, have, arrived, n);
}
