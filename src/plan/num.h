/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probabilities that stay exact when they are tiny or when there are 2^29 trials.
 * Nothing here knows of links.
 */
#ifndef SDR_PLAN_NUM_H
#define SDR_PLAN_NUM_H

#include "base/rng.h"

#include <stdint.h>

/* P(more than m of n fail), each with p; sums positive terms, relative error 1e-12. */
double num_binomial_above(uint64_t n, uint64_t m, double p);
/* log of P(exactly i of n fail). */
double num_binomial_log_pmf(uint64_t n, uint64_t i, double p);
/* 1 - (1 - p)^n */
double num_any(double n, double p);
/* Trials up to and with the first success, each with probability -expm1(log_fail). */
uint64_t num_geometric(struct rng *rng, double log_fail);
/* Mean 0, variance 1. */
double num_normal(struct rng *rng);
/* Sorts; then the smallest value that a part q of them does not exceed. */
void num_sort(double *values, uint32_t count);
double num_quantile(const double *sorted, uint32_t count, double q);

#endif
