// SPDX-License-Identifier: Apache-2.0
/*
 * See hybrid.h. The rule was found by search over a grid of links and is held against the
 * parameters that the search printed (hybrid_test.c).
 */
#include "plan/hybrid.h"

#include "base/bits.h"
#include "base/check.h"

#include <math.h>

#define MEAN_SLACK 0.04 /* of the lossless time that the tail may cost the mean */
#define MARGIN_MAX 128u
#define MARGIN_FIRST 16u
#define COPIES_MAX 64u

/* A burst's mean length; 1 for independent losses. */
static double mean_burst(const struct burst *b)
{
	return b->independent ? 1 : 1 / b->to_ok;
}

/*
 * The blocks of a group see the same bursts: at least the group fails with one parity less, at
 * most as many blocks as there are bursts' reaches.
 */
double hybrid_any_fails(const struct hybrid_span *s, const struct burst *b, const double *fail,
			uint32_t m)
{
	double groups, bursts, blocks = s->blocks;

	if (b->independent)
		return blocks * fail[m];
	groups = ceil(blocks / s->depth) * (m > 0 ? fail[m - 1] : 1);
	bursts = fmin(blocks, 16 * blocks / mean_burst(b)) * fail[m];
	return fmax(groups, bursts);
}

double hybrid_mean(const struct hybrid_span *s, const struct burst *b, const double *fail,
		   uint32_t m)
{
	return (double)m * s->early + hybrid_any_fails(s, b, fail, m) * (double)s->rtt;
}

double hybrid_mean_most(const struct hybrid_span *s, const struct burst *b, const double *fail,
			uint32_t m_max)
{
	double best = INFINITY;

	for (uint32_t m = 0; m <= m_max; m++)
		best = fmin(best, hybrid_mean(s, b, fail, m));
	return best + MEAN_SLACK * (double)(s->n + s->rtt);
}

uint32_t hybrid_parity(const struct hybrid_span *s, const struct burst *b, const double *fail,
		       uint32_t m_max)
{
	double most = hybrid_mean_most(s, b, fail, m_max), best = INFINITY;
	uint32_t chosen = 0;

	for (uint32_t m = 0; m <= m_max; m++) {
		double exposed = hybrid_any_fails(s, b, fail, m) * (double)s->rtt;
		double cost = (double)m * s->blocks + HYBRID_LAMBDA * exposed;

		if (hybrid_mean(s, b, fail, m) <= most && cost < best) {
			best = cost;
			chosen = m;
		}
	}
	return chosen;
}

uint32_t hybrid_depth(const struct burst *b, uint32_t blocks)
{
	return (uint32_t)fmin(ceil(4 * mean_burst(b)), fmin(blocks, 1 << 20));
}

uint32_t hybrid_copies(const struct burst *b, uint64_t rtt_slots)
{
	double stake = HYBRID_LAMBDA * (double)u64_max(rtt_slots, 1);
	uint32_t copies = 1;

	while (copies < COPIES_MAX && pow(b->loss, copies) * stake > 1)
		copies++;
	return copies;
}

void hybrid_rule(uint64_t n, uint64_t rtt_slots, const struct burst *b, struct plan_params *out)
{
	struct hybrid_span s = {.n = n, .rtt = u64_max(rtt_slots, 1)};
	uint64_t span = u64_min(n, s.rtt);
	uint32_t k = (uint32_t)u64_min(HYBRID_K, span);
	double fail[HYBRID_M_MAX + 1];

	SDR_ASSERT(n > 0);
	s.blocks = (uint32_t)u64_div_up(span, k);
	s.depth = hybrid_depth(b, s.blocks);
	s.early = s.blocks;
	burst_block_fail(b, k, HYBRID_M_MAX, b->independent ? 1 : s.depth, fail);
	out->scheme = PLAN_HYBRID;
	out->k = k;
	out->m = hybrid_parity(&s, b, fail, HYBRID_M_MAX);
	out->depth = s.depth;
	out->span = span;
	out->copies = hybrid_copies(b, s.rtt);
	out->lambda = HYBRID_LAMBDA;
}

uint32_t hybrid_margin(const struct burst *b, uint32_t deficit, double gap, double lambda,
		       uint64_t rtt_slots)
{
	double fail[MARGIN_MAX + 1], worth = 1 / (lambda * (double)rtt_slots);
	uint32_t margin = 0;

	/* It is small, but for bursts: a first look saves most of the work. */
	for (uint32_t most = MARGIN_FIRST;; most = MARGIN_MAX) {
		burst_block_fail(b, deficit, most, gap, fail);
		while (margin < most && fail[margin] - fail[margin + 1] > worth)
			margin++;
		if (margin < most || most == MARGIN_MAX)
			return margin;
	}
}

/* About four bursts, within a thirtieth of a round trip for all of them. */
uint64_t hybrid_gap(const struct burst *b, uint32_t units, uint64_t rtt_slots)
{
	uint64_t wanted = b->independent ? 1 : (uint64_t)ceil(4 * mean_burst(b));
	uint64_t most = rtt_slots / 32 / (units ? units : 1);

	return u64_max(1, u64_min(wanted, most));
}
