/* SPDX-License-Identifier: Apache-2.0 */
/* grow over a model path: finds the rate, keeps it through loss, follows changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bits.h"
#include "cc/path.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

static const double rates[] = {10e6, 100e6, 1e9, 10e9};
static const uint64_t rtts[] = {100 * US, 10 * MS, 100 * MS};

static struct path *start(struct cc *cc, const struct path_config *c)
{
	struct cc_params params = {.payload_bytes = PATH_PAYLOAD, .rtt_ns = c->rtt_ns};
	assert_int_equal(cc_init(cc, "grow", &params), 0);
	return path_new(c, cc);
}

static uint64_t rounds(uint64_t rtt_ns, uint64_t n)
{
	return n * (rtt_ns > 2 * MS ? rtt_ns : 2 * MS);
}

/* A standing queue that is fine: what grow.c lets pass, and a few packets. */
static double queue_limit_s(const struct path_config *c)
{
	double limit = (double)c->rtt_ns / 4e9;
	/* Under heavy loss the estimate of it errs by a few per cent, now and then. */
	limit = (limit > 0.003 ? limit : 0.003) * (c->loss > 0.05 ? 1.6 : 1.2);
	return limit + 3 * PATH_PAYLOAD * 8 / c->rate_bps;
}

static void show(const char *what, const struct path_config *c, const struct path_stats *s,
		 const struct cc *cc)
{
	if (getenv("CC_REPORT"))
		printf("%-8s %5.0f Mbit %6.1f ms loss %2.0f %%: delivered %5.1f %%, sent %5.1f %%, "
		       "queue mean %.2f max %.2f ms, base loss %.3f\n",
		       what, c->rate_bps / 1e6, (double)c->rtt_ns / 1e6, c->loss * 100,
		       100 * s->delivered_bps / c->rate_bps, 100 * s->sent_bps / c->rate_bps,
		       s->mean_queue_s * 1e3, s->max_queue_s * 1e3, cc->u.grow.base_loss);
}

/* Utilisation after startup, and the queue, over the grid. Loss is before the bottleneck. */
static void grid(void **state)
{
	(void)state;
	static const double losses[] = {0, 0.01, 0.1, 0.3};
	for (size_t i = 0; i < SDR_ARRAY_LEN(rates) * SDR_ARRAY_LEN(rtts) * 4; i++) {
		struct path_config c = {
			.rate_bps = rates[i / 12],
			.rtt_ns = rtts[i / 4 % 3],
			.loss = losses[i % 4],
			.seed = i,
		};
		struct cc cc;
		struct path *p = start(&cc, &c);
		/* Telling losses apart takes some thousand packets, too. */
		double pkt_ns = PATH_PAYLOAD * 8e9 / c.rate_bps;
		path_run(p, u64_max(rounds(c.rtt_ns, 60), (uint64_t)(5000 * pkt_ns)));
		path_take(p);
		path_run(p, u64_max(rounds(c.rtt_ns, 100), (uint64_t)(5000 * pkt_ns)));
		struct path_stats s = path_take(p);
		show("grid", &c, &s, &cc);
		assert_int_equal(cc.u.grow.state, CC_GROW_HOLD);
		assert_true(s.delivered_bps >= (c.loss < 0.2 ? 0.9 : 0.85) * c.rate_bps);
		assert_true(s.mean_queue_s < queue_limit_s(&c));
		path_free(p);
	}
}

static void shallow_buffer(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rates) * SDR_ARRAY_LEN(rtts) * 2; i++) {
		struct path_config c = {
			.rate_bps = rates[i / 6],
			.rtt_ns = rtts[i / 2 % 3],
			.loss = i % 2 ? 0.1 : 0,
			.seed = i,
		};
		/* A tenth of the path, but a few packets. */
		c.queue_s = (double)c.rtt_ns / 1e10;
		double least = 40 * PATH_PAYLOAD * 8 / c.rate_bps;
		c.queue_s = c.queue_s > least ? c.queue_s : least;
		struct cc cc;
		struct path *p = start(&cc, &c);
		/* Rounds last as long as the queue is, at first. */
		uint64_t round_ns = c.rtt_ns + (uint64_t)(c.queue_s * 1e9);
		path_run(p, rounds(round_ns, 60));
		path_take(p);
		path_run(p, rounds(round_ns, 100));
		struct path_stats s = path_take(p);
		show("shallow", &c, &s, &cc);
		assert_true(s.delivered_bps >= 0.85 * c.rate_bps);
		assert_true(s.lost < c.loss + 0.08);
		path_free(p);
	}
}

/* What packet trains said is wrong by far, or right: it must not hold a path up for long. */
static void hints(void **state)
{
	static const double factors[] = {0.01, 0.1, 1, 10, 100};

	(void)state;
	for (size_t i = 0; i < 5 * 3 * 2 * 2 * 2; i++) {
		struct path_config c = {
			.rate_bps = rates[i / 5 % 3],
			.rtt_ns = rtts[1 + i / 15 % 2],
			.loss = i / 30 % 2 ? 0.01 : 0,
			.seed = i,
		};
		struct path_stats s;
		struct path *p;
		struct cc cc;

		/* No more than 64 packets, as many a router and a policer. */
		if (i / 60)
			c.queue_s = 64 * PATH_PAYLOAD * 8 / c.rate_bps;
		p = start(&cc, &c);
		cc_hint(&cc, (uint64_t)(factors[i % 5] * c.rate_bps), 1000000000);
		path_run(p, rounds(c.rtt_ns, 20));
		path_take(p);
		path_run(p, rounds(c.rtt_ns, 20));
		s = path_take(p);
		if (getenv("CC_REPORT"))
			printf("hint x %-5g queue %.2f ms: ", factors[i % 5], c.queue_s * 1e3);
		show("hint", &c, &s, &cc);
		assert_true(s.delivered_bps >= 0.5 * c.rate_bps);
		path_run(p, rounds(c.rtt_ns, 40));
		path_take(p);
		path_run(p, rounds(c.rtt_ns, 60));
		s = path_take(p);
		show("  later", &c, &s, &cc);
		assert_true(s.delivered_bps >= 0.85 * c.rate_bps);
		path_free(p);
	}
}

static void halves_and_doubles(void **state)
{
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rates) * SDR_ARRAY_LEN(rtts) * 2; i++) {
		struct path_config c = {
			.rate_bps = rates[i / 6],
			.rtt_ns = rtts[i / 2 % 3],
			.loss = i % 2 ? 0.05 : 0,
			.seed = i,
		};
		struct cc cc;
		struct path *p = start(&cc, &c);
		path_run(p, rounds(c.rtt_ns, 60));
		path_set_rate(p, c.rate_bps /= 2);
		path_run(p, rounds(c.rtt_ns, 40));
		path_take(p);
		path_run(p, rounds(c.rtt_ns, 60));
		struct path_stats s = path_take(p);
		show("half", &c, &s, &cc);
		assert_true(s.delivered_bps >= 0.85 * c.rate_bps);
		assert_true(s.mean_queue_s < queue_limit_s(&c));
		path_set_rate(p, c.rate_bps *= 4);
		path_run(p, rounds(c.rtt_ns, 60));
		path_take(p);
		path_run(p, rounds(c.rtt_ns, 40));
		s = path_take(p);
		show("fourfold", &c, &s, &cc);
		assert_true(s.delivered_bps >= 0.85 * c.rate_bps);
		path_free(p);
	}
}

/* Scheduling noise of a host on a local link must not look like a queue. */
static void local_noise(void **state)
{
	(void)state;
	struct path_config c = {
		.rate_bps = 10e9, .rtt_ns = 50 * US, .noise_ns = 2 * MS, .queue_s = 0.002};
	struct cc cc;
	struct path *p = start(&cc, &c);
	path_run(p, 300 * MS);
	path_take(p);
	path_run(p, 300 * MS);
	struct path_stats s = path_take(p);
	show("noise", &c, &s, &cc);
	assert_true(s.delivered_bps >= 0.8 * c.rate_bps);
	path_free(p);
}

static void longer_path(void **state)
{
	(void)state;
	struct path_config c = {.rate_bps = 1e9, .rtt_ns = 10 * MS};
	struct cc cc;
	struct path *p = start(&cc, &c);
	path_run(p, 1000 * MS);
	path_set_rtt(p, 60 * MS);
	path_run(p, 12000 * MS);
	path_take(p);
	path_run(p, 3000 * MS);
	struct path_stats s = path_take(p);
	show("longer", &c, &s, &cc);
	assert_true(s.delivered_bps >= 0.9 * c.rate_bps);
	path_free(p);
}

static void idle_keeps_the_estimate(void **state)
{
	(void)state;
	struct path_config c = {.rate_bps = 1e9, .rtt_ns = 20 * MS};
	struct cc cc;
	struct path *p = start(&cc, &c);
	path_run(p, 2000 * MS);
	uint64_t before = cc_bottleneck_bps(&cc);
	path_set_app(p, 5e6);
	path_run(p, 5000 * MS);
	uint64_t after = cc_bottleneck_bps(&cc);
	show("idle", &c, &(struct path_stats){0}, &cc);
	assert_true((double)after >= 0.9 * (double)before);
	path_set_app(p, 0);
	path_run(p, 200 * MS);
	path_take(p);
	path_run(p, 1000 * MS);
	struct path_stats s = path_take(p);
	assert_true(s.delivered_bps >= 0.9 * c.rate_bps);
	path_free(p);
}

static void host_limit(void **state)
{
	(void)state;
	struct path_config c = {.rate_bps = 10e9, .rtt_ns = 10 * MS, .host_bps = 2e9};
	struct cc cc;
	struct path *p = start(&cc, &c);
	path_run(p, 1000 * MS);
	path_take(p);
	path_run(p, 2000 * MS);
	struct path_stats s = path_take(p);
	c.rate_bps = c.host_bps;
	show("host", &c, &s, &cc);
	assert_true(s.delivered_bps >= 0.8 * c.host_bps);
	assert_true(s.lost < 0.1);
	path_free(p);
}

static void respects_the_limit(void **state)
{
	(void)state;
	struct path_config c = {.rate_bps = 1e9, .rtt_ns = 10 * MS};
	struct cc_params params = {.payload_bytes = PATH_PAYLOAD, .max_rate_bps = 300000000};
	struct cc cc;
	assert_int_equal(cc_init(&cc, "grow", &params), 0);
	struct path *p = path_new(&c, &cc);
	path_run(p, 1000 * MS);
	path_take(p);
	path_run(p, 1000 * MS);
	struct path_stats s = path_take(p);
	assert_true(s.sent_bps <= 301e6 && s.delivered_bps >= 0.9 * 300e6);
	path_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grid),
		cmocka_unit_test(shallow_buffer),
		cmocka_unit_test(hints),
		cmocka_unit_test(halves_and_doubles),
		cmocka_unit_test(local_noise),
		cmocka_unit_test(longer_path),
		cmocka_unit_test(idle_keeps_the_estimate),
		cmocka_unit_test(host_limit),
		cmocka_unit_test(respects_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
