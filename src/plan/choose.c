// SPDX-License-Identifier: Apache-2.0
/*
 * See choose.h.
 */
#include "plan/choose.h"

#include "base/bits.h"
#include "plan/num.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>

#define LOSSES_BUDGET 1e6
#define SAMPLES_MIN 200.0
#define HEAVY_LOSSES 5e4 /* of one sample; then ... */
#define SAMPLES_LEAST 50.0
#define SAMPLES_TAIL 2000.0 /* or a quantile of 99.9 % is the largest of them */
#define SAMPLES_MOST 10000.0
#define WASTE_PRICE 0.02

static const struct ec_code codes[] = {
	{4, 1, false},	{8, 2, false},	 {16, 4, false},   {32, 4, false},
	{32, 8, false}, {32, 16, false}, {128, 12, false}, {128, 32, false},
};
static const struct ec_code xor_codes[] = {
	{4, 1, true}, {8, 2, true}, {16, 4, true}, {32, 8, true}};

static double goal_of(const struct plan_result *r, enum plan_goal goal)
{
	return goal == PLAN_FOR_MEAN ? r->mean_s : goal == PLAN_FOR_P99 ? r->p99_s : r->p999_s;
}

static double score(const struct plan_choice *c)
{
	return c->goal_s * (1 + WASTE_PRICE * c->result.overhead);
}

/*
 * So many that all samples draw about the budget of losses. A code looks at each lost unit,
 * selective repeat at runs of them.
 */
static uint32_t samples_for(const struct units *u, const struct plan_params *p, enum plan_goal goal)
{
	double units = (double)u->n, waits = fmax(p->rto_rtts, 1) * (double)u->rtt_slots + 1,
	       losses, least = SAMPLES_MIN;
	bool coded = units_coded(p->scheme);

	if (!coded && p->scheme != PLAN_GBN)
		units = fmin(units, 5 * waits);
	losses = units * u->burst.loss;
	if (!coded && !u->burst.independent)
		losses *= u->burst.to_ok;
	if (goal == PLAN_FOR_P999)
		least = SAMPLES_TAIL;
	else if (losses > HEAVY_LOSSES)
		least = SAMPLES_LEAST;
	return (uint32_t)fmin(fmax(LOSSES_BUDGET / (losses + 100), least), SAMPLES_MOST);
}

static void shift(struct plan_result *r, double by_s)
{
	r->mean_s += by_s;
	r->p50_s += by_s;
	r->p99_s += by_s;
	r->p999_s += by_s;
}

/* First sends wait for the resends that fall due among them; see sr_closed's reading. */
static void stretch(const struct units *u, const struct plan_params *p, struct plan_result *r)
{
	double units = (double)u->n - p->rto_rtts * u->rtt;

	if (units > 0)
		shift(r, units * u->burst.loss / (1 - u->burst.loss) * u->t_s);
}

static int estimate(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
		    const struct plan_options *options, const struct sdr_alloc *alloc,
		    struct plan_choice *c)
{
	struct plan_options with = *options;
	struct units u;
	int err;

	units_init(&u, link, job);
	with.reading = u.burst.independent ? PLAN_PAPER : PLAN_SERIALISED;
	if (units_simulated(c->params.scheme))
		with.reading = PLAN_SERIALISED;
	if (with.samples == 0)
		with.samples = samples_for(&u, &c->params, goal);
	err = plan_estimate(link, job, &c->params, &with, alloc, &c->result);
	if (err)
		return err;
	if (c->result.samples == 0 && !units_coded(c->params.scheme))
		stretch(&u, &c->params, &c->result);
	/* The serialised reading rounds the last round trip to slots. */
	if (with.reading == PLAN_SERIALISED)
		shift(&c->result, (u.rtt - (double)u.rtt_slots) * u.t_s);
	c->memory_bytes = u64_div_up(u.n * (job->chunk_bytes / job->packet_bytes), 8);
	if (units_coded(c->params.scheme) || c->params.scheme == PLAN_HYBRID)
		c->memory_bytes += 2 * (uint64_t)c->params.depth * c->params.m * job->chunk_bytes;
	return 0;
}

int plan_cost(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
	      const struct plan_options *options, const struct sdr_alloc *alloc,
	      struct plan_choice *c)
{
	struct plan_fault fault;
	int err;

	if (plan_check(link, job, &c->params, &fault) < 0)
		return -EINVAL;
	err = estimate(link, job, goal, options, alloc, c);
	c->goal_s = goal_of(&c->result, goal);
	return err;
}

static uint32_t depth_for(const struct units *u, uint32_t k)
{
	double blocks = (double)u64_div_up(u->n, k);

	return u->burst.independent ? 1 : (uint32_t)fmin(ceil(4 / u->burst.to_ok), blocks);
}

/* The best of a scheme's codes. Bursts are simulated, so only every other code is tried. */
static int best_code(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
		     const struct plan_options *options, const struct sdr_alloc *alloc,
		     struct plan_choice *best)
{
	bool xor_groups = best->params.scheme == PLAN_EC_XOR;
	const struct ec_code *code = xor_groups ? xor_codes : codes;
	size_t count = xor_groups ? sizeof(xor_codes) / sizeof(xor_codes[0])
				  : sizeof(codes) / sizeof(codes[0]);
	struct plan_choice here = *best;
	struct units u;

	units_init(&u, link, job);
	here.params.rto_rtts = PLAN_CHOOSE_RTO;
	here.params.beta_rtts = PLAN_CHOOSE_BETA;
	best->goal_s = INFINITY;
	for (size_t i = 0; i < count; i += u.burst.independent ? 1 : 2) {
		int err;

		here.params.k = code[i].k;
		here.params.m = code[i].m;
		here.params.depth = depth_for(&u, code[i].k);
		err = estimate(link, job, PLAN_FOR_MEAN, options, alloc, &here);
		if (err)
			return err;
		here.goal_s = goal_of(&here.result, goal);
		if (score(&here) < score(best))
			*best = here;
	}
	/* Few samples tell the codes apart; the tail of the best takes more. */
	return estimate(link, job, goal, options, alloc, best);
}

static void insert(struct plan_choice *out, uint32_t count, const struct plan_choice *c)
{
	for (; count > 0 && score(c) < score(&out[count - 1]); count--)
		out[count] = out[count - 1];
	out[count] = *c;
}

int plan_choose(const struct plan_link *link, const struct plan_job *job, enum plan_goal goal,
		const struct plan_options *options, const struct sdr_alloc *alloc,
		struct plan_choice *out)
{
	struct plan_fault fault;

	if (plan_check(link, job, NULL, &fault) < 0)
		return -EINVAL;
	for (uint32_t s = 0; s < PLAN_SCHEMES; s++) {
		struct plan_choice c = {0};
		int err;

		plan_defaults(link, job, (enum plan_scheme)s, &c.params);
		if (units_coded(c.params.scheme))
			err = best_code(link, job, goal, options, alloc, &c);
		else
			err = estimate(link, job, goal, options, alloc, &c);
		if (err)
			return err;
		c.goal_s = goal_of(&c.result, goal);
		insert(out, s, &c);
	}
	return 0;
}

void plan_facts(const struct plan_link *link, const struct plan_job *job, struct plan_facts *out)
{
	struct units u;
	double tail;

	units_init(&u, link, job);
	tail = fmin((double)u.n, u.rtt);
	out->inject_s = (double)u.n * u.t_s;
	out->bdp_bytes = link->bw_bps * link->rtt_s / 8;
	out->losses = (double)u.n * u.burst.loss;
	out->burst_units = u.burst.independent ? 1 : 1 / u.burst.to_ok;
	/* The first is lost, or one follows that was not. */
	out->tail_loss = 1 - (1 - u.burst.loss) * exp((tail - 1) * log1p(-u.burst.to_lost));
}
