// SPDX-License-Identifier: Apache-2.0
/*
 * xor: parity i is the sum of the data symbols j with j mod m = i (the paper's modulo groups).
 * ISA-L's xor_gen() is not used: it wants aligned memory and writes past the caches, which
 * parity that is about to be sent should stay in.
 */
#include "code/code_priv.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

/* The compiler makes what the machine has of it. */
typedef uint64_t vector __attribute__((vector_size(64), aligned(1), may_alias));

/* out = the sum of in[0 .. n-1]; n = 0: zeros. */
static void sum(uint8_t *out, const uint8_t *const in[], uint32_t n, uint32_t len)
{
	size_t at = 0;

	for (; at + sizeof(vector) <= len; at += sizeof(vector)) {
		vector acc = {0};

		for (uint32_t i = 0; i < n; i++)
			acc ^= *(const vector *)(in[i] + at);
		*(vector *)(out + at) = acc;
	}
	for (; at < len; at++) {
		uint8_t acc = 0;

		for (uint32_t i = 0; i < n; i++)
			acc ^= in[i][at];
		out[at] = acc;
	}
}

/*
 * What group g sums to without symbol `skip`, and with `parity` where it is not NULL. The last
 * symbol's missing bytes are zeros, so it is summed apart where it is short.
 */
static void sum_group(const struct code *c, const struct code_block *b, const uint8_t *const data[],
		      uint32_t g, uint32_t skip, const uint8_t *parity, uint8_t *out)
{
	uint32_t last = b->count - 1, len = skip == last ? b->last_len : b->len, n = 0;
	const uint8_t *in[CODE_SYMBOLS_MAX + 1];
	bool apart = false;

	for (uint32_t i = g; i < b->count; i += c->params.m) {
		if (i == skip)
			continue;
		if (i == last && b->last_len < len)
			apart = true;
		else
			in[n++] = data[i];
	}
	if (parity)
		in[n++] = parity;
	sum(out, in, n, len);
	if (apart) {
		const uint8_t *two[] = {out, data[last]};

		sum(out, two, 2, b->last_len);
	}
}

static void xor_encode(struct code *c, const struct code_block *b, const uint8_t *const data[],
		       uint32_t first, uint32_t rows, uint8_t *const parity[])
{
	for (uint32_t row = 0; row < rows; row++)
		sum_group(c, b, data, first + row, UINT32_MAX, NULL, parity[row]);
}

static void xor_decode(struct code *c, const struct code_block *b, uint8_t *const data[],
		       const struct code_set *erased, const struct code_set *parity,
		       const uint8_t *const by_number[])
{
	const uint8_t *from[CODE_SYMBOLS_MAX];

	(void)parity;
	memcpy(from, data, b->count * sizeof(from[0]));
	for (uint32_t i = code_set_next(erased, 0); i < CODE_SET_BITS;
	     i = code_set_next(erased, i + 1)) {
		uint32_t g = i % c->params.m;

		sum_group(c, b, from, g, i, by_number[g], data[i]);
	}
}

/* A group can make good one loss, if its parity is there. */
static uint32_t xor_deficit(const struct code *c, const struct code_set *erased,
			    const struct code_set *parity)
{
	uint8_t lost[CODE_SYMBOLS_MAX] = {0};
	uint32_t deficit = 0;

	for (uint32_t i = code_set_next(erased, 0); i < CODE_SET_BITS;
	     i = code_set_next(erased, i + 1)) {
		uint32_t g = i % c->params.m;

		if (++lost[g] > 1 || !code_set_has(parity, g))
			deficit++;
	}
	return deficit;
}

static int xor_init(struct code *c)
{
	return c->params.m ? 0 : -EINVAL;
}

static void xor_fini(struct code *c)
{
	(void)c;
}

static uint32_t xor_parity_max(const struct code *c)
{
	return c->params.m;
}

static struct code_stats xor_stats(const struct code *c)
{
	(void)c; /* it has no tables */
	return (struct code_stats){0};
}

static void xor_check(const struct code *c)
{
	SDR_ASSERT(c->params.m >= 1 && c->rs == NULL);
	(void)c;
}

const struct code_ops code_xor_ops = {
	.name = "xor",
	.init = xor_init,
	.fini = xor_fini,
	.parity_max = xor_parity_max,
	.stats = xor_stats,
	.encode = xor_encode,
	.decode = xor_decode,
	.deficit = xor_deficit,
	.check = xor_check,
};
