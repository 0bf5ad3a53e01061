// SPDX-License-Identifier: Apache-2.0
/*
 * The seam of code/: checks arguments once, for all codes. Knows no arithmetic. See code.h.
 */
#include "code/code_priv.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"

static const struct code_ops *const all[] = {&code_xor_ops, &code_rs_ops};

static const struct code_ops *find(const char *name)
{
	for (size_t i = 0; i < SDR_ARRAY_LEN(all); i++) {
		if (name && strcmp(name, all[i]->name) == 0)
			return all[i];
	}
	return NULL;
}

int code_create(const struct sdr_alloc *alloc, const char *name, const struct code_params *params,
		struct code **out)
{
	const struct code_ops *ops = find(name);
	struct code *c;
	int err;

	if (!ops || params->k < 1 || params->k > CODE_SYMBOLS_MAX ||
	    params->m > CODE_SYMBOLS_MAX - params->k)
		return -EINVAL;
	c = alloc_zeroed(alloc, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct code){.ops = ops, .alloc = alloc, .params = *params};
	err = ops->init(c);
	if (err) {
		alloc_free(alloc, c);
		return err;
	}
	*out = c;
	return 0;
}

void code_destroy(struct code *c)
{
	if (!c)
		return;
	c->ops->fini(c);
	alloc_free(c->alloc, c);
}

const char *code_name(const struct code *c)
{
	return c->ops->name;
}

uint32_t code_k(const struct code *c)
{
	return c->params.k;
}

uint32_t code_parity_max(const struct code *c)
{
	return c->ops->parity_max(c);
}

struct code_stats code_stats(const struct code *c)
{
	return c->ops->stats(c);
}

static bool block_ok(const struct code *c, const struct code_block *b)
{
	return b->count >= 1 && b->count <= c->params.k && b->len >= 1 && b->last_len >= 1 &&
	       b->last_len <= b->len;
}

int code_encode(struct code *c, const struct code_block *b, const uint8_t *const data[],
		uint32_t first, uint32_t rows, uint8_t *const parity[])
{
	uint32_t most = c->ops->parity_max(c);

	if (!block_ok(c, b) || first > most || rows > most - first)
		return -EINVAL;
	if (rows > 0)
		c->ops->encode(c, b, data, first, rows, parity);
	return 0;
}

int code_decode(struct code *c, const struct code_block *b, uint8_t *const data[],
		const struct code_set *have, const struct code_parity parity[], uint32_t nparity)
{
	const uint8_t *by_number[CODE_SYMBOLS_MAX];
	struct code_set numbers = {0}, erased;

	if (!block_ok(c, b))
		return -EINVAL;
	for (uint32_t i = 0; i < nparity; i++) {
		uint32_t number = parity[i].number;

		if (number >= c->ops->parity_max(c) || code_set_has(&numbers, number))
			return -EINVAL;
		code_set_add(&numbers, number);
		by_number[number] = parity[i].bytes;
	}
	erased = code_set_missing(have, b->count);
	if (c->ops->deficit(c, &erased, &numbers) > 0)
		return -EAGAIN;
	if (code_set_count(&erased) > 0)
		c->ops->decode(c, b, data, &erased, &numbers, by_number);
	return (int)code_set_count(&erased);
}

uint32_t code_deficit(const struct code *c, const struct code_block *b, const struct code_set *have,
		      const struct code_set *parity)
{
	struct code_set erased;

	if (!block_ok(c, b))
		return c->params.k;
	erased = code_set_missing(have, b->count);
	return c->ops->deficit(c, &erased, parity);
}

void code_check(const struct code *c)
{
	SDR_ASSERT(c->params.k >= 1 && c->params.k + c->params.m <= CODE_SYMBOLS_MAX);
	c->ops->check(c);
}
