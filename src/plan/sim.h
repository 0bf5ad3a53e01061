/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seeded simulation of the model, for what has no closed form: bursts, one link for first
 * sends, resends and parity, the hybrid scheme. Works in runs of units, so that its time
 * grows with runs of losses and not with units. twin_test.c holds it against a simulation
 * of every slot.
 *
 * Serialised, in slots of one unit: what is due goes first (resends before first sends); a
 * unit sent in slot s is known to be lost and goes again from slot s + 1 + wait on, wait =
 * RTO. A message ends one round trip after its last unit arrived or was decoded.
 *
 *	EC	groups of `depth` blocks: unit i to block i mod depth, then the parity units
 *		in turn. A block is decoded at its k-th arrival. If blocks failed: after the
 *		injection, beta and one round trip (NACK), all their units go by SR.
 *	gbn	units in order; one that the receiver lacks and that is known to be lost makes it
 *		and all after it go again, whether they have arrived or not
 *	hybrid	units before the last `span` go by SR with wait = 1 RTT; the span, and
 *		resends that fall into it, are coded. A failed block is named at its last
 *		slot and gets what it lacks and a margin. Later resends go out `copies` times.
 *
 * Of an SR longer than SIM_WAITS waits only the last of them are simulated, of an uncoded
 * part before a coded one SIM_UNCODED_WAITS; the rest takes its mean time and a normal deviate: in
 *the long run each lost slot brings one resend a wait later, so the end of a message does not see
 *more of its past. Likewise of a code only the last SIM_EC_UNITS are simulated; of the blocks
 *before, failures are drawn as if each failed by itself. That is so for independent losses; under
 *bursts of a block's length failures come together, and the draw is too pessimistic about none at
 *all. Of a gbn message with more than 400,000 losses a part is simulated and the rest in
 *proportion.
 */
#ifndef SDR_PLAN_SIM_H
#define SDR_PLAN_SIM_H

#include "base/alloc.h"
#include "base/rng.h"
#include "plan/chan.h"
#include "plan/units.h"

#include <stdint.h>

#define SIM_WAITS 4u
#define SIM_UNCODED_WAITS 2u
#define SIM_EC_UNITS (UINT64_C(1) << 22)
#define SIM_SAMPLES 10000u

/* Units that go again from slot `ready` on, one per slot. */
struct sim_run {
	uint64_t ready, len;
};

/* A ring that grows; ready never falls from one to the next. */
struct sim_queue {
	struct sim_run *run;
	uint64_t mask, head, count;
};

struct sim {
	const struct units *u;
	const struct plan_params *p;
	const struct sdr_alloc *alloc;
	struct rng *rng;
	struct chan chan;
	uint64_t slot;	     /* the next free one */
	uint64_t end;	     /* first slot after the last arrival or decoding */
	double skipped_time; /* slots before slot 0, and units sent in them */
	double sent;	     /* units */
	struct sim_queue resend, repair, spare;
	/* Of the group under way, by cell: depth * cells. */
	uint32_t depth, cells, limit;
	uint32_t *lost_units, *lost_parity;
	uint8_t *parity_gone; /* of the last group: depth * m */
	double failed_units, failed_blocks;
	uint32_t *margin; /* [deficit], plus 1; 0 = not yet known */
};

/* 0 or -ENOMEM; after either, sim_fini is right. */
int sim_init(struct sim *s, const struct units *u, const struct plan_params *p, struct rng *rng,
	     const struct sdr_alloc *alloc);
void sim_fini(struct sim *s);
/* One message: its time in slots of t. 0 or -ENOMEM. */
int sim_draw(struct sim *s, enum plan_reading reading, double *slots);

int sim_estimate(const struct units *u, const struct plan_params *p,
		 const struct plan_options *options, const struct sdr_alloc *alloc,
		 struct plan_result *out);

/* Between sim.c and sim_code.c. */
int sim_queue_push(struct sim *s, struct sim_queue *q, uint64_t ready, uint64_t len);
/* Onto s->resend; what was lost one after the other is one run. */
int sim_resend(struct sim *s, uint64_t ready, uint64_t len);
struct sim_run *sim_queue_head(struct sim_queue *q);
void sim_queue_pop(struct sim_queue *q);
/* Slot `slot` is over and what it carried has arrived. */
void sim_arrived(struct sim *s, uint64_t end);
/* SR of `count` units from s->slot on, after what is in s->resend. */
int sim_sr(struct sim *s, uint64_t count, uint64_t wait);
/* Uncoded first sends from s->slot on; what is lost of them stays in s->resend. */
int sim_uncoded(struct sim *s, uint64_t count, uint64_t wait);
/* Go-Back-N of `count` units from s->slot on. */
int sim_gbn(struct sim *s, uint64_t count, uint64_t wait);
/* Coded units (`count` and what of s->resend falls due before they end) and parity. */
int sim_coded(struct sim *s, uint64_t count);
/* Hybrid: repairs of failed blocks and late resends until all is there. */
int sim_repair(struct sim *s);
/* All but `keep` of `count` units take no slots of their own (see above); what is left. */
uint64_t sim_skip(struct sim *s, uint64_t count, uint64_t keep);

#endif
