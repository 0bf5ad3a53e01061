/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scheme for this link and this message. Every scheme with the best of its parameters,
 * in the serialised reading, ranked for the mean or for a tail; and, to compare, the rules
 * of thumb that people use.
 */
#ifndef SDR_PLAN_CHOOSE_H
#define SDR_PLAN_CHOOSE_H

#include "plan/plan.h"

enum plan_goal { PLAN_FOR_MEAN, PLAN_FOR_P99, PLAN_FOR_P999 };

struct plan_choice {
	struct plan_params params;
	struct plan_result result;
	double goal_s;	       /* what the goal looks at */
	uint64_t memory_bytes; /* at each end beside the message: bitmap and parity at work */
};

/* What a sentence of reasons needs. */
struct plan_facts {
	double inject_s;    /* time to send it all once */
	double bdp_bytes;   /* bandwidth x round trip */
	double losses;	    /* units lost of the message, at the first send, in the mean */
	double tail_loss;   /* P(a unit of the last round trip's is lost): it costs a round trip */
	double burst_units; /* mean run of lost units; 1 if independent */
};

#define PLAN_CHOICES PLAN_SCHEMES
/* Of codes: failed blocks are named at once and go again by NACK (the paper: 3 and 1). */
#define PLAN_CHOOSE_RTO 1
#define PLAN_CHOOSE_BETA 0

/*
 * Fills out[PLAN_CHOICES], best first: the goal's time, a byte sent beyond the message
 * counted as 2 % of its share, so that of equals the thriftier wins. options->reading is
 * not used. With samples 0 each simulation draws about a million losses, in at least 200
 * samples, or 50 where one has tens of thousands, or 2000 for PLAN_FOR_P999; result.samples
 * says how many (p99.9 of 200 is the largest). Independent losses: SR and EC in closed form,
 * with the first sends stretched by the resends that share the link (0.5 % of simulation).
 * 0, -EINVAL, -ENOMEM.
 */
int plan_choose(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
		const struct plan_options *options, const struct sdr_alloc *alloc,
		struct plan_choice *out);
/* One scheme as plan_choose() would see it: fills the rest of *c from c->params. */
int plan_cost(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
	      const struct plan_options *options, const struct sdr_alloc *alloc,
	      struct plan_choice *c);
void plan_facts(const struct plan_link *link, const struct plan_job *job, struct plan_facts *out);

/* Rules of thumb, in the order in which they are asked. */
enum plan_rule {
	PLAN_RULE_HEAVY_LOSS, /* above 5 %: SR, in smaller batches */
	PLAN_RULE_LOSSY,      /* above 10 ms and 1e-4: a code is needed */
	PLAN_RULE_SMALL,      /* below 32 MiB: SR */
	PLAN_RULE_LARGE,      /* from 1 GiB: (16,4) to (32,8) */
	PLAN_RULE_MIDDLE,     /* else a code by distance and loss */
};
#define PLAN_KM_PER_S 150e3 /* of round trip time, as the paper counts: 3750 km are 25 ms */

enum plan_rule plan_policy_table(const struct plan_link *link, const struct plan_job *job,
				 struct plan_params *out);

#endif
