// SPDX-License-Identifier: Apache-2.0
/*
 * Every code up to (6,4), every length of block, and every set of symbols that may arrive: the
 * code decodes exactly what its twin can solve, to the same bytes, and lacks as many symbols.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "code/test_block.h"

#define K_MAX 6u
#define M_MAX 4u
#define BYTES 3u

static struct code_set set_of(uint32_t bits)
{
	return (struct code_set){.word = {bits}};
}

/* What the twin says is lacking, and that it comes to the same symbols. */
static uint32_t twin_lacking(const struct test_block *t, const struct code_set *have,
			     const struct code_set *parity)
{
	struct code_set erased = code_set_missing(have, t->b.count);
	uint8_t copy[K_MAX][BYTES], *data[K_MAX];
	uint32_t lacking;

	for (uint32_t i = 0; i < t->b.count; i++) {
		data[i] = copy[i];
		memcpy(copy[i], t->whole[i], BYTES);
		if (code_set_has(&erased, i))
			memset(copy[i], 0, BYTES);
	}
	lacking = twin_decode(&t->twin, data, t->b.count, BYTES, &erased, t->parity, parity);
	for (uint32_t i = 0; i < t->b.count && lacking == 0; i++)
		assert_memory_equal(copy[i], t->whole[i], BYTES);
	return lacking;
}

static uint32_t every_set(const struct twin *twin, uint32_t count)
{
	const struct code_block b = {.count = count, .len = BYTES, .last_len = 1 + count % BYTES};
	const uint32_t all = count + twin->m;
	struct test_block t;
	struct rng rng;
	uint32_t decoded = 0;

	rng_init(&rng, twin->k * 100 + twin->m * 10 + count);
	assert_null(test_block_open(&t, twin, &b, twin->m, 1, true, &rng));
	for (uint32_t bits = 0; bits < 1u << all; bits++) {
		struct code_set have = set_of(bits & ((1u << count) - 1));
		struct code_set parity = set_of(bits >> count);
		uint32_t lacking;

		assert_null(test_block_lose(&t, &have, &parity, &rng, &lacking));
		assert_int_equal(lacking, twin_lacking(&t, &have, &parity));
		if (twin->rs) /* any `count` symbols do */
			assert_int_equal(lacking == 0, (uint32_t)__builtin_popcount(bits) >= count);
		decoded += lacking == 0;
	}
	test_block_close(&t);
	return decoded;
}

static void every_small(bool rs)
{
	uint32_t decoded = 0;

	for (uint32_t k = 1; k <= K_MAX; k++) {
		for (uint32_t m = 1; m <= M_MAX; m++) {
			for (uint32_t count = 1; count <= k; count++)
				decoded += every_set(&(struct twin){rs, k, m}, count);
		}
	}
	print_message("%s: %u sets decoded\n", rs ? "rs" : "xor", decoded);
}

static void test_rs(void **state)
{
	(void)state;
	every_small(true);
}

static void test_xor(void **state)
{
	(void)state;
	every_small(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rs),
		cmocka_unit_test(test_xor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
