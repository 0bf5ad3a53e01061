// SPDX-License-Identifier: Apache-2.0
/*
 * See chan.h.
 */
#include "plan/chan.h"

#include "plan/num.h"

#include <math.h>

/* Runs that are cheaper drawn than leapt over. */
#define LEAP_RUNS 64.0

static uint64_t run_length(struct chan *c)
{
	return c->burst.independent ? 1 : num_geometric(c->rng, c->log_stay_lost);
}

/* `slot` follows a lost one or is known not to be lost; independent losses know nothing. */
static void next_run(struct chan *c, uint64_t slot)
{
	c->from = slot + num_geometric(c->rng, c->log_stay_ok) - (c->burst.independent ? 1 : 0);
	c->to = c->from + run_length(c);
}

static void land(struct chan *c, uint64_t slot, double lost)
{
	if (!c->burst.independent && rng_unit(c->rng) < lost) {
		c->from = slot;
		c->to = slot + run_length(c);
	} else {
		next_run(c, slot);
	}
}

void chan_start(struct chan *c, const struct burst *b, struct rng *rng, uint64_t slot)
{
	c->burst = *b;
	c->rng = rng;
	c->log_stay_ok = log1p(-b->to_lost);
	c->log_stay_lost = b->independent ? -INFINITY : log1p(-b->to_ok);
	if (b->loss <= 0)
		c->from = c->to = UINT64_MAX;
	else
		land(c, slot, b->loss);
}

void chan_seek(struct chan *c, uint64_t slot)
{
	while (c->to <= slot) {
		double gap = (double)(slot - c->to);

		if (gap * c->burst.loss * c->burst.to_ok > LEAP_RUNS)
			land(c, slot, burst_after(&c->burst, false, gap));
		else
			next_run(c, c->to);
	}
}
