/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long writes take, in virtual time, as scenarios that are data: a ceiling for each.
 * Time is virtual, so these are facts about the protocol, not about this machine.
 *
 * A ceiling is in RTTs on top of T* = bytes / rate + RTT, the lossless time of one write
 * (its bytes, and the acknowledgement back); a stream's is a factor on its lossless time. The
 * same hold for RDMA devices, though they name no PSN: dating a channel by packets costs no more.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB UINT64_C(1048576)

struct scenario {
	const char *scheme;
	uint64_t rtt_ns, link_bps;
	uint64_t rate_bps; /* of the connection; 0: found */
	double loss;
	uint64_t bytes;
	unsigned int writes; /* in flight at a time; each `bytes` long */
	double max_factor;   /* of the lossless time ... */
	double max_rtts;     /* ... plus this many RTTs */
};

static const struct scenario scenarios[] = {
	{"sr-nack", 100 * MS, 1000000000, 940000000, 0, 16 * MIB, 1, 1.02, 0.2},
	{"sr-nack", 100 * MS, 1000000000, 940000000, 0.01, 16 * MIB, 1, 1.02, 3.4},
	{"sr", 100 * MS, 1000000000, 940000000, 0.01, 16 * MIB, 1, 1.02, 4.5},
	{"sr-nack", 100 * MS, 1000000000, 940000000, 0.01, 16 * MIB, 16, 1.05, 2.5},
	{"sr-nack", 25 * MS, 400000000000, 380000000000, 0.0001, 64 * MIB, 4, 1.1, 2.5},
	{"sr-nack", 10 * MS, 100000000, 94000000, 0.1, 4 * MIB, 4, 1.2, 5},
	{"sr-nack", 20 * MS, 1000000000, 940000000, 0, 64, 1, 1, 0.05},
	{"sr-nack", 20 * MS, 1000000000, 940000000, 0, 64, 256, 1, 0.1},
};

struct run {
	struct pair p;
	unsigned int writes, recvs;
	uint64_t done_ns; /* of the last write */
};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct run *r = arg;

	(void)end;
	assert_int_equal(c->status, 0);
	if (c->is_recv)
		r->recvs++;
	else
		r->writes++;
	if (!c->is_recv)
		r->done_ns = c->done_ns;
}

/* One round of n writes; returns its virtual time. */
static uint64_t round_run(struct run *r, const struct scenario *s, uint8_t *tx, uint8_t *rx)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = s->bytes};
	uint64_t at;

	r->writes = r->recvs = 0;
	for (unsigned int i = 0; i < s->writes; i++) {
		wr.addr = rx + i * s->bytes;
		assert_int_equal(sdr_conn_recv_post(r->p.conn[1], &wr, NULL), 0);
	}
	/* Receives are granted before the clock starts. */
	pair_run(&r->p, pair_now(&r->p) + s->rtt_ns * 2);
	at = pair_now(&r->p);
	for (unsigned int i = 0; i < s->writes; i++) {
		wr.addr = tx + i * s->bytes;
		assert_int_equal(sdr_write_post(r->p.conn[0], &wr, NULL), 0);
	}
	while (r->writes < s->writes)
		pair_step(&r->p, pair_now(&r->p) + SEC);
	return r->done_ns - at;
}

static void scenario_run(const struct scenario *s, uint64_t seed)
{
	const struct sdr_sim_link out = {.size = sizeof(out),
					 .rate_bps = s->link_bps,
					 .delay_ns = s->rtt_ns / 2,
					 .loss = s->loss};
	const struct sdr_conn_attr attr = {
		.size = sizeof(attr), .scheme = s->scheme, .rate_bps = s->rate_bps};
	uint64_t total = s->bytes * s->writes, took;
	uint8_t *tx = malloc(total), *rx = calloc(1, total);
	double ideal = (double)total * 8e9 / (double)s->rate_bps + (double)s->rtt_ns;
	double ceiling = ideal * s->max_factor + s->max_rtts * (double)s->rtt_ns;
	struct run r = {0};

	assert_true(tx && rx);
	for (uint64_t i = 0; i < total; i++)
		tx[i] = (uint8_t)(i * 31 + (i >> 8));
	pair_open(&r.p, seed, &out, &attr, &attr);
	r.p.on_completion = on_completion;
	r.p.arg = &r;
	(void)round_run(&r, s, tx, rx); /* warms up */
	memset(rx, 0, total);
	took = round_run(&r, s, tx, rx);
	while (r.recvs < s->writes)
		pair_step(&r.p, pair_now(&r.p) + SEC);
	assert_memory_equal(tx, rx, total);
	printf("%-8s rtt %3llu ms  loss %-6g  %2u x %8llu B: %8.3f ms, lossless %8.3f, ceiling "
	       "%8.3f\n",
	       s->scheme, (unsigned long long)(s->rtt_ns / MS), s->loss, s->writes,
	       (unsigned long long)s->bytes, (double)took / 1e6, ideal / 1e6, ceiling / 1e6);
	assert_true((double)took <= ceiling);
	pair_close(&r.p);
	free(tx);
	free(rx);
}

static void times_over(const struct sdr_sim_device *device)
{
	uint64_t first = seed_first(1);
	unsigned int n = seed_count(device ? 1 : 3);

	pair_device = device;
	for (uint64_t seed = first; seed < first + n; seed++) {
		printf("seed %llu over %s\n", (unsigned long long)seed,
		       device ? device->like : "sockets");
		for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
			scenario_run(&scenarios[i], seed);
	}
}

static void times(void **state)
{
	(void)state;
	times_over(NULL);
}

static void times_over_roce(void **state)
{
	(void)state;
	times_over(&pair_roce);
}

static void times_over_nics(void **state)
{
	(void)state;
	times_over(&pair_nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(times),
					   cmocka_unit_test(times_over_roce),
					   cmocka_unit_test(times_over_nics)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
