/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scheme a write gets, with a path that does what the test says: fixed schemes and what of
 * them depends on the path, room, what was told against what is seen, when the table is made anew,
 * and that all that is chosen can be.
 */
#include "conn/auto.h"

#include "base/bits.h"
#include "base/rng.h"
#include "code/layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define S_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

struct world {
	struct auto_state a;
	struct auto_path path;
	struct rel_tx_loss loss;
	double lost, runs; /* in parts */
	uint64_t now_ns;
	uint32_t remade;
};

static struct rel_params scheme(const char *text)
{
	struct rel_params p;

	assert_int_equal(rel_scheme_parse(text, &p, NULL, 0), 0);
	return p;
}

static void world_init(struct world *w, const char *text, double loss, double burst)
{
	struct rel_params p = scheme(text);

	*w = (struct world){.now_ns = S_NS};
	w->path = (struct auto_path){25 * MS_NS, UINT64_C(100000000000), 4096};
	auto_init(&w->a, &p, loss, burst);
}

/* So long the path carries packets at its rate and loses so much. */
static void run(struct world *w, uint64_t ns, double loss, double burst)
{
	const uint64_t look_ns = 10 * MS_NS;
	double pkts = (double)w->path.rate_bps * (double)look_ns / 8e9 / w->path.payload;

	for (uint64_t end = w->now_ns + ns; w->now_ns < end; w->now_ns += look_ns) {
		uint64_t made_ns = w->a.table_ns;

		w->lost += pkts * loss;
		w->runs += pkts * loss / burst;
		w->loss.passed_pkts += (uint64_t)pkts;
		w->loss.arrived_pkts = w->loss.passed_pkts - (uint64_t)w->lost;
		w->loss.run_pkts = (uint64_t)w->lost;
		w->loss.runs = (uint64_t)w->runs;
		auto_update(&w->a, &w->loss, &w->path, w->now_ns);
		w->remade += w->a.table_made && w->a.table_ns != made_ns;
	}
}

static struct rel_coding choose(struct world *w, uint32_t pkts, struct rel_params *as)
{
	struct rel_coding coding;

	auto_choose(&w->a, pkts, UINT32_MAX, &coding, as);
	return coding;
}

/* ---- fixed schemes ---- */

static void test_uncoded(void **state)
{
	static const char *const texts[] = {"gbn", "sr", "sr-nack", "sr-nack:copies=3"};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(texts); i++) {
		struct rel_coding coding;
		struct rel_params as, is = scheme(texts[i]);
		struct world w;

		world_init(&w, texts[i], 0, 0);
		run(&w, S_NS, 1e-3, 1);
		coding = choose(&w, 1000, &as);
		assert_int_equal(coding.code, REL_CODE_NONE);
		assert_memory_equal(&as, &is, sizeof(as));
		assert_int_equal(auto_parity_pkts(&w.a, 1000), 0);
		assert_int_equal(u64_max(coding.copies, 1), i == 3 ? 3 : 1);
		assert_true(i == 0 || coding.gap_ns > 0);
		assert_string_equal(w.a.why, "as it was set");
	}
}

static void test_spans(void **state)
{
	struct rel_params as;
	struct rel_coding c;
	struct world w;

	(void)state;
	world_init(&w, "ec:32,8", 0, 0);
	c = choose(&w, 1000, &as);
	assert_true(c.code == REL_CODE_RS && c.k == 32 && c.m == 8 && c.depth == 1);
	assert_true(c.span_start == 0 && c.span_pkts == 1000 && !c.fresh);
	assert_int_equal(auto_parity_pkts(&w.a, 1000), 32 * 8);
	world_init(&w, "ec-xor:32,8,span=100,depth=100", 0, 0);
	c = choose(&w, 1000, &as);
	assert_true(c.code == REL_CODE_XOR && c.span_start == 900 && c.span_pkts == 100);
	assert_int_equal(c.depth, 4); /* no more than there are blocks */
	assert_int_equal(choose(&w, 60, &as).span_pkts, 60);
	/* A round trip's packets: all, until it is known. 76294 of 4096 bytes are 25 ms. */
	world_init(&w, "hybrid:k=128,m=10", 0, 0);
	assert_int_equal(choose(&w, 1000000, &as).span_pkts, 1000000);
	run(&w, MS_NS, 1e-3, 1);
	c = choose(&w, 1000000, &as);
	assert_int_equal(c.span_pkts, 76294);
	assert_int_equal(c.span_start, 1000000 - 76294);
	assert_true(c.fresh && c.copies == 4 && c.depth == 64);
	assert_int_equal(choose(&w, 100, &as).span_pkts, 100);
}

/* Margins and gaps follow the path. */
static void test_margins(void **state)
{
	struct rel_params as;
	struct rel_coding few, many;
	struct world w;

	(void)state;
	world_init(&w, "hybrid:k=128,m=10", 1e-6, 1);
	run(&w, MS_NS, 1e-6, 1);
	few = choose(&w, 10000, &as);
	world_init(&w, "hybrid:k=128,m=10", 3e-2, 1);
	run(&w, MS_NS, 3e-2, 1);
	many = choose(&w, 10000, &as);
	assert_true(many.margin[0] > few.margin[0] && many.margin[4] > many.margin[0]);
	world_init(&w, "hybrid:k=128,m=10", 3e-2, 20);
	run(&w, MS_NS, 3e-2, 20);
	assert_true(choose(&w, 10000, &as).gap_ns > 5 * many.gap_ns && many.gap_ns > 0);
}

static void test_room(void **state)
{
	struct rel_coding c;
	struct rel_params as;
	struct world w;

	(void)state;
	world_init(&w, "ec:32,8", 0, 0);
	auto_choose(&w.a, 320, 80, &c, &as); /* just enough */
	assert_int_equal(c.m, 8);
	auto_choose(&w.a, 320, 79, &c, &as);
	assert_int_equal(c.m, 7);
	assert_int_equal(as.m, 7);
	assert_string_equal(w.a.why, "as it was set; but there was room for 79 of parity");
	auto_choose(&w.a, 320, 9, &c, &as); /* not one for each block */
	assert_int_equal(c.code, REL_CODE_NONE);
	assert_int_equal(as.code, REL_CODE_NONE);
	world_init(&w, "auto", 1e-2, 1);
	run(&w, MS_NS, 1e-2, 1);
	assert_true(auto_parity_pkts(&w.a, 1000) > 0);
	auto_choose(&w.a, 1000, 0, &c, &as);
	assert_true(c.code == REL_CODE_NONE && as.nack && as.code == REL_CODE_NONE);
	auto_choose(&w.a, 1000, auto_parity_pkts(&w.a, 1000), &c, &as);
	assert_null(strstr(w.a.why, "room"));
	assert_int_equal(c.m * u64_div_up(c.span_pkts, c.k), auto_parity_pkts(&w.a, 1000));
}

/* ---- auto ---- */

static void check_choice(struct world *w, uint32_t pkts, uint32_t room)
{
	struct code_layout layout;
	struct rel_coding c;
	struct rel_params as, again;
	char name[REL_SCHEME_NAME];

	auto_choose(&w->a, pkts, room, &c, &as);
	assert_true(c.copies >= 1 && c.copies <= REL_COPIES_MAX);
	assert_int_equal(rel_scheme_complete(&as), 0);
	assert_int_equal(rel_scheme_parse(rel_scheme_name(&as, name, sizeof name), &again, NULL, 0),
			 0);
	assert_true(as.policy == REL_POLICY_NONE && as.code == c.code);
	assert_true(strlen(w->a.why) > 10);
	if (c.code == REL_CODE_NONE)
		return;
	assert_int_equal(c.span_start + c.span_pkts, pkts);
	assert_int_equal(code_layout_init(&layout, c.span_pkts, c.k, c.depth), 0);
	assert_true(c.depth <= layout.nblocks && c.m >= 1 && c.k + c.m <= 255);
	assert_true((uint64_t)c.m * layout.nblocks <= room);
	assert_true(as.k == c.k && as.m == c.m && as.depth == c.depth);
}

/* Whatever the path, told or seen, and the size: what is chosen can be. */
static void test_possible(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 200; i++) {
		struct world w;
		double loss = pow(10, -9 + 9 * rng_unit(&rng)), burst = pow(10, 4 * rng_unit(&rng));

		world_init(&w, i % 3 ? "auto" : "auto:policy=table", i % 2 ? fmin(loss, 0.99) : 0,
			   i % 4 ? burst : 0);
		w.path.rtt_ns = i % 7 ? (uint64_t)pow(10, 3 + 8 * rng_unit(&rng)) : 0;
		w.path.rate_bps = i % 11 ? (uint64_t)pow(10, 4 + 8 * rng_unit(&rng)) : 0;
		w.path.payload = 256u << (i % 6);
		check_choice(&w, 100, 100); /* before anything is known */
		run(&w, 100 * MS_NS, fmin(loss, 0.5), fmin(burst, 100));
		assert_true(w.a.table_made);
		for (int j = 0; j < 40; j++) {
			uint32_t pkts = (uint32_t)pow(2, 31 * rng_unit(&rng));

			check_choice(&w, pkts, j % 3 ? UINT32_MAX : pkts / 10);
		}
	}
}

static void test_told(void **state)
{
	struct plan_link link = {100e9, 0.025, 3e-3, 5};
	static struct plan_table want;
	struct world w;

	(void)state;
	world_init(&w, "auto", 3e-3, 5);
	run(&w, S_NS, 3e-3, 5);
	assert_true(w.a.told);
	assert_int_equal(plan_table_make(&link, true, 4096, false, &want), 0);
	for (uint32_t i = 0; i < PLAN_TABLE_ROWS; i++) {
		assert_int_equal(w.a.table.row[i].m, want.row[i].m);
		assert_int_equal(w.a.table.row[i].depth, want.row[i].depth);
	}
	/* What is seen later is believed more. */
	run(&w, 10 * S_NS, 3e-2, 5);
	assert_false(w.a.told);
	assert_true(w.a.table.link.loss > 3e-2 && w.a.table.link.loss < 0.07);
	assert_true(w.a.table.link.burst_pkts >= AUTO_BURST_SEEN_MIN);
}

/* Seen: twice the loss, bursts of 16 until there were some. */
static void test_seen(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "auto", 0, 0);
	run(&w, 50 * MS_NS, 1e-4, 1);
	assert_true(w.a.table.link.burst_pkts >= AUTO_BURST_MIN && !w.a.table.sure);
	run(&w, 30 * S_NS, 1e-4, 1);
	assert_true(w.a.table.link.loss > 1.9e-4 && w.a.table.link.loss < 3e-4);
	assert_true(w.a.table.link.burst_pkts < 8);
	run(&w, 30 * S_NS, 5e-2, 1);
	assert_true(w.a.table.link.loss > 6.9e-2 && w.a.table.link.loss < 8e-2);
	assert_true(w.a.table.row[15].coded && w.a.table.row[15].m >= 24);
}

/* ---- when the table is made anew ---- */

static void test_steady(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "auto", 1e-3, 1);
	run(&w, 60 * S_NS, 1e-3, 1);
	assert_in_range(w.remade, 11, 13);  /* each 5 s */
	assert_int_equal(w.a.decisions, 1); /* and it was the same each time */
}

static uint32_t m_now(const struct world *w)
{
	return w->a.table.row[15].coded ? w->a.table.row[15].m : 0;
}

/* Worse at once, better once it has been so for a while. */
static void test_change(void **state)
{
	uint64_t since;
	uint32_t before;
	struct world w;

	(void)state;
	world_init(&w, "auto", 0, 0);
	run(&w, 20 * S_NS, 1e-4, 1);
	before = m_now(&w);
	since = w.now_ns;
	run(&w, S_NS, 2e-2, 1);
	assert_true(m_now(&w) > before + 5);
	assert_true(w.a.table_ns - since < S_NS);
	run(&w, 60 * S_NS, 1e-4, 1);
	assert_true(m_now(&w) <= before + 1);
}

/* A longer way wants a longer span at once, a shorter one can wait. */
static void test_longer(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "auto", 1e-3, 1);
	run(&w, S_NS, 1e-3, 1);
	assert_true(w.a.table.row[31].span < 77000);
	w.path.rtt_ns *= 2;
	run(&w, 100 * MS_NS, 1e-3, 1);
	assert_true(w.a.table.row[31].span > 150000);
	w.path.rtt_ns /= 2;
	run(&w, AUTO_CALM_NS - 100 * MS_NS, 1e-3, 1);
	assert_true(w.a.table.row[31].span > 150000);
	run(&w, 200 * MS_NS, 1e-3, 1);
	assert_true(w.a.table.row[31].span < 77000);
}

/* A path that changes each second: the table of its worse half, with now and then a new one. */
static void test_switching(void **state)
{
	uint32_t worst, least = UINT32_MAX;
	struct world w;

	(void)state;
	world_init(&w, "auto", 0, 0);
	run(&w, 10 * S_NS, 2e-2, 1);
	worst = m_now(&w);
	w.remade = 0;
	for (int i = 0; i < 60; i++) {
		run(&w, S_NS, i % 2 ? 2e-2 : 1e-5, 1);
		least = (uint32_t)u64_min(least, m_now(&w));
	}
	assert_true(w.remade <= 24); /* 60 changes, 12 times 5 s */
	assert_true(least >= worst / 2);
	/* The RTT too. */
	w.remade = 0;
	for (int i = 0; i < 60; i++) {
		w.path.rtt_ns = (i % 2 ? 25 : 60) * MS_NS;
		run(&w, S_NS, 2e-2, 1);
	}
	assert_true(w.remade <= 14 && w.a.table.link.rtt_s > 0.05);
}

/* A line whose rate is found by doubling makes no more tables than the drift allows. */
static void test_slow_start(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "auto", 1e-3, 1);
	w.path.rate_bps = 1000000;
	for (int i = 0; i < 100; i++) {
		w.path.rate_bps = (uint64_t)((double)w.path.rate_bps * 1.12);
		run(&w, 10 * MS_NS, 1e-3, 1);
	}
	assert_in_range(w.remade, 20, 50);
}

static void test_why(void **state)
{
	struct rel_coding c;
	struct rel_params as;
	char name[REL_SCHEME_NAME];
	struct world w;

	(void)state;
	world_init(&w, "auto", 1e-3, 8);
	(void)choose(&w, 1000, &as);
	assert_string_equal(w.a.why, "nothing is known of the path yet");
	w.path.rate_bps = UINT64_C(400000000000);
	run(&w, MS_NS, 1e-3, 8);
	c = choose(&w, 32768, &as);
	assert_string_equal(
		w.a.why,
		"loss 1.0e-03 in bursts of 8, 25.0 ms, 400 Gbit/s, 32768 packets: (128,5) "
		"on all, depth 32, late resends 3 times: an exposed round trip costs more");
	assert_int_equal(c.m, 5);
	assert_string_equal(rel_scheme_name(&as, name, sizeof name),
			    "hybrid:k=128,m=5,depth=32,span=all,copies=3");
	/* Numbers that nobody measured are said to be guesses, until they are measured. */
	world_init(&w, "auto", 1e-3, 8);
	w.path.rate_bps = 0;
	run(&w, MS_NS, 1e-3, 8);
	(void)choose(&w, 1000, &as);
	assert_non_null(strstr(w.a.why, ", 10.0 Gbit/s, "));
	assert_non_null(strstr(w.a.why, "; the rate is a guess"));
	w.path.rate_bps = UINT64_C(1000000000);
	run(&w, 10 * S_NS, 1e-3, 8);
	(void)choose(&w, 1000, &as);
	assert_non_null(strstr(w.a.why, ", 1.00 Gbit/s, "));
	assert_null(strstr(w.a.why, "guess"));
	world_init(&w, "auto:policy=table", 1e-3, 1);
	run(&w, MS_NS, 1e-3, 1);
	c = choose(&w, 1000, &as);
	assert_true(c.code == REL_CODE_RS && c.k == 16 && c.m == 4 && c.span_pkts == 1000);
	assert_non_null(strstr(w.a.why, "(16,4) on all: rule for 10 ms and 1e-4"));
}

/* auto, fixed and back, and another size of packets. */
static void test_set(void **state)
{
	struct rel_params ec = scheme("ec:32,8"), by_path = scheme("auto"), as;
	struct world w;

	(void)state;
	world_init(&w, "auto", 1e-2, 1);
	run(&w, MS_NS, 1e-2, 1);
	auto_scheme_set(&w.a, &ec);
	run(&w, 10 * MS_NS, 1e-2, 1);
	assert_int_equal(choose(&w, 1000, &as).k, 32);
	auto_scheme_set(&w.a, &by_path);
	run(&w, 10 * MS_NS, 1e-2, 1);
	assert_true(choose(&w, 1024, &as).k == 128 && w.a.table.row[10].k == 128);
	w.path.payload = 1024;
	run(&w, 10 * MS_NS, 1e-2, 1);
	assert_int_equal(w.a.table.packet_bytes, 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uncoded),	  cmocka_unit_test(test_spans),
		cmocka_unit_test(test_margins),	  cmocka_unit_test(test_room),
		cmocka_unit_test(test_possible),  cmocka_unit_test(test_told),
		cmocka_unit_test(test_seen),	  cmocka_unit_test(test_steady),
		cmocka_unit_test(test_longer),	  cmocka_unit_test(test_change),
		cmocka_unit_test(test_switching), cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_why),	  cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
