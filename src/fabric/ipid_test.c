/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the identification rule: its windows' edges, pauses, resynchronising. */
#include "fabric/ipid.h"

#include "base/rng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MS UINT64_C(1000000)

static uint64_t at(uint16_t last, uint64_t now_ns)
{
	uint64_t state = IPID_NONE;

	assert_true(ipid_judge(&state, last, now_ns)); /* the first is believed */
	assert_int_equal(ipid_last(state), last);
	return state;
}

static bool judge_once(uint64_t state, uint16_t id, uint64_t now_ns)
{
	return ipid_judge(&state, id, now_ns);
}

static void test_every_distance_from_every_corner(void **state)
{
	const uint16_t lasts[] = {0, 1, 63, 64, 0x7fff, 0x8000, 0xfc00, 0xffff};

	(void)state;
	for (size_t i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++)
		for (uint32_t d = 0; d < 65536; d++) {
			uint64_t s = at(lasts[i], 5 * MS);
			uint16_t id = (uint16_t)(lasts[i] + d);
			bool ahead = d <= IPID_AHEAD, behind = d >= 65536 - IPID_BEHIND;

			assert_int_equal(ipid_judge(&s, id, 5 * MS), ahead || behind);
			/* Only forward. */
			assert_int_equal(ipid_last(s), ahead ? id : lasts[i]);
		}
}

static void test_a_pause_widens_it(void **state)
{
	const uint64_t s = at(100, 1000 * MS);

	(void)state;
	assert_false(judge_once(s, 100 + IPID_AHEAD + 1, 1000 * MS));
	assert_true(judge_once(s, 100 + IPID_AHEAD + 1, 1001 * MS));
	assert_false(judge_once(s, 100 + IPID_AHEAD + 2, 1001 * MS));
	assert_true(judge_once(s, 100 + IPID_AHEAD + 15000, 16000 * MS));
	/* Never to all of them. */
	assert_true(judge_once(s, 100 + IPID_AHEAD_MAX, 10000000 * MS));
	assert_false(judge_once(s, 100 + IPID_AHEAD_MAX + 1, 10000000 * MS));
}

/* What was refused does not shorten the pause of what comes. */
static void test_a_pause_counts_from_the_last_believed(void **state)
{
	uint64_t s = at(100, 1000 * MS);

	(void)state;
	assert_false(ipid_judge(&s, 50000, 2900 * MS));
	assert_true(ipid_judge(&s, 100 + IPID_AHEAD + 2000, 3000 * MS));
}

static void test_resynchronises_after_a_row(void **state)
{
	uint64_t s = at(100, 0);

	(void)state;
	for (uint32_t i = 1; i < IPID_RESYNC; i++)
		assert_false(ipid_judge(&s, (uint16_t)(40000 + 7 * i), 0));
	assert_int_equal(ipid_last(s), 100);
	assert_true(ipid_judge(&s, 40000 + 7 * IPID_RESYNC, 0));
	assert_int_equal(ipid_last(s), 40000 + 7 * IPID_RESYNC);
	assert_true(ipid_judge(&s, 40000 + 7 * IPID_RESYNC + 1, 0));
	assert_false(ipid_judge(&s, 101, 0));
}

static void test_a_row_is_broken_by_one_that_is_believed_or_disagrees(void **state)
{
	uint64_t s = at(100, 0);

	(void)state;
	for (uint32_t i = 1; i < IPID_RESYNC; i++)
		assert_false(ipid_judge(&s, (uint16_t)(40000 + i), 0));
	assert_true(ipid_judge(&s, 101, 0));
	for (uint32_t i = 1; i < IPID_RESYNC; i++)
		assert_false(ipid_judge(&s, (uint16_t)(40020 + i), 0));
	assert_false(ipid_judge(&s, 60000, 0)); /* too far from those before: a new row */
	for (uint32_t i = 1; i < IPID_RESYNC - 1; i++)
		assert_false(ipid_judge(&s, (uint16_t)(60000 + i), 0));
	assert_true(ipid_judge(&s, 60000 + IPID_RESYNC, 0));
}

/* Random ones get through as seldom as the windows say. */
static void test_chance(void **state)
{
	uint32_t believed = 0, n = 200000;
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (uint32_t i = 0; i < n; i++)
		believed += judge_once(at(1000, 0), (uint16_t)rng_next(&rng), 0);
	/* 5121 of 65536, with six standard deviations to either side. */
	assert_in_range(believed, 15628 - 720, 15628 + 720);
}

static void test_segments(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < 65536; id++)
		assert_int_equal(ipid_is_segment((uint16_t)id), id < 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_distance_from_every_corner),
		cmocka_unit_test(test_a_pause_widens_it),
		cmocka_unit_test(test_a_pause_counts_from_the_last_believed),
		cmocka_unit_test(test_resynchronises_after_a_row),
		cmocka_unit_test(test_a_row_is_broken_by_one_that_is_believed_or_disagrees),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
