/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "rel/rtt.h"

#define MS UINT64_C(1000000)

static void unknown_is_a_second(void **state)
{
	(void)state;
	struct rel_rtt rtt;
	struct rel_params dyn = {0}, three = {.rto_multiple = 3};
	rel_rtt_init(&rtt);
	assert_int_equal(rel_rtt_min_ns(&rtt), 0);
	assert_int_equal(rel_rtt_rto_ns(&rtt, &dyn), REL_RTO_INITIAL_NS);
	assert_int_equal(rel_rtt_rto_ns(&rtt, &three), REL_RTO_INITIAL_NS);
}

static void steady(void **state)
{
	(void)state;
	struct rel_rtt rtt;
	struct rel_params dyn = {0}, three = {.rto_multiple = 3}, one = {.rto_multiple = 1};
	rel_rtt_init(&rtt);
	for (uint64_t i = 0; i < 200; i++)
		rel_rtt_sample(&rtt, 80 * MS, i * MS);
	assert_int_equal(rtt.smoothed_ns, 80 * MS);
	assert_int_equal(rel_rtt_queue_ns(&rtt), 0);
	assert_true(rtt.variance_ns < 10);
	/* base + three ACK turns + 1 ms */
	assert_in_range(rel_rtt_rto_ns(&rtt, &dyn), 96 * MS, 96 * MS + 10);
	assert_int_equal(rel_rtt_rto_ns(&rtt, &three), 240 * MS);
	/* A multiple never falls below what an honest ACK may take. */
	assert_int_equal(rel_rtt_rto_ns(&rtt, &one), 96 * MS);
	rel_rtt_check(&rtt);
}

static void queue_and_variance_count(void **state)
{
	(void)state;
	struct rel_rtt rtt;
	struct rel_params dyn = {0};
	rel_rtt_init(&rtt);
	rel_rtt_sample(&rtt, 10 * MS, MS);
	for (uint64_t i = 0; i < 400; i++)
		rel_rtt_sample(&rtt, i % 2 ? 28 * MS : 32 * MS, (i + 1) * MS);
	assert_in_range(rtt.smoothed_ns, 29 * MS, 31 * MS);
	assert_in_range(rel_rtt_queue_ns(&rtt), 19 * MS, 21 * MS);
	uint64_t expect = 10 * MS + rtt.variance_ns * 4 / 5 + rel_rtt_queue_ns(&rtt) * 6 / 5 +
			  rel_rtt_ack_allowance_ns(&rtt) + MS;
	assert_in_range(rel_rtt_rto_ns(&rtt, &dyn), expect - 2, expect + 2);
}

/* A sample that waited to be read is older than the one before it, and no reason to forget. */
static void late_news(void **state)
{
	struct rel_rtt rtt;

	(void)state;
	rel_rtt_init(&rtt);
	rel_rtt_sample(&rtt, 10 * MS, 1000 * MS);
	rel_rtt_sample(&rtt, 20 * MS, 998 * MS);
	assert_int_equal(rel_rtt_min_ns(&rtt), 10 * MS);
	rel_rtt_check(&rtt);
}

/* The minimum is that of the last 5 to 10 s, against a list of all samples. */
static void minimum_window(void **state)
{
	(void)state;
	enum { N = 3000 };
	static uint64_t value[N], when[N];
	struct rel_rtt rtt;
	struct rng rng;
	rng_init(&rng, 7);
	rel_rtt_init(&rtt);
	uint64_t now = MS;
	for (int i = 0; i < N; i++) {
		now += rng_below(&rng, 30 * MS);
		if (rng_below(&rng, 500) == 0)
			now += 20000 * MS;
		value[i] = MS + rng_below(&rng, 50 * MS) + (uint64_t)(i / 300) * 20 * MS;
		when[i] = now;
		rel_rtt_sample(&rtt, value[i], now);
		rel_rtt_check(&rtt);
		uint64_t min5 = UINT64_MAX, min10 = UINT64_MAX;
		for (int j = 0; j <= i; j++) {
			if (now - when[j] < 5000 * MS && value[j] < min5)
				min5 = value[j];
			if (now - when[j] <= 10000 * MS && value[j] < min10)
				min10 = value[j];
		}
		uint64_t min = rel_rtt_min_ns(&rtt);
		assert_true(min <= min5 && min >= min10);
	}
}

static void absurd_samples(void **state)
{
	(void)state;
	struct rel_rtt rtt;
	struct rel_params p = {.rto_multiple = 100};
	rel_rtt_init(&rtt);
	rel_rtt_sample(&rtt, 0, 1);
	assert_int_equal(rtt.smoothed_ns, 1);
	for (int i = 0; i < 100; i++)
		rel_rtt_sample(&rtt, UINT64_MAX, 2);
	rel_rtt_check(&rtt);
	assert_int_equal(rel_rtt_rto_ns(&rtt, &p), REL_RTO_MAX_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_is_a_second),	    cmocka_unit_test(steady),
		cmocka_unit_test(queue_and_variance_count), cmocka_unit_test(late_news),
		cmocka_unit_test(minimum_window),	    cmocka_unit_test(absurd_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
