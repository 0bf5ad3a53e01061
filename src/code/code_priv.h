/* SPDX-License-Identifier: Apache-2.0 */
/* What the implementations of code/ share. Not for anyone outside. */
#ifndef SDR_CODE_CODE_PRIV_H
#define SDR_CODE_CODE_PRIV_H

#include "code/code.h"

/* Every slot is filled. Arguments have been checked by code.c. */
struct code_ops {
	const char *name;
	int (*init)(struct code *c);
	void (*fini)(struct code *c);
	uint32_t (*parity_max)(const struct code *c);
	struct code_stats (*stats)(const struct code *c);
	void (*encode)(struct code *c, const struct code_block *b, const uint8_t *const data[],
		       uint32_t first, uint32_t rows, uint8_t *const parity[]);
	/* by_number[j]: parity symbol j, of those that `parity` holds. There is enough. */
	void (*decode)(struct code *c, const struct code_block *b, uint8_t *const data[],
		       const struct code_set *erased, const struct code_set *parity,
		       const uint8_t *const by_number[]);
	uint32_t (*deficit)(const struct code *c, const struct code_set *erased,
			    const struct code_set *parity);
	void (*check)(const struct code *c);
};

struct rs;

struct code {
	const struct code_ops *ops;
	const struct sdr_alloc *alloc;
	struct code_params params;
	struct rs *rs; /* xor: NULL */
};

extern const struct code_ops code_xor_ops;
extern const struct code_ops code_rs_ops;

#endif
