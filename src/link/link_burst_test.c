/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts that last in time (burst_slot_ns): the process that steps by packets where a line is
 * never idle, and what theory says of it where it is.
 */
#include "link/link.h"

#include "base/bits.h"
#include "base/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define OFFERS 200000u
#define SLOT_NS 82u /* 4160 bytes at 406.25 Gbit/s take 81.92 ns */
#define LINE_BPS 406250000000u
#define FULL_BYTES 4160u

static struct link make(const struct link_attr *attr, uint64_t seed)
{
	struct link l;

	assert_int_equal(link_init(&l, attr, seed), 0);
	return l;
}

static bool lost(struct link *l, uint64_t now_ns, uint32_t bytes)
{
	struct link_fate fate;

	return link_offer(l, now_ns, bytes, &fate) == 0;
}

/* |x - p| of n trials within five standard deviations; `grouped`: trials that go together. */
static void assert_share(double x, double p, double n, double grouped)
{
	double most = 5 * sqrt(p * (1 - p) * grouped / n) + 1e-12;

	if (fabs(x - p) > most)
		fail_msg("%g is not %g +- %g", x, p, most);
}

/* Of a line that is never idle each packet has the same fate, small ones between full ones too. */
static void test_a_busy_line_loses_as_by_packet(void **state)
{
	struct link_attr attr = {.rate_bps = LINE_BPS};
	struct link by_packet, by_slot;
	unsigned int gone = 0;

	(void)state;
	assert_int_equal(link_ge_mean(0.02, 8, &attr.loss), 0);
	by_packet = make(&attr, 5);
	attr.burst_slot_ns = SLOT_NS;
	by_slot = make(&attr, 5);
	for (unsigned int i = 0; i < OFFERS; i++) {
		uint32_t bytes = i % 7 == 3 ? 80 : FULL_BYTES;
		bool expected = lost(&by_packet, 0, bytes);

		assert_int_equal(lost(&by_slot, 0, bytes), expected);
		gone += expected;
	}
	link_check(&by_slot);
	assert_share(gone / (double)OFFERS, 0.02, OFFERS, 2 * 8);
}

/* How often fates differ from one packet to the next, gap_ns apart. */
static double changes(const struct link_attr *attr, uint64_t gap_ns, double *loss)
{
	struct link l = make(attr, gap_ns + 3);
	unsigned int changed = 0, gone = 0;
	bool before = lost(&l, gap_ns, FULL_BYTES);

	for (unsigned int i = 2; i <= OFFERS; i++) {
		bool now = lost(&l, i * gap_ns, FULL_BYTES);

		changed += now != before;
		gone += now;
		before = now;
	}
	link_check(&l);
	*loss = gone / (double)OFFERS;
	return changed / (double)OFFERS;
}

/* The chance that the state is another one n slots later, step by step. */
static double change_after(const struct link_ge *ge, uint64_t n)
{
	double bad_of_good = 0, good_of_bad = 0, bad = ge->p_gb / (ge->p_gb + ge->p_bg);

	for (uint64_t i = 0; i < n; i++) {
		bad_of_good += (1 - bad_of_good) * ge->p_gb - bad_of_good * ge->p_bg;
		good_of_bad += (1 - good_of_bad) * ge->p_bg - good_of_bad * ge->p_gb;
	}
	return (1 - bad) * bad_of_good + bad * good_of_bad;
}

/* A process that all but alternates, too: what it remembers changes its sign with each slot. */
static const struct link_ge processes[] = {
	{.p_gb = 0.01, .p_bg = 0.01, .loss_bad = 1},
	{.p_gb = 0.02, .p_bg = 0.125, .loss_bad = 1},
	{.p_gb = 0.95, .p_bg = 0.85, .loss_bad = 1},
};

static void test_bursts_pass_slot_by_slot(void **state)
{
	static const uint64_t slots[] = {1, 2, 3, 10, 64, 1000};

	(void)state;
	for (size_t p = 0; p < SDR_ARRAY_LEN(processes); p++) {
		for (size_t i = 0; i < SDR_ARRAY_LEN(slots); i++) {
			struct link_attr attr = {.loss = processes[p], .burst_slot_ns = SLOT_NS};
			double loss, x = changes(&attr, slots[i] * SLOT_NS, &loss);

			assert_share(x, change_after(&processes[p], slots[i]), OFFERS, 2);
			assert_share(loss, link_ge_ratio(&processes[p]), OFFERS, 200);
		}
	}
}

/* A second later nothing is left of it, and it takes no longer to find that out. */
static void test_long_after_losses_are_independent(void **state)
{
	(void)state;
	for (size_t p = 0; p < SDR_ARRAY_LEN(processes); p++) {
		struct link_attr attr = {.loss = processes[p], .burst_slot_ns = 1};
		double share = link_ge_ratio(&processes[p]), loss;
		double x = changes(&attr, NS_PER_S, &loss);

		assert_share(x, 2 * share * (1 - share), OFFERS, 2);
		assert_share(loss, share, OFFERS, 1);
	}
}

/* Parts of a slot add up: of five packets 1.6 slots apart three are two steps after the last. */
static void test_parts_of_a_slot_add_up(void **state)
{
	const struct link_ge *ge = &processes[0];
	struct link_attr attr = {.loss = *ge, .burst_slot_ns = 10};
	double loss, x = changes(&attr, 16, &loss);

	(void)state;
	assert_share(x, 0.4 * change_after(ge, 1) + 0.6 * change_after(ge, 2), OFFERS, 2);
}

/* What was before burst_slot_ns was set is no idle time, nor is what was before it was changed. */
static void test_the_slot_changes_live(void **state)
{
	struct link_attr attr = {.loss = {.p_gb = 1e-9, .p_bg = 1e-9, .loss_bad = 1}};
	struct link l = make(&attr, 8);
	bool first = lost(&l, 0, FULL_BYTES);

	(void)state;
	for (uint64_t now = 0; now < 1000 * NS_PER_S; now += NS_PER_S)
		assert_int_equal(lost(&l, now, FULL_BYTES), first);
	attr.burst_slot_ns = 1;
	assert_int_equal(link_attr_set(&l, 1000 * NS_PER_S, &attr), 0);
	link_check(&l);
	/* The last packet was a second ago: a billion slots, after which it is even chances. */
	for (unsigned int same = 0, i = 0; i < 64; i++) {
		same += lost(&l, (1000 + i) * NS_PER_S, FULL_BYTES) == first;
		assert_true(i < 63 || same < 63);
	}
	first = lost(&l, 1063 * NS_PER_S, FULL_BYTES);
	attr.burst_slot_ns = 0;
	assert_int_equal(link_attr_set(&l, 1063 * NS_PER_S, &attr), 0);
	for (uint64_t now = 1063; now < 2000; now++)
		assert_int_equal(lost(&l, now * NS_PER_S, FULL_BYTES), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_busy_line_loses_as_by_packet),
		cmocka_unit_test(test_bursts_pass_slot_by_slot),
		cmocka_unit_test(test_long_after_losses_are_independent),
		cmocka_unit_test(test_parts_of_a_slot_add_up),
		cmocka_unit_test(test_the_slot_changes_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
