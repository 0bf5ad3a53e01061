/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses in bursts: a Gilbert chain of two states, lost and not, and the losses among n
 * units of which every step-th is taken (interleaving). Mean burst 1 means independent.
 */
#ifndef SDR_PLAN_BURST_H
#define SDR_PLAN_BURST_H

#include <stdbool.h>
#include <stdint.h>

struct burst {
	double loss;	/* share of lost units */
	double to_lost; /* P(lost | the one before was not) */
	double to_ok;	/* P(not lost | the one before was) */
	bool independent;
};

void burst_init(struct burst *b, double loss, double mean_units);
/*
 * The chain of chunks of `packets` packets each, one lost if any packet of it is. Loss and
 * P(lost | not before) are exact; that a chain of chunks forgets as a chain of packets does
 * is an approximation.
 */
void burst_of_chunks(struct burst *b, double loss, double mean_packets, uint32_t packets);
/* P(lost) `units` later, given that one now is (or is not). */
double burst_after(const struct burst *b, bool lost, double units);
/*
 * fail[m] = P(more than m of k + m lost), m = 0 .. m_max, units `step` apart.
 * k >= 1, k + m_max <= BURST_UNITS_MAX.
 */
#define BURST_UNITS_MAX 512u
void burst_block_fail(const struct burst *b, uint32_t k, uint32_t m_max, double step, double *fail);

#endif
