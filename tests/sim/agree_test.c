/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the model predicts (plan/, serialised) against what connections do over simulated
 * links: the mean completion of single writes on a warm connection of a provisioned rate,
 * and what is resent. Times are virtual, so a protocol that became slower fails here.
 *
 * In the model a round of resends costs a wait (RTO 1 or 3 RTT) exactly. Connections have
 * reasons for a little more, so theirs is between two waits, and the mean between the
 * model's at these two, give or take four standard errors:
 *
 *	sr-nack	1 to 1.25 RTT: ACKs come in turns of RTT / 16; a hole is proof of loss when
 *		something sent RTT / 8 later has arrived, since paths reorder; where nothing
 *		follows, a probe asks after the RTO, which is 1.2 RTT and more, and after a tail
 *		of several lost packets it brings only the last of them
 *	gbn	the same, but from 0.95 RTT on: where ACKs come in turns, several holes cost one
 *		pass, which the model does several times
 *	sr	2.9 to 3.1 RTT: the timer starts when a train's first packet is sent, and holes
 *		are looked for at ACKs, which come in turns
 *
 * of an RTT that may be longer by what the pacer lets go at once after a pause: here the link
 * is just as fast as the rate, and such a queue stays.
 *
 * Bursts: a simulated link's losses go by packets, the model's by time. After a pause the
 * link goes on where it was, so that a lost packet that nothing follows is likely to be lost
 * again and again; in the model the burst is over by then. Each time that a link falls
 * silent, that is a loss * burst chance of some more waits.
 */
#include "pair.h"
#include "plan/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET 1436u /* what sockets carry over an Ethernet route */
#define HEADER 64u
#define WARM_WRITES 32
#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1024) * KIB)
#define SIGMAS 4.0
#define PACER_S 0.5e-3 /* of the rate, saved up over a pause (CONN_BURST_NS) */

struct scenario {
	enum plan_scheme scheme;
	double rtt_ms, bw_bps, loss, burst;
	uint64_t bytes;
	unsigned int writes;
};

static const struct scenario scenarios[] = {
	{PLAN_SR_NACK, 1, 1e9, 0, 1, 1 * MIB, 3},
	{PLAN_SR_NACK, 100, 10e9, 0, 1, 16 * MIB, 3},
	{PLAN_SR_NACK, 100, 1e9, 1e-3, 1, 64 * KIB, 500},
	{PLAN_SR_NACK, 100, 1e9, 1e-2, 1, 1 * MIB, 150},
	{PLAN_SR_NACK, 25, 10e9, 1e-3, 1, 16 * MIB, 30},
	{PLAN_SR_NACK, 25, 10e9, 1e-3, 8, 16 * MIB, 50},
	{PLAN_SR_NACK, 10, 1e9, 5e-2, 1, 1 * MIB, 150},
	{PLAN_SR_NACK, 1, 10e9, 1e-2, 1, 4 * MIB, 75},
	{PLAN_SR_NACK, 1, 10e9, 1e-3, 8, 4 * MIB, 150},
	{PLAN_GBN, 100, 1e9, 1e-3, 1, 64 * KIB, 500},
	{PLAN_GBN, 100, 1e9, 1e-2, 1, 1 * MIB, 150},
	{PLAN_GBN, 25, 10e9, 1e-4, 1, 16 * MIB, 50},
	{PLAN_GBN, 10, 1e9, 1e-2, 1, 4 * MIB, 50},
	{PLAN_GBN, 1, 10e9, 1e-2, 1, 4 * MIB, 75},
	{PLAN_SR, 1, 1e9, 0, 1, 1 * MIB, 3},
	{PLAN_SR, 100, 1e9, 1e-3, 1, 64 * KIB, 500},
	{PLAN_SR, 100, 1e9, 1e-2, 1, 1 * MIB, 150},
	{PLAN_SR, 25, 10e9, 1e-3, 1, 16 * MIB, 30},
	{PLAN_SR, 25, 10e9, 1e-3, 8, 16 * MIB, 50},
	{PLAN_SR, 10, 1e9, 5e-2, 1, 1 * MIB, 150},
	{PLAN_SR, 1, 10e9, 1e-2, 1, 4 * MIB, 75},
	{PLAN_SR, 1, 10e9, 1e-3, 8, 4 * MIB, 150},
};

/* What a round of resends costs a connection, in round trips: see above. */
static const struct {
	const char *name;
	double least, most;
} engine[PLAN_SCHEMES] = {
	[PLAN_SR_NACK] = {"sr-nack", 1, 1.25},
	[PLAN_SR] = {"sr:rto=3", 2.9, 3.1},
	[PLAN_GBN] = {"gbn", 0.95, 1.25},
};

struct run {
	struct pair p;
	unsigned int written, received;
	uint64_t took_ns;
};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct run *r = arg;

	(void)end;
	assert_int_equal(c->status, 0);
	if (c->is_recv) {
		r->received++;
		return;
	}
	r->written++;
	r->took_ns = c->done_ns - c->posted_ns;
}

static struct sdr_sim_link link_of(const struct scenario *s, bool losses)
{
	/* The bandwidth is the payload's. */
	return (struct sdr_sim_link){
		.size = sizeof(struct sdr_sim_link),
		.rate_bps = (uint64_t)llround(s->bw_bps * (PACKET + HEADER) / PACKET),
		.delay_ns = (uint64_t)llround(s->rtt_ms * 1e6) / 2,
		.loss = losses ? s->loss : 0,
		.burst_pkts = losses && s->burst > 1 ? s->burst : 0,
	};
}

/* A receive that was granted, then a write: its time. */
static uint64_t write_one(struct run *r, const struct scenario *s, uint64_t bytes)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .addr = r, .length = bytes};
	unsigned int want = r->written + 1;

	wr.mr = r->p.mr[1];
	assert_int_equal(sdr_conn_recv_post(r->p.conn[1], &wr, NULL), 0);
	pair_run(&r->p, pair_now(&r->p) + (uint64_t)(s->rtt_ms * 2e6));
	wr.mr = r->p.mr[0];
	assert_int_equal(sdr_write_post(r->p.conn[0], &wr, NULL), 0);
	while (r->written < want || r->received < want)
		pair_step(&r->p, pair_now(&r->p) + SEC);
	return r->took_ns;
}

static void open_warm(struct run *r, const struct scenario *s, const char *scheme, uint64_t seed)
{
	struct sdr_sim_link out = link_of(s, false), lossy = link_of(s, true);
	const struct sdr_conn_attr attr = {
		.size = sizeof(attr),
		.scheme = scheme,
		.chunk_pkts = 1,
		.max_payload_bytes = PACKET,
		.rate_bps = (uint64_t)s->bw_bps,
	};

	memset(r, 0, sizeof(*r));
	pair_payload_off = true;
	pair_open(&r->p, seed, &out, &attr, &attr);
	pair_payload_off = false;
	r->p.on_completion = on_completion;
	r->p.arg = r;
	for (int i = 0; i < WARM_WRITES; i++)
		(void)write_one(r, s, 1);
	assert_int_equal(
		sdr_sim_link_set(r->p.sim, r->p.host[0], r->p.host[1], SDR_CHANNEL_ANY, &lossy), 0);
}

static struct plan_result predict(const struct scenario *s, double rto_rtts)
{
	struct plan_link link = {s->bw_bps, s->rtt_ms * 1e-3, s->loss, s->burst};
	struct plan_job job = {s->bytes, PACKET, PACKET};
	struct plan_options options = {.reading = PLAN_SERIALISED, .seed = 1, .samples = 10000};
	struct plan_params params;
	struct plan_result out;

	plan_defaults(&link, &job, s->scheme, &params);
	params.rto_rtts = rto_rtts;
	assert_int_equal(plan_estimate(&link, &job, &params, &options, &sdr_alloc_system, &out), 0);
	return out;
}

struct measured {
	double mean_s, stderr_s;
	uint64_t first, resent, spurious; /* packets */
};

static struct measured measure(const struct scenario *s, const char *scheme, uint64_t seed)
{
	struct measured out = {0};
	struct sdr_conn_info before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	double squares = 0, n = s->writes;
	struct run r;

	open_warm(&r, s, scheme, seed);
	(void)sdr_conn_query(r.p.conn[0], &before);
	for (unsigned int i = 0; i < s->writes; i++) {
		double took_s = (double)write_one(&r, s, s->bytes) * 1e-9;

		out.mean_s += took_s / n;
		squares += took_s * took_s;
	}
	(void)sdr_conn_query(r.p.conn[0], &after);
	out.stderr_s = sqrt(fmax(squares / n - out.mean_s * out.mean_s, 0) / (n - 1));
	out.resent = after.tx_resent_pkts - before.tx_resent_pkts;
	out.first = after.tx_pkts - before.tx_pkts - out.resent;
	out.spurious = after.tx_spurious_pkts - before.tx_spurious_pkts;
	pair_close(&r.p);
	return out;
}

/* The longest wait, in round trips. */
static double most_rtts(const struct scenario *s)
{
	return engine[s->scheme].most * (1 + PACER_S / (s->rtt_ms * 1e-3));
}

/* More waits, after silences that begin with a loss. */
static double bursts_s(const struct scenario *s)
{
	double silences = 1 + (double)s->bytes / PACKET * s->loss / s->burst;

	if (s->burst <= 1)
		return 0;
	return silences * s->loss * s->burst * most_rtts(s) * s->rtt_ms * 1e-3;
}

/* A packet's time (the last may be short), and a thousandth for rounding to slots. */
static double rounding_s(const struct scenario *s, const struct plan_result *model)
{
	return PACKET * 8 / s->bw_bps + 1e-3 * model->mean_s;
}

/*
 * Every loss is sent again, once; a burst is lost and sent as one. With gbn a loss brings a
 * whole pass, or none: as many errors as losses have, and a fortieth for ACKs' turns.
 */
static double resend_error(const struct scenario *s, const struct measured *got, double want)
{
	double losses = (double)got->first * s->loss / s->burst;

	if (s->scheme == PLAN_GBN)
		return want * (sqrt(2 / losses) + 1.0 / 40);
	return sqrt(2 * want * s->burst);
}

static bool resends_agree(const struct scenario *s, const struct measured *got,
			  const struct plan_result *model)
{
	double want = model->overhead * (double)got->first;

	return got->spurious == 0 &&
	       fabs((double)got->resent - want) <= SIGMAS * resend_error(s, got, want) + 2;
}

/* Of what calls itself `scheme`. */
static bool agree(const struct scenario *s, const char *scheme, uint64_t seed)
{
	struct plan_result least = predict(s, engine[s->scheme].least);
	struct plan_result most = predict(s, most_rtts(s));
	struct measured got = measure(s, scheme, seed);
	double error_s = SIGMAS * hypot(got.stderr_s, least.stderr_s) + rounding_s(s, &least);
	bool good = got.mean_s >= least.mean_s - error_s &&
		    got.mean_s <= most.mean_s + bursts_s(s) + error_s &&
		    resends_agree(s, &got, &least);

	printf("%s%-8s %3g ms %2g Gbit/s loss %-5g burst %g %5g MiB: %8.3f +- %.3f ms, model "
	       "%8.3f to %8.3f, lossless %8.3f; resent %llu of %llu, model %.0f, spurious %llu\n",
	       good ? "" : "PARTS: ", scheme, s->rtt_ms, s->bw_bps * 1e-9, s->loss, s->burst,
	       (double)s->bytes / MIB, got.mean_s * 1e3, got.stderr_s * 1e3, least.mean_s * 1e3,
	       most.mean_s * 1e3, least.lossless_s * 1e3, (unsigned long long)got.resent,
	       (unsigned long long)got.first, least.overhead * (double)got.first,
	       (unsigned long long)got.spurious);
	return good;
}

static void test_agree(void **state)
{
	unsigned int parts = 0;
	uint64_t seed = seed_first(1);

	(void)state;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		parts += !agree(&scenarios[i], engine[scenarios[i].scheme].name, seed);
	if (parts)
		seed_replay("sim_agree_test", seed);
	assert_int_equal(parts, 0);
}

/* A scheme that waits longer, or sends more, is no agreement. */
static void test_sees(void **state)
{
	static const struct scenario nack = {PLAN_SR_NACK, 100, 1e9, 1e-2, 1, 1 * MIB, 100},
				     timer = {PLAN_SR, 100, 1e9, 1e-2, 1, 1 * MIB, 100};

	(void)state;
	assert_false(agree(&nack, "sr:rto=2", 1));
	assert_false(agree(&nack, "gbn", 1));
	assert_false(agree(&timer, "sr:rto=4", 1));
	assert_false(agree(&timer, "sr-nack", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_agree),
					   cmocka_unit_test(test_sees)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
