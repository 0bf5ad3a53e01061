/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults one by one, in virtual time: dead paths, lost control messages, dead channels;
 * and the ways in which operations and connections end. Over each kind of device.
 */
#include "fabric/sim/sim.h"
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS 64u
#define MIB (1u << 20)

struct log {
	struct pair p;
	uint8_t *tx, *rx;
	unsigned int done[2][2];   /* end, is_recv */
	unsigned int status[2][2]; /* how many with the status looked for */
	int want;
	struct sdr_completion last[2][2];
};

static const struct sdr_sim_link wire = {
	.size = sizeof(wire), .rate_bps = 1000000000, .delay_ns = 10 * MS};
static const struct sdr_sim_link cut = {
	.size = sizeof(cut), .rate_bps = 1000000000, .delay_ns = 10 * MS, .loss = 1};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct log *l = arg;

	l->done[end][c->is_recv]++;
	l->status[end][c->is_recv] += c->status == l->want;
	l->last[end][c->is_recv] = *c;
}

static void log_open(struct log *l, const struct sdr_conn_attr *a)
{
	const struct sdr_conn_attr attr = {.size = sizeof(attr), .rate_bps = 900000000};

	memset(l, 0, sizeof(*l));
	pair_open(&l->p, 7, &wire, a ? a : &attr, a ? a : &attr);
	l->p.on_completion = on_completion;
	l->p.arg = l;
	l->tx = malloc(OPS * MIB);
	l->rx = calloc(OPS, MIB);
	assert_true(l->tx && l->rx);
	for (size_t i = 0; i < OPS * MIB; i++)
		l->tx[i] = (uint8_t)(i * 13 + (i >> 11));
}

static void log_close(struct log *l)
{
	pair_close(&l->p);
	free(l->tx);
	free(l->rx);
}

static struct sdr_op *post(struct log *l, int end, bool recv, uint64_t len, uint64_t deadline,
			   uint32_t flags)
{
	struct sdr_op_wr wr = {.size = sizeof(wr),
			       .addr = recv ? l->rx : l->tx,
			       .length = len,
			       .flags = flags,
			       .deadline_ns = deadline};
	struct sdr_op *op = NULL;

	assert_int_equal(recv ? sdr_conn_recv_post(l->p.conn[end], &wr, &op)
			      : sdr_write_post(l->p.conn[end], &wr, &op),
			 0);
	return op;
}

/* n writes of a MiB each from end 0 to end 1, each to its own place. */
static void stream(struct log *l, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct sdr_op_wr wr = {.size = sizeof(wr), .length = MIB};

		wr.addr = l->rx + (size_t)i * MIB;
		assert_int_equal(sdr_conn_recv_post(l->p.conn[1], &wr, NULL), 0);
		wr.addr = l->tx + (size_t)i * MIB;
		assert_int_equal(sdr_write_post(l->p.conn[0], &wr, NULL), 0);
	}
}

static bool until(struct log *l, unsigned int *what, unsigned int n, uint64_t ns)
{
	uint64_t limit = pair_now(&l->p) + ns;

	while (*what < n && pair_now(&l->p) < limit)
		pair_step(&l->p, limit);
	return *what >= n;
}

static void streamed(struct log *l, unsigned int n, uint64_t ns)
{
	assert_true(until(l, &l->done[1][1], n, ns));
	assert_true(until(l, &l->done[0][0], n, ns));
	assert_int_equal(l->status[1][1], n);
	assert_int_equal(l->status[0][0], n);
	assert_memory_equal(l->tx, l->rx, (size_t)n * MIB);
}

static void path_dead_2s(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	stream(&l, 40);
	pair_run(&l.p, pair_now(&l.p) + 100 * MS);
	pair_link(&l.p, &cut);
	pair_run(&l.p, pair_now(&l.p) + 2 * SEC);
	assert_int_equal(l.p.events[0][SDR_EV_STALLED], 1);
	pair_link(&l.p, &wire);
	streamed(&l, 40, 4 * SEC);
	assert_int_equal(l.p.events[0][SDR_EV_RECOVERED], 1);
	assert_int_equal(l.p.events[1][SDR_EV_STALLED], l.p.events[1][SDR_EV_RECOVERED]);
	assert_int_equal(l.p.events[0][SDR_EV_DEAD] + l.p.events[1][SDR_EV_DEAD], 0);
	log_close(&l);
}

static void path_dead_60s(void **state)
{
	struct log l;
	uint64_t at;

	(void)state;
	log_open(&l, NULL);
	l.want = -SDR_E_DEAD;
	stream(&l, 40);
	pair_run(&l.p, pair_now(&l.p) + 5 * MS);
	pair_link(&l.p, &cut);
	at = pair_now(&l.p);
	assert_true(until(&l, &l.p.events[0][SDR_EV_DEAD], 1, 60 * SEC));
	assert_in_range(pair_now(&l.p) - at, 29 * SEC, 33 * SEC);
	assert_true(until(&l, &l.p.events[1][SDR_EV_DEAD], 1, 60 * SEC));
	assert_in_range(pair_now(&l.p) - at, 29 * SEC, 60 * SEC);
	for (int end = 0; end < 2; end++) {
		assert_int_equal(l.p.status[end], -SDR_E_DEAD);
		assert_int_equal(l.p.events[end][SDR_EV_DEAD], 1);
		assert_int_equal(l.done[end][!!end], 40);
		assert_int_equal(l.status[end][!!end], 40);
		printf("%s\n", l.p.text[end]);
	}
	pair_run(&l.p, pair_now(&l.p) + 10 * SEC);
	log_close(&l);
}

/* sdr_sim keeps the world first: sdk/simctx.c. */
static struct sim *world_of(struct sdr_sim *sim)
{
	struct sim *world;

	memcpy(&world, sim, sizeof(world));
	return world;
}

static struct sim_verdict drop_ctrl(void *arg, const struct sim_packet_info *info)
{
	struct sim_verdict v = {.action = info->is_ctrl ? SIM_DROP : SIM_PASS};

	(void)arg;
	return v;
}

static void control_lost_10s(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	stream(&l, 40);
	pair_run(&l.p, pair_now(&l.p) + 100 * MS);
	sim_filter_set(world_of(l.p.sim), drop_ctrl, NULL);
	pair_run(&l.p, pair_now(&l.p) + 10 * SEC);
	sim_filter_set(world_of(l.p.sim), NULL, NULL);
	streamed(&l, 40, 4 * SEC);
	assert_int_equal(l.p.events[0][SDR_EV_DEAD] + l.p.events[1][SDR_EV_DEAD], 0);
	log_close(&l);
}

static void loss_30_percent(void **state)
{
	const struct sdr_sim_link bad = {
		.size = sizeof(bad), .rate_bps = 1000000000, .delay_ns = 10 * MS, .loss = 0.3};
	struct log l;

	(void)state;
	log_open(&l, NULL);
	pair_link(&l.p, &bad);
	stream(&l, 20);
	streamed(&l, 20, 10 * SEC);
	log_close(&l);
}

/* One path of four dies in mid-stream: the others carry on without it. */
static void channel_dies(void **state)
{
	const struct sdr_conn_attr attr = {
		.size = sizeof(attr), .rate_bps = 800000000, .channels = 4};
	struct log l;
	uint64_t at;

	(void)state;
	log_open(&l, &attr);
	for (uint32_t c = 0; c < 4; c++)
		assert_int_equal(sdr_sim_link_set(l.p.sim, l.p.host[0], l.p.host[1], c, &wire), 0);
	at = pair_now(&l.p);
	stream(&l, 60);
	pair_run(&l.p, pair_now(&l.p) + 50 * MS);
	assert_int_equal(sdr_sim_link_set(l.p.sim, l.p.host[0], l.p.host[1], 2, &cut), 0);
	streamed(&l, 60, 4 * SEC);
	printf("60 MiB at 800 Mbit/s on 4 channels, one dead: %llu ms\n",
	       (unsigned long long)((pair_now(&l.p) - at) / MS));
	assert_true(pair_now(&l.p) - at < 1500 * MS);
	log_close(&l);
}

static void ends_of_operations(void **state)
{
	struct log l;
	uint64_t at, rtt = 20 * MS;
	struct sdr_op *op;

	(void)state;
	log_open(&l, NULL);
	at = pair_now(&l.p);
	/* Never granted: its deadline ends it, on time. */
	l.want = -SDR_E_DEADLINE;
	post(&l, 0, false, 1000, at + 300 * MS, 0);
	assert_true(until(&l, &l.done[0][0], 1, SEC));
	assert_int_equal(l.status[0][0], 1);
	assert_in_range(l.last[0][0].done_ns, at + 300 * MS, at + 301 * MS);
	/* The number stays taken: the receive that matches it says aborted. */
	post(&l, 1, true, 1000, 0, 0);
	assert_true(until(&l, &l.done[1][1], 1, SEC));
	assert_int_equal(l.last[1][1].status, -SDR_E_ABORTED);
	/* Cancelled in mid-flight: the other end learns of it, in both directions. */
	post(&l, 1, true, 20 * MIB, 0, 0);
	op = post(&l, 0, false, 20 * MIB, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 4 * rtt);
	assert_int_equal(sdr_op_cancel(op), 0);
	assert_true(until(&l, &l.done[1][1], 2, SEC));
	assert_int_equal(l.last[0][0].status, -ECANCELED);
	assert_int_equal(l.last[1][1].status, -SDR_E_ABORTED);
	op = post(&l, 1, true, 20 * MIB, 0, 0);
	post(&l, 0, false, 20 * MIB, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 4 * rtt);
	assert_int_equal(sdr_op_cancel(op), 0);
	assert_true(until(&l, &l.done[0][0], 3, SEC));
	assert_int_equal(l.last[1][1].status, -ECANCELED);
	assert_int_equal(l.last[0][0].status, -SDR_E_EARLY);
	/* Longer than its receive. */
	post(&l, 1, true, 1000, 0, 0);
	post(&l, 0, false, 1001, 0, 0);
	assert_true(until(&l, &l.done[0][0], 4, SEC));
	assert_true(until(&l, &l.done[1][1], 4, SEC));
	assert_int_equal(l.last[0][0].status, -SDR_E_TOO_LONG);
	assert_int_equal(l.last[1][1].status, -SDR_E_ABORTED);
	/* And after all that, one that works. */
	post(&l, 1, true, 1000, 0, 0);
	post(&l, 0, false, 1000, 0, 0);
	assert_true(until(&l, &l.done[1][1], 5, SEC));
	assert_true(until(&l, &l.done[0][0], 5, SEC));
	assert_int_equal(l.last[0][0].status, 0);
	assert_int_equal(l.last[1][1].status, 0);
	log_close(&l);
}

/* Time passes in which nobody looks at end 1. */
static void sender_alone(struct log *l, uint64_t ns)
{
	uint64_t limit = pair_now(&l->p) + ns;

	while (pair_now(&l->p) < limit) {
		assert_true(sdr_net_progress(l->p.net[0]) >= 0);
		(void)sdr_sim_step(l->p.sim, limit);
	}
}

/* A handle is good until its completion was taken: nobody else's operation hides behind it. */
static void cancelled_twice(void **state)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = 100};
	struct sdr_completion c = {.size = sizeof(c)};
	struct sdr_op *first, *next = NULL;
	struct log l;
	int err;

	(void)state;
	log_open(&l, NULL);
	wr.addr = l.rx;
	first = post(&l, 1, true, 100, 0, 0);
	assert_int_equal(sdr_op_cancel(first), 0);
	err = sdr_conn_recv_post(l.p.conn[1], &wr, &next);
	assert_true(err == 0 || err == -EAGAIN);
	assert_ptr_not_equal(first, next);
	assert_int_equal(sdr_op_cancel(first), -EALREADY);
	assert_int_equal(sdr_net_poll(l.p.net[1], &c, 1), 1);
	assert_int_equal(c.status, -ECANCELED);
	assert_int_equal(sdr_net_poll(l.p.net[1], &c, 1), 0);
	log_close(&l);
}

/* The SDK has freed a write's number, and nobody has looked yet: its place is not given away. */
static void posted_before_anybody_looked(void **state)
{
	const struct sdr_conn_attr attr = {.size = sizeof(attr), .messages = 2};
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = 100};
	struct sdr_op *held;
	struct log l;
	int err;

	(void)state;
	log_open(&l, &attr);
	wr.addr = l.tx;
	post(&l, 1, true, 100, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 50 * MS);
	post(&l, 0, false, 100, 0, 0);
	held = post(&l, 0, false, 100, 0, 0);
	assert_int_equal(sdr_op_cancel(held), 0);
	assert_true(until(&l, &l.done[1][1], 1, SEC));
	assert_int_equal(l.done[0][0], 1); /* the cancelled one */
	for (int i = 0; i < 50; i++) {
		assert_true(sdr_net_progress(l.p.net[1]) >= 0);
		assert_true(sdr_progress(l.p.ctx[0]) >= 0);
		(void)sdr_sim_step(l.p.sim, pair_now(&l.p) + MS);
	}
	err = sdr_write_post(l.p.conn[0], &wr, NULL);
	assert_int_equal(err, -EAGAIN);
	assert_true(until(&l, &l.done[0][0], 2, SEC));
	assert_int_equal(l.last[0][0].status, 0);
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), 0);
	log_close(&l);
}

/* All of it lies in the device, nobody has looked, and the receive is cancelled. */
static void cancelled_as_it_arrives(void **state)
{
	struct sdr_op_wr wr = {
		.size = sizeof(wr), .length = 60000, .imm = 0x12345678, .flags = SDR_OP_HAS_IMM};
	struct sdr_op *op;
	struct log l;

	(void)state;
	log_open(&l, NULL);
	op = post(&l, 1, true, 100000, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 5 * MS);
	wr.addr = l.tx;
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), 0);
	sender_alone(&l, 50 * MS);
	assert_int_equal(sdr_op_cancel(op), 0);
	assert_true(until(&l, &l.done[1][1], 1, SEC));
	assert_true(until(&l, &l.done[0][0], 1, SEC));
	/* It arrived or it did not; both ends say the same, and of what arrived the whole. */
	if (l.last[1][1].status == 0) {
		assert_int_equal(l.last[0][0].status, 0);
		assert_int_equal(l.last[1][1].length, wr.length);
		assert_int_equal(l.last[1][1].imm, wr.imm);
		assert_memory_equal(l.rx, l.tx, wr.length);
	} else {
		assert_int_equal(l.last[1][1].status, -ECANCELED);
		assert_int_equal(l.last[0][0].status, -SDR_E_EARLY);
	}
	log_close(&l);
}

/* A whole write lacks its immediate only, which comes together with the sender's giving up. */
static void cancelled_as_it_is_announced(void **state)
{
	struct sdr_op_wr wr = {
		.size = sizeof(wr), .length = 10, .imm = 0x12345678, .flags = SDR_OP_HAS_IMM};
	struct sdr_op *op;
	struct log l;

	(void)state;
	if (!pair_device)
		return; /* packets carry all of it */
	log_open(&l, NULL);
	post(&l, 1, true, 100, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 15 * MS);
	sim_filter_set(world_of(l.p.sim), drop_ctrl, NULL);
	wr.addr = l.tx;
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, &op), 0);
	pair_run(&l.p, pair_now(&l.p) + 15 * MS);
	assert_memory_equal(l.rx, l.tx, wr.length);
	assert_int_equal(l.done[1][1], 0);
	sim_filter_set(world_of(l.p.sim), NULL, NULL);
	sender_alone(&l, 300 * MS);
	assert_int_equal(sdr_op_cancel(op), 0);
	sender_alone(&l, 50 * MS);
	assert_true(until(&l, &l.done[1][1], 1, SEC));
	assert_int_equal(l.last[0][0].status, -ECANCELED);
	assert_int_equal(l.last[1][1].status, -SDR_E_ABORTED);
	log_close(&l);
}

/* The receiver finishes a write and goes at once: the sender hears both in one moment. */
static void finished_before_the_reset(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	post(&l, 1, true, 1000, 0, 0);
	post(&l, 0, false, 1000, 0, 0);
	assert_true(until(&l, &l.done[1][1], 1, SEC));
	sdr_conn_destroy(l.p.conn[1]);
	for (uint64_t limit = pair_now(&l.p) + 50 * MS; pair_now(&l.p) < limit;)
		(void)sdr_sim_step(l.p.sim, limit);
	assert_true(until(&l, &l.p.events[0][SDR_EV_DEAD], 1, SEC));
	assert_int_equal(l.p.status[0], -SDR_E_RESET);
	assert_int_equal(l.done[0][0], 1);
	assert_int_equal(l.last[1][1].status, 0);
	assert_int_equal(l.last[0][0].status, 0);
	log_close(&l);
}

static void test_and_limits(void **state)
{
	const struct sdr_conn_attr attr = {.size = sizeof(attr), .messages = 4};
	struct sdr_op_wr wr = {.size = sizeof(wr)};
	struct sdr_completion c = {.size = sizeof(c)};
	struct sdr_op *op[5];
	struct log l;

	(void)state;
	log_open(&l, &attr);
	wr.addr = l.tx;
	wr.length = 10;
	wr.flags = 64;
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), -EINVAL);
	for (int i = 0; i < 4; i++)
		op[i] = post(&l, 0, false, 10, 0, SDR_OP_TEST);
	wr.flags = 0;
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), -EAGAIN);
	assert_int_equal(sdr_op_test(op[0], &c), 0);
	for (int i = 0; i < 4; i++)
		post(&l, 1, true, 10, 0, 0);
	assert_true(until(&l, &l.done[1][1], 4, SEC));
	pair_run(&l.p, pair_now(&l.p) + SEC);
	assert_int_equal(l.done[0][0], 0);
	/* Done, but their places are taken until they were tested. */
	assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), -EAGAIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sdr_op_test(op[i], &c), 1);
		assert_int_equal(c.status, 0);
	}
	op[4] = post(&l, 0, false, 10, 0, 0);
	assert_int_equal(sdr_op_test(op[4], &c), -EINVAL);
	/* One outlives its connection. */
	sdr_conn_destroy(l.p.conn[0]);
	assert_int_equal(sdr_op_test(op[3], &c), 1);
	assert_null(c.conn);
	assert_true(until(&l, &l.done[0][0], 1, SEC));
	assert_int_equal(l.last[0][0].status, -ECANCELED);
	assert_true(until(&l, &l.p.events[1][SDR_EV_DEAD], 1, SEC));
	assert_int_equal(l.p.status[1], -SDR_E_RESET);
	log_close(&l);
}

static void closing(void **state)
{
	struct sdr_op_wr wr = {.size = sizeof(wr)};
	struct log l;

	(void)state;
	for (int both = 0; both < 2; both++) {
		log_open(&l, NULL);
		/* A receive of each end has no write; one end's writes are under way. */
		post(&l, 0, true, 10, 0, 0);
		stream(&l, 10);
		post(&l, 1, true, 10, 0, 0);
		assert_int_equal(sdr_conn_close(l.p.conn[0]), 0);
		if (both)
			assert_int_equal(sdr_conn_close(l.p.conn[1]), 0);
		assert_int_equal(sdr_write_post(l.p.conn[0], &wr, NULL), -ESHUTDOWN);
		assert_true(until(&l, &l.p.events[0][SDR_EV_CLOSED], 1, 5 * SEC));
		assert_true(until(&l, &l.p.events[1][SDR_EV_CLOSED], 1, 5 * SEC));
		assert_int_equal(l.status[0][0], 10);
		assert_int_equal(l.status[1][1], 10);
		assert_int_equal(l.done[0][1], 1);
		assert_int_equal(l.last[0][1].status, -SDR_E_CLOSED);
		assert_int_equal(l.done[1][1], 11);
		assert_int_equal(l.last[1][1].status, -SDR_E_CLOSED);
		assert_int_equal(sdr_write_post(l.p.conn[1], &wr, NULL), -ESHUTDOWN);
		log_close(&l);
	}
}

/* The peer closes while one write is under way and the next was never granted. */
static void closing_under_a_write(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	(void)post(&l, 1, true, 16 * MIB, 0, 0);
	(void)post(&l, 0, false, 16 * MIB, 0, 0);
	(void)post(&l, 0, false, 100, 0, 0);
	pair_run(&l.p, pair_now(&l.p) + 30 * MS);
	assert_int_equal(sdr_conn_close(l.p.conn[1]), 0);
	l.want = -SDR_E_CLOSED;
	assert_true(until(&l, &l.status[0][0], 1, SEC));
	assert_int_equal(l.done[0][0], 1);
	assert_true(until(&l, &l.p.events[0][SDR_EV_CLOSED], 1, 5 * SEC));
	assert_true(until(&l, &l.p.events[1][SDR_EV_CLOSED], 1, 5 * SEC));
	assert_int_equal(l.done[0][0], 2);
	assert_int_equal(l.last[0][0].status, 0);
	assert_int_equal(l.done[1][1], 1);
	assert_int_equal(l.last[1][1].status, 0);
	assert_int_equal(l.last[1][1].length, 16 * MIB);
	log_close(&l);
}

/* Neither end will ever grant what the other still wants to write. */
static void closing_ungranted_both(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	(void)post(&l, 0, false, 1000, 0, 0);
	(void)post(&l, 1, false, 1000, 0, 0);
	assert_int_equal(sdr_conn_close(l.p.conn[0]), 0);
	assert_int_equal(sdr_conn_close(l.p.conn[1]), 0);
	l.want = -SDR_E_CLOSED;
	assert_true(until(&l, &l.p.events[0][SDR_EV_CLOSED], 1, 60 * SEC));
	assert_true(until(&l, &l.p.events[1][SDR_EV_CLOSED], 1, 60 * SEC));
	assert_int_equal(l.last[0][0].status, -SDR_E_CLOSED);
	assert_int_equal(l.last[1][0].status, -SDR_E_CLOSED);
	log_close(&l);
}

static void closing_without_peer(void **state)
{
	struct log l;
	uint64_t at;

	(void)state;
	log_open(&l, NULL);
	stream(&l, 2);
	streamed(&l, 2, SEC);
	pair_link(&l.p, &cut);
	at = pair_now(&l.p);
	assert_int_equal(sdr_conn_close(l.p.conn[0]), 0);
	assert_true(until(&l, &l.p.events[0][SDR_EV_CLOSED], 1, 10 * SEC));
	assert_true(pair_now(&l.p) - at < 3 * SEC);
	log_close(&l);
}

static void never_connected(void **state)
{
	struct log l;

	(void)state;
	log_open(&l, NULL);
	pair_link(&l.p, &cut);
	sdr_conn_destroy(l.p.conn[0]);
	sdr_conn_destroy(l.p.conn[1]);
	pair_connect(&l.p, NULL, NULL);
	assert_true(until(&l, &l.p.events[0][SDR_EV_FAILED], 1, 11 * SEC));
	assert_true(until(&l, &l.p.events[1][SDR_EV_FAILED], 1, 11 * SEC));
	assert_int_equal(l.p.status[0], -SDR_E_NO_UDP);
	printf("%s\n", l.p.text[0]);
	log_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_dead_2s),
		cmocka_unit_test(path_dead_60s),
		cmocka_unit_test(control_lost_10s),
		cmocka_unit_test(loss_30_percent),
		cmocka_unit_test(channel_dies),
		cmocka_unit_test(ends_of_operations),
		cmocka_unit_test(test_and_limits),
		cmocka_unit_test(closing),
		cmocka_unit_test(closing_ungranted_both),
		cmocka_unit_test(closing_under_a_write),
		cmocka_unit_test(closing_without_peer),
		cmocka_unit_test(never_connected),
		cmocka_unit_test(finished_before_the_reset),
		cmocka_unit_test(cancelled_twice),
		cmocka_unit_test(posted_before_anybody_looked),
		cmocka_unit_test(cancelled_as_it_arrives),
		cmocka_unit_test(cancelled_as_it_is_announced),
	};

	const struct sdr_sim_device *const devices[] = {NULL, &pair_roce, &pair_nic};
	int failed = 0;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		pair_device = devices[i];
		print_message("devices: %s\n", pair_device ? pair_device->like : "sockets");
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
