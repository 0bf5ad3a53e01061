/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selective repeat in the paper's reading with independent losses: the distribution of
 * max over i = 1 .. n of i * t + O * (Y_i - 1), Y_i geometric (appendix A), in closed form.
 * All times in units of t. A twin that multiplies over every unit is in model_test.c.
 */
#ifndef SDR_PLAN_SR_H
#define SDR_PLAN_SR_H

#include "base/alloc.h"
#include "base/rng.h"

#include <stdint.h>

struct sr_model {
	uint64_t n;
	double loss;
	double cost; /* O / t: what a loss costs, > 0 */
};

/* P(max <= y) */
double sr_cdf(const struct sr_model *m, double y);
/* Smallest y with P(max <= y) >= q. */
double sr_quantile(const struct sr_model *m, double q);
/* A value drawn from the distribution; time grows with the resends of one unit, not with n. */
double sr_draw(const struct sr_model *m, struct rng *rng);
/* 0 or -ENOMEM. */
int sr_mean(const struct sr_model *m, const struct sdr_alloc *alloc, double *out);

#endif
