/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 400 Gbit/s x 100 ms: more than a million packets in flight, 1 % loss both ways, in
 * virtual time. Exact counts; memory bounded by what is in flight; no timings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "rel/pair.h"

#define MS UINT64_C(1000000)

static struct pair_config long_fat(const char *scheme)
{
	return (struct pair_config){
		.scheme = scheme,
		.seed = 42,
		.channels = 4,
		.path = {{.delay_ns = 50 * MS, .loss = 0.01},
			 {.delay_ns = 50 * MS, .loss = 0.01},
			 {.delay_ns = 50 * MS, .loss = 0.01},
			 {.delay_ns = 50 * MS, .loss = 0.01}},
		.ack_delay_ns = 50 * MS,
		.ack_loss = 0.01,
		.gap_ns = 80,
		.window_pkts = 1u << 30,
		.max_train = 64,
		.messages = 4,
		.min_pkts = 1000000,
		.max_pkts = 1000000,
		.granted = 4,
		.limit_ns = 100000 * MS,
	};
}

static void report(const char *name, const struct pair_result *r)
{
	if (getenv("REL_REPORT"))
		printf("%s: in flight %llu, lost %llu, resent %llu, probes %llu, acks %llu of %llu "
		       "bytes (%llu full), %llu words looked at, %llu told, memory %zu, done in "
		       "%.1f ms\n",
		       name, (unsigned long long)r->max_inflight, (unsigned long long)r->true_lost,
		       (unsigned long long)r->tx.resent_pkts, (unsigned long long)r->tx.probes,
		       (unsigned long long)r->rx.acks, (unsigned long long)r->rx.ack_bytes,
		       (unsigned long long)r->rx.full_acks, (unsigned long long)r->rx.looked_words,
		       (unsigned long long)r->rx.told_words, r->max_memory,
		       (double)r->done_ns / 1e6);
}

static void million(bool by_packet)
{
	struct pair_config c = long_fat("sr-nack");
	struct pair_result r;
	c.by_packet = by_packet;
	pair_run(&c, &r);
	report(by_packet ? "sr-nack, packets named" : "sr-nack", &r);
	assert_int_equal(r.wrong_dates, 0);
	assert_true(r.max_inflight > 1200000);
	assert_true(r.true_lost > 35000);
	assert_int_equal(r.spurious, 0);
	assert_int_equal(r.too_soon, 0);
	/* Each loss is resent, nothing else is; a tail probe may be either. */
	assert_true(r.tx.resent_pkts >= r.true_lost);
	assert_true(r.tx.resent_pkts - r.tx.probes <= r.true_lost);
	assert_true(r.tx.probes <= 2);
	assert_int_equal(r.tx.timeout_pkts, 0);
	/* Under 8 bytes a packet in flight. */
	assert_true(r.max_memory < 8 * r.max_inflight);
	/* ACKs: below 1 % of the data's bytes, were these 1436. */
	assert_true(r.rx.ack_bytes < 4000000ull * 1436 / 100);
}

static void a_million_in_flight(void **state)
{
	(void)state;
	million(false);
}

/* The receiver is a NIC: it names packets, and those sent twice say less. */
static void a_million_without_psns(void **state)
{
	(void)state;
	million(true);
}

static void by_timer(void **state)
{
	(void)state;
	struct pair_config c = long_fat("sr");
	struct pair_result r;
	pair_run(&c, &r);
	report("sr", &r);
	assert_true(r.max_inflight > 1200000);
	assert_int_equal(r.spurious, 0);
	assert_int_equal(r.tx.resent_pkts - r.tx.probes, r.true_lost);
}

/* A window much smaller than the message: memory follows the window. */
static void memory_follows_window(void **state)
{
	(void)state;
	struct pair_config c = long_fat("sr-nack");
	struct pair_result r;
	c.messages = 1;
	c.min_pkts = c.max_pkts = 4000000;
	c.window_pkts = 20000;
	for (int i = 0; i < 4; i++)
		c.path[i].delay_ns = MS;
	c.ack_delay_ns = MS;
	pair_run(&c, &r);
	report("window", &r);
	assert_int_equal(r.spurious, 0);
	assert_true(r.max_memory < 1000000);
}

/* Heavy loss at this size: more holes than an ACK can hold. */
static void heavy_loss(void **state)
{
	(void)state;
	struct pair_config c = long_fat("sr-nack");
	struct pair_result r;
	for (int i = 0; i < 4; i++)
		c.path[i].loss = 0.3;
	c.ack_loss = 0.3;
	c.messages = 1;
	pair_run(&c, &r);
	report("30 %", &r);
	assert_int_equal(r.too_soon, 0);
	assert_true(r.tx.resent_pkts < r.true_lost + r.true_lost / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_in_flight),
		cmocka_unit_test(a_million_without_psns),
		cmocka_unit_test(by_timer),
		cmocka_unit_test(memory_follows_window),
		cmocka_unit_test(heavy_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
