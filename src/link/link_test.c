/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the link in virtual time: exact where it is exact, within bounds where it is random. */
#include "link/link.h"

#include "base/bits.h"
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define MILLION 1000000

static struct link make(const struct link_attr *attr, uint64_t seed)
{
	struct link l;

	assert_int_equal(link_init(&l, attr, seed), 0);
	return l;
}

static void test_nothing_set_is_a_wire(void **state)
{
	struct link l = make(&(struct link_attr){0}, 1);
	struct link_fate fate;

	(void)state;
	for (uint64_t now = 5; now < 10; now++) {
		assert_int_equal(link_offer(&l, now, 1500, &fate), 1);
		assert_int_equal(fate.deliver_ns[0], now);
		assert_int_equal(fate.lost, LINK_LOST_NOT);
		assert_false(fate.ce || fate.corrupt);
	}
	assert_int_equal(link_queued_bytes(&l, 10), 0);
	link_check(&l);
}

/* 1500 bytes at 7 Gbit/s take 1714 + 2/7 ns: after n packets exactly ceil(n * 12000 / 7). */
static void test_rate_does_not_drift(void **state)
{
	const struct link_attr attr = {.rate_bps = 7000000000, .delay_ns = 25 * NS_PER_MS};
	struct link l = make(&attr, 1);
	struct link_fate fate;

	(void)state;
	for (uint64_t n = 1; n <= MILLION; n++) {
		assert_int_equal(link_offer(&l, 100, 1500, &fate), 1);
		if (fate.deliver_ns[0] != 100 + 25 * NS_PER_MS + u64_div_up(n * 12000, 7))
			fail_msg("packet %llu", (unsigned long long)n);
	}
	assert_int_equal(link_queued_bytes(&l, 100), UINT64_C(1500) * MILLION);
	assert_int_equal(link_queued_bytes(&l, l.busy_ns + 1), 0);
	link_check(&l);
}

static void test_idle_link_starts_afresh(void **state)
{
	struct link l = make(&(struct link_attr){.rate_bps = 8000000000, .delay_ns = 10}, 1);
	struct link_fate fate;

	(void)state;
	link_offer(&l, 0, 1000, &fate);
	assert_int_equal(fate.deliver_ns[0], 1010);
	link_offer(&l, 500, 1000, &fate); /* waits for the first */
	assert_int_equal(fate.deliver_ns[0], 2010);
	link_offer(&l, 5000, 1000, &fate);
	assert_int_equal(fate.deliver_ns[0], 6010);
	link_offer(&l, 10, 1000, &fate); /* time does not go back */
	assert_int_equal(fate.deliver_ns[0], 7010);
}

static void test_queue_overflows_and_drains(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .queue_bytes = 3000};
	struct link l = make(&attr, 1);
	struct link_fate fate;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(link_offer(&l, 0, 1000, &fate), 1);
	assert_int_equal(link_offer(&l, 0, 1, &fate), 0);
	assert_int_equal(fate.lost, LINK_LOST_QUEUE);
	assert_int_equal(link_queued_bytes(&l, 0), 3000);
	assert_int_equal(link_offer(&l, 999, 1000, &fate), 0); /* one byte still there */
	assert_int_equal(link_offer(&l, 1000, 1000, &fate), 1);
	assert_int_equal(fate.deliver_ns[0], 4000); /* the lost ones took no time */
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_QUEUE], 2);
	assert_int_equal(l.counters.offered_pkts, 6);
	link_check(&l);
}

static void test_long_queue_marks(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .ecn_bytes = 2000};
	struct link l = make(&attr, 1);
	struct link_fate fate;

	(void)state;
	for (int i = 0; i < 4; i++) {
		link_offer(&l, 0, 1000, &fate);
		assert_int_equal(fate.ce, i >= 2);
	}
	link_offer(&l, 3000, 1000, &fate);
	assert_false(fate.ce);
	assert_int_equal(l.counters.marked_pkts, 2);
}

struct bursts {
	uint64_t lost, bursts;
};

static struct bursts measure(const struct link_attr *attr, uint64_t seed)
{
	struct link l = make(attr, seed);
	struct bursts b = {0};
	struct link_fate fate;
	bool before = false;

	for (uint64_t n = 0; n < MILLION; n++) {
		bool lost = !link_offer(&l, n, 1500, &fate);

		assert_int_equal(lost, fate.lost == LINK_LOST_RANDOM);
		b.lost += lost;
		b.bursts += lost && !before;
		before = lost;
	}
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_RANDOM], b.lost);
	link_check(&l);
	return b;
}

/* |x - mean| within five standard deviations. */
static void assert_near(double x, double mean, double deviation)
{
	if (fabs(x - mean) > 5 * deviation)
		fail_msg("%g is not %g +- %g", x, mean, 5 * deviation);
}

static void test_iid_loss(void **state)
{
	static const double ratios[] = {1e-4, 1e-2, 0.5};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(ratios); i++) {
		double p = ratios[i];
		struct link_attr attr = {.loss = link_ge_iid(p)};
		struct bursts b = measure(&attr, 17 + i);

		assert_near((double)b.lost, p * MILLION, sqrt(p * (1 - p) * MILLION));
		assert_near((double)b.bursts, p * (1 - p) * MILLION, sqrt(p * (1 - p) * MILLION));
	}
	assert_int_equal(measure(&(struct link_attr){.loss = link_ge_iid(1)}, 1).lost, MILLION);
}

static void test_gilbert_elliott(void **state)
{
	static const double cases[][2] = {{1e-3, 8}, {1e-2, 20}, {0.2, 3}};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		double p = cases[i][0], burst = cases[i][1], number = p * MILLION / burst;
		struct link_attr attr = {0};
		struct bursts b;

		assert_int_equal(link_ge_mean(p, burst, &attr.loss), 0);
		assert_near(link_ge_ratio(&attr.loss), p, 1e-12);
		b = measure(&attr, 99 + i);
		/* A geometric burst deviates by about its mean; so does the gap before it. */
		assert_near((double)b.lost, p * MILLION, burst * sqrt(2 * number));
		assert_near((double)b.lost / (double)b.bursts, burst, burst / sqrt(number));
	}
}

static void test_helper_refuses_the_impossible(void **state)
{
	struct link_ge ge;

	(void)state;
	assert_int_equal(link_ge_mean(1.0, 4, &ge), -EINVAL);
	assert_int_equal(link_ge_mean(-0.1, 4, &ge), -EINVAL);
	assert_int_equal(link_ge_mean(0.1, 0.5, &ge), -EINVAL);
	assert_int_equal(link_ge_mean(0.9, 2, &ge), -ERANGE);
	assert_int_equal(link_ge_mean(0.0, 1, &ge), 0);
	assert_near(link_ge_ratio(&ge), 0, 1e-12);
}

static void test_drop_list_is_exact(void **state)
{
	static const uint64_t drop[] = {0, 3, 4, 63, 1000};
	const struct link_attr attr = {.rate_bps = 8000000000, .drop = drop, .n_drop = 5};
	struct link l = make(&attr, 1);
	struct link_fate fate;
	size_t k = 0;

	(void)state;
	for (uint64_t n = 0; n < 2000; n++) {
		bool listed = k < 5 && drop[k] == n;

		assert_int_equal(link_offer(&l, 0, 100, &fate), !listed);
		assert_int_equal(fate.lost, listed ? LINK_LOST_LIST : LINK_LOST_NOT);
		if (!listed) /* a lost packet has used the link */
			assert_int_equal(fate.deliver_ns[0], (n + 1) * 100);
		k += listed;
	}
	assert_int_equal(l.counters.lost_pkts[LINK_LOST_LIST], 5);
	/* The list counts from where it was set. */
	assert_int_equal(link_attr_set(&l, 0, &attr), 0);
	assert_int_equal(link_offer(&l, 0, 100, &fate), 0);
	assert_int_equal(link_offer(&l, 0, 100, &fate), 1);
	assert_int_equal(l.counters.offered_pkts, 2002);
}

static void test_blackout(void **state)
{
	static const struct link_blackout dark[] = {{100, 200}, {200, 210}, {300, 301}};
	struct link l = make(&(struct link_attr){.blackout = dark, .n_blackout = 3}, 1);
	struct link_fate fate;

	(void)state;
	for (uint64_t now = 0; now < 400; now++) {
		bool lost = (now >= 100 && now < 210) || now == 300;

		assert_int_equal(link_offer(&l, now, 100, &fate), !lost);
		assert_int_equal(fate.lost, lost ? LINK_LOST_BLACKOUT : LINK_LOST_NOT);
	}
	/* It is the time of leaving the queue that counts. */
	l = make(&(struct link_attr){.rate_bps = 8000000000, .blackout = dark, .n_blackout = 1}, 1);
	assert_int_equal(link_offer(&l, 0, 99, &fate), 1);
	assert_int_equal(link_offer(&l, 0, 1, &fate), 0);
	assert_int_equal(link_offer(&l, 199, 1, &fate), 1);
}

static void test_jitter_keeps_order_unless_told(void **state)
{
	struct link_attr attr = {.delay_ns = 1000, .jitter_ns = 500};
	struct link l = make(&attr, 3);
	struct link_fate fate;
	uint64_t last = 0, overtaken = 0;

	(void)state;
	for (uint64_t now = 0; now < 100000; now += 10) {
		link_offer(&l, now, 100, &fate);
		assert_in_range(fate.deliver_ns[0], now + 1000, now + 1500);
		assert_true(fate.deliver_ns[0] >= last);
		last = fate.deliver_ns[0];
	}
	assert_int_equal(l.counters.reordered_pkts, 0);
	attr.jitter_reorders = true;
	l = make(&attr, 3);
	last = 0;
	for (uint64_t now = 0; now < 100000; now += 10) {
		link_offer(&l, now, 100, &fate);
		assert_in_range(fate.deliver_ns[0], now + 1000, now + 1500);
		overtaken += fate.deliver_ns[0] < last;
		last = u64_max(last, fate.deliver_ns[0]);
	}
	assert_true(overtaken > 1000);
	assert_int_equal(l.counters.reordered_pkts, overtaken);
}

static void test_reordering_duplication_corruption(void **state)
{
	const struct link_attr attr = {.delay_ns = 1000,
				       .reorder_p = 0.1,
				       .reorder_ns = 77,
				       .duplicate_p = 0.2,
				       .duplicate_ns = 5,
				       .corrupt_p = 0.3};
	struct link l = make(&attr, 5);
	uint64_t late = 0, twice = 0, corrupt = 0, ones = 0;
	struct link_fate fate;

	(void)state;
	for (uint64_t n = 0; n < 100000; n++) {
		int copies = link_offer(&l, n * 1000, 125, &fate);

		assert_int_equal(copies, fate.copies);
		assert_true(copies >= 1);
		late += fate.deliver_ns[0] == n * 1000 + 1077;
		if (fate.copies == 2)
			assert_int_equal(fate.deliver_ns[1], fate.deliver_ns[0] + 5);
		twice += fate.copies == 2;
		if (!fate.corrupt)
			continue;
		corrupt++;
		assert_true(fate.corrupt_bit < 1000);
		ones += fate.corrupt_bit < 500;
	}
	assert_near((double)late, 1e4, 95);
	assert_near((double)twice, 2e4, 127);
	assert_near((double)corrupt, 3e4, 145);
	assert_near((double)ones, 1.5e4, 120);
	assert_int_equal(l.counters.duplicated_pkts, twice);
	assert_int_equal(l.counters.corrupted_pkts, corrupt);
	assert_int_equal(l.counters.delivered_pkts, 100000);
}

static void test_a_seed_replays(void **state)
{
	struct link_attr attr = {.rate_bps = 1000000007,
				 .delay_ns = 1000,
				 .jitter_ns = 300,
				 .jitter_reorders = true,
				 .queue_bytes = 20000,
				 .reorder_p = 0.01,
				 .reorder_ns = 4000,
				 .duplicate_p = 0.01,
				 .corrupt_p = 0.01};
	struct link a, b, c;
	unsigned int differ = 0;

	(void)state;
	assert_int_equal(link_ge_mean(0.05, 4, &attr.loss), 0);
	a = make(&attr, 42);
	b = make(&attr, 42);
	c = make(&attr, 43);
	for (uint64_t now = 0; now < 100000000; now += 9000) {
		struct link_fate fa, fb, fc;

		link_offer(&a, now, 1500, &fa);
		link_offer(&b, now, 1500, &fb);
		link_offer(&c, now, 1500, &fc);
		assert_int_equal(fa.copies, fb.copies);
		assert_int_equal(fa.lost, fb.lost);
		assert_int_equal(fa.deliver_ns[0], fb.deliver_ns[0]);
		assert_int_equal(fa.deliver_ns[1], fb.deliver_ns[1]);
		assert_int_equal(fa.corrupt_bit, fb.corrupt_bit);
		differ += fa.deliver_ns[0] != fc.deliver_ns[0];
	}
	assert_memory_equal(&a.counters, &b.counters, sizeof(a.counters));
	assert_true(differ > 100);
	link_check(&a);
}

static void test_attributes_are_checked(void **state)
{
	static const uint64_t unsorted[] = {3, 3};
	static const struct link_blackout overlap[] = {{0, 10}, {9, 20}};
	const struct link_attr bad[] = {
		{.loss = {.p_gb = 1.5}},
		{.reorder_p = -0.1},
		{.corrupt_p = NAN},
		{.drop = unsorted, .n_drop = 2},
		{.blackout = overlap, .n_blackout = 2},
	};
	struct link l;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++)
		assert_int_equal(link_init(&l, &bad[i], 1), -EINVAL);
	assert_int_equal(link_init(&l, &(struct link_attr){.rate_bps = UINT64_MAX}, 1), -ERANGE);
	assert_int_equal(link_init(&l, &(struct link_attr){.delay_ns = UINT64_MAX}, 1), -ERANGE);
}

static void test_rate_changes_under_way(void **state)
{
	struct link l = make(&(struct link_attr){.rate_bps = 8000000000}, 1);
	struct link_fate fate;

	(void)state;
	link_offer(&l, 0, 1000, &fate);
	assert_int_equal(link_attr_set(&l, 500, &(struct link_attr){.rate_bps = 800000000}), 0);
	link_offer(&l, 500, 1000, &fate);
	assert_int_equal(fate.deliver_ns[0], 1000 + 10000);
	assert_int_equal(link_attr_set(&l, 600, &(struct link_attr){0}), 0);
	link_offer(&l, 600, 1000, &fate); /* still behind the ones before it */
	assert_int_equal(fate.deliver_ns[0], 11000);
	link_check(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_set_is_a_wire),
		cmocka_unit_test(test_rate_does_not_drift),
		cmocka_unit_test(test_idle_link_starts_afresh),
		cmocka_unit_test(test_queue_overflows_and_drains),
		cmocka_unit_test(test_long_queue_marks),
		cmocka_unit_test(test_iid_loss),
		cmocka_unit_test(test_gilbert_elliott),
		cmocka_unit_test(test_helper_refuses_the_impossible),
		cmocka_unit_test(test_drop_list_is_exact),
		cmocka_unit_test(test_blackout),
		cmocka_unit_test(test_jitter_keeps_order_unless_told),
		cmocka_unit_test(test_reordering_duplication_corruption),
		cmocka_unit_test(test_a_seed_replays),
		cmocka_unit_test(test_attributes_are_checked),
		cmocka_unit_test(test_rate_changes_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
