// SPDX-License-Identifier: Apache-2.0
/* The layout against a twin that deals packets out one by one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "code/layout.h"

struct twin {
	uint32_t nblocks, ngroups;
	struct code_place *place; /* by packet */
	uint32_t *count;	  /* by block */
};

static void twin_deal(struct twin *t, uint32_t npkts, uint32_t k, uint32_t depth)
{
	t->nblocks = t->ngroups = 0;
	t->place = calloc(npkts, sizeof(t->place[0]));
	t->count = calloc(npkts + depth, sizeof(t->count[0]));
	for (uint32_t next = 0; next < npkts; t->ngroups++) {
		uint32_t here = npkts - next < depth * k ? npkts - next : depth * k;
		uint32_t blocks = 1; /* as few as hold them */

		while (blocks * k < here)
			blocks++;
		for (uint32_t i = 0; i < here; i++, next++) {
			uint32_t block = t->nblocks + i % blocks;

			t->place[next] = (struct code_place){block, t->count[block]++};
		}
		t->nblocks += blocks;
	}
}

static void same_places(const struct code_layout *l, const struct twin *t, uint32_t npkts,
			uint32_t k)
{
	for (uint32_t pkt = 0; pkt < npkts; pkt++) {
		struct code_place got = code_layout_place(l, pkt);

		assert_int_equal(got.block, t->place[pkt].block);
		assert_int_equal(got.symbol, t->place[pkt].symbol);
		assert_int_equal(code_layout_packet(l, got.block, got.symbol), pkt);
	}
	for (uint32_t block = 0; block < l->nblocks; block++) {
		uint32_t count = code_layout_block_count(l, block);

		assert_int_equal(count, t->count[block]);
		assert_in_range(count, 1, k);
		for (uint32_t s = count; s < k; s++)
			assert_int_equal(code_layout_packet(l, block, s), CODE_LAYOUT_NONE);
	}
}

static void same_groups(const struct code_layout *l, const struct twin *t, uint32_t npkts)
{
	uint32_t pkt = 0, block = 0;

	assert_int_equal(code_layout_ngroups(l), t->ngroups);
	for (uint32_t i = 0; i < t->ngroups; i++) {
		struct code_group g = code_layout_group(l, i);

		assert_int_equal(g.first_pkt, pkt);
		assert_int_equal(g.first_block, block);
		assert_int_equal(t->place[g.first_pkt].block, block);
		pkt += g.npkts;
		block += g.nblocks;
	}
	assert_int_equal(pkt, npkts);
	assert_int_equal(block, t->nblocks);
}

static void compare(uint32_t npkts, uint32_t k, uint32_t depth)
{
	struct code_layout l;
	struct twin t;

	twin_deal(&t, npkts, k, depth);
	assert_int_equal(code_layout_init(&l, npkts, k, depth), 0);
	assert_int_equal(l.nblocks, t.nblocks);
	assert_true(l.depth <= l.nblocks);
	same_places(&l, &t, npkts, k);
	same_groups(&l, &t, npkts);
	for (uint32_t p = 0; p < 3 * l.nblocks; p++) {
		struct code_place got = code_layout_parity_place(&l, p);

		assert_int_equal(got.symbol * l.nblocks + got.block, p);
		assert_int_equal(code_layout_parity_packet(&l, got.block, got.symbol), p);
	}
	free(t.place);
	free(t.count);
}

static void test_every_small(void **state)
{
	(void)state;
	for (uint32_t npkts = 1; npkts <= 40; npkts++) {
		for (uint32_t k = 1; k <= 7; k++) {
			for (uint32_t depth = 1; depth <= 9; depth++)
				compare(npkts, k, depth);
		}
	}
}

static void test_random(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (int i = 0; i < 300; i++)
		compare(1 + (uint32_t)rng_below(&rng, 5000), 1 + (uint32_t)rng_below(&rng, 255),
			1 + (uint32_t)rng_below(&rng, 64));
}

/* A burst no longer than the depth takes one symbol of a block at most, within a group. */
static void test_bursts_are_spread(void **state)
{
	struct code_layout l;

	(void)state;
	assert_int_equal(code_layout_init(&l, 4 * 16 * 32, 32, 16), 0);
	for (uint32_t pkt = 0; pkt + 15 < l.npkts; pkt++) {
		uint32_t blocks = 0;

		if (pkt / 512 != (pkt + 15) / 512)
			continue;
		for (uint32_t i = 0; i < 16; i++)
			blocks |= 1u << code_layout_place(&l, pkt + i).block % 16;
		assert_int_equal(blocks, 0xffff);
	}
}

/* Numbers near the end of 32 bits: forth and back, and blocks in order. */
static void test_largest(void **state)
{
	static const uint32_t ks[] = {1, 2, 128, 255},
			      depths[] = {1, 3, 1000, 1u << 31, UINT32_MAX};
	const uint32_t npkts = UINT32_MAX - 1;
	struct rng rng;

	(void)state;
	rng_init(&rng, 2);
	for (size_t i = 0; i < SDR_ARRAY_LEN(ks) * SDR_ARRAY_LEN(depths); i++) {
		const uint32_t k = ks[i / SDR_ARRAY_LEN(depths)],
			       d = depths[i % SDR_ARRAY_LEN(depths)];
		struct code_layout l;

		assert_int_equal(code_layout_init(&l, npkts, k, d), 0);
		for (int n = 0; n < 1000; n++) {
			uint32_t pkt = n ? npkts - 1 - (uint32_t)rng_below(&rng, npkts) : npkts - 1;
			struct code_place p = code_layout_place(&l, pkt);

			assert_true(p.block < l.nblocks && p.symbol < k);
			assert_int_equal(code_layout_packet(&l, p.block, p.symbol), pkt);
			assert_true(p.symbol < code_layout_block_count(&l, p.block));
			assert_true(code_layout_parity_packet(&l, p.block, 254) ==
				    254 * (uint64_t)l.nblocks + p.block);
		}
	}
}

static void test_refusals(void **state)
{
	struct code_layout l;

	(void)state;
	assert_int_equal(code_layout_init(&l, 0, 4, 1), -EINVAL);
	assert_int_equal(code_layout_init(&l, 9, 0, 1), -EINVAL);
	assert_int_equal(code_layout_init(&l, 9, 4, 0), -EINVAL);
	assert_int_equal(code_layout_init(&l, 9, 256, 1), -EINVAL);
	assert_int_equal(code_layout_init(&l, CODE_LAYOUT_NONE, 4, 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_small),	  cmocka_unit_test(test_random),
		cmocka_unit_test(test_bursts_are_spread), cmocka_unit_test(test_largest),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
