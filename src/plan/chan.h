/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel that loses units in runs, slot by slot, without looking at each slot: it draws
 * how long it stays well and how long not (burst.h). Slots only go forward.
 */
#ifndef SDR_PLAN_CHAN_H
#define SDR_PLAN_CHAN_H

#include "base/rng.h"
#include "plan/burst.h"

#include <stdint.h>

/* Slots [from, to) are the newest run of lost ones; what comes after is not drawn yet. */
struct chan {
	struct burst burst;
	struct rng *rng;
	double log_stay_ok, log_stay_lost;
	uint64_t from, to;
};

/* Starts at `slot` in the long-run state. */
void chan_start(struct chan *c, const struct burst *b, struct rng *rng, uint64_t slot);
/* The first run that ends after `slot`: slots [from, to). */
void chan_seek(struct chan *c, uint64_t slot);

#endif
