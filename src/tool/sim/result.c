// SPDX-License-Identifier: Apache-2.0
/*
 * See result.h.
 */
#include "tool/sim/result.h"

#include "tool/say.h"

#include "plan/choose.h"

#include <math.h>

/*
 * As sdr plan would answer. The engine sends packets again, not chunks, so packets are the
 * model's units.
 */
static int predict(const struct sweep *s, struct result *r)
{
	const struct sim_point *p = &r->point;
	struct plan_link link = {(double)p->bw_bps, (double)p->rtt_ns / 1e9, p->loss,
				 p->burst_pkts};
	struct plan_job job = {p->bytes, (uint32_t)s->packet_bytes, (uint32_t)s->packet_bytes};
	struct plan_options options = {.seed = 1};
	struct plan_choice choice = {0};

	scheme_params(p->scheme, &link, &job, &choice.params);
	if (plan_cost(&link, &job, PLAN_FOR_MEAN, &options, &sdr_alloc_system, &choice)) {
		say("out of memory");
		return -1;
	}
	r->predicted = true;
	r->model = choice.result;
	r->wait_s = choice.params.rto_rtts * link.rtt_s;
	return 0;
}

/*
 * What the mean of so many runs should be uncertain by, ns: where one in hundreds waits for a
 * resend, few runs have seen none, and their own spread says nothing. A share q of runs that
 * wait w has the mean q * w and the variance q * w^2 at most.
 */
static double rare_errors(const struct result *r)
{
	double late_s = fmax(r->model.mean_s - r->model.lossless_s, 0);

	return sqrt(late_s * r->wait_s / (double)r->runs) * 1e9;
}

static bool parts(const struct result *r)
{
	double model = r->model.mean_s * 1e9, off = fabs(r->mean.v - model);
	double own = isnan(r->stderr_ns) ? 0 : r->stderr_ns;
	double errors = hypot(fmax(own, rare_errors(r)), r->model.stderr_s * 1e9);

	return r->predicted && off > RESULT_TOLERANCE * model + RESULT_ERRORS * errors;
}

/* The model knows no cold start, and of auto what it takes if it is told what the link does. */
static bool predictable(const struct sweep *s, const struct sim_scheme *scheme)
{
	return scheme_predictable(scheme) && !s->cold && !(s->learn && scheme_chooses(scheme));
}

int result_make(const struct sweep *s, const struct sim_point *p, struct tally *t,
		struct result *out)
{
	uint64_t ended = t->runs - t->unfinished;

	*out = (struct result){
		.point = *p,
		.engine = sweep_uses_engine(s, p->scheme),
		.runs = t->runs,
		.unfinished = t->unfinished,
		.err = t->err,
		.overhead = NAN,
		.p999 = {NAN, NAN, NAN},
	};
	stats_sort(t->time_ns, t->runs);
	out->mean = stats_mean(t->time_ns, t->runs, &out->stderr_ns);
	out->p50 = stats_quantile(t->time_ns, t->runs, 0.5);
	out->p99 = stats_quantile(t->time_ns, t->runs, 0.99);
	if (t->runs >= STATS_P999_MIN)
		out->p999 = stats_quantile(t->time_ns, t->runs, 0.999);
	if (ended)
		out->overhead = (double)t->sent_bytes / (double)ended / (double)p->bytes - 1;
	if (out->engine && predictable(s, p->scheme) && predict(s, out))
		return -1;
	out->parted = parts(out);
	return 0;
}
