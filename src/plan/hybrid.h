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

/*
 * Units to send beyond the `deficit` that a block lacks: one more as long as it lowers
 * P(the repair fails) by more than 1 / (lambda * rtt_slots). Units go `gap` slots apart.
 */
uint32_t hybrid_margin(const struct burst *b, uint32_t deficit, double gap, double lambda,
		       uint64_t rtt_slots);
/* Slots between copies or repair units, so that one burst does not take them all. */
uint64_t hybrid_gap(const struct burst *b, uint32_t units, uint64_t rtt_slots);

#endif
