/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ITU-T G.1050 and what they come to on a link. Contract: g1050.h. Values as
 * in the open implementation of the model in spandsp (g1050.c), which the standard's text was
 * compared with nowhere here.
 *
 * An access link has a state of low loss, in which nothing is lost, and one of high loss:
 *
 *	low -> high	0.0002 * occupancy	a step
 *	high -> low	0.2 / (1 + occupancy)
 *	loss in high	0.0005 * occupancy	a packet; occupancy in percent
 *
 * The model steps once a packet at 1000 packets/s; here a step is a packet at any rate.
 */
#include "link/g1050.h"

#include "base/bits.h"
#include "base/units.h"

#include <errno.h>

struct severity {
	double core_loss;
	double occupancy_pct; /* of each of the two access links */
	double out_of_order;
	uint32_t delay_ms, jitter_ms;
	uint32_t interval_s; /* of route flaps, and of link failures */
	uint32_t flap_ms, failure_ms;
};

/* clang-format off */
static const struct severity severities[] = {
	{0,	 0,  0,	   16,	5,   0,	   0,	0},
	{0.0001, 1,  0,	   32,	10,  3600, 2,	64},
	{0.0002, 2,  0,	   64,	16,  1800, 4,	128},
	{0.0004, 4,  0,	   128, 40,  900,  8,	256},
	{0.001,	 8,  0,	   196, 70,  480,  16,	400},
	{0.002,	 15, 0,	   256, 100, 240,  32,	800},
	{0.005,	 30, 0,	   512, 150, 120,  64,	1600},
	{0.01,	 50, 0.01, 768, 500, 60,   128, 3000},
};
/* clang-format on */

/*
 * Two equal access links and the core in one process of two states: both links low, or any
 * high. The share of each state, how often it changes and the loss ratio are those of the
 * whole; what is lost is the length of high loss within "any".
 */
static struct link_ge fold(const struct severity *s)
{
	double up = 0.0002 * s->occupancy_pct, down = 0.2 / (1.0 + s->occupancy_pct);
	double high = up / (up + down), both_low = (1.0 - high) * (1.0 - high);
	double pass = 1.0 - high * 0.0005 * s->occupancy_pct; /* one access link */
	double lost_of_any = up > 0.0 ? (1.0 - pass * pass) / (1.0 - both_low) : 0.0;
	struct link_ge ge = {.loss_good = s->core_loss, .loss_bad = s->core_loss};

	if (!(up > 0.0))
		return ge;
	ge.p_gb = 1.0 - (1.0 - up) * (1.0 - up);
	ge.p_bg = both_low * ge.p_gb / (1.0 - both_low);
	ge.loss_bad = 1.0 - (1.0 - s->core_loss) * (1.0 - lost_of_any);
	return ge;
}

/* The first one begins within the first interval. */
static struct link_periodic periodic(struct rng *rng, uint64_t start_ns, uint64_t every_ns,
				     uint64_t for_ns)
{
	uint64_t wait_ns = every_ns ? rng_below(rng, every_ns) : 0;

	if (!every_ns)
		return (struct link_periodic){0};
	return (struct link_periodic){
		.first_ns = start_ns > UINT64_MAX - wait_ns ? UINT64_MAX : start_ns + wait_ns,
		.every_ns = every_ns,
		.for_ns = for_ns,
	};
}

int link_g1050(char severity, uint64_t seed, uint64_t start_ns, struct link_attr *out)
{
	unsigned int i = (unsigned int)severity - (severity >= 'a' ? 'a' : 'A');
	const struct severity *s;
	uint64_t interval_ns;
	struct rng rng;

	if (i >= SDR_ARRAY_LEN(severities))
		return -EINVAL;
	s = &severities[i];
	interval_ns = s->interval_s * NS_PER_S;
	rng_init(&rng, seed);
	out->loss = fold(s);
	out->delay_ns = s->delay_ms * NS_PER_MS;
	out->jitter_ns = s->jitter_ms * NS_PER_MS;
	out->jitter_reorders = false;
	out->reorder_p = s->out_of_order;
	out->reorder_ns = 0;
	out->flap = periodic(&rng, start_ns, 2 * interval_ns, interval_ns);
	out->flap_delay_ns = s->flap_ms * NS_PER_MS;
	out->outage = periodic(&rng, start_ns, interval_ns, s->failure_ms * NS_PER_MS);
	return 0;
}
