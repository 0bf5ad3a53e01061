/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block for tests: random symbols, what the code and its twin make of them, and losses. A
 * symbol's memory ends where its bytes end (under AddressSanitizer exactly, otherwise a guard is
 * looked at), at any alignment.
 */
#ifndef SDR_CODE_TEST_BLOCK_H
#define SDR_CODE_TEST_BLOCK_H

#include "base/rng.h"
#include "code/code.h"
#include "code/code_twin.h"

#define TEST_SYMBOLS 256u

struct test_block {
	struct code *code;
	struct twin twin;
	struct code_block b;
	uint32_t nparity;
	uint8_t *memory[TEST_SYMBOLS * 2]; /* of data, then of parity */
	uint8_t *data[TEST_SYMBOLS];	   /* as the code sees it */
	uint8_t *parity[TEST_SYMBOLS];	   /* as the code made it */
	uint8_t *whole[TEST_SYMBOLS];	   /* data with its zeros, never touched */
};

/*
 * A code, a block of it and its parity 0 .. nparity - 1. `misalign` is added to each address.
 * `compare`: makes parity in parts and compares it with the twin's. NULL, or what went wrong.
 */
const char *test_block_open(struct test_block *t, const struct twin *twin,
			    const struct code_block *b, uint32_t nparity, uint32_t misalign,
			    bool compare, struct rng *rng);
void test_block_close(struct test_block *t);

/*
 * Loses what is not in the two sets, decodes, and looks at every byte. *lacking: what must still
 * arrive, by the code. NULL, or what went wrong: also where it refused what it could have decoded.
 */
const char *test_block_lose(struct test_block *t, const struct code_set *have,
			    const struct code_set *parity, struct rng *rng, uint32_t *lacking);

/* `n` different numbers of 0 .. below - 1. */
struct code_set test_set(struct rng *rng, uint32_t n, uint32_t below);

#endif
