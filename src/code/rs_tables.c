// SPDX-License-Identifier: Apache-2.0
/*
 * Reed-Solomon's matrix and what is made of it: tables that ISA-L multiplies by, for parity and
 * for the losses of one pattern. Touches no symbols.
 *
 * Losing e data symbols E and using parity symbols P, e of them, with S the data that arrived:
 *
 *	parity[P] = A[P,S] data[S] + A[P,E] data[E]
 *	data[E]   = A[P,E]^-1 A[P,S] data[S] + A[P,E]^-1 parity[P]
 *
 * so only an e x e matrix is inverted, not one of k x k.
 */
#include "code/rs.h"

#include <errno.h>
#include <isa-l/erasure_code.h>
#include <string.h>

#include "base/check.h"

#define PASS_LEAST 4u /* rows that ISA-L does in one go at least */
#define PARTS 7

static uint32_t lost_max(const struct rs *rs)
{
	return (uint32_t)u64_min(rs->k, rs->parity_max);
}

/* One allocation, cut up; every part starts on a cache line. */
static int carve(struct rs *rs, const struct sdr_alloc *alloc, uint32_t m)
{
	const size_t lost = lost_max(rs);
	const struct {
		uint8_t **at;
		size_t bytes;
	} part[PARTS] = {
		{&rs->matrix, (size_t)rs->parity_max * rs->k},
		{&rs->tables, (size_t)m * rs->k * RS_TABLE_BYTES},
		{&rs->square, lost * lost},
		{&rs->inverse, lost * lost},
		{&rs->arrived, lost * rs->k},
		{&rs->rows, (size_t)rs->pass * rs->k},
		{&rs->solve, rs->pass * lost * RS_TABLE_BYTES},
	};
	size_t offset[PARTS + 1] = {0};

	for (uint32_t i = 0; i < PARTS; i++)
		offset[i + 1] = offset[i] + (part[i].bytes + 63) / 64 * 64;
	rs->arena = alloc_zeroed(alloc, offset[PARTS]);
	if (!rs->arena)
		return -ENOMEM;
	for (uint32_t i = 0; i < PARTS; i++)
		*part[i].at = rs->arena + offset[i];
	return 0;
}

/* Parity's part of ISA-L's matrix, whose upper part says that data stays as it is. */
static int fill_matrix(struct rs *rs, const struct sdr_alloc *alloc)
{
	const size_t all = rs->k + rs->parity_max, unit = (size_t)rs->k * rs->k;
	uint8_t *whole = alloc_zeroed(alloc, all * rs->k);

	if (!whole)
		return -ENOMEM;
	gf_gen_cauchy1_matrix(whole, (int)all, (int)rs->k);
	memcpy(rs->matrix, whole + unit, (size_t)rs->parity_max * rs->k);
	alloc_free(alloc, whole);
	return 0;
}

int rs_tables_init(struct rs *rs, const struct sdr_alloc *alloc, const struct code_params *params)
{
	int err;

	rs->k = params->k;
	rs->parity_max = CODE_SYMBOLS_MAX - params->k;
	rs->pass = (uint32_t)u64_min(u64_max(params->m, PASS_LEAST), u64_max(rs->parity_max, 1));
	err = carve(rs, alloc, params->m);
	if (!err)
		err = fill_matrix(rs, alloc);
	if (!err)
		err = code_cache_init(&rs->cache, alloc,
				      params->tables ? params->tables : CODE_TABLES_DEFAULT,
				      (size_t)rs->pass * rs->k * RS_TABLE_BYTES);
	if (err) {
		alloc_free(alloc, rs->arena);
		return err;
	}
	if (params->m > 0)
		ec_init_tables((int)rs->k, (int)params->m, rs->matrix, rs->tables);
	return 0;
}

void rs_tables_fini(struct rs *rs, const struct sdr_alloc *alloc)
{
	code_cache_fini(&rs->cache);
	alloc_free(alloc, rs->arena);
}

const uint8_t *rs_tables_encode(struct rs *rs, uint32_t m, uint32_t count, uint32_t first,
				uint32_t rows)
{
	const struct code_cache_key key = {.count = count, .first = first, .rows = rows};
	uint8_t *tables;

	SDR_ASSERT(rows >= 1 && rows <= rs->pass && first + rows <= rs->parity_max);
	if (count == rs->k && first == 0 && rows <= m)
		return rs->tables;
	tables = code_cache_find(&rs->cache, &key);
	if (tables)
		return tables;
	for (uint32_t row = 0; row < rows; row++)
		memcpy(rs->rows + row * count, rs->matrix + (first + row) * rs->k, count);
	tables = code_cache_take(&rs->cache, &key);
	ec_init_tables((int)count, (int)rows, rs->rows, tables);
	return tables;
}

/* A[P,E] inverted, and A[P,S]. */
static void invert(struct rs *rs, struct rs_pattern *p)
{
	const uint32_t e = p->nerased, narrived = p->count - e;
	uint32_t row = 0;
	int err;

	for (uint32_t j = code_set_next(&p->parity, 0); j < CODE_SET_BITS;
	     j = code_set_next(&p->parity, j + 1), row++) {
		uint8_t *lost = rs->square + row * e, *arrived = rs->arrived + row * narrived;

		for (uint32_t i = 0; i < p->count; i++) {
			if (code_set_has(&p->erased, i))
				*lost++ = rs->matrix[j * rs->k + i];
			else
				*arrived++ = rs->matrix[j * rs->k + i];
		}
	}
	SDR_ASSERT(row == e);
	err = gf_invert_matrix(rs->square, rs->inverse, (int)e);
	SDR_ASSERT(err == 0);
	(void)err;
	p->inverted = true;
}

/* Rows first .. of A[P,E]^-1 (A[P,S], 1): a product of matrices, by the code's own means. */
static void solve(struct rs *rs, const struct rs_pattern *p, uint32_t first, uint32_t rows)
{
	const uint32_t e = p->nerased, narrived = p->count - e;
	const uint8_t *inverse = rs->inverse + first * e;
	uint8_t *from[CODE_SYMBOLS_MAX], *to[CODE_SYMBOLS_MAX];

	for (uint32_t i = 0; i < e; i++)
		from[i] = rs->arrived + i * narrived;
	for (uint32_t row = 0; row < rows; row++) {
		to[row] = rs->rows + row * p->count;
		memcpy(to[row] + narrived, inverse + row * e, e);
	}
	if (narrived == 0)
		return;
	ec_init_tables((int)e, (int)rows, (uint8_t *)inverse, rs->solve);
	ec_encode_data((int)narrived, (int)e, (int)rows, rs->solve, from, to);
}

const uint8_t *rs_tables_decode(struct rs *rs, struct rs_pattern *p, uint32_t first, uint32_t rows)
{
	const struct code_cache_key key = {.erased = p->erased,
					   .parity = p->parity,
					   .count = p->count,
					   .first = first,
					   .rows = rows};
	uint8_t *tables;

	SDR_ASSERT(rows >= 1 && rows <= rs->pass && first + rows <= p->nerased);
	tables = code_cache_find(&rs->cache, &key);
	if (tables)
		return tables;
	if (!p->inverted)
		invert(rs, p);
	solve(rs, p, first, rows);
	tables = code_cache_take(&rs->cache, &key);
	ec_init_tables((int)p->count, (int)rows, rs->rows, tables);
	return tables;
}
