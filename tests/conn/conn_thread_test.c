/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nets with a thread of their own, used by several threads at once: posts, waits, cancels,
 * queries and polls, over UDP on this host. For ThreadSanitizer, and right without it.
 */
#include "pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITERS 3u
#define WRITES 60u
#define LENGTH 20000u
#define TOTAL (WRITERS * WRITES)

struct shared {
	struct sdr_net *net[2];
	struct sdr_conn *conn[2];
	uint8_t *rx;
	_Atomic unsigned int bad, cancelled;
};

static struct sdr_conn *event_conn(struct sdr_net *net, enum sdr_event_type type)
{
	struct sdr_event ev = {.size = sizeof(ev)};
	uint64_t limit = sdr_now_ns(sdr_net_ctx(net)) + 20 * SEC;

	while (sdr_now_ns(sdr_net_ctx(net)) < limit) {
		(void)sdr_net_wait(net, limit);
		if (sdr_net_event(net, &ev) == 1 && ev.type == type)
			return ev.conn;
	}
	return NULL;
}

static void *writer(void *arg)
{
	struct shared *s = arg;
	uint8_t *mem = malloc(LENGTH);

	for (unsigned int i = 0; i < WRITES; i++) {
		struct sdr_op_wr wr = {
			.size = sizeof(wr), .addr = mem, .length = LENGTH, .flags = SDR_OP_TEST};
		struct sdr_completion c = {.size = sizeof(c)};
		struct sdr_conn_info info = {.size = sizeof(info)};
		struct sdr_op *op;
		int err;

		memset(mem, (int)i, LENGTH);
		while ((err = sdr_write_post(s->conn[0], &wr, &op)) == -EAGAIN)
			(void)usleep(100);
		if (err) {
			s->bad++;
			break;
		}
		if (i % 16 == 7)
			(void)sdr_op_cancel(op);
		if (sdr_op_wait(op, sdr_now_ns(sdr_net_ctx(s->net[0])) + 60 * SEC, &c) != 1)
			s->bad++;
		else if (c.status == -ECANCELED)
			s->cancelled++;
		else if (c.status)
			s->bad++;
		(void)sdr_conn_query(s->conn[0], &info);
		sdr_conn_cookie_set(s->conn[0], s);
		if (sdr_conn_cookie(s->conn[0]) != s)
			s->bad++;
	}
	free(mem);
	return NULL;
}

static void *reader(void *arg)
{
	struct shared *s = arg;
	struct sdr_completion c[8];
	unsigned int posted = 0, done = 0;
	uint64_t limit = sdr_now_ns(sdr_net_ctx(s->net[1])) + 90 * SEC;

	c[0].size = sizeof(c[0]);
	while (done < TOTAL && sdr_now_ns(sdr_net_ctx(s->net[1])) < limit) {
		struct sdr_op_wr wr = {.size = sizeof(wr), .length = LENGTH};
		int n;

		while (posted < TOTAL) {
			wr.addr = s->rx + (size_t)posted * LENGTH;
			wr.cookie = wr.addr;
			if (sdr_conn_recv_post(s->conn[1], &wr, NULL))
				break;
			posted++;
		}
		(void)sdr_net_wait(s->net[1], sdr_now_ns(sdr_net_ctx(s->net[1])) + 10 * MS);
		while ((n = sdr_net_poll(s->net[1], c, 8)) > 0) {
			for (int i = 0; i < n; i++) {
				const uint8_t *mem = c[i].cookie;

				done++;
				if (c[i].status == -SDR_E_ABORTED)
					continue;
				if (c[i].status || c[i].length != LENGTH ||
				    memcmp(mem, mem + 1, LENGTH - 1) != 0)
					s->bad++;
			}
		}
	}
	if (done != TOTAL)
		s->bad++;
	return NULL;
}

static void net_open(struct sdr_net **net, uint16_t port, uint32_t workers)
{
	struct sdr_net_attr attr = {.size = sizeof(attr), .thread = 1};

	attr.ctx.size = sizeof(attr.ctx);
	attr.ctx.listen = port != 0;
	attr.ctx.port = port;
	attr.ctx.workers = workers;
	assert_int_equal(sdr_net_create(&attr, net), 0);
}

static void run(uint32_t workers, uint32_t channels)
{
	struct sdr_conn_attr attr = {.size = sizeof(attr), .channels = channels};
	struct shared s = {0};
	pthread_t thread[WRITERS + 1];
	uint16_t port = (uint16_t)(25000 + (uint32_t)getpid() % 5000 + workers);

	net_open(&s.net[1], port, workers);
	net_open(&s.net[0], 0, workers);
	assert_int_equal(sdr_conn_listen(s.net[1], NULL), 0);
	assert_int_equal(sdr_conn_connect(s.net[0], "localhost", port, &attr, &s.conn[0]), 0);
	assert_non_null(event_conn(s.net[0], SDR_EV_CONNECTED));
	s.conn[1] = event_conn(s.net[1], SDR_EV_ACCEPTED);
	assert_non_null(s.conn[1]);
	s.rx = calloc(TOTAL, LENGTH);
	assert_non_null(s.rx);
	assert_int_equal(pthread_create(&thread[WRITERS], NULL, reader, &s), 0);
	for (unsigned int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, writer, &s), 0);
	for (unsigned int i = 0; i <= WRITERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(s.bad, 0);
	printf("%u writes, %u of them cancelled\n", TOTAL, s.cancelled);
	assert_int_equal(sdr_conn_close(s.conn[0]), 0);
	assert_non_null(event_conn(s.net[0], SDR_EV_CLOSED));
	assert_non_null(event_conn(s.net[1], SDR_EV_CLOSED));
	sdr_net_destroy(s.net[0]);
	sdr_net_destroy(s.net[1]);
	free(s.rx);
}

static void threads(void **state)
{
	(void)state;
	run(0, 1);
}

static void threads_and_workers(void **state)
{
	(void)state;
	run(2, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(threads),
					   cmocka_unit_test(threads_and_workers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
