/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link, a job and a scheme as the models want them: in units (chunks) of t seconds.
 * Private to plan/; callers have passed plan_check.
 */
#ifndef SDR_PLAN_UNITS_H
#define SDR_PLAN_UNITS_H

#include "plan/burst.h"
#include "plan/ec.h"
#include "plan/plan.h"
#include "plan/sr.h"

struct units {
	uint64_t n;
	double t_s;
	double rtt;	    /* in units */
	uint64_t rtt_slots; /* rounded: the serialised reading counts in slots */
	struct burst burst;
};

void units_init(struct units *u, const struct plan_link *link, const struct plan_job *job);
struct sr_model units_sr(const struct units *u, const struct plan_params *params);
struct ec_model units_ec(const struct units *u, const struct plan_params *params);
bool units_coded(enum plan_scheme scheme);
/* It has no closed form, and one reading. */
bool units_simulated(enum plan_scheme scheme);
/* lossless_s, limit_s, unit_loss. */
void units_facts(const struct units *u, const struct plan_link *link, struct plan_result *out);
/* Mean, its error and quantiles of samples in units; sorts them. */
void units_summary(const struct units *u, double *samples, uint32_t count, struct plan_result *out);

#endif
