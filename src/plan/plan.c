// SPDX-License-Identifier: Apache-2.0
/*
 * The front door: checks, defaults, and which model answers. See plan.h.
 */
#include "plan/plan.h"

#include "base/bits.h"
#include "plan/hybrid.h"
#include "plan/num.h"
#include "plan/sim.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>

static const char *const names[PLAN_SCHEMES] = {
	[PLAN_SR] = "sr",	  [PLAN_SR_NACK] = "sr-nack", [PLAN_EC] = "ec",
	[PLAN_EC_XOR] = "ec-xor", [PLAN_HYBRID] = "hybrid",   [PLAN_GBN] = "gbn",
};

const char *plan_scheme_name(enum plan_scheme scheme)
{
	return scheme < PLAN_SCHEMES ? names[scheme] : "?";
}

double plan_chunk_loss(double loss, double burst_pkts, uint32_t packets)
{
	struct burst b;

	burst_of_chunks(&b, loss, burst_pkts, packets);
	return b.loss;
}

void units_init(struct units *u, const struct plan_link *link, const struct plan_job *job)
{
	u->n = (job->bytes + job->chunk_bytes - 1) / job->chunk_bytes;
	u->t_s = 8.0 * job->chunk_bytes / link->bw_bps;
	u->rtt = link->rtt_s / u->t_s;
	u->rtt_slots = (uint64_t)llround(u->rtt);
	burst_of_chunks(&u->burst, link->loss, link->burst_pkts,
			job->chunk_bytes / job->packet_bytes);
}

struct sr_model units_sr(const struct units *u, const struct plan_params *params)
{
	return (struct sr_model){
		.n = u->n, .loss = u->burst.loss, .cost = params->rto_rtts * u->rtt + 1};
}

struct ec_model units_ec(const struct units *u, const struct plan_params *params)
{
	return (struct ec_model){
		.n = u->n,
		.code = {params->k, params->m, params->scheme == PLAN_EC_XOR},
		.loss = u->burst.loss,
		.rtt = u->rtt,
		.cost = params->rto_rtts * u->rtt + 1,
		.beta = params->beta_rtts,
	};
}

bool units_simulated(enum plan_scheme scheme)
{
	return scheme == PLAN_HYBRID || scheme == PLAN_GBN;
}

bool units_coded(enum plan_scheme scheme)
{
	return scheme == PLAN_EC || scheme == PLAN_EC_XOR;
}

void units_facts(const struct units *u, const struct plan_link *link, struct plan_result *out)
{
	*out = (struct plan_result){0};
	out->lossless_s = (double)u->n * u->t_s + link->rtt_s;
	out->limit_s = (double)u->n * u->t_s / (1 - link->loss) + link->rtt_s;
	out->unit_loss = u->burst.loss;
}

void units_summary(const struct units *u, double *samples, uint32_t count, struct plan_result *out)
{
	double sum = 0, squares = 0, mean;

	for (uint32_t i = 0; i < count; i++)
		sum += samples[i];
	mean = sum / count;
	for (uint32_t i = 0; i < count; i++)
		squares += (samples[i] - mean) * (samples[i] - mean);
	num_sort(samples, count);
	out->mean_s = mean * u->t_s;
	out->stderr_s = count > 1 ? sqrt(squares / (count - 1.0) / count) * u->t_s : 0;
	out->p50_s = num_quantile(samples, count, 0.5) * u->t_s;
	out->p99_s = num_quantile(samples, count, 0.99) * u->t_s;
	out->p999_s = num_quantile(samples, count, 0.999) * u->t_s;
	out->samples = count;
}

static int sr_closed(const struct units *u, const struct plan_params *params,
		     const struct sdr_alloc *alloc, struct plan_result *out)
{
	struct sr_model sr = units_sr(u, params);
	double mean;
	int err = sr_mean(&sr, alloc, &mean);

	if (err)
		return err;
	out->mean_s = (mean + u->rtt) * u->t_s;
	out->p50_s = (sr_quantile(&sr, 0.5) + u->rtt) * u->t_s;
	out->p99_s = (sr_quantile(&sr, 0.99) + u->rtt) * u->t_s;
	out->p999_s = (sr_quantile(&sr, 0.999) + u->rtt) * u->t_s;
	out->overhead = sr.loss / (1 - sr.loss);
	return 0;
}

static int ec_closed(const struct units *u, const struct plan_params *params,
		     const struct sdr_alloc *alloc, struct plan_result *out)
{
	struct ec_model ec = units_ec(u, params);
	struct ec_dist dist;
	double mean;
	int err = ec_dist_init(&dist, &ec, alloc);

	if (err)
		return err;
	err = ec_mean(&dist, alloc, &mean);
	if (!err) {
		out->mean_s = mean * u->t_s;
		out->p50_s = ec_quantile(&dist, 0.5) * u->t_s;
		out->p99_s = ec_quantile(&dist, 0.99) * u->t_s;
		out->p999_s = ec_quantile(&dist, 0.999) * u->t_s;
		out->p_fallback = dist.any;
		out->overhead =
			((double)ec_parity(&ec.code, u->n) + ec_resent(&dist)) / (double)u->n;
	}
	ec_dist_fini(&dist, alloc);
	return err;
}

int plan_estimate(const struct plan_link *link, const struct plan_job *job,
		  const struct plan_params *params, const struct plan_options *options,
		  const struct sdr_alloc *alloc, struct plan_result *out)
{
	struct plan_fault fault;
	struct units units;

	if (plan_check(link, job, params, &fault) < 0 || options->samples > PLAN_SAMPLES_MAX)
		return -EINVAL;
	units_init(&units, link, job);
	units_facts(&units, link, out);
	if (options->reading == PLAN_SERIALISED || !units.burst.independent ||
	    units_simulated(params->scheme))
		return sim_estimate(&units, params, options, alloc, out);
	if (units_coded(params->scheme))
		return ec_closed(&units, params, alloc, out);
	return sr_closed(&units, params, alloc, out);
}
