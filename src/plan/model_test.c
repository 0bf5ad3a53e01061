/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed forms against twins that multiply over every unit, enumerate every pattern of
 * losses or walk a chain step by step; each fault planted in the twin must be seen. Draws
 * against the closed forms.
 */
#include "plan/burst.h"
#include "plan/chan.h"
#include "plan/ec.h"
#include "plan/num.h"
#include "plan/sr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum fault {
	FAULT_NONE,
	FAULT_NO_CEILING,   /* as appendix A is printed */
	FAULT_FREE_RESEND,  /* O = RTO instead of RTO + t */
	FAULT_FROM_ZERO,    /* the first unit arrives at 0 */
	FAULT_ONE_RESEND,   /* a resend is never lost */
	FAULT_MISSING_UNIT, /* the last unit is forgotten */
	FAULTS
};

#define LEVELS 400

/* P(X_i <= y), straight from the definition. */
static double unit_cdf(const struct sr_model *m, uint64_t i, double y, enum fault fault)
{
	double cost = fault == FAULT_FREE_RESEND ? m->cost - 1 : m->cost;
	double late = y - (double)i + (fault == FAULT_FROM_ZERO), tries;

	if (late < 0)
		return 0;
	tries = fault == FAULT_NO_CEILING ? late / cost : floor(late / cost) + 1;
	if (fault == FAULT_ONE_RESEND && tries >= 2)
		return 1;
	return 1 - pow(m->loss, tries);
}

static double twin_cdf(const struct sr_model *m, double y, enum fault fault)
{
	double product = 1;

	for (uint64_t i = 1; i <= m->n - (fault == FAULT_MISSING_UNIT); i++)
		product *= unit_cdf(m, i, y, fault);
	return product;
}

static double *twin_steps(const struct sr_model *m, uint32_t *count)
{
	double *steps = malloc(m->n * LEVELS * sizeof(*steps));

	assert_non_null(steps);
	*count = 0;
	for (uint64_t i = 1; i <= m->n; i++) {
		for (uint32_t j = 0; j < LEVELS; j++)
			steps[(*count)++] = (double)i + j * m->cost;
	}
	num_sort(steps, *count);
	return steps;
}

/* Sum of what is left above each stretch between two steps. */
static double twin_mean(const struct sr_model *m, enum fault fault)
{
	uint32_t count;
	double *steps = twin_steps(m, &count), sum = steps[0];

	for (uint32_t s = 0; s + 1 < count; s++) {
		double cdf = twin_cdf(m, (steps[s] + steps[s + 1]) / 2, fault);

		sum += (steps[s + 1] - steps[s]) * (1 - cdf);
		if (cdf > 1 - 1e-13 && steps[s] > (double)m->n)
			break;
	}
	free(steps);
	return sum;
}

static double pick(struct rng *rng, const double *of, uint32_t count)
{
	return of[rng_below(rng, count)];
}

static struct sr_model random_sr(struct rng *rng)
{
	static const double losses[] = {1e-4, 0.01, 0.05, 0.3, 0.6, 0.8};
	static const double costs[] = {1.25,  2,	3.7, 7, 10.5, 17.3333333333333333,
				       40.01, 300.78125};

	return (struct sr_model){.n = 1 + rng_below(rng, 30),
				 .loss = pick(rng, losses, 6),
				 .cost = pick(rng, costs, 8)};
}

/* Whether the models differ anywhere. */
static bool sr_differs(const struct sr_model *m, struct rng *rng, enum fault fault)
{
	double mean, want = twin_mean(m, fault);

	assert_int_equal(sr_mean(m, &sdr_alloc_system, &mean), 0);
	if (fabs(mean - want) > 1e-9 * want)
		return true;
	for (int i = 0; i < 20; i++) {
		double y = rng_unit(rng) * ((double)m->n + 4 * m->cost);

		if (fabs(sr_cdf(m, y) - twin_cdf(m, y, fault)) > 1e-10)
			return true;
	}
	return false;
}

static void test_sr_twin(void **state)
{
	struct rng rng;

	(void)state;
	for (int fault = FAULT_NONE; fault < FAULTS; fault++) {
		int seen = 0;

		rng_init(&rng, 11);
		for (int i = 0; i < 150; i++) {
			struct sr_model m = random_sr(&rng);

			seen += sr_differs(&m, &rng, (enum fault)fault);
		}
		if (fault == FAULT_NONE)
			assert_int_equal(seen, 0);
		else
			assert_true(seen > 0);
	}
}

static void test_sr_quantile(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 12);
	for (int i = 0; i < 300; i++) {
		struct sr_model m = random_sr(&rng);
		double q = rng_unit(&rng), y = sr_quantile(&m, q);

		assert_true(twin_cdf(&m, y * (1 + 1e-12), FAULT_NONE) >= q - 1e-12);
		assert_true(y <= (double)m.n ||
			    twin_cdf(&m, y * (1 - 1e-12), FAULT_NONE) < q + 1e-12);
	}
}

/* Big messages: pieces of known size, and no loss at all. */
static void test_sr_large(void **state)
{
	struct sr_model m = {.n = UINT64_C(1) << 29, .loss = 0, .cost = 305177};
	double mean;

	(void)state;
	assert_int_equal(sr_mean(&m, &sdr_alloc_system, &mean), 0);
	assert_true(mean == (double)m.n && sr_quantile(&m, 0.999) == (double)m.n);
	/* Only the last 305177 have no time for a resend. */
	m.loss = 1e-9;
	assert_true(fabs(sr_cdf(&m, (double)m.n) - exp(-305177e-9)) < 1e-9);
	/* 2^32 units at the highest loss still end. */
	m.n = UINT64_C(1) << 32;
	m.loss = 0.95;
	assert_int_equal(sr_mean(&m, &sdr_alloc_system, &mean), 0);
	assert_true(mean >= sr_quantile(&m, 0.001) && mean <= sr_quantile(&m, 0.999));
}

/* Every pattern of k + m units; the code's definition. */
static bool pattern_ok(const struct ec_code *code, uint32_t lost)
{
	if (!code->xor_groups)
		return __builtin_popcount(lost) <= (int)code->m;
	for (uint32_t g = 0; g < code->m; g++) {
		uint32_t members = 1u << (code->k + g);

		for (uint32_t i = g; i < code->k; i += code->m)
			members |= 1u << i;
		if (__builtin_popcount(lost & members) > 1)
			return false;
	}
	return true;
}

static double twin_block_fail(const struct ec_code *code, double p)
{
	uint32_t n = code->k + code->m;
	double sum = 0;

	for (uint32_t lost = 0; lost < 1u << n; lost++) {
		int bits = __builtin_popcount(lost);

		if (!pattern_ok(code, lost))
			sum += pow(p, bits) * pow(1 - p, (int)n - bits);
	}
	return sum;
}

static void test_block_fail(void **state)
{
	static const double losses[] = {1e-6, 1e-3, 0.05, 0.4, 0.9};

	(void)state;
	for (uint32_t k = 1; k <= 9; k++) {
		for (uint32_t m = 0; m <= 5; m++) {
			for (int i = 0; i < 5; i++) {
				for (int x = 0; x <= (m > 0 && m <= k); x++) {
					struct ec_code code = {k, m, x};
					double want = twin_block_fail(&code, losses[i]);
					double got = ec_block_fail(&code, losses[i]);

					assert_true(fabs(got - want) <= 1e-9 * want + 1e-17);
				}
			}
		}
	}
}

/* All that can fail, block by block: P(units to send again = u). */
static double twin_ec_mean(const struct ec_model *m)
{
	uint64_t full = m->n / m->code.k, rest = m->n % m->code.k;
	uint64_t inject = m->n + (full + (rest > 0)) * m->code.m;
	double *again = calloc(m->n + 1, sizeof(*again)), sum = 0;

	again[0] = 1;
	for (uint64_t b = 0; b < full + (rest > 0); b++) {
		struct ec_code code = m->code;
		double fail;

		if (b == full)
			code.k = (uint32_t)rest;
		fail = twin_block_fail(&code, m->loss);
		for (uint64_t u = m->n + 1; u-- > 0;) {
			again[u] *= 1 - fail;
			if (u >= code.k)
				again[u] += again[u - code.k] * fail;
		}
	}
	sum = again[0] * ((double)inject + m->rtt);
	for (uint64_t u = 1; u <= m->n; u++) {
		struct sr_model sr = {.n = u, .loss = m->loss, .cost = m->cost};

		if (again[u] > 0)
			sum += again[u] * ((double)inject + (m->beta + 2) * m->rtt +
					   twin_mean(&sr, FAULT_NONE));
	}
	free(again);
	return sum;
}

static void test_ec_twin(void **state)
{
	static const double losses[] = {1e-3, 0.02, 0.1, 0.4};
	struct rng rng;

	(void)state;
	rng_init(&rng, 13);
	for (int i = 0; i < 40; i++) {
		struct ec_model m = {
			.n = 1 + rng_below(&rng, 24),
			.code = {1 + (uint32_t)rng_below(&rng, 6), 1, rng_below(&rng, 2)},
			.loss = pick(&rng, losses, 4),
			.rtt = 20.3,
			.cost = 61.9,
			.beta = (double)rng_below(&rng, 2),
		};
		struct ec_dist dist;
		double got, want;

		m.code.m = 1 + (uint32_t)rng_below(&rng, m.code.k);
		want = twin_ec_mean(&m);
		assert_int_equal(ec_dist_init(&dist, &m, &sdr_alloc_system), 0);
		assert_int_equal(ec_mean(&dist, &sdr_alloc_system, &got), 0);
		ec_dist_fini(&dist, &sdr_alloc_system);
		if (fabs(got - want) > 1e-9 * want)
			print_error("n %lu (%u,%u) xor %d p %g: %.9g, not %.9g\n", m.n, m.code.k,
				    m.code.m, m.code.xor_groups, m.loss, got, want);
		assert_true(fabs(got - want) <= 1e-9 * want);
	}
}

/* More likely numbers of failed blocks than weights: interpolation, to 1e-4. */
static void test_ec_interpolated(void **state)
{
	struct ec_model m = {.n = 4 * 6000,
			     .code = {4, 1, false},
			     .loss = 0.3,
			     .rtt = 3000,
			     .cost = 9001,
			     .beta = 1};
	double fail = ec_block_fail(&m.code, m.loss), got, want = 0;
	struct ec_dist dist;

	(void)state;
	for (uint64_t f = 2500; f <= 3300; f++) {
		struct sr_model sr = {.n = f * 4, .loss = m.loss, .cost = m.cost};
		double mean;

		assert_int_equal(sr_mean(&sr, &sdr_alloc_system, &mean), 0);
		want += exp(num_binomial_log_pmf(6000, f, fail)) * (30000 + 3 * m.rtt + mean);
	}
	assert_int_equal(ec_dist_init(&dist, &m, &sdr_alloc_system), 0);
	assert_int_equal(ec_mean(&dist, &sdr_alloc_system, &got), 0);
	ec_dist_fini(&dist, &sdr_alloc_system);
	assert_true(fabs(got - want) <= 1e-4 * want);
}

/* Draws: means within 5 standard errors, shares at three places too. */
static void test_draws(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 14);
	for (int i = 0; i < 12; i++) {
		struct sr_model m = random_sr(&rng);
		double mean, sum = 0, squares = 0, y = sr_quantile(&m, 0.8), below = 0;
		int count = 20000;
		double p = sr_cdf(&m, y + 1e-9);

		for (int s = 0; s < count; s++) {
			double x = sr_draw(&m, &rng);

			sum += x;
			squares += x * x;
			below += x <= y + 1e-9;
		}
		sum /= count;
		squares = sqrt(fmax(squares / count - sum * sum, 0) / count);
		assert_int_equal(sr_mean(&m, &sdr_alloc_system, &mean), 0);
		/* Rare losses may be missing among the samples. */
		assert_true(fabs(sum - mean) <= 5 * squares + 1e-3 * mean);
		assert_true(fabs(below / count - p) <= 5 * sqrt(p * (1 - p) / count) + 1e-3);
	}
}

/* The chain, one unit after another. */
static void twin_after(const struct burst *b, uint32_t units, double *lost)
{
	for (uint32_t u = 0; u < units; u++)
		*lost = *lost * (1 - b->to_ok) + (1 - *lost) * b->to_lost;
}

static double twin_chain_fail(const struct burst *b, uint32_t n, uint32_t m, uint32_t step)
{
	double sum = 0;

	for (uint32_t lost = 0; lost < 1u << n; lost++) {
		double p = lost & 1 ? b->loss : 1 - b->loss;

		for (uint32_t i = 1; i < n; i++) {
			double next = lost >> (i - 1) & 1;

			twin_after(b, step, &next);
			p *= lost >> i & 1 ? next : 1 - next;
		}
		if (__builtin_popcount(lost) > (int)m)
			sum += p;
	}
	return sum;
}

static void test_chain(void **state)
{
	static const double losses[] = {1e-4, 0.01, 0.2};
	static const double bursts[] = {1, 2, 8, 64};
	double fail[8];
	struct burst b;

	(void)state;
	for (int l = 0; l < 3; l++) {
		for (int i = 0; i < 4; i++) {
			for (uint32_t step = 1; step <= 40; step += 13) {
				burst_init(&b, losses[l], bursts[i]);
				burst_block_fail(&b, 5, 4, step, fail);
				for (uint32_t m = 0; m <= 4; m++) {
					double want = twin_chain_fail(&b, 5 + m, m, step);

					assert_true(fabs(fail[m] - want) <= 1e-9 * want + 1e-18);
				}
			}
		}
	}
}

/* A chunk is lost if any packet is: the chain, packet by packet. */
static void test_chunks(void **state)
{
	struct burst packet, chunk;

	(void)state;
	for (uint32_t packets = 1; packets <= 64; packets *= 4) {
		double ok, all;

		burst_init(&packet, 0.02, 5);
		burst_of_chunks(&chunk, 0.02, 5, packets);
		ok = 1 - packet.loss;
		for (uint32_t i = 1; i < packets; i++)
			ok *= 1 - packet.to_lost;
		all = 1;
		for (uint32_t i = 0; i < packets; i++)
			all *= 1 - packet.to_lost;
		assert_true(fabs(chunk.loss - (1 - ok)) < 1e-12);
		assert_true(fabs(chunk.to_lost - (1 - all)) < 1e-12);
		assert_true(fabs(chunk.loss * chunk.to_ok - (1 - chunk.loss) * chunk.to_lost) <
			    1e-12);
	}
}

/* The channel: share of lost slots and length of runs, looked at in leaps or slot by slot. */
static void test_channel(void **state)
{
	static const double bursts[] = {1, 4, 20};
	struct rng rng;

	(void)state;
	rng_init(&rng, 15);
	for (int i = 0; i < 6; i++) {
		uint64_t leap = i < 3 ? 1 : 997, lost = 0, runs = 0, slots = 400000;
		struct burst b;
		struct chan c;
		double share, sigma;
		bool before = false;

		burst_init(&b, 0.1, bursts[i % 3]);
		chan_start(&c, &b, &rng, 0);
		for (uint64_t s = 0; s < slots; s++) {
			bool gone;

			chan_seek(&c, s * leap);
			gone = c.from <= s * leap;
			lost += gone;
			runs += gone && !before;
			before = gone;
		}
		share = (double)lost / (double)slots;
		sigma = sqrt(0.1 * 0.9 / (double)slots * (leap == 1 ? 2 * bursts[i % 3] : 1));
		assert_true(fabs(share - 0.1) < 5 * sigma);
		if (leap == 1 && i > 0)
			assert_true(fabs((double)lost / (double)runs - bursts[i]) <
				    0.1 * bursts[i]);
	}
}

static void test_binomial(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 40; n += 3) {
		for (uint32_t m = 0; m < n; m += 2) {
			double want = 0;

			for (uint32_t i = m + 1; i <= n; i++)
				want += exp(num_binomial_log_pmf(n, i, 0.03));
			assert_true(fabs(num_binomial_above(n, m, 0.03) - want) <= 1e-10 * want);
		}
	}
	assert_true(num_binomial_above(10, 10, 0.5) == 0);
	assert_true(fabs(num_binomial_above(1, 0, 1e-9) - 1e-9) < 1e-20);
	assert_true(fabs(num_any(1e9, 1e-15) - 1e-6) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sr_twin),	 cmocka_unit_test(test_sr_quantile),
		cmocka_unit_test(test_sr_large), cmocka_unit_test(test_block_fail),
		cmocka_unit_test(test_ec_twin),	 cmocka_unit_test(test_ec_interpolated),
		cmocka_unit_test(test_draws),	 cmocka_unit_test(test_chain),
		cmocka_unit_test(test_chunks),	 cmocka_unit_test(test_channel),
		cmocka_unit_test(test_binomial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
