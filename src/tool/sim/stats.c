// SPDX-License-Identifier: Apache-2.0
/*
 * See stats.h.
 */
#include "tool/sim/stats.h"

#include <math.h>
#include <stdlib.h>

#define TAIL 0.025
#define NORMAL_975 1.959963984540054

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void stats_sort(uint64_t *samples, uint64_t n)
{
	qsort(samples, n, sizeof(*samples), ascending);
}

/*
 * The 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, above by its
 * expansion around the normal one (Abramowitz and Stegun 26.7.5), within 0.4 %.
 */
static double student_975(uint64_t freedom)
{
	double z = NORMAL_975, v = (double)freedom, z3 = z * z * z, z5 = z3 * z * z,
	       z7 = z5 * z * z, z9 = z7 * z * z;

	if (freedom == 1)
		return 12.706204736432095;
	if (freedom == 2)
		return 4.302652729911275;
	return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
	       (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * v * v * v * v);
}

struct bound stats_mean(const uint64_t *samples, uint64_t n, double *stderr_out)
{
	struct bound b = {NAN, NAN, NAN};
	double sum = 0, squares = 0, off;

	*stderr_out = NAN;
	for (uint64_t i = 0; i < n; i++) {
		if (samples[i] == STATS_NEVER)
			return b;
		sum += (double)samples[i];
	}
	if (n == 0)
		return b;
	b.v = sum / (double)n;
	if (n == 1)
		return b;
	for (uint64_t i = 0; i < n; i++) {
		off = (double)samples[i] - b.v;
		squares += off * off;
	}
	*stderr_out = sqrt(squares / (double)(n - 1) / (double)n);
	b.lo = b.v - student_975(n - 1) * *stderr_out;
	b.hi = b.v + student_975(n - 1) * *stderr_out;
	return b;
}

/* P(k of n), each with probability q. */
static double binomial(uint64_t n, uint64_t k, double q)
{
	double a = (double)n, b = (double)k;

	return exp(lgamma(a + 1) - lgamma(b + 1) - lgamma(a - b + 1) + b * log(q) +
		   (a - b) * log1p(-q));
}

/*
 * X_r is not above the quantile if at least r samples are not: P(B >= r), B binomial. So lo
 * is the largest r with P(B < r) <= TAIL, and hi the smallest with P(B >= r) <= TAIL. What is
 * more than 40 deviations from the middle is nothing.
 */
void stats_ranks(uint64_t n, double q, uint64_t *lo, uint64_t *hi)
{
	double mean = (double)n * q, far = 40 * sqrt(mean * (1 - q)) + 40, below = 0;
	uint64_t from = mean > far ? (uint64_t)(mean - far) : 0;

	*lo = 0;
	*hi = n + 1;
	for (uint64_t k = from; k <= n; k++) {
		/* below: P(B < k) */
		if (below <= TAIL)
			*lo = k;
		if (1 - below <= TAIL) {
			*hi = k;
			return;
		}
		below += binomial(n, k, q);
	}
}

static double sample(const uint64_t *sorted, uint64_t n, uint64_t rank)
{
	if (rank < 1 || rank > n || sorted[rank - 1] == STATS_NEVER)
		return NAN;
	return (double)sorted[rank - 1];
}

struct bound stats_quantile(const uint64_t *sorted, uint64_t n, double q)
{
	struct bound b = {NAN, NAN, NAN};
	uint64_t lo, hi;

	if (n == 0)
		return b;
	stats_ranks(n, q, &lo, &hi);
	/* A rounding error above a whole number does not make the next rank. */
	b.v = sample(sorted, n, (uint64_t)fmax(ceil((double)n * q * (1 - 1e-12)), 1));
	b.lo = sample(sorted, n, lo);
	b.hi = sample(sorted, n, hi);
	return b;
}
