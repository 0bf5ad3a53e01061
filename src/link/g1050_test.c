/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the G.1050 severities: each value of the table, the folded access links against a
 * simulation of both of them and the core, and what a link does with it in the long run.
 */
#include "link/g1050.h"

#include "base/bits.h"
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct row {
	double core_loss_pct, occupancy_pct;
	uint64_t jitter_ms, delay_ms, interval_s, flap_ms, failure_ms;
	double reorder_pct;
};

/* As the standard's table has them, column by column. */
static const struct row table[] = {
	['A' - 'A'] = {0, 0, 5, 16, 0, 0, 0, 0},
	['B' - 'A'] = {0.01, 1, 10, 32, 3600, 2, 64, 0},
	['C' - 'A'] = {0.02, 2, 16, 64, 1800, 4, 128, 0},
	['D' - 'A'] = {0.04, 4, 40, 128, 900, 8, 256, 0},
	['E' - 'A'] = {0.1, 8, 70, 196, 480, 16, 400, 0},
	['F' - 'A'] = {0.2, 15, 100, 256, 240, 32, 800, 0},
	['G' - 'A'] = {0.5, 30, 150, 512, 120, 64, 1600, 0},
	['H' - 'A'] = {1.0, 50, 500, 768, 60, 128, 3000, 1},
};

static void assert_close(double x, double expected)
{
	if (fabs(x - expected) > 1e-12)
		fail_msg("%.15g is not %.15g", x, expected);
}

static void assert_near(double x, double mean, double deviation)
{
	if (fabs(x - mean) > 5 * deviation)
		fail_msg("%g is not %g +- %g", x, mean, 5 * deviation);
}

static void test_values_of_the_table(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SDR_ARRAY_LEN(table); i++) {
		const struct row *r = &table[i];
		struct link_attr a = {.rate_bps = 77, .queue_bytes = 5, .jitter_reorders = true};

		assert_int_equal(link_g1050((char)('A' + i), 1, 1000, &a), 0);
		assert_int_equal(link_attr_check(&a), 0);
		assert_int_equal(a.delay_ns, r->delay_ms * NS_PER_MS);
		assert_int_equal(a.jitter_ns, r->jitter_ms * NS_PER_MS);
		assert_false(a.jitter_reorders);
		assert_close(a.reorder_p, r->reorder_pct / 100);
		assert_int_equal(a.reorder_ns, 0);
		assert_int_equal(a.flap.every_ns, 2 * r->interval_s * NS_PER_S);
		assert_int_equal(a.flap.for_ns, r->interval_s * NS_PER_S);
		assert_int_equal(a.flap_delay_ns, r->flap_ms * NS_PER_MS);
		assert_int_equal(a.outage.every_ns, r->interval_s * NS_PER_S);
		assert_int_equal(a.outage.for_ns, r->failure_ms * NS_PER_MS);
		assert_close(a.loss.loss_good, r->core_loss_pct / 100);
		if (r->interval_s) {
			assert_in_range(a.flap.first_ns, 1000, 999 + 2 * r->interval_s * NS_PER_S);
			assert_in_range(a.outage.first_ns, 1000, 999 + r->interval_s * NS_PER_S);
		}
		assert_int_equal(a.rate_bps, 77); /* the rest is left as it is */
		assert_int_equal(a.queue_bytes, 5);
	}
}

static void test_names_and_seeds(void **state)
{
	struct link_attr a = {0}, b = {0};

	(void)state;
	for (int c = -128; c < 128; c++) {
		bool known = (c >= 'A' && c <= 'H') || (c >= 'a' && c <= 'h');

		a = (struct link_attr){.delay_ns = 3};
		assert_int_equal(link_g1050((char)c, 1, 0, &a), known ? 0 : -EINVAL);
		if (!known)
			assert_int_equal(a.delay_ns, 3);
	}
	memset(&a, 0, sizeof(a));
	assert_int_equal(link_g1050('d', 7, 0, &a), 0);
	assert_int_equal(link_g1050('D', 7, 0, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(link_g1050('D', 8, 0, &b), 0);
	assert_int_not_equal(a.outage.first_ns, b.outage.first_ns);
	assert_int_not_equal(a.flap.first_ns, b.flap.first_ns);
	/* Too late a start is refused by the link, not wrapped. */
	assert_int_equal(link_g1050('H', 7, UINT64_MAX - 5, &b), 0);
	assert_int_equal(link_attr_check(&b), -ERANGE);
}

/* One access link, as the standard has it. */
struct access {
	double up, down, loss_high;
	bool high;
};

static bool access_loses(struct access *a, struct rng *rng)
{
	bool was_high = a->high;

	if (rng_unit(rng) < (a->high ? a->down : a->up))
		a->high = !a->high;
	return was_high && rng_unit(rng) < a->loss_high;
}

/* The simulated whole has the fold's share of "any high", its length, and its loss. */
static void test_fold_against_two_access_links(void **state)
{
	const uint64_t n = 4000000;

	(void)state;
	for (unsigned int i = 3; i < SDR_ARRAY_LEN(table); i++) {
		double occupancy = table[i].occupancy_pct;
		struct access a = {0.0002 * occupancy, 0.2 / (1 + occupancy), 0.0005 * occupancy,
				   false};
		struct access b = a;
		uint64_t any = 0, turns = 0, lost = 0;
		struct link_attr attr = {0};
		bool was_any = false;
		struct rng rng;
		double share;

		rng_init(&rng, i);
		assert_int_equal(link_g1050((char)('A' + i), 1, 0, &attr), 0);
		for (uint64_t k = 0; k < n; k++) {
			bool is_any = a.high || b.high;
			bool lost_a = access_loses(&a, &rng), lost_b = access_loses(&b, &rng);

			any += is_any;
			turns += is_any && !was_any;
			was_any = is_any;
			lost += lost_a || lost_b || rng_unit(&rng) < table[i].core_loss_pct / 100;
		}
		share = attr.loss.p_gb / (attr.loss.p_gb + attr.loss.p_bg);
		/* A stay in "any" is about geometric: its sum deviates by its mean * sqrt(2 turns).
		 */
		assert_near((double)any, share * (double)n,
			    sqrt(2 * (double)turns) / attr.loss.p_bg);
		assert_near((double)turns, share * (double)n * attr.loss.p_bg, sqrt((double)turns));
		assert_near((double)lost, link_ge_ratio(&attr.loss) * (double)n,
			    sqrt((double)lost) +
				    sqrt(2 * (double)turns) / attr.loss.p_bg * attr.loss.loss_bad);
	}
}

/* The row "all loss" of g1050.h, and in closed form: nothing of either access link and nothing of
 * the core. */
static void test_long_run_loss_is_exact(void **state)
{
	static const double documented[] = {0,	     1.02e-4, 2.12e-4, 4.78e-4,
					    1.54e-3, 4.90e-3, 1.93e-2, 4.52e-2};

	(void)state;
	for (unsigned int i = 0; i < SDR_ARRAY_LEN(table); i++) {
		double occ = table[i].occupancy_pct, up = 0.0002 * occ, down = 0.2 / (1 + occ);
		double pass = 1 - up / (up + down) * 0.0005 * occ;
		struct link_attr attr = {0};

		assert_int_equal(link_g1050((char)('A' + i), 1, 0, &attr), 0);
		assert_close(link_ge_ratio(&attr.loss),
			     1 - (1 - table[i].core_loss_pct / 100) * pass * pass);
		assert_true(fabs(link_ge_ratio(&attr.loss) - documented[i]) <=
			    0.005 * documented[i]);
	}
}

struct seen {
	uint64_t lost, out, longer, early, n;
};

/* An hour at 1000 packets/s; delivery times tell the route. */
static struct seen run(char severity, uint64_t seed)
{
	struct link_attr attr = {0};
	struct seen s = {.n = 3600000};
	struct link_fate fate;
	struct link l;

	assert_int_equal(link_g1050(severity, seed, 0, &attr), 0);
	attr.jitter_ns = 0;
	assert_int_equal(link_init(&l, &attr, seed), 0);
	for (uint64_t i = 0; i < s.n; i++) {
		uint64_t now = i * NS_PER_MS;

		link_offer(&l, now, 1500, &fate);
		s.lost += fate.lost == LINK_LOST_RANDOM;
		s.out += fate.lost == LINK_LOST_BLACKOUT;
		s.longer += fate.copies &&
			    fate.deliver_ns[0] == now + attr.delay_ns + attr.flap_delay_ns;
		s.early += fate.copies && fate.deliver_ns[0] < now + attr.delay_ns;
	}
	link_check(&l);
	return s;
}

static void test_a_link_runs_with_it(void **state)
{
	(void)state;
	for (char c = 'E'; c <= 'H'; c++) {
		const struct row *r = &table[c - 'A'];
		struct link_attr attr = {0};
		struct seen s = run(c, 11);
		double outs = 3600.0 / (double)r->interval_s; /* whole intervals */
		double up = (double)(s.n - s.out), ratio;

		assert_int_equal(link_g1050(c, 11, 0, &attr), 0);
		ratio = link_ge_ratio(&attr.loss);
		assert_int_equal(s.early, 0);
		assert_in_range(s.out, (uint64_t)(outs - 1) * r->failure_ms,
				(uint64_t)outs * r->failure_ms);
		/* Bursts of loss widen the deviation of independent losses; a factor of 3 covers.
		 */
		assert_near((double)s.lost, up * ratio, 3 * sqrt(up * ratio));
		/* Half of the time, within one interval and what is lost. */
		assert_near((double)s.longer, (up - (double)s.lost) / 2,
			    (double)r->interval_s * 1000 / 5);
	}
}

/* Jitter keeps the order but for the share of H that does not. */
static void test_only_h_reorders(void **state)
{
	(void)state;
	for (char c = 'G'; c <= 'H'; c++) {
		struct link_attr attr = {0};
		struct link_fate fate;
		struct link l;

		assert_int_equal(link_g1050(c, 3, 0, &attr), 0);
		attr.flap = (struct link_periodic){0};
		attr.outage = (struct link_periodic){0};
		attr.loss = (struct link_ge){0};
		assert_int_equal(link_init(&l, &attr, 3), 0);
		for (uint64_t i = 0; i < 1000000; i++)
			link_offer(&l, i * NS_PER_MS / 10, 1500, &fate);
		/* Nearly every packet with a jitter of its own overtakes some at this rate. */
		if (c == 'G')
			assert_int_equal(l.counters.reordered_pkts, 0);
		else
			assert_in_range(l.counters.reordered_pkts, 9000, 10500);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_of_the_table),
		cmocka_unit_test(test_names_and_seeds),
		cmocka_unit_test(test_fold_against_two_access_links),
		cmocka_unit_test(test_long_run_loss_is_exact),
		cmocka_unit_test(test_a_link_runs_with_it),
		cmocka_unit_test(test_only_h_reorders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
