/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemes of sdr sim and sdr plan: what they are in the engine and in the model, their names, and
 * the paper's receiver against the paper's formulas.
 */
#include "tool/sim/run.h"
#include "tool/sim/scheme.h"
#include "tool/sim/sweep.h"

#include "plan/hybrid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define PAPER_RUNS 400

static struct sim_scheme scheme_of(const char *text)
{
	struct sim_scheme s;
	char why[SWEEP_WHY];

	if (scheme_parse(text, &s, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return s;
}

static const struct plan_link a_link = {400e9, 0.025, 1e-3, 1};
static const struct plan_job a_job = {128 << 20, 4096, 4096};

static struct plan_params params_of(const char *text)
{
	struct sim_scheme s = scheme_of(text);
	struct plan_params p;

	assert_true(s.in_model);
	scheme_params(&s, &a_link, &a_job, &p);
	return p;
}

static void schemes(void **state)
{
	struct plan_params p = params_of("sr:rto=2.5");

	(void)state;
	assert_true(p.scheme == PLAN_SR && p.rto_rtts == 2.5);
	p = params_of("sr");
	assert_true(p.rto_rtts == 3);
	p = params_of("sr-nack:rto=9");
	assert_true(p.scheme == PLAN_SR_NACK && p.rto_rtts == 1);
	p = params_of("gbn");
	assert_true(p.scheme == PLAN_GBN);
	p = params_of("ec:16,4,rto=3");
	assert_true(p.scheme == PLAN_EC && p.k == 16 && p.m == 4 && p.depth == 1);
	assert_true(p.rto_rtts == 1 && p.beta_rtts == 0);
	p = params_of("ec-xor:16,4,depth=3");
	assert_true(p.scheme == PLAN_EC_XOR && p.depth == 3);
	p = params_of("hybrid:100,6,span=5000");
	assert_true(p.scheme == PLAN_HYBRID && p.k == 100 && p.m == 6 && p.span == 5000);
	assert_true(p.copies == 4 && p.depth == 50 && p.lambda == HYBRID_LAMBDA);
	p = params_of("hybrid:k=100,m=6,depth=7,copies=2");
	assert_true(p.span == 32768 && p.depth == 7 && p.copies == 2); /* a message is shorter */
	p = params_of("ec:32,8,repair=parity"); /* what a hybrid is, of the whole message */
	assert_true(p.scheme == PLAN_HYBRID && p.span == 32768 && p.copies == 1 && p.depth == 1);
	p = params_of("ec-paper:16,4,beta=2,rto=5,depth=3");
	assert_true(p.scheme == PLAN_EC && p.k == 16 && p.m == 4 && p.beta_rtts == 2);
	assert_true(p.rto_rtts == 5 && p.depth == 3);
	p = params_of("ec-xor-paper:32,8");
	assert_true(p.scheme == PLAN_EC_XOR && p.beta_rtts == 1 && p.rto_rtts == 3);
}

/* Where each is drawn, and where the model's answer stands beside it. */
static void scheme_places(void **state)
{
	static const struct {
		const char *text, *name;
		bool engine, model, predicted;
	} of[] = {
		{"gbn", "gbn", true, true, true},
		{"sr", "sr", true, true, false},
		{"sr:rto=3.0", "sr:rto=3", true, true, true},
		{"sr-nack:copies=2", "sr-nack:copies=2", true, false, false},
		{"ec:k=32,m=8", "ec:32,8", true, true, true},
		{"ec:32,8,span=rtt", "ec:32,8,span=rtt", true, false, false},
		{"ec-xor:32,8,copies=2", "ec-xor:32,8,copies=2", true, false, false},
		{"hybrid:128,10,depth=4", "hybrid:k=128,m=10,depth=4", true, true, true},
		{"hybrid:128,10,repair=missing", "hybrid:k=128,m=10,repair=missing", true, false,
		 false},
		{"auto:policy=table", "auto:policy=table", true, true, true},
		{"ec-paper:32,8,depth=1,rto=3,beta=1", "ec-paper:32,8", false, true, false},
		{"ec-xor-paper:8,2,beta=0.5,rto=2,depth=4",
		 "ec-xor-paper:8,2,depth=4,rto=2,beta=0.5", false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct sim_scheme s = scheme_of(of[i].text), again;

		assert_string_equal(s.name, of[i].name);
		assert_int_equal(s.in_engine, of[i].engine);
		assert_int_equal(s.in_model, of[i].model);
		assert_int_equal(scheme_predictable(&s), of[i].predicted);
		assert_int_equal(s.paper, !of[i].engine);
		again = scheme_of(s.name);
		assert_string_equal(again.name, s.name);
	}
}

/* What sdr plan answers, pasted: the model is asked for the same again. */
static void plans_can_be_pasted(void **state)
{
	static const double losses[] = {1e-6, 1e-4, 1e-3, 1e-2, 5e-2, 0.2};
	static const double bursts[] = {1, 8, 64};
	static const uint64_t sizes[] = {1, 65536, 3 << 20, 128 << 20, UINT64_C(1) << 33};

	(void)state;
	for (int i = 0; i < 6 * 3 * 5 * PLAN_SCHEMES; i++) {
		struct plan_link link = {100e9, 0.025, losses[i % 6], bursts[i / 6 % 3]};
		struct plan_job job = {sizes[i / 18 % 5], 4096, 4096};
		struct plan_params p, q;
		char name[SIM_SCHEME_NAME];
		struct sim_scheme s;

		plan_defaults(&link, &job, (enum plan_scheme)(i / 90), &p);
		scheme_of_params(&p, &link, &job, name);
		s = scheme_of(name);
		assert_string_equal(s.name, name);
		assert_true(s.in_engine);
		if (!s.in_model) { /* a hybrid without parity: resends with copies */
			assert_true(p.scheme == PLAN_HYBRID && p.m == 0);
			continue;
		}
		scheme_params(&s, &link, &job, &q);
		assert_true(q.scheme == p.scheme || p.m == 0);
		if (q.scheme == PLAN_SR)
			assert_true(q.rto_rtts == p.rto_rtts);
		if (q.scheme != PLAN_EC && q.scheme != PLAN_EC_XOR && q.scheme != PLAN_HYBRID)
			continue;
		assert_true(q.k == p.k && q.m == (p.k + p.m > 255 ? 255 - p.k : p.m));
		assert_int_equal(q.depth, p.depth);
		if (q.scheme == PLAN_HYBRID)
			assert_true(q.span == p.span &&
				    q.copies == (p.copies > 16 ? 16 : p.copies));
	}
}

struct mean {
	double s, error_s, overhead;
};

static struct mean drawn(const struct sweep *s, const struct sim_point *p)
{
	static const volatile sig_atomic_t never;
	struct runner *r = runner_create();
	double sum = 0, squares = 0, sent = 0;
	struct mean m;

	for (uint64_t run = 0; run < PAPER_RUNS; run++) {
		struct run_result out;
		double time_s;

		runner_run(r, s, p, run, &never, &out);
		assert_int_equal(out.err, 0);
		time_s = (double)out.time_ns * 1e-9;
		sum += time_s;
		squares += time_s * time_s;
		sent += (double)out.sent_bytes;
	}
	runner_destroy(r);
	m.s = sum / PAPER_RUNS;
	m.error_s = sqrt(fmax(squares / PAPER_RUNS - m.s * m.s, 0) / PAPER_RUNS);
	m.overhead = sent / PAPER_RUNS / (double)p->bytes - 1;
	return m;
}

/* What it takes follows the link; the same in the model as what it is called. */
static void auto_chooses(void **state)
{
	static const double losses[] = {0, 1e-5, 1e-3, 1e-2, 5e-2, 0.2};
	struct sim_scheme s = scheme_of("auto"), table = scheme_of("auto:policy=table");
	char name[SIM_SCHEME_NAME], why[SCHEME_WHY];
	struct plan_params p;
	uint32_t last_m = 0;

	(void)state;
	assert_true(scheme_chooses(&s) && scheme_chooses(&table));
	for (int i = 0; i < 6; i++) {
		struct plan_link link = {400e9, 0.025, losses[i], 1};
		struct plan_fault fault;

		scheme_params(&s, &link, &a_job, &p);
		assert_int_equal(plan_check(&link, &a_job, &p, &fault), 0);
		assert_true(p.scheme == (losses[i] > 0 ? PLAN_HYBRID : PLAN_SR_NACK));
		if (p.scheme == PLAN_HYBRID && losses[i] < 0.1)
			assert_true(p.m > last_m);
		last_m = p.scheme == PLAN_HYBRID ? p.m : 0;
		scheme_of_params(&p, &link, &a_job, name);
		assert_true(scheme_of(name).in_engine);
		assert_true(strlen(scheme_why(&s, &link, &a_job, why)) > 20);
	}
	scheme_params(&table, &a_link, &a_job, &p);
	assert_true(p.scheme == PLAN_EC && p.k == 16 && p.m == 4);
	assert_string_equal(scheme_why(&(struct sim_scheme){0}, &a_link, &a_job, why), "");
}

static struct plan_result said(const struct sim_point *p)
{
	struct plan_options options = {.reading = PLAN_PAPER};
	struct plan_link link = {(double)p->bw_bps, (double)p->rtt_ns * 1e-9, p->loss, 1};
	struct plan_job job = {p->bytes, 4096, 4096};
	struct plan_params params;
	struct plan_result out;

	scheme_params(p->scheme, &link, &job, &params);
	assert_int_equal(plan_estimate(&link, &job, &params, &options, &sdr_alloc_system, &out), 0);
	return out;
}

static void key(struct sweep *s, const char *name, const char *value)
{
	char why[SWEEP_WHY] = "";

	if (sweep_set(s, sweep_key_find(name), value, why))
		fail_msg("%s = %s: %s", name, value, why);
}

/* Draws of the paper's receiver are what its formulas say (plan/figure_test.c holds these). */
static void papers_numbers(void **state)
{
	static const char *const losses[] = {"1e-5", "0.1", "0.2"};
	static const char *const names[] = {"ec-paper:32,8", "ec-xor-paper:8,2", "ec-paper:4,1"};

	(void)state;
	for (int i = 0; i < 9; i++) {
		struct plan_result want;
		struct sim_point p;
		struct sweep s;
		struct mean got;

		sweep_init(&s);
		key(&s, "rtt", "25ms");
		key(&s, "bw", "400Gbit");
		key(&s, "size", "8MiB");
		key(&s, "loss", losses[i % 3]);
		key(&s, "scheme", names[i / 3]);
		sweep_point(&s, 0, &p);
		got = drawn(&s, &p);
		want = said(&p);
		if (fabs(got.s - want.mean_s) > 4 * got.error_s + 1e-7)
			fail_msg("%s at %s: %g s, not %g", names[i / 3], losses[i % 3], got.s,
				 want.mean_s);
		if (fabs(got.overhead - want.overhead) > 0.03 * want.overhead + 0.01)
			fail_msg("%s at %s: %g beyond the message, not %g", names[i / 3],
				 losses[i % 3], got.overhead, want.overhead);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schemes),
		cmocka_unit_test(scheme_places),
		cmocka_unit_test(plans_can_be_pasted),
		cmocka_unit_test(auto_chooses),
		cmocka_unit_test(papers_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
