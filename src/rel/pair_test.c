/* SPDX-License-Identifier: Apache-2.0 */
/* Sender and receiver over random channels: liveness, economy, completion times. */
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

static struct pair_config plain(const char *scheme)
{
	return (struct pair_config){
		.scheme = scheme,
		.seed = 1,
		.channels = 1,
		.path = {{.delay_ns = RTT / 2}},
		.ack_delay_ns = RTT / 2,
		.gap_ns = US,
		.window_pkts = 1u << 30,
		.max_train = 64,
		.messages = 1,
		.min_pkts = 1000,
		.max_pkts = 1000,
		.granted = 512,
		.check_every = 1,
		.limit_ns = 1000 * SEC,
	};
}

static const char *const schemes[] = {"gbn",	  "sr",	      "sr-nack",      "gbn:rto=3",
				      "sr:rto=3", "sr:rto=1", "sr-nack:rto=3"};

static double pick(struct rng *rng, double most)
{
	return rng_below(rng, 3) == 0 ? 0 : rng_unit(rng) * most;
}

static void random_config(struct pair_config *c, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed * 7919 + 13);
	*c = plain(schemes[rng_below(&rng, SDR_ARRAY_LEN(schemes))]);
	c->seed = seed;
	c->channels = 1 + (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? 4 : REL_MAX_CHANNELS);
	for (uint32_t i = 0; i < c->channels; i++) {
		uint64_t delay = 20 * US + rng_below(&rng, rng_below(&rng, 2) ? RTT : MS);
		c->path[i] = (struct pair_path){
			.delay_ns = delay,
			.jitter_ns = rng_below(&rng, 2) ? rng_below(&rng, 2 * delay) : 0,
			.loss = pick(&rng, 0.3),
			.duplicate = pick(&rng, 0.1),
		};
	}
	c->ack_delay_ns = 20 * US + rng_below(&rng, RTT / 2);
	c->ack_jitter_ns = rng_below(&rng, 2) ? rng_below(&rng, RTT) : 0;
	c->ack_loss = pick(&rng, 0.3);
	c->ack_duplicate = pick(&rng, 0.2);
	c->ack_garbage = pick(&rng, 0.1);
	c->gap_ns = 100 + rng_below(&rng, 20 * US);
	c->window_pkts = 1 + rng_below(&rng, rng_below(&rng, 2) ? 2000 : 20);
	c->max_train = rng_below(&rng, 2) ? 64 : 1 + (uint32_t)rng_below(&rng, 64);
	c->messages = 1 + (uint32_t)rng_below(&rng, 40);
	c->granted = 1 + (uint32_t)rng_below(&rng, 20);
	c->first_message =
		rng_below(&rng, 2) ? (uint32_t)(0 - rng_below(&rng, 40)) : (uint32_t)rng_next(&rng);
	c->min_pkts = 1;
	c->max_pkts = 1 + (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? 100 : 9000 / c->messages);
	c->unknown_end = rng_below(&rng, 2);
	c->check_every = 7;
	if (rng_below(&rng, 4) == 0) {
		c->ack_out_from_ns = rng_below(&rng, RTT);
		c->ack_out_until_ns = c->ack_out_from_ns + rng_below(&rng, SEC);
	}
	if (rng_below(&rng, 4) == 0) {
		c->data_out_from_ns = rng_below(&rng, RTT);
		c->data_out_until_ns = c->data_out_from_ns + rng_below(&rng, SEC);
	}
	if (rng_below(&rng, 4) == 0) {
		c->pause_from_ns = rng_below(&rng, RTT);
		c->pause_until_ns = c->pause_from_ns + rng_below(&rng, SEC);
	}
}

static void everything_ends(void **state)
{
	(void)state;
	const char *text = getenv("REL_SEEDS");
	uint64_t seeds = text ? strtoull(text, NULL, 10) : 400;
	const char *from = getenv("REL_SEED_FROM");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct pair_config c;
		struct pair_result r;
		random_config(&c, seed);
		pair_run(&c, &r);
		if (r.too_soon)
			fail_msg("seed %llu: resent within an RTT", (unsigned long long)seed);
	}
}

static void no_loss_no_resend(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(schemes); i++) {
		struct pair_config c = plain(schemes[i]);
		struct pair_result r;
		c.messages = 20;
		c.channels = 3;
		c.path[0] = c.path[1] = c.path[2] = (struct pair_path){.delay_ns = RTT / 2};
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts, 0);
		/* Sending, a round trip, and a turn of ACKs. */
		assert_true(r.done_ns <= 20000 * c.gap_ns + RTT + RTT / 16 + MS);
	}
}

/* One packet in the middle is lost once. */
static void single_loss(const char *scheme, uint32_t packet, struct pair_result *r)
{
	struct pair_config c = plain(scheme);
	c.lose_one = true;
	c.lose_packet = packet;
	c.lose_times = 1;
	pair_run(&c, r);
	assert_int_equal(r->true_lost, 1);
	assert_int_equal(r->spurious, 0);
}

static void one_loss_times(void **state)
{
	(void)state;
	struct pair_result r;
	uint64_t send = 1000 * US;
	single_loss("sr-nack", 100, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	assert_true(r.done_ns <= 100 * US + 21 * RTT / 10 + RTT / 8);
	single_loss("sr", 100, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	/* RTO: RTT, three turns, 1 ms; variance of the first samples comes on top. */
	assert_true(r.done_ns <= send + RTT + 15 * RTT / 10);
	single_loss("sr:rto=3", 100, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	assert_in_range(r.done_ns, 4 * RTT, send + 4 * RTT + RTT / 8);
	single_loss("gbn", 100, &r);
	assert_int_equal(r.tx.resent_pkts, 900);
	assert_int_equal(r.tx.rewinds, 1);
	assert_true(r.done_ns <= 2 * send + 21 * RTT / 10 + RTT / 8);
	/* The last packet: no later one can prove it. */
	single_loss("sr-nack", 999, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	assert_true(r.done_ns <= send + 3 * RTT + MS);
	single_loss("sr", 999, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	assert_true(r.done_ns <= send + 3 * RTT + MS);
	single_loss("gbn", 999, &r);
	assert_int_equal(r.tx.resent_pkts, 1);
	assert_true(r.done_ns <= send + 3 * RTT + MS);
}

/* The same packet is lost again and again. */
static void repeated_loss(void **state)
{
	(void)state;
	for (uint32_t times = 1; times <= 5; times++) {
		struct pair_config c = plain("sr-nack");
		struct pair_result r;
		c.lose_one = true;
		c.lose_packet = 10;
		c.lose_times = times;
		/* Enough behind it that proof never lacks. */
		c.min_pkts = c.max_pkts = 200000;
		c.check_every = 1000;
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts, times);
		assert_int_equal(r.too_soon, 0);
	}
}

static void only_the_lost(void **state)
{
	(void)state;
	static const char *const selective[] = {"sr", "sr-nack", "sr:rto=3"};
	for (size_t i = 0; i < 3; i++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct pair_config c = plain(selective[i]);
			struct pair_result r;
			c.seed = seed;
			c.messages = 30;
			c.channels = 2;
			c.path[0] = (struct pair_path){.delay_ns = RTT / 2, .loss = 0.05};
			c.path[1] = (struct pair_path){.delay_ns = RTT / 2, .loss = 0.02};
			c.check_every = 50;
			pair_run(&c, &r);
			assert_true(r.true_lost > 500);
			assert_int_equal(r.spurious, 0);
			assert_int_equal(r.too_soon, 0);
			/* What was resent was lost, or was one of the few probes. */
			assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
			assert_true(r.tx.probes <= 5);
		}
	}
}

/* Paths of 1, 20 and 50 ms: not a single resend without a loss. */
static void unequal_paths(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct pair_config c = plain("sr-nack");
		struct pair_result r;
		c.seed = seed;
		c.channels = 3;
		c.path[0].delay_ns = MS;
		c.path[1].delay_ns = 20 * MS;
		c.path[2].delay_ns = 50 * MS;
		c.messages = 60;
		c.check_every = 100;
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts - r.tx.probes, 0);
		c.path[0].loss = c.path[1].loss = c.path[2].loss = 0.01;
		c.ack_loss = 0.01;
		pair_run(&c, &r);
		assert_int_equal(r.spurious, 0);
		assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
	}
}

/* Heavy reordering on one path: resends end once the window has adapted. */
static void reordering(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct pair_config c = plain("sr-nack");
		struct pair_result r;
		c.seed = seed;
		/* Within the base window of 1/16 RTT: none at all. */
		c.path[0].jitter_ns = RTT / 17;
		c.messages = 100;
		c.max_train = 8;
		c.check_every = 1000;
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts - r.tx.probes, 0);
		/* Half an RTT: some until the window is there, then none. */
		c.path[0].jitter_ns = RTT / 2;
		pair_run(&c, &r);
		uint64_t few = r.spurious;
		assert_true(r.reorder_ns >= RTT / 4);
		c.messages = 400;
		pair_run(&c, &r);
		assert_true(r.spurious < 5 * few / 2 + 2000);
		assert_true(r.spurious < 400000 / 50);
	}
}

/* All ACKs are lost for 10 s: probes, no resends; then what was lost is sent, no more. */
static void ack_blackout(void **state)
{
	(void)state;
	static const char *const all[] = {"sr", "sr-nack", "gbn", "sr:rto=3"};
	for (size_t i = 0; i < SDR_ARRAY_LEN(all); i++) {
		struct pair_config c = plain(all[i]);
		struct pair_result r;
		c.messages = 20;
		c.gap_ns = 10 * US;
		c.path[0].loss = 0.01;
		c.ack_out_from_ns = 30 * MS;
		c.ack_out_until_ns = 10 * SEC;
		c.check_every = 10;
		pair_run(&c, &r);
		assert_int_equal(r.tx.stalls >= 1, 1);
		assert_int_equal(r.spurious, 0);
		/* 20, 40 .. 1000 ms, then one a second. */
		assert_in_range(r.tx.probes, 12, 24);
		assert_true(r.blackout_sent <= r.tx.probes);
		if (i != 2)
			assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
		assert_true(r.done_ns < 12 * SEC);
	}
}

/* A message is lost whole, and so is everything for a while. */
static void data_blackout(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(schemes); i++) {
		struct pair_config c = plain(schemes[i]);
		struct pair_result r;
		c.messages = 6;
		c.data_out_from_ns = 0;
		c.data_out_until_ns = 3 * SEC;
		pair_run(&c, &r);
		assert_int_equal(r.spurious, 0);
		assert_true(r.done_ns < 3 * SEC + SEC + 10 * RTT);
	}
}

/* The sender's process stands still for 5 s in mid-message: nothing is blamed. */
static void paused_process(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(schemes); i++) {
		struct pair_config c = plain(schemes[i]);
		struct pair_result r;
		c.messages = 50;
		c.pause_from_ns = 25 * MS;
		c.pause_until_ns = 5 * SEC;
		c.check_every = 20;
		pair_run(&c, &r);
		assert_int_equal(r.tx.resent_pkts - r.tx.probes, 0);
		assert_int_equal(r.tx.lost_pkts, 0);
		assert_true(r.tx.probes <= 1);
	}
}

/* A path dies: what was on it is repaired through the others. */
static void dead_path(void **state)
{
	(void)state;
	static const char *const all[] = {"sr", "sr-nack", "gbn"};
	for (size_t i = 0; i < SDR_ARRAY_LEN(all); i++) {
		struct pair_config c = plain(all[i]);
		struct pair_result r;
		c.channels = 3;
		c.path[1] = c.path[0];
		c.path[2] = (struct pair_path){.delay_ns = RTT / 2, .loss = 0.98};
		c.messages = 10;
		c.check_every = 10;
		pair_run(&c, &r);
		assert_int_equal(r.spurious, 0);
		assert_true(r.done_ns < 100 * RTT);
	}
}

static void wire_wrap(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(schemes); i++) {
		struct pair_config c = plain(schemes[i]);
		struct pair_result r;
		c.first_message = 0u - 200;
		c.messages = 300;
		c.min_pkts = 1;
		c.max_pkts = 130;
		c.path[0].loss = 0.02;
		c.check_every = 50;
		pair_run(&c, &r);
		assert_int_equal(r.spurious, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_loss_no_resend), cmocka_unit_test(one_loss_times),
		cmocka_unit_test(repeated_loss),     cmocka_unit_test(only_the_lost),
		cmocka_unit_test(unequal_paths),     cmocka_unit_test(reordering),
		cmocka_unit_test(ack_blackout),	     cmocka_unit_test(data_blackout),
		cmocka_unit_test(paused_process),    cmocka_unit_test(dead_path),
		cmocka_unit_test(wire_wrap),	     cmocka_unit_test(everything_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
