/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of Reed-Solomon share: its state, and where its tables come from. */
#ifndef SDR_CODE_RS_H
#define SDR_CODE_RS_H

#include "code/cache.h"
#include "code/code_priv.h"

#define RS_TABLE_BYTES 32u /* ISA-L, for one coefficient */

/*
 * The matrix is Cauchy's: parity j takes data i times 1 / ((k + j) xor i), whatever m is. Every
 * square part of it can be inverted, so any k symbols do; ISA-L's other matrix,
 * gf_gen_rs_matrix(), has parts that can't from (6,5), (22,4), (32,4) or (32,8) on.
 *
 * Tables are made for at most `pass` rows; more are done in several passes.
 */
struct rs {
	struct code_cache cache;
	uint32_t k, parity_max;
	uint32_t pass;
	uint8_t *arena;	 /* all that follows */
	uint8_t *matrix; /* parity_max rows of k */
	uint8_t *tables; /* of the first m rows and all k columns */
	/* To make tables with. */
	uint8_t *square, *inverse; /* as many rows as can be lost, squared */
	uint8_t *arrived;	   /* so many rows of k: columns that arrived */
	uint8_t *rows;		   /* pass rows of k: what tables are made of */
	uint8_t *solve;		   /* tables of inverse, pass rows */
};

/* Inputs in order: the data symbols that arrived, then the parity symbols that are used. */
struct rs_pattern {
	struct code_set erased; /* data symbols below count */
	struct code_set parity; /* as many parity symbols as are erased */
	uint32_t count, nerased;
	bool inverted; /* rs->inverse holds it */
};

/* 0 or -ENOMEM. */
int rs_tables_init(struct rs *rs, const struct sdr_alloc *alloc, const struct code_params *params);
void rs_tables_fini(struct rs *rs, const struct sdr_alloc *alloc);
/* Tables that make parity first .. first + rows - 1 from `count` data symbols; rows <= pass. */
const uint8_t *rs_tables_encode(struct rs *rs, uint32_t m, uint32_t count, uint32_t first,
				uint32_t rows);
/* Tables that make erased symbols number first .. first + rows - 1 (in order); rows <= pass. */
const uint8_t *rs_tables_decode(struct rs *rs, struct rs_pattern *p, uint32_t first, uint32_t rows);

#endif
