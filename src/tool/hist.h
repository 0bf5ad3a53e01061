/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of times with buckets less than 1 % wide: percentiles of any number of
 * samples in fixed memory. Minimum, maximum, mean and deviation are exact.
 */
#ifndef SDR_TOOL_HIST_H
#define SDR_TOOL_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7u
#define HIST_BUCKETS ((64u - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t n, min, max;
	double mean, m2; /* Welford */
	uint64_t count[HIST_BUCKETS];
};

void hist_init(struct hist *h);
void hist_add(struct hist *h, uint64_t v);
/* The value below which the share of samples lies; 0 without samples. */
uint64_t hist_quantile(const struct hist *h, double share);
double hist_stdev(const struct hist *h);

#endif
