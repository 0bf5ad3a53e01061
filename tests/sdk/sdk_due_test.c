/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is due in a world of contexts: sdr_sim_due(), deadlines of owners, hosts that are asleep,
 * interrupts that are held back, and which QPs had something (sdr_next_active()).
 */
#include "pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static uint64_t now_of(const struct pair *p)
{
	return sdr_sim_now_ns(p->sim);
}

/* As a world of many contexts is driven: only who is due makes progress. */
static void run_due(struct pair *p, uint64_t until_ns)
{
	do {
		struct sdr_ctx *ctx;

		while ((ctx = sdr_sim_due(p->sim)))
			assert_true(sdr_progress(ctx) >= 0);
		(void)sdr_sim_step(p->sim, until_ns);
	} while (now_of(p) < until_ns);
}

static struct sdr_recv *recv_post(struct pair *p, void *mem, uint64_t length)
{
	const struct sdr_recv_wr wr = {
		.size = sizeof(wr), .addr = mem, .length = length, .mr = p->mr[1]};
	struct sdr_recv *recv;

	assert_int_equal(sdr_recv_post(p->qp[1], &wr, &recv), 0);
	return recv;
}

static struct sdr_send *send_post(struct pair *p, const void *mem, uint64_t length)
{
	const struct sdr_send_wr wr = {.size = sizeof(wr),
				       .opcode = SDR_OP_WRITE,
				       .addr = mem,
				       .length = length,
				       .mr = p->mr[0]};
	struct sdr_send *send;

	assert_int_equal(sdr_send_post(p->qp[0], &wr, &send), 0);
	return send;
}

/* Nobody but the due ones makes progress, and the message comes as ever. */
static void only_the_due(void **state)
{
	static uint8_t from[100000], to[sizeof(from)];
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct pair p;

	(void)state;
	pair_open(&p, 1, NULL);
	pair_connect(&p);
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7);
	recv = recv_post(&p, to, sizeof(to));
	send = send_post(&p, from, sizeof(from));
	run_due(&p, now_of(&p) + 100 * MS);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(sdr_recv_complete(recv), 1);
	run_due(&p, now_of(&p) + 100 * MS);
	assert_int_equal(sdr_send_poll(send), 1);
	sdr_send_release(send);
	assert_null(sdr_sim_due(p.sim));
	pair_close(&p);
}

/* It is named once, and does not hold the clock while it gets no progress. */
static void asleep(void **state)
{
	static uint8_t to[1000];
	struct sdr_recv *recv;
	uint64_t began;
	struct pair p;

	(void)state;
	pair_open(&p, 1, NULL);
	pair_connect(&p);
	run_due(&p, now_of(&p) + 100 * MS);
	recv = recv_post(&p, to, sizeof(to)); /* its CTS is to be sent, and will not be */
	assert_ptr_equal(sdr_sim_due(p.sim), p.ctx[1]);
	assert_null(sdr_sim_due(p.sim));
	began = now_of(&p);
	while (now_of(&p) < began + 10 * SEC) {
		assert_int_not_equal(sdr_progress(p.ctx[0]), -1);
		(void)sdr_sim_step(p.sim, began + 10 * SEC);
		assert_ptr_not_equal(sdr_sim_due(p.sim), p.ctx[1]);
	}
	(void)sdr_progress(p.ctx[1]);
	send_post(&p, to, sizeof(to));
	run_due(&p, now_of(&p) + 100 * MS);
	assert_int_equal(sdr_recv_complete(recv), 1);
	pair_close(&p);
}

/* The same without sdr_sim_due(): a step stops for it once. */
static void asleep_unasked(void **state)
{
	uint64_t began;
	struct pair p;
	int stops = 0;

	(void)state;
	pair_open(&p, 1, NULL);
	pair_connect(&p);
	began = now_of(&p);
	while (now_of(&p) < began + 10 * SEC) {
		(void)sdr_sim_step(p.sim, began + 10 * SEC);
		assert_true(++stops < 100);
	}
	pair_close(&p);
}

static void deadline_of_an_owner(void **state)
{
	uint64_t at;
	struct pair p;

	(void)state;
	pair_open(&p, 1, NULL);
	at = now_of(&p) + 5 * MS;
	sdr_ctx_deadline_set(p.ctx[1], at);
	assert_true(sdr_next_deadline_ns(p.ctx[1]) == at);
	assert_null(sdr_sim_due(p.sim));
	assert_int_equal(sdr_sim_step(p.sim, at - 1), 0);
	assert_int_equal(now_of(&p), at - 1);
	assert_null(sdr_sim_due(p.sim));
	assert_int_equal(sdr_sim_step(p.sim, at + SEC), 1);
	assert_int_equal(now_of(&p), at);
	assert_ptr_equal(sdr_sim_due(p.sim), p.ctx[1]);
	assert_null(sdr_sim_due(p.sim));
	/* It has passed, and stays until another one is set. */
	(void)sdr_progress(p.ctx[1]);
	assert_ptr_equal(sdr_sim_due(p.sim), p.ctx[1]);
	sdr_ctx_deadline_set(p.ctx[1], UINT64_MAX);
	(void)sdr_progress(p.ctx[1]);
	assert_null(sdr_sim_due(p.sim));
	assert_int_equal(sdr_sim_step(p.sim, at + SEC), 0);
	assert_int_equal(now_of(&p), at + SEC);
	pair_close(&p);
}

static void active_qps(void **state)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .tell_active = 1};
	struct pair p;

	(void)state;
	pair_open(&p, 1, &attr);
	assert_null(sdr_next_active(p.ctx[0]));
	pair_connect(&p);
	assert_ptr_equal(sdr_next_active(p.ctx[1]), p.qp[1]);
	assert_null(sdr_next_active(p.ctx[1]));
	assert_ptr_equal(sdr_next_active(p.ctx[0]), p.qp[0]);
	run_due(&p, now_of(&p) + SEC); /* PINGs */
	sdr_qp_destroy(p.qp[0]);
	p.qp[0] = NULL;
	assert_null(sdr_next_active(p.ctx[0]));
	pair_close(&p);
	pair_open(&p, 1, NULL);
	pair_connect(&p);
	assert_null(sdr_next_active(p.ctx[1]));
	pair_close(&p);
}

/* Steps of the receiver until a message of 100 packets is there; and when it is. */
static unsigned int steps_of(uint64_t coalesce_ns, uint64_t *whole_ns)
{
	const struct sdr_sim_device device = {
		.size = sizeof(device), .like = "udp", .coalesce_ns = coalesce_ns};
	static uint8_t from[143600], to[sizeof(from)];
	struct sdr_recv *recv;
	unsigned int turns = 0;
	struct pair p;

	pair_device = &device;
	pair_open(&p, 1, NULL);
	pair_device = NULL;
	pair_connect(&p);
	recv = recv_post(&p, to, sizeof(to));
	send_post(&p, from, sizeof(from));
	for (uint64_t words[2]; sdr_recv_pkts_get(recv, 0, 100, words) < 100;) {
		struct sdr_ctx *ctx;

		while ((ctx = sdr_sim_due(p.sim))) {
			turns += ctx == p.ctx[1];
			assert_true(sdr_progress(ctx) >= 0);
		}
		(void)sdr_sim_step(p.sim, now_of(&p) + SEC);
	}
	*whole_ns = now_of(&p);
	pair_close(&p);
	return turns;
}

/* Packets of 1500 bytes at 10 Gbit/s are 1.2 us apart. */
static void coalescing(void **state)
{
	uint64_t at, held;

	(void)state;
	assert_true(steps_of(0, &at) > 95);
	assert_in_range(steps_of(12000, &held), 5, 30);
	assert_in_range(held, at, at + 10 * 12000); /* CTS and PONG wait too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_due),	  cmocka_unit_test(asleep),
		cmocka_unit_test(asleep_unasked), cmocka_unit_test(deadline_of_an_owner),
		cmocka_unit_test(active_qps),	  cmocka_unit_test(coalescing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
