/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sender and receiver over random channels: liveness, economy, completion times. All of it
 * twice: with a receiver that sees PSNs, and with one that only knows which packets came.
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
		.by_packet = by_packet,
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
	uint64_t seeds = text ? strtoull(text, NULL, 10) : 200;
	const char *from = getenv("REL_SEED_FROM");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct pair_config c;
		struct pair_result r;
		random_config(&c, seed);
		pair_run(&c, &r);
		if (r.too_soon || r.wrong_dates)
			fail_msg("seed %llu: %llu packets resent within an RTT, %llu wrong dates",
				 (unsigned long long)seed, (unsigned long long)r.too_soon,
				 (unsigned long long)r.wrong_dates);
	}
}

/* What a receiver without PSNs costs: time and needless resends, next to one with them. */
static void against_psns(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct pair_path path;
		uint32_t channels, messages, pkts, max_train;
		uint64_t window_pkts;
		uint32_t most_percent; /* of the time with PSNs */
		uint32_t spurious;     /* per 1,000 packets, more than with PSNs */
	} run[] = {
		{"1 %", {.loss = 0.01}, 1, 100, 1000, 64, 2000, 110, 0},
		{"10 %", {.loss = 0.1}, 1, 100, 1000, 64, 2000, 120, 0},
		{"30 %", {.loss = 0.3}, 2, 50, 1000, 64, 2000, 130, 0},
		{"small messages, 10 %", {.loss = 0.1}, 2, 2000, 1, 64, 200, 130, 0},
		{"one long message, 10 %", {.loss = 0.1}, 4, 1, 100000, 64, 5000, 110, 0},
		{"reordered", {.jitter_ns = RTT / 2}, 1, 100, 1000, 8, 2000, 130, 5},
		{"reordered, 10 %",
		 {.jitter_ns = RTT / 2, .loss = 0.1},
		 2,
		 100,
		 1000,
		 8,
		 2000,
		 130,
		 5},
	};
	for (size_t i = 0; i < SDR_ARRAY_LEN(run); i++) {
		uint64_t done[2] = {0}, spurious[2] = {0}, resent[2] = {0}, lost[2] = {0};
		uint64_t timeouts[2] = {0}, samples[2] = {0}, probes[2] = {0};
		for (uint64_t seed = 1; seed <= 5; seed++) {
			for (uint32_t named = 0; named < 2; named++) {
				struct pair_config c = plain(REL_SCHEME_DEFAULT);
				struct pair_result r;
				c.seed = seed;
				c.by_packet = named;
				c.channels = run[i].channels;
				for (uint32_t k = 0; k < c.channels; k++) {
					c.path[k] = run[i].path;
					c.path[k].delay_ns = RTT / 2;
				}
				c.gap_ns = 5 * US;
				c.messages = run[i].messages;
				c.min_pkts = c.max_pkts = run[i].pkts;
				c.max_train = run[i].max_train;
				c.window_pkts = run[i].window_pkts;
				c.granted = 64;
				c.check_every = 1000;
				pair_run(&c, &r);
				assert_int_equal(r.wrong_dates, 0);
				assert_int_equal(r.too_soon, 0);
				done[named] += r.done_ns;
				spurious[named] += r.spurious;
				resent[named] += r.tx.resent_pkts;
				lost[named] += r.true_lost;
				timeouts[named] += r.tx.timeout_pkts;
				probes[named] += r.tx.probes;
				samples[named] += r.samples;
			}
		}
		for (uint32_t named = 0; named < 2 && getenv("REL_REPORT"); named++)
			printf("%s, %s: %.1f ms, lost %llu, resent %llu (needless %llu, by timer "
			       "%llu, probes %llu), %llu samples\n",
			       run[i].name, named ? "packets" : "PSNs", (double)done[named] / 5e6,
			       (unsigned long long)lost[named], (unsigned long long)resent[named],
			       (unsigned long long)spurious[named],
			       (unsigned long long)timeouts[named],
			       (unsigned long long)probes[named],
			       (unsigned long long)samples[named]);
		uint64_t pkts = 5 * (uint64_t)run[i].messages * run[i].pkts;
		assert_true(done[1] <= done[0] * run[i].most_percent / 100);
		assert_true(spurious[1] <= spurious[0] + pkts * run[i].spurious / 1000);
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

/*
 * More holes than an ACK has room for, and the message's end comes before the reorder window
 * passed: each round of resends has to take about a round trip all the same.
 */
static void many_holes(void **state)
{
	(void)state;
	uint64_t sum = 0, seeds = 20;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct pair_config c = plain("sr-nack");
		struct pair_result r;
		c.seed = seed;
		c.min_pkts = c.max_pkts = 32768;
		c.gap_ns = 50;
		c.path[0].loss = 0.02;
		c.check_every = 1000;
		pair_run(&c, &r);
		assert_int_equal(r.spurious, 0);
		assert_int_equal(r.too_soon, 0);
		sum += r.done_ns;
	}
	if (getenv("REL_REPORT"))
		printf("many holes, %s: %.3f round trips\n", by_packet ? "packets" : "PSNs",
		       (double)sum / (double)seeds / (double)RTT);
	/* 2.3 rounds in the mean, the first send's round trip and its 1.6 ms. */
	assert_true(sum <= seeds * (RTT + 23 * RTT / 10 * 5 / 4 + 2 * MS));
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

/* The round trip grows far beyond what the timers know, as a queue without end makes it. */
static void longer_path(void **state)
{
	(void)state;
	static const char *const all[] = {"sr", "sr-nack", "sr:rto=3", "gbn"};
	for (size_t i = 0; i < SDR_ARRAY_LEN(all); i++) {
		struct pair_config c = plain(all[i]);
		struct pair_result r;
		c.messages = 100;
		c.gap_ns = 20 * US;
		c.window_pkts = 4000;
		c.longer_from_ns = 200 * MS;
		c.longer_ns = 10 * RTT;
		c.granted = 16;
		c.check_every = 5000;
		pair_run(&c, &r);
		if (getenv("REL_REPORT"))
			printf("%s, %s: %.1f ms, %llu packets, %llu resent, %llu samples\n", all[i],
			       by_packet ? "packets" : "PSNs", (double)r.done_ns / 1e6,
			       (unsigned long long)r.tx.sent_pkts,
			       (unsigned long long)r.tx.resent_pkts, (unsigned long long)r.samples);
		assert_int_equal(r.wrong_dates, 0);
		/* Timers that never learn send all of it eight times. */
		assert_true(r.tx.resent_pkts < c.messages * c.max_pkts / 5);
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
		cmocka_unit_test(against_psns),
		TWICE(no_loss_no_resend),
		TWICE(one_loss_times),
		TWICE(repeated_loss),
		TWICE(only_the_lost),
		TWICE(many_holes),
		TWICE(unequal_paths),
		TWICE(reordering),
		TWICE(ack_blackout),
		TWICE(data_blackout),
		TWICE(paused_process),
		TWICE(dead_path),
		TWICE(wire_wrap),
		TWICE(longer_path),
		TWICE(everything_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
