/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing: ranks, what wins where everybody knows who should, the stretched closed form
 * against the simulation that it stands for, the rules of thumb row by row.
 */
#include "plan/choose.h"

#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void choose(double loss, double burst, uint64_t bytes, enum plan_goal goal,
		   struct plan_choice *out)
{
	struct plan_link link = {400e9, 0.025, loss, burst};
	struct plan_job job = {bytes, 4096, 4096};
	struct plan_options options = {.seed = 1, .samples = burst > 1 ? 300 : 0};

	assert_int_equal(plan_choose(&link, &job, goal, &options, &sdr_alloc_system, out), 0);
}

static const struct plan_choice *of(const struct plan_choice *list, enum plan_scheme scheme)
{
	for (int i = 0; i < PLAN_CHOICES; i++) {
		if (list[i].params.scheme == scheme)
			return &list[i];
	}
	fail();
	return NULL;
}

/* Each scheme once, times rising but for what parity may cost, nobody below the limit. */
static void test_ranks(void **state)
{
	static const double losses[] = {0, 1e-5, 1e-3, 0.05};

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct plan_choice c[PLAN_CHOICES];
		uint64_t bytes = UINT64_C(1) << (12 + 5 * (i / 4));

		choose(losses[i % 4], i & 8 ? 8 : 1, bytes, (enum plan_goal)(i % 3), c);
		for (int s = 0; s < PLAN_SCHEMES; s++)
			of(c, (enum plan_scheme)s);
		for (int r = 0; r < PLAN_CHOICES; r++) {
			assert_true(c[r].result.mean_s > 0 && c[r].memory_bytes > 0);
			assert_true(c[r].result.p50_s >= c[r].result.lossless_s * (1 - 1e-6));
			assert_true(r == 0 || c[r].goal_s >= c[r - 1].goal_s * 0.9);
		}
	}
}

/* 128 MiB at 1e-3: codes win, NACK before a timer. 64 GiB at 1e-8: nobody needs a code. */
static void test_winners(void **state)
{
	struct plan_choice c[PLAN_CHOICES];

	(void)state;
	choose(1e-3, 1, 128 << 20, PLAN_FOR_P999, c);
	assert_int_equal(c[0].params.scheme, PLAN_HYBRID);
	assert_int_equal(c[PLAN_CHOICES - 1].params.scheme, PLAN_SR);
	assert_true(of(c, PLAN_EC)->goal_s < 1.1 * c[0].result.lossless_s);
	assert_true(of(c, PLAN_SR)->goal_s > 6 * c[0].result.lossless_s);
	assert_true(of(c, PLAN_SR_NACK)->goal_s < of(c, PLAN_SR)->goal_s);
	choose(1e-8, 1, UINT64_C(64) << 30, PLAN_FOR_MEAN, c);
	assert_true(of(c, PLAN_SR_NACK)->goal_s < of(c, PLAN_EC)->goal_s);
	choose(0, 1, 128 << 20, PLAN_FOR_MEAN, c);
	assert_true(c[0].params.scheme == PLAN_SR || c[0].params.scheme == PLAN_SR_NACK ||
		    c[0].params.scheme == PLAN_HYBRID);
	assert_true(c[0].result.overhead == 0);
	/* Bursts: a code without depth would lose. */
	choose(1e-3, 64, 128 << 20, PLAN_FOR_P99, c);
	assert_int_equal(c[0].params.scheme, PLAN_HYBRID);
	assert_int_equal(of(c, PLAN_EC)->params.depth, 256);
}

/* The closed form with stretched first sends stands for the serialised simulation. */
static void test_stretch(void **state)
{
	static const double losses[] = {1e-3, 0.01, 0.05};

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct plan_link link = {100e9, 0.005, losses[i % 3], 1};
		struct plan_job job = {UINT64_C(1) << 30, 4096, 4096};
		struct plan_options options = {PLAN_SERIALISED, 2, 300};
		struct plan_choice c[PLAN_CHOICES];
		const struct plan_choice *sr;
		struct plan_result drawn;

		assert_int_equal(
			plan_choose(&link, &job, PLAN_FOR_MEAN, &options, &sdr_alloc_system, c), 0);
		sr = of(c, i < 3 ? PLAN_SR : PLAN_SR_NACK);
		assert_int_equal(plan_estimate(&link, &job, &sr->params, &options,
					       &sdr_alloc_system, &drawn),
				 0);
		assert_int_equal(sr->result.samples, 0);
		assert_true(fabs(sr->result.mean_s - drawn.mean_s) <=
			    0.005 * drawn.mean_s + 4 * drawn.stderr_s);
	}
}

static void test_facts(void **state)
{
	struct plan_link link = {400e9, 0.025, 1e-3, 1};
	struct plan_job job = {128 << 20, 4096, 4096};
	struct plan_facts f;

	(void)state;
	plan_facts(&link, &job, &f);
	assert_true(fabs(f.bdp_bytes - 1.25e9) < 1);
	assert_true(fabs(f.losses - 32.768) < 1e-6 && f.burst_units == 1);
	assert_true(fabs(f.tail_loss - (1 - exp(32768 * log1p(-1e-3)))) < 1e-9);
	link.burst_pkts = 8;
	plan_facts(&link, &job, &f);
	assert_true(fabs(f.burst_units - 8) < 1e-9 && f.tail_loss < 0.99 && f.tail_loss > 0.97);
	link.loss = 0;
	plan_facts(&link, &job, &f);
	assert_true(f.tail_loss == 0);
}

static void test_policy(void **state)
{
	static const struct {
		double rtt_ms, loss;
		uint64_t mib;
		enum plan_rule rule;
		enum plan_scheme scheme;
		uint32_t k;
	} want[] = {
		{25, 0.06, 1, PLAN_RULE_HEAVY_LOSS, PLAN_SR, 0},
		{1, 0.06, 4096, PLAN_RULE_HEAVY_LOSS, PLAN_SR, 0},
		{25, 1e-3, 1, PLAN_RULE_LOSSY, PLAN_EC, 16},
		{15, 1e-3, 1, PLAN_RULE_LOSSY, PLAN_EC, 8},
		{25, 1e-4, 31, PLAN_RULE_SMALL, PLAN_SR, 0},
		{5, 1e-2, 31, PLAN_RULE_SMALL, PLAN_SR, 0},
		{5, 1e-2, 32, PLAN_RULE_MIDDLE, PLAN_EC, 8},
		{5, 1e-5, 1023, PLAN_RULE_MIDDLE, PLAN_EC, 4},
		{25, 1e-6, 1023, PLAN_RULE_MIDDLE, PLAN_EC, 32},
		{25, 1e-5, 1023, PLAN_RULE_MIDDLE, PLAN_EC, 16},
		{25, 1e-6, 1024, PLAN_RULE_LARGE, PLAN_EC, 32},
		{25, 1e-5, 1024, PLAN_RULE_LARGE, PLAN_EC, 16},
		{5, 1e-6, 1024, PLAN_RULE_LARGE, PLAN_EC, 16},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct plan_link link = {400e9, want[i].rtt_ms * 1e-3, want[i].loss, 1};
		struct plan_job job = {want[i].mib << 20, 4096, 4096};
		struct plan_params p;

		assert_int_equal(plan_policy_table(&link, &job, &p), want[i].rule);
		assert_int_equal(p.scheme, want[i].scheme);
		if (p.scheme == PLAN_EC) {
			assert_int_equal(p.k, want[i].k);
			assert_int_equal(p.m, want[i].k / 4);
		}
	}
}

/* Anything that is in range gets an answer in finite numbers. */
static void test_anything(void **state)
{
	struct plan_options options = {.seed = 1, .samples = 3};
	struct rng rng;
	int asked = 0;

	(void)state;
	rng_init(&rng, 31);
	for (int i = 0; i < 400; i++) {
		uint32_t packet = 1u << rng_below(&rng, 17);
		struct plan_link link = {pow(10, 3 + 11 * rng_unit(&rng)),
					 pow(10, -6 + 9 * rng_unit(&rng)),
					 rng_below(&rng, 4) ? pow(10, -9 * rng_unit(&rng)) : 0,
					 rng_below(&rng, 2) ? pow(10, 4 * rng_unit(&rng)) : 1};
		struct plan_job job = {(uint64_t)pow(2, 30 * rng_unit(&rng)), packet,
				       packet << rng_below(&rng, 6)};
		struct plan_choice c[PLAN_CHOICES];
		struct plan_facts facts;
		struct plan_fault fault;

		/* Millions of losses would take the test too long. */
		if (plan_check(&link, &job, NULL, &fault) < 0 ||
		    (double)job.bytes / packet * link.loss > 3e4)
			continue;
		asked++;
		assert_int_equal(plan_choose(&link, &job, (enum plan_goal)(i % 3), &options,
					     &sdr_alloc_system, c),
				 0);
		for (int s = 0; s < PLAN_CHOICES; s++) {
			const struct plan_result *r = &c[s].result;

			if (!(r->p99_s >= r->p50_s && r->overhead >= -1e-9))
				print_error(
					"%s (%u,%u) depth %u, %g bit/s %g s loss %g burst %g, %lu "
					"bytes in %u, %u: p50 %.12g p99 %.12g p99.9 %.12g +%g\n",
					plan_scheme_name(c[s].params.scheme), c[s].params.k,
					c[s].params.m, c[s].params.depth, link.bw_bps, link.rtt_s,
					link.loss, link.burst_pkts, job.bytes, job.packet_bytes,
					job.chunk_bytes, r->p50_s, r->p99_s, r->p999_s,
					r->overhead);
			assert_true(isfinite(r->mean_s) && r->mean_s > 0);
			assert_true(isfinite(r->p999_s) && r->p999_s >= r->p99_s);
			assert_true(r->p99_s >= r->p50_s && r->overhead >= -1e-9);
			/* Only long drawn parts may be short of the mean a little. */
			assert_true(r->p50_s >= r->lossless_s * (1 - 1e-9));
			assert_true(isfinite(r->overhead) && r->unit_loss < 1);
		}
		plan_facts(&link, &job, &facts);
		assert_true(facts.tail_loss >= 0 && facts.tail_loss <= 1);
	}
	assert_true(asked > 150);
}

static void test_bad(void **state)
{
	struct plan_link link = {400e9, 0.025, 1, 1};
	struct plan_job job = {128 << 20, 4096, 4096};
	struct plan_options options = {0};
	struct plan_choice c[PLAN_CHOICES];

	(void)state;
	assert_int_equal(plan_choose(&link, &job, PLAN_FOR_MEAN, &options, &sdr_alloc_system, c),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),	 cmocka_unit_test(test_winners),
		cmocka_unit_test(test_stretch),	 cmocka_unit_test(test_facts),
		cmocka_unit_test(test_policy),	 cmocka_unit_test(test_bad),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
