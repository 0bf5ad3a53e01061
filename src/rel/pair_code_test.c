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
#include "rel/pair_twice.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define RTT (20 * MS)
#define WINDOW (RTT / 16 + RTT / 8) /* the reorder window, and what the receiver's ACKs take */

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

/* ---- what is sent, and how long it takes ---- */

/* Sending all of it, and the round trip that the last packet's acknowledgement takes. */
static uint64_t plain_ns(const struct pair_config *c, const struct pair_result *r)
{
	return (c->messages * (uint64_t)c->max_pkts + r->tx.parity_pkts) * c->gap_ns + RTT +
	       RTT / 16 + MS;
}

static void no_loss(void **state)
{
	static const struct rel_coding all[] = {
		{.code = REL_CODE_RS, .k = 32, .m = 4, .depth = 16, .fresh = true, .copies = 4},
		{.code = REL_CODE_RS, .k = 128, .m = 10, .depth = 1},
		{.code = REL_CODE_RS, .k = 4, .m = 2, .depth = 65536},
		{.code = REL_CODE_RS, .k = 1, .m = 9, .depth = 3},
		{.code = REL_CODE_XOR, .k = 32, .m = 8, .depth = 7},
	};
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(all) * 3; i++) {
		struct pair_config c = coded();
		struct pair_result r;
		c.coding = all[i / 3];
		c.check_every = 20;
		c.messages = 10;
		c.channels = 3;
		c.path[0] = c.path[1] = c.path[2] = (struct pair_path){.delay_ns = RTT / 2};
		c.min_pkts = c.max_pkts = 300;
		c.full_room = i % 3 != 0;
		c.coding.parity_room = i % 3 == 0 ? 11 : 0;
		c.bdp_pkts = i % 3 == 1 ? 500 : 0;
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts, 0);
		assert_int_equal(r.tx.covered_pkts, 0);
		assert_int_equal(r.tx.failed_blocks, 0);
		assert_int_equal(r.tx.parity_pkts, r.parity_due);
		assert_int_equal(r.tx.sent_pkts, 3000 + r.parity_due);
		if (i % 3)
			assert_int_equal(r.parity_due,
					 10 * c.coding.m * ((299 + c.coding.k) / c.coding.k));
		assert_true(r.done_ns <= plain_ns(&c, &r));
	}
}

/* As much parity as there are losses: no further round trip, and nothing is sent again. */
static void enough_parity(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct pair_config c = coded();
		struct pair_result r;
		c.lose_one = true;
		c.lose_times = 1;
		c.lose_packet = i < 4 ? 256 * i : 1023; /* the last one, too */
		c.lose_count = i < 4 ? 4 : 1;
		c.lose_step = 16; /* of one block */
		if (i == 5)
			c.coding.code = REL_CODE_XOR;
		pair_run(&c, &r);
		assert_int_equal(r.true_lost, c.lose_count);
		assert_int_equal(r.decoded_pkts, c.lose_count);
		assert_int_equal(r.tx.resent_pkts, 0);
		assert_int_equal(r.tx.spurious_pkts, 0);
		assert_int_equal(r.tx.failed_blocks, 0);
		assert_int_equal(r.tx.parity_pkts, 128);
		assert_true(r.done_ns <= plain_ns(&c, &r) + RTT / 8);
	}
}

/* More losses than parity: one round trip more, and what lacked, no more. */
static void failed_block(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 7; i++) {
		struct pair_config c = coded();
		struct pair_result r;
		uint32_t repairs = 3, resends = 0;
		c.lose_one = true;
		c.lose_times = 1;
		c.lose_packet = i % 2 ? 512 : 3;
		c.lose_step = 16;
		c.lose_count = 7;
		if (i == 2) { /* missing packets: any that make it whole */
			c.coding.fresh = false;
			repairs = 0;
			resends = 3;
		} else if (i == 3) { /* sums: only these */
			c.coding.code = REL_CODE_XOR;
			repairs = 0;
			resends = 7;
		} else if (i == 4) { /* no parity came */
			c.lose_parity = true;
			repairs = 7;
		} else if (i == 5) { /* nor could: no room */
			c.full_room = false;
			repairs = 0;
			resends = 7;
		} else if (i == 6) { /* room for two units */
			c.full_room = false;
			c.coding.parity_room = 6 * 32;
			repairs = 2;
			resends = 1;
		}
		pair_run(&c, &r);
		if (getenv("REL_REPORT"))
			printf("%u: %.2f ms, %llu repairs, %llu resent\n", i,
			       (double)r.done_ns / 1e6, (unsigned long long)r.tx.repair_pkts,
			       (unsigned long long)r.tx.resent_pkts);
		assert_int_equal(r.tx.repair_pkts, repairs);
		assert_int_equal(r.tx.resent_pkts, resends);
		assert_int_equal(r.tx.uncovered_pkts, resends);
		assert_int_equal(r.needless, 0);
		assert_int_equal(r.tx.failed_blocks, 1);
		assert_int_equal(r.tx.probes, 0);
		assert_int_equal(r.tx.covered_pkts, 7);
		assert_int_equal(r.tx.spurious_pkts, 0);
		assert_true(r.done_ns <= 1152 * US + 2 * RTT + WINDOW);
	}
}

/* Units of a block go out a gap apart, those of others in between. */
static void gaps(void **state)
{
	(void)state;
	struct pair_config c = coded();
	struct pair_result r;
	c.lose_one = true;
	c.lose_times = 1;
	c.lose_count = 64; /* the first four rows of the first group, ... */
	c.lose_parity = true;
	c.coding.gap_ns = 2 * MS;
	c.coding.margin[2] = 1;
	pair_run(&c, &r);
	assert_int_equal(r.tx.failed_blocks, 16);
	assert_int_equal(r.tx.repair_pkts, 16 * 5);
	assert_int_equal(r.needless, 16); /* the margins */
	assert_in_range(r.done_ns, 2 * RTT + 6 * MS, 1152 * US + 2 * RTT + WINDOW + 6 * MS);
}

/* The receiver never learns that there is a code. */
static void never_told(void **state)
{
	(void)state;
	struct pair_config c = coded();
	struct pair_result r;
	c.write_ns = UINT64_MAX;
	c.lose_one = true;
	c.lose_times = 1;
	c.lose_count = 50;
	c.lose_step = 20;
	pair_run(&c, &r);
	assert_int_equal(r.tx.covered_pkts, 50);
	assert_int_equal(r.tx.resent_pkts, 50); /* probes are of them */
	assert_int_equal(r.spurious, 0);
	assert_true(r.done_ns <= 5 * RTT);
	/* Much of it, again and again: by holes, from then on. */
	c.lose_one = false;
	c.path[0].loss = 0.3;
	pair_run(&c, &r);
	assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
	assert_true(r.done_ns <= 15 * RTT);
}

/* Several last packets, of which no hole tells: a little more than a round trip, not two. */
static void lost_tail(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct pair_config c = coded();
		struct pair_result r;
		c.lose_one = true;
		c.lose_times = 1;
		c.lose_packet = 1024 - 5;
		c.lose_count = 5;
		c.lose_parity = true;
		if (i % 2)
			c.coding.code = REL_CODE_NONE;
		if (i > 1)
			c.lose_packet = 1024 - 120, c.lose_count = 120; /* trains */
		pair_run(&c, &r);
		if (getenv("REL_REPORT"))
			printf("tail %u: %.2f ms\n", i, (double)r.done_ns / 1e6);
		assert_int_equal(r.spurious, 0);
		assert_int_equal(r.needless, 0);
		/* A tail that took longer to send than the ACK's slack waits for the next ACK. */
		assert_true(r.done_ns <= 1152 * US + RTT + (i == 1 ? 11 : 14) * RTT / 10);
	}
}

/* A late resend that is lost too costs a gap, not a round trip. */
static void late_copies(void **state)
{
	(void)state;
	struct pair_config c = coded();
	struct pair_result r;
	c.coding = (struct rel_coding){.copies = 4, .gap_ns = MS};
	c.lose_one = true;
	c.lose_packet = 10;
	c.lose_times = 3;
	pair_run(&c, &r);
	assert_int_equal(r.true_lost, 3);
	assert_int_equal(r.tx.resent_pkts, 4);
	assert_int_equal(r.tx.copies_pkts, 3);
	assert_true(r.done_ns <= 1024 * US + 2 * RTT + WINDOW + 2 * MS);
	/* The first is acknowledged before the third is due. */
	c.coding.gap_ns = 2 * RTT / 3;
	c.lose_times = 1;
	pair_run(&c, &r);
	assert_in_range(r.tx.copies_pkts, 0, 1);
	/* More than a round trip's packets are unsent: not late. */
	c.min_pkts = c.max_pkts = 100000;
	c.check_every = 1000;
	c.bdp_pkts = 20000;
	c.coding.gap_ns = MS;
	pair_run(&c, &r);
	assert_int_equal(r.tx.copies_pkts, 0);
	assert_int_equal(r.tx.resent_pkts, 1);
}

/* Reordered within the window, on unequal channels: no repair but what lacks, and no doubt. */
static void only_what_lacks(void **state)
{
	(void)state;
	uint64_t repairs = 0, resent = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct pair_config c = coded();
		struct pair_result r;
		c.seed = seed;
		c.messages = 10;
		c.channels = 2;
		c.path[0] = (struct pair_path){
			.delay_ns = RTT / 2, .jitter_ns = RTT / 17, .loss = 0.1, .burst = 8};
		c.path[1] = (struct pair_path){.delay_ns = RTT / 4, .loss = 0.05};
		c.coding.fresh = seed % 2;
		c.coding.gap_ns = seed % 3 * MS / 2;
		c.max_train = 16;
		c.gap_ns = 10 * US;
		c.check_every = 100;
		pair_run(&c, &r);
		assert_int_equal(r.needless, 0);
		assert_int_equal(r.spurious, 0);
		assert_int_equal(r.tx.spurious_pkts, 0);
		assert_true(r.reorder_ns <= RTT / 15);
		repairs += r.tx.repair_pkts;
		resent += r.tx.uncovered_pkts;
	}
	assert_true(repairs > 500 && resent > 500);
}

static void loss_counts(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct pair_config c = coded();
		struct pair_result r;
		double loss = 0.04, burst = i % 2 ? 8 : 1;
		c.min_pkts = c.max_pkts = 200000;
		c.path[0].loss = loss;
		c.path[0].burst = burst;
		c.gap_ns = 200;
		c.check_every = 0;
		if (i < 2)
			c.coding.code = REL_CODE_NONE;
		pair_run(&c, &r);
		double lost = 1 - (double)r.loss.arrived_pkts / (double)r.loss.passed_pkts;
		double mean = (double)r.loss.run_pkts / (double)r.loss.runs;
		if (getenv("REL_REPORT"))
			printf("loss %.4f, mean burst %.2f\n", lost, mean);
		assert_true(r.loss.passed_pkts <= r.tx.sent_pkts);
		/* Where packets are named, of data only. */
		uint64_t sent = r.tx.sent_pkts - (by_packet ? r.tx.parity_pkts : 0);
		assert_true(r.loss.passed_pkts >= sent * 9 / 10);
		assert_true(lost > 0.85 * loss && lost < 1.15 * loss);
		/* What is decoded before it could be declared lost is in no run. */
		assert_true(mean > (i < 2 ? 0.85 : 0.4) * burst && mean < 1.15 * burst);
	}
}

/* ACKs are lost for long while packets are covered, and nothing of it is in flight. */
static void ack_blackout(void **state)
{
	(void)state;
	struct pair_config c = coded();
	struct pair_result r;
	c.lose_one = true;
	c.lose_times = 1;
	c.lose_count = 10;
	c.lose_parity = true;
	c.ack_out_from_ns = RTT + RTT / 32;
	c.ack_out_until_ns = 5 * SEC;
	pair_run(&c, &r);
	/* As with any scheme: a probe now and then. */
	assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
	assert_true(r.tx.probes <= 20);
	assert_true(r.done_ns < 7 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWICE(no_loss),	     TWICE(enough_parity),   TWICE(failed_block),
		TWICE(gaps),	     TWICE(never_told),	     TWICE(lost_tail),
		TWICE(late_copies),  TWICE(only_what_lacks), TWICE(loss_counts),
		TWICE(ack_blackout), TWICE(everything_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
