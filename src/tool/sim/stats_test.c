/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics against values known by heart, against a slow binomial twin, and by drawing:
 * bounds hold the true value as often as they promise.
 */
#include "tool/sim/stats.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void near(double a, double b, double tolerance)
{
	assert_true(fabs(a - b) <= tolerance);
}

static void means(void **state)
{
	const uint64_t samples[] = {2, 4, 4, 4, 5, 5, 7, 9};
	double err;
	struct bound b = stats_mean(samples, 8, &err);

	(void)state;
	near(b.v, 5, 1e-12);
	near(err, sqrt(32.0 / 7 / 8), 1e-12);
	near(b.hi - b.v, 2.364624 * err, 1e-2 * err); /* t, 7 degrees of freedom */
	near(b.v - b.lo, b.hi - b.v, 1e-12);
	b = stats_mean(samples, 2, &err);
	near(b.v, 3, 1e-12);
	near(b.hi, 3 + 12.7062047 * 1, 1e-6);
	b = stats_mean(samples, 1, &err);
	assert_true(b.v == 2 && isnan(b.lo) && isnan(b.hi) && isnan(err));
	b = stats_mean(samples, 0, &err);
	assert_true(isnan(b.v) && isnan(err));
}

/* Tables of Student's t, 97.5 %. */
static void student(void **state)
{
	static const struct {
		uint64_t n;
		double t;
	} table[] = {{3, 4.30265},   {4, 3.18245},    {5, 2.77645},
		     {6, 2.57058},   {11, 2.22814},   {31, 2.04227},
		     {101, 1.98397}, {1001, 1.96234}, {100001, 1.95999}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		static uint64_t samples[100001];
		double err;
		struct bound b;

		for (uint64_t k = 0; k < table[i].n; k++)
			samples[k] = 1000000 + k % 2 * 1000;
		b = stats_mean(samples, table[i].n, &err);
		near((b.hi - b.v) / err, table[i].t, 0.004 * table[i].t);
	}
}

static void never(void **state)
{
	uint64_t samples[] = {STATS_NEVER, 7, 3, STATS_NEVER, 5};
	double err;
	struct bound b;

	(void)state;
	stats_sort(samples, 5);
	assert_true(samples[0] == 3 && samples[2] == 7 && samples[3] == STATS_NEVER);
	assert_true(isnan(stats_mean(samples, 5, &err).v));
	b = stats_quantile(samples, 5, 0.5);
	assert_true(b.v == 7);
	b = stats_quantile(samples, 5, 0.99);
	assert_true(isnan(b.v) && isnan(b.hi));
}

static void quantiles(void **state)
{
	uint64_t samples[2000];

	(void)state;
	for (uint64_t i = 0; i < 2000; i++)
		samples[i] = i + 1;
	assert_true(stats_quantile(samples, 2000, 0.5).v == 1000);
	assert_true(stats_quantile(samples, 2000, 0.99).v == 1980);
	assert_true(stats_quantile(samples, 2000, 0.999).v == 1998);
	assert_true(stats_quantile(samples, 100, 0.99).v == 99);
	assert_true(stats_quantile(samples, 1, 0.5).v == 1);
	assert_true(stats_quantile(samples, 3, 0.99).v == 3);
	assert_true(isnan(stats_quantile(samples, 0, 0.5).v));
	/* Too few for an upper bound: 0.99^367 is above 2.5 %, 0.99^368 below. */
	assert_true(isnan(stats_quantile(samples, 367, 0.99).hi));
	assert_true(stats_quantile(samples, 368, 0.99).hi == 368);
	assert_true(isnan(stats_quantile(samples, 5, 0.5).lo));
	assert_true(stats_quantile(samples, 6, 0.5).lo == 1);
	assert_true(stats_quantile(samples, 6, 0.5).hi == 6);
}

/* P(B < r), B binomial, by the definition. */
static double below(uint64_t n, double q, uint64_t r)
{
	double sum = 0;

	for (uint64_t k = 0; k < r; k++) {
		double p = 1;

		for (uint64_t i = 0; i < k; i++)
			p *= (double)(n - i) / (double)(k - i) * q;
		sum += p * pow(1 - q, (double)(n - k));
	}
	return sum;
}

static void ranks_twin(void **state)
{
	static const double qs[] = {0.5, 0.9, 0.99, 0.999};

	(void)state;
	for (uint64_t n = 1; n < 120; n++) {
		for (int i = 0; i < 4; i++) {
			uint64_t lo, hi, want_lo = 0, want_hi = n + 1;

			for (uint64_t r = 1; r <= n; r++) {
				if (below(n, qs[i], r) <= 0.025)
					want_lo = r;
				if (want_hi > n && 1 - below(n, qs[i], r) <= 0.025)
					want_hi = r;
			}
			stats_ranks(n, qs[i], &lo, &hi);
			assert_int_equal(lo, want_lo);
			assert_int_equal(hi, want_hi);
		}
	}
}

/* For a million runs: within a rank of the normal approximation's. */
static void ranks_many(void **state)
{
	uint64_t lo, hi;

	(void)state;
	stats_ranks(1000000, 0.5, &lo, &hi);
	near((double)lo, 500000 - 1.959964 * 500, 2);
	near((double)hi, 500000 + 1.959964 * 500, 2);
	stats_ranks(1000000, 0.999, &lo, &hi);
	near((double)lo, 999000 - 1.959964 * 31.607, 3);
	near((double)hi, 999000 + 1.959964 * 31.607, 3);
}

/* Uniform samples, many times: so often are the true values within. */
static void coverage(void **state)
{
	static const double qs[] = {0.5, 0.99};
	int held[3] = {0};
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int round = 0; round < 2000; round++) {
		uint64_t samples[500];
		struct bound b;
		double err;

		for (int i = 0; i < 500; i++)
			samples[i] = rng_below(&rng, 1000001);
		stats_sort(samples, 500);
		for (int i = 0; i < 2; i++) {
			b = stats_quantile(samples, 500, qs[i]);
			held[i] += b.lo <= qs[i] * 1e6 && qs[i] * 1e6 <= b.hi;
		}
		b = stats_mean(samples, 500, &err);
		held[2] += b.lo <= 5e5 && 5e5 <= b.hi;
	}
	/* 95 %, less four standard deviations of so many rounds. */
	for (int i = 0; i < 3; i++)
		assert_true(held[i] >= 1900 - 39);
	assert_true(held[2] <= 1900 + 39);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means),      cmocka_unit_test(student),
		cmocka_unit_test(never),      cmocka_unit_test(quantiles),
		cmocka_unit_test(ranks_twin), cmocka_unit_test(ranks_many),
		cmocka_unit_test(coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
