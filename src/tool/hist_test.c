// SPDX-License-Identifier: Apache-2.0
/*
 * The histogram against its slow twin: all samples, sorted.
 */
#include "tool/hist.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define N 20000

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_twin(void **state)
{
	static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	static uint64_t all[N];
	static struct hist h;
	uint64_t rng = 7;

	(void)state;
	hist_init(&h);
	for (int i = 0; i < N; i++) {
		rng = rng * 6364136223846793005u + 1442695040888963407u;
		all[i] = rng >> (20 + i % 44);
		hist_add(&h, all[i]);
	}
	qsort(all, N, sizeof all[0], by_value);
	assert_int_equal(h.min, all[0]);
	assert_int_equal(h.max, all[N - 1]);
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		size_t at = shares[i] > 0 ? (size_t)ceil(shares[i] * N) - 1 : 0;
		double want = (double)all[at], got = (double)hist_quantile(&h, shares[i]);

		assert_true(fabs(got - want) <= want / 100 + 1);
	}
}

static void test_edges(void **state)
{
	static struct hist h;

	(void)state;
	hist_init(&h);
	assert_int_equal(hist_quantile(&h, 0.5), 0);
	hist_add(&h, UINT64_MAX);
	assert_int_equal(hist_quantile(&h, 0.5), UINT64_MAX);
	hist_add(&h, 0);
	assert_int_equal(hist_quantile(&h, 0.5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twin),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
