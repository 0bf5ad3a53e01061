/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number of figures.csv (named by the argument), at the precision it is printed with.
 */
#include "plan/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define VALUES_MAX 12

static const char *path;

struct line {
	char table[16];
	struct plan_link link;
	struct plan_job job;
	double fourth; /* loss, or nodes */
	const char *value[VALUES_MAX];
	uint32_t count;
	uint32_t used; /* values that were looked at */
	int bad;
};

static struct plan_result ask(const struct line *l, enum plan_scheme scheme, double loss,
			      uint32_t m)
{
	struct plan_options options = {.reading = PLAN_PAPER};
	struct plan_link link = l->link;
	struct plan_params params;
	struct plan_result out;

	link.loss = loss;
	plan_defaults(&link, &l->job, scheme, &params);
	params.m = m ? m : params.m;
	assert_int_equal(plan_estimate(&link, &l->job, &params, &options, &sdr_alloc_system, &out),
			 0);
	return out;
}

/* What the source has is wrong (see the table): a ratio below 1. */
static bool only_below_one(struct line *l, double got)
{
	if (strcmp(l->value[l->used], "-") != 0)
		return false;
	l->used++;
	l->bad += !(got > 0 && got < 1);
	return true;
}

/* Half a unit of the last digit that is printed, and a little; `plus` on top. */
static void compare(struct line *l, double got, double plus)
{
	const char *text = l->value[l->used++], *point = strchr(text, '.'), *e = strchr(text, 'e');
	double want = atof(text), digit;
	size_t decimals = 0;

	if (point)
		decimals = strspn(point + 1, "0123456789");
	digit = pow(10, -(double)decimals);
	if (e)
		digit *= pow(10, atof(e + 1));
	if (fabs(got - want) <= 0.502 * digit + plus)
		return;
	print_error("figure %s, %lu bytes, %g bit/s, %g s, %g: value %u is %.6g, not %s\n",
		    l->table, l->job.bytes, l->link.bw_bps, l->link.rtt_s, l->fourth, l->used, got,
		    text);
	l->bad++;
}

static double slow(struct plan_result r)
{
	return r.mean_s / r.lossless_s;
}

static double slow_tail(struct plan_result r)
{
	return r.p999_s / r.lossless_s;
}

static void figure_3(struct line *l)
{
	compare(l, slow(ask(l, PLAN_SR, l->fourth, 0)), 0);
	if (strcmp(l->table, "3c") != 0)
		compare(l, slow(ask(l, PLAN_SR_NACK, l->fourth, 0)), 0);
	compare(l, slow(ask(l, PLAN_EC, l->fourth, 0)), 0);
}

static void figure_9(struct line *l)
{
	bool mean = strstr(l->table, "mean") != NULL;

	for (int i = 8; i >= 1; i--) {
		struct plan_result sr = ask(l, PLAN_SR, pow(10, -i), 0);
		struct plan_result ec = ask(l, PLAN_EC, pow(10, -i), 0);

		double got = mean ? sr.mean_s / ec.mean_s : sr.p999_s / ec.p999_s;

		if (!only_below_one(l, got))
			compare(l, got, 0);
	}
}

#define FIGURE_9_CHUNK 65536u

/* What the paper calls loss may be that of packets ... */
static void figure_9b(struct line *l)
{
	l->job.chunk_bytes = FIGURE_9_CHUNK;
	figure_9(l);
}

/* ... or of chunks. */
static void figure_9c(struct line *l)
{
	l->job.packet_bytes = FIGURE_9_CHUNK;
	figure_9b(l);
}

static void figure_10a(struct line *l)
{
	static const enum plan_scheme schemes[] = {PLAN_SR, PLAN_SR_NACK, PLAN_EC};

	for (int i = 0; i < 3; i++) {
		struct plan_result r = ask(l, schemes[i], l->fourth, 0);

		compare(l, r.mean_s * 1e3, 0);
		compare(l, r.p999_s * 1e3, 0);
	}
}

static void figure_10b(struct line *l)
{
	static const enum plan_scheme schemes[] = {PLAN_SR, PLAN_SR_NACK, PLAN_EC, PLAN_EC_XOR};
	struct plan_result r[4];

	for (int i = 0; i < 4; i++) {
		r[i] = ask(l, schemes[i], l->fourth, 0);
		compare(l, slow(r[i]), 0);
		compare(l, slow_tail(r[i]), 0);
	}
	compare(l, r[2].p_fallback, 0);
	compare(l, r[3].p_fallback, 0);
}

static void figure_10d(struct line *l)
{
	for (uint32_t m = 2; m <= 32; m *= 2)
		compare(l, slow(ask(l, PLAN_EC, l->fourth, m)), 0);
}

/* Both sides are simulations: 3 %, and a p99.9 may fall onto the next RTO. */
static void figure_13(struct line *l)
{
	struct plan_options options = {.reading = PLAN_PAPER, .seed = 3, .samples = 1500};
	struct plan_params sr, ec;
	struct plan_result slow_one, fast_one;
	double got;

	for (int i = 6; i >= 2; i--) {
		struct plan_link link = l->link;

		link.loss = pow(10, -i);
		plan_defaults(&link, &l->job, PLAN_SR, &sr);
		plan_defaults(&link, &l->job, PLAN_EC, &ec);
		assert_int_equal(plan_allreduce(&link, &l->job, &sr, (uint32_t)l->fourth, &options,
						&sdr_alloc_system, &slow_one),
				 0);
		assert_int_equal(plan_allreduce(&link, &l->job, &ec, (uint32_t)l->fourth, &options,
						&sdr_alloc_system, &fast_one),
				 0);
		got = slow_one.p999_s / fast_one.p999_s;
		compare(l, got, 3 * link.rtt_s / fast_one.p999_s + 0.03 * got);
		got = slow_one.mean_s / fast_one.mean_s;
		compare(l, got, 0.03 * got);
	}
}

/* Both sides are simulations of the serialised link: 5 standard errors of ours, and what 3 rare
 * events do. */
static void figure_e(struct line *l)
{
	static const enum plan_scheme schemes[] = {PLAN_SR, PLAN_SR_NACK, PLAN_EC, PLAN_HYBRID};
	struct plan_options options = {.reading = PLAN_SERIALISED, .seed = 4};
	struct plan_params params;
	struct plan_result r;
	double losses, trip;

	l->link.loss = l->fourth;
	l->link.burst_pkts = atof(l->value[l->used++]);
	losses = (double)l->job.bytes / 4096 * l->fourth / l->link.burst_pkts;
	options.samples = (uint32_t)fmin(fmax(3e5 / (losses + 1), 40), 6000);
	trip = l->link.rtt_s / ((double)l->job.bytes * 8 / l->link.bw_bps + l->link.rtt_s);
	for (int i = 0; i < 4; i++) {
		plan_defaults(&l->link, &l->job, schemes[i], &params);
		params.rto_rtts = schemes[i] == PLAN_SR ? 3 : 1;
		params.beta_rtts = 0;
		assert_int_equal(
			plan_estimate(&l->link, &l->job, &params, &options, &sdr_alloc_system, &r),
			0);
		compare(l, slow(r),
			5 * r.stderr_s / r.lossless_s + 3 * trip / options.samples + 1e-4);
	}
	/* A tail of one in a thousand is sometimes a round trip more. */
	compare(l, slow_tail(r), 1.05 * trip);
	compare(l, r.overhead, 0.005);
}

static void figure_15(struct line *l)
{
	static const double losses[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2};

	for (int i = 0; i < 6; i++)
		compare(l, plan_chunk_loss(losses[i], 1, (uint32_t)(l->job.bytes / 4096)), 0);
}

static void (*figure(const char *table))(struct line *)
{
	static const struct {
		const char *table;
		void (*check)(struct line *);
	} figures[] = {
		{"3a", figure_3},	{"3b", figure_3},	{"3c", figure_3},
		{"12", figure_3},	{"9-mean", figure_9},	{"9-p999", figure_9},
		{"10a", figure_10a},	{"10b", figure_10b},	{"10d", figure_10d},
		{"13", figure_13},	{"15", figure_15},	{"e", figure_e},
		{"9b-mean", figure_9b}, {"9b-p999", figure_9b}, {"9c-mean", figure_9c},
		{"9c-p999", figure_9c},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (strcmp(table, figures[i].table) == 0)
			return figures[i].check;
	}
	return NULL;
}

static bool parse(char *text, struct line *l)
{
	char *at = text, *cell;
	int column = 0;

	*l = (struct line){.job = {.packet_bytes = 4096, .chunk_bytes = 4096}};
	l->link.burst_pkts = 1;
	text[strcspn(text, "\n")] = 0;
	for (; (cell = strsep(&at, ",")); column++) {
		if (column == 0)
			snprintf(l->table, sizeof(l->table), "%s", cell);
		else if (column == 1)
			l->job.bytes = strtoull(cell, NULL, 10);
		else if (column == 2)
			l->link.bw_bps = atof(cell) * 1e9;
		else if (column == 3)
			l->link.rtt_s = atof(cell) * 1e-3;
		else if (column == 4)
			l->fourth = atof(cell);
		else if (l->count < VALUES_MAX)
			l->value[l->count++] = cell;
	}
	return column > 5;
}

static void test_figures(void **state)
{
	FILE *f = fopen(path, "r");
	char text[512];
	int bad = 0, lines = 0, values = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(text, sizeof(text), f)) {
		struct line l;

		if (text[0] == '#')
			continue;
		assert_true(parse(text, &l));
		assert_non_null(figure(l.table));
		figure(l.table)(&l);
		assert_int_equal(l.used, l.count);
		bad += l.bad;
		values += (int)l.used;
		lines++;
	}
	fclose(f);
	print_message("%d values in %d lines\n", values, lines);
	assert_int_equal(lines, 242);
	assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: plan_figure_test FIGURES.CSV\n");
		return 2;
	}
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
