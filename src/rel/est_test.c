/* SPDX-License-Identifier: Apache-2.0 */
/* The path estimator: seeded Gilbert channels, whose truth is known, and counts that are odd. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "rel/est.h"

#define MS UINT64_C(1000000)
#define RTT (20 * MS)
#define LOOKS 10u /* a round trip */

/* Packets through a Gilbert channel (all are lost in its bad state), looked at ten times an RTT. */
struct path {
	struct rng rng;
	double loss, burst;
	bool bad;
	uint64_t left; /* packets before its state turns */
	uint64_t per_rtt, lost, now;
	uint64_t late; /* lost so far, but they come in the end */
	bool no_runs;  /* nobody declares losses: they are decoded first */
	struct rel_tx_loss counts;
	struct rel_est est;
};

static void path_set(struct path *p, double loss)
{
	p->loss = loss;
	p->left = 0;
	p->bad = true; /* turns good first */
}

static void path_init(struct path *p, uint64_t seed, double loss, double burst, uint64_t per_rtt)
{
	*p = (struct path){.burst = burst, .per_rtt = per_rtt, .now = 1000 * MS};
	path_set(p, loss);
	rng_init(&p->rng, seed);
	rel_est_init(&p->est, 0, 0);
}

/* Into the other state, for so many packets. */
static void turn(struct path *p)
{
	double leave = p->bad ? p->loss / (p->burst * (1 - p->loss)) : 1 / p->burst;
	double stay = leave > 0 ? log(1 - rng_unit(&p->rng)) / log1p(-leave) : 1e18;
	p->bad = !p->bad;
	p->left = 1 + (uint64_t)fmin(stay, 1e18);
	if (leave >= 1)
		p->left = 1;
	p->counts.runs += p->bad && !p->no_runs;
}

static void look(struct path *p)
{
	double loss, burst;
	p->now += RTT / LOOKS;
	rel_est_update(&p->est, &p->counts, RTT, p->now);
	rel_est_get(&p->est, &loss, &burst);
	assert_true(loss > 0 && loss < 1 && burst >= 1 && isfinite(burst));
}

/* A tenth of a round trip. */
static void pass(struct path *p)
{
	for (uint64_t n = p->per_rtt / LOOKS; n;) {
		if (!p->left)
			turn(p);
		uint64_t run = u64_min(n, p->left);
		p->left -= run;
		n -= run;
		p->counts.passed_pkts += run;
		p->counts.arrived_pkts += p->bad ? 0 : run;
		p->counts.run_pkts += p->bad && !p->no_runs ? run : 0;
		p->lost += p->bad ? run : 0;
	}
	look(p);
}

static void pass_pkts(struct path *p, uint64_t pkts)
{
	for (uint64_t end = p->counts.passed_pkts + pkts; p->counts.passed_pkts < end;)
		pass(p);
}

static double loss_of(const struct path *p)
{
	double loss, burst;
	rel_est_get(&p->est, &loss, &burst);
	return loss;
}

static double burst_of(const struct path *p)
{
	double loss, burst;
	rel_est_get(&p->est, &loss, &burst);
	return burst;
}

static void nothing_known(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 1, 0, 1, 1000);
	assert_true(fabs(loss_of(&p) - REL_EST_UNKNOWN) < 1e-9);
	assert_true(fabs(burst_of(&p) - REL_EST_UNKNOWN_BURST) < 1e-9);
	assert_false(rel_est_changed(&p.est));
	/* Nothing lost of n: about 1 / n. */
	for (uint64_t n = 10000; n <= 1000000; n *= 10) {
		pass_pkts(&p, n - p.counts.passed_pkts);
		assert_true(loss_of(&p) > 0.8 / (double)n && loss_of(&p) < 1.3 / (double)n);
	}
	pass_pkts(&p, 20000000);
	assert_true(loss_of(&p) < 6e-7);
}

static void priors(void **state)
{
	static const double losses[] = {1e-7, 1e-4, 1e-2, 0.3};
	static const double bursts[] = {1, 8, 100};
	double loss, burst;
	struct path p;
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(losses) * SDR_ARRAY_LEN(bursts); i++) {
		double told = losses[i % 4], run = bursts[i / 4];
		path_init(&p, 2, 1e-3, 4, 1000);
		rel_est_init(&p.est, told, run);
		rel_est_get(&p.est, &loss, &burst);
		assert_true(loss >= told && loss < 1.5 * told);
		assert_true(burst >= run && burst < 1.5 * run);
		/* What is seen outweighs it in the end. */
		pass_pkts(&p, 2000000);
		double truth = (double)p.lost / (double)p.counts.passed_pkts;
		assert_true(loss_of(&p) > 0.8 * truth && loss_of(&p) < 2 * truth);
		assert_true(burst_of(&p) > 3 && burst_of(&p) < 9);
	}
	rel_est_init(&p.est, 1e-3, 0);
	rel_est_get(&p.est, &loss, &burst);
	assert_true(fabs(burst - 1) < 1e-9);
}

/* After twenty bursts: within a factor, and seldom too low. */
static void within_a_factor(void **state)
{
	static const double losses[] = {0.2, 1e-2, 1e-3, 1e-4};
	static const double bursts[] = {1, 8, 64};
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(losses) * SDR_ARRAY_LEN(bursts); i++) {
		double loss = losses[i % 4], burst = bursts[i / 4], sum = 0;
		uint64_t pkts = (uint64_t)(20 * burst / loss);
		int low = 0, seeds = 60;
		if (pkts > REL_EST_SLOW_PKTS) /* it does not remember so much */
			continue;
		for (int seed = 1; seed <= seeds; seed++) {
			struct path p;
			path_init(&p, (uint64_t)seed, loss, burst, u64_max(pkts / 10, 20));
			pass_pkts(&p, pkts);
			double got = loss_of(&p) / loss;
			assert_true(got > 0.3 && got < 3.5);
			low += got < 1;
			sum += got;
			assert_true(burst_of(&p) > 0.3 * burst && burst_of(&p) < 3 * burst + 2);
		}
		assert_true(sum / seeds > 1 && sum / seeds < 2);
		assert_true(low <= seeds / 4);
	}
}

/* A path that stays what it is is not taken for another one, whoever counts bursts. */
static void no_false_alarm(void **state)
{
	static const double losses[] = {1e-2, 1e-3, 1e-4, 1e-5};
	static const double bursts[] = {1, 4, 64};
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(losses) * SDR_ARRAY_LEN(bursts); i++) {
		struct path p;
		int alarms = 0;
		path_init(&p, 7, losses[i % 4], bursts[i / 4], i % 2 ? 300 : 20000);
		p.no_runs = bursts[i / 4] < 8 && i % 3 == 0;
		pass_pkts(&p, 200000);
		for (uint64_t end = p.counts.passed_pkts + 1500000; p.counts.passed_pkts < end;) {
			pass(&p);
			alarms += rel_est_changed(&p.est);
		}
		assert_int_equal(alarms, 0);
	}
}

/* Much worse of a sudden: seen within two round trips or some hundred losses. */
static void another_path(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct path p;
		double burst = seed % 3 ? 1 : 8;
		bool told = false;
		path_init(&p, seed, 1e-5, burst, seed % 2 ? 20000 : 200);
		p.no_runs = seed % 4 == 1;
		pass_pkts(&p, 2000000);
		assert_true(loss_of(&p) < 1e-4 && !rel_est_changed(&p.est));
		path_set(&p, 1e-2);
		uint64_t lost = p.lost, end = p.now + 2 * RTT;
		while (p.now < end || p.lost < lost + 300) {
			pass(&p);
			told |= rel_est_changed(&p.est);
		}
		assert_true(told);
		assert_true(loss_of(&p) > 0.5e-2 && loss_of(&p) < 5e-2);
		pass_pkts(&p, 400000);
		assert_true(loss_of(&p) > 0.8e-2 && loss_of(&p) < 2e-2);
		/* Better again: believed slowly. */
		path_set(&p, 1e-5);
		pass_pkts(&p, 2 * p.per_rtt);
		assert_true(loss_of(&p) > 0.3e-2);
		pass_pkts(&p, 12000000);
		assert_true(loss_of(&p) < 1e-3 && !rel_est_changed(&p.est));
		pass_pkts(&p, 30000000);
		assert_true(loss_of(&p) < 1e-4);
	}
}

/* One long run of losses is one event, and no other path. */
static void an_outage(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 5, 1e-4, 1, 20000);
	pass_pkts(&p, 1000000);
	double before = loss_of(&p);
	p.counts.passed_pkts += 500;
	p.counts.run_pkts += 500;
	p.counts.runs++;
	for (uint32_t i = 0; i < 20 * LOOKS; i++) {
		pass(&p);
		assert_false(rel_est_changed(&p.est));
	}
	assert_true(loss_of(&p) > before && loss_of(&p) < 20 * before);
}

/* Packets that overtake each other are never counted as lost; late ones not for ever. */
static void reordering(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 6, 0, 1, 10000);
	for (uint32_t i = 0; i < 1000; i++) { /* up to 200 have passed and not arrived */
		uint64_t hidden = i % 3 ? rng_below(&p.rng, 200) : 0;
		p.counts.passed_pkts += 1000;
		p.counts.arrived_pkts = p.counts.passed_pkts - hidden;
		look(&p);
		assert_false(rel_est_changed(&p.est));
	}
	assert_true(loss_of(&p) < 2e-6);
	/* Ten per cent come some round trips late: taken as lost meanwhile, but not for ever. */
	path_init(&p, 6, 0, 1, 10000);
	pass_pkts(&p, 50000);
	for (uint32_t i = 0; i < 3 * LOOKS; i++) {
		p.counts.passed_pkts += 1000;
		p.counts.arrived_pkts += 900;
		p.late += 100;
		look(&p);
	}
	assert_true(loss_of(&p) > 1e-2);
	p.counts.arrived_pkts += p.late;
	pass_pkts(&p, 1000000);
	assert_true(loss_of(&p) < 2e-6 && !rel_est_changed(&p.est));
	assert_int_equal(p.counts.passed_pkts, p.counts.arrived_pkts);
}

/* What passed cannot always be dated: arrivals may be ahead of it, and it catches up. */
static void undated(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 8, 0, 1, 10000);
	pass_pkts(&p, 100000);
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < 5; i++) {
			p.counts.arrived_pkts += 1000;
			p.counts.passed_pkts += i * 100;
			look(&p);
		}
		p.counts.passed_pkts = p.counts.arrived_pkts;
		look(&p);
	}
	assert_true(loss_of(&p) < 1e-4 && !rel_est_changed(&p.est));
}

/* A path that doubles packets can still be seen to lose some. */
static void doubles(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 9, 0, 1, 10000);
	for (uint32_t i = 0; i < 1000; i++) {
		p.counts.arrived_pkts += 5;
		pass(&p);
	}
	assert_true(loss_of(&p) < 1e-5);
	path_set(&p, 5e-2);
	pass_pkts(&p, 100000);
	assert_true(loss_of(&p) > 1e-2);
}

/* A write now and then: its last packets are settled though nothing follows. */
static void now_and_then(void **state)
{
	struct path p;
	(void)state;
	path_init(&p, 10, 0, 1, 10000);
	for (uint32_t i = 0; i < 100; i++) {
		p.counts.passed_pkts += 100;
		p.counts.arrived_pkts += 90;
		look(&p);
		p.now += 50 * RTT;
		look(&p);
	}
	assert_true(loss_of(&p) > 0.09 && loss_of(&p) < 0.2);
}

/* Whatever the counts: a number between 0 and 1. */
static void never_nan(void **state)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 1, 2, 1e-300, 1e300};
	double loss, burst;
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(odd) * SDR_ARRAY_LEN(odd); i++) {
		struct path p;
		path_init(&p, i + 1, 0, 1, 100);
		rel_est_init(&p.est, odd[i % 9], odd[i / 9]);
		rel_est_get(&p.est, &loss, &burst);
		assert_true(loss > 0 && loss < 1 && burst >= 1);
		for (int n = 0; n < 2000; n++) {
			uint64_t most = UINT64_C(1) << rng_below(&p.rng, 50);
			p.counts.passed_pkts += rng_below(&p.rng, most);
			p.counts.arrived_pkts += rng_below(&p.rng, most);
			p.counts.runs += rng_below(&p.rng, 100);
			p.counts.run_pkts += rng_below(&p.rng, most);
			if (n % 100 == 50) /* even those that should only rise */
				p.counts.runs = p.counts.run_pkts = p.counts.arrived_pkts = 0;
			rel_est_update(&p.est, &p.counts, rng_below(&p.rng, 3) * RTT, p.now);
			look(&p);
		}
	}
	/* Forgetting goes on for ever without anything lost. */
	struct path p;
	path_init(&p, 1, 0, 1, 100);
	rel_est_init(&p.est, 1e-3, 8);
	for (int n = 0; n < 20000; n++) {
		p.counts.passed_pkts += 4000000;
		p.counts.arrived_pkts += 4000000;
		look(&p);
	}
	assert_true(loss_of(&p) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_known),   cmocka_unit_test(priors),
		cmocka_unit_test(within_a_factor), cmocka_unit_test(no_false_alarm),
		cmocka_unit_test(another_path),	   cmocka_unit_test(an_outage),
		cmocka_unit_test(reordering),	   cmocka_unit_test(undated),
		cmocka_unit_test(doubles),	   cmocka_unit_test(now_and_then),
		cmocka_unit_test(never_nan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
