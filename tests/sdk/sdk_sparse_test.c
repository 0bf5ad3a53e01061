/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse sends: any packets or none, cut to what the receive has room for, never an end. And
 * what an application offers its peer, and simulated devices without bytes. On each kind of
 * device.
 */
#include "pair.h"
#include "send_facts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define P 1024u /* bytes in a packet */
#define GUARD 0x77

static uint8_t src[16 * P], dst[16 * P];

static void open_pair(struct pair *p)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .max_payload_bytes = P};

	pair_open(p, 1, &attr);
	pair_connect(p);
	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 2654435761u >> 11);
	memset(dst, GUARD, sizeof(dst));
}

static struct sdr_send_wr sparse_wr(const struct pair *p, uint64_t length)
{
	return (struct sdr_send_wr){.size = sizeof(struct sdr_send_wr),
				    .length = length,
				    .addr = src,
				    .mr = p->mr[0],
				    .sparse = 1};
}

static struct sdr_send *stream(struct pair *p, const struct sdr_send_wr *wr)
{
	struct sdr_send *send;

	assert_int_equal(sdr_send_stream_start(p->qp[0], wr, &send), 0);
	return send;
}

static struct sdr_recv *recv_post(struct pair *p, uint64_t length)
{
	const struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = dst, .length = length};
	struct sdr_recv *recv;

	assert_int_equal(sdr_recv_post(p->qp[1], &wr, &recv), 0);
	return recv;
}

static struct sdr_send_info send_info(struct sdr_send *send)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_send_query(send, &info), 0);
	return info;
}

static void settle(struct pair *p)
{
	(void)pair_run(p, pair_never, NULL, 100 * MS);
}

static uint64_t sent_pkts(const struct pair *p)
{
	uint64_t counter[SDR_CTR_COUNT];

	sdr_counters_get(p->ctx[0], counter, SDR_CTR_COUNT);
	return counter[SDR_CTR_tx_pkts];
}

/* Sends packets [first, first + n) of a sparse message; how many left. */
static int packets(struct sdr_send *send, uint32_t first, uint32_t n)
{
	struct sdr_continue_attr attr = {.size = sizeof(attr), .channel = SDR_CHANNEL_ANY};
	int64_t sent = sdr_send_stream_continue(send, (uint64_t)first * P, (uint64_t)n * P, &attr);

	if (sent < 0)
		return (int)sent;
	assert_int_equal(sent, attr.pkts * P);
	return (int)attr.pkts;
}

/* The receive's packets are those of `mask`, with their bytes, and nothing else was written. */
static void assert_landed(const struct sdr_recv *recv, uint32_t npkts, uint64_t mask)
{
	uint64_t bits;

	assert_true(sdr_recv_pkts_get(recv, 0, npkts, &bits) >= 0);
	assert_int_equal(bits, mask);
	for (uint32_t i = 0; i < sizeof(dst); i++) {
		bool there = i / P < npkts && mask >> i / P & 1;

		assert_int_equal(dst[i], there ? src[i] : GUARD);
	}
}

static void finish(struct pair *p, struct sdr_send *send, struct sdr_recv *recv, int verdict)
{
	assert_int_equal(sdr_recv_complete(recv), verdict);
	assert_true(pair_run(p, is_done, send, SEC));
	assert_int_equal(send_info(send).remote_early, !verdict);
	assert_int_equal(sdr_send_poll(send), 1);
	sdr_send_release(send);
}

static void any_packets(void **state)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;
	uint64_t had;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, 10 * P + 7);
	send = stream(&p, &wr);
	assert_int_equal(send_info(send).pkts, 0);
	assert_int_equal(packets(send, 0, 1), -EAGAIN);
	recv = recv_post(&p, 5 * P + 100);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(send_info(send).pkts, 5);
	assert_int_equal(send_info(send).length, 5 * P);
	assert_int_equal(send_info(send).recv_length, 5 * P + 100);
	assert_int_equal(send_info(send).message, 0);
	had = sent_pkts(&p);
	assert_int_equal(packets(send, 3, 1), 1);
	assert_int_equal(packets(send, 1, 1), 1);
	settle(&p);
	assert_landed(recv, 6, 0x0a);
	/* No packet is outside, none is shorter, none is empty. */
	assert_int_equal(packets(send, 5, 1), -EINVAL);
	assert_int_equal(packets(send, 4, 2), -EINVAL);
	assert_int_equal(packets(send, 5, 0), -EINVAL);
	assert_int_equal(packets(send, 0, 0), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, 4 * P, 100, NULL), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, 5 * P, 100, NULL), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, 100, P, NULL), -EINVAL);
	assert_int_equal(packets(send, 0, 5), 5);
	assert_int_equal(packets(send, 2, 1), 1); /* again, as often as one likes */
	assert_int_equal(sdr_send_stream_end(send), 0);
	settle(&p);
	assert_landed(recv, 6, 0x1f);
	assert_int_equal(sent_pkts(&p), had + 8);
	sdr_recv_query(recv, &info);
	assert_false(info.end_known);
	assert_int_equal(info.length, 5 * P + 100);
	finish(&p, send, recv, 0);
	pair_close(&p);
}

/* As many packets as the receive has room for: all there, though nothing said so. */
static void a_full_one(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, sizeof(src));
	recv = recv_post(&p, 5 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(packets(send, 0, 5), 5);
	settle(&p);
	assert_landed(recv, 5, 0x1f);
	finish(&p, send, recv, 1);
	pair_close(&p);
}

/* The message is shorter than the receive; its last bytes fill no packet. */
static void a_short_one(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, 2 * P + 10);
	recv = recv_post(&p, 5 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(send_info(send).pkts, 2);
	assert_int_equal(sdr_send_stream_continue(send, 0, 2 * P + 10, NULL), -EINVAL);
	assert_int_equal(packets(send, 0, 2), 2);
	settle(&p);
	assert_landed(recv, 5, 0x03);
	finish(&p, send, recv, 0);
	pair_close(&p);
}

/* Not one packet fits: it is a message all the same, and ends when its receive does. */
static void no_room(void **state)
{
	const uint64_t room[] = {0, 1, P - 1};
	struct pair p;

	(void)state;
	open_pair(&p);
	for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
		struct sdr_send_wr wr = sparse_wr(&p, 3 * P);
		struct sdr_recv *recv = recv_post(&p, room[i]);
		struct sdr_send *send = stream(&p, &wr);
		uint64_t had = sent_pkts(&p);

		assert_true(pair_run(&p, is_fixed, send, SEC));
		assert_int_equal(send_info(send).pkts, 0);
		assert_int_equal(send_info(send).length, 0);
		assert_int_equal(packets(send, 0, 0), -EINVAL);
		assert_int_equal(packets(send, 0, 1), -EINVAL);
		assert_int_equal(sdr_send_poll(send), 0);
		settle(&p);
		assert_landed(recv, room[i] ? 1 : 0, 0);
		assert_int_equal(sent_pkts(&p), had);
		finish(&p, send, recv, 0);
	}
	pair_close(&p);
}

/* Also one of no bytes at all, whose address nobody needs. */
static void of_no_length(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, 0);
	wr.addr = NULL;
	recv = recv_post(&p, 2 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(packets(send, 0, 0), -EINVAL);
	settle(&p);
	assert_landed(recv, 2, 0);
	finish(&p, send, recv, 0);
	pair_close(&p);
}

/* Ordinary messages before and after are what they were, their ends included. */
static void among_others(void **state)
{
	struct sdr_recv *recv[3];
	struct sdr_send *send[3];
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, 2 * P);
	for (uint32_t i = 0; i < 3; i++)
		recv[i] = recv_post(&p, 4 * P);
	for (uint32_t i = 0; i < 3; i++) {
		wr.sparse = i == 1;
		send[i] = stream(&p, &wr);
	}
	assert_true(pair_run(&p, is_fixed, send[2], SEC));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(send_info(send[i]).pkts, i == 1 ? 2 : 3);
		assert_int_equal(packets(send[i], 0, 2), 2);
		assert_int_equal(sdr_send_stream_continue(send[i], 2 * P, 0, NULL),
				 i == 1 ? -EINVAL : 0);
	}
	settle(&p);
	for (uint32_t i = 0; i < 3; i++)
		finish(&p, send[i], recv[i], i != 1);
	pair_close(&p);
}

static void refusals(void **state)
{
	struct sdr_qp_info before = {.size = sizeof(before)}, after = before;
	struct sdr_send_wr wr;
	struct sdr_send *send;
	struct sdr_recv *recv;
	struct pair p;

	(void)state;
	open_pair(&p);
	sdr_qp_query(p.qp[0], &before);
	wr = sparse_wr(&p, 2 * P);
	assert_int_equal(sdr_send_post(p.qp[0], &wr, &send), -EINVAL);
	wr.addr = NULL;
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), -EINVAL);
	sdr_qp_query(p.qp[0], &after);
	assert_int_equal(after.send_next, before.send_next);
	/* More than a message can have is no more than its receive has. */
	wr = sparse_wr(&p, UINT64_MAX / 2);
	recv = recv_post(&p, 3 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(send_info(send).pkts, 3);
	assert_int_equal(packets(send, 2, 1), 1);
	settle(&p);
	assert_landed(recv, 3, 0x04);
	finish(&p, send, recv, 0);
	wr.sparse = 0;
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), -EMSGSIZE);
	pair_close(&p);
}

/* A caller of an older header: what lies behind its struct means nothing. */
static void smaller_structs(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	wr = sparse_wr(&p, 2 * P);
	wr.size = offsetof(struct sdr_send_wr, sparse);
	recv = recv_post(&p, 5 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(send_info(send).pkts, 3);
	assert_int_equal(packets(send, 0, 2), 2);
	assert_int_equal(sdr_send_stream_continue(send, 2 * P, 0, NULL), 0);
	settle(&p);
	finish(&p, send, recv, 1);
	assert_int_equal(sdr_send_post(p.qp[0], &wr, &send), 0);
	sdr_send_release(send);
	pair_close(&p);
}

/* Cancelled or not, before its grant or after: as any other message. */
static void cancelled(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	open_pair(&p);
	for (int granted = 0; granted < 2; granted++) {
		struct sdr_recv_info info = {.size = sizeof(info)};

		wr = sparse_wr(&p, 2 * P);
		send = stream(&p, &wr);
		if (granted) {
			recv = recv_post(&p, 2 * P);
			assert_true(pair_run(&p, is_fixed, send, SEC));
		}
		assert_int_equal(sdr_send_cancel(send), 0);
		assert_int_equal(packets(send, 0, 1), -ECANCELED);
		if (!granted)
			recv = recv_post(&p, 2 * P);
		settle(&p);
		sdr_recv_query(recv, &info);
		assert_int_equal(info.error, -SDR_E_ABORTED);
		assert_int_equal(sdr_recv_complete(recv), -SDR_E_ABORTED);
		assert_true(pair_run(&p, is_done, send, SEC));
		sdr_send_release(send);
	}
	pair_close(&p);
}

/* The payload changes before it is granted: it is cut to packets of the new size. */
static void payload_changes(void **state)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .max_payload_bytes = P};
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;

	(void)state;
	if (pair_is_rocev2())
		return; /* it does not change there */
	pair_open(&p, 1, &attr);
	pair_connect(&p);
	wr = sparse_wr(&p, 2 * P);
	send = stream(&p, &wr);
	assert_int_equal(sdr_qp_payload_set(p.qp[0], 100), 0);
	recv = recv_post(&p, 1050);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(send_info(send).payload_bytes, 100);
	assert_int_equal(send_info(send).pkts, 10);
	assert_int_equal(send_info(send).length, 1000);
	assert_int_equal(sdr_send_stream_continue(send, 900, 100, NULL), 100);
	settle(&p);
	finish(&p, send, recv, 0);
	pair_close(&p);
}

/* ---- what an application offers ---- */

static uint16_t peer_offers(const struct sdr_qp *qp)
{
	struct sdr_qp_info info = {.size = sizeof(info)};

	sdr_qp_query(qp, &info);
	return info.peer_offers;
}

static void offers(void **state)
{
	struct sdr_qp_attr attr = {.size = sizeof(attr), .user_offers = 0xa5c3};
	struct pair p;

	(void)state;
	pair_open(&p, 1, NULL);
	/* One end offers other bits, and some that the first does not. */
	sdr_qp_destroy(p.qp[0]);
	assert_int_equal(sdr_qp_create(p.ctx[0], &attr, &p.qp[0]), 0);
	attr.user_offers = 0x8001;
	sdr_qp_destroy(p.qp[1]);
	assert_int_equal(sdr_qp_create(p.ctx[1], &attr, &p.qp[1]), 0);
	assert_int_equal(peer_offers(p.qp[0]), 0);
	pair_connect(&p);
	assert_int_equal(peer_offers(p.qp[0]), 0x8001);
	assert_int_equal(peer_offers(p.qp[1]), 0xa5c3);
	pair_close(&p);
}

/* An end that offers nothing, and one whose header does not know of offers. */
static void no_offers(void **state)
{
	struct sdr_qp_attr attr = {.size = offsetof(struct sdr_qp_attr, user_offers),
				   .user_offers = 0xffff};
	struct sdr_qp_info info = {.size = offsetof(struct sdr_qp_info, peer_offers),
				   .peer_offers = 0x1234};
	struct pair p;

	(void)state;
	pair_open(&p, 1, &attr);
	sdr_qp_destroy(p.qp[0]);
	attr.size = sizeof(attr);
	assert_int_equal(sdr_qp_create(p.ctx[0], &attr, &p.qp[0]), 0);
	pair_connect(&p);
	assert_int_equal(peer_offers(p.qp[0]), 0);
	assert_int_equal(peer_offers(p.qp[1]), 0xffff);
	sdr_qp_query(p.qp[1], &info);
	assert_int_equal(info.peer_offers, 0x1234);
	pair_close(&p);
}

/* ---- worlds without bytes ---- */

static uint32_t caps_of(const struct sdr_ctx *ctx)
{
	struct sdr_ctx_info info = {.size = sizeof(info)};

	sdr_ctx_query(ctx, &info);
	return info.caps;
}

static void without_payload(void **state)
{
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct sdr_send_wr wr;
	struct pair p;
	uint64_t mask;

	(void)state;
	open_pair(&p);
	assert_false(caps_of(p.ctx[0]) & SDR_CAP_NO_PAYLOAD);
	pair_close(&p);
	pair_payload_off = true;
	open_pair(&p);
	pair_payload_off = false;
	assert_true(caps_of(p.ctx[0]) & SDR_CAP_NO_PAYLOAD);
	assert_true(caps_of(p.ctx[1]) & SDR_CAP_NO_PAYLOAD);
	/* Bits as ever, and no byte of either buffer is looked at. */
	wr = sparse_wr(&p, 3 * P);
	wr.addr = (void *)16;
	recv = recv_post(&p, 3 * P);
	send = stream(&p, &wr);
	assert_true(pair_run(&p, is_fixed, send, SEC));
	assert_int_equal(packets(send, 1, 1), 1);
	settle(&p);
	assert_int_equal(sdr_recv_length_set(recv, 3 * P), 0);
	assert_int_equal(sdr_recv_fill_begin(recv, 0, 3, &mask), 0);
	assert_int_equal(mask, 0x5);
	assert_int_equal(sdr_recv_fill_end(recv, 0, mask), 0);
	for (uint32_t i = 0; i < sizeof(dst); i++)
		assert_int_equal(dst[i], GUARD);
	finish(&p, send, recv, 1);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_packets),	   cmocka_unit_test(a_full_one),
		cmocka_unit_test(a_short_one),	   cmocka_unit_test(no_room),
		cmocka_unit_test(of_no_length),	   cmocka_unit_test(among_others),
		cmocka_unit_test(refusals),	   cmocka_unit_test(smaller_structs),
		cmocka_unit_test(cancelled),	   cmocka_unit_test(payload_changes),
		cmocka_unit_test(offers),	   cmocka_unit_test(no_offers),
		cmocka_unit_test(without_payload),
	};
	int failed = 0;

	for (int i = 0; pair_devices[i]; i++) {
		pair_device = pair_devices[i];
		print_message("devices: %s\n", pair_device->like);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
