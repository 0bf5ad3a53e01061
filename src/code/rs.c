// SPDX-License-Identifier: Apache-2.0
/*
 * rs: Reed-Solomon. Which symbols go in and which come out; the matrix is rs_tables.c's, the bytes
 * are strip.c's.
 */
#include "code/rs.h"

#include <errno.h>

#include "base/check.h"
#include "code/strip.h"

static int rs_init(struct code *c)
{
	int err;

	c->rs = alloc_zeroed(c->alloc, sizeof(*c->rs));
	if (!c->rs)
		return -ENOMEM;
	err = rs_tables_init(c->rs, c->alloc, &c->params);
	if (err)
		alloc_free(c->alloc, c->rs);
	return err;
}

static void rs_fini(struct code *c)
{
	rs_tables_fini(c->rs, c->alloc);
	alloc_free(c->alloc, c->rs);
}

static uint32_t rs_parity_max(const struct code *c)
{
	return c->rs->parity_max;
}

static struct code_stats rs_stats(const struct code *c)
{
	return c->rs->cache.stats;
}

static void rs_encode(struct code *c, const struct code_block *b, const uint8_t *const data[],
		      uint32_t first, uint32_t rows, uint8_t *const parity[])
{
	struct rs *rs = c->rs;
	struct code_strips job = {.in = data,
				  .nin = b->count,
				  .len = b->len,
				  .short_in = b->last_len < b->len ? b->count - 1 : CODE_STRIP_NONE,
				  .short_out = CODE_STRIP_NONE,
				  .short_len = b->last_len < b->len ? b->last_len : b->len};

	for (uint32_t done = 0; done < rows; done += job.nout) {
		job.nout = (uint32_t)u64_min(rows - done, rs->pass);
		job.tables = rs_tables_encode(rs, c->params.m, b->count, first + done, job.nout);
		job.out = parity + done;
		code_strips_run(&job);
	}
}

/* The lowest of the parity symbols, as many as are needed, so that patterns recur. */
static struct rs_pattern pattern_of(const struct code_block *b, const struct code_set *erased,
				    const struct code_set *parity)
{
	struct rs_pattern p = {
		.erased = *erased, .count = b->count, .nerased = code_set_count(erased)};
	uint32_t j = code_set_next(parity, 0);

	for (uint32_t i = 0; i < p.nerased; i++, j = code_set_next(parity, j + 1))
		code_set_add(&p.parity, j);
	return p;
}

/* Splits data into what is read and what is written, behind which comes parity. */
static void gather(const struct rs_pattern *p, uint8_t *const data[],
		   const uint8_t *const by_number[], const uint8_t *in[], uint8_t *out[])
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (code_set_has(&p->erased, i))
			*out++ = data[i];
		else
			*in++ = data[i];
	}
	for (uint32_t j = code_set_next(&p->parity, 0); j < CODE_SET_BITS;
	     j = code_set_next(&p->parity, j + 1))
		*in++ = by_number[j];
}

static void rs_decode(struct code *c, const struct code_block *b, uint8_t *const data[],
		      const struct code_set *erased, const struct code_set *parity,
		      const uint8_t *const by_number[])
{
	struct rs_pattern p = pattern_of(b, erased, parity);
	const uint8_t *in[CODE_SYMBOLS_MAX];
	uint8_t *out[CODE_SYMBOLS_MAX];
	struct code_strips job = {.in = in, .nin = b->count, .len = b->len, .short_len = b->len};
	uint32_t last_out = CODE_STRIP_NONE; /* which of the outputs is short */

	gather(&p, data, by_number, in, out);
	job.short_in = CODE_STRIP_NONE;
	if (b->last_len < b->len) {
		job.short_len = b->last_len;
		if (code_set_has(erased, b->count - 1))
			last_out = p.nerased - 1;
		else
			job.short_in = b->count - p.nerased - 1;
	}
	for (uint32_t done = 0; done < p.nerased; done += job.nout) {
		job.nout = (uint32_t)u64_min(p.nerased - done, c->rs->pass);
		job.tables = rs_tables_decode(c->rs, &p, done, job.nout);
		job.out = out + done;
		job.short_out = last_out != CODE_STRIP_NONE && last_out < done + job.nout
					? last_out - done
					: CODE_STRIP_NONE;
		code_strips_run(&job);
	}
}

static uint32_t rs_deficit(const struct code *c, const struct code_set *erased,
			   const struct code_set *parity)
{
	(void)c;
	return (uint32_t)u64_sub_floor(code_set_count(erased), code_set_count(parity));
}

static void rs_check(const struct code *c)
{
	SDR_ASSERT(c->rs->k == c->params.k && c->rs->pass >= 1);
	SDR_ASSERT(c->rs->parity_max + c->rs->k == CODE_SYMBOLS_MAX);
	code_cache_check(&c->rs->cache);
}

const struct code_ops code_rs_ops = {
	.name = "rs",
	.init = rs_init,
	.fini = rs_fini,
	.parity_max = rs_parity_max,
	.stats = rs_stats,
	.encode = rs_encode,
	.decode = rs_decode,
	.deficit = rs_deficit,
	.check = rs_check,
};
