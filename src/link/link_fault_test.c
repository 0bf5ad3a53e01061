/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's gates, schedules and live changes, to the packet: policer, MTU, cut, limits in
 * time, outages, flaps, link_attr_set(), and values at the ends of their ranges.
 */
#include "link/link.h"

#include "base/bits.h"
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define GBIT8 UINT64_C(8000000000) /* a byte a nanosecond */
#define LIMIT (UINT64_C(1) << 62)

static struct link make(const struct link_attr *attr)
{
	struct link l;

	assert_int_equal(link_init(&l, attr, 7), 0);
	return l;
}

/* The fate of one packet. */
static enum link_loss offer(struct link *l, uint64_t now, uint32_t bytes, uint64_t *at)
{
	struct link_fate fate;

	link_offer(l, now, bytes, &fate);
	link_check(l);
	if (at)
		*at = fate.copies ? fate.deliver_ns[0] : 0;
	return fate.lost;
}

static void set(struct link *l, uint64_t now, const struct link_attr *attr)
{
	assert_int_equal(link_attr_set(l, now, attr), 0);
	link_check(l);
}

static void test_cut_and_back(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8, .delay_ns = 50};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	assert_int_equal(offer(&l, 0, 1000, &at), LINK_LOST_NOT);
	attr.cut = true;
	set(&l, 10, &attr);
	for (int i = 0; i < 5; i++)
		assert_int_equal(offer(&l, 20, 1000, NULL), LINK_LOST_CUT);
	attr.cut = false;
	set(&l, 30, &attr);
	assert_int_equal(offer(&l, 40, 1000, &at), LINK_LOST_NOT);
	assert_int_equal(at, 2050); /* the cut ones took no time, the first one still does */
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_CUT], 5);
	assert_int_equal(l.counters.delivered_pkts, 2);
}

static void test_mtu_is_exact(void **state)
{
	struct link_attr attr = {.mtu_bytes = 1500};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1500, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1501, NULL), LINK_LOST_MTU);
	assert_int_equal(offer(&l, 0, UINT32_MAX, NULL), LINK_LOST_MTU);
	assert_int_equal(offer(&l, 0, 0, NULL), LINK_LOST_NOT);
	attr.mtu_bytes = 1280;
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 1281, NULL), LINK_LOST_MTU);
	attr.mtu_bytes = 0;
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, UINT32_MAX, NULL), LINK_LOST_NOT);
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_MTU], 3);
}

static void test_policer_burst_and_refill(void **state)
{
	struct link_attr attr = {.policer = {.rate_bps = GBIT8, .burst_bytes = 3000}};
	struct link l = make(&attr);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(offer(&l, 1000, 1000, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 1000, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(offer(&l, 1000, 0, NULL), LINK_LOST_NOT); /* needs no token */
	assert_int_equal(offer(&l, 1999, 1000, NULL), LINK_LOST_POLICER);
	assert_int_equal(offer(&l, 2000, 1000, NULL), LINK_LOST_NOT); /* the lost took none */
	assert_int_equal(offer(&l, 2000, 1, NULL), LINK_LOST_POLICER);
	/* However long it idles, a burst is what there is. */
	assert_int_equal(offer(&l, LIMIT, 3001, NULL), LINK_LOST_POLICER);
	assert_int_equal(offer(&l, LIMIT, 3000, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, LIMIT, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(offer(&l, UINT64_MAX, 3000, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, UINT64_MAX, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_POLICER], 6);
}

/* At 7 Gbit/s a byte takes 8/7 ns: in n bytes' time exactly n bytes pass, for ever. The burst
 * has a byte to spare, or what refills between two nanoseconds would run over. */
static void test_policer_does_not_drift(void **state)
{
	struct link_attr attr = {.policer = {.rate_bps = 7000000000, .burst_bytes = 1501}};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1500, NULL), LINK_LOST_NOT);
	for (uint64_t n = 1; n <= 200000; n++) {
		uint64_t refilled = u64_div_up((n * 1500 - 1) * 8, 7);

		assert_int_equal(offer(&l, refilled - 1, 1500, NULL), LINK_LOST_POLICER);
		assert_int_equal(offer(&l, refilled, 1500, NULL), LINK_LOST_NOT);
	}
}

static void test_policer_comes_before_the_queue(void **state)
{
	struct link_attr attr = {.policer = {.rate_bps = GBIT8, .burst_bytes = 3000},
				 .rate_bps = GBIT8,
				 .queue_bytes = 1000};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_QUEUE); /* its tokens are gone */
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_POLICER);
	attr.mtu_bytes = 900;
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_MTU); /* before the policer */
	attr.cut = true;
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_CUT); /* before the MTU */
}

static void test_policer_changes_live(void **state)
{
	struct link_attr attr = {.policer = {.rate_bps = GBIT8, .burst_bytes = 1000}};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1000, NULL), LINK_LOST_NOT);
	attr.delay_ns = 5; /* the policer goes on as it is */
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_POLICER);
	attr.policer.burst_bytes = 2000; /* another bucket, full */
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 2000, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_POLICER);
	attr.policer.rate_bps = 0;
	attr.policer.burst_bytes = 0;
	set(&l, 0, &attr);
	for (int i = 0; i < 100; i++)
		assert_int_equal(offer(&l, 0, 100000, NULL), LINK_LOST_NOT);
}

/* At 7 Gbit/s 2100 ns hold 1837.5 bytes: 1837 fit, 1838 do not. */
static void test_queue_in_time(void **state)
{
	struct link_attr attr = {.rate_bps = 7000000000, .queue_ns = 2100};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1838, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 0, 1837, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_QUEUE);
	/* 8/7 ns a byte, and half a byte was free: a byte fits after 4/7 ns, so at 1. */
	assert_int_equal(offer(&l, 1, 1, NULL), LINK_LOST_NOT);
	/* The tighter one counts. */
	attr.queue_bytes = 1000;
	set(&l, 1000000, &attr);
	assert_int_equal(offer(&l, 1000000, 1001, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 1000000, 1000, NULL), LINK_LOST_NOT);
	attr.queue_bytes = 1900;
	set(&l, 2000000, &attr);
	assert_int_equal(offer(&l, 2000000, 1838, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 2000000, 1837, NULL), LINK_LOST_NOT);
}

static bool marks(struct link *l, uint64_t now, uint32_t bytes)
{
	struct link_fate fate;

	assert_int_equal(link_offer(l, now, bytes, &fate), 1);
	return fate.ce;
}

static void test_marks_in_time(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8, .ecn_ns = 2000};
	struct link l = make(&attr);

	(void)state;
	assert_false(marks(&l, 0, 2000));
	assert_true(marks(&l, 0, 1));
	assert_false(marks(&l, 1001, 1000));
	attr.ecn_bytes = 500;
	set(&l, 10000, &attr);
	assert_false(marks(&l, 10000, 500));
	assert_true(marks(&l, 10000, 1));
	attr.ecn_bytes = 5000;
	set(&l, 20000, &attr);
	assert_false(marks(&l, 20000, 2000));
	assert_true(marks(&l, 20000, 1));
	/* The same length of queue in time is another one in bytes at another rate. */
	attr.rate_bps = GBIT8 / 10;
	set(&l, 40000, &attr);
	assert_false(marks(&l, 40000, 200));
	assert_true(marks(&l, 40000, 1));
	assert_int_equal(l.counters.marked_pkts, 4);
}

/* 0 switches marks off, and on again, while the queue stays as it is. */
static void test_marks_change_live(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8, .ecn_bytes = 500};
	struct link l = make(&attr);

	(void)state;
	for (int i = 0; i < 4; i++) {
		attr.ecn_bytes = i == 0 ? 500 : 0;
		attr.ecn_ns = i == 2 ? 500 : 0;
		set(&l, 0, &attr);
		assert_int_equal(marks(&l, 0, 1000), i % 2 == 0);
	}
	assert_int_equal(l.counters.marked_pkts, 2);
	assert_int_equal(link_queued_bytes(&l, 0), 4000);
}

static void test_outages_come_again(void **state)
{
	struct link_attr attr = {.outage = {.first_ns = 100, .every_ns = 50, .for_ns = 20}};
	struct link l = make(&attr);
	uint64_t lost = 0;

	(void)state;
	for (uint64_t now = 0; now < 1000; now++) {
		bool out = now >= 100 && (now - 100) % 50 < 20;

		assert_int_equal(offer(&l, now, 100, NULL),
				 out ? LINK_LOST_BLACKOUT : LINK_LOST_NOT);
		lost += out;
		/* A change of something else leaves their phase alone. */
		if (now % 37 == 0) {
			attr.delay_ns = now;
			set(&l, now, &attr);
		}
	}
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_BLACKOUT], lost);
	/* Far ahead the phase is still the same. */
	assert_int_equal(offer(&l, 100 + 50 * UINT64_C(1000000000000) + 19, 1, NULL),
			 LINK_LOST_BLACKOUT);
	assert_int_equal(offer(&l, 100 + 50 * UINT64_C(1000000000000) + 20, 1, NULL),
			 LINK_LOST_NOT);
	attr.outage = (struct link_periodic){.first_ns = 1, .every_ns = 50, .for_ns = 49};
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 50 * UINT64_C(1000000000009), 1, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 50 * UINT64_C(1000000000009) + 1, 1, NULL), LINK_LOST_BLACKOUT);
	attr.outage = (struct link_periodic){0};
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 50 * UINT64_C(1000000000009) + 2, 1, NULL), LINK_LOST_NOT);
}

/* It is the time of leaving the queue that counts, and an outage takes the link's time. */
static void test_outage_counts_departures(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8,
				 .outage = {.first_ns = 100, .every_ns = 1000, .for_ns = 100}};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	assert_int_equal(offer(&l, 0, 99, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_BLACKOUT);  /* leaves at 100 */
	assert_int_equal(offer(&l, 0, 99, NULL), LINK_LOST_BLACKOUT); /* at 199 */
	assert_int_equal(offer(&l, 0, 1, &at), LINK_LOST_NOT);
	assert_int_equal(at, 200);
}

static void test_a_flap_is_a_longer_route(void **state)
{
	const struct link_attr attr = {.delay_ns = 1000,
				       .flap = {.first_ns = 100, .every_ns = 100, .for_ns = 40},
				       .flap_delay_ns = 30};
	struct link l = make(&attr);
	uint64_t late = 0, latest = 0;

	(void)state;
	for (uint64_t now = 0; now < 1000; now++) {
		bool longer = now >= 100 && now % 100 < 40;
		uint64_t at;

		assert_int_equal(offer(&l, now, 100, &at), LINK_LOST_NOT);
		assert_int_equal(at, now + 1000 + (longer ? 30 : 0));
		late += at < latest;
		latest = u64_max(latest, at);
	}
	/* Those of the 29 ns after each step down overtake the last of the longer route. */
	assert_int_equal(late, 9 * 29);
	assert_int_equal(l.counters.reordered_pkts, late);
}

/* Jitter keeps the order within each route, also across the other one's turn. */
static void test_order_is_kept_on_each_route(void **state)
{
	const struct link_attr attr = {.delay_ns = 1000,
				       .jitter_ns = 500,
				       .flap = {.first_ns = 50, .every_ns = 100, .for_ns = 50},
				       .flap_delay_ns = 2000};
	struct link l = make(&attr);
	uint64_t last[2] = {0, 0}, overtaken = 0, latest = 0;

	(void)state;
	for (uint64_t now = 0; now < 20000; now++) {
		bool longer = now % 100 >= 50;
		uint64_t at, base = now + (longer ? 3000 : 1000);

		assert_int_equal(offer(&l, now, 100, &at), LINK_LOST_NOT);
		assert_true(at >= base);
		assert_true(at <= u64_max(base + 500, last[longer]));
		assert_true(at >= last[longer]);
		last[longer] = at;
		overtaken += at < latest;
		latest = u64_max(latest, at);
	}
	assert_int_equal(l.counters.reordered_pkts, overtaken);
	assert_true(overtaken > 9000);
}

static void test_flap_changes_live(void **state)
{
	struct link_attr attr = {.delay_ns = 1000,
				 .flap = {.first_ns = 0, .every_ns = 100, .for_ns = 99},
				 .flap_delay_ns = 500};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	offer(&l, 10, 1, &at);
	assert_int_equal(at, 1510);
	attr.flap_delay_ns = 100;
	set(&l, 20, &attr);
	offer(&l, 20, 1, &at); /* overtakes */
	assert_int_equal(at, 1120);
	attr.flap = (struct link_periodic){0};
	set(&l, 30, &attr);
	offer(&l, 30, 1, &at);
	assert_int_equal(at, 1030);
	assert_int_equal(l.counters.reordered_pkts, 2);
}

static void test_delay_changes_live(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8, .delay_ns = 10000, .jitter_ns = 1};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	offer(&l, 0, 100, &at);
	assert_in_range(at, 10100, 10101);
	attr.delay_ns = 100;
	set(&l, 50, &attr);
	offer(&l, 50, 100, &at); /* behind the first in the queue, before it at the end */
	assert_in_range(at, 300, 301);
	attr.delay_ns = 10000;
	set(&l, 60, &attr);
	offer(&l, 60, 100, &at);
	assert_in_range(at, 10300, 10301);
	/* A change of something else keeps the order. */
	attr.jitter_ns = 5000;
	set(&l, 60, &attr);
	for (uint64_t last = at, i = 0; i < 100; i++, last = at) {
		attr.jitter_ns = 5000 - i * 50;
		set(&l, 60, &attr);
		offer(&l, 60, 1, &at);
		assert_true(at >= last);
	}
	assert_int_equal(l.counters.reordered_pkts, 1);
}

/* Both routes' order begins anew, the one that is not taken now too. */
static void test_delay_changes_live_on_both_routes(void **state)
{
	struct link_attr attr = {.delay_ns = 10000,
				 .flap = {.first_ns = 50, .every_ns = 100, .for_ns = 50},
				 .flap_delay_ns = 500};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	offer(&l, 0, 1, &at);
	assert_int_equal(at, 10000);
	offer(&l, 50, 1, &at);
	assert_int_equal(at, 10550);
	attr.delay_ns = 1000;
	set(&l, 60, &attr);
	offer(&l, 60, 1, &at);
	assert_int_equal(at, 1560);
	offer(&l, 110, 1, &at);
	assert_int_equal(at, 1110);
}

/* reorder_ns 0: some may overtake by their jitter; those that do not overtake nobody. */
static void test_who_may_overtake(void **state)
{
	const struct link_attr never = {.delay_ns = 1000, .jitter_ns = 500};
	struct link_attr attr = never;
	struct link l;
	uint64_t at, latest = 0, overtook = 0, draws[2] = {0};

	(void)state;
	attr.reorder_p = 0.5;
	l = make(&attr);
	for (uint64_t now = 0; now < 20000; now++) {
		struct rng before = l.rng;
		bool may;

		assert_int_equal(offer(&l, now, 100, &at), LINK_LOST_NOT);
		(void)rng_below(&before, attr.jitter_ns + 1);
		may = rng_unit(&before) < attr.reorder_p;
		draws[may]++;
		assert_true(may || at >= latest);
		overtook += at < latest;
		latest = u64_max(latest, at);
	}
	assert_in_range(draws[0], 9000, 11000);
	assert_true(overtook > 5000);
	assert_int_equal(l.counters.reordered_pkts, overtook);
}

/* A clock that goes back stands still: it fills no bucket and empties no queue. */
static void test_time_never_goes_back(void **state)
{
	const struct link_attr attr = {.policer = {.rate_bps = 8000, .burst_bytes = 1000},
				       .rate_bps = GBIT8,
				       .delay_ns = 5};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	assert_int_equal(offer(&l, NS_PER_S, 1000, &at), LINK_LOST_NOT);
	assert_int_equal(at, NS_PER_S + 1005);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_POLICER);
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, NS_PER_S / 2, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(link_queued_bytes(&l, 0), 1000);
	assert_int_equal(offer(&l, NS_PER_S + NS_PER_MS, 1, &at), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(l.now_ns, NS_PER_S + NS_PER_MS);
}

/* What is queued leaves at the old rate and counts as the bytes that it is. */
static void test_queue_over_changes_of_rate(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8, .queue_bytes = 10000};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	assert_int_equal(offer(&l, 0, 8000, NULL), LINK_LOST_NOT);
	attr.rate_bps = 100 * GBIT8;
	set(&l, 1000, &attr);
	assert_int_equal(link_queued_bytes(&l, 1000), 7000);
	assert_int_equal(offer(&l, 1000, 3001, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 1000, 3000, &at), LINK_LOST_NOT);
	assert_int_equal(at, 8030);
	assert_int_equal(link_queued_bytes(&l, 2000), 9000);
	assert_int_equal(link_queued_bytes(&l, 8000), 3000);
	assert_int_equal(link_queued_bytes(&l, 8010), 2000);
	/* A second change while both are there: the sum is right, the end is kept. */
	attr.rate_bps = GBIT8 / 1000;
	set(&l, 2000, &attr);
	assert_int_equal(link_queued_bytes(&l, 2000), 9000);
	assert_int_equal(link_queued_bytes(&l, 8030), 0);
	assert_int_equal(offer(&l, 2000, 1001, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 2000, 1000, &at), LINK_LOST_NOT);
	assert_int_equal(at, 8030 + 1000000);
	assert_int_equal(link_queued_bytes(&l, 8030), 1000);
	attr.rate_bps = 0;
	set(&l, 8030, &attr);
	assert_int_equal(link_queued_bytes(&l, 8030), 1000);
	assert_int_equal(offer(&l, 8030, 100000, &at), LINK_LOST_NOT); /* no queue of its own */
	assert_int_equal(at, 1008030);
	attr.rate_bps = GBIT8;
	set(&l, 2000000, &attr);
	assert_int_equal(link_queued_bytes(&l, 2000000), 0);
}

static void test_queue_limit_changes_live(void **state)
{
	struct link_attr attr = {.rate_bps = GBIT8};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 5000, NULL), LINK_LOST_NOT);
	attr.queue_bytes = 1000; /* what is in stays */
	set(&l, 0, &attr);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_QUEUE);
	assert_int_equal(link_queued_bytes(&l, 0), 5000);
	assert_int_equal(offer(&l, 4000, 1, NULL), LINK_LOST_QUEUE);
	assert_int_equal(offer(&l, 4001, 1, NULL), LINK_LOST_NOT);
}

/* The new process is stationary at once: half of the first packets are lost, not none. */
static void test_loss_changes_live(void **state)
{
	struct link_attr attr = {.loss = {.p_gb = 1e-9, .p_bg = 1e-9, .loss_bad = 1}};
	unsigned int lost = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct link l;

		assert_int_equal(link_init(&l, &(struct link_attr){0}, seed), 0);
		set(&l, 0, &attr);
		lost += offer(&l, 0, 1, NULL) == LINK_LOST_RANDOM;
		/* The same values again: the state goes on. */
		for (int i = 0; i < 20; i++) {
			enum link_loss before = l.bad ? LINK_LOST_RANDOM : LINK_LOST_NOT;

			set(&l, 0, &attr);
			assert_int_equal(offer(&l, 0, 1, NULL), before);
		}
		set(&l, 0, &(struct link_attr){0});
		assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_NOT);
	}
	assert_in_range(lost, 500 - 80, 500 + 80);
}

static void test_lists_change_live(void **state)
{
	static const uint64_t drop[] = {1};
	static const struct link_blackout dark[] = {{100, 110}, {200, 210}};
	struct link_attr attr = {.drop = drop, .n_drop = 1, .blackout = dark, .n_blackout = 2};
	struct link l = make(&attr);

	(void)state;
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_NOT);
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_LIST);
	assert_int_equal(offer(&l, 105, 1, NULL), LINK_LOST_BLACKOUT);
	set(&l, 106, &attr);
	assert_int_equal(offer(&l, 109, 1, NULL), LINK_LOST_BLACKOUT);
	assert_int_equal(offer(&l, 110, 1, NULL), LINK_LOST_LIST);
	assert_int_equal(offer(&l, 205, 1, NULL), LINK_LOST_BLACKOUT);
	attr.n_blackout = 0;
	attr.n_drop = 0;
	set(&l, 205, &attr);
	for (int i = 0; i < 4; i++)
		assert_int_equal(offer(&l, 206, 1, NULL), LINK_LOST_NOT);
}

static void test_contradictions_are_refused(void **state)
{
	static const struct link_blackout back[] = {{10, 5}};
	const struct link_attr bad[] = {
		{.outage = {.first_ns = 1, .every_ns = 10}},
		{.outage = {.first_ns = 1, .every_ns = 10, .for_ns = 10}},
		{.outage = {.every_ns = 10, .for_ns = UINT64_MAX}},
		{.outage = {.for_ns = 5}},
		{.flap = {.every_ns = 10}},
		{.flap = {.every_ns = 10, .for_ns = 11}},
		{.flap = {.for_ns = 1}},
		{.policer = {.rate_bps = 1}},
		{.n_drop = 1},
		{.n_blackout = 1},
		{.blackout = back, .n_blackout = 1},
	};
	const struct link_attr good[] = {
		{.outage = {.every_ns = 10, .for_ns = 9}},
		{.flap = {.first_ns = 5}},
		{.flap_delay_ns = 5},
		{.policer = {.burst_bytes = 1}},
		{.queue_bytes = 1},
		{.ecn_ns = 1},
	};
	struct link l = make(&(struct link_attr){.delay_ns = 3});
	uint64_t at;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++) {
		assert_int_equal(link_attr_check(&bad[i]), -EINVAL);
		assert_int_equal(link_attr_set(&l, 5, &bad[i]), -EINVAL);
	}
	for (size_t i = 0; i < SDR_ARRAY_LEN(good); i++)
		assert_int_equal(link_attr_check(&good[i]), 0);
	offer(&l, 0, 1, &at);
	assert_int_equal(at, 3); /* nothing of them came in */
}

/* Offsets of all that is limited by 2^62. */
static const size_t limited[] = {
	offsetof(struct link_attr, policer.rate_bps),
	offsetof(struct link_attr, policer.burst_bytes),
	offsetof(struct link_attr, rate_bps),
	offsetof(struct link_attr, delay_ns),
	offsetof(struct link_attr, jitter_ns),
	offsetof(struct link_attr, queue_bytes),
	offsetof(struct link_attr, queue_ns),
	offsetof(struct link_attr, ecn_bytes),
	offsetof(struct link_attr, ecn_ns),
	offsetof(struct link_attr, reorder_ns),
	offsetof(struct link_attr, duplicate_ns),
	offsetof(struct link_attr, outage.first_ns),
	offsetof(struct link_attr, outage.every_ns),
	offsetof(struct link_attr, flap.first_ns),
	offsetof(struct link_attr, flap.every_ns),
	offsetof(struct link_attr, flap_delay_ns),
	offsetof(struct link_attr, burst_idle_ns),
	offsetof(struct link_attr, burst_slot_ns),
};

static void test_values_out_of_range_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(limited); i++) {
		const uint64_t values[] = {LIMIT - 1, LIMIT, UINT64_MAX};

		for (size_t k = 0; k < SDR_ARRAY_LEN(values); k++) {
			struct link_attr attr = {
				.policer = {.burst_bytes = 1},
				.outage = {.every_ns = 2, .for_ns = 1},
				.flap = {.every_ns = 2, .for_ns = 1},
			};

			memcpy((uint8_t *)&attr + limited[i], &values[k], sizeof(values[k]));
			assert_int_equal(link_attr_check(&attr), k ? -ERANGE : 0);
		}
	}
}

/* All at the largest value, at the largest time: it never arrives, and nothing wraps. */
static void test_the_largest_values_do_not_wrap(void **state)
{
	static const uint64_t times[] = {0, 1, LIMIT, UINT64_MAX - 1, UINT64_MAX, 5};
	struct link_attr attr = {.duplicate_p = 1, .reorder_p = 0.5, .corrupt_p = 1};
	const uint64_t most = LIMIT - 1;
	struct link l;
	struct link_fate fate;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(limited); i++)
		memcpy((uint8_t *)&attr + limited[i], &most, sizeof(most));
	attr.outage.first_ns = 0;
	attr.outage.for_ns = 1;
	attr.flap.for_ns = most - 1;
	for (int slow = 0; slow < 2; slow++) {
		attr.rate_bps = slow ? 1 : most;
		attr.policer.rate_bps = slow ? 1 : most;
		l = make(&attr);
		for (size_t i = 0; i < SDR_ARRAY_LEN(times); i++) {
			for (int k = 0; k < 100; k++) {
				link_offer(&l, times[i], UINT32_MAX, &fate);
				link_check(&l);
				for (uint32_t c = 0; c < fate.copies; c++)
					assert_true(fate.deliver_ns[c] >= times[i] &&
						    fate.deliver_ns[c] >= attr.delay_ns);
				(void)link_queued_bytes(&l, times[i]);
			}
			attr.rate_bps = most;
			set(&l, times[i], &attr);
			assert_true(link_queued_bytes(&l, times[i]) >= 1 || l.busy_ns <= l.now_ns);
			attr.rate_bps = slow ? 1 : most;
			set(&l, times[i], &attr);
		}
	}
}

/* Packets of 4 GiB at 1 bit/s: work does not fit 64 bits, the sum of it is still exact. */
static void test_the_largest_packets_are_exact(void **state)
{
	struct link_attr attr = {.rate_bps = 16};
	struct link l = make(&attr);
	uint64_t at;

	(void)state;
	assert_int_equal(offer(&l, 0, UINT32_MAX, &at), LINK_LOST_NOT);
	assert_int_equal(at, UINT64_C(4294967295) * (NS_PER_S / 2));
	assert_int_equal(link_queued_bytes(&l, 0), UINT32_MAX);
	attr.rate_bps = 1;
	attr.policer = (struct link_policer){.rate_bps = 1, .burst_bytes = UINT32_MAX};
	l = make(&attr);
	assert_int_equal(offer(&l, 0, UINT32_MAX, &at), LINK_LOST_NOT);
	assert_int_equal(at, UINT64_MAX); /* never */
	assert_int_equal(offer(&l, 0, 1, NULL), LINK_LOST_POLICER);
	assert_int_equal(offer(&l, 8 * NS_PER_S - 1, 1, NULL), LINK_LOST_POLICER);
}

/* How often the fate changes from one packet to the next, gap_ns apart. */
static double changes(uint64_t burst_idle_ns, uint64_t gap_ns)
{
	/* Half of them lost, 100 in a row. */
	struct link_attr attr = {.loss = {.p_gb = 0.01, .p_bg = 0.01, .loss_bad = 1},
				 .burst_idle_ns = burst_idle_ns};
	unsigned int n = 20000, changed = 0;
	struct link_fate fate;
	struct link l;
	bool last = false;

	assert_int_equal(link_init(&l, &attr, 7), 0);
	for (unsigned int i = 0; i < n; i++) {
		bool now = link_offer(&l, (i + 1) * gap_ns, 1500, &fate) > 0;

		changed += i && now != last;
		last = now;
	}
	link_check(&l);
	return (double)changed / (double)n;
}

/* A burst does not wait for the next packet: a lone resend has a chance of its own. */
static void test_bursts_pass_with_idle_time(void **state)
{
	(void)state;
	assert_true(fabs(changes(0, NS_PER_S) - 0.01) < 0.003);
	assert_true(fabs(changes(1000, 999) - 0.01) < 0.003);
	assert_true(fabs(changes(1000, 1000) - 0.5) < 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bursts_pass_with_idle_time),
		cmocka_unit_test(test_cut_and_back),
		cmocka_unit_test(test_mtu_is_exact),
		cmocka_unit_test(test_policer_burst_and_refill),
		cmocka_unit_test(test_policer_does_not_drift),
		cmocka_unit_test(test_policer_comes_before_the_queue),
		cmocka_unit_test(test_policer_changes_live),
		cmocka_unit_test(test_queue_in_time),
		cmocka_unit_test(test_marks_in_time),
		cmocka_unit_test(test_marks_change_live),
		cmocka_unit_test(test_outages_come_again),
		cmocka_unit_test(test_outage_counts_departures),
		cmocka_unit_test(test_a_flap_is_a_longer_route),
		cmocka_unit_test(test_order_is_kept_on_each_route),
		cmocka_unit_test(test_flap_changes_live),
		cmocka_unit_test(test_delay_changes_live),
		cmocka_unit_test(test_delay_changes_live_on_both_routes),
		cmocka_unit_test(test_who_may_overtake),
		cmocka_unit_test(test_time_never_goes_back),
		cmocka_unit_test(test_queue_over_changes_of_rate),
		cmocka_unit_test(test_queue_limit_changes_live),
		cmocka_unit_test(test_loss_changes_live),
		cmocka_unit_test(test_lists_change_live),
		cmocka_unit_test(test_contradictions_are_refused),
		cmocka_unit_test(test_values_out_of_range_are_refused),
		cmocka_unit_test(test_the_largest_values_do_not_wrap),
		cmocka_unit_test(test_the_largest_packets_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
