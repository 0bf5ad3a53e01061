// SPDX-License-Identifier: Apache-2.0
/*
 * Random losses of long codes, to the last byte.
 *
 *	code_random_test [rounds [seed]]
 *
 * so many sets of losses of each code; "code_random_test 1000000" is a matter of minutes in an
 * optimised build. As many symbols are lost as the code can bear, or fewer, or one more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "code/test_block.h"

#define BYTES 24u
#define BLOCK_ROUNDS 1000u /* then other bytes, another count */

static uint64_t rounds = 2000, seed = 1;

struct count {
	uint64_t full, fewer, refused;
};

static void lose(struct test_block *t, struct rng *rng, struct count *n)
{
	const uint32_t all = t->b.count + t->nparity;
	/* Half of them as many as can be borne. */
	uint32_t nlost = rng_below(rng, 2) ? t->nparity : (uint32_t)rng_below(rng, t->nparity + 2);
	struct code_set lost = test_set(rng, nlost, all), have, parity = {0};
	uint32_t lacking;
	const char *wrong;

	have = code_set_missing(&lost, t->b.count);
	for (uint32_t j = 0; j < t->nparity; j++) {
		if (!code_set_has(&lost, t->b.count + j))
			code_set_add(&parity, j);
	}
	wrong = test_block_lose(t, &have, &parity, rng, &lacking);
	if (wrong)
		fail_msg("(%u,%u) of %u, seed %llu: %s", t->twin.k, t->twin.m, t->b.count,
			 (unsigned long long)seed, wrong);
	if (lacking)
		n->refused++;
	else if (nlost == t->nparity)
		n->full++;
	else
		n->fewer++;
	assert_int_equal(lacking, nlost > t->nparity);
}

static void random_losses(uint32_t k, uint32_t m, uint32_t nparity)
{
	const struct twin twin = {.rs = true, .k = k, .m = m};
	struct count n = {0};
	struct rng rng;

	rng_init(&rng, seed * 1000 + k + m);
	for (uint64_t done = 0; done < rounds;) {
		/* Whole blocks mostly, and short ones. */
		struct code_block b = {.len = BYTES,
				       .last_len = 1 + (uint32_t)rng_below(&rng, BYTES)};
		struct test_block t;

		b.count = rng_below(&rng, 4) ? k : 1 + (uint32_t)rng_below(&rng, k);
		assert_null(test_block_open(&t, &twin, &b, nparity, 0, false, &rng));
		for (uint32_t i = 0; i < BLOCK_ROUNDS && done < rounds; i++, done++)
			lose(&t, &rng, &n);
		test_block_close(&t);
	}
	print_message("(%u,%u) with %u parity symbols: %llu sets with all losses that it bears, "
		      "%llu with "
		      "fewer, %llu refused\n",
		      k, m, nparity, (unsigned long long)n.full, (unsigned long long)n.fewer,
		      (unsigned long long)n.refused);
	assert_true(n.full > 0 && n.refused > 0);
}

static void test_32_8(void **state)
{
	(void)state;
	random_losses(32, 8, 8);
}

static void test_128_24(void **state)
{
	(void)state;
	random_losses(128, 24, 24);
}

/* Further parity takes part. */
static void test_further(void **state)
{
	(void)state;
	random_losses(32, 2, 40);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_32_8),
		cmocka_unit_test(test_128_24),
		cmocka_unit_test(test_further),
	};

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
