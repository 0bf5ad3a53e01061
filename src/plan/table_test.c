/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What table.h promises: rows that are the rule's where it is free, against the study's tables
 * and against a slow way to find them; the budget at every size; when there is no parity, and
 * why; drift; sentences. table_grid_test.c asks what the rows are good for.
 */
#include "plan/table.h"

#include "base/bits.h"
#include "base/rng.h"
#include "plan/choose.h"
#include "plan/hybrid.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define PACKET 4096u

static struct plan_table table; /* large */

static const struct plan_table *make(double gbit, double rtt_ms, double loss, double burst,
				     bool sure)
{
	struct plan_link link = {gbit * 1e9, rtt_ms * 1e-3, loss, burst};

	assert_int_equal(plan_table_make(&link, sure, PACKET, false, &table), 0);
	return &table;
}

static struct plan_table_row fit(const struct plan_table *t, uint64_t pkts)
{
	struct plan_table_row row;

	plan_table_fit(t, pkts, &row);
	return row;
}

/* The study's table at 400 Gbit/s, 25 ms: m, depth, W, copies of its sizes and losses. */
static void test_study(void **state)
{
	static const double losses[] = {1e-5, 1e-3, 1e-2, 5e-2};
	static const struct {
		double burst;
		uint32_t mib, depth, m[4];
	} study[] = {
		{1, 1, 2, {2, 5, 10, 24}},	{1, 16, 4, {2, 5, 10, 24}},
		{1, 128, 4, {2, 5, 10, 24}},	{1, 1024, 4, {2, 5, 10, 24}},
		{1, 8192, 4, {2, 5, 10, 24}},	{8, 16, 32, {3, 5, 10, 22}},
		{8, 128, 32, {3, 5, 10, 22}},	{8, 1024, 32, {3, 5, 10, 22}},
		{8, 8192, 32, {3, 5, 10, 22}},	{64, 128, 256, {2, 4, 9, 20}},
		{64, 1024, 256, {2, 4, 9, 20}}, {64, 8192, 256, {2, 4, 9, 21}},
	};
	static const uint32_t copies[] = {2, 3, 4, 6};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(study); i++) {
		for (int l = 0; l < 4; l++) {
			uint64_t pkts = study[i].mib * UINT64_C(256), span = u64_min(pkts, 305176);
			struct plan_table_row row;

			row = fit(make(400, 25, losses[l], study[i].burst, true), pkts);
			assert_true(row.coded && row.fresh);
			assert_int_equal(row.copies, copies[l]);
			assert_int_equal(row.span, span);
			/* At least, and no more than there are blocks; few groups are even. */
			assert_true(row.depth >= study[i].depth ||
				    row.depth == u64_div_up(span, row.k));
			if (study[i].depth >= PLAN_TABLE_DEPTH_LEAST && row.k == HYBRID_K)
				assert_int_equal(row.depth, study[i].depth);
			if (row.k <= HYBRID_K) {
				assert_int_equal(row.k, HYBRID_K);
				/* The text of the study's rule asks for a little more than its
				 * table, and tails for up to two units more than that. */
				assert_in_range(row.m, study[i].m[l], study[i].m[l] + 5);
			} else { /* longer blocks, where that is less parity */
				assert_true(row.m <= 4);
				assert_true(row.m * u64_div_up(span, row.k) <
					    (study[i].m[l] + 2) * u64_div_up(span, HYBRID_K));
			}
		}
	}
}

/* m of a row by the rule's parts, nothing shared with other rows. */
static void check_row(const struct plan_link *link, uint64_t pkts, const struct plan_table_row *row)
{
	struct plan_job job = {PACKET, PACKET, PACKET};
	struct hybrid_span s = {.n = pkts};
	double fail[HYBRID_M_MAX + 1];
	uint32_t by_rule;
	struct units u;

	units_init(&u, link, &job);
	s.rtt = u.rtt_slots;
	s.blocks = (uint32_t)u64_div_up(row->span, row->k);
	s.depth = row->depth;
	s.early = s.blocks - (s.blocks % s.depth ? s.blocks % s.depth : s.depth);
	burst_block_fail(&u.burst, row->k, 64, s.depth, fail);
	by_rule = hybrid_parity(&s, &u.burst, fail, row->why == PLAN_WHY_BUDGET ? row->m : 64);
	if (row->m == by_rule)
		return;
	/* More than the rule's: as many as take failures out of sight. */
	assert_true(row->m > by_rule);
	assert_true(hybrid_any_fails(&s, &u.burst, fail, row->m) <= PLAN_TABLE_RARE);
	assert_true(hybrid_any_fails(&s, &u.burst, fail, row->m - 1) > PLAN_TABLE_RARE);
}

static void test_rule(void **state)
{
	static const double losses[] = {1e-5, 1e-3, 1e-2}, bursts[] = {1, 3, 20};
	static const double rtts_ms[] = {25, 2, 0.2};
	int coded = 0;

	(void)state;
	for (int i = 0; i < 27; i++) {
		double rtt_ms = rtts_ms[i / 9];
		const struct plan_table *t =
			make(100, rtt_ms, losses[i % 3], bursts[i / 3 % 3], true);

		for (uint32_t r = 0; r < PLAN_TABLE_ROWS; r++) {
			if (!t->row[r].coded)
				continue;
			coded++;
			check_row(&t->link, UINT64_C(1) << r, &t->row[r]);
		}
	}
	assert_true(coded > 400);
}

static uint64_t parity_of(const struct plan_table_row *row)
{
	return row->coded ? row->m * u64_div_up(row->span, row->k) : 0;
}

static void check_fit(const struct plan_table *t, uint64_t pkts)
{
	struct plan_table_row row = fit(t, pkts);
	double most = t->link.loss < PLAN_TABLE_CLEAN_LOSS ? PLAN_TABLE_CLEAN_OVERHEAD
							   : PLAN_TABLE_OVERHEAD_MAX;

	assert_true(row.copies >= 1 && row.gap_pkts >= 1);
	if (!row.coded) {
		assert_int_equal(row.m, 0);
		return;
	}
	assert_true(row.k >= 1 && row.m >= 1 && row.k + row.m <= 255);
	assert_true(row.span >= 1 && row.span <= pkts);
	assert_true(row.depth >= 1 && row.depth <= u64_div_up(row.span, row.k));
	if (pkts > PLAN_TABLE_FEW_PKTS)
		assert_true((double)parity_of(&row) <= most * (double)pkts);
	else
		assert_true(parity_of(&row) <= u64_max(pkts, PLAN_TABLE_FEW_PARITY));
}

/* No message of any size on any link has more than the budget, or what no block can have. */
static void test_budget(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int i = 0; i < 300; i++) {
		struct plan_link link = {
			.bw_bps = pow(10, 7 + 5 * rng_unit(&rng)),
			.rtt_s = pow(10, -5 + 4 * rng_unit(&rng)),
			.loss = i % 10 ? pow(10, -8 + 7.9 * rng_unit(&rng)) : 0,
			.burst_pkts = i % 3 ? pow(10, 3 * rng_unit(&rng)) : 1,
		};
		bool sure = rng_unit(&rng) < 0.5;

		link.burst_pkts = fmax(link.burst_pkts, 1 + link.loss / (1 - link.loss));
		assert_int_equal(plan_table_make(&link, sure, PACKET, false, &table), 0);
		for (int j = 0; j < 60; j++) {
			uint64_t pkts = (uint64_t)pow(2, 32 * rng_unit(&rng));

			check_fit(&table, u64_max(pkts, 1));
			check_fit(&table, (uint64_t)j + 1);
		}
	}
}

/* A message between two rows has blocks of one size, and the larger row's strength. */
static void test_fit(void **state)
{
	const struct plan_table *t = make(400, 25, 1e-2, 1, true);
	struct plan_table_row row = fit(t, 300);

	(void)state;
	assert_ptr_equal(plan_table_find(t, 1), &t->row[0]);
	assert_ptr_equal(plan_table_find(t, 256), &t->row[8]);
	assert_ptr_equal(plan_table_find(t, 257), &t->row[9]);
	assert_ptr_equal(plan_table_find(t, UINT64_C(1) << 40), &t->row[32]);
	assert_int_equal(row.k, 100);
	assert_int_equal(row.depth, 3);
	assert_int_equal(row.span, 300);
	assert_int_equal(row.m, t->row[9].m);
	/* Many messages of one block hold no more blocks than that. */
	assert_int_equal(fit(t, 100).depth, 1);
	assert_int_equal(fit(t, 100).k, 100);
}

/* Nobody waits for what one in two thousand messages loses. */
static void test_rare(void **state)
{
	struct plan_table_row row;

	(void)state;
	/* 256 packets, 1.8e-6 of loss: 4.6e-4; 2.2e-6: 5.6e-4. */
	row = fit(make(400, 25, 1.8e-6, 1, true), 256);
	assert_true(!row.coded && row.why == PLAN_WHY_RARE);
	row = fit(make(400, 25, 2.2e-6, 1, true), 256);
	assert_true(row.coded && row.why == PLAN_WHY_MODEL && row.m <= 2);
	/* In bursts of 8 it is rarer, if it is so; an estimate may be wrong there. */
	row = fit(make(400, 25, 1e-5, 8, true), 256);
	assert_true(!row.coded && row.why == PLAN_WHY_RARE);
	row = fit(make(400, 25, 1e-5, 8, false), 256);
	assert_true(row.coded);
	/* Only what no resend brings in time counts: the last round trip. */
	row = fit(make(10, 1, 1e-6, 1, true), UINT64_C(1) << 30);
	assert_true(!row.coded && row.why == PLAN_WHY_RARE);
	for (uint32_t r = 0; r < PLAN_TABLE_ROWS; r++)
		assert_true(!make(400, 25, 0, 1, true)->row[r].coded);
}

/* A clean link carries a hundredth, in blocks as long as that needs. */
static void test_clean(void **state)
{
	struct plan_table_row row = fit(make(400, 25, 9e-7, 1, true), 262144);

	(void)state;
	assert_true(row.coded && row.m >= 1 && parity_of(&row) <= 2621);
	row = fit(make(400, 25, 9e-7, 16, false), 262144);
	assert_true(row.coded && row.m == 2 && row.k > 200);
}

static void test_hopeless_and_short(void **state)
{
	struct plan_table_row row = fit(make(100, 25, 0.5, 1, true), 65536);

	(void)state;
	assert_true(!row.coded && row.why == PLAN_WHY_HOPELESS && row.copies > 10);
	/* Bursts that are longer than the message's parity. */
	row = fit(make(10, 1, 1e-3, 500, true), 256);
	assert_true(!row.coded && row.why == PLAN_WHY_HOPELESS);
	/* 3 packets fit into a round trip. */
	row = fit(make(1, 0.1, 1e-2, 1, true), 1 << 20);
	assert_true(!row.coded && row.why == PLAN_WHY_SHORT);
	/* 1 MiB in bursts of 64 wants as much again. */
	row = fit(make(400, 25, 1e-2, 64, true), 256);
	assert_true(row.coded && row.why == PLAN_WHY_BUDGET && row.m > 30);
}

/* What repairs would take is kept from the budget, up to a third of it. */
static void test_repairs(void **state)
{
	struct plan_table_row row = fit(make(400, 25, 1e-2, 64, true), 256);

	(void)state;
	assert_in_range(row.m, 35, 37); /* of 38 */
	row = fit(make(10, 1, 5e-2, 64, true), 256);
	assert_in_range(row.m, 26, 30);
}

/* A path that may lose packets one by one is safe from that, whatever bursts do to it. */
static void test_singles(void **state)
{
	struct plan_table_row row = fit(make(10, 1, 2e-5, 500, true), 256);

	(void)state;
	assert_false(row.coded);
	row = fit(make(10, 1, 2e-5, 500, false), 256);
	assert_true(row.coded);
	assert_in_range(row.m, 1, 2);
}

/* No group is short where there are few. */
static void test_groups(void **state)
{
	(void)state;
	for (uint64_t pkts = 32768; pkts < 100000; pkts *= 2) {
		struct plan_table_row row = fit(make(400, 25, 9e-7, 16, false), pkts);
		uint64_t blocks = u64_div_up(pkts, row.k), short_by;

		assert_true(row.coded && row.k > HYBRID_K && row.depth < blocks);
		short_by = u64_div_up(blocks, row.depth) * row.depth - blocks;
		assert_true(short_by * 8 < row.depth);
	}
}

/* Some packets: parity where a copy saves a round trip, never more than there is data. */
static void test_few(void **state)
{
	const struct plan_table *t = make(100, 25, 1e-2, 1, true);

	(void)state;
	assert_true(fit(t, 1).coded && fit(t, 1).k == 1);
	for (uint64_t n = 1; n <= PLAN_TABLE_FEW_PKTS; n++)
		assert_in_range(parity_of(&(struct plan_table_row[]){fit(t, n)}[0]), 1,
				u64_max(n, PLAN_TABLE_FEW_PARITY));
	/* A burst takes all copies of one packet: they would be in vain. */
	assert_false(fit(make(100, 25, 1e-3, 64, true), 1).coded);
}

static void test_margins(void **state)
{
	const struct plan_table *t = make(100, 25, 1e-2, 8, true);
	struct plan_job job = {PACKET, PACKET, PACKET};
	struct plan_table_row row = {.copies = 3};
	struct units u;

	(void)state;
	units_init(&u, &t->link, &job);
	plan_table_margins(&t->link, PACKET, &row);
	assert_int_equal(row.gap_pkts, hybrid_gap(&u.burst, 3, u.rtt_slots));
	for (uint32_t i = 0; i < PLAN_TABLE_MARGINS; i++) {
		double gap = (double)hybrid_gap(&u.burst, 1u << i, u.rtt_slots);

		assert_int_equal(row.margin[i],
				 hybrid_margin(&u.burst, 1u << i, gap, 20, u.rtt_slots));
		assert_int_equal(row.margin[i], t->row[12].margin[i]);
	}
	assert_true(row.margin[0] > 0);
}

/* Row for row what the rules of thumb say. */
static void test_policy(void **state)
{
	static const struct plan_link links[] = {
		{100e9, 0.030, 1e-3, 1},
		{100e9, 0.030, 1e-6, 1},
		{100e9, 0.001, 1e-3, 1},
		{100e9, 0.001, 0.1, 1},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(links); i++) {
		assert_int_equal(plan_table_make(&links[i], true, PACKET, true, &table), 0);
		for (uint32_t r = 0; r < PLAN_TABLE_ROWS; r++) {
			struct plan_job job = {(uint64_t)PACKET << r, PACKET, PACKET};
			struct plan_table_row row = fit(&table, UINT64_C(1) << r);
			struct plan_params p;
			enum plan_rule rule = plan_policy_table(&links[i], &job, &p);

			assert_true(row.why == PLAN_WHY_POLICY && row.rule == rule);
			assert_int_equal(row.coded, p.scheme == PLAN_EC);
			if (!row.coded)
				continue;
			assert_true(row.k == p.k && row.m == p.m && !row.fresh);
			assert_int_equal(row.span, UINT64_C(1) << r);
		}
	}
}

static void test_drift(void **state)
{
	struct plan_link was = {100e9, 0.025, 1e-3, 16}, now;

	(void)state;
	assert_int_equal(plan_table_make(&was, false, PACKET, false, &table), 0);
	now = was;
	assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_NONE);
	now.loss = 1.9e-3;
	assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_NONE);
	now.loss = 2.1e-3;
	assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_UP);
	now.loss = 0.4e-3;
	assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_DOWN);
	now.burst_pkts = 25; /* better in one thing and worse in another is worse */
	assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_UP);
	for (int i = 0; i < 3; i++) {
		for (int up = 0; up < 2; up++) {
			double *field[] = {&now.bw_bps, &now.rtt_s, &now.burst_pkts};

			now = was;
			*field[i] *= up ? 1.4 : 1 / 1.4;
			assert_int_equal(plan_table_drift(&table, &now), PLAN_DRIFT_NONE);
			*field[i] *= up ? 1.1 : 1 / 1.1;
			assert_int_equal(plan_table_drift(&table, &now),
					 up ? PLAN_DRIFT_UP : PLAN_DRIFT_DOWN);
		}
	}
	/* Below what anybody sees, links are alike. */
	was.loss = 0;
	assert_int_equal(plan_table_make(&was, false, PACKET, false, &table), 0);
	was.loss = 1e-9;
	assert_int_equal(plan_table_drift(&table, &was), PLAN_DRIFT_NONE);
	was.loss = 1e-5;
	assert_int_equal(plan_table_drift(&table, &was), PLAN_DRIFT_UP);
}

static void says(const struct plan_table *t, uint64_t pkts, const char *want)
{
	char text[PLAN_TABLE_SAY], cut[20];

	assert_int_equal(plan_table_say(t, pkts, text, sizeof text), (int)strlen(want));
	assert_string_equal(text, want);
	assert_int_equal(plan_table_say(t, pkts, cut, sizeof cut), (int)strlen(want));
	assert_int_equal(strlen(cut), sizeof cut - 1);
	assert_memory_equal(cut, want, sizeof cut - 1);
}

static void test_say(void **state)
{
	struct plan_link far = {100e9, 0.030, 1e-3, 1};

	(void)state;
	says(make(400, 25, 1e-3, 8, true), 32768,
	     "loss 1.0e-03 in bursts of 8, 25.0 ms, 400 Gbit/s, 32768 packets: (128,5) on all, "
	     "depth 32, late resends 3 times: an exposed round trip costs more");
	says(make(400, 25, 9.96e-3, 1, true), 1 << 20,
	     "loss 1.0e-02, 25.0 ms, 400 Gbit/s, 1048576 packets: (128,10) on the last 305176, "
	     "depth 16, late resends 4 times: an exposed round trip costs more");
	says(make(10, 1, 0, 1, true), 1,
	     "loss 0, 1.00 ms, 10.0 Gbit/s, 1 packet: no parity: hardly any loses a packet too "
	     "late");
	assert_int_equal(plan_table_make(&far, true, PACKET, true, &table), 0);
	says(&table, 100,
	     "loss 1.0e-03, 30.0 ms, 100 Gbit/s, 100 packets: (16,4) on all: rule for 10 ms and "
	     "1e-4");
}

static void test_invalid(void **state)
{
	struct plan_link link = {100e9, 0.025, 1e-3, 1};

	(void)state;
	assert_int_equal(plan_table_make(&link, true, 0, false, &table), -EINVAL);
	link.loss = 1;
	assert_int_equal(plan_table_make(&link, true, PACKET, false, &table), -EINVAL);
	link.loss = NAN;
	assert_int_equal(plan_table_make(&link, true, PACKET, false, &table), -EINVAL);
	link = (struct plan_link){100e9, 1000, 1e-3, 1};
	assert_int_equal(plan_table_make(&link, true, 64, false, &table), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_study),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_rare),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_hopeless_and_short),
		cmocka_unit_test(test_repairs),
		cmocka_unit_test(test_singles),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_margins),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_say),
		cmocka_unit_test(test_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
