/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of oracle.csv (named by the argument), which was computed without this code:
 * closed forms to 1e-3, simulated means within 4 standard errors of both simulations, p99.9
 * within 2 % or on the next step of a stepped distribution. `all` as a second argument
 * takes as many samples as the rows did.
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

enum column {
	MODEL,
	SCHEME,
	MSG_BYTES,
	BW_GBPS,
	RTT_MS,
	P_PACKET,
	BURST,
	CHUNK,
	MTU,
	K,
	M,
	INTERLEAVE,
	TAIL,
	NODES,
	RTO_RTT,
	BETA,
	P_CHUNK,
	P_SUBMSG,
	P_FALLBACK,
	MEAN,
	MEAN_FORMULA,
	MEAN_SIM,
	STDERR,
	P50_SIM,
	P99_SIM,
	P999_SIM,
	P50,
	P99,
	P999,
	OVERHEAD,
	SAMPLES,
	SEED,
	COLUMNS
};

#define ROWS_MAX 400
static struct row {
	char text[512];
	const char *cell[COLUMNS];
} rows[ROWS_MAX];
static int row_count;
static bool thorough;

static double number(const struct row *r, enum column c)
{
	return *r->cell[c] ? atof(r->cell[c]) : NAN;
}

static double number_or(const struct row *r, enum column c, double otherwise)
{
	return *r->cell[c] ? atof(r->cell[c]) : otherwise;
}

static bool load(const char *path)
{
	FILE *f = fopen(path, "r");
	bool header = false;

	if (!f)
		return false;
	while (row_count < ROWS_MAX && fgets(rows[row_count].text, sizeof(rows[0].text), f)) {
		struct row *r = &rows[row_count];
		char *at = r->text, *cell;
		int c = 0;

		if (r->text[0] == '#')
			continue;
		r->text[strcspn(r->text, "\n")] = 0;
		while (c < COLUMNS && (cell = strsep(&at, ",")))
			r->cell[c++] = cell;
		if (c != COLUMNS)
			break;
		if (header)
			row_count++;
		header = true;
	}
	fclose(f);
	return true;
}

static enum plan_scheme scheme_of(const char *name)
{
	if (strstr(name, "SER-e"))
		return PLAN_HYBRID;
	if (strstr(name, "XOR"))
		return PLAN_EC_XOR;
	if (strstr(name, "EC"))
		return PLAN_EC;
	return strstr(name, "NACK") ? PLAN_SR_NACK : PLAN_SR;
}

static void ask(const struct row *r, uint32_t samples, struct plan_result *out)
{
	struct plan_link link = {number(r, BW_GBPS) * 1e9, number(r, RTT_MS) * 1e-3,
				 number(r, P_PACKET), number(r, BURST)};
	struct plan_job job = {(uint64_t)number(r, MSG_BYTES), (uint32_t)number(r, MTU),
			       (uint32_t)number(r, CHUNK)};
	struct plan_options options = {
		.reading = strcmp(r->cell[MODEL], "paper") == 0 ? PLAN_PAPER : PLAN_SERIALISED,
		.seed = 7,
		.samples = samples,
	};
	struct plan_params params;
	int err;

	plan_defaults(&link, &job, scheme_of(r->cell[SCHEME]), &params);
	params.rto_rtts = number_or(r, RTO_RTT, params.rto_rtts);
	params.beta_rtts = number_or(r, BETA, params.beta_rtts);
	if (params.scheme != PLAN_HYBRID) {
		params.k = (uint32_t)number_or(r, K, params.k);
		params.m = (uint32_t)number_or(r, M, params.m);
		params.depth = (uint32_t)number_or(r, INTERLEAVE, 1);
	} else {
		/* The rule has to find the row's parameters by itself. */
		assert_int_equal(params.k, (int)number(r, K));
		assert_int_equal(params.m, (int)number(r, M));
		assert_int_equal(params.depth, (int)number(r, INTERLEAVE));
		assert_int_equal(params.span, (int)number(r, TAIL));
	}
	if (*r->cell[NODES])
		err = plan_allreduce(&link, &job, &params, (uint32_t)number(r, NODES), &options,
				     &sdr_alloc_system, out);
	else
		err = plan_estimate(&link, &job, &params, &options, &sdr_alloc_system, out);
	assert_int_equal(err, 0);
}

static int complain(const struct row *r, const char *what, double want, double got)
{
	print_error("%s %s bytes p %s burst %s chunk %s k %s m %s nodes %s: %s is %.9g, not %.9g\n",
		    r->cell[SCHEME], r->cell[MSG_BYTES], r->cell[P_PACKET], r->cell[BURST],
		    r->cell[CHUNK], r->cell[K], r->cell[M], r->cell[NODES], what, got, want);
	return 1;
}

static bool close_to(double want, double got, double part)
{
	return isnan(want) || fabs(got - want) <= part * fabs(want);
}

static int check_closed(const struct row *r)
{
	struct plan_result got;
	int bad = 0;

	ask(r, 0, &got);
	if (got.samples != 0)
		bad += complain(r, "samples", 0, got.samples);
	if (!close_to(number(r, P_CHUNK), got.unit_loss, 1e-8))
		bad += complain(r, "chunk loss", number(r, P_CHUNK), got.unit_loss);
	if (!close_to(number(r, P_FALLBACK), got.p_fallback, 1e-6))
		bad += complain(r, "P(fallback)", number(r, P_FALLBACK), got.p_fallback);
	if (!close_to(number(r, MEAN), got.mean_s, *r->cell[K] ? 1e-4 : 1e-6))
		bad += complain(r, "mean", number(r, MEAN), got.mean_s);
	if (!close_to(number(r, P50), got.p50_s, 1e-6))
		bad += complain(r, "p50", number(r, P50), got.p50_s);
	if (!close_to(number(r, P99), got.p99_s, 1e-6))
		bad += complain(r, "p99", number(r, P99), got.p99_s);
	if (!close_to(number(r, P999), got.p999_s, 1e-6))
		bad += complain(r, "p99.9", number(r, P999), got.p999_s);
	if (!(fabs(got.mean_s - number(r, MEAN_SIM)) <= 4 * number(r, STDERR) + 1e-3 * got.mean_s))
		bad += complain(r, "mean against simulation", number(r, MEAN_SIM), got.mean_s);
	return bad;
}

static void test_closed(void **state)
{
	int bad = 0, count = 0;

	(void)state;
	for (int i = 0; i < row_count; i++) {
		if (!*rows[i].cell[MEAN])
			continue;
		bad += check_closed(&rows[i]);
		count++;
	}
	print_message("%d rows in closed form\n", count);
	assert_int_equal(count, 133);
	assert_int_equal(bad, 0);
}

/* A quantile of a distribution with steps of an RTO may fall on either side of one. */
static bool quantile_ok(const struct row *r, double want, double got)
{
	double step = number_or(r, RTO_RTT, 1) * number(r, RTT_MS) * 1e-3;
	double off = fabs(got - want);

	return off <= fmax(0.02 * want, 1.02 * step);
}

static uint32_t samples_for(const struct row *r)
{
	double packets = number(r, MSG_BYTES) / number(r, CHUNK);
	double losses = packets * number(r, P_PACKET) / number(r, BURST) + 50;
	double budget = thorough ? 1e9 : 1e6;
	double nodes = number_or(r, NODES, 1);
	double count = budget / losses / (nodes * nodes);

	return (uint32_t)fmin(fmax(count, 200), number(r, SAMPLES));
}

/* Five standard errors of the losses counted by both; bursts count once. */
static double overhead_error(const struct row *r, uint32_t samples)
{
	double packets = number(r, MSG_BYTES) / number(r, CHUNK), p = number(r, P_PACKET);
	double burst = number(r, BURST), variance = p * (2 * burst - 1) / packets;
	double k = strstr(r->cell[SCHEME], "SER-EC") ? number(r, K) : 1;

	/* The hybrid's last group may begin with one resend more or less. */
	double edge = strstr(r->cell[SCHEME], "SER-e")
			      ? number(r, M) * number(r, INTERLEAVE) / packets
			      : 0;

	return edge + 5 * k * sqrt(variance / samples + variance / number(r, SAMPLES)) + 1e-9;
}

static int check_simulated(const struct row *r)
{
	uint32_t samples = samples_for(r);
	struct plan_result got;
	double error, want = number(r, MEAN_SIM);
	int bad = 0;

	ask(r, samples, &got);
	error = hypot(got.stderr_s, number(r, STDERR));
	if (!(fabs(got.mean_s - want) <= 4 * error + 4e-9 * want)) { /* 9 digits */
		bad += complain(r, "simulated mean", want, got.mean_s);
		print_error("	off by %.1f standard errors of %.3g, %u samples\n",
			    (got.mean_s - want) / error, error, samples);
	}
	if (samples >= 2000 && !quantile_ok(r, number(r, P99_SIM), got.p99_s))
		bad += complain(r, "p99", number(r, P99_SIM), got.p99_s);
	if (samples >= 8000 && !quantile_ok(r, number(r, P999_SIM), got.p999_s))
		bad += complain(r, "p99.9", number(r, P999_SIM), got.p999_s);
	if (*r->cell[OVERHEAD] &&
	    !(fabs(got.overhead - number(r, OVERHEAD)) <= overhead_error(r, samples)))
		bad += complain(r, "overhead", number(r, OVERHEAD), got.overhead);
	return bad;
}

static void test_simulated(void **state)
{
	int bad = 0, count = 0;

	(void)state;
	for (int i = 0; i < row_count; i++) {
		if (*rows[i].cell[MEAN])
			continue;
		bad += check_simulated(&rows[i]);
		count++;
	}
	print_message("%d rows by simulation\n", count);
	assert_int_equal(count, 66);
	assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_simulated),
	};

	if (argc < 2 || !load(argv[1])) {
		fprintf(stderr, "usage: plan_oracle_test ORACLE.CSV [all]\n");
		return 2;
	}
	thorough = argc > 2 && strcmp(argv[2], "all") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
