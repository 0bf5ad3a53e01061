/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plan.h promises beyond the oracle: ranges, the hybrid's rule against the parameters
 * that its search printed, simulation against closed form, shortcuts of long messages
 * against none, memory that runs out.
 */
#include "plan/hybrid.h"
#include "plan/plan.h"
#include "plan/sim.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct plan_link a_link = {400e9, 0.025, 0.001, 1};
static const struct plan_job a_job = {128 << 20, 4096, 4096};

/* One value wrong at a time, and the name that it is told by. */
static void test_check(void **state)
{
	static const struct {
		const char *what;
		struct plan_link link;
		struct plan_job job;
		struct plan_params p;
	} bad[] = {
		{"bandwidth", {0, 0.025, 0, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"bandwidth", {NAN, 0.025, 0, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"bandwidth", {1e15, 0.025, 0, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"rtt", {1e6, 0, 0, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"rtt", {1e6, INFINITY, 0, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"rtt", {1e12, 1, 0, 1}, {1, 1000, 4000}, {.rto_rtts = 3}},
		{"loss", {1e6, 0.1, 1, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"loss", {1e6, 0.1, -0.1, 1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"burst", {1e6, 0.1, 0.1, -1}, {1, 1, 1}, {.rto_rtts = 3}},
		{"burst", {1e6, 0.1, 0.8, 2}, {1, 1, 1}, {.rto_rtts = 3}},
		{"packet size", {1e6, 0.1, 0, 1}, {1, 0, 1}, {.rto_rtts = 3}},
		{"chunk size", {1e6, 0.1, 0, 1}, {1, 1000, 3000}, {.rto_rtts = 3}},
		{"chunk size", {1e6, 0.1, 0, 1}, {1, 1000, 1500}, {.rto_rtts = 3}},
		{"chunk size", {1e6, 0.1, 0, 1}, {1, 1000, 500}, {.rto_rtts = 3}},
		{"size", {1e6, 0.1, 0, 1}, {0, 1000, 1000}, {.rto_rtts = 3}},
		{"size", {1e6, 0.1, 0, 1}, {UINT64_MAX, 1000, 1000}, {.rto_rtts = 3}},
		{"chunk loss", {1e6, 0.1, 0.1, 1}, {1, 1000, 64000}, {.rto_rtts = 3}},
		{"scheme", {1e6, 0.1, 0, 1}, {1, 1, 1}, {.scheme = PLAN_SCHEMES}},
		{"rto", {1e6, 0.1, 0, 1}, {1, 1, 1}, {.rto_rtts = 0}},
		{"k", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_EC, 3, 1, 0, 8, 1, 0, 0, 0}},
		{"m", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_EC, 3, 1, 250, 8, 1, 0, 0, 0}},
		{"m", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_EC_XOR, 3, 1, 8, 9, 1, 0, 0, 0}},
		{"beta", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_EC, 3, -1, 8, 2, 1, 0, 0, 0}},
		{"span", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_HYBRID, 1, 1, 8, 2, 1, 0, 1, 20}},
		{"copies", {1e6, 0.1, 0, 1}, {1, 1, 1}, {PLAN_HYBRID, 1, 1, 8, 2, 1, 9, 0, 20}},
	};
	struct plan_options options = {.reading = PLAN_PAPER};
	struct plan_result out;
	struct plan_fault fault;
	struct plan_params p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(plan_check(&bad[i].link, &bad[i].job, &bad[i].p, &fault), -EINVAL);
		assert_string_equal(fault.what, bad[i].what);
		assert_int_equal(plan_estimate(&bad[i].link, &bad[i].job, &bad[i].p, &options,
					       &sdr_alloc_system, &out),
				 -EINVAL);
	}
	for (int s = 0; s < PLAN_SCHEMES; s++) {
		plan_defaults(&a_link, &a_job, (enum plan_scheme)s, &p);
		assert_int_equal(plan_check(&a_link, &a_job, &p, &fault), 0);
		assert_null(fault.what);
	}
	assert_int_equal(plan_allreduce(&a_link, &a_job, &p, 1, &options, &sdr_alloc_system, &out),
			 -EINVAL);
}

/* What the search beyond the paper printed: 400 Gbit/s, 25 ms, 4 KiB packets. */
static void test_rule(void **state)
{
	static const double losses[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2};
	static const struct {
		double burst;
		uint64_t mib;
		uint32_t depth, m[6];
	} want[] = {
		{1, 1, 2, {1, 2, 3, 5, 10, 24}},	 {1, 16, 4, {1, 2, 3, 5, 10, 24}},
		{1, 128, 4, {1, 2, 3, 5, 10, 24}},	 {1, 1024, 4, {1, 2, 3, 5, 10, 24}},
		{1, 8192, 4, {1, 2, 3, 5, 10, 24}},	 {1, 65536, 4, {1, 2, 3, 5, 10, 24}},
		{8, 1, 2, {15, 23, 32, 41, 55, 80}},	 {8, 16, 32, {2, 3, 3, 5, 11, 25}},
		{8, 128, 32, {2, 3, 3, 5, 11, 25}},	 {8, 1024, 32, {2, 3, 3, 5, 11, 25}},
		{8, 8192, 32, {2, 3, 3, 5, 11, 25}},	 {8, 65536, 32, {2, 3, 3, 5, 11, 25}},
		{64, 1, 2, {1, 50, 124, 128, 128, 128}}, {64, 16, 32, {7, 12, 16, 22, 31, 50}},
		{64, 128, 256, {2, 2, 3, 5, 10, 23}},	 {64, 1024, 256, {2, 2, 3, 5, 10, 23}},
		{64, 8192, 256, {2, 2, 3, 5, 10, 23}},	 {64, 65536, 256, {2, 2, 3, 5, 10, 23}},
	};
	static const uint32_t copies[] = {2, 2, 2, 3, 4, 6};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		for (int l = 0; l < 6; l++) {
			struct plan_link link = {400e9, 0.025, losses[l], want[i].burst};
			struct plan_job job = {want[i].mib << 20, 4096, 4096};
			struct plan_params p;

			plan_defaults(&link, &job, PLAN_HYBRID, &p);
			assert_int_equal(p.k, 128);
			assert_int_equal(p.m, want[i].m[l]);
			assert_int_equal(p.depth, want[i].depth);
			assert_int_equal(p.span, want[i].mib >= 8192 ? 305176 : want[i].mib * 256);
			assert_int_equal(p.copies, copies[l]);
		}
	}
}

/* p^(e + 1) of one unit, 1e-2: 2, 4, 6, 8 zeros; worth 1 / (20 * 305176) = 1.6e-7. */
static void test_margin(void **state)
{
	struct burst b;

	(void)state;
	burst_init(&b, 0.01, 1);
	assert_int_equal(hybrid_margin(&b, 1, 1, 20, 305176), 3);
	assert_int_equal(hybrid_margin(&b, 1, 1, 20, 10), 1);
	assert_true(hybrid_margin(&b, 20, 1, 20, 305176) > 3);
	burst_init(&b, 0.01, 8);
	assert_true(hybrid_margin(&b, 1, 1, 20, 305176) > 20);
	assert_int_equal(hybrid_gap(&b, 4, 305176), 32);
	assert_int_equal(hybrid_gap(&b, 4, 128), 1);
}

/* No loss: no scheme takes more than its parity. */
static void test_no_loss(void **state)
{
	struct plan_link link = {400e9, 0.025, 0, 1};
	(void)state;
	for (int reading = PLAN_PAPER; reading <= PLAN_SERIALISED; reading++) {
		for (int s = 0; s < PLAN_SCHEMES; s++) {
			struct plan_options options = {(enum plan_reading)reading, 1, 100};
			struct plan_params p;
			struct plan_result r;

			plan_defaults(&link, &a_job, (enum plan_scheme)s, &p);
			assert_int_equal(
				plan_estimate(&link, &a_job, &p, &options, &sdr_alloc_system, &r),
				0);
			assert_true(r.mean_s >= r.lossless_s * (1 - 1e-6) &&
				    r.mean_s <= r.lossless_s * 1.03);
			assert_true(r.limit_s == r.lossless_s && r.p_fallback == 0);
			assert_true(fabs(r.overhead - (units_coded(p.scheme) ? 0.25 : 0)) < 1e-9);
		}
	}
}

static void simulate(const struct units *u, const struct plan_params *p, enum plan_reading reading,
		     uint32_t count, struct plan_result *out)
{
	struct plan_options options = {reading, 5, count};

	assert_int_equal(sim_estimate(u, p, &options, &sdr_alloc_system, out), 0);
}

/* The simulation's paper reading of independent losses has a closed form. */
static void test_paper_simulated(void **state)
{
	(void)state;
	for (int s = 0; s < PLAN_HYBRID; s++) {
		for (int loss = 0; loss < 3; loss++) {
			struct plan_link link = {400e9, 0.025, 0.001 * (1 + 20 * loss), 1};
			struct plan_job job = {4 << 20, 4096, 4096};
			struct plan_options options = {.reading = PLAN_PAPER};
			struct plan_result closed, drawn;
			struct plan_params p;
			struct units u;

			plan_defaults(&link, &job, (enum plan_scheme)s, &p);
			units_init(&u, &link, &job);
			assert_int_equal(plan_estimate(&link, &job, &p, &options, &sdr_alloc_system,
						       &closed),
					 0);
			simulate(&u, &p, PLAN_PAPER, 4000, &drawn);
			assert_true(fabs(drawn.mean_s - closed.mean_s) <=
				    5 * drawn.stderr_s + 1e-3 * closed.mean_s);
			assert_true(fabs(drawn.overhead - closed.overhead) <=
				    0.05 * closed.overhead + 1e-4);
			assert_true(fabs(drawn.p_fallback - closed.p_fallback) < 0.05);
		}
	}
}

/* One block under bursts: what the chain says, and the simulation does. */
static void test_burst_block(void **state)
{
	struct plan_params p = {PLAN_EC, 1, 1, 32, 8, 1, 0, 0, 0};
	struct plan_result r;
	struct units u = {.n = 32, .t_s = 1, .rtt = 100, .rtt_slots = 100};
	double fail[9];

	(void)state;
	burst_init(&u.burst, 0.05, 8);
	burst_block_fail(&u.burst, 32, 8, 1, fail);
	simulate(&u, &p, PLAN_SERIALISED, 20000, &r);
	assert_true(fabs(r.p_fallback - fail[8]) < 5 * sqrt(fail[8] / 20000));
	simulate(&u, &p, PLAN_PAPER, 20000, &r);
	assert_true(fabs(r.p_fallback - fail[8]) < 5 * sqrt(fail[8] / 20000));
}

/* Unit by unit and loss by loss: each level of resends meets a channel in its long-run state. */
static double slow_paper(struct rng *rng, const struct units *u, double cost)
{
	double latest = (double)u->n;
	bool lost[400];

	memset(lost, 1, sizeof(lost));
	for (int level = 1, any = 1; any; level++) {
		bool bad = rng_unit(rng) < u->burst.loss;

		any = 0;
		for (uint64_t i = 0; i < u->n; i++) {
			lost[i] = lost[i] && bad;
			if (lost[i])
				latest = fmax(latest, (double)(i + 1) + level * cost);
			any |= lost[i];
			bad = rng_unit(rng) < (bad ? 1 - u->burst.to_ok : u->burst.to_lost);
		}
	}
	return latest + u->rtt;
}

static void test_paper_bursts(void **state)
{
	struct plan_params p = {.scheme = PLAN_SR, .rto_rtts = 1};
	struct units u = {.n = 400, .t_s = 1, .rtt = 150, .rtt_slots = 150};
	struct plan_result r;
	double sum = 0;
	struct rng rng;

	(void)state;
	burst_init(&u.burst, 0.05, 8);
	simulate(&u, &p, PLAN_PAPER, 20000, &r);
	rng_init(&rng, 17);
	for (int i = 0; i < 4000; i++)
		sum += slow_paper(&rng, &u, 151) / 4000;
	assert_true(fabs(r.mean_s - sum) < 5 * r.stderr_s * sqrt(1 + 20000 / 4000));
	/* Without bursts it would take longer: more of the units are hit. */
	burst_init(&u.burst, 0.05, 1);
	simulate(&u, &p, PLAN_PAPER, 20000, &r);
	assert_true(r.mean_s - sum > 5 * r.stderr_s * sqrt(1 + 20000 / 4000));
}

/* Long messages: the last waits and a deviate against every wait. */
static void test_skip(void **state)
{
	for (int burst = 1; burst <= 6; burst += 5) {
		struct plan_params p = {.scheme = PLAN_SR_NACK, .rto_rtts = 1};
		struct units u = {.n = 4000, .t_s = 1, .rtt = 50, .rtt_slots = 50};
		struct plan_result fast;
		double sum = 0, squares = 0, sent = 0;
		int count = 4000;
		struct rng rng;
		struct sim sim;

		burst_init(&u.burst, 0.05, burst);
		simulate(&u, &p, PLAN_SERIALISED, (uint32_t)count, &fast);
		rng_init(&rng, 9);
		assert_int_equal(sim_init(&sim, &u, &p, &rng, &sdr_alloc_system), 0);
		for (int i = 0; i < count; i++) {
			double slots;

			sim.slot = sim.end = 0;
			sim.sent = 0;
			chan_start(&sim.chan, &u.burst, &rng, 0);
			assert_int_equal(sim_sr(&sim, u.n, 50), 0);
			slots = (double)(sim.end + u.rtt_slots);
			sum += slots;
			squares += slots * slots;
			sent += sim.sent;
		}
		sim_fini(&sim);
		sum /= count;
		squares = squares / count - sum * sum;
		assert_true(fabs(fast.mean_s - sum) < 5 * sqrt(2 * squares / count));
		assert_true(fabs(fast.overhead - (sent / count / 4000 - 1)) < 0.002);
		/* The spread is kept too. */
		assert_true(fabs(fast.stderr_s * sqrt(count) - sqrt(squares)) <
			    0.1 * sqrt(squares));
	}
	(void)state;
}

/* 2^24 units: most failed blocks are drawn as a number. */
static void test_skip_blocks(void **state)
{
	struct plan_link link = {400e9, 0.025, 0.03, 1};
	struct plan_job job = {UINT64_C(1) << 36, 4096, 4096};
	struct plan_options options = {.reading = PLAN_PAPER};
	struct plan_result closed, drawn;
	struct plan_params p;
	struct units u;

	(void)state;
	plan_defaults(&link, &job, PLAN_EC, &p);
	units_init(&u, &link, &job);
	assert_int_equal(plan_estimate(&link, &job, &p, &options, &sdr_alloc_system, &closed), 0);
	simulate(&u, &p, PLAN_PAPER, 150, &drawn);
	assert_true(fabs(drawn.mean_s - closed.mean_s) <= 5 * drawn.stderr_s);
	assert_true(fabs(drawn.overhead - closed.overhead) <= 1e-4);
}

/* 2 TiB at any loss ends; the more loss the longer. */
static void test_large(void **state)
{
	struct plan_job job = {UINT64_C(1) << 41, 4096, 4096};
	struct plan_options options = {.reading = PLAN_PAPER};

	(void)state;
	for (int s = 0; s < PLAN_HYBRID; s++) {
		double before = 0;

		for (int i = 0; i < 6; i++) {
			struct plan_link link = {400e9, 0.025, i == 5 ? 0.3 : pow(10, i - 6), 1};
			struct plan_params p;
			struct plan_result r;

			plan_defaults(&link, &job, (enum plan_scheme)s, &p);
			assert_int_equal(
				plan_estimate(&link, &job, &p, &options, &sdr_alloc_system, &r), 0);
			assert_true(r.mean_s >= before && r.p999_s >= r.p50_s && r.mean_s < 1000);
			before = r.mean_s;
		}
	}
}

/* Of a very long message of gbn a part is simulated; a round trip is little beside either. */
static void test_gbn_long(void **state)
{
	struct plan_link link = {400e9, 0.001, 0.05, 1};
	struct plan_params p;
	struct plan_result all, part;

	(void)state;
	for (int long_one = 0; long_one < 2; long_one++) {
		struct plan_job job = {(UINT64_C(1) << (long_one ? 26 : 22)) * 4096, 4096, 4096};
		struct plan_options options = {PLAN_SERIALISED, 1, 4};

		plan_defaults(&link, &job, PLAN_GBN, &p);
		assert_int_equal(plan_estimate(&link, &job, &p, &options, &sdr_alloc_system,
					       long_one ? &part : &all),
				 0);
	}
	assert_true(fabs(part.mean_s / part.lossless_s / (all.mean_s / all.lossless_s) - 1) < 0.02);
	assert_true(fabs(part.overhead / all.overhead - 1) < 0.02);
	assert_true(all.overhead > 1 && part.mean_s > part.limit_s);
}

/* The n-th allocation fails; nothing may be left over. */
struct budget {
	int left, held;
};

static void *budget_zalloc(void *arg, size_t bytes)
{
	struct budget *b = arg;

	if (b->left-- <= 0)
		return NULL;
	b->held++;
	return sdr_alloc_system.zalloc(NULL, bytes);
}

static void budget_free(void *arg, void *p)
{
	struct budget *b = arg;

	b->held--;
	sdr_alloc_system.free(NULL, p);
}

static int ask_with(const struct sdr_alloc *alloc, int scheme, enum plan_reading reading, bool ring)
{
	struct plan_link link = {400e9, 0.025, 0.02, 8};
	struct plan_options options = {reading, 1, 20};
	struct plan_params p;
	struct plan_result r;

	link.burst_pkts = reading == PLAN_PAPER ? 1 : 8;
	plan_defaults(&link, &a_job, (enum plan_scheme)scheme, &p);
	if (ring)
		return plan_allreduce(&link, &a_job, &p, 3, &options, alloc, &r);
	return plan_estimate(&link, &a_job, &p, &options, alloc, &r);
}

static void test_no_memory(void **state)
{
	(void)state;
	for (int i = 0; i < 4 * PLAN_SCHEMES; i++) {
		struct budget budget = {.left = 1 << 30};
		struct sdr_alloc alloc = {budget_zalloc, budget_free, &budget};
		int scheme = i / 4, err = -ENOMEM;

		for (int n = 0; err != 0; n++) {
			assert_true(n < 2000);
			budget.left = n;
			err = ask_with(&alloc, scheme, i & 1 ? PLAN_SERIALISED : PLAN_PAPER, i & 2);
			assert_true(err == 0 || err == -ENOMEM);
			assert_int_equal(budget.held, 0);
			/* Closed forms of EC ask once for each number of blocks. */
			n += n > 20 ? 40 : 0;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_margin),		cmocka_unit_test(test_no_loss),
		cmocka_unit_test(test_paper_simulated), cmocka_unit_test(test_burst_block),
		cmocka_unit_test(test_paper_bursts),	cmocka_unit_test(test_skip),
		cmocka_unit_test(test_skip_blocks),	cmocka_unit_test(test_large),
		cmocka_unit_test(test_gbn_long),	cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
