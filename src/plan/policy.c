// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of thumb for choosing a scheme, from the project's seed documents. They look at
 * sizes and thresholds only; plan_choose() asks the model. See choose.h.
 */
#include "plan/choose.h"

#define HEAVY_LOSS 0.05
#define LOSSY_RTT_S 10e-3
#define LOSSY_LOSS 1e-4
#define SMALL_BYTES (UINT64_C(32) << 20)
#define LARGE_BYTES (UINT64_C(1) << 30)
#define FAR_KM 3000.0
#define FAR_LOSS 1e-5

static void code(struct plan_params *p, uint32_t k, uint32_t m)
{
	p->k = k;
	p->m = m;
}

static void code_by_distance(const struct plan_link *link, struct plan_params *p)
{
	bool far = link->rtt_s * PLAN_KM_PER_S > FAR_KM;

	if (far && link->loss < FAR_LOSS)
		code(p, 32, 8);
	else if (far)
		code(p, 16, 4);
	else if (link->loss > LOSSY_LOSS)
		code(p, 8, 2);
	else
		code(p, 4, 1);
}

enum plan_rule plan_policy_table(const struct plan_link *link, const struct plan_job *job,
				 struct plan_params *out)
{
	bool lossy = link->rtt_s > LOSSY_RTT_S && link->loss > LOSSY_LOSS;

	if (link->loss > HEAVY_LOSS) {
		plan_defaults(link, job, PLAN_SR, out);
		return PLAN_RULE_HEAVY_LOSS;
	}
	if (!lossy && job->bytes < SMALL_BYTES) {
		plan_defaults(link, job, PLAN_SR, out);
		return PLAN_RULE_SMALL;
	}
	plan_defaults(link, job, PLAN_EC, out);
	out->rto_rtts = PLAN_CHOOSE_RTO;
	out->beta_rtts = PLAN_CHOOSE_BETA;
	code_by_distance(link, out);
	if (lossy)
		return PLAN_RULE_LOSSY;
	if (job->bytes < LARGE_BYTES)
		return PLAN_RULE_MIDDLE;
	if (out->k < 16)
		code(out, 16, 4);
	return PLAN_RULE_LARGE;
}
