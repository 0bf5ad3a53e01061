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
#define COPIES_MAX 64u

/* A burst's mean length; 1 for independent losses. */
static double mean_burst(const struct burst *b)
{
	return b->independent ? 1 : 1 / b->to_ok;
}

/*
 * P(any of `blocks` blocks fails), or how many do; fail[m] is one block's. The blocks of a
 * group see the same bursts: at least the group fails with one parity less, at most as many
 * blocks as there are bursts' reaches.
 */
static double any_fails(const struct burst *b, const double *fail, uint32_t m, double blocks,
			uint32_t depth)
{
	double groups, bursts;

	if (b->independent)
		return blocks * fail[m];
	groups = ceil(blocks / depth) * (m > 0 ? fail[m - 1] : 1);
	bursts = fmin(blocks, 16 * blocks / mean_burst(b)) * fail[m];
	return fmax(groups, bursts);
}

static uint32_t choose_parity(uint64_t n, uint64_t rtt, const struct burst *b, uint32_t k,
			      double blocks, uint32_t depth)
{
	double fail[HYBRID_M_MAX + 1], any[HYBRID_M_MAX + 1], best_mean = INFINITY, best = INFINITY;
	uint32_t chosen = 0;

	burst_block_fail(b, k, HYBRID_M_MAX, b->independent ? 1 : depth, fail);
	for (uint32_t m = 0; m <= HYBRID_M_MAX; m++) {
		any[m] = any_fails(b, fail, m, blocks, depth) * (double)rtt;
		best_mean = fmin(best_mean, m * blocks + any[m]);
	}
	for (uint32_t m = 0; m <= HYBRID_M_MAX; m++) {
		double cost = m * blocks + HYBRID_LAMBDA * any[m];

		if (m * blocks + any[m] > best_mean + MEAN_SLACK * (double)(n + rtt))
			continue;
		if (cost < best) {
			best = cost;
			chosen = m;
		}
	}
	return chosen;
}

static uint32_t choose_copies(double loss, double stake)
{
	uint32_t copies = 1;

	while (copies < COPIES_MAX && pow(loss, copies) * stake > 1)
		copies++;
	return copies;
}

void hybrid_rule(uint64_t n, uint64_t rtt_slots, const struct burst *b, struct plan_params *out)
{
	uint64_t rtt = u64_max(rtt_slots, 1), span = u64_min(n, rtt);
	uint32_t k = (uint32_t)u64_min(HYBRID_K, span), depth;
	double blocks = (double)u64_div_up(span, k);

	SDR_ASSERT(n > 0);
	depth = (uint32_t)fmin(ceil(4 * mean_burst(b)), fmin(blocks, 1 << 20));
	out->scheme = PLAN_HYBRID;
	out->k = k;
	out->m = choose_parity(n, rtt, b, k, blocks, depth);
	out->depth = depth;
	out->span = span;
	out->copies = choose_copies(b->loss, HYBRID_LAMBDA * (double)rtt);
	out->lambda = HYBRID_LAMBDA;
}

uint32_t hybrid_margin(const struct burst *b, uint32_t deficit, double gap, double lambda,
		       uint64_t rtt_slots)
{
	double fail[MARGIN_MAX + 1], worth = 1 / (lambda * (double)rtt_slots);
	uint32_t margin = 0;

	burst_block_fail(b, deficit, MARGIN_MAX, gap, fail);
	while (margin < MARGIN_MAX && fail[margin] - fail[margin + 1] > worth)
		margin++;
	return margin;
}

/* About four bursts, within a thirtieth of a round trip for all of them. */
uint64_t hybrid_gap(const struct burst *b, uint32_t units, uint64_t rtt_slots)
{
	uint64_t wanted = b->independent ? 1 : (uint64_t)ceil(4 * mean_burst(b));
	uint64_t most = rtt_slots / 32 / (units ? units : 1);

	return u64_max(1, u64_min(wanted, most));
}
