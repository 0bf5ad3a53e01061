/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse sends, told lengths and packets that software fills, on sockets of this host: received
 * by the caller's thread or by workers, which then race with it for every packet. Real time:
 * everything waits with a limit, nothing asserts how long it took.
 */
#include "send_facts.h"
#include <errno.h>
#include <sdr/sdr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MS 1000000ull
#define SEC 1000000000ull
#define P 1024u /* bytes in a packet */
#define PKTS 200u
#define GUARD 0x77
#define ROUNDS 60u

struct pair {
	struct sdr_ctx *ctx[2];
	struct sdr_qp *qp[2];
};

/* What the pairs are opened on. */
struct sockets {
	const char *device, *addr[2];
	uint32_t workers;
};

static const struct sockets kinds[] = {
	{"udp", {"127.0.0.1", "127.0.0.1"}, 0},
	{"udp", {"127.0.0.1", "127.0.0.1"}, 1},
	{"udp", {"127.0.0.1", "127.0.0.1"}, 3},
	/* One process an address has the port of RoCEv2: these addresses are nobody else's. */
	{"roce", {"127.0.0.65", "127.0.0.66"}, 0},
	{"roce", {"127.0.0.65", "127.0.0.66"}, 2},
};

static const struct sockets *kind;
static uint8_t src[PKTS * P], dst[(PKTS + 1) * P];

static bool run(struct pair *p, bool (*done)(void *arg), void *arg)
{
	uint64_t limit = sdr_now_ns(p->ctx[0]) + 20 * SEC;

	while (!done(arg)) {
		if (sdr_now_ns(p->ctx[0]) > limit)
			return false;
		assert_true(sdr_wait(p->ctx[0], sdr_now_ns(p->ctx[0]) + MS / 5) >= 0);
		assert_true(sdr_progress(p->ctx[1]) >= 0);
	}
	return true;
}

static bool connected(void *arg)
{
	struct pair *p = arg;

	return sdr_qp_state_get(p->qp[0]) == SDR_QP_CONNECTED &&
	       sdr_qp_state_get(p->qp[1]) == SDR_QP_CONNECTED;
}

static int open_ends(struct pair *p)
{
	const struct sdr_qp_attr attr = {
		.size = sizeof(attr), .max_payload_bytes = P, .user_offers = 0x4001};

	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 2; i++) {
		const struct sdr_ctx_attr ca = {.size = sizeof(ca),
						.device = kind->device,
						.bind_addr = kind->addr[i],
						.listen = i == 1,
						.workers = i == 1 ? kind->workers : 0};
		int err = sdr_ctx_create(&ca, &p->ctx[i]);

		if (err)
			return err;
		assert_int_equal(sdr_qp_create(p->ctx[i], &attr, &p->qp[i]), 0);
	}
	return 0;
}

static void close_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		sdr_ctx_destroy(p->ctx[i]);
}

static void open_pair(struct pair *p)
{
	uint8_t info[2][SDR_MAX_INFO_BYTES];
	int len[2], err = open_ends(p);

	if (err == -EADDRINUSE) { /* another process has the port */
		close_pair(p);
		skip();
	}
	assert_int_equal(err, 0);
	for (int i = 0; i < 2; i++)
		len[i] = sdr_qp_info_get(p->qp[i], info[i], sizeof(info[i]));
	for (int i = 1; i >= 0; i--)
		assert_int_equal(sdr_qp_connect(p->qp[i], info[!i], (size_t)len[!i], NULL), 0);
	assert_true(run(p, connected, p));
	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 2654435761u >> 11);
}

static void begin(struct pair *p, const struct sdr_send_wr *wr, uint64_t room,
		  struct sdr_send **send, struct sdr_recv **recv)
{
	const struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = room};

	memset(dst, GUARD, sizeof(dst));
	assert_int_equal(sdr_recv_post(p->qp[1], &rwr, recv), 0);
	assert_int_equal(sdr_send_stream_start(p->qp[0], wr, send), 0);
	assert_true(run(p, is_fixed, *send));
}

static void end(struct pair *p, struct sdr_send *send)
{
	assert_true(run(p, is_done, send));
	sdr_send_release(send);
}

static void assert_bytes(uint64_t len)
{
	assert_memory_equal(dst, src, len);
	for (uint64_t i = len; i < sizeof(dst); i++)
		assert_int_equal(dst[i], GUARD);
}

/* Makes packets of the word at `first` good that are not there yet. */
static void fill_word(struct sdr_recv *recv, uint64_t len, uint32_t first, uint32_t npkts)
{
	uint32_t n = npkts - first < 64 ? npkts - first : 64;
	uint64_t mask;

	assert_int_equal(sdr_recv_fill_begin(recv, first, n, &mask), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)(first + i) * P, left = len > at ? len - at : 0;

		if (mask >> i & 1)
			memcpy(dst + at, src + at, left < P ? left : P);
	}
	assert_int_equal(sdr_recv_fill_end(recv, first, mask), 0);
}

/* The sender sends all of it, out of order, while the receiver fills what is not there yet. */
static void filled_in_flight(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		/* Ends with its receive; within a packet; with an empty one. */
		uint64_t len = PKTS * P - round % 3 * (P / 2) * (1 + round % 2);
		const struct sdr_send_wr wr = {.size = sizeof(wr), .length = len, .addr = src};
		struct sdr_recv_info info = {.size = sizeof(info)};
		struct sdr_send *send;
		struct sdr_recv *recv;

		begin(&p, &wr, PKTS * P, &send, &recv);
		for (uint32_t at = 0; at < len; at += 20 * P) {
			uint64_t n = len - at < 20 * P ? len - at : 20 * P;

			(void)sdr_send_stream_continue(send, at, n, NULL);
			if (at / (20 * P) == round % 10)
				assert_int_equal(sdr_recv_length_set(recv, len), 0);
		}
		sdr_recv_query(recv, &info);
		assert_true(info.end_known);
		assert_int_equal(info.length, len);
		for (uint32_t first = 0; first < info.pkts; first += 64) {
			if (round % 4 == 0) /* some of it arrives first */
				assert_true(sdr_progress(p.ctx[1]) >= 0);
			fill_word(recv, len, first, info.pkts);
		}
		assert_int_equal(sdr_recv_length_set(recv, len), 0);
		assert_int_equal(sdr_recv_complete(recv), 1);
		assert_bytes(len);
		end(&p, send);
	}
	close_pair(&p);
}

static bool some_bits(void *recv)
{
	uint64_t bits;

	return sdr_recv_pkts_get(recv, 0, 8, &bits) >= 2;
}

static void sparse_sends(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p);
	for (uint32_t round = 0; round < 8; round++) {
		const struct sdr_send_wr wr = {
			.size = sizeof(wr), .length = 9 * P + 1, .addr = src, .sparse = 1};
		struct sdr_recv_info info = {.size = sizeof(info)};
		struct sdr_send *send;
		struct sdr_recv *recv;
		uint64_t bits;

		begin(&p, &wr, 7 * P + 100, &send, &recv);
		assert_int_equal(sdr_send_stream_continue(send, 6 * P, P, NULL), P);
		assert_int_equal(sdr_send_stream_continue(send, 7 * P, 0, NULL), -EINVAL);
		assert_int_equal(sdr_send_stream_continue(send, 2 * P, P, NULL), P);
		assert_true(run(&p, some_bits, recv));
		assert_int_equal(sdr_recv_pkts_get(recv, 0, 8, &bits), 2);
		assert_int_equal(bits, 0x44);
		sdr_recv_query(recv, &info);
		assert_false(info.end_known);
		assert_int_equal(sdr_recv_complete(recv), 0);
		assert_memory_equal(dst + 2 * P, src + 2 * P, P);
		assert_memory_equal(dst + 6 * P, src + 6 * P, P);
		end(&p, send);
	}
	close_pair(&p);
}

static void offers(void **state)
{
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct pair p;

	(void)state;
	open_pair(&p);
	for (int i = 0; i < 2; i++) {
		sdr_qp_query(p.qp[i], &info);
		assert_int_equal(info.peer_offers, 0x4001);
	}
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filled_in_flight),
		cmocka_unit_test(sparse_sends),
		cmocka_unit_test(offers),
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		kind = &kinds[i];
		print_message("sockets: %s, %u workers\n", kind->device, kind->workers);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
