// SPDX-License-Identifier: Apache-2.0
/*
 * What a scheme's parameters are when nobody says otherwise. See plan_defaults().
 */
#include "plan/hybrid.h"
#include "plan/plan.h"
#include "plan/units.h"

void plan_defaults(const struct plan_link *link, const struct plan_job *job,
		   enum plan_scheme scheme, struct plan_params *out)
{
	struct units units;

	*out = (struct plan_params){
		.scheme = scheme,
		.rto_rtts = scheme == PLAN_SR_NACK || scheme == PLAN_GBN ? 1 : 3,
		.beta_rtts = 1,
		.k = 32,
		.m = 8,
		.depth = 1,
		.span = 1,
		.copies = 1,
		.lambda = HYBRID_LAMBDA,
	};
	if (scheme != PLAN_HYBRID)
		return;
	units_init(&units, link, job);
	out->rto_rtts = 1;
	hybrid_rule(units.n, units.rtt_slots, &units.burst, out);
}
