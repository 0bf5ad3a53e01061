/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What many runs say: mean and quantiles with 95 % confidence bounds. Knows nothing of where
 * the samples come from; a sample of STATS_NEVER is a run that did not end, later than all
 * others.
 */
#ifndef SDR_TOOL_SIM_STATS_H
#define SDR_TOOL_SIM_STATS_H

#include <stdint.h>

#define STATS_NEVER UINT64_MAX
#define STATS_P999_MIN 2000u /* runs below which p99.9 is not told */

/* A value and its bounds; NaN: not known. */
struct bound {
	double v, lo, hi;
};

void stats_sort(uint64_t *samples, uint64_t n);
/*
 * Mean, and bounds from Student's t: right for many runs, too narrow for few where single
 * runs are much longer than the others. Not known where a run did not end; bounds from two
 * runs on. *stderr_out: of the mean, or NaN.
 */
struct bound stats_mean(const uint64_t *samples, uint64_t n, double *stderr_out);
/*
 * The smallest sample that at least the part q of all do not exceed. Bounds are order
 * statistics by the binomial distribution (at least 95 %, whatever the distribution is); not
 * known where the runs are too few for them, or did not end. `sorted` ascends.
 */
struct bound stats_quantile(const uint64_t *sorted, uint64_t n, double q);
/*
 * Ranks from 1 whose samples bound the quantile: P(X_lo <= quantile <= X_hi) >= 95 %, 2.5 %
 * at most on each side. 0 and n + 1: there is no such sample.
 */
void stats_ranks(uint64_t n, double q, uint64_t *lo, uint64_t *hi);

#endif
