// SPDX-License-Identifier: Apache-2.0
/*
 * Ring Allreduce over datacentres. See plan_allreduce().
 */
#include "plan/num.h"
#include "plan/plan.h"
#include "plan/sim.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>

/* Draws the time of one round of one node, in units. */
struct ring_source {
	const struct units *u;
	bool closed, coded;
	enum plan_reading reading;
	struct sr_model sr;
	struct ec_model ec;
	struct ec_dist dist;
	struct sim sim;
	struct rng rng;
};

static int source_init(struct ring_source *r, const struct units *u,
		       const struct plan_params *params, const struct plan_options *options,
		       const struct sdr_alloc *alloc)
{
	*r = (struct ring_source){.u = u, .reading = options->reading};
	rng_init(&r->rng, options->seed);
	r->coded = units_coded(params->scheme);
	r->closed = options->reading == PLAN_PAPER && u->burst.independent &&
		    !units_simulated(params->scheme);
	r->sr = units_sr(u, params);
	if (!r->closed)
		return sim_init(&r->sim, u, params, &r->rng, alloc);
	if (!r->coded)
		return 0;
	r->ec = units_ec(u, params);
	return ec_dist_init(&r->dist, &r->ec, alloc);
}

static void source_fini(struct ring_source *r, const struct sdr_alloc *alloc)
{
	if (!r->closed)
		sim_fini(&r->sim);
	else if (r->coded)
		ec_dist_fini(&r->dist, alloc);
}

static int source_draw(struct ring_source *r, double *out)
{
	if (!r->closed)
		return sim_draw(&r->sim, r->reading, out);
	*out = r->coded ? ec_draw(&r->dist, &r->rng) : sr_draw(&r->sr, &r->rng) + r->u->rtt;
	return 0;
}

/* T(i, r) = max(T(i - 1, r - 1), T(i, r - 1)) + t; at[] is round r - 1, then r. */
static int draw_ring(struct ring_source *r, uint32_t nodes, double *at, double *out)
{
	for (uint32_t i = 0; i < nodes; i++)
		at[i] = 0;
	for (uint32_t round = 0; round < 2 * nodes - 2; round++) {
		double left = at[nodes - 1], mine, cost;

		for (uint32_t i = 0; i < nodes; i++) {
			int err = source_draw(r, &cost);

			if (err)
				return err;
			mine = at[i];
			at[i] = fmax(left, mine) + cost;
			left = mine;
		}
	}
	*out = 0;
	for (uint32_t i = 0; i < nodes; i++)
		*out = fmax(*out, at[i]);
	return 0;
}

static int draw_rings(struct ring_source *r, uint32_t nodes, double *at, double *samples,
		      uint32_t count)
{
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = draw_ring(r, nodes, at, &samples[i]);
	return err;
}

int plan_allreduce(const struct plan_link *link, const struct plan_job *job,
		   const struct plan_params *params, uint32_t nodes,
		   const struct plan_options *options, const struct sdr_alloc *alloc,
		   struct plan_result *out)
{
	uint32_t count = options->samples ? options->samples : SIM_SAMPLES;
	struct plan_job part = *job;
	struct plan_fault fault;
	struct ring_source source;
	struct units units;
	double *samples, *at;
	int err = -ENOMEM;

	if (nodes < 2 || nodes > PLAN_NODES_MAX || count > PLAN_SAMPLES_MAX)
		return -EINVAL;
	part.bytes = (job->bytes + nodes - 1) / nodes;
	if (plan_check(link, &part, params, &fault) < 0)
		return -EINVAL;
	units_init(&units, link, &part);
	units_facts(&units, link, out);
	out->lossless_s *= 2.0 * nodes - 2;
	out->limit_s *= 2.0 * nodes - 2;
	samples = alloc_zeroed(alloc, count * sizeof(*samples));
	at = alloc_zeroed(alloc, nodes * sizeof(*at));
	if (samples && at) {
		err = source_init(&source, &units, params, options, alloc);
		if (!err)
			err = draw_rings(&source, nodes, at, samples, count);
		if (!err)
			units_summary(&units, samples, count, out);
		source_fini(&source, alloc);
	}
	alloc_free(alloc, samples);
	alloc_free(alloc, at);
	return err;
}
