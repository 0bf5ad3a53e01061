/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds of real time per link_offer(), one line for each kind of link. */
#include "base/units.h"
#include "link/link.h"
#include <stdio.h>
#include <time.h>

#define OFFERS 5000000u
#define ROUNDS 5

struct kind {
	const char *name;
	struct link_attr attr;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The best of a few rounds, in ns per offer, at about the rate of the link. */
static double measure(const struct link_attr *attr, uint64_t *sink)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		struct link_fate fate;
		struct link l;
		double start;

		if (link_init(&l, attr, 1))
			return -1;
		start = seconds();
		for (uint64_t i = 0; i < OFFERS; i++) {
			link_offer(&l, i * 1200, i % 8 ? 1500 : 64, &fate);
			*sink += fate.deliver_ns[0];
		}
		start = (seconds() - start) * 1e9 / OFFERS;
		best = start < best ? start : best;
	}
	return best;
}

int main(void)
{
	const struct kind kinds[] = {
		{"nothing set", {0}},
		{"10 Gbit/s, 25 ms", {.rate_bps = 10000000000, .delay_ns = 25 * NS_PER_MS}},
		{"and queue, ECN",
		 {.rate_bps = 10000000000,
		  .delay_ns = 25 * NS_PER_MS,
		  .queue_bytes = 1000000,
		  .ecn_bytes = 100000}},
		{"and loss, jitter",
		 {.rate_bps = 10000000000,
		  .delay_ns = 25 * NS_PER_MS,
		  .queue_bytes = 1000000,
		  .ecn_bytes = 100000,
		  .loss = {.p_gb = 0.001, .p_bg = 0.1, .loss_bad = 1},
		  .jitter_ns = NS_PER_MS}},
	};
	uint64_t sink = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("%-20s %6.1f ns\n", kinds[i].name, measure(&kinds[i].attr, &sink));
	return sink == 0;
}
