/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coded messages from sender to receiver over random channels, in virtual time: that all ends, what
 * is sent, and how many round trips a loss costs. With a receiver that sees PSNs, and with one that
 * only knows which packets came.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bits.h"
#include "rel/pair.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define RTT (20 * MS)
#define WINDOW (RTT / 16 + RTT / 8) /* the reorder window, and what the receiver's ACKs take */

static bool by_packet;

/* One message of 32 blocks of 32 packets, two groups, with 4 packets of parity each. */
static struct pair_config coded(void)
{
	return (struct pair_config){
		.scheme = "sr-nack",
		.seed = 1,
		.channels = 1,
		.path = {{.delay_ns = RTT / 2}},
		.ack_delay_ns = RTT / 2,
		.gap_ns = US,
		.window_pkts = 1u << 30,
		.max_train = 64,
		.messages = 1,
		.min_pkts = 1024,
		.max_pkts = 1024,
		.granted = 512,
		.by_packet = by_packet,
		.check_every = 1,
		.limit_ns = 1000 * SEC,
		.coding = {.code = REL_CODE_RS, .k = 32, .m = 4, .depth = 16, .fresh = true},
		.whole_span = true,
		.full_room = true,
	};
}

static double pick(struct rng *rng, double most)
{
	return rng_below(rng, 3) == 0 ? 0 : rng_unit(rng) * most;
}

static void random_config(struct pair_config *c, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed * 104729 + 7);
	*c = coded();
	c->seed = seed;
	c->random_coding = true;
	c->whole_span = c->full_room = false;
	c->channels = 1 + (uint32_t)rng_below(&rng, 4);
	for (uint32_t i = 0; i < c->channels; i++) {
		uint64_t delay = 20 * US + rng_below(&rng, rng_below(&rng, 2) ? RTT : MS);
		c->path[i] = (struct pair_path){
			.delay_ns = delay,
			.jitter_ns = rng_below(&rng, 2) ? rng_below(&rng, 2 * delay) : 0,
			.loss = pick(&rng, 0.3),
			.burst = rng_below(&rng, 2) ? 1 + rng_unit(&rng) * 40 : 0,
			.duplicate = pick(&rng, 0.1),
		};
	}
	c->ack_delay_ns = 20 * US + rng_below(&rng, RTT / 2);
	c->ack_jitter_ns = rng_below(&rng, 2) ? rng_below(&rng, RTT) : 0;
	c->ack_loss = pick(&rng, 0.3);
	c->ack_duplicate = pick(&rng, 0.2);
	c->gap_ns = 100 + rng_below(&rng, 20 * US);
	c->window_pkts = 1 + rng_below(&rng, rng_below(&rng, 4) ? 2000 : 20);
	c->max_train = rng_below(&rng, 2) ? 64 : 1 + (uint32_t)rng_below(&rng, 64);
	c->messages = 1 + (uint32_t)rng_below(&rng, 12);
	c->granted = 1 + (uint32_t)rng_below(&rng, 8);
	c->first_message = rng_below(&rng, 2) ? (uint32_t)(0 - 2 * rng_below(&rng, 10))
					      : (uint32_t)rng_next(&rng);
	c->min_pkts = 1;
	c->max_pkts = 1 + (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? 300 : 6000 / c->messages);
	c->unknown_end = rng_below(&rng, 2);
	c->bdp_pkts = rng_below(&rng, 2) ? 0 : rng_below(&rng, 500);
	c->write_ns = rng_below(&rng, 8) ? rng_below(&rng, RTT) : UINT64_MAX;
	c->check_every = 7;
	if (rng_below(&rng, 6) == 0) {
		c->ack_out_from_ns = rng_below(&rng, RTT);
		c->ack_out_until_ns = c->ack_out_from_ns + rng_below(&rng, SEC);
	}
	if (rng_below(&rng, 6) == 0) {
		c->data_out_from_ns = rng_below(&rng, RTT);
		c->data_out_until_ns = c->data_out_from_ns + rng_below(&rng, SEC);
	}
	if (rng_below(&rng, 6) == 0) {
		c->pause_from_ns = rng_below(&rng, RTT);
		c->pause_until_ns = c->pause_from_ns + rng_below(&rng, SEC);
	}
}

static void everything_ends(void **state)
{
	(void)state;
	const char *text = getenv("REL_SEEDS");
	uint64_t seeds = text ? strtoull(text, NULL, 10) : 300;
	const char *from = getenv("REL_SEED_FROM");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	uint64_t decoded = 0, repairs = 0, uncovered = 0, copies = 0;
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct pair_config c;
		struct pair_result r;
		random_config(&c, seed);
		pair_run(&c, &r);
		if (r.too_soon || r.wrong_dates)
			fail_msg("seed %llu: %llu packets resent within an RTT, %llu wrong dates",
				 (unsigned long long)seed, (unsigned long long)r.too_soon,
				 (unsigned long long)r.wrong_dates);
		assert_true(r.tx.recovered_pkts + r.tx.uncovered_pkts <= r.tx.covered_pkts);
		decoded += r.decoded_pkts;
		repairs += r.tx.repair_pkts;
		uncovered += r.tx.uncovered_pkts;
		copies += r.tx.copies_pkts;
	}
	/* The test reaches all of it. */
	assert_true(decoded > seeds && repairs > seeds && uncovered > seeds && copies > seeds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
