// SPDX-License-Identifier: Apache-2.0
/*
 * See num.h.
 */
#include "plan/num.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

#define GEOMETRIC_MAX (UINT64_C(1) << 62)

double num_binomial_log_pmf(uint64_t n, uint64_t i, double p)
{
	double a = (double)n, b = (double)i;

	SDR_ASSERT(i <= n);
	if (p <= 0)
		return i == 0 ? 0 : -INFINITY;
	if (p >= 1)
		return i == n ? 0 : -INFINITY;
	return lgamma(a + 1) - lgamma(b + 1) - lgamma(a - b + 1) + b * log(p) + (a - b) * log1p(-p);
}

/* Beyond the mode terms only shrink, so that the sum may stop where they vanish. */
double num_binomial_above(uint64_t n, uint64_t m, double p)
{
	double odds = p / (1 - p), mode = (double)n * p, term, sum = 0;

	if (m >= n || p <= 0)
		return 0;
	term = exp(num_binomial_log_pmf(n, m + 1, p));
	for (uint64_t i = m + 1; i <= n; i++) {
		sum += term;
		if ((double)i > mode && term < sum * 1e-18)
			break;
		term *= (double)(n - i) / (double)(i + 1) * odds;
	}
	return sum < 1 ? sum : 1;
}

double num_any(double n, double p)
{
	return p >= 1 ? 1 : -expm1(n * log1p(-p));
}

uint64_t num_geometric(struct rng *rng, double log_fail)
{
	double u = 1 - rng_unit(rng); /* (0, 1] */
	double trials;

	if (log_fail >= 0)
		return GEOMETRIC_MAX;
	trials = log(u) / log_fail;
	return trials >= (double)GEOMETRIC_MAX ? GEOMETRIC_MAX : 1 + (uint64_t)trials;
}

double num_normal(struct rng *rng)
{
	double u = 1 - rng_unit(rng), v = rng_unit(rng);

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void num_sort(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), by_value);
}

double num_quantile(const double *sorted, uint32_t count, double q)
{
	double rank = ceil(q * (double)count - 1e-9);
	uint32_t i = rank < 1 ? 0 : (uint32_t)rank - 1;

	SDR_ASSERT(count > 0);
	return sorted[i < count ? i : count - 1];
}
