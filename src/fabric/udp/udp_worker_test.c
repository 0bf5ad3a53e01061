/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QPs and sockets go away while workers receive for them: nothing is touched after
 * qp_destroy returned. Meant for ThreadSanitizer and AddressSanitizer as well.
 */
#include "fabric/udp/test_util.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, CHANNELS = 3, PAYLOAD = 1000, RUN = 32 };

struct sender {
	struct end end;
	_Atomic bool stop;
};

/* Sends to whatever QP it is connected to until it is told to stop. */
static void *send_on(void *arg)
{
	struct sender *s = arg;
	static uint8_t bytes[PAYLOAD * RUN];
	struct fabric_write w = {.qp = s->end.qp,
				 .addr = bytes,
				 .payload_bytes = PAYLOAD,
				 .last_bytes = PAYLOAD,
				 .count = RUN};

	for (uint32_t i = 0; !atomic_load(&s->stop); i++) {
		w.channel = i % CHANNELS;
		w.message = i % 3;
		s->end.f->ops->post(s->end.f, &w, 1);
		s->end.f->ops->ctrl(s->end.qp, w.channel, 0, "state", 5);
		end_poll(&s->end);
		if (i % 64 == 0)
			usleep(100);
	}
	return NULL;
}

/* The receiving QP is destroyed and its memory given back while packets still come. */
static void test_destroy_under_traffic(void **state)
{
	struct udp_fabric_attr attr = {.listen = true, .workers = 2};
	struct end b;

	(void)state;
	end_open(&b, &attr, CHANNELS);
	attr = (struct udp_fabric_attr){0};
	for (int round = 0; round < ROUNDS; round++) {
		struct fabric_qp_attr qa = {.channels = CHANNELS, .table = &b.table, .cookie = &b};
		uint8_t *mem = calloc(2 * RUN, PAYLOAD);
		struct fabric_bind bind = {
			.rx = {.len = PAYLOAD * RUN, .payload = PAYLOAD, .imm_frags = 1}};
		struct sender s = {.stop = false};
		pthread_t thread;
		uint64_t rx_before = end_counter(&b, SDR_CTR_rx_ctrl);

		end_open(&s.end, &attr, CHANNELS);
		pair_connect(&s.end, &b, AF_INET);
		for (uint32_t m = 0; m < 2; m++) {
			bind.rx.base = mem + (size_t)m * RUN * PAYLOAD;
			assert_int_equal(b.f->ops->bind(b.qp, m, &bind, &(struct fabric_key){0}),
					 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, send_on, &s), 0);
		while (end_counter(&b, SDR_CTR_rx_ctrl) < rx_before + 20)
			end_poll(&b);
		b.f->ops->qp_destroy(b.qp);
		/* Nothing of it may be touched from here on. */
		memset(b.slots, 0, TEST_SLOTS * sizeof(*b.slots));
		rx_table_init(&b.table, b.slots, TEST_SLOTS, UINT32_MAX, b.workers, 2, 0);
		free(mem);
		assert_int_equal(b.f->ops->qp_create(b.f, &qa, &b.qp), 0);
		end_poll(&b);
		atomic_store(&s.stop, true);
		pthread_join(thread, NULL);
		end_close(&s.end);
	}
	end_close(&b);
}

/* Sockets that nobody uses any more are closed after a while, workers or not. */
static void test_sockets_reaped(void **state)
{
	struct udp_fabric_attr attr = {.listen = true, .workers = 2};
	struct end a, b;

	(void)state;
	end_open(&b, &attr, CHANNELS);
	attr = (struct udp_fabric_attr){.workers = 1};
	end_open(&a, &attr, CHANNELS);
	pair_connect(&a, &b, AF_INET6);
	a.f->ops->qp_destroy(a.qp);
	b.f->ops->qp_destroy(b.qp);
	a.qp = b.qp = NULL;
	usleep(1100000);
	end_poll(&a);
	end_poll(&b);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_destroy_under_traffic),
		cmocka_unit_test(test_sockets_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
