/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver alone: completion, what ACKs say against the truth, and when they are due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/bits.h"
#include "base/rng.h"
#include "rel/rx.h"

#define MS UINT64_C(1000000)
#define MSGS 6u
#define PKTS 20000u

/* The owner's side: bitmaps, and how often each packet was told right. */
struct owner {
	struct rel_rx rx;
	uint64_t words[MSGS][PKTS / 64 + 1];
	uint32_t npkts[MSGS];
	uint8_t told[MSGS][PKTS];
	bool open[MSGS];
	uint64_t arrived, now;
	uint32_t base; /* number of the first message */
};

static struct owner *owner_new(uint32_t base, uint64_t rtt_ns)
{
	struct owner *o = calloc(1, sizeof(*o));
	struct rel_rx_params p = {.rtt_ns = rtt_ns};
	assert_non_null(o);
	assert_int_equal(rel_rx_init(&o->rx, &p, &sdr_alloc_system), 0);
	o->base = base;
	o->now = 1000 * MS;
	return o;
}

static void owner_free(struct owner *o)
{
	rel_rx_fini(&o->rx);
	free(o);
}

static bool has(const struct owner *o, uint32_t m, uint32_t k)
{
	return o->words[m][k / 64] >> (k % 64) & 1;
}

static void arrive(struct owner *o, uint32_t m, uint32_t k)
{
	o->words[m][k / 64] |= UINT64_C(1) << (k % 64);
	o->told[m][k] = 0;
	rel_rx_arrived(&o->rx, ++o->arrived, o->now);
	rel_rx_dirty(&o->rx, o->base + m);
}

static bool completes(struct owner *o, uint32_t m)
{
	struct rel_rx_want want;
	while (rel_rx_want_cum(&o->rx, o->base + m, &want) &&
	       rel_rx_feed(&o->rx, want.message, want.first_word, &o->words[m][want.first_word],
			   want.nwords))
		;
	return rel_rx_complete(&o->rx, o->base + m);
}

/* Builds an ACK and checks each of its windows against the bitmaps. Returns its length. */
static int ack(struct owner *o, size_t cap)
{
	uint8_t buf[1400];
	struct rel_channel_fact facts[2] = {
		{.id = 0, .psn_valid = true, .newest_psn = 7},
		{.id = 1, .age_ns = UINT64_MAX, .received = o->arrived}};
	struct rel_rx_want want;
	struct wire_ack a;
	struct wire_window win;
	uint32_t first, n;
	bool received;
	assert_int_equal(rel_rx_ack_begin(&o->rx, o->now, 42, facts, 2, buf, cap), 0);
	while (rel_rx_scan(&o->rx, &want)) {
		assert_in_range(want.nwords, 1, REL_RX_WANT_WORDS);
		rel_rx_feed(&o->rx, want.message, want.first_word,
			    &o->words[want.message - o->base][want.first_word], want.nwords);
	}
	int len = rel_rx_ack_end(&o->rx);
	assert_in_range(len, 1, u64_min(cap, REL_RX_ACK_BYTES));
	rel_rx_check(&o->rx);
	assert_int_equal(wire_ack_open(buf, (size_t)len, &a), 0);
	assert_int_equal(a.write_below, 42);
	assert_int_equal(a.nchannels, 2);
	while (wire_ack_next_window(&a, &win)) {
		uint32_t m = win.message - o->base;
		assert_true(m < MSGS && o->open[m]);
		assert_true((uint64_t)win.first + win.length <= o->npkts[m]);
		while (wire_ack_next_run(&win, &first, &n, &received)) {
			for (uint32_t k = first; k < first + n; k++) {
				assert_int_equal(has(o, m, k), received);
				if (o->told[m][k] < 255)
					o->told[m][k]++;
			}
		}
	}
	return len;
}

static void opening(void **state)
{
	(void)state;
	struct owner *o = owner_new(0, 20 * MS);
	struct rel_rx_want want;
	assert_int_equal(rel_rx_open(&o->rx, 1, 0), -EINVAL);
	assert_int_equal(rel_rx_open(&o->rx, 0xffffffffu, 100), 0);
	assert_int_equal(rel_rx_open(&o->rx, 0xffffffffu, 100), -EINVAL);
	assert_int_equal(rel_rx_open(&o->rx, 1, 100), 0);
	assert_int_equal(rel_rx_open(&o->rx, 0xffffffffu + REL_OPEN_SPAN, 1), -EAGAIN);
	assert_int_equal(rel_rx_end(&o->rx, 1, 101), -EINVAL);
	assert_int_equal(rel_rx_end(&o->rx, 1, 0), -EINVAL);
	assert_int_equal(rel_rx_end(&o->rx, 9, 1), -EINVAL);
	uint64_t word = 0x3f;
	assert_false(rel_rx_feed(&o->rx, 9, 0, &word, 1));
	rel_rx_dirty(&o->rx, 9);
	assert_false(rel_rx_feed(&o->rx, 1, 0, &word, 1));
	assert_int_equal(rel_rx_cum(&o->rx, 1), 6);
	assert_int_equal(rel_rx_end(&o->rx, 1, 5), -EINVAL); /* a sixth is there */
	assert_false(rel_rx_complete(&o->rx, 1));
	assert_int_equal(rel_rx_end(&o->rx, 1, 6), 0);
	assert_int_equal(rel_rx_end(&o->rx, 1, 7), -EINVAL);
	assert_true(rel_rx_complete(&o->rx, 1));
	assert_false(rel_rx_want_cum(&o->rx, 1, &want));
	assert_true(rel_rx_want_cum(&o->rx, 0xffffffffu, &want));
	rel_rx_check(&o->rx);
	rel_rx_close(&o->rx, 1);
	rel_rx_close(&o->rx, 1);
	rel_rx_check(&o->rx);
	owner_free(o);
}

/* Random arrival of everything, with ACKs of random size in between. */
static void acks_tell_the_truth(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct owner *o = owner_new((uint32_t)(0 - rng_below(&rng, 5)), 20 * MS);
		uint32_t left[MSGS], most = seed % 3 ? 700 : PKTS, open = 0;
		uint64_t total = 0;
		for (uint32_t m = 0; m < MSGS; m++) {
			o->npkts[m] = left[m] = 1 + (uint32_t)rng_below(&rng, most);
			assert_int_equal(rel_rx_open(&o->rx, o->base + m, o->npkts[m]), 0);
			assert_int_equal(rel_rx_end(&o->rx, o->base + m, o->npkts[m]), 0);
			o->open[m] = true;
			open++;
			total += left[m];
		}
		double keep = rng_unit(&rng);
		for (uint64_t step = 0; open; step++) {
			/* In order with holes first, then the holes. */
			uint32_t m = (uint32_t)rng_below(&rng, MSGS);
			for (uint32_t burst = 1 + (uint32_t)rng_below(&rng, 200); burst; burst--) {
				uint32_t k = (uint32_t)rng_below(&rng, o->npkts[m]);
				if (step < 2 * total / 100 && rng_unit(&rng) < keep)
					k = (uint32_t)(step * 100 + burst) % o->npkts[m];
				if (o->open[m] && !has(o, m, k))
					arrive(o, m, k);
			}
			o->now += rng_below(&rng, MS);
			if (rng_below(&rng, 2))
				ack(o, 360 + rng_below(&rng, 900));
			if (step > total) /* finish it */
				for (uint32_t k = 0; k < o->npkts[m]; k++)
					if (o->open[m] && !has(o, m, k))
						arrive(o, m, k);
			if (o->open[m] && completes(o, m)) {
				for (uint32_t k = 0; k < o->npkts[m]; k++)
					assert_true(has(o, m, k));
				rel_rx_close(&o->rx, o->base + m);
				o->open[m] = false;
				open--;
			}
		}
		owner_free(o);
	}
}

/* Each packet and each hole below the highest is told three times soon, then again. */
static void everything_is_told(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct owner *o = owner_new(100, 16 * MS);
		o->npkts[0] = PKTS;
		o->open[0] = true;
		assert_int_equal(rel_rx_open(&o->rx, 100, PKTS), 0);
		for (uint32_t k = 0; k < PKTS; k++) {
			if (rng_below(&rng, 100) || k == PKTS - 1)
				arrive(o, 0, k);
			if (k % 250 == 249) {
				o->now += MS / 4;
				ack(o, 1300);
			}
		}
		for (int i = 0; i < 12; i++) {
			o->now += 2 * MS;
			ack(o, 1300);
		}
		for (uint32_t k = 0; k < PKTS; k++)
			assert_true(o->told[0][k] >= REL_RX_TELLS);
		/* The holes fill: told in the very next ACK. */
		for (uint32_t k = 0; k < PKTS; k++) {
			if (!has(o, 0, k) && rng_below(&rng, 2))
				arrive(o, 0, k);
		}
		o->now += 2 * MS;
		for (int i = 0; i < 4; i++, o->now += MS)
			ack(o, 1300);
		for (uint32_t k = 0; k < PKTS; k++)
			assert_true(o->told[0][k] >= 1);
		/* Silence for long; then all of it is repeated, what is whole too. */
		memset(o->told, 0, sizeof(o->told));
		o->now += 5000 * MS;
		for (int i = 0; i < 10; i++, o->now += MS) {
			rel_rx_kick(&o->rx);
			ack(o, 1300);
		}
		for (uint32_t k = 0; k < PKTS; k++)
			assert_true(o->told[0][k] >= 1);
		owner_free(o);
	}
}

/* A message that was lost whole shows as one hole once a later one is seen. */
static void wholly_lost_message(void **state)
{
	(void)state;
	struct owner *o = owner_new(10, 20 * MS);
	for (uint32_t m = 0; m < 3; m++) {
		o->npkts[m] = 5000;
		o->open[m] = true;
		assert_int_equal(rel_rx_open(&o->rx, 10 + m, 5000), 0);
	}
	arrive(o, 0, 0);
	ack(o, 1300);
	assert_true(o->told[0][0] > 0);
	assert_int_equal(o->told[0][1], 0); /* the highest message: not beyond what came */
	arrive(o, 2, 70);
	for (int i = 0; i < 3; i++, o->now += 5 * MS)
		ack(o, 1300);
	assert_true(o->told[0][4999] > 0 && o->told[1][0] > 0 && o->told[1][4999] > 0);
	assert_true(o->told[2][70] >= 3 && o->told[2][0] > 0 && o->told[2][71] == 0);
	owner_free(o);
}

/* Far beyond the highest packet: found by looking further and further. */
static void beyond_a_gap(void **state)
{
	(void)state;
	struct owner *o = owner_new(0, 20 * MS);
	o->npkts[0] = PKTS;
	o->open[0] = true;
	assert_int_equal(rel_rx_open(&o->rx, 0, PKTS), 0);
	arrive(o, 0, 3);
	ack(o, 1300);
	arrive(o, 0, PKTS - 2);
	for (int i = 0; i < 8; i++) {
		rel_rx_dirty(&o->rx, 0);
		o->now += 2 * MS;
		ack(o, 1300);
	}
	assert_int_equal(rel_rx_high(&o->rx, 0), PKTS - 1);
	assert_true(o->told[0][PKTS - 2] > 0);
	owner_free(o);
}

static void when_due(void **state)
{
	(void)state;
	struct owner *o = owner_new(0, 16 * MS);
	struct rel_rx *rx = &o->rx;
	o->npkts[0] = PKTS;
	o->open[0] = true;
	assert_int_equal(rel_rx_open(rx, 0, PKTS), 0);
	assert_int_equal(rel_rx_ack_deadline(rx, o->now), UINT64_MAX);
	arrive(o, 0, 0); /* the first after a pause: at once */
	assert_true(rel_rx_ack_due(rx, o->now));
	ack(o, 1300);
	arrive(o, 0, 1); /* the next: a turn later */
	assert_int_equal(rel_rx_ack_deadline(rx, o->now), o->now + MS);
	for (uint32_t k = 2; k <= REL_RX_ACK_PKTS; k++) /* or with so many */
		arrive(o, 0, k);
	assert_true(rel_rx_ack_due(rx, o->now));
	ack(o, 1300);
	/* Two repeats, then silence. */
	uint64_t due = rel_rx_ack_deadline(rx, o->now);
	assert_in_range(due, o->now + MS, o->now + 2 * MS);
	o->now = due;
	ack(o, 1300);
	due = rel_rx_ack_deadline(rx, o->now);
	assert_int_equal(due, o->now + 4 * MS);
	o->now = due;
	ack(o, 1300);
	assert_int_equal(rel_rx_ack_deadline(rx, o->now), UINT64_MAX);
	rel_rx_kick(rx);
	assert_int_equal(rel_rx_ack_deadline(rx, o->now), o->now + MS);
	ack(o, 1300);
	/* 1 Mbit/s for ACKs: a hundred bytes and their headers take more than a turn. */
	rx->params.ack_bps = 1000000;
	for (uint32_t k = 300; k < 700; k++)
		arrive(o, 0, k);
	ack(o, 1300);
	for (uint32_t k = 700; k < 1100; k++)
		arrive(o, 0, k);
	due = rel_rx_ack_deadline(rx, o->now);
	assert_in_range(due, o->now + MS, o->now + 16 * MS);
	uint8_t small[256];
	assert_int_equal(rel_rx_ack_begin(rx, o->now, 0, NULL, 0, small, 255), -ENOSPC);
	owner_free(o);
}

static int left_to_fail, out_now;

static void *failing_zalloc(void *arg, size_t bytes)
{
	(void)arg;
	if (left_to_fail-- <= 0)
		return NULL;
	out_now++;
	return sdr_alloc_system.zalloc(sdr_alloc_system.arg, bytes);
}

static void counting_free(void *arg, void *p)
{
	(void)arg;
	out_now--;
	sdr_alloc_system.free(sdr_alloc_system.arg, p);
}

/* Without memory for what it knows it still completes and tells no lies. */
static void allocation_failures(void **state)
{
	(void)state;
	struct sdr_alloc alloc = {failing_zalloc, counting_free, NULL};
	for (int fail = 0; fail < 30; fail++) {
		struct owner *o = calloc(1, sizeof(*o));
		struct rel_rx_params p = {.rtt_ns = 20 * MS};
		left_to_fail = fail;
		out_now = 0;
		o->now = MS;
		if (rel_rx_init(&o->rx, &p, &alloc) < 0) {
			assert_int_equal(fail, 0);
			free(o);
			continue;
		}
		for (uint32_t m = 0; m < MSGS; m++) {
			o->npkts[m] = 10000;
			o->open[m] = rel_rx_open(&o->rx, m, o->npkts[m]) == 0;
			if (o->open[m])
				assert_int_equal(rel_rx_end(&o->rx, m, o->npkts[m]), 0);
		}
		for (uint32_t step = 0; step < 10000; step++) {
			uint32_t k = (step * 7919) % 10000;
			for (uint32_t m = 0; m < MSGS; m++)
				if (o->open[m])
					arrive(o, m, k);
			if (step % 100 == 0) {
				o->now += MS;
				ack(o, 1300);
			}
		}
		for (uint32_t m = 0; m < MSGS; m++)
			assert_int_equal(completes(o, m), o->open[m]);
		rel_rx_fini(&o->rx);
		assert_int_equal(out_now, 0);
		free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(acks_tell_the_truth),
		cmocka_unit_test(everything_is_told),
		cmocka_unit_test(wholly_lost_message),
		cmocka_unit_test(beyond_a_gap),
		cmocka_unit_test(when_due),
		cmocka_unit_test(allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
