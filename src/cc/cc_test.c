/* SPDX-License-Identifier: Apache-2.0 */
/* The seam, fixed, and the circuit breaker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "cc/path.h"

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

static void names(void **state)
{
	(void)state;
	struct cc cc;
	struct cc_params p = {.payload_bytes = 1436};
	assert_int_equal(cc_init(&cc, "grow", &p), 0);
	assert_string_equal(cc_name(&cc), "grow");
	assert_int_equal(cc_init(&cc, "fixed", &p), -EINVAL);
	p.rate_bps = 1000000;
	assert_int_equal(cc_init(&cc, "fixed", &p), 0);
	assert_string_equal(cc_name(&cc), "fixed");
	assert_int_equal(cc_pacing_bps(&cc), 1000000);
	assert_int_equal(cc_init(&cc, "bbr", &p), -EINVAL);
	assert_int_equal(cc_init(&cc, "", &p), -EINVAL);
	assert_int_equal(cc_init(&cc, NULL, &p), -EINVAL);
	p.payload_bytes = 0;
	assert_int_equal(cc_init(&cc, "grow", &p), -EINVAL);
}

/* Every slot of every implementation, before any sample and with odd ones. */
static void every_slot(void **state)
{
	(void)state;
	static const char *const all[] = {"fixed", "grow"};
	for (size_t i = 0; i < 2; i++) {
		struct cc cc;
		struct cc_params p = {.payload_bytes = 1436, .rate_bps = 10000000};
		assert_int_equal(cc_init(&cc, all[i], &p), 0);
		const void *const *slot = (const void *const *)cc.ops;
		for (size_t k = 0; k < sizeof(*cc.ops) / sizeof(void *); k++)
			assert_non_null(slot[k]);
		assert_true(cc_window_bytes(&cc) >= 2 * 1436);
		assert_true(cc_pacing_bps(&cc) > 0);
		assert_int_equal(cc_breaker(&cc), CC_BREAKER_CLOSED);
		struct rng rng;
		rng_init(&rng, i);
		uint64_t now = 1;
		for (int n = 0; n < 20000; n++) {
			struct cc_sample s = {0};
			uint8_t *raw = (uint8_t *)&s;
			for (size_t b = 0; b < offsetof(struct cc_sample, app_limited); b++)
				raw[b] = rng_below(&rng, 4) ? 0 : (uint8_t)rng_next(&rng);
			now += rng_below(&rng, 50 * MS);
			s.now_ns = now - rng_below(&rng, 2) * rng_below(&rng, now);
			if (rng_below(&rng, 16) == 0)
				cc_hint(&cc, rng_next(&rng) >> rng_below(&rng, 64), s.now_ns);
			cc_ack(&cc, &s);
			cc_check(&cc);
			assert_true(cc_window_bytes(&cc) >= 2 * 1436);
			assert_true(cc_pacing_bps(&cc) > 0);
		}
	}
}

static void fixed_fills_the_line(void **state)
{
	(void)state;
	static const uint64_t rtts[] = {MS / 10, 10 * MS, 100 * MS};
	for (size_t i = 0; i < 6; i++) {
		struct path_config c = {
			.rate_bps = 1e9, .rtt_ns = rtts[i / 2], .loss = i % 2 ? 0.1 : 0};
		struct cc_params params = {.payload_bytes = PATH_PAYLOAD, .rate_bps = 1000000000};
		struct cc cc;
		assert_int_equal(cc_init(&cc, "fixed", &params), 0);
		struct path *p = path_new(&c, &cc);
		path_run(p, 500 * MS);
		path_take(p);
		path_run(p, 500 * MS);
		struct path_stats s = path_take(p);
		assert_true(s.delivered_bps >= 0.97 * (1 - c.loss) * c.rate_bps);
		path_free(p);
	}
}

static enum cc_breaker_state breaker_after(const char *name, double loss, uint64_t ns, double limit)
{
	struct path_config c = {.rate_bps = 100e6, .rtt_ns = 20 * MS, .loss = loss};
	struct cc_params params = {.payload_bytes = PATH_PAYLOAD,
				   .rate_bps = 50000000,
				   .rtt_ns = 20 * MS,
				   .breaker_loss = limit};
	struct cc cc;
	assert_int_equal(cc_init(&cc, name, &params), 0);
	struct path *p = path_new(&c, &cc);
	path_run(p, ns);
	enum cc_breaker_state state = cc_breaker(&cc);
	path_free(p);
	return state;
}

static void breaker(void **state)
{
	(void)state;
	assert_int_equal(breaker_after("fixed", 0.6, 12 * SEC, 0), CC_BREAKER_OPEN);
	assert_int_equal(breaker_after("fixed", 0.6, 9 * SEC, 0), CC_BREAKER_CLOSED);
	assert_int_equal(breaker_after("fixed", 0.3, 30 * SEC, 0), CC_BREAKER_CLOSED);
	assert_int_equal(breaker_after("fixed", 0.45, 30 * SEC, 0), CC_BREAKER_CLOSED);
	assert_int_equal(breaker_after("fixed", 0.3, 12 * SEC, 0.2), CC_BREAKER_OPEN);
	assert_int_equal(breaker_after("grow", 0.3, 30 * SEC, 0), CC_BREAKER_CLOSED);
	assert_int_equal(breaker_after("grow", 0.65, 30 * SEC, 0), CC_BREAKER_OPEN);
}

/* One good interval among bad ones keeps it closed; silence counts for nothing. */
/*
 * ACKs are told with the time at which they came, timers with the time now: what comes in
 * the wrong order is no hour of silence.
 */
static void time_does_not_go_back(void **state)
{
	struct cc_params params = {.payload_bytes = 1436, .rtt_ns = 10 * MS};
	uint64_t now = 1000 * MS;
	struct cc cc;

	(void)state;
	assert_int_equal(cc_init(&cc, "grow", &params), 0);
	for (uint64_t i = 0; i < 4000; i++) {
		bool late = cc.u.grow.phase == CC_GROW_CRUISE && i % 3 == 0;
		struct cc_sample s = {.rtt_ns = late ? 11 * MS : 10 * MS,
				      .delivered_bytes = 100000,
				      .inflight_bytes = 1000000,
				      .rate_bytes = 1000000,
				      .rate_interval_ns = 10 * MS,
				      .prior_delivered_bytes = 100000 * (i > 10 ? i - 10 : 0),
				      .total_delivered_bytes = 100000 * i};

		s.now_ns = (now += MS) - (late ? 2 * MS : 0);
		cc_ack(&cc, &s);
		cc_check(&cc);
		assert_int_equal(cc.u.grow.reprobe_end_ns, 0);
	}
	assert_int_equal(cc.u.grow.state, CC_GROW_HOLD);
	assert_true(cc_window_bytes(&cc) >= 1000000);
	assert_int_equal(cc_breaker(&cc), CC_BREAKER_CLOSED);
}

static void breaker_counts_in_a_row(void **state)
{
	(void)state;
	struct cc cc;
	struct cc_params params = {.payload_bytes = 1000, .rate_bps = 1000000};
	assert_int_equal(cc_init(&cc, "fixed", &params), 0);
	uint64_t now = 1;
	for (int i = 0; i < 200; i++) {
		struct cc_sample s = {.now_ns = now, .delivered_bytes = 10000, .lost_bytes = 90000};
		if (i % 10 == 9)
			s = (struct cc_sample){.now_ns = now, .delivered_bytes = 100000};
		cc_ack(&cc, &s);
		cc_check(&cc);
		now += SEC;
	}
	assert_int_equal(cc_breaker(&cc), CC_BREAKER_CLOSED);
	for (int i = 0; i < 100; i++) { /* a few packets say nothing */
		struct cc_sample s = {.now_ns = now, .lost_bytes = 5000};
		cc_ack(&cc, &s);
		now += SEC;
	}
	assert_int_equal(cc_breaker(&cc), CC_BREAKER_CLOSED);
	for (int i = 0; i < 100; i++) { /* declared, but they had arrived */
		struct cc_sample s = {.now_ns = now,
				      .delivered_bytes = 100000,
				      .lost_bytes = 300000,
				      .spurious_bytes = 250000};
		cc_ack(&cc, &s);
		now += SEC;
	}
	assert_int_equal(cc_breaker(&cc), CC_BREAKER_CLOSED);
	for (int i = 0; i < 12; i++) {
		struct cc_sample s = {.now_ns = now, .delivered_bytes = 10000, .lost_bytes = 90000};
		cc_ack(&cc, &s);
		now += SEC;
	}
	assert_int_equal(cc_breaker(&cc), CC_BREAKER_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(every_slot),
		cmocka_unit_test(fixed_fills_the_line),
		cmocka_unit_test(breaker),
		cmocka_unit_test(breaker_counts_in_a_row),
		cmocka_unit_test(time_does_not_go_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
