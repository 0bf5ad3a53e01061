/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What codes cost: the rows that bench/code/code_rate measured, and how cost follows size,
 * parity, loss and the core's rate.
 */
#include "plan/cpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct plan_link line = {
	.bw_bps = 400e9, .rtt_s = 0.025, .loss = 1e-3, .burst_pkts = 1};
static const struct plan_job job = {128 << 20, 4096, 4096};

static struct plan_cpu cost(enum plan_scheme scheme, uint32_t k, uint32_t m, double rate)
{
	struct plan_params p = {.scheme = scheme, .k = k, .m = m, .span = 4096};
	struct plan_cpu cpu;

	plan_cpu(&line, &job, &p, line.loss, rate, &cpu);
	return cpu;
}

/* GB/s of data, cold: within 10 % from k = 32 on; short codes are cheaper than predicted. */
static void test_measured(void **state)
{
	static const struct {
		uint32_t k, m;
		double gb_s;
	} row[] = {{4, 1, 14.4},    {8, 2, 15.7},   {16, 4, 11.7},  {32, 4, 7.28},
		   {32, 8, 5.73},   {32, 16, 3.91}, {128, 5, 7.29}, {128, 12, 4.67},
		   {128, 24, 2.93}, {128, 32, 2.29}};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		double want = (double)job.bytes / row[i].gb_s * 1e-9;
		double got = cost(PLAN_EC, row[i].k, row[i].m, 0).send_s;

		assert_true(got > 0.9 * want);
		assert_true(got < (row[i].k < 32 ? 1.8 : 1.1) * want);
	}
	assert_true(fabs(plan_code_rate() * 1e-9 - 5.85) < 0.01);
}

static void test_follows(void **state)
{
	struct plan_cpu a = cost(PLAN_EC, 32, 8, 0), b = cost(PLAN_EC, 32, 16, 0), c;

	(void)state;
	assert_true(b.send_s > 1.4 * a.send_s && b.send_s < 2 * a.send_s);
	/* A core's seconds over the message's on the link. */
	assert_true(fabs(a.cores - a.send_s / ((double)job.bytes * 8 / line.bw_bps)) < 1e-9);
	/* Making good what is lost is rarer than making parity. */
	assert_true(a.receive_s > 0 && a.receive_s < 0.1 * a.send_s);
	/* A core half as fast is busy twice as long, for every code. */
	c = cost(PLAN_EC_XOR, 32, 8, plan_code_rate() / 2);
	assert_true(fabs(c.send_s - 2 * cost(PLAN_EC_XOR, 32, 8, 0).send_s) < 1e-12);
	assert_true(cost(PLAN_EC_XOR, 32, 8, 0).send_s < a.send_s / 2);
	/* Of a hybrid's message only the span is coded, at the same number of cores. */
	c = cost(PLAN_HYBRID, 32, 8, 0);
	assert_true(fabs(c.send_s - a.send_s / 8) < 1e-12);
	assert_true(fabs(c.cores - a.cores) < 1e-9);
}

static void test_no_code(void **state)
{
	struct plan_cpu sr = cost(PLAN_SR_NACK, 32, 8, 0), none = cost(PLAN_HYBRID, 128, 0, 0);

	(void)state;
	assert_true(sr.send_s == 0 && sr.receive_s == 0 && sr.cores == 0);
	assert_true(none.send_s == 0 && none.receive_s == 0 && none.cores == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
