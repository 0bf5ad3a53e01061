// SPDX-License-Identifier: Apache-2.0
/*
 * The generator against its authors' published outputs, ranges, and a coarse look at
 * uniformity; the seeds are fixed, so no test here can fail by chance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/bits.h"
#include "base/rng.h"

static void test_reference_outputs(void **state)
{
	static const uint64_t seeded[] = {
		UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973),
		UINT64_C(9817491932198370423),
		UINT64_C(4593380528125082431),
	};
	static const uint64_t out[] = {
		11520,
		0,
		1509978240,
		UINT64_C(1215971899390074240),
		UINT64_C(1216172134540287360),
		UINT64_C(607988272756665600),
		UINT64_C(16172922978634559625),
		UINT64_C(8476171486693032832),
		UINT64_C(10595114339597558777),
		UINT64_C(2904607092377533576),
	};
	struct rng r;

	(void)state;
	rng_init(&r, 1234567);
	assert_memory_equal(r.s, seeded, sizeof(seeded));
	r = (struct rng){.s = {1, 2, 3, 4}};
	for (size_t i = 0; i < SDR_ARRAY_LEN(out); i++)
		assert_true(rng_next(&r) == out[i]);
}

static void test_same_seed_same_run(void **state)
{
	struct rng a, b, c;
	int differ = 0;

	(void)state;
	rng_init(&a, 0);
	rng_init(&b, 0);
	rng_init(&c, 1);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_next(&a);

		assert_true(x == rng_next(&b));
		differ += x != rng_next(&c);
	}
	assert_true(differ > 990);
}

static void test_unit_range_and_mean(void **state)
{
	struct rng r;
	double sum = 0;

	(void)state;
	rng_init(&r, 7);
	for (int i = 0; i < 100000; i++) {
		double u = rng_unit(&r);

		assert_true(u >= 0 && u < 1);
		sum += u;
	}
	assert_true(sum > 49500 && sum < 50500);
}

static void test_below(void **state)
{
	static const uint64_t limits[] = {1, 2, 3, 10, 1000, UINT64_C(1) << 63, UINT64_MAX};
	uint32_t hits[10] = {0};
	struct rng r;

	(void)state;
	rng_init(&r, 9);
	for (size_t i = 0; i < SDR_ARRAY_LEN(limits); i++) {
		for (int j = 0; j < 1000; j++)
			assert_true(rng_below(&r, limits[i]) < limits[i]);
	}
	for (int i = 0; i < 100000; i++)
		hits[rng_below(&r, 10)]++;
	for (int i = 0; i < 10; i++)
		assert_in_range(hits[i], 9500, 10500);
	/* With 3/4 of the range a biased remainder would land below a third 1/2 of the time. */
	uint64_t n = UINT64_C(3) << 62;
	int low = 0;
	for (int i = 0; i < 30000; i++)
		low += rng_below(&r, n) < n / 3;
	assert_in_range(low, 9500, 10500);
}

static void test_secret(void **state)
{
	unsigned char a[1000], b[1000];

	(void)state;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_int_equal(rng_secret(a, sizeof(a)), 0);
	assert_int_equal(rng_secret(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a + 900, b + 900, 100);
	assert_int_equal(rng_secret(a, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference_outputs),
		cmocka_unit_test(test_same_seed_same_run),
		cmocka_unit_test(test_unit_range_and_mean),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
