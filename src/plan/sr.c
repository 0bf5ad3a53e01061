// SPDX-License-Identifier: Apache-2.0
/*
 * See sr.h. Level j is "at most j resends": at time y the first n_j = clamp(floor(y - j *
 * cost), 0, n) units may have needed j resends, so log P(max <= y) = sum over j of
 * (n_j - n_(j+1)) * log(1 - P^(j+1)): no loop over units.
 */
#include "plan/sr.h"

#include "base/check.h"
#include "plan/num.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Levels that one of 2^32 units needs with probability above 1e-20. */
static uint32_t levels(const struct sr_model *m)
{
	double need;

	if (m->loss <= 0)
		return 0;
	need = (log((double)m->n) + 46) / -log(m->loss);
	return (uint32_t)ceil(need);
}

static double units_within(const struct sr_model *m, double y)
{
	double units = floor(y);

	if (units <= 0)
		return 0;
	return units < (double)m->n ? units : (double)m->n;
}

static double log_cdf(const struct sr_model *m, double y)
{
	double sum = 0, power = m->loss, here = units_within(m, y), next;
	uint32_t top = levels(m);

	if (here < (double)m->n)
		return -INFINITY;
	for (uint32_t j = 0; j <= top && here > 0; j++) {
		next = units_within(m, y - (j + 1) * m->cost);
		sum += (here - next) * log1p(-power);
		power *= m->loss;
		here = next;
	}
	return sum;
}

double sr_cdf(const struct sr_model *m, double y)
{
	return exp(log_cdf(m, y));
}

double sr_quantile(const struct sr_model *m, double q)
{
	double low = (double)m->n, high;

	if (sr_cdf(m, low) >= q)
		return low;
	high = low + levels(m) * m->cost + 1;
	for (int i = 0; i < 200 && high - low > high * 4e-16; i++) {
		double middle = low + (high - low) / 2;

		if (sr_cdf(m, middle) >= q)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * Walks down from the last unit: given the last one that was lost j - 1 times, it is lost a
 * j-th time with P; if not, the next below that was lost j times is geometric with P^j away.
 */
double sr_draw(const struct sr_model *m, struct rng *rng)
{
	double latest = (double)m->n, power = 1, at;
	uint64_t position = m->n, skip;

	if (m->loss <= 0)
		return latest;
	for (uint32_t j = 1; position > 0; j++) {
		power *= m->loss;
		if (j == 1 || rng_unit(rng) >= m->loss) {
			skip = num_geometric(rng, log1p(-power)) - (j == 1 ? 1 : 0);
			if (skip >= position)
				break;
			position -= skip;
		}
		at = (double)position + j * m->cost;
		if (at > latest)
			latest = at;
	}
	return latest;
}

/*
 * The mean: n + integral of 1 - P(max <= y) from n on. P(max <= y) is a step function.
 * Between two moments at which a level begins (y = j * cost) or is full (y = j * cost + n)
 * the same levels take one unit each in every unit of time, at fixed phases, and so
 * P(max <= y + 1) = ratio * P(max <= y): whole stretches are geometric sums.
 */
struct step {
	double phase;	  /* in (0, 1] after the stretch's begin */
	double log_ratio; /* what the step multiplies */
};

static int by_phase(const void *a, const void *b)
{
	double x = ((const struct step *)a)->phase, y = ((const struct step *)b)->phase;

	return (x > y) - (x < y);
}

/* log of P(within j resends) / P(within j - 1) of one unit. */
static double level_log_ratio(double loss, double power_j)
{
	return log1p(-power_j * loss) - log1p(-power_j);
}

/* Integral over [0, upto], upto <= 1, of the step function that is 1 at 0. */
static double part_integral(const struct step *step, uint32_t count, double upto)
{
	double at = 0, value = 1, sum = 0;

	for (uint32_t i = 0; i < count && step[i].phase < upto; i++) {
		sum += (step[i].phase - at) * value;
		at = step[i].phase;
		value *= exp(step[i].log_ratio);
	}
	return sum + (upto - at) * value;
}

/*
 * log P(max <= y) just after a stretch's begin. A step there may be rounded to either side of
 * it, so ask in the middle of the widest gap between steps, and undo those in between.
 */
static double stretch_first(const struct sr_model *m, double begin, double length,
			    const struct step *step, uint32_t count)
{
	double upto = length < 1 ? length : 1, at = 0, widest = -1, ask = 0, undo = 0, sum = 0;

	for (uint32_t i = 0; i <= count; i++) {
		double next = i < count && step[i].phase < upto ? step[i].phase : upto;

		if (next - at > widest) {
			widest = next - at;
			ask = at + widest / 2;
			undo = sum;
		}
		if (next >= upto)
			break;
		at = next;
		sum += step[i].log_ratio;
	}
	return log_cdf(m, begin + ask) - undo;
}

static double stretch_integral(const struct sr_model *m, struct step *step, uint32_t count,
			       double begin, double length)
{
	double whole = floor(length), log_ratio = 0, periods, first, last;

	qsort(step, count, sizeof(*step), by_phase);
	first = stretch_first(m, begin, length, step, count);
	for (uint32_t i = 0; i < count; i++)
		log_ratio += step[i].log_ratio;
	/* From its end backwards: a begin of e^-2000 may grow to 1. */
	last = exp(first + whole * log_ratio);
	periods = log_ratio > 0 ? -expm1(-whole * log_ratio) / expm1(log_ratio) : whole;
	return last * (periods * part_integral(step, count, 1) +
		       part_integral(step, count, length - whole));
}

static uint32_t stretch_steps(const struct sr_model *m, double begin, double end, uint32_t top,
			      struct step *step)
{
	double n = (double)m->n, middle = begin + (end - begin) / 2, power = 1;
	uint32_t count = 0;

	for (uint32_t j = 1; j <= top && j * m->cost < middle; j++) {
		double since = begin - j * m->cost;

		power *= m->loss;
		if (j * m->cost + n <= middle)
			continue;
		step[count].phase = 1 - (since - floor(since));
		step[count++].log_ratio = level_log_ratio(m->loss, power);
	}
	return count;
}

int sr_mean(const struct sr_model *m, const struct sdr_alloc *alloc, double *out)
{
	uint32_t top = levels(m), starts = 1, ends = 1, count;
	double n = (double)m->n, y = n, next, sum = 0;
	struct step *step;

	SDR_ASSERT(m->n > 0 && m->cost > 0 && m->loss < 1);
	*out = n;
	if (top == 0)
		return 0;
	step = alloc_zeroed(alloc, ((size_t)top + 1) * sizeof(*step));
	if (!step)
		return -ENOMEM;
	while (starts <= top && starts * m->cost <= n)
		starts++;
	while (ends <= top) {
		next = ends * m->cost + n;
		if (starts <= top && starts * m->cost < next)
			next = starts++ * m->cost;
		else
			ends++;
		if (next <= y)
			continue;
		count = stretch_steps(m, y, next, top, step);
		sum += next - y - stretch_integral(m, step, count, y, next - y);
		y = next;
	}
	alloc_free(alloc, step);
	*out = n + sum;
	return 0;
}
