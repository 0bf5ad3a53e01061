// SPDX-License-Identifier: Apache-2.0
/*
 * xor: parity i is the sum of the data symbols j with j mod m = i (the paper's modulo groups).
 * ISA-L's xor_gen() promises to work on aligned memory only; the payload of packets rarely is.
 */
#include "code/code_priv.h"

#include <errno.h>
#include <isa-l/raid.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"

/* What every machine has a register for; the compiler makes one instruction of it. */
typedef uint64_t vector __attribute__((vector_size(16), aligned(1), may_alias));
#define LINE (4 * sizeof(vector))
#define ISAL_ALIGN 32u

/* A line at a time, of all inputs: few lines are in use at once, however they are aligned. */
static void sum_line(uint8_t *out, const uint8_t *const in[], uint32_t n, size_t at)
{
	vector a = {0}, b = {0}, c = {0}, d = {0};
	vector *to = (vector *)(out + at);

	for (uint32_t i = 0; i < n; i++) {
		const vector *from = (const vector *)(in[i] + at);

		a ^= from[0];
		b ^= from[1];
		c ^= from[2];
		d ^= from[3];
	}
	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
}

/* Whether ISA-L did it. */
static bool sum_isal(uint8_t *out, const uint8_t *const in[], uint32_t n, uint32_t len)
{
	void *all[CODE_SYMBOLS_MAX + 2];
	uintptr_t bits = (uintptr_t)out;

	for (uint32_t i = 0; i < n; i++) {
		bits |= (uintptr_t)in[i];
		all[i] = (void *)in[i]; /* it only reads it */
	}
	all[n] = out;
	return bits % ISAL_ALIGN == 0 && len <= INT32_MAX &&
	       xor_gen((int)n + 1, (int)len, all) == 0;
}

/* out = the sum of in[0 .. n-1], one of which may be `out`; n = 0: zeros. */
static void sum(uint8_t *out, const uint8_t *const in[], uint32_t n, uint32_t len)
{
	size_t at = 0;

	if (n > 2 && sum_isal(out, in, n, len))
		return;
	for (; at + LINE <= len; at += LINE)
		sum_line(out, in, n, at);
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

	in[0] = NULL; /* a group of a short block can be empty */
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

static void code_xor_check(const struct code *c)
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
	.check = code_xor_check,
};
