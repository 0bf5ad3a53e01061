// SPDX-License-Identifier: Apache-2.0
/*
 * See ec.h.
 */
#include "plan/ec.h"

#include "base/check.h"
#include "plan/num.h"
#include "plan/sr.h"

#include <errno.h>
#include <math.h>

#define NODES_MAX 512u
#define WINDOW_SIGMAS 9.0

double ec_block_fail(const struct ec_code *code, double loss)
{
	uint32_t small = code->m ? code->k / code->m : 0, larger = code->m ? code->k % code->m : 0;
	double log_ok;

	if (!code->xor_groups || code->m == 0)
		return num_binomial_above(code->k + code->m, code->m, loss);
	/* m groups of floor or ceil of k/m units and their parity; each repairs one loss. */
	log_ok = larger * log1p(-num_binomial_above(small + 2, 1, loss)) +
		 (code->m - larger) * log1p(-num_binomial_above(small + 1, 1, loss));
	return -expm1(log_ok);
}

uint64_t ec_parity(const struct ec_code *code, uint64_t n)
{
	return (n + code->k - 1) / code->k * code->m;
}

/* Of the last, shorter block; 0 where there is none. */
static double rest_fail(const struct ec_model *m, uint32_t rest)
{
	struct ec_code code = m->code;

	code.k = rest;
	return rest ? ec_block_fail(&code, m->loss) : 0;
}

/* Failed blocks of `full` that are worth a weight: [low, high], low >= 1; empty if low > high. */
static void window(uint64_t full, double fail, uint64_t *low, uint64_t *high)
{
	double mean = (double)full * fail, sigma = sqrt(mean * (1 - fail));
	double reach = WINDOW_SIGMAS * sigma + 40;
	double from = floor(mean - reach), to = ceil(mean + reach);

	*low = from < 1 ? 1 : (uint64_t)from;
	*high = to > (double)full ? full : (uint64_t)to;
}

/* Adds P(f of `full` failed) * scale, f in [low, high], at f * k + more units. */
static void add_weights(struct ec_dist *d, uint64_t full, double fail, double scale, uint32_t more)
{
	uint64_t low, high, stride;
	struct ec_again *node = &d->again[d->count];
	uint32_t nodes;

	window(full, fail, &low, &high);
	if (low > high || fail <= 0)
		return;
	stride = (high - low) / NODES_MAX + 1;
	nodes = (uint32_t)((high - low + stride - 1) / stride) + 1;
	for (uint32_t i = 0; i < nodes; i++)
		node[i].units = (low + i * stride) * d->model->code.k + more;
	/* What lies between two nodes is shared by nearness. */
	for (uint64_t f = low; f <= high; f++) {
		double p = scale * exp(num_binomial_log_pmf(full, f, fail));
		uint64_t at = (f - low) / stride;
		double near = (double)((f - low) % stride) / (double)stride;

		node[at].weight += p * (1 - near);
		if (near > 0)
			node[at + 1].weight += p * near;
	}
	/* The last node may lie beyond the message. */
	if (node[nodes - 1].units > d->model->n)
		node[nodes - 1].units = d->model->n;
	d->count += nodes;
}

int ec_dist_init(struct ec_dist *d, const struct ec_model *model, const struct sdr_alloc *alloc)
{
	uint64_t full = model->n / model->code.k;
	uint32_t rest = (uint32_t)(model->n % model->code.k);
	/* Just below 1, so that its complement has a logarithm. */
	double fail = fmin(ec_block_fail(&model->code, model->loss), 1 - 1e-16);
	double last = fmin(rest_fail(model, rest), 1 - 1e-16);
	double log_none = (double)full * log1p(-fail), none = exp(log_none);

	d->model = model;
	d->none = none * (1 - last);
	d->any = -expm1(log_none + log1p(-last));
	d->count = 0;
	d->again = alloc_zeroed(alloc, (2 * (NODES_MAX + 2) + 1) * sizeof(*d->again));
	if (!d->again)
		return -ENOMEM;
	if (full > 0)
		add_weights(d, full, fail, 1 - last, 0);
	if (rest > 0) {
		d->again[d->count++] = (struct ec_again){none * last, rest};
		if (full > 0)
			add_weights(d, full, fail, last, rest);
	}
	return 0;
}

void ec_dist_fini(struct ec_dist *d, const struct sdr_alloc *alloc)
{
	alloc_free(alloc, d->again);
	d->again = NULL;
}

static double injection(const struct ec_model *m)
{
	return (double)(m->n + ec_parity(&m->code, m->n));
}

/* All but the SR's own maximum: injection, slack, NACK, and the RTT of the last ACK. */
static double before_again(const struct ec_model *m)
{
	return injection(m) + (m->beta + 2) * m->rtt;
}

static struct sr_model sr_of(const struct ec_model *m, uint64_t units)
{
	return (struct sr_model){.n = units, .loss = m->loss, .cost = m->cost};
}

int ec_mean(const struct ec_dist *d, const struct sdr_alloc *alloc, double *out)
{
	const struct ec_model *m = d->model;
	double sum = d->none * (injection(m) + m->rtt), mean;

	for (uint32_t i = 0; i < d->count; i++) {
		struct sr_model sr = sr_of(m, d->again[i].units);
		int err;

		if (d->again[i].weight < 1e-17)
			continue;
		err = sr_mean(&sr, alloc, &mean);
		if (err)
			return err;
		sum += d->again[i].weight * (before_again(m) + mean);
	}
	*out = sum;
	return 0;
}

static double ec_cdf(const struct ec_dist *d, double y)
{
	double sum = d->none;

	for (uint32_t i = 0; i < d->count; i++) {
		struct sr_model sr = sr_of(d->model, d->again[i].units);

		if (d->again[i].weight > 1e-9)
			sum += d->again[i].weight * sr_cdf(&sr, y - before_again(d->model));
	}
	return sum;
}

double ec_quantile(const struct ec_dist *d, double q)
{
	double low = injection(d->model) + d->model->rtt, high;
	struct sr_model all = sr_of(d->model, d->model->n);

	if (d->none >= q)
		return low;
	high = before_again(d->model) + sr_quantile(&all, 1 - 1e-9);
	for (int i = 0; i < 100 && high - low > high * 1e-13; i++) {
		double middle = low + (high - low) / 2;

		if (ec_cdf(d, middle) >= q)
			high = middle;
		else
			low = middle;
	}
	return high;
}

double ec_draw(const struct ec_dist *d, struct rng *rng)
{
	double u = rng_unit(rng) - d->none;
	uint32_t i = 0;
	struct sr_model sr;

	if (u < 0 || d->count == 0)
		return injection(d->model) + d->model->rtt;
	while (i + 1 < d->count && u >= d->again[i].weight)
		u -= d->again[i++].weight;
	sr = sr_of(d->model, d->again[i].units);
	return before_again(d->model) + sr_draw(&sr, rng);
}

double ec_resent(const struct ec_dist *d)
{
	double sum = 0;

	for (uint32_t i = 0; i < d->count; i++)
		sum += d->again[i].weight * (double)d->again[i].units;
	return sum / (1 - d->model->loss);
}
