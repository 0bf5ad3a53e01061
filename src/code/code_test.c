// SPDX-License-Identifier: Apache-2.0
/*
 * The codes at their edges: arguments, lengths and alignments, short blocks, further parity,
 * tables, memory. Which losses are made good is code_small_test's and code_random_test's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <isa-l/erasure_code.h>

#include "base/alloc_failing.h"
#include "code/test_block.h"

static void test_create(void **state)
{
	static const struct {
		const char *name;
		struct code_params params;
		int want;
		uint32_t parity_max;
	} row[] = {
		{"rs", {.k = 1, .m = 1}, 0, 254},
		{"rs", {.k = 32, .m = 8}, 0, 223},
		{"rs", {.k = 128, .m = 127}, 0, 127},
		{"rs", {.k = 128, .m = 0}, 0, 127}, /* only when it is asked for */
		{"rs", {.k = 254, .m = 1}, 0, 1},
		{"rs", {.k = 255, .m = 0}, 0, 0},
		{"xor", {.k = 32, .m = 8}, 0, 8},
		{"xor", {.k = 1, .m = 254}, 0, 254},
		{"rs", {.k = 128, .m = 128}, -EINVAL, 0},
		{"rs", {.k = 0, .m = 8}, -EINVAL, 0},
		{"rs", {.k = 256, .m = 0}, -EINVAL, 0},
		{"rs", {.k = 2, .m = UINT32_MAX}, -EINVAL, 0},
		{"xor", {.k = 32, .m = 0}, -EINVAL, 0},
		{"lrc", {.k = 32, .m = 8}, -EINVAL, 0},
		{NULL, {.k = 32, .m = 8}, -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(row); i++) {
		struct code *c = NULL;

		assert_int_equal(code_create(&sdr_alloc_system, row[i].name, &row[i].params, &c),
				 row[i].want);
		if (row[i].want)
			continue;
		assert_string_equal(code_name(c), row[i].name);
		assert_int_equal(code_k(c), row[i].params.k);
		assert_int_equal(code_parity_max(c), row[i].parity_max);
		code_check(c);
		code_destroy(c);
	}
	code_destroy(NULL);
}

static void refusals(bool rs)
{
	const struct twin twin = {.rs = rs, .k = 4, .m = 2};
	const struct code_block good = {.count = 4, .len = 8, .last_len = 8};
	const struct code_block bad[] = {
		{.count = 0, .len = 8, .last_len = 8}, {.count = 5, .len = 8, .last_len = 8},
		{.count = 4, .len = 0, .last_len = 0}, {.count = 4, .len = 8, .last_len = 0},
		{.count = 4, .len = 8, .last_len = 9},
	};
	const struct code_set none = {0};
	struct test_block t;
	struct rng rng;

	rng_init(&rng, 1);
	assert_null(test_block_open(&t, &twin, &good, 2, 0, true, &rng));
	const uint32_t most = code_parity_max(t.code);
	const uint8_t *const *data = (const uint8_t *const *)t.data;
	const struct code_parity twice[] = {{1, t.parity[1]}, {1, t.parity[1]}};
	const struct code_parity beyond[] = {{most, t.parity[1]}};

	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++) {
		assert_int_equal(code_encode(t.code, &bad[i], data, 0, 1, t.parity), -EINVAL);
		assert_int_equal(code_decode(t.code, &bad[i], t.data, &none, NULL, 0), -EINVAL);
		assert_int_equal(code_deficit(t.code, &bad[i], &none, &none), 4);
	}
	assert_int_equal(code_encode(t.code, &good, data, most, 1, t.parity), -EINVAL);
	assert_int_equal(code_encode(t.code, &good, data, 1, UINT32_MAX, t.parity), -EINVAL);
	assert_int_equal(code_encode(t.code, &good, data, most + 1, 0, t.parity), -EINVAL);
	assert_int_equal(code_encode(t.code, &good, data, most, 0, t.parity), 0);
	assert_int_equal(code_decode(t.code, &good, t.data, &none, twice, 2), -EINVAL);
	assert_int_equal(code_decode(t.code, &good, t.data, &none, beyond, 1), -EINVAL);
	assert_int_equal(code_decode(t.code, &good, t.data, &none, twice, 1), -EAGAIN);
	for (uint32_t i = 0; i < 4; i++)
		assert_memory_equal(t.data[i], t.whole[i], 8);
	test_block_close(&t);
}

static void test_refusals(void **state)
{
	(void)state;
	refusals(true);
	refusals(false);
}

/* Loses as much as can be borne, a few times. */
static void lose_some(struct test_block *t, struct rng *rng)
{
	for (int i = 0; i < 4; i++) {
		uint32_t all = t->b.count + t->nparity, lacking;
		struct code_set lost = test_set(rng, t->nparity, all), have, parity = {0};

		have = code_set_missing(&lost, t->b.count);
		for (uint32_t j = 0; j < t->nparity; j++) {
			if (!code_set_has(&lost, t->b.count + j))
				code_set_add(&parity, j);
		}
		assert_null(test_block_lose(t, &have, &parity, rng, &lacking));
		assert_true(!t->twin.rs || !lacking);
	}
	/* The last symbol, which may be short, alone. */
	struct code_set have = {0}, parity = {0};
	uint32_t lacking;

	for (uint32_t i = 0; i + 1 < t->b.count; i++)
		code_set_add(&have, i);
	for (uint32_t j = 0; j < t->nparity; j++)
		code_set_add(&parity, j);
	assert_null(test_block_lose(t, &have, &parity, rng, &lacking));
	assert_int_equal(lacking, 0);
}

static void test_lengths(void **state)
{
	static const uint32_t lens[] = {1,    2,    15,	  16,	17,   31,   63,	  64,	65,   127,
					128,  255,  256,  319,	320,  321,  1023, 1024, 1025, 1087,
					1088, 1089, 1436, 2048, 4095, 4096, 4097, 9000};
	static const struct twin codes[] = {{true, 4, 2}, {true, 40, 5}, {false, 9, 3}};
	struct rng rng;

	(void)state;
	rng_init(&rng, 2);
	for (size_t i = 0; i < SDR_ARRAY_LEN(lens); i++) {
		const uint32_t len = lens[i],
			       last[] = {1, (len + 1) / 2, len > 1 ? len - 1 : 1, len};

		for (size_t c = 0; c < SDR_ARRAY_LEN(codes) * SDR_ARRAY_LEN(last); c++) {
			const struct twin *twin = &codes[c / SDR_ARRAY_LEN(last)];
			const struct code_block b = {.count = c % 3 ? twin->k : twin->k - 1,
						     .len = len,
						     .last_len = last[c % SDR_ARRAY_LEN(last)]};
			struct test_block t;

			assert_null(test_block_open(&t, twin, &b, twin->m,
						    (uint32_t)(i + c * 7) % 64, true, &rng));
			lose_some(&t, &rng);
			test_block_close(&t);
		}
	}
}

static void test_long_symbols(void **state)
{
	static const struct twin codes[] = {{true, 6, 3}, {false, 6, 3}};

	(void)state;
	for (size_t c = 0; c < SDR_ARRAY_LEN(codes); c++) {
		const struct code_block b = {.count = 5, .len = 65000, .last_len = 64999};
		struct test_block t;
		struct rng rng;

		rng_init(&rng, 3);
		assert_null(test_block_open(&t, &codes[c], &b, 3, 5, true, &rng));
		lose_some(&t, &rng);
		test_block_close(&t);
	}
}

/* Every length of block of longer codes; more parity than data too. */
static void test_short_blocks(void **state)
{
	static const struct twin codes[] = {
		{true, 32, 8}, {true, 12, 20}, {false, 32, 8}, {false, 3, 9}, {false, 17, 1}};
	struct rng rng;

	(void)state;
	rng_init(&rng, 4);
	for (size_t c = 0; c < SDR_ARRAY_LEN(codes); c++) {
		for (uint32_t count = 1; count <= codes[c].k; count++) {
			const struct code_block b = {.count = count, .len = 70, .last_len = 33};
			struct test_block t;

			assert_null(test_block_open(&t, &codes[c], &b, codes[c].m, 0, true, &rng));
			lose_some(&t, &rng);
			test_block_close(&t);
		}
	}
}

/* All the parity that there can be, made in parts, and any of it decodes; in several passes. */
static void test_further_parity(void **state)
{
	static const uint32_t ks[] = {1, 2, 10, 100, 127, 128, 200, 254};
	struct rng rng;

	(void)state;
	rng_init(&rng, 5);
	for (size_t i = 0; i < SDR_ARRAY_LEN(ks); i++) {
		const struct twin twin = {.rs = true, .k = ks[i], .m = i % 2};
		const struct code_block b = {.count = ks[i], .len = 80, .last_len = 79};
		struct test_block t;

		assert_null(test_block_open(&t, &twin, &b, 255 - ks[i], 0, true, &rng));
		lose_some(&t, &rng);
		if (255 - ks[i] >= ks[i]) { /* nothing but parity, and the highest numbers of it */
			struct code_set none = {0}, parity = {0};
			uint32_t lacking;

			for (uint32_t n = 0; n < ks[i]; n++)
				code_set_add(&parity, 254 - ks[i] - n);
			assert_null(test_block_lose(&t, &none, &parity, &rng, &lacking));
			assert_int_equal(lacking, 0);
		}
		test_block_close(&t);
	}
}

/* A parity symbol is the same whatever m is. */
static void test_parity_by_number(void **state)
{
	static const uint32_t ms[] = {0, 1, 5, 24, 127};
	const struct code_block b = {.count = 128, .len = 100, .last_len = 100};
	struct test_block t[SDR_ARRAY_LEN(ms)];

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(ms); i++) {
		const struct twin twin = {.rs = true, .k = 128, .m = ms[i]};
		struct rng rng;

		rng_init(&rng, 6);
		assert_null(test_block_open(&t[i], &twin, &b, 127, 0, i == 0, &rng));
	}
	for (size_t i = 1; i < SDR_ARRAY_LEN(ms); i++) {
		for (uint32_t j = 0; j < b.count; j++)
			memcpy(t[i].data[j], t[0].data[j], b.len);
		assert_int_equal(code_encode(t[i].code, &b, (const uint8_t *const *)t[i].data, 0,
					     127, t[i].parity),
				 0);
		for (uint32_t j = 0; j < 127; j++)
			assert_memory_equal(t[i].parity[j], t[0].parity[j], b.len);
	}
	for (size_t i = 0; i < SDR_ARRAY_LEN(ms); i++)
		test_block_close(&t[i]);
}

/*
 * ISA-L's other matrix cannot make good three losses out of 32 with these three of eight
 * parity symbols; ours can.
 */
static void test_matrix(void **state)
{
	static const uint32_t rows[] = {0, 1, 3}, columns[] = {0, 1, 25};
	const struct twin twin = {.rs = true, .k = 32, .m = 8};
	const struct code_block b = {.count = 32, .len = 100, .last_len = 100};
	uint8_t matrix[40 * 32], part[2][9], inverse[9];
	struct code_set have = {0}, parity = {0};
	struct test_block t;
	struct rng rng;
	uint32_t lacking;

	(void)state;
	gf_gen_rs_matrix(matrix, 40, 32);
	for (uint32_t i = 0; i < 9; i++) {
		part[0][i] = matrix[(32 + rows[i / 3]) * 32 + columns[i % 3]];
		part[1][i] = twin_coefficient(&twin, rows[i / 3], columns[i % 3]);
	}
	assert_int_not_equal(gf_invert_matrix(part[0], inverse, 3), 0);
	assert_int_equal(gf_invert_matrix(part[1], inverse, 3), 0);

	rng_init(&rng, 7);
	assert_null(test_block_open(&t, &twin, &b, 8, 0, true, &rng));
	for (uint32_t i = 0; i < 3; i++) {
		code_set_add(&have, columns[i]);
		code_set_add(&parity, rows[i]);
	}
	have = code_set_missing(&have, 32);
	assert_null(test_block_lose(&t, &have, &parity, &rng, &lacking));
	assert_int_equal(lacking, 0);
	test_block_close(&t);
}

static void lose_one(struct test_block *t, struct rng *rng, uint32_t lost)
{
	struct code_set one = {0}, have, parity = {.word = {15}};
	uint32_t lacking;

	code_set_add(&one, lost);
	have = code_set_missing(&one, t->b.count);
	assert_null(test_block_lose(t, &have, &parity, rng, &lacking));
}

static void stats_are(const struct test_block *t, uint64_t hits, uint64_t misses,
		      uint64_t evictions)
{
	const struct code_stats s = code_stats(t->code);

	assert_int_equal(s.hits, hits);
	assert_int_equal(s.misses, misses);
	assert_int_equal(s.evictions, evictions);
}

/* Three tables are kept (test_block.c); what is needed again is there, the oldest goes. */
static void test_tables_are_kept(void **state)
{
	const struct twin twin = {.rs = true, .k = 16, .m = 4};
	const struct code_block b = {.count = 16, .len = 64, .last_len = 64};
	struct test_block t;
	struct rng rng;

	(void)state;
	rng_init(&rng, 8);
	assert_null(test_block_open(&t, &twin, &b, 4, 0, false, &rng));
	stats_are(&t, 0, 0, 0); /* a whole block's parity has tables of its own */
	for (uint32_t i = 0; i < 3; i++)
		lose_one(&t, &rng, i);
	stats_are(&t, 0, 3, 0);
	for (uint32_t i = 0; i < 3; i++)
		lose_one(&t, &rng, i);
	stats_are(&t, 3, 3, 0);
	lose_one(&t, &rng, 3); /* in the place of 0 */
	stats_are(&t, 3, 4, 1);
	lose_one(&t, &rng, 1);
	stats_are(&t, 4, 4, 1);
	lose_one(&t, &rng, 0); /* in the place of 2 */
	lose_one(&t, &rng, 1);
	stats_are(&t, 5, 5, 2);
	test_block_close(&t);
}

static void test_allocation_failures(void **state)
{
	static const char *const names[] = {"rs", "xor"};
	const struct code_params params = {.k = 8, .m = 2};

	(void)state;
	for (size_t n = 0; n < SDR_ARRAY_LEN(names); n++) {
		int err = -ENOMEM, left = 0;

		for (; err == -ENOMEM; left++) {
			struct alloc_failing f = {.left = left};
			const struct sdr_alloc alloc = alloc_failing(&f);
			struct code *c = NULL;

			assert_true(left < 20);
			err = code_create(&alloc, names[n], &params, &c);
			assert_true(err == -ENOMEM || err == 0);
			if (!err)
				code_destroy(c);
			assert_int_equal(f.out, 0);
		}
		assert_true(left > 1);
	}
}

static void test_sets(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 9);
	for (uint32_t n = 0; n <= CODE_SET_BITS; n++) {
		struct code_set s = test_set(&rng, n, CODE_SET_BITS), rest;
		const uint32_t below = (uint32_t)rng_below(&rng, CODE_SET_BITS + 1);
		uint32_t seen = 0;

		assert_int_equal(code_set_count(&s), n);
		for (uint32_t i = code_set_next(&s, 0); i < CODE_SET_BITS;
		     i = code_set_next(&s, i + 1), seen++)
			assert_true(code_set_has(&s, i));
		assert_int_equal(seen, n);
		rest = code_set_missing(&s, below);
		for (uint32_t i = 0; i < CODE_SET_BITS; i++)
			assert_int_equal(code_set_has(&rest, i), i < below && !code_set_has(&s, i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_long_symbols),
		cmocka_unit_test(test_short_blocks),
		cmocka_unit_test(test_further_parity),
		cmocka_unit_test(test_parity_by_number),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_tables_are_kept),
		cmocka_unit_test(test_allocation_failures),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
