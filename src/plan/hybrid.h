/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hybrid scheme's parameters. What is sent in the last bandwidth-delay product is coded,
 * because no resend of it could end in time; losses before it are resent behind the
 * injection, which costs nothing but the resends. Feed it an estimate that is high rather
 * than low, of loss and of burst: too much parity costs per cents, too little round trips.
 *
 * Under bursts the study that found the rule prints an m that follows an older form of it than
 * its text does. The text is what stands here: its m is one to five units higher there (never
 * lower; equal for independent losses), and the times are the ones that the study prints.
 */
#ifndef SDR_PLAN_HYBRID_H
#define SDR_PLAN_HYBRID_H

#include "plan/burst.h"
#include "plan/plan.h"

#include <stdint.h>

#define HYBRID_LAMBDA 20.0 /* an exposed round trip is priced at so many times its mean */
#define HYBRID_K 128u	   /* with m below it a code over GF(2^8) suffices */
#define HYBRID_M_MAX 128u

/* n units, a round trip of rtt_slots units; sets k, m, depth, span, copies, lambda. */
void hybrid_rule(uint64_t n, uint64_t rtt_slots, const struct burst *b, struct plan_params *out);

/* The parts of the rule, for those who hold it to a budget. A span as `blocks` blocks. */
struct hybrid_span {
	uint64_t n;   /* units of the message */
	uint64_t rtt; /* slots, 1 or more */
	uint32_t blocks, depth;
	uint32_t early; /* blocks whose parity delays first sends: all, says the study; those of
			 * the last group's delays nobody who lost nothing */
};

/* m in 0 .. m_max; fail[m] is P(a block with m parity fails), as burst_block_fail() has it. */
uint32_t hybrid_parity(const struct hybrid_span *s, const struct burst *b, const double *fail,
		       uint32_t m_max);
/* P(any block fails), or, above 1, how many do. */
double hybrid_any_fails(const struct hybrid_span *s, const struct burst *b, const double *fail,
			uint32_t m);
/* Slots that m costs in the mean beside the injection, and how many of them a tail is worth. */
double hybrid_mean(const struct hybrid_span *s, const struct burst *b, const double *fail,
		   uint32_t m);
double hybrid_mean_most(const struct hybrid_span *s, const struct burst *b, const double *fail,
			uint32_t m_max);
/* Blocks that take turns: four bursts' length. */
uint32_t hybrid_depth(const struct burst *b, uint32_t blocks);
uint32_t hybrid_copies(const struct burst *b, uint64_t rtt_slots);

/*
 * Units to send beyond the `deficit` that a block lacks: one more as long as it lowers
 * P(the repair fails) by more than 1 / (lambda * rtt_slots). Units go `gap` slots apart.
 */
uint32_t hybrid_margin(const struct burst *b, uint32_t deficit, double gap, double lambda,
		       uint64_t rtt_slots);
/* Slots between copies or repair units, so that one burst does not take them all. */
uint64_t hybrid_gap(const struct burst *b, uint32_t units, uint64_t rtt_slots);

#endif
